/* The registry: the tools a conversation can reach, by name, in order of declaration.
 * A removed tool leaves its name behind, so that a late call to it can be told from
 * one to a tool that never was. What a turn has changed is known until the turn is in the
 * transcript: a conversation that is forked before goes on from what was there. */
#ifndef AH_MODEL_REGISTRY_H
#define AH_MODEL_REGISTRY_H

#include "base/index.h"
#include "model/tool.h"

typedef struct ah_registry_slot {
    ah_text *name;
    ah_tool *tool;    /* NULL: it was removed */
    ah_tool *brief;   /* while picked: the tool as declared in brief; else NULL */
    ah_text *gone;    /* added to the error of a call once it was removed; NULL: nothing */
    ah_tool *before;  /* while `open`: the unpicked tool as settled last; NULL: none */
    bool open, fresh; /* changed since then; the slot is new since then */
} ah_registry_slot;

typedef struct ah_registry {
    const ah_mem *mem;
    ah_registry_slot *slot;
    size_t n, cap; /* slots */
    size_t live;   /* tools */
    size_t n_open; /* slots */
    ah_index index;
} ah_registry;

void ah_registry_init(ah_registry *r, const ah_mem *mem); /* it must not move afterwards */
void ah_registry_clear(ah_registry *r);

ah_tool *ah_registry_find(const ah_registry *r, ah_slice name); /* borrowed, or NULL */
/* True if a tool of this name was removed. *gone (may be NULL): the text for errors of its calls,
 * borrowed, or .p NULL. */
bool ah_registry_had(const ah_registry *r, ah_slice name, ah_slice *gone);

/* Refuses a taken name with AH_PROMPT_VALIDATION. Takes a reference of its own. */
ah_status ah_registry_add(ah_registry *r, ah_tool *tool, ah_err *err);
/* The same, but takes the place of a tool of that name; it cannot fail where there is one, or
 * was. */
ah_status ah_registry_put(ah_registry *r, ah_tool *tool, ah_err *err);
/* Settles the tools as put and removed so far: later copies begin from this state. */
void ah_registry_settle(ah_registry *r);
/* Copies the tools and removed names of src, as settled last, into dst, which is empty; nothing is
 * picked. */
ah_status ah_registry_copy(ah_registry *dst, const ah_registry *src, ah_err *err);
/* Replaces the tool of the same name if its specification is the same, in full or, with `brief`, in
 * brief: a conversation that goes on gets its handlers back. *bound: the tool was replaced. */
ah_status ah_registry_rebind(ah_registry *r, ah_tool *tool, bool brief, bool *bound, ah_err *err);
/* False: there is none of that name. */
bool ah_registry_remove(ah_registry *r, ah_slice name);

/* Picks (seed 004): a tool that is declared in brief is the full one from here on, until it is
 * unpicked, put anew or removed. False: nothing changed. Neither can fail otherwise. */
bool ah_registry_pick(ah_registry *r, ah_slice name);
bool ah_registry_unpick(ah_registry *r, ah_slice name);

/* The tools in order: for (size_t at = 0; (t = ah_registry_next(r, &at));) */
ah_tool *ah_registry_next(const ah_registry *r, size_t *at);
/* The error's details: `requested_tool`, and of `available_tools` as many as there is room for. */
void ah_registry_detail(const ah_registry *r, ah_slice requested, ah_err *err);

#endif
