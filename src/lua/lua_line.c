/* Lines of waits, linked through the turns. A turn that waits is kept in the registry by its
 * waiter. */
#include "lua/lua_line.h"

#include "lua/lua_error.h"
#include "lua/lua_host.h"

static const char TURN[] = "agenthost.turn";

static ah_turn *of_waiter(ah_task_waiter *w)
{
    return (ah_turn *)(void *)((char *)w - offsetof(ah_turn, waiter));
}

static void step_out(ah_turn *turn)
{
    ah_line *line = turn->line;

    ah_timer_unset(&turn->timer);
    if (!line || turn->due)
        return;
    *(turn->before ? &turn->before->next : &line->first) = turn->next;
    *(turn->next ? &turn->next->before : &line->last) = turn->before;
    turn->line = NULL;
}

static void leave(ah_task_waiter *w)
{
    step_out(of_waiter(w));
}

static void lost(ah_task_waiter *w)
{
    ah_turn *turn = of_waiter(w);
    ah_line *line = turn->line;

    if (ah_turn_came(turn) && line->lost)
        line->lost(line);
}

static void timed_out(ah_timer *timer)
{
    ah_turn *turn = (ah_turn *)(void *)((char *)timer - offsetof(ah_turn, timer));

    step_out(turn);
    ah_task_waiter_done(&turn->waiter);
}

static int turn_gc(lua_State *L)
{
    step_out(luaL_checkudata(L, 1, TURN));
    return 0;
}

ah_turn *ah_line_join(lua_State *L, ah_line *line, int idx, const char *word)
{
    ah_turn *turn;

    idx = lua_absindex(L, idx);
    ah_lua_can_await(L);
    turn = lua_newuserdatauv(L, sizeof *turn, AH_TURN_VALUE);
    *turn =
        (ah_turn){.waiter = {.leave = leave, .lost = lost, .by_code = word}, .timer.fn = timed_out};
    luaL_setmetatable(L, TURN);
    lua_pushvalue(L, idx);
    lua_setiuservalue(L, -2, 1);
    ah_task_waiter_keep(L, &turn->waiter);
    turn->line = line;
    turn->before = line->last;
    *(line->last ? &line->last->next : &line->first) = turn;
    line->last = turn;
    return turn;
}

void ah_turn_push(lua_State *L, const ah_turn *turn)
{
    lua_rawgeti(L, LUA_REGISTRYINDEX, turn->waiter.ref);
}

void ah_turn_limit(lua_State *L, ah_turn *turn, double seconds)
{
    ah_host *host = ah_lua_of(L)->host;

    ah_timer_set(host->loop, &turn->timer, ah_host_now(host) + ah_ms_of(seconds));
}

ah_turn *ah_line_wake(ah_line *line)
{
    ah_turn *turn = line->first;

    if (!turn)
        return NULL;
    step_out(turn);
    turn->line = line;
    turn->due = true;
    line->due++;
    ah_task_waiter_done(&turn->waiter);
    return turn;
}

void ah_line_dismiss(ah_line *line)
{
    ah_turn *turn;

    while ((turn = line->first)) {
        step_out(turn);
        ah_task_waiter_done(&turn->waiter);
    }
}

bool ah_turn_came(ah_turn *turn)
{
    bool due = turn->due;

    if (due)
        turn->line->due--;
    turn->due = false;
    turn->line = NULL;
    return due;
}

ah_line *ah_line_of(const ah_task *t)
{
    return t->waiter && t->waiter->leave == leave ? of_waiter(t->waiter)->line : NULL;
}

void ah_lua_open_line(lua_State *L)
{
    luaL_newmetatable(L, TURN);
    lua_pushcfunction(L, turn_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
