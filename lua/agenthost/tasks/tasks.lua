--- ah.spawn and what is built on it: scopes, several functions at once, times.
local ah = ...

local start, wait_for, new_group = ah._start, ah._wait_for, ah._group
local current, raise, sleep, now = ah._current, ah._raise, ah.sleep, ah._clock
local new_error, skip = ah.error, ah._skip
local durable = ah._durable

local M = {}

--- Raises unless f is a function.
function M.check_function(f, what)
  if type(f) ~= "function" then
    raise(("%s must be a function, found %s"):format(what, type(f)))
  end
end

local check_function = M.check_function

local function check_seconds(seconds, what)
  if type(seconds) ~= "number" or not (seconds >= 0 and seconds <= 1e9) then
    raise(("%s: the seconds must be a number from 0 to 1e9, found %s"):format(what,
      tostring(seconds)))
  end
end

--- ah.spawn(f, ...): a task that calls f(...), soon.
function M.spawn(f, ...)
  check_function(f, "ah.spawn: the first argument")
  return start(nil, nil, f, ...)
end

-- -- ah.scope ----------------------------------------------------------------------------------

local GROUP, OWNER = {}, {} -- the keys of the group, and of the task around it, in a scope
local methods = {}

--- scope:spawn(f, ...): a task of the scope.
function methods.spawn(scope, f, ...)
  check_function(f, "scope:spawn: the first argument")
  local group = scope[GROUP]
  if group:over() then
    raise "scope:spawn: the scope has ended"
  end
  return start(group, scope[OWNER], f, ...)
end

--- scope:cancel(): ends all tasks of the scope, the function of the scope included.
function methods.cancel(scope)
  scope[GROUP]:cancel()
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
  local scope = setmetatable({ [GROUP] = group, [OWNER] = current() or false }, SCOPE)
  local body = start(group, nil, f, scope)
  group:join()
  group:shut()
  return body:await()
end

-- -- decisions in durable handlers -------------------------------------------------------------

-- The number of the task that ended first is a step: when the handler is entered again, only the
-- functions that count are called again. n: how many tasks there are; nil: the decision is a
-- boolean. Returns the step, and what is recorded; nil: the code is not durable.
local function first(name, n)
  if durable() then
    return ah._module("agenthost.tasks.steps").first(name, n)
  end
end

local function decide(step, decided)
  if step then
    ah._module("agenthost.tasks.steps").decide(step, decided)
  end
end

M.first, M.decide = first, decide

-- Joins the group, and records the number of the task that has ended it; 0: none has.
local function join_and_decide(step, group, tasks, find)
  if not step then
    group:join()
    return
  end
  local ok, err = pcall(group.join, group)
  local decided = 0
  for i, one in ipairs(tasks) do
    decided = find(one) and i or decided
  end
  decide(step, decided)
  if not ok then
    error(err, 0)
  end
end

-- -- ah.all, ah.race ---------------------------------------------------------------------------

local function check_functions(list, what)
  local n = ah._check_list(list, what)
  for i = 1, n do
    check_function(list[i], ("%s: value %d of the list"):format(what, i))
  end
  return n
end

-- only: the number of the one function that is started; nil or 0: all are.
local function start_each(group, list, only)
  local tasks = {}
  for i, f in ipairs(list) do
    if (only or 0) == 0 or only == i then
      tasks[#tasks + 1] = start(group, nil, f)
    else
      skip(1)
    end
  end
  return tasks
end

local function has_failed(one)
  return one:status() == "failed"
end

--- ah.all { f, g }: calls the functions beside each other; a list of what each returned first, with
-- `n`. The first that raises ends the others, and is raised here.
function M.all(list)
  local n = check_functions(list, "ah.all")
  local group <close> = new_group()
  local step, failed = first("all", n)
  local tasks = start_each(group, list, failed)
  join_and_decide(not failed and step or nil, group, tasks, has_failed)
  local results = { n = #tasks }
  for i, one in ipairs(tasks) do
    results[i] = one:await()
  end
  return results
end

--- ah.race { f, g }: returns what the first that ends has returned, or raises what it has raised;
-- the others are cancelled.
function M.race(list)
  local n = check_functions(list, "ah.race")
  if n == 0 then
    raise "ah.race needs at least one function"
  end
  local group <close> = new_group "race"
  local step, winner = first("race", n)
  local tasks = start_each(group, list, winner)
  join_and_decide(not winner and step or nil, group, tasks, function(one)
    if group:failed() then -- the others have ended before it, as they were cancelled
      return has_failed(one)
    end
    return one == group:won()
  end)
  return group:won():await()
end

-- -- times -------------------------------------------------------------------------------------

local function too_late(seconds)
  return new_error { code = "deadline_exceeded",
    message = ("ah.with_timeout: %g seconds are over"):format(seconds) }
end

--- ah.with_timeout(seconds, f, ...): calls f(...) and returns what it returns, or nil and an error
-- of code `deadline_exceeded` if it takes longer, and is cancelled.
function M.with_timeout(seconds, f, ...)
  check_seconds(seconds, "ah.with_timeout")
  check_function(f, "ah.with_timeout: the second argument")
  local group <close> = new_group()
  local step, came = first "with_timeout"
  if came == false then
    skip(1)
    return nil, too_late(seconds)
  end
  local one = start(group, nil, f, ...)
  if came == nil then
    came = wait_for(one, seconds)
    decide(step, came)
  end
  if not came then
    group:cancel()
    return nil, too_late(seconds)
  end
  return one:await()
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

return M
