-- The line editor of the command's programs (lua/agenthost/command/editor.lua) in a terminal, in a
-- dumb one and in pipes, and its history (line_history.lua).
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, read, finish = typing.it(it, pending), typing.read, typing.finish
local quit = typing.quit

-- The beginning of each script: `use` as the programs have it, and the loop of a chat.
local OPEN = [[
  local ah = require "agenthost"
  local loaded = {}
  local function use(name)
    loaded[name] = loaded[name]
      or assert(loadfile("lua/agenthost/command/" .. name .. ".lua"))(ah, use)
    return loaded[name]
  end
  local open = use "editor".open
  local function told(line, why, text)
    return line and ("<%s>"):format(line)
      or ("<%s: %s>"):format(type(why) == "table" and why.code or why, text)
  end
  local function chat(editor, asked)
    repeat
      local line, why, text = editor:read(asked)
      editor:print_line(told(line, why, text))
    until not line and why ~= "interrupt"
  end
]]

local LOOP = OPEN .. [[
  local editor <close> = open()
  editor:print_line "ready"
  chat(editor)
]]

local function script(text, options)
  return typing.script(text, options, { "-q" })
end

-- Shows on the screen what was read up to now.
local function show(t)
  t.screen:feed(t.all)
  t.all = ""
end

-- Types, and reads until the part is there.
local function typed(t, bytes, part)
  show(t)
  t.pty:write(bytes)
  return read(t, part)
end

-- Reads until the screen has this part, or is this text as a whole.
local function shows(t, part, whole)
  local until_ = os.time() + typing.SECONDS
  repeat
    show(t)
    local text = t.screen:text()
    if whole and text == part or not whole and text:find(part, 1, true) then
      return
    end
    t.all = assert(t.pty:read(1), "the program has ended")
  until os.time() > until_
  assert.equal(part, t.screen:text())
end

after_each(command.tidy)

describe("a line", function()
  it_if("is read, and stays above", function()
    local t = read(script(LOOP), "ready")
    typed(t, "hello\r", "<hello>")
    typed(t, "a世" .. "\27[D\127b\r", "<b世>")
    typed(t, "one\27\rtwo\\\rthree\r", "three>")
    assert.equal("ready\n> hello\n<hello>\n> b世\n<b世>\n> one\n  two\n  three\n<one\ntwo\nthree>\n"
      .. "<end: >", quit(t))
  end)

  it_if("is edited by keys whose bytes come apart, as over a slow connection", function()
    patiently(function()
      local t = read(script(LOOP), "ready")
      typed(t, "ac\27", "ac")
      os.execute "sleep 0.2"
      typed(t, "[Db\r", "<abc>")
      quit(t)
    end)
  end)

  it_if("is typed below text that is streamed, piece by piece", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      local stream <close> = ah.spawn(function()
        for i = 1, 40 do
          editor:print(("word%d "):format(i))
          ah.sleep(0.005)
        end
        editor:print "\n"
        editor:print_line "streamed"
      end)
      chat(editor)]], { columns = 60 }), "word2 ")
    t.pty:write "typed"
    read(t, "word20 ")
    t.pty:write " meanwhile"
    read(t, "streamed")
    typed(t, "\r", "<typed meanwhile>")
    local words = {}
    for i = 1, 40 do
      words[i] = "word" .. i
    end
    local shown = quit(t):gsub("%s", "")
    has(shown, table.concat(words) .. "streamed>typedmeanwhile<typedmeanwhile>")
  end)

  it_if("is one for a paste of many lines, or for a long one", function()
    local t = read(script(LOOP .. "print(#editor.history.lines[1])", { columns = 40 }), "ready")
    local lines = {}
    for i = 1, 200 do
      lines[i] = "line " .. i
    end
    typed(t, "\27[200~" .. table.concat(lines, "\r") .. "\27[201~", "line 200")
    typed(t, "\r", "line 200>")
    show(t)
    has(t.screen:all(), "  line 10\n[190 more lines]\n<line 1\n")
    t.pty:write "\4"
    local _, all = finish(t)
    has(all, ("%d\r\n"):format(#table.concat(lines, "\n")))
  end)

  it_if("is drawn anew in a terminal of another width", function()
    local t = read(script(LOOP, { columns = 40 }), "ready")
    t.pty:write "a line that is longer than twenty columns 世界"
    local WIDE = "ready\n> a line that is longer than twenty columns 世界"
    for _ = 1, 2 do
      t.screen:resize(60, true)
      t.pty:resize(60, 24)
      shows(t, WIDE, true)
      t.screen:resize(20, true)
      t.pty:resize(20, 24)
      shows(t, "ready\n> a line that is lon\nger than twenty colu\nmns 世界", true)
    end
    typed(t, "\r", "界>")
    quit(t)
  end)

  it_if("leaves an unfinished line above as it was, in any width", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      for i = 1, 30 do editor:print(("%d世 "):format(i)) end
      local line
      repeat
        line = editor:read { echo = false }
        editor:print(line or "")
      until not line
      editor:print_line "ended"
      editor:print "unfinished"]], { columns = 41 }), "30世")
    shows(t, "30世\n>")
    for _, columns in ipairs { 19, 70, 33 } do
      t.screen:resize(columns, true)
      t.pty:resize(columns, 24)
      t.pty:write((" w%d"):format(columns) .. "\r")
      shows(t, "w" .. columns .. "\n>")
    end
    local text = {}
    for i = 1, 30 do
      text[i] = i .. "世"
    end
    local shown = quit(t):gsub("[ \n]", "")
    assert.equal(table.concat(text) .. "w19w70w33endedunfinished", shown)
  end)

  it_if("can begin with a text, and remain unseen", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print_line "ready"
      local asked = { prompt = { "name: ", bold = true }, text = "old", at = 1, echo = false }
      chat(editor, asked)]]), "ready")
    typed(t, "very \r", "<very old>")
    typed(t, "\3", "<interrupt: old>")
    assert.equal("ready\n<very old>\n<interrupt: old>\n<end: >", select(3, (function()
      t.pty:write "\11\4"
      return finish(t)
    end)()))
  end)

  it_if("can be hidden, and is kept nowhere then", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      local line = editor:read { prompt = "key: ", hidden = true }
      editor:print_line("bytes: " .. #line .. ", history: " .. #editor.history.lines)]]), "key: ")
    t.pty:write "secret"
    typed(t, "x\27[D\127\r", "bytes: 6, history: 0")
    local code, all, shown = finish(t)
    assert.same({ 0, "key:\nbytes: 6, history: 0" }, { code, shown })
    has_not(all, "secr")
  end)

  it_if("is left by Ctrl-C and Ctrl-D, which have no effect on other code", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print_line "ready"
      local n = 0
      local ticks <close> = ah.every(0.01, function() n = n + 1 end)
      chat(editor)
      local before = n
      repeat ah.sleep(0.01) until n > before
      print "still ticking"]]), "ready")
    typed(t, "\3", "<interrupt: >")
    typed(t, "half\3", "<interrupt: half>")
    typed(t, "ab\1\4\r", "<b>")
    has(quit(t), "<end: >\nstill ticking")
  end)

  it_if("is kept if its task is cancelled", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print_line "ready"
      local task = ah.spawn(function() editor:read() end)
      repeat ah.sleep(0.01) until editor.edit and editor.edit.text == "half"
      task:cancel()
      editor:print_line("draft " .. editor.draft)
      print(pcall(function()
        local one <close> = ah.spawn(function() editor:read() end)
        ah.sleep(0)
        editor:read()
      end))
      editor:print_line(told(editor:read { prompt = "y/n ", text = "y" }))]]), "ready")
    typed(t, "half", "draft half")
    read(t, "another task reads a line already")
    typed(t, "es\r", "<yes>")
    local _, _, shown = finish(t)
    has(shown, "y/n yes\n<yes>")
  end)

  it_if("has what was typed before it was asked for", function()
    local path = command.temp(LOOP)
    local t = typing.start { "/bin/sh", "-c",
      ("echo shell; sleep 0.5; exec %s -q %s"):format(command.BINARY, path) }
    typed(read(t, "shell"), "early\rearlier", "<early>")
    typed(t, " late\rone\rtwo\rthree", "<two>")
    typed(t, "\r", "<three>")
    has(quit(t), "> earlier late\n<earlier late>")
  end)
end)

describe("the editor", function()
  it_if("obeys nothing in a text", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print "a\27[2J\27]0;x\7\0b"
      editor:status { "c\27[1A", { "d\u{202e}", bold = true } }
      editor:print_line { "e\27c", color = "red" }
      chat(editor, { prompt = "\27[5m> " })]]), "[5m> ")
    shows(t, "a\\x1b[2J\\x1b]0;x\\x07\\x00b\ne\\x1bc\nc\\x1b[1A\nd\\u202e\n\\x1b[5m>", true)
    has_not(quit(t), "\\u202e")
  end)

  it_if("takes texts of any size", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      local long = ("x"):rep(300000) .. ("世"):rep(100000) .. ("\x80"):rep(2000)
      editor:print(long)
      editor:print_line { "begin", { long, color = "red" }, bold = true, "end" }
      editor:print_line ""
      editor:print_line "ready"]]), "begin")
    local all = read(t).all
    assert.equal(0, t.pty:wait(5))
    assert.equal(600000, select(2, all:gsub("x", "")))
    assert.equal(200000, select(2, all:gsub("世", "")))
    has(all:gsub("\27%[%d*m", ""), "end\r\n\r\nready\r\n")
  end)

  it_if("completes, and lists", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print_line "ready"
      chat(editor, { complete = function(text, at)
        ah.sleep(0.01)
        if text:find "^/" then return { "/model ", "/mode\27" }, 1 end
        if text == "raise" then error "it failed" end
        if text == "none" then return end
        return { "read_file", "read_folder" }
      end })]]), "ready")
    typed(t, "/m\t\r", "</mode>")
    typed(t, "x re\tile\r", "<x read_file>")
    t.pty:write "\21re\t\t\t"
    shows(t, "\nread_file    read_folder\n> read_f")
    typed(t, "\21none\t\r", "<none>")
    t.pty:write "raise\t"
    local code, all, shown = finish(t)
    assert.equal(1, code)
    has(all, "it failed")
    assert.is_false(t.screen.modes.paste)
    has_not(shown, "> raise")
  end)

  it_if("clears the screen", function()
    local t = read(script(LOOP), "ready")
    t.pty:write "text\12more"
    shows(t, "> textmore", true)
    typed(t, "\r", "<textmore>")
    quit(t)
  end)

  it_if("gives the terminal away, and takes it again", function()
    local t = read(script(OPEN .. [[
      local editor <close> = open()
      editor:print_line "ready"
      editor:print_line(told(editor:read()))
      editor:pause()
      editor:print "between\27[2J\n"
      print(io.read())
      editor:resume()
      chat(editor)]]), "ready")
    typed(t, "first\r", "between\\x1b[2J")
    typed(t, "by the system\r", "by the system\r\nby the system")
    typed(t, "again\r", "<again>")
    quit(t)
  end)

  it_if("shows question marks where the locale is not UTF-8", function()
    local t = read(script(LOOP, { env = { "TERM=xterm", "LC_ALL=C", "LANG=de_DE.UTF-8" } }),
      "ready")
    t.pty:write "a世é\u{301}b\r"
    shows(t, "> a???b\n<a???b>")
    quit(t)
  end)
end)

describe("streamed text", function()
  local function use(name)
    return assert(loadfile("lua/agenthost/command/" .. name .. ".lua"))(ah, use)
  end

  it("is ready by lines, with its styles", function()
    local s = use "streamed".new(function(text) return text:upper() end)
    assert.same({}, s:add("ab", 100))
    assert.same({}, s:add("c", 100))
    assert.same({ { "ABC" } }, s:line())
    assert.same({ { { "ABCD\nE\n" } } }, s:add("d\ne\nf", 100))
    assert.same({ { "F" } }, s:line())
    assert.same({ { { "F" }, { "1\n", bold = true } }, { { "2\n", bold = true, color = "red" } } },
      s:add({ "", { "1\n", bold = true }, { { "2\n3", color = "red" }, bold = true } }, 100))
    assert.same({ { "3", bold = true, color = "red" } }, s:take())
    assert.is_nil(s:line())
  end)

  it("is ready in parts if a line is long", function()
    local s = use "streamed".new(function(text) return text end)
    assert.same({ { { "abcd" } } }, s:add("abcd", 3))
    assert.is_nil(s:line())
    local parts = s:add(("世"):rep(200000), 1000)
    assert.equal(3, #parts)
    assert.equal(("世"):rep(87381), parts[1][1][1])
  end)
end)

-- -- the terminal's state -------------------------------------------------------------------------

local STTY = "echo BEGIN; stty -a; echo END\n"

-- Runs a script between two outputs of stty.
local function under_shell(text, before, behind)
  return read(typing.start { "/bin/sh", "-c",
    ("trap : INT; %s %s sh -c 'echo \"pid $$;\"; exec \"$@\"' sh %s -q %s\n%s\n%s"):format(
    before or "", STTY, command.BINARY, command.temp(text), behind or "", STTY) }, "ready")
end

local function check_states(all)
  local found = {}
  for state in all:gmatch "BEGIN\r\n(.-)END" do
    found[#found + 1] = state
  end
  assert.equal(2, #found, all)
  assert.equal(found[1], found[2])
end

describe("the terminal", function()
  local READ = OPEN .. [[
    local editor <close> = open()
    editor:print_line "ready"
    editor:read()
  ]]

  for name, case in pairs {
    ["Ctrl-D"] = { READ, "\4" },
    ["an error"] = { READ .. "error 'x'", "\r" },
    ["an error in a task"] = { READ:gsub("editor:read%(%)", [[
      ah.all { function() editor:read() end, function() ah.sleep(0.1) error "x" end }]]) },
    ["SIGTERM"] = { READ, signal = "TERM" },
    ["SIGINT"] = { READ, signal = "INT" },
    ["SIGHUP"] = { READ, signal = "HUP" },
  } do
    it_if("is as before after " .. name, function()
      local t = under_shell(case[1])
      read(t, "> ")
      if case.signal then
        assert(os.execute(("kill -%s %s"):format(case.signal, t.all:match "pid (%d+);")))
      else
        t.pty:write(case[2] or "")
      end
      local _, all = finish(t)
      check_states(all)
      assert.is_false(t.screen.modes.paste)
      assert.is_false(t.screen.modes.keys)
      assert.is_true(t.screen.cursor)
    end)
  end

  it_if("is the shell's after Ctrl-Z, and the line is drawn again", function()
    local t = under_shell(LOOP, "set -m;", STTY .. "fg >/dev/null\n"
      .. "echo stopped; sleep 0.3; fg >/dev/null\n")
    local before = t.all
    t.all = ""
    t.pty:write "half\26"
    check_states(before .. read(t, "END").all)
    t.all = t.all:match "END(.*)$"
    read(t, "> half")
    t.pty:write " whole\r"
    read(t, "<half whole>")
    t.pty:write "\26"
    read(t, "stopped")
    t.pty:write "typed to the shell\r"
    read(t, "<typed to the shell>")
    t.pty:write "\4"
    has(select(2, finish(t)), "<end: >")
  end)
end)

-- -- without editing ------------------------------------------------------------------------------

describe("without editing", function()
  it_if("a dumb terminal edits by itself, and gets no sequences", function()
    local t = read(script(OPEN .. [[
      ah.interactive()
      local editor <close> = open()
      local n, seen = 0, nil
      local ticks <close> = ah.every(0.02, function() -- runs only while the line is waited for
        if seen ~= n then editor:print_line("waits " .. n .. "\27[2J") end
        seen = n
      end)
      repeat
        local line, why, text = editor:read { prompt = "$ " }
        n = n + 1
        editor:print_line(told(line, why, text))
      until why == "end"]], { env = { "TERM=dumb" } }), "waits 0\\x1b[2J")
    for i, case in ipairs { { "hellx\127o\r", "<hello>" }, { "one\\\rtwo\r", "<one\r\ntwo>" },
      { "\3", "<interrupt: >" } } do
      os.execute "sleep 0.3" -- Ctrl-C while the ticks run would end them, too
      t.pty:write(case[1])
      read(read(t, case[2]), "waits " .. i)
    end
    t.pty:write "\4"
    read(t)
    assert.equal(0, t.pty:wait(5))
    has(t.all, "waits 3\\x1b[2J\r\n\r\n<end: >")
    has(t.all, "^C\r\n<interrupt: >")
    has_not(t.all, "\27")
  end)

  it("lines of a pipe are read as they come, while others work", function()
    local result = command.shell(([[(echo one; sleep 0.3; printf 'two\\\nthree \377\r\nlast') |
      $A -q %s]]):format(command.temp(OPEN .. [[
      local editor <close> = open()
      local ticks <close> = ah.spawn(function() ah.sleep(0.1) editor:print "tick\n" end)
      chat(editor, { prompt = "no prompt" })]])))
    assert.equal("<one>\ntick\n<two\\>\n<three \u{fffd}>\n<last>\n<end: >\n", result.out)
    assert.equal("", result.err)
  end)

  it("a file and an empty input are read, too", function()
    local path, input = command.temp(LOOP), command.temp("a\n\nb\n")
    assert.equal("ready\n<a>\n<>\n<b>\n<end: >\n",
      command.shell(("$A -q %s <%s"):format(path, input)).out)
    assert.equal("ready\n<end: >\n", command.shell(("$A -q %s </dev/null"):format(path)).out)
    local closed = command.shell(("$A -q %s <&-"):format(path)).out
    has(closed, "ready\n<internal: >")
  end)

  it("a line of more than 1 MiB is cut", function()
    local result = command.shell(([[(head -c 3000000 /dev/zero | tr '\0' x; printf '\nnext\n') |
      $A -q %s]]):format(command.temp(OPEN .. [[
      local input = ah._input()
      for _ = 1, 3 do
        local line, cut = input:line()
        print(line and #line, cut)
      end]])))
    assert.equal("1048576\ttrue\n4\tfalse\nnil\tnil\n", result.out)
  end)
end)

-- -- the history ----------------------------------------------------------------------------------

describe("the history", function()
  local function use(name)
    return assert(loadfile("lua/agenthost/command/" .. name .. ".lua"))(ah, use)
  end
  local line_history = use "line_history"

  local function new_path()
    local path = command.temp ""
    os.remove(path)
    return path
  end

  it_if("lasts over sessions, with texts of several lines", function()
    local path = command.folder() .. "/new/folders/history"
    local HISTORY = OPEN .. ([[
      local editor <close> = open { history = %q }
      editor:print_line "ready"
      chat(editor)
      editor:read { text = "secret", keep = false }]]):format(path)
    local t = read(script(HISTORY), "ready")
    typed(t, "first\r", "<first>")
    typed(t, "two\27\rlines\r", "lines>")
    t.pty:write "\4\r"
    assert.equal(0, (finish(t)))
    t = read(script(HISTORY), "ready")
    typed(t, "\27[A\r", "<two\r\nlines>")
    typed(t, "\27[A\27[A\27[A\r", "<first>")
    t.pty:write "\4\r"
    assert.equal(0, (finish(t)))
    assert.equal('"first"\n"two\\nlines"\n"first"\n', command.contents(path))
    local pipe <close> = io.popen("stat -c %a " .. path)
    assert.equal("600\n", pipe:read "a")
  end)

  it("is shared by sessions, and leaves out blank and repeated lines", function()
    local path = new_path()
    local one, two = line_history.open(path), line_history.open(path)
    for i = 1, 50 do
      one:add("one " .. i)
      one:add("one " .. i)
      two:add("two " .. i)
      two:add " \n"
    end
    assert.equal(50, #one.lines)
    local both = line_history.open(path).lines
    assert.equal(100, #both)
    assert.equal("two 50", both[100])
  end)

  it("is bounded, and keeps the newest lines", function()
    local path = new_path()
    local h = line_history.open(path)
    for i = 1, 2100 do
      h:add("line " .. i)
    end
    h = line_history.open(path)
    assert.equal(1000, #h.lines)
    assert.equal("line 2100", h.lines[1000])
    assert.equal(1000, select(2, command.contents(path):gsub("\n", "")))
    for i = 1, 100 do
      h:add(("x"):rep(30000) .. i)
    end
    assert.truthy(#command.contents(path) <= 2 << 20)
    assert.truthy(h.lines[#h.lines]:find "100$")
    h:add(("y"):rep(40000))
    assert.is_nil(command.contents(path):find("y", 1, true))
    assert.equal("y", h.lines[#h.lines]:sub(1, 1))
    assert.is_nil(h.why)
  end)

  it("skips rows that are no lines, and lives without a file", function()
    local path = command.temp '"one"\nnonsense\n7\n""\n"two"\n"cut'
    assert.same({ "one", "two" }, line_history.open(path).lines)
    for _, bad in ipairs { "/dev/null/file", "/dev/null", "/" } do
      local h = line_history.open(bad)
      h:add "line"
      assert.same({ "line" }, h.lines)
      assert.truthy(h.why:find(bad, 1, true), h.why)
    end
    local h = line_history.open(nil)
    h:add "line"
    assert.same({ "line" }, h.lines)
    assert.is_nil(h.why)
  end)
end)
