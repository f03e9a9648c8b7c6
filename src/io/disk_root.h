/* Opens folders below a root without following symbolic links: by openat2 if the kernel has and
 * allows it, else name by name. Paths must be checked ones (base/path.c), which contain no `..`.
 * What is opened is always below the root, whatever other processes do to the tree meanwhile. The
 * caller owns all descriptors. disk.c opens the files, one name in such a folder.
 * Callers: its floor. */
#ifndef AH_IO_DISK_ROOT_H
#define AH_IO_DISK_ROOT_H

#include "base/slice.h"
#include "io/hidden.h"

typedef struct ah_disk_root {
    int root;                /* descriptor of the root; the caller's */
    const ah_hidden *hidden; /* does not exist below the root; NULL: nothing */
    bool by_name;            /* openat2 is not available: not tried again */
} ah_disk_root;

/* The limit of a path: a user's (AH_FS_MAX_PATH) plus the name of one of our temporary folders. */
enum { AH_DISK_ROOT_PATH = 1024 + 128 };

/* Returns a descriptor of the folder ("": a copy of the root's), which the caller closes. -1 with
 * errno: ENOENT (also a hidden one), ENOTDIR or ELOOP (a part is a file or a link), ENAMETOOLONG,
 * or another of the system's. `to_read`: it can be listed and synced; else it is for the *at calls
 * only. */
int ah_disk_root_folder(ah_disk_root *b, ah_slice path, bool to_read);

#endif
