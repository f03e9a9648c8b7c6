/* Reading OpenAI Responses: a stream of events or one document, into an assembly. Items are
 * taken when they are complete; what comes before that is for showing only. Reasoning is kept
 * where it can be sent back, which takes its encrypted content: nothing is stored there. */
#include "wire/responses_read.h"

#include "wire/reading.h"

typedef struct reader {
    ah_reading r;
    bool shown; /* the message at work came in pieces */
    bool items; /* an item came by itself */
} reader;

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

/* -- items ----------------------------------------------------------------------------------- */

/* A member that belongs to what was read last: it stands behind it, as {"name":"value"}. */
static ah_status keep_mark(reader *x, ah_slice item, const char *name, ah_err *err)
{
    ah_slice value = ah_json_member(item, name);
    ah_buf b;
    ah_status st;

    if (!ah_reading_says(value))
        return AH_OK;
    ah_buf_init(&b, x->r.base.adapter->mem, value.n + 64);
    ah_buf_fmt(&b, "{\"%s\":%.*s}", name, AH_FMT(value));
    st = ah_buf_ok(&b) ? ah_assembly_opaque(message_of(x), ah_buf_slice(&b), err) : ah_err_nomem(err);
    ah_buf_clear(&b);
    return st;
}

static ah_status read_part(reader *x, ah_slice part, ah_err *err)
{
    ah_slice text = ah_json_member(part, "text"), refusal = ah_json_member(part, "refusal");

    if (ah_reading_says(refusal))
        return ah_assembly_refusal(message_of(x), ah_json_inside(refusal), err);
    return ah_reading_says(text) ? ah_assembly_text(message_of(x), ah_json_inside(text), err) : AH_OK;
}

static ah_status read_message(reader *x, ah_slice item, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(item, "content"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = ah_json_next(&it); !x->shown && st == AH_OK && t.kind == AH_JSON_OBJECT;
         t = ah_json_next(&it))
        st = read_part(x, ah_json_skip(&it, t), err);
    x->shown = false;
    return st == AH_OK ? keep_mark(x, item, "phase", err) : st;
}

static ah_status begin_call(reader *x, ah_slice item, ah_slice name, ah_draft_call **c, ah_err *err)
{
    ah_assembly *msg = message_of(x);
    ah_slice id = ah_json_member(item, "call_id");
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, c, err);

    if (st == AH_OK && ah_reading_says(id))
        st = ah_assembly_call_id(*c, ah_json_inside(id), err);
    if (st == AH_OK && ah_reading_says(name))
        st = ah_assembly_call_name(*c, ah_json_inside(name), err);
    return st;
}

static ah_status read_arguments(ah_draft_call *c, ah_slice arguments, ah_err *err)
{
    if (ah_json_kind_of(arguments) == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(arguments), err);
    return ah_json_kind_of(arguments) == AH_JSON_OBJECT ? ah_assembly_call_value(c, arguments, err)
                                                        : AH_OK;
}

static ah_status read_call(reader *x, ah_slice item, ah_slice name, ah_err *err)
{
    ah_draft_call *c;
    ah_status st = begin_call(x, item, name, &c, err);

    if (st == AH_OK)
        st = read_arguments(c, ah_json_member(item, "arguments"), err);
    return st == AH_OK ? keep_mark(x, item, "namespace", err) : st;
}

/* The provider's own search: its item is kept, and the names of what it has found. */
static ah_status read_search(reader *x, ah_slice item, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(item, "tools"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    for (t = t.kind == AH_JSON_ARRAY ? ah_json_next(&it) : t; st == AH_OK && t.kind == AH_JSON_OBJECT;
         t = ah_json_next(&it)) {
        ah_slice name = ah_json_member(ah_json_skip(&it, t), "name");

        if (ah_reading_says(name))
            st = ah_assembly_found(message_of(x), name, err);
    }
    return st == AH_OK ? ah_assembly_opaque(message_of(x), item, err) : st;
}

/* Items of other types say nothing to us. */
static ah_status read_item(reader *x, ah_slice item, ah_err *err)
{
    ah_slice type = ah_json_member(item, "type");
    bool ours = ah_json_string_is(ah_json_member(item, "execution"), "client");

    if (ah_json_string_is(type, "message"))
        return read_message(x, item, err);
    if (ah_json_string_is(type, "function_call"))
        return read_call(x, item, ah_json_member(item, "name"), err);
    if (ah_json_string_is(type, "tool_search_call") && ours)
        return read_call(x, item, ah_slice_of("\"" AH_SEARCH_TOOLS "\""), err);
    if (ah_json_string_is(type, "tool_search_output"))
        return read_search(x, item, err);
    if (ah_json_string_is(type, "tool_search_call") ||
        (ah_json_string_is(type, "reasoning") &&
         ah_reading_says(ah_json_member(item, "encrypted_content"))))
        return ah_assembly_opaque(message_of(x), item, err);
    return AH_OK;
}

static ah_status read_items(reader *x, ah_slice items, ah_err *err)
{
    ah_json_reader it = ah_json_read(items);
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
    const ah_json_wanted want[] = {{"input_tokens_details", &of_input},
                                   {"output_tokens_details", &of_output}};

    if (!ah_json_members(usage, want, 2))
        return;
    ah_assembly_cost(msg, ah_json_member(usage, "cost"));
    ah_assembly_usage(
        msg, (ah_usage){
                 .input = ah_reading_count(ah_json_member(usage, "input_tokens")),
                 .cached_read = ah_reading_count(ah_json_member(of_input, "cached_tokens")),
                 .cached_write = ah_reading_count(ah_json_member(of_input, "cache_write_tokens")),
                 .output = ah_reading_count(ah_json_member(usage, "output_tokens")),
                 .reasoning = ah_reading_count(ah_json_member(of_output, "reasoning_tokens")),
                 .known = true,
             });
}

/* What has neither failed nor ended is told as it stands. */
static ah_status read_status(reader *x, ah_slice response, ah_err *err)
{
    ah_slice status = ah_json_member(response, "status");
    ah_slice reason = ah_json_member(ah_json_member(response, "incomplete_details"), "reason");
    ah_stop stop = AH_STOP_END;

    if (ah_json_string_is(status, "failed"))
        return ah_reading_bad(&x->r, err, "the answer failed and does not say why");
    if (ah_json_string_is(status, "incomplete"))
        stop = ah_json_string_is(reason, "content_filter") ? AH_STOP_FILTER : AH_STOP_LENGTH;
    else if (ah_reading_says(status) && !ah_json_string_is(status, "completed"))
        return ah_reading_bad(&x->r, err, "the answer is not complete (its status is not 'completed')");
    ah_assembly_stop(message_of(x), stop, ah_reading_says(reason) ? reason : status);
    return AH_OK;
}

/* The whole answer, or what ends a stream: that repeats the items, which were read already. */
static ah_status read_response(reader *x, ah_slice response, ah_err *err)
{
    ah_slice error = ah_json_member(response, "error");
    ah_status st = AH_OK;

    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return ah_reading_error(&x->r, error, err);
    x->r.begun = x->r.finished = x->r.done = true;
    if (!x->items)
        st = read_items(x, ah_json_member(response, "output"), err);
    read_usage(message_of(x), ah_json_member(response, "usage"));
    return st == AH_OK ? read_status(x, response, err) : st;
}

static ah_status read_delta(reader *x, ah_slice event, bool refusal, ah_err *err)
{
    ah_slice delta = ah_json_member(event, "delta");

    if (!ah_reading_says(delta))
        return AH_OK;
    x->shown = true;
    return refusal ? ah_assembly_refusal(message_of(x), ah_json_inside(delta), err)
                   : ah_assembly_text(message_of(x), ah_json_inside(delta), err);
}

static ah_status read_event(reader *x, ah_slice event, ah_slice type, ah_err *err)
{
    x->r.begun = true;
    if (ah_json_string_is(type, "response.output_text.delta"))
        return read_delta(x, event, false, err);
    if (ah_json_string_is(type, "response.refusal.delta"))
        return read_delta(x, event, true, err);
    if (ah_json_string_is(type, "response.output_item.done")) {
        x->items = true;
        return read_item(x, ah_json_member(event, "item"), err);
    }
    if (ah_json_string_is(type, "response.completed") ||
        ah_json_string_is(type, "response.incomplete") || ah_json_string_is(type, "response.failed"))
        return read_response(x, ah_json_member(event, "response"), err);
    return AH_OK;
}

/* The error of a stream exists in two shapes: nested, and with its members in the event. */
static ah_status read_document(ah_reading *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;
    ah_slice type = ah_json_member(doc, "type"), error = ah_json_member(doc, "error");

    if (ah_json_string_is(type, "error"))
        return ah_reading_error(r, ah_json_kind_of(error) == AH_JSON_OBJECT ? error : doc, err);
    if (ah_json_kind_of(error) == AH_JSON_OBJECT || ah_json_kind_of(error) == AH_JSON_STRING)
        return ah_reading_error(r, error, err);
    if (ah_reading_says(type))
        return read_event(x, doc, type, err);
    return ah_json_member(doc, "output").p ? read_response(x, doc, err) : AH_OK;
}

static const ah_error_word error_words[] = {
    {"rate_limit_exceeded", 429},
    {"server_error", 500},
    {"invalid_prompt", 400},
    {"invalid_encrypted_content", AH_ERROR_NEVER},
    {NULL, 0},
};

static const ah_reading_vt reading = {
    .no_answer = "the answer holds no output",
    .size = sizeof(reader),
    .words = error_words,
    .document = read_document,
};

ah_status ah_responses_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    return ah_reading_open(&reading, a, msg, out, err);
}
