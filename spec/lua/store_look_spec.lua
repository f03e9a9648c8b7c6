-- store:conversations, store:records and store:subscribe.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local store

before_each(function()
  store = assert(ah.store { engine = "memory" })
end)

after_each(function()
  store:close()
end)

local function talk(id, words, more)
  local agent <close> = assert(ah.agent { store = store, id = id, model = more or "demo/echo" })
  assert(agent:run(words))
end

local function ids_of(list)
  local ids = {}
  for i, one in ipairs(assert(list)) do
    ids[i] = one.id
  end
  return ids
end

local function all(id, options)
  local found = {}
  for record in assert(store:records(id, options)) do
    found[#found + 1] = record
  end
  return found
end

describe("store:conversations", function()
  it("lists what is there, the newest first", function()
    assert.same({}, store:conversations())
    talk("one", "  Good\n\n morning,\tAnn. ")
    talk("two", ("é"):rep(100))
    talk("one", "Again.")
    local list = store:conversations()
    assert.same({ "one", "two" }, ids_of(list))
    local one = list[1]
    assert.same({ "Good morning, Ann.", "idle", 0, 0 },
      { one.title, one.state, #one.waiting, one.messages })
    assert.equal(#all "one", one.number)
    assert.is_true(math.abs(one.changed - os.time() * 1000) < 60000)
    assert.equal(("é"):rep(60), list[2].title)
    assert.is_string(one.folder)
  end)

  it("takes prefix, state, folder, waiting and limit", function()
    talk("one", "1")
    talk("two", "2")
    talk("three", "3")
    local here = store:conversations()[1].folder
    assert.same({ "three", "two" }, ids_of(store:conversations { prefix = "t" }))
    assert.same({ "three" }, ids_of(store:conversations { limit = 1 }))
    assert.same({ "one" }, ids_of(store:conversations { prefix = "o", limit = 1, folder = here }))
    assert.same({}, ids_of(store:conversations { folder = here .. "/x" }))
    assert.same({}, ids_of(store:conversations { state = "running" }))
    assert.same({}, ids_of(store:conversations { waiting = true }))
    assert.error_matches(function() store:conversations { state = "asleep" } end, "idle")
    assert.error_matches(function() store:conversations { folders = "x" } end, "folder")
  end)
end)

describe("store:records", function()
  it("gives records in their order, over many pages", function()
    local agent = assert(ah.agent { store = store, id = "long", model = "demo/echo" })
    for i = 1, 3 do
      agent:run(("x"):rep(200000) .. i)
    end
    local found = all "long"
    for i, record in ipairs(found) do
      assert.equal(i, record.number)
    end
    assert.equal("opened", found[1].kind)
    assert.equal("conversation", found[1].said.stream)
    assert.equal("run_ended", found[#found].kind)
    assert.equal(store:conversations()[1].number, #found)
    agent:close()
  end)

  it("takes from, to and kinds", function()
    talk("ann", "Hi")
    local whole = all "ann"
    assert.same({ whole[2], whole[3] }, all("ann", { from = 2, to = 3 }))
    assert.same({}, all("ann", { from = 1000 }))
    local answers = all("ann", { kinds = { "answer", "turn" } })
    assert.same({ "answer", "turn", nil }, { answers[1].kind, answers[2].kind, answers[3] })
    assert.error_matches(function() store:records("ann", { kinds = { "answers" } }) end,
      "no kind of records 'answers'")
    assert.error_matches(function() store:records("ann", { kinds = {} }) end, "empty")
  end)

  it("gives only the members that are asked for", function()
    talk("ann", "Hi")
    local answer = all("ann", { kinds = { "answer" } })[1].said
    local names = { "stop", "none", "entry" }
    local records = store:records("ann", { kinds = { "answer", "turn" }, members = names })
    names[1], names[3] = "usage", nil
    assert.same({ stop = answer.stop, entry = answer.entry }, records().said)
    assert.same({}, records().said)
    local function members(list)
      return function() store:records("ann", { members = list }) end
    end
    assert.error_matches(members {}, "members has 0 names, expected 1 to 64")
    assert.error_matches(members { "stop", 2 }, "members%[2%] must be a string, found number")
    local many = {}
    for i = 1, 65 do
      many[i] = "m" .. i
    end
    assert.error_matches(members(many), "members has 65 names")
  end)

  it("gives what is kept only if it is asked for", function()
    local tool = ah.tool { name = "put", description = "Puts.", params = {}, durable = true,
      handler = function(_, ctx) return ctx:step("draw", function() return "the_value" end) end }
    local agent <close> = assert(ah.agent { store = store, id = "ann", tools = { tool },
      model = ah.scripted { { calls = { { name = "put", arguments = {} } } }, "Done." } })
    assert(agent:run "Go.")
    local function steps(kept)
      return all("ann", { kinds = { "step" }, kept = kept })
    end
    assert.is_nil(steps(false)[1].kept)
    assert.is_nil(steps()[1].kept)
    assert.matches("the_value", ah.json.encode(steps(true)[1].kept))
  end)

  it("reads while an agent holds the conversation, and of an unknown one says so", function()
    local agent <close> = assert(ah.agent { store = store, id = "held", model = "demo/echo" })
    agent:run "Hi"
    assert.is_true(#all "held" > 3)
    local none, err = store:records "hold"
    assert.is_nil(none)
    assert.equal("usage", err.code)
    assert.matches("did you mean 'held'", err.message)
  end)

  it("raises when the store is closed between", function()
    local agent = assert(ah.agent { store = store, id = "long", model = "demo/echo" })
    for _ = 1, 3 do
      agent:run(("x"):rep(200000))
    end
    local next_one = assert(store:records "long")
    agent:close()
    store:close()
    assert.error_matches(function()
      while next_one() do end
    end, "closed")
  end)
end)

describe("store:subscribe", function()
  it("reports changes of this process, and not those before it", function()
    talk("old", "Hi")
    local seen = {}
    local sub <close> = store:subscribe(function(one) seen[#seen + 1] = one end)
    assert.equal("subscription", tostring(sub))
    ah.sleep(0.6)
    assert.same({}, seen)
    talk("new", "Hi")
    ah.sleep(0.6)
    assert.same({ "new" }, ids_of(seen))
    assert.same({ "idle", #all "new" }, { seen[1].state, seen[1].number })
    talk("old", "Again")
    ah.sleep(0.6)
    assert.same({ "new", "old" }, ids_of(seen))
  end)

  it("ends with close, also in its own function", function()
    local calls, sub = 0, nil
    sub = store:subscribe(function()
      calls = calls + 1
      sub:close()
    end)
    talk("one", "Hi")
    talk("two", "Hi")
    ah.sleep(0.6)
    talk("three", "Hi")
    ah.sleep(0.6)
    assert.equal(1, calls)
    assert.equal("subscription (closed)", tostring(sub))
    assert.error_matches(function() store:subscribe() end, "function")
  end)

  if ahtest.store_engines().sqlite then
    it("reports records and asks of another connection to the file", function()
      finally(command.tidy)
      local path, seen = command.folder() .. "/work.db", {}
      streams.make(path, "talk_1", { streams.waiting({})[1] }, { state = "idle" })
      local file <close> = assert(ah.store(path))
      local sub <close> = file:subscribe(function(one) seen[#seen + 1] = one end)
      streams.make(path, "talk_2", streams.waiting {},
        { state = "waiting", waiting = { "ask_1" } })
      ah.sleep(0.8)
      assert.same({ "talk_2", { "ask_1" }, 6 },
        { seen[#seen].id, seen[#seen].waiting, seen[#seen].number })
      assert.same({ "talk_2" }, ids_of(file:conversations { waiting = true }))
      sub:close()
    end)
  end
end)

if ahtest.store_engines().sqlite then
  describe("a damaged store", function()
    local path

    before_each(function()
      path = command.folder() .. "/work.db"
    end)

    after_each(command.tidy)

    it("gives the records before a damaged one, then its error", function()
      local records = streams.waiting {}
      records[4] = { 1000, "answer", "{\"entry\":" }
      streams.make(path, "talk", records, { state = 7, waiting = "x", folder = {}, agent = 1 })
      local file <close> = assert(ah.store(path))
      local list = assert(file:conversations())
      assert.same({ "talk", "Tidy up.", 0 }, { list[1].id, list[1].title, #list[1].waiting })
      assert.same({}, { list[1].state, list[1].folder, list[1].agent })
      local numbers = {}
      local done, err = pcall(function()
        for record in assert(file:records "talk") do
          numbers[#numbers + 1] = record.number
        end
      end)
      assert.is_false(done)
      assert.same({ 1, 2, 3 }, numbers)
      assert.equal("store", err.code)
      assert.matches("record 4 is damaged", err.message)
      local none, why = file:records("talk", { from = 4 })
      assert.same({ nil, "store" }, { none, why.code })
    end)

    it("gives the records before one of which a long string was erased", function()
      if not os.execute "command -v sqlite3 >/dev/null" then
        return pending "no sqlite3"
      end
      local records = streams.waiting {}
      table.insert(records, 4, { 1000, "session", '{"slices":"' .. ("y"):rep(5000) .. '"}' })
      streams.make(path, "talk", records, { state = "idle" })
      assert.truthy(os.execute(("sqlite3 '%s' 'UPDATE blobs SET body = NULL'"):format(path)))
      local file <close> = assert(ah.store(path))
      local numbers = {}
      local done, err = pcall(function()
        for record in assert(file:records "talk") do
          numbers[#numbers + 1] = record.number
        end
      end)
      assert.is_false(done)
      assert.same({ 1, 2, 3 }, numbers)
      assert.matches("record 4: a text of it was erased", err.message)
    end)

    it("refuses JSON that is nested too deep, and takes what is nearly so", function()
      local function deep(n)
        return { 1000, "session", '{"slices":' .. ("["):rep(n) .. ("]"):rep(n) .. "}" }
      end
      local opened = streams.waiting({})[1]
      streams.make(path, "deep", { opened, deep(509), deep(510) }, { state = "idle" })
      local file <close> = assert(ah.store(path))
      local next_one = assert(file:records "deep")
      assert.equal(1, next_one().number)
      assert.equal(2, next_one().number)
      assert.error_matches(next_one, "record 3 is damaged")
    end)
  end)
end

describe("a line of the commands", function()
  local line = ah._line

  it("has blanks in place of white space, and no controls", function()
    assert.equal(" a b c ", line("\n a\t\r\nb  c\v", 20))
    assert.equal("\\x1b[31m\\u202eé\u{fffd}b\\x00", line("\27[31m\u{202e}é\xffb\0", 40))
    assert.equal("", line("", 0))
  end)

  it("has at most so many characters, of which dots are the last", function()
    for _, part in ipairs { "ab cd, ", "é", "a\27", "\xff" } do
      local text = part:rep(50)
      local whole = line(text, 1000)
      for most = 3, utf8.len(whole) - 1 do
        local found = line(text, most)
        assert.is_true(utf8.len(found) <= most and utf8.len(found) > most - 5)
        assert.equal("...", found:sub(-3))
        assert.equal(whole:sub(1, #found - 3), found:sub(1, -4))
      end
      assert.equal(whole, line(text, utf8.len(whole)))
    end
    assert.equal("a b...", line("a b" .. (" "):rep(100000) .. "cdef", 6))
    assert.error_matches(function() line("a", -1) end, "out of range")
  end)
end)
