/* A compiled schema, shared by schema.c (which makes it) and schema_check.c (which
 * walks values beside it), and by nobody else.
 *
 * It is a flat program: nodes (one a schema), each with a chain of ops (one a rule),
 * tables of properties sorted by name, values to compare with, and links from ops to
 * other nodes. References are indices; names and values are slices of the canonical
 * text, so a schema is a handful of blocks. */
#ifndef AH_MODEL_SCHEMA_PROGRAM_H
#define AH_MODEL_SCHEMA_PROGRAM_H

#include "model/schema.h"

#define NONE UINT32_MAX /* index of nothing */

/* Types as bits. A value has exactly one of them: whole numbers within 64 bits
 * T_INTEGER (3.0 too), other numbers T_NUMBER, those no double holds T_HUGE. */
enum {
    T_NULL = 1,
    T_BOOLEAN = 2,
    T_INTEGER = 4,
    T_NUMBER = 8,
    T_STRING = 16,
    T_ARRAY = 32,
    T_OBJECT = 64,
    T_HUGE = 128,
    T_NUMERIC = T_INTEGER | T_NUMBER | T_HUGE,
    T_ANY = 255
};

typedef struct type_name {
    const char *name, *words; /* "array", "an array" */
    unsigned types;
} type_name;

enum { TYPE_NAMES = 7 };
extern const type_name ah_schema_types[TYPE_NAMES]; /* what "type" may name */

typedef enum op_code {
    OP_FALSE,
    OP_CONST,
    OP_ENUM,
    OP_MINIMUM,
    OP_MAXIMUM,
    OP_ABOVE,
    OP_BELOW,
    OP_MULTIPLE,
    OP_STRING,
    OP_ARRAY,
    OP_OBJECT,
    OP_ANY_OF
} op_code;

typedef struct range {
    uint32_t first, n;
} range;

typedef struct op {
    op_code code;
    uint32_t next;    /* of the same node */
    range list;       /* CONST, ENUM: values; OBJECT: props; ANY_OF: links */
    size_t min, max;  /* STRING, ARRAY, OBJECT: characters, items, members */
    uint32_t rest;    /* ARRAY: node of the items; OBJECT: of members not named */
    bool named;       /* OBJECT: has "properties" */
    ah_slice literal; /* numeric bounds: as written, and its value */
    ah_json_num num;
} op;

typedef struct node {
    unsigned types;       /* by "type" */
    unsigned accepts;     /* of these, what its anyOf leaves */
    uint32_t first, last; /* ops */
    ah_slice fallback;    /* "default", with its own defaults; .p NULL: none */
} node;

typedef struct prop {
    ah_slice name;
    uint32_t node; /* NONE: required only */
    bool required;
} prop;

typedef struct value {
    ah_slice text; /* canonical */
    ah_json_token t;
    ah_json_num num;
} value;

typedef struct table {
    void *at;
    size_t n, cap;
} table;

struct ah_schema {
    const ah_mem *mem;
    size_t refs;
    ah_text *text;
    ah_buf names; /* those with escapes, unescaped; room is made once, so it never moves */
    table nodes, ops, props, values, links;
    table made; /* ah_text *: defaults that had defaults filled in */
};

static inline node *node_at(const ah_schema *s, size_t i)
{
    return (node *)s->nodes.at + i;
}

static inline op *op_at(const ah_schema *s, size_t i)
{
    return (op *)s->ops.at + i;
}

static inline prop *prop_at(const ah_schema *s, size_t i)
{
    return (prop *)s->props.at + i;
}

static inline value *value_at(const ah_schema *s, size_t i)
{
    return (value *)s->values.at + i;
}

static inline uint32_t link_at(const ah_schema *s, size_t i)
{
    return ((uint32_t *)s->links.at)[i];
}

/* The schema's property of that name, or NONE. */
uint32_t ah_schema_find_prop(const ah_schema *s, range in, ah_slice name);

/* The types some branch of an anyOf accepts. */
unsigned ah_schema_accepted(const ah_schema *s, range branches);

/* The type of a value of this kind (numbers: T_NUMBER), 0 where it begins none. */
unsigned ah_schema_type_of(ah_json_kind kind);

/* A number as schemas see it: whole ones within 64 bits are integers. False when no
 * double holds it. */
bool ah_schema_number(ah_slice literal, ah_json_num *num);

/* ah_schema_check of the schema at `node`. */
ah_status ah_schema_check_at(const ah_schema *s, uint32_t node, ah_slice value, ah_extra extra,
                             ah_faults *faults, ah_buf *with_defaults);

#endif
