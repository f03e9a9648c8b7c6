/* Recognises the errors of a full context, as a model's server or a program between tells them: the
 * conversation, with room for the answer, does not fit into the model's window. Each wire says so
 * in its own words; the table of them is in full.c. Readers ask it about errors. */
#ifndef AH_WIRE_FULL_H
#define AH_WIRE_FULL_H

#include "base/json.h"

typedef struct ah_full {
    bool is;
    int64_t window, used; /* tokens; 0: not said */
    ah_status status;     /* AH_NOMEM: it was not found out */
} ah_full;

/* An error as a wire tells it: JSON values, .p NULL where there are none. */
typedef struct ah_wire_error {
    int status; /* of HTTP; 0: none */
    ah_slice error, message, word, type;
} ah_wire_error;

ah_full ah_full_judge(const ah_mem *mem, const ah_wire_error *told);
/* The same of plain text. */
ah_full ah_full_judge_text(const ah_mem *mem, int status, ah_slice text);

/* True if the word (a JSON string) is one by which a wire says so: of an error, or why an answer
 * ended. */
bool ah_full_word(ah_slice word);

/* Makes an error of it, whose message is there already: its code, no other try, its numbers. */
void ah_full_tell(const ah_full *full, ah_err *err);

/* The advice at the end of the message. */
#define AH_FULL_ADVICE                                                                             \
    "; the context is full: begin another conversation, or take a model with a larger window"

#endif
