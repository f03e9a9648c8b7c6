/* Words on schemas and values, shared by schema.c (refusals) and schema_check.c
 * (faults), and by nobody else: where something is, what was found there, what would
 * have been right. All of bounded size, whatever the schema and the value hold. */
#ifndef AH_MODEL_SCHEMA_FAULTS_H
#define AH_MODEL_SCHEMA_FAULTS_H

#include "base/near.h"
#include "model/schema.h"

enum {
    MAX_POINTER = 512, /* bytes in a fault and in a refusal */
    MAX_MESSAGE = 1024 /* likewise */
};

/* Where in a schema or a value: a chain on the C stack. */
typedef struct place {
    const struct place *up;
    ah_slice key; /* .p NULL: an index */
    bool escaped; /* key is as in the text */
    size_t index;
} place;

/* One part of a text: what is added between the two and goes over `max` bytes is cut
 * at a character and marked. The part stays where it is until the buffer moves. */
size_t ah_part_begin(ah_buf *b, size_t max);
ah_slice ah_part_end(ah_buf *b, size_t start);

void ah_words_pointer(ah_buf *b, const place *at);  /* RFC 6901 */
void ah_words_found(ah_buf *b, ah_slice text);      /* a value's text or a name: one line, cut */
void ah_words_near(ah_buf *b, const ah_near *near); /* "; did you mean 'x'?", or nothing */
void ah_words_types(ah_buf *b, unsigned types);     /* "a string, a number or null" */

/* Begins a fault; the caller adds its words and calls ah_fault_end. NULL: there are
 * enough, or memory is out (which f->texts tells). */
ah_buf *ah_fault_begin(ah_faults *f, const place *at, const char *rule);
void ah_fault_end(ah_faults *f);

#endif
