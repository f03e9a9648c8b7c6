/* A participant of overlays for the specs: a ledger to which calls add. Others see an addition
 * after its commit; prepare fails if the spec asks for it. */
#include "lua/lua_now.h"
#include "support/ahtest.h"

static const char LEDGER[] = "ahtest.ledger";

typedef struct ledger {
    lua_Integer total, commits, drops, live;
} ledger;

typedef struct page {
    ah_participant part;
    ledger *of;
    lua_Integer amount;
    bool refuses;
} page;

static const ah_participant_vt page_vt;

static page *open_page(ledger *of, ah_overlay *o, ah_err *err)
{
    page *p = (page *)(void *)ah_overlay_find(o, of);

    if (p)
        return p;
    if (!(p = ah_alloc(o->mem, sizeof *p))) {
        ah_err_nomem(err);
        return NULL;
    }
    *p = (page){.part = {.vt = &page_vt, .key = of}, .of = of};
    if (ah_overlay_join(o, &p->part, err) != AH_OK) {
        ah_free(o->mem, p);
        return NULL;
    }
    of->live++;
    return p;
}

static void close_page(page *p)
{
    p->of->live--;
    ah_free(p->part.in->mem, p);
}

static ah_status prepare_page(ah_participant *part, ah_overlay *below, ah_err *err)
{
    const page *p = (const page *)(const void *)part;

    if (p->refuses)
        return ah_err_set(err, AH_INTERNAL, "the ledger refuses");
    return !below || open_page(p->of, below, err) ? AH_OK : err->status;
}

static void commit_page(ah_participant *part, ah_overlay *below)
{
    page *p = (page *)(void *)part;

    if (below)
        ((page *)(void *)ah_overlay_find(below, p->of))->amount += p->amount;
    else
        p->of->total += p->amount;
    p->of->commits++;
    close_page(p);
}

static void drop_page(ah_participant *part)
{
    page *p = (page *)(void *)part;

    p->of->drops++;
    close_page(p);
}

static const ah_participant_vt page_vt = {
    .prepare = prepare_page, .commit = commit_page, .drop = drop_page};

/* ledger:add(n, refuses) */
static int add(lua_State *L)
{
    ledger *of = luaL_checkudata(L, 1, LEDGER);
    ah_overlay *o = ah_lua_overlay(L);
    page *p;
    ah_err err;

    if (!o) {
        of->total += luaL_checkinteger(L, 2);
        return 0;
    }
    if (!(p = open_page(of, o, &err)))
        return luaL_error(L, "%s", err.message);
    p->amount += luaL_checkinteger(L, 2);
    p->refuses = p->refuses || lua_toboolean(L, 3);
    return 0;
}

/* ledger:state(): the total, calls of commit and of drop, participants that are not freed */
static int state(lua_State *L)
{
    const ledger *of = luaL_checkudata(L, 1, LEDGER);

    lua_pushinteger(L, of->total);
    lua_pushinteger(L, of->commits);
    lua_pushinteger(L, of->drops);
    lua_pushinteger(L, of->live);
    return 4;
}

static int new_ledger(lua_State *L)
{
    ledger *of = lua_newuserdatauv(L, sizeof *of, 0);

    *of = (ledger){0};
    luaL_setmetatable(L, LEDGER);
    return 1;
}

void ahtest_open_ledger(lua_State *L)
{
    static const luaL_Reg methods[] = {{"add", add}, {"state", state}, {NULL, NULL}};

    luaL_newmetatable(L, LEDGER);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
    lua_pushcfunction(L, new_ledger);
    lua_setfield(L, -2, "ledger");
}
