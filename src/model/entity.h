/* Entities: objects outside the core whose methods can be tools (seed 001: @ToolProvider and
 * @LlmTool). A class, reference-counted, owns what its instances share: the name, the prefix of
 * tool names, and the methods, each compiled once. This file names the tools of an instance.
 * run/discover.h decides when a model gets them; the owner of the objects calls the methods.
 * Callers: run, lua. */
#ifndef AH_MODEL_ENTITY_H
#define AH_MODEL_ENTITY_H

#include "model/tool.h"

enum {
    AH_ENTITY_ID = 512,      /* bytes of an id */
    AH_ENTITY_PREFIX = 24,   /* characters in a prefix */
    AH_ENTITY_NAMES = 48,    /* of prefix and method together, which leaves room for an id */
    AH_ENTITY_TOOL_NAME = 65 /* bytes of a tool's name with its NUL */
};

struct ah_entity_slot; /* run/discover.h */

typedef struct ah_entity_vt {
    /* Starts method number `method` of a discovered instance, as ah_tool_vt.start does. If there
     * is no live instance, it finds one by its id (ah_entity_slot_bind). */
    void (*start)(struct ah_entity_slot *f, size_t method, struct ah_call *call);
    void (*stop)(struct ah_call *call); /* as ah_tool_vt.stop */
} ah_entity_vt;

typedef struct ah_entity_class {
    const ah_mem *mem;
    size_t refs;
    ah_text *name, *prefix;
    ah_tool **method; /* under the methods' names; never called directly */
    size_t n, cap;
    bool finds; /* an instance can be found again by its id */
    const ah_entity_vt *vt;
} ah_entity_class;

/* One instance in a value. */
typedef struct ah_entity {
    ah_entity_class *of; /* a reference */
    ah_text *id;         /* UTF-8, 1 to AH_ENTITY_ID bytes */
    ah_value instance;
} ah_entity;

void ah_entity_clear(ah_entity *e); /* an empty one is allowed */

/* prefix .n 0: the name in lower case. Fails with AH_PROMPT_VALIDATION. */
ah_status ah_entity_class_new(const ah_mem *mem, ah_slice name, ah_slice prefix,
                              const ah_entity_vt *vt, ah_entity_class **out, ah_err *err);
ah_entity_class *ah_entity_class_ref(ah_entity_class *c); /* NULL returns NULL */
void ah_entity_class_unref(ah_entity_class *c);           /* NULL does nothing */
/* Adds a reference to the method. Fails with AH_PROMPT_VALIDATION if the name is taken, or too
 * long for the prefix. */
ah_status ah_entity_class_add(ah_entity_class *c, ah_tool *method, ah_err *err);

/* Appends prefix_id with only the letters and digits of the id; without any, a hash. The k-th id
 * with an equal result gets _k at its end. At most AH_ENTITY_ID + 40 bytes. */
void ah_entity_stem(const ah_entity_class *c, ah_slice id, size_t k, ah_buf *out);
/* Returns stem_method; above 64 characters the id's part is cut, and ends with a hash of the
 * stem. */
ah_slice ah_entity_tool_name(const ah_entity_class *c, size_t method, ah_slice stem,
                             char out[AH_ENTITY_TOOL_NAME]);

#endif
