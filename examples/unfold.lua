-- A shop assistant with more tools than a model should see at once: two facades that unfold, a tool
-- that is locked until it is useful, and the order of the work as phases.
--
--   agenthost examples/unfold.lua ["Send me two bags of green tea"]
--   OPENAI_API_KEY=... agenthost --model openai/gpt-4o examples/unfold.lua
--
-- Calls, and tools that are added or removed, go to stderr, the answer to stdout. Without a model a
-- scripted one shows what a model would do.
local ah = require "agenthost"

local wish = ... or "Send me two bags of green tea."

-- -- a shop -------------------------------------------------------------------------------

local stock = { ["green tea"] = { price = 7, left = 5 }, cake = { price = 12, left = 1 } }
local cart = {}

local find = ah.tool {
  name = "find", description = "Finds goods by name.", params = { name = "string" },
  handler = function(args)
    local goods = stock[args.name]
    return goods and { name = args.name, price = goods.price, left = goods.left } or nil,
      not goods and "there is no " .. args.name or nil
  end,
}

local review = ah.tool {
  name = "review", description = "What buyers say of goods.", params = { name = "string" },
  handler = function(args) return args.name .. ": 4 of 5" end,
}

local put = ah.tool {
  name = "put", description = "Puts goods into the cart.",
  params = { name = "string", count = "integer 1..10 = 1" },
  handler = function(args)
    cart[#cart + 1] = { name = args.name, count = args.count }
    return ah.ok(nil, ("%d of %s are in the cart."):format(args.count, args.name))
  end,
}

local clear = ah.tool {
  name = "clear", description = "Empties the cart.", handler = function() cart = {} end,
}

local check_out = ah.tool {
  name = "check_out", description = "Ends shopping: on to payment.",
  handler = function()
    local sum = 0
    for _, item in ipairs(cart) do
      sum = sum + stock[item.name].price * item.count
    end
    return ah.ok({ to_pay = sum }, "Now it can be paid.")
  end,
}

local pay = ah.tool {
  name = "pay", description = "Pays what is in the cart.",
  handler = function() return ah.ok(nil, "Paid. It is on its way.") end,
}

-- -- strategies ----------------------------------------------------------------------------

local strategies = {
  ah.unfold { name = "catalog", description = "Tools to look at goods.", tools = { find, review } },
  ah.unfold { name = "cart", description = "Tools to change the cart.", tools = { put, clear } },
  ah.phases { phases = {
    { name = "shopping", tools = { "catalog", "cart", "find", "put", check_out },
      next = { check_out = "payment" } },
    { name = "payment", tools = { pay } },
  } },
  ah.unlock { tools = "check_out", when = function() return #cart > 0 end,
    missing = "The cart is empty." },
}

-- -- a run --------------------------------------------------------------------------------

local function tell(...)
  io.stderr:write(string.format(...), "\n")
end

-- A scripted model, used if none is named.
local function call(name, arguments)
  return { name = name, arguments = arguments }
end
local rehearsed = ah.scripted {
  { calls = { call "check_out", call "catalog", call("find", { name = "green tea" }) } },
  { calls = { call "cart", call("put", { name = "green tea", count = 2 }), call "pay" } },
  { calls = { call "check_out", call "pay" } },
  "Two bags of green tea are on their way; you paid 14.",
}

local reply = assert(ah.run {
  model = not os.getenv "AGENTHOST_MODEL" and rehearsed or nil,
  system = "You are a shop assistant. Do what the customer wants, then say what it cost.",
  strategies = strategies, hint = false,
  on = {
    tool_invoked = function(e)
      tell("%-10s %s %s", e.name, e.success and "  " or "no", (e.content:gsub("\n+", " ")))
    end,
    tools_injected = function(e) tell("+ %s", table.concat(e.tool_names, ", ")) end,
    tools_removed = function(e) tell("- %s", table.concat(e.tool_names, ", ")) end,
  },
  wish,
})
print(reply)
