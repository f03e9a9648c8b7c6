/* Calls of tools by name, from C. */
#include "base/lent.h"
#include "lua/lua_api.h"
#include "lua/lua_direct.h"
#include "lua/lua_error.h"
#include "lua/lua_tool.h"

static int take(lua_State *L, const ah_direct_reply *r)
{
    ah_err err;

    if (r->status == AH_OK) {
        ah_text_set(&ah_lua_of(L)->embed->result, ah_text_ref(r->value));
        return 0;
    }
    ah_direct_error(r, &err);
    return ah_lua_raise_err(L, &err);
}

typedef struct request {
    const char *name, *args;
} request;

static int call_tool(lua_State *L)
{
    const request *q = lua_touserdata(L, 1);
    ah_lua *h = ah_lua_of(L);
    ah_slice args = ah_slice_of(q->args ? q->args : "{}");
    ah_tool *tool;
    ah_err err;

    if (ah_json_check_err(&h->mem, args, "args", &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    ah_given_push(L, h->embed, AH_GIVEN_TOOLS, q->name);
    if (!(tool = ah_lua_to_tool(L, -1)))
        return ah_given_no_tool(L, h->embed, q->name);
    if (tool->no_handler)
        return ah_lua_raise(L, AH_TOOL_NOT_FOUND, "the tool '%s' has no handler", q->name);
    return ah_lua_direct(L, tool, args, take);
}

AH_API ah_status ah_call_tool(ah_host *host, const char *name, const char *args,
                              const char **result)
{
    ah_embed *e = ah_embed_of(host);
    request q = {ah_lend_text(name), ah_lend_text(args)};
    ah_status st = ah_embed_enter(e, "ah_call_tool");
    ah_err err;

    if (st != AH_OK)
        return st;
    if (!name)
        return ah_embed_fail(e, (ah_err_set(&err, AH_USAGE, "ah_call_tool: no name"), &err));
    st = ah_embed_call(e, call_tool, &q);
    if (st == AH_OK && result)
        *result = e->result->data;
    return st;
}
