/* Adapters: how one provider speaks. An adapter lowers the transcript to the provider's request
 * bytes and reads its response into an assembly. It does no I/O: the driver carries the bytes, or,
 * where `exchange` is set, the adapter's owner does (scripted models, adapters written in Lua,
 * processes). The contract, which each provider's file keeps: the run and the driver call its
 * slots. */
#ifndef AH_WIRE_ADAPTER_H
#define AH_WIRE_ADAPTER_H

#include "base/request.h"
#include "model/tool.h"
#include "wire/advice.h"
#include "wire/assemble.h"
#include "wire/models.h"
#include "wire/strict_subset.h"

/* In the order of the enum: "restart", "append", ... */
extern const char *const ah_tool_change_mode_names[]; /* ends with NULL */

/* The ways in which tools that appear in mid-conversation reach the model (seed 000's boolean is
 * mode != AH_TOOLS_RESTART). */
typedef enum ah_tool_change_mode {
    AH_TOOLS_RESTART,
    AH_TOOLS_APPEND,
    AH_TOOLS_INLINE,
    AH_TOOLS_REFERENCE,
    AH_TOOLS_ADDITIONAL,
    AH_TOOLS_SEARCH_PAIR,
    AH_TOOLS_LIST_CHANGED,
    AH_TOOLS_DISPATCHER
} ah_tool_change_mode;

/* The places that a wire has for images, as bits. One that it has no place for in a user's message
 * ends the request before it is sent; in a tool's result words stand for it. */
enum {
    AH_IMAGES_DATA = 1, /* in a user's message, by value */
    AH_IMAGES_URL = 2,  /* and by address */
    AH_IMAGES_RESULT_DATA = 4,
    AH_IMAGES_RESULT_URL = 8,
    AH_IMAGES_USER = AH_IMAGES_DATA | AH_IMAGES_URL,
    AH_IMAGES_ALL = 15
};

/* The ways of a wire with tools that are to be found first, as bits (docs/reference/search.md). */
enum {
    AH_SEARCH_OWN = 1,   /* the model looks for them by itself */
    AH_SEARCH_WIRE = 2,  /* the wire has a way for that, whatever is known of the model */
    AH_SEARCH_SHOWS = 4, /* the result of our search may reveal what was declared as deferred */
    AH_SEARCH_ALL = 7
};

/* The tool that looks for others where the model does not do so by itself (run/search.h). */
#define AH_SEARCH_TOOLS "search_tools"

/* The answers that say what they cost (ah_usage.priced). */
typedef enum ah_cost_report {
    AH_COST_NEVER, /* mostly not */
    AH_COST_EACH,  /* each its own */
    AH_COST_LAST,  /* one without calls, for itself and those before it */
} ah_cost_report;

typedef struct ah_adapter ah_adapter;
typedef struct ah_wire ah_wire; /* wire/lower.h */
typedef struct ah_reader ah_reader;
struct ah_exchange; /* host/driver.h */

typedef struct ah_adapter_vt {
    const char *name;

    /* Lowering. The request body is head + entries + tail. An entry of tools comes to `entry`
     * only where the mode lowers it in its place (wire/offers.h). */
    void (*head)(const ah_adapter *a, ah_wire *w);                     /* settings, tools, system */
    void (*entry)(const ah_adapter *a, ah_wire *w, const ah_entry *e); /* one entry's bytes */
    /* True if this opaque part (its data) is reason enough to send a message without text and
     * calls. A message without such a part is left out: servers refuse it. NULL: the wire takes any
     * message. */
    bool (*stands)(const ah_wire *w, ah_slice data);
    /* The most tokens of an answer that the head asks for. NULL: options.max_tokens. */
    int64_t (*length)(const ah_wire *w);
    const char *tail;
    const char *tail_open; /* where `w->group` is not 0; NULL: the same */

    /* The request around the body: fills method, url, headers and limits. Texts go
     * to `scratch`, which outlives ah_http_start. NULL with `exchange`. */
    ah_status (*request)(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err);

    /* Reading one response. head comes once, then feeds, then end (not after an error). */
    ah_status (*open)(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
    ah_status (*head_came)(ah_reader *r, const ah_response_head *head, ah_err *err);
    ah_status (*feed)(ah_reader *r, ah_slice bytes, ah_err *err);
    ah_status (*end)(ah_reader *r, ah_err *err);
    void (*close)(ah_reader *r);

    /* The tool with which the owner runs this call, in place of the tool's handler (a test's
     * double); *out is borrowed, NULL: it has none. May be NULL. */
    ah_status (*stand_in)(ah_adapter *a, const struct ah_call *call, ah_tool **out, ah_err *err);

    /* The owner's own exchange, started and stopped by the driver. */
    void (*exchange)(ah_adapter *a, struct ah_exchange *x);
    void (*stop)(ah_adapter *a, struct ah_exchange *x);
    /* A run of the conversation has ended: nothing goes on in it. May be NULL. */
    void (*rest)(ah_adapter *a, const ah_wire *w);
    /* The conversation is over: what its owner kept for it may go. May be NULL. */
    void (*leave)(ah_adapter *a, const ah_wire *w);
    void (*free)(ah_adapter *a);
} ah_adapter_vt;

/* Every adapter begins with this. Reference-counted, immutable. */
struct ah_adapter {
    const ah_adapter_vt *vt;
    const ah_mem *mem;
    size_t refs;
    ah_text *provider;                    /* "openai" */
    ah_text *model;                       /* "gpt-4o" */
    ah_text *endpoint;                    /* base URL, or "" */
    ah_model known;                       /* of the model; zero where nothing is */
    ah_tool_change_mode tool_change_mode; /* an adapter that declares nothing restarts */
    bool native_output;                   /* the wire carries an output schema of type object */
    ah_strict_rules output_rules;         /* but only one that fits these; NONE: any */
    bool output_unseen; /* it binds calls, too, and the model does not see it: only where there are
                           no tools, and told in words as well */
    ah_strict_rules
        strict_tools;   /* the subset in which its tools may be strict; NONE: they are not */
    unsigned search;    /* AH_SEARCH_; an adapter that declares nothing has no way of its own */
    unsigned asks;      /* AH_MODEL_: what requests ask of a model beside what is above */
    unsigned images;    /* AH_IMAGES_; an adapter that declares nothing takes none */
    bool lists_allowed; /* requests may list which of the declared tools may be called */
    ah_cost_report cost_told;
    bool begins_only;    /* cannot go on with a conversation in which another model has spoken */
    bool reasoning_back; /* what the model thought is sent back to it */
    bool stream;
};

/* True if its wire carries this schema (checked JSON) of an answer. */
bool ah_adapter_carries(const ah_adapter *a, ah_slice schema);
/* True if that tells the model of it, so that no words need to. */
bool ah_adapter_shows(const ah_adapter *a, ah_slice schema);

ah_adapter *ah_adapter_ref(ah_adapter *a);
void ah_adapter_unref(ah_adapter *a);
ah_origin ah_adapter_origin(const ah_adapter *a);

/* Every reader begins with this. */
struct ah_reader {
    const ah_adapter *adapter;
    ah_assembly *msg;
    int status;
    int64_t retry_after_ms; /* what the server advises; -1: nothing, -2: longer than we wait */
    int64_t spent_ms;       /* a limit is used up by this request: when there is room again; -1, -2:
                               likewise */
    int should_retry;       /* x-should-retry: 1, 0, or -1 when absent */
    int64_t linger_ms;      /* -1: the message is not complete; else how long what may follow it
                                    (usage, the end of the response) is still waited for */
};

/* Fills status and advice from the head (NOTES.md 0.3). */
void ah_reader_note_head(ah_reader *r, const ah_response_head *head);
/* Marks err as retryable or not by status, header and the error's own words. */
void ah_reader_judge(const ah_reader *r, ah_err *err, bool never);

#endif
