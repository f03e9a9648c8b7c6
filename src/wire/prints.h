/* Fingerprints of requests, for records of conversations: hashes of the bytes that are new in a
 * request, the revision of the wire, and what they depend on beside the transcript. With these a
 * request can be made again in another process, and compared. Owns nothing; what is noted already
 * is in ah_wire.noted. Callers: run, journal. */
#ifndef AH_WIRE_PRINTS_H
#define AH_WIRE_PRINTS_H

#include "wire/lower.h"

/* Appends the members of a record `request` (docs/reference/journal.md) about the last update to
 * an object: revision, wire, trying, head, base, segments. `bytes` (NULL: not wanted) gets the
 * bytes themselves, as the record's kept part. */
void ah_prints_put(ah_wire *w, ah_buf *out, ah_buf *bytes);

/* Makes an adapter that lowers as the one of this member `wire` (checked JSON), for lowering only.
 * Of an adapter in Lua it is the form of our own in which its function gets a request. Its key is
 * a placeholder in `secrets`, which outlives it. Fails with AH_STORE if the member is wrong, else
 * as ah_provider_open. */
ah_status ah_prints_adapter(const ah_mem *mem, ah_secrets *secrets, ah_slice wire, ah_adapter **out,
                            ah_err *err);
/* Sets what the wire tries until an answer confirms it, as the member `trying` says (.p NULL:
 * nothing). */
void ah_prints_try(ah_wire *w, ah_slice trying);

#endif
