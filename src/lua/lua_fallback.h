/* The field `fallback` of ah.run and ah.agent: models that go on where one is overloaded or out. */
#ifndef AH_LUA_FALLBACK_H
#define AH_LUA_FALLBACK_H

#include "lua/lua_adapter.h"

enum { AH_MAX_FALLBACKS = 16 };

typedef struct ah_fallbacks {
    ah_adapter *item[AH_MAX_FALLBACKS]; /* referenced */
    size_t n;
    bool after_output;
} ah_fallbacks;

/* Reads the table at 1 into *f, which is in a userdata; `o` is what all requests share. Raises for
 * the script's mistakes; a model whose key is missing is passed over, with a word in the log. */
void ah_lua_read_fallbacks(lua_State *L, const ah_log *log, const ah_provider_options *o,
                           ah_fallbacks *f);
void ah_lua_fallbacks_copy(ah_fallbacks *f, const ah_fallbacks *from);
void ah_lua_fallbacks_clear(ah_fallbacks *f);

#endif
