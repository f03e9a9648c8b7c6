/* Reads Anthropic Messages, a stream of events or one document, into an assembly. Blocks that must
 * be sent back unchanged (thinking with its signature, results of the server's own tools) are kept
 * whole, joined from their pieces byte by byte. */
#include "wire/anthropic.h"

#include "wire/full.h"
#include "wire/reader.h"

/* BLOCK_OTHER: a block of an unknown type, which is kept whole too. */
typedef enum block_kind {
    BLOCK_NONE,
    BLOCK_TEXT,
    BLOCK_CALL,
    BLOCK_OPAQUE,
    BLOCK_OTHER
} block_kind;

typedef struct reader {
    ah_wire_reader r;
    ah_buf id;    /* of the message, as JSON */
    int64_t last; /* index of the block that began last; -1: no block in this message */
    bool unended; /* that block is to be sent back, but did not end */
    /* the open block: */
    block_kind kind;
    bool whole;                        /* a call whose input came with its first event */
    ah_buf block;                      /* its first event */
    ah_buf thinking, signature, input; /* text added to these members */
    int64_t fresh, written, read, output, thought; /* tokens; cumulative, the last value counts */
} reader;

static ah_assembly *message_of(reader *x)
{
    return x->r.base.msg;
}

/* -- shapes -------------------------------------------------------------------------------- */

static const char *const roles[] = {"assistant", NULL};
static const ah_shape role = {.kinds = AH_IS_STRING, .words = roles};
static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape name = {.kinds = AH_IS_NAME};
static const ah_shape count = {.kinds = AH_IS_COUNT};
static const ah_shape object = {.kinds = AH_IS_OBJECT};
static const ah_shape maybe_object = {.kinds = AH_IS_OBJECT | AH_IS_NULL};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};

static const ah_shape reference = {.kinds = AH_IS_OBJECT,
                                   .member = AH_MEMBERS(AH_NEEDS("tool_name", &name))};
static const ah_shape references = {.kinds = AH_IS_ARRAY, .items = &reference};
static const ah_shape found = {.kinds = AH_IS_OBJECT,
                               .member = AH_MEMBERS(AH_MAY_HAVE("tool_references", &references))};
static const ah_shape text_block = {.member = AH_MEMBERS(AH_NEEDS("text", &string))};
static const ah_shape call_block = {
    .member =
        AH_MEMBERS(AH_NEEDS("id", &name), AH_NEEDS("name", &name), AH_NEEDS("input", &object))};
/* `input` is only a placeholder if deltas follow. */
static const ah_shape call_begins = {.member =
                                         AH_MEMBERS(AH_NEEDS("id", &name), AH_NEEDS("name", &name),
                                                    AH_MAY_HAVE("input", &maybe_object))};
static const ah_shape thinking_block = {
    .member = AH_MEMBERS(AH_NEEDS("thinking", &string), AH_MAY_HAVE("signature", &maybe_string))};
static const ah_shape redacted_block = {.member = AH_MEMBERS(AH_NEEDS("data", &string))};
static const ah_shape server_block = {.member =
                                          AH_MEMBERS(AH_NEEDS("id", &name), AH_NEEDS("name", &name),
                                                     AH_MAY_HAVE("input", &maybe_object))};
static const ah_shape found_block = {.member = AH_MEMBERS(AH_NEEDS("content", &found))};

/* Blocks of other types are kept unchanged and sent back. */
static const ah_shape block = {.kinds = AH_IS_OBJECT,
                               .by = "type",
                               .cases = AH_CASES(AH_CASE("text", &text_block),
                                                 AH_CASE("tool_use", &call_block),
                                                 AH_CASE("thinking", &thinking_block),
                                                 AH_CASE("redacted_thinking", &redacted_block),
                                                 AH_CASE("server_tool_use", &server_block),
                                                 AH_CASE("tool_search_tool_result", &found_block))};
static const ah_shape block_begins = {
    .kinds = AH_IS_OBJECT,
    .by = "type",
    .cases = AH_CASES(AH_CASE("text", &text_block), AH_CASE("tool_use", &call_begins),
                      AH_CASE("thinking", &thinking_block),
                      AH_CASE("redacted_thinking", &redacted_block),
                      AH_CASE("server_tool_use", &server_block),
                      AH_CASE("tool_search_tool_result", &found_block))};
static const ah_shape blocks = {.kinds = AH_IS_ARRAY, .items = &block};

static const ah_shape details = {.kinds = AH_IS_OBJECT | AH_IS_NULL,
                                 .member = AH_MEMBERS(AH_MAY_HAVE("explanation", &maybe_string))};
static const ah_shape stop = {.kinds = AH_IS_OBJECT,
                              .member = AH_MEMBERS(AH_MAY_HAVE("stop_reason", &maybe_string),
                                                   AH_MAY_HAVE("stop_details", &details))};

/* The whole answer. Ignored: `usage` (invalid counts are ignored, and no other part of the answer
 * depends on them), `model`, `id`, `stop_sequence`, `container` and unknown members. */
static const char *const message_type[] = {"message", NULL};
static const ah_shape of_message = {.kinds = AH_IS_STRING, .words = message_type};
static const ah_shape message = {
    .member =
        AH_MEMBERS(AH_NEEDS("type", &of_message), AH_MAY_HAVE("role", &role),
                   AH_NEEDS("content", &blocks), AH_MAY_HAVE("stop_reason", &maybe_string),
                   AH_MAY_HAVE("stop_details", &details), AH_MAY_HAVE("error", &ah_no_error))};

/* Events. Pings and unknown types are ignored. */
static const ah_shape first_content = {.kinds = AH_IS_ARRAY};
static const ah_shape first_message = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("role", &role), AH_MAY_HAVE("content", &first_content))};
static const ah_shape message_start = {.member = AH_MEMBERS(AH_NEEDS("message", &first_message))};
static const ah_shape block_start = {
    .member = AH_MEMBERS(AH_NEEDS("index", &count), AH_NEEDS("content_block", &block_begins))};
static const ah_shape text_delta = {.member = AH_MEMBERS(AH_NEEDS("text", &piece))};
static const ah_shape json_delta = {.member = AH_MEMBERS(AH_NEEDS("partial_json", &piece))};
static const ah_shape thinking_delta = {.member = AH_MEMBERS(AH_NEEDS("thinking", &piece))};
static const ah_shape signature_delta = {.member = AH_MEMBERS(AH_NEEDS("signature", &string))};
static const ah_shape delta = {.kinds = AH_IS_OBJECT,
                               .by = "type",
                               .cases = AH_CASES(AH_CASE("text_delta", &text_delta),
                                                 AH_CASE("input_json_delta", &json_delta),
                                                 AH_CASE("thinking_delta", &thinking_delta),
                                                 AH_CASE("signature_delta", &signature_delta))};
static const ah_shape block_delta = {
    .member = AH_MEMBERS(AH_NEEDS("index", &count), AH_NEEDS("delta", &delta))};
static const ah_shape block_stop = {.member = AH_MEMBERS(AH_NEEDS("index", &count))};
static const ah_shape message_delta = {.member = AH_MEMBERS(AH_NEEDS("delta", &stop))};
static const ah_shape error_event = {.member = AH_MEMBERS(AH_MAY_HAVE("error", &ah_no_error))};
static const ah_shape event = {
    .by = "type",
    .cases = AH_CASES(
        AH_CASE("error", &error_event), AH_CASE("message_start", &message_start),
        AH_CASE("content_block_start", &block_start), AH_CASE("content_block_delta", &block_delta),
        AH_CASE("content_block_stop", &block_stop), AH_CASE("message_delta", &message_delta))};

/* -- usage and stop ------------------------------------------------------------------------ */

/* A counter that is absent or null keeps its last value. */
static void take_count(ah_slice usage, const char *key, int64_t *out)
{
    ah_slice said = ah_json_member(usage, key);

    if (ah_json_kind_of(said) == AH_JSON_NUMBER)
        *out = ah_wire_reader_count(said);
}

/* input_tokens excludes cached tokens; our `input` includes them. */
static void read_usage(reader *x, ah_slice usage)
{
    if (ah_json_kind_of(usage) != AH_JSON_OBJECT)
        return;
    take_count(usage, "input_tokens", &x->fresh);
    take_count(usage, "cache_creation_input_tokens", &x->written);
    take_count(usage, "cache_read_input_tokens", &x->read);
    take_count(usage, "output_tokens", &x->output);
    take_count(ah_json_member(usage, "output_tokens_details"), "thinking_tokens", &x->thought);
    ah_assembly_service(message_of(x), ah_json_member(usage, "service_tier"));
    ah_assembly_service(message_of(x), ah_json_member(usage, "inference_geo"));
    ah_assembly_service(message_of(x), ah_json_member(usage, "speed"));
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
    } words[] = {{"end_turn", AH_STOP_END},
                 {"tool_use", AH_STOP_TOOL_CALLS},
                 {"max_tokens", AH_STOP_LENGTH},
                 {"stop_sequence", AH_STOP_SEQUENCE},
                 {"refusal", AH_STOP_REFUSAL}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(reason, words[i].word))
            return words[i].stop;
    return ah_full_word(reason) ? AH_STOP_FULL : AH_STOP_END;
}

/* The end of a block may be missing only if the answer was cut for its length. */
static ah_status check_ended(reader *x, ah_err *err)
{
    if (!x->unended || ah_stop_is_cut(message_of(x)->stop))
        return AH_OK;
    return ah_wire_reader_bad(&x->r, err, "the answer ended within a block (content[%lld])",
                              (long long)x->last);
}

/* `said` holds stop_reason. Calls of a refused message are discarded. */
static ah_status read_stop(reader *x, ah_slice said, ah_err *err)
{
    ah_slice reason = ah_json_member(said, "stop_reason");
    ah_slice why = ah_json_member(ah_json_member(said, "stop_details"), "explanation");

    if (!ah_wire_reader_says(reason))
        return AH_OK;
    x->r.finished = true;
    ah_assembly_stop(message_of(x), stop_of(reason), reason);
    if (message_of(x)->stop != AH_STOP_REFUSAL)
        return check_ended(x, err);
    ah_assembly_drop_calls(message_of(x));
    return ah_wire_reader_says(why) ? ah_assembly_refusal(message_of(x), ah_json_inside(why), err)
                                    : AH_OK;
}

/* -- blocks --------------------------------------------------------------------------------- */

static bool has_members(ah_slice value)
{
    ah_json_reader it = ah_json_read(value);
    ah_json_token t = ah_json_next(&it);

    return t.kind == AH_JSON_OBJECT && ah_json_next(&it).kind == AH_JSON_KEY;
}

static ah_status begin_call(reader *x, ah_slice call, ah_err *err)
{
    ah_slice id, called, input;
    const ah_json_slot want[] = {{"id", &id}, {"name", &called}, {"input", &input}};
    ah_assembly *msg = message_of(x);
    ah_draft_call *c;
    ah_status st = ah_assembly_add_call(msg, (int64_t)msg->n, &c, err);

    ah_json_members(call, want, 3);
    x->whole = has_members(input);
    if (st == AH_OK)
        st = ah_assembly_call_id(c, ah_json_inside(id), err);
    if (st == AH_OK)
        st = ah_assembly_call_name(c, ah_json_inside(called), err);
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

/* Adds the names found by the provider's own search; the block comes whole. */
static ah_status read_found(reader *x, ah_slice result, ah_err *err)
{
    ah_json_reader it =
        ah_json_read(ah_json_member(ah_json_member(result, "content"), "tool_references"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it))
        st = ah_assembly_found(message_of(x), ah_json_member(ah_json_skip(&it, t), "tool_name"),
                               err);
    return st;
}

static block_kind kind_of(ah_slice type)
{
    static const struct {
        const char *type;
        block_kind kind;
    } kinds[] = {{"text", BLOCK_TEXT},
                 {"tool_use", BLOCK_CALL},
                 {"thinking", BLOCK_OPAQUE},
                 {"redacted_thinking", BLOCK_OPAQUE},
                 {"server_tool_use", BLOCK_OPAQUE},
                 {"tool_search_tool_result", BLOCK_OPAQUE}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (ah_json_string_is(type, kinds[i].type))
            return kinds[i].kind;
    return BLOCK_OTHER;
}

static ah_status begin_block(reader *x, ah_slice came, ah_err *err)
{
    ah_slice type = ah_json_member(came, "type");

    x->kind = kind_of(type);
    if (x->kind == BLOCK_TEXT)
        return ah_assembly_text(message_of(x), ah_json_inside(ah_json_member(came, "text")), err);
    if (x->kind == BLOCK_CALL)
        return begin_call(x, came, err);
    if (ah_json_string_is(type, "tool_search_tool_result") && read_found(x, came, err) != AH_OK)
        return err->status;
    return keep(&x->block, came, err);
}

/* -- deltas -------------------------------------------------------------------------------- */

static ah_status add_text(reader *x, ah_slice raw, ah_err *err)
{
    return ah_assembly_text(message_of(x), raw, err);
}

static ah_status add_input(reader *x, ah_slice raw, ah_err *err)
{
    ah_assembly *msg = message_of(x);

    if (x->kind != BLOCK_CALL)
        return keep(&x->input, raw, err);
    return x->whole ? AH_OK : ah_assembly_call_arguments(&msg->call[msg->n - 1], raw, err);
}

static ah_status add_thinking(reader *x, ah_slice raw, ah_err *err)
{
    return keep(&x->thinking, raw, err);
}

static ah_status add_signature(reader *x, ah_slice raw, ah_err *err)
{
    return keep(&x->signature, raw, err);
}

/* The member to which each delta type adds, and the block kinds that have it. Deltas of other types
 * (citations, for example) are ignored, as is text for an unknown block. */
static const struct delta_type {
    const char *type, *member;
    unsigned kinds;
    ah_status (*add)(reader *x, ah_slice raw, ah_err *err);
} delta_types[] = {
    {"text_delta", "text", 1 << BLOCK_TEXT, add_text},
    {"input_json_delta", "partial_json", 1 << BLOCK_CALL | 1 << BLOCK_OPAQUE | 1 << BLOCK_OTHER,
     add_input},
    {"thinking_delta", "thinking", 1 << BLOCK_OPAQUE | 1 << BLOCK_OTHER, add_thinking},
    {"signature_delta", "signature", 1 << BLOCK_OPAQUE | 1 << BLOCK_OTHER, add_signature},
};

static ah_status read_delta(reader *x, ah_slice came, ah_err *err)
{
    ah_slice type = ah_json_member(came, "type");

    for (size_t i = 0; i < sizeof delta_types / sizeof *delta_types; i++) {
        const struct delta_type *d = &delta_types[i];

        if (!ah_json_string_is(type, d->type))
            continue;
        if (d->kinds >> x->kind & 1)
            return d->add(x, ah_json_inside(ah_json_member(came, d->member)), err);
        if (x->kind != BLOCK_OTHER)
            return ah_wire_reader_bad(&x->r, err,
                                      "an event's delta.type is '%s', and content[%lld] takes none",
                                      d->type, (long long)x->last);
    }
    return AH_OK;
}

/* Appends a string member with the text added to it. */
static void put_longer(ah_buf *b, ah_slice value, const ah_buf *more)
{
    ah_buf_char(b, '"');
    if (ah_json_kind_of(value) == AH_JSON_STRING)
        ah_buf_put(b, ah_json_inside(value));
    ah_buf_put(b, ah_buf_slice(more));
    ah_buf_char(b, '"');
}

/* Appends the block with its deltas: added to `thinking` and `signature`, replacing `input`. Other
 * members are unchanged. */
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
        else if (ah_json_token_is(key, "input") && x->input.len)
            ah_json_unescape(ah_buf_slice(&x->input), b);
        else
            ah_buf_put(b, v);
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

static bool is_opaque(const reader *x)
{
    return x->kind == BLOCK_OPAQUE || x->kind == BLOCK_OTHER;
}

/* Ends the open block. A block that the length limit cut has no valid signature and is not sent
 * back. */
static ah_status end_block(reader *x, bool cut, ah_err *err)
{
    ah_buf b;
    ah_status st = AH_OK;

    ah_buf_init(&b, x->r.base.adapter->mem, AH_MAX_TEXT);
    x->unended = x->unended || (cut && is_opaque(x));
    if (is_opaque(x) && !cut) {
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

/* A gateway may send the first event twice, or begin another message in the middle of one, which
 * then starts over. */
static ah_status begin_message(reader *x, ah_slice came, ah_err *err)
{
    ah_slice id = ah_json_member(came, "id");

    if (!x->r.begun || !ah_slice_eq(id, ah_buf_slice(&x->id))) {
        forget_block(x);
        ah_assembly_drop_calls(message_of(x));
        x->last = -1;
        x->unended = false;
    }
    x->r.begun = true;
    ah_buf_reset(&x->id, 0);
    read_usage(x, ah_json_member(came, "usage"));
    return keep(&x->id, id, err);
}

static ah_status read_whole(reader *x, ah_slice came, ah_err *err)
{
    ah_json_reader it = ah_json_read(ah_json_member(came, "content"));
    ah_json_token t = ah_json_next(&it);
    ah_status st = begin_message(x, came, err);

    for (t = ah_json_next(&it); st == AH_OK && t.kind == AH_JSON_OBJECT; t = ah_json_next(&it)) {
        st = begin_block(x, ah_json_skip(&it, t), err);
        if (st == AH_OK)
            st = end_block(x, false, err);
    }
    x->r.finished = true;
    return st == AH_OK ? read_stop(x, came, err) : st;
}

/* An event, and the members that most events have. */
typedef struct came_event {
    ah_slice all, type, index, delta;
} came_event;

/* Blocks come in later events; a block in this one would be lost, and is an error. */
static ah_status start_message(reader *x, const came_event *e, ah_err *err)
{
    ah_slice came = ah_json_member(e->all, "message");
    ah_json_reader it = ah_json_read(ah_json_member(came, "content"));

    if (ah_json_next(&it).kind == AH_JSON_ARRAY && ah_json_next(&it).kind != AH_JSON_ARRAY_END)
        return ah_wire_reader_bad(&x->r, err,
                                  "an event's message.content must be empty where it begins");
    return begin_message(x, came, err);
}

static int64_t index_of(const came_event *e)
{
    ah_json_num n = {0};

    ah_json_number(e->index, &n);
    return n.i;
}

/* Fails unless the event's index is the open block's. */
static ah_status check_index(reader *x, const came_event *e, ah_err *err)
{
    if (x->kind != BLOCK_NONE && index_of(e) == x->last)
        return AH_OK;
    return ah_wire_reader_bad(&x->r, err, "an event's index is %lld, and no such block is open",
                              (long long)index_of(e));
}

static ah_status start_block(reader *x, const came_event *e, ah_err *err)
{
    ah_status st = end_block(x, true, err);

    if (st == AH_OK && !x->r.begun)
        st = ah_wire_reader_bad(&x->r, err,
                                "a block begins before the message (content_block_start)");
    x->last = index_of(e);
    return st == AH_OK ? begin_block(x, ah_json_member(e->all, "content_block"), err) : st;
}

static ah_status add_to_block(reader *x, const came_event *e, ah_err *err)
{
    ah_status st = check_index(x, e, err);

    return st == AH_OK ? read_delta(x, e->delta, err) : st;
}

static ah_status stop_block(reader *x, const came_event *e, ah_err *err)
{
    ah_status st = check_index(x, e, err);

    return st == AH_OK ? end_block(x, false, err) : st;
}

static ah_status read_message_delta(reader *x, const came_event *e, ah_err *err)
{
    ah_status st = end_block(x, true, err);

    read_usage(x, ah_json_member(e->all, "usage"));
    return st == AH_OK ? read_stop(x, e->delta, err) : st;
}

static ah_status stop_message(reader *x, const came_event *e, ah_err *err)
{
    ah_status st = end_block(x, true, err);

    (void)e;
    x->r.finished = x->r.done = true;
    if (st != AH_OK || message_of(x)->stop == AH_STOP_REFUSAL)
        return st;
    return check_ended(x, err);
}

static ah_status read_event(reader *x, ah_slice doc, ah_err *err)
{
    static const struct {
        const char *type;
        ah_status (*read)(reader *x, const came_event *e, ah_err *err);
    } types[] = {{"content_block_delta", add_to_block}, {"content_block_start", start_block},
                 {"content_block_stop", stop_block},    {"message_start", start_message},
                 {"message_delta", read_message_delta}, {"message_stop", stop_message}};
    came_event e = {.all = doc};
    const ah_json_slot want[] = {{"type", &e.type}, {"index", &e.index}, {"delta", &e.delta}};

    ah_json_members(doc, want, 3);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (ah_json_string_is(e.type, types[i].type))
            return types[i].read(x, &e, err);
    return AH_OK;
}

static ah_status read_document(ah_wire_reader *r, ah_slice doc, ah_err *err)
{
    reader *x = (reader *)r;

    return r->pieces ? read_event(x, doc, err) : read_whole(x, doc, err);
}

static void clear(ah_wire_reader *r)
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

static const ah_wire_reader_vt reading = {
    .no_answer = "the answer holds no message",
    .stop = "stop_reason",
    .size = sizeof(reader),
    .words = error_words,
    .whole = &message,
    .piece = &event,
    .document = read_document,
    .clear = clear,
    .advising = "https://api.anthropic.com",
};

ah_status ah_anthropic_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_wire_reader_open(&reading, a, msg, out, err);
    reader *x;

    if (st != AH_OK)
        return st;
    x = (reader *)*out;
    x->last = -1;
    ah_buf_init(&x->id, a->mem, 4096);
    ah_buf_init(&x->block, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->thinking, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->signature, a->mem, AH_MAX_TEXT);
    ah_buf_init(&x->input, a->mem, AH_MAX_ARGUMENTS);
    return AH_OK;
}
