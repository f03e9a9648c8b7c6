-- The search of a store: its index (src/io/store_sqlite_index.h), what comes into it and out of it,
-- and the words that a person gives.
local ahtest = require "ahtest"

local STORE, USAGE = -21, -3

if not ahtest.store_engines().sqlite then
  return
end

local folder, s, last

local function shell(line)
  local pipe <close> = assert(io.popen(line))
  return pipe:read("a"):gsub("\n$", "")
end

local function open(name)
  return assert(ahtest.store("sqlite", { path = folder .. "/" .. (name or "store.db"),
    sync = "process", create = true }))
end

before_each(function()
  folder = shell "mktemp -d"
  s = open()
  last = {}
end)

after_each(function()
  s:close()
  assert.truthy(folder:find "/tmp%.%w+$")
  os.execute("rm -rf '" .. folder .. "'")
end)

-- Appends records { time, kind, said, kept } to a stream of a store that it then holds.
local function put(stream, ...)
  local fences = last[stream] or { n = 0, fence = assert(s:hold(stream)) }
  last[stream] = fences
  s:append { { stream, fences.n, fences.fence, ... } }
  local done = s:wait()
  assert.equal(0, done[1][2], done[1][3])
  fences.n = fences.n + select("#", ...)
end

local function quoted(text)
  return '"' .. text:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

local function entry(kind, text)
  return ('{"type":"%s","content":[{"type":"text","text":%s}]}'):format(kind, quoted(text))
end

-- Appends an answer.
local function answer(stream, time, text)
  put(stream, { time, "answer", '{"entry":' .. entry("assistant", text) .. "}" })
end

-- Returns "stream number role" of each hit, in their order.
local function found(words, ...)
  local hits, status, message = s:search(words, ...)
  assert.is_table(hits, message and status .. " " .. message)
  for i, hit in ipairs(hits) do
    hits[i] = ("%s %d %s"):format(hit.stream, hit.number, hit.role)
  end
  return hits
end

local function snippet(words)
  return s:search(words)[1].snippet
end

local function contents(pattern)
  return shell(("cat '%s'/%s 2>/dev/null"):format(folder, pattern))
end

describe("what is searched", function()
  it("are the texts of entries in the records that have them first", function()
    put("talk", { 1, "opened", '{"agent":"oneword"}' },
      { 2, "entries", '{"entries":[{"type":"prompt","text":"oneword"},' .. entry("user", "oneword")
        .. ',{"type":"note","text":"oneword too"}]}' },
      { 3, "queued", '{"entry":' .. entry("user", "oneword queued") .. "}" },
      { 4, "answer", '{"entry":{"type":"assistant","content":[],"tool_calls":[{"id":"oneword",'
        .. '"name":"oneword","arguments":"{\\"path\\":\\"a\\\\nsecondword\\"}"}]}}' },
      { 5, "call_started", '{"tool":"oneword"}', '"oneword"' },
      { 6, "settled", '{"result":{"type":"tool_result","name":"oneword","content":"oneword"},'
        .. '"staged":[{"type":"note","text":"thirdword"}]}', '"oneword"' },
      { 7, "turn", '{"staged":[' .. entry("user", "fourthword") .. "]}" },
      { 8, "apply_failed", '{"result":{"type":"tool_result","content":"fifthword"}}' },
      { 9, "checkpoint", '{"transcript":{"entries":[' .. entry("user", "oneword") .. "]}}" },
      { 10, "run_ended", '{"text":"oneword"}' })
    assert.same({ "talk 6 tool", "talk 4 assistant", "talk 3 user", "talk 2 note", "talk 2 user" },
      found "oneword")
    for words, hit in pairs { secondword = "talk 4 assistant", thirdword = "talk 6 note",
      fourthword = "talk 7 user", fifthword = "talk 8 tool" } do
      assert.same({ hit }, found(words))
    end
  end)

  it("are also those of a checkpoint with which a conversation begins", function()
    put("fork", { 1, "opened", "{}" },
      { 2, "checkpoint", '{"transcript":{"entries":[' .. entry("user", "heron") .. "]}}" })
    assert.same({ "fork 2 user" }, found "heron")
  end)

  it("are the first 4 KiB, also of texts that are stored apart", function()
    local long = ("wren é "):rep(2000)
    answer("talk", 1, "heron " .. long .. " ibis")
    assert.same({ "talk 1 assistant" }, found "heron wren")
    assert.same({}, found "ibis")
    for cut = 4070, 4100 do -- never within an escape or a character
      answer("talk", 2, ("x"):rep(cut) .. "é\n\u{1F600}\"")
    end
    local ends = {}
    for _, hit in ipairs(s:search "xxxx*") do
      ends[hit.snippet:gsub("[\2\3]", ""):match "^x+(.*)$"] = true
    end
    assert.same({ [""] = true, ["é"] = true, ["é "] = true, ["é \u{1F600}"] = true,
      ["é \u{1F600}\""] = true }, ends)
  end)

  it("are conversations only", function()
    answer("session/talk", 1, "heron")
    answer("files/talk", 1, "heron")
    assert.same({}, found "heron")
  end)

  it("survives records that are not sound", function()
    for i, said in ipairs { "", "no JSON", "[]", "1", '{"entry":1}', '{"entry":[1,null,{}]}',
      '{"entry":{"type":1}}', '{"entry":{"type":"assistant","content":{},"tool_calls":7}}',
      '{"entry":{"type":"assistant","content":[1,{"text":2}],"tool_calls":[{"arguments":[]}]}}',
      ("["):rep(1000), '{"entry":{"type":"assistant","content":"a heron"}}',
      '{"entry":{"type":"assistant","tool_calls":[{"arguments":"{\\"a heron"}]}}' } do
      put("talk", { i, "answer", said })
    end
    assert.same({ "talk 12 assistant", "talk 11 assistant" }, found "heron")
  end)
end)

describe("the hits", function()
  it("are the newest first, whatever conversation they are of", function()
    local expected = {}
    for i = 1, 40 do
      local stream = "talk" .. (i * 7 % 20)
      answer(stream, 1000000 + 20 * i, "heron " .. i)
      table.insert(expected, 1, ("%s %d assistant"):format(stream, last[stream].n))
    end
    assert.same(expected, found "heron")
    assert.same({ expected[1], expected[2] }, found("heron", false, 2))
    local within = found("heron", false, 100, "talk7")
    assert.same({ "talk7 2 assistant", "talk7 1 assistant" }, within)
  end)

  it("of one time are all there", function()
    local records = {}
    for i = 1, 500 do
      records[i] = { 5, "answer", '{"entry":' .. entry("assistant", "heron") .. "}" }
    end
    put("talk", table.unpack(records))
    answer("talk", -(1 << 60), "heron")
    answer("talk", 1 << 62, "heron")
    answer("talk", 5, "heron")
    assert.equal(503, #found "heron")
    assert.equal("talk 502 assistant", found("heron", false, 1)[1])
  end)

  it("are ranked by rarity, number and length", function()
    local filler = ("and so on "):rep(60)
    for i = 1, 60 do
      answer("talk" .. i, 100 * i, "common words " .. filler)
    end
    answer("rare", 1, "rare common " .. filler)
    answer("often", 50, "rare rare rare rare common " .. filler)
    answer("short", 100, "rare common")
    answer("long", 150, "rare common " .. filler .. filler .. filler)
    local newest = { "long 1 assistant", "short 1 assistant", "often 1 assistant",
      "rare 1 assistant" }
    assert.same(newest, found "rare common")
    local best = { newest[2], newest[3], newest[4], newest[1] }
    assert.same(best, found("rare common", true))
    assert.same(best, found("common rare", true))
    best[1], best[2] = best[2], best[1]
    assert.same(best, found("rare", true))
    assert.same({ best[1] }, found("rare", true, 1))
    assert.equal(64, #found("common", true))
  end)

  it("have the text around the words, which are marked", function()
    answer("talk", 1, ("filler "):rep(100) .. "a Grand\nHôtel\27[31m here" .. (" filler"):rep(100))
    local text = snippet '"grand hotel"'
    assert.truthy(text:find("a \2Grand Hôtel\3 [31m here", 1, true), text)
    assert.is_true(#text < 250)
    assert.truthy(snippet("hot* gra*"):find("\2Grand\3 \2Hôtel\3", 1, true))
    answer("talk", 2, "\2forged\3 mark")
    assert.equal(" forged  \2mark\3", snippet "mark")
  end)
end)

describe("the words", function()
  before_each(function()
    answer("talk", 1, "The café in Rome, at 9:30: AND foo-bar.baz O'Neil x_y")
  end)

  it("may stand in any order, in any case, with or without accents", function()
    for _, words in ipairs { "cafe", "CAFÉ rome", "rome cafe", "the", "and", "foo bar", "foo-bar",
      "bar.baz", '"foo bar baz"', "o'neil", "9:30", '"café in rome"', "caf*", '"in ro"*', "x_y",
      'cafe"rome"', '"cafe', " cafe\t\n", "cafe\0rome", "cafe - ( ) *", "cafe —", "— cafe",
      "rome cafe rome" } do
      assert.equal(1, #found(words), words)
    end
    for _, words in ipairs { "caf", '"rome cafe"', "cafe berlin", "text:cafe", "NEAR(cafe rome)",
      "cafe OR berlin", "cafe NOT berlin", "—", "'; DROP TABLE streams; --", "ome*" } do
      assert.equal(0, #found(words), words)
    end
  end)

  it("are refused in words of ours if there are none, or too many", function()
    for _, words in ipairs { "", " ", '"', '""', '" "', "*", "(", "\0", "- :", ("x"):rep(1 << 20),
      ("x "):rep(65), ('"'):rep(4096), ("*"):rep(5000) } do
      local hits, status, message = s:search(words)
      assert.is_nil(hits, words)
      assert.equal(USAGE, status)
      assert.falsy(message:find "fts" or message:find "syntax" or message:find "SQL", message)
    end
    assert.equal(0, #found(("q "):rep(64), true))
    assert.equal(0, #found(("x"):rep(4096)))
  end)

  it("are never an error of SQLite, whatever they are", function()
    local parts = { '"', "'", "*", "(", ")", "AND", "OR", "NOT", "NEAR", ":", "^", "+", "-", "{",
      "}", "\\", "\0", "\n", "cafe", "é", "\u{200B}", "\u{FFFF}", "text", ",", ";", "--",
      "words_0" }
    local seed = 7
    for _ = 1, 400 do
      local list = {}
      for i = 1, 8 do
        seed = (seed * 1103515245 + 12345) % 2147483648
        list[i] = parts[seed // 65536 % #parts + 1]
      end
      local words = table.concat(list, seed % 2 == 0 and " " or "")
      for _, best in ipairs { false, true } do
        local _, status = s:search(words, best)
        assert.is_true(status == nil or status == USAGE, words)
      end
    end
  end)
end)

describe("the index", function()
  it("has at each search what was appended before it, by other processes too", function()
    local other <close> = open()
    for i = 1, 5 do
      answer("talk", i, "heron")
      assert.equal(i, #other:search "heron")
    end
    local fence = other:hold "theirs"
    local script = folder .. "/child.lua"
    local f <close> = assert(io.open(script, "w"))
    f:write(("package.cpath = %q\nlocal s = require('ahtest').store('sqlite', { path = %q })\n"
      .. "s:append { { 'new', 0, s:hold 'new', { 99, 'answer', %q } } } s:wait()\n"
      .. "print(#s:search 'heron') s:close()"):format(package.cpath, folder .. "/store.db",
      '{"entry":' .. entry("assistant", "heron") .. "}"))
    f:close()
    assert.equal("6", shell("lua5.4 " .. script .. " 2>&1"))
    assert.equal("new 1 assistant", found("heron")[1])
    assert.is_number(fence)
  end)

  it("is written while nothing else is to be done, and is private", function()
    assert.equal("", contents "store.db-search")
    answer("talk", 1, "xqheron")
    for _ = 1, 100 do
      if contents("store.db-search"):find("xqheron", 1, true) then
        break
      end
      shell "sleep 0.05"
    end
    assert.truthy(contents("store.db-search"):find("xqheron", 1, true))
    assert.equal("600", shell(("stat -c %%a '%s/store.db-search'"):format(folder)))
    assert.same({ "talk 1 assistant" }, found "xqheron")
  end)

  it("is made anew if it is removed or is that of another store", function()
    answer("talk", 1, "heron")
    assert.equal(1, #found "heron")
    os.remove(folder .. "/store.db-search")
    assert.equal(1, #found "heron")
    local mine = s
    s, last = open "other.db", {}
    answer("talk", 1, "ibis")
    assert.equal(1, #found "ibis")
    s:close()
    s = mine
    os.rename(folder .. "/other.db-search", folder .. "/store.db-search")
    assert.same({ "talk 1 assistant" }, found "heron")
    assert.same({}, found "ibis")
  end)

  it("says what to do if it is damaged or strange, and appends go on", function()
    local path = folder .. "/store.db-search"
    answer("talk", 1, "heron")
    found "heron"
    local sound = contents "store.db-search"
    local function refused(text)
      local f <close> = assert(io.open(path, "wb"))
      f:write(text)
      f:close()
      local hits, status, message = s:search "heron"
      assert.is_nil(hits)
      assert.equal(STORE, status)
      assert.truthy(message:find("store.db-search", 1, true), message)
      assert.truthy(message:find("made anew", 1, true), message)
      answer("talk", 2, "ibis")
    end
    refused("no index " .. ("x"):rep(5000))
    refused(sound:sub(1, 4096) .. ("x"):rep(#sound - 4096))
    os.remove(path)
    os.execute(("sqlite3 '%s' 'CREATE TABLE a(b)'"):format(path))
    local other = contents "store.db-search"
    if other ~= "" then
      refused(other)
    end
    os.remove(path)
    assert.equal(1, #found "heron")
  end)

  it("does not obey tables, views or triggers that were added", function()
    answer("talk", 1, "heron")
    found "heron"
    if not os.execute "command -v sqlite3 >/dev/null" then
      return pending "no sqlite3"
    end
    local path = folder .. "/store.db-search"
    for _, text in ipairs {
      "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
      "CREATE VIEW v AS SELECT 1", "CREATE TABLE words_1x(a)", "CREATE TABLE words_16_data(a)" } do
      os.execute(("cp '%s' '%s.sound'; sqlite3 '%s' '%s'"):format(path, path, path, text))
      local hits, status, message = s:search "heron"
      assert.is_nil(hits, text)
      assert.equal(STORE, status, message)
      os.rename(path .. ".sound", path)
    end
    assert.equal(1, #found "heron")
  end)
end)

it("needs FTS5, and says so", function()
  answer("ann", 1, "heron")
  s:without_fts5()
  local hits, status, message = s:search "heron"
  assert.is_nil(hits)
  assert.equal(USAGE, status)
  assert.truthy(message:find("^a search needs SQLite 3%.27 or later with FTS5; this is "
    .. "3%.[%d.]+ without FTS5$"), message)
  answer("ann", 2, "ibis") -- appends go on
end)

describe("words of records that are gone", function()
  -- Makes 17 conversations: the first and the last are in one table.
  local function make()
    for i = 1, 17 do
      answer("talk" .. i, i, ("heron xq%szanadu zq%sword"):format(i, i))
    end
    answer("talk17", 17, "Quetzalcoatl")
    assert.equal(17, #found "heron")
    assert.truthy(contents("store.db-search"):find("xq17zanadu", 1, true))
  end

  -- Removes one without a trace in the store's own files.
  local function remove(stream)
    s:release(stream)
    shell(("sqlite3 '%s/store.db' \"PRAGMA secure_delete = ON; DELETE FROM records WHERE id >> 32 ="
      .. " (SELECT id FROM streams WHERE name = '%s'); DELETE FROM streams WHERE name = '%s';"
      .. " VACUUM; PRAGMA wal_checkpoint(TRUNCATE)\""):format(folder, stream, stream))
  end

  local has_tool = os.execute "command -v sqlite3 >/dev/null"

  it("are in no file when they are cleaned, and the others are found", function()
    if not has_tool then
      return pending "no sqlite3"
    end
    make()
    remove "talk17"
    assert.truthy(contents("store.db-search"):find("xq17zanadu", 1, true))
    assert.is_true(s:clean())
    assert.falsy(contents("*"):find("q17", 1, true))
    assert.falsy(contents("*"):find("17zanadu", 1, true))
    assert.falsy(contents("*"):find("[uU]etzalcoatl"))
    assert.equal(16, #found "heron")
    assert.same({ "talk1 1 assistant" }, found "xq1zanadu")
    assert.same({}, found "xq17zanadu")
    assert.falsy(contents("*"):find("17zanadu", 1, true))
  end)

  it("are not found, and are in no file, after the next search", function()
    if not has_tool then
      return pending "no sqlite3"
    end
    make()
    remove "talk17"
    last["talk17"] = nil
    answer("talk18", 1, "heron ibis") -- gets the same id
    answer("talk18", 1, "stork")
    assert.equal(17, #found "heron")
    assert.same({ "talk18 1 assistant" }, found "ibis")
    assert.same({ "talk1 1 assistant" }, found "xq1zanadu")
    assert.falsy(contents("*"):find("17zanadu", 1, true))
  end)

  it("need no index to be cleaned", function()
    assert.is_true(s:clean())
    assert.equal("", contents "store.db-search")
  end)
end)
