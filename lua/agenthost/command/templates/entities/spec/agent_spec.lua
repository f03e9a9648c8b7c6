-- The agent with a scripted model, without a key and a network: agenthost test
local testing = require "agenthost.testing"

describe("the agent", function()
  local function run(turns)
    local agent, model = dofile "agent.lua", testing.model(turns)
    assert(agent:use(model))
    local reply = assert(agent:run "What has Ada ordered?")
    model.done()
    return reply
  end

  it("finds a customer, and then the orders", function()
    local reply = run {
      { calls = { { name = "find_customer", arguments = { name = "Ada" } } } },
      { calls = { { name = "customer_1_orders" } } },
      "3 bags of mint tea.",
    }

    testing.expect_calls(reply, {
      { name = "find_customer", success = true },
      { name = "customer_1_orders", result = '[{"bags":3,"tea":"mint"}]' },
    })
  end)

  it("says so if there is no such customer", function()
    local reply = run {
      { calls = { { name = "find_customer", arguments = { name = "Eve" } } } },
      "I do not know Eve.",
    }

    testing.expect_calls(reply, {
      { name = "find_customer", success = false, result = "There is no customer Eve." },
    })
  end)
end)
