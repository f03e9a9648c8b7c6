-- Code that never ends by itself, in every place that takes a function of a script. `kinds` has the
-- places, by their names in the table of docs/reference/limits.md; `bodies` has the code. Each pair
-- is run by ah.run, or by whatever calls such a function, and must end.
local ah = require "agenthost"

local hostile = { kinds = {}, bodies = {} }

local MIB = 1 << 20

local function with(metamethod, f)
  return setmetatable({}, { [metamethod] = f })
end

local function forever()
  while true do end
end

-- -- bodies that do not end -------------------------------------------------------------

local body = hostile.bodies

function body.loops()
  forever()
end

function body.loops_by_goto()
  ::again::
  goto again
end

function body.loops_under_pcall()
  while true do pcall(forever) end
end

function body.loops_under_xpcall()
  while true do xpcall(forever, function(e) return e end) end
end

-- Builds levels of coroutines; each catches the errors of the next.
local function tower(n)
  return coroutine.wrap(function()
    while true do
      if n > 0 then pcall(tower, n - 1) end
    end
  end)()
end

function body.towers()
  tower(3)
end

function body.high_towers()
  while true do pcall(tower, 12) end
end

local wrap, resume, create = coroutine.wrap, coroutine.resume, coroutine.create

-- Uses functions that were stored before any run.
local function old_tower(n)
  return wrap(function()
    while true do
      if n > 0 then pcall(old_tower, n - 1) end
    end
  end)()
end

function body.towers_of_old_functions()
  old_tower(4)
end

-- Starts many coroutines, each with only a few instructions.
function body.trees_of_coroutines()
  local function grow(n)
    if n > 0 then
      coroutine.wrap(grow)(n - 1)
      coroutine.wrap(grow)(n - 1)
    end
  end
  grow(60)
end

function body.resumes_what_was_made_before()
  local co = hostile.made_before
  hostile.made_before = nil
  while true do coroutine.resume(co or coroutine.create(forever)) end
end

function body.closes_coroutines()
  while true do
    local co = coroutine.create(function()
      local _ <close> = with("__close", forever)
      coroutine.yield()
    end)
    coroutine.resume(co)
    coroutine.close(co)
  end
end

function body.closes_a_chain()
  while true do
    local last
    for _ = 1, 300 do
      local before = last
      last = create(function()
        local _ <close> = with("__close", function() return before and coroutine.close(before) end)
        coroutine.yield()
      end)
      resume(last)
    end
    coroutine.close(last)
  end
end

function body.takes_the_hook_away()
  debug.sethook()
  while true do pcall(debug.sethook) end
end

function body.loops_in_sort()
  table.sort({ 1, 2, 3 }, forever)
end

function body.loops_in_gsub()
  while true do pcall(string.gsub, "xxx", "x", forever) end
end

function body.loops_in_metamethods()
  return with("__index", function(t, k) while true do pcall(function() return t[k] end) end end).x
end

function body.loops_in_loaded_code()
  assert(load "while true do pcall(load 'while true do end') end")()
end

function body.loops_in_close()
  local _ <close> = with("__close", forever)
  error "and raises"
end

function body.raises_what_prints_for_ever()
  error(with("__tostring", forever))
end

function body.recurses()
  local function deeper() return 1 + deeper() end
  while true do pcall(deeper) end
end

-- Makes a body that is cheap at first, so that the time is rarely checked when the costly calls
-- begin.
local function warmed(f)
  return function()
    local t, s = {}, 0
    for i = 1, 20000 do
      t[i] = i
      s = s + i % 7
    end
    while true do f(t) end
  end
end

body.calls_reverse = warmed(function() return ("x"):rep(1e5):reverse() end)
body.calls_upper = warmed(function() return ("x"):rep(MIB):upper() end)
body.calls_tonumber = warmed(function() return tonumber(("9"):rep(1e5)) end)
body.calls_gsub = warmed(function() return (("x"):rep(1e4):gsub("x", "yy")) end)
body.calls_concat = warmed(table.concat)
body.calls_sort = warmed(table.sort)
body.calls_unpack = warmed(function(t) return select("#", table.unpack(t)) end)
body.calls_pack = warmed(function() return ("s"):pack(("x"):rep(1e5)) end)
body.calls_format = warmed(function() return ("%s%s"):format(("x"):rep(1e5), "y") end)
body.calls_utf8 = warmed(function() return utf8.len(("\u{20ac}"):rep(1e4)) end)
body.calls_find = warmed(function() return ("x"):rep(1e4):find("[y]") end)

function body.builds_a_text()
  local s = ""
  while true do s = s .. "0123456789" end
end

function body.fills_memory()
  local t = {}
  while true do pcall(function() t[#t + 1] = ("x"):rep(1e5) .. #t end) end
end

-- -- places -------------------------------------------------------------------------------

local function quiet() end

local function run(limit, fields)
  fields.log, fields.timeout = fields.log or quiet, limit
  fields[1] = fields[1] or "go"
  return ah.run(fields)
end

local function tool(fields)
  fields.name, fields.description = fields.name or "t", "Does it."
  fields.handler = fields.handler or quiet
  return ah.tool(fields)
end

local function calls(...)
  local turns = {}
  for i, name in ipairs { ... } do
    turns[i] = { calls = { { name = name } } }
  end
  turns[#turns + 1] = "done"
  return ah.scripted(turns)
end

local kind = hostile.kinds

-- function(f, limit): calls f in this place, in a run with this timeout (or none).
kind["handler"] = function(f, limit)
  return run(limit, { tools = { tool { handler = f } }, model = calls "t" })
end

local function entity(limit, fields, again)
  local class = ah.entity { name = "Thing", prefix = "thing", id = fields.id or "id",
    find = fields.find }
  class:tool { name = "act", description = "Acts.", handler = fields.handler or function(self)
    self.n = 1
    error "no"
  end }
  class.snapshot, class.restore = fields.snapshot, fields.restore
  local made = tool { name = "make", handler = function() return class { id = "1" } end }
  local model = calls("make", "thing_1_act")
  if not again then
    return run(limit, { tools = { made }, model = model, discover = true })
  end
  local agent <close> = assert(ah.agent { tools = { made }, model = calls("make"), log = quiet,
    discover = true, timeout = limit })
  assert(agent:run "go")
  local path = os.tmpname()
  agent:save(path)
  local loaded <close> = assert(ah.load(path, { tools = { made }, model = calls "thing_1_act",
    log = quiet, discover = true, timeout = limit }))
  os.remove(path)
  return loaded:run "go"
end

kind["method"] = function(f, limit) return entity(limit, { handler = f }) end
kind["id"] = function(f, limit) return entity(limit, { id = f }) end
kind["find"] = function(f, limit) return entity(limit, { find = f }, true) end
kind["snapshot"] = function(f, limit)
  return entity(limit, { snapshot = f, restore = quiet })
end
kind["restore"] = function(f, limit)
  return entity(limit, { snapshot = function() return 1 end, restore = f })
end

kind["executors"] = function(f, limit)
  return run(limit, { executors = { x = f }, model = calls "x" })
end

kind["policies"] = function(f, limit)
  return run(limit, { policies = { f }, tools = { tool {} }, model = calls "t" })
end

kind["approve"] = function(f, limit)
  return run(limit, { policies = { function() return "ask" end }, approve = f,
    tools = { tool {} }, model = calls "t" })
end

kind["asks"] = function(f, limit)
  return run(limit, { policies = { function() return "ask" end }, asks = f,
    tools = { tool {} }, model = calls "t" })
end

kind["on_ask"] = function(f, limit)
  local agent <close> = assert(ah.agent { log = quiet, timeout = limit, model = calls "t",
    tools = { tool { handler = function(_, ctx) return ctx:ask { question = "?" } end } } })
  agent:on_ask(f)
  return agent:run "go"
end

kind["guards"] = function(f, limit)
  return run(limit, { guards = { input = f }, model = calls() })
end

kind["checks"] = function(f, limit)
  return run(limit, { checks = { f }, model = calls() })
end

kind["setup"] = function(f, limit)
  return run(limit, { setup = f, model = calls() })
end

kind["feedback"] = function(f, limit)
  return run(limit, { feedback = { { every = 1, text = f } }, tools = { tool {} },
    model = calls "t" })
end

kind["strategies"] = function(f, limit)
  return run(limit, { strategies = { f }, tools = { tool {} }, model = calls "t" })
end

kind["before"] = function(f, limit)
  local strategy = { name = "s", before = function() return f() end, after = quiet }
  return run(limit, { strategies = { strategy }, tools = { tool {} }, model = calls "t" })
end

kind["when"] = function(f, limit)
  return run(limit, { strategies = { ah.unlock { tools = { tool {} }, when = f } },
    model = calls "t" })
end

kind["on"] = function(f, limit)
  return run(limit, { on = { tool_invoked = f }, tools = { tool {} }, model = calls "t" })
end

kind["log"] = function(f, limit)
  local model = ah.scripted { { calls = { { name = "t" } } }, "done" }
  return run(limit, { log = f, tools = { tool {} }, model = model,
    policies = { function() return 7 end }, on = function() error "for the log" end })
end

kind["subscribe"] = function(f, limit)
  local Note = ah.type { name = "HostileNote", fields = { text = "string" } }
  local session = ah.session { types = { Note } }
  session.dispatcher:subscribe(nil, f)
  return run(limit, { session = session, model = calls "t", tools = { tool {
    handler = function(_, ctx) ctx:publish(Note { text = "x" }) end } } })
end

kind["reduce"] = function(f, limit)
  local Note = ah.type { name = "HostileNote", fields = { text = "string" } }
  local session = ah.session { types = { Note } }
  session:reduce(Note, Note, f)
  return run(limit, { session = session, model = calls "t", tools = { tool { result = Note,
    handler = function() return Note { text = "x" } end } } })
end

kind["enabled"] = function(f, limit)
  return run(limit, { ah.section { key = "s", title = "S", template = "s", enabled = f }, "go",
    model = calls() })
end

kind["visibility"] = function(f, limit)
  return run(limit, { ah.section { key = "s", title = "S", template = "s", summary = "s",
    visibility = f }, "go", model = calls() })
end

kind["render"] = function(f, limit)
  return run(limit, { model = calls "t", tools = { tool { render = f,
    handler = function() return { x = 1 } end } } })
end

kind["answer"] = function(f, limit)
  return run(limit, { model = ah.scripted(f), retries = 0 })
end

kind["open"] = function(f, limit)
  local model = ah.adapter { name = "acme/kept", open = f, answer = function() return "x" end }
  return run(limit, { model = model, retries = 0 })
end

kind["provide"] = function(f, limit)
  return run(limit, { resources = { r = ah.resource { provide = f } }, model = calls "t",
    tools = { tool { handler = function(_, ctx) return ctx.resources:get "r" end } } })
end

kind["close"] = function(f, limit)
  local resource = ah.resource { scope = "tool_call", provide = function() return {} end,
    close = f }
  return run(limit, { resources = { r = resource }, model = calls "t",
    tools = { tool { handler = function(_, ctx) return ctx.resources:get "r" and "used" end } } })
end

-- Sends one request to a server with this config. Without the library for servers, f runs as a
-- tool's handler.
local function serve(f, limit, config, headers)
  config.work_timeout = limit
  local server <close>, err = ah.serve(config)
  if not server and err.reason == "missing" then
    return kind.handler(f, limit)
  end
  return ah.http { url = server.url, headers = headers, timeout = 30 }
end

kind["on_request"] = function(f, limit)
  return serve(f, limit, { on_request = f })
end

kind["on_refusal"] = function(f, limit)
  return serve(f, limit, { on_request = quiet, on_refusal = f }, { Host = "elsewhere" })
end

kind["metamethods"] = function(f, limit)
  return run(limit, { model = calls "t", tools = { tool {
    handler = function() return nil, with("__tostring", f) end } } })
end

-- -- running them --------------------------------------------------------------------------

--- Runs the body in the place. Returns the seconds of processor time, the number of its calls, and
-- the reply or the error of the run.
function hostile.carry_out(place, way, limit)
  local called = 0
  local function f(...)
    called = called + 1
    return hostile.bodies[way](...)
  end
  hostile.made_before = coroutine.create(forever)
  local began = os.clock()
  local ok, reply, err = pcall(hostile.kinds[place], f, limit)
  return os.clock() - began, called, ok and (reply or err) or reply
end

--- Asserts that the process is alive and that a run works.
function hostile.goes_on()
  collectgarbage()
  local fine = tool { name = "fine", handler = function() return "fine" end }
  local reply = assert(run(nil, { tools = { fine }, model = calls "fine" }))
  assert(reply.messages[3].content == "fine", reply.messages[3].content)
end

function hostile.names(list)
  local names = {}
  for name in pairs(list) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

return hostile
