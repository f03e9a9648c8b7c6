/* Reading Ollama's /api/chat: a stream of lines, each a JSON object, or one object, into an
 * assembly. Thoughts of a message with calls are kept, to be sent back with it. */
#include "wire/ollama_read.h"

#include "wire/reading.h"

typedef struct reader {
    ah_reading r;
    ah_buf thinking;
} reader;

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

static ah_status read_call(reader *x, ah_slice call, ah_err *err)
{
    ah_assembly *msg = message_of(x);
    ah_slice id = ah_json_member(call, "id"),
             name = ah_json_member(ah_json_member(call, "function"), "name");
    ah_slice arguments = ah_json_member(ah_json_member(call, "function"), "arguments");
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
static ah_status read_calls(reader *x, ah_slice calls, ah_err *err)
{
    ah_json_reader it = ah_json_read(calls);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_call(x, ah_json_skip(&it, t), err);
    return st;
}

static ah_status read_message(reader *x, ah_slice message, ah_err *err)
{
    ah_slice content, thinking, calls;
    const ah_json_wanted want[] = {
        {"content", &content}, {"thinking", &thinking}, {"tool_calls", &calls}};
    ah_status st = AH_OK;

    if (!ah_json_members(message, want, 3))
        return AH_OK;
    x->r.begun = true;
    if (ah_json_kind_of(thinking) == AH_JSON_STRING)
        ah_buf_put(&x->thinking, ah_json_inside(thinking));
    if ((st = ah_reading_kept(&x->r, &x->thinking, err)) != AH_OK)
        return st;
    if (ah_json_kind_of(content) == AH_JSON_STRING)
        st = ah_assembly_text(message_of(x), ah_json_inside(content), err);
    return st == AH_OK ? read_calls(x, calls, err) : st;
}

/* What was cached of a prompt is not counted. */
static void read_usage(ah_assembly *msg, ah_slice doc)
{
    ah_usage u = {.input = ah_reading_count(ah_json_member(doc, "prompt_eval_count")),
                  .output = ah_reading_count(ah_json_member(doc, "eval_count"))};

    u.known = u.input || u.output;
    ah_assembly_usage(msg, u);
}

static void read_done(reader *x, ah_slice doc)
{
    ah_slice reason = ah_json_member(doc, "done_reason");
    bool cut = ah_json_string_is(reason, "length");

    x->r.finished = x->r.done = true;
    read_usage(message_of(x), doc);
    ah_assembly_stop(message_of(x), cut ? AH_STOP_LENGTH : AH_STOP_END, reason);
}

static ah_status read_document(ah_reading *r, ah_slice doc, ah_err *err)
{
    ah_slice error, message, done;
    const ah_json_wanted want[] = {{"error", &error}, {"message", &message}, {"done", &done}};
    reader *x = (reader *)r;
    ah_status st;

    ah_json_members(doc, want, 3);
    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return ah_reading_error(r, error, err);
    st = read_message(x, message, err);
    if (st == AH_OK && ah_json_kind_of(done) == AH_JSON_TRUE)
        read_done(x, doc);
    return st;
}

/* Thoughts go back within a loop of tools, where the model goes on from them. */
static ah_status complete(ah_reading *r, ah_err *err)
{
    reader *x = (reader *)r;
    ah_status st;
    ah_buf all;

    if (!x->thinking.len || !message_of(x)->n)
        return AH_OK;
    ah_buf_init(&all, r->base.adapter->mem, AH_MAX_TEXT);
    ah_buf_fmt(&all, "{\"thinking\":\"%.*s\"}", AH_FMT(ah_buf_slice(&x->thinking)));
    st = ah_reading_kept(r, &all, err);
    if (st == AH_OK)
        st = ah_assembly_opaque(message_of(x), ah_buf_slice(&all), err);
    ah_buf_clear(&all);
    return st;
}

static void clear(ah_reading *r)
{
    ah_buf_clear(&((reader *)r)->thinking);
}

static const ah_reading_vt reading = {
    .no_answer = "the answer holds no message",
    .size = sizeof(reader),
    .document = read_document,
    .complete = complete,
    .clear = clear,
};

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_reading_open(&reading, a, msg, out, err);

    if (st == AH_OK)
        ah_buf_init(&((reader *)*out)->thinking, a->mem, AH_MAX_TEXT);
    return st;
}
