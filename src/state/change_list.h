/* Changes as data: the one list that docs/reference/changes.md describes, as JSON. It is
 * made of states before and after: of staged changes (overlay.h) and of records
 * (journal/turn_changes.h). It appends to the caller's buffer, and owns nothing.
 * Callers: its floor, journal. */
#ifndef AH_STATE_CHANGE_LIST_H
#define AH_STATE_CHANGE_LIST_H

#include "base/buf.h"
#include "state/list.h"

typedef struct ah_change_list {
    const ah_mem *mem;
    ah_buf *out;
    size_t n;    /* items so far */
    size_t room; /* bytes left for diffs */
} ah_change_list;

/* One side of a changed file. Slices with .p NULL are not known. */
typedef struct ah_file_side {
    const char *type; /* "file", "folder" ...; NULL: there is no entry */
    ah_slice hash;    /* of a file: SHA-256, hexadecimal */
    ah_slice content;
    bool sized; /* `size` is known; so it is with a content */
    uint64_t size;
} ah_file_side;

typedef struct ah_changed_file {
    ah_slice root;       /* folder of the machine; .p NULL: none */
    ah_slice filesystem; /* name of files in memory; .p NULL: none */
    ah_slice path;
    ah_file_side before, after;
} ah_changed_file;

/* Begins and ends the list. Failures of memory are those of `out`. */
void ah_change_list_begin(ah_change_list *l, const ah_mem *mem, ah_buf *out);
void ah_change_list_end(ah_change_list *l);

/* Each appends an item, unless both sides are equal. */
void ah_change_list_file(ah_change_list *l, const ah_changed_file *f);
void ah_change_list_slice(ah_change_list *l, ah_slice name, const ah_cell *before,
                          const ah_cell *after);
/* States as checked JSON; .p NULL: it has none, or it is not known. */
void ah_change_list_entity(ah_change_list *l, ah_slice class_name, ah_slice id, ah_slice before,
                           ah_slice after);

#endif
