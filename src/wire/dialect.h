/* What several wires ask of names and schemas: names of tools that a wire takes, parameters
 * whose root is a plain object, and schemas in the words a provider knows. What cannot be said
 * there is told in words, in the description; arguments are always checked against the tool's
 * own schema, so nothing is lost by it. */
#ifndef AH_WIRE_DIALECT_H
#define AH_WIRE_DIALECT_H

#include "wire/lower.h"

/* -- names ---------------------------------------------------------------------------- */

/* A tool's name (a JSON string) with its quotes. Names that the model made up may hold
 * anything; the wire takes [A-Za-z0-9_-]{1,64}. */
void ah_wire_name_put(ah_buf *b, ah_slice name);
/* The same where the first character must be a letter or `_`: others get a `_` in front, as do
 * names that look as if they had got one, so that no two names meet. */
void ah_wire_name_put_led(ah_buf *b, ah_slice name);
/* And back: the name behind it, part of the raw text given. */
ah_slice ah_wire_name_led(ah_slice raw);

/* -- schemas ---------------------------------------------------------------------------- */

typedef enum ah_dialect { AH_DIALECT_JSON_SCHEMA, AH_DIALECT_GEMINI } ah_dialect;

/* Parameters (checked JSON Schema of an object, as tools have it) in that dialect. Roots with
 * anyOf and its like, which providers refuse, are wrapped: the arguments then are the one
 * member `wrapped_arguments` of an object. */
void ah_dialect_put(ah_dialect d, ah_slice schema, ah_buf *out);
bool ah_dialect_wraps(ah_slice schema);

/* Are the arguments of the tool of that name (JSON string) wrapped, as it is offered now? */
bool ah_dialect_wrapped(const ah_lowered *w, ah_slice name);

#define AH_WRAPPED "wrapped_arguments"

/* The arguments a model wrote, if they are wrapped, become those within. */
void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments);

/* The arguments of a call (JSON string) as the object some wires want: the text as it was
 * written, `{}` where it is none; wrapped where that is so. */
void ah_dialect_put_arguments(const ah_lowered *w, ah_slice name, ah_slice arguments, ah_buf *out);

#endif
