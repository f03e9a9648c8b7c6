/* Limits, prices, and the charging of one run's use to all budgets around it. run_exchange.c and
 * run_turn.c check them before a request or a call.
 *
 * A queue belongs to a budget with `reserve`. Its first place is called, or something is reserved
 * in the budget and the first is called when that is given back: so every wait ends. */
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
    if (b->freed)
        b->freed(b->freed_ud);
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

static bool is_priced(const ah_price *p, ah_slice model)
{
    ah_slice name = ah_text_slice(p->model);

    if (!name.n || name.p[name.n - 1] != '*')
        return ah_slice_eq(name, model);
    return model.n >= name.n - 1 && memcmp(model.p, name.p, name.n - 1) == 0;
}

static const ah_price *price_of(const ah_budget *b, ah_slice model)
{
    for (size_t i = 0; i < b->n_prices; i++)
        if (is_priced(&b->price[i], model))
            return &b->price[i];
    return NULL;
}

/* The rank of a name in the list: whole names first, then longer patterns. */
static size_t rank_of(const ah_text *name)
{
    return name->len && name->data[name->len - 1] == '*' ? name->len : SIZE_MAX;
}

ah_status ah_budget_price(ah_budget *b, ah_slice model, const ah_price *price, ah_err *err)
{
    ah_price *p = ah_grow(b->mem, b->price, &b->cap_prices, b->n_prices + 1, sizeof *p);
    size_t at = b->n_prices;
    ah_text *name;

    if (!p)
        return ah_err_nomem(err);
    b->price = p;
    if (!(name = ah_text_new(b->mem, model)))
        return ah_err_nomem(err);
    for (; at > 0 && rank_of(p[at - 1].model) < rank_of(name); at--)
        p[at] = p[at - 1];
    p[at] = *price;
    p[at].model = name;
    b->n_prices++;
    return AH_OK;
}

static bool counts_more_than_calls(const ah_budget *b)
{
    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++)
        if (b->limit[k] >= 0)
            return true;
    return false;
}

static bool has_price(const ah_budget *b, ah_slice model, const ah_adapter *a)
{
    return a->known.priced || price_of(b, model);
}

ah_status ah_budget_knows(const ah_budget *b, ah_slice model, const ah_adapter *a, ah_err *err)
{
    if (b->reserve && a->cost_told == AH_COST_LAST && counts_more_than_calls(b))
        return ah_err_set(
            err, AH_USAGE,
            "budget: reserve = true cannot limit tokens or money of %.*s, which makes "
            "requests of its own: leave `reserve` out, or limit requests and calls",
            AH_FMT(model));
    if (b->limit[AH_BUDGET_COST] < 0 || has_price(b, model, a))
        return AH_OK;
    if (a->cost_told != AH_COST_NEVER && !b->reserve)
        return AH_OK;
    return ah_err_set(
        err, AH_USAGE,
        "budget: the cost is limited, but prices has no \"%.*s\", and its prices are not known",
        AH_FMT(model));
}

/* The budget's price, else the price in the model table. */
static ah_price price_for(const ah_budget *b, ah_slice model, const ah_adapter *a)
{
    const ah_price *p = price_of(b, model);

    return p ? *p : ah_price_listed(&a->known);
}

static int64_t cost_of(const ah_budget *b, ah_slice model, const ah_adapter *a, const ah_usage *u)
{
    return ah_price_cost(price_for(b, model, a), u);
}

/* A price that is only supposed limits a budget, and is no price of what was spent. */
void ah_budgets_price(const ah_budgets *s, ah_slice model, const ah_adapter *a, ah_usage *u)
{
    const ah_price *p = NULL;
    ah_price listed = ah_price_listed(&a->known);
    int64_t cost;

    for (size_t i = 0; i < s->n && !p; i++)
        p = price_of(s->draw[i].budget, model);
    if (u->priced || !u->known || (!p && (!a->known.priced || a->known.supposed)))
        return;
    cost = ah_price_cost(p ? *p : listed, u);
    u->computed = ah_usage_price(u, (double)cost / AH_COST_UNIT);
    if (u->computed && !p && a->known.priced_on)
        ah_usage_date(u, ah_slice_of(a->known.priced_on));
}

static bool is_free(const ah_budget *b, const ah_demand *d)
{
    ah_price p = price_for(b, d->model, d->adapter);

    return has_price(b, d->model, d->adapter) && !p.input && !p.output && !p.cached_read &&
           !p.cached_write;
}

/* -- the queue ------------------------------------------------------------------------ */

static void call_first(ah_budget *b)
{
    ah_budget_place *p = b->first;

    if (!p || p->called)
        return;
    p->called = true;
    if (p->call)
        p->call(p->ud);
}

static void leave(ah_budget_place *p)
{
    ah_budget *b = p->at;
    bool first = b && b->first == p;

    if (!b)
        return;
    *(p->prev ? &p->prev->next : &b->first) = p->next;
    *(p->next ? &p->next->prev : &b->last) = p->prev;
    p->at = NULL;
    p->called = false;
    if (first)
        call_first(b);
}

/* A place that has waited longer, in whatever queue, stays before it. */
static void enter(ah_budget_place *p, ah_budget *b)
{
    ah_budget_place *before = b->last;

    while (before && before->since > p->since)
        before = before->prev;
    p->at = b;
    p->called = false;
    p->prev = before;
    p->next = before ? before->next : b->first;
    *(p->prev ? &p->prev->next : &b->first) = p;
    *(p->next ? &p->next->prev : &b->last) = p;
}

static void wait_at(ah_budget_place *p, ah_budget *b, int64_t now)
{
    p->called = false;
    if (p->at == b)
        return;
    if (!p->at)
        p->since = now;
    leave(p);
    enter(p, b);
}

/* -- spending ------------------------------------------------------------------------ */

ah_status ah_budgets_add(ah_budgets *s, ah_budget *b, ah_err *err)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->draw[i].budget == b)
            return AH_OK;
    if (!b)
        return AH_OK;
    if (s->n == AH_MAX_BUDGETS)
        return ah_err_set(err, AH_BUDGET, "runs inside runs have more than %d budgets",
                          AH_MAX_BUDGETS);
    s->draw[s->n++] = (ah_draw){.budget = ah_budget_ref(b)};
    return AH_OK;
}

/* `used` is up to date: whoever waits finds what is left. */
static void unreserve(ah_draw *w)
{
    for (int k = 0; k < AH_BUDGET_KINDS; k++) {
        w->budget->reserved[k] -= w->reserved[k];
        w->reserved[k] = 0;
    }
    call_first(w->budget);
}

void ah_budgets_leave(ah_budgets *s)
{
    leave(&s->place);
}

void ah_budgets_clear(ah_budgets *s)
{
    leave(&s->place);
    for (size_t i = 0; i < s->n; i++) {
        unreserve(&s->draw[i]);
        ah_budget_unref(s->draw[i].budget);
    }
    *s = (ah_budgets){0};
}

enum { AMOUNT = 32 }; /* bytes of one in words */

static const char *say(char out[AMOUNT], ah_budget_kind k, int64_t v)
{
    if (k == AH_BUDGET_COST)
        snprintf(out, AMOUNT, "%.6g", (double)v / AH_COST_UNIT);
    else
        snprintf(out, AMOUNT, "%" PRId64, v);
    return out;
}

static double amount(ah_budget_kind k, int64_t v)
{
    return (double)v / (k == AH_BUDGET_COST ? AH_COST_UNIT : 1);
}

static ah_status used_up(const ah_budget *b, ah_budget_kind k, ah_err *err)
{
    const char *name = ah_budget_kind_name(k);
    int64_t used = b->used[k] + b->reserved[k];
    char has[AMOUNT], most[AMOUNT];

    ah_err_set(err, AH_BUDGET, "the budget's %s %s used up: %s of %s (budget = { %s = ... })", name,
               k == AH_BUDGET_COST ? "is" : "are", say(has, k, used), say(most, k, b->limit[k]),
               name);
    snprintf(err->details, sizeof err->details, "{\"budget\":\"%s\",\"limit\":%.9g,\"used\":%.9g}",
             name, amount(k, b->limit[k]), amount(k, used));
    return AH_BUDGET;
}

/* True if the next request does not look at that: it needs none, or is measured by its bound. */
static bool is_passed(const ah_budget *b, ah_budget_kind k, const ah_demand *next)
{
    if (!next || k < AH_BUDGET_INPUT)
        return false;
    return b->reserve || (k == AH_BUDGET_COST && is_free(b, next));
}

/* One more of that kind, or, with `over`, what was used already, is too much. */
static ah_status check_kind(const ah_budgets *s, ah_budget_kind k, const ah_demand *next, bool over,
                            ah_err *err)
{
    for (size_t i = 0; i < s->n; i++) {
        const ah_budget *b = s->draw[i].budget;
        int64_t used = b->used[k] + (over ? -1 : b->reserved[k]);

        if (b->limit[k] >= 0 && used >= b->limit[k] && !is_passed(b, k, next))
            return used_up(b, k, err);
    }
    return AH_OK;
}

ah_status ah_budgets_check(const ah_budgets *s, const ah_demand *next, ah_err *err)
{
    ah_status st = next ? check_kind(s, AH_BUDGET_REQUESTS, next, false, err) : AH_OK;

    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS && st == AH_OK; k++)
        st = check_kind(s, (ah_budget_kind)k, next, !next, err);
    return st;
}

ah_status ah_budgets_call(ah_budgets *s, ah_err *err)
{
    ah_status st = check_kind(s, AH_BUDGET_TOOL_CALLS, NULL, false, err);

    for (size_t i = 0; i < s->n && st == AH_OK; i++)
        s->draw[i].budget->used[AH_BUDGET_TOOL_CALLS]++;
    return st;
}

void ah_budgets_forget(ah_budgets *s)
{
    for (size_t i = 0; i < s->n; i++)
        s->draw[i].guessed = 0;
}

/* -- bounds ---------------------------------------------------------------------------- */

static const int64_t UNBOUND = INT64_MAX / 4; /* also what no limit can hold */

static int64_t sum(int64_t a, int64_t b)
{
    return a >= UNBOUND - b ? UNBOUND : a + b;
}

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The most that so many tokens cost: settling rounds each part, so there is one unit more. */
static int64_t dearest(int64_t tokens, int64_t per_million)
{
    if (per_million == 0)
        return 0;
    return tokens >= UNBOUND ? UNBOUND : sum(ah_price_times(tokens, per_million), 1);
}

/* The price of the demand with so many input tokens. */
static ah_price price_at(const ah_budget *b, const ah_demand *d, int64_t input)
{
    return ah_price_at(price_for(b, d->model, d->adapter), input);
}

static int64_t input_cost(const ah_budget *b, const ah_demand *d, int64_t tokens)
{
    ah_price p = price_at(b, d, tokens);
    int64_t dear = most_of(p.input, most_of(p.cached_read, p.cached_write));

    return dear ? sum(dearest(tokens, dear), 2) : 0;
}

static void estimate(const ah_budget *b, const ah_demand *d, int64_t out[AH_BUDGET_KINDS])
{
    ah_usage guess = {.input = d->input, .output = d->output};

    out[AH_BUDGET_INPUT] = d->input;
    out[AH_BUDGET_OUTPUT] = d->output;
    out[AH_BUDGET_TOTAL] = d->input + d->output;
    out[AH_BUDGET_COST] = cost_of(b, d->model, d->adapter, &guess);
}

static void bound(const ah_budget *b, const ah_demand *d, int64_t out[AH_BUDGET_KINDS])
{
    int64_t input = d->most_input < 0 ? UNBOUND : sum(d->most_input, b->unseen);
    int64_t output = d->most_output < 0 ? UNBOUND : d->most_output;
    ah_price p = price_at(b, d, input);

    out[AH_BUDGET_INPUT] = input;
    out[AH_BUDGET_OUTPUT] = output;
    out[AH_BUDGET_TOTAL] = sum(input, output);
    out[AH_BUDGET_COST] = sum(input_cost(b, d, input), dearest(output, p.output));
}

static bool needs(ah_budget_kind k, bool output)
{
    return k == AH_BUDGET_TOTAL || k == AH_BUDGET_COST ||
           k == (output ? AH_BUDGET_OUTPUT : AH_BUDGET_INPUT);
}

static ah_status no_length(ah_slice model, ah_err *err)
{
    return ah_err_set(err, AH_USAGE,
                      "budget: reserve = true needs to know how long an answer of %.*s may be: "
                      "give options = { max_tokens = ... }, or max_output by ah.alias",
                      AH_FMT(model));
}

ah_status ah_budget_knows_length(const ah_budget *b, ah_slice model, const ah_adapter *a,
                                 ah_err *err)
{
    bool paid = b->limit[AH_BUDGET_COST] >= 0 && price_for(b, model, a).output;
    bool counted = paid || b->limit[AH_BUDGET_OUTPUT] >= 0 || b->limit[AH_BUDGET_TOTAL] >= 0;

    if (!b->reserve || !counted || a->vt->length || a->known.output)
        return AH_OK;
    return no_length(model, err);
}

static ah_status no_bound(const ah_demand *d, ah_budget_kind k, ah_err *err)
{
    if (needs(k, true) && d->most_output < 0)
        return no_length(d->model, err);
    return ah_err_set(err, AH_USAGE,
                      "budget: reserve = true needs the context_window of %.*s, since the request "
                      "has images: give it by ah.alias",
                      AH_FMT(d->model));
}

/* The longest answer that this limit would hold beside the request's input; below 1: none. */
static int64_t longest(const ah_budget *b, const ah_demand *d, ah_budget_kind k, int64_t left)
{
    int64_t input = d->most_input < 0 ? UNBOUND : sum(d->most_input, b->unseen);
    int64_t price = price_at(b, d, input).output;

    if (k == AH_BUDGET_OUTPUT)
        return left;
    if (k == AH_BUDGET_TOTAL)
        return left - input;
    left -= input_cost(b, d, input) + 2;
    return k == AH_BUDGET_COST && price && left > 0 ? (int64_t)((double)left * 1e6 / (double)price)
                                                    : 0;
}

/* left: what this request could have at most. */
static ah_status too_much(const ah_budget *b, const ah_demand *d, ah_budget_kind k, int64_t need,
                          int64_t left, ah_err *err)
{
    const char *name = ah_budget_kind_name(k);
    int64_t fits = longest(b, d, k, left);
    char may[AMOUNT], has[AMOUNT], most[AMOUNT], advice[64] = "", field[64] = "";

    if (fits > 0) {
        snprintf(advice, sizeof advice, "; max_tokens = %" PRId64 " would fit", fits);
        snprintf(field, sizeof field, ",\"max_tokens\":%" PRId64, fits);
    }
    ah_err_set(err, AH_BUDGET,
               "the budget's %s cannot hold the request: it may use %s, and %s of %s %s left "
               "(budget = { %s = ..., reserve = true })%s",
               name, say(may, k, need), say(has, k, most_of(left, 0)), say(most, k, b->limit[k]),
               k == AH_BUDGET_COST ? "is" : "are", name, advice);
    snprintf(err->details, sizeof err->details,
             "{\"budget\":\"%s\",\"limit\":%.9g,\"used\":%.9g,\"needed\":%.9g%s}", name,
             amount(k, b->limit[k]), amount(k, b->limit[k] - left), amount(k, need), field);
    return AH_BUDGET;
}

/* -- one request ------------------------------------------------------------------------- */

/* Fails if the budget cannot hold it, not even once what others have reserved is given back, where
 * it can wait for that. */
static ah_status hold(const ah_budget *b, const ah_demand *d, const int64_t need[AH_BUDGET_KINDS],
                      ah_err *err)
{
    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++) {
        int64_t left = b->limit[k] - b->used[k] - (d->waits ? 0 : b->reserved[k]);

        if (b->limit[k] < 0)
            continue;
        if (need[k] >= UNBOUND && (d->most_input < 0 || d->most_output < 0))
            return no_bound(d, (ah_budget_kind)k, err);
        if (need[k] > left)
            return too_much(b, d, (ah_budget_kind)k, need[k], left, err);
    }
    return AH_OK;
}

static bool has_room(const ah_budget *b, const int64_t need[AH_BUDGET_KINDS])
{
    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++)
        if (b->limit[k] >= 0 && need[k] > b->limit[k] - b->used[k] - b->reserved[k])
            return false;
    return true;
}

/* True if a request that has waited longer has had no room yet. */
static bool is_behind(const ah_budgets *s, const ah_budget *b, const ah_demand *d)
{
    int64_t since = s->place.at ? s->place.since : d->now;

    return b->first && b->first != &s->place && b->first->since <= since;
}

/* Kinds with a limit have a bound; the rest is counted only. */
static void take(ah_draw *w, const ah_demand *d, const int64_t need[AH_BUDGET_KINDS])
{
    int64_t guess[AH_BUDGET_KINDS];
    ah_budget *b = w->budget;

    estimate(b, d, guess);
    w->reserved[AH_BUDGET_REQUESTS] = 1;
    b->reserved[AH_BUDGET_REQUESTS]++;
    w->bound = d->most_input;
    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++) {
        w->reserved[k] = need[k] < UNBOUND ? need[k] : guess[k];
        b->reserved[k] += w->reserved[k];
    }
}

ah_status ah_budgets_begin(ah_budgets *s, const ah_demand *d, bool *waits, ah_err *err)
{
    int64_t need[AH_MAX_BUDGETS][AH_BUDGET_KINDS];
    ah_budget *full = NULL;
    ah_status st = AH_OK;

    *waits = false;
    for (size_t i = 0; i < s->n && st == AH_OK; i++) {
        ah_budget *b = s->draw[i].budget;

        (b->reserve ? bound : estimate)(b, d, need[i]);
        if (b->reserve)
            st = hold(b, d, need[i], err);
        if (b->reserve && d->waits && !full && (is_behind(s, b, d) || !has_room(b, need[i])))
            full = b;
    }
    if (full && st == AH_OK) {
        *waits = true;
        wait_at(&s->place, full, d->now);
        return AH_OK;
    }
    leave(&s->place);
    if (st != AH_OK)
        return st;
    s->in_flight = true;
    for (size_t i = 0; i < s->n; i++)
        take(&s->draw[i], d, need[i]);
    return AH_OK;
}

void ah_budgets_sent(ah_budgets *s)
{
    for (size_t i = 0; i < s->n; i++) {
        ah_draw *w = &s->draw[i];

        w->budget->used[AH_BUDGET_REQUESTS] += w->reserved[AH_BUDGET_REQUESTS];
        w->budget->reserved[AH_BUDGET_REQUESTS] -= w->reserved[AH_BUDGET_REQUESTS];
        w->reserved[AH_BUDGET_REQUESTS] = 0;
    }
}

/* The money that a budget is to be charged. */
static int64_t money_of(ah_draw *w, ah_slice model, const ah_adapter *a, const ah_usage *u)
{
    bool reported = u->priced && !u->computed;
    int64_t money = reported ? u->cost - w->guessed : cost_of(w->budget, model, a, u);

    if (reported)
        w->guessed = 0;
    else if (a->cost_told == AH_COST_LAST)
        w->guessed += money;
    if (w->budget->reserve && !u->known && !reported)
        money = most_of(money, w->reserved[AH_BUDGET_COST]);
    return money;
}

/* True where a limit was charged more than was reserved of it. */
static bool charge(ah_draw *w, const int64_t by[AH_BUDGET_KINDS], bool known)
{
    ah_budget *b = w->budget;
    bool more = false;

    for (int k = AH_BUDGET_INPUT; k < AH_BUDGET_KINDS; k++) {
        b->used[k] += by[k];
        more = more || (b->reserve && b->limit[k] >= 0 && by[k] > w->reserved[k]);
    }
    b->estimated = b->estimated || !known;
    unreserve(w);
    return more;
}

/* Input beyond the bound is a provider's own, of which later requests get as much. */
static void learn(ah_draw *w, int64_t input)
{
    if (w->bound >= 0)
        w->budget->unseen = most_of(w->budget->unseen, input - w->bound);
}

bool ah_budgets_end(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *usage,
                    int64_t output)
{
    const ah_spent answer = {.usage = *usage, .answers = 1};
    bool more = false;

    s->in_flight = false;
    for (size_t i = 0; i < s->n; i++) {
        ah_draw *w = &s->draw[i];
        ah_usage u = *usage;

        ah_spent_add(&w->budget->counted, &answer);
        if (!u.known) {
            u.input = w->reserved[AH_BUDGET_INPUT];
            u.output = w->budget->reserve ? most_of(output, w->reserved[AH_BUDGET_OUTPUT]) : output;
        }
        learn(w, u.known ? u.input : 0);
        more = charge(w,
                      (int64_t[AH_BUDGET_KINDS]){[AH_BUDGET_INPUT] = u.input,
                                                 [AH_BUDGET_OUTPUT] = u.output,
                                                 [AH_BUDGET_TOTAL] = u.input + u.output,
                                                 [AH_BUDGET_COST] = money_of(w, model, a, &u)},
                      u.known) ||
               more;
    }
    return more;
}

/* The most that a request without an answer may have used. */
static void charge_lost(ah_draw *w, ah_slice model, const ah_adapter *a, const ah_usage *reported)
{
    ah_usage u = *reported;

    if (!u.known)
        u.input = w->reserved[AH_BUDGET_INPUT];
    u.output = most_of(u.output, w->reserved[AH_BUDGET_OUTPUT]);
    charge(w,
           (int64_t[AH_BUDGET_KINDS]){[AH_BUDGET_INPUT] = u.input,
                                      [AH_BUDGET_OUTPUT] = u.output,
                                      [AH_BUDGET_TOTAL] = u.input + u.output,
                                      [AH_BUDGET_COST] = u.known ? cost_of(w->budget, model, a, &u)
                                                                 : w->reserved[AH_BUDGET_COST]},
           false);
}

void ah_budgets_drop(ah_budgets *s, ah_slice model, const ah_adapter *a, const ah_usage *reported)
{
    bool lost = s->in_flight && reported;

    s->in_flight = false;
    for (size_t i = 0; i < s->n; i++)
        if (lost && s->draw[i].budget->reserve)
            charge_lost(&s->draw[i], model, a, reported);
        else
            unreserve(&s->draw[i]);
}
