/* Watches of files and folders: what has changed is told in batches, once nothing has happened for
 * a moment. By Linux's inotify; elsewhere there is none. It knows which files there are, so that it
 * tells what came of them rather than each step: a file that an editor saved by renaming another
 * one over it has changed, and the other one is not told of where it came and went meanwhile. */
#ifndef AH_IO_FILE_WATCH_H
#define AH_IO_FILE_WATCH_H

#include "io/loop.h"
#include "base/text.h"

typedef struct ah_file_watch ah_file_watch;

enum {
    AH_FILE_WATCH_MAX = 50000, /* files and folders */
    AH_FILE_WATCH_QUIET_MS = 50,
    AH_FILE_WATCH_LATEST_MS = 1000 /* a batch is told at the latest, however busy it is */
};

typedef enum ah_file_change_kind {
    AH_FILE_CREATED,
    AH_FILE_CHANGED,
    AH_FILE_REMOVED,
    AH_FILE_MOVED,
    AH_FILE_OVERFLOW /* more has happened than could be told: look anew at all */
} ah_file_change_kind;

typedef struct ah_file_change {
    ah_file_change_kind kind;
    ah_text *path, *from; /* begin with the path that was given; from: MOVED alone, else NULL */
} ah_file_change;

/* All pointers are borrowed during ah_file_watch_open. */
typedef struct ah_file_watch_config {
    const char *path; /* a file, or a folder: what is directly in it */
    bool recursive;   /* and what is in the folders in it; links are not followed */
    size_t max;       /* most files and folders */
    int64_t quiet_ms;
    /* From ah_loop_wait: a batch can be taken. Must only take note of it. */
    void (*news)(void *ud, ah_file_watch *w);
    void *ud;
} ah_file_watch_config;

/* From here on all changes are told, also those before the loop waits next. AH_USAGE: there is no
 * such file, there is more than `max`, the system allows no more, or has no inotify. */
ah_status ah_file_watch_open(const ah_mem *mem, ah_loop *loop, const ah_file_watch_config *cfg,
                             ah_file_watch **out, ah_err *err);
void ah_file_watch_free(ah_file_watch *w); /* NULL is fine */

bool ah_file_watch_ready(const ah_file_watch *w);
/* True if the watched file, or its folder, is there no more: nothing will come behind this
 * batch. */
bool ah_file_watch_ended(const ah_file_watch *w);
/* The batch: each path once; what was removed, then what has moved, then the others, in the order
 * in which they were first heard of. Valid until it is taken. AH_NOMEM: it can be asked for
 * again. */
ah_status ah_file_watch_batch(ah_file_watch *w, const ah_file_change **list, size_t *n,
                              ah_err *err);
void ah_file_watch_take(ah_file_watch *w);

#endif
