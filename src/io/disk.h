/* Folders of the machine as filesystems of agents. The filesystem owns a descriptor of its root
 * folder; no path leads out of it. Callers: host, lua. */
#ifndef AH_IO_DISK_H
#define AH_IO_DISK_H

#include "base/backing.h"

/* Opens `root`, following links in it, as the script's author chose it. */
ah_status ah_fs_host_new(const ah_mem *mem, const char *root, const ah_fs_options *o, ah_fs **out,
                         ah_err *err);
/* Returns a borrowed descriptor of the filesystem's folder; -1: it is in memory, or an overlay.
 * read_only may be NULL. */
int ah_fs_folder(const ah_fs *fs, bool *read_only);

#endif
