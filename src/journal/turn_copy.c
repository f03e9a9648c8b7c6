/* A turn begins behind the `turn` of the one before, where a checkpoint may stand: the copy begins
 * with one. The records of a pending turn that say what became of its calls are left out. */
#include "journal/turn_copy.h"

#include "journal/fold_members.h"

enum { MAX_CHECKPOINT = 1 << 30 };

ah_status ah_turn_copy_init(ah_turn_copy *c, const ah_mem *mem, ah_err *err)
{
    *c = (ah_turn_copy){.mem = mem};
    return ah_fold_init(&c->fold, mem, err);
}

static void forget(ah_turn_copy *c)
{
    for (size_t i = 0; i < c->n; i++) {
        ah_text_unref(c->record[i].said);
        ah_text_unref(c->record[i].kept);
    }
    for (size_t i = 0; i < c->n_calls; i++) {
        ah_text_unref(c->call[i].started);
        ah_text_unref(c->call[i].settled);
        ah_text_unref(c->call[i].failed);
    }
    ah_transcript_unref(c->given);
    c->given = NULL;
    c->n = c->n_calls = 0;
    c->begun = c->complete = false;
}

void ah_turn_copy_clear(ah_turn_copy *c)
{
    forget(c);
    ah_free(c->mem, c->record);
    ah_free(c->mem, c->call);
    ah_fold_clear(&c->fold);
}

/* -- the records ------------------------------------------------------------------------------- */

static ah_status put(ah_turn_copy *c, ah_record_kind kind, int64_t time, ah_slice said,
                     ah_slice kept, ah_err *err)
{
    ah_copied_record *list = ah_grow(c->mem, c->record, &c->cap, c->n + 1, sizeof *list), *r;

    if (!list)
        return ah_err_nomem(err);
    c->record = list;
    r = &list[c->n++];
    *r = (ah_copied_record){kind, time, ah_text_new(c->mem, said), NULL};
    if (kept.p)
        r->kept = ah_text_new(c->mem, kept);
    return r->said && (r->kept || !kept.p) ? AH_OK : ah_err_nomem(err);
}

static ah_status put_checkpoint(ah_turn_copy *c, int64_t time, ah_err *err)
{
    ah_status st = ah_transcript_copy(c->fold.transcript, &c->given, err);
    ah_buf b;

    if (st != AH_OK)
        return st;
    ah_buf_init(&b, c->mem, MAX_CHECKPOINT);
    ah_fold_print_checkpoint(&c->fold, true, &b);
    st = ah_buf_ok(&b)
             ? put(c, AH_RECORD_CHECKPOINT, time, ah_buf_slice(&b), (ah_slice){NULL, 0}, err)
             : ah_buf_error(&b, "a copy of the conversation", err);
    ah_buf_clear(&b);
    return st;
}

/* Returns the call of the record, which the fold has taken; NULL: out of memory. */
static ah_copied_call *call_of(ah_turn_copy *c, ah_slice said)
{
    size_t at = (size_t)ah_member_count(ah_json_member(said, "call"));
    ah_copied_call *list = ah_grow(c->mem, c->call, &c->cap_calls, at + 1, sizeof *list);

    if (!list)
        return NULL;
    c->call = list;
    for (; c->n_calls <= at; c->n_calls++)
        list[c->n_calls] = (ah_copied_call){0};
    return &list[at];
}

static ah_status keep(ah_turn_copy *c, ah_text **slot, ah_slice said, ah_err *err)
{
    ah_text *text = ah_text_new(c->mem, said);

    ah_text_set(slot, text);
    return text ? AH_OK : ah_err_nomem(err);
}

/* -- the next record --------------------------------------------------------------------------- */

/* True if what the record kept was erased. */
static bool is_erased(const ah_store_record *r)
{
    return r->kept_hash.p && !r->kept.p;
}

static ah_status take_started(ah_turn_copy *c, const ah_store_record *r, ah_err *err)
{
    ah_copied_call *call = call_of(c, r->said);

    if (!call)
        return ah_err_nomem(err);
    c->begun = true;
    call->erased = is_erased(r);
    call->record = r->number;
    call->time = r->time;
    return keep(c, &call->started, r->said, err);
}

static ah_status take_result(ah_turn_copy *c, const ah_store_record *r, bool failed, ah_err *err)
{
    ah_copied_call *call = call_of(c, r->said);

    if (!call)
        return ah_err_nomem(err);
    return keep(c, failed ? &call->failed : &call->settled, r->said, err);
}

/* True for a call without its arguments, with all that it did, and for a step without its value. */
static bool is_left_out(const ah_turn_copy *c, const ah_store_record *r, ah_record_kind kind)
{
    int64_t call = ah_member_count(ah_json_member(r->said, "call"));
    bool of_call =
        kind == AH_RECORD_CALL_STARTED || kind == AH_RECORD_STEP_STARTED || kind == AH_RECORD_STEP;

    return of_call && (is_erased(r) || (call < (int64_t)c->n_calls && c->call[call].erased));
}

/* A record of the pending turn. */
static ah_status take_pending(ah_turn_copy *c, const ah_store_record *r, ah_record_kind kind,
                              ah_err *err)
{
    ah_status st = AH_OK;

    switch (kind) {
    case AH_RECORD_CALL_FINISHED:
    case AH_RECORD_APPLIED:
    case AH_RECORD_LOST:
    case AH_RECORD_PARKED:
    case AH_RECORD_CANCELLED:
        return AH_OK;
    case AH_RECORD_SETTLED:
    case AH_RECORD_APPLY_FAILED:
        return take_result(c, r, kind == AH_RECORD_APPLY_FAILED, err);
    case AH_RECORD_CALL_STARTED:
        st = take_started(c, r, err);
        break;
    default:
        break;
    }
    if (st != AH_OK || is_left_out(c, r, kind))
        return st;
    return put(c, kind, r->time, r->said, r->kept, err);
}

ah_status ah_turn_copy_add(void *copy, const ah_store_record *r, ah_err *err)
{
    ah_turn_copy *c = copy;
    ah_record_kind kind = ah_record_kind_of(r->kind);
    ah_status st = AH_OK;

    if (c->complete) {
        forget(c);
        st = put_checkpoint(c, r->time, err);
    }
    if (st == AH_OK)
        st = ah_fold_add(&c->fold, r, err);
    if (st != AH_OK || kind == AH_RECORD_KINDS)
        return st;
    if (kind == AH_RECORD_TURN) {
        c->turn++;
        c->complete = true;
        return c->begun ? AH_CANCELLED : AH_OK;
    }
    if (kind == AH_RECORD_REWOUND) /* what comes is behind the next checkpoint */
        return AH_OK;
    if (kind == AH_RECORD_CHECKPOINT)
        forget(c);
    if (c->fold.transcript->assistant && kind != AH_RECORD_ANSWER)
        return take_pending(c, r, kind, err);
    return put(c, kind, r->time, r->said, r->kept, err);
}

/* -- the calls --------------------------------------------------------------------------------- */

static bool has(const ah_text *record, const char *member)
{
    return ah_json_member(ah_text_slice(record), member).p != NULL;
}

static void print_call(const ah_turn_copy *c, size_t at, ah_buf *out)
{
    const ah_copied_call *call = &c->call[at];
    ah_slice started = ah_text_slice(call->started);
    ah_slice result = ah_json_member(ah_text_slice(call->failed), "result");
    bool changes = has(call->settled, "slices") || has(call->settled, "entities") ||
                   has(call->settled, "staged");

    if (!result.p)
        result = ah_json_member(ah_text_slice(call->settled), "result");
    ah_buf_fmt(out, "{\"call\":%zu,\"id\":", at);
    ah_buf_put(out, ah_json_member(started, "id"));
    ah_buf_str(out, ",\"tool\":");
    ah_buf_put(out, ah_json_member(started, "tool"));
    ah_buf_fmt(out, ",\"record\":%lld,\"time\":%lld,\"changes\":%s,\"erased\":%s,\"result\":",
               (long long)call->record, (long long)call->time, changes ? "true" : "false",
               call->erased ? "true" : "false");
    ah_buf_put(out, result);
    ah_buf_char(out, '}');
}

void ah_turn_copy_print(const ah_turn_copy *c, ah_buf *out)
{
    size_t n = 0;

    ah_buf_fmt(out, "{\"turn\":%lld,\"calls\":[", (long long)c->turn);
    for (size_t i = 0; i < c->n_calls; i++) {
        if (!c->call[i].started || !c->call[i].settled)
            continue;
        ah_buf_str(out, n++ ? "," : "");
        print_call(c, i, out);
    }
    ah_buf_str(out, "]}");
}
