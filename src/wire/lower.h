/* Lowering: the transcript as request bytes of one provider, kept from request to request so that
 * only new entries are lowered. The body is head (settings, tools, system) + one piece per entry +
 * tail; its bytes are a pure function of transcript and adapter. A conversation owns one ah_wire,
 * which owns its buffers and borrows transcript and adapter. The run asks it for requests; adapters
 * write into it. A failed update is lowered anew by the next one. Callers: its floor, run. */
#ifndef AH_WIRE_LOWER_H
#define AH_WIRE_LOWER_H

#include "wire/offers.h"

/* In the order of the providers' caches: tools, system, entries. */
typedef enum ah_segment_kind {
    AH_SEGMENT_TOOL,
    AH_SEGMENT_SYSTEM,
    AH_SEGMENT_ENTRY,
    AH_SEGMENT_DEFERRED /* in the head, but never cached: no part of the prefix */
} ah_segment_kind;

typedef struct ah_segment {
    ah_segment_kind kind;
    size_t entry; /* index in the transcript */
    size_t at, n; /* in `head` (tools, system) or `body` (entries) */
} ah_segment;

/* The side that searches deferred tools, and how the request declares them. */
typedef enum ah_search_mode {
    AH_SEARCH_MODE_HERE, /* by search_tools; tools found are added like any other tool */
    /* By search_tools, too. All tools are declared as deferred, and results of search_tools reveal
     * them. */
    AH_SEARCH_MODE_SHOWN,
    AH_SEARCH_MODE_OWN /* by the provider, among the tools declared as deferred */
} ah_search_mode;

typedef enum ah_break {
    AH_BREAK_NONE,
    AH_BREAK_TOOLS,
    AH_BREAK_PROMPT,
    AH_BREAK_MODEL,
    AH_BREAK_SETTINGS,
    AH_BREAK_RESTART,
    AH_BREAK_FALLBACK
} ah_break;

const char *ah_break_name(ah_break b); /* for example "tools_changed" */

/* The request that was sent last, as needed for the comparison with the next (wire/breaks.h). */
typedef struct ah_last_request {
    uint64_t tools, system, model, settings; /* hashes */
    size_t entries;                          /* number of transcript entries in it */
    size_t n_body;                           /* segments of its body */
    bool body_gone;                          /* its body was discarded, and `body` is its hash */
    uint64_t body;                           /* if body_gone */
} ah_last_request;

/* The part of the requests that is recorded (wire/prints.h). */
typedef struct ah_noted_request {
    bool begun;       /* something of this adapter is recorded */
    size_t heads;     /* ah_wire.heads of the recorded head */
    size_t lowerings; /* ah_wire.lowerings of the recorded body */
    size_t n_body;    /* segments of the body that are recorded */
    size_t bytes;     /* bytes of the body that are recorded */
} ah_noted_request;

struct ah_wire {
    const ah_mem *mem;
    const ah_adapter *adapter;
    const ah_transcript *transcript;
    ah_buf head, body;
    ah_segment *segment; /* first those of the head, then those of the body */
    size_t n_head, n_body, cap_segments;
    ah_offers offers;
    ah_tool_change_mode mode;   /* current mode: the adapter's, or what was learned of the model */
    bool trying;                /* `mode` is being tried, whatever is known */
    ah_search_mode searching;   /* current search mode, if tools are deferred */
    bool searching_here;        /* the wire's own search is not used, whatever is known */
    bool searched;              /* the wire's own search was used, and the model has answered */
    unsigned lacking;           /* AH_MODEL_ bits left out: learned ones, and trying_without */
    unsigned trying_without;    /* AH_MODEL_ bits left out as a try */
    ah_slice deferral;          /* the latest tools_deferred entry; .p NULL: none */
    ah_model_settings settings; /* from the latest settings entry taken in */
    ah_slice system;            /* text value of the latest prompt, with its quotes */
    size_t system_entry;
    size_t done;   /* entries lowered so far */
    size_t images; /* bytes of those in them, as they stand in the transcript */
    bool pictured; /* they hold an image, by value or by address */
    /* The adapter's own, 0 and empty before the first entry. */
    int group;       /* which message is open at the body's end, for more blocks; 0: none */
    unsigned extras; /* what the body holds that the request must announce */
    ah_buf held;     /* blocks that must not stand where their entry does, but further down */
    bool redo_head;
    /* The new entries break the cache anyway, so tools withdrawn in them are no longer declared, in
     * any order; until the next answer. */
    bool sweeping;
    /* Why everything is lowered anew; NONE if it is not. */
    ah_break anew;
    ah_last_request sent;
    size_t requests;
    size_t heads;     /* how often the head was made */
    size_t lowerings; /* how often the body was begun anew */
    ah_noted_request noted;
    ah_status status; /* of the current update */
};

/* Adapter and transcript are borrowed and must outlive the wire. */
void ah_wire_init(ah_wire *w, const ah_mem *mem, const ah_adapter *adapter, const ah_transcript *t);
void ah_wire_clear(ah_wire *w);

/* Continues with another adapter: everything is lowered anew. The next update reports `why` if
 * there were requests before. */
void ah_wire_use(ah_wire *w, const ah_adapter *adapter, ah_break why);

/* True if the next request declares tools in the wire's own way, which a model may not support. */
bool ah_wire_is_native(const ah_wire *w);
/* Uses this mode from the next update on; `trying` false: the mode of settings and adapter.
 * learned.tool_change_mode in the current settings holds for their model. */
void ah_wire_try(ah_wire *w, bool trying, ah_tool_change_mode mode);

/* The features that requests ask of the model, as AH_MODEL_ bits: STRICT, OUTPUT, ENCRYPTED,
 * THINKS. */
unsigned ah_wire_asks(const ah_wire *w);
/* Leaves `what` out of requests from the next update on. The members strict_tools, native_output,
 * encrypted_reasoning and reasoning (false) of `learned` in the current settings hold for their
 * model. */
void ah_wire_try_without(ah_wire *w, unsigned what);
/* True if requests must not ask for that ability. */
bool ah_wire_lacks(const ah_wire *w, unsigned what);
/* The rules that strict tools must fit now. */
ah_strict_rules ah_wire_strict(const ah_wire *w);
/* The bits that a `learned` object marks as lacking, and their names there, in order. */
unsigned ah_wire_learned_lacking(ah_slice learned);
typedef struct ah_lack {
    unsigned what; /* one bit of AH_MODEL_ */
    const char *name;
} ah_lack;
enum { AH_LACKS = 4 };
extern const ah_lack ah_lacks[AH_LACKS];

/* True if the next request declares deferred tools. */
bool ah_wire_defers(const ah_wire *w);
/* Stops declaring deferred tools from the next update on: search_tools searches them.
 * learned.tool_search in the current settings holds for their model. */
void ah_wire_search_here(ah_wire *w);

/* Lowers the transcript up to its end for the next request. *brk is why the request does not begin
 * with the last one's segments, *entry the entry that caused it. */
ah_status ah_wire_update(ah_wire *w, ah_break *brk, size_t *entry, ah_err *err);
/* Sets the slices of the request body, valid until the next update. Returns their number. */
size_t ah_wire_body(const ah_wire *w, ah_slice out[3]);

/* Returns the most tokens that a provider can count as input of the request: a byte is at most one
 * token, with tools or a schema AH_WIRE_UNSEEN more; with images the model's context window. -1: no
 * bound is known. */
int64_t ah_wire_most_input(const ah_wire *w);
/* Returns the most tokens that its answer can have, as the request or what is known of the model
 * says; -1: no bound is known. */
int64_t ah_wire_most_output(const ah_wire *w);
enum { AH_WIRE_UNSEEN = 1024 }; /* for instructions that a provider adds to tools and schemas */

/* For adapters: the tools to be declared in the head, in order, and how many there are.
 *     for (size_t at = 0; (spec = ah_wire_tool(w, &at, &kind, &entry)).p;) */
ah_slice ah_wire_tool(const ah_wire *w, size_t *at, ah_segment_kind *kind, size_t *entry);
bool ah_wire_has_tools(const ah_wire *w);
/* For adapters: true if the request still declares removed tools and can list the allowed ones.
 * False with a search on the wire, since no source says if such a list may name it. */
bool ah_wire_hides(const ah_wire *w);
/* The names of that list, as JSON strings, in the order of their declarations.
 *
 *     for (size_t at = 0; (name = ah_wire_allowed(w, &at)).p;) */
ah_slice ah_wire_allowed(const ah_wire *w, size_t *at);
/* For adapters: the schema of the answer for the head; .p NULL: none. */
ah_slice ah_wire_output(const ah_wire *w);
/* For adapters, while `entry` runs on a result of search_tools with this id (a JSON string): the
 * later tools_added entry that it caused; .p NULL: none, or the wire does not show it. */
ah_slice ah_wire_found(const ah_wire *w, ah_slice id);
/* True if this opaque part belongs to a search by the provider and is left out, as the provider no
 * longer searches. `data` is its own form; `types` ends with NULL. */
bool ah_wire_left_out(const ah_wire *w, ah_slice data, const char *const *types);

/* For adapters, while `head` or `entry` runs: what is written between begin and end is a
 * segment. */
size_t ah_segment_begin(const ah_buf *b);
void ah_segment_end(ah_wire *w, ah_segment_kind kind, size_t entry, const ah_buf *b, size_t at);

#endif
