/* Launches child processes: reads words, environment, folders, sandbox and limits from a table of a
 * script (ah.process) or of a built-in tool (ah._command), and starts the process. Also ah._folder
 * and ah._environment.
 *
 * A launch is a userdata that keeps its texts and folders. Folders hold an open descriptor, opened
 * once, so that a link which a command puts in their place has no effect. Callers: its module. */
#ifndef AH_LUA_LAUNCH_H
#define AH_LUA_LAUNCH_H

#include "io/process.h"
#include "io/sandbox.h"
#include "lua/lua_state.h"

enum { AH_LAUNCH_WORDS = 4096 };

/* argv has room in front for the words of a sandbox, env for the temporary folder. */
typedef struct ah_launch {
    ah_process_config cfg;
    ah_sandbox_config sandbox;
    size_t n_words;
    const char *words[AH_SANDBOX_WORDS + AH_LAUNCH_WORDS + 1]; /* argv, from AH_SANDBOX_WORDS on */
    const char *env[1 + AH_LAUNCH_WORDS + 1];                  /* env, from 1 on */
    char temporary[sizeof((ah_sandbox *)0)->temporary + sizeof "TMPDIR="];
} ah_launch;

/* The rows of ah_subject_process_limits store here. Initial value: AH_LAUNCH_UNLIMITED. */
typedef struct ah_launch_limits {
    int64_t timeout_ms, grace_ms;             /* 0: not given */
    double memory, file_size, cpu, processes; /* -1: not given */
} ah_launch_limits;
#define AH_LAUNCH_UNLIMITED                                                                        \
    {                                                                                              \
        .memory = -1, .file_size = -1, .cpu = -1, .processes = -1                                  \
    }
void ah_launch_limit(ah_launch *g, const ah_launch_limits *limits);
/* The kinds of sandboxes as words of a row, in the order of ah_sandbox_kind. */
#define AH_LAUNCH_SANDBOXES "none auto require landlock bubblewrap"

/* All functions below raise for wrong values, with `what` in front of the message. */

/* Pushes a launch, a userdata. */
ah_launch *ah_launch_push(lua_State *L);
/* Returns the string at idx; raises if it contains a NUL. */
const char *ah_launch_text(lua_State *L, int idx, const char *what, const char *name);
/* Append a word, or the list in a field, to the argv of the launch at `at`, which keeps them. */
void ah_launch_word(lua_State *L, int at, int idx, const char *what, const char *name);
void ah_launch_words(lua_State *L, int at, const char *what, const char *name);
/* Sets the environment to the list of "NAME=value" at idx, which the caller keeps. */
void ah_launch_env(lua_State *L, ah_launch *g, int idx, const char *what);
/* Opens the list of folders and paths in a field of the table at idx into `out`; the launch at `at`
 * keeps them. A folder that has been removed is left out. Returns false, with nil and an error
 * pushed, if a path cannot be opened. */
bool ah_launch_folders(lua_State *L, int at, int idx, const char *what, const char *name,
                       ah_sandbox_folder *out, size_t *n);
/* -- folder and true, or -- nil err and false */
bool ah_launch_push_folder(lua_State *L, const char *path);
int ah_launch_folder_fd(lua_State *L, int idx, const char *what);
/* Replaces the table or nil on top, which maps names of variables to a string, to true (the host's
 * value) or to false (unset), by the list of all variables of the process. */
void ah_launch_environment(lua_State *L, const char *what);

/* Starts the process. Never raises. The caller closes the sandbox, also after a failure. */
ah_status ah_launch_start(ah_lua *h, ah_launch *g, ah_sandbox *sandbox, ah_process **out,
                          ah_err *err);

const char *ah_lua_signal_name(int sig); /* without SIG; NULL: it has none */
/* Pushes the name of the signal, or its number in digits. */
void ah_lua_signal_push(lua_State *L, int sig);
int ah_lua_signal_of(const char *name); /* with or without SIG; 0: unknown */

#endif
