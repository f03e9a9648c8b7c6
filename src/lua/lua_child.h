/* A child process of a script, beneath the object of ah.process: its life, who waits for what of
 * it, and its output. What starts and ends it is io/process.h; its other methods are
 * lua_process.c's.
 *
 * The struct is not the object's: it hangs at the host, which ends what the collector has not.
 * Bytes of the output move from the process to `part` when somebody reads, so that a slow reader
 * slows down the process; its errors are taken at once, so that they never do. */
#ifndef AH_LUA_CHILD_H
#define AH_LUA_CHILD_H

#include "base/ends.h"
#include "io/process.h"
#include "io/sandbox.h"
#include "lua/lua_options.h"
#include "lua/lua_task.h"

#define AH_CHILD_OBJECT "agenthost.process"

enum {
    AH_CHILD_PENDING = 1 << 20, /* bytes of output that wait; then it is not read on */
    AH_CHILD_MAX_LINE = 16 << 20,
    AH_CHILD_MOST_READ = 64 << 20, /* of a line, or in one read */
    AH_CHILD_NAME = 80
};

typedef struct ah_child ah_child;

typedef enum ah_child_need { AH_CHILD_OUTPUT, AH_CHILD_WRITTEN, AH_CHILD_END } ah_child_need;
typedef enum ah_child_form { AH_FORM_LINE, AH_FORM_BYTES, AH_FORM_SOME, AH_FORM_ALL } ah_child_form;

/* A wait and its subject; a userdata that keeps the process's object. */
typedef struct ah_child_wait {
    ah_task_waiter waiter;
    ah_child *of;
    struct ah_child_wait *next, **link; /* in of->waits; NULL: it does not wait */
    ah_child_need need;
    ah_timer timer; /* of its own time */
    int64_t for_ms; /* its options' timeout; -1: none */
    int64_t until;  /* loop clock; 0: none */
    bool late;
    ah_timer stall;
    int64_t seen; /* bytes taken of the output when the stall timer was set */
    bool stalled;
    int64_t end; /* AH_CHILD_WRITTEN: of all that was written, up to there */
    ah_child_form form;
    size_t bytes; /* AH_FORM_BYTES: how many; else at most */
    bool json, discard;
} ah_child_wait;

struct ah_child {
    ah_lua *lua;
    ah_child *next, **link; /* in lua->children */
    ah_process *p;          /* NULL: closed */
    ah_sandbox sandbox;
    char sandbox_text[sizeof((ah_sandbox *)0)->text];
    ah_process_result result;
    bool ended;   /* result is there */
    bool closing; /* by close: what it writes is dropped */
    bool input_closed;
    int64_t given; /* bytes written to it */
    int64_t grace_ms, stall_ms;
    ah_timer patience; /* from the end of its input to TERM */
    ah_ends errors;
    ah_buf part;
    size_t used, looked; /* of part: taken; behind that, without an end of line */
    bool skipping;       /* the rest of a line that was too long */
    int64_t taken;       /* bytes moved to part, or dropped */
    ah_child_wait *waits;
    char name[AH_CHILD_NAME];
};

/* Pushes the object of a new one, which is to be filled in. Raises. */
ah_child *ah_child_new(lua_State *L);
/* Of the object at 1. Raises. */
ah_child *ah_child_check(lua_State *L);
/* Of the object at 1, or NULL: it was never started, or is over. */
ah_child *ah_child_of(lua_State *L);
/* Ends the process, if it runs, at once. */
void ah_child_let_go(ah_child *c);
/* ah_process_config.news, with the child as ud. */
void ah_child_news(void *child, ah_process *p);
void ah_child_drop_output(ah_child *c);

/* Pushes one, a userdata that keeps the object at 1. */
ah_child_wait *ah_child_push_wait(lua_State *L, ah_child *c, ah_child_need need);
/* Waits with the userdata at `at`, then goes on with k, which has `at` as its context. */
int ah_child_await(lua_State *L, int at, ah_child_wait *w, lua_KFunction k);
/* Lets those go on whose need has come. */
void ah_child_wake(ah_child *c);
/* Reads the table of options at idx, if there is one, whose rows store in a wait; and begins its
 * time. */
void ah_child_options(lua_State *L, int idx, const char *what, const ah_subject *s,
                      ah_child_wait *w);
void ah_child_set_time(ah_child_wait *w);
bool ah_child_is_read(const ah_child *c); /* somebody waits for output */

/* -- nil err */
int ah_child_fails(lua_State *L, const ah_err *err);
int ah_child_is_closed(lua_State *L, const ah_child *c);
/* x -- x err */
int ah_child_push_late(lua_State *L, const ah_child *c, const char *awaited);

/* Methods (lua_child_output.c). */
int ah_child_line(lua_State *L);
int ah_child_lines(lua_State *L);
int ah_child_read(lua_State *L);

void ah_lua_open_child(lua_State *L); /* registers metatables; that of the object has __gc alone */

#endif
