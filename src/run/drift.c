/* Compares specifications only, so that the tools of a loaded conversation need nothing else.
 * run/inject.c calls this when a definition meets a stale one. */
#include "run/drift.h"

#include "model/tool_spec.h"
#include "run/tell.h"

enum { MAX_LIST = 1 << 10 };

/* The full specification, also for a tool that is declared in brief. */
static ah_slice definition(const ah_tool *t)
{
    ah_slice spec = ah_text_slice(t->spec), full = ah_json_member(spec, "full");

    return full.p ? full : spec;
}

/* True if the brief descriptions differ. */
static bool brief_differs(const ah_tool *stale, const ah_tool *now)
{
    ah_slice spec = ah_text_slice(stale->spec);

    return ah_json_member(spec, "full").p &&
           !ah_json_string_is(ah_json_member(spec, "description"), now->brief->data);
}

unsigned ah_drift_of(const ah_tool *stale, const ah_tool *now)
{
    return ah_spec_differences(definition(stale), definition(now)) |
           (brief_differs(stale, now) ? AH_SPEC_DESCRIPTION : 0);
}

static bool was_untrusted(const ah_tool *stale)
{
    ah_slice said = ah_json_member(definition(stale), "annotations");

    return said.p && ah_slice_is(ah_json_member(said, "untrusted"), "true");
}

bool ah_drift_is_refused(ah_on_drift rule, const ah_tool *stale, const ah_tool *now)
{
    if (rule == AH_DRIFT_BY_ORIGIN)
        return now->says[AH_UNTRUSTED] == AH_YES || was_untrusted(stale);
    return rule == AH_DRIFT_REFUSE;
}

void ah_drift_put_warning(const ah_tool *now, unsigned set, bool refused, ah_buf *out)
{
    ah_buf_fmt(out, "The definition of tool '%s' has changed since this conversation was written (",
               now->name->data);
    ah_spec_put_differences(set, out);
    ah_buf_str(out, refused ? "): the old one stays declared, and a call of it runs nothing"
                            : "): the new one is declared from here on");
}

void ah_drift_put_list(unsigned set, ah_buf *out)
{
    ah_buf names;

    ah_buf_init(&names, out->mem, MAX_LIST);
    ah_spec_put_differences(set, &names);
    ah_buf_str(out, "[\"");
    for (size_t i = 0; i < names.len; i++) {
        if (names.data[i] == ',')
            ah_buf_str(out, "\",\"");
        else if (names.data[i] != ' ')
            ah_buf_char(out, names.data[i]);
    }
    ah_buf_str(out, "\"]");
    if (!ah_buf_ok(&names))
        out->status = names.status;
    ah_buf_clear(&names);
}

void ah_drift_put_answer(const ah_tool *stale, ah_buf *out)
{
    ah_buf_fmt(out,
               "Tool '%s' was not run: its definition has changed since it was declared here (",
               stale->name->data);
    ah_spec_put_differences(stale->drift, out);
    ah_buf_str(out, "), so it may not do what its description here says. Nothing was run.");
}

/* -- warnings kept for a run ------------------------------------------------------------- */

static void clear_item(struct ah_drift_warnings_item *it)
{
    ah_text_unref(it->message);
    ah_text_unref(it->tool_name);
    ah_text_unref(it->changed);
}

void ah_drift_warnings_add(ah_drift_warnings *u, ah_slice message, ah_slice tool_name,
                           ah_slice changed)
{
    struct ah_drift_warnings_item *grown =
        ah_grow(u->mem, u->item, &u->cap, u->n + 1, sizeof *grown);
    struct ah_drift_warnings_item it = {0};

    if (!grown)
        return;
    u->item = grown;
    it.message = ah_text_new(u->mem, message);
    it.tool_name = ah_text_new(u->mem, tool_name);
    it.changed = changed.p ? ah_text_new(u->mem, changed) : NULL;
    if (it.message && it.tool_name)
        u->item[u->n++] = it;
    else
        clear_item(&it);
}

void ah_drift_warnings_copy(ah_drift_warnings *u, const ah_drift_warnings *from)
{
    for (size_t i = 0; i < from->n; i++)
        ah_drift_warnings_add(u, ah_text_slice(from->item[i].message),
                              ah_text_slice(from->item[i].tool_name),
                              ah_text_slice(from->item[i].changed));
}

void ah_drift_warnings_clear(ah_drift_warnings *u)
{
    for (size_t i = 0; i < u->n; i++)
        clear_item(&u->item[i]);
    if (u->mem)
        ah_free(u->mem, u->item);
    *u = (ah_drift_warnings){.mem = u->mem};
}

/* Takes the list first: an observer may add to it. */
void ah_drift_warnings_tell(ah_drift_warnings *u, ah_run *run)
{
    ah_drift_warnings mine = *u;

    *u = (ah_drift_warnings){.mem = u->mem};
    for (size_t i = 0; i < mine.n; i++)
        ah_run_warn_of_tool(run, ah_text_slice(mine.item[i].message),
                            ah_text_slice(mine.item[i].tool_name),
                            ah_text_slice(mine.item[i].changed));
    ah_drift_warnings_clear(&mine);
}
