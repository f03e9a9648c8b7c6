/* Checks the members of entries, each kind by a schema. The usual entries of a long conversation
 * are found to fit without it, at a third of the cost. */
#include "model/entry_reader.h"

#include "model/image.h"

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

void ah_entry_reader_init(ah_entry_reader *r, const ah_mem *mem)
{
    *r = (ah_entry_reader){.mem = mem};
    ah_faults_init(&r->faults, mem);
}

void ah_entry_reader_clear(ah_entry_reader *r)
{
    for (int k = 0; k < AH_ENTRY_KINDS; k++)
        ah_schema_unref(r->shape[k]);
    ah_faults_clear(&r->faults);
    *r = (ah_entry_reader){.mem = r->mem};
}

static ah_entry_kind kind_of(ah_slice type)
{
    int k = 0;

    while (k < AH_ENTRY_KINDS && !ah_json_string_is(type, ah_entry_name((ah_entry_kind)k)))
        k++;
    return (ah_entry_kind)k;
}

/* -- usual entries ------------------------------------------------------------------------ */

static bool is_string(ah_slice value)
{
    return ah_json_kind_of(value) == AH_JSON_STRING;
}

static bool is_part(ah_slice part)
{
    ah_slice type, text;
    const ah_json_slot want[] = {{"type", &type}, {"text", &text}};

    return ah_json_members(part, want, 2) && is_string(type) && (!text.p || is_string(text));
}

static bool is_call(ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    return ah_json_members(call, want, 3) && is_string(id) && is_string(name) &&
           is_string(arguments);
}

/* True if it is a list of such items. */
static bool is_list(ah_slice list, bool (*is_item)(ah_slice item))
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    bool is = t.kind == AH_JSON_ARRAY;

    if (is)
        t = ah_json_next(&r);
    while (is && t.kind != AH_JSON_ARRAY_END) {
        is = is_item(ah_json_skip(&r, t));
        t = ah_json_next(&r);
    }
    return is;
}

static bool is_usual_result(ah_slice json)
{
    ah_slice id, name, content, success, images, ticket;
    const ah_json_slot want[] = {{"id", &id},           {"name", &name},     {"content", &content},
                                 {"success", &success}, {"images", &images}, {"ticket", &ticket}};

    return ah_json_members(json, want, 6) && !images.p && !ticket.p && is_string(id) &&
           is_string(name) && is_string(content) &&
           (ah_slice_is(success, "true") || ah_slice_is(success, "false"));
}

static bool is_usual_answer(ah_slice json)
{
    ah_slice content, calls;
    const ah_json_slot want[] = {{"content", &content}, {"tool_calls", &calls}};

    return ah_json_members(json, want, 2) && is_list(content, is_part) &&
           (!calls.p || is_list(calls, is_call));
}

/* True if the entry fits its shape and has no images. False says nothing. */
static bool is_usual(ah_entry_kind kind, ah_slice json)
{
    return kind == AH_ENTRY_TOOL_RESULT ? is_usual_result(json)
           : kind == AH_ENTRY_ASSISTANT ? is_usual_answer(json)
                                        : false;
}

/* -- all entries --------------------------------------------------------------------------- */

static ah_status check_shape(ah_entry_reader *r, ah_entry_kind kind, ah_slice json, size_t at,
                             ah_err *err)
{
    ah_status st = AH_OK;
    ah_buf words;

    if (!r->shape[kind])
        st = ah_schema_compile(r->mem, ah_slice_of(shapes[kind]), &r->shape[kind], err);
    if (st == AH_OK &&
        ah_schema_check(r->shape[kind], json, AH_EXTRA_SCHEMA, &r->faults, NULL) != AH_OK)
        st = ah_err_nomem(err);
    if (st != AH_OK || r->faults.n == 0)
        return st;
    ah_buf_init(&words, r->mem, sizeof err->message);
    ah_faults_print(&r->faults, &words);
    ah_err_set(err, AH_USAGE, "entry %zu (%s): %.*s", at, ah_entry_name(kind),
               AH_FMT(ah_buf_slice(&words)));
    ah_buf_clear(&words);
    return AH_USAGE;
}

/* Checks images where they are allowed: in user messages, and in results of tools and notes. */
static ah_status check_images(ah_entry_reader *r, ah_entry_kind kind, ah_slice json, size_t at,
                              ah_err *err)
{
    bool result = kind == AH_ENTRY_TOOL_RESULT || kind == AH_ENTRY_NOTE;
    char why[sizeof err->message];
    ah_status st;

    if (!result && kind != AH_ENTRY_USER)
        return AH_OK;
    st = ah_images_check(r->mem, ah_json_member(json, result ? "images" : "content"), err);
    if (st != AH_USAGE)
        return st;
    memcpy(why, err->message, sizeof why);
    return ah_err_set(err, AH_USAGE, "entry %zu (%s): %s", at, ah_entry_name(kind), why);
}

static ah_status check_members(ah_entry_reader *r, ah_entry_kind kind, ah_slice json, size_t at,
                               ah_err *err)
{
    ah_status st = check_shape(r, kind, json, at, err);

    return st == AH_OK ? check_images(r, kind, json, at, err) : st;
}

ah_status ah_entry_read(ah_entry_reader *r, ah_slice json, size_t at, ah_entry *out, ah_err *err)
{
    ah_entry_kind kind = kind_of(ah_json_member(json, "type"));
    ah_status st;

    *out = (ah_entry){.kind = AH_ENTRY_KINDS};
    if (ah_json_kind_of(json) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_USAGE, "entry %zu is no object", at);
    if (kind == AH_ENTRY_KINDS)
        return AH_OK;
    st = is_usual(kind, json) ? AH_OK : check_members(r, kind, json, at, err);
    if (st == AH_OK && !(out->json = ah_text_new(r->mem, json)))
        st = ah_err_nomem(err);
    out->kind = kind;
    return st;
}
