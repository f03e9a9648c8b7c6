/* Replay of a stored conversation (journal/rebuild.h), for any process that has the store open. The
 * stream is read without being held. Owns nothing. Callers: lua. */
#ifndef AH_HOST_STORE_REPLAY_H
#define AH_HOST_STORE_REPLAY_H

#include "host/keeper.h"

/* Appends the outcome as a JSON object. AH_USAGE: there is no such conversation. AH_STORE: the
 * stream is damaged. */
ah_status ah_open_store_replay(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err);

#endif
