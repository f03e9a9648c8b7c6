/* Checking the examples of a tool; for tool.c. */
#ifndef AH_MODEL_TOOL_EXAMPLES_H
#define AH_MODEL_TOOL_EXAMPLES_H

#include "model/tool.h"

/* `examples` is checked JSON. Each must be { description, input, output } of the tool's own
 * schemas: AH_PROMPT_VALIDATION, with `tool` and `param` in the details. */
ah_status ah_tool_check_examples(const ah_tool *t, ah_slice examples, ah_err *err);

#endif
