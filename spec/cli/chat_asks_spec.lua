-- Asks in a chat: what is shown of them, how a person responds, what is always allowed
-- (lua/agenthost/command/chat/asks.lua, asking.lua, allowed.lua).
local ah = require "agenthost"
local command = require "support.command"
local screen = require "support.screen"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, read = typing.it(it, pending), typing.read

local home -- the folder of the chat: files, and the state with the store

before_each(function()
  home = command.folder()
end)

after_each(command.tidy)

local function file(name, text)
  command.write(home .. "/" .. name, text)
end

-- Runs a line of a shell in the folder.
local function at_home(text)
  return command.shell(("export XDG_STATE_HOME=%s/state; cd %s; %s"):format(home, home, text))
end

-- Starts a chat in the folder.
local function start(words, options)
  options = options or {}
  options.bells = true
  local t = typing.start({ "/bin/sh", "-c",
    ("echo pid $$; cd %s; XDG_STATE_HOME=%s/state exec %s chat %s"):format(home, home,
    command.BINARY, words) }, options)
  read(t, options.first or "> ")
  t.pid = t.all:match "pid (%d+)"
  return t
end

-- Returns a chat with an agent whose turns are the Lua code of ah.scripted.
local function scripted(turns, tools, more)
  file("agent.lua", ([[
    local ah = require "agenthost"
    local function call(name, arguments) return { name = name, arguments = arguments } end
    return ah.agent { model = ah.scripted { %s }, tools = { %s }, %s
      policies = { function(call) if call.name ~= "free" then return "ask", "it is dear" end end } }
  ]]):format(turns, tools, more or ""))
  return start "agent.lua"
end

local PAY = [[ah.tool { name = "pay", description = "Pays.", params = { euros = "integer 1..50" },
  handler = function(args) return "paid " .. args.euros end }]]

-- Types, and reads until the part is there. t.before: what was read before.
local function typed(t, bytes, part)
  t.before = (t.before or "") .. t.all
  t.all = ""
  t.pty:write(bytes)
  return read(t, part)
end

-- Returns all that is or was on the screen, but for a sequence of which a part was read.
local function shown(t)
  local now = screen.new(80)
  now.bells = 0
  return now:feed(((t.before or "") .. t.all):gsub("\27[^%a]*$", "")):all()
end

-- Reads to the end: returns the exit code, the output, and all that was on the screen.
local function finish(t)
  t.all = (t.before or "") .. t.all
  local code, all = typing.finish(t)
  return code, all, t.screen:all()
end

-- Waits until no answer is at work. /model is refused before.
local function idle(t)
  repeat
    typed(t, "/model\r", "/model")
    while not t.all:find("odel [%w-]+/") and not t.all:find "Not while" do
      t.all = t.all .. assert(t.pty:read(1), "the chat has ended")
    end
  until not t.all:find "Not while"
end

local function quit(t)
  idle(t)
  t.pty:write "\4"
  local code, all, said = finish(t)
  assert.equal(0, code, all)
  return said
end

-- Waits until the store has an open ask, which is on the screen before; returns it.
local function recorded()
  local until_ = os.time() + typing.SECONDS
  local ask
  repeat
    assert(os.time() < until_, "no ask is in the store")
    ask = ah.json.decode(at_home('"$A" asks --json').out).asks[1]
  until ask
  return ask
end

local ASKED = "Allow it? [y/n"

describe("an approval", function()
  it_if("is shown with all arguments and the change, and rings the bell once", function()
    file("notes.txt", "one\ntwo\n")
    local t = start "-m demo/tools -t write_file"
    typed(t, 'write "notes.txt"\r', ASKED)
    typed(t, "y\r", "Replaced")
    has(quit(t), "write_file: it writes a file of this folder\n  path: notes.txt\n"
      .. "  changes notes.txt\n    --- a/notes.txt\n    +++ b/notes.txt\n    @@ -1,2 +1,1 @@\n"
      .. "    -one\n    -two\n    +notes.txt\n")
    assert.equal(1, t.screen.bells)
    assert.equal("notes.txt", command.contents(home .. "/notes.txt"))
  end)

  it_if("is given by an exact y alone", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }) } }, "Done."]], PAY)
    typed(t, "buy\r", ASKED)
    for _, line in ipairs { "", " y", "Y", "y y", "yep", "never", "/quit", "1" } do
      typed(t, line .. "\r", "That is no response.")
      read(t, ASKED)
    end
    typed(t, "?\r", "e  edit the arguments first")
    read(t, ASKED)
    typed(t, "y\r", "Done.")
    has(quit(t), "[1] pay euros=3 -> paid 3")
  end)

  it_if("can be refused with the reason, which the model reads", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }) } },
      { expect = { result = "Tool 'pay' was not run: not approved: too dear, use 2" },
        text = "Two then." }]], PAY)
    typed(t, "buy\r", ASKED)
    typed(t, "no, too dear, use 2\r", "Two then.")
    quit(t)
  end)

  it_if("can have other arguments, which must fit the tool", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }) } }, "Done."]], PAY)
    typed(t, "buy\r", ASKED)
    typed(t, "e\r", '"euros": 3')
    read(t, "}")
    typed(t, "x\r", "the text is not JSON")
    typed(t, ("\127"):rep(40) .. '{"euros": 70}\r', "euros: ")
    typed(t, ("\127"):rep(40) .. '{"euros": 7}\r', "Done.")
    has(quit(t), "[1] pay euros=7 -> paid 7")
  end)

  it_if("goes back from the arguments without a text", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }) } }, "Done."]], PAY)
    typed(t, "buy\r", ASKED)
    typed(t, "e\r", '"euros": 3')
    t.pty:write(("\127"):rep(40) .. "\r")
    read(t, ASKED)
    typed(t, "n\r", "Done.")
    has(quit(t):gsub("\n", ""), "the user does not allow it")
  end)

  it_if("shows a long argument at the wish of the person, and nothing of it is obeyed", function()
    local t = scripted([[{ calls = { call("say", { ["na\nme"] = "\27[2J" .. ("line\n"):rep(100)
      .. "end" }) } }, "Done."]], [[ah.tool { name = "say", description = "Says.",
      schema = { type = "object" },
      handler = function() return "said" end }]])
    typed(t, "go\r", "Allow it? [y/n/a/e/s/?]")
    has(shown(t), "  na me: \\x1b[2Jline\n    line\n")
    has(shown(t), "bytes more; s shows them]")
    has_not(t.all, "end\r")
    typed(t, "s\r", "    end")
    read(t, ASKED)
    typed(t, "y\r", "Done.")
    quit(t)
  end)

  it_if("of a call with very many arguments can be shown, and refused", function()
    local t = scripted([[(function()
        local many = {}
        for i = 1, 3000 do many["n" .. i] = ("\27"):rep(500) end
        return { calls = { call("say", many) } }
      end)(), "Done."]], [[ah.tool { name = "say", description = "Says.",
      schema = { type = "object" }, handler = function() return "said" end }]])
    typed(t, "go\r", "too long to be shown]")
    read(t, ASKED)
    typed(t, "n\r", "Done.")
    quit(t)
  end)

  it_if("of changes shows the result and the changes, and commits what was shown", function()
    file("agent.lua", [[
      local ah = require "agenthost"
      local put = ah.tool { name = "put", description = "Puts.", handler = function(_, ctx)
        ctx.filesystem:write("list.txt", "milk\n") return "put it" end }
      return ah.agent { tools = { put }, resources = { filesystem = ah.filesystem { root = "." } },
        policies = { { after = function(call)
          if #call:changes() > 0 then return "ask", "it changes files" end end } },
        model = ah.scripted { { calls = { { name = "put" } } }, "Done." } }]])
    local t = start "agent.lua"
    typed(t, "go\r", "Allow it? [y/n/?]")
    has(shown(t), "put: it changes files\n  result: put it\n  adds ")
    has(shown(t), "    +milk\n")
    typed(t, "a\r", "It cannot be allowed for good: ")
    read(t, "Allow it?")
    typed(t, "y\r", "Done.")
    quit(t)
    assert.equal("milk\n", command.contents(home .. "/list.txt"))
  end)

  it_if("is refused by Ctrl-C, which ends the answer, and Ctrl-D, which ends the chat", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }) } },
      { calls = { call("pay", { euros = 4 }) } }, "Never."]], PAY)
    typed(t, "buy\r", ASKED)
    typed(t, "y\3", "(ended)")
    idle(t)
    typed(t, "buy\r", ASKED)
    t.pty:write "\4"
    local _, _, said = finish(t)
    has_not(said, "paid")
    has_not(said, "Never.")
  end)

  it_if("waits for its turn among others, and what was typed comes back", function()
    local t = scripted([[{ calls = { call("wait", { n = 1 }), call("wait", { n = 2 }),
      call("wait", { n = 3 }) } }, "Done."]], [[ah.tool { name = "wait", description = "Waits.",
      parallel = true, params = { n = "integer" },
      handler = function(args) return "n" .. args.n end }]])
    typed(t, "go\r", "Allow it? (1 of 3) [y/n/a/e/?]")
    typed(t, "y\r", "Allow it? (2 of 3)")
    typed(t, "n\r", "Allow it? (3 of 3)")
    typed(t, "y\r", "Done.")
    local said = quit(t)
    has(said, "wait n=1 -> n1")
    has(said, "wait n=2 -> Tool 'wait' was not run")
    has(said, "wait n=3 -> n3")
    assert.equal(1, t.screen.bells)
  end)

  it_if("keeps what was being typed, and does not take it for a response", function()
    local t = scripted([[{ calls = { call("free", {}), call("pay", { euros = 3 }) } }, "Done."]],
      PAY .. [[, ah.tool { name = "free", description = "Waits.", handler = function()
        repeat ah.sleep(0.01) until io.open("typed") return "ok" end }]])
    file("go", "")
    typed(t, "go\r", "> ")
    t.pty:write "half a wor"
    read(t, "half a wor")
    file("typed", "")
    read(t, ASKED)
    local n = 0
    repeat -- the response may come too soon
      typed(t, "y\r", "\n")
      local ok = pcall(read, t, n == 0 and "please respond once more" or "Done.")
      n = n + 1
    until ok and n > 1 or n > 2
    typed(t, "d", "half a word")
    t.pty:write "\21"
    quit(t)
  end)
end)

describe("in a dumb terminal", function()
  it_if("asks are lines, without a bell", function()
    file("agent.lua", ([[
      local ah = require "agenthost"
      return ah.agent { tools = { %s }, policies = { function() return "ask", "it is dear" end },
        model = ah.scripted { { calls = { { name = "pay", arguments = { euros = 3 } } } },
          "Done." } }
    ]]):format(PAY))
    local t = start("agent.lua", { env = { "TERM=dumb" } })
    typed(t, "buy\r", ASKED)
    typed(t, "e\r", '"euros": 3')
    typed(t, '{"euros": 8}\r', "paid 8")
    read(t, "Done.")
    idle(t)
    t.pty:write "\4"
    local _, all = finish(t)
    has_not(all, "\27")
    assert.equal(0, t.screen.bells)
  end)
end)

describe("an ask that is closed elsewhere", function()
  local QUESTION = [[ah.tool { name = "free", description = "Orders.", durable = true,
    handler = function(_, ctx)
      local cups, err = ctx:ask { question = "How many cups?", schema = { type = "integer" }, %s }
      return cups and "cups: " .. cups or "no: " .. err.code
    end }]]

  -- Responds to the only open ask from another process.
  local function respond(value)
    local ask = recorded()
    local r = at_home(('"$A" respond %s %s %s --by Ann'):format(ask.conversation, ask.ask, value))
    assert.equal(0, r.code, r.err)
  end

  it_if("leaves the prompt, says who responded, and the draft is back", function()
    local t = start "-m demo/tools -t bash"
    typed(t, 'run "x"\r', ASKED)
    respond [['{"approved": false, "why": "not on a Friday"}']]
    read(t, "bash: refused by Ann: not on a Friday")
    read(t, "The tools said:")
    idle(t)
    typed(t, 'run "x"\r', ASKED)
    respond "yes"
    read(t, "bash: allowed by Ann")
    read(t, "give either command")
    quit(t)
  end)

  it_if("may be a question of a durable handler, or one whose time is over", function()
    local t = scripted([[{ calls = { call "free" } }, "Done."]], QUESTION:format "",
      "store = 'state/agenthost/store.db', ")
    typed(t, "go\r", "(integer): ")
    typed(t, "4\r", "cups: 4")
    quit(t)
    t = scripted([[{ calls = { call "free" } }, "Done."]], QUESTION:format "timeout = 0.2", "")
    typed(t, "go\r", "free: its time is over")
    read(t, "no: deadline_exceeded")
    quit(t)
  end)

  it_if("may be one whose call is over", function()
    local t = scripted([[{ calls = { call "pay" } }, "Done."]], [[ah.tool { name = "pay",
      description = "Pays.", timeout = 0.3, handler = function(_, ctx)
        return ctx:ask { question = "Sure?" } end }]])
    typed(t, "go\r", ASKED)
    typed(t, "y\r", "Sure?")
    read(t, "pay: its call is over")
    quit(t)
  end)
end)

describe("a question of a handler", function()
  -- Returns a chat whose handler asks with these fields.
  local function asks(fields)
    return scripted([[{ calls = { call("free", {}) } }, "Done."]], ([[ah.tool { name = "free",
      description = "Asks.", handler = function(_, ctx)
        local value, err = ctx:ask { %s }
        return value ~= nil and ah.json.encode(value) or err.message
      end }]]):format(fields))
  end

  it_if("is asked for field by field, with defaults", function()
    local t = asks [[question = "Who?\n[1] pay", params = { name = "string",
      ["age?"] = "integer 0..150", ["color?"] = "red|blue", ["tall?"] = "boolean",
      vip = "boolean = true" }]]
    typed(t, "go\r", "name (string): ")
    typed(t, "\r", "Enter alone is no response")
    typed(t, "Ann\r", "age (integer; may be empty): ")
    typed(t, "old\r", "it must be a number")
    typed(t, "151\r", "150")
    typed(t, "7\r", "color (red, blue; may be empty): ")
    typed(t, "green\r", "it must be one of them")
    typed(t, "blue\r", "tall (y or n; may be empty): ")
    typed(t, "\r", "vip (y or n; default true): ")
    typed(t, "n\r", "Done.")
    local said = quit(t)
    has(said, "Question: Who?\n  [1] pay\n")
    has(said, [[-> {"age":7,"color":"blue","name":"Ann","vip":false}]])
  end)

  it_if("may have one value, JSON, or a default", function()
    local t = asks [[question = "Days?", schema = { type = "array", items = { type = "string" } },
      default = { "Monday" }]]
    typed(t, "go\r", '(JSON; default ["Monday"]): ')
    typed(t, "Friday\r", "not JSON")
    typed(t, "[1]\r", "string")
    typed(t, "\r", "Done.")
    has(quit(t), '-> ["Monday"]')
  end)

  it_if("hides a secret, and keeps it out of the history", function()
    local t = asks [[question = "Password?", secret = true]]
    typed(t, "go\r", "(string): ")
    typed(t, "hunter2\r", "Done.")
    has(shown(t), '-> "hunter2"') -- the handler's own words
    quit(t)
    has_not(command.contents(home .. "/state/agenthost/chat_history"), "hunter2")
  end)
end)

describe("what is always allowed", function()
  local function allow(t, words)
    typed(t, "a\r", words)
    typed(t, "y\r", "> ")
  end

  local RUN = [[{ calls = { call("bash", { command = "echo one", timeout = 9 }) } }, "Once.",
    { calls = { call("bash", { command = "echo one" }) } }, "Twice.",
    { calls = { call("bash", { command = "echo  one" }) } }, "Other."]]

  it_if("of bash is the exact command, of this script, in this folder", function()
    local t = scripted(RUN, 'ah.builtin("bash")[1]')
    typed(t, "go\r", ASKED)
    typed(t, "a\r", 'bash with exactly this command: "echo one", of the script ')
    typed(t, "n\r", "Nothing is kept.")
    allow(read(t, ASKED), "Keep that? [y/n]")
    read(t, "Once.")
    idle(t)
    typed(t, "go\r", "Allowed in this folder: bash with exactly this command")
    read(t, "Twice.")
    idle(t)
    typed(t, "go\r", ASKED)
    typed(t, "n\r", "Other.")
    quit(t)
    t = start "--no-store agent.lua" -- a store hides its folder, with the list, from tools
    read(t, "The list of allowed calls is not used: it is in the folder of the tools")
    quit(t)
    t = start "agent.lua"
    read(t, "1 call is always allowed in this folder, see /allowed.")
    typed(t, "/allowed\r", '1  bash with exactly this command: "echo one"')
    typed(t, "/allowed remove 2\r", "there is no call 2 in the list")
    typed(t, "/allowed remove\r", "/allowed takes nothing, or: remove N")
    typed(t, "/allowed remove 1\r", "Asked about again: bash with exactly")
    typed(t, "go\r", ASKED)
    typed(t, "n\r", "Once.")
    quit(t)
  end)

  it_if("is never a command with a secret, nor an unclear host", function()
    local t = scripted([[{ calls = {
      call("bash", { command = "echo '\27]0;x\7\u{202e}'\n: [secret]" }),
      call("http_fetch", { url = "http://a@b.example/" }),
      call("http_fetch", { url = "https://B.Example?q" }) } }, "Done."]],
      [[ah.builtin("bash")[1], ah.tool { name = "http_fetch", description = "Fetches.",
      params = { url = "string" }, handler = function() return "a page" end }]])
    typed(t, "go\r", "Allow it? [y/n/e/?]")
    typed(t, "a\r", "It cannot be allowed for good: the command has a secret")
    read(t, "Allow it?")
    typed(t, "e\r", "}")
    typed(t, ("\127"):rep(90) .. '{"command": "true \\u001b[2J\\u202e"}\r', "Allow it? [y/n/e/?]")
    typed(t, "n\r", "B.Example?q")
    read(t, "Allow it? [y/n/a/e/?]")
    typed(t, "a\r", "http_fetch from b.example, of the script ")
    typed(t, "y\r", "Done.")
    has(quit(t), "command: echo '\\x1b]0;x\\x07\\u202e'\n    : [secret]\n")
  end)

  it_if("of a script's tool is that tool, and applies to those that wait", function()
    local t = scripted([[{ calls = { call("pay", { euros = 3 }), call("pay", { euros = 4 }) } },
      "Done."]],
      (PAY:gsub("description", "parallel = true, description", 1)))
    typed(t, "go\r", "Allow it? (1 of 2)")
    typed(t, "a\r", "pay with any arguments, of the script ")
    typed(t, "y\r", "Done.")
    local said = quit(t)
    has(said, "Allowed in this folder: pay with any arguments")
    has(said, "paid 4")
  end)

  it_if("is kept for its owner alone, and not used if it was changed", function()
    local t = start "-m demo/tools -t write_file"
    typed(t, 'write "a"\r', ASKED)
    allow(t, "write_file for all files of the folder")
    quit(t)
    local path = home .. "/state/agenthost/allowed"
    assert.equal("600\n", at_home("stat -c %a " .. path).out)
    local text = command.contents(path)
    command.write(path, (text:gsub("write_file", "edit_file")))
    t = start "-m demo/tools -t edit_file,write_file"
    read(t, "The list of allowed calls is not used: another program has changed it")
    typed(t, 'write "a"\r', ASKED)
    typed(t, "a\r", "Keep that?")
    typed(t, "y\r", "allowed this once, and not kept")
    typed(t, "\3", "> ")
    quit(t)
  end)

  it_if("does not grow during a conversation by what another program adds", function()
    local t = start "-m demo/tools -t write_file"
    local other = start "-m demo/tools -t write_file"
    typed(other, 'write "a"\r', ASKED)
    allow(other, "write_file for all files of the folder")
    quit(other)
    typed(t, 'write "b"\r', ASKED)
    typed(t, "n\r", "> ")
    quit(t)
  end)
end)

describe("an unfinished run", function()
  -- Returns a chat that begins after one was killed while it asked.
  local function killed()
    local t = start "-m demo/tools -t bash"
    typed(t, 'run "x"\r', ASKED)
    recorded()
    assert(os.execute("kill -9 " .. t.pid))
    finish(t)
    return start("-c", { first = "Go on with it? [y/n]" })
  end

  it_if("goes on at the wish of the person, who is asked again", function()
    local t = killed()
    has(shown(t), 'Its question: run "x"')
    typed(t, "\r", "Go on with it?")
    typed(t, "y\r", "Allow it?")
    typed(t, "n, later\r", "not approved: later")
    quit(t)
  end)

  it_if("is left, too, when the terminal is gone", function()
    local t = start "-m demo/tools -t bash"
    typed(t, 'run "x"\r', ASKED)
    recorded()
    t.pty:close()
    at_home(("while test -d /proc/%s && ! grep -q ') Z' /proc/%s/stat; do sleep 0.02; done"):format(
      t.pid, t.pid))
    t = start("-c", { first = "Go on with it? [y/n]" })
    typed(t, "n\r", "> ")
    quit(t)
  end)

  it_if("is ended otherwise", function()
    local t = killed()
    typed(t, "n\r", "> ")
    quit(t)
    assert.equal("Nothing waits for a response.\n", at_home('"$A" asks').out)
  end)

  it_if("goes on by itself in a pipe", function()
    local t = killed()
    typed(t, "\4", "")
    finish(t)
    local r = at_home('echo | "$A" chat -c')
    has(r.out, "there is no terminal on which a person could allow it")
  end)
end)
