/* Adapters: the interface to one provider. An adapter lowers the transcript to the provider's
 * request bytes and reads the response into an assembly. It does no I/O: the driver carries the
 * bytes, or, if `exchange` is set, the adapter's owner does (scripted models, adapters written in
 * Lua, processes). An adapter is reference-counted and owns its texts; a reader borrows its adapter
 * and its assembly until `close`. Run and driver call the slots; stand_in, exchange, stop, rest and
 * leave run code of the adapter's owner. Callers: its floor, run, lua. */
#ifndef AH_WIRE_ADAPTER_H
#define AH_WIRE_ADAPTER_H

#include "base/request.h"
#include "model/tool.h"
#include "wire/advice.h"
#include "wire/assemble.h"
#include "wire/models.h"
#include "wire/strict_subset.h"

/* The names in the order of the enum: "restart", "append", ... */
extern const char *const ah_tool_change_mode_names[]; /* ends with NULL */

/* The way in which tools that are added in mid-conversation reach the model (seed 000's boolean is
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

/* Places of a wire for images, as bits. If a user's message has an image without a place, the
 * request fails before it is sent; in a tool's result, a text replaces such an image. */
enum {
    AH_IMAGES_DATA = 1, /* in a user's message, as bytes */
    AH_IMAGES_URL = 2,  /* in a user's message, as a URL */
    AH_IMAGES_RESULT_DATA = 4,
    AH_IMAGES_RESULT_URL = 8,
    AH_IMAGES_USER = AH_IMAGES_DATA | AH_IMAGES_URL,
    AH_IMAGES_ALL = 15
};

/* Ways of a wire to search deferred tools, as bits (docs/reference/search.md). */
enum {
    AH_SEARCH_OWN = 1,   /* the model searches by itself */
    AH_SEARCH_WIRE = 2,  /* the wire supports that, whatever is known of the model */
    AH_SEARCH_SHOWS = 4, /* the result of our own search may reveal deferred tools */
    AH_SEARCH_ALL = 7
};

/* The tool that searches if the model does not search by itself (run/search.h). */
#define AH_SEARCH_TOOLS "search_tools"

/* The answers that report their cost. */
typedef enum ah_cost_report {
    AH_COST_NEVER, /* usually no answer does */
    AH_COST_EACH,  /* each answer reports its own cost */
    AH_COST_LAST,  /* an answer without calls, for itself and the answers before it */
} ah_cost_report;

typedef struct ah_adapter ah_adapter;
typedef struct ah_wire ah_wire; /* wire/lower.h */
typedef struct ah_reader ah_reader;
struct ah_exchange; /* host/driver.h */

typedef struct ah_adapter_vt {
    const char *name;
    /* Revision of the wire: raised with each change of the bytes that it makes of the same entries.
     * spec/wire/revisions_spec.lua compares them with the golden file of the revision. */
    int revision;

    /* Lowering. The request body is head + entries + tail. `entry` gets an entry of tools only if
     * the mode lowers it in its place (wire/offers.h). */
    void (*head)(const ah_adapter *a, ah_wire *w); /* appends settings, tools, system text */
    /* Appends the bytes of one entry. */
    void (*entry)(const ah_adapter *a, ah_wire *w, const ah_entry *e);
    /* True if this opaque part (its data) justifies sending a message that has no text and no
     * calls. Other messages without text and calls are left out, since servers refuse them. NULL:
     * the wire takes any message. */
    bool (*stands)(const ah_wire *w, ah_slice data);
    /* The most tokens of an answer that the head asks for. NULL: options.max_tokens. */
    int64_t (*length)(const ah_wire *w);
    const char *tail;
    const char *tail_open; /* replaces `tail` if `w->group` is not 0; NULL: `tail` */

    /* Fills in method, url, headers and limits of the request around the body. Texts go to
     * `scratch`, which outlives ah_http_start. NULL with `exchange`. */
    ah_status (*request)(const ah_adapter *a, const ah_wire *w, ah_buf *scratch,
                         ah_http_request *req, ah_err *err);

    /* Reading one response: head_came once, then feed any number of times, then end (not after an
     * error). `close` frees the reader. */
    ah_status (*open)(const ah_adapter *a, ah_assembly *msg, ah_reader **out, ah_err *err);
    ah_status (*head_came)(ah_reader *r, const ah_response_head *head, ah_err *err);
    ah_status (*feed)(ah_reader *r, ah_slice bytes, ah_err *err);
    ah_status (*end)(ah_reader *r, ah_err *err);
    void (*close)(ah_reader *r);

    /* Sets *out, borrowed, to the tool with which the owner runs this call in place of the tool's
     * handler (a test's double); NULL: none. May be NULL. */
    ah_status (*stand_in)(ah_adapter *a, const struct ah_call *call, ah_tool **out, ah_err *err);

    /* Starts and stops the owner's own exchange; called by the driver. */
    void (*exchange)(ah_adapter *a, struct ah_exchange *x);
    void (*stop)(ah_adapter *a, struct ah_exchange *x);
    /* A run of the conversation has ended, and nothing in it is active. May be NULL. */
    void (*rest)(ah_adapter *a, const ah_wire *w);
    /* The conversation is over: the owner may free what it kept for it. May be NULL. */
    void (*leave)(ah_adapter *a, const ah_wire *w);
    void (*free)(ah_adapter *a);
} ah_adapter_vt;

/* Every adapter begins with this struct. Reference-counted, immutable. */
struct ah_adapter {
    const ah_adapter_vt *vt;
    const ah_mem *mem;
    size_t refs;
    ah_text *provider;                    /* for example "openai" */
    ah_text *model;                       /* for example "gpt-4o" */
    uint64_t lane;                        /* equal for adapters with the same provider, address and
                                             key, whose requests share limits (host/lane.h) */
    uint64_t alone;                       /* number of an adapter whose failures are its own; 0: it
                                             shares those of its lane and model */
    ah_text *endpoint;                    /* base URL, or "" */
    ah_model known;                       /* facts about the model; zero if unknown */
    ah_tool_change_mode tool_change_mode; /* zero is RESTART */
    bool native_output;                   /* the wire takes an output schema of type object */
    ah_strict_rules output_rules; /* output schemas must fit these rules; NONE: any schema */
    /* The output schema binds calls too, and the model does not see it. So it is sent only without
     * tools, and also described in words. */
    bool output_unseen;
    /* The subset in which its tools may be strict; NONE: they are never strict. */
    ah_strict_rules strict_tools;
    unsigned search;    /* AH_SEARCH_ bits; 0: no search of its own */
    unsigned asks;      /* AH_MODEL_ bits that requests ask of the model beside the fields above */
    unsigned images;    /* AH_IMAGES_ bits; 0: it takes no images */
    bool lists_allowed; /* requests may list which of the declared tools are allowed */
    ah_cost_report cost_told;
    bool billed;         /* answers may be paid for: a key is sent, or only a script knows */
    bool begins_only;    /* cannot continue a conversation in which another model has answered */
    bool reasoning_back; /* reasoning is sent back to the model */
    bool stream;
};

/* True if the adapter's wire takes this schema (checked JSON) for an answer. */
bool ah_adapter_carries(const ah_adapter *a, ah_slice schema);
/* True if the model then sees the schema, so that it is not described in words. */
bool ah_adapter_shows(const ah_adapter *a, ah_slice schema);

/* Both allow NULL. */
ah_adapter *ah_adapter_ref(ah_adapter *a);
void ah_adapter_unref(ah_adapter *a);
/* The origin of the adapter's messages; its texts are the adapter's. */
ah_origin ah_adapter_origin(const ah_adapter *a);

/* Every reader begins with this struct. */
struct ah_reader {
    const ah_adapter *adapter;
    ah_assembly *msg;
    int status;
    /* Milliseconds that the server asks to wait; -1: none, -2: longer than the limit. */
    int64_t retry_after_ms;
    int should_retry; /* x-should-retry: 1, 0, or -1 if absent */
    /* -1: the message is not complete. Else ms for which the rest (usage, the end of the response)
     * is still waited for. */
    int64_t linger_ms;
};

/* Sets status and the waiting time from the head (NOTES.md 0.3). */
void ah_reader_note_head(ah_reader *r, const ah_response_head *head);
/* Sets phase, HTTP status and `retryable` of err: by x-should-retry if present, else false with
 * `never` or a wait that is too long, else by the status. */
void ah_reader_judge(const ah_reader *r, ah_err *err, bool never);

#endif
