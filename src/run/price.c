/* See price.h. A dollar for a million tokens is AH_COST_UNIT for a million tokens. */
#include "run/price.h"

static int64_t units(double dollars)
{
    return (int64_t)(dollars * AH_COST_UNIT + 0.5);
}

ah_price ah_price_listed(const ah_model *m)
{
    return (ah_price){.input = units(m->prices.input),
                      .cached_read = units(m->prices.cached_read),
                      .cached_write = units(m->prices.cached_write),
                      .output = units(m->prices.output),
                      .tier = m->tier};
}

static int64_t scaled(int64_t price, double by)
{
    return (int64_t)((double)price * by + 0.5);
}

ah_price ah_price_at(ah_price p, int64_t input)
{
    const ah_model_tier *t = p.tier;

    if (!t || input <= t->above)
        return p;
    return (ah_price){.model = p.model,
                      .input = scaled(p.input, t->input),
                      .cached_read = scaled(p.cached_read, t->input),
                      .cached_write = scaled(p.cached_write, t->input),
                      .output = scaled(p.output, t->output)};
}

int64_t ah_price_times(int64_t tokens, int64_t per_million)
{
    double cost = (double)tokens * (double)per_million / 1e6;

    return cost >= 9e18 ? INT64_MAX / 4 : (int64_t)(cost + 0.5);
}

int64_t ah_price_cost(ah_price listed, const ah_usage *u)
{
    int64_t fresh = u->input - u->cached_read - u->cached_write;
    ah_price p = ah_price_at(listed, u->input);

    return ah_price_times(fresh > 0 ? fresh : 0, p.input) +
           ah_price_times(u->cached_read, p.cached_read) +
           ah_price_times(u->cached_write, p.cached_write) + ah_price_times(u->output, p.output);
}
