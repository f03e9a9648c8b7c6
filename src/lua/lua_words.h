/* Foreign names: names that other libraries, and the documents on tools that this project follows,
 * use for our fields, members and functions. Static data; nothing here allocates or raises.
 * Callers: its floor. */
#ifndef AH_LUA_WORDS_H
#define AH_LUA_WORDS_H

#include "base/slice.h"

/* True if the words differ only in case, `_` and `-`: max_tools, maxTools and MaxTools. */
bool ah_word_eq(ah_slice a, ah_slice b);
/* True if `found` is a foreign name for our `name`. */
bool ah_word_means(ah_slice found, ah_slice name);
/* Returns the next name in `known` for which `found` is a foreign name, or NULL; *at is 0 at
 * first. */
const char *ah_word_next(ah_slice found, const char *const *known, size_t *at);
/* If the field `found` belongs in a table of `known`, returns the name of that table and sets
 * *field to the field's name there; else returns NULL. */
const char *ah_word_inside(const char *const *known, ah_slice found, const char **field);
/* Returns the function of the module for which `found` is a foreign name, as it is written, or
 * NULL. */
const char *ah_word_function(ah_slice found);

#endif
