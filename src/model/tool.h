/* A tool: what the model is told of it and how it is called. Immutable and
 * reference-counted. The registry is the ordered set of tools a run can reach. */
#ifndef AH_MODEL_TOOL_H
#define AH_MODEL_TOOL_H

#include "model/schema.h"

/* A live value of another world (a Lua function, a C pointer) crossing the core. */
typedef struct ah_value {
    const struct ah_value_vt {
        void (*release)(void *p);
    } * vt;
    void *p;
} ah_value;

typedef struct ah_tool ah_tool;
struct ah_call; /* run/dispatch.h */

/* Starts the handler of one call. The answer comes through ah_call_done, during
 * start or later, exactly once, unless `stop` was called for it: then never.
 * Both are called from the driver, never from inside another call of the core. */
typedef struct ah_tool_vt {
    void (*start)(const ah_tool *tool, struct ah_call *call);
    void (*stop)(const ah_tool *tool, struct ah_call *call);
} ah_tool_vt;

typedef struct ah_tool_def {
    ah_slice name;        /* ^[a-z0-9_-]{1,64}$ */
    ah_slice description; /* 1-200 ASCII after stripping (seeds 002, 003) */
    ah_slice full_description;
    ah_schema *params; /* borrowed; object schema; NULL: no parameters */
    ah_schema *result; /* borrowed; NULL: anything */
    bool parallel;
    bool no_handler;    /* listed; a call is answered with an error */
    int64_t timeout_ms; /* 0: none of its own */
    const ah_tool_vt *vt;
    ah_value handler; /* taken on success */
} ah_tool_def;

struct ah_tool {
    const ah_mem *mem;
    size_t refs;
    ah_text *name;
    ah_text *spec; /* {"description":..,"name":..,"parameters":{..}}, canonical */
    ah_schema *params, *result;
    bool parallel, no_handler;
    int64_t timeout_ms;
    const ah_tool_vt *vt;
    ah_value handler;
};

/* AH_PROMPT_VALIDATION names the field that is wrong. */
ah_status ah_tool_new(const ah_mem *mem, const ah_tool_def *def, ah_tool **out, ah_err *err);
ah_tool *ah_tool_ref(ah_tool *t);
void ah_tool_unref(ah_tool *t);

/* Tools by name, in order of declaration. */
typedef struct ah_registry {
    const ah_mem *mem;
    ah_tool **tool;
    size_t n, cap;
    uint32_t *index; /* open addressing: position + 1, 0 free */
    size_t n_index;  /* a power of two, or 0 */
} ah_registry;

void ah_registry_init(ah_registry *r, const ah_mem *mem);
void ah_registry_clear(ah_registry *r);
/* Refuses a taken name with AH_PROMPT_VALIDATION. Takes a reference of its own. */
ah_status ah_registry_add(ah_registry *r, ah_tool *tool, ah_err *err);
ah_tool *ah_registry_find(const ah_registry *r, ah_slice name); /* borrowed, or NULL */

/* The `tools_added` entry for all tools of the registry. */
ah_status ah_registry_entry(const ah_registry *r, ah_text **out, ah_err *err);

#endif
