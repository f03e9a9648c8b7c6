/* Prompts for the specs, as a strategy sees them: rendering with visibility overrides, and the
 * texts and tools that reading a section adds. */
#include "lua/lua_prompt.h"
#include "prompt/output.h"
#include "support/ahtest.h"

static void push_slice(lua_State *L, ah_slice s)
{
    lua_pushlstring(L, s.p, s.n);
}

/* The table of path = "full" or "summary" at index *ud. */
typedef struct shown_in {
    lua_State *L;
    int idx;
} shown_in;

static bool find(void *ud, ah_slice path, ah_visibility *out)
{
    shown_in *in = ud;
    bool there;

    push_slice(in->L, path);
    there = lua_rawget(in->L, in->idx) == LUA_TSTRING;
    if (there)
        *out = strcmp(lua_tostring(in->L, -1), "full") == 0 ? AH_FULL : AH_SUMMARY;
    lua_pop(in->L, 1);
    return there;
}

/* -- list of { name, section } */
static void push_tools(lua_State *L, const ah_section_tool *tool, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_createtable(L, 0, 2);
        push_slice(L, ah_text_slice(tool[i].tool->name));
        lua_setfield(L, -2, "name");
        push_slice(L, tool[i].section);
        lua_setfield(L, -2, "section");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_paths(lua_State *L, const ah_slice *path, size_t n)
{
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        push_slice(L, path[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static ah_binding *bind(lua_State *L)
{
    ah_slice params = ah_lua_push_params(L, 2, "params");
    ah_binding *b = NULL;
    ah_err err;

    if (ah_binding_new(ah_lua_to_prompt(L, 1), params, &b, &err) != AH_OK)
        luaL_error(L, "%s", err.message);
    return b;
}

/* prompt_shown(prompt, params, shown): { text, tools, summarized } */
static int prompt_shown(lua_State *L)
{
    shown_in in = {L, 3};
    ah_override_source shown = {find, &in};
    ah_binding *b = bind(L);
    ah_rendered_prompt *r = NULL;
    ah_err err;

    if (ah_binding_render(b, &shown, &r, &err) != AH_OK) {
        ah_binding_unref(b);
        return luaL_error(L, "%s", err.message);
    }
    lua_newtable(L);
    push_slice(L, ah_text_slice(r->text));
    lua_setfield(L, -2, "text");
    push_tools(L, r->tool, r->n_tools);
    lua_setfield(L, -2, "tools");
    push_paths(L, r->summarized, r->n_summarized);
    lua_setfield(L, -2, "summarized");
    ah_rendered_prompt_unref(r);
    ah_binding_unref(b);
    return 1;
}

/* prompt_read(prompt, params, shown, path): { kind, content, tools, open } */
static int prompt_read(lua_State *L)
{
    static const char *const kinds[] = {"unknown", "expanded", "content"};
    shown_in in = {L, 3};
    ah_override_source shown = {find, &in};
    ah_binding *b = bind(L);
    ah_section_content r;
    ah_err err;

    if (ah_binding_read(b, &shown, NULL, ah_slice_of(luaL_checkstring(L, 4)), &r, &err) != AH_OK) {
        ah_binding_unref(b);
        return luaL_error(L, "%s", err.message);
    }
    lua_newtable(L);
    lua_pushstring(L, kinds[r.kind]);
    lua_setfield(L, -2, "kind");
    push_slice(L, ah_buf_slice(&r.content));
    lua_setfield(L, -2, "content");
    push_tools(L, r.tool, r.n_tools);
    lua_setfield(L, -2, "tools");
    push_paths(L, r.open, r.n_open);
    lua_setfield(L, -2, "open");
    ah_section_content_clear(&r);
    ah_binding_unref(b);
    return 1;
}

/* output_find(answer): the part that is read as JSON */
static int output_find(lua_State *L)
{
    ah_slice answer;

    answer.p = luaL_checklstring(L, 1, &answer.n);
    push_slice(L, ah_output_find(&ah_mem_libc, answer));
    return 1;
}

void ahtest_open_prompt(lua_State *L)
{
    static const luaL_Reg functions[] = {{"prompt_shown", prompt_shown},
                                         {"prompt_read", prompt_read},
                                         {"output_find", output_find},
                                         {NULL, NULL}};

    luaL_setfuncs(L, functions, 0);
}
