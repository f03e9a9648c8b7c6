-- agenthost -i (lua/agenthost/command/repl.lua): in a terminal, in a dumb one and in pipes.
local command = require "support.command"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, read, finish = typing.it(it, pending), typing.read, typing.finish
local quit = typing.quit

after_each(command.tidy)

-- Returns the result of these inputs from a pipe.
local function piped(inputs, words)
  local path = command.temp(inputs)
  return command.shell(('"$A" -i %s <%s'):format(words or "", path))
end

local function answers(expected, inputs, words)
  local r = piped(inputs, words)
  assert.same({ expected, "", 0 }, { r.out, r.err, r.code })
end

-- Starts -i in a terminal with a folder for its history.
local function start(words, term, state)
  state = state or command.folder()
  local t = typing.command({ "-q", "-i", table.unpack(words or {}) },
    { env = { "TERM=" .. (term or "xterm"), "XDG_STATE_HOME=" .. state } })
  return read(t, "> "), state
end

-- Types, and reads until the part is there.
local function typed(t, bytes, part)
  t.screen:feed(t.all)
  t.all = ""
  t.pty:write(bytes)
  return read(t, part)
end

-- Types an input, and reads its result and the next prompt.
local function answered(t, bytes, part)
  typed(t, bytes, part)
  local _, last = t.all:find(part, 1, true)
  while not t.all:find("> ", last, true) do
    t.all = t.all .. assert(t.pty:read(1), "the program has ended")
  end
end

describe("inputs from a pipe", function()
  it("print what they return, without a prompt", function()
    answers("2\n", "=1+1\n")
    answers("2\n3\n", "1+1\n=1+2\n")
    answers("1\tnil\tx\n", "1, nil, 'x'\n")
    answers("nil\n", "=nil\n")
    answers("", "\nlocal x = 1\n(function() end)()\n")
    answers("1\n", "x = 1\nprint(x)\n")
    answers("last\n", "='last'")
  end)

  it("go on until they are complete", function()
    answers("1\n2\n", "for i = 1, 2 do\nprint(i)\nend\n")
    answers("3\n", "1 +\n2\n")
    answers("3\n", "=1 +\n2\n")
    answers("a\nb\n", "=[[a\nb]]\n")
    local r = piped "for i = 1, 2 do\n"
    assert.same({ "", 1 }, { r.out, r.code })
    has(r.err, "input:1: 'end' expected near <eof>")
  end)

  it("that fail print where, and the next ones go on", function()
    local r = piped("function f() error 'no' end\n\nlocal x\nx = f()\n"
      .. "(function()\nf()\nend)()\n=2\n")
    assert.same({ "2\n", 1 }, { r.out, r.code })
    has(r.err, "input:1: no\nstack traceback:\n\t[C]: in function 'error'\n")
    has(r.err, "\tinput:1: in main chunk\n")
    has(r.err, "\tinput:2: in function <input:1>\n")
    has_not(r.err, "agenthost/command")
    r = piped "a b\n=1 2\n"
    has(r.err, "input:1: syntax error near 'b'\n")
    has(r.err, "input:1: <eof> expected near '2'\n")
  end)

  it("that fail with other values print these", function()
    local r = piped("error { code = 3 }\nerror()\nah.run {}\n"
      .. "error(setmetatable({}, { __tostring = error }))")
    has(r.err, "{ code = 3 }\nnil\nusage: input:1: ah.run: no model")
    has(r.err, "\nan error that cannot be shown\n")
  end)

  it("wait for runs, times and tasks", function()
    answers("hey\n", '=ah.run { model = "demo/echo", "hey" }\n')
    answers("1\nin time\n2\n", "t = ah.spawn(function() ah.sleep(0.05) print 'in time' end)\n=1\n"
      .. "t:await()\n=2\n")
    answers("late\n", "t = ah.spawn(function() ah.sleep(0.05) print 'late' end)\n")
  end)

  it("end with the reader of the output", function()
    for _, input in ipairs { "=1", "print(1)" } do
      local r = command.shell(("yes '%s' | head -n 20000 | \"$A\" -i | head -n 1"):format(input))
      assert.same({ "1\n", "" }, { r.out, r.err })
    end
  end)

  it("have no local variables of earlier ones", function()
    answers("nil\n", "local x = 1\n=x\n")
  end)
end)

describe("the script before the inputs", function()
  it("leaves its globals, and its arguments", function()
    local path = command.temp [[local secret = 1; known, first = 2, ...]]
    answers("2\ta\tnil\n" .. path .. "\ta\n", "=known, first, secret\n=arg[0], arg[1]\n",
      path .. " a")
    answers("3\t-e\n", "=x, arg[0]\n", "-e 'x = #arg + #{...} + 1' w")
    answers("-i\t0\n", "=arg[0], #arg\n")
  end)

  it("may return an agent, which is `agent`", function()
    local path = command.temp [[return require "agenthost".agent { model = "demo/echo" }]]
    answers("hello\n", "=agent:run 'hello'\n", path)
  end)

  it("has neither `ah` nor a part of the program among its globals", function()
    local path = command.temp [[
      local names = {} for k in pairs(_G) do names[k] = true end before = names]]
    answers("ah\nbefore\n", [[
do
  local new = {} for k in pairs(_G) do new[#new + 1] = not before[k] and k or nil end
  table.sort(new) print(table.concat(new, "\n"))
end
]], path)
  end)

  it("ends the command if it fails", function()
    local r = piped("=1\n", command.temp "local function f() error 'bad' end f()")
    assert.same({ "", 1 }, { r.out, r.code })
    has(r.err, ": bad\nstack traceback:\n")
    has_not(r.err, "agenthost/command")
    r = piped("=1\n", command.temp "x = = 1")
    assert.same({ "", 1 }, { r.out, r.code })
    r = piped("=1\n", "-e 'return ah.agent {}'")
    assert.same({ "", 1 }, { r.out, r.code })
    has(r.err, "no model")
    assert.equal(2, piped("", "nowhere.lua").code)
  end)

  it("cannot be read from the standard input, and prints no JSON", function()
    for _, words in ipairs { "-", "--json", "--jsonl" } do
      local r = piped("=1\n", words)
      assert.same({ "", 2 }, { r.out, r.code })
      has(r.err, "-i ")
    end
  end)
end)

describe("values", function()
  it("are shown with sorted fields and quoted strings", function()
    answers('{ 1, "x\\n\\x1b\\"\\\\", [2.5] = {}, a = 1, ["end"] = 3, ["n o"] = 2, [true] = 1 }\n',
      "={ 1, 'x\\n\\27\"\\\\', a = 1, ['n o'] = 2, ['end'] = 3, [2.5] = {}, [true] = 1 }\n")
    answers('{ "\\xff\\u202e" }\n', "={ '\\xff\\u{202e}' }\n")
    answers('{\n  a = {\n    "' .. ("x"):rep(75) .. '"\n  }\n}\n', "={ a = { ('x'):rep(75) } }\n")
  end)

  it("have limits", function()
    answers("{ t = <cycle> }\n", "t = {}\nt.t = t\n=t\n")
    answers("{ { { { {...} } } } }\n", "={{{{{1}}}}}\n")
    local r = piped("t = {} for i = 1, 1e6 do t[i] = i end\n=t\n"
      .. "t = {} for i = 1, 1e5 do t['k' .. i] = 1 end\n=t\n")
    has(r.out, "  50,\n  ...(999950 more)\n}\n")
    has(r.out, "  ...(99950 more)\n}\n")
    answers('{\n  "' .. ("é"):rep(100) .. '"...(1000 bytes)\n}\n', "={ ('é'):rep(500) }\n")
    r = piped("t = {} for i = 1, 60 do t[i] = {} for j = 1, 60 do t[i][j] = {} end end\n=t\n")
    assert.is_true(#r.out < 20000)
  end)

  it("call no metamethods but __tostring", function()
    answers("{ 1 }\n",
      "=setmetatable({ 1 }, { __index = error, __len = error, __pairs = error })\n")
    answers("{ me }\tme\n",
      "m = setmetatable({}, { __tostring = function() return 'me' end })\n={ m }, m\n")
    has(piped("={ print, io.stdout, ah.agent { model = 'demo/echo' } }\n").out, "agent demo/echo")
  end)
end)

describe("in a terminal", function()
  it_if("inputs are edited, and printed above", function()
    local t = start()
    answered(t, "=40+12\127\r", "41")
    typed(t, "for i = 1, 2 do\r", ">> ")
    answered(t, "print(i * 10)\rend\r", "20")
    answered(t, "error 'boo'\r", "main chunk")
    local shown = quit(t)
    has(shown, "> =40+1\n41\n> for i = 1, 2 do\n>> print(i * 10)\n>> end\n10\n20\n> error 'boo'\n"
      .. "input:1: boo\nstack traceback:\n")
  end)

  it_if("a hostile value is shown and not obeyed", function()
    local t = start()
    answered(t, "='\\27]0;pwned\\7'\r", "pwned\\x07")
    answered(t, "error('\\27]0;taken\\7', 0)\r", "taken\\x07")
    has_not(t.all, "\27]0")
    quit(t)
  end)

  it_if("Ctrl-C ends what the input does, and gives the prompt back", function()
    local t = start()
    for _, code in ipairs { "ah.sleep(1000)", "while true do end",
      "ah.all { function() ah.sleep(1000) end, function() while true do ah.yield() end end }",
      "ah.spawn(function() while true do end end):await()",
      "coroutine.wrap(function() while true do end end)()" } do
      typed(t, ("print('be' .. 'gun') %s\r"):format(code), "begun")
      typed(t, "\3", "> ")
      answered(t, "=6*7\r", "42")
    end
    quit(t)
  end)

  it_if("Ctrl-C cancels a run", function()
    local t = start()
    typed(t, "tool = ah.tool { name = 'w', description = 'Waits.', params = {}, handler = "
      .. "function() print('be' .. 'gun') ah.sleep(1000) end }\r", "> ")
    typed(t, "=ah.run { model = 'demo/tools', tools = { tool }, 'hi' }\r", "begun")
    answered(t, "\3", "cancelled")
    answered(t, "=6*7\r", "42")
    quit(t)
  end)

  it_if("a second Ctrl-C ends the process if the code does not end", function()
    local t = start()
    typed(t, "while true do pcall(function() print('be' .. 'gun') while true do end end) end\r",
      "begun")
    typed(t, "\3", "begun")
    t.pty:write "\3"
    assert.equal(130, (finish(t)))
  end)

  it_if("SIGTERM ends the command at the prompt and in code", function()
    for _, code in ipairs { "print('be' .. 'gun')", "print('be' .. 'gun') while true do end",
      "print('be' .. 'gun') ah.sleep(1000)" } do
      local t = start { "-e", "local f = io.open '/proc/self/stat' print('pid ' .. f:read 'n')" }
      local pid = t.all:match "pid (%d+)"
      typed(t, code .. "\r", "begun")
      assert(os.execute("kill -TERM " .. pid))
      assert.equal(143, (finish(t)))
    end
  end)

  it_if("Ctrl-C drops what was typed", function()
    local t = start()
    typed(t, "for i = 1, 2 do\r", ">> ")
    typed(t, "\3", "> ")
    typed(t, "nonsense nonsense\3", "> ")
    answered(t, "=6*7\r", "42")
    quit(t)
  end)

  it_if("tasks go on while a line is typed, and print above it", function()
    local t = start()
    typed(t, "t = ah.spawn(function() ah.sleep(0.2) print('from' .. ' the task') end)\r=6",
      "from the task")
    answered(t, "*7\r", "42")
    has(quit(t), "from the task\n> =6*7\n42")
  end)

  it_if("lines are kept for the next session, whole, for the user only", function()
    local t, state = start()
    typed(t, "x = {\r", ">> ")
    answered(t, "41 } print(6 * 7)\r", "42")
    quit(t)
    local pipe <close> = io.popen(("stat -c %%a %s/agenthost/repl_history"):format(state))
    assert.equal("600", pipe:read "l")
    t = start(nil, nil, state)
    answered(t, "\27[A\r", "42")
    answered(t, "=x[1] + 2\r", "43")
    quit(t)
  end)

  it_if("Tab completes globals, fields and methods, and calls nothing", function()
    local t = start { "-e", [[
      word_one = { alpha = 1, beta = function() end, ["no name"] = 1 }
      trap = setmetatable({}, { __index = function() os.exit(9) end })
      child = setmetatable({}, { __index = word_one }) agent = ah.agent { model = "demo/echo" }]] }
    answered(t, "=word_o\t.al\t + 41\r", "42")
    answered(t, "=('x'):rep(1), child.be\t == word_one.beta\r", "x\ttrue")
    typed(t, "=word_one:\t", "word_one:beta")
    typed(t, "\3=trap.x\t.y\t", "trap.x.y")
    typed(t, "\3=agent:tran\t", "agent:transcript")
    typed(t, "\3=ah.js\t", "ah.json")
    typed(t, "\3=nothing.at.al\t", "nothing.at.al")
    t.pty:write "\3"
    answered(t, "=6*7\r", "42")
    quit(t)
  end)

  it_if("a dumb terminal gets no sequences", function()
    local t = start(nil, "dumb")
    answered(t, "=6*7\r", "42")
    typed(t, "for i = 1, 2 do\r", ">> ")
    typed(t, "print(i)\rend\r", "2")
    for _, code in ipairs { "while true do end", "ah.sleep(1000)" } do
      typed(t, ("print('be' .. 'gun') %s\r"):format(code), "begun")
      typed(t, "\3", "> ")
      has_not(t.all, "> > ")
    end
    answered(t, "=6*7\r", "42")
    t.pty:write "\4"
    local code, all = finish(t)
    assert.equal(0, code)
    has_not(all, "\27")
  end)
end)
