/* The inside of a prompt, for prompt.c (making), prompt_params.c (values), prompt_render.c and
 * overrides.c.
 *
 * The tree is flat: nodes depth-first, each with the index after its last descendant, so that a
 * walk is a loop and skipping a subtree an assignment. Callers: its floor. */
#ifndef AH_PROMPT_PROMPT_NODES_H
#define AH_PROMPT_PROMPT_NODES_H

#include "model/registry.h"
#include "prompt/prompt.h"

#define NO_NODE UINT32_MAX

typedef struct prompt_node {
    ah_section *section; /* as declared */
    uint32_t parent;     /* NO_NODE: none */
    uint32_t end;        /* after the last descendant */
    uint32_t depth;      /* from 0 */
    ah_text *path;
    ah_schema *params;           /* its own or an ancestor's; NULL: none. Borrowed */
    ah_template *body, *summary; /* in use, overrides applied */
    ah_switch summarized;        /* in use; p belongs to the section */
    size_t first_tool;           /* in the registry; section->n_tools of them */
} prompt_node;

struct ah_prompt {
    const ah_mem *mem;
    size_t refs;
    ah_text *ns, *key, *id;
    ah_section **section; /* at the top level */
    size_t n_sections;
    prompt_node *node;
    uint32_t n;
    uint32_t *index; /* by path, open addressing: node + 1; 0: free */
    size_t n_index;  /* a power of two */
    ah_tool **own;   /* tools in use, while the registry is made */
    ah_registry tools;
    ah_schema *output;
    ah_value resources;
    ah_prompt *of; /* the overridden prompt; NULL: none */
};

typedef enum node_state { NODE_OFF, NODE_FULL, NODE_SUMMARY } node_state;

struct ah_binding {
    const ah_mem *mem;
    size_t refs;
    ah_prompt *prompt;
    ah_text *given;
    ah_slice *own;   /* for each node: the object given for it; .p NULL: none */
    ah_text **value; /* for each node: its parameters; NULL: not yet needed, or none declared */
    uint8_t *state;  /* node_state of each, as last computed */
    ah_rendered_prompt *last;
};

static inline ah_slice node_path(const ah_prompt *p, uint32_t i)
{
    return ah_text_slice(p->node[i].path);
}

/* Returns the node of a path, or NO_NODE. */
uint32_t prompt_find(const ah_prompt *p, ah_slice path);

/* Fails with "section 'a.b': ..." and section_path in the details. */
ah_status prompt_refuse(const ah_prompt *p, uint32_t i, ah_status st, ah_err *err, const char *fmt,
                        ...) __attribute__((format(printf, 5, 6)));

/* prompt_params.c: finds the objects given for sections, and checks that each name is declared. */
ah_status binding_scan(ah_binding *b, ah_err *err);
/* Returns the parameters of a node, with defaults; valid as long as the binding. */
ah_status binding_values(ah_binding *b, uint32_t i, ah_slice *out, ah_err *err);

#endif
