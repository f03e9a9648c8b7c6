/* Runs, turns, and entries of the transcript. */
#include "journal/fold_parts.h"

/* -- helpers ------------------------------------------------------------------------------- */

ah_status ah_fold_between(const ah_fold *f, ah_err *err)
{
    return f->transcript->assistant ? ah_err_set(err, AH_STORE, "a turn is pending") : AH_OK;
}

ah_status ah_fold_in_run(const ah_fold *f, bool between, ah_err *err)
{
    if (!f->history.run)
        return ah_err_set(err, AH_STORE, "no run is unfinished");
    return between ? ah_fold_between(f, err) : AH_OK;
}

ah_status ah_fold_at_rest(const ah_fold *f, ah_err *err)
{
    if (f->restoring)
        return ah_err_set(err, AH_STORE, "files are being put back");
    if (!f->applying)
        return AH_OK;
    return ah_err_set(err, AH_STORE, "the files of call %zu are being applied", f->applying - 1);
}

ah_status ah_fold_first(const ah_fold *f, ah_slice value, size_t *out, ah_err *err)
{
    int64_t first = ah_member_count(value);

    if (first > (int64_t)f->transcript->n)
        return ah_err_set(err, AH_STORE, "its `first` is %lld, and there are %zu entries",
                          (long long)first, f->transcript->n);
    *out = (size_t)first;
    return AH_OK;
}

ah_status ah_fold_stage(ah_fold *f, ah_slice entry, bool look, ah_err *err)
{
    ah_entry e = {.kind = AH_ENTRY_KINDS};
    ah_status st = ah_entry_read(&f->reader, entry, f->transcript->n_staged, &e, err);

    if (st == AH_OK && (e.kind == AH_ENTRY_ASSISTANT || e.kind == AH_ENTRY_TOOL_RESULT))
        st = ah_err_set(err, AH_STORE, "an entry of the type `%s` cannot wait for a turn",
                        ah_entry_name(e.kind));
    if (st != AH_OK || look || !e.json) {
        ah_text_unref(e.json);
        return st;
    }
    return ah_transcript_stage(f->transcript, e.kind, e.json, err);
}

ah_status ah_fold_stage_all(ah_fold *f, ah_slice entries, bool look, ah_err *err)
{
    ah_items it = ah_items_of(entries);
    ah_status st = AH_OK;

    while (st == AH_OK && ah_items_next(&it))
        st = ah_fold_stage(f, it.value, look, err);
    return st;
}

/* -- outside of turns ----------------------------------------------------------------------- */

static ah_status add_entry(ah_fold *f, ah_slice entry, ah_err *err)
{
    ah_entry e;
    ah_status st = ah_entry_read(&f->reader, entry, f->transcript->n, &e, err);

    if (st != AH_OK || !e.json) {
        ah_text_unref(e.json);
        return st;
    }
    return ah_transcript_add(f->transcript, e.kind, e.json, err);
}

ah_status ah_fold_entries(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_items it = ah_items_of(v[AH_AT_ENTRIES_entries]);
    size_t from = f->transcript->n, n = 0;
    ah_status st = ah_fold_between(f, err);

    (void)r;
    for (; st == AH_OK && ah_items_next(&it); n++)
        st = add_entry(f, it.value, err);
    if (st == AH_OK && n == 0)
        return ah_err_set(err, AH_STORE, "it has no entries");
    return st == AH_OK ? ah_transcript_sound_from(f->transcript, from, err) : st;
}

/* -- runs --------------------------------------------------------------------------------- */

ah_status ah_fold_run_started(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    int64_t run = ah_member_count(v[AH_AT_RUN_STARTED_run]);
    size_t first = 0;
    ah_status st = ah_fold_first(f, v[AH_AT_RUN_STARTED_first], &first, err);

    if (st != AH_OK)
        return st;
    if (f->history.run)
        return ah_err_set(err, AH_STORE, "run %lld is unfinished", (long long)f->history.run);
    if (run != f->runs + 1)
        return ah_err_set(err, AH_STORE, "run %lld is expected, and it is %lld",
                          (long long)f->runs + 1, (long long)run);
    f->runs = run;
    f->history.run = run;
    f->history.first = first;
    f->history.started = r->time;
    f->history.deadline = ah_member_count(v[AH_AT_RUN_STARTED_deadline]);
    return AH_OK;
}

ah_status ah_fold_request(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = ah_fold_in_run(f, true, err);

    (void)r;
    if (st != AH_OK)
        return st;
    f->history.lost_requests++;
    if (v[AH_AT_REQUEST_fallbacks].p)
        f->history.progress.fallbacks = (size_t)ah_member_count(v[AH_AT_REQUEST_fallbacks]);
    return AH_OK;
}

ah_status ah_fold_cancelled(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = ah_fold_in_run(f, false, err);

    (void)r;
    (void)v;
    if (st == AH_OK && f->history.cancelled)
        return ah_err_set(err, AH_STORE, "the run was cancelled before");
    f->history.cancelled = true;
    f->history.parked = false;
    return st;
}

ah_status ah_fold_run_ended(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = ah_fold_in_run(f, true, err);
    ah_text *ended;

    if (st == AH_OK && f->transcript->n_staged)
        st = ah_err_set(err, AH_STORE, "entries wait for the next turn");
    if (st == AH_OK && ah_member_count(v[AH_AT_RUN_ENDED_run]) != f->history.run)
        st = ah_err_set(err, AH_STORE, "the unfinished run is number %lld",
                        (long long)f->history.run);
    if (st == AH_OK)
        st = ah_fold_first(f, v[AH_AT_RUN_ENDED_first], &f->ended_first, err);
    if (st != AH_OK)
        return st;
    if (!(ended = ah_text_new(f->mem, r->said)))
        return ah_err_nomem(err);
    ah_text_set(&f->ended, ended);
    ah_run_history_clear(&f->history);
    return AH_OK;
}

/* -- turns -------------------------------------------------------------------------------- */

/* Ids have the one form in which results repeat them. */
static ah_status check_ids(const ah_fold *f, ah_slice entry, ah_err *err)
{
    ah_items it = ah_items_of(ah_json_member(entry, "tool_calls"));
    ah_status st = AH_OK;

    for (size_t i = 0; st == AH_OK && ah_items_next(&it); i++)
        st = ah_member_expect(f->mem, ah_json_member(it.value, "id"),
                              ah_text_slice(f->transcript->slot[i].id), "spelling of an id", err);
    return st;
}

static ah_status begin(ah_fold *f, ah_slice entry, ah_err *err)
{
    ah_transcript *t = f->transcript;
    ah_entry e;
    ah_status st = ah_entry_read(&f->reader, entry, t->n, &e, err);

    if (st == AH_OK && e.kind != AH_ENTRY_ASSISTANT)
        st = ah_err_set(err, AH_STORE, "its entry is no answer of a model");
    if (st != AH_OK) {
        ah_text_unref(e.json);
        return st;
    }
    st = ah_transcript_begin(t, e.json, err);
    if (st == AH_OK)
        st = check_ids(f, entry, err);
    return st == AH_OK ? ah_run_history_begin_turn(&f->history, t->n_slots, err) : st;
}

static ah_status refuse_originals(size_t calls, ah_err *err)
{
    return ah_err_set(err, AH_STORE,
                      "the kept `arguments` must be a list with a string or null for each of its "
                      "%zu calls",
                      calls);
}

/* Takes the arguments with keys: a list with a string or null for each call. */
static ah_status take_originals(const ah_fold *f, ah_slice list, ah_err *err)
{
    const ah_transcript *t = f->transcript;
    ah_items it = ah_items_of(list);
    ah_status st = AH_OK;
    size_t n = 0;

    for (; st == AH_OK && ah_items_next(&it); n++) {
        ah_json_kind kind = ah_json_kind_of(it.value);

        if (n == t->n_slots || (kind != AH_JSON_STRING && kind != AH_JSON_NULL))
            return refuse_originals(t->n_slots, err);
        if (kind == AH_JSON_STRING)
            st = ah_member_text(f->mem, it.value, &t->slot[n].original, err);
    }
    if (st == AH_OK && (n < t->n_slots || ah_json_kind_of(list) != AH_JSON_ARRAY))
        return refuse_originals(t->n_slots, err);
    return st;
}

ah_status ah_fold_answer(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    int64_t iteration = ah_member_count(v[AH_AT_ANSWER_iteration]);
    ah_run_history *h = &f->history;
    ah_status st = ah_fold_in_run(f, true, err);
    ah_slice originals;
    ah_usage usage;

    if (st == AH_OK)
        st = begin(f, v[AH_AT_ANSWER_entry], err);
    if (st == AH_OK)
        st = ah_fold_check_kept(r, err);
    if (st == AH_OK && r->kept.p && (originals = ah_json_member(r->kept, "arguments")).p)
        st = take_originals(f, originals, err);
    if (st != AH_OK)
        return st;
    ah_usage_read(v[AH_AT_ANSWER_usage], &usage);
    ah_usage_add(&h->progress.usage, &usage);
    h->progress.iterations = iteration > INT32_MAX ? INT32_MAX : (int)iteration;
    h->lost_requests = 0;
    h->parked = false;
    return AH_OK;
}

/* All calls of the pending turn are settled, and entries wait if there is none. */
static ah_status check_full(const ah_fold *f, ah_err *err)
{
    const ah_transcript *t = f->transcript;
    ah_status st = ah_fold_at_rest(f, err);

    for (size_t i = 0; st == AH_OK && i < t->n_slots; i++)
        if (!t->slot[i].result)
            st = ah_err_set(err, AH_STORE, "call %zu of %zu is not settled", i, t->n_slots);
    if (st == AH_OK && !t->assistant && !t->n_staged)
        st = ah_err_set(err, AH_STORE, "no turn is pending, and no entries wait");
    return st;
}

ah_status ah_fold_turn(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_run_history *h = &f->history;
    ah_status st = ah_fold_in_run(f, false, err);

    (void)r;
    if (st == AH_OK)
        st = ah_fold_stage_all(f, v[AH_AT_TURN_staged], false, err);
    if (st == AH_OK)
        st = check_full(f, err);
    if (st == AH_OK)
        st = ah_fold_change(f, v[AH_AT_TURN_slices], v[AH_AT_TURN_entities], false, err);
    if (st != AH_OK)
        return st;
    ah_transcript_commit(f->transcript);
    ah_run_history_end_turn(h);
    ah_fold_clear_asks(f);
    ah_run_progress_read(v[AH_AT_TURN_progress], &h->progress);
    h->parked = false;
    f->since++;
    return AH_OK;
}

ah_status ah_fold_queued(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = ah_fold_in_run(f, false, err);

    (void)r;
    return st == AH_OK ? ah_fold_stage(f, v[AH_AT_QUEUED_entry], false, err) : st;
}
