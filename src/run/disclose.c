/* The handler answers while it is being started: reading a section waits for nothing. */
#include "run/disclose.h"

#include "run/run.h"

enum { MAX_ANSWER = 64 << 20 };

/* -- what is open ------------------------------------------------------------------ */

void ah_disclosure_init(ah_disclosure *d, ah_binding *binding, ah_session *session)
{
    *d = (ah_disclosure){.mem = ah_binding_mem(binding),
                         .binding = ah_binding_ref(binding),
                         .session = ah_session_ref(session)};
    ah_overridden_init(&d->now, d->mem);
}

void ah_disclosure_clear(ah_disclosure *d)
{
    if (!d->mem)
        return;
    ah_overridden_clear(&d->now);
    ah_text_unref(d->before);
    ah_text_unref(d->after);
    ah_binding_unref(d->binding);
    ah_session_unref(d->session);
    *d = (ah_disclosure){0};
}

void ah_disclosure_bind(ah_disclosure *d, ah_binding *binding)
{
    ah_binding *old = d->binding;

    d->binding = ah_binding_ref(binding);
    ah_binding_unref(old);
}

ah_status ah_disclosure_look(ah_disclosure *d, const ah_overlay *o, ah_shown *out, ah_err *err)
{
    *out = (ah_shown){.find = ah_overridden_find, .ud = &d->now};
    return ah_overridden_read(&d->now, d->session, o, err);
}

/* -- what was read in the conversation ---------------------------------------------------- */

static ah_status put_list(ah_overridden *v, ah_slice list, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING && st == AH_OK; t = ah_json_next(&r))
        st = ah_overridden_put(v, t.raw, AH_FULL, err); /* paths hold nothing that JSON escapes */
    return st;
}

ah_status ah_disclosure_opened(ah_overridden *v, const ah_transcript *t, size_t since, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = since; i < t->n && st == AH_OK; i++)
        if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED)
            st = put_list(
                v, ah_json_member(ah_json_member(ah_text_slice(t->entry[i].json), "by"), "open"), err);
    return st;
}

ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_overlay *o, ah_err *err)
{
    ah_shown shown;
    ah_overridden opened;
    ah_visibility v;
    ah_status st;

    ah_overridden_init(&opened, d->mem);
    st = ah_disclosure_look(d, o, &shown, err);
    if (st == AH_OK)
        st = ah_disclosure_opened(&opened, t, 0, err);
    for (size_t i = 0; i < opened.n && st == AH_OK; i++)
        if (!shown.find(shown.ud, opened.item[i].path, &v))
            st = ah_visibility_set(d->session, o, opened.item[i].path, AH_FULL, err);
    ah_overridden_clear(&opened);
    return st;
}

/* -- the system text ------------------------------------------------------------------------ */

/* What is open now, but for what was opened by reading. */
typedef struct unread {
    const ah_disclosure *d;
    ah_overridden opened;
} unread;

static bool find_unread(void *ud, ah_slice path, ah_visibility *out)
{
    unread *u = ud;
    ah_visibility read;

    if (!ah_overridden_find((void *)&u->d->now, path, out))
        return false;
    return *out != AH_FULL || !ah_overridden_find(&u->opened, path, &read);
}

ah_status ah_disclosure_told(ah_disclosure *d, const ah_transcript *t, size_t since, ah_rendered *now,
                             ah_rendered *was, ah_rendered **out, ah_err *err)
{
    unread u = {.d = d};
    ah_shown shown = {.find = find_unread, .ud = &u};
    ah_status st;

    ah_overridden_init(&u.opened, d->mem);
    st = ah_disclosure_opened(&u.opened, t, since, err);
    if (st == AH_OK && u.opened.n)
        st = ah_binding_render_again(d->binding, &shown, was, out, err);
    else if (st == AH_OK)
        *out = ah_rendered_ref(now);
    ah_overridden_clear(&u.opened);
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

ah_status ah_disclosure_set_prompt(const ah_disclosure *d, const ah_rendered *r, ah_changes *out,
                                   ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, d->mem, MAX_ANSWER);
    ah_disclosure_text(d, r, &b);
    st = ah_buf_ok(&b) ? ah_changes_prompt(out, ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "the system text", err);
    ah_buf_clear(&b);
    return st;
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

/* {"content":text,"expanded_tools":[names]}: seed 000, ReadSectionResult with Tools. */
static void put_value(const ah_section_reading *r, ah_buf *out)
{
    ah_buf_str(out, "{\"content\":");
    ah_json_put_string(out, ah_buf_slice(&r->content));
    ah_buf_str(out, ",\"expanded_tools\":[");
    for (size_t i = 0; i < r->n_tools; i++) {
        ah_buf_str(out, i ? "," : "");
        ah_json_put_string(out, ah_text_slice(r->tool[i].tool->name));
    }
    ah_buf_str(out, "]}");
}

/* The model is shown the message and the content; strategies see the value. */
static void answer(ah_call *call, const ah_section_reading *r, ah_slice key)
{
    ah_outcome o = {.failure = AH_FAILED_SAID, .success = r->kind != AH_READ_UNKNOWN, .whole = true};
    ah_text *text = NULL;
    ah_buf message, value;

    ah_buf_init(&message, r->mem, MAX_ANSWER);
    ah_buf_init(&value, r->mem, MAX_ANSWER);
    put_message(r->kind, key, &message);
    put_value(r, &value);
    o.message = ah_buf_slice(&message);
    if (!ah_buf_ok(&message) || ah_text_from_buf(&value, "value", &text, NULL) != AH_OK) {
        o = (ah_outcome){.failure = AH_FAILED_RAISED, .message = ah_slice_of("out of memory")};
    } else if (o.success) {
        o.value = ah_text_slice(text);
        o.render = ah_buf_slice(&r->content);
        o.live = ah_value_json(ah_text_ref(text));
    }
    ah_call_done(call, &o, call->started);
    ah_text_unref(text);
    ah_buf_clear(&message);
    ah_buf_clear(&value);
}

static void fail(ah_call *call, const ah_err *err)
{
    ah_outcome o = {.failure = AH_FAILED_RAISED, .message = ah_slice_of(err->message)};

    ah_call_done(call, &o, call->started);
}

/* Reads the section that the call names, as things are seen from the overlay. */
static ah_status read_key(ah_disclosure *d, const ah_call *call, const ah_overlay *o, ah_buf *key,
                          ah_section_reading *out, ah_err *err)
{
    ah_shown shown;
    ah_status st = ah_disclosure_look(d, o, &shown, err);

    ah_json_string(ah_json_member(ah_text_slice(call->args), "section_key"), key);
    if (st == AH_OK && !ah_buf_ok(key))
        st = ah_err_nomem(err);
    return st == AH_OK ? ah_binding_read(d->binding, &shown, ah_buf_slice(key), out, err) : st;
}

static void start(const ah_tool *tool, ah_call *call)
{
    ah_disclosure *d = tool->handler.p;
    ah_section_reading r = {0};
    ah_status st;
    ah_err err;
    ah_buf key;

    ah_buf_init(&key, tool->mem, MAX_ANSWER);
    st = read_key(d, call, &call->overlay, &key, &r, &err);
    if (st == AH_OK)
        answer(call, &r, ah_buf_slice(&key));
    else
        fail(call, &err);
    ah_section_reading_clear(&r);
    ah_buf_clear(&key);
}

static const ah_tool_vt vt = {.start = start};
static const struct ah_value_vt reader_vt = {.release = release};

ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err)
{
    static const char schema[] =
        "{\"additionalProperties\":false,\"properties\":{\"section_key\":{\"description\":\"The key that "
        "the summary names.\",\"type\":\"string\"}},\"required\":[\"section_key\"],\"type\":\"object\"}";
    ah_tool_def def = {.name = AH_LIT(AH_READ_SECTION),
                       .ours = true,
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
static ah_status provenance(const ah_disclosure *d, ah_slice key, const ah_section_reading *r,
                            ah_text **out, ah_err *err)
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

/* What is open now and what the reading opens. */
typedef struct opening {
    ah_disclosure *d;
    const ah_section_reading *r;
} opening;

static bool find_opening(void *ud, ah_slice path, ah_visibility *out)
{
    const opening *o = ud;

    *out = AH_FULL;
    for (size_t i = 0; i < o->r->n_open; i++)
        if (ah_slice_eq(path, o->r->open[i]))
            return true;
    return ah_overridden_find(&o->d->now, path, out);
}

/* The system text as it is once the sections are open. */
static ah_status set_prompt(ah_disclosure *d, const ah_section_reading *r, ah_changes *out, ah_err *err)
{
    opening o = {d, r};
    ah_shown shown = {.find = find_opening, .ud = &o};
    ah_rendered *rendered = NULL;
    ah_status st = ah_binding_render(d->binding, &shown, &rendered, err);

    if (st == AH_OK)
        st = ah_disclosure_set_prompt(d, rendered, out, err);
    ah_rendered_unref(rendered);
    d->rewrote = true; /* true or not: who looks then looks at the text in force */
    return st;
}

static ah_status show(const ah_disclosure *d, const ah_section_reading *r, ah_changes *out, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < r->n_open && st == AH_OK; i++) {
        ah_visibility v = AH_SUMMARY;

        if (!ah_overridden_find((void *)&d->now, r->open[i], &v) || v != AH_FULL)
            st = ah_changes_show(out, r->open[i], err);
    }
    return st;
}

/* Where the run's adapter takes no tools in mid-conversation, a new system text tells of them. */
static ah_status expand(ah_disclosure *d, const ah_run *run, ah_slice key, const ah_section_reading *r,
                        ah_changes *out, ah_err *err)
{
    bool restarts = ah_run_adapter(run)->tool_change_mode == AH_TOOLS_RESTART;
    ah_text *by = NULL;
    ah_status st = provenance(d, key, r, &by, err);

    for (size_t i = 0; i < r->n_tools && st == AH_OK; i++)
        st = ah_changes_add(out, r->tool[i].tool, by, err);
    ah_text_unref(by);
    if (st == AH_OK)
        st = show(d, r, out, err);
    return st == AH_OK && restarts ? set_prompt(d, r, out, err) : st;
}

static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    ah_disclosure *d = ud;
    ah_anchor *caller = ah_run_caller(run);
    ah_section_reading r = {0};
    ah_status st;
    ah_buf key;

    if (!call->success || !ah_slice_is(ah_text_slice(call->slot->name), AH_READ_SECTION))
        return AH_OK;
    ah_buf_init(&key, d->mem, MAX_ANSWER);
    st = read_key(d, call, caller ? caller->overlay : NULL, &key, &r, err);
    if (st == AH_OK && r.n_open)
        st = expand(d, run, ah_buf_slice(&key), &r, out, err);
    ah_section_reading_clear(&r);
    ah_buf_clear(&key);
    return st;
}

ah_strategy ah_disclosure_strategy(ah_disclosure *d)
{
    static const struct ah_strategy_vt strategy_vt = {.after = after};

    return (ah_strategy){.name = AH_READ_SECTION, .vt = &strategy_vt, .ud = d};
}
