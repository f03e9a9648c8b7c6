/* The fold as a whole: its memory, and the way of a record: number, kind, JSON, members, and the
 * function of its kind. */
#include "journal/fold.h"

#include "journal/fold_parts.h"

enum { MAX_NAME = 64 /* bytes of a foreign name in an error */ };

ah_status ah_fold_init(ah_fold *f, const ah_mem *mem, ah_err *err)
{
    *f = (ah_fold){.mem = mem, .history = {.mem = mem}};
    ah_entry_reader_init(&f->reader, mem);
    f->transcript = ah_transcript_new(mem);
    return f->transcript ? AH_OK : ah_err_nomem(err);
}

void ah_fold_clear(ah_fold *f)
{
    ah_entry_reader_clear(&f->reader);
    ah_fold_clear_state(f);
    ah_fold_clear_asks(f);
    ah_run_history_clear(&f->history);
    ah_transcript_unref(f->transcript);
    ah_text_unref(f->opened);
    ah_text_unref(f->version);
    ah_text_unref(f->ended);
    ah_text_unref(f->spent);
    ah_text_unref(f->restoring);
    ah_text_unref(f->restoring_kept);
    ah_fs_unref(f->files);
    *f = (ah_fold){.mem = f->mem, .history = {.mem = f->mem}};
}

static ah_status fold_nothing(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)f;
    (void)r;
    (void)v;
    (void)err;
    return AH_OK;
}

static ah_status fold_reserved(ah_fold *f, const ah_store_record *r, const ah_slice *v, ah_err *err)
{
    (void)f;
    (void)r;
    (void)v;
    return ah_err_set(err, AH_STORE,
                      "this version of agenthost cannot read conversations that were "
                      "compacted: take a later one");
}

static ah_fold_fn *const folds[AH_RECORD_KINDS] = {
    [AH_RECORD_OPENED] = ah_fold_opened,
    [AH_RECORD_ENTRIES] = ah_fold_entries,
    [AH_RECORD_SESSION] = ah_fold_session,
    [AH_RECORD_RUN_STARTED] = ah_fold_run_started,
    [AH_RECORD_REQUEST] = ah_fold_request,
    [AH_RECORD_ANSWER] = ah_fold_answer,
    [AH_RECORD_CALL_STARTED] = ah_fold_call_started,
    [AH_RECORD_STEP_STARTED] = ah_fold_step_started,
    [AH_RECORD_STEP] = ah_fold_step,
    [AH_RECORD_ASK] = ah_fold_ask_opened,
    [AH_RECORD_ASK_CLOSED] = ah_fold_ask_closed,
    [AH_RECORD_CALL_FINISHED] = ah_fold_call_finished,
    [AH_RECORD_SETTLED] = ah_fold_settled,
    [AH_RECORD_APPLIED] = ah_fold_applied,
    [AH_RECORD_APPLY_FAILED] = ah_fold_apply_failed,
    [AH_RECORD_TURN] = ah_fold_turn,
    [AH_RECORD_QUEUED] = ah_fold_queued,
    [AH_RECORD_PARKED] = ah_fold_parked,
    [AH_RECORD_LOST] = fold_nothing,
    [AH_RECORD_CANCELLED] = ah_fold_cancelled,
    [AH_RECORD_RUN_ENDED] = ah_fold_run_ended,
    [AH_RECORD_CHECKPOINT] = ah_fold_checkpoint,
    [AH_RECORD_REWOUND] = ah_fold_rewound,
    [AH_RECORD_RESTORING] = ah_fold_restoring,
    [AH_RECORD_RESTORED] = ah_fold_restored,
    [AH_RECORD_COMPACTED] = fold_reserved,
    [AH_RECORD_LEASE] = ah_fold_lease,
    [AH_RECORD_SPENT] = ah_fold_spent,
    [AH_RECORD_WRITTEN] = ah_fold_written,
};

/* -- errors ------------------------------------------------------------------------------- */

/* Makes a name from outside fit for an error: one line of UTF-8. */
static void put_name(char out[MAX_NAME], ah_slice name)
{
    size_t n = name.n < MAX_NAME - 1 ? name.n : ah_utf8_cut(name.p, MAX_NAME - 1);

    if (n)
        memcpy(out, name.p, n);
    n = ah_flatten(out, n);
    out[ah_utf8_valid((ah_slice){out, n}) ? n : 0] = '\0';
}

/* Names the record in the error. Only lack of memory keeps its status and its text. */
static ah_status name_record(const ah_store_record *r, ah_err *err)
{
    char why[sizeof err->message], kind[MAX_NAME];

    if (err->status == AH_NOMEM)
        return AH_NOMEM;
    memcpy(why, err->message, sizeof why);
    put_name(kind, r->kind);
    return ah_err_set(err, AH_STORE, "record %lld (%s) of the stream: %s", (long long)r->number,
                      kind, why);
}

/* -- one record --------------------------------------------------------------------------- */

static ah_status check_json(const ah_fold *f, ah_slice json, const char *what, ah_err *err)
{
    if (json.n > AH_STORE_MAX_RECORD)
        return ah_err_set(err, AH_STORE, "%s is larger than %d bytes", what, AH_STORE_MAX_RECORD);
    return ah_json_check_err(f->mem, json, what, err);
}

static ah_status check_header(const ah_fold *f, const ah_store_record *r, ah_record_kind kind,
                              ah_err *err)
{
    bool first = f->last == 0;

    if (first && kind != AH_RECORD_OPENED && kind != AH_RECORD_CHECKPOINT)
        return ah_err_set(err, AH_STORE, "a stream is read from `opened` or a `checkpoint`");
    if (first && (r->number < 1 || r->number > AH_COUNT_MAX))
        return ah_err_set(err, AH_STORE, "its number is out of range");
    if (!first && r->number != f->last + 1)
        return ah_err_set(err, AH_STORE, "record %lld is expected here", (long long)f->last + 1);
    if (f->rewound && kind != AH_RECORD_CHECKPOINT)
        return ah_err_set(err, AH_STORE, "a checkpoint is expected after `rewound`");
    if (r->time < 0 || r->time > AH_COUNT_MAX)
        return ah_err_set(err, AH_STORE, "its time is out of range: %lld", (long long)r->time);
    return AH_OK;
}

/* A kind of a later version: skipped if it only informs. */
static ah_status pass_unknown(const ah_fold *f, ah_slice said, ah_err *err)
{
    static const ah_member members[] = {{"since", AH_MEMBER_STRING, false},
                                        {"informative", AH_MEMBER_BOOLEAN, false},
                                        {NULL, AH_MEMBER_ANY, false}};
    char name[MAX_NAME] = "";
    ah_slice v[2];
    ah_status st = ah_members_read(said, members, v, err);

    if (st != AH_OK || ah_slice_is(v[1], "true"))
        return st;
    put_name(name, v[0].p ? ah_json_inside(v[0]) : ah_text_slice(f->version));
    return ah_err_set(err, AH_STORE,
                      "this version of agenthost does not know the kind; version %s does: take it "
                      "or a later one",
                      name);
}

static ah_status take(ah_fold *f, const ah_store_record *r, ah_record_kind kind, ah_err *err)
{
    ah_slice value[AH_MEMBERS_MAX];
    ah_status st = check_header(f, r, kind, err);

    if (st == AH_OK)
        st = check_json(f, r->said, "what is said", err);
    if (st == AH_OK && r->kept.p)
        st = check_json(f, r->kept, "what is kept", err);
    if (st == AH_OK && kind == AH_RECORD_KINDS)
        return pass_unknown(f, r->said, err);
    if (st == AH_OK && !ah_stream_has(f->stream, kind))
        return ah_err_set(err, AH_STORE, "the stream of a %s has no such records",
                          ah_stream_kind_name(f->stream));
    if (st == AH_OK)
        st = ah_members_read(r->said, ah_members_of(kind), value, err);
    return st == AH_OK ? folds[kind](f, r, value, err) : st;
}

/* A turn that is committed does not need what it kept. */
static void note_erased(ah_fold *f, const ah_store_record *r, ah_record_kind kind)
{
    bool needed =
        kind == AH_RECORD_CALL_STARTED || kind == AH_RECORD_STEP || kind == AH_RECORD_CALL_FINISHED;

    if (kind == AH_RECORD_TURN || kind == AH_RECORD_CHECKPOINT)
        f->erased = 0;
    else if (needed && r->kept_hash.p && !f->erased)
        f->erased = r->number;
}

static ah_status add(ah_fold *f, const ah_store_record *r, ah_err *err)
{
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_status st = take(f, r, kind, err);

    if (st != AH_OK)
        return st;
    note_erased(f, r, kind);
    f->last = r->number;
    f->time = r->time > f->time ? r->time : f->time;
    f->bytes += kind == AH_RECORD_CHECKPOINT ? 0 : r->said.n + r->kept.n;
    return AH_OK;
}

ah_status ah_fold_add(void *fold, const ah_store_record *r, ah_err *err)
{
    return add(fold, r, err) == AH_OK ? AH_OK : name_record(r, err);
}

ah_status ah_fold_add_alone(ah_fold *f, ah_slice checkpoint, ah_err *err)
{
    ah_store_record r = {
        .number = 1, .kind = ah_slice_of(ah_record_name(AH_RECORD_CHECKPOINT)), .said = checkpoint};

    return add(f, &r, err);
}
