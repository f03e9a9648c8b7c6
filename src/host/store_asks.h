/* The open asks of the conversations in a store, and messages to their holders, for any process
 * that has the store open. Streams are read and folded without being held. Owns nothing; results
 * are appended to the caller's buffer as JSON. Callers: its floor, lua. */
#ifndef AH_HOST_STORE_ASKS_H
#define AH_HOST_STORE_ASKS_H

#include "host/keeper.h"

/* Key of the response to the ask `id` in the inbox of its stream, before the id. */
#define AH_KEY_ASK "ask:"

/* Appends a JSON list of the open asks of conversations whose names begin with `prefix`, without
 * those whose response waits for the holder, the one changed last first: {conversation, ask, kind,
 * question, schema, default, tool, arguments, asked, timeout}; asked: seconds since the epoch,
 * timeout: seconds from then. A damaged conversation is left out with a warning in the log, unless
 * the prefix is its whole name. */
ah_status ah_open_store_asks(ah_host *h, ah_open_store *s, ah_slice prefix, ah_buf *out,
                             ah_err *err);
/* Appends a JSON list of the conversations whose names begin with `prefix`, the one changed last
 * first: {conversation, changed, messages, label}; changed: seconds since the epoch. */
ah_status ah_open_store_conversations(ah_host *h, ah_open_store *s, ah_slice prefix, ah_buf *out,
                                      ah_err *err);
/* Appends the record `opened` of a conversation. AH_USAGE: there is none of this name, and *err
 * has the nearest one. */
ah_status ah_open_store_opened(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                               ah_err *err);

/* Appends `true` if the conversation has an unfinished run, or if it has had no run since it was
 * forked or rewound and does not end with an answer; else `false`. AH_USAGE as above. */
ah_status ah_open_store_unfinished(ah_host *h, ah_open_store *s, ah_slice conversation, ah_buf *out,
                                   ah_err *err);

/* Sets *err to say that there is no stream of this name, and which name is near. Returns AH_USAGE,
 * or the status of a failed reading. */
ah_status ah_open_store_unknown(ah_open_store *s, ah_slice name, ah_err *err);
/* Reads the records from number `from` on, like ah_store_vt.read; if there are none, fails as
 * above. */
ah_status ah_open_store_read(ah_open_store *s, ah_slice stream, int64_t from, ah_store_record_fn fn,
                             void *ud, ah_err *err);

/* Posts a response (checked JSON) to an ask: kind "response", key "ask:<id>", body {ask, value,
 * by?}; value: in the form of the ask's schema. AH_TOOL_VALIDATION: it does not match the schema.
 * AH_CONFLICT: there is another response. AH_USAGE: the ask is closed in another way or unknown. */
ah_status ah_open_store_respond(ah_host *h, ah_open_store *s, ah_slice conversation, ah_slice ask,
                                ah_slice response, ah_slice by, ah_err *err);
/* Posts the message "cancel", body {}. AH_USAGE: the conversation is unknown, or has no unfinished
 * run. A second one before the first is taken changes nothing. */
ah_status ah_open_store_cancel(ah_host *h, ah_open_store *s, ah_slice conversation, ah_err *err);
/* Posts the message "send", body {text}. AH_USAGE: the conversation is unknown. */
ah_status ah_open_store_send(ah_host *h, ah_open_store *s, ah_slice conversation, ah_slice text,
                             ah_err *err);

#endif
