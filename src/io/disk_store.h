/* A folder of the machine as a store of files, for the disk*.c files only: disk.c reads,
 * disk_write.c prepares changes, disk_commit.c carries them out, disk_record.c lets a set of
 * changes survive the process, disk_leftover.c removes leftovers of killed processes. A ticket owns
 * its steps, its descriptors and their locks. Folders in use by writers are locked; several
 * processes may use the same root. Callers: its floor. */
#ifndef AH_IO_DISK_STORE_H
#define AH_IO_DISK_STORE_H

#include <sys/stat.h>

#include "base/backing.h"
#include "io/disk_root.h"

typedef struct ah_fs_host {
    ah_fs fs;
    ah_disk_root root;
    uint64_t id;                   /* inode of the root folder */
    uint64_t started, temporaries; /* used in the names of temporary files */
} ah_fs_host;

/* The open folder of a path, and the last name of the path. */
typedef struct ah_fs_place {
    int fd;
    char name[AH_FS_MAX_NAME + 1];
} ah_fs_place;

/* Opens a place, which ah_fs_host_leave closes. */
ah_status ah_fs_host_enter(ah_fs_host *h, ah_slice path, bool to_read, ah_fs_place *out,
                           ah_err *err);
void ah_fs_host_leave(ah_fs_place *p);
void ah_fs_host_info(const struct stat *s, ah_fs_info *out);
/* Sets the error "cannot <what> '<path>': <text of errno>", and returns its status. */
ah_status ah_fs_host_err(int e, const char *what, ah_slice path, ah_err *err);

/* -- temporaries (disk_leftover.c) ------------------------------------------------------------- */

enum { AH_FS_TEMP = 96 }; /* size of the name of a temporary, in bytes */

/* Makes a new temporary name; `set`: for one of several that a record lists. */
void ah_fs_temp_name(ah_fs_host *h, bool set, char out[AH_FS_TEMP]);
bool ah_fs_temp_of_set(ah_slice name);
/* Makes the name to which a replaced entry is renamed if it cannot be exchanged with its
 * temporary. */
void ah_fs_temp_old(const char temp[AH_FS_TEMP], char out[AH_FS_TEMP]);

/* Locks a folder that contains our temporaries, so that other processes keep them. The lock ends
 * with the descriptor or the process. */
void ah_fs_hold(int folder);
typedef enum ah_fs_holding { AH_FS_UNASKED, AH_FS_FREE, AH_FS_HELD, AH_FS_UNKNOWN } ah_fs_holding;
/* Checks if another process holds a lock. FREE: none does, and none can while the descriptor is
 * open. */
ah_fs_holding ah_fs_held(int folder);

/* State of a pass through a folder that removes temporaries of dead processes. */
typedef struct ah_fs_sweep {
    ah_fs_host *h;
    int fd; /* descriptor of the folder, which can be listed; the caller's */
    ah_fs_holding holding;
    bool asked, busy; /* asked: records of sets were examined; busy: a set is in progress */
} ah_fs_sweep;
/* Looks at one entry of the folder; removes it if it is a leftover. */
void ah_fs_sweep_entry(ah_fs_sweep *s, const char *name, const struct stat *st);

/* Removes the entry, a folder with everything in it, of any depth on a small stack. Returns true if
 * it is gone. */
bool ah_fs_clear(int folder, const char *name);

/* -- steps (disk_write.c, disk_commit.c) ------------------------------------------------- */

enum { AH_FS_HOLDS = 128, AH_FS_NO_STEP = -1 };

typedef enum ah_fs_old { AH_FS_OLD_NONE, AH_FS_OLD_TEMP, AH_FS_OLD_BESIDE } ah_fs_old;

/* One change in progress. New content waits under the name `temp` beside its place, and removed
 * content is moved there. A new folder waits with everything that will be in it, and a removed
 * folder takes along everything in it: the steps for those entries have the `top` of that
 * folder. */
typedef struct ah_fs_step {
    ah_text *path;
    ah_fs_act act;
    ah_fs_info was;
    long parent; /* index of the step of its folder, or AH_FS_NO_STEP */
    size_t top, children;
    char temp[AH_FS_TEMP]; /* set for tops only */
    uint64_t hash;         /* hash of the content, for a PUT in a set */
    bool ready;            /* the new content is waiting */
    bool placed;           /* the step is carried out */
    bool merged;   /* a new folder that existed by then: its contents went into the existing one */
    bool settled;  /* placed, and must not be taken back */
    ah_fs_old old; /* if placed: where the replaced entry is */
} ah_fs_step;

typedef struct ah_fs_ticket {
    size_t n, tops;
    bool set;         /* several steps that become visible together */
    int record, slot; /* -1: none */
    uint64_t body;    /* hash of the record's body */
    size_t holds;
    struct {
        ah_slice folder;
        int fd;
    } hold[AH_FS_HOLDS]; /* locked folders; folders beyond this number are not locked */
    ah_fs_step item[];
} ah_fs_ticket;

/* Makes a ticket with room for n steps; NULL: out of memory. */
ah_fs_ticket *ah_fs_ticket_new(const ah_mem *mem, size_t n);
void ah_fs_ticket_free(const ah_mem *mem, ah_fs_ticket *t);
/* Sets `parent` and `top` of each step, and whether they form a set. False: out of memory. */
bool ah_fs_ticket_plan(ah_fs_host *h, ah_fs_ticket *t);
/* Fails with AH_FS_REFUSED if the steps would write into, or complete, a folder that git treats as
 * a repository. */
ah_status ah_fs_check_repository(ah_fs_host *h, const ah_fs_ticket *t, ah_err *err);
/* Returns the path at which the step's file or folder waits, in `out`; "" if it is too long. */
ah_slice ah_fs_waiting(const ah_fs_ticket *t, const ah_fs_step *s, char out[AH_DISK_ROOT_PATH + 1]);

/* apply carries out the steps that are not placed yet, up to the first that fails. undo takes back
 * the placed steps; true if all could be. finish removes what was replaced. */
ah_status ah_fs_apply(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
bool ah_fs_undo(ah_fs_host *h, ah_fs_ticket *t);
void ah_fs_finish(ah_fs_host *h, ah_fs_ticket *t);
/* Removes files and folders that are still waiting. */
void ah_fs_forget(ah_fs_host *h, ah_fs_ticket *t);

/* Slots of the store: prepare makes a ticket, which either commit or drop frees. */
ah_status ah_fs_host_prepare(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err);
ah_status ah_fs_host_commit(ah_fs *fs, void *ticket, ah_err *err);
void ah_fs_host_drop(ah_fs *fs, void *ticket);

/* -- records (disk_record.c) ------------------------------------------------------------------- */

/* Writes the record of the set before any of it is made. AH_OK without a record if the root folder
 * cannot hold one. */
ah_status ah_fs_record_begin(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
/* Completes the record: from now on the set is carried out even if this process ends. */
ah_status ah_fs_record_seal(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
void ah_fs_record_end(ah_fs_host *h, ah_fs_ticket *t);
/* Completes or removes the sets of dead processes. Returns true if a set is in progress. */
bool ah_fs_recover(ah_fs_host *h);
bool ah_fs_is_record(const char *name);

#endif
