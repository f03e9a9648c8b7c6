/* Lua values to canonical JSON and back: ah.json, ah.null, ah.array, ah.object.
 *
 * Writing never raises: it uses only calls that neither allocate in Lua nor run metamethods, so C
 * memory may be held meanwhile. Such calls cannot fetch a value by a key given as bytes. So members
 * are written in the order of lua_next, and their texts are sorted when the object is complete.
 * Reading pushes values directly from checked text and holds no C memory. */
#include "lua/lua_value.h"

#include "lua/lua_state.h"

#include <math.h>
#include <stdlib.h>

/* Their addresses are registry keys: of the two markers, and of the metatable of the values that
 * classes keep under put_key in their metatables. A look-up by name might allocate. */
static const char array_key = 'a', object_key = 'o', put_key = 'p';

static const char BUFFER[] = "agenthost.buffer"; /* metatable of an ah_buf in a userdata */

enum {
    STACK_OF_LEVEL = 8, /* key, value, two metatables, needs of a class, and a reserve */
    STACK_OF_THING = 4, /* of a userdata: metatables and their values */
    USUAL_MEMBERS = 4,  /* of an object that is read: room without growing */
    PATH_LEVELS = 8,    /* levels shown in a message: the innermost ones */
    PATH_KEY = 32,      /* bytes shown of a key */
    PATH_BYTES = 400
};
static const char NO_USERDATA[] = "a userdata cannot be JSON";
static const size_t MAX_TEXT = (size_t)1 << 30; /* bytes, of ah.json.encode */

/* A table that is being written, and the position in it. On the C stack, at most
 * AH_JSON_MAX_DEPTH. */
typedef struct level {
    const struct level *up;
    const void *table;
    int depth;
    enum { WHOLE, ITEM, MEMBER } where;
    lua_Integer index; /* ITEM */
    ah_slice key;      /* MEMBER: the Lua string's own bytes */
    ah_lua_put put;    /* of an object with a class; NULL: no class */
    int kind;          /* of ah_lua_json_begin */
} level;

/* A written member: its key, and the position of its text in the output. */
typedef struct part {
    ah_slice key;
    size_t at, n;
} part;

typedef struct writer {
    lua_State *L;
    const ah_mem *mem;
    ah_buf *out;
    ah_err *err;
    part *parts; /* of all open objects, the outermost first */
    size_t nparts, cap;
    ah_buf unsorted; /* scratch */
} writer;

/* The kinds of keys in a table. */
typedef struct shape {
    size_t strings, integers, others;
    lua_Integer least, most; /* of the integers */
    int other;               /* the Lua type of one of the others */
} shape;

static bool is_name(ah_slice s)
{
    if (s.n == 0 || s.n > PATH_KEY || (s.p[0] >= '0' && s.p[0] <= '9'))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (c != '_' && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
            return false;
    }
    return true;
}

/* Appends ["odd key"], shortened, with invalid UTF-8 replaced. */
static void put_odd_key(ah_buf *b, ah_slice key)
{
    bool cut = key.n > PATH_KEY;
    ah_buf clean;

    if (cut)
        key.n = ah_utf8_cut(key.p, PATH_KEY);
    ah_buf_init(&clean, b->mem, 3 * PATH_KEY);
    ah_utf8_repair(key, &clean);
    ah_buf_char(b, '[');
    ah_json_put_string(b, ah_buf_slice(&clean));
    ah_buf_str(b, cut ? "...]" : "]");
    ah_buf_clear(&clean);
}

static void put_path(ah_buf *b, const level *at)
{
    const level *shown[PATH_LEVELS];
    size_t n = 0;

    for (; at && n < PATH_LEVELS; at = at->up)
        if (at->where != WHOLE)
            shown[n++] = at;
    if (at)
        ah_buf_str(b, "...");
    while (n-- > 0) {
        if (shown[n]->where == ITEM)
            ah_buf_fmt(b, "[%lld]", (long long)shown[n]->index);
        else if (is_name(shown[n]->key))
            ah_buf_fmt(b, ".%.*s", AH_FMT(shown[n]->key));
        else
            put_odd_key(b, shown[n]->key);
    }
}

/* Fails with "at .items[3].f: a function cannot be JSON". */
static ah_status refuse(writer *w, const level *at, const char *why)
{
    ah_status st;
    ah_buf path;
    bool cut;

    ah_buf_init(&path, w->mem, 8 * (PATH_LEVELS + 1) * PATH_KEY);
    put_path(&path, at);
    cut = path.len > PATH_BYTES;
    if (cut)
        ah_buf_reset(&path, ah_utf8_cut(path.data, PATH_BYTES));
    if (path.status == AH_NOMEM)
        st = ah_err_nomem(w->err);
    else if (path.len == 0)
        st = ah_err_set(w->err, AH_TOOL_VALIDATION, "%s", why);
    else
        st = ah_err_set(w->err, AH_TOOL_VALIDATION, "at %.*s%s: %s", AH_FMT(ah_buf_slice(&path)),
                        cut ? "..." : "", why);
    ah_buf_clear(&path);
    return st;
}

/* -- mt: it is this marker */
static bool is_marker(lua_State *L, const char *marker)
{
    bool same;

    lua_rawgetp(L, LUA_REGISTRYINDEX, marker); /* -- mt marker */
    same = lua_topointer(L, -1) == lua_topointer(L, -2);
    lua_pop(L, 1);
    return same;
}

/* True if the value at idx has the metatable of this marker. */
static bool is_marked(lua_State *L, int idx, const char *marker)
{
    bool is;

    if (!lua_getmetatable(L, idx)) /* -- mt */
        return false;
    is = is_marker(L, marker);
    lua_pop(L, 1); /* -- */
    return is;
}

static void set_marker(lua_State *L, const char *marker)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, marker); /* -- t mt */
    lua_setmetatable(L, -2);                   /* -- t */
}

bool ah_lua_is_object(lua_State *L, int idx)
{
    return is_marked(L, idx, &object_key);
}

/* Returns the shape of the table on top. */
static shape measure(lua_State *L)
{
    shape s = {0};

    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) { /* -- t key value */
        if (lua_type(L, -2) == LUA_TSTRING) {
            s.strings++;
        } else if (lua_isinteger(L, -2)) {
            lua_Integer i = lua_tointeger(L, -2);

            s.least = s.integers == 0 || i < s.least ? i : s.least;
            s.most = s.integers == 0 || i > s.most ? i : s.most;
            s.integers++;
        } else {
            s.others++;
            s.other = lua_type(L, -2);
        }
    }
    return s;
}

static ah_status refuse_keys(writer *w, const level *at, const shape *s, bool array)
{
    if (s->others && s->other == LUA_TNUMBER)
        return refuse(w, at, "a table with a float as key cannot be JSON");
    if (s->others && s->other == LUA_TBOOLEAN)
        return refuse(w, at, "a table with a boolean as key cannot be JSON");
    if (s->others)
        return refuse(w, at, "a table with keys that are neither strings nor 1..n cannot be JSON");
    if (array)
        return refuse(w, at, "an array (ah.array) with string keys cannot be JSON");
    if (s->strings)
        return refuse(w, at, "a table with both string and integer keys cannot be JSON");
    return refuse(w, at, "an object (ah.object) with integer keys cannot be JSON");
}

/* Fails for integer keys that are not 1..n: the error names the smallest key or the first hole. */
static ah_status refuse_gap(writer *w, level *at, const shape *s)
{
    at->where = ITEM;
    at->index = s->least;
    if (s->least != 1)
        return refuse(w, at, "integer keys that do not run from 1 to n cannot be JSON");
    while (lua_rawgeti(w->L, -1, at->index) != LUA_TNIL) { /* -- t item */
        lua_pop(w->L, 1);
        at->index++;
    }
    return refuse(w, at, "an array with a hole cannot be JSON (ah.null fills holes)");
}

static int compare_parts(const void *a, const void *b)
{
    return ah_slice_cmp(((const part *)a)->key, ((const part *)b)->key);
}

/* Sorts the texts of n members, from `start` of the output to its end, by their keys. */
static ah_status sort_parts(writer *w, part *p, size_t n, size_t start)
{
    size_t i = 1;
    char *to = w->out->data + start;

    while (i < n && compare_parts(&p[i - 1], &p[i]) < 0)
        i++;
    if (i >= n)
        return AH_OK;
    qsort(p, n, sizeof *p, compare_parts);
    ah_buf_reset(&w->unsorted, 0);
    ah_buf_add(&w->unsorted, to, w->out->len - start);
    if (!ah_buf_ok(&w->unsorted))
        return ah_buf_error(&w->unsorted, "JSON text", w->err);
    for (i = 0; i < n; i++) {
        if (i)
            *to++ = ',';
        memcpy(to, w->unsorted.data + (p[i].at - start), p[i].n);
        to += p[i].n;
    }
    return AH_OK;
}

static ah_status put_value(writer *w, const level *at);

static ah_status put_array(writer *w, level *at, lua_Integer n)
{
    ah_status st = AH_OK;

    ah_buf_char(w->out, '[');
    at->where = ITEM;
    for (at->index = 1; st == AH_OK && at->index <= n; at->index++) {
        if (at->index > 1)
            ah_buf_char(w->out, ',');
        lua_rawgeti(w->L, -1, at->index); /* -- t item */
        st = put_value(w, at);
        lua_pop(w->L, 1); /* -- t */
    }
    ah_buf_char(w->out, ']');
    return st;
}

/* Writes the member whose key and value are on top. */
static ah_status put_member(writer *w, level *at)
{
    part p = {.at = w->out->len}, *parts;
    ah_status st;

    p.key.p = lua_tolstring(w->L, -2, &p.key.n);
    at->key = p.key;
    if (!ah_utf8_valid(p.key))
        return refuse(w, at, "a key that is not UTF-8 cannot be JSON");
    if (p.key.n && memchr(p.key.p, '\0', p.key.n))
        return refuse(w, at, "a key with a NUL byte is not accepted");
    ah_json_put_string(w->out, p.key);
    ah_buf_char(w->out, ':');
    if ((st = put_value(w, at)) != AH_OK)
        return st;
    if (!(parts = ah_grow(w->mem, w->parts, &w->cap, w->nparts + 1, sizeof *parts)))
        return ah_err_nomem(w->err);
    p.n = w->out->len - p.at;
    w->parts = parts;
    w->parts[w->nparts++] = p;
    return AH_OK;
}

/* Ends an object: sorts the members whose texts begin at `start`. */
static ah_status end_object(writer *w, size_t first, size_t start)
{
    ah_status st = AH_OK;

    if (w->nparts > first)
        st = sort_parts(w, w->parts + first, w->nparts - first, start);
    w->nparts = first;
    ah_buf_char(w->out, '}');
    return st;
}

static ah_status put_object(writer *w, level *at)
{
    size_t first = w->nparts, start = w->out->len + 1;
    ah_status st = AH_OK;

    ah_buf_char(w->out, '{');
    at->where = MEMBER;
    for (lua_pushnil(w->L); lua_next(w->L, -2); lua_pop(w->L, 1)) { /* -- t key value */
        if (w->nparts > first)
            ah_buf_char(w->out, ',');
        if ((st = put_member(w, at)) != AH_OK)
            return st; /* the caller resets the stack */
    }
    return end_object(w, first, start);
}

/* -- objects with a class ---------------------------------------------------------------------- */

struct ah_lua_json {
    writer *w;
    level *at;           /* of the object's members */
    size_t first, start; /* of its members and their texts */
};

/* The class of the object on top, from its metatable. */
typedef struct class
{
    ah_lua_put put; /* writes it as JSON; NULL: as a plain value */
    bool array, object;
} class;

static class class_of(lua_State *L)
{
    class c = {0};

    if (!lua_getmetatable(L, -1))
        return c;
    /* -- thing mt box: scripts can reach the metatables of some classes, and change them */
    if (lua_rawgetp(L, -1, &put_key) == LUA_TUSERDATA && is_marked(L, -1, &put_key))
        c.put = *(ah_lua_put *)lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!c.put) {
        c.array = is_marker(L, &array_key);
        c.object = !c.array && is_marker(L, &object_key);
    }
    lua_pop(L, 1);
    return c;
}

void ah_lua_set_json(lua_State *L, ah_lua_put put)
{
    ah_lua_put *box = lua_newuserdatauv(L, sizeof *box, 0); /* -- mt box */

    *box = put;
    set_marker(L, &put_key);
    lua_rawsetp(L, -2, &put_key);
}

/* Writes the object on top, whose members are at `at`. */
static ah_status put_thing(writer *w, level *at, ah_lua_put put)
{
    ah_lua_json j = {.w = w, .at = at};
    ah_status st;

    at->put = put;
    st = put(w->L, &j);
    return st == AH_NOMEM ? ah_err_nomem(w->err) : st;
}

ah_buf *ah_lua_json_out(ah_lua_json *j)
{
    return j->w->out;
}

ah_status ah_lua_json_refuse(ah_lua_json *j, const char *why)
{
    return refuse(j->w, j->at->up, why);
}

int ah_lua_json_around(const ah_lua_json *j, int kind)
{
    int n = 0;

    for (const level *l = j->at->up; l; l = l->up)
        n += l->put == j->at->put && l->kind == kind;
    return n;
}

void ah_lua_json_begin(ah_lua_json *j, int kind)
{
    j->at->kind = kind;
    j->at->where = MEMBER;
    j->first = j->w->nparts;
    ah_buf_char(j->w->out, '{');
    j->start = j->w->out->len;
}

ah_status ah_lua_json_try(ah_lua_json *j)
{
    writer *w = j->w;
    size_t start = w->out->len, nparts = w->nparts;
    int top = lua_gettop(w->L);
    ah_status st;

    if (w->nparts > j->first)
        ah_buf_char(w->out, ',');
    st = put_member(w, j->at);
    if (st != AH_TOOL_VALIDATION || !ah_buf_ok(w->out))
        return st;
    ah_buf_reset(w->out, start);
    w->nparts = nparts;
    lua_settop(w->L, top);
    return AH_OK;
}

ah_status ah_lua_json_end(ah_lua_json *j)
{
    return end_object(j->w, j->first, j->start);
}

/* Writes the table on top, which is at `up`. */
static ah_status put_table(writer *w, const level *up)
{
    lua_State *L = w->L;
    level here = {.up = up, .table = lua_topointer(L, -1), .depth = up ? up->depth + 1 : 1};
    class c;
    bool array;
    shape s;

    for (const level *l = up; l; l = l->up)
        if (l->table == here.table)
            return refuse(w, up, "a table that contains itself cannot be JSON");
    if (here.depth > AH_JSON_MAX_DEPTH)
        return refuse(w, up, "a table nested deeper than 512 levels cannot be JSON");
    if (!lua_checkstack(L, STACK_OF_LEVEL))
        return ah_err_nomem(w->err);
    c = class_of(L);
    if (c.put)
        return put_thing(w, &here, c.put);
    s = measure(L);
    array = c.array || (!c.object && s.integers && !s.strings);
    if (s.others || (array ? s.strings : s.integers))
        return refuse_keys(w, &here, &s, array);
    if (array && s.integers && (s.least != 1 || (lua_Unsigned)s.most != s.integers))
        return refuse_gap(w, &here, &s);
    return array ? put_array(w, &here, s.most) : put_object(w, &here);
}

static ah_status put_number(writer *w, const level *at)
{
    lua_Number d = lua_tonumber(w->L, -1);

    if (lua_isinteger(w->L, -1))
        ah_buf_int(w->out, lua_tointeger(w->L, -1));
    else if (isfinite(d))
        ah_json_put_double(w->out, d);
    else
        return refuse(w, at, d != d ? "NaN cannot be JSON" : "infinity cannot be JSON");
    return AH_OK;
}

static ah_status put_string(writer *w, const level *at)
{
    ah_slice s;

    s.p = lua_tolstring(w->L, -1, &s.n);
    if (!ah_utf8_valid(s))
        return refuse(w, at, "a string that is not UTF-8 cannot be JSON");
    ah_json_put_string(w->out, s);
    return AH_OK;
}

/* Writes a userdata, if its class has a function for that. */
static ah_status put_userdata(writer *w, const level *up)
{
    level here = {.up = up};
    ah_lua_put put;

    if (!lua_checkstack(w->L, STACK_OF_THING))
        return ah_err_nomem(w->err);
    put = class_of(w->L).put;
    return put ? put_thing(w, &here, put) : refuse(w, up, NO_USERDATA);
}

/* Writes the value on top, which is at `at` (NULL: the whole value). */
static ah_status put_value(writer *w, const level *at)
{
    if (!ah_buf_ok(w->out))
        return ah_buf_error(w->out, "JSON text", w->err);
    switch (lua_type(w->L, -1)) {
    case LUA_TBOOLEAN:
        ah_buf_str(w->out, lua_toboolean(w->L, -1) ? "true" : "false");
        return AH_OK;
    case LUA_TNUMBER:
        return put_number(w, at);
    case LUA_TSTRING:
        return put_string(w, at);
    case LUA_TTABLE:
        return put_table(w, at);
    case LUA_TNIL:
        return refuse(w, at, "nil cannot be JSON (ah.null is JSON's null)");
    case LUA_TFUNCTION:
        return refuse(w, at, "a function cannot be JSON");
    case LUA_TTHREAD:
        return refuse(w, at, "a thread cannot be JSON");
    case LUA_TUSERDATA:
        return put_userdata(w, at);
    default: /* light userdata: NULL is ah.null */
        if (lua_touserdata(w->L, -1))
            return refuse(w, at, NO_USERDATA);
        ah_buf_str(w->out, "null");
        return AH_OK;
    }
}

ah_status ah_lua_to_json(lua_State *L, int idx, const ah_mem *mem, ah_buf *out, ah_err *err)
{
    writer w = {.L = L, .mem = mem, .out = out, .err = err};
    size_t start = out->len;
    int top = lua_gettop(L);
    ah_status st;

    if (!lua_checkstack(L, STACK_OF_LEVEL))
        return ah_err_nomem(err);
    ah_buf_init(&w.unsorted, mem, out->max);
    lua_pushvalue(L, idx);
    st = put_value(&w, NULL);
    if (st == AH_OK && !ah_buf_ok(out))
        st = ah_buf_error(out, "JSON text", err);
    if (st != AH_OK && ah_buf_ok(out))
        ah_buf_reset(out, start);
    lua_settop(L, top);
    ah_buf_clear(&w.unsorted);
    ah_free(mem, w.parts);
    return st;
}

/* Decodes into a buffer of Lua's. The decoded text is never longer than the raw one, so a buffer of
 * the raw size never grows, and ah_mem is not used. */
static void push_string(lua_State *L, ah_json_token t)
{
    luaL_Buffer lb;
    ah_buf b;

    if (!t.escaped) {
        lua_pushlstring(L, t.raw.p, t.raw.n);
        return;
    }
    ah_buf_init(&b, &ah_mem_libc, t.raw.n);
    b.data = luaL_buffinitsize(L, &lb, t.raw.n);
    b.cap = t.raw.n;
    ah_json_unescape(t.raw, &b);
    luaL_pushresultsize(&lb, b.len); /* -- s */
}

/* Returns false if the number is beyond any double, and then pushes an infinity. */
static bool push_number(lua_State *L, ah_slice literal)
{
    ah_json_num num;
    bool ok = ah_json_number(literal, &num);

    if (num.is_int)
        lua_pushinteger(L, num.i);
    else
        lua_pushnumber(L, num.d);
    return ok;
}

static void push_container(lua_State *L, ah_json_token t, ah_json_reader rest)
{
    bool array = t.kind == AH_JSON_ARRAY;

    lua_createtable(L, 0, array ? 0 : USUAL_MEMBERS); /* -- t */
    if (array)
        set_marker(L, &array_key);
    else if (ah_json_next(&rest).kind == AH_JSON_OBJECT_END)
        set_marker(L, &object_key);
}

/* Pushes the value; returns the first number out of range, or .p NULL. */
static ah_slice push_value(lua_State *L, ah_slice checked)
{
    lua_Integer
        items[AH_JSON_MAX_DEPTH]; /* for each open container: items read so far; -1: an object */
    ah_json_reader r = ah_json_read(checked);
    ah_slice huge = {0};
    int depth = 0;

    for (;;) {
        ah_json_token t = ah_json_next(&r);

        luaL_checkstack(L, STACK_OF_LEVEL, "JSON text is nested too deep");
        if (t.kind == AH_JSON_KEY) {
            push_string(L, t);
            continue;
        } else if (t.kind == AH_JSON_ARRAY || t.kind == AH_JSON_OBJECT) {
            push_container(L, t, r);
            items[depth++] = t.kind == AH_JSON_ARRAY ? 0 : -1;
            continue;
        } else if (t.kind == AH_JSON_ARRAY_END || t.kind == AH_JSON_OBJECT_END) {
            depth--;
        } else if (t.kind == AH_JSON_STRING) {
            push_string(L, t);
        } else if (t.kind == AH_JSON_NUMBER) {
            if (!push_number(L, t.raw) && !huge.p)
                huge = t.raw;
        } else if (t.kind == AH_JSON_NULL) {
            lua_pushlightuserdata(L, NULL);
        } else {
            lua_pushboolean(L, t.kind == AH_JSON_TRUE);
        }
        if (depth == 0) /* -- v */
            return huge;
        if (items[depth - 1] < 0)
            lua_rawset(L, -3); /* -- t */
        else
            lua_rawseti(L, -2, ++items[depth - 1]); /* -- t */
    }
}

void ah_lua_push_json(lua_State *L, ah_slice checked)
{
    push_value(L, checked);
}

static int free_buffer(lua_State *L)
{
    ah_buf *b = luaL_checkudata(L, 1, BUFFER);

    (void)ah_buf_ok(b); /* a status must be read before ah_buf_clear; a raise skips that */
    ah_buf_clear(b);
    return 0;
}

ah_buf *ah_lua_push_buf(lua_State *L, size_t max)
{
    ah_buf *b = lua_newuserdatauv(L, sizeof *b, 0); /* -- b */

    ah_buf_init(b, &ah_lua_of(L)->mem, max);
    luaL_setmetatable(L, BUFFER);
    return b;
}

/* ah.json.encode(v): canonical text. Raises on what cannot be JSON. */
static int encode(lua_State *L)
{
    ah_buf *b;
    ah_status st;
    ah_err err;

    luaL_checkany(L, 1);
    b = ah_lua_push_buf(L, MAX_TEXT); /* -- v ... b */
    lua_toclose(L, -1);
    if ((st = ah_lua_to_json(L, 1, b->mem, b, &err)) == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    if (st != AH_OK)
        return luaL_error(L, "%s", err.message);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    return 1;
}

ah_status ah_lua_decode(lua_State *L, ah_slice text, const char *what, ah_err *err)
{
    ah_status st = ah_json_check_err(&ah_lua_of(L)->mem, text, what, err);
    char said[80];
    ah_slice huge;

    if (st != AH_OK)
        return st;
    huge = push_value(L, text); /* -- v */
    if (!huge.p)
        return AH_OK;
    lua_pop(L, 1);
    ah_print(said, sizeof said, "%s cannot be decoded: number out of range", what);
    return ah_json_err_at(text, (size_t)(huge.p - text.p), said, err);
}

/* ah.json.decode(text): the value, or nil and a message with the place. */
static int decode(lua_State *L)
{
    ah_slice text;
    ah_status st;
    ah_err err;

    luaL_checktype(L, 1, LUA_TSTRING);
    text.p = lua_tolstring(L, 1, &text.n);
    if ((st = ah_lua_decode(L, text, "the text", &err)) == AH_OK)
        return 1;
    if (st == AH_NOMEM)
        return ah_lua_raise_nomem(L);
    luaL_pushfail(L);
    lua_pushstring(L, err.message);
    return 2;
}

/* Marks the given table and returns it. */
static int mark(lua_State *L, const char *marker)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1); /* -- t */
    if (lua_getmetatable(L, 1)) {
        luaL_argcheck(L, is_marked(L, 1, marker), 1, "the table has another metatable already");
        lua_pop(L, 1);
    }
    set_marker(L, marker);
    return 1;
}

static int mark_array(lua_State *L)
{
    return mark(L, &array_key);
}

static int mark_object(lua_State *L)
{
    return mark(L, &object_key);
}

static void open_marker(lua_State *L, const char *name, const char *marker)
{
    luaL_newmetatable(L, name); /* -- mt     with __name */
    lua_rawsetp(L, LUA_REGISTRYINDEX, marker);
}

static void open_buffer(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"__gc", free_buffer}, {"__close", free_buffer}, {NULL, NULL}};

    luaL_newmetatable(L, BUFFER); /* -- mt */
    luaL_setfuncs(L, methods, 0);
    lua_pop(L, 1);
}

void ah_lua_open_value(lua_State *L)
{
    static const luaL_Reg marks[] = {{"array", mark_array}, {"object", mark_object}, {NULL, NULL}};
    static const luaL_Reg json[] = {{"encode", encode}, {"decode", decode}, {NULL, NULL}};

    open_marker(L, "agenthost.array", &array_key);
    open_marker(L, "agenthost.object", &object_key);
    open_marker(L, "agenthost.json", &put_key);
    open_buffer(L);
    luaL_setfuncs(L, marks, 0); /* -- ah */
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    luaL_newlib(L, json); /* -- ah json */
    lua_setfield(L, -2, "json");
}
