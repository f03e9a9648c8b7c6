-- An agent with one tool: agenthost agent.lua "What do 3 bags of mint tea cost?"
local ah = require "agenthost"

local prices = { green = 40, black = 25, mint = 30 } -- cents for one bag

local price = ah.tool {
  name = "price",
  description = "Returns the price of tea, in cents.",
  params = { tea = "green|black|mint", bags = "integer 1..100" },
  handler = function(args)
    return prices[args.tea] * args.bags
  end,
}

return ah.agent {
  model = os.getenv "AGENTHOST_MODEL" or "demo/tools", -- demo/tools needs no key
  system = "You sell tea. Be brief.",
  tools = { price },
}
