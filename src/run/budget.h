/* Budgets limit what a run and everything it starts may use (seed 002). Requests and tool calls are
 * counted exactly. Tokens and money are reserved by an estimate while a request is in flight and
 * settled by what the provider reports, so they may overshoot by the requests in flight. A budget
 * is reference-counted and may be shared by any number of runs; a run draws on its own budget and
 * on those of the runs around it. Callers: its module, lua. */
#ifndef AH_RUN_BUDGET_H
#define AH_RUN_BUDGET_H

#include "wire/adapter.h"

typedef enum ah_budget_kind {
    AH_BUDGET_REQUESTS,
    AH_BUDGET_TOOL_CALLS,
    AH_BUDGET_INPUT,  /* tokens */
    AH_BUDGET_OUTPUT, /* tokens */
    AH_BUDGET_TOTAL,  /* tokens */
    AH_BUDGET_COST,   /* in 1 / AH_COST_UNIT */
    AH_BUDGET_KINDS
} ah_budget_kind;

/* The price of a million tokens, in 1 / AH_COST_UNIT, as set by the script. */
typedef struct ah_price {
    ah_text *model; /* "provider/model" */
    int64_t input, cached_read, cached_write, output;
} ah_price;

typedef struct ah_budget {
    const ah_mem *mem;
    size_t refs;
    int64_t limit[AH_BUDGET_KINDS]; /* -1: no limit */
    int64_t used[AH_BUDGET_KINDS], reserved[AH_BUDGET_KINDS];
    bool estimated; /* some of `used` is an estimate: a provider reported no usage */
    ah_price *price;
    size_t n_prices, cap_prices;
} ah_budget;

ah_budget *ah_budget_new(const ah_mem *mem); /* without limits; NULL when out of memory */
/* Both allow NULL. */
ah_budget *ah_budget_ref(ah_budget *b);
void ah_budget_unref(ah_budget *b);
/* Adds a price. Copies the model's name. */
ah_status ah_budget_price(ah_budget *b, ah_slice model, const ah_price *price, ah_err *err);
/* Returns AH_USAGE if money is limited, neither the budget nor the model table has a price for the
 * model, and its answers do not report their cost. */
ah_status ah_budget_knows(const ah_budget *b, ah_slice model, const ah_adapter *a, ah_err *err);

/* For example "total_tokens", as scripts write the field. */
const char *ah_budget_kind_name(ah_budget_kind kind);

enum { AH_MAX_BUDGETS = 16 };

/* The budgets that a run draws on, and what its request in flight has reserved. */
typedef struct ah_budgets {
    ah_budget *budget[AH_MAX_BUDGETS];
    size_t n;
    int64_t reserved[AH_BUDGET_KINDS];
    /* Money charged by price that a later answer will report itself. */
    int64_t guessed[AH_MAX_BUDGETS];
} ah_budgets;

/* Takes a reference. NULL, or a budget that is already present, changes nothing. Returns AH_BUDGET
 * if there are too many. */
ah_status ah_budgets_add(ah_budgets *s, ah_budget *b, ah_err *err);
void ah_budgets_clear(ah_budgets *s); /* releases the reservations */

/* Returns AH_BUDGET, with message and details, if a limit leaves nothing for another request; with
 * `over`, only if more tokens or money were used than the limit allows. */
ah_status ah_budgets_check(const ah_budgets *s, bool over, ah_err *err);
/* Discards `guessed`: no later answer reports the cost of the earlier ones. */
void ah_budgets_forget(ah_budgets *s);
/* A request is sent: reserves `input` tokens (an estimate) and `output` tokens. */
void ah_budgets_begin(ah_budgets *s, ah_slice model, const ah_adapter *a, int64_t input,
                      int64_t output);
/* The request has ended. usage NULL: nothing was used. Unknown usage is estimated from the reserved
 * input and from `output` tokens. Money is what the answer reports, else tokens times price. */
void ah_budgets_end(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *usage,
                    int64_t output);
/* Takes one tool call; AH_BUDGET if none is left. */
ah_status ah_budgets_call(ah_budgets *s, ah_err *err);

#endif
