/* Reads OpenAI Responses, a stream of events or one document, into an assembly. Items are taken
 * when they are complete; earlier events are only shown. Reasoning is kept if it can be sent back,
 * which needs its encrypted content, as the service stores nothing. */
#include "wire/responses_read.h"

#include "wire/full.h"
#include "wire/reader.h"

typedef struct reader {
    ah_wire_reader r;
    bool shown;    /* the current message came in pieces */
    bool items;    /* an item has come in its own event */
    int64_t begun; /* items begun minus items ended */
} reader;

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

/* -- shapes
 *
 * Ignored: `usage` (invalid counts are ignored, and no other part of the answer depends on
 * them), `id`, `model`, `annotations`, and unknown events, item types and members. */

static const char *const roles[] = {"assistant", NULL};
static const ah_shape role = {.kinds = AH_IS_STRING, .words = roles};
static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape name = {.kinds = AH_IS_NAME};
static const ah_shape count = {.kinds = AH_IS_COUNT};
static const ah_shape object = {.kinds = AH_IS_OBJECT};

static const ah_shape text_part = {.member = AH_MEMBERS(AH_NEEDS("text", &string))};
static const ah_shape refusal_part = {.member = AH_MEMBERS(AH_NEEDS("refusal", &string))};
static const ah_shape part = {
    .kinds = AH_IS_OBJECT,
    .by = "type",
    .cases = AH_CASES(AH_CASE("output_text", &text_part), AH_CASE("refusal", &refusal_part))};
static const ah_shape parts = {.kinds = AH_IS_ARRAY, .items = &part};
static const ah_shape message = {.member = AH_MEMBERS(AH_NEEDS("content", &parts),
                                                      AH_MAY_HAVE("role", &role),
                                                      AH_MAY_HAVE("phase", &maybe_string))};
/* Some servers send arguments as the object itself. */
static const ah_shape arguments = {.kinds = AH_IS_STRING | AH_IS_OBJECT};
static const ah_shape call = {.member =
                                  AH_MEMBERS(AH_NEEDS("call_id", &name), AH_NEEDS("name", &name),
                                             AH_NEEDS("arguments", &arguments),
                                             AH_MAY_HAVE("namespace", &maybe_string))};
static const ah_shape search_call = {.member = AH_MEMBERS(AH_MAY_HAVE("execution", &maybe_string),
                                                          AH_MAY_HAVE("call_id", &maybe_string),
                                                          AH_MAY_HAVE("arguments", &arguments))};
static const ah_shape tool = {.kinds = AH_IS_OBJECT, .member = AH_MEMBERS(AH_NEEDS("name", &name))};
static const ah_shape tools = {.kinds = AH_IS_ARRAY, .items = &tool};
static const ah_shape search_output = {.member = AH_MEMBERS(AH_NEEDS("tools", &tools))};
static const ah_shape reasoning = {.member =
                                       AH_MEMBERS(AH_MAY_HAVE("encrypted_content", &maybe_string))};
static const ah_shape item = {.kinds = AH_IS_OBJECT,
                              .by = "type",
                              .cases = AH_CASES(AH_CASE("message", &message),
                                                AH_CASE("function_call", &call),
                                                AH_CASE("tool_search_call", &search_call),
                                                AH_CASE("tool_search_output", &search_output),
                                                AH_CASE("reasoning", &reasoning))};
static const ah_shape items = {.kinds = AH_IS_ARRAY, .items = &item};

static const ah_shape incomplete = {.kinds = AH_IS_OBJECT | AH_IS_NULL,
                                    .member = AH_MEMBERS(AH_MAY_HAVE("reason", &maybe_string))};
static const ah_shape answer = {
    .member = AH_MEMBERS(AH_MAY_HAVE("error", &ah_no_error), AH_NEEDS("output", &items),
                         AH_MAY_HAVE("status", &maybe_string),
                         AH_MAY_HAVE("incomplete_details", &incomplete))};
/* The end of a stream repeats the items, which have come in their own events. */
static const ah_shape last_answer = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("output", &items), AH_MAY_HAVE("status", &maybe_string),
                         AH_MAY_HAVE("incomplete_details", &incomplete))};

static const ah_shape delta = {.member = AH_MEMBERS(AH_NEEDS("delta", &piece))};
static const ah_shape item_begins = {
    .member = AH_MEMBERS(AH_NEEDS("item", &object), AH_MAY_HAVE("output_index", &count))};
static const ah_shape item_ends = {
    .member = AH_MEMBERS(AH_NEEDS("item", &item), AH_MAY_HAVE("output_index", &count))};
static const ah_shape ends = {.member = AH_MEMBERS(AH_NEEDS("response", &last_answer))};
static const ah_shape error_event = {.member = AH_MEMBERS(AH_MAY_HAVE("error", &ah_no_error))};
static const ah_shape event = {
    .by = "type",
    .cases = AH_CASES(
        AH_CASE("response.output_text.delta", &delta), AH_CASE("response.refusal.delta", &delta),
        AH_CASE("response.function_call_arguments.delta", &delta),
        AH_CASE("response.reasoning_summary_text.delta", &delta),
        AH_CASE("response.reasoning_text.delta", &delta), AH_CASE("error", &error_event),
        AH_CASE("response.output_item.added", &item_begins),
        AH_CASE("response.output_item.done", &item_ends), AH_CASE("response.completed", &ends),
        AH_CASE("response.incomplete", &ends), AH_CASE("response.failed", &ends))};

/* -- items ----------------------------------------------------------------------------------- */

/* Keeps a member that belongs to what was read last, as {"name":"value"} after it. */
static ah_status keep_mark(reader *x, ah_slice came, const char *member, ah_err *err)
{
    ah_slice value = ah_json_member(came, member);
    ah_buf b;
    ah_status st;

    if (!ah_wire_reader_says(value))
        return AH_OK;
    ah_buf_init(&b, x->r.base.adapter->mem, value.n + 64);
    ah_buf_fmt(&b, "{\"%s\":%.*s}", member, AH_FMT(value));
    st = ah_buf_ok(&b) ? ah_assembly_opaque(message_of(x), ah_buf_slice(&b), err)
                       : ah_err_nomem(err);
    ah_buf_clear(&b);
    return st;
}

static ah_status read_part(reader *x, ah_slice came, ah_err *err)
{
    ah_slice text = ah_json_member(came, "text"), refusal = ah_json_member(came, "refusal");

    if (ah_wire_reader_says(refusal))
        return ah_assembly_refusal(message_of(x), ah_json_inside(refusal), err);
    return ah_wire_reader_says(text) ? ah_assembly_text(message_of(x), ah_json_inside(text), err)
                                     : AH_OK;
}

static ah_status read_message(reader *x, ah_slice came, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(came, "content"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); !x->shown && st == AH_OK && t.kind == AH_JSON_OBJECT;
         t = ah_json_next(&it))
        st = read_part(x, ah_json_skip(&it, t), err);
    x->shown = false;
    return st == AH_OK ? keep_mark(x, came, "phase", err) : st;
}

static ah_status begin_call(reader *x, ah_slice came, ah_slice called, ah_draft_call **c,
                            ah_err *err)
{
    ah_assembly *msg = message_of(x);
    ah_slice id = ah_json_member(came, "call_id");
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, c, err);

    if (st == AH_OK && ah_wire_reader_says(id))
        st = ah_assembly_call_id(*c, ah_json_inside(id), err);
    if (st == AH_OK && ah_wire_reader_says(called))
        st = ah_assembly_call_name(*c, ah_json_inside(called), err);
    return st;
}

static ah_status read_arguments(ah_draft_call *c, ah_slice value, ah_err *err)
{
    if (ah_json_kind_of(value) == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(value), err);
    return ah_json_kind_of(value) == AH_JSON_OBJECT ? ah_assembly_call_value(c, value, err) : AH_OK;
}

static ah_status read_call(reader *x, ah_slice came, ah_slice called, ah_err *err)
{
    ah_draft_call *c;
    ah_status st = begin_call(x, came, called, &c, err);

    if (st == AH_OK)
        st = read_arguments(c, ah_json_member(came, "arguments"), err);
    return st == AH_OK ? keep_mark(x, came, "namespace", err) : st;
}

/* The provider's own search: keeps the item, and adds the names of the found tools. */
static ah_status read_search(reader *x, ah_slice came, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(came, "tools"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = t.kind == AH_JSON_ARRAY ? ah_json_next(&it) : t;
         st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = ah_assembly_found(message_of(x), ah_json_member(ah_json_skip(&it, t), "name"), err);
    return st == AH_OK ? ah_assembly_opaque(message_of(x), came, err) : st;
}

/* Items of other types are ignored. */
static ah_status read_item(reader *x, ah_slice came, ah_err *err)
{
    ah_slice type = ah_json_member(came, "type");
    bool ours = ah_json_string_is(ah_json_member(came, "execution"), "client");

    if (ah_json_string_is(type, "message"))
        return read_message(x, came, err);
    if (ah_json_string_is(type, "function_call"))
        return read_call(x, came, ah_json_member(came, "name"), err);
    if (ah_json_string_is(type, "tool_search_call") && ours)
        return read_call(x, came, ah_slice_of("\"" AH_SEARCH_TOOLS "\""), err);
    if (ah_json_string_is(type, "tool_search_output"))
        return read_search(x, came, err);
    if (ah_json_string_is(type, "tool_search_call") ||
        (ah_json_string_is(type, "reasoning") &&
         ah_wire_reader_says(ah_json_member(came, "encrypted_content"))))
        return ah_assembly_opaque(message_of(x), came, err);
    return AH_OK;
}

static ah_status read_items(reader *x, ah_slice list, ah_err *err)
{
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = read_item(x, ah_json_skip(&it, t), err);
    return st;
}

/* -- the response ------------------------------------------------------------------------------ */

static void read_usage(ah_assembly *msg, ah_slice usage)
{
    ah_slice of_input, of_output;
    const ah_json_slot want[] = {{"input_tokens_details", &of_input},
                                 {"output_tokens_details", &of_output}};

    if (!ah_json_members(usage, want, 2))
        return;
    ah_assembly_cost(msg, ah_json_member(usage, "cost"));
    ah_assembly_usage(
        msg,
        (ah_usage){
            .input = ah_wire_reader_count(ah_json_member(usage, "input_tokens")),
            .cached_read = ah_wire_reader_count(ah_json_member(of_input, "cached_tokens")),
            .cached_write = ah_wire_reader_count(ah_json_member(of_input, "cache_write_tokens")),
            .output = ah_wire_reader_count(ah_json_member(usage, "output_tokens")),
            .reasoning = ah_wire_reader_count(ah_json_member(of_output, "reasoning_tokens")),
            .known = true,
        });
}

/* Reads status and reason. A status other than completed, incomplete or failed is an error. */
static ah_status read_status(reader *x, ah_slice response, ah_err *err)
{
    ah_slice status = ah_json_member(response, "status");
    ah_slice reason = ah_json_member(ah_json_member(response, "incomplete_details"), "reason");
    ah_stop stop = AH_STOP_END;

    if (ah_json_string_is(status, "failed"))
        return ah_wire_reader_bad(&x->r, err, "the answer failed and does not say why");
    if (ah_json_string_is(status, "incomplete"))
        stop = ah_json_string_is(reason, "content_filter") ? AH_STOP_FILTER
               : ah_full_word(reason)                      ? AH_STOP_FULL
                                                           : AH_STOP_LENGTH;
    else if (ah_wire_reader_says(status) && !ah_json_string_is(status, "completed"))
        return ah_wire_reader_bad(&x->r, err,
                                  "the answer is not complete (its status is not 'completed')");
    ah_assembly_stop(message_of(x), stop, ah_wire_reader_says(reason) ? reason : status);
    return AH_OK;
}

/* Reads the whole answer, or the end of a stream, whose items were read already. */
static ah_status read_response(reader *x, ah_slice response, ah_err *err)
{
    ah_slice error = ah_json_member(response, "error");
    ah_status st = AH_OK;

    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return ah_wire_reader_error(&x->r, error, err);
    x->r.begun = x->r.finished = x->r.done = true;
    if (!x->items)
        st = read_items(x, ah_json_member(response, "output"), err);
    read_usage(message_of(x), ah_json_member(response, "usage"));
    ah_assembly_service(message_of(x), ah_json_member(response, "service_tier"));
    if (st == AH_OK)
        st = read_status(x, response, err);
    if (st == AH_OK && x->items && x->begun > 0 && message_of(x)->stop == AH_STOP_END)
        return ah_wire_reader_bad(&x->r, err, "the answer ended within an item of its output");
    return st;
}

static ah_status read_delta(reader *x, ah_slice came, bool refusal, ah_err *err)
{
    ah_slice more = ah_json_member(came, "delta");

    if (!ah_wire_reader_says(more))
        return AH_OK;
    x->shown = true;
    return refusal ? ah_assembly_refusal(message_of(x), ah_json_inside(more), err)
                   : ah_assembly_text(message_of(x), ah_json_inside(more), err);
}

static ah_status read_event(reader *x, ah_slice came, ah_slice type, ah_err *err)
{
    x->r.begun = true;
    if (ah_json_string_is(type, "response.output_text.delta"))
        return read_delta(x, came, false, err);
    if (ah_json_string_is(type, "response.refusal.delta"))
        return read_delta(x, came, true, err);
    if (ah_json_string_is(type, "response.output_item.added"))
        x->begun++;
    if (ah_json_string_is(type, "response.output_item.done")) {
        x->items = true;
        x->begun--;
        return read_item(x, ah_json_member(came, "item"), err);
    }
    if (ah_json_string_is(type, "response.completed") ||
        ah_json_string_is(type, "response.incomplete") ||
        ah_json_string_is(type, "response.failed"))
        return read_response(x, ah_json_member(came, "response"), err);
    return AH_OK;
}

/* An error of a stream may have its members in the event itself. */
static ah_status read_document(ah_wire_reader *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;
    ah_slice type = ah_json_member(doc, "type");

    if (!r->pieces)
        return read_response(x, doc, err);
    if (ah_json_string_is(type, "error"))
        return ah_wire_reader_error(r, doc, err);
    return read_event(x, doc, type, err);
}

static const ah_error_word error_words[] = {
    {"rate_limit_exceeded", 429},
    {"server_error", 500},
    {"invalid_prompt", 400},
    {"invalid_encrypted_content", AH_ERROR_NEVER},
    {NULL, 0},
};

static const ah_wire_reader_vt reading = {
    .no_answer = "the answer holds no output",
    .stop = "status",
    .size = sizeof(reader),
    .words = error_words,
    .whole = &answer,
    .piece = &event,
    .document = read_document,
};

ah_status ah_responses_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    return ah_wire_reader_open(&reading, a, msg, out, err);
}
