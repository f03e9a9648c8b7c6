/* A list in the order of the requests. run/inject.c decides whether the changes are possible,
 * and makes them. */
#include "state/changes.h"

enum { MAX_STATE_HEAD = 256 }; /* bytes of an entry besides the state */

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

static ah_status put_tool(ah_changes *c, ah_change_kind kind, ah_tool *tool, ah_text *by,
                          ah_err *err)
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

ah_status ah_changes_bring(ah_changes *c, const ah_registry *r, ah_tool *tool, ah_text *by,
                           ah_err *err)
{
    const ah_tool *there = ah_registry_find(r, ah_text_slice(tool->name));

    return put_tool(c, there && there->stale ? AH_CHANGE_REPLACE : AH_CHANGE_ADD, tool, by, err);
}

ah_status ah_changes_remove(ah_changes *c, ah_slice name, ah_err *err)
{
    return put_text(c, AH_CHANGE_REMOVE, name, err);
}

ah_status ah_changes_note(ah_changes *c, ah_slice text, ah_err *err)
{
    return put_text(c, AH_CHANGE_NOTE, text, err);
}

ah_status ah_changes_prompt(ah_changes *c, ah_slice text, ah_text *by, ah_err *err)
{
    ah_status st = put_text(c, AH_CHANGE_PROMPT, text, err);

    if (st == AH_OK)
        c->item[c->n - 1].by = ah_text_ref(by);
    return st;
}

ah_status ah_changes_state(ah_changes *c, const char *strategy, ah_slice state, ah_err *err)
{
    ah_status st;
    ah_buf b;

    ah_buf_init(&b, c->mem, state.n + MAX_STATE_HEAD);
    ah_buf_fmt(&b, "{\"type\":\"strategy\",\"name\":\"%s\",\"state\":", strategy);
    ah_buf_put(&b, state);
    ah_buf_char(&b, '}');
    st = ah_buf_ok(&b) ? put_text(c, AH_CHANGE_STATE, ah_buf_slice(&b), err)
                       : ah_buf_error(&b, "the state of a strategy", err);
    ah_buf_clear(&b);
    return st;
}

ah_status ah_changes_settings(ah_changes *c, ah_slice entry, ah_err *err)
{
    return put_text(c, AH_CHANGE_SETTINGS, entry, err);
}

ah_status ah_changes_show(ah_changes *c, ah_slice path, ah_err *err)
{
    return put_text(c, AH_CHANGE_SHOW, path, err);
}

ah_status ah_changes_hide(ah_changes *c, ah_slice path, ah_err *err)
{
    return put_text(c, AH_CHANGE_HIDE, path, err);
}

/* `text` is the name, `by` the origin: docs/reference/transcript.md. */
ah_status ah_changes_pick(ah_changes *c, bool picked, ah_slice name, ah_err *err)
{
    ah_status st = put_text(c, picked ? AH_CHANGE_PICK : AH_CHANGE_UNPICK, name, err);
    ah_text **by = st == AH_OK ? &c->item[c->n - 1].by : NULL;

    if (by && !(*by = ah_text_new(
                    c->mem, ah_slice_of(picked ? "{\"picked\":true}" : "{\"picked\":false}"))))
        st = ah_err_nomem(err);
    return st;
}

static bool is_new(const ah_change *item, const ah_registry *r)
{
    return !ah_registry_find(r, ah_text_slice(item->tool->name));
}

bool ah_changes_fit(ah_changes *c, const ah_registry *r, size_t most)
{
    size_t taken = r->live, n = 0, before = c->n;

    for (size_t i = 0; i < c->n; i++)
        taken += !c->item[i].yields && is_new(&c->item[i], r);
    for (size_t i = 0; i < before; i++) {
        ah_change item = c->item[i];
        bool wants = item.yields && is_new(&item, r);

        if (!wants || taken < most) {
            taken += wants;
            c->item[n++] = item;
            continue;
        }
        ah_tool_unref(item.tool);
        ah_text_unref(item.by);
    }
    c->n = n;
    return n < before;
}

ah_status ah_changes_rebind(ah_changes *c, ah_registry *r, bool brief, ah_err *err)
{
    ah_status st = AH_OK;
    size_t n = 0;

    for (size_t i = 0; i < c->n; i++) {
        ah_change item = c->item[i];
        const ah_tool *there =
            item.tool ? ah_registry_find(r, ah_text_slice(item.tool->name)) : NULL;
        bool bound = false;

        if (there && there->stale && st == AH_OK)
            st = ah_registry_rebind(r, item.tool, brief, &bound, err);
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
