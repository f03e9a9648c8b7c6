-- The commands of a chat that go back, fork, go on with another conversation, and export it:
-- lua/agenthost/command/chat/history.lua, conversations.lua, context.lua, export.lua; and the list
-- of --resume (pick.lua).
local ah = require "agenthost"
local command = require "support.command"
local programs = require "support.programs"
local typing = require "support.typing"

local has, has_not = command.has, command.has_not
local it_if, read, finish = typing.it(it, pending), typing.read, typing.finish
local quit = typing.quit

local home -- the folder of the spec: files, and the state with the store

before_each(function()
  home = command.folder()
end)

after_each(command.tidy)

local function file(name, text)
  command.write(home .. "/" .. name, text)
end

local function content(name)
  local f <close> = io.open(home .. "/" .. name)
  return f and f:read "a"
end

-- Runs a line of a shell in the folder.
local function at_home(text)
  return command.shell(("unset AGENTHOST_MODEL AGENTHOST_STORE; export XDG_STATE_HOME=%s/state; "
    .. "cd %s; %s"):format(home, home, text))
end

-- Returns the output of a chat that reads these lines from a pipe.
local function chat(words, ...)
  file("typed", table.concat({ ... }, "\n") .. "\n")
  local r = at_home(('"$A" chat %s <typed 2>&1'):format(words))
  return r.out, r.code
end

local function conversations(words)
  return ah.json.decode(at_home(('"$A" list --json %s'):format(words or "")).out).conversations
end

-- A script whose agent answers with these turns: Lua text.
local function agent(turns, more)
  file("agent.lua", ([[
    local ah = require "agenthost"
    local function write(text)
      return { calls = { { name = "write_file", arguments = { path = "a.txt", content = text } } } }
    end
    local slow = ah.tool { name = "slow", description = "Sleeps.",
      handler = function() print "asleep" ah.sleep(600) end }
    local ring = ah.tool { name = "ring", description = "Rings.", handler = function() end }
    local look = ah.tool { name = "look", description = "Looks.", handler = function() end,
      annotations = { read_only = true } }
    local tools = ah.builtin { write_file = { overwrite = true } }
    table.move({ slow, ring, look }, 1, 3, 2, tools)
    return ah.agent { model = ah.scripted { %s }, tools = tools,
      resources = { filesystem = ah.filesystem { root = "." } }, %s }]]):format(turns, more or ""))
end

local WRITES = 'write "one", "Wrote one.", write "two", "Wrote two.", "Third.", "Fourth."'

-- True if the parts stand in the text in this order.
local function in_order(text, ...)
  local at = 1
  for _, part in ipairs { ... } do
    local from, to = text:find(part, at, true)
    assert(from, ("no %q behind byte %d of:\n%s"):format(part, at, text))
    at = to + 1
  end
end

describe("/undo and /redo", function()
  it("take questions back with their files, and bring them back", function()
    agent(WRITES)
    in_order(chat("agent.lua", "first", "second", "/undo", "!cat a.txt; echo", "/undo",
      "!test -e a.txt || echo gone", "/redo", "!cat a.txt; echo", "/redo", "!cat a.txt; echo",
      "/redo"), "Wrote one.", "Wrote two.", "Taken back: second\na.txt is as it was\none\n",
      "Taken back: first\na.txt is removed\ngone\n",
      "Brought back: first\na.txt is there again\none\n",
      "Brought back: second\na.txt is as it was\ntwo\n", "There is nothing to bring back")
  end)

  it("end with the next question", function()
    agent(WRITES)
    local out = chat("agent.lua", "first", "second", "/undo", "third", "/redo", "/rewind")
    in_order(out, "Third.", "There is nothing to bring back", "1  first\n", "2  third\n")
    has_not(out, "2  second")
  end)

  it("change nothing if others have changed a file, unless they are told to", function()
    agent(WRITES)
    local out = chat("agent.lua", "first", "second", "!echo mine >a.txt", "/undo", "!cat a.txt",
      "/rewind", "/undo --keep-files", "!cat a.txt", "/rewind")
    in_order(out, "a.txt: another program has changed it since\n/undo --keep-files leaves all "
      .. "files as they are, /undo --force overwrites them.\n", "mine\n", "2  second\n",
      "Taken back: second\na.txt stays as it is now\n", "mine\n", "1  first\n")
    agent(WRITES)
    in_order(chat("agent.lua", "first", "second", "!echo mine >a.txt", "/undo --force",
      "!cat a.txt; echo"), "Taken back: second\na.txt is as it was\n", "one\n")
  end)

  it("name calls with effects outside", function()
    agent '{ calls = { { name = "ring" }, { name = "look" }, { name = "ring" } } }, "Done."'
    in_order(chat("agent.lua", "go", "/undo", "/rewind"),
      "Taken back: go\nring was called 2 times: what it did outside stays\nThere is no question")
  end)

  it("work for a question whose answer failed", function()
    agent '"One.", { fail = { message = "broken" } }, "Three."'
    in_order(chat("agent.lua", "first", "second", "/rewind", "/undo", "/redo", "/rewind", "third"),
      "One.", "broken", "2  second  (no answer)\n", "Taken back: second (it had no answer)\n",
      "There is nothing to bring back", "1  first\n", "Three.")
  end)

  it("work in a later chat, and without a store", function()
    chat("-m demo/echo", "first", "second")
    in_order(chat("-c", "/undo", "/rewind"), "Taken back: second\n", "1  first\n")
    in_order(chat("-m demo/echo --no-store", "first", "/undo", "/undo", "/redo", "/rewind"),
      "Taken back: first\n", "There is no question to take back.", "Brought back: first\n",
      "1  first\n")
    assert.equal(1, #conversations())
  end)

  it("open the conversation anew if a file could not be put in place", function()
    local function closed()
      error "the agent is closed"
    end
    local old = { id = "ann", transcript = function() return '{"entries":[]}' end, mark = closed,
      close = function() return true end }
    function old.rewind(_, _, how)
      if how.dry then
        return { dropped = { { kind = "turn", turn = 1, question = "a" } } }
      end
      return nil, { code = "conflict", message = "no room for a.txt" }
    end
    local new <close> = assert(ah.agent { model = "demo/echo" })
    local opened
    local chat_ = { agent = old, typed = {}, undone = {}, editor = {},
      output = { settle = function() end, attach = function() end },
      open = function(id)
        opened = id
        return new
      end }
    local undo = programs "chat.history".rows[1].run
    local ok, err = pcall(undo, chat_, "")
    assert.same({ false, "no room for a.txt", "ann" }, { ok, err.message, opened })
    assert.equal(new, chat_.agent)
    chat_.agent, chat_.open = old, function() error "no" end
    ok = pcall(undo, chat_, "")
    assert.same({ false, true, true }, { ok, chat_.over, chat_.failed })
  end)

  it("refuse other words", function()
    local out = chat("-m demo/echo", "first", "/undo 2", "/redo x", "/undo --all")
    has(out, "/undo does not take '2'\n/rewind goes back over several questions.")
    has(out, "/redo does not take 'x'")
    has(out, "/undo does not take '--all': it takes --keep-files or --force")
  end)
end)

describe("/rewind", function()
  it("goes back to before a question of the list", function()
    local out = chat("-m demo/echo", "/rewind", "a", "b", "c", "/rewind", "/rewind 2", "/rewind",
      "/redo", "/rewind 4", "/rewind x", "/rewind 3")
    in_order(out, "There is no question yet.", "   1  a\n   2  b\n   3  c\n",
      "Taken back: b (and 1 later)\n", "   1  a\nBrought back: c\n",
      "There is no question 4: the numbers are 1 to 3.",
      "There is no question x: the numbers are 1 to 3.", "Taken back: c\n")
  end)
end)

describe("/fork", function()
  it("goes on in a new conversation, and /resume back", function()
    local out = chat("-m demo/echo", "a", "b", "/fork", "/undo", "c", "/rewind",
      "/resume")
    in_order(out, "This is conversation ", " now. To go back: /resume ",
      "There is no question to take back.\nThose before belong to conversation ", "c\n",
      "   1  c\n", "  idle  a\n")
    local list = conversations()
    local base = out:match "/resume (%x+)"
    assert.equal(2, #list)
    in_order(chat("-c", "/rewind", "/resume " .. base:sub(1, 12), "/rewind"), "1  c\n",
      ("This is conversation %s now.\n"):format(base), "   1  a\n   2  b\n")
  end)

  it("begins before a question, with a name, and without a store", function()
    local out = chat("-m demo/echo --no-store", "a", "b", "/fork 2", "/context", "/fork mine",
      "/context", "/fork mine", "/fork 3", "/resume mine", "/resume")
    in_order(out, "messages      1 of yours, 1 answer", "This is conversation mine now.",
      "messages      1 of yours, 1 answer", '"mine" is open', "There is no question 3",
      "This is that conversation.", "  2  ")
    assert.falsy(content "state/agenthost/store.db")
  end)
end)

describe("/resume", function()
  it("goes on with the tools of the other conversation", function()
    file("a.txt", "of a\n")
    chat("-m demo/tools -t read_file", 'read "a.txt"')
    local id = conversations()[1].id
    in_order(chat("-m demo/tools -t list_files", "/tools", "/resume " .. id, "/tools",
      'read "a.txt"'), "list_files", "This is conversation " .. id, "read_file", "of a")
  end)

  it("refuses conversations of others, and ids that are unknown", function()
    agent '"One."'
    chat("agent.lua", "of the script")
    local mine = conversations()[1].id
    in_order(chat("-m demo/echo", "/resume", "/resume " .. mine, "/resume none"),
      "There is no other conversation of this folder.",
      ("conversation %s was not begun by a prompt, so its tools are elsewhere\nagenthost resume %s")
        :format(mine, mine), "there is no conversation 'none'")
    chat("-m demo/echo", "no script")
    local own = conversations()[1].id
    in_order(chat("agent.lua", "/resume " .. own), "was not begun by this script",
      ("agenthost chat --resume %s goes on with it."):format(own))
  end)

  it("refuses one that another process has, and goes on with its own", function()
    chat("-m demo/echo", "a")
    local id = conversations()[1].id
    file("holder.lua", ('local a = assert(require("agenthost").agent { id = %q, name = "agenthost" '
      .. '}) io.open("held", "w"):close() io.read()'):format(id))
    file("typed", ("b\n/resume %s\nc\n"):format(id))
    local r = at_home([[mkfifo hold; "$A" --store state/agenthost/store.db holder.lua <hold &
      exec 3>hold; until test -e held; do sleep 0.05; done
      "$A" chat -m demo/echo <typed; exec 3>&-; wait]])
    in_order(r.out, "b\n", id, "\nc\n")
  end)
end)

describe("/export", function()
  it("writes Markdown, the export of the store, or what agent:save writes", function()
    agent(WRITES)
    local out = chat("agent.lua", "first\27[31m", "/export out.md", "/export out.jsonl",
      "/export out.json", "/export out.md", "/export --force out.md", "/export x.txt",
      "/export none/out.md", "/export")
    in_order(out, "The conversation is in out.md.", "The conversation is in out.jsonl.",
      "The conversation is in out.json.",
      "There is a file 'out.md' already: /export --force overwrites it.",
      "The conversation is in out.md.", "'x.txt' is no name that says what to write",
      "There is no folder 'none/' for the file.", "The conversation is in chat-")
    in_order(content "out.md", "# Conversation ", "Model: scripted/script", "## Question\n\nfirst",
      "**Call of write_file**", '    {"content":"one","path":"a.txt"}',
      "**Result of write_file**\n\n    Made 'a.txt'", "## Answer\n\nWrote one.\n")
    has_not(content "out.md", "\27")
    assert.equal(content "out.md", content(out:match "in (chat%-%x+%.md)"))
    local r = at_home '"$A" --store other.db store import out.jsonl && "$A" list --store other.db'
    has(r.out, "first")
    local loaded <close> = assert(ah.load(home .. "/out.json", { model = ah.scripted {} }))
    assert.equal(6, #ah.json.decode(loaded:transcript()).entries)
  end)

  it("shortens long results", function()
    file("a.txt", ("x"):rep(5000) .. "\n")
    chat("-m demo/tools -t read_file", 'read "a.txt"', "/export out.md")
    has(content "out.md", "bytes more]")
  end)
end)

describe("/context", function()
  it("shows what the model sees", function()
    agent('"One."', 'system = "Be brief.\\n\\n# Rules\\nNone."')
    local out = chat("agent.lua", "/context", "a", "/context")
    in_order(out, "model         scripted/script\n", "window        unknown\n",
      "last request  none yet\n", "messages      0 of yours, 0 answers, 0 notes\n",
      "calls         0\n", "tools         4, ", "write_file\n", "slow\n", "ring\n",
      "system text   24 bytes\n", "11  Be brief.\n", "13  # Rules\n", "One.",
      "messages      1 of yours, 1 answer, 0 notes\n")
    in_order(chat("-m demo/echo", "a b c", "/context"), "last request  ", " tokens\n",
      "0 of them from the provider's cache", "last answer   ")
  end)
end)

-- -- on a terminal -----------------------------------------------------------------------------

-- Starts the command with these words in a terminal, in the folder.
local function start(words)
  return typing.start({ "/bin/sh", "-c", ("cd %s && exec %s -q %s"):format(home, command.BINARY,
    words) }, { env = { "TERM=xterm", "XDG_STATE_HOME=" .. home .. "/state" } })
end

-- Types, and reads until the part is there.
local function typed(t, bytes, part)
  t.screen:feed(t.all)
  t.all = ""
  t.pty:write(bytes)
  return read(t, part)
end

-- Reads until the screen ends with this text.
local function ends(t, part)
  local until_ = os.time() + typing.SECONDS
  repeat
    t.screen:feed(t.all)
    t.all = ""
    local text = t.screen:text():gsub("%s+$", "")
    if text:sub(-#part) == part then
      return
    end
    t.all = assert(t.pty:read(1), "the program has ended")
  until os.time() > until_
  assert.equal(part, t.screen:text())
end

-- Waits until no answer is at work.
local function settle(t)
  repeat
    typed(t, "/model\r", "/model")
    read(t, "\27[1m> \27[0m")
    ends(t, ">")
  until t.screen:text():find "model [^\n]*\n>%s*$"
end

describe("on a terminal", function()
  it_if("/undo puts the question at the prompt, /redo removes it", function()
    file("more.txt", "from the file\n")
    local t = start "chat -m demo/echo"
    ends(t, ">")
    typed(t, "read @more.txt\r", "from the file")
    settle(t)
    typed(t, "/undo\r", "Taken back: ")
    ends(t, "> read @more.txt")
    typed(t, "\21/redo\r", "Brought back: ")
    settle(t)
    typed(t, "/undo\r", "Taken back: ")
    ends(t, "> read @more.txt")
    typed(t, "\21one two\r", "one two")
    settle(t)
    typed(t, "/undo\r", "Taken back: ")
    ends(t, "> one two")
    typed(t, " three\r", "three")
    settle(t)
    has(t.screen:text(), "\none two three\n")
    quit(t)
  end)

  it_if("/undo takes back an answer that was ended by Ctrl-C", function()
    agent '"One.", { calls = { { name = "slow" } } }, "Three."'
    local t = start "chat agent.lua"
    ends(t, ">")
    typed(t, "first\r", "One.")
    settle(t)
    typed(t, "second\r", "asleep")
    typed(t, "\3", "(ended)")
    settle(t)
    typed(t, "/undo\r", "slow was called: what it did outside stays")
    ends(t, "> second")
    typed(t, "\21/rewind\r", "Go back to before question: ")
    typed(t, "\r", "\n")
    ends(t, ">")
    local shown = quit(t)
    has(shown, "   1  first\nGo back")
  end)

  it_if("/rewind asks for a number, and so does /resume", function()
    chat("-m demo/echo", "other")
    local t = start "chat -m demo/echo"
    ends(t, ">")
    for _, word in ipairs { "aa", "bb" } do
      typed(t, word .. "\r", word)
      settle(t)
    end
    typed(t, "/rewind\r", "Go back to before question: ")
    typed(t, "1\r", "Taken back: aa (and 1 later)")
    ends(t, "> aa")
    typed(t, "\21/resume\r", "Go on with number: ")
    typed(t, "9\r", "there is no number '9' in the list: give 1 to 1")
    ends(t, ">")
    typed(t, "/resume\r", "Go on with number: ")
    typed(t, "1\r", " goes on.")
    ends(t, "> other\nother\n>")
    quit(t)
  end)

  it_if("--resume picks from a list, in which titles are harmless", function()
    chat("-m demo/echo", "older")
    chat("-m demo/echo", "new\27]0;x\7er \u{202e}title")
    local t = start [[--resume "a question"]]
    read(t, "Go on with number: ")
    has_not(t.all, "\27]")
    has_not(t.all, "\u{202e}")
    in_order(t.all, "  1  20", "new", "er ", "  2  20", "  idle  older")
    t.pty:write "2\n"
    local code, all = finish(t)
    assert.equal(0, code, all)
    assert.same({ "older", 2 }, { conversations()[1].title, #conversations() })
    t = start "chat --resume"
    read(t, "Go on with number: ")
    typed(t, "1\n", "> ")
    typed(t, "/rewind\r", "Go back")
    typed(t, "\r", "> ")
    has(quit(t), "   1  older\n   2  a question\n")
    t = start "chat --resume"
    read(t, "Go on with number: ")
    t.pty:write "\n"
    code, all = finish(t)
    assert.equal(2, code, all)
    has(all, "no conversation was picked")
  end)
end)
