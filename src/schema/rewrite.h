/* Rewrites schemas for targets with fewer or other keywords. A table states for each keyword
 * whether it is kept, renamed, left out, or described in words in the description. Callers check
 * the resulting values against the original schema, so nothing is lost. It owns nothing. It
 * takes time in the size of the schema times its depth. Callers: wire. */
#ifndef AH_SCHEMA_REWRITE_H
#define AH_SCHEMA_REWRITE_H

#include "base/json.h"

typedef enum ah_rewrite_how {
    AH_REWRITE_KEEP,
    AH_REWRITE_DROP,
    AH_REWRITE_TELL,      /* described in the description */
    AH_REWRITE_ALONE,     /* the value becomes the only one of a list */
    AH_REWRITE_TYPE,      /* adds null if null stands for a missing member */
    AH_REWRITE_REFERENCE, /* moves into an anyOf of its own if there is anything beside it */
    AH_REWRITE_SCHEMA,    /* the value is a schema */
    AH_REWRITE_LIST,      /* schemas in a list; only if it is a list */
    AH_REWRITE_MAP,       /* schemas by name; only if it is an object */
    AH_REWRITE_MEMBERS    /* likewise, schemas of an object's members */
} ah_rewrite_how;

typedef struct ah_rewrite_row {
    ah_rewrite_how how;
    const char *keywords; /* with a blank on each side; NULL: all others, in the last row */
    const char *
        as; /* name in the target; described if the schema has that keyword, too; NULL: unchanged */
    /* condition of this row, otherwise a later row applies; NULL: always */
    bool (*if_it)(ah_slice value);
} ah_rewrite_row;

typedef struct ah_rewrite_target {
    const ah_rewrite_row *rows;
    bool all_required; /* every member is required: an optional one may be null instead */
    bool closed; /* objects that declare members, and do not mention others, allow no others */
    bool typed;  /* enum and const get a type if all their values have the same one */
} ah_rewrite_target;

/* Appends the schema (checked, canonical JSON) rewritten for the target. Failures show in the
 * status of `out`. Parts deeper than a compiled schema can be (schema/schema.h) stay unchanged. */
void ah_schema_rewrite(const ah_rewrite_target *target, ah_slice schema, ah_buf *out);
/* Rewrites schemas by name likewise. */
void ah_schema_rewrite_map(const ah_rewrite_target *target, ah_slice map, ah_buf *out);

/* Visits the schemas of a SCHEMA, LIST, MAP or MEMBERS; for the latter two, keys have the kind
 * AH_JSON_KEY. Stops at the first that returns false; returns true if none did. */
typedef bool ah_rewrite_visit(void *ud, ah_json_token key, ah_slice schema);
bool ah_rewrite_each(ah_rewrite_how how, ah_slice value, ah_rewrite_visit *visit, void *ud);

#endif
