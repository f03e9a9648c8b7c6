/* Templates: text with ${placeholders}, compiled once, rendered with parameters. Immutable and
 * reference-counted.
 *
 * A placeholder is ${name}, with a name [A-Za-z_][A-Za-z0-9_]* of at most 64 bytes. $$ is a
 * dollar sign, and so is a dollar sign before any other character. The text is dedented first:
 * common white space at the start of all lines is removed, and so are empty lines before and
 * white space after the text. There are no conditions, loops or nesting. Callers: its floor. */
#ifndef AH_PROMPT_TEMPLATE_H
#define AH_PROMPT_TEMPLATE_H

#include "base/json.h"

enum {
    AH_MAX_TEMPLATE = 1 << 20, /* bytes of a template */
    AH_MAX_PROMPT = 16 << 20,  /* bytes of a rendered prompt */
    AH_MAX_PARAM_NAME = 64
};

typedef struct ah_template ah_template; /* immutable, reference-counted */

/* Fails with AH_PROMPT_VALIDATION if the text is not UTF-8, is too long, or has a "${" that
 * begins no placeholder, with line and column in the dedented text. */
ah_status ah_template_new(const ah_mem *mem, ah_slice text, ah_template **out, ah_err *err);
ah_template *ah_template_ref(ah_template *t); /* NULL returns NULL */
void ah_template_unref(ah_template *t);       /* NULL does nothing */

ah_slice ah_template_text(const ah_template *t); /* dedented; .p NULL for NULL */

/* Returns the first placeholder that is not a member of `properties` (checked object; .p NULL:
 * no members), or NULL; *at is its place in the text. */
const char *ah_template_unknown(const ah_template *t, ah_slice properties, size_t *at);

/* Appends the text with placeholders filled from `params` (checked object): strings as they are,
 * other values as JSON. Returns NULL, or the first placeholder without a value. */
const char *ah_template_render(const ah_template *t, ah_slice params, ah_buf *out);

#endif
