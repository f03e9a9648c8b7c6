/* See lua_inbox.h. Messages are first read, then acted on: an engine may not be used while it
 * reads. */
#include "lua/lua_inbox.h"

#include "host/ask.h"
#include "lua/lua_agent.h"

enum { MOST = 1000 /* messages that are read at once */ };

#define FROM(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

typedef struct message {
    ah_text *key, *kind, *body;
} message;

typedef struct messages {
    const ah_mem *mem;
    const ah_keeper *keeper;
    message *item;
    size_t n, cap;
} messages;

static void clear(messages *all)
{
    for (size_t i = 0; i < all->n; i++) {
        ah_text_unref(all->item[i].key);
        ah_text_unref(all->item[i].kind);
        ah_text_unref(all->item[i].body);
    }
    ah_free(all->mem, all->item);
}

/* Returns the body, or an empty object for one that is no JSON: the store's file may hold anything.
 */
static ah_slice checked(const messages *all, ah_slice body)
{
    ah_json_fault fault;

    return ah_json_check(all->mem, body, AH_JSON_MAX_DEPTH, &fault) == AH_OK ? body
                                                                             : ah_slice_of("{}");
}

/* Skips messages that were acted on and leave the inbox with an append that is not done yet. */
static ah_status keep(void *ud, const ah_store_message *m, ah_err *err)
{
    messages *all = ud;
    message *item;

    if (all->n >= MOST || ah_keeper_has_taken(all->keeper, m->key))
        return AH_OK;
    if (!(item = ah_grow(all->mem, all->item, &all->cap, all->n + 1, sizeof *item)))
        return ah_err_nomem(err);
    all->item = item;
    item += all->n++;
    *item = (message){ah_text_new(all->mem, m->key), ah_text_new(all->mem, m->kind),
                      ah_text_new(all->mem, checked(all, m->body))};
    return item->key && item->kind && item->body ? AH_OK : ah_err_nomem(err);
}

static ah_status read_inbox(const ah_lua_agent *a, messages *all, ah_err *err)
{
    ah_store *engine = ah_open_store_engine(ah_keeper_store(a->stream.keeper));

    *all = (messages){.mem = &a->lua->mem, .keeper = a->stream.keeper};
    return engine->vt->inbox(engine, ah_keeper_stream(a->stream.keeper), keep, all, err);
}

static bool is_kind(const message *m, const char *kind)
{
    return ah_slice_is(ah_text_slice(m->kind), kind);
}

/* Returns a member of a message's body; .p NULL: there is none. */
static ah_slice member(const message *m, const char *name)
{
    return ah_json_member(ah_text_slice(m->body), name);
}

/* -- between runs --------------------------------------------------------------------------- */

static bool find_ask(ah_run_history *h, ah_slice id, ah_open_ask *out)
{
    *out = (ah_open_ask){0};
    while (id.p && ah_run_history_next_ask(h, out))
        if (ah_slice_eq(ah_json_member(ah_text_slice(out->ask), "ask"), id))
            return true;
    return false;
}

/* Records the end of the ask, and puts it into the history. Clears b, the record. */
static ah_status close_ask(ah_lua_agent *a, const ah_open_ask *ask, ah_buf *b, ah_err *err)
{
    ah_text *said = NULL;
    ah_status st = ah_text_from_buf(b, "a response", &said, err);

    if (st == AH_OK) {
        ah_recorder_put(&a->stream.recorder, AH_RECORD_ASK_CLOSED, b, (ah_slice){NULL, 0});
        ah_text_set(ask->response, said);
    }
    ah_buf_clear(b);
    return st;
}

/* Records the response to an ask of the unfinished run, and puts it into the history. One to
 * another ask is dropped: that ask is over. */
static ah_status take_response(ah_lua_agent *a, const message *m, ah_err *err)
{
    ah_slice id = member(m, "ask"), value = member(m, "value"), by = member(m, "by");
    ah_open_ask ask;
    ah_buf b;

    if (!value.p || !find_ask(&a->stream.history, id, &ask))
        return AH_OK;
    ah_buf_init(&b, &a->lua->mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&b, "{\"ask\":%.*s,\"how\":\"response\",\"response\":", AH_FMT(id));
    ah_buf_put(&b, value);
    if (ah_json_kind_of(by) == AH_JSON_STRING) {
        ah_buf_str(&b, ",\"by\":");
        ah_buf_put(&b, by);
    }
    ah_buf_char(&b, '}');
    return close_ask(a, &ask, &b, err);
}

/* An approval that is declined is refused. */
static ah_status decline(ah_lua_agent *a, const ah_open_ask *at, ah_err *err)
{
    ah_slice ask = ah_text_slice(at->ask);
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, AH_STORE_MAX_RECORD);
    ah_buf_fmt(&b, "{\"ask\":%.*s,\"how\":\"declined\"", AH_FMT(ah_json_member(ask, "ask")));
    if (ah_json_string_is(ah_json_member(ask, "kind"), "approval"))
        ah_buf_str(&b, ",\"response\":{\"approved\":false,\"why\":\"the user has said something "
                       "else in place of a response\"}");
    ah_buf_str(&b, ",\"by\":\"script\"}");
    return close_ask(a, at, &b, err);
}

ah_status ah_lua_inbox_decline(ah_lua_agent *a, ah_err *err)
{
    ah_open_ask at = {0};
    ah_status st = AH_OK;

    while (st == AH_OK && ah_run_history_next_ask(&a->stream.history, &at))
        st = decline(a, &at, err);
    return st;
}

/* Adds the text to the conversation, or queues it for the next commit of its run. */
static ah_status add_text(const ah_lua_agent *a, ah_slice text, ah_err *err)
{
    ah_text *entry = ah_entry_text(&a->lua->mem, AH_ENTRY_USER, text, ah_host_wall(a->lua->host));

    return ah_lua_agent_at_work(a) || a->transcript->assistant
               ? ah_transcript_stage(a->transcript, AH_ENTRY_USER, entry, err)
               : ah_transcript_add(a->transcript, AH_ENTRY_USER, entry, err);
}

/* The input guards judge a text from another process as they judge the script's own. */
static ah_status take_text(ah_lua_agent *a, const message *m, ah_err *err)
{
    ah_slice text = member(m, "text");
    ah_status st;
    ah_buf b;

    if (ah_json_kind_of(text) != AH_JSON_STRING)
        return AH_OK;
    ah_buf_init(&b, &a->lua->mem, AH_STORE_MAX_RECORD);
    ah_json_string(text, &b);
    st = ah_buf_ok(&b) ? ah_lua_guard_input(&a->hooks, ah_buf_slice(&b), err) : ah_err_nomem(err);
    if (st == AH_OK)
        st = add_text(a, ah_buf_slice(&b), err);
    ah_buf_clear(&b);
    if (st != AH_GUARD)
        return st;
    ah_log_put(&a->observer.records, AH_LOG_WARNING, "a message from the store is dropped: %s",
               err->message);
    return AH_OK;
}

static ah_status take_at_rest(ah_lua_agent *a, const message *m, bool *cancelled, ah_err *err)
{
    ah_status st = AH_OK;

    if (is_kind(m, "response"))
        st = take_response(a, m, err);
    else if (is_kind(m, "send"))
        st = take_text(a, m, err);
    else if (is_kind(m, "cancel"))
        *cancelled = true;
    return st == AH_OK ? ah_keeper_take(a->stream.keeper, ah_text_slice(m->key), err) : st;
}

ah_status ah_lua_inbox_take(ah_lua_agent *a, bool *cancelled, ah_err *err)
{
    messages all;
    ah_status st;

    *cancelled = false;
    if (!a->stream.keeper)
        return AH_OK;
    st = read_inbox(a, &all, err);
    for (size_t i = 0; i < all.n && st == AH_OK; i++)
        st = take_at_rest(a, &all.item[i], cancelled, err);
    clear(&all);
    return st;
}

/* -- while a run is at work -------------------------------------------------------------------- */

/* Returns the open ask of the run with this number in its stream, or NULL. */
static ah_ask_item *open_ask(const ah_lua_agent *a, const ah_run *run, ah_slice id)
{
    ah_ask_item *ask = a->lua->host->asks.first;
    char number[32];

    for (; ask; ask = ask->next) {
        ah_print(number, sizeof number, "\"%lld\"", (long long)ask->recorded);
        if (ask->recorded && ask->def.call->run == run && ah_slice_is(id, number))
            return ask;
    }
    return NULL;
}

static void respond(const ah_lua_agent *a, ah_run *run, const message *m)
{
    ah_slice id = member(m, "ask"), value = member(m, "value"), by = ah_slice_of("store");
    ah_ask_item *ask = open_ask(a, run, id);
    ah_err err;
    ah_buf name;

    if (!ask || !value.p)
        return;
    ah_buf_init(&name, &a->lua->mem, AH_STORE_MAX_RECORD);
    if (ah_json_string(member(m, "by"), &name) && ah_buf_ok(&name) && name.len)
        by = ah_buf_slice(&name);
    if (ah_ask_respond(ask, value, by, &err) != AH_OK)
        ah_run_warn(run, ah_slice_of(err.message));
    ah_buf_clear(&name);
}

static ah_status take_at_work(ah_lua_agent *a, ah_driver_run *d, const message *m, ah_err *err)
{
    if (is_kind(m, "response"))
        respond(a, ah_driver_run_run(d), m);
    else if (is_kind(m, "send") && take_text(a, m, err) != AH_OK)
        return err->status;
    else if (is_kind(m, "cancel"))
        ah_driver_run_cancel(d, AH_CANCELLED, "cancelled through the store");
    ah_driver_run_wake(d);
    return ah_keeper_take(a->stream.keeper, ah_text_slice(m->key), err);
}

static void on_news(ah_store_watcher *w)
{
    ah_lua_agent *a = FROM(w, ah_lua_agent, stream.watcher);
    ah_driver_run *d = ah_lua_agent_at_work(a);
    messages all;
    ah_status st;
    ah_err err;

    if (!d)
        return;
    st = read_inbox(a, &all, &err);
    for (size_t i = 0; i < all.n && st == AH_OK && ah_lua_agent_at_work(a) == d; i++)
        st = take_at_work(a, d, &all.item[i], &err);
    if (st != AH_OK && ah_lua_agent_at_work(a) == d)
        ah_run_warn(ah_driver_run_run(d), ah_slice_of(err.message));
    clear(&all);
}

void ah_lua_inbox_watch(ah_lua_agent *a)
{
    if (!a->stream.keeper || a->stream.watcher.store)
        return;
    a->stream.watcher.fn = on_news;
    ah_open_store_watch(ah_keeper_store(a->stream.keeper), &a->stream.watcher);
}

void ah_lua_inbox_unwatch(ah_lua_agent *a)
{
    ah_open_store_unwatch(&a->stream.watcher);
}
