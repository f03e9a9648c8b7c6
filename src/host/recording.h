/* Recordings: HTTP exchanges written to a file, and replayed from it in place of a network
 * (docs/reference/recording.md). A recording is a tap on io's HTTP client, the replay a carrier of
 * its requests. Both own their file and must outlive the client. Callers: its floor. */
#ifndef AH_HOST_RECORDING_H
#define AH_HOST_RECORDING_H

#include "base/secret.h"
#include "io/http.h"

/* Writes each exchange that the tap gets as a line of a new file, without secrets. After one that
 * could not be written, all requests fail. */
typedef struct ah_recording ah_recording;
ah_status ah_recording_open(const ah_mem *mem, const char *path, const ah_secrets *secrets,
                            ah_recording **out, ah_err *err);
ah_http_tap ah_recording_tap(ah_recording *r); /* borrowed from the recording */
void ah_recording_free(ah_recording *r);       /* NULL is allowed */

/* Removes keys that the pieces of a response's body form together; false: out of memory. */
bool ah_recording_clean(const ah_mem *mem, const ah_secrets *secrets, ah_buf *body);

/* Returns AH_USAGE if the file is not a recording. */
typedef struct ah_replay ah_replay;
ah_status ah_replay_open(const ah_mem *mem, const char *path, ah_replay **out, ah_err *err);
ah_http_carrier ah_replay_carrier(ah_replay *r); /* borrowed from the replay */
/* Returns the number of recorded exchanges that were not requested; *path, *line: file and line of
 * the first of them. */
size_t ah_replay_unused(const ah_replay *r, const char **path, size_t *line);
void ah_replay_free(ah_replay *r); /* NULL is allowed */

#endif
