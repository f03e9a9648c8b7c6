-- agent:events: queues of events, for tasks that look on and may wait. docs/reference/events.md, "A
-- queue".
local ah = require "agenthost"
local command = require "support.command"
local random = require "support.random"

local function types_of(events)
  local list = {}
  for event in events do
    list[#list + 1] = event.type
  end
  return list
end

local function two_pieces()
  local model = ah.scripted(function() return { text = { "It ", "works." } } end)
  return assert(ah.agent { model = model })
end

local ALL = { "start", "tool_loop_iteration", "request", "content", "content", "usage", "done" }

describe("agent:events", function()
  it("gives the events of the agent's runs in their order, each a table of its own", function()
    local agent <close> = two_pieces()
    local first, second = agent:events(), agent:events()
    assert(agent:run "x")
    assert.equal(#ALL, #first)
    assert.equal("start", first().type)
    second().type = "changed"
    agent:close()
    assert.same({ table.unpack(ALL, 2) }, types_of(first))
    assert.same({ table.unpack(ALL, 2) }, types_of(second))
    assert.is_nil(first())
  end)

  it("has the fields that an observer gets", function()
    local observed, queued = {}, {}
    local tool = ah.tool { name = "t", description = "D.",
      handler = function() return { n = 1 } end }
    local agent <close> = assert(ah.agent { tools = { tool },
      model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" },
      on = function(e) observed[#observed + 1] = e end })
    local events <close> = agent:events()
    assert(agent:run "x")
    agent:close()
    for event in events do
      queued[#queued + 1] = event
    end
    assert.same(observed, queued)
  end)

  it("queues only the types that were asked for", function()
    local agent <close> = two_pieces()
    local events = agent:events { types = { "content", "done" } }
    assert(agent:run "x")
    agent:close()
    assert.same({ "content", "content", "done" }, types_of(events))
  end)

  it("lets a task look on that waits, and ends with the agent", function()
    local seen = {}
    ah.scope(function(scope)
      local agent <close> = two_pieces()
      scope:spawn(function()
        for event in agent:events { types = { "content", "done" } } do
          ah.sleep(0.002)
          seen[#seen + 1] = event.text
        end
        seen[#seen + 1] = "over"
      end)
      assert(agent:run "x")
    end)
    assert.same({ "It ", "works.", "It works.", "over" }, seen)
  end)

  it("drops the newest events that do not fit, and counts them", function()
    local agent <close> = two_pieces()
    local events = agent:events { max = 2, types = { "start", "request", "content" } }
    assert(agent:run "x")
    assert.equal(2, #events)
    assert.equal(2, events.dropped)
    assert.is_nil(events().dropped)
    assert.equal("request", events().type)
    assert(agent:run "y")
    local after = events()
    assert.same({ "start", 2 }, { after.type, after.dropped })
    assert.same({ "request", nil }, { events().type })
    assert.equal(4, events.dropped)
  end)

  it("keeps the end of a run, in place of the newest other event", function()
    local agent <close> = two_pieces()
    local events = agent:events { max = 1 }
    assert(agent:run "x")
    assert.equal(1, #events)
    local last = events()
    assert.same({ "done", #ALL - 1 }, { last.type, last.dropped })
    assert.equal(#ALL - 1, events.dropped)
    assert(agent:run "x")
    assert(agent:run "x")
    assert.equal(1, #events)
  end)

  it("bounds the bytes of what it holds", function()
    local piece = ("x"):rep(1 << 20)
    local pieces = {}
    for i = 1, 30 do
      pieces[i] = piece
    end
    local agent <close> = assert(ah.agent { model = ah.scripted { { text = pieces } } })
    local events = agent:events { types = { "content" } }
    assert(agent:run "x")
    assert.equal(16, #events)
    assert.equal(14, events.dropped)
  end)

  it("is closed with its variable, and gives what it holds", function()
    local agent <close> = two_pieces()
    local kept
    do
      local events <close> = agent:events { types = { "content" } }
      kept = events
      assert(agent:run "x")
    end
    assert(agent:run "y")
    assert.same({ "content", "content" }, types_of(kept))
    kept:close()
  end)

  it("is closed by the loop that it was made for", function()
    local agent <close> = two_pieces()
    local task = ah.spawn(function() return assert(agent:run "x") end)
    for event in agent:events() do
      if event.type == "request" then
        break
      end
    end
    task:await()
    assert(agent:run "y")
  end)

  it("ends a wait when it is closed by other code", function()
    local agent <close> = two_pieces()
    local events = agent:events()
    local task = ah.spawn(types_of, events)
    ah.yield()
    events:close()
    assert.same({}, task:await())
  end)

  it("is given to several tasks, each event once", function()
    local agent <close> = two_pieces()
    local events = agent:events()
    local tasks = {}
    for i = 1, 3 do
      tasks[i] = ah.spawn(types_of, events)
    end
    assert(agent:run "x")
    ah.yield()
    events:close()
    local n = 0
    for _, task in ipairs(tasks) do
      n = n + #task:await()
    end
    assert.equal(#ALL, n)
  end)

  it("ends the loops of code that would wait for ever", function()
    local agent <close> = two_pieces()
    assert.same({}, types_of(agent:events()))
    local task = ah.spawn(function() return types_of(agent:events()) end)
    ah.yield()
    assert(agent:run "x")
    assert.same(ALL, task:await())
    local gate, order = ah.channel(), {}
    local looking = ah.spawn(function()
      types_of(agent:events())
      order[1] = "over"
      gate:send(1)
    end)
    assert.equal(1, gate:receive())
    assert.same({ "over" }, order)
    looking:await()
  end)

  it("still tells a deadlock of others", function()
    local agent <close> = two_pieces()
    local looking = ah.spawn(function() return types_of(agent:events()) end)
    local ok, err = pcall(function() ah.channel():receive() end)
    assert.is_false(ok)
    assert.matches("deadlock", tostring(err), 1, true)
    assert.same({}, looking:await())
  end)

  it("ends a run in whose handlers all code waits for other code", function()
    local channel = ah.channel()
    local function stuck(handler)
      return ah.run { "x", log = function() end,
        model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" },
        tools = { ah.tool { name = "t", description = "D.",
          handler = handler or function()
            local value = channel:receive()
            return value
          end } } }
    end
    local function inner() return stuck() end
    for _, handler in ipairs { false, inner, function() return ah.spawn(inner):await() end } do
      local reply, err = stuck(handler)
      assert.is_nil(reply)
      assert.equal("usage", err.code)
      assert.matches("deadlock.*events_spec%.lua:%d+ %(receive%)", err.message)
    end
  end)

  it("does not keep a handler that has begun a loop over the events of its own run", function()
    local seen, agent = {}, nil
    local tool = ah.tool { name = "t", description = "D.", handler = function(_, ctx)
      ah.spawn(function()
        for event in agent:events() do
          seen[#seen + 1] = event.type
        end
      end)
      ah.yield()
      ctx:progress("half")
      return "ok"
    end }
    agent = assert(ah.agent { tools = { tool },
      model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" } })
    assert.equal("done", assert(agent:run "x").text)
    assert.same({ "tool_progress" }, seen)
    agent:close()
  end)

  it("keeps neither the agent nor itself, and costs nothing when it is collected", function()
    local weak = setmetatable({}, { __mode = "v" })
    weak.agent = two_pieces()
    weak.events = weak.agent:events()
    local events = weak.events
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak.agent)
    assert.is_nil(events())
    local agent <close> = two_pieces()
    weak.events = agent:events()
    events = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak.events)
    assert(agent:run "x")
  end)

  it("belongs to one conversation", function()
    local agent <close> = two_pieces()
    local events = agent:events()
    local other <close> = agent:fork()
    local third <close> = assert(agent:open())
    assert(other:run "x")
    assert(third:run "x")
    assert.equal(0, #events)
  end)

  it("refuses what it does not know", function()
    local agent <close> = two_pieces()
    local function refused(pattern, f)
      local ok, err = pcall(f)
      assert.is_false(ok)
      assert.matches(pattern, tostring(err))
    end
    refused("events_spec%.lua:%d+: .*there is no event 'text' %(did you mean 'content'%?%)",
      function() agent:events { types = { "text" } } end)
    refused("types must be strings, found number", function() agent:events { types = { 1 } } end)
    refused("from 1 to 1000000, found 0", function() agent:events { max = 0 } end)
    refused("did you mean 'max'", function() agent:events { maxx = 1 } end)
    refused("expected a table of fields, found number", function() agent:events(5) end)
    refused("has no 'next': it has dropped, close", function() return agent:events().next end)
    agent:close()
    refused("the agent is closed", function() agent:events() end)
  end)

  it("cannot be read by an observer", function()
    local events, warned
    local agent <close> = assert(ah.agent { model = "demo/echo",
      on = { done = function() events() events() end,
        warning = function(e) warned = e.message end } })
    events = agent:events { types = { "done" } }
    assert(agent:run "x")
    assert.matches("an observer cannot wait", warned)
  end)

  it("does not keep a script from its end", function()
    local script = command.temp [[
      local ah = require "agenthost"
      local agent = assert(ah.agent { model = "demo/echo" })
      ah.spawn(function()
        for event in agent:events { types = { "done" } } do
          print("seen", event.text)
        end
        print "over"
      end)
      assert(agent:run "Hello")
    ]]
    local result = command.agenthost(script)
    command.tidy()
    assert.equal("seen\tHello\nover\n", result.out)
    assert.equal(0, result.code, result.err)
  end)

  it("goes on when a test runner has loaded the library again", function()
    local kept = package.loaded.agenthost
    package.loaded.agenthost = nil
    local again = require "agenthost"
    package.loaded.agenthost = kept
    local agent <close> = two_pieces()
    local task = again.spawn(types_of, agent:events())
    ah.spawn(agent.run, agent, "x"):await()
    agent:close()
    assert.same(ALL, task:await())
  end)

  it("holds in random programs of runs, readers, closes and stops", function()
    for seed = 1, tonumber(os.getenv "AGENTHOST_EVENT_PROGRAMS") or 60 do
      local pick = random(seed)
      local ended, begun = 0, 0
      ah.scope(function(scope)
        local agent <close> = two_pieces()
        local queues, tasks = {}, {}
        for _ = 1, pick(8) do
          local step = pick(5)
          if step == 1 then
            queues[#queues + 1] = agent:events { max = pick(9) }
          elseif step == 2 and #queues > 0 then
            local events = queues[pick(#queues)]
            tasks[#tasks + 1] = scope:spawn(function()
              begun = begun + 1
              local _ <close> = setmetatable({}, { __close = function() ended = ended + 1 end })
              for event in events do
                if event.type == "done" and pick(3) == 1 then
                  break
                end
              end
            end)
          elseif step == 3 and #queues > 0 then
            queues[pick(#queues)]:close()
          elseif step == 4 and #tasks > 0 then
            tasks[pick(#tasks)]:cancel()
          else
            assert(agent:run "x")
          end
        end
      end)
      collectgarbage()
      assert.equal(begun, ended, "seed " .. seed)
    end
  end)
end)
