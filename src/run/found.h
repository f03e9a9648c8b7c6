/* The entities that one conversation has found: the half of discovery that keeps them, for
 * discover.c and discover_replay.c alone. The structs, and what others may ask, are in
 * discover.h. */
#ifndef AH_RUN_FOUND_H
#define AH_RUN_FOUND_H

#include "run/discover.h"

/* The entity of a class and an id; NULL in *found where it is not known. Borrowed. */
ah_status ah_entity_slot_look_up(const ah_discovery *d, const ah_entity_class *of, ah_slice id,
                                 ah_entity_slot **found, ah_err *err);
/* An entity that was known by the class's name alone, from a conversation of earlier, gets its
 * class again; NULL in *found where there is no such entity. */
ah_status ah_entity_slot_adopt(ah_discovery *d, ah_entity_class *of, ah_slice id,
                               ah_entity_slot **found, ah_err *err);
ah_entity_slot *ah_entity_slot_by_stem(const ah_discovery *d, ah_slice stem);
/* One that the discovery must not have yet; it owns it. stem .p NULL: one is chosen that no other
 * entity has; from .p NULL: nobody knows which tool gave it. */
ah_status ah_entity_slot_add(ah_discovery *d, ah_entity_class *of, ah_slice id, ah_slice stem,
                             ah_slice from, int depth, ah_entity_slot **out, ah_err *err);
/* The instance at hand from now on, taken; .vt NULL: none. The one before is let go of. */
void ah_entity_slot_hold(ah_entity_slot *f, ah_value instance);

/* A new tool for a method, bound to it. */
ah_status ah_entity_slot_make_tool(ah_entity_slot *f, size_t method, ah_slice name, ah_tool **out,
                                   ah_err *err);
/* Of a tool that ah_entity_slot_make_tool made; else NULL. */
ah_entity_slot *ah_entity_slot_of_tool(const ah_tool *t);
/* True if the tool of this method is in the registry. */
bool ah_entity_slot_has_tool(const ah_entity_slot *f, size_t method, ah_slice name,
                             const ah_registry *r);
/* Binds each tool of it that stands in the registry with the very definition it would get now. */
ah_status ah_entity_slot_take_places(ah_entity_slot *f, ah_registry *r, ah_err *err);

/* discover_replay.c: what an entry of the transcript says of it, for ah_discovery_replay. */
ah_status ah_entity_slot_provenance(const ah_entity_slot *f, ah_text **out, ah_err *err);

#endif
