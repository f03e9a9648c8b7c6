/* The field `fallback` of ah.run and ah.agent: models that continue a run when a model is
 * overloaded or unreachable. An ah_fallbacks owns a reference to each adapter.
 * Callers: its floor. */
#ifndef AH_LUA_FALLBACK_H
#define AH_LUA_FALLBACK_H

#include "lua/lua_adapter.h"

enum { AH_MAX_FALLBACKS = 16 };

typedef struct ah_fallbacks {
    ah_adapter *item[AH_MAX_FALLBACKS]; /* owned references */
    size_t n;
    bool after_output;
} ah_fallbacks;

/* Reads the table at 1 into *f, which is in a userdata; `o` holds the settings of all requests.
 * Raises for mistakes of the script. A model without its key is skipped, with a record in the
 * log. */
void ah_lua_read_fallbacks(lua_State *L, const ah_log *log, const ah_provider_options *o,
                           ah_fallbacks *f);
void ah_lua_fallbacks_copy(ah_fallbacks *f, const ah_fallbacks *from);
void ah_lua_fallbacks_clear(ah_fallbacks *f);

#endif
