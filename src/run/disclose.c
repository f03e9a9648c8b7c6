/* The handler answers while it is being started: reading a section waits for nothing. */
#include "run/disclose.h"

#include "run/run.h"

enum { MAX_ANSWER = 64 << 20 };

typedef struct reader {
    ah_binding *binding;
    ah_shown shown; /* find NULL: none */
} reader;

static void release(void *p)
{
    reader *r = p;
    const ah_mem *mem = ah_binding_mem(r->binding);

    ah_binding_unref(r->binding);
    ah_free(mem, r);
}

/* The words of seed 000, Handler Behavior and Error Handling. */
static void put_message(ah_read_kind kind, ah_slice key, ah_buf *out)
{
    switch (kind) {
    case AH_READ_UNKNOWN:
        ah_buf_str(out, "Unknown section key: '");
        ah_buf_put(out, key);
        ah_buf_char(out, '\'');
        return;
    case AH_READ_EXPANDED:
        ah_buf_str(out, "Section is already expanded.");
        return;
    case AH_READ_CONTENT:
        ah_buf_str(out, "Content of section '");
        ah_buf_put(out, key);
        ah_buf_str(out, "':");
        return;
    }
}

static void answer(ah_call *call, const ah_reading *r, ah_slice key)
{
    ah_outcome o = {.failure = AH_FAILED_SAID, .success = r->kind != AH_READ_UNKNOWN, .whole = true};
    ah_buf message, value;

    ah_buf_init(&message, r->mem, MAX_ANSWER);
    ah_buf_init(&value, r->mem, MAX_ANSWER);
    put_message(r->kind, key, &message);
    o.message = ah_buf_slice(&message);
    if (o.success) {
        ah_json_put_string(&value, ah_buf_slice(&r->content));
        o.value = ah_buf_slice(&value);
    }
    if (!ah_buf_ok(&message) || !ah_buf_ok(&value))
        o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of("out of memory")};
    ah_call_done(call, &o, call->started);
    ah_buf_clear(&message);
    ah_buf_clear(&value);
}

static void fail(ah_call *call, const ah_err *err)
{
    ah_outcome o = {.failure = AH_FAILED_RAISED, .message = ah_slice_of(err->message)};

    ah_call_done(call, &o, call->started);
}

static void start(const ah_tool *tool, ah_call *call)
{
    const reader *me = tool->handler.p;
    const ah_shown *shown = me->shown.find ? &me->shown : NULL;
    ah_reading r = {0};
    ah_status st;
    ah_err err;
    ah_buf key;

    ah_buf_init(&key, tool->mem, MAX_ANSWER);
    ah_json_string(ah_json_member(ah_text_slice(call->args), "section_key"), &key);
    st = ah_buf_ok(&key) ? ah_binding_read(me->binding, shown, ah_buf_slice(&key), &r, &err)
                         : ah_err_nomem(&err);
    if (st == AH_OK)
        answer(call, &r, ah_buf_slice(&key));
    else
        fail(call, &err);
    ah_reading_clear(&r);
    ah_buf_clear(&key);
}

static void stop(const ah_tool *tool, ah_call *call)
{
    (void)tool;
    (void)call;
}

static const ah_tool_vt vt = {.start = start, .stop = stop};
static const struct ah_value_vt reader_vt = {release};

static ah_status make_tool(const ah_mem *mem, reader *r, ah_tool **out, ah_err *err)
{
    static const char schema[] =
        "{\"additionalProperties\":false,\"properties\":{\"section_key\":{\"description\":\"The key that "
        "the summary names.\",\"type\":\"string\"}},\"required\":[\"section_key\"],\"type\":\"object\"}";
    ah_tool_def def = {.name = AH_LIT(AH_READ_SECTION),
                       .description = AH_LIT("Read the full content of a summarized section."),
                       .vt = &vt,
                       .handler = {&reader_vt, r}};
    ah_status st = ah_schema_compile(mem, ah_slice_of(schema), &def.params, err);

    if (st == AH_OK)
        st = ah_tool_new(mem, &def, out, err);
    ah_schema_unref(def.params);
    return st;
}

ah_status ah_read_section_tool(ah_binding *b, const ah_shown *shown, ah_tool **out, ah_err *err)
{
    const ah_mem *mem = ah_binding_mem(b);
    reader *r = ah_alloc(mem, sizeof *r);
    ah_status st;

    if (!r)
        return ah_err_nomem(err);
    *r = (reader){.binding = ah_binding_ref(b)};
    if (shown)
        r->shown = *shown;
    if ((st = make_tool(mem, r, out, err)) != AH_OK)
        release(r);
    return st;
}
