/* The list of changes that memory and overlays are: fs_tree.c keeps it, fs_overlay.c hands
 * it down. For nobody else. */
#ifndef AH_STATE_FS_TREE_H
#define AH_STATE_FS_TREE_H

#include "state/fs_store.h"

typedef struct ah_fs_tree {
    ah_fs fs;
    ah_fs_change **node; /* sorted by path */
    size_t n, cap;
    size_t promised;   /* places that plans not yet committed may take */
    size_t bytes;      /* of their contents */
    bool prepared;     /* an overlay's: */
    void *ready;       /* the ticket of the file system below; NULL: nothing to do there */
    uint64_t ready_at; /* its commits, then */
    ah_fs *into;       /* a view's: the overlay that gets its changes; NULL: the one below */
    uint64_t made_at;  /* a view's: edits of what is in the overlay, when it was made, ... */
    uint64_t took_at;  /* ... and when that was committed in the call, ... */
    bool took;         /* ... if it was */
    uint64_t edits;    /* of what is listed, so far */
    bool quiet;        /* what was only looked at is not told to the file system below */
} ah_fs_tree;

extern const ah_fs_store ah_fs_tree_store;

ah_fs_change *ah_fs_tree_find(const ah_fs_tree *t, ah_slice path); /* NULL: none */
void ah_fs_tree_clear(ah_fs_tree *t);

#endif
