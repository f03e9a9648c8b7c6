/* The inside of a compiled schema, shared by the files of src/schema and by nobody else.
 *
 * A schema becomes a flat program: nodes (one a schema), each with a chain of ops (one
 * a rule), tables of properties sorted by name, values to compare with, and links from
 * ops to other nodes. References are indices, names and values are slices of canonical
 * text, so a schema is a handful of blocks. Nodes stand in the order of the text. */
#ifndef AH_SCHEMA_PROGRAM_H
#define AH_SCHEMA_PROGRAM_H

#include "base/near.h"
#include "base/pattern.h"
#include "base/work.h"
#include "schema/key_index.h"
#include "schema/schema.h"
#include "schema/vocabulary.h"

enum {
    SCHEMA_DEPTH = 64,       /* schemas within schemas: bounds the recursion of the compiler */
    SCHEMA_TEXT = 1 << 20,   /* bytes of a schema, and of a default with its own defaults */
    SCHEMA_STEPS = 20000000, /* of a check, about a tenth of a microsecond each: schemas entered,
                                members and items passed, and what a rule costs beyond that */
    SCHEMA_POINTER = 512,    /* bytes in a fault */
    SCHEMA_MESSAGE = 1024,   /* bytes in a fault, and in a refusal */
    SCHEMA_LISTED = 12,      /* values or names in a message */
    SCHEMA_ADDRESS = 4096,   /* bytes of an address */
    SCHEMA_MADE = 16 << 20,  /* bytes of all addresses, and of all defaults, that a schema makes:
                                each may  be much longer than what it is made of */
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
    OP_DEPEND_NAMES,
    OP_DEPEND_SCHEMAS,
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
    range list;       /* CONST, ENUM: values; OBJECT, DEPEND_*: props; ARRAY, *_OF: links */
    range patterns;   /* OBJECT: links, by two: pattern, node; DEPEND_NAMES: links, by two, from the
                         first of its props: one, and one that it needs; DEPEND_SCHEMAS: links, the
                         nodes of its props */
    size_t min, max;  /* STRING, ARRAY, OBJECT, CONTAINS: characters, items, members */
    uint32_t rest;    /* node of the items, of the members not named, or the only one of the rule;
                         PATTERN: the pattern; FORMAT: the format */
    uint32_t yes, no; /* IF: nodes */
    bool named;       /* OBJECT: has "properties" or "patternProperties" */
    bool evaluates;   /* CONTAINS: the items that fit, for unevaluatedItems */
    ah_slice literal; /* PATTERN, FORMAT: text or name; DYNAMIC_REF: anchor, or .p NULL, */
    uint32_t name;    /* and the number of that name */
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
    bool own_default;  /* that its text says; else it is that of a schema in its place */
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
    uint32_t sorted; /* of its list, from the first of that: the value that comes in this place */
} value;

/* A document; without nodes if no reference leads to it. */
typedef struct document {
    ah_text *text; /* canonical */
    ah_slice uri;  /* "" where none was given */
    range nodes;
    bool placed; /* its nodes are in the compiler's index of places */
} document;

/* A schema with an address of its own. */
typedef struct resource {
    ah_slice uri; /* absolute, without fragment; "" where none was said */
    uint32_t node, document;
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
    size_t given; /* documents; what follows them are metaschemas of our own */
    bool formats, any_keywords, any_defaults;
    ah_buf names; /* those with escapes, unescaped; room is made once, so it never moves */
    table documents, nodes, ops, props, values, links, resources, anchors;
    table patterns;            /* ah_pattern * */
    table made;                /* ah_text *: addresses, and defaults that had defaults filled in */
    schema_index anchor_index; /* resource and name */
    uint32_t dynamic_names;    /* that dynamic references ask for */
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
/* The anchor of this name in the resource, or NULL. */
const anchor *schema_find_anchor(const ah_schema *s, uint32_t resource, ah_slice name);

/* Sharing (cache.c) */

/* A reference to the schema of the same documents and options, or NULL; sets like->hash. */
ah_schema *schema_shared(const ah_schema_cache *cache, ah_schema *like);
/* Enters it, where there is room. */
void schema_share(ah_schema_cache *cache, ah_schema *s);
void schema_unshare(ah_schema *s);

/* Numbers (number.c) */

/* False when no double holds it; n is usable as the nearest thing all the same. */
bool schema_number(ah_slice literal, number *out);
/* Exact, by the digits. */
int schema_compare_numbers(number a, number b);
/* Exact, by the digits. `of` is above 0 and has at most 18 significant digits. */
bool schema_is_multiple(ah_slice literal, ah_slice of);
bool schema_is_divisor(ah_slice literal);

/* Lists of values (values.c) */

/* Both texts are canonical, so only numbers may be written in two ways. Any order, by kinds
 * first. */
int schema_compare_canonical(ah_slice a, ah_slice b);
/* Sets `sorted` of the values. False: out of memory. */
bool schema_sort_values(ah_schema *s, range values);

/* Words (words.c) */

/* One part of a text of bounded size: what does not fit is cut at a character. */
size_t schema_begin_part(ah_buf *b, size_t max);
ah_slice schema_end_part(ah_buf *b, size_t start);
void schema_put_key(ah_buf *b, ah_slice name); /* "/" and the name with its ~ and / escaped */
/* A value's text or a name, on one line, cut. */
void schema_put_found(ah_buf *b, ah_slice text);
void schema_put_near(ah_buf *b, const ah_near *near); /* "; did you mean 'x'?", or nothing */
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

/* Compiling (compile.c, refs.c, link.c) */

/* The part of the parent schema that a node comes from: a step of the pointers that lead to it. */
typedef struct origin {
    uint32_t parent;  /* node; NONE: it is the root of a document */
    uint32_t keyword; /* its number */
    uint32_t item;    /* in a list; else NONE */
    ah_slice name;    /* among members; else .p NULL */
} origin;

/* The documents that addresses may lead to, by address (shelf.c). What is compiled only to be
 * looked at shares those of the schema that it may be part of. */
typedef struct shelf {
    ah_schema *s; /* whose documents these are */
    /* to the document: by what it was given as, then by what it says of itself */
    schema_index index;
    bool deep; /* by all that its schemas say, too */
} shelf;

typedef struct compiler {
    ah_schema *s;
    int depth;
    dialect dialect, of_root;
    uint32_t document, resource;
    table refs;             /* reference */
    table origins;          /* origin, of each node */
    schema_index resources; /* by address */
    schema_index places;    /* parent, keyword and kind, item, name: see refs.c */
    schema_index names;     /* of dynamic anchors that are asked for */
    shelf *shelf;
    size_t made; /* bytes, see SCHEMA_MADE */
    ah_buf message, uri, segment, address, to;
    ah_work work; /* of what is checked meanwhile: defaults */
    ah_err *err;
} compiler;

/* A reference to be led to its node when all nodes are there. */
typedef struct reference {
    uint32_t op, node;
    const char *keyword;
    ah_slice value; /* the string with its quotes */
} reference;

/* Compiles the schema's first document and what it leads to. */
ah_status schema_compile_all(ah_schema *s, ah_err *err);
/* A schema of one more document of `like`, not compiled. */
ah_status schema_of_document(const ah_schema *like, const document *d, ah_schema **out);
void schema_begin_compiler(compiler *c, ah_schema *s, shelf *documents, ah_err *err);
void schema_end_compiler(compiler *c);

/* Begins a refusal: "schema: keyword 'x' at /properties/y ". `where` is the beginning of
 * a schema in one of the documents; name.p NULL: of the schema itself. */
ah_buf *schema_refusal(compiler *c, const char *where, ah_slice name);
ah_status schema_refused(compiler *c);
/* The place in a refusal, of the schema that begins there: "the root", or its pointer. */
void schema_put_place(compiler *c, ah_buf *b, const char *where);
/* The commonest refusal: "... must be a string, found 5". */
ah_status schema_refuse(compiler *c, const char *where, const char *name, ah_slice found,
                        const char *want);
/* A document into nodes. */
ah_status schema_compile_document(compiler *c, uint32_t document);
/* The number of the keyword of this name, or NONE. */
uint32_t schema_keyword_named(ah_slice name);
/* Makes node i, whose text this is, a resource where it has an $id, or is a document's root. */
ah_status schema_open_resource(compiler *c, uint32_t i, ah_slice text, ah_slice id, ah_slice base);
/* Enters an anchor of node i in the resource at hand. */
ah_status schema_add_anchor(compiler *c, uint32_t i, const char *keyword, ah_slice name,
                            bool dynamic);
/* A copy that lives as long as the schema and counts against SCHEMA_MADE; `where` is the beginning
 * of the schema it is made for. */
ah_status schema_make(compiler *c, const char *where, ah_slice text, ah_slice *kept);
/* "... is not the only one of its name: x is also at /y". `where` is the beginning of the schema
 * that has it second, `other` that of the first one. */
ah_status schema_refuse_twice(compiler *c, const char *where, const char *keyword, ah_slice name,
                              const char *other);
/* All references, and what needs them. */
ah_status schema_link(compiler *c);
ah_status schema_lead_references(compiler *c);

/* Addresses (uri.c) */

/* The head of *rest up to one of the stops, which *rest begins with then. */
ah_slice schema_cut(ah_slice *rest, const char *stops);
/* Reference resolution of RFC 3986, section 5.2, appended to out. */
void schema_resolve_uri(ah_slice base, ah_slice ref, ah_buf *out);

/* Documents by address (shelf.c) */

/* Enters the documents by what they were given as, and by what their roots say. */
ah_status schema_shelf_fill(compiler *c);
/* The document with this address, "#" behind it or not, or NONE. */
uint32_t schema_shelf_root(const compiler *c, ah_slice address);
/* The document of the compiler's schema that has, or says that it has, this address, or a
 * metaschema of ours, which becomes one; NONE where there is none. `deep`: looks at all schemas of
 * all documents. */
ah_status schema_shelf_find(compiler *c, ah_slice address, bool deep, uint32_t *out);
void schema_shelf_clear(shelf *f);

/* The dialect that the $schema of the text says, if any (vocabulary.c). */
ah_status schema_choose_dialect(compiler *c, ah_slice text);

/* Checking (check.c) */

/* The value by node i of it, as part of a work. */
ah_status schema_run(const ah_schema *s, uint32_t i, ah_slice text, ah_work *work,
                     ah_faults *faults, ah_buf *with_defaults);

/* Formats (format.c) */

/* Index of a format that can be asserted, or NONE. */
uint32_t schema_find_format(ah_slice name);
/* Says if the text has the format. The steps that this takes are counted in the work. *names is
 * kept from check to check; it begins as NULL, and the caller frees it. */
ah_match schema_has_format(const ah_mem *mem, uint32_t format, ah_slice text, ah_work *work,
                           ah_pattern **names);
const char *schema_format_words(uint32_t format); /* "an email address" */

#endif
