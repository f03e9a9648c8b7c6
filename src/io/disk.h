/* Folders of the machine as files for agents. */
#ifndef AH_IO_DISK_H
#define AH_IO_DISK_H

#include "base/backing.h"

/* `root` is followed, links included: it is the author's. */
ah_status ah_fs_host_new(const ah_mem *mem, const char *root, const ah_fs_options *o, ah_fs **out,
                         ah_err *err);
/* A descriptor of its folder of the machine, borrowed; -1: it is memory, or an overlay. read_only
 * may be NULL. */
int ah_fs_folder(const ah_fs *fs, bool *read_only);

#endif
