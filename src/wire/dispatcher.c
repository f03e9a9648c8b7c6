/* Wraps calls when a conversation is lowered, and unwraps them when an answer is read. lower.c
 * decides when the mode is used. */
#include "wire/dispatcher.h"

#include "model/tool_spec.h"

const char ah_dispatcher_spec[] =
    "{\"description\":\"Calls a tool that was announced during the conversation, by its name.\","
    "\"name\":\"" AH_DISPATCHER "\",\"parameters\":{\"additionalProperties\":false,\"properties\":{"
    "\"arguments\":{\"description\":\"The tool's own arguments.\",\"type\":\"object\"},"
    "\"name\":{\"description\":\"The tool's name.\",\"type\":\"string\"}},"
    "\"required\":[\"name\"],\"type\":\"object\"}}";

static void put_tools(ah_slice tools, ah_buf *text)
{
    ah_buf_str(text, "New tools. Call them through " AH_DISPATCHER ", by their names: ");
    ah_spec_put_told_list(tools, text);
}

void ah_dispatcher_note(ah_slice json, ah_buf *out)
{
    ah_slice tools = ah_json_member(json, "tools"), names = ah_json_member(json, "names");
    ah_buf text;

    ah_buf_init(&text, out->mem, out->max);
    if (tools.p)
        put_tools(tools, &text);
    else
        ah_buf_fmt(&text, "These tools are no longer available: %.*s", AH_FMT(names));
    ah_buf_str(out, "{\"type\":\"note\",\"text\":");
    ah_json_put_string(out, ah_buf_slice(&text));
    ah_buf_char(out, '}');
    if (!ah_buf_ok(&text))
        out->status = text.status;
    ah_buf_clear(&text);
}

/* -- lowering ------------------------------------------------------------------------ */

static bool is_late(const ah_offers *o, ah_slice name)
{
    const ah_offer *t = ah_offers_find(o, name);

    return t && t->late;
}

static bool calls_late(const ah_offers *o, ah_slice calls)
{
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    bool late = false;

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT && !late; t = ah_json_next(&r))
        late = is_late(o, ah_json_member(ah_json_skip(&r, t), "name"));
    return late;
}

/* Appends {"name":..,"arguments":{..}} as a JSON string, the form of arguments. Arguments from
 * another wire that are no JSON become {}. */
static void put_arguments(ah_slice name, ah_slice arguments, ah_buf *out)
{
    ah_buf inner;
    size_t at;

    ah_buf_init(&inner, out->mem, out->max);
    ah_buf_fmt(&inner, "{\"name\":%.*s,\"arguments\":", AH_FMT(name));
    at = inner.len;
    ah_json_unescape(ah_json_inside(arguments), &inner);
    if (ah_buf_ok(&inner) && ah_json_check(out->mem, (ah_slice){inner.data + at, inner.len - at},
                                           AH_JSON_MAX_DEPTH, NULL) != AH_OK) {
        ah_buf_reset(&inner, at);
        ah_buf_str(&inner, "{}");
    }
    ah_buf_char(&inner, '}');
    ah_json_put_string(out, ah_buf_slice(&inner));
    if (!ah_buf_ok(&inner))
        out->status = inner.status;
    ah_buf_clear(&inner);
}

static void wrap_call(const ah_offers *o, ah_slice call, ah_buf *out)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    if (!is_late(o, name)) {
        ah_buf_put(out, call);
        return;
    }
    ah_buf_fmt(out, "{\"id\":%.*s,\"name\":\"" AH_DISPATCHER "\",\"arguments\":", AH_FMT(id));
    put_arguments(name, arguments, out);
    ah_buf_char(out, '}');
}

static void wrap_calls(const ah_offers *o, ah_slice calls, ah_buf *out)
{
    ah_json_reader r = ah_json_read(calls);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '[');
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(out, n++ ? "," : "");
        wrap_call(o, ah_json_skip(&r, t), out);
    }
    ah_buf_char(out, ']');
}

/* Appends the entry with one member replaced: wrapped calls, or the name of a result. */
static void wrap(const ah_offers *o, ah_slice json, const char *member, ah_buf *out)
{
    ah_json_reader r = ah_json_read(json);
    ah_json_token key = ah_json_next(&r);
    size_t n = 0;

    ah_buf_char(out, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        ah_buf_fmt(out, n++ ? ",\"%.*s\":" : "\"%.*s\":", AH_FMT(key.raw));
        if (!ah_json_token_is(key, member))
            ah_buf_put(out, value);
        else if (ah_json_kind_of(value) == AH_JSON_ARRAY)
            wrap_calls(o, value, out);
        else
            ah_buf_str(out, "\"" AH_DISPATCHER "\"");
    }
    ah_buf_char(out, '}');
}

bool ah_dispatcher_wrap(const ah_offers *o, const ah_entry *e, ah_buf *out)
{
    ah_slice json = ah_text_slice(e->json);
    bool calls = e->kind == AH_ENTRY_ASSISTANT && calls_late(o, ah_json_member(json, "tool_calls"));
    bool result = e->kind == AH_ENTRY_TOOL_RESULT && is_late(o, ah_json_member(json, "name"));

    if (calls || result)
        wrap(o, json, calls ? "tool_calls" : "name", out);
    return calls || result;
}

/* -- reading --------------------------------------------------------------------------- */

void ah_dispatcher_unwrap(const ah_mem *mem, ah_buf *name, ah_buf *arguments)
{
    ah_slice text = ah_buf_slice(arguments), inner, given;
    const ah_json_slot want[] = {{"name", &inner}, {"arguments", &given}};
    ah_buf made;

    if (!ah_slice_is(ah_buf_slice(name), AH_DISPATCHER) ||
        ah_json_check(mem, text, AH_JSON_MAX_DEPTH, NULL) != AH_OK ||
        !ah_json_members(text, want, 2) || ah_json_kind_of(inner) != AH_JSON_STRING)
        return;
    ah_buf_reset(name, 0);
    ah_json_unescape(ah_json_inside(inner), name);
    ah_buf_init(&made, mem, arguments->max);
    ah_buf_put(&made, given.p ? given : ah_slice_of("{}"));
    ah_buf_reset(arguments, 0);
    ah_buf_put(arguments, ah_buf_slice(&made));
    if (!ah_buf_ok(&made))
        arguments->status = made.status;
    ah_buf_clear(&made);
}
