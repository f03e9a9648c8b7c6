-- The agent with a scripted model, without a key and a network: agenthost test
local testing = require "agenthost.testing"

describe("the agent", function()
  it("keeps a list in a conversation", function()
    local agent = dofile "agent.lua"
    local model = testing.model {
      { calls = { { name = "add", arguments = { thing = "bread" } } } },
      "Bread is on the list.",
      { calls = { { name = "add", arguments = { thing = "tea" } } } },
      "Bread and tea are on the list.",
    }
    assert(agent:use(model))

    assert(agent:run "I need bread.")
    local reply = assert(agent:run "And tea.")

    testing.expect_calls(reply, {
      { name = "add", result = '["bread"]' },
      { name = "add", result = '["bread","tea"]' },
    })
    model.done()
  end)
end)
