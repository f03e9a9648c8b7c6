/* The specification of a tool, as JSON: what an entry of the transcript keeps of it, what a model
 * is told of that, and in what two specifications of one name differ. */
#ifndef AH_MODEL_TOOL_SPEC_H
#define AH_MODEL_TOOL_SPEC_H

#include "model/tool.h"

/* {"annotations":..,"description":..,"examples":..,"name":..,"parameters":..,"strict":..,
 * "version":..}: members without a value are left out. In brief, `full` is the full
 * specification and stands for the examples. */
ah_status ah_spec_make(const ah_tool *t, ah_slice description, ah_slice params, ah_text **out,
                       ah_err *err);

/* Appends what a model is told of it: the description with the examples behind it, the name, the
 * parameters, and `strict` where it is said. Annotations and versions are for programs. */
void ah_spec_put_told(ah_slice spec, ah_buf *out);
/* The same with the annotations: what an adapter in Lua is told. */
void ah_spec_put_annotated(ah_slice spec, ah_buf *out);
void ah_spec_put_told_list(ah_slice specs, ah_buf *out); /* the same of a JSON list of them */
/* Appends `before`, then the description with the examples behind it, as a JSON string. False, and
 * nothing: there is no description. */
bool ah_spec_put_description(const char *before, ah_slice spec, ah_buf *out);

enum { AH_SPEC_DESCRIPTION = 1 }; /* in the sets of ah_spec_differences */

/* The members in which two specifications differ, as a set; 0: they are the same. */
unsigned ah_spec_differences(ah_slice was, ah_slice now);
/* True if a model is told the same of both. */
bool ah_spec_tells_alike(ah_slice a, ah_slice b);
/* Appends the names of the members in the set: "description, parameters". */
void ah_spec_put_differences(unsigned set, ah_buf *out);

#endif
