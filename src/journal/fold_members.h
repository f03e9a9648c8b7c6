/* The members of each kind of record, as docs/reference/journal.md has them: name, type, and
 * NEEDED or ABSENT, if it may be absent. And the readers of records: what they read has these
 * types. Callers: its floor, host. */
#ifndef AH_JOURNAL_FOLD_MEMBERS_H
#define AH_JOURNAL_FOLD_MEMBERS_H

#include "journal/fold.h"

/* X(K, name, type, need): K is passed through. */
#define AH_MEMBERS_OPENED(X, K)                                                                    \
    X(K, format, COUNT, NEEDED)                                                                    \
    X(K, written_by, STRING, NEEDED)                                                               \
    X(K, readable_from, COUNT, NEEDED)                                                             \
    X(K, stream, STRING, NEEDED)                                                                   \
    X(K, folder, STRING, ABSENT)                                                                   \
    X(K, script, STRING, ABSENT)                                                                   \
    X(K, agent, STRING, ABSENT)                                                                    \
    X(K, base, OBJECT, ABSENT)
#define AH_MEMBERS_ENTRIES(X, K) X(K, entries, LIST, NEEDED)
#define AH_MEMBERS_SESSION(X, K)                                                                   \
    X(K, slices, OBJECT, ABSENT)                                                                   \
    X(K, entities, LIST, ABSENT)                                                                   \
    X(K, by, STRING, ABSENT)                                                                       \
    X(K, at, COUNT, ABSENT)
#define AH_MEMBERS_RUN_STARTED(X, K)                                                               \
    X(K, run, COUNT, NEEDED)                                                                       \
    X(K, first, COUNT, NEEDED)                                                                     \
    X(K, deadline, COUNT, ABSENT)
#define AH_MEMBERS_REQUEST(X, K)                                                                   \
    X(K, model, STRING, NEEDED)                                                                    \
    X(K, adapter, STRING, NEEDED)                                                                  \
    X(K, attempt, COUNT, NEEDED)                                                                   \
    X(K, entries, COUNT, NEEDED)                                                                   \
    X(K, fallbacks, COUNT, ABSENT)                                                                 \
    X(K, revision, COUNT, ABSENT)                                                                  \
    X(K, wire, OBJECT, ABSENT)                                                                     \
    X(K, trying, OBJECT, ABSENT)                                                                   \
    X(K, head, OBJECT, ABSENT)                                                                     \
    X(K, base, COUNT, ABSENT)                                                                      \
    X(K, segments, LIST, ABSENT)
#define AH_MEMBERS_ANSWER(X, K)                                                                    \
    X(K, entry, OBJECT, NEEDED)                                                                    \
    X(K, iteration, COUNT, NEEDED)                                                                 \
    X(K, stop, STRING, NEEDED)                                                                     \
    X(K, usage, OBJECT, ABSENT)                                                                    \
    X(K, spent, OBJECT, ABSENT)
#define AH_MEMBERS_CALL_STARTED(X, K)                                                              \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, id, STRING, NEEDED)                                                                       \
    X(K, tool, STRING, NEEDED)                                                                     \
    X(K, key, STRING, NEEDED)                                                                      \
    X(K, definition, STRING, NEEDED)                                                               \
    X(K, on_lost, STRING, NEEDED)                                                                  \
    X(K, durable, BOOLEAN, ABSENT)
#define AH_MEMBERS_STEP_STARTED(X, K)                                                              \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, step, STRING, NEEDED)                                                                     \
    X(K, on_lost, STRING, NEEDED)                                                                  \
    X(K, what, STRING, ABSENT)                                                                     \
    X(K, secret, BOOLEAN, ABSENT)
#define AH_MEMBERS_STEP(X, K)                                                                      \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, step, STRING, NEEDED)                                                                     \
    X(K, success, BOOLEAN, NEEDED)                                                                 \
    X(K, code, STRING, ABSENT)                                                                     \
    X(K, message, STRING, ABSENT)                                                                  \
    X(K, hash, STRING, ABSENT)                                                                     \
    X(K, size, COUNT, ABSENT)
#define AH_MEMBERS_ASK(X, K)                                                                       \
    X(K, ask, STRING, NEEDED)                                                                      \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, kind, STRING, NEEDED)                                                                     \
    X(K, question, STRING, NEEDED)                                                                 \
    X(K, schema, ANY, ABSENT)                                                                      \
    X(K, default, ANY, ABSENT)                                                                     \
    X(K, until, COUNT, ABSENT)                                                                     \
    X(K, about, STRING, ABSENT)                                                                    \
    X(K, arguments, OBJECT, ABSENT)                                                                \
    X(K, definition, STRING, ABSENT)                                                               \
    X(K, result, STRING, ABSENT)                                                                   \
    X(K, step, STRING, ABSENT)
#define AH_MEMBERS_ASK_CLOSED(X, K)                                                                \
    X(K, ask, STRING, NEEDED)                                                                      \
    X(K, how, STRING, NEEDED)                                                                      \
    X(K, response, ANY, ABSENT)                                                                    \
    X(K, by, STRING, ABSENT)
#define AH_MEMBERS_CALL_FINISHED(X, K)                                                             \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, success, BOOLEAN, NEEDED)                                                                 \
    X(K, outcome, OBJECT, ABSENT)
#define AH_MEMBERS_SETTLED(X, K)                                                                   \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, result, OBJECT, NEEDED)                                                                   \
    X(K, staged, LIST, ABSENT)                                                                     \
    X(K, slices, OBJECT, ABSENT)                                                                   \
    X(K, entities, LIST, ABSENT)                                                                   \
    X(K, files, LIST, ABSENT)                                                                      \
    X(K, shared, BOOLEAN, ABSENT)
#define AH_MEMBERS_APPLIED(X, K) X(K, call, COUNT, NEEDED)
#define AH_MEMBERS_APPLY_FAILED(X, K)                                                              \
    X(K, call, COUNT, NEEDED)                                                                      \
    X(K, result, OBJECT, ABSENT)
#define AH_MEMBERS_TURN(X, K)                                                                      \
    X(K, staged, LIST, ABSENT)                                                                     \
    X(K, slices, OBJECT, ABSENT)                                                                   \
    X(K, entities, LIST, ABSENT)                                                                   \
    X(K, progress, OBJECT, NEEDED)
#define AH_MEMBERS_QUEUED(X, K) X(K, entry, OBJECT, NEEDED)
#define AH_MEMBERS_PARKED(X, K) X(K, asks, LIST, NEEDED)
#define AH_MEMBERS_LOST(X, K)                                                                      \
    X(K, what, STRING, NEEDED)                                                                     \
    X(K, call, COUNT, ABSENT)                                                                      \
    X(K, step, STRING, ABSENT)
#define AH_MEMBERS_CANCELLED(X, K) X(K, by, STRING, ABSENT)
#define AH_MEMBERS_RUN_ENDED(X, K)                                                                 \
    X(K, run, COUNT, NEEDED)                                                                       \
    X(K, first, COUNT, NEEDED)                                                                     \
    X(K, success, BOOLEAN, NEEDED)                                                                 \
    X(K, code, STRING, NEEDED)                                                                     \
    X(K, message, STRING, ABSENT)                                                                  \
    X(K, text, STRING, ABSENT)                                                                     \
    X(K, value, ANY, ABSENT)                                                                       \
    X(K, stop, STRING, NEEDED)                                                                     \
    X(K, progress, OBJECT, NEEDED)                                                                 \
    X(K, spent, OBJECT, ABSENT)
#define AH_MEMBERS_CHECKPOINT(X, K)                                                                \
    X(K, opened, OBJECT, NEEDED)                                                                   \
    X(K, transcript, OBJECT, NEEDED)                                                               \
    X(K, slices, OBJECT, NEEDED)                                                                   \
    X(K, entities, LIST, NEEDED)                                                                   \
    X(K, runs, COUNT, NEEDED)                                                                      \
    X(K, asks, COUNT, NEEDED)                                                                      \
    X(K, run, OBJECT, ABSENT)                                                                      \
    X(K, ended, OBJECT, ABSENT)                                                                    \
    X(K, spent, OBJECT, ABSENT)
#define AH_MEMBERS_REWOUND(X, K)   X(K, to, COUNT, NEEDED)
#define AH_MEMBERS_RESTORING(X, K) X(K, files, LIST, NEEDED)
#define AH_MEMBERS_RESTORED(X, K)
#define AH_MEMBERS_COMPACTED(X, K)
#define AH_MEMBERS_LEASE(X, K)                                                                     \
    X(K, holder, STRING, NEEDED)                                                                   \
    X(K, written_by, STRING, NEEDED)                                                               \
    X(K, readable_from, COUNT, NEEDED)
#define AH_MEMBERS_SPENT(X, K)                                                                     \
    X(K, used, OBJECT, NEEDED)                                                                     \
    X(K, reserved, OBJECT, ABSENT)                                                                 \
    X(K, estimated, BOOLEAN, ABSENT)                                                               \
    X(K, by, STRING, ABSENT)                                                                       \
    X(K, at, COUNT, ABSENT)
#define AH_MEMBERS_WRITTEN(X, K)                                                                   \
    X(K, paths, LIST, NEEDED)                                                                      \
    X(K, by, STRING, ABSENT)                                                                       \
    X(K, at, COUNT, ABSENT)

/* The place of each member in the values of its kind: AH_AT_TURN_staged and the like. */
#define AH_MEMBER_AT(K, name, type, need) AH_AT_##K##_##name,

#define AH_MEMBERS_AT(id, ...) enum { AH_MEMBERS_##id(AH_MEMBER_AT, id) AH_AT_##id##_END };
AH_RECORD_LIST(AH_MEMBERS_AT)
#undef AH_MEMBERS_AT
#undef AH_MEMBER_AT

enum { AH_MEMBERS_MAX = 12 }; /* of one kind */

/* COUNT: an integer from 0 to AH_COUNT_MAX. */
typedef enum ah_member_type {
    AH_MEMBER_ANY,
    AH_MEMBER_COUNT,
    AH_MEMBER_STRING,
    AH_MEMBER_BOOLEAN,
    AH_MEMBER_OBJECT,
    AH_MEMBER_LIST
} ah_member_type;
#define AH_COUNT_MAX (INT64_C(1) << 53)

typedef struct ah_member {
    const char *name; /* NULL: the end of a list of members */
    ah_member_type type;
    bool needed;
} ah_member;

const char *ah_member_type_name(ah_member_type type); /* as in the page */
/* Returns the members of a kind. */
const ah_member *ah_members_of(ah_record_kind kind);
/* Reads the members of checked JSON into `value`, which has room for all; a missing one gets .p
 * NULL. Fails with AH_STORE if a member is missing or has another type. */
ah_status ah_members_read(ah_slice json, const ah_member *members, ah_slice *value, ah_err *err);
/* Returns the value of a COUNT; 0 if it is missing. */
int64_t ah_member_count(ah_slice value);
/* Sets *out to the text of a STRING. */
ah_status ah_member_text(const ah_mem *mem, ah_slice value, ah_text **out, ah_err *err);
/* Fails with AH_STORE if the STRING `what` is not `text`, in the form of ah_json_put_string. */
ah_status ah_member_expect(const ah_mem *mem, ah_slice value, ah_slice text, const char *what,
                           ah_err *err);

/* Walks the items of a list, or the members of an object, of checked JSON. */
typedef struct ah_items {
    ah_json_reader r;
    ah_slice key, value; /* key: of an object's member, with quotes */
} ah_items;
ah_items ah_items_of(ah_slice json); /* of other values and .p NULL: no items */
bool ah_items_next(ah_items *it);

#endif
