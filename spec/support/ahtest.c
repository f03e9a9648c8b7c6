/* ahtest: the library's internals for the specs. Each ahtest_<part>.c adds its functions to the
 * module's table, which is on top of the stack when its opener is called. */
#include "support/ahtest.h"

#include "agenthost.h"

AH_API int luaopen_ahtest(lua_State *L)
{
    lua_newtable(L);
    ahtest_open_json(L);
    ahtest_open_bytes(L);
    ahtest_open_sse(L);
    ahtest_open_http(L);
    ahtest_open_wire(L);
    ahtest_open_models(L);
    ahtest_open_fs(L);
    ahtest_open_pty(L);
    ahtest_open_limits(L);
    ahtest_open_prompt(L);
    ahtest_open_schema(L);
    ahtest_open_ledger(L);
    ahtest_open_process(L);
    ahtest_open_pattern(L);
    ahtest_open_keeper(L);
    ahtest_open_plant(L);
    ahtest_open_steps(L);
    ahtest_open_staged(L);
    ahtest_open_fold(L);
    ahtest_open_terminal(L);
    ahtest_open_record(L);
    ahtest_open_store(L);
    return 1;
}
