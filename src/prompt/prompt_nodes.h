/* The inside of a prompt, for prompt.c (making), prompt_params.c (values), prompt_render.c
 * and overrides.c; nobody else includes it.
 *
 * The tree is kept flat: nodes depth-first, each with the index past its last descendant,
 * so that going through it is a loop and leaving a subtree out is an assignment. */
#ifndef AH_PROMPT_PROMPT_NODES_H
#define AH_PROMPT_PROMPT_NODES_H

#include "model/registry.h"
#include "prompt/prompt.h"

#define NO_NODE UINT32_MAX

typedef struct prompt_node {
    ah_section *section; /* as declared */
    uint32_t parent;     /* NO_NODE: none */
    uint32_t end;        /* past the last descendant */
    uint32_t depth;      /* from 0 */
    ah_text *path;
    ah_schema *params;           /* of its own or of those around it; NULL: none. Borrowed */
    ah_template *body, *summary; /* in force */
    ah_switch summarized;        /* in force; p is the section's */
    size_t first_tool;           /* in the registry; section->n_tools of them */
} prompt_node;

struct ah_prompt {
    const ah_mem *mem;
    size_t refs;
    ah_text *ns, *key, *id;
    ah_section **section; /* those at the top */
    size_t n_sections;
    prompt_node *node;
    uint32_t n;
    uint32_t *index; /* by path, open addressing: node + 1, 0 free */
    size_t n_index;  /* a power of two */
    ah_tool **own;   /* the tools in force, while the registry is being made */
    ah_registry tools;
    ah_schema *output;
    ah_value resources;
    ah_prompt *of; /* that this one overrides; NULL: none */
};

typedef enum node_state { NODE_OFF, NODE_FULL, NODE_SUMMARY } node_state;

struct ah_binding {
    const ah_mem *mem;
    size_t refs;
    ah_prompt *prompt;
    ah_text *given;
    ah_slice *own;   /* for each node: the object given for it; .p NULL: none */
    ah_text **value; /* for each node: its parameters; NULL: not yet asked for, or none declared */
    uint8_t *state;  /* node_state of each, as last looked at */
    ah_rendered_prompt *last;
};

static inline ah_slice node_path(const ah_prompt *p, uint32_t i)
{
    return ah_text_slice(p->node[i].path);
}

/* The node of a path, or NO_NODE. */
uint32_t prompt_find(const ah_prompt *p, ah_slice path);

/* "section 'a.b': ..." with section_path in the details. */
ah_status prompt_refuse(const ah_prompt *p, uint32_t i, ah_status st, ah_err *err, const char *fmt,
                        ...) __attribute__((format(printf, 5, 6)));

/* prompt_params.c: where the given objects are, and whether each name is declared. */
ah_status binding_scan(ah_binding *b, ah_err *err);
/* The parameters of a node, with defaults; valid as long as the binding. */
ah_status binding_values(ah_binding *b, uint32_t i, ah_slice *out, ah_err *err);

#endif
