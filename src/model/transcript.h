/* The transcript: a conversation as an append-only list of entries, and the one
 * source of truth. It grows by whole turns: while a turn runs there is a pending
 * record {assistant message, a result slot for each call, staged changes}, and
 * commit or settle moves it into the list. docs/reference/transcript.md shows the JSON form.
 *
 * An entry is its JSON text (checked, immutable); nothing is kept twice. */
#ifndef AH_MODEL_TRANSCRIPT_H
#define AH_MODEL_TRANSCRIPT_H

#include <stdint.h>

#include "model/model_settings.h"
#include "base/json.h"

/* In the order in which one commit appends them. */
typedef enum ah_entry_kind {
    AH_ENTRY_SETTINGS,
    AH_ENTRY_ASSISTANT,
    AH_ENTRY_TOOL_RESULT,
    AH_ENTRY_TOOLS_ADDED,
    AH_ENTRY_TOOLS_REMOVED,
    AH_ENTRY_TOOLS_DEFERRED, /* tools that can be found, but are not offered yet */
    AH_ENTRY_PROMPT,
    AH_ENTRY_STRATEGY, /* data that a strategy keeps; never sent to a model */
    AH_ENTRY_NOTE,
    AH_ENTRY_USER,
    AH_ENTRY_COMPACTED,
    AH_ENTRY_KINDS
} ah_entry_kind;

typedef struct ah_entry {
    ah_entry_kind kind;
    ah_text *json;
    bool objects; /* of a turn that was run: all its calls' arguments are AH_ARGUMENTS_JSON, and
                     objects */
} ah_entry;

const char *ah_entry_name(ah_entry_kind kind); /* its "type" in JSON */

/* The arguments of a call, which are read for it once, when its turn begins. */
typedef enum ah_arguments_verdict {
    AH_ARGUMENTS_WRONG, /* no JSON */
    AH_ARGUMENTS_DEEP,  /* JSON, of more levels than there is room for in a request */
    AH_ARGUMENTS_JSON
} ah_arguments_verdict;
enum { AH_ARGUMENTS_DEPTH = AH_JSON_MAX_DEPTH - 16 }; /* with room for what is around them there */

/* A call of the pending turn and the place of its answer. */
typedef struct ah_slot {
    ah_text *id, *name;
    ah_text *arguments; /* as the model wrote them, maybe no JSON: */
    ah_arguments_verdict written;
    ah_text *result;  /* NULL: empty; else the tool_result entry */
    ah_text *reserve; /* memory for a result that cannot fail */
} ah_slot;

typedef struct ah_transcript {
    const ah_mem *mem;
    size_t refs;
    ah_entry *entry;
    size_t n, cap;
    /* of the last entry of that kind; nothing is said where there is none */
    ah_model_settings settings;
    /* the pending turn; `assistant` NULL: none */
    ah_text *assistant;
    ah_slot *slot;
    size_t n_slots;
    ah_entry *staged;
    size_t n_staged, cap_staged;
    uint64_t *seen; /* hashes of call ids, open addressing; 0 is free */
    size_t n_seen, cap_seen;
} ah_transcript;

ah_transcript *ah_transcript_new(const ah_mem *mem); /* NULL when out of memory */
ah_transcript *ah_transcript_ref(ah_transcript *t);
void ah_transcript_unref(ah_transcript *t);

/* Reads a transcript from its JSON text, as ah_transcript_print gives it: sound, the pending turn
 * settled (a call without an answer gets one that says so). Entries of unknown kinds are left out.
 * AH_USAGE says what is wrong with a text that is no transcript. (transcript_read.c) */
ah_status ah_transcript_read(const ah_mem *mem, ah_slice text, ah_transcript **out, ah_err *err);
/* Makes a copy with the same entries, without the pending turn. */
ah_status ah_transcript_copy(const ah_transcript *t, ah_transcript **out, ah_err *err);
/* The text of the last entry of that kind; .p NULL: there is none. */
ah_slice ah_transcript_last(const ah_transcript *t, ah_entry_kind kind);

/* Appends outside a turn; takes json (also on failure). */
ah_status ah_transcript_add(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err);

/* Begins a turn: takes the assistant entry; its calls are read from it. From here
 * until commit nothing that settles can run out of memory. */
ah_status ah_transcript_begin(ah_transcript *t, ah_text *assistant, ah_err *err);
/* Fills an empty slot; takes the result. A full one keeps its first answer. */
void ah_transcript_fill(ah_transcript *t, size_t slot, ah_text *result);
/* Stages an entry that the next commit appends, after the results and by kind; takes json (also on
 * failure). */
ah_status ah_transcript_stage(ah_transcript *t, ah_entry_kind kind, ah_text *json, ah_err *err);
/* Take back the entries that were staged (or, where `staged` is false, added) since a mark. */
size_t ah_transcript_mark(const ah_transcript *t, bool staged);
void ah_transcript_take_back(ah_transcript *t, bool staged, size_t mark);
/* Answers an empty slot with `content` (a literal of at most AH_SETTLE_MAX bytes
 * without characters that JSON escapes) and success false. A full one stays. Cannot fail. */
enum { AH_SETTLE_MAX = 160 };
void ah_transcript_settle(ah_transcript *t, size_t slot, const char *content, int64_t time);
/* Moves the pending turn (all slots full; or none pending) and what is staged into the
 * list. Cannot fail. */
void ah_transcript_commit(ah_transcript *t);

/* True if a call of this id has begun in this conversation, or one whose id has the same hash. Used
 * to mint ids, where another try costs nothing. */
bool ah_transcript_knows(const ah_transcript *t, ah_slice id);

/* AH_OK when every call is answered exactly once, in order, right after its message, and
 * every result belongs to a call; else AH_INTERNAL saying which is not. */
ah_status ah_transcript_sound(const ah_transcript *t, ah_err *err);

/* The whole as one JSON object, the pending turn included. */
void ah_transcript_print(const ah_transcript *t, ah_buf *out);

/* Entries as JSON. Each takes what it needs, returns a new text, or NULL when out of memory. */
ah_text *ah_entry_text(const ah_mem *mem, ah_entry_kind kind, ah_slice text,
                       int64_t time); /* user, prompt, note */
/* A prompt with its origin `by`, a checked JSON object; .p NULL: the script. */
ah_text *ah_entry_prompt(const ah_mem *mem, ah_slice text, ah_slice by, int64_t time);
/* A user's message of parts (checked JSON list). */
ah_text *ah_entry_parts(const ah_mem *mem, ah_slice parts, int64_t time);
/* refused: it was answered in the place of its tool, and does not count as a call. images: a
 * checked JSON list of them, .p NULL for none. */
ah_text *ah_entry_tool_result(const ah_mem *mem, const ah_slot *slot, bool success, bool refused,
                              ah_slice content, ah_slice images, int64_t time);

#endif
