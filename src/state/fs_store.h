/* What the fs*.c files share: checked paths, changes, and the interface that a store of
 * files fills in (disk.c: a folder of the machine; fs_tree.c: memory and overlays).
 *
 * A store only reads and takes lists of changes; all else (edits, walks, searching) is made
 * of that once, in fs.c, fs_remove.c and fs_search.c. For users there is fs.h. */
#ifndef AH_STATE_FS_STORE_H
#define AH_STATE_FS_STORE_H

#include "state/fs.h"

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

/* -- paths (fs_path.c) -------------------------------------------------------------------- */

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
/* And may something be written there? The root itself may not. */
ah_status ah_fs_path_writable(const ah_fs *fs, ah_slice given, ah_fs_path *out, ah_err *err);
bool ah_fs_may_write(const ah_fs *fs, const char *kind); /* of those that are refused: is it allowed? */
ah_slice ah_fs_parent(ah_slice path);                    /* "" for what is in the root */
ah_slice ah_fs_name(ah_slice path);                      /* the last name */
bool ah_fs_within(ah_slice path, ah_slice dir);          /* strictly below it; all is below "" */
bool ah_fs_name_ok(ah_slice name);                       /* can a path have it? */
bool ah_fs_is_temporary(ah_slice name);                  /* of ours, not for users */
/* dir/name; false: too long, and *out is as it was. The one place where paths are put together: a
 * name on the disk may be as long as it likes, so whoever joins looks at what comes back. */
bool ah_fs_join(ah_slice dir, ah_slice name, ah_fs_path *out) __attribute__((warn_unused_result));

/* -- changes (fs_change.c) ----------------------------------------------------------------- */

typedef enum ah_fs_act { AH_FS_SEEN, AH_FS_PUT, AH_FS_MAKE_FOLDER, AH_FS_REMOVE } ah_fs_act;

/* What was done to a content, to be done again where another content is found. */
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
    ah_fs_info was;   /* what the store that is changed had there */
    bool pinned;      /* depends on that: it was read */
    bool anew;        /* PUT, MAKE_FOLDER: what was there was removed before */
    ah_fs_op *op;     /* PUT: how `content` came from that; none: without regard to it */
    size_t n_ops;
    uint64_t serial; /* the store's: version of what the change put there */
    ah_fs *fresh;    /* a view's: `was` is what the same call has put into that. Borrowed */
} ah_fs_change;

/* A list with each path at most once, folders before what is put in them. */
typedef struct ah_fs_changes {
    const ah_mem *mem;
    ah_fs_change *item;
    size_t n, cap;
} ah_fs_changes;

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

/* -- stores ---------------------------------------------------------------------------------- */

typedef struct ah_fs_store {
    /* Never follows a link. What is not there is AH_FS_ABSENT. */
    ah_status (*stat)(ah_fs *fs, ah_slice path, ah_fs_info *out, ah_err *err);
    /* Appends at most `limit` bytes of a regular file. */
    ah_status (*read)(ah_fs *fs, ah_slice path, uint64_t offset, size_t limit, ah_buf *out,
                      ah_fs_info *info, ah_err *err);
    /* Adds the folder's entries, unsorted, and looks at options.max_files of them at most. */
    ah_status (*list)(ah_fs *fs, ah_slice path, ah_fs_found *out, ah_err *err);
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
    ah_text *folder[2]; /* of the machine, as it was named and as it is; NULL: in memory, or not known */
    bool guarded;       /* some names are refused */
    bool over;          /* ah_fs_end: nothing is committed into it any more */
    uint64_t serial;    /* of the lowest: the last number given to a version */
    uint64_t commits;   /* so many; tells whether another came between */
};

/* The head of a store; `o` may be NULL. */
void ah_fs_init(ah_fs *fs, const ah_fs_store *store, const ah_mem *mem, const ah_fs_options *o);

/* Prepares and commits; clears the list either way. */
ah_status ah_fs_change_now(ah_fs *fs, ah_fs_changes *list, ah_err *err);
/* A change of `path`, with the missing folders before it. NULL with *err set: failed. */
ah_fs_change *ah_fs_plan(ah_fs *fs, ah_fs_changes *list, ah_slice path, ah_fs_act act,
                         const ah_fs_info *was, ah_err *err);
/* Is it a file? Words where not. */
ah_status ah_fs_need_file(ah_slice path, const ah_fs_info *info, ah_err *err);
/* Is it absent or a file that may be replaced? */
ah_status ah_fs_need_place(ah_slice path, const ah_fs_info *info, ah_err *err);
/* The whole content, for changing it. */
ah_status ah_fs_content(ah_fs *fs, ah_slice path, ah_text **out, ah_fs_info *info, ah_err *err);

/* In an overlay: what was looked at must still be so when it is changed and committed. */
ah_status ah_fs_note(ah_fs *fs, ah_slice path, const ah_fs_info *was, ah_err *err);
/* Adds to a not_found which path may have been meant (fs_near.c). Returns st, or AH_NOMEM. */
ah_status ah_fs_advise(ah_fs *fs, ah_slice path, ah_status st, ah_err *err);
int64_t ah_fs_seconds(void); /* of a clock that only goes forward */

/* Adds an item whose name and text are copied. AH_NOMEM, else AH_OK. */
ah_status ah_fs_found_add(ah_fs_found *f, ah_slice name, const ah_fs_item *as);

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
    int64_t until;   /* of ah_fs_seconds: it ends then, truncated */
    bool stop, truncated;
    ah_fs_path at; /* where it is */
    size_t root;   /* bytes of it that are the folder from which it began */
    ah_work work;  /* AH_FS_STEPS; what `visit` does counts, too */
} ah_fs_walk;

ah_status ah_fs_walk_run(ah_fs *fs, ah_slice folder, ah_fs_walk *w, ah_err *err);
/* Fails with AH_CANCELLED, in words. */
ah_status ah_fs_stopped(ah_err *err);

/* -- globs (fs_glob.c) -------------------------------------------------------------------------- */

enum { AH_FS_MAX_ALTERNATIVES = 64 };

typedef struct ah_fs_glob_set {
    ah_buf text; /* the alternatives that {} stands for, each NUL-terminated */
    size_t n;
} ah_fs_glob_set;

/* Cleared by the caller, failed or not. */
ah_status ah_fs_glob_init(ah_fs_glob_set *g, const ah_mem *mem, ah_slice pattern, ah_err *err);
void ah_fs_glob_clear(ah_fs_glob_set *g);
bool ah_fs_glob_match(const ah_fs_glob_set *g, ah_slice path);
/* What comparing the path with it takes at most, in steps. */
uint64_t ah_fs_glob_steps(const ah_fs_glob_set *g, ah_slice path);
/* Can something under this folder match? */
bool ah_fs_glob_leads(const ah_fs_glob_set *g, ah_slice folder);

#endif
