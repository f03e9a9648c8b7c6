/* The changes that a finished call staged, as JSON for its record (`staged` in
 * docs/reference/journal.md), and back into the call of another process, which then commits it as
 * if its own handler had staged it. Callers: its floor, lua. */
#ifndef AH_RUN_RESTAGE_H
#define AH_RUN_RESTAGE_H

#include "model/record.h"
#include "run/call.h"

/* Appends the object: what the call has staged so far, or {"lost":true} if some of it cannot be
 * written down. Not after the overlay is prepared. */
void ah_call_print_staged(const ah_call *call, ah_buf *out);
/* Appends such an object of an overlay on top of that of the call. False: it cannot be written
 * down. */
bool ah_call_print_in(const ah_call *call, const ah_overlay *o, ah_buf *out);
/* Puts what such an object holds into the call, which has staged nothing yet. AH_STORE: it is
 * damaged; AH_CONFLICT: this agent has no place for it, or it is {"lost":true}. After a failure the
 * call must be answered with it. */
ah_status ah_call_restage(ah_call *call, ah_slice staged, ah_err *err);

/* For a call whose files were being applied when its process ended: compares them with its record
 * `settled` (checked JSON), and appends the members of the record that ends it, `applied` or
 * `apply_failed` (*kind). names: the file systems in which to look. staged: what the call staged,
 * kept with its record `call_finished`; .p NULL: it is not known. It lets a call of which every
 * folder is as before or as after be settled once more: then `apply_failed` has no result. */
ah_status ah_call_end_applying(const ah_mem *mem, const ah_staged_names *names, ah_slice settled,
                               ah_slice staged, int64_t time, ah_record_kind *kind, ah_buf *said,
                               ah_err *err);

#endif
