-- Changes that a call makes to the library's own objects (registries, agents, subscriptions) are
-- part of its transaction: visible to the call and the runs in it; to others after the commit; to
-- no other if it fails.
local ah = require "agenthost"

local function tool(name, handler, fields)
  local config = { name = name, description = "Does " .. name .. ".",
    handler = handler or function() return name end }
  for k, v in pairs(fields or {}) do
    config[k] = v
  end
  return ah.tool(config)
end

local function calls_of(names)
  local calls = {}
  for i, name in ipairs(names) do
    calls[i] = { name = name }
  end
  return { calls = calls }
end

--- Runs the handlers, each a call of its own. Returns the results for the model.
local function run(handlers, fields)
  local tools, names, contents = {}, {}, {}
  for i, handler in ipairs(handlers) do
    tools[i] = tool("t" .. i, handler, { parallel = fields and fields.parallel })
    names[i] = "t" .. i
  end
  local reply = assert(ah.run { model = ah.scripted { calls_of(names), "done" }, tools = tools,
    log = function() end, "go" })
  for _, m in ipairs(reply.messages) do
    contents[#contents + 1] = m.role == "tool" and m.content or nil
  end
  return contents
end

local function names(registry)
  return table.concat(registry:names(), " ")
end

--- Returns the tools and the users' texts of a conversation.
local function state_of(agent)
  local tools, order, said = {}, {}, {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    for _, t in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      order[#order + 1] = not tools[t.name] and t.name or nil
      tools[t.name] = true
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      tools[name] = false
    end
    said[#said + 1] = entry.type == "user" and entry.content[1].text or nil
  end
  local seen = {}
  for _, name in ipairs(order) do
    seen[#seen + 1] = tools[name] and name or nil
  end
  return table.concat(table.move(said, 1, #said, #seen + 1, seen), " ")
end

local function new_agent(fields)
  local config = { model = ah.scripted { "." }, log = function() end }
  for k, v in pairs(fields or {}) do
    config[k] = v
  end
  return assert(ah.agent(config))
end

describe("a registry, in a call", function()
  local a, b, c = tool "a", tool "b", tool "c"

  it("has what the call registered when that is committed, and not before", function()
    local registry, seen = ah.registry { a }, {}
    local contents = run({ function()
      registry:register(b)
      registry:remove "a"
      registry:replace(c)
      seen[1] = names(registry) .. #registry .. tostring(registry:has "a") .. registry:get "b".name
      assert(registry:execute("b", {}).value == "b")
      ah.sleep(0.01)
    end, function() seen[2] = names(registry) end }, { parallel = true })
    assert.same({ "OK", "OK" }, contents)
    assert.same({ "b c2falseb", "a" }, seen)
    assert.equal("b c", names(registry))
  end)

  it("is as before when the call has failed", function()
    local registry = ah.registry { a, b }
    registry:pick "b"
    local before = ah.json.encode(registry:tools_for_llm())
    run { function()
      registry:register(c):remove "a"
      registry:clear_picked():pick "c"
      error "no"
    end, function()
      run { function() registry:register(c) end }
      return nil, "no"
    end }
    assert.equal("a b", names(registry))
    assert.equal(before, ah.json.encode(registry:tools_for_llm()))
  end)

  it("keeps the work of calls that are at work together", function()
    local registry = ah.registry()
    run({ function()
      registry:register(a)
      ah.sleep(0)
    end, function()
      registry:register(b)
      ah.sleep(0)
      error "no"
    end, function()
      registry:register(c)
      ah.sleep(0)
    end }, { parallel = true })
    assert.equal("a c", names(registry))
  end)

  it("fails the second of two calls that register one name", function()
    local registry = ah.registry()
    local contents = run({ function()
      registry:register(a)
      ah.sleep(0)
    end, function() registry:register(tool "a") end }, { parallel = true })
    assert.equal("OK", contents[1])
    assert.truthy(contents[2]:find("execution failed: registry: tool 'a' is declared twice", 1,
      true))
    assert.equal(a, registry:get "a")
  end)

  it("is seen by runs in the call, and takes what their calls did", function()
    local registry, seen = ah.registry { a }, nil
    run { function()
      registry:register(b)
      seen = state_of(new_agent { registry = registry })
      run { function() registry:register(c) end, function()
        registry:remove "b"
        error "no"
      end }
      assert.equal("a b c", names(registry))
    end }
    assert.equal("a b", seen)
    assert.equal("a b c", names(registry))
  end)

  it("keeps the work of calls at work together in one call, in the order of the request", function()
    local registry = ah.registry()
    local agent = new_agent { registry = registry }
    run { function()
      run({ function()
        registry:register(a)
        ah.sleep(0)
      end, function()
        registry:register(b)
        ah.sleep(0)
      end, function()
        assert(not registry:remove "a")
        registry:register(c)
      end }, { parallel = true })
      assert.equal("b c", names(registry))
    end }
    assert.equal("b c", names(registry))
    assert.equal("b c", state_of(agent))
  end)

  it("tells the agents that use it once the call is committed", function()
    local registry = ah.registry { a }
    local agent = new_agent { registry = registry }
    run { function()
      registry:register(b)
      error "no"
    end }
    assert.equal("a", state_of(agent))
    run { function()
      registry:register(b)
      registry:remove "a"
    end }
    assert.equal("b", state_of(agent))
  end)

  it("tells the agent whose call it is", function()
    local registry, events = ah.registry(), {}
    registry:register(tool("grow", function() registry:register(a) end))
    registry:register(tool("fail", function()
      registry:register(b)
      error "no"
    end))
    local reply = assert(ah.run { registry = registry, log = function() end, "go",
      model = ah.scripted { calls_of { "fail", "grow" },
        { expect = { tools = { "grow", "fail", "a" } }, calls = { { name = "a" } } }, "done" },
      on = function(e)
        if e.type == "tools_injected" or e.type == "tool_invoked" then
          events[#events + 1] = e.type .. " " .. (e.name or e.tool_names[1])
        end
      end })
    assert.equal("a", reply.messages[6].content)
    assert.same({ "tool_invoked fail", "tools_injected a", "tool_invoked grow", "tool_invoked a" },
      events)
  end)
end)

describe("an agent, in a call", function()
  it("gets what was sent to it with the commit, in the order of the request", function()
    local agent = new_agent()
    run({ function()
      ah.sleep(0.01)
      agent:send "one"
      agent:send "two"
    end, function()
      agent:send "lost"
      error "no"
    end, function() agent:send "three" end }, { parallel = true })
    assert.equal("one two three", state_of(agent))
  end)

  it("may be the one whose call it is", function()
    local agent
    local talk = tool("talk", function() agent:send "said" end)
    local fail = tool("fail", function()
      agent:send "lost"
      agent:add_tools(tool "lost")
      agent:remove_tools "talk"
      error "no"
    end)
    agent = new_agent { tools = { talk, fail }, model = ah.scripted { calls_of { "fail", "talk" },
      { text = "answer", expect = { tools = { "talk", "fail" } } } } }
    local reply = assert(agent:run "go")
    assert.equal("answer", reply.text)
    assert.equal("talk fail go said", state_of(agent))
  end)

  it("has the tools that were added and removed, if the call has succeeded", function()
    local agent = new_agent { tools = { tool "a" } }
    run { function()
      agent:add_tools { tool "b", tool "c" }
      agent:remove_tools "a"
      return nil, "no"
    end }
    assert.equal("a", state_of(agent))
    run { function()
      agent:add_tools { tool "b", tool "c" }
      agent:remove_tools "a"
    end }
    assert.equal("b c", state_of(agent))
  end)

  it("gets them from calls in calls with the outermost one", function()
    local agent, seen = new_agent(), nil
    local function inner()
      run { function()
        agent:send "said"
        agent:add_tools(tool "a")
      end }
      seen = agent:transcript()
    end
    run { function()
      inner()
      error "no"
    end }
    assert.is_nil(seen:find("said", 1, true))
    assert.equal("", state_of(agent))
    run { inner }
    assert.equal("a said", state_of(agent))
  end)

  it("has them when the call itself runs it", function()
    local agent, seen = new_agent(), nil
    run { function()
      agent:send "said"
      agent:add_tools(tool "a")
      assert(agent:run "?")
      seen = state_of(agent)
    end }
    assert.equal("a said ?", seen)
    assert.equal("a said ?", state_of(agent))
  end)

  it("fails the call where a tool's name is taken and that is to be an error", function()
    local agent = new_agent { on_conflict = "error" }
    local function add()
      agent:add_tools(tool "a")
      ah.sleep(0)
    end
    local contents = run({ add, add }, { parallel = true })
    assert.equal("OK", contents[1])
    assert.truthy(contents[2]:find("tool 'a' is declared twice", 1, true))
    contents = run { add }
    assert.truthy(contents[1]:find("tool 'a' is declared twice", 1, true))
    assert.equal("a", state_of(agent))
  end)

  it("undoes what was made for it when something else refuses", function()
    local agent, fs = new_agent(), ah.filesystem { files = { n = "1" } }
    local registry = ah.registry { tool "r" }
    local user = new_agent { registry = registry }
    local function change(n)
      return function()
        local was = tonumber((fs:read "n"))
        agent:send("said " .. n)
        agent:add_tools(tool("a" .. n))
        registry:register(tool("r" .. n))
        ah.sleep(0)
        fs:write("n", tostring(was + 1))
      end
    end
    local contents = run({ change(1), change(2) }, { parallel = true })
    assert.truthy(contents[2]:find("'n' was changed meanwhile", 1, true))
    assert.equal("a1 said 1", state_of(agent))
    assert.equal("r r1", names(registry))
    assert.equal("r r1", state_of(user))
  end)

  it("keeps its model if the call that gave it another one has failed", function()
    local agent = new_agent { model = ah.scripted { "first", "second" } }
    run { function()
      assert(agent:use(ah.scripted { "other" }))
      assert(agent:run("?").text == "other")
      error "no"
    end, function()
      run { function() assert(agent:use(ah.scripted { "inner" })) end }
      error "no"
    end }
    assert.equal("first", agent:run("?").text)
    run { function() assert(agent:use(ah.scripted { "used" })) end }
    assert.equal("used", agent:run("?").text)
  end)

  it("loses nothing of its own when it is closed before the commit", function()
    local agent = new_agent()
    local contents = run { function()
      agent:send "said"
      agent:add_tools(tool "a")
      agent:close()
    end }
    assert.same({ "OK" }, contents)
  end)
end)

describe("subscriptions, in a call", function()
  local Item = ah.type { name = "Item", fields = { n = "integer" } }

  it("are as before when the call has failed", function()
    local session, seen = ah.session(), {}
    local function note(name)
      return function(value) seen[#seen + 1] = name .. value.n end
    end
    local stop = session.dispatcher:subscribe(Item, note "old")
    run { function()
      stop()
      session.dispatcher:subscribe(Item, note "lost")
      error "no"
    end }
    session.dispatcher:publish(Item { n = 1 })
    assert.same({ "old1" }, seen)
    run { function()
      session.dispatcher:publish(Item { n = 2 })
      stop()
      session.dispatcher:subscribe(Item, note "new")
    end }
    session.dispatcher:publish(Item { n = 3 })
    assert.same({ "old1", "new2", "new3" }, seen)
  end)

  it("stay ended if one of the calls that ended them has succeeded", function()
    local session, n = ah.session(), 0
    local stop = session.dispatcher:subscribe(nil, function() n = n + 1 end)
    run({ function()
      stop()
      ah.sleep(0.01)
      error "no"
    end, function() stop() end }, { parallel = true })
    session.dispatcher:publish(Item { n = 1 })
    assert.equal(0, n)
  end)
end)

describe("observers of a run that a handler drives", function()
  it("change things at once, however the handler waits", function()
    local function plain(f) return f() end
    local function coroutines(f) return coroutine.wrap(f)() end
    for _, wait in ipairs { plain, coroutines } do
      local agent, fs = new_agent(), ah.filesystem { memory = true }
      run { function()
        wait(function()
          return ah.run { model = "demo/echo", "hi", on = { done = function()
            agent:send "seen"
            fs:write("seen", "1")
          end } }
        end)
        error "no"
      end }
      assert.equal("seen", state_of(agent))
      assert.equal("1", (fs:read "seen"))
    end
  end)
end)
