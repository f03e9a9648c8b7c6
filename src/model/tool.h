/* A tool: its definition for the model, and how it is called. Immutable and reference-counted;
 * it owns its texts and its handler, and holds references to its schemas.
 * Callers: its floor, floors above. */
#ifndef AH_MODEL_TOOL_H
#define AH_MODEL_TOOL_H

#include "schema/schema.h"

struct ah_entity; /* model/entity.h */

/* A live value from outside the core (a Lua function, a C pointer). */
typedef struct ah_value {
    const struct ah_value_vt {
        void (*release)(void *p);
        /* Returns the entities that the value is, or contains as a list, one per call; *at
         * begins at 0, and out->of stays NULL at the end. AH_INVALID_TOOL_PROVIDER: this one is
         * invalid, and the next call continues. Any other failure ends it. May be NULL: no
         * entities. */
        ah_status (*entity)(void *p, size_t *at, struct ah_entity *out, ah_err *err);
    } * vt;
    void *p;
} ah_value;

void ah_value_release(ah_value *v);    /* releases and empties it; an empty one is allowed */
ah_value ah_value_json(ah_text *json); /* for a tool of agenthost: p is the text, which is taken */
bool ah_value_is_json(const ah_value *v);

enum {
    AH_TOOL_MEMORY = 256 << 20,      /* default limit of memory for one call, in bytes */
    AH_TOOL_LEAST_MEMORY = 64 << 10, /* smallest limit */
    AH_TOOL_RESULT = 64 << 10,       /* bytes of a result for the model */
    AH_TOOL_LEAST_RESULT = 1 << 10
};

typedef struct ah_tool ah_tool;
struct ah_call; /* run/call.h */

/* Starts the handler of one call. The outcome arrives through ah_call_done, during start or
 * later, exactly once; never after `stop`. stop is NULL if the outcome always arrives during start.
 * The driver calls both, never inside another call of the core. */
typedef struct ah_tool_vt {
    void (*start)(const ah_tool *tool, struct ah_call *call);
    void (*stop)(const ah_tool *tool, struct ah_call *call);
    /* Returns the object that a call of the tool uses exclusively: calls with the same object do
     * not run together. NULL (also as the function): none. */
    const void *(*alone)(const ah_tool *tool);
} ah_tool_vt;

enum { AH_TOOL_MAX_DESCRIPTION = 16 << 10 }; /* bytes of a full description */

typedef enum ah_say { AH_UNSAID, AH_NO, AH_YES } ah_say;

/* Annotations: properties that a tool's author declares, for policies and for wires that carry
 * them. Nothing checks them, and only ah_drift uses one (untrusted). */
typedef enum ah_annotation {
    AH_DESTRUCTIVE, /* it may delete or overwrite */
    AH_IDEMPOTENT,  /* a repeated call has no further effect */
    AH_OPEN_WORLD,  /* it reaches outside the program: the network, other processes */
    AH_READ_ONLY,   /* it changes nothing */
    AH_UNTRUSTED,   /* the tool and its description come from outside the program */
    AH_ANNOTATIONS
} ah_annotation;

extern const char *const ah_annotation_names[]; /* in that order, ending with NULL (tool_spec.c) */

enum { AH_TOOL_VERSION = 64 /* bytes of a version */ };

/* The handling of a call whose handler had begun when the program ended. */
typedef enum ah_on_lost {
    AH_LOST_TELL,  /* the model reads that its outcome is unknown */
    AH_LOST_RETRY, /* the handler begins again, with the same idempotency key */
    AH_LOST_ASK,   /* a person decides */
    AH_LOST_SCRIPT /* a function of the tool finds it out */
} ah_on_lost;

extern const char *const ah_on_lost_names[]; /* in that order, ending with NULL */

typedef struct ah_tool_def {
    ah_slice name;        /* ^[a-z0-9_-]{1,64}$ */
    bool ours;            /* the name may be reserved for agenthost (ah_tool_name_is_ours) */
    bool any_case;        /* capital letters are allowed, for methods of entities */
    ah_slice description; /* 1-200 ASCII after stripping (seeds 002, 003) */
    ah_slice full_description;
    ah_schema *params;    /* borrowed schema of an object; NULL: no parameters */
    ah_schema *result;    /* borrowed; NULL: anything */
    ah_slice result_type; /* name of the type of result; .p NULL: none */
    ah_slice params_type; /* name of the type of params; .p NULL: none */
    ah_slice place; /* place of the declaration, for people: "x.lua:4"; .p NULL: agenthost itself */
    ah_slice examples; /* checked JSON: a list of { description, input, output }; .p NULL: none */
    bool parallel;
    bool coerce;      /* wrong types are coerced: see ah_check_options */
    bool no_handler;  /* declared only: a call fails */
    bool direct;      /* its result is the run's answer */
    bool background;  /* a call of a model is answered at once, and its result follows */
    bool keeps_words; /* its description cannot be overridden */
    bool durable;     /* its handler is entered again after the end of its process */
    ah_on_lost on_lost;
    bool keeps_full; /* never declared by its brief description (ah_tool_brief) */
    ah_say strict;   /* strict mode at the provider */
    ah_say says[AH_ANNOTATIONS];
    ah_slice version;   /* UTF-8, 1 to AH_TOOL_VERSION bytes; .n 0: none */
    int64_t timeout_ms; /* 0: none */
    size_t memory;      /* bytes; 0: the default */
    size_t max_result;  /* bytes; 0: the default */
    const ah_tool_vt *vt;
    ah_value handler; /* taken on success */
} ah_tool_def;

struct ah_tool {
    const ah_mem *mem;
    size_t refs;
    ah_text *name;
    ah_text *brief;    /* description in at most 200 characters; NULL: stale */
    ah_text *spec;     /* canonical: see ah_spec_make (tool_spec.h) */
    ah_text *examples; /* as given; NULL: none */
    ah_schema *params, *result;
    ah_text *result_type; /* NULL: none */
    ah_text *params_type; /* NULL: none */
    ah_text *place;       /* NULL: not known */
    ah_text *version;     /* NULL: none */
    ah_say says[AH_ANNOTATIONS];
    bool parallel, coerce, no_handler, direct, background, keeps_words, keeps_full;
    ah_say strict;
    bool durable;
    ah_on_lost on_lost;
    bool stateless; /* of an entity's method: it does not change its instance */
    bool stale;     /* from an earlier session of a loaded conversation */
    unsigned drift; /* stale for good: its definition changed (ah_spec_differences), and the change
                       was refused; 0: no */
    int64_t timeout_ms;
    size_t memory, max_result;
    const ah_tool_vt *vt;
    ah_value handler;
    ah_text *gone; /* added to errors of calls if removed or stale; NULL: nothing */
    ah_tool *of;   /* tool whose handler it borrows; NULL: its own handler */
    ah_tool *full; /* of a tool declared in brief: the same tool in full; otherwise NULL */
};

/* True for names of agenthost's own tools. No other tool can have one, so a call of such a name
 * never reaches another tool. */
bool ah_tool_name_is_ours(ah_slice name);

/* Fails with AH_PROMPT_VALIDATION, which names the wrong field. */
ah_status ah_tool_new(const ah_mem *mem, const ah_tool_def *def, ah_tool **out, ah_err *err);
/* Makes a tool from a specification alone: {"name","description","parameters"}, checked JSON. It
 * stays declared; a call of it fails as `stale`. */
ah_status ah_tool_stale(const ah_mem *mem, ah_slice spec, ah_tool **out, ah_err *err);
/* Makes the same tool with another description: UTF-8, 1 to 16384 bytes. One of at most 200 bytes
 * is also its brief description. */
ah_status ah_tool_describe(ah_tool *t, ah_slice description, ah_tool **out, ah_err *err);
/* Makes the same tool declared by its brief description and an empty object schema (seed 004);
 * calls are still checked against its own schema. A tool that is never brief, or already is, is
 * returned itself. */
ah_status ah_tool_brief(ah_tool *t, ah_tool **out, ah_err *err);
/* Makes the same tool, with the handler of another one. */
ah_status ah_tool_run_by(ah_tool *t, ah_tool *other, ah_tool **out, ah_err *err);
/* The own parts of a tool made from another one; it shares the rest. */
typedef struct ah_tool_as {
    ah_slice name;  /* ^[A-Za-z0-9_-]{1,64}$ */
    ah_slice aside; /* UTF-8, after the description */
    ah_text *gone;  /* see ah_tool; referenced */
    const ah_tool_vt *vt;
    ah_value handler; /* taken on success */
} ah_tool_as;
ah_status ah_tool_derive(ah_tool *t, const ah_tool_as *as, ah_tool **out, ah_err *err);
/* Fails with AH_PROMPT_VALIDATION, because two tools have one name. The message has each
 * declaration's place and parameters. */
ah_status ah_tool_twice(const ah_tool *first, const ah_tool *second, ah_err *err);
ah_tool *ah_tool_ref(ah_tool *t);
void ah_tool_unref(ah_tool *t);

#endif
