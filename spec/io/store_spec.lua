-- Stores: one contract for every engine, and what only SQLite's files have: other processes,
-- crashes, full disks, damage, rights.
local ahtest = require "ahtest"

local STORE, CONFLICT, USAGE = -21, -22, -3

local folder

local function shell(line)
  local pipe <close> = assert(io.popen(line))
  return pipe:read("a"):gsub("\n$", "")
end

-- Makes a folder in /tmp, as other users may not look into another TMPDIR.
local function make_folder()
  folder = shell "mktemp -d /tmp/tmp.XXXXXXXXXX"
end

local function remove_folder()
  assert.truthy(folder:find "/tmp%.%w+$")
  os.execute("rm -rf '" .. folder .. "'")
end

local function write_file(path, text)
  local f <close> = assert(io.open(path, "wb"))
  f:write(text)
end

local function read_file(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

local function options(more)
  local o = { path = folder .. "/store.db" }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return o
end

-- Appends, waits, and returns the status and the message.
local function append(s, batches, sync)
  local ticket = s:append(batches, sync)
  local done = s:wait()
  assert.equal(1, #done)
  assert.equal(ticket, done[1][1])
  return done[1][2], done[1][3]
end

local function said(list)
  local out = {}
  for i, r in ipairs(list) do
    out[i] = r.said
  end
  return out
end

-- Appends until n of them are done; returns their results in order.
local function wait_for(s, n)
  local all = {}
  while #all < n do
    for _, one in ipairs(s:wait()) do
      all[#all + 1] = one
    end
  end
  return all
end

local ENGINES = {}
for name, there in pairs(ahtest.store_engines()) do
  ENGINES[#ENGINES + 1] = there and name or nil
end
table.sort(ENGINES)

it("SQLite is in this build, and can be opened", function()
  assert.is_true(ahtest.store_engines().sqlite)
end)

for _, engine in ipairs(ENGINES) do
  describe("a store of " .. engine, function()
    local s
    before_each(function()
      make_folder()
      s = assert(ahtest.store(engine, options()))
    end)
    after_each(function()
      s:close()
      remove_folder()
    end)

    it("keeps records as they were given, numbered from 1", function()
      local fence = s:hold "a"
      assert.equal(0, append(s, { { "a", 0, fence, { 10, "opened", "{}" },
        { 11, "step", '{"x":"\0ä"}', "kept\0" } } }))
      assert.equal(0, append(s, { { "a", 2, fence, { 12, "step", "{}", "" } } }))
      assert.same({
        { number = 1, time = 10, kind = "opened", said = "{}" },
        { number = 2, time = 11, kind = "step", said = '{"x":"\0ä"}', kept = "kept\0" },
        { number = 3, time = 12, kind = "step", said = "{}", kept = "" },
      }, s:read "a")
      assert.same({ "{}" }, said(s:read("a", 3)))
      assert.same({}, s:read("a", 4))
      assert.same({}, s:read "b")
    end)

    it("reads many and large records, and stops where the reader does", function()
      local batch = { "a", 0, (s:hold "a") }
      for i = 1, 2000 do
        batch[#batch + 1] = { i, "step", ("x"):rep(i % 7 == 0 and 5000 or 300) .. i }
      end
      assert.equal(0, append(s, { batch }))
      local all = s:read "a"
      assert.equal(2000, #all)
      for i, r in ipairs(all) do
        assert.equal(i, r.number)
        assert.equal(batch[i + 3][3], r.said)
      end
      assert.equal(3, #s:read("a", 1, 3))
    end)

    it("carries out appends in their order, and wakes the host", function()
      local fence = s:hold "a"
      for i = 1, 50 do
        s:append { { "a", i - 1, fence, { i, "step", tostring(i) } } }
      end
      local done = wait_for(s, 50)
      for i, one in ipairs(done) do
        assert.same({ i, 0, "" }, one)
      end
      for _ = 1, 200 do -- the wake-up may come a little later than the results
        if s:woken() >= 1 then
          break
        end
        shell "sleep 0.005"
      end
      assert.is_true(s:woken() >= 1)
      assert.same({}, s:wait(), "nothing is outstanding")
    end)

    it("refuses a wrong position, and that append alone", function()
      local a, b = s:hold "a", s:hold "b"
      s:append { { "a", 0, a, { 1, "step", "1" } } }
      s:append { { "b", 0, b, { 1, "step", "never" } }, { "a", 0, a, { 1, "step", "never" } } }
      s:append { { "b", 0, b, { 1, "step", "2" } }, { "a", 1, a, { 1, "step", "3" } } }
      local done = wait_for(s, 3)
      assert.equal(0, done[1][2])
      assert.equal(CONFLICT, done[2][2])
      assert.truthy(done[2][3]:find("has 1 records, the append expected 0", 1, true))
      assert.equal(0, done[3][2])
      assert.same({ "1", "3" }, said(s:read "a"))
      assert.same({ "2" }, said(s:read "b"))
    end)

    it("refuses an old fence, and streams that nobody held", function()
      local old = s:hold "a"
      s:release "a"
      local new = s:hold "a"
      assert.is_true(new > old)
      local status, message = append(s, { { "a", 0, old, { 1, "step", "x" } } })
      assert.equal(STORE, status)
      assert.truthy(message:find("taken over", 1, true))
      assert.equal(STORE, (append(s, { { "b", 0, 1, { 1, "step", "x" } } })))
      assert.same({}, s:read "a")
    end)

    it("has one holder a stream, unless it is taken", function()
      local first = s:hold "a"
      local _, status, message = s:hold "a"
      assert.equal(CONFLICT, status)
      assert.truthy(message:find("held by", 1, true))
      local second = s:hold("a", true)
      assert.is_true(second > first)
      assert.equal(STORE, (append(s, { { "a", 0, first, { 1, "step", "x" } } })))
      assert.equal(0, (append(s, { { "a", 0, second, { 1, "step", "x" } } })))
    end)

    it("refuses names of streams without bytes, and too long ones", function()
      for _, name in ipairs { "", ("x"):rep(129) } do
        local fence, status = s:hold(name)
        assert.is_nil(fence)
        assert.equal(USAGE, status)
      end
      assert.is_number(s:hold(("x"):rep(128)))
    end)

    it("finds the last record of a kind", function()
      local fence = s:hold "a"
      append(s, { { "a", 0, fence, { 1, "checkpoint", "" }, { 1, "turn", "" },
        { 1, "checkpoint", "" }, { 1, "turn", "" } } })
      assert.equal(3, s:find_last("a", "checkpoint"))
      assert.equal(4, s:find_last("a", "turn"))
      assert.equal(0, s:find_last("a", "opened"))
      assert.equal(0, s:find_last("b", "turn"))
    end)

    it("lists streams with records, the one changed last first", function()
      for i, name in ipairs { "x/1", "y/1", "x/2", "x/3" } do
        append(s, { { name, 0, s:hold(name), { i, "turn", "" } } })
      end
      s:hold "x/empty"
      assert.is_true(s:label("x/1", '{"waiting":1}'))
      s:post("x/1", "k", "send", "{}", 1)
      local names = {}
      for _, x in ipairs(s:list "x/") do
        names[#names + 1] = x.name
      end
      assert.same({ "x/3", "x/2", "x/1" }, names)
      assert.equal(4, #s:list "")
      assert.same({ { name = "x/1", label = '{"waiting":1}', last = 1, time = 1, messages = 1 } },
        s:list("", true))
      assert.is_true(s:label("x/1", nil))
      assert.same({}, s:list("", true))
      assert.equal(STORE, select(2, s:label("z", "{}")))
    end)

    it("keeps one message a key, for ever", function()
      local fence = s:hold "a"
      assert.is_true(s:post("a", "k1", "response", '{"yes":true}', 5))
      assert.is_true(s:post("a", "k2", "send", "{}", 6))
      assert.equal(CONFLICT, select(2, s:post("a", "k1", "response", '{"yes":false}', 7)))
      assert.equal(USAGE, select(2, s:post("b", "k1", "response", "{}", 7)))
      assert.same({ { key = "k1", kind = "response", body = '{"yes":true}', time = 5 },
        { key = "k2", kind = "send", body = "{}", time = 6 } }, s:inbox "a")
      assert.equal(0, append(s, { { "a", 0, fence, taken = { "k1" }, { 1, "ask_closed", "" } } }))
      assert.same({ "k2" }, { s:inbox("a")[1].key })
      assert.equal(1, #s:inbox "a")
      assert.equal(CONFLICT, select(2, s:post("a", "k1", "response", "{}", 7)))
      assert.same({}, s:inbox "b")
    end)

    it("leaves messages where the append that takes them is refused", function()
      local fence = s:hold "a"
      s:post("a", "k", "send", "{}", 1)
      assert.equal(CONFLICT, (append(s, { { "a", 7, fence, taken = { "k" }, { 1, "x", "" } } })))
      assert.equal(1, #s:inbox "a")
    end)

    it("says when a message may have come", function()
      s:hold "a"
      s:news()
      assert.is_false(s:news())
      s:post("a", "k", "send", "{}", 1)
      assert.is_true(s:news())
      assert.is_false(s:news())
    end)

    it("calls `done` of what is outstanding when it is closed", function()
      local fence = s:hold "a"
      for i = 1, 20 do
        s:append { { "a", i - 1, fence, { i, "step", "" } } }
      end
      s:close() -- a leak of tickets is found by the build with ASan
    end)
  end)
end

-- -- SQLite's files -----------------------------------------------------------------------------

local function open(more)
  return ahtest.store("sqlite", options(more))
end

-- A Lua program in a process of its own, with `ahtest` and `path`.
local function child(text, before)
  local script = folder .. "/child.lua"
  write_file(script, ("package.cpath = %q\nlocal ahtest, path = require 'ahtest', %q\n%s"):format(
    package.cpath, folder .. "/store.db", text))
  return io.popen(("%s exec lua5.4 %s 2>&1"):format(before or "", script))
end

-- Runs one to its end. Returns its output and its exit code.
local function run_child(text, before)
  local pipe = child(text, before)
  local out = pipe:read "a"
  local _, _, code = pipe:close()
  return out, code
end

-- The SQL of another program.
local function sql(text)
  return shell(("sqlite3 '%s/store.db' \"%s\""):format(folder, text))
end
local has_tool = os.execute "command -v sqlite3 >/dev/null"

describe("a store's file", function()
  before_each(make_folder)
  after_each(function()
    ahtest.store_kind(nil)
    remove_folder()
  end)

  local function write_one(name)
    local s <close> = assert(open())
    append(s, { { name or "a", #s:read(name or "a"), s:hold(name or "a"), { 1, "turn", "one" } } })
  end

  -- Asserts that the store is refused with this text, and that the file is as before.
  local function refused(text, more)
    local path = folder .. "/store.db"
    local before = read_file(path)
    local s, status, message = open(more)
    assert.is_nil(s)
    assert.equal(STORE, status)
    assert.truthy(message:find(text, 1, true), message)
    assert.equal(before, read_file(path))
    assert.is_nil(io.open(path .. "-wal"))
  end

  it("lasts", function()
    write_one()
    write_one()
    local s <close> = assert(open { create = false })
    assert.same({ "one", "one" }, said(s:read "a"))
  end)

  it("takes its log in, also where each append comes alone", function()
    local s <close> = assert(open())
    local fence, text = s:hold "a", ("x"):rep(40 << 10)
    for i = 0, 599 do
      s:append({ { "a", i, fence, { 1, "turn", text } } }, false, true)
      assert.same({ { i + 1, 0, "" } }, s:wait())
    end
    local log <close> = assert(io.open(folder .. "/store.db-wal"))
    assert.is_true(log:seek "end" < 16 << 20) -- of 24 MiB that were written
  end)

  it("is private, and so is what lies beside it and a folder that is made", function()
    local s <close> = assert(open())
    append(s, { { "a", 0, s:hold "a", { 1, "turn", "" } } })
    assert.equal("600 600 600 600", (shell(("cd %s && stat -c %%a store.db store.db-wal "
      .. "store.db-shm store.db-locks | tr '\n' ' '"):format(folder)):gsub(" $", "")))
    local out = run_child(([[
      local s = assert(ahtest.store("sqlite", { path = %q }))
      s:close()]]):format(folder .. "/deep/er/store.db"), "umask 000;")
    assert.equal("", out)
    assert.equal("700\n700\n600", (shell(("cd %s && stat -c %%a deep deep/er deep/er/store.db")
      :format(folder))))
  end)

  it("is not made unless asked", function()
    local s, status, message = open { create = false }
    assert.is_nil(s)
    assert.equal(STORE, status)
    assert.truthy(message:find("there is no store", 1, true))
    assert.equal("", shell("ls " .. folder))
  end)

  it("is not a file of another kind", function()
    local path = folder .. "/store.db"
    write_file(path, ("some text, longer than a header\n"):rep(20))
    os.execute("chmod 600 " .. path)
    refused "another kind of file"
    write_file(path, "short")
    refused "another kind of file"
  end)

  it("is not a database of another program", function()
    write_file(folder .. "/store.db", "SQLite format 3\0" .. ("\0"):rep(4080))
    os.execute("chmod 600 " .. folder .. "/store.db")
    refused "a database of another program"
  end)

  -- Replaces bytes of the file's header.
  local function edit(at, bytes)
    local path = folder .. "/store.db"
    local text = read_file(path)
    write_file(path, text:sub(1, at) .. bytes .. text:sub(at + #bytes + 1))
  end

  it("is refused if its format is newer", function()
    write_one()
    edit(60, "\0\0\0\2")
    refused "needs a newer agenthost: its format is 2, and this one knows 1"
  end)

  it("is refused if it is cut", function()
    write_one()
    local path = folder .. "/store.db"
    write_file(path, read_file(path):sub(1, 9000))
    refused "is cut: it has 9000 bytes of "
  end)

  it("is refused if its tables are edited", function()
    if not has_tool then
      return pending "no sqlite3"
    end
    write_one()
    sql "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM streams; END"
    local s, status, message = open()
    assert.is_nil(s)
    assert.equal(STORE, status)
    assert.truthy(message:find("its tables are not those", 1, true), message)
    sql "DROP TRIGGER t; DROP INDEX inbox_open"
    assert.truthy(select(3, open()):find("its tables are not those", 1, true))
  end)

  it("is refused as a symbolic link, as a folder, and where others may write it", function()
    write_one()
    local path = folder .. "/store.db"
    os.execute("chmod 620 " .. path)
    refused "others may write"
    os.execute(("chmod 600 %s; mv %s %s/real; ln -s real %s"):format(path, path, folder, path))
    refused "a symbolic link"
    os.execute(("rm %s; mkdir %s"):format(path, path))
    assert.truthy(select(3, open()):find("is not a file", 1, true))
  end)

  it("is refused on filesystems of other machines, unless forced", function()
    for kind, name in pairs { [0x6969] = "NFS", [0xff534d42] = "CIFS", [0xfe534d42] = "SMB",
      [0x517b] = "SMB", [0x01021997] = "9p", [0x65735546] = "FUSE" } do
      ahtest.store_kind(kind)
      local s, status, message = open()
      assert.is_nil(s)
      assert.equal(STORE, status)
      assert.truthy(message:find("is on " .. name, 1, true), message)
    end
    assert.equal("", shell("ls " .. folder))
    assert(open { force = true }):close()
  end)

  it("is refused without the right to read it, and if it is another user's", function()
    write_one()
    local path, nobody = folder .. "/store.db", 65534
    os.execute(("chmod 000 %s; chmod 711 %s"):format(path, folder))
    local root = io.open(path) ~= nil
    if root then
      os.execute(("chown %d %s"):format(nobody, path))
      ahtest.store_user(nobody)
    end
    local s, status, message = open()
    if root then
      ahtest.store_user(0)
    end
    assert.is_nil(s)
    assert.equal(STORE, status)
    assert.truthy(message:find("cannot be opened: Permission denied", 1, true), message)
    if root then
      os.execute(("chmod 600 %s; chown 0 %s"):format(path, path))
      ahtest.store_user(nobody)
      s, status, message = open()
      ahtest.store_user(0)
      assert.same({ nil, STORE }, { s, status })
      assert.truthy(message:find("belongs to another user (0)", 1, true), message)
    end
  end)

  it("has a chain of hashes over its records", function()
    if not has_tool then
      return pending "no sqlite3"
    end
    local s <close> = assert(open())
    local fence = s:hold "a"
    append(s, { { "a", 0, fence, { 10, "opened", "{}" }, { 11, "step", "{}", "kept" } } })
    append(s, { { "a", 2, fence, { 12, "turn", "x" } } })
    local before, sha256 = ("\0"):rep(32), ahtest.sha256
    local expected = {}
    local function hash_of(text)
      return sha256(("\0"):rep(8) .. text)
    end
    for i, r in ipairs(s:read "a") do
      before = sha256(before .. string.pack(">i8i8s1", i, r.time, r.kind)
        .. hash_of(r.said) .. (r.kept and hash_of(r.kept) or ""))
      expected[i] = before:gsub(".", function(c) return ("%02X"):format(c:byte()) end)
    end
    assert.equal(table.concat(expected, "\n"), sql "SELECT hex(hash) FROM records ORDER BY id")
  end)

  it("is shared by the handles of a process, in which a stream has one holder", function()
    local a <close> = assert(open())
    local b <close> = assert(open { path = folder .. "/./store.db" })
    local fence = a:hold "x"
    local _, status, message = b:hold "x"
    assert.equal(CONFLICT, status)
    assert.truthy(message:find("by this process", 1, true))
    append(a, { { "x", 0, fence, { 1, "turn", "1" } } })
    assert.same({ "1" }, said(b:read "x"))
    b:news()
    a:post("x", "k", "send", "{}", 1)
    assert.is_true(b:news())
    local taken = b:hold("x", true)
    assert.truthy(select(2, append(a, { { "x", 1, fence, { 1, "turn", "2" } } }))
      :find("taken over", 1, true))
    assert.equal(0, (append(b, { { "x", 1, taken, { 1, "turn", "3" } } })))
    a:release "x" -- it no longer holds it
    assert.equal(CONFLICT, select(2, a:hold "x"))
  end)

  it("is not for a forked child", function()
    local s <close> = assert(open())
    local status, message = ahtest.store_forked(s)
    assert.equal(STORE, status)
    assert.truthy(message:find("before a fork", 1, true), message)
    assert.is_number(s:hold "still mine")
  end)

  it("needs SQLite, and names its package", function()
    local other = shell "mktemp -d"
    write_file(other .. "/libsqlite3.so.0", "")
    local out = run_child([[print(select(3, ahtest.store("sqlite", { path = path })))]],
      "LD_LIBRARY_PATH=" .. other)
    os.execute("rm -r " .. other)
    assert.truthy(out:find("apt-get install libsqlite3-0", 1, true), out)
    assert.is_nil(io.open(folder .. "/store.db"))
  end)
end)

describe("a store and other processes", function()
  before_each(make_folder)
  after_each(remove_folder)

  -- Holds the stream "a", prints the fence, and waits at a pipe into which no process writes.
  local HOLDER = [[
    local s = assert(ahtest.store("sqlite", { path = path }))
    local fence = assert(s:hold("a", arg[1] == "take"))
    print(fence)
    io.stdout:flush()
    io.open(path .. ".wait")]]

  -- Starts it. Returns its process and a function that kills it.
  local function start_holder()
    write_file(folder .. "/holder.lua", ("package.cpath = %q\nlocal ahtest, path = "
      .. "require 'ahtest', %q\n%s"):format(package.cpath, folder .. "/store.db", HOLDER))
    os.execute(("mkfifo %s/store.db.wait"):format(folder))
    local pipe = io.popen(("echo $$; exec lua5.4 %s/holder.lua"):format(folder))
    local pid = pipe:read "l"
    assert.equal("1", pipe:read "l")
    return pid, function()
      os.execute("kill -9 " .. pid)
      pipe:close()
    end
  end

  it("name the holder, and pass the stream on when it is dead", function()
    local pid, kill = start_holder()
    local s <close> = assert(open())
    local _, status, message = s:hold "a"
    assert.equal(CONFLICT, status)
    assert.truthy(message:find("held by process " .. pid, 1, true), message)
    assert.truthy(message:find " since %d%d%d%d%-%d%d%-%d%d ", message)
    kill()
    assert.equal(2, s:hold "a")
  end)

  it("take a stream over from a living holder", function()
    local _, kill = start_holder()
    local s <close> = assert(open())
    assert.equal(2, s:hold("a", true))
    assert.equal(0, (append(s, { { "a", 0, 2, { 1, "turn", "mine" } } })))
    assert.equal(STORE, (append(s, { { "a", 1, 1, { 1, "turn", "old" } } })))
    kill()
    local out = run_child [[
      local s = assert(ahtest.store("sqlite", { path = path }))
      print((select(2, s:hold "a")))
      print(s:post("a", "k", "send", "{}", 1))]]
    assert.equal(CONFLICT .. "\ntrue\n", out)
    assert.is_true(s:news())
    assert.equal("k", s:inbox("a")[1].key)
  end)

  it("append to one stream each at a time, and to one file together", function()
    local text = [[
      local s = assert(ahtest.store("sqlite", { path = path }))
      local name = "s%d"
      local fence = assert(s:hold(name))
      for i = 1, 50 do
        s:append { { name, i - 1, fence, { i, "turn", name } } }
        local done = s:wait()
        assert(done[1][2] == 0, done[1][3])
      end]]
    local all = {}
    for i = 1, 6 do
      local script = ("%s/c%d.lua"):format(folder, i)
      write_file(script, ("package.cpath = %q\nlocal ahtest, path = require 'ahtest', %q\n%s")
        :format(package.cpath, folder .. "/store.db", text:format(i)))
      all[i] = io.popen("lua5.4 " .. script .. " 2>&1")
    end
    for _, pipe in ipairs(all) do
      assert.equal("", pipe:read "a")
      pipe:close()
    end
    local s <close> = assert(open())
    for i = 1, 6 do
      assert.equal(50, #s:read("s" .. i))
    end
  end)
end)

-- Appends four records at a time to "a", and prints the number of each append that is done.
local APPENDS = [[
  local s = assert(ahtest.store("sqlite", { path = path, sync = "effects" }))
  local fence = assert(s:hold "a")
  local last = #s:read "a"
  for i = 1, %d do
    local batch = { "a", last, fence }
    for k = 1, 4 do
      local text = ("x"):rep(i %% 50 == 0 and 9000 or 400)
      batch[k + 3] = { i, "turn", ("%%d/%%d "):format(last, k) .. text }
    end
    s:append({ batch }, i %% 10 == 0)
    local done = s:wait()
    assert(done[1][2] == 0, done[1][3])
    last = last + 4
    io.stdout:write(last, "\n")
    io.stdout:flush()
  end]]

-- Asserts that the stream has whole appends, at least `least` records, at most one append more.
local function check_whole(least)
  local s <close> = assert(open())
  local all = s:read "a"
  assert.equal(0, #all % 4)
  assert.is_true(#all == least or #all == least + 4, #all .. " records, " .. least .. " done")
  for i, r in ipairs(all) do
    assert.equal(i, r.number)
    assert.truthy(r.said:find(("^%d/%d "):format((i - 1) // 4 * 4, (i - 1) % 4 + 1)))
  end
  return #all
end

describe("a store whose process is killed", function()
  before_each(make_folder)
  after_each(remove_folder)

  it("has what was done, and nothing torn", function()
    local least = 0
    for round = 1, 12 do
      local pipe = child(APPENDS:format(100000), "echo $$;")
      local pid = pipe:read "l"
      local until_append = round * 7 % 40
      local done = least
      for _ = 1, until_append do
        done = tonumber(pipe:read "l") or error "it ended"
      end
      os.execute("kill -9 " .. pid)
      for line in pipe:lines() do
        done = tonumber(line) or done -- the last line may be cut
      end
      pipe:close()
      least = check_whole(done)
    end
    assert.is_true(least > 400)
  end)

  it("stops at every crash point: an append is there if it was before the point", function()
    local count = folder .. "/count"
    local _, code = run_child(APPENDS:format(3), "AGENTHOST_CRASH_COUNT=" .. count)
    assert.is_true(code == 0 or code == nil)
    assert.equal("6", (read_file(count):gsub("%s", "")))
    for at = 1, 6 do
      os.execute(("rm -f %s/store.db*"):format(folder))
      local out, exit = run_child(APPENDS:format(3), "AGENTHOST_CRASH_AT=" .. at)
      assert.equal(86, exit)
      local _, done = out:gsub("\n", "")
      assert.equal((at - 1) // 2, done)
      assert.equal(at // 2 * 4, check_whole(done * 4))
    end
    os.execute(("rm -f %s/store.db*"):format(folder))
    assert.equal(0, select(2, run_child(APPENDS:format(3), "AGENTHOST_CRASH_AT=7")) or 0)
  end)
end)

describe("a store whose disk fails", function()
  before_each(make_folder)
  after_each(function()
    ahtest.store_limit(nil)
    ahtest.store_fault(nil)
    remove_folder()
  end)

  it("says that it is full, and goes on when there is room", function()
    local s <close> = assert(open())
    local fence, last = s:hold "a", 0
    ahtest.store_limit(200000)
    local status, message
    repeat
      status, message = append(s, { { "a", last, fence, { 1, "turn", ("x"):rep(10000) } } })
      last = status == 0 and last + 1 or last
    until status ~= 0 or last > 100
    ahtest.store_limit(nil)
    assert.equal(STORE, status)
    assert.is_true(last > 0)
    assert.truthy(message:find("cannot be written", 1, true), message)
    assert.equal(0, (append(s, { { "a", last, fence, { 1, "turn", "on" } } })))
    assert.equal(last + 1, #s:read "a")
  end)

  it("tells errors of writing and of syncing, whichever call it is", function()
    local failed = 0
    for _, call in ipairs { "write", "fsync" } do
      for n = 1, 8 do
        os.execute(("rm -f %s/store.db*"):format(folder))
        local s = assert(open { sync = "full" })
        local fence, last = s:hold "a", 0
        ahtest.store_fault(call, n)
        for _ = 1, 4 do
          local status, message = append(s, { { "a", last, fence, { 1, "turn", "x" } } })
          if status == 0 then
            last = last + 1
          else
            failed = failed + 1
            assert.equal(STORE, status)
            assert.truthy(message:find("error of input or output", 1, true), message)
          end
        end
        ahtest.store_fault(nil)
        local all = s:read "a"
        assert.is_true(#all == last, ("%d there, %d done"):format(#all, last))
        s:close()
        s = assert(open())
        assert.is_true(#s:read "a" >= last)
        s:close()
      end
    end
    assert.is_true(failed >= 16, "only " .. failed .. " failed")
  end)
end)
