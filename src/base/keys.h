/* Keys out of the bytes of a terminal: UTF-8, the sequences of xterm, VT and the Linux console,
 * those of kitty's keyboard protocol, pastes in brackets. Bytes may be cut anywhere; what is kept
 * of a sequence is bounded, of a paste by a maximum. It knows no clock: its reader says when
 * nothing came for a time. */
#ifndef AH_BASE_KEYS_H
#define AH_BASE_KEYS_H

#include "base/buf.h"

/* A key that was pressed. */
typedef struct ah_key {
    char name[16]; /* "enter", "f5", or the character itself, small where it is a letter of ASCII */
    char text[8];  /* what it types; "": nothing */
    bool ctrl, alt, shift, super;
} ah_key;

typedef enum ah_keys_event { AH_KEYS_NOTHING, AH_KEYS_KEY, AH_KEYS_PASTE } ah_keys_event;

/* For how long a sequence that has begun is waited for. */
typedef enum ah_keys_wait {
    AH_KEYS_COMPLETE, /* nothing has begun, or it ends by itself */
    AH_KEYS_ESCAPE,   /* it may be the key Escape, or one together with Alt */
    AH_KEYS_SEQUENCE  /* it is a sequence that was not finished */
} ah_keys_wait;

enum { AH_KEYS_HELD = 48 }; /* bytes of a sequence; a longer one is none of ours and passed over */

typedef struct ah_keys {
    int state;
    bool alt; /* the key that has begun came behind an Escape */
    char held[AH_KEYS_HELD];
    size_t n;       /* of the sequence so far, also where it is more than is held */
    size_t need;    /* of a character of several bytes; of a mouse's report, what is left */
    size_t matched; /* of what ends a paste */
    ah_buf paste;
    bool cut; /* the paste was larger than the maximum */
} ah_keys;

void ah_keys_init(ah_keys *k, const ah_mem *mem, size_t max_paste);
void ah_keys_clear(ah_keys *k);

/* Takes bytes off *in until an event is there (or AH_KEYS_NOTHING and *in is empty). */
ah_keys_event ah_keys_next(ah_keys *k, ah_slice *in, ah_key *out);
/* Nothing came for as long as ah_keys_wait_for says: what has begun is over. */
ah_keys_event ah_keys_quiet(ah_keys *k, ah_key *out);
ah_keys_wait ah_keys_wait_for(const ah_keys *k);

/* After AH_KEYS_PASTE: appends its text. Line ends are "\n"; other controls than tabs, and escape
 * sequences, are left out; bytes that are no UTF-8 are U+FFFD. True: it was cut at the maximum.
 * Memory that ran out while it came shows in `out`. */
bool ah_keys_pasted(ah_keys *k, ah_buf *out);

#endif
