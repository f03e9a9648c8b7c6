/* Schemas in the words of others, who know fewer keywords or other ones. A table says what becomes
 * of each keyword: it is kept, renamed, left out, or told in words in the description. Whoever asks
 * another for values by such a schema checks them against the schema as it was, so nothing is lost
 * by it.
 *
 * Takes time in the size of the schema times its depth. */
#ifndef AH_SCHEMA_REWRITE_H
#define AH_SCHEMA_REWRITE_H

#include "base/json.h"

typedef enum ah_rewrite_how {
    AH_REWRITE_KEEP,
    AH_REWRITE_DROP,
    AH_REWRITE_TELL,      /* in the description */
    AH_REWRITE_ALONE,     /* the value as the only one of a list */
    AH_REWRITE_TYPE,      /* with null beside it where that stands for absent */
    AH_REWRITE_REFERENCE, /* into an anyOf of its own where something stands beside it */
    AH_REWRITE_SCHEMA,    /* the value is a schema */
    AH_REWRITE_LIST,      /* of schemas; only where it is a list */
    AH_REWRITE_MAP,       /* of schemas by name; only where it is an object */
    AH_REWRITE_MEMBERS    /* likewise, those of an object's members */
} ah_rewrite_how;

typedef struct ah_rewrite_row {
    ah_rewrite_how how;
    const char *keywords; /* each between two blanks; NULL: any others, in the last row */
    const char *as;       /* their name there, told where the schema has it, too; NULL: the same */
    bool (*if_it)(ah_slice value); /* only then, else a later row says it; NULL: always */
} ah_rewrite_row;

typedef struct ah_rewrite_target {
    const ah_rewrite_row *rows;
    bool all_required; /* every member has to be there: one that need not may be null instead */
    bool closed;       /* objects that name members and say nothing of others allow no others */
    bool typed; /* enum and const have a type beside them where all their values are of one */
} ah_rewrite_target;

/* The schema (checked, canonical JSON) in the target's words, appended to `out`, whose status tells
 * of a failure. What is deeper than a compiled schema can be (schema/schema.h) stays as it is. */
void ah_schema_rewrite(const ah_rewrite_target *target, ah_slice schema, ah_buf *out);
/* The same of schemas by name. */
void ah_schema_rewrite_map(const ah_rewrite_target *target, ah_slice map, ah_buf *out);

/* Visits the schemas of a SCHEMA, LIST, MAP or MEMBERS; keys are of kind AH_JSON_KEY in the latter
 * two. Ends at the first that says false; returns if none did. */
typedef bool ah_rewrite_visit(void *ud, ah_json_token key, ah_slice schema);
bool ah_rewrite_each(ah_rewrite_how how, ah_slice value, ah_rewrite_visit *visit, void *ud);

#endif
