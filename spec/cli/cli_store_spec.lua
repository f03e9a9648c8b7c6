-- agenthost store: export, import, delete, gc, verify and stat.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local streams = require "support.streams"

local shell, has, has_not = command.shell, command.has, command.has_not

if not ahtest.store_engines().sqlite then
  return
end

local DAY = 24 * 3600 * 1000

local folder, path

before_each(function()
  folder = command.folder()
  path = folder .. "/work.db"
end)

after_each(command.tidy)

-- Runs the command on the store, with the words of a shell's line.
local function store(words)
  return shell(("cd %s && AGENTHOST_STORE=%s \"$A\" store %s </dev/null"):format(folder, path,
    words))
end

local function json(words)
  local r = store(words .. " --json")
  return ah.json.decode(r.out), r.code
end

-- Makes a finished conversation whose last record is so many days old.
local function make(id, days, words)
  local at = math.floor(ah.now() * 1000) - days * DAY
  streams.make(path, id, {
    streams.record("opened", { format = 1, stream = id:match "^(%a+)/" or "conversation",
      written_by = "0.1.0", readable_from = 1 }, at),
    not id:find "/" and streams.record("entries", { entries = ah.array { { type = "user", time = 1,
      content = ah.array { { type = "text", text = words or "Hello" } } } } }, at) or nil,
  }, not id:find "/" and { state = "idle" } or nil)
end

local function ids(list)
  local names = {}
  for i, one in ipairs(list) do
    names[i] = one.id or one
  end
  table.sort(names)
  return table.concat(names, " ")
end

describe("agenthost store", function()
  it("prints marks of direction as escapes in JSON", function()
    make("a\u{202e}b", 1)
    for _, words in ipairs { "stat", "verify", "gc --dry --older 1h", "delete 'a\u{202e}b'" } do
      local r = store(words .. " --json")
      has(r.out, '"a\\u202eb"')
      has_not(r.out, "\u{202e}")
    end
  end)

  it("verifies by the head that a run prints", function()
    local f <close> = assert(io.open(folder .. "/ann.lua", "w"))
    f:write [[return require "agenthost".agent { id = "ann", model = "demo/echo" }]]
    f:close()
    local function say(flag)
      local r = shell(("cd %s && AGENTHOST_STORE=%s \"$A\" %s ann.lua Hello"):format(folder, path,
        flag))
      return ah.json.decode(r.out:match "[^\n]*\n$")
    end
    local first = say "--json"
    assert.equal(0, store("export ann --kept > " .. folder .. "/all").code)
    local second = say "--jsonl"
    assert.same({ "ann", "ann", "Hello" }, { first.conversation, second.conversation,
      first.reply.text })
    assert.not_equal(first.head, second.head)
    for _, said in ipairs { first, second } do
      local r = store("verify ann --head " .. said.head)
      assert.equal(0, r.code, r.out)
      has(r.out, "  head " .. second.head)
    end
    assert.equal(0, store("delete ann").code)
    assert.equal(0, store("import all").code)
    assert.equal(0, store("verify ann --head " .. first.head).code)
    local found, code = json("verify ann --head " .. second.head)
    assert.same({ "cut", 1 }, { found.streams[1].code, code })
  end)

  it("exports conversations, and imports them", function()
    make("ann", 1)
    make("bob", 2)
    local one = store "export an"
    assert.equal(0, one.code, one.err)
    assert.equal(3, select(2, one.out:gsub("\n", "")))
    assert.equal(0, store("export --kept > " .. folder .. "/all").code)
    assert.equal(2, store("verify --store made/other.db").code)
    local r = store("import all --store made/other.db")
    assert.equal(0, r.code, r.err)
    has(r.out, "imported ann: 2 records\nhead 2:")
    has(r.out, "imported bob: 2 records\n")
    local was, is = json "verify", json "verify --store made/other.db"
    assert.equal(was.streams[1].head, is.streams[1].head)
    r = shell(("cd %s && \"$A\" store import - --as cleo --store work.db < all"):format(folder))
    assert.equal(2, r.code)
    has(r.err, "--as is for one conversation, and the file has 2")
    r = store "import all"
    assert.equal(1, r.code)
    has(r.err, "the store has 'ann' already")
    os.execute(("head -3 %s/all > %s/one"):format(folder, folder))
    assert.equal("cleo", json("import one --as cleo").imported[1].id)
    for words, why in pairs {
      import = "needs one FILE",
      ["import one two"] = "needs one FILE",
      ["import nothing"] = "cannot read the export",
      ["import work.db"] = "line 1 of the export",
      ["export zoe"] = "there is no conversation 'zoe'",
      ["export session/x"] = "there is no stream" } do
      r = store(words)
      assert.equal(2, r.code, words)
      has(r.err, why)
      assert.equal("", r.out)
    end
  end)

  it("deletes by the whole id, and not what another process has", function()
    make("ann", 1, "the words of ann")
    make("bob", 1)
    make("session/stock", 1)
    local r = store "delete an"
    assert.equal(2, r.code)
    has(r.err, "did you mean ann?")
    assert.equal(2, store("delete").code)
    local held <close> = assert(ahtest.store("sqlite", { path = path }))
    assert(held:hold "bob")
    r = store "delete bob ann"
    assert.equal(1, r.code)
    has(r.out, "deleted ann\n")
    has(r.out, "not deleted: bob: the stream \"bob\" is held by process ")
    held:release "bob"
    local f <close> = assert(io.open(path, "rb"))
    has_not(f:read "a", "the words of ann")
    local done, code = json "delete bob session/stock"
    assert.same({ 0, "bob session/stock", "" }, { code, ids(done.deleted), ids(done.kept) })
    assert.same({}, json("stat").streams)
  end)

  it("deletes by age, as it says before", function()
    make("ann", 40)
    make("bob", 20)
    make("cleo", 31)
    make("session/stock", 99)
    local would = json "gc --older 30d --dry"
    assert.equal("ann cleo", ids(would.deleted))
    has(store("gc --older 5w --dry").out, "would delete ann\nThe store has")
    assert.equal(4, #json("stat").streams)
    local held <close> = assert(ahtest.store("sqlite", { path = path }))
    assert(held:hold "cleo")
    local r = store "gc --older 720h"
    assert.equal(0, r.code, r.err)
    has(r.out, "deleted ann\nnot deleted: cleo: ")
    assert.equal("bob cleo session/stock", ids(json("stat").streams))
    for _, bad in ipairs { "--older 30", "--older d", "--older 1y", "--contents 1.5d",
      "--max-size 1d", "--older 9999999d", "word" } do
      r = store("gc " .. bad)
      assert.equal(2, r.code, bad)
    end
  end)

  it("deletes by size, the oldest first", function()
    for i = 1, 9 do
      make("talk_" .. i, i, ("words %d "):format(i):rep(20000))
    end
    local before = json("stat").size
    local would = json "gc --max-size 600K --dry"
    assert.equal("talk_9", would.deleted[1])
    local done = json "gc --max-size 600K"
    assert.is_true(done.size <= 600 << 10 and done.size > 200 << 10, done.size)
    assert.is_true(done.size < before and done.before == before)
    local left = json("stat").streams
    assert.same({ "talk_1", "talk_" .. #left }, { left[1].id, left[#left].id })
    assert.is_true(#left >= 2 and #left < 9)
    assert.equal(0, #json("gc --max-size 600K").deleted)
  end)

  it("erases what old records keep", function()
    local now = math.floor(ah.now() * 1000)
    streams.make(path, "ann", {
      streams.record("opened", { format = 1, stream = "conversation", written_by = "0.1.0",
        readable_from = 1 }, now - 9 * DAY),
      streams.record("lost", { what = "request" }, now - 8 * DAY, '"the kept words"'),
      streams.record("lost", { what = "request" }, now - 6 * DAY, '"the new words"'),
      streams.record("turn", { progress = ah.json.decode "{}" }, now) }, { state = "idle" })
    local r = store "gc --contents 7d"
    assert.equal(0, r.code, r.err)
    has(r.out, "erased what 1 record kept\n")
    local f <close> = assert(io.open(path, "rb"))
    local bytes = f:read "a"
    has_not(bytes, "the kept words")
    has(bytes, "the new words")
    has(store("verify ann").out, "ann  sound, 1 record erased in part\n  head 4:")
    has(store("stat").out, "1 record erased in part")
    r = shell(("AGENTHOST_STORE=%s \"$A\" show ann --kept </dev/null"):format(path))
    has(r.out, "kept: erased\n")
    has(r.out, "the new words")
  end)

  it("verifies, with an exit code", function()
    make("ann", 1)
    make("bob", 1)
    local all, code = json "verify"
    assert.same({ 0, true, 2 }, { code, all.success, #all.streams })
    local head = json("verify ann").streams[1].head
    assert.equal(0, store("verify ann --head " .. head).code)
    local r = store("verify bob --head " .. head:gsub("^2", "9"))
    assert.equal(1, r.code)
    has(r.out, "bob  cut: it ends with record 2, and the head is that of record 9")
    r = store("verify --head " .. head)
    assert.equal(2, r.code)
    has(r.err, "--head is for one conversation")
    assert.equal(2, store("verify ann --head 12").code)
  end)

  it("shows what takes how much room, and says what it cannot do", function()
    make("ann", 3, ("long "):rep(2000))
    make("session/stock", 1)
    local r = store "stat"
    has(r.out, "1 conversation, 1 other stream, 3 records, the first of 20")
    has(r.out, "1 long text: 9.8 KiB; 0 records erased in part\n")
    r = store "frob"
    assert.equal(2, r.code)
    has(r.err, "needs export, import, delete, gc, verify or stat, found 'frob'")
    r = shell 'AGENTHOST_STORE=/nothing/here.db "$A" store stat </dev/null'
    assert.equal(2, r.code)
  end)

  it("prints JSON without marks that turn the direction of a terminal's text", function()
    make("mirrored\u{202e}", 3)
    for _, words in ipairs { "stat", "verify", "gc --older 1d --dry", "delete mirrored\u{202e}" } do
      has(store(words .. " --json").out, [["mirrored\u202e"]])
    end
  end)
end)
