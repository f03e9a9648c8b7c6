/* The wire of scripted models and of adapters written in Lua, in our own form. The request is
 * {"model","options","tools","system","entries"}, with entries as in the transcript; the response
 * is lines of JSON, each a piece of the message:
 *
 *     {"text":"..."}  {"refusal":"..."}
 *     {"call":{"index":0,"id":"...","name":"...","arguments":"..."}}  arguments are appended
 *     {"opaque":...}  a part to be sent back unchanged
 *     {"stop":"end"}  {"usage":{"input":1,"output":2,...}}
 *     {"error":{"message":"...","status":429,"retryable":true,"retry_after":1.5}}
 *
 * The stop line is required: a response without one was cut. As the form is ours, anything unknown
 * in it is an error; nothing is ignored. */
#include "wire/scripted.h"

#include "base/seconds.h"
#include "model/tool_spec.h"
#include "wire/anthropic.h"
#include "wire/full.h"
#include "wire/gemini_read.h"
#include "wire/lower.h"
#include "wire/ollama_read.h"
#include "wire/openai_read.h"
#include "wire/reader.h"
#include "wire/responses_read.h"
#include "wire/shape.h"

enum { MAX_LINE = 64 << 20, MAX_SAID = 4 << 10 };

static void put_tools(const ah_adapter *a, ah_wire *w)
{
    ah_buf *b = &w->head;
    ah_segment_kind kind;
    size_t at = 0, n = 0, entry, start;
    ah_slice spec;

    while ((spec = ah_wire_tool(w, &at, &kind, &entry)).p) {
        ah_buf_str(b, n++ ? "," : "");
        start = ah_segment_begin(b);
        if (((const ah_scripted *)a)->annotated)
            ah_spec_put_annotated(spec, b);
        else
            ah_spec_put_told(spec, b);
        ah_segment_end(w, kind, entry, b, start);
    }
}

static void head(const ah_adapter *a, ah_wire *w)
{
    ah_slice options = w->settings.options.text;
    ah_buf *b = &w->head;
    size_t at;

    ah_buf_str(b, "{\"model\":");
    ah_json_put_string(b, ah_text_slice(a->model));
    ah_buf_str(b, ",\"options\":");
    ah_buf_put(b, options.p ? options : ah_slice_of("{}"));
    ah_buf_str(b, ",\"tools\":[");
    put_tools(a, w);
    ah_buf_str(b, "],\"system\":");
    at = ah_segment_begin(b);
    ah_buf_put(b, w->system.p ? w->system : ah_slice_of("\"\""));
    ah_segment_end(w, AH_SEGMENT_SYSTEM, w->system_entry, b, at);
    ah_buf_str(b, ",\"entries\":[");
}

/* Appends the entry with its tools as a model sees them. */
static void put_added(ah_buf *b, ah_slice json)
{
    ah_json_reader r = ah_json_read(json);
    ah_json_token key = ah_json_next(&r);

    ah_buf_str(b, "{\"type\":\"tools_added\",\"tools\":");
    ah_spec_put_told_list(ah_json_member(json, "tools"), b);
    for (key = ah_json_next(&r); key.kind == AH_JSON_KEY; key = ah_json_next(&r)) {
        ah_slice value = ah_json_skip(&r, ah_json_next(&r));

        if (!ah_json_token_is(key, "type") && !ah_json_token_is(key, "tools"))
            ah_buf_fmt(b, ",\"%.*s\":%.*s", AH_FMT(key.raw), AH_FMT(value));
    }
    ah_buf_char(b, '}');
}

static void entry(const ah_adapter *a, ah_wire *w, const ah_entry *e)
{
    size_t at = ah_segment_begin(&w->body);

    (void)a;
    ah_buf_char(&w->body, ',');
    if (e->kind == AH_ENTRY_TOOLS_ADDED)
        put_added(&w->body, ah_text_slice(e->json));
    else
        ah_buf_put(&w->body, ah_text_slice(e->json));
    ah_segment_end(w, AH_SEGMENT_ENTRY, w->done, &w->body, at);
}

/* -- the answer ----------------------------------------------------------------------- */

static const char *const stops[] = {
    "end",     "tool_calls",   "length", "stop_sequence", "content_filter",
    "refusal", "context_full", NULL}; /* in the order of ah_stop, from AH_STOP_END on */
static const ah_shape stop_word = {.kinds = AH_IS_STRING, .words = stops};
static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape count = {.kinds = AH_IS_COUNT};
static const ah_shape boolean = {.kinds = AH_IS_BOOLEAN};
static const ah_shape a_call = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("index", &count), AH_MAY_HAVE("id", &string),
                         AH_MAY_HAVE("name", &string), AH_MAY_HAVE("arguments", &piece))};
static const ah_shape usage = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("input", &count), AH_MAY_HAVE("output", &count),
                         AH_MAY_HAVE("cached_read", &count), AH_MAY_HAVE("cached_write", &count),
                         AH_MAY_HAVE("reasoning", &count))};
static const ah_shape failure = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("message", &string), AH_MAY_HAVE("code", &string),
                         AH_MAY_HAVE("window", &count), AH_MAY_HAVE("used", &count),
                         AH_MAY_HAVE("status", &count), AH_MAY_HAVE("retryable", &boolean))};
static const ah_shape line_shape = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("text", &piece), AH_MAY_HAVE("refusal", &piece),
                         AH_MAY_HAVE("call", &a_call), AH_MAY_HAVE("error", &failure),
                         AH_MAY_HAVE("usage", &usage), AH_MAY_HAVE("stop", &stop_word))};

typedef struct reader {
    ah_reader base;
    bool finished;
    ah_buf line;
} reader;

static ah_status open_reader(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    reader *r = ah_alloc(a->mem, sizeof *r);

    if (!r)
        return ah_err_nomem(err);
    r->base = (ah_reader){.adapter = a,
                          .msg = msg,
                          .retry_after_ms = -1,
                          .should_retry = -1,
                          .linger_ms = -1,
                          .status = 200};
    ah_buf_init(&r->line, a->mem, MAX_LINE);
    *out = &r->base;
    return AH_OK;
}

static void close_reader(ah_reader *base)
{
    ah_buf_clear(&((reader *)base)->line);
    ah_free(base->adapter->mem, base);
}

static int64_t integer(ah_slice object, const char *key)
{
    ah_json_num n;

    return ah_json_number(ah_json_member(object, key), &n) && n.is_int ? n.i : 0;
}

static ah_status read_call(reader *r, ah_slice came, ah_err *err)
{
    ah_slice id = ah_json_member(came, "id"), name = ah_json_member(came, "name");
    ah_slice arguments = ah_json_member(came, "arguments");
    ah_draft_call *c;
    ah_status st = ah_assembly_call(r->base.msg, integer(came, "index"), &c, err);

    if (st == AH_OK && ah_json_kind_of(id) == AH_JSON_STRING)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK && ah_json_kind_of(name) == AH_JSON_STRING)
        st = ah_assembly_call_name(c, ah_json_inside(name), err);
    if (st == AH_OK && ah_json_kind_of(arguments) == AH_JSON_STRING)
        st = ah_assembly_call_arguments(c, ah_json_inside(arguments), err);
    return st;
}

ah_status ah_scripted_failure(const ah_mem *mem, ah_slice error, int64_t *retry_after_ms,
                              ah_err *err)
{
    ah_slice message = ah_json_member(error, "message");
    ah_json_num after;
    ah_buf b;

    *retry_after_ms = -1;
    ah_buf_init(&b, mem, message.n + 64);
    if (!ah_json_string(message, &b) || !ah_buf_ok(&b))
        ah_buf_str(&b, "the scripted model failed");
    b.len = ah_flatten(b.data, b.len);
    ah_err_set(err, AH_PROVIDER, "%.*s", AH_FMT(ah_buf_slice(&b)));
    ah_buf_clear(&b);
    if (ah_json_number(ah_json_member(error, "retry_after"), &after) && after.d > 0 &&
        after.d < 3600)
        *retry_after_ms = ah_ms_of(after.d);
    err->phase = AH_PHASE_RESPONSE;
    err->http_status = (int)integer(error, "status");
    err->retryable = ah_json_kind_of(ah_json_member(error, "retryable")) == AH_JSON_TRUE;
    if (ah_json_string_is(ah_json_member(error, "code"), "context_full"))
        ah_full_tell(&(ah_full){.window = integer(error, "window"), .used = integer(error, "used")},
                     err);
    return err->status;
}

static ah_status read_error(reader *r, ah_slice error, ah_err *err)
{
    return ah_scripted_failure(r->base.adapter->mem, error, &r->base.retry_after_ms, err);
}

static void read_usage(reader *r, ah_slice u)
{
    ah_assembly_cost(r->base.msg, ah_json_member(u, "cost"));
    ah_assembly_usage(r->base.msg, (ah_usage){
                                       .input = integer(u, "input"),
                                       .cached_read = integer(u, "cached_read"),
                                       .cached_write = integer(u, "cached_write"),
                                       .output = integer(u, "output"),
                                       .reasoning = integer(u, "reasoning"),
                                       .known = true,
                                   });
}

static ah_stop stop_of(ah_slice word)
{
    int i = 0;

    while (stops[i] && !ah_json_string_is(word, stops[i]))
        i++;
    return stops[i] ? (ah_stop)(AH_STOP_END + i) : AH_STOP_END;
}

static ah_status bad(ah_err *err, ah_slice said)
{
    ah_err_set(err, AH_PROVIDER, "a line of the model's answer: %.*s", AH_FMT(said));
    err->phase = AH_PHASE_RESPONSE;
    return AH_PROVIDER;
}

static ah_status read_piece(reader *r, ah_json_token key, ah_json_token t, ah_slice v, ah_err *err)
{
    if (ah_json_token_is(key, "text"))
        return ah_assembly_text(r->base.msg, t.raw, err);
    if (ah_json_token_is(key, "refusal"))
        return ah_assembly_refusal(r->base.msg, t.raw, err);
    if (ah_json_token_is(key, "call"))
        return read_call(r, v, err);
    if (ah_json_token_is(key, "error"))
        return read_error(r, v, err);
    if (ah_json_token_is(key, "opaque"))
        return ah_assembly_opaque(r->base.msg, v, err);
    if (ah_json_token_is(key, "usage")) {
        read_usage(r, v);
    } else if (ah_json_token_is(key, "stop")) {
        ah_assembly_stop(r->base.msg, stop_of(v), v);
        ah_buf_reset(&r->base.msg->stop_word, 0); /* the word is ours, not a provider's */
        r->finished = true;
    } else {
        return bad(err,
                   ah_slice_of("it has a member that no piece has; pieces are text, refusal, call, "
                               "opaque, stop, usage and error"));
    }
    return AH_OK;
}

static ah_status check_line(reader *r, ah_slice line, ah_err *err)
{
    static const char what[] = "a line of the model's answer";
    const ah_mem *mem = r->base.adapter->mem;
    size_t halves = 0;
    ah_status st = ah_json_check_piece_err(mem, line, &halves, what, err);
    ah_buf said;

    if (st == AH_OK && ah_json_kind_of(line) != AH_JSON_OBJECT)
        return ah_err_set(err, AH_PROVIDER, "a line of the model's answer is no JSON object");
    ah_buf_init(&said, mem, MAX_SAID);
    if (st == AH_OK && !ah_shape_fits(&line_shape, line, halves, NULL, &said))
        st = said.len ? bad(err, ah_buf_slice(&said)) : ah_json_check_err(mem, line, what, err);
    ah_buf_clear(&said);
    if (st != AH_OK && st != AH_NOMEM)
        st = err->status = AH_PROVIDER;
    return st;
}

static ah_status read_line(reader *r, ah_slice line, ah_err *err)
{
    ah_status st = check_line(r, line, err);
    ah_json_reader it = ah_json_read(line);
    ah_json_token key;

    if (st != AH_OK)
        return st;
    ah_json_next(&it);
    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_json_token t = ah_json_next(&it);

        st = read_piece(r, key, t, ah_json_skip(&it, t), err);
    }
    return st;
}

static ah_status head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    (void)err;
    ah_reader_note_head(base, h);
    return AH_OK;
}

static ah_status feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st = AH_OK;
    const char *nl;

    while (st == AH_OK && bytes.n && (nl = memchr(bytes.p, '\n', bytes.n))) {
        size_t n = (size_t)(nl - bytes.p);

        ah_buf_add(&r->line, bytes.p, n);
        if (!ah_buf_ok(&r->line))
            break;
        if (r->line.len)
            st = read_line(r, ah_buf_slice(&r->line), err);
        ah_buf_reset(&r->line, 0);
        bytes = (ah_slice){nl + 1, bytes.n - n - 1};
    }
    ah_buf_put(&r->line, bytes);
    if (st == AH_OK && !ah_buf_ok(&r->line))
        st = ah_buf_error(&r->line, "a line of the model's answer", err);
    return st;
}

static ah_status end(ah_reader *base, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st = r->line.len ? read_line(r, ah_buf_slice(&r->line), err) : AH_OK;

    if (st == AH_OK && r->finished)
        st = ah_assembly_check(r->base.msg, err);
    if (st != AH_OK || r->finished)
        return st;
    ah_err_set(err, AH_HTTP, "the model's answer ended before it was complete");
    ah_json_detail(err, "reason", ah_slice_of("broken"));
    err->phase = AH_PHASE_RESPONSE;
    err->retryable = true;
    return AH_HTTP;
}

static void start_exchange(ah_adapter *a, struct ah_exchange *x)
{
    ah_scripted *s = (ah_scripted *)a;

    s->start(s, x);
}

static void stop_exchange(ah_adapter *a, struct ah_exchange *x)
{
    ah_scripted *s = (ah_scripted *)a;

    s->stop(s, x);
}

static ah_status stand_in(ah_adapter *a, const struct ah_call *call, ah_tool **out, ah_err *err)
{
    ah_scripted *s = (ah_scripted *)a;

    *out = NULL;
    return s->stand_in ? s->stand_in(s, call, out, err) : AH_OK;
}

static void rest(ah_adapter *a, const ah_wire *w)
{
    ah_scripted *s = (ah_scripted *)a;

    if (s->rest)
        s->rest(s, w);
}

static void leave(ah_adapter *a, const ah_wire *w)
{
    ah_scripted *s = (ah_scripted *)a;

    if (s->leave)
        s->leave(s, w);
}

static void release(ah_adapter *a)
{
    ((ah_scripted *)a)->release((ah_scripted *)a);
}

/* All slots but the reader's. */
#define SLOTS                                                                                      \
    .name = "scripted", .revision = 1, .head = head, .entry = entry, .tail = "]}",                 \
    .stand_in = stand_in, .exchange = start_exchange, .stop = stop_exchange, .rest = rest,         \
    .leave = leave, .free = release

const ah_adapter_vt ah_scripted_vt = {
    SLOTS,        .open = open_reader, .head_came = head_came,
    .feed = feed, .end = end,          .close = close_reader,
};

/* -- lines of other wires ---------------------------------------------------------------------- */

#define READS(open_it)                                                                             \
    {                                                                                              \
        SLOTS, .open = open_it, .head_came = ah_wire_reader_head_came,                             \
               .feed = ah_wire_reader_feed, .end = ah_wire_reader_end,                             \
               .close = ah_wire_reader_close                                                       \
    }

const char *const ah_scripted_wires[] = {"anthropic", "openai", "responses",
                                         "gemini",    "ollama", NULL};
/* In the order of ah_scripted_wires. */
static const ah_adapter_vt wires[] = {READS(ah_anthropic_open), READS(ah_openai_open),
                                      READS(ah_responses_open), READS(ah_gemini_open),
                                      READS(ah_ollama_open)};

void ah_scripted_read(ah_scripted *s, size_t n)
{
    s->service = (ah_service){.name = s->native.base.provider->data,
                              .key_env = {"the key of this adapter"},
                              .keyless = true,
                              .lines = true};
    s->native.service = &s->service;
    s->native.base.vt = &wires[n];
}
