/* Makes excerpts of text from outside (servers, proxies, programs) for error messages and log
 * lines: always one short line. Of an HTML page it takes the title and the first visible text.
 * Callers: wire, lua. */
#ifndef AH_BASE_EXCERPT_H
#define AH_BASE_EXCERPT_H

#include "base/secret.h"

enum { AH_EXCERPT = 400, AH_EXCERPT_PAGE = 200 }; /* limits in bytes, of text and of a page */

/* True if the text begins as HTML and XML do, and no JSON does. */
bool ah_begins_page(ah_slice text);

/* Appends the excerpt: valid UTF-8, without controls and terminal sequences. Secrets are removed
 * before the text is cut. `most` limits text; AH_EXCERPT_PAGE limits a page. */
void ah_excerpt(ah_slice text, const ah_secrets *secrets, size_t most, ah_buf *out);

#endif
