/* The interface between the agents' file tree (state/fs.h) and the stores that keep its files:
 * memory and overlays in state, folders of the machine in io. A store implements `ah_fs_store`,
 * which reads and takes lists of changes; edits, walks and searches are built on it in
 * state/fs.h. path.c checks paths as text. A store is reference-counted (ah_fs.refs).
 * Callers: its floor, state, io. */
#ifndef AH_BASE_BACKING_H
#define AH_BASE_BACKING_H

#include "base/buf.h"
#include "base/text.h"
#include "base/work.h"

enum {
    AH_FS_MAX_PATH = 1024, /* bytes of a path */
    AH_FS_MAX_NAME = 255,  /* bytes of a name in a path */
    AH_FS_MAX_DEPTH = 64,  /* limit of the option max_depth, as walks recurse this deep */
};

typedef struct ah_fs ah_fs;

typedef enum ah_fs_kind {
    AH_FS_ABSENT,
    AH_FS_FILE,
    AH_FS_FOLDER,
    AH_FS_LINK,
    AH_FS_OTHER
} ah_fs_kind;

const char *ah_fs_kind_name(ah_fs_kind kind); /* "file" */

/* Equal if the content is equal. For a folder of the machine: inode, size and times. */
typedef struct ah_fs_version {
    uint64_t part[4];
} ah_fs_version;

/* Permission bits, if known. Known bits may all be 0. */
typedef struct ah_fs_mode {
    bool known;
    unsigned bits;
} ah_fs_mode;

#define AH_FS_NO_TIME INT64_MIN

typedef struct ah_fs_info {
    ah_fs_kind kind;
    ah_fs_mode mode;
    uint64_t size;
    int64_t modified_ms; /* since 1970, may be negative; AH_FS_NO_TIME: in memory or staged */
    ah_fs_version version;
} ah_fs_info;

/* Zero selects the default of each field. */
typedef struct ah_fs_options {
    bool read_only;
    bool no_sync; /* a file is not forced to the disk before it replaces the old one */
    /* refused names that are allowed, each with a `/` after it; a store keeps a reference */
    ah_text *allow;
    size_t max_file;  /* bytes of a file read whole or written; default 8 MiB */
    size_t max_total; /* bytes in memory or staged; default 64 MiB */
    size_t max_files; /* entries of a folder, a walk, memory or a transaction; default 10000 */
    int max_depth;    /* names in a path; default 32 */
    const struct ah_hidden *hidden; /* io/hidden.h: what a folder of the machine does not have;
                                       borrowed as long as the store; NULL: nothing */
    const ah_interrupt *interrupt;  /* ends walks, searches and the reading of lines with
                                      AH_CANCELLED; NULL: never */
    /* monotonic clock that ends walks and searches, truncated; NULL: no time limit */
    int64_t (*clock_ns)(void);
} ah_fs_options;

/* -- failures -------------------------------------------------------------------------------- */

typedef enum ah_fs_reason {
    AH_FS_BAD_PATH,
    AH_FS_NOT_FOUND,
    AH_FS_NOT_A_FILE,
    AH_FS_NOT_A_FOLDER,
    AH_FS_EXISTS,
    AH_FS_REFUSED,
    AH_FS_READ_ONLY,
    AH_FS_TOO_LARGE,
    AH_FS_TOO_MANY,
    AH_FS_NO_MATCH,
    AH_FS_SEVERAL_MATCHES,
    AH_FS_BAD_PATTERN,
    AH_FS_CONFLICT,
    AH_FS_SYSTEM /* with AH_INTERNAL; all others with AH_TOOL_VALIDATION */
} ah_fs_reason;

ah_status ah_fs_err(ah_err *err, ah_fs_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns AH_OK if it is a file, otherwise an error with a message. */
ah_status ah_fs_need_file(ah_slice path, const ah_fs_info *info, ah_err *err);

/* -- paths (path.c) -------------------------------------------------------------------- */

/* A checked path: no `.`, no `..`, no `/` at either end. "" is the root. NUL-terminated. */
typedef struct ah_fs_path {
    size_t n;
    char s[AH_FS_MAX_PATH + 1];
} ah_fs_path;

static inline ah_slice ah_fs_path_slice(const ah_fs_path *p)
{
    return (ah_slice){p->s, p->n};
}

ah_status ah_fs_path_check(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err);
/* Checks as ah_fs_path_check, and that the path may be written: fails for the root, a refused
 * name, and every path of a read-only file system. */
ah_status ah_fs_path_writable(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err);
bool ah_fs_may_write(const ah_fs *fs,
                     const char *kind); /* true if options.allow contains this refused kind */
ah_slice ah_fs_parent(ah_slice path);   /* "" for an entry of the root */
ah_slice ah_fs_name(ah_slice path);     /* the last name */
bool ah_fs_within(ah_slice path,
                  ah_slice dir);        /* true if strictly below dir; every path is below "" */
bool ah_fs_name_ok(ah_slice name);      /* true if a path may contain the name */
bool ah_fs_is_temporary(ah_slice name); /* true for our temporary files; paths cannot name them */
/* Sets *out to dir/name. Returns false if it is too long; *out is then unchanged. All paths are
 * joined here: a name on disk may have any length, so each caller checks the result. */
bool ah_fs_join(ah_slice dir, ah_slice name, ah_fs_path *out) __attribute__((warn_unused_result));

/* True if the name may not be written in a folder of the machine, because such files run code or
 * configure programs that do. It covers exact names and kinds (".env*"). The text of a kind
 * itself is refused, too. */
bool ah_fs_is_refused(ah_slice name);
const char *ah_fs_refused_name(size_t i); /* the i-th kind; NULL after the last */

/* -- entries --------------------------------------------------------------------------------- */

typedef struct ah_fs_item {
    ah_text *name; /* list: name in the folder; otherwise the path */
    ah_fs_kind kind;
    uint64_t size;
    size_t line;   /* grep: line number from 1; when counting: number of matches */
    bool beside;   /* grep: a line of context, not a match */
    ah_text *text; /* grep: the line, cut at 500 bytes, malformed bytes as U+FFFD */
} ah_fs_item;

/* Entries in byte order of the names, folder by folder. Left out are entries that no path can
 * name (not UTF-8, control characters, too long, too deep), and folders below the first that
 * cannot be listed. */
typedef struct ah_fs_items {
    const ah_mem *mem;
    ah_fs_item *item;
    size_t n, cap;
    size_t max;      /* limit of items; set by the caller */
    bool truncated;  /* there are more, or a limit stopped the search */
    size_t skipped;  /* grep: number of files left out, binary or larger than max_file */
    size_t left_out; /* number of entries left out */
} ah_fs_items;

void ah_fs_items_init(ah_fs_items *f, const ah_mem *mem, size_t max);
void ah_fs_items_clear(ah_fs_items *f);
/* Adds an item with copies of its name and text. Returns AH_OK or AH_NOMEM. */
ah_status ah_fs_items_add(ah_fs_items *f, ah_slice name, const ah_fs_item *as);

/* -- changes --------------------------------------------------------------------------------- */

typedef enum ah_fs_act { AH_FS_SEEN, AH_FS_PUT, AH_FS_MAKE_FOLDER, AH_FS_REMOVE } ah_fs_act;

/* An edit of a file's content, recorded so that it can be repeated on other content. */
typedef struct ah_fs_op {
    ah_text *old; /* text to replace; NULL: `with` is appended */
    ah_text *with;
    bool all;
} ah_fs_op;

typedef struct ah_fs_change {
    ah_text *path;
    ah_fs_act act;
    ah_text *content; /* of PUT */
    ah_fs_mode mode;  /* of PUT; not known: the usual mode */
    ah_fs_info was;   /* the entry before the change, in the changed store */
    bool pinned;      /* the change depends on `was`, because it was read */
    bool anew;        /* of PUT, MAKE_FOLDER: the old entry was removed first */
    ah_fs_op
        *op; /* of PUT: edits that made `content` from the old content; none: independent of it */
    size_t n_ops;
    uint64_t serial; /* of the store: version of the new entry */
    ah_fs *fresh;    /* of a view: the store into which the same call put `was`; borrowed */
} ah_fs_change;

/* A list in which each path appears once, and folders come before their entries. */
typedef struct ah_fs_changes {
    const ah_mem *mem;
    ah_fs_change *item;
    size_t n, cap;
} ah_fs_changes;

/* -- stores ---------------------------------------------------------------------------------- */

typedef struct ah_fs_store {
    /* Never follows a link. A missing entry has the kind AH_FS_ABSENT. */
    ah_status (*stat)(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err);
    /* Appends at most `limit` bytes of a regular file. */
    ah_status (*read)(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                      ah_fs_info *info, ah_err *err);
    /* Adds the folder's entries, unsorted, and reads at most options.max_files of them. */
    ah_status (*list)(ah_fs *fs, ah_slice path, ah_fs_items *out, ah_err *err);
    /* Prepares all changes and returns a ticket that owns what it needs. */
    ah_status (*prepare)(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err);
    /* Both take the ticket. commit needs no memory. */
    ah_status (*commit)(ah_fs *fs, void *ticket, ah_err *err);
    void (*drop)(ah_fs *fs, void *ticket);
    void (*free)(ah_fs *fs);
} ah_fs_store;

struct ah_fs {
    const ah_fs_store *store;
    const ah_mem *mem;
    size_t refs;
    ah_fs *below; /* of an overlay: the store below it */
    ah_fs_options o;
    /* folder of the machine, as given and as resolved; NULL: in memory, or unknown */
    ah_text *folder[2];
    ah_text *name;    /* by which records know it; NULL: none */
    bool machine;     /* a folder of the machine, not memory and not an overlay */
    bool guarded;     /* some names are refused */
    bool over;        /* ah_fs_end was called: nothing is committed into it any more */
    uint64_t serial;  /* of the lowest store: last number given to a version */
    uint64_t commits; /* number of commits: shows if another one came between */
};

/* Initializes the common part of a store; `o` may be NULL. */
void ah_fs_init(ah_fs *fs, const ah_fs_store *store, const ah_mem *mem, const ah_fs_options *o);

#endif
