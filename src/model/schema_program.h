/* The inside of a compiled schema, shared by the schema_*.c files and by nobody else.
 *
 * A schema becomes a flat program: nodes (one a schema), each with a chain of ops (one
 * a rule), tables of properties sorted by name, values to compare with, and links from
 * ops to other nodes. References are indices, names and values are slices of canonical
 * text, so a schema is a handful of blocks. Nodes stand in the order of the text. */
#ifndef AH_MODEL_SCHEMA_PROGRAM_H
#define AH_MODEL_SCHEMA_PROGRAM_H

#include "base/work.h"
#include "model/schema.h"
#include "model/schema_pattern.h"

enum {
    SCHEMA_DEPTH = 64,       /* schemas within schemas: bounds the recursion of the compiler */
    SCHEMA_TEXT = 1 << 20,   /* bytes of a schema, and of a default with its own defaults */
    SCHEMA_STEPS = 20000000, /* of a check, about a tenth of a microsecond each: schemas entered,
                                members and items passed, and what a rule costs beyond that */
    SCHEMA_POINTER = 512,    /* bytes in a fault */
    SCHEMA_MESSAGE = 1024,   /* bytes in a fault, and in a refusal */
    SCHEMA_LISTED = 12,      /* values or names in a message */
    SCHEMA_FAULT_ROOM = AH_MAX_FAULTS * (SCHEMA_POINTER + SCHEMA_MESSAGE + 8)
};

#define NONE   UINT32_MAX /* index of nothing */
#define TWO_63 9223372036854775808.0

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
    OP_PATTERN,
    OP_FORMAT,
    OP_ARRAY,
    OP_UNIQUE,
    OP_CONTAINS,
    OP_OBJECT,
    OP_NAMES,
    OP_DEPEND_NAMES,  /* one a property that others depend on */
    OP_DEPEND_SCHEMA, /* the same */
    OP_REF,
    OP_DYNAMIC_REF,
    OP_ALL_OF,
    OP_ANY_OF,
    OP_ONE_OF,
    OP_NOT,
    OP_IF,
    OP_OTHER_ITEMS,     /* unevaluatedItems: behind what may evaluate them */
    OP_OTHER_PROPERTIES /* unevaluatedProperties: the same */
} op_code;

typedef struct range {
    uint32_t first, n;
} range;

/* A number as written, and its value; whole numbers within 64 bits are integers. */
typedef struct number {
    ah_slice literal;
    ah_json_num n;
} number;

typedef struct op {
    op_code code;
    uint32_t next;    /* of the same node */
    range list;       /* CONST, ENUM: values; OBJECT, DEPEND_NAMES: props; ARRAY, *_OF: links */
    range patterns;   /* OBJECT: links, by two: pattern, node */
    size_t min, max;  /* STRING, ARRAY, OBJECT, CONTAINS: characters, items, members */
    uint32_t rest;    /* node of the items, of the members not named, or the only one of the rule;
                         PATTERN: the pattern; FORMAT: the format */
    uint32_t yes, no; /* IF: nodes */
    bool named;       /* OBJECT: has "properties" or "patternProperties" */
    ah_slice literal; /* PATTERN, FORMAT, DEPEND_*: text or name; DYNAMIC_REF: anchor, or .p NULL */
    number num;       /* bounds, MULTIPLE */
} op;

typedef enum node_kind {
    NODE_ANYTHING, /* has no rules */
    NODE_PLAIN,    /* its rules look at the value alone: they are checked without a frame */
    NODE_ALIAS,    /* only leads to another node of its resource */
    NODE_VISITED
} node_kind;

typedef struct node {
    ah_slice text;        /* in its document */
    unsigned types;       /* by "type" */
    unsigned accepts;     /* of these, what its in-place schemas leave, as far as is known */
    uint32_t first, last; /* ops */
    uint32_t resource;
    ah_slice fallback; /* "default", with its own defaults; .p NULL: none */
    bool others;       /* has an OP_OTHER_*: what was evaluated is kept book of */
    bool composed;     /* several schemas in place say what members there are */
    node_kind kind;
} node;

typedef struct prop {
    ah_slice name;
    uint32_t node; /* NONE: required only */
    bool required;
} prop;

typedef struct value {
    ah_slice text; /* canonical */
    ah_json_token t;
    number num;
} value;

typedef struct document {
    ah_text *text; /* canonical */
    ah_slice uri;  /* "" where it was not said */
    range nodes;
} document;

/* A schema with an address of its own. */
typedef struct resource {
    ah_slice uri; /* absolute, without fragment; "" where none was said */
    uint32_t node;
} resource;

typedef struct anchor {
    uint32_t resource;
    ah_slice name;
    uint32_t node;
    bool dynamic;
} anchor;

typedef struct table {
    void *at;
    size_t n, cap;
} table;

struct ah_schema {
    const ah_mem *mem;
    size_t refs;
    ah_schema_cache *cache; /* that knows it, or NULL */
    ah_schema *same_row;
    uint64_t hash;
    bool formats;
    ah_buf names; /* those with escapes, unescaped; room is made once, so it never moves */
    table documents, nodes, ops, props, values, links, resources, anchors;
    table patterns; /* ah_pattern * */
    table made;     /* ah_text *: addresses, and defaults that had defaults filled in */
};

static inline document *document_at(const ah_schema *s, size_t i)
{
    return (document *)s->documents.at + i;
}

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

static inline resource *resource_at(const ah_schema *s, size_t i)
{
    return (resource *)s->resources.at + i;
}

static inline anchor *anchor_at(const ah_schema *s, size_t i)
{
    return (anchor *)s->anchors.at + i;
}

static inline ah_pattern *pattern_at(const ah_schema *s, size_t i)
{
    return ((ah_pattern **)s->patterns.at)[i];
}

static inline uint32_t link_at(const ah_schema *s, size_t i)
{
    return ((uint32_t *)s->links.at)[i];
}

/* n zeroed items at the end; the index of the first, or NONE when out of memory. */
uint32_t schema_extend(const ah_mem *mem, table *t, size_t n, size_t item);
/* The prop of this name in a sorted range, or NONE. */
uint32_t schema_find_prop(const ah_schema *s, range in, ah_slice name);
uint32_t schema_find_op(const ah_schema *s, uint32_t node, op_code code);
/* A copy that lives as long as the schema; .p NULL when out of memory. */
ah_slice schema_keep(ah_schema *s, ah_slice text);
/* The anchor of this name in the resource, or NULL. Anchors are sorted. */
const anchor *schema_find_anchor(const ah_schema *s, uint32_t resource, ah_slice name);
int schema_compare_anchors(const void *a, const void *b);

/* Sharing (schema_cache.c) */

/* A reference to the schema of the same documents and options, or NULL; sets like->hash. */
ah_schema *schema_shared(const ah_schema_cache *cache, ah_schema *like);
/* Enters it, where there is room. */
void schema_share(ah_schema_cache *cache, ah_schema *s);
void schema_unshare(ah_schema *s);

/* Numbers (schema_number.c) */

/* False when no double holds it; n is usable as the nearest thing all the same. */
bool schema_number(ah_slice literal, number *out);
/* Exact, by the digits. */
int schema_compare_numbers(number a, number b);
/* Exact, by the digits. `of` is above 0 and has at most 18 significant digits. */
bool schema_is_multiple(ah_slice literal, ah_slice of);
bool schema_is_divisor(ah_slice literal);

/* Words (schema_words.c) */

/* One part of a text of bounded size: what does not fit is cut at a character. */
size_t schema_begin_part(ah_buf *b, size_t max);
ah_slice schema_end_part(ah_buf *b, size_t start);
void schema_put_key(ah_buf *b, ah_slice name); /* "/" and the name with its ~ and / escaped */
/* A value's text or a name, on one line, cut. */
void schema_put_found(ah_buf *b, ah_slice text);
/* "a string, a number or null" */
void schema_put_types(ah_buf *b, unsigned types);
unsigned schema_type_named(ah_json_token t);                  /* 0: none of this name */
const char *schema_type_name(size_t i);                       /* NULL after the last */
static inline unsigned schema_type_of_kind(ah_json_kind kind) /* numbers: T_NUMBER */
{
    static const unsigned char types[] = {
        [AH_JSON_NULL] = T_NULL,     [AH_JSON_FALSE] = T_BOOLEAN, [AH_JSON_TRUE] = T_BOOLEAN,
        [AH_JSON_NUMBER] = T_NUMBER, [AH_JSON_STRING] = T_STRING, [AH_JSON_ARRAY] = T_ARRAY,
        [AH_JSON_OBJECT] = T_OBJECT, [AH_JSON_OBJECT_END] = 0,
    };

    return types[kind];
}

/* Compiling (schema_compile.c, schema_refs.c, schema_link.c) */

typedef struct compiler {
    ah_schema *s;
    int depth;
    bool draft7;
    uint32_t resource;
    table refs; /* reference */
    ah_buf message, uri, segment;
    ah_work work; /* of what is checked meanwhile: defaults */
    ah_err *err;
} compiler;

/* A reference to be led to its node when all nodes are there. */
typedef struct reference {
    uint32_t op, node;
    ah_slice value; /* the string with its quotes */
} reference;

/* Begins a refusal: "schema: keyword 'x' at /properties/y ". `where` is the beginning of
 * a schema in one of the documents; name.p NULL: of the schema itself. */
ah_buf *schema_refusal(compiler *c, const char *where, ah_slice name);
ah_status schema_refused(compiler *c);
/* The place of node i in a refusal: "the root", or its pointer. */
void schema_put_place(compiler *c, ah_buf *b, uint32_t i);
/* The commonest refusal: "... must be a string, found 5". */
ah_status schema_refuse(compiler *c, const char *where, const char *name, ah_slice found,
                        const char *want);
/* A document into nodes; *root is its first. */
ah_status schema_compile_document(compiler *c, uint32_t document);
/* Makes node i, whose text this is, a resource where it has an $id, or is a document's root. */
ah_status schema_open_resource(compiler *c, uint32_t i, ah_slice text, ah_slice id, ah_slice base);
/* All references, and what needs them. */
ah_status schema_link(compiler *c);
ah_status schema_lead_references(compiler *c);

/* Checking (schema_check.c) */

/* The value by node i of it, as part of a work. */
ah_status schema_run(const ah_schema *s, uint32_t i, ah_slice text, ah_work *work, ah_faults *faults,
                     ah_buf *with_defaults);

/* Formats (schema_format.c) */

/* Index of a format that can be asserted, or NONE. */
uint32_t schema_find_format(ah_slice name);
/* Does the text have it? The steps that takes are counted in the work. *names is kept from check to
 * check; it begins as NULL, and the caller frees it. */
ah_match schema_has_format(const ah_mem *mem, uint32_t format, ah_slice text, ah_work *work,
                           ah_pattern **names);
const char *schema_format_words(uint32_t format); /* "an email address" */

#endif
