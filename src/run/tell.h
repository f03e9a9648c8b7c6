/* The part of a run that all others may use: its config, its clock, and its events. The lowest of
 * the floor: the gate, injection and the strategies know no more of a run, and neither does the
 * book of asks. */
#ifndef AH_RUN_TELL_H
#define AH_RUN_TELL_H

#include "run/config.h"

const ah_run_config *ah_run_cfg(const ah_run *run);
int64_t ah_run_wall(const ah_run *run); /* ms since the epoch */

void ah_run_emit(ah_run *run, ah_event_type type, const ah_field *field, size_t n);

/* The first n of the fields; those behind them are not known. */
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

/* One `warning` event and log line. */
void ah_run_warn(ah_run *run, ah_slice message);
/* The event alone, about a tool. changed: JSON, what differs of it; .p NULL: does not say. */
void ah_run_warn_of_tool(ah_run *run, ah_slice message, ah_slice tool_name, ah_slice changed);

#endif
