/* Anthropic Messages: requests from the transcript (POST {base}/v1/messages), and the adapter.
 * anthropic_read.c reads the responses. Neighbouring entries of one role share one message, so the
 * body's last message stays open for more blocks. */
#include "wire/anthropic.h"
#include "wire/dialect.h"
#include "wire/provider.h"
#include "wire/reader.h"
#include "wire/strict.h"

static const ah_service service = {
    .name = "anthropic",
    .url = "https://api.anthropic.com",
    .url_env = {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"},
    .key_env = {"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"},
};
static const char VERSION[] = "2023-06-01";
static const char BETA_REFERENCE[] = "mid-conversation-tool-changes-2026-07-01";
static const char BETA_INLINE[] = "inline-tools-2026-09-15";

enum { GROUP_NONE, GROUP_USER, GROUP_ASSISTANT, GROUP_SYSTEM };
enum { USUAL_TOKENS = 32000, FEWEST_TOKENS = 8192 }; /* limits of an answer */
enum { EXTRA_CHANGES = 1 };                          /* the body holds tool changes */

typedef struct anthropic {
    ah_wire_native native;
    bool bearer; /* the key is a token for Authorization */
} anthropic;

/* -- the head ------------------------------------------------------------------------------- */

static void put_tool_choice(ah_buf *b, ah_slice v)
{
    ah_slice name = ah_json_member(v, "name");

    if (name.p)
        ah_buf_fmt(b, ",\"tool_choice\":{\"type\":\"tool\",\"name\":%.*s}", AH_FMT(name));
    else if (ah_json_string_is(v, "required"))
        ah_buf_str(b, ",\"tool_choice\":{\"type\":\"any\"}");
    else if (v.p)
        ah_buf_fmt(b, ",\"tool_choice\":{\"type\":%.*s}", AH_FMT(v));
}

static void put_stop(ah_buf *b, ah_slice v)
{
    if (ah_json_kind_of(v) == AH_JSON_STRING)
        ah_buf_fmt(b, ",\"stop_sequences\":[%.*s]", AH_FMT(v));
    else if (v.p)
        ah_buf_fmt(b, ",\"stop_sequences\":%.*s", AH_FMT(v));
}

/* Thinking tokens for an effort; 0: none. */
static int64_t budget_of(ah_slice effort)
{
    static const struct {
        const char *word;
        int budget;
    } words[] = {{"minimal", 1024}, {"low", 2048},    {"medium", 8192},
                 {"high", 16384},   {"xhigh", 24576}, {"max", 24576}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(effort, words[i].word))
            return words[i].budget;
    return 0;
}

/* An unknown model thinks by budget. */
static ah_thinking_mode thinking_of(const ah_wire *w)
{
    ah_thinking_mode thinking = w->adapter->known.thinking;

    if (ah_wire_lacks(w, AH_MODEL_THINKS))
        return AH_THINKING_NOT;
    return thinking == AH_THINKING_UNKNOWN ? AH_THINKING_BY_BUDGET : thinking;
}

static bool thinks_by_effort(const ah_wire *w, ah_slice effort)
{
    return thinking_of(w) == AH_THINKING_BY_EFFORT && effort.p &&
           !ah_json_string_is(effort, "none");
}

/* The default of max_tokens, which this wire requires. */
static int64_t usual_length(const ah_model *m)
{
    if (!m->output)
        return FEWEST_TOKENS;
    return m->output < USUAL_TOKENS ? m->output : USUAL_TOKENS;
}

static int64_t thinking_tokens(const ah_wire *w)
{
    return thinking_of(w) == AH_THINKING_BY_BUDGET ? budget_of(w->settings.options.reasoning) : 0;
}

/* max_tokens includes thinking tokens, and must exceed their budget. */
static int64_t length(const ah_wire *w)
{
    int64_t budget = thinking_tokens(w), most = usual_length(&w->adapter->known);
    ah_json_num asked = {0};

    if (ah_json_number(w->settings.options.max_tokens, &asked) && asked.is_int)
        most = asked.i;
    return budget && most <= budget ? most + budget : most;
}

static void put_length(const ah_wire *w, ah_buf *b)
{
    ah_slice effort = w->settings.options.reasoning;
    int64_t budget = thinking_tokens(w);

    ah_buf_fmt(b, ",\"max_tokens\":%lld", (long long)length(w));
    if (budget)
        ah_buf_fmt(b, ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":%lld}",
                   (long long)budget);
    else if (thinks_by_effort(w, effort))
        ah_buf_str(b, ",\"thinking\":{\"type\":\"adaptive\"}");
}

/* Appends ,"output_config":{..}: the effort, and the schema of the answer if the wire takes it. */
static void put_output(const ah_wire *w, ah_buf *b)
{
    ah_slice effort = w->settings.options.reasoning;
    ah_slice schema = ah_wire_output(w);
    bool thinks = thinks_by_effort(w, effort);

    if (!thinks && !schema.p)
        return;
    ah_buf_str(b, ",\"output_config\":{");
    if (thinks)
        ah_buf_fmt(b, "\"effort\":%.*s%s", AH_FMT(ah_model_effort(&w->adapter->known, effort)),
                   schema.p ? "," : "");
    if (schema.p)
        ah_buf_fmt(b, "\"format\":{\"type\":\"json_schema\",\"schema\":%.*s}", AH_FMT(schema));
    ah_buf_char(b, '}');
}

/* Appends ,"cache_control":{..} for the option; it is not part of a segment. */
static void put_cache(ah_buf *b, ah_slice v)
{
    if (!ah_json_string_is(v, "off"))
        ah_buf_fmt(b, ",\"cache_control\":{\"type\":\"ephemeral\"%s}",
                   ah_json_string_is(v, "1h") ? ",\"ttl\":\"1h\"" : "");
}

static void put_options(ah_wire *w)
{
    const ah_model_options *o = &w->settings.options;
    ah_buf *b = &w->head;

    put_length(w, b);
    put_output(w, b);
    put_stop(b, o->stop);
    ah_wire_put_option(b, "temperature", o->temperature);
    ah_wire_put_option(b, "top_p", o->top_p);
    /* Caches up to the last block: each request reads what the one before has written. */
    put_cache(b, o->cache);
    if (ah_wire_has_tools(w))
        put_tool_choice(b, o->tool_choice);
}

/* Appends the inputs of examples; descriptions and outputs have no place on this wire. */
static void put_input_examples(ah_buf *b, ah_slice examples, bool wraps)
{
    ah_json_reader r = ah_json_read(examples);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice input = ah_json_member(ah_json_skip(&r, t), "input");

        ah_buf_str(b, n++ ? "," : ",\"input_examples\":[");
        ah_buf_str(b, wraps ? "{\"" AH_WRAPPED "\":" : "");
        ah_buf_put(b, input.p ? input : ah_slice_of("{}"));
        ah_buf_str(b, wraps ? "}" : "");
    }
    ah_buf_str(b, n ? "]" : "");
}

static void put_definition(const ah_wire *w, ah_buf *b, ah_slice spec)
{
    ah_slice name, description, parameters, examples;
    const ah_json_slot want[] = {{"name", &name},
                                 {"description", &description},
                                 {"parameters", &parameters},
                                 {"examples", &examples}};

    ah_json_members(spec, want, 4);
    ah_buf_fmt(b, "{\"name\":%.*s,\"description\":%.*s,\"input_schema\":", AH_FMT(name),
               AH_FMT(description));
    if (!ah_json_member(parameters, "type").p && !ah_dialect_wraps(parameters))
        ah_buf_str(b, "{\"properties\":{},\"type\":\"object\"}");
    else if (ah_strict_put_parameters(w, spec, b) == AH_STRICT_ON)
        ah_buf_str(b, ",\"strict\":true");
    if (examples.p)
        put_input_examples(b, examples, ah_dialect_wraps(parameters));
}

static void put_tool(ah_wire *w, ah_slice spec, ah_segment_kind kind, size_t entry)
{
    ah_buf *b = &w->head;
    size_t at;

    ah_buf_str(b, b->len && b->data[b->len - 1] == '[' ? "" : ",");
    at = ah_segment_begin(b);
    put_definition(w, b, spec);
    ah_buf_str(b, kind == AH_SEGMENT_DEFERRED ? ",\"defer_loading\":true}" : "}");
    ah_segment_end(w, kind, entry, b, at);
}

/* If tools may be revealed later, one deferred tool is declared from the first request on, so that
 * the first real one does not change the kind of request. It is never revealed. */
static void put_placeholder(ah_wire *w)
{
    static const char spec[] = "{\"description\":\"Stands for tools that may come later.\","
                               "\"name\":\"deferred_tool_placeholder\",\"parameters\":"
                               "{\"properties\":{},\"type\":\"object\"}}";

    put_tool(w, ah_slice_of(spec), AH_SEGMENT_DEFERRED, 0);
}

/* Appends the provider's own search, in one of its two kinds. */
static void put_search_tool(ah_wire *w)
{
    bool regex = ah_json_string_is(ah_json_member(w->deferral, "method"), "regex");
    const char *kind = regex ? "regex" : "bm25";
    size_t at = ah_segment_begin(&w->head);

    ah_buf_fmt(&w->head,
               "{\"type\":\"tool_search_tool_%s_20251119\",\"name\":\"tool_search_tool_%s\"}", kind,
               kind);
    ah_segment_end(w, AH_SEGMENT_TOOL, 0, &w->head, at);
}

static void put_tools(ah_wire *w)
{
    bool wanted = w->mode == AH_TOOLS_REFERENCE && !ah_wire_defers(w);
    ah_segment_kind kind;
    size_t at = 0, entry;
    ah_slice spec;

    if (!ah_wire_has_tools(w))
        return;
    ah_buf_str(&w->head, ",\"tools\":[");
    if (ah_wire_defers(w) && w->searching == AH_SEARCH_MODE_OWN)
        put_search_tool(w);
    while ((spec = ah_wire_tool(w, &at, &kind, &entry)).p) {
        if (wanted && kind == AH_SEGMENT_DEFERRED) {
            put_placeholder(w);
            wanted = false;
        }
        put_tool(w, spec, kind, entry);
    }
    if (wanted)
        put_placeholder(w);
    ah_buf_char(&w->head, ']');
}

static void head(const ah_adapter *a, ah_wire *w)
{
    ah_buf *b = &w->head;
    size_t at;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    put_options(w);
    if (a->stream)
        ah_buf_str(b, ",\"stream\":true");
    put_tools(w);
    if (ah_wire_has_text(w->system)) {
        ah_buf_str(b, ",\"system\":[");
        at = ah_segment_begin(b);
        ah_buf_fmt(b, "{\"type\":\"text\",\"text\":%.*s", AH_FMT(w->system));
        ah_segment_end(w, AH_SEGMENT_SYSTEM, w->system_entry, b, at);
        /* This part is read by the next request, however much a turn adds. */
        put_cache(b, w->settings.options.cache);
        ah_buf_str(b, "}]");
    }
    ah_buf_str(b, ",\"messages\":[");
}

/* -- messages --------------------------------------------------------------------------------- */

/* Called before each block: continues the open message, or opens one for the group. */
static void begin_block(ah_wire *w, int group)
{
    static const char *const roles[] = {NULL, "user", "assistant", "system"};
    ah_buf *b = &w->body;

    if (w->group == group) {
        ah_buf_char(b, ',');
        return;
    }
    ah_buf_fmt(b, "%s,{\"role\":\"%s\",\"content\":[", w->group ? "]}" : "", roles[group]);
    w->group = group;
}

static void put_text(ah_wire *w, int group, ah_slice value)
{
    if (!ah_wire_has_text(value)) /* a blank block is refused */
        return;
    begin_block(w, group);
    ah_buf_fmt(&w->body, "{\"type\":\"text\",\"text\":%.*s}", AH_FMT(value));
}

static void put_call(ah_wire *w, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};
    ah_buf *b = &w->body;

    ah_json_members(call, want, 3);
    begin_block(w, GROUP_ASSISTANT);
    ah_buf_str(b, "{\"type\":\"tool_use\",\"id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"name\":");
    ah_wire_put_name(b, name);
    ah_buf_str(b, ",\"input\":");
    ah_dialect_put_arguments(w, name, arguments, b);
    ah_buf_char(b, '}');
}

/* Appends the message's calls from *at up to the n-th. */
static void put_calls(ah_wire *w, ah_json_reader *calls, size_t *at, size_t n)
{
    for (; *at < n; ++*at) {
        ah_json_token t = ah_json_next(calls);

        if (t.kind != AH_JSON_OBJECT)
            return;
        put_call(w, ah_json_skip(calls, t));
    }
}

/* Parts of the provider's search, which are sent back only while it searches. */
static const char *const searches[] = {"server_tool_use", "tool_search_tool_result", NULL};

static bool is_sent_back(const ah_adapter *a, const ah_wire *w, ah_slice part, ah_slice *data,
                         size_t *before)
{
    return ah_wire_part_of_ours(a, part, data, before) && !ah_wire_left_out(w, *data, searches);
}

/* A message must not end with thinking. */
static bool stands(const ah_wire *w, ah_slice data)
{
    ah_slice type = ah_json_member(data, "type");

    return !ah_json_string_is(type, "thinking") && !ah_json_string_is(type, "redacted_thinking") &&
           !ah_wire_left_out(w, data, searches);
}

/* Appends content and calls in the order in which they came, as far as this adapter recorded it. */
static void put_assistant(const ah_adapter *a, ah_wire *w, ah_slice json)
{
    ah_json_reader calls = ah_json_read(ah_json_member(json, "tool_calls"));
    ah_json_reader parts = ah_json_read(ah_json_member(json, "content"));
    ah_json_token t = ah_json_next(&parts);
    size_t at = 0, before;
    ah_slice data;

    ah_json_next(&calls);
    for (t = ah_json_next(&parts); t.kind == AH_JSON_OBJECT; t = ah_json_next(&parts)) {
        ah_slice part = ah_json_skip(&parts, t);

        if (is_sent_back(a, w, part, &data, &before)) {
            put_calls(w, &calls, &at, before);
            begin_block(w, GROUP_ASSISTANT);
            ah_buf_put(&w->body, data);
        } else {
            put_text(w, GROUP_ASSISTANT, ah_json_member(part, "text"));
        }
    }
    put_calls(w, &calls, &at, SIZE_MAX);
}

static void put_image_block(ah_buf *b, const ah_image *image)
{
    if (image->url.p) {
        ah_buf_fmt(b, "{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":%.*s}}",
                   AH_FMT(image->url));
        return;
    }
    ah_buf_fmt(b,
               "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":%.*s,\"data\":",
               AH_FMT(image->mime));
    ah_buf_put(b, image->data);
    ah_buf_str(b, "}}");
}

/* A result with images is a list: its text, then the images. */
static void put_result_content(const ah_adapter *a, ah_buf *b, ah_slice json)
{
    ah_json_reader r = ah_wire_result_images(json);
    ah_slice content = ah_json_member(json, "content");
    size_t n = 0;
    ah_image image;

    if (!ah_wire_next_shown(a, &r, &image)) {
        ah_wire_put_result_text(a, b, "", json);
        return;
    }
    ah_buf_char(b, '[');
    if (ah_wire_has_text(content)) {
        ah_buf_fmt(b, "{\"type\":\"text\",\"text\":%.*s}", AH_FMT(content));
        n++;
    }
    do {
        ah_buf_str(b, n++ ? "," : "");
        put_image_block(b, &image);
    } while (ah_wire_next_shown(a, &r, &image));
    ah_buf_char(b, ']');
}

/* Appends what search_tools has found, in the form that reveals deferred tools: a list of
 * references only. False: none of them is declared as deferred. */
static bool put_references(const ah_wire *w, ah_buf *b, ah_slice added)
{
    ah_json_reader r = ah_json_read(ah_json_member(ah_json_member(added, "by"), "found"));
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        ah_slice name = ah_json_skip(&r, t);
        const ah_offer *o = ah_offers_find(&w->offers, name);

        if (o && (o->deferred || o->late))
            ah_buf_fmt(b, "%s{\"type\":\"tool_reference\",\"tool_name\":%.*s}", n++ ? "," : "[",
                       AH_FMT(name));
    }
    ah_buf_str(b, n ? "]" : "");
    return n > 0;
}

static void put_result(const ah_adapter *a, ah_wire *w, ah_slice json)
{
    ah_slice id, success, name, found = {NULL, 0};
    const ah_json_slot want[] = {{"id", &id}, {"success", &success}, {"name", &name}};
    ah_buf *b = &w->body;

    ah_json_members(json, want, 3);
    if (ah_json_string_is(name, AH_SEARCH_TOOLS))
        found = ah_wire_found(w, id);
    begin_block(w, GROUP_USER);
    ah_buf_str(b, "{\"type\":\"tool_result\",\"tool_use_id\":");
    ah_wire_put_id(b, id);
    ah_buf_str(b, ",\"content\":");
    if (!found.p || !put_references(w, b, found))
        put_result_content(a, b, json);
    ah_buf_str(b, ah_json_kind_of(success) == AH_JSON_FALSE ? ",\"is_error\":true}" : "}");
}

/* Appends blocks that were held back until the user's next message: see put_system_block. */
static void put_held(ah_wire *w)
{
    if (w->held.len == 0)
        return;
    begin_block(w, GROUP_SYSTEM);
    ah_buf_put(&w->body, ah_buf_slice(&w->held));
    ah_buf_reset(&w->held, 0);
}

static void put_user(ah_wire *w, ah_slice content)
{
    ah_json_reader r = ah_json_read(content);
    ah_json_token t = ah_json_next(&r);
    size_t before = w->body.len;

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice part = ah_json_skip(&r, t);
        ah_image image;

        if (ah_image_of(part, &image)) {
            begin_block(w, GROUP_USER);
            put_image_block(&w->body, &image);
        } else {
            put_text(w, GROUP_USER, ah_json_member(part, "text"));
        }
    }
    if (w->body.len ==
        before) /* without a block there is no turn, and the model would continue its last answer */
        put_text(w, GROUP_USER, ah_slice_of("\"(empty message)\""));
    put_held(w);
}

/* A system message must follow a turn of the user, which includes results. A block that comes after
 * the model's answer waits for the next one. */
static void put_system_block(ah_wire *w, ah_slice block)
{
    if (w->group == GROUP_USER || w->group == GROUP_SYSTEM) {
        begin_block(w, GROUP_SYSTEM);
        ah_buf_put(&w->body, block);
        return;
    }
    ah_buf_str(&w->held, w->held.len ? "," : "");
    ah_buf_put(&w->held, block);
}

/* For models that take no system messages here, puts the note into the user's message, in tags. */
static void put_note(const ah_adapter *a, ah_wire *w, ah_slice value)
{
    ah_buf block;

    if (!ah_wire_has_text(value))
        return;
    if (!ah_model_can(&a->known, AH_MODEL_NOTES, false)) {
        begin_block(w, GROUP_USER);
        ah_buf_fmt(&w->body, "{\"type\":\"text\",\"text\":\"<system>%.*s</system>\"}",
                   AH_FMT(ah_json_inside(value)));
        return;
    }
    ah_buf_init(&block, w->mem, w->body.max);
    ah_buf_fmt(&block, "{\"type\":\"text\",\"text\":%.*s}", AH_FMT(value));
    put_system_block(w, ah_buf_slice(&block));
    if (!ah_buf_ok(&block))
        w->body.status = block.status;
    ah_buf_clear(&block);
}

/* -- changes of tools ------------------------------------------------------------------------- */

/* The tool, if this is the entry that declares it; else NULL. */
static const ah_offer *told_here(const ah_wire *w, ah_slice name)
{
    const ah_offer *t = ah_offers_find(&w->offers, name);

    return t && t->told == w->done ? t : NULL;
}

static void put_change(ah_wire *w, const char *type, ah_slice name, ah_slice spec)
{
    ah_buf b;

    ah_buf_init(&b, w->mem, w->body.max);
    ah_buf_fmt(&b, "{\"type\":\"%s\",\"tool\":", type);
    if (spec.p) {
        ah_buf_str(&b, "{\"type\":\"tool_definition\",\"definition\":");
        put_definition(w, &b, spec);
        ah_buf_str(&b, "}}}");
    } else {
        ah_buf_fmt(&b, "{\"type\":\"tool_reference\",\"name\":%.*s}}", AH_FMT(name));
    }
    put_system_block(w, ah_buf_slice(&b));
    if (!ah_buf_ok(&b))
        w->body.status = b.status;
    ah_buf_clear(&b);
    w->extras |= EXTRA_CHANGES;
}

static void put_added(ah_wire *w, ah_slice tools)
{
    bool inline_ = w->mode == AH_TOOLS_INLINE;
    ah_json_reader r = ah_json_read(tools);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice spec = ah_json_skip(&r, t), name = ah_json_member(spec, "name");

        if (told_here(w, name))
            put_change(w, "tool_addition", name, inline_ ? spec : (ah_slice){NULL, 0});
    }
}

static void put_removed(ah_wire *w, ah_slice names)
{
    ah_json_reader r = ah_json_read(names);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        ah_slice name = ah_json_skip(&r, t);

        if (told_here(w, name))
            put_change(w, "tool_removal", name, (ah_slice){NULL, 0});
    }
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    ah_slice json = ah_text_slice(e->json);
    size_t at = ah_segment_begin(&w->body);

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, w, json);
    else if (e->kind == AH_ENTRY_USER)
        put_user(w, ah_json_member(json, "content"));
    else if (e->kind == AH_ENTRY_TOOLS_ADDED)
        put_added(w, ah_json_member(json, "tools"));
    else if (e->kind == AH_ENTRY_TOOLS_REMOVED)
        put_removed(w, ah_json_member(json, "names"));
    else
        put_note(a, w, ah_json_member(json, "text"));
    if (w->body.len > at)
        ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, &w->body, at);
}

/* -- the request around the body, and making an adapter --------------------------------------- */

static ah_status request(const ah_adapter *base, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err)
{
    const anthropic *a = (const anthropic *)base;
    const char *beta = w->mode == AH_TOOLS_INLINE ? BETA_INLINE : BETA_REFERENCE;
    const ah_header headers[] = {
        {a->bearer ? "Authorization: Bearer " : "x-api-key: ", ah_secret_reveal(a->native.key)},
        {"anthropic-version: ", ah_slice_of(VERSION)},
        {"anthropic-beta: ", ah_slice_of(w->extras & EXTRA_CHANGES ? beta : NULL)},
    };
    bool versioned = ah_slice_ends(ah_text_slice(base->endpoint), "/v1");

    return ah_wire_native_post(&a->native, versioned ? "/messages" : "/v1/messages", headers, 3,
                               scratch, req, err);
}

static void free_anthropic(ah_adapter *a)
{
    ah_free(a->mem, (anthropic *)a);
}

static const ah_adapter_vt vt = {
    .name = "anthropic",
    .revision = 1,
    .head = head,
    .entry = entry,
    .stands = stands,
    .length = length,
    .tail = "]}",
    .tail_open = "]}]}",
    .request = request,
    .open = ah_anthropic_open,
    .head_came = ah_wire_reader_head_came,
    .feed = ah_wire_reader_feed,
    .end = ah_wire_reader_end,
    .close = ah_wire_reader_close,
    .free = free_anthropic,
};

static ah_status fill(anthropic *a, ah_slice model, const ah_provider_options *o, ah_err *err)
{
    enum { SPOKEN = AH_TOOLS_ANYWHERE | 1 << AH_TOOLS_REFERENCE | 1 << AH_TOOLS_INLINE };
    ah_adapter *base = &a->native.base;
    const ah_model *m = &base->known;
    ah_status st;

    ah_model_find(o->models, ah_slice_of(service.name), model, &base->known);
    base->asks = m->thinking == AH_THINKING_NOT ? 0 : AH_MODEL_THINKS;
    base->search = ah_model_can(m, AH_MODEL_SEARCH, false) ? AH_SEARCH_ALL : AH_SEARCH_WIRE;
    base->native_output = ah_model_can(m, AH_MODEL_OUTPUT, false);
    base->output_rules = AH_STRICT_ANTHROPIC;
    base->strict_tools =
        ah_model_can(m, AH_MODEL_STRICT, false) ? AH_STRICT_ANTHROPIC : AH_STRICT_NONE;
    a->bearer = !o->api_key.p && !ah_provider_env(o, service.key_env[0]).p;
    st = ah_provider_mode(o, service.name, SPOKEN,
                          ah_model_can(m, AH_MODEL_TOOL_CHANGES, false) ? AH_TOOLS_REFERENCE
                                                                        : AH_TOOLS_APPEND,
                          &base->tool_change_mode, err);
    return st == AH_OK ? ah_wire_native_fill(&a->native, &service, model, o, err) : st;
}

static ah_status open_anthropic(ah_slice model, const ah_provider_options *o, ah_adapter **out,
                                ah_err *err)
{
    anthropic *a = ah_alloc(o->mem, sizeof *a);
    ah_status st;

    if (!a)
        return ah_err_nomem(err);
    a->native.base = (ah_adapter){.vt = &vt,
                                  .mem = o->mem,
                                  .refs = 1,
                                  .images = AH_IMAGES_ALL,
                                  .stream = o->stream,
                                  .reasoning_back = true};
    if ((st = fill(a, model, o, err)) == AH_OK)
        *out = &a->native.base;
    else
        ah_adapter_unref(&a->native.base);
    return st;
}

const ah_provider ah_anthropic = {&service, open_anthropic};
