/* Tools that wait to be found: a set of hundreds of which the model is told nothing at first but
 * how to look for them. Either the provider looks among them (wire/lower.h), or the model calls
 * search_tools, which ranks them by the words of their names, descriptions and arguments. What is
 * found is added to the conversation like any other tool (run/inject.h). The Lua floor makes sets,
 * and gives tool and strategy to conversations.
 *
 * A set is immutable and may serve many conversations. Which wires do what stands in
 * docs/reference/search.md. */
#ifndef AH_RUN_SEARCH_H
#define AH_RUN_SEARCH_H

#include "run/inject.h"
#include "run/search_index.h"

enum {
    AH_SEARCH_MAX = 5,           /* tools in an answer, where nothing else is said */
    AH_SEARCH_MOST = 20,         /* that may be said */
    AH_SEARCH_TOOLS_MOST = 20000 /* in a set */
};

/* The rules of a set; all of it may be 0. */
typedef struct ah_search_rules {
    int max;            /* tools in an answer; 0: AH_SEARCH_MAX */
    const char *who;    /* "provider", "here"; NULL: the provider where the model does that */
    const char *method; /* "regex": where the provider has several ways; NULL: its usual one */
} ah_search_rules;

typedef struct ah_search ah_search;

/* AH_PROMPT_VALIDATION for two tools of a name. `who` and `method` are literals. */
ah_status ah_search_new(const ah_mem *mem, const ah_search_rules *rules, ah_tool *const *tool,
                        size_t n, ah_search **out, ah_err *err);
ah_search *ah_search_ref(ah_search *s);
void ah_search_unref(ah_search *s);

/* search_tools { query } over this set; it borrows nothing. */
ah_status ah_search_tool(ah_search *s, ah_tool **out, ah_err *err);

size_t ah_search_count(const ah_search *s);
ah_tool *ah_search_find(const ah_search *s, ah_slice name); /* borrowed, or NULL */

/* Says in the transcript which of its tools are not yet known there as waiting
 * (docs/reference/transcript.md, tools_deferred); nothing where they all are. `strategy` is whose
 * set it is. AH_PROMPT_VALIDATION where a name is that of another tool in the registry. */
ah_status ah_search_declare(const ah_search *s, const char *strategy, const ah_registry *r,
                            ah_transcript *t, ah_err *err);

/* The strategy over this set, which it borrows, as the name is: what the provider has found in it
 * is added, and a tool of it that is called is found by that. */
ah_strategy ah_search_strategy(ah_search *s, const char *name);

#endif
