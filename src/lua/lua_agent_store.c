/* The stream of an agent's conversation. One path leads from its records to a conversation, for all
 * that have a store; one path leads back: the recorder, which compares. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "lua/lua_agent_store.h"

#include <limits.h>
#include <stdlib.h>

#include "host/store_keep.h"
#include "host/store_restore.h"
#include "host/store_spent.h"
#include "lua/lua_agent.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_inbox.h"
#include "lua/lua_named.h"
#include "lua/lua_value.h"
#include "lua/lua_now.h"
#include "lua/lua_undo.h"
#include "lua/lua_options.h"
#include "lua/lua_restage.h"
#include "lua/lua_setup.h"
#include "lua/lua_store.h"

enum {
    MAX_RECORD = 1 << 30,
    MAX_OPENED = 64 << 10,
    MAX_SHOWN = 200 /* bytes of a question in a message */
};

/* Results of calls of a run that is cancelled between two processes. */
static const char NOT_BEGUN[] = "Not run: the run was cancelled before this call was begun.";
static const char UNKNOWN[] =
    "Cancelled: the run was stopped before this call finished. Its outcome is unknown.";
static const char GIVEN_UP[] = "This call was given up after the program had ended. Its outcome is "
                               "unknown.";

/* -- small parts ---------------------------------------------------------------------------- */

static void put(ah_lua_agent *a, ah_record_kind kind, ah_buf *said)
{
    ah_recorder_put(&a->stream.recorder, kind, said, (ah_slice){NULL, 0});
    ah_buf_clear(said);
}

static void put_member(ah_buf *b, const char *key, ah_slice value)
{
    if (value.n && ah_utf8_valid(value))
        ah_json_add_string(b, key, value);
}

/* Appends more members for the first record of the stream. */
static void put_opened(lua_State *L, const ah_lua_agent *a, ah_buf *b)
{
    char path[PATH_MAX];
    int top = lua_gettop(L);

    put_member(b, "folder", ah_text_slice(a->stream.folder));
    if (lua_getglobal(L, "arg") == LUA_TTABLE && lua_rawgeti(L, -1, 0) == LUA_TSTRING &&
        realpath(lua_tostring(L, -1), path))
        put_member(b, "script", ah_slice_of(path));
    put_member(b, "agent", ah_text_slice(a->name));
    ah_json_add(b, "base", ah_text_slice(a->stream.base));
    lua_settop(L, top);
}

/* -- opening -------------------------------------------------------------------------------- */

void ah_lua_stream_check_id(lua_State *L, ah_slice id, const char *what)
{
    if (id.n > AH_STORE_MAX_STREAM)
        ah_lua_raise(L, AH_USAGE, "%s: with a store, id must be a text of 1 to %d bytes, found %d",
                     what, AH_STORE_MAX_STREAM, (int)id.n);
    for (size_t i = 0; i < id.n; i++)
        if ((unsigned char)id.p[i] < ' ' || id.p[i] == 0x7f || id.p[i] == '/')
            ah_lua_raise(L, AH_USAGE,
                         "%s: with a store, id must be printable text without '/', found '%s'",
                         what, id.p);
}

/* Raises unless the conversation's id can name a stream. Without an id it gets a new one. */
static void check_id(lua_State *L, ah_lua_agent *a, const char *what)
{
    ah_lua_setup_push_id(L, a);
    ah_lua_stream_check_id(L, ah_text_slice(a->setup.id), what);
    lua_pop(L, 1);
}

/* Opens the keeper. An agent that holds the stream and is garbage is collected first. */
static ah_status open_keeper(lua_State *L, ah_lua_agent *a, ah_open_store *store, ah_fold *f,
                             ah_err *err)
{
    ah_stream_name stream = {.name = ah_text_slice(a->setup.id)};
    ah_buf *b = ah_lua_push_buf(L, MAX_OPENED);
    char folder[PATH_MAX];
    ah_status st = AH_NOMEM;

    ah_text_set(&a->stream.folder,
                realpath(".", folder) ? ah_text_new(&a->lua->mem, ah_slice_of(folder)) : NULL);
    put_opened(L, a, b);
    if (ah_buf_ok(b)) {
        stream.opened = ah_buf_slice(b);
        st = ah_keeper_open(store, &stream, a->lua->host->take, f, &a->stream.keeper, err);
    } else {
        ah_err_nomem(err);
    }
    if (st == AH_CONFLICT) {
        lua_gc(L, LUA_GCCOLLECT);
        st = ah_keeper_open(store, &stream, a->lua->host->take, f, &a->stream.keeper, err);
    }
    ah_buf_clear(b); /* not left to its finalizer, which Lua may skip without memory */
    lua_pop(L, 1);
    return st;
}

/* Keeps the session of the fold as text, as that of a file. */
static ah_status take_session(ah_lua_agent *a, const ah_fold *f, ah_err *err)
{
    ah_status st = AH_OK;
    ah_text *kept = NULL;
    ah_buf b;

    if (!f->n_slices)
        return AH_OK;
    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_fold_print_session(f, &b);
    if ((st = ah_text_from_buf(&b, "session", &kept, err)) == AH_OK)
        ah_text_set(&a->kept, kept);
    ah_buf_clear(&b);
    return st;
}

/* Takes the conversation of the fold: of a stream, or of a file. */
static ah_status take(ah_lua_agent *a, const ah_fold *f, ah_err *err)
{
    ah_lua_stream *s = &a->stream;
    ah_status st = take_session(a, f, err);

    if (st == AH_OK)
        st = ah_lua_states_take(&s->states, f, err);
    if (st != AH_OK)
        return st;
    a->transcript = ah_transcript_ref(f->transcript);
    s->recorder.runs = f->runs;
    s->recorder.asks = f->asks;
    s->ended = ah_text_ref(f->ended);
    s->ended_first = f->ended_first;
    return AH_OK;
}

/* Moves what the agent needs out of the fold of its stream. */
static ah_status take_stream(ah_lua_agent *a, ah_fold *f, ah_err *err)
{
    ah_lua_stream *s = &a->stream;

    s->opened = ah_text_ref(f->opened);
    if (f->last <= 1) /* the record `opened` alone: it is new */
        return AH_OK;
    if (a->transcript)
        return ah_err_set(err, AH_CONFLICT,
                          "the store has a conversation '%s' already: give another id, or go on "
                          "with it by ah.agent { store, id }",
                          a->setup.id->data);
    s->read = true;
    s->history = f->history;
    f->history = (ah_run_history){.mem = f->mem};
    return take(a, f, err);
}

/* Appends the members of a checkpoint that its recorder does not know, but for `opened`. ud: the
 * states, which are a member of the stream. */
static void put_rest(const void *ud, ah_buf *out)
{
    const ah_lua_stream *s =
        (const ah_lua_stream *)(const void *)((const char *)ud - offsetof(ah_lua_stream, states));

    ah_buf_fmt(out, ",\"asks\":%lld,\"entities\":", (long long)s->recorder.asks);
    ah_lua_print_states(&s->states, out);
    if (s->ended) {
        ah_buf_str(out, ",\"ended\":");
        ah_buf_put(out, ah_text_slice(s->ended));
    }
}

/* `whole` of the recorder of a stream. ud: the states. */
static void put_whole(void *ud, ah_buf *out)
{
    const ah_lua_stream *s =
        (const ah_lua_stream *)(const void *)((const char *)ud - offsetof(ah_lua_stream, states));

    ah_buf_str(out, ",\"opened\":");
    ah_buf_put(out, ah_text_slice(s->opened));
    put_rest(ud, out);
}

/* The same for a file, which names no folder and no script. */
static void put_whole_file(void *ud, ah_buf *out)
{
    ah_buf_str(out, ",\"opened\":");
    ah_fold_print_opened(AH_STREAM_CONVERSATION, (ah_slice){NULL, 0}, out);
    put_rest(ud, out);
}

void ah_lua_stream_init(ah_lua_agent *a)
{
    ah_lua_stream *s = &a->stream;

    ah_recorder_init(&s->recorder, &a->lua->mem, &a->lua->host->secrets);
    s->states.lua = a->lua;
    s->recorder.changed = ah_lua_put_changed;
    s->recorder.whole = put_whole;
    s->recorder.changed_ud = &s->states;
}

/* `beside` and `shares` of the recorder. ud: the stream. */
static void note_named(void *ud)
{
    const ah_lua_stream *s = ud;

    ah_lua_named_note(s->states.lua, s->keeper, true);
}

static bool shares(void *ud, const ah_overlay *o)
{
    const ah_lua_stream *s = ud;

    return ah_lua_named_changes(s->states.lua, o);
}

/* Ends the call that the program gives up (ah_config.give_up): its handler is not entered again. */
static ah_status give_up(ah_lua_agent *a, ah_err *err)
{
    ah_slice id = ah_text_slice(a->lua->host->give_up);
    ah_lua_stream *s = &a->stream;
    const ah_transcript *t = a->transcript;
    size_t i = 0;
    ah_buf b;

    if (!s->resumed || !id.p)
        return AH_OK;
    while (i < t->n_slots && !ah_slice_eq(ah_text_slice(t->slot[i].id), id))
        i++;
    if (i >= t->n_slots || i >= s->history.n || t->slot[i].result || !s->history.call[i].started ||
        s->history.call[i].finished)
        return ah_err_set(err, AH_USAGE, "conversation '%s' has no call '%.200s' at work",
                          a->setup.id->data, id.p);
    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_buf_fmt(&b, "{\"call\":%zu,\"success\":false,\"outcome\":{\"content\":\"%s\"}}", i,
               GIVEN_UP);
    s->history.call[i].finished = ah_buf_ok(&b) ? ah_text_new(b.mem, ah_buf_slice(&b)) : NULL;
    if (!s->history.call[i].finished) {
        ah_buf_clear(&b);
        return ah_err_nomem(err);
    }
    put(a, AH_RECORD_CALL_FINISHED, &b);
    return AH_OK;
}

/* Ends the call or the rewind whose files were being applied, and folds the stream anew. */
static ah_status end_applying(ah_lua_agent *a, ah_fold *f, ah_err *err)
{
    const ah_record_sink *to = &a->stream.recorder.sink;
    ah_fold now;
    ah_status st = f->restoring ? ah_restore_finish(a->lua->host, to, f, err)
                                : ah_lua_end_applying(a->lua, to, f, err);

    if (st == AH_OK)
        st = ah_keeper_read(a->stream.keeper, &now, err);
    if (st != AH_OK)
        return st;
    ah_fold_clear(f);
    *f = now;
    return AH_OK;
}

/* Lets the recorder count on from the use so far, unless an old record of it cannot be read. */
static ah_status count_use(ah_lua_agent *a, ah_err *err)
{
    ah_lua_stream *s = &a->stream;
    ah_store *e = ah_open_store_engine(ah_keeper_store(s->keeper));
    ah_status st = AH_OK;

    if (s->read)
        st = ah_store_spent(&a->lua->mem, e, ah_keeper_stream(s->keeper), &s->recorder.spent, err);
    if (st == AH_STORE)
        return AH_OK;
    if (st == AH_OK && !(s->recorder.account = ah_budget_new(&a->lua->mem)))
        st = ah_err_nomem(err);
    return st;
}

static ah_status open_stream(lua_State *L, ah_lua_agent *a, ah_open_store *store, ah_err *err)
{
    ah_fold f;
    ah_status st = open_keeper(L, a, store, &f, err);

    if (st != AH_OK)
        return st;
    a->stream.states.recorded = true;
    a->stream.recorder.sink = ah_keeper_sink(a->stream.keeper);
    a->stream.recorder.stream = ah_text_ref(a->setup.id);
    a->stream.recorder.store = ah_open_store_path(store);
    a->stream.recorder.bytes = ah_open_store_keeps_bytes(store);
    a->stream.recorder.replays = ah_open_store_replays(store);
    a->stream.recorder.beside = note_named;
    a->stream.recorder.shares = shares;
    a->stream.recorder.beside_ud = &a->stream;
    if (f.applying || f.restoring)
        st = end_applying(a, &f, err);
    if (st == AH_OK)
        st = take_stream(a, &f, err);
    if (st == AH_OK)
        st = count_use(a, err);
    ah_fold_clear(&f);
    return st;
}

void ah_lua_stream_check_outside(lua_State *L, const char *what)
{
    if (ah_lua_overlay(L))
        ah_lua_raise(L, AH_USAGE,
                     "%s: a handler cannot open a conversation with a store, because its call may "
                     "fail: open it before the run",
                     what);
}

/* Sets *out to a new reference to the store for the fields at idx; NULL: none. The stores that are
 * not named there (`otherwise`, NULL: that of the host) are for conversations with an id alone. */
static ah_status find_store(lua_State *L, int idx, const ah_lua_agent *a, ah_open_store *otherwise,
                            ah_open_store **out, ah_err *err)
{
    int type = lua_getfield(L, idx, "store");
    bool none = type == LUA_TBOOLEAN && !lua_toboolean(L, -1);

    *out = NULL;
    if (none || (type == LUA_TNIL && (!a->setup.id || (!otherwise && ah_lua_overlay(L)))))
        return AH_OK;
    if (type == LUA_TNIL && otherwise) {
        *out = ah_open_store_ref(otherwise);
        return AH_OK;
    }
    return ah_lua_to_store(L, -1, out, err);
}

static bool is_id(const ah_lua_agent *a, const ah_text *conversation)
{
    return conversation && ah_slice_eq(ah_text_slice(a->setup.id), ah_text_slice(conversation));
}

/* The conversation that the program resumes (ah_config.conversation) is that of the first agent
 * without an id of its own, unless an agent names it, or the one that it was forked from. */
static void take_conversation(ah_lua_agent *a, const char *what)
{
    ah_host *host = a->lua->host;
    bool is = a->setup.id
                  ? is_id(a, host->conversation) || (!a->once && is_id(a, host->conversation_base))
                  : strcmp(what, "ah.agent") == 0;

    if (!host->conversation || !is)
        return;
    ah_text_set(&a->setup.id, host->conversation);
    host->conversation = NULL;
    a->stream.resumed = true;
}

/* Reads `store` and `id` of the table at idx, and opens the stream. */
static ah_status read_stream(lua_State *L, int idx, ah_lua_agent *a, ah_open_store *otherwise,
                             const char *what, ah_err *err)
{
    int top = lua_gettop(L);
    ah_open_store **held;
    ah_status st;

    if (lua_getfield(L, idx, "id") != LUA_TNIL)
        ah_lua_setup_id(L, a, -1, what);
    take_conversation(a, what);
    held = ah_lua_push_held_store(L);
    st = find_store(L, idx, a, otherwise, held, err);
    if (st == AH_OK && *held) {
        ah_lua_stream_check_outside(L, what);
        check_id(L, a, what);
        st = open_stream(L, a, *held, err);
    }
    ah_open_store_unref(*held);
    *held = NULL;
    lua_settop(L, top);
    return st;
}

ah_status ah_lua_stream_read(lua_State *L, ah_lua_agent *a, const char *what, ah_err *err)
{
    return read_stream(L, 1, a, NULL, what, err);
}

/* Moves the entries from `mark` on behind the pending turn of the unfinished run. */
static ah_status hold_back(ah_transcript *t, size_t mark, ah_err *err)
{
    size_t n = t->n;
    ah_status st = AH_OK;

    for (size_t i = mark; i < n && st == AH_OK; i++)
        st = ah_transcript_stage(t, t->entry[i].kind, ah_text_ref(t->entry[i].json), err);
    if (st == AH_OK)
        ah_transcript_take_back(t, false, mark);
    return st;
}

ah_status ah_lua_stream_defer(ah_lua_agent *a, ah_err *err)
{
    const ah_lua_stream *s = &a->stream;

    if (!s->bound || !a->transcript->assistant)
        return AH_OK;
    return hold_back(a->transcript, s->recorder.entries, err);
}

/* Records the whole state. What the session of this script has no types for follows it. */
static void checkpoint(ah_lua_agent *a)
{
    ah_recorder_checkpoint(&a->stream.recorder, ah_text_slice(a->kept));
}

/* Claims the session for this stream. An agent that has it and is garbage is collected first. */
static ah_status claim(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    ah_lua_stream *s = &a->stream;

    if (s->claimed)
        return AH_OK;
    if (!ah_session_claim(a->session)) {
        lua_gc(L, LUA_GCCOLLECT);
        if (!ah_session_claim(a->session))
            return ah_err_set(err, AH_USAGE,
                              "the session is that of another agent with a store: a session of "
                              "several needs a name, as in ah.session { name = \"stock\" }");
    }
    s->claimed = true;
    return AH_OK;
}

/* True if the process of the unfinished run ended before its question was recorded. */
static bool has_asked_nothing(const ah_lua_agent *a)
{
    const ah_run_history *h = &a->stream.history;
    const ah_transcript *t = a->transcript;

    return h->run && !h->lost_requests && !t->assistant && !t->n_staged && t->n <= h->first;
}

ah_status ah_lua_stream_bind(lua_State *L, ah_lua_agent *a, ah_err *err)
{
    ah_lua_stream *s = &a->stream;
    bool import = !s->read && (a->transcript->n > 0 || s->loaded);
    bool named = ah_lua_named_session(a->lua, a->session);
    ah_status st;

    if (!s->keeper) {
        ah_text_set(&s->ended, NULL);
        return AH_OK;
    }
    if (!named && (st = claim(L, a, err)) != AH_OK)
        return st;
    st = ah_recorder_bind(&s->recorder, a->transcript, named ? NULL : a->session, s->read, err);
    if (st == AH_OK)
        st = give_up(a, err);
    if (st != AH_OK)
        return st;
    s->bound = true;
    if (has_asked_nothing(a))
        return ah_lua_stream_cancel(a, err);
    if (!import)
        return AH_OK;
    checkpoint(a);
    return ah_keeper_settle(s->keeper, err);
}

static const ah_option fork_rows[] = {
    {.name = "at",
     .kinds = AH_OPT_INTEGER,
     .otherwise = "the last complete turn",
     .doc = "the last [turn](stores.md#forks) that the new conversation has, 0: none; only with a "
            "store"},
    {.name = "id",
     .kinds = AH_OPT_ANY,
     .is = "string",
     .type = "string",
     .doc = "of the new conversation; by default a new one"},
    {.name = "store",
     .kinds = AH_OPT_ANY,
     .otherwise = "that of the agent, if `id` is given",
     .is = "string, store or table",
     .type = "string|ah.Store|ah.StoreConfig|false",
     .doc = "keeps the new conversation"},
    {0},
};
const ah_subject ah_subject_fork = {.what = "agent:fork",
                                    .type = "ah.Fork",
                                    .doc = "where the second conversation is kept",
                                    .row = fork_rows};

/* -- files ---------------------------------------------------------------------------------- */

ah_status ah_lua_stream_load(ah_lua_agent *a, ah_slice checkpoint, ah_err *err)
{
    enum { MAX_NUMBER = 1 << 30 }; /* leaves room for those to come */
    ah_fold f;
    ah_status st = ah_fold_init(&f, &a->lua->mem, err);

    if (st != AH_OK)
        return st;
    st = ah_fold_add_alone(&f, checkpoint, err);
    if (st == AH_OK && (f.runs > MAX_NUMBER || f.asks > MAX_NUMBER))
        st = ah_err_set(err, AH_STORE, "runs and asks are numbers up to %d", MAX_NUMBER);
    if (st == AH_OK)
        st = take(a, &f, err);
    ah_fold_clear(&f);
    a->stream.loaded = true;
    return st;
}

/* Sets *out to the conversation without a pending turn: a call without a result gets one. */
static ah_status settled(const ah_lua_agent *a, ah_transcript **out, ah_err *err)
{
    ah_status st;
    ah_buf b;

    if (!a->transcript->assistant) {
        *out = ah_transcript_ref(a->transcript);
        return AH_OK;
    }
    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_transcript_print(a->transcript, &b);
    st = ah_buf_ok(&b) ? ah_transcript_read(b.mem, ah_buf_slice(&b), out, err)
                       : ah_buf_error(&b, "the conversation", err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_lua_stream_save(ah_lua_agent *a, ah_buf *out, ah_err *err)
{
    ah_lua_stream *s = &a->stream;
    ah_recorder r;
    ah_status st;

    ah_lua_stream_note(a);
    if (!s->keeper && !ah_lua_keep_changed(&s->states))
        return ah_err_nomem(err);
    r = s->recorder;
    if ((st = settled(a, &r.transcript, err)) != AH_OK)
        return st;
    r.session = a->session;
    r.whole = put_whole_file;
    ah_recorder_print(&r, ah_text_slice(a->kept), out);
    ah_transcript_unref(r.transcript);
    if (!ah_buf_ok(out))
        return ah_buf_error(out, "the conversation", err);
    out->len = ah_secrets_redact_json(r.secrets, out->data, out->len);
    return AH_OK;
}

/* -- recording ------------------------------------------------------------------------------ */

/* Appends the ids of the asks for which the run waits, if there are any. */
static void put_waiting(ah_run_history *h, ah_buf *b)
{
    ah_open_ask at = {0};
    size_t n = 0;

    while (ah_run_history_next_ask(h, &at)) {
        ah_buf_str(b, n++ ? "," : ",\"waiting\":[");
        ah_buf_put(b, ah_json_member(ah_text_slice(at.ask), "ask"));
    }
    ah_buf_str(b, n ? "]" : "");
}

/* Sets the label, by which lists of conversations find it. */
static void set_label(ah_lua_agent *a, const char *state)
{
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, MAX_OPENED);
    ah_buf_fmt(&b, "{\"state\":\"%s\"", state);
    put_member(&b, "folder", ah_text_slice(a->stream.folder));
    put_member(&b, "agent", ah_text_slice(a->name));
    put_waiting(&a->stream.history, &b);
    if (a->stream.recorder.account)
        ah_label_put_spent(&a->stream.recorder.spent, ah_keeper_number(a->stream.keeper), &b);
    ah_buf_char(&b, '}');
    if (ah_buf_ok(&b)) /* a label that is missing or old loses no record */
        (void)ah_keeper_label(a->stream.keeper, ah_buf_slice(&b), NULL);
    ah_buf_clear(&b);
}

/* Notes where the fork begins: at the last record of `from`, or at its last turn while another one
 * is pending. */
static ah_status note_base(ah_lua_agent *a, ah_lua_agent *from, ah_err *err)
{
    ah_keeper *k = from->stream.keeper;
    ah_store *e = k ? ah_open_store_engine(ah_keeper_store(k)) : NULL;
    ah_status st = ah_lua_stream_settle(from, err);
    int64_t number = k ? ah_keeper_last(k) : 0;
    ah_buf b;

    if (st != AH_OK || !k)
        return st;
    if (from->transcript->assistant)
        st = e->vt->find_last(e, ah_keeper_stream(k), ah_slice_of(ah_record_name(AH_RECORD_TURN)),
                              &number, err);
    ah_buf_init(&b, &a->lua->mem, MAX_OPENED);
    ah_buf_str(&b, "{\"stream\":");
    ah_json_put_string(&b, ah_keeper_stream(k));
    ah_buf_fmt(&b, ",\"number\":%lld}", (long long)number);
    if (st == AH_OK)
        st = ah_text_from_buf(&b, "the base", &a->stream.base, err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_lua_stream_fork(lua_State *L, int idx, ah_lua_agent *a, ah_lua_agent *from,
                             ah_err *err)
{
    ah_open_store *store = from->stream.keeper ? ah_keeper_store(from->stream.keeper) : NULL;
    ah_status st;

    if (lua_isnil(L, idx))
        return AH_OK;
    ah_options_read(L, idx, &ah_subject_fork, NULL);
    if ((st = note_base(a, from, err)) != AH_OK)
        return st;
    st = read_stream(L, idx, a, store, "agent:fork", err);
    if (st == AH_OK)
        st = ah_lua_stream_bind(L, a, err);
    if (st == AH_OK && a->stream.keeper)
        set_label(a, ah_transcript_wants_answer(a->transcript) ? "running" : "idle");
    return st;
}

void ah_lua_stream_note(ah_lua_agent *a)
{
    ah_lua_stream *s = &a->stream;

    if (!s->bound || a->current || a->transcript->assistant)
        return; /* what came before the end of a pending turn waits for its commit */
    ah_recorder_note(&s->recorder);
    if (!a->once && !s->history.run && ah_keeper_wants_checkpoint(s->keeper))
        checkpoint(a);
}

ah_status ah_lua_stream_state(const ah_lua_agent *a, ah_err *err)
{
    ah_status st;

    if (!a->stream.keeper)
        return AH_OK;
    if ((st = ah_recorder_state(&a->stream.recorder, err)) != AH_OK)
        return st;
    return ah_keeper_state(a->stream.keeper, err);
}

ah_status ah_lua_stream_settle(ah_lua_agent *a, ah_err *err)
{
    if (!a->stream.keeper)
        return AH_OK;
    ah_lua_stream_note(a);
    return ah_keeper_settle(a->stream.keeper, err);
}

ah_status ah_lua_stream_head(ah_lua_agent *a, ah_buf *out, ah_err *err)
{
    ah_keeper *k = a->stream.keeper;
    ah_status st = ah_lua_stream_settle(a, err);

    if (!k)
        return ah_err_set(err, AH_USAGE, "no store keeps the conversation, so it has no head");
    return st == AH_OK ? ah_open_store_head(ah_keeper_store(k), ah_keeper_stream(k), out, err) : st;
}

void ah_lua_stream_close(ah_lua_agent *a)
{
    ah_lua_stream *s = &a->stream;

    ah_lua_stream_note(a);
    if (s->claimed)
        ah_session_unclaim(s->recorder.session);
    ah_keeper_close(s->keeper);
    ah_text_set(&s->folder, NULL);
    ah_text_set(&s->base, NULL);
    ah_recorder_clear(&s->recorder);
    if (s->history.mem)
        ah_run_history_clear(&s->history);
    ah_text_set(&s->ended, NULL);
    ah_lua_forget_changed(&s->states);
    ah_lua_states_clear(&s->states);
    ah_text_set(&s->opened, NULL);
    *s = (ah_lua_stream){0};
}

/* Reads the history of the unfinished run from the stream. Without it the conversation must be
 * opened anew. */
static void read_history(ah_lua_agent *a)
{
    ah_lua_stream *s = &a->stream;
    ah_fold f;
    ah_err err;
    ah_status st = ah_keeper_read(s->keeper, &f, &err);

    if (st != AH_OK) {
        s->recorder.broken = st;
        return;
    }
    if (f.applying) /* only open_stream finds out what became of the files */
        s->recorder.broken = AH_CANCELLED;
    s->history = f.history;
    f.history = (ah_run_history){.mem = f.mem};
    ah_fold_clear(&f);
}

void ah_lua_stream_run_over(ah_lua_agent *a, bool unsettled)
{
    ah_lua_stream *s = &a->stream;

    if (!s->bound)
        return;
    ah_lua_inbox_unwatch(a);
    if (s->history.mem)
        ah_run_history_clear(&s->history);
    if (unsettled && s->recorder.replays) /* the copy of a turn is not gone on with */
        s->recorder.broken = AH_CANCELLED;
    else if (unsettled)
        read_history(a);
    if (ah_recorder_on(&s->recorder))
        set_label(a, unsettled ? "waiting" : "idle");
    ah_text_set(&s->ended, NULL);
}

/* -- the unfinished run ---------------------------------------------------------------------- */

bool ah_lua_stream_resumes(const ah_lua_agent *a)
{
    return a->stream.history.run > 0 && !a->current;
}

/* Returns the content of the message of the user with which the run began; .p NULL: it had none. */
static ah_slice question_of(const ah_transcript *t, size_t first)
{
    for (size_t i = first; i < t->n && t->entry[i].kind != AH_ENTRY_ASSISTANT; i++)
        if (t->entry[i].kind == AH_ENTRY_USER)
            return ah_json_member(ah_text_slice(t->entry[i].json), "content");
    return (ah_slice){NULL, 0};
}

/* Appends the texts of a message's content, one per line. */
static void put_words(ah_slice content, ah_buf *out)
{
    ah_json_reader r = ah_json_read(content);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); content.p && t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice text = ah_json_member(ah_json_skip(&r, t), "text");

        if (text.p && out->len)
            ah_buf_char(out, '\n');
        if (text.p)
            ah_json_string(text, out);
    }
}

/* Fails with AH_USAGE, which names the recorded question. */
static ah_status refuse_other(const ah_lua_agent *a, ah_slice question, const char *what,
                              ah_err *err)
{
    const char *id = a->setup.id->data;
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    put_words(question, &b);
    if (b.len > MAX_SHOWN) {
        b.len = ah_utf8_cut(b.data, MAX_SHOWN);
        ah_buf_str(&b, "...");
    }
    if (ah_buf_ok(&b) && a->once)
        ah_err_set(err, AH_USAGE,
                   "%s: conversation '%s' was begun with another question ('%.*s'): another "
                   "question needs another id",
                   what, id, AH_FMT(ah_buf_slice(&b)));
    else if (ah_buf_ok(&b))
        ah_err_set(err, AH_USAGE,
                   "%s: conversation '%s' has an unfinished run ('%.*s'): agent:run() or "
                   "`agenthost resume` goes on with it, agent:cancel() ends it",
                   what, id, AH_FMT(ah_buf_slice(&b)));
    else
        ah_err_nomem(err);
    ah_buf_clear(&b);
    return err->status;
}

/* The same for ah.run, which may have been begun again without its text since. */
static ah_slice question_of_once(const ah_transcript *t, size_t first)
{
    ah_slice question = question_of(t, first);

    for (size_t i = first < t->n ? first : t->n; i > 0 && !question.p; i--)
        if (t->entry[i - 1].kind == AH_ENTRY_USER)
            question = ah_json_member(ah_text_slice(t->entry[i - 1].json), "content");
    return question;
}

ah_status ah_lua_stream_same(const ah_lua_agent *a, size_t first, const ah_lua_content *said,
                             const char *what, ah_err *err)
{
    ah_slice question = question_of(a->transcript, first);
    ah_text *entry;
    bool same;

    if (!ah_lua_has_content(said))
        return a->once && question.p ? refuse_other(a, question, what, err) : AH_OK;
    if (a->once)
        question = question_of_once(a->transcript, first);
    if (!(entry = ah_lua_content_entry(&a->lua->mem, said, 0)))
        return ah_err_nomem(err);
    entry->len = ah_secrets_redact_json(&a->lua->host->secrets, entry->data, entry->len);
    same = ah_slice_eq(ah_json_member(ah_text_slice(entry), "content"), question);
    ah_text_unref(entry);
    return same ? AH_OK : refuse_other(a, question, what, err);
}

/* Returns when the run must end by its recorded deadline (loop clock, ms); 0: none. */
static int64_t recorded_deadline(const ah_lua_agent *a)
{
    ah_host *host = a->lua->host;
    int64_t at = a->stream.history.deadline;

    return at ? ah_host_now(host) + at - ah_host_wall(host) : 0;
}

void ah_lua_stream_configure(ah_lua_agent *a, ah_run_config *cfg)
{
    int64_t at;

    if (cfg->parent || (!a->stream.bound && a->once))
        return;
    cfg->recorder = &a->stream.recorder;
    if (!a->stream.bound)
        return;
    ah_lua_stream_note(a);
    set_label(a, "running");
    if (!ah_lua_stream_resumes(a))
        return;
    cfg->history = &a->stream.history;
    at = a->stream.recorder.replays ? 0 : recorded_deadline(a);
    if (at && (!cfg->deadline || at < cfg->deadline))
        cfg->deadline = at;
}

/* Pushes the ids of the asks that are open in the unfinished run. */
static void push_asks(lua_State *L, ah_run_history *h)
{
    ah_open_ask at = {0};
    lua_Integer n = 0;

    lua_newtable(L);
    while (ah_run_history_next_ask(h, &at)) {
        ah_lua_push_json(L, ah_json_member(ah_text_slice(at.ask), "ask"));
        lua_rawseti(L, -2, ++n);
    }
}

void ah_lua_stream_push_unfinished(lua_State *L, ah_lua_agent *a)
{
    ah_run_history *h = &a->stream.history;
    ah_buf *b;

    if (!ah_lua_stream_resumes(a)) {
        lua_pushnil(L);
        return;
    }
    lua_createtable(L, 0, 3);
    b = ah_lua_push_buf(L, MAX_RECORD);
    put_words(question_of(a->transcript, h->first), b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    lua_pushlstring(L, b->len ? b->data : "", b->len);
    lua_setfield(L, -3, "question");
    lua_pop(L, 1);
    push_asks(L, h);
    lua_setfield(L, -2, "asks");
    lua_pushnumber(L, (double)h->started / 1000);
    lua_setfield(L, -2, "since");
}

/* Settles the open call as cancelled, and records that. */
static void settle_call(ah_lua_agent *a, size_t i)
{
    ah_transcript *t = a->transcript;
    const ah_run_history *h = &a->stream.history;
    bool begun = i < h->n && h->call[i].started;
    ah_buf b;

    if (t->slot[i].result)
        return;
    ah_transcript_settle(t, i, begun ? UNKNOWN : NOT_BEGUN, ah_host_wall(a->lua->host));
    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_buf_fmt(&b, "{\"call\":%zu,\"result\":", i);
    ah_buf_put(&b, ah_text_slice(t->slot[i].result));
    ah_buf_char(&b, '}');
    put(a, AH_RECORD_SETTLED, &b);
}

/* Records the commit of the turn with the entries that wait for it, and commits it. */
static void commit_turn(ah_lua_agent *a)
{
    ah_lua_stream *s = &a->stream;
    ah_transcript *t = a->transcript;
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_buf_str(&b, "{\"staged\":[");
    for (size_t i = s->recorder.staged; i < t->n_staged; i++) {
        ah_buf_str(&b, i > s->recorder.staged ? "," : "");
        ah_buf_put(&b, ah_text_slice(t->staged[i].json));
    }
    ah_buf_str(&b, "],\"progress\":");
    ah_run_progress_print(&s->history.progress, &b);
    ah_buf_char(&b, '}');
    put(a, AH_RECORD_TURN, &b);
    ah_transcript_commit(t);
    s->recorder.entries = t->n;
    s->recorder.staged = 0;
    s->recorder.answered = false;
}

static void end_run(ah_lua_agent *a)
{
    const ah_run_history *h = &a->stream.history;
    ah_buf b;

    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_buf_fmt(&b,
               "{\"run\":%lld,\"first\":%zu,\"success\":false,\"code\":\"cancelled\","
               "\"message\":\"cancelled by the script\",\"stop\":\"end\",\"progress\":",
               (long long)h->run, h->first);
    ah_run_progress_print(&h->progress, &b);
    ah_buf_char(&b, '}');
    put(a, AH_RECORD_RUN_ENDED, &b);
}

ah_status ah_lua_stream_cancel(ah_lua_agent *a, ah_err *err)
{
    ah_lua_stream *s = &a->stream;
    ah_transcript *t = a->transcript;
    ah_status st = ah_lua_stream_defer(a, err);
    ah_buf b;

    if (st != AH_OK)
        return st;
    ah_buf_init(&b, &a->lua->mem, MAX_RECORD);
    ah_buf_str(&b, "{\"by\":\"script\"}");
    put(a, AH_RECORD_CANCELLED, &b);
    for (size_t i = 0; i < t->n_slots; i++)
        settle_call(a, i);
    if (t->assistant)
        commit_turn(a);
    end_run(a);
    ah_run_history_clear(&s->history);
    set_label(a, "idle");
    ah_lua_stream_note(a);
    return ah_keeper_settle(s->keeper, err);
}

/* -- the run of ah.run ---------------------------------------------------------------------- */

static bool is_tried_again(ah_status code)
{
    return code == AH_PROVIDER || code == AH_HTTP || code == AH_CANCELLED || code == AH_INTERNAL ||
           code == AH_STORE;
}

bool ah_lua_stream_is_done(const ah_lua_agent *a)
{
    ah_slice ended = ah_text_slice(a->stream.ended);

    if (!ended.p || a->stream.history.run)
        return false;
    return ah_slice_is(ah_json_member(ended, "success"), "true") ||
           !is_tried_again(ah_status_from_code(ah_json_inside(ah_json_member(ended, "code"))));
}
