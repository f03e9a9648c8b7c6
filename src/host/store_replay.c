/* Requests: the whole stream is read, from its first record on. Handlers: it is read up to the end
 * of the next turn, whose copy is appended to a store of its own. */
#include "host/store_replay.h"

#include "host/open_store.h"
#include "host/store_asks.h"
#include "journal/rebuild.h"

ah_status ah_open_store_replay(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err)
{
    ah_rebuild r;
    ah_status st = ah_rebuild_init(&r, h->mem, err);

    if (st == AH_OK)
        st = ah_open_store_read(s, conversation, 1, ah_rebuild_add, &r, err);
    if (st == AH_CANCELLED && r.difference.record)
        st = AH_OK;
    if (st == AH_OK)
        ah_rebuild_print(&r, out);
    ah_rebuild_clear(&r);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "the outcome of the replay", err);
    return st;
}

/* -- handlers ---------------------------------------------------------------------------------- */

ah_status ah_replay_turns_init(ah_replay_turns *t, ah_open_store *s, ah_slice conversation,
                               ah_err *err)
{
    const ah_mem *mem = ah_open_store_host(s)->mem;

    *t = (ah_replay_turns){.next = 1, .conversation = ah_text_new(mem, conversation)};
    t->store = ah_open_store_ref(s);
    if (!t->conversation)
        return ah_err_nomem(err);
    return ah_turn_copy_init(&t->copy, mem, err);
}

void ah_replay_turns_clear(ah_replay_turns *t)
{
    if (t->copy.mem)
        ah_turn_copy_clear(&t->copy);
    ah_text_unref(t->conversation);
    ah_open_store_unref(t->store);
    *t = (ah_replay_turns){0};
}

static ah_status add(void *turns, const ah_store_record *r, ah_err *err)
{
    ah_replay_turns *t = turns;

    t->next = r->number + 1;
    return ah_turn_copy_add(&t->copy, r, err);
}

/* An append of the records of a copy. */
typedef struct filling {
    ah_store_append append;
    ah_err err;
    bool done;
} filling;

static void filled(ah_store_append *a, const ah_err *err)
{
    filling *f = (filling *)a;

    f->err = *err;
    f->done = true;
}

static ah_status append(ah_store *e, ah_store_batch *batch, ah_err *err)
{
    filling f = {.append = {.batch = batch, .n = 1, .alone = true, .done = filled}};
    ah_status st = e->vt->hold(e, batch->stream, false, &batch->fence, err);

    if (st != AH_OK)
        return st;
    e->vt->append(e, &f.append);
    while (!f.done) {
        e->vt->wait(e);
        e->vt->poll(e);
    }
    e->vt->release(e, batch->stream);
    if (f.err.status != AH_OK)
        *err = f.err;
    return f.err.status;
}

/* Appends the records of the copy to the stream of the same name. */
static ah_status fill(const ah_replay_turns *t, ah_open_store *to, ah_err *err)
{
    const ah_turn_copy *c = &t->copy;
    ah_store_batch batch = {.stream = ah_text_slice(t->conversation), .n = c->n};
    ah_store_record *record = ah_alloc(c->mem, c->n * sizeof *record);
    ah_status st;

    if (!record)
        return ah_err_nomem(err);
    for (size_t i = 0; i < c->n; i++)
        record[i] = (ah_store_record){.time = c->record[i].time,
                                      .kind = ah_slice_of(ah_record_name(c->record[i].kind)),
                                      .said = ah_text_slice(c->record[i].said),
                                      .kept = ah_text_slice(c->record[i].kept)};
    batch.record = record;
    st = append(ah_open_store_engine(to), &batch, err);
    ah_free(c->mem, record);
    return st;
}

ah_status ah_replay_turns_next(ah_replay_turns *t, ah_open_store **out, ah_buf *calls, ah_err *err)
{
    static const ah_store_options options = {.replays = true, .create = true};
    ah_store *e = ah_open_store_engine(t->store);
    ah_open_store *to = NULL;
    ah_status st = e->vt->read(e, ah_text_slice(t->conversation), t->next, add, t, err);

    *out = NULL;
    if (st == AH_OK && t->next == 1)
        return ah_open_store_unknown(t->store, ah_text_slice(t->conversation), err);
    if (st != AH_CANCELLED)
        return st;
    st = ah_open_store_new(ah_open_store_host(t->store), &options, &to, err);
    if (st == AH_OK && t->copy.given)
        to->given = ah_transcript_ref(t->copy.given);
    if (st == AH_OK)
        st = fill(t, to, err);
    if (st != AH_OK) {
        ah_open_store_unref(to);
        return st;
    }
    ah_turn_copy_print(&t->copy, calls);
    *out = to;
    return AH_OK;
}
