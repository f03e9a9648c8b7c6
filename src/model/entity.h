/* Entities: objects of another world whose methods can be tools (seed 001: @ToolProvider and
 * @LlmTool). A class holds what its instances share: its name, the prefix of the tools'
 * names, and the methods, each compiled once. Here is how the tools of an instance are
 * named; when a model gets them is run/discover.h's, how a method is called the world's. */
#ifndef AH_MODEL_ENTITY_H
#define AH_MODEL_ENTITY_H

#include "model/tool.h"

enum {
    AH_ENTITY_ID = 512,    /* bytes of an id */
    AH_ENTITY_PREFIX = 24, /* characters of a prefix */
    AH_ENTITY_NAMES =
        48, /* of prefix and method together, so that an id has its place beside them */
    AH_ENTITY_TOOL_NAME = 65 /* of a tool's name, with the NUL that ends it */
};

struct ah_entity_slot; /* run/discover.h */

typedef struct ah_entity_vt {
    /* Starts method number `method` of what was found, as ah_tool_vt.start does. Where that has
     * no instance, one is to be found again by its id (ah_entity_slot_bind). */
    void (*start)(struct ah_entity_slot *f, size_t method, struct ah_call *call);
    void (*stop)(struct ah_call *call); /* as ah_tool_vt.stop */
} ah_entity_vt;

typedef struct ah_entity_class {
    const ah_mem *mem;
    size_t refs;
    ah_text *name, *prefix;
    ah_tool **method; /* under the methods' names; never called themselves */
    size_t n, cap;
    bool finds; /* an instance can be had again by its id */
    const ah_entity_vt *vt;
} ah_entity_class;

/* One instance, as a value shows it. */
typedef struct ah_entity {
    ah_entity_class *of; /* a reference */
    ah_text *id;         /* UTF-8, 1 to AH_ENTITY_ID bytes */
    ah_value instance;
} ah_entity;

void ah_entity_clear(ah_entity *e); /* an empty one is fine */

/* prefix .n 0: the name in lower-case letters. AH_PROMPT_VALIDATION says what is wrong. */
ah_status ah_entity_class_new(const ah_mem *mem, ah_slice name, ah_slice prefix,
                              const ah_entity_vt *vt, ah_entity_class **out, ah_err *err);
ah_entity_class *ah_entity_class_ref(ah_entity_class *c); /* NULL gives NULL */
void ah_entity_class_unref(ah_entity_class *c);           /* NULL is fine */
/* Refuses a second method of a name, and one too long for the prefix, with
 * AH_PROMPT_VALIDATION. Takes a reference of its own. */
ah_status ah_entity_class_add(ah_entity_class *c, ah_tool *method, ah_err *err);

/* prefix_id: letters and digits of the id are kept; where there are none, a hash stands in. The
 * k-th id that comes to the same has _k behind it. At most AH_ENTITY_ID + 40 bytes. */
void ah_entity_stem(const ah_entity_class *c, ah_slice id, size_t k, ah_buf *out);
/* stem_method; beyond 64 characters the id's part is shortened, with a hash of the stem at its
 * end. */
ah_slice ah_entity_tool_name(const ah_entity_class *c, size_t method, ah_slice stem,
                             char out[AH_ENTITY_TOOL_NAME]);

#endif
