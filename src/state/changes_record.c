/* The changes that a call asked for as JSON, for its record, and back. A tool is written down by
 * its specification: the process that goes on finds the handler by name, or declares it as stale.
 */
#include "base/json.h"
#include "state/changes.h"

enum { MAX_ENTRY = 256 << 20 };

static const char *const kinds[] = {
    [AH_CHANGE_ADD] = "add",           [AH_CHANGE_REPLACE] = "replace",
    [AH_CHANGE_REMOVE] = "remove",     [AH_CHANGE_NOTE] = "note",
    [AH_CHANGE_PROMPT] = "prompt",     [AH_CHANGE_STATE] = "state",
    [AH_CHANGE_SETTINGS] = "settings", [AH_CHANGE_SHOW] = "show",
    [AH_CHANGE_HIDE] = "hide",         [AH_CHANGE_PICK] = "pick",
    [AH_CHANGE_UNPICK] = "unpick"};

static bool is_tool(ah_change_kind k)
{
    return k == AH_CHANGE_ADD || k == AH_CHANGE_REPLACE;
}

static bool is_entry(ah_change_kind k)
{
    return k == AH_CHANGE_STATE || k == AH_CHANGE_SETTINGS;
}

/* -- to text ---------------------------------------------------------------------------------- */

static void put_change(const ah_change *c, ah_buf *out)
{
    ah_buf_fmt(out, "{\"kind\":\"%s\"", kinds[c->kind]);
    if (is_tool(c->kind))
        ah_json_add(out, "tool", ah_text_slice(c->tool->spec));
    else if (is_entry(c->kind))
        ah_json_add(out, "entry", ah_text_slice(c->text));
    else
        ah_json_add_string(out, "text", ah_text_slice(c->text));
    ah_json_add(out, "by", ah_text_slice(c->by));
    if (c->full)
        ah_buf_str(out, ",\"full\":true");
    if (c->yields)
        ah_buf_str(out, ",\"yields\":true");
    if (c->ours)
        ah_buf_str(out, ",\"ours\":true");
    ah_buf_char(out, '}');
}

void ah_changes_print(const ah_changes *c, ah_buf *out)
{
    ah_buf_char(out, '[');
    for (size_t i = 0; i < c->n; i++) {
        if (i)
            ah_buf_char(out, ',');
        put_change(&c->item[i], out);
    }
    ah_buf_char(out, ']');
}

/* -- and back --------------------------------------------------------------------------------- */

typedef struct restaging {
    ah_changes *c;
    ah_changes_find find;
    void *ud;
} restaging;

/* Slices with .p NULL are missing. */
typedef struct members {
    ah_slice kind, tool, entry, text, by, full, yields, ours;
} members;

static ah_status damaged(ah_err *err, const char *what)
{
    return ah_err_set(err, AH_STORE,
                      "the record of what a call asked for is damaged: %s is wrong or missing; "
                      "open another conversation, or rewind to before this call",
                      what);
}

static bool is_true(ah_slice json)
{
    return ah_json_kind_of(json) == AH_JSON_TRUE;
}

/* Checks that the text `before`, json, `after` is an entry of this kind. */
static ah_status check_entry(const ah_mem *mem, const char *before, ah_slice json,
                             const char *after, ah_entry_kind kind, ah_err *err)
{
    ah_transcript *t = NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, mem, MAX_ENTRY);
    ah_buf_fmt(&b, "{\"agenthost_transcript\":1,\"entries\":[%s", before);
    ah_buf_put(&b, json);
    ah_buf_fmt(&b, "%s]}", after);
    st = ah_buf_ok(&b) ? ah_transcript_read(mem, ah_buf_slice(&b), &t, err)
                       : ah_buf_error(&b, "an entry", err);
    if (st == AH_OK && (t->n != 1 || t->entry[0].kind != kind))
        st = AH_USAGE;
    if (st == AH_USAGE)
        st = damaged(err, "`tool` or `entry`");
    ah_transcript_unref(t);
    ah_buf_clear(&b);
    return st;
}

/* Returns the tool under its name, if its specification is the recorded one, else a stale tool. */
static ah_status find_tool(const restaging *r, ah_slice spec, ah_tool **out, ah_err *err)
{
    ah_slice name = ah_json_inside(ah_json_member(spec, "name"));
    ah_tool *there = r->find ? r->find(r->ud, name) : NULL;
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, r->c->mem, MAX_ENTRY);
    st = ah_json_canon(r->c->mem, spec, &b);
    if (st != AH_OK)
        st = st == AH_NOMEM ? ah_err_nomem(err) : ah_buf_error(&b, "a tool", err);
    if (st == AH_OK && there && !there->stale &&
        ah_slice_eq(ah_text_slice(there->spec), ah_buf_slice(&b)))
        *out = ah_tool_ref(there);
    else if (st == AH_OK)
        st = ah_tool_stale(r->c->mem, ah_buf_slice(&b), out, err);
    ah_buf_clear(&b);
    return st;
}

static ah_status read_tool(const restaging *r, const members *m, ah_change_kind kind, ah_text *by,
                           ah_err *err)
{
    ah_tool *tool = NULL;
    ah_status st = check_entry(r->c->mem, "{\"type\":\"tools_added\",\"tools\":[", m->tool, "]}",
                               AH_ENTRY_TOOLS_ADDED, err);

    if (st == AH_OK)
        st = find_tool(r, m->tool, &tool, err);
    if (st == AH_OK)
        st = (kind == AH_CHANGE_ADD ? ah_changes_add : ah_changes_replace)(r->c, tool, by, err);
    ah_tool_unref(tool);
    return st;
}

static ah_status add_text(const restaging *r, ah_change_kind kind, ah_slice text, ah_text *by,
                          ah_err *err)
{
    switch (kind) {
    case AH_CHANGE_REMOVE:
        return ah_changes_remove(r->c, text, err);
    case AH_CHANGE_NOTE:
        return ah_changes_note(r->c, text, err);
    case AH_CHANGE_PROMPT:
        return ah_changes_prompt(r->c, text, by, err);
    case AH_CHANGE_SHOW:
        return ah_changes_show(r->c, text, err);
    case AH_CHANGE_HIDE:
        return ah_changes_hide(r->c, text, err);
    default:
        return ah_changes_pick(r->c, kind == AH_CHANGE_PICK, text, err);
    }
}

static ah_status read_text(const restaging *r, const members *m, ah_change_kind kind, ah_text *by,
                           ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, r->c->mem, m->text.n);
    if (!ah_json_string(m->text, &b))
        st = damaged(err, "`text`");
    else if (!ah_buf_ok(&b))
        st = ah_buf_error(&b, "a text", err);
    else
        st = add_text(r, kind, ah_buf_slice(&b), by, err);
    ah_buf_clear(&b);
    return st;
}

/* ah_changes_settings keeps an entry of any kind as it is. */
static ah_status read_entry(const restaging *r, const members *m, ah_change_kind kind, ah_err *err)
{
    ah_status st =
        check_entry(r->c->mem, "", m->entry, "",
                    kind == AH_CHANGE_STATE ? AH_ENTRY_STRATEGY : AH_ENTRY_SETTINGS, err);

    if (st == AH_OK)
        st = ah_changes_settings(r->c, m->entry, err);
    if (st == AH_OK)
        r->c->item[r->c->n - 1].kind = kind;
    return st;
}

static ah_status read_members(const restaging *r, const members *m, ah_change_kind kind,
                              ah_err *err)
{
    size_t n = r->c->n;
    ah_text *by = NULL;
    ah_status st;

    if (m->by.p && ah_json_kind_of(m->by) != AH_JSON_OBJECT)
        return damaged(err, "`by`");
    if (m->by.p && !(by = ah_text_new(r->c->mem, m->by)))
        return ah_err_nomem(err);
    if (is_tool(kind) && m->tool.p)
        st = read_tool(r, m, kind, by, err);
    else if (is_entry(kind) && m->entry.p)
        st = read_entry(r, m, kind, err);
    else if (!is_tool(kind) && !is_entry(kind) && m->text.p)
        st = read_text(r, m, kind, by, err);
    else
        st = damaged(err, "the subject of a change");
    if (st == AH_OK && r->c->n == n + 1) {
        r->c->item[n].full = is_true(m->full);
        r->c->item[n].yields = is_true(m->yields);
        r->c->item[n].ours = is_true(m->ours) && kind == AH_CHANGE_REMOVE;
    }
    ah_text_unref(by);
    return st;
}

static ah_status read_change(const restaging *r, ah_slice json, ah_err *err)
{
    members m = {0};
    const ah_json_slot want[] = {{"kind", &m.kind},     {"tool", &m.tool}, {"entry", &m.entry},
                                 {"text", &m.text},     {"by", &m.by},     {"full", &m.full},
                                 {"yields", &m.yields}, {"ours", &m.ours}};
    ah_change_kind kind = AH_CHANGE_ADD;

    if (!ah_json_members(json, want, sizeof want / sizeof *want) || !m.kind.p)
        return damaged(err, "a change");
    while (kind <= AH_CHANGE_UNPICK && !ah_json_string_is(m.kind, kinds[kind]))
        kind++;
    return kind <= AH_CHANGE_UNPICK ? read_members(r, &m, kind, err) : damaged(err, "`kind`");
}

ah_status ah_changes_restage(ah_changes *c, ah_slice list, ah_changes_find find, void *ud,
                             ah_err *err)
{
    restaging r = {c, find, ud};
    ah_json_reader it = ah_json_read(list);
    ah_json_token t = ah_json_next(&it);
    ah_status st = t.kind == AH_JSON_ARRAY ? AH_OK : damaged(err, "`changes`");

    t = ah_json_next(&it);
    for (; st == AH_OK && t.kind != AH_JSON_ARRAY_END; t = ah_json_next(&it))
        st = read_change(&r, ah_json_skip(&it, t), err);
    if (st != AH_OK)
        ah_changes_clear(c);
    return st;
}
