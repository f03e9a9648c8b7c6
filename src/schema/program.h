/* The inside of a compiled schema, for the files of src/schema only.
 *
 * A schema becomes a flat program: nodes (one per schema), each with a chain of ops (one per
 * rule); tables of properties sorted by name; values to compare with; links from ops to other
 * nodes. References are indices; names and values are slices of canonical text. So a schema is a
 * few blocks of memory, which it owns. Nodes are in the order of the text. Callers: its floor. */
#ifndef AH_SCHEMA_PROGRAM_H
#define AH_SCHEMA_PROGRAM_H

#include "base/near.h"
#include "base/pattern.h"
#include "base/work.h"
#include "schema/key_index.h"
#include "schema/schema.h"
#include "schema/vocabulary.h"

enum {
    SCHEMA_DEPTH = 64,       /* nested schemas: limits the recursion of the compiler */
    SCHEMA_TEXT = 1 << 20,   /* bytes of a schema, and of a default with its own defaults */
    SCHEMA_STEPS = 20000000, /* of a check, about 0.1 microseconds each: schemas entered, members
                                and items passed, and the further cost of rules */
    SCHEMA_POINTER = 512,    /* bytes in a fault */
    SCHEMA_MESSAGE = 1024,   /* bytes in a fault, and in a refusal */
    SCHEMA_LISTED = 12,      /* values or names in a message */
    SCHEMA_ADDRESS = 4096,   /* bytes of an address */
    SCHEMA_MADE = 16 << 20,  /* bytes of all addresses, and of all defaults, that a schema makes;
                                each may be much longer than its source */
    SCHEMA_FAULT_ROOM = AH_MAX_FAULTS * (SCHEMA_POINTER + SCHEMA_MESSAGE + 8)
};

#define NONE   UINT32_MAX /* index of nothing */
#define TWO_63 9223372036854775808.0

/* Types as bits. A value has exactly one: T_INTEGER for whole numbers within 64 bits (3.0 too),
 * T_NUMBER for other numbers, T_HUGE for numbers that no double holds. */
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
    OP_OTHER_ITEMS,     /* unevaluatedItems: after all rules that evaluate items */
    OP_OTHER_PROPERTIES /* unevaluatedProperties: likewise */
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
    uint32_t next;   /* next op of the same node */
    range list;      /* CONST, ENUM: values; OBJECT, DEPEND_*: props; ARRAY, *_OF: links */
    range patterns;  /* links. OBJECT: pairs of pattern and node; DEPEND_NAMES: pairs of a prop and
                        one that it needs, counted from its first prop; DEPEND_SCHEMAS: nodes of its
                        props */
    size_t min, max; /* STRING, ARRAY, OBJECT, CONTAINS: limits of characters, items, members */
    uint32_t rest;   /* node of the items, of unnamed members, or the only one of the rule; PATTERN:
                        the pattern; FORMAT: the format */
    uint32_t yes, no; /* IF: nodes */
    bool named;       /* OBJECT: has "properties" or "patternProperties" */
    bool evaluates;   /* CONTAINS: marks the items that fit, for unevaluatedItems */
    ah_slice literal; /* PATTERN, FORMAT: text or name; DYNAMIC_REF: anchor, or .p NULL, */
    uint32_t name;    /* and the number of that name */
    number num;       /* limits; MULTIPLE: the divisor */
} op;

typedef enum node_kind {
    NODE_ANYTHING, /* has no rules */
    NODE_PLAIN,    /* its rules concern the value alone: checked without a frame */
    NODE_ALIAS,    /* only refers to another node of its resource */
    NODE_VISITED
} node_kind;

typedef struct node {
    ah_slice text;        /* text in its document */
    unsigned types;       /* types that "type" allows */
    unsigned accepts;     /* those of them that its in-place schemas leave, as far as is known */
    uint32_t first, last; /* range of its ops */
    uint32_t resource;
    ah_slice fallback; /* "default", completed with its own defaults; .p NULL: none */
    bool own_default;  /* the default is in its own text; otherwise it comes from a schema in its
                          place */
    bool others;       /* has an OP_OTHER_*: evaluated members and items are recorded */
    bool composed;     /* several schemas in place declare the members */
    node_kind kind;
} node;

typedef struct prop {
    ah_slice name;
    uint32_t node; /* NONE: only required */
    bool required;
} prop;

typedef struct value {
    ah_slice text; /* canonical */
    ah_json_token t;
    number num;
    uint32_t sorted; /* the index in its list of the value that has this position when sorted */
} value;

/* A document; it has no nodes if no reference leads to it. */
typedef struct document {
    ah_text *text; /* canonical */
    ah_slice uri;  /* "" if none was given */
    range nodes;
    bool placed; /* its nodes are in the compiler's index of places */
} document;

/* A schema with its own address. */
typedef struct resource {
    ah_slice uri; /* absolute, without fragment; "" if none was given */
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
    ah_schema_cache *cache; /* the cache that contains it, or NULL */
    ah_schema *same_row;
    uint64_t hash;
    size_t given; /* number of given documents; those after them are our metaschemas */
    bool formats, any_keywords, any_defaults;
    ah_buf names; /* unescaped names; the room is made once, so it never moves */
    table documents, nodes, ops, props, values, links, resources, anchors;
    table patterns;            /* ah_pattern * */
    table made;                /* ah_text *: addresses, and completed defaults */
    schema_index anchor_index; /* resource and name */
    uint32_t dynamic_names;    /* number of names that dynamic references use */
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

/* Adds n zeroed items at the end; returns the index of the first, or NONE: out of memory. */
uint32_t schema_extend(const ah_mem *mem, table *t, size_t n, size_t item);
/* Returns the prop of this name in a sorted range, or NONE. */
uint32_t schema_find_prop(const ah_schema *s, range in, ah_slice name);
uint32_t schema_find_op(const ah_schema *s, uint32_t node, op_code code);
/* Returns a copy that lives as long as the schema; .p NULL: out of memory. */
ah_slice schema_keep(ah_schema *s, ah_slice text);
/* Returns the anchor of this name in the resource, or NULL. */
const anchor *schema_find_anchor(const ah_schema *s, uint32_t resource, ah_slice name);

/* Sharing (cache.c) */

/* Returns a reference to the schema of the same documents and options, or NULL; sets like->hash. */
ah_schema *schema_shared(const ah_schema_cache *cache, ah_schema *like);
/* Adds the schema if there is room. */
void schema_share(ah_schema_cache *cache, ah_schema *s);
void schema_unshare(ah_schema *s);

/* Numbers (number.c) */

/* Reads a literal. False if no double holds it; n is then the nearest value. */
bool schema_number(ah_slice literal, number *out);
/* Compares exactly, by the digits: -1, 0 or 1. */
int schema_compare_numbers(number a, number b);
/* Decides exactly, by the digits. `of` is above 0 and has at most 18 significant digits. */
bool schema_is_multiple(ah_slice literal, ah_slice of);
bool schema_is_divisor(ah_slice literal);

/* Lists of values (values.c) */

/* Compares two canonical texts, in which only numbers may differ for equal values. The order is
 * arbitrary, by kinds first. */
int schema_compare_canonical(ah_slice a, ah_slice b);
/* Sets `sorted` of the values. False: out of memory. */
bool schema_sort_values(ah_schema *s, range values);

/* Words (words.c) */

/* Begins a part of a message with a limit: text that does not fit is cut between characters. */
size_t schema_begin_part(ah_buf *b, size_t max);
ah_slice schema_end_part(ah_buf *b, size_t start);
void schema_put_key(ah_buf *b, ah_slice name); /* "/" and the name with its ~ and / escaped */
/* Appends a value's text or a name, on one line, cut. */
void schema_put_found(ah_buf *b, ah_slice text);
void schema_put_near(ah_buf *b, const ah_near *near); /* "; did you mean 'x'?", or nothing */
/* "a string, a number or null" */
void schema_put_types(ah_buf *b, unsigned types);
unsigned schema_type_named(ah_json_token t);                  /* 0: no such type */
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

/* The keyword of the parent schema that a node comes from: a step of the pointers that lead to
 * the node. */
typedef struct origin {
    uint32_t parent;  /* parent node; NONE: the root of a document */
    uint32_t keyword; /* number of the keyword */
    uint32_t item;    /* index in a list; otherwise NONE */
    ah_slice name;    /* name of a member; otherwise .p NULL */
} origin;

/* The documents by the addresses that references may use (shelf.c). A compiler that only
 * inspects a document shares the shelf of the schema that the document may join. */
typedef struct shelf {
    ah_schema *s; /* owner of these documents */
    /* from address to document: first given addresses, then those in their roots */
    schema_index index;
    bool deep; /* addresses of all inner schemas are entered, too */
} shelf;

typedef struct compiler {
    ah_schema *s;
    int depth;
    dialect dialect, of_root;
    uint32_t document, resource;
    table refs;             /* reference */
    table origins;          /* one origin for each node */
    schema_index resources; /* by address */
    schema_index places;    /* key: parent, keyword and kind, item, name; see refs.c */
    schema_index names;     /* names of dynamic anchors in use */
    shelf *shelf;
    size_t made; /* bytes; limited by SCHEMA_MADE */
    ah_buf message, uri, segment, address, to;
    ah_work work; /* of the checks of defaults */
    ah_err *err;
} compiler;

/* A reference that is linked when all nodes exist. */
typedef struct reference {
    uint32_t op, node;
    const char *keyword;
    ah_slice value; /* the string with its quotes */
} reference;

/* Compiles the schema's first document and the documents that it leads to. */
ah_status schema_compile_all(ah_schema *s, ah_err *err);
/* Makes a schema of one more document of `like`, not compiled. */
ah_status schema_of_document(const ah_schema *like, const document *d, ah_schema **out);
void schema_begin_compiler(compiler *c, ah_schema *s, shelf *documents, ah_err *err);
void schema_end_compiler(compiler *c);

/* Begins a refusal: "schema: keyword 'x' at /properties/y ". `where` is the beginning of a
 * schema in a document; name.p NULL: the refusal is about the schema itself. */
ah_buf *schema_refusal(compiler *c, const char *where, ah_slice name);
ah_status schema_refused(compiler *c);
/* Appends the place of the schema that begins there: "the root", or its pointer. */
void schema_put_place(compiler *c, ah_buf *b, const char *where);
/* The most frequent refusal: "... must be a string, found 5". */
ah_status schema_refuse(compiler *c, const char *where, const char *name, ah_slice found,
                        const char *want);
/* Compiles a document to nodes. */
ah_status schema_compile_document(compiler *c, uint32_t document);
/* Returns the number of the keyword of this name, or NONE. */
uint32_t schema_keyword_named(ah_slice name);
/* Makes node i, which has this text, a resource if it has an $id or is a document's root. */
ah_status schema_open_resource(compiler *c, uint32_t i, ah_slice text, ah_slice id, ah_slice base);
/* Adds an anchor of node i to the current resource. */
ah_status schema_add_anchor(compiler *c, uint32_t i, const char *keyword, ah_slice name,
                            bool dynamic);
/* Makes a copy that lives as long as the schema and counts against SCHEMA_MADE; `where` is the
 * beginning of the schema that needs it. */
ah_status schema_make(compiler *c, const char *where, ah_slice text, ah_slice *kept);
/* Refuses with "... is not the only one of its name: x is also at /y". `where` is the beginning
 * of the second schema, `other` that of the first. */
ah_status schema_refuse_twice(compiler *c, const char *where, const char *keyword, ah_slice name,
                              const char *other);
/* Links all references, and computes everything that depends on them. */
ah_status schema_link(compiler *c);
ah_status schema_lead_references(compiler *c);

/* Addresses (uri.c) */

/* Cuts off and returns the head of *rest up to one of the stops; *rest then begins with it. */
ah_slice schema_cut(ah_slice *rest, const char *stops);
/* Resolves a reference (RFC 3986, section 5.2), appended to out. */
void schema_resolve_uri(ah_slice base, ah_slice ref, ah_buf *out);

/* Documents by address (shelf.c) */

/* Enters the documents by their given addresses, and by those in their roots. */
ah_status schema_shelf_fill(compiler *c);
/* Returns the document with this address, with or without "#" at its end, or NONE. */
uint32_t schema_shelf_root(const compiler *c, ah_slice address);
/* Finds the document of the compiler's schema that has this address, given or in its text, or a
 * built-in metaschema, which then becomes a document; NONE: unknown. `deep`: searches all
 * schemas of all documents. */
ah_status schema_shelf_find(compiler *c, ah_slice address, bool deep, uint32_t *out);
void schema_shelf_clear(shelf *f);

/* Chooses the dialect that $schema of the text names, if any (vocabulary.c). */
ah_status schema_choose_dialect(compiler *c, ah_slice text);

/* Checking (check.c) */

/* Checks the value against node i, as part of a work. */
ah_status schema_run(const ah_schema *s, uint32_t i, ah_slice text, ah_work *work,
                     ah_faults *faults, ah_buf *with_defaults);

/* Formats (format.c) */

/* Returns the index of a format that can be asserted, or NONE. */
uint32_t schema_find_format(ah_slice name);
/* Tests whether the text has the format, and counts the steps in the work. *names is reused
 * between checks; it begins as NULL, and the caller frees it. */
ah_match schema_has_format(const ah_mem *mem, uint32_t format, ah_slice text, ah_work *work,
                           ah_pattern **names);
const char *schema_format_words(uint32_t format); /* "an email address" */

#endif
