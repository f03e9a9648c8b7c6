--- ah.spawn and all that is built on it: scopes, several functions at once, lists, times.
local ah = ...

local task = ah._module "agenthost.tasks.task"
local current, raise, sleep, now = ah._current, ah._raise, ah.sleep, ah.now
local new_error = ah.error

local M = {}

local function check_function(f, what)
  if type(f) ~= "function" then
    raise(("%s must be a function, found %s"):format(what, type(f)))
  end
end

local function check_seconds(seconds, what)
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds <= 1e9) then
    raise(("%s: the seconds must be a number from 0 to 1e9, found %s"):format(what,
      tostring(seconds)))
  end
end

--- ah.spawn(f, ...): a task that calls f(...), soon.
function M.spawn(f, ...)
  check_function(f, "ah.spawn: the first argument")
  return task.object(task.start(nil, nil, f, ...))
end

-- -- ah.scope ----------------------------------------------------------------------------------

-- A group whose tasks end together when one of them fails, and with the variable that holds it.
local function new_group()
  local group = task.group()
  group.together = true
  return setmetatable(group, { __close = task.cancel })
end

-- Waits for all tasks of the group; raises what the first that failed has raised.
local function finish(group)
  task.wait(group)
  if group.failed then
    error(group.failed.raised, 0)
  end
end

local GROUP = {} -- the key of the group in the object of a scope
local methods = {}

--- scope:spawn(f, ...): a task of the scope.
function methods.spawn(scope, f, ...)
  check_function(f, "scope:spawn: the first argument")
  local group = scope[GROUP]
  if group.over then
    raise "scope:spawn: the scope has ended"
  end
  return task.object(task.start(group, group.owner, f, ...))
end

--- scope:cancel(): ends all tasks of the scope, the function of the scope included.
function methods.cancel(scope)
  task.cancel(scope[GROUP])
end

local SCOPE = { __name = "agenthost.scope" }

function SCOPE.__index(_, name)
  return methods[name] or raise(("a scope has no '%s': it has spawn, cancel"):format(
    tostring(name)))
end

--- ah.scope(f): calls f(scope), and returns what it returns when all tasks of the scope have ended.
-- The first that raises ends the others, f included, and is raised here.
function M.scope(f)
  check_function(f, "ah.scope: the argument")
  local group <close> = new_group()
  group.owner = current() or false
  local body = task.start(group, nil, f, setmetatable({ [GROUP] = group }, SCOPE))
  finish(group)
  group.over = true
  return task.results(body)
end

-- -- ah.all, ah.race ---------------------------------------------------------------------------

local function start_each(group, list, what)
  local tasks = {}
  for i = 1, ah._check_list(list, what) do
    check_function(list[i], ("%s: value %d of the list"):format(what, i))
  end
  for i, f in ipairs(list) do
    tasks[i] = task.start(group, nil, f)
  end
  return tasks
end

--- ah.all { f, g }: calls the functions beside each other; a list of what each returned first, with
-- `n`. The first that raises ends the others, and is raised here.
function M.all(list)
  local group <close> = new_group()
  local tasks = start_each(group, list, "ah.all")
  finish(group)
  local results = { n = #tasks }
  for i, one in ipairs(tasks) do
    results[i] = task.results(one)
  end
  return results
end

--- ah.race { f, g }: returns what the first that ends has returned, or raises what it has raised;
-- the others are cancelled.
function M.race(list)
  local group <close> = new_group()
  local first
  function group.on_end(one)
    if not first then
      first = one
      task.cancel(group)
    end
  end
  if #start_each(group, list, "ah.race") == 0 then
    raise "ah.race needs at least one function"
  end
  finish(group)
  return task.results(first)
end

-- -- times -------------------------------------------------------------------------------------

--- ah.with_timeout(seconds, f, ...): calls f(...) and returns what it returns, or nil and an error
-- of code `deadline_exceeded` if it takes longer, and is cancelled.
function M.with_timeout(seconds, f, ...)
  check_seconds(seconds, "ah.with_timeout")
  check_function(f, "ah.with_timeout: the second argument")
  local group <close> = new_group()
  local one = task.start(group, nil, f, ...)
  if not task.wait_for(one, seconds) then
    task.cancel(group)
    return nil, new_error { code = "deadline_exceeded",
      message = ("ah.with_timeout: %g seconds are over"):format(seconds) }
  end
  return task.results(one)
end

--- ah.every(seconds, f): a task that calls f() every so many seconds until it is cancelled. A call
-- that takes longer leaves out the times that it has missed.
function M.every(seconds, f)
  check_seconds(seconds, "ah.every")
  check_function(f, "ah.every: the second argument")
  if seconds < 0.001 then
    raise "ah.every: the seconds must be 0.001 at least"
  end
  return M.spawn(function()
    local at = now() + seconds
    while true do
      sleep(math.max(at - now(), 0))
      f()
      at = at + seconds * math.max(1, math.ceil((now() - at) / seconds))
    end
  end)
end

--- ah.yield(): lets all others go on that can.
function M.yield()
  sleep(0)
end

-- -- ah.map ------------------------------------------------------------------------------------

local read_map = ah._reader {
  what = "ah.map", type = "ah.MapConfig", rows = {
    { name = "concurrency", kinds = "integer", least = 1, most = 10000, default = 8,
      doc = "calls at work at the same time" },
    { name = "on_error", kinds = "string", words = "stop collect", default = "stop",
      doc = "`stop`: the first failure ends all; `collect`: the others go on, and the failures are "
        .. "the second result" },
    { name = "progress", kinds = "boolean", default = false,
      doc = "the state is shown on a terminal, and reported by events" },
  },
}

-- A call has failed if it returned nil and a second value.
local function keep(map, i, value, err)
  if value == nil and err ~= nil then
    map.errors[i] = err
    if map.stops then
      map.failed, map.next = map.failed or i, map.n + 1
      task.cancel(map.group)
    end
  else
    map.results[i] = value
  end
end

local function call(map, i)
  if map.stops then
    keep(map, i, map.f(map.list[i], i))
    return
  end
  local ok, value, err = pcall(map.f, map.list[i], i)
  if ok then
    keep(map, i, value, err)
  else
    keep(map, i, nil, value == nil and "nil was raised" or value)
  end
end

local function work(map)
  while map.next <= map.n do
    local i = map.next
    map.next = i + 1
    call(map, i)
  end
end

--- ah.map(list, f, options): calls f(value, i) for each value of the list, some at the same time;
-- returns the list of what each call returned, with `n`. A call that returns nil and an error ends
-- the others, and so does one that raises: nil and that error, or what it raised.
function M.map(list, f, options)
  local n = ah._check_list(list, "ah.map")
  check_function(f, "ah.map: the second argument")
  options = read_map(options or {})
  local group <close> = new_group()
  local map = { list = list, f = f, n = n, next = 1, group = group, results = { n = n },
    errors = {}, stops = options.on_error == "stop" }
  for _ = 1, math.min(n, options.concurrency) do
    task.start(group, nil, work, map)
  end
  finish(group)
  if map.stops and map.failed then
    return nil, map.errors[map.failed]
  end
  return map.results, not map.stops and map.errors or nil
end

return M
