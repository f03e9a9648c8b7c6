/* Parameters of tools and arguments of calls in the form that several wires ask for: the root is a
 * plain object, in the keywords that the wire's table knows (schema/rewrite.h). Arguments are
 * always checked against the tool's own schema. Wires call this while they lower; assemble.c undoes
 * it. Results are appended to the caller's buffer, whose status reports lack of memory.
 * Callers: its floor. */
#ifndef AH_WIRE_DIALECT_H
#define AH_WIRE_DIALECT_H

#include "schema/rewrite.h"
#include "wire/lower.h"

/* Appends parameters (checked JSON Schema of an object) in these keywords; NULL: unchanged. A root
 * with anyOf or the like, which providers refuse, is wrapped: the arguments then are the one member
 * `wrapped_arguments` of an object. */
void ah_dialect_put(const ah_rewrite_target *words, ah_slice schema, ah_buf *out);
bool ah_dialect_wraps(ah_slice schema);

#define AH_WRAPPED "wrapped_arguments"

/* Replaces wrapped arguments of a model by the inner ones; leaves others unchanged. */
void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments);

/* Appends a call's arguments (a JSON string) as an object, wrapped if the tool's are; `{}` if they
 * are no object. The entry being lowered contains the call. */
void ah_dialect_put_arguments(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out);

/* Appends them as a JSON string instead, as the model wrote them. */
void ah_dialect_put_text(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out);

#endif
