-- Limits of a run and its handlers: the loop detector, time, memory, sizes, depth. Each limit is
-- reached, its error names the limit and the value, and the run or the process continues.
local ah = require "agenthost"
local ahtest = require "ahtest"
local attacks = require "support.attacks"
local sound = require "support.sound"

local function quiet() end

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

-- -- the loop detector ---------------------------------------------------------------------

local ANY = { schema = { type = "object" } }

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

-- Runs with these calls, one a message; returns the reply or the partial one, the error, and the
-- contents of the results.
local function calls_of(list, fields)
  local turns = {}
  for i, c in ipairs(list) do
    turns[i] = type(c) == "string" and call(c, {}) or c
  end
  turns[#turns + 1] = "done"
  fields = fields or {}
  fields.model, fields.max_iterations = ah.scripted(turns), 200
  fields.tools = fields.tools
    or { tool("a", nil, ANY), tool("b", nil, ANY), tool("c", nil, ANY), tool("d", nil, ANY) }
  local reply, err = run(fields)
  reply = reply or err.reply
  local contents = {}
  for i, r in ipairs(sound.of(sound.check(reply:transcript()), "tool_result")) do
    contents[i] = r.content
  end
  return reply, err, contents
end

-- Returns the warnings and the end of a run over these letters, counted in a simple way: a string
-- of `.`, `w` (warning) and `x` (end).
local function count(letters, rules)
  local said = {}
  for i = 1, #letters do
    local times = 0
    for j = math.max(1, i - rules.window), i do
      times = times + (letters:byte(j) == letters:byte(i) and 1 or 0)
    end
    for length = 2, 3 do
      local first = math.max(1, i - rules.pattern_window + 1)
      local from = i
      while from - 1 >= first and from - 1 + length <= #letters and (i - from + 1 < length
          or letters:byte(from - 1) == letters:byte(from - 1 + length)) do
        from = from - 1
      end
      times = math.max(times, math.ceil((i - from + 1) / length))
    end
    said[i] = times >= rules.stop and "x" or times >= rules.warn and "w" or "."
    if said[i] == "x" then
      break
    end
  end
  return table.concat(said)
end

local function seen(letters, fields)
  local list = {}
  for c in letters:gmatch(".") do
    list[#list + 1] = c
  end
  local _, err, contents = calls_of(list, fields)
  for i, content in ipairs(contents) do
    contents[i] = content:find("^Warning: ") and "w" or content:find("^Not run: ") and "x" or "."
  end
  assert.equal(contents[#contents] == "x" and "loop_detected" or nil, err and err.code)
  return table.concat(contents)
end

describe("the loop detector", function()
  it("warns at the 4th and 5th call and ends the run at the 6th", function()
    local ran, warnings = 0, {}
    local reply, err, contents = calls_of({ "a", "a", "a", "a", "a", "a", "a" }, {
      tools = { tool("a", function() ran = ran + 1 return "result" end) },
      on = { warning = function(e) warnings[#warnings + 1] = e.message end },
    })
    assert.same({ 5, 6 }, { ran, reply.iterations })
    assert.same({ "result", "result", "result" }, { table.unpack(contents, 1, 3) })
    assert.equal("Warning: tool 'a' was called with the same arguments for the 4th time within 11 "
      .. "calls; time 6 ends the run. Use the results there are, or do something else.\n\nresult",
      contents[4])
    assert.matches("^Warning: .*5th time.*\n\nresult$", contents[5])
    assert.matches("^Not run: .*6th time", contents[6])
    assert.same({ "loop_detected", "tool", "a" }, { err.code, err.phase, err.tool })
    assert.matches("the limit is 6 %(loop_detector: stop, exempt, or false%)$", err.message)
    assert.same({ 2, true }, { #warnings, warnings[1]:find("4th time", 1, true) ~= nil })
  end)

  it("compares arguments by what they say, not by how they are written", function()
    local ways = { '{"x":1,"y":[true,"\u{e9}"]}', '{"y":[true,"\\u00e9"],"x":1}',
      ' { "x" : 1, "y" : [ true, "\\u00E9" ] } ', { y = { true, "\u{e9}" }, x = 1 } }
    local list = {}
    for i = 1, 6 do
      list[i] = call("a", ways[i % #ways + 1])
    end
    assert.equal("loop_detected", select(2, calls_of(list)).code)
    for i = 1, 12 do
      list[i] = call("a", { x = i })
    end
    assert.is_nil(select(2, calls_of(list)))
  end)

  it("counts what failed, what is unknown and what is no JSON as well", function()
    for _, c in ipairs { call("a", '{"x":'), call("b", {}) } do
      local list = { c, c, c, c, c, c }
      local _, err, contents = calls_of(list, {
        tools = { tool("a"), tool("b", function() error "no" end) } })
      assert.equal("loop_detected", err.code)
      assert.matches("^Warning: .*\n\nTool ", contents[5])
    end
    local _, err = calls_of({ "zz", "zz", "zz", "zz", "zz" }, { loop_detector = { stop = 3 } })
    assert.equal("loop_detected", err.code)
  end)

  it("counts several calls of one message, and begins none behind the last", function()
    local ran = 0
    local a = tool("a", function() ran = ran + 1 end, { parallel = true })
    local calls = {}
    for i = 1, 9 do
      calls[i] = { name = "a", arguments = {} }
    end
    local reply, err = run { model = ah.scripted { { calls = calls } }, tools = { a } }
    assert.is_nil(reply)
    local results = sound.of(sound.check(err.reply:transcript()), "tool_result")
    assert.same({ "loop_detected", 5 }, { err.code, ran })
    assert.matches("6th time", results[6].content)
    assert.matches("ended before this call was begun", results[7].content)
  end)

  it("sees two or three calls made in turn", function()
    assert.equal("......wwwwx", seen "abababababab")
    assert.equal(".........wwwwwwx", seen "abcabcabcabcabcabc")
    assert.equal("............", seen "abdcbadcdacb")
  end)

  it("forgets what lies outside of its windows", function()
    local list = {}
    for round = 1, 8 do
      list[#list + 1] = call("a", {})
      for i = 1, 3 do
        list[#list + 1] = call("b", { round = round, i = i })
      end
    end
    assert.is_nil(select(2, calls_of(list)))
  end)

  it("counts as a person would, over many orders of calls", function()
    local next_random = 7
    local function random(n)
      next_random = (next_random * 1103515245 + 12345) % (1 << 31)
      return next_random // 65536 % n + 1
    end
    local usual = { warn = 4, stop = 6, window = 10, pattern_window = 20 }
    local strict = { warn = 2, stop = 3, window = 4, pattern_window = 7 }
    for _ = 1, 100 do
      local letters, names = {}, 2 + random(2)
      for i = 1, 24 do
        letters[i] = ("abcd"):sub(random(names)):sub(1, 1)
        if i > 4 and random(4) > 1 then -- mostly a repetition of two or three calls before
          letters[i] = letters[i - 1 - random(2)]
        end
      end
      local text = table.concat(letters)
      assert.equal(count(text, usual), seen(text), text)
      assert.equal(count(text, strict), seen(text, { loop_detector = strict }), text)
    end
  end)

  it("can be set, be told to leave tools out, and be switched off", function()
    assert.equal("..x", seen("aaaa", { loop_detector = { stop = 3 } }))
    assert.equal("......wwwx", seen("aaaaaaaaaaa", { loop_detector = { warn = 7, stop = 10 } }))
    assert.equal(("."):rep(30), seen(("a"):rep(30), { loop_detector = false }))
    assert.equal(("."):rep(30), seen(("a"):rep(30), { loop_detector = { exempt = { "a" } } }))
    assert.equal(".........w.x", seen("bababababada", { loop_detector = { exempt = { "b" },
      warn = 5 } }))
  end)

  it("begins anew with each run", function()
    local turns = {}
    for i = 1, 12 do
      turns[i] = i % 4 == 0 and "done" or call("a", {})
    end
    local agent = ah.agent { model = ah.scripted(turns), tools = { tool("a") } }
    for _ = 1, 3 do
      assert(agent:run("go"))
    end
  end)

  it("refuses settings that can never be met", function()
    local function message(rules)
      return tostring(select(2, pcall(run, { model = "demo/echo", loop_detector = rules })))
    end
    assert.matches("must be false or a table", message(true and 1))
    assert.matches("unknown field 'stopp' %(did you mean 'stop'%?%)", message { stopp = 1 })
    assert.matches("'stop' must be an integer from 2 to 33, found 1", message { stop = 1 })
    assert.matches("from 2 to 33, found 9223372036854775807$", message { stop = math.maxinteger })
    assert.matches("'stop' must be an integer from 2 to 33, found 34", message { stop = 34 })
    assert.matches("'window' must be from 5 to 100, found 4", message { window = 4 })
    assert.matches("'pattern_window' must be from 16 to 100", message { pattern_window = 5 })
    assert.matches("exempt%[1%] must be the name of a tool", message { exempt = { 1 } })
  end)
end)

-- -- memory, computing, os.exit -----------------------------------------------------------

local MIB = 1 << 20

-- Calls each of these handlers in turn, or all together; returns the contents of the results.
local function contents_of(handlers, more, fields)
  local tools, calls = {}, {}
  for i, handler in ipairs(handlers) do
    tools[i] = tool("t" .. i, handler, more)
    calls[i] = { name = "t" .. i }
  end
  fields = fields or {}
  fields.tools, fields.model = tools, ah.scripted { { calls = calls }, "done" }
  local reply = assert(run(fields))
  local contents = {}
  for i, r in ipairs(sound.of(sound.check(reply:transcript()), "tool_result")) do
    contents[i] = r.content
  end
  return table.unpack(contents)
end

local function take(mib)
  return ("x"):rep(mib * MIB // 2) -- its buffer takes as much again
end

describe("the memory of a call", function()
  it("is 256 MiB by default, and what the tool says", function()
    assert.matches("taken %d+ bytes of memory; the limit is 268435456, and memory = bytes",
      contents_of { function() return #("x"):rep(1 << 30) end })
    assert.equal(tostring(3 * MIB),
      contents_of({ function() return #take(6) end }, { memory = 8 * MIB }))
    assert.matches("the limit is 4194304", contents_of({ function() return #take(8) end },
      { memory = 4 * MIB }))
  end)

  it("is counted for each call alone, be they one after the other or together", function()
    local kept = {}
    local function handler()
      kept[#kept + 1] = take(6)
      ah.sleep(0.001)
      return "kept"
    end
    for _, more in ipairs { { memory = 8 * MIB }, { memory = 8 * MIB, parallel = true } } do
      assert.same({ "kept", "kept", "kept" }, { contents_of({ handler, handler, handler }, more) })
    end
  end)

  it("is not that of garbage that others left, or that others cleared away", function()
    local function garbage(n)
      for i = 1, n do
        local _ = take(1) .. i
      end
    end
    garbage(40)
    local function busy()
      for _ = 1, 8 do
        garbage(2)
        ah.sleep(0.001)
        collectgarbage()
      end
      return "fine"
    end
    local more = { memory = 8 * MIB, parallel = true }
    assert.same({ "fine", "fine", "fine" }, { contents_of({ busy, busy, busy }, more) })
  end)

  it("is not that of a run inside it, and is counted again behind that", function()
    local inner = tool("inner", function() return #take(12) end, { memory = 16 * MIB })
    local function nested()
      return ah.run { model = ah.scripted { call("inner", {}), function(request)
        return request.entries[#request.entries].content
      end }, tools = { inner }, log = quiet, "go" }
    end
    local function outer(enter)
      return function()
        local text = enter(nested).text
        local ok, err = pcall(take, 12)
        collectgarbage()
        return text .. " " .. tostring(ok and "more" or err)
      end
    end
    local said = tostring(6 * MIB) .. " not enough memory"
    assert.same({ said, said }, { contents_of({ outer(function(f) return f() end),
      outer(function(f) return coroutine.wrap(f)() end) }, { memory = 4 * MIB }) })
  end)

  it("is a number of bytes that makes sense", function()
    assert.has_error(function() tool("t", quiet, { memory = 1000 }) end)
    assert.has_error(function() tool("t", quiet, { memory = "1 MB" }) end)
  end)
end)

describe("the work of a call", function()
  local before

  before_each(function() before = ahtest.work_limit(0.03) end)
  after_each(function() ahtest.work_limit(before) end)

  local function compute(seconds)
    local began = os.clock()
    while os.clock() - began < seconds do end
  end

  it("is 10 seconds where the tool has no timeout", function()
    assert.equal(10, before)
  end)

  it("does not include waiting, nor the work of others", function()
    assert.same({ "waited", "waited" }, { contents_of({ function()
      compute(0.01)
      ah.sleep(0.05)
      compute(0.01)
      return "waited"
    end, function()
      ah.sleep(0.02)
      return "waited"
    end }, { parallel = true }) })
    local long = tool("long", function() compute(0.1) end, { timeout = 5 })
    assert.equal("waited", contents_of { function()
      coroutine.wrap(function()
        assert(run { model = ah.scripted { call("long", {}), "ok" }, tools = { long } })
      end)()
      compute(0.005)
      return "waited"
    end })
  end)

  it("adds up over all that the call does", function()
    assert.matches("ran for more than 0%.03 seconds", contents_of { function()
      for _ = 1, 100 do
        compute(0.005)
        ah.sleep(0.001)
      end
    end })
  end)

  it("is not limited beside a timeout", function()
    assert.equal("computed", contents_of({ function()
      compute(0.06)
      return "computed"
    end }, { timeout = 5 }))
  end)
end)

describe("os.exit", function()
  it("is itself outside of handlers, in observers too", function()
    local exit, was = os.exit, {}
    local handler = function()
      was[1] = os.exit ~= exit
      ah.sleep(0.001)
      was[2] = os.exit ~= exit
    end
    local function observe()
      was[3] = os.exit == exit
    end
    contents_of({ handler }, nil, { on = { tool_invoked = observe } })
    assert.same({ true, true, true }, was)
    assert.equal(exit, os.exit)
  end)

  it("of the script's own is kept, and so is what a handler puts there", function()
    local lib, exit = package.loaded.os, os.exit
    local function mine() end
    lib.exit = mine
    local refused = contents_of { function() os.exit() end }
    local kept = lib.exit
    contents_of { function() lib.exit = quiet end }
    local set = lib.exit
    lib.exit = exit
    assert.matches("is refused", refused)
    assert.equal(mine, kept)
    assert.equal(quiet, set)
  end)

  it("kept by a handler ends the program when it is called outside", function()
    local command = ([[LUA_CPATH="%s/?.so;;" lua5.4 -e 'local ah, exit = require "agenthost"
      local t = ah.tool { name = "t", description = "d", handler = function() exit = os.exit end }
      ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "ok" }, tools = { t }, "go" }
      exit(7)']]):format(os.getenv("AGENTHOST_BUILD") or "./build")
    assert.equal(7, select(3, os.execute(command)))
  end)
end)

-- -- sizes and numbers -------------------------------------------------------------------

describe("a result", function()
  it("is cut at max_result, and keeps head and tail whole", function()
    for _, limit in ipairs { 1024, 4096, 65536 } do
      for over = 0, 400, 19 do
        local text = {}
        for i = 1, (limit + over) // 8 + 1 do
          text[i] = ("%07d "):format(i)
        end
        text = table.concat(text):sub(1, limit + over)
        local more = limit ~= 65536 and { max_result = limit } or nil
        local said = contents_of({ function() return text end }, more)
        local head, left, tail = said:match("^(.-)\n%[%.%.%. (%d+) of .- %.%.%.%]\n(.*)$")
        if over == 0 then
          assert.equal(text, said)
        else
          assert.is_true(#said <= limit)
          assert.equal(text, head .. text:sub(#head + 1, #head + left) .. tail)
        end
      end
    end
  end)

  it("is cut between characters", function()
    for n = 1024, 1030 do
      local said = contents_of({ function() return ("x"):rep(n) .. ("\u{20ac}"):rep(1000) end },
        { max_result = 1024 })
      assert.truthy(utf8.len(said))
    end
  end)
end)

describe("max_tools", function()
  local function many(n)
    local tools = {}
    for i = 1, n do
      tools[i] = tool("t" .. i)
    end
    return tools
  end

  it("is 128 and says how to allow more", function()
    assert(run { model = "demo/echo", tools = many(128) })
    local ok, err = pcall(run, { model = "demo/echo", tools = many(129) })
    assert.is_false(ok)
    assert.equal("prompt_validation", err.code)
    assert.matches("129 tools are more than max_tools %(128%).*max_tools = 129 allows them",
      err.message)
    assert(run { model = "demo/echo", tools = many(129), max_tools = 129 })
  end)
end)

describe("a handler that is out of time", function()
  it("is kept until its run has stopped it, whatever others do meanwhile", function()
    local function late()
      ah.sleep(0.005)
      while true do end
    end
    local function sweep()
      for _ = 1, 40 do
        ah.sleep(0.001)
        collectgarbage()
      end
      return "swept"
    end
    for _ = 1, 3 do
      local more = { timeout = 0.02, parallel = true }
      local first, second, third = contents_of({ late, sweep, late }, more)
      assert.matches("did not finish", first)
      assert.matches("did not finish", second .. third)
    end
  end)
end)

-- -- handlers with mistakes ------------------------------------------------------------------

describe("a handler that", function()
  for _, a in ipairs(attacks) do
    it(a.name .. " is answered, and the next call is fine", function()
      assert.matches(a.says, attacks.carry_out(a, ahtest.work_limit))
    end)
  end

  -- The cases above run in the main thread of stock Lua.
  local build = os.getenv("AGENTHOST_BUILD") or "./build"
  local programs = { agenthost = build .. "/agenthost -q", ["lua5.4"] = "lua5.4" }
  for program, place in pairs { agenthost = "handler", ["lua5.4"] = "coroutine" } do
    it(("does any of this is answered in %s, inside a %s"):format(program, place), function()
      local command = ("LUA_CPATH='%s/?.so;;' %s spec/support/carry_out.lua %s 2>&1"):format(
        build, programs[program], place)
      local pipe <close> = assert(io.popen(command))
      assert.equal(#attacks .. "\n", pipe:read("a"))
    end)
  end
end)

describe("what a result calls", function()
  local function busy(seconds)
    local began = ah.now()
    while ah.now() - began < seconds do
      local _ = ("x"):rep(1000)
    end
  end

  -- Catches the error of being stopped, so that it returns its result, but late.
  local function late()
    pcall(busy, 0.1)
    return "late"
  end

  local function result_of(fields)
    fields.name, fields.description, fields.timeout = "t", "Is late.", 0.03
    local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "done" },
      tools = { ah.tool(fields) }, log = function() end, "go" })
    return reply.messages[3].content
  end

  it("ends its call once, where it comes back late", function()
    for _ = 1, 3 do
      assert.matches("did not finish", result_of { handler = function() return 1 end,
        render = late })
      assert.matches("did not finish", result_of { handler = function()
        return nil, setmetatable({}, { __tostring = late })
      end })
    end
  end)
end)
