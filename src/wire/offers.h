/* The tools that a model sees at one point of a conversation, as replaying the transcript gives
 * them, and how a change of them affects the request on a wire of a given kind. The lowering of a
 * conversation owns one; the search, and the code that opens a saved conversation, replay into
 * their own. It owns its list and borrows names and specifications from the transcript.
 * Callers: its module, run. */
#ifndef AH_WIRE_OFFERS_H
#define AH_WIRE_OFFERS_H

#include "base/index.h"
#include "wire/adapter.h"

typedef struct ah_offer {
    ah_slice name, spec; /* from the entry's text; the name with its quotes */
    size_t entry;
    size_t told;        /* the last entry that declared it, if the wire declares it in its place */
    bool deferred;      /* declared so that it can be found; not offered yet */
    bool late;          /* added in mid-conversation, on a wire that takes it there */
    bool gone;          /* removed: its declaration stays until the next cache break */
    bool judged, wraps; /* `wraps` is known; its arguments are wrapped */
    bool weighed, strict; /* `strict` and `weight` are known; it is strict (wire/strict.h) */
    ah_strict_weight weight;
} ah_offer;

typedef struct ah_offers {
    ah_offer *tool;
    size_t n, cap;
    ah_index index;
    bool conversing; /* the model has answered: later changes are in mid-conversation */
} ah_offers;

/* The effect of an entry of tools on the request, as bits; 0: none. */
enum {
    AH_OFFER_HEAD = 1, /* the head changes, and with it what the provider has cached */
    AH_OFFER_LIST = 2, /* the head changes in a part that is never cached */
    AH_OFFER_ENTRY = 4 /* the entry is lowered in its place, like a message */
};

void ah_offers_init(ah_offers *o, const ah_mem *mem); /* must not move afterwards */
void ah_offers_clear(ah_offers *o);

/* Takes in a tools_deferred entry, on a wire that declares deferred tools. False: out of memory. */
bool ah_offers_defer(ah_offers *o, ah_slice json, size_t entry);
/* Takes in a tools_added entry. `shown`: the wire has revealed its tools already. An entry that
 * picks tools (docs/reference/transcript.md, `picked`) changes nothing if the changed declaration
 * would break the cache. False: out of memory. */
bool ah_offers_add(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry, bool shown,
                   unsigned *effect);
/* Takes in a tools_removed entry; returns its effect. */
unsigned ah_offers_remove(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry);
/* Replays the whole transcript. */
ah_status ah_offers_replay(ah_offers *o, const ah_transcript *t, ah_err *err);
/* The head is made anew anyway: drops removed tools from it. Tools declared in the body as their
 * own items stay. */
void ah_offers_sweep(ah_offers *o, ah_tool_change_mode mode);

/* The tools that are declared in the head, in order: for (at = 0; (t = ah_offers_head(o, mode,
 * &at));) */
const ah_offer *ah_offers_head(const ah_offers *o, ah_tool_change_mode mode, size_t *at);
/* The tool of that name (a JSON string), or NULL. */
const ah_offer *ah_offers_find(const ah_offers *o, ah_slice name);

/* True if the arguments of that tool, as offered now, are wrapped (wire/dialect.h). Its schema is
 * examined once, when this is first asked. */
bool ah_offers_wrap(const ah_offers *o, ah_slice name);

/* True if a new definition of a declared tool leaves the cached head unchanged, because later
 * definitions win. */
static inline bool ah_mode_redefines(ah_tool_change_mode m)
{
    return m == AH_TOOLS_INLINE || m == AH_TOOLS_ADDITIONAL || m == AH_TOOLS_SEARCH_PAIR ||
           m == AH_TOOLS_LIST_CHANGED;
}

/* True if the body names declared tools, so that they must stay declared. */
static inline bool ah_mode_names_tools(ah_tool_change_mode m)
{
    return m == AH_TOOLS_INLINE || m == AH_TOOLS_REFERENCE;
}

#endif
