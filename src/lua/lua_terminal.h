/* The terminal of the program as a script has it open. The object owns the terminal, its buffers
 * and its timers; at most one task waits for a key. Two files share this header:
 *  lua_terminal.c        opening and closing, keys and the wait for them
 *  lua_terminal_show.c   output: texts with styles, the live area, the size
 *
 * Callers: its module. */
#ifndef AH_LUA_TERMINAL_H
#define AH_LUA_TERMINAL_H

#include "base/area.h"
#include "base/keys.h"
#include "lua/lua_task.h"

#define AH_TERMINAL "agenthost.terminal"

/* The outcome of a wait for a key. */
typedef enum ah_key_news {
    AH_KEY_NEWS_NOTHING,
    AH_KEY_NEWS_KEY,
    AH_KEY_NEWS_PASTE,
    AH_KEY_NEWS_RESIZE,
    AH_KEY_NEWS_END,
    AH_KEY_NEWS_TIMEOUT,
    AH_KEY_NEWS_FAILURE
} ah_key_news;

enum { AH_TERMINAL_CHUNK = 4096 };

typedef struct ah_lua_terminal {
    ah_lua *lua;
    ah_tty tty;
    bool open;
    int fd, news;
    struct ah_key_wait *wait; /* NULL: no task waits */
    ah_timer unfinished;      /* for a sequence that has begun */
    int64_t escape_ms, last;  /* last: when bytes arrived, by the loop clock */
    ah_keys keys;
    char chunk[AH_TERMINAL_CHUNK]; /* bytes read and not decoded yet */
    ah_slice in;
    bool ended, resized;
    int failed;   /* errno of reading */
    int in_a_row; /* keys taken in a row without a wait */
    ah_key key;   /* for AH_KEY_NEWS_KEY */
    ah_area area;
    ah_buf line; /* for assembling a text, or the lines of the area */
    ah_buf out;  /* output to be written */
} ah_lua_terminal;

/* Returns the open terminal at 1. Raises if it is closed. */
ah_lua_terminal *ah_terminal_check(lua_State *L);
/* Calls of the program's functions from both files. These functions must not use the host. */
void ah_terminal_writing(const ah_lua_terminal *t);
bool ah_terminal_kept(const ah_lua_terminal *t);
/* Reads the terminal's size, and redraws the area if the size has changed or the program has
 * removed the area. */
void ah_terminal_look(ah_lua_terminal *t);
int ah_terminal_size(lua_State *L);        /* :size() -> columns, rows */
int ah_terminal_write(lua_State *L);       /* :write(text) */
int ah_terminal_print_above(lua_State *L); /* :print_above(text) */
int ah_terminal_live(lua_State *L);        /* :live(lines, cursor) -> true if shown */
int ah_terminal_clear(lua_State *L);       /* :clear() */
int ah_terminal_bell(lua_State *L);        /* :bell() */

#endif
