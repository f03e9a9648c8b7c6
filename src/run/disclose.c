/* read_section answers while its handler is being started: it waits for nothing. */
#include "run/disclose.h"

#include "run/tell.h"

enum { MAX_ANSWER = 64 << 20 };

/* -- open sections ----------------------------------------------------------------- */

void ah_disclosure_init(ah_disclosure *d, ah_binding *binding, ah_session *session)
{
    *d = (ah_disclosure){.mem = ah_binding_mem(binding),
                         .binding = ah_binding_ref(binding),
                         .session = ah_session_ref(session)};
    ah_overrides_init(&d->now, d->mem);
    ah_overrides_init(&d->since, d->mem);
}

void ah_disclosure_clear(ah_disclosure *d)
{
    if (!d->mem)
        return;
    ah_overrides_clear(&d->now);
    ah_overrides_clear(&d->since);
    ah_rendered_prompt_unref(d->here);
    ah_free(d->mem, d->asked);
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

void ah_disclosure_begin(ah_disclosure *d, ah_rendered_prompt *now)
{
    ah_rendered_prompt *before = d->here;

    d->here = ah_rendered_prompt_ref(now);
    ah_rendered_prompt_unref(before);
    ah_overrides_clear(&d->since);
    ah_overrides_init(&d->since, d->mem);
    d->closed = false;
}

ah_status ah_disclosure_copy(ah_disclosure *d, const ah_disclosure *from, ah_err *err)
{
    ah_status st = AH_OK;

    d->before = ah_text_ref(from->before);
    d->after = ah_text_ref(from->after);
    d->rewrote = from->rewrote;
    d->closed = from->closed;
    d->here = from->here ? ah_rendered_prompt_ref(from->here) : NULL;
    for (size_t i = 0; i < from->since.n && st == AH_OK; i++)
        st = ah_overrides_put(&d->since, from->since.item[i].path, from->since.item[i].visibility,
                              err);
    return st;
}

ah_status ah_disclosure_look(ah_disclosure *d, const ah_overlay *o, ah_override_source *out,
                             ah_err *err)
{
    *out = (ah_override_source){.find = ah_overrides_find, .ud = &d->now};
    return ah_overrides_read(&d->now, d->session, o, err);
}

/* -- sections and tools of the conversation ------------------------------------------------ */

/* True if a section inside a closed section becomes full when that is opened and the session has no
 * other override for it. */
static bool opens_with(const ah_disclosure *d, ah_slice path)
{
    ah_visibility v = AH_FULL;

    ah_overrides_find((void *)&d->now, path, &v);
    return v == AH_FULL && ah_rendered_prompt_opens(d->here, path);
}

/* For an ah_override_source; ud is an ah_disclosure. A section that is off counts as summarised. */
static bool find_here(void *ud, ah_slice path, ah_visibility *out)
{
    const ah_disclosure *d = ud;

    if (ah_overrides_find((void *)&d->since, path, out) || !d->here)
        return d->here != NULL;
    *out = ah_rendered_prompt_shows(d->here, path) || opens_with(d, path) ? AH_FULL : AH_SUMMARY;
    return true;
}

ah_status ah_disclosure_given(ah_disclosure *d, ah_rendered_prompt *begun, ah_rendered_prompt **out,
                              ah_err *err)
{
    ah_override_source shown = {find_here, d};

    if (d->closed)
        return ah_binding_tools(d->binding, &shown, out, err);
    *out = ah_rendered_prompt_ref(begun);
    return AH_OK;
}

/* A conversation, and its tools. */
typedef struct reader {
    ah_disclosure *d;
    const ah_registry *tools;
} reader;

/* True if all tools of the section were offered, even if some were withdrawn since. Some may not
 * have fitted in. */
static bool was_given(const reader *r, ah_slice path)
{
    const ah_section *s = ah_prompt_section(ah_binding_prompt(r->d->binding), path);
    bool all = true;

    for (size_t i = 0; s && all && i < s->n_tools; i++) {
        ah_slice name = ah_text_slice(s->tool[i]->name);

        all = ah_registry_find(r->tools, name) || ah_registry_had(r->tools, name, NULL);
    }
    return all;
}

static bool has_open(void *ud, ah_slice path)
{
    ah_visibility v;

    return (!find_here(((reader *)ud)->d, path, &v) || v == AH_FULL) && was_given(ud, path);
}

static bool has_tool(void *ud, const ah_tool *tool)
{
    const ah_tool *there = ah_registry_find(((const reader *)ud)->tools, ah_text_slice(tool->name));

    return there && (there == tool || there->full == tool);
}

/* Reads a section as its run sees it, with the overrides seen from the overlay. */
static ah_status read_path(ah_disclosure *d, const ah_run *run, const ah_overlay *o, ah_slice path,
                           ah_section_content *out, ah_err *err)
{
    reader r = {d, ah_run_cfg(run)->registry};
    const ah_section_reader had = {.open = has_open, .offers = has_tool, .ud = &r};
    ah_override_source shown;
    ah_status st = ah_disclosure_look(d, o, &shown, err);

    return st == AH_OK ? ah_binding_read(d->binding, &shown, &had, path, out, err) : st;
}

/* Notes the effect of the pending changes. The path is the prompt's own. */
static ah_status ask(ah_disclosure *d, ah_slice path, ah_visibility v, ah_err *err)
{
    ah_override *item = ah_grow(d->mem, d->asked, &d->cap_asked, d->n_asked + 1, sizeof *item);

    if (!item)
        return ah_err_nomem(err);
    d->asked = item;
    item[d->n_asked++] = (ah_override){path, v};
    return AH_OK;
}

/* Out of memory, a section may later be read again as if it were unread, which is harmless. */
void ah_disclosure_made(ah_disclosure *d)
{
    for (size_t i = 0; i < d->n_asked; i++) {
        ah_overrides_put(&d->since, d->asked[i].path, d->asked[i].visibility, NULL);
        d->closed = d->closed || d->asked[i].visibility == AH_SUMMARY;
    }
    d->n_asked = 0;
}

/* -- sections opened by reading ----------------------------------------------------------- */

static ah_status put_list(ah_overrides *v, ah_slice list, ah_err *err)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);
    ah_status st = AH_OK;

    if (t.kind != AH_JSON_ARRAY)
        return AH_OK;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING && st == AH_OK; t = ah_json_next(&r))
        /* Paths contain no character that JSON escapes. */
        st = ah_overrides_put(v, t.raw, AH_FULL, err);
    return st;
}

ah_status ah_disclosure_opened(ah_overrides *v, const ah_transcript *t, size_t since, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = since; i < t->n && st == AH_OK; i++)
        if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED)
            st = put_list(
                v, ah_json_member(ah_json_member(ah_text_slice(t->entry[i].json), "by"), "open"),
                err);
    return st;
}

ah_status ah_disclosure_replay(ah_disclosure *d, const ah_transcript *t, ah_overlay *o, ah_err *err)
{
    ah_override_source shown;
    ah_overrides opened;
    ah_visibility v;
    ah_status st;

    ah_overrides_init(&opened, d->mem);
    st = ah_disclosure_look(d, o, &shown, err);
    if (st == AH_OK)
        st = ah_disclosure_opened(&opened, t, 0, err);
    for (size_t i = 0; i < opened.n && st == AH_OK; i++)
        if (!shown.find(shown.ud, opened.item[i].path, &v))
            st = ah_visibility_set(d->session, o, opened.item[i].path, AH_FULL, err);
    ah_overrides_clear(&opened);
    return st;
}

size_t ah_disclosure_text_at(const ah_transcript *t)
{
    size_t at = t->n;

    while (at > 0 && (t->entry[at - 1].kind != AH_ENTRY_PROMPT ||
                      ah_json_member(ah_text_slice(t->entry[at - 1].json), "by").p))
        at--;
    return at;
}

/* -- the system text ------------------------------------------------------------------------ */

/* The open sections except those that were opened by reading. */
typedef struct unread {
    const ah_disclosure *d;
    ah_overrides opened;
} unread;

static bool find_unread(void *ud, ah_slice path, ah_visibility *out)
{
    unread *u = ud;
    ah_visibility read;

    if (!ah_overrides_find((void *)&u->d->now, path, out))
        return false;
    return *out != AH_FULL || !ah_overrides_find(&u->opened, path, &read);
}

ah_status ah_disclosure_told(ah_disclosure *d, const ah_transcript *t, size_t since,
                             ah_rendered_prompt *now, ah_rendered_prompt *was,
                             ah_rendered_prompt **out, ah_err *err)
{
    unread u = {.d = d};
    ah_override_source shown = {.find = find_unread, .ud = &u};
    ah_status st;

    ah_overrides_init(&u.opened, d->mem);
    st = ah_disclosure_opened(&u.opened, t, since, err);
    if (st == AH_OK && u.opened.n)
        st = ah_binding_render_again(d->binding, &shown, was, out, err);
    else if (st == AH_OK)
        *out = ah_rendered_prompt_ref(now);
    ah_overrides_clear(&u.opened);
    return st;
}

static void put_block(ah_buf *out, ah_slice text)
{
    if (text.n && out->len)
        ah_buf_str(out, "\n\n");
    ah_buf_put(out, text);
}

void ah_disclosure_text(const ah_disclosure *d, const ah_rendered_prompt *r, ah_buf *out)
{
    put_block(out, ah_text_slice(d->before));
    put_block(out, ah_text_slice(r->text));
    put_block(out, ah_text_slice(d->after));
}

ah_status ah_disclosure_set_prompt(const ah_disclosure *d, const ah_rendered_prompt *r,
                                   ah_changes *out, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, d->mem, MAX_ANSWER);
    ah_disclosure_text(d, r, &b);
    st = ah_buf_ok(&b) ? ah_changes_prompt(out, ah_buf_slice(&b), NULL, err)
                       : ah_buf_error(&b, "the system text", err);
    ah_buf_clear(&b);
    return st;
}

/* -- read_section ------------------------------------------------------------------------ */

static void release(void *p)
{
    (void)p; /* the owner frees the disclosure */
}

/* The texts of seed 000, Handler Behavior and Error Handling. */
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
static void put_value(const ah_section_content *r, ah_buf *out)
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

/* The model gets the message and the content; strategies see the value. */
static void answer(ah_call *call, const ah_section_content *r, ah_slice key)
{
    ah_outcome o = {
        .failure = AH_FAILED_SAID, .success = r->kind != AH_READ_UNKNOWN, .whole = true};
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

/* Reads the section that the call names, as seen from the overlay. */
static ah_status read_key(ah_disclosure *d, const ah_call *call, const ah_overlay *o, ah_buf *key,
                          ah_section_content *out, ah_err *err)
{
    ah_json_string(ah_json_member(ah_text_slice(call->args), "section_key"), key);
    return ah_buf_ok(key) ? read_path(d, call->run, o, ah_buf_slice(key), out, err)
                          : ah_err_nomem(err);
}

static void start(const ah_tool *tool, ah_call *call)
{
    ah_disclosure *d = tool->handler.p;
    ah_section_content r = {0};
    ah_status st;
    ah_err err;
    ah_buf key;

    ah_buf_init(&key, tool->mem, MAX_ANSWER);
    st = read_key(d, call, &call->overlay, &key, &r, &err);
    if (st == AH_OK)
        answer(call, &r, ah_buf_slice(&key));
    else
        fail(call, &err);
    ah_section_content_clear(&r);
    ah_buf_clear(&key);
}

static const ah_tool_vt vt = {.start = start};
static const struct ah_value_vt reader_vt = {.release = release};

ah_status ah_read_section_tool(ah_disclosure *d, ah_tool **out, ah_err *err)
{
    static const char schema[] =
        "{\"additionalProperties\":false,\"properties\":{\"section_key\":{\"description\":\"The "
        "key that "
        "the summary "
        "names.\",\"type\":\"string\"}},\"required\":[\"section_key\"],\"type\":\"object\"}";
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

/* {"section":key,"open":[paths]}: the origin of the tools, and what a loaded conversation opens. */
static ah_status provenance(const ah_disclosure *d, ah_slice key, const ah_section_content *r,
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

/* As find_here, with the pending changes applied. */
static bool find_asked(void *ud, ah_slice path, ah_visibility *out)
{
    const ah_disclosure *d = ud;

    for (size_t i = d->n_asked; i > 0; i--)
        if (ah_slice_eq(path, d->asked[i - 1].path)) {
            *out = d->asked[i - 1].visibility;
            return true;
        }
    return find_here(ud, path, out);
}

/* True if a strategy has set the latest system text. That text is kept: the tool's result has shown
 * the section to the model. */
static bool is_replaced(const ah_transcript *t)
{
    ah_slice last = ah_transcript_last(t, AH_ENTRY_PROMPT);

    for (size_t i = 0; i < t->n_staged; i++)
        if (t->staged[i].kind == AH_ENTRY_PROMPT)
            last = ah_text_slice(t->staged[i].json);
    return ah_json_member(last, "by").p != NULL;
}

/* Renders the prompt as this conversation has it: a section that only the session opened has no
 * tools here. */
ah_status ah_disclosure_retell(ah_disclosure *d, ah_run *run, ah_changes *out, ah_err *err)
{
    ah_override_source shown = {.find = find_asked, .ud = d};
    ah_rendered_prompt *rendered = NULL;
    ah_status st;

    if (is_replaced(ah_run_cfg(run)->transcript))
        return AH_OK;
    st = ah_binding_render(d->binding, &shown, &rendered, err);
    if (st == AH_OK)
        st = ah_disclosure_set_prompt(d, rendered, out, err);
    ah_rendered_prompt_unref(rendered);
    d->rewrote = true; /* set even on failure: its reader then compares with the text in force */
    return st;
}

static ah_status show(ah_disclosure *d, const ah_section_content *r, ah_changes *out, ah_err *err)
{
    ah_status st = AH_OK;

    for (size_t i = 0; i < r->n_open && st == AH_OK; i++) {
        ah_visibility v = AH_SUMMARY;

        if (!ah_overrides_find(&d->now, r->open[i], &v) || v != AH_FULL)
            st = ah_changes_show(out, r->open[i], err);
        if (st == AH_OK)
            st = ask(d, r->open[i], AH_FULL, err);
    }
    return st;
}

static ah_status expand(ah_disclosure *d, const ah_run *run, ah_slice key,
                        const ah_section_content *r, ah_changes *out, ah_err *err)
{
    ah_text *by = NULL;
    ah_status st = provenance(d, key, r, &by, err);

    for (size_t i = 0; i < r->n_tools && st == AH_OK; i++)
        st = ah_changes_bring(out, ah_run_cfg(run)->registry, r->tool[i].tool, by, err);
    ah_text_unref(by);
    return st == AH_OK ? show(d, r, out, err) : st;
}

static bool restarts(const ah_run *run)
{
    return ah_run_cfg(run)->adapter->tool_change_mode == AH_TOOLS_RESTART;
}

static const ah_overlay *around(const ah_run *run)
{
    const ah_anchor *caller = ah_run_cfg(run)->caller;

    return caller ? caller->overlay : NULL;
}

/* If the run's adapter takes no tools in mid-conversation, a new system text names them. */
static ah_status after(void *ud, ah_run *run, const ah_call *call, ah_changes *out, ah_err *err)
{
    ah_disclosure *d = ud;
    ah_section_content r = {0};
    ah_status st;
    ah_buf key;

    d->n_asked = 0;
    if (!call->success || !ah_slice_is(ah_text_slice(call->slot->name), AH_READ_SECTION))
        return AH_OK;
    ah_buf_init(&key, d->mem, MAX_ANSWER);
    st = read_key(d, call, around(run), &key, &r, err);
    if (st == AH_OK && r.n_open)
        st = expand(d, run, ah_buf_slice(&key), &r, out, err);
    if (st == AH_OK && r.n_tools && restarts(run))
        st = ah_disclosure_retell(d, run, out, err);
    ah_section_content_clear(&r);
    ah_buf_clear(&key);
    return st;
}

static void made(void *ud)
{
    ah_disclosure_made(ud);
}

ah_strategy ah_disclosure_strategy(ah_disclosure *d)
{
    static const struct ah_strategy_vt strategy_vt = {.after = after, .made = made};

    return (ah_strategy){.name = AH_READ_SECTION, .vt = &strategy_vt, .ud = d};
}

/* -- requests of tools ----------------------------------------------------------------------- */

static void put_words(const ah_section_content *r, ah_slice path, ah_buf *words)
{
    if (r->kind == AH_READ_EXPANDED)
        return;
    ah_buf_str(words, "\n\n");
    put_message(r->kind, path, words);
    if (r->kind == AH_READ_CONTENT)
        put_block(words, ah_buf_slice(&r->content));
}

/* The session records the path itself, even if there is nothing to read. */
static ah_status open_for(ah_disclosure *d, ah_run *run, ah_slice path, ah_changes *out,
                          ah_buf *words, ah_err *err)
{
    ah_slice own = ah_prompt_path(ah_binding_prompt(d->binding), path);
    ah_section_content r = {0};
    ah_status st = read_path(d, run, around(run), path, &r, err);

    if (st == AH_OK)
        put_words(&r, path, words);
    if (st == AH_OK && r.n_open)
        st = expand(d, run, path, &r, out, err);
    if (st == AH_OK && own.p)
        st = ask(d, own, AH_FULL, err);
    if (st == AH_OK)
        st = ah_changes_show(out, path, err);
    ah_section_content_clear(&r);
    return st;
}

/* Adds the removal of tools that are in `was` but no longer in `now`. */
static ah_status remove_gone(ah_disclosure *d, const ah_run *run, const ah_rendered_prompt *was,
                             const ah_rendered_prompt *now, ah_changes *out, ah_err *err)
{
    reader r = {d, ah_run_cfg(run)->registry};
    ah_status st = AH_OK;

    for (size_t i = 0; i < was->n_tools && st == AH_OK; i++)
        if (!ah_rendered_prompt_has(now, was->tool[i].tool) && has_tool(&r, was->tool[i].tool))
            st = ah_changes_remove(out, ah_text_slice(was->tool[i].tool->name), err);
    return st;
}

static ah_status close_for(ah_disclosure *d, ah_run *run, ah_slice path, ah_changes *out,
                           ah_err *err)
{
    ah_override_source before = {find_here, d}, then = {find_asked, d};
    ah_slice own = ah_prompt_path(ah_binding_prompt(d->binding), path);
    ah_rendered_prompt *was = NULL, *now = NULL;
    ah_status st = ah_changes_hide(out, path, err);

    if (st != AH_OK || !own.p)
        return st;
    if ((st = ah_binding_tools(d->binding, &before, &was, err)) == AH_OK &&
        (st = ask(d, own, AH_SUMMARY, err)) == AH_OK &&
        (st = ah_binding_tools(d->binding, &then, &now, err)) == AH_OK)
        st = remove_gone(d, run, was, now, out, err);
    ah_rendered_prompt_unref(was);
    ah_rendered_prompt_unref(now);
    return st;
}

ah_status ah_disclosure_request(ah_disclosure *d, ah_run *run, ah_slice path, ah_visibility v,
                                ah_changes *out, ah_buf *words, ah_err *err)
{
    if (d)
        d->n_asked = 0;
    if (d && v == AH_FULL)
        return open_for(d, run, path, out, words, err);
    if (d)
        return close_for(d, run, path, out, err);
    return v == AH_FULL ? ah_changes_show(out, path, err) : ah_changes_hide(out, path, err);
}
