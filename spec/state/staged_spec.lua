-- Changes that a call staged: written down, put back in another world, and committed there, they
-- give the same as committing at once. And files of the machine: after a process is killed at any
-- point of a commit, all of them are old or all are new, and the record says which.
-- STAGED_ROUNDS is the number of random calls (default 80), STAGED_MUTANTS of damaged records
-- (default 2000).
local ahtest = require "ahtest"
local random = dofile "spec/support/random.lua"

local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local ROUNDS = math.tointeger(tonumber(os.getenv "STAGED_ROUNDS" or 80))
local MUTANTS = math.tointeger(tonumber(os.getenv "STAGED_MUTANTS" or 2000))

local VALUES = { '1', '"a\\u0000b"', '{"a":[1,2.5,null]}', '"Größe"', 'true', '[]' }
local TEXTS = { "one\n", "two\ntwo\n", "", "\0\xff\xfe bytes", ("long line\n"):rep(50), "Größe\n" }
local PATHS = { "a", "b", "d/a", "d/b", "d/e/f", "g" }

-- -- random changes ----------------------------------------------------------------------------

local OPERATIONS = {
  function(n) return { "event", "Add", VALUES[n(#VALUES)] } end,
  function() return { "event", "Add" } end,
  function(n) return { "append", "Item", VALUES[n(#VALUES)] } end,
  function(n) return { "append", "Kept", VALUES[n(#VALUES)] } end,
  function(n) return { "set", "Item", VALUES[n(#VALUES)], VALUES[n(#VALUES)] } end,
  function() return { "set", "Item" } end,
  function(n) return { "note", "note " .. n(9) } end,
  function(n) return { "change", ({ "note", "show", "hide", "pick", "unpick", "remove" })[n(6)],
    "text" .. n(3) } end,
  function(n)
    return { "change", "prompt", "Be brief.", n(2) == 1 and '{"strategy":"x"}' or nil }
  end,
  function(n) return { "change", "state", ('{"step":%d}'):format(n(9)) } end,
  function() return { "change", "settings", '{"type":"settings","model":"m","options":{}}' } end,
  function(n)
    return { "tool", n(2) == 1 and "add" or "replace", n(2) == 1 and "known" or "new" }
  end,
}

local function file_operation(n)
  local fs, path = n(2) == 1 and "notes" or "work", PATHS[n(#PATHS)]
  return ({
    function() return { "file", fs, "write", path, TEXTS[n(#TEXTS)] } end,
    function() return { "file", fs, "write", path, TEXTS[n(#TEXTS)] } end,
    function() return { "file", fs, "append", path, TEXTS[n(#TEXTS)] } end,
    function() return { "file", fs, "edit_all", path, "o", "0" } end,
    function() return { "file", fs, "edit", path, "one", "uno" } end,
    function() return { "file", fs, "delete", n(2) == 1 and path or "d" } end,
    function() return { "file", fs, "rename", path, PATHS[n(#PATHS)] } end,
    function() return { "file", fs, "rename", "d", "h" } end,
    function() return { "file", fs, "mkdir", n(2) == 1 and "d" or "empty" } end,
    function() return { "file", fs, "read", path } end,
  })[n(10)]()
end

local function random_call(n)
  local call = {}
  for i = 1, n(8) do
    call[i] = n(2) == 1 and file_operation(n) or OPERATIONS[n(#OPERATIONS)](n)
  end
  return call
end

-- Returns how many of the operations were done.
local function perform(w, call)
  local done = 0
  for _, o in ipairs(call) do
    done = done + (w[o[1]](w, table.unpack(o, 2, #o)) and 1 or 0)
  end
  return done
end

local FIRST = {
  { "event", "Add", '"begun"' }, { "file", "notes", "write", "a", "one two\n" },
  { "file", "notes", "write", "d/a", "one\n" }, { "file", "work", "write", "a", "one two\n" },
  { "file", "work", "write", "d/e/f", "\0\xff one\n" }, { "file", "work", "mkdir", "empty" },
}

describe("what a call staged", function()
  local dirs, worlds

  before_each(function() dirs, worlds = {}, {} end)
  after_each(function()
    for _, w in ipairs(worlds) do
      w:close()
    end
    for _, dir in ipairs(dirs) do
      os.execute(("rm -rf '%s'"):format(dir))
    end
  end)

  local function folder()
    local pipe <close> = assert(io.popen("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d"))
    dirs[#dirs + 1] = assert(pipe:read("l"))
    return dirs[#dirs]
  end

  local function world(dir)
    worlds[#worlds + 1] = ahtest.staged_world(dir)
    return worlds[#worlds]
  end

  -- Returns a world in which the calls were committed.
  local function world_after(calls)
    local w = world(folder())
    for _, call in ipairs(calls) do
      perform(w, call)
      assert(w:commit())
    end
    return w
  end

  local function close_all()
    for _, w in ipairs(worlds) do
      assert.equal(0, w:close())
    end
    for _, dir in ipairs(dirs) do
      os.execute(("rm -rf '%s'"):format(dir))
    end
    dirs, worlds = {}, {}
  end

  it("is committed in another process as in its own", function()
    local done, files = 0, 0
    for seed = 1, ROUNDS do
      local call = random_call(random(seed))
      local here, there = world_after { FIRST }, world_after { FIRST }
      done = done + perform(here, call)
      local text = assert(here:print())
      files = files + (text:find('"files"', 1, true) and 1 or 0)
      -- A log has its changes at once, and is recorded by itself.
      for _, o in ipairs(call) do
        if o[1] == "event" and o[3] or o[1] == "append" and o[2] == "Kept" then
          assert(there:append("Kept", o[3]))
        end
      end
      local ok, status, why = there:restage(text)
      assert(ok, ("seed %d: %s: %s\n%s"):format(seed, status, why, text))
      assert.equal(text, there:print())
      assert(here:commit())
      assert(there:commit())
      assert.equal(here:state(), there:state(), "seed " .. seed)
      close_all()
    end
    assert.is_true(done > ROUNDS and files > ROUNDS / 4, done .. " " .. files)
  end)

  it("has the shape that the page says", function()
    local w = world_after { { { "file", "notes", "write", "a", "one" } } }
    perform(w, { { "event", "Add", "1" }, { "append", "Item", "2" }, { "set", "Total", "7" },
      { "note", "Done." }, { "file", "notes", "append", "a", " two" },
      { "file", "notes", "write", "b", "\xff" }, { "change", "note", "Look." },
      { "change", "remove", "old" } })
    assert.equal('{"entries":[{"type":"note","text":"Done."}],'
      .. '"session":[{"event":"Add","value":1},{"append":"Item","value":2},'
      .. '{"set":"Total","values":[7]}],'
      .. '"files":[{"name":"notes","changes":['
      .. '{"act":"put","path":"a","was":{"kind":"file","hash":'
      .. '"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"},'
      .. '"content":"one two","ops":[{"with":" two"}]},'
      .. '{"act":"put","path":"b","was":{"kind":"absent"},"content":{"base64":"/w=="}}]}],'
      .. '"changes":[{"kind":"note","text":"Look."},{"kind":"remove","text":"old"}]}',
      (w:print():gsub('"time":%d+,', ""):gsub(',"time":%d+', "")))
    assert.equal("{}", world_after {}:print())
    local reader = world_after { FIRST }
    assert.equal(2, perform(reader, { { "file", "work", "read", "a" },
      { "file", "notes", "read", "a" } }))
    assert.equal("{}", reader:print())
    assert.is_nil(reader:prepare())
  end)

  it("runs the reducers on the slices of the moment of its commit", function()
    local here, there = world_after {}, world_after {}
    perform(here, { { "event", "Add", "1" } })
    perform(there, { { "event", "Add", "8" }, { "event", "Add", "9" } })
    assert(there:commit())
    assert(there:restage(here:print()))
    assert(there:commit())
    assert.truthy(there:state():find('"Item":[8,9,1],"Kept":[8,9],"Total":[3]', 1, true),
      there:state())
  end)

  for _, fs in ipairs { "notes", "work" } do
    describe("on files of " .. fs, function()
      local function restaged(call, meanwhile)
        local first = { { "file", fs, "write", "a", "one two\n" },
          { "file", fs, "write", "b", "x" } }
        local here, there = world_after { first }, world_after { first, meanwhile }
        perform(here, call)
        assert(there:restage(here:print()))
        local ok, _, why = there:commit()
        return ok, why, there:state()
      end

      it("conflicts with a file that was read, and has changed since", function()
        local call = { { "file", fs, "read", "a" }, { "file", fs, "write", "a", "mine" } }
        local ok, why = restaged(call, { { "file", fs, "write", "a", "theirs" } })
        assert.is_nil(ok)
        assert.truthy(why:find("'a' was changed meanwhile", 1, true), why)
        assert.is_true((restaged(call, { { "file", fs, "write", "b", "theirs" } })))
        assert.is_true((restaged(call, { { "file", fs, "write", "a", "theirs" },
          { "file", fs, "write", "a", "one two\n" } })))
      end)

      it("repeats an edit on the present content", function()
        local ok, _, state = restaged({ { "file", fs, "edit", "a", "two", "three" } },
          { { "file", fs, "write", "a", "zero two\n" } })
        assert.is_true(ok)
        assert.truthy(state:find("a:zero three\n", 1, true), state)
      end)

      it("writes over what it has not read", function()
        local ok, _, state = restaged({ { "file", fs, "write", "a", "mine" } },
          { { "file", fs, "write", "a", "theirs" } })
        assert.is_true(ok)
        assert.truthy(state:find("a:mine", 1, true), state)
      end)
    end)
  end

  it("finds a tool by name, and else declares it as stale", function()
    local here, there = world_after {}, world_after {}
    perform(here, { { "tool", "add", "known" }, { "tool", "replace", "new" } })
    assert(there:restage(here:print()))
    assert.equal(here:print(), there:print())
  end)

  it("is refused where it does not fit, with words", function()
    local cases = {
      { '{"lost":true}', "conflict", "they are lost" },
      { '{"session":[{"event":"Gone"}]}', "conflict", "'Gone' of the session" },
      { '{"session":[{"append":"Kept","value":1}]}', "conflict", "'Kept'" },
      { '{"session":[{"append":"Item"}]}', "store", "`value`" },
      { '{"session":[{"of":"other","event":"Add"}]}', "conflict", "'other'" },
      { '{"session":{}}', "store", "`session`" },
      { '{"files":[{"name":"none","changes":[]}]}', "conflict", "'none'" },
      { '{"files":[{"name":"notes"}]}', "store", "an item of `files`" },
      { '{"entities":[{"class":"x"}]}', "conflict", "no entities" },
      { '{"entries":[{"type":"note"}]}', "store", "`entries`" },
      { '{"entries":[{"type":"assistant","content":[]}]}', "store", "`entries`" },
      { '{"changes":[{"kind":"add","tool":{"name":"x"}}]}', "store", "`tool`" },
      { '{"changes":[{"kind":"wish","text":"x"}]}', "store", "`kind`" },
      { '{"changes":[{"kind":"note","text":1}]}', "store", "`text`" },
      { '{"changes":[{"kind":"prompt","text":"x","by":1}]}', "store", "`by`" },
      { '[]', "store", "the object" }, { '{', "store", "JSON" }, { "", "store", "JSON" },
    }
    for _, change in ipairs {
      { '{"act":"seen","path":"a","was":{"kind":"absent"}}', "store", "`act`" },
      { '{"act":"put","path":"../a","was":{"kind":"absent"},"content":""}', "conflict", "a" },
      { '{"act":"put","path":"a/","was":{"kind":"absent"},"content":""}', "store", "`path`" },
      { '{"act":"put","path":"a","was":{"kind":"door"},"content":""}', "store", "`was`" },
      { '{"act":"put","path":"a","was":{"kind":"absent"}}', "store", "a content" },
      { '{"act":"put","path":"a","was":{"kind":"absent"},"content":{"base64":"!"}}', "store",
        "a content" },
      { '{"act":"put","path":"a","was":{"kind":"absent"},"content":"","mode":-1}', "store",
        "`mode`" },
      { '{"act":"put","path":"a","was":{"kind":"absent"},"content":"",'
        .. '"ops":[{"old":"","with":"x"}]}', "store", "a text to replace" },
      { '{"act":"put","path":"b","was":{"kind":"absent"},"content":""},'
        .. '{"act":"put","path":"a","was":{"kind":"absent"},"content":""}', "store", "`path`" },
      { '{"act":"put","path":"a","was":{"kind":"absent"},"content":""},'
        .. '{"act":"put","path":"a/b","was":{"kind":"absent"},"content":""}', "store", "`path`" },
    } do
      cases[#cases + 1] = { ('{"files":[{"name":"notes","changes":[%s]}]}'):format(change[1]),
        change[2], change[3] }
    end
    for _, case in ipairs(cases) do
      local ok, status, why = world_after {}:restage(case[1])
      assert.is_nil(ok, case[1])
      assert.equal(case[2], status, case[1] .. ": " .. why)
      assert.truthy(why:find(case[3], 1, true), case[1] .. ": " .. why)
    end
  end)

  -- -- hostile records, lack of memory ----------------------------------------------------------

  local FULL = {
    { "event", "Add", "1" }, { "append", "Item", "2" }, { "set", "Item", "7", "8" },
    { "note", "Done." }, { "file", "notes", "append", "a", " two" },
    { "file", "notes", "rename", "d", "h" }, { "file", "work", "read", "a" },
    { "file", "work", "write", "a", "\xff" }, { "file", "work", "edit", "d/e/f", "one", "uno" },
    { "file", "work", "delete", "empty" }, { "change", "note", "Look." },
    { "change", "state", '{"step":1}' }, { "change", "prompt", "Brief.", '{"strategy":"x"}' },
    { "tool", "add", "known" }, { "tool", "replace", "new" },
  }

  local function full_text()
    local w = world_after { FIRST }
    assert.equal(#FULL, perform(w, FULL))
    return w:print()
  end

  local PIECES = { '"', "{", "}", "[", "]", ":", ",", "null", "true", "-1", "1e999", '""', '"a/b"',
    '"\\u0000"', '"folder"', '"file"', '"put"', '"remove"', "{}", "[]", '"d"', '"../x"', "\xff" }

  -- Replaces a value, cuts out a part, or writes a piece somewhere.
  local function mutant(text, n)
    for _ = 1, n(3) do
      local at = n(#text)
      local to = n(3) == 1 and text:find("[,}%]]", at) or math.min(#text, at + n(6) - 1)
      text = text:sub(1, at - 1) .. (n(4) == 1 and "" or PIECES[n(#PIECES)])
        .. text:sub((n(2) == 1 and at or to or at) + (n(2) == 1 and 0 or 1))
    end
    return text
  end

  -- Replaces one whole value; the text stays JSON.
  local function sound_mutant(text, n)
    local places = {}
    for from, to in text:gmatch '():"[^"\\]*"()' do
      places[#places + 1] = { from + 1, to }
    end
    for from, to in text:gmatch '():%d+()' do
      places[#places + 1] = { from + 1, to }
    end
    local VALUE = { "null", "true", "-1", "1e999", '""', '"a"', '"d"', '"put"', '"remove"',
      '"folder"', "{}", "[]", '"../x"', '"\\u0000"' }
    local place = places[n(#places)]
    return text:sub(1, place[1] - 1) .. VALUE[n(#VALUE)] .. text:sub(place[2])
  end

  it("is refused or put back, and never more, if it is damaged", function()
    local text, n = full_text(), random(7)
    local refused, taken = 0, 0
    local w = world_after { FIRST }
    for i = 1, MUTANTS do
      local ok, status, why = w:restage((i % 2 == 1 and mutant or sound_mutant)(text, n))
      if ok then
        taken = taken + 1
      else
        refused = refused + 1
        assert.truthy(status == "store" or status == "conflict", status)
        assert.is_true(#why > 0)
      end
      w:commit()
    end
    assert.is_true(refused > MUTANTS / 3 and taken > 5, refused .. " " .. taken)
    close_all()
  end)

  it("needs memory, and leaves nothing behind without it", function()
    local text = full_text()
    close_all()
    local points = 0
    for n = 1, math.huge do
      local w = world(folder())
      perform(w, FIRST)
      assert(w:commit())
      w:fail(n)
      local ok, status, why = w:restage(text)
      w:fail(0)
      assert.is_true(ok or why == "out of memory", ("%d: %s: %s"):format(n, status, why))
      close_all() -- asserts that all blocks are freed
      points = n
      if ok then
        break
      end
    end
    assert.is_true(points > 100, points)
  end)

  it("is written down, or nil without memory", function()
    local points = 0
    local w = world_after { FIRST }
    perform(w, FULL)
    local text = w:print()
    for n = 1, math.huge do
      w:fail(n)
      local now = w:print()
      w:fail(0)
      assert.is_true(now == nil or now == text)
      points = n
      if now then
        break
      end
    end
    assert.is_true(points > 5, points)
    close_all()
  end)

  -- -- files of the machine -----------------------------------------------------------------------

  it("says which files of the machine are about to change", function()
    local w = world_after { FIRST }
    perform(w, { { "file", "work", "write", "a", "x" }, { "file", "work", "write", "new/b", "y" },
      { "file", "work", "delete", "d" }, { "file", "notes", "write", "n", "z" } })
    local files = w:prepare()
    local root = files:match '"root":"([^"]*)"'
    assert.truthy(root:find(dirs[1], 1, true))
    assert.equal('[{"root":R,"path":"a",'
      .. '"before":"2dbb4a503f1515636b6a54e7f5b1a8ccfddcb62f0571c8b57a2879c360d00346",'
      .. '"after":"2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"},'
      .. '{"root":R,"path":"d","before":"folder"},{"root":R,"path":"d/e","before":"folder"},'
      .. '{"root":R,"path":"d/e/f",'
      .. '"before":"H"},'
      .. '{"root":R,"path":"new","after":"folder"},'
      .. '{"root":R,"path":"new/b",'
      .. '"after":"a1fce4363854ff888cff4b8e7875d600c2682390412a8cf79b37d0b11148b0fa"}]',
      (files:gsub('"root":"[^"]*"', '"root":R'):gsub('("d/e/f","before":")%x+', "%1H")))
    assert.equal("not_applied", (w:settled(files)))
    assert(w:commit())
    assert.equal("applied", (w:settled(files)))
    assert.equal(6, select(3, w:settled(files)))
    perform(w, { { "file", "work", "write", "new/b", "other" } })
    assert(w:commit())
    local fate, path, _, said = w:settled(files)
    assert.same({ "mixed", "new/b" }, { fate, path })
    assert.truthy(said:find("It is not known", 1, true) and said:find("'new/b'", 1, true), said)
  end)

  it("keeps what these files were", function()
    local w = world_after { FIRST }
    local function write(path, text)
      local file = assert(io.open(dirs[1] .. "/" .. path, "w"))
      file:write(text)
      file:close()
    end
    write("large", ("x"):rep((8 << 20) + 1))
    assert(os.execute("chmod 640 " .. dirs[1] .. "/a"))
    perform(w, { { "file", "work", "edit", "a", "one", "uno" }, { "file", "work", "delete", "d" },
      { "file", "work", "write", "large", "" }, { "file", "work", "write", "new", "" } })
    write("a", "more, one two\n")
    local _, kept = w:prepare()
    assert.equal('[{"mode":416,"content":"more, one two\\n","after":"more, uno two\\n"},'
      .. '{"mode":M},{"mode":M},{"mode":M,"content":{"base64":"AP8gb25lCg=="}},'
      .. '{"mode":M,"large":true},{}]', (kept:gsub('"mode":(%d+)', function(m)
        return m ~= "416" and '"mode":M' or nil
      end)))
  end)

  it("ends with `applied`, or with a result that says what is known", function()
    local w = world_after { FIRST }
    perform(w, { { "file", "work", "write", "a", "x" }, { "file", "work", "write", "g", "y" } })
    local files = w:prepare()
    local settled = '{"call":2,"result":{"type":"tool_result","id":"c1","name":"t",'
      .. '"content":"Done.","success":true},"files":' .. files .. "}"
    local function failed(words)
      local kind, said = w:ended(settled)
      assert.equal("apply_failed", kind)
      assert.equal('{"call":2,"result":{"type":"tool_result","id":"c1","name":"t","content":"'
        .. words .. '","success":false}}', (said:gsub(',"time":%d+', "")))
    end
    failed "The files of this call were not changed: the program ended before they were in place."
    assert.same({ "apply_failed", '{"call":2}' }, { w:ended(settled, "{}") })
    assert(w:commit())
    assert.same({ "applied", '{"call":2}' }, { w:ended(settled) })
    assert.same({ "applied", '{"call":2}' }, { w:ended(settled, "{}") })
    assert.same({ "apply_failed", '{"call":2}' }, { w:ended(settled, '{"changes":[]}') })
    perform(w, { { "file", "work", "write", "g", "other" } })
    assert(w:commit())
    failed("It is not known whether the files of this call were changed: the program ended, and "
      .. "'g' is neither as before nor as intended: read the files again.")
    settled = settled:gsub('"root":"', '"root":"/elsewhere')
    failed("It is not known whether the files of this call were changed: the program ended, and "
      .. "not all of their folders are open now: read the files again.")
    for _, damaged in ipairs { "{}", "[]", '{"call":1,"result":{}}', '{"call":1,"result":'
      .. '{"id":"a","name":"b"},"files":[1]}' } do
      assert.equal("store", select(2, w:ended(damaged)), damaged)
    end
  end)

  it("says nothing of files in memory", function()
    local w = world_after { FIRST }
    perform(w, { { "file", "notes", "write", "n", "z" } })
    assert.is_nil(w:prepare())
    assert(w:commit())
  end)

  it("refuses a damaged list of files", function()
    local w = world_after { FIRST }
    perform(w, { { "file", "work", "write", "a", "x" } })
    local files, n, refused = w:prepare(), random(11), 0
    assert(w:commit())
    for _ = 1, 500 do
      local fate, status = w:settled(mutant(files, n))
      refused = refused + (fate and 0 or 1)
      assert.truthy(fate or status == "store" or status == "tool_validation", status)
    end
    assert.is_true(refused > 100, refused)
    for _, damaged in ipairs { "{}", "[1]", '[{"root":"x"}]', '[{"root":1,"path":"a"}]',
      (files:gsub('"path":"a"', '"path":"../a"')) } do
      assert.equal("store", select(2, w:settled(damaged)), damaged)
    end
    assert.same({ "applied", "", 0, "" }, { w:settled "[]" })
  end)

  for _, kernel in ipairs { "new", "old" } do
    it("is in three files or in none, whenever the process is killed: kernel " .. kernel, function()
      local command = "lua5.4 spec/support/fs_child.lua '%s' settles '%s' %s 2>&1"
      local pipe <close> = assert(io.popen(command:format(BUILD, folder(), kernel)))
      local said = pipe:read("a")
      assert.truthy(said:find("^settles\t%d+\t%d+\t%d+\n$"), said)
    end)
  end
end)
