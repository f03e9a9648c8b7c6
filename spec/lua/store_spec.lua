-- ah.store: the open asks of a store, and messages to the conversations in it.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local has, record = command.has, streams.record

if not ahtest.store_engines().sqlite then
  return
end

local WAITING = { waiting = { "ask_1" }, state = "waiting", folder = "/x" }
local folder, path

before_each(function()
  folder = os.tmpname()
  os.remove(folder)
  path = folder .. "/work.db"
end)

after_each(function()
  os.execute("rm -rf " .. folder)
  command.tidy()
end)

-- Makes a conversation that waits for ask_1.
local function wait_for(ask, name, label, more)
  local records = streams.waiting { folder = "/x", script = "/x/a.lua", ask = ask }
  table.move(more or {}, 1, #(more or {}), #records + 1, records)
  streams.make(path, name or "talk_1", records, label or WAITING)
end

-- Checks that a response fails so.
local function refused(code, words, ...)
  local store <close> = assert(ah.store(path))
  local ok, err = store:respond(...)
  assert.is_nil(ok)
  assert.equal(code, err.code, err.message)
  has(err.message, words)
end

describe("ah.store", function()
  it("opens a file or memory, and shows which", function()
    local store <close> = assert(ah.store(path))
    assert.equal("store " .. path, tostring(store))
    assert.equal(path, store.path)
    local memory <close> = assert(ah.store { engine = "memory" })
    assert.equal("store (memory)", tostring(memory))
    assert.is_nil(memory.path)
    assert.same({}, memory:asks())
  end)

  it("refuses what it cannot use, in words", function()
    for want, given in pairs { ["write ah.store \"work.db\""] = false,
      ["path is missing"] = {}, ["has no path"] = { engine = "memory", path = path },
      ["did you mean 'engine'"] = { engin = "memory" }, ["sync"] = { path = path, sync = "no" },
      ["no NUL"] = "a\0b", ["at least 1 byte"] = "" } do
      has(select(2, pcall(ah.store, given or nil)).message, want)
    end
    has(select(2, ah.store "/proc/none/x.db").message, "/proc/none")
  end)

  it("does nothing more once it is closed", function()
    local store = assert(ah.store(path))
    store:close()
    store:close()
    assert.equal("store (closed)", tostring(store))
    assert.is_nil(store.path)
    for _, method in ipairs { "asks", "respond", "cancel", "send" } do
      has(select(2, pcall(store[method], store, "a", "b", true)).message, "the store is closed")
    end
    has(select(2, pcall(function() return store.ask end)).message, "did you mean 'asks'")
  end)

  it("lists the open asks, the conversation that changed last first", function()
    wait_for { ["until"] = 4102444800000 }
    wait_for({ kind = "question", question = "When?", schema = { type = "string" },
      default = "never" }, "talk_2")
    streams.make(path, "idle", streams.waiting {}, { state = "idle", waiting = ah.array {} })
    local store <close> = assert(ah.store(path))
    local asks = store:asks()
    assert.equal(2, #asks)
    local by_id = { [asks[1].conversation] = asks[1], [asks[2].conversation] = asks[2] }
    assert.same({ conversation = "talk_1", ask = "ask_1", kind = "approval", question = "May it?",
      tool = "delete_rows", arguments = { table = "orders" }, asked = 5, timeout = 4102444795 },
      by_id.talk_1)
    assert.same({ "never", { type = "string" }, "question" },
      { by_id.talk_2.default, by_id.talk_2.schema, by_id.talk_2.kind })
    assert.equal("talk_2", store:asks { id = "talk_2" }[1].conversation)
    assert.same({}, store:asks { id = "other" })
  end)

  it("posts a response that fits, once", function()
    wait_for {}
    local store <close> = assert(ah.store(path))
    assert.is_true(store:respond("talk_1", "ask_1", true, { by = "Ann" }))
    local message = streams.inbox(path, "talk_1")[1]
    assert.same({ "ask:ask_1", "response" }, { message.key, message.kind })
    assert.same({ ask = "ask_1", value = { approved = true }, by = "Ann" },
      ah.json.decode(message.body))
    refused("conflict", "already answered", "talk_1", "ask_1", false)
    assert.equal(1, #streams.inbox(path, "talk_1"))
  end)

  it("checks responses against the recorded schema", function()
    wait_for { kind = "question", schema = { type = "object", properties = {
      day = { type = "string" }, hour = { type = "integer", default = 9 } },
      required = { "day" } } }
    refused("tool_validation", "/hour", "talk_1", "ask_1", { day = "Monday", hour = "late" })
    refused("tool_validation", "the response to ask_1 does not match", "talk_1", "ask_1", true)
    assert.same({}, streams.inbox(path, "talk_1"))
    local store <close> = assert(ah.store(path))
    assert(store:respond("talk_1", "ask_1", { day = "Monday" }))
    assert.same({ day = "Monday", hour = 9 },
      ah.json.decode(streams.inbox(path, "talk_1")[1].body).value)
    has(select(2, pcall(store.respond, store, "talk_1", "ask_1")).message,
      "the response is missing")
  end)

  it("takes approvals as a boolean or with a reason, and nothing else", function()
    wait_for {}
    refused("tool_validation", "ask_1", "talk_1", "ask_1", { approved = "maybe" })
    refused("tool_validation", "ask_1", "talk_1", "ask_1", "yes")
    local store <close> = assert(ah.store(path))
    assert(store:respond("talk_1", "ask_1", { approved = false, why = "not on a Friday" }))
  end)

  it("refuses a response to what is closed, over, past or unknown", function()
    local function closed(how)
      return { record("ask_closed", { ask = "ask_1", how = how, response = how == "response"
        and { approved = true } or nil }) }
    end
    wait_for({}, "talk_1", WAITING, closed "response")
    refused("conflict", "already answered", "talk_1", "ask_1", true)
    wait_for({}, "talk_2", WAITING, closed "timeout")
    refused("usage", "its time is over", "talk_2", "ask_1", true)
    wait_for({}, "talk_3", WAITING, { streams.ending() })
    refused("usage", "is closed", "talk_3", "ask_1", true)
    wait_for({ ["until"] = 6000 }, "talk_4")
    refused("usage", "its time is over", "talk_4", "ask_1", true)
    wait_for({}, "talk_5")
    refused("usage", "did you mean 'ask_1'", "talk_5", "ask_2", true)
    refused("usage", "did you mean 'talk_5'", "talk_55", "ask_1", true)
    refused("usage", "there is no ask with a name", "talk_5", ("x"):rep(300), true)
    local store <close> = assert(ah.store(path))
    local asks = store:asks()
    assert.same({ "talk_5", nil }, { asks[1].conversation, asks[2] })
  end)

  it("posts texts and cancellations", function()
    wait_for {}
    streams.make(path, "done", { streams.waiting({})[1] })
    local store <close> = assert(ah.store(path))
    assert.is_true(store:send("talk_1", "one"))
    assert.is_true(store:send("talk_1", "one"))
    assert.is_true(store:cancel "talk_1")
    assert.is_true(store:cancel "talk_1")
    local kinds = {}
    for i, message in ipairs(streams.inbox(path, "talk_1")) do
      kinds[i] = message.kind .. " " .. message.body
    end
    assert.same({ 'send {"text":"one"}', 'send {"text":"one"}', "cancel {}" }, kinds)
    has(select(2, store:cancel "done").message, "no unfinished run")
    assert.equal("usage", select(2, store:send("none", "x")).code)
    assert.equal("usage", select(2, store:cancel "none").code)
  end)

  it("tells a damaged stream by its record, and reads the others", function()
    streams.make(path, "bad", { streams.waiting({})[1], record("turn", {}) }, WAITING)
    wait_for {}
    local store <close> = assert(ah.store(path))
    local asks, err = store:asks { id = "bad" }
    assert.is_nil(asks)
    assert.equal("store", err.code)
    has(err.message, "record 2")
    assert.equal("talk_1", store:asks()[1].conversation)
    assert.equal(1, #store:asks())
  end)
end)

-- Runs a command by the tool bash, whose folder is `cwd`.
local function bash(cwd, text)
  local tools = ah.registry { ah.builtin { bash = { cwd = cwd, sandbox = "landlock" } } }
  return (tools:execute("bash", { command = text }).content:gsub("%[exit code [^%]]*%]", ""))
end

describe("the sandbox of a command", function()
  if not ah._sandbox { sandbox = "landlock" } then
    return
  end

  it("neither reads nor writes an open store, and reads all else", function()
    os.execute(("mkdir -p %s/work && echo seen > %s/other"):format(folder, folder))
    local store <close> = assert(ah.store(folder .. "/state/s.db"))
    assert.equal(folder .. "/state/s.db", store.path)
    local work = folder .. "/work"
    assert.equal("seen\n", bash(work, "cat ../other"))
    assert.equal("root", bash(work, "head -c 4 /etc/passwd"):sub(1, 4))
    assert.equal("new\n", bash(work, "echo new > n; cat n; rm n"))
    has(bash(work, "cat ../state/s.db"), "Permission denied")
    has(bash(work, "cat ../state/s.db-wal"), "Permission denied")
    has(bash(work, "echo x >> ../state/s.db"), "Permission denied")
    has(bash(work, "echo x > ../state/new"), "Permission denied")
  end)

  it("is refused where it could not hide the store, without its path", function()
    os.execute(("mkdir -p %s"):format(folder))
    for _, name in ipairs { "s.db", "state/s.db" } do
      local store <close> = assert(ah.store(folder .. "/" .. name))
      local said = bash(folder, "echo ran")
      has(said, "a store is in a folder that the command may use")
      assert.falsy(said:find(store.path, 1, true))
    end
    assert.equal("ran\n", bash(folder, "echo ran"))
  end)
end)

describe("the folder of an open store", function()
  local function tree(root)
    return assert(ah.filesystem { root = root })
  end

  it("does not exist for a filesystem above it", function()
    os.execute("mkdir -p " .. folder .. "/keep/inner && echo x > " .. folder .. "/seen")
    local store = assert(ah.store(folder .. "/keep/inner/s.db"))
    local fs = tree(folder)
    local names = {}
    for _, name in ipairs(fs:glob "**") do
      names[name] = true
    end
    assert.truthy(names.seen)
    for name in pairs(names) do
      assert.falsy(name:find("inner", 1, true), name)
    end
    assert.is_nil((fs:read "keep/inner/s.db"))
    assert.is_nil((fs:stat "keep/inner"))
    assert.is_nil((fs:write("keep/inner/new", "x")))
    assert.is_nil((fs:list "keep/inner"))
    store:close()
    assert.truthy(fs:stat "keep/inner/s.db")
  end)

  it("is not removed with a folder that holds it", function()
    os.execute("mkdir -p " .. folder .. "/keep/inner")
    local store <close> = assert(ah.store(folder .. "/keep/inner/s.db"))
    local fs = tree(folder)
    assert.is_nil((fs:delete("keep", { recursive = true })))
    assert.truthy(io.open(store.path))
  end)

  it("keeps its other files where it is the root itself", function()
    os.execute("mkdir -p " .. folder .. " && echo x > " .. folder .. "/seen")
    local store <close> = assert(ah.store(path))
    local fs = tree(folder)
    local names = {}
    for i, item in ipairs(fs:list "") do
      names[i] = item.name
    end
    assert.same({ "seen" }, names)
    assert.is_nil((fs:read "work.db"))
    assert.is_nil((fs:write("work.db-wal", "x")))
    assert.truthy(fs:write("other", "x"))
    assert.truthy(fs:read "other")
    assert.equal(path, store.path)
  end)
end)
