/* Strict tools: the provider guarantees, while the model writes, that arguments fit the parameters.
 * Parameters are rewritten into the subset that the provider supports (wire/strict_subset.h):
 * objects are closed, optional members may be null if all must be present, and rules outside the
 * subset are described in words. A tool that cannot be expressed is declared as it is, without
 * strict. Arguments are always checked against the tool's own schema, where a null without meaning
 * counts as absent (ah_check_options.null_absent). Owns no memory. Callers: its floor. */
#ifndef AH_WIRE_STRICT_H
#define AH_WIRE_STRICT_H

#include "wire/lower.h"

typedef enum ah_strictness {
    AH_STRICT_UNASKED, /* neither the tool nor the settings ask for it */
    AH_STRICT_OFF,     /* not wanted for this tool, or not possible */
    AH_STRICT_ON
} ah_strictness;

/* Appends the parameters of a tool's specification, and returns whether they are the strict ones.
 * The tool's own `strict` overrides the settings' option. Later tools never change the decision for
 * earlier ones: if a request has room for some strict tools only, the first get it. */
ah_strictness ah_strict_put_parameters(const ah_wire *w, ah_slice spec, ah_buf *out);

/* True if at least one offered tool asks to be strict, and wire and model support it. */
bool ah_strict_asked(const ah_wire *w);

/* Appends a schema rewritten into the subset. False, with nothing appended: it cannot be expressed,
 * or `out` has failed. */
bool ah_strict_put(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight, ah_buf *out);

#endif
