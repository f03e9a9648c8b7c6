/* The output of a child process, as lines, as JSON, as bytes. */
#include <stdio.h>

#include "base/excerpt.h"
#include "lua/lua_child.h"
#include "lua/lua_error.h"
#include "lua/lua_options.h"
#include "lua/lua_value.h"

enum { BEGINNING = 120 };

static ah_slice rest_of(const ah_child *c)
{
    ah_slice all = ah_buf_slice(&c->part);

    return (ah_slice){all.p + c->used, all.n - c->used};
}

static void use(ah_child *c, size_t n)
{
    c->used += n;
    c->looked = 0;
}

/* Moves the available output to `part`. Returns false if there is none. */
static bool refill(lua_State *L, ah_child *c)
{
    ah_slice s = c->p ? ah_process_output(c->p, AH_STDOUT) : (ah_slice){NULL, 0};

    if (s.n == 0)
        return false;
    ah_buf_drop(&c->part, c->used);
    c->used = 0;
    ah_buf_put(&c->part, s);
    if (!ah_buf_ok(&c->part)) {
        ah_buf_reset(&c->part, c->part.len);
        ah_lua_raise_nomem(L);
    }
    c->taken += (int64_t)s.n;
    ah_process_take(c->p, AH_STDOUT, s.n);
    return true;
}

static bool at_end(const ah_child *c)
{
    return !c->p || ah_process_at_end(c->p, AH_STDOUT);
}

typedef enum found { FOUND_NOTHING, FOUND_LINE, FOUND_TOO_LONG, FOUND_END } found;

/* Skips the rest of a line that was too long. Returns true if its end has come. */
static bool skip(ah_child *c)
{
    ah_slice all = rest_of(c);
    const char *end = all.n ? memchr(all.p, '\n', all.n) : NULL;

    use(c, end ? (size_t)(end - all.p) + 1 : all.n);
    c->skipping = !end;
    return end != NULL;
}

/* Finds the next line without taking it: *line without its end, *whole bytes with its end. */
static found find_line(ah_child *c, size_t most, ah_slice *line, size_t *whole)
{
    ah_slice all;
    const char *end;

    if (c->skipping && !skip(c))
        return at_end(c) ? FOUND_END : FOUND_NOTHING;
    all = rest_of(c);
    end = all.n > c->looked ? memchr(all.p + c->looked, '\n', all.n - c->looked) : NULL;
    *whole = end ? (size_t)(end - all.p) + 1 : all.n;
    *line = (ah_slice){all.p, end ? (size_t)(end - all.p) : all.n};
    if (end && line->n > 0 && line->p[line->n - 1] == '\r')
        line->n--;
    if (line->n > most) {
        c->skipping = !end;
        return FOUND_TOO_LONG;
    }
    if (end)
        return FOUND_LINE;
    c->looked = all.n;
    if (!at_end(c))
        return FOUND_NOTHING;
    return all.n ? FOUND_LINE : FOUND_END;
}

static bool is_blank(ah_slice s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
            return false;
    return true;
}

/* -- false err    for a line that cannot be returned; the line is on the stack or used at once */
static int push_bad_line(lua_State *L, const ah_child *c, ah_slice line, const char *why)
{
    ah_buf *b = ah_lua_push_buf(L, 4 * BEGINNING);
    ah_err err;

    ah_excerpt((ah_slice){line.p, line.n < BEGINNING ? line.n : BEGINNING}, &c->lua->host->secrets,
               BEGINNING, b);
    if (!ah_buf_cut_short(b))
        return ah_lua_raise_nomem(L);
    ah_err_set(&err, AH_TOOL_VALIDATION, "'%s' has written %s; it begins: %.*s", c->name, why,
               AH_FMT(ah_buf_slice(b)));
    lua_pushboolean(L, false);
    ah_lua_push_error(L, &err);
    return 2;
}

static int push_too_long(lua_State *L, ah_child *c, const ah_child_wait *w, ah_slice line,
                         size_t whole)
{
    char why[96];
    int n;

    snprintf(why, sizeof why, "a line of more than %zu bytes (max), which is skipped", w->bytes);
    n = push_bad_line(L, c, line, why);
    use(c, whole);
    return n;
}

/* The text stays on the stack: decoding it may run the collector, and so a script. */
static int push_line(lua_State *L, ah_child *c, const ah_child_wait *w, ah_slice line, size_t whole)
{
    ah_err err;

    lua_pushlstring(L, line.p, line.n);
    use(c, whole);
    if (!w->json)
        return 1;
    line.p = lua_tolstring(L, -1, &line.n);
    if (is_blank(line)) {
        lua_pop(L, 1);
        return 0;
    }
    switch ((int)ah_lua_decode(L, line, "a line that", &err)) {
    case AH_OK:
        return 1;
    case AH_NOMEM:
        return ah_lua_raise_nomem(L);
    }
    return push_bad_line(L, c, line, err.message);
}

/* Pushes a line or an error and returns the number of values; 0: nothing is available yet. */
static int take_line(lua_State *L, ah_child *c, const ah_child_wait *w)
{
    ah_slice line;
    size_t whole;
    int n = 0;

    do {
        switch (find_line(c, w->bytes, &line, &whole)) {
        case FOUND_LINE:
            n = push_line(L, c, w, line, whole);
            continue;
        case FOUND_TOO_LONG:
            return push_too_long(L, c, w, line, whole);
        case FOUND_END:
            lua_pushnil(L);
            return 1;
        case FOUND_NOTHING:
            if (!refill(L, c))
                return 0;
        }
    } while (n == 0);
    return n;
}

static int push_bytes(lua_State *L, ah_child *c, size_t n)
{
    lua_pushlstring(L, rest_of(c).p, n);
    use(c, n);
    return 1;
}

/* The same for bytes. */
static int take_bytes(lua_State *L, ah_child *c, const ah_child_wait *w)
{
    ah_err err;
    size_t n;

    c->skipping = false;
    for (;;) {
        n = rest_of(c).n;
        if (w->form == AH_FORM_ALL && n > w->bytes) {
            ah_err_set(&err, AH_BUDGET,
                       "'%s' has written more than %zu bytes: read them piece by piece", c->name,
                       w->bytes);
            return ah_child_fails(L, &err);
        }
        if (n >= w->bytes && w->form == AH_FORM_BYTES)
            return push_bytes(L, c, w->bytes);
        if (n > 0 && w->form == AH_FORM_SOME)
            return push_bytes(L, c, n < w->bytes ? n : w->bytes);
        if (refill(L, c))
            continue;
        if (!at_end(c))
            return 0;
        if (n > 0 || w->form == AH_FORM_ALL)
            return push_bytes(L, c, n);
        lua_pushnil(L);
        return 1;
    }
}

static void refuse_second(lua_State *L, const ah_child *c)
{
    if (ah_child_is_read(c))
        ah_lua_raise(L, AH_USAGE,
                     "the output of '%s' is being read by another task: let one task read and pass "
                     "the data on",
                     c->name);
}

static int read_on(lua_State *L, int status, lua_KContext ctx)
{
    ah_child_wait *w = lua_touserdata(L, (int)ctx);
    ah_child *c = w->of;
    int n;

    (void)status;
    if (c->closing)
        return ah_child_is_closed(L, c);
    if ((n = w->form == AH_FORM_LINE ? take_line(L, c, w) : take_bytes(L, c, w)) > 0)
        return n;
    if (w->late) {
        lua_pushboolean(L, false);
        return ah_child_push_late(
            L, c,
            w->form == AH_FORM_LINE ? "written a line" : "written the bytes that were asked for");
    }
    refuse_second(L, c);
    return ah_child_await(L, (int)ctx, w, read_on);
}

static const ah_option line_rows[] = {
    {.name = "json",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(ah_child_wait, json),
     .doc = "decodes each line"},
    {.name = "max",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = AH_CHILD_MOST_READ,
     .unit = "bytes",
     .otherwise = "16777216",
     .type = "integer",
     .to = AH_TO_SIZE(ah_child_wait, bytes),
     .doc = "size of a line; a longer one is skipped and reported"},
    {0},
};
const ah_subject ah_subject_process_line = {.what = "process:line",
                                            .type = "ah.LineOptions",
                                            .row = line_rows,
                                            .base = &ah_subject_process_time};

/* p:line { json, max, timeout } -> a line, or its value with json; nil at the end; false, err */
int ah_child_line(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_child_wait *w;

    lua_settop(L, 2);
    refuse_second(L, c);
    w = ah_child_push_wait(L, c, AH_CHILD_OUTPUT); /* -- p options w */
    ah_child_options(L, 2, "process:line", &ah_subject_process_line, w);
    return read_on(L, LUA_OK, 3);
}

/* (state, last), with the object and a wait with the options as upvalues. Each call has a wait of
 * its own, since another task may call meanwhile. */
static int next_line(lua_State *L)
{
    const ah_child_wait *as = lua_touserdata(L, lua_upvalueindex(2));
    ah_child_wait *w;
    ah_child *c;

    lua_settop(L, 0);
    lua_pushvalue(L, lua_upvalueindex(1));
    c = ah_child_check(L);
    refuse_second(L, c);
    w = ah_child_push_wait(L, c, AH_CHILD_OUTPUT); /* -- p w */
    w->json = as->json;
    w->bytes = as->bytes;
    w->for_ms = as->for_ms;
    ah_child_set_time(w);
    return read_on(L, LUA_OK, 2);
}

int ah_child_lines(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_child_wait *w;

    lua_settop(L, 2);
    w = ah_child_push_wait(L, c, AH_CHILD_OUTPUT); /* -- p options w */
    ah_child_options(L, 2, "process:lines", &ah_subject_process_line, w);
    lua_remove(L, 2);
    lua_pushcclosure(L, next_line, 2);
    return 1;
}

/* Reads the value at 2, the number of bytes to read. */
static void read_amount(lua_State *L, ah_child_wait *w)
{
    lua_Integer n;

    w->bytes = AH_CHILD_MOST_READ;
    if (lua_isnoneornil(L, 2)) {
        w->form = AH_FORM_SOME;
        return;
    }
    if (lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), "all") == 0) {
        w->form = AH_FORM_ALL;
        return;
    }
    n = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : 0;
    if (n < 1 || n > AH_CHILD_MOST_READ)
        ah_lua_raise(
            L, AH_USAGE,
            "process:read: give a number of bytes from 1 to %d, \"all\", or nothing for what is "
            "there, found %s",
            AH_CHILD_MOST_READ, luaL_tolstring(L, 2, NULL));
    w->form = AH_FORM_BYTES;
    w->bytes = (size_t)n;
}

/* p:read(n | "all" | nil, { timeout }) -> bytes; nil at the end; false, err */
int ah_child_read(lua_State *L)
{
    ah_child *c = ah_child_check(L);
    ah_child_wait *w;

    lua_settop(L, 3);
    refuse_second(L, c);
    w = ah_child_push_wait(L, c, AH_CHILD_OUTPUT); /* -- p n options w */
    read_amount(L, w);
    lua_settop(L, 4);
    ah_child_options(L, 3, "process:read", &ah_subject_process_time, w);
    return read_on(L, LUA_OK, 4);
}
