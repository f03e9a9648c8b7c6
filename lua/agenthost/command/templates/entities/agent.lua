-- An agent whose tools come from data: agenthost agent.lua "What has Ada ordered?"
--
-- At first the model has one tool, `find_customer`. The methods of the customer that it returns are
-- tools from then on.
local ah = require "agenthost"

local people = {
  { id = "1", name = "Ada", orders = { { tea = "mint", bags = 3 } } },
  { id = "2", name = "Bob", orders = { { tea = "green", bags = 20 } } },
}

local Customer = ah.entity { name = "Customer", fields = { "id", "name" } }

Customer:tool {
  name = "orders",
  description = "Returns what this customer has ordered.",
  handler = function(self)
    return ah.array(self.orders)
  end,
}

local find = ah.tool {
  name = "find_customer",
  description = "Finds a customer by name.",
  params = { name = "string" },
  handler = function(args)
    for _, person in ipairs(people) do
      if person.name == args.name then
        return Customer(person)
      end
    end
    return nil, "There is no customer " .. args.name .. "."
  end,
}

return ah.agent {
  model = os.getenv "AGENTHOST_MODEL" or "demo/tools", -- demo/tools needs no key
  system = "You know the customers of a tea shop. Be brief.",
  tools = { find },
  discover = true, -- methods of returned entities become tools
}
