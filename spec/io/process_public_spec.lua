-- ah.process (docs/reference/processes.md): streams, waits, ends, the environment of a process, and
-- hostile children. A mark in the environment shows whether descendants are left.
local ah = require "agenthost"
local patiently = require "support.patiently"
local command = require "support.command"
local descriptors = require "support.descriptors"

local marks = 0

local function new_mark()
  marks = marks + 1
  return ("AH_PUBLIC_%d_%s"):format(marks, tostring({}):match "0x(%x+)")
end

-- Counts the processes with the mark in their environment; zombies have none.
local function marked(mark)
  local list <close> = assert(io.popen("grep -lsa " .. mark .. " /proc/[0-9]*/environ"))
  local n = 0
  for line in list:lines() do
    n = n + (line:find "^/proc/self/" and 0 or 1)
  end
  return n
end

-- Returns true as soon as the condition holds, false after a minute.
local function soon(holds)
  for _ = 1, 3000 do
    if holds() then
      return true
    end
    ah.sleep(0.02)
  end
  return false
end

local function gone(mark)
  return soon(function()
    return marked(mark) == 0
  end)
end

local function start(name, args, options)
  local config = { command = name, args = args }
  for key, value in pairs(options or {}) do
    config[key] = value
  end
  return assert(ah.process(config))
end

local function sh(script, options)
  return start("sh", { "-c", script }, options)
end

-- Starts a shell script whose descendants are marked; returns the process and the mark.
local function marked_sh(script, options)
  local mark = new_mark()
  options = options or {}
  options.env = { AH_MARK = mark }
  return sh(script, options), mark
end

local function has(text, part)
  assert.truthy(tostring(text):find(part, 1, true), tostring(text))
end

local function code_of(p)
  return assert(p:close()).exit_code
end

local function in_handler(handler, more)
  local options = { model = ah.scripted { { calls = { { name = "t" } } }, "done" },
    tools = { ah.tool { name = "t", description = "T.", handler = handler } },
    log = function() end, "go" }
  for key, value in pairs(more or {}) do
    options[key] = value
  end
  return ah.run(options)
end

-- Runs the handlers together, in one run.
local function together(...)
  local tools, calls = {}, {}
  for i, handler in ipairs { ... } do
    tools[i] = ah.tool { name = "t" .. i, description = "T.", parallel = true, handler = handler }
    calls[i] = { name = "t" .. i }
  end
  return assert(ah.run { model = ah.scripted { { calls = calls }, "done" }, tools = tools,
    log = function() end, "go" })
end

local function children()
  local f <close> = assert(io.open "/proc/thread-self/children")
  return select(2, f:read("a"):gsub("%d+", ""))
end

describe("a process of a script", function()
  it("is written to, and read by lines", function()
    local p <close> = start "cat"
    assert.is_true(p:write "one\ntwo\r\n\nhalf")
    assert.equal("one", p:line())
    assert.equal("two", p:line())
    assert.equal("", p:line())
    p:close_input()
    assert.equal("half", p:line())
    assert.is_nil(p:line())
    assert.is_nil(p:line())
    local r = assert(p:wait())
    assert.same({ "exited", 0, "none", 0 }, { r.how, r.exit_code, r.sandbox, r.left })
    assert.is_true(r.seconds > 0)
  end)

  it("is written to in handlers, and in coroutines of a script", function()
    local reply = assert(in_handler(function()
      local p <close> = start "cat"
      assert(p:write "a\nb\n")
      p:close_input()
      local lines = {}
      for line in p:lines() do
        lines[#lines + 1] = line
      end
      return table.concat(lines, "+") .. p:wait().exit_code
    end))
    assert.equal("a+b0", reply.messages[#reply.messages - 1].content)
    local p <close> = start "cat"
    assert.equal("x", coroutine.wrap(function()
      assert(p:write "x\n")
      return p:line()
    end)())
  end)

  it("is waited for where nothing can be yielded, too", function()
    local lines = {}
    assert(in_handler(function()
      local p <close> = start "cat"
      table.sort({ 1, 2 }, function(a, b)
        assert(p:write "x\n")
        lines[#lines + 1] = p:line()
        return a < b
      end)
      lines[#lines + 1] = p:close().exit_code
    end))
    assert.same({ "x", 0 }, { lines[1], lines[#lines] })
  end)

  it("outlives the call that started it, as long as the script has it", function()
    local kept
    assert(in_handler(function()
      kept = start "cat"
      assert(kept:write "first\n")
    end))
    assert(in_handler(function()
      assert.equal("first", kept:line())
      assert(kept:write "second\n")
    end))
    assert.equal("second", kept:line())
    assert.equal(0, code_of(kept))
  end)

  it("gives lines of JSON as values, and errors for those that are none", function()
    local p <close> = sh [[printf '{"a":[1,2.5,null]}\r\n\n  \n"s"\nfalse\nnull\n{oops\n[1\n'
      printf '1e999\n\377\n{"b":1}']]
    local got = {}
    for value, err in p:lines { json = true } do
      got[#got + 1] = err or value
    end
    assert.same({ 1, 2.5, ah.null }, got[1].a)
    assert.same({ "s", false, ah.null }, { got[2], got[3], got[4] })
    for i = 5, 8 do
      assert.equal("tool_validation", got[i].code)
      has(got[i].message, "'sh' has written a line that")
    end
    has(got[5].message, "begins: {oops")
    assert.same({ b = 1 }, got[9])
    assert.is_nil(got[10])
  end)

  it("gives bytes as they are", function()
    local p <close> = start "cat"
    local all = {}
    for i = 0, 255 do
      all[i + 1] = string.char(i)
    end
    local bytes = table.concat(all)
    assert(p:write(bytes))
    assert.equal(bytes:sub(1, 9), p:read(9))
    assert.equal(bytes:sub(10, 10), p:read(1))
    assert.equal("", p:line()) -- the byte before was \t, this one is \n
    assert.equal(bytes:sub(12), p:read(245))
    p:close_input()
    assert.is_nil(p:read())
    assert.equal("", p:read "all")
    local q <close> = sh [[printf 'a\0b\n\0\n']]
    assert.equal("a\0b", q:line())
    assert.equal("\0", q:line())
  end)

  it("gives fewer bytes than were asked for only at the end", function()
    local p <close> = sh "printf 12345; sleep 0.05; printf 67"
    assert.equal("123456", p:read(6))
    assert.equal("7", p:read(6))
    assert.is_nil(p:read(6))
  end)

  it("passes over lines that are too long, whatever is behind them", function()
    local p <close> = sh [[echo ok; head -c 3000000 /dev/zero | tr '\0' x; echo
      echo '{"a":1}'; printf 12345678901]]
    assert.equal("ok", p:line { max = 10 })
    local line, err = p:line { max = 10 }
    assert.is_false(line)
    has(err.message, "more than 10 bytes")
    has(err.message, "begins: xxxxxxx")
    assert.same({ a = 1 }, p:line { max = 10, json = true })
    line, err = p:line { max = 10 }
    assert.is_false(line)
    has(err.message, "begins: 12345678901")
    assert.is_nil(p:line { max = 10 })
  end)

  it("keeps a line of which half has come when the time is over", function()
    local p <close> = sh "printf ha; read x; echo lf; read x"
    local line, err = p:line { timeout = 0.05 }
    assert.is_false(line)
    assert.equal("deadline_exceeded", err.code)
    assert(p:write "\n")
    assert.equal("half", p:line())
    line, err = p:read(5, { timeout = 0 })
    assert.same({ false, "deadline_exceeded" }, { line, err.code })
    assert.is_nil((p:wait { timeout = 0.01 }))
  end)

  it("reads all that it has on its standard input from a string, or nothing", function()
    local p <close> = start("cat", {}, { stdin = "given" })
    assert.equal("given", p:read "all")
    local ok, err = p:write "more"
    assert.is_nil(ok)
    has(err.message, "takes no more input")
    local empty <close> = start("cat", {}, { stdin = false })
    assert.equal("", empty:read "all")
  end)

  it("has its errors apart, or merged", function()
    local p <close> = sh "echo out; echo err >&2; echo more"
    assert.equal("out\nmore\n", p:read "all")
    p:wait()
    assert.equal("err\n", p:errors())
    local merged <close> = sh("echo out; echo err >&2; echo more", { merge = true })
    assert.equal("out\nerr\nmore\n", merged:read "all")
    assert.equal("", merged:errors())
  end)

  it("keeps beginning and end of a flood of errors, and never waits for them to be read", function()
    local p <close> = sh([[echo BEGIN >&2; head -c 20000000 /dev/zero | tr '\0' 'x' >&2
      printf '\377END' >&2; echo done]], { max_errors = 1000 })
    assert.equal("done", p:line())
    p:wait()
    local errors = p:errors()
    assert.is_true(#errors < 1200, #errors)
    assert.equal("BEGIN\n", errors:sub(1, 6))
    assert.equal("\u{FFFD}END", errors:sub(-6))
    has(errors, "[... 19999010 bytes left out ...]")
  end)

  it("tells a writer how it ended, with its last words", function()
    local p <close> = sh "echo 'the reason' >&2; exit 7"
    p:wait()
    local ok, err = p:write "x"
    assert.is_nil(ok)
    has(err.message, "ended with exit code 7")
    has(err.message, "the reason")
    local killed <close> = sh "kill -KILL $$"
    killed:wait()
    has(select(2, killed:write "x").message, "was ended by signal KILL")
    -- in the middle of a write
    local q <close> = sh "read x; echo bye >&2; exit 4"
    ok, err = q:write("x\n" .. ("y"):rep(5000000))
    assert.is_nil(ok)
    has(err.message, "exit code 4")
    has(err.message, "bye")
  end)

  it("tells a writer that it has closed its input and goes on", function()
    local p <close> = sh("exec 0<&-; echo closed; sleep 100", { grace = 0.05 })
    assert.equal("closed", p:line())
    local ok, err
    for _ = 1, 50 do -- what started the process may still have the other end for a moment
      ok, err = p:write(("x"):rep(1000))
      if not ok then break end
      ah.sleep(0.1)
    end
    assert.is_nil(ok)
    has(err.message, "has closed its standard input")
  end)

  it("slows a process down whose output nobody reads", function()
    local p <close> = sh "head -c 100000000 /dev/zero; echo written >&2"
    ah.sleep(0.2)
    assert.equal("", p:errors())
    local n = 0
    repeat
      local bytes = p:read()
      n = n + #(bytes or "")
    until not bytes
    assert.equal(100000000, n)
    p:wait()
    assert.equal("written\n", p:errors())
  end)

  it("takes 100 MB, and gives them back, where somebody reads meanwhile", function()
    local p <close> = start "cat"
    local piece, n, got = ("0123456789abcdef"):rep(65536), 96, 0
    together(function()
      for _ = 1, n do
        assert(p:write(piece))
      end
      p:close_input()
    end, function()
      local bytes = p:read()
      while bytes do
        got, bytes = got + #bytes, p:read()
      end
    end)
    assert.equal(#piece * n, got)
    assert.equal(0, p:wait().exit_code)
  end)

  it("says so where it stands still since nobody reads", function()
    local p <close> = start("cat", {}, { stall = 0.1 })
    local ok, err = p:write(("x"):rep(8 << 20))
    assert.is_nil(ok)
    has(err.message, "waits until they are read")
    ok, err = p:wait()
    assert.is_nil(ok)
    has(err.message, "discard = true")
    p:close_input()
    assert.equal(0, p:wait({ discard = true }).exit_code)
  end)

  it("is shared by tasks: writers keep their texts whole, a second reader is told", function()
    local p <close> = start "cat"
    local raised, lines = 0, {}
    local function writer(letter)
      return function()
        for _ = 1, 20 do
          assert(p:write(letter:rep(99999) .. "\n"))
        end
      end
    end
    local function reader()
      local ok, err = pcall(function()
        for _ = 1, 40 do
          lines[#lines + 1] = p:line()
        end
      end)
      if not ok then
        raised = raised + 1
        has(err.message, "is being read by another task")
      end
    end
    together(reader, reader, writer "a", writer "b")
    assert.equal(1, raised)
    assert.equal(40, #lines)
    for _, line in ipairs(lines) do
      assert.truthy(line:find "^a+$" or line:find "^b+$")
      assert.equal(99999, #line)
    end
  end)

  it("ends waits with the run's deadline, and may be used afterwards", function()
    patiently(function(times)
      local p <close> = start "cat"
      local text = ("0123456789abcdef"):rep(2 << 20)
      for _, wait in ipairs {
        function() p:line() end, function() p:wait() end, function() p:read(10) end,
        function() p:write(text) end,
      } do
        local _, err = in_handler(wait, { timeout = 0.05 * times })
        assert.equal("deadline_exceeded", err.code)
      end
      p:close_input()
      assert.is_true(text == p:read "all")
    end)
  end)

  it("does not wait in observers, where what needs no wait works", function()
    local p <close> = sh "echo a; echo b; read x"
    assert.equal("a", p:line())
    local told = {}
    assert(in_handler(function() end, { on = { warning = function(e)
      told[#told + 1] = e.message
    end, tool_invoked = function()
      assert.equal("b", p:line())
      assert.equal("", p:errors())
      p:line()
    end } }))
    assert.equal(1, #told)
    has(told[1], "an observer cannot wait")
  end)
end)

describe("the end of a process", function()
  it("comes by itself, by a signal, by its time, by the script", function()
    assert.equal(5, sh("exit 5"):wait().exit_code)
    local r = sh("kill -SEGV $$"):wait()
    assert.same({ "exited", "SEGV" }, { r.how, r.signal })
    assert.is_nil(r.exit_code)
    assert.equal("timed_out", sh("sleep 100", { timeout = 0.05 }):wait().how)
    local p = sh "sleep 100"
    assert.is_true(p:kill "KILL")
    r = p:wait()
    assert.same({ "stopped", "KILL" }, { r.how, r.signal })
    local ok, err = p:kill()
    assert.is_nil(ok)
    has(err.message, "has ended already")
  end)

  it("comes when its input ends, if it takes no longer than its grace", function()
    local p = sh "cat; echo saved >&2; exit 6"
    local r = p:close()
    assert.same({ "exited", 6 }, { r.how, r.exit_code })
    assert.equal("saved\n", p:errors())
    assert.equal(6, code_of(p)) -- the result is kept
    assert.equal("process sh (closed)", tostring(p))
    local line, err = p:line()
    assert.is_nil(line)
    has(err.message, "is closed")
    assert.is_nil((p:write "x"))
  end)

  it("throws away what is written while it is closed", function()
    local p = sh "cat >/dev/null; head -c 10000000 /dev/zero; exit 3"
    assert.equal(3, code_of(p))
  end)

  it("sends signals to the command and its group, not to what has left it", function()
    local p <close> = sh "trap 'echo int; exit 9' INT; echo up; while :; do sleep 0.01; done"
    assert.equal("up", p:line())
    assert.is_true(p:kill "SIGINT")
    assert.equal("int", p:line())
    assert.equal(9, p:wait().exit_code)
    local q <close> = sh "sleep 100; exit 1"
    assert.is_true(q:kill(15))
    assert.equal("TERM", q:wait().signal)
  end)

  it("takes all with it: who ignores TERM, has left the session, holds the streams", function()
    local p, mark = marked_sh([[trap '' TERM HUP INT
      setsid sh -c "trap '' TERM; sleep 1000" & (sleep 1000 &) ; sleep 1000 & echo up
      while :; do sleep 1000; done]], { grace = 0.1 })
    assert.equal("up", p:line())
    assert.is_true(marked(mark) >= 3)
    local r = p:close()
    assert.same({ "stopped", 0 }, { r.how, r.left })
    assert.equal(0, marked(mark))
  end)

  it("takes those with it that a command leaves behind", function()
    local p, mark = marked_sh "sleep 1000 & setsid sleep 1000 & echo up"
    assert.equal("up", p:line())
    assert.is_nil(p:line()) -- the others keep the stream open
    assert.equal(0, p:wait().exit_code)
    assert.equal(0, marked(mark))
  end)

  it("comes where a variable marked <close> leaves its scope, by an error too", function()
    local mark
    do
      local p <close>, m = marked_sh "echo up; cat"
      mark = m
      assert.equal("up", p:line())
    end
    assert.equal(0, marked(mark))
    assert.is_false(pcall(function()
      local p <close>, m = marked_sh "echo up; cat"
      mark = m
      assert.equal("up", p:line())
      error "oops"
    end))
    assert.equal(0, marked(mark))
  end)

  it("comes where the call is stopped whose variable it is, or the run cancelled", function()
    local mark
    local _, err = in_handler(function()
      local p <close>, m = marked_sh "trap '' TERM; echo up; sleep 1000; sleep 1000"
      mark = m
      assert.equal("up", p:line())
      p:line()
    end, { timeout = 0.5 })
    assert.equal("deadline_exceeded", err.code)
    assert.equal(0, marked(mark))
  end)

  it("comes with the collector, where the script has forgotten it", function()
    local mark
    do
      local p, m = marked_sh "trap '' TERM; echo up; sleep 1000; sleep 1000"
      mark = m
      assert.equal("up", p:line())
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(gone(mark))
  end)

  it("comes with the host, in the command and in stock Lua, however that ends", function()
    for _, how in ipairs { "", "error 'oops'", "os.exit(3, true)", "os.exit(3)",
      "os.execute 'kill -KILL $PPID'" } do
      local mark = new_mark()
      local path = command.temp(([[
        local ah = require "agenthost"
        P = ah.process { command = "sh", env = { AH_MARK = "%s" }, grace = 0.05,
          args = { "-c", "trap '' TERM; setsid sleep 1000 & echo up; sleep 1000; sleep 1000" } }
        print(P:line())
        io.stdout:flush()
        %s]]):format(mark, how))
      for _, host in ipairs { "$A", "LUA_CPATH=$(dirname $A)/?.so lua5.4" } do
        local r = command.shell(host .. " " .. path .. " </dev/null")
        has(r.out, "up")
        assert.is_true(gone(mark), how .. r.err)
      end
    end
    command.tidy()
  end)

  it("leaves no descriptor and no zombie, whatever the children did", function()
    local function round()
      for _, script in ipairs { "exit 0", "cat", "exec 0<&- 1>&- 2>&-; exit 1", "kill -9 $$",
        "printf half", "head -c 3000000 /dev/zero", "sleep 1000", "(sleep 1000 &) ; exit 2" } do
        local p = sh(script, { grace = 0.05 })
        p:write "x\n"
        p:line { timeout = 0.02 }
        p:close()
      end
      assert.is_nil((ah.process { command = "/no/such/program" }))
      assert.is_nil((ah.process { command = "ls", cwd = "/no/such/folder" }))
      sh "exit 0" -- not closed
      collectgarbage()
      collectgarbage()
    end
    round()
    local fds, kids = descriptors(), children()
    for _ = 1, 3 do
      round()
    end
    assert.equal(fds, descriptors())
    assert.equal(kids, children())
  end)

  it("is told where SIGCHLD is ignored, as some programs do", function()
    local path = command.temp [[
      local ah = require "agenthost"
      for i = 1, 3 do
        local p <close> = ah.process { command = "sh", args = { "-c", "read x; echo $x; exit 3" } }
        assert(p:write "hello\n")
        print(p:line(), p:wait().exit_code)
      end]]
    local r = command.shell("trap '' CHLD; $A " .. path)
    assert.equal(("hello\t3\n"):rep(3), r.out, r.err)
    r = command.shell("python3 -c 'import os, signal, sys; "
      .. "signal.signal(signal.SIGCHLD, signal.SIG_IGN); "
      .. "os.execvp(sys.argv[1], sys.argv[1:])' $A " .. path)
    if r.code ~= 127 then
      assert.equal(("hello\t3\n"):rep(3), r.out, r.err)
    end
    command.tidy()
  end)
end)

describe("what a process is given", function()
  it("is a small environment, and what the script adds", function()
    local p <close> = start("env", {}, { env = { EXTRA = "a b", LANG = false, TZ = "UTC" } })
    local names = {}
    for line in p:lines() do
      names[line:match "^[^=]+"] = line:match "=(.*)"
    end
    assert.same({ "a b", "UTC", "dumb", os.getenv "PATH" },
      { names.EXTRA, names.TZ, names.TERM, names.PATH })
    assert.is_nil(names.LANG)
    local usual = { PATH = 1, HOME = 1, USER = 1, LOGNAME = 1, SHELL = 1, LC_ALL = 1, TZ = 1,
      TERM = 1, EXTRA = 1 }
    for name in pairs(names) do
      assert.truthy(usual[name], name)
    end
  end)

  it("is never the store's place", function()
    local path = command.temp [[
      local ah = require "agenthost"
      local p = ah.process { command = "env" }
      for line in p:lines() do assert(not line:find "AGENTHOST") end
      print(select(2, pcall(ah.process, { command = "env", env = { AGENTHOST_STORE = true } })))]]
    local r = command.shell("AGENTHOST_STORE=/secret $A " .. path)
    has(r.out, "'AGENTHOST_STORE' is never passed to a process")
    command.tidy()
  end)

  it("is a folder, and arguments that no shell reads", function()
    local p <close> = start("sh",
      { "-c", 'pwd; printf "%s\n" "$@"', "sh", "a b", "$HOME", "*", "" }, { cwd = "/usr" })
    assert.equal("/usr\na b\n$HOME\n*\n\n", p:read "all")
  end)

  it("is refused at its line where it is a mistake", function()
    for said, config in pairs {
      ["field 'command' is missing"] = {}, ["found an empty one"] = { command = "" },
      ["sandbox: field 'kind' must be \"none\""] =
        { command = "ls", sandbox = { kind = "jail" } },
      ["sandbox: field 'network' must be a boolean"] =
        { command = "ls", sandbox = { network = 1 } },
      ["sandbox: field 'read' must be a list"] = { command = "ls", sandbox = { read = "/" } },
      ["arguments go into `args`"] = { command = { "ls" } },
      ["did you mean 'command'"] = { cmd = "ls" },
      ["did you mean 'args'"] = { command = "a", argv = {} },
      ["args must be a string, found a number"] = { command = "ls", args = { 1 } },
      ["args holds a NUL byte"] = { command = "ls", args = { "a\0b" } },
      ["command holds a NUL byte"] = { command = "ls\0" },
      ["[1] is nil"] = { command = "ls", args = { nil, "x" } },
      ["'A=B' is no name of a variable"] = { command = "ls", env = { ["A=B"] = "x" } },
      ["'1' is no name of a variable"] = { command = "ls", env = { "A=B" } },
      ["'A' must be a string, true"] = { command = "ls", env = { A = 5 } },
      ["A holds a NUL byte"] = { command = "ls", env = { A = "\0" } },
      ["field 'env' must be a table"] = { command = "ls", env = "A=1" },
      ["field 'timeout' must be a number of at least 0.001"] = { command = "ls", timeout = 0 },
      ["field 'stdin' must be a string"] = { command = "ls", stdin = true },
      ["field 'sandbox' must be \"none\""] = { command = "ls", sandbox = "jail" },
      ["\"bubblewrap\" or a table, { ... }, found boolean"] = { command = "ls", sandbox = true },
      ["sandbox: unknown field 'reads'"] = { command = "ls", sandbox = { reads = {} } },
      ["`read` and `write` cannot be enforced"] =
        { command = "ls", sandbox = { kind = "none", read = {} } },
      ["field 'max_errors' must be a number from 0 to 16777216"] =
        { command = "ls", max_errors = 1e12 },
    } do
      local ok, err = pcall(ah.process, config)
      assert.is_false(ok, said)
      has(err, said)
      has(err, "spec/io/process_public_spec.lua:")
    end
    local p <close> = start "cat"
    for _, mistake in ipairs {
      function() p:write(5) end, function() p:read(0) end, function() p:read "line" end,
      function() p:line { jsno = true } end, function() p:line { max = 1e12 } end,
      function() p:kill "NONE" end, function() p:kill(0) end, function() p:kill(65) end,
      function() p:wait { timeout = -1 } end, function() return p.readline end,
    } do
      local ok, err = pcall(mistake)
      assert.is_false(ok)
      assert.equal("usage", err.code)
    end
  end)

  it("is told as an error where the machine has it not", function()
    for said, config in pairs {
      ["there is no program 'nosuchprogram' in PATH"] = { command = "nosuchprogram" },
      ["there is no program '/no/such'"] = { command = "/no/such" },
      ["its arguments go into `args`"] = { command = "ls -l" },
      ["there is no program './nosuch'"] = { command = "./nosuch", cwd = "/usr" },
      ["cannot open the folder '/no/such'"] = { command = "ls", cwd = "/no/such" },
      ["Permission denied"] = { command = "/etc/passwd" },
    } do
      local p, err = ah.process(config)
      assert.is_nil(p)
      assert.equal("usage", err.code)
      has(err.message, said)
    end
    local folder <close> = start("./env", {}, { cwd = "/usr/bin" }) -- relative to cwd
    has(folder:read "all", "PATH=")
  end)

  it("is told when it comes to be run where it shows only then", function()
    local path = command.temp "neither a script nor a program"
    assert(os.execute("chmod +x " .. path))
    local p <close> = start(path)
    local r, err = p:wait()
    assert.is_nil(r)
    has(err.message, "cannot run '" .. path)
    has(select(2, p:write "x").message, "cannot run")
    assert.is_nil(p:line())
    command.tidy()
  end)

  it("is a list that code of the script cannot take away while it is read", function()
    local args = { ("-"):rep(3) .. "x" }
    local env = { A = ("b"):rep(2) }
    local write = setmetatable({}, { __len = function()
      args[1], env.A = nil, nil
      for _ = 1, 10 do
        collectgarbage()
      end
      return 0
    end })
    local p <close> = start("sh", { "-c", 'echo "$0 $A"', args[1] },
      { env = env, sandbox = { kind = "auto", write = write } })
    assert.equal("---x bb\n", p:read "all")
  end)

  it("is limits, which hold for all below it", function()
    local p <close> = sh("ulimit -v; ulimit -t", { memory = 1 << 30, cpu = 7 })
    assert.equal(("%d\n7\n"):format((1 << 30) // 1024), p:read "all")
  end)

  it("is no limit of 0, here or for bash", function()
    for _, name in ipairs { "memory", "file_size", "cpu", "processes" } do
      for _, limit in ipairs { 0, 0.5, -1 } do
        assert.error_matches(function() start("true", {}, { [name] = limit }) end,
          ("field '%s' must be a number of at least 1, found"):format(name))
        assert.error_matches(function() ah.builtin { bash = { [name] = limit } } end,
          ("field '%s' must be a number of at least 1, found"):format(name))
      end
    end
  end)
end)

describe("the sandbox of a process", function()
  local function offered(kind)
    return (ah._sandbox { sandbox = kind })
  end
  local folder, other

  setup(function()
    folder, other = os.tmpname(), os.tmpname()
    for _, path in ipairs { folder, other } do
      os.remove(path)
      assert(os.execute("mkdir " .. path .. " && echo secret > " .. path .. "/file"))
    end
  end)

  teardown(function()
    os.execute(("rm -r %s %s"):format(folder, other))
  end)

  for _, kind in ipairs { "landlock", "bubblewrap" } do
    it("limits reading, writing and the network, with " .. kind, function()
      if not offered(kind) then
        return pending(kind .. " is not to be had here")
      end
      local script = [[cat $1/file; cat $2/file; echo x > $1/new; echo x > $2/new
        ls / >/dev/null && echo root; ls $HOME >/dev/null 2>&1 && echo home
        echo t > $TMPDIR/t && cat $TMPDIR/t; head -c1 /dev/zero | wc -c; exit 0]]
      local function run(sandbox)
        sandbox.kind = kind
        local p <close> = start("sh", { "-c", script, "sh", folder, other }, { sandbox = sandbox })
        local out = p:read "all"
        has(p:wait().sandbox, kind)
        return out, p:errors()
      end
      local out, err = run { read = { folder } }
      assert.truthy(out:find "^secret\n", out .. err)
      assert.falsy(out:find("secret.*secret") or out:find "home", out)
      has(out, "t\n1\n")
      assert.is_nil(io.open(folder .. "/new"))
      out = run { read = {}, write = { folder } }
      assert.truthy(out:find "^secret\n", out)
      assert.falsy(out:find "secret.*secret", out)
      assert.is_nil(io.open(other .. "/new"))
      assert.truthy(os.remove(folder .. "/new"))
      if kind == "landlock" then -- bubblewrap has a /tmp of its own
        assert.truthy(run({}):find "secret.*secret")
      end
    end)
  end

  it("lets the program itself be read and run, wherever it is", function()
    if not offered "require" then
      return pending "no sandbox is to be had here"
    end
    local prog = other .. "/prog"
    assert(os.execute(("printf '#!/bin/sh\\necho ran' > %s; chmod +x %s"):format(prog, prog)))
    local p <close> = start(prog, {}, { sandbox = { read = {} } })
    assert.equal("ran\n", p:read "all", p:errors())
  end)

  it("is there or an error, where folders are listed", function()
    local p, err = ah.process { command = "ls", sandbox = { read = { "/no/such" } } }
    assert.is_nil(p)
    has(err.message, "cannot open the folder '/no/such'")
  end)

  it("limits reading for commands of bash, too", function()
    if not offered "require" then
      return pending "no sandbox is to be had here"
    end
    local reply = assert(ah.run {
      model = ah.scripted { { calls = { { name = "bash",
        arguments = { command = ("cat file; cat %s/file"):format(other) } } } }, "done" },
      tools = assert(ah.builtin { bash = { sandbox = "require", cwd = folder,
        readable = { "/usr" } } }), "go" })
    local said = reply.messages[#reply.messages - 1].content
    has(said, "secret\n")
    assert.falsy(said:find "secret.*secret", said)
    has(said, "exit code 1")
  end)
end)
