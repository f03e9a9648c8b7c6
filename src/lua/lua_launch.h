/* The launch of a child process: words, environment, folders, sandbox and limits, read from a table
 * of a script (ah.process) or of a built-in tool (ah._command), and the start. Beside it ah._folder
 * and ah._environment.
 *
 * Folders are objects that hold a descriptor: where a command works and may write is opened once,
 * and a link that a command puts in its place leads nowhere. */
#ifndef AH_LUA_LAUNCH_H
#define AH_LUA_LAUNCH_H

#include "io/process.h"
#include "io/sandbox.h"
#include "lua/lua_state.h"

enum { AH_LAUNCH_WORDS = 4096 };

/* Before argv there is room for the words of a sandbox, before env for the temporary folder. */
typedef struct ah_launch {
    ah_process_config cfg;
    ah_sandbox_config sandbox;
    size_t n_words;
    const char *words[AH_SANDBOX_WORDS + AH_LAUNCH_WORDS + 1]; /* argv from AH_SANDBOX_WORDS on */
    const char *env[1 + AH_LAUNCH_WORDS + 1];                  /* likewise from 1 on */
    char temporary[sizeof((ah_sandbox *)0)->temporary + sizeof "TMPDIR="];
} ah_launch;

/* The rows of ah_subject_process_limits store in one, which begins as AH_LAUNCH_UNLIMITED. */
typedef struct ah_launch_limits {
    int64_t timeout_ms, grace_ms;             /* 0: not said */
    double memory, file_size, cpu, processes; /* -1: likewise */
} ah_launch_limits;
#define AH_LAUNCH_UNLIMITED                                                                        \
    {                                                                                              \
        .memory = -1, .file_size = -1, .cpu = -1, .processes = -1                                  \
    }
void ah_launch_limit(ah_launch *g, const ah_launch_limits *limits);
/* The kinds of sandboxes as a row has them, in the order of ah_sandbox_kind. */
#define AH_LAUNCH_SANDBOXES "none auto require landlock bubblewrap"

/* All below raise for what is wrong; `what` stands before the message. */

/* Pushes one, a userdata. */
ah_launch *ah_launch_push(lua_State *L);
/* The string at idx, without a NUL. */
const char *ah_launch_text(lua_State *L, int idx, const char *what, const char *name);
/* A word, or the list in a field, appended to the argv of the launch at `at`, which keeps them. */
void ah_launch_word(lua_State *L, int at, int idx, const char *what, const char *name);
void ah_launch_words(lua_State *L, int at, const char *what, const char *name);
/* The list of "NAME=value" at idx, which whoever calls keeps. */
void ah_launch_env(lua_State *L, ah_launch *g, int idx, const char *what);
/* The list in a field of the table at idx, of folders and of paths, opened to `out`; the launch at
 * `at` keeps them. What was removed meanwhile holds nothing. False: -- nil err, a path cannot be
 * opened. */
bool ah_launch_folders(lua_State *L, int at, int idx, const char *what, const char *name,
                       ah_sandbox_folder *out, size_t *n);
/* -- folder and true, or -- nil err and false */
bool ah_launch_push_folder(lua_State *L, const char *path);
int ah_launch_folder_fd(lua_State *L, int idx, const char *what);
/* Replaces the table or nil on top, of variables by name (a string; true: the host's; false: none),
 * by the list of all that the process has. */
void ah_launch_environment(lua_State *L, const char *what);

/* Never raises. The sandbox is the caller's to close, also where this fails. */
ah_status ah_launch_start(ah_lua *h, ah_launch *g, ah_sandbox *sandbox, ah_process **out,
                          ah_err *err);

const char *ah_lua_signal_name(int sig); /* without SIG; NULL: it has none */
/* Pushes it, or the number in digits. */
void ah_lua_signal_push(lua_State *L, int sig);
int ah_lua_signal_of(const char *name); /* with or without SIG; 0: there is none */

#endif
