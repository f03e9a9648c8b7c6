/* Lowering: the transcript as one provider's request bytes, kept from request to request so that a
 * turn costs what is new in it. The body is head (settings, tools, system) + one piece an entry +
 * tail; the bytes are a pure function of transcript and adapter. A conversation owns one; the run
 * asks it for requests, adapters write into it. */
#ifndef AH_WIRE_LOWER_H
#define AH_WIRE_LOWER_H

#include "wire/offers.h"

/* In the order in which providers cache: tools, system, entries. */
typedef enum ah_segment_kind {
    AH_SEGMENT_TOOL,
    AH_SEGMENT_SYSTEM,
    AH_SEGMENT_ENTRY,
    AH_SEGMENT_DEFERRED /* in the head, but where no cache reaches: no part of the prefix */
} ah_segment_kind;

typedef struct ah_segment {
    ah_segment_kind kind;
    size_t entry; /* index in the transcript */
    size_t at, n; /* in `head` (tools, system) or `body` (entries) */
} ah_segment;

/* Search for deferred tools: the side that does it, and the way in which the request declares the
 * tools. */
typedef enum ah_search_mode {
    AH_SEARCH_MODE_HERE,  /* by search_tools; tools found are added like any other tool */
    AH_SEARCH_MODE_SHOWN, /* the same, but all are declared, deferred, and its results reveal them
                           */
    AH_SEARCH_MODE_OWN    /* by the provider, among the tools declared as deferred */
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

const char *ah_break_name(ah_break b); /* "tools_changed" */

/* The request that was sent last, as far as the next request is compared with it
 * (wire/breaks.h). */
typedef struct ah_last_request {
    uint64_t tools, system, model, settings; /* hashes */
    size_t entries;                          /* of the transcript that it held */
    size_t n_body;                           /* segments of its body */
    bool body_gone;                          /* they are no longer there: */
    uint64_t body;                           /* their hash */
} ah_last_request;

struct ah_wire {
    const ah_mem *mem;
    const ah_adapter *adapter;
    const ah_transcript *transcript;
    ah_buf head, body;
    ah_segment *segment; /* of the head first, then of the body */
    size_t n_head, n_body, cap_segments;
    ah_offers offers;
    ah_tool_change_mode mode; /* in force: the adapter's, or what was learned of it */
    bool trying;              /* `mode` is tried, whatever is known */
    ah_search_mode searching; /* in force, where tools are deferred */
    bool searching_here;      /* the wire's own ways of that are not used, whatever is known */
    bool searched;            /* they were, and the model has answered */
    unsigned lacking; /* AH_MODEL_: what the model is not asked for, as was learned of it, and */
    unsigned trying_without;    /* what is left out to try it */
    ah_slice deferral;          /* the latest tools_deferred entry, .p NULL: none */
    ah_model_settings settings; /* of the latest entry that was taken in */
    ah_slice system;            /* the latest prompt's text value, with its quotes */
    size_t system_entry;
    size_t done;   /* entries lowered so far */
    size_t images; /* bytes of those in them, as they stand in the transcript */
    bool pictured; /* they hold an image, by value or by address */
    /* The adapter's own, 0 and empty before the first entry. */
    int group;       /* which message is open at the body's end, for more blocks; 0: none */
    unsigned extras; /* what the body holds that the request must announce */
    ah_buf held;     /* blocks that must not stand where their entry does, but further down */
    bool redo_head;
    bool sweeping; /* the request that these entries make breaks the cache: it declares nothing that
                      is withdrawn in them, in whatever order; until the next answer */
    /* lowered from the beginning again, for this reason; none where nothing changed */
    ah_break anew;
    ah_last_request sent;
    size_t requests;
    ah_status status; /* of this update */
};

/* Adapter and transcript are borrowed and must outlive it. */
void ah_wire_init(ah_wire *w, const ah_mem *mem, const ah_adapter *adapter, const ah_transcript *t);
void ah_wire_clear(ah_wire *w);

/* The conversation goes on with another adapter: everything is lowered anew, and the next
 * update says `why` where there were requests before. */
void ah_wire_use(ah_wire *w, const ah_adapter *adapter, ah_break why);

/* True if the next request tells of tools in a way of the wire's own, which a model may not
 * know. */
bool ah_wire_is_native(const ah_wire *w);
/* In another mode from the next update on; false: as the settings and the adapter say. What the
 * settings in force have under learned.tool_change_mode holds for their model. */
void ah_wire_try(ah_wire *w, bool trying, ah_tool_change_mode mode);

/* The features that requests ask of the model, of STRICT, OUTPUT, ENCRYPTED and THINKS, as
 * AH_MODEL_ bits. */
unsigned ah_wire_asks(const ah_wire *w);
/* From the next update on it is not asked for that. What the settings in force have under `learned`
 * of strict_tools, native_output, encrypted_reasoning and reasoning (false) holds for their
 * model. */
void ah_wire_try_without(ah_wire *w, unsigned what);
/* True if the model is not to be asked for that ability. */
bool ah_wire_lacks(const ah_wire *w, unsigned what);
/* The rules in which tools may be strict now. */
ah_strict_rules ah_wire_strict(const ah_wire *w);
/* The bits that a `learned` object says the model lacks, and their names there, in order. */
unsigned ah_wire_learned_lacking(ah_slice learned);
typedef struct ah_lack {
    unsigned what; /* one bit of AH_MODEL_ */
    const char *name;
} ah_lack;
enum { AH_LACKS = 4 };
extern const ah_lack ah_lacks[AH_LACKS];

/* True if the next request declares deferred tools. */
bool ah_wire_defers(const ah_wire *w);
/* From the next update on it does not: they are looked for here. What the settings in force have
 * under learned.tool_search holds for their model. */
void ah_wire_search_here(ah_wire *w);

/* Brings it up to the transcript's end, for the next request. *brk says why the
 * request does not begin with the last one's segments, *entry which entry did it. */
ah_status ah_wire_update(ah_wire *w, ah_break *brk, size_t *entry, ah_err *err);
/* The request body: slices valid until the next update. Returns how many. */
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
/* For adapters: true if tools were removed that the request still declares, and it can list those
 * that may be called. Not beside a search on the wire: no source says if the list may name that. */
bool ah_wire_hides(const ah_wire *w);
/* The names of that list, as JSON strings, in the order of their declarations:
 *     for (size_t at = 0; (name = ah_wire_allowed(w, &at)).p;) */
ah_slice ah_wire_allowed(const ah_wire *w, size_t *at);
/* For adapters: the schema of the answer that belongs into the head, .p NULL: none. */
ah_slice ah_wire_output(const ah_wire *w);
/* For adapters, while `entry` runs on a result of search_tools whose id (a JSON string) that is:
 * the tools_added entry that it led to, which comes later; .p NULL: none, or the wire does not show
 * it. */
ah_slice ah_wire_found(const ah_wire *w, ah_slice id);
/* True if this opaque part is of a search by the provider, to be left out since it searches no
 * more. `data` is its own form, `types` end with NULL. */
bool ah_wire_left_out(const ah_wire *w, ah_slice data, const char *const *types);

/* For adapters, while `head` or `entry` runs: what is written between begin and end
 * is a segment. */
size_t ah_segment_begin(const ah_buf *b);
void ah_segment_end(ah_wire *w, ah_segment_kind kind, size_t entry, const ah_buf *b, size_t at);

#endif
