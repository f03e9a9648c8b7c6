-- Limits of tasks: those of a call are shared by its tasks; numbers and depths; memory per task.
local ahtest = require "ahtest"
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"

local MIB = 1 << 20

-- Runs a tool once with this handler. Returns its result for the model.
local function call(handler, fields)
  collectgarbage() -- what others have left behind would be counted as given back
  local tool = { name = "work", description = "Works.", memory = 8 * MIB, handler = handler }
  for key, value in pairs(fields or {}) do
    tool[key] = value
  end
  local reply = assert(ah.run { tools = { ah.tool(tool) }, log = function() end,
    model = ah.scripted { { calls = { { name = "work", arguments = {} } } }, "done" }, "hi" })
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      return m.content
    end
  end
end

local function fill()
  local kept = {}
  while true do
    kept[#kept + 1] = ("x"):rep(1000) .. #kept
  end
end

local function busy(seconds)
  local till = os.clock() + seconds
  while os.clock() < till do end
end

-- Sets the limit of time at work until the value is closed.
local function work_limit(seconds)
  local before = ahtest.work_limit(seconds)
  return setmetatable({}, { __close = function() ahtest.work_limit(before) end })
end

describe("the memory of a call", function()
  it("is that of all its tasks together, tasks of tasks included", function()
    local function keep(depth)
      local kept = ("x"):rep(MIB)
      ah.sleep(0.01)
      if depth < 12 then
        ah.spawn(keep, depth + 1):await()
      end
      return #kept
    end
    assert.matches("its code would have taken %d+ bytes of memory; the limit is 8388608, and",
      call(function() return ah.spawn(keep, 1):await() end))
    assert.equal("3145728", call(function() return 3 * ah.spawn(keep, 12):await() end))
  end)

  it("counts what tasks keep after they have ended, and not what was collected", function()
    assert.equal("done", call(function()
      ah.map({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }, function() return #("x"):rep(MIB) end)
      return "done"
    end))
    assert.matches("the limit is 8388608", call(function()
      local kept = {}
      for i = 1, 12 do
        kept[i] = ah.spawn(string.rep, "x", MIB)
      end
      ah.sleep(0.005)
      return "too much: " .. #kept
    end))
  end)

  it("that one task exceeds is an error there, and the others go on", function()
    local result = call(function()
      local greedy = ah.spawn(fill)
      local other = ah.spawn(function() ah.sleep(0.01) return #("y"):rep(MIB) end)
      local ok, err = pcall(greedy.await, greedy)
      return ("%s %s %d"):format(ok, err.message:match "would have taken", other:await())
    end)
    assert.equal("false would have taken 1048576", result)
  end)

  it("has more for what a task closes, each time anew, and the same limit afterwards", function()
    local closed = 0
    local result = call(function()
      for _ = 1, 3 do
        local greedy = ah.spawn(function()
          local _ <close> = setmetatable({}, { __close = function()
            closed = closed + #("y"):rep(MIB // 4)
          end })
          fill()
        end)
        pcall(greedy.await, greedy)
      end
      local last = ah.spawn(fill)
      local _, err = pcall(last.await, last)
      return err.message:match "the limit is %d+"
    end)
    assert.equal(3 * MIB // 4, closed)
    assert.equal("the limit is 8388608", result)
  end)

  it("counts once what a task takes that the handler cancels", function()
    local much = {}
    local script = ah.spawn(function() -- the heap grows beside the call
      for i = 1, 12 do
        much[i] = ("x"):rep(MIB) .. i
        ah.yield()
      end
    end)
    local result = call(function()
      script:await()
      local kept = {}
      for i = 1, 10 do
        local task = ah.spawn(function()
          local _ <close> = setmetatable({}, { __close = function()
            kept[i] = ("y"):rep(MIB // 2)
          end })
          ah.sleep(60)
        end)
        ah.yield()
        task:cancel()
      end
      kept[11] = ("z"):rep(MIB)
      return #kept + #much
    end)
    assert.equal("23", result)
  end)

  it("holds in a task that the handler cancels while its own code is at work", function()
    patiently(function() -- it has a second to close
      local ok, err
      call(function()
        local task = ah.spawn(function()
          local _ <close> = setmetatable({}, { __close = function() ok, err = pcall(fill) end })
          ah.sleep(60)
        end)
        ah.sleep(0.005)
        task:cancel()
      end)
      assert.is_false(ok)
      assert.matches("not enough memory", err)
    end)
  end)

  it("that a buffer exceeds by less than a quarter leaves memory to close", function()
    local closed
    local result = call(function()
      ah.spawn(function()
        local _ <close> = setmetatable({}, { __close = function()
          closed = #("y"):rep(MIB // 4)
        end })
        return #("x"):rep(9 * MIB)
      end):await()
    end)
    assert.matches("the limit is 8388608", result)
    assert.equal(MIB // 4, closed)
  end)

  it("is not that of tasks of the script, nor of other calls", function()
    local script = ah.spawn(function()
      local kept = {}
      for i = 1, 40 do
        kept[i] = ("x"):rep(MIB // 4 + i)
        ah.yield()
      end
      return #kept
    end)
    assert.equal("40", call(function() return script:await() end))
  end)
end)

describe("the time of a call", function()
  it("at work is that of all its tasks together", function()
    local before <close> = work_limit(0.2)
    local calls = 0
    local result = call(function()
      for _ = 1, 16 do
        ah.spawn(function() busy(0.05) calls = calls + 1 end)
      end
    end)
    assert.matches("its code ran for more than 0.2 seconds", result)
    assert.truthy(calls < 5, calls)
    assert.is_table(before)
  end)

  it("ends the tasks that work when it is over, and closes them", function()
    local closed = 0
    local result = call(function()
      local function turn() while true do ah.yield() end end
      for _, f in ipairs { function() ah.sleep(60) end, turn } do
        ah.spawn(function()
          local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
          f()
        end)
      end
      return "its own value"
    end, { timeout = 0.05 })
    assert.matches("0.05", result)
    assert.equal(2, closed)
  end)

  it("ends a task that computes without end", function()
    assert.matches("did not finish within 0.05 seconds", call(function()
      ah.spawn(function() while true do pcall(busy, 0.001) end end)
    end, { timeout = 0.05 }))
  end)
end)

describe("tasks", function()
  it("inside tasks are at most 100 deep", function()
    local deepest = 0
    local function deeper(depth)
      deepest = depth
      return ah.spawn(deeper, depth + 1):await()
    end
    local _, err = pcall(function() return ah.spawn(deeper, 1):await() end)
    assert.equal("usage", err.code)
    assert.matches("tasks inside tasks are more than 100 deep", err.message)
    assert.equal(101, deepest)
  end)

  it("take less than 4 KiB each, 10,000 at once, and give it back", function()
    local function kib()
      collectgarbage()
      collectgarbage()
      return collectgarbage "count"
    end
    local function round()
      local before, tasks = kib(), {}
      for i = 1, 10000 do
        tasks[i] = ah.spawn(ah.sleep, 0.01)
      end
      ah.sleep(0)
      local each = (kib() - before) / 10000
      for _, task in ipairs(tasks) do
        task:await()
      end
      return each
    end
    assert.truthy(round() < 4)
    local first = kib() -- with tables that stay as large as they were
    assert.truthy(round() < 4)
    assert.truthy(kib() - first < 100, kib() - first)
  end)

  it("that nothing refers to go on, and are collected when they have ended", function()
    local seen, weak = 0, setmetatable({}, { __mode = "v" })
    for i = 1, 5 do
      weak[i] = ah.spawn(function()
        local big = ("x"):rep(1000) .. i
        ah.sleep(0.01)
        seen = seen + #big // 1000
      end)
    end
    collectgarbage()
    collectgarbage()
    for _ = 1, 1000 do
      if seen == 5 then break end
      ah.sleep(0.01)
    end
    assert.equal(5, seen)
    collectgarbage()
    collectgarbage()
    assert.is_nil(next(weak))
  end)

  it("take and return many values; too many are an error", function()
    local function count(...) return select("#", ...) end
    assert.equal(100000, ah.spawn(count, table.unpack({}, 1, 100000)):await())
    assert.equal(100000, count(ah.spawn(table.unpack, {}, 1, 100000):await()))
    local ok, err = pcall(function() return ah.spawn(count, table.unpack({}, 1, 900000)) end)
    assert.is_false(ok)
    assert.matches("stack overflow", tostring(err))
    ok, err = pcall(function() return count(ah.spawn(table.unpack, {}, 1, 990000):await()) end)
    assert.is_false(ok)
    assert.is_truthy(err)
    assert.equal(3, ah.spawn(count, 1, 2, 3):await())
  end)

  it("beyond 100,000 at work are refused, and the others are not harmed", function()
    local r = command.agenthost("-e", [[
local ah = require "agenthost"
local n, ok, err = 0, true, nil
local channel = ah.channel()
while ok and n < 100100 do
  ok, err = pcall(ah.spawn, channel.receive, channel)
  n = n + (ok and 1 or 0)
end
print(n, err.code, err.message:match "use ah.map")
ah.yield()
channel:close()]])
    assert.equal("100000\tusage\tuse ah.map\n", r.out, r.err)
    assert.equal(0, r.code, r.err)
  end)
end)
