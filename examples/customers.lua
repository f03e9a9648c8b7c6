-- A domain model for a model: a tool returns a customer, and the customer's methods are tools from
-- then on; a customer's orders add theirs; a cart keeps its items.
--
--   agenthost -v examples/customers.lua          (-v: shows discoveries as they happen)
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/customers.lua
--
-- Without a model a scripted one shows what a model would do.
local ah = require "agenthost"

-- -- the domain ---------------------------------------------------------------------------

local ORDERS = {
  ["c-123"] = { { id = "ord-789", items = { { name = "Lamp", price = 4000 } } },
    { id = "ord-790", items = { { name = "Desk", price = 41000 },
      { name = "Pen", price = 300 } } } },
  ["c-456"] = { { id = "ord-801", items = { { name = "Chair", price = 12500 } } } },
}

local PEOPLE = {
  { id = "c-123", name = "John Smith", spend = { 400, 450, 500 } },
  { id = "c-456", name = "Joan Smithers", spend = { 100, 130 } },
}

local Order = ah.entity { name = "Order", fields = { "id" } }

Order:tool { name = "getLineItems", description = "The line items of this order.",
  handler = function(self) return ah.array(self.items) end }
Order:tool { name = "calculateTotal", description = "The total value of this order, in cents.",
  handler = function(self)
    local total = 0
    for _, item in ipairs(self.items) do
      total = total + item.price
    end
    return total
  end }

local Customer = ah.entity { name = "Customer", fields = { "id", "name" } }

function Customer:getAverageSpend()
  local sum = 0
  for _, month in ipairs(self.spend) do
    sum = sum + month
  end
  return { amount = sum // #self.spend, per = "month", currency = "USD" }
end

Customer:tool { method = "getAverageSpend", description = "Average monthly spend." }
Customer:tool { name = "getRecentOrders", description = "The most recent orders.",
  params = { limit = "integer 1..50 = 10" },
  handler = function(self, args)
    local list = ah.array {}
    for i, order in ipairs(ORDERS[self.id]) do
      list[i] = i <= args.limit and Order(order) or nil
    end
    return list
  end }

local Cart = ah.entity { name = "ShoppingCart", prefix = "cart" }

Cart:tool { name = "addItem", description = "Puts an item into the cart.",
  params = { product = "string", quantity = "integer" },
  handler = function(self, args)
    self.items[#self.items + 1] = args
    if args.quantity < 1 then
      error("a quantity is at least 1", 0) -- the failed call removes the item again
    end
    return { success = true, itemCount = #self.items }
  end }
Cart:tool { name = "getContents", description = "What is in the cart.",
  handler = function(self) return ah.array(self.items) end }

-- -- the tools that every conversation begins with ----------------------------------------------

local search = ah.tool { name = "search_customers", description = "Searches customers by name.",
  params = { name = "string" },
  handler = function(args)
    local found = ah.array {}
    for _, person in ipairs(PEOPLE) do
      if person.name:lower():find(args.name:lower(), 1, true) then
        found[#found + 1] = Customer(person)
      end
    end
    return #found == 1 and found[1] or found
  end }
local open_cart = ah.tool { name = "open_cart", description = "Opens an empty cart.",
  handler = function() return Cart { id = "cart-1", items = ah.array {} } end }

-- -- a scripted model, used if none is named ---------------------------------------------------

local function call(name, arguments)
  return { name = name, arguments = arguments or {} }
end

local conversations = {
  { "What's John Smith's average spend?",
    { calls = { call("search_customers", { name = "John Smith" }) } },
    { calls = { call "customer_c123_getAverageSpend" } },
    "John Smith's average spend is $450/month." },
  { "Who of the Smiths spends more?",
    { calls = { call("search_customers", { name = "smith" }) } },
    { calls = { call "customer_c123_getAverageSpend", call "customer_c456_getAverageSpend" } },
    "John Smith ($450/month), before Joan Smithers ($115/month)." },
  { "What was John Smith's last order worth?",
    { calls = { call("search_customers", { name = "John" }) } },
    { calls = { call("customer_c123_getRecentOrders", { limit = 1 }) } },
    { calls = { call "order_ord789_getLineItems", call "order_ord789_calculateTotal" } },
    "One lamp, $40.00." },
  { "Put two pens and a desk into a new cart.",
    { calls = { call "open_cart" } },
    { calls = { call("cart_cart1_addItem", { product = "Pen", quantity = 2 }),
      call("cart_cart1_addItem", { product = "Desk", quantity = 0 }),
      call("cart_cart1_addItem", { product = "Desk", quantity = 1 }) } },
    { calls = { call "cart_cart1_getContents" } },
    "Two pens and a desk are in your cart." },
}

for _, turns in ipairs(conversations) do
  local question = table.remove(turns, 1)
  print("> " .. question)
  print(assert(ah.run {
    model = not os.getenv "AGENTHOST_MODEL" and ah.scripted(turns) or nil,
    discover = true, tools = { search, open_cart },
    on = { tool_provider_discovered = function(e)
      ah.log("info", ("discovered %s %s: %s"):format(e.provider_class, e.instance_id,
        table.concat(e.exposed_tools, ", ")))
    end, tool_invoked = function(e)
      ah.log("info", ("%s -> %s"):format(e.name, e.content))
    end },
    question,
  }))
end
