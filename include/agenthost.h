/* agenthost: runs LLM agents whose tools are written in Lua 5.4, or in C.
 *
 * This header is for programs that embed agenthost. It compiles alone as C11 and C++17 and needs
 * no header of another library. docs/reference/embedding.md shows how its functions work
 * together. What follows holds for all of them; a function's comment states only what differs.
 *
 * Threads: one thread at a time uses a host and everything that belongs to it. Two hosts share
 *   nothing. Four functions may be called from any thread and from signal handlers, between
 *   ah_open and ah_close: ah_cancel, ah_terminate, ah_wake, ah_interactive. ah_store_appended
 *   may be called from any thread, but not from signal handlers. ah_version, ah_status_name and
 *   ah_control_char use no host and may be called anywhere.
 * Stack: the library uses at most 256 KiB of the thread's stack, for any input. Give the thread
 *   512 KiB if the scripts are your own, 1 MiB otherwise (docs/reference/embedding.md).
 * Ownership: every pointer that a function returns, or that a callback receives, belongs to the
 *   host. Never free it. The comment states how long it is valid; ah_close ends all of them.
 *   Strings and structs that the program passes are copied before the call returns, unless
 *   stated otherwise; a `ud` pointer is kept as it is.
 * Failure: a function that returns ah_status, and fails, changes nothing and leaves its out-
 *   parameters untouched, unless stated otherwise. The host keeps the error for ah_last_error;
 *   ah_open has no host to keep it. A call that succeeds does not clear the error of an earlier
 *   one.
 * NULL: `host` and `agent` must not be NULL, unless stated otherwise.
 * Memory: all memory comes from `alloc` of the config, except what libcurl, cJSON, libyaml,
 *   libmicrohttpd and the C library take from malloc. Lack of memory never aborts: the call
 *   fails with AH_NOMEM, the host stays usable, and conversations stay sound.
 * Strings: UTF-8 and NUL-terminated. A string with a length beside it may contain NUL.
 * Process: nothing here prints, exits or installs signal handlers; a script does if it calls
 *   print or os.exit. The environment is read (AGENTHOST_MODEL, AGENTHOST_STORE, keys and
 *   addresses of providers, proxies), never written. The only process-wide action is
 *   libcurl's start, once, with the first request; a `transport` avoids it. The program must
 *   ignore SIGPIPE, and must not change LC_NUMERIC during a call.
 *
 * Callbacks: the host calls functions of the program on its own thread, inside the call of the
 *   program that does the work. A callback may call functions of this header by kind:
 *
 *     always     ah_cancel, ah_terminate, ah_wake, and the functions that only read: ah_user,
 *                ah_last_error, ah_errmsg, ah_version, ah_status_name, ah_about, ah_counter,
 *                ah_control_char, ah_waiting, ah_interactive, ah_returned, ah_tools,
 *                ah_agent_reply, ah_agent_reply_json, ah_agent_messages, ah_agent_transcript,
 *                ah_agent_at_work, ah_agent_id, ah_agent_user, ah_agent_set_user, ah_next_event,
 *                ah_pollfd, ah_timeout, ah_store_appended
 *     in acting  ah_tool_done, ah_tool_refuse, ah_ask_next, ah_ask_close, ah_transport_*,
 *     callbacks  ah_agent_start, ah_agent_send, ah_agent_cancel, ah_store_asks, ah_store_respond
 *     never      ah_close, ah_script, ah_load, ah_join, ah_add_tool, ah_remove_tool, ah_alias,
 *                ah_defaults, ah_call_tool, ah_agent_open, ah_agent_find, ah_agent_close,
 *                ah_agent_run, ah_agent_head, ah_store_open, ah_store_open_with, ah_store_close,
 * ah_step: they wait, step, open, close or declare
 *
 *   Acting callbacks: `call` and `cancel` of a tool, `start` and `cancel` of the transport,
 *   `woken`.
 *
 *   Observing callbacks: the watcher's, `log`, `clock`, `wall`, `random`, the functions of `tty`
 *   and of a store's engine, a tool's `release`. `alloc` may call no function of this header.
 *
 *   A call that is not allowed is refused: it logs an error, does nothing, and returns AH_USAGE,
 *   or NULL (ah_ask_next). During ah_close, callbacks may no longer use an agent.
 *
 * Inside scripts: a C function that a script calls may call the functions of all three kinds,
 *   except ah_close, ah_agent_close and ah_step, and, on a host of ah_open, ah_script, ah_load
 *   and ah_join. In an observer of a script, or other code of it that cannot wait
 *   (docs/reference/waiting.md), the kind "never" is refused. A refused call returns AH_USAGE. */
#ifndef AGENTHOST_H
#define AGENTHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AH_VERSION "0.1.0"

#if defined(__GNUC__)
#define AH_API __attribute__((visibility("default")))
#else
#define AH_API
#endif

/* The result of a call. Scripts see the same as err.code (docs/reference/errors.md); the name
 * is in quotes below where it differs from the constant. "The run": of ah_agent_run, which
 * returns the status, or of ah_agent_start, whose reply has it. After a failed run the
 * conversation is sound: it keeps what was said, and a later run continues it (a text of NULL
 * says nothing new). A script that raises or returns an error of agenthost passes its status
 * on, so ah_script, ah_load and ah_call_tool may return any of them. ah_error has the message
 * and `retryable`. */
typedef enum ah_status {
    AH_OK = 0, /* "ok" */
    /* A script or a handler raised an error of its own, or used the library wrongly; ah_open:
     * the system gives no event loop. Show ah_errmsg; correct the script or the tool. */
    AH_INTERNAL = -1,
    /* "internal": no memory, or max_memory is reached. Free some memory and repeat the call. */
    AH_NOMEM = -2,
    /* The call itself is wrong: an argument, a field of a config, a file that cannot be read,
     * or a call at a time or place that does not allow it. An error of the program: repeating
     * the call does not help. */
    AH_USAGE = -3,
    /* A declaration is wrong: a tool, a schema, a section, a prompt, or a name that is taken.
     * Correct the declaration. */
    AH_PROMPT_VALIDATION = -4,
    /* A prompt of a script cannot be rendered: a parameter is missing, wrong or unknown, or the
     * function of a section failed. Correct `params` or the script. */
    AH_PROMPT_RENDER = -5,
    /* The run: the answer does not match `output`, or a handler failed with this code. Run
     * again, or use another model or schema. */
    AH_PROMPT_EVALUATION = -6,
    /* A text is not JSON, or a value does not match its schema (ah_tool_done, ah_ask_close,
     * ah_call_tool), or a policy refused the call (ah_call_tool). Correct the value. */
    AH_TOOL_VALIDATION = -7,
    /* No tool has this name (ah_call_tool, ah_remove_tool, ah_agent_open), or it has no
     * handler. The run: the model called unknown tools too often. */
    AH_TOOL_NOT_FOUND = -8,
    /* "max_iterations_exceeded". The run: max_iterations is reached. Run again to go on, or raise
       the limit. */
    AH_MAX_ITERATIONS = -9,
    /* A script called ah.tools_of or ah.retract with an object that is not a valid entity. Correct
     * the script. In a run it is a warning only. */
    AH_INVALID_TOOL_PROVIDER = -10,
    /* "visibility_expansion_required". The run: the model's session would have to restart more
     * often than max_restarts allows, or a handler asked for sections once more, or for none by
     * name. Raise max_restarts. */
    AH_VISIBILITY_EXPANSION = -11,
    /* "deadline_exceeded". The run, or ah_call_tool: its time is over. Run again to go on, or raise
       the limit. */
    AH_DEADLINE = -12,
    /* "budget_exceeded". The run: a budget is used up. ah_agent_start: too many events `done`
     * are unread. ah_tool_done: the value is larger than 64 MiB. */
    AH_BUDGET = -13,
    /* "loop_detected". The run: the model repeated the same calls. Change the tools or the
     * text. */
    AH_LOOP = -14,
    /* The provider answered with an error or with bytes that cannot be read, or with nothing
     * (`on_empty`); or its key is missing (ah_agent_open, too). If `retryable`, run again later;
     * the run's own retries are used up. */
    AH_PROVIDER = -15,
    /* The run: no complete HTTP response came; `reason` in ah_error.json says why. If
     * `retryable`, run again later. */
    AH_HTTP = -16,
    /* ah_cancel, ah_terminate or ah_agent_cancel ended the run or the call; or it never began,
     * after ah_terminate. Not an error of the work: run again to go on. */
    AH_CANCELLED = -17,
    AH_GUARD = -18, /* "guard_tripped". The run: a guard of the input or of the answer ended it */
    /* The run: a handler asked a person, and no front end could respond. If a store keeps the
     * conversation, the run is not over: its asks stay open there (ah_store_asks). Respond with
     * ah_store_respond, now or in a later process, then run again with a text of NULL. Without a
     * store, set `asks` of the config, or give the script a front end. */
    AH_WAITING = -19,
    /* The run: the conversation does not fit into the model's window. Shorten the conversation
     * or use another model; repeating does not help. */
    AH_CONTEXT_FULL = -20,
    /* A store cannot be opened, read or appended to: the disk is full, the file is damaged or of
     * a newer version, another holder has taken the conversation, or the program's engine failed.
     * The run ends, and the agent refuses others. Mend the cause, close the agent, open it again
     * with the same id, and run it with a text of NULL. */
    AH_STORE = -21,
    /* Something is not as it was when it was looked at. ah_agent_open: another agent or process
     * has the conversation; close it there, or set `take` of the config. ah_store_respond:
     * another response came first. The run: another one has changed what a call wants to change;
     * look again. */
    AH_CONFLICT = -22,
    /* The run: a durable handler asked for other steps than those recorded of it. Nothing was
     * done. Correct the script and run again with a text of NULL, or give the call up (`give_up`
     * of the config). */
    AH_DIVERGED = -23,
    /* Only in a replay of handlers: the records do not have what a handler asks for. */
    AH_NOT_RECORDED = -24
} ah_status;

/* A Lua state, an event loop, and everything that runs in them. ah_open or ah_attach makes one. */
typedef struct ah_host ah_host;
/* The program's handle of one conversation and of how it is run. Valid until its
 * ah_agent_close, or the ah_close of its host. */
typedef struct ah_agent ah_agent;

/* -- configuration ---------------------------------------------------------------------- */

/* An allocator with the contract of realloc: size 0 frees ptr and returns NULL; a failure
 * returns NULL and leaves the old block alone. Called on the thread that uses the host. */
typedef void *(*ah_realloc_fn)(void *ud, void *ptr, size_t size);

typedef enum ah_log_level {
    AH_LOG_DEBUG,
    AH_LOG_INFO,
    AH_LOG_WARNING,
    AH_LOG_ERROR,
    AH_LOG_OFF
} ah_log_level;

/* Receives one record of the log, without a line end and with secrets removed. `line` is valid
 * during the call. Errors of calls that are refused inside it are not logged to it. */
typedef void (*ah_log_fn)(void *ud, ah_log_level level, const char *line);

/* An event of a run; docs/reference/events.md lists types and fields. Secrets are removed.
 * Valid until the next ah_next_event, or during the watcher's call. */
typedef struct ah_event {
    const char *type; /* "tool_invoked" */
    ah_agent *agent;  /* the program's handle; NULL: the run belongs to a script */
    int64_t run;      /* number of the run, unique in this host; 0: map_progress outside of runs */
    double time;      /* seconds since 1970 */
    const char *text; /* of "content": the piece; of "warning": its message; else "" */
    size_t text_len;
    const char *json; /* the whole event as JSON */
    size_t json_len;
    size_t lost; /* ah_next_event: number of events lost just before this one, for lack of room */
} ah_event;

/* Functions that observe a host's work, for example to display it. Each may be NULL. */
typedef struct ah_watcher {
    /* Called for each event of every agent's run, before observers in scripts, and for the
     * events about the tool of ah_call_tool and of a script's registry:execute (agent NULL). An
     * event for which there is no memory is left out. */
    void (*event)(void *ud, const ah_event *event);
    bool content; /* True: events `content` too; answers are then requested as a stream */
    /* Called before the host waits, at most timeout_ms (-1: no limit); returns the timeout to
     * use. With timeout_ms 0 the host is about to work, and the returned value is ignored. */
    int (*idle)(void *ud, int timeout_ms);
    /* Called before os.exit ends the process with this exit code. Not called in a Lua state of
     * ah_attach. */
    void (*leaving)(void *ud, int code);
    void *ud; /* for all three */
} ah_watcher;

/* A request for a transport. The struct, `method`, `url` and `headers` are valid during
 * `start`. */
typedef struct ah_transport_request {
    uint64_t id;                /* never 0, unique in this host */
    const char *method;         /* such as "POST" */
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value", keys in clear text; no Content-Length */
    size_t n_headers;
    const char *body; /* valid until ah_transport_end, ah_transport_fail or `cancel` */
    size_t body_len;
    double connect_timeout; /* seconds; the host itself keeps the limits for silence and in total */
} ah_transport_request;

/* The program's own HTTP stack in place of libcurl. It must not follow redirects or ask for
 * compression. */
typedef struct ah_transport {
    /* Begins a request. Returns AH_OK, or a status with which the request fails; its id is then
     * over, and `cancel` is not called. After AH_OK the program calls, in `start` or later, on
     * the host's thread: ah_transport_head once, ah_transport_body for each piece, and
     * ah_transport_end or ah_transport_fail. */
    ah_status (*start)(void *ud, ah_host *host, const ah_transport_request *request);
    /* The host gave the request up: its id is over. May be NULL. */
    void (*cancel)(void *ud, ah_host *host, uint64_t id);
    void *ud;
} ah_transport;

/* The terminal of a program that owns one, for scripts (ah.terminal,
 * docs/reference/terminal.md). The program switches modes and handles signals; the host reads
 * keys and writes. The functions are called inside functions of a script, or in ah_close; all
 * are set if `enter` is. */
enum { AH_TTY_AWAY = 64 };
enum {
    AH_TTY_SIGNALS = 1, /* Ctrl-C and the like raise signals; otherwise they are keys */
    AH_TTY_DISTINCT = 2 /* keys that look alike are distinct, by kitty's keyboard protocol */
};
typedef struct ah_tty {
    /* Called when a script opens the terminal: keys must arrive one by one, without echo. mode:
     * flags AH_TTY_*. Sets *fd, which the host reads and writes without blocking, and *news,
     * which has a byte to read whenever the size or the result of `kept` may have changed. Both
     * stay the program's; the host uses them until `leave`. Returns 0 or an errno (EBUSY: it is
     * open already). NULL: scripts have no terminal. */
    int (*enter)(void *ud, unsigned mode, int *fd, int *news);
    void (*leave)(void *ud); /* called when it is closed: the host no longer uses the descriptors */
    void (*suspend)(void *ud); /* stops the program, as Ctrl-Z does, until it is continued */
    void (*writing)(void *ud); /* called before the host writes: flush buffered output first */
    /* Receives n bytes that erase the script's live area from the screen; n is at most
     * AH_TTY_AWAY, and 0 if nothing is drawn. The program writes them before it writes itself
     * or stops. They are valid during the call. */
    void (*shown)(void *ud, const char *away, size_t n);
    bool (*kept)(void *ud); /* False: the program has written since `shown`, and a new line began */
    bool sequences;         /* the terminal obeys escape sequences */
    bool color;             /* colors may be used */
    bool reflows;           /* the terminal wraps shown lines anew when it becomes narrower */
    void *ud;
} ah_tty;

/* Settings of a host. Zero is a good default for each field. `size` lets a later library serve
 * a program that was built with an earlier header. The clocks return milliseconds. */
typedef struct ah_config {
    size_t size;         /* sizeof(ah_config) */
    ah_realloc_fn alloc; /* NULL: malloc, realloc, free */
    void *alloc_ud;
    ah_log_fn log; /* NULL: no log */
    void *log_ud;
    ah_log_level log_level;
    /* "provider/model", used in place of each model that a script names; NULL: scripts decide */
    const char *model;

    void *user;                 /* returned by ah_user */
    int64_t (*clock)(void *ud); /* never goes back, runs at the speed of time; NULL: the system's */
    int64_t (*wall)(void *ud);  /* time since 1970; NULL: the system's */
    void *clock_ud;             /* for both */
    uint64_t (*random)(void *ud); /* 64 random bits, for waits between retries; NULL: built in */
    void *random_ud;
    ah_transport transport;  /* start NULL: libcurl */
    void (*woken)(void *ud); /* called after ah_wake, on the host's thread; may be NULL */
    void *woken_ud;
    size_t max_memory;  /* limit of all Lua values in bytes, then AH_NOMEM; 0: no limit */
    size_t max_events;  /* limit of unread events, which also take at most 16 MiB; 0: 4096 */
    ah_watcher watcher; /* zero: none */
    /* Paths, at most one of them. `record`: this file is made anew, and HTTP exchanges are
     * written to it, one line of JSON each, without secrets. `replay`: responses come from such
     * a file, without a network (docs/reference/recording.md). If the file cannot be used, the
     * first request fails with AH_USAGE. */
    const char *record, *replay;
    /* True: the program takes asks from ah_ask_next and closes each with ah_ask_close; calls
     * wait until it does. False: an ask fails at once if no front end of a script takes it. */
    bool asks;
    ah_tty tty; /* zero: scripts have no ah.terminal */
    /* Most requests at work at once with one provider, address and key, of all runs together; the
     * others wait in a fair order (docs/reference/models.md). A smaller one of a provider
     * (ah_defaults) or of a run (`max_in_flight`) holds, too. 0: no limit. */
    int max_in_flight;
    /* Path of the store in which agents of scripts keep their conversations if they name none;
     * NULL: AGENTHOST_STORE, else none. */
    const char *store;
    /* Id of the conversation that the first agent of a script without an id of its own opens, to
     * resume it (docs/reference/stores.md); NULL: none. */
    const char *conversation;
    /* Another id by which an agent may name that conversation: of the one that it was forked from.
     * NULL: none. */
    const char *conversation_base;
    /* True: conversations are taken from the process that holds them, which loses them. */
    bool take;
    /* Id of a call of that conversation to give up: it is settled as failed. NULL: none. */
    const char *give_up;
    /* Path of the file in which definitions of tools of MCP servers are pinned, for servers that
     * name none (docs/reference/mcp.md); NULL: they are pinned in memory alone. */
    const char *mcp_pins;
    /* Path of the file in which logins to MCP servers are kept, for servers that name none
     * (docs/reference/mcp_login.md). If it exists when the host is opened, its folder is hidden
     * from tools as that of a store is (docs/reference/stores.md); NULL: no login is read. */
    const char *mcp_logins;
} ah_config;

/* -- a host ------------------------------------------------------------------------------ */

/* Opens a host with its own Lua state, in which `require "agenthost"` works without an
 * installation. A NULL cfg has all defaults. Fails with AH_USAGE if `out` is NULL, if cfg->size
 * is of no known version, or if both record and replay are set; AH_NOMEM; AH_INTERNAL. */
AH_API ah_status ah_open(const ah_config *cfg, ah_host **out);
/* Ends a host and frees it; NULL does nothing. Runs at work are cancelled and settled without
 * an event, agents are closed, and tools of the program get their last `cancel` and `release`.
 * A host of ah_attach stays in its Lua state: only what the program opened is closed. Inside a
 * callback, a script or a run it logs an error and does nothing. */
AH_API void ah_close(ah_host *host);
AH_API void *ah_user(const ah_host *host); /* returns `user` of the config */

/* An error. The strings of ah_last_error are valid until the next call that fails. */
typedef struct ah_error {
    ah_status status;
    const char *code;    /* "deadline_exceeded"; static */
    const char *message; /* one line */
    const char *phase;   /* "request", "tool" or "response"; NULL: none */
    bool retryable;      /* another try may succeed */
    int http_status;     /* 0: none */
    const char *json; /* all fields as an object (docs/reference/errors.md), "" without an error */
} ah_error;
/* Returns the error of the host's last failed call, never NULL; with status AH_OK if none
 * failed. Each call of it fills the same struct. */
AH_API const ah_error *ah_last_error(ah_host *host);
/* Returns the message of ah_last_error; if a script raised the error, the traceback follows.
 * Valid until the next call that fails. For a NULL host: a message that there is no host. */
AH_API const char *ah_errmsg(const ah_host *host);

AH_API const char *ah_version(void); /* "0.1.0"; static */
/* Returns the code of a status, such as "deadline_exceeded", static; of AH_NOMEM and of unknown
 * values "internal". */
AH_API const char *ah_status_name(ah_status st);
/* Returns versions and features for people, one "name value" per line. Valid until the next
 * call of it; "" without memory. */
AH_API const char *ah_about(ah_host *host);
/* For programs that show text of models and tools on a terminal: returns the length in bytes of
 * the character at the start of `text` if a terminal would obey it, if it changes the direction of
 * writing or if it cannot be seen (C0 including line ends and tabs, DEL, C1, bidirectional
 * controls, U+200B, U+2060 to U+2064, U+FEFF, tags, in UTF-8); otherwise 0. */
AH_API size_t ah_control_char(const char *text, size_t n);
/* Returns a counter of ah.metrics() (docs/reference/budgets.md), such as "agenthost.runs", the
 * number of ended runs. Counters only grow. -1: unknown name, or NULL. */
AH_API int64_t ah_counter(const ah_host *host, const char *name);

/* -- scripts ------------------------------------------------------------------------------ */

/* Runs a script from a file, or from standard input for path "-" (at most 64 MiB). The script
 * gets argv[0..argc-1] as `...` and in the global `arg`; arg[0] is the path. Bytecode is
 * refused.
 *
 * Fails with AH_USAGE if the file cannot be read, or if the call comes from inside a script or
 * a run (allowed on a host of ah_attach); with the status of an error of agenthost that the
 * script raised, or returned after nil (as `return ah.agent { ... }` does without a key); with
 * AH_INTERNAL for any other error, including wrong use of the library in the script. Effects of
 * a failed script remain.
 *
 * The script hands over what it returns: a tool, an agent (under the name "agent"), or a table
 * with tools, agents and adapters (ah.scripted). Tools keep their own names; agents and
 * adapters are named by their keys in the table, and replace earlier ones; other values are
 * ignored. If another tool has the name, the call fails with AH_PROMPT_VALIDATION and nothing
 * is handed over. */
AH_API ah_status ah_script(ah_host *host, const char *path, int argc, char **argv);
/* Runs text in memory as ah_script does. `name` is used in messages, tracebacks and arg[0];
 * NULL: "script". */
AH_API ah_status ah_load(ah_host *host, const char *name, const char *text, size_t len, int argc,
                         char **argv);
/* Waits until all tasks that scripts have started at their top have ended (ah.spawn). Without this
 * call they go on in each ah_step, and ah_close stops those at work. Fails as ah_script does, with
 * what one of them has raised that nothing has awaited. AH_CANCELLED after ah_cancel. */
AH_API ah_status ah_join(ah_host *host);
/* Returns the string that the last script returned; NULL: nothing, or another type. Valid until
 * the next ah_script or ah_load. */
AH_API const char *ah_returned(const ah_host *host);

/* Sets names and facts of models for this host, as `models.NAME` of the settings: a JSON object
 * that maps each name to "provider/model" or to a row (docs/reference/models.md). Those of
 * scripts (ah.alias) replace them. Fails with AH_NOMEM, or with AH_USAGE if the text is not JSON
 * (the message has line and column) or if an entry is wrong (the message has its name); entries
 * before the wrong one may have been set. */
AH_API ah_status ah_alias(ah_host *host, const char *json);
/* Sets defaults for all runs of this host that begin from now on: a JSON object with the fields
 * max_iterations, on_max, on_empty, max_tools, timeout, retries, max_in_flight, max_parallel of
 * ah.run, and the objects http (its times), options (temperature, max_tokens, top_p, seed,
 * reasoning, cache) and budget (without prices), as in docs/reference/run.md. Values of a script,
 * and options that a saved conversation has, take precedence, member by member in these three
 * objects. The object providers has limits by the provider's name, which hold beside those of
 * scripts: {"providers": {"openai": {"max_in_flight": 8}}}. Each call replaces the one before; {}
 * removes all. Fails with AH_NOMEM, or with AH_USAGE if the text is
 * not JSON or a field is wrong; the message has the place. */
AH_API ah_status ah_defaults(ah_host *host, const char *json);

/* -- tools --------------------------------------------------------------------------------- */

/* One call of a tool of the program. Valid during `call`; the id until the call is over. */
typedef struct ah_tool_call {
    uint64_t id; /* for ah_tool_done; never 0, unique in this host */
    const char *tool;
    const char *args; /* JSON object, checked against `params`, defaults filled in */
    size_t args_len;
    int64_t run;         /* number of its run, as in events */
    double seconds_left; /* until the host stops the call; below 0: no limit */
} ah_tool_call;

/* A tool written in C. */
typedef struct ah_tool_config {
    size_t size;                  /* sizeof(ah_tool_config) */
    const char *name;             /* ^[a-z0-9_-]{1,64}$ */
    const char *description;      /* 1 to 200 ASCII characters */
    const char *params;           /* JSON Schema of an object; NULL: no parameters */
    const char *result;           /* JSON Schema of the value; NULL: anything */
    bool parallel;                /* may run beside its neighbours in one answer */
    double timeout;               /* seconds for one call; 0: the limit of the run */
    const char *full_description; /* for the model; UTF-8, at most 16 KiB; NULL: `description` */
    bool coerce; /* arguments of a wrong type are converted if their meaning is certain */
    /* limit in bytes of a result for the model (docs/reference/run.md); 0: 64 KiB */
    size_t max_result;
    bool return_direct; /* its result is the run's answer (docs/reference/tool.md, ah.tool) */
    /* Properties for policies: a JSON object with booleans under read_only, destructive,
     * idempotent, open_world and untrusted (docs/reference/tool.md). NULL: none is declared */
    const char *annotations;
    /* UTF-8, at most 64 bytes: recorded, so that a saved conversation shows drift; NULL: none */
    const char *version;
    /* Begins a call. The program ends it once, with ah_tool_done or ah_tool_refuse, inside
     * `call` or later. */
    void (*call)(void *ud, ah_host *host, const ah_tool_call *call);
    /* The call ended without a result (cancelled, out of time, host closed). May be NULL. */
    void (*cancel)(void *ud, ah_host *host, uint64_t call);
    /* Called once, when nothing uses the tool any more: in a garbage collection after
     * ah_remove_tool, in ah_close at the latest. Not called if ah_add_tool failed. May be NULL. */
    void (*release)(void *ud);
    void *ud;
} ah_tool_config;

/* Adds a tool under its name, for agents of the program (field `tools`) and for scripts
 * (ah.host_tool). Fails with AH_USAGE if `size` is wrong, AH_PROMPT_VALIDATION if another field
 * is, or if another tool has the name; AH_NOMEM. */
AH_API ah_status ah_add_tool(ah_host *host, const ah_tool_config *tool);
/* Removes the name of a tool, added or handed over. Agents that have the tool keep it. Fails
 * with AH_TOOL_NOT_FOUND. */
AH_API ah_status ah_remove_tool(ah_host *host, const char *name);

/* End a call on the host's thread: with a JSON value (the model sees a JSON string without
 * quotes), or as failed, with a message for the model (NULL or "": "the tool failed"). Another
 * thread notes its result and calls ah_wake; `woken` then ends the call.
 *
 * AH_USAGE: the call was over already, or an observing callback asked, which leaves it open.
 * Any other failure of ah_tool_done also ends the call, as failed: AH_TOOL_VALIDATION if `json`
 * is not JSON, AH_BUDGET above 64 MiB, AH_NOMEM. A value that does not match `result` is AH_OK
 * here; the call fails for the model. */
AH_API ah_status ah_tool_done(ah_host *host, uint64_t call, const char *json);
AH_API ah_status ah_tool_refuse(ah_host *host, uint64_t call, const char *message);

/* Calls a tool by name, as a model would: arguments are checked, the policies of ah.gate and
 * the time limit hold, and handlers may wait. It does the work of the whole host until the call
 * ends. `args` NULL: no arguments. *result (result may be NULL): JSON, "null" if the tool
 * returned nothing; valid until the next ah_call_tool. Fails with AH_USAGE if name is NULL,
 * AH_TOOL_NOT_FOUND, AH_TOOL_VALIDATION if the arguments are wrong or a policy refused,
 * AH_DEADLINE, AH_CANCELLED, or AH_INTERNAL if the tool failed; ah_errmsg is then what a model
 * would see. */
AH_API ah_status ah_call_tool(ah_host *host, const char *name, const char *args,
                              const char **result);

/* Returns the tools known by name as JSON, { NAME: { "name", "description", "parameters" } },
 * sorted, with "annotations", "examples" and "version" if a tool has them. Valid until the next
 * call of it; NULL: no memory. */
AH_API const char *ah_tools(ah_host *host);

/* -- agents -------------------------------------------------------------------------------- */

/* Opens an agent. `config` is a JSON object with the fields of ah.run (docs/reference/run.md),
 * checked by the same code, except: `tools` is a list of names; `model` without a slash may
 * name an adapter that a script handed over; `on`, `log`, `asks`, a text, and all fields that
 * take functions or objects of scripts are refused.
 *
 * With the field `agent`, the name of an agent that a script handed over, it opens another
 * conversation of that agent; the other fields are `id`, `params` and `messages` of agent:open
 * (docs/reference/agent.md). It lives until its handle is closed, even if the script's agent
 * ends.
 *
 * Fails with AH_USAGE (config, unknown or closed `agent`), AH_TOOL_NOT_FOUND, AH_PROVIDER (no
 * key), another status of ah.agent, or AH_NOMEM. */
AH_API ah_status ah_agent_open(ah_host *host, const char *config, ah_agent **out);
/* Finds an agent that a script handed over, with the script's own conversation. Each call makes
 * one more handle. AH_USAGE: no script returned this name, or the script has closed the agent. */
AH_API ah_status ah_agent_find(ah_host *host, const char *name, ah_agent **out);
/* Returns the id under which a store keeps the agent's conversation; NULL: no store does. Valid
 * until the handle is closed. */
AH_API const char *ah_agent_id(const ah_agent *agent);
/* Writes what is outstanding, and returns the head of the agent's conversation in its store: the
 * number and the hash of the last record, with which store:verify finds cuts and forgeries. NULL:
 * no store keeps it, or the store has no hashes or failed. Valid until the next call of this
 * function with the handle. */
AH_API const char *ah_agent_head(ah_agent *agent);
/* Closes a handle and frees it; NULL does nothing. A run that the handle began is dropped:
 * settled, without an event `done`; unread events of the handle are discarded. An agent of
 * ah_agent_open ends with what the model keeps for it, such as processes; one of ah_agent_find
 * goes on in its script. Inside a callback, a script or a run it logs an error and does
 * nothing. */
AH_API void ah_agent_close(ah_agent *agent);

/* Counts of tokens, as the provider reported them, and their cost. */
typedef struct ah_tokens {
    int64_t input, cached_read, cached_write, output, reasoning;
    bool known;            /* the provider reported some */
    bool priced;           /* the cost of some answers is known: */
    double cost;           /* US dollars: as the provider reported it, else by known prices */
    int64_t unpriced;      /* answers of unknown cost; above 0: `cost` is not all of it */
    const char *prices_of; /* date of the oldest prices, as "2026-11-10"; NULL: none were used */
} ah_tokens;

/* The result of a run. Valid until the handle begins its next run, or until its
 * ah_agent_close. */
typedef struct ah_reply {
    int64_t run;      /* number of the run */
    ah_status status; /* AH_OK: the run has an answer */
    const char *text; /* text of the last answer, also after a failure; "" */
    size_t text_len;
    const char *stop; /* "end", ... (docs/reference/run.md); static */
    int iterations;   /* answers of the model */
    int rounds;       /* answers with calls */
    size_t tool_calls;
    const char *value; /* JSON if the agent has `output`; NULL: none */
    ah_tokens usage;
    ah_error error; /* valid if status is not AH_OK; all its strings live as long as the reply */
} ah_reply;

/* Runs the agent with `text` (NULL: nothing new) until it has an answer, and does the work of
 * the whole host meanwhile. The run waits for its background calls, and goes on with their
 * results (docs/reference/run.md). Returns the status of the reply, or the reason why no run began:
 * AH_USAGE if the agent is at work, or if the text is not UTF-8 or there is nothing to answer;
 * AH_CANCELLED after ah_terminate; AH_NOMEM. If no run begins, the earlier reply stays. A cancel
 * that came before this call has no effect. */
AH_API ah_status ah_agent_run(ah_agent *agent, const char *text);
/* Begins a run and returns: ah_step does the work, and the event `done` reports the end. Fails
 * as ah_agent_run, and with AH_BUDGET while max_events events `done` are unread. In `call` of a
 * tool, the run is not part of the call and may outlive it. */
AH_API ah_status ah_agent_start(ah_agent *agent, const char *text);
/* Queues a message: for the run at work, which goes on after its answer, otherwise for the next
 * run. In `call` of a tool it is part of the call: sent if the call succeeds. Fails with
 * AH_USAGE if the text is NULL, empty or not UTF-8; AH_GUARD; AH_NOMEM. */
AH_API ah_status ah_agent_send(ah_agent *agent, const char *text);
/* Ends the run that this handle began, in the next step, with AH_CANCELLED. Without a run it
 * does nothing. */
AH_API void ah_agent_cancel(ah_agent *agent);
AH_API bool ah_agent_at_work(const ah_agent *agent); /* true during a run of this handle */
AH_API void *ah_agent_user(const ah_agent *agent);   /* NULL until set */
AH_API void ah_agent_set_user(ah_agent *agent, void *user);

/* Returns the reply of the handle's last run; NULL before the first run and during a run. */
AH_API const ah_reply *ah_agent_reply(const ah_agent *agent);
/* Each returns JSON. NULL: no memory, or, of the reply, no reply. Messages and transcript are valid
 * until the next call of the function with this agent, the reply as long as ah_agent_reply.
 *   reply       text, value, stop, iterations, rounds, tool_calls, usage, injected_tools,
 *               removed_tools, and `error` after a failure
 *   messages    the conversation as the field `messages` takes it, to go on another day
 *   transcript  docs/reference/transcript.md */
AH_API const char *ah_agent_reply_json(ah_agent *agent);
AH_API const char *ah_agent_messages(ah_agent *agent);
AH_API const char *ah_agent_transcript(ah_agent *agent);

/* -- stores --------------------------------------------------------------------------------- */

/* An open store, in which conversations outlive the program (docs/reference/stores.md). Valid
 * until ah_store_close, or the ah_close of its host. */
typedef struct ah_store ah_store;

/* Opens a store. config: a path, or a JSON object of the fields of ah.store. Agents that name the
 * same path, or the same `name`, in their field `store` use it, with the options of this first
 * opening. Fails with AH_STORE, AH_USAGE, AH_NOMEM. */
AH_API ah_status ah_store_open(ah_host *host, const char *config, ah_store **out);
/* Ends the use; NULL does nothing. Each successful opening needs one, or the ah_close of the host.
 * Agents that use the store keep it open. Inside a callback it logs an error and does nothing. */
AH_API void ah_store_close(ah_store *store);

/* Lists the open asks of conversations whose ids begin with `id` (NULL: all). Sets *json to a JSON
 * list of { conversation, ask, kind, question, schema, default, tool, arguments, result, changes,
 * asked, timeout }, the conversation changed last first (docs/reference/asks.md); asked: seconds
 * since 1970, timeout: seconds from then. Valid until the next call of it with this host.
 * Conversations that other processes hold are listed, too. Fails with AH_STORE, AH_USAGE, AH_NOMEM.
 */
AH_API ah_status ah_store_asks(ah_store *store, const char *id, const char **json);
/* Responds to such an ask with a JSON value, as ah_ask_close does. The holder of the conversation
 * takes the response within a second, or when it opens the conversation. AH_TOOL_VALIDATION: the
 * value is not JSON or does not match the schema. AH_CONFLICT: another response came first.
 * AH_USAGE: there is no such conversation or ask, or the ask is closed. Also AH_STORE, AH_NOMEM. */
AH_API ah_status ah_store_respond(ah_store *store, const char *conversation, const char *ask,
                                  const char *response, const char *principal);

/* -- engines of the program ----------------------------------------------------------------- */

/* Bytes that may contain NUL and end without one. p NULL: none. */
typedef struct ah_span {
    const char *p;
    size_t n;
} ah_span;

/* A record of a stream. A stream is what has a log, such as a conversation; its records are
 * numbered from 1 without a gap, and none is ever changed. Times are milliseconds since 1970. */
typedef struct ah_engine_record {
    int64_t number; /* in ah_engine_batch: the number that the record gets */
    int64_t time;
    ah_span kind; /* "turn": docs/reference/journal.md lists them */
    ah_span said; /* JSON object */
    ah_span kept; /* .p NULL: none, which differs from empty */
} ah_engine_record;

/* Records for one stream. */
typedef struct ah_engine_batch {
    ah_span stream; /* 1 to 128 bytes */
    int64_t after;  /* number of the last record that the stream must have; 0: none */
    int64_t fence;  /* of `hold` */
    const ah_engine_record *records;
    size_t n_records;
    const ah_span *taken; /* keys of messages that leave the stream's inbox with this append */
    size_t n_taken;
} ah_engine_batch;

/* An append: all batches, or nothing. Valid, with all that it refers to, until ah_store_appended.
 */
typedef struct ah_engine_append {
    uint64_t id; /* for ah_store_appended; never 0, unique in this host */
    const ah_engine_batch *batches;
    size_t n_batches;
    bool sync; /* it announces an effect outside: end it when it survives a loss of power */
} ah_engine_append;

typedef struct ah_engine_stream {
    ah_span name;
    ah_span label;   /* of `label`; .p NULL: none */
    int64_t last;    /* number of the last record */
    int64_t time;    /* of the last record */
    size_t messages; /* number of messages in its inbox */
} ah_engine_stream;

/* A message for the holder of a stream. */
typedef struct ah_engine_message {
    ah_span key;
    ah_span kind; /* "response", "cancel", "send" */
    ah_span body; /* JSON object */
    int64_t time;
} ah_engine_message;

/* Functions of the host that an engine calls once for each row, only inside the function that
 * received them, with `to` unchanged. The row is copied. A result other than AH_OK ends the
 * reading: the engine returns it. */
typedef ah_status (*ah_engine_record_fn)(void *to, const ah_engine_record *record);
typedef ah_status (*ah_engine_stream_fn)(void *to, const ah_engine_stream *stream);
typedef ah_status (*ah_engine_message_fn)(void *to, const ah_engine_message *message);

/* The program's own way to keep streams, for example in its database. All functions are called on
 * the host's thread, are observing callbacks, and may block for the time of an access. A function
 * that fails returns AH_STORE, or what its comment says, and may set *why to a text for people,
 * which the host copies at once. What an engine returns is checked; what is impossible is AH_STORE
 * for the call of the host. Functions that may be NULL say so. */
typedef struct ah_store_engine {
    size_t size;      /* sizeof(ah_store_engine) */
    const char *name; /* agents name the store by it: { "store": { "name": "mine" } } */
    /* Begins an append. Appends are carried out in the order of this call, each ended by one
     * ah_store_appended, inside `append` or later. An append is refused as a whole if a stream
     * does not have `after` records (AH_CONFLICT), or if `fence` is not that of its last `hold`,
     * or it is not held (AH_STORE). */
    void (*append)(void *ud, ah_host *host, const ah_engine_append *append);
    /* Called when the host cannot go on before an append has ended: ends at least one, otherwise
     * all outstanding ones fail with AH_STORE and their memory is freed. NULL: the host's thread
     * sleeps until another thread has called ah_store_appended. An engine that ends all appends
     * inside `append` needs none. Runs that wait for a record do not call it: an engine that ends
     * appends later does so on a thread, in `woken`, or between calls of ah_step. */
    void (*wait)(void *ud, ah_host *host);
    /* Makes this host the holder of the stream, which exists then. Sets *fence, which is above 0
     * and higher than that of each holder before. AH_CONFLICT: it is held; with `take` the other
     * holder loses it. */
    ah_status (*hold)(void *ud, ah_span stream, bool take, int64_t *fence, const char **why);
    void (*release)(void *ud, ah_span stream);
    /* Reads the records from number `from` on, in order. A stream that does not exist has none. */
    ah_status (*read)(void *ud, ah_span stream, int64_t from, ah_engine_record_fn each, void *to,
                      const char **why);
    /* Sets *number to that of the last record of this kind; 0: none. NULL: the host reads the
     * stream. */
    ah_status (*find_last)(void *ud, ah_span stream, ah_span kind, int64_t *number,
                           const char **why);
    /* Lists the streams with records whose names begin with `prefix`, the one changed last first.
     */
    ah_status (*list)(void *ud, ah_span prefix, ah_engine_stream_fn each, void *to,
                      const char **why);
    /* Sets the label of a held stream; .p NULL removes it. AH_STORE: it is not held. */
    ah_status (*label)(void *ud, ah_span stream, ah_span label, const char **why);
    /* Puts a message into the inbox of a stream, whoever holds it. AH_CONFLICT: the stream has or
     * had one with this key. AH_USAGE: there is no such stream. */
    ah_status (*post)(void *ud, ah_span stream, const ah_engine_message *message, const char **why);
    /* Reads the inbox of a stream in the order of posting. */
    ah_status (*inbox)(void *ud, ah_span stream, ah_engine_message_fn each, void *to,
                       const char **why);
    /* Returns true if an inbox may have a new message since the last call. Called four times a
     * second while a run waits for some. NULL: the inboxes are read as often. */
    bool (*news)(void *ud);
    /* The last call: no append is outstanding. All streams are released. Not called if
     * ah_store_open_with failed. May be NULL. */
    void (*close)(void *ud);
    void *ud;
} ah_store_engine;

/* Opens a store of an engine. Fails with AH_USAGE if `size` is wrong, if a function is missing, if
 * the name is not 1 to 128 bytes of UTF-8, or if an open store of this host has it; AH_NOMEM. */
AH_API ah_status ah_store_open_with(ah_host *host, const ah_store_engine *engine, ah_store **out);
/* Ends an append of an engine: AH_OK, AH_CONFLICT, AH_NOMEM, or AH_STORE, with a message for
 * people (may be NULL). From any thread, between ah_open and ah_close. Returns AH_USAGE, without an
 * effect, if the append has ended before or is unknown; this error is not kept. */
AH_API ah_status ah_store_appended(ah_host *host, uint64_t append, ah_status status,
                                   const char *message);

/* -- asks ----------------------------------------------------------------------------------- */

/* A question for a person (docs/reference/asks.md): the approval of a call, or a question of a
 * handler. */
typedef struct ah_ask {
    const char *id;   /* "ask_7", unique in this host */
    const char *kind; /* "approval" or "question" */
    ah_agent *agent;  /* the handle in whose run it was asked, at any depth; NULL: a script's */
    int64_t run;      /* number of the run, as in events */
    const char *question;
    size_t question_len;
    const char *schema;        /* JSON Schema of the response */
    const char *default_value; /* JSON: the response if no front end gives one; NULL: none */
    double seconds_left;       /* until the ask times out; below 0: no limit */
    bool secret;               /* neither show nor log the response */
    const char *call;          /* id of the call that waits */
    const char *tool;
    const char *args; /* JSON object: the arguments of the call */
    size_t args_len;
    const char *parent_call; /* the call in whose handler its run was started; NULL: none */
    /* Of an approval of changes: the call was made, and these are committed with a yes. */
    const char *result;  /* as the model would read it; NULL: it is none */
    const char *changes; /* JSON list (docs/reference/changes.md); NULL: it is none */
} ah_ask;

/* Returns the next ask that the program has not seen, in the order of opening. Valid until the
 * next call of it, even if the ask closes meanwhile (event `ask_closed`). NULL: none, or, with
 * the error kept, `asks` of the config is false. Front ends of scripts come first: an ask
 * arrives here when none of them has responded. Call it after each ah_step; during a call that
 * waits, call it in `woken`, after the watcher called ah_wake for the event `ask`. */
AH_API const ah_ask *ah_ask_next(ah_host *host);

/* Responds with a JSON value; an approval takes true, false, or { "approved", "why",
 * "arguments" }, that of changes no "arguments". The first valid response counts; what waits for it
 * goes on in ah_step. `principal` names the responder in the event: UTF-8, 1 to 256 bytes; NULL:
 * "front end". Another thread notes its response and calls ah_wake; `woken` then responds.
 *
 * Each failure leaves the ask as it was: AH_TOOL_VALIDATION if the response is not JSON or does
 * not match the schema; AH_USAGE if the ask is closed (ah_errmsg states how) or unknown, or if
 * id, response or principal is invalid; AH_NOMEM. */
AH_API ah_status ah_ask_close(ah_host *host, const char *id, const char *response,
                              const char *principal);

/* -- the loop ------------------------------------------------------------------------------- */

/* Performs the work that is due. If none is, it waits for some, at most timeout_ms (-1: no
 * limit, 0: no wait); without a started run at work it does not wait. Returns the number of
 * runs of ah_agent_start that are still at work, or AH_USAGE (below 0) inside a callback, a
 * script or a run. */
AH_API int ah_step(ah_host *host, int timeout_ms);
/* For a program with its own loop: wait until the descriptor is readable, at most ah_timeout
 * milliseconds (-1: no limit), then call ah_step(host, 0). The descriptor stays the same and is
 * the host's: neither read nor close it. -1: the system has none; call ah_step every few
 * milliseconds. Call ah_timeout before each wait. */
AH_API int ah_pollfd(ah_host *host);
AH_API int ah_timeout(ah_host *host);

/* Returns the next event of the runs that ah_agent_start began, in order; NULL: none. Valid
 * until the next call of it, or the ah_agent_close of its agent. `content` comes if the agent
 * streams. Events beyond max_events, or without memory, are lost and counted in `lost`; `done`
 * never is, but without memory its JSON has only type, run and time. A watcher sees the runs of
 * calls that wait and of scripts. */
AH_API const ah_event *ah_next_event(ah_host *host);

/* Cancels the work of a host; NULL does nothing. From any thread, and async-signal-safe. Every
 * run at work settles its calls and ends with AH_CANCELLED, and every wait of a script fails.
 * Without work at this moment it has no effect. Other code of a script, which neither runs an
 * agent nor waits, is interrupted only by a signal handler on the host's own thread. */
AH_API void ah_cancel(ah_host *host);
/* Cancels as ah_cancel, for the end of the program: from now on every run and every wait of a
 * script fails with AH_CANCELLED. Code of a script has a fifth of a second to end after it
 * learned that; then it is stopped wherever it is in Lua. The host can only be closed. NULL
 * does nothing. */
AH_API void ah_terminate(ah_host *host);
/* Returns 0 unless a script waits, otherwise a number that differs for each such wait. For
 * signal handlers on the host's own thread: at a second Ctrl-C with the same number, the work
 * that the first one cancelled has not ended. NULL: 0. */
AH_API unsigned ah_waiting(const ah_host *host);
/* Returns true once a script of the host has called ah.interactive(), as a chat does: a Ctrl-C
 * then means the answer that is waited for (ah_cancel), otherwise the script (ah_terminate).
 * From any thread. NULL: false. */
AH_API bool ah_interactive(const ah_host *host);
/* Wakes the host; NULL does nothing. From any thread, and async-signal-safe. The call that
 * waits, or the next one, calls `woken` of the config; ah_step also returns. Several calls may
 * cause one. */
AH_API void ah_wake(ah_host *host);

/* -- feeding a transport's responses -------------------------------------------------------- */

/* All four copy what they are given, on the host's thread. For an id that is over, such as one
 * that the host ended for its time or size, they do nothing. */

/* The head of the response: status and "Name: value" lines. Leave interim (1xx) ones out. Only
 * the first head of a request counts. */
AH_API void ah_transport_head(ah_host *host, uint64_t id, int status, const char *const *headers,
                              size_t n_headers);
AH_API void ah_transport_body(ah_host *host, uint64_t id, const void *bytes, size_t n);
/* Ends the request. error NULL: the response is complete; otherwise a message about what
 * failed. An end without a head is an error. */
AH_API void ah_transport_end(ah_host *host, uint64_t id, const char *error);
/* Ends the request as failed, with err.reason: one of the reasons of docs/reference/errors.md
 * ("refused", "dns", "tls", ...); NULL or another word: "broken". */
AH_API void ah_transport_fail(ah_host *host, uint64_t id, const char *reason, const char *error);

#ifdef __cplusplus
}
#endif

#endif
