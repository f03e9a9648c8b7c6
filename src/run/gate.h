/* The gate: every call passes the policies of its run, of the runs around it, and of the host, in
 * that order, whether a model or code makes it. An error in a policy withholds the call or its
 * result. ah_gate_before is called before a handler, ah_gate_after with its outcome. hooks.h
 * describes the policies. Callers: its floor. */
#ifndef AH_RUN_GATE_H
#define AH_RUN_GATE_H

#include "run/call.h"
#include "run/hooks.h"

/* Asks the policies about a call with checked arguments. True: the handler may start. False: the
 * call is answered, or waits for an approval, which the caller begins (AH_CALL_ASKING). */
bool ah_gate_before(ah_call *c);

/* Shows a result to the policies before it reaches anything else. Changes the outcome to what they
 * let through; *held owns the texts that the outcome then borrows, and the caller clears it.
 * `words` is the text for the model, and is written anew. Returns false if the result is blocked;
 * the call is then answered with that. If a policy wants the changes approved, c->reason says why,
 * and c->approver decides; else c->reason is NULL. */
typedef struct ah_gate_texts {
    ah_text *value, *message, *images, *type;
} ah_gate_texts;
bool ah_gate_after(ah_call *c, ah_outcome *o, ah_buf *words, ah_gate_texts *held);
void ah_gate_texts_clear(ah_gate_texts *h);
/* Returns the hooks that approve what an earlier process has shown: the outermost ones that decide
 * by a script, else the innermost ones. NULL: there are none. */
const ah_hooks *ah_gate_approver(const ah_call *c);

#endif
