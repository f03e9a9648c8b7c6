/* Images in Lua: ah.image, what a user says with images in it, and images that a handler
 * gives back. In Lua an image's data are its bytes; in JSON they are base64. */
#ifndef AH_LUA_IMAGE_H
#define AH_LUA_IMAGE_H

#include "lua/lua_state.h"
#include "model/transcript.h"

enum { AH_LUA_PARTS_MAX = 128 << 20 }; /* bytes of the JSON of a message, or of a result's images */

/* A text, or a list of parts as checked JSON; .p of the other one, or of both, is NULL. */
typedef struct ah_lua_content {
    ah_slice text, parts;
} ah_lua_content;

static inline bool ah_lua_has_content(const ah_lua_content *s)
{
    return s->text.p || s->parts.p;
}

/* Reads the text, or list of texts and images, at idx. Raises, with `what` in front, if it is not
 * valid; but returns an error for bytes that are not UTF-8, as people type and paste them. The
 * stack holds what is read: a list is replaced by its JSON. */
ah_status ah_lua_read_content(lua_State *L, int idx, const char *what, ah_lua_content *out,
                              ah_err *err);
/* The user's entry; NULL when out of memory. */
ah_text *ah_lua_content_entry(const ah_mem *mem, const ah_lua_content *s, int64_t time);

/* True if the value is an image, or a list that holds one. */
bool ah_lua_shows(lua_State *L, int idx);
/* Reads such a value: its texts, a line each, as a JSON string to `text` (nothing if it has none),
 * its images as a JSON list to `images`. AH_TOOL_VALIDATION for other items in it. */
ah_status ah_lua_read_shown(lua_State *L, int idx, ah_buf *text, ah_buf *images, ah_err *err);

/* Sets image (and what messages.lua needs of it) in the module's table on top. */
void ah_lua_open_image(lua_State *L);

#endif
