-- Tasks in the command and in the stock interpreter: ends of scripts, exit codes, signals.
local command = require "support.command"
local patiently = require "support.patiently"
local server = require "support.server"

local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"
local temp, contents, has = command.temp, command.contents, command.has

after_each(command.tidy)

local HEAD = [[
local ah = require "agenthost"
io.stdout:setvbuf "no"
local function closing(word)
  return setmetatable({}, { __close = function() print("closed " .. word) end })
end
local function held(word, f)
  return function() local _ <close> = closing(word) f() end
end
]]

-- Starts a program that prints "ready", then does `act` (a shell command in which $p is its process
-- id). Returns its exit code, output and errors.
local function signalled(text, act, program)
  local path, out = temp(HEAD .. text), temp("")
  local r = command.shell(([[%s %s </dev/null >%s & p=$!
    for i in $(seq 400); do grep -q ready %s && break; sleep 0.05; done
    %s
    for i in $(seq 600); do kill -0 $p 2>/dev/null || break; sleep 0.05; done
    kill -KILL $p 2>/dev/null
    wait $p]]):format(program or '"$A"', path, out, out, act))
  r.out = contents(out)
  return r
end

-- The second signal comes when the first has arrived.
local TWICE = [[kill -INT $p
  until grep -q "ShdPnd:[^1-9a-f]*$" /proc/$p/status; do sleep 0.05; done
  kill -INT $p]]

local function script(text)
  return command.script(HEAD .. text)
end

local STOCK = ("env LUA_CPATH='%s/?.so' lua5.4"):format(BUILD)

-- Tasks in all kinds of waits, each with a variable that prints when it is closed.
local WAITING = [[
local agent = ah.agent { log = function() end,
  model = ah.scripted(function() return { calls = { { name = "nap" } } } end),
  tools = { ah.tool { name = "nap", description = "Naps.", handler = held("handler", function()
    ah.spawn(held("task of the handler", function() ah.sleep(60) end))
    print "ready"
    ah.sleep(60)
  end) } }, on = { done = function(e) print("run " .. e.code) end } }
ah.spawn(held("sleeper", function() ah.sleep(60) end))
ah.spawn(held("receiver", function() ah.channel():receive() end))
ah.spawn(held("scope", function()
  ah.scope(function(s) s:spawn(held("task of the scope", function() ah.sleep(60) end)) end)
end))
ah.spawn(held("process", function()
  local p <close> = assert(ah.process { command = "sleep", args = { "60" } })
  p:wait()
end))
ah.every(0.01, function() end)
ah.spawn(held("runner", function() agent:run "hi" end))
]]

describe("a signal", function()
  for name, code in pairs { INT = 130, TERM = 143 } do
    it("settles the runs of all tasks and closes what they hold: SIG" .. name, function()
      for _, last in ipairs { "", "ah.spawn(ah.sleep, 60):await()", "ah.sleep(60)",
        "local e = ah.every(1, function() end) ah.all { function() e:await() end }" } do
        patiently(function() -- the script has 0.2 s after the signal
          local r = signalled(WAITING .. last, "kill -" .. name .. " $p")
          assert.equal(code, r.code, last .. r.err)
          for _, word in ipairs { "sleeper", "receiver", "scope", "task of the scope", "process",
            "runner", "handler", "task of the handler" } do
            local _, count = r.out:gsub("closed " .. word .. "\n", "")
            assert.equal(1, count, word .. " " .. last .. "\n" .. r.out)
          end
          has(r.out, "run cancelled")
          assert.equal(1, select(2, r.err:gsub("\n", "")), r.err)
        end)
      end
    end)
  end

  it("raises at the waits of the main code, which can start no more tasks", function()
    local r = signalled([[
ah.spawn(print, "ready") -- in the wait
print(select(2, pcall(function() ah.spawn(ah.sleep, 60):await() end)).code)
print(select(2, pcall(ah.sleep, 60)).code)
print(select(2, pcall(ah.spawn, print)).code)]], "kill -INT $p")
    assert.equal("ready\ncancelled\ncancelled\ncancelled\n", r.out)
    assert.equal(130, r.code)
  end)

  it("ends a task that computes, catches errors or closes without end", function()
    for _, code in ipairs {
      "ah.spawn(function() print 'ready' while true do end end)",
      "ah.spawn(function() print 'ready' while true do pcall(ah.yield) end end)",
      "ah.spawn(function() print 'ready' while true do pcall(load 'while true do end') end end)",
      [[ah.spawn(function()
        local _ <close> = setmetatable({}, { __close = function() while true do end end })
        print 'ready'
        ah.sleep(60)
      end)]],
    } do
      local r = signalled(code, "kill -INT $p")
      assert.equal(130, r.code, code .. r.err)
    end
  end)

  it("sent twice ends at once a task in a call that nothing can interrupt", function()
    local r = signalled([[
ah.spawn(function()
  print "ready"
  local s = ("a"):rep(100000)
  s:find(".-.-.-b")
end)]], TWICE)
    assert.equal(130, r.code)
  end)

  it("in the stock interpreter ends the wait of a coroutine, too", function()
    local r = signalled([[
ah.every(0.01, function() end)
ah.spawn(print, "ready")
print(coroutine.resume(coroutine.create(function() ah.channel():receive() end)))]],
      "kill -INT $p", STOCK)
    assert.equal("ready\nfalse\tinterrupted!\n", r.out, r.err)
  end)

  it("in the stock interpreter is an error at the wait of the main code", function()
    local r = signalled([[
local other = ah.spawn(held("other", function() ah.sleep(60) end))
ah.spawn(print, "ready")
print(pcall(ah.sleep, 60))
other:cancel()
print(other:status())]], "kill -INT $p", STOCK)
    assert.equal("ready\nfalse\tinterrupted!\nclosed other\ncancelled\n", r.out, r.err)
    assert.equal(0, r.code)
  end)
end)

describe("a recording of many tasks", function()
  it("answers each of them in any order", function()
    local message = { role = "assistant", content = "fine" }
    local s <close> = server.start { responses = { server.json {
      choices = { { index = 0, message = message, finish_reason = "stop" } } } } }
    local path = temp(HEAD .. [[
local list = {}
for i = 1, 20 do list[i] = "number " .. (arg[1] and 21 - i or i) end
local texts = ah.map(list, function(text)
  return assert(ah.run { model = "openai/test", text }).text
end, { concurrency = 10 })
print(#texts, texts[20])]])
    local file = temp()
    local start = 'OPENAI_API_KEY=k OPENAI_BASE_URL=%s "$A" %s %s %s %s </dev/null'
    local r = command.shell(start:format(s.url, "--record", file, path, ""))
    assert.equal("20\tfine\n", r.out, r.err)
    assert.equal(20, #s:requests())
    r = command.shell(start:format("http://127.0.0.1:1", "--replay", file, path, "backwards"))
    assert.equal(3, r.code) -- another address: no exchange fits
    r = command.shell(start:format(s.url, "--replay", file, path, "backwards"))
    assert.equal("20\tfine\n", r.out, r.err)
    assert.equal(20, #s:requests())
    assert.equal("", r.err)
  end)
end)

describe("a script that ends", function()
  it("with an error closes what its tasks hold, and does not wait for them", function()
    local r = script [[
ah.spawn(held("task", function() ah.sleep(60) end))
ah.yield()
error("top fails", 0)]]
    assert.equal(1, r.code)
    assert.equal("closed task\n", r.out)
    has(r.err, "top fails")
  end)

  it("waits for its tasks, and for those that they start", function()
    local r = script [[
ah.spawn(function()
  ah.sleep(0.01)
  ah.spawn(function()
    ah.sleep(0.01)
    print "last"
  end)
end)
print "first"]]
    assert.equal(0, r.code, r.err)
    assert.equal("first\nlast\n", r.out)
  end)

  it("by returning an agent waits for its tasks after the answer", function()
    patiently(function(times)
      local path = temp((HEAD .. [[
ah.spawn(function() ah.sleep(0.05 * TIMES) print "the script's" end)
return ah.agent { model = "demo/echo",
  setup = function() ah.spawn(function() ah.sleep(0.01) print "setup's" end) end }]])
        :gsub("TIMES", times))
      local r = command.agenthost(path, "hello")
      assert.equal(0, r.code, r.err)
      assert.equal("setup's\nhello\nthe script's\n", r.out)
    end)
  end)

  it("by os.exit in a task ends with that code", function()
    for _, how in ipairs { "7", "7, true", "7, false" } do
      local r = script(([[
ah.spawn(function() ah.sleep(60) end)
ah.spawn(function() os.exit(%s) end)
ah.sleep(60)]]):format(how))
      assert.equal(7, r.code, how .. r.err)
    end
  end)

  it("has the exit code of what a task has raised", function()
    for code, text in pairs {
      [1] = "error 'plain'",
      [4] = "error(ah.error { code = 'deadline_exceeded', message = 'late' })",
      [3] = "assert(ah.run { model = 'openai/x', api_key = 'k', retries = 0, "
        .. "base_url = 'http://127.0.0.1:1', 'hi' })",
    } do
      local r = script("ah.spawn(function() " .. text .. " end)")
      assert.equal(code, r.code, r.err)
    end
  end)

  it("shows where a task that nothing awaits was when it failed", function()
    local result = script [[
local function deep() error "oops" end
ah.spawn(function() deep() end)]]
    assert.equal(1, result.code)
    assert.matches("^agenthost: [^\n]*:%d+: oops\nstack traceback:\n.*in upvalue 'deep'",
      result.err)
    assert.equal(1, select(2, result.err:gsub("stack traceback", "")))
  end)

  it("may be all tasks: agents with --jsonl have whole lines, one after the other", function()
    local path = temp(HEAD .. [[
ah.map({ 1, 2, 3, 4, 5, 6, 7, 8 }, function(i)
  return assert(ah.run { model = "demo/echo", stream = true, "number " .. i })
end)]])
    local r = command.agenthost("--jsonl", path)
    assert.equal(0, r.code, r.err)
    local started = 0
    for line in r.out:gmatch "[^\n]+" do
      assert.matches("^{.*}$", line)
      started = started + (line:find('"type":"start"', 1, true) and 1 or 0)
    end
    assert.equal(8, started)
  end)
end)

describe("the stock interpreter", function()
  it("gives tasks all they have in the command", function()
    local path = temp(HEAD .. [[
local channel, out = ah.channel(2), {}
ah.scope(function(s)
  s:spawn(function() for i = 1, 5 do channel:send(i) end channel:close() end)
  for v in channel do out[#out + 1] = v end
end)
print(table.concat(out, " "))
print(table.concat(ah.map({ 1, 2, 3 }, function(i)
  return assert(ah.run { model = "demo/echo", "n" .. i }).text
end), " "))
print(select(2, ah.with_timeout(0.01, ah.sleep, 60)).code)
local function slow() ah.sleep(0.01) return "in a coroutine" end
print(coroutine.wrap(function() return ah.all { slow }[1] end)())
local task = ah.spawn(function() error("late", 0) end)
print(pcall(task.await, task))]])
    local r = command.shell(STOCK .. " " .. path)
    assert.equal("1 2 3 4 5\nn1 n2 n3\ndeadline_exceeded\nin a coroutine\nfalse\tlate\n", r.out)
    assert.equal(0, r.code)
  end)

  it("does not wait for tasks, nor close what they hold, and tells so", function()
    local path = temp(HEAD .. [[
warn "@on"
ah.spawn(held("task", function() ah.sleep(60) end))
ah.yield()
print "last line"]])
    local r = command.shell(STOCK .. " " .. path)
    assert.equal("last line\n", r.out)
    has(r.err, ":10 was at work when the program ended, and was stopped: await it")
    assert.equal(0, r.code)
  end)

  it("runs tasks from another coroutine than the main one, and from a required file", function()
    local path = temp(HEAD .. [[
package.preload.other = function()
  return ah.spawn(function() ah.sleep(0.01) return "loaded" end):await()
end
local co = coroutine.create(function()
  local task = ah.spawn(function() ah.sleep(0.01) return "from a coroutine" end)
  coroutine.yield(task)
  return task:await()
end)
local _, task = coroutine.resume(co)
print(task:await(), select(2, coroutine.resume(co)), (require "other"))]])
    local r = command.shell(STOCK .. " " .. path)
    assert.equal("from a coroutine\tfrom a coroutine\tloaded\n", r.out, r.err)
  end)
end)
