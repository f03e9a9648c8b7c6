-- store:search. What is found is in spec/io/store_search_spec.lua.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"

if not ahtest.store_engines().sqlite then
  return
end

local folder, store

before_each(function()
  folder = command.folder()
  store = assert(ah.store(folder .. "/work.db"))
end)

after_each(function()
  store:close()
  command.tidy()
end)

local function talk(id, ...)
  local agent <close> = assert(ah.agent { store = store, id = id, model = "demo/echo" })
  for _, words in ipairs { ... } do
    assert(agent:run(words))
  end
end

local function ids(...)
  local list = {}
  for i, hit in ipairs(assert(store:search(...))) do
    list[i] = hit.id .. " " .. hit.role
  end
  return list
end

describe("store:search", function()
  it("gives where words were said, the newest first", function()
    talk("ann", "A heron in the Hôtel.")
    talk("bob", "No bird.")
    local hits = assert(store:search "heron hotel")
    assert.same({ "ann assistant", "ann user" }, ids "heron hotel")
    local hit = hits[2]
    assert.equal("A heron in the Hôtel.", hit.title)
    assert.equal("A heron in the Hôtel.", hit.snippet)
    assert.same({ { 3, 7 }, { 16, 21 } }, hit.marks)
    assert.equal("Hôtel", hit.snippet:sub(16, 21))
    assert.is_true(math.abs(hit.time - os.time() * 1000) < 60000)
    for record in assert(store:records("ann", { from = hit.number, to = hit.number })) do
      assert.equal("entries", record.kind)
    end
    assert.same({}, store:search "nothing")
  end)

  it("finds what an agent has just said, while it has the conversation", function()
    local agent <close> = assert(ah.agent { store = store, id = "ann", model = "demo/echo" })
    for i = 1, 3 do
      assert(agent:run("heron " .. i))
      assert.equal(2 * i, #store:search "heron")
    end
  end)

  it("finds calls and results, not prompts", function()
    local tool = ah.tool { name = "look", description = "Looks.", params = { where = "string" },
      handler = function() return "the ibis" end }
    local agent <close> = assert(ah.agent { system = "You are a stork.", store = store, id = "ann",
      tools = { tool }, model = ah.scripted {
        { calls = { { name = "look", arguments = { where = "by\nthe lake" } } } }, "Done." } })
    assert(agent:run "Look.")
    assert.same({ "ann assistant" }, ids "look lake")
    assert.same({ "ann tool" }, ids "ibis")
    assert.same({}, ids "stork")
  end)

  it("takes best, folder and limit", function()
    talk("ann", "heron heron heron", "one heron among many other words that are here")
    assert.equal("one heron among many other words that are here",
      store:search("heron", { limit = 1 })[1].snippet)
    assert.equal(1, #store:search("heron", { limit = 1 }))
    assert.equal("heron heron heron", store:search("heron", { best = true })[1].snippet)
    local here = store:conversations()[1].folder
    assert.equal(4, #store:search("heron", { folder = here }))
    assert.equal(0, #store:search("heron", { folder = "/elsewhere" }))
  end)

  it("forgets what is deleted, in all files of the store", function()
    local function files()
      local pipe <close> = assert(io.popen("cat " .. folder .. "/*"))
      return pipe:read "a"
    end
    talk("ann", "heron Quetzalcoatl")
    talk("bob", "heron ibis")
    assert.equal(4, #store:search "heron")
    assert.truthy(files():find("quetzalcoatl", 1, true))
    assert.is_true(store:delete "ann")
    assert.falsy(files():find "[uU]etzalcoatl")
    assert.same({ "bob assistant", "bob user" }, ids "heron")
    assert.same({}, ids "quetzalcoatl")
  end)

  it("refuses wrong arguments, and words without a word", function()
    for words, o in pairs { [1] = {}, [true] = {}, ["\xff"] = {}, a = { limit = 0 },
      b = { limit = 10001 }, c = { best = 1 }, d = { other = 1 } } do
      local ok, err = pcall(store.search, store, words, o)
      assert.is_false(ok)
      assert.equal("usage", err.code)
    end
    local hits, err = store:search '"'
    assert.is_nil(hits)
    assert.equal("usage", err.code)
    assert.truthy(err.message:find("no word to search for", 1, true))
  end)

  describe("while another process writes the index", function()
    local other

    before_each(function()
      talk("ann", "A heron.")
      other = assert(ahtest.store("sqlite", { path = folder .. "/work.db", sync = "process" }))
      assert(other:write_index(true))
    end)

    after_each(function()
      other:close()
    end)

    it("waits in its task, and others go on", function()
      local task = ah.spawn(function() return ids "heron" end)
      local second = ah.spawn(function() return ids "stork" end)
      talk("bob", "A stork.") -- appends go on, too
      assert.equal("running", task:status())
      other:write_index(false)
      assert.same({ "ann assistant", "ann user" }, task:await())
      assert.same({ "bob assistant", "bob user" }, second:await())
    end)

    it("can be cancelled", function()
      local task = ah.spawn(function() return ids "heron" end)
      ah.sleep(0.01)
      task:cancel()
      assert.equal("cancelled", task:status())
      local second = ah.spawn(function() return ids "heron" end)
      other:write_index(false)
      assert.same({ "ann assistant", "ann user" }, second:await())
    end)

    it("goes on if its store is closed", function()
      local task = ah.spawn(function() return #assert(store:search "heron") end)
      ah.sleep(0.01)
      store:close()
      other:write_index(false)
      assert.equal(2, task:await())
    end)
  end)

  it("indexes a large store in parts, and finds all of it", function()
    local long = ("heron "):rep(600)
    for i = 1, 10 do
      local list = {}
      for k = 1, 20 do
        list[k] = long .. i .. "x" .. k
      end
      talk("c" .. i, table.unpack(list))
    end
    os.remove(folder .. "/work.db-search")
    assert.equal(400, #store:search("heron", { limit = 10000 }))
    assert.equal(2, #store:search "10x20")
  end)

  it("does not wait in code that may not", function()
    talk("ann", "A heron.")
    local found
    local agent <close> = assert(ah.agent { model = "demo/echo", on = function()
      found = found or #assert(store:search "heron")
    end })
    assert(agent:run "Look.")
    assert.equal(2, found)
  end)

  it("returns the error of an index that cannot be written", function()
    talk("ann", "A heron.")
    assert(io.open(folder .. "/work.db-search", "w")):write(("no index "):rep(200)):close()
    local hits, err = store:search "heron"
    assert.is_nil(hits)
    assert.equal("store", err.code)
    assert.truthy(err.message:find("work.db-search", 1, true))
    os.remove(folder .. "/work.db-search")
    assert.equal(2, #store:search "heron")
  end)

  it("says that a store in memory cannot be searched", function()
    local memory <close> = assert(ah.store { engine = "memory" })
    local hits, err = memory:search "heron"
    assert.is_nil(hits)
    assert.equal("usage", err.code)
    assert.truthy(err.message:find("only stores in files", 1, true))
  end)
end)
