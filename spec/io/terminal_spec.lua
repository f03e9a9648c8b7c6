-- ah.terminal on a real terminal: keys and other events, output, and that the terminal's state is
-- restored however a script ends or stops.
local ah = require "agenthost"
local command = require "support.command"
local markdown = require "support.markdown"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, read, finish = typing.it(it, pending), typing.read, typing.finish

-- The beginning of each script: shows the result of t:key() as one line.
local OPEN = [[
  local ah = require "agenthost"
  local function shown(event, err)
    if not event then return err and "error " .. err.code or "end" end
    if event.paste then return ("paste <%s>%s"):format(event.paste, event.truncated
      and " truncated" or "") end
    if event.resize then return ("resize %d %d"):format(event.resize.columns, event.resize.rows) end
    return (event.ctrl and "ctrl+" or "") .. (event.alt and "alt+" or "") .. (event.shift
      and "shift+" or "")
      .. event.key .. (event.text and " <" .. event.text .. ">" or "")
  end
]]

-- Returns a script that prints each event until q is typed; its options come first.
local function telling(options)
  return OPEN .. ("local t <close> = assert(ah.terminal(%s))\n"):format(options or "") .. [[
    print "ready"
    repeat
      local line = shown(t:key())
      print("<" .. line .. ">")
    until line == "q <q>" or line == "end"
  ]]
end

local function script(text, options)
  return typing.script(text, options, { "-q" })
end

-- Types, and reads until the events are printed.
local function typed(t, bytes, ...)
  t.all = ""
  t.pty:write(bytes)
  for _, event in ipairs { ... } do
    read(t, "<" .. event .. ">\r\n")
  end
end

local function quit(t)
  t.pty:write "q"
  local code, all = finish(t)
  assert.equal(0, code, all)
end

after_each(command.tidy)

describe("terminal:key", function()
  it_if("gives keys as they are typed", function()
    local t = read(script(telling()), "ready")
    typed(t, "a", "a <a>")
    typed(t, "\27[A", "up")
    typed(t, "\r", "enter")
    typed(t, "\1", "ctrl+a")
    typed(t, "\4", "ctrl+d")
    typed(t, "é世", "é <é>", "世 <世>")
    has_not(t.all, "é世")
    quit(t)
  end)

  it_if("waits for the rest of a key that is cut at any byte", function()
    local t = read(script(telling "{ escape = 10 }"), "ready")
    for bytes, event in pairs { ["\27[1;5C"] = "ctrl+right", ["\27OP"] = "f1", ["世"] = "世 <世>",
      ["\27[200~a\nb\27[201~"] = "paste <a\r\nb>", ["\27x"] = "alt+x" } do
      for cut = 1, #bytes - 1 do
        t.pty:write(bytes:sub(1, cut))
        ah.sleep(0.02)
        typed(t, bytes:sub(cut + 1), event)
      end
    end
    quit(t)
  end)

  it_if("tells Escape alone when nothing has followed it", function()
    local t = read(script(telling()), "ready")
    typed(t, "\27", "escape")
    typed(t, "\27[", "alt+[")
    quit(t)
  end)

  it_if("tells it as well to a script that only looks now and then", function()
    local t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      print "ready"
      local event
      repeat
        ah.sleep(0.01)
        event = t:key(0)
      until event
      print("<" .. shown(event) .. ">")]]), "ready")
    typed(t, "\27", "escape")
    assert.equal(0, (finish(t)))
  end)

  it_if("gives a paste as one event, harmless and bounded", function()
    local t = read(script(telling "{ max_paste = 100000, signals = false }"), "ready")
    typed(t, "\27[200~rm -rf /\r\27[31mx\3\27[201~", "paste <rm -rf /\r\nx>")
    t.all = ""
    t.pty:write "\27[200~"
    for _ = 1, 300 do
      t.pty:write(("b"):rep(1000))
    end
    typed(t, "\27[201~y", "y <y>")
    quit(t)
  end)

  it_if("gives one event for resizes that come together, with the last size", function()
    local t = read(script(telling()), "ready")
    t.all = ""
    t.pty:resize(50, 10)
    read(t, "<resize 50 10>")
    for columns = 20, 200 do
      t.pty:resize(columns, 30)
    end
    read(t, "<resize 200 30>")
    quit(t)
  end)

  it_if("is an error after the time that it was given, and goes on after that", function()
    local t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      print(shown(t:key(0)), shown(t:key(0.05)), "ready")
      print(shown(t:key(20)))]]), "ready")
    has(t.all, "error deadline_exceeded\terror deadline_exceeded\tready")
    t.pty:write "x"
    local _, all = finish(t)
    has(all, "x <x>")
  end)

  it_if("is nil at the end of the input, again and again", function()
    local path = command.temp ""
    local t = read(typing.start({ "/bin/sh", "-c",
      ("trap '' HUP; exec %s -q %s"):format(command.BINARY,
      command.temp(OPEN .. ([[
      local t = assert(ah.terminal())
      print "ready"
      local first = shown(t:key())
      local out = io.open(%q, "w")
      out:write(first, " ", shown(t:key()))
      out:close()]]):format(path))) }), "ready")
    t.pty:hang_up()
    assert.truthy(t.pty:wait(10))
    assert.equal("end end", command.contents(path))
  end)

  it_if("lets others work while it waits, in a task and on the main thread", function()
    local t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      local function tool(name, f)
        return ah.tool { name = name, description = "Waits.", parallel = true, handler = f }
      end
      local ticks = tool("ticks", function()
        for i = 1, 5 do ah.sleep(0.01) t:print_above("tick " .. i) end
      end)
      local ask = tool("ask", function() return shown(t:key()) end)
      local model = ah.scripted { { calls = { { name = "ask" }, { name = "ticks" } } }, "done" }
      print(ah.run { model = model, tools = { ticks, ask }, "Go" })
      local agent = ah.agent { model = ah.scripted { { text = "streamed", delay = 0.05 } },
        on = { done = function() t:print_above "agent done" end } }
      print(shown(t:key()))]]), "tick 5")
    t.pty:write "k"
    read(t, "done")
    t.pty:write "m"
    local code, all = finish(t)
    assert.equal(0, code)
    has(all, "m <m>")
  end)

  it_if("raises where nobody can wait, or somebody does already, and ends with its run", function()
    local t = script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      local function tool(name)
        return ah.tool { name = name, description = "Waits.", parallel = true, timeout = 0.3,
          handler = function() return shown(t:key()) end }
      end
      local model = ah.scripted { { calls = { { name = "one" }, { name = "two" } } }, "done" }
      local reply = ah.run { model = model, tools = { tool "one", tool "two" }, "Go",
        on = { tool_invoked = function(e) print(e.name, e.success, e.content) end,
          tool_calls = function() print(pcall(t.key, t)) end } }
      print(reply)
      t:close()
      print(pcall(t.key, t))
      print(pcall(t.live, t, {}))
      print(pcall(function() return t.kee end))]])
    local code, all = finish(t)
    assert.equal(0, code)
    has(all, "an observer cannot wait")
    has(all, "another task waits for a key already")
    has(all, "0.3 s")
    has(all, "done")
    has(all, "the terminal is closed")
    has(all, "did you mean 'key'?")
  end)

  it_if("ends with the script at Ctrl-C, and raises in a chat", function()
    local t = read(script(OPEN .. [[
      ah.interactive()
      local t <close> = assert(ah.terminal())
      print "ready"
      print("raised", select(2, pcall(t.key, t)).code)
      print(shown(t:key()))]]), "ready")
    ah.sleep(0.5) -- so that the script waits for the key
    t.pty:write "\3"
    read(t, "raised\tcancelled")
    t.pty:write "x"
    local code, all = finish(t)
    assert.equal(0, code)
    has(all, "x <x>")
    t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      print "ready"
      t:key()
      print "went on"]]), "ready")
    t.pty:write "\3"
    code, all = finish(t)
    assert.equal(130, code)
    has_not(all, "went on")
  end)

  it_if("is nil for a task that waits when the terminal is closed", function()
    local code, all = finish(script(OPEN .. [[
      local t = assert(ah.terminal())
      local function tool(name, f)
        return ah.tool { name = name, description = "Waits.", parallel = true, handler = f }
      end
      local wait = tool("wait", function() return shown(t:key()) end)
      local shut = tool("shut", function() ah.sleep(0.05) t:close() end)
      local model = ah.scripted { { calls = { { name = "wait" }, { name = "shut" } } }, "done" }
      print(ah.run { model = model, tools = { wait, shut }, "Go",
        on = { tool_invoked = function(e) print(e.name, e.content) end } })]]))
    assert.equal(0, code)
    has(all, "wait\tend")
  end)
end)

describe("ah.terminal", function()
  it_if("is open once, and again after it was closed", function()
    local _, all = finish(script(OPEN .. [[
      local t = assert(ah.terminal())
      print(select(2, ah.terminal()))
      t:close()
      t:close()
      assert(ah.terminal { signals = false, escape = 0.1, max_paste = 10 }):close()
      print(pcall(ah.terminal, { excape = 1 }))
      print(pcall(ah.terminal, { escape = 100 }))
      print(pcall(ah.terminal, { distinct = true }))
      print(tostring(getmetatable(t)))
      print(t == nil, "fine")]]))
    has(all, "the terminal is open already")
    has(all, "did you mean 'escape'?")
    has(all, "field 'escape' must be a number from 0.001 to 10, found 100")
    has(all, "add `signals = false`")
    has(all, "agenthost.terminal")
    has(all, "fine")
  end)

  it("says in words why there is none", function()
    local t, err = ah.terminal()
    assert.is_nil(t)
    has(err.message, "only the command agenthost gives scripts its terminal")
    local path = command.temp "print(select(2, require('agenthost').terminal()).message)"
    local result = command.shell("setsid -w $A " .. path .. " </dev/null")
    has(result.out, "there is no terminal to open")
  end)
end)

-- Returns the screen after the script has written, and all of its output.
local function shows(text, options)
  local code, all, shown = finish(script(OPEN .. text, options))
  assert.equal(0, code, all)
  return shown, all
end

describe("terminal:write", function()
  it_if("shows texts of others and lets none of them be a command", function()
    local shown, all = shows [[
      local t <close> = assert(ah.terminal())
      t:write "\27[2J\27]52;c;aGk=\7plain \u{202e}\xff\n"
      t:print_above "second"
      t:write "third"
      t:print_above "fourth"]]
    assert.equal("\\x1b[2J\\x1b]52;c;aGk=\\x07plain \\u202e\u{fffd}\nsecond\nthird\nfourth", shown)
    has_not(all, "\27[2J")
    has_not(all, "\27]")
  end)

  it_if("has styles of the script, and none where they are unwelcome", function()
    local TEXT = [[
      local t <close> = assert(ah.terminal())
      t:write { "a", bold = true }
      t:write { { "b", color = "red" }, "c", background = "bright_blue", underline = true }
      t:write { 7, color = 200 }
      t:live { { "> ", { "x", reverse = true } } }]]
    local _, all = shows(TEXT)
    has(all, "\27[1ma\27[0m")
    has(all, "\27[4m\27[104m\27[31mb\27[0m\27[4m\27[104mc\27[0m")
    has(all, "\27[38;5;200m7\27[0m")
    has(all, "> \27[7mx\27[0m")
    _, all = shows(TEXT, { env = { "TERM=xterm", "NO_COLOR=1" } })
    has(all, "abc7")
    has_not(all, "\27[1m")
    has_not(all, "\27[7m")
  end)

  it_if("refuses what is no text and no style", function()
    local _, all = shows [[
      local t <close> = assert(ah.terminal())
      print(pcall(t.write, t, { "a", colour = "red" }))
      print(pcall(t.write, t, { "a", color = "redd" }))
      print(pcall(t.write, t, { "a", color = 256 }))
      print(pcall(t.write, t, { print }))
      print(pcall(t.write, t))
      print(pcall(t.live, t, { "a" }, { line = 2 }))
      local deep = "x"
      for _ = 1, 20 do deep = { deep } end
      print(pcall(t.write, t, deep))
      print(pcall(t.write, t, ("x"):rep(2 << 20)))
      t:print_above "fine"]]
    has(all, "did you mean 'color'?")
    has(all, "must be black, red")
    has(all, "found a function")
    has(all, "line 2 of 1")
    has(all, "more than 8 lists")
    has(all, "too large")
    has(all, "fine")
  end)

  it_if("writes no sequence at all to a terminal that obeys none", function()
    local _, all = shows([[
      local t <close> = assert(ah.terminal())
      print(t:live { "x" })
      t:write { "plain\n", bold = true }
      t:print_above "above"]], { env = { "TERM=dumb" } })
    assert.equal("false\r\nplain\r\nabove\r\n", all)
  end)
end)

describe("terminal:clear", function()
  local CLEARS = [[
    local t <close> = assert(ah.terminal())
    t:live({ "> " }, { line = 1 })
    t:write "gone\nunfinished"
    t:clear()
    t:print_above "first"
    t:write "last"]]

  it_if("leaves an empty screen, and writes from its top", function()
    local shown, all = shows(CLEARS)
    assert.equal("first\nlast", shown)
    has(all, "\27[H\27[2J")
    shown, all = shows(CLEARS, { env = { "TERM=dumb" } })
    assert.equal("gone\nunfinished\nfirst\nlast", shown)
    has_not(all, "\27")
  end)
end)

describe("terminal:bell", function()
  local RINGS = OPEN .. [[
    local t <close> = assert(ah.terminal())
    t:live { "> " }
    t:bell()
    t:print_above "above"]]

  it_if("rings once, and changes nothing on the screen", function()
    local code, _, shown, t
    t = script(RINGS, { bells = true })
    code, _, shown = finish(t)
    assert.same({ 0, "above", 1 }, { code, shown, t.screen.bells })
    assert.equal("above\r\n", select(2, shows(RINGS, { env = { "TERM=dumb" } })))
  end)
end)

describe("docs/reference/terminal.md", function()
  it_if("has a line that can be written, and pasted into", function()
    local block
    for _, b in ipairs(markdown.blocks "docs/reference/terminal.md") do
      block = b.name == "line.lua" and b or block
    end
    local t = script(block.text)
    read(t, "\27[?2004h")
    t.pty:write "hellö"
    t.pty:write "\127o\27[200~ you\nthere\27[201~\r"
    read(t, "You wrote: hello you there")
    t.pty:write "\27"
    local code, _, shown = finish(t)
    assert.equal(0, code)
    assert.equal("You wrote: hello you there", shown)
  end)
end)

describe("terminal:live", function()
  it_if("stays below what is written, and messages of the command come above it", function()
    local t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      t:print_above "first"
      assert(t:live({ { "> ", bold = true }, "status" }, { line = 1 }))
      ah.log("error", "something is wrong")
      ah.sleep(0.05)
      t:print_above "second"
      t:key()
      t:live {}]]), "second")
    ah.sleep(0.1)
    t.all = t.all .. (t.pty:read(0.2) or "")
    local shown = t.screen:feed(t.all):text()
    assert.equal("first\nagenthost: error: something is wrong\nsecond\n>\nstatus", shown)
    t.all = ""
    t.pty:write "q"
    local code, _, after = finish(t)
    assert.equal(0, code)
    has_not(after, "status")
  end)

  it_if("comes again after a resize", function()
    local t = read(script(OPEN .. [[
      local t <close> = assert(ah.terminal())
      local line = ("0123456789"):rep(3)
      t:live({ line }, { line = 1 })
      repeat local event = t:key() until event.key == "q"
      ]], { columns = 40 }), "0123456789")
    ah.sleep(0.1)
    t.all = t.all .. (t.pty:read(0.1) or "")
    t.screen:feed(t.all)
    t.all = ""
    t.screen:resize(12, true)
    t.pty:resize(12, 24)
    read(t, "0123456789")
    ah.sleep(0.1)
    t.all = t.all .. (t.pty:read(0.1) or "")
    assert.equal("012345678901\n234567890123\n456789", t.screen:feed(t.all):text())
    t.all = ""
    quit(t)
  end)
end)

-- -- the terminal's state -----------------------------------------------------------------------

-- Returns both outputs of stty.
local function states(all)
  local found = {}
  for state in all:gmatch "BEGIN\r\n(.-)END" do
    found[#found + 1] = state
  end
  return found
end

local STTY = "echo BEGIN; stty -a; echo END\n"

-- Runs a script between two outputs of stty; a Ctrl-C does not end the shell.
local function under_shell(text, before, behind)
  return read(typing.start { "/bin/sh", "-c",
    ("trap : INT QUIT; ulimit -c 0; %s %s %s -q %s\n%s\necho; %s"):format(
    before or "", STTY .. [[sh -c 'echo "pid $$;"; exec "$@"' sh]], command.BINARY,
      command.temp(text),
    behind or "", STTY) }, "ready")
end

-- Types a key, or sends a signal by its name.
local function press(t, key)
  if #key == 1 then
    t.pty:write(key)
  else
    assert(os.execute(("kill -%s %s"):format(key, t.all:match "pid (%d+);")))
  end
end

-- Waits until the script has no pending signal.
local function heard(t)
  local path, until_ = ("/proc/%s/status"):format(t.all:match "pid (%d+);"),
    os.time() + typing.SECONDS
  repeat
    ah.sleep(0.05)
    local pending = command.contents(path):match "ShdPnd:%s*(%x+)"
  until tonumber(pending, 16) == 0 or os.time() > until_
end

describe("the terminal's state", function()
  local HOLD = OPEN .. [[
    local t = assert(ah.terminal())
    t:live({ "live area" }, { line = 1 })
    t:print_above "ready"
  ]]

  local ENDS = {
    ["its end"] = { HOLD },
    ["an error"] = { HOLD .. "error 'oops'" },
    ["os.exit"] = { HOLD .. "os.exit(3)" },
    ["os.exit that closes the state"] = { HOLD .. "os.exit(3, true)" },
    ["q"] = { HOLD .. "t:key()", "q" },
    ["Ctrl-C"] = { HOLD .. "t:key()", "\3" },
    ["Ctrl-C in a loop"] = { HOLD .. "while true do end", "\3" },
    ["SIGINT twice"] = { HOLD .. 'string.find(("a"):rep(500), (".-"):rep(6) .. "b")', "INT",
    "INT" },
    ["Ctrl-\\"] = { HOLD .. "t:key()", "\28" },
    ["SIGTERM"] = { HOLD .. "t:key()", "TERM" },
    ["SIGHUP"] = { HOLD .. "t:key()", "HUP" },
    ["SIGQUIT"] = { HOLD .. "t:key()", "QUIT" },
    ["SIGABRT"] = { HOLD .. "t:key()", "ABRT" },
    ["SIGINT"] = { HOLD .. "t:key()", "INT" },
  }

  for name, case in pairs(ENDS) do
    it_if("is after " .. name .. " as it was before", function()
      local t = under_shell(case[1])
      for i = 2, #case do
        ah.sleep(0.2)
        press(t, case[i])
        if i < #case then
          heard(t)
        end
      end
      local _, all = finish(t)
      local found = states(all)
      assert.equal(2, #found, all)
      assert.equal(found[1], found[2])
      local shown = t.screen
      assert.is_false(shown.modes.paste)
      assert.is_true(shown.cursor)
      has_not(shown:text(), "live area")
    end)
  end

  it_if("is set again where somebody else has changed it behind a SIGSTOP", function()
    local t = under_shell(HOLD .. [[
      repeat
        local event = t:key()
        t:print_above("<" .. shown(event) .. ">")
      until event.key == "q"]], "set -m;", "stty sane; " .. STTY .. "fg\n")
    press(t, "STOP")
    read(t, "END")
    t.all = t.all:gsub("^.-pid", "pid")
    ah.sleep(0.3)
    typed(t, "b", "b <b>")
    t.pty:write "q"
    has(select(2, finish(t)), "<q <q>>")
  end)

  it_if("is given back by a key of the script's own that suspends it", function()
    local t = under_shell(OPEN .. [[
      local t <close> = assert(ah.terminal { signals = false, distinct = true })
      t:live({ "live area" }, { line = 1 })
      t:print_above "ready"
      repeat
        local event = t:key()
        t:print_above("<" .. shown(event) .. ">")
        if event.ctrl and event.key == "z" then t:suspend() t:print_above "again" end
      until event.key == "q"]], "set -m;", STTY .. "fg\n")
    has(t.all, "\27[>1u")
    typed(t, "\3", "ctrl+c")
    t.pty:write "\26"
    read(t, "END")
    has(t.all, "\27[<u")
    read(t, "again")
    typed(t, "\27[13;2u", "shift+enter")
    t.pty:write "q"
    local _, all = finish(t)
    has(all, "<q <q>>")
    has(all, "\27[<u")
  end)

  it_if("is the shell's while the script is stopped, and the script's again behind that", function()
    for _, stop in ipairs { "\26", "TSTP" } do
      local t = under_shell(HOLD .. [[
        repeat
          local event = t:key()
          t:print_above("<" .. shown(event) .. ">")
        until event.key == "q"]], "set -m;", STTY .. "fg\n")
      press(t, stop)
      read(t, "END")
      t.all = t.all:gsub("^.-pid", "pid") -- the second output of stty comes after this
      ah.sleep(0.3)
      typed(t, "\27[A", "up")
      typed(t, "b", "b <b>")
      t.pty:write "q"
      local _, all = finish(t)
      has(all, "<q <q>>")
    end
  end)
end)
