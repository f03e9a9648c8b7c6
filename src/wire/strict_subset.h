/* Decides which schemas a provider accepts as strict, that is, can guarantee while the model
 * writes. A request with one unsupported schema fails as a whole, so only schemas that are surely
 * supported fit. Changes nothing and allocates nothing; strict.c and adapter.c call it.
 * Callers: its floor. */
#ifndef AH_WIRE_STRICT_SUBSET_H
#define AH_WIRE_STRICT_SUBSET_H

#include "schema/rewrite.h"

typedef enum ah_strict_rules {
    AH_STRICT_NONE,
    /* The guide "Structured model outputs": objects that allow no other members and require all
     * that they name; at most 10 levels, 5000 properties, 1000 enum values and 120000 bytes of
     * names and values. */
    AH_STRICT_OPENAI,
    /* Anthropic's "Structured outputs": members may be optional, but their number is limited for
     * all tools of a request together. References are not supported. */
    AH_STRICT_ANTHROPIC
} ah_strict_rules;

/* The parts of a schema that count against the limits of a request. */
typedef struct ah_strict_weight {
    size_t optional; /* optional members */
    size_t unions;   /* anyOf, and lists of types */
} ah_strict_weight;

/* `schema` is checked JSON. *weight may be NULL; it is set if the schema fits. */
bool ah_strict_fits(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight);

/* True if one request may have this weight and this number of strict tools. */
bool ah_strict_allows(ah_strict_rules rules, size_t tools, const ah_strict_weight *weight);

#endif
