/* Discovery (seed 001): a tool returns an entity, and the model gets its methods as tools. The
 * strategy names and makes these tools, keeps the instances of one conversation, binds the tools of
 * an entity that comes again to its newest instance, and counts the depth. model/entity.h says what
 * an instance is and how a method is called.
 * One ah_discovery per conversation. It owns an instance while there are tools of it, at most until
 * ah_discovery_release. A found entity is known by class and id to the end of the conversation, so
 * that a tool name never means another entity. Callers: its module, lua. */
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
    size_t refs;      /* held by the discovery and by each tool */
    ah_discovery *in; /* NULL once the conversation is gone */
    ah_entity_class *of;
    ah_text *id;
    ah_text *key;      /* class and id */
    ah_text *stem;     /* the beginning of its tools' names */
    ah_text *from;     /* the tool that returned it; NULL: unknown */
    ah_text *gone;     /* the error text of a call when there is no instance */
    ah_value instance; /* .vt NULL: none */
    int depth;    /* 1: returned by an ordinary tool; n + 1: by a method of an entity of depth n */
    size_t tools; /* number of its tools that exist */
    size_t alike; /* number of other ids that would have the same stem */
    struct ah_entity_slot *fresh; /* the next one to report */
    bool is_fresh;
} ah_entity_slot;

struct ah_discovery {
    const ah_mem *mem;
    ah_entity_slot **found;
    size_t n, cap;
    ah_index by_key, by_stem;
    size_t at_hand; /* number of entities with an instance */
    int max_depth;
    bool brief; /* the conversation declares tools in brief (run/pick.h) */
    bool warned_depth;
    /* Set while a call is looked at. */
    struct ah_run *run;
    ah_entity_slot *fresh, *last_fresh;
};

/* The discovery must not move afterwards. */
void ah_discovery_init(ah_discovery *d, const ah_mem *mem, int max_depth, bool brief);
void ah_discovery_clear(ah_discovery *d);
ah_strategy ah_discovery_strategy(ah_discovery *d);

/* Releases all instances. Their tools stay, and are stale until the entities come again. */
void ah_discovery_release(ah_discovery *d);
/* Adds to *out the removal of the entity's tools in the registry; none if the entity is unknown. */
ah_status ah_discovery_retract(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                               const ah_registry *r, ah_changes *out, ah_err *err);

/* Restores the entities that the transcript records, without instances, for a conversation that was
 * loaded or forked. Binds their tools in the registry whose definition is unchanged. `find` returns
 * the class of a name, borrowed, or NULL. */
ah_status ah_discovery_replay(ah_discovery *d, const ah_transcript *t, ah_registry *r,
                              ah_entity_class *(*find)(void *ud, ah_slice name), void *ud,
                              ah_err *err);

/* Adds to *out the stale tools of known entities whose class is defined, with their current
 * definition. */
ah_status ah_discovery_redeclare(const ah_discovery *d, const ah_registry *r, ah_changes *out,
                                 ah_err *err);

/* -- for the start of entities ---------------------------------------------------------- */

/* The entity of a call of an entity's tool, and the index of the method. */
ah_entity_slot *ah_entity_slot_of(const ah_call *call, size_t *method);
/* Sets the instance that the entity's tools work on from now on; taken. */
void ah_entity_slot_bind(ah_entity_slot *f, ah_value instance);

#endif
