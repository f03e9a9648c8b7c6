/* An assistant message being put together from what an adapter's reader finds, streamed or not:
 * text, refusal, calls, stop, usage. Secrets a server echoes are taken out here, before anyone sees
 * them. The run owns one an exchange and makes its entry; readers fill it. */
#ifndef AH_WIRE_ASSEMBLE_H
#define AH_WIRE_ASSEMBLE_H

#include "base/secret.h"
#include "model/transcript.h"

typedef enum ah_stop {
    AH_STOP_NONE, /* nothing was said: decided from the content */
    AH_STOP_END,
    AH_STOP_TOOL_CALLS,
    AH_STOP_LENGTH,
    AH_STOP_SEQUENCE,
    AH_STOP_FILTER,
    AH_STOP_REFUSAL,
    AH_STOP_FULL, /* the model's window was full: cut as with LENGTH */
    AH_STOP_TOOL  /* of a run: results of tools are its answer; the model never says so */
} ah_stop;

const char *ah_stop_name(ah_stop stop); /* "end", "tool_calls", "length", ... */

/* True if the answer was cut for its length: its last part may not be whole. */
static inline bool ah_stop_is_cut(ah_stop stop)
{
    return stop == AH_STOP_LENGTH || stop == AH_STOP_FULL;
}

enum { AH_COST_UNIT = 1000000000 }; /* money is counted in billionths of a US dollar */

/* Tokens. Cached ones are part of input, reasoning ones part of output. */
typedef struct ah_usage {
    int64_t input, cached_read, cached_write, output, reasoning;
    int64_t cost; /* in 1 / AH_COST_UNIT */
    bool known;   /* the provider said how many tokens */
    bool priced;  /* it said what they cost; in a sum: what some of them cost */
} ah_usage;

/* An amount that somebody says, in dollars; false, and nothing is set, where it is none: below 0,
 * above 9 million, or not finite. */
bool ah_usage_price(ah_usage *u, double dollars);
void ah_usage_add(ah_usage *sum, const ah_usage *u);
void ah_usage_print(const ah_usage *u, ah_buf *out); /* JSON object */

typedef struct ah_draft_call {
    int64_t index; /* the provider's number of the call within the message */
    bool named;    /* a name was said, be it "" */
    ah_buf id, name, arguments;
} ah_draft_call;

/* Something to be sent back verbatim, and where in the message it stands. */
typedef struct ah_draft_opaque {
    ah_text *json;
    size_t text; /* bytes of text before it */
    size_t call; /* calls before it */
} ah_draft_opaque;

typedef struct ah_assembly {
    const ah_mem *mem;
    const ah_secrets *secrets;
    void (*delta)(void *ud, ah_slice text); /* new text to show, or NULL */
    void *ud;
    ah_buf text, refusal;
    size_t shown; /* bytes of text already given to delta */
    ah_draft_call *call;
    size_t n, cap;
    ah_draft_opaque *opaque;
    size_t n_opaque, cap_opaque;
    ah_buf found; /* tools that the provider's own search has found: JSON strings, commas between */
    ah_stop stop;
    ah_buf stop_word; /* the provider's own, "" where it said none */
    ah_usage usage;
    bool dispatched; /* calls may come through the dispatcher (wire/dispatcher.h) */
    size_t pieces;   /* how much was received: 0 means a retry repeats nothing */
} ah_assembly;

enum {
    AH_MAX_TEXT = 64 << 20,      /* of one message */
    AH_MAX_ARGUMENTS = 16 << 20, /* of one call */
    AH_MAX_CALLS = 256,          /* in one message */
    AH_MAX_OPAQUE = 1024         /* parts in one message */
};

void ah_assembly_init(ah_assembly *a, const ah_mem *mem, const ah_secrets *secrets,
                      void (*delta)(void *ud, ah_slice text), void *ud);
void ah_assembly_clear(ah_assembly *a);
/* The tokens that it took; a price that was told stays. */
void ah_assembly_usage(ah_assembly *a, ah_usage usage);
/* The dollars that it cost, a JSON value; anything but an amount says nothing. */
void ah_assembly_cost(ah_assembly *a, ah_slice value);

/* The readers' verbs. JSON string values are given as they stand (`raw`, without
 * quotes). Failures are AH_NOMEM, or AH_PROVIDER when a limit above is passed. Text, refusal and
 * arguments come in pieces, which may be cut within a surrogate pair: its halves are joined before
 * anyone sees them, and half a pair without its other half is AH_PROVIDER. */
ah_status ah_assembly_text(ah_assembly *a, ah_slice raw, ah_err *err);
ah_status ah_assembly_refusal(ah_assembly *a, ah_slice raw, ah_err *err);
/* The latest call of that index, made when there is none yet. */
ah_status ah_assembly_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err);
/* One more call, be there one of that index or not. */
ah_status ah_assembly_add_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err);
ah_status ah_assembly_call_id(ah_draft_call *c, ah_slice raw,
                              ah_err *err); /* the first non-empty one counts */
ah_status ah_assembly_call_name(ah_draft_call *c, ah_slice raw, ah_err *err);      /* likewise */
ah_status ah_assembly_call_arguments(ah_draft_call *c, ah_slice raw, ah_err *err); /* appended */
/* Arguments that came as a JSON value instead of its text: appended as they stand. */
ah_status ah_assembly_call_value(ah_draft_call *c, ah_slice json, ah_err *err);

/* A part to be sent back verbatim, and only to where it came from: checked JSON of the
 * provider's own form. It stands after all text and calls that were there before. */
ah_status ah_assembly_opaque(ah_assembly *a, ah_slice json, ah_err *err);
/* The provider's own search has found the tool of that name (a JSON string). */
ah_status ah_assembly_found(ah_assembly *a, ah_slice name, ah_err *err);
/* Forgets the calls and opaque parts so far: of a message that was refused or begun again. Text
 * stays, it may have been shown. */
void ah_assembly_drop_calls(ah_assembly *a);
/* The reason of its end, and the word the provider had for that: a JSON value, used where it is a
 * string. */
void ah_assembly_stop(ah_assembly *a, ah_stop stop, ah_slice word);

/* At the end: AH_OK if the message is whole. Not so is one that ends with half a character, whose
 * stop says calls where there are none, or in which a call has no name. AH_PROVIDER says which. */
ah_status ah_assembly_check(const ah_assembly *a, ah_err *err);

/* The origin of a message, to which it may be sent back verbatim. */
typedef struct ah_origin {
    ah_slice adapter, model, endpoint;
} ah_origin;

/* The whole as an `assistant` entry. Shows held-back text first. Calls without an
 * id, with an id over 64 bytes or one the transcript has already seen get a new one. */
ah_status ah_assembly_entry(ah_assembly *a, const ah_transcript *t, const ah_origin *origin,
                            int64_t time, ah_text **out, ah_err *err);

#endif
