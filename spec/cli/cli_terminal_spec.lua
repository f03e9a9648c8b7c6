-- The command on a terminal: colours, the progress line, the closing lines, Ctrl-C once and twice,
-- and a terminal that is resized, narrow or dumb.
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"
local screen = require "support.screen"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not

local CLOSING = "turns   %d in 1 run, %d+%.%d s\ntools   %d calls?, %d failed\ntokens  [^\n]+$"

local it_if, start, read, finish, script =
  typing.it(it, pending), typing.command, typing.read, typing.finish, typing.script

local ECHO = 'print(require("agenthost").run { model = "demo/echo", "Hello" })'

local BRIEF = [=[
  local ah = require "agenthost"
  print(ah.run { model = ah.scripted { { text = "Fine.", delay = 0.6 } }, "Go" })]=]

-- Waits for the model, then in a tool, and leaves a line unfinished meanwhile.
local SLOW = [[
  local ah = require "agenthost"
  local slow = ah.tool { name = "slow", description = "Waits.", handler = function()
    io.write("half a ")
    ah.sleep(0.9)
    print("line")
    return "x"
  end }
  print(ah.run { model = ah.scripted { { calls = { { name = "slow" } },
    usage = { input = 1000, output = 234, cost = 0.00125 }, delay = 0.9 },
    "Fine." }, tools = { slow }, "Go" })]]

local WAIT = [[
  local ah = require "agenthost"
  print("ready")
  local reply, err = ah.run { model = ah.scripted { { text = "x", delay = 20 } }, "Go" }
  print(reply, err.code)]]

after_each(command.tidy)

describe("on a terminal", function()
  it_if("errors are red, and plain where colour is unwanted", function()
    local _, all = finish(start { "--nonsense" })
    has(all, "\27[31magenthost: \27[0m")
    for _, env in ipairs { { "TERM=xterm", "NO_COLOR=1" }, { "TERM=dumb" }, { "TERM=" }, {} } do
      _, all = finish(start({ "--nonsense" }, { env = env }))
      has_not(all, "\27")
    end
    _, all = finish(start { "--color=never", "--nonsense" })
    has_not(all, "\27")
  end)

  it_if("three lines close a script that asked a model", function()
    local code, _, shown = finish(script(ECHO))
    assert.equal(0, code)
    assert.truthy(shown:find("^Hello\n" .. CLOSING), shown)
    has(shown, "turns   1 in 1 run, 0.")
    has(shown, "tools   0 calls, 0 failed")
    has(shown, "(0 cached)")
  end)

  it_if("a fourth line has the head of what is kept", function()
    local store = command.folder() .. "/work.db"
    local code, _, shown = finish(start { "--store", store, "-e",
      'return ah.agent { id = "ann", model = "demo/echo" }', "Hello" })
    assert.equal(0, code)
    assert.truthy(shown:find "^Hello\nturns .*\ntokens  [^\n]+\nhead    8:%x+\n?$", shown)
  end)

  it_if("nothing closes one that asked none, nor with -q", function()
    assert.equal("1", select(3, finish(script("print(1)"))))
    assert.equal("Hello", select(3, finish(script(ECHO, nil, { "-q" }))))
  end)

  it_if("they follow the error of one that failed, and os.exit", function()
    local code, _, shown = finish(script(
      'assert(require("agenthost").run { model = require("agenthost").scripted {}, "x" })'))
    assert.equal(3, code)
    assert.truthy(shown:find("^agenthost: .-\n" .. CLOSING), shown)
    code, _, shown = finish(script(ECHO .. " os.exit(5)"))
    assert.equal(5, code)
    assert.truthy(shown:find("^Hello\n" .. CLOSING), shown)
  end)
end)

describe("the line of progress", function()
  it_if("says what is waited for, and leaves no trace", function()
    local t = script(SLOW, { env = { "TERM=xterm", "NO_COLOR=1" } })
    read(t, "1,234 tokens so far\0278")
    local during = screen.new(80):feed((t.all:match("^.*so far\0278"))):text()
    assert.truthy(during:find("^half a\nslow at work, %d s, 1,234 tokens so far$"), during)
    assert.truthy(t.all:find("waiting for scripted/script, %d s\0278"))
    has_not(t.all, " 0 tokens")
    local code, all, shown = finish(t)
    assert.equal(0, code)
    has_not(all, "\27[2m")
    assert.truthy(shown:find("^half a line\nFine%.\n" .. CLOSING), shown)
    has(shown, "tokens  1,000 in (0 cached), 234 out, $0.0013")
  end)

  it_if("says that a cost is unknown where answers may be billed", function()
    local t = script [[
      local ah = require "agenthost"
      local own = ah.adapter { name = "acme/x", answer = function(_, out)
        out:usage { input = 7, output = 2 }
        return "Hello"
      end }
      print(ah.run { model = own, "Go" })]]
    local _, _, shown = finish(t)
    has(shown, "tokens  7 in (0 cached), 2 out, cost unknown")
  end)

  it_if("has what a handler says of how far it is", function()
    local t = script [[
      local ah = require "agenthost"
      local index = ah.tool { name = "index", description = "Indexes.", handler = function(_, ctx)
        ctx:progress(0.3, "file 3 of 10")
        ah.sleep(0.9)
        ctx:progress("file 9 of 10")
        ah.sleep(0.9)
        ctx:progress(1)
        ah.sleep(0.9)
        return "x"
      end }
      print(ah.run { model = "demo/tools", tools = { index }, "Go" })]]
    read(t, "index: file 3 of 10, 30 %, ")
    read(t, "index: file 9 of 10, ")
    read(t, "index: 100 %, ")
    assert.equal(0, (finish(t)))
  end)

  it_if("says why a request waits in its lane", function()
    local t = script [[
      local ah = require "agenthost"
      local busy = { fail = { message = "busy", status = 429, retryable = true, retry_after = 30 } }
      local model = ah.scripted { busy, "Fine." }
      print(ah.run { model = model, retries = 0, "x" })
      ah.run { model = model, "x" }]]
    read(t, "waiting for scripted/script: it has refused requests, ")
    t.pty:write("\3")
    assert.equal(130, (finish(t)))
  end)

  it_if("has the state of ah.map at once, and how far it was when it was interrupted", function()
    local t = script([[
      local ah = require "agenthost"
      local list = {}
      for i = 1, 2000 do list[i] = i end
      ah.map(list, function(i)
        if i > 1200 then ah.sleep(60) end
        if i == 7 then return nil, "bad" end
        return assert(ah.run { "x", model = ah.scripted {
          { text = "x", usage = { input = 10, output = 5, cost = 0.01 } } } }).text
      end, { progress = true, on_error = "collect", concurrency = 3 })]],
      { env = { "TERM=xterm", "NO_COLOR=1" }, columns = 100 })
    read(t, "ah.map: 1,200 of 2,000 done, 1 failed, 3 running, 17,985 tokens, $11.99, ")
    t.pty:write("\3")
    local code, _, shown = finish(t)
    assert.equal(130, code)
    has(shown, "agenthost: interrupted: 1200 of 2000 calls were done\n")
    has(shown, "\nmap     1,200 of 2,000 done, 1 failed")
    has_not(shown, "running")
  end)

  it_if("stays below what is written at the foot of the screen", function()
    local t = script("print(('\\n'):rep(40))" .. SLOW)
    local _, _, shown = finish(t)
    assert.truthy(shown:find("\nhalf a line\nFine%.\n" .. CLOSING), shown)
    has_not(shown, "waiting for")
    has_not(shown, "at work")
  end)

  it_if("fits the width, also after a resize", function()
    local t = script(WAIT, { env = { "TERM=xterm", "NO_COLOR=1" }, columns = 30 })
    read(t, "waiting for scripted/script, \0278")
    t.pty:resize(24)
    read(t, "waiting for scripted/sc\0278")
    t.pty:resize(12)
    read(t, "/sc\0278\0277\27D\r\27[J\0278")
    t.pty:write("\3")
    assert.equal(130, (finish(t)))
  end)

  it_if("is not shown where nobody could read it", function()
    for _, env in ipairs { { "TERM=dumb" }, { "TERM=xterm", "CI=true" } } do
      local _, all = finish(script(BRIEF, { env = env }))
      has_not(all, "waiting for")
      has_not(all, "\27[J")
    end
    local _, all = finish(script(BRIEF, nil, { "-q" }))
    assert.equal("Fine.\r\n", all)
  end)

  it("is never in a pipe", function()
    assert.same({ code = 0, out = "Fine.\n", err = "" }, command.script(BRIEF))
  end)
end)

describe("Ctrl-C", function()
  it_if("once settles the run: the script gets the error, and 130 is left", function()
    local t = read(script(WAIT), "waiting for")
    t.pty:write("\3")
    local code, _, shown = finish(t)
    assert.equal(130, code)
    has(shown, "nil\tcancelled")
    has_not(shown, "waiting for")
  end)

  local ERASED = "\0277\27D\r\27[J\0278"

  -- Waits for a condition, at most 60 s.
  local function wait_until(holds)
    for _ = 1, 1200 do
      if holds() then
        return
      end
      ah.sleep(0.05)
    end
    error "waited too long"
  end

  local function of_process(pid, file, pattern)
    return command.contents("/proc/" .. pid .. "/" .. file):match(pattern)
  end

  -- Returns the processor time of a process in hundredths of a second.
  local function cpu(pid)
    return tonumber((of_process(pid, "stat", "%) %S" .. (" %S+"):rep(10) .. " (%d+)")))
  end

  it_if("twice ends at once what the first could not, and takes the line away", function()
    local path, pid = command.temp "", nil
    local t = read(script(([[
      local ah = require "agenthost"
      local hold = ah.tool { name = "hold", description = "Holds on.", handler = function()
        ah.sleep(0.9)
        io.open(%q, "w"):write(io.open "/proc/self/stat":read "n"):close()
        string.find(("a"):rep(500), (".-"):rep(6) .. "b")
      end }
      print(ah.run { model = "demo/tools", tools = { hold }, "Go" })]]):format(path)),
      "hold at work")
    wait_until(function()
      pid = command.contents(path):match "^%d+$"
      return pid
    end)
    local before = cpu(pid)
    wait_until(function() return cpu(pid) > before + 20 end) -- only the search takes that much
    t.pty:write("\3")
    read(t, "^C")
    -- the signal has arrived
    wait_until(function() return of_process(pid, "status", "ShdPnd:%s*0+\n") end)
    t.all = ""
    t.pty:write("\3")
    local code, all = finish(t)
    assert.equal(130, code)
    has(all, ERASED) -- once more, as a terminal drops unread output at a Ctrl-C
  end)

  it_if("ends a loop of runs: none after the first asks the model", function()
    patiently(function() -- the script has 0.2 s after the signal
      local t = read(script([[
        local ah = require "agenthost"
        local asked = 0
        local model = ah.scripted(function()
          asked = asked + 1
          return { text = "x", delay = 60 }
        end)
        for i = 1, 5 do
          print(i, select(2, ah.run { model = model, "Item " .. i }).code)
        end
        print("asked", asked)]]), "waiting for")
      t.pty:write("\3")
      local code, _, shown = finish(t)
      assert.equal(130, code)
      for i = 1, 5 do
        has(shown, i .. "\tcancelled")
      end
      has(shown, "asked\t1")
    end)
  end)

  -- Starts a chat that answers each line slowly; `first` is the script's first line.
  local function chat(first)
    local t = script(first .. [[
      local ah = require "agenthost"
      io.stdout:setvbuf "no"
      local hold = ah.tool { name = "hold", description = "Holds on.", handler = function()
        print "begun"
        while true do pcall(ah.sleep, 60) end
      end }
      local function answer(request)
        if request.entries[#request.entries].content == "hold" then
          return { calls = { { name = "hold" } } }
        end
        print "begun"
        ah.sleep(60)
      end
      for line in function() io.write "> " return io.read "l" end do
        local reply, err = ah.run { tools = { hold }, line, model = ah.scripted(answer) }
        print(reply or err.code)
      end
      print "end of the chat"]], nil, { "-q" })
    return read(t, "> ")
  end

  -- Sends a line, lets the answer begin, presses Ctrl-C.
  local function ask_and_press(t, line)
    t.all = ""
    t.pty:write(line .. "\n")
    read(t, "begun")
    t.pty:write("\3")
  end

  local CHAT = 'require("agenthost").interactive()\n'

  it_if("in a chat cancels the answer each time; a chat that then ends well gives 0", function()
    local t = chat(CHAT)
    for _ = 1, 3 do
      ask_and_press(t, "hello")
      read(t, "cancelled\r\n> ")
    end
    t.pty:write("\4")
    local code, all = finish(t)
    assert.equal(0, code)
    has(all, "end of the chat")
  end)

  it_if("in a chat ends it where nothing is waited for", function()
    local t = chat(CHAT)
    ask_and_press(t, "hello")
    t.all = ""
    read(t, "> ")
    t.pty:write("\3")
    assert.equal(130, (finish(t)))
  end)

  it_if("in a chat ends the process where the first is still being settled", function()
    local t = chat(CHAT)
    ask_and_press(t, "hold")
    ah.sleep(0.3)
    t.pty:write("\3")
    local code, all = finish(t)
    assert.equal(130, code)
    has_not(all, "end of the chat")
  end)

  it_if("ends what reads lines and did not say that it is a chat", function()
    local t = chat ""
    ask_and_press(t, "hello")
    assert.equal(130, (finish(t)))
  end)

  it_if("ends a script that only computes, with one line", function()
    local t = read(script('print("ready") while true do end'), "ready")
    t.pty:write("\3")
    local code, _, shown = finish(t)
    assert.equal(130, code)
    has(shown, "agenthost: interrupted")
  end)
end)
