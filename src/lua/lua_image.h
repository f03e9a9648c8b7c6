/* Images in Lua: ah.image, images in messages of the user, and images that a handler returns. In
 * Lua the data of an image are its bytes; in JSON they are base64. Callers: its floor. */
#ifndef AH_LUA_IMAGE_H
#define AH_LUA_IMAGE_H

#include "lua/lua_state.h"
#include "model/transcript.h"

enum {
    AH_LUA_PARTS_MAX = 128 << 20
}; /* bytes of JSON of one message, or of the images of one result */

/* A text or a list of parts (checked JSON). The .p of the other one, or of both, is NULL. */
typedef struct ah_lua_content {
    ah_slice text, parts;
} ah_lua_content;

static inline bool ah_lua_has_content(const ah_lua_content *s)
{
    return s->text.p || s->parts.p;
}

/* Reads the text, or the list of texts and images, at idx. Raises, with `what` in front, for an
 * invalid value, but returns an error for an empty text and for bytes that are not UTF-8, since
 * people type and paste them. The stack holds the content: a list is replaced by its JSON. */
ah_status ah_lua_read_content(lua_State *L, int idx, const char *what, ah_lua_content *out,
                              ah_err *err);
/* Returns the user's entry; NULL when out of memory. */
ah_text *ah_lua_content_entry(const ah_mem *mem, const ah_lua_content *s, int64_t time);

/* True if the value is an image or a list with an image. */
bool ah_lua_shows(lua_State *L, int idx);
/* Reads such a value. Appends its texts, one per line, to `text` as a JSON string (nothing if there
 * are none), and its images to `images` as a JSON list. Returns AH_TOOL_VALIDATION for other
 * items. */
ah_status ah_lua_read_shown(lua_State *L, int idx, ah_buf *text, ah_buf *images, ah_err *err);

/* Sets ah.image, and the functions for messages.lua, in the module's table on top. */
void ah_lua_open_image(lua_State *L);

#endif
