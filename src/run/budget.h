/* Budgets: how much a run and everything under it may use (seed 002). Requests and tool calls
 * are counted exactly; tokens and money are reserved by an estimate while a request is in
 * flight and settled by what the provider says, so they may overshoot by the requests in
 * flight. A budget may be shared by any number of runs; a run draws on its own and on those
 * of the runs around it. The Lua floor makes budgets; the state machine draws on them. */
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

/* The price of a million tokens, in 1 / AH_COST_UNIT, as the script says. */
typedef struct ah_price {
    ah_text *model; /* "provider/model" */
    int64_t input, cached_read, cached_write, output;
} ah_price;

typedef struct ah_budget {
    const ah_mem *mem;
    size_t refs;
    int64_t limit[AH_BUDGET_KINDS]; /* -1: none */
    int64_t used[AH_BUDGET_KINDS], reserved[AH_BUDGET_KINDS];
    bool estimated; /* some of `used` is an estimate: a provider did not say */
    ah_price *price;
    size_t n_prices, cap_prices;
} ah_budget;

ah_budget *ah_budget_new(const ah_mem *mem); /* without limits; NULL when out of memory */
ah_budget *ah_budget_ref(ah_budget *b);
void ah_budget_unref(ah_budget *b);
/* Adds a price; the model's name is copied. */
ah_status ah_budget_price(ah_budget *b, ah_slice model, const ah_price *price, ah_err *err);
/* AH_USAGE where money is limited, the model has no price (the budget's, else what is known of it),
 * and its answers do not tell. */
ah_status ah_budget_knows(const ah_budget *b, ah_slice model, const ah_adapter *a, ah_err *err);

const char *ah_budget_kind_name(ah_budget_kind kind); /* "total_tokens": the field of a script */

enum { AH_MAX_BUDGETS = 16 };

/* The budgets a run draws on, and what its request in flight has reserved. */
typedef struct ah_budgets {
    ah_budget *budget[AH_MAX_BUDGETS];
    size_t n;
    int64_t reserved[AH_BUDGET_KINDS];
    int64_t guessed[AH_MAX_BUDGETS]; /* money that an answer to come tells, taken by prices */
} ah_budgets;

/* Takes a reference; one that is there already, or NULL, changes nothing. AH_BUDGET when there
 * are too many. */
ah_status ah_budgets_add(ah_budgets *s, ah_budget *b, ah_err *err);
void ah_budgets_clear(ah_budgets *s); /* gives back what is reserved */

/* AH_BUDGET, with the words and details, where another request would find something used up;
 * with `over`, where more tokens or money were used than there are. */
ah_status ah_budgets_check(const ah_budgets *s, bool over, ah_err *err);
/* No answer to come tells what those before it cost. */
void ah_budgets_forget(ah_budgets *s);
/* A request of about so many tokens is sent. */
void ah_budgets_begin(ah_budgets *s, ah_slice model, const ah_adapter *a, int64_t input,
                      int64_t output);
/* It has ended: usage NULL where nothing was used. Unknown usage is estimated from what was
 * reserved and from `output` tokens; money is what the answer tells, else it goes by prices. */
void ah_budgets_end(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *usage,
                    int64_t output);
/* Takes one tool call; AH_BUDGET where there is none left. */
ah_status ah_budgets_call(ah_budgets *s, ah_err *err);

#endif
