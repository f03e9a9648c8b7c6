-- Reloading a project (lua/agenthost/command/reload.lua): its files, all or none, and a
-- conversation that goes on with the new agent.
local ah = require "agenthost"
local command = require "support.command"
local reload = require "support.programs" "reload"
local told = require "support.told"

local folder, project, before

local function write(name, text)
  command.write(folder .. "/" .. name, text)
end

-- An agent with a tool of the module `price`, which gets its number from the module `number`.
local function write_shop(number)
  write("number.lua", "return " .. number)
  write("price.lua", [[
    local ah = require "agenthost"
    local number = require "number"
    return ah.tool { name = "price", description = "Returns a price.",
      handler = function() return number end } ]])
  write("agent.lua", [[
    local ah = require "agenthost"
    return ah.agent { model = "demo/tools", tools = { (require "price") } } ]])
end

-- Returns what the tools of the agent say.
local function said(agent)
  return (tostring(assert(agent:run "Go")):gsub("^The tools said:\n", ""))
end

-- Reloads, and returns the error, without the folder.
local function failure()
  local agent, why = project:reload()
  assert.is_nil(agent)
  return (tostring(why):gsub(folder:gsub("%p", "%%%0") .. "/", ""))
end

local function names(paths)
  for i, path in ipairs(paths) do
    paths[i] = path:match "[^/]*$"
  end
  return paths
end

before_each(function()
  folder = command.folder()
  before = { path = package.path, arg = _G.arg, dofile = dofile, loadfile = loadfile,
    searchers = table.move(package.searchers, 1, #package.searchers, 1, {}), loaded = {} }
  for name in pairs(package.loaded) do
    before.loaded[name] = true
  end
  package.path = folder .. "/?.lua;" .. package.path
  project = nil
end)

after_each(function()
  package.path, package.searchers[#before.searchers + 1] = before.path, nil
  table.move(before.searchers, 1, #before.searchers, 1, package.searchers)
  rawset(_G, "arg", before.arg)
  rawset(_G, "dofile", before.dofile)
  rawset(_G, "loadfile", before.loadfile)
  for name in pairs(package.loaded) do
    package.loaded[name] = before.loaded[name] and package.loaded[name] or nil
  end
  command.tidy()
end)

-- Loads the script of the folder.
local function load_project(words)
  project = reload.new(folder .. "/agent.lua")
  return project:load(words)
end

describe("ah.state", function()
  it("is one table for a name", function()
    local one = ah.state "shop"
    one.n = 1
    assert.equal(one, ah.state "shop")
    assert.not_equal(one, ah.state "other")
    assert.equal(1, ah.state "shop".n)
  end)

  it("needs a name", function()
    assert.error_matches(function() ah.state() end, "name must be a string, found no value")
    assert.error_matches(function() ah.state(1) end, "name must be a string, found number")
  end)
end)

describe("a project", function()
  it("runs the script with its words", function()
    write("agent.lua", [[
      local ah = require "agenthost"
      local system = ... .. arg[2] .. arg[0]:match "[^/]*$"
      return { agent = ah.agent { model = "demo/echo", system = system } } ]])
    local agent = load_project { "one", "two" }
    assert.truthy(agent:transcript():find("onetwoagent.lua", 1, true))
  end)

  it("knows the files of its folder that were loaded, and which have changed", function()
    write_shop(1)
    write("data.lua", "return 1")
    write("late.lua", "return 1")
    write("other.lua", "return 1")
    write("agent.lua", command.contents(folder .. "/agent.lua"):gsub("return ah",
      ("dofile '%s/data.lua' return ah"):format(folder)))
    load_project()
    assert.same({}, project:changed())
    write("other.lua", "return 2")
    assert.same({}, project:changed())
    require "late"
    for _, name in ipairs { "data", "late", "number" } do
      write(name .. ".lua", "return 2")
    end
    assert.same({ "data.lua", "late.lua", "number.lua" }, names(project:changed()))
    os.remove(folder .. "/price.lua")
    assert.same({ "data.lua", "late.lua", "number.lua", "price.lua" }, names(project:changed()))
  end)

  it("loads a module below a module again", function()
    write_shop(1)
    assert.equal("- price: 1", said(load_project()))
    write_shop(2)
    assert.equal("- price: 2", said(assert(project:reload())))
    assert.same({}, project:changed())
  end)

  it("loads no module of elsewhere again", function()
    write_shop(1)
    load_project()
    local library, testing = package.loaded.agenthost, require "agenthost.testing"
    assert(project:reload())
    assert.equal(library, package.loaded.agenthost)
    assert.equal(testing, package.loaded["agenthost.testing"])
  end)

  it("keeps the tables of ah.state", function()
    write("agent.lua", [[
      local ah = require "agenthost"
      local state = ah.state "reload_spec"
      state.runs = (state.runs or 0) + 1
      return ah.agent { model = "demo/echo", system = "run " .. state.runs } ]])
    assert.truthy(load_project():transcript():find("run 1", 1, true))
    assert.truthy(assert(project:reload()):transcript():find("run 2", 1, true))
  end)
end)

describe("a script whose agent has a store and an id of its own", function()
  local store

  before_each(function()
    store = assert(ah.store { engine = "memory" })
    ah.state "reload_spec".store = store
  end)

  after_each(function()
    collectgarbage()
    store:close()
  end)

  local function write_agent(price, rest)
    write("agent.lua", ([[
      local ah = require "agenthost"
      %s
      return ah.agent { store = ah.state "reload_spec".store, id = "ann", model = "demo/tools",
        tools = { ah.tool { name = "price", description = "Returns a price.",
          handler = function() return %d end } } } ]]):format(rest or "", price))
  end

  it("goes on with its conversation", function()
    write_agent(1)
    local old = load_project()
    assert.equal("- price: 1", said(old))
    write_agent(2)
    local agent <close> = assert(project:reload())
    assert.equal("- price: 2", said(agent))
    assert.equal("ann", agent.id)
    assert.error_matches(function() old:run "x" end, "the agent is closed")
  end)

  it("has it still if a file is broken", function()
    write_agent(1)
    local agent <close> = load_project()
    agent:add_tools(ah.tool { name = "later", description = "Later.",
      handler = function() return "late" end })
    assert.equal("- price: 1\n- later: late", said(agent))
    write_agent(2, "reload_spec_other = ah.agent { store = ah.state 'reload_spec'.store, "
      .. "id = 'ann', model = 'demo/echo' } error 'no'")
    assert.matches("^agent.lua:2: no\n", failure())
    assert.equal("- price: 1\n- later: late", said(agent))
  end)
end)

describe("a broken file", function()
  local function check(name, broken, why)
    write_shop(1)
    load_project()
    local price, number = package.loaded.price, package.loaded.number
    write_shop(2)
    write(name, broken)
    local found = failure()
    assert.truthy(found:find(why, 1, true), found)
    assert.equal(price, package.loaded.price)
    assert.equal(number, package.loaded.number)
    write_shop(3)
    assert.equal("- price: 3", said(assert(project:reload())))
  end

  for what, case in pairs {
    ["of wrong syntax"] = { "agent.lua", "return {\n)", "agent.lua:2: unexpected symbol near ')'" },
    ["of wrong syntax in a module"] = { "price.lua", "local x\nx = =", "price.lua:2: unexpected" },
    ["that raises"] = { "agent.lua", "\n\nerror 'no'", "agent.lua:3: no" },
    ["that raises in a module"] = { "number.lua", "\nlocal x = nil + 1",
      "number.lua:2: attempt to perform arithmetic on a nil value" },
    ["with a wrong field"] = { "agent.lua", "\nreturn require 'agenthost'.agent { tols = {} }",
      "agent.lua:2: ah.agent: unknown field 'tols'" },
    ["without an agent"] = { "agent.lua", "return 1", "agent.lua returned no agent" },
    ["without a key"] = { "agent.lua", "return nil, 'no key'", "agent.lua: no key" },
  } do
    it(what .. " is named, with its line", function() check(table.unpack(case)) end)
  end

  it("that is gone is named", function()
    write_shop(1)
    load_project()
    os.remove(folder .. "/number.lua")
    assert.truthy(failure():find("module 'number' not found", 1, true))
    os.remove(folder .. "/agent.lua")
    assert.truthy(failure():find("cannot open agent.lua", 1, true))
  end)

  it("leaves the globals as they were", function()
    write_shop(1)
    load_project()
    rawset(_G, "reload_spec_kept", 1)
    finally(function() rawset(_G, "reload_spec_kept", nil) end)
    write("agent.lua", "reload_spec_kept, reload_spec_new = 2, 2 error 'no'")
    failure()
    assert.same({ 1, nil }, { rawget(_G, "reload_spec_kept"), rawget(_G, "reload_spec_new") })
  end)

  it("has changed once", function()
    write_shop(1)
    load_project()
    write("price.lua", "error 'no'")
    write("number.lua", "return 2")
    failure()
    assert.same({}, project:changed())
    write("price.lua", "error 'still'")
    assert.same({ "price.lua" }, names(project:changed()))
  end)
end)

-- -- conversations -----------------------------------------------------------------------------

local function tool(name, description, value, fields)
  fields = fields or {}
  return ah.tool { name = name, description = description, annotations = fields.annotations,
    handler = function() return value end }
end

local function define(tools, fields)
  fields = fields or {}
  fields.model, fields.tools = fields.model or "demo/tools", tools
  return assert(ah.agent(fields))
end

for _, place in ipairs { "memory", "a store" } do
  describe("a conversation in " .. place, function()
    local store, conversation

    local function open(definition)
      store = place == "a store" and assert(ah.store { engine = "memory" })
      conversation = assert(definition:open { store = store, id = "ann" })
      return conversation
    end

    local function carry(definition)
      local new, words = reload.carry(conversation, definition)
      conversation = new or conversation
      return new and words, words
    end

    -- Returns the types of the entries behind the n-th.
    local function types(n)
      local list = {}
      for i, entry in ipairs(ah.json.decode(conversation:transcript()).entries) do
        list[#list + 1] = i > n and entry.type or nil
      end
      return list
    end

    local function length()
      return #ah.json.decode(conversation:transcript()).entries
    end

    after_each(function()
      conversation:close()
      if store then
        store:close()
      end
    end)

    it("has the new handler of a tool that reads the same, unnoticed by the model", function()
      open(define { tool("price", "A price.", "1") })
      assert.equal("- price: 1", said(conversation))
      local n = length()
      assert.same({}, carry(define { tool("price", "A price.", "2") }))
      assert.equal(n, length())
      assert.equal("- price: 2", said(conversation))
    end)

    it("goes on in its transcript with tools that changed, came and went", function()
      open(define { tool("price", "A price.", "1"), tool("old", "Old.", "old") })
      said(conversation)
      local old, n = conversation, length()
      assert.same({ "tool price: changed", "tool new: added", "tool old: removed" },
        carry(define { tool("price", "The price.", "2"), tool("new", "New.", "new") }))
      assert.same({ "tools_added", "tools_removed" }, types(n))
      assert.equal("- price: 2\n- new: new", said(conversation))
      assert.equal("ann", conversation.id)
      assert.error_matches(function() old:run "x" end, "the agent is closed")
    end)

    it("has the new system text", function()
      open(define({}, { system = "Be brief.", model = "demo/echo" }))
      conversation:run "one"
      assert.same({ "system text: changed" }, carry(define({}, { system = "Be long.",
        model = "demo/echo" })))
      assert.same({}, carry(define({}, { system = "Be long.", model = "demo/echo" })))
      assert.equal("two", tostring(assert(conversation:run "two")))
    end)

    it("has the new sections", function()
      local function rules(text)
        return { model = "demo/echo", ah.section { title = "Rules", template = text } }
      end
      open(define({}, rules "One."))
      conversation:run "one"
      assert.same({ "system text: changed" }, carry(define({}, rules "Two.")))
    end)

    it("keeps a tool that a person added", function()
      open(define { tool("price", "A price.", "1") })
      conversation:add_tools(tool("mine", "Mine.", "mine"))
      said(conversation)
      assert.same({}, carry(define { tool("price", "A price.", "2") }))
      assert.equal("- price: 2\n- mine: mine", said(conversation))
    end)

    it("sets itself up again", function()
      local function with(name, value)
        return { setup = function(c) c:add_tools(tool(name, "Of setup.", value)) end }
      end
      open(define({}, with("basket", "1")))
      assert.equal("- basket: 1", said(conversation))
      carry(define({}, with("basket", "2")))
      assert.equal("- basket: 2", said(conversation))
      assert.same({ "tool basket: removed" }, carry(define {}))
    end)

    it("finds its entities again, of the new class", function()
      local function customers(text, ...)
        local Customer = ah.entity { name = "Customer", id = "id", fields = { "id" },
          find = function(id) return { id = id } end }
        Customer:tool { name = "greet", description = "Greets.",
          handler = function(self) return text .. self.id end }
        return define({ ah.tool { name = "find_customer", description = "Finds a customer.",
          handler = function() return Customer { id = "c1" } end } },
          { discover = true, model = ah.scripted { ... } })
      end
      local function calls(name)
        return { calls = { { name = name } } }
      end
      open(customers("Hi ", calls "find_customer", "ok"))
      assert(conversation:run "one")
      assert.same({}, carry(customers("Hello ", calls "customer_c1_greet", "ok")))
      local messages = assert(conversation:run "two").messages
      assert.equal("Hello c1", messages[#messages - 1].content)
    end)

    it("goes on as it was if the new agent cannot have it", function()
      local Step = ah.type { name = "Step", fields = { n = "integer" } }
      local session = ah.session()
      session:register(Step)
      session:dispatch(Step { n = 1 })
      open(define({ tool("price", "A price.", "1") }, { session = session }))
      said(conversation)
      local n = length()
      local words, err = carry(define({ tool("price", "The price.", "2") },
        { session = ah.session() }))
      assert.is_nil(words)
      assert.truthy(tostring(err):find("Step", 1, true), tostring(err))
      assert.equal(n, length())
      assert.equal("- price: 1", said(conversation))
    end)

    it("has no background call that is outstanding", function()
      open(define({ ah.tool { name = "slow", description = "Slow.", background = true,
        handler = function() ah.sleep(1000) end } },
        { model = ah.scripted { { calls = { { name = "slow" } } }, "one", "two" } }))
      assert(conversation:run "Go")
      local words, err = carry(define {})
      assert.is_nil(words)
      assert.truthy(tostring(err):find("background call of the conversation is outstanding", 1,
        true), tostring(err))
      assert(conversation:cancel_background(1))
      assert.equal("two", tostring(assert(conversation:wait(60))))
      assert.same({ "tool slow: removed" }, carry(define {}))
    end)

    it("has no run at work", function()
      local new
      open(define { ah.tool { name = "reload", description = "Reloads.", handler = function()
        return tostring(select(2, reload.carry(conversation, new)))
      end } })
      new = define { tool("price", "A price.", "2") }
      assert.truthy(said(conversation):find("a run of the conversation is at work", 1, true))
    end)
  end)
end

it("a run that waits for a response goes on with the new handler", function()
  local function shop(value)
    return define({ tool("pay", "Pays.", value) },
      { policies = { { before = function() return "ask", "money" end } } })
  end
  local store <close> = assert(ah.store { engine = "memory" })
  local conversation = assert(shop("old"):open { store = store, id = "ann" })
  assert.equal("waiting", select(2, conversation:run "Pay").code)
  local again <close> = assert(reload.carry(conversation, shop "new"))
  assert(store:respond("ann", again.unfinished.asks[1], true))
  assert.equal("The tools said:\n- pay: new", tostring(assert(again:run())))
end)

describe("a tool that changed in a conversation", function()
  -- Reloads between two runs. Returns the request of the second one, what its call gave, and the
  -- warnings.
  local function reloaded(mode, fields)
    local last, warnings = nil, {}
    local function definition(description, value, ...)
      local turns = { ... }
      local price = tool("price", description, value, fields)
      return define({ price }, {
        log = function(level, line)
          warnings[#warnings + 1] = level == "warning" and line or nil
        end,
        model = ah.scripted { tool_change_mode = mode, answer = function(request)
          last = last or turns[2] and request
          return table.remove(turns, 1)
        end } })
    end
    local conversation = assert(definition("A price.", "1", "one"):open())
    assert(conversation:run "one")
    local new = definition("The price.", "2", { calls = { { name = "price" } } }, "two")
    local again <close> = assert(reload.carry(conversation, new))
    local messages = assert(again:run "two").messages
    return last, messages[#messages - 1].content, warnings
  end

  -- Returns the types of the entries of a request, and the tool in its list.
  local function parts(request)
    local types = {}
    for i, entry in ipairs(request.entries) do
      types[i] = entry.type
    end
    return types, request.tools[1].description
  end

  it("is changed in the list of the request where the wire has only that", function()
    local types, described = parts((reloaded "append"))
    assert.same({ "user", "assistant", "user" }, types)
    assert.equal("The price.", described)
  end)

  it("is declared behind the conversation so far where the wire can do that", function()
    local types, described = parts((reloaded "inline"))
    assert.same({ "user", "assistant", "tools_added", "user" }, types)
    assert.equal("A price.", described)
  end)

  for _, mode in ipairs { "append", "inline", "additional_tools", "search_pair", "list_changed",
    "reference", "dispatcher", "restart" } do
    it("is declared anew, runs its new handler, and is no drift: " .. mode, function()
      local request, result, warnings = reloaded(mode, { annotations = { untrusted = true } })
      assert.equal("The price.", told(request, "price").description)
      assert.same({ "2", {} }, { result, warnings })
    end)
  end
end)
