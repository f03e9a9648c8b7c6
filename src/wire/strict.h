/* Tools that the provider is asked to be strict with: it makes sure that the arguments fit the
 * parameters while the model writes them. Parameters are put into the subset that it takes
 * (wire/strict_subset.h): objects are closed, members that need not be there may be null instead
 * where all must be there, rules that the subset lacks are told in words. What cannot be said is
 * not half said: the tool is declared as it is, without strict. Wires that have it call it for each
 * tool; lower.c asks if it is wanted.
 *
 * Arguments are checked against the tool's own schema in any case, null where nothing was meant
 * counting as absent (ah_check_options.null_absent). */
#ifndef AH_WIRE_STRICT_H
#define AH_WIRE_STRICT_H

#include "wire/lower.h"

typedef enum ah_strictness {
    AH_STRICT_UNASKED, /* neither the tool nor the settings say anything of it */
    AH_STRICT_OFF,     /* not wanted for this tool, or it cannot be said */
    AH_STRICT_ON
} ah_strictness;

/* The parameters of a tool's specification, and whether they are the strict ones. The tool's own
 * `strict` wins over the settings' option. A verdict on a tool does not change by those that come
 * after it: where a request may hold so much only, the first ones have it. */
ah_strictness ah_strict_put_parameters(const ah_wire *w, ah_slice spec, ah_buf *out);

/* True if one of the offered tools asks to be strict, and the wire and the model can. */
bool ah_strict_asked(const ah_wire *w);

/* A schema put into the subset, appended to `out`. False, and nothing: it cannot be said, or `out`
 * has failed. */
bool ah_strict_put(ah_strict_rules rules, ah_slice schema, ah_strict_weight *weight, ah_buf *out);

#endif
