-- The tools in Lua of the agent in main.c.
local ah = require "agenthost"

local prices = { green = 40, black = 25, mint = 30 } -- cents for one bag

return ah.tool {
  name = "price",
  description = "Returns the price of tea, in cents.",
  params = { tea = "green|black|mint", bags = "integer 1..100" },
  handler = function(args)
    return prices[args.tea] * args.bags
  end,
}
