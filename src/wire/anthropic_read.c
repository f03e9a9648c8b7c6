/* Reading Anthropic Messages: a stream of events or one document, into an assembly. Blocks that
 * must come back as they were (thinking with its signature, what the server's own tools said)
 * are kept whole, put together from their pieces byte by byte. */
#include "wire/anthropic_read.h"

#include "wire/reading.h"

typedef enum block_kind { BLOCK_NONE, BLOCK_TEXT, BLOCK_CALL, BLOCK_OPAQUE } block_kind;

typedef struct reader {
    ah_reading r;
    ah_buf id; /* of the message, as JSON */
    /* the open block */
    block_kind kind;
    bool whole;                                    /* a call whose input came with its beginning */
    ah_buf block;                                  /* as it began */
    ah_buf thinking, signature, input;             /* what was added to these members of it */
    int64_t fresh, written, read, output, thought; /* tokens: cumulative, the last word counts */
} reader;

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

/* -- usage and stop ------------------------------------------------------------------------ */

/* A counter that is absent or null keeps what it said. */
static void take_count(ah_slice usage, const char *key, int64_t *out)
{
    ah_slice count = ah_json_member(usage, key);

    if (ah_json_kind_of(count) == AH_JSON_NUMBER)
        *out = ah_reading_count(count);
}

/* input_tokens leaves out what was cached; ours does not. */
static void read_usage(reader *x, ah_slice usage)
{
    if (ah_json_kind_of(usage) != AH_JSON_OBJECT)
        return;
    take_count(usage, "input_tokens", &x->fresh);
    take_count(usage, "cache_creation_input_tokens", &x->written);
    take_count(usage, "cache_read_input_tokens", &x->read);
    take_count(usage, "output_tokens", &x->output);
    take_count(ah_json_member(usage, "output_tokens_details"), "thinking_tokens", &x->thought);
    ah_assembly_cost(message_of(x), ah_json_member(usage, "cost"));
    ah_assembly_usage(message_of(x), (ah_usage){
                                         .input = x->fresh + x->written + x->read,
                                         .cached_read = x->read,
                                         .cached_write = x->written,
                                         .output = x->output,
                                         .reasoning = x->thought,
                                         .known = true,
                                     });
}

static ah_stop stop_of(ah_slice reason)
{
    static const struct {
        const char *word;
        ah_stop stop;
    } words[] = {{"end_turn", AH_STOP_END},           {"tool_use", AH_STOP_TOOL_CALLS},
                 {"max_tokens", AH_STOP_LENGTH},      {"model_context_window_exceeded", AH_STOP_LENGTH},
                 {"stop_sequence", AH_STOP_SEQUENCE}, {"refusal", AH_STOP_REFUSAL}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(reason, words[i].word))
            return words[i].stop;
    return AH_STOP_END;
}

/* `said` holds stop_reason. What a refused message had begun to call is not called. */
static ah_status read_stop(reader *x, ah_slice said, ah_err *err)
{
    ah_slice reason = ah_json_member(said, "stop_reason");
    ah_slice why = ah_json_member(ah_json_member(said, "stop_details"), "explanation");

    if (!ah_reading_says(reason))
        return AH_OK;
    x->r.finished = true;
    ah_assembly_stop(message_of(x), stop_of(reason), reason);
    if (message_of(x)->stop != AH_STOP_REFUSAL)
        return AH_OK;
    ah_assembly_drop_calls(message_of(x));
    return ah_reading_says(why) ? ah_assembly_refusal(message_of(x), ah_json_inside(why), err) : AH_OK;
}

/* -- blocks --------------------------------------------------------------------------------- */

static bool has_members(ah_slice value)
{
    ah_json_reader it = ah_json_read(value);
    ah_json_token t = ah_json_next(&it);

    return t.kind == AH_JSON_OBJECT && ah_json_next(&it).kind == AH_JSON_KEY;
}

static ah_status begin_call(reader *x, ah_slice block, ah_err *err)
{
    ah_slice id, name, input;
    const ah_json_wanted want[] = {{"id", &id}, {"name", &name}, {"input", &input}};
    ah_assembly *msg = message_of(x);
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    ah_json_members(block, want, 3);
    x->whole = has_members(input);
    if (st == AH_OK && ah_reading_says(id))
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK && ah_reading_says(name))
        st = ah_assembly_call_name(c, ah_json_inside(name), err);
    if (st == AH_OK && x->whole)
        st = ah_assembly_call_value(c, input, err);
    return st;
}

static ah_status keep(ah_buf *b, ah_slice bytes, ah_err *err)
{
    ah_status st;

    ah_buf_put(b, bytes);
    if (ah_buf_ok(b))
        return AH_OK;
    st = ah_buf_error(b, "anthropic: a block of the answer", err);
    if (st != AH_NOMEM)
        st = err->status = AH_PROVIDER;
    return st;
}

/* The names in a block of what the provider's own search has found; such a block comes whole. */
static ah_status read_found(reader *x, ah_slice block, ah_err *err)
{
    ah_json_reader it =
        ah_json_read(ah_json_member(ah_json_member(block, "content"), "tool_references"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        ah_slice name = ah_json_member(ah_json_skip(&it, t), "tool_name");

        if (ah_reading_says(name))
            st = ah_assembly_found(message_of(x), name, err);
    }
    return st;
}

static ah_status begin_block(reader *x, ah_slice block, ah_err *err)
{
    ah_slice type = ah_json_member(block, "type"), text = ah_json_member(block, "text");

    if (ah_json_string_is(type, "text")) {
        x->kind = BLOCK_TEXT;
        return ah_reading_says(text) ? ah_assembly_text(message_of(x), ah_json_inside(text), err)
                                     : AH_OK;
    }
    if (ah_json_string_is(type, "tool_use")) {
        x->kind = BLOCK_CALL;
        return begin_call(x, block, err);
    }
    if (ah_json_kind_of(block) != AH_JSON_OBJECT)
        return AH_OK;
    x->kind = BLOCK_OPAQUE;
    if (ah_json_string_is(type, "tool_search_tool_result") && read_found(x, block, err) != AH_OK)
        return err->status;
    return keep(&x->block, block, err);
}

static ah_status read_delta(reader *x, ah_slice delta, ah_err *err)
{
    ah_slice text, json, thinking, signature;
    const ah_json_wanted want[] = {
        {"text", &text}, {"partial_json", &json}, {"thinking", &thinking}, {"signature", &signature}};
    ah_assembly *msg = message_of(x);

    ah_json_members(delta, want, 4);
    if (ah_reading_says(text) && x->kind != BLOCK_OPAQUE)
        return ah_assembly_text(msg, ah_json_inside(text), err);
    if (ah_reading_says(json) && x->kind == BLOCK_CALL && !x->whole)
        return ah_assembly_call_arguments(&msg->call[msg->n - 1], ah_json_inside(json), err);
    if (x->kind != BLOCK_OPAQUE)
        return AH_OK;
    if (ah_reading_says(thinking))
        return keep(&x->thinking, ah_json_inside(thinking), err);
    if (ah_reading_says(signature))
        return keep(&x->signature, ah_json_inside(signature), err);
    if (ah_reading_says(json))
        ah_json_unescape(ah_json_inside(json), &x->input);
    return keep(&x->input, (ah_slice){"", 0}, err);
}

/* A string member with what was added to it. */
static void put_longer(ah_buf *b, ah_slice value, const ah_buf *more)
{
    ah_buf_char(b, '"');
    if (ah_json_kind_of(value) == AH_JSON_STRING)
        ah_buf_put(b, ah_json_inside(value));
    ah_buf_put(b, ah_buf_slice(more));
    ah_buf_char(b, '"');
}

/* The block with what its deltas added: to the members `thinking` and `signature`, in place of
 * `input`. Other members stay as they were. */
static void put_block(const reader *x, ah_buf *b)
{
    ah_json_reader it = ah_json_read(ah_buf_slice(&x->block));
    ah_json_token key = ah_json_next(&it);
    bool signed_ = x->signature.len == 0;

    ah_buf_char(b, '{');
    for (key = ah_json_next(&it); key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_slice v = ah_json_skip(&it, ah_json_next(&it));

        ah_buf_fmt(b, "%s\"%.*s\":", b->data && b->len > 1 ? "," : "", AH_FMT(key.raw));
        if (ah_json_token_is(key, "thinking"))
            put_longer(b, v, &x->thinking);
        else if (ah_json_token_is(key, "signature"))
            put_longer(b, v, &x->signature);
        else
            ah_buf_put(b, ah_json_token_is(key, "input") && x->input.len ? ah_buf_slice(&x->input) : v);
        signed_ = signed_ || ah_json_token_is(key, "signature");
    }
    if (!signed_) {
        ah_buf_str(b, ",\"signature\":");
        put_longer(b, (ah_slice){NULL, 0}, &x->signature);
    }
    ah_buf_char(b, '}');
}

static void forget_block(reader *x)
{
    x->kind = BLOCK_NONE;
    ah_buf_reset(&x->block, 0);
    ah_buf_reset(&x->thinking, 0);
    ah_buf_reset(&x->signature, 0);
    ah_buf_reset(&x->input, 0);
}

/* A stream that was cut leaves a block open: it is not sent back, nobody signed it. */
static ah_status end_block(reader *x, bool cut, ah_err *err)
{
    ah_buf b;
    ah_status st = AH_OK;

    ah_buf_init(&b, x->r.base.adapter->mem, AH_MAX_TEXT);
    if (x->kind == BLOCK_OPAQUE && !cut) {
        if (x->thinking.len || x->signature.len || x->input.len)
            put_block(x, &b);
        else
            ah_buf_put(&b, ah_buf_slice(&x->block));
        st = keep(&b, (ah_slice){"", 0}, err);
        if (st == AH_OK)
            st = ah_assembly_opaque(message_of(x), ah_buf_slice(&b), err);
    }
    ah_buf_clear(&b);
    forget_block(x);
    return st;
}

/* -- documents -------------------------------------------------------------------------------- */

/* A gateway may send the beginning twice, or another message into the midst of one: that one
 * begins anew then. */
static ah_status begin_message(reader *x, ah_slice message, ah_err *err)
{
    ah_slice id = ah_json_member(message, "id");

    if (x->r.begun && !ah_slice_eq(id, ah_buf_slice(&x->id))) {
        forget_block(x);
        ah_assembly_drop_calls(message_of(x));
    }
    x->r.begun = true;
    ah_buf_reset(&x->id, 0);
    read_usage(x, ah_json_member(message, "usage"));
    return keep(&x->id, id, err);
}

static ah_status read_whole(reader *x, ah_slice message, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(message, "content"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = begin_message(x, message, err);

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        st = begin_block(x, ah_json_skip(&it, t), err);
        if (st == AH_OK)
            st = end_block(x, false, err);
    }
    x->r.finished = true;
    return st == AH_OK ? read_stop(x, message, err) : st;
}

static ah_status start_block(reader *x, ah_slice event, ah_err *err)
{
    ah_status st = end_block(x, true, err);

    return st == AH_OK ? begin_block(x, ah_json_member(event, "content_block"), err) : st;
}

static ah_status read_message_delta(reader *x, ah_slice event, ah_err *err)
{
    ah_status st = end_block(x, true, err);

    read_usage(x, ah_json_member(event, "usage"));
    return st == AH_OK ? read_stop(x, ah_json_member(event, "delta"), err) : st;
}

/* Events and documents of other types, of which pings are one, say nothing to us. */
static ah_status read_document(ah_reading *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;
    ah_slice type = ah_json_member(doc, "type"), error = ah_json_member(doc, "error");

    if (error.p && ah_json_kind_of(error) != AH_JSON_NULL)
        return ah_reading_error(r, error, err);
    if (ah_json_string_is(type, "content_block_delta"))
        return read_delta(x, ah_json_member(doc, "delta"), err);
    if (ah_json_string_is(type, "content_block_start"))
        return start_block(x, doc, err);
    if (ah_json_string_is(type, "content_block_stop"))
        return end_block(x, false, err);
    if (ah_json_string_is(type, "message_start"))
        return begin_message(x, ah_json_member(doc, "message"), err);
    if (ah_json_string_is(type, "message_delta"))
        return read_message_delta(x, doc, err);
    if (ah_json_string_is(type, "message"))
        return read_whole(x, doc, err);
    if (ah_json_string_is(type, "message_stop"))
        r->finished = r->done = true;
    return AH_OK;
}

static void clear(ah_reading *r)
{
    reader *x = (reader *)r;

    ah_buf_clear(&x->id);
    ah_buf_clear(&x->block);
    ah_buf_clear(&x->thinking);
    ah_buf_clear(&x->signature);
    ah_buf_clear(&x->input);
}

static const ah_error_word error_words[] = {
    {"invalid_request_error", 400}, {"authentication_error", 401}, {"billing_error", 402},
    {"permission_error", 403},      {"not_found_error", 404},      {"conflict_error", 409},
    {"request_too_large", 413},     {"rate_limit_error", 429},     {"api_error", 500},
    {"timeout_error", 504},         {"overloaded_error", 529},     {NULL, 0},
};

static const ah_reading_vt reading = {
    .no_answer = "the answer holds no message",
    .size = sizeof(reader),
    .words = error_words,
    .document = read_document,
    .clear = clear,
    .advising = "https://api.anthropic.com",
};

ah_status ah_anthropic_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_reading_open(&reading, a, msg, out, err);
    reader *x;

    if (st != AH_OK)
        return st;
    x = (reader *)*out;
    ah_buf_init(&x->id, a->mem, 4096);
    ah_buf_init(&x->block, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->thinking, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->signature, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->input, a->mem, AH_MAX_ARGUMENTS);
    return AH_OK;
}
