/* Asks: approvals and questions that need a person's response. The host has one book of the open
 * asks; approvals of calls and questions of handlers open them, and the script, a front end or the
 * program responds. This module checks responses and emits the events of both ends. lua/lua_ask.h
 * decides which responders are asked, in which order. The book owns its items; an item copies or
 * references its definition. Events run observers, which may close asks: see ah_ask_pin.
 * Callers: its floor, lua. */
#ifndef AH_HOST_ASK_H
#define AH_HOST_ASK_H

#include "host/driver.h"

typedef enum ah_ask_kind { AH_ASK_APPROVAL, AH_ASK_QUESTION } ah_ask_kind;

/* The reason why an ask was closed. */
typedef enum ah_ask_how {
    AH_ASK_OPEN,      /* not closed */
    AH_ASK_ANSWERED,  /* by a response, even a refusal */
    AH_ASK_DEFAULTED, /* by its default, without a response */
    AH_ASK_TIMEOUT,   /* its time limit has passed */
    AH_ASK_CANCELLED, /* the call that asked is over */
    AH_ASK_DENIED,    /* no front end could respond, or the decision failed */
    AH_ASK_PARKED     /* it waits in the store, beyond its run */
} ah_ask_how;

/* The end of an ask; all slices are borrowed. */
typedef struct ah_ask_end {
    ah_ask_how how;
    ah_slice value; /* ANSWERED, DEFAULTED: the response in the form of its schema, checked JSON */
    ah_slice why;   /* DENIED: the reason; .p NULL: there is no front end */
    ah_slice by;    /* the responder: "script", "front end", a name; .p NULL: none */
} ah_ask_end;

/* Definition of an ask. Everything is copied or referenced, except `call` and `of`, which outlive
 * the ask. */
typedef struct ah_ask_def {
    ah_ask_kind kind;
    ah_call *call;     /* the call that waits for the response */
    ah_driver_run *of; /* the run that works for the ask: the call's, or one inside it */
    ah_slice question;
    /* Of a response; NULL: for APPROVAL, { approved, why, arguments }, or of changes
     * { approved, why }. */
    ah_schema *schema;
    ah_slice otherwise; /* the default, checked JSON that the schema accepts; .p NULL: none */
    int64_t timeout_ms; /* 0: none */
    bool secret;        /* the response is given to the asking call only */
    /* Called once, unless the ask is dropped; the ask is over then, and freed soon. Runs no code of
     * the script. */
    void (*closed)(void *ud, const ah_ask_end *end);
    /* Called when nothing in this process can respond. True: the ask stays open, for a response
     * from beyond the process. NULL: there is none. */
    bool (*park)(void *ud);
    void *ud;
} ah_ask_def;

enum {
    AH_ASK_ID = 32,            /* size of an id with its NUL, in bytes */
    AH_MAX_RESPONSE = 16 << 20 /* bytes */
};

/* One open ask. Only ask.c changes it, except for fields that say otherwise. */
typedef struct ah_ask_item {
    ah_host *host;
    struct ah_ask_item *next, **link; /* neighbours in the book, in the order of opening */
    int64_t number;
    char id[AH_ASK_ID]; /* "ask_7" */
    ah_ask_def def;
    /* As shown in events, without keys. args: what the call's handler gets, or would get. */
    ah_text *question, *schema, *args;
    ah_text *result, *changes; /* of an approval of changes; NULL: it is none */
    ah_text *otherwise;
    int64_t until; /* loop clock, ms; 0: no limit */
    bool offered;  /* offered to the program, which has not seen it yet; set by the offering code */
    int64_t recorded; /* its number in the stream of its run; 0: it is in none; set by its owner */
    bool over;        /* it is over, and kept only by pins */
    int pins;
    void *offer; /* for the front ends; `left` is called when no response is needed any more */
    void (*left)(void *offer);
    ah_timer timer;
    ah_job job;
} ah_ask_item;

/* Enters an ask into the book; emits nothing yet. */
ah_status ah_ask_open(ah_host *h, const ah_ask_def *def, ah_ask_item **out, ah_err *err);
/* Emits the event `ask`. An observer may close the ask, which frees *a and calls `closed`. */
void ah_ask_tell(const ah_ask_item *a);

/* Closes the ask with a response, checked JSON; an approval also accepts a boolean. AH_OK: it is
 * accepted, and the ask is gone. AH_TOOL_VALIDATION: it does not match the schema, *err says where,
 * and the ask stays open. */
ah_status ah_ask_respond(ah_ask_item *a, ah_slice response, ah_slice by, ah_err *err);
/* Closes the ask in another way. The ask is then gone. */
void ah_ask_close_as(ah_ask_item *a, const ah_ask_end *end);
/* Called for an ask to which no front end can respond any more: parks it, or closes it, with its
 * default or as DENIED. */
void ah_ask_give_up(ah_ask_item *a);
/* Removes an ask without any event or call, while the Lua state is closed. */
void ah_ask_drop(ah_ask_item *a);

/* Called before and after code that may run the script, which may close the ask: until the unpin it
 * stays readable. False: the ask is over, and freed with the last pin. */
void ah_ask_pin(ah_ask_item *a);
bool ah_ask_unpin(ah_ask_item *a);

/* Returns the open ask of an id such as "ask_7". NULL: *err is AH_USAGE and says how it was closed,
 * or that the id is unknown. */
ah_ask_item *ah_ask_find(ah_host *h, ah_slice id, ah_err *err);

/* Compiles the schema of responses; text .p NULL: that of approvals, {approved, why, arguments}. */
ah_status ah_ask_schema(ah_host *h, ah_slice text, ah_schema **out, ah_err *err);
/* Checks a response as ah_ask_respond does. full, an empty buffer, gets it in the form of the
 * schema, with defaults; its limit is AH_MAX_RESPONSE. id: the ask's name in *err. */
ah_status ah_ask_check(ah_ask_kind kind, const ah_schema *schema, ah_slice id, ah_slice response,
                       ah_buf *full, ah_err *err);

const char *ah_ask_kind_name(ah_ask_kind kind);
/* Appends the ask's call as {id, name, arguments, parent_call}; arguments as a string, or as
 * JSON. */
void ah_ask_put_call(const ah_ask_item *a, bool as_text, ah_buf *out);

#endif
