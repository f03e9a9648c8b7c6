-- Random programs of tasks: they start, await and cancel each other, in scopes, lists, races and
-- times, and use channels and semaphores. For each program: every task ends, every variable marked
-- <close> is closed once, no value of a channel is received twice, permits are never too many and
-- come back, and nothing is left at work.
--
--   AGENTHOST_TASKS=100000    number of programs (default 200)
--   AGENTHOST_TASKS_SEED=7    the first seed (default 1)
local ah = require "agenthost"
local generator = require "support.random"

local COUNT = tonumber(os.getenv "AGENTHOST_TASKS" or "200")
local SEED = tonumber(os.getenv "AGENTHOST_TASKS_SEED" or "1")
local PERMITS, MOST, DEEP = 2, 60, 4

-- Counts a begin now, and an end when the variable is closed.
local function guard(world)
  world.begun = world.begun + 1
  local closed = false
  return setmetatable({}, { __close = function()
    world.faults[#world.faults + 1] = closed and "closed twice" or nil
    closed, world.ended = true, world.ended + 1
  end })
end

local step

local function body(world, depth)
  return function()
    local _ <close> = guard(world)
    for _ = 1, world.random(3) do
      step(world, depth + 1)
    end
    return depth
  end
end

local function some(world, depth)
  local list = {}
  for i = 1, world.random(3) do
    list[i] = body(world, depth)
  end
  return list
end

local function nap(world)
  ah.sleep((world.random(3) - 1) / 1000)
end

local steps = {
  nap,
  function() ah.yield() end,
  function(world) -- a task that may be cancelled from anywhere
    world.tasks[#world.tasks + 1] = ah.spawn(body(world, world.depth))
  end,
  function(world) world.tasks[world.random(#world.tasks)]:cancel() end,
  function(world, depth)
    local task <close> = ah.spawn(body(world, depth))
    nap(world)
    return task:await()
  end,
  function(world, depth)
    ah.scope(function(scope)
      for _, f in ipairs(some(world, depth)) do
        scope:spawn(f)
      end
      nap(world)
    end)
  end,
  function(world, depth) ah.all(some(world, depth)) end,
  function(world, depth) ah.race(some(world, depth)) end,
  function(world, depth) ah.with_timeout(world.random(3) / 1000, body(world, depth)) end,
  function(world, depth)
    ah.map({ 1, 2, 3 }, body(world, depth), { concurrency = world.random(3),
      on_error = world.random(2) == 1 and "stop" or "collect" })
  end,
  function(world)
    world.sent = world.sent + 1
    ah.with_timeout(0.002, world.channel.send, world.channel, world.sent)
  end,
  function(world)
    ah.with_timeout(0.002, function()
      local value = world.channel:receive()
      world.received[value] = (world.received[value] or 0) + 1
    end)
  end,
  function(world)
    local _ <close> = world.semaphore:acquire()
    world.held = world.held + 1
    local _ <close> = setmetatable({}, { __close = function() world.held = world.held - 1 end })
    world.faults[#world.faults + 1] = world.held > PERMITS and "too many permits" or nil
    nap(world)
  end,
  function() error("on purpose", 0) end,
}

function step(world, depth)
  world.depth = depth
  world.left = world.left - 1
  if depth > DEEP or world.left < 0 then
    return nap(world)
  end
  local number = world.random(#steps)
  if number == 4 and #world.tasks == 0 then
    number = 1
  end
  return steps[number](world, depth)
end

-- Returns the faults of the program of this seed.
local function try(seed)
  local world = { random = generator(seed), left = MOST, begun = 0, ended = 0, held = 0, sent = 0,
    depth = 1, tasks = {}, received = {}, faults = {}, channel = ah.channel(2),
    semaphore = ah.semaphore(PERMITS) }
  local whole = ah.spawn(body(world, 1))
  local _, err = ah.with_timeout(30, pcall, whole.await, whole)
  local faults = world.faults
  if type(err) == "table" and err.code == "deadline_exceeded" then
    faults[#faults + 1] = "waits for ever"
  end
  whole:cancel()
  for _, task in ipairs(world.tasks) do
    faults[#faults + 1] = task:status() == "running" and "a task is left at work" or nil
  end
  faults[#faults + 1] = world.begun ~= world.ended and "not all is closed" or nil
  faults[#faults + 1] = world.held ~= 0 and "a permit is held" or nil
  for i = 1, PERMITS do -- all of them can be taken again
    local permit = ah.with_timeout(5, world.semaphore.acquire, world.semaphore)
    faults[#faults + 1] = not permit and ("permit %d is lost"):format(i) or nil
  end
  for _, times in pairs(world.received) do
    faults[#faults + 1] = times > 1 and "a value was received twice" or nil
  end
  return table.concat(faults, ", ")
end

describe("random programs of tasks", function()
  it("end, close what they have opened, and leave nothing behind", function()
    for seed = SEED, SEED + COUNT - 1 do
      local faults = try(seed)
      assert.equal("", faults, ("AGENTHOST_TASKS_SEED=%d AGENTHOST_TASKS=1"):format(seed))
    end
  end)
end)
