-- agenthost chat (lua/agenthost/command/chat.lua, chat/loop.lua): from pipes and in a terminal.
local command = require "support.command"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, finish, quit = typing.it(it, pending), typing.finish, typing.quit

after_each(command.tidy)

-- An agent script; the model is the code of a list of turns.
local function script(turns, fields)
  return command.temp(([[
local ah = require "agenthost"
return ah.agent { model = ah.scripted { %s }, %s }]]):format(turns, fields or ""))
end

-- Returns the result of these lines from a pipe.
local function piped(lines, words, state)
  return command.shell(("export XDG_STATE_HOME=%s; \"$A\" chat %s <%s"):format(
    state or command.folder(), words, command.temp(lines)))
end

-- Types, and reads until the part is there, behind what was read before.
local function typed(t, bytes, part)
  t.pty:write(bytes)
  typing.read(t, part)
  local _, last = t.all:find(part, 1, true)
  t.screen:feed(t.all:sub(1, last))
  t.all = t.all:sub(last + 1)
end

-- Starts a chat in a terminal, and reads its prompt.
local function start(words, state, term)
  local t = typing.command({ "-q", "chat", table.unpack(words) },
    { env = { "TERM=" .. (term or "xterm"), "XDG_STATE_HOME=" .. (state or command.folder()) } })
  typed(t, "", "> ")
  return t
end

-- Ends the chat. Returns the screen.
describe("a chat from a pipe", function()
  it("answers line by line, without prompts", function()
    local r = piped("One\n\nTwo *2*\n", "-m demo/echo --no-store")
    assert.same({ "One\nTwo *2*\n", "", 0 }, { r.out, r.err, r.code })
  end)

  it("goes on with the last one of the folder", function()
    local state = command.folder()
    piped("My name is Ann.\n", "-m demo/echo", state)
    assert.equal("Who?\n", piped("Who?\n", "-c", state).out)
    local shown = command.shell(("XDG_STATE_HOME=%s \"$A\" show"):format(state)).out
    has(shown, "My name is Ann.")
    has(shown, "Who?")
  end)

  it("talks with the agent of a script, which is kept, and which -c finds", function()
    local state, path = command.folder(), script '"One.", "Two."'
    local r = piped("a\nb\n", path, state)
    assert.same({ "One.\nTwo.\n", "", 0 }, { r.out, r.err, r.code })
    has(command.shell(("XDG_STATE_HOME=%s \"$A\" list"):format(state)).out, "a")
    assert.equal("One.\n", piped("c\n", "-c " .. path, state).out)
    local other = piped("c\n", "-c -m demo/echo", state)
    assert.equal(2, other.code)
    has(other.err, "no prompt or chat of this folder")
  end)

  it("passes words to the script", function()
    local path = command.temp [[
local ah = require "agenthost"
return ah.agent { model = ah.scripted { table.concat({ ... }, "+") .. " " .. arg[1] } }]]
    assert.equal("x+y x\n", piped("a\n", path .. " x y").out)
  end)

  it("has a failure as its exit code, and goes on", function()
    local r = piped("a\nb\n", script([[{ calls = { { name = "nothing" } } }, "Done."]],
      "max_iterations = 1"))
    assert.equal(1, r.code)
    has(r.out, "Tool loop exceeded maximum iterations (1)")
    has(r.out, "Done.")
  end)

  it("says what is wrong with its line", function()
    local function refused(words, part)
      local r = piped("a\n", words)
      assert.equal(2, r.code, r.err)
      has(r.err, part)
    end
    refused("", "no model is chosen")
    refused("", "Without key or cost:  agenthost chat -m demo/tools\n")
    refused("hello", "what the model is to read is typed in the chat")
    local folder = command.folder()
    command.write(folder .. "/agent.lua", "")
    refused(folder .. "/", "agenthost chat " .. folder .. "/agent.lua\n")
    refused("/nowhere/agent.lua", "/nowhere/agent.lua")
    refused(command.temp "return 1", "returned no agent")
    refused("-s x " .. script '"a"', "--system is for a chat without a script")
    refused("-c --no-store -m demo/echo", "give one of them")
    local r = piped("a\n", command.temp "local function f() error 'no' end\nf()")
    assert.equal(1, r.code)
    has(r.err, ":1: no\nstack traceback:")
    has(r.err, ":2: in ")
    has_not(r.err, "agenthost/command")
  end)
end)

describe("commands of a chat", function()
  it("are listed, and unknown ones are not sent to a model", function()
    local r = piped("/help\n/hlp\n/quit\nnever\n", "-m demo/echo --no-store")
    has(r.out, "/show [N]")
    has(r.out, "There is no command /hlp (did you mean /help?)")
    has_not(r.out, "never")
  end)

  it("leave paths and doubled marks to the model", function()
    assert.equal("/usr/bin is a path\n/help\n!x\n",
      piped("/usr/bin is a path\n//help\n!!x\n", "-m demo/echo --no-store").out)
  end)

  it("show tools, calls and the model", function()
    local path = script([[{ calls = { { name = "look", arguments = { at = "sky" } } } }, "Grey."]],
      [[tools = { ah.tool { name = "look", description = "Looks.", params = { at = "string" },
        handler = function() return "rain\nand wind" end } }]])
    local r = piped("a\n/show\n/show 1\n/show 2\n/tools\n/tools look\n/tools lok\n"
      .. "/model\n/model demo/echo\nyes\n", path)
    has(r.out, "[1] look at=sky -> rain ...\nGrey.\n")
    has(r.out, '[1] look\n{"at":"sky"}\n-> ok')
    has(r.out, "rain\nand wind")
    has(r.out, "there is no call 2; there are 1")
    has(r.out, 'look  Looks.\nlook  Looks.\n{"additionalProperties":false')
    has(r.out, "the model has no tool 'lok' (did you mean look?)")
    has(r.out, "model demo/echo\nyes\n")
  end)

  it("have a line for a call, with the first line of each argument", function()
    local r = piped("Write.\n", script([[{ calls = { { name = "write", arguments =
      { content = "one\ntwo", path = "a.txt" } } } }, "Done."]], [[tools = { ah.tool {
      name = "write", description = "Writes.", params = { content = "string", path = "string" },
      handler = function() return "kept\nin two lines" end } }]]))
    assert.equal("[1] write content=one ... path=a.txt -> kept ...\nDone.\n", r.out)
  end)

  it("run a command of the shell", function()
    local r = piped("!echo hi\n!exit 3\n", "-m demo/echo --no-store")
    assert.equal("hi\n(exit code 3)\n", r.out)
  end)

  it("let the model only read, until /go", function()
    local path = script([[{ calls = { { name = "read" }, { name = "write" } } }, "A plan.",
      { calls = { { name = "write" } } }, "Done."]],
      [[tools = { ah.tool { name = "read", description = "r", annotations = { read_only = true },
          handler = function() return "it reads" end },
        ah.tool { name = "write", description = "w",
          handler = function() return "it writes" end } }]])
    local r = piped("a\n/go\n", "--plan " .. path)
    has(r.out, "[1] read  -> it reads\n")
    has(r.out, "[2] write  -> Tool 'write' was not run: The person wants a plan first")
    has(r.out, "A plan.\n[3] write  -> it writes\nDone.\n")
    assert.equal(1, select(2, r.out:gsub("it writes", "")))
  end)
end)

describe("the project of a chat", function()
  local V1 = [[
local ah = require "agenthost"
local price = require "price"
return ah.agent { model = "demo/tools", tools = { ah.tool { name = "price", description = "Prices.",
  handler = function() return price end } } }]]

  local function project()
    local folder = command.folder()
    command.write(folder .. "/agent.lua", V1)
    command.write(folder .. "/price.lua", "return 30")
    return folder, ("export LUA_PATH='%s/?.lua;;'; "):format(folder)
  end

  it("is loaded again by /reload, or with --watch before an answer", function()
    local folder, path = project()
    local change = ("!echo 'return 40' > %s/price.lua\n"):format(folder)
    local function run(lines, words)
      local line = ('"$A" chat --no-store %s %s/agent.lua <%s'):format(words, folder,
        command.temp(lines))
      return command.shell(path .. line).out
    end
    local out = run("a\n" .. change .. "b\n/reload\nc\n", "")
    has(out, "price: 30\n[2] price  -> 30\n")
    has(out, "The model reads the same as before.\n[3] price  -> 40")
    command.write(folder .. "/price.lua", "return 30")
    out = run("a\n" .. change .. "b\n", "--watch")
    has(out, "price: 30\nThe project is loaded again.")
    has(out, "price: 40")
  end)

  it("stays as it is if a file of it is broken, which is named with its line", function()
    local folder, path = project()
    local out = command.shell(path .. ('"$A" chat --no-store %s/agent.lua <%s'):format(folder,
      command.temp(("a\n!echo 'x = = 1' > %s/price.lua\n/reload\nb\n"):format(folder)))).out
    has(out, "price.lua:1: unexpected symbol near '='")
    has(out, "[2] price  -> 30")
  end)

  it("needs a script", function()
    has(piped("/reload\n", "-m demo/echo --no-store").out, "There is no project to load again")
    has(piped("a\n", "-m demo/echo --no-store --watch").err, "--watch is for the files of a script")
  end)
end)

describe("the cost of a chat", function()
  it("is that of the conversation, of today and of the folder", function()
    local path = script [[{ text = "One.", usage = { input = 1200, output = 3, cost = 0.0042 } }]]
    local state = command.folder()
    local r = piped("a\n/cost\n", path, state)
    has(r.out, "this conversation $0.0042, 1 turn, 1,200 tokens in (0 cached), 3 out\n")
    has(r.out, "today             $0.0042, 1 turn")
    r = piped("a\n/cost\n", path, state)
    has(r.out, "this conversation $0.0042, 1 turn")
    has(r.out, "today             $0.0084, 2 turns")
    has(r.out, "this folder       $0.0084, 2 turns")
  end)

  it("is unknown without a price", function()
    local r = piped("a\n/cost\n", "-m demo/echo --no-store")
    has(r.out, "this conversation 1 turn, ")
  end)
end)

describe("instructions of the folder", function()
  it("are in the system text of a new chat, and in /context", function()
    local folder = command.folder()
    command.write(folder .. "/AGENTS.md", "Use tabs.")
    local out = command.shell(("cd %s && \"$A\" chat --no-store -m demo/echo <%s"):format(folder,
      command.temp "/context\n")).out
    has(out, "AGENTS.md     AGENTS.md, 9 bytes")
  end)
end)

describe("a chat in a terminal", function()
  it_if("names the instructions that the model has read", function()
    local folder = command.folder()
    command.write(folder .. "/AGENTS.md", "Use tabs.")
    local line = ("cd %s && exec %s chat --no-store -m demo/echo"):format(folder, command.BINARY)
    local t = typing.start { "/bin/sh", "-c", line }
    typed(t, "", "The model has read AGENTS.md, see /context.")
    typed(t, "", "> ")
    quit(t)
  end)

  it_if("answers with styles, below what was typed", function()
    local t = start { "-m", "demo/echo", "--no-store" }
    typed(t, "Hello **Ann**\r", "Ann\27[0m")
    has(quit(t), "> Hello **Ann**\nHello Ann")
  end)

  it_if("takes what is typed while the script is loaded", function()
    local path = command.temp [[
local ah = require "agenthost"
repeat ah.sleep(0.01) until io.open(arg[1])
return ah.agent { model = "demo/echo" }]]
    local gate = command.temp()
    os.remove(gate)
    local t = start { path, gate }
    typed(t, "Hel", "Hel")
    command.write(gate, "")
    typed(t, "lo\r", "JHello") -- the answer
    has(quit(t), "> Hello\nHello")
    t = typing.command({ "chat", command.temp "error 'no agent today'" },
      { env = { "TERM=xterm", "XDG_STATE_HOME=" .. command.folder() } })
    local code, _, shown = finish(t)
    assert.equal(1, code)
    has(shown, "no agent today")
    has_not(shown, "agenthost/command")
  end)

  it_if("ends an answer by Ctrl-C, keeps its text, and ends itself at an empty line", function()
    local path = command.temp [[
local ah = require "agenthost"
return ah.agent { model = ah.adapter { name = "demo/slow", answer = function(_, out)
  out:text "It begins"
  ah.sleep(100)
end } }]]
    local t = start { path }
    typed(t, "go\r", "It begins")
    typed(t, "a draft", "a draft")
    typed(t, "\3", "(ended)")
    typed(t, "", "a draft") -- what was typed meanwhile is there
    t.pty:write "\3\3"
    local code, all, shown = finish(t)
    assert.equal(0, code, all)
    has(shown, "It begins\n(ended)")
  end)

  it_if("takes what is typed during an answer behind the present step", function()
    local path = command.temp [[
local ah = require "agenthost"
local n = 0
return ah.agent { model = ah.adapter { name = "demo/slow", answer = function(request, out)
  n = n + 1
  out:text("Answer " .. n)
  if n == 1 then
    repeat ah.sleep(0.01) until io.open(arg[1])
  end
end } }]]
    local gate = command.temp()
    os.remove(gate)
    local t = start { path, gate }
    typed(t, "one\r", "Answer 1")
    typed(t, "two\r", "It is read after the present step.")
    command.write(gate, "")
    typed(t, "", "Answer 2")
    quit(t)
  end)

  it_if("answers what is typed at the very end of an answer", function()
    local turns = {}
    for i = 1, 10 do
      turns[i] = ('"Answer %d."'):format(i)
    end
    local t = start { script(table.concat(turns, ", ")) }
    for i = 1, 10 do
      typed(t, "go on\r", ("Answer %d."):format(i))
    end
    quit(t)
  end)

  it_if("completes commands, their words and paths", function()
    local t = start { "-m", "demo/echo", "--no-store" }
    typed(t, "hi\r", "hi\r\n") -- from now on there is an agent
    typed(t, "", "hi")
    typed(t, "/tools gre\t", "grep")
    typed(t, "\21/mod\t", "/model ")
    typed(t, "demo/ec\t", "demo/echo")
    typed(t, "\21@spec/support/comm\t", "spec/support/command.lua")
    t.pty:write "\21"
    quit(t)
  end)

  it_if("shows the last question and answer of a conversation that goes on", function()
    local state = command.folder()
    piped("What now?\n", "-m demo/echo", state)
    local t = start({ "-c" }, state)
    typed(t, "", "What now?")
    typed(t, "More\r", "More")
    typed(t, "", "More")
    has(quit(t), "goes on.\n> What now?\nWhat now?\n")
  end)
end)

describe("a message that comes when the run is over already", function()
  it("is answered all the same", function()
    local r = command.script [[
      local ah = require "agenthost"
      local use, later
      local loaded = {}
      function use(name)
        loaded[name] = loaded[name] or assert(loadfile("lua/agenthost/command/"
          .. name:gsub("%.", "/") .. ".lua"))(ah, use, nil, later)
        return loaded[name]
      end
      function later(name)
        return setmetatable({}, { __index = function(_, key) return use(name)[key] end })
      end
      local loop = use "chat.loop"
      local agent = ah.agent { model = ah.scripted { "One.", "Two." } }
      local nothing = setmetatable({}, { __index = function() return function() end end })
      local chat = { agent = agent, output = nothing, inbox = ah.channel(10), typed = {} }
      local reply = agent:run "First"
      chat.run = true -- its end is not taken yet
      loop.say(chat, "Second")
      loop.on.done(chat, true, reply)
      local _, _, second = table.unpack(chat.inbox:receive())
      print(reply, second)
      loop.on.done(chat, true, second)
      print(chat.run)]]
    assert.same({ "One.\tTwo.\nnil\n", "", 0 }, { r.out, r.err, r.code })
  end)
end)
