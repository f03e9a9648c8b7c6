-- store:export, store:import, store:delete, store:verify and store:stat, and that nothing of what
-- was deleted or erased is left in the files of a store.
local ah = require "agenthost"
local ahtest = require "ahtest"
local random = require "spec.support.random"
local streams = require "support.streams"

if not ahtest.store_engines().sqlite then
  return
end

local has_tool = os.execute "command -v sqlite3 >/dev/null"
local record = streams.record

local folder, path

local function shell(line)
  local pipe <close> = assert(io.popen(line))
  return (pipe:read("a"):gsub("\n$", ""))
end

before_each(function()
  folder = shell "mktemp -d"
  path = folder .. "/store.db"
end)

after_each(function()
  assert.truthy(folder:find "/tmp%.%w+$")
  os.execute("rm -rf '" .. folder .. "'")
end)

-- Returns how often the word is in the files of the store, byte for byte.
local function count(word)
  local n = 0
  for name in shell("ls -A '" .. folder .. "'"):gmatch "[^\n]+" do
    local f <close> = assert(io.open(folder .. "/" .. name, "rb"))
    local _, more = f:read("a"):gsub(word, "")
    n = n + more
  end
  return n
end

-- Runs a statement of another program on the file.
local function sql(text)
  return shell(("sqlite3 -bail '%s' \"%s\" 2>&1"):format(path, text))
end

local function opened(kind)
  return record("opened", { format = 1, stream = kind or "conversation", written_by = "0.1.0",
    readable_from = 1 })
end

local function message(words)
  return record("entries", { entries = ah.array { { type = "user", time = 1,
    content = ah.array { { type = "text", text = words } } } } })
end

-- True if the conversation has the text.
local function has_text(agent, words)
  return agent:transcript():find(ah.json.encode(words), 1, true) ~= nil
end

-- Returns a store with a finished conversation.
local function store_with(id, words)
  local store = assert(ah.store(path))
  local agent <close> = assert(ah.agent { store = store, id = id, model = "demo/echo" })
  assert(agent:run(words))
  return store
end

describe("store:delete", function()
  -- Writes records of several conversations in turns, so that pages of the file are split.
  local function fill(draw, ids)
    local s <close> = assert(ahtest.store("sqlite", { path = path, create = true }))
    local fence, last = {}, {}
    for _, id in ipairs(ids) do
      fence[id], last[id] = assert(s:hold(id)), 1
      s:append { { id, 0, fence[id], opened() } }
      s:label(id, ah.json.encode { state = "idle", folder = "/word-of-" .. id })
      assert(s:post(id, "key-word-of-" .. id, "send", '{"text":"word-of-' .. id .. '"}', 1))
    end
    for i = 1, 900 do
      local id = ids[draw(#ids)]
      local words = ("word-of-%s %d "):format(id, i):rep(draw(60))
      local shared = ("shared by all "):rep(500)
      local list = { message(words) }
      if i % 40 == 0 then
        list = { message(words:rep(20)), message(shared),
          record("step", { call = 0, step = "word-of-" .. id, success = true }, 1,
            ah.json.encode(("kept word-of-" .. id .. " "):rep(700))) }
      end
      s:append { { id, last[id], fence[id], table.unpack(list) } }
      last[id] = last[id] + #list
      for _, done in ipairs(s:wait()) do
        assert.equal(0, done[2], done[3])
      end
    end
  end

  it("leaves nothing in the files of the store: rows, pages, long texts, inbox, log", function()
    local draw = random(19)
    for _ = 1, 3 do
      fill(draw, { "ann", "bob", "cleo", "dora" })
      local store <close> = assert(ah.store(path))
      local before, bob = assert(store:stat()), assert(store:verify "bob")
      assert.is_true(count "word%-of%-ann" > 1000)
      assert.is_true(count "word%-of%-bob" > 1000)
      assert.is_true(store:delete "ann")
      assert.equal(0, count "word%-of%-ann")
      assert.equal(0, count "ann")
      assert.is_true(count "word%-of%-bob" > 1000)
      assert.equal(0, #shell("cat '" .. path .. "-wal'"))
      assert.same(bob, store:verify "bob")
      local after = assert(store:stat())
      assert.is_true(after.size < before.size and after.blobs < before.blobs)
      for _, id in ipairs { "bob", "cleo" } do
        assert.is_true(store:delete(id))
      end
      assert.is_true(count "shared by all" > 0)
      assert.is_true(store:delete "dora")
      assert.equal(0, count "word%-of")
      assert.equal(0, count "shared by all")
      assert.same({ 0, {} }, { store:stat().blobs, store:stat().streams })
    end
  end)

  it("removes more than rows: without writing the file anew, words are left", function()
    fill(random(7), { "ann", "bob" })
    local store <close> = assert(ah.store(path))
    assert.is_true(ah._store_remove(store, "ann"))
    assert.is_true(count "word%-of%-ann" > 0)
    assert.is_true(ah._store_purge(store))
    assert.equal(0, count "word%-of%-ann")
  end)

  it("verifies by the head of an agent", function()
    local store <close> = assert(ah.store(path))
    local agent = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    local before = assert(agent:head())
    assert(agent:run "Hello")
    local head = assert(agent:head())
    assert.matches("^%d+:%x+$", head)
    assert.not_equal(before, head)
    assert.same({ head, true }, { store:verify("ann").head,
      store:verify("ann", { head = head }).success })
    agent:close()
    assert.is_true(store:verify("ann", { head = head }).success)
    local other = head:sub(1, -2) .. (head:sub(-1) == "0" and "1" or "0")
    assert.equal("forged", store:verify("ann", { head = other }).code)
    local memory <close> = assert(ah.store { engine = "memory" })
    local _, err = assert(ah.agent { store = memory, id = "ann", model = "demo/echo" }):head()
    assert.equal("usage", err.code)
    assert.is_false((pcall(function() ah.agent({ model = "demo/echo" }):head() end)))
  end)

  it("refuses a conversation that is open", function()
    local store <close> = store_with("ann", "Hello")
    local agent = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    local ok, err = store:delete "ann"
    assert.is_nil(ok)
    assert.equal("conflict", err.code)
    agent:close()
    assert.is_true(store:delete "ann")
  end)

  it("lets forks live on, with what they share", function()
    local long = ("long and shared "):rep(600)
    local store <close> = store_with("ann", long)
    local agent = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    local fork = assert(agent:fork { id = "bob" })
    fork:close()
    agent:close()
    assert.is_true(store:delete "ann")
    local again <close> = assert(ah.agent { store = store, id = "bob", model = "demo/echo" })
    assert.equal(4, #assert(again:run "And now?").messages)
    assert.is_true(has_text(again, long))
    again:close()
    assert.is_true(store:verify("bob").success)
  end)

  it("says what is not there, and begins an id anew", function()
    local store <close> = store_with("ann", "First words")
    assert.equal("usage", select(2, store:delete "bob").code)
    assert.is_true(store:delete "ann")
    local agent <close> = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    assert.equal(2, #assert(agent:run "Hello").messages)
  end)

  it("deletes named sessions, and works in memory", function()
    local store <close> = assert(ah.store(path))
    ahtest.store("sqlite", { path = path }):close()
    streams.make(path, "session/stock", { opened "session" })
    assert.is_true(store:delete "session/stock")
    assert.same({}, store:stat().streams)

    local memory <close> = assert(ah.store { engine = "memory" })
    for _, id in ipairs { "ann", "bob", "cleo" } do
      local agent <close> = assert(ah.agent { store = memory, id = id, model = "demo/echo" })
      assert(agent:run "Hello")
      if id == "ann" then
        assert.equal("conflict", select(2, memory:delete "ann").code)
      end
    end
    assert.is_true(memory:delete "ann")
    assert.equal("cleo bob", memory:stat().streams[1].id .. " " .. memory:stat().streams[2].id)
    assert.equal("usage", select(2, memory:delete "ann").code)
    local agent <close> = assert(ah.agent { store = memory, id = "cleo", model = "demo/echo" })
    assert.equal(4, #assert(agent:run "Again").messages)
    assert.equal("usage", select(2, memory:verify "bob").code)
  end)
end)

describe("store:verify", function()
  local function verdict(store, head)
    local v = assert(store:verify("ann", { head = head }))
    return v.code or "sound", v
  end

  it("tells changed and missing records apart", function()
    if not has_tool then
      return
    end
    local store <close> = store_with("ann", ("Hello "):rep(1000))
    local sound = assert(store:verify "ann")
    assert.same({ true, 8, 0 }, { sound.success, sound.records, sound.erased })
    store:close()
    os.execute(("cp '%s' '%s.good'"):format(path, path))
    for _, case in ipairs {
      { "UPDATE records SET said = said || ' ' WHERE id & 255 = 6", "changed", 6 },
      { "UPDATE records SET time = time + 1 WHERE id & 255 = 3", "changed", 3 },
      { "UPDATE records SET kind = 'lost' WHERE id & 255 = 5", "changed", 5 },
      { "UPDATE records SET kept = 'x' WHERE id & 255 = 2", "changed", 2 },
      { "UPDATE records SET hash = zeroblob(32) WHERE id & 255 = 7", "changed", 7 },
      { "UPDATE records SET hash = x'00' WHERE id & 255 = 7", "changed", 7 },
      { "DELETE FROM records WHERE id & 255 = 4", "missing", 4 },
      { "DELETE FROM records WHERE id & 255 = 1", "missing", 1 },
      { "UPDATE records SET id = id + 1 WHERE id & 255 = 8", "missing", 8 },
      { "UPDATE blobs SET body = replace(body, 'H', 'J')", "changed", 4 },
      { "DELETE FROM blobs", "changed", 4 } } do
      os.execute(("cp '%s.good' '%s'"):format(path, path))
      assert.equal("", sql(case[1]))
      local one <close> = assert(ah.store(path))
      local code, v = verdict(one)
      assert.same({ case[2], case[3], false }, { code, v.at, v.success }, case[1])
      assert.truthy(v.message:find("record " .. case[3], 1, true))
    end
  end)

  it("tells cut and forged apart by a head", function()
    local store <close> = store_with("ann", "Hello")
    local head = assert(store:verify "ann").head
    local text = assert(store:export "ann")
    assert.equal("sound", verdict(store, head))
    assert.equal("sound", verdict(store, (head:gsub("^8:", ""))))
    local agent = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    assert(agent:run "More")
    agent:close()
    assert.equal("sound", verdict(store, head))
    local longer = assert(store:verify "ann").head
    assert.is_true(store:delete "ann")
    assert(store:import(text))
    assert.equal("cut", verdict(store, longer))
    assert.equal("forged", verdict(store, (longer:gsub("^%d+:", ""))))
    assert.is_true(store:delete "ann")
    store_with("ann", "Another"):close()
    assert.equal("forged", verdict(store, head))
    for _, bad in ipairs { "", ":", "8:", "8:" .. ("g"):rep(64), "-1:" .. ("0"):rep(64),
      ("0"):rep(63), "1.5:" .. ("0"):rep(64), ("0"):rep(100000) } do
      assert.equal("usage", select(2, store:verify("ann", { head = bad })).code)
    end
    assert.equal("usage", select(2, store:verify "bob").code)
  end)
end)

describe("what old records keep", function()
  -- Writes a conversation with a durable call that was committed, and one that was not.
  local function call_of(word)
    return { opened(), record("run_started", { run = 1, first = 0 }), message "Begin",
      record("answer", { entry = { type = "assistant", content = ah.array {}, time = 2,
        stop = "tool_calls", tool_calls = ah.array { { id = "call_1", name = "tidy",
          arguments = "{}" } },
        origin = { adapter = "scripted", model = "script", endpoint = "" } }, iteration = 1,
        stop = "tool_calls" }),
      record("call_started", { call = 0, id = "call_1", tool = "tidy", key = ("0"):rep(64),
        definition = "x", on_lost = "tell" }, 1000, '{"secret":"' .. word .. '"}'),
      record("step_started", { call = 0, step = "a", on_lost = "tell" }),
      record("step", { call = 0, step = "a", success = true }, 1000,
        '"' .. (word .. " "):rep(900) .. '"') }
  end
  local ending = { record("settled", { call = 0, result = { type = "tool_result", id = "call_1",
    name = "tidy", content = "done", success = true, time = 3 } }),
    record("turn", { progress = { iterations = 1 } }),
    record("run_ended", { run = 1, first = 0, success = true, code = "", text = "Done.",
      stop = "stop", progress = { iterations = 1 } }) }

  it("is erased where opening does not need it, and is told as erased", function()
    local list = call_of "first-word"
    table.move(ending, 1, #ending, #list + 1, list)
    streams.make(path, "done", list, { state = "idle" })
    streams.make(path, "open", call_of "second-word", { state = "running" })
    local store <close> = assert(ah.store(path))
    local head = assert(store:verify "done").head
    assert.equal(0, ah._store_erase(store, "done", 1000))
    assert.equal(2, ah._store_erase(store, "done", 1001))
    assert.equal(0, ah._store_erase(store, "done", 1001))
    assert.equal(0, ah._store_erase(store, "open", 1001))
    assert.is_true(ah._store_purge(store))
    assert.equal(0, count "first%-word")
    assert.is_true(count "second%-word" > 800)
    local v = assert(store:verify("done", { head = head }))
    assert.same({ true, 2, head }, { v.success, v.erased, v.head })
    local agent <close> = assert(ah.agent { store = store, id = "done", model = "demo/echo" })
    assert(agent:run "Go on")
    assert.equal(2, store:stat().streams[1].erased)
  end)

  it("is missed where opening needs it", function()
    streams.make(path, "open", call_of "second-word", { state = "running" })
    local store <close> = assert(ah.store(path))
    local text = assert(store:export "open")
    assert.is_nil(text:find "second%-word")
    assert.equal(2, assert(store:import(text, { id = "copy" })).erased)
    local agent, err = ah.agent { store = store, id = "copy", model = "demo/echo" }
    assert.is_nil(agent)
    assert.truthy(tostring(err):find("what record 5 kept was erased", 1, true), tostring(err))
  end)
end)

describe("store:export and store:import", function()
  it("give the same conversation, in another store and under another id", function()
    local long = ("a long text \\ \" \u{e4} "):rep(700)
    local store <close> = store_with("ann", long)
    local text = assert(store:export("ann", { kept = true }))
    local head = assert(store:verify "ann").head
    assert.equal(9, select(2, text:gsub("\n", "")))
    for _, to in ipairs { assert(ah.store(folder .. "/other.db")),
      assert(ah.store { engine = "memory" }), store } do
      local done = assert(to:import(text, { id = "bob" }))
      assert.same({ id = "bob", records = 8, erased = 0, head = head }, done)
      local other = assert(to:export("bob", { kept = true }))
      assert.equal((text:gsub('"stream":"ann"', '"stream":"bob"', 1)), other)
      local agent <close> = assert(ah.agent { store = to, id = "bob", model = "demo/echo" })
      assert.is_true(has_text(agent, long))
      assert(agent:run "More")
    end
    assert.equal("conflict", select(2, store:import(text)).code)
    assert.equal("usage", select(2, store:export "nothing").code)
  end)

  it("keep the hashes without what was kept", function()
    local s <close> = assert(ah.store(path))
    streams.make(path, "ann", { opened(), record("lost", { what = "request" }, 5, '"the kept"') })
    local text = assert(s:export "ann")
    assert.is_nil(text:find "the kept")
    local done = assert(s:import(text, { id = "bob" }))
    assert.equal(assert(s:verify "ann").head, done.head)
    assert.same({ 1, true, done.head }, { s:verify("bob").erased, s:verify("bob").success,
      s:verify("bob").head })
    assert.equal((text:gsub('"stream":"ann"', '"stream":"bob"', 1):gsub(',"label":%b{}', "")),
      (assert(s:export "bob"):gsub(',"label":%b{}', "")))
  end)

  it("refuse what is damaged, whatever it is", function()
    local store <close> = store_with("ann", "Hello")
    local text = assert(store:export("ann", { kept = true }))
    local draw = random(4)
    local function refused(bad, what)
      local done, err = store:import(bad, { id = "new" })
      assert.is_nil(done, what or bad)
      assert.truthy(err.code == "usage" or err.code == "store", err.code)
      assert.is_true(#err.message > 10)
      return err.message
    end
    assert.truthy(refused(text:gsub("Hello", "Hallo", 1)):find("line 5", 1, true))
    assert.truthy(refused((text:gsub("[^\n]*\n$", ""))):find "is cut")
    assert.truthy(refused('{"a":1}\n'):find "line 1")
    assert.truthy(refused((text:gsub('"version":1', '"version":2', 1))):find "newer")
    refused ""
    refused "\n"
    refused "no JSON"
    refused((text:gsub("\n", "\n\n")))
    refused((text:gsub('"number":4', '"number":5', 1)))
    for _ = 1, 400 do
      local at = draw(#text)
      local first = #text:match "^[^\n]*\n"
      if at > first and not text:find("^[%d]", at) then
        local byte = string.char(draw(255))
        local bad = text:sub(1, at - 1) .. byte .. text:sub(at + 1)
        if bad ~= text and not (byte:find "%s" or text:sub(at, at):find "%s" or
          byte:upper() == text:sub(at, at):upper()) then
          refused(bad, ("byte %d becomes %q"):format(at, byte))
        end
      end
    end
    for _, id in ipairs { "", "a/b", "session/", "session/a/b", "a\nb", ("x"):rep(129) } do
      assert.equal("usage", select(2, store:import(text, { id = id })).code)
    end
    assert.equal(1, #store:stat().streams)
  end)
end)
