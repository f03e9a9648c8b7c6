/* Folders that tools must not see, since the stores of a host are in them: their path, identity and
 * the name with which the files of the store begin. A folder below a root of tools does not exist
 * there; where the root is the folder itself, the files do not. The owner of the list adds and
 * removes; roots and sandboxes look. Callers: its floor, host. */
#ifndef AH_IO_HIDDEN_H
#define AH_IO_HIDDEN_H

#include <sys/stat.h>

#include "base/text.h"

typedef struct ah_hidden_folder ah_hidden_folder;
struct ah_hidden_folder {
    const ah_mem *mem;
    ah_hidden_folder *next, **link;
    ah_text *path; /* without links */
    ah_text *name; /* of the store's file; others that begin with it are the store's, too */
    int fd;        /* of the folder, so that its identity is not used again */
    dev_t device;
    ino_t inode;
};

/* All zero: nothing is hidden. */
typedef struct ah_hidden {
    ah_hidden_folder *first;
} ah_hidden;

/* Hides the store of this path, which is absolute and without links. */
ah_status ah_hidden_add(ah_hidden *h, const ah_mem *mem, ah_slice file, ah_hidden_folder **out,
                        ah_err *err);
void ah_hidden_remove(ah_hidden_folder *f); /* NULL is allowed */

/* All return false for h NULL. True if it is a hidden folder. */
bool ah_hidden_is(const ah_hidden *h, const struct stat *s);
/* True if the name in the open folder is a hidden folder, or a file of a store. */
bool ah_hidden_has(const ah_hidden *h, int folder, const char *name);
/* True if the open folder is a hidden one, or a hidden one is below it. */
bool ah_hidden_below(const ah_hidden *h, int folder);

#endif
