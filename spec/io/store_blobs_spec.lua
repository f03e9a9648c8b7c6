-- Long strings of records in SQLite's files: once in the file, with a count of users, and read
-- again byte for byte.
local ahtest = require "ahtest"
local random = require "spec.support.random"

local STORE = -21
local LONGEST, CUT = 4096, 40 -- AH_STORE_CUT_LONGEST, AH_STORE_CUT_BYTES
local has_tool = os.execute "command -v sqlite3 >/dev/null"

local folder, path

local function shell(line)
  local pipe <close> = assert(io.popen(line))
  return pipe:read("a"):gsub("\n$", "")
end

local function open(more)
  local o = { path = path }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return assert(ahtest.store("sqlite", o))
end

-- Appends records to a stream that is held, and returns the status and the message.
local function append(s, fence, after, records)
  local batch = { "a", after, fence }
  table.move(records, 1, #records, 4, batch)
  s:append { batch }
  local done = s:wait()
  return done[1][2], done[1][3]
end

-- Makes a store with these records; said and kept are strings.
local function make(records)
  local s <close> = open()
  assert.equal(0, append(s, s:hold "a", 0, records))
end

-- The rows that a statement of another program gives, as texts.
local function sql(text)
  local name = folder .. "/statement.sql"
  local f <close> = assert(io.open(name, "w"))
  f:write(text)
  f:close()
  return (shell(("sqlite3 -bail '%s' < '%s' 2>&1"):format(path, name)))
end

local function bytes_of(hex)
  return (hex:gsub("%x%x", function(x) return string.char(tonumber(x, 16)) end))
end

local function hex_of(bytes)
  return (bytes:gsub(".", function(c) return ("%02X"):format(c:byte()) end))
end

local function string_of(n, fill)
  return '"' .. (fill or "x"):rep(n):sub(1, n - 2) .. '"'
end

-- Asserts that the users of each blob are as many as there are cuts that name it.
local function check_users()
  local expected, found = {}, {}
  for cuts in sql([[SELECT hex(said_cuts) || hex(ifnull(kept_cuts, '')) FROM records
    WHERE said_cuts IS NOT NULL OR kept_cuts IS NOT NULL]]):gmatch "%x+" do
    for at = 0, #cuts // 2 - CUT, CUT do
      local hash = cuts:sub(2 * at + 17, 2 * at + 80)
      expected[hash] = (expected[hash] or 0) + 1
    end
  end
  local rows = sql "SELECT hex(hash), CAST(users AS INTEGER) FROM blobs"
  for hash, users in rows:gmatch "(%x+)|(%d+)" do
    found[hash] = tonumber(users)
  end
  assert.same(expected, found)
  return found
end

local function count_of(text)
  local f <close> = assert(io.open(path, "rb"))
  local _, n = f:read("a"):gsub(text, "")
  return n
end

before_each(function()
  folder = shell "mktemp -d"
  path = folder .. "/store.db"
end)

after_each(function()
  ahtest.store_limit(nil)
  ahtest.store_fault(nil)
  assert.truthy(folder:find "/tmp%.%w+$")
  os.execute("rm -rf '" .. folder .. "'")
end)

describe("long strings of records", function()
  -- A value of JSON, and other bytes now and then.
  local function value(draw, deep, known)
    local pick = draw(deep > 3 and 6 or 9)
    if pick == 1 then
      return tostring(draw(1000))
    elseif pick == 2 then
      return '"' .. ("\\\""):rep(draw(2200)) .. '"'
    elseif pick == 3 then
      return '"' .. ("\\u00e4\\\\ä\n"):rep(draw(500)) .. '"'
    elseif pick == 4 then
      return string_of(LONGEST - 3 + draw(5), "\\\\") -- an odd one has an escaped quote at its end
    elseif pick == 5 then
      return string_of(LONGEST - 3 + draw(5))
    elseif pick == 6 then
      return known[draw(#known)]
    end
    local list = {}
    for i = 1, draw(4) do
      list[i] = pick == 7 and ('"k%d": %s'):format(i, value(draw, deep + 1, known))
        or value(draw, deep + 1, known)
    end
    local text = table.concat(list, ", ")
    return pick == 7 and "{" .. text .. "}" or "[" .. text .. "]"
  end

  it("are read byte for byte, whatever the records", function()
    local draw = random(18)
    local known = { string_of(9000, "known "), string_of(4097, "\\n"), '""' }
    local s = open()
    local fence, all, long = s:hold "a", {}, 0
    for _ = 1, 60 do
      local records = {}
      for i = 1, draw(4) do
        local said = value(draw, 0, known)
        if draw(10) == 1 then -- no JSON
          said = said:sub(1, draw(#said)) .. (draw(2) == 1 and '\0"\\' or "")
        end
        long = long + (#said > LONGEST and 1 or 0)
        records[i] = { #all + i, "step", said, draw(2) == 1 and value(draw, 0, known) or nil }
      end
      assert.equal(0, append(s, fence, #all, records))
      table.move(records, 1, #records, #all + 1, all)
    end
    assert.is_true(long > 40)
    for _ = 1, 2 do
      local read = s:read "a"
      assert.equal(#all, #read)
      for i, r in ipairs(read) do
        assert.is_true(all[i][3] == r.said, "said of record " .. i)
        assert.is_true(all[i][4] == r.kept, "kept of record " .. i)
      end
      s:close()
      s = open()
    end
    s:close()
    if has_tool then
      assert.truthy(next(check_users()))
      assert.is_true(check_users()[hex_of(ahtest.sha256(known[1]))] > 5)
    end
  end)

  if not has_tool then
    return pending "no sqlite3"
  end

  it("are cut out above 4096 bytes with their quotes, in said and kept", function()
    make { { 1, "step", string_of(4095) }, { 1, "step", string_of(4096) },
      { 1, "step", "[" .. string_of(4097) .. "]", string_of(5000, "ab") },
      { 1, "step", "{}", ("[%s]"):format(("1,"):rep(9000) .. "1") } }
    assert.equal("4095||0\n4096||0\n2|40|40\n2||0",
      sql "SELECT length(said), length(said_cuts), ifnull(length(kept_cuts), 0) FROM records")
    assert.equal("4097|1\n5000|1", sql "SELECT length(body), CAST(users AS INTEGER) FROM blobs")
    assert.equal("", sql "SELECT kept FROM records WHERE kept_cuts IS NOT NULL")
  end)

  it("stand once in the file, with the number of their users", function()
    local text = string_of(40000, "0123456789 once in the file")
    local long = text .. string_of(4097, "0123456789 here it ends")
    make { { 1, "step", '{"a":' .. text .. ',"b":' .. text .. "}" }, { 2, "step", "{}", text },
      { 3, "step", "[" .. long .. "]" } }
    local s <close> = open()
    assert.equal(0, append(s, s:hold "a", 3, { { 4, "step", text }, { 5, "step", text, text } }))
    s:close()
    assert.equal("40000|7\n4097|1",
      sql "SELECT length(body), CAST(users AS INTEGER) FROM blobs ORDER BY users DESC")
    check_users()
    local n = count_of "0123456789 once" -- some are on two pages
    assert.is_true(n > 1400 and n <= 40000 // 27, n .. " times")
  end)

  it("are not written again by their next users", function()
    local function log_size()
      local f <close> = assert(io.open(path .. "-wal", "rb"))
      return f:seek "end"
    end
    local text = string_of(40000, "0123456789 written once")
    local s <close> = open()
    local fence = s:hold "a"
    local sizes = {}
    for i = 1, 3 do
      assert.equal(0, append(s, fence, i - 1, { { i, "step", text } }))
      sizes[i] = log_size()
    end
    assert.is_true(sizes[1] > 40000)
    for i = 2, 3 do
      local more = sizes[i] - sizes[i - 1]
      assert.is_true(more > 0 and more < 20000, more .. " bytes")
    end
  end)

  it("are not counted by appends that are refused", function()
    local text = string_of(5000)
    make { { 1, "step", text } }
    local s <close> = open()
    local fence = s:hold "a"
    for _ = 1, 2 do -- alone, then among others in one transaction
      s:append { { "a", 1, fence, { 1, "step", text } }, { "b", 0, 1, { 1, "step", text } } }
      s:append { { "a", 1, fence, { 1, "step", string_of(6000) } }, { "b", 0, 1 } }
    end
    local n = 0
    while n < 4 do
      for _, done in ipairs(s:wait()) do
        n = n + 1
        assert.equal(STORE, done[2])
      end
    end
    s:close()
    assert.equal("5000|1", sql "SELECT length(body), CAST(users AS INTEGER) FROM blobs")
  end)

  it("are counted right whatever write of the disk fails", function()
    local failed, last = 0, 0
    for n = 1, 30, 2 do
      local s = open { sync = "full" }
      local fence = s:hold "a"
      ahtest.store_fault("write", n)
      for i = 1, 3 do
        local status = append(s, fence, last, { { i, "step", string_of(9000, "same ") },
          { i, "step", "[]", string_of(9000, "other " .. last) } })
        last = last + (status == 0 and 2 or 0)
        failed = failed + (status == 0 and 0 or 1)
      end
      ahtest.store_fault(nil)
      s:close()
      s = open()
      local all = s:read "a"
      assert.is_true(#all >= last and #all % 2 == 0)
      last = #all
      s:close()
      check_users()
    end
    assert.is_true(failed > 10, "only " .. failed .. " failed")
  end)

  it("leave the store as it was when the disk is full, and are written later", function()
    make { { 1, "step", "{}" } }
    local s <close> = open()
    local fence, last = s:hold "a", 1
    ahtest.store_limit(150000)
    repeat
      local status = append(s, fence, last, { { 1, "step", string_of(9000, "text " .. last) } })
      last = last + (status == 0 and 1 or 0)
    until status ~= 0 or last > 100
    ahtest.store_limit(nil)
    assert.is_true(last > 1 and last < 100)
    assert.equal(0, (append(s, fence, last, { { 1, "step", string_of(9000, "on") } })))
    assert.equal(last + 1, #s:read "a")
    s:close()
    check_users()
  end)

  it("that were erased are written again by the next record that has them", function()
    local text = string_of(5000)
    make { { 1, "step", text } }
    sql "UPDATE blobs SET body = NULL"
    local s <close> = open()
    assert.equal(0, append(s, s:hold "a", 1, { { 2, "step", text } }))
    assert.equal(text, s:read("a", 2)[1].said)
  end)
end)

describe("a file with long strings", function()
  if not has_tool then
    return pending "no sqlite3"
  end

  local TEXT, OTHER = string_of(5000, "text "), string_of(6000, "other ")

  -- Makes three records, changes the file, and asserts how reading ends. `change` has places for
  -- the first record's list of cuts as it was: all, and each of its parts.
  local function edited(change, words)
    make { { 1, "step", "{}" }, { 2, "step", ("[%s,%s]"):format(TEXT, OTHER) },
      { 3, "step", "{}", OTHER } }
    local cuts = sql "SELECT hex(said_cuts) FROM records WHERE said_cuts IS NOT NULL"
    assert.equal(4 * CUT, #cuts)
    change = change:gsub("$(%l+)", { all = cuts, first = cuts:sub(1, 2 * CUT),
      second = cuts:sub(2 * CUT + 1), hash = cuts:sub(17, 80), tail = cuts:sub(9, 2 * CUT) })
    assert.equal("", sql(change))
    local s <close> = open()
    local list, status, message = s:read "a"
    assert.is_nil(list)
    assert.equal(STORE, status)
    assert.truthy(message:find(words, 1, true), message)
    assert.truthy(message:find("record 2", 1, true), message)
    assert.same({ "{}" }, { s:read("a", 1, 1)[1].said })
    assert.same({ OTHER }, { s:read("a", 3)[1].kept })
    assert.equal(0, append(s, s:hold "a", 3, { { 4, "step", "{}" } }))
  end

  for words, changes in pairs {
    ["a long string of it is missing"] = { "DELETE FROM blobs WHERE length(body) = 5000",
      "UPDATE blobs SET hash = zeroblob(32) WHERE length(body) = 5000",
      "UPDATE blobs SET hash = 'x' WHERE length(body) = 5000",
      "UPDATE records SET said_cuts = x'0000000100001388' || zeroblob(32) WHERE id % 8 = 2" },
    ["a long string of it has another length"] = {
      "UPDATE blobs SET body = zeroblob(4999) WHERE length(body) = 5000",
      "UPDATE blobs SET body = '' WHERE length(body) = 5000",
      "UPDATE blobs SET body = 7 WHERE length(body) = 5000" },
    ["a long string of it has another hash"] = {
      "UPDATE blobs SET body = zeroblob(5000) WHERE length(body) = 5000" },
    ["its long strings are out of range"] = {
      "UPDATE records SET said_cuts = x'$second$first' WHERE said_cuts IS NOT NULL",
      "UPDATE records SET said_cuts = x'00000004$tail' WHERE said_cuts IS NOT NULL",
      "UPDATE records SET said_cuts = x'ffffffff$tail' WHERE said_cuts IS NOT NULL",
      "UPDATE records SET said_cuts = x'00000001ffffffff$hash' WHERE said_cuts IS NOT NULL" },
    ["its list of long strings is incomplete"] = {
      "UPDATE records SET said_cuts = x'$all' || x'00' WHERE said_cuts IS NOT NULL",
      "UPDATE records SET said_cuts = x'00' WHERE said_cuts IS NOT NULL",
      "UPDATE records SET said_cuts = 'text' WHERE said_cuts IS NOT NULL" },
    ["long strings of no text"] = {
      "UPDATE records SET kept_cuts = said_cuts WHERE said_cuts IS NOT NULL" },
    ["a text of it was erased"] = {
      "UPDATE blobs SET body = NULL WHERE length(body) = 5000",
      "UPDATE records SET said = '', said_cuts = zeroblob(32) WHERE said_cuts IS NOT NULL" },
  } do
    for i, change in ipairs(changes) do
      it(("is refused where %s (%d)"):format(words, i), function()
        edited(change, words)
      end)
    end
  end

  -- The number of a record, its time, kind, hash, and both texts as { rest, cuts }.
  local function rows()
    local list = {}
    for line in sql([[SELECT id & 4294967295, time, kind, hex(hash), hex(said),
      hex(ifnull(said_cuts, '')), kept IS NOT NULL, hex(ifnull(kept, '')),
      hex(ifnull(kept_cuts, '')) FROM records ORDER BY id]]):gmatch "[^\n]+" do
      local c = {}
      for part in (line .. "|"):gmatch "(.-)|" do
        c[#c + 1] = part
      end
      list[#list + 1] = { number = tonumber(c[1]), time = tonumber(c[2]), kind = c[3],
        hash = bytes_of(c[4]), said = { bytes_of(c[5]), bytes_of(c[6]) },
        kept = c[7] == "1" and { bytes_of(c[8]), bytes_of(c[9]) } or nil }
    end
    return list
  end

  local function hash_of(text)
    local rest, cuts = table.unpack(text)
    return #cuts == 32 and cuts or ahtest.sha256((">s8"):pack(cuts) .. rest)
  end

  local function check_chain()
    local before, all = ("\0"):rep(32), rows()
    for _, r in ipairs(all) do
      before = ahtest.sha256(before .. (">i8i8s1"):pack(r.number, r.time, r.kind)
        .. hash_of(r.said) .. (r.kept and hash_of(r.kept) or ""))
      assert.equal(hex_of(r.hash), hex_of(before), "record " .. r.number)
    end
    return all
  end

  it("has a chain of hashes that needs neither erased strings nor erased texts", function()
    make { { 1, "opened", "{}" }, { 2, "step", ("[%s,%s]"):format(TEXT, OTHER), TEXT },
      { 3, "step", "{}", OTHER }, { 4, "step", TEXT, "[]" } }
    assert.equal(2 * CUT, #check_chain()[2].said[2])
    sql "UPDATE blobs SET body = NULL"
    local all = check_chain()
    for _, at in ipairs { 1, 2, 4 } do
      sql(("UPDATE records SET said = '', said_cuts = x'%s' WHERE id %% 8 = %d"):format(
        hex_of(hash_of(all[at].said)), at))
    end
    sql(("UPDATE records SET kept = '', kept_cuts = x'%s' WHERE id %% 8 = 2"):format(
      hex_of(hash_of(all[2].kept))))
    assert.equal("", check_chain()[4].said[1])
    sql "UPDATE records SET said_cuts = zeroblob(32) WHERE id % 8 = 4"
    assert.has_error(check_chain)
  end)
end)
