/* The first record, checkpoints, and the versions that they name. */
#include "journal/fold_parts.h"

enum { NEEDED = true, ABSENT = false };

/* -- versions ------------------------------------------------------------------------------ */

static ah_status check_version(ah_fold *f, ah_slice written_by, ah_slice readable_from, ah_err *err)
{
    ah_text *version = NULL;
    ah_status st = ah_member_text(f->mem, written_by, &version, err);

    if (st != AH_OK)
        return st;
    ah_text_set(&f->version, version);
    if (ah_member_count(readable_from) <= AH_RECORD_FORMAT)
        return AH_OK;
    return ah_err_set(err, AH_STORE,
                      "it was written by agenthost %.64s in format %lld, this version reads up to "
                      "format %d: take that version or a later one",
                      ah_utf8_valid(ah_text_slice(version)) ? version->data : "",
                      (long long)ah_member_count(readable_from), AH_RECORD_FORMAT);
}

static ah_status check_base(ah_slice base, ah_err *err)
{
    static const ah_member members[] = {{"stream", AH_MEMBER_STRING, NEEDED},
                                        {"number", AH_MEMBER_COUNT, NEEDED},
                                        {NULL, AH_MEMBER_ANY, ABSENT}};
    ah_slice v[2];
    ah_status st = ah_members_read(base, members, v, err);

    if (st == AH_OK && ah_member_count(v[1]) < 1)
        st = ah_err_set(err, AH_STORE, "the number of its base must be at least 1");
    return st;
}

/* Keeps the object of `opened`, whose members are in v. */
static ah_status keep_opened(ah_fold *f, ah_slice said, const ah_slice *v, ah_err *err)
{
    ah_status st = check_version(f, v[AH_AT_OPENED_written_by], v[AH_AT_OPENED_readable_from], err);
    ah_slice base = v[AH_AT_OPENED_base];
    ah_text *opened;

    if (st == AH_OK && base.p)
        st = check_base(base, err);
    if (st != AH_OK)
        return st;
    if (!ah_json_string_is(v[AH_AT_OPENED_stream], ah_stream_kind_name(f->stream)))
        return ah_err_set(err, AH_STORE, "the stream is no %s", ah_stream_kind_name(f->stream));
    if (!(opened = ah_text_new(f->mem, said)))
        return ah_err_nomem(err);
    ah_text_set(&f->opened, opened);
    return AH_OK;
}

ah_status ah_fold_opened(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    if (r->number != 1)
        return ah_err_set(err, AH_STORE, "only record 1 may be of this kind");
    return keep_opened(f, r->said, v, err);
}

ah_status ah_fold_lease(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)r;
    return check_version(f, v[AH_AT_LEASE_written_by], v[AH_AT_LEASE_readable_from], err);
}

/* -- reading --------------------------------------------------------------------------------- */

static ah_status read_opened(ah_fold *f, ah_slice opened, ah_err *err)
{
    ah_slice v[AH_MEMBERS_MAX];
    ah_status st = ah_members_read(opened, ah_members_of(AH_RECORD_OPENED), v, err);

    return st == AH_OK ? keep_opened(f, opened, v, err) : st;
}

/* given: in its place; NULL: none. */
static ah_status read_transcript(ah_fold *f, ah_slice text, const ah_transcript *given, ah_err *err)
{
    ah_transcript *t;
    ah_status st;

    if (ah_json_member(text, "pending").p)
        return ah_err_set(err, AH_STORE, "its transcript has a pending turn");
    st = given ? ah_transcript_copy(given, &t, err) : ah_transcript_read(f->mem, text, &t, err);
    if (st != AH_OK)
        return st;
    ah_transcript_unref(f->transcript);
    f->transcript = t;
    return AH_OK;
}

static ah_status read_run(ah_fold *f, ah_slice run, ah_err *err)
{
    static const ah_member members[] = {
        {"run", AH_MEMBER_COUNT, NEEDED},       {"first", AH_MEMBER_COUNT, NEEDED},
        {"started", AH_MEMBER_COUNT, NEEDED},   {"deadline", AH_MEMBER_COUNT, ABSENT},
        {"lost", AH_MEMBER_COUNT, ABSENT},      {"cancelled", AH_MEMBER_BOOLEAN, ABSENT},
        {"progress", AH_MEMBER_OBJECT, NEEDED}, {NULL, AH_MEMBER_ANY, ABSENT}};
    enum { RUN, FIRST, STARTED, DEADLINE, LOST, CANCELLED, PROGRESS, N };
    ah_run_history *h = &f->history;
    ah_slice v[N];
    ah_status st = ah_members_read(run, members, v, err);

    if (st == AH_OK)
        st = ah_fold_first(f, v[FIRST], &h->first, err);
    if (st != AH_OK)
        return st;
    h->run = ah_member_count(v[RUN]);
    if (h->run < 1 || h->run != f->runs)
        return ah_err_set(err, AH_STORE, "its run is not the last of its %lld runs",
                          (long long)f->runs);
    h->started = ah_member_count(v[STARTED]);
    h->deadline = ah_member_count(v[DEADLINE]);
    h->lost_requests = (size_t)ah_member_count(v[LOST]);
    h->cancelled = ah_slice_is(v[CANCELLED], "true");
    ah_run_progress_read(v[PROGRESS], &h->progress);
    return AH_OK;
}

static ah_status read_ended(ah_fold *f, ah_slice ended, ah_err *err)
{
    ah_slice v[AH_MEMBERS_MAX];
    ah_status st = ah_members_read(ended, ah_members_of(AH_RECORD_RUN_ENDED), v, err);

    if (st == AH_OK)
        st = ah_fold_first(f, v[AH_AT_RUN_ENDED_first], &f->ended_first, err);
    if (st == AH_OK && !(f->ended = ah_text_new(f->mem, ended)))
        st = ah_err_nomem(err);
    return st;
}

static ah_status keep_spent(ah_fold *f, ah_slice spent, ah_err *err)
{
    ah_text *text = ah_text_new(f->mem, spent);

    if (!text)
        return ah_err_nomem(err);
    ah_text_set(&f->spent, text);
    return AH_OK;
}

ah_status ah_fold_spent(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)v;
    return keep_spent(f, r->said, err);
}

static ah_status read_spent(ah_fold *f, ah_slice spent, ah_err *err)
{
    ah_slice v[AH_MEMBERS_MAX];
    ah_status st = ah_members_read(spent, ah_members_of(AH_RECORD_SPENT), v, err);

    return st == AH_OK ? keep_spent(f, spent, err) : st;
}

/* -- files in memory -------------------------------------------------------------------------- */

/* Takes the changes of files that a record keeps. */
static ah_status take_files(ah_fold *f, const ah_store_record *r, ah_err *err)
{
    static const ah_fs_options o = {.max_file = SIZE_MAX / 2,
                                    .max_total = SIZE_MAX / 2,
                                    .max_files = SIZE_MAX / 2,
                                    .max_depth = AH_FS_MAX_DEPTH};
    ah_status st = f->files ? AH_OK : ah_fs_memory_new(f->mem, &o, &f->files, err);

    if (st == AH_OK && !r->kept.p)
        st = ah_err_set(err, AH_STORE, "the contents of the files %s",
                        r->kept_hash.p ? "were erased" : "are missing");
    return st == AH_OK ? ah_fs_take(f->files, r->kept, err) : st;
}

ah_status ah_fold_written(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)v;
    return take_files(f, r, err);
}

static void forget_all(ah_fold *f)
{
    ah_fs_unref(f->files);
    f->files = NULL;
    ah_text_set(&f->spent, NULL);
    ah_fold_clear_state(f);
    ah_fold_clear_asks(f);
    ah_run_history_clear(&f->history);
    ah_text_set(&f->ended, NULL);
    f->ended_first = 0;
}

ah_status ah_fold_rewound(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    int64_t to = ah_member_count(v[AH_AT_REWOUND_to]);
    ah_status st = ah_fold_at_rest(f, err);

    if (st == AH_OK && (to < 1 || to >= r->number))
        st = ah_err_set(err, AH_STORE, "there is no record %lld before it", (long long)to);
    f->rewound = st == AH_OK;
    return st;
}

/* AH_OK if a checkpoint may stand here. */
static ah_status check_place(const ah_fold *f, ah_err *err)
{
    ah_status st = f->rewound ? AH_OK : ah_fold_between(f, err);

    if (st == AH_OK)
        st = ah_fold_at_rest(f, err);
    if (st == AH_OK && !f->rewound && f->transcript->n_staged)
        st = ah_err_set(err, AH_STORE, "entries wait for the next turn");
    return st;
}

ah_status ah_fold_checkpoint(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    ah_status st = check_place(f, err);

    if (st != AH_OK)
        return st;
    f->rewound = false;
    forget_all(f);
    f->runs = ah_member_count(v[AH_AT_CHECKPOINT_runs]);
    f->asks = ah_member_count(v[AH_AT_CHECKPOINT_asks]);
    st = read_opened(f, v[AH_AT_CHECKPOINT_opened], err);
    if (st == AH_OK)
        st = read_transcript(f, v[AH_AT_CHECKPOINT_transcript], r->number == 1 ? f->given : NULL,
                             err);
    if (st == AH_OK)
        st = ah_fold_whole_slices(f, v[AH_AT_CHECKPOINT_slices], err);
    if (st == AH_OK)
        st = ah_fold_change(f, (ah_slice){NULL, 0}, v[AH_AT_CHECKPOINT_entities], false, err);
    if (st == AH_OK && v[AH_AT_CHECKPOINT_run].p)
        st = read_run(f, v[AH_AT_CHECKPOINT_run], err);
    if (st == AH_OK && v[AH_AT_CHECKPOINT_ended].p)
        st = read_ended(f, v[AH_AT_CHECKPOINT_ended], err);
    if (st == AH_OK && v[AH_AT_CHECKPOINT_spent].p)
        st = read_spent(f, v[AH_AT_CHECKPOINT_spent], err);
    if (st == AH_OK && f->stream == AH_STREAM_FILES)
        st = take_files(f, r, err);
    f->checkpoint = r->number;
    f->since = f->bytes = 0;
    return st;
}

/* -- writing ---------------------------------------------------------------------------------- */

void ah_fold_print_opened(ah_stream_kind stream, ah_slice members, ah_buf *out)
{
    ah_buf_fmt(out, "{\"format\":%d,\"written_by\":\"%s\",\"readable_from\":1,", AH_RECORD_FORMAT,
               AH_VERSION);
    ah_buf_fmt(out, "\"stream\":\"%s\"%s", ah_stream_kind_name(stream), members.n ? "," : "");
    ah_buf_put(out, members);
    ah_buf_char(out, '}');
}

static void print_run(const ah_run_history *h, ah_buf *out)
{
    ah_buf_fmt(out, ",\"run\":{\"run\":%lld,\"first\":%zu,\"started\":%lld", (long long)h->run,
               h->first, (long long)h->started);
    if (h->deadline)
        ah_buf_fmt(out, ",\"deadline\":%lld", (long long)h->deadline);
    if (h->lost_requests)
        ah_buf_fmt(out, ",\"lost\":%zu", h->lost_requests);
    if (h->cancelled)
        ah_buf_str(out, ",\"cancelled\":true");
    ah_buf_str(out, ",\"progress\":");
    ah_run_progress_print(&h->progress, out);
    ah_buf_char(out, '}');
}

void ah_fold_print_checkpoint(const ah_fold *f, bool bare, ah_buf *out)
{
    ah_buf_str(out, "{\"opened\":");
    ah_buf_put(out, ah_text_slice(f->opened));
    ah_buf_str(out, ",\"transcript\":");
    if (bare)
        ah_buf_str(out, "{}");
    else
        ah_transcript_print(f->transcript, out);
    ah_buf_str(out, ",\"slices\":");
    ah_fold_print_slices(f, out);
    ah_buf_str(out, ",\"entities\":");
    ah_fold_print_states(f, out);
    ah_buf_fmt(out, ",\"runs\":%lld,\"asks\":%lld", (long long)f->runs, (long long)f->asks);
    if (f->history.run)
        print_run(&f->history, out);
    if (f->ended) {
        ah_buf_str(out, ",\"ended\":");
        ah_buf_put(out, ah_text_slice(f->ended));
    }
    if (f->spent) {
        ah_buf_str(out, ",\"spent\":");
        ah_buf_put(out, ah_text_slice(f->spent));
    }
    ah_buf_char(out, '}');
}
