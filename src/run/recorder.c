/* Records of what is new: entries by their number, slices by the cells that their lists share with
 * the recorded ones. */
#include "run/recorder.h"

/* -- life ------------------------------------------------------------------------------------ */

void ah_recorder_init(ah_recorder *r, const ah_mem *mem, const ah_secrets *secrets)
{
    *r = (ah_recorder){.mem = mem, .secrets = secrets};
}

static void forget_ahead(ah_recorder *r)
{
    for (size_t i = 0; i < r->slices; i++) {
        ah_cell_unref(r->mem, r->slice[i].ahead);
        r->slice[i].ahead = NULL;
    }
}

static void unbind(ah_recorder *r)
{
    forget_ahead(r);
    for (size_t i = 0; i < r->slices; i++)
        ah_cell_unref(r->mem, r->slice[i].head);
    ah_free(r->mem, r->slice);
    r->slice = NULL;
    r->slices = 0;
    ah_transcript_unref(r->transcript);
    ah_session_unref(r->session);
    r->transcript = NULL;
    r->session = NULL;
}

void ah_recorder_clear(ah_recorder *r)
{
    if (!r->mem)
        return;
    unbind(r);
    ah_text_unref(r->stream);
    ah_budget_unref(r->account);
    *r = (ah_recorder){.mem = r->mem};
}

/* Makes room for all types of the session. False: out of memory. */
static bool know_slices(ah_recorder *r)
{
    size_t n = r->session ? (size_t)ah_session_types(r->session) : 0;
    ah_recorded_slice *slice;

    if (n <= r->slices)
        return true;
    if (!(slice = ah_alloc(r->mem, n * sizeof *slice)))
        return false;
    if (r->slices)
        memcpy(slice, r->slice, r->slices * sizeof *slice);
    ah_free(r->mem, r->slice);
    r->slice = slice;
    r->slices = n;
    return true;
}

ah_status ah_recorder_bind(ah_recorder *r, ah_transcript *t, ah_session *s, bool recorded,
                           ah_err *err)
{
    ah_transcript_ref(t);
    ah_session_ref(s);
    unbind(r);
    r->transcript = t;
    r->session = s;
    r->entries = recorded ? t->n : 0;
    r->staged = recorded ? t->n_staged : 0;
    r->answered = recorded && t->assistant;
    r->applying = false;
    if (!recorded || !s)
        return AH_OK;
    if (!know_slices(r))
        return ah_err_nomem(err);
    for (size_t i = 0; i < r->slices; i++)
        r->slice[i].head = ah_cell_ref(ah_session_head(s, NULL, (int)i));
    return AH_OK;
}

ah_status ah_recorder_state(const ah_recorder *r, ah_err *err)
{
    const char *why = "a run of this conversation was dropped before its end";

    if (r->broken == AH_NOMEM)
        return ah_err_nomem(err);
    if (r->broken == AH_OK)
        return AH_OK;
    if (r->broken == AH_STORE)
        why = "a record of this conversation could not be written";
    else if (r->broken == AH_CONFLICT)
        why = "the files that a call had begun to change are whole again";
    return ah_err_set(err, AH_STORE, "%s: open the conversation again to go on with it", why);
}

bool ah_recorder_on(const ah_recorder *r)
{
    return r && r->sink.put && r->broken == AH_OK && r->transcript;
}

/* -- records ----------------------------------------------------------------------------------- */

void ah_recorder_put(ah_recorder *r, ah_record_kind kind, ah_buf *said, ah_slice kept)
{
    if (!ah_buf_ok(said))
        r->broken = AH_NOMEM;
    if (!ah_recorder_on(r))
        return;
    if (r->secrets && r->secrets->n)
        said->len = ah_secrets_redact_json(r->secrets, said->data, said->len);
    r->sink.put(r->sink.ud, kind, ah_buf_slice(said), kept);
    if (r->beside)
        r->beside(r->beside_ud);
}

static void put_entries(const ah_entry *entry, size_t n, ah_buf *out)
{
    for (size_t i = 0; i < n; i++) {
        ah_buf_str(out, i ? "," : "");
        ah_buf_put(out, ah_text_slice(entry[i].json));
    }
}

/* -- slices ------------------------------------------------------------------------------------ */

/* The number of the oldest values that both lists have in common, as the same cells. */
static size_t common(const ah_cell *a, const ah_cell *b)
{
    while (a && b && a != b) {
        bool shorten_a = a->n >= b->n, shorten_b = b->n >= a->n;

        a = shorten_a ? a->below : a;
        b = shorten_b ? b->below : b;
    }
    return a && b ? a->n : 0;
}

static void put_slice(const ah_recorder *r, int id, const ah_cell *was, const ah_cell *now,
                      ah_buf *out)
{
    size_t keep = common(was, now);

    ah_json_put_string(out, ah_session_name(r->session, id));
    ah_buf_fmt(out, ":{\"keep\":%zu,\"add\":[", keep);
    ah_list_print_newest(r->mem, now, keep, out);
    ah_buf_str(out, "]}");
}

static void set_cell(const ah_recorder *r, ah_cell **at, ah_cell *head)
{
    ah_cell *old = *at;

    *at = ah_cell_ref(head);
    ah_cell_unref(r->mem, old);
}

/* Appends the changed slices with `before` in front. Notes the present heads as recorded, or with
 * `ahead` as those after the changes that are being applied. Returns their number. */
static size_t put_slices(ah_recorder *r, const ah_overlay *o, bool ahead, const char *before,
                         ah_buf *out)
{
    size_t changed = 0;

    if (!r->session || r->applying)
        return 0;
    if (!know_slices(r)) {
        out->status = AH_NOMEM;
        return 0;
    }
    for (size_t i = 0; i < r->slices; i++) {
        ah_cell *now = ah_session_head(r->session, o, (int)i);

        if (now != r->slice[i].head) {
            ah_buf_str(out, changed++ ? "," : before);
            put_slice(r, (int)i, r->slice[i].head, now, out);
        }
        set_cell(r, ahead ? &r->slice[i].ahead : &r->slice[i].head, now);
    }
    ah_buf_str(out, changed ? "}" : "");
    return changed;
}

bool ah_recorder_slices(ah_recorder *r, const ah_overlay *o, ah_buf *out)
{
    return put_slices(r, o, false, "{", out) > 0;
}

/* -- outside of turns -------------------------------------------------------------------------- */

static void note_entries(ah_recorder *r)
{
    ah_transcript *t = r->transcript;
    ah_buf b;

    if (t->n <= r->entries)
        return;
    ah_buf_init(&b, r->mem, AH_STORE_MAX_RECORD);
    ah_buf_str(&b, "{\"entries\":[");
    put_entries(t->entry + r->entries, t->n - r->entries, &b);
    ah_buf_str(&b, "]}");
    r->entries = t->n;
    ah_recorder_put(r, AH_RECORD_ENTRIES, &b, (ah_slice){NULL, 0});
    ah_buf_clear(&b);
}

static void note_session(ah_recorder *r)
{
    ah_buf b;

    if (r->applying)
        return;
    ah_buf_init(&b, r->mem, AH_STORE_MAX_RECORD);
    put_slices(r, NULL, false, ",\"slices\":{", &b);
    if (r->changed)
        r->changed(r->changed_ud, &b);
    if (b.len || !ah_buf_ok(&b)) {
        ah_buf_char(&b, '}');
        if (ah_buf_ok(&b))
            b.data[0] = '{';
        ah_recorder_put(r, AH_RECORD_SESSION, &b, (ah_slice){NULL, 0});
    }
    ah_buf_clear(&b);
}

void ah_recorder_note(ah_recorder *r)
{
    if (!ah_recorder_on(r))
        return;
    if (!r->transcript->assistant)
        note_entries(r);
    note_session(r);
}

void ah_recorder_note_before_turn(ah_recorder *r)
{
    if (ah_recorder_on(r) && !r->answered)
        note_entries(r);
}

/* Notes all slices as recorded. */
static void know_whole_slices(ah_recorder *r, ah_buf *out)
{
    if (!know_slices(r))
        out->status = AH_NOMEM;
    for (size_t i = 0; i < r->slices && ah_buf_ok(out); i++)
        set_cell(r, &r->slice[i].head, ah_session_head(r->session, NULL, (int)i));
}

void ah_recorder_print(const ah_recorder *r, ah_slice kept_slices, ah_buf *out)
{
    ah_buf_str(out, "{\"transcript\":");
    ah_transcript_print(r->transcript, out);
    ah_buf_str(out, ",\"slices\":");
    if (r->session)
        ah_session_print_slices(r->session, NULL, kept_slices, out);
    else
        ah_buf_str(out, "{}");
    ah_buf_str(out, ",\"runs\":");
    ah_buf_int(out, r->runs);
    if (r->whole)
        r->whole(r->changed_ud, out);
    ah_buf_char(out, '}');
}

void ah_recorder_checkpoint(ah_recorder *r, ah_slice kept_slices)
{
    ah_buf b, kept;

    if (!ah_recorder_on(r) || r->transcript->assistant || r->transcript->n_staged || r->in_run)
        return;
    ah_buf_init(&kept, r->mem, AH_STORE_MAX_RECORD);
    ah_buf_init(&b, r->mem, AH_STORE_MAX_RECORD);
    ah_recorder_print(r, kept_slices, &b);
    know_whole_slices(r, &b);
    r->entries = r->transcript->n;
    if (r->contents)
        r->contents(r->changed_ud, &kept);
    if (!ah_buf_ok(&kept))
        b.status = kept.status;
    ah_recorder_put(r, AH_RECORD_CHECKPOINT, &b,
                    r->contents ? ah_buf_slice(&kept) : (ah_slice){NULL, 0});
    ah_buf_clear(&kept);
    ah_buf_clear(&b);
}

/* -- for the state machine --------------------------------------------------------------------- */

void ah_recorder_queue(ah_recorder *r)
{
    ah_buf b;

    if (!ah_recorder_on(r))
        return;
    ah_buf_init(&b, r->mem, AH_STORE_MAX_RECORD);
    while (r->staged < r->transcript->n_staged) {
        ah_buf_reset(&b, 0);
        ah_buf_str(&b, "{\"entry\":");
        ah_buf_put(&b, ah_text_slice(r->transcript->staged[r->staged++].json));
        ah_buf_char(&b, '}');
        ah_recorder_put(r, AH_RECORD_QUEUED, &b, (ah_slice){NULL, 0});
    }
    ah_buf_clear(&b);
}

static void put_staged(const ah_entry *entry, size_t n, ah_buf *out)
{
    if (!n)
        return;
    ah_buf_str(out, ",\"staged\":[");
    put_entries(entry, n, out);
    ah_buf_char(out, ']');
}

void ah_recorder_put_changes(ah_recorder *r, const ah_overlay *o, ah_buf *out)
{
    const ah_transcript *t = r->transcript;

    if (o) {
        put_staged(o->staged, o->n, out);
    } else {
        put_staged(t->staged + r->staged, t->n_staged - r->staged, out);
        r->staged = t->n_staged;
    }
    put_slices(r, o, o != NULL, ",\"slices\":{", out);
    if (o && r->shares && r->shares(r->beside_ud, o))
        ah_buf_str(out, ",\"shared\":true");
    if (r->changed)
        r->changed(r->changed_ud, out);
    r->applying = r->applying || o;
}

void ah_recorder_applied(ah_recorder *r, bool done)
{
    if (!r->applying)
        return;
    r->applying = false;
    if (done)
        r->staged = r->transcript->n_staged;
    for (size_t i = 0; i < r->slices && done; i++)
        set_cell(r, &r->slice[i].head, r->slice[i].ahead);
    forget_ahead(r);
}

void ah_recorder_committed(ah_recorder *r)
{
    r->entries = r->transcript->n;
    r->staged = r->transcript->n_staged;
    r->answered = false;
}
