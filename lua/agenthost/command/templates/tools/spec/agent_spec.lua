-- The agent with a scripted model, without a key and a network: agenthost test
local testing = require "agenthost.testing"

describe("the agent", function()
  it("finds out what tea costs", function()
    local agent = dofile "agent.lua"
    local model = testing.model {
      { calls = { { name = "price", arguments = { tea = "mint", bags = 3 } } } },
      "That is 90 cents.",
    }
    assert(agent:use(model))

    local reply = assert(agent:run "What do 3 bags of mint tea cost?")

    testing.expect_calls(reply, { { name = "price", result = "90" } })
    model.done()
  end)
end)
