/* agenthost: runs LLM agents whose tools are written in Lua 5.4, or in C.
 *
 * This header is for programs that embed agenthost; it compiles alone as C11
 * and C++17 and shows no type of Lua, libcurl or cJSON. docs/reference/embedding.md leads through
 * it.
 *
 * Threads: a host, and all that belongs to it, is used by one thread at a time; two hosts
 *   never notice each other. ah_cancel and ah_wake may be called from any thread as long as
 *   the host lives, and from signal handlers.
 * Stack: the library takes at most 256 KiB of the thread's, whatever it is given; 512 KiB serve
 *   with scripts of your own, 1 MiB with any (docs/reference/embedding.md).
 * Callbacks: functions of the program are called on the thread that uses the host, from within
 *   the call that does its work. The functions of this header are of three kinds in them:
 *     always           ah_cancel, ah_wake, and what only reads: ah_user, ah_last_error,
 *                      ah_errmsg, ah_version, ah_status_name, ah_about, ah_counter,
 *                      ah_control_char, ah_returned, ah_tools, ah_agent_reply,
 *                      ah_agent_reply_json, ah_agent_messages, ah_agent_transcript,
 *                      ah_agent_at_work, ah_agent_user, ah_agent_set_user, ah_next_event,
 *                      ah_pollfd, ah_timeout
 *     in those of tools (call, cancel), of the transport, and in `woken`, besides:
 *                      ah_tool_done, ah_tool_refuse, ah_ask_next, ah_ask_close, ah_transport_*,
 *                      ah_agent_start, ah_agent_send, ah_agent_cancel
 *     never            what waits, steps, opens, closes or declares: ah_close, ah_script, ah_load,
 *                      ah_add_tool, ah_remove_tool, ah_alias, ah_defaults, ah_call_tool,
 *                      ah_agent_open, ah_agent_find, ah_agent_close, ah_agent_run, ah_step
 *   So callbacks that only observe (of the watcher, log, clock, wall, random, tty, a tool's
 *   release) may call the first kind alone, and `alloc` nothing at all. A call that is not allowed
 *   is refused and does nothing: AH_USAGE (ah_step: below 0); one that returns nothing logs an
 *   error. The last kind is refused as well inside observers of a script and its other code that
 *   cannot wait (docs/reference/waiting.md), if a C function of the program is called from there.
 * Process: nothing here prints, exits or installs signal handlers (a script that
 *   calls print or os.exit does). Ignore SIGPIPE, and do not change LC_NUMERIC
 *   while a call is at work. The environment is read (AGENTHOST_MODEL, keys and addresses of
 *   providers, proxies), never written. The one process-wide act is libcurl's start, done
 *   once, with the first request; with a transport of your own it is not started.
 * Memory: everything comes from the allocator of the config, but for what libcurl
 *   and cJSON take from malloc. Running out of it is AH_NOMEM, never an abort; the host
 *   stays usable, and conversations stay sound.
 * Ownership: what is returned belongs to the host or the agent, and each function says how
 *   long it is valid; nothing is for the caller to free. What is given is copied.
 * Strings are UTF-8 and NUL-terminated; where a length stands beside one, it may hold NUL. */
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

/* Every fallible call returns one of these. Scripts see the same as err.code. */
typedef enum ah_status {
    AH_OK = 0,
    AH_INTERNAL = -1, /* also: a script raised an error of its own, a tool failed */
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
    AH_CANCELLED = -17,
    AH_GUARD = -18,       /* a guard of the input or of the answer ended the run */
    AH_WAITING = -19,     /* an ask has no front end that could respond */
    AH_CONTEXT_FULL = -20 /* the conversation does not fit into the model's window */
} ah_status;

typedef struct ah_host ah_host;
typedef struct ah_agent ah_agent; /* a conversation and how it is run; dies with its host */

/* -- configuration ---------------------------------------------------------------------- */

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

/* An event of a run; docs/reference/events.md lists types and fields. Keys are already taken
 * out. */
typedef struct ah_event {
    const char *type; /* "tool_invoked" */
    ah_agent *agent;  /* of the program; NULL: a script's */
    int64_t run;
    double time;      /* seconds since 1970 */
    const char *text; /* the piece of "content", the words of "warning"; "" */
    size_t text_len;
    const char *json; /* the event as JSON */
    size_t json_len;
    size_t lost; /* ah_next_event: events that found no room before this one. "done" always has */
} ah_event;

/* An observer of a host's work, such as a terminal. Each function may be NULL; none may use the
 * host. */
typedef struct ah_watcher {
    /* Each event of every run of an agent, as it happens and before observers in scripts have it;
     * and of ah_call_tool and of a script's registry:execute those about the tool (agent NULL).
     * Valid during the call. One for which there is no memory is left out. */
    void (*event)(void *ud, const ah_event *event);
    bool content; /* `content` too, which has answers asked for as stream, as an observer in a
                     script */
    /* The host is about to wait for at most timeout_ms (-1: until something comes); returns for
     * how long it may. With timeout_ms 0 it is about to work, and the answer does not matter. */
    int (*idle)(void *ud, int timeout_ms);
    /* os.exit is about to end the process with this exit code. Not in a state that was attached. */
    void (*leaving)(void *ud, int code);
    void *ud; /* of all */
} ah_watcher;

/* A request as a transport gets it. */
typedef struct ah_transport_request {
    uint64_t id;                /* never 0, never used again in this host */
    const char *method;         /* "POST"; with url and headers valid during `start` */
    const char *url;            /* http or https */
    const char *const *headers; /* "Name: value", keys in clear; not Content-Length */
    size_t n_headers;
    const char *body; /* valid until the request has ended or was cancelled */
    size_t body_len;
    double connect_timeout; /* seconds; the times for silence and in all are kept by the host */
} ah_transport_request;

/* An HTTP stack of the program's own in place of libcurl. `start` begins a request and
 * returns AH_OK, or what failed. Then, in it or later, on the host's thread: ah_transport_head
 * once, ah_transport_body for each piece, ah_transport_end; or `cancel` is called and the id
 * is over. Do not follow redirects, do not ask for compression. */
typedef struct ah_transport {
    ah_status (*start)(void *ud, ah_host *host, const ah_transport_request *request);
    void (*cancel)(void *ud, ah_host *host, uint64_t id);
    void *ud;
} ah_transport;

/* A terminal for scripts (ah.terminal, docs/reference/terminal.md), of a program that owns one. The
 * program switches modes and looks after signals, the host reads keys and writes. Called on the
 * host's thread, from within functions of a script; all are given where `enter` is. */
enum { AH_TTY_AWAY = 64 };
enum {
    AH_TTY_SIGNALS = 1, /* Ctrl-C and its like are signals, else keys */
    AH_TTY_DISTINCT = 2 /* keys that look alike are told apart, by kitty's keyboard protocol */
};
typedef struct ah_tty {
    /* A script opens it: keys are to come one by one, without being shown. mode: of AH_TTY_SIGNALS
     * and the like. *fd is to read and write without blocking; *news has a byte to read whenever
     * the size may have changed or `kept` may have become false. 0, or an errno (EBUSY: it is
     * open). NULL: there is none. */
    int (*enter)(void *ud, unsigned mode, int *fd, int *news);
    void (*leave)(void *ud);   /* it is closed: both descriptors are the program's again */
    void (*suspend)(void *ud); /* stops the program, as Ctrl-Z does, until it is continued */
    void (*writing)(void *ud); /* the host is about to write: what waits in a buffer goes first */
    /* Takes the bytes that take the script's live area off the screen from now on; n is at most
     * AH_TTY_AWAY, 0 where none is drawn. For a program that writes itself, or is being stopped. */
    void (*shown)(void *ud, const char *away, size_t n);
    bool (*kept)(void *ud); /* False: the program has written since `shown`; a new line has begun */
    bool sequences;         /* it obeys escape sequences */
    bool color;             /* and colors are welcome */
    bool reflows;           /* made narrower, it breaks the lines that it shows anew */
    void *ud;
} ah_tty;

/* Settings of a host. Zero is a good default for each; `size` lets a later library
 * serve a program built with an earlier header. Times of the clocks are milliseconds. */
typedef struct ah_config {
    size_t size;         /* sizeof(ah_config) */
    ah_realloc_fn alloc; /* NULL: malloc and friends */
    void *alloc_ud;
    ah_log_fn log; /* NULL: silent */
    void *log_ud;
    ah_log_level log_level;
    /* wins over what scripts name ("provider/model"); NULL: they decide. Copied */
    const char *model;

    void *user;                   /* for the program: ah_user */
    int64_t (*clock)(void *ud);   /* only goes forward, at the speed of time; NULL: the system's */
    int64_t (*wall)(void *ud);    /* since 1970; NULL: the system's */
    void *clock_ud;               /* of both */
    uint64_t (*random)(void *ud); /* 64 random bits, for the waits between retries; NULL: our own */
    void *random_ud;
    ah_transport transport;  /* start NULL: libcurl */
    void (*woken)(void *ud); /* after ah_wake, on the host's thread; may be NULL */
    void *woken_ud;
    size_t max_memory;  /* bytes of Lua values; 0: no limit. Over it: AH_NOMEM */
    size_t max_events;  /* kept for ah_next_event; 0: 4096. Their bytes: 16 MiB */
    ah_watcher watcher; /* zero: nobody */
    /* Paths, copied; at most one of them. HTTP exchanges are written to `record`, a line of JSON
     * each, secrets taken out; or answers come from such a file, `replay`, without a network
     * (docs/reference/recording.md). A file that cannot be used fails the first request, with
     * AH_USAGE. */
    const char *record, *replay;
    /* True if the program takes asks from ah_ask_next and closes each with ah_ask_close: calls wait
     * until it does. False: an ask without a front end in the script fails at once. */
    bool asks;
    ah_tty tty; /* zero: scripts have no ah.terminal */
} ah_config;

/* -- a host ------------------------------------------------------------------------------ */

/* A host with its own Lua state, in which `require "agenthost"` works without any
 * installation. cfg may be NULL. On failure *out is untouched: AH_NOMEM, AH_USAGE where
 * cfg->size is of no version known here or both record and replay are given, or AH_INTERNAL where
 * the system gives no event loop. */
AH_API ah_status ah_open(const ah_config *cfg, ah_host **out);
/* NULL is fine. Runs still at work are cancelled and settled, agents closed, and tools of the
 * program get their last `cancel` and `release`; nothing of the host may be used from then on.
 * A host that was attached to a Lua state (agenthost_lua.h) stays in it, without these. */
AH_API void ah_close(ah_host *host);
AH_API void *ah_user(const ah_host *host); /* of the config */

/* The error of the host's last failed call. Valid until the next call that fails. */
typedef struct ah_error {
    ah_status status;
    const char *code;    /* "deadline_exceeded" */
    const char *message; /* one line */
    const char *phase;   /* "request", "tool", "response", or NULL */
    bool retryable;      /* another try may go better */
    int http_status;     /* 0: none */
    const char *json; /* an object with these and what names the place, as docs/reference/errors.md
                         has them */
} ah_error;
AH_API const ah_error *ah_last_error(ah_host *host);
/* Returns the message of ah_last_error; for an error that a script raised, with the lines of its
 * traceback after it. For a NULL host, a message that there is no host. */
AH_API const char *ah_errmsg(const ah_host *host);

AH_API const char *ah_version(void);             /* "0.1.0" */
AH_API const char *ah_status_name(ah_status st); /* "deadline_exceeded"; AH_NOMEM is "internal" */
/* One line a library or feature, "name value", valid as long as the host; for people. */
AH_API const char *ah_about(ah_host *host);
/* For programs that show text of models and tools on a terminal: returns the number of bytes at the
 * beginning of `text` that form a character which the terminal would obey, or which turns the
 * direction of writing (C0 with line ends and tabs, DEL, C1, bidirectional controls in UTF-8); 0 if
 * there is none. */
AH_API size_t ah_control_char(const char *text, size_t n);
/* One of the host's counters, as ah.metrics() has them: "agenthost.runs", the runs that ended, ...
 * (docs/reference/budgets.md). They only grow. -1: there is none of this name. */
AH_API int64_t ah_counter(const ah_host *host, const char *name);

/* -- scripts ------------------------------------------------------------------------------ */

/* Runs a script: a file, or standard input for path "-". The script gets argv[0..argc-1]
 * as `...` and in the global `arg` (arg[0] is the path). Text only: bytecode is refused.
 * AH_USAGE only where the file cannot be read, or a script of this host is at work; the
 * status of an agenthost error it raised, or returned behind nil (as `return ah.agent { ... }` does
 * where there is no key); AH_INTERNAL for any other error (a wrong use of the library in the script
 * included).
 *
 * What a script returns is handed to the program: a tool, an agent (under the name "agent"), or a
 * table in which there are tools, agents and adapters (ah.scripted). Tools go by their own names,
 * agents and adapters by the keys of the table; what else is in it is left alone. A name that
 * another tool has is AH_PROMPT_VALIDATION, and then nothing is handed over; agents and adapters of
 * the same key take the place of earlier ones. */
AH_API ah_status ah_script(ah_host *host, const char *path, int argc, char **argv);
/* The same for text in memory; `name` stands in messages and tracebacks, and in arg[0]. */
AH_API ah_status ah_load(ah_host *host, const char *name, const char *text, size_t len, int argc,
                         char **argv);
/* The string that the last script or text returned; NULL: nothing, or something else. Valid until
 * the next of them. */
AH_API const char *ah_returned(const ah_host *host);

/* Names and rows of models, as the settings' `models.NAME` have them: a JSON object of
 * "provider/model" or of what is known of one, by name (docs/reference/models.md). They hold for
 * this host; those of scripts (ah.alias) take their place. AH_USAGE, and ah_errmsg, where one is
 * wrong: those before it may have been taken. */
AH_API ah_status ah_alias(ah_host *host, const char *json);
/* Fields of ah.run for all runs and agents of this host that are begun from now on: a JSON object
 * of max_iterations, on_max, on_empty, max_tools, timeout, retries, and of the objects http (its
 * times), options (temperature, max_tokens, top_p, seed, reasoning, cache) and budget (without
 * prices), as docs/reference/run.md has them. A script's own win, member by member in these three;
 * so do the options that a conversation is held with. Each call takes the place of the one before:
 * {} takes all away. AH_USAGE, and ah_errmsg, where one is wrong: then nothing has changed. */
AH_API ah_status ah_defaults(ah_host *host, const char *json);

/* -- tools --------------------------------------------------------------------------------- */

/* One call of a tool of the program. Valid during the call of the function. */
typedef struct ah_tool_call {
    uint64_t id; /* for ah_tool_done; never 0, never used again in this host */
    const char *tool;
    const char *args; /* JSON object: checked against the parameters, defaults filled in */
    size_t args_len;
    int64_t run;         /* which run it belongs to, as in its events */
    double seconds_left; /* until it is stopped; below 0: no limit */
} ah_tool_call;

/* A tool written in C. The strings are copied. */
typedef struct ah_tool_config {
    size_t size;                  /* sizeof(ah_tool_config) */
    const char *name;             /* ^[a-z0-9_-]{1,64}$ */
    const char *description;      /* 1 to 200 ASCII characters */
    const char *params;           /* JSON Schema of an object; NULL: no parameters */
    const char *result;           /* JSON Schema of the value; NULL: anything */
    bool parallel;                /* may be at work beside its neighbours in a message */
    double timeout;               /* seconds for one call; 0: those of the run */
    const char *full_description; /* what the model is told instead: UTF-8, up to 16 KiB; NULL */
    bool coerce; /* arguments of a wrong type are taken as they were surely meant */
    /* bytes of a result that the model sees (docs/reference/run.md); 0: 64 KiB */
    size_t max_result;
    bool return_direct; /* its result is the run's answer (docs/reference/tool.md, ah.tool) */
    /* Properties for policies: a JSON object with booleans under read_only, destructive,
     * idempotent, open_world and untrusted (docs/reference/tool.md). NULL: none is declared */
    const char *annotations;
    const char *version; /* UTF-8, up to 64 bytes: told where a conversation goes on; NULL: none */
    /* Begins a call. Answered once, with ah_tool_done or ah_tool_refuse, in it or later. */
    void (*call)(void *ud, ah_host *host, const ah_tool_call *call);
    /* The call is over unanswered (cancelled, out of time, host closed). May be NULL. */
    void (*cancel)(void *ud, ah_host *host, uint64_t call);
    void (*release)(
        void *ud); /* nothing uses the tool any more; not after a failure. May be NULL */
    void *ud;
} ah_tool_config;

/* Makes a tool known under its name to agents of the program (field `tools`) and to scripts
 * (ah.host_tool). AH_PROMPT_VALIDATION names what is wrong, a name that is taken included. */
AH_API ah_status ah_add_tool(ah_host *host, const ah_tool_config *tool);
/* Forgets a tool, of the program or handed over; agents that have it keep it. AH_TOOL_NOT_FOUND. */
AH_API ah_status ah_remove_tool(ah_host *host, const char *name);

/* Answers a call with a JSON value (a JSON string is shown to the model without its quotes),
 * or as failed, with words for the model. The call is over in any case: AH_USAGE where it
 * already was, AH_TOOL_VALIDATION where `json` is none (the model is told of a failure),
 * AH_NOMEM. On the host's thread; from others, take note, ah_wake, and answer in `woken`. */
AH_API ah_status ah_tool_done(ah_host *host, uint64_t call, const char *json);
AH_API ah_status ah_tool_refuse(ah_host *host, uint64_t call, const char *message);

/* Calls a tool by name, of a script or of the program, as a model would: arguments are checked,
 * the policies of the script's ah.gate and its time limit hold, handlers may wait. Does the work of
 * the whole host meanwhile. *result: JSON, "null" where the tool gave nothing; valid until the next
 * ah_call_tool. AH_TOOL_NOT_FOUND; AH_TOOL_VALIDATION where `args` (NULL: none) do not fit, or a
 * policy refuses it; AH_DEADLINE; AH_CANCELLED; AH_INTERNAL where it failed, ah_errmsg with what a
 * model would be told. */
AH_API ah_status ah_call_tool(ah_host *host, const char *name, const char *args,
                              const char **result);

/* The tools known by name: JSON, { NAME: { "name", "description", "parameters" } }, sorted, with
 * "annotations", "examples" and "version" where a tool has them. Valid until the next call of it;
 * NULL: no memory. */
AH_API const char *ah_tools(ah_host *host);

/* -- agents -------------------------------------------------------------------------------- */

/* An agent of the program. `config` is a JSON object with the fields of ah.run
 * (docs/reference/run.md), checked by the same code, but for: `tools` is a list of names; `model`
 * without a slash names an adapter that a script handed over; `on`, `log`, `asks`, all else that
 * takes functions or objects of scripts, and a text are refused.
 *
 * With a field `agent`, the name of an agent that a script handed over, it is another conversation
 * of that: the other fields are those of agent:open (docs/reference/agent.md) that JSON can say:
 * `id`, `params` and `messages`. It lives as long as its handle, whatever becomes of the script's
 * own agent. AH_USAGE where there is none of that name, or the script has closed it. */
AH_API ah_status ah_agent_open(ah_host *host, const char *config, ah_agent **out);
/* An agent that a script handed over, with the conversation of its own that the script has, too;
 * one handle for each call. AH_USAGE: there is none. */
AH_API ah_status ah_agent_find(ah_host *host, const char *name, ah_agent **out);
/* A run still at work is dropped: settled, without an event; what the model keeps for an agent
 * of the program (a process) goes. NULL is fine. */
AH_API void ah_agent_close(ah_agent *agent);

/* Tokens, as the provider told them; `known` where it told any. */
typedef struct ah_tokens {
    int64_t input, cached_read, cached_write, output, reasoning;
    bool known;
    bool priced; /* it told what some of them cost: */
    double cost; /* US dollars */
} ah_tokens;

/* The result of an agent's run. Valid until the agent's next run, or its end. */
typedef struct ah_reply {
    int64_t run;
    ah_status status; /* AH_OK: there is an answer */
    const char *text; /* of the last answer, also after a failure; "" */
    size_t text_len;
    const char *stop; /* "end", ... as docs/reference/run.md has them */
    int iterations;   /* answers of the model */
    int rounds;       /* of them, with calls */
    size_t tool_calls;
    const char *value; /* JSON, where the agent has `output`; NULL: none */
    ah_tokens usage;
    ah_error error; /* meaningful where status is not AH_OK */
} ah_reply;

/* Says `text` (NULL: nothing new) and runs until there is an answer, doing the work of the
 * whole host meanwhile. Returns the reply's status, or why no run began: AH_USAGE where
 * the agent is at work, AH_NOMEM. */
AH_API ah_status ah_agent_run(ah_agent *agent, const char *text);
/* The same without waiting: ah_step does the work, the event `done` tells of the end. */
AH_API ah_status ah_agent_start(ah_agent *agent, const char *text);
/* Queues a message to the run at work, which then goes on after its answer; without a run, said
 * in the next one. In the function of a tool it is part of the call: sent when that has
 * succeeded. */
AH_API ah_status ah_agent_send(ah_agent *agent, const char *text);
AH_API void ah_agent_cancel(ah_agent *agent); /* the run at work ends with AH_CANCELLED, soon */
AH_API bool ah_agent_at_work(const ah_agent *agent);
AH_API void *ah_agent_user(const ah_agent *agent); /* NULL until set */
AH_API void ah_agent_set_user(ah_agent *agent, void *user);

AH_API const ah_reply *ah_agent_reply(const ah_agent *agent); /* NULL before and during a run */
/* Each is JSON, valid until the next call of it with this agent; NULL: no memory, or (the
 * reply) none there. The reply: text, value, stop, iterations, rounds, tool_calls, usage,
 * injected_tools, removed_tools, and `error` after a failure. The messages: as the field `messages`
 * takes them, to go on another day. The transcript: docs/reference/transcript.md. */
AH_API const char *ah_agent_reply_json(ah_agent *agent);
AH_API const char *ah_agent_messages(ah_agent *agent);
AH_API const char *ah_agent_transcript(ah_agent *agent);

/* -- asks ----------------------------------------------------------------------------------- */

/* A question for a person (docs/reference/asks.md): the approval of a call, or a question of a
 * handler. */
typedef struct ah_ask {
    const char *id;   /* "ask_7", unique in this host */
    const char *kind; /* "approval" or "question" */
    ah_agent *agent;  /* of the program, in whose run it is asked, however deep; NULL: a script's */
    int64_t run;      /* as in its events */
    const char *question;
    size_t question_len;
    const char *schema;        /* JSON Schema of the response */
    const char *default_value; /* JSON: the response where no front end gives one; NULL: none */
    double seconds_left;       /* until its time is over; below 0: no limit */
    bool secret;               /* do not show the response, and do not log it */
    const char *call;          /* id of the call that waits */
    const char *tool;
    const char *args; /* and what its handler has, or would have: a JSON object */
    size_t args_len;
    const char *parent_call; /* the call in whose handler its run was started; NULL: none */
} ah_ask;

/* The next ask that the program has not seen, in the order of opening, or NULL: there is none, or
 * (the error is kept) `asks` of ah_config is false: AH_USAGE. Valid until the next call of it, also
 * where the ask is over by then, which the event `ask_closed` tells. Front ends of scripts come
 * first: an ask is given here when none of them has responded. Look after each ah_step. Who waits
 * in a call looks in `woken`: its watcher is told the event `ask`, and calls ah_wake. */
AH_API const ah_ask *ah_ask_next(ah_host *host);

/* Responds with a JSON value: of an approval true, false, or { "approved", "why", "arguments" }.
 * The first valid response counts. `principal` names the responder in the event; NULL: "front end".
 * Copied. AH_TOOL_VALIDATION: it is no JSON or does not match the schema, ah_errmsg says where, and
 * the ask stays open. AH_USAGE: the ask was closed before (ah_errmsg says how), there is none of
 * this id, id or response is NULL, or the principal is no UTF-8 of 1 to 256 bytes. AH_NOMEM: it
 * stays open. What waited for it goes on in ah_step. On the host's thread; from others, ah_wake,
 * and in `woken`. */
AH_API ah_status ah_ask_close(ah_host *host, const char *id, const char *response,
                              const char *principal);

/* -- the loop ------------------------------------------------------------------------------- */

/* Works off what is due; if nothing is, waits at most timeout_ms for something (-1: no limit, 0:
 * not at all), but not at all if no agent is at work. Returns the number of agents started by
 * ah_agent_start that are still at work, or AH_USAGE (below 0) inside a callback. */
AH_API int ah_step(ah_host *host, int timeout_ms);
/* To wait elsewhere: for this descriptor to be readable, at most ah_timeout milliseconds (-1: no
 * limit), then ah_step(host, 0). -1 where the system has no such descriptor: then call ah_step
 * every few milliseconds. Ask for the timeout anew before each wait. */
AH_API int ah_pollfd(ah_host *host);
AH_API int ah_timeout(ah_host *host);

/* The next event of the runs that ah_agent_start began, in order, or NULL. Valid until the next
 * call of it, and of ah_agent_close. `content` is told where the agent's answers are asked for as
 * stream. (Who waits in a call, or wants to see the runs of scripts as well, has a watcher.) */
AH_API const ah_event *ah_next_event(ah_host *host);

/* From any thread, and async-signal-safe. ah_cancel: every run that is at work settles its
 * open turn and ends with AH_CANCELLED, every wait of a script with an error; called in a
 * signal handler on the host's own thread it interrupts the script's code at once. Where
 * nothing is at work it does nothing. A NULL host is fine in all of them.
 *
 * ah_terminate is ah_cancel for good, as the end of the program: every later run and wait of a
 * script gives AH_CANCELLED, and the script's own code, when it was told so, has a fifth of a
 * second to come to its end; then it is stopped wherever it is. The host can still be closed.
 *
 * ah_waiting: 0 while no script waits for a run or for anything else; else a number that is another
 * one for each such wait. To be called where ah_cancel may be on the host's own thread: a second
 * Ctrl-C while the number is the same finds what the first has cancelled still at work.
 *
 * ah_interactive: true once a script of the host has called ah.interactive(), which says that it is
 * a chat: then a Ctrl-C is for the answer that is waited for (ah_cancel), else for the script
 * (ah_terminate).
 *
 * ah_wake: a call that waits (ah_step, ah_agent_run, ...) calls `woken` of the config, and
 * ah_step returns; calls in a row may be told as one. */
AH_API void ah_cancel(ah_host *host);
AH_API void ah_terminate(ah_host *host);
AH_API unsigned ah_waiting(const ah_host *host);
AH_API bool ah_interactive(const ah_host *host);
AH_API void ah_wake(ah_host *host);

/* -- feeding a transport's responses -------------------------------------------------------- */

/* The response's head: status and "Name: value" lines, interim (1xx) ones left out. */
AH_API void ah_transport_head(ah_host *host, uint64_t id, int status, const char *const *headers,
                              size_t n_headers);
AH_API void ah_transport_body(ah_host *host, uint64_t id, const void *bytes, size_t n);
/* error NULL: the response is complete; else what broke, in words. The request is over.
 * An id that is over (its host ended it for time or size) is no error in any of the three. */
AH_API void ah_transport_end(ah_host *host, uint64_t id, const char *error);
/* The same for what broke, with its reason in one of the words of docs/reference/errors.md
 * ("refused", "dns", "tls", ...), for err.reason; NULL or another word is "broken". */
AH_API void ah_transport_fail(ah_host *host, uint64_t id, const char *reason, const char *error);

#ifdef __cplusplus
}
#endif

#endif
