/* The parts that readers of HTTP providers share: a response as a stream of events or lines or as
 * one document, errors in the provider's words, and the end of the response. A provider's reader
 * begins with ah_wire_reader and defines its ah_wire_reader_vt; four slots of its ah_adapter_vt are
 * the functions below. The adapter begins with ah_wire_native. A reader owns its buffers, within
 * fixed limits, and borrows adapter and assembly. Callers: its floor. */
#ifndef AH_WIRE_READER_H
#define AH_WIRE_READER_H

#include "wire/provider.h"
#include "wire/shape.h"
#include "wire/sse.h"

typedef struct ah_wire_reader ah_wire_reader;

/* A word of an error and its meaning: an HTTP status, or one of the values below. */
typedef struct ah_error_word {
    const char *word;
    int status;
} ah_error_word;

enum {
    AH_ERROR_NEVER = 0,  /* never worth a retry */
    AH_ERROR_KEY = -1,   /* the key is wrong, whatever the status: no retry, and a hint */
    AH_ERROR_AGAIN = -2, /* worth a retry, whatever the status */
};

typedef struct ah_wire_reader_vt {
    const char *no_answer;      /* error text for a document without an answer */
    const char *stop;           /* name of the member that says why an answer ended */
    size_t size;                /* size of the reader's struct */
    const ah_error_word *words; /* in addition to the shared ones; ends with NULL */
    const ah_shape *whole; /* shape of an answer in one document; ah_no_error is in both shapes */
    const ah_shape *piece; /* shape of an event or line */
    bool listed;           /* a whole answer may be the list of a stream's documents */
    /* The head has come; may be NULL. */
    void (*head)(ah_wire_reader *r, const ah_response_head *h);
    /* Reads one event's data, one line or the whole answer, which fits its shape and has no
     * `error`. Sets `begun` and `finished`. */
    ah_status (*document)(ah_wire_reader *r, ah_slice doc, ah_err *err);
    /* The whole answer or stream was read; may be NULL. Not called after an error. */
    ah_status (*complete)(ah_wire_reader *r, ah_err *err);
    /* Reads more from an error: sets the reader's fields, and adds text for the message to `more`.
     * May be NULL. */
    void (*fault)(ah_wire_reader *r, ah_slice error, ah_buf *more);
    void (*clear)(ah_wire_reader *r); /* frees the reader's own parts; may be NULL */
    /* An address whose 429 without a waiting time means a spent budget, or NULL. */
    const char *advising;
} ah_wire_reader_vt;

struct ah_wire_reader {
    ah_reader base;
    const ah_wire_reader_vt *vt;
    bool pieces;           /* a stream of events or lines (or a list of them), else one document */
    bool begun;            /* part of an answer was seen */
    bool finished;         /* nothing required is missing */
    bool done;             /* the stream has ended: later data is ignored */
    bool never;            /* no error of this response is worth a retry */
    bool wrong_key;        /* its error is about the key */
    ah_shape_values found; /* values of the current document that the shape tables hand over */
    ah_sse sse;
    ah_buf body; /* a document, or an unfinished line */
};

/* Makes the reader, of vt->size bytes, zero after the ah_wire_reader. */
ah_status ah_wire_reader_open(const ah_wire_reader_vt *vt, const ah_adapter *a, ah_assembly *msg,
                              ah_reader **out, ah_err *err);
/* Slots of ah_adapter_vt. */
ah_status ah_wire_reader_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_wire_reader_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_wire_reader_end(ah_reader *r, ah_err *err);
void ah_wire_reader_close(ah_reader *r);

/* For `document`. `error` is the provider's error object or string; if it is absent, the body is
 * quoted. Returns AH_PROVIDER, or AH_CONTEXT_FULL if its words mean a full context
 * (wire/full.h). */
ah_status ah_wire_reader_error(ah_wire_reader *r, ah_slice error, ah_err *err);
/* The same for an error whose message and short word (JSON values) are in other places. */
ah_status ah_wire_reader_fault(ah_wire_reader *r, ah_slice message, ah_slice word, ah_err *err);
/* Fails with AH_PROVIDER and this message, which may be retried as the response's status allows. */
ah_status ah_wire_reader_bad(ah_wire_reader *r, ah_err *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* AH_OK if a buffer of the reader has not failed; AH_PROVIDER if the answer was too large for
 * it. */
ah_status ah_wire_reader_kept(ah_wire_reader *r, const ah_buf *b, ah_err *err);

/* A count; 0 if the literal is absent or no count. */
int64_t ah_wire_reader_count(ah_slice literal);
/* True for a non-empty string. */
bool ah_wire_reader_says(ah_slice value);

#endif
