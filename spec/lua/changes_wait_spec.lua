-- Approvals of changes in conversations with a store: they wait beyond the process, with the
-- changes as the handler left them. In one process: spec/run/approve_changes_spec.lua.
local ah = require "agenthost"
local command = require "support.command"
local testing = require "agenthost.testing"
local results = require "spec.support.results"

local Item = ah.type { name = "Item", fields = { name = "string" } }
local NOT = "Tool 'buy' was run, and its changes were not approved"
local SINCE = "Tool 'buy' was run, and its changes were not made: what they are based on has "
  .. "changed since a person was asked about them. Make the call again."

local folder

before_each(function()
  folder = command.folder()
end)

after_each(command.tidy)

local function write(name, text)
  local f <close> = assert(io.open(folder .. "/" .. name, "w"))
  f:write(text)
end

local function read(name)
  local f <close> = io.open(folder .. "/" .. name)
  return f and f:read "a"
end

-- A conversation in a store, which may be opened again and again. `runs`: of the handler.
local function shop(more)
  local s = { runs = 0, store = assert(ah.store { engine = "memory" }) }
  local model = ah.scripted { { calls = { { name = "buy", arguments = { what = "milk" } } } },
    "Done.", "Well." }
  write("list", "milk\nbread\n")
  function s.open(fields)
    local files = ah.filesystem { root = folder }
    local session = ah.session { types = { Item } }
    local def = { store = s.store, id = "shop", session = session, model = model,
      resources = { filesystem = files }, log = function() end,
      tools = { ah.tool { name = "buy", description = "Buys.", params = { what = "string" },
        durable = more and more.durable, handler = function(args, ctx)
          s.runs = s.runs + 1
          if more and more.durable then
            ah.sleep(0.001)
          end
          if more and more.begin then
            more.begin(ctx)
          end
          assert(files:edit("list", args.what .. "\n", ""))
          assert(files:write("bought/last", args.what))
          session:dispatch(Item { name = args.what })
          return "bought " .. args.what
        end } },
      policies = { { before = more and more.before, after = function(call)
        return "ask", "it buys " .. call.arguments.what
      end } } }
    for name, value in pairs(fields or {}) do
      def[name] = value
    end
    s.session = session
    return assert(ah.agent(def))
  end
  -- Runs until it waits.
  function s.wait()
    local agent <close> = s.open()
    local reply, err = agent:run "Buy milk."
    assert.equal("waiting", not reply and err.code, err and err.message)
    return err
  end
  -- Goes on with another agent. Returns the results.
  function s.go_on(fields, text, options)
    local agent <close> = s.open(fields)
    return results(assert(agent:run(text, options)))
  end
  return s
end

local function untouched(s)
  assert.equal("milk\nbread\n", read "list")
  assert.is_nil(read "bought/last")
  assert.same({}, s.session[Item]:all())
end

local function bought(s)
  assert.equal("bread\n", read "list")
  assert.equal("milk", read "bought/last")
  assert.equal(1, #s.session[Item]:all())
end

describe("an approval of changes that nobody responds to", function()
  it("waits in the store with the changes, which are committed without the handler", function()
    local s = shop()
    assert.same({ "1" }, s.wait().asks)
    untouched(s)
    local ask = s.store:asks()[1]
    assert.same({ "approval", "it buys milk", "buy", "milk", "bought milk" }, { ask.kind,
      ask.question, ask.tool, ask.arguments.what, ask.result })
    assert.same({ "file", "file", "file", "slice" }, { ask.changes[1].kind, ask.changes[2].kind,
      ask.changes[3].kind, ask.changes[4].kind })
    assert.same({ "bought", "bought/last", "list" }, { ask.changes[1].path, ask.changes[2].path,
      ask.changes[3].path })
    assert.equal("--- a/list\n+++ b/list\n@@ -1,2 +1,1 @@\n-milk\n bread\n", ask.changes[3].diff)
    assert(s.store:respond("shop", "1", true))
    assert.same({ "bought milk" }, s.go_on())
    bought(s)
    assert.equal(1, s.runs)
    assert.same({}, s.store:asks())
  end)

  it("is a refusal with its reason", function()
    local s = shop()
    s.wait()
    assert(s.store:respond("shop", "1", { approved = false, why = "not today" }))
    assert.same({ NOT .. ": not today" }, s.go_on())
    untouched(s)
    assert.equal(1, s.runs)
  end)

  it("takes no new arguments", function()
    local s = shop()
    s.wait()
    local ok, err = s.store:respond("shop", "1", { approved = true, arguments = { what = "x" } })
    assert.equal("tool_validation", not ok and err.code)
    assert.equal(1, #s.store:asks())
  end)

  it("is a conflict if a file has changed since, with or without a response", function()
    for _, responded in ipairs { true, false } do
      local s = shop()
      s.wait()
      write("list", "milk\nbread\ncheese\n")
      if responded then
        assert(s.store:respond("shop", "1", true))
      end
      assert.same({ SINCE }, s.go_on())
      assert.equal("milk\nbread\ncheese\n", read "list")
      assert.is_nil(read "bought/last")
      assert.same({}, s.session[Item]:all())
      assert.same({}, s.store:asks())
    end
  end)

  it("keeps its number while it waits again, and goes to approve and front ends", function()
    local s = shop()
    s.wait()
    local agent = s.open()
    local reply, err = agent:run()
    assert.same({ "1" }, not reply and err.asks)
    agent:close()
    local seen
    assert.same({ "bought milk" }, s.go_on { approve = function(c)
      seen = c.result .. " " .. #c:changes() .. " " .. c.reason
      return true
    end })
    assert.equal("bought milk 4 it buys milk", seen)
    bought(s)
    assert.equal(1, s.runs)
  end)

  it("is declined by another text, and ends with a cancellation", function()
    local s = shop()
    s.wait()
    assert.truthy(s.go_on({}, "Never mind.", { asks = "decline" })[1]:find(NOT, 1, true))
    untouched(s)
    s = shop()
    s.wait()
    assert(s.store:cancel "shop")
    local agent <close> = s.open()
    local reply, err = agent:run()
    assert.equal("cancelled", not reply and err.code)
    assert.truthy(agent:transcript():find("Cancelled: the run was stopped", 1, true))
    untouched(s)
  end)

  it("takes a response from the store while a front end holds it", function()
    local s = shop()
    local seen
    local agent <close> = s.open { asks = function(ask)
      ah.sleep(0.01) -- the record of the ask is appended meanwhile
      seen = #ask.changes
      assert(s.store:respond("shop", "1", true))
    end }
    assert.same({ "bought milk" }, results(assert(agent:run "Buy milk.")))
    assert.equal(4, seen)
    bought(s)
  end)

  it("comes after the approval of the call, whose response is not taken for it", function()
    local s = shop { before = function() return "ask", "may it?" end }
    s.wait()
    assert.is_nil(s.store:asks()[1].changes)
    assert(s.store:respond("shop", "1", true))
    local agent = s.open()
    local reply, err = agent:run()
    assert.same({ "2" }, not reply and err.asks)
    agent:close()
    untouched(s)
    assert.equal(4, #s.store:asks()[1].changes)
    assert(s.store:respond("shop", "2", true))
    assert.same({ "bought milk" }, s.go_on())
    bought(s)
    assert.equal(1, s.runs)
  end)

  it("is the same of a durable handler", function()
    local s = shop { durable = true }
    s.wait()
    assert(s.store:respond("shop", "1", true))
    assert.same({ "bought milk" }, s.go_on())
    bought(s)
    assert.equal(1, s.runs)
  end)

  it("does not wait if the changes cannot be written down", function()
    local object = { snapshot = function() end, restore = function() end } -- has no name
    local s = shop { begin = function(ctx) ctx:enlist(object) end }
    local agent <close> = s.open()
    assert.truthy(results(assert(agent:run "Buy milk."))[1]:find(NOT, 1, true))
    untouched(s)
  end)

  it("has in a replay of handlers the response that was recorded", function()
    for _, yes in ipairs { true, false } do
      local store <close> = assert(ah.store { engine = "memory" })
      local function open(fields)
        fields.tools = { ah.tool { name = "buy", description = "Buys.", handler = function(_, ctx)
          ctx.session:dispatch(Item { name = "milk" })
        end } }
        fields.session = ah.session { types = { Item } }
        fields.policies = { { after = function() return "ask", "it buys" end } }
        fields.model = ah.scripted { { calls = { { name = "buy" } } }, "Done." }
        return assert(ah.agent(fields))
      end
      local agent = open { store = store, id = "shop",
        approve = function() return yes, "never" end }
      assert(agent:run "Buy milk.")
      agent:close()
      local found = assert(testing.replay(store, "shop", { tools = open { approve = error } }))
      assert.same({ 1, 1 }, { found.handlers.calls, found.handlers.equal })
    end
  end)

  it("is recorded: the result is said, the changes are kept", function()
    local s = shop()
    s.wait()
    local kinds, said, kept = {}, nil, nil
    for record in assert(s.store:records("shop", { kept = true })) do
      kinds[#kinds + 1] = record.kind
      if record.kind == "ask" then
        said, kept = record.said, record.kept
      end
    end
    assert.equal("call_started call_finished ask parked", table.concat(kinds, " ", #kinds - 3))
    assert.same({ "bought milk", 64 }, { said.result, #said.about })
    assert.truthy(said.schema.properties.approved)
    assert.is_nil(said.schema.properties.arguments)
    assert.equal(4, #kept.changes)
    local text = assert(s.store:export "shop")
    assert.falsy(text:find("-milk\\n bread", 1, true))
  end)
end)
