/* Dialects: the keywords that a schema may have, and which of them are rules. Its data is
 * static. Callers: its floor. */
#ifndef AH_SCHEMA_VOCABULARY_H
#define AH_SCHEMA_VOCABULARY_H

#include "base/slice.h"

/* Supported drafts, as bits. */
enum { DRAFT_7 = 1, DRAFT_2019 = 2, DRAFT_2020 = 4, DRAFT_2019_ON = 6, DRAFT_ANY = 7 };

/* Vocabularies, as bits: keywords of a vocabulary that the metaschema does not name are no
 * rules. Draft-07 has no vocabularies, which counts as all. */
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

/* A built-in metaschema: canonical text, address without fragment. */
typedef struct schema_metaschema {
    ah_slice uri, text;
} schema_metaschema;

/* Returns the metaschema with this address, or NULL (meta.c). */
const schema_metaschema *schema_find_metaschema(ah_slice uri);

#endif
