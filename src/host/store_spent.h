/* The use of the conversations of a store: money, tokens and answers. The label of a stream has the
 * sum up to one of its records, so only the records behind it are read. Streams are read without
 * being held. It owns nothing. Callers: lua. */
#ifndef AH_HOST_STORE_SPENT_H
#define AH_HOST_STORE_SPENT_H

#include "host/keeper.h"
#include "run/spent.h"

/* Appends the members `spent` and `spent_to` to the open object of a label: the use up to the
 * record of this number. */
void ah_label_put_spent(const ah_spent *s, int64_t number, ah_buf *label);
/* Sets *out to the use of a stream. Fails as reading does. */
ah_status ah_store_spent(const ah_mem *mem, ah_store *e, ah_slice stream, ah_spent *out,
                         ah_err *err);
/* Appends a JSON list of all conversations: {id, folder, spent, lately, damaged}; lately: the use
 * since then (ms since the epoch). damaged: true, if not all of it could be read; else absent. */
ah_status ah_open_store_spent(ah_host *h, ah_open_store *s, int64_t since, ah_buf *out,
                              ah_err *err);

#endif
