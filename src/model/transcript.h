/* The transcript: a conversation as an append-only list of entries, and the only source of truth.
 * It grows by whole turns: a running turn is a pending record {assistant message, a result slot for
 * each call, staged changes}, which commit or settle moves into the list. Reference-counted; it
 * owns its entries. docs/reference/transcript.md has the JSON form.
 *
 * An entry is its JSON text (checked, immutable); nothing is stored twice.
 * Callers: its floor, state, wire, lua. */
#ifndef AH_MODEL_TRANSCRIPT_H
#define AH_MODEL_TRANSCRIPT_H

#include <stdint.h>

#include "model/model_settings.h"
#include "base/json.h"

/* In the order in which a commit appends them. */
typedef enum ah_entry_kind {
    AH_ENTRY_SETTINGS,
    AH_ENTRY_ASSISTANT,
    AH_ENTRY_TOOL_RESULT,
    AH_ENTRY_TOOLS_ADDED,
    AH_ENTRY_TOOLS_REMOVED,
    AH_ENTRY_TOOLS_DEFERRED, /* tools that can be found, but are not offered yet */
    AH_ENTRY_PROMPT,
    AH_ENTRY_STRATEGY, /* state of a strategy; never sent to a model */
    AH_ENTRY_NOTE,
    AH_ENTRY_USER,
    AH_ENTRY_COMPACTED,
    AH_ENTRY_KINDS
} ah_entry_kind;

typedef struct ah_entry {
    ah_entry_kind kind;
    ah_text *json;
    bool objects; /* of a turn that was run: the arguments of all calls are AH_ARGUMENTS_JSON and
                     objects */
} ah_entry;

const char *ah_entry_name(ah_entry_kind kind); /* its "type" in JSON */

/* Verdict on the arguments of a call, which are parsed once, when its turn begins. */
typedef enum ah_arguments_verdict {
    AH_ARGUMENTS_WRONG, /* not JSON */
    AH_ARGUMENTS_DEEP,  /* JSON with too many levels for a request */
    AH_ARGUMENTS_JSON
} ah_arguments_verdict;
enum { AH_ARGUMENTS_DEPTH = AH_JSON_MAX_DEPTH - 16 }; /* leaves room for the levels around them */

/* A call of the pending turn, and the place of its result. */
typedef struct ah_slot {
    ah_text *id, *name;
    ah_text *arguments; /* as the model wrote them, without keys, maybe not JSON: */
    ah_arguments_verdict written;
    ah_text *original; /* the arguments with the keys; NULL: there are none in them */
    ah_text *result;   /* NULL: empty; otherwise the tool_result entry */
    ah_text *reserve;  /* memory for a result that must not fail */
} ah_slot;

typedef struct ah_transcript {
    const ah_mem *mem;
    size_t refs;
    ah_entry *entry;
    size_t n, cap;
    /* of the last entry of that kind; all missing without one */
    ah_model_settings settings;
    /* the pending turn; `assistant` NULL: none */
    ah_text *assistant;
    ah_slot *slot;
    size_t n_slots;
    ah_entry *staged;
    size_t n_staged, cap_staged;
    uint64_t *seen; /* hashes of call ids, open addressing; 0: free */
    size_t n_seen, cap_seen;
} ah_transcript;

ah_transcript *ah_transcript_new(const ah_mem *mem); /* NULL: out of memory */
ah_transcript *ah_transcript_ref(ah_transcript *t);
void ah_transcript_unref(ah_transcript *t);

/* Reads a transcript from the JSON text of ah_transcript_print. The result is sound, with the
 * pending turn settled: a call without a result gets one that states this. Entries of unknown
 * kinds are left out. Fails with AH_USAGE for other texts. (transcript_read.c) */
ah_status ah_transcript_read(const ah_mem *mem, ah_slice text, ah_transcript **out, ah_err *err);
/* Makes a copy with the same entries, without the pending turn. */
ah_status ah_transcript_copy(const ah_transcript *t, ah_transcript **out, ah_err *err);
/* Returns the text of the last entry of that kind; .p NULL: none. */
ah_slice ah_transcript_last(const ah_transcript *t, ah_entry_kind kind);

/* Appends outside a turn; takes json (also on failure). */
ah_status ah_transcript_add(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err);

/* Begins a turn with the assistant entry, which it takes, and reads the calls from it. From here
 * until commit, settling needs no memory. */
ah_status ah_transcript_begin(ah_transcript *t, ah_text *assistant, ah_err *err);
/* Fills an empty slot; takes the result. A full slot keeps its first result. */
void ah_transcript_fill(ah_transcript *t, size_t slot, ah_text *result);
/* Stages an entry for the next commit, which appends it after the results and by kind; takes
 * json (also on failure). */
ah_status ah_transcript_stage(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err);
/* True if the last message is a question or a result, which the model has yet to answer. */
bool ah_transcript_wants_answer(const ah_transcript *t);
/* ah_transcript_mark returns a mark; the other removes the entries staged (or, if `staged` is
 * false, added) since a mark. */
size_t ah_transcript_mark(const ah_transcript *t, bool staged);
void ah_transcript_take_back(ah_transcript *t, bool staged, size_t mark);
/* Fills an empty slot with `content` (a literal of at most AH_SETTLE_MAX bytes without
 * characters that JSON escapes) and success false. A full slot stays. Cannot fail. */
enum { AH_SETTLE_MAX = 160 };
void ah_transcript_settle(ah_transcript *t, size_t slot, const char *content, int64_t time);
/* Moves the pending turn (all slots full; or no turn) and staged entries into the list. Cannot
 * fail. */
void ah_transcript_commit(ah_transcript *t);

/* True if a call with this id has begun in this conversation, or one whose id has the same hash.
 * Used to make new ids, for which another try is cheap. */
bool ah_transcript_knows(const ah_transcript *t, ah_slice id);

/* AH_OK if every call has exactly one result, in order, directly after its message, and every
 * result belongs to a call; otherwise AH_INTERNAL, which names the first violation. */
ah_status ah_transcript_sound(const ah_transcript *t, ah_err *err);
/* The same for the entries from index `from` on, which begins no results of a message before. */
ah_status ah_transcript_sound_from(const ah_transcript *t, size_t from, ah_err *err);

/* Appends everything as one JSON object, the pending turn included. */
void ah_transcript_print(const ah_transcript *t, ah_buf *out);

/* Make entries as JSON. Each returns a new text; NULL: out of memory. */
ah_text *ah_entry_text(const ah_mem *mem, ah_entry_kind kind, ah_slice text,
                       int64_t time); /* user, prompt, note */
/* Makes a prompt with its origin `by`, a checked JSON object; .p NULL: the script. */
ah_text *ah_entry_prompt(const ah_mem *mem, ah_slice text, ah_slice by, int64_t time);
/* Makes a user's message of parts (checked JSON list). */
ah_text *ah_entry_parts(const ah_mem *mem, ah_slice parts, int64_t time);
/* refused: answered in place of its tool, and not counted as a call. images: a checked JSON
 * list; .p NULL: none. */
ah_text *ah_entry_tool_result(const ah_mem *mem, const ah_slot *slot, bool success, bool refused,
                              ah_slice content, ah_slice images, int64_t time);

/* -- tickets: numbers of calls whose results follow as notes (tickets.c) -- */

/* Makes the result of a call that goes on in the background. */
ah_text *ah_entry_ticket(const ah_mem *mem, const ah_slot *slot, int64_t ticket, ah_slice content,
                         int64_t time);
/* Makes the note with the result. images: a checked JSON list; .p NULL: none. */
ah_text *ah_entry_ticket_note(const ah_mem *mem, int64_t ticket, ah_slice text, ah_slice images,
                              int64_t time);
/* Returns the ticket that the entry gives or closes; 0: none. */
int64_t ah_entry_ticket_of(const ah_entry *e);
/* Returns the highest ticket; 0: none. */
int64_t ah_tickets_last(const ah_transcript *t);
/* Appends a note for each of the last AH_MAX_TICKETS tickets without one: "Ticket 3 (name): why".
 */
enum { AH_MAX_TICKETS = 16 };
ah_status ah_tickets_close(ah_transcript *t, const char *why, int64_t time, ah_err *err);

#endif
