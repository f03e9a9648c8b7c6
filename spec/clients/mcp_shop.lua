-- The script that `agenthost mcp serve` serves to the agents of `make check-clients`: two tools,
-- and an entity with a method.
local ah = require "agenthost"

local Customer = ah.entity { name = "Customer", fields = { "id", "name" },
  find = function(id) return { id = id, name = "Ada" } end }

Customer:tool { name = "discount", description = "The discount of the customer, in percent.",
  handler = function(self) return "7 percent for " .. self.name .. " " .. self.id end }

return ah.agent {
  name = "shop", model = "demo/echo", discover = true,
  tools = {
    ah.tool { name = "price", description = "The price of a bag of tea.",
      params = { tea = "string" },
      handler = function(args) return args.tea .. " costs 42 euros" end },
    ah.tool { name = "open_customer", description = "Opens a customer.", params = { id = "string" },
      handler = function(args) return Customer { id = args.id, name = "Ada" } end },
  },
}
