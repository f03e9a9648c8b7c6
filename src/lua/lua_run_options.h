/* The values that the rows of ah.run's fields store. Strings are borrowed from the table that was
 * read. Callers: its module. */
#ifndef AH_LUA_RUN_OPTIONS_H
#define AH_LUA_RUN_OPTIONS_H

#include "lua/lua_agent.h"
#include "wire/adapter.h"

typedef struct ah_run_fields {
    ah_provider_options connection; /* the part for the subject's base, whose rows begin here */
    ah_run_limits limits;
    double timeout, deadline; /* as in ah_lua_agent */
    ah_inject_rules rules;
    int on_drift; /* number of the word; -1: absent */
} ah_run_fields;

#endif
