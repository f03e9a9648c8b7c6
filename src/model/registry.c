/* An array in the order of declaration with an index of names. Changes of a turn are marked in
 * place, so that neither undoing nor settling needs a second list. */
#include "model/registry.h"

#include "model/tool_spec.h"

static ah_slice name_of(const void *registry, size_t at)
{
    return ah_text_slice(((const ah_registry *)registry)->slot[at].name);
}

void ah_registry_init(ah_registry *r, const ah_mem *mem)
{
    *r = (ah_registry){.mem = mem, .index = {.mem = mem, .name = name_of, .owner = r}};
}

void ah_registry_clear(ah_registry *r)
{
    for (size_t i = 0; i < r->n; i++) {
        ah_tool_unref(r->slot[i].tool);
        ah_tool_unref(r->slot[i].brief);
        ah_tool_unref(r->slot[i].before);
        ah_text_unref(r->slot[i].name);
        ah_text_unref(r->slot[i].gone);
    }
    if (r->mem) {
        ah_free(r->mem, r->slot);
        ah_index_clear(&r->index);
    }
    ah_registry_init(r, r->mem);
}

static ah_registry_slot *look_up(const ah_registry *r, ah_slice name)
{
    uint32_t at = ah_index_find(&r->index, name);

    return at == AH_INDEX_NONE ? NULL : &r->slot[at];
}

ah_tool *ah_registry_find(const ah_registry *r, ah_slice name)
{
    const ah_registry_slot *s = look_up(r, name);

    return s ? s->tool : NULL;
}

bool ah_registry_had(const ah_registry *r, ah_slice name, ah_slice *gone)
{
    const ah_registry_slot *s = look_up(r, name);

    if (gone)
        *gone = ah_text_slice(s ? s->gone : NULL);
    return s && !s->tool;
}

static ah_status reserve(ah_registry *r, size_t more, ah_err *err)
{
    ah_registry_slot *grown = ah_grow(r->mem, r->slot, &r->cap, r->n + more, sizeof *grown);

    if (grown)
        r->slot = grown;
    return (grown || !more) && ah_index_reserve(&r->index, more, r->n) ? AH_OK : ah_err_nomem(err);
}

static void forget_brief(ah_registry_slot *s)
{
    ah_tool_unref(s->brief);
    s->brief = NULL;
}

static ah_tool *unpicked(const ah_registry_slot *s)
{
    return s->brief ? s->brief : s->tool;
}

/* Called before the slot changes. */
static void keep(ah_registry *r, ah_registry_slot *s)
{
    if (s->open)
        return;
    s->open = true;
    s->before = ah_tool_ref(unpicked(s));
    r->n_open++;
}

void ah_registry_settle(ah_registry *r)
{
    for (size_t i = 0; i < r->n && r->n_open; i++) {
        ah_registry_slot *s = &r->slot[i];

        r->n_open -= s->open;
        ah_tool_unref(s->before);
        s->before = NULL;
        s->open = s->fresh = false;
    }
}

static void put(ah_registry *r, ah_registry_slot *s, ah_tool *tool)
{
    keep(r, s);
    r->live += s->tool ? 0 : 1;
    ah_tool_ref(tool);
    ah_tool_unref(s->tool);
    forget_brief(s);
    s->tool = tool;
}

/* Room is made here, because others may put tools between a reservation and its use. */
ah_status ah_registry_put(ah_registry *r, ah_tool *tool, ah_err *err)
{
    ah_registry_slot *s = look_up(r, ah_text_slice(tool->name));

    if (!s) {
        if (reserve(r, 1, err) != AH_OK)
            return err->status;
        s = &r->slot[r->n++];
        *s = (ah_registry_slot){.name = ah_text_ref(tool->name), .fresh = true};
        ah_index_put(&r->index, ah_text_slice(s->name), r->n - 1);
    }
    put(r, s, tool);
    return AH_OK;
}

ah_status ah_registry_add(ah_registry *r, ah_tool *tool, ah_err *err)
{
    const ah_tool *there = ah_registry_find(r, ah_text_slice(tool->name));

    return there ? ah_tool_twice(there, tool, err) : ah_registry_put(r, tool, err);
}

static bool same_spec(const ah_tool *a, const ah_tool *b)
{
    return ah_spec_differences(ah_text_slice(a->spec), ah_text_slice(b->spec)) == 0;
}

ah_status ah_registry_rebind(ah_registry *r, ah_tool *tool, bool brief, bool *bound, ah_err *err)
{
    ah_registry_slot *s = look_up(r, ah_text_slice(tool->name));
    const ah_tool *there = s ? unpicked(s) : NULL;
    ah_tool *t = NULL;
    ah_status st = AH_OK;

    *bound = false;
    if (!there)
        return AH_OK;
    if (brief && !same_spec(tool, there))
        st = ah_tool_brief(tool, &t, err);
    else
        t = ah_tool_ref(tool);
    if (st != AH_OK)
        return st;
    if ((*bound = same_spec(t, there))) {
        bool picked = s->brief != NULL;

        put(r, s, t);
        if (picked)
            ah_registry_pick(r, ah_text_slice(t->name));
    }
    ah_tool_unref(t);
    return AH_OK;
}

bool ah_registry_remove(ah_registry *r, ah_slice name)
{
    ah_registry_slot *s = look_up(r, name);

    if (!s || !s->tool)
        return false;
    keep(r, s);
    ah_text_set(&s->gone, ah_text_ref(s->tool->gone));
    ah_tool_unref(s->tool);
    s->tool = NULL;
    forget_brief(s);
    r->live--;
    return true;
}

bool ah_registry_pick(ah_registry *r, ah_slice name)
{
    ah_registry_slot *s = look_up(r, name);

    if (!s || !s->tool || !s->tool->full)
        return false;
    s->brief = s->tool;
    s->tool = ah_tool_ref(s->tool->full);
    return true;
}

bool ah_registry_unpick(ah_registry *r, ah_slice name)
{
    ah_registry_slot *s = look_up(r, name);

    if (!s || !s->brief)
        return false;
    ah_tool_unref(s->tool);
    s->tool = s->brief;
    s->brief = NULL;
    return true;
}

ah_status ah_registry_copy(ah_registry *dst, const ah_registry *src, ah_err *err)
{
    ah_status st = reserve(dst, src->n, err);

    for (size_t i = 0; i < src->n && st == AH_OK; i++) {
        const ah_registry_slot *s = &src->slot[i];
        ah_tool *tool = s->open ? s->before : unpicked(s);

        if (s->fresh)
            continue;
        dst->slot[dst->n++] = (ah_registry_slot){
            .name = ah_text_ref(s->name), .tool = ah_tool_ref(tool), .gone = ah_text_ref(s->gone)};
        ah_index_put(&dst->index, ah_text_slice(s->name), dst->n - 1);
        dst->live += tool != NULL;
    }
    return st;
}

ah_tool *ah_registry_next(const ah_registry *r, size_t *at)
{
    while (*at < r->n) {
        ah_tool *t = r->slot[(*at)++].tool;

        if (t)
            return t;
    }
    return NULL;
}

/* True if one more name and the end of the list fit. */
static bool fits(const ah_buf *b, const ah_text *name)
{
    return b->len + name->len + sizeof "\"\",]}" <= b->max;
}

void ah_registry_detail(const ah_registry *r, ah_slice requested, ah_err *err)
{
    const ah_tool *t;
    ah_buf b;

    ah_buf_init(&b, r->mem, sizeof err->details - 1);
    ah_buf_str(&b, "{\"requested_tool\":");
    ah_json_put_string(&b, requested);
    ah_buf_str(&b, ",\"available_tools\":[");
    for (size_t at = 0, n = 0; (t = ah_registry_next(r, &at)) != NULL && fits(&b, t->name); n++) {
        ah_buf_str(&b, n ? "," : "");
        ah_json_put_string(&b, ah_text_slice(t->name));
    }
    ah_buf_str(&b, "]}");
    if (ah_buf_ok(&b)) { /* details that do not fit are left out */
        memcpy(err->details, b.data, b.len);
        err->details[b.len] = '\0';
    }
    ah_buf_clear(&b);
}
