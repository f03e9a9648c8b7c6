/* ah.channel and ah.semaphore: how tasks give values to each other, and share a limited number of
 * permits. All that takes memory is done before a channel or a semaphore changes, and what was
 * given to code that is stopped before it continues is given to the next: nothing is lost. */
#include <lauxlib.h>

#include "lua/lua_error.h"
#include "lua/lua_host.h"
#include "lua/lua_line.h"
#include "lua/lua_open.h"

static const char CHANNEL[] = "agenthost.channel", SEMAPHORE[] = "agenthost.semaphore",
                  PERMIT[] = "agenthost.permit";

enum { MOST_COUNT = 1000000 }; /* values of a channel, permits of a semaphore */

/* -- channels ---------------------------------------------------------------------------------- */

/* Its user value is the table of the values that it holds: keys first to first + count - 1. A
 * receiver that is due has a claim on one of them. Receivers wait only if all values are claimed,
 * senders only if there is no room; the value of a sender is in its turn. */
typedef struct channel {
    ah_line senders, receivers;
    lua_Integer first;
    size_t count, room;
    bool closed;
} channel;

static channel *check_channel(lua_State *L)
{
    return luaL_checkudata(L, 1, CHANNEL);
}

static size_t unclaimed(const channel *c)
{
    return c->count - c->receivers.due;
}

/* A receiver with a claim was stopped. */
static void lost_receiver(ah_line *line)
{
    channel *c = (channel *)(void *)((char *)line - offsetof(channel, receivers));

    if (unclaimed(c) > 0)
        ah_line_wake(line);
}

/* -- ... v    (popped)  Raises when out of memory, and nothing has changed. */
static void put(lua_State *L, channel *c)
{
    lua_getiuservalue(L, 1, 1);
    lua_insert(L, -2);
    lua_rawseti(L, -2, c->first + (lua_Integer)c->count);
    lua_pop(L, 1);
    c->count++;
}

/* Pushes the first value. */
static int take(lua_State *L, channel *c)
{
    lua_getiuservalue(L, 1, 1);
    lua_rawgeti(L, -1, c->first);
    lua_pushnil(L);
    lua_rawseti(L, -3, c->first);
    lua_remove(L, -2);
    c->count--;
    c->first = c->count > 0 ? c->first + 1 : 1;
    return 1;
}

/* Pushes the value of the first sender. */
static void push_sent(lua_State *L, const channel *c)
{
    ah_turn_push(L, c->senders.first);
    lua_getiuservalue(L, -1, AH_TURN_VALUE);
    lua_remove(L, -2);
}

static int sent(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    lua_pushboolean(L, ah_turn_came(lua_touserdata(L, 3)));
    return 1;
}

/* channel:send(value): waits until there is room, or a receiver. True; false if the channel is
 * closed, and the value is not sent. */
static int channel_send(lua_State *L)
{
    channel *c = check_channel(L);
    ah_turn *turn;

    lua_settop(L, 2);
    if (lua_isnil(L, 2))
        return ah_lua_raise(L, AH_USAGE,
                            "channel:send: nil is no value: it stands for a closed channel");
    if (!c->closed && !c->receivers.first && unclaimed(c) >= c->room) {
        turn = ah_line_join(L, &c->senders, 1, "send");
        lua_pushvalue(L, 2);
        lua_setiuservalue(L, 3, AH_TURN_VALUE);
        return ah_lua_await(L, &turn->waiter, 0, sent);
    }
    lua_pushboolean(L, !c->closed);
    if (!c->closed) {
        lua_pushvalue(L, 2);
        put(L, c);
        ah_line_wake(&c->receivers);
    }
    return 1;
}

static int received(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    if (ah_turn_came(lua_touserdata(L, 2)))
        return take(L, check_channel(L));
    lua_pushnil(L);
    return 1;
}

/* A value is taken; if that makes room, the first sender's value is put into the channel before. */
static int take_unclaimed(lua_State *L, channel *c)
{
    if (c->senders.first && unclaimed(c) <= c->room) {
        push_sent(L, c);
        put(L, c);
        ah_line_wake(&c->senders);
    }
    return take(L, c);
}

/* channel:receive(): waits for a value. nil if the channel is closed and holds none. */
static int channel_receive(lua_State *L)
{
    channel *c = check_channel(L);
    ah_turn *turn;

    lua_settop(L, 1);
    if (unclaimed(c) > 0)
        return take_unclaimed(L, c);
    if (c->senders.first) {
        push_sent(L, c);
        ah_line_wake(&c->senders);
        return 1;
    }
    if (c->closed) {
        lua_pushnil(L);
        return 1;
    }
    turn = ah_line_join(L, &c->receivers, 1, "receive");
    return ah_lua_await(L, &turn->waiter, 0, received);
}

/* channel:close(): nothing more is sent. What it holds can still be received. */
static int channel_close(lua_State *L)
{
    channel *c = check_channel(L);

    c->closed = true;
    ah_line_dismiss(&c->receivers);
    ah_line_dismiss(&c->senders);
    return 0;
}

static int channel_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)unclaimed(check_channel(L)));
    return 1;
}

static size_t check_count(lua_State *L, lua_Integer least, const char *what)
{
    lua_Integer n = lua_isinteger(L, 1) ? lua_tointeger(L, 1) : -1;

    if (n < least || n > MOST_COUNT)
        ah_lua_raise(L, AH_USAGE, "%s must be an integer from %d to %d, found %s", what, (int)least,
                     MOST_COUNT, luaL_tolstring(L, 1, NULL));
    return (size_t)n;
}

/* ah.channel(n): holds n values (0) that no receiver has taken yet. */
static int new_channel(lua_State *L)
{
    size_t room = lua_isnoneornil(L, 1) ? 0 : check_count(L, 0, "ah.channel: the number of values");
    channel *c = lua_newuserdatauv(L, sizeof *c, 1);

    *c = (channel){.receivers.lost = lost_receiver, .first = 1, .room = room};
    luaL_setmetatable(L, CHANNEL);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

/* -- semaphores -------------------------------------------------------------------------------- */

typedef struct semaphore {
    ah_line waiting; /* a turn that is due has got a permit */
    size_t free;
} semaphore;

/* Its user value is the userdata of `of`. */
typedef struct permit {
    semaphore *of; /* NULL: it was given back, or is not given yet */
} permit;

static void give_back(ah_line *waiting)
{
    semaphore *s = (semaphore *)(void *)((char *)waiting - offsetof(semaphore, waiting));

    if (!ah_line_wake(waiting))
        s->free++;
}

/* permit:release(): gives it back, once; so does the end of a variable marked <close>. */
static int permit_release(lua_State *L)
{
    permit *p = luaL_checkudata(L, 1, PERMIT);
    semaphore *s = p->of;

    p->of = NULL;
    if (s)
        give_back(&s->waiting);
    return 0;
}

/* -- semaphore permit ... */
static int acquired(lua_State *L, int status, lua_KContext ctx)
{
    (void)status;
    (void)ctx;
    ah_turn_came(lua_touserdata(L, 3));
    ((permit *)lua_touserdata(L, 2))->of = lua_touserdata(L, 1);
    lua_settop(L, 2);
    return 1;
}

/* semaphore:acquire(): waits for one of its permits. */
static int semaphore_acquire(lua_State *L)
{
    semaphore *s = luaL_checkudata(L, 1, SEMAPHORE);
    permit *p;
    ah_turn *turn;

    lua_settop(L, 1);
    p = lua_newuserdatauv(L, sizeof *p, 1);
    p->of = NULL;
    luaL_setmetatable(L, PERMIT);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, 2, 1);
    if (s->free == 0) {
        turn = ah_line_join(L, &s->waiting, 1, "acquire");
        return ah_lua_await(L, &turn->waiter, 0, acquired);
    }
    s->free--;
    p->of = s;
    return 1;
}

/* ah.semaphore(n): n permits. */
static int new_semaphore(lua_State *L)
{
    size_t n = check_count(L, 1, "ah.semaphore: the number of permits");
    semaphore *s = lua_newuserdatauv(L, sizeof *s, 0);

    *s = (semaphore){.waiting.lost = give_back, .free = n};
    luaL_setmetatable(L, SEMAPHORE);
    return 1;
}

/* -- the tables -------------------------------------------------------------------------------- */

void ah_lua_open_channel(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"channel", new_channel}, {"semaphore", new_semaphore}, {NULL, NULL}};
    static const luaL_Reg of_channel[] = {{"send", channel_send},
                                          {"receive", channel_receive},
                                          {"close", channel_close},
                                          {NULL, NULL}};
    static const luaL_Reg of_semaphore[] = {{"acquire", semaphore_acquire}, {NULL, NULL}};
    static const luaL_Reg of_permit[] = {{"release", permit_release}, {NULL, NULL}};
    static const luaL_Reg channel_meta[] = {{"__close", channel_close},
                                            {"__call", channel_receive},
                                            {"__len", channel_len},
                                            {NULL, NULL}};

    ah_lua_methods(L, CHANNEL, of_channel, "a channel", "send, receive, close");
    luaL_setfuncs(L, channel_meta, 0);
    ah_lua_methods(L, SEMAPHORE, of_semaphore, "a semaphore", "acquire");
    ah_lua_methods(L, PERMIT, of_permit, "a permit", "release");
    lua_pushcfunction(L, permit_release);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 3);
    luaL_setfuncs(L, functions, 0);
}
