/* A tool: what the model is told of it and how it is called. Immutable and
 * reference-counted. */
#ifndef AH_MODEL_TOOL_H
#define AH_MODEL_TOOL_H

#include "schema/schema.h"

struct ah_entity; /* model/entity.h */

/* A live value of another world (a Lua function, a C pointer) crossing the core. */
typedef struct ah_value {
    const struct ah_value_vt {
        void (*release)(void *p);
        /* The entities that it is, or is a list of, one a call; *at from 0 on. out->of stays NULL
         * at the end. AH_INVALID_TOOL_PROVIDER: this one is none, and why; the next call goes on.
         * Any other failure is the end. May be NULL: there are none. */
        ah_status (*entity)(void *p, size_t *at, struct ah_entity *out, ah_err *err);
    } * vt;
    void *p;
} ah_value;

void ah_value_release(ah_value *v);    /* and empties it; an empty one is fine */
ah_value ah_value_json(ah_text *json); /* of a tool of our own: p is the text, which is taken */
bool ah_value_is_json(const ah_value *v);

enum {
    AH_TOOL_MEMORY = 256 << 20,      /* bytes that one call may take by default */
    AH_TOOL_LEAST_MEMORY = 64 << 10, /* the least that can be set */
    AH_TOOL_RESULT = 64 << 10,       /* bytes of a result that the model sees */
    AH_TOOL_LEAST_RESULT = 1 << 10
};

typedef struct ah_tool ah_tool;
struct ah_call; /* run/call.h */

/* Starts the handler of one call. The answer comes through ah_call_done, during
 * start or later, exactly once, unless `stop` was called for it: then never. It is NULL
 * where the answer always comes during start. Both are called from the driver, never from inside
 * another call of the core. */
typedef struct ah_tool_vt {
    void (*start)(const ah_tool *tool, struct ah_call *call);
    void (*stop)(const ah_tool *tool, struct ah_call *call);
    /* Returns the object that a call of the tool needs for itself: calls with the same one do not
     * run together. NULL (also the function): none. */
    const void *(*alone)(const ah_tool *tool);
} ah_tool_vt;

enum { AH_TOOL_MAX_DESCRIPTION = 16 << 10 }; /* bytes of a full one */

typedef enum ah_say { AH_UNSAID, AH_NO, AH_YES } ah_say;

/* Annotations: a tool's properties as its author declares them, for policies and for wires that
 * have a place for them. Nothing here is checked, and nothing follows from it but in ah_drift
 * (untrusted). */
typedef enum ah_annotation {
    AH_DESTRUCTIVE, /* it may delete or overwrite */
    AH_IDEMPOTENT,  /* the same call made twice has no further effect */
    AH_OPEN_WORLD,  /* it reaches what is outside the program: the network, other processes */
    AH_READ_ONLY,   /* it changes nothing */
    AH_UNTRUSTED,   /* it and its description come from outside the program */
    AH_ANNOTATIONS
} ah_annotation;

extern const char *const ah_annotation_names[]; /* in that order; ends with NULL (tool_spec.c) */

enum { AH_TOOL_VERSION = 64 /* bytes of a version */ };

typedef struct ah_tool_def {
    ah_slice name; /* ^[a-z0-9_-]{1,64}$ */
    bool ours;     /* the name may be one of agenthost's own (ah_tool_name_is_ours) */
    bool any_case; /* capital letters are allowed: methods of entities, whose tools have longer
                             names */
    ah_slice description; /* 1-200 ASCII after stripping (seeds 002, 003) */
    ah_slice full_description;
    ah_schema *params;    /* borrowed; object schema; NULL: no parameters */
    ah_schema *result;    /* borrowed; NULL: anything */
    ah_slice result_type; /* name of its type; .p NULL: none */
    ah_slice params_type; /* likewise */
    ah_slice place;    /* where it is declared, for people: "x.lua:4"; .p NULL: agenthost itself */
    ah_slice examples; /* checked JSON: a list of { description, input, output }; .p NULL: none */
    bool parallel;
    bool coerce;      /* arguments as they were surely meant: see ah_check_options */
    bool no_handler;  /* listed; a call is answered with an error */
    bool direct;      /* its result is the run's answer */
    bool keeps_words; /* its description is not to be overridden */
    bool keeps_full;  /* never declared by its brief description (ah_tool_brief) */
    ah_say strict;    /* strict mode at the provider */
    ah_say says[AH_ANNOTATIONS];
    ah_slice version;   /* UTF-8, 1 to AH_TOOL_VERSION bytes; .n 0: none */
    int64_t timeout_ms; /* 0: none of its own */
    size_t memory;      /* bytes; 0: the usual */
    size_t max_result;  /* bytes; 0: the usual */
    const ah_tool_vt *vt;
    ah_value handler; /* taken on success */
} ah_tool_def;

struct ah_tool {
    const ah_mem *mem;
    size_t refs;
    ah_text *name;
    ah_text *brief;    /* the description in at most 200 characters; NULL: stale */
    ah_text *spec;     /* canonical: see ah_spec_make (tool_spec.h) */
    ah_text *examples; /* as given; NULL: none */
    ah_schema *params, *result;
    ah_text *result_type; /* NULL: none */
    ah_text *params_type; /* NULL: none */
    ah_text *place;       /* NULL: not known */
    ah_text *version;     /* NULL: none */
    ah_say says[AH_ANNOTATIONS];
    bool parallel, coerce, no_handler, direct, keeps_words, keeps_full;
    ah_say strict;
    bool stateless; /* of an entity's method: it leaves its instance as it is */
    bool stale;     /* of an earlier session of a loaded conversation */
    unsigned drift; /* and stays so: it is defined otherwise now (ah_spec_differences), which was
                       refused; 0: no */
    int64_t timeout_ms;
    size_t memory, max_result;
    const ah_tool_vt *vt;
    ah_value handler;
    ah_text *gone; /* added to the error of a call if removed or stale; NULL: nothing */
    ah_tool *of;   /* the tool whose handler it borrows; NULL: it is its own */
    ah_tool *full; /* of a tool declared in brief: the same, declared in full; else NULL */
};

/* True for the names of agenthost's own tools: no other tool can have one, so that a call of one of
 * them never reaches another tool. */
bool ah_tool_name_is_ours(ah_slice name);

/* AH_PROMPT_VALIDATION names the field that is wrong. */
ah_status ah_tool_new(const ah_mem *mem, const ah_tool_def *def, ah_tool **out, ah_err *err);
/* A tool of which only the specification is left: {"name","description","parameters"}, checked
 * JSON. It stays declared; a call to it is answered with `stale`. */
ah_status ah_tool_stale(const ah_mem *mem, ah_slice spec, ah_tool **out, ah_err *err);
/* The same tool, described to the model in other words: UTF-8, 1 to 16384 bytes. Words of at most
 * 200 bytes are its brief description, too. */
ah_status ah_tool_describe(ah_tool *t, ah_slice description, ah_tool **out, ah_err *err);
/* The same tool, declared by its brief description and an empty object schema (seed 004); calls are
 * checked against its own schema as ever. A tool that is never brief, or is already, is given as it
 * is. */
ah_status ah_tool_brief(ah_tool *t, ah_tool **out, ah_err *err);
/* The same tool, its calls run by the handler of another one. */
ah_status ah_tool_run_by(ah_tool *t, ah_tool *other, ah_tool **out, ah_err *err);
/* The own parts of a tool that is made from another one; the rest is shared with it. */
typedef struct ah_tool_as {
    ah_slice name;  /* ^[A-Za-z0-9_-]{1,64}$ */
    ah_slice aside; /* UTF-8, behind the description */
    ah_text *gone;  /* see ah_tool; referenced */
    const ah_tool_vt *vt;
    ah_value handler; /* taken on success */
} ah_tool_as;
ah_status ah_tool_derive(ah_tool *t, const ah_tool_as *as, ah_tool **out, ah_err *err);
/* Fails with AH_PROMPT_VALIDATION: two tools have one name. The message has the place of each
 * declaration, and its parameters. */
ah_status ah_tool_twice(const ah_tool *first, const ah_tool *second, ah_err *err);
ah_tool *ah_tool_ref(ah_tool *t);
void ah_tool_unref(ah_tool *t);

#endif
