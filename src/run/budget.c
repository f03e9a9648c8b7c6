/* Limits, prices, and the charging of one run's use to all budgets around it. run.c and run_turn.c
 * check them before a request or a call. */
#include "run/budget.h"

#include <inttypes.h>
#include <stdio.h>

ah_budget *ah_budget_new(const ah_mem *mem)
{
    ah_budget *b = ah_alloc(mem, sizeof *b);

    if (!b)
        return NULL;
    b->mem = mem;
    b->refs = 1;
    for (int k = 0; k < AH_BUDGET_KINDS; k++)
        b->limit[k] = -1;
    return b;
}

ah_budget *ah_budget_ref(ah_budget *b)
{
    if (b)
        b->refs++;
    return b;
}

void ah_budget_unref(ah_budget *b)
{
    if (!b || --b->refs > 0)
        return;
    for (size_t i = 0; i < b->n_prices; i++)
        ah_text_unref(b->price[i].model);
    ah_free(b->mem, b->price);
    ah_free(b->mem, b);
}

const char *ah_budget_kind_name(ah_budget_kind kind)
{
    static const char *const names[AH_BUDGET_KINDS] = {
        [AH_BUDGET_REQUESTS] = "requests",  [AH_BUDGET_TOOL_CALLS] = "tool_calls",
        [AH_BUDGET_INPUT] = "input_tokens", [AH_BUDGET_OUTPUT] = "output_tokens",
        [AH_BUDGET_TOTAL] = "total_tokens", [AH_BUDGET_COST] = "cost",
    };

    return names[kind];
}

/* -- prices ------------------------------------------------------------------------- */

static const ah_price *price_of(const ah_budget *b, ah_slice model)
{
    for (size_t i = 0; i < b->n_prices; i++)
        if (ah_slice_eq(ah_text_slice(b->price[i].model), model))
            return &b->price[i];
    return NULL;
}

ah_status ah_budget_price(ah_budget *b, ah_slice model, const ah_price *price, ah_err *err)
{
    ah_price *p = ah_grow(b->mem, b->price, &b->cap_prices, b->n_prices + 1, sizeof *p);

    if (!p)
        return ah_err_nomem(err);
    b->price = p;
    p += b->n_prices;
    *p = *price;
    if (!(p->model = ah_text_new(b->mem, model)))
        return ah_err_nomem(err);
    b->n_prices++;
    return AH_OK;
}

ah_status ah_budget_knows(const ah_budget *b, ah_slice model, const ah_adapter *a, ah_err *err)
{
    if (b->limit[AH_BUDGET_COST] < 0 || a->cost_told != AH_COST_NEVER || a->known.priced ||
        price_of(b, model))
        return AH_OK;
    return ah_err_set(
        err, AH_USAGE,
        "budget: the cost is limited, but prices has no \"%.*s\", and its prices are not known",
        AH_FMT(model));
}

/* Saturates: an absurd price must not wrap. */
static int64_t times(int64_t tokens, int64_t per_million)
{
    double cost = (double)tokens * (double)per_million / 1e6;

    return cost >= 9e18 ? INT64_MAX / 4 : (int64_t)(cost + 0.5);
}

/* A dollar per million tokens is AH_COST_UNIT per million tokens. */
static ah_price listed(const ah_model_prices *p)
{
    return (ah_price){.input = (int64_t)(p->input * AH_COST_UNIT + 0.5),
                      .cached_read = (int64_t)(p->cached_read * AH_COST_UNIT + 0.5),
                      .cached_write = (int64_t)(p->cached_write * AH_COST_UNIT + 0.5),
                      .output = (int64_t)(p->output * AH_COST_UNIT + 0.5)};
}

/* Uses the budget's price, else the price in the model table. */
static int64_t cost_of(const ah_budget *b, ah_slice model, const ah_adapter *a, const ah_usage *u)
{
    const ah_price *p = price_of(b, model), known = listed(&a->known.prices);
    int64_t fresh = u->input - u->cached_read - u->cached_write;

    if (!p)
        p = &known;
    return times(fresh > 0 ? fresh : 0, p->input) + times(u->cached_read, p->cached_read) +
           times(u->cached_write, p->cached_write) + times(u->output, p->output);
}

/* -- spending ------------------------------------------------------------------------ */

ah_status ah_budgets_add(ah_budgets *s, ah_budget *b, ah_err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->budget[i] == b)
            return AH_OK;
    if (!b)
        return AH_OK;
    if (s->n == AH_MAX_BUDGETS)
        return ah_err_set(err, AH_BUDGET, "runs inside runs have more than %d budgets",
                          AH_MAX_BUDGETS);
    s->budget[s->n++] = ah_budget_ref(b);
    return AH_OK;
}

static void unreserve(ah_budgets *s)
{
    for (int k = 0; k < AH_BUDGET_KINDS; k++) {
        for (size_t i = 0; i < s->n; i++)
            s->budget[i]->reserved[k] -= s->reserved[k];
        s->reserved[k] = 0;
    }
}

void ah_budgets_clear(ah_budgets *s)
{
    unreserve(s);
    for (size_t i = 0; i < s->n; i++)
        ah_budget_unref(s->budget[i]);
    *s = (ah_budgets){0};
}

static ah_status used_up(const ah_budget *b, ah_budget_kind k, ah_err *err)
{
    const char *name = ah_budget_kind_name(k);
    int64_t used = b->used[k] + b->reserved[k];

    if (k == AH_BUDGET_COST)
        ah_err_set(err, AH_BUDGET,
                   "the budget's cost is used up: %.6g of %.6g (budget = { cost = ... })",
                   (double)used / AH_COST_UNIT, (double)b->limit[k] / AH_COST_UNIT);
    else
        ah_err_set(err, AH_BUDGET,
                   "the budget's %s are used up: %" PRId64 " of %" PRId64
                   " (budget = { %s = ... })",
                   name, used, b->limit[k], name);
    snprintf(err->details, sizeof err->details, "{\"budget\":\"%s\",\"limit\":%.9g,\"used\":%.9g}",
             name, (double)b->limit[k] / (k == AH_BUDGET_COST ? AH_COST_UNIT : 1),
             (double)used / (k == AH_BUDGET_COST ? AH_COST_UNIT : 1));
    return AH_BUDGET;
}

static ah_status check_kind(const ah_budgets *s, ah_budget_kind k, bool over, ah_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const ah_budget *b = s->budget[i];
        int64_t used = b->used[k] + (over ? -1 : b->reserved[k]);

        if (b->limit[k] >= 0 && used >= b->limit[k])
            return used_up(b, k, err);
    }
    return AH_OK;
}

ah_status ah_budgets_check(const ah_budgets *s, bool over, ah_err *err)
{
    ah_status st = over ? AH_OK : check_kind(s, AH_BUDGET_REQUESTS, false, err);

    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS && st == AH_OK; k++)
        st = check_kind(s, (ah_budget_kind)k, over, err);
    return st;
}

ah_status ah_budgets_call(ah_budgets *s, ah_err *err)
{
    ah_status st = check_kind(s, AH_BUDGET_TOOL_CALLS, false, err);

    for (size_t i = 0; i < s->n && st == AH_OK; i++)
        s->budget[i]->used[AH_BUDGET_TOOL_CALLS]++;
    return st;
}

void ah_budgets_forget(ah_budgets *s)
{
    memset(s->guessed, 0, sizeof s->guessed);
}

void ah_budgets_begin(ah_budgets *s, ah_slice model, const ah_adapter *a, int64_t input,
                      int64_t output)
{
    ah_usage guess = {.input = input, .output = output};

    s->reserved[AH_BUDGET_INPUT] = input;
    s->reserved[AH_BUDGET_OUTPUT] = output;
    s->reserved[AH_BUDGET_TOTAL] = input + output;
    s->reserved[AH_BUDGET_COST] = s->n ? cost_of(s->budget[0], model, a, &guess) : 0;
    for (size_t i = 0; i < s->n; i++) {
        s->budget[i]->used[AH_BUDGET_REQUESTS]++;
        for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++)
            s->budget[i]->reserved[k] += s->reserved[k];
    }
}

/* The money to charge to budget i. */
static int64_t money_of(ah_budgets *s, size_t i, ah_slice model, const ah_adapter *a,
                        const ah_usage *u)
{
    int64_t money = u->priced ? u->cost - s->guessed[i] : cost_of(s->budget[i], model, a, u);

    if (u->priced)
        s->guessed[i] = 0;
    else if (a->cost_told == AH_COST_LAST)
        s->guessed[i] += money;
    return money;
}

void ah_budgets_end(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *usage,
                    int64_t output)
{
    ah_usage u = usage ? *usage : (ah_usage){.known = true};

    if (!u.known) {
        u.input = s->reserved[AH_BUDGET_INPUT];
        u.output = output;
    }
    unreserve(s);
    for (size_t i = 0; i < s->n; i++) {
        ah_budget *b = s->budget[i];

        b->used[AH_BUDGET_INPUT] += u.input;
        b->used[AH_BUDGET_OUTPUT] += u.output;
        b->used[AH_BUDGET_TOTAL] += u.input + u.output;
        b->used[AH_BUDGET_COST] += money_of(s, i, model, a, &u);
        b->estimated = b->estimated || !u.known;
    }
}
