/* Reading Gemini's generateContent: a stream of events, each a piece of the response, or one
 * document (without alt=sse a list of pieces), into an assembly.
 *
 * Where a part is signed, all parts of the message are kept as they came, to be sent back
 * (gemini.c); but pieces of plain text are joined, and a summary of thoughts is left out. */
#include "wire/gemini.h"

#include <stdio.h>

#include "wire/dialect.h"
#include "wire/sse.h"

enum { MAX_EVENT = 16 << 20, LONGEST_WAIT_MS = 60000 };

typedef struct reader {
    ah_answer answer;
    bool events;   /* an event stream, else one document */
    bool seen;     /* a candidate, or why there is none */
    bool finished; /* why it stopped was said */
    ah_sse sse;
    ah_buf parts; /* those that came, without the brackets around them */
    bool is_signed;
    bool in_text; /* the last of them is plain text, which may go on */
} reader;

ah_status ah_gemini_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    reader *r = ah_alloc(a->mem, sizeof *r);

    if (!r)
        return ah_err_nomem(err);
    ah_answer_init(&r->answer, &ah_gemini_service, a, msg);
    ah_sse_init(&r->sse, a->mem, MAX_EVENT);
    ah_buf_init(&r->parts, a->mem, AH_MAX_TEXT);
    *out = &r->answer.base;
    return AH_OK;
}

void ah_gemini_close(ah_reader *base)
{
    reader *r = (reader *)base;

    ah_answer_clear(&r->answer);
    ah_sse_clear(&r->sse);
    ah_buf_clear(&r->parts);
    ah_free(base->adapter->mem, r);
}

ah_status ah_gemini_head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    reader *r = (reader *)base;

    (void)err;
    r->events = ah_answer_head(&r->answer, h, "text/event-stream");
    return AH_OK;
}

/* -- failures --------------------------------------------------------------------------- */

/* "48s" or "0.5s" in ms, or -1. */
static int64_t duration_ms(ah_slice value)
{
    char text[32];
    double s;
    char unit;

    if (ah_json_kind_of(value) != AH_JSON_STRING || value.n >= sizeof text)
        return -1;
    memcpy(text, value.p + 1, value.n - 2);
    text[value.n - 2] = '\0';
    return sscanf(text, "%8lf%c", &s, &unit) == 2 && unit == 's' && s > 0 ? (int64_t)(s * 1000) : -1;
}

/* The advice of when to come again stands in the error's details, not in a header. */
static void read_details(reader *r, ah_slice details, ah_answer_fault *f)
{
    ah_json_reader it = ah_json_read(details);
    ah_json_token t = ah_json_next(&it);

    for (t = ah_json_next(&it); t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice detail = ah_json_skip(&it, t);
        int64_t ms = duration_ms(ah_json_member(detail, "retryDelay"));

        if (ms > 0)
            r->answer.base.retry_after_ms = ms <= LONGEST_WAIT_MS ? ms : -2;
        if (ah_json_string_is(ah_json_member(detail, "reason"), "API_KEY_INVALID"))
            f->key = true;
    }
}

static ah_status failed(reader *r, ah_slice error, ah_err *err)
{
    int64_t code = ah_answer_count(error, "code");
    ah_answer_fault f = {.message = ah_json_member(error, "message"),
                         .word = ah_json_member(error, "status"),
                         .status = code >= 400 && code < 600 ? (int)code : 0};

    read_details(r, ah_json_member(error, "details"), &f);
    return ah_answer_failed(&r->answer, &f, err);
}

/* -- parts ------------------------------------------------------------------------------- */

/* Keeps a part: plain text goes on where the last one was some, too. */
static ah_status keep(reader *r, ah_slice part, ah_slice text, ah_err *err)
{
    ah_buf *b = &r->parts;

    if (text.p && r->in_text)
        ah_buf_reset(b, b->len - 2); /* the quote and the brace */
    else
        ah_buf_str(b, b->len ? "," : "");
    if (!text.p)
        ah_buf_put(b, part);
    else if (r->in_text)
        ah_buf_fmt(b, "%.*s\"}", AH_FMT(ah_json_inside(text)));
    else
        ah_buf_fmt(b, "{\"text\":%.*s}", AH_FMT(text));
    r->in_text = text.p != NULL;
    if (ah_buf_ok(b))
        return AH_OK;
    return b->status == AH_NOMEM ? ah_err_nomem(err)
                                 : ah_answer_bad(&r->answer, "the message is too large", err);
}

static ah_status read_call(reader *r, ah_slice call, ah_err *err)
{
    ah_assembly *msg = r->answer.base.msg;
    ah_slice id = ah_json_member(call, "id"), name = ah_json_member(call, "name");
    ah_slice args = ah_json_member(call, "args");
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    if (st == AH_OK && ah_json_kind_of(id) == AH_JSON_STRING)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK && ah_json_kind_of(name) == AH_JSON_STRING)
        st = ah_assembly_call_name(c, ah_wire_name_led(ah_json_inside(name)), err);
    if (st == AH_OK)
        st = ah_assembly_call_value(
            c, ah_json_kind_of(args) == AH_JSON_OBJECT ? args : ah_slice_of("{}"), err);
    return st;
}

static ah_status read_part(reader *r, ah_slice part, ah_err *err)
{
    ah_slice text, call, thought, signature;
    const ah_json_wanted want[] = {{"text", &text},
                                   {"functionCall", &call},
                                   {"thought", &thought},
                                   {"thoughtSignature", &signature}};
    bool of_thoughts, plain;
    ah_status st = AH_OK;

    ah_json_members(part, want, 4);
    of_thoughts = ah_json_kind_of(thought) == AH_JSON_TRUE;
    if (ah_json_kind_of(text) != AH_JSON_STRING)
        text = (ah_slice){NULL, 0};
    plain = text.p && !call.p && !signature.p;
    r->is_signed = r->is_signed || signature.p;
    if (ah_json_kind_of(call) == AH_JSON_OBJECT)
        st = read_call(r, call, err);
    else if (text.p && !of_thoughts)
        st = ah_assembly_text(r->answer.base.msg, ah_json_inside(text), err);
    if (st != AH_OK || (of_thoughts && !signature.p))
        return st;
    return keep(r, part, plain ? text : (ah_slice){NULL, 0}, err);
}

static ah_status read_parts(reader *r, ah_slice parts, ah_err *err)
{
    ah_json_reader it = ah_json_read(parts);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_part(r, ah_json_skip(&it, t), err);
    return st;
}

/* -- the document --------------------------------------------------------------------------- */

static ah_stop stop_of(ah_slice reason)
{
    static const char *const filters[] = {"SAFETY",
                                          "RECITATION",
                                          "LANGUAGE",
                                          "BLOCKLIST",
                                          "PROHIBITED_CONTENT",
                                          "SPII",
                                          "IMAGE_SAFETY",
                                          "IMAGE_PROHIBITED_CONTENT",
                                          "IMAGE_RECITATION"};

    if (ah_json_string_is(reason, "MAX_TOKENS"))
        return AH_STOP_LENGTH;
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++)
        if (ah_json_string_is(reason, filters[i]))
            return AH_STOP_FILTER;
    return AH_STOP_END;
}

/* A call that the service itself could not read: asked for again, it mostly comes out well. */
static ah_status malformed(reader *r, ah_slice candidate, ah_slice reason, ah_err *err)
{
    ah_answer_fault f = {.message = ah_json_member(candidate, "finishMessage"), .word = reason};

    if (!f.message.p)
        f.message = reason;
    return ah_answer_failed(&r->answer, &f, err);
}

static ah_status read_stop(reader *r, ah_slice candidate, ah_slice reason, ah_err *err)
{
    const ah_assembly *msg = r->answer.base.msg;

    if (ah_json_kind_of(reason) != AH_JSON_STRING)
        return AH_OK;
    if (!msg->n && !msg->text.len &&
        (ah_json_string_is(reason, "MALFORMED_FUNCTION_CALL") ||
         ah_json_string_is(reason, "UNEXPECTED_TOOL_CALL")))
        return malformed(r, candidate, reason, err);
    r->finished = true;
    return ah_assembly_stop(r->answer.base.msg, stop_of(reason), ah_json_inside(reason), err);
}

static ah_status read_candidates(reader *r, ah_slice candidates, ah_err *err)
{
    ah_json_reader it = ah_json_read(candidates);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice candidate = ah_json_skip(&it, t);

        if (ah_answer_count(candidate, "index"))
            continue; /* only the first answer is ours */
        r->seen = true;
        st = read_parts(r, ah_json_path(candidate, "content.parts"), err);
        if (st == AH_OK)
            st = read_stop(r, candidate, ah_json_member(candidate, "finishReason"), err);
    }
    return st;
}

/* Each piece has the counters up to it; thoughts are not among the candidates' tokens. */
static void read_usage(ah_assembly *msg, ah_slice usage)
{
    int64_t thoughts = ah_answer_count(usage, "thoughtsTokenCount");

    msg->usage = (ah_usage){.input = ah_answer_count(usage, "promptTokenCount"),
                            .cached_read = ah_answer_count(usage, "cachedContentTokenCount"),
                            .output = ah_answer_count(usage, "candidatesTokenCount") + thoughts,
                            .reasoning = thoughts,
                            .known = true};
}

static ah_status read_piece(reader *r, ah_slice doc, ah_err *err)
{
    ah_slice error, candidates, usage, blocked = ah_json_path(doc, "promptFeedback.blockReason");
    const ah_json_wanted want[] = {
        {"error", &error}, {"candidates", &candidates}, {"usageMetadata", &usage}};
    ah_status st;

    if (!ah_json_members(doc, want, 3))
        return ah_answer_bad(&r->answer, "expected a JSON object as answer", err);
    if (ah_json_kind_of(error) == AH_JSON_OBJECT || ah_json_kind_of(error) == AH_JSON_STRING)
        return failed(r, error, err);
    if (ah_json_kind_of(usage) == AH_JSON_OBJECT)
        read_usage(r->answer.base.msg, usage);
    st = read_candidates(r, candidates, err);
    if (st != AH_OK || ah_json_kind_of(blocked) != AH_JSON_STRING)
        return st;
    r->seen = r->finished = true;
    return ah_assembly_stop(r->answer.base.msg, AH_STOP_FILTER, ah_json_inside(blocked), err);
}

static ah_status read_document(reader *r, ah_slice doc, ah_err *err)
{
    ah_json_reader it = ah_json_read(doc);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return read_piece(r, doc, err);
    for (t = ah_json_next(&it); st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = read_piece(r, ah_json_skip(&it, t), err);
    return st;
}

static ah_status on_event(void *ud, ah_slice event, ah_slice data, ah_err *err)
{
    reader *r = ud;
    ah_status st;

    (void)event;
    if (!data.n)
        return AH_OK;
    st = ah_answer_check(&r->answer, data, "an event of the stream", err);
    return st == AH_OK ? read_piece(r, data, err) : st;
}

ah_status ah_gemini_feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st;

    if (!r->events)
        return ah_answer_keep(&r->answer, bytes, err);
    st = ah_sse_feed(&r->sse, bytes, on_event, r, err);
    if (st != AH_OK && st != AH_NOMEM)
        err->phase = AH_PHASE_RESPONSE;
    if (r->finished)
        base->linger_ms = AH_ANSWER_LINGER_MS;
    return st;
}

/* Hands over what is to be sent back. */
static ah_status end_message(reader *r, ah_err *err)
{
    ah_status st;
    ah_buf all;

    if (!r->seen)
        return ah_answer_bad(&r->answer, "the answer holds no candidates", err);
    if (!r->is_signed)
        return AH_OK;
    ah_buf_init(&all, r->answer.base.adapter->mem, AH_MAX_TEXT);
    ah_buf_char(&all, '[');
    ah_buf_put(&all, ah_buf_slice(&r->parts));
    ah_buf_char(&all, ']');
    st = ah_buf_ok(&all) ? ah_assembly_opaque(r->answer.base.msg, ah_buf_slice(&all), err)
                         : ah_buf_error(&all, "the model's message", err);
    ah_buf_clear(&all);
    return st;
}

static ah_status end_document(reader *r, ah_err *err)
{
    bool fine = r->answer.base.status >= 200 && r->answer.base.status < 300;
    ah_slice doc = {NULL, 0}, error;
    ah_status st = ah_answer_whole(&r->answer, &doc, err);

    if (st != AH_OK)
        return st;
    if (fine)
        return read_document(r, doc, err);
    if (ah_json_kind_of(doc) == AH_JSON_ARRAY) { /* of a stream that was asked for without alt=sse */
        ah_json_reader it = ah_json_read(doc);

        ah_json_token t = (ah_json_next(&it), ah_json_next(&it));

        doc = t.kind == AH_JSON_OBJECT ? ah_json_skip(&it, t) : (ah_slice){NULL, 0};
    }
    error = ah_json_member(doc, "error");
    return failed(r, error.p ? error : doc, err);
}

ah_status ah_gemini_end(ah_reader *base, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st;

    if (!r->events)
        st = end_document(r, err);
    else if ((st = ah_sse_end(&r->sse, on_event, r, err)) == AH_OK && !r->finished)
        st = ah_answer_cut(&r->answer, err);
    return st == AH_OK ? end_message(r, err) : st;
}
