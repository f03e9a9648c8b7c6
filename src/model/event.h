/* Events: reports of a run to its observers. One struct serves all types, with a type and named
 * fields, so that the Lua table and the stable JSON form (docs/reference/events.md) are each
 * made in one place. Events borrow everything they contain. Callers: run, lua. */
#ifndef AH_MODEL_EVENT_H
#define AH_MODEL_EVENT_H

#include <stdint.h>

#include "base/json.h"

/* All types, and their names for observers. */
#define AH_EVENT_LIST(X)                                                                           \
    X(START, "start")                                                                              \
    X(RESUMED, "resumed")                                                                          \
    X(REQUEST, "request")                                                                          \
    X(CONTENT, "content")                                                                          \
    X(TOOL_CALLS, "tool_calls")                                                                    \
    X(TOOL_STARTED, "tool_started")                                                                \
    X(TOOL_PROGRESS, "tool_progress")                                                              \
    X(TOOL_INVOKED, "tool_invoked")                                                                \
    X(BACKGROUND_STARTED, "background_started")                                                    \
    X(BACKGROUND_DONE, "background_done")                                                          \
    X(POLICY, "policy")                                                                            \
    X(ASK, "ask")                                                                                  \
    X(ASK_CLOSED, "ask_closed")                                                                    \
    X(TOOL_LOOP_ITERATION, "tool_loop_iteration")                                                  \
    X(TOOLS_INJECTED, "tools_injected")                                                            \
    X(TOOL_PROVIDER_DISCOVERED, "tool_provider_discovered")                                        \
    X(TOOLS_REMOVED, "tools_removed")                                                              \
    X(CACHE_BREAK, "cache_break")                                                                  \
    X(RETRY, "retry")                                                                              \
    X(HANDOFF, "handoff")                                                                          \
    X(FALLBACK, "fallback")                                                                        \
    X(RATE_LIMIT, "rate_limit")                                                                    \
    X(QUEUED, "queued")                                                                            \
    X(WARNING, "warning")                                                                          \
    X(MAP_PROGRESS, "map_progress")                                                                \
    X(USAGE, "usage")                                                                              \
    X(DONE, "done")

#define AH_EVENT_NUMBER(type, name) AH_EVENT_##type,
typedef enum ah_event_type { AH_EVENT_LIST(AH_EVENT_NUMBER) AH_EVENT_TYPES } ah_event_type;
#undef AH_EVENT_NUMBER

typedef enum ah_field_kind {
    AH_FIELD_STR,
    AH_FIELD_INT,
    AH_FIELD_NUM,
    AH_FIELD_BOOL,
    AH_FIELD_JSON
} ah_field_kind;

typedef struct ah_field {
    const char *name;
    ah_field_kind kind;
    ah_slice s; /* STR: text; JSON: checked text */
    int64_t i;  /* INT, BOOL */
    double d;   /* NUM */
} ah_field;

#define AH_F_STR(name, slice)                                                                      \
    {                                                                                              \
        name, AH_FIELD_STR, slice, 0, 0                                                            \
    }
#define AH_F_INT(name, v)                                                                          \
    {                                                                                              \
        name, AH_FIELD_INT, {NULL, 0}, (int64_t)(v), 0                                             \
    }
#define AH_F_NUM(name, v)                                                                          \
    {                                                                                              \
        name, AH_FIELD_NUM, {NULL, 0}, 0, v                                                        \
    }
#define AH_F_BOOL(name, v)                                                                         \
    {                                                                                              \
        name, AH_FIELD_BOOL, {NULL, 0}, v, 0                                                       \
    }
#define AH_F_JSON(name, slice)                                                                     \
    {                                                                                              \
        name, AH_FIELD_JSON, slice, 0, 0                                                           \
    }

typedef struct ah_notice {
    ah_event_type type;
    int64_t run, parent; /* 0: none */
    int64_t time;        /* ms since the epoch */
    const ah_field *field;
    size_t n;
} ah_notice;

const char *ah_event_name(ah_event_type type); /* "tool_invoked" */
/* Returns the type of a name, or AH_EVENT_TYPES. */
ah_event_type ah_event_type_of(ah_slice name);
/* Appends one JSON object without a line end. */
void ah_event_json(const ah_notice *e, ah_buf *out);

typedef void (*ah_event_fn)(void *ud, const ah_notice *e);
/* Calls fn. The event's content does not change until fn returns, whatever fn calls; fn must not
 * use it afterwards. */
#ifdef AH_LENT
void ah_event_tell(ah_event_fn fn, void *ud, const ah_notice *e);
#else
static inline void ah_event_tell(ah_event_fn fn, void *ud, const ah_notice *e)
{
    fn(ud, e);
}
#endif

#endif
