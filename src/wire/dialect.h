/* Parameters of tools and arguments of calls as several wires ask for them: parameters whose root
 * is a plain object, in the words that the wire's table knows (schema/rewrite.h). Arguments are
 * always checked against the tool's own schema. Wires call it while they lower, and assemble.c to
 * undo it. */
#ifndef AH_WIRE_DIALECT_H
#define AH_WIRE_DIALECT_H

#include "schema/rewrite.h"
#include "wire/lower.h"

/* Parameters (checked JSON Schema of an object, as tools have it) in these words; NULL: as they
 * are. Roots with anyOf and its like, which providers refuse, are wrapped: the arguments then are
 * the one member `wrapped_arguments` of an object. */
void ah_dialect_put(const ah_rewrite_target *words, ah_slice schema, ah_buf *out);
bool ah_dialect_wraps(ah_slice schema);

#define AH_WRAPPED "wrapped_arguments"

/* The arguments a model wrote, if they are wrapped, become those within. */
void ah_dialect_unwrap(const ah_mem *mem, ah_buf *arguments);

/* The arguments of a call (JSON string) as the object some wires want: the text as it was
 * written, `{}` where it is none; wrapped where that is so. The entry that is being lowered has the
 * call. */
void ah_dialect_put_arguments(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out);

/* The same where the wire has them as a string with JSON in it: as the model wrote them. */
void ah_dialect_put_text(const ah_wire *w, ah_slice name, ah_slice arguments, ah_buf *out);

#endif
