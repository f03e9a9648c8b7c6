/* A store's engine as a program writes it, in memory, with faults on demand. Several hosts may use
 * one at a time each. */
#ifndef SPEC_EMBED_ENGINE_H
#define SPEC_EMBED_ENGINE_H

#include <pthread.h>

#include "cases.h"

enum { MOST_STREAMS = 8, MOST_ROWS = 400, MOST_MESSAGES = 8 };

typedef struct row {
    int64_t time;
    char *kind, *said, *kept;
    size_t kind_n, said_n, kept_n;
} row;

typedef struct message {
    char *key, *kind, *body;
    int64_t time;
    bool taken;
} message;

typedef struct stream {
    char *name, *label;
    row row[MOST_ROWS];
    size_t n;
    message message[MOST_MESSAGES];
    size_t n_messages;
    int64_t fence;
    bool held;
} stream;

/* The way in which an append is ended. */
typedef enum ending { AT_ONCE, BY_WAIT, BY_A_THREAD, TWICE, NEVER } ending;

typedef struct engine {
    stream stream[MOST_STREAMS];
    size_t n;
    ending ending;
    ah_status fail; /* of the next appends; AH_OK: they are carried out */
    int fail_after; /* number of appends that are carried out before */
    bool low_fence, out_of_order, no_kind, no_name, huge; /* it lies about these */
    ah_status fail_reads;
    const char *why;
    void (*at_append)(void *ud); /* NULL: none */
    void *ud;
    int appends, closes;

    ah_host *host;
    uint64_t id; /* the last append */
    ah_status result;
    pthread_t thread;
    bool running;
} engine;

/* Opens a store of the engine under this name. */
ah_store *open_engine(ah_host *host, engine *e, const char *name);
ah_store_engine engine_config(engine *e, const char *name);
void free_engine(engine *e);
/* Returns the number of records of this kind in a stream. */
size_t count_records(const engine *e, const char *stream_name, const char *kind);

#endif
