/* Stores that a host has opened, and keepers: each holds one stream of a store, appends what a
 * recorder gives it, and reads its inbox. Records are collected while jobs run and appended
 * together; a run that waits for a record goes on when the append is done. The host owns its open
 * stores, which are shared by path and counted; a keeper references its store.
 * Callers: its floor, lua. */
#ifndef AH_HOST_KEEPER_H
#define AH_HOST_KEEPER_H

#include "base/store.h"
#include "host/host.h"
#include "journal/fold.h"
#include "run/recorder.h"

typedef struct ah_open_store ah_open_store;
typedef struct ah_keeper ah_keeper;

typedef struct ah_store_options {
    ah_slice path; /* of SQLite's file; .p NULL: not in a file */
    ah_slice name; /* of a store without a path; .p NULL: none */
    ah_store_sync sync;
    bool bytes;   /* recorders keep the bytes of requests */
    bool replays; /* in memory: runs only enter recorded handlers again (ah_recorder.replays) */
    bool force;   /* also on a filesystem that is not fit for it */
    bool create;  /* else a missing file, or an unknown name, is an error */
} ah_store_options;

/* Opens a store, or references the one of that path or name that the host has open; a store in
 * memory without a name is always a new one. The options of the first opening count. */
ah_status ah_open_store_new(ah_host *h, const ah_store_options *options, ah_open_store **out,
                            ah_err *err);
/* Like ah_open_store_new, with an engine that the caller has made. It is taken, also on failure. */
ah_status ah_open_store_with(ah_host *h, ah_store *engine, ah_store_sync sync, ah_open_store **out,
                             ah_err *err);
/* Gives an open store a name, by which ah_open_store_new finds it. AH_USAGE: it is not 1 to 128
 * bytes of UTF-8, or another open store has it. */
ah_status ah_open_store_set_name(ah_open_store *s, ah_slice name, ah_err *err);
ah_open_store *ah_open_store_ref(ah_open_store *s);
void ah_open_store_unref(ah_open_store *s); /* the last one closes it; NULL is allowed */
/* Counts a reference as one of the C program's, and ends one or all of them. end: false if the
 * program has none. */
void ah_open_store_lend(ah_open_store *s);
bool ah_open_store_end(ah_open_store *s);
void ah_open_stores_leave(ah_host *h);
ah_store *ah_open_store_engine(ah_open_store *s);
ah_slice ah_open_store_path(const ah_open_store *s); /* .p NULL: not in a file */
ah_slice ah_open_store_name(const ah_open_store *s); /* .p NULL: none */
ah_host *ah_open_store_host(const ah_open_store *s);
bool ah_open_store_keeps_bytes(const ah_open_store *s); /* ah_store_options.bytes */
bool ah_open_store_replays(const ah_open_store *s);     /* ah_store_options.replays */
/* Puts a message into the inbox of a stream (ah_store_vt.post); watchers see it soon. */
ah_status ah_open_store_post(ah_open_store *s, ah_slice stream, const ah_store_message *m,
                             ah_err *err);
/* Calls `fn` when a message may be new in an inbox of the store, on the host's thread. Several
 * watchers may be set; each is in its owner's memory. All zero, with `fn` set, is one that is not
 * set; unwatch then does nothing. While one is set, the store is asked for news every 250 ms, which
 * by itself does not keep a script from its end. */
typedef struct ah_store_watcher {
    void (*fn)(struct ah_store_watcher *w);
    bool records; /* call it also for records and labels of this process */
    struct ah_store_watcher *next, **link;
    ah_open_store *store; /* NULL: not set */
} ah_store_watcher;
void ah_open_store_watch(ah_open_store *s, ah_store_watcher *w);
void ah_open_store_unwatch(ah_store_watcher *w);

/* A stream that is to be opened. */
typedef struct ah_stream_name {
    ah_slice name;
    ah_stream_kind kind;
    ah_slice opened; /* more members of `opened`: "folder":"/x","agent":"y"; .p NULL: none */
} ah_stream_name;

/* Holds the stream and folds its records into *fold, which is initialized here and the caller's on
 * success. A stream that is new gets its record `opened`, which the fold has, too. AH_CONFLICT:
 * another process, or another agent of this one, holds it; with `take` that one loses it. */
ah_status ah_keeper_open(ah_open_store *s, const ah_stream_name *stream, bool take, ah_fold *fold,
                         ah_keeper **out, ah_err *err);
/* The records that both have collected go into one append, which is written as a whole, or not at
 * all; a failure of one is that of the other. Flushes of each cover the records of the other. No
 * effect if they are of two stores, or `with` has none. */
void ah_keeper_bind(ah_keeper *k, ah_keeper *with);
/* Appends what is outstanding, and folds the whole stream anew into *fold, which is initialized
 * here and the caller's on success. */
ah_status ah_keeper_read(ah_keeper *k, ah_fold *fold, ah_err *err);
/* Appends what is outstanding, and waits for it; then releases the stream. Flushes that are not
 * forgotten are forgotten. NULL is allowed. */
void ah_keeper_close(ah_keeper *k);
/* The sink for a recorder. Records are put together in one append until a flush waits or the
 * host's other jobs are done. `effect` of a flush counts for the record that was put before it. A
 * conversation has one run at a time: a flush that finds no memory fails by other flushes of the
 * same run. */
ah_record_sink ah_keeper_sink(ah_keeper *k);
/* Appends what is outstanding, and waits for it. Fails with the error that broke the keeper. */
ah_status ah_keeper_settle(ah_keeper *k, ah_err *err);
/* AH_OK, or the error after which nothing more is recorded: the conversation must be opened
 * anew. */
ah_status ah_keeper_state(const ah_keeper *k, ah_err *err);
/* The next append also removes this message from the inbox: put the record that it leads to right
 * after this. */
ah_status ah_keeper_take(ah_keeper *k, ah_slice key, ah_err *err);
/* True if the message is taken, and its append is still to come. */
bool ah_keeper_has_taken(const ah_keeper *k, ah_slice key);
/* Sets the label of the stream (ah_store_vt.label). */
ah_status ah_keeper_label(ah_keeper *k, ah_slice label, ah_err *err);
ah_slice ah_keeper_stream(const ah_keeper *k);
/* Returns the number of the last record that is appended. */
int64_t ah_keeper_last(const ah_keeper *k);
int64_t ah_keeper_number(const ah_keeper *k); /* of the last record that was put */
ah_open_store *ah_keeper_store(const ah_keeper *k);
/* True if ah_recorder_checkpoint is due: since the last checkpoint there are 64 turns (records, if
 * it is no conversation) or 1 MiB, and four times its own size, so that checkpoints are a quarter
 * of the stream at most. */
bool ah_keeper_wants_checkpoint(const ah_keeper *k);

#endif
