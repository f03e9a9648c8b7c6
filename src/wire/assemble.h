/* An assistant message that is built from what an adapter's reader finds, streamed or not: text,
 * refusal, calls, stop, usage. Keys of the program are removed from it before anything else sees
 * them. The run owns one assembly per exchange and turns it into an entry; readers fill it. It owns
 * its buffers; `delta` is called while text is added. The limits are in the enum below.
 * Callers: its floor, run. */
#ifndef AH_WIRE_ASSEMBLE_H
#define AH_WIRE_ASSEMBLE_H

#include "base/secret.h"
#include "model/transcript.h"

typedef enum ah_stop {
    AH_STOP_NONE, /* no stop was reported: decided from the content */
    AH_STOP_END,
    AH_STOP_TOOL_CALLS,
    AH_STOP_LENGTH,
    AH_STOP_SEQUENCE,
    AH_STOP_FILTER,
    AH_STOP_REFUSAL,
    AH_STOP_FULL,     /* the model's context was full: the answer is cut as with LENGTH */
    AH_STOP_TOOL,     /* of a run: results of tools are its answer; never reported by a model */
    AH_STOP_CANCELLED /* the run was cancelled while the text came; never reported by a model */
} ah_stop;

const char *ah_stop_name(ah_stop stop); /* for example "end", "tool_calls", "length" */

/* True if the answer was cut for its length: its last part may be incomplete. */
static inline bool ah_stop_is_cut(ah_stop stop)
{
    return stop == AH_STOP_LENGTH || stop == AH_STOP_FULL;
}

enum { AH_COST_UNIT = 1000000000 }; /* money is counted in billionths of a US dollar */

enum { AH_DATE = sizeof "2026-11-10" };

/* Token counts and cost of one answer, or their sum over several. Cached tokens are part of input,
 * reasoning tokens part of output. */
typedef struct ah_usage {
    int64_t input, cached_read, cached_write, output, reasoning;
    int64_t cost;            /* in 1 / AH_COST_UNIT: as the provider reported it, else by prices */
    bool known;              /* the provider reported token counts */
    bool priced;             /* the cost is known; in a sum: of at least one answer */
    bool computed;           /* it is by prices; false in a sum */
    int64_t unpriced;        /* answers of unknown cost that may be billed (ah_adapter.billed) */
    int64_t covers;          /* earlier answers whose cost this one reports too; 0 in a sum */
    char prices_of[AH_DATE]; /* date of the prices, in a sum the oldest; "": no table was used */
} ah_usage;

/* Sets the cost in dollars. Returns false, and sets nothing, if the amount is below 0, above 9
 * million or not finite. */
bool ah_usage_price(ah_usage *u, double dollars);
/* Sets the date of the prices; ignores a text that is not of the form 2026-11-10. */
void ah_usage_date(ah_usage *u, ah_slice date);
void ah_usage_add(ah_usage *sum, const ah_usage *u);
void ah_usage_print(const ah_usage *u, ah_buf *out); /* appends a JSON object */
/* Reads it back from checked JSON. Members that are missing or wrong are 0. */
void ah_usage_read(ah_slice json, ah_usage *out);

typedef struct ah_draft_call {
    int64_t index; /* the provider's number of the call within the message */
    bool named;    /* a name was received, even "" */
    ah_buf id, name, arguments;
    /* The arguments with the keys, for the handler; set with the entry. NULL: there are none in
     * them. */
    ah_text *original;
} ah_draft_call;

/* A part to be sent back verbatim, and its place in the message. */
typedef struct ah_draft_opaque {
    ah_text *json;
    size_t text; /* bytes of text before it */
    size_t call; /* calls before it */
} ah_draft_opaque;

typedef struct ah_assembly {
    const ah_mem *mem;
    const ah_secrets *secrets;
    void (*delta)(void *ud, ah_slice text); /* receives new text to show; may be NULL */
    void *ud;
    ah_buf text, refusal;
    size_t shown; /* bytes of text already passed to delta */
    ah_draft_call *call;
    size_t n, cap;
    ah_draft_opaque *opaque;
    size_t n_opaque, cap_opaque;
    ah_buf found; /* tools found by the provider's own search: JSON strings, with commas between
                     them */
    ah_stop stop;
    ah_buf stop_word; /* the provider's own word; "" if none */
    ah_usage usage;
    bool unlisted;   /* it was served at other prices than those that models are listed with */
    bool dispatched; /* calls may come through the dispatcher (wire/dispatcher.h) */
    size_t pieces;   /* number of pieces received; at 0, a retry repeats nothing */
} ah_assembly;

enum {
    AH_MAX_TEXT = 64 << 20,      /* of one message */
    AH_MAX_ARGUMENTS = 16 << 20, /* of one call */
    AH_MAX_CALLS = 256,          /* in one message */
    AH_MAX_OPAQUE = 1024         /* parts in one message */
};

/* `delta` and `secrets` are used until the clear; `delta` may be NULL. */
void ah_assembly_init(ah_assembly *a, const ah_mem *mem, const ah_secrets *secrets,
                      void (*delta)(void *ud, ah_slice text), void *ud);
void ah_assembly_clear(ah_assembly *a);
/* Sets the token counts; a reported cost stays. */
void ah_assembly_usage(ah_assembly *a, ah_usage usage);
/* Sets the cost in dollars from a JSON value; ignores any value that is not an amount. */
void ah_assembly_cost(ah_assembly *a, ah_slice value);

/* Takes the name of the service, a JSON value, by which the answer was served; ignores any value
 * that is not a string. */
void ah_assembly_service(ah_assembly *a, ah_slice value);

/* For readers. JSON string values are passed in raw form, without quotes. Returns AH_NOMEM, or
 * AH_PROVIDER if a limit above is passed. Text, refusal and arguments come in pieces, which may be
 * cut within a surrogate pair. The halves are joined before the text is used; a half without its
 * other half is AH_PROVIDER. */
ah_status ah_assembly_text(ah_assembly *a, ah_slice raw, ah_err *err);
ah_status ah_assembly_refusal(ah_assembly *a, ah_slice raw, ah_err *err);
/* Sets *out to the latest call of that index, which is added if there is none. */
ah_status ah_assembly_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err);
/* Adds a call, even if there is one with that index. */
ah_status ah_assembly_add_call(ah_assembly *a, int64_t index, ah_draft_call **out, ah_err *err);
/* Sets the id; the first non-empty one counts. */
ah_status ah_assembly_call_id(ah_draft_call *c, ah_slice raw, ah_err *err);
/* The first non-empty one counts. */
ah_status ah_assembly_call_name(ah_draft_call *c, ah_slice raw, ah_err *err);
ah_status ah_assembly_call_arguments(ah_draft_call *c, ah_slice raw, ah_err *err); /* appended */
/* Appends arguments that came as a JSON value instead of a string. */
ah_status ah_assembly_call_value(ah_draft_call *c, ah_slice json, ah_err *err);

/* Adds a part to be sent back verbatim, and only to its origin: checked JSON in the provider's own
 * form. Its place is after the text and calls received so far. */
ah_status ah_assembly_opaque(ah_assembly *a, ah_slice json, ah_err *err);
/* The provider's own search has found the tool of that name (a JSON string). */
ah_status ah_assembly_found(ah_assembly *a, ah_slice name, ah_err *err);
/* Discards the calls and opaque parts so far, of a message that was refused or begun again. Text
 * stays, since it may have been shown. */
void ah_assembly_drop_calls(ah_assembly *a);
/* Sets the stop, and the provider's own word for it: a JSON value, used if it is a string. */
void ah_assembly_stop(ah_assembly *a, ah_stop stop, ah_slice word);

/* At the end: AH_OK if the message is complete. AH_PROVIDER, with the reason, if it ends with half
 * a character, if its stop announces calls but there are none, or if a call has no name. */
ah_status ah_assembly_check(const ah_assembly *a, ah_err *err);

/* The origin of a message, to which its opaque parts may be sent back. */
typedef struct ah_origin {
    ah_slice adapter, model, endpoint;
} ah_origin;

/* Makes the `assistant` entry. Shows text that was held back first. A call gets a new id if it has
 * none, one over 64 bytes, or one that the transcript already contains. */
ah_status ah_assembly_entry(ah_assembly *a, const ah_transcript *t, const ah_origin *origin,
                            int64_t time, ah_text **out, ah_err *err);

#endif
