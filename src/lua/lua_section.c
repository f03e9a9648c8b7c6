/* ah.section and ah.tools_section: make sections from tables of named fields. `enabled` and
 * `visibility` may be Lua functions, which are called and cannot wait. */
#include "lua/lua_section.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_host.h"
#include "lua/lua_schema.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "lua/lua_options.h"

static const char SECTION[] = "agenthost.section";
static const char DRAFT[] = "agenthost.section.draft";

/* -- switches that are functions --------------------------------------------------- */

typedef struct decider {
    ah_lua *lua;
    int ref;
    bool visibility; /* expects "full" or "summary", else true or false */
} decider;

typedef struct question {
    const decider *to;
    ah_slice params;
    bool *on;
} question;

static int put_question(lua_State *L)
{
    const question *q = lua_touserdata(L, 1);
    const char *word;

    lua_rawgeti(L, LUA_REGISTRYINDEX, q->to->ref);
    ah_lua_push_json(L, q->params);
    lua_call(L, 1, 1);
    if (!q->to->visibility) {
        *q->on = lua_toboolean(L, -1);
        return 0;
    }
    word = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : luaL_typename(L, -1);
    *q->on = strcmp(word, "summary") == 0;
    if (!*q->on && strcmp(word, "full") != 0)
        luaL_error(L, "the function must return \"full\" or \"summary\", found %s", word);
    return 0;
}

static ah_status ask(void *p, ah_slice params, bool *on, ah_err *err)
{
    const decider *d = p;
    question q = {d, params, on};
    lua_State *L = d->lua->caller;

    if (!lua_checkstack(L, 2))
        return ah_err_nomem(err);
    lua_pushcfunction(L, put_question);
    lua_pushlightuserdata(L, &q);
    return ah_lua_call_as(d->lua, AH_CALLEE_SWITCH, L, 1, 0, err);
}

static void release_decider(void *p)
{
    decider *d = p;

    ah_lua_unref(d->lua, &d->ref);
    ah_free(&d->lua->mem, d);
}

static const struct ah_switch_vt decider_vt = {ask, release_decider};

/* -- drafts, in userdata that free them after a raise --------------------------------- */

typedef struct draft {
    ah_schema *params;
    decider *enabled, *visibility;
} draft;

static int draft_gc(lua_State *L)
{
    draft *d = lua_touserdata(L, 1);

    ah_schema_unref(d->params);
    if (d->enabled)
        release_decider(d->enabled);
    if (d->visibility)
        release_decider(d->visibility);
    *d = (draft){0};
    return 0;
}

/* Makes a switch of the function on top (popped). */
static ah_switch read_function(lua_State *L, bool visibility, decider **slot)
{
    ah_lua *h = ah_lua_of(L);

    if (!(*slot = ah_alloc(&h->mem, sizeof **slot)))
        ah_lua_raise_nomem(L);
    **slot = (decider){.lua = h, .ref = LUA_NOREF, .visibility = visibility};
    (*slot)->ref = ah_lua_ref(L);
    return (ah_switch){.vt = &decider_vt, .p = *slot};
}

static void read_enabled(lua_State *L, draft *d, ah_section_def *def)
{
    int type = lua_getfield(L, 1, "enabled");

    def->enabled.on = true;
    if (type == LUA_TFUNCTION) {
        def->enabled = read_function(L, false, &d->enabled);
        return;
    }
    if (type == LUA_TBOOLEAN)
        def->enabled.on = lua_toboolean(L, -1);
    lua_pop(L, 1);
}

static void read_visibility(lua_State *L, draft *d, ah_section_def *def)
{
    int type = lua_getfield(L, 1, "visibility");

    if (type == LUA_TFUNCTION) {
        def->summarized = read_function(L, true, &d->visibility);
        return;
    }
    def->summarized.on = type == LUA_TSTRING && strcmp(lua_tostring(L, -1), "summary") == 0;
    lua_pop(L, 1);
}

/* -- lists ------------------------------------------------------------------------------ */

ah_section *ah_lua_to_section(lua_State *L, int idx)
{
    ah_section **box = luaL_testudata(L, idx, SECTION);

    return box ? *box : NULL;
}

void ah_lua_push_section(lua_State *L, ah_section *section)
{
    ah_section **box = lua_newuserdatauv(L, sizeof *box, 0);

    *box = ah_section_ref(section);
    luaL_setmetatable(L, SECTION);
}

ah_section **ah_lua_section_list(lua_State *L, int idx, const char *what, size_t n)
{
    ah_section **out = lua_newuserdatauv(L, (n + 1) * sizeof(ah_section *), 0);

    for (size_t i = 0; i < n; i++) {
        lua_geti(L, idx, (lua_Integer)i + 1);
        if (!(out[i] = ah_lua_to_section(L, -1)))
            ah_lua_raise(L, AH_PROMPT_VALIDATION, "%s: [%d] must be made by ah.section, found %s",
                         what, (int)i + 1, luaL_typename(L, -1));
        lua_pop(L, 1); /* the list keeps it */
    }
    return out;
}

size_t ah_lua_push_sections(lua_State *L, int idx, const char *what, const char *name)
{
    lua_Integer own = luaL_len(L, idx), n = own;

    if (!ah_lua_field_list(L, idx, what, name, &n))
        lua_pushvalue(L, idx);
    else if (own)
        ah_lua_raise(L, AH_USAGE, "%s: sections in the array part and in '%s': give one of them",
                     what, name);
    return (size_t)n;
}

/* -- declaring --------------------------------------------------------------------------- */

/* The values that rows store of a section. Their texts are held by the table. */
typedef struct section_fields {
    ah_section_def def;
    bool accepts_overrides;
    ah_slice text, again; /* under the first name; under the other one */
} section_fields;

static const ah_option section_common_rows[] = {
    {.name = "params",
     .kinds = AH_OPT_ANY,
     .is = "table",
     .otherwise = "those of the section around it",
     .type = "table<string, any>",
     .doc = "the parameters of the texts, in [short form](tool.md#short-forms)"},
    {.name = "schema",
     .kinds = AH_OPT_ANY,
     .otherwise = "those of the section around it",
     .is = "table, JSON text or schema",
     .type = "table|string|ah.Schema",
     .doc = "the same as JSON Schema of type `object`; its `properties` are the parameters"},
    {.name = "enabled",
     .kinds = AH_OPT_BOOLEAN | AH_OPT_FUNCTION,
     .otherwise = "true",
     .is = "boolean or function",
     .type = "boolean|fun(params: table): boolean",
     .doc = "false: this section and those below it have no text and no tools"},
    {.name = "visibility",
     .kinds = AH_OPT_STRING | AH_OPT_FUNCTION,
     .words = "full summary",
     .otherwise = "`\"full\"`",
     .type = "\"full\"|\"summary\"|fun(params: table): \"full\"|\"summary\"",
     .doc = "`\"summary\"`: only the summary is rendered, see [Summaries](prompts.md#summaries)"},
    {.name = "summary",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, def.summary),
     .doc = "a template; required unless `visibility` is `\"full\"`"},
    {.name = "tools",
     .kinds = AH_OPT_LIST,
     .is = "list of tools",
     .type = "ah.Tool[]",
     .doc = "offered while the section is shown in full"},
    {.name = "children",
     .kinds = AH_OPT_LIST,
     .is = "list of sections",
     .type = "ah.Section[]",
     .doc = "another form of the array part"},
    {.name = "accepts_overrides",
     .kinds = AH_OPT_BOOLEAN,
     .otherwise = "true",
     .to = AH_TO_BOOL(section_fields, accepts_overrides),
     .doc = "false: [overrides](prompts.md#overrides) of this section are not applied"},
    {0},
};
const ah_subject ah_subject_section_common = {.what = "ah.section",
                                              .type = "ah.SectionCommon",
                                              .doc = "what all sections have",
                                              .row = section_common_rows};

static const ah_option section_rows[] = {
    {.name = "key",
     .kinds = AH_OPT_STRING,
     .otherwise = "from the title",
     .to = AH_TO_HELD(section_fields, def.key),
     .doc = "1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit. From the title: in "
            "lower case, with `-` for each sequence of other characters"},
    {.name = "title",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, def.title),
     .doc = "the heading, one line; without a title `key` is required"},
    {.name = "template",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, text),
     .doc = "the text, see [Templates](prompts.md#templates)"},
    {.name = "body",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, again),
     .doc = "another name of `template`"},
    {0},
};
const ah_subject ah_subject_section = {.what = "ah.section",
                                       .type = "ah.SectionConfig",
                                       .doc = "with its children in the array part",
                                       .list = "ah.Section",
                                       .base = &ah_subject_section_common,
                                       .row = section_rows};

static const ah_option tools_section_rows[] = {
    {.name = "key",
     .kinds = AH_OPT_STRING,
     .otherwise = "from the title",
     .to = AH_TO_HELD(section_fields, def.key),
     .doc = "1 to 64 of `a-z`, `0-9`, `_` and `-`, the first a letter or digit. From the title: in "
            "lower case, with `-` for each sequence of other characters"},
    {.name = "title",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, def.title),
     .doc = "the heading, one line; without a title `key` is required"},
    {.name = "description",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, text),
     .doc = "the text, see [Templates](prompts.md#templates)"},
    {.name = "template",
     .kinds = AH_OPT_STRING,
     .to = AH_TO_HELD(section_fields, again),
     .doc = "another name of `description`"},
    {0},
};
const ah_subject ah_subject_tools_section = {.what = "ah.tools_section",
                                             .type = "ah.ToolsSectionConfig",
                                             .doc = "with its children in the array part",
                                             .list = "ah.Section",
                                             .base = &ah_subject_section_common,
                                             .row = tools_section_rows};

/* Makes a section from the table at 1, whose text is in the field `name` or `other`. */
static int new_section(lua_State *L, const ah_subject *s, const char *name, const char *other)
{
    ah_lua *h = ah_lua_of(L);
    const char *what = s->what;
    section_fields f = {.accepts_overrides = true};
    ah_section_def *def = &f.def;
    ah_section **box;
    ah_err err;
    draft *d;

    lua_settop(L, 1);
    ah_options_read(L, 1, s, &f);
    d = lua_newuserdatauv(L, sizeof *d, 0); /* -- t draft */
    *d = (draft){0};
    luaL_setmetatable(L, DRAFT);
    if (f.text.p && f.again.p)
        ah_lua_raise(L, AH_USAGE, "%s: %s and %s are the same: give one of them", what, name,
                     other);
    def->body = f.text.p ? f.text : f.again;
    def->keeps_words = !f.accepts_overrides;
    ah_lua_read_params(L, 1, what, &h->mem, &d->params);
    def->params = d->params;
    read_enabled(L, d, def);
    read_visibility(L, d, def);
    lua_getfield(L, 1, "tools");
    def->tool = ah_lua_tool_list(L, what, &def->n_tools); /* -- t draft tools array */
    def->n_children = ah_lua_push_sections(L, 1, what, "children");
    def->child = ah_lua_section_list(L, lua_gettop(L), what, def->n_children);
    box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    luaL_setmetatable(L, SECTION);
    if (ah_section_new(&h->mem, def, box, &err) != AH_OK)
        return ah_lua_raise_err(L, &err);
    d->enabled = d->visibility = NULL; /* owned by the section now */
    return 1;
}

/* ah.section { key, title, template, params | schema, enabled, visibility, summary, tools,
 * accepts_overrides, children in the array part } */
static int section(lua_State *L)
{
    return new_section(L, &ah_subject_section, "template", "body");
}

/* ah.tools_section: the same, with the text in `description` (seed 003). */
static int tools_section(lua_State *L)
{
    return new_section(L, &ah_subject_tools_section, "description", "template");
}

/* -- methods ------------------------------------------------------------------------------ */

static ah_section *check_section(lua_State *L)
{
    return *(ah_section **)luaL_checkudata(L, 1, SECTION);
}

static int section_gc(lua_State *L)
{
    ah_section **box = luaL_checkudata(L, 1, SECTION);

    ah_section_unref(*box);
    *box = NULL;
    return ah_lua_retire(L);
}

static int section_eq(lua_State *L)
{
    ah_section *a = ah_lua_to_section(L, 1), *b = ah_lua_to_section(L, 2);

    lua_pushboolean(L, a && a == b);
    return 1;
}

static int section_tostring(lua_State *L)
{
    lua_pushfstring(L, "section %s", check_section(L)->key->data);
    return 1;
}

static void push_text(lua_State *L, ah_slice s)
{
    if (s.p)
        lua_pushlstring(L, s.p, s.n);
    else
        lua_pushnil(L);
}

static int push_children(lua_State *L, const ah_section *s)
{
    lua_createtable(L, (int)s->n_children, 0);
    for (size_t i = 0; i < s->n_children; i++) {
        ah_lua_push_section(L, s->child[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int push_tools(lua_State *L, const ah_section *s)
{
    lua_createtable(L, (int)s->n_tools, 0);
    for (size_t i = 0; i < s->n_tools; i++) {
        ah_lua_push_tool(L, s->tool[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int section_index(lua_State *L)
{
    static const char *const known[] = {"key",   "title",    "template", "summary",
                                        "tools", "children", NULL};
    const ah_section *s = check_section(L);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "key") == 0)
        push_text(L, ah_text_slice(s->key));
    else if (strcmp(key, "title") == 0)
        push_text(L, ah_text_slice(s->title));
    else if (strcmp(key, "template") == 0)
        push_text(L, ah_template_text(s->body));
    else if (strcmp(key, "summary") == 0)
        push_text(L, ah_template_text(s->summary));
    else if (strcmp(key, "tools") == 0)
        return push_tools(L, s);
    else if (strcmp(key, "children") == 0)
        return push_children(L, s);
    else
        return ah_lua_unknown(L, "section", known, ah_slice_of(key));
    return 1;
}

void ah_lua_open_section(lua_State *L)
{
    static const luaL_Reg meta[] = {{"__gc", section_gc},
                                    {"__eq", section_eq},
                                    {"__tostring", section_tostring},
                                    {"__index", section_index},
                                    {NULL, NULL}};
    static const luaL_Reg draft_meta[] = {{"__gc", draft_gc}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"section", section}, {"tools_section", tools_section}, {NULL, NULL}};

    luaL_newmetatable(L, SECTION);
    luaL_setfuncs(L, meta, 0);
    luaL_newmetatable(L, DRAFT);
    luaL_setfuncs(L, draft_meta, 0);
    lua_pop(L, 2);
    luaL_setfuncs(L, functions, 0);
}
