/* What several wires ask of schemas: parameters whose root is a plain object, and schemas in
 * the words a provider knows. What cannot be said there is told in words, in the description;
 * arguments are always checked against the tool's own schema, so nothing is lost by it. */
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

#define AH_WRAPPED "wrapped_arguments"

/* {"description":..,"name":..,"parameters":..} as the tool has it, or with its parameters wrapped. */
void ah_dialect_put_function(ah_slice spec, ah_buf *out);

/* The arguments a model wrote, if they are wrapped, become those within. */
void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments);

/* The arguments of a call (JSON string) as the object some wires want: the text as it was
 * written, `{}` where it is none; wrapped where that is so. */
void ah_dialect_put_arguments(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out);

/* The same where the wire has them as a string with JSON in it: as the model wrote them. */
void ah_dialect_put_text(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out);

#endif
