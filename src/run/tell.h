/* The part of a run that all others may use: its config, its clock and its events. The gate,
 * injection, the strategies and the book of asks know no more of a run than this. Events are
 * emitted synchronously: the listener runs before these functions return.
 * Callers: its floor, host. */
#ifndef AH_RUN_TELL_H
#define AH_RUN_TELL_H

#include "run/config.h"

/* The run's copy of its config, valid as long as the run. */
const ah_run_config *ah_run_cfg(const ah_run *run);
int64_t ah_run_wall(const ah_run *run); /* ms since the epoch */

/* Emits an event with n fields, which are borrowed, to the log and the listener. */
void ah_run_emit(ah_run *run, ah_event_type type, const ah_field *field, size_t n);

/* Emits with the first n of the fields only. */
#define EMIT_SOME(run, type, n, ...)                                                               \
    do {                                                                                           \
        const ah_field fields_[] = {__VA_ARGS__};                                                  \
        ah_run_emit(run, type, fields_, n);                                                        \
    } while (0)

#define EMIT(run, type, ...)                                                                       \
    do {                                                                                           \
        const ah_field fields_[] = {__VA_ARGS__};                                                  \
        ah_run_emit(run, type, fields_, sizeof fields_ / sizeof *fields_);                         \
    } while (0)

/* Returns the words without keys: a copy in b, or the words themselves if there are none in them.
 * The caller clears b, which this initializes. */
ah_slice ah_run_said(const ah_run *run, ah_slice words, ah_buf *b);
/* Emits one `warning` event, without keys, and logs it. */
void ah_run_warn(ah_run *run, ah_slice message);
/* Emits the event only, about a tool. changed: JSON, how the tool differs; .p NULL: unknown. */
void ah_run_warn_of_tool(ah_run *run, ah_slice message, ah_slice tool_name, ah_slice changed);

#endif
