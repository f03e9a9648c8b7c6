-- agent:close() and `local agent <close>`: what a closed agent releases, and when closing is
-- refused. docs/reference/agent.md, "ah.agent".
local ah = require "agenthost"

local function agent_of(fields)
  fields = fields or {}
  fields.model = fields.model or "demo/echo"
  return assert(ah.agent(fields))
end

local function refusal(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  assert.is_true(err:is "usage")
  return err.message
end

describe("agent:close", function()
  it("leaves an agent that says that it is closed, to each of its methods", function()
    local agent = agent_of()
    local reply = assert(agent:run "One")
    agent:close()
    assert.equal("agent (closed)", tostring(agent))
    for _, name in ipairs { "run", "send", "add_tools", "remove_tools", "save", "fork", "use",
      "cancel", "transcript" } do
      assert.matches("the agent is closed", refusal(agent[name], agent, "x"), name)
    end
    assert.equal("One", reply.text)
    assert.equal("One", reply.messages[2].content)
  end)

  it("does nothing a second time, and is left to the collector after it", function()
    local agent = agent_of()
    agent:close()
    agent:close()
    agent = nil -- luacheck: ignore
    collectgarbage()
  end)

  it("lets go of its tools and its model", function()
    local held = setmetatable({}, { __mode = "v" })
    held.handler = function() return held end
    local agent = agent_of { tools = { ah.tool { name = "t", description = "T.",
      handler = held.handler } } }
    assert(agent:run "x")
    collectgarbage()
    assert.is_function(held.handler)
    agent:close()
    collectgarbage()
    collectgarbage()
    assert.is_nil(held.handler)
  end)

  it("is refused while a run is at work, its handlers included", function()
    local agent, message
    local t = ah.tool { name = "t", description = "T.", handler = function()
      message = refusal(agent.close, agent)
    end }
    agent = agent_of { tools = { t },
      model = ah.scripted { { calls = { { name = "t" } } }, "done", "again" } }
    assert.equal("done", assert(agent:run "x").text)
    assert.matches("a run of it is at work", message)
    assert.equal("again", assert(agent:run "y").text)
    agent:close()
  end)

  it("is refused from an observer of the run's end, and of a run that others wait for", function()
    local agent, seen = nil, {}
    agent = agent_of { on = { done = function()
      seen[#seen + 1] = refusal(agent.close, agent)
    end } }
    assert(agent:run "x")
    assert.equal(1, #seen)
    agent = agent_of { model = ah.scripted { { text = "slow", delay = 0.05 } } }
    local both = { calls = { { name = "run" }, { name = "shut" } } }
    local other = agent_of { model = ah.scripted { both, "end" }, tools = {
      ah.tool { name = "run", description = "R.", parallel = true, handler = function()
        return assert(agent:run "x").text
      end },
      ah.tool { name = "shut", description = "S.", parallel = true, handler = function()
        seen[#seen + 1] = refusal(agent.close, agent)
        return "refused"
      end } } }
    assert.equal("end", assert(other:run "go").text)
    assert.equal(2, #seen)
    agent:close()
  end)

  it("comes at the end of a block, also of one that raises", function()
    local kept
    local ok, err = pcall(function()
      local agent <close> = agent_of()
      kept = agent
      error("own", 0)
    end)
    assert.same({ false, "own" }, { ok, err })
    assert.equal("agent (closed)", tostring(kept))
  end)

  it("does not hide the error that ends a block in the midst of a run", function()
    local agent
    local t = ah.tool { name = "t", description = "T.", handler = function()
      local same <close> = agent -- luacheck: ignore
      error("own", 0)
    end }
    agent = agent_of { tools = { t },
      model = ah.scripted { { calls = { { name = "t" } } }, "done" } }
    local reply = assert(agent:run "x")
    assert.matches("own", reply.messages[3].content)
  end)

  it("leaves forks, and registries that told it of tools, at work", function()
    local registry = ah.registry()
    local agent = agent_of { registry = registry }
    local fork = agent:fork()
    agent:close()
    registry:register(ah.tool { name = "late", description = "Late." })
    assert.equal("x", assert(fork:run "x").text)
    fork:close()
  end)
end)

describe("agent:close, while its tools change", function()
  it("is refused to its log function, as is a run", function()
    local function tool(name)
      return ah.tool { name = name, description = "T.", handler = function() return name end }
    end
    local agent, told
    agent = ah.agent { model = ah.scripted { { calls = { { name = "b" } } }, "done" },
      tools = { tool "a" },
      log = function(level)
        if level == "warning" then
          told = { select(2, pcall(agent.close, agent)), select(2, pcall(agent.run, agent, "x")) }
        end
      end }
    agent:add_tools { tool "a", tool "b" }
    assert.matches("is at work", told[1].message)
    assert.matches("already running", told[2].message)
    assert.equal("done", agent:run("x").text)
    agent:close()
  end)
end)
