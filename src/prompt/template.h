/* Templates: text with ${placeholders}, compiled once, rendered from parameters.
 *
 * A placeholder is ${name}, the name [A-Za-z_][A-Za-z0-9_]* of at most 64 bytes; $$ is a
 * dollar sign, and so is a dollar sign before anything but these two. The text is
 * dedented first: the white space that all its lines begin with goes, and so do empty
 * lines before and white space behind the whole. There are no conditions, no loops and no
 * nesting. */
#ifndef AH_PROMPT_TEMPLATE_H
#define AH_PROMPT_TEMPLATE_H

#include "base/json.h"

enum {
    AH_MAX_TEMPLATE = 1 << 20, /* bytes of one template */
    AH_MAX_PROMPT = 16 << 20,  /* bytes of one rendered prompt */
    AH_MAX_PARAM_NAME = 64
};

typedef struct ah_template ah_template; /* immutable, reference-counted */

/* AH_PROMPT_VALIDATION where the text is no UTF-8, is too long, or holds a "${" that
 * begins no placeholder: with line and column in the dedented text. */
ah_status ah_template_new(const ah_mem *mem, ah_slice text, ah_template **out, ah_err *err);
ah_template *ah_template_ref(ah_template *t); /* NULL gives NULL */
void ah_template_unref(ah_template *t);       /* NULL is fine */

ah_slice ah_template_text(const ah_template *t); /* dedented; .p NULL for NULL */

/* The first placeholder that is no member of `properties` (checked object, or .p NULL:
 * without members), or NULL; *at is its place in the text. */
const char *ah_template_unknown(const ah_template *t, ah_slice properties, size_t *at);

/* Appends the text with its placeholders filled in from `params` (checked object): strings
 * as they are, all else as its JSON. NULL, or the first placeholder without a value. */
const char *ah_template_render(const ah_template *t, ah_slice params, ah_buf *out);

#endif
