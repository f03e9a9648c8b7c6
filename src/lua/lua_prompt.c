/* ah.prompt, and prompt:render(params) with its result.
 *
 * An object holds one reference to the prompt and one to the binding of the parameters that were
 * rendered last, so that rendering the same parameters again costs only a comparison. */
#include "lua/lua_prompt.h"

#include "io/file.h"
#include "lua/lua_data.h"
#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_schema.h"
#include "lua/lua_section.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "prompt/overrides.h"
#include "lua/lua_options.h"

static const char PROMPT[] = "agenthost.prompt";
static const char RENDERED[] = "agenthost.rendered";

enum { MAX_PARAMS = 16 << 20, MAX_OVERRIDES = 16 << 20, MAX_HASHES = 64 << 20 };

typedef struct prompt {
    ah_prompt *prompt;
    ah_binding *last; /* NULL: none yet */
} prompt;

/* -- values of a script that the core keeps ----------------------------------------- */

typedef struct kept {
    ah_lua *lua;
    int ref;
} kept;

static void release_kept(void *p)
{
    kept *k = p;

    ah_lua_unref(k->lua, &k->ref);
    ah_free(&k->lua->mem, k);
}

static const struct ah_value_vt kept_vt = {.release = release_kept};

/* A prompt that is being made, in a userdata so that a raise frees its parts. */
typedef struct draft {
    ah_schema *output;
    kept *resources;
} draft;

static const char DRAFT[] = "agenthost.prompt.draft";

static int draft_gc(lua_State *L)
{
    draft *d = lua_touserdata(L, 1);

    ah_schema_unref(d->output);
    if (d->resources)
        release_kept(d->resources);
    *d = (draft){0};
    return 0;
}

static void read_resources(lua_State *L, draft *d, ah_prompt_def *def)
{
    ah_lua *h = ah_lua_of(L);

    if (lua_getfield(L, 1, "resources") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (!(d->resources = ah_alloc(&h->mem, sizeof *d->resources)))
        ah_lua_raise_nomem(L);
    *d->resources = (kept){.lua = h, .ref = LUA_NOREF};
    d->resources->ref = ah_lua_ref(L);
    def->resources = (ah_value){&kept_vt, d->resources};
}

static void read_output(lua_State *L, draft *d)
{
    ah_err err;

    if (lua_getfield(L, 1, "output") != LUA_TNIL &&
        ah_lua_schema(L, -1, &ah_lua_of(L)->mem, &d->output, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_pop(L, 1);
}

/* -- parameters and overrides ---------------------------------------------------------- */

/* -- text, from the buffer below it, which is emptied */
static ah_slice take_text(lua_State *L, ah_buf *b)
{
    ah_slice text;

    lua_pushlstring(L, ah_buf_slice(b).p, b->len);
    ah_buf_clear(b);
    lua_remove(L, -2);
    text.p = lua_tolstring(L, -1, &text.n);
    return text;
}

static ah_slice push_json(lua_State *L, int idx, const char *what, ah_status st, size_t max)
{
    ah_buf *b;
    ah_err err;

    idx = lua_absindex(L, idx);
    b = ah_lua_push_buf(L, max);
    switch (ah_lua_to_json(L, idx, b->mem, b, &err)) {
    case AH_OK:
        break;
    case AH_NOMEM:
        ah_lua_raise_nomem(L);
        break;
    default:
        ah_lua_raise(L, st, "%s: %s", what, err.message);
    }
    return take_text(L, b);
}

ah_slice ah_lua_push_params(lua_State *L, int idx, const char *what)
{
    ah_slice text;

    if (lua_isnoneornil(L, idx)) {
        lua_pushliteral(L, "{}");
        return ah_slice_of("{}");
    }
    text = push_json(L, idx, what, AH_PROMPT_RENDER, MAX_PARAMS);
    if (ah_json_kind_of(text) != AH_JSON_OBJECT)
        ah_lua_raise(L, AH_PROMPT_RENDER, "%s: expected a table of names and values, found %s",
                     what, luaL_typename(L, idx));
    return text;
}

/* -- text of the file, in a buffer that the collector frees */
static ah_buf *push_file(lua_State *L, const char *what, const char *path)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_OVERRIDES);
    ah_err err;
    ah_status st = ah_file_read(path, b, &err);

    if (st == AH_NOMEM)
        ah_lua_raise_nomem(L);
    if (st != AH_OK)
        ah_lua_raise(L, AH_USAGE, "%s: overrides: %s", what, err.message);
    return b;
}

static ah_slice push_json_file(lua_State *L, const char *what, const char *path)
{
    ah_buf *b = push_file(L, what, path);
    ah_status st;
    ah_err err;

    if ((st = ah_json_check_err(b->mem, ah_buf_slice(b), path, &err)) == AH_NOMEM)
        ah_lua_raise_nomem(L);
    if (st != AH_OK)
        ah_lua_raise(L, AH_USAGE, "%s: overrides: %s", what, err.message);
    return take_text(L, b);
}

/* Returns the table that a Lua file returns, as JSON in a pushed buffer. */
static ah_slice push_lua_file(lua_State *L, const char *what, const char *path)
{
    ah_buf *text = push_file(L, what, path), *json = ah_lua_push_buf(L, MAX_OVERRIDES);
    ah_err err;
    ah_status st = ah_lua_data(text->mem, path, ah_buf_slice(text), json, &err);

    ah_buf_clear(text);
    if (st == AH_NOMEM)
        ah_lua_raise_nomem(L);
    if (st != AH_OK)
        ah_lua_raise(L, AH_USAGE, "%s: overrides: %s: %s", what, path, err.message);
    lua_remove(L, -2);
    return take_text(L, json);
}

/* Pushes overrides as JSON text: those of the table at idx, or of the file with that name (a .lua
 * file returns the table, see lua_data.h; any other is JSON). Raises AH_USAGE for other values. */
static ah_slice push_overrides(lua_State *L, int idx, const char *what)
{
    const char *path;
    size_t n;

    if (lua_istable(L, idx))
        return push_json(L, idx, what, AH_USAGE, MAX_OVERRIDES);
    if (lua_type(L, idx) != LUA_TSTRING)
        ah_lua_raise(L, AH_USAGE, "%s: overrides must be a table or the name of a file, found %s",
                     what, luaL_typename(L, idx));
    path = lua_tolstring(L, idx, &n);
    if (n > 4 && strcmp(path + n - 4, ".lua") == 0)
        return push_lua_file(L, what, path);
    return push_json_file(L, what, path);
}

/* -- declaring ---------------------------------------------------------------------------- */

ah_prompt *ah_lua_to_prompt(lua_State *L, int idx)
{
    prompt *p = luaL_testudata(L, idx, PROMPT);

    return p ? p->prompt : NULL;
}

static prompt *push_box(lua_State *L)
{
    prompt *p = lua_newuserdatauv(L, sizeof *p, 0);

    *p = (prompt){0};
    luaL_setmetatable(L, PROMPT);
    return p;
}

void ah_lua_push_prompt(lua_State *L, ah_binding *b)
{
    prompt *p = push_box(L);

    p->prompt = ah_prompt_ref(ah_binding_prompt(b));
    p->last = ah_binding_ref(b);
}

ah_prompt *ah_lua_override_prompt(lua_State *L, ah_prompt *p, int idx, const char *what,
                                  const ah_log *log)
{
    ah_slice overrides = push_overrides(L, idx, what);
    prompt *box = push_box(L);
    ah_err err;

    if (ah_prompt_override(p, overrides, log, &box->prompt, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_remove(L, -2); /* the text */
    return box->prompt;
}

ah_prompt *ah_lua_new_prompt(lua_State *L, const ah_prompt_def *def)
{
    prompt *p = push_box(L);
    ah_err err;

    if (ah_prompt_new(&ah_lua_of(L)->mem, def, &p->prompt, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    return p->prompt;
}

typedef struct prompt_fields {
    ah_slice ns, key, name; /* held by the table */
} prompt_fields;

static const ah_option prompt_rows[] = {
    {.name = "key",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(prompt_fields, key),
     .doc = "1 to 128 of `a-z`, `0-9`, `.`, `_` and `-`, the first a letter or digit"},
    {.name = "name",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(prompt_fields, name),
     .doc = "another name of `key`"},
    {.name = "ns",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(prompt_fields, ns),
     .doc = "the namespace of the key: one such name, or several joined by `/`, such as "
            "`examples/tooling`; at most 128 characters in all"},
    {.name = "sections",
     .kinds = AH_OPT_LIST,
     .is = "list of sections",
     .type = "ah.Section[]",
     .doc = "another form of the array part"},
    {.name = "output",
     .kinds = AH_OPT_ANY,
     .is = "table, JSON text or schema",
     .type = "table|string|ah.Schema",
     .doc =
         "JSON Schema of the last answer, see [Structured output](prompts.md#structured-output)"},
    {.name = "resources",
     .kinds = AH_OPT_TABLE,
     .type = "any",
     .doc = "for handlers, as [`ctx.resources`](sessions.md#resources); also `prompt.resources`"},
    {.name = "overrides",
     .kinds = AH_OPT_ANY,
     .is = "table or string",
     .type = "table|string",
     .doc = "see [Overrides](prompts.md#overrides)"},
    {0},
};
const ah_subject ah_subject_prompt = {.what = "ah.prompt",
                                      .type = "ah.PromptConfig",
                                      .doc = "with its sections in the array part",
                                      .list = "ah.Section",
                                      .row = prompt_rows};

/* ah.prompt { ns, key, sections in the array part, resources, output, overrides } */
static int new_prompt(lua_State *L)
{
    prompt_fields f = {0};
    ah_prompt_def def = {0};
    draft *d;

    lua_settop(L, 1);
    ah_options_read(L, 1, &ah_subject_prompt, &f);
    if (f.key.p && f.name.p)
        ah_lua_raise(L, AH_USAGE, "ah.prompt: key and name are the same: give one of them");
    def.ns = f.ns;
    def.key = f.key.p ? f.key : f.name;
    d = lua_newuserdatauv(L, sizeof *d, 0);
    *d = (draft){0};
    luaL_setmetatable(L, DRAFT);
    read_output(L, d);
    read_resources(L, d, &def);
    def.output = d->output;
    def.log = &ah_lua_of(L)->host->log;
    if (lua_getfield(L, 1, "overrides") != LUA_TNIL)
        def.overrides = push_overrides(L, -1, "ah.prompt");
    def.n = ah_lua_push_sections(L, 1, "ah.prompt", "sections");
    def.section = ah_lua_section_list(L, lua_gettop(L), "ah.prompt", def.n);
    ah_lua_new_prompt(L, &def);
    d->resources = NULL; /* owned by the prompt now */
    return 1;
}

/* -- rendered prompts ----------------------------------------------------------------------- */

static ah_rendered_prompt *check_rendered(lua_State *L)
{
    return *(ah_rendered_prompt **)luaL_checkudata(L, 1, RENDERED);
}

static int rendered_gc(lua_State *L)
{
    ah_rendered_prompt **box = luaL_checkudata(L, 1, RENDERED);

    ah_rendered_prompt_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int rendered_tostring(lua_State *L)
{
    const ah_rendered_prompt *r = check_rendered(L);

    lua_pushlstring(L, r->text->data, r->text->len);
    return 1;
}

static void push_tools(lua_State *L, const ah_rendered_prompt *r)
{
    lua_createtable(L, (int)r->n_tools, 0);
    for (size_t i = 0; i < r->n_tools; i++) {
        ah_lua_push_tool(L, r->tool[i].tool);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

static void push_summarized(lua_State *L, const ah_rendered_prompt *r)
{
    lua_createtable(L, (int)r->n_summarized, 0);
    for (size_t i = 0; i < r->n_summarized; i++) {
        lua_pushlstring(L, r->summarized[i].p, r->summarized[i].n);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* Pushes a list, which is made once for each rendered object. */
static int push_list(lua_State *L, const ah_rendered_prompt *r, int slot,
                     void (*push)(lua_State *L, const ah_rendered_prompt *r))
{
    if (lua_getiuservalue(L, 1, slot) != LUA_TNIL)
        return 1;
    push(L, r);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, slot);
    return 1;
}

static int rendered_index(lua_State *L)
{
    static const char *const known[] = {"text", "tools", "summarized", "output", NULL};
    const ah_rendered_prompt *r = check_rendered(L);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "text") == 0)
        return rendered_tostring(L);
    if (strcmp(key, "tools") == 0)
        return push_list(L, r, 1, push_tools);
    if (strcmp(key, "summarized") == 0)
        return push_list(L, r, 2, push_summarized);
    if (strcmp(key, "output") != 0)
        return ah_lua_unknown(L, "rendered", known, ah_slice_of(key));
    if (ah_prompt_output(r->prompt))
        ah_lua_push_schema(L, ah_prompt_output(r->prompt));
    else
        lua_pushnil(L);
    return 1;
}

/* -- methods of prompts ----------------------------------------------------------------------- */

static prompt *check_prompt(lua_State *L)
{
    return luaL_checkudata(L, 1, PROMPT);
}

static int prompt_gc(lua_State *L)
{
    prompt *p = check_prompt(L);

    ah_binding_unref(p->last);
    ah_prompt_unref(p->prompt);
    *p = (prompt){0};
    return ah_lua_retire(L);
}

/* Returns the binding of the parameters at 2: the last one if they are the same. */
static ah_binding *bind(lua_State *L, prompt *p, const char *what)
{
    ah_slice params = ah_lua_push_params(L, 2, what);
    ah_binding *b;
    ah_err err;

    if (p->last && ah_slice_eq(ah_binding_params(p->last), params))
        return p->last;
    if (ah_binding_new(p->prompt, params, &b, &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    ah_binding_unref(p->last);
    p->last = b;
    return b;
}

/* -- rendered. A function of a section may render, too, so the binding is held meanwhile. */
static ah_rendered_prompt *push_rendered(lua_State *L, ah_binding *b, bool text)
{
    ah_rendered_prompt **box = lua_newuserdatauv(L, sizeof *box, 2);
    ah_status st;
    ah_err err;

    *box = NULL;
    luaL_setmetatable(L, RENDERED);
    ah_binding_ref(b);
    st = text ? ah_binding_render(b, NULL, box, &err) : ah_binding_tools(b, NULL, box, &err);
    ah_binding_unref(b);
    if (st != AH_OK)
        ah_lua_raise_err(L, &err);
    return *box;
}

void ah_lua_push_rendered(lua_State *L, ah_binding *b)
{
    push_rendered(L, b, true);
}

/* prompt:render(params) */
static int prompt_render(lua_State *L)
{
    push_rendered(L, bind(L, check_prompt(L), "prompt:render"), true);
    return 1;
}

/* prompt:tools(params) */
static int prompt_tools(lua_State *L)
{
    push_tools(L, push_rendered(L, bind(L, check_prompt(L), "prompt:tools"), false));
    return 1;
}

/* prompt:section(path): the section as declared, or nil. */
static int prompt_section(lua_State *L)
{
    ah_section *s;
    ah_slice path;

    path.p = luaL_checklstring(L, 2, &path.n);
    s = ah_prompt_section(check_prompt(L)->prompt, path);
    if (s)
        ah_lua_push_section(L, s);
    else
        lua_pushnil(L);
    return 1;
}

/* prompt:hashes(): { sections = { path = hash }, tools = { name = hash } } */
static int prompt_hashes(lua_State *L)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_HASHES);

    ah_prompt_hashes(check_prompt(L)->prompt, b);
    if (!ah_buf_ok(b))
        return ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b);
    return 1;
}

static int push_resources(lua_State *L, const ah_value *v)
{
    if (v->vt == &kept_vt)
        lua_rawgeti(L, LUA_REGISTRYINDEX, ((kept *)v->p)->ref);
    else
        lua_pushnil(L);
    return 1;
}

static int prompt_index(lua_State *L)
{
    static const char *const known[] = {"id",    "resources", "output", "render",
                                        "tools", "section",   "hashes", NULL};
    const ah_prompt *p = check_prompt(L)->prompt;
    const char *key = luaL_checkstring(L, 2);
    ah_slice id = ah_prompt_id(p);

    if (luaL_getmetafield(L, 1, "methods") != LUA_TNIL && lua_getfield(L, -1, key) != LUA_TNIL)
        return 1;
    if (strcmp(key, "id") == 0)
        lua_pushlstring(L, id.p, id.n);
    else if (strcmp(key, "resources") == 0)
        return push_resources(L, ah_prompt_resources(p));
    else if (strcmp(key, "output") != 0)
        return ah_lua_unknown(L, "prompt", known, ah_slice_of(key));
    else if (ah_prompt_output(p))
        ah_lua_push_schema(L, ah_prompt_output(p));
    else
        lua_pushnil(L);
    return 1;
}

static int prompt_eq(lua_State *L)
{
    ah_prompt *a = ah_lua_to_prompt(L, 1), *b = ah_lua_to_prompt(L, 2);

    lua_pushboolean(L, a && a == b);
    return 1;
}

static int prompt_tostring(lua_State *L)
{
    ah_slice id = ah_prompt_id(check_prompt(L)->prompt);

    lua_pushliteral(L, "prompt ");
    lua_pushlstring(L, id.p, id.n);
    lua_concat(L, 2);
    return 1;
}

void ah_lua_open_prompt(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", prompt_gc},
                                    {"__eq", prompt_eq},
                                    {"__tostring", prompt_tostring},
                                    {"__index", prompt_index},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"render", prompt_render},
                                       {"tools", prompt_tools},
                                       {"section", prompt_section},
                                       {"hashes", prompt_hashes},
                                       {NULL, NULL}};
    static const luaL_Reg rendered_meta[] = {{"__gc", rendered_gc},
                                             {"__tostring", rendered_tostring},
                                             {"__index", rendered_index},
                                             {NULL, NULL}};
    static const luaL_Reg draft_meta[] = {{"__gc", draft_gc}, {NULL, NULL}};

    luaL_newmetatable(L, PROMPT);
    luaL_setfuncs(L, meta, 0);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "methods");
    luaL_newmetatable(L, RENDERED);
    luaL_setfuncs(L, rendered_meta, 0);
    luaL_newmetatable(L, DRAFT);
    luaL_setfuncs(L, draft_meta, 0);
    lua_pop(L, 3);
    lua_pushcfunction(L, new_prompt);
    lua_setfield(L, -2, "prompt");
}
