/* Stores of a C program: opened by the fields of ah.store or with an engine of its own, and shared
 * by path or name with the agents of the host; the asks in them. The public handle is the engine,
 * whose wake_ud is the open store. */
#include "base/lent.h"
#include "host/given_store.h"
#include "host/store_asks.h"
#include "lua/lua_api.h"
#include "lua/lua_ask.h"
#include "lua/lua_error.h"
#include "lua/lua_store.h"
#include "lua/lua_value.h"

enum { MAX_ASKS = 256 << 20 /* bytes of a list as JSON */ };

/* -- opening and closing --------------------------------------------------------------------- */

typedef struct opening {
    ah_slice config;
    ah_open_store *store;
} opening;

/* Pushes the config: a path, or a JSON object. */
static void push_config(lua_State *L, ah_slice config)
{
    ah_err err;

    if (!config.n || config.p[0] != '{') {
        lua_pushlstring(L, config.p ? config.p : "", config.n);
        return;
    }
    if (ah_json_check_err(&ah_lua_of(L)->mem, config, "ah_store_open: the config", &err) != AH_OK)
        ah_lua_raise(L, err.status == AH_NOMEM ? AH_NOMEM : AH_USAGE, "%s", err.message);
    ah_lua_push_json(L, config);
}

static int open_store(lua_State *L)
{
    opening *o = lua_touserdata(L, 1);
    ah_err err;

    push_config(L, o->config);
    if (ah_lua_to_store(L, -1, &o->store, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    return 0;
}

static ah_store *lend(ah_open_store *s)
{
    ah_open_store_lend(s);
    return ah_open_store_engine(s);
}

AH_API ah_status ah_store_open(ah_host *host, const char *config, ah_store **out)
{
    ah_embed *e = ah_embed_of(host);
    opening o = {.config = ah_slice_of(ah_lend_text(config))};
    ah_status st = ah_embed_enter(e, "ah_store_open");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!out)
        return ah_embed_fail(
            e, (ah_err_set(&err, AH_USAGE, "ah_store_open: out must not be NULL"), &err));
    st = ah_embed_call(e, open_store, &o);
    if (st == AH_OK)
        *out = lend(o.store);
    return st;
}

static const char *missing(const ah_store_engine *g)
{
    return !g->append    ? "append"
           : !g->hold    ? "hold"
           : !g->release ? "release"
           : !g->read    ? "read"
           : !g->list    ? "list"
           : !g->label   ? "label"
           : !g->post    ? "post"
           : !g->inbox   ? "inbox"
                         : NULL;
}

static ah_status check_engine(const ah_store_engine *g, const void *out, ah_err *err)
{
    static const char here[] = "ah_store_open_with";

    if (!g || !out)
        return ah_err_set(err, AH_USAGE, "%s: engine and out must not be NULL", here);
    if (g->size != sizeof *g)
        return ah_err_set(err, AH_USAGE, "%s: size is %zu, expected sizeof(ah_store_engine), %zu",
                          here, g->size, sizeof *g);
    if (!g->name)
        return ah_err_set(err, AH_USAGE, "%s: name must not be NULL", here);
    if (missing(g))
        return ah_err_set(err, AH_USAGE, "%s: the function `%s` is missing", here, missing(g));
    return AH_OK;
}

/* The engine's `close` is called only after success. */
static ah_status open_given(ah_host *h, const ah_store_engine *g, ah_open_store **out, ah_err *err)
{
    ah_store_engine quiet = *g;
    ah_open_store *s = NULL;
    ah_store *engine = NULL;
    ah_status st;

    quiet.close = NULL;
    st = ah_given_store_new(h, &quiet, &engine, err);
    if (st == AH_OK)
        st = ah_open_store_with(h, engine, AH_SYNC_EFFECTS, &s, err);
    if (st == AH_OK && (st = ah_open_store_set_name(s, ah_slice_of(g->name), err)) != AH_OK)
        ah_open_store_unref(s);
    if (st == AH_OK) {
        ah_given_store_own(engine, g->close);
        *out = s;
    }
    return st;
}

AH_API ah_status ah_store_open_with(ah_host *host, const ah_store_engine *engine, ah_store **out)
{
    ah_embed *e = ah_embed_of(host);
    ah_open_store *s = NULL;
    ah_status st = ah_embed_enter(e, "ah_store_open_with");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (check_engine(engine, out, &err) != AH_OK || open_given(host, engine, &s, &err) != AH_OK)
        return ah_embed_fail(e, &err);
    *out = lend(s);
    return AH_OK;
}

static ah_embed *embed_of(ah_store *store)
{
    return ah_embed_of(ah_open_store_host(store->wake_ud));
}

AH_API void ah_store_close(ah_store *store)
{
    ah_err err;

    if (!store || ah_embed_enter(embed_of(store), "ah_store_close") != AH_OK)
        return;
    if (!ah_open_store_end(store->wake_ud)) {
        ah_err_set(&err, AH_USAGE, "ah_store_close: the program has closed this store before");
        ah_embed_fail(embed_of(store), &err);
    }
}

AH_API ah_status ah_store_appended(ah_host *host, uint64_t append, ah_status status,
                                   const char *message)
{
    return ah_given_store_appended(host, append, status, message);
}

/* -- asks ------------------------------------------------------------------------------------ */

static ah_status check_text(const char *what, const char *name, const char *text, ah_err *err)
{
    if (!text)
        return ah_err_set(err, AH_USAGE, "%s: %s must not be NULL", what, name);
    if (!ah_utf8_valid(ah_slice_of(text)))
        return ah_err_set(err, AH_USAGE, "%s: %s is not UTF-8", what, name);
    return AH_OK;
}

static ah_status list_asks(ah_embed *e, ah_open_store *s, const char *id, ah_text **out,
                           ah_err *err)
{
    ah_status st = check_text("ah_store_asks", "id", id, err);
    ah_buf b;

    ah_buf_init(&b, &e->lua->mem, MAX_ASKS);
    if (st == AH_OK)
        st = ah_open_store_asks(e->lua->host, s, ah_slice_of(id), &b, err);
    if (st == AH_OK)
        st = ah_text_from_buf(&b, "the list of asks", out, err);
    ah_buf_clear(&b);
    return st;
}

AH_API ah_status ah_store_asks(ah_store *store, const char *id, const char **json)
{
    ah_embed *e = embed_of(store);
    ah_text *list = NULL;
    ah_status st = ah_embed_may(e, "ah_store_asks");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!json)
        st = ah_err_set(&err, AH_USAGE, "ah_store_asks: json must not be NULL");
    else
        st = list_asks(e, store->wake_ud, id ? id : "", &list, &err);
    if (st != AH_OK)
        return ah_embed_fail(e, &err);
    ah_text_set(&e->asks_json, list);
    *json = list->data;
    return AH_OK;
}

AH_API ah_status ah_store_respond(ah_store *store, const char *conversation, const char *ask,
                                  const char *response, const char *principal)
{
    static const char here[] = "ah_store_respond";
    ah_embed *e = embed_of(store);
    ah_slice by = ah_slice_of(principal ? principal : AH_BY_FRONT);
    ah_status st = ah_embed_may(e, here);
    ah_err err;

    if (st != AH_OK)
        return st;
    if ((st = check_text(here, "conversation", conversation, &err)) == AH_OK &&
        (st = check_text(here, "ask", ask, &err)) == AH_OK &&
        (st = check_text(here, "response", response, &err)) == AH_OK &&
        (st = ah_embed_check_principal(here, by, &err)) == AH_OK &&
        (st = ah_json_check_err(&e->lua->mem, ah_slice_of(response), "the response", &err)) ==
            AH_OK)
        st = ah_open_store_respond(e->lua->host, store->wake_ud, ah_slice_of(conversation),
                                   ah_slice_of(ask), ah_slice_of(response), by, &err);
    return st == AH_OK ? AH_OK : ah_embed_fail(e, &err);
}
