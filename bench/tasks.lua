-- Cost of tasks, beside plain coroutines that do the same by hand. Prints as JSON: microseconds of
-- processor time for each step, and bytes of the process for each of many that wait at once.
--
--   lua5.4 bench/tasks.lua plain N AT_ONCE     coroutines of the stock interpreter
--   agenthost bench/tasks.lua tasks N AT_ONCE  tasks
local KIND, N, AT_ONCE = arg[1], math.tointeger(tonumber(arg[2])), math.tointeger(tonumber(arg[3]))

local create, resume, yield = coroutine.create, coroutine.resume, coroutine.yield

--- Returns the bytes of the process.
local function resident()
  for line in io.lines "/proc/self/status" do
    local kib = line:match "^VmRSS:%s*(%d+)"
    if kib then
      return tonumber(kib) * 1024
    end
  end
end

--- Returns the microseconds of each of n steps, which f does; the best of three.
local function each(n, f)
  local best = math.huge
  for _ = 1, 3 do
    collectgarbage()
    local from = os.clock()
    f(n)
    best = math.min(best, os.clock() - from)
  end
  return best * 1e6 / n
end

-- -- coroutines --------------------------------------------------------------------------------

local function nothing() end

local plain = {}

function plain.task(n)
  for _ = 1, n do
    resume(create(nothing))
  end
end

function plain.yield(n)
  local co = create(function() for _ = 1, n do yield() end end)
  for _ = 1, n do
    resume(co)
  end
end

-- A receiver waits for each value, in a queue.
function plain.channel(n)
  local values, first, last, sum = {}, 1, 0, 0
  local co = create(function()
    for _ = 1, n do
      while first > last do
        yield()
      end
      sum, values[first], first = sum + values[first], nil, first + 1
    end
  end)
  resume(co)
  for i = 1, n do
    last = last + 1
    values[last] = i
    resume(co)
  end
  assert(sum == n * (n + 1) // 2)
end

--- Starts n, and returns a function that lets all end.
function plain.many(n)
  local list = {}
  for i = 1, n do
    list[i] = create(yield)
    resume(list[i])
  end
  return function()
    for i = 1, n do
      resume(list[i])
    end
  end
end

-- -- tasks -------------------------------------------------------------------------------------

local ah = KIND == "tasks" and require "agenthost"
local tasks = {}

function tasks.task(n)
  for _ = 1, n do
    ah.spawn(nothing):await()
  end
end

function tasks.yield(n)
  ah.spawn(function() for _ = 1, n do ah.yield() end end):await()
end

function tasks.channel(n)
  local channel, sum = ah.channel(), 0
  ah.all {
    function()
      for i = 1, n do
        channel:send(i)
      end
      channel:close()
    end,
    function()
      for v in channel do
        sum = sum + v
      end
    end,
  }
  assert(sum == n * (n + 1) // 2)
end

function tasks.many(n)
  local gate, list = ah.channel(), {}
  for i = 1, n do
    list[i] = ah.spawn(gate.receive, gate)
  end
  ah.yield()
  return function()
    gate:close()
    for i = 1, n do
      list[i]:await()
    end
  end
end

function tasks.map(n)
  local list = {}
  for i = 1, n do
    list[i] = i
  end
  ah.map(list, nothing)
end

function tasks.with_timeout(n)
  for _ = 1, n do
    ah.with_timeout(60, nothing)
  end
end

local function runs(n)
  local model = ah.scripted(function() return "done" end)
  for _ = 1, n do
    assert(ah.run { model = model, "go" })
  end
end

function tasks.run(n)
  runs(n // 20)
end

function tasks.run_in_task(n)
  ah.spawn(runs, n // 20):await()
end

--- Returns the microseconds to start a task that waits among n others, to cancel one, and to wake
-- one.
local function among(n)
  local gate = ah.channel()
  local function wait()
    return ah.spawn(gate.receive, gate)
  end
  for _ = 1, n do
    wait()
  end
  ah.yield()
  local us = each(2000, function(steps)
    collectgarbage "stop" -- its share depends on where the last collection ended
    for i = 1, steps do
      local other = wait()
      wait()
      ah.yield()
      other:cancel()
      gate:send(i)
    end
    collectgarbage "restart"
  end)
  gate:close()
  return us
end

-- -- all ---------------------------------------------------------------------------------------

local measured = KIND == "tasks" and tasks or plain
local result = {}
for name, f in pairs(measured) do
  if name ~= "many" then
    local us = each(N, f)
    result[name .. "_us"] = name:find "^run" and us * 20 or us
  end
end

local before, from = resident(), os.clock()
local finish = measured.many(AT_ONCE)
result.bytes = (resident() - before) / AT_ONCE
finish()
result.at_once_us = (os.clock() - from) * 1e6 / AT_ONCE
if KIND == "tasks" then
  result.among_few_us, result.among_many_us = among(100), among(10000)
end

local fields = {}
for name, value in pairs(result) do
  fields[#fields + 1] = ('"%s":%.3f'):format(name, value)
end
print("{" .. table.concat(fields, ",") .. "}")
