-- An agent script: it returns an agent, and the command opens conversations from it.
--
--   agenthost examples/agent.lua 'Put a "lamp" into my basket.'
--   AGENTHOST_MODEL=openai/gpt-4o agenthost examples/agent.lua "A lamp and two chairs, please."
--   agenthost tools examples/agent.lua
--
-- Each conversation has a basket of its own: `setup` makes the objects of one conversation; objects
-- that all conversations share (prices here) are outside of it.
local ah = require "agenthost"

local prices = { lamp = 19, chair = 45, table = 120 } -- euros

local function put(basket)
  return ah.tool {
    name = "put",
    description = "Puts a piece of furniture into the basket.",
    params = { item = "string: lamp, chair or table", count = "integer 1..99 = 1" },
    handler = function(args)
      local price = prices[args.item]
      if not price then
        return nil, "There is no " .. args.item .. "; there are lamp, chair and table."
      end
      basket[args.item] = (basket[args.item] or 0) + args.count
      return ("%d x %s, %d euros each"):format(args.count, args.item, price)
    end,
  }
end

local function total(basket)
  return ah.tool {
    name = "total",
    description = "Says what the basket costs, in euros.",
    handler = function()
      local sum = 0
      for item, count in pairs(basket) do
        sum = sum + prices[item] * count
      end
      return sum
    end,
  }
end

return ah.agent {
  model = os.getenv "AGENTHOST_MODEL" or "demo/tools", -- the default needs no key and no network
  system = "You sell furniture. Be brief.",
  setup = function(conversation)
    local basket = {}
    conversation:add_tools { put(basket), total(basket) }
  end,
}
