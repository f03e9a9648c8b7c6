/* Reads a transcript from its JSON text (docs/reference/transcript.md). Each entry of the file
 * is first checked against a schema, so that later code can rely on its members. */
#include "model/image.h"
#include "model/transcript.h"
#include "schema/schema.h"

#define STRING "{\"type\":\"string\"}"
#define OBJECT(required, members)                                                                  \
    "{\"type\":\"object\",\"required\":[" required "],\"properties\":{" members "}}"
#define PARTS                                                                                      \
    "{\"type\":\"array\",\"items\":" OBJECT("\"type\"", "\"type\":" STRING ",\"text\":" STRING) "}"
#define TOOLS                                                                                      \
    OBJECT("\"tools\"",                                                                            \
           "\"tools\":{\"type\":\"array\",\"items\":" OBJECT(                                      \
               "\"name\",\"description\",\"parameters\"",                                          \
               "\"name\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64},"                  \
               "\"description\":" STRING ",\"parameters\":{\"type\":\"object\"}") "}")

#define TICKET "\"ticket\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9007199254740991}"

/* Only members with a required type; others, and other entries, are allowed. */
static const char *const shapes[AH_ENTRY_KINDS] = {
    [AH_ENTRY_SETTINGS] =
        OBJECT("\"model\",\"options\"", "\"model\":" STRING ",\"options\":{\"type\":\"object\"},"
                                        "\"given\":{\"type\":\"object\"}"),
    [AH_ENTRY_ASSISTANT] = OBJECT(
        "\"content\"", "\"content\":" PARTS ",\"tool_calls\":{\"type\":\"array\",\"items\":" OBJECT(
                           "\"id\",\"name\",\"arguments\"",
                           "\"id\":" STRING ",\"name\":" STRING ",\"arguments\":" STRING) "}"),
    [AH_ENTRY_TOOL_RESULT] =
        OBJECT("\"id\",\"name\",\"content\",\"success\"",
               "\"id\":" STRING ",\"name\":" STRING ",\"content\":" STRING ",\"images\":" PARTS
               ",\"success\":{\"type\":\"boolean\"}," TICKET),
    [AH_ENTRY_TOOLS_ADDED] = TOOLS,
    [AH_ENTRY_TOOLS_DEFERRED] = TOOLS,
    [AH_ENTRY_TOOLS_REMOVED] =
        OBJECT("\"names\"", "\"names\":{\"type\":\"array\",\"items\":" STRING "}"),
    [AH_ENTRY_PROMPT] = OBJECT("\"text\"", "\"text\":" STRING),
    [AH_ENTRY_STRATEGY] = OBJECT("\"name\",\"state\"", "\"name\":" STRING),
    [AH_ENTRY_NOTE] = OBJECT("\"text\"", "\"text\":" STRING ",\"images\":" PARTS "," TICKET),
    [AH_ENTRY_USER] = OBJECT("\"content\"", "\"content\":" PARTS),
    [AH_ENTRY_COMPACTED] = "true",
};

typedef struct shape_set {
    const ah_mem *mem;
    ah_schema *of[AH_ENTRY_KINDS]; /* compiled when first needed */
    ah_faults faults;
} shape_set;

static void clear_shapes(shape_set *s)
{
    for (int k = 0; k < AH_ENTRY_KINDS; k++)
        ah_schema_unref(s->of[k]);
    ah_faults_clear(&s->faults);
}

static ah_entry_kind kind_of(ah_slice type)
{
    int k = 0;

    while (k < AH_ENTRY_KINDS && !ah_json_string_is(type, ah_entry_name((ah_entry_kind)k)))
        k++;
    return (ah_entry_kind)k;
}

static ah_status check_shape(shape_set *s, ah_entry_kind kind, ah_slice json, size_t at,
                             ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf words;

    if (!s->of[kind])
        st = ah_schema_compile(s->mem, ah_slice_of(shapes[kind]), &s->of[kind], err);
    if (st == AH_OK &&
        ah_schema_check(s->of[kind], json, AH_EXTRA_SCHEMA, &s->faults, NULL) != AH_OK)
        st = ah_err_nomem(err);
    if (st != AH_OK || s->faults.n == 0)
        return st;
    ah_buf_init(&words, s->mem, sizeof err->message);
    ah_faults_print(&s->faults, &words);
    ah_err_set(err, AH_USAGE, "entry %zu (%s): %.*s", at, ah_entry_name(kind),
               AH_FMT(ah_buf_slice(&words)));
    ah_buf_clear(&words);
    return AH_USAGE;
}

/* Checks images where they are allowed: in user messages, and in results of tools and notes. */
static ah_status check_images(shape_set *s, ah_entry_kind kind, ah_slice json, size_t at,
                              ah_err *err)
{
    bool result = kind == AH_ENTRY_TOOL_RESULT || kind == AH_ENTRY_NOTE;
    char why[sizeof err->message];
    ah_status st;

    if (!result && kind != AH_ENTRY_USER)
        return AH_OK;
    st = ah_images_check(s->mem, ah_json_member(json, result ? "images" : "content"), err);
    if (st != AH_USAGE)
        return st;
    memcpy(why, err->message, sizeof why);
    return ah_err_set(err, AH_USAGE, "entry %zu (%s): %s", at, ah_entry_name(kind), why);
}

/* Reads one entry; a kind of a later version gives none. */
static ah_status read_entry(shape_set *s, ah_slice json, size_t at, ah_entry *out, ah_err *err)
{
    ah_entry_kind kind = kind_of(ah_json_member(json, "type"));
    ah_status st;

    *out = (ah_entry){.kind = AH_ENTRY_KINDS};
    if (ah_json_kind_of(json) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_USAGE, "entry %zu is no object", at);
    if (kind == AH_ENTRY_KINDS)
        return AH_OK;
    st = check_shape(s, kind, json, at, err);
    if (st == AH_OK)
        st = check_images(s, kind, json, at, err);
    if (st == AH_OK && !(out->json = ah_text_new(s->mem, json)))
        st = ah_err_nomem(err);
    out->kind = kind;
    return st;
}

static ah_status read_list(ah_transcript *t, shape_set *s, ah_slice list, bool staged, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token token = ah_json_next(&r);
    ah_status st = AH_OK;

    token = ah_json_next(&r);
    for (size_t at = 0; st == AH_OK && token.kind != AH_JSON_ARRAY_END && token.kind != AH_JSON_END;
         at++, token = ah_json_next(&r)) {
        ah_entry e;

        st = read_entry(s, ah_json_skip(&r, token), at, &e, err);
        if (st == AH_OK && e.json)
            st = staged ? ah_transcript_stage(t, e.kind, e.json, err)
                        : ah_transcript_add(t, e.kind, e.json, err);
    }
    return st;
}

/* Restores saved results; calls without one get "outcome unknown". */
static ah_status read_results(ah_transcript *t, shape_set *s, ah_slice list, ah_err *err)
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
            st = read_entry(s, ah_json_skip(&r, token), at, &e, err);
        if (st == AH_OK && e.json && e.kind == AH_ENTRY_TOOL_RESULT)
            ah_transcript_fill(t, at, e.json);
        else
            ah_text_unref(e.json);
    }
    return st;
}

static ah_status read_pending(ah_transcript *t, shape_set *s, ah_slice pending, ah_err *err)
{
    ah_entry e;
    ah_status st = read_entry(s, ah_json_member(pending, "assistant"), t->n, &e, err);

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
    shape_set s = {.mem = t->mem};
    ah_status st;

    if (!ah_json_members(text, want, 3) || !ah_slice_is(version, "1") ||
        ah_json_kind_of(entries) != AH_JSON_ARRAY)
        return ah_err_set(err, AH_USAGE,
                          "it is no conversation of this version (\"agenthost_transcript\":1 and "
                          "entries are expected)");
    ah_faults_init(&s.faults, t->mem);
    st = read_list(t, &s, entries, false, err);
    if (st == AH_OK && ah_json_kind_of(pending) == AH_JSON_OBJECT)
        st = read_pending(t, &s, pending, err);
    clear_shapes(&s);
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
