/* Discovery (seed 001): a tool returns an entity, and the model gets its methods as tools. The
 * strategy names and makes them, keeps which instance is at hand in a conversation, binds the tools
 * of an entity that comes again to its newest instance, and counts how deep it is. What an instance
 * is, and how a method is called, is its world's (model/entity.h). The Lua floor makes one a
 * conversation, and gives the run its strategy.
 *
 * An instance is held while there are tools of it, at most until ah_discovery_release. What was
 * found is known by class and id to the end of the conversation, so that a name never means another
 * entity. */
#ifndef AH_RUN_DISCOVER_H
#define AH_RUN_DISCOVER_H

#include "base/index.h"
#include "model/entity.h"
#include "run/call.h"
#include "run/inject.h"

enum { AH_ENTITY_SLOT_DEPTH = 5 };

typedef struct ah_discovery ah_discovery;

/* One entity of one conversation. */
typedef struct ah_entity_slot {
    const ah_mem *mem;
    size_t refs;      /* of the discovery and of each tool */
    ah_discovery *in; /* NULL once the conversation is gone */
    ah_entity_class *of;
    ah_text *id;
    ah_text *key;      /* class and id */
    ah_text *stem;     /* what the tools' names begin with */
    ah_text *from;     /* the tool that gave it; NULL: not known */
    ah_text *gone;     /* what a call is told when there is no instance */
    ah_value instance; /* .vt NULL: none is at hand */
    int depth;         /* 1: an ordinary tool gave it; n + 1: a method of one that is n deep */
    size_t tools;      /* that exist */
    size_t alike;      /* ids that came to its stem */
    struct ah_entity_slot *fresh; /* the next one that is to be told of */
    bool is_fresh;
} ah_entity_slot;

struct ah_discovery {
    const ah_mem *mem;
    ah_entity_slot **found;
    size_t n, cap;
    ah_index by_key, by_stem;
    size_t at_hand; /* entities with an instance */
    int max_depth;
    bool brief; /* the conversation declares tools in brief (run/pick.h) */
    bool warned_depth;
    /* while a call is looked at */
    struct ah_run *run;
    ah_entity_slot *fresh, *last_fresh;
};

/* It must not move. */
void ah_discovery_init(ah_discovery *d, const ah_mem *mem, int max_depth, bool brief);
void ah_discovery_clear(ah_discovery *d);
ah_strategy ah_discovery_strategy(ah_discovery *d);

/* Lets go of all instances; their tools stay, and are stale until the entities come again. */
void ah_discovery_release(ah_discovery *d);
/* The tools of an entity that are in the registry, as removals. Does not know it: none. */
ah_status ah_discovery_retract(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                               const ah_registry *r, ah_changes *out, ah_err *err);

/* Knows what the transcript tells was found, and takes the places of its tools in the registry
 * that have the same definition still; without instances. `find` gives the class of a name,
 * borrowed, or NULL. For a conversation that was loaded, or forked. */
ah_status ah_discovery_replay(ah_discovery *d, const ah_transcript *t, ah_registry *r,
                              ah_entity_class *(*find)(void *ud, ah_slice name), void *ud,
                              ah_err *err);

/* Of what is known of classes that are defined: the tools that stay stale in the registry, as they
 * are defined now, as additions. */
ah_status ah_discovery_redeclare(const ah_discovery *d, const ah_registry *r, ah_changes *out,
                                 ah_err *err);

/* -- for the worlds' own start ---------------------------------------------------------- */

/* Of a call of an entity's tool: what was found, and the number of the method. */
ah_entity_slot *ah_entity_slot_of(const ah_call *call, size_t *method);
/* The instance that its tools are for from now on; taken. */
void ah_entity_slot_bind(ah_entity_slot *f, ah_value instance);

#endif
