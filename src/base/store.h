/* Stores: what keeps streams of records. A stream is what has a log: a conversation, a named
 * session, a budget, a memory filesystem. Its records are numbered from 1; none is ever changed.
 * The engines are in io (memory, SQLite); host/keeper.h is the only user of appends. A store that
 * was opened is one handle of one host; all but the wake-up happens on the host's thread.
 * Callers: run, journal, io, host. */
#ifndef AH_BASE_STORE_H
#define AH_BASE_STORE_H

#include <stdint.h>

#include "base/err.h"
#include "base/slice.h"

typedef struct ah_store ah_store;

enum {
    AH_STORE_MAX_STREAM = 128,       /* bytes of the name of a stream */
    AH_STORE_MAX_RECORD = 256 << 20, /* bytes of `said` and of `kept` */
    AH_STORE_HOLDER = 128            /* size of the text that names a holder */
};

/* A record as it is written and read. All slices are borrowed. */
typedef struct ah_store_record {
    int64_t number; /* in its stream, from 1; given by the store */
    int64_t time;   /* ms since the epoch */
    ah_slice kind;  /* a name of model/record.h */
    ah_slice said;  /* JSON object: what export, search and `show` may print */
    ah_slice kept;  /* JSON: values of steps, contents of files; .p NULL: none */
    /* SHA-256 of what was kept and is erased (io/store_hash.h); .p NULL: it is not erased. */
    ah_slice kept_hash;
} ah_store_record;

/* The records for one stream. `after`: the number of the last record of the stream, 0: none.
 * `fence`: of ah_store_vt.hold. */
typedef struct ah_store_batch {
    ah_slice stream;
    int64_t after, fence;
    const ah_store_record *record;
    size_t n;
    /* Messages of the stream's inbox that these records take: they are removed with the append. */
    const ah_slice *taken;
    size_t n_taken;
} ah_store_batch;

/* One append of batches for several streams: all of it is written, or nothing. In the memory of
 * the caller, where it stays with all it refers to until `done` was called. */
typedef struct ah_store_append ah_store_append;
struct ah_store_append {
    const ah_store_batch *batch;
    size_t n;
    /* It announces an effect outside: forced to the disk before `done`, unless the store is
     * AH_SYNC_PROCESS. */
    bool sync;
    /* No other append is about to come: an engine with a thread may carry it out at once. */
    bool alone;
    /* Called once from ah_store_vt.poll. err->status: AH_OK; AH_CONFLICT: a stream has records
     * after `after`; AH_STORE: the fence is old, the disk is full, an error of input or output. */
    void (*done)(ah_store_append *a, const ah_err *err);
    void *engine, *outcome; /* used by the engine */
    ah_store_append *next;  /* used by the engine */
};

/* A message from outside for the holder of a stream: a response, a cancellation, a text. */
typedef struct ah_store_message {
    ah_slice key;  /* at most one message of a key is in the inbox; the first one stays */
    ah_slice kind; /* "response", "cancel", "send" */
    ah_slice body; /* JSON object */
    int64_t time;  /* ms since the epoch */
} ah_store_message;

/* A stream as ah_store_vt.list shows it. */
typedef struct ah_store_stream {
    ah_slice name, label; /* label: JSON object of ah_store_vt.label; .p NULL: none */
    int64_t last;         /* number of the last record */
    int64_t time;         /* of the last record, ms since the epoch */
    size_t messages;      /* in its inbox */
} ah_store_stream;

/* The size of a stream, or of all of the store. */
typedef struct ah_store_size {
    int64_t records;
    int64_t bytes;  /* of their texts */
    int64_t erased; /* records of which something is erased */
    int64_t oldest; /* time of the first record, ms since the epoch; 0: none */
    /* of all of the store */
    int64_t file; /* bytes of its files */
    int64_t blobs, blob_bytes;
} ah_store_size;

typedef enum ah_store_fault {
    AH_STORE_SOUND,
    AH_STORE_CHANGED, /* a record is not what was written */
    AH_STORE_MISSING  /* a record is not there, and a later one is */
} ah_store_fault;

enum { AH_STORE_HASH = 32 }; /* bytes of the hash of a record */

/* The chain of hashes of a stream. */
typedef struct ah_store_audit {
    ah_slice expected; /* a hash to look for; .p NULL: none */
    /* results */
    int64_t last;                      /* number of the last record */
    unsigned char head[AH_STORE_HASH]; /* its hash */
    int64_t erased;                    /* records of which something is erased */
    int64_t found;                     /* number of the record with the expected hash; 0: none */
    ah_store_fault fault;              /* the first one */
    int64_t at;                        /* number of its record */
    const char *what;                  /* the fault in words, with "it" for the record */
} ah_store_audit;

/* A text in which all words of a search are. */
typedef struct ah_store_hit {
    ah_slice stream, label; /* label: as in ah_store_stream */
    int64_t number, time;   /* of the record; ms since the epoch */
    ah_slice role;          /* of the text: "user", "assistant", "tool" or "note" */
    /* The text around the words, one line without controls but AH_STORE_FROM and AH_STORE_TO, which
     * stand around each word. */
    ah_slice snippet;
} ah_store_hit;

enum { AH_STORE_FROM = 2, AH_STORE_TO = 3 };

typedef struct ah_store_search {
    ah_slice words; /* UTF-8; io/store_query.h has their form */
    bool best;      /* the best ones of the newest hits first, not the newest ones */
    /* False: hits of this stream are left out. NULL: none are. It must not use the store. */
    bool (*wants)(void *ud, ah_slice stream, ah_slice label);
    ah_status (*found)(void *ud, const ah_store_hit *hit, ah_err *err); /* as those for readers */
    void *ud;
} ah_store_search;

/* The calls for readers return AH_OK to go on, or another status, which ends the reading and
 * becomes its result. Slices are valid during the call. */
typedef ah_status (*ah_store_record_fn)(void *ud, const ah_store_record *r, ah_err *err);
typedef ah_status (*ah_store_stream_fn)(void *ud, const ah_store_stream *s, ah_err *err);
typedef ah_status (*ah_store_message_fn)(void *ud, const ah_store_message *m, ah_err *err);

/* An engine. Each function but append, poll, prepare and leave may block for the time of a disk
 * access. All that return ah_status fail with AH_STORE and a text that says what to do, unless they
 * say more. */
typedef struct ah_store_vt {
    /* Begins the append. Appends are carried out in the order of this call. Never fails here, and
     * waits neither for another process nor for the disk. */
    void (*append)(ah_store *s, ah_store_append *a);
    /* Calls `done` of the appends that are carried out. Called after each wake-up. */
    void (*poll)(ah_store *s);
    /* Waits until an append is carried out, or no append is outstanding; poll then has news. */
    void (*wait)(ah_store *s);
    /* Makes this handle the holder of the stream, which need not exist and exists then; *fence
     * rises with each holder. AH_CONFLICT: another one holds it, or this one does, and *err names
     * it (pid, machine); with `take` it loses the stream: its next append fails with AH_STORE. */
    ah_status (*hold)(ah_store *s, ah_slice stream, bool take, int64_t *fence, ah_err *err);
    void (*release)(ah_store *s, ah_slice stream);
    /* Reads the records from number `from` on, in order. A stream that does not exist has none. */
    ah_status (*read)(ah_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn, void *ud,
                      ah_err *err);
    /* Returns the number of the last record of this kind; 0: none. */
    ah_status (*find_last)(ah_store *s, ah_slice stream, ah_slice kind, int64_t *number,
                           ah_err *err);
    /* Lists streams with records whose name begins with `prefix`, the one changed last first.
     * labelled: only those with a label. */
    ah_status (*list)(ah_store *s, ah_slice prefix, bool labelled, ah_store_stream_fn fn, void *ud,
                      ah_err *err);
    /* Sets the label of a held stream, an index for `list`: { waiting, agent, folder ... }; .p
     * NULL removes it. It is written at once, before outstanding appends. AH_STORE: this handle
     * does not hold the stream. */
    ah_status (*label)(ah_store *s, ah_slice stream, ah_slice label, ah_err *err);
    /* Puts a message into the inbox of a stream; needs no holder. AH_CONFLICT: there is or was one
     * with this key. AH_USAGE: there is no such stream. */
    ah_status (*post)(ah_store *s, ah_slice stream, const ah_store_message *m, ah_err *err);
    /* Reads the inbox of a stream in the order of posting. */
    ah_status (*inbox)(ah_store *s, ah_slice stream, ah_store_message_fn fn, void *ud, ah_err *err);
    /* True if any inbox may have a new message since the last call. */
    bool (*news)(ah_store *s);
    /* The functions for keeping may be NULL: the engine does not do it. An engine with `remove`
     * also takes records with a `kept_hash`. */
    /* Removes a stream with all that only it has. It may be left in free places of the file until
     * `purge`. AH_CONFLICT: it is held, and *err names the holder. AH_USAGE: there is none. */
    ah_status (*remove)(ah_store *s, ah_slice stream, ah_err *err);
    /* Writes the files of the store anew, without what was removed or erased. May take seconds. */
    ah_status (*purge)(ah_store *s, ah_err *err);
    /* Erases what records of a stream with numbers below `below` and times before `older` keep.
     * Sets *n to their number. The stream may be held. */
    ah_status (*erase)(ah_store *s, ah_slice stream, int64_t below, int64_t older, int64_t *n,
                       ah_err *err);
    /* Measures a stream; .p NULL: all of the store. */
    ah_status (*measure)(ah_store *s, ah_slice stream, ah_store_size *out, ah_err *err);
    /* Compares the records of a stream with their hashes. A fault is a result, and no error. */
    ah_status (*verify)(ah_store *s, ah_slice stream, ah_store_audit *audit, ah_err *err);
    /* Sets *number and `hash` to those of the last record, as they are stored. *number is 0 if the
     * stream has none. */
    ah_status (*head)(ah_store *s, ah_slice stream, int64_t *number,
                      unsigned char hash[AH_STORE_HASH], ah_err *err);
    /* Waits for outstanding appends, calls `done` of each, releases all streams, frees s. */
    void (*close)(ah_store *s);
    /* Searches what was said in conversations, with all that was appended before, newest hits
     * first. `found` may read the store, but not search it. AH_USAGE: there is no word to search
     * for, or the engine cannot search. NULL: it cannot. */
    ah_status (*search)(ah_store *s, const ah_store_search *q, ah_err *err);
    /* Begins to prepare a search, which may take minutes, and returns at once: when `done` of `a`,
     * which has no batches, is called, `search` takes little time. Before `close` it is done or
     * left. NULL: every search takes little time. */
    void (*prepare)(ah_store *s, ah_store_append *a);
    /* Ends the wait for what `prepare` has begun: `done` is not called any more. */
    void (*leave)(ah_store *s, ah_store_append *a);
} ah_store_vt;

/* First member of an engine's struct. */
struct ah_store {
    const ah_store_vt *vt;
    /* Called on any thread when poll has news. Must not call the store. */
    void (*wake)(void *ud);
    void *wake_ud;
};

typedef enum ah_store_sync {
    AH_SYNC_PROCESS, /* records survive the process, not a loss of power */
    AH_SYNC_EFFECTS, /* appends before an effect outside are forced to the disk */
    AH_SYNC_FULL     /* all appends are */
} ah_store_sync;

#endif
