-- The commands that look into a store: agenthost list, show and diff.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local has, has_not, shell = command.has, command.has_not, command.shell

if not ahtest.store_engines().sqlite then
  return
end

local folder, path
local record = streams.record

before_each(function()
  folder = command.folder()
  path = folder .. "/work.db"
end)

after_each(command.tidy)

local function run(words)
  return shell(("cd %s && env TZ=UTC AGENTHOST_STORE=%s \"$A\" %s </dev/null"):format(folder, path,
    words))
end

-- Returns the records of a run with a call and an answer.
local function whole(of)
  local records = streams.waiting(of)
  for _, one in ipairs { record("ask_closed", { ask = "ask_1", how = "response",
    response = { approved = true }, by = "Ann" }), streams.ending() } do
    records[#records + 1] = one
  end
  return records
end

local function make(name, of, label)
  of = of or {}
  of.folder = of.folder or folder
  streams.make(path, name, whole(of), label or { state = "idle", folder = of.folder })
end

describe("agenthost list", function()
  it("shows a line for each conversation, and takes --here and --waiting", function()
    make "talk_1"
    make("talk_2", { folder = "/elsewhere" })
    streams.make(path, "talk_3", streams.waiting { folder = folder },
      { state = "waiting", waiting = { "ask_1" }, folder = folder })
    local r = run "list"
    assert.equal(0, r.code, r.err)
    has(r.out, "1970-01-01 00:00  talk_1  idle  Tidy up.\n")
    has(r.out, "talk_3  waits for ask_1  Tidy up.\n")
    r = run "list --here"
    has(r.out, "talk_1")
    has_not(r.out, "talk_2")
    local found = ah.json.decode(run("list --waiting --json").out).conversations
    assert.same({ "talk_3", nil }, { found[1].id, found[2] })
    has(shell(("cd / && AGENTHOST_STORE=%s \"$A\" list --here"):format(path)).out,
      "There is no such conversation.")
    has(run("list --store $(mktemp -p .)").out, "The store has no conversations.")
  end)
end)

describe("agenthost show", function()
  it("shows a line for each record, with the numbers of the turns", function()
    make("talk_1", { ask = { question = "May it?" } })
    local r = run "show ta"
    assert.equal(0, r.code, r.err)
    for _, line in ipairs { "conversation talk_1\n1970-01-01\n", "     1  00:00:01  opened ",
      "\nturn 1\n     2  00:00:01  run         1 begins\n",
      "     3  00:00:01  user        Tidy up.\n",
      [[calls delete_rows({"table":"orders"}) [scripted/script]
]], [[00:00:05  ask         ask_1: May it? delete_rows({"table":"orders"})
]], "waits       for ask_1\n", "ask         ask_1: response {\"approved\":true} by Ann\n",
      "result      delete_rows -> done\n", "turn        1 ends\n", "run         1 ends: stop\n" } do
      has(r.out, line)
    end
    has_not(r.out, "turn 2")
  end)

  it("takes the last conversation of this folder without an id", function()
    make "talk_1"
    make("talk_2", { folder = "/elsewhere" })
    has(run("show").out, "conversation talk_1\n")
    local r = shell(("cd / && AGENTHOST_STORE=%s \"$A\" show"):format(path))
    assert.equal(2, r.code)
    has(r.err, "no conversation of this folder")
  end)

  it("shows a tree, and JSON", function()
    make "talk_1"
    local r = run "show --tree"
    has(r.out, "run 1 begins\n  user Tidy up.\n  turn 1\n    answer calls delete_rows(")
    has(r.out, "\n        ask ask_1: ")
    has(r.out, "\n      result delete_rows -> done\n")
    local lines = {}
    for line in run("show --json").out:gmatch "[^\n]+" do
      lines[#lines + 1] = ah.json.decode(line)
    end
    assert.same({ "opened", 1, 1000 }, { lines[1].kind, lines[1].number, lines[1].time })
    assert.equal("Tidy up.", lines[3].said.entries[1].content[1].text)
    r = run "show --json --tree"
    assert.equal(2, r.code)
    has(r.err, "give one of --tree, --json and --cache")
    assert.equal("give one of --tree, --json and --cache", ah.json.decode(r.out).error.message)
  end)

  it("shows what was read from the cache", function()
    local records = streams.waiting {}
    local said = ah.json.decode(records[4][3])
    said.usage = { input = 400, cached_read = 100, cached_write = 50, output = 7, known = true }
    records[4][3] = ah.json.encode(said)
    streams.make(path, "talk_1", records, { state = "waiting", folder = folder })
    has(run("show --cache").out,
      "     1        400        100    25%         50  scripted/script\n")
  end)

  it("shows what is kept only with --kept", function()
    local records = whole {}
    table.insert(records, 5, record("call_finished", { call = 0, success = true }, 1000,
      '{"entries":["the_kept"]}'))
    streams.make(path, "talk_1", records, { state = "idle", folder = folder })
    has_not(run("show").out, "the_kept")
    has_not(run("show --json").out, "the_kept")
    has(run("show --kept").out, [[kept: {"entries":["the_kept"]}]])
    has(run("show --kept --json").out, [["kept":{"entries":["the_kept"]}]])
  end)

  it("shows steps in words, and the rest of a key where there are none", function()
    local records = streams.waiting {}
    for _, one in ipairs { record("call_started", { call = 0, tool = "delete_rows" }),
      record("step_started", { call = 0, step = "1.2 step 0 look", what = "the step 'look'" }),
      record("step", { call = 0, step = "1.2 step 0 look", success = true }),
      record("step", { call = 0, step = " sleep 0 0.01", success = true }),
      record("step", { call = 0, step = " now 3 ", success = false, message = "late" }) } do
      records[#records + 1] = one
    end
    streams.make(path, "talk_1", records, { state = "running", folder = folder })
    local r = run "show"
    for _, words in ipairs { "the step 'look' begins", "the step 'look' is done",
      "sleep 0.01 is done", "now has failed: late" } do
      has(r.out, "step        " .. words .. "\n")
    end
  end)

  it("shows hostile texts, and obeys none of them", function()
    local text = "\27[2J\0 \u{202e}evil\u{9b}2J\nturn 9\n" .. ("x"):rep(1000000)
    local opened = streams.waiting({})[1]
    streams.make(path, "talk_1", { opened,
      record("entries", { entries = { { type = "user", content = { { type = "text",
        text = text } } } } }), record("entries", { entries = 7 }), record("answer", { entry = {
        tool_calls = { 1, { name = {} } }, content = "x", origin = 3 }, usage = { input = "x" } }),
      record("settled", { call = {}, result = false, slices = { 1 }, files = { 2 } }),
      record("run_ended", {}), { 1000, "turn", '"x"' }, { -5, "parked", '{"asks":[{}]}' },
      record("checkpoint", {}), record("ask_closed", {}) }, { state = "idle", folder = folder })
    for _, words in ipairs { "show", "show --tree", "show --json", "show --cache", "list",
      "diff talk_1 talk_1" } do
      local r = run(words)
      assert.equal(0, r.code, words .. r.err)
      has_not(r.out, "\27")
      has_not(r.out, "\0")
      has_not(r.out, "\u{202e}")
      has_not(r.out, "\u{9b}")
      has_not(r.out, "\nturn 9")
      if words ~= "show --json" then
        assert.is_true(#r.out < 10000, words)
      end
    end
    has(run("show").out, "\\x1b[2J\\x00 \\u202eevil")
    local second = run("show --json").out:match "\n([^\n]*)"
    assert.equal(text, ah.json.decode(second).said.entries[1].content[1].text)
  end)

  it("ends at a damaged record with exit code 1", function()
    local records = whole {}
    records[4] = { 1000, "answer", "{" }
    streams.make(path, "talk_1", records, { state = "idle", folder = folder })
    local r = run "show"
    assert.equal(1, r.code)
    has(r.out, "     3  00:00:01  user        Tidy up.\n")
    has(r.err, "record 4 is damaged")
    assert.equal(2, run("diff talk_1 talk_1").code)
  end)
end)

describe("agenthost diff", function()
  it("says that two are equal, whatever their times", function()
    make "talk_1"
    make("talk_2", { asked = 9000 })
    local r = run "diff talk_1 talk_2"
    assert.equal(0, r.code, r.err)
    assert.equal("They are equal: 3 entries.\n", r.out)
    assert.is_true(ah.json.decode(run("diff talk_1 talk_2 --json").out).equal)
  end)

  it("shows where they part, with exit code 1", function()
    make "talk_1"
    make("talk_2", { arguments = '{"table":"users"}' })
    local r = run "diff talk_1 talk_2"
    assert.equal(1, r.code, r.err)
    has(r.out, "The first entry is equal.\ntalk_1: 2 more entries\n")
    has(r.out, [[     2  turn 1    answer    calls delete_rows({"table":"users"})]])
    has(r.out, "     3  turn 1    result    delete_rows -> done\n")
    local found = ah.json.decode(run("diff talk_1 talk_2 --json").out)
    assert.same({ false, 1, 2 }, { found.equal, found.same, #found.conversations[1].entries })
  end)

  it("compares what calls changed, and not the ids of their results", function()
    local function of(name, id, path_written)
      local records = whole {}
      records[8] = record("settled", { call = 0, files = { { path = path_written, after = "x" } },
        result = { type = "tool_result", id = id, name = "delete_rows", content = "done",
          success = true, time = 3 } })
      streams.make(path, name, records, { state = "idle", folder = folder })
    end
    of("talk_1", "call_1", "a.txt")
    of("talk_2", "call_2", "a.txt")
    of("talk_3", "call_1", "b.txt")
    assert.equal("They are equal: 3 entries.\n", run("diff talk_1 talk_2").out)
    local r = run "diff talk_1 talk_3"
    assert.equal(1, r.code)
    has(r.out, "     3  turn 1    result    delete_rows -> done {writes b.txt}\n")
  end)

  it("finds that one is longer", function()
    make "talk_1"
    streams.make(path, "talk_2", streams.waiting {}, { state = "waiting", folder = folder })
    local r = run "diff talk_1 talk_2"
    assert.equal(1, r.code)
    has(r.out, "The first 2 entries are equal.\ntalk_1: 1 more entry\n")
    has(r.out, "talk_2: 0 more entries\n")
    r = run "diff talk_1"
    assert.equal(2, r.code)
    has(r.err, "agenthost diff needs ID ID, found 1 of them\nSee agenthost diff --help.")
    has(run("diff a b c").err, "agenthost diff takes ID ID, found 'c' besides")
    assert.equal(2, run("diff talk_1 other").code)
  end)
end)
