/* Staged files: keeps what a call does to a file system in the call's overlay until the commit. The
 * overlay owns the file systems that are returned here. Callers: run, lua. */
#ifndef AH_STATE_FS_STAGED_H
#define AH_STATE_FS_STAGED_H

#include "state/fs.h"
#include "state/overlay.h"

/* Returns the file system with which a call works for `fs`: in an overlay (o) an overlay or view of
 * the call's own, made on first use; without one (NULL) fs itself. `fs` may be an overlay, too.
 * Borrowed. NULL: failed, with *err set. */
ah_fs *ah_fs_staged_in(const ah_mem *mem, ah_overlay *o, ah_fs *fs, ah_err *err);

/* True if the call of the overlay has changed files of `fs`. */
bool ah_fs_staged_changes(const ah_overlay *o, const ah_fs *fs);

/* Compares the files of the machine with the list `files` of a record `settled` (checked JSON),
 * each in the named file system with its root; see ah_fs_settled. Files of other roots are MIXED.
 */
ah_status ah_fs_settled_all(const ah_staged_names *names, ah_slice files, ah_fs_outcome *out,
                            ah_err *err);

#endif
