/* Persistent lists of texts: what a slice of a session holds. A list is its newest cell;
 * appending makes a new one and leaves the old list as it was, so that a snapshot is a
 * reference and costs the same however long the list is. */
#ifndef AH_STATE_LIST_H
#define AH_STATE_LIST_H

#include "base/text.h"

typedef struct ah_cell ah_cell;
struct ah_cell {
    size_t refs;
    ah_text *value;
    ah_cell *below; /* the list before it; NULL: this is the first */
    size_t n;       /* values in the list that ends here */
};

/* A list that is being changed. Owns a reference to its head; NULL: empty. */
typedef struct ah_list {
    const ah_mem *mem;
    ah_cell *head;
} ah_list;

ah_cell *ah_cell_ref(ah_cell *c);                  /* NULL gives NULL */
void ah_cell_unref(const ah_mem *mem, ah_cell *c); /* NULL is fine; needs no stack for long lists */
bool ah_list_append(ah_list *l, ah_text *value);   /* references value; false: out of memory */
bool ah_list_replace(ah_list *l, size_t at, ah_text *value); /* at: from 0, the oldest; as append;
                                                         costs a cell for each newer value */
void ah_list_set(ah_list *l, ah_cell *head);                 /* takes head */

static inline size_t ah_list_length(const ah_cell *head)
{
    return head ? head->n : 0;
}

#endif
