/* The texts of entries in records, for the index of a search: messages of the user, answers with
 * the arguments of their calls, results, notes. Not: system texts, states, what is kept, and
 * checkpoints, which repeat what records before them have; but that of record 2 is how a
 * conversation from a file or a fork begins, and has texts that no record has. Callers: its floor.
 */
#ifndef AH_IO_STORE_SAID_H
#define AH_IO_STORE_SAID_H

#include "base/buf.h"

enum { AH_STORE_SAID_MOST = 4096 /* bytes of a text, about; what follows is left out */ };

typedef struct ah_store_said {
    size_t entry;     /* index among the entries of the record */
    const char *role; /* "user", "assistant", "tool" or "note" */
    ah_slice text;    /* one line of UTF-8 without controls; valid during the call */
} ah_store_said;

/* Returns AH_OK to go on. */
typedef ah_status (*ah_store_said_fn)(void *ud, const ah_store_said *s, ah_err *err);

/* True if records of this kind and number may have entries. */
bool ah_store_may_say(ah_slice kind, int64_t number);

/* Calls `fn` for each text of a record. A record that is not sound has none. */
ah_status ah_store_say(ah_slice kind, ah_slice said, ah_store_said_fn fn, void *ud, ah_err *err);

#endif
