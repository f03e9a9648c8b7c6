/* The changes of some turns of a stored conversation, from its records alone: files with their
 * contents before, slices, states of entities. Each is compared at the two ends, so what was
 * changed back is no change. Pure. It owns a fold of the stream, and all it has read.
 * Callers: host. */
#ifndef AH_JOURNAL_TURN_CHANGES_H
#define AH_JOURNAL_TURN_CHANGES_H

#include "journal/fold.h"
#include "state/change_list.h"

/* A file at one end. */
typedef struct ah_file_state {
    const char *type; /* static, "file", "folder" ...; NULL: there is no entry */
    ah_text *hash;    /* of a file; NULL: not known */
    ah_text *content; /* NULL: not recorded */
    ah_fs_mode mode;  /* permission bits */
} ah_file_state;

/* One file, slice or entity. [0]: at the beginning, [1]: at the end. */
typedef struct ah_turn_change {
    ah_text *key;       /* in its table */
    ah_text *place;     /* of a file: the root of a folder, or the name of files in memory */
    ah_text *name, *id; /* path of a file, name of a slice, class and id of an entity */
    ah_file_state file[2];
    ah_cell *list[2];
    ah_text *state[2];
} ah_turn_change;

typedef struct ah_turn_table {
    ah_turn_change *item;
    size_t n, cap;
    ah_index index; /* by key */
} ah_turn_table;

typedef struct ah_turn_changes {
    const ah_mem *mem;
    ah_fold fold;
    int64_t first, last;     /* the turns, counted from 1 */
    int64_t after;           /* in place of them: the record after which it begins; 0: none */
    int64_t turns;           /* that were read so far */
    ah_text *settled, *kept; /* the record whose files are being applied; NULL: none */
    ah_turn_table files, slices, entities;
} ah_turn_changes;

/* The changes since the commit of the turn before `first`, up to that of `last`. */
ah_status ah_turn_changes_init(ah_turn_changes *c, const ah_mem *mem, int64_t first, int64_t last,
                               ah_err *err);
/* The changes since the record of this number, up to the end of the stream. */
ah_status ah_turn_changes_init_after(ah_turn_changes *c, const ah_mem *mem, int64_t number,
                                     ah_err *err);
void ah_turn_changes_clear(ah_turn_changes *c);
/* Takes the next record of a stream that is read from record 1 on. AH_CANCELLED: no more records
 * are needed. Has the type of ah_store_record_fn. */
ah_status ah_turn_changes_add(void *changes, const ah_store_record *r, ah_err *err);
/* Finishes the tables, and appends the list (state/change_list.h). AH_USAGE: the conversation has
 * fewer turns. */
ah_status ah_turn_changes_print(ah_turn_changes *c, ah_buf *out, ah_err *err);
/* Finishes and sorts the tables. */
ah_status ah_turn_changes_end(ah_turn_changes *c, ah_err *err);
/* Adds the files of a record `restoring` (checked JSON; kept.p NULL: none). */
ah_status ah_turn_changes_restoring(ah_turn_changes *c, ah_slice said, ah_slice kept, ah_err *err);
/* Appends slices and entities as if all were changed back. */
void ah_turn_changes_print_back(const ah_turn_changes *c, ah_change_list *l);
ah_file_side ah_turn_change_side(const ah_file_state *s);
/* True if the file is the same at both ends, or not known at either. */
bool ah_turn_change_is_none(const ah_turn_change *file);
/* True if the file is one of the machine. */
bool ah_turn_change_is_outside(const ah_turn_change *file);

#endif
