/* Structured output: an answer that must be JSON of a schema. Finding it in what the
 * model wrote, checking it, and the words for the model: what is asked for, and what
 * was wrong. Asking again, and how often, is the run's. */
#ifndef AH_PROMPT_OUTPUT_H
#define AH_PROMPT_OUTPUT_H

#include "schema/schema.h"

/* The JSON of an answer: the whole text, or where that is none what stands in its one
 * code fence (``` or ~~~, marked json or not at all). White space around it is left out.
 * What is found need not be JSON. */
ah_slice ah_output_find(const ah_mem *mem, ah_slice answer);

/* Checks an answer. AH_OK: `value` has got the JSON with its defaults, or, where it does not
 * conform, `words` what is wrong (in one line, at most 4 KiB). Else AH_NOMEM. Both are
 * initialised and empty. AH_CANCELLED: it was interrupted (may be NULL), and `words` say where. */
ah_status ah_output_check(const ah_schema *schema, ah_slice answer, const ah_interrupt *interrupt,
                          ah_buf *value, ah_buf *words, ah_err *err);

/* Appends what the model is told of the schema where its wire does not carry it. */
void ah_output_ask(const ah_schema *schema, ah_buf *out);
/* Appends what it is told of an answer that was wrong. */
void ah_output_ask_again(const ah_schema *schema, ah_slice words, ah_buf *out);

#endif
