/* Reading Chat Completions: a stream of events or one document, into an assembly. What
 * servers send that is not quite OpenAI's form is taken where its meaning is plain. */
#include "wire/openai_read.h"

#include "wire/openai.h"
#include "wire/reading.h"
#include "wire/thoughts.h"

enum { MAX_CALL_ID = 128 };

typedef struct reader {
    ah_reading r;
    ah_thoughts thoughts; /* to be sent back */
    ah_buf call_id;       /* what a LiteLLM proxy calls the request in its logs */
} reader;

static unsigned quirks_of(const ah_reading *r)
{
    return ((const ah_openai *)r->base.adapter)->server->quirks;
}

/* What a proxy says of the request: how it is called, and whether it was tried again there. */
static void note_head(ah_reading *r, const ah_response_head *h)
{
    ah_slice id = h->header(h->ud, "x-litellm-call-id");
    ah_slice retries = h->header(h->ud, "x-litellm-attempted-retries");

    if (!(quirks_of(r) & AH_SERVER_PROXY))
        return;
    if (id.n <= MAX_CALL_ID)
        ah_utf8_repair(id, &((reader *)r)->call_id);
    r->never = retries.n && !ah_slice_is(retries, "0");
}

/* Where to look for it. */
static void note_fault(ah_reading *r, ah_slice error, ah_buf *more)
{
    const ah_buf *id = &((reader *)r)->call_id;

    (void)error;
    if (id->len)
        ah_buf_fmt(more, "; litellm call %.*s", AH_FMT(ah_buf_slice(id)));
}

static void read_usage(ah_assembly *msg, ah_slice usage)
{
    ah_slice input, output, of_input, of_output, cost;
    const ah_json_wanted want[] = {{"prompt_tokens", &input},
                                   {"completion_tokens", &output},
                                   {"prompt_tokens_details", &of_input},
                                   {"completion_tokens_details", &of_output},
                                   {"cost", &cost}};

    ah_json_members(usage, want, 5);
    ah_assembly_cost(msg, cost);
    ah_assembly_usage(
        msg, (ah_usage){
                 .input = ah_reading_count(input),
                 .cached_read = ah_reading_count(ah_json_member(of_input, "cached_tokens")),
                 .cached_write = ah_reading_count(ah_json_member(of_input, "cache_write_tokens")),
                 .output = ah_reading_count(output),
                 .reasoning = ah_reading_count(ah_json_member(of_output, "reasoning_tokens")),
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
    return AH_STOP_END;
}

static ah_status read_arguments(ah_draft_call *c, ah_slice arguments, ah_err *err)
{
    ah_json_kind kind = ah_json_kind_of(arguments);

    if (kind == AH_JSON_STRING)
        return ah_assembly_call_arguments(c, ah_json_inside(arguments), err);
    if (kind != AH_JSON_END && kind != AH_JSON_NULL)
        return ah_assembly_call_value(c, arguments, err); /* some servers send the object itself */
    return AH_OK;
}

/* Does a fragment that goes by the number of `c` begin another call? Some servers number
 * none of their calls, some give all of a message the same number. */
static bool begins_another(const ah_draft_call *c, ah_slice id, ah_slice name, bool numbered)
{
    if (!ah_reading_says(name) || !c->name.len)
        return false;
    if (!ah_reading_says(id))
        return !numbered;
    return c->id.len && !memchr(id.p, '\\', id.n) &&
           !ah_slice_eq(ah_json_inside(id), ah_buf_slice(&c->id));
}

/* A call as it came: the members' values. */
typedef struct received_call {
    ah_slice id, index, name, arguments;
} received_call;

/* The call a fragment of a stream belongs to. */
static ah_status find_call(ah_assembly *msg, const received_call *came, ah_draft_call **out, ah_err *err)
{
    ah_json_num index = {0};
    bool numbered = ah_json_number(came->index, &index) && index.is_int;
    int64_t number = numbered || !msg->n ? index.i : msg->call[msg->n - 1].index;
    ah_status st = ah_assembly_call(msg, number, out, err);

    if (st == AH_OK && begins_another(*out, came->id, came->name, numbered))
        st = ah_assembly_add_call(msg, number, out, err);
    return st;
}

static ah_status read_call(ah_reading *r, ah_json_reader *it, ah_err *err)
{
    received_call came;
    ah_slice function;
    const ah_json_wanted want[] = {{"id", &came.id}, {"index", &came.index}, {"function", &function}};
    const ah_json_wanted inner[] = {{"name", &came.name}, {"arguments", &came.arguments}};
    ah_draft_call *c;
    ah_status st;

    ah_json_rest_members(it, want, 3);
    ah_json_members(function, inner, 2);
    if (r->pieces)
        st = find_call(r->base.msg, &came, &c, err);
    else /* each is whole, whatever number it bears */
        st = ah_assembly_add_call(r->base.msg, (int64_t)r->base.msg->n, &c, err);
    if (st == AH_OK && ah_reading_says(came.id))
        st = ah_assembly_call_id(c, ah_json_inside(came.id), err);
    if (st == AH_OK && ah_reading_says(came.name))
        st = ah_assembly_call_name(c, ah_json_inside(came.name), err);
    return st == AH_OK ? read_arguments(c, came.arguments, err) : st;
}

/* Reads an object whose bracket was just read, to its end. */
typedef ah_status (*read_fn)(ah_reading *r, ah_json_reader *it, ah_err *err);

/* Reads the objects of the array whose bracket was just read, in place: long answers are
 * passed over as seldom as can be. Anything else in it means nothing to us. */
static ah_status read_each(ah_reading *r, ah_json_reader *it, read_fn read, ah_err *err)
{
    ah_json_token t = ah_json_next(it);
    ah_status st = AH_OK;

    for (; st == AH_OK && t.kind != AH_JSON_ARRAY_END && t.kind != AH_JSON_END; t = ah_json_next(it))
        if (t.kind == AH_JSON_OBJECT)
            st = read(r, it, err);
        else
            ah_json_skip(it, t);
    return st;
}

/* Some servers send a list of parts where OpenAI sends a string. */
static ah_status read_part(ah_reading *r, ah_json_reader *it, ah_err *err)
{
    ah_slice text;
    const ah_json_wanted want[] = {{"text", &text}};

    ah_json_rest_members(it, want, 1);
    if (ah_json_kind_of(text) != AH_JSON_STRING)
        return AH_OK;
    return ah_assembly_text(r->base.msg, ah_json_inside(text), err);
}

/* A delta of a stream or the message of a whole answer: the same members. */
static ah_status read_message(ah_reading *r, ah_slice message, ah_err *err)
{
    ah_json_reader it = ah_json_read(message);
    ah_json_token key = ah_json_next(&it);
    ah_status st = AH_OK;

    if (key.kind != AH_JSON_OBJECT)
        return AH_OK;
    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_json_token t = ah_json_next(&it);

        if (t.kind == AH_JSON_STRING && ah_json_token_is(key, "content"))
            st = ah_assembly_text(r->base.msg, t.raw, err);
        else if (t.kind == AH_JSON_STRING && ah_json_token_is(key, "refusal"))
            st = ah_assembly_refusal(r->base.msg, t.raw, err);
        else if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "content"))
            st = read_each(r, &it, read_part, err);
        else if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "tool_calls"))
            st = read_each(r, &it, read_call, err);
        else
            st = ah_thoughts_take(&((reader *)r)->thoughts, key, ah_json_skip(&it, t), err);
    }
    return st;
}

/* One of possibly several choices: only the first answer (index 0) is ours. */
static ah_status read_choice(ah_reading *r, ah_json_reader *it, ah_err *err)
{
    ah_slice reason, native, message, number;
    const ah_json_wanted want[] = {{"finish_reason", &reason},
                                   {"native_finish_reason", &native},
                                   {r->pieces ? "delta" : "message", &message},
                                   {"index", &number}};
    ah_json_num index;
    ah_status st;

    ah_json_rest_members(it, want, 4);
    if (ah_json_number(number, &index) && index.d != 0)
        return AH_OK;
    r->begun = true;
    st = read_message(r, message, err);
    if (ah_reading_says(reason)) {
        ah_assembly_stop(r->base.msg, stop_of(reason), ah_reading_says(native) ? native : reason);
        r->finished = true;
    }
    return st;
}

/* What stands beside the choices. */
static ah_status read_member(ah_reading *r, ah_json_token key, ah_json_kind kind, ah_slice value,
                             ah_err *err)
{
    if (kind != AH_JSON_NULL && ah_json_token_is(key, "error"))
        return ah_reading_error(r, value, err);
    if (kind != AH_JSON_OBJECT)
        return AH_OK;
    if (ah_json_token_is(key, "x_groq"))
        value = ah_json_member(value, "usage");
    else if (!ah_json_token_is(key, "usage"))
        return AH_OK;
    if (ah_json_kind_of(value) == AH_JSON_OBJECT)
        read_usage(r->base.msg, value);
    return AH_OK;
}

static ah_status read_document(ah_reading *r, ah_slice doc, ah_err *err)
{
    ah_json_reader it = ah_json_read(doc);
    ah_json_token key = ah_json_next(&it);
    ah_status st = AH_OK;

    for (key = ah_json_next(&it); st == AH_OK && key.kind == AH_JSON_KEY; key = ah_json_next(&it)) {
        ah_json_token t = ah_json_next(&it);

        if (t.kind == AH_JSON_ARRAY && ah_json_token_is(key, "choices"))
            st = read_each(r, &it, read_choice, err);
        else
            st = read_member(r, key, t.kind, ah_json_skip(&it, t), err);
    }
    return st;
}

static ah_status complete(ah_reading *r, ah_err *err)
{
    return ah_thoughts_give(&((reader *)r)->thoughts, r->base.msg, err);
}

static void clear(ah_reading *r)
{
    reader *x = (reader *)r;

    ah_thoughts_clear(&x->thoughts);
    ah_buf_clear(&x->call_id);
}

static const ah_error_word error_words[] = {
    /* Groq reads calls itself and refuses those the model wrote wrongly: asked again, it mostly
     * writes them well, and nothing was shown of the first. */
    {"tool_use_failed", AH_ERROR_AGAIN},
    /* A LiteLLM proxy without a database says this of a wrong key, with status 400. */
    {"no_db_connection", AH_ERROR_KEY},
    {NULL, 0},
};

static const ah_reading_vt reading = {
    .no_answer = "the answer holds no choices",
    .size = sizeof(reader),
    .words = error_words,
    .head = note_head,
    .document = read_document,
    .complete = complete,
    .fault = note_fault,
    .clear = clear,
};

ah_status ah_openai_open(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err)
{
    ah_status st = ah_reading_open(&reading, a, msg, out, err);
    reader *x;

    if (st != AH_OK)
        return st;
    x = (reader *)*out;
    ah_buf_init(&x->call_id, a->mem, MAX_CALL_ID);
    ah_thoughts_init(&x->thoughts, a->mem, quirks_of(&x->r));
    return AH_OK;
}
