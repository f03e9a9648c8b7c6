/* Reads Gemini's generateContent, a stream of events with pieces of the response, or one document
 * (without alt=sse a list of pieces), into an assembly. If a part is signed, all parts of the
 * message are kept unchanged, to be sent back (gemini.c); only pieces of plain text are joined, and
 * summaries of thoughts are left out. */
#include "wire/gemini_read.h"

#include "wire/advice.h"
#include "wire/reader.h"

typedef struct reader {
    ah_wire_reader r;
    ah_buf parts; /* the received parts, without the brackets around them */
    bool is_signed;
    bool in_text; /* the last of them is plain text, which may continue */
    bool said;    /* a part has come, or none was required */
} reader;

/* -- shapes
 *
 * Ignored: `usageMetadata` (invalid counts are ignored, and no other part of the answer depends
 * on them), `modelVersion`, `responseId`, `safetyRatings`, `citationMetadata` and unknown
 * members. */

static const char *const roles[] = {"model", NULL};
static const ah_shape role = {.kinds = AH_IS_STRING | AH_IS_NULL, .words = roles};
static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape name = {.kinds = AH_IS_NAME};
static const ah_shape maybe_boolean = {.kinds = AH_IS_BOOLEAN | AH_IS_NULL};
static const ah_shape maybe_count = {.kinds = AH_IS_COUNT | AH_IS_NULL};
static const ah_shape maybe_object = {.kinds = AH_IS_OBJECT | AH_IS_NULL};

static const ah_shape call = {.kinds = AH_IS_OBJECT,
                              .member = AH_MEMBERS(AH_NEEDS("name", &name),
                                                   AH_MAY_HAVE("args", &maybe_object),
                                                   AH_MAY_HAVE("id", &maybe_string))};
static const ah_shape part = {.kinds = AH_IS_OBJECT,
                              .member = AH_MEMBERS(AH_MAY_HAVE("text", &piece),
                                                   AH_MAY_HAVE("functionCall", &call),
                                                   AH_MAY_HAVE("thought", &maybe_boolean),
                                                   AH_MAY_HAVE("thoughtSignature", &string))};
static const ah_shape parts = {.kinds = AH_IS_ARRAY, .items = &part};
static const ah_shape content = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("role", &role), AH_MAY_HAVE("parts", &parts))};
static const ah_shape candidate = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("content", &content), AH_MAY_HAVE("index", &maybe_count),
                         AH_MAY_HAVE("finishReason", &maybe_string))};
static const ah_shape candidates = {.kinds = AH_IS_ARRAY, .items = &candidate};
static const ah_shape feedback = {.kinds = AH_IS_OBJECT | AH_IS_NULL,
                                  .member = AH_MEMBERS(AH_MAY_HAVE("blockReason", &maybe_string))};
/* A blocked prompt has no candidates, and neither has the last piece of some streams. */
static const ah_shape answer = {.member = AH_MEMBERS(AH_MAY_HAVE("error", &ah_no_error),
                                                     AH_MAY_HAVE("candidates", &candidates),
                                                     AH_MAY_HAVE("promptFeedback", &feedback))};

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

/* -- failures --------------------------------------------------------------------------- */

/* The time to wait is in the error's details, not in a header. */
static void note_fault(ah_wire_reader *r, ah_slice error, ah_buf *more)
{
    ah_json_reader it = ah_json_read(ah_json_member(error, "details"));
    ah_json_token t = ah_json_next(&it);

    (void)more;
    for (t = ah_json_next(&it); t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice detail = ah_json_skip(&it, t);
        ah_slice delay = ah_json_member(detail, "retryDelay");
        double ms = ah_wire_reader_says(delay) ? ah_advice_span(ah_json_inside(delay), 0) : -1;

        if (ms > 0)
            r->base.retry_after_ms = ms <= AH_LONGEST_WAIT_MS ? (int64_t)ms : -2;
        if (ah_json_string_is(ah_json_member(detail, "reason"), "API_KEY_INVALID"))
            r->wrong_key = true;
    }
}

/* -- parts ------------------------------------------------------------------------------- */

/* Keeps a part; plain text is added to a plain text before it. */
static ah_status keep(reader *x, ah_slice came, ah_slice text, ah_err *err)
{
    ah_buf *b = &x->parts;

    if (text.p && x->in_text)
        ah_buf_reset(b, b->len - 2); /* removes the quote and the brace */
    else
        ah_buf_str(b, b->len ? "," : "");
    if (!text.p)
        ah_buf_put(b, came);
    else if (x->in_text)
        ah_buf_fmt(b, "%.*s\"}", AH_FMT(ah_json_inside(text)));
    else
        ah_buf_fmt(b, "{\"text\":%.*s}", AH_FMT(text));
    x->in_text = text.p != NULL;
    return ah_wire_reader_kept(&x->r, b, err);
}

static ah_status read_call(reader *x, ah_slice came, ah_err *err)
{
    ah_assembly *msg = message_of(x);
    ah_slice id = ah_json_member(came, "id"), called = ah_json_member(came, "name");
    ah_slice args = ah_json_member(came, "args");
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    if (st == AH_OK && ah_json_kind_of(id) == AH_JSON_STRING)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK)
        st = ah_assembly_call_name(c, ah_wire_led_name(ah_json_inside(called)), err);
    if (st == AH_OK)
        st = ah_assembly_call_value(
            c, ah_json_kind_of(args) == AH_JSON_OBJECT ? args : ah_slice_of("{}"), err);
    return st;
}

/* True if a part has text, a call or other content; false if it has only metadata. */
static bool says_something(ah_slice came)
{
    static const char *const about[] = {"thought",       "thoughtSignature", "partMetadata",
                                        "videoMetadata", "mediaResolution",  NULL};
    ah_json_reader it = ah_json_read(came);
    ah_json_token key = ah_json_next(&it);

    for (key = ah_json_next(&it); key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        size_t i = 0;

        while (about[i] && !ah_json_token_is(key, about[i]))
            i++;
        if (!about[i])
            return true;
        ah_json_skip(&it, ah_json_next(&it));
    }
    return false;
}

static ah_status read_part(reader *x, ah_slice came, size_t number, ah_err *err)
{
    ah_slice text, called, thought, signature;
    const ah_json_slot want[] = {{"text", &text},
                                 {"functionCall", &called},
                                 {"thought", &thought},
                                 {"thoughtSignature", &signature}};
    bool of_thoughts, plain;
    ah_status st = AH_OK;

    if (!says_something(came))
        return ah_wire_reader_bad(&x->r, err,
                                  "the answer's parts[%zu] holds neither text nor a call", number);
    ah_json_members(came, want, 4);
    of_thoughts = ah_json_kind_of(thought) == AH_JSON_TRUE;
    plain = text.p && !called.p && !signature.p;
    x->is_signed = x->is_signed || signature.p;
    if (called.p)
        st = read_call(x, called, err);
    else if (text.p && !of_thoughts)
        st = ah_assembly_text(message_of(x), ah_json_inside(text), err);
    if (st != AH_OK || (of_thoughts && !signature.p))
        return st;
    return keep(x, came, plain ? text : (ah_slice){NULL, 0}, err);
}

static ah_status read_parts(reader *x, ah_slice list, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;
    size_t number = 0;

    x->said = x->said || t.kind == AH_JSON_ARRAY;
    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_part(x, ah_json_skip(&it, t), number++, err);
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

/* The service could not read the model's call; a retry usually succeeds. */
static ah_status malformed(reader *x, ah_slice came, ah_slice reason, ah_err *err)
{
    ah_slice said = ah_json_member(came, "finishMessage");

    return ah_wire_reader_fault(&x->r, said.p ? said : reason, reason, err);
}

static ah_status read_stop(reader *x, ah_slice came, ah_slice reason, ah_err *err)
{
    const ah_assembly *msg = message_of(x);

    if (ah_json_kind_of(reason) != AH_JSON_STRING)
        return AH_OK;
    if (!msg->n && !msg->text.len &&
        (ah_json_string_is(reason, "MALFORMED_FUNCTION_CALL") ||
         ah_json_string_is(reason, "UNEXPECTED_TOOL_CALL")))
        return malformed(x, came, reason, err);
    x->r.finished = true;
    x->said = x->said || !ah_json_string_is(reason, "STOP");
    ah_assembly_stop(message_of(x), stop_of(reason), reason);
    return AH_OK;
}

static ah_status read_candidates(reader *x, ah_slice list, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;
    int64_t position = 0;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice came = ah_json_skip(&it, t), index = ah_json_member(came, "index");
        ah_json_num n;

        if ((ah_json_number(index, &n) ? n.i : position++) != 0)
            continue; /* only the first answer is used */
        x->r.begun = true;
        st = read_parts(x, ah_json_member(ah_json_member(came, "content"), "parts"), err);
        if (st == AH_OK)
            st = read_stop(x, came, ah_json_member(came, "finishReason"), err);
    }
    return st;
}

/* Each piece has cumulative counters; thoughts are not counted as candidates' tokens. */
static void read_usage(ah_assembly *msg, ah_slice usage)
{
    int64_t thoughts = ah_wire_reader_count(ah_json_member(usage, "thoughtsTokenCount"));

    ah_assembly_usage(
        msg,
        (ah_usage){.input = ah_wire_reader_count(ah_json_member(usage, "promptTokenCount")),
                   .cached_read =
                       ah_wire_reader_count(ah_json_member(usage, "cachedContentTokenCount")),
                   .output = ah_wire_reader_count(ah_json_member(usage, "candidatesTokenCount")) +
                             thoughts,
                   .reasoning = thoughts,
                   .known = true});
}

static ah_status read_document(ah_wire_reader *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;
    ah_slice list, usage,
        blocked = ah_json_member(ah_json_member(doc, "promptFeedback"), "blockReason");
    const ah_json_slot want[] = {{"candidates", &list}, {"usageMetadata", &usage}};
    ah_status st;

    ah_json_members(doc, want, 2);
    if (ah_json_kind_of(usage) == AH_JSON_OBJECT)
        read_usage(message_of(x), usage);
    st = read_candidates(x, list, err);
    if (st != AH_OK || ah_json_kind_of(blocked) != AH_JSON_STRING)
        return st;
    r->begun = r->finished = x->said = true;
    ah_assembly_stop(message_of(x), AH_STOP_FILTER, blocked);
    return AH_OK;
}

/* Adds the part to be sent back. */
static ah_status complete(ah_wire_reader *r, ah_err *err)
{
    reader *x = (reader *)r;
    ah_status st;
    ah_buf all;

    if (!x->said)
        return ah_wire_reader_bad(
            r, err, "the answer's candidates[0].content.parts must be an array, found nothing");
    if (!x->is_signed)
        return AH_OK;
    ah_buf_init(&all, r->base.adapter->mem, AH_MAX_TEXT);
    ah_buf_fmt(&all, "{\"parts\":[%.*s]}", AH_FMT(ah_buf_slice(&x->parts)));
    st = ah_wire_reader_kept(r, &all, err);
    if (st == AH_OK)
        st = ah_assembly_opaque(message_of(x), ah_buf_slice(&all), err);
    ah_buf_clear(&all);
    return st;
}

static void clear(ah_wire_reader *r)
{
    ah_buf_clear(&((reader *)r)->parts);
}

static const ah_wire_reader_vt reading = {
    .no_answer = "the answer holds no candidates",
    .stop = "finishReason",
    .size = sizeof(reader),
    .whole = &answer,
    .piece = &answer,
    .listed = true,
    .document = read_document,
    .complete = complete,
    .fault = note_fault,
    .clear = clear,
};

ah_status ah_gemini_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_wire_reader_open(&reading, a, msg, out, err);

    if (st == AH_OK)
        ah_buf_init(&((reader *)*out)->parts, a->mem, AH_MAX_TEXT);
    return st;
}
