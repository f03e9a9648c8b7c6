/* The history of a run: memory, steps by key, and the small state as JSON. */
#include "run/history.h"

#include <limits.h>

/* -- progress ----------------------------------------------------------------------- */

/* The counts, with the places that keep them. */
#define COUNTS(p)                                                                                  \
    {                                                                                              \
        {"iterations", &(p)->iterations}, {"rounds", &(p)->rounds},                                \
            {"check_rounds", &(p)->check_rounds}, {"empties", &(p)->empties},                      \
            {"repairs", &(p)->repairs}, {"restarts", &(p)->restarts},                              \
            {"unknown_in_row", &(p)->unknown_in_row},                                              \
    }

/* A reader takes a missing one as 0. */
static void put_count(ah_buf *out, const char *name, int64_t n)
{
    if (n != 0)
        ah_json_add_int(out, name, n);
}

void ah_run_progress_print(const ah_run_progress *p, ah_buf *out)
{
    const struct {
        const char *name;
        const int *n;
    } counts[] = COUNTS(p);

    ah_buf_char(out, '{');
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        put_count(out, counts[i].name, *counts[i].n);
    put_count(out, "tool_calls", (int64_t)p->tool_calls);
    put_count(out, "fallbacks", (int64_t)p->fallbacks);
    if (p->last_round)
        ah_json_add(out, "last_round", ah_slice_of("true"));
    ah_json_add_name(out, "usage");
    ah_usage_print(&p->usage, out);
    ah_buf_char(out, '}');
}

static int64_t count_of(ah_slice value, int64_t most)
{
    ah_json_num n;

    return ah_json_kind_of(value) == AH_JSON_NUMBER && ah_json_number(value, &n) && n.is_int &&
                   n.i > 0 && n.i <= most
               ? n.i
               : 0;
}

void ah_run_progress_read(ah_slice json, ah_run_progress *out)
{
    const struct {
        const char *name;
        int *n;
    } counts[] = COUNTS(out);
    enum { COUNT = sizeof counts / sizeof *counts };
    ah_slice count[COUNT], tool_calls, fallbacks, last, usage;
    ah_json_slot want[COUNT + 4];

    *out = (ah_run_progress){0};
    for (size_t i = 0; i < COUNT; i++)
        want[i] = (ah_json_slot){counts[i].name, &count[i]};
    want[COUNT] = (ah_json_slot){"tool_calls", &tool_calls};
    want[COUNT + 1] = (ah_json_slot){"fallbacks", &fallbacks};
    want[COUNT + 2] = (ah_json_slot){"last_round", &last};
    want[COUNT + 3] = (ah_json_slot){"usage", &usage};
    if (!ah_json_members(json, want, COUNT + 4))
        return;
    for (size_t i = 0; i < COUNT; i++)
        *counts[i].n = (int)count_of(count[i], INT_MAX);
    out->tool_calls = (size_t)count_of(tool_calls, INT_MAX);
    out->fallbacks = (size_t)count_of(fallbacks, INT_MAX);
    out->last_round = ah_slice_is(last, "true");
    ah_usage_read(usage, &out->usage);
}

/* -- calls and steps ------------------------------------------------------------------ */

static ah_slice step_name(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_call_history *)owner)->step[at].key);
}

ah_step_history *ah_call_history_step(const ah_call_history *c, ah_slice key)
{
    uint32_t at = ah_index_find(&c->steps, key);

    return at == AH_INDEX_NONE ? NULL : &c->step[at];
}

/* The ask number i of a call: its own, then those of its steps. */
static void look_at(ah_call_history *c, size_t i, ah_open_ask *at)
{
    at->ask = i ? c->step[i - 1].ask : c->ask;
    at->response = i ? &c->step[i - 1].response : &c->response;
}

bool ah_run_history_next_ask(ah_run_history *h, ah_open_ask *at)
{
    for (; at->call < h->n; at->call++, at->step = 0)
        while (at->step <= h->call[at->call].n_steps) {
            look_at(&h->call[at->call], at->step++, at);
            if (at->ask && !*at->response)
                return true;
        }
    return false;
}

ah_step_history *ah_call_history_add(const ah_mem *mem, ah_call_history *c, ah_slice key)
{
    ah_step_history *s = ah_grow(mem, c->step, &c->cap_steps, c->n_steps + 1, sizeof *s);
    ah_text *text;

    if (!s)
        return NULL;
    c->step = s;
    if (!ah_index_reserve(&c->steps, 1, c->n_steps) || !(text = ah_text_new(mem, key)))
        return NULL;
    s += c->n_steps++;
    *s = (ah_step_history){.key = text};
    ah_index_put(&c->steps, key, c->n_steps - 1);
    return s;
}

static void clear_step(ah_step_history *s)
{
    ah_text_unref(s->key);
    ah_text_unref(s->said);
    ah_text_unref(s->kept);
    ah_text_unref(s->start);
    ah_text_unref(s->ask);
    ah_text_unref(s->response);
}

static void clear_call(const ah_mem *mem, ah_call_history *c)
{
    ah_text_unref(c->started);
    ah_text_unref(c->arguments);
    ah_text_unref(c->finished);
    ah_text_unref(c->staged);
    ah_text_unref(c->settled);
    ah_text_unref(c->again);
    ah_text_unref(c->ask);
    ah_text_unref(c->response);
    for (size_t i = 0; i < c->n_steps; i++)
        clear_step(&c->step[i]);
    ah_free(mem, c->step);
    ah_index_clear(&c->steps);
}

ah_status ah_run_history_begin_turn(ah_run_history *h, size_t calls, ah_err *err)
{
    if (calls && !(h->call = ah_alloc(h->mem, calls * sizeof *h->call)))
        return ah_err_nomem(err);
    h->n = calls;
    for (size_t i = 0; i < calls; i++)
        h->call[i].steps = (ah_index){.mem = h->mem, .name = step_name, .owner = &h->call[i]};
    return AH_OK;
}

void ah_run_history_end_turn(ah_run_history *h)
{
    for (size_t i = 0; i < h->n; i++)
        clear_call(h->mem, &h->call[i]);
    ah_free(h->mem, h->call);
    h->call = NULL;
    h->n = 0;
}

void ah_run_history_clear(ah_run_history *h)
{
    ah_run_history_end_turn(h);
    *h = (ah_run_history){.mem = h->mem};
}
