/* One list, updated in the order of the transcript. Removed tools stay in it if the wire cannot
 * take a declaration back. Adapters declare them. */
#include "wire/offers.h"

#include "model/tool_spec.h"
#include "wire/dialect.h"

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

static ah_offer *find(const ah_offers *o, ah_slice name)
{
    uint32_t at = ah_index_find(&o->index, name);

    return at == AH_INDEX_NONE ? NULL : &o->tool[at];
}

const ah_offer *ah_offers_find(const ah_offers *o, ah_slice name)
{
    return find(o, name);
}

bool ah_offers_wrap(const ah_offers *o, ah_slice name)
{
    ah_offer *t = find(o, name);

    if (t && !t->judged) {
        t->wraps = ah_dialect_wraps(ah_json_member(t->spec, "parameters"));
        t->judged = true;
    }
    return t && t->wraps;
}

/* True if all tools are late. A request that declares nothing else is refused. */
static bool none_declared(const ah_offers *o)
{
    for (size_t i = 0; i < o->n; i++)
        if (!o->tool[i].late)
            return false;
    return true;
}

/* The effect of a new tool in mid-conversation. */
static unsigned effect_of(const ah_offers *o, ah_tool_change_mode mode)
{
    if (!o->conversing || (mode == AH_TOOLS_REFERENCE && none_declared(o)))
        return AH_OFFER_HEAD;
    switch (mode) {
    case AH_TOOLS_RESTART:
    case AH_TOOLS_APPEND:
        return AH_OFFER_HEAD;
    case AH_TOOLS_LIST_CHANGED:
        return AH_OFFER_LIST;
    case AH_TOOLS_REFERENCE:
        return AH_OFFER_LIST | AH_OFFER_ENTRY;
    case AH_TOOLS_INLINE:
    case AH_TOOLS_ADDITIONAL:
    case AH_TOOLS_SEARCH_PAIR:
    case AH_TOOLS_DISPATCHER:
        return AH_OFFER_ENTRY;
    }
    return AH_OFFER_HEAD;
}

static bool offer(ah_offers *o, const ah_offer *now)
{
    ah_offer *t = ah_grow(o->index.mem, o->tool, &o->cap, o->n + 1, sizeof *t);

    if (!t)
        return false;
    o->tool = t;
    if (!ah_index_reserve(&o->index, 1, o->n))
        return false;
    t[o->n] = *now;
    ah_index_put(&o->index, now->name, o->n++);
    return true;
}

/* The same definition is added again, or was never removed. */
static unsigned offer_back(ah_offer *t, const ah_offer *now, unsigned late)
{
    bool was_gone = t->gone;

    t->spec = now->spec; /* annotations may differ */
    t->name = now->name;
    t->gone = false;
    if (!was_gone || late & AH_OFFER_HEAD) /* a removed tool is still declared */
        return 0;
    return late & AH_OFFER_ENTRY ? AH_OFFER_ENTRY : late;
}

/* Another definition of a name. On wires where later definitions win, the head keeps the first: `t`
 * stays in it, and the name leads to the new one. On a wire that names tools, a removed one is
 * declared again. */
static bool redefine(ah_offers *o, ah_offer *t, const ah_offer *now, unsigned *e)
{
    if (*e == AH_OFFER_ENTRY && !t->late) {
        t->gone = true;
        return offer(o, now);
    }
    if (*e == (AH_OFFER_LIST | AH_OFFER_ENTRY))
        *e = t->gone ? AH_OFFER_HEAD | AH_OFFER_ENTRY : AH_OFFER_HEAD;
    t->spec = now->spec;
    t->judged = t->weighed = false;
    t->name = now->name;
    t->entry = now->entry;
    t->gone = false;
    return true;
}

bool ah_offers_defer(ah_offers *o, ah_slice json, size_t entry)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice spec = ah_json_skip(&r, t);
        ah_offer now = {.name = ah_json_member(spec, "name"),
                        .spec = spec,
                        .entry = entry,
                        .told = entry,
                        .deferred = true};

        if (!find(o, now.name) && !offer(o, &now))
            return false;
    }
    return true;
}

/* Offers a deferred tool. It stays declared as it is if the wire has shown it already, or declares
 * it in its place; else it is declared like others. */
static void reveal(ah_offer *t, const ah_offer *now, bool shown, unsigned *e)
{
    if (ah_spec_tells_alike(t->spec, now->spec) && (shown || *e & AH_OFFER_ENTRY)) {
        t->gone = false;
        *e = shown ? 0 : AH_OFFER_ENTRY;
        return;
    }
    *e = AH_OFFER_HEAD;
    *t = *now;
    t->late = false;
}

/* A process that lists our tools also gets annotations. */
static bool tells_alike(ah_tool_change_mode mode, ah_slice a, ah_slice b)
{
    return mode == AH_TOOLS_LIST_CHANGED ? ah_slice_eq(a, b) : ah_spec_tells_alike(a, b);
}

/* Takes in one tool; *e is its effect. */
static bool add_one(ah_offers *o, ah_tool_change_mode mode, const ah_offer *now, bool shown,
                    unsigned *e)
{
    ah_offer *there = find(o, now->name);
    bool ok = true;

    if (there && there->deferred)
        reveal(there, now, shown, e);
    else if (!there)
        ok = offer(o, now);
    else if (o->conversing && tells_alike(mode, there->spec, now->spec))
        *e = offer_back(there, now, *e);
    else
        ok = redefine(o, there, now, e);
    if (ok && *e & AH_OFFER_ENTRY)
        find(o, now->name)->told = now->told;
    if (shown)
        *e &= ~(unsigned)AH_OFFER_ENTRY;
    return ok;
}

bool ah_offers_add(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry, bool shown,
                   unsigned *effect)
{
    unsigned late = effect_of(o, mode);
    ah_json_reader r = ah_json_read(ah_json_member(json, "tools"));
    ah_json_token t = ah_json_next(&r);

    *effect = 0;
    if (!ah_mode_redefines(mode) && ah_json_member(ah_json_member(json, "by"), "picked").p)
        return true;
    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_slice spec = ah_json_skip(&r, t);
        ah_offer now = {.name = ah_json_member(spec, "name"),
                        .spec = spec,
                        .entry = entry,
                        .told = entry,
                        .late = !(late & AH_OFFER_HEAD)};
        unsigned e = late;

        if (!add_one(o, mode, &now, shown, &e))
            return false;
        *effect |= e;
    }
    return true;
}

static unsigned effect_of_removal(const ah_offers *o, ah_tool_change_mode mode)
{
    if (!o->conversing)
        return AH_OFFER_HEAD;
    if (ah_mode_names_tools(mode))
        return AH_OFFER_ENTRY;
    return mode == AH_TOOLS_LIST_CHANGED ? AH_OFFER_LIST : 0;
}

unsigned ah_offers_remove(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "names"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_STRING; t = ah_json_next(&r)) {
        ah_offer *there = find(o, ah_json_skip(&r, t));

        if (!there || there->gone)
            continue;
        there->gone = true;
        there->told = entry;
    }
    return effect_of_removal(o, mode);
}

ah_status ah_offers_replay(ah_offers *o, const ah_transcript *t, ah_err *err)
{
    unsigned effect;

    for (size_t i = 0; i < t->n; i++) {
        ah_slice json = ah_text_slice(t->entry[i].json);

        if (t->entry[i].kind == AH_ENTRY_TOOLS_REMOVED)
            ah_offers_remove(o, AH_TOOLS_APPEND, json, i);
        else if (t->entry[i].kind == AH_ENTRY_TOOLS_ADDED &&
                 !ah_offers_add(o, AH_TOOLS_APPEND, json, i, false, &effect))
            return ah_err_nomem(err);
    }
    return AH_OK;
}

void ah_offers_sweep(ah_offers *o, ah_tool_change_mode mode)
{
    bool items = mode == AH_TOOLS_ADDITIONAL;
    size_t n = 0;

    for (size_t i = 0; i < o->n; i++)
        if (!o->tool[i].gone || (items && o->tool[i].late))
            o->tool[n++] = o->tool[i];
    if (n == o->n)
        return;
    o->n = n;
    ah_index_refill(&o->index, n);
}

const ah_offer *ah_offers_head(const ah_offers *o, ah_tool_change_mode mode, size_t *at)
{
    bool all = mode == AH_TOOLS_REFERENCE || mode == AH_TOOLS_LIST_CHANGED;

    while (*at < o->n) {
        const ah_offer *t = &o->tool[(*at)++];

        if ((all || !t->late) && !(t->gone && mode == AH_TOOLS_LIST_CHANGED))
            return t;
    }
    return NULL;
}
