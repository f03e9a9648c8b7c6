#include "wire/offered.h"

static ah_slice name_of(const void *offers, size_t at)
{
    return ((const ah_offers *)offers)->tool[at].name;
}

void ah_offers_init(ah_offers *o, const ah_mem *mem)
{
    *o = (ah_offers){.index = {.mem = mem, .name = name_of, .owner = o}};
}

void ah_offers_clear(ah_offers *o)
{
    if (o->index.mem)
        ah_free(o->index.mem, o->tool);
    ah_index_clear(&o->index);
    ah_offers_init(o, o->index.mem);
}

static ah_offered *find(const ah_offers *o, ah_slice name)
{
    uint32_t at = ah_index_find(&o->index, name);

    return at == AH_INDEX_NONE ? NULL : &o->tool[at];
}

const ah_offered *ah_offers_find(const ah_offers *o, ah_slice name)
{
    return find(o, name);
}

/* What a new tool means in mid-conversation. */
static ah_offer_effect effect_of(ah_tool_change_mode mode)
{
    switch (mode) {
    case AH_TOOLS_RESTART:
    case AH_TOOLS_APPEND:
        return AH_OFFER_HEAD;
    case AH_TOOLS_LIST_CHANGED:
        return AH_OFFER_LIST;
    case AH_TOOLS_REFERENCE:
        return AH_OFFER_REVEAL;
    case AH_TOOLS_INLINE:
    case AH_TOOLS_ADDITIONAL:
    case AH_TOOLS_SEARCH_PAIR:
    case AH_TOOLS_DISPATCHER:
        return AH_OFFER_ENTRY;
    }
    return AH_OFFER_HEAD;
}

static bool offer(ah_offers *o, const ah_offered *now)
{
    ah_offered *t = ah_grow(o->index.mem, o->tool, &o->cap, o->n + 1, sizeof *t);

    if (!t)
        return false;
    o->tool = t;
    if (!ah_index_reserve(&o->index, o->n + 1, o->n))
        return false;
    t[o->n] = *now;
    ah_index_put(&o->index, now->name, o->n++);
    return true;
}

/* The definition that was there comes back, or was never gone. */
static ah_offer_effect offer_back(ah_offered *t, ah_offer_effect late)
{
    bool was_gone = t->gone;

    t->gone = false;
    if (!was_gone || late == AH_OFFER_HEAD) /* a tombstone is still declared */
        return AH_OFFER_NOTHING;
    return late == AH_OFFER_REVEAL ? AH_OFFER_ENTRY : late;
}

/* Another definition of a name. On wires where later ones win, the head keeps the first:
 * `t` stays in it, and the name leads to the new one. */
static bool redefine(ah_offers *o, ah_offered *t, const ah_offered *now, ah_offer_effect *e)
{
    if (*e == AH_OFFER_ENTRY && !t->late) {
        t->gone = true;
        return offer(o, now);
    }
    if (*e == AH_OFFER_REVEAL)
        *e = AH_OFFER_HEAD;
    t->spec = now->spec;
    t->name = now->name;
    t->entry = now->entry;
    t->gone = false;
    return true;
}

bool ah_offers_add(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry,
                   ah_offer_effect *effect)
{
    ah_offer_effect late = o->conversing ? effect_of(mode) : AH_OFFER_HEAD;
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);

    *effect = AH_OFFER_NOTHING;
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice spec = ah_json_skip(&r, t);
        ah_offered now = {ah_json_member(spec, "name"), spec, entry, late != AH_OFFER_HEAD, false};
        ah_offered *there = find(o, now.name);
        ah_offer_effect e = late;
        bool ok = true;

        if (!there)
            ok = offer(o, &now);
        else if (o->conversing && ah_slice_eq(there->spec, spec))
            e = offer_back(there, late);
        else
            ok = redefine(o, there, &now, &e);
        if (!ok)
            return false;
        if (*effect == AH_OFFER_NOTHING || e == AH_OFFER_HEAD)
            *effect = e;
    }
    return true;
}

void ah_offers_remove(ah_offers *o, ah_tool_change_mode mode, ah_slice json, ah_offer_effect *effect)
{
    bool native = mode == AH_TOOLS_INLINE || mode == AH_TOOLS_REFERENCE;
    ah_json_reader r = ah_json_read(ah_json_member(json, "names"));
    ah_json_token t = ah_json_next(&r);

    *effect = !o->conversing                  ? AH_OFFER_HEAD
              : native                        ? AH_OFFER_ENTRY
              : mode == AH_TOOLS_LIST_CHANGED ? AH_OFFER_LIST
                                              : AH_OFFER_NOTHING;
    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        ah_offered *there = find(o, ah_json_skip(&r, t));

        if (there)
            there->gone = true;
    }
}

ah_status ah_offers_replay(ah_offers *o, const ah_transcript *t, ah_err *err)
{
    ah_offer_effect effect;

    for (size_t i = 0; i < t->n; i++) {
        ah_slice json = ah_text_slice(t->entry[i].json);

        if (t->entry[i].kind == AH_ENTRY_TOOLS_REMOVED)
            ah_offers_remove(o, AH_TOOLS_APPEND, json, &effect);
        else if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED &&
                 !ah_offers_add(o, AH_TOOLS_APPEND, json, i, &effect))
            return ah_err_nomem(err);
    }
    return AH_OK;
}

void ah_offers_sweep(ah_offers *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n; i++)
        if (!o->tool[i].gone)
            o->tool[n++] = o->tool[i];
    if (n == o->n)
        return;
    o->n = n;
    ah_index_refill(&o->index, n);
}

const ah_offered *ah_offers_head(const ah_offers *o, ah_tool_change_mode mode, size_t *at)
{
    bool all = mode == AH_TOOLS_REFERENCE || mode == AH_TOOLS_LIST_CHANGED;

    while (*at < o->n) {
        const ah_offered *t = &o->tool[(*at)++];

        if ((all || !t->late) && !(t->gone && mode == AH_TOOLS_LIST_CHANGED))
            return t;
    }
    return NULL;
}
