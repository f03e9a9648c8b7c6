-- Keepers (src/host/keeper.c) over the engine in memory (src/io/store_memory.c): which records are
-- appended together, when flushes are completed, and what a failure of the store does.
-- `ahtest.keeper` is a host with simulated clocks and a store whose answers can fail, be lost, or
-- be late; runs are numbers.
local ahtest = require "ahtest"
local patiently = require "support.patiently"

local STORE, CONFLICT, USAGE, NOMEM = -21, -22, -3, -2

local bench

local function new(...)
  bench = ahtest.keeper(...)
  return bench
end

-- Opens a stream whose record `opened` is appended.
local function open(b, name)
  local k = assert(b:open(name))
  b:step()
  b:appends()
  return k
end

-- Opens the stream "talk".
local function begin()
  local b = new()
  return b, open(b, "talk")
end

local function lease(b, k, n, kept)
  b:put(k, "lease", ('{"holder":"%s","written_by":"0.1.0","readable_from":1}'):format(n), kept)
end

-- Opens the stream "talk"; an append of the record a is outstanding, and b is put behind it.
local function append_slowly()
  local b, k = begin()
  b:delay(true)
  lease(b, k, "a")
  b:step()
  lease(b, k, "b")
  return b, k
end

local function said(b, stream, from)
  local list = {}
  for i, r in ipairs(b:read(stream, from)) do
    list[i] = r.said:match '"holder":"(.-)"' or r.kind
  end
  return table.concat(list, " ")
end

after_each(function()
  if bench then
    local left = bench:free()
    bench = nil
    assert.equal(0, left)
  end
end)

describe("a keeper", function()
  it("begins a new stream with the record `opened`", function()
    local b = new()
    local k, last = b:open("talk", false, '"folder":"/x"')
    assert.equal(1, k)
    assert.equal(1, last)
    assert.same({}, b:read "talk")
    b:step()
    local list = b:read "talk"
    assert.equal(1, #list)
    assert.equal("opened", list[1].kind)
    assert.equal(1, list[1].number)
    assert.truthy(list[1].said:find('^{"format":1,"written_by":"%d+%.%d+%.%d+","readable_from":1,'
      .. '"stream":"conversation","folder":"/x"}$'), list[1].said)
    assert.is_nil(list[1].kept)
    b:close(k)
    k, last = b:open "talk"
    assert.equal(1, last)
    b:step()
    assert.equal(1, #b:read "talk")
    b:close(k)
  end)

  it("appends in one go what was put while jobs ran", function()
    local b, k = begin()
    for i = 1, 5 do
      lease(b, k, i, i == 3 and '"kept"' or nil)
    end
    assert.same({}, b:appends())
    b:step()
    assert.same({ "talk 1+5" }, b:appends())
    assert.equal("opened 1 2 3 4 5", said(b, "talk"))
    local list = b:read("talk", 4)
    assert.equal('"kept"', list[1].kept)
    assert.is_nil(list[2].kept)
    assert.equal(6, list[3].number)
  end)

  it("collects for the next append while one is outstanding", function()
    local b, k = append_slowly()
    lease(b, k, "c")
    b:step()
    b:step()
    assert.same({ "talk 1+1" }, b:appends())
    b:delay(false)
    b:step()
    b:step()
    assert.same({ "talk 2+2" }, b:appends())
    assert.equal("opened a b c", said(b, "talk"))
  end)

  it("tells a flush when all that was put before it is appended, in order", function()
    local b, k = begin()
    b:delay(true)
    lease(b, k, "a")
    b:flush(k, 1, 1, 11)
    b:flush(k, 1, 2, 12)
    b:step()
    lease(b, k, "b")
    b:flush(k, 1, 3, 13)
    assert.same({}, b:recorded())
    assert.is_false(b:idle())
    b:go()
    b:step()
    b:step()
    assert.same({ "1 1 11", "1 2 12" }, b:recorded())
    b:delay(false)
    b:step()
    b:step()
    assert.same({ "1 3 13" }, b:recorded())
    assert.is_true(b:idle())
  end)

  it("tells many flushes, and those without records, but not from within the flush", function()
    local b, k = begin()
    local expected = {}
    for i = 1, 12 do
      b:flush(k, 1, i, i)
      expected[i] = ("1 %d %d"):format(i, i)
    end
    assert.same({}, b:recorded())
    b:step()
    assert.same(expected, b:recorded())
    b:flush(k, 2, nil, 5)
    b:step()
    assert.same({ "2 -1 5" }, b:recorded())
    assert.same({}, b:appends())
  end)

  it("forgets a call, or a whole run", function()
    local b, k = begin()
    for run = 1, 2 do
      for call = 1, 3 do
        b:flush(k, run, call, 10 * run + call)
      end
    end
    b:forget(k, 1, 2)
    b:forget(k, 2)
    b:step()
    assert.same({ "1 1 11", "1 3 13" }, b:recorded())
  end)

  it("lets other jobs put their records into the same append, for some rounds", function()
    local b = new()
    local one, two = open(b, "one"), open(b, "two")
    lease(b, one, "a")
    lease(b, two, "b")
    for _ = 1, 10 do
      b:step()
    end
    local appends = b:appends()
    table.sort(appends)
    assert.same({ "one 1+1", "two 1+1" }, appends)
    assert.equal("opened a", said(b, "one"))
    assert.equal("opened b", said(b, "two"))
  end)

  it("can be closed by what it tells", function()
    local b, k = begin()
    lease(b, k, "a")
    b:flush(k, 1, 1, 1)
    b:flush(k, 1, 2, 2)
    b:close_on_told(k)
    b:step()
    b:close_on_told(0)
    assert.same({ "1 1 1" }, b:recorded())
    assert.equal("opened a", said(b, "talk"))
  end)

  it("appends what is outstanding when it is closed, and waits", function()
    local b, k = append_slowly()
    b:close(k)
    assert.equal("opened a b", said(b, "talk"))
    assert.is_true(b:idle())
    assert.equal(2, b:hold "talk") -- it is free
  end)

  it("settles: appends and waits, and tells flushes later", function()
    local b, k = begin()
    b:delay(true)
    lease(b, k, "a")
    b:flush(k, 1, 1, 1)
    assert.is_true(b:settle(k))
    assert.equal("opened a", said(b, "talk"))
    assert.same({}, b:recorded())
    b:step()
    assert.same({ "1 1 1" }, b:recorded())
  end)

  it("never sets times back", function()
    local b = new()
    b:wall(5000)
    local k = open(b, "talk")
    b:wall(3000)
    lease(b, k, "a")
    b:step()
    b:wall(6000)
    lease(b, k, "b")
    b:close(k)
    b:wall(10)
    k = assert(b:open "talk")
    lease(b, k, "c")
    b:step()
    local times = {}
    for i, r in ipairs(b:read "talk") do
      times[i] = r.time
    end
    assert.same({ 5000, 5000, 6000, 6000 }, times)
  end)

  it("forces to the disk what the policy of the store says", function()
    local expected = {
      process = { "talk 1+1", "talk 2+1", "talk 3+1" },
      effects = { "talk 1+1", "talk 2+1", "talk 3+1 sync" },
      full = { "talk 1+1 sync", "talk 2+1 sync", "talk 3+1 sync" },
    }
    for policy, appends in pairs(expected) do
      local b = ahtest.keeper(policy)
      local k = open(b, "talk")
      lease(b, k, "a")
      b:step()
      lease(b, k, "b")
      b:flush(k, 1, 1, 1, false)
      b:step()
      lease(b, k, "c")
      b:flush(k, 1, 1, 2, true)
      b:step()
      assert.same(appends, b:appends())
      assert.equal(0, b:free())
    end
  end)

  it("is woken by an engine that finishes on another thread", function()
    patiently(function() -- the other thread may be the faster one
      local b = new("process", false, true)
      local k = assert(b:open "talk")
      for i = 1, 3 do
        lease(b, k, i)
        b:flush(k, 1, i, i)
        local told = {}
        b:step()
        assert.is_false(b:idle())
        while #told == 0 do
          b:step(2000)
          told = b:recorded()
        end
        assert.same({ ("1 %d %d"):format(i, i) }, told)
      end
      b:close(k)
    end)
  end)

  it("wants a checkpoint after 64 turns or 1 MiB, but not more than its share", function()
    local b, k = begin()
    for _ = 1, 63 do
      b:put(k, "turn", "{}")
    end
    assert.is_false(b:wants(k))
    b:put(k, "turn", "{}")
    assert.is_true(b:wants(k))
    b:put(k, "checkpoint", ("x"):rep(400 * 1024))
    assert.is_false(b:wants(k))
    b:put(k, "answer", ("x"):rep(1024 * 1024))
    assert.is_false(b:wants(k))
    b:put(k, "answer", ("x"):rep(600 * 1024))
    assert.is_true(b:wants(k))
  end)
end)

describe("a keeper that is opened again", function()
  it("reads from the last checkpoint", function()
    local b, k = begin()
    b:checkpoint(k)
    lease(b, k, "a")
    b:checkpoint(k)
    lease(b, k, "b")
    b:close(k)
    local last
    k, last = b:open "talk"
    assert.equal(5, last)
    assert.equal(4, b:checkpoint_at(k))
    lease(b, k, "c")
    b:step()
    assert.equal("opened checkpoint a checkpoint b c", said(b, "talk"))
  end)

  it("fails where a record cannot be read, and leaves the stream to others", function()
    local b, k = begin()
    b:put(k, "turn", "{}")
    b:close(k)
    local none, code, message = b:open "talk"
    assert.is_nil(none)
    assert.equal(STORE, code)
    assert.truthy(message:find("record 2", 1, true), message)
    assert.truthy(b:hold "talk")
  end)
end)

describe("a store in a file", function()
  local folder

  before_each(function()
    local pipe = io.popen "mktemp -d"
    folder = pipe:read "l"
    pipe:close()
  end)

  after_each(function()
    os.execute("rm -r " .. folder)
  end)

  it("is opened once, whatever its path is called", function()
    local b = new("process", folder .. "/store.db")
    assert.is_true(b:is_same(folder .. "/store.db"))
    assert.is_true(b:is_same(folder .. "/./../" .. folder:match "[^/]+$" .. "/store.db"))
    assert.is_nil(b:is_same(folder .. "/other.db")) -- missing
    assert.is_nil(b:is_same "a\0b")
    bench = nil
    assert.equal(0, b:free())
  end)

  it("wakes the host when its thread has appended", function()
    local b = new("effects", folder .. "/store.db")
    local k = assert(b:open "talk")
    for i = 1, 20 do
      lease(b, k, i)
      b:flush(k, 1, i, i, i % 5 == 0)
      local done = {}
      while #done == 0 do
        b:step(1000)
        done = b:recorded()
      end
      assert.same({ ("1 %d %d"):format(i, i) }, done)
    end
    lease(b, k, "last")
    b:close(k)
    local last
    k, last = b:open "talk"
    assert.equal(22, last)
    b:close(k)
  end)
end)

describe("a keeper whose store fails", function()
  local function is_broken(b, k, words)
    local ok, code, message = b:state(k)
    assert.is_nil(ok)
    assert.equal(STORE, code)
    assert.truthy(message:find(words, 1, true), message)
    assert.truthy(message:find('"talk"', 1, true), message)
  end

  it("fails all flushes, and takes no more records", function()
    for n = 1, 3 do
      local b = ahtest.keeper()
      local k = open(b, "talk")
      b:fail(n)
      for i = 1, 3 do
        lease(b, k, i)
        b:flush(k, 1, i, i)
        b:step()
        b:step()
      end
      local told = b:recorded()
      for i = 1, 3 do
        local line = ("1 %d %d"):format(i, i)
        assert.equal(i < n and line or line .. ": -21 ", told[i]:sub(1, i < n and -1 or #line + 6))
      end
      is_broken(b, k, "the disk is full")
      assert.equal(n, #b:appends())
      local left = { "opened" }
      for i = 1, n - 1 do
        left[i + 1] = tostring(i)
      end
      assert.equal(table.concat(left, " "), said(b, "talk"))
      assert.equal(0, b:free())
    end
  end)

  it("drops what was collected meanwhile, and fails later flushes by a job", function()
    local b, k = begin()
    b:delay(true)
    b:fail(1)
    lease(b, k, "a")
    b:step()
    lease(b, k, "b")
    b:flush(k, 1, 1, 1)
    b:delay(false)
    b:step()
    b:step()
    assert.equal(1, #b:recorded())
    lease(b, k, "c")
    b:flush(k, 1, 2, 2)
    assert.same({}, b:recorded())
    b:step()
    assert.equal(1, #b:recorded())
    assert.equal("opened", said(b, "talk"))
    is_broken(b, k, "open the conversation anew")
    assert.is_nil(b:take(k, "m"))
    assert.is_nil(b:label(k, "{}"))
    assert.is_nil(b:settle(k))
    b:close(k)
    k = assert(b:open "talk")
    assert.is_true(b:state(k))
  end)

  it("is broken when an acknowledgement is lost; opened anew it has the records", function()
    local b, k = begin()
    b:lose(1)
    lease(b, k, "a")
    b:flush(k, 1, 1, 1)
    b:step()
    assert.truthy(b:recorded()[1]:find("the connection broke", 1, true))
    b:close(k)
    local last
    k, last = b:open "talk"
    assert.equal(2, last)
    lease(b, k, "b")
    b:flush(k, 1, 1, 2)
    b:step()
    assert.same({ "1 1 2" }, b:recorded())
    assert.equal("opened a b", said(b, "talk"))
  end)

  it("appends nothing after another holder has taken the stream", function()
    local b, k = begin()
    assert.is_nil(b:hold "talk")
    assert.equal(2, b:hold("talk", true))
    lease(b, k, "a")
    b:flush(k, 1, 1, 1)
    b:step()
    assert.truthy(b:recorded()[1]:find "^1 1 1: %-21 .*another holder")
    is_broken(b, k, "another holder has taken over")
    assert.equal("opened", said(b, "talk"))
  end)

  it("survives a lack of memory at every allocation", function()
    local worked
    for n = 1, 200 do
      local b = ahtest.keeper("process", true)
      b:starve(n)
      local k = b:open("talk", false, '"folder":"/x"')
      if k then
        for i = 1, 8 do
          lease(b, k, i)
          b:flush(k, 1, i, i)
        end
        b:take(k, "m")
        b:step()
        b:step()
        local told = b:recorded()
        worked = not b:starving() and #told
        assert.is_true(#told >= 4)
        for _, line in ipairs(told) do
          assert.truthy(line:find "^1 %d %d$" or line:find "out of memory", line)
        end
        local failed = not b:state(k)
        local records = b:read "talk"
        assert.is_true(#records == 9 or (failed and #records == 0), #records)
      end
      local done = b:starving()
      assert.equal(0, b:free())
      if done then
        assert.is_true(n > 10)
        return
      end
    end
    error("more than 200 allocations: " .. tostring(worked))
  end)
end)

describe("two keepers", function()
  it("cannot hold one stream, until one takes it from the other", function()
    local b = new()
    local first = open(b, "talk")
    local none, code, message = b:open "talk"
    assert.is_nil(none)
    assert.equal(CONFLICT, code)
    assert.truthy(message:find('"talk" is open in this program', 1, true), message)
    lease(b, first, "a")
    local second, last = b:open("talk", true)
    assert.equal(2, last)
    lease(b, first, "lost")
    b:flush(first, 1, 1, 1)
    lease(b, second, "b")
    b:step()
    assert.equal("opened a b", said(b, "talk"))
    assert.truthy(b:recorded()[1]:find("another agent of this program has taken it", 1, true))
    b:close(first)
    assert.is_nil(b:hold "talk") -- still held by the second
    b:close(second)
    assert.truthy(b:hold "talk")
  end)

  it("are refused names that are empty or too long", function()
    local b = new()
    for _, name in ipairs { "", ("x"):rep(129) } do
      local none, code = b:open(name)
      assert.is_nil(none)
      assert.equal(USAGE, code)
    end
    assert.truthy(b:open(("x"):rep(128)))
  end)

  it("append by themselves, and one can fail without the other", function()
    local b = new()
    local one, two = open(b, "one"), open(b, "two")
    b:hold("one", true)
    lease(b, one, "a")
    b:flush(one, 1, 1, 1)
    lease(b, two, "b")
    b:flush(two, 2, 1, 1)
    b:step()
    local told = b:recorded()
    assert.truthy(told[1]:find "^1 1 1: %-21")
    assert.equal("2 1 1", told[2])
    assert.equal("opened", said(b, "one"))
    assert.equal("opened b", said(b, "two"))
  end)
end)

describe("keepers that are bound", function()
  local SESSION, BUDGET = 1, 2
  local b, one, two, stock

  -- Each of several that have records waits for the jobs of the others for a few rounds.
  local function steps()
    for _ = 1, 8 do
      b:step()
    end
  end

  -- Three streams whose records `opened` are appended.
  local function open_all()
    b = new()
    one, two = open(b, "one"), open(b, "two")
    stock = assert(b:open("session/stock", false, nil, SESSION))
    steps()
    b:appends()
  end

  local function change(value)
    b:put(stock, "session", ('{"slices":{"S":{"keep":0,"add":[%d]}}}'):format(value))
  end

  it("append together what they have collected, once", function()
    open_all()
    lease(b, one, "a")
    change(1)
    b:bind(one, stock)
    steps()
    assert.same({ "one 1+1", "with session/stock 1+1" }, b:appends())
    change(2)
    lease(b, one, "b")
    steps()
    local list = b:appends()
    assert.equal(2, #list)
    assert.is_nil(table.concat(list, " "):find "with")
    assert.equal("opened a b", said(b, "one"))
    assert.equal(3, #b:read "session/stock")
  end)

  it("append with each that is bound to one of them, and complete the flushes of all", function()
    open_all()
    lease(b, one, "a")
    change(1)
    b:bind(one, stock)
    b:flush(one, 1, 1, 1)
    lease(b, two, "b")
    change(2)
    b:bind(two, stock)
    b:bind(two, one)
    b:flush(two, 2, 1, 1)
    steps()
    local list = b:appends()
    table.sort(list)
    assert.equal(3, #list)
    assert.matches("^with .* with ", table.concat(list, " ", 2) .. " " .. table.concat(list, " "))
    steps()
    local told = b:recorded()
    table.sort(told)
    assert.same({ "1 1 1", "2 1 1" }, told)
  end)

  it("wait for the appends of each other", function()
    open_all()
    b:delay(true)
    change(1)
    steps()
    assert.same({ "session/stock 1+1" }, b:appends())
    lease(b, one, "a")
    change(2)
    b:bind(one, stock)
    b:flush(one, 1, 1, 1)
    steps()
    assert.same({}, b:appends())
    b:go()
    steps()
    local list = b:appends()
    assert.equal(2, #list)
    assert.matches("^with ", list[2])
    b:go()
    steps()
    assert.same({ "1 1 1" }, b:recorded())
    b:delay(false)
  end)

  it("fail together", function()
    open_all()
    lease(b, one, "a")
    change(1)
    b:bind(one, stock)
    b:fail(1)
    steps()
    for _, k in ipairs { one, stock } do
      local ok, code, message = b:state(k)
      assert.is_nil(ok)
      assert.equal(STORE, code)
      assert.truthy(message:find("the disk is full", 1, true), message)
    end
    assert.truthy(b:state(two))
    assert.equal("opened", said(b, "one"))
    assert.equal(1, #b:read "session/stock")
    lease(b, two, "b") -- it needs the session that has failed
    b:bind(two, stock)
    assert.is_nil(b:state(two))
    steps()
    assert.equal("opened", said(b, "two"))
  end)

  it("append when one of them is closed", function()
    open_all()
    lease(b, one, "a")
    change(1)
    b:bind(one, stock)
    b:close(stock)
    assert.same({ "session/stock 1+1", "with one 1+1" }, b:appends())
    lease(b, one, "b")
    steps()
    assert.equal("opened a b", said(b, "one"))
  end)

  it("fail together without memory", function()
    open_all()
    lease(b, one, "a")
    change(1)
    b:bind(one, stock)
    b:starve(1)
    steps()
    b:starve(0)
    steps()
    local ok, code = b:state(stock)
    assert.is_nil(ok)
    assert.equal(NOMEM, code)
    assert.is_nil(b:state(one))
    assert.equal("opened", said(b, "one"))
    assert.equal(1, #b:read "session/stock")
  end)

  it("refuse records of another kind of stream, and a stream of another kind", function()
    open_all()
    lease(b, stock, "x")
    b:put(stock, "queued", '{"entry":{"type":"note","text":"x"}}')
    b:close(stock)
    local none, code, message = b:open("session/stock", false, nil, SESSION)
    assert.is_nil(none)
    assert.equal(STORE, code)
    assert.matches("the stream of a session has no such records", message)
    b:close(one)
    none, code, message = b:open("one", false, nil, BUDGET)
    assert.is_nil(none)
    assert.equal(STORE, code)
    assert.matches("the stream is no budget", message)
  end)
end)

describe("an inbox", function()
  it("keeps the first message of a key, and knows it when it is taken", function()
    local b = new()
    local none, code = b:post("talk", "m1", "send", "{}")
    assert.is_nil(none)
    assert.equal(USAGE, code)
    local k = open(b, "talk")
    assert.is_true(b:post("talk", "m1", "send", '{"text":"a"}'))
    assert.is_true(b:post("talk", "m2", "cancel", "{}"))
    none, code = b:post("talk", "m1", "send", '{"text":"b"}')
    assert.is_nil(none)
    assert.equal(CONFLICT, code)
    assert.same({ 'm1 send {"text":"a"}', "m2 cancel {}" }, b:inbox "talk")
    b:take(k, "m1")
    b:step()
    assert.equal(2, #b:inbox "talk") -- only with the next append
    lease(b, k, "a")
    b:step()
    assert.same({ "talk 1+1 takes 1" }, b:appends())
    assert.same({ "m2 cancel {}" }, b:inbox "talk")
    none, code = b:post("talk", "m1", "send", "{}")
    assert.is_nil(none)
    assert.equal(CONFLICT, code)
    assert.equal(1, b:list ""[1].messages)
  end)

  it("keeps its message when the append fails", function()
    local b, k = begin()
    b:post("talk", "m", "send", "{}")
    b:fail(1)
    b:take(k, "m")
    lease(b, k, "a")
    b:step()
    assert.equal(1, #b:inbox "talk")
  end)

  it("is taken by closing, too", function()
    local b, k = begin()
    b:post("talk", "m", "send", "{}")
    b:take(k, "m")
    b:close(k)
    assert.same({}, b:inbox "talk")
  end)

  it("is watched: after own posts at once, else every 250 ms", function()
    local b = new()
    open(b, "talk")
    b:post("talk", "m1", "send", "{}")
    b:step()
    assert.equal(0, b:seen())
    b:watch()
    assert.is_true(b:idle()) -- the timer keeps no script from its end
    b:clock(250)
    b:step()
    b:step()
    assert.equal(1, b:seen())
    b:clock(500)
    b:step()
    b:step()
    assert.equal(1, b:seen()) -- no news
    b:post("talk", "m2", "send", "{}")
    assert.equal(1, b:seen())
    b:step()
    assert.equal(2, b:seen())
    b:unwatch()
    b:post("talk", "m3", "send", "{}")
    b:clock(1000)
    b:step()
    b:step()
    assert.equal(2, b:seen())
  end)
end)

describe("the list of streams", function()
  it("has the one changed last first, with labels, by prefix", function()
    local b = new()
    local names = function(...)
      local list = {}
      for i, s in ipairs(b:list(...)) do
        list[i] = s.name .. (s.label or "")
      end
      return table.concat(list, " ")
    end
    local a, ab, c = open(b, "a"), open(b, "ab"), open(b, "c")
    assert.equal("c ab a", names "")
    lease(b, a, 1)
    b:step()
    assert.equal("a c ab", names "")
    assert.equal("a ab", names "a")
    assert.is_true(b:label(ab, '{"waiting":1}'))
    assert.is_true(b:label(c, "{}"))
    assert.equal('c{} ab{"waiting":1}', names("", true))
    assert.is_true(b:label(c, nil))
    assert.equal('ab{"waiting":1}', names("", true))
    assert.equal(2, b:list "a"[1].last)
  end)
end)

describe("the costs of a keeper", function()
  -- The limits only find mistakes of scale.
  it("are small when it is idle", function()
    local b = new("process", true)
    local before = b:live()
    local k = assert(b:open "talk")
    lease(b, k, ("x"):rep(3000))
    for i = 1, 10 do
      b:flush(k, 1, i, i)
    end
    b:step()
    b:drop_fold(k)
    local all = b:live() - before
    assert.is_true(all < 2048 + 3300, all) -- the record is in the store
  end)

  it("do not grow with the turns", function()
    local b = new("process", true)
    local k = assert(b:open "talk")
    assert.is_true(b:cost(k, 200, 500) < 1000)
  end)
end)
