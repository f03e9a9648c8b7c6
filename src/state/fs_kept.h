/* The contents of a file system in memory, for its stream in a store: what has changed since it was
 * recorded last. Owns the list of what is recorded. Callers: its floor, journal, lua. */
#ifndef AH_STATE_FS_KEPT_H
#define AH_STATE_FS_KEPT_H

#include "state/fs.h"

typedef struct ah_fs_kept_entry {
    ah_text *path;
    uint64_t serial; /* of the recorded content */
} ah_fs_kept_entry;

typedef struct ah_fs_kept {
    ah_fs_kept_entry *entry; /* sorted by path */
    size_t n;
    uint64_t commits; /* of the file system, when it was recorded */
} ah_fs_kept;

void ah_fs_kept_clear(ah_fs_kept *k, const ah_mem *mem);
/* Appends the changes since the last time, as a list for ah_fs_take, and their paths, as a list,
 * and notes them as recorded. Returns their number. If memory runs out, a buffer has failed, and
 * nothing is noted. */
size_t ah_fs_kept_note(ah_fs_kept *k, ah_fs *fs, ah_buf *paths, ah_buf *changes);
/* Appends all that the file system in memory has, as a list for ah_fs_take. */
void ah_fs_print_all(ah_fs *fs, ah_buf *out);
void ah_fs_clear_memory(ah_fs *fs); /* removes all that the file system in memory has */
/* Makes the changes of such a list (checked JSON) in a file system in memory, refused names
 * included. AH_STORE: the list is damaged; AH_CONFLICT: they are beyond its limits. */
ah_status ah_fs_take(ah_fs *fs, ah_slice list, ah_err *err);

#endif
