/* Persistent lists of texts: the content of a session's slice. A list is its newest cell,
 * reference-counted. Appending makes a new list and leaves the old one unchanged, so a snapshot
 * is a reference, at the same cost for any length.
 * Callers: its floor, journal. */
#ifndef AH_STATE_LIST_H
#define AH_STATE_LIST_H

#include "base/text.h"

typedef struct ah_cell ah_cell;
struct ah_cell {
    size_t refs;
    ah_text *value;
    ah_cell *below; /* the list before it; NULL: this is the first value */
    size_t n;       /* number of values in the list that ends here */
};

/* A list that is being changed. Owns a reference to its head; NULL: empty. */
typedef struct ah_list {
    const ah_mem *mem;
    ah_cell *head;
} ah_list;

ah_cell *ah_cell_ref(ah_cell *c);                  /* NULL returns NULL */
void ah_cell_unref(const ah_mem *mem, ah_cell *c); /* NULL does nothing; long lists need no stack */
bool ah_list_append(ah_list *l, ah_text *value);   /* adds a reference; false: out of memory */
/* at: from 0, the oldest; fails as append; copies one cell per newer value */
bool ah_list_replace(ah_list *l, size_t at, ah_text *value);
/* Appends the values as a JSON list, the oldest first. Without memory `out` fails. */
void ah_list_print(const ah_mem *mem, const ah_cell *head, ah_buf *out);
/* Appends the values above the oldest `keep`, likewise, without brackets. */
void ah_list_print_newest(const ah_mem *mem, const ah_cell *head, size_t keep, ah_buf *out);
void ah_list_set(ah_list *l, ah_cell *head); /* takes head */

static inline size_t ah_list_length(const ah_cell *head)
{
    return head ? head->n : 0;
}

#endif
