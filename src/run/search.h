/* Sets of tools that the model can search. The model sees only how to search the set: either the
 * provider searches it (wire/lower.h), or the model calls search_tools, which ranks the tools by
 * the words of their names, descriptions and arguments. A found tool is added to the conversation
 * like any other (run/inject.h). A set references its tools, is reference-counted and immutable,
 * and may serve many conversations. docs/reference/search.md lists what each wire does.
 * Callers: lua. */
#ifndef AH_RUN_SEARCH_H
#define AH_RUN_SEARCH_H

#include "run/inject.h"
#include "run/search_index.h"

enum {
    AH_SEARCH_MAX = 5,           /* tools in an answer, by default */
    AH_SEARCH_MOST = 20,         /* limit of tools in an answer */
    AH_SEARCH_TOOLS_MOST = 20000 /* in a set */
};

/* The rules of a set; each may be 0. */
typedef struct ah_search_rules {
    int max;            /* tools in an answer; 0: AH_SEARCH_MAX */
    const char *who;    /* "provider" or "here"; NULL: the provider if the model supports it */
    const char *method; /* "regex" for providers with several methods; NULL: their default */
} ah_search_rules;

typedef struct ah_search ah_search;

/* Returns AH_PROMPT_VALIDATION if two tools have the same name. `who` and `method` are literals. */
ah_status ah_search_new(const ah_mem *mem, const ah_search_rules *rules, ah_tool *const *tool,
                        size_t n, ah_search **out, ah_err *err);
/* Both allow NULL. */
ah_search *ah_search_ref(ah_search *s);
void ah_search_unref(ah_search *s);

/* The tool search_tools { query } over this set; it holds a reference to the set. */
ah_status ah_search_tool(ah_search *s, ah_tool **out, ah_err *err);

size_t ah_search_count(const ah_search *s);
ah_tool *ah_search_find(const ah_search *s, ah_slice name); /* borrowed, or NULL */

/* Appends a tools_deferred entry (docs/reference/transcript.md) with the tools of the set that the
 * transcript does not list yet; nothing if it lists all. `strategy` is the name of the set's
 * strategy. Returns AH_PROMPT_VALIDATION if another tool in the registry has the name of one of
 * them. */
ah_status ah_search_declare(const ah_search *s, const char *strategy, const ah_registry *r,
                            ah_transcript *t, ah_err *err);

/* The strategy of this set; set and name are borrowed. It adds the tools that the provider has
 * found in the set, and any tool of the set that is called. */
ah_strategy ah_search_strategy(ah_search *s, const char *name);

#endif
