/* Google Gemini: requests from the transcript, and the adapter (POST
 * {base}/v1beta/models/M:generateContent, or :streamGenerateContent?alt=sse). gemini_read.c reads
 * the responses. Vertex (another address, other keys) is not supported. Parts of a message with
 * thought signatures are sent back unchanged (gemini_read.c keeps them); its calls are those of the
 * transcript, with their ids. */
#include "model/tool_spec.h"
#include "wire/dialect.h"
#include "wire/gemini_read.h"
#include "wire/reader.h"

enum { MAX_PATH = 4 << 10 };

static const ah_service service = {
    .name = "gemini",
    .url = "https://generativelanguage.googleapis.com",
    .url_env = {"GEMINI_API_BASE", "GOOGLE_GEMINI_BASE_URL"},
    .key_env = {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
};

typedef struct gemini {
    ah_wire_native native;
    ah_text *path; /* appended to the base URL */
} gemini;

/* -- schemas ------------------------------------------------------------------------------ */

static bool is_plain(ah_slice value)
{
    ah_json_kind kind = ah_json_kind_of(value);

    return kind == AH_JSON_STRING || kind == AH_JSON_NUMBER;
}

static bool is_plain_one(void *ud, ah_json_token none, ah_slice value)
{
    (void)ud;
    (void)none;
    return is_plain(value);
}

static bool all_plain(ah_slice list)
{
    return ah_rewrite_each(AH_REWRITE_LIST, list, is_plain_one, NULL);
}

/* Gemini's JSON Schema, as documented for responseJsonSchema; parameters use the same. Enum values
 * are strings and numbers, a reference may only have names with $ beside it, and a list as `items`
 * has its name of draft 2020-12. */
static const ah_rewrite_row words[] = {
    {AH_REWRITE_KEEP, " type format title minItems maxItems minimum maximum required $id $anchor ",
     NULL, NULL},
    {AH_REWRITE_KEEP, " enum ", NULL, all_plain},
    {AH_REWRITE_ALONE, " const ", "enum", is_plain},
    {AH_REWRITE_MAP, " properties $defs ", NULL, NULL},
    {AH_REWRITE_LIST, " anyOf oneOf prefixItems ", NULL, NULL},
    {AH_REWRITE_LIST, " items ", "prefixItems", NULL},
    {AH_REWRITE_SCHEMA, " items additionalProperties ", NULL, NULL},
    {AH_REWRITE_REFERENCE, " $ref ", NULL, NULL},
    {AH_REWRITE_TELL, NULL, NULL, NULL},
};
static const ah_rewrite_target json_schema = {.rows = words};

/* -- the head ------------------------------------------------------------------------- */

/* Appends an effort: a level from Gemini 3 on, tokens for earlier models (those of Google's own
 * translation of OpenAI's reasoning_effort). */
static void put_thinking(const ah_adapter *a, const ah_wire *w, ah_buf *b, size_t *n,
                         ah_slice effort)
{
    static const struct {
        const char *effort, *budget;
    } budgets[] = {
        {"none", "0"}, {"minimal", "1024"}, {"low", "1024"}, {"medium", "8192"}, {"high", "24576"}};
    bool old = a->known.thinking == AH_THINKING_BY_BUDGET;

    if (ah_json_kind_of(effort) != AH_JSON_STRING || ah_wire_lacks(w, AH_MODEL_THINKS))
        return;
    ah_buf_str(b, (*n)++ ? "," : "");
    for (size_t i = 0; old && i < sizeof budgets / sizeof *budgets; i++)
        if (ah_json_string_is(effort, budgets[i].effort)) {
            ah_buf_fmt(b, "\"thinkingConfig\":{\"thinkingBudget\":%s}", budgets[i].budget);
            return;
        }
    ah_buf_fmt(b, "\"thinkingConfig\":{\"thinkingLevel\":%.*s}",
               AH_FMT(ah_model_effort(&a->known, effort)));
}

static void put_config(const ah_adapter *a, const ah_wire *w, ah_buf *b)
{
    const ah_model_options *o = &w->settings.options;
    ah_slice schema = ah_wire_output(w);
    size_t n = 0;

    ah_buf_str(b, "\"generationConfig\":{");
    ah_wire_put_member(b, &n, "maxOutputTokens", o->max_tokens);
    if (schema.p) {
        ah_buf_str(b, n++ ? "," : "");
        ah_buf_str(b, "\"responseMimeType\":\"application/json\",\"responseJsonSchema\":");
        ah_schema_rewrite(&json_schema, schema, b);
    }
    ah_wire_put_member(b, &n, "seed", o->seed);
    ah_wire_put_list(b, &n, "stopSequences", o->stop);
    ah_wire_put_member(b, &n, "temperature", o->temperature);
    put_thinking(a, w, b, &n, o->reasoning);
    ah_wire_put_member(b, &n, "topP", o->top_p);
    ah_buf_char(b, '}');
}

static void put_tool_choice(ah_buf *b, ah_slice choice)
{
    ah_slice name = ah_json_member(choice, "name");
    const char *mode = ah_json_string_is(choice, "none")       ? "NONE"
                       : ah_json_string_is(choice, "required") ? "ANY"
                                                               : "AUTO";

    if (!choice.p)
        return;
    ah_buf_str(b, "\"toolConfig\":{\"functionCallingConfig\":{");
    if (name.p) {
        ah_buf_str(b, "\"allowedFunctionNames\":[");
        ah_wire_put_led_name(b, name);
        ah_buf_str(b, "],\"mode\":\"ANY\"}},");
    } else {
        ah_buf_fmt(b, "\"mode\":\"%s\"}},", mode);
    }
}

static void put_declaration(const ah_wire *w, ah_slice spec, ah_buf *b)
{
    ah_slice name, parameters;
    const ah_json_slot want[] = {{"name", &name}, {"parameters", &parameters}};

    (void)w;
    ah_json_members(spec, want, 2);
    ah_buf_str(b, "{\"name\":");
    ah_wire_put_led_name(b, name);
    ah_spec_put_description(",\"description\":", spec, b);
    ah_buf_str(b, ",\"parametersJsonSchema\":");
    ah_dialect_put(&json_schema, parameters.p ? parameters : ah_slice_of("{\"type\":\"object\"}"),
                   b);
    ah_buf_char(b, '}');
}

static void head(const ah_adapter *a, ah_wire *w)
{
    ah_buf *b = &w->head;

    ah_buf_char(b, '{');
    if (ah_wire_put_tools(w, "\"tools\":[{\"functionDeclarations\":[", put_declaration)) {
        ah_buf_str(b, "]}],");
        put_tool_choice(b, w->settings.options.tool_choice);
    }
    ah_wire_put_system(w, "\"systemInstruction\":{\"parts\":[{\"text\":", "}]},");
    put_config(a, w, b);
    ah_buf_str(b, ",\"contents\":[");
}

/* -- entries --------------------------------------------------------------------------- */

static void put_text(ah_buf *b, size_t *n, ah_slice text)
{
    if (ah_wire_has_text(text)) /* a blank part is refused */
        ah_buf_fmt(b, (*n)++ ? ",{\"text\":%.*s}" : "{\"text\":%.*s}", AH_FMT(text));
}

static void put_image(ah_buf *b, size_t *n, const ah_image *image)
{
    ah_buf_str(b, (*n)++ ? ",{" : "{");
    ah_buf_str(b, image->url.p ? "\"fileData\":{\"fileUri\":" : "\"inlineData\":{\"data\":");
    ah_buf_put(b, image->url.p ? image->url : image->data);
    if (image->mime.p)
        ah_buf_fmt(b, ",\"mimeType\":%.*s", AH_FMT(image->mime));
    ah_buf_str(b, "}}");
}

static void put_parts(ah_buf *b, size_t *n, ah_slice content)
{
    ah_json_reader r = ah_json_read(content);
    ah_json_token t = ah_json_next(&r);

    if (t.kind == AH_JSON_STRING)
        put_text(b, n, content);
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice part = ah_json_skip(&r, t);
        ah_image image;

        if (ah_image_of(part, &image))
            put_image(b, n, &image);
        else
            put_text(b, n, ah_json_member(part, "text"));
    }
}

static void put_call(const ah_wire *w, ah_buf *b, ah_slice call)
{
    ah_slice id, name, arguments;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"arguments", &arguments}};

    ah_json_members(call, want, 3);
    ah_buf_fmt(b, "\"functionCall\":{\"id\":%.*s,\"name\":", AH_FMT(id));
    ah_wire_put_led_name(b, name);
    ah_buf_str(b, ",\"args\":");
    ah_dialect_put_arguments(w, name, arguments, b);
    ah_buf_char(b, '}');
}

/* Appends a part unchanged, except that its call is the transcript's, with its id. */
static void put_kept(const ah_wire *w, ah_buf *b, ah_slice part, ah_json_reader *calls)
{
    ah_json_reader r = ah_json_read(part);
    ah_json_token key = ah_json_next(&r), call;
    size_t n = 0;

    ah_buf_char(b, '{');
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        ah_buf_str(b, n++ ? "," : "");
        if (!ah_json_token_is(key, "functionCall"))
            ah_buf_fmt(b, "\"%.*s\":%.*s", AH_FMT(key.raw), AH_FMT(value));
        else if ((call = ah_json_next(calls)).kind == AH_JSON_OBJECT)
            put_call(w, b, ah_json_skip(calls, call));
        else
            ah_buf_fmt(b, "\"functionCall\":%.*s", AH_FMT(value));
    }
    ah_buf_char(b, '}');
}

/* From Gemini 3 on the first call of a message must be signed. For a call by another model, Google
 * documents this text in place of a signature. */
static void put_signature(const ah_adapter *a, ah_buf *b, bool first)
{
    if (first && ah_model_can(&a->known, AH_MODEL_SIGNED, false))
        ah_buf_str(b, ",\"thoughtSignature\":\"skip_thought_signature_validator\"");
}

/* Appends the calls that the reader has not reached yet. */
static void put_calls(const ah_adapter *a, const ah_wire *w, ah_buf *b, size_t *n,
                      ah_json_reader *calls, bool foreign)
{
    bool first = true;

    for (ah_json_token t = ah_json_next(calls); t.kind == AH_JSON_OBJECT; t = ah_json_next(calls)) {
        ah_buf_str(b, (*n)++ ? ",{" : "{");
        put_call(w, b, ah_json_skip(calls, t));
        put_signature(a, b, foreign && first);
        ah_buf_char(b, '}');
        first = false;
    }
}

/* True if a part has more than thoughts and signatures. */
static bool part_stands(ah_slice part)
{
    ah_json_reader r = ah_json_read(part);
    ah_json_token key = ah_json_next(&r);
    bool thought = ah_json_kind_of(ah_json_member(part, "thought")) == AH_JSON_TRUE, more = false;

    for (key = ah_json_next(&r); !more && key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        more = ah_json_token_is(key, "text") ? !thought && ah_wire_has_text(value)
                                             : !ah_json_token_is(key, "thought") &&
                                                   !ah_json_token_is(key, "thoughtSignature");
    }
    return more;
}

/* True for a message with, for example, executed code; false for one with thoughts only, or no
 * parts. */
static bool stands(const ah_wire *w, ah_slice data)
{
    ah_json_reader r = ah_json_read(ah_json_member(data, "parts"));
    ah_json_token t = ah_json_next(&r);
    bool any = false;

    (void)w;
    for (t = ah_json_next(&r); !any && t.kind == AH_JSON_OBJECT; t = ah_json_next(&r))
        any = part_stands(ah_json_skip(&r, t));
    return any;
}

static void put_assistant(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice json)
{
    ah_slice content = ah_json_member(json, "content");
    ah_slice kept = ah_json_member(ah_wire_opaque_of_ours(a, content), "parts");
    ah_json_reader calls = ah_json_read(ah_json_member(json, "tool_calls")), r = ah_json_read(kept);
    ah_json_token t = ah_json_next(&r);
    size_t n = 0;

    ah_json_next(&calls);
    ah_buf_str(b, ",{\"role\":\"model\",\"parts\":[");
    if (t.kind != AH_JSON_ARRAY)
        put_parts(b, &n, content);
    else
        for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
            ah_buf_str(b, n++ ? "," : "");
            put_kept(w, b, ah_json_skip(&r, t), &calls);
        }
    put_calls(a, w, b, &n, &calls, !kept.p);
    ah_buf_str(b, "]}");
}

static bool is_result(const ah_wire *w, size_t at)
{
    return at < w->transcript->n && w->transcript->entry[at].kind == AH_ENTRY_TOOL_RESULT;
}

/* The results of one message share one content; a turn is appended as a whole, so they are
 * together. The name of the member marks an error; the wire has no other flag. */
static void put_result(const ah_adapter *a, const ah_wire *w, ah_buf *b, ah_slice json)
{
    ah_slice id, name, success;
    const ah_json_slot want[] = {{"id", &id}, {"name", &name}, {"success", &success}};
    ah_json_reader r = ah_wire_result_images(json);
    size_t n = 0;
    ah_image image;

    ah_json_members(json, want, 3);
    ah_buf_str(b, w->done && is_result(w, w->done - 1) ? "," : ",{\"role\":\"user\",\"parts\":[");
    ah_buf_fmt(b, "{\"functionResponse\":{\"id\":%.*s,\"name\":", AH_FMT(id));
    ah_wire_put_led_name(b, name);
    ah_buf_fmt(b, ",\"response\":{\"%s\":",
               ah_json_kind_of(success) == AH_JSON_FALSE ? "error" : "output");
    ah_wire_put_result_text(a, b, "", json);
    ah_buf_char(b, '}');
    while (ah_wire_next_shown(a, &r, &image)) {
        ah_buf_str(b, n ? "" : ",\"parts\":[");
        put_image(b, &n, &image);
    }
    ah_buf_str(b, n ? "]}}" : "}}");
    ah_buf_str(b, is_result(w, w->done + 1) ? "" : "]}");
}

static void put_user(ah_buf *b, ah_slice content)
{
    size_t n = 0;

    ah_buf_str(b, ",{\"role\":\"user\",\"parts\":[");
    put_parts(b, &n, content);
    /* The service refuses a message without text. */
    ah_buf_str(b, n ? "]}" : "{\"text\":\"(empty message)\"}]}");
}

/* System text is possible only at the front; later notes are sent as the user, in tags. */
static void put_note(ah_buf *b, ah_slice text)
{
    ah_buf_str(b, ",{\"role\":\"user\",\"parts\":[{\"text\":\"<system>");
    if (ah_json_kind_of(text) == AH_JSON_STRING)
        ah_buf_put(b, ah_json_inside(text));
    ah_buf_str(b, "</system>\"}]}");
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    ah_slice json = ah_text_slice(e->json);
    ah_buf *b = &w->body;
    size_t at = ah_segment_begin(b);

    if (e->kind == AH_ENTRY_ASSISTANT)
        put_assistant(a, w, b, json);
    else if (e->kind == AH_ENTRY_TOOL_RESULT)
        put_result(a, w, b, json);
    else if (e->kind == AH_ENTRY_USER)
        put_user(b, ah_json_member(json, "content"));
    else
        put_note(b, ah_json_member(json, "text"));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, b, at);
}

/* -- the request around the body ----------------------------------------------------------- */

/* Escapes characters that a path must not contain. */
static void put_path(ah_buf *b, ah_slice name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool plain = ah_is_letter(c) || ah_is_digit(c) || strchr("-._~/@", c);

        ah_buf_fmt(b, plain && c ? "%c" : "%%%02X", (unsigned char)c);
    }
}

/* Appends {base}/v1beta unless the base has a version. Model lists use names with "models/". */
static void put_method(const ah_adapter *a, ah_buf *b)
{
    ah_slice url = ah_text_slice(a->endpoint), model = ah_text_slice(a->model);
    size_t at = url.n;

    while (at > 0 && url.p[at - 1] != '/')
        at--;
    if (!(url.n - at >= 2 && url.p[at] == 'v' && url.p[at + 1] >= '0' && url.p[at + 1] <= '9'))
        ah_buf_str(b, "/v1beta");
    ah_buf_str(b, memchr(model.p, '/', model.n) ? "/" : "/models/");
    put_path(b, model);
    ah_buf_str(b, a->stream ? ":streamGenerateContent?alt=sse" : ":generateContent");
}

static ah_status request(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err)
{
    const gemini *g = (const gemini *)a;
    const ah_header key = {"x-goog-api-key: ", ah_secret_reveal(g->native.key)};

    (void)w;
    return ah_wire_native_post(&g->native, g->path->data, &key, 1, scratch, req, err);
}

static void free_gemini(ah_adapter *a)
{
    ah_text_unref(((gemini *)a)->path);
    ah_free(a->mem, a);
}

static const ah_adapter_vt vt = {
    .name = "gemini",
    .revision = 1,
    .head = head,
    .entry = entry,
    .stands = stands,
    .tail = "]}",
    .request = request,
    .open = ah_gemini_open,
    .head_came = ah_wire_reader_head_came,
    .feed = ah_wire_reader_feed,
    .end = ah_wire_reader_end,
    .close = ah_wire_reader_close,
    .free = free_gemini,
};

static ah_status fill(gemini *g, ah_slice model, const ah_provider_options *o, ah_err *err)
{
    ah_adapter *base = &g->native.base;
    ah_status st = ah_provider_mode(o, service.name, AH_TOOLS_ANYWHERE, AH_TOOLS_APPEND,
                                    &base->tool_change_mode, err);
    ah_buf b;

    if (st == AH_OK)
        st = ah_wire_native_fill(&g->native, &service, model, o, err);
    if (st != AH_OK)
        return st;
    ah_model_find(o->models, ah_slice_of(service.name), model, &base->known);
    base->native_output = ah_model_can(&base->known, AH_MODEL_OUTPUT, false);
    base->images =
        AH_IMAGES_USER |
        (ah_model_can(&base->known, AH_MODEL_RESULT_IMAGES, false) ? AH_IMAGES_RESULT_DATA : 0u);
    ah_buf_init(&b, o->mem, MAX_PATH);
    put_method(base, &b);
    st = ah_text_from_buf(&b, "the model's name", &g->path, err);
    ah_buf_clear(&b);
    return st;
}

static ah_status open_gemini(ah_slice model, const ah_provider_options *o, ah_adapter **out,
                             ah_err *err)
{
    gemini *g = ah_alloc(o->mem, sizeof *g);
    ah_status st;

    if (!g)
        return ah_err_nomem(err);
    g->native.base = (ah_adapter){.vt = &vt,
                                  .mem = o->mem,
                                  .refs = 1,
                                  .stream = o->stream,
                                  .asks = AH_MODEL_THINKS,
                                  .reasoning_back = true};
    if ((st = fill(g, model, o, err)) == AH_OK)
        *out = &g->native.base;
    else
        ah_adapter_unref(&g->native.base);
    return st;
}

const ah_provider ah_gemini = {&service, open_gemini};
