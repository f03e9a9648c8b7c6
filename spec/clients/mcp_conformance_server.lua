-- The server under test of the conformance suite of MCP: the tools that its scenarios call.
local ah = require "agenthost"

return ah.agent {
  name = "conformance", model = "demo/echo",
  tools = {
    ah.tool { name = "test_simple_text", description = "Says a text.",
      handler = function() return "This is a simple text response for testing." end },
    ah.tool { name = "test_error_handling", description = "Fails.",
      handler = function() return nil, "This tool intentionally returns an error for testing" end },
  },
}
