/* Checks the examples of a tool, for tool.c. Callers: its floor. */
#ifndef AH_MODEL_TOOL_EXAMPLES_H
#define AH_MODEL_TOOL_EXAMPLES_H

#include "model/tool.h"

/* Each of `examples` (checked JSON) must be { description, input, output } that matches the
 * tool's schemas. Fails with AH_PROMPT_VALIDATION, with `tool` and `param` in the details. */
ah_status ah_tool_check_examples(const ah_tool *t, ah_slice examples, ah_err *err);

#endif
