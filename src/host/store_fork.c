/* See store_fork.h. journal/turn_state.h makes the state with which a conversation goes on. */
#include "host/store_fork.h"

#include <stdio.h>

#include "host/store_asks.h"
#include "host/store_restore.h"
#include "journal/dropped.h"
#include "journal/fold_members.h"
#include "journal/turn_state.h"

enum { MAX_OPENED = 1 << 20 /* bytes of the record `opened`, and of the label */ };

/* Appends the member of the base, or the text in its place. */
static void put_member(ah_buf *out, ah_slice opened, const char *name, ah_slice text)
{
    ah_json_add_string(out, name, text);
    if (!text.p)
        ah_json_add(out, name, ah_json_member(opened, name));
}

/* Appends the members of `opened` that name the base and the way to go on. */
static void put_opened(const ah_fork *f, const ah_fold *base, ah_buf *out)
{
    ah_slice opened = ah_text_slice(base->opened);

    put_member(out, opened, "folder", f->folder);
    put_member(out, opened, "script", f->script);
    ah_json_add(out, "agent", ah_json_member(opened, "agent"));
    ah_json_add_name(out, "base");
    ah_buf_char(out, '{');
    ah_json_add_string(out, "stream", f->base);
    ah_json_add_int(out, "number", base->last);
    ah_buf_char(out, '}');
}

/* Sets the label, by which lists find the conversation that goes on from this state. */
static ah_status set_label(ah_keeper *k, const ah_fork *f, const ah_fold *state, ah_err *err)
{
    ah_slice opened = ah_text_slice(state->opened);
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, state->mem, MAX_OPENED);
    ah_buf_char(&b, '{');
    put_member(&b, opened, "folder", f->folder);
    ah_json_add(&b, "agent", ah_json_member(opened, "agent"));
    ah_json_add_string(
        &b, "state",
        ah_slice_of(ah_transcript_wants_answer(state->transcript) ? "running" : "idle"));
    ah_buf_char(&b, '}');
    st = ah_buf_ok(&b) ? ah_keeper_label(k, ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "the label", err);
    ah_buf_clear(&b);
    return st;
}

/* Writes the state as a checkpoint of a stream with that record `opened`; and the files that are
 * put back then (.n 0: none). */
static ah_status put_state(ah_keeper *k, ah_fold *state, ah_text *opened, ah_slice files,
                           ah_slice kept, ah_err *err)
{
    ah_record_sink sink = ah_keeper_sink(k);
    ah_status st = AH_OK;
    ah_buf b;

    ah_text_set(&state->opened, ah_text_ref(opened));
    ah_buf_init(&b, state->mem, AH_STORE_MAX_RECORD);
    ah_fold_print_checkpoint(state, false, &b);
    if (ah_buf_ok(&b))
        sink.put(sink.ud, AH_RECORD_CHECKPOINT, ah_buf_slice(&b), (ah_slice){NULL, 0});
    else
        st = ah_buf_error(&b, "the state of the conversation", err);
    if (st == AH_OK && files.n)
        sink.put(sink.ud, AH_RECORD_RESTORING, files, kept);
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
        st = put_state(k, base, fold.opened, (ah_slice){NULL, 0}, (ah_slice){NULL, 0}, err);
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

/* All that a rewind reads before it writes. */
typedef struct plan {
    const ah_rewind *rewind;
    ah_host *host;
    ah_turn_state state; /* with which the conversation goes on */
    ah_dropped dropped;
    ah_turn_changes changes;
    ah_restore restore; /* without `files`: empty */
    ah_buf said, kept;  /* of the record `restoring` */
    ah_buf name;        /* of the conversation, as JSON */
    ah_buf shared;      /* named streams that may have been written, each with a newline */
} plan;

static void clear_plan(plan *p)
{
    ah_buf_clear(&p->said);
    ah_buf_clear(&p->kept);
    ah_buf_clear(&p->name);
    ah_buf_clear(&p->shared);
    ah_restore_clear(&p->restore);
    ah_dropped_clear(&p->dropped);
    ah_turn_changes_clear(&p->changes);
    ah_turn_state_clear(&p->state);
}

static ah_status add_record(void *ud, const ah_store_record *r, ah_err *err)
{
    plan *p = ud;
    ah_status st = ah_dropped_add(&p->dropped, r, err);

    return st == AH_OK ? ah_turn_changes_add(&p->changes, r, err) : st;
}

static ah_status read_plan(plan *p, ah_err *err)
{
    const ah_rewind *r = p->rewind;
    ah_store *e = ah_open_store_engine(r->store);
    ah_status st = read_turns(r->store, r->conversation, &p->state, err);

    if (st == AH_OK)
        st = ah_dropped_init(&p->dropped, p->host->mem, p->state.fold.last, err);
    if (st == AH_OK)
        st = ah_turn_changes_init_after(&p->changes, p->host->mem, p->state.fold.last, err);
    if (st == AH_OK)
        st = e->vt->read(e, r->conversation, 1, add_record, p, err);
    if (st == AH_OK)
        st = ah_dropped_end(&p->dropped, err);
    if (st == AH_OK)
        st = ah_turn_changes_end(&p->changes, err);
    if (st == AH_OK && r->files)
        st = ah_restore_init(&p->restore, p->host, &p->changes, false, r->force, err);
    if (st == AH_OK && r->files && !r->force && (!r->dry || r->check))
        st = ah_restore_check(&p->restore, err);
    return st;
}

/* Appends entities whose state at the turn is not known. */
static void print_unknown(const ah_turn_changes *c, size_t *n, ah_buf *out)
{
    for (size_t i = 0; i < c->entities.n; i++) {
        const ah_turn_change *e = &c->entities.item[i];

        if (e->state[0] || !e->state[1])
            continue;
        ah_buf_str(out, (*n)++ ? ",{\"kind\":\"entity\"" : "{\"kind\":\"entity\"");
        ah_json_add_string(out, "class", ah_text_slice(e->name));
        ah_json_add_string(out, "id", ah_text_slice(e->id));
        ah_buf_str(out, ",\"why\":\"no earlier state of it is recorded\"}");
    }
}

/* -- named streams -- */

/* Notes a stream that was written since the turn. */
static ah_status note_shared(void *ud, const ah_store_stream *s, ah_err *err)
{
    plan *p = ud;

    if (s->time < p->state.fold.time || !ah_utf8_valid(s->name) ||
        memchr(s->name.p, '\n', s->name.n) || !memchr(s->name.p, '/', s->name.n))
        return AH_OK;
    ah_buf_put(&p->shared, s->name);
    ah_buf_char(&p->shared, '\n');
    return ah_buf_ok(&p->shared) ? AH_OK : ah_buf_error(&p->shared, "the names of streams", err);
}

static ah_status find_shared(plan *p, ah_err *err)
{
    ah_store *e = ah_open_store_engine(p->rewind->store);
    ah_status st = AH_OK;
    char prefix[16];

    ah_json_put_string(&p->name, p->rewind->conversation);
    if (!ah_buf_ok(&p->name))
        return ah_err_nomem(err);
    for (int k = AH_STREAM_SESSION; k <= AH_STREAM_FILES && st == AH_OK; k++) {
        snprintf(prefix, sizeof prefix, "%s/", ah_stream_kind_name((ah_stream_kind)k));
        st = e->vt->list(e, ah_slice_of(prefix), false, note_shared, p, err);
    }
    return st;
}

/* The writers of a named stream. */
typedef struct shared {
    const plan *plan;
    bool written, others; /* by turns that are dropped; and since then by others */
} shared;

static ah_status look_at(void *ud, const ah_store_record *r, ah_err *err)
{
    shared *s = ud;
    const ah_dropped *d = &s->plan->dropped;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_slice by;
    int64_t at;

    (void)err;
    if ((kind != AH_RECORD_SESSION && kind != AH_RECORD_SPENT && kind != AH_RECORD_WRITTEN) ||
        ah_json_check(s->plan->host->mem, r->said, AH_JSON_MAX_DEPTH, NULL) != AH_OK)
        return AH_OK;
    by = ah_json_member(r->said, "by");
    at = ah_member_count(ah_json_member(r->said, "at"));
    if (!by.p || !ah_slice_eq(by, ah_buf_slice(&s->plan->name)))
        s->others = s->written;
    else if (at > d->after && ah_dropped_counts(d, at))
        s->written = true;
    return AH_OK;
}

/* Appends the stream, if the turns have written it. */
static ah_status print_stream(const plan *p, ah_slice name, size_t *n, ah_buf *out, ah_err *err)
{
    ah_store *e = ah_open_store_engine(p->rewind->store);
    shared s = {.plan = p};
    ah_status st = e->vt->read(e, name, 1, look_at, &s, err);
    size_t kind = (size_t)((const char *)memchr(name.p, '/', name.n) - name.p);

    if (st != AH_OK || !s.written)
        return st;
    ah_buf_fmt(out, "%s{\"kind\":\"%.*s\"", (*n)++ ? "," : "", (int)kind, name.p);
    ah_json_add_string(out, "name", (ah_slice){name.p + kind + 1, name.n - kind - 1});
    ah_buf_fmt(out, ",\"others\":%s,\"why\":\"it is shared%s\"}", s.others ? "true" : "false",
               s.others ? ", and others have written it since" : "");
    return AH_OK;
}

static ah_status print_streams(const plan *p, size_t *n, ah_buf *out, ah_err *err)
{
    ah_slice rest = ah_buf_slice(&p->shared);
    ah_status st = AH_OK;

    while (rest.n && st == AH_OK) {
        size_t end = (size_t)((const char *)memchr(rest.p, '\n', rest.n) - rest.p);

        st = print_stream(p, (ah_slice){rest.p, end}, n, out, err);
        rest.p += end + 1;
        rest.n -= end + 1;
    }
    return st;
}

/* Appends files in memory, which stay as they are. */
static void print_shared(const ah_turn_changes *c, size_t *n, ah_buf *out)
{
    for (size_t i = 0; i < c->files.n; i++) {
        const ah_turn_change *f = &c->files.item[i];

        if (ah_turn_change_is_outside(f) || ah_turn_change_is_none(f))
            continue;
        ah_buf_fmt(out, "%s{\"kind\":\"file\",\"filesystem\":", (*n)++ ? "," : "");
        ah_json_put_string(out, ah_text_slice(f->place));
        ah_buf_str(out, ",\"path\":");
        ah_json_put_string(out, ah_text_slice(f->name));
        ah_buf_str(out, ",\"why\":\"files in memory are shared\"}");
    }
}

static ah_status print_plan(const plan *p, ah_buf *out, ah_err *err)
{
    ah_status st = ah_dropped_print(&p->dropped, p->rewind->turn, out, err);
    ah_change_list l;
    size_t left = 0;

    if (st != AH_OK)
        return st;
    ah_buf_str(out, ",\"changes\":");
    ah_change_list_begin(&l, p->host->mem, out);
    ah_restore_show(&p->restore, &l);
    ah_turn_changes_print_back(&p->changes, &l);
    ah_change_list_end(&l);
    ah_buf_str(out, ",\"stays\":[");
    ah_restore_print_left(&p->restore, &left, out);
    print_shared(&p->changes, &left, out);
    ah_dropped_print_stays(&p->dropped, &left, out);
    print_unknown(&p->changes, &left, out);
    st = print_streams(p, &left, out, err);
    ah_buf_str(out, "]}");
    if (st != AH_OK)
        return st;
    return ah_buf_ok(out) ? AH_OK : ah_buf_error(out, "what is changed", err);
}

static ah_status check_now(const plan *p, const ah_fold *now, ah_err *err)
{
    const ah_fold *then = &p->dropped.fold;

    if (now->applying || now->restoring)
        return ah_err_set(err, AH_CONFLICT,
                          "the program ended while it changed files: open the conversation first, "
                          "which puts them in order");
    if (now->runs != then->runs || now->transcript->n != then->transcript->n)
        return ah_err_set(err, AH_CONFLICT,
                          "the conversation has gone on meanwhile: look at it again and repeat");
    return AH_OK;
}

/* Records that the stream goes on from the state. Numbers of runs and asks only grow. */
static ah_status put_rewound(ah_keeper *k, const ah_fold *now, plan *p, ah_err *err)
{
    ah_record_sink sink = ah_keeper_sink(k);
    ah_fold *state = &p->state.fold;
    char said[64];

    snprintf(said, sizeof said, "{\"to\":%lld}", (long long)state->last);
    state->runs = now->runs;
    state->asks = now->asks;
    sink.put(sink.ud, AH_RECORD_REWOUND, ah_slice_of(said), (ah_slice){NULL, 0});
    return put_state(k, state, now->opened, ah_buf_slice(&p->said), ah_buf_slice(&p->kept), err);
}

/* Puts the files in place that a record `restoring` has announced. */
static ah_status put_files(ah_keeper *k, plan *p, ah_err *err)
{
    ah_record_sink sink = ah_keeper_sink(k);
    ah_status st = ah_restore_commit(&p->restore, err);

    if (st != AH_OK)
        return st;
    sink.put(sink.ud, AH_RECORD_RESTORED, ah_slice_of("{}"), (ah_slice){NULL, 0});
    return ah_keeper_settle(k, err);
}

static ah_status go_back(plan *p, ah_err *err)
{
    const ah_rewind *r = p->rewind;
    ah_stream_name stream = {.name = r->conversation};
    ah_fork as = {.base = r->conversation};
    ah_keeper *k = NULL;
    ah_err ignored;
    ah_fold now;
    ah_status st = ah_keeper_open(r->store, &stream, r->take, &now, &k, err);

    if (st != AH_OK)
        return st;
    st = check_now(p, &now, err);
    if (st == AH_OK)
        st = ah_restore_prepare(&p->restore, &p->said, &p->kept, err);
    if (st == AH_OK)
        st = put_rewound(k, &now, p, err);
    if (st == AH_OK && p->said.len)
        st = put_files(k, p, err);
    if (st == AH_OK) /* a label that is missing or old loses no record */
        (void)set_label(k, &as, &p->state.fold, &ignored);
    ah_fold_clear(&now);
    ah_keeper_close(k);
    return st;
}

ah_status ah_open_store_rewind(ah_host *h, const ah_rewind *r, ah_buf *out, ah_err *err)
{
    plan p = {.rewind = r, .host = h};
    ah_status st = ah_turn_state_init(&p.state, h->mem, r->turn, err);

    if (st != AH_OK)
        return st;
    p.changes.mem = h->mem;
    ah_buf_init(&p.said, h->mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&p.kept, h->mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&p.name, h->mem, MAX_OPENED);
    ah_buf_init(&p.shared, h->mem, AH_STORE_MAX_RECORD);
    st = read_plan(&p, err);
    if (st == AH_OK)
        st = find_shared(&p, err);
    if (st == AH_OK)
        st = print_plan(&p, out, err);
    if (st == AH_OK && !r->dry)
        st = go_back(&p, err);
    clear_plan(&p);
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
