/* Fuzz target: what a client of MCP sends to a server of ours: requests, answers, notifications.
 * fuzz/mcp_server.lua has the checks. */
#include "lua_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("fuzz/mcp_server.lua", data, size);
}
