/* Errors: a status that travels as return value and an ah_err that carries
 * the words. The message is held in the struct itself, so that being out of
 * memory can be told like any other error. */
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
    int http_status;              /* 0 where no response came */
    char message[AH_MAX_MESSAGE]; /* UTF-8; of a longer one the beginning, and how much is left out
                                   */
    char details[1024];           /* JSON object text with the fields that name the place, or "" */
} ah_err;

/* Sets status and message and clears the rest; returns the status, so that
 * `return ah_err_set(err, ...)` reads well. err may be NULL. */
ah_status ah_err_set(ah_err *err, ah_status st, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

ah_status ah_err_vset(ah_err *err, ah_status st, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* snprintf for messages: a text that does not fit is cut between two characters, and AH_LEFT_OUT
 * follows it if there is room. Returns the length, which is less than `size` (not 0). */
size_t ah_print(char *out, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
size_t ah_vprint(char *out, size_t size, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

/* No error: AH_OK and no words. Each request begins and ends with it. */
void ah_err_clear(ah_err *err);

/* Out of memory, always with the same words. */
ah_status ah_err_nomem(ah_err *err);

/* The status of a code a script names, or AH_OK where there is none such. */
ah_status ah_status_from_code(ah_slice code);

const char *ah_phase_name(ah_phase phase); /* NULL for AH_PHASE_NONE */

#endif
