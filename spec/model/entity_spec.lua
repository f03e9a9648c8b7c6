-- Entities, whose methods become tools (seed 001). docs/reference/entities.md.
local ah = require "agenthost"
local sound = require "support.sound"

local function quiet() end

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

local function turn(...)
  return { calls = { ... } }
end

-- Runs without a log; the third result is its events of some types.
local function run(fields, ...)
  local events = {}
  fields.log, fields.on = quiet, fields.on or {}
  for _, kind in ipairs { ... } do
    fields.on[kind] = function(e)
      events[#events + 1] = e
    end
  end
  if fields.discover == nil then
    fields.discover = true
  end
  fields[1] = fields[1] or "x"
  local reply, err = ah.run(fields)
  return reply, err, events
end

-- Returns the results of the calls since the last message of the user.
local function results(reply)
  local list = {}
  for _, message in ipairs(reply.messages) do
    if message.role == "user" then
      list = {}
    elseif message.role == "tool" then
      list[#list + 1] = (message.content:gsub("\n\nNew tools:.*", ""))
    end
  end
  return list
end

-- Makes a tool that returns the function's value.
local function giving(name, handler)
  return ah.tool { name = name, description = "Gives " .. name .. ".", handler = handler,
    params = { n = "any?" } }
end

local function customer_class(fields)
  fields = fields or {}
  fields.name = fields.name or "Customer"
  local Customer = ah.entity(fields)
  Customer:tool { name = "getAverageSpend", description = "Average monthly spend.",
    handler = function(self) return { amount = self.spend } end }
  return Customer
end

describe("an entity that a tool returns", function()
  it("brings its methods: John Smith's average spend", function()
    local Customer = customer_class()
    Customer:tool { name = "getRecentOrders", description = "Recent orders.",
      params = { limit = "integer = 10" }, handler = function(_, args) return args.limit end }
    local search = giving("search_customer", function()
      return Customer { id = "c-123", name = "John Smith", spend = 450 }
    end)
    local model = ah.scripted {
      { expect = { tools = { "search_customer" } }, calls = { call("search_customer") } },
      { expect = { tools = { "search_customer", "customer_c123_getAverageSpend",
        "customer_c123_getRecentOrders" } },
        calls = { call "customer_c123_getAverageSpend", call "customer_c123_getRecentOrders" } },
      "John Smith's average spend is $450/month",
    }
    local reply, _, events = run({ model = model, tools = { search } }, "tool_provider_discovered",
      "tool_loop_iteration")
    assert.equal("John Smith's average spend is $450/month", reply.text)
    assert.same({ '{"id":"c-123","name":"John Smith","spend":450}', '{"amount":450}', "10" },
      results(reply))
    assert.same({ "customer_c123_getAverageSpend", "customer_c123_getRecentOrders" },
      reply.injected_tools)
    assert.same({ 0, "Customer", 1, 1 }, { events[1].discovered_provider_count,
      events[2].provider_class, events[3].discovered_provider_count,
      events[4].discovered_provider_count })
    assert.equal("c-123", events[2].instance_id)
    assert.same(reply.injected_tools, events[2].exposed_tools)
    sound.check(reply:transcript())
  end)

  it("says in the description which one it is", function()
    local Customer = customer_class()
    local seen
    run { tools = { giving("find", function() return Customer { id = "c-1" } end) },
      model = ah.scripted { turn(call "find"), function(request)
        seen = request.tools[2].description
        return "ok"
      end } }
    assert.equal("Average monthly spend. (Customer c-1)", seen)
  end)

  it("is discovered only where that is asked for", function()
    local Customer = customer_class()
    local reply = run { discover = false, model = ah.scripted { turn(call "find"), "ok" },
      tools = { giving("find", function() return Customer { id = 1 } end) } }
    assert.same({}, reply.injected_tools)
    assert.same({ '{"id":1}' }, results(reply))
  end)

  it("may stand in a list, with others and other things, or in a result", function()
    local Customer = customer_class()
    local Other = ah.entity { name = "Other" } -- without methods it is not a provider
    local reply = run { model = ah.scripted { turn(call "list", call "one"), "ok" }, tools = {
      giving("list", function()
        return { Customer { id = "c-123" }, 5, Other { id = "o" }, Customer { id = "c-456" } }
      end),
      giving("one", function() return ah.ok(Customer { id = "c-7" }, "Found.") end),
    } }
    assert.same({ "customer_c123_getAverageSpend", "customer_c456_getAverageSpend",
      "customer_c7_getAverageSpend" }, reply.injected_tools)
    assert.equal('Found.\n\n{"id":"c-7"}', results(reply)[2])
  end)

  it("of a failed call brings nothing", function()
    local Customer = customer_class()
    local reply = run { model = ah.scripted { turn(call "find"), "ok" }, tools = {
      giving("find", function()
        return ah.result { success = false, message = "no", value = Customer { id = 1 } }
      end) } }
    assert.same({}, reply.injected_tools)
  end)

  it("reaches the instance that is meant", function()
    local Customer = customer_class()
    local reply = run { model = ah.scripted {
      turn(call "list", call "customer_c2_getAverageSpend", call "customer_c1_getAverageSpend"),
      "ok" },
      tools = { giving("list", function()
        return { Customer { id = "c-1", spend = 10 }, Customer { id = "c-2", spend = 20 } }
      end) } }
    assert.same({ '{"amount":20}', '{"amount":10}' }, { table.unpack(results(reply), 2) })
  end)

  it("may come from a method of another one, or be itself", function()
    local Customer, Order = customer_class(), ah.entity { name = "Order" }
    Order:tool { name = "getLineItems", description = "Items.",
      handler = function(self) return self.items end }
    Customer:tool { name = "getRecentOrders", description = "Orders.",
      handler = function() return { Order { id = "ord-789", items = { "lamp" } } } end }
    Customer:tool { name = "reload", description = "Itself.",
      handler = function(self) return self end }
    local reply = run { model = ah.scripted { turn(call "find"),
      turn(call "customer_c1_getRecentOrders", call "customer_c1_reload"),
      turn(call "order_ord789_getLineItems"), "ok" },
      tools = { giving("find", function() return Customer { id = "c-1" } end) } }
    assert.same({ '["lamp"]' }, { results(reply)[4] })
    assert.equal(4, #reply.injected_tools)
  end)

  it("is no tool beyond max_depth, and says so once", function()
    local Node = ah.entity { name = "Node" }
    Node:tool { name = "next", description = "The next one.",
      handler = function(self) return { Node { id = self.id + 1 } } end }
    local turns = { turn(call "first") }
    for i = 1, 3 do
      turns[#turns + 1] = turn(call("node_" .. i .. "_next"))
    end
    turns[#turns + 1] = turn(call "node_3_next")
    turns[#turns + 1] = "ok"
    local reply, _, events = run({ model = ah.scripted(turns), max_depth = 3,
      tools = { giving("first", function() return Node { id = 1 } end) } }, "warning")
    assert.same({ "node_1_next", "node_2_next", "node_3_next" }, reply.injected_tools)
    assert.equal(1, #events)
    assert.equal("Node 4 gives no tools: it is 4 deep (max_depth = 3)", events[1].message)
  end)

  it("brings no more than max_tools", function()
    local Customer = customer_class()
    local reply, _, events = run({ model = ah.scripted { turn(call "list"), "ok" }, max_tools = 4,
      tools = { giving("list", function()
        local list = {}
        for i = 1, 10 do
          list[i] = Customer { id = i }
        end
        return list
      end) } }, "warning", "tool_provider_discovered")
    assert.equal(3, #reply.injected_tools)
    assert.equal(4, #events)
    assert.matches("max_tools", events[1].message)
  end)

  it("that comes again keeps its tools, for the newest instance", function()
    local Customer, n = customer_class(), 0
    local find = giving("find", function()
      n = n + 100
      return Customer { id = "c-1", spend = n }
    end)
    local reply, _, events = run({ tools = { find }, model = ah.scripted {
      turn(call "find", call "customer_c1_getAverageSpend", call("find", { n = 2 }),
        call "customer_c1_getAverageSpend"), "ok" } }, "tool_provider_discovered", "cache_break")
    assert.same({ '{"amount":100}', '{"amount":200}' }, { results(reply)[2], results(reply)[4] })
    assert.equal(1, #reply.injected_tools)
    assert.equal(2, #events) -- one of each type
  end)

  it("that got another method meanwhile brings that, too", function()
    local Customer = customer_class()
    local find = giving("find", function() return Customer { id = "c-1" } end)
    local more = giving("more", function()
      Customer:tool { name = "ban", description = "Bans.",
        handler = function() return "banned" end }
    end)
    local reply = run { tools = { find, more }, model = ah.scripted {
      turn(call "find", call "more", call("find", { n = 2 }), call "customer_c1_ban"), "ok" } }
    assert.equal("banned", results(reply)[4])
    assert.equal(2, #reply.injected_tools)
  end)
end)

describe("names of an entity's tools", function()
  -- Returns the names of the tools for instances with these ids, in order.
  local function names(ids, fields)
    local Thing = ah.entity(fields or { name = "Thing" })
    Thing:tool { name = "doIt", description = "Does it.", handler = quiet }
    local reply = assert(run { model = ah.scripted { turn(call "all"), "ok" }, tools = {
      giving("all", function()
        local list = {}
        for i, id in ipairs(ids) do
          list[i] = Thing { id = id }
        end
        return list
      end) } })
    for _, name in ipairs(reply.injected_tools) do
      assert.matches("^[%w_-]+$", name)
      assert.is_true(#name <= 64, name)
    end
    return reply.injected_tools
  end

  it("keep letters and digits of the id, and number ids that come to the same", function()
    assert.same({ "thing_c1_doIt", "thing_c1_2_doIt", "thing_c1_3_doIt", "thing_7_doIt",
      "thing_C1_doIt" }, names { "c-1", "c1", "c.1", 7, "C1" })
  end)

  it("have a hash where nothing of the id is left", function()
    local list = names { "---", "\u{263a}" }
    assert.matches("^thing_%x%x%x%x%x%x%x%x_doIt$", list[1])
    assert.matches("^thing_%x%x%x%x%x%x%x%x_doIt$", list[2])
    assert.not_equal(list[1], list[2])
  end)

  it("shorten long ids and keep the method", function()
    local long = ("abc"):rep(100)
    local list = names { long .. "1", long .. "2", long .. "-2" }
    assert.equal(3, #list)
    for _, name in ipairs(list) do
      assert.equal(64, #name)
      assert.matches("^thing_abcabc.*_doIt$", name)
    end
    assert.is_true(list[1] ~= list[2] and list[2] ~= list[3])
  end)

  it("have the prefix that the class gives, its name, or `tool`", function()
    assert.same({ "p-Q_1_doIt" }, names({ 1 }, { name = "Thing", prefix = "p-Q" }))
    assert.same({ "thing_1_doIt" }, names({ 1 }, { name = "Thing", prefix = "" }))
    assert.same({ "tool_1_doIt" }, names({ 1 }, {}))
  end)

  it("are not taken from a tool that is there", function()
    local Customer = customer_class()
    local own = giving("customer_c1_own", function() return "own" end)
    Customer:tool { name = "own", description = "Own.", handler = function() return "entity" end }
    local reply, _, events = run({ tools = { own, giving("find", function()
      return Customer { id = "c1" }
    end) }, model = ah.scripted { turn(call "find", call "customer_c1_own"), "ok" } }, "warning",
      "tool_provider_discovered")
    assert.equal("own", results(reply)[2])
    assert.equal("Skipping duplicate tool during injection", events[1].message)
    assert.same({ "customer_c1_getAverageSpend" }, events[2].exposed_tools)
  end)
end)

describe("ids", function()
  local function warning(fields, data)
    local Customer = customer_class(fields)
    local reply, _, events = run({ model = ah.scripted { turn(call "find"), "ok" }, tools = {
      giving("find", function() return Customer(data) end) } }, "warning")
    assert.equal("ok", reply.text)
    assert.same({}, reply.injected_tools)
    assert.is_true(reply.messages[3].success ~= false)
    return events[1].message
  end

  it("that are missing or bad cost the tools, not the result", function()
    local begins = "@ToolProvider Customer is invalid: "
    assert.equal(begins .. "missing instanceIdProperty: id", warning({}, { name = "x" }))
    assert.equal(begins .. "missing instanceIdProperty: key", warning({ id = "key" }, { id = 1 }))
    assert.equal(begins .. "Instance ID cannot be null", warning({}, { id = ah.null }))
    assert.equal(begins .. "Instance ID cannot be null", warning({ id = function() end }, {}))
    assert.equal(begins .. "Instance ID must be a string or a number, found a table",
      warning({}, { id = {} }))
    assert.equal(begins .. "Instance ID must be UTF-8 of 1 to 512 bytes, without NUL",
      warning({}, { id = "" }))
    assert.matches("is invalid: .*no idea", warning({ id = function() error "no idea" end }, {}))
  end)

  it("are told once for a list", function()
    local Customer = customer_class()
    local _, _, events = run({ model = ah.scripted { turn(call "list"), "ok" }, tools = {
      giving("list", function() return { Customer {}, Customer {}, Customer { id = 1 } } end) } },
      "warning")
    assert.equal(1, #events)
    assert.equal("@ToolProvider Customer is invalid: missing instanceIdProperty: id (and 1 more)",
      events[1].message)
  end)

  it("may be a field, a method or a function's", function()
    local ByField, ByMethod = customer_class { id = "key" }, customer_class { id = "getId" }
    local ByFunction = customer_class { id = function(self) return self.a .. self.b end }
    function ByMethod:getId()
      return "m" .. self.n
    end
    assert.equal("customer_k_getAverageSpend", ah.tools_of(ByField { key = "k" })[1].name)
    assert.equal("customer_m7_getAverageSpend", ah.tools_of(ByMethod { n = 7 })[1].name)
    assert.equal("customer_xy_getAverageSpend",
      ah.tools_of(ByFunction { a = "x", b = "y" })[1].name)
  end)
end)

describe("a class", function()
  it("takes the table as it is", function()
    local Customer = customer_class()
    local data = { id = 1 }
    assert.equal(data, Customer(data))
    assert.equal(data, Customer(data))
    assert.is_nil(Customer(nil))
    assert.equal('Customer {"id":1}', tostring(data))
    assert.equal("entity Customer", tostring(Customer))
    assert.equal("Customer", Customer.name)
    assert.equal("customer", Customer.prefix)
  end)

  it("gives nil for nil, which a tool or a method may return of nobody", function()
    local Customer = customer_class()
    Customer:tool { name = "getPartner", description = "The partner.",
      handler = function() return Customer(nil) end }
    local reply = run { tools = { giving("find", function() return Customer { id = "1" } end),
      giving("search", function() return Customer(nil) end) },
      model = ah.scripted { turn(call("find"), call("search")), turn(call "customer_1_getPartner"),
        "Nobody." } }
    assert.same({ "null", "null" }, { table.unpack(results(reply), 2) })
  end)

  it("has methods and fields, and its tools are methods of the script's, too", function()
    local Customer = customer_class()
    Customer.kind = "person"
    function Customer:greet(name)
      return name .. " meets " .. self.id
    end
    function Customer.__tostring(self)
      return "<" .. self.id .. ">"
    end
    local c = Customer { id = "c", spend = 5 }
    assert.same({ amount = 5 }, c:getAverageSpend {})
    assert.equal("Joe meets c", c:greet "Joe")
    assert.equal("person", c.kind)
    assert.equal("<c>", tostring(c))
    assert.is_nil(c.nothing)
  end)

  it("makes a tool of a method that it has, and calls the one that it has then", function()
    local Customer = ah.entity { name = "Customer" }
    function Customer:spend()
      return self.id
    end
    Customer:tool { method = "spend", description = "Spend." }
      :tool { method = "spend", name = "sameAgain", description = "Spend." }
    local c = Customer { id = "c" }
    assert.same({ "customer_c_spend", "customer_c_sameAgain" },
      { ah.tools_of(c)[1].name, ah.tools_of(c)[2].name })
    function Customer.spend()
      return "later"
    end
    local reply = run { tools = { giving("find", function() return c end) },
      model = ah.scripted { turn(call "find", call "customer_c_spend",
        call "customer_c_sameAgain"), "ok" } }
    assert.same({ "later", "later" }, { table.unpack(results(reply), 2) })
  end)

  it("gives handlers their arguments and ctx", function()
    local Customer, seen = ah.entity { name = "Customer" }, nil
    Customer:tool { name = "pay", description = "Pays.", params = { cents = "integer = 7" },
      handler = function(self, args, ctx)
        ah.sleep(0.001)
        seen = { self.id, args.cents, ctx.tool_name }
        return nil, "not today"
      end }
    local reply = run { tools = { giving("find", function() return Customer { id = "c" } end) },
      model = ah.scripted { turn(call "find", call "customer_c_pay",
        call("customer_c_pay", { cents = "x" })), "ok" } }
    assert.same({ "c", 7, "customer_c_pay" }, seen)
    assert.equal("not today", results(reply)[2])
    assert.matches("^Tool validation failed: ", results(reply)[3])
  end)

  it("tells what it finds wrong with a declaration, at the script's line", function()
    local Customer = customer_class()
    local function bad(pattern, f, ...)
      local ok, err = pcall(f, ...)
      assert.is_false(ok)
      assert.matches(pattern, tostring(err))
      assert.matches("entity_spec.lua:%d+: ", tostring(err))
    end
    local function entity(fields)
      return function() ah.entity(fields) end
    end
    local function tool(fields)
      fields.description = fields.description or "D."
      return function() Customer:tool(fields) end
    end
    bad("unknown field 'nam' %(did you mean 'name'", entity { nam = "x" })
    bad("name must be 1 to 64", entity { name = "a b" })
    bad("prefix must be 1 to 24", entity { name = "A", prefix = "a b" })
    bad("prefix must be 1 to 24", entity { name = ("a"):rep(30) })
    bad("fields%[2%]: 'a' is listed twice", entity { name = "A", fields = { "a", "a" } })
    bad("'id' must be the name of a field", entity { name = "A", id = 5 })
    bad("'getAverageSpend' is declared twice", tool { name = "getAverageSpend", handler = quiet })
    bad("the class has no method 'x'", tool { method = "x" })
    bad("give a name and a handler", tool { name = "x" })
    bad("this one has 4 parameters", tool { name = "x", handler = function(_, _, _, _) end })
    bad("and may have 48", tool { name = ("m"):rep(41), handler = quiet })
    bad("expected a table, found a number", function() Customer(5) end)
    bad("has a metatable already, that of the entity Customer",
      function() ah.entity { name = "A" } (Customer {}) end)
    bad("'__index' cannot be set", function() Customer.__index = {} end)
    bad("'tool' of a class cannot be set", function() Customer.tool = 1 end)
    bad("expected an instance of an entity, found a table", function() ah.tools_of {} end)
    bad("expected an instance of an entity, found a number", function() ah.retract(5) end)
    bad("'discover' must be true or a table", function() run { discover = 5 } end)
    bad("unknown field 'kep'", function() run { discover = { kep = true } } end)
  end)

  it("is left as it was by a declaration that is refused", function()
    local Customer = customer_class()
    assert.is_false(pcall(function()
      Customer:tool { name = "x", description = "", handler = function() return 1 end }
    end))
    assert.is_nil(Customer {}.x)
    assert.equal(1, #ah.tools_of(Customer { id = 1 }))
  end)

  it("tells of an instance what a model would be told", function()
    local Customer = customer_class()
    local c = Customer { id = "c-1" }
    assert.is_true(ah.is_provider(c))
    assert.is_false(ah.is_provider(ah.entity { name = "None" } { id = 1 }))
    assert.is_false(ah.is_provider { id = 1, getAverageSpend = quiet })
    assert.is_false(ah.is_provider(nil))
    assert.same({ { name = "customer_c1_getAverageSpend", method = "getAverageSpend",
      description = "Average monthly spend.",
      params = { type = "object", properties = {}, additionalProperties = false } } },
      ah.tools_of(c))
    local ok, err = pcall(ah.tools_of, Customer {})
    assert.is_false(ok)
    assert.equal("invalid_tool_provider", err.code)
    assert.equal("Customer", err.provider_class)
    assert.equal("missing instanceIdProperty: id", err.reason)
  end)
end)

describe("what a model sees of an entity", function()
  local function shown(value)
    return ah.json.encode(value)
  end

  it("are its fields, without the underscored ones and what cannot be JSON", function()
    local Customer, Repo = customer_class(), ah.entity { name = "Repo" }
    assert.equal('{"a":{"b":[1]},"id":1}', shown(Customer { id = 1, a = { b = { 1 } }, _secret = 1,
      f = quiet, repo = Repo {}, repos = { Repo {} }, nan = 0 / 0, [5] = 1, deep = { x = quiet },
      co = coroutine.create(quiet), hole = { [1] = 1, [3] = 1 } }))
  end)

  it("are the fields that the class names", function()
    local Order = ah.entity { name = "Order", fields = { "id" } }
    local Customer = customer_class { fields = { "name", "_x", "orders", "id", "f", "none" } }
    local c = Customer { id = 1, name = "J", secret = 1, _x = 2, f = quiet,
      orders = { Order { id = 7, cents = 1 } } }
    assert.equal('{"_x":2,"id":1,"name":"J","orders":[{"id":7}]}', shown(c))
    assert.equal('{"list":[{"_x":2,"id":1,"name":"J","orders":[{"id":7}]}]}',
      shown { list = { c } })
    c.orders[2] = c -- contains itself
    assert.equal('{"_x":2,"id":1,"name":"J"}', shown(c))
  end)

  it("ends where entities name each other", function()
    local Node = ah.entity { name = "Node", fields = { "id", "next" } }
    local first = Node { id = 1 }
    local last = first
    for i = 2, 100 do
      last.next = Node { id = i }
      last = last.next
    end
    assert.equal('{"id":1,"next":{"id":2,"next":{"id":3,"next":{"id":4}}}}', shown(first))
  end)

  it("are of instances alone, whatever scripts move from metatable to metatable", function()
    local thing = ah.entity { name = "thing", fields = { "id" } } { id = "1", other = 2 }
    local meta, addresses = getmetatable(thing), {}
    for key, value in pairs(meta) do
      if type(key) == "userdata" then
        addresses[key] = value
      end
    end
    assert.equal('{"id":"2"}', shown(setmetatable({ id = "2" }, meta)))
    for key, value in pairs(addresses) do
      for _, other in pairs { value, print, ah.null, ah.fail "x", thing, "x", 1 } do
        local ok, said = pcall(shown, setmetatable({ id = "3", n = 1 }, { [key] = other }))
        assert(ok and said == '{"id":"3","n":1}'
          or said:find "of a class that no longer exists cannot be JSON", said)
      end
    end
    assert.equal('{"id":"1"}', shown(thing))
  end)

  it("is checked against the tool's result", function()
    local Customer = customer_class { fields = { "id" } }
    local reply = run { model = ah.scripted { turn(call "find"), "ok" }, tools = { ah.tool {
      name = "find", description = "Finds.", result = { type = "object", required = { "id" },
        properties = { id = { type = "integer" } }, additionalProperties = false },
      handler = function() return Customer { id = 5, x = 1 } end } } }
    assert.same({ '{"id":5}' }, results(reply))
    assert.equal(1, #reply.injected_tools)
  end)
end)

describe("a stateful entity", function()
  local function cart_class(fields)
    fields = fields or {}
    fields.name = "ShoppingCart"
    fields.prefix = "cart"
    local Cart = ah.entity(fields)
    Cart:tool { name = "addItem", description = "Adds.", params = { product = "string" },
      parallel = fields.stateless,
      handler = function(self, args)
        self.items[#self.items + 1] = { product = args.product }
        self.count = #self.items
        if args.product == "bad" then
          self.items = {}
          setmetatable(self, nil)
          error("no bad items", 0)
        end
        return { itemCount = #self.items }
      end }
    Cart:tool { name = "getContents", description = "Contents.",
      handler = function(self) return ah.array(self.items) end }
    return Cart
  end

  it("keeps its state: the cart", function()
    local Cart = cart_class()
    local reply = run { tools = { giving("open", function()
      return Cart { id = "c1", items = {} }
    end) }, model = ah.scripted { turn(call "open"),
      turn(call("cart_c1_addItem", { product = "tea" }),
        call("cart_c1_addItem", { product = "jam" })),
      turn(call "cart_c1_getContents"), "ok" } }
    assert.same({ '{"itemCount":1}', '{"itemCount":2}', '[{"product":"tea"},{"product":"jam"}]' },
      { table.unpack(results(reply), 2) })
  end)

  it("is set back in place by a method that fails", function()
    local Cart = cart_class()
    local tea = { product = "tea" }
    local items = { tea }
    local cart = Cart { id = "c1", items = items, again = items, owner = { cart = true } }
    cart.owner.of = cart -- a circle
    local meta = getmetatable(cart)
    local open = giving("open", function() return cart end)
    local reply = run { tools = { open }, model = ah.scripted {
      turn(call "open", call("cart_c1_addItem", { product = "bad" }), call "cart_c1_getContents"),
      "ok" } }
    assert.equal("Tool 'cart_c1_addItem' execution failed: no bad items", results(reply)[2])
    assert.equal('[{"product":"tea"}]', results(reply)[3])
    assert.equal(meta, getmetatable(cart))
    assert.equal(items, cart.items)
    assert.equal(items, cart.again)
    assert.equal(tea, items[1])
    assert.is_nil(items[2])
    assert.is_nil(cart.count)
    assert.equal(cart, cart.owner.of)
  end)

  it("is left alone where it is stateless, and where others own what it holds", function()
    local Cart = cart_class { stateless = true }
    local Shelf = ah.entity { name = "Shelf" }
    local shelf, closed = Shelf { n = 0 }, setmetatable({ n = 0 }, { __metatable = false })
    Shelf:tool { name = "t", description = "T.", handler = quiet }
    local Box = ah.entity { name = "Box" }
    Box:tool { name = "fail", description = "Fails.", handler = function(self)
      self.shelf.n, self.closed.n, self.own.n = 1, 1, 1
      error "no"
    end }
    local cart, box = Cart { id = 1, items = {} }, Box { id = 1, shelf = shelf, closed = closed,
      own = { n = 0 } }
    run { tools = { giving("open", function() return { cart, box } end) }, model = ah.scripted {
      turn(call "open", call("cart_1_addItem", { product = "bad" }), call "box_1_fail"), "ok" } }
    assert.equal(1, cart.count)
    assert.same({ 1, 1, 0 }, { shelf.n, closed.n, box.own.n })
  end)

  it("with more than can be copied must help itself", function()
    local Big = ah.entity { name = "Big" }
    local function fail(self)
      self.n = 2
      error("no", 0)
    end
    Big:tool { name = "fail", description = "Fails.", handler = fail }
      :tool { name = "look", description = "Looks.", stateless = true,
        handler = function(self) return self.n end }
    local big = Big { id = 1, n = 1, values = {} }
    for i = 1, 10001 do
      big.values[i] = i
    end
    local function attempt()
      return results(run { tools = { giving("open", function() return big end) }, hint = false,
        model = ah.scripted { turn(call "open", call "big_1_fail", call "big_1_look"), "ok" } })
    end
    local said = attempt()
    assert.matches("an entity Big holds more than 10000 values", said[2])
    assert.matches("snapshot and restore, or declare stateless = true", said[2])
    assert.equal("1", said[3])
    function Big:snapshot()
      return self.n
    end
    function Big:restore(n)
      self.n = n
    end
    assert.same({ "Tool 'big_1_fail' execution failed: no", "1" }, { table.unpack(attempt(), 2) })
  end)

  it("belongs to one call at a time, and to the calls around it", function()
    local Cart, at_work = ah.entity { name = "Cart" }, {}
    local function together(_, args)
      at_work[#at_work + 1] = args.n
      ah.sleep(0.001)
      at_work[#at_work + 1] = -args.n
    end
    Cart:tool { name = "put", description = "Puts.", parallel = true, params = { n = "integer" },
      handler = function(self, args)
        together(self, args)
        self[args.n] = true
      end }
    Cart:tool { name = "look", description = "Looks.", parallel = true, stateless = true,
      params = { n = "integer" }, handler = together }
    Cart:tool { name = "ask", description = "Asks.", handler = function(self)
      self.asked = true
      local reply = run { discover = true, tools = { giving("me", function() return self end) },
        model = ah.scripted { turn(call "me", call("cart_1_put", { n = 3 })), "inner" } }
      return results(reply)[2]
    end }
    local cart, other = Cart { id = 1 }, Cart { id = 2 }
    local reply = run { tools = { giving("open", function() return { cart, other } end) },
      model = ah.scripted {
        turn(call "open"),
        turn(call("cart_1_put", { n = 1 }), call("cart_2_put", { n = 1 }),
          call("cart_1_put", { n = 2 }), call("cart_1_look", { n = 3 }),
          call("cart_1_look", { n = 4 })),
        turn(call "cart_1_ask"), "ok" } }
    assert.same({ "OK", "OK", "OK", "OK", "OK", "OK" }, { table.unpack(results(reply), 2) })
    assert.same({ true, true, true, true }, { cart[1], cart[2], cart[3], cart.asked })
    -- 2 waits until the first batch is done; calls that do not change the cart join that batch
    assert.same({ 1, 1, -1, -1, 2, 3, 4, -2, -3, -4, 3, -3 }, at_work)
  end)

  it("is refused to a parallel call that takes it into its transaction meanwhile", function()
    local Cart = cart_class()
    local cart = Cart { id = 1, items = {} }
    local take = ah.tool { name = "take", description = "Takes.", parallel = true,
      handler = function(_, ctx)
        ctx:enlist(cart)
        ah.sleep(0.001)
      end }
    local reply = run { tools = { take },
      model = ah.scripted { turn(call "take", call "take"), "ok" } }
    assert.equal("OK", results(reply)[1])
    assert.matches("another call is at work on this object", results(reply)[2])
  end)

  it("can be enlisted by any handler", function()
    local Cart = cart_class()
    local cart = Cart { id = 1, items = {} }
    local spoil = giving("spoil", function(_, ctx)
      ctx:enlist(cart)
      cart.items[1] = 5
      error "no"
    end)
    run { model = ah.scripted { turn(call "spoil"), "ok" }, tools = { spoil } }
    assert.same({}, cart.items)
  end)
end)

describe("the life of instances", function()
  local weak = setmetatable({}, { __mode = "k" })

  local function count()
    collectgarbage()
    collectgarbage()
    local n = 0
    for _ in pairs(weak) do
      n = n + 1
    end
    return n
  end

  local function agent(Customer, turns, fields)
    fields = fields or {}
    fields.model, fields.log = ah.scripted(turns), quiet
    if fields.discover == nil then
      fields.discover = true
    end
    fields.tools = { giving("find_customer", function()
      local c = Customer { id = "c-1", spend = 5 }
      weak[c] = true
      return c
    end) }
    return ah.agent(fields)
  end

  local SPEND = "customer_c1_getAverageSpend"
  local STALE = "stale entity: Customer c-1 is no longer available. "
    .. "Call find_customer to find it again."
  local TURNS = { turn(call "find_customer"), "ok", turn(call(SPEND)), "ok",
    turn(call "find_customer", call(SPEND)), "ok" }

  it("lasts as long as the conversation, without a word of the script", function()
    for _, discover in ipairs { true, {}, { keep = true } } do
      local a = agent(customer_class(), TURNS, { discover = discover })
      assert(a:run "x")
      assert.equal(1, count())
      assert.equal('{"amount":5}', results(a:run "y")[1])
      assert.equal('{"amount":5}', results(a:run "z")[2])
      sound.check(a:transcript())
      a = nil -- luacheck: ignore
      assert.equal(0, count())
    end
  end)

  it("ends with ah.run, whose conversation is over", function()
    local Customer, alive = customer_class(), setmetatable({}, { __mode = "k" })
    local reply = assert(ah.run { discover = true, tools = { giving("find_customer", function()
      local c = Customer { id = "c-1", spend = 5 }
      alive[c] = true
      return c
    end) }, model = ah.scripted { turn(call "find_customer"), "ok" }, "x" })
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(alive))
    assert.equal("ok", tostring(reply))
  end)

  it("ends with each run where the script says so; they are stale until they come again", function()
    local a = agent(customer_class(), TURNS, { discover = { keep = false } })
    assert(a:run "x")
    assert.equal(0, count())
    assert.same({ "Tool '" .. SPEND .. "' was not run: " .. STALE }, results(a:run "y"))
    assert.equal('{"amount":5}', results(a:run "z")[2])
    sound.check(a:transcript())
  end)

  it("goes on where they are to be kept", function()
    local a = agent(customer_class(), TURNS, { discover = { keep = true } })
    assert(a:run "x")
    assert.equal(1, count())
    assert.same({ '{"amount":5}' }, results(a:run "y"))
    a = nil -- luacheck: ignore
    assert.equal(0, count())
  end)

  it("begins anew where the class finds them, which may wait", function()
    local Customer
    Customer = customer_class { find = function(id)
      ah.sleep(0.001)
      return id == "c-1" and Customer { id = id, spend = 77 } or nil
    end }
    local a = agent(Customer, TURNS, { discover = { keep = false } })
    assert(a:run "x")
    assert.same({ '{"amount":77}' }, results(a:run "y"))
  end)

  it("does not begin anew with another one, with none, or with an error", function()
    local Customer, gives
    Customer = customer_class { find = function() return gives() end }
    for _, case in ipairs {
      { function() end, "stale entity" },
      { function() return Customer { id = "c-2" } end, "stale" },
      { function() error "gone" end, "gone" },
    } do
      gives = case[1]
      local a = agent(Customer, TURNS, { discover = { keep = false } })
      assert(a:run "x")
      assert.matches(case[2], results(a:run "y")[1])
    end
  end)

  it("begins anew where the class finds a plain table, which becomes an instance", function()
    local found
    local Customer = customer_class { find = function(id)
      found = { id = id, spend = 78 }
      return found
    end }
    local a = agent(Customer, TURNS, { discover = { keep = false } })
    assert(a:run "x")
    assert.same({ '{"amount":78}' }, results(a:run "y"))
    assert.is_true(ah.is_provider(found))
  end)

  it("is not begun anew by something else, which is told with the line of find", function()
    local Other = ah.entity { name = "Other" }
    local gives, Customer
    local line = debug.getinfo(1, "l").currentline + 1
    Customer = customer_class { find = function() return gives() end }
    for _, case in ipairs {
      { function() return "c-1" end, "must return nil, a table or an instance, found a string" },
      { function() return false end, "found a boolean" },
      { function() return setmetatable({ id = "c-1" }, {}) end,
        "found a table with a metatable of its own" },
      { function() return Customer { id = "c-2" } end, "returned another entity than c%-1" },
      { function() return { id = "c-2" } end, "returned another entity than c%-1" },
      { function() return Other { id = "c-1" } end, "returned another entity than c%-1" },
      { function() return nil end, nil }, { function() end, nil },
    } do
      gives = case[1]
      local warned = {}
      local a = agent(Customer, TURNS, { discover = { keep = false }, on = { warning = function(e)
        warned[#warned + 1] = e.message
      end } })
      assert(a:run "x")
      assert.matches("stale entity", results(a:run "y")[1])
      assert.equal(case[2] and 1 or 0, #warned)
      if case[2] then
        assert.matches("entity_spec.lua:" .. line .. ": find of entity '.*' .*" .. case[2],
          warned[1])
      end
    end
  end)

  it("ends with ah.retract, in a call that succeeds", function()
    local Customer, c = customer_class(), nil
    local find = giving("find", function()
      c = c or Customer { id = "c-1", spend = 5 }
      return c
    end)
    local function drop(fails)
      return giving(fails and "drop_not" or "drop", function()
        local n = ah.retract(c)
        if fails then
          error "no"
        end
        return n
      end)
    end
    local reply, _, events = run({ tools = { find, drop(true), drop(false) }, model = ah.scripted {
      turn(call "find"), turn(call "drop_not"), turn(call(SPEND)), turn(call "drop"),
      turn(call(SPEND)), turn(call "find"), turn(call(SPEND)), "ok" } }, "tools_removed",
      "tool_provider_discovered", "tool_loop_iteration")
    local said = results(reply)
    assert.equal('{"amount":5}', said[3])
    assert.equal("1", said[4])
    assert.equal("Tool '" .. SPEND .. "' is no longer available: "
      .. STALE:gsub("_customer", ""), said[5])
    assert.equal('{"amount":5}', said[7])
    assert.same({ SPEND, SPEND }, reply.injected_tools)
    assert.same({ SPEND }, reply.removed_tools)
    assert.equal(0, events[7].discovered_provider_count)
    sound.check(reply:transcript())
  end)

  it("ends with ah.retract outside of runs, too", function()
    local Customer = customer_class()
    local a = agent(Customer, TURNS, { discover = { keep = true } })
    assert(a:run "x")
    assert.equal(1, ah.retract(Customer { id = "c-1" }))
    assert.equal(0, ah.retract(Customer { id = "c-1" }))
    assert.equal(0, count())
    assert.matches("is no longer available: stale entity", results(a:run "y")[1])
  end)

  it("ends when its tools are removed", function()
    local a = agent(customer_class(), TURNS, { discover = { keep = true } })
    assert(a:run "x")
    a:remove_tools(SPEND)
    assert.equal(0, count())
  end)

  it("goes on in a loaded conversation where the class finds them", function()
    local Customer
    Customer = customer_class { find = function(id) return Customer { id = id, spend = 99 } end }
    local path = os.tmpname()
    local a = agent(Customer, TURNS)
    assert(a:run "x")
    assert(a:save(path))
    for _, expected in ipairs { '{"amount":99}', STALE } do
      if expected == STALE then
        Customer = customer_class()
      end
      local find = giving("find_customer", function() return Customer { id = "c-1", spend = 5 } end)
      local b = assert(ah.load(path, { model = ah.scripted { turn(call(SPEND)), "ok",
        turn(call "find_customer", call(SPEND)), "ok" }, discover = true, log = quiet,
        tools = { find } }))
      assert.truthy(results(b:run "y")[1]:find(expected, 1, true))
      local reply = b:run "z"
      assert.equal('{"amount":5}', results(reply)[2])
      assert.same({}, reply.injected_tools)
      sound.check(b:transcript())
    end
    os.remove(path)
  end)

  it("leaves tools of another definition stale in a loaded conversation", function()
    local path = os.tmpname()
    local a = agent(customer_class(), TURNS)
    assert(a:run "x")
    assert(a:save(path))
    local Other = ah.entity { name = "Customer" }
    Other:tool { name = "getAverageSpend", description = "Something else.", handler = quiet }
    local b = assert(ah.load(path, { model = ah.scripted { turn(call(SPEND)), "ok" }, log = quiet,
      discover = true, tools = {} }))
    assert.truthy(results(b:run "y")[1]:find(STALE, 1, true))
    os.remove(path)
  end)

  it("gives a saved name to no other entity, and to the same one again", function()
    local path, Unknown = os.tmpname(), customer_class { name = "Unknown", prefix = "customer" }
    local a = agent(Unknown, TURNS)
    assert(a:run "x")
    local text = a:transcript():gsub('"class":"Unknown"', '"class":"Later"')
      :gsub("%(Unknown", "(Later")
    local file <close> = assert(io.open(path, "w"))
    file:write(text):flush()
    local Later, id
    local find = giving("find_customer", function() return Later { id = id, spend = 7 } end)
    local b = assert(ah.load(path, { model = ah.scripted { turn(call(SPEND)), "ok",
      turn(call "find_customer"), "ok", turn(call(SPEND)), "ok", turn(call "find_customer"), "ok",
      turn(call "find_customer", call(SPEND)), "ok" }, discover = true, log = quiet,
      tools = { find } }))
    assert.matches("stale entity: Later c%-1", results(b:run "not declared yet")[1])
    Later, id = customer_class { name = "Later", prefix = "customer" }, "c1"
    assert.same({ "customer_c1_2_getAverageSpend" }, b:run("another").injected_tools)
    assert.matches("stale entity: Later c%-1", results(b:run "still stale")[1])
    id = "c-1"
    assert.same({}, b:run("the same").injected_tools)
    assert.equal('{"amount":7}', results(b:run "again")[2])
    Later = ah.entity { name = "Later", prefix = "customer" }
    os.remove(path)
    sound.check(b:transcript())
  end)

  it("is not shared with a fork", function()
    local Customer
    local function find(id)
      return Customer { id = id, spend = 1 }
    end
    Customer = customer_class { find = find }
    local a = agent(Customer, { turn(call "find_customer"), "ok", turn(call(SPEND)), "ok",
      turn(call(SPEND)), "ok" }, { discover = { keep = true } })
    assert(a:run "x")
    local b = a:fork()
    assert.same({ '{"amount":1}' }, results(b:run "y")) -- found again
    assert.same({ '{"amount":5}' }, results(a:run "z"))
  end)
end)

-- Random entities are found, found again as other instances, retracted, banned with their tools,
-- kept or released. The model's tools equal a replay of the conversation, no name occurs twice, and
-- every call reaches the newest instance of the entity that it names.
describe("any order of events", function()
  local ROUNDS, STEPS = 24, 24

  -- Returns the tools at the end of a transcript, from its entries: { name = true }; false:
  -- removed.
  local function replay(text)
    local there = {}
    for _, entry in ipairs(sound.entries(text)) do
      for _, tool in ipairs(entry.type == "tools_added" and entry.tools or {}) do
        assert(not there[tool.name], tool.name .. " is added twice")
        there[tool.name] = true
      end
      for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
        assert(there[name], name .. " is not there")
        there[name] = false
      end
    end
    return there
  end

  -- Asserts that all available tools are offered; other offered tools were removed (they stay
  -- declared).
  local function compare(there, offered, available)
    local seen, n = {}, 0
    for _, tool in ipairs(offered) do
      assert(not seen[tool.name], tool.name .. " is offered twice")
      assert(there[tool.name] ~= nil, tool.name .. " was never added")
      seen[tool.name] = true
    end
    for name, is in pairs(there) do
      assert(not is or seen[name], name .. " is not offered")
      n = n + (is and 1 or 0)
    end
    assert.equal(n, available)
  end

  -- Returns a world: random classes, the newest instances by class and id, and functions that make
  -- and pick instances.
  local function world(random)
    local w = { newest = {}, made = 0, known = {}, classes = {} }
    local IDS = { "c-1", "c1", "c.1", 7, "---", ("x"):rep(80), ("x"):rep(81) }
    for i, name in ipairs { "Customer", "Order" } do
      local shared = i == 2 and random(2) == 1
      local Class = ah.entity { name = name, prefix = shared and "customer" or nil }
      for _, method in ipairs { "who", "fail", "again" } do
        local function handler(self)
          self.touched = (self.touched or 0) + 1
          if method == "fail" then
            error("no", 0)
          end
          return method == "again" and w.make(Class, self.id) or { made = self.made }
        end
        Class:tool { name = method, description = "Method " .. method .. ".", handler = handler }
      end
      w.classes[i] = Class
    end
    function w.make(Class, id)
      w.made = w.made + 1
      local instance = Class { id = id, made = w.made }
      w.newest[Class.name .. " " .. tostring(id)] = instance
      return instance
    end
    function w.any()
      return w.make(w.classes[random(2)], IDS[random(#IDS)])
    end
    function w.some()
      local list = {}
      for i = 1, random(0, 3) do
        list[i] = w.any()
      end
      return ah.array(list)
    end
    function w.known_one()
      local keys = {}
      for key in pairs(w.newest) do
        keys[#keys + 1] = key
      end
      table.sort(keys)
      return w.newest[keys[random(math.max(#keys, 1))]]
    end
    return w
  end

  -- Returns the entity of an offered tool and its method, from the description for the model.
  local function owner(tool)
    return tool.description:match("%((%u%a+ .+)%)$"), tool.description:match("^Method (%a+)%.")
  end

  local function step(w, random, request, state)
    local offered = request.tools
    if random(3) == 1 then
      return turn(call(({ "find", "list", "drop" })[random(3)]))
    end
    local tool = offered[random(#offered)]
    local whose, method = owner(tool)
    if whose then
      state.expected = { method = method, newest = w.newest[whose], is = state.there[tool.name] }
    end
    return turn(call(tool.name))
  end

  local function check(expected, content, keeps)
    local said = content:gsub("\n\nNew tools:.*", "")
    if not expected.is then
      assert.matches("is no longer available: stale entity: ", said)
      return "gone"
    elseif said:find("stale entity", 1, true) then
      assert.is_false(keeps)
      return "stale"
    elseif expected.method == "who" then
      assert.equal(ah.json.encode { made = expected.newest.made }, said)
    elseif expected.method == "fail" then
      assert.matches("execution failed: no$", said)
    else
      assert.truthy(said:find('"made":', 1, true), said)
    end
    return expected.method
  end

  it("leaves tools, transcript and calls in step", function()
    local seen = {}
    for round = 1, ROUNDS do
      math.randomseed(round)
      local random, state = math.random, { steps = 0, keeps = round % 2 == 0 }
      local w = world(random)
      local model = ah.scripted(function(request)
        state.there = replay(state.agent:transcript())
        compare(state.there, request.tools, state.available)
        local last = request.entries[#request.entries]
        if state.expected and last.type == "tool_result" then
          local kind = check(state.expected, last.content, state.keeps)
          seen[kind] = (seen[kind] or 0) + 1
        end
        state.expected = nil
        state.steps = state.steps + 1
        return state.steps % 8 == 0 and "ok" or step(w, random, request, state)
      end)
      state.agent = ah.agent { model = model, log = quiet, max_iterations = 1000,
        loop_detector = false, max_tools = random(4, 60), max_depth = random(1, 4),
        discover = { keep = state.keeps },
        on = { tool_loop_iteration = function(e) state.available = e.available_tool_count end },
        tools = { giving("find", w.any), giving("list", w.some), giving("drop", function()
          local one = w.known_one()
          return one and ah.retract(one) or 0
        end) } }
      while state.steps < STEPS do
        assert(state.agent:run("go"))
      end
      sound.check(state.agent:transcript())
    end
    for _, kind in ipairs { "who", "fail", "again", "stale", "gone" } do
      assert.is_true((seen[kind] or 0) > 5, kind .. " was seen " .. (seen[kind] or 0) .. " times")
    end
  end)
end)

describe("examples/customers.lua", function()
  it("shows the flows of seed 001", function()
    local command = os.getenv("AGENTHOST_BUILD") or "./build"
    local p <close> = assert(io.popen("env -u AGENTHOST_MODEL " .. command
      .. "/agenthost -v examples/customers.lua 2>&1"))
    local text = p:read "a"
    for _, words in ipairs {
      "discovered Customer c-456: customer_c456_getAverageSpend, customer_c456_getRecentOrders",
      "discovered Order ord-789: order_ord789_getLineItems, order_ord789_calculateTotal",
      'cart_cart1_getContents -> [{"product":"Pen","quantity":2},{"product":"Desk","quantity":1}]',
      "\nJohn Smith's average spend is $450/month.\n",
    } do
      assert.truthy(text:find(words, 1, true), words .. " is not in\n" .. text)
    end
  end)
end)
