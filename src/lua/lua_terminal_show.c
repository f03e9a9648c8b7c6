/* Texts of a script on its terminal. Any text is safe: only the styles that the script names become
 * escape sequences, and only where colors are wanted. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/harmless.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_options.h"
#include "lua/lua_terminal.h"
#include "lua/lua_value.h"

_Static_assert((int)AH_AREA_AWAY <= (int)AH_TTY_AWAY, "what takes an area away has room");

enum { MAX_STYLE = 96, MAX_DEPTH = 8, MAX_TEXT = 1 << 20, PATIENCE_MS = 100 };
enum { COLUMNS = 80, ROWS = 24, BRIGHT = 8, PALETTE = 255, FOREGROUND = 30, BACKGROUND = 40 };

/* -- to the terminal --------------------------------------------------------------------------- */

/* Waits for a slow terminal, as print does, but not after the script is to end. */
static void write_out(ah_lua_terminal *t)
{
    ah_slice left = ah_buf_slice(&t->out);
    struct pollfd ready = {.fd = t->fd, .events = POLLOUT};

    while (left.n) {
        ssize_t n = write(t->fd, left.p, left.n);

        if (n > 0) {
            left.p += n;
            left.n -= (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            break; /* the next read of keys reports the end */
        } else {
            poll(&ready, 1, PATIENCE_MS);
        }
        if (n <= 0 && (atomic_load(&t->lua->host->stop) || atomic_load(&t->lua->host->cancel)))
            break;
    }
    ah_buf_reset(&t->out, 0);
}

void ah_terminal_writing(const ah_lua_terminal *t)
{
    ah_host_call_out(t->lua->host, true);
    t->tty.writing(t->tty.ud);
    ah_host_came_back(t->lua->host, true);
}

bool ah_terminal_kept(const ah_lua_terminal *t)
{
    bool kept;

    ah_host_call_out(t->lua->host, true);
    kept = t->tty.kept(t->tty.ud);
    ah_host_came_back(t->lua->host, true);
    return kept;
}

static void tell_shown(const ah_lua_terminal *t, const char *away, size_t n)
{
    ah_host_call_out(t->lua->host, true);
    t->tty.shown(t->tty.ud, away, n);
    ah_host_came_back(t->lua->host, true);
}

/* Called before output is assembled: output of others up to now is then known. */
static void begin(ah_lua_terminal *t)
{
    ah_terminal_writing(t);
    if (!ah_terminal_kept(t))
        ah_area_forget(&t->area);
    (void)ah_buf_ok(&t->out);
    ah_buf_reset(&t->out, 0);
}

static void end(lua_State *L, ah_lua_terminal *t)
{
    char away[AH_AREA_AWAY];

    if (t->tty.sequences)
        ah_area_draw(&t->area, &t->out);
    if (!ah_buf_ok(&t->out)) {
        t->area.drawn = false;
        if (L && t->out.status == AH_NOMEM)
            ah_lua_raise_nomem(L);
        if (L)
            ah_lua_raise(L, AH_USAGE, "the terminal takes at most %d MiB at once",
                         (int)(t->out.max >> 20));
        return;
    }
    tell_shown(t, "", 0); /* a signal may come in between */
    write_out(t);
    tell_shown(t, away, ah_area_away(&t->area, away));
}

static void read_size(const ah_lua_terminal *t, unsigned *columns, unsigned *rows)
{
    struct winsize size = {.ws_col = 0};

    if (ioctl(t->fd, TIOCGWINSZ, &size) != 0)
        size.ws_col = size.ws_row = 0;
    *columns = size.ws_col ? size.ws_col : COLUMNS;
    *rows = size.ws_row ? size.ws_row : ROWS;
}

void ah_terminal_look(ah_lua_terminal *t)
{
    unsigned columns, rows;
    bool other;

    read_size(t, &columns, &rows);
    other = columns != t->area.columns || rows != t->area.rows;
    if (!other && (!t->area.text.len || ah_terminal_kept(t)))
        return;
    begin(t);
    if (other)
        ah_area_resize(&t->area, columns, rows, t->tty.reflows);
    t->resized |= other;
    end(NULL, t);
}

int ah_terminal_size(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);

    ah_terminal_look(t);
    lua_pushinteger(L, t->area.columns);
    lua_pushinteger(L, t->area.rows);
    return 2;
}

/* -- styles ------------------------------------------------------------------------------------ */

enum { STYLES = 5 };

typedef struct style_fields {
    bool on[STYLES];
} style_fields;

static const ah_option styled_rows[] = {
    {.name = "bold", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(style_fields, on[0])},
    {.name = "faint", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(style_fields, on[1])},
    {.name = "italic", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(style_fields, on[2])},
    {.name = "underline", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(style_fields, on[3])},
    {.name = "reverse", .kinds = AH_OPT_BOOLEAN, .to = AH_TO_BOOL(style_fields, on[4])},
    {.name = "color", .kinds = AH_OPT_ANY, .is = "string or integer", .type = "string|integer"},
    {.name = "background",
     .kinds = AH_OPT_ANY,
     .is = "string or integer",
     .type = "string|integer"},
    {0},
};
const ah_subject ah_subject_styled = {.what = "terminal",
                                      .type = "ah.Styled",
                                      .doc = "a list of texts, and a style for all of them",
                                      .list = "ah.Shown",
                                      .row = styled_rows};

static void add_code(char style[MAX_STYLE], const char *code)
{
    size_t n = strlen(style);

    snprintf(style + n, MAX_STYLE - n, "\033[%sm", code);
}

static int bad_color(lua_State *L, const char *name)
{
    return ah_lua_raise(
        L, AH_USAGE,
        "terminal: %s must be black, red, green, yellow, blue, magenta, cyan or white, one of "
        "these with bright_ before it, or a number from 0 to %d",
        name, PALETTE);
}

static void add_color(lua_State *L, int idx, const char *name, int base, char style[MAX_STYLE])
{
    static const char *const names[] = {"black", "red",     "green", "yellow",
                                        "blue",  "magenta", "cyan",  "white"};
    static const char bright[] = "bright_";
    char code[24] = "";
    const char *word;

    if (lua_getfield(L, idx, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 0 && lua_tointeger(L, -1) <= PALETTE)
        snprintf(code, sizeof code, "%d;5;%d", base + BRIGHT, (int)lua_tointeger(L, -1));
    word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    for (int i = 0; i < BRIGHT; i++) {
        if (strcmp(word, names[i]) == 0)
            snprintf(code, sizeof code, "%d", base + i);
        if (strncmp(word, bright, sizeof bright - 1) == 0 &&
            strcmp(word + sizeof bright - 1, names[i]) == 0)
            snprintf(code, sizeof code, "%d", base + 60 + i);
    }
    if (!*code)
        bad_color(L, name);
    add_code(style, code);
    lua_pop(L, 1);
}

/* Appends the style of the table at idx to the style around it. */
static void read_style(lua_State *L, int idx, char style[MAX_STYLE])
{
    static const char *const codes[STYLES] = {"1", "2", "3", "4", "7"};
    style_fields f = {{false}};

    ah_options_read(L, idx, &ah_subject_styled, &f);
    for (size_t i = 0; i < STYLES; i++)
        if (f.on[i] && strlen(style) < MAX_STYLE / 2)
            add_code(style, codes[i]);
    if (strlen(style) >= MAX_STYLE * 2 / 3)
        ah_lua_raise(L, AH_USAGE, "terminal: too many nested styles");
    add_color(L, idx, "color", FOREGROUND, style);
    add_color(L, idx, "background", BACKGROUND, style);
}

/* -- texts ------------------------------------------------------------------------------------- */

static void put_text(lua_State *L, ah_lua_terminal *t, int idx, bool lines, const char *style)
{
    bool styled = t->tty.color && *style;
    ah_slice text;

    text.p = lua_tolstring(L, idx, &text.n);
    if (text.n > MAX_TEXT)
        ah_lua_raise(L, AH_USAGE, "terminal: a text of %d bytes is too large, %d are the most",
                     (int)text.n, MAX_TEXT);
    if (styled)
        ah_buf_str(&t->line, style);
    ah_harmless(text, lines, &t->line);
    if (styled)
        ah_buf_str(&t->line, "\033[0m");
}

/* Appends the piece on top of the stack (popped): a text, or a list of pieces with a style for
 * all. */
static void put_piece(lua_State *L, ah_lua_terminal *t, bool lines, const char *outer, int depth)
{
    int idx = lua_gettop(L);
    char style[MAX_STYLE];
    lua_Integer n;

    if (lua_type(L, idx) == LUA_TSTRING || lua_type(L, idx) == LUA_TNUMBER) {
        put_text(L, t, idx, lines, outer);
        lua_pop(L, 1);
        return;
    }
    if (!lua_istable(L, idx))
        ah_lua_raise(L, AH_USAGE, "terminal: expected a text or a list of texts, found a %s",
                     luaL_typename(L, idx));
    if (depth == MAX_DEPTH)
        ah_lua_raise(L, AH_USAGE, "terminal: texts are in more than %d lists", MAX_DEPTH);
    luaL_checkstack(L, 8, "texts");
    snprintf(style, sizeof style, "%s", outer);
    read_style(L, idx, style);
    n = (lua_Integer)lua_rawlen(L, idx);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, idx, i);
        put_piece(L, t, lines, style, depth + 1);
    }
    lua_settop(L, idx - 1);
}

static void begin_line(ah_lua_terminal *t)
{
    (void)ah_buf_ok(&t->line);
    ah_buf_reset(&t->line, 0);
}

static void check_line(lua_State *L, ah_lua_terminal *t)
{
    if (ah_buf_ok(&t->line))
        return;
    if (t->line.status == AH_NOMEM)
        ah_lua_raise_nomem(L);
    ah_lua_raise(L, AH_USAGE, "the terminal takes at most %d MiB at once",
                 (int)(t->line.max >> 20));
}

static int write_line(lua_State *L, bool whole)
{
    ah_lua_terminal *t = ah_terminal_check(L);

    luaL_checkany(L, 2);
    lua_settop(L, 2);
    begin_line(t);
    put_piece(L, t, true, "", 0);
    if (whole)
        ah_buf_char(&t->line, '\n');
    check_line(L, t);
    begin(t);
    if (whole && t->area.above)
        ah_area_print(&t->area, (ah_slice)AH_LIT("\n"), &t->out);
    ah_area_print(&t->area, ah_buf_slice(&t->line), &t->out);
    end(L, t);
    return 0;
}

int ah_terminal_write(lua_State *L)
{
    return write_line(L, false);
}

int ah_terminal_print_above(lua_State *L)
{
    return write_line(L, true);
}

/* -- the live area ----------------------------------------------------------------------------- */

typedef struct cursor {
    int line, column;
} cursor;

static const ah_option cursor_rows[] = {
    {.name = "line",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "the last one",
     .to = AH_TO_INT(cursor, line)},
    {.name = "column",
     .kinds = AH_OPT_INTEGER,
     .least = 1,
     .otherwise = "behind its end",
     .to = AH_TO_INT(cursor, column)},
    {0},
};
const ah_subject ah_subject_cursor = {
    .what = "terminal:live: cursor", .type = "ah.Cursor", .row = cursor_rows};

/* Reads cursor = { line, column }. Defaults: the last line; the end of the line. */
static void read_cursor(lua_State *L, ah_lua_terminal *t, lua_Integer n_lines)
{
    cursor c = {.line = (int)n_lines};

    t->area.cursor = false;
    if (lua_isnil(L, 3))
        return;
    ah_options_read(L, 3, &ah_subject_cursor, &c);
    if (c.line > n_lines)
        ah_lua_raise(L, AH_USAGE, "terminal:live: the cursor is to be in line %d of %d", c.line,
                     (int)n_lines);
    t->area.cursor = n_lines > 0;
    t->area.cursor_line = (size_t)c.line - (c.line > 0);
    t->area.cursor_column = c.column ? (size_t)c.column - 1 : SIZE_MAX;
}

int ah_terminal_live(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);
    lua_Integer n;

    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    n = ah_lua_list_check(L, 2, "terminal:live: lines");
    begin_line(t);
    for (lua_Integer i = 1; i <= n; i++) {
        lua_geti(L, 2, i);
        put_piece(L, t, false, "", 0);
        ah_buf_char(&t->line, '\n');
    }
    check_line(L, t);
    if (t->line.len > AH_AREA_TEXT)
        return ah_lua_raise(L, AH_USAGE, "terminal:live: the lines are larger than %d bytes",
                            AH_AREA_TEXT);
    read_cursor(L, t, n);
    begin(t);
    ah_area_erase(&t->area, &t->out);
    ah_buf_reset(&t->area.text, 0);
    ah_buf_put(&t->area.text, ah_buf_slice(&t->line));
    if (!ah_buf_ok(&t->area.text)) {
        ah_buf_reset(&t->area.text, 0);
        end(NULL, t);
        return ah_lua_raise_nomem(L);
    }
    end(L, t);
    lua_pushboolean(L, t->tty.sequences);
    return 1;
}

int ah_terminal_bell(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);

    begin(t);
    if (t->tty.sequences)
        ah_buf_char(&t->out, '\a');
    end(L, t);
    return 0;
}

int ah_terminal_clear(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);

    begin(t);
    if (t->tty.sequences)
        ah_area_clear_screen(&t->area, &t->out);
    end(L, t);
    return 0;
}
