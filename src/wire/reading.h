/* What the readers of HTTP providers share: a response as a stream of events or as one
 * document, errors in the provider's words, and when it is over. A provider's reader begins
 * with ah_reading, names its dialect, and reads documents; four of its vtable's slots are the
 * functions here. */
#ifndef AH_WIRE_READING_H
#define AH_WIRE_READING_H

#include "wire/adapter.h"
#include "wire/sse.h"

typedef struct ah_reading ah_reading;

/* A word of an error that says what status it would have had, or 0: never worth a retry. */
typedef struct ah_error_word {
    const char *word;
    int status;
} ah_error_word;

typedef struct ah_dialect {
    const char *name;           /* begins every message: "openai" */
    const char *key_hint;       /* what to do on a 401 */
    const char *no_answer;      /* said of a document that holds none */
    size_t size;                /* of the reader's struct */
    const ah_error_word *words; /* beyond those that all share; ends with NULL */
    /* One event's data or the whole answer, checked. It sets `begun` and `finished`. */
    ah_status (*document)(ah_reading *r, ah_slice doc, ah_err *err);
    /* The whole answer or stream was read; may be NULL. Not called after an error. */
    ah_status (*complete)(ah_reading *r, ah_err *err);
    void (*clear)(ah_reading *r); /* the reader's own parts; may be NULL */
    const char *advising; /* an address whose 429 without a time to wait is a spent budget, or NULL */
} ah_dialect;

struct ah_reading {
    ah_reader base;
    const ah_dialect *dialect;
    bool events;   /* an event stream, else one document */
    bool begun;    /* something of an answer was seen */
    bool finished; /* what is still missing may be missing */
    bool done;     /* the stream said its end: what follows is not ours */
    ah_sse sse;
    ah_buf body;
};

/* Makes the reader, of dialect->size bytes, zero behind the ah_reading. */
ah_status ah_reading_open(const ah_dialect *d, const ah_adapter *a, ah_assembly *msg, ah_reader **out,
                          ah_err *err);
/* Slots of ah_adapter_vt. */
ah_status ah_reading_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_reading_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_reading_end(ah_reader *r, ah_err *err);
void ah_reading_close(ah_reader *r);

/* For `document`. `error` is the provider's error object (or a string), or absent: then the
 * body is quoted. Returns AH_PROVIDER. */
ah_status ah_reading_error(ah_reading *r, ah_slice error, ah_err *err);
ah_status ah_reading_bad(ah_reading *r, ah_err *err, const char *what);

/* A count; 0 where the literal is absent or no count. */
int64_t ah_reading_count(ah_slice literal);
/* A string with something in it. */
bool ah_reading_says(ah_slice value);

#endif
