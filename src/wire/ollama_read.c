/* Reading Ollama's /api/chat: a stream of lines, each a JSON object, or one object, into an
 * assembly. Thoughts of a message with calls are kept, to be sent back with it. */
#include "wire/ollama.h"

typedef struct reader {
    ah_answer answer;
    bool lines;    /* a stream of lines, else one document */
    bool seen;     /* a message */
    bool finished; /* done was said */
    ah_buf thinking;
} reader;

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    reader *r = ah_alloc(a->mem, sizeof *r);

    if (!r)
        return ah_err_nomem(err);
    ah_answer_init(&r->answer, &ah_ollama_service, a, msg);
    ah_buf_init(&r->thinking, a->mem, AH_MAX_TEXT);
    *out = &r->answer.base;
    return AH_OK;
}

void ah_ollama_close(ah_reader *base)
{
    reader *r = (reader *)base;

    ah_answer_clear(&r->answer);
    ah_buf_clear(&r->thinking);
    ah_free(base->adapter->mem, r);
}

ah_status ah_ollama_head_came(ah_reader *base, const ah_response_head *h, ah_err *err)
{
    reader *r = (reader *)base;

    (void)err;
    r->lines = ah_answer_head(&r->answer, h, "application/x-ndjson");
    return AH_OK;
}

static ah_status read_call(reader *r, ah_slice call, ah_err *err)
{
    ah_assembly *msg = r->answer.base.msg;
    ah_slice id = ah_json_member(call, "id"), name = ah_json_path(call, "function.name");
    ah_slice arguments = ah_json_path(call, "function.arguments");
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    if (st == AH_OK && ah_json_kind_of(id) == AH_JSON_STRING)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK && ah_json_kind_of(name) == AH_JSON_STRING)
        st = ah_assembly_call_name(c, ah_json_inside(name), err);
    if (st != AH_OK)
        return st;
    if (ah_json_kind_of(arguments) == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(arguments), err);
    return ah_assembly_call_value(
        c, ah_json_kind_of(arguments) == AH_JSON_OBJECT ? arguments : ah_slice_of("{}"), err);
}

/* Each call is whole; several lines may have some. */
static ah_status read_calls(reader *r, ah_slice calls, ah_err *err)
{
    ah_json_reader it = ah_json_read(calls);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_call(r, ah_json_skip(&it, t), err);
    return st;
}

static ah_status read_message(reader *r, ah_slice message, ah_err *err)
{
    ah_slice content, thinking, calls;
    const ah_json_wanted want[] = {
        {"content", &content}, {"thinking", &thinking}, {"tool_calls", &calls}};
    ah_status st = AH_OK;

    if (!ah_json_members(message, want, 3))
        return AH_OK;
    r->seen = true;
    if (ah_json_kind_of(thinking) == AH_JSON_STRING)
        ah_buf_put(&r->thinking, ah_json_inside(thinking));
    if (!ah_buf_ok(&r->thinking))
        return r->thinking.status == AH_NOMEM
                   ? ah_err_nomem(err)
                   : ah_answer_bad(&r->answer, "the message is too large", err);
    if (ah_json_kind_of(content) == AH_JSON_STRING)
        st = ah_assembly_text(r->answer.base.msg, ah_json_inside(content), err);
    return st == AH_OK ? read_calls(r, calls, err) : st;
}

/* What was cached of a prompt is not counted. */
static void read_usage(ah_assembly *msg, ah_slice doc)
{
    msg->usage = (ah_usage){.input = ah_answer_count(doc, "prompt_eval_count"),
                            .output = ah_answer_count(doc, "eval_count")};
    msg->usage.known = msg->usage.input || msg->usage.output;
}

static ah_status read_done(reader *r, ah_slice doc, ah_err *err)
{
    ah_slice reason = ah_json_member(doc, "done_reason");

    r->finished = true;
    read_usage(r->answer.base.msg, doc);
    if (ah_json_kind_of(reason) != AH_JSON_STRING)
        reason = ah_slice_of("\"\"");
    return ah_assembly_stop(r->answer.base.msg,
                            ah_json_string_is(reason, "length") ? AH_STOP_LENGTH : AH_STOP_END,
                            ah_json_inside(reason), err);
}

static ah_status failed(reader *r, ah_slice error, ah_err *err)
{
    bool string = ah_json_kind_of(error) == AH_JSON_STRING;
    ah_answer_fault f = {.message = string ? error : ah_json_member(error, "message")};

    return ah_answer_failed(&r->answer, &f, err);
}

static ah_status read_document(reader *r, ah_slice doc, ah_err *err)
{
    ah_slice error, message, done;
    const ah_json_wanted want[] = {{"error", &error}, {"message", &message}, {"done", &done}};
    ah_status st;

    if (!ah_json_members(doc, want, 3))
        return ah_answer_bad(&r->answer, "expected a JSON object as answer", err);
    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return failed(r, error, err);
    st = read_message(r, message, err);
    return st == AH_OK && ah_json_kind_of(done) == AH_JSON_TRUE ? read_done(r, doc, err) : st;
}

/* A line, when it is whole; blank ones mean nothing, nor does what follows the last. */
static ah_status read_line(reader *r, ah_err *err)
{
    ah_buf *b = &r->answer.body;
    ah_status st = AH_OK;
    size_t n = b->len;

    while (n && strchr(" \t\r", b->data[n - 1]))
        n--;
    if (n && !r->finished)
        st = ah_answer_check(&r->answer, (ah_slice){b->data, n}, "a line of the stream", err);
    if (st == AH_OK && n && !r->finished)
        st = read_document(r, (ah_slice){b->data, n}, err);
    ah_buf_reset(b, 0);
    return st;
}

ah_status ah_ollama_feed(ah_reader *base, ah_slice bytes, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st = AH_OK;

    while (r->lines && st == AH_OK && bytes.n) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        size_t n = end ? (size_t)(end - bytes.p) : bytes.n;

        st = ah_answer_keep(&r->answer, (ah_slice){bytes.p, n}, err);
        if (st == AH_OK && end)
            st = read_line(r, err);
        n += end != NULL;
        bytes = (ah_slice){bytes.p + n, bytes.n - n};
    }
    if (r->finished)
        base->linger_ms = AH_ANSWER_LINGER_MS;
    return st == AH_OK ? ah_answer_keep(&r->answer, bytes, err) : st;
}

/* Thoughts go back within a loop of tools, where the model goes on from them. */
static ah_status end_message(reader *r, ah_err *err)
{
    ah_status st;
    ah_buf all;

    if (!r->seen)
        return ah_answer_bad(&r->answer, "the answer holds no message", err);
    if (!r->thinking.len || !r->answer.base.msg->n)
        return AH_OK;
    ah_buf_init(&all, r->answer.base.adapter->mem, AH_MAX_TEXT);
    ah_buf_fmt(&all, "\"%.*s\"", AH_FMT(ah_buf_slice(&r->thinking)));
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
    error = ah_json_member(doc, "error");
    return failed(r, error.p ? error : doc, err);
}

ah_status ah_ollama_end(ah_reader *base, ah_err *err)
{
    reader *r = (reader *)base;
    ah_status st;

    if (!r->lines)
        st = end_document(r, err);
    else if ((st = read_line(r, err)) == AH_OK && !r->finished)
        st = ah_answer_cut(&r->answer, err);
    return st == AH_OK ? end_message(r, err) : st;
}
