-- agent:fork { at = N }: a conversation from each turn of another one; agent:rewind(N): the same
-- one from an earlier turn. docs/reference/stores.md and docs/reference/journal.md have the rules.
local ah = require "agenthost"
local command = require "support.command"
local streams = require "support.streams"

local Step = ah.type { name = "Step", fields = { n = "integer" } }

-- The questions of the conversation "base", with the number of turns to the answer of each.
local QUESTIONS = { { "one", 2 }, { "two", 3 }, { "three", 1 } }
local TURNS = 6

local scratch, store, keys

before_each(function()
  scratch = command.folder()
  store = assert(ah.store { engine = "memory" })
  keys = {}
end)

after_each(function()
  store:close()
  command.tidy()
end)

-- Returns the messages of a conversation, the slices of its session and the states of entities.
local function saved(agent)
  local path = scratch .. "/saved"
  assert(agent:save(path))
  local f <close> = assert(io.open(path))
  local state = ah.json.decode(f:read "a")
  return { entries = state.transcript.entries, slices = state.slices, entities = state.entities }
end

local function call(name, arguments)
  return { name = name, arguments = arguments or {} }
end

-- Returns the fields of an agent, whose calls change the session and an entity.
local function fields(model)
  local Account = ah.entity { name = "Account", state = { "balance" },
    find = function(id) return { id = id, balance = 0 } end }
  Account:tool { name = "deposit", description = "Puts money in.", params = { amount = "integer" },
    handler = function(self, args)
      self.balance = self.balance + args.amount
      return self.balance
    end }
  local tools = {
    ah.tool { name = "open", description = "Opens.", handler = function()
      return Account { id = "7", balance = 10 }
    end },
    ah.tool { name = "step", description = "Steps.", params = { n = "integer" },
      handler = function(args, ctx)
        keys[#keys + 1] = ctx.idempotency_key
        ctx.session:dispatch(Step { n = args.n })
        return args.n
      end },
  }
  return { tools = tools, discover = true, model = model, session = ah.session { types = { Step } },
    store = store, id = "base" }
end

-- Returns the answers of the model: in all turns but the last of a question there are calls. Before
-- each later turn of a question, and for each call of the result, what is saved of the agent is
-- added to `states`.
local function answers(states, agent_of)
  local list = {}
  for q, question in ipairs(QUESTIONS) do
    for i = 1, question[2] do
      local number = #list + 1
      list[number] = function()
        if i > 1 then
          states[number - 1] = saved(agent_of())
        end
        return i == question[2] and "answer " .. q or { calls = { call("step", { n = number }),
          number == 1 and call "open" or call("account_7_deposit", { amount = number }) } }
      end
    end
  end
  return list
end

-- Runs the conversation "base". Returns its agent, and what is saved of it after each turn.
local function base()
  local states, agent, n = {}, nil, 0
  agent = assert(ah.agent(fields(ah.scripted(answers(states, function() return agent end)))))
  for _, question in ipairs(QUESTIONS) do
    assert(agent:run(question[1]))
    n = n + question[2]
    states[n] = saved(agent)
  end
  return agent, states
end

-- The recorded balance of the account after each turn: from the first deposit on.
local BALANCE = { 0, 0, 13, 17, 17, 17 }

-- Returns the result of the last call.
local function last_result(agent)
  local entries = saved(agent).entries
  for i = #entries, 1, -1 do
    if entries[i].type == "tool_result" then
      return entries[i].content
    end
  end
end

describe("agent:fork { at = N }", function()
  it("has messages, session and entities of each turn, and goes on from there", function()
    local agent <close>, states = base()
    for n = 1, TURNS do
      local fork <close> = assert(agent:fork { at = n, id = "fork " .. n })
      assert.same(states[n], saved(fork), "turn " .. n)
      assert.is_nil(fork.unfinished)
      assert(fork:use(ah.scripted { { calls = { call("account_7_deposit", { amount = 1 }) } },
        "The end." }))
      assert.equal("The end.", tostring(assert(fork:run(n % 2 == 0 and "And now?" or nil))))
      assert.equal(tostring(BALANCE[n] + 1), last_result(fork), "turn " .. n)
    end
    assert.same(states[TURNS], saved(agent))
    assert.equal("more", tostring(assert(agent:use(ah.scripted { "more" }):run "And you?")))
  end)

  it("is kept in the store of its id, and opened again like any other", function()
    do
      local agent <close> = base()
      local fork <close> = assert(agent:fork { at = 4, id = "kept" })
      assert(fork:use(ah.scripted { "Done." }))
      assert(fork:run())
    end
    local again = fields(ah.scripted { "Again." })
    again.id = "kept"
    local fork <close> = assert(ah.agent(again))
    local entries = saved(fork).entries
    assert.equal("Done.", entries[#entries].content[1].text)
    assert(fork:run "More?")
    local second <close> = assert(fork:fork { at = 1, id = "of a fork" })
    assert.same(entries, saved(second).entries)
  end)

  it("is in memory without an id and a store", function()
    local agent <close> = base()
    local fork <close> = assert(agent:fork { at = 1 })
    assert.equal("fine", tostring(assert(fork:use(ah.scripted { "fine" }):run())))
    assert.equal("once", tostring(assert(ah.run { store = store, id = fork.id, "Go.",
      model = ah.scripted { "once" } })))
  end)

  it("has other idempotency keys, for the same call too", function()
    local agent <close> = base()
    local first = assert(keys[2])
    for _, id in ipairs { "a", "b" } do
      local fork <close> = assert(agent:fork { at = 2, id = id })
      assert(fork:use(ah.scripted { { calls = { call("step", { n = 3 }) } }, "." }):run "two")
    end
    local seen = { [first] = true }
    for i = #keys - 1, #keys do
      assert.matches("^%x+$", keys[i])
      assert.is_nil(seen[keys[i]])
      seen[keys[i]] = true
    end
  end)

  it("begins without a turn", function()
    local agent <close> = base()
    local fork <close> = assert(agent:fork { at = 0, id = "anew" })
    assert.equal("Hi.", tostring(assert(fork:use(ah.scripted { "Hi." }):run "Hello.")))
    local entries = saved(fork).entries
    local types = {}
    for i, entry in ipairs(entries) do
      types[i] = entry.type
    end
    assert.same({ "settings", "tools_added", "user", "assistant" }, types)
  end)

  it("notes its base also without a turn", function()
    local agent <close> = base()
    agent:fork({ id = "plain" }):close()
    agent:fork({ at = 6, id = "at" }):close()
    local function base_of(id)
      local records = assert(store:records(id, { kinds = { "opened" } }))
      return records().said.base
    end
    local last = 0
    for record in assert(store:records "base") do
      last = record.number
    end
    assert.same({ stream = "base", number = last }, base_of "plain")
    assert.equal("base", base_of("at").stream)
    assert.is_nil(base_of "base")
  end)

  it("says which turns there are", function()
    local agent <close> = base()
    local fork, err = agent:fork { at = 7, id = "x" }
    assert.is_nil(fork)
    assert.equal("usage: there is no turn 7: the conversation has turns 1 to 6", tostring(err))
    local other = fields(ah.scripted {})
    other.id = "none"
    local empty <close> = assert(ah.agent(other))
    fork, err = empty:fork { at = 1, id = "x" }
    assert.is_nil(fork)
    assert.equal("usage: there is no turn 1: the conversation has no turns", tostring(err))
  end)

  it("refuses what cannot be, in words", function()
    local agent <close> = base()
    local function raises(words, of, with)
      local ok, err = pcall(of.fork, of, with)
      assert.is_false(ok)
      assert.matches(words, tostring(err), 1, true)
    end
    raises("turns are counted from 1, 0 is before them", agent, { at = -1 })
    raises("id must be printable text without '/'", agent, { at = 1, id = "a/b" })
    raises("id must be a string, found table", agent, { at = 1, id = {} })
    raises("`at` needs an agent with a store", ah.agent { model = "demo/echo" }, { at = 1 })
    local _, err = agent:fork { at = 1, id = "base" }
    assert.equal("conflict", err.code)
    local other <close> = assert(agent:fork { at = 1, id = "there" })
    other:close()
    _, err = agent:fork { at = 1, id = "there" }
    assert.equal("conflict: the store has a conversation 'there' already: give another id",
      tostring(err))
  end)

  it("raises in a handler, whose call may fail", function()
    local words
    local agent <close> = base()
    local try = ah.tool { name = "try", description = "Tries.", handler = function()
      local _, err = pcall(agent.fork, agent, { at = 1, id = "x" })
      words = tostring(err)
    end }
    assert(ah.run { "Go.", tools = { try },
      model = ah.scripted { { calls = { call "try" } }, "." } })
    assert.matches("a handler cannot open a conversation with a store", words)
    local fork = assert(agent:fork { at = 1, id = "x" }) -- nothing was begun
    fork:close()
  end)
end)

describe("agent:rewind(N)", function()
  it("goes to any turn, back and forward", function()
    local agent, states = base()
    math.randomseed(19)
    for _ = 1, 30 do
      local n = math.random(TURNS)
      assert(agent:rewind(n))
      assert.same(states[n], saved(agent), "turn " .. n)
    end
    agent:close()
    local again <close> = assert(ah.agent(fields "demo/echo"))
    assert.equal(TURNS, again:mark())
  end)

  it("goes on from there, with turns, runs and keys that are counted on", function()
    local agent, states = base()
    assert(agent:rewind(2))
    assert(agent:use(ah.scripted { { calls = { call("step", { n = 3 }) } }, "Again." }))
    assert.equal("Again.", tostring(assert(agent:run "two")))
    assert.equal(8, agent:mark())
    assert.equal(2, #saved(agent).slices.Step)
    for i = 1, #keys - 1 do
      assert.not_equal(keys[#keys], keys[i])
    end
    agent:close()
    do
      local again <close> = assert(ah.agent(fields "demo/echo"))
      assert.equal(2, #saved(again).slices.Step)
      assert.equal("3", last_result(again))
    end
    agent = assert(ah.agent(fields "demo/echo"))
    assert(agent:rewind(TURNS))
    assert.same(states[TURNS].slices, saved(agent).slices)
    agent:close()
  end)

  it("sets the session of the script back, also to nothing", function()
    local session = ah.session { types = { Step } }
    local of = fields(ah.scripted(answers({}, function() return nil end)))
    of.session = session
    of.model = ah.scripted { { calls = { call("step", { n = 1 }) } }, "One.",
      { calls = { call("step", { n = 2 }) } }, "Two." }
    local agent = assert(ah.agent(of))
    assert(agent:run "one")
    assert(agent:run "two")
    assert(agent:rewind(2))
    assert.same({ { n = 1 } }, { { n = session[Step]:all()[1].n } })
    assert.equal(1, #session[Step]:all())
    assert(agent:rewind(0))
    assert.equal(0, #session[Step]:all())
    agent:close()
  end)

  it("says what is dropped, and with dry changes nothing", function()
    local agent, states = base()
    local found = assert(agent:rewind(4, { dry = true }))
    assert.same({ to = 4, turns = 6, dropped = { { kind = "turn", turn = 5 },
      { kind = "turn", turn = 6, question = "three" } }, changes = {}, stays = {} }, found)
    assert.same(states[TURNS], saved(agent))
    local dropped = assert(agent:rewind(2))
    local calls = {}
    for _, item in ipairs(dropped.dropped) do
      if item.kind == "call" then
        calls[#calls + 1] = item.turn .. item.tool .. item.on_lost
      end
    end
    assert.same({ "3steptell", "3account_7_deposittell", "4steptell", "4account_7_deposittell" },
      calls)
    found = assert(agent:rewind(1, { dry = true }))
    assert.same({ { kind = "turn", turn = 2 } }, found.dropped) -- the others are dropped already
    agent:close()
  end)

  it("ends an unfinished run", function()
    local of = fields(ah.scripted { "One.", { calls = { call("step", { n = 1 }) } } })
    of.policies = { function() return "ask", "is it meant?" end }
    local agent = assert(ah.agent(of))
    assert(agent:run "one")
    local _, err = agent:run "two"
    assert.equal("waiting", err.code)
    assert.equal(1, #assert(store:asks()))
    assert(agent:rewind(1))
    assert.same({}, store:asks())
    assert.is_nil(agent.unfinished)
    assert(agent:use "demo/echo")
    assert.equal("three", tostring(assert(agent:run "three")))
    agent:close()
  end)

  it("refuses what cannot be, and the agent goes on", function()
    local agent <close>, states = base()
    local found, err = agent:rewind(7)
    assert.is_nil(found)
    assert.equal("usage: there is no turn 7: the conversation has turns 1 to 6", tostring(err))
    assert.same(states[TURNS], saved(agent))
    assert.matches("turns are counted from 1", tostring(select(2, pcall(agent.rewind, agent, -1))))
    assert.matches("unknown field 'dri'", tostring(select(2, pcall(agent.rewind, agent, 1,
      { dri = true }))))
    local plain = ah.agent { model = "demo/echo" }
    assert.matches("the agent has no store", tostring(select(2, pcall(plain.rewind, plain, 1))))
    assert.matches("the agent has no store", tostring(select(2, pcall(plain.mark, plain))))
    assert(agent:use "demo/echo")
    assert(agent:run "still here?")
  end)
end)

describe("the base of a fork", function()
  it("is in its first record, and need not be there any more", function()
    local path = scratch .. "/work.db"
    if not pcall(streams.make, path, "begun", streams.waiting {}) then
      return -- a build without SQLite
    end
    local records = streams.waiting {}
    table.insert(records, (streams.ending()))
    streams.make(path, "base", { table.unpack(records, 1, 4) })
    local opened = ah.json.decode(records[1][3])
    opened.base = { stream = "gone", number = 0 }
    streams.make(path, "hostile", { streams.record("opened", opened) })
    local agent, err = ah.agent { store = path, id = "hostile", model = "demo/echo" }
    assert.is_nil(agent)
    assert.matches("record 1 (opened) of the stream: the number of its base must be at least 1",
      tostring(err), 1, true)
    opened.base.number = 3
    streams.make(path, "sound", { streams.record("opened", opened) })
    local sound <close> = assert(ah.agent { store = path, id = "sound", model = "demo/echo" })
    assert.equal("Hello", tostring(assert(sound:run "Hello")))
  end)
end)
