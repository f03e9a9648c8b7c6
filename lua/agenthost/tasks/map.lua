--- ah.map: a function called for each value of a list, with its progress as events.
local ah = ...

local tasks = ah._module "agenthost.tasks.tasks"
local now, new_error = ah._clock, ah.error
local budget, account, emit = ah.budget, ah._account, ah._map_progress

local read_options = ah._reader {
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

-- -- progress ----------------------------------------------------------------------------------

local last = 0 -- number of the last map with progress

local function report(map, ended)
  local seconds = now() - map.begun
  local used = map.account:used()
  local worth = map.done + map.running / 2 -- those at work are half done, on the average
  local left = not ended and map.done > 0 and seconds / worth * (map.n - worth) or nil
  emit(map.number, map.n, map.done, map.running, map.failures, used.total_tokens,
    seconds, ended, used.cost > 0 and used.cost or nil, left)
end

-- Once. An error closes variables only when the handler has failed, which is too late for an event
-- of its run: `finish` calls this before.
local function end_progress(map)
  if map.number then
    map.running = 0
    report(map, true)
    map.number = nil
  end
end

local REPORTED = { __close = end_progress }

local function begin_progress(map)
  last = last + 1
  map.number, map.begun = last, now()
  map.account = budget {}
  report(map, false)
  return setmetatable(map, REPORTED)
end

-- -- the calls ---------------------------------------------------------------------------------

-- A call has failed if it returned nil and a second value.
local function keep(map, i, value, err)
  if value == nil and err ~= nil then
    map.errors[i], map.failures = err, map.failures + 1
    if map.stops then
      map.failed, map.next = map.failed or i, map.n + 1
      map.group:cancel()
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

-- In a durable handler the steps of a value have a path of their own, whoever works on it.
local function enter(map, i)
  if map.path then
    ah._at_path(("%s/%d"):format(map.path, i))
    map.at[ah._current()] = i
  end
end

local function show(map)
  if map.number then
    report(map, false)
  end
end

local function work(map)
  if map.account then
    account { budget = map.account }
  end
  while map.next <= map.last do
    local i = map.next
    map.next, map.running = i + 1, map.running + 1
    show(map)
    enter(map, i)
    call(map, i)
    map.running, map.done = map.running - 1, map.done + 1
  end
  show(map)
end

-- -- in durable handlers -----------------------------------------------------------------------

-- The value whose call has ended all others; 0: none has.
local function find_failed(map)
  local failed = map.failed or 0
  for worker, i in pairs(map.at) do
    failed = worker:status() == "failed" and i or failed
  end
  return failed
end

-- Only the call that is recorded as the one that has ended the others is made again.
local function only(map, failed)
  for i = 1, map.n do
    if i ~= failed then
      ah._skip(("%s/%d"):format(map.path, i))
    end
  end
  map.next, map.last = failed, failed
end

-- A map whose wait was ended gives what it has.
local function explain(map, err)
  if map.group:failed() or type(err) ~= "table" or err.code ~= "cancelled" then
    return err
  end
  return new_error { code = "cancelled", results = map.results, errors = map.errors,
    message = ("ah.map: %d of %d calls were done"):format(map.done, map.n) }
end

local function finish(map)
  local ok, err = pcall(map.group.join, map.group)
  tasks.decide(map.step, map.step and find_failed(map))
  if not ok then
    map.failures = map.failures + (map.group:failed() and 1 or 0)
    end_progress(map)
    error(explain(map, err), 0)
  end
  if map.stops and map.failed then
    return nil, map.errors[map.failed]
  end
  return map.results, not map.stops and map.errors or nil
end

--- ah.map(list, f, options): calls f(value, i) for each value of the list, some at the same time;
-- returns the list of what each call returned, with `n`. A call that returns nil and an error ends
-- the others, and so does one that raises: nil and that error, or what it raised.
local function map(list, f, options)
  local n = ah._check_list(list, "ah.map")
  tasks.check_function(f, "ah.map: the second argument")
  options = read_options(options or {})
  local group <close> = ah._group()
  local state = { list = list, f = f, n = n, next = 1, group = group, results = { n = n },
    errors = {}, stops = options.on_error == "stop", done = 0, running = 0, failures = 0,
    last = n, path = ah._path(), at = {} }
  local step, failed = tasks.first("map", n)
  state.step = failed == nil and step or nil
  if failed and failed > 0 then
    only(state, failed)
  end
  local _ <close> = options.progress and begin_progress(state) or nil
  for _ = 1, math.min(n, options.concurrency) do
    ah._start(group, nil, work, state)
  end
  return finish(state)
end

return map
