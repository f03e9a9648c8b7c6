-- Policies that ask about the changes of a call, after its handler: exactly what was shown is
-- committed, or nothing. Asks that wait in a store are in spec/lua/changes_wait_spec.lua.
local ah = require "agenthost"
local of_type = require "support.of_type"
local results = require "spec.support.results"

local Item = ah.type { name = "Item", fields = { name = "string" } }

local function call(name, arguments)
  return { name = name, arguments = arguments or {} }
end

local function calling(...)
  return ah.scripted { { calls = { ... } }, "Done." }
end

-- A shop: `fs` has a list, `buy` strikes an item off it, and gives it to the session.
local function shop(fields)
  local fs = ah.filesystem { files = { list = "milk\nbread\n" } }
  local session = ah.session { types = { Item } }
  local events = {}
  local buy = ah.tool { name = "buy", description = "Buys.", params = { what = "string" },
    parallel = fields.parallel,
    handler = function(args, ctx)
      if fields.begin then
        fields.begin(args, ctx)
      end
      assert(fs:edit("list", args.what .. "\n", ""))
      session:dispatch(Item { name = args.what })
      return "bought " .. args.what
    end }
  local def = { tools = { buy }, session = session, resources = { filesystem = fs },
    on = function(e) events[#events + 1] = e end, log = function() end,
    model = calling(call("buy", { what = "milk" })),
    policies = { { after = function(c) return c.name == "buy" and "ask" or nil, "it buys" end } } }
  for name, value in pairs(fields) do
    if name ~= "begin" and name ~= "parallel" then
      def[name] = value
    end
  end
  return { fs = fs, session = session, events = events, def = def, buy = buy }
end

local function run(s)
  s.def[1] = "Go."
  local reply = assert(ah.run(s.def))
  return results(reply), reply
end

local NOT = "Tool 'buy' was run, and its changes were not approved"

describe("a policy that asks about changes", function()
  it("has them committed as they were shown, with a yes", function()
    local seen
    local s = shop { approve = function(c)
      seen = { c = c, list = c:changes() }
      return true
    end }
    assert.same({ "bought milk" }, (run(s)))
    assert.equal("bread\n", s.fs:read "list")
    assert.equal(1, #s.session[Item]:all())
    assert.equal("it buys", seen.c.reason)
    assert.equal("bought milk", seen.c.result)
    assert.same({ what = "milk" }, seen.c.arguments)
    assert.same({ "file", "slice" }, { seen.list[1].kind, seen.list[2].kind })
    assert.equal("--- a/list\n+++ b/list\n@@ -1,2 +1,1 @@\n-milk\n bread\n", seen.list[1].diff)
    assert.same({ Item = "milk" }, { [seen.list[2].name] = seen.list[2].added[1].name })
  end)

  it("has none of them, and a result that says why, with a no", function()
    local s = shop { approve = function() return false, "no more milk" end }
    local told, reply = run(s)
    assert.same({ NOT .. ": no more milk" }, told)
    assert.equal("milk\nbread\n", s.fs:read "list")
    assert.same({}, s.session[Item]:all())
    assert.falsy(reply:transcript():find("bought milk", 1, true))
    local invoked = of_type(s.events, "tool_invoked")
    assert.same({ 1, false }, { #invoked, invoked[1].success })
  end)

  it("changes nothing while the person decides", function()
    local s
    s = shop { approve = function()
      ah.sleep(0.001)
      assert(s.fs:read "list" == "milk\nbread\n" and #s.session[Item]:all() == 0)
      return true
    end }
    assert.same({ "bought milk" }, (run(s)))
  end)

  it("is asked in order: policies, approve, front ends; nobody means no", function()
    local seen = {}
    local s = shop { approve = function() seen[#seen + 1] = "approve" end, asks = function(ask)
      seen[#seen + 1] = ask.kind .. " " .. ask.question .. " " .. ask.result .. " " .. #ask.changes
      assert.is_nil(ask.schema.properties.arguments)
      return true
    end }
    assert.same({ "bought milk" }, (run(s)))
    assert.same({ "approve", "approval it buys bought milk 2" }, seen)
    assert.equal("front end", of_type(s.events, "ask_closed")[1].by)
    local told = run(shop {})
    assert.equal(NOT .. ": it buys (it needs an appr", told[1]:sub(1, #NOT + 27))
  end)

  it("is shown in the event, after those of policies", function()
    local s = shop { approve = function() return true end }
    run(s)
    local asked = of_type(s.events, "ask")
    assert.equal(1, #asked)
    assert.same({ "approval", "it buys", "bought milk", "list" }, { asked[1].kind,
      asked[1].question, asked[1].result, asked[1].changes[1].path })
    assert.equal("ask", of_type(s.events, "policy")[1].verdict)
  end)

  it("takes no new arguments", function()
    local s = shop { asks = function(ask)
      local ok, err = ask:respond { approved = true, arguments = { what = "bread" } }
      assert(not ok and err.code == "tool_validation", tostring(err))
      return false, "never"
    end }
    assert.same({ NOT .. ": never" }, (run(s)))
    s = shop { approve = function() return true, { what = "bread" } end }
    assert.same({ NOT .. ": the approval function failed" }, (run(s)))
    assert.equal("milk\nbread\n", s.fs:read "list")
  end)

  it("is asked once the later policies have judged, about what they leave", function()
    local s = shop { approve = function(c) return c.result == "something", c.result end,
      policies = {
        { after = function() return "ask", "first" end },
        { after = function() return "replace", "something" end },
        { after = function() return "ask", "second" end } } }
    assert.same({ "something" }, (run(s)))
    assert.equal("first; second", of_type(s.events, "ask")[1].question)
    s = shop { approve = error, policies = { { after = function() return "ask" end },
      { after = function() return "block", "no" end } } }
    assert.same({ "Tool 'buy' was run, and its result was withheld: no" }, (run(s)))
    assert.same({}, of_type(s.events, "ask"))
  end)

  it("is not asked about a failure, or by a shadow", function()
    local s = shop { begin = function() error "broken" end, approve = error }
    assert.truthy(run(s)[1]:find("broken", 1, true))
    assert.same({}, of_type(s.events, "ask"))
    s = shop { approve = error, policies = { { shadow = true, after = function()
      return "ask"
    end } } }
    assert.same({ "bought milk" }, (run(s)))
  end)

  it("may ask before and after: two approvals", function()
    local seen = {}
    local s = shop { approve = function(c)
      seen[#seen + 1] = c.reason .. (c.changes and " " .. #c:changes() or "")
      return true
    end, policies = { { before = function() return "ask", "before" end,
      after = function() return "ask", "after" end } } }
    assert.same({ "bought milk" }, (run(s)))
    assert.same({ "before", "after 2" }, seen)
  end)

  it("hides keys in what is shown", function()
    ah.agent({ model = "openai/none", api_key = "s3cr3t-key-123" }):close()
    local seen
    local s = shop { begin = function(_, ctx) ctx.filesystem:write("key", "s3cr3t-key-123\n") end,
      approve = function(c)
        seen = ah.json.encode(c:changes())
        return true
      end }
    assert.same({ "bought milk" }, (run(s)))
    assert.falsy(seen:find("s3cr3t", 1, true))
    assert.truthy(seen:find("+[secret]", 1, true), seen)
    assert.equal("s3cr3t-key-123\n", s.fs:read "key")
  end)
end)

describe("approved changes", function()
  it("are a conflict if a file they are based on has changed", function()
    local s
    s = shop { approve = function()
      s.fs:write("list", "milk\nbread\ncheese\n") -- an edit would be repeated on it
      return true
    end }
    assert.same({ "Tool 'buy' execution failed: 'list' was changed meanwhile by another call: "
      .. "look at it again and repeat" }, (run(s)))
    assert.equal("milk\nbread\ncheese\n", s.fs:read "list")
    assert.same({}, s.session[Item]:all())
  end)

  it("are a conflict if a slice has changed, also by a call side by side", function()
    local s = shop { parallel = true, approve = function() return true end,
      model = calling(call("buy", { what = "milk" }), call("buy", { what = "bread" })) }
    local told = run(s)
    assert.equal("bought milk", told[1])
    assert.truthy(told[2]:find("was changed meanwhile by another call", 1, true), told[2])
    assert.equal("bread\n", s.fs:read "list")
    assert.equal(1, #s.session[Item]:all())
    s = shop { approve = function(c)
      s.session:dispatch(Item { name = "cheese" })
      return c ~= nil
    end }
    assert.truthy(run(s)[1]:find("slice 'Item' was changed meanwhile", 1, true))
    assert.equal(1, #s.session[Item]:all())
    assert.equal("milk\nbread\n", s.fs:read "list")
  end)

  it("of calls side by side are asked about at once, and decided one by one", function()
    local open, most = 0, 0
    local fs = ah.filesystem { files = {} }
    local write = ah.tool { name = "write", description = "Writes.", parallel = true,
      params = { path = "string" }, handler = function(args, ctx)
        ctx.filesystem:write(args.path, "text")
      end }
    local reply = assert(ah.run { "Go.", tools = { write }, resources = { filesystem = fs },
      policies = { { after = function() return "ask" end } },
      model = calling(call("write", { path = "a" }), call("write", { path = "b" }),
        call("write", { path = "c" })),
      approve = function(c)
        open = open + 1
        most = math.max(most, open)
        ah.sleep(0.01)
        open = open - 1
        return c.arguments.path ~= "b"
      end })
    assert.same({ "OK", "Tool 'write' was run, and its changes were not approved", "OK" },
      results(reply))
    assert.equal(3, most)
    assert.same({ true, false, true }, { fs:exists "a", fs:exists "b", fs:exists "c" })
  end)

  it("of an entity are made, or taken back", function()
    local Account = ah.entity { name = "Account", id = "name", state = { "balance" } }
    for _, yes in ipairs { true, false } do
      local account = Account { name = "a", balance = 1 }
      local seen
      local pay = ah.tool { name = "pay", description = "Pays.", handler = function(_, ctx)
        ctx:enlist(account)
        account.balance = 5
      end }
      assert(ah.run { "Go.", tools = { pay }, model = calling(call "pay"),
        policies = { { after = function() return "ask" end } },
        approve = function(c)
          seen = c:changes()[1]
          return yes
        end })
      assert.same({ kind = "entity", class = "Account", id = "a",
        fields = { balance = { before = 1, after = 5 } } }, seen)
      assert.equal(yes and 5 or 1, account.balance)
    end
  end)

  it("of a nested call go to the handler around it; a no is its error", function()
    for _, yes in ipairs { true, false } do
      local asked = {}
      local s = shop { approve = function(c)
        asked[#asked + 1] = c.name .. " " .. tostring(c.parent_call ~= nil)
        return yes
      end }
      local registry = ah.registry { s.buy }
      local got
      s.def.tools = { ah.tool { name = "outer", description = "Calls.", handler = function(_, ctx)
          got = registry:execute("buy", { what = "milk" }).content
        assert(ctx.filesystem:read "list" == (yes and "bread\n" or "milk\nbread\n"))
      end } }
      s.def.model = calling(call "outer")
      assert.same({ "OK" }, (run(s)))
      assert.same({ "buy true" }, asked)
      assert.equal(yes and "bought milk" or NOT, got)
      assert.equal(yes and "bread\n" or "milk\nbread\n", s.fs:read "list")
    end
  end)

  it("are asked about by the policies of the program, too", function()
    local fs = ah.filesystem { files = {} }
    local write = ah.tool { name = "write", description = "Writes.", handler = function()
      fs:write("a", "text")
    end }
    local registry = ah.registry { write }
    for _, yes in ipairs { false, true } do
      ah.gate { policies = { { after = function() return "ask", "gate" end } },
        approve = function(c) return c.reason == "gate" and yes end }
      local r = registry:execute("write", {})
      assert.equal(yes, r.success)
      assert.equal(yes, fs:exists "a")
      assert.truthy(yes or r.content:find("not approved", 1, true))
    end
    ah.gate {}
  end)

  it("of a background call are asked about when its handler ends", function()
    for _, yes in ipairs { true, false } do
      local fs = ah.filesystem { files = {} }
      local write = ah.tool { name = "write", description = "Writes.", background = true,
        handler = function(_, ctx)
          ah.sleep(0.001)
          ctx.filesystem:write("a", "text")
          return "written"
        end }
      local agent <close> = assert(ah.agent { tools = { write }, resources = { filesystem = fs },
        policies = { { after = function() return "ask" end } },
        approve = function(c)
          ah.sleep(0.001)
          return c.result == "written" and yes
        end,
        model = ah.scripted { { calls = { call "write" } }, "Wait.", "Done." } })
      assert(agent:run "Go.")
      local reply = assert(agent:wait())
      assert.equal(yes, fs:exists "a")
      assert.truthy(reply:transcript():find(yes and "written" or "not approved", 1, true))
    end
  end)

  it("are taken back if the run is cancelled meanwhile", function()
    local agent
    local s = shop { asks = function() agent:cancel() end }
    agent = assert(ah.agent(s.def))
    s.def[1] = nil
    local reply, err = agent:run "Go."
    assert.equal("cancelled", not reply and err.code)
    assert.equal("milk\nbread\n", s.fs:read "list")
    assert.same({ "Tool 'buy' was run, and its changes were taken back: the run ended before they "
      .. "were approved." }, results(err.reply))
    local invoked = of_type(s.events, "tool_invoked")
    assert.same({ 1, false }, { #invoked, invoked[1].success })
    assert.equal("cancelled", of_type(s.events, "ask_closed")[1].how)
    agent:close()
  end)
end)
