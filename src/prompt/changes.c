#include "prompt/changes.h"

void ah_changes_init(ah_changes *c, const ah_mem *mem)
{
    *c = (ah_changes){.mem = mem};
}

void ah_changes_clear(ah_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        ah_tool_unref(c->item[i].tool);
        ah_tool_unref(c->item[i].before);
        ah_text_unref(c->item[i].text);
        ah_text_unref(c->item[i].by);
    }
    if (c->mem)
        ah_free(c->mem, c->item);
    *c = (ah_changes){.mem = c->mem};
}

static ah_change *next(ah_changes *c, ah_change_kind kind)
{
    ah_change *item = ah_grow(c->mem, c->item, &c->cap, c->n + 1, sizeof *item);

    if (!item)
        return NULL;
    c->item = item;
    item[c->n] = (ah_change){.kind = kind};
    return &item[c->n++];
}

static ah_status put_tool(ah_changes *c, ah_change_kind kind, ah_tool *tool, ah_text *by, ah_err *err)
{
    ah_change *item = next(c, kind);

    if (!item)
        return ah_err_nomem(err);
    item->tool = ah_tool_ref(tool);
    item->by = ah_text_ref(by);
    return AH_OK;
}

static ah_status put_text(ah_changes *c, ah_change_kind kind, ah_slice text, ah_err *err)
{
    ah_text *t = ah_text_new(c->mem, text);
    ah_change *item = t ? next(c, kind) : NULL;

    if (!item) {
        ah_text_unref(t);
        return ah_err_nomem(err);
    }
    item->text = t;
    return AH_OK;
}

ah_status ah_changes_add(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err)
{
    return put_tool(c, AH_CHANGE_ADD, tool, by, err);
}

ah_status ah_changes_replace(ah_changes *c, ah_tool *tool, ah_text *by, ah_err *err)
{
    return put_tool(c, AH_CHANGE_REPLACE, tool, by, err);
}

ah_status ah_changes_remove(ah_changes *c, ah_slice name, ah_err *err)
{
    return put_text(c, AH_CHANGE_REMOVE, name, err);
}

ah_status ah_changes_note(ah_changes *c, ah_slice text, ah_err *err)
{
    return put_text(c, AH_CHANGE_NOTE, text, err);
}

ah_status ah_changes_prompt(ah_changes *c, ah_slice text, ah_err *err)
{
    return put_text(c, AH_CHANGE_PROMPT, text, err);
}

/* `text` as the name, and who says so: docs/transcript.md. */
ah_status ah_changes_pick(ah_changes *c, bool picked, ah_slice name, ah_err *err)
{
    ah_status st = put_text(c, picked ? AH_CHANGE_PICK : AH_CHANGE_UNPICK, name, err);
    ah_text **by = st == AH_OK ? &c->item[c->n - 1].by : NULL;

    if (by &&
        !(*by = ah_text_new(c->mem, ah_slice_of(picked ? "{\"picked\":true}" : "{\"picked\":false}"))))
        st = ah_err_nomem(err);
    return st;
}

static bool same_spec(const ah_tool *a, const ah_tool *b)
{
    return ah_slice_eq(ah_text_slice(a->spec), ah_text_slice(b->spec));
}

/* Puts the tool in the place of the stale one, where it is specified alike. */
static ah_status bind_again(ah_registry *r, ah_tool *given, const ah_tool *stale, bool brief,
                            bool *bound, ah_err *err)
{
    ah_tool *t = NULL;
    ah_status st = AH_OK;

    if (brief && !same_spec(given, stale))
        st = ah_tool_brief(given, &t, err);
    else
        t = ah_tool_ref(given);
    if (st != AH_OK)
        return st;
    *bound = same_spec(t, stale);
    if (*bound)
        ah_registry_put(r, t);
    ah_tool_unref(t);
    return AH_OK;
}

ah_status ah_changes_rebind(ah_changes *c, ah_registry *r, bool brief, ah_err *err)
{
    ah_status st = ah_registry_reserve(r, c->n, err);
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        ah_change item = c->item[i];
        const ah_tool *there = item.tool ? ah_registry_find(r, ah_text_slice(item.tool->name)) : NULL;
        bool bound = false;

        if (there && there->stale && st == AH_OK) {
            item.kind = AH_CHANGE_REPLACE; /* declared anew, where it has another definition */
            st = bind_again(r, item.tool, there, brief, &bound, err);
        }
        if (!bound) {
            c->item[n++] = item;
            continue;
        }
        ah_tool_unref(item.tool);
        ah_text_unref(item.by);
    }
    c->n = n;
    return st;
}
