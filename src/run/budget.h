/* Budgets limit what a run and everything it starts may use (seed 002). Requests and tool calls are
 * counted exactly. Tokens and money are reserved while a request is in flight and settled by what
 * the provider reports. An estimate is reserved, so they may overshoot by the requests in flight;
 * with `reserve`, an upper bound, so they do not: a request without room waits until one in flight
 * has ended. A budget is reference-counted and may be shared by any number of runs; a run draws on
 * its own budget and on those of the runs around it. Callers: its module, lua. */
#ifndef AH_RUN_BUDGET_H
#define AH_RUN_BUDGET_H

#include "run/price.h"
#include "run/spent.h"

typedef enum ah_budget_kind {
    AH_BUDGET_REQUESTS,
    AH_BUDGET_TOOL_CALLS,
    AH_BUDGET_INPUT,  /* tokens */
    AH_BUDGET_OUTPUT, /* tokens */
    AH_BUDGET_TOTAL,  /* tokens */
    AH_BUDGET_COST,   /* in 1 / AH_COST_UNIT */
    AH_BUDGET_KINDS
} ah_budget_kind;

/* A request's place in the queue of a budget. */
typedef struct ah_budget_place {
    struct ah_budget *at; /* NULL: it does not wait */
    struct ah_budget_place *next, *prev;
    int64_t since;          /* loop clock */
    bool called;            /* it may have room now, and is to try again */
    void (*call)(void *ud); /* says so, once; must not call back */
    void *ud;
} ah_budget_place;

typedef struct ah_budget {
    const ah_mem *mem;
    size_t refs;
    int64_t limit[AH_BUDGET_KINDS]; /* -1: no limit */
    int64_t used[AH_BUDGET_KINDS], reserved[AH_BUDGET_KINDS];
    bool estimated;   /* some of `used` is an estimate: a provider reported no usage */
    ah_spent counted; /* as the answers were reported and priced, whatever its prices are */
    bool reserve;     /* upper bounds are reserved */
    int64_t unseen;   /* the most input tokens that a provider counted beyond the bound so far */
    ah_price *price;  /* longer names first */
    size_t n_prices, cap_prices;
    ah_budget_place *first, *last; /* those that wait, by `since` */
    void (*freed)(void *ud);       /* called before it is freed; NULL: nothing */
    void *freed_ud;
} ah_budget;

ah_budget *ah_budget_new(const ah_mem *mem); /* without limits; NULL when out of memory */
/* Both allow NULL. */
ah_budget *ah_budget_ref(ah_budget *b);
void ah_budget_unref(ah_budget *b);
/* Adds a price; the model's name is copied. One that ends with * holds for all names that begin
 * so; the longest that fits a model is taken. */
ah_status ah_budget_price(ah_budget *b, ah_slice model, const ah_price *price, ah_err *err);
/* Returns AH_USAGE if money is limited, neither the budget nor the model table has a price for the
 * model, and its answers do not report their cost. With `reserve` a price is needed anyway, and a
 * model that makes requests of its own is refused, since they have no bound. */
ah_status ah_budget_knows(const ah_budget *b, ah_slice model, const ah_adapter *a, ah_err *err);
/* Returns AH_USAGE if `reserve` needs to know how long an answer may be, and nothing says it but
 * the max_tokens of a request. */
ah_status ah_budget_knows_length(const ah_budget *b, ah_slice model, const ah_adapter *a,
                                 ah_err *err);

/* The object of a record `spent` (docs/reference/journal.md), and back: what is reserved counts as
 * used then. Members that are missing or wrong are 0. (budget_record.c) */
void ah_budget_print_spent(const ah_budget *b, ah_buf *out);
void ah_budget_take_spent(ah_budget *b, ah_slice spent);

/* For example "total_tokens", as scripts write the field. */
const char *ah_budget_kind_name(ah_budget_kind kind);

enum { AH_MAX_BUDGETS = 16 };

/* One budget of a run, and what the run's request in flight has reserved of it. */
typedef struct ah_draw {
    ah_budget *budget;
    int64_t reserved[AH_BUDGET_KINDS];
    int64_t bound;   /* of its input, without `unseen` of the budget; -1: none is known */
    int64_t guessed; /* money charged by price that a later answer will report itself */
} ah_draw;

/* The budgets a run draws on. */
typedef struct ah_budgets {
    ah_draw draw[AH_MAX_BUDGETS];
    size_t n;
    bool in_flight;        /* a request has begun */
    ah_budget_place place; /* of the request that waits; `call` and `ud` are the run's */
} ah_budgets;

/* A request that a run wants to make. */
typedef struct ah_demand {
    ah_slice model; /* "provider/model" */
    const ah_adapter *adapter;
    int64_t input, output;           /* tokens, about */
    int64_t most_input, most_output; /* never more; -1: no bound is known */
    bool waits;                      /* until there is room, where there will be */
    int64_t now;                     /* loop clock */
} ah_demand;

/* Takes a reference. NULL, or a budget that is already present, changes nothing. Returns AH_BUDGET
 * if there are too many. */
ah_status ah_budgets_add(ah_budgets *s, ah_budget *b, ah_err *err);
void ah_budgets_clear(ah_budgets *s); /* releases the reservations */

/* Returns AH_BUDGET, with message and details, if a limit leaves nothing for the next request (a
 * free model needs no money); with NULL, only if more tokens or money were used than the limit
 * allows. */
ah_status ah_budgets_check(const ah_budgets *s, const ah_demand *next, ah_err *err);
/* Discards `guessed`: no later answer reports the cost of the earlier ones. */
void ah_budgets_forget(ah_budgets *s);

/* The request begins: it is reserved in all budgets. *waits: it has to wait, and has
 * the place; asked again once that is called, it keeps its turn. AH_BUDGET where a budget with
 * `reserve` can never hold it, AH_USAGE where one needs a bound that is not known. */
ah_status ah_budgets_begin(ah_budgets *s, const ah_demand *d, bool *waits, ah_err *err);
/* The request is sent: it is counted. Before that it only holds its place of the limit. */
void ah_budgets_sent(ah_budgets *s);
/* The request waits no longer; no effect if it does not wait. */
void ah_budgets_leave(ah_budgets *s);
/* It was answered. Unknown usage is what was reserved and `output` tokens, with `reserve` all that
 * was reserved; money is what the answer reports, else it goes by prices. True where a budget with
 * `reserve` is charged more than was reserved. */
bool ah_budgets_end(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *usage,
                    int64_t output);
/* Sets the cost of an answer that did not report it: by the price of the first of these budgets
 * that names the model, else by the model table. It stays unknown without a price, without token
 * counts, and where the table has only the price of an older version. */
void ah_budgets_price(const ah_budgets *s, ah_slice model, const ah_adapter *a, ah_usage *u);
/* It was not answered; no effect if none is in flight. reported NULL: it cannot have used anything.
 * Else budgets with `reserve` are charged the input that was reported, or that was reserved, and
 * the output that was reserved. */
void ah_budgets_drop(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *reported);
/* Takes one tool call; AH_BUDGET if none is left. */
ah_status ah_budgets_call(ah_budgets *s, ah_err *err);

#endif
