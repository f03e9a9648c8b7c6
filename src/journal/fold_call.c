/* The calls of the pending turn: what began, what it recorded, and how it was settled. */
#include "journal/fold_parts.h"

/* -- helpers ------------------------------------------------------------------------------- */

static ah_status take_text(const ah_fold *f, ah_text **slot, ah_slice s, ah_err *err)
{
    ah_text *t = s.p ? ah_text_new(f->mem, s) : NULL;

    if (s.p && !t)
        return ah_err_nomem(err);
    ah_text_set(slot, t);
    return AH_OK;
}

/* Returns the index of a call of the pending turn. */
static ah_status find_call(const ah_fold *f, ah_slice value, size_t *at, ah_err *err)
{
    int64_t call = ah_member_count(value);

    if (!f->transcript->assistant)
        return ah_err_set(err, AH_STORE, "no turn is pending");
    if (call >= (int64_t)f->history.n)
        return ah_err_set(err, AH_STORE, "call %lld is out of range: the turn has %zu calls",
                          (long long)call, f->history.n);
    *at = (size_t)call;
    return AH_OK;
}

/* Returns a call that is not settled. */
static ah_status find_open(const ah_fold *f, ah_slice value, size_t *at, ah_err *err)
{
    ah_status st = find_call(f, value, at, err);

    if (st == AH_OK && (f->transcript->slot[*at].result || f->history.call[*at].settled))
        st = ah_err_set(err, AH_STORE, "call %zu is settled", *at);
    return st;
}

/* Returns a call that has begun, and has not finished. */
static ah_status find_begun(const ah_fold *f, ah_slice value, size_t *at, ah_err *err)
{
    ah_status st = find_open(f, value, at, err);

    if (st == AH_OK && !f->history.call[*at].started)
        st = ah_err_set(err, AH_STORE, "call %zu has not started", *at);
    if (st == AH_OK && f->history.call[*at].finished)
        st = ah_err_set(err, AH_STORE, "call %zu has finished", *at);
    return st;
}

ah_status ah_fold_check_kept(const ah_store_record *r, ah_err *err)
{
    if (r->kept.p && ah_json_kind_of(r->kept) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_STORE, "what is kept must be an object");
    return AH_OK;
}

/* -- handlers and steps -------------------------------------------------------------------- */

/* An ask about the loss of a call is about its handler as it had begun then. */
static void forget_loss(ah_call_history *c)
{
    if (!c->ask || !ah_json_string_is(ah_json_member(ah_text_slice(c->ask), "kind"), "lost"))
        return;
    ah_text_set(&c->ask, NULL);
    ah_text_set(&c->response, NULL);
}

ah_status ah_fold_call_started(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    size_t at = 0;
    ah_status st = find_open(f, v[AH_AT_CALL_STARTED_call], &at, err);
    ah_call_history *c;

    if (st == AH_OK && f->history.call[at].finished)
        st = ah_err_set(err, AH_STORE, "call %zu has finished", at);
    if (st == AH_OK)
        st = ah_member_expect(f->mem, v[AH_AT_CALL_STARTED_id],
                              ah_text_slice(f->transcript->slot[at].id), "id", err);
    if (st == AH_OK)
        st = ah_fold_check_kept(r, err);
    if (st != AH_OK)
        return st;
    c = &f->history.call[at];
    f->history.parked = false;
    forget_loss(c);
    st = take_text(f, &c->started, r->said, err);
    return st == AH_OK ? take_text(f, &c->arguments, r->kept, err) : st;
}

/* Returns the step without a result, which is added if there is none. */
static ah_status find_step(ah_fold *f, ah_slice call, ah_slice key, ah_step_history **out,
                           ah_err *err)
{
    size_t at = 0;
    ah_text *text = NULL;
    ah_step_history *s = NULL;
    ah_status st = find_begun(f, call, &at, err);

    if (st == AH_OK)
        st = ah_member_text(f->mem, key, &text, err);
    if (st == AH_OK)
        s = ah_call_history_step(&f->history.call[at], ah_text_slice(text));
    if (s && s->said)
        st = ah_err_set(err, AH_STORE, "the step has a result");
    else if (st == AH_OK && !s &&
             !(s = ah_call_history_add(f->mem, &f->history.call[at], ah_text_slice(text))))
        st = ah_err_nomem(err);
    ah_text_unref(text);
    *out = s;
    return st;
}

ah_status ah_fold_step_started(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_step_history *s;
    ah_status st = find_step(f, v[AH_AT_STEP_STARTED_call], v[AH_AT_STEP_STARTED_step], &s, err);

    f->history.parked = false;
    return st == AH_OK ? take_text(f, &s->start, r->said, err) : st;
}

ah_status ah_fold_step(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_step_history *s;
    ah_status st = find_step(f, v[AH_AT_STEP_call], v[AH_AT_STEP_step], &s, err);

    if (st == AH_OK)
        st = take_text(f, &s->said, r->said, err);
    if (st == AH_OK)
        st = take_text(f, &s->kept, r->kept, err);
    f->history.parked = false;
    return st;
}

ah_status ah_fold_call_finished(ah_fold *f, const ah_store_record *r, const ah_slice *v,
                                ah_err *err)
{
    size_t at = 0;
    ah_status st = find_begun(f, v[AH_AT_CALL_FINISHED_call], &at, err);

    if (st == AH_OK)
        st = ah_fold_check_kept(r, err);
    if (st == AH_OK)
        st = take_text(f, &f->history.call[at].finished, r->said, err);
    if (st == AH_OK)
        st = take_text(f, &f->history.call[at].staged, r->kept, err);
    f->history.parked = false;
    return st;
}

/* -- asks ------------------------------------------------------------------------------------ */

static ah_slice ask_name(const void *owner, size_t at)
{
    return ah_text_slice(((const ah_fold *)owner)->ask[at].id);
}

void ah_fold_clear_asks(ah_fold *f)
{
    for (size_t i = 0; i < f->n_asks; i++) {
        ah_text_unref(f->ask[i].id);
        ah_text_unref(f->ask[i].ask);
        ah_text_unref(f->ask[i].kept);
        ah_text_unref(f->ask[i].closed);
    }
    ah_free(f->mem, f->ask);
    ah_index_clear(&f->asked);
    f->ask = NULL;
    f->n_asks = f->cap_asks = 0;
}

/* The fold may have moved since the index was made. */
static ah_index *asked(ah_fold *f)
{
    f->asked.mem = f->mem;
    f->asked.name = ask_name;
    f->asked.owner = f;
    return &f->asked;
}

const ah_fold_ask *ah_fold_find_ask(const ah_fold *f, ah_slice id)
{
    ah_index x = f->asked;
    uint32_t at;

    x.owner = f;
    at = ah_index_find(&x, id);
    return at == AH_INDEX_NONE ? NULL : &f->ask[at];
}

bool ah_fold_is_open(const ah_fold *f, const ah_fold_ask *ask)
{
    return !ask->closed && !f->transcript->slot[ask->call].result;
}

/* Takes id. */
static ah_status add_ask(ah_fold *f, ah_text *id, size_t call, const ah_store_record *r,
                         ah_err *err)
{
    ah_fold_ask *a = ah_grow(f->mem, f->ask, &f->cap_asks, f->n_asks + 1, sizeof *a);
    ah_text *ask = a ? ah_text_new(f->mem, r->said) : NULL;
    ah_text *kept = r->kept.p ? ah_text_new(f->mem, r->kept) : NULL;

    if (a)
        f->ask = a;
    if (!ask || (r->kept.p && !kept) || !ah_index_reserve(asked(f), 1, f->n_asks)) {
        ah_text_unref(id);
        ah_text_unref(ask);
        ah_text_unref(kept);
        return ah_err_nomem(err);
    }
    a[f->n_asks++] = (ah_fold_ask){.id = id, .call = call, .ask = ask, .kept = kept};
    ah_index_put(asked(f), ah_text_slice(id), f->n_asks - 1);
    f->asks++;
    return AH_OK;
}

/* The last ask belongs to a step. */
static ah_status ask_in_step(ah_fold *f, const ah_slice *v, ah_err *err)
{
    ah_step_history *s;
    ah_status st = find_step(f, v[AH_AT_ASK_call], v[AH_AT_ASK_step], &s, err);

    if (st != AH_OK)
        return st;
    ah_text_set(&s->ask, ah_text_ref(f->ask[f->n_asks - 1].ask));
    ah_text_set(&s->response, NULL);
    return AH_OK;
}

ah_status ah_fold_ask_opened(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    size_t at = 0;
    ah_text *id = NULL;
    ah_status st = find_open(f, v[AH_AT_ASK_call], &at, err);

    if (st == AH_OK)
        st = ah_fold_check_kept(r, err);
    if (st == AH_OK)
        st = ah_member_text(f->mem, v[AH_AT_ASK_ask], &id, err);
    if (st == AH_OK && ah_fold_find_ask(f, ah_text_slice(id))) {
        ah_text_unref(id);
        return ah_err_set(err, AH_STORE, "there is an ask of this id");
    }
    if (st == AH_OK)
        st = add_ask(f, id, at, r, err);
    if (st == AH_OK && !ah_json_string_is(v[AH_AT_ASK_kind], "question")) {
        ah_text_set(&f->history.call[at].ask, ah_text_ref(f->ask[f->n_asks - 1].ask));
        ah_text_set(&f->history.call[at].response, NULL);
    }
    if (st == AH_OK && v[AH_AT_ASK_step].p)
        st = ask_in_step(f, v, err);
    return st;
}

/* Returns an open ask. */
static ah_status find_ask(const ah_fold *f, ah_slice value, ah_fold_ask **out, ah_err *err)
{
    ah_text *id = NULL;
    ah_status st = ah_member_text(f->mem, value, &id, err);
    const ah_fold_ask *a = NULL;

    if (st == AH_OK && (!(a = ah_fold_find_ask(f, ah_text_slice(id))) || !ah_fold_is_open(f, a)))
        st = ah_err_set(err, AH_STORE, a ? "the ask is closed" : "there is no such ask");
    ah_text_unref(id);
    *out = a ? &f->ask[a - f->ask] : NULL;
    return st;
}

ah_status ah_fold_ask_closed(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_fold_ask *a;
    ah_status st = find_ask(f, v[AH_AT_ASK_CLOSED_ask], &a, err);

    if (st == AH_OK)
        st = take_text(f, &a->closed, r->said, err);
    if (st == AH_OK && f->history.call[a->call].ask == a->ask)
        ah_text_set(&f->history.call[a->call].response, ah_text_ref(a->closed));
    for (size_t i = 0; st == AH_OK && i < f->history.call[a->call].n_steps; i++)
        if (f->history.call[a->call].step[i].ask == a->ask)
            ah_text_set(&f->history.call[a->call].step[i].response, ah_text_ref(a->closed));
    f->history.parked = false;
    return st;
}

ah_status ah_fold_parked(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_items it = ah_items_of(v[AH_AT_PARKED_asks]);
    ah_status st = ah_fold_in_run(f, false, err);
    size_t n = 0;
    ah_fold_ask *a;

    (void)r;
    for (; st == AH_OK && ah_items_next(&it); n++) {
        if (ah_json_kind_of(it.value) != AH_JSON_STRING)
            return ah_err_set(err, AH_STORE, "its `asks` must be a list of strings");
        st = find_ask(f, it.value, &a, err);
    }
    if (st == AH_OK && n == 0)
        return ah_err_set(err, AH_STORE, "it waits for no ask");
    f->history.parked = true;
    return st;
}

/* -- results ----------------------------------------------------------------------------------- */

/* Fills the slot of the call with the result, or only checks it. */
static ah_status fill(ah_fold *f, size_t at, ah_slice result, bool look, ah_err *err)
{
    ah_transcript *t = f->transcript;
    ah_entry e = {.kind = AH_ENTRY_KINDS};
    ah_status st = ah_entry_read(&f->reader, result, t->n + 1 + at, &e, err);

    if (st == AH_OK && e.kind != AH_ENTRY_TOOL_RESULT)
        st = ah_err_set(err, AH_STORE, "its result is not of the type `tool_result`");
    if (st == AH_OK)
        st = ah_member_expect(f->mem, ah_json_member(result, "id"), ah_text_slice(t->slot[at].id),
                              "result's id", err);
    if (st == AH_OK && !look)
        ah_transcript_fill(t, at, e.json);
    else
        ah_text_unref(e.json);
    return st;
}

/* Makes what the record `settled` says; v has its members. */
static ah_status settle(ah_fold *f, size_t at, const ah_slice *v, bool look, ah_err *err)
{
    ah_status st = fill(f, at, v[AH_AT_SETTLED_result], look, err);

    if (st == AH_OK)
        st = ah_fold_stage_all(f, v[AH_AT_SETTLED_staged], look, err);
    if (st == AH_OK)
        st = ah_fold_change(f, v[AH_AT_SETTLED_slices], v[AH_AT_SETTLED_entities], look, err);
    return st;
}

static ah_status check_files(ah_slice files, size_t *n, ah_err *err)
{
    static const ah_member members[] = {{"root", AH_MEMBER_STRING, true},
                                        {"path", AH_MEMBER_STRING, true},
                                        {"before", AH_MEMBER_STRING, false},
                                        {"after", AH_MEMBER_STRING, false},
                                        {NULL, AH_MEMBER_ANY, false}};
    ah_items it = ah_items_of(files);
    ah_status st = AH_OK;
    ah_slice v[4];

    for (*n = 0; st == AH_OK && ah_items_next(&it); ++*n)
        st = ah_members_read(it.value, members, v, err);
    return st;
}

ah_status ah_fold_settled(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    size_t at = 0, files = 0;
    ah_status st = find_open(f, v[AH_AT_SETTLED_call], &at, err);

    if (st == AH_OK)
        st = ah_fold_at_rest(f, err);
    if (st == AH_OK)
        st = check_files(v[AH_AT_SETTLED_files], &files, err);
    if (st == AH_OK)
        st = settle(f, at, v, files > 0, err);
    if (st == AH_OK && files) {
        st = take_text(f, &f->history.call[at].settled, r->said, err);
        f->applying = at + 1;
    }
    f->history.parked = false;
    return st;
}

/* Returns the call whose files are being applied, which must be this one. */
static ah_status find_applying(const ah_fold *f, ah_slice value, size_t *at, ah_err *err)
{
    ah_status st = find_call(f, value, at, err);

    if (st == AH_OK && f->applying != *at + 1)
        st = ah_err_set(err, AH_STORE, "no files of call %zu are being applied", *at);
    return st;
}

ah_status ah_fold_applied(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_slice settled[AH_MEMBERS_MAX];
    size_t at = 0;
    ah_status st = find_applying(f, v[AH_AT_APPLIED_call], &at, err);

    (void)r;
    if (st == AH_OK)
        st = ah_members_read(ah_text_slice(f->history.call[at].settled),
                             ah_members_of(AH_RECORD_SETTLED), settled, err);
    if (st == AH_OK)
        st = settle(f, at, settled, false, err);
    if (st != AH_OK)
        return st;
    ah_text_set(&f->history.call[at].settled, NULL);
    f->applying = 0;
    return AH_OK;
}

/* The call is to be settled once more, by its record `call_finished`. */
static ah_status settle_again(ah_fold *f, size_t at, ah_err *err)
{
    ah_call_history *c = &f->history.call[at];

    if (!c->finished || !c->staged)
        return ah_err_set(err, AH_STORE, "call %zu has staged nothing that can be settled again",
                          at);
    if (!c->again) /* the first one names all folders */
        ah_text_set(&c->again, ah_text_ref(c->settled));
    return AH_OK;
}

ah_status ah_fold_apply_failed(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    size_t at = 0;
    ah_status st = find_applying(f, v[AH_AT_APPLY_FAILED_call], &at, err);

    (void)r;
    if (st == AH_OK && v[AH_AT_APPLY_FAILED_result].p)
        st = fill(f, at, v[AH_AT_APPLY_FAILED_result], false, err);
    else if (st == AH_OK)
        st = settle_again(f, at, err);
    if (st != AH_OK)
        return st;
    ah_text_set(&f->history.call[at].settled, NULL);
    f->applying = 0;
    return AH_OK;
}

/* -- files that a rewind puts back --------------------------------------------------------------
 */

ah_status ah_fold_restoring(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    size_t files = 0;
    ah_status st = ah_fold_between(f, err);

    if (st == AH_OK)
        st = ah_fold_at_rest(f, err);
    if (st == AH_OK)
        st = check_files(v[AH_AT_RESTORING_files], &files, err);
    if (st == AH_OK && f->history.run)
        st = ah_err_set(err, AH_STORE, "a run is unfinished");
    if (st == AH_OK && r->kept.p)
        st = take_text(f, &f->restoring_kept, r->kept, err);
    return st == AH_OK ? take_text(f, &f->restoring, r->said, err) : st;
}

ah_status ah_fold_restored(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)r;
    (void)v;
    if (!f->restoring)
        return ah_err_set(err, AH_STORE, "no files are being put back");
    ah_text_set(&f->restoring, NULL);
    ah_text_set(&f->restoring_kept, NULL);
    return AH_OK;
}
