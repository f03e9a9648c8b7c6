-- Changes as data: of calls, overlays, sessions, and of turns of stored conversations, which are
-- compared with the files, slices and entities as they were. CHANGES_TURNS is the number of random
-- turns (default 60).
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local random = dofile "spec/support/random.lua"
local streams = require "support.streams"

local TURNS = math.tointeger(tonumber(os.getenv "CHANGES_TURNS" or 60))

local folder

before_each(function()
  folder = command.folder()
end)

after_each(command.tidy)

local function hash(text)
  return (ahtest.sha256(text):gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end

local function put(path, text)
  local f = assert(io.open(folder .. "/" .. path, "wb"))
  f:write(text)
  f:close()
end

-- Runs the handler in a call, once for each further value: the arguments.
local function run(fields, handler, ...)
  local turns = {}
  for i = 1, select("#", ...) do
    turns[2 * i - 1] = { calls = { { name = "work", arguments = { n = (select(i, ...)) } } } }
    turns[2 * i] = "Done."
  end
  fields.model = ah.scripted(turns)
  fields.tools = { ah.tool { name = "work", description = "Works.", params = { n = "integer" },
    handler = handler } }
  local agent <close> = assert(ah.agent(fields))
  for _ = 1, select("#", ...) do
    assert(agent:run "Work.")
  end
end

local Item = ah.type { name = "Item", fields = { n = "integer" } }

local function side(text)
  return { type = "file", hash = hash(text), size = #text }
end

describe("the changes of a call", function()
  it("are files, slices and entities, in this order", function()
    put("a", "one\ntwo\n")
    put("b", "\0")
    local fs <close> = assert(ah.filesystem { root = folder })
    local notes = ah.filesystem { memory = true, name = "notes" }
    local counter = { n = 1, deep = { x = 1 } }
    function counter:snapshot() return { n = self.n, same = 1 } end
    function counter:restore(was) self.n = was.n end
    local in_handler, in_policy, before
    run({ session = ah.session { types = { Item } }, resources = { fs = fs, notes = notes },
      policies = { { before = function(call) before = call:changes() end,
        after = function(call) in_policy = call:changes() end } } },
      function(_, ctx)
        ctx:enlist(counter, "counter")
        ctx.session:dispatch(Item { n = 7 })
        counter.n = 2
        fs:edit("a", "two", "2")
        fs:write("b", "\1")
        fs:mkdir("d")
        fs:write("same", "")
        fs:delete("same")
        notes:write("n", "x")
        in_handler = ctx:changes()
      end, 1)
    assert.same({}, before)
    assert.same(in_handler, in_policy)
    local root = in_handler[1].root
    assert.same({
      { kind = "file", path = "a", root = root, op = "change", before = side "one\ntwo\n",
        after = side "one\n2\n", diff = "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" },
      { kind = "file", path = "b", root = root, op = "change", before = side "\0",
        after = side "\1", binary = true },
      { kind = "file", path = "d", root = root, op = "add", after = { type = "folder" } },
      { kind = "file", path = "n", filesystem = "notes", op = "add", after = side "x",
        diff = "--- /dev/null\n+++ b/n\n@@ -0,0 +1,1 @@\n+x\n\\ No newline at end of file\n" },
      { kind = "slice", name = "Item", kept = 0, removed = {}, added = { { n = 7 } } },
      { kind = "entity", class = "agenthost/resource", id = "counter",
        fields = { n = { before = 1, after = 2 } } } }, in_handler)
  end)

  it("have the fields of an entity, as it was", function()
    local Light = ah.entity { name = "Light" }
    local lamp = Light { id = "lamp", on = false, colors = { "red" }, run = print }
    local seen
    run({}, function(_, ctx)
      ctx:enlist(lamp)
      lamp.on, lamp.colors[1], lamp.extra, lamp.run = true, "blue", 5, nil
      seen = ctx:changes()
    end, 1)
    assert.same({ { kind = "entity", class = "Light", id = "lamp", fields = {
      on = { before = false, after = true }, extra = { after = 5 },
      colors = { before = { "red" }, after = { "blue" } } } } }, seen)
  end)

  it("have only the fields of an entity that its class names", function()
    local Light = ah.entity { name = "Light", state = { "on" } }
    local lamp = Light { id = "lamp", on = false, color = "red", size = 1 }
    local seen
    run({}, function(_, ctx)
      ctx:enlist(lamp)
      lamp.on, lamp.color = true, "blue"
      seen = ctx:changes()
    end, 1)
    assert.same({ { kind = "entity", class = "Light", id = "lamp",
      fields = { on = { before = false, after = true } } } }, seen)
  end)

  it("are for policies, not for strategies, and only while it lasts", function()
    local kept, why
    run({ strategies = { function(m)
      local ok, err = pcall(m.changes, m)
      why = not ok and err.message
    end } }, function(_, ctx) kept = ctx end, 1)
    assert.matches("only policies", why)
    assert.is_false(pcall(kept.changes, kept))
  end)
end)

describe("the changes of an overlay", function()
  it("are what it holds", function()
    local fs = ah.filesystem { files = { a = "1\n", ["d/x"] = "2\n" } }
    local o = fs:overlay()
    assert.same({}, o:changes())
    o:rename("d", "e")
    o:write("a", "1\n")
    local list = o:changes()
    local got = {}
    for i, change in ipairs(list) do
      got[i] = change.op .. " " .. change.path
    end
    assert.same({ "remove d", "remove d/x", "add e", "add e/x" }, got)
    assert(o:commit())
    assert.same({}, o:changes())
    assert.matches("an overlay is expected", select(2, pcall(fs.changes, fs)))
  end)

  it("include in a call what was there before, and not what is in place", function()
    local fs = ah.filesystem { files = { a = "1\n", b = "2\n" } }
    local o = fs:overlay()
    o:write("a", "A\n")
    local seen, of_call
    run({}, function(_, ctx)
      o:write("b", "B\n")
      seen, of_call = o:changes(), ctx:changes()
    end, 1)
    assert.same({ "a", "b" }, { seen[1].path, seen[2].path })
    assert.same(side "1\n", seen[1].before)
    assert.same({ 1, "b" }, { #of_call, of_call[1].path })
  end)
end)

describe("the changes of a session", function()
  it("are those of the call, or since a snapshot", function()
    local session = ah.session { types = { Item } }
    session[Item]:replace { Item { n = 1 }, Item { n = 2 } }
    local snapshot = session:snapshot()
    assert.same({}, session:changes())
    session[Item]:replace { Item { n = 1 }, Item { n = 3 }, Item { n = 4 } }
    assert.same({}, session:changes())
    assert.same({ { kind = "slice", name = "Item", kept = 1, removed = { { n = 2 } },
      added = { { n = 3 }, { n = 4 } } } }, session:changes(snapshot))
    local seen
    run({ session = session }, function() session[Item]:clear() seen = session:changes() end, 1)
    assert.same({ { 0, 3, 0 } }, { { seen[1].kept, #seen[1].removed, #seen[1].added } })
    assert.matches("no snapshot", select(2, pcall(session.changes, session, "{}")).message)
  end)
end)

-- -- of a store --------------------------------------------------------------------------------

-- Returns all files below the folder, by path.
local function contents()
  local all = {}
  local pipe = assert(io.popen("cd " .. folder .. " && find . -type f -printf '%P\n'"))
  for path in pipe:lines() do
    local f = assert(io.open(folder .. "/" .. path, "rb"))
    all[path] = f:read "a"
    f:close()
  end
  pipe:close()
  return all
end

-- Checks that the list leads from one state to the other.
local function check(list, before, after)
  local paths, slice = {}, nil
  for _, c in ipairs(list) do
    if c.kind == "slice" then
      slice = c
    else
      local was, is = before.files[c.path], after.files[c.path]
      assert.same(was and side(was), c.before and c.before.type == "file" and c.before or nil)
      assert.same(is and side(is), c.after and c.after.type == "file" and c.after or nil)
      local diff = ahtest.diff(was or "", is or "", 1 << 20)
      local text = not (was or ""):find "\0" and not (is or ""):find "\0"
      if (was or is) and text then
        assert.equal(diff, (c.diff:gsub("^[^\n]*\n[^\n]*\n", "")))
      else
        assert.equal((was or is) and true, c.binary)
      end
      paths[c.path] = true
    end
  end
  for path, text in pairs(before.files) do
    assert.equal(text ~= after.files[path], paths[path] or false, path)
  end
  for path in pairs(after.files) do
    assert(before.files[path] or paths[path], path)
  end
  local kept = 0
  while before.items[kept + 1] and before.items[kept + 1] == after.items[kept + 1] do
    kept = kept + 1
  end
  if slice then
    assert.same({ kept, #before.items - kept, #after.items - kept },
      { slice.kept, #slice.removed, #slice.added })
  else
    assert(kept == #before.items and kept == #after.items)
  end
end

describe("the changes of a turn", function()
  it("lead from each turn to each later one, for random turns", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local fs <close> = assert(ah.filesystem { root = folder })
    local session = ah.session { types = { Item } }
    local n, states = random(23), {}
    local function state()
      local items = {}
      for i, item in ipairs(session[Item]:all()) do items[i] = item.n end
      return { files = contents(), items = items }
    end
    local paths = { "a", "b", "d/a", "d/b", "d/e/f" }
    local texts = { "one\n", "two\ntwo\n", "", "a\0b", ("line\n"):rep(30), "Größe" }
    local function change()
      local path, text = paths[n(#paths)], texts[n(#texts)]
      return ({ function() fs:write(path, text) end, function() fs:write(path, text) end,
        function() fs:append(path, text) end, function() fs:delete(path) end,
        function() fs:delete("d", { recursive = true }) end,
        function() fs:rename(path, paths[n(#paths)], { replace = true }) end,
        function() fs:edit(path, "two", "2", { all = true }) end,
        function() session[Item]:append(Item { n = n(3) }) end,
        function() session[Item]:replace { Item { n = 1 } } end })[n(9)]()
    end
    local turns = {}
    local function call(i)
      return { name = "work", arguments = { n = i } }
    end
    for i = 1, TURNS do
      turns[i] = { calls = { call(i), n(2) == 1 and call(-i) or nil } }
    end
    turns[TURNS + 1] = "Done."
    local agent <close> = assert(ah.agent { store = store, id = "t", session = session,
      resources = { fs = fs }, model = ah.scripted(turns), max_iterations = TURNS + 1,
      tools = { ah.tool { name = "work", description = "Works.", params = { n = "integer" },
        handler = function(args)
          for _ = 1, n(4) do change() end
          assert(n(6) > 1, "no")
          return args.n
        end } },
      on = function(event)
        if event.type == "tool_loop_iteration" then states[#states + 1] = state() end
      end })
    assert(agent:run "Work.")
    assert.equal(TURNS + 1, #states)
    for _ = 1, 3 * TURNS do
      local first = n(TURNS)
      local last = first + n(TURNS - first + 1) - 1
      check(assert(store:changes("t", first, last)), states[first], states[last + 1])
    end
  end)
end)

-- -- streams made by hand ------------------------------------------------------------------------

local function memory_store(records)
  local path = folder .. "/s/work.db"
  streams.make(path, "t", records)
  return assert(ah.store(path))
end

if not ahtest.store_engines().sqlite then
  return
end

local OLD, NEW = "old\n", "new\n"

-- Returns the records of a turn whose call changes a file, with these records about its files.
local function turn_of(...)
  local records = streams.waiting {}
  records[#records] = nil
  records[#records] = streams.record("call_started", { call = 0, id = "call_1",
    tool = "delete_rows", key = ("0"):rep(64), definition = "d", on_lost = "tell" })
  for _, r in ipairs { ... } do
    records[#records + 1] = r
  end
  local _, turn, ended = streams.ending()
  table.move({ turn, ended }, 1, 2, #records + 1, records)
  return records
end

local RESULT = { type = "tool_result", id = "call_1", name = "delete_rows", content = "done",
  success = true, time = 3 }

local function settled(files, kept)
  return streams.record("settled", { call = 0, result = RESULT, files = ah.array(files) }, nil,
    kept and ah.json.encode(kept))
end

local function staged(...)
  return streams.record("call_finished", { call = 0, success = true }, nil,
    ah.json.encode { files = { { name = "/r", changes = { ... } } } })
end

local A = { root = "/r", path = "a", before = hash(OLD), after = hash(NEW) }
local B = { root = "/r", path = "b", after = hash(NEW) }
local PUT_A = { act = "put", path = "a", was = { kind = "file" }, content = NEW }
local PUT_B = { act = "put", path = "b", was = { kind = "absent" }, content = NEW }
local applied = streams.record("applied", { call = 0 })

-- Returns "path: - or + of the diff" of each change.
local function summary(records)
  local store <close> = memory_store(records)
  local list = {}
  for i, c in ipairs(assert(store:changes("t", 1))) do
    list[i] = c.path .. ":" .. (c.diff or "none"):gsub("^[^\n]*\n[^\n]*\n[^\n]*\n", "")
      :gsub("\n", ";")
  end
  return table.concat(list, " ")
end

describe("the changes of a stream", function()
  it("count once files are applied", function()
    assert.equal("a:-old;+new; b:+new;",
      summary(turn_of(staged(PUT_A, PUT_B), settled({ A, B }, { { content = OLD }, {} }), applied)))
  end)

  it("do not count if the files could not be applied", function()
    assert.equal("", summary(turn_of(staged(PUT_A), settled({ A }, { { content = OLD } }),
      streams.record("apply_failed", { call = 0, result = RESULT }))))
  end)

  it("count together if the call was settled once more", function()
    assert.equal("a:-old;+new; b:+new;", summary(turn_of(staged(PUT_A, PUT_B),
      settled({ A, B }, { { content = OLD }, {} }), streams.record("apply_failed", { call = 0 }),
      settled({ B }, { {} }), applied)))
  end)

  it("have no diff where a content is not kept, or is another one", function()
    for _, kept in ipairs { { { large = true } }, {}, { { content = "other" } }, { 1 }, { "x" } } do
      assert.equal("a:none", summary(turn_of(staged(PUT_A), settled({ A }, kept), applied)))
      os.execute("rm -rf " .. folder .. "/s")
    end
    assert.equal("a:none", summary(turn_of(staged { act = "put", path = "a", content = "other",
      was = { kind = "file" } }, settled({ A }, { { content = OLD } }), applied)))
  end)

  it("take the content after from the record of edits that were repeated", function()
    assert.equal("a:-old;+new;", summary(turn_of(staged { act = "put", path = "a",
      content = "other", was = { kind = "file" } },
      settled({ A }, { { content = OLD, after = NEW } }), applied)))
  end)

  it("survive any kept part, or say that the stream is damaged", function()
    local n = random(5)
    local junk = { 1, "x", {}, { 1 }, { name = 1 }, { name = "/r", changes = 1 },
      { name = "/r", changes = { { path = 1, act = 2 } } }, { name = "m", changes = { { path = "p",
        act = "put", content = { base64 = "?" }, was = 1 } } } }
    for _ = 1, 60 do
      local finished = streams.record("call_finished", { call = 0, success = true }, nil,
        ah.json.encode { files = { junk[n(#junk)], junk[n(#junk)] } })
      local store <close> = memory_store(turn_of(finished,
        settled({ A }, { junk[n(#junk)] }), applied))
      local list, err = store:changes("t", 1)
      assert(list or err.code == "store", err)
      os.execute("rm -rf " .. folder .. "/s")
    end
  end)
end)

describe("store:changes", function()
  it("is about the last turn, or says what there is not", function()
    local store <close> = memory_store(turn_of(staged(PUT_A), settled({ A }, {}), applied))
    assert.equal("a", assert(store:changes "t")[1].path)
    local function refused(words, ...)
      local ok, list, err = pcall(store.changes, store, ...)
      err = ok and err or list
      assert.equal("usage", err.code)
      assert.matches(words, err.message)
    end
    refused("there is no turn 2: the conversation has 1 so far", "t", 2)
    refused("there is no turn 3", "t", 1, 3)
    refused("there is no conversation 'u'", "u")
    refused("a turn is a number from 1, found 0", "t", 0)
    refused("a turn is a number from 1, found x", "t", "x")
    refused("the last turn is before the first", "t", 2, 1)
  end)

  it("counts turns beyond a checkpoint", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local session, turns = ah.session { types = { Item } }, {}
    for i = 1, 150 do
      turns[2 * i - 1] = { calls = { { name = "add", arguments = { n = i } } } }
      turns[2 * i] = "Done."
    end
    local agent <close> = assert(ah.agent { store = store, id = "t", session = session,
      model = ah.scripted(turns), tools = { ah.tool { name = "add", description = "Adds.",
        params = Item, result = Item, handler = function(item) return item end } } })
    for _ = 1, 150 do
      assert(agent:run "Add.")
    end
    for _, i in ipairs { 1, 2, 64, 65, 100, 150 } do
      assert.same({ { kind = "slice", name = "Item", kept = i - 1, removed = {},
        added = { { n = i } } } }, assert(store:changes("t", 2 * i - 1)))
      assert.same({}, assert(store:changes("t", 2 * i)))
    end
    assert.equal(150, #assert(store:changes("t", 1, 300))[1].added)
  end)

  it("begins for a fork with what it has from its base", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local n, answers = 0, {}
    for i = 1, 3 do
      answers[2 * i - 1], answers[2 * i] = { calls = { { name = "add", arguments = {} } } }, "Done."
    end
    local agent <close> = assert(ah.agent { store = store, id = "base",
      session = ah.session { types = { Item } }, model = ah.scripted(answers),
      tools = { ah.tool { name = "add", description = "Adds.", result = Item, handler = function()
        n = n + 1
        return Item { n = n }
      end } } })
    assert(agent:run "Add.")
    local fork <close> = assert(agent:fork { id = "fork" })
    assert(fork:run "Add.")
    local function added(i, kept)
      return { { kind = "slice", name = "Item", kept = kept, removed = {}, added = { { n = i } } } }
    end
    assert.same(added(1, 0), assert(store:changes("base", 1)))
    assert.same(added(2, 1), assert(store:changes("fork", 1)))
    assert.same(added(2, 1), assert(store:changes("fork", 1, 2)))
  end)
end)
