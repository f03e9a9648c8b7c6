/* Steps, events, cancel and wake: how a program with a loop of its own drives a host. Events are
 * copied into a bounded queue as they happen. The end of a run always has a place in it, reserved
 * when the run begins. */
#include "base/harmless.h"
#include "base/lent.h"
#include "lua/lua_api.h"
#include "lua/lua_watch.h"

enum {
    MAX_ROUNDS = 64, /* more rounds for jobs posted during a step */
    EVENT_BYTES = 16 << 20,
    MAX_KEPT = 1 << 20, /* bytes of memory kept for the next event */
    MIN_JSON = 128      /* room for the smallest event */
};

struct ah_event_node {
    ah_event event;
    ah_event_node *next;
    size_t bytes;
    bool done;
    char data[]; /* JSON and text, each NUL-terminated */
};

/* -- steps --------------------------------------------------------------------------------- */

/* Makes one step that may wait, then up to MAX_ROUNDS more while jobs are due. Jobs left after
 * these are due at once in the next step. */
static void work(ah_lua *h, int timeout_ms)
{
    ah_host *host = h->host;
    lua_State *current = h->current;

    host->depth++;
    h->current = h->caller;
    ah_host_step(host, NULL, timeout_ms);
    for (int i = 0; host->first && i < MAX_ROUNDS; i++)
        ah_host_step(host, NULL, 0);
    h->current = current;
    host->depth--;
}

AH_API int ah_step(ah_host *host, int timeout_ms)
{
    ah_embed *e = ah_embed_of(host);

    if (ah_embed_enter_top(e, "ah_step") != AH_OK)
        return AH_USAGE;
    work(e->lua, e->at_work ? timeout_ms : 0);
    return e->at_work;
}

AH_API int ah_pollfd(ah_host *host)
{
    return ah_loop_fd(host->loop);
}

AH_API int ah_timeout(ah_host *host)
{
    return host->first ? 0 : ah_loop_timeout(host->loop);
}

/* -- cancel and wake ------------------------------------------------------------------------ */

static bool is_own_thread(const ah_embed *e)
{
    return atomic_load(&e->scripting) && pthread_equal(atomic_load(&e->thread), pthread_self());
}

/* lua_sethook may be called from a signal handler, but not from another thread. */
AH_API void ah_cancel(ah_host *host)
{
    ah_embed *e = host ? ah_embed_of(host) : NULL;

    if (!e)
        return;
    ah_host_cancel(host);
    if (is_own_thread(e))
        ah_watch_interrupt(e->lua);
}

AH_API void ah_terminate(ah_host *host)
{
    ah_embed *e = host ? ah_embed_of(host) : NULL;

    if (!e)
        return;
    ah_host_stop(host);
    if (is_own_thread(e))
        ah_watch_interrupt(e->lua);
}

AH_API unsigned ah_waiting(const ah_host *host)
{
    return host && host->depth ? host->waits : 0;
}

AH_API bool ah_interactive(const ah_host *host)
{
    return host && atomic_load(&host->interactive);
}

AH_API size_t ah_control_char(const char *text, size_t n)
{
    return ah_hidden_len((ah_slice){text, n});
}

AH_API int64_t ah_counter(const ah_host *host, const char *name)
{
    for (int m = 0; host && name && m < AH_METRICS; m++)
        if (strcmp(name, ah_metric_name((ah_metric)m)) == 0)
            return host->metrics.count[m];
    return -1;
}

AH_API void ah_wake(ah_host *host)
{
    if (host)
        ah_host_wake(host);
}

/* -- a transport's responses ----------------------------------------------------------------- */

AH_API void ah_transport_head(ah_host *host, uint64_t id, int status, const char *const *headers,
                              size_t n_headers)
{
    if (ah_embed_may(ah_embed_of(host), "ah_transport_head") == AH_OK)
        ah_http_head(host->http, id, status, headers, n_headers);
}

AH_API void ah_transport_body(ah_host *host, uint64_t id, const void *bytes, size_t n)
{
    if (ah_embed_may(ah_embed_of(host), "ah_transport_body") == AH_OK)
        ah_http_body(host->http, id, ah_lend((ah_slice){bytes, n}));
}

AH_API void ah_transport_end(ah_host *host, uint64_t id, const char *error)
{
    if (ah_embed_may(ah_embed_of(host), "ah_transport_end") == AH_OK)
        ah_http_end(host->http, id, error, NULL, false);
}

AH_API void ah_transport_fail(ah_host *host, uint64_t id, const char *reason, const char *error)
{
    if (ah_embed_may(ah_embed_of(host), "ah_transport_fail") == AH_OK)
        ah_http_end(host->http, id, error ? error : "the transfer failed", reason, false);
}

/* -- events ------------------------------------------------------------------------------------ */

static ah_event_node *new_node(ah_embed *e, ah_agent *agent, size_t data)
{
    ah_event_node *node = ah_alloc(&e->lua->mem, sizeof *node + data);

    if (!node)
        return NULL;
    node->bytes = sizeof *node + data;
    node->event = (ah_event){.type = "done", .agent = agent, .text = "", .json = node->data};
    return node;
}

static ah_slice text_of(const ah_notice *n)
{
    const char *name = n->type == AH_EVENT_CONTENT   ? "text"
                       : n->type == AH_EVENT_WARNING ? "message"
                                                     : NULL;

    for (size_t i = 0; name && i < n->n; i++)
        if (strcmp(n->field[i].name, name) == 0 && n->field[i].kind == AH_FIELD_STR)
            return n->field[i].s;
    return (ah_slice){"", 0};
}

/* Writes JSON, NUL, text, NUL to e->scratch, as in a node, and sets *out to them. Returns false
 * when out of memory. */
static bool print_event(ah_embed *e, const ah_notice *n, ah_event *out)
{
    ah_slice text = text_of(n);
    ah_buf *b = &e->scratch;
    size_t json_len;

    if (b->cap > MAX_KEPT)
        ah_buf_clear(b);
    ah_buf_reset(b, 0);
    ah_event_json(n, b);
    json_len = b->len;
    ah_buf_char(b, '\0');
    ah_buf_put(b, text);
    ah_buf_char(b, '\0');
    if (!ah_buf_ok(b))
        return false;
    out->type = ah_event_name(n->type);
    out->run = n->run;
    out->time = (double)n->time / 1000;
    out->json = b->data;
    out->json_len = json_len;
    out->text = b->data + json_len + 1;
    out->text_len = text.n;
    return true;
}

void ah_embed_watch(ah_embed *e, ah_agent *agent, const ah_notice *n)
{
    ah_host *host = e->lua->host;
    const ah_watcher *w = &host->cfg.watcher;
    ah_event event = {.agent = agent};
    ah_buf shown;

    if (!print_event(e, n, &event))
        return;
    shown = ah_buf_take(&e->scratch); /* the watcher may cause other events */
    ah_host_call_out(host, true);
    w->event(w->ud, &event);
    ah_host_came_back(host, true);
    ah_buf_give_back(&e->scratch, &shown);
}

ah_event_node *ah_event_new(ah_embed *e, ah_agent *agent, const ah_notice *n)
{
    ah_event event = {.agent = agent};
    ah_event_node *node;

    if (n->type != AH_EVENT_DONE && (e->n_events >= e->max_events || e->event_bytes > EVENT_BYTES))
        return NULL;
    if (!print_event(e, n, &event) || !(node = new_node(e, agent, e->scratch.len)))
        return NULL;
    memcpy(node->data, e->scratch.data, e->scratch.len);
    event.json = node->data;
    event.text = node->data + event.json_len + 1;
    node->event = event;
    return node;
}

ah_event_node *ah_event_new_done(ah_embed *e, ah_agent *agent)
{
    return new_node(e, agent, MIN_JSON);
}

void ah_event_set_run(ah_event_node *node, int64_t run, int64_t wall_ms)
{
    node->event.run = run;
    node->event.time = (double)wall_ms / 1000;
    if (node->event.json_len == 0)
        node->event.json_len =
            ah_print(node->data, MIN_JSON, "{\"type\":\"done\",\"run\":%lld,\"time\":%lld.%03d}",
                     (long long)run, (long long)(wall_ms / 1000), (int)(wall_ms % 1000));
}

void ah_event_free(ah_embed *e, ah_event_node *node)
{
    ah_free(&e->lua->mem, node);
}

void ah_event_queue(ah_embed *e, ah_event_node *node, bool done)
{
    if (!node) {
        e->lost++;
        return;
    }
    node->done = done;
    node->event.lost = e->lost;
    e->lost = 0;
    node->next = NULL;
    *e->last = node;
    e->last = &node->next;
    e->n_events++;
    e->n_done += done;
    e->event_bytes += node->bytes;
}

static void leave_queue(ah_embed *e, ah_event_node **at)
{
    ah_event_node *node = *at;

    *at = node->next;
    if (e->last == &node->next)
        e->last = at;
    e->n_events--;
    e->n_done -= node->done;
    e->event_bytes -= node->bytes;
}

AH_API const ah_event *ah_next_event(ah_host *host)
{
    ah_embed *e = ah_embed_of(host);

    ah_event_free(e, e->shown);
    e->shown = e->first;
    if (!e->shown)
        return NULL;
    leave_queue(e, &e->first);
    return &e->shown->event;
}

void ah_events_forget(ah_embed *e, const ah_agent *agent)
{
    ah_event_node **at = &e->first;

    while (*at) {
        ah_event_node *node = *at;

        if (agent && node->event.agent != agent) {
            at = &node->next;
            continue;
        }
        leave_queue(e, at);
        ah_event_free(e, node);
    }
    if (e->shown && (!agent || e->shown->event.agent == agent)) {
        ah_event_free(e, e->shown);
        e->shown = NULL;
    }
}
