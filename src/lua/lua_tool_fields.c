/* The fields of a tool object are those given to ah.tool, as far as a tool keeps them: schemas as
 * tables, texts as in effect. Values are pushed as copies, so that nothing can change a tool. */
#include "lua/lua_tool_fields.h"

#include "lua/lua_fields.h"
#include "lua/lua_tool.h"
#include "lua/lua_value.h"
#include "model/tool_spec.h"
#include "lua/lua_options.h"

enum { MAX_TOLD = 16 << 20 };

/* -- annotations and version ------------------------------------------------------- */

static const ah_option annotations_rows[] = {
    {.name = "read_only", .kinds = AH_OPT_BOOLEAN, .doc = "the tool changes nothing"},
    {.name = "destructive", .kinds = AH_OPT_BOOLEAN, .doc = "the tool may delete or overwrite"},
    {.name = "idempotent",
     .kinds = AH_OPT_BOOLEAN,
     .doc = "a second equal call has no further effect"},
    {.name = "open_world",
     .kinds = AH_OPT_BOOLEAN,
     .doc = "the tool reaches outside of the program: the network, other processes"},
    {.name = "untrusted",
     .kinds = AH_OPT_BOOLEAN,
     .doc = "the definition and the results come from outside of the program"},
    {0},
};
const ah_subject ah_subject_annotations = {
    .what = "ah.tool: annotations",
    .type = "ah.Annotations",
    .doc = "statements on a tool, for policies; a missing field says nothing",
    .row = annotations_rows};

void ah_lua_read_annotations(lua_State *L, const char *what, ah_tool_def *def)
{
    if (lua_getfield(L, 1, "annotations") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    lua_pushfstring(L, "%s: annotations", what); /* -- annotations words */
    ah_options_read_as(L, -2, &ah_subject_annotations, lua_tostring(L, -1), NULL);
    for (int i = 0; i < AH_ANNOTATIONS; i++, lua_pop(L, 1))
        if (lua_getfield(L, -2, ah_annotation_names[i]) != LUA_TNIL)
            def->says[i] = lua_toboolean(L, -1) ? AH_YES : AH_NO;
    lua_pop(L, 2);
}

void ah_lua_push_annotations(lua_State *L, const ah_tool *t)
{
    lua_newtable(L);
    for (int i = 0; t && i < AH_ANNOTATIONS; i++) {
        if (t->says[i] == AH_UNSAID)
            continue;
        lua_pushboolean(L, t->says[i] == AH_YES);
        lua_setfield(L, -2, ah_annotation_names[i]);
    }
}

static void push_text(lua_State *L, const ah_text *text)
{
    if (text)
        lua_pushlstring(L, text->data, text->len);
    else
        lua_pushnil(L);
}

void ah_lua_push_version(lua_State *L, const ah_tool *t)
{
    push_text(L, t ? t->version : NULL);
}

/* -- the fields of a tool object -------------------------------------------------------- */

static void push_name(lua_State *L, const ah_tool *t)
{
    push_text(L, t->name);
}

static void push_brief(lua_State *L, const ah_tool *t)
{
    push_text(L, t->brief);
}

static void push_description(lua_State *L, const ah_tool *t)
{
    ah_lua_push_json(L, ah_json_member(ah_text_slice(t->spec), "description"));
}

static void push_parameters(lua_State *L, const ah_tool *t)
{
    ah_lua_push_json(L, ah_json_member(ah_text_slice(t->spec), "parameters"));
}

/* Pushes the full description, or nil if the brief one is the only one. */
static void push_full_description(lua_State *L, const ah_tool *t)
{
    push_description(L, t);
    push_text(L, t->brief);
    if (lua_rawequal(L, -1, -2))
        lua_pushnil(L);
    else
        lua_pushvalue(L, -2);
    lua_replace(L, -3);
    lua_pop(L, 1);
}

static void push_told(lua_State *L, const ah_tool *t)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_TOLD);

    ah_spec_put_told(ah_text_slice(t->spec), b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b);
    lua_remove(L, -2);
}

static void push_schema(lua_State *L, const ah_schema *s)
{
    if (s)
        ah_lua_push_json(L, ah_text_slice(ah_schema_text(s)));
    else
        lua_pushnil(L);
}

static void push_params(lua_State *L, const ah_tool *t)
{
    push_schema(L, t->params);
}

static void push_result(lua_State *L, const ah_tool *t)
{
    push_schema(L, t->result);
}

static void push_params_type(lua_State *L, const ah_tool *t)
{
    push_text(L, t->params_type);
}

static void push_result_type(lua_State *L, const ah_tool *t)
{
    push_text(L, t->result_type);
}

static void push_examples(lua_State *L, const ah_tool *t)
{
    ah_lua_push_json(L, t->examples ? ah_text_slice(t->examples) : ah_slice_of("[]"));
}

static void push_accepts_overrides(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, !t->keeps_words);
}

static void push_parallel(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, t->parallel);
}

static void push_coerce(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, t->coerce);
}

static void push_background(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, t->background);
}

static void push_return_direct(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, t->direct);
}

static void push_strict(lua_State *L, const ah_tool *t)
{
    if (t->strict == AH_UNSAID)
        lua_pushnil(L);
    else
        lua_pushboolean(L, t->strict == AH_YES);
}

static void push_durable(lua_State *L, const ah_tool *t)
{
    lua_pushboolean(L, t->durable);
}

static void push_timeout(lua_State *L, const ah_tool *t)
{
    if (t->timeout_ms)
        lua_pushnumber(L, (double)t->timeout_ms / 1000);
    else
        lua_pushnil(L);
}

static void push_memory(lua_State *L, const ah_tool *t)
{
    lua_pushinteger(L, (lua_Integer)t->memory);
}

static void push_max_result(lua_State *L, const ah_tool *t)
{
    lua_pushinteger(L, (lua_Integer)t->max_result);
}

static const struct {
    const char *name;
    void (*push)(lua_State *L, const ah_tool *t);
} fields[] = {{"name", push_name},
              {"description", push_description},
              {"brief", push_brief},
              {"full_description", push_full_description},
              {"spec", push_told}, /* the specification that a model gets */
              {"parameters", push_parameters},
              {"params", push_params},
              {"result", push_result},
              {"params_type", push_params_type},
              {"result_type", push_result_type},
              {"handler", ah_lua_push_handler},
              {"render", ah_lua_push_renderer},
              {"examples", push_examples},
              {"annotations", ah_lua_push_annotations},
              {"version", ah_lua_push_version},
              {"parallel", push_parallel},
              {"background", push_background},
              {"on_lost", ah_lua_push_on_lost},
              {"durable", push_durable},
              {"timeout", push_timeout},
              {"memory", push_memory},
              {"max_result", push_max_result},
              {"coerce", push_coerce},
              {"strict", push_strict},
              {"return_direct", push_return_direct},
              {"accepts_overrides", push_accepts_overrides}};

enum { FIELDS = sizeof fields / sizeof *fields };

bool ah_lua_push_tool_field(lua_State *L, const ah_tool *t, const char *key)
{
    for (size_t i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].name, key) == 0) {
            fields[i].push(L, t);
            return true;
        }
    return false;
}

int ah_lua_no_tool_field(lua_State *L, const char *key)
{
    const char *known[FIELDS + 1] = {NULL};

    for (size_t i = 0; i < FIELDS; i++)
        known[i] = fields[i].name;
    return ah_lua_unknown(L, "tool", known, ah_slice_of(key));
}
