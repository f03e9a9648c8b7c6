/* Internals of fs*.c: lists of changes, plans, walks and globs over any store of files
 * (base/backing.h). The interface for users is fs.h. Lists own their texts. Callers: its floor. */
#ifndef AH_STATE_FS_STORE_H
#define AH_STATE_FS_STORE_H

#include "state/fs.h"

/* -- changes (fs_change.c) ----------------------------------------------------------------- */

/* Returns the new change, zero except for path and act; NULL: out of memory. */
ah_fs_change *ah_fs_changes_add(ah_fs_changes *list, ah_slice path, ah_fs_act act);
bool ah_fs_changes_have(const ah_fs_changes *list, ah_slice path);
void ah_fs_changes_clear(ah_fs_changes *list);
void ah_fs_change_clear(const ah_mem *mem, ah_fs_change *c);
/* Makes `to`, zero before, a copy without operations. */
void ah_fs_change_copy(ah_fs_change *to, const ah_fs_change *from);

enum { AH_FS_MAX_OPS = 1000 }; /* of a change; with more of them the change is pinned instead */
/* Adds copies of `n` operations. False: out of memory. */
bool ah_fs_change_redo(const ah_mem *mem, ah_fs_change *c, const ah_fs_op *op, size_t n);

/* Sets *out to `content` (of `path`) after the operation, as a new text. */
ah_status ah_fs_op_apply(const ah_fs *fs, ah_slice path, ah_slice content, const ah_fs_op *op,
                         ah_text **out, size_t *count, ah_err *err);

/* -- operations ------------------------------------------------------------------------- */

/* Prepares and commits; clears the list in any case. */
ah_status ah_fs_change_now(ah_fs *fs, ah_fs_changes *list, ah_err *err);
/* Adds a change of `path`, after changes for its missing folders. NULL: failed, with *err set. */
ah_fs_change *ah_fs_plan(ah_fs *fs, ah_fs_changes *list, ah_slice path, ah_fs_act act,
                         const ah_fs_info *was, ah_err *err);
/* AH_OK if the entry is missing or a file that can be replaced, otherwise an error. */
ah_status ah_fs_need_place(ah_slice path, const ah_fs_info *info, ah_err *err);
/* Reads the whole content, in order to change it. */
ah_status ah_fs_content(ah_fs *fs, ah_slice path, ah_text **out, ah_fs_info *info, ah_err *err);

/* In an overlay: records that this entry must be unchanged when the changes are committed. */
ah_status ah_fs_note(ah_fs *fs, ah_slice path, const ah_fs_info *was, ah_err *err);
/* Adds to a not_found error which path may have been meant (fs_near.c). Returns st, or AH_NOMEM. */
ah_status ah_fs_advise(ah_fs *fs, ah_slice path, ah_status st, ah_err *err);
/* Returns the end of the time for a walk or a search that begins now; INT64_MAX without a clock. */
int64_t ah_fs_until(const ah_fs *fs);
bool ah_fs_is_late(const ah_fs *fs, int64_t until);

/* Visits everything under a folder, folders before their entries. `visit` gets the path and sets
 * *into (true before) to whether to enter a folder, and *stop to end. Entries that no path can
 * name, and folders that cannot be listed, are counted and left out; the others are still
 * visited. */
typedef struct ah_fs_walk {
    ah_status (*visit)(struct ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                       ah_err *err);
    void *ud;
    bool strict;     /* a folder that cannot be listed is an error */
    size_t seen;     /* number of entries; at options.max_files the walk ends, truncated */
    size_t left_out; /* number of entries */
    int64_t until;   /* from ah_fs_until: the walk ends then, truncated */
    bool stop, truncated;
    ah_fs_path at; /* the current path */
    size_t root;   /* bytes of it that are the starting folder */
    ah_work work;  /* AH_FS_STEPS; includes the work of `visit` */
} ah_fs_walk;

ah_status ah_fs_walk_run(ah_fs *fs, ah_slice folder, ah_fs_walk *w, ah_err *err);
/* Fails with AH_CANCELLED and a message. */
ah_status ah_fs_stopped(ah_err *err);

/* -- globs (fs_glob.c) ------------------------------------------------------------------------- */

enum { AH_FS_MAX_ALTERNATIVES = 64 };

typedef struct ah_fs_glob_set {
    ah_buf text; /* the alternatives of {}, each NUL-terminated */
    size_t n;
} ah_fs_glob_set;

/* The caller clears g, failed or not. */
ah_status ah_fs_glob_init(ah_fs_glob_set *g, const ah_mem *mem, ah_slice pattern, ah_err *err);
void ah_fs_glob_clear(ah_fs_glob_set *g);
bool ah_fs_glob_match(const ah_fs_glob_set *g, ah_slice path);
/* Returns the most steps that comparing the path takes. */
uint64_t ah_fs_glob_steps(const ah_fs_glob_set *g, ah_slice path);
/* True if an entry under this folder may match. */
bool ah_fs_glob_leads(const ah_fs_glob_set *g, ah_slice folder);

/* -- ignored entries (fs_ignore.c) ------------------------------------------------------------- */

/* The files .gitignore of a folder and of those above it. Zero except for its first two fields
 * before it is used. */
typedef struct ah_fs_ignore {
    ah_fs *fs;
    ah_fs_items *ignored; /* as in ah_fs_list; NULL: nothing is ignored */
    bool begun;
    ah_fs_path at;            /* the folder whose files are loaded */
    struct ah_fs_rules *file; /* the outermost first */
    size_t n, cap, bytes;     /* bytes of all files */
    size_t steps;             /* comparisons that are not yet counted as work */
} ah_fs_ignore;

/* Sets *yes to whether the entry is left out, and counts it then. The folders that contain it are
 * not asked about. */
ah_status ah_fs_ignore_ask(ah_fs_ignore *g, ah_slice path, bool folder, ah_work *work, bool *yes,
                           ah_err *err);
void ah_fs_ignore_clear(ah_fs_ignore *g);

#endif
