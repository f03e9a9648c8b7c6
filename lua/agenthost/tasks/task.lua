--- Tasks and groups of them, on the primitives of C: a task, its end, a park in which one waits,
-- and waking it (src/lua/lua_spawn.c).
--
-- Each task is in a group, whose tasks are waited for together: that of the task whose code has
-- started it (for the top of a script, the root), or that of a scope. A task ends when its code
-- has returned and its own group is empty.
local ah = ...

local new_task, stop, current, where = ah._task, ah._stop, ah._current, ah._where
local all_threads = ah._tasks
local park, raise, log, new_error = ah._park, ah._raise, ah.log, ah.error

local M = {}

local MOST_KEPT = 64 -- failures of the root that are kept for the end of the script
local SHOWN = 8      -- tasks that the text of a deadlock shows

-- -- groups ------------------------------------------------------------------------------------

--- { running, tasks, failures, together, failed, waiting, on_end }: how many tasks are at work, the
-- set of them, those that failed and were not awaited. `together`: the first that fails is put
-- into `failed` instead, and ends the others. `on_end` is called with each task that ends.
function M.group()
  return { running = 0, tasks = {}, failures = {} }
end

local root = M.group()
M.root = root -- the tasks of the script itself
local groups = setmetatable({}, { __mode = "k" }) -- by what ah._current returns

local function own_group()
  local thread = current()
  if not thread then
    return root
  end
  groups[thread] = groups[thread] or M.group()
  return groups[thread]
end

--- Ends the tasks of the group. No other can be started in it.
function M.cancel(group)
  group.over = true
  for task in pairs(group.tasks) do
    stop(task.thread)
  end
end

--- Waits until all tasks of the group have ended.
function M.wait(group)
  while group.running > 0 do
    group.waiting = park()
    group.waiting:wait "all its tasks"
  end
end

-- -- the end of a task -------------------------------------------------------------------------

-- The stock interpreter has no log: `warn` reports there, after warn "@on" or with lua5.4 -W.
local function tell(...)
  local text = string.format(...)
  log("warning", text)
  if warn then
    warn("agenthost: ", text)
  end
end

-- Called for a task that failed and was not awaited, and by the collector: nothing waits for the
-- tasks that are at work when a script of the stock interpreter ends.
local function report(task)
  if task.state == "running" and task.place then
    tell("the task of %s was at work when the program ended, and was stopped: await it", task.place)
  elseif task.state == "failed" and not task.awaited then
    task.awaited = true
    tell("a task failed, and nothing has awaited it: %s (it was started at %s)",
      task.trace or tostring(task.raised), task.place)
  end
end

local INNER = { __gc = report }

-- Wakes all that wait for the task. Returns true if anything did.
local function wake(task)
  local woken = false
  for _, waiting in ipairs(task.waiting) do
    woken = waiting:wake() or woken
  end
  task.waiting = nil
  return woken
end

local function keep_failure(group, task)
  if group.together then
    group.failed, task.awaited = group.failed or task, true
    M.cancel(group)
  elseif group ~= root or #root.failures < MOST_KEPT then
    table.insert(group.failures, task)
  else
    report(task)
  end
end

-- Called by C, once.
local function ended(group, task, ok, ...)
  task.state = ok and "done" or ok == false and "failed" or "cancelled"
  if ok then
    task.results = table.pack(...)
  elseif ok == false then
    task.raised, task.trace = ...
  end
  group.running, group.tasks[task] = group.running - 1, nil
  task.awaited = wake(task)
  if task.state == "failed" and not task.awaited then
    keep_failure(group, task)
  end
  if group.on_end then
    group.on_end(task)
  end
  if group.running == 0 and group.waiting then
    group.waiting:wake()
  end
end

local at_work = setmetatable({}, { __mode = "kv" }) -- tasks, by what ah._current returns

--- Returns the task whose code runs; nil: none that a script has started.
function M.own()
  local thread = current()
  return thread and at_work[thread]
end

--- Starts a task that calls f(...), soon.
---@param group table|nil nil: that of the task at work
---@param parent userdata|false|nil the task with which it is stopped; nil: the one at work
function M.start(group, parent, f, ...)
  group = group or own_group()
  if group.over then
    raise "the tasks were cancelled: no other can be started beside them"
  end
  local task = { state = "running", waiting = {}, group = group }
  setmetatable(task, INNER)
  task.thread, task.place = new_task(f, function(...)
    ended(task.group, task, ...)
  end, parent, ...)
  at_work[task.thread] = task
  task.group.running, task.group.tasks[task] = task.group.running + 1, true
  return task
end

-- -- awaiting ----------------------------------------------------------------------------------

local function check_circle(own, task)
  local other = task
  while other and other ~= own do
    other = other.awaits
  end
  if other and task == own then
    raise(("a task cannot await itself (it was started at %s)"):format(own.place))
  elseif other then
    raise(("tasks await each other: those of %s and %s"):format(own.place, task.place))
  end
end

local LEFT = { __close = function(wait) wait.own.awaits = nil end }

--- Waits at most so many seconds (nil: as long as it takes). Returns true if the task has ended.
function M.wait_for(task, seconds)
  if task.state ~= "running" then
    return true
  end
  local own = M.own()
  local waiting = park()
  if own then
    check_circle(own, task)
    own.awaits = task
  end
  local _ <close> = own and setmetatable({ own = own }, LEFT) or nil
  table.insert(task.waiting, waiting)
  waiting:wait("await", seconds)
  return task.state ~= "running"
end

--- Returns what the function of a task that has ended has returned; raises what it has raised, or
-- an error of code `cancelled`.
function M.results(task)
  task.awaited = true
  if task.state == "done" then
    return table.unpack(task.results, 1, task.results.n)
  elseif task.state == "failed" then
    error(task.raised, 0)
  end
  error(new_error { code = "cancelled",
    message = ("the task of %s was cancelled"):format(task.place) }, 0)
end

--- Raises the first failure of the group that nothing has awaited; the others are warnings.
function M.raise(group)
  local failures = group.failures
  group.failures = {}
  local first
  for _, task in ipairs(failures) do
    if not first and not task.awaited then
      first, task.awaited = task, true
    end
    report(task)
  end
  if first then
    error(first.raised, 0)
  end
end

-- -- the object --------------------------------------------------------------------------------

local TASK = {} -- the key of the task in its object
local methods = {}

--- task:await(): waits for its end, and returns what its function has returned. Raises what that
-- has raised, or an error of code `cancelled`.
function methods.await(object)
  M.wait_for(object[TASK])
  return M.results(object[TASK])
end

--- task:cancel(): ends it. Its runs are settled, and its variables marked <close> are closed.
-- Harmless if it has ended. A task that cancels itself is ended at its next wait.
function methods.cancel(object)
  stop(object[TASK].thread)
end

--- task:status(): "running", "done", "failed" or "cancelled".
function methods.status(object)
  return object[TASK].state
end

local META = { __name = "agenthost.task" }

function META.__index(_, name)
  return methods[name] or raise(("a task has no '%s': it has await, cancel, status"):format(
    tostring(name)))
end

META.__close = methods.cancel

function META.__tostring(object)
  local task = object[TASK]
  return ("task of %s (%s)"):format(task.place, task.state)
end

--- Returns the task as scripts have it.
function M.object(task)
  return setmetatable({ [TASK] = task }, META)
end

--- Returns the task of an object; nil if it is none.
function M.of(object)
  return getmetatable(object) == META and object[TASK] or nil
end

-- -- hooks of C --------------------------------------------------------------------------------

local function line_of(thread)
  local task, line, word = at_work[thread], where(thread)
  return ("\n  %s waits%s (%s)"):format(task and "the task of " .. task.place or "a function",
    line ~= "" and " at " .. line or "", word or "at work") -- a tail call has no line
end

local function stuck()
  local threads, lines = all_threads(), {}
  for i = #threads, math.max(#threads - SHOWN + 1, 1), -1 do -- the newest is the first
    lines[#lines + 1] = line_of(threads[i])
  end
  return ("deadlock: nothing can go on, as all code waits for other code%s%s"):format(
    table.concat(lines), #threads > SHOWN and ("\n  and %d more"):format(#threads - SHOWN) or "")
end

local function join(thread)
  local group = thread == nil and root or groups[thread]
  if group then
    M.wait(group)
    M.raise(group)
  end
end

ah._task_hooks(join, stuck)

return M
