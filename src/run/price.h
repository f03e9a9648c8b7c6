/* The cost of the tokens of an answer: the price of a model, given by a script or by the model
 * table. Money is counted in 1 / AH_COST_UNIT of a US dollar. It owns nothing. Callers: its module.
 */
#ifndef AH_RUN_PRICE_H
#define AH_RUN_PRICE_H

#include "wire/adapter.h"

/* The price of a million tokens. */
typedef struct ah_price {
    ah_text *model; /* "provider/model", as set by a script; NULL: of the model table */
    int64_t input, cached_read, cached_write, output;
    const ah_model_tier *tier; /* NULL: it holds for requests of any length */
} ah_price;

/* Returns the model table's price; all 0 if it has none. */
ah_price ah_price_listed(const ah_model *m);
/* Returns the price that holds for a request with so many input tokens. */
ah_price ah_price_at(ah_price p, int64_t input);
/* Returns what so many tokens cost at a price for a million. Saturates: an absurd price must not
 * wrap. */
int64_t ah_price_times(int64_t tokens, int64_t per_million);
int64_t ah_price_cost(ah_price p, const ah_usage *u);

#endif
