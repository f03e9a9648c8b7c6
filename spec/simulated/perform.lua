--- Performs a program of program.lua, and judges what it has left behind. Loaded once per host by
-- simulated.c, which owns the clock, and whose global `note(n)` counts what is open beyond the end
-- of the Lua state: variables marked <close>.
local ah = require "agenthost"
local programs = dofile "spec/simulated/program.lua"

local note = note -- luacheck: ignore

local M = {}

local PERMITS, MOST_STEPS, MOST_FAULTS, MOST_CLOSES = 2, 300, 4, 10
local ROOMS = { 0, 1, 3 } -- of the channels

local world -- that of the program at work
local worlds = setmetatable({}, { __mode = "k" })

local function fault(...)
  if #world.faults < MOST_FAULTS then
    world.faults[#world.faults + 1] = string.format(...)
  end
end

-- -- errors ------------------------------------------------------------------------------------

local CODES = {}
for code in ([[cancelled deadline_exceeded budget_exceeded usage loop_detected provider
    max_iterations_exceeded tool_not_found]]):gmatch "%S+" do
  CODES[code] = true
end

-- Mistakes that programs are meant to make: errors of code `usage` that have one of these texts.
local USAGES = { "deadlock", "await itself", "await each other", "the scope has ended",
  "the task has ended or was cancelled", "no other can be started", "the call is over",
  "deep, which `max_nested`", "more than 8 deep", "is already running", "the agent is closed",
  "a run of it is at work", "is at work in this code", "nothing to wait for",
  "the agent was closed",
  "this code is part of a run of the agent" }

local function is_usage(text)
  for _, part in ipairs(USAGES) do
    if text:find(part, 1, true) then
      return true
    end
  end
end

local function is_expected(err)
  if type(err) == "table" and err.purpose or err == nil then
    return true
  elseif type(err) == "string" then
    return err:find("on purpose", 1, true) or err:find("stopped: the time for this call", 1, true)
  end
  local ok, code = pcall(function() return err.code end)
  if not ok or not CODES[code] then
    err = tostring(err)
    return err:find("on purpose", 1, true) or err:find("its code was stopped", 1, true)
  end
  return code ~= "usage" or is_usage(tostring(err))
end

local function look_at(err)
  if not is_expected(err) then
    fault("odd error: %s", tostring(err))
  end
end

-- -- each task ends once -----------------------------------------------------------------------

local start, current = ah._start, ah._current
local records = setmetatable({}, { __mode = "k" }) -- by task

-- Stands between the library and its own primitive, so that tasks of scopes, lists and times are
-- counted as well. A checked build ends at once where a task ends twice.
function ah._start(group, parent, f, ...)
  local record = {}
  local function begin(...)
    if record.begun then
      fault "a task began twice"
    elseif record.task:status() ~= "running" then
      fault "a task began after its end"
    end
    record.begun = true
    return f(...)
  end
  local task = start(group, parent, begin, ...)
  record.task = task
  world.records[#world.records + 1], records[task] = record, record
  return task
end

-- -- values that are closed once ---------------------------------------------------------------

local function guard(on_close)
  local its, closed = world, false
  note(1)
  its.opened = its.opened + 1
  return setmetatable({}, { __close = function(_, err)
    if closed then
      fault "a variable was closed twice"
    end
    closed, its.closed = true, its.closed + 1
    note(-1)
    look_at(err)
    if on_close then
      on_close()
    end
  end })
end

-- -- bodies ------------------------------------------------------------------------------------

local ops = {}

local function step(st)
  local record = records[current() or false]
  if record and record.task:status() ~= "running" then
    fault "a task works after its end"
  end
  world.steps = world.steps + 1
  if world.steps > MOST_STEPS then
    return ah.sleep(0.001)
  end
  return ops[st.op](st, st.n, st.m)
end

local function perform(list)
  local _ <close> = guard()
  for _, st in ipairs(list or {}) do
    step(st)
  end
  return #(list or {})
end

local function body_of(list)
  return function() return perform(list) end
end

local function bodies_of(st)
  local list = {}
  for i, inner in ipairs(st) do
    list[i] = body_of(inner)
  end
  return list
end

-- Returns one of the list, or nil if it is empty.
local function pick(list, n)
  return list[(n - 1) % math.max(#list, 1) + 1]
end

local function nap(n)
  ah.sleep((n - 1) % 20 / 1000)
end

function ops.sleep(_, n) nap(n) end
function ops.yield() ah.yield() end
function ops.collect() collectgarbage() end

function ops.raise(_, n)
  local kinds = { "on purpose", { purpose = true },
    ah.error { code = "internal", message = "on purpose" }, false }
  error(pick(kinds, n) or nil, 0)
end

-- A variable whose end waits, raises, cancels, starts or performs.
function ops.closing(st, n, m)
  local ends = { function() nap(m) end, function() error("on purpose", 0) end,
    function() ops.cancel(nil, m) end, function() ah.spawn(body_of(st[1])) end, body_of(st[1]) }
  local _ <close> = guard(pick(ends, n))
  nap(m)
end

-- -- tasks -------------------------------------------------------------------------------------

local function keep(task)
  world.tasks[#world.tasks + 1] = task
  return task
end

function ops.spawn(st, _, m)
  local task = keep(ah.spawn(body_of(st[1])))
  if m % 3 == 0 then
    task:await()
  end
end

function ops.hold(st, n, m)
  local task <close> = keep(ah.spawn(body_of(st[1])))
  nap(n)
  if m % 2 == 0 then
    task:await()
  end
end

local function caught(f, ...)
  local results = table.pack(pcall(f, ...))
  if not results[1] then
    look_at(results[2])
  end
  return results
end

function ops.caught(st) caught(perform, st[1]) end

local function equal(a, b)
  for i = 1, math.max(a.n, b.n) do
    if not rawequal(a[i], b[i]) and tostring(a[i]) ~= tostring(b[i]) then
      return false
    end
  end
  return a.n == b.n
end

-- Twice: what an ended task gives is the same each time.
local function await_twice(task)
  local first = caught(task.await, task)
  if task:status() ~= "running" and first[1] and not equal(first, caught(task.await, task)) then
    fault "a task gave something else when it was awaited again"
  end
end

function ops.await(_, n, m)
  local task = pick(world.tasks, n)
  if not task then
    return
  elseif m % 3 == 0 then
    task:await()
  else
    await_twice(task)
  end
end

function ops.cancel(_, n)
  local task = pick(world.tasks, n)
  if task then
    task:cancel()
  end
end

function ops.scope(st, n, m)
  return ah.scope(function(scope)
    world.scopes[#world.scopes + 1] = scope
    for _, f in ipairs(bodies_of(st)) do
      keep(scope:spawn(f))
    end
    if m % 3 == 0 then
      nap(n)
    end
    if m % 7 == 0 then
      scope:cancel()
    end
  end)
end

function ops.scope_cancel(_, n)
  local scope = pick(world.scopes, n)
  if scope then
    scope:cancel()
  end
end

function ops.scope_spawn(st, n)
  local scope = pick(world.scopes, n)
  if scope then
    keep(scope:spawn(body_of(st[1])))
  end
end

function ops.all(st) ah.all(bodies_of(st)) end

function ops.race(st)
  if st[1] then
    ah.race(bodies_of(st))
  end
end

function ops.map(st, n, m)
  ah.map({ 1, 2, 3 }, body_of(st[1]), { concurrency = n % 3 + 1,
    on_error = m % 2 == 0 and "stop" or "collect", progress = m % 5 == 0 })
end

function ops.timeout(st, n)
  local _, err = ah.with_timeout(n % 20 / 1000, perform, st[1])
  look_at(err)
end

function ops.every(st, n, m)
  local _ <close> = keep(ah.every((n % 5 + 1) / 1000, body_of(st[1])))
  nap(m)
end

function ops.coroutine(st) coroutine.wrap(body_of(st[1]))() end

-- Under a function of C that cannot yield.
function ops.callback(st)
  string.gsub("x", "x", function() perform(st[1]) end)
end

-- -- channels and permits ----------------------------------------------------------------------

local function patiently(m, f)
  if m % 4 == 0 then
    f()
  else
    ah.with_timeout(m % 7 / 1000, f)
  end
end

function ops.send(_, n, m)
  world.sent = world.sent + 1
  local value, its = world.sent, world
  patiently(m, function()
    if pick(its.channels, n):send(value) then
      its.arrived[value] = true
    end
  end)
end

local function take(value)
  if value then
    world.received[value] = (world.received[value] or 0) + 1
  end
end

function ops.receive(_, n, m)
  patiently(m, function() take(pick(world.channels, n):receive()) end)
end

function ops.each(_, n, m)
  patiently(m, function()
    for value in pick(world.channels, n) do
      take(value)
    end
  end)
end

function ops.close_channel(_, n, m)
  if m % 4 == 0 then
    pick(world.channels, n):close()
  end
end

function ops.permit(st, _, m)
  local its = world
  local _ <close> = its.semaphore:acquire()
  its.held = its.held + 1
  if its.held > PERMITS then
    fault "more permits are held than there are"
  end
  local _ <close> = setmetatable({}, { __close = function() its.held = its.held - 1 end })
  perform(st[1])
  if m % 3 == 0 then
    nap(m)
  end
end

-- -- runs --------------------------------------------------------------------------------------

-- Answers with the calls and with a text by turns. delay is in ms.
local function model_of(calls, n)
  local turn = 0
  return ah.scripted(function()
    turn = turn + 1
    local answer = { delay = n % 8 / 1000, usage = { input = 10, output = 5 } }
    if n % 16 == 5 and turn > 1 then
      answer.fail = { message = "on purpose", status = 400 }
    elseif turn % 2 == 1 and calls[1] then
      answer.calls = calls
    else
      answer.text = "done"
    end
    return answer
  end)
end

local function tools_of(st, m)
  local tools, calls = {}, {}
  for i, inner in ipairs(st) do
    tools[i] = ah.tool { name = "tool" .. i, description = "Works.", parallel = m % 2 == 0,
      background = (m + i) % 4 == 0, timeout = m % 7 == 0 and 0.02 or nil,
      handler = body_of(inner) }
    calls[i] = { name = "tool" .. i }
  end
  return tools, calls
end

local function fields_of(tools, model, n, m)
  return { model = model, tools = tools, timeout = n % 6 == 0 and 0.03 or nil,
    deadline = n % 11 == 0 and ah.now() + 0.02 or nil, budget = m % 3 == 0 and world.budget or nil,
    options = { max_tokens = 20 }, max_nested = m % 13 == 0 and 3 or nil, max_iterations = 6 }
end

local function outcome(m, reply, err)
  look_at(err)
  if not reply and m % 4 == 0 then
    error(err, 0)
  end
end

function ops.run(st, n, m)
  local tools, calls = tools_of(st, m)
  local fields = fields_of(tools, model_of(calls, n), n, m)
  fields[1] = "go"
  outcome(m, ah.run(fields))
end

local function agent_of(st, n, m)
  local tools, calls = tools_of(st, m)
  local fields = fields_of(tools, model_of(calls, n), n, m)
  fields.deadline, fields.name = nil, "worker"
  local agent = assert(ah.agent(fields))
  world.agents[#world.agents + 1] = agent
  return agent
end

function ops.agent(st, n, m)
  local agent = agent_of(st, n, m)
  if m % 3 == 0 then
    local events <close> = agent:events { max = 2 }
    outcome(m, agent:run "go")
    nap(#events)
  else
    outcome(m, agent:run "go")
  end
  if m % 5 == 0 then
    agent:close()
  end
end

-- Calls a method of one of the agents; nothing if there is none.
local function on_agent(n, m, name, ...)
  local agent = pick(world.agents, n)
  if agent then
    local results = caught(agent[name], agent, ...)
    if results[1] and name ~= "cancel" and name ~= "close" then
      outcome(m, results[2], results[3])
    end
  end
end

function ops.agent_run(_, n, m) on_agent(n, m, "run", "again") end
function ops.agent_send(_, n, m) on_agent(n, m, "send", "more") end
function ops.agent_cancel(_, n, m) on_agent(n, m, "cancel") end
function ops.agent_close(_, n, m) on_agent(n, m, "close") end
function ops.agent_wait(_, n, m) on_agent(n, m, "wait", m % 5 ~= 0 and m / 2000 or nil) end

function ops.look_on(_, n, m)
  local agent = pick(world.agents, n)
  if not agent then
    return
  end
  keep(ah.spawn(function()
    local _ <close> = guard()
    for _ in agent:events { max = m % 4 + 1 } do
      nap(m)
    end
  end))
end

function ops.delegate(st, n, m)
  local agent = agent_of(st, n, m)
  local helper = agent:as_tool { name = "helper", description = "Helps.", parallel = m % 2 == 0,
    keep_conversation = n % 2 == 0 }
  local call = { name = "helper", arguments = { request = "help" } }
  local fields = fields_of({ helper }, model_of({ call, m % 3 == 0 and call or nil }, n), n, m)
  fields[1] = "go"
  outcome(m, ah.run(fields))
end

local Thing = ah.entity { name = "Thing", fields = { "id", "done" } }

Thing:tool { name = "work", description = "Works.", parallel = true, handler = function(self)
  self.done = (self.done or 0) + 1
  return perform(self.body)
end }

-- Two calls of a method of one instance, and one of another.
function ops.entity(st, n, m)
  local find = ah.tool { name = "find", description = "Finds.", params = { id = "string" },
    handler = function(args)
      nap(n)
      return Thing { id = args.id, body = st[args.id == "a" and 1 or 2] }
    end }
  local turn = 0
  local model = ah.scripted(function()
    turn = turn + 1
    local calls = turn == 1 and { { name = "find", arguments = { id = "a" } },
      { name = "find", arguments = { id = "b" } } }
      or turn == 2 and { { name = "thing_a_work" }, { name = "thing_b_work" },
        { name = "thing_a_work" } } or nil
    return { calls = calls, text = not calls and "done" or nil, delay = m % 4 / 1000,
      usage = { input = 10, output = 5 } }
  end)
  local fields = fields_of({ find }, model, n, m)
  fields.discover, fields[1] = true, "go"
  outcome(m, ah.run(fields))
end

-- -- a program -----------------------------------------------------------------------------------

local function new_world(program)
  local its = { program = program, faults = {}, records = {}, opened = 0, closed = 0, steps = 0,
    tasks = {}, scopes = {}, agents = {}, channels = {}, sent = 0, arrived = {}, received = {},
    held = 0, semaphore = ah.semaphore(PERMITS),
    budget = ah.budget { total_tokens = 40000, requests = 60, reserve = true } }
  for i, n in ipairs(ROOMS) do
    its.channels[i] = ah.channel(n)
  end
  worlds[its] = true
  return its
end

local function program_of(source)
  if source == nil then
    return programs.warm()
  elseif type(source) == "number" then
    return programs.make(source)
  end
  return type(source) == "string" and dofile(source) or source
end

--- Begins the program of a seed, of a file, or a table; nil: one with all ops. Returns the times
-- after which everything is cancelled ("-" for never) and the host closed, in ms: "12 40".
function M.begin(source)
  local program = program_of(source)
  world = new_world(program)
  return ("%s %d"):format(program.cancel or "-", program.close)
end

--- The program itself; it ends with an error if its task does.
function M.main()
  local planted = world.program.planted
  if planted then
    dofile("spec/simulated/planted.lua")[planted](world, guard)
  end
  local whole = keep(ah.spawn(perform, world.program.body))
  if world.program.main == "await" then
    caught(whole.await, whole)
  end
end

-- A background handler of the agent may have begun a run of it.
local function close_agent(agent)
  for _ = 1, MOST_CLOSES do
    if caught(agent.close, agent)[1] then
      return
    end
    for _, call in ipairs(agent:background()) do
      agent:cancel_background(call.ticket)
    end
    agent:cancel()
    ah.yield()
  end
  fault "an agent cannot be closed"
end

--- Ends all that is left, as a script does that has lost interest.
function M.finish()
  for _, task in ipairs(world.tasks) do
    task:cancel()
  end
  for _, agent in ipairs(world.agents) do
    close_agent(agent)
  end
end

local function judge_tasks()
  local at_work = 0
  for _, record in ipairs(world.records) do
    local status = record.task:status()
    at_work = at_work + (status == "running" and 1 or 0)
    if status == "failed" then
      look_at(select(2, pcall(record.task.await, record.task)))
    end
  end
  if at_work > 0 then
    fault("%d tasks have not ended", at_work)
  end
  if world.opened ~= world.closed then
    fault("%d of %d variables were not closed", world.opened - world.closed, world.opened)
  end
  for _, task in ipairs(world.tasks) do
    if task:status() == "running" then
      fault "a task is running"
    else
      await_twice(task)
    end
  end
end

-- Each value that was sent is received once, or still in its channel.
local function judge_channels()
  for _, channel in ipairs(world.channels) do
    channel:close()
    for value in channel do
      take(value)
    end
  end
  for value = 1, world.sent do
    local times = world.received[value] or 0
    if times > 1 or (times == 0 and world.arrived[value]) then
      fault("value %d of a channel was received %d times", value, times)
    end
  end
end

local function judge_permits()
  local permits = {}
  for i = 1, PERMITS do -- all of them can be had at once
    permits[i] = ah.with_timeout(0, world.semaphore.acquire, world.semaphore)
  end
  if world.held ~= 0 or #permits < PERMITS then
    fault("%d permits are held, %d can be had", world.held, #permits)
  end
  local used, reserved = world.budget:used(), world.budget:reserved()
  if (reserved.total_tokens or 0) ~= 0 or used.total_tokens > 40000 or used.requests > 60 then
    fault("budget: %d used, %d reserved", used.total_tokens, reserved.total_tokens or 0)
  end
end

--- Returns the faults of the program that has ended, one per line; "" for none.
function M.judge()
  judge_tasks()
  judge_channels()
  judge_permits()
  return table.concat(world.faults, "\n")
end

--- Lets go of the program. Returns what still holds it, or "".
function M.forget()
  world = new_world {} -- for tasks that begin too late
  worlds[world] = nil
  collectgarbage()
  collectgarbage()
  return next(worlds) and "the program is still held by something" or ""
end

return M
