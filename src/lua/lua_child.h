/* The child process behind an object of ah.process: its life, the waits for it, and its output.
 * io/process.h starts and ends processes; lua_process.c has the other methods.
 *
 * The host owns the struct, and ends children that the collector has not freed. A wait is a
 * userdata that keeps the object. Standard output moves to `part` only when it is read, so a slow
 * reader slows the process down; standard error is taken at once, so it never does.
 * Callers: its module. */
#ifndef AH_LUA_CHILD_H
#define AH_LUA_CHILD_H

#include "base/ends.h"
#include "io/process.h"
#include "io/sandbox.h"
#include "lua/lua_options.h"
#include "lua/lua_task.h"

#define AH_CHILD_OBJECT "agenthost.process"

enum {
    AH_CHILD_PENDING = 1 << 20, /* bytes of output that may wait before reading stops */
    AH_CHILD_MAX_LINE = 16 << 20,
    AH_CHILD_MOST_READ = 64 << 20, /* bytes of one line or one read */
    AH_CHILD_NAME = 80
};

typedef struct ah_child ah_child;

typedef enum ah_child_need { AH_CHILD_OUTPUT, AH_CHILD_WRITTEN, AH_CHILD_END } ah_child_need;
typedef enum ah_child_form { AH_FORM_LINE, AH_FORM_BYTES, AH_FORM_SOME, AH_FORM_ALL } ah_child_form;

/* One wait and its condition, in a userdata that keeps the process's object. */
typedef struct ah_child_wait {
    ah_task_waiter waiter;
    ah_child *of;
    struct ah_child_wait *next, **link; /* in of->waits; NULL: it does not wait */
    ah_child_need need;
    ah_timer timer; /* for its timeout */
    int64_t for_ms; /* the option `timeout`; -1: none */
    int64_t until;  /* loop clock; 0: none */
    bool late;
    ah_timer stall;
    int64_t seen; /* bytes of output taken when the stall timer was set */
    bool stalled;
    int64_t end; /* AH_CHILD_WRITTEN: done when this many bytes are written */
    ah_child_form form;
    size_t bytes; /* AH_FORM_BYTES: the number of bytes; else the maximum */
    bool json, discard;
} ah_child_wait;

struct ah_child {
    ah_lua *lua;
    ah_child *next, **link; /* in lua->children */
    ah_process *p;          /* NULL: closed */
    ah_sandbox sandbox;
    char sandbox_text[sizeof((ah_sandbox *)0)->text];
    ah_process_result result;
    bool ended;   /* `result` is valid */
    bool closing; /* by close: its output is dropped */
    bool input_closed;
    int64_t given; /* bytes written to its input */
    int64_t grace_ms, stall_ms;
    ah_timer patience; /* time from the end of its input to SIGTERM */
    ah_ends errors;
    ah_buf part;
    size_t used, looked; /* of part: bytes taken; bytes behind those without an end of line */
    bool skipping;       /* dropping the rest of a line that was too long */
    int64_t taken;       /* bytes moved to part, or dropped */
    ah_child_wait *waits;
    char name[AH_CHILD_NAME];
};

/* Pushes a new object and returns its child, for the caller to fill in. Raises. */
ah_child *ah_child_new(lua_State *L);
/* Returns the child of the object at 1. Raises if it was never started. */
ah_child *ah_child_check(lua_State *L);
/* Returns the child of the object at 1, or NULL if it was never started or is freed. */
ah_child *ah_child_of(lua_State *L);
/* Ends the process at once if it runs, and closes its sandbox. */
void ah_child_let_go(ah_child *c);
/* For ah_process_config.news, with the child as ud. */
void ah_child_news(void *child, ah_process *p);
void ah_child_drop_output(ah_child *c);

/* Pushes a wait, a userdata that keeps the object at 1. */
ah_child_wait *ah_child_push_wait(lua_State *L, ah_child *c, ah_child_need need);
/* Waits with the userdata at `at`, then calls k with `at` as its context. */
int ah_child_await(lua_State *L, int at, ah_child_wait *w, lua_KFunction k);
/* Ends the waits whose condition is met. */
void ah_child_wake(ah_child *c);
/* Reads the table of options at idx, if there is one, into the wait, and starts its timeout. */
void ah_child_options(lua_State *L, int idx, const char *what, const ah_subject *s,
                      ah_child_wait *w);
void ah_child_set_time(ah_child_wait *w);
bool ah_child_is_read(const ah_child *c); /* true if a task waits for output */

/* -- nil err */
int ah_child_fails(lua_State *L, const ah_err *err);
int ah_child_is_closed(lua_State *L, const ah_child *c);
/* x -- x err */
int ah_child_push_late(lua_State *L, const ah_child *c, const char *awaited);

/* Methods (lua_child_output.c). */
int ah_child_line(lua_State *L);
int ah_child_lines(lua_State *L);
int ah_child_read(lua_State *L);

void ah_lua_open_child(lua_State *L); /* registers metatables; the object's has only __gc */

#endif
