/* Recognises errors of a full context, as servers and proxies report them: the conversation, with
 * room for the answer, does not fit into the model's context window. full.c has the table of their
 * words. Readers ask it about each error. Owns no memory; out of memory is reported in `status`.
 * Callers: its floor, run, lua. */
#ifndef AH_WIRE_FULL_H
#define AH_WIRE_FULL_H

#include "base/json.h"

typedef struct ah_full {
    bool is;
    int64_t window, used; /* tokens; 0: unknown */
    ah_status status;     /* AH_NOMEM: could not be decided */
} ah_full;

/* An error from a wire: JSON values, .p NULL if absent. */
typedef struct ah_wire_error {
    int status; /* HTTP status; 0: none */
    ah_slice error, message, word, type;
} ah_wire_error;

ah_full ah_full_judge(const ah_mem *mem, const ah_wire_error *told);
/* Judges plain text instead. */
ah_full ah_full_judge_text(const ah_mem *mem, int status, ah_slice text);

/* True if a wire uses the word (a JSON string) for a full context, as the code of an error or as
 * the reason why an answer ended. */
bool ah_full_word(ah_slice word);

/* Sets code, retryable (false) and the numbers of an error that has its message. */
void ah_full_tell(const ah_full *full, ah_err *err);

/* Advice that ends the message. */
#define AH_FULL_ADVICE                                                                             \
    "; the context is full: begin another conversation, or take a model with a larger window"

#endif
