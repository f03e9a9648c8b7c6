/* ah.image(path | { data, mime } | { url, mime }) returns a part for messages and results:
 *  { type = "image", mime, data } or { type = "image", url, mime }
 * Both are plain tables, recognised by their metatable. Files are read here, completely and up to a
 * limit; URLs are not fetched. */
#include "lua/lua_image.h"

#include "base/base64.h"
#include "io/file.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_modules.h"
#include "lua/lua_value.h"
#include "model/image.h"
#include "lua/lua_options.h"

static const char IMAGE[] = "agenthost.image";

enum { READ_AHEAD = 128 << 10 }; /* bytes that ah_file_read may read beyond an image that fits */

/* -- making ----------------------------------------------------------------------------- */

static bool is_image(lua_State *L, int idx)
{
    bool is;

    if (!lua_istable(L, idx) || !lua_getmetatable(L, idx))
        return false;
    luaL_getmetatable(L, IMAGE);
    is = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return is;
}

static void push_image(lua_State *L)
{
    lua_createtable(L, 0, 3);
    lua_pushliteral(L, "image");
    lua_setfield(L, -2, "type");
    luaL_setmetatable(L, IMAGE);
}

static void set_text(lua_State *L, const char *name, ah_slice s)
{
    lua_pushlstring(L, s.p, s.n);
    lua_setfield(L, -2, name);
}

/* Pushes an image of these bytes; `from` names them in an error message. */
static ah_status push_bytes(lua_State *L, ah_slice bytes, const char *from, ah_err *err)
{
    const char *mime = ah_image_mime(bytes);

    if (bytes.n > AH_IMAGE_MAX)
        return ah_err_set(err, AH_USAGE, "%.300s is larger than %d MiB, the most an image may have",
                          from, AH_IMAGE_MAX >> 20);
    if (!mime)
        return ah_err_set(
            err, AH_USAGE,
            "%.300s is no image by its first bytes: png, jpeg, gif and webp are known", from);
    push_image(L);
    set_text(L, "mime", ah_slice_of(mime));
    set_text(L, "data", bytes);
    return AH_OK;
}

static ah_status push_file(lua_State *L, const char *path, ah_err *err)
{
    ah_buf *b = ah_lua_push_buf(L, AH_IMAGE_MAX + READ_AHEAD);
    ah_status st = ah_file_read(path, b, err);

    if (st == AH_BUDGET)
        st = ah_err_set(err, AH_USAGE, "'%.300s' is larger than %d MiB, the most an image may have",
                        path, AH_IMAGE_MAX >> 20);
    if (st == AH_OK) {
        lua_pushfstring(L, "'%s'", path);
        st = push_bytes(L, ah_buf_slice(b), lua_tostring(L, -1), err);
    }
    ah_buf_clear(b); /* at once instead of at the next collection */
    return st;
}

static void check_url(lua_State *L, ah_slice url)
{
    bool web =
        (url.n > 8 && !memcmp(url.p, "https://", 8)) || (url.n > 7 && !memcmp(url.p, "http://", 7));

    if (!web || url.n > AH_IMAGE_URL_MAX - 2 || !ah_utf8_valid(url))
        ah_lua_raise(L, AH_USAGE,
                     "ah.image: url must be an address that begins with https:// or http://, of at "
                     "most 8 KiB; bytes go into `data`, for a file write ah.image(path)");
}

typedef struct image_fields {
    ah_slice data, mime, url;
} image_fields;

static const ah_option image_rows[] = {
    {.name = "type", .kinds = AH_OPT_STRING, .doc = "of an image that is one already"},
    {.name = "data",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_SLICE(image_fields, data),
     .doc = "its bytes"},
    {.name = "mime",
     .kinds = AH_OPT_STRING,
     .otherwise = "by its bytes",
     .to = AH_TO_SLICE(image_fields, mime),
     .doc = "`image/png`, `image/jpeg`, `image/gif` or `image/webp`"},
    {.name = "url",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_SLICE(image_fields, url),
     .doc = "in place of its bytes: the provider fetches it"},
    {0},
};
const ah_subject ah_subject_image = {.what = "ah.image",
                                     .type = "ah.ImageConfig",
                                     .doc = "either `data` or `url`",
                                     .row = image_rows};

/* Pushes the image of the fields data, mime and url of the table at 1. */
static ah_status push_fields(lua_State *L, ah_err *err)
{
    image_fields f = {0};
    const char *found;

    ah_options_read(L, 1, &ah_subject_image, &f);
    if (!f.data.p == !f.url.p)
        ah_lua_raise(L, AH_USAGE, "ah.image: give one of the fields data (its bytes) and url");
    found = f.data.p ? ah_image_mime(f.data) : NULL;
    if (f.mime.p && found && !ah_slice_is(f.mime, found))
        ah_lua_raise(L, AH_USAGE, "ah.image: mime is '%.*s', but the data are %s", AH_FMT(f.mime),
                     found);
    if (f.data.p)
        return push_bytes(L, f.data, "ah.image: data", err);
    check_url(L, f.url);
    if (f.mime.p && !ah_image_is_mime(f.mime))
        ah_lua_raise(
            L, AH_USAGE,
            "ah.image: mime must be image/png, image/jpeg, image/gif or image/webp, found '%.*s'",
            AH_FMT(f.mime));
    push_image(L);
    set_text(L, "url", f.url);
    if (f.mime.p)
        set_text(L, "mime", f.mime);
    return AH_OK;
}

/* ah.image(path | fields): the image, or nil and an error. */
static int image(lua_State *L)
{
    ah_status st;
    ah_err err;

    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING)
        st = push_file(L, lua_tostring(L, 1), &err);
    else if (lua_istable(L, 1))
        st = push_fields(L, &err);
    else
        return ah_lua_raise(L, AH_USAGE, "ah.image: expected a path or a table of fields, found %s",
                            luaL_typename(L, 1));
    if (st == AH_OK)
        return 1;
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

static int image_tostring(lua_State *L)
{
    bool url = lua_getfield(L, 1, "url") == LUA_TSTRING;

    if (url)
        lua_pushfstring(L, "image %s", lua_tostring(L, -1));
    else
        lua_pushfstring(L, "image %s, %I bytes",
                        lua_getfield(L, 1, "mime") == LUA_TSTRING ? lua_tostring(L, -1) : "?",
                        lua_getfield(L, 1, "data") == LUA_TSTRING ? (LUAI_UACINT)luaL_len(L, -1)
                                                                  : 0);
    return 1;
}

/* -- to JSON and back ---------------------------------------------------------------------- */

/* _image_json(part): the table to be encoded. Converts a part that ah.image has not made. */
static int image_json(lua_State *L)
{
    ah_slice data = {NULL, 0};
    ah_buf *b;
    ah_err err;

    lua_settop(L, 1);
    if (push_fields(L, &err) !=
        AH_OK) /* checks it again, it may have been changed: -- part image */
        return ah_lua_raise_err(L, &err);
    lua_pushnil(L);
    lua_setmetatable(L, 2);
    ah_lua_field_string(L, 2, "ah.image", "data", &data);
    lua_settop(L, 2);
    if (!data.p)
        return 1;
    b = ah_lua_push_buf(L, AH_LUA_PARTS_MAX);
    ah_base64_put(b, data);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_pushlstring(L, b->data, b->len);
    ah_buf_clear(b);
    lua_setfield(L, 2, "data");
    lua_settop(L, 2);
    return 1;
}

/* _image_of(part of an entry): the image. The entry has been checked. */
static int image_of(lua_State *L)
{
    ah_slice text;
    ah_buf *b;

    lua_settop(L, 1);
    if (lua_getfield(L, 1, "data") == LUA_TSTRING) {
        text.p = lua_tolstring(L, -1, &text.n);
        b = ah_lua_push_buf(L, AH_LUA_PARTS_MAX);
        ah_base64_take(text, b);
        if (!ah_buf_ok(b))
            return ah_lua_raise_nomem(L);
        lua_pushlstring(L, b->data ? b->data : "", b->len);
        ah_buf_clear(b);
        lua_setfield(L, 1, "data");
    }
    lua_settop(L, 1);
    luaL_setmetatable(L, IMAGE);
    return 1;
}

/* -- the user's content ---------------------------------------------------------------------- */

static void read_parts(lua_State *L, int idx, const char *what)
{
    ah_err err;

    if (is_image(L, idx))
        ah_lua_raise(L, AH_USAGE,
                     "%s: an image must be in a list: { \"What is this?\", ah.image(...) }", what);
    if (ah_lua_module(L, "agenthost.messages", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "parts");
    lua_pushvalue(L, idx);
    if (ah_lua_call(ah_lua_of(L), L, 1, 1, &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_USAGE, "%s: %s", what, err.message);
    lua_replace(L, idx);
    lua_pop(L, 1);
}

/* True if the value on top is a valid text. */
static bool is_text(lua_State *L)
{
    ah_slice s;

    if (lua_type(L, -1) != LUA_TSTRING)
        return true;
    s.p = lua_tolstring(L, -1, &s.n);
    return ah_utf8_valid(s);
}

/* True if all texts of the list at idx are UTF-8: strings, and those of { type = "text", text }. */
static bool are_texts(lua_State *L, int idx)
{
    bool are = true;

    for (lua_Unsigned i = 1, n = lua_rawlen(L, idx); i <= n && are; i++, lua_pop(L, 1)) {
        lua_rawgeti(L, idx, (lua_Integer)i);
        are = is_text(L);
        if (!lua_istable(L, -1))
            continue;
        lua_pushliteral(L, "text");
        lua_rawget(L, -2);
        are = is_text(L);
        lua_pop(L, 1);
    }
    return are;
}

ah_status ah_lua_read_content(lua_State *L, int idx, const char *what, ah_lua_content *out,
                              ah_err *err)
{
    bool parts = lua_istable(L, idx), sound;
    ah_slice s;

    *out = (ah_lua_content){{NULL, 0}, {NULL, 0}};
    if (!parts && lua_type(L, idx) != LUA_TSTRING)
        return AH_OK;
    lua_pushvalue(L, idx);
    sound = parts ? are_texts(L, lua_gettop(L)) : is_text(L);
    lua_pop(L, 1);
    if (!sound)
        return ah_err_set(err, AH_USAGE, "%s: the text for the model is not UTF-8", what);
    if (parts)
        read_parts(L, idx, what);
    s.p = lua_tolstring(L, idx, &s.n);
    if (!s.n)
        return ah_err_set(err, AH_USAGE, "%s: there is nothing to say: give a text", what);
    *(parts ? &out->parts : &out->text) = s;
    return AH_OK;
}

ah_text *ah_lua_content_entry(const ah_mem *mem, const ah_lua_content *s, int64_t time)
{
    return s->parts.p ? ah_entry_parts(mem, s->parts, time)
                      : ah_entry_text(mem, AH_ENTRY_USER, s->text, time);
}

/* -- a handler's images ----------------------------------------------------------------------- */

bool ah_lua_shows(lua_State *L, int idx)
{
    bool found = is_image(L, idx);
    lua_Unsigned n = lua_istable(L, idx) ? lua_rawlen(L, idx) : 0;

    for (lua_Unsigned i = 1; i <= n && !found; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i);
        found = is_image(L, -1);
        lua_pop(L, 1);
    }
    return found;
}

static ah_slice raw_field(lua_State *L, const char *name)
{
    ah_slice s = {NULL, 0};

    lua_pushstring(L, name);
    if (lua_rawget(L, -2) == LUA_TSTRING)
        s.p = lua_tolstring(L, -1, &s.n); /* the table keeps it */
    lua_pop(L, 1);
    return s;
}

/* Writes the image on top. Checks it again, since it may have changed after ah.image. */
static ah_status put_image(lua_State *L, ah_buf *out, ah_err *err)
{
    ah_slice data = raw_field(L, "data"), mime = raw_field(L, "mime"), url = raw_field(L, "url");
    const char *kind = data.p ? ah_image_mime(data) : NULL;

    if (url.p ? !ah_utf8_valid(url) || url.n > AH_IMAGE_URL_MAX - 2
              : !kind || data.n > AH_IMAGE_MAX)
        return ah_err_set(err, AH_TOOL_VALIDATION,
                          "an image of its result was not made by ah.image");
    ah_buf_str(out, out->len ? "," : "[");
    ah_buf_str(out, "{\"type\":\"image\",");
    if (url.p) {
        ah_buf_str(out, "\"url\":");
        ah_json_put_string(out, url);
    } else {
        ah_buf_fmt(out, "\"mime\":\"%s\",\"data\":\"", kind);
        ah_base64_put(out, data);
        ah_buf_char(out, '"');
    }
    if (url.p && mime.p) {
        ah_buf_str(out, ",\"mime\":");
        ah_json_put_string(out, mime);
    }
    ah_buf_char(out, '}');
    return AH_OK;
}

/* Appends the member on top: the line of a text to `lines`, or an image. */
static ah_status put_member(lua_State *L, ah_buf *lines, ah_buf *images, ah_err *err)
{
    ah_slice s;

    if (is_image(L, -1))
        return put_image(L, images, err);
    if (lua_type(L, -1) != LUA_TSTRING)
        return ah_err_set(
            err, AH_TOOL_VALIDATION,
            "a result with images is a list of texts and images, and this one holds a %s",
            luaL_typename(L, -1));
    s.p = lua_tolstring(L, -1, &s.n);
    if (!ah_utf8_valid(s))
        return ah_err_set(err, AH_TOOL_VALIDATION, "a text of its result is not UTF-8");
    ah_buf_str(lines, lines->len ? "\n" : "");
    ah_buf_put(lines, s);
    return AH_OK;
}

ah_status ah_lua_read_shown(lua_State *L, int idx, ah_buf *text, ah_buf *images, ah_err *err)
{
    bool one = is_image(L, idx);
    lua_Unsigned n = one ? 1 : lua_rawlen(L, idx);
    ah_status st = AH_OK;
    ah_buf *lines;

    idx = lua_absindex(L, idx);
    lines = ah_lua_push_buf(L, text->max);
    for (lua_Unsigned i = 1; i <= n && st == AH_OK; i++) {
        if (one)
            lua_pushvalue(L, idx);
        else
            lua_rawgeti(L, idx, (lua_Integer)i);
        st = put_member(L, lines, images, err);
        lua_pop(L, 1);
    }
    ah_buf_char(images, ']');
    if (lines->len)
        ah_json_put_string(text, ah_buf_slice(lines));
    if (st == AH_OK && (!ah_buf_ok(lines) || !ah_buf_ok(text)))
        st = ah_buf_error(ah_buf_ok(text) ? lines : text, "the text of the result", err);
    if (st == AH_OK && !ah_buf_ok(images))
        st = ah_buf_error(images, "the result's images as JSON", err);
    lua_pop(L, 1);
    return st;
}

void ah_lua_open_image(lua_State *L)
{
    luaL_newmetatable(L, IMAGE);
    lua_pushcfunction(L, image_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
    lua_pushcfunction(L, image);
    lua_setfield(L, -2, "image");
    lua_pushcfunction(L, image_json);
    lua_setfield(L, -2, "_image_json");
    lua_pushcfunction(L, image_of);
    lua_setfield(L, -2, "_image_of");
}
