/* Files for agents: one interface over a folder of the machine, over memory, and over staged
 * changes on top of either (an overlay; overlays nest). Errors of the caller fail with
 * AH_TOOL_VALIDATION and a message for a model, refusals of the machine with AH_INTERNAL. Both have
 * a reason in err->details. A file system is reference-counted. Callers: its floor, lua. */
#ifndef AH_STATE_FS_H
#define AH_STATE_FS_H

#include "base/backing.h"
#include "state/change_list.h"

/* Reasons in err->details, as {"reason":"not_found"}:
 *   bad_path not_found not_a_file not_a_folder exists refused read_only too_large too_many
 *   no_match several_matches bad_pattern conflict system
 *
 * Paths are relative to the root and separated by `/`: at most AH_FS_MAX_PATH bytes of UTF-8
 * without control characters, and `options.max_depth` names. `.` and `..` are resolved as text,
 * and never lead out. Symbolic links are never followed. Every write replaces the whole file: a
 * reader, or a crash, finds the old content or the new. `err` is never NULL. */

enum {
    AH_FS_MAX_PATTERN = 1024, /* bytes of a glob */
    AH_FS_MAX_CONTEXT = 20,   /* lines around a match */
    AH_FS_SECONDS = 10,       /* limit of a walk, a search, or a reading of lines, in seconds */
    AH_FS_STEPS = 100000000   /* the same limit in steps (base/work.h) */
};

/* -- life ------------------------------------------------------------------------------- */

ah_status ah_fs_memory_new(const ah_mem *mem, const ah_fs_options *o, ah_fs **out, ah_err *err);
void ah_fs_seal(ah_fs *fs); /* read-only from now on; earlier overlays are not */
/* Makes an overlay that reads through to `below` (keeps a reference) and keeps all changes until
 * they are committed. Untouched files cost nothing. */
ah_status ah_fs_overlay_new(ah_fs *below, ah_fs **out, ah_err *err);
ah_fs *ah_fs_ref(ah_fs *fs);   /* NULL returns NULL */
void ah_fs_unref(ah_fs *fs);   /* NULL does nothing; staged changes are dropped */
ah_fs *ah_fs_below(ah_fs *fs); /* of an overlay, borrowed; otherwise NULL */

/* -- transactions (overlays only) -------------------------------------------------------- */

/* Two overlays of one file system are settled one after the other: prepare and commit of the first,
 * then of the second.
 *
 * prepare does everything that may fail: it checks whether the files are unchanged, and writes
 * temporary files beside their targets. If a file was changed below meanwhile:
 *
 *   only appended to or edited here    repeated on the present content
 *   read here, and then written        conflict
 *   deleted, renamed away here         conflict if it was read, or is gone
 *   written here without being read    this write wins
 *
 * A file that was only read may have changed. A failed prepare leaves the overlay unchanged. */
ah_status ah_fs_prepare(ah_fs *overlay, ah_err *err);
/* Prepares anew, because others may have changed files since the overlay was prepared. */
ah_status ah_fs_prepare_again(ah_fs *overlay, ah_err *err);
/* Renames the prepared files into place and empties the overlay. It allocates nothing. Fails
 * with `conflict` if another transaction, or program, came between, and with `system` if the
 * machine refuses a rename that the preparation allowed: earlier renames are then undone, and
 * nothing has changed; if that fails, too, the message states it. Several changes are one set:
 * if the process ends in the middle, the next process that opens the root completes them. */
ah_status ah_fs_commit(ah_fs *overlay, ah_err *err);
/* The changes so far are not repeated on files that others have changed: ah_fs_prepare then fails
 * with `conflict`. */
void ah_fs_pin(ah_fs *overlay);
/* Discards all changes, prepared or not; the overlay can be used again. */
void ah_fs_drop(ah_fs *overlay);
/* Like ah_fs_drop, but the overlay cannot be used again. Overlays on top of it, which may still be
 * in use, fail to prepare with `conflict`. */
void ah_fs_end(ah_fs *overlay);

/* Makes a call's view of the overlay `of` (or of a view of it, for a call within a call): the
 * call's own changes over everything in `of`, over `base`, the call's view of the file system
 * below. Prepare and commit pass its changes to `of`. It keeps references. */
ah_status ah_fs_view_new(ah_fs *of, ah_fs *base, ah_fs **out, ah_err *err);
/* Commits or drops the overlay as the call sees it: puts everything that the view shows into
 * `base`, or discards it. The overlay itself is emptied when the view is committed; that fails
 * with `conflict` if it was changed in between. */
ah_status ah_fs_view_commit(ah_fs *view, ah_err *err);
void ah_fs_view_drop(ah_fs *view);

/* True if the changes of the overlay alone decide what is at the path, whatever is below it. */
bool ah_fs_is_own(ah_fs *overlay, ah_slice path);

/* -- records of changes (fs_record.c; docs/reference/journal.md) ------------------------------ */

/* Appends the changes of an overlay as a JSON list, each with the hash of the content that it is
 * based on. Returns false, and appends nothing, for a view: its changes depend on other overlays.
 */
bool ah_fs_print(ah_fs *overlay, ah_buf *out);
/* Makes the changes of such a list (checked JSON) in a new overlay. What they are based on is
 * compared by hash, so the overlay's preparation finds the same conflicts. AH_STORE: the list is
 * damaged; AH_CONFLICT: the file system does not take these changes. */
ah_status ah_fs_restage(ah_fs *overlay, ah_slice list, ah_err *err);

/* Appends {"root","path","before","after"} of each entry that the prepared changes will change in
 * a folder of the machine, with commas between them. "before" and "after" are the SHA-256 of a
 * file's content, or the kind of another entry; absent if there is none. kept: gets an item for
 * each of them, with what the entry was (docs/reference/journal.md). whole: also with what it
 * becomes. */
void ah_fs_print_due(ah_fs *overlay, bool whole, ah_buf *out, ah_buf *kept);

/* Appends the bytes of a content in records, a string or {"base64":".."} (checked JSON). Returns
 * false, and appends nothing, if it is neither. */
bool ah_fs_read_bytes(ah_slice json, ah_buf *out);

/* Appends the files that the overlay changes to the list, as they are below and in it; of a view,
 * the changes of its call. whole: of a view, also those that the overlay had before. A file that
 * cannot be read is left out. */
void ah_fs_show(ah_fs *overlay, bool whole, ah_change_list *l);

/* -- files that are put back (fs_restore.c) ---------------------------------------------------- */

typedef enum ah_fs_found {
    AH_FS_AS_EXPECTED, /* the overlay has its change now */
    AH_FS_AS_WANTED,   /* it is so already */
    AH_FS_CHANGED,     /* another program has changed it */
    AH_FS_NOT_KEPT,    /* the records do not have the content, or it was no file and no folder */
    AH_FS_NOT_ALLOWED, /* its name may not be written */
    AH_FS_IN_USE       /* a folder that is to go, and has other entries */
} ah_fs_found;

typedef struct ah_fs_restored {
    ah_slice path;
    ah_file_side now, then; /* as it should be now, and as it is to be */
    ah_fs_mode mode;        /* of `then` */
    ah_fs_found found;      /* the result */
} ah_fs_restored;

/* Stages in a new overlay over a folder of the machine what makes each entry as it is to be. Items
 * are in byte order of the paths. force: also of files that another program has changed. */
ah_status ah_fs_restore(ah_fs *overlay, ah_fs_restored *item, size_t n, bool force, ah_err *err);

/* The fate of changes that were written down before they were made. */
typedef enum ah_fs_fate {
    AH_FS_APPLIED,     /* all are made */
    AH_FS_NOT_APPLIED, /* none is */
    AH_FS_MIXED        /* unknown: some entries are neither as before nor as after, or both occur */
} ah_fs_fate;

typedef struct ah_fs_outcome {
    ah_fs_fate fate;
    bool by_folder;  /* of ah_fs_settled_all: each folder is as before, or as after */
    size_t n;        /* number of entries of this file system's root in the list */
    ah_fs_path path; /* of MIXED: the first entry that is not as after; "": none was found */
} ah_fs_outcome;

/* Compares the files with a list of ah_fs_print_due (checked JSON; .p NULL: empty). Entries of
 * other roots are left out. An empty list is applied. AH_STORE: the list is damaged. */
ah_status ah_fs_settled(ah_fs *fs, ah_slice files, ah_fs_outcome *out, ah_err *err);
/* Appends the text that replaces the result of a call whose files are NOT_APPLIED or MIXED. */
void ah_fs_say_fate(const ah_fs_outcome *o, ah_buf *out);

/* -- files -------------------------------------------------------------------------------- */

/* "" is the root. A missing entry is AH_OK with AH_FS_ABSENT. */
ah_status ah_fs_stat(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err);

enum { AH_FS_WHOLE = 0 };
/* Fails with not_found, and suggests what may have been meant. */
ah_status ah_fs_absent(ah_fs *fs, ah_slice path, ah_err *err);
/* Appends at most `limit` bytes from `offset` (after the end: none). AH_FS_WHOLE: up to the end;
 * too_large above max_file. A part never ends inside a character. *info (may be NULL): the file
 * that was read. */
ah_status ah_fs_read(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                     ah_fs_info *info, ah_err *err);

/* These make missing folders. A file keeps its permission bits; one without write bits is
 * refused. */
ah_status ah_fs_write(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err);
ah_status ah_fs_append(ah_fs *fs, ah_slice path, ah_slice bytes, ah_err *err);
/* Replaces the only occurrence of `old`, or all of them; *count is their number. */
typedef struct ah_fs_edit {
    ah_slice old, with;
    bool all;
} ah_fs_edit;
ah_status ah_fs_replace(ah_fs *fs, ah_slice path, const ah_fs_edit *edit, size_t *count,
                        ah_err *err);

ah_status ah_fs_mkdir(ah_fs *fs, ah_slice path, ah_err *err); /* an existing one is not an error */
/* Without `tree`, a folder must be empty. */
ah_status ah_fs_delete(ah_fs *fs, ah_slice path, bool tree, ah_err *err);
/* Renames files and folders. `over`: may replace a file. Contents are copied, so max_file
 * applies. */
ah_status ah_fs_rename(ah_fs *fs, ah_slice from, ah_slice to, bool over, ah_err *err);

/* -- looking for files --------------------------------------------------------------------- */

/* `ignored` of the next three: NULL, or entries that files .gitignore leave out are not found. It
 * then gets an item for each file that has left out entries: its path and, in `line`, their number;
 * 0 if the file is too large to be obeyed. `folder` and `what->in` themselves are always looked at.
 */
ah_status ah_fs_list(ah_fs *fs, ah_slice folder, ah_fs_items *ignored, ah_fs_items *out,
                     ah_err *err);

/* Finds files under `folder` whose path from there matches: * and ? within a name, [a-z],
 * [!a-z], ** for any folders, {a,b}. Only a pattern name that begins with `.` matches such a
 * name. */
ah_status ah_fs_glob(ah_fs *fs, ah_slice folder, ah_slice pattern, ah_fs_items *ignored,
                     ah_fs_items *out, ah_err *err);

/* Finds lines that match a regular expression (PCRE2; without it only plain text), in the file
 * `in` or the files under the folder `in`. `glob` limits these; without `/` it applies to the
 * name alone. Stops, truncated, after AH_FS_SECONDS. */
typedef struct ah_fs_grep {
    ah_slice pattern, in, glob; /* glob.p NULL: all files except those that begin with `.` */
    bool plain;                 /* the pattern is literal text */
    bool ignore_case;           /* of ASCII letters only in a build without PCRE2 */
    bool count;                 /* one item per file with matches */
    size_t context;             /* lines before and after each match, at most AH_FS_MAX_CONTEXT */
} ah_fs_grep;
ah_status ah_fs_search(ah_fs *fs, const ah_fs_grep *what, ah_fs_items *ignored, ah_fs_items *out,
                       ah_err *err);

/* Reads lines of a text file of any size: at most out->max, from number `first`, or the last
 * ones if `first` is 0. Items have `line`, `text` (cut at `width` bytes, malformed bytes as
 * U+FFFD) and, in `size`, the bytes of the whole line. */
typedef struct ah_fs_lines {
    uint64_t first;
    size_t width, max_bytes; /* of a line; of all returned lines except the last one's end */
    uint64_t total, size;    /* results: lines of the file, as far as it was read, and its bytes */
    bool binary;             /* not a text: no lines are returned */
    bool stopped;            /* it took more than AH_FS_SECONDS, and was not read to its end */
    bool crlf, malformed;    /* a read line ends with \r\n; a returned line was not UTF-8 */
} ah_fs_lines;
ah_status ah_fs_read_lines(ah_fs *fs, ah_slice path, ah_fs_lines *want, ah_fs_items *out,
                           ah_err *err);

#endif
