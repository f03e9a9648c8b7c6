/* Lines: code of scripts that waits for other code, and is woken in the order in which it came. A
 * line is a part of the userdata that owns it, and each wait is a userdata, a turn, which keeps
 * that owner. Only joining a line takes memory: waking and leaving cannot fail, so a wake-up is
 * never lost. If a turn was woken, but its code was stopped before it continued, `lost` gives the
 * line the chance to wake another. Callers: its module. */
#ifndef AH_LUA_LINE_H
#define AH_LUA_LINE_H

#include "lua/lua_task.h"

typedef struct ah_line ah_line;

typedef struct ah_turn {
    ah_task_waiter waiter;
    ah_timer timer;
    ah_line *line; /* NULL: in none */
    struct ah_turn *next, *before;
    bool due; /* woken, and its code has not continued yet */
} ah_turn;

/* All zero is an empty line. */
struct ah_line {
    ah_turn *first, *last;
    size_t due; /* turns that are woken, and whose code has not continued yet */
    /* Called when a due turn is given up; it is no longer counted in `due`. NULL: nothing to do. */
    void (*lost)(ah_line *line);
};

/* Index of its user value with a value of the caller; the first one keeps the owner. */
enum { AH_TURN_VALUE = 2 };

/* Pushes a turn at the end of the line, whose owner is at idx, for ah_lua_await with its waiter.
 * word: the wait in the text of a deadlock. Raises if the code cannot wait, or when out of
 * memory. */
ah_turn *ah_line_join(lua_State *L, ah_line *line, int idx, const char *word);
void ah_turn_push(lua_State *L, const ah_turn *turn); /* one that waits */
/* Ends the wait after so many seconds. */
void ah_turn_limit(lua_State *L, ah_turn *turn, double seconds);
/* Wakes the first turn, which is due then. Returns NULL if nothing waits. */
ah_turn *ah_line_wake(ah_line *line);
/* Wakes all turns that wait, without a claim: they are not due. */
void ah_line_dismiss(ah_line *line);
/* Called first when the code of the turn continues. Returns true if it was due. */
bool ah_turn_came(ah_turn *turn);

/* Returns the line in which the task waits; NULL: it does not wait, or for something else. */
ah_line *ah_line_of(const ah_task *t);

void ah_lua_open_line(lua_State *L);

#endif
