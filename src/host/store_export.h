/* Streams as text: JSON lines, the first of which says what it is. A text may come from anywhere:
 * its chain of hashes and the fold check it before anything is written. Owns nothing.
 * Callers: lua. */
#ifndef AH_HOST_STORE_EXPORT_H
#define AH_HOST_STORE_EXPORT_H

#include "host/keeper.h"

/* The `format` of the first line. */
#define AH_EXPORT_FORMAT "agenthost-stream"
enum { AH_EXPORT_VERSION = 1 };

/* Appends the stream: { format, version, written_by, stream, records, kept, label }, then a line
 * for each record, { number, time, kind, said, kept or kept_hash, hash }; label and kept may be
 * absent. kept: with what the records keep; else with its hashes. AH_USAGE: there is no such
 * stream. */
ah_status ah_open_store_export(ah_host *h, ah_open_store *s, ah_slice stream, bool kept,
                               ah_buf *out, ah_err *err);

/* Writes a stream of such a text. as: its name; .p NULL: that of the text. Appends { id, records,
 * erased, head }. AH_CONFLICT: there is one of this name. AH_USAGE: the text is none of an export,
 * or the name is not allowed. AH_STORE: it is damaged; or the store is. */
ah_status ah_open_store_import(ah_host *h, ah_open_store *s, ah_slice text, ah_slice as,
                               ah_buf *out, ah_err *err);

#endif
