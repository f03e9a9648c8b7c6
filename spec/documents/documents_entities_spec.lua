-- The document on dynamic tool injection (seed 001), statement by statement: entities that
-- provide tools, strategies, the loop with its history and limits, events and errors.
local ah = require "agenthost"
local D = require "support.documents"
local sound = require "support.sound"

local tool, call, calls, turn = D.tool, D.call, D.calls, D.turn

local SPEND = "Get this customer's average monthly spend over the last 12 months"
local ORDERS = "Get this customer's most recent orders"

-- The document's example, with its dependencies: Customer, Order, search_customer.
local function shop(fields)
  local S = { asked = {} }
  S.Order = ah.entity { name = "Order", prefix = "order", fields = { "id", "customerId" } }
  S.Order:tool { name = "getLineItems", description = "Get the line items in this order",
    handler = function(self) return ah.array(self.items) end }
  S.Order:tool { name = "calculateTotal", description = "Calculate the total value of this order",
    handler = function(self)
      local total = 0
      for _, item in ipairs(self.items) do
        total = total + item.price
      end
      return { amount = total }
    end }

  local class = { name = "Customer", fields = { "id", "name", "email" } }
  for k, v in pairs(fields or {}) do
    class[k] = v
  end
  S.Customer = ah.entity(class)
  S.Customer:tool { name = "getAverageSpend", description = SPEND,
    handler = function(self) return self.spend_calculator(self.id) end }
  S.Customer:tool { name = "getRecentOrders", description = ORDERS,
    params = { limit = "integer = 10: Maximum number of orders to return" },
    handler = function(self, args) return self.order_repository(self.id, args.limit) end }
  S.Customer:tool { name = "checkDiscountEligibility",
    description = "Check if this customer is eligible for a discount",
    handler = function() return true end }

  function S.order_repository(id, limit)
    S.asked[#S.asked + 1] = id .. ":" .. limit
    local list = ah.array {}
    for i = 1, math.min(limit, 2) do
      list[i] = S.Order { id = ("ord78%d"):format(i + 7), customerId = id,
        items = { { price = 10 * i } } }
    end
    return list
  end
  function S.customer(id, name)
    return S.Customer { id = id, name = name, email = name .. "@example.com",
      order_repository = S.order_repository,
      spend_calculator = function() return { amount = 450, currency = "USD" } end }
  end
  S.people = { ["John Smith"] = "c-123", ["Joan Smith"] = "c-456" }
  S.search = ah.tool { name = "search_customer", description = "Search for a customer by name",
    params = { name = "string" }, handler = function(args)
      local id = S.people[args.name]
      return id and S.customer(id, args.name)
    end }
  S.search_all = ah.tool { name = "search_customers", description = "Search customers by name",
    params = { name = "string" }, handler = function()
      return { S.customer("c-123", "John"), S.customer("c-456", "Joan") }
    end }
  return S
end

local FIND_JOHN = calls("search_customer", { name = "John Smith" })

local function discovered(turns, fields)
  fields.discover = fields.discover == nil and true or fields.discover
  return D.run(turns, fields)
end

-- Runs one call of a tool with this value, then calls that follow in the same answer.
local function giving(value, more, fields)
  fields = fields or {}
  local give = tool("give", { handler = function() return value end })
  fields.tools = { give, table.unpack(fields.tools or {}) }
  return discovered({ turn(call "give", table.unpack(more or {})), "done" }, fields)
end

describe("the flow of the document", function()
  it("finds John Smith's average spend", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend",
      "John Smith's average spend is $450/month" },
        { tools = { S.search }, "What's John Smith's average spend?" })
    assert.equal("search_customer", s:offered(1))
    assert.equal("search_customer customer_c123_getAverageSpend customer_c123_getRecentOrders "
      .. "customer_c123_checkDiscountEligibility", s:offered(2))
    assert.equal('{"amount":450,"currency":"USD"}', s:results(2))
    assert.equal("John Smith's average spend is $450/month", s.reply.text)
    sound.check(s.reply:transcript())
  end)

  it("shows the model the entity, its dependencies left out", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search }, hint = false })
    assert.equal('{"email":"John Smith@example.com","id":"c-123","name":"John Smith"}',
      s:results(1))
  end)

  it("leaves dependencies out where no fields are named, too", function()
    local C = ah.entity { name = "Customer" }
    C:tool { name = "m", description = "M.", handler = D.nothing }
    local s = giving(C { id = "c-1", repo = print, file = io.stdout, _secret = 1, name = "N" }, {},
      { hint = false })
    assert.equal('{"id":"c-1","name":"N"}', s:results(1))
  end)

  it("keeps the whole history and all counts", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend", "done" },
      { tools = { S.search } })
    assert.equal(3, s.reply.iterations)
    assert.equal(2, s.reply.rounds)
    assert.equal(2, s.reply.tool_calls)
    assert.equal(6, #s.reply.messages)
    assert.same({ "customer_c123_getAverageSpend", "customer_c123_getRecentOrders",
      "customer_c123_checkDiscountEligibility" }, s.reply.injected_tools)
  end)

  it("works on every kind of adapter", function()
    for _, mode in ipairs { "append", "inline", "reference", "additional_tools", "search_pair",
      "list_changed",
      "restart" } do
      local S = shop()
      local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend", "done" },
        { mode = mode, tools = { S.search } })
      assert.equal("done", s.reply and s.reply.text or tostring(s.err), mode)
      assert.equal('{"amount":450,"currency":"USD"}', s:results(2))
    end
  end)

  it("works with a tool group and in an agent: withToolGroup, withToolProviderDiscovery", function()
    local S = shop()
    ah.tool_group { name = "customer-search", tools = { S.search } }
    local turns = { FIND_JOHN, calls "customer_c123_getAverageSpend", "$450/month" }
    local agent = D.agent(turns, { discover = true, tools = { "customer-search" } })
    assert.equal("$450/month", assert(agent:run "What is John Smith's average spend?").text)
  end)

  it("gives a typed answer: createObject<Answer>", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend", '{"spend":450}' },
      { tools = { S.search }, output = ah.schema.short { spend = "integer" } })
    assert.equal(450, s.reply.value.spend)
  end)

  it("is asked for: without discovery an entity is a value like others", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend", "done" },
      { discover = false, tools = { S.search } })
    assert.same({}, s.reply.injected_tools)
    assert.same({}, s:of "tool_provider_discovered")
    assert.matches("^Tool 'customer_c123_getAverageSpend' not found", s:results(2))
  end)

  it("names what came, behind the result and not within", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search } })
    assert.matches("}\n\nNew tools: customer_c123_getAverageSpend, customer_c123_getRecentOrders, "
      .. "customer_c123_checkDiscountEligibility", s:results(1))
    s = discovered({ FIND_JOHN, "done" }, { tools = { S.search }, hint = false })
    assert.falsy(s:results(1):find "New tools")
  end)

  it("streams as well", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls "customer_c123_getAverageSpend",
      { text = { "$450", "/month" } } },
      { tools = { S.search }, stream = true })
    assert.equal("$450/month", s.reply.text)
    assert.equal(2, #s:of "content")
  end)

  it("tells the model of nobody", function()
    local S = shop()
    local s = discovered({ calls("search_customer", { name = "Nobody" }), "done" },
      { tools = { S.search } })
    assert.same({ true }, s:successes())
    assert.equal("null", s:results(1))
    assert.same({}, s.reply.injected_tools)
  end)

  it("tells the model of Customer(nil) likewise", function()
    local S = shop()
    assert.is_nil(S.Customer(nil))
    local none = tool("none", { handler = function() return S.Customer(nil) end })
    local s = discovered({ calls "none", "done" }, { tools = { none } })
    assert.equal("null", s:results(1))
  end)
end)

describe("the name of an entity's tool", function()
  local function names(class, ids, method)
    local C = ah.entity(class)
    C:tool { name = method or "getAverageSpend", description = "M.", handler = D.nothing }
    local list = {}
    for i, id in ipairs(ids) do
      list[i] = C { [class.id or "id"] = id }
    end
    return giving(list).reply.injected_tools
  end

  it("is {prefix}_{instanceId}_{methodName}, as in the document's examples", function()
    assert.same({ "customer_c123_getAverageSpend" },
      names({ name = "Customer", prefix = "customer" }, { "c123" }))
    assert.same({ "customer_c456_getRecentOrders" },
      names({ name = "Customer", prefix = "customer" }, { "c456" }, "getRecentOrders"))
    assert.same({ "order_ord789_getLineItems" },
      names({ name = "Order" }, { "ord789" }, "getLineItems"))
  end)

  it("keeps letters and digits of the id", function()
    assert.same({ "customer_c123_getAverageSpend" }, names({ name = "Customer" }, { "c-123" }))
    assert.same({ "customer_ab_getAverageSpend" }, names({ name = "Customer" }, { "a/b" }))
    assert.same({ "customer_42_getAverageSpend" }, names({ name = "Customer" }, { 42 }))
  end)

  it("has the class in lower case where no prefix is given, and `tool` without a name", function()
    assert.same({ "shoppingcart_c1_getAverageSpend" }, names({ name = "ShoppingCart" }, { "c1" }))
    assert.same({ "tool_c1_getAverageSpend" }, names({}, { "c1" }))
  end)

  it("tells two ids apart that come to the same", function()
    local list = names({ name = "Customer" }, { "c-1", "c1", "c_1" })
    assert.equal("customer_c1_getAverageSpend", list[1])
    assert.equal("customer_c1_2_getAverageSpend", list[2])
    assert.equal("customer_c1_3_getAverageSpend", list[3])
  end)

  it("has a hash where nothing of the id is left, and at most 64 characters", function()
    local list = names({ name = "Customer" }, { "é-ü", ("x"):rep(200), ("x"):rep(199) .. "y" })
    assert.equal(3, #list)
    for _, name in ipairs(list) do
      assert.matches("^customer_%w+_getAverageSpend$", name)
      assert.is_true(#name <= 64)
    end
    assert.are_not.equal(list[2], list[3])
  end)

  it("may have a name of its own in place of the method's", function()
    local C = ah.entity { name = "Customer" }
    function C:getAverageSpend() return self.spend end
    C:tool { name = "spend", method = "getAverageSpend", description = "Spend." }
    local s = giving(C { id = 1, spend = 5 }, { call "customer_1_spend" })
    assert.same({ "customer_1_spend" }, s.reply.injected_tools)
    assert.equal("5", s:results(2))
  end)

  it("takes the id from another field, a method or a function", function()
    assert.same({ "customer_n1_getAverageSpend" },
      names({ name = "Customer", id = "number" }, { "n1" }))
    for _, class in ipairs { { name = "C", id = "key" },
      { name = "C", id = function(self) return self.a .. "x" end } } do
      local C = ah.entity(class)
      function C:key() return self.a .. "x" end
      C:tool { name = "m", description = "M.", handler = D.nothing }
      assert.same({ "c_1x_m" }, giving(C { a = "1" }).reply.injected_tools)
    end
  end)
end)

describe("an invalid tool provider", function()
  local function made(class, data)
    class.name = "Customer"
    local C = ah.entity(class)
    C:tool { name = "m", description = "M.", handler = D.nothing }
    return C(data)
  end

  it("without its id property keeps its result, brings no tools and warns", function()
    local s = giving(made({}, { name = "J" }))
    assert.equal('{"name":"J"}', s:results(1))
    assert.same({}, s.reply.injected_tools)
    assert.truthy(s:of("warning")[1].message:find(
      "@ToolProvider Customer is invalid: missing instanceIdProperty: id", 1, true))
    s = giving(made({ id = "number" }, { id = 1 }))
    assert.truthy(s:of("warning")[1].message:find("missing instanceIdProperty: number", 1, true))
  end)

  it("whose id is null warns so", function()
    for _, class in ipairs { { id = function() end }, { id = "key" } } do
      local instance = made(class, { key = ah.null })
      local s = giving(instance)
      assert.truthy(s:of("warning")[1].message:find("Instance ID cannot be null", 1, true))
      assert.same({}, s.reply.injected_tools)
    end
  end)

  it("in a list leaves the others their tools", function()
    local C = ah.entity { name = "Customer" }
    C:tool { name = "m", description = "M.", handler = D.nothing }
    local s = giving { C { id = 1 }, C {}, C { id = 3 } }
    assert.same({ "customer_1_m", "customer_3_m" }, s.reply.injected_tools)
    assert.equal(1, #s:of "warning")
  end)

  it("has a code, a class and a reason for the script that asks", function()
    local err = D.raised(ah.tools_of, made({}, { name = "J" }))
    assert.equal("invalid_tool_provider", err.code)
    assert.equal("Customer", err.provider_class)
    assert.equal("missing instanceIdProperty: id", err.reason)
    assert.truthy(err.message:find(
      "@ToolProvider Customer is invalid: missing instanceIdProperty: id", 1, true))
  end)

  it("is no provider at all without methods", function()
    local C = ah.entity { name = "Customer" }
    assert.is_false(ah.is_provider(C { id = 1 }))
    local s = giving(C { name = "J" })
    assert.same({}, s.reply.injected_tools)
    assert.same({}, s:of "warning")
  end)

  it("has bad ids of every kind refused, not taken", function()
    for _, id in ipairs { {}, true, "", ("x"):rep(513) } do
      local s = giving(made({}, { id = id }))
      assert.same({}, s.reply.injected_tools)
      assert.equal(1, #s:of "warning")
    end
  end)
end)

describe("the extractor", function()
  it("tells providers from others: isToolProvider", function()
    local S = shop()
    assert.is_true(ah.is_provider(S.customer("c-1", "J")))
    for _, other in ipairs { {}, "x", 1, true, ah.null, print } do
      assert.is_false(ah.is_provider(other))
    end
    assert.is_false(ah.is_provider(nil))
    assert.is_false(ah.is_provider { id = "c-1", getAverageSpend = print })
  end)

  it("lists the bound tools of an instance: extractToolCallbacks", function()
    local S = shop()
    local list = ah.tools_of(S.customer("c-123", "John"))
    assert.equal(3, #list)
    assert.equal("customer_c123_getAverageSpend", list[1].name)
    assert.matches("^" .. SPEND, list[1].description)
    assert.equal("getAverageSpend", list[1].method)
    local limit = (list[2].params or list[2].parameters).properties.limit
    assert.equal(10, limit.default)
    assert.equal("Maximum number of orders to return", limit.description)
  end)

  it("sends the descriptions of methods and parameters", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search } })
    local declared = D.declared(s.requests[2], "customer_c123_getRecentOrders")
    assert.equal(ORDERS .. " (Customer c-123)", declared.description)
    assert.equal("Maximum number of orders to return",
      declared.parameters.properties.limit.description)
  end)

  it("looks into lists and results, past what is no provider", function()
    local S = shop()
    local s = giving { 1, "x", false, S.customer("a", "A"), ah.null, { id = "plain" },
      S.customer("b", "B") }
    assert.equal(6, #s.reply.injected_tools)
    s = giving(ah.ok(S.customer("a", "A"), "Found one."))
    assert.equal(3, #s.reply.injected_tools)
    assert.matches("^Found one%.\n\n{", s:results(1))
    s = giving(ah.result { value = S.customer("a", "A"), message = "M",
      exclude_value_from_context = true })
    assert.equal(3, #s.reply.injected_tools)
    assert.falsy(s:results(1):find "email")
  end)

  it("takes nothing from failed calls", function()
    local S = shop()
    local s = giving(ah.result { success = false, message = "no", value = S.customer("a", "A") })
    assert.same({}, s.reply.injected_tools)
  end)

  it("does not guess from JSON", function()
    local s = giving('{"id":"c-123","name":"John Smith"}')
    assert.same({}, s.reply.injected_tools)
  end)
end)

describe("a bound method", function()
  it("is called on the very instance", function()
    local C, seen = ah.entity { name = "C" }, nil
    C:tool { name = "m", description = "M.", handler = function(self) seen = self end }
    local instance = C { id = 1 }
    giving(instance, { call "c_1_m" })
    assert.equal(instance, seen)
  end)

  it("is not hidden by what the instance has under its name", function()
    local C = ah.entity { name = "C" }
    C:tool { name = "orders", description = "O.", handler = function(self) return #self.orders end }
    C:tool { name = "name", description = "N.", handler = function(self) return self.name end }
    local s = giving(C { id = 1, name = "Ann", orders = { 1, 2 } },
      { call "c_1_orders", call "c_1_name" })
    assert.same({ "2", "Ann" }, { s:results(2), s:results(3) })
  end)

  it("may be another one of the instance's own", function()
    local C = ah.entity { name = "C" }
    C:tool { name = "m", description = "M.", handler = function() return "class" end }
    local own = setmetatable({}, { __call = function() return "callable" end })
    local s = giving({ C { id = 1, m = function() return "own" end }, C { id = 2, m = own } },
      { call "c_1_m", call "c_2_m" })
    assert.same({ "own", "callable" }, { s:results(2), s:results(3) })
  end)

  it("that was taken away is told as such", function()
    local C = ah.entity { name = "C" }
    C:tool { name = "m", description = "M.", handler = D.nothing }
    C.m = nil
    local s = giving(C { id = 1, m = 5 }, { call "c_1_m" })
    assert.is_false(s:successes()[2])
    assert.matches("no method any more", s:results(2))
  end)

  it("gets its parameters, with defaults: limit: Int = 10", function()
    local S = shop()
    discovered({ FIND_JOHN, turn(call "customer_c123_getRecentOrders",
      call("customer_c123_getRecentOrders", { limit = 1 })), "done" }, { tools = { S.search } })
    assert.same({ "c-123:10", "c-123:1" }, S.asked)
  end)

  it("has its arguments checked", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, turn(call("customer_c123_getRecentOrders", { limit = "ten" }),
      call("customer_c123_getRecentOrders", { limit = ah.null }),
        call("customer_c123_getRecentOrders", { max = 1 }),
      call("customer_c123_getRecentOrders", "nonsense")), "done" }, { tools = { S.search } })
    for i = 2, 5 do
      assert.is_false(s:successes()[i])
    end
    assert.same({}, S.asked)
  end)

  it("has what it raises told to the model, and the run goes on", function()
    local C = ah.entity { name = "C" }
    C:tool { name = "m", description = "M.", handler = function() error("the line is down", 0) end }
    local s = giving(C { id = 1 }, { call "c_1_m" })
    assert.equal("Tool 'c_1_m' execution failed: the line is down", s:results(2))
    assert.equal("done", s.reply.text)
  end)

  it("that returns a plain value, a table, a list or nothing", function()
    local C = ah.entity { name = "C" }
    for name, value in pairs { s = "text", n = 3, t = { a = 1 }, l = ah.array {}, f = false } do
      C:tool { name = name, description = "M.", handler = function() return value end }
    end
    C:tool { name = "none", description = "M.", handler = function() end }
    local s = giving(C { id = 1 }, { call "c_1_s", call "c_1_n", call "c_1_t", call "c_1_l",
      call "c_1_f",
      call "c_1_none" })
    assert.same({ "text", "3", '{"a":1}', "[]", "false", "OK" }, { table.unpack(s:results(), 2) })
  end)
end)

describe("several instances", function()
  it("of one type each have their own tools", function()
    local S = shop()
    local s = discovered({ calls("search_customers", { name = "Smith" }),
      turn(call "customer_c123_getAverageSpend", call "customer_c456_getAverageSpend"), "done" },
      { tools = { S.search_all } })
    assert.equal(6, #s.reply.injected_tools)
    assert.same({ true, true, true }, s:successes())
    assert.equal(2, #s:of "tool_provider_discovered")
  end)

  it("that are the same entity share its tools, bound to the newest", function()
    local C, n = ah.entity { name = "C" }, 0
    C:tool { name = "m", description = "M.", handler = function(self) return self.n end }
    local find = tool("find", { handler = function()
      n = n + 1
      return C { id = "x", n = n }
    end })
    local s = discovered({ turn(call "find", call "c_x_m", call "find", call "c_x_m"), "done" },
      { tools = { find } })
    assert.same({ "c_x_m" }, s.reply.injected_tools)
    assert.equal("1", s:results(2))
    assert.equal("2", s:results(4))
    assert.equal(1, #s:of "tools_injected")
  end)

  it("twice in one list are one", function()
    local C = ah.entity { name = "C" }
    C:tool { name = "m", description = "M.", handler = function(self) return self.n end }
    local s = giving({ C { id = "x", n = 1 }, C { id = "x", n = 2 } }, { call "c_x_m" })
    assert.same({ "c_x_m" }, s.reply.injected_tools)
    assert.equal("2", s:results(2))
  end)

  it("of two classes with one prefix do not take each other's names", function()
    local A, B = ah.entity { name = "A", prefix = "p" }, ah.entity { name = "B", prefix = "p" }
    A:tool { name = "m", description = "M.", handler = function() return "a" end }
    B:tool { name = "m", description = "M.", handler = function() return "b" end }
    local s = giving({ A { id = 1 }, B { id = 1 } })
    assert.equal(2, #s.reply.injected_tools)
    assert.are_not.equal(s.reply.injected_tools[1], s.reply.injected_tools[2])
  end)
end)

describe("nested providers", function()
  it("bring their tools when a method returns them", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls("customer_c123_getRecentOrders", { limit = 2 }),
      turn(call "order_ord788_getLineItems", call "order_ord789_calculateTotal"), "done" },
        { tools = { S.search } })
    assert.equal('[{"price":10}]', s:results(3))
    assert.equal('{"amount":20}', s:results(4))
    assert.equal(7, #s.reply.injected_tools)
  end)

  local function chain()
    local Node = ah.entity { name = "Node" }
    Node:tool { name = "next", description = "N.",
      handler = function(self) return Node { id = self.id + 1 } end }
    return Node { id = 1 }
  end

  it("stop at max_depth, with one warning", function()
    local turns = {}
    for i = 1, 8 do
      turns[i] = call(("node_%d_next"):format(i))
    end
    local s = giving(chain(), { table.unpack(turns, 1, 6) })
    assert.equal(5, #s.reply.injected_tools)
    assert.equal(1, #s:of "warning")
    s = giving(chain(), { table.unpack(turns, 1, 3) }, { max_depth = 2 })
    assert.same({ "node_1_next", "node_2_next" }, s.reply.injected_tools)
    s = giving(chain(), { turns[1] }, { max_depth = 0 })
    assert.same({}, s.reply.injected_tools)
  end)

  local function many(n)
    local C, list = ah.entity { name = "C" }, {}
    C:tool { name = "m", description = "M.", handler = D.nothing }
    for i = 1, n do
      list[i] = C { id = i }
    end
    return list
  end

  it("stop at max_tools; a warning comes at 64", function()
    local s = giving(many(200))
    assert.equal(127, #s.reply.injected_tools)
    assert.is_true(#s:of "warning" >= 1)
    assert.equal("done", s.reply.text)
    s = giving(many(10), {}, { max_tools = 4 })
    assert.equal(3, #s.reply.injected_tools)
    s = giving(many(62))
    assert.same({}, s:of "warning")
    s = giving(many(63))
    assert.equal(1, #s:of "warning")
  end)
end)

describe("a stateful provider", function()
  local function cart()
    local Cart = ah.entity { name = "ShoppingCart" }
    Cart:tool { name = "addItem", description = "Add item to cart",
      params = { productId = "string", quantity = "integer" }, handler = function(self, args)
        self.items[#self.items + 1] = args
        assert(args.quantity > 0, "nothing of it")
        return { success = true, itemCount = #self.items }
      end }
    Cart:tool { name = "getContents", description = "Get cart contents",
      handler = function(self) return ah.array(self.items) end }
    return Cart { id = "7", items = {} }
  end

  local function add(id, n)
    return call("shoppingcart_7_addItem", { productId = id, quantity = n })
  end

  it("keeps what its methods change", function()
    local c = cart()
    local s = giving(c, { add("pen", 2), add("ink", 1), call "shoppingcart_7_getContents" })
    assert.equal('{"itemCount":2,"success":true}', s:results(3))
    assert.equal('[{"productId":"pen","quantity":2},{"productId":"ink","quantity":1}]',
      s:results(4))
    assert.equal(2, #c.items)
  end)

  it("is set back where a method fails", function()
    local c = cart()
    local items = c.items
    local s = giving(c, { add("pen", 2), add("ink", 0), call "shoppingcart_7_getContents" })
    assert.is_false(s:successes()[3])
    assert.equal('[{"productId":"pen","quantity":2}]', s:results(4))
    assert.equal(items, c.items)
  end)
end)

describe("a provider's life", function()
  it("is that of the conversation: its tools work in the agent's later runs", function()
    local S = shop()
    local turns = { FIND_JOHN, "Found." }
    local agent = D.agent(turns, { discover = true, tools = { S.search } })
    assert(agent:run "Find John Smith.")
    collectgarbage()
    turns[1], turns[2] = calls "customer_c123_getAverageSpend", "$450"
    local reply = assert(agent:run "His spend?")
    assert.equal('{"amount":450,"currency":"USD"}', reply.messages[#reply.messages - 1].content)
  end)

  it("ends with the run where that is said: discover = { keep = false }", function()
    local S = shop()
    local turns = { FIND_JOHN, "Found." }
    local agent = D.agent(turns, { discover = { keep = false }, tools = { S.search } })
    assert(agent:run "Find John Smith.")
    turns[1], turns[2] = calls "customer_c123_getAverageSpend", "$450"
    local reply = assert(agent:run "His spend?")
    assert.matches("stale entity: Customer c%-123", reply.messages[#reply.messages - 1].content)
  end)

  it("goes through a file by the class's find", function()
    local C
    C = ah.entity { name = "Customer", fields = { "id" },
      find = function(id) return C { id = id } end }
    C:tool { name = "getAverageSpend", description = SPEND,
      handler = function(self) return self.id end }
    local find = ah.tool { name = "search_customer", description = "F.",
      params = { name = "string" },
      handler = function() return C { id = "c-123" } end }
    local turns = { FIND_JOHN, "Found." }
    local agent, _, fields = D.agent(turns, { discover = true, tools = { find } })
    assert(agent:run "Find John Smith.")
    local path = os.tmpname()
    assert(agent:save(path))
    local again = assert(ah.load(path, { model = fields.model, discover = true, tools = { find },
      log = D.nothing }))
    os.remove(path)
    turns[1], turns[2] = calls "customer_c123_getAverageSpend", "done"
    local reply = assert(again:run "His spend?")
    assert.equal("c-123", reply.messages[#reply.messages - 1].content)
  end)

  it("can be ended by the script: retract", function()
    local S = shop()
    local john = S.customer("c-123", "John")
    local drop = tool("drop", { handler = function() return ah.retract(john) end })
    local s = giving(john, { call "drop", call "customer_c123_getAverageSpend" },
      { tools = { drop } })
    assert.equal("3", s:results(2))
    assert.is_false(s:successes()[3])
  end)
end)

describe("a strategy", function()
  it("sees the context of the document", function()
    local S, seen = shop(), {}
    discovered({ FIND_JOHN, turn(call("customer_c123_getRecentOrders", '{"limit": 1 }')), "done" },
      { tools = { S.search }, strategies = { function(m)
        seen[#seen + 1] = { name = m.name, input = m.raw_arguments, result = m.result,
          value = m.value,
          success = m.success,
          iteration = m.iteration, history = #m.history, tools = #m.tools, id = m.id }
      end }, "What?" })
    assert.equal("search_customer", seen[1].name)
    assert.equal(1, seen[1].iteration)
    assert.equal(2, seen[2].iteration)
    assert.is_true(ah.is_provider(seen[1].value))
    assert.matches('^{"email"', seen[1].result)
    assert.equal(1, seen[1].history)
    assert.equal(3, seen[2].history)
    assert.is_true(seen[1].success)
    assert.equal('{"limit": 1 }', seen[2].input)
  end)

  it("is given tools to look at, not names alone", function()
    local S, seen = shop(), nil
    D.run({ FIND_JOHN, "done" }, { tools = { S.search }, strategies = { function(m)
      seen = m.tools[1]
    end } })
    assert.equal("search_customer", seen.name)
    assert.same({ "name" }, seen.parameters.required)
    assert.equal("Search for a customer by name", seen.description)
  end)

  it("adds what it returns: a tool, a list, nothing", function()
    local returns = { tool "one", { tool "two", tool "three" }, {}, nil }
    local n = 0
    local s = D.run({ turn(call "go", call "go", call "go", call "go"), "done" },
      { tools = { tool "go" },
      loop_detector = false, strategies = { function()
        n = n + 1
        return returns[n]
      end } })
    assert.same({ "one", "two", "three" }, s.reply.injected_tools)
  end)

  it("is asked after each call, before the next is begun", function()
    local order = {}
    local go = tool("go", { handler = function() order[#order + 1] = "call" end })
    D.run({ turn(call "go", call "go"), "done" }, { tools = { go }, strategies = { function()
      order[#order + 1] = "strategy"
    end } })
    assert.same({ "call", "strategy", "call", "strategy" }, order)
  end)

  it("sees failed and refused calls, too", function()
    local seen = {}
    local fails = tool("fails", { params = { n = "integer" }, handler = function() error "no" end })
    D.run({ turn(call("fails", { n = 1 }), call("fails", { n = "x" }), call "nobody"), "done" },
      { tools = { fails }, strategies = { function(m)
        seen[#seen + 1] = m.success
      end } })
    assert.same({ false, false, false }, seen)
  end)

  it("works beside discovery and beside others", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search }, strategies = {
      function() return tool "a" end, function() return tool "b" end } })
    assert.equal(5, #s.reply.injected_tools)
  end)

  it("that fails is a warning, and the result stays", function()
    local s = D.run({ calls "go", "done" }, { tools = { tool "go" }, strategies = {
      function() error "broken" end, function() return tool "after" end } })
    assert.equal("done", s.reply.text)
    assert.same({ "after" }, s.reply.injected_tools)
    assert.matches("broken", s:of("warning")[1].message)
  end)

  it("that returns nonsense is a warning", function()
    for _, nonsense in ipairs { 7, true, { 1 }, { tool "x", "y" }, print } do
      local s = D.run({ calls "go", "done" },
        { tools = { tool "go" }, strategies = { function() return nonsense end } })
      assert.equal("done", s.reply.text)
      assert.same({}, s.reply.injected_tools)
      assert.equal(1, #s:of "warning")
    end
  end)

  it("under a taken name is skipped with the warning", function()
    local s = D.run({ calls "go", "done" },
      { tools = { tool "go" }, strategies = { function() return { tool "go", tool "new" } end } })
    assert.same({ "new" }, s.reply.injected_tools)
    assert.equal("Skipping duplicate tool during injection", s:of("warning")[1].message)
    assert.equal("go", s:of("warning")[1].tool_name)
  end)

  it("logs what it has injected, after which call", function()
    local s = D.run({ calls "go", "done" },
      { tools = { tool "go" }, strategies = { function() return { tool "a", tool "b" } end } })
    assert.matches("info [^\n]*njected[^\n]*2[^\n]*", s:log())
    local e = s:of("tools_injected")[1]
    assert.same({ "a", "b" }, e.tool_names)
  end)
end)

describe("the loop", function()
  it("answers without tools", function()
    local s = D.run({ "Hello." })
    assert.equal("Hello.", s.reply.text)
    assert.equal(1, s.reply.iterations)
    assert.equal(0, s.reply.tool_calls)
  end)

  it("tells the model of an unknown tool, with those that are there", function()
    local s = D.run({ calls "serch", "done" }, { tools = { tool "search", tool "cite" } })
    assert.truthy(s:results(1):find("Tool 'serch' not found. Available tools: [search, cite]", 1,
      true))
    assert.is_false(s:successes()[1])
  end)

  it("ends with tool_not_found where the document's way is asked for", function()
    local s = D.run({ calls "serch" }, { on_unknown_tool = "throw",
      tools = { tool "search", tool "cite" } })
    assert.equal("tool_not_found", s.err.code)
    assert.truthy(s.err.message:find("Tool 'serch' not found. Available tools: [search, cite]", 1,
      true))
    assert.equal("serch", s.err.requested_tool)
    assert.same({ "search", "cite" }, s.err.available_tools)
  end)

  it("ends with it at the fourth unknown tool in a row; a hit begins anew", function()
    local a, b, c, d = calls "a", calls "b", calls "c", calls "d"
    local s = D.run({ a, b, c, d }, { tools = { tool "x" } })
    assert.equal("tool_not_found", s.err.code)
    s = D.run({ a, b, c, calls "x", d, "done" }, { tools = { tool "x" } })
    assert.equal("done", s.reply.text)
  end)

  local function endless(fields)
    local turns = {}
    for i = 1, 30 do
      turns[i] = calls("go", { n = i })
    end
    fields.tools = { tool("go", { params = { n = "integer" } }) }
    return D.run(turns, fields)
  end

  it("makes 20 iterations at most, and says so in the document's words", function()
    local s = endless {}
    assert.equal("max_iterations_exceeded", s.err.code)
    assert.equal(20, s.err.max_iterations)
    assert.equal("Tool loop exceeded maximum iterations (20). "
      .. "This may indicate a loop in tool calls or an overly complex task.", s.err.message)
    assert.equal(20, #s.requests)
    assert.equal(20, s.err.reply.iterations)
    assert.equal(20, #s:results())
    sound.check(s.err.reply:transcript())
  end)

  it("makes as many as max_iterations says: withMaxToolIterations", function()
    local s = endless { max_iterations = 3 }
    assert.equal(3, s.err.max_iterations)
    assert.matches("%(3%)", s.err.message)
    for _, bad in ipairs { 0, -1, 1.5, "3", true } do
      assert.equal("usage", D.raised(ah.run, { model = D.model {}, max_iterations = bad,
        "Go." }).code)
    end
  end)

  it("asks once more without tools where on_max says so", function()
    local s = D.run({ calls "go", "In short." },
      { max_iterations = 1, on_max = "answer", tools = { tool "go" } })
    assert.equal("In short.", s.reply.text)
  end)

  it("treats the calls of one answer in turn", function()
    local S = shop()
    local s = discovered({ turn(call("search_customer", { name = "John Smith" }),
      call "customer_c123_getAverageSpend", call("customer_c123_getRecentOrders", { limit = 1 }),
      call "order_ord788_calculateTotal"), "done" }, { tools = { S.search } })
    assert.same({ true, true, true, true }, s:successes())
  end)
end)

describe("the messages", function()
  it("have the document's members", function()
    local S = shop()
    local s = discovered({ turn(call("search_customer", { name = "John Smith" }, "call_1")),
      "done" },
      { tools = { S.search }, system = "Be brief." })
    local m = s.reply.messages
    assert.same({ "system", "user", "assistant", "tool", "assistant" },
      { m[1].role, m[2].role, m[3].role, m[4].role, m[5].role })
    assert.equal("string", type(m[3].tool_calls[1].arguments))
    assert.equal('{"name":"John Smith"}', m[3].tool_calls[1].arguments)
    assert.same({ m[3].tool_calls[1].id, "search_customer" }, { m[4].tool_call_id, m[4].name })
    assert.equal("string", type(m[4].content))
    for i = 2, 5 do
      assert.equal("number", type(m[i].timestamp))
    end
  end)

  it("can begin another run as they are", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search } })
    local t = D.run({ "Still done." }, { messages = s.reply.messages, "And now?" })
    assert.equal("Still done.", t.reply.text)
    assert.equal(#s.reply.messages + 2, #t.reply.messages)
  end)
end)

describe("the events", function()
  it("of an iteration have number, tools and providers", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, calls("customer_c123_getRecentOrders", { limit = 2 }),
      "done" },
      { tools = { S.search } })
    local seen = {}
    for i, e in ipairs(s:of "tool_loop_iteration") do
      seen[i] = ("%d %d %d"):format(e.iteration, e.available_tool_count,
        e.discovered_provider_count)
    end
    assert.same({ "1 1 0", "2 4 1", "3 8 3" }, seen)
  end)

  it("of a discovery have class, id and exposed tools", function()
    local S = shop()
    local s = discovered({ FIND_JOHN, "done" }, { tools = { S.search } })
    local e = s:of("tool_provider_discovered")[1]
    assert.equal("Customer", e.provider_class)
    assert.equal("c-123", e.instance_id)
    assert.same({ "customer_c123_getAverageSpend", "customer_c123_getRecentOrders",
      "customer_c123_checkDiscountEligibility" }, e.exposed_tools)
  end)

  it("of a nameless class say unknown", function()
    local C = ah.entity {}
    C:tool { name = "m", description = "M.", handler = D.nothing }
    assert.equal("unknown", giving(C { id = 1 }):of("tool_provider_discovered")[1].provider_class)
  end)
end)

describe("a test without the real search", function()
  it("has a provider returned in its place: expectToolProviderReturn", function()
    local S = shop()
    local testing = require "agenthost.testing"
    local model = testing.model {
      returns = { search_customer = S.customer("c-123", "John Smith") },
      FIND_JOHN, calls "customer_c123_getAverageSpend", "$450/month",
    }
    S.search = ah.tool { name = "search_customer", description = "S.", params = { name = "string" },
      handler = function() error "not in a test" end }
    local reply = testing.run { model = model, discover = true, tools = { S.search }, "His spend?" }
    testing.expect_calls(reply, {
      { name = "search_customer" },
      { name = "customer_c123_getAverageSpend", result = '{"amount":450,"currency":"USD"}' },
    })
  end)
end)

describe("the document's words as fields", function()
  it("for tools are told in our form: searchCustomer", function()
    for given, ours in pairs { searchCustomer = "search_customer", FindByName = "find_by_name",
      ["Search Customers"] = "search_customers", getURL = "get_url" } do
      local err = D.raised(tool, given)
      assert.equal("prompt_validation", err.code)
      assert.truthy(err.message:find("; write '" .. ours .. "'", 1, true), err.message)
    end
    assert.falsy(D.raised(tool, "größe").message:find("write", 1, true))
    assert.falsy(D.raised(tool, "").message:find("write", 1, true))
    assert.falsy(D.raised(tool, ("Ab"):rep(40)).message:find("write", 1, true))
  end)

  it("of a strategy's context are told in ours", function()
    for word, ours in pairs { conversationHistory = "history", currentTools = "tools",
      toolName = "name", resultObject = "value", iteration_count = "iteration",
        lastToolCall = "name" } do
      local s = D.run({ calls "go", "done" }, { tools = { tool "go" },
        strategies = { function(m) return m[word] end } })
      local message = s:of("warning")[1].message
      assert.truthy(message:find("unknown field '" .. word .. "' (did you mean '" .. ours, 1,
        true), message)
    end
  end)

  it("in messages are refused, too", function()
    for word, ours in pairs { toolCallId = "tool_call_id", toolCalls = "tool_calls",
      toolName = "name" } do
      local err = D.raised(ah.run, { model = D.model {},
        messages = { { role = "user", content = "x",
        [word] = "y" } }, "Go." })
      assert.equal("usage", err.code)
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), err.message)
    end
  end)

  it("are refused with ours named", function()
    local cases = {
      { ah.run, "with_tool_provider_discovery", "discover" },
        { ah.run, "withToolProviderDiscovery", "discover" },
      { ah.run, "enable_tool_provider_discovery", "discover" },
        { ah.run, "toolProviderDiscoveryEnabled", "discover" },
      { ah.run, "injection_strategy", "strategies" }, { ah.run, "injectionStrategy", "strategies" },
      { ah.run, "max_tool_iterations", "max_iterations" },
        { ah.run, "maxToolIterations", "max_iterations" },
      { ah.run, "with_max_tool_iterations", "max_iterations" },
        { ah.run, "maxIterations", "max_iterations" },
      { ah.run, "with_tool_group", "tools" }, { ah.run, "withToolGroup", "tools" },
      { ah.run, "tool_callbacks", "tools" }, { ah.run, "initialToolCallbacks", "tools" },
      { ah.run, "initial_messages", "messages" }, { ah.run, "conversation_history", "messages" },
      { ah.run, "chatOptions", "options" }, { ah.run, "chat_model", "model" },
        { ah.run, "chatModel", "model" },
      { ah.run, "event_publisher", "on" }, { ah.run, "eventPublisher", "on" },
        { ah.run, "outputClass", "output" },
      { ah.entity, "instance_id_property", "id" }, { ah.entity, "instanceIdProperty", "id" },
      { ah.entity, "instance_id", "id" },
      { ah.tool, "parameters", "params" },
    }
    for _, case in ipairs(cases) do
      local make, word, ours = table.unpack(case)
      local err = D.raised(make, { [word] = true })
      assert.truthy(err.message:find("unknown field '" .. word .. "'", 1, true), err.message)
      assert.truthy(err.message:find("'" .. ours .. "'", 1, true), word .. ": " .. err.message)
    end
  end)
end)
