-- The tools in Lua with a scripted model, without a key and a network: agenthost test
local testing = require "agenthost.testing"

describe("the tool price", function()
  it("returns what tea costs", function()
    local reply = testing.run {
      tools = { dofile "tools.lua" },
      model = testing.model {
        { calls = { { name = "price", arguments = { tea = "mint", bags = 3 } } } },
        "That is 90 cents.",
      },
      "What do 3 bags of mint tea cost?",
    }

    testing.expect_calls(reply, { { name = "price", result = "90" } })
  end)
end)
