-- The progress of ah.map: an event for programs, a line for people. docs/reference/tasks.md,
-- "Progress".
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"

local LIST = {}
for i = 1, 20 do
  LIST[i] = i
end

local function spending(tokens)
  return ah.scripted { { text = "x", usage = { input = tokens, output = 1, cost = 0.5 } } }
end

-- Returns the events of a handler that calls ah.map.
local function events_of(list, f, options)
  local events = {}
  options.progress = true
  local tool = ah.tool { name = "t", description = "D.",
    handler = function() return #assert(ah.map(list, f, options)) end }
  local reply = assert(ah.run { tools = { tool }, "x", log = function() end,
    model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" },
    on = { map_progress = function(e) events[#events + 1] = e end } })
  return events, reply
end

local function lines_of(out, type_name)
  local list = {}
  for line in out:gmatch "[^\n]+" do
    local event = assert(ah.json.decode(line))
    list[#list + 1] = event.type == type_name and event or nil
  end
  return list
end

describe("the event map_progress", function()
  it("has the counts of each change, and ends once", function()
    local events = events_of(LIST, function(i)
      ah.sleep(0.001 * (i % 4))
      return assert(ah.run { model = spending(9), "x" }).text
    end, { concurrency = 3 })
    local last, ended = nil, 0
    for _, e in ipairs(events) do
      assert.equal(20, e.total)
      assert.is_true(e.done + e.running <= 20 and e.running <= 3 and e.failed == 0)
      assert.is_true(not last or e.done >= last.done and e.tokens >= last.tokens)
      assert.equal(e.done > 0 and not e.ended, e.left ~= nil)
      last, ended = e, ended + (e.ended and 1 or 0)
    end
    assert.equal(1, ended)
    assert.same({ 0, 0 }, { events[1].done, events[1].running })
    assert.same({ 20, 0, 200, 10.0, true },
      { last.done, last.running, last.tokens, last.cost, last.ended })
  end)

  it("counts what runs below its calls use, and no others", function()
    local last = {}
    local function other()
      return assert(ah.run { model = spending(1000), "x" }).text
    end
    local inner = ah.tool { name = "inner", description = "D.", handler = other }
    local function first()
      assert(ah.all { other }) -- a task below the call
      return assert(ah.run { tools = { inner }, "x", model = ah.scripted {
        { calls = { { name = "inner", arguments = {} } }, usage = { input = 100, output = 0 } },
        { text = "y", usage = { input = 100, output = 0 } } } }).text
    end
    local tool = ah.tool { name = "t", description = "D.", handler = function()
      return #ah.all {
        function() return ah.map({ 1, 2 }, first, { progress = true }) end,
        function()
          return ah.map({ 1 }, function() return ah.map({ 1, 2 }, other, { progress = true }) end,
            { progress = true })
        end,
        function() return ah.map({ 1, 2, 3 }, tostring, { progress = true }) end,
        other, other,
      }
    end }
    assert(ah.run { tools = { tool }, "x", log = function() end,
      model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" },
      on = { map_progress = function(e) last[e.map] = e end } })
    local figures = {}
    for _, e in pairs(last) do
      figures[#figures + 1] = ("%d calls: %d tokens, %s"):format(e.total, e.tokens, e.cost)
    end
    table.sort(figures)
    assert.same({ "1 calls: 2002 tokens, 1.0", "2 calls: 2002 tokens, 1.0",
      "2 calls: 4404 tokens, 2.0", "3 calls: 0 tokens, nil" }, figures)
  end)

  it("takes calls at work for half done in the time left", function()
    local first
    for _, e in ipairs((events_of(LIST, function(i) ah.sleep(0.02) return i end,
      { concurrency = 10 }))) do
      first = first or e.left and e
    end
    local worth = first.done + first.running / 2
    assert.is_true(worth >= 5)
    local expected = first.seconds / worth * (20 - worth)
    assert.is_true(math.abs(first.left - expected) < 1e-9)
  end)

  it("counts failures, and ends with them", function()
    local events = events_of(LIST, function(i) return i % 4 == 0 and i or nil, "bad" end,
      { on_error = "collect" })
    assert.same({ 20, 15, true },
      { events[#events].done, events[#events].failed, events[#events].ended })
    events = events_of(LIST, function() error "bad" end, { concurrency = 1 })
    assert.same({ 1, true }, { events[#events].failed, events[#events].ended })
    events = events_of({}, print, {})
    assert.same({ 0, true }, { events[#events].total, events[#events].ended })
  end)

  it("comes only if it is asked for, and numbers the maps", function()
    local count, numbers = 0, {}
    local tool = ah.tool { name = "t", description = "D.", handler = function()
      ah.map(LIST, math.abs)
      ah.map(LIST, math.abs, { progress = true })
      ah.map(LIST, math.abs, { progress = true })
    end }
    assert(ah.run { tools = { tool }, "x",
      model = ah.scripted { { calls = { { name = "t", arguments = {} } } }, "done" },
      on = { map_progress = function(e)
        count = count + (numbers[e.map] and 0 or 1)
        numbers[e.map] = true
      end } })
    assert.equal(2, count)
  end)
end)

describe("ah.map that is cancelled", function()
  it("closes the variables of its calls", function()
    local closed = 0
    local task = ah.spawn(function()
      return ah.map(LIST, function()
        local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
        ah.sleep(60)
      end, { concurrency = 5, progress = true })
    end)
    ah.sleep(0.01)
    task:cancel()
    assert.is_false((pcall(task.await, task)))
    assert.equal(5, closed)
  end)

  it("raises the error of a call that was cancelled itself", function()
    local other = ah.spawn(ah.sleep, 60)
    other:cancel()
    local ok, err = pcall(ah.map, LIST, function() return other:await() end)
    assert.is_false(ok)
    assert.equal("cancelled", err.code)
    assert.matches("the task of .* was cancelled", err.message)
  end)
end)

local SCRIPT = [[
  local ah = require "agenthost"
  local list = {}
  for i = 1, 1000 do list[i] = i end
  local ok, err = pcall(ah.map, list, function(i)
    if i == 304 then io.popen("kill -INT $PPID"):close() end
    if i > 300 then ah.sleep(60) end
    if i % 100 == 0 then return nil, "bad" end
    return i
  end, { progress = true, on_error = "collect", concurrency = 4 })
  io.stderr:write(tostring(err.code), " ", tostring(err.results and err.results[299]), " ",
    tostring(err.errors and err.errors[300]), "\n")
  error(err, 0)
]]

describe("examples/map.lua", function()
  teardown(command.tidy)

  it("sums up a thousand files without a key", function()
    local result = command.shell [[unset AGENTHOST_MODEL; "$A" examples/map.lua]]
    assert.equal(0, result.code, result.err)
    assert.equal(1000, select(2, result.out:gsub("\n", "")))
    assert.matches("^note%-0001%.txt\t8 bags of salt went to Rome%.\n", result.out)
    assert.matches("^1000 files, 0 failed, 1000 requests, ", result.err)
  end)

  it("is checked up to its first run, in which its task waits", function()
    local result = command.shell [[unset AGENTHOST_MODEL; "$A" check examples/map.lua]]
    assert.same({ code = 0, err = "",
      out = "examples/map.lua: no faults (0 agents, 1 run, 0 tools)\n" }, result)
  end)

  it("is checked with the tasks that look on", function()
    local path = command.temp [[
      local ah = require "agenthost"
      local agent <close> = ah.agent { model = "demo/echo" }
      ah.spawn(function() for _ in agent:events() do end end)
      return ah.map({ "a", "b" }, function(text)
        return ah.run { model = "demo/echo", retires = 3, text }
      end)
    ]]
    local result = command.agenthost("check", path)
    assert.equal(1, result.code)
    assert.matches(":5: ah.run: unknown field 'retires' %(did you mean 'retries'%?%)", result.out)
    assert.matches("1 fault %(1 agent, 1 run, 0 tools%)", result.out)
    assert.equal("", result.err)
  end)
end)

describe("the command", function()
  teardown(command.tidy)

  it("prints the event with --jsonl, without a run at the top of a script", function()
    local path = command.temp [[
      local ah = require "agenthost"
      print(ah.map({ 1, 2, 3 }, function(i) return i end, { progress = true }).n)
    ]]
    local result = command.agenthost("--jsonl", path)
    local events = lines_of(result.out, "map_progress")
    assert.equal(0, result.code, result.err)
    assert.is_true(#events > 3)
    assert.is_nil(events[1].run)
    local last = events[#events]
    assert.same({ 3, 3, true }, { last.total, last.done, last.ended })
    assert.equal("3\n", result.err)
  end)

  it("shows nothing in a pipe, and how far it was when it was interrupted", function()
    patiently(function() -- the script has 0.2 s after the signal
      local result = command.script(SCRIPT)
      assert.equal(130, result.code)
      assert.equal("", result.out)
      assert.equal("cancelled 299 bad\nagenthost: interrupted: 300 of 1000 calls were done\n",
        result.err)
    end)
  end)

  it("prints what is done after Ctrl-C", function()
    patiently(function() -- the script has 0.2 s after the signal
      local r
      for seconds = 1, 9, 4 do -- on a busy machine the script may not have begun at first
        -- without --foreground, timeout gives the signal twice
        r = command.shell(("unset AGENTHOST_MODEL; timeout --foreground --preserve-status -s INT "
          .. '%d "$A" examples/map.lua'):format(seconds))
        assert.equal(130, r.code)
        if r.err ~= "" then
          break
        end
      end
      local _, lines = r.out:gsub("\n", "")
      assert.equal(("agenthost: interrupted: %d of 1000 calls were done\n"):format(lines), r.err)
    end)
  end)
end)
