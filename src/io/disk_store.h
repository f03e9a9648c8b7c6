/* A folder of the machine as a store of files: disk.c reads, disk_write.c prepares changes,
 * disk_commit.c carries them out, disk_record.c lets a set of them outlive the process,
 * disk_leftover.c is about what a killed process left. For nobody else. */
#ifndef AH_IO_DISK_STORE_H
#define AH_IO_DISK_STORE_H

#include <sys/stat.h>

#include "base/backing.h"
#include "io/disk_root.h"

typedef struct ah_fs_host {
    ah_fs fs;
    ah_disk_root root;
    uint64_t id;                   /* of the root folder: its inode */
    uint64_t started, temporaries; /* of the names of temporary files */
} ah_fs_host;

/* A path's folder, open, and its last name. */
typedef struct ah_fs_place {
    int fd;
    char name[AH_FS_MAX_NAME + 1];
} ah_fs_place;

/* To be closed with ah_fs_host_leave. */
ah_status ah_fs_host_enter(ah_fs_host *h, ah_slice path, bool to_read, ah_fs_place *out,
                           ah_err *err);
void ah_fs_host_leave(ah_fs_place *p);
void ah_fs_host_info(const struct stat *s, ah_fs_info *out);
/* "cannot <what> '<path>': <errno's words>" */
ah_status ah_fs_host_err(int e, const char *what, ah_slice path, ah_err *err);

/* -- temporaries (disk_leftover.c) ------------------------------------------------------------- */

enum { AH_FS_TEMP = 96 }; /* bytes of the name of a temporary */

/* Makes a new name of a temporary; set: one of several that a record lists. */
void ah_fs_temp_name(ah_fs_host *h, bool set, char out[AH_FS_TEMP]);
bool ah_fs_temp_of_set(ah_slice name);
/* Makes the name to which the replaced entry is renamed, if it and its temporary cannot be
 * exchanged. */
void ah_fs_temp_old(const char temp[AH_FS_TEMP], char out[AH_FS_TEMP]);

/* Whoever has temporaries in a folder holds a lock on it, so that others leave them alone; it goes
 * with the descriptor, or with the process. */
void ah_fs_hold(int folder);
typedef enum ah_fs_holding { AH_FS_UNASKED, AH_FS_FREE, AH_FS_HELD, AH_FS_UNKNOWN } ah_fs_holding;
/* Says if a process works in the folder. FREE: none does, nor will while the descriptor is open. */
ah_fs_holding ah_fs_held(int folder);

/* A look through a folder, which removes the temporaries of processes that are gone. */
typedef struct ah_fs_sweep {
    ah_fs_host *h;
    int fd; /* of the folder, which can be listed; the caller's */
    ah_fs_holding holding;
    bool asked, busy; /* asked: records of sets were looked at; busy: one is at work */
} ah_fs_sweep;
void ah_fs_sweep_entry(ah_fs_sweep *s, const char *name, const struct stat *st);

/* Removes the entry, a folder with all that is in it: of any depth, on a small stack. True if it is
 * gone. */
bool ah_fs_clear(int folder, const char *name);

/* -- steps (disk_write.c, disk_commit.c) ------------------------------------------------- */

enum { AH_FS_HOLDS = 128, AH_FS_NO_STEP = -1 };

typedef enum ah_fs_old { AH_FS_OLD_NONE, AH_FS_OLD_TEMP, AH_FS_OLD_BESIDE } ah_fs_old;

/* A change at work. What is made waits as `temp` beside its place, and what is taken away goes
 * there. A new folder waits with all that is to be in it, and a folder that is removed takes along
 * all that is in it: those steps have the `top` of that one. */
typedef struct ah_fs_step {
    ah_text *path;
    ah_fs_act act;
    ah_fs_info was;
    long parent; /* the step of its folder, or AH_FS_NO_STEP */
    size_t top, children;
    char temp[AH_FS_TEMP]; /* of tops */
    uint64_t hash;         /* PUT in a set: of the content */
    bool ready;            /* it waits */
    bool placed;           /* it is done */
    bool merged;           /* a new folder that was there: what is in it went into that one */
    bool settled;          /* placed, and not to be taken back */
    ah_fs_old old;         /* placed: where what it replaced is */
} ah_fs_step;

typedef struct ah_fs_ticket {
    size_t n, tops;
    bool set;         /* several that are to be true together */
    int record, slot; /* -1: none */
    uint64_t body;    /* hash of what the record says */
    size_t holds;
    struct {
        ah_slice folder;
        int fd;
    } hold[AH_FS_HOLDS]; /* locked folders; more than these are not */
    ah_fs_step item[];
} ah_fs_ticket;

ah_fs_ticket *ah_fs_ticket_new(const ah_mem *mem, size_t n);
void ah_fs_ticket_free(const ah_mem *mem, ah_fs_ticket *t);
/* Finds the `parent` and the `top` of each step, and whether they are a set. False when out of
 * memory. */
bool ah_fs_ticket_plan(ah_fs_host *h, ah_fs_ticket *t);
/* Fails (AH_FS_REFUSED) if the steps would write into, or complete, a folder that is a repository
 * for git. */
ah_status ah_fs_check_repository(ah_fs_host *h, const ah_fs_ticket *t, ah_err *err);
/* Returns the path at which the step's file or folder waits, in `out`; "" if it is too long. */
ah_slice ah_fs_waiting(const ah_fs_ticket *t, const ah_fs_step *s, char out[AH_DISK_ROOT_PATH + 1]);

/* apply carries out the steps that are not placed yet, up to the first that fails; undo takes back
 * those that are placed, true if that succeeds for all; finish removes what was replaced. */
ah_status ah_fs_apply(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
bool ah_fs_undo(ah_fs_host *h, ah_fs_ticket *t);
void ah_fs_finish(ah_fs_host *h, ah_fs_ticket *t);
/* Removes files and folders that still wait. */
void ah_fs_forget(ah_fs_host *h, ah_fs_ticket *t);

ah_status ah_fs_host_prepare(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err);
ah_status ah_fs_host_commit(ah_fs *fs, void *ticket, ah_err *err);
void ah_fs_host_drop(ah_fs *fs, void *ticket);

/* -- records (disk_record.c) ------------------------------------------------------------------- */

/* Writes what the set is, before anything of it is made; no record (AH_OK) where the root folder
 * takes none. */
ah_status ah_fs_record_begin(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
/* From here on the set is carried out whatever happens. */
ah_status ah_fs_record_seal(ah_fs_host *h, ah_fs_ticket *t, ah_err *err);
void ah_fs_record_end(ah_fs_host *h, ah_fs_ticket *t);
/* Ends the sets of processes that are gone. True if a set is at work. */
bool ah_fs_recover(ah_fs_host *h);
bool ah_fs_is_record(const char *name);

#endif
