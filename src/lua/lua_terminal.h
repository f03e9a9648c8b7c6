/* The terminal of the program as a script has it open, shared by the two files of it:
 *   lua_terminal.c        opening and closing, keys and the wait for them
 *   lua_terminal_show.c   what is written: texts with styles, the live area, the size */
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
    struct ah_key_wait *wait; /* NULL: nobody waits */
    ah_timer unfinished;      /* a sequence that has begun */
    int64_t escape_ms, last;  /* last: when bytes came, by the loop's clock */
    ah_keys keys;
    char chunk[AH_TERMINAL_CHUNK]; /* read, and not yet looked at: */
    ah_slice in;
    bool ended, resized;
    int failed;   /* errno of reading */
    int in_a_row; /* keys that were there without a wait */
    ah_key key;   /* of AH_KEY_NEWS_KEY */
    ah_area area;
    ah_buf line; /* what is being put together: a text, the lines of the area */
    ah_buf out;  /* what is to be written */
} ah_lua_terminal;

/* The open terminal at 1; raises where it is closed. */
ah_lua_terminal *ah_terminal_check(lua_State *L);
/* Calls of the program's functions that both files make; none of the functions may use the host. */
void ah_terminal_writing(const ah_lua_terminal *t);
bool ah_terminal_kept(const ah_lua_terminal *t);
/* Reads the terminal's size, and draws again the parts of the area that the program has taken
 * away. */
void ah_terminal_look(ah_lua_terminal *t);
int ah_terminal_size(lua_State *L);        /* :size() -> columns, rows */
int ah_terminal_write(lua_State *L);       /* :write(text) */
int ah_terminal_print_above(lua_State *L); /* :print_above(text) */
int ah_terminal_live(lua_State *L);        /* :live(lines, cursor) -> true if shown */

#endif
