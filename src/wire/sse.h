/* Server-sent events, WHATWG rules, fed with bytes cut anywhere, for reading.c. More lenient in
 * two points: blanks before a field are passed over, and the last event needs
 * neither its blank line nor its line end. `data: [DONE]` is data like any other.
 * Comments and unknown fields are ignored; id and retry are kept where `resumable` is set. */
#ifndef AH_WIRE_SSE_H
#define AH_WIRE_SSE_H

#include "base/buf.h"

typedef struct ah_sse {
    ah_buf line;  /* the unfinished line */
    ah_buf event; /* event name, "" for message */
    ah_buf data;
    ah_buf id;      /* the last event's id, of all the stream; "" before there is one */
    int64_t retry;  /* ms that the server asks for before a client connects again; -1: it asks for
                       none */
    bool resumable; /* set by the owner after ah_sse_init: id and retry are read */
    bool started;   /* past the first line, which may begin with a byte order mark */
    bool cr;        /* the last byte was \r: a following \n belongs to it */
    bool has_data;
} ah_sse;

/* Called for each event that has a data field, be it empty. The slices are valid
 * during the call, which must not feed the same parser. Anything but AH_OK ends
 * the feed and is returned. */
typedef ah_status (*ah_sse_fn)(void *ud, ah_slice event, ah_slice data, ah_err *err);

/* max_event: bytes of one event at most, its name, its data and the line being read
 * together; more is AH_HTTP. Needs no memory before the first feed. */
void ah_sse_init(ah_sse *s, const ah_mem *mem, size_t max_event);
void ah_sse_clear(ah_sse *s);
/* After anything but AH_OK the parser may only be cleared. */
ah_status ah_sse_feed(ah_sse *s, ah_slice bytes, ah_sse_fn fn, void *ud, ah_err *err);
/* End of the stream: takes the unfinished line as a line, hands out the pending event. */
ah_status ah_sse_end(ah_sse *s, ah_sse_fn fn, void *ud, ah_err *err);

#endif
