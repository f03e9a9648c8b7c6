-- Random agents whose callbacks of all kinds wait, raise, cancel, close, collect and start runs at
-- random, scripted or over HTTP with streams cut anywhere, in handlers of each other. Callbacks
-- that cannot wait do not wait; each run ends with its whole answer, or with an error whose code
-- has a cause; its conversation is sound. OBSERVERS_RUNS=n sets the number of runs,
-- OBSERVERS_SEED=s the first seed. Use it with `make check-asan`, which poisons lent bytes.
local ah = require "agenthost"
local server = require "support.server"
local sound = require "support.sound"

local RUNS = tonumber(os.getenv "OBSERVERS_RUNS") or 120
local FIRST = tonumber(os.getenv "OBSERVERS_SEED") or os.time() % 1000000 * 1000
local BATCH = 50 -- runs that share a server

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

-- -- actions of callbacks -----------------------------------------------------------------------

local idle = ah.agent { model = "demo/echo" }
local registry = ah.registry { ah.tool { name = "t", description = "T.",
  handler = function() return 1 end } }

-- Ways to wait. Each raises in a callback.
local WAITS = {
  function() ah.sleep(0.001) end,
  function() ah.http { url = "http://127.0.0.1:1/" } end,
  function() idle:run "go" end,
  function() ah.run { model = "demo/echo", "go" } end,
  function() registry:execute("t", {}) end,
  function() coroutine.wrap(function() ah.sleep(0.001) end)() end,
  function() table.sort({ 2, 1 }, function(a, b) ah.sleep(0.001) return a < b end) end,
  function()
    local held <close> = setmetatable({}, { __close = function() ah.sleep(0.001) end })
    return held
  end,
}

local function garbage(w)
  local t = {}
  for i = 1, w.roll(200) do
    t[i] = ("x"):rep(i)
  end
  return t
end

local function wait(w)
  local ok, err = pcall(WAITS[w.roll(#WAITS)])
  local stopped = tostring(err):find("stopped: the time", 1, true) -- in a cancelled run
  if ok or not (stopped or tostring(err):find("cannot wait", 1, true)) then
    w.fault = "it waited where nothing can: " .. tostring(err)
  end
end

local ACTS = {
  quiet,
  quiet,
  wait,
  function(w) WAITS[w.roll(#WAITS)]() end,
  function() error "on purpose" end,
  function() error(ah.error { code = "budget_exceeded", message = "on purpose" }) end,
  function() error({}) end,
  garbage,
  function() collectgarbage() end,
  function() collectgarbage "step" end,
  function(w)
    setmetatable({}, { __gc = function() wait(w) end })
    collectgarbage()
  end,
  function(w) -- refused while the agent is at work; never ends the process
    if w.agent and pcall(w.agent.close, w.agent) then
      w.closed = true
    end
  end,
  function(w)
    if w.agent and w.cancels and pcall(w.agent.cancel, w.agent) then
      w.cancelled = true
    end
  end,
  function(w)
    if w.agent then
      w.n = w.n + 1
      pcall(w.agent.add_tools, w.agent, ah.tool { name = "late_" .. w.n, description = "L." })
    end
  end,
  function(w)
    if w.agent then
      pcall(w.agent.remove_tools, w.agent, "late_" .. w.n)
    end
  end,
  function(w) pcall(function() return w.agent:transcript() end) end,
  function(w) w.session.dispatcher:publish { type = "note", n = w.roll(9) } end,
  function(w)
    coroutine.wrap(function() garbage(w) error "in a coroutine" end)()
  end,
}

local function act(w)
  ACTS[w.roll(#ACTS)](w)
end

-- -- callbacks of an agent -------------------------------------------------------------------

local EVENTS = { "start", "request", "content", "tool_calls", "tool_started", "tool_invoked",
  "tool_loop_iteration", "tools_injected", "warning", "usage", "done" }

local function observer(w)
  if w.roll(3) == 1 then
    return function(e)
      if e.type == "content" then
        w.shown[#w.shown + 1] = e.text
      end
      act(w)
    end
  end
  local on = { content = function(e)
    w.shown[#w.shown + 1] = e.text
    act(w)
  end }
  for _ = 1, w.roll(4) do
    local type = EVENTS[w.roll(#EVENTS)]
    on[type] = on[type] or function() act(w) end
  end
  return on
end

local Item = ah.type { name = "Item", fields = { n = "integer" } }

local function maybe(w, f)
  return w.roll(3) == 1 and f() or nil
end

local function inner_run(w)
  local text = ("inner"):rep(w.roll(50))
  local reply = assert(ah.run { model = ah.scripted { text }, log = quiet, "go",
    on = { content = function() act(w) end, done = function() act(w) end } })
  assert(reply.text == text, "the inner answer is not whole")
  return reply.text
end

local HANDLERS = {
  function() return "done" end,
  function(w) garbage(w) return Item { n = w.roll(9) } end,
  function() ah.sleep(0.001) return "slept" end,
  inner_run,
  function() coroutine.yield() return "yielded" end,
  function() error "of a handler" end,
  function(w) return assert(registry:execute("t", {})) and garbage(w) and "executed" end,
  function(w, ctx)
    ctx:enlist { snapshot = function() act(w) return 1 end, restore = function() act(w) end }
    if w.roll(2) == 1 then error "taken back" end
    return "enlisted"
  end,
  function(w, ctx)
    ctx:progress(("p"):rep(w.roll(100)))
    w.session.dispatcher:publish { type = "note", n = 1 }
    return "told"
  end,
}

local function tools(w)
  local list = {}
  for i = 1, 3 do
    local handler = HANDLERS[w.roll(#HANDLERS)]
    list[i] = ah.tool { name = "t" .. i, description = "T.", parallel = w.roll(2) == 1,
      params = { n = "integer?" },
      render = maybe(w, function()
        return function() act(w) return "rendered" end
      end),
      handler = function(_, ctx) return handler(w, ctx) end }
  end
  return list
end

local function session(w)
  local s = ah.session { types = { Item } }
  if w.roll(3) == 1 then
    s:reduce(Item, Item, function(view, e) act(w) return view:append(e.value) end)
  end
  for _ = 1, w.roll(3) - 1 do
    s.dispatcher:subscribe(w.roll(2) == 1 and "note" or nil, function() act(w) end)
  end
  return s
end

local function prompt(w)
  return ah.prompt { name = "p", ah.section { key = "k", template = "Be brief.",
    enabled = function()
      act(w)
      return true
    end } }
end

-- -- models: their answers, and the pieces of the bytes -------------------------------------------

local function words(w)
  local list = {}
  for i = 1, w.roll(12) do
    list[i] = ("w%d "):format(w.roll(1000)):rep(w.roll(60))
  end
  return list
end

local function turns(w)
  local list = {}
  for i = 1, w.roll(3) do
    list[i] = { pieces = words(w), calls = {} }
    for k = 1, w.roll(3) do
      list[i].calls[k] = "t" .. w.roll(3)
    end
  end
  list[#list].calls = {}
  return list
end

local function scripted(w, list)
  local answers = {}
  for i, turn in ipairs(list) do
    local calls = {}
    for k, name in ipairs(turn.calls) do
      calls[k] = { name = name, arguments = { n = k * i } }
    end
    answers[i] = { text = table.concat(turn.pieces), calls = calls[1] and calls or nil,
      delay = w.roll(4) == 1 and 0.001 or nil }
  end
  for i = 1, 40 do -- each addition of tools during the last answer causes one more
    answers[#list + i] = answers[#list]
  end
  return ah.scripted(answers)
end

local function openai(turn)
  local out = {}
  local function put(delta, finish)
    out[#out + 1] = "data: " .. ah.json.encode { id = "c", object = "chat.completion.chunk",
      choices = ah.array { { index = 0, delta = delta, finish_reason = finish or ah.null } } }
      .. "\n\n"
  end
  for _, piece in ipairs(turn.pieces) do
    put { content = piece }
  end
  for k, name in ipairs(turn.calls) do
    put { tool_calls = ah.array { { index = k - 1, id = "call_" .. k, type = "function",
      ["function"] = { name = name, arguments = '{"n":' .. k .. "}" } } } }
  end
  put(ah.object {}, turn.calls[1] and "tool_calls" or "stop")
  return table.concat(out) .. "data: [DONE]\n\n"
end

local function responses(w, list)
  local out = {}
  for i, turn in ipairs(list) do
    local body = openai(turn)
    out[i] = { body = body, headers = { ["Content-Type"] = "text/event-stream" },
      piece = w.roll(#body), gap = w.roll(3) - 1, chunked = w.roll(2) == 1 }
    if #body / out[i].piece > 60 then
      out[i].piece = #body // 60 + 1
    end
  end
  return out
end

-- -- one run --------------------------------------------------------------------------------

local function world(seed)
  local w = { seed = seed, roll = dice(seed), shown = {}, n = 0 }
  w.cancels = w.roll(4) == 1
  w.turns = turns(w)
  w.http = w.roll(2) == 1
  w.responses = w.http and responses(w, w.turns)
  w.text = table.concat(w.turns[#w.turns].pieces)
  return w
end

local function agent_of(w, url)
  w.session = session(w)
  return ah.agent {
    model = w.http and "openai/m" or scripted(w, w.turns), base_url = w.http and url or nil,
    api_key = w.http and "k" or nil, retries = 0,
    tools = tools(w), session = w.session, on = observer(w), max_tools = 1000,
    log = w.roll(3) == 1 and function() act(w) end or quiet,
    strategies = maybe(w, function()
      return { function() act(w) end, { before = function() act(w) end, after = quiet } }
    end),
    policies = maybe(w, function()
      return { function() act(w) return w.roll(4) == 1 and "ask" or nil, "why" end }
    end),
    approve = function() ah.sleep(0.001) return w.roll(2) == 1 end,
    feedback = maybe(w, function()
      return { { every = 1, text = function() act(w) return "Go on." end } }
    end),
    checks = maybe(w, function() return { function() ah.sleep(0.001) end } end),
    loop_detector = false,
    prompt = maybe(w, function() return prompt(w) end),
  }
end

-- Returns true if the error's code has a cause.
local function accounted(w, err)
  return (w.cancelled and err.code == "cancelled") or err.code == "prompt_render"
    or (w.closed and err.code == "usage")
    or (err.code == "budget_exceeded" and err.message:find("on purpose", 1, true))
    or (err.code == "max_iterations_exceeded" and w.n > 10) -- each after an addition of tools
end

local function go(w, url)
  local ok, agent, err = pcall(agent_of, w, url)
  if not ok or not agent then
    err = ok and err or agent
    assert(type(err) == "table" and err.code == "prompt_render", tostring(err))
    return "unmade"
  end
  w.agent = agent
  local over <close> = agent -- luacheck: ignore (otherwise its callbacks keep it alive)
  local reply
  ok, reply, err = pcall(agent.run, agent, "go")
  if not ok then
    reply, err = nil, reply
  end
  assert(not w.fault, w.fault)
  if not reply then
    assert(type(err) == "table" and accounted(w, err), tostring(err))
    if err.reply then
      sound.check(err.reply:transcript())
    end
    return err.code
  end
  sound.check(reply:transcript())
  assert(reply.text == w.text, "the answer is not whole: " .. #reply.text .. " of " .. #w.text)
  local all = {}
  for i, turn in ipairs(w.turns) do
    all[i] = table.concat(turn.pieces)
  end
  local shown, want = table.concat(w.shown), table.concat(all)
  while #want < #shown do
    want = want .. w.text
  end
  assert(shown == want, "what was shown is not what was said")
  return "ok"
end

local function batch(first, n, ends)
  local worlds, routes = {}, {}
  for i = 1, n do
    worlds[i] = world(first + i)
    if worlds[i].http then
      routes["/" .. i .. "/chat/completions"] = worlds[i].responses
    end
  end
  routes["/none"] = { { body = "x" } }
  local s <close> = server.start { routes = routes, seconds = 300, log = false }
  for i, w in ipairs(worlds) do
    local ok, why = pcall(go, w, s.url .. "/" .. i)
    if not ok then
      error(("OBSERVERS_SEED=%d OBSERVERS_RUNS=1: %s"):format(w.seed - 1, tostring(why)), 0)
    end
    ends[why] = (ends[why] or 0) + 1
  end
end

describe("callbacks that do anything at random", function()
  it(("leave each of %d runs with its whole answer or an error for a reason"):format(RUNS),
    function()
      local ends = {}
      for at = 0, RUNS - 1, BATCH do
        batch(FIRST + at, math.min(BATCH, RUNS - at), ends)
      end
      if RUNS >= 200 then
        assert.is_true((ends.ok or 0) > RUNS / 4, "most runs came to nothing")
        assert.is_true((ends.cancelled or 0) > 0, "no run was cancelled")
      end
      if os.getenv "OBSERVERS_RUNS" then
        io.write("runs by their ends: ", ah.json.encode(ends), "\n")
      end
    end)
end)
