/* HTTP exchanges kept in a file, and taken from it in place of a network
 * (docs/reference/recording.md). Both stand beside the client of io: a tap on it, and a carrier of
 * its requests. */
#ifndef AH_HOST_RECORD_H
#define AH_HOST_RECORD_H

#include "base/secret.h"
#include "io/http.h"

/* Each exchange that the tap is told of becomes a line of the file (made anew), secrets taken out.
 * One that could not be written fails all requests after it. */
typedef struct ah_recorder ah_recorder;
ah_status ah_recorder_open(const ah_mem *mem, const char *path, const ah_secrets *secrets,
                           ah_recorder **out, ah_err *err);
ah_http_tap ah_recorder_tap(ah_recorder *r); /* lent by the recorder */
void ah_recorder_free(ah_recorder *r);       /* NULL is fine */

/* The body of a response without the keys that its pieces make; false: no memory. */
bool ah_record_clean(const ah_mem *mem, const ah_secrets *secrets, ah_buf *body);

/* AH_USAGE where the file is no recording. */
typedef struct ah_replay ah_replay;
ah_status ah_replay_open(const ah_mem *mem, const char *path, ah_replay **out, ah_err *err);
ah_http_carrier ah_replay_carrier(ah_replay *r); /* lent by the replay */
/* Returns the number of recorded exchanges that no request asked for; *path, *line: file and line
 * of the first of them. */
size_t ah_replay_unused(const ah_replay *r, const char **path, size_t *line);
void ah_replay_free(ah_replay *r); /* NULL is fine */

#endif
