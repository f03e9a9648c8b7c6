/* Reads a transcript from its JSON text (docs/reference/transcript.md). Each entry of the file
 * is first checked against a schema (entry_reader.h), so that later code can rely on its members.
 */
#include "model/entry_reader.h"

static ah_status read_list(ah_transcript *t, ah_entry_reader *s, ah_slice list, bool staged,
                           ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token token = ah_json_next(&r);
    ah_status st = AH_OK;

    token = ah_json_next(&r);
    for (size_t at = 0; st == AH_OK && token.kind != AH_JSON_ARRAY_END && token.kind != AH_JSON_END;
         at++, token = ah_json_next(&r)) {
        ah_entry e;

        st = ah_entry_read(s, ah_json_skip(&r, token), at, &e, err);
        if (st == AH_OK && e.json)
            st = staged ? ah_transcript_stage(t, e.kind, e.json, err)
                        : ah_transcript_add(t, e.kind, e.json, err);
    }
    return st;
}

/* Restores saved results; calls without one get "outcome unknown". */
static ah_status read_results(ah_transcript *t, ah_entry_reader *s, ah_slice list, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_status st = AH_OK;
    size_t at = 0;

    ah_json_next(&r);
    for (; at < t->n_slots && st == AH_OK; at++) {
        ah_json_token token = ah_json_next(&r);
        ah_entry e = {.kind = AH_ENTRY_KINDS};

        if (token.kind == AH_JSON_ARRAY_END || token.kind == AH_JSON_END)
            break;
        if (token.kind != AH_JSON_NULL)
            st = ah_entry_read(s, ah_json_skip(&r, token), at, &e, err);
        if (st == AH_OK && e.json && e.kind == AH_ENTRY_TOOL_RESULT)
            ah_transcript_fill(t, at, e.json);
        else
            ah_text_unref(e.json);
    }
    return st;
}

static ah_status read_pending(ah_transcript *t, ah_entry_reader *s, ah_slice pending, ah_err *err)
{
    ah_entry e;
    ah_status st = ah_entry_read(s, ah_json_member(pending, "assistant"), t->n, &e, err);

    if (st == AH_OK && e.kind != AH_ENTRY_ASSISTANT) {
        ah_text_unref(e.json);
        return ah_err_set(err, AH_USAGE, "the pending turn has no assistant entry");
    }
    if (st == AH_OK)
        st = ah_transcript_begin(t, e.json, err);
    if (st == AH_OK)
        st = read_results(t, s, ah_json_member(pending, "results"), err);
    if (st == AH_OK)
        st = read_list(t, s, ah_json_member(pending, "staged"), true, err);
    for (size_t i = 0; st == AH_OK && i < t->n_slots; i++)
        ah_transcript_settle(
            t, i,
            "Cancelled: the program ended before this call was answered. Its outcome "
            "is unknown.",
            0);
    if (st == AH_OK)
        ah_transcript_commit(t);
    return st;
}

static ah_status read_all(ah_transcript *t, ah_slice text, ah_err *err)
{
    ah_slice version, entries, pending;
    const ah_json_slot want[] = {
        {"agenthost_transcript", &version}, {"entries", &entries}, {"pending", &pending}};
    ah_entry_reader s;
    ah_status st;

    if (!ah_json_members(text, want, 3) || !ah_slice_is(version, "1") ||
        ah_json_kind_of(entries) != AH_JSON_ARRAY)
        return ah_err_set(err, AH_USAGE,
                          "it is no conversation of this version (\"agenthost_transcript\":1 and "
                          "entries are expected)");
    ah_entry_reader_init(&s, t->mem);
    st = read_list(t, &s, entries, false, err);
    if (st == AH_OK && ah_json_kind_of(pending) == AH_JSON_OBJECT)
        st = read_pending(t, &s, pending, err);
    ah_entry_reader_clear(&s);
    if (st == AH_OK && ah_transcript_sound(t, err) != AH_OK)
        err->status = st = AH_USAGE;
    return st;
}

ah_status ah_transcript_read(const ah_mem *mem, ah_slice text, ah_transcript **out, ah_err *err)
{
    ah_transcript *t;
    ah_status st = ah_json_check_err(mem, text, "it", err);

    if (st == AH_TOOL_VALIDATION)
        err->status = AH_USAGE;
    if (st != AH_OK)
        return err->status;
    if (!(t = ah_transcript_new(mem)))
        return ah_err_nomem(err);
    st = read_all(t, text, err);
    if (st == AH_OK)
        *out = t;
    else
        ah_transcript_unref(t);
    return st;
}
