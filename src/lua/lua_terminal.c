/* ah.terminal: keys as they arrive, while other work continues. Input is read only during a wait
 * for a key; otherwise it stays with the system and takes no memory of ours. */
#include "lua/lua_terminal.h"

#include <errno.h>
#include <unistd.h>

#include "base/width.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_open.h"
#include "lua/lua_options.h"
#include "lua/lua_value.h"

static const char WAIT[] = "agenthost.key_wait";

enum { MAX_PASTE = 1 << 20, MOST_PASTE = 64 << 20, MAX_OUT = 4 << 20 };
enum { SEQUENCE_MS = 1000, MOST_IN_A_ROW = 32 };
#define ESCAPE_SECONDS 0.05

/* One wait for a key. `terminal` NULL: it is closed, or the wait is over. */
typedef struct ah_key_wait {
    ah_task_waiter waiter;
    ah_lua_terminal *terminal;
    ah_timer timeout;
    ah_key_news came;
} key_wait;

static key_wait *wait_of(ah_task_waiter *w)
{
    return (key_wait *)(void *)((char *)w - offsetof(key_wait, waiter));
}

static void stop_reading(ah_lua_terminal *t)
{
    t->wait = NULL;
    ah_timer_unset(&t->unfinished);
    ah_loop_watch(t->lua->host->loop, t->fd, 0, NULL, NULL, NULL);
}

static void stop_wait(ah_task_waiter *w)
{
    key_wait *q = wait_of(w);

    ah_timer_unset(&q->timeout);
    if (q->terminal)
        stop_reading(q->terminal);
    q->terminal = NULL;
}

static int wait_gc(lua_State *L)
{
    stop_wait(&((key_wait *)luaL_checkudata(L, 1, WAIT))->waiter);
    return 0;
}

static void came(key_wait *q, ah_key_news what)
{
    q->came = what;
    stop_wait(&q->waiter);
    ah_task_waiter_done(&q->waiter);
}

/* -- reading keys ---------------------------------------------------------------------------- */

/* Reads at most one chunk, so that other work runs between two. */
static void read_chunk(ah_lua_terminal *t)
{
    ssize_t n = read(t->fd, t->chunk, sizeof t->chunk);

    t->in = (ah_slice){t->chunk, n > 0 ? (size_t)n : 0};
    if (n > 0)
        t->last = ah_host_now(t->lua->host);
    if (n == 0 || (n < 0 && errno == EIO)) /* the terminal is gone */
        t->ended = true;
    else if (n < 0 && errno != EAGAIN && errno != EINTR)
        t->failed = errno;
}

static ah_key_news of_keys(ah_keys_event e)
{
    return e == AH_KEYS_KEY     ? AH_KEY_NEWS_KEY
           : e == AH_KEYS_PASTE ? AH_KEY_NEWS_PASTE
                                : AH_KEY_NEWS_NOTHING;
}

/* Returns a sequence cut by the end of the input as a key, then the end. */
static ah_key_news at_end(ah_lua_terminal *t)
{
    ah_key_news c = of_keys(ah_keys_quiet(&t->keys, &t->key));

    if (c != AH_KEY_NEWS_NOTHING)
        return c;
    return t->failed ? AH_KEY_NEWS_FAILURE : AH_KEY_NEWS_END;
}

/* Returns when a sequence that has begun is given up; 0: none has begun. */
static int64_t given_up_at(const ah_lua_terminal *t)
{
    ah_keys_wait w = ah_keys_wait_for(&t->keys);

    if (w == AH_KEYS_COMPLETE)
        return 0;
    return t->last + (w == AH_KEYS_ESCAPE ? t->escape_ms : SEQUENCE_MS);
}

static ah_key_news next_event(ah_lua_terminal *t)
{
    int64_t end;
    ah_key_news c;

    if (t->resized) {
        t->resized = false;
        return AH_KEY_NEWS_RESIZE;
    }
    if (!t->in.n && !t->ended && !t->failed)
        read_chunk(t);
    c = of_keys(ah_keys_next(&t->keys, &t->in, &t->key));
    if (c == AH_KEY_NEWS_NOTHING && (t->ended || t->failed))
        return at_end(t);
    end = given_up_at(t);
    if (c == AH_KEY_NEWS_NOTHING && end && ah_host_now(t->lua->host) >= end)
        c = of_keys(ah_keys_quiet(&t->keys, &t->key));
    return c;
}

static void wait_for_rest(ah_lua_terminal *t)
{
    int64_t end = given_up_at(t);

    if (end)
        ah_timer_set(t->lua->host->loop, &t->unfinished, end);
    else
        ah_timer_unset(&t->unfinished);
}

static bool give_event(ah_lua_terminal *t)
{
    ah_key_news c = next_event(t);

    if (c != AH_KEY_NEWS_NOTHING)
        came(t->wait, c);
    return c != AH_KEY_NEWS_NOTHING;
}

static void on_readable(void *ud, int fd, int events)
{
    ah_lua_terminal *t = ud;

    (void)fd;
    (void)events;
    if (t->wait && !give_event(t))
        wait_for_rest(t);
}

/* If the loop was late, there may be bytes to read, which come first. */
static void on_unfinished(ah_timer *timer)
{
    ah_lua_terminal *t =
        (ah_lua_terminal *)(void *)((char *)timer - offsetof(ah_lua_terminal, unfinished));

    on_readable(t, t->fd, 0);
}

static void on_timeout(ah_timer *timer)
{
    key_wait *q = (key_wait *)(void *)((char *)timer - offsetof(key_wait, timeout));

    if (q->came != AH_KEY_NEWS_NOTHING)
        came(q, q->came);
    else if (q->terminal && !give_event(q->terminal))
        came(q, AH_KEY_NEWS_TIMEOUT);
}

static void on_news(void *ud, int fd, int events)
{
    ah_lua_terminal *t = ud;
    char bytes[64];

    (void)events;
    while (read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
    ah_terminal_look(t);
    if (t->wait && t->resized)
        give_event(t);
}

/* -- :key() ------------------------------------------------------------------------------------ */

static void set_bool(lua_State *L, const char *name, bool value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

static int push_key(lua_State *L, const ah_key *key)
{
    lua_createtable(L, 0, 5);
    lua_pushstring(L, key->name);
    lua_setfield(L, -2, "key");
    if (*key->text) {
        lua_pushstring(L, key->text);
        lua_setfield(L, -2, "text");
    }
    set_bool(L, "ctrl", key->ctrl);
    set_bool(L, "alt", key->alt);
    set_bool(L, "shift", key->shift);
    if (key->super)
        set_bool(L, "super", true);
    return 1;
}

static int push_paste(lua_State *L, ah_lua_terminal *t)
{
    ah_buf *b = ah_lua_push_buf(L, SIZE_MAX); /* -- b */
    bool cut;

    lua_toclose(L, -1);
    cut = ah_keys_pasted(&t->keys, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    lua_createtable(L, 0, 2);
    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    lua_setfield(L, -2, "paste");
    if (cut)
        set_bool(L, "truncated", true);
    return 1;
}

static int push_resize(lua_State *L, const ah_lua_terminal *t)
{
    lua_createtable(L, 0, 1);
    lua_createtable(L, 0, 2);
    lua_pushinteger(L, t->area.columns);
    lua_setfield(L, -2, "columns");
    lua_pushinteger(L, t->area.rows);
    lua_setfield(L, -2, "rows");
    lua_setfield(L, -2, "resize");
    return 1;
}

static int push_error(lua_State *L, const ah_err *err)
{
    lua_pushnil(L);
    ah_lua_push_error(L, err);
    return 2;
}

static int push_event(lua_State *L, ah_lua_terminal *t, ah_key_news what)
{
    ah_err err;

    switch (what) {
    case AH_KEY_NEWS_KEY:
        return push_key(L, &t->key);
    case AH_KEY_NEWS_PASTE:
        return push_paste(L, t);
    case AH_KEY_NEWS_RESIZE:
        return push_resize(L, t);
    case AH_KEY_NEWS_TIMEOUT:
        ah_err_set(&err, AH_DEADLINE, "no key came in time");
        return push_error(L, &err);
    case AH_KEY_NEWS_FAILURE:
        ah_err_set(&err, AH_INTERNAL, "the terminal cannot be read: %s", strerror(t->failed));
        return push_error(L, &err);
    case AH_KEY_NEWS_NOTHING:
    case AH_KEY_NEWS_END:
        break;
    }
    lua_pushnil(L);
    return 1;
}

static int end_wait(lua_State *L, int status, lua_KContext ctx)
{
    key_wait *q = luaL_checkudata(L, (int)ctx, WAIT);

    (void)status;
    return push_event(L, luaL_checkudata(L, 1, AH_TERMINAL), q->came);
}

/* seconds: below 0, no limit. what: news that is already present and returned after other work has
 * run. */
static int wait_for_key(lua_State *L, ah_lua_terminal *t, double seconds, ah_key_news what)
{
    ah_loop *loop = t->lua->host->loop;
    key_wait *q = lua_newuserdatauv(L, sizeof *q, 0);
    int64_t now = ah_host_now(t->lua->host);
    ah_err err;

    *q = (key_wait){.waiter.leave = stop_wait, .timeout.fn = on_timeout, .came = what};
    luaL_setmetatable(L, WAIT);
    ah_task_waiter_keep(L, &q->waiter);
    if (what == AH_KEY_NEWS_NOTHING &&
        ah_loop_watch(loop, t->fd, AH_IN, on_readable, t, &err) != AH_OK) {
        ah_task_waiter_done(&q->waiter);
        return push_error(L, &err);
    }
    q->terminal = t;
    t->wait = q;
    if (what != AH_KEY_NEWS_NOTHING || seconds >= 0)
        ah_timer_set(loop, &q->timeout,
                     what == AH_KEY_NEWS_NOTHING ? now + ah_ms_of(seconds) : now);
    if (what == AH_KEY_NEWS_NOTHING)
        wait_for_rest(t);
    t->in_a_row = 0;
    return ah_lua_await(L, &q->waiter, lua_gettop(L), end_wait);
}

/* terminal:key(seconds) -> an event; nil at the end of the input; nil, error when the time is
 * over. */
static int key(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);
    double seconds = luaL_optnumber(L, 2, -1);
    ah_key_news what;

    if (!lua_isnoneornil(L, 2) && (!(seconds >= 0) || seconds > 1e9))
        return ah_lua_raise(L, AH_USAGE, "terminal:key: seconds must be from 0 to 1e9");
    ah_lua_can_await(L);
    if (t->wait)
        return ah_lua_raise(
            L, AH_USAGE,
            "terminal:key: another task waits for a key already; let one read and tell "
            "the others");
    lua_settop(L, 1);
    ah_terminal_look(t);
    what = next_event(t);
    if (what == AH_KEY_NEWS_NOTHING && seconds == 0 &&
        ah_keys_wait_for(&t->keys) == AH_KEYS_COMPLETE)
        what = AH_KEY_NEWS_TIMEOUT;
    if (what != AH_KEY_NEWS_NOTHING && t->in_a_row++ < MOST_IN_A_ROW)
        return push_event(L, t, what);
    return wait_for_key(L, t, seconds, what);
}

/* -- opening and closing ----------------------------------------------------------------------- */

ah_lua_terminal *ah_terminal_check(lua_State *L)
{
    ah_lua_terminal *t = luaL_checkudata(L, 1, AH_TERMINAL);

    if (!t->open)
        ah_lua_raise(L, AH_USAGE, "the terminal is closed: open it again with ah.terminal()");
    return t;
}

static void close_terminal(ah_lua_terminal *t)
{
    if (t->open) {
        t->open = false;
        if (t->wait)
            came(t->wait, AH_KEY_NEWS_END);
        ah_loop_watch(t->lua->host->loop, t->news, 0, NULL, NULL, NULL);
        ah_terminal_writing(t);
        ah_host_call_out(t->lua->host, true);
        t->tty.leave(t->tty.ud);
        ah_host_came_back(t->lua->host, true);
    }
    ah_keys_clear(&t->keys);
    ah_area_clear(&t->area);
    (void)ah_buf_ok(&t->line);
    (void)ah_buf_ok(&t->out);
    ah_buf_clear(&t->line);
    ah_buf_clear(&t->out);
}

static int terminal_close(lua_State *L)
{
    close_terminal(luaL_checkudata(L, 1, AH_TERMINAL));
    return 0;
}

/* terminal:suspend(): returns when the program continues. The area is drawn again then, as after
 * every signal through `news`. */
static int suspend(lua_State *L)
{
    ah_lua_terminal *t = ah_terminal_check(L);

    ah_host_call_out(t->lua->host, true);
    t->tty.suspend(t->tty.ud);
    ah_host_came_back(t->lua->host, true);
    ah_terminal_look(t);
    return 0;
}

static int terminal_gc(lua_State *L)
{
    close_terminal(luaL_checkudata(L, 1, AH_TERMINAL));
    return ah_lua_retire(L);
}

static int not_there(lua_State *L)
{
    ah_err err;

    ah_err_set(
        &err, AH_USAGE,
        "ah.terminal: only the command agenthost gives scripts its terminal: start the script with "
        "`agenthost script.lua`; a program that embeds agenthost gives one with `tty` of its "
        "ah_config");
    return push_error(L, &err);
}

static int cannot_open(lua_State *L, int why)
{
    ah_err err;

    if (why == EBUSY)
        ah_err_set(&err, AH_USAGE,
                   "ah.terminal: the terminal is open already: close it first, or pass on what "
                   "ah.terminal() returned");
    else
        ah_err_set(&err, AH_USAGE,
                   "ah.terminal: there is no terminal to open (%s): run the command in one, or use "
                   "io.read and print where there is none",
                   strerror(why));
    return push_error(L, &err);
}

typedef struct terminal_fields {
    bool signals, distinct;
    int64_t escape_ms;
    size_t max_paste;
} terminal_fields;

static const ah_option terminal_rows[] = {
    {.name = "signals",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(terminal_fields, signals),
     .doc = "Ctrl-C, Ctrl-Z and Ctrl-\\ send their usual signals; with `false` they are keys"},
    {.name = "distinct",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .to = AH_TO_BOOL(terminal_fields, distinct),
     .doc = "distinguishes Shift-Enter, Ctrl-I and an immediate Escape, if the terminal knows "
            "kitty's keyboard protocol. Needs `signals = false`"},
    {.name = "escape",
     .kinds = AH_OPT_NUMBER,
     .least = 0.001,
     .most = 10,
     .otherwise = "0.05",
     .unit = "seconds",
     .to = AH_TO_MS(terminal_fields, escape_ms),
     .doc = "time after which an Escape without a sequence is the key"},
    {.name = "max_paste",
     .kinds = AH_OPT_NUMBER,
     .least = 1,
     .most = MOST_PASTE,
     .otherwise = "1048576",
     .unit = "bytes",
     .to = AH_TO_SIZE(terminal_fields, max_paste),
     .doc = "size of a paste"},
    {0},
};
const ah_subject ah_subject_terminal = {
    .what = "ah.terminal", .type = "ah.TerminalOptions", .row = terminal_rows};

/* Reads the options; returns the mode of enter. */
static unsigned read_options(lua_State *L, ah_lua_terminal *t)
{
    terminal_fields f = {
        .signals = true, .escape_ms = ah_ms_of(ESCAPE_SECONDS), .max_paste = MAX_PASTE};

    if (lua_isnil(L, 1)) {
        lua_newtable(L);
        lua_replace(L, 1);
    }
    ah_options_read(L, 1, &ah_subject_terminal, &f);
    if (f.signals && f.distinct)
        ah_lua_raise(L, AH_USAGE,
                     "ah.terminal: with `distinct` Ctrl-C is a key like others and no signal: add "
                     "`signals = false`");
    t->escape_ms = f.escape_ms;
    t->keys.paste.max = f.max_paste;
    return (f.signals ? AH_TTY_SIGNALS : 0u) | (f.distinct ? AH_TTY_DISTINCT : 0u);
}

static int enter(ah_lua_terminal *t, unsigned mode)
{
    int failed;

    ah_terminal_writing(t);
    ah_host_call_out(t->lua->host, true);
    failed = t->tty.enter(t->tty.ud, mode, &t->fd, &t->news);
    ah_host_came_back(t->lua->host, true);
    return failed;
}

/* Makes the object before the terminal is changed, so that no failure leaves it changed. */
static int open_terminal(lua_State *L)
{
    ah_lua *h = ah_lua_of(L);
    ah_lua_terminal *t;
    unsigned mode;
    int failed;
    ah_err err;

    if (!h->host->cfg.tty.enter)
        return not_there(L);
    lua_remove(L, 1);
    lua_settop(L, 1);
    t = lua_newuserdatauv(L, sizeof *t, 0); /* -- options t */
    memset(t, 0, sizeof *t);
    t->lua = h;
    t->tty = h->host->cfg.tty;
    t->unfinished.fn = on_unfinished;
    ah_keys_init(&t->keys, &h->mem, MAX_PASTE);
    ah_area_init(&t->area, &h->mem);
    ah_buf_init(&t->line, &h->mem, MAX_OUT);
    ah_buf_init(&t->out, &h->mem, MAX_OUT);
    luaL_setmetatable(L, AH_TERMINAL);
    mode = read_options(L, t);
    if ((failed = enter(t, mode)) != 0)
        return cannot_open(L, failed);
    t->open = true;
    if (ah_loop_watch(h->host->loop, t->news, AH_IN, on_news, t, &err) != AH_OK) {
        close_terminal(t);
        return push_error(L, &err);
    }
    ah_terminal_look(t);
    t->resized = false;
    return 1;
}

/* -- characters and columns
 * ------------------------------------------------------------------------- */

static int width(lua_State *L)
{
    lua_Integer column = luaL_optinteger(L, 2, 1);
    ah_slice text;

    text.p = luaL_checklstring(L, 1, &text.n);
    if (column < 1 || column > INT32_MAX)
        return ah_lua_raise(L, AH_USAGE, "ah.terminal.width: column must be 1 or more");
    lua_pushinteger(L, (lua_Integer)ah_width(text, (size_t)column - 1));
    return 1;
}

/* Returns the index of an ASCII character at or before i, with which a character always begins; 0
 * if there is none. */
static size_t sure_beginning(const char *p, size_t i)
{
    while (i > 0 && (unsigned char)p[i] >= 0x80)
        i--;
    return i;
}

/* ah.terminal.character(text, at) -> first, last, columns: the character that has the byte `at`,
 * with its marks and joined characters. */
static int character(lua_State *L)
{
    lua_Integer at = luaL_checkinteger(L, 2);
    unsigned columns = 0;
    size_t from, n;
    ah_slice text;

    text.p = luaL_checklstring(L, 1, &text.n);
    if (at < 1 || (lua_Unsigned)at > text.n)
        return ah_lua_raise(L, AH_USAGE,
                            "ah.terminal.character: byte %d is not in the text of %d bytes",
                            (int)at, (int)text.n);
    from = sure_beginning(text.p, (size_t)at - 1);
    while ((n = ah_width_next((ah_slice){text.p + from, text.n - from}, &columns)) <
           (size_t)at - from)
        from += n;
    lua_pushinteger(L, (lua_Integer)from + 1);
    lua_pushinteger(L, (lua_Integer)(from + n));
    lua_pushinteger(L, columns);
    return 3;
}

static void push_class(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", terminal_gc}, {"__close", terminal_close}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"key", key},
                                       {"size", ah_terminal_size},
                                       {"write", ah_terminal_write},
                                       {"print_above", ah_terminal_print_above},
                                       {"live", ah_terminal_live},
                                       {"clear", ah_terminal_clear},
                                       {"bell", ah_terminal_bell},
                                       {"suspend", suspend},
                                       {"close", terminal_close},
                                       {NULL, NULL}};

    luaL_newmetatable(L, AH_TERMINAL);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "terminal");
    lua_setfield(L, -2, "__index");
    lua_pushliteral(L, AH_TERMINAL);
    lua_setfield(L, -2, "__metatable");
}

void ah_lua_open_terminal(lua_State *L)
{
    push_class(L);
    luaL_newmetatable(L, WAIT);
    lua_pushcfunction(L, wait_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 2);
    lua_newtable(L); /* -- ah terminal */
    lua_pushcfunction(L, width);
    lua_setfield(L, -2, "width");
    lua_pushcfunction(L, character);
    lua_setfield(L, -2, "character");
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, open_terminal);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "terminal");
}
