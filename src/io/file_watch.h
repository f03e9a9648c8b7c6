/* Watches files and folders, and reports changes in batches once nothing has happened for a moment.
 * Uses Linux's inotify; other systems have no watch. It keeps a list of the existing files, and so
 * reports results rather than steps: a file that an editor saves by renaming another over it has
 * changed, and the other one is not reported if it appeared and vanished in between. A watch owns
 * its descriptors, its list and its batch. Callers: lua. */
#ifndef AH_IO_FILE_WATCH_H
#define AH_IO_FILE_WATCH_H

#include "io/loop.h"
#include "base/text.h"

typedef struct ah_file_watch ah_file_watch;

enum {
    AH_FILE_WATCH_MAX = 50000, /* files and folders */
    AH_FILE_WATCH_QUIET_MS = 50,
    /* A batch is reported after this time even if changes continue. */
    AH_FILE_WATCH_LATEST_MS = 1000
};

typedef enum ah_file_change_kind {
    AH_FILE_CREATED,
    AH_FILE_CHANGED,
    AH_FILE_REMOVED,
    AH_FILE_MOVED,
    AH_FILE_OVERFLOW /* too many changes to report: read everything again */
} ah_file_change_kind;

typedef struct ah_file_change {
    ah_file_change_kind kind;
    ah_text *path, *from; /* begin with the path given at open; from: for MOVED, else NULL */
} ah_file_change;

/* The pointers are borrowed during ah_file_watch_open only. */
typedef struct ah_file_watch_config {
    const char *path; /* a file, or a folder, for the entries directly in it */
    bool recursive;   /* also entries in folders below; links are not followed */
    size_t max;       /* limit of files and folders */
    int64_t quiet_ms;
    /* Called from ah_loop_wait when a batch is ready. Must only take note of it. */
    void (*news)(void *ud, ah_file_watch *w);
    void *ud;
} ah_file_watch_config;

/* Reports all changes from now on, also those before the loop's next wait. Returns AH_USAGE if the
 * path does not exist, has more than `max` entries, or the system allows no more watches or has no
 * inotify. */
ah_status ah_file_watch_open(const ah_mem *mem, ah_loop *loop, const ah_file_watch_config *cfg,
                             ah_file_watch **out, ah_err *err);
void ah_file_watch_free(ah_file_watch *w); /* NULL is allowed */

/* True if a batch can be taken. */
bool ah_file_watch_ready(const ah_file_watch *w);
/* True if the watched file, or its folder, is gone: no batch follows this one. */
bool ah_file_watch_ended(const ah_file_watch *w);
/* Sets *list to the batch, in which each path occurs once: first removals, then moves, then the
 * others in the order of their first event. Valid until it is taken. After AH_NOMEM it can be asked
 * for again. */
ah_status ah_file_watch_batch(ah_file_watch *w, const ah_file_change **list, size_t *n,
                              ah_err *err);
/* Frees the batch; changes are collected for the next one. */
void ah_file_watch_take(ah_file_watch *w);

#endif
