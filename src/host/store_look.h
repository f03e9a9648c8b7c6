/* A view into a store for people and programs: lists of conversations, and records of a stream.
 * Streams are read without being held, so another process may be at work on them. Owns nothing;
 * results are appended to the caller's buffer as JSON. Callers: its
 * floor, lua. */
#ifndef AH_HOST_STORE_LOOK_H
#define AH_HOST_STORE_LOOK_H

#include "host/keeper.h"

/* The conversations that are listed. A slice with .p NULL allows all. */
typedef struct ah_conversations_query {
    ah_slice prefix;        /* of their names */
    ah_slice folder, state; /* of their labels */
    bool waiting;           /* only those with an open ask */
    bool brief;             /* without title and script, for which records are read */
    size_t limit;
} ah_conversations_query;

/* Appends a JSON list, the conversation that was changed last first: {id, changed, number,
 * messages, state, folder, agent, waiting, title, script}; changed: ms since the epoch;
 * number: of the last record; waiting: ids of the asks for which it waits. A member that the file
 * does not have, or has in another form, is absent. */
ah_status ah_open_store_list(ah_host *h, ah_open_store *s, const ah_conversations_query *q,
                             ah_buf *out, ah_err *err);

/* Appends the members `title` and, if `script` is set, `script` of a conversation, with a comma
 * before each. Only lack of memory fails. */
ah_status ah_store_put_beginning(const ah_mem *mem, ah_store *e, ah_slice stream, bool script,
                                 ah_buf *out, ah_err *err);
/* True if the label of a stream, which may be unsound, names this working folder. */
bool ah_label_is_of(const ah_mem *mem, ah_slice label, ah_slice folder);

/* The records that are read. */
typedef struct ah_records_query {
    ah_slice stream;
    int64_t from, to;       /* numbers, both included */
    uint64_t kinds;         /* bits of ah_record_kind; 0: all, also unknown ones */
    const ah_slice *member; /* names of the members of `said` that are read, as in the record */
    size_t members;         /* 0: all */
    bool kept;              /* with what is kept */
} ah_records_query;

/* Appends a JSON list of records, at least one if there is one and some hundreds of KiB more:
 * {number, time, kind, said, kept}, the last member only if it is asked for, and `erased`, true, in
 * its place if it was erased. *next is the number from which to go on; 0: there are no more.
 * AH_USAGE: there is no such stream. AH_STORE: the first record of the range is damaged; a list
 * ends before a later one. */
ah_status ah_open_store_records(ah_host *h, ah_open_store *s, const ah_records_query *q,
                                ah_buf *out, int64_t *next, ah_err *err);

#endif
