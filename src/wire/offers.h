/* The tools a model may see at one point of a conversation, as replaying the transcript
 * gives them, and what a change of them costs on a wire of a given kind. Lowering owns one a
 * conversation; the search, and whoever opens a saved conversation, replays into one of its own. */
#ifndef AH_WIRE_OFFERS_H
#define AH_WIRE_OFFERS_H

#include "base/index.h"
#include "wire/adapter.h"

typedef struct ah_offer {
    ah_slice name, spec; /* in the entry's text; the name with its quotes */
    size_t entry;
    size_t told;          /* the entry that told of it last, where the wire tells it in its place */
    bool deferred;        /* declared so that it can be found; not offered yet */
    bool late;            /* came in mid-conversation, on a wire that takes it there */
    bool gone;            /* removed: its declaration stays until the next break of the cache */
    bool judged, wraps;   /* its schema was asked if arguments are wrapped; they are */
    bool weighed, strict; /* the same of its strict form (wire/strict.h), and */
    ah_strict_weight weight;
} ah_offer;

typedef struct ah_offers {
    ah_offer *tool;
    size_t n, cap;
    ah_index index;
    bool conversing; /* the model has spoken: what comes now is in mid-conversation */
} ah_offers;

/* The meaning of an entry of tools for the request: bits, none where it says nothing of it. */
enum {
    AH_OFFER_HEAD = 1, /* the head changes, and with it what the provider has cached */
    AH_OFFER_LIST = 2, /* the head changes where no cache reaches */
    AH_OFFER_ENTRY = 4 /* it is lowered where it stands, like a message */
};

void ah_offers_init(ah_offers *o, const ah_mem *mem); /* it must not move afterwards */
void ah_offers_clear(ah_offers *o);

/* Takes in a tools_deferred entry, on a wire that declares deferred tools. False: out of memory. */
bool ah_offers_defer(ah_offers *o, ah_slice json, size_t entry);
/* Takes in a tools_added entry. `shown`: the wire has revealed its tools already. One that picks
 * tools (docs/reference/transcript.md, `picked`) changes nothing where a changed declaration would
 * cost the cache. False: out of memory. */
bool ah_offers_add(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry, bool shown,
                   unsigned *effect);
/* Takes in a tools_removed entry; returns its effect. */
unsigned ah_offers_remove(ah_offers *o, ah_tool_change_mode mode, ah_slice json, size_t entry);
/* The tools at the transcript's end. */
ah_status ah_offers_replay(ah_offers *o, const ah_transcript *t, ah_err *err);
/* The head is made anew anyway: tombstones in it go. Those of tools that were declared further
 * down, as items of their own, stay. */
void ah_offers_sweep(ah_offers *o, ah_tool_change_mode mode);

/* The tools that are declared in the head, in order: for (at = 0; (t = ah_offers_head(o, mode,
 * &at));) */
const ah_offer *ah_offers_head(const ah_offers *o, ah_tool_change_mode mode, size_t *at);
/* A tool by its name as JSON string, or NULL. */
const ah_offer *ah_offers_find(const ah_offers *o, ah_slice name);

/* True if the arguments of the tool of that name are wrapped (wire/dialect.h), as it is offered
 * now. Its schema is asked once, when the answer is first needed. */
bool ah_offers_wrap(const ah_offers *o, ah_slice name);

/* True if another definition of a declared tool leaves the cached head as it is: later ones win
 * there. */
static inline bool ah_mode_redefines(ah_tool_change_mode m)
{
    return m == AH_TOOLS_INLINE || m == AH_TOOLS_ADDITIONAL || m == AH_TOOLS_SEARCH_PAIR ||
           m == AH_TOOLS_LIST_CHANGED;
}

/* True if the body names declared tools, so that these must stay declared. */
static inline bool ah_mode_names_tools(ah_tool_change_mode m)
{
    return m == AH_TOOLS_INLINE || m == AH_TOOLS_REFERENCE;
}

#endif
