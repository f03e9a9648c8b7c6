/* A keyword being compiled, shared by compile.c and members.c. All pointers are borrowed from
 * the compiler. Callers: its floor. */
#ifndef AH_SCHEMA_CLAUSE_H
#define AH_SCHEMA_CLAUSE_H

#include "schema/program.h"

typedef struct keyword keyword;

/* A keyword with its value, in its schema. */
typedef struct clause {
    uint32_t node;
    const keyword *keyword;
    ah_slice value;
    ah_slice schema;
} clause;

struct keyword {
    const char *name;
    unsigned shape;                                     /* types that its value may have */
    ah_status (*compile)(compiler *c, const clause *q); /* NULL: an annotation */
    op_code code;    /* for functions that serve several keywords */
    unsigned drafts; /* drafts that have it */
    unsigned vocabulary;
    const char *instead; /* its replacement in drafts that do not have it; may be NULL */
};

typedef ah_status compile_fn(compiler *c, const clause *q);

/* Compiles the keyword's value, or a part of it by name or index, as a schema; *out is its node. */
ah_status schema_compile_value(compiler *c, const clause *q, uint32_t *out);
ah_status schema_compile_member(compiler *c, const clause *q, ah_slice name, ah_slice text,
                                uint32_t *out);
ah_status schema_compile_item(compiler *c, const clause *q, uint32_t i, ah_slice text,
                              uint32_t *out);
/* Returns the value of another keyword of the same schema; .p NULL: missing, or not a keyword
 * here. */
ah_slice schema_beside(const compiler *c, const clause *q, const char *name);
ah_status schema_refuse_clause(compiler *c, const clause *q, const char *want);
/* Adds an op to the node; NONE: out of memory. */
uint32_t schema_new_op(compiler *c, uint32_t i, op_code code);
/* Returns the node's op with this code, and adds it if missing. */
uint32_t schema_op_of(compiler *c, uint32_t i, op_code code);
size_t schema_count_children(ah_slice container);
/* Unescapes a key or string of the canonical text; *out lives as long as the schema. */
bool schema_name_of(compiler *c, ah_json_token t, ah_slice *out);
/* Sets *text to the text of a keyword whose value is a string. */
bool schema_clause_text(compiler *c, const clause *q, ah_slice *text);

/* Keywords of members.c */
compile_fn schema_compile_pattern, schema_compile_format, schema_compile_pattern_properties,
    schema_compile_props, schema_compile_dependencies;

#endif
