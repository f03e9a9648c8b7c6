/* Excerpts of text from outside (servers, proxies, programs) for error messages and log lines: one
 * short line, whatever came. A page of HTML is its title and what a reader sees first of it. */
#ifndef AH_BASE_EXCERPT_H
#define AH_BASE_EXCERPT_H

#include "base/secret.h"

enum { AH_EXCERPT = 400, AH_EXCERPT_PAGE = 200 }; /* bytes at most, of text and of a page */

/* True if it begins as HTML and XML do, and no JSON does. */
bool ah_begins_page(ah_slice text);

/* Appends it: valid UTF-8, without controls and sequences for a terminal, the secrets taken out
 * before anything is cut. `most` is for text; a page has AH_EXCERPT_PAGE at most. */
void ah_excerpt(ah_slice text, const ah_secrets *secrets, size_t most, ah_buf *out);

#endif
