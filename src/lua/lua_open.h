/* Opening functions of the files without a header. Each sets its functions in the table of
 * agenthost, which is on top of the stack. Those of other files are in their own headers. They may
 * raise when out of memory. Callers: its floor. */
#ifndef AH_LUA_OPEN_H
#define AH_LUA_OPEN_H

#include <lua.h>

void ah_lua_open_builtin(lua_State *L);  /* _raise, _check_list, _list_fault */
void ah_lua_open_bytes(lua_State *L);    /* sha256, hmac, base64, base64url, random_bytes */
void ah_lua_open_changes(lua_State *L);  /* watch */
void ah_lua_open_command(lua_State *L);  /* _command, _sandbox, _warn, _repair, _harmless */
void ah_lua_open_ctx(lua_State *L);      /* the metatable only */
void ah_lua_open_embed(lua_State *L);    /* host_tool */
void ah_lua_open_file(lua_State *L);     /* _read_file and others, see lua_file.c */
void ah_lua_open_http(lua_State *L);     /* http, _url, _is_network */
void ah_lua_open_load(lua_State *L);     /* load; agent:save, fork, use; after ah_lua_open_agent */
void ah_lua_open_input(lua_State *L);    /* _input */
void ah_lua_open_launch(lua_State *L);   /* _folder, _environment */
void ah_lua_open_outside(lua_State *L);  /* _members, _excerpt, _full, _variables, ... */
void ah_lua_open_process(lua_State *L);  /* process */
void ah_lua_open_reader(lua_State *L);   /* _reader */
void ah_lua_open_serve(lua_State *L);    /* serve */
void ah_lua_open_spawn(lua_State *L);    /* _start, _current, _group, _wait_for, _root, _join */
void ah_lua_open_channel(lua_State *L);  /* channel, semaphore */
void ah_lua_open_subjects(lua_State *L); /* _options */
void ah_lua_open_terminal(lua_State *L); /* terminal */
void ah_lua_open_yaml(lua_State *L);     /* yaml */
void ah_lua_open_carry(lua_State *L);    /* _carry, _rest */
void ah_lua_open_tables(lua_State *L);   /* state */

#endif
