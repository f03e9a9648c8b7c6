/* Parses server-sent events by the WHATWG rules, fed with bytes cut anywhere. More lenient in two
 * points: blanks before a field are skipped, and the last event needs neither its blank line nor
 * its line end. `data: [DONE]` is ordinary data. Comments and unknown fields are ignored; id and
 * retry are kept if `resumable` is set. The parser owns its buffers, at most max_event bytes for
 * one event. The callback must not feed the same parser. Callers: its floor, lua. */
#ifndef AH_WIRE_SSE_H
#define AH_WIRE_SSE_H

#include "base/buf.h"

typedef struct ah_sse {
    ah_buf line;  /* the unfinished line */
    ah_buf event; /* event name; "" for message */
    ah_buf data;
    ah_buf id; /* id of the last event in the stream; "" before the first id */
    /* Milliseconds that a client must wait before it connects again; -1: not given. */
    int64_t retry;
    bool resumable; /* set by the owner after ah_sse_init: reads id and retry */
    bool started;   /* past the first line, which may begin with a byte order mark */
    bool cr;        /* the last byte was \r: a following \n belongs to it */
    bool has_data;
} ah_sse;

/* Called for each event that has a data field, even an empty one. The slices are valid during the
 * call. Any result but AH_OK ends the feed and is returned. */
typedef ah_status (*ah_sse_fn)(void *ud, ah_slice event, ah_slice data, ah_err *err);

/* max_event is the limit of one event in bytes: its name, its data and the current line together;
 * more is AH_HTTP. Allocates nothing before the first feed. */
void ah_sse_init(ah_sse *s, const ah_mem *mem, size_t max_event);
void ah_sse_clear(ah_sse *s);
/* After any result but AH_OK the parser may only be cleared. */
ah_status ah_sse_feed(ah_sse *s, ah_slice bytes, ah_sse_fn fn, void *ud, ah_err *err);
/* The stream has ended: treats the unfinished line as complete, and emits the pending event. */
ah_status ah_sse_end(ah_sse *s, ah_sse_fn fn, void *ud, ah_err *err);

#endif
