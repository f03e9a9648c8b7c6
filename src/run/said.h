/* The arguments of a call as they are said. Its handler and the policies get them as the model, a
 * person or code has sent them; people, models and records see them without keys. Borrows the call.
 * Callers: its floor, host, lua. */
#ifndef AH_RUN_SAID_H
#define AH_RUN_SAID_H

#include "run/call.h"

/* True if a key of the program is in the text. */
bool ah_said_has_key(const ah_call *c, ah_slice text);
/* Appends checked JSON without keys. Returns false, and appends nothing, if a key is not inside of
 * a string, or if `out` fails. */
bool ah_said_json(const ah_call *c, ah_slice json, ah_buf *out);
/* Appends the checked arguments of the call without keys, an object. */
void ah_said_args(const ah_call *c, ah_buf *out);
/* Appends `args`, an object that someone has made from ah_said_args, with the original in place of
 * each member that is as it was said. */
void ah_said_restore(const ah_call *c, ah_slice args, ah_buf *out);

#endif
