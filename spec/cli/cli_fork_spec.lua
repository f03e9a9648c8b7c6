-- agenthost fork and rewind: conversations that go on from an earlier turn, by the command.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local shell, has = command.shell, command.has

if not ahtest.store_engines().sqlite then
  return
end

local folder

before_each(function()
  folder = command.folder()
end)

after_each(command.tidy)

local function write(name, text)
  command.write(folder .. "/" .. name, text)
end

-- Runs the binary in the folder, with the words of a shell's line.
local function run(words)
  return shell(("cd %s && env AGENTHOST_STORE=work.db \"$A\" %s </dev/null"):format(folder, words))
end

-- Makes the conversation "base" of three turns with the script a.lua, which then returns an agent.
local function base()
  write("a.lua", [[
    local ah = require "agenthost"
    local look = ah.tool { name = "look", description = "Looks.",
      handler = function() return 1 end }
    local first = not io.open "more"
    local agent = assert(ah.agent { tools = { look }, id = first and "base" or nil,
      model = ah.scripted(first and { { calls = { { name = "look" } } }, "It rains.", "Stay in." }
        or { "More." }) })
    if first then
      assert(agent:run "How is it?")
      assert(agent:run "And now?")
      agent:close()
    else
      return agent
    end]])
  local r = run "a.lua"
  assert.equal(0, r.code, r.err)
  write("more", "")
end

local function fork_of(out)
  return assert(out:match "^(%x+) has turn", out)
end

describe("agenthost fork", function()
  it("prints the fork, which resume goes on with", function()
    base()
    local r = run "fork base --at 1"
    assert.equal(0, r.code, r.err)
    local id = fork_of(r.out)
    assert.equal(id .. " has turn 1 of base.\nTo go on with it: agenthost resume " .. id
      .. "\n", r.out)
    r = run("resume " .. id)
    assert.equal(0, r.code, r.err)
    assert.equal("More.\n", r.out)
    has(run("resume " .. id).err, "has no unfinished run to go on with")
    has(run("fork --store work.db ba --at 1 --model demo/echo").out,
      (" --store %s/work.db --model demo/echo\n"):format(folder))
  end)

  it("waits for words after an answer, which resume asks", function()
    base()
    local r = run "fork base --at 2 --id two"
    assert.equal(0, r.code, r.err)
    assert.equal("two has turns 1 to 2 of base.\nIt ends with an answer, and waits for the next "
      .. 'question.\nTo go on with it: agenthost resume two "WORDS"\n', r.out)
    has(run "resume two".err, "conversation two has no unfinished run to go on with\n"
      .. 'To ask it: agenthost resume two "WORDS"\n')
    r = run("resume two 'What\nthen?' And now?")
    assert.equal("More.\n", r.out, r.err)
    local asked = ah.json.decode(run("show two --json").out:match '[^\n]*"What\\nthen[^\n]*')
    has(asked.said.entries[1].content[1].text, "What\nthen? And now?")
    assert.same({ 2, "the store has a conversation 'two' already: give another id" },
      { run("fork base --at 1 --id two").code,
        run("fork base --at 1 --id two").err:match "agenthost: (.-)\n" })
    local shown = ah.json.decode(run("fork base --at 3 --json").out)
    assert.same({ "base", 3, false }, { shown.base, shown.at, shown.unfinished })
    assert.matches("^%x+$", shown.conversation)
  end)

  it("begins without a turn", function()
    base()
    assert.equal("none has no turn of base.\nIt has no question yet.\nTo go on with it: agenthost "
      .. 'resume none "WORDS" --store ' .. folder .. "/work.db\n",
      run("fork base --at 0 --id none --store work.db").out)
    assert.equal("More.\n", run("resume none Hello").out)
    local shown = run("show none").out
    has(shown, "Hello")
    assert.is_nil(shown:find("How is it?", 1, true))
  end)

  it("needs an agent that can be asked", function()
    write("once.lua", [[
      local ah = require "agenthost"
      print(ah.run { id = "once", model = "demo/echo", "Hello" })]])
    assert.equal("Hello\n", run("once.lua").out)
    local r = run("resume once More")
    assert.equal(2, r.code)
    has(r.err, "once.lua returned no agent that could be asked the words")
  end)

  it("is listed, and known to diff, also if it is none at a turn", function()
    write("plain.lua", [[
      local ah = require "agenthost"
      local agent = assert(ah.agent { id = "plain", model = "demo/echo" })
      assert(agent:run "Hello")
      assert(agent:fork { id = "copy" }):close()
      assert(agent:run "More")]])
    assert.equal(0, run("plain.lua").code)
    has(run("list").out, "  copy  idle  Hello\n")
    has(run("show copy").out, ", a fork of plain\n")
    has(run("diff plain copy").out, "The first 3 entries are equal.\nplain: 2 more entries\n")
  end)

  it("is found by resume without an id while it is to go on, and so is a rewind", function()
    base()
    assert.equal(2, run("resume").code)
    assert.equal(0, run("fork base --at 2 --id two").code)
    assert.equal(2, run("resume").code)
    assert.equal(0, run("fork base --at 1 --id one").code)
    has(run("list").out, "  one  running  How is it?\n")
    assert.equal("More.\n", run("resume").out)
    assert.equal(2, run("resume").code)
    assert.equal(0, run("rewind base --to 1").code)
    has(run("list").out, "  base  running  How is it?\n")
    assert.equal("More.\n", run("resume").out)
    assert.equal(0, run("rewind base --to 2").code)
    has(run("resume base").err, "has no unfinished run")
    assert.equal("More.\n", run("resume base Again").out)
  end)

  it("goes on at once with a script, and with another model", function()
    base()
    write("b.lua", [[
      local ah = require "agenthost"
      return assert(ah.agent { model = ah.scripted { "B." } })]])
    local r = run "fork base --at 1 b.lua"
    assert.equal(0, r.code, r.err)
    assert.equal("B.\n", r.out)
    r = run "fork base --at 3 b.lua And then?"
    assert.equal("B.\n", r.out, r.err)
    r = run "fork base --at 1 --json --model demo/echo b.lua"
    assert.equal(0, r.code, r.err)
    assert.not_equal("B.", ah.json.decode(r.out).reply.text)
  end)

  it("is opened by a script that names the base", function()
    base()
    local before = run("show base").out
    write("c.lua", [[
      local ah = require "agenthost"
      return assert(ah.agent { id = "base", model = ah.scripted { "C." } })]])
    local r = run "fork base --at 1 c.lua"
    assert.equal(0, r.code, r.err)
    assert.equal("C.\n", r.out)
    assert.equal(before, run("show base").out)
  end)

  it("goes on whatever its record says about its base", function()
    write("d.lua", [[
      local ah = require "agenthost"
      return assert(ah.agent { model = ah.scripted { resumes = true, "", "D." } })]])
    local at = io.popen("cd " .. folder .. " && pwd -P"):read "l"
    for i, base_name in ipairs { "x\nmodel demo/echo", "none", "talk_3" } do
      local name = "talk_" .. i
      streams.make(folder .. "/work.db", name, streams.waiting { folder = at,
        script = at .. "/d.lua", base = { stream = base_name, number = 1 } },
        { state = "waiting", folder = at })
      local r = run("resume " .. name)
      assert.equal("D.\n", r.out, r.err)
    end
  end)

  it("leaves the base to the process that has it", function()
    base()
    write("holder.lua", [[
      local ah = require "agenthost"
      local agent <close> = assert(ah.agent { id = "base", model = "demo/echo" })
      local pipe <close> = io.popen(... .. " fork base --at 1 --store work.db 2>&1")
      io.write(pipe:read "a")
      print(assert(agent:run "Still here?"))]])
    local r = run 'holder.lua "$A"'
    assert.equal(0, r.code, r.err)
    has(r.out, " has turn 1 of base.\n")
    has(r.out, "Still here?\n")
  end)

  it("says what is missing", function()
    base()
    for words, want in pairs {
      ["fork base"] = "the turn is missing: --at N",
      ["fork base --at 4"] = "there is no turn 4: the conversation has turns 1 to 3",
      ["fork base --at 1.5"] = "needs a number from 0",
      ["fork base --at x"] = "needs a number from 0",
      ["fork base --at 1 --id a/b"] = "id must be printable text without '/'",
      ["fork bose --at 1"] = "did you mean base",
      ["fork --at 1"] = "no id given",
      ["fork base --at 1 none.lua"] = "cannot open the script 'none.lua'" } do
      local r = run(words)
      assert.equal(2, r.code, words)
      has(r.err, want)
    end
  end)
end)

describe("agenthost rewind", function()
  it("prints what is dropped, and drops it", function()
    base()
    local dropped = "turn 2: the answer, and its results\nturn 3: the answer to: And now?\n"
    local r = run "rewind base --to 1 --dry"
    assert.equal(0, r.code, r.err)
    assert.equal(dropped .. "base would go on after turn 1 of 3.\n", r.out)
    r = run "rewind ba --to 1"
    assert.equal(dropped .. "base goes on after turn 1 of 3.\n", r.out)
    r = run "rewind base --to 0 --json"
    assert.same({ conversation = "base", to = 0, turns = 3, dry = false, dropped = {
      { kind = "call", turn = 1, id = "call_3_1", tool = "look", on_lost = "tell" },
      { kind = "turn", turn = 1, question = "How is it?" } },
      changes = {}, stays = {} }, ah.json.decode(r.out))
    assert.equal("base goes on after turn 3 of 3.\n", run("rewind base --to 3"
      ).out:match "[^\n]*\n$")
  end)

  it("puts files back with --files, and shows hostile text as it is", function()
    write("a.lua", [[
      local ah = require "agenthost"
      local Note = ah.type { name = "Note", fields = { n = "integer" } }
      local files = ah.filesystem { root = "." }
      local save = ah.tool { name = "save", description = "Saves.", handler = function(_, ctx)
        ctx.session:dispatch(Note { n = 1 })
        return files:write("a.txt", "two \27[31mred\n")
      end }
      local agent <close> = assert(ah.agent { tools = { save }, id = "base",
        session = ah.session { types = { Note } },
        model = ah.scripted { { calls = { { name = "save" } } }, "Saved." } })
      assert(agent:run "Save \27[31m it.")]])
    write("a.txt", "one\n")
    assert.equal(0, run "a.lua".code)
    local now = run("rewind base --to 0 --dry --files").out
    local at = now:match "changes (/%S+/a.txt)\n"
    assert.equal("turn 1: call call_3_1 of save was begun: what it did outside stays\n"
      .. "turn 1: the answer to: Save \\x1b[31m it.\n"
      .. "turn 2: the answer, and its results\n"
      .. "changes " .. at .. "\n  --- a/a.txt\n  +++ b/a.txt\n  @@ -1,1 +1,1 @@\n"
      .. "  -two \\x1b[31mred\n  +one\n"
      .. "slice Note: 1 values go, 0 come\n  -{\"n\":1}\n"
      .. "base would go on after turn 0 of 2.\n", now)
    write("a.txt", "mine\n")
    local r = run "rewind base --to 0 --files"
    assert.equal(1, r.code)
    has(r.err, "a.txt: another program has changed it since")
    assert.equal(0, run("rewind base --to 0 --files --force").code)
    assert.equal("one\n", io.open(folder .. "/a.txt"):read "a")
  end)

  it("says what stays, and which question is dropped", function()
    write("a.lua", [[
      local ah = require "agenthost"
      local Note = ah.type { name = "Note", fields = { n = "integer" } }
      local Door = ah.entity { name = "Door", id = "name" }
      local door, stock = Door { name = "d" }, ah.session { name = "stock", types = { Note } }
      local work = ah.tool { name = "work", description = "Works.", handler = function(_, ctx)
        ctx:enlist(door)
        door.open = true
        ctx.session:dispatch(Note { n = 1 })
      end }
      local agent <close> = assert(ah.agent { tools = { work }, id = "base", session = stock,
        log = function() end, model = ah.scripted { { calls = { { name = "work" } } }, "Done." } })
      assert(agent:run "Work.")]])
    local r = run "a.lua"
    assert.equal(0, r.code, r.err)
    streams.make(folder .. "/work.db", "waits", streams.waiting {}, { state = "waiting" })
    assert.equal("turn 1: the question, which has no answer: Tidy up.\n"
      .. "turn 1: ask ask_1 is closed: May it?\nwaits would go on after turn 0 of 0.\n",
      run("rewind waits --to 0 --dry").out)
    r = run "rewind base --to 0 --dry"
    has(r.out, "entity Door d stays as it is: it has no state that is recorded\n"
      .. "session stock stays as it is: it is shared\n")
  end)

  it("says what is missing", function()
    base()
    for words, want in pairs {
      ["rewind base"] = "the turn is missing: --to N",
      ["rewind base --to 4"] = "there is no turn 4: the conversation has turns 1 to 3",
      ["rewind bose --to 1"] = "did you mean base" } do
      local r = run(words)
      assert.equal(2, r.code, words)
      has(r.err, want)
    end
  end)

  it("leaves a conversation to the process that has it, unless told to take it", function()
    base()
    write("holder.lua", [[
      local ah = require "agenthost"
      local agent = assert(ah.agent { id = "base", model = "demo/echo" })
      for _, take in ipairs { "", " --take" } do
        local pipe <close> = io.popen(... .. " rewind base --to 1 --store work.db 2>&1" .. take)
        io.write(pipe:read "a")
      end
      print(select(2, agent:run "Still here?"))]])
    local r = run 'holder.lua "$A"'
    assert.equal(0, r.code, r.err)
    has(r.out, "agenthost: ")
    has(r.out, "base goes on after turn 1 of 3.\n")
    has(r.out, "store: ")
  end)
end)

describe("agenthost diff and show", function()
  -- Makes the conversation "notes" of two questions, whose first turn writes a file.
  local function notes()
    write("n.lua", [[
      local ah = require "agenthost"
      local note = ah.tool { name = "note", description = "Notes.",
        handler = function(_, ctx) ctx.filesystem:write("note.txt", "rain\n") end }
      local agent <close> = assert(ah.agent { id = "notes", tools = { note },
        resources = { filesystem = assert(ah.filesystem { root = "." }) },
        model = ah.scripted { { calls = { { name = "note" } } }, "Noted.", "Yes." } })
      assert(agent:run "It rains.")
      assert(agent:run "Still?")]])
    local r = run "n.lua"
    assert.equal(0, r.code, r.err)
  end

  it("part where the fork begins, and not at a call that has changed something", function()
    notes()
    local r = run("diff notes " .. fork_of(run("fork notes --at 2").out))
    assert.equal(1, r.code, r.err)
    has(r.out, "The first 6 entries are equal.\nnotes: 2 more entries\n")
    has(r.out, "     7  turn 3    user      Still?\n")
    assert.equal(0, run("diff notes " .. fork_of(run("fork notes --at 3").out)).code)
  end)

  it("leave out what a rewind has dropped, and bring it back", function()
    notes()
    local whole, two = fork_of(run("fork notes --at 3").out), fork_of(run("fork notes --at 2").out)
    assert.equal(0, run("rewind notes --to 2").code)
    assert.equal(0, run("diff notes " .. two).code)
    assert.equal(0, run("rewind notes --to 0").code)
    has(run("show " .. two).out, ", a fork of notes\n")
    has(run("diff notes " .. two).out, "The first 2 entries are equal.\nnotes: 0 more entries\n")
    assert.equal(0, run("rewind notes --to 3").code)
    assert.equal(0, run("diff notes " .. whole).code)
    local shown = run("show notes").out
    has(shown, "rewound     to turn 2\n")
    has(shown, "rewound     to before the first run\n")
    has(shown, "rewound     to turn 3\n")
  end)
end)
