/* OpenAI Responses: requests from the transcript (POST {base}/responses), and the adapter.
 * responses_read.c reads the responses. The service stores nothing: each request contains the whole
 * conversation, with reasoning in its encrypted form. */
#include "model/tool_spec.h"
#include "wire/dialect.h"
#include "wire/openai.h"
#include "wire/reader.h"
#include "wire/responses_read.h"
#include "wire/strict.h"

#include <stdio.h>

enum { PREFIX = sizeof "responses/" - 1 }; /* of the model's name in conversations */

static ah_slice wire_model(ah_slice model)
{
    return (ah_slice){model.p + PREFIX, model.n - PREFIX};
}

/* -- the head ---------------------------------------------------------------------------------- */

/* This wire has no `stop` and no `seed`. */
static void put_options(const ah_adapter *a, ah_wire *w)
{
    static const ah_choice_words words = {"{\"type\":\"function\",\"name\":", "}", "", ""};
    const ah_model_options *o = &w->settings.options;
    ah_slice effort = o->reasoning;
    bool thinks = effort.p && !ah_wire_lacks(w, AH_MODEL_THINKS);
    ah_buf *b = &w->head;

    ah_wire_put_option(b, "prompt_cache_key", o->cache_key);
    ah_wire_put_option(b, "max_output_tokens", o->max_tokens);
    ah_wire_put_option(b, "temperature", o->temperature);
    ah_wire_put_option(b, "top_p", o->top_p);
    if (thinks)
        ah_buf_fmt(b, ",\"reasoning\":{\"effort\":%.*s}",
                   AH_FMT(ah_model_effort(&a->known, effort)));
    if ((thinks || ah_model_can(&a->known, AH_MODEL_ENCRYPTED, false)) &&
        !ah_wire_lacks(w, AH_MODEL_ENCRYPTED))
        ah_buf_str(b, ",\"include\":[\"reasoning.encrypted_content\"]");
    ah_buf_str(b, ",\"store\":false");
    ah_openai_put_choice(a, w, &words);
}

/* Without `strict` the service would try strict mode, and change the schema by its own rules. */
static void put_definition(const ah_wire *w, ah_buf *b, ah_slice spec, bool deferred)
{
    bool strict;

    ah_buf_fmt(b, "{\"type\":\"function\",\"name\":%.*s", AH_FMT(ah_json_member(spec, "name")));
    ah_spec_put_description(",\"description\":", spec, b);
    ah_buf_str(b, ",\"parameters\":");
    strict = ah_strict_put_parameters(w, spec, b) == AH_STRICT_ON;
    ah_buf_fmt(b, ",\"strict\":%s%s}", strict ? "true" : "false",
               deferred ? ",\"defer_loading\":true" : "");
}

static void put_tool(const ah_wire *w, ah_slice spec, ah_buf *b)
{
    put_definition(w, b, spec, false);
}

static void put_deferred(const ah_wire *w, ah_slice spec, ah_buf *b)
{
    put_definition(w, b, spec, true);
}

static size_t begin_tool(ah_buf *b, size_t *n)
{
    ah_buf_str(b, (*n)++ ? "," : ",\"tools\":[");
    return ah_segment_begin(b);
}

/* Appends the search tool, if there is a search: the service's own, or one that the model asks us
 * for. The latter is search_tools in another form; without deferred tools it finds nothing. */
static void put_search_tool(const ah_wire *w, ah_buf *b)
{
    static const char nothing[] =
        "\"description\":\"New tools are loaded here by themselves as they come; there is "
        "nothing to search.\",\"parameters\":{\"additionalProperties\":false,\"properties\":{},"
        "\"type\":\"object\"}}";
    const ah_offer *ours = ah_offers_find(&w->offers, ah_slice_of("\"" AH_SEARCH_TOOLS "\""));

    if (w->mode != AH_TOOLS_SEARCH_PAIR) {
        ah_buf_str(b, "{\"type\":\"tool_search\"}");
        return;
    }
    ah_buf_str(b, "{\"type\":\"tool_search\",\"execution\":\"client\",");
    if (w->deferral.p && ours)
        ah_buf_fmt(b, "\"description\":%.*s,\"parameters\":%.*s}",
                   AH_FMT(ah_json_member(ours->spec, "description")),
                   AH_FMT(ah_json_member(ours->spec, "parameters")));
    else
        ah_buf_str(b, nothing);
}

/* False for a script's own tool of that name. */
static bool is_search(const ah_wire *w, ah_slice name)
{
    return w->mode == AH_TOOLS_SEARCH_PAIR && ah_json_string_is(name, AH_SEARCH_TOOLS) &&
           (w->deferral.p || !ah_offers_find(&w->offers, name));
}

static void put_tools(ah_wire *w)
{
    bool own = ah_wire_defers(w) && w->searching == AH_SEARCH_MODE_OWN;
    ah_buf *b = &w->head;
    ah_segment_kind kind;
    size_t at = 0, entry, n = 0, from;
    ah_slice spec;

    while ((spec = ah_wire_tool(w, &at, &kind, &entry)).p) {
        if (is_search(w, ah_json_member(spec, "name")))
            continue;
        from = begin_tool(b, &n);
        put_definition(w, b, spec, kind == AH_SEGMENT_DEFERRED);
        ah_segment_end(w, kind, entry, b, from);
    }
    if (own || w->mode == AH_TOOLS_SEARCH_PAIR) {
        from = begin_tool(b, &n);
        put_search_tool(w, b);
        ah_segment_end(w, AH_SEGMENT_TOOL, 0, b, from);
    }
    if (n)
        ah_buf_char(b, ']');
}

/* Strict only if the schema fits the strict rules; else it is a hint, and checked by us. */
static void put_output(ah_wire *w)
{
    ah_slice schema = ah_wire_output(w);

    if (!schema.p)
        return;
    ah_buf_fmt(
        &w->head,
        ",\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"output\",\"schema\":%.*s,"
        "\"strict\":%s}}",
        AH_FMT(schema), ah_strict_fits(AH_STRICT_OPENAI, schema, NULL) ? "true" : "false");
}

static void head(const ah_adapter *a, ah_wire *w)
{
    ah_buf *b = &w->head;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, wire_model(ah_text_slice(a->model)));
    put_options(a, w);
    put_output(w);
    if (a->stream)
        ah_buf_str(b, ",\"stream\":true");
    put_tools(w);
    if (w->system.p)
        ah_buf_str(b, ",\"instructions\":");
    ah_wire_put_system(w, "", "");
    ah_buf_str(b, ",\"input\":[");
}

/* -- items ------------------------------------------------------------------------------------- */

/* Arguments of a search are an object; those of a call are a string. */
static void put_search(const ah_wire *w, ah_buf *b, ah_slice id, ah_slice arguments)
{
    ah_buf_str(b, ",{\"type\":\"tool_search_call\",\"call_id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"execution\":\"client\",\"arguments\":");
    ah_dialect_put_arguments(w, ah_slice_of("\"" AH_SEARCH_TOOLS "\""), arguments, b);
    ah_buf_str(b, ",\"status\":\"completed\"}");
}

/* Appends its output: the tools of a tools_added entry that entry `entry` declares; none if .p is
 * NULL. */
static void put_found(const ah_wire *w, ah_buf *b, ah_slice id, ah_slice added, size_t entry)
{
    ah_buf_str(b, ",{\"type\":\"tool_search_output\",\"call_id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"execution\":\"client\",\"status\":\"completed\",\"tools\":[");
    ah_wire_put_added(w, added, entry, b, put_deferred);
    ah_buf_str(b, "]}");
}

static void put_call(const ah_wire *w, ah_buf *b, ah_slice call, ah_slice space)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    if (is_search(w, name)) {
        put_search(w, b, id, arguments);
        return;
    }
    ah_buf_str(b, ",{\"type\":\"function_call\",\"call_id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"name\":");
    ah_wire_put_name(b, name);
    ah_buf_str(b, ",\"arguments\":");
    ah_dialect_put_text(w, name, arguments, b);
    if (space.p)
        ah_buf_fmt(b, ",\"namespace\":%.*s", AH_FMT(space));
    ah_buf_char(b, '}');
}

/* An assistant entry that is being lowered. */
typedef struct walk {
    const ah_wire *w;
    ah_buf *b;
    ah_json_reader calls;
    size_t called; /* number of calls written */
    ah_slice text; /* a text part whose phase may still follow; .p NULL: none */
} walk;

static void put_calls(walk *k, size_t n, ah_slice space)
{
    while (k->called < n) {
        ah_json_token t = ah_json_next(&k->calls);

        if (t.kind != AH_JSON_OBJECT)
            return;
        k->called++;
        put_call(k->w, k->b, ah_json_skip(&k->calls, t), space);
    }
}

static void put_text(walk *k, ah_slice phase)
{
    if (!k->text.p)
        return;
    ah_buf_fmt(k->b, ",{\"role\":\"assistant\",\"content\":%.*s", AH_FMT(k->text));
    if (phase.p)
        ah_buf_fmt(k->b, ",\"phase\":%.*s", AH_FMT(phase));
    ah_buf_char(k->b, '}');
    k->text = (ah_slice){NULL, 0};
}

/* Appends an item of the service in its place; a mark is added to what precedes it. */
static void put_opaque(walk *k, ah_slice data, size_t before)
{
    static const ah_slice none = {NULL, 0};
    ah_slice phase, space, type;
    const ah_json_slot want[] = {{"phase", &phase}, {"namespace", &space}, {"type", &type}};

    ah_json_members(data, want, 3);
    put_text(k, type.p ? none : phase);
    if (!type.p && space.p && before > 0)
        put_calls(k, before - 1, none);
    put_calls(k, before, type.p ? none : space);
    if (!type.p)
        return;
    ah_buf_char(k->b, ',');
    ah_buf_put(k->b, data);
}

/* Items of the service's own search, sent back only while it searches. */
static const char *const searches[] = {"tool_search_call", "tool_search_output", NULL};

/* Reasoning without the item that followed it is refused; a mark is not
 * such an item. */
static bool stands(const ah_wire *w, ah_slice data)
{
    ah_slice type = ah_json_member(data, "type");

    return type.p && !ah_json_string_is(type, "reasoning") && !ah_wire_left_out(w, data, searches);
}

static void put_assistant(const ah_adapter *a, ah_wire *w, ah_slice json)
{
    walk k = {.w = w, .b = &w->body, .calls = ah_json_read(ah_json_member(json, "tool_calls"))};
    ah_json_reader parts = ah_json_read(ah_json_member(json, "content"));
    ah_json_token t = ah_json_next(&parts);
    ah_slice none = {NULL, 0}, data;
    size_t before;

    ah_json_next(&k.calls);
    for (t = ah_json_next(&parts); t.kind == AH_JSON_OBJECT; t = ah_json_next(&parts)) {
        ah_slice part = ah_json_skip(&parts, t), text = ah_json_member(part, "text");

        if (ah_wire_part_of_ours(a, part, &data, &before)) {
            if (!ah_wire_left_out(w, data, searches))
                put_opaque(&k, data, before);
        } else if (ah_json_kind_of(text) == AH_JSON_STRING) {
            put_text(&k, none);
            k.text = text;
        }
    }
    put_text(&k, none);
    put_calls(&k, SIZE_MAX, none);
}

static const ah_part_words parts_here = {
    "{\"type\":\"input_text\",\"text\":", "{\"type\":\"input_image\",\"image_url\":", "}"};

/* A result with images is a list: its text, then the images. */
static void put_answer(const ah_adapter *a, ah_buf *b, ah_slice json)
{
    /* This wire has no error flag: the text marks a failure. */
    bool failed = ah_json_kind_of(ah_json_member(json, "success")) == AH_JSON_FALSE;
    ah_json_reader r = ah_wire_result_images(json);
    const char *lead = failed ? "Error: " : "";
    ah_image image;

    if (!ah_wire_next_shown(a, &r, &image)) {
        ah_wire_put_result_text(a, b, lead, json);
        return;
    }
    ah_buf_fmt(b, "[%s", parts_here.text);
    ah_wire_put_result_text(a, b, lead, json);
    do {
        ah_buf_fmt(b, "},%s", parts_here.image);
        ah_wire_put_image_url(b, &image);
    } while (ah_wire_next_shown(a, &r, &image));
    ah_buf_fmt(b, "%s]", parts_here.image_end);
}

static void put_result(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice json)
{
    ah_slice id, name;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}};

    ah_json_members(json, want, 2);
    if (is_search(w, name)) {
        put_found(w, b, id, ah_wire_found(w, id), 0);
        return;
    }
    ah_buf_str(b, ",{\"type\":\"function_call_output\",\"call_id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"output\":");
    put_answer(a, b, json);
    ah_buf_char(b, '}');
}

/* Declares new tools in their place: as their own item, or as the result of a search. */
static void put_added(ah_wire *w, ah_slice json)
{
    ah_buf *b = &w->body;
    char id[48];

    if (w->mode == AH_TOOLS_SEARCH_PAIR) {
        snprintf(id, sizeof id, "\"found_%zu\"", w->done);
        put_search(w, b, ah_slice_of(id), ah_slice_of("\"{}\""));
        put_found(w, b, ah_slice_of(id), json, w->done);
        return;
    }
    ah_buf_str(b, ",{\"type\":\"additional_tools\",\"role\":\"developer\",\"tools\":[");
    ah_wire_put_added(w, json, w->done, b, put_tool);
    ah_buf_str(b, "]}");
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    ah_slice json = ah_text_slice(e->json);
    ah_buf *b = &w->body;
    size_t at = ah_segment_begin(b);

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, w, b, json);
    else if (e->kind == AH_ENTRY_USER)
        ah_wire_put_user(b, &parts_here, ah_json_member(json, "content"));
    else if (e->kind == AH_ENTRY_TOOLS_ADDED)
        put_added(w, json);
    else
        ah_wire_put_message(b, "developer", ah_json_member(json, "text"));
    if (b->len > at)
        ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

static const ah_adapter_vt vt = {
    .name = "openai",
    .revision = 1,
    .head = head,
    .entry = entry,
    .stands = stands,
    .tail = "]}",
    .request = ah_openai_post,
    .open = ah_responses_open,
    .head_came = ah_wire_reader_head_came,
    .feed = ah_wire_reader_feed,
    .end = ah_wire_reader_end,
    .close = ah_wire_reader_close,
    .free = ah_openai_free,
};

ah_status ah_responses_new(const ah_server *server, ah_slice model, const ah_provider_options *o,
                           ah_adapter **out, ah_err *err)
{
    enum { SPOKEN = AH_TOOLS_ANYWHERE | 1 << AH_TOOLS_ADDITIONAL | 1 << AH_TOOLS_SEARCH_PAIR };
    ah_openai_wire wire = {.vt = &vt,
                           .path = "/responses",
                           .native_output = true,
                           .reasoning_back = true,
                           .asks = AH_MODEL_ENCRYPTED,
                           .images = AH_IMAGES_ALL};
    ah_tool_change_mode mode;
    ah_status st;

    ah_model_find(o->models, ah_slice_of(server->at.name), wire_model(model), &wire.known);
    st =
        ah_provider_mode(o, "openai/responses", SPOKEN,
                         ah_model_can(&wire.known, AH_MODEL_TOOL_ITEMS, false) ? AH_TOOLS_ADDITIONAL
                                                                               : AH_TOOLS_APPEND,
                         &mode, err);
    if (st == AH_OK)
        st = ah_openai_make(&wire, server, model, mode, o, out, err);
    if (st == AH_OK)
        (*out)->search = AH_SEARCH_WIRE |
                         (ah_model_can(&wire.known, AH_MODEL_SEARCH, false) ? AH_SEARCH_OWN : 0);
    return st;
}
