/* Replay of a stored conversation, for any process that has the store open: of its requests
 * (journal/rebuild.h), and of its handlers, turn by turn (journal/turn_copy.h). The stream is read
 * without being held. Callers: lua. */
#ifndef AH_HOST_STORE_REPLAY_H
#define AH_HOST_STORE_REPLAY_H

#include "host/keeper.h"
#include "journal/turn_copy.h"

/* Appends the outcome as a JSON object. AH_USAGE: there is no such conversation. AH_STORE: the
 * stream is damaged. */
ah_status ah_open_store_replay(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err);

/* The turns of a conversation whose handlers are to run again. It owns a reference of the store. */
typedef struct ah_replay_turns {
    ah_open_store *store; /* NULL: none */
    ah_text *conversation;
    ah_turn_copy copy;
    int64_t next; /* number of the record with which reading goes on */
} ah_replay_turns;

/* AH_USAGE: there is no such conversation. */
ah_status ah_replay_turns_init(ah_replay_turns *t, ah_open_store *s, ah_slice conversation,
                               ah_err *err);
void ah_replay_turns_clear(ah_replay_turns *t); /* all zero is allowed */
/* Makes a store in memory with the conversation as it was when the handlers of the next turn were
 * at work; its runs replay (ah_store_options.replays). *out: NULL: there is no further turn.
 * Appends the calls to `calls` (ah_turn_copy_print). */
ah_status ah_replay_turns_next(ah_replay_turns *t, ah_open_store **out, ah_buf *calls, ah_err *err);

#endif
