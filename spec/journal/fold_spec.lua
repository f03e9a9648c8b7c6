-- The fold: records of a stream to the state of a conversation. By examples for each kind of
-- record, and by random streams: what is valid folds, what is not ends with an error or with a
-- sound state.
local ah = require "agenthost"
local ahtest = require "ahtest"
local random = require "support.random"
local random_history = require "support.random_history"
local records = require "support.records"

local row = records.row
local array = ah.array
local NOMEM, STORE = -2, -21
local SEEDS = tonumber(os.getenv "AGENTHOST_FOLDS") or 60

local function fold(...)
  return ahtest.fold({ records.opened(), ... })
end

-- Returns the error of the stream that begins with `opened` and these records.
local function refused(...)
  local state, code, message = fold(...)
  assert.is_nil(state)
  assert.equal(STORE, code)
  return message
end

local function transcript(state)
  return ah.json.decode(state.transcript)
end

local STARTED = row("run_started", { run = 1, first = 0 })

-- The beginning of a stream with a pending turn of these calls, and then these records.
local function in_turn(calls, ...)
  return STARTED, records.answer(records.assistant("", calls)), ...
end

local function settled(call, id, more)
  local said = { call = call, result = records.result(id) }
  for key, value in pairs(more or {}) do
    said[key] = value
  end
  return row("settled", said)
end

local FILES = array { { root = "/r", path = "a", after = ("0"):rep(64) } }

describe("a fold", function()
  it("needs `opened` or a checkpoint first, and each number once", function()
    local state, code, message = ahtest.fold { STARTED }
    assert.same({ nil, STORE }, { state, code })
    assert.equal("record 1 (run_started) of the stream: a stream is read from `opened` or a "
      .. "`checkpoint`", message)
    assert.equal("record 2 (opened) of the stream: only record 1 may be of this kind",
      refused(records.opened()))
    local late = row("session")
    late.number = 3
    assert.equal("record 3 (session) of the stream: record 2 is expected here", refused(late))
    late.number, late.time = 2, -1
    assert.equal("record 2 (session) of the stream: its time is out of range: -1", refused(late))
  end)

  it("keeps the latest time", function()
    local early = row("session")
    early.time = 7
    local state = fold(row("session"), early)
    assert.equal(1002, state.time)
    assert.equal(3, state.last)
  end)

  it("refuses what is no JSON, no object, or has members of other types", function()
    assert.matches("^record 2 %(session%) of the stream: what is said is not JSON: ",
      refused { kind = "session", said = "{" })
    assert.matches("what is kept is not JSON", refused { kind = "session", said = "{}", kept = "" })
    assert.matches("an object is expected", refused { kind = "session", said = "[]" })
    assert.matches("its member `run` is missing", refused(row("run_started", { first = 0 })))
    assert.matches("its member `run` must be an integer from 0 to 2^53",
      refused(row("run_started", { run = "1", first = 0 })), 1, true)
    assert.matches("its member `run` must be an integer",
      refused(row("run_started", { run = -1, first = 0 })))
    assert.matches("its member `slices` must be of the type object",
      refused(row("session", { slices = array {} })))
  end)

  it("skips members that it does not know", function()
    assert.equal(2, fold(row("session", { later = true })).last)
  end)

  it("refuses a needed kind that it does not know, and names the version that does", function()
    assert.equal("record 2 (dreamt) of the stream: this version of agenthost does not know the "
      .. "kind; version 0.9.0 does: take it or a later one",
      refused(row("dreamt", { since = "0.9.0" })))
    assert.matches("version 0.2.0 does", refused(row("dreamt", {})))
    local lease = row("lease", { holder = "h", written_by = "0.8.0", readable_from = 1 })
    assert.matches("version 0.8.0 does", refused(lease, row("dreamt", {})))
    assert.equal(2, fold(row("dreamt", { since = "0.9.0", informative = true })).last)
    assert.matches("^record 2 %(a b%) of", refused { kind = "a\nb", said = "{}" })
    assert.matches("^record 2 %(%) of", refused { kind = "\xff", said = "{}" })
  end)

  it("refuses a format that it cannot read, other streams, and reserved kinds", function()
    local opened = { format = 2, written_by = "3.0.0", readable_from = 2, stream = "conversation" }
    local _, _, message = ahtest.fold { row("opened", opened) }
    assert.equal("record 1 (opened) of the stream: it was written by agenthost 3.0.0 in format 2, "
      .. "this version reads up to format 1: take that version or a later one", message)
    opened.readable_from = 1
    assert.equal(1, ahtest.fold({ row("opened", opened) }).last)
    opened.base = { stream = "a", number = 3 }
    assert.equal(1, ahtest.fold({ row("opened", opened) }).last)
    for want, base in pairs { ["`number` is missing"] = { stream = "a" },
      ["`stream` must be of the type string"] = { stream = 7, number = 1 },
      ["the number of its base must be at least 1"] = { stream = "a", number = 0 },
      ["`base` must be of the type object"] = "a" } do
      opened.base = base
      assert.matches(want, (select(3, ahtest.fold { row("opened", opened) })), 1, true)
    end
    opened.base = nil
    opened.stream = "budget"
    assert.matches("the stream is no conversation", (select(3, ahtest.fold { row("opened",
      opened) })))
    assert.matches("in format 7", refused(row("lease",
      { holder = "h", written_by = "3", readable_from = 7 })))
    assert.matches("were compacted", refused(row "compacted"))
  end)
end)

describe("entries and runs", function()
  it("make the transcript, in order", function()
    local state = fold(row("entries", { entries = array { records.user "a", records.note "b" } }))
    assert.equal("a", transcript(state).entries[1].content[1].text)
    assert.equal("b", transcript(state).entries[2].text)
    assert.equal(0, state.history.run)
  end)

  it("must be sound and have the members of their type", function()
    local function of(...)
      return refused(row("entries", { entries = array { ... } }))
    end
    assert.matches("it has no entries", of())
    assert.matches("entry 0 %(note%): ", of { type = "note" })
    assert.matches("entry 0 is no object", of(1))
    assert.matches("entry 0: call 1 has no answer right after it", of(records.assistant("",
      { "x" })))
    assert.matches("entry 0: a tool result without its call", of(records.result "x"))
    local state = fold(row("entries", { entries = array {
      records.assistant("", { "x" }), records.result "x" } }))
    assert.equal(2, #transcript(state).entries)
  end)

  it("keep runs in order", function()
    assert.matches("run 1 is unfinished", refused(STARTED, STARTED))
    assert.matches("run 1 is expected, and it is 2", refused(row("run_started", { run = 2,
      first = 0 })))
    assert.matches("its `first` is 5, and there are 0 entries",
      refused(row("run_started", { run = 1, first = 5 })))
    assert.matches("no run is unfinished", refused(records.run_ended(1, 0)))
    assert.matches("the unfinished run is number 1", refused(STARTED, records.run_ended(2, 0)))
    assert.matches("no run is unfinished", refused(records.answer(records.assistant "x")))
    assert.matches("no run is unfinished", refused(row "cancelled"))
    assert.matches("cancelled before", refused(STARTED, row "cancelled", row "cancelled"))
    assert.matches("no run is unfinished", refused(row("queued", { entry = records.user "x" })))
  end)

  it("tell how a run stands", function()
    local request = row("request", { model = "a/b", adapter = "a", attempt = 1, entries = 1 })
    local start = row("run_started", { run = 1, first = 0, deadline = 5000 })
    local h = fold(start, request, request).history
    assert.same({ 1, 0, 1002, 5000, 2, false, false },
      { h.run, h.first, h.started, h.deadline, h.lost, h.parked, h.cancelled })
    h = fold(start, request, request, records.answer(records.assistant "x", 3)).history
    assert.equal(0, h.lost)
    h = ah.json.decode(h.progress)
    assert.same({ 3, 10, 2 }, { h.iterations, h.usage.input, h.usage.output })
    assert.is_true(fold(start, row "cancelled").history.cancelled)
  end)

  it("keep the progress of the last turn, all of it", function()
    local progress = { iterations = 1, rounds = 2, check_rounds = 3, empties = 4, repairs = 5,
      restarts = 6, unknown_in_row = 7, tool_calls = 8, fallbacks = 9, last_round = true,
      usage = { input = 1, cached_read = 2, cached_write = 3, output = 4, reasoning = 5,
        known = true, cost = 0.123456789 } }
    local state = fold(in_turn({}, row("turn", { progress = progress })))
    assert.same(progress, ah.json.decode(state.history.progress))
    assert.equal(1, state.since)
    progress = { iterations = -1, rounds = "x", tool_calls = 1e300, usage = { input = {} } }
    state = fold(in_turn({}, row("turn", { progress = progress })))
    progress = ah.json.decode(state.history.progress)
    assert.equal(0, progress.usage.input)
    assert.same({}, { progress.iterations, progress.rounds, progress.tool_calls }) -- all are 0
  end)

  it("end with the last record `run_ended`", function()
    local entries = row("entries", { entries = array { records.user "a" } })
    local state = fold(STARTED, entries, records.run_ended(1, 1))
    assert.equal(0, state.history.run)
    assert.equal("Done.", ah.json.decode(state.ended).text)
    assert.same({ 1, 1 }, { state.ended_first, state.runs })
  end)
end)

describe("a turn", function()
  it("is pending until all its calls are settled", function()
    local state = fold(in_turn({ "x", "y" }, settled(0, "x",
      { staged = array { records.note "n" } })))
    local pending = transcript(state).pending
    assert.same({ "x", "n" }, { pending.results[1].id, pending.staged[1].text })
    assert.equal(ah.null, pending.results[2])
    assert.matches("call 1 of 2 is not settled", refused(in_turn({ "x", "y" }, settled(0, "x"),
      records.turn())))
    state = fold(in_turn({ "x" }, settled(0, "x", { staged = array { records.note "n" } }),
      records.turn { records.note "m" }))
    local entries = transcript(state).entries
    assert.same({ "assistant", "tool_result", "n", "m" },
      { entries[1].type, entries[2].type, entries[3].text, entries[4].text })
    assert.same({}, state.history[1] or {})
  end)

  it("refuses what cannot be now", function()
    local answer = records.answer(records.assistant "x")
    for _, record in ipairs { answer, row("entries", { entries = array { records.user "x" } }),
      records.run_ended(1, 0), row("request", { model = "", adapter = "", attempt = 1,
        entries = 1 }) } do
      assert.matches("a turn is pending", refused(in_turn({}, record)))
    end
    assert.matches("no turn is pending, and no entries wait", refused(STARTED, records.turn()))
    assert.matches("no turn is pending$", refused(STARTED, records.call_started(0, "x")))
    assert.matches("entries wait for the next turn", refused(STARTED,
      row("queued", { entry = records.user "x" }), records.run_ended(1, 0)))
    assert.matches("its entry is no answer of a model",
      refused(STARTED, records.answer(records.user "x")))
    for _, entry in ipairs { records.assistant "x", records.result "x" } do
      assert.matches("cannot wait for a turn", refused(STARTED, row("queued", { entry = entry })))
    end
  end)

  it("has answers and results of their shapes", function()
    local function answer(change)
      local entry = records.assistant("t", { "x" })
      change(entry)
      return refused(STARTED, records.answer(entry))
    end
    local function result(change)
      local entry = records.result "x"
      change(entry)
      return refused(in_turn({ "x" }, row("settled", { call = 0, result = entry })))
    end
    assert.matches("%(assistant%): /content", answer(function(e) e.content = "x" end))
    assert.matches("%(assistant%): /content/0", answer(function(e) e.content[1] = 1 end))
    assert.matches("%(assistant%): /content/0/text", answer(function(e) e.content[1].text = 1 end))
    assert.matches("%(assistant%): ", answer(function(e) e.content[1].type = nil end))
    assert.matches("%(assistant%): /tool_calls", answer(function(e) e.tool_calls = 1 end))
    assert.matches("%(assistant%): ", answer(function(e) e.tool_calls[1].id = nil end))
    assert.matches("%(assistant%): ", answer(function(e) e.tool_calls[1].arguments = {} end))
    for _, name in ipairs { "id", "name", "content", "success" } do
      assert.matches("%(tool_result%): ", result(function(e) e[name] = nil end))
      assert.matches("%(tool_result%): ", result(function(e) e[name] = 1 end))
    end
    assert.matches("%(tool_result%): ", result(function(e) e.ticket = 0 end))
    assert.matches("%(tool_result%): ", result(function(e) e.images = 0 end))
  end)

  it("may be one of messages only", function()
    local state = fold(STARTED, row("queued", { entry = records.user "x" }), records.turn())
    assert.equal("x", transcript(state).entries[1].content[1].text)
    assert.equal(0, state.waiting)
  end)

  it("accepts ids in the one form that results repeat", function()
    local answer = records.answer(records.assistant("", { "xy" }))
    answer.said = answer.said:gsub('"xy"', '"\\u0078y"')
    assert.matches("its spelling of an id is not that of the call", refused(STARTED, answer))
    answer = records.answer(records.assistant("", { 'x"y\n' }))
    assert.is_true(fold(STARTED, answer, settled(0, 'x"y\n'), records.turn()).sound)
  end)
end)

describe("a call", function()
  local start = records.call_started(0, "x")
  local finish = row("call_finished", { call = 0, success = true }, { session = 1 })

  it("has its records in the history", function()
    local call = fold(in_turn({ "x" }, records.call_started(0, "x", { a = 1 }), finish)).history[1]
    assert.equal("x", ah.json.decode(call.started).id)
    assert.same({ '{"a":1}', finish.said, '{"session":1}' },
      { call.arguments, call.finished, call.staged })
    assert.is_nil(call.settled)
    call = fold(in_turn({ "x" }, records.call_started(0, "x", { a = 1 }), start)).history[1]
    assert.is_nil(call.arguments)
  end)

  it("starts, finishes and is settled in order, once", function()
    local done = settled(0, "x")
    assert.matches("call 1 is out of range: the turn has 1 calls",
      refused(in_turn({ "x" }, records.call_started(1, "x"))))
    assert.matches("its id is not that of the call", refused(in_turn({ "x" },
      records.call_started(0, "y"))))
    assert.matches("its result's id is not that of the call", refused(in_turn({ "x" }, settled(0,
      "y"))))
    assert.matches("call 0 has not started", refused(in_turn({ "x" }, finish)))
    assert.matches("call 0 has finished", refused(in_turn({ "x" }, start, finish, finish)))
    assert.matches("call 0 has finished", refused(in_turn({ "x" }, start, finish, start)))
    for _, record in ipairs { start, finish, done } do
      assert.matches("call 0 is settled", refused(in_turn({ "x" }, done, record)))
    end
    assert.matches("is not of the type `tool_result`",
      refused(in_turn({ "x" }, row("settled", { call = 0, result = records.note "x" }))))
    assert.matches("what is kept must be an object", refused(in_turn({ "x" },
      { kind = start.kind, said = start.said, kept = "1" })))
  end)

  it("has steps by key", function()
    local function step(key, kept)
      return row("step", { call = 0, step = key, success = true }, kept)
    end
    local begun = row("step_started", { call = 0, step = "a", on_lost = "retry" })
    local steps = fold(in_turn({ "x" }, start, begun, step("b", { 1 }),
      step('c"'))).history[1].steps
    assert.same({ "a", "b", 'c"' }, { steps[1].key, steps[2].key, steps[3].key })
    assert.same({ begun.said, nil, "[1]" }, { steps[1].start, steps[1].said, steps[2].kept })
    assert.is_true(steps[1].found and steps[2].found and steps[3].found)
    assert.matches("the step has a result", refused(in_turn({ "x" }, start, step "a", step "a")))
    assert.matches("the step has a result", refused(in_turn({ "x" }, start, step "a", begun)))
    assert.matches("call 0 has not started", refused(in_turn({ "x" }, step "a")))
    assert.matches("call 0 has finished", refused(in_turn({ "x" }, start, finish, step "a")))
  end)

  it("with files counts once they are applied", function()
    local change = { files = FILES, staged = array { records.note "n" },
      slices = { S = { keep = 0, add = array { 1 } } }, entities = array { { class = "C", id = "1",
        state = 1 } } }
    local with_files = settled(0, "x", change)
    local state = fold(in_turn({ "x" }, with_files))
    assert.equal(with_files.said, state.history[1].settled)
    assert.same({ ah.null, 0, 0 }, { transcript(state).pending.results[1], state.waiting,
      #state.states })
    assert.equal('{"agenthost_session":1,"slices":{}}', state.session)
    state = fold(in_turn({ "x" }, with_files, row("applied", { call = 0 })))
    assert.same({ nil, "x", 1, "1" }, { state.history[1].settled,
      transcript(state).pending.results[1].id, state.waiting, state.states[1].state })
    assert.equal('{"agenthost_session":1,"slices":{"S":[1]}}', state.session)
    state = fold(in_turn({ "x" }, with_files,
      row("apply_failed", { call = 0, result = records.result("x", "no") })))
    assert.same({ nil, "no", 0, 0 }, { state.history[1].settled,
      transcript(state).pending.results[1].content, state.waiting, #state.states })
  end)

  it("with files is due once more after `apply_failed` without a result", function()
    local with_files = settled(0, "x", { files = FILES })
    local again = row("apply_failed", { call = 0 })
    local finished = row("call_finished", { call = 0, success = true }, { session = array {} })
    assert.matches("call 0 has staged nothing that can be settled again",
      refused(in_turn({ "x" }, with_files, again)))
    local begun = { records.call_started(0, "x"), finished, with_files, again }
    local state = fold(in_turn({ "x" }, table.unpack(begun)))
    assert.is_nil(state.history[1].settled)
    assert.equal(ah.null, transcript(state).pending.results[1])
    begun[5] = settled(0, "x")
    state = fold(in_turn({ "x" }, table.unpack(begun)))
    assert.equal("x", transcript(state).pending.results[1].id)
  end)

  it("with files holds other changes back, and is checked at once", function()
    local with_files = settled(0, "x", { files = FILES })
    for _, record in ipairs { settled(1, "y"), row("session", { slices = {} }), records.turn() } do
      assert.matches("the files of call 0 are being applied",
        refused(in_turn({ "x", "y" }, with_files, record)))
    end
    assert.matches("call 0 is settled", refused(in_turn({ "x" }, with_files, with_files)))
    assert.matches("no files of call 1 are being applied",
      refused(in_turn({ "x", "y" }, with_files, row("applied", { call = 1 }))))
    assert.matches("no files of call 0 are being applied",
      refused(in_turn({ "x" }, settled(0, "x"), row("applied", { call = 0 }))))
    assert.matches("record 4 %(settled%).*cannot keep 1", refused(in_turn({ "x" },
      settled(0, "x", { files = FILES, slices = { S = { keep = 1, add = array {} } } }))))
    assert.matches("record 4 %(settled%).*`path` is missing",
      refused(in_turn({ "x" }, settled(0, "x", { files = array { { root = "" } } }))))
  end)
end)

describe("asks", function()
  local function ask(id, kind, call)
    return row("ask", { ask = id, call = call or 0, kind = kind or "approval", question = "?" })
  end
  local function close(id)
    return row("ask_closed", { ask = id, how = "response", response = true })
  end

  it("are open until closed", function()
    local state = fold(in_turn({ "x" }, ask "1", ask("2", "question"), close "1"))
    assert.same({ false, true, true, true },
      { state.asks[1].open, state.asks[2].open, state.asks[1].found, state.asks[2].found })
    assert.same({ ask("1").said, close("1").said },
      { state.history[1].ask, state.history[1].response })
    assert.equal(2, state.asked)
    assert.matches("the ask is closed", refused(in_turn({ "x" }, ask "1", close "1", close "1")))
    assert.matches("there is no such ask", refused(in_turn({ "x" }, close "1")))
    assert.matches("there is an ask of this id", refused(in_turn({ "x" }, ask "1", close "1",
      ask "1")))
    assert.matches("call 0 is settled", refused(in_turn({ "x" }, settled(0, "x"), ask "1")))
  end)

  it("of a call end with it, and all with the turn", function()
    local state = fold(in_turn({ "x" }, ask "1", settled(0, "x")))
    assert.is_false(state.asks[1].open)
    assert.matches("the ask is closed", refused(in_turn({ "x" }, ask "1", settled(0, "x"),
      close "1")))
    state = fold(in_turn({ "x" }, ask "1", settled(0, "x"), records.turn()))
    assert.same({ 0, 1 }, { #state.asks, state.asked })
  end)

  it("leave the last one of the gate in the history", function()
    local call = fold(in_turn({ "x" }, ask "1", close "1", ask("2", "lost"))).history[1]
    assert.same({ ask("2", "lost").said, nil }, { call.ask, call.response })
  end)

  it("park the run until something happens in it", function()
    local park = row("parked", { asks = array { "1" } })
    assert.is_true(fold(in_turn({ "x" }, ask "1", park)).history.parked)
    assert.is_false(fold(in_turn({ "x" }, ask "1", park, close "1")).history.parked)
    assert.is_false(fold(in_turn({ "x" }, ask "1", park, row "cancelled")).history.parked)
    assert.matches("it waits for no ask", refused(in_turn({ "x" }, row("parked",
      { asks = array {} }))))
    assert.matches("a list of strings", refused(in_turn({ "x" }, row("parked",
      { asks = array { 1 } }))))
    assert.matches("the ask is closed", refused(in_turn({ "x" }, ask "1", close "1", park)))
  end)
end)

describe("slices and entities", function()
  local function session(slices, entities)
    return row("session", { slices = slices, entities = entities })
  end

  it("keep the oldest values and add", function()
    local state = fold(session { S = { keep = 0, add = array { 1, 2, 3 } } },
      session { S = { keep = 1, add = array { "a" } }, T = { keep = 0, add = array {} } })
    assert.equal('{"agenthost_session":1,"slices":{"S":[1,"a"]}}', state.session)
    assert.matches("a slice of 3 values cannot keep 4", refused(
      session { S = { keep = 0, add = array { 1, 2, 3 } } }, session { S = { keep = 4,
        add = array {} } }))
    assert.matches("`add` is missing", refused(session { S = { keep = 0 } }))
  end)

  it("keep the last state of each entity", function()
    local state = fold(session(nil, array { { class = "C", id = "1", state = 1 },
      { class = "C1", id = "", state = 2 } }), session(nil, array { { class = "C", id = "1",
        state = 3 } }))
    assert.same({ { class = "C", id = "1", state = "3" }, { class = "C1", id = "", state = "2" } },
      state.states)
    state = fold(session(nil, array { { class = "C", id = "1", state = 1 } }),
      session(nil, array { { class = "C", id = "1" } }))
    assert.is_nil(state.states[1].state)
    assert.matches('"entities":%[%]', state.checkpoint)
  end)
end)

describe("a checkpoint", function()
  local function checkpoint(change)
    local said = ah.json.decode(fold(STARTED).checkpoint)
    said.entities = array(said.entities)
    change(said)
    return row("checkpoint", said)
  end

  it("may stand between turns only", function()
    local point = checkpoint(function() end)
    assert.matches("a turn is pending", refused(in_turn({ "x" }, point)))
    assert.matches("entries wait for the next turn",
      refused(STARTED, row("queued", { entry = records.user "x" }), point))
  end)

  it("must be whole and fit together", function()
    local function of(change)
      return refused(checkpoint(change))
    end
    assert.matches("`opened` is missing", of(function(c) c.opened = nil end))
    assert.matches("`format` is missing", of(function(c) c.opened = ah.object {} end))
    assert.matches("is no conversation", of(function(c) c.transcript = ah.object {} end))
    assert.matches("has a pending turn", of(function(c) c.transcript.pending = ah.object {} end))
    assert.matches("a slice must be a list", of(function(c) c.slices = { S = 1 } end))
    assert.matches("its run is not the last of its 7 runs", of(function(c) c.runs = 7 end))
    assert.matches("its `first` is 9", of(function(c) c.run.first = 9 end))
    assert.matches("`stop` is missing", of(function(c)
      c.ended = { run = 1, first = 0, success = true, code = "" }
    end))
  end)

  it("counts turns and bytes anew", function()
    local state = fold(in_turn({}, records.turn(), checkpoint(function() end), row "session"))
    assert.same({ 0, 2, 5 }, { state.since, state.bytes, state.at_checkpoint })
  end)
end)

-- -- random streams -------------------------------------------------------------------------

describe("a rewind", function()
  local function rewound(to)
    return row("rewound", { to = to })
  end

  it("goes on from its checkpoint, whatever was pending", function()
    local before = fold(STARTED, records.answer(records.assistant "a"), records.turn())
    local point = { kind = "checkpoint", said = fold().checkpoint }
    local state = fold(STARTED, records.answer(records.assistant("a", { "c1" })), rewound(1),
      point, row("entries", { entries = array { records.user "anew" } }))
    assert.equal("anew", transcript(state).entries[1].content[1].text)
    assert.is_nil(transcript(state).pending)
    assert.same({ 0, 5, 6 }, { state.history.run, state.at_checkpoint, state.last })
    assert.equal(1, before.history.run)
    state = fold(in_turn({ "c1" }, rewound(1), point, STARTED))
    assert.equal(1, state.history.run)
  end)

  it("changes nothing without its checkpoint, and needs it next", function()
    local state = fold(in_turn({ "c1" }, rewound(2)))
    assert.equal(1, state.history.run)
    assert.matches("a checkpoint is expected after `rewound`",
      refused(in_turn({ "c1" }, rewound(2), row "session")))
    assert.matches("a checkpoint is expected after `rewound`",
      refused(rewound(1), row("dreamt", { since = "9", informative = true })))
  end)

  it("is to a record before it, while no files are being applied", function()
    assert.matches("there is no record 0 before it", refused(rewound(0)))
    assert.matches("there is no record 2 before it", refused(rewound(2)))
    assert.matches("`to` must be an integer", refused(rewound "1"))
    assert.matches("are being applied", refused(in_turn({ "c1" }, settled(0, "c1",
      { files = FILES }), rewound(1))))
  end)
end)

-- The parts of a state that checkpoints do not change.
local function lasting(state)
  local kept = { transcript = state.transcript, session = ah.json.decode(state.session),
    runs = state.runs,
    asked = state.asked, ended = state.ended, ended_first = state.ended_first,
    opened = state.opened, asks = state.asks, history = state.history, states = {} }
  for _, s in ipairs(state.states) do
    kept.states[s.class .. "/" .. s.id] = s.state
  end
  return kept
end

local function model_of(made)
  local slices, states = {}, {}
  for name, list in pairs(made.slice) do
    slices[name] = #list > 0 and array(list) or nil
  end
  for key, state in pairs(made.state) do
    states[key] = state or nil
  end
  return ah.json.encode { agenthost_session = 1, slices = ah.object(slices) }, states
end

describe("a random stream", function()
  it("gives the transcript that its changes give", function()
    for seed = 1, SEEDS do
      local made = random_history(seed)
      local state, _, message = ahtest.fold(made.rows)
      assert(state, ("seed %d: %s"):format(seed, message))
      assert.equal(ahtest.build(made.steps), state.transcript)
      local session, states = model_of(made)
      assert.same(ah.json.decode(session), ah.json.decode(state.session))
      assert.same(states, lasting(state).states)
      assert.is_true(state.sound)
    end
  end)

  it("may end anywhere", function()
    for seed = 1, SEEDS // 4 do
      local rows = random_history(seed).rows
      for n = 1, #rows do
        local state, _, message = ahtest.fold(table.move(rows, 1, n, 1, {}))
        assert(state, ("seed %d, %d records: %s"):format(seed, n, message))
        assert.is_true(state.sound)
      end
    end
  end)

  it("is the same with a checkpoint between turns, and from it on", function()
    local points = 0
    for seed = 1, SEEDS do
      local made = random_history(seed)
      local rows = made.rows
      local want = lasting(ahtest.fold(rows))
      for at in pairs(made.ends) do
        local text = ahtest.fold(table.move(rows, 1, at, 1, {})).checkpoint
        local with = table.move(rows, 1, at, 1, {})
        with[at + 1] = { kind = "checkpoint", said = text }
        -- Times are those of the stream without it.
        for i = at + 1, #rows do
          with[i + 1] = { kind = rows[i].kind, said = rows[i].said, kept = rows[i].kept,
            time = 1000 + i }
        end
        local state, _, message = ahtest.fold(with)
        assert(state, message)
        assert.same(want, lasting(state))
        state = ahtest.fold(table.move(with, at + 1, #with, 1, {}), { from = at })
        assert.same(want, lasting(state))
        points = points + 1
      end
    end
    assert.is_true(points > SEEDS)
  end)

  -- Returns a copy of the rows with one change, which may be none.
  local function mutate(rows, pick)
    local made, how, at = table.move(rows, 1, #rows, 1, {}), pick(4), pick(#rows)
    if how == 1 then
      table.remove(made, at)
    elseif how == 2 then
      table.insert(made, at, made[at])
    elseif how == 3 then
      local other = pick(#rows)
      made[at], made[other] = made[other], made[at]
    else
      local said = ah.json.decode(made[at].said)
      local names = {}
      for name in pairs(said) do
        names[#names + 1] = name
      end
      table.sort(names)
      local name = #names > 0 and names[pick(#names)]
      if name then
        said[name] = ({ ah.null, 0, 1, 7, -1, "", "call_1", true, ah.object {}, array {},
          array { 1 }, 2 ^ 60 })[pick(12)]
      end
      made[at] = { kind = made[at].kind, said = ah.json.encode(said), kept = made[at].kept }
    end
    return made
  end

  it("with one record dropped, doubled, swapped or changed ends with an error or is sound",
    function()
    local errors, folds = 0, 0
    for seed = 1, SEEDS do
      local rows, pick = random_history(seed).rows, random(seed)
      for _ = 1, 60 do
        local state, code, message = ahtest.fold(mutate(rows, pick))
        if state then
          assert.is_true(state.sound)
          folds = folds + 1
        else
          assert.equal(STORE, code)
          assert.matches("^record %d+ %([%l_]+%) of the stream: .", message)
          errors = errors + 1
        end
      end
    end
    assert.is_true(errors > SEEDS * 10 and folds > SEEDS)
  end)

  it("folds or fails when memory ends anywhere, and all of it is freed", function()
    for seed = 1, 3 do
      local rows, n = random_history(seed).rows, 0
      local state, code
      repeat
        state, code = ahtest.fold(rows, { fail = n })
        assert(state or code == NOMEM, code)
        n = n + 1 + n // 50
      until state
      assert.is_true(n > 50)
    end
  end)
end)

describe("the cost of a fold", function()
  it("grows with the number of records, not faster", function()
    local function cost(n)
      local list, best = records.long(n), math.huge
      for _ = 1, 5 do
        best = math.min(best, ahtest.fold_cost(list))
      end
      return best
    end
    local few = cost(1500)
    assert.is_true(cost(12000) < 8 * 4 * few)
  end)
end)

describe("a fold of files in memory", function()
  local OPENED = { format = 1, written_by = "0.2.0", readable_from = 1, stream = "files" }

  local function put(path, content, mode)
    return { act = "put", path = path, content = content, mode = mode }
  end

  local function folder(path)
    return { act = "folder", path = path }
  end

  local function written(...)
    return row("written", { paths = array {} }, array { ... })
  end

  local function fold_files(options, ...)
    options.stream = "files"
    return ahtest.fold({ row("opened", OPENED), ... }, options)
  end

  local function files_of(...)
    local state, _, message = fold_files({}, ...)
    assert(state, message)
    return state.files and ah.json.decode(state.files)
  end

  local CHECKPOINT = { opened = OPENED, slices = ah.object {}, entities = array {}, runs = 0,
    asks = 0, transcript = ah.json.decode(assert(fold()).transcript) }

  it("has each entry as it was recorded last", function()
    assert.is_nil(files_of())
    assert.same({}, files_of(written()))
    local rows = { written(put("a", "1"), folder "d", put("d/b", { base64 = "/wA=" }, 420)),
      written(put("a", "2"), { act = "remove", path = "d/b" }, put("d/c", "3")) }
    assert.same({ put("a", "2"), folder "d", put("d/c", "3") }, files_of(table.unpack(rows)))
    assert.same({ put("d", "4", 420) }, files_of(rows[1], row("checkpoint", CHECKPOINT,
      array { put("d", "4", 420) })))
  end)

  it("refuses lists that are no files", function()
    local lists = { { put("a/b", "") }, { put("a", ""), put("a/b", "") }, { put("", "") },
      { folder "../a" }, { put("b", ""), put("a", "") }, { put("a", ""), put("a", "") },
      { put("a") }, { put("a", 1) }, { put("a", { base64 = "?" }) }, { put("a", "", 4096) },
      { { act = "seen", path = "a" } }, { { act = "put", content = "" } }, { 1 },
      { folder "a\n" }, { { act = "remove", path = "d" } } }
    for i, list in ipairs(lists) do
      local state, code, message = fold_files({}, written(folder "d", put("d/x", "")),
        written(table.unpack(list)))
      assert.same({ nil, STORE }, { state, code }, "list " .. i)
      assert.matches("^record 3 %(written%) of the stream: ", message)
    end
    for _, kept in ipairs { "{}", "1", false } do
      local state, code = fold_files({}, { kind = "written", said = '{"paths":[]}',
        kept = kept or nil })
      assert.same({ nil, STORE }, { state, code })
    end
    assert.matches("has no such records", refused(written()))
  end)

  it("survives any lack of memory", function()
    local state, code
    local n = -1
    repeat
      n = n + 1
      state, code = fold_files({ fail = n }, written(folder "d", put("d/x", "1")),
        written(put("d/x", "2")), row("checkpoint", CHECKPOINT, array { put("a", "b") }))
      assert.is_true(state ~= nil or code == NOMEM)
    until state
    assert.is_true(n > 10)
  end)
end)
