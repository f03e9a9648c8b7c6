/* Decodes keys from the bytes of a terminal: UTF-8, the sequences of xterm, VT and the Linux
 * console, those of kitty's keyboard protocol, and bracketed pastes. Bytes may be cut anywhere.
 * It keeps AH_KEYS_HELD bytes of a sequence, and a paste up to a given limit, in a buffer that
 * it owns. It has no clock: its caller reports when nothing came for a time. Callers: lua. */
#ifndef AH_BASE_KEYS_H
#define AH_BASE_KEYS_H

#include "base/buf.h"

/* A pressed key. */
typedef struct ah_key {
    char name[16]; /* "enter", "f5", or the character itself; an ASCII letter in lower case */
    char text[8];  /* the text that it types; "": none */
    bool ctrl, alt, shift, super;
} ah_key;

typedef enum ah_keys_event { AH_KEYS_NOTHING, AH_KEYS_KEY, AH_KEYS_PASTE } ah_keys_event;

/* The kind of wait for the rest of a sequence. */
typedef enum ah_keys_wait {
    AH_KEYS_COMPLETE, /* nothing has begun, or the sequence ends by itself */
    AH_KEYS_ESCAPE,   /* it may be the key Escape, alone or for Alt */
    AH_KEYS_SEQUENCE  /* an unfinished sequence */
} ah_keys_wait;

enum { AH_KEYS_HELD = 48 }; /* bytes of a sequence; a longer one is unknown and skipped */

typedef struct ah_keys {
    int state;
    bool alt; /* the current key came after an Escape */
    char held[AH_KEYS_HELD];
    size_t n;       /* bytes of the sequence so far, which may be more than are held */
    size_t need;    /* bytes left of a character or of a mouse report */
    size_t matched; /* matched bytes of the sequence that ends a paste */
    ah_buf paste;
    bool cut; /* the paste was larger than the limit */
} ah_keys;

void ah_keys_init(ah_keys *k, const ah_mem *mem, size_t max_paste);
void ah_keys_clear(ah_keys *k);

/* Takes bytes from *in until there is an event; AH_KEYS_NOTHING: *in is empty. */
ah_keys_event ah_keys_next(ah_keys *k, ah_slice *in, ah_key *out);
/* Called when nothing came for the time of ah_keys_wait_for: the current sequence is over. */
ah_keys_event ah_keys_quiet(ah_keys *k, ah_key *out);
ah_keys_wait ah_keys_wait_for(const ah_keys *k);

/* Appends the text of a paste, after AH_KEYS_PASTE. Line ends are "\n", bytes that are not UTF-8
 * are U+FFFD; controls except tabs, and escape sequences, are left out. True: it was cut at the
 * limit. Lack of memory during the paste shows in `out`. */
bool ah_keys_pasted(ah_keys *k, ah_buf *out);

#endif
