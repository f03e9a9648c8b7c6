-- Limits of every function that a script hands in: whatever it does, it is stopped, the process and
-- the next run continue, and signals end the command. AGENTHOST_HOSTILE=all tries every body in
-- every place, with both limits (some minutes); the default tries some bodies in each place.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local hostile = require "support.hostile"
local patiently = require "support.patiently"
local sound = require "support.sound"

local ALL = os.getenv "AGENTHOST_HOSTILE" == "all"
local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"

local places, ways = hostile.names(hostile.kinds), hostile.names(hostile.bodies)

local function quiet() end

-- -- every function -----------------------------------------------------------------------

describe("the functions of a script", function()
  it("are those that the docs list with their limits", function()
    local file <close> = assert(io.open "docs/reference/limits.md")
    local section = file:read("a"):match "## Functions of a script\n(.-)\n## "
    local listed = {}
    for cell in section:gmatch "\n| ([^|]*) |" do
      for name in cell:gmatch "`([^`]+)`" do
        listed[name] = true
      end
    end
    assert.same(places, hostile.names(listed))
  end)

  it("are those that cannot wait, and tasks", function()
    local as = { on = "OBSERVER", subscribe = "SUBSCRIBER", log = "LOG", reduce = "REDUCER",
      policies = "POLICY", guards = "GUARD",
      strategies = "STRATEGY", feedback = "FEEDBACK", enabled = "SWITCH",
      render = "RENDERER", id = "ID", snapshot = "SNAPSHOT" }
    local file <close> = assert(io.open "src/lua/lua_state.h")
    local known = {}
    for name in file:read("a"):gmatch "    AH_CALLEE_(%u+)" do
      known[name] = true
    end
    for place, name in pairs(as) do
      assert.truthy(hostile.kinds[place] and known[name], name)
      known[name] = nil
    end
    known.NONE = nil
    assert.is_nil(next(known))
  end)
end)

-- Returns all pairs of a place and a body, or some bodies for each place.
local function pairs_of(some)
  local list = {}
  for i, place in ipairs(places) do
    for k, way in ipairs(ways) do
      if ALL or (i * 3 + k) % #ways < some then
        list[#list + 1] = { place, way }
      end
    end
  end
  return list
end

-- Asserts that the place was called and ended in time: within twice its limit for each call (`log`
-- is called for each record), and longer if it closes variables, which has a second of its own.
local function check(place, way, limit, timeout)
  local seconds, called, came = hostile.carry_out(place, way, timeout and limit)
  local most = 2 * limit * (timeout and 1 or called) + (way == "loops_in_close" and 2.2 or 1.2)
  assert.is_true(called > 0, place .. " was not called")
  assert.is_true(seconds < most, ("%s %s: %.2f s of at most %.2f: %s"):format(place, way, seconds,
    most, tostring(came)))
  hostile.goes_on()
end

describe("a function that never ends", function()
  it("is stopped when it worked too long", function()
    local before = ahtest.work_limit(0.03)
    finally(function() ahtest.work_limit(before) end)
    for _, pair in ipairs(pairs_of(4)) do
      if pair[1] ~= "log" or pair[2]:find "^loops" then
        check(pair[1], pair[2], 0.03)
      end
    end
  end)

  it("is stopped by the timeout of its run", function()
    for _, pair in ipairs(pairs_of(1)) do
      patiently(function(times) check(pair[1], pair[2], 0.1 * times, true) end)
    end
  end)

  it("is stopped in programs with a Lua state of their own, whatever it copied before", function()
    local program = command.temp [[
      package.path = "spec/?.lua;" .. package.path
      local hostile, ahtest = require "support.hostile", require "ahtest"
      ahtest.work_limit(0.03)
      local old, resume = coroutine.wrap(function() while true do end end), coroutine.resume
      local co = coroutine.create(function() while true do end end)
      hostile.bodies.old = function() old() end
      hostile.bodies.copied = function() resume(co) while true do end end
      for place in pairs(hostile.kinds) do
        for _, way in ipairs { place == "handler" and "old" or "towers", "trees_of_coroutines" } do
          if place ~= "log" then
            hostile.carry_out(place, way)
            hostile.goes_on()
          end
        end
      end
      hostile.carry_out("on", "copied")
      print "stopped"]]
    local r = command.shell(("LUA_CPATH='%s/?.so;;' timeout 600 \"$A\" -q %s"):format(BUILD,
      program))
    assert.equal("stopped\n", r.out, r.err)
  end)

  it("is noticed where there is no limit", function()
    local program = command.temp [[
      package.path = "spec/?.lua;" .. package.path
      local hostile = require "support.hostile"
      require "ahtest".work_limit(0)
      print(hostile.carry_out("policies", "loops_under_pcall"))]]
    local r = command.shell(("timeout 2 env LUA_CPATH='%s/?.so;;' lua5.4 %s"):format(BUILD,
      program))
    assert.same({ 124, "" }, { r.code, r.out })
  end)
end)

-- -- results and errors -------------------------------------------------------------------------

local function tool(name, handler, more)
  local def = { name = name, description = "Does it.", handler = handler or quiet }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

local function run(fields)
  fields.log, fields[1] = quiet, "go"
  return ah.run(fields)
end

local function calling(...)
  local turns = {}
  for i, name in ipairs { ... } do
    turns[i] = { calls = { { name = name } } }
  end
  turns[#turns + 1] = "done"
  return ah.scripted(turns)
end

local function content(reply)
  return sound.of(sound.check(reply:transcript()), "tool_result")[1].content
end

local function forever()
  while true do end
end

describe("past its limit", function()
  local before

  before_each(function() before = ahtest.work_limit(0.03) end)
  after_each(function() ahtest.work_limit(before) end)

  local WORK = "its code ran for more than 0%.03 seconds and was stopped"

  it("a policy denies, also where it catches what stops it", function()
    local function late() pcall(forever) return "allow" end
    for _, policy in ipairs { hostile.bodies.loops, hostile.bodies.loops_under_pcall, late } do
      local ran, warned = false, nil
      local reply = assert(run { tools = { tool("t", function() ran = true end) },
        policies = { policy }, model = calling "t",
        on = { warning = function(e) warned = e.message end } })
      assert.is_false(ran)
      assert.equal("Tool 't' was not run: a policy failed", content(reply))
      assert.matches(WORK, warned)
    end
  end)

  it("what looks at a result, an input or an answer keeps it back", function()
    local reply = assert(run { tools = { tool("t", function() return "secret" end) },
      policies = { { after = forever } }, model = calling "t" })
    assert.equal("Tool 't' was run, and its result was withheld: a policy failed", content(reply))
    for _, which in ipairs { "input", "output" } do
      local nothing, err = run { guards = { [which] = forever }, model = calling() }
      assert.is_nil(nothing)
      assert.equal("guard_tripped", err.code)
      assert.matches(WORK, err.message)
    end
  end)

  it("observers, strategies and renderers are warnings", function()
    local warnings = {}
    local function warned(e) warnings[#warnings + 1] = e.message end
    assert(run { tools = { tool("t", function() return { x = 1 } end, { render = forever }) },
      strategies = { forever }, model = calling "t", on = { warning = warned,
        tool_invoked = forever } })
    for _, what in ipairs { "the observer of 'tool_invoked'", "renderer of tool 't'", "strateg" } do
      local found
      for _, message in ipairs(warnings) do
        found = found or (message:find(what, 1, true) and message:find(WORK))
      end
      assert.truthy(found, what)
    end
  end)

  it("the memory of a function is bounded, too", function()
    ahtest.work_limit(100)
    local warning
    assert(run { tools = { tool "t" }, model = calling "t", on = { tool_invoked = function()
      local t = {}
      while true do t[#t + 1] = ("x"):rep(1e6) .. #t end
    end, warning = function(e) warning = e.message end } })
    assert.matches("would have taken %d+ bytes of memory; the limit is 268435456", warning)
  end)
end)

describe("limits inside limits", function()
  it("stop what is inside, and hold on", function()
    local Note = ah.type { name = "WatchNote", fields = { text = "string" } }
    local session = ah.session { types = { Note } }
    session:reduce(Note, Note, forever)
    local went_on
    local began = os.clock()
    local reply = assert(run { session = session, model = calling "t", tools = { tool("t",
      function(_, ctx)
        pcall(function() ctx.session:dispatch(Note { text = "x" }) end)
        hostile.bodies.loops_under_pcall()
        went_on = true
      end, { timeout = 0.1 }) } })
    assert.matches("did not finish within 0%.1 seconds", content(reply))
    assert.is_nil(went_on)
    assert.is_true(os.clock() - began < 1)
  end)

  it("are those of the calls around a run as well, where it yields and where it drives", function()
    local inner = tool("inner", forever)
    local function nested()
      return run { tools = { inner }, model = calling "inner" }
    end
    for _, handler in ipairs { nested, function() return coroutine.wrap(nested)() end } do
      local began = os.clock()
      local reply = assert(run { tools = { tool("outer", handler, { timeout = 0.1 }) },
        model = calling "outer" })
      assert.matches("did not finish within 0%.1 seconds", content(reply))
      assert.is_true(os.clock() - began < 1)
    end
  end)
end)

-- -- calls that return late ---------------------------------------------------------------------

describe("a call that comes back after its time", function()
  local function late()
    os.execute "sleep 0.3"
    return "late"
  end

  it("has failed, and what it changed is dropped", function()
    local Thing = ah.entity { name = "LateThing", prefix = "late", id = "id" }
    local it_is = Thing { id = "1", n = 0 }
    Thing:tool { name = "act", description = "Acts.", timeout = 0.1, handler = function(self)
      self.n = 1
      return late()
    end }
    local fs = ah.filesystem { memory = true }
    local reply = assert(run { discover = true, resources = { filesystem = fs }, tools = {
      tool("make", function() return it_is end),
      tool("write", function(_, ctx)
        ctx.filesystem:write("f", "x")
        return late()
      end, { timeout = 0.1 }),
      tool("move", function() table.move({}, 1, 3e7, 2) return "late" end, { timeout = 0.1 }),
    }, model = calling("make", "late_1_act", "write", "move") })
    local results = sound.of(sound.check(reply:transcript()), "tool_result")
    for i = 2, 4 do
      assert.matches("did not finish within 0%.1 seconds", results[i].content)
    end
    assert.equal(0, it_is.n)
    assert.is_nil((fs:read "f"))
  end)

  it("has failed by the deadline of its run and by its work, too", function()
    local reply, err = run { tools = { tool("t", late) }, model = calling "t", timeout = 0.1 }
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    assert.matches("the deadline passed before this call finished", content(err.reply))
    local before = ahtest.work_limit(0.1)
    reply = assert(run { tools = { tool("t", function()
      table.move({}, 1, 5e7, 2)
      return "late"
    end) }, model = calling "t" })
    ahtest.work_limit(before)
    assert.matches("ran for more than 0%.1 seconds", content(reply))
  end)

  it("has not where it only waited, and has no timeout", function()
    local before = ahtest.work_limit(0.1)
    local reply = assert(run { tools = { tool("t", late) }, model = calling "t" })
    ahtest.work_limit(before)
    assert.equal("late", content(reply))
  end)
end)

-- -- coroutines ------------------------------------------------------------------------------

describe("the guarded functions of coroutines", function()
  it("do what those of Lua do", function()
    local mine = command.agenthost "spec/support/coroutines.lua"
    local lua = command.shell "lua5.4 spec/support/coroutines.lua"
    assert.same({ 0, lua.out }, { mine.code, mine.out }, mine.err)
  end)

  it("refuse to close one in another's __close where that would end the process", function()
    local program = command.temp [[
      local last
      for _ = 1, 30000 do
        local before = last
        last = coroutine.create(function()
          local x <close> = setmetatable({}, { __close = function()
            return before and assert(coroutine.close(before)) end })
          coroutine.yield()
        end)
        coroutine.resume(last)
      end
      print(coroutine.close(last))]]
    local r = command.agenthost(program)
    assert.equal(0, r.code, r.err)
    assert.matches("^false\t.*C stack overflow", r.out)
  end)

  it("are those of Lua until something is run", function()
    local r = command.shell(([[LUA_CPATH='%s/?.so;;' lua5.4 -e '
      local resume, hook = coroutine.resume, debug.sethook
      local ah = require "agenthost"
      print(resume == coroutine.resume, hook == debug.sethook)']]):format(BUILD))
    assert.equal("true\ttrue\n", r.out)
  end)
end)

-- -- signals ---------------------------------------------------------------------------------

describe("a signal", function()
  local TOWER = [[local function f(n) return coroutine.wrap(function()
    while true do if n > 0 then pcall(f, n - 1) end end end)() end ]]
  local CALLS = [[local t = ah.tool { name = "t", description = "Is called.", handler = HANDLER }
    print(ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "done" }, tools = { t },
      log = function() end, MORE "go" }) ]]
  local PCALLS = "print 'ready' while true do pcall(function() while true do end end) end"
  local LOOP = "function() " .. PCALLS .. " end"

  local function calls(handler, more, behind)
    return (CALLS:gsub("HANDLER", handler):gsub("MORE", more or "")) .. (behind or "")
  end

  -- Scripts that get the signal, by the work that it interrupts; each prints "ready" first.
  local scripts = {
    ["loops"] = "print 'ready' while true do end",
    ["loops under pcall"] = PCALLS,
    ["stands in a tower"] = TOWER .. "print 'ready' while true do pcall(f, 6) end",
    ["sorts"] = "table.sort({ 1, 2 }, " .. LOOP .. ")",
    ["is in a metamethod of what it hands in"] =
      "ah.tool(setmetatable({}, { __index = " .. LOOP .. ", __pairs = " .. LOOP .. " }))",
    ["calls what takes long"] =
      "local s = ('x'):rep(1e6) print 'ready' while true do pcall(string.gsub, s, 'x', 'yy') end",
    ["is in a handler"] = calls(LOOP, nil, "while true do end"),
    ["is in a policy"] = calls("print", "policies = { " .. LOOP .. " },"),
    ["is in an observer"] = calls("print", "on = " .. LOOP .. ","),
    ["is in a strategy"] = calls("print", "strategies = { " .. LOOP .. " },", "while true do end"),
    ["closes for ever"] = calls([[function()
      local x <close> = setmetatable({}, { __close = function() while true do end end })
      print "ready"
      ah.sleep(60)
    end]]),
    ["waits again and again"] = "print 'ready' while true do pcall(ah.sleep, 60) end",
    ["runs again and again"] = [[print "ready" while true do
      ah.run { model = ah.scripted { { text = "x", delay = 0.2 } }, "go" } end]],
    ["raises what prints for ever"] =
      "error(setmetatable({}, { __tostring = " .. LOOP .. " }))",
  }

  local function ended(name, text)
    local path = command.temp("io.stdout:setvbuf 'no' local ah = require 'agenthost' " .. text)
    local out = command.temp ""
    local r = command.shell(([["$A" %s >%s 2>/dev/null & p=$!
      for i in $(seq 200); do [ -s %s ] && break; sleep 0.05; done
      ( trap 'kill $s' TERM; sleep 60 & s=$!; wait $s && kill -KILL $p ) >/dev/null 2>&1 & guard=$!
      began=$(date +%%s%%N); kill -%s $p; wait $p; rc=$?
      kill $guard; echo $(( ($(date +%%s%%N) - began) / 1000000 )); exit $rc]]):format(path, out,
      out, name))
    return r.code, tonumber(r.out)
  end

  for what, text in pairs(scripts) do
    it("ends a script that " .. what, function()
      for name, code in pairs { TERM = 143, INT = 130 } do
        patiently(function(times)
          local found, ms = ended(name, text)
          assert.equal(code, found, name)
          assert.is_true(ms < 3000 * times, ("%s took %d ms"):format(name, ms))
        end)
      end
    end)
  end

  it("lets the script say what it was told, and no run begin", function()
    patiently(function() -- the script has 0.2 s after the signal
      local path, out = command.temp [[
        io.stdout:setvbuf "no"
        local ah = require "agenthost"
        print "ready"
        for _ = 1, 3 do
          local reply, err = ah.run { model = ah.scripted { { text = "x", delay = 20 } }, "go" }
          print(reply, err.code)
        end
        print(select(2, pcall(ah.sleep, 1)).code)]], command.temp ""
      local r = command.shell(([["$A" %s >%s & p=$!
        for i in $(seq 200); do [ -s %s ] && break; sleep 0.05; done
        sleep 0.3; kill -TERM $p; wait $p]]):format(path, out, out))
      assert.equal(143, r.code)
      assert.equal("ready\n" .. ("nil\tcancelled\n"):rep(3) .. "cancelled\n", command.contents(out))
    end)
  end)
end)

local probe = ahtest.pty({ "/bin/true" }, { env = {} })

describe("Ctrl-C in a chat", function()
  local CHAT = [[
    io.stdout:setvbuf "no"
    local ah = require "agenthost"
    ah.interactive()
    for line in function() io.write "> " return io.read "l" end do
      local model = ah.scripted(function()
        print "begun"
        ah.sleep(60)
      end)
      local reply, err = ah.run { model = model,
        on = { content = function(e) io.write(e.text) end }, line }
      print(reply or err.code)
    end]]

  local function chat(t, bytes, part)
    local all, until_ = "", os.time() + 60
    t:write(bytes)
    while not all:find(part, 1, true) do
      assert(os.time() < until_, all)
      all = all .. (t:read(1) or error("ended: " .. all))
    end
  end

  local it_if = probe and it or pending
  it_if("cancels each answer, and ends at an empty prompt", function()
    local t = assert(ahtest.pty({ command.BINARY, "-q", command.temp(CHAT) },
      { env = { "TERM=dumb", "PATH=/usr/bin:/bin", "HOME=/" }, columns = 80 }))
    chat(t, "", "> ")
    for _ = 1, 3 do
      chat(t, "hello\n", "begun")
      chat(t, "\3", "cancelled\r\n> ")
    end
    t:write "\3"
    while t:read(1) do end
    assert.equal(130, t:wait(5))
    t:close()
  end)
end)

teardown(command.tidy)
