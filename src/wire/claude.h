/* The protocol of the `claude` command (Claude Code, stream-json both ways) as our side of it speaks:
 * what is to be written to the command, and what its lines mean. It does no I/O; the process is owned
 * in host/claude_process.c, which calls it. The command believes that it owns the loop: it asks for
 * each call of a tool, and is answered when the run has made the call.
 *
 * Requests come in the form of scripted.c, {"system","tools","entries",...}; what the command says of
 * the model's message is given on as lines of Messages API events for anthropic_read.c. */
#ifndef AH_WIRE_CLAUDE_H
#define AH_WIRE_CLAUDE_H

#include "wire/provider.h"

/* Images beside a result of a tool are bytes. */
enum { AH_CLAUDE_IMAGES = AH_IMAGES_USER | AH_IMAGES_RESULT_DATA };

#define AH_CLAUDE     "claude_agent_sdk"
#define AH_CLAUDE_URL "https://api.anthropic.com" /* where the command asks unless told otherwise */

typedef struct ah_claude_call {
    ah_text *id;     /* of the call, as JSON */
    ah_text *ask;    /* id of the command's request for it, as JSON; NULL: it has not asked yet */
    ah_text *rpc;    /* the same of the JSON-RPC request within */
    ah_text *result; /* JSON; NULL: not there yet */
} ah_claude_call;

/* Options that a process begins with. */
typedef struct ah_claude_options {
    const char *effort; /* NULL: the command's own, "none": no thinking; one constant for a word */
    int64_t max_tokens; /* 0: the command's own */
    bool toolless;      /* it is told of no tools */
} ah_claude_options;

/* Those of a request. AH_USAGE names the first that the command has no way for. */
ah_status ah_claude_options_of(ah_slice request, ah_claude_options *out, ah_err *err);
bool ah_claude_options_same(const ah_claude_options *a, const ah_claude_options *b);

/* One process' side of the talk. */
typedef struct ah_claude {
    const ah_mem *mem;
    const ah_secrets *secrets; /* that are taken out of what it says of its failures; may be NULL */
    ah_claude_options options; /* that the process was started with: the owner sets them */
    bool relists;              /* new tools are told to a command that says it can take them */
    ah_buf out;                /* lines for the command: the owner writes and empties it */
    ah_buf tools;              /* the list that it is given, as JSON */
    uint64_t head;             /* hash of the system text, and of the tools where they cannot change */
    uint64_t said;             /* hash of the entries that it knows */
    size_t known;              /* how many these are */
    int requests;              /* of ours */
    int64_t cost;              /* of all turns so far, in 1 / AH_COST_UNIT */
    bool listening;            /* a message is asked for and has not ended */
    bool sound;                /* the last message came to its end */
    bool turn;                 /* the command waits for results, or for the model */
    bool calling;              /* the message that comes ends with calls */
    bool capable;              /* it takes new tools in mid-conversation */
    bool listing;              /* results wait until it has read the new list */
    ah_claude_call *call;
    size_t n, cap;
} ah_claude;

enum {
    AH_CLAUDE_MAX_OUT = 256 << 20, /* bytes that wait to be written */
    AH_CLAUDE_MAX_CALLS = 1024     /* that wait for a result, or results for their request */
};

/* The meaning of a line for the exchange; all slices are parts of the line, or of `cost`. */
typedef struct ah_claude_news {
    ah_slice event[2]; /* of the model's message, one line without its end; .p NULL: none */
    char cost[96];     /* an event of our own */
    bool hold;         /* it belongs to the next message: to be given again once that is asked for */
    bool ended;        /* the message is complete */
    char warning[160]; /* "": none */
} ah_claude_news;

void ah_claude_init(ah_claude *c, const ah_mem *mem, bool relists);
void ah_claude_clear(ah_claude *c);

/* True if the process can go on with this request: it knows the beginning, and nothing else. */
bool ah_claude_fits(const ah_claude *c, ah_slice request);
/* Asks for the next message: of a process that fits, or of a fresh one, which is told the
 * conversation so far as text (docs/claude.md). */
ah_status ah_claude_ask(ah_claude *c, ah_slice request, ah_err *err);
/* Nobody waits for the message any longer. */
ah_status ah_claude_interrupt(ah_claude *c, ah_err *err);
/* A line of the command, without its end. AH_PROVIDER: the turn failed (with the status of the
 * API in err->http_status), or the line is none of the protocol; the process is of no use then. */
ah_status ah_claude_line(ah_claude *c, ah_slice line, ah_claude_news *news, ah_err *err);

/* The adapter, whose exchanges are its owner's: the owner gives the struct, with these set. */
typedef struct ah_claude_owner {
    ah_native native;
    void (*start)(struct ah_claude_owner *a, struct ah_exchange *x);
    void (*stop)(struct ah_claude_owner *a, struct ah_exchange *x);
    void (*leave)(struct ah_claude_owner *a, const ah_lowered *w);
    void (*release)(struct ah_claude_owner *a); /* frees the struct */
} ah_claude_owner;

/* Fills the rest; on failure the adapter is to be let go of all the same. */
ah_status ah_claude_fill(ah_claude_owner *a, ah_slice model, const ah_provider_options *o, ah_err *err);

#endif
