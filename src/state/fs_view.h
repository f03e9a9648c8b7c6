/* Views of overlays (fs_view.c), for fs_overlay.c, which hands their content down. A view owns
 * its changes, and holds references to its overlay and its base. Callers: its floor. */
#ifndef AH_STATE_FS_VIEW_H
#define AH_STATE_FS_VIEW_H

#include "state/fs_tree.h"

/* Returns the file system that gets the call's own change of the path below the overlay, if
 * `was` is the entry of that change; otherwise NULL. Borrowed from the view. */
ah_fs *ah_fs_view_saw(const ah_fs_tree *view, ah_slice path, const ah_fs_info *was);
/* True if the call itself made the entry at this path of the overlay's base. */
bool ah_fs_view_put_below(const ah_fs_tree *view, ah_slice path);
/* True if the overlay itself has a change of the path. */
bool ah_fs_view_shows(const ah_fs_tree *view, ah_slice path);
/* True if the path has not changed in the overlay since the view was made. */
bool ah_fs_view_is_below(const ah_fs_tree *view, ah_slice path);
/* True if the overlay was committed or dropped in the call. The view's changes then replace
 * everything in the overlay. */
bool ah_fs_view_emptied(const ah_fs_tree *view);
/* Returns the file system under the view's overlay, as the call sees it. Borrowed. */
ah_fs *ah_fs_view_base(const ah_fs_tree *view);
/* Fails with a conflict if the overlay of an emptied view no longer contains what was committed. */
ah_status ah_fs_view_check(const ah_fs_tree *view, ah_err *err);
void ah_fs_view_replace(ah_fs_tree *view); /* after that check; cannot fail */

#endif
