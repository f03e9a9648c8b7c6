/* Keeping what is in a store: streams are removed, what they keep is erased, and their chains of
 * hashes are verified; export and import are in host/store_export.h. Owns nothing; results are
 * appended to the caller's buffer as JSON. All fail with AH_USAGE if the engine does not do it.
 * Callers: its floor, lua. */
#ifndef AH_HOST_STORE_KEEP_H
#define AH_HOST_STORE_KEEP_H

#include "host/keeper.h"

/* Removes a stream. Some of it may stay in the files until ah_open_store_purge. AH_CONFLICT: it is
 * held. AH_USAGE: there is none of this name. */
ah_status ah_open_store_remove(ah_open_store *s, ah_slice stream, ah_err *err);
/* Writes the files anew, without what was removed or erased, which takes a second for some 100 MB.
 */
ah_status ah_open_store_purge(ah_open_store *s, ah_err *err);
/* Erases what records before `older` (ms since the epoch) keep, where opening the stream does not
 * need it: before the last turn or checkpoint. Adds the number of records to *n. */
ah_status ah_open_store_erase(ah_open_store *s, ah_slice stream, int64_t older, int64_t *n,
                              ah_err *err);

/* Appends { id, records, head, erased, success, code, at, message }; the last three are absent
 * without a fault; head: "<number>:<hash>";
 * code: "changed", "missing", "cut" or "forged". head: one that was noted before, or its hash
 * alone; .p NULL: none. AH_USAGE: it has another form, or there is no such stream. */
ah_status ah_open_store_verify(ah_open_store *s, ah_slice stream, ah_slice head, ah_buf *out,
                               ah_err *err);

/* Appends the head of a stream that has records: "<number>:<hash>". AH_USAGE: the engine has no
 * hashes. */
ah_status ah_open_store_head(ah_open_store *s, ah_slice stream, ah_buf *out, ah_err *err);

/* Appends { size, blobs, blob_bytes, streams: [ { id, conversation, records, bytes, erased, oldest,
 * changed, messages } ] }, the stream that was changed last first; times in ms since the epoch. */
ah_status ah_open_store_stat(ah_host *h, ah_open_store *s, ah_buf *out, ah_err *err);

/* Appends a hash in hexadecimal digits. */
void ah_put_hash(ah_buf *out, const unsigned char hash[AH_STORE_HASH]);
/* Reads `n` bytes of hexadecimal digits. False: it is something else. */
bool ah_read_hex(ah_slice text, unsigned char *out, size_t n);

#endif
