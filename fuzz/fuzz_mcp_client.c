/* Fuzz target: what a server of MCP sends to ah.mcp: messages, lists, results, questions.
 * fuzz/mcp_client.lua has the checks. */
#include "lua_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_lua("fuzz/mcp_client.lua", data, size);
}
