/* See store_fork.h. journal/turn_state.h makes the state with which a conversation goes on. */
#include "host/store_fork.h"

#include <stdio.h>

#include "host/store_asks.h"
#include "journal/dropped.h"
#include "journal/turn_state.h"

enum { MAX_OPENED = 1 << 20 /* bytes of the record `opened`, and of the label */ };

/* Appends the member of the base, or the text in its place. */
static void put_member(ah_buf *out, ah_slice opened, const char *name, ah_slice text)
{
    ah_slice value = ah_json_member(opened, name);

    if (!text.p && !value.p)
        return;
    ah_buf_fmt(out, "\"%s\":", name);
    if (text.p)
        ah_json_put_string(out, text);
    else
        ah_buf_put(out, value);
    ah_buf_char(out, ',');
}

/* Appends the members of `opened` that name the base and the way to go on. */
static void put_opened(const ah_fork *f, const ah_fold *base, ah_buf *out)
{
    static const ah_slice none = {NULL, 0};
    ah_slice opened = ah_text_slice(base->opened);

    put_member(out, opened, "folder", f->folder);
    put_member(out, opened, "script", f->script);
    put_member(out, opened, "agent", none);
    ah_buf_str(out, "\"base\":{\"stream\":");
    ah_json_put_string(out, f->base);
    ah_buf_fmt(out, ",\"number\":%lld}", (long long)base->last);
}

/* Sets the label, by which lists find the fork. */
static ah_status set_label(ah_keeper *k, const ah_fork *f, const ah_fold *base, ah_err *err)
{
    static const ah_slice none = {NULL, 0};
    ah_slice opened = ah_text_slice(base->opened);
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, base->mem, MAX_OPENED);
    ah_buf_char(&b, '{');
    put_member(&b, opened, "folder", f->folder);
    put_member(&b, opened, "agent", none);
    ah_buf_str(&b, "\"state\":\"idle\"}");
    st = ah_buf_ok(&b) ? ah_keeper_label(k, ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "the label", err);
    ah_buf_clear(&b);
    return st;
}

/* Writes the state as a checkpoint of a stream with that record `opened`. */
static ah_status put_state(ah_keeper *k, ah_fold *state, ah_text *opened, ah_err *err)
{
    ah_record_sink sink = ah_keeper_sink(k);
    ah_status st = AH_OK;
    ah_buf b;

    ah_text_set(&state->opened, ah_text_ref(opened));
    ah_buf_init(&b, state->mem, AH_STORE_MAX_RECORD);
    ah_fold_print_checkpoint(state, &b);
    if (ah_buf_ok(&b))
        sink.put(sink.ud, AH_RECORD_CHECKPOINT, ah_buf_slice(&b), (ah_slice){NULL, 0});
    else
        st = ah_buf_error(&b, "the state of the conversation", err);
    ah_buf_clear(&b);
    return st == AH_OK ? ah_keeper_settle(k, err) : st;
}

/* Opens the stream of the fork, and fills it. */
static ah_status begin(const ah_fork *f, ah_fold *base, ah_slice opened, ah_err *err)
{
    ah_stream_name stream = {.name = f->id, .opened = opened};
    ah_keeper *k = NULL;
    ah_fold fold;
    ah_status st = ah_keeper_open(f->to, &stream, false, &fold, &k, err);

    if (st != AH_OK)
        return st;
    if (fold.last > 1)
        st = ah_err_set(err, AH_CONFLICT,
                        "the store has a conversation '%.*s' already: give another id",
                        AH_FMT(f->id));
    if (st == AH_OK)
        st = set_label(k, f, base, err);
    if (st == AH_OK)
        st = put_state(k, base, fold.opened, err);
    ah_fold_clear(&fold);
    ah_keeper_close(k);
    return st;
}

static ah_status read_turns(ah_open_store *from, ah_slice conversation, ah_turn_state *s,
                            ah_err *err)
{
    ah_status st = ah_open_store_read(from, conversation, 1, ah_turn_state_add, s, err);

    return st == AH_OK || st == AH_CANCELLED ? ah_turn_state_end(s, err) : st;
}

ah_status ah_open_store_fork(ah_host *h, const ah_fork *f, ah_err *err)
{
    ah_turn_state s;
    ah_status st = ah_turn_state_init(&s, h->mem, f->turn, err);
    ah_buf b;

    if (st != AH_OK)
        return st;
    ah_buf_init(&b, h->mem, MAX_OPENED);
    if ((st = read_turns(f->from, f->base, &s, err)) == AH_OK) {
        put_opened(f, &s.fold, &b);
        st = ah_buf_ok(&b) ? begin(f, &s.fold, ah_buf_slice(&b), err)
                           : ah_buf_error(&b, "the record `opened`", err);
    }
    ah_buf_clear(&b);
    ah_turn_state_clear(&s);
    return st;
}

/* -- rewinding -----------------------------------------------------------------------------------
 */

static ah_status read_dropped(ah_open_store *s, ah_slice conversation, ah_dropped *d, ah_err *err)
{
    ah_store *e = ah_open_store_engine(s);

    return e->vt->read(e, conversation, 1, ah_dropped_add, d, err);
}

/* Records that the stream goes on from the state. Numbers of runs and asks only grow. */
static ah_status put_rewound(ah_keeper *k, const ah_fold *now, ah_fold *state, ah_err *err)
{
    ah_record_sink sink = ah_keeper_sink(k);
    char said[64];

    if (now->applying)
        return ah_err_set(err, AH_CONFLICT,
                          "the program ended while it changed files: open the conversation first, "
                          "which puts them in order");
    snprintf(said, sizeof said, "{\"to\":%lld}", (long long)state->last);
    state->runs = now->runs;
    state->asks = now->asks;
    sink.put(sink.ud, AH_RECORD_REWOUND, ah_slice_of(said), (ah_slice){NULL, 0});
    return put_state(k, state, now->opened, err);
}

static ah_status go_back(const ah_rewind *r, ah_fold *state, ah_err *err)
{
    ah_stream_name stream = {.name = r->conversation};
    ah_fork as = {.base = r->conversation};
    ah_keeper *k = NULL;
    ah_err ignored;
    ah_fold now;
    ah_status st = ah_keeper_open(r->store, &stream, r->take, &now, &k, err);

    if (st != AH_OK)
        return st;
    st = put_rewound(k, &now, state, err);
    if (st == AH_OK) /* a label that is missing or old loses no record */
        (void)set_label(k, &as, &now, &ignored);
    ah_fold_clear(&now);
    ah_keeper_close(k);
    return st;
}

ah_status ah_open_store_rewind(ah_host *h, const ah_rewind *r, ah_buf *out, ah_err *err)
{
    ah_turn_state s;
    ah_dropped d = {0};
    ah_status st = ah_turn_state_init(&s, h->mem, r->turn, err);

    if (st != AH_OK)
        return st;
    if ((st = read_turns(r->store, r->conversation, &s, err)) == AH_OK)
        st = ah_dropped_init(&d, h->mem, s.fold.last, err);
    if (st == AH_OK)
        st = read_dropped(r->store, r->conversation, &d, err);
    if (st == AH_OK)
        st = ah_dropped_print(&d, r->turn, out, err);
    if (st == AH_OK && !r->dry)
        st = go_back(r, &s.fold, err);
    ah_dropped_clear(&d);
    ah_turn_state_clear(&s);
    return st;
}

static ah_status count_turn(void *ud, const ah_store_record *r, ah_err *err)
{
    (void)err;
    *(int64_t *)ud += ah_slice_is(r->kind, ah_record_name(AH_RECORD_TURN));
    return AH_OK;
}

ah_status ah_open_store_turns(ah_open_store *s, ah_slice conversation, int64_t *turns, ah_err *err)
{
    *turns = 0;
    return ah_open_store_read(s, conversation, 1, count_turn, turns, err);
}
