/* Reads Chat Completions, a stream of events or one document, into an assembly. Deviations of
 * servers from OpenAI's form are accepted if their meaning is clear. */
#include "wire/openai_read.h"

#include "base/excerpt.h"
#include "base/json_walk.h"
#include "wire/full.h"
#include "wire/openai.h"
#include "wire/reader.h"
#include "wire/thoughts.h"

enum { MAX_CALL_ID = 128 };

typedef struct reader {
    ah_wire_reader r;
    ah_thoughts thoughts; /* to be sent back */
    ah_buf call_id;       /* the request's id in the logs of a LiteLLM proxy */
    int64_t position;     /* position of the current choice in its document */
    bool chosen;          /* the choice of a whole answer was read */
    bool said;            /* content has come, or what may replace it */
} reader;

/* -- shapes
 *
 * Ignored: `usage` (invalid counts are ignored, and no other part of the answer depends on
 * them), `id`, `model`, `object`, `created`, `logprobs`, `annotations` and unknown members. */

static const char *const roles[] = {"assistant", "", NULL};
static const ah_shape role = {.kinds = AH_IS_STRING | AH_IS_NULL, .words = roles};
static const ah_shape string = {.kinds = AH_IS_STRING};
static const ah_shape maybe_string = {.kinds = AH_IS_STRING | AH_IS_NULL};
/* An id that is not a string is ignored, and one is made. */
static const ah_shape maybe_id = {.kinds = AH_IS_STRING | AH_IS_COUNT | AH_IS_NULL};
static const ah_shape piece = {.kinds = AH_IS_PIECE};
static const ah_shape maybe_piece = {.kinds = AH_IS_PIECE | AH_IS_NULL};
static const ah_shape maybe_count = {.kinds = AH_IS_COUNT | AH_IS_NULL};

/* Some servers send a list of parts where OpenAI sends a string. Parts of other types, such as
 * thoughts, are ignored. */
static const ah_shape thought_part = {.kinds = AH_IS_OBJECT,
                                      .member = AH_MEMBERS(AH_MAY_HAVE("text", &piece))};
static const ah_shape thought_parts = {.kinds = AH_IS_ARRAY | AH_IS_PIECE, .items = &thought_part};
static const ah_shape text_part = {.member = AH_MEMBERS(AH_NEEDS("text", &string))};
static const ah_shape part = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("text", &piece), AH_MAY_HAVE("thinking", &thought_parts)),
    .by = "type",
    .cases = AH_CASES(AH_CASE("text", &text_part), AH_CASE("", &text_part))};
static const ah_shape content = {.kinds = AH_IS_PIECE | AH_IS_ARRAY | AH_IS_NULL, .items = &part};

/* Thoughts, as blocks. */
static const ah_shape block = {.kinds = AH_IS_OBJECT,
                               .member = AH_MEMBERS(AH_MAY_HAVE("text", &maybe_piece),
                                                    AH_MAY_HAVE("summary", &maybe_piece),
                                                    AH_MAY_HAVE("thinking", &maybe_piece))};
static const ah_shape blocks = {.kinds = AH_IS_ARRAY | AH_IS_NULL, .items = &block};

/* Some servers send arguments as the object itself, or null for none. */
static const ah_shape arguments = {.kinds = AH_IS_PIECE | AH_IS_OBJECT | AH_IS_NULL};
static const ah_shape function = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_NEEDS("name", &string), AH_MAY_HAVE("arguments", &arguments))};
static const ah_shape call = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("id", &maybe_id), AH_MAY_HAVE("index", &maybe_count),
                         AH_MAY_HAVE("type", &maybe_string), AH_NEEDS("function", &function))};
static const ah_shape calls = {.kinds = AH_IS_ARRAY | AH_IS_NULL, .items = &call};
static const ah_shape more_function = {
    .kinds = AH_IS_OBJECT | AH_IS_NULL,
    .member = AH_MEMBERS(AH_MAY_HAVE("name", &maybe_string), AH_MAY_HAVE("arguments", &arguments))};
static const ah_shape more_call = {.kinds = AH_IS_OBJECT,
                                   .member = AH_MEMBERS(AH_MAY_HAVE("id", &maybe_id),
                                                        AH_MAY_HAVE("index", &maybe_count),
                                                        AH_MAY_HAVE("type", &maybe_string),
                                                        AH_MAY_HAVE("function", &more_function))};
static const ah_shape more_calls = {.kinds = AH_IS_ARRAY | AH_IS_NULL, .items = &more_call};

static const ah_shape message = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("content", &content), AH_MAY_HAVE("role", &role),
                         AH_MAY_HAVE("refusal", &maybe_piece), AH_MAY_HAVE("tool_calls", &calls),
                         AH_MAY_HAVE("reasoning_content", &maybe_piece),
                         AH_MAY_HAVE("reasoning_details", &blocks),
                         AH_MAY_HAVE("thinking_blocks", &blocks))};
/* Some servers send null for an empty delta. */
static const ah_shape delta = {
    .kinds = AH_IS_OBJECT | AH_IS_NULL,
    .member = AH_MEMBERS(
        AH_MAY_HAVE("content", &content), AH_MAY_HAVE("role", &role),
        AH_MAY_HAVE("refusal", &maybe_piece), AH_MAY_HAVE("tool_calls", &more_calls),
        AH_MAY_HAVE("reasoning_content", &maybe_piece), AH_MAY_HAVE("reasoning", &maybe_piece),
        AH_MAY_HAVE("reasoning_details", &blocks), AH_MAY_HAVE("thinking_blocks", &blocks))};

static const ah_shape choice = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_NEEDS("message", &message), AH_MAY_HAVE("index", &maybe_count),
                         AH_MAY_HAVE("finish_reason", &maybe_string),
                         AH_MAY_HAVE("native_finish_reason", &maybe_string))};
static const ah_shape choices = {.kinds = AH_IS_ARRAY, .items = &choice};

/* The parts of a document that are read. */
enum { CHOICES = 1, USAGE, GROQ, TIER };
static const ah_shape any = {.kinds = 0};
static const ah_shape answer = {.member = AH_MEMBERS(AH_HANDS_OVER("choices", &choices, CHOICES),
                                                     AH_HANDS_OVER("usage", &any, USAGE),
                                                     AH_HANDS_OVER("x_groq", &any, GROQ),
                                                     AH_HANDS_OVER("service_tier", &any, TIER),
                                                     AH_MAY_HAVE("error", &ah_no_error))};
static const ah_shape more_choice = {
    .kinds = AH_IS_OBJECT,
    .member = AH_MEMBERS(AH_MAY_HAVE("delta", &delta), AH_MAY_HAVE("index", &maybe_count),
                         AH_MAY_HAVE("finish_reason", &maybe_string),
                         AH_MAY_HAVE("native_finish_reason", &maybe_string))};
/* The first and last events of a stream may have no choices. */
static const ah_shape more_choices = {.kinds = AH_IS_ARRAY | AH_IS_NULL, .items = &more_choice};
static const ah_shape event = {
    .member =
        AH_MEMBERS(AH_HANDS_OVER("choices", &more_choices, CHOICES),
                   AH_HANDS_OVER("usage", &any, USAGE), AH_HANDS_OVER("x_groq", &any, GROQ),
                   AH_HANDS_OVER("service_tier", &any, TIER), AH_MAY_HAVE("error", &ah_no_error))};

/* -- the head ------------------------------------------------------------------------------ */

static unsigned quirks_of(const ah_wire_reader *r)
{
    return ((const ah_openai *)r->base.adapter)->server->quirks;
}

/* Notes what a proxy reports: the request's id, and whether it has retried the request. */
static void note_head(ah_wire_reader *r, const ah_response_head *h)
{
    ah_slice id = h->header(h->ud, "x-litellm-call-id");
    ah_slice retries = h->header(h->ud, "x-litellm-attempted-retries");

    if (!(quirks_of(r) & AH_SERVER_PROXY))
        return;
    if (id.n <= MAX_CALL_ID)
        ah_utf8_repair(id, &((reader *)r)->call_id);
    r->never = retries.n && !ah_slice_is(retries, "0");
}

/* Adds the id under which the proxy's logs have the request. */
static void note_fault(ah_wire_reader *r, ah_slice error, ah_buf *more)
{
    const ah_buf *id = &((reader *)r)->call_id;

    (void)error;
    if (!id->len)
        return;
    ah_buf_str(more, "; litellm call ");
    ah_excerpt(ah_buf_slice(id), r->base.msg->secrets, MAX_CALL_ID, more);
}

static void read_usage(ah_assembly *msg, ah_slice usage)
{
    ah_slice input, output, of_input, of_output, cost;
    const ah_json_slot want[] = {{"prompt_tokens", &input},
                                 {"completion_tokens", &output},
                                 {"prompt_tokens_details", &of_input},
                                 {"completion_tokens_details", &of_output},
                                 {"cost", &cost}};

    if (!ah_json_members(usage, want, 5))
        return;
    ah_assembly_cost(msg, cost);
    ah_assembly_usage(
        msg,
        (ah_usage){
            .input = ah_wire_reader_count(input),
            .cached_read = ah_wire_reader_count(ah_json_member(of_input, "cached_tokens")),
            .cached_write = ah_wire_reader_count(ah_json_member(of_input, "cache_write_tokens")),
            .output = ah_wire_reader_count(output),
            .reasoning = ah_wire_reader_count(ah_json_member(of_output, "reasoning_tokens")),
            .known = true,
        });
}

static ah_stop stop_of(ah_slice reason)
{
    static const struct {
        const char *word;
        ah_stop stop;
    } words[] = {{"stop", AH_STOP_END},
                 {"length", AH_STOP_LENGTH},
                 {"tool_calls", AH_STOP_TOOL_CALLS},
                 {"function_call", AH_STOP_TOOL_CALLS},
                 {"content_filter", AH_STOP_FILTER}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (ah_json_string_is(reason, words[i].word))
            return words[i].stop;
    return ah_full_word(reason) ? AH_STOP_FULL : AH_STOP_END;
}

static ah_status read_arguments(ah_draft_call *c, ah_slice value, ah_err *err)
{
    ah_json_kind kind = ah_json_kind_of(value);

    if (kind == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(value), err);
    return kind == AH_JSON_OBJECT ? ah_assembly_call_value(c, value, err) : AH_OK;
}

/* True if a fragment with the index of `c` begins another call. Some servers give their calls no
 * index, some give all calls of a message the same one. */
static bool begins_another(const ah_draft_call *c, ah_slice id, ah_slice called, bool numbered)
{
    if (!ah_wire_reader_says(called) || !c->name.len)
        return false;
    if (!ah_wire_reader_says(id))
        return !numbered;
    return c->id.len && !memchr(id.p, '\\', id.n) &&
           !ah_slice_eq(ah_json_inside(id), ah_buf_slice(&c->id));
}

/* The values of a received call. */
typedef struct received_call {
    ah_slice id, index, name, arguments;
} received_call;

/* Finds the call that a stream's fragment belongs to. */
static ah_status find_call(ah_assembly *msg, const received_call *came, ah_draft_call **out,
                           ah_err *err)
{
    ah_json_num index = {0};
    bool numbered = ah_json_number(came->index, &index) && index.is_int;
    int64_t number = numbered || !msg->n ? index.i : msg->call[msg->n - 1].index;
    ah_status st = ah_assembly_call(msg, number, out, err);

    if (st == AH_OK && begins_another(*out, came->id, came->name, numbered))
        st = ah_assembly_add_call(msg, number, out, err);
    return st;
}

static ah_status read_call(ah_wire_reader *r, ah_json_reader *it, ah_err *err)
{
    received_call came;
    ah_slice called;
    const ah_json_slot want[] = {{"id", &came.id}, {"index", &came.index}, {"function", &called}};
    const ah_json_slot inner[] = {{"name", &came.name}, {"arguments", &came.arguments}};
    ah_draft_call *c;
    ah_status st;

    ah_json_rest_members(it, want, 3);
    ah_json_members(called, inner, 2);
    if (r->pieces)
        st = find_call(r->base.msg, &came, &c, err);
    else /* each is complete, whatever its index */
        st = ah_assembly_add_call(r->base.msg, (int64_t)r->base.msg->n, &c, err);
    if (st == AH_OK && ah_wire_reader_says(came.id))
        st = ah_assembly_call_id(c, ah_json_inside(came.id), err);
    if (st == AH_OK && ah_json_kind_of(came.name) == AH_JSON_STRING)
        st = ah_assembly_call_name(c, ah_json_inside(came.name), err);
    return st == AH_OK ? read_arguments(c, came.arguments, err) : st;
}

/* Reads an object, after its opening bracket, to its end. */
typedef ah_status (*read_fn)(ah_wire_reader *r, ah_json_reader *it, ah_err *err);

/* Reads the objects of the array that `it` is in, in place, so that long answers are scanned as
 * rarely as possible. */
static ah_status read_each(ah_wire_reader *r, ah_json_reader *it, read_fn read, ah_err *err)
{
    ah_status st = AH_OK;

    while (st == AH_OK && next_item(it) && enter(it, '{'))
        st = read(r, it, err);
    return st;
}

/* Some servers send a list of parts where OpenAI sends a string. */
static ah_status read_part(ah_wire_reader *r, ah_json_reader *it, ah_err *err)
{
    ah_slice text;
    const ah_json_slot want[] = {{"text", &text}};

    ah_json_rest_members(it, want, 1);
    if (!text.p)
        return AH_OK;
    return ah_assembly_text(r->base.msg, ah_json_inside(text), err);
}

/* True if this member allows a whole message to have no content: calls, a refusal or thoughts are
 * then the answer. */
static bool stands_for_content(ah_json_token key, ah_slice value)
{
    static const char *const names[] = {"tool_calls",        "refusal",
                                        "reasoning",         "reasoning_content",
                                        "reasoning_details", "thinking_blocks"};

    if (value.n <= 2 || ah_json_kind_of(value) == AH_JSON_NULL)
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (ah_json_token_is(key, names[i]))
            return true;
    return false;
}

/* Reads one member of a delta, or of the message of a whole answer. */
static ah_status read_said(ah_wire_reader *r, ah_json_reader *it, ah_json_token key, ah_err *err)
{
    reader *x = (reader *)r;
    ah_json_reader here = *it;
    ah_slice value = pass_value(it);
    ah_json_kind kind = ah_json_kind_of(value);
    bool of_content = ah_json_token_is(key, "content");

    x->said = x->said || (of_content && kind != AH_JSON_NULL) || stands_for_content(key, value);
    if (kind == AH_JSON_STRING && of_content)
        return ah_assembly_text(r->base.msg, ah_json_inside(value), err);
    if (kind == AH_JSON_STRING && ah_json_token_is(key, "refusal"))
        return ah_assembly_refusal(r->base.msg, ah_json_inside(value), err);
    if (of_content && enter(&here, '['))
        return read_each(r, &here, read_part, err);
    if (ah_json_token_is(key, "tool_calls") && enter(&here, '['))
        return read_each(r, &here, read_call, err);
    return ah_thoughts_take(&x->thoughts, key, value, err);
}

static ah_status read_message(ah_wire_reader *r, ah_slice came, ah_err *err)
{
    ah_json_reader it = ah_json_read(came);
    ah_json_token key;
    ah_status st = AH_OK;

    if (!enter(&it, '{'))
        return AH_OK;
    while (st == AH_OK && next_key(&it, &key))
        st = read_said(r, &it, key, err);
    return st;
}

/* Only the first answer (index 0) is used; without an index, its position counts. */
static ah_status find_ours(reader *x, ah_slice number, bool *ours, ah_err *err)
{
    int64_t position = x->position++;
    ah_json_num index;

    *ours = (ah_json_number(number, &index) ? index.i : position) == 0;
    if (!*ours || x->r.pieces)
        return AH_OK;
    if (x->chosen)
        return ah_wire_reader_bad(&x->r, err, "the answer's choices[%lld].index is 0 a second time",
                                  (long long)position);
    x->chosen = true;
    return AH_OK;
}

/* Reads one of possibly several choices. */
static ah_status read_choice(ah_wire_reader *r, ah_json_reader *it, ah_err *err)
{
    ah_slice reason, native, came, number;
    const ah_json_slot want[] = {{"index", &number},
                                 {r->pieces ? "delta" : "message", &came},
                                 {"finish_reason", &reason},
                                 {"native_finish_reason", &native}};
    bool ours;
    ah_status st;

    ah_json_rest_members(it, want, 4);
    st = find_ours((reader *)r, number, &ours, err);
    if (st != AH_OK || !ours)
        return st;
    r->begun = true;
    st = read_message(r, came, err);
    if (ah_wire_reader_says(reason)) {
        ah_assembly_stop(r->base.msg, stop_of(reason),
                         ah_wire_reader_says(native) ? native : reason);
        r->finished = true;
    }
    return st;
}

static ah_status read_document(ah_wire_reader *r, ah_slice doc, ah_err *err)
{
    const ah_slice *found = r->found.slot;
    ah_json_reader it = ah_json_read(found[CHOICES]);
    ah_status st = AH_OK;

    (void)doc;
    ((reader *)r)->position = 0;
    ah_assembly_service(r->base.msg, found[TIER]);
    if (enter(&it, '['))
        st = read_each(r, &it, read_choice, err);
    if (st == AH_OK && found[USAGE].p)
        read_usage(r->base.msg, found[USAGE]);
    if (st == AH_OK && found[GROQ].p)
        read_usage(r->base.msg, ah_json_member(found[GROQ], "usage"));
    return st;
}

/* True if content may be missing. A complete answer that ends normally must have some, even "". */
static bool may_say_nothing(const reader *x)
{
    ah_stop stop = x->r.base.msg->stop;

    return x->said || x->r.pieces || ah_stop_is_cut(stop) || stop == AH_STOP_FILTER;
}

static ah_status complete(ah_wire_reader *r, ah_err *err)
{
    if (!may_say_nothing((reader *)r))
        return ah_wire_reader_bad(r, err,
                                  "the answer's choices[0].message.content must be a string, found "
                                  "null or nothing, and no calls");
    return ah_thoughts_give(&((reader *)r)->thoughts, r->base.msg, err);
}

static void clear(ah_wire_reader *r)
{
    reader *x = (reader *)r;

    ah_thoughts_clear(&x->thoughts);
    ah_buf_clear(&x->call_id);
}

static const ah_error_word error_words[] = {
    /* Groq reads calls itself and refuses those that the model wrote wrongly. A retry usually
     * succeeds, and nothing of the first answer was shown. */
    {"tool_use_failed", AH_ERROR_AGAIN},
    /* A LiteLLM proxy without a database uses this for a wrong key, with status 400. */
    {"no_db_connection", AH_ERROR_KEY},
    {NULL, 0},
};

static const ah_wire_reader_vt reading = {
    .no_answer = "the answer holds no choices",
    .stop = "finish_reason",
    .size = sizeof(reader),
    .words = error_words,
    .whole = &answer,
    .piece = &event,
    .head = note_head,
    .document = read_document,
    .complete = complete,
    .fault = note_fault,
    .clear = clear,
};

ah_status ah_openai_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_wire_reader_open(&reading, a, msg, out, err);
    reader *x;

    if (st != AH_OK)
        return st;
    x = (reader *)*out;
    ah_buf_init(&x->call_id, a->mem, MAX_CALL_ID);
    ah_thoughts_init(&x->thoughts, a->mem, quirks_of(&x->r));
    return AH_OK;
}
