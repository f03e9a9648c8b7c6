/* ah.budget: limits on what runs may use, shared by the runs that get the same budget. */
#include "lua/lua_budget.h"

#include <stdio.h>

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_named.h"
#include "lua/lua_options.h"
#include "lua/lua_state.h"
#include "lua/lua_task.h"

static const char BUDGET[] = "agenthost.budget";

enum { MAX_WHAT = 160 }; /* bytes of the name of a price */

static const double MAX_LIMIT = 9e15;

static ah_budget *check_budget(lua_State *L)
{
    return *(ah_budget **)luaL_checkudata(L, 1, BUDGET);
}

static ah_budget **push_box(lua_State *L)
{
    ah_budget **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = NULL;
    luaL_setmetatable(L, BUDGET);
    return box;
}

void ah_lua_push_budget(lua_State *L, ah_budget *b)
{
    *push_box(L) = ah_budget_ref(b);
}

static int64_t billionths(lua_State *L, const char *what, double v)
{
    if (!(v >= 0) || v > MAX_LIMIT / AH_COST_UNIT)
        ah_lua_raise(L, AH_USAGE, "budget: %s must be from 0 to %d", what,
                     (int)(MAX_LIMIT / AH_COST_UNIT));
    return (int64_t)(v * AH_COST_UNIT + 0.5);
}

/* US dollars for a million tokens; below 0: not given. */
typedef struct price {
    double input, output, cached_read, cached_write;
} price;

static const ah_option price_rows[] = {
    {.name = "input",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .otherwise = "0",
     .to = AH_TO_DOUBLE(price, input),
     .doc = "US dollars for a million input tokens"},
    {.name = "output",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .otherwise = "0",
     .to = AH_TO_DOUBLE(price, output),
     .doc = "for a million output tokens"},
    {.name = "cached_read",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .otherwise = "`input`",
     .to = AH_TO_DOUBLE(price, cached_read),
     .doc = "for a million input tokens read from the provider's cache"},
    {.name = "cached_write",
     .kinds = AH_OPT_NUMBER,
     .most = AH_OPT_MOST,
     .otherwise = "`input`",
     .to = AH_TO_DOUBLE(price, cached_write),
     .doc = "for a million input tokens written to the provider's cache"},
    {0},
};
const ah_subject ah_subject_price = {.what = "budget: prices",
                                     .type = "ah.Price",
                                     .doc = "US dollars for a million tokens",
                                     .row = price_rows};

/* Cached tokens without a price cost as much as fresh input. */
static int64_t part_of(lua_State *L, const char *name, double said, int64_t otherwise)
{
    return said >= 0 ? billionths(L, name, said) : otherwise;
}

/* -- ... model price */
static void read_price(lua_State *L, ah_budget *b)
{
    price said = {-1, -1, -1, -1};
    ah_price p = {0};
    char what[MAX_WHAT];
    ah_slice model;
    ah_err err;

    if (lua_type(L, -2) != LUA_TSTRING || !lua_istable(L, -1))
        ah_lua_raise(
            L, AH_USAGE,
            "budget: prices are { [\"provider/model\"] = { input = 1.25, output = 10 } }, in US "
            "dollars for a million tokens");
    model.p = lua_tolstring(L, -2, &model.n);
    snprintf(what, sizeof what, "budget: prices[\"%.*s\"]", (int)(model.n < 100 ? model.n : 100),
             model.p);
    ah_options_read_as(L, -1, &ah_subject_price, what, &said);
    p.input = part_of(L, "input", said.input, 0);
    p.output = part_of(L, "output", said.output, 0);
    p.cached_read = part_of(L, "cached_read", said.cached_read, p.input);
    p.cached_write = part_of(L, "cached_write", said.cached_write, p.input);
    if (ah_budget_price(b, model, &p, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
}

static void read_prices(lua_State *L, int idx, ah_budget *b)
{
    if (lua_getfield(L, idx, "prices") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        read_price(L, b);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

static const ah_option budget_rows[] = {
    {.name = "requests",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_LIMIT,
     .is = "integer",
     .type = "integer",
     .where = AH_IN_SETTINGS,
     .doc = "requests to models, retries included; exact"},
    {.name = "tool_calls",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_LIMIT,
     .is = "integer",
     .type = "integer",
     .where = AH_IN_SETTINGS,
     .doc = "handlers started; exact"},
    {.name = "input_tokens",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_LIMIT,
     .is = "integer",
     .type = "integer",
     .where = AH_IN_SETTINGS,
     .doc = "as reported by the provider, otherwise an estimate of four bytes a token"},
    {.name = "output_tokens",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_LIMIT,
     .is = "integer",
     .type = "integer",
     .where = AH_IN_SETTINGS,
     .doc = "as reported by the provider, otherwise an estimate of four bytes a token"},
    {.name = "total_tokens",
     .kinds = AH_OPT_NUMBER,
     .most = MAX_LIMIT,
     .is = "integer",
     .type = "integer",
     .where = AH_IN_SETTINGS,
     .doc = "as reported by the provider, otherwise an estimate of four bytes a token"},
    {.name = "cost",
     .kinds = AH_OPT_NUMBER,
     .most = (double)(MAX_LIMIT / AH_COST_UNIT),
     .is = "number",
     .where = AH_IN_SETTINGS,
     .doc = "US dollars: the cost of an answer as [reported by the provider](models.md#money), "
            "otherwise by `prices`, otherwise by known prices"},
    {.name = "prices",
     .kinds = AH_OPT_TABLE,
     .type = "table<string, ah.Price>",
     .doc = "[prices](budgets.md#prices) by model name; `cost` needs them for each model without a "
            "[known](models.md#what-is-known-of-models) or reported price"},
    {.name = "reserve",
     .kinds = AH_OPT_BOOLEAN,
     .where = AH_IN_SETTINGS,
     .otherwise = "false",
     .doc = "tokens and money are never exceeded: each request first "
            "[reserves](budgets.md#reserve) the most that it can use"},
    {.name = "used",
     .kinds = AH_OPT_TABLE,
     .type = "ah.BudgetUse",
     .doc = "the amounts used before, as `budget:used()` returned them"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .doc = "by it a store [keeps](stores.md#shared-sessions-and-budgets) what was used; 1 to 120 "
            "bytes without `/`"},
    {.name = "store",
     .kinds = AH_OPT_ANY,
     .otherwise = "that of the first agent that has it",
     .is = "path, store or table",
     .type = "string|ah.Store|ah.StoreConfig",
     .doc = "keeps what was used; with `name`"},
    {0},
};
const ah_subject ah_subject_budget = {.what = "budget",
                                      .type = "ah.BudgetLimits",
                                      .doc = "limits of [a budget](budgets.md#budgets)",
                                      .row = budget_rows};

#define USED(n, kind)                                                                              \
    {                                                                                              \
        .name = n, .kinds = AH_OPT_NUMBER, .most = MAX_LIMIT, .is = kind, .type = kind,            \
        .otherwise = "0"                                                                           \
    }
static const ah_option use_rows[] = {
    USED("requests", "integer"),
    USED("tool_calls", "integer"),
    USED("input_tokens", "integer"),
    USED("output_tokens", "integer"),
    USED("total_tokens", "integer"),
    {.name = "cost",
     .kinds = AH_OPT_NUMBER,
     .most = (double)(MAX_LIMIT / AH_COST_UNIT),
     .is = "number",
     .otherwise = "0",
     .doc = "US dollars"},
    {.name = "estimated",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "false",
     .doc = "some of the amounts are estimates, since a provider did not report them"},
    {0},
};
#undef USED
const ah_subject ah_subject_budget_use = {.what = "budget: used",
                                          .type = "ah.BudgetUse",
                                          .doc = "amounts that were used of a budget",
                                          .row = use_rows};

/* Reads the amounts in the table at idx; those that are missing stay as they are. */
static void read_amounts(lua_State *L, int idx, int64_t into[AH_BUDGET_KINDS])
{
    for (int k = 0; k < AH_BUDGET_KINDS; k++) {
        const char *name = ah_budget_kind_name((ah_budget_kind)k);
        double v;

        if (lua_getfield(L, idx, name) != LUA_TNIL) {
            v = lua_tonumber(L, -1);
            into[k] = k == AH_BUDGET_COST ? billionths(L, name, v) : (int64_t)v;
        }
        lua_pop(L, 1);
    }
}

static bool read_flag(lua_State *L, int idx, const char *name)
{
    bool set;

    lua_getfield(L, idx, name);
    set = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return set;
}

static void read_use(lua_State *L, int idx, ah_budget *b)
{
    if (lua_getfield(L, idx, "used") != LUA_TNIL) {
        ah_options_read_as(L, -1, &ah_subject_budget_use, "budget: used", NULL);
        read_amounts(L, lua_gettop(L), b->used);
        b->estimated = read_flag(L, lua_gettop(L), "estimated");
    }
    lua_pop(L, 1);
}

/* Reads `name` and `store`. */
static ah_status read_name(lua_State *L, int idx, ah_budget *b, ah_err *err)
{
    int top = lua_gettop(L);
    bool named = lua_getfield(L, idx, "name") != LUA_TNIL;
    bool stored = lua_getfield(L, idx, "store") != LUA_TNIL;
    ah_status st = AH_OK;
    ah_lua_named *n;
    ah_slice name;

    if (stored && !named)
        ah_lua_raise(L, AH_USAGE, "budget: a store keeps a budget by its name: give `name`");
    if (named && lua_getfield(L, idx, "used") != LUA_TNIL)
        ah_lua_raise(L, AH_USAGE,
                     "budget: used and name: give one of them; the store has what "
                     "was used by its name");
    if (named) {
        name.p = lua_tolstring(L, top + 1, &name.n);
        n = ah_lua_named_new(L, "budget", name, NULL, b);
        if (stored)
            st = ah_lua_named_read(L, n, top + 2, err);
    }
    lua_settop(L, top);
    return st;
}

/* Pushes a budget object made from the table at idx. */
static ah_status new_budget(lua_State *L, int idx, ah_err *err)
{
    ah_lua *h = ah_lua_of(L);
    ah_budget *b, **box;

    idx = lua_absindex(L, idx);
    box = push_box(L); /* first, so that its contents cannot be lost */
    if (!(b = *box = ah_budget_new(&h->mem)))
        ah_lua_raise_nomem(L);
    ah_options_read(L, idx, &ah_subject_budget, NULL);
    read_amounts(L, idx, b->limit);
    b->reserve = read_flag(L, idx, "reserve");
    read_prices(L, idx, b);
    read_use(L, idx, b);
    return read_name(L, idx, b, err);
}

/* ah.budget { requests, tool_calls, input_tokens, output_tokens, total_tokens, cost, prices,
 * reserve, used, name, store }: a budget; or nil and an error of the store */
static int budget(lua_State *L)
{
    ah_status st;
    ah_err err;

    luaL_checktype(L, 1, LUA_TTABLE);
    if ((st = new_budget(L, 1, &err)) == AH_OK)
        return 1;
    if (st == AH_USAGE || st == AH_NOMEM)
        ah_lua_raise_err(L, &err);
    lua_pushnil(L);
    ah_lua_push_error(L, &err);
    return 2;
}

ah_budget *ah_lua_budget_read(lua_State *L, int idx)
{
    ah_budget **box, *b;

    if (lua_getfield(L, idx, "budget") == LUA_TTABLE) {
        ah_err err;

        if (new_budget(L, -1, &err) != AH_OK)
            ah_lua_raise_err(L, &err);
        lua_remove(L, -2);
    }
    box = luaL_testudata(L, -1, BUDGET);
    if (!box && !lua_isnil(L, -1))
        ah_lua_raise(L, AH_USAGE,
                     "ah.run: field 'budget' must be a table or made by ah.budget, found %s",
                     luaL_typename(L, -1));
    b = box ? ah_budget_ref(*box) : NULL;
    lua_pop(L, 1);
    return b;
}

/* -- accounts of tasks */

/* ah._account(fields): the budget in the field `budget` counts what runs use that the task at work
 * begins, and those below it. No effect outside of tasks. */
static int set_account(lua_State *L)
{
    ah_task *t = ah_lua_of(L)->actor;

    if (t) {
        ah_budget *account = ah_lua_budget_read(L, 1); /* may raise */
        ah_lua_named *n = ah_lua_named_budget(ah_lua_of(L), account);
        ah_err err;

        if (ah_lua_named_use(L, n, NULL, &err) != AH_OK) {
            ah_budget_unref(account);
            ah_lua_raise_err(L, &err);
        }
        ah_budget_unref(t->account);
        t->account = account;
    }
    return 0;
}

/* -- methods ----------------------------------------------------------------------------- */

static void push_amount(lua_State *L, int kind, int64_t v)
{
    if (kind == AH_BUDGET_COST)
        lua_pushnumber(L, (double)v / AH_COST_UNIT);
    else
        lua_pushinteger(L, v);
}

static void push_amounts(lua_State *L, const int64_t v[AH_BUDGET_KINDS])
{
    lua_createtable(L, 0, AH_BUDGET_KINDS + 1);
    for (int k = 0; k < AH_BUDGET_KINDS; k++) {
        push_amount(L, k, v[k]);
        lua_setfield(L, -2, ah_budget_kind_name((ah_budget_kind)k));
    }
}

/* budget:used(): amounts by name, and `estimated` if a provider did not report some of them. */
static int budget_used(lua_State *L)
{
    const ah_budget *b = check_budget(L);

    push_amounts(L, b->used);
    lua_pushboolean(L, b->estimated);
    lua_setfield(L, -2, "estimated");
    return 1;
}

/* budget:reserved(): what the requests in flight have reserved. */
static int budget_reserved(lua_State *L)
{
    push_amounts(L, check_budget(L)->reserved);
    return 1;
}

/* budget:remaining(): the rest of each limit, less the requests in flight. */
static int budget_remaining(lua_State *L)
{
    const ah_budget *b = check_budget(L);

    lua_createtable(L, 0, AH_BUDGET_KINDS);
    for (int k = 0; k < AH_BUDGET_KINDS; k++) {
        int64_t left = b->limit[k] - b->used[k] - b->reserved[k];

        if (b->limit[k] < 0)
            continue;
        push_amount(L, k, left > 0 ? left : 0);
        lua_setfield(L, -2, ah_budget_kind_name((ah_budget_kind)k));
    }
    return 1;
}

static int budget_gc(lua_State *L)
{
    ah_budget **box = luaL_checkudata(L, 1, BUDGET);

    ah_budget_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int budget_eq(lua_State *L)
{
    ah_budget **a = luaL_testudata(L, 1, BUDGET), **b = luaL_testudata(L, 2, BUDGET);

    lua_pushboolean(L, a && b && *a == *b);
    return 1;
}

static int budget_tostring(lua_State *L)
{
    const ah_budget *b = check_budget(L);

    lua_pushfstring(L, "budget: %I requests, %I tool calls, %I tokens used",
                    (LUAI_UACINT)b->used[AH_BUDGET_REQUESTS],
                    (LUAI_UACINT)b->used[AH_BUDGET_TOOL_CALLS],
                    (LUAI_UACINT)b->used[AH_BUDGET_TOTAL]);
    return 1;
}

void ah_lua_open_budget(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", budget_gc}, {"__eq", budget_eq}, {"__tostring", budget_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {{"used", budget_used},
                                       {"reserved", budget_reserved},
                                       {"remaining", budget_remaining},
                                       {NULL, NULL}};

    luaL_newmetatable(L, BUDGET);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    ah_lua_methods_only(L, "budget");
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, budget);
    lua_setfield(L, -2, "budget");
    lua_pushcfunction(L, set_account);
    lua_setfield(L, -2, "_account");
}
