/* The words in which providers know schemas, as several wires ask for them: parameters whose root is
 * a plain object, and no rule that they refuse. What cannot be said there is told in words, in the
 * description; arguments are always checked against the tool's own schema, so nothing is lost by it.
 * Wires call it while they lower, and assemble.c to undo it. */
#ifndef AH_WIRE_DIALECT_H
#define AH_WIRE_DIALECT_H

#include "wire/lower.h"

typedef enum ah_schema_dialect { AH_SCHEMA_PLAIN, AH_SCHEMA_GEMINI } ah_schema_dialect;

/* Parameters (checked JSON Schema of an object, as tools have it) in that dialect. Roots with
 * anyOf and its like, which providers refuse, are wrapped: the arguments then are the one
 * member `wrapped_arguments` of an object. */
void ah_dialect_put(ah_schema_dialect d, ah_slice schema, ah_buf *out);
bool ah_dialect_wraps(ah_slice schema);
/* A schema in Gemini's words, whatever its root. */
void ah_dialect_put_schema(ah_slice schema, ah_buf *out);

/* A schema on its way into a dialect: its members are written one by one, and what cannot be said
 * there is told in its description. */
typedef struct ah_telling {
    ah_buf *out;
    ah_buf told; /* as members of JSON */
    size_t n;    /* members written */
} ah_telling;

void ah_telling_begin(ah_telling *t, ah_buf *out);
void ah_telling_key(ah_telling *t, ah_slice raw);
void ah_telling_tell(ah_telling *t, ah_json_token key, ah_slice value);
/* With the author's description, a JSON string or absent. A failure is that of `out`. */
void ah_telling_end(ah_telling *t, ah_slice description);

/* The number of members that a schema has. */
size_t ah_dialect_members(ah_slice schema);

#define AH_WRAPPED "wrapped_arguments"

/* The arguments a model wrote, if they are wrapped, become those within. */
void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments);

/* The arguments of a call (JSON string) as the object some wires want: the text as it was
 * written, `{}` where it is none; wrapped where that is so. */
void ah_dialect_put_arguments(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out);

/* The same where the wire has them as a string with JSON in it: as the model wrote them. */
void ah_dialect_put_text(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out);

#endif
