/* The gate: every call passes the policies of its run and of the runs around it, and those of the
 * host, whoever makes it. What fails here keeps the call, or its result, back. The state machine
 * asks it before a handler, dispatch after one; who the policies are is said in hooks.h. */
#ifndef AH_RUN_GATE_H
#define AH_RUN_GATE_H

#include "run/call.h"

/* The arguments are checked. True: the handler may start; false: the call is answered, or waits for
 * an approval, which the caller begins (AH_CALL_ASKING). */
bool ah_gate_before(ah_call *c);

/* A result, before anybody else sees it. The outcome becomes what the policies let through; what it
 * borrows from then on is held by *held, which the caller clears. `words` is what the model would
 * read, and is made anew. False: the result is blocked, and the call is answered so. */
typedef struct ah_gate_texts {
    ah_text *value, *message, *images, *type;
} ah_gate_texts;
bool ah_gate_after(ah_call *c, ah_outcome *o, ah_buf *words, ah_gate_texts *held);
void ah_gate_texts_clear(ah_gate_texts *h);

#endif
