/* Files for agents: one interface over a folder of the machine, over memory, and over
 * changes staged on top of either (an overlay, which nests). What can fail for the asker's
 * reasons fails with AH_TOOL_VALIDATION and words that a model can act on; what the machine
 * refuses, with AH_INTERNAL. Both name the kind in err->details: {"reason":"not_found"}, one of
 *   bad_path not_found not_a_file not_a_folder exists refused read_only too_large too_many
 *   no_match several_matches bad_pattern conflict system
 *
 * Paths are relative to the root and `/`-separated: at most AH_FS_MAX_PATH bytes of UTF-8
 * without control characters, `options.max_depth` names deep. `.` and `..` are resolved by
 * the letters; none leads out. Symbolic links are never followed. Every write replaces the
 * whole file: a reader, or a crash, finds the old content or the new. `err` is never NULL.
 *
 * Not here: watching for changes, permissions, binary diffs, and who may call what. */
#ifndef AH_STATE_FS_H
#define AH_STATE_FS_H

#include "base/backing.h"

enum {
    AH_FS_MAX_PATTERN = 1024, /* bytes of a glob */
    AH_FS_MAX_CONTEXT = 20,   /* lines around one that matches */
    AH_FS_SECONDS = 10,       /* a walk, a search, and a reading of lines, ends after so many */
    AH_FS_STEPS = 100000000   /* the same, after so many steps (base/work.h) */
};

/* -- life ------------------------------------------------------------------------------- */

ah_status ah_fs_memory_new(const ah_mem *mem, const ah_fs_options *o, ah_fs **out, ah_err *err);
void ah_fs_seal(ah_fs *fs); /* from now on it is read-only; overlays made before are not */
/* Reads through to `below` (a reference is kept) and keeps all changes to itself until they
 * are committed. Untouched files cost nothing. */
ah_status ah_fs_overlay_new(ah_fs *below, ah_fs **out, ah_err *err);
ah_fs *ah_fs_ref(ah_fs *fs);   /* NULL gives NULL */
void ah_fs_unref(ah_fs *fs);   /* NULL is fine; staged changes are dropped */
ah_fs *ah_fs_below(ah_fs *fs); /* of an overlay; else NULL. Borrowed */

/* -- transactions (overlays only) -------------------------------------------------------- */

/* Two overlays of one file system are settled one after the other: prepare and commit of
 * the first, then prepare and commit of the second.
 *
 * prepare does what can fail: looks whether the files are still what they were, and writes
 * temporary files beside their targets. A file that was changed below meanwhile:
 *   only appended to or edited here    is done again upon what is there now
 *   read here, and then written        conflict
 *   deleted, renamed away here         conflict if it was read, or is gone
 *   written here without being read    this write wins
 * What was only read may have changed. A failed prepare leaves the overlay as it was. */
ah_status ah_fs_prepare(ah_fs *overlay, ah_err *err);
/* Renames what was prepared into place and empties the overlay. Needs no memory of ours. Fails with
 * `conflict` where another transaction, or program, came between, and with `system` where the
 * machine refuses a rename although the preparation was allowed to: then what was renamed before is
 * taken back, and nothing has changed (the message says so where that fails, too). Several changes
 * are one set: if the process ends in the middle, the next who opens the root goes on with it. */
ah_status ah_fs_commit(ah_fs *overlay, ah_err *err);
/* Forgets all changes, prepared or not; the overlay can be used on. */
void ah_fs_drop(ah_fs *overlay);
/* The same, for good: overlays on top of it, which may live on, fail to prepare with `conflict`. */
void ah_fs_end(ah_fs *overlay);

/* Makes the view that a call has of the overlay `of` (of a view of it, for a call within a call):
 * the call's own changes on top of all that is in `of`, and that on top of `base`, the call's view
 * of the file system below. Prepare and commit hand its changes to `of`. References are kept. */
ah_status ah_fs_view_new(ah_fs *of, ah_fs *base, ah_fs **out, ah_err *err);
/* Commit and drop of the overlay, as the call sees it: puts all that the view shows into `base`, or
 * forgets it. The overlay itself is emptied when the view is committed; that fails with `conflict`
 * if it was changed in between. */
ah_status ah_fs_view_commit(ah_fs *view, ah_err *err);
void ah_fs_view_drop(ah_fs *view);

/* -- files -------------------------------------------------------------------------------- */

/* "" is the root. What is not there is AH_OK with AH_FS_ABSENT. */
ah_status ah_fs_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err);

enum { AH_FS_WHOLE = 0 };
/* not_found, in words, with what may have been meant. */
ah_status ah_fs_absent(ah_fs *fs, ah_slice path, ah_err *err);
/* Appends to `out` at most `limit` bytes from `offset` (past the end: none); AH_FS_WHOLE:
 * up to the end, and too_large where that is more than max_file. A part never ends inside a
 * character. *info is of the file that was read; may be NULL. */
ah_status ah_fs_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                     ah_fs_info *info, ah_err *err);

/* These make the folders that are missing. A file keeps its permission bits; one without
 * any write bit is refused. */
ah_status ah_fs_write(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err);
ah_status ah_fs_append(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err);
/* Replaces the one place where `old` stands, or all of them; *count says how many. */
typedef struct ah_fs_edit {
    ah_slice old, with;
    bool all;
} ah_fs_edit;
ah_status ah_fs_replace(ah_fs *fs, ah_slice path, const ah_fs_edit *edit, size_t *count,
                        ah_err *err);

ah_status ah_fs_mkdir(ah_fs *fs, ah_slice path, ah_err *err); /* one that is there is fine */
/* A folder must be empty, unless `tree`. */
ah_status ah_fs_delete(ah_fs *fs, ah_slice path, bool tree, ah_err *err);
/* Files and folders; `over`: a file may be replaced. Contents are copied, so max_file holds. */
ah_status ah_fs_rename(ah_fs *fs, ah_slice from, ah_slice to, bool over, ah_err *err);

/* -- looking for files --------------------------------------------------------------------- */

ah_status ah_fs_list(ah_fs *fs, ah_slice folder, ah_fs_items *out, ah_err *err);

/* Files under `folder` whose path from there matches: * and ? within a name, [a-z], [!a-z],
 * ** for any folders, {a,b}. A name that begins with `.` is matched only by one that does. */
ah_status ah_fs_glob(ah_fs *fs, ah_slice folder, ah_slice pattern, ah_fs_items *out, ah_err *err);

/* Lines that match a regular expression (PCRE2; a build without it takes plain text only), in
 * the file `in` or the files under the folder `in`. `glob` narrows these; one without `/` is
 * for the name alone. Stops, truncated, after AH_FS_SECONDS. */
typedef struct ah_fs_grep {
    ah_slice pattern, in, glob; /* glob.p NULL: all but those that begin with `.` */
    bool plain;                 /* the pattern is the text itself */
    bool ignore_case;           /* plain text: of ASCII letters */
    bool count;                 /* an item a file that has such lines */
    size_t context;             /* lines before and after each, AH_FS_MAX_CONTEXT at most */
} ah_fs_grep;
ah_status ah_fs_search(ah_fs *fs, const ah_fs_grep *what, ah_fs_items *out, ah_err *err);

/* Lines of a text file of any size: out->max at most, from number `first` on, or the last ones
 * where `first` is 0. Items have `line`, `text` (cut at `width` bytes, malformed ones as U+FFFD)
 * and in `size` the bytes of the whole line. */
typedef struct ah_fs_lines {
    uint64_t first;
    size_t width, max_bytes; /* of a line; of all that are given, but for the last one's end */
    uint64_t total, size;    /* found: the file's lines, as far as it was read, and bytes */
    bool binary;             /* no text: no lines are given */
    bool stopped;            /* it was not read to its end, which took more than AH_FS_SECONDS */
    bool crlf, malformed;    /* a line that was read ends so; one that is given was not UTF-8 */
} ah_fs_lines;
ah_status ah_fs_read_lines(ah_fs *fs, ah_slice path, ah_fs_lines *want, ah_fs_items *out,
                           ah_err *err);

#endif
