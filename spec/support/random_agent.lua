-- Agents made at random from a seed: tools, policies, approvals, checks, feedback, strategies,
-- entities, sections, sessions, resources, budgets and observers whose functions wait, raise,
-- cancel, fork, save, yield, loop, collect and run agents in turn, with a scripted model or over
-- HTTP in random pieces. This file asserts what must hold for each. It is a program of its own, so
-- that after a hang or a crash the last seed that it printed is known:
--
--   lua5.4 spec/support/random_agent.lua FROM COUNT
--
-- The last line is "ok", or the seed and the fault.
package.path = (arg and arg[0] or ""):match "^(.*)/support/[^/]*$" .. "/?.lua;" .. package.path
package.cpath = (os.getenv "AGENTHOST_BUILD" or "./build") .. "/?.so;" .. package.cpath
local ah = require "agenthost"
local server = require "support.server"
local sound = require "support.sound"

local PATIENCE = 20 -- limit of one seed, in seconds
local CODES = {}
for code in ([[
    usage prompt_validation prompt_render prompt_evaluation tool_validation
    tool_not_found max_iterations_exceeded invalid_tool_provider
    visibility_expansion_required deadline_exceeded budget_exceeded loop_detected
    provider http cancelled internal
  ]]):gmatch "%S+" do
  CODES[code] = true
end

local function quiet() end

-- Returns a function(n): numbers from 1 to n that depend only on `seed`.
local function dice(seed)
  local x = (seed * 2654435761 + 97) & 0xffffffff
  return function(n)
    for _ = 1, 3 do
      x = (x * 1664525 + 1013904223) & 0xffffffff
    end
    return (x >> 12) % n + 1
  end
end

--- Returns true if the library refuses waits in observers; then the random observers try them, too.
local function observers_are_watched()
  local refused = false
  ah.run { model = ah.scripted { "x" }, log = quiet, on = { usage = function()
    ah.sleep(0)
  end, warning = function() refused = true end }, "x" }
  return refused
end
local WATCHED = observers_are_watched()

-- -- one world ---------------------------------------------------------------------------------

local World = {}
World.__index = World

local function new_world(seed)
  local roll = dice(seed)
  return setmetatable({ seed = seed, roll = roll, deeds = 120, runs = 8, depth = 0, active = {},
    calls = {}, ended = {}, asks = {}, agents = {}, faults = {}, paths = {} }, World)
end

--- Returns true once in n times.
function World:one_in(n)
  return self.roll(n) == 1
end

function World:pick(list)
  return list[self.roll(#list)]
end

function World:fault(text, ...)
  self.faults[#self.faults + 1] = text:format(...)
end

-- -- actions of functions ----------------------------------------------------------------------

-- A function's place is "task" (may wait), "call" (cannot wait; a wait raises) or "watch" (an
-- observer).
local deeds, weights = {}, {}

local function deed(weight, fn)
  for _ = 1, weight do
    weights[#weights + 1] = fn
  end
  deeds[#deeds + 1] = fn
end

local act

deed(24, quiet)
deed(3, function() collectgarbage() end)
deed(3, function() collectgarbage "step" end)
deed(4, function(w)
  local x = 0
  for i = 1, w.roll(3000) do
    x = x + i
  end
end)
deed(5, function(w)
  local k = w.roll(5)
  if k == 1 then
    error("raised in the midst", 0)
  elseif k == 2 then
    error { "a table" }
  elseif k == 3 then
    error(ah.error { code = w:pick { "internal", "tool_validation", "usage", "cancelled" },
      message = "raised" })
  elseif k == 4 then
    error()
  else
    local _ = w.nothing.at_all
  end
end)
deed(10, function(w, where)
  if where ~= "watch" or WATCHED then
    ah.sleep((w.roll(4) - 1) / 1000)
  end
end)
deed(6, function(w)
  for _ = 1, w.roll(8) do
    if coroutine.isyieldable() then
      coroutine.yield(w.roll(3))
    end
  end
end)
deed(2, function(w)
  if w.agent and w:one_in(3) then
    w.agent:cancel()
  end
end)
deed(3, function(w)
  if w.agent then
    w.agent:send("More, " .. w.roll(9) .. ".")
  end
end)
deed(3, function(w)
  if w.agent and #w.agents < 6 then
    w.agents[#w.agents + 1] = w.agent:fork()
  end
end)
deed(2, function(w)
  if w.agent then
    local path = os.tmpname()
    w.paths[#w.paths + 1] = path
    assert(w.agent:save(path))
    local again = assert(ah.load(path, { model = ah.scripted { "loaded" }, log = quiet }))
    sound.check(again:transcript())
    again:close()
  end
end)
deed(2, function(w)
  if w.agent then
    w.agent:close() -- at work, so it raises
  end
end)
deed(3, function(w)
  if w.agent then
    w.agent:add_tools(w:tool("late" .. w.roll(4)))
  end
end)
deed(2, function(w)
  if w.agent then
    w.agent:remove_tools("t" .. w.roll(5))
  end
end)
deed(5, function(w, where)
  if where ~= "watch" or WATCHED then
    w:nested()
  end
end)
deed(3, function(w, where, ctx)
  table.sort({ 3, 1, 2 }, function(a, b)
    act(w, where, ctx)
    return a < b
  end)
end)
deed(4, function(w, where)
  if where ~= "watch" or WATCHED then
    table.sort({ 2, 1 }, function(a, b)
      w:nested()
      return a < b
    end)
  end
end)
deed(3, function(w, where, ctx)
  local co = coroutine.wrap(function()
    act(w, where, ctx)
    act(w, where, ctx)
  end)
  for _ = 1, w.roll(3) do
    co()
  end
end)
deed(2, function(w, where, ctx)
  local co = coroutine.create(function()
    local _ <close> = setmetatable({}, { __close = function() collectgarbage "step" end })
    act(w, where, ctx)
    coroutine.yield()
    act(w, where, ctx)
  end)
  coroutine.resume(co) -- never resumed again
end)
deed(4, function(w, where, ctx)
  pcall(act, w, where, ctx)
  return act(w, where, ctx)
end)
deed(2, function(w, where, ctx)
  local _ = ("ab"):gsub(".", function() act(w, where, ctx) end)
end)
deed(1, function(w, where, ctx)
  setmetatable({}, { __gc = function()
    if where ~= "watch" then
      pcall(act, w, "watch", ctx)
    end
  end })
  collectgarbage()
end)
deed(2, function(w, where)
  if w.url and (where ~= "watch" or WATCHED) then
    ah.http { url = w.url .. w:pick { "/plain", "/cut", "/slow" }, timeout = 0.3,
      body = w:one_in(2) and ("x"):rep(w.roll(5000)) or nil }
  end
end)
deed(4, function(w)
  w.session:dispatch(w.Item { n = w.roll(9) })
end)
deed(2, function(w)
  w.session[w.Item]:replace {}
end)
deed(2, function(w)
  w.session.dispatcher:publish(w.Item { n = 1 })
end)
deed(3, function(w)
  w.fs:write("f" .. w.roll(3), ("x"):rep(w.roll(50)))
end)
deed(3, function(w, _, ctx)
  if type(ctx) == "table" or type(ctx) == "userdata" then
    local k = w.roll(10)
    if k >= 9 then
      ctx:ask { question = "Sure?", schema = { type = w:pick { "boolean", "integer", "string" } },
        timeout = 0.005 * w.roll(4), secret = w:one_in(3) }
    elseif k == 1 then
      ctx:add_tools { w:tool("given" .. w.roll(4)), w:tool("t" .. w.roll(5)) }
    elseif k == 2 then
      ctx:remove_tools("t" .. w.roll(5))
    elseif k == 3 then
      ctx:note "A note."
    elseif k == 4 then
      ctx:progress(0.5, "half")
    elseif k == 5 then
      ctx:enlist(w.counter)
      w.counter.n = w.counter.n + 1
    elseif k == 6 then
      ctx.filesystem:append("log", "x")
    elseif k == 7 then
      ctx.resources:get "thing"
    else
      ctx:publish(w.Item { n = 2 })
    end
  end
end)

function act(w, where, ctx)
  for _ = 1, w.roll(2) do
    if w.deeds > 0 then
      w.deeds = w.deeds - 1
      w:pick(weights)(w, where, ctx)
    end
  end
end

-- -- parts of an agent --------------------------------------------------------------------------

local function value_of(w)
  local k = w.roll(14)
  if k == 1 then
    return nil, "a failure"
  elseif k == 2 then
    return ah.fail "said so"
  elseif k == 3 then
    return ah.ok({ n = w.roll(9) }, "done")
  elseif k == 4 then
    return ("long "):rep(w.roll(400))
  elseif k == 5 then
    return print -- not JSON
  elseif k == 6 then
    return w.Thing { id = "e" .. w.roll(3), n = w.roll(9) }
  elseif k == 7 then
    return { w.Thing { id = "e" .. w.roll(3) }, w.Thing {} }
  elseif k == 8 then
    return w.Item { n = w.roll(9) }
  elseif k == 9 then
    return nil
  elseif k == 10 then
    return ah.result { message = "m", value = { 1 }, success = w:one_in(2) }
  end
  return "value " .. w.roll(99)
end

--- Makes a handler. The variable to be closed shows that it has ended, in whatever way.
local function handler_of(w)
  return function(args, ctx)
    local me <close> = setmetatable({}, { __close = function(me) w.active[me] = nil end })
    w.active[me] = true -- the handler may be stopped right before this, too
    if args and args.stay then
      ah.sleep(30)
    end
    if args and args.busy then
      local began = ah.now()
      while ah.now() - began < 0.002 do
      end
    end
    if args and args.loop then
      while true do
        local _ = #("x"):rep(100)
      end
    end
    act(w, "task", ctx)
    act(w, "task", ctx)
    return value_of(w)
  end
end

function World:tool(name)
  local w = self
  local fields = { name = name, description = "The tool " .. name .. ".",
    params = { stay = "boolean?", loop = "boolean?", busy = "boolean?", n = "integer?" },
    timeout = 0.02 * self.roll(4), parallel = not self:one_in(3), handler = handler_of(self) }
  if self:one_in(6) then
    fields.render = function(v)
      act(w, "call")
      return v and "rendered"
    end
  end
  if self:one_in(8) then
    fields.result = self.Item
  end
  if self:one_in(10) then
    fields.max_result = 1024
  end
  return ah.tool(fields)
end

--- Makes the two tools of poll_and_set.
local function pollers_of(w)
  local flags = {}
  local function declare(name, handler)
    return ah.tool { name = name, description = "The tool " .. name .. ".",
      params = { n = "integer?" },
      parallel = true, timeout = 0.3, handler = function(args)
        local me <close> = setmetatable({}, { __close = function(me) w.active[me] = nil end })
        w.active[me] = true
        return handler(args.n or 0)
      end }
  end
  return declare("poll", function(n)
    local polls = 0
    while not flags[n] do
      polls = polls + 1
      if polls % 50 == 1 then
        act(w, "task")
      end
      if coroutine.isyieldable() then
        coroutine.yield()
      end
    end
  end), declare("set", function(n)
    ah.sleep(w.roll(10) / 1000)
    flags[n] = true
  end)
end

--- Returns a function that acts and then returns one of these values.
local function gives(w, where, ...)
  local what = { ... }
  return function(x, y)
    act(w, where, y or x)
    local v = w:pick(what)
    if type(v) == "table" then
      return table.unpack(v)
    end
    return v
  end
end

local function strategies_of(w)
  local list = {}
  for i = 1, w.roll(3) - 1 do
    local k = w.roll(4)
    if k == 1 then
      list[i] = function(m)
        act(w, "call", m)
        if w:one_in(3) then
          m:add(w:tool("s" .. w.roll(4)))
        end
        if w:one_in(5) then
          m:note "noted"
        end
        if w:one_in(5) then
          m:remove("t" .. w.roll(5))
        end
      end
    elseif k == 2 then
      list[i] = { name = "gate" .. i, after = gives(w, "call", false),
        before = function(_, m)
          act(w, "call", m)
          return w:one_in(4) and "not now" or nil
        end }
    elseif k == 3 then
      list[i] = ah.unlock { tools = { "t2" }, after = "t1", when = gives(w, "call", true, false) }
    elseif not list.phases then
      list.phases = true
      list[i] = ah.phases { phases = {
        { name = "one", tools = { w:tool "p1" }, next = { t1 = "two" } },
        { name = "two", tools = { w:tool "p2" } } } }
    else
      list[i] = quiet
    end
  end
  list.phases = nil
  return list
end

local function observers_of(w)
  local noisy = w:one_in(2)
  local function watch(e)
    w:saw(e)
    if noisy and e.type == "content" and WATCHED and w:one_in(4) then
      ah.sleep(0.002)
    end
    if noisy and w:one_in(3) then
      act(w, "watch")
    end
  end
  if w:one_in(3) then
    local by_type = {}
    for _, kind in ipairs { "start", "tool_calls", "tool_started", "tool_invoked", "content",
      "done", "warning", "usage", "retry", "cache_break", "tools_injected", "tool_progress", "ask",
      "ask_closed" } do
      by_type[kind] = watch
    end
    return by_type
  end
  return watch
end

-- Events that can follow `done`: actions of its observers, and their failures.
local MAY_FOLLOW = { warning = true, tools_injected = true, tools_removed = true }

--- Checks that each call is reported once, that each run ends once, and that no other event follows
-- its end.
function World:saw(e)
  if self.ended[e.run] then
    if not MAY_FOLLOW[e.type] then
      self:fault("event %s of run %d behind its end: %s", e.type, e.run, tostring(e.message))
    end
  elseif e.type == "done" then
    self.ended[e.run] = e.code
    for id, run in pairs(self.asks) do
      if run == e.run then
        self:fault("%s is open behind the end of run %d", id, run)
      end
    end
  elseif e.type == "ask" then
    self.asks[e.id] = e.run
  elseif e.type == "ask_closed" then
    if self.asks[e.id] ~= e.run then
      self:fault("%s was closed twice, or never opened", e.id)
    end
    self.asks[e.id] = nil
  elseif e.type == "tool_calls" then
    for _, c in ipairs(e.calls) do
      self.calls[#self.calls + 1] = { run = e.run, id = c.id, name = c.name, started = 0,
        invoked = 0 }
      self.calls[e.run .. c.id] = self.calls[#self.calls]
    end
  elseif e.type == "tool_started" or e.type == "tool_invoked" then
    local c = self.calls[e.run .. e.id]
    local field = e.type == "tool_started" and "started" or "invoked"
    if not c then
      self:fault("%s of a call that was not made: %s", e.type, e.id)
    else
      c[field] = c[field] + 1
    end
  end
end

-- Adds two calls: one polls for a flag that the other sets after a sleep, in either order.
local function poll_and_set(w, calls)
  local first, second = "poll", "set"
  if w:one_in(2) then
    first, second = second, first
  end
  w.flag = (w.flag or 0) + 1
  calls[#calls + 1] = { name = first, arguments = { n = w.flag } }
  calls[#calls + 1] = { name = second, arguments = { n = w.flag } }
end

local function calls_of(w)
  local calls = {}
  if w:one_in(4) then
    poll_and_set(w, calls)
  end
  if w:one_in(12) then
    for i = 1, 25 + w.roll(40) do
      calls[#calls + 1] = { name = w:pick { "t1", "t2" }, arguments = { n = i,
        stay = w:one_in(2) } }
    end
    return calls
  end
  for i = #calls + 1, #calls + w.roll(5) do
    local name = w:pick { "t1", "t2", "t3", "t4", "t5", "t1", "t2", "lost", "late1", "given1",
      "s1", "p1", "thing_e1_touch", "thing_e2_touch", "read_section", "pick_tools" }
    local arguments = { n = w.roll(9) }
    if name == "read_section" then
      arguments = { section_key = w:pick { "more", "more.deep", "none" } }
    elseif name == "pick_tools" then
      arguments = { tools = { "t1", "none" } }
    elseif w:one_in(12) then
      arguments = { stay = true }
    elseif w:one_in(20) then
      arguments = { loop = true }
    elseif w:one_in(12) then
      arguments = { n = "no number" }
    end
    calls[i] = { name = name, arguments = arguments }
  end
  return calls
end

local function turn_of(w)
  local k = w.roll(20)
  if k <= 9 then
    return { text = w:one_in(2) and { "Let me ", "see." } or nil, calls = calls_of(w),
      delay = w:one_in(3) and 0.001 or nil }
  elseif k == 10 then
    return { fail = { message = "overloaded", status = 529, retryable = w:one_in(2),
      retry_after = 0.001 } }
  elseif k == 11 then
    return { raw = "{\"no\":" }
  elseif k == 12 then
    return { text = "cut", stop = "length", calls = w:one_in(2) and calls_of(w) or nil }
  end
  return { text = { "An ", "answer." }, delay = w:one_in(3) and 0.002 or nil,
    usage = { input = w.roll(50), output = w.roll(50) } }
end

local function model_of(w)
  if w.url and not w:one_in(3) then
    return "openai/test"
  end
  return ah.scripted { answer = function()
    return turn_of(w)
  end, tool_change_mode = w:pick { "append", "inline", "reference", "additional_tools",
    "search_pair", "list_changed", "dispatcher", "restart" } }
end

local function sections_of(w)
  return ah.prompt { key = "main",
    ah.section { key = "guide", title = "Guide", template = "Be brief.",
      enabled = w:one_in(4) and gives(w, "call", true, false) or nil },
    ah.section { key = "more", title = "More", template = "All of it.", summary = "Some.",
      visibility = "summary", tools = { w:tool "m1" },
      ah.section { key = "deep", title = "Deep", template = "Deeper.", tools = { w:tool "m2" } } } }
end

function World:fields()
  local w = self
  local f = { model = model_of(w), log = w:one_in(4) and gives(w, "watch", false) or quiet,
    on = observers_of(w), tools = {}, session = w.session, max_iterations = w.roll(6),
    retries = w.roll(2) - 1, timeout = w:one_in(4) and 0.03 * w.roll(5) or 3,
    on_max = w:pick { "error", "answer" }, on_conflict = w:pick { "skip", "replace", "error" },
    on_unknown_tool = w:one_in(6) and "throw" or nil, discover = w:pick { true, false },
    max_restarts = w.roll(3) - 1, brief = w:one_in(5), stream = w:pick { true, false },
    loop_detector = w:one_in(3) and false or nil, max_tools = w:one_in(6) and 12 + w.roll(8) or nil,
    resources = { filesystem = w.fs, thing = ah.resource {
      scope = w:pick { "singleton", "tool_call", "prototype" }, provide = gives(w, "task", "made"),
      close = gives(w, "watch", false) } } }
  if type(f.model) == "string" then
    f.base_url, f.api_key, f.http = w.url .. "/v1", "secret-key", { idle_timeout = 0.3 }
  end
  for i = 1, 5 do
    f.tools[i] = w:tool("t" .. i)
  end
  f.tools[6], f.tools[7] = pollers_of(w)
  if w:one_in(5) then
    f.policies = { function() return "ask", "sure?" end }
    f.approve = function() return true end
  elseif w:one_in(3) then
    f.policies = { gives(w, "call", false, "allow", { "ask", "sure?" }, { "deny", "no" }) }
    f.approve = gives(w, "task", true, true, { false, "not so" }, { true, { n = 3 } },
      { true, { n = "x" } })
  end
  if w:one_in(3) then
    f.asks = gives(w, "task", true, false, 7, "some words", { true, { n = 3 } }, { false, "no" })
    f.policies = f.policies or w:one_in(2) and { gives(w, "call", { "ask", "sure?" }) } or nil
  end
  if w:one_in(3) then
    f.checks = { gives(w, "task", false, false, "Again, please.") }
  end
  if w:one_in(3) then
    f.feedback = { { every = w.roll(3), text = gives(w, "call", "You are told.", false) } }
  end
  if w:one_in(2) then
    f.strategies = strategies_of(w)
  end
  if w:one_in(3) then
    f.prompt = sections_of(w)
  end
  if w:one_in(4) then
    f.budget = { requests = w.roll(6), tool_calls = w.roll(12) }
    if w:one_in(2) then
      f.options = f.options or {}
      f.options.max_tokens = 200
      f.budget.total_tokens, f.budget.reserve = 1000 * w.roll(40), true
    end
  end
  if w:one_in(5) then
    f.fallback = { ah.scripted { answer = function() return turn_of(w) end } }
  end
  return f
end

-- -- running them ------------------------------------------------------------------------------

--- Starts a run inside the current function.
function World:nested()
  if self.runs == 0 then
    return
  end
  self.runs = self.runs - 1
  local fields = self:fields()
  fields[1] = "Inside."
  local reply, err = ah.run(fields)
  self:judge(reply, err)
end

function World:judge(reply, err)
  if reply == nil and not (err and CODES[err.code] and tostring(err):find(err.code, 1, true)) then
    self:fault("an end without a code: %s", tostring(err))
    return
  end
  local partial = reply or err.reply
  if partial then
    sound.check(partial:transcript())
  end
end

-- Checks that the calls of runs that have ended were started at most once and reported once.
local function judge_calls(w)
  for _, c in ipairs(w.calls) do
    if w.ended[c.run] and (c.invoked ~= 1 or c.started > 1) then
      w:fault("call %s of %s in run %d: started %d times, told of %d times", c.id, c.name, c.run,
        c.started, c.invoked)
    end
  end
end

--- Checks that saving and loading the agent changes nothing.
local function judge_saved(w, agent)
  local path = os.tmpname()
  w.paths[#w.paths + 1] = path
  assert(agent:save(path))
  local before = sound.check(agent:transcript())
  local again = assert(ah.load(path, { model = ah.scripted { "loaded" }, log = quiet }))
  local after = sound.check(again:transcript())
  for i, entry in ipairs(before) do
    local was, is = server.encode(entry), after[i] and server.encode(after[i]) or "nothing"
    if was ~= is then
      w:fault("entry %d after loading is %s, was %s", i, is, was)
      break
    end
  end
  again:close()
end

local function world_things(w)
  w.Item = ah.type { name = "Item", fields = { n = "integer" } }
  w.session = ah.session()
  w.session:register(w.Item)
  if w:one_in(2) then
    local Event = ah.type { name = "Event", fields = { n = "integer" } }
    w.session:reduce(w.Item, w.Item, function(view, event)
      if w:one_in(4) then
        act(w, "call")
      end
      return event.value and view:append(event.value) or view
    end)
    w.session:register(Event)
  end
  w.session.dispatcher:subscribe(w.Item, gives(w, "watch", false))
  w.fs = ah.filesystem { memory = true }
  w.counter = { n = 0, snapshot = function(c) return c.n end, restore = function(c, n) c.n = n end }
  w.Thing = ah.entity { name = "Thing", id = w:one_in(3) and function(t)
    act(w, "call")
    return t.id
  end or "id", find = w:one_in(2) and function(id)
    act(w, "task")
    return w.Thing { id = id }
  end or nil }
  w.Thing:tool { name = "touch", description = "Touches it.", timeout = 0.05,
    parallel = w:one_in(2), handler = function(self, args, ctx)
      self.n = (self.n or 0) + 1
      return handler_of(w)(args, ctx)
    end }
end

local plain = ah.tool { name = "plain", description = "Is plain.",
  handler = function() return "plain" end }

--- Checks that a plain run works afterwards.
local function judge_next(w)
  local reply, err = ah.run { model = ah.scripted { { calls = { { name = "plain" } } }, "fine" },
    tools = { plain }, log = quiet, "Plain." }
  if not reply or reply.text ~= "fine" or reply.messages[3].content ~= "plain" then
    w:fault("the next run fails: %s", tostring(err))
  end
end

-- A section's function may fail when the agent is made.
local function judge_raised(w, what, err)
  if not CODES[type(err) == "table" and err.code or ""] then
    w:fault("%s raised %s", what, tostring(err))
  end
end

local function run_world(w)
  world_things(w)
  local made, agent = pcall(ah.agent, w:fields())
  if not made then
    return judge_raised(w, "ah.agent", agent)
  end
  w.agent = agent
  for _ = 1, w.roll(3) do
    local ok, reply, err = pcall(agent.run, agent, "Question.")
    if ok then
      w:judge(reply, err)
    else
      judge_raised(w, "agent:run", reply)
    end
    sound.check(agent:transcript())
  end
  w.agent = nil
  ah.sleep(0) -- lets tasks end that were about to
  judge_calls(w)
  judge_saved(w, agent)
  for _, other in ipairs(w.agents) do
    sound.check(other:transcript())
    other:close()
  end
  agent:close()
  judge_next(w)
  if next(w.active) then
    w:fault("a handler has not ended")
  end
end

local function try(seed, url)
  local w, began = new_world(seed), ah.now()
  w.url = url
  local ok, err = xpcall(run_world, debug.traceback, w)
  if not ok then
    w:fault("raised: %s", tostring(err))
  end
  if ah.now() - began > PATIENCE then
    w:fault("it took %.1f s", ah.now() - began)
  end
  for _, path in ipairs(w.paths) do
    os.remove(path)
  end
  w.deeds = 0 -- remaining finalizers do nothing
  return w.faults
end

-- -- the server --------------------------------------------------------------------------------

local function response(roll, w)
  local opts = { stream = roll(3) > 1, piece = roll(3) == 1 and roll(40) or nil, gap = 1,
    cut = roll(12) == 1 and roll(300) or nil, delay = roll(3), hangup = roll(15) == 1 or nil,
    reset = roll(20) == 1 and roll(200) or nil, drop = roll(25) == 1 or nil }
  local k = roll(20)
  if k == 1 then
    return server.json({ error = { message = "busy" } }, { status = 503,
      headers = { ["Retry-After"] = "0" } })
  elseif k == 2 then
    return server.json({ error = { message = "wrong" } }, { status = 400 })
  elseif k <= 10 then
    local calls = calls_of(w)
    for i, c in ipairs(calls) do
      c.id = ("call_%d_%d"):format(roll(1 << 19), i)
    end
    return server.chat_calls(calls, opts)
  end
  return server.chat_text(("An answer. "):rep(roll(20)), opts)
end

local function start_server(seed)
  local w, list = new_world(seed), {}
  for i = 1, 300 do
    list[i] = response(w.roll, w)
  end
  return server.start { seconds = 900, log = false, routes = {
    ["*"] = list, ["/plain"] = { { body = ("b"):rep(2000), piece = 500 } },
    ["/cut"] = { { body = ("b"):rep(2000), cut = 100 } },
    ["/slow"] = { { body = "slow", stall = 2 } } } }
end

local PER_SERVER = 100

local function main(from, count)
  local s
  for seed = from, from + count - 1 do
    if not s or (seed - from) % PER_SERVER == 0 then
      if s then
        s:close()
      end
      s = start_server(seed)
    end
    io.write("seed ", seed, "\n")
    io.flush()
    local faults = try(seed, s.url)
    if faults[1] then
      io.write("seed ", seed, " failed: ", table.concat(faults, "\n  "), "\n")
      s:close()
      os.exit(1)
    end
  end
  s:close()
  io.write "ok\n"
end

main(math.tointeger(arg[1]), math.tointeger(arg[2]))
