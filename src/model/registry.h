/* The registry: the tools that a conversation can reach, by name, in order of declaration. It
 * holds references to them. The name of a removed tool stays, so that a late call differs from a
 * call of an unknown tool. Changes of a turn are marked until the turn is in the transcript: a
 * fork made before then starts from the earlier state. Callers: state, prompt, run, lua. */
#ifndef AH_MODEL_REGISTRY_H
#define AH_MODEL_REGISTRY_H

#include "base/index.h"
#include "model/tool.h"

typedef struct ah_registry_slot {
    ah_text *name;
    ah_tool *tool;    /* NULL: removed */
    ah_tool *brief;   /* while picked: the tool as declared in brief; otherwise NULL */
    ah_text *gone;    /* added to errors of calls after the removal; NULL: nothing */
    ah_tool *before;  /* while `open`: the unpicked tool at the last settling; NULL: none */
    bool open, fresh; /* changed since the last settling; the slot is new since then */
} ah_registry_slot;

typedef struct ah_registry {
    const ah_mem *mem;
    ah_registry_slot *slot;
    size_t n, cap; /* of slots */
    size_t live;   /* number of tools */
    size_t n_open; /* number of open slots */
    ah_index index;
} ah_registry;

void ah_registry_init(ah_registry *r, const ah_mem *mem); /* r must not move afterwards */
void ah_registry_clear(ah_registry *r);

ah_tool *ah_registry_find(const ah_registry *r, ah_slice name); /* borrowed; NULL: none */
/* True if a tool of this name was removed. *gone (may be NULL): the text for errors of its
 * calls, borrowed; .p NULL: none. */
bool ah_registry_had(const ah_registry *r, ah_slice name, ah_slice *gone);

/* Adds a reference to the tool. Fails with AH_PROMPT_VALIDATION if the name is taken. */
ah_status ah_registry_add(ah_registry *r, ah_tool *tool, ah_err *err);
/* Adds likewise, but replaces a tool of the same name; it cannot fail if the name exists or
 * existed. */
ah_status ah_registry_put(ah_registry *r, ah_tool *tool, ah_err *err);
/* Settles the current tools: later copies start from this state. */
void ah_registry_settle(ah_registry *r);
/* Copies the tools and removed names of src, as last settled, into the empty dst; nothing is
 * picked. */
ah_status ah_registry_copy(ah_registry *dst, const ah_registry *src, ah_err *err);
/* Replaces the tool of the same name if the specification is equal, in full or, with `brief`, in
 * brief: a continued conversation gets its handlers back. *bound: the tool was replaced. */
ah_status ah_registry_rebind(ah_registry *r, ah_tool *tool, bool brief, bool *bound, ah_err *err);
/* Returns false if there is no tool of that name. */
bool ah_registry_remove(ah_registry *r, ah_slice name);

/* Picks a tool (seed 004): one declared in brief is replaced by the full one until it is
 * unpicked, put anew or removed. False: nothing changed. Neither can fail otherwise. */
bool ah_registry_pick(ah_registry *r, ah_slice name);
bool ah_registry_unpick(ah_registry *r, ah_slice name);

/* Iterates over the tools in order: for (size_t at = 0; (t = ah_registry_next(r, &at));) */
ah_tool *ah_registry_next(const ah_registry *r, size_t *at);
/* Adds details to the error: `requested_tool`, and as many of `available_tools` as fit. */
void ah_registry_detail(const ah_registry *r, ah_slice requested, ah_err *err);

#endif
