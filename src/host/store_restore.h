/* Files of the machine that a rewind puts back to what they were, with the records of the
 * conversation: `restoring` is written before any file is changed, `restored` after it. It owns the
 * folders, which it opens by their paths in the records. Callers: its floor, lua. */
#ifndef AH_HOST_STORE_RESTORE_H
#define AH_HOST_STORE_RESTORE_H

#include "host/keeper.h"
#include "journal/turn_changes.h"

typedef struct ah_restore_folder {
    ah_slice root;
    ah_fs *overlay;    /* NULL: the folder cannot be opened */
    size_t first, end; /* its items */
} ah_restore_folder;

typedef struct ah_restore {
    ah_host *host;
    ah_fs_restored *item; /* of files of the machine, by folder and path */
    size_t n;
    ah_restore_folder *folder;
    size_t folders;
} ah_restore;

/* Compares the files of the changes (finished) with what is there, and stages what makes them as
 * they were before the changes, or (`forward`) after them. c must outlive r. force: also files that
 * another program has changed. */
ah_status ah_restore_init(ah_restore *r, ah_host *h, const ah_turn_changes *c, bool forward,
                          bool force, ah_err *err);
void ah_restore_clear(ah_restore *r); /* all zero is allowed */
/* AH_CONFLICT: some files cannot be put back; the error names the first ones. */
ah_status ah_restore_check(const ah_restore *r, ah_err *err);
/* Appends the files that will be changed. */
void ah_restore_show(const ah_restore *r, ah_change_list *l);
/* Appends {"kind":"file","root":"..","path":"..","why":".."} of each file that stays as it is
 * though it was changed. n: how many items the list has so far. */
void ah_restore_print_left(const ah_restore *r, size_t *n, ah_buf *out);
/* Writes down what will be changed, as the members of a record `restoring` and its kept part.
 * Leaves both empty if there is nothing. Then puts the files in place. */
ah_status ah_restore_prepare(ah_restore *r, ah_buf *said, ah_buf *kept, ah_err *err);
ah_status ah_restore_commit(ah_restore *r, ah_err *err);

/* Puts the files of an unfinished `restoring` in place, except those that another program has
 * changed since, and appends `restored`. */
ah_status ah_restore_finish(ah_host *h, const ah_record_sink *to, const ah_fold *f, ah_err *err);

#endif
