/* Dialects: which keywords a schema may have, and what is a rule among them. */
#ifndef AH_SCHEMA_VOCABULARY_H
#define AH_SCHEMA_VOCABULARY_H

#include "base/slice.h"

/* Drafts that are spoken, as bits. */
enum { DRAFT_7 = 1, DRAFT_2019 = 2, DRAFT_2020 = 4, DRAFT_2019_ON = 6, DRAFT_ANY = 7 };

/* Vocabularies, as bits: keywords of those that a metaschema does not name are no rules. Draft-07
 * has none, which counts as all. */
enum {
    VOCABULARY_CORE = 1,
    VOCABULARY_APPLICATOR = 2,
    VOCABULARY_UNEVALUATED = 4,
    VOCABULARY_VALIDATION = 8,
    VOCABULARY_META = 16,
    VOCABULARY_FORMAT = 32,
    VOCABULARY_ASSERTION = 64, /* "format" is a rule */
    VOCABULARY_CONTENT = 128,
    VOCABULARY_ALL = 255 & ~VOCABULARY_ASSERTION
};

typedef struct dialect {
    unsigned draft, vocabularies;
} dialect;

/* "draft 2020-12" */
const char *schema_draft_name(unsigned draft);

/* A metaschema of those that are built in: canonical text, address without fragment. */
typedef struct schema_metaschema {
    ah_slice uri, text;
} schema_metaschema;

/* The one of this address, or NULL (meta.c). */
const schema_metaschema *schema_find_metaschema(ah_slice uri);

#endif
