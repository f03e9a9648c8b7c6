/* Foreign names: names that other libraries, and the documents on tools that this project follows,
 * have for our fields, members and functions. */
#ifndef AH_LUA_WORDS_H
#define AH_LUA_WORDS_H

#include "base/slice.h"

/* The same word, whatever its case and its `_` and `-`: max_tools, maxTools and MaxTools. */
bool ah_word_eq(ah_slice a, ah_slice b);
/* True if `found` is somebody's word for our `name`. */
bool ah_word_means(ah_slice found, ah_slice name);
/* The next of the names in `known` that `found` is somebody's word for, or NULL; *at is 0 at first.
 */
const char *ah_word_next(ah_slice found, const char *const *known, size_t *at);
/* The table that has the field which is found beside it, NULL: none; `field` is its name there. */
const char *ah_word_inside(const char *const *known, ah_slice found, const char **field);
/* The function of the module that `found` is somebody's word for, as it is written, or NULL. */
const char *ah_word_function(ah_slice found);

#endif
