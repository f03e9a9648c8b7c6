/* The parts that readers of HTTP providers share: a response as a stream of events or as one
 * document, errors in the provider's words, and when it is over. A provider's reader begins
 * with ah_wire_reader, brings its ah_wire_reader_vt, and reads documents; four slots of its
 * ah_adapter_vt are the functions here. The adapter begins with ah_wire_native. */
#ifndef AH_WIRE_READER_H
#define AH_WIRE_READER_H

#include "wire/provider.h"
#include "wire/shape.h"
#include "wire/sse.h"

typedef struct ah_wire_reader ah_wire_reader;

/* A word of an error, and what it says: the status that it would have had, or one of these. */
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
    const char *no_answer;      /* said of a document that holds none */
    const char *stop;           /* the member that says why an answer ended */
    size_t size;                /* of the reader's struct */
    const ah_error_word *words; /* beyond those that all share; ends with NULL */
    const ah_shape *whole;      /* of an answer that is one document; ah_no_error is in both */
    const ah_shape *piece;      /* of an event, or of a line */
    bool listed;                /* a whole answer may be the list of a stream's documents */
    /* The head came; may be NULL. */
    void (*head)(ah_wire_reader *r, const ah_response_head *h);
    /* One event's data, one line or the whole answer, of its shape and without `error`. It sets
     * `begun` and `finished`. */
    ah_status (*document)(ah_wire_reader *r, ah_slice doc, ah_err *err);
    /* The whole answer or stream was read; may be NULL. Not called after an error. */
    ah_status (*complete)(ah_wire_reader *r, ah_err *err);
    /* Reads what more an error holds: advice for the reader's fields, and words that are added to
     * the message; may be NULL. */
    void (*fault)(ah_wire_reader *r, ah_slice error, ah_buf *more);
    void (*clear)(ah_wire_reader *r); /* the reader's own parts; may be NULL */
    /* an address whose 429 without a time to wait is a spent budget, or NULL */
    const char *advising;
} ah_wire_reader_vt;

struct ah_wire_reader {
    ah_reader base;
    const ah_wire_reader_vt *vt;
    bool pieces;           /* a stream of events or lines (or a list of them), else one document */
    bool begun;            /* something of an answer was seen */
    bool finished;         /* what is still missing may be missing */
    bool done;             /* the stream said its end: what follows is not ours */
    bool never;            /* no error of this response is worth a retry */
    bool wrong_key;        /* its error is about the key */
    ah_shape_values found; /* of the document at work, where the tables hand something over */
    ah_sse sse;
    ah_buf body; /* a document, or the line that comes */
};

/* Makes the reader, of vt->size bytes, zero behind the ah_wire_reader. */
ah_status ah_wire_reader_open(const ah_wire_reader_vt *vt, const ah_adapter *a, ah_assembly *msg,
                              ah_reader **out, ah_err *err);
/* Slots of ah_adapter_vt. */
ah_status ah_wire_reader_head_came(ah_reader *r, const ah_response_head *head, ah_err *err);
ah_status ah_wire_reader_feed(ah_reader *r, ah_slice bytes, ah_err *err);
ah_status ah_wire_reader_end(ah_reader *r, ah_err *err);
void ah_wire_reader_close(ah_reader *r);

/* For `document`. `error` is the provider's error object (or a string), or absent: then the
 * body is quoted. Returns AH_PROVIDER, or AH_CONTEXT_FULL where its words say so (wire/full.h). */
ah_status ah_wire_reader_error(ah_wire_reader *r, ah_slice error, ah_err *err);
/* The same where its parts stand elsewhere: the message and a short word for it, JSON values. */
ah_status ah_wire_reader_fault(ah_wire_reader *r, ah_slice message, ah_slice word, ah_err *err);
ah_status ah_wire_reader_bad(ah_wire_reader *r, ah_err *err, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
/* AH_OK if a buffer of the reader's own is sound; AH_PROVIDER where the answer was too large for
 * it. */
ah_status ah_wire_reader_kept(ah_wire_reader *r, const ah_buf *b, ah_err *err);

/* A count; 0 where the literal is absent or no count. */
int64_t ah_wire_reader_count(ah_slice literal);
/* A string with something in it. */
bool ah_wire_reader_says(ah_slice value);

#endif
