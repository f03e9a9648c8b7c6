/* The reply object: text, messages, counts, usage. It prints as its text. */
#include "lua/lua_reply.h"

#include "lua/lua_error.h"
#include "lua/lua_fields.h"
#include "lua/lua_modules.h"
#include "lua/lua_value.h"
#include "run/history.h"

static const char REPLY[] = "agenthost.reply";

enum { MAX_PRINT = 1 << 30 };

typedef struct reply {
    ah_transcript *transcript;
    size_t first, last; /* entries of the run */
    ah_text *text;
    ah_text *value; /* NULL: none */
    ah_text *agent; /* name of the agent that has answered; NULL: none */
    ah_stop stop;
    int iterations, rounds;
    size_t tool_calls;
    ah_usage usage;
    bool recorded; /* the run was done by an earlier process */
} reply;

void ah_lua_push_reply(lua_State *L, const ah_run *run, ah_transcript *t, size_t first)
{
    reply *r = lua_newuserdatauv(L, sizeof *r, 2);
    ah_run_result res;

    ah_run_result_of(run, &res);
    *r = (reply){.first = first,
                 .last = t->n,
                 .stop = res.stop,
                 .iterations = res.iterations,
                 .rounds = res.rounds,
                 .tool_calls = res.tool_calls,
                 .usage = res.usage};
    luaL_setmetatable(L, REPLY);
    r->transcript = ah_transcript_ref(t);
    if (ah_run_cfg(run)->agent.p && !(r->agent = ah_text_new(t->mem, ah_run_cfg(run)->agent)))
        ah_lua_raise_nomem(L);
    if (!(r->text = ah_text_new(t->mem, res.text)) ||
        (res.value.p && !(r->value = ah_text_new(t->mem, res.value))))
        ah_lua_raise_nomem(L);
}

static ah_stop stop_of(ah_slice value)
{
    int stop = AH_STOP_TOOL;

    while (stop > 0 && !ah_json_string_is(value, ah_stop_name((ah_stop)stop)))
        stop--;
    return (ah_stop)stop;
}

/* Returns the string value as a new text. Raises when out of memory. */
static ah_text *string_text(lua_State *L, ah_slice value)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);
    ah_text *t = NULL;

    if (value.p)
        ah_json_string(value, b);
    if (ah_text_from_buf(b, "the reply", &t, NULL) != AH_OK)
        ah_lua_raise_nomem(L);
    lua_pop(L, 1);
    return t;
}

void ah_lua_push_recorded(lua_State *L, ah_transcript *t, size_t first, ah_slice ended,
                          ah_slice agent)
{
    reply *r = lua_newuserdatauv(L, sizeof *r, 2);
    ah_slice value = ah_json_member(ended, "value");
    ah_run_progress p;

    ah_run_progress_read(ah_json_member(ended, "progress"), &p);
    *r = (reply){.first = first,
                 .last = t->n,
                 .stop = stop_of(ah_json_member(ended, "stop")),
                 .iterations = p.iterations,
                 .rounds = p.rounds,
                 .tool_calls = p.tool_calls,
                 .usage = p.usage,
                 .recorded = true};
    luaL_setmetatable(L, REPLY);
    r->transcript = ah_transcript_ref(t);
    if ((agent.p && !(r->agent = ah_text_new(t->mem, agent))) ||
        (value.p && !(r->value = ah_text_new(t->mem, value))))
        ah_lua_raise_nomem(L);
    r->text = string_text(L, ah_json_member(ended, "text"));
}

void ah_lua_recorded_error(const ah_lua *h, ah_slice ended, ah_status code, ah_err *err)
{
    ah_buf b;

    ah_buf_init(&b, &h->mem, MAX_PRINT);
    ah_json_string(ah_json_member(ended, "message"), &b);
    if (ah_buf_ok(&b))
        ah_err_set(err, code == AH_OK ? AH_INTERNAL : code, "%.*s", AH_FMT(ah_buf_slice(&b)));
    else
        ah_err_nomem(err);
    ah_buf_clear(&b);
}

static int reply_gc(lua_State *L)
{
    reply *r = luaL_checkudata(L, 1, REPLY);

    ah_transcript_unref(r->transcript);
    r->transcript = NULL;
    ah_text_set(&r->text, NULL);
    ah_text_set(&r->value, NULL);
    ah_text_set(&r->agent, NULL);
    return ah_lua_retire(L);
}

static int reply_tostring(lua_State *L)
{
    reply *r = luaL_checkudata(L, 1, REPLY);

    lua_pushlstring(L, r->text->data, r->text->len);
    return 1;
}

/* Writes the reply's value, or its text if it has no value. */
static ah_status put_reply(lua_State *L, ah_lua_json *j)
{
    const reply *r = luaL_testudata(L, -1, REPLY);
    ah_buf *out = ah_lua_json_out(j);

    if (!r)
        return ah_lua_json_refuse(j, "a userdata cannot be JSON");
    if (r->value) /* still as the model wrote it */
        return ah_json_canon(out->mem, ah_text_slice(r->value), out) == AH_NOMEM ? AH_NOMEM : AH_OK;
    ah_json_put_string(out, ah_text_slice(r->text));
    return AH_OK;
}

void ah_lua_push_transcript(lua_State *L, const ah_transcript *t)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);

    ah_transcript_print(t, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    lua_pushlstring(L, b->data, b->len);
    ah_buf_clear(b);
    lua_remove(L, -2);
}

void ah_lua_push_messages(lua_State *L, const ah_transcript *t, size_t n)
{
    ah_err err;

    if (ah_lua_module(L, "agenthost.messages", &err) != AH_OK)
        ah_lua_raise_err(L, &err);
    lua_getfield(L, -1, "from_entries");
    lua_remove(L, -2);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        ah_lua_push_json(L, ah_text_slice(t->entry[i].json));
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_call(L, 1, 1);
}

/* True if the entry's tools were added in mid-conversation: such tools have a provenance. Picked
 * tools were there before. */
static bool brought(ah_slice json)
{
    ah_slice by = ah_json_member(json, "by");

    return by.p && !ah_json_member(by, "picked").p;
}

/* Appends the names of one entry, with commas between them. */
static void put_names(ah_slice list, bool *first, ah_buf *out)
{
    ah_json_reader r = ah_json_read(list);
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT || t.kind == AH_JSON_STRING;
         t = ah_json_next(&r)) {
        ah_slice v = ah_json_skip(&r, t);

        ah_buf_str(out, *first ? "" : ",");
        ah_buf_put(out, t.kind == AH_JSON_STRING ? v : ah_json_member(v, "name"));
        *first = false;
    }
}

void ah_lua_put_changed_tools(const ah_transcript *t, size_t first, size_t last, ah_entry_kind kind,
                              ah_buf *out)
{
    bool none = true;

    ah_buf_char(out, '[');
    for (size_t i = first; i < last; i++) {
        ah_slice json = ah_text_slice(t->entry[i].json);

        if (t->entry[i].kind != kind)
            continue;
        if (kind == AH_ENTRY_TOOLS_REMOVED)
            put_names(ah_json_member(json, "names"), &none, out);
        else if (brought(json))
            put_names(ah_json_member(json, "tools"), &none, out);
    }
    ah_buf_char(out, ']');
}

static int push_changed(lua_State *L, const reply *r, ah_entry_kind kind)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);

    ah_lua_put_changed_tools(r->transcript, r->first, r->last, kind, b);
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b);
    return 1;
}

/* Appends the calls of one entry, with commas between them. */
static void put_calls(ah_slice json, bool *first, ah_buf *out)
{
    ah_json_reader r = ah_json_read(ah_json_member(json, "tool_calls"));
    ah_json_token t = ah_json_next(&r);

    for (t = ah_json_next(&r); t.kind == AH_JSON_OBJECT; t = ah_json_next(&r)) {
        ah_buf_str(out, *first ? "" : ",");
        ah_buf_put(out, ah_json_skip(&r, t));
        *first = false;
    }
}

/* Pushes the calls that the model made in the run, as in its messages. */
static int push_calls(lua_State *L, const reply *r)
{
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);
    bool first = true;

    ah_buf_char(b, '[');
    for (size_t i = r->first; i < r->last; i++)
        if (r->transcript->entry[i].kind == AH_ENTRY_ASSISTANT)
            put_calls(ah_text_slice(r->transcript->entry[i].json), &first, b);
    ah_buf_char(b, ']');
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    ah_lua_push_json(L, ah_buf_slice(b));
    ah_buf_clear(b);
    return 1;
}

/* Pushes the whole conversation up to this reply as messages, made once. */
static int push_messages(lua_State *L, const reply *r)
{
    if (lua_getiuservalue(L, 1, 1) != LUA_TNIL)
        return 1;
    ah_lua_push_messages(L, r->transcript, r->last);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
    return 1;
}

static int push_usage(lua_State *L, const ah_usage *u)
{
    lua_createtable(L, 0, 9);
    lua_pushinteger(L, u->input);
    lua_setfield(L, -2, "input");
    lua_pushinteger(L, u->cached_read);
    lua_setfield(L, -2, "cached_read");
    lua_pushinteger(L, u->cached_write);
    lua_setfield(L, -2, "cached_write");
    lua_pushinteger(L, u->output);
    lua_setfield(L, -2, "output");
    lua_pushinteger(L, u->reasoning);
    lua_setfield(L, -2, "reasoning");
    lua_pushboolean(L, u->known);
    lua_setfield(L, -2, "known");
    if (u->priced) {
        lua_pushnumber(L, (double)u->cost / AH_COST_UNIT);
        lua_setfield(L, -2, "cost");
    }
    if (u->prices_of[0]) {
        lua_pushstring(L, u->prices_of);
        lua_setfield(L, -2, "prices_of");
    }
    lua_pushinteger(L, u->unpriced);
    lua_setfield(L, -2, "unpriced");
    return 1;
}

static int reply_transcript(lua_State *L)
{
    ah_lua_push_transcript(L, ((reply *)luaL_checkudata(L, 1, REPLY))->transcript);
    return 1;
}

/* Pushes the value, made once. */
static int push_value(lua_State *L, const reply *r)
{
    if (lua_getiuservalue(L, 1, 2) != LUA_TNIL || !r->value)
        return 1;
    ah_lua_push_json(L, ah_text_slice(r->value));
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 2);
    return 1;
}

static int reply_index(lua_State *L)
{
    static const char *const known[] = {
        "text",   "value",      "agent",          "messages",       "iterations",
        "rounds", "tool_calls", "all_tool_calls", "injected_tools", "removed_tools",
        "usage",  "stop",       "transcript",     "recorded",       NULL};
    const reply *r = luaL_checkudata(L, 1, REPLY);
    const char *key = luaL_checkstring(L, 2);

    if (strcmp(key, "text") == 0)
        lua_pushlstring(L, r->text->data, r->text->len);
    else if (strcmp(key, "value") == 0)
        return push_value(L, r);
    else if (strcmp(key, "agent") == 0)
        lua_pushstring(L, r->agent ? r->agent->data : NULL);
    else if (strcmp(key, "messages") == 0)
        return push_messages(L, r);
    else if (strcmp(key, "usage") == 0)
        return push_usage(L, &r->usage);
    else if (strcmp(key, "stop") == 0)
        lua_pushstring(L, ah_stop_name(r->stop));
    else if (strcmp(key, "iterations") == 0)
        lua_pushinteger(L, r->iterations);
    else if (strcmp(key, "rounds") == 0)
        lua_pushinteger(L, r->rounds);
    else if (strcmp(key, "tool_calls") == 0)
        lua_pushinteger(L, (lua_Integer)r->tool_calls);
    else if (strcmp(key, "all_tool_calls") == 0)
        return push_calls(L, r);
    else if (strcmp(key, "injected_tools") == 0)
        return push_changed(L, r, AH_ENTRY_TOOLS_ADDED);
    else if (strcmp(key, "removed_tools") == 0)
        return push_changed(L, r, AH_ENTRY_TOOLS_REMOVED);
    else if (strcmp(key, "recorded") == 0)
        lua_pushboolean(L, r->recorded);
    else if (strcmp(key, "transcript") == 0)
        lua_pushcfunction(L, reply_transcript);
    else
        return ah_lua_unknown(L, "reply", known, ah_slice_of(key));
    return 1;
}

/* -- replies that are kept as the result of a step -------------------------------------------- */

/* Makes a transcript of the entries [first, last); NULL: out of memory. */
static ah_transcript *part_of(const ah_transcript *t, size_t first, size_t last)
{
    ah_transcript *part = ah_transcript_new(t->mem);
    ah_status st = AH_OK;

    for (size_t i = first; part && i < last && st == AH_OK; i++)
        st = ah_transcript_add(part, t->entry[i].kind, ah_text_ref(t->entry[i].json), NULL);
    if (st == AH_OK)
        return part;
    ah_transcript_unref(part);
    return NULL;
}

/* Appends what ah_lua_push_recorded reads. */
static void put_recorded(const reply *r, ah_buf *out)
{
    const ah_run_progress p = {.iterations = r->iterations,
                               .rounds = r->rounds,
                               .tool_calls = r->tool_calls,
                               .usage = r->usage};

    ah_buf_fmt(out, "{\"stop\":\"%s\",\"text\":", ah_stop_name(r->stop));
    ah_json_put_string(out, ah_text_slice(r->text));
    if (r->value)
        ah_buf_fmt(out, ",\"value\":%.*s", AH_FMT(ah_text_slice(r->value)));
    ah_buf_str(out, ",\"progress\":");
    ah_run_progress_print(&p, out);
    ah_buf_char(out, '}');
}

/* Pushes the buffer on top as a string in its place. */
static void to_string(lua_State *L, ah_buf *b)
{
    if (!ah_buf_ok(b))
        ah_lua_raise_nomem(L);
    lua_pushlstring(L, b->data, b->len);
    ah_buf_clear(b);
    lua_remove(L, -2);
}

int ah_lua_reply_parts(lua_State *L)
{
    const reply *r = luaL_checkudata(L, 1, REPLY);
    size_t first = lua_toboolean(L, 2) ? 0 : r->first;
    ah_buf *b = ah_lua_push_buf(L, MAX_PRINT);
    ah_transcript *part;

    put_recorded(r, b);
    to_string(L, b);
    b = ah_lua_push_buf(L, MAX_PRINT);
    if (!(part = part_of(r->transcript, first, r->last)))
        return ah_lua_raise_nomem(L);
    ah_transcript_print(part, b);
    ah_transcript_unref(part);
    to_string(L, b);
    lua_pushinteger(L, (lua_Integer)(r->first - first));
    return 3;
}

void ah_lua_open_reply(lua_State *L)
{
    static const luaL_Reg meta[] = {
        {"__gc", reply_gc}, {"__tostring", reply_tostring}, {"__index", reply_index}, {NULL, NULL}};

    luaL_newmetatable(L, REPLY);
    luaL_setfuncs(L, meta, 0);
    ah_lua_set_json(L, put_reply);
    lua_pop(L, 1);
}
