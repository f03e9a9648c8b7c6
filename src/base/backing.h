/* The backing of the agents' file tree: whatever keeps files for it (memory and overlays in state,
 * folders of the machine in io) fills in `ah_fs_store`, which reads and takes lists of changes. All
 * else (edits, walks, searching) is made of that once, in state/fs.h. Paths are checked by the
 * letters in path.c. */
#ifndef AH_BASE_BACKING_H
#define AH_BASE_BACKING_H

#include "base/buf.h"
#include "base/text.h"
#include "base/work.h"

enum {
    AH_FS_MAX_PATH = 1024, /* bytes of a path */
    AH_FS_MAX_NAME = 255,  /* bytes of one name in it */
    AH_FS_MAX_DEPTH = 64,  /* most that max_depth may be: walks recurse so deep */
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

/* Equal where the content is. Of a folder of the machine: inode, size, times. */
typedef struct ah_fs_version {
    uint64_t part[4];
} ah_fs_version;

/* Permission bits, where they are known: none of them set is a mode like any other. */
typedef struct ah_fs_mode {
    bool known;
    unsigned bits;
} ah_fs_mode;

#define AH_FS_NO_TIME INT64_MIN

typedef struct ah_fs_info {
    ah_fs_kind kind;
    ah_fs_mode mode;
    uint64_t size;
    int64_t modified_ms; /* since 1970, or before; AH_FS_NO_TIME: in memory or staged */
    ah_fs_version version;
} ah_fs_info;

/* Zero is a good default for each. */
typedef struct ah_fs_options {
    bool read_only;
    bool no_sync; /* files are not forced to the disk before they take their place */
    /* names that are not refused, a `/` behind each; borrowed, a reference is kept */
    ah_text *allow;
    size_t max_file;               /* bytes of a file read whole or written; 8 MiB */
    size_t max_total;              /* bytes in memory or staged; 64 MiB */
    size_t max_files;              /* entries of a folder, a walk, memory, a transaction; 10000 */
    int max_depth;                 /* names in a path; 32 */
    const ah_interrupt *interrupt; /* of walks, searches and reading lines, which then fail with
                                      AH_CANCELLED; NULL: nobody ends them early */
    int64_t (*clock_ns)(void);     /* goes forward only; by it walks and searches end, truncated.
                                  NULL: they have all the time */
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
    AH_FS_SYSTEM /* AH_INTERNAL; the others are AH_TOOL_VALIDATION */
} ah_fs_reason;

ah_status ah_fs_err(ah_err *err, ah_fs_reason reason, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* AH_OK if it is a file, else an error in words. */
ah_status ah_fs_need_file(ah_slice path, const ah_fs_info *info, ah_err *err);

/* -- paths (path.c) -------------------------------------------------------------------- */

/* A checked path: no `.`, no `..`, no `/` at either end; "" is the root. NUL-terminated. */
typedef struct ah_fs_path {
    size_t n;
    char s[AH_FS_MAX_PATH + 1];
} ah_fs_path;

static inline ah_slice ah_fs_path_slice(const ah_fs_path *p)
{
    return (ah_slice){p->s, p->n};
}

ah_status ah_fs_path_check(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err);
/* Checks as ah_fs_path_check does, and that the path can be written: fails for the root, in a
 * read-only file system, and for a refused name. */
ah_status ah_fs_path_writable(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err);
bool ah_fs_may_write(const ah_fs *fs,
                     const char *kind);         /* true if options.allow has this refused kind */
ah_slice ah_fs_parent(ah_slice path);           /* "" for an entry of the root */
ah_slice ah_fs_name(ah_slice path);             /* the last name */
bool ah_fs_within(ah_slice path, ah_slice dir); /* true if strictly below dir; all is below "" */
bool ah_fs_name_ok(ah_slice name);              /* true if a path can contain the name */
bool ah_fs_is_temporary(ah_slice name);         /* true for our temporary files: refused in paths */
/* Sets *out to dir/name. False: too long, and *out is unchanged. Paths are joined here only: a name
 * on the disk may be of any length, so each caller checks the result. */
bool ah_fs_join(ah_slice dir, ah_slice name, ah_fs_path *out) __attribute__((warn_unused_result));

/* True if writing the name is refused in a folder of the machine, since such files run code or
 * configure programs that do. Refused are names, and kinds (".env*"); true for a kind as it is
 * listed, too. */
bool ah_fs_is_refused(ah_slice name);
const char *ah_fs_refused_name(size_t i); /* the i-th kind; NULL behind the last */

/* -- entries --------------------------------------------------------------------------------- */

typedef struct ah_fs_item {
    ah_text *name; /* list: in the folder; else the path */
    ah_fs_kind kind;
    uint64_t size;
    size_t line;   /* grep: from 1; counting: how many match */
    bool beside;   /* grep: stands around one that matches */
    ah_text *text; /* grep: the line, cut at 500 bytes, malformed bytes as U+FFFD */
} ah_fs_item;

/* In byte order of the names, folder by folder. What no path can name (no UTF-8, control
 * characters, too long or too deep) is left out, and so are folders below the first that cannot be
 * listed. */
typedef struct ah_fs_items {
    const ah_mem *mem;
    ah_fs_item *item;
    size_t n, cap;
    size_t max;      /* most items; set by the caller */
    bool truncated;  /* there are more, or a limit stopped the search */
    size_t skipped;  /* grep: files left out, binary or larger than max_file */
    size_t left_out; /* so many entries */
} ah_fs_items;

void ah_fs_items_init(ah_fs_items *f, const ah_mem *mem, size_t max);
void ah_fs_items_clear(ah_fs_items *f);
/* Adds an item whose name and text are copied. AH_NOMEM, else AH_OK. */
ah_status ah_fs_items_add(ah_fs_items *f, ah_slice name, const ah_fs_item *as);

/* -- changes --------------------------------------------------------------------------------- */

typedef enum ah_fs_act { AH_FS_SEEN, AH_FS_PUT, AH_FS_MAKE_FOLDER, AH_FS_REMOVE } ah_fs_act;

/* An edit of a file's content, recorded so that it can be repeated on another content. */
typedef struct ah_fs_op {
    ah_text *old; /* NULL: `with` is appended */
    ah_text *with;
    bool all;
} ah_fs_op;

typedef struct ah_fs_change {
    ah_text *path;
    ah_fs_act act;
    ah_text *content; /* PUT */
    ah_fs_mode mode;  /* PUT; not known: the usual ones */
    ah_fs_info was;   /* the entry that the changed store had there */
    bool pinned;      /* the change depends on `was`, which was read */
    bool anew;        /* PUT, MAKE_FOLDER: the old entry was removed before */
    ah_fs_op *op;     /* PUT: edits that made `content` of it; none: independent of it */
    size_t n_ops;
    uint64_t serial; /* the store's: version of what the change put there */
    ah_fs *fresh;    /* a view's: the same call has put `was` into that. Borrowed */
} ah_fs_change;

/* A list with each path at most once, folders before what is put in them. */
typedef struct ah_fs_changes {
    const ah_mem *mem;
    ah_fs_change *item;
    size_t n, cap;
} ah_fs_changes;

/* -- stores ---------------------------------------------------------------------------------- */

typedef struct ah_fs_store {
    /* Never follows a link. What is not there is AH_FS_ABSENT. */
    ah_status (*stat)(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err);
    /* Appends at most `limit` bytes of a regular file. */
    ah_status (*read)(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                      ah_fs_info *info, ah_err *err);
    /* Adds the folder's entries, unsorted, and looks at options.max_files of them at most. */
    ah_status (*list)(ah_fs *fs, ah_slice path, ah_fs_items *out, ah_err *err);
    /* Makes all ready and gives a ticket that owns what it needs. */
    ah_status (*prepare)(ah_fs *fs, const ah_fs_changes *list, void **ticket, ah_err *err);
    /* Both take the ticket; commit needs no memory. */
    ah_status (*commit)(ah_fs *fs, void *ticket, ah_err *err);
    void (*drop)(ah_fs *fs, void *ticket);
    void (*free)(ah_fs *fs);
} ah_fs_store;

struct ah_fs {
    const ah_fs_store *store;
    const ah_mem *mem;
    size_t refs;
    ah_fs *below; /* of an overlay */
    ah_fs_options o;
    /* of the machine, as it was named and as it is; NULL: in memory, or not known */
    ah_text *folder[2];
    bool guarded;     /* some names are refused */
    bool over;        /* ah_fs_end: nothing is committed into it any more */
    uint64_t serial;  /* of the lowest: the last number given to a version */
    uint64_t commits; /* number of commits: shows if another came between */
};

/* The head of a store; `o` may be NULL. */
void ah_fs_init(ah_fs *fs, const ah_fs_store *store, const ah_mem *mem, const ah_fs_options *o);

#endif
