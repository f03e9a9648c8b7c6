/* Opening folders beneath a root without ever following a symbolic link: by openat2 where
 * the kernel has it and lets us, else name by name. Paths are checked ones (base/path.c), so
 * that `..` never comes here; what is opened is always below the root, whatever others do
 * to the tree meanwhile. Files are opened by disk.c, one name under such a folder. */
#ifndef AH_IO_DISK_ROOT_H
#define AH_IO_DISK_ROOT_H

#include "base/slice.h"

typedef struct ah_disk_root {
    int root;     /* a descriptor; the caller's */
    bool by_name; /* openat2 was refused: do not ask again */
} ah_disk_root;

/* The longest path that is opened: one of a user (AH_FS_MAX_PATH) with the name of one of our
 * temporary folders in it. */
enum { AH_DISK_ROOT_PATH = 1024 + 128 };

/* A descriptor of the folder ("": the root's copy), to be closed by the caller; or -1 and
 * errno: ENOENT, ENOTDIR or ELOOP (a part is a file or a link), ENAMETOOLONG, or what the system
 * says. `to_read`: it can be listed and synced; else it is good for the *at calls only. */
int ah_disk_root_folder(ah_disk_root *b, ah_slice path, bool to_read);

#endif
