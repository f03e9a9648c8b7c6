/* Sections: the parts of a prompt, each with its text, tools and children. Immutable and
 * reference-counted; a section may be in several prompts. It owns its texts and holds references
 * to its tools and children. ah_prompt_new checks what needs all sections.
 * Callers: its floor, lua. */
#ifndef AH_PROMPT_SECTION_H
#define AH_PROMPT_SECTION_H

#include "model/tool.h"
#include "prompt/template.h"
#include "state/visibility.h"

enum {
    AH_MAX_SECTION_DEPTH = 32,
    AH_MAX_SECTIONS = 10000, /* of a prompt */
    AH_MAX_KEY = 64,
    AH_MAX_TITLE = 200
};

/* A boolean that is fixed, or computed at each rendering. */
typedef struct ah_switch {
    bool on; /* if vt is NULL */
    const struct ah_switch_vt {
        /* params: the section's parameters, a checked object. */
        ah_status (*ask)(void *p, ah_slice params, bool *on, ah_err *err);
        void (*release)(void *p);
    } * vt;
    void *p;
} ah_switch;

typedef struct ah_section_def {
    ah_slice key;         /* [a-z0-9][a-z0-9_-]{0,63}; .p NULL: derived from the title */
    ah_slice title;       /* one line; .p NULL: no heading */
    ah_slice body;        /* template; .p NULL: none */
    ah_slice summary;     /* template; .p NULL: none, and never summarized */
    ah_schema *params;    /* borrowed; NULL: those of its parent */
    ah_switch enabled;    /* p is taken on success */
    ah_switch summarized; /* likewise */
    bool keeps_words;     /* its text and visibility cannot be overridden */
    ah_tool *const *tool; /* borrowed, as the children */
    size_t n_tools;
    struct ah_section *const *child;
    size_t n_children;
} ah_section_def;

typedef struct ah_section {
    const ah_mem *mem;
    size_t refs;
    ah_text *key, *title; /* title NULL: none */
    ah_template *body, *summary;
    ah_schema *params;
    ah_switch enabled, summarized;
    bool keeps_words;
    ah_tool **tool;
    size_t n_tools;
    struct ah_section **child;
    size_t n_children;
    size_t height; /* levels, its own included */
    size_t total;  /* sections, itself included */
} ah_section;

/* Fails with AH_PROMPT_VALIDATION, with the key as section_path in the details. */
ah_status ah_section_new(const ah_mem *mem, const ah_section_def *def, ah_section **out,
                         ah_err *err);
ah_section *ah_section_ref(ah_section *s);
void ah_section_unref(ah_section *s); /* NULL does nothing */

/* Returns "properties" of a parameters' schema; .p NULL: none. */
ah_slice ah_section_params_of(const ah_schema *params);

#endif
