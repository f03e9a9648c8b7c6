/* The list of changes behind memory and overlays: fs_tree.c keeps it, fs_overlay.c hands it
 * down. It owns its changes. Callers: its floor. */
#ifndef AH_STATE_FS_TREE_H
#define AH_STATE_FS_TREE_H

#include "base/sha256.h"
#include "state/fs_store.h"

typedef struct ah_fs_tree {
    ah_fs fs;
    ah_fs_change **node; /* sorted by path */
    size_t n, cap;
    size_t promised;   /* places reserved by plans that are not yet committed */
    size_t bytes;      /* of the contents */
    bool prepared;     /* for overlays: */
    void *ready;       /* ticket of the file system below; NULL: nothing to do there */
    uint64_t ready_at; /* number of its commits at that time */
    ah_fs_changes due; /* the changes of `ready`, if they are for a folder of the machine */
    ah_fs *into;       /* of a view: the overlay that gets its changes; NULL: the one below */
    uint64_t made_at;  /* of a view: edits of the overlay's content when the view was made */
    uint64_t took_at;  /* of a view: such edits when the call committed the overlay */
    bool took;         /* the call committed the overlay: took_at is set */
    uint64_t edits;    /* number of edits of the list so far */
    bool quiet;        /* entries that were only read are not reported to the file system below */
} ah_fs_tree;

extern const ah_fs_store ah_fs_tree_store;

ah_fs_change *ah_fs_tree_find(const ah_fs_tree *t, ah_slice path); /* NULL: none */
void ah_fs_tree_clear(ah_fs_tree *t);
/* Appends the change as records have it (fs_record.c). below NULL: an entry in memory. */
void ah_fs_put_change(ah_fs *below, const ah_fs_change *c, ah_buf *out);
/* Reads an entry and, of a file, the SHA-256 of its content. A path through a file is missing.
 * content: gets the bytes of a file, as far as there is room; NULL: not wanted. (fs_record.c) */
ah_status ah_fs_look(ah_fs *fs, ah_slice path, ah_fs_info *info, char hash[AH_SHA256_HEX],
                     ah_buf *content, ah_err *err);

#endif
