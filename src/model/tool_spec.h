/* The specification of a tool as JSON: the form in transcript entries, the part of it for
 * models, and differences between two specifications of one name. It owns nothing.
 * Callers: its floor, wire, run, lua. */
#ifndef AH_MODEL_TOOL_SPEC_H
#define AH_MODEL_TOOL_SPEC_H

#include "model/tool.h"

/* Makes {"annotations":..,"description":..,"examples":..,"name":..,"parameters":..,"strict":..,
 * "version":..}, without members that have no value. In brief, `full` is the full specification
 * and replaces the examples. */
ah_status ah_spec_make(const ah_tool *t, ah_slice description, ah_slice params, ah_text **out,
                       ah_err *err);

/* Appends the part for models: the description followed by the examples, the name, the
 * parameters, and `strict` if set. Annotations and versions are for programs. */
void ah_spec_put_told(ah_slice spec, ah_buf *out);
/* Appends likewise with the annotations, for adapters in Lua. */
void ah_spec_put_annotated(ah_slice spec, ah_buf *out);
void ah_spec_put_told_list(ah_slice specs, ah_buf *out); /* for a JSON list of them */
/* Appends `before`, then the description followed by the examples as a JSON string. Returns
 * false, and appends nothing, without a description. */
bool ah_spec_put_description(const char *before, ah_slice spec, ah_buf *out);

enum { AH_SPEC_DESCRIPTION = 1 }; /* a bit in the sets of ah_spec_differences */

/* Returns the set of members that differ; 0: none. */
unsigned ah_spec_differences(ah_slice was, ah_slice now);
/* True if the parts for models are equal. */
bool ah_spec_tells_alike(ah_slice a, ah_slice b);
/* Appends the names of the members in the set: "description, parameters". */
void ah_spec_put_differences(unsigned set, ah_buf *out);

#endif
