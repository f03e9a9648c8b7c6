/* A folder of the machine as a store of files, in two files: fs_host.c reads,
 * fs_host_write.c changes. For nobody else. */
#ifndef AH_PROMPT_FS_HOST_H
#define AH_PROMPT_FS_HOST_H

#include "prompt/fs_beneath.h"
#include "prompt/fs_store.h"

typedef struct ah_fs_host {
    ah_fs fs;
    ah_beneath root;
    uint64_t started, temporaries; /* of the names of temporary files */
} ah_fs_host;

/* A path's folder, open, and its last name. */
typedef struct ah_fs_place {
    int fd;
    char name[AH_FS_MAX_NAME + 1];
} ah_fs_place;

/* To be closed with ah_fs_host_leave. */
ah_status ah_fs_host_enter(ah_fs_host *h, ah_slice path, bool to_read, ah_fs_place *out, ah_err *err);
void ah_fs_host_leave(ah_fs_place *p);
/* "cannot <what> '<path>': <errno's words>" */
ah_status ah_fs_host_err(int e, const char *what, ah_slice path, ah_err *err);

ah_status ah_fs_host_prepare(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err);
ah_status ah_fs_host_commit(ah_fs *fs, void *ticket, ah_err *err);
void ah_fs_host_drop(ah_fs *fs, void *ticket);

#endif
