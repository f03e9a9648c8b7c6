/* Asks: approvals and questions that need a person. A host has one book of the open ones, whoever
 * asks (an approval of a call, a handler that has a question) and whoever responds (the script, a
 * front end, the program). This module checks responses and emits the events of both ends; who is
 * asked, and in which order, is decided above (lua/lua_ask.h). */
#ifndef AH_HOST_ASK_H
#define AH_HOST_ASK_H

#include "host/driver.h"

typedef enum ah_ask_kind { AH_ASK_APPROVAL, AH_ASK_QUESTION } ah_ask_kind;

/* The way in which an ask was closed. */
typedef enum ah_ask_how {
    AH_ASK_OPEN,      /* not closed */
    AH_ASK_ANSWERED,  /* by a response, be it a refusal */
    AH_ASK_DEFAULTED, /* by its default, without a response */
    AH_ASK_TIMEOUT,   /* by its time limit */
    AH_ASK_CANCELLED, /* the call that asked is over */
    AH_ASK_DENIED     /* no front end could respond, or deciding failed */
} ah_ask_how;

/* The end of an ask; lent. */
typedef struct ah_ask_end {
    ah_ask_how how;
    ah_slice value; /* ANSWERED, DEFAULTED: the response as its schema has it, checked JSON */
    ah_slice why;   /* DENIED: the reason; .p NULL: there is no front end */
    ah_slice by;    /* the responder: "script", "front end", a name; .p NULL: none */
} ah_ask_end;

/* Definition of an ask. Everything is copied or referenced, except call and of, which outlive the
 * ask. */
typedef struct ah_ask_def {
    ah_ask_kind kind;
    ah_call *call;     /* the call that waits for the response */
    ah_driver_run *of; /* the run that does the work for the ask: the call's, or one within it */
    ah_slice question;
    ah_schema *schema;  /* of a response; NULL: { approved, why, arguments }, for APPROVAL */
    ah_slice otherwise; /* the default, checked JSON that the schema accepts; .p NULL: none */
    int64_t timeout_ms; /* 0: none */
    bool secret;        /* the response is given to the asking call alone */
    /* Called once, unless the ask is dropped; it is over then, and soon gone. Calls no code of the
     * script. */
    void (*closed)(void *ud, const ah_ask_end *end);
    void *ud;
} ah_ask_def;

enum { AH_ASK_ID = 32 }; /* bytes of an id with its NUL */

/* One open ask. Only ask.c changes it, except for fields that say otherwise. */
typedef struct ah_ask_item {
    ah_host *host;
    struct ah_ask_item *next, **link; /* in the book, in the order of opening */
    int64_t number;
    char id[AH_ASK_ID]; /* "ask_7" */
    ah_ask_def def;
    ah_text *question, *schema, *args; /* as they are told, without keys; args: what the call's
                                          handler gets, or would get */
    ah_text *otherwise;
    int64_t until; /* loop clock; 0: no end */
    bool offered;  /* to the program, which has not seen it yet; set by the code that offers it */
    bool over;     /* it is pinned only */
    int pins;
    void *offer; /* the front ends' own; `left` is called when no response is needed any more */
    void (*left)(void *offer);
    ah_timer timer;
    ah_job job;
} ah_ask_item;

/* Enters an ask into the book; emits nothing yet. */
ah_status ah_ask_open(ah_host *h, const ah_ask_def *def, ah_ask_item **out, ah_err *err);
/* Emits the event `ask`. An observer may close the ask: look at what `closed` has left. */
void ah_ask_tell(const ah_ask_item *a);

/* Closes the ask with a response, checked JSON; for an approval a boolean will do, too. AH_OK: it
 * counts, and the ask is gone. AH_TOOL_VALIDATION: it does not match the schema, *err says where,
 * and the ask stays open. */
ah_status ah_ask_respond(ah_ask_item *a, ah_slice response, ah_slice by, ah_err *err);
/* Closes the ask in another way; the ask is gone. */
void ah_ask_close_as(ah_ask_item *a, const ah_ask_end *end);
/* Closes an ask that no front end can respond to any more: with its default, or as DENIED. */
void ah_ask_give_up(ah_ask_item *a);
/* Removes an ask without any event or call, as the state is being closed. */
void ah_ask_drop(ah_ask_item *a);

/* Called before and after code that may run the script, which may close the ask: it stays readable
 * meanwhile. False: the ask is over, and gone with the last pin. */
void ah_ask_pin(ah_ask_item *a);
bool ah_ask_unpin(ah_ask_item *a);

/* Returns the open ask of an id such as "ask_7", or NULL: *err, AH_USAGE, says how it was closed,
 * or that there is none of the id. */
ah_ask_item *ah_ask_find(ah_host *h, ah_slice id, ah_err *err);
const char *ah_ask_kind_name(ah_ask_kind kind);
/* Appends the ask's call as {id, name, arguments, parent_call}; arguments as text, or as they
 * are. */
void ah_ask_put_call(const ah_ask_item *a, bool as_text, ah_buf *out);

#endif
