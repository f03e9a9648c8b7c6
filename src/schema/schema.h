/* JSON Schema: compiled once from canonical text, then checked against values.
 * Reference-counted and immutable. What it does not understand is refused when
 * compiled, never half-checked. The keywords are listed in compile.c. */
#ifndef AH_SCHEMA_SCHEMA_H
#define AH_SCHEMA_SCHEMA_H

#include "base/json.h"
#include "base/work.h"

typedef struct ah_schema ah_schema;

/* `text` is checked JSON of at most 1 MiB, 64 schemas deep; the schema keeps its
 * canonical form. On failure AH_PROMPT_VALIDATION with the JSON pointer of the
 * keyword in the message, or AH_NOMEM. */
ah_status ah_schema_compile(const ah_mem *mem, ah_slice text, ah_schema **out, ah_err *err);

/* Schemas that references may lead to, by address. Nothing is ever fetched. */
typedef struct ah_schema_document {
    ah_slice uri;  /* absolute, without fragment */
    ah_slice text; /* checked JSON */
} ah_schema_document;

/* The schemas of one host that live, each once. It holds no references: an entry goes when
 * its last user goes. Owned by whoever initialised it; do not copy. */
typedef struct ah_schema_cache {
    const ah_mem *mem;
    ah_schema **row; /* chains, by hash */
    size_t n, n_rows;
} ah_schema_cache;

void ah_schema_cache_init(ah_schema_cache *cache, const ah_mem *mem);
void ah_schema_cache_clear(ah_schema_cache *cache); /* its schemas live on by themselves */

typedef struct ah_schema_options {
    const ah_schema_document *documents; /* in any order */
    size_t n;
    bool formats;      /* "format" is a rule, not an annotation */
    bool any_keywords; /* keywords that the dialect does not have are passed over, not refused */
    bool any_defaults; /* a default that does not conform is not filled in, and not refused */
    ah_schema_cache *cache; /* NULL: compiled anew */
} ah_schema_options;

/* The same with options; documents are copied. With a cache, *out may be a schema that
 * another caller compiled of the same texts and options. */
ah_status ah_schema_compile_with(const ah_mem *mem, ah_slice text, const ah_schema_options *options,
                                 ah_schema **out, ah_err *err);
/* The version of PCRE2, which "pattern" needs: "10.42", or "none". */
const char *ah_schema_regex_version(char *out, size_t size);

ah_schema *ah_schema_ref(ah_schema *s);
void ah_schema_unref(ah_schema *s);
ah_text *ah_schema_text(const ah_schema *s); /* borrowed; canonical */

/* True if the root's "type" is exactly "object", which parameters of tools must have. */
bool ah_schema_is_object(const ah_schema *s);

typedef enum ah_extra { AH_EXTRA_SCHEMA, AH_EXTRA_FORBID } ah_extra;

/* One fault. Texts live in the ah_faults they belong to. */
typedef struct ah_fault {
    ah_slice pointer; /* RFC 6901, "" for the root */
    ah_slice rule;    /* the keyword: "type", "required", ... */
    ah_slice message; /* for a model: what is wrong, what was found (cut), what is wanted */
} ah_fault;

enum { AH_MAX_FAULTS = 8 };

typedef struct ah_faults {
    size_t n;     /* stored, at most AH_MAX_FAULTS; the most useful first (fault.c) */
    size_t total; /* found */
    ah_fault item[AH_MAX_FAULTS];
    ah_buf texts;
} ah_faults;

/* Options of a check. With `coerce`, a value of a wrong type becomes the one that was surely meant:
 * "3" becomes 3, "true" true, and a single value a list of it (but not a list in quotes). Each is
 * described in `coerced` (may be NULL): "/limit: took \"3\" as 3; ...", cut at its maximum. With
 * `empty_lists`, {} where a list is wanted is an empty list, without a description: for values from
 * Lua, whose empty table may be either. With `null_absent`, a member that is null, is not required
 * and by its own schema may not be null counts as absent, and is left out of `with_defaults`. */
typedef struct ah_check_options {
    ah_extra extra;
    bool coerce, empty_lists, null_absent;
    ah_buf *coerced;
    const ah_interrupt *interrupt; /* NULL: the check cannot be interrupted */
} ah_check_options;

void ah_faults_init(ah_faults *f, const ah_mem *mem);
void ah_faults_clear(ah_faults *f);
/* One line for a model: "/limit: must be at most 10, found 12; ...". Faults of the
 * root are without pointer. */
void ah_faults_print(const ah_faults *f, ah_buf *out);

/* Validates checked text. AH_OK: it conforms (faults->n == 0) or it does not (n > 0).
 * A check that takes more than 20 million steps ends with one fault that says so.
 * AH_NOMEM otherwise, or AH_CANCELLED where it was interrupted, with one fault that says where
 * and in which rule, or AH_BUDGET where `with_defaults` would grow over its maximum or
 * have more than AH_JSON_MAX_DEPTH levels.
 * With `with_defaults`, a conforming value is appended to it with the defaults of
 * absent properties filled in (nested ones too, and those of the first anyOf branch
 * that fits); appended members come after those present, in the schema's key order.
 * AH_EXTRA_FORBID: an object schema with "properties" that says nothing of other
 * members refuses those it does not name (at every depth); where several schemas in
 * place ($ref, allOf, if, ...) name members of one object, those that none of them names.
 * `faults` was initialised and may be used again; what it held is forgotten. */
ah_status ah_schema_check(const ah_schema *s, ah_slice value, ah_extra extra, ah_faults *faults,
                          ah_buf *with_defaults);

/* The same with options. With `coerce` or `empty_lists`, `with_defaults` must be given: it gets
 * the result. */
ah_status ah_schema_check_with(const ah_schema *s, ah_slice value, const ah_check_options *options,
                               ah_faults *faults, ah_buf *with_defaults);

#endif
