/* The fs*.c files' own: lists of changes, plans, walks and globs over any store of files
 * (base/backing.h). For users there is fs.h. */
#ifndef AH_STATE_FS_STORE_H
#define AH_STATE_FS_STORE_H

#include "state/fs.h"

/* -- changes (fs_change.c) ----------------------------------------------------------------- */

/* The new change, zero but for path and act; NULL when out of memory. */
ah_fs_change *ah_fs_changes_add(ah_fs_changes *list, ah_slice path, ah_fs_act act);
bool ah_fs_changes_have(const ah_fs_changes *list, ah_slice path);
void ah_fs_changes_clear(ah_fs_changes *list);
void ah_fs_change_clear(const ah_mem *mem, ah_fs_change *c);
/* to, zero before, becomes a copy without operations. */
void ah_fs_change_copy(ah_fs_change *to, const ah_fs_change *from);

enum { AH_FS_MAX_OPS = 1000 }; /* of a change; with more it is pinned instead */
/* Adds copies of `n` operations. False when out of memory. */
bool ah_fs_change_redo(const ah_mem *mem, ah_fs_change *c, const ah_fs_op *op, size_t n);

/* `content` (of `path`) after the operation, as a new text. */
ah_status ah_fs_op_apply(const ah_fs *fs, ah_slice path, ah_slice content, const ah_fs_op *op,
                         ah_text **out, size_t *count, ah_err *err);

/* -- operations ------------------------------------------------------------------------- */

/* Prepares and commits; clears the list either way. */
ah_status ah_fs_change_now(ah_fs *fs, ah_fs_changes *list, ah_err *err);
/* A change of `path`, with the missing folders before it. NULL with *err set: failed. */
ah_fs_change *ah_fs_plan(ah_fs *fs, ah_fs_changes *list, ah_slice path, ah_fs_act act,
                         const ah_fs_info *was, ah_err *err);
/* AH_OK if the entry is absent or a file that can be replaced, else an error. */
ah_status ah_fs_need_place(ah_slice path, const ah_fs_info *info, ah_err *err);
/* The whole content, for changing it. */
ah_status ah_fs_content(ah_fs *fs, ah_slice path, ah_text **out, ah_fs_info *info, ah_err *err);

/* In an overlay: what was looked at must still be so when it is changed and committed. */
ah_status ah_fs_note(ah_fs *fs, ah_slice path, const ah_fs_info *was, ah_err *err);
/* Adds to a not_found which path may have been meant (fs_near.c). Returns st, or AH_NOMEM. */
ah_status ah_fs_advise(ah_fs *fs, ah_slice path, ah_status st, ah_err *err);
/* The time by which a walk or a search that begins now has to end; INT64_MAX without a clock. */
int64_t ah_fs_until(const ah_fs *fs);
bool ah_fs_is_late(const ah_fs *fs, int64_t until);

/* All that is under a folder, folders before what is in them. `visit` gets the path and says
 * in *into (true before) whether a folder is gone into, and in *stop whether to end. What cannot be
 * named by a path, and folders that cannot be listed, are left out and counted; the others are
 * visited all the same. */
typedef struct ah_fs_walk {
    ah_status (*visit)(struct ah_fs_walk *w, ah_slice path, const ah_fs_item *item, bool *into,
                       ah_err *err);
    void *ud;
    bool strict;     /* a folder that cannot be listed is an error */
    size_t seen;     /* entries; at options.max_files the walk ends, truncated */
    size_t left_out; /* entries */
    int64_t until;   /* of ah_fs_until: it ends then, truncated */
    bool stop, truncated;
    ah_fs_path at; /* where it is */
    size_t root;   /* bytes of it that are the folder from which it began */
    ah_work work;  /* AH_FS_STEPS; what `visit` does counts, too */
} ah_fs_walk;

ah_status ah_fs_walk_run(ah_fs *fs, ah_slice folder, ah_fs_walk *w, ah_err *err);
/* Fails with AH_CANCELLED, in words. */
ah_status ah_fs_stopped(ah_err *err);

/* -- globs (fs_glob.c) ------------------------------------------------------------------------- */

enum { AH_FS_MAX_ALTERNATIVES = 64 };

typedef struct ah_fs_glob_set {
    ah_buf text; /* the alternatives that {} stands for, each NUL-terminated */
    size_t n;
} ah_fs_glob_set;

/* Cleared by the caller, failed or not. */
ah_status ah_fs_glob_init(ah_fs_glob_set *g, const ah_mem *mem, ah_slice pattern, ah_err *err);
void ah_fs_glob_clear(ah_fs_glob_set *g);
bool ah_fs_glob_match(const ah_fs_glob_set *g, ah_slice path);
/* Returns the steps that comparing the path with it takes at most. */
uint64_t ah_fs_glob_steps(const ah_fs_glob_set *g, ah_slice path);
/* True if something under this folder may match. */
bool ah_fs_glob_leads(const ah_fs_glob_set *g, ah_slice folder);

#endif
