/* The handler answers while it is being started: reading a section waits for nothing. */
#include "run/disclose.h"

#include "run/run.h"

enum { MAX_ANSWER = 64 << 20 };

/* -- what is open ------------------------------------------------------------------ */

static bool is_open(const ah_disclosure *d, ah_slice path)
{
    for (size_t i = 0; i < d->n; i++)
        if (ah_slice_eq(path, ah_text_slice(d->open[i])))
            return true;
    return false;
}

static bool find_shown(void *ud, ah_slice path, ah_visibility *out)
{
    const ah_disclosure *d = ud;

    if (d->also.find && d->also.find(d->also.ud, path, out))
        return true;
    *out = AH_FULL;
    return is_open(d, path);
}

void ah_disclosure_init(ah_disclosure *d, ah_binding *binding)
{
    *d = (ah_disclosure){.mem = ah_binding_mem(binding),
                         .binding = ah_binding_ref(binding),
                         .shown = {.find = find_shown, .ud = d}};
}

static void forget_soon(ah_disclosure *d)
{
    for (size_t i = 0; i < d->n_soon; i++)
        ah_text_unref(d->soon[i]);
    ah_free(d->mem, d->soon);
    d->soon = NULL;
    d->n_soon = 0;
}

void ah_disclosure_clear(ah_disclosure *d)
{
    if (!d->mem)
        return;
    forget_soon(d);
    for (size_t i = 0; i < d->n; i++)
        ah_text_unref(d->open[i]);
    ah_free(d->mem, d->open);
    ah_text_unref(d->before);
    ah_text_unref(d->after);
    ah_binding_unref(d->binding);
    *d = (ah_disclosure){0};
}

static bool reserve(ah_disclosure *d, size_t more)
{
    ah_text **open = ah_grow(d->mem, d->open, &d->cap, d->n + more, sizeof *open);

    if (open)
        d->open = open;
    return open != NULL;
}

ah_status ah_disclosure_open(ah_disclosure *d, ah_slice path, ah_err *err)
{
    if (is_open(d, path))
        return AH_OK;
    if (!reserve(d, 1) || !(d->open[d->n] = ah_text_new(d->mem, path)))
        return ah_err_nomem(err);
    d->n++;
    return AH_OK;
}

static ah_status open_list(ah_disclosure *d, ah_slice list, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING && st == AH_OK; t = ah_json_next(&r))
        st = ah_disclosure_open(d, t.raw, err); /* paths hold nothing that JSON escapes */
    return st;
}

ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < t->n && st == AH_OK; i++)
        if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED)
            st = open_list(
                d, ah_json_member(ah_json_member(ah_text_slice(t->entry[i].json), "by"), "open"), err);
    return st;
}

ah_status ah_disclosure_copy(ah_disclosure *d, const ah_disclosure *from, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < from->n && st == AH_OK; i++)
        st = ah_disclosure_open(d, ah_text_slice(from->open[i]), err);
    d->before = ah_text_ref(from->before);
    d->after = ah_text_ref(from->after);
    d->restarts = from->restarts;
    return st;
}

static void put_block(ah_buf *out, ah_slice text)
{
    if (text.n && out->len)
        ah_buf_str(out, "\n\n");
    ah_buf_put(out, text);
}

void ah_disclosure_text(const ah_disclosure *d, const ah_rendered *r, ah_buf *out)
{
    put_block(out, ah_text_slice(d->before));
    put_block(out, ah_text_slice(r->text));
    put_block(out, ah_text_slice(d->after));
}

/* -- read_section ------------------------------------------------------------------------ */

static void release(void *p)
{
    (void)p; /* the disclosure is its owner's */
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
    const ah_disclosure *d = tool->handler.p;
    ah_reading r = {0};
    ah_status st;
    ah_err err;
    ah_buf key;

    ah_buf_init(&key, tool->mem, MAX_ANSWER);
    ah_json_string(ah_json_member(ah_text_slice(call->args), "section_key"), &key);
    st = ah_buf_ok(&key) ? ah_binding_read(d->binding, &d->shown, ah_buf_slice(&key), &r, &err)
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

ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err)
{
    static const char schema[] =
        "{\"additionalProperties\":false,\"properties\":{\"section_key\":{\"description\":\"The key that "
        "the summary names.\",\"type\":\"string\"}},\"required\":[\"section_key\"],\"type\":\"object\"}";
    ah_tool_def def = {.name = AH_LIT(AH_READ_SECTION),
                       .description = AH_LIT("Read the full content of a summarized section."),
                       .keeps_full = true,
                       .vt = &vt,
                       .handler = {&reader_vt, d}};
    ah_status st = ah_schema_compile(d->mem, ah_slice_of(schema), &def.params, err);

    if (st == AH_OK)
        st = ah_tool_new(d->mem, &def, out, err);
    ah_schema_unref(def.params);
    return st;
}

/* -- the strategy --------------------------------------------------------------------------- */

/* {"section":key,"open":[paths]}: where the tools are from, and what a loaded conversation opens. */
static ah_status provenance(const ah_disclosure *d, ah_slice key, const ah_reading *r, ah_text **out,
                            ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, d->mem, MAX_ANSWER);
    ah_buf_str(&b, "{\"section\":");
    ah_json_put_string(&b, key);
    ah_buf_str(&b, ",\"open\":[");
    for (size_t i = 0; i < r->n_open; i++) {
        ah_buf_str(&b, i ? "," : "");
        ah_json_put_string(&b, r->open[i]);
    }
    ah_buf_str(&b, "]}");
    st = ah_text_from_buf(&b, "provenance", out, err);
    ah_buf_clear(&b);
    return st;
}

/* Opened by ah_disclosure_made, which cannot fail. */
static ah_status remember(ah_disclosure *d, const ah_reading *r, ah_err *err)
{
    forget_soon(d);
    if (!reserve(d, r->n_open) || !(d->soon = ah_alloc(d->mem, r->n_open * sizeof *d->soon)))
        return ah_err_nomem(err);
    for (; d->n_soon < r->n_open; d->n_soon++)
        if (!(d->soon[d->n_soon] = ah_text_new(d->mem, r->open[d->n_soon])))
            return ah_err_nomem(err);
    return AH_OK;
}

static void open_soon(ah_disclosure *d)
{
    for (size_t i = 0; i < d->n_soon; i++)
        if (!is_open(d, ah_text_slice(d->soon[i])))
            d->open[d->n++] = ah_text_ref(d->soon[i]);
    forget_soon(d);
}

/* The system text as it is once the sections are open. */
static ah_status set_prompt(ah_disclosure *d, ah_changes *out, ah_err *err)
{
    size_t n = d->n;
    ah_rendered *r = NULL;
    ah_status st;
    ah_buf b;

    for (size_t i = 0; i < d->n_soon; i++) /* for as long as the rendering takes */
        if (!is_open(d, ah_text_slice(d->soon[i])))
            d->open[d->n++] = d->soon[i];
    st = ah_binding_render(d->binding, &d->shown, &r, err);
    d->n = n;
    if (st != AH_OK)
        return st;
    ah_buf_init(&b, d->mem, MAX_ANSWER);
    ah_disclosure_text(d, r, &b);
    st = ah_buf_ok(&b) ? ah_changes_prompt(out, ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "the system text", err);
    ah_buf_clear(&b);
    ah_rendered_unref(r);
    return st;
}

static ah_status expand(ah_disclosure *d, ah_slice key, const ah_reading *r, ah_changes *out,
                        ah_err *err)
{
    ah_text *by = NULL;
    ah_status st = provenance(d, key, r, &by, err);

    for (size_t i = 0; i < r->n_tools && st == AH_OK; i++)
        st = ah_changes_add(out, r->tool[i].tool, by, err);
    ah_text_unref(by);
    if (st == AH_OK)
        st = remember(d, r, err);
    return st == AH_OK && d->restarts ? set_prompt(d, out, err) : st;
}

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    ah_disclosure *d = ud;
    ah_reading r = {0};
    ah_status st;
    ah_buf key;

    (void)run;
    if (!call->success || !ah_slice_is(ah_text_slice(call->slot->name), AH_READ_SECTION))
        return AH_OK;
    ah_buf_init(&key, d->mem, MAX_ANSWER);
    ah_json_string(ah_json_member(ah_text_slice(call->args), "section_key"), &key);
    st = ah_buf_ok(&key) ? ah_binding_read(d->binding, &d->shown, ah_buf_slice(&key), &r, err)
                         : ah_err_nomem(err);
    if (st == AH_OK && r.n_open)
        st = expand(d, ah_buf_slice(&key), &r, out, err);
    ah_reading_clear(&r);
    ah_buf_clear(&key);
    return st;
}

static void made(void *ud)
{
    open_soon(ud);
}

ah_strategy ah_disclosure_strategy(ah_disclosure *d)
{
    static const struct ah_strategy_vt strategy_vt = {.after = after, .made = made};

    return (ah_strategy){.name = AH_READ_SECTION, .vt = &strategy_vt, .ud = d};
}
