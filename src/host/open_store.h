/* The struct of an open store, for its keepers and its host: the appends of keepers pass through
 * here. host/keeper.h has the contracts.
 * Callers: its floor. */
#ifndef AH_HOST_OPEN_STORE_H
#define AH_HOST_OPEN_STORE_H

#include "host/keeper.h"

struct ah_open_store {
    ah_host *host;
    size_t refs;
    size_t lent; /* of these, references of the C program */
    ah_store *engine;
    ah_text *path;            /* canonical; NULL: not in a file */
    ah_text *name;            /* NULL: none */
    ah_hidden_folder *hidden; /* NULL: not in a file */
    ah_store_sync sync;
    bool bytes;   /* recorders keep the bytes of requests */
    bool replays; /* runs only enter recorded handlers again */
    /* ah_fold.given of its streams; owned; NULL: none */
    ah_transcript *given;
    ah_open_store *next, **link; /* of the host */
    ah_keeper *keepers;
    ah_store_watcher *watchers;
    ah_store_watcher *at; /* the next one to be called */
    bool changed;         /* this process has written records or a label since the last look */
    ah_timer timer;       /* set while it has watchers */
    ah_job news;
    /* Set while the host's thread is in ah_store_vt.append, which then looks at `woken` itself. */
    atomic_bool appending;
    atomic_bool woken; /* poll has news */
};

/* Begins an append, whose `done` may be called before this returns. It counts in ah_host.appends
 * until ah_open_store_appended, which `done` calls. */
void ah_open_store_append(ah_open_store *s, ah_store_append *a);
void ah_open_store_appended(ah_open_store *s);
/* Waits until the engine has carried out an append, and calls `done` of those that are. */
void ah_open_store_wait(ah_open_store *s);

void ah_open_stores_poll(ah_host *h); /* calls `done` of the appends that are carried out */
/* Hides the folder of a file from tools, like that of a store, if the file exists; path NULL: none.
 * The host owns what is hidden. */
ah_status ah_open_stores_hide(ah_host *h, const ah_text *path, ah_err *err);
void ah_open_stores_free(ah_host *h); /* closes all that are open; keepers must be gone */

#endif
