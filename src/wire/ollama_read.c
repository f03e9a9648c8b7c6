/* Reads Ollama's /api/chat, a stream of lines with one JSON object each, or one object, into an
 * assembly. The thoughts of a message with calls are kept, to be sent back with it. */
#include "wire/ollama_read.h"

#include "wire/reader.h"

typedef struct reader {
    ah_wire_reader r;
    ah_buf thinking;
} reader;

/* -- shapes
 *
 * Ignored: counts and times (invalid ones are ignored, and no other part of the answer depends
 * on them), `model`, `created_at` and unknown members. */

static const char *const roles[] = {"assistant", NULL};
static const ah_shape role = {.kinds = AH_IS_STRING, .words = roles};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape maybe_piece = {.kinds = AH_IS_PIECE | AH_IS_NULL};
static const ah_shape name = {.kinds = AH_IS_NAME};
static const ah_shape boolean = {.kinds = AH_IS_BOOLEAN};

/* Servers that follow OpenAI send arguments as text, or null for none. */
static const ah_shape arguments = {.kinds = AH_IS_OBJECT | AH_IS_STRING | AH_IS_NULL};
static const ah_shape function = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_NEEDS("name", &name), AH_MAY_HAVE("arguments", &arguments))};
static const ah_shape call = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("id", &maybe_string), AH_NEEDS("function", &function))};
static const ah_shape calls = {.kinds = AH_IS_ARRAY | AH_IS_NULL, .items = &call};
static const ah_shape message = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("content", &piece), AH_MAY_HAVE("role", &role),
                         AH_MAY_HAVE("thinking", &maybe_piece), AH_MAY_HAVE("tool_calls", &calls))};
/* The last line may have no message. */
static const ah_shape answer = {
    .member = AH_MEMBERS(AH_MAY_HAVE("error", &ah_no_error), AH_MAY_HAVE("message", &message),
                         AH_MAY_HAVE("done", &boolean), AH_MAY_HAVE("done_reason", &maybe_string))};

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

static ah_status read_call(reader *x, ah_slice came, ah_err *err)
{
    ah_assembly *msg = message_of(x);
    ah_slice id = ah_json_member(came, "id"), called = ah_json_member(came, "function");
    ah_slice given = ah_json_member(called, "arguments");
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    if (st == AH_OK && ah_json_kind_of(id) == AH_JSON_STRING)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK)
        st = ah_assembly_call_name(c, ah_json_inside(ah_json_member(called, "name")), err);
    if (st != AH_OK)
        return st;
    if (ah_json_kind_of(given) == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(given), err);
    return ah_assembly_call_value(
        c, ah_json_kind_of(given) == AH_JSON_OBJECT ? given : ah_slice_of("{}"), err);
}

/* Each call is complete; several lines may have calls. */
static ah_status read_calls(reader *x, ah_slice list, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_call(x, ah_json_skip(&it, t), err);
    return st;
}

static ah_status read_message(reader *x, ah_slice came, ah_err *err)
{
    ah_slice content, thinking, list;
    const ah_json_slot want[] = {
        {"content", &content}, {"thinking", &thinking}, {"tool_calls", &list}};
    ah_status st = AH_OK;

    if (!ah_json_members(came, want, 3))
        return AH_OK;
    x->r.begun = true;
    if (ah_json_kind_of(thinking) == AH_JSON_STRING)
        ah_buf_put(&x->thinking, ah_json_inside(thinking));
    if ((st = ah_wire_reader_kept(&x->r, &x->thinking, err)) != AH_OK)
        return st;
    if (content.p)
        st = ah_assembly_text(message_of(x), ah_json_inside(content), err);
    else if (!x->r.pieces && list.n <= 2)
        st = ah_wire_reader_bad(&x->r, err,
                                "the answer's message.content must be a string, found nothing");
    return st == AH_OK ? read_calls(x, list, err) : st;
}

/* The cached part of a prompt is not counted. */
static void read_usage(ah_assembly *msg, ah_slice doc)
{
    ah_usage u = {.input = ah_wire_reader_count(ah_json_member(doc, "prompt_eval_count")),
                  .output = ah_wire_reader_count(ah_json_member(doc, "eval_count"))};

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

static ah_status read_document(ah_wire_reader *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;
    ah_status st = read_message(x, ah_json_member(doc, "message"), err);

    if (st == AH_OK && ah_json_kind_of(ah_json_member(doc, "done")) == AH_JSON_TRUE)
        read_done(x, doc);
    else if (st == AH_OK && r->begun && !r->pieces)
        st = ah_wire_reader_bad(r, err, "the answer's done must be true, found false or nothing");
    return st;
}

/* Thoughts are sent back within a tool loop, where the model continues from them. */
static ah_status complete(ah_wire_reader *r, ah_err *err)
{
    reader *x = (reader *)r;
    ah_status st;
    ah_buf all;

    if (!x->thinking.len || !message_of(x)->n)
        return AH_OK;
    ah_buf_init(&all, r->base.adapter->mem, AH_MAX_TEXT);
    ah_buf_fmt(&all, "{\"thinking\":\"%.*s\"}", AH_FMT(ah_buf_slice(&x->thinking)));
    st = ah_wire_reader_kept(r, &all, err);
    if (st == AH_OK)
        st = ah_assembly_opaque(message_of(x), ah_buf_slice(&all), err);
    ah_buf_clear(&all);
    return st;
}

static void clear(ah_wire_reader *r)
{
    ah_buf_clear(&((reader *)r)->thinking);
}

static const ah_wire_reader_vt reading = {
    .no_answer = "the answer holds no message",
    .stop = "done_reason",
    .size = sizeof(reader),
    .whole = &answer,
    .piece = &answer,
    .document = read_document,
    .complete = complete,
    .clear = clear,
};

ah_status ah_ollama_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_wire_reader_open(&reading, a, msg, out, err);

    if (st == AH_OK)
        ah_buf_init(&((reader *)*out)->thinking, a->mem, AH_MAX_TEXT);
    return st;
}
