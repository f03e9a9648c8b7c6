/* agenthost: runs LLM agents whose tools are written in Lua 5.4.
 *
 * This header is for programs that embed agenthost; it compiles alone as C11
 * and C++17 and shows no type of Lua, libcurl or cJSON.
 *
 * Threads: a host is used by one thread at a time; two hosts never notice each
 *   other. ah_cancel may be called from any thread and from a signal handler.
 * Process: nothing here prints, exits or installs signal handlers (a script that
 *   calls print or os.exit does). Ignore SIGPIPE, and do not change LC_NUMERIC
 *   while a call is at work. The one process-wide act is libcurl's start, done
 *   once, with the first request.
 * Memory: everything comes from the allocator of the config, but for what libcurl
 *   and cJSON take from malloc. Running out of it is AH_NOMEM, never an abort.
 * Strings are UTF-8 and NUL-terminated unless a length stands beside them. */
#ifndef AGENTHOST_H
#define AGENTHOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AH_VERSION "0.1.0"

#if defined(__GNUC__)
#define AH_API __attribute__((visibility("default")))
#else
#define AH_API
#endif

/* Every fallible call returns one of these. Scripts see the same as err.code. */
typedef enum ah_status {
    AH_OK = 0,
    AH_INTERNAL = -1, /* also: a script raised an error of its own */
    AH_NOMEM = -2,
    AH_USAGE = -3,
    AH_PROMPT_VALIDATION = -4,
    AH_PROMPT_RENDER = -5,
    AH_PROMPT_EVALUATION = -6,
    AH_TOOL_VALIDATION = -7,
    AH_TOOL_NOT_FOUND = -8,
    AH_MAX_ITERATIONS = -9,
    AH_INVALID_TOOL_PROVIDER = -10,
    AH_VISIBILITY_EXPANSION = -11,
    AH_DEADLINE = -12,
    AH_BUDGET = -13,
    AH_LOOP = -14,
    AH_PROVIDER = -15,
    AH_HTTP = -16,
    AH_CANCELLED = -17
} ah_status;

/* realloc's contract: size 0 frees and gives NULL; a failure leaves the old block alone. */
typedef void *(*ah_realloc_fn)(void *ud, void *ptr, size_t size);

typedef enum ah_log_level {
    AH_LOG_DEBUG,
    AH_LOG_INFO,
    AH_LOG_WARNING,
    AH_LOG_ERROR,
    AH_LOG_OFF
} ah_log_level;

/* `line` is one record without its line end; keys are already taken out of it. */
typedef void (*ah_log_fn)(void *ud, ah_log_level level, const char *line);

/* Somebody who looks on while a host works, such as a terminal. Each function may be NULL; all
 * are called on the thread that uses the host, and none may use the host. */
typedef struct ah_watcher {
    void *ud; /* given to each */
    /* Each event of every run as one JSON object (docs/events.md), before the script's own
     * observers have it. Keys are already taken out; n bytes, valid during the call. */
    void (*event)(void *ud, const char *json, size_t n);
    /* Not 0: `content` events too, which makes requests streamed ones, as an observer in a
     * script does. */
    int content;
    /* The host is about to wait for at most timeout_ms (-1: until something comes); returns for
     * how long it may. With timeout_ms 0 it is about to work, and the answer does not matter. */
    int (*idle)(void *ud, int timeout_ms);
    /* os.exit is about to end the process with this exit code. */
    void (*leaving)(void *ud, int code);
} ah_watcher;

/* Settings of a host. Zero is a good default for each; `size` lets a later library
 * serve a program built with an earlier header. */
typedef struct ah_config {
    size_t size;         /* sizeof(ah_config) */
    ah_realloc_fn alloc; /* NULL: malloc and friends */
    void *alloc_ud;
    ah_log_fn log; /* NULL: silent */
    void *log_ud;
    ah_log_level log_level;
    const char *model; /* wins over what scripts name ("provider/model"); NULL: they decide. Copied */
    const ah_watcher *watcher; /* NULL: nobody; copied */
} ah_config;

typedef struct ah_host ah_host;

/* A host with its own Lua state, in which `require "agenthost"` works without any
 * installation. cfg may be NULL. On failure *out is untouched: AH_NOMEM, or AH_INTERNAL
 * where the system gives no event loop. */
AH_API ah_status ah_open(const ah_config *cfg, ah_host **out);
AH_API void ah_close(ah_host *host); /* NULL is fine; runs still at work are cancelled and settled */

/* Runs a script: a file, or standard input for path "-". The script gets argv[0..argc-1]
 * as `...` and in the global `arg` (arg[0] is the path). Text only: bytecode is refused.
 * AH_USAGE only where the file cannot be read; the status of an agenthost error it raised;
 * AH_INTERNAL for any other error (a wrong use of the library in the script included). */
AH_API ah_status ah_script(ah_host *host, const char *path, int argc, char **argv);

/* Runs a text as ah_script runs a file. `name` is what its errors call it, marked as Lua does:
 * "=stdin", "@path". Where `result` is not NULL, *result becomes the first value that the text
 * returned when that is a string, else NULL; valid until the next call with this host. */
AH_API ah_status ah_eval(ah_host *host, const char *name, const char *text, int argc, char **argv,
                         const char **result);

/* Words for the last call that failed: one line, for a traceback the lines after it.
 * Valid until the next call with this host. */
AH_API const char *ah_errmsg(const ah_host *host);

/* Cancels every run of the host: each settles its open turn and ends with
 * AH_CANCELLED. Script code that is not inside a run is interrupted with an error.
 * Any thread; async-signal-safe. */
AH_API void ah_cancel(ah_host *host);

AH_API const char *ah_version(void);             /* "0.1.0" */
AH_API const char *ah_status_name(ah_status st); /* "deadline_exceeded"; AH_NOMEM is "internal" */
/* One line a library or feature, "name value", valid as long as the host; for people. */
AH_API const char *ah_about(ah_host *host);

#ifdef __cplusplus
}
#endif

#endif
