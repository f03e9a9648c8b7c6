/* Asks: what needs a person. A host has one book of those that are open, whoever asks (an approval
 * of a call, a handler that has a question) and whoever responds (the script, a front end, the
 * program). This module knows what an ask is, checks responses and tells of both ends; who is
 * asked, and in which order, is decided above (lua/lua_ask.h). */
#ifndef AH_HOST_ASK_H
#define AH_HOST_ASK_H

#include "host/driver.h"

typedef enum ah_ask_kind { AH_ASK_APPROVAL, AH_ASK_QUESTION } ah_ask_kind;

/* How an ask was closed. */
typedef enum ah_ask_how {
    AH_ASK_OPEN,      /* it was not */
    AH_ASK_ANSWERED,  /* somebody responded, be it with a no */
    AH_ASK_DEFAULTED, /* nobody did, and its default stands */
    AH_ASK_TIMEOUT,   /* nobody did in time */
    AH_ASK_CANCELLED, /* the call that asked is over */
    AH_ASK_DENIED     /* nobody is there to respond, or what was to decide failed */
} ah_ask_how;

/* What becomes of an ask; lent. */
typedef struct ah_ask_end {
    ah_ask_how how;
    ah_slice value; /* ANSWERED, DEFAULTED: the response as its schema has it, checked JSON */
    ah_slice why;   /* DENIED: in words; .p NULL: nobody is there */
    ah_slice by;    /* who did it: "script", "front end", a name; .p NULL: nobody */
} ah_ask_end;

/* What is asked. Everything is copied or referenced, but for call and of, which outlive the ask. */
typedef struct ah_ask_def {
    ah_ask_kind kind;
    ah_call *call;     /* that waits for the response */
    ah_driver_run *of; /* in which run what is done for the ask is done: call's, or one within it */
    ah_slice question;
    ah_schema *schema;  /* of a response; NULL: { approved, why, arguments }, for APPROVAL */
    ah_slice otherwise; /* the default, checked JSON that the schema accepts; .p NULL: none */
    int64_t timeout_ms; /* 0: none */
    bool secret;        /* its response is told to nobody but who asked */
    /* Called once, unless the ask is dropped; it is over then, and soon gone. Calls no code of the
     * script. */
    void (*closed)(void *ud, const ah_ask_end *end);
    void *ud;
} ah_ask_def;

enum { AH_ASK_ID = 32 }; /* bytes of an id with its NUL */

/* One open ask. Nobody but ask.c changes it, but for what is said so. */
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
    bool offered;  /* to the program, which has not seen it yet; whoever asks it sets this */
    bool over;     /* it is pinned only */
    int pins;
    void *offer; /* of those who are asked; `left` is told when nobody needs to respond any more */
    void (*left)(void *offer);
    ah_timer timer;
    ah_job job;
} ah_ask_item;

/* Enters an ask into the book; nobody is told yet. */
ah_status ah_ask_open(ah_host *h, const ah_ask_def *def, ah_ask_item **out, ah_err *err);
/* The event `ask`. What observers do may close it: look at what `closed` has left. */
void ah_ask_tell(const ah_ask_item *a);

/* A response, checked JSON: of an approval a boolean will do, too. AH_OK: it counts, and the ask is
 * gone. AH_TOOL_VALIDATION: it does not match the schema, *err says where, and the ask stays open.
 */
ah_status ah_ask_respond(ah_ask_item *a, ah_slice response, ah_slice by, ah_err *err);
/* Closes it in another way; the ask is gone. */
void ah_ask_close_as(ah_ask_item *a, const ah_ask_end *end);
/* Nobody is left to respond: its default, or DENIED. */
void ah_ask_give_up(ah_ask_item *a);
/* It is gone, and nobody is told: the state is being closed. */
void ah_ask_drop(ah_ask_item *a);

/* Around what may run code of the script, which may close it: it stays readable. False: it is over,
 * and gone with the last pin. */
void ah_ask_pin(ah_ask_item *a);
bool ah_ask_unpin(ah_ask_item *a);

/* The open ask of an id such as "ask_7", or NULL: *err, AH_USAGE, says what became of it. */
ah_ask_item *ah_ask_find(ah_host *h, ah_slice id, ah_err *err);
const char *ah_ask_kind_name(ah_ask_kind kind);
/* Its call as {id, name, arguments, parent_call}; arguments as text, or as they are. */
void ah_ask_put_call(const ah_ask_item *a, bool as_text, ah_buf *out);

#endif
