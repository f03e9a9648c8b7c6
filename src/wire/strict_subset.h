/* The schemas that providers take where strict is asked for: those they can make sure of while
 * the model writes. A request with a schema that strict refuses fails as a whole, so what is
 * not surely supported does not fit. Nothing is changed here; strict.c and adapter.c ask it. */
#ifndef AH_WIRE_STRICT_SUBSET_H
#define AH_WIRE_STRICT_SUBSET_H

#include "schema/rewrite.h"

typedef enum ah_strict_rules {
    AH_STRICT_NONE,
    /* The guide "Structured model outputs": objects that allow no other members and require all
     * they name, at most 10 levels, 5000 properties, 1000 values of enums and 120000 bytes of
     * names and values. */
    AH_STRICT_OPENAI,
    /* "Structured outputs" of Anthropic: members need not be required, but how many are not is
     * limited for all tools of a request together. References are left out. */
    AH_STRICT_ANTHROPIC
} ah_strict_rules;

/* The parts of a schema that count against the limits of a request. */
typedef struct ah_strict_weight {
    size_t optional; /* members that need not be there */
    size_t unions;   /* anyOf, and lists of types */
} ah_strict_weight;

/* `schema` is checked JSON; *weight may be NULL, and is filled where the schema fits. */
bool ah_strict_fits(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight);

/* True if so much may be in one request, that many strict tools included. */
bool ah_strict_allows(ah_strict_rules rules, size_t tools, const ah_strict_weight *weight);

#endif
