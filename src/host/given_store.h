/* Engines of stores that the program gives (ah_store_engine): the ah_store_vt over them. An engine
 * may be wrong in any way but one: it must not use memory that is no longer its own. What it
 * returns is checked. The engine's functions are the program's; the store owns its appends.
 * Callers: lua. */
#ifndef AH_HOST_GIVEN_STORE_H
#define AH_HOST_GIVEN_STORE_H

#include "base/store.h"
#include "host/host.h"

/* Makes a store of a complete engine, which is copied; its name and its size are not used. On
 * failure the engine is not closed. */
ah_status ah_given_store_new(ah_host *h, const ah_store_engine *engine, ah_store **out,
                             ah_err *err);
/* Sets the function that is called when the store is closed; NULL: none. */
void ah_given_store_own(ah_store *s, void (*close)(void *ud));
/* Ends an append, on any thread. AH_USAGE: it has ended before or is unknown. */
ah_status ah_given_store_appended(ah_host *h, uint64_t append, ah_status st, const char *message);

#endif
