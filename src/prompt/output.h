/* Structured output: an answer that must be JSON of a schema. It finds the JSON in the model's
 * text, checks it, and writes the texts for the model: the request, and the fault. The run
 * decides about repeated requests. It owns nothing. Callers: run, lua. */
#ifndef AH_PROMPT_OUTPUT_H
#define AH_PROMPT_OUTPUT_H

#include "schema/schema.h"

/* Returns the JSON of an answer: the whole text, or, if that is not JSON, the content of its
 * only code fence (``` or ~~~, marked json or not at all). White space around it is removed. The
 * result need not be JSON. */
ah_slice ah_output_find(const ah_mem *mem, ah_slice answer);

/* Checks an answer. AH_OK: `value` has the JSON with its defaults, or, if it does not conform,
 * `words` has the faults (one line, at most 4 KiB). Fails with AH_NOMEM, or AH_CANCELLED if the
 * interrupt (may be NULL) ended it; `words` then has the place. Both buffers must be initialized
 * and empty. */
ah_status ah_output_check(const ah_schema *schema, ah_slice answer, const ah_interrupt *interrupt,
                          ah_buf *value, ah_buf *words, ah_err *err);

/* Appends the request for JSON of the schema, for a wire that does not carry schemas. */
void ah_output_ask(const ah_schema *schema, ah_buf *out);
/* Appends the request after a wrong answer. */
void ah_output_ask_again(const ah_schema *schema, ah_slice words, ah_buf *out);

#endif
