/* Errors: a status as the return value, and an ah_err with the message. The struct holds the
 * message itself, so an error needs no memory, lack of memory included.
 * Callers: its floor, wire, io, lua. */
#ifndef AH_BASE_ERR_H
#define AH_BASE_ERR_H

#include <stdarg.h>

#include "agenthost.h" /* ah_status */
#include "base/mem.h"
#include "base/slice.h"

typedef enum ah_phase {
    AH_PHASE_NONE,
    AH_PHASE_REQUEST,
    AH_PHASE_TOOL,
    AH_PHASE_RESPONSE
} ah_phase;

enum { AH_MAX_MESSAGE = 1024 };

typedef struct ah_err {
    ah_status status;
    ah_phase phase;
    bool retryable;
    int http_status;              /* 0: no response */
    char message[AH_MAX_MESSAGE]; /* UTF-8; a longer message is cut, and ends with the number of
                                     bytes left out */
    char details[1024];           /* JSON object with fields that name the place, or "" */
} ah_err;

/* Sets status and message, and clears the rest. Returns the status, for `return ah_err_set(err,
 * ...)`. err may be NULL. */
ah_status ah_err_set(ah_err *err, ah_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

ah_status ah_err_vset(ah_err *err, ah_status st, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* snprintf for messages: text that does not fit is cut between two characters, and AH_LEFT_OUT
 * follows if there is room. Returns the length, which is less than `size` (not 0). */
size_t ah_print(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
size_t ah_vprint(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* Sets AH_OK and an empty message. Each request begins and ends so. */
void ah_err_clear(ah_err *err);

/* Sets AH_NOMEM, always with the same message, and returns it. */
ah_status ah_err_nomem(ah_err *err);

/* Returns the status of a code that a script names; AH_OK: unknown. */
ah_status ah_status_from_code(ah_slice code);

const char *ah_phase_name(ah_phase phase); /* NULL for AH_PHASE_NONE */

#endif
