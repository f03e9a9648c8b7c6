-- The use of conversations (command/spent.lua), and money in words (command/money.lua).
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local programs = require "support.programs"

local money, spent = programs "money", programs "spent"

describe("money in words", function()
  it("has two significant digits, and at least cents", function()
    for cost, words in pairs { [0.0] = "$0.00", [12.3] = "$12.30", [1] = "$1.00", [0.126] = "$0.13",
      [0.00421] = "$0.0042", [0.000042] = "$0.000042", [1e-12] = "$0.000000000",
      [0.0999] = "$0.10", [1234.567] = "$1234.57" } do
      assert.equal(words, money.dollars(cost))
    end
  end)

  it("says what is unknown, and nothing where nothing is billed", function()
    assert.is_nil(money.words(nil, 0))
    assert.equal("cost unknown", money.words(nil, 3))
    assert.equal("$0.50", money.words(0.5, 0))
    assert.equal("$0.50 and the unknown cost of 1 answer", money.words(0.5, 1))
    assert.equal("$0.00 and the unknown cost of 2 answers", money.words(0.0, 2))
  end)

  it("ends a run on a terminal and is in --jsonl", function()
    local run = [[
      local ah = require "agenthost"
      local own = ah.adapter { name = "acme/x", answer = function() return "ok" end }
      ah.run { model = own, "hi" }
      ah.run { model = ah.scripted { { text = "a", usage = { cost = 0.25 } } }, "hi" }]]
    local got = command.agenthost("--jsonl", "-e", run)
    local last = ah.json.decode(got.out:match "([^\n]+)\n$")
    assert.same({ 0.25, 1 }, { last.usage.cost, last.usage.unpriced })
  end)
end)

if not ahtest.store_engines().sqlite then
  return
end

-- -- conversations ------------------------------------------------------------------------------

local folder, store

before_each(function()
  folder = command.folder()
  store = assert(ah.store(folder .. "/work.db"))
end)

after_each(function()
  store:close()
  command.tidy()
end)

local function turn(cost, more)
  local t = { text = "a", usage = { input = 10, output = 2, cost = cost } }
  for k, v in pairs(more or {}) do
    t[k] = v
  end
  return t
end

-- An answer that may be billed, of unknown cost.
local unpriced = ah.adapter { name = "acme/x", answer = function(_, out)
  out:usage { input = 5, output = 1 }
  return "ok"
end }

-- Returns an agent with this id, or a new one, that answers with these turns.
local function agent(id, turns, more)
  local o = { store = store, id = id, model = turns }
  if type(turns) == "table" then
    turns.resumes = true
    o.model = ah.scripted(turns)
  end
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return assert(ah.agent(o))
end

-- Returns { cost, unknown, turns, input, output } of one of the sums.
local function sum(which, id)
  local s = spent.of(store, id)[which]
  return { s.cost or "none", s.unknown, s.turns, s.input, s.output }
end

local function lately(since)
  local sums = {}
  for _, one in ipairs(assert(ah._spent(store, since))) do
    sums[one.id] = { one.lately.usage.cost or "none", one.lately.answers }
  end
  return sums
end

-- Returns a time that is after all records so far, and before those to come.
local function between()
  ah.sleep(0.01)
  local now = ah.now()
  ah.sleep(0.01)
  return now
end

describe("the use of conversations", function()
  it("is that of one, and of all of today and of this folder", function()
    local ann <close> = agent("ann", { turn(0.5), turn(0.25) })
    assert(ann:run "1" and ann:run "2")
    local bob <close> = agent("bob", unpriced)
    assert(bob:run "1")
    assert.same({ 0.75, 0, 2, 20, 4 }, sum("conversation", "ann"))
    assert.same({ "none", 1, 1, 5, 1 }, sum("conversation", "bob"))
    assert.same({ 0.75, 1, 3, 25, 5 }, sum "today")
    assert.same({ 0.75, 1, 3, 25, 5 }, sum "folder")
    assert.same({ "none", 0, 0, 0, 0 }, sum("conversation", "nobody"))
    assert.equal("none", sum "conversation"[1])
    assert.equal("$0.75 and the unknown cost of 1 answer, 3 turns, 25 tokens in (0 cached), 5 out",
      spent.words(spent.of(store).today))
  end)

  it("is without other folders in `folder`, and without other days in `today`", function()
    local ann <close> = agent("ann", { turn(0.5) })
    assert(ann:run "1")
    local r = command.shell(([[cd %s && "$A" -e '
      local ah = require "agenthost"
      local bob <close> = assert(ah.agent { store = "work.db", id = "bob", model = ah.scripted {
        { text = "a", usage = { input = 1, output = 1, cost = 2 } } } })
      bob:run "1"']]):format(folder))
    assert.equal(0, r.code, r.err)
    assert.same({ 0.5, 0, 1, 10, 2 }, sum "folder")
    assert.same({ 2.5, 0, 2, 11, 3 }, sum "today")
    local tomorrow = spent.of(store, "ann", ah.now() + 2 * 86400)
    assert.same({ 0, 1 }, { tomorrow.today.turns, tomorrow.conversation.turns })
  end)

  it("is divided where the day begins in the middle of a conversation", function()
    local ann <close> = agent("ann", { turn(1), turn(2), turn(4), turn(8) })
    local times = { between() }
    for i = 1, 4 do
      assert(ann:run(tostring(i)))
      times[i + 1] = between()
    end
    for i, cost in ipairs { 15.0, 14.0, 12.0, 8.0 } do
      assert.same({ ann = { cost, 5 - i } }, lately(times[i]))
    end
    assert.same({ ann = { "none", 0 } }, lately(times[5]))
  end)

  it("has the runs that handlers have begun, and answers that a guard has refused", function()
    local tool = ah.tool { name = "t", description = "T.", handler = function()
      return assert(ah.run { model = unpriced, "inner" }).text
    end }
    local call = turn(0.5, { calls = { { name = "t" } } })
    local ann <close> = agent("ann", { call, turn(0.25), call, turn(4) }, { tools = { tool } })
    assert(ann:run "1")
    assert.same({ 0.75, 1, 3, 25, 5 }, sum("conversation", "ann"))
    local refused = agent("eve", { turn(3) }, { guards = { output = function()
      return "no"
    end } })
    assert.is_nil(refused:run "1")
    assert.same({ 3.0, 0, 1, 10, 2 }, sum("conversation", "eve"))
    refused:close()
  end)

  it("goes on after a rewind, and begins anew in a fork", function()
    local ann <close> = agent("ann", { turn(1), turn(2), turn(4), turn(8) })
    assert(ann:run "1" and ann:run "2")
    assert(ann:rewind(1))
    assert.same({ 3.0, 0, 2, 20, 4 }, sum("conversation", "ann"))
    assert(ann:fork { id = "bob" }):close()
    assert.same({ "none", 0, 0, 0, 0 }, sum("conversation", "bob"))
    assert(ann:run "3")
    assert.equal(3, sum("conversation", "ann")[3])
    ann:close()
    local again <close> = agent("ann", { turn(1), turn(2), turn(4), turn(8), turn(16) })
    assert(again:run "4")
    assert.equal(4, sum("conversation", "ann")[3])
  end)

  it("is known in the middle of a run, after a kill, and when it was gone on with", function()
    local script = ([[
      local ah, kill = require "agenthost", ...
      local tool = ah.tool { name = "t", description = "T.", handler = function()
        if kill then os.execute("kill -9 $PPID") end
        return "x"
      end }
      local ann <close> = assert(ah.agent { store = "%s/work.db", id = "ann", tools = { tool },
        model = ah.scripted { resumes = true,
          { calls = { { name = "t" } }, usage = { input = 10, output = 2, cost = 0.5 } },
          { text = "a", usage = { input = 10, output = 2, cost = 0.25 } } } })
      ann:run(not ann.unfinished and "1" or nil)]]):format(folder)
    local killed = command.script(script, "kill")
    assert.equal(137, killed.code, killed.err)
    assert.same({ 0.5, 0, 1, 10, 2 }, sum("conversation", "ann"))
    assert.equal(0, command.script(script).code)
    assert.same({ 0.75, 0, 2, 20, 4 }, sum("conversation", "ann"))
  end)

  it("is read from the records where a label is missing, old or absurd", function()
    local ann <close> = agent("ann", { turn(1), turn(2) })
    assert(ann:run "1" and ann:run "2")
    ann:close()
    local text = assert(store:export "ann")
    for i, label in ipairs { "{}", '{"spent":7}', '{"spent":{},"spent_to":-1}',
      '{"spent":{"usage":[],"answers":-3},"spent_to":0}', '{"spent":{"answers":9},"spent_to":0.5}'
    } do
      local id = "copy" .. i
      assert(store:import((text:gsub('"label":%b{}', function()
        return '"label":' .. label
      end, 1)), { id = id }))
      assert.same({ 3.0, 0, 2, 20, 4 }, sum("conversation", id), label)
    end
    assert(store:import((text:gsub('"label":%b{}', '"label":{"spent":{"answers":1e300,"since":-1,'
      .. '"usage":{"input":9007199254740992,"cost":-1,"prices_of":"x"}},"spent_to":99999}', 1)),
      { id = "absurd" }))
    assert.equal("none", sum("conversation", "absurd")[1])
  end)

  it("has what it can of a damaged conversation, and says so", function()
    local ann <close> = agent("ann", { turn(1) })
    assert(ann:run "1")
    ann:close()
    store:close()
    local r = command.shell(("sqlite3 %s/work.db \"update streams set label = '{}'; "
      .. "update records set said = 'x' where kind = 'answer'\""):format(folder))
    store = assert(ah.store(folder .. "/work.db"))
    if r.code ~= 0 then
      return pending "needs sqlite3"
    end
    assert.equal(1, spent.of(store, "ann").conversation.damaged)
  end)
end)
