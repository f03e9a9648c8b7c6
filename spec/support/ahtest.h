/* Openers of the test module's parts. */
#ifndef AHTEST_H
#define AHTEST_H

#include <lauxlib.h>
#include <lua.h>

int luaopen_ahtest(lua_State *L);
void ahtest_open_json(lua_State *L);     /* canon, walk, member, members, path, repair, base64_ */
void ahtest_open_bytes(lua_State *L);    /* sha256, hmac */
void ahtest_open_sse(lua_State *L);      /* sse_feed */
void ahtest_open_http(lua_State *L);     /* http */
void ahtest_open_fs(lua_State *L);       /* fs_fail, fs_calls, fs_names, fs_open, fs_swap */
void ahtest_open_wire(lua_State *L);     /* wire_read, wire_lower */
void ahtest_open_models(lua_State *L);   /* model_order, model_rows */
void ahtest_open_pty(lua_State *L);      /* pty */
void ahtest_open_limits(lua_State *L);   /* work_limit */
void ahtest_open_prompt(lua_State *L);   /* prompt_shown, prompt_read, output_find */
void ahtest_open_schema(lua_State *L);   /* schemas */
void ahtest_open_ledger(lua_State *L);   /* ledger */
void ahtest_open_process(lua_State *L);  /* process */
void ahtest_open_terminal(lua_State *L); /* keys, area */
void ahtest_open_steps(lua_State *L);    /* die, reenter */
void ahtest_open_staged(lua_State *L);   /* staged_world */
void ahtest_open_pattern(lua_State *L);  /* pattern, pcre2_pattern */
void ahtest_open_keeper(lua_State *L);   /* keeper */
void ahtest_open_store(lua_State *L);    /* store, store_engines ... */
void ahtest_open_plant(lua_State *L);    /* plant, checking */
void ahtest_open_fold(lua_State *L);     /* fold, build, fold_cost, record_ */
void ahtest_open_record(lua_State *L);   /* store_records, store_fill, tap */

#endif
