/* Keeps the entities that one conversation has found, for discover.c and discover_replay.c only.
 * The structs and the public functions are in discover.h. The discovery owns its slots; each tool
 * made here holds a reference to its slot. Callers: its module. */
#ifndef AH_RUN_FOUND_H
#define AH_RUN_FOUND_H

#include "run/discover.h"

/* Sets *found to the entity of the class and id, borrowed, or to NULL if it is unknown. */
ah_status ah_entity_slot_look_up(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                                 ah_entity_slot **found, ah_err *err);
/* Gives the class to an entity that an earlier conversation recorded by the class's name only. Sets
 * *found to it, or to NULL if there is no such entity. */
ah_status ah_entity_slot_adopt(ah_discovery *d, ah_entity_class *of, ah_slice id,
                               ah_entity_slot **found, ah_err *err);
ah_entity_slot *ah_entity_slot_by_stem(const ah_discovery *d, ah_slice stem);
/* Adds an entity, which the discovery must not have yet, and owns it. stem .p NULL: chooses one
 * that no other entity has; from .p NULL: the tool that returned it is unknown. */
ah_status ah_entity_slot_add(ah_discovery *d, ah_entity_class *of, ah_slice id, ah_slice stem,
                             ah_slice from, int depth, ah_entity_slot **out, ah_err *err);
/* Sets the current instance, taken (.vt NULL: none), and releases the one before. */
void ah_entity_slot_hold(ah_entity_slot *f, ah_value instance);

/* Makes a tool for one method, bound to the entity. */
ah_status ah_entity_slot_make_tool(ah_entity_slot *f, size_t method, ah_slice name, ah_tool **out,
                                   ah_err *err);
/* The entity of a tool made by ah_entity_slot_make_tool; NULL for any other tool. */
ah_entity_slot *ah_entity_slot_of_tool(const ah_tool *t);
/* True if the registry has this entity's tool for the method, not stale. */
bool ah_entity_slot_has_tool(const ah_entity_slot *f, size_t method, ah_slice name,
                             const ah_registry *r);
/* Binds each of the entity's tools in the registry whose definition is the one it would get now. */
ah_status ah_entity_slot_take_places(ah_entity_slot *f, ah_registry *r, ah_err *err);

/* discover_replay.c: the `by` of the entity's transcript entry, which ah_discovery_replay reads. */
ah_status ah_entity_slot_provenance(const ah_entity_slot *f, ah_text **out, ah_err *err);

#endif
