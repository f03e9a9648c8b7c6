/* Conversations that go on from an earlier turn: forks, in the same store or in another one, and
 * rewinds, in their own stream. Streams are read without being held; a rewind holds its stream
 * while it writes. Owns nothing. Callers: its floor, lua. */
#ifndef AH_HOST_STORE_FORK_H
#define AH_HOST_STORE_FORK_H

#include "host/keeper.h"

typedef struct ah_fork {
    ah_open_store *from;
    ah_slice base; /* name of the conversation */
    int64_t turn;  /* the last one that the fork has; 0: none */
    ah_open_store *to;
    ah_slice id;             /* name of the fork */
    ah_slice script, folder; /* in place of those of the base; .p NULL: these */
} ah_fork;

/* Writes the records `opened` and `checkpoint` of the fork. AH_USAGE: there is no such base, or it
 * has fewer turns. AH_CONFLICT: there is a conversation with that id. */
ah_status ah_open_store_fork(ah_host *h, const ah_fork *f, ah_err *err);

typedef struct ah_rewind {
    ah_open_store *store;
    ah_slice conversation;
    int64_t turn; /* after which it goes on; 0: before the first run */
    bool dry;     /* nothing is changed */
    bool files;   /* files of the machine are put back, too */
    bool force;   /* also those that another program has changed */
    bool check;   /* with dry: fails as without it */
    bool take;    /* it is taken from its holder, which loses it */
} ah_rewind;

/* Appends what is dropped (journal/dropped.h), with the members `changes` and `stays` of
 * docs/reference/stores.md, writes the records `rewound` and `checkpoint`, and puts files back.
 * AH_USAGE: there is no such conversation, or it has fewer turns. AH_CONFLICT: another one holds
 * it, or files cannot be put back. */
ah_status ah_open_store_rewind(ah_host *h, const ah_rewind *r, ah_buf *out, ah_err *err);
/* Counts the turns of a conversation so far. AH_USAGE: there is no such conversation. */
ah_status ah_open_store_turns(ah_open_store *s, ah_slice conversation, int64_t *turns, ah_err *err);

#endif
