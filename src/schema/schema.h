/* JSON Schema: compiled once from canonical text, then checked against values. A schema is
 * immutable and reference-counted, and owns its texts. Unknown constructs are refused when
 * compiled, never half-checked. compile.c lists the keywords. Callers: its floor, floors above. */
#ifndef AH_SCHEMA_SCHEMA_H
#define AH_SCHEMA_SCHEMA_H

#include "base/json.h"
#include "base/work.h"

typedef struct ah_schema ah_schema;

/* Compiles checked JSON of at most 1 MiB and 64 nested schemas; the schema keeps its canonical
 * form. Fails with AH_PROMPT_VALIDATION, with the JSON pointer of the keyword in the message, or
 * AH_NOMEM. */
ah_status ah_schema_compile(const ah_mem *mem, ah_slice text, ah_schema **out, ah_err *err);

/* Schemas that references may name, by address. Nothing is ever fetched. */
typedef struct ah_schema_document {
    ah_slice uri;  /* absolute, without fragment */
    ah_slice text; /* checked JSON */
} ah_schema_document;

/* The live schemas of a host, each once. It holds no references: an entry disappears with its
 * last user. The initializing code owns it; do not copy it. */
typedef struct ah_schema_cache {
    const ah_mem *mem;
    ah_schema **row; /* chains by hash */
    size_t n, n_rows;
} ah_schema_cache;

void ah_schema_cache_init(ah_schema_cache *cache, const ah_mem *mem);
void ah_schema_cache_clear(ah_schema_cache *cache); /* its schemas live on */

typedef struct ah_schema_options {
    const ah_schema_document *documents; /* in any order; copied */
    size_t n;
    bool formats;           /* "format" is a rule; otherwise an annotation */
    bool any_keywords;      /* keywords of other dialects are ignored instead of refused */
    bool any_defaults;      /* a default that does not conform is ignored instead of refused */
    ah_schema_cache *cache; /* NULL: compiled anew */
} ah_schema_options;

/* Compiles likewise with options; documents are copied. With a cache, *out may be a schema that
 * another caller compiled from equal texts and options. */
ah_status ah_schema_compile_with(const ah_mem *mem, ah_slice text, const ah_schema_options *options,
                                 ah_schema **out, ah_err *err);
/* Returns the version of PCRE2, which "pattern" needs: "10.42", or "none". */
const char *ah_schema_regex_version(char *out, size_t size);

ah_schema *ah_schema_ref(ah_schema *s);
void ah_schema_unref(ah_schema *s);
ah_text *ah_schema_text(const ah_schema *s); /* borrowed; canonical */

/* True if the root's "type" is exactly "object", which parameters of tools must have. */
bool ah_schema_is_object(const ah_schema *s);

typedef enum ah_extra { AH_EXTRA_SCHEMA, AH_EXTRA_FORBID } ah_extra;

/* One fault. Its ah_faults owns the texts. */
typedef struct ah_fault {
    ah_slice pointer; /* RFC 6901, "" for the root */
    ah_slice rule;    /* the keyword: "type", "required", ... */
    ah_slice message; /* for a model: what is wrong, what was found (cut), what is expected */
} ah_fault;

enum { AH_MAX_FAULTS = 8 };

typedef struct ah_faults {
    size_t n; /* number of stored faults, at most AH_MAX_FAULTS; the most useful first (fault.c) */
    size_t total; /* number of faults found */
    ah_fault item[AH_MAX_FAULTS];
    ah_buf texts;
} ah_faults;

/* Options of a check.
 *   coerce       a value of a wrong type becomes the one that was surely meant: "3" becomes 3,
 *                "true" true, and a single value a list of it (but not a list in quotes). Each
 *                is described in `coerced` (may be NULL), cut at its limit:
 *                "/limit: took \"3\" as 3; ..."
 *   empty_lists  {} becomes an empty list if a list is expected, without a description: an
 *                empty table of Lua may be either
 *   null_absent  a member that is null counts as missing if it is optional and its own schema
 *                does not allow null; it is left out of `with_defaults` */
typedef struct ah_check_options {
    ah_extra extra;
    bool coerce, empty_lists, null_absent;
    ah_buf *coerced;
    const ah_interrupt *interrupt; /* NULL: the check cannot be interrupted */
} ah_check_options;

void ah_faults_init(ah_faults *f, const ah_mem *mem);
void ah_faults_clear(ah_faults *f);
/* Appends one line for a model: "/limit: must be at most 10, found 12; ...". Faults of the root
 * have no pointer. */
void ah_faults_print(const ah_faults *f, ah_buf *out);

/* Checks checked text. Returns AH_OK if it conforms (faults->n == 0) or does not (n > 0). A check
 * of more than 20 million steps ends with one fault that reports this. Fails with AH_NOMEM; with
 * AH_CANCELLED if interrupted, and one fault with the place and the rule; with AH_BUDGET if
 * `with_defaults` would exceed its limit or AH_JSON_MAX_DEPTH levels.
 *
 * `with_defaults` may be NULL. A conforming value is appended to it, with the defaults of missing
 * properties filled in (nested ones too, and those of the first anyOf branch that fits); added
 * members come after the present ones, in the schema's key order.
 *
 * AH_EXTRA_FORBID: an object schema with "properties" that does not mention other members refuses
 * members it does not name, at every depth. If several schemas in place ($ref, allOf, if, ...) name
 * members of one object, it refuses those that none of them names.
 *
 * `faults` must be initialized, and may be used again; its old content is discarded. */
ah_status ah_schema_check(const ah_schema *s, ah_slice value, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults);

/* Checks likewise with options. With `coerce` or `empty_lists`, `with_defaults` must not be
 * NULL: it receives the result. */
ah_status ah_schema_check_with(const ah_schema *s, ah_slice value, const ah_check_options *options,
                               ah_faults *faults, ah_buf *with_defaults);

#endif
