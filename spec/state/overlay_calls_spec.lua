-- Overlays of scripts in tool calls: a call works in them as in any filesystem, whatever it does to
-- them and to their bases. Random programs do the same in two worlds: in calls (nested ones, some
-- of which fail), and outside of calls without the failing ones. Both must be the same.
--
--   AGENTHOST_OVERLAYS=10000   calls in all (fewer by default)
--   AGENTHOST_SEED=7           the first program; a failure names its own
local ah = require "agenthost"
local command = require "support.command"
local generator = require "support.random"

local CALLS = tonumber(os.getenv("AGENTHOST_OVERLAYS") or 1500)
local SEED = tonumber(os.getenv("AGENTHOST_SEED") or 1)

local FOLDER = command.folder()

teardown(command.tidy)

local function call_of(name, arguments)
  return { name = name, arguments = arguments }
end

--- Runs the handlers, each a call of its own: in order, or all at once. Returns the results for the
-- model.
local function run(handlers, options)
  local calls, tools, contents = {}, {}, {}
  for i, handler in ipairs(handlers) do
    tools[i] = ah.tool { name = "t" .. i, description = "Does it.", handler = handler,
      parallel = options and options.parallel, timeout = options and options.timeout }
    calls[i] = call_of("t" .. i)
  end
  local reply = assert(ah.run { model = ah.scripted { { calls = calls }, "done" }, tools = tools,
    log = function() end, "go" })
  for _, m in ipairs(reply.messages) do
    contents[#contents + 1] = m.role == "tool" and m.content or nil
  end
  return contents
end

local function files_of(fs)
  local all = {}
  for _, path in ipairs(assert(fs:glob "**")) do
    all[path] = fs:read(path)
  end
  return ah.object(all)
end

describe("an overlay of the script, in a call", function()
  it("is as before when the call has failed", function()
    local fs = ah.filesystem { files = { a = "1", b = "1" } }
    local o = fs:overlay()
    o:write("a", "2")
    local contents = run({ function()
      o:append("a", "3")
      o:delete "b"
      o:write("c/d", "new")
      error(o:read "a" .. tostring(o:exists "b") .. o:read "c/d")
    end })
    assert.same({ "Tool 't1' execution failed: 23falsenew" }, contents)
    assert.same({ a = "2", b = "1" }, files_of(o))
    assert.same({ a = "1", b = "1" }, files_of(fs))
  end)

  it("has what the call did once that is committed, and not before", function()
    local fs = ah.filesystem { files = { a = "1" } }
    local o, seen = fs:overlay(), nil
    run({ function()
      o:write("a", "2")
      ah.sleep(0.01)
    end, function() seen = o:read "a" end }, { parallel = true })
    assert.same({ "1", "2", "1" }, { seen, (o:read "a"), (fs:read "a") })
  end)

  it("is edited by edit_file as a whole or not at all", function()
    local fs = ah.filesystem { files = { f = "one\ntwo\n" } }
    local o = fs:overlay()
    local edit = { name = "edit_file", arguments = { path = "f", edits = {
      { old = "one", new = "1" }, { old = "three", new = "3" } } } }
    local reply = assert(ah.run { tools = ah.builtin { "edit_file" },
      resources = { filesystem = o }, model = ah.scripted { { calls = { edit } }, "done" }, "go" })
    assert.truthy(reply.messages[3].content:find("none of the edits was made", 1, true))
    assert.equal("one\ntwo\n", (o:read "f"))
  end)

  it("keeps the work of calls that are at work together", function()
    local fs = ah.filesystem { files = { log = "0\n" } }
    local o = fs:overlay()
    local handlers = {}
    for i = 1, 4 do
      handlers[i] = function()
        o:append("log", i .. "\n")
        o:write("f" .. i, "x")
        ah.sleep(0)
        assert(i ~= 3)
      end
    end
    run(handlers, { parallel = true })
    assert.same({ log = "0\n1\n2\n4\n", f1 = "x", f2 = "x", f4 = "x" }, files_of(o))
    assert.same({ log = "0\n" }, files_of(fs))
  end)

  it("fails the second of two calls that read a file and write it", function()
    local o = ah.filesystem({ files = { n = "1" } }):overlay()
    local function count()
      local n = tonumber((o:read "n"))
      ah.sleep(0)
      o:write("n", tostring(n + 1))
    end
    local contents = run({ count, count }, { parallel = true })
    assert.equal("2", (o:read "n"))
    assert.truthy(contents[2]:find("'n' was changed meanwhile by another call", 1, true))
  end)

  it("is committed with the call, and stays as it was where that fails", function()
    local fs = ah.filesystem { files = { a = "1" } }
    local o, seen = fs:overlay(), {}
    o:write("a", "2")
    run { function()
      o:write("b", "3")
      assert(o:commit())
      seen[1] = fs:read "a" .. fs:read "b"
      o:write("c", "4")
      error "no"
    end }
    assert.same({ { a = "1" }, { a = "2" } }, { files_of(fs), files_of(o) })
    run({ function()
      assert(o:commit())
      o:write("c", "4")
      ah.sleep(0.01)
    end, function() seen[2] = fs:read "a" end }, { parallel = true })
    assert.same({ "23", "1" }, seen)
    assert.same({ { a = "2" }, { a = "2", c = "4" } }, { files_of(fs), files_of(o) })
    o:drop()
    assert.same({ a = "2" }, files_of(o))
  end)

  it("is dropped with the call", function()
    local o = ah.filesystem({ files = { a = "1" } }):overlay()
    o:write("a", "2")
    run { function()
      o:drop()
      o:append("a", "3")
      error(o:read "a")
    end }
    assert.equal("2", (o:read "a"))
    run { function()
      o:drop()
      o:append("a", "3")
    end }
    assert.equal("13", (o:read "a"))
  end)

  it("commits into the overlay below, and that into the next", function()
    local fs = ah.filesystem { root = FOLDER, sync = false }
    local one = fs:overlay()
    local two = one:overlay()
    fs:write("a", "1")
    two:append("a", "2")
    run { function()
      one:write("b", "x")
      assert(two:read "b" == "x" and not fs:exists "b")
      assert(two:commit())
      assert(one:read "a" == "12" and fs:read "a" == "1")
      assert(one:commit())
      assert(fs:read "a" == "12")
      two:append("a", "3")
    end }
    assert.same({ a = "12", b = "x" }, files_of(fs))
    assert.same({ a = "12", b = "x" }, files_of(one))
    assert.same({ a = "123", b = "x" }, files_of(two))
    assert(two:commit())
    assert(one:commit())
    assert.equal("123", (fs:read "a"))
  end)

  it("may put a file in a folder's place, and be committed", function()
    local fs = ah.filesystem { files = { ["d/a"] = "1", ["d/b"] = "2" } }
    local o = fs:overlay()
    o:write("d/c", "3")
    local function replace()
      assert(o:delete("d", { recursive = true }) and o:write("d", "file"))
      assert(o:commit())
      assert(fs:read "d" == "file")
    end
    run { function()
      replace()
      error "no"
    end }
    assert.same({ ["d/a"] = "1", ["d/b"] = "2", ["d/c"] = "3" }, files_of(o))
    assert.same({ "OK" }, run { replace })
    assert.same({ d = "file" }, files_of(fs))
  end)

  it("sees what the call wrote below it", function()
    local fs = ah.filesystem { files = { a = "1" } }
    local o = fs:overlay()
    run { function()
      fs:write("a", "2")
      o:append("a", "3")
      o:write("b", o:read "a" .. #o:list())
    end }
    assert.same({ { a = "2" }, { a = "23", b = "231" } }, { files_of(fs), files_of(o) })
    assert(o:commit())
    assert.same({ a = "23", b = "231" }, files_of(fs))
  end)

  it("may be made there, and is the script's when the call has succeeded", function()
    local fs, kept = ah.filesystem { files = { a = "old" } }, {}
    local contents = run { function()
      fs:write("a", "new")
      local o = fs:overlay()
      assert(o:read "a" == "new")
      o:write("b", "1")
      assert(o:commit())
      kept[1] = fs:overlay()
      kept[1]:append("a", "er")
    end, function()
      kept[2] = fs:overlay()
      kept[2]:write("a", "lost")
      assert(kept[2]:commit())
      kept[2]:write("c", "lost")
      error "no"
    end }
    assert.same({ "OK", "Tool 't2' execution failed: no" }, contents)
    assert.same({ { a = "new", b = "1" }, { a = "newer", b = "1" }, { a = "new", b = "1" } },
      { files_of(fs), files_of(kept[1]), files_of(kept[2]) })
    assert(kept[1]:commit() and kept[2]:commit())
    assert.same({ a = "newer", b = "1" }, files_of(fs))
  end)

  it("is told apart in calls in calls", function()
    local o = ah.filesystem({ files = { log = "" } }):overlay()
    run { function()
      o:append("log", "1")
      local contents = run({ function()
        o:append("log", "2")
        run { function() o:append("log", "3") end, function()
          o:append("log", "4")
          error "no"
        end }
        assert(o:commit())
      end, function()
        o:append("log", "5")
        o:drop()
        error((o:read "log"))
      end, function() return o:read "log" end })
      assert.same({ "OK", "Tool 't2' execution failed: 123", "123" }, contents)
    end }
    assert.equal("123", (o:read "log"))
  end)

  it("is a conflict where two calls commit what was in it", function()
    local fs = ah.filesystem { memory = true }
    local o = fs:overlay()
    local function both()
      return run({ function()
        o:append("a", "1")
        assert(o:commit())
        ah.sleep(0)
      end, function()
        o:append("a", "2")
        assert(o:commit())
      end }, { parallel = true })
    end
    assert.same({ "OK", "OK" }, both())
    assert.equal("12", (fs:read "a"))
    o:append("a", "0")
    local contents = both()
    assert.equal("OK", contents[1])
    assert.truthy(contents[2]:find("was changed meanwhile by another call", 1, true))
    assert.equal("1201", (fs:read "a"))
  end)

  it("takes part in two runs at once", function()
    local o = ah.filesystem({ files = { log = "" } }):overlay()
    local function append(text, failing)
      return function()
        run({ function()
          o:append("log", text)
          ah.sleep(0.005)
          assert(not failing)
        end, function() o:append("log", text) end })
      end
    end
    run({ append "a", append("b", true), append "c" }, { parallel = true })
    assert.equal("aabcc", (o:read "log"))
  end)

  it("is not more than sixteen of them high", function()
    local fs, n = ah.filesystem { memory = true }, 0
    local ok, err = pcall(function()
      while n < 100 do
        fs, n = fs:overlay(), n + 1
      end
    end)
    assert.is_false(ok)
    assert.truthy(tostring(err):find("more than 16 nested overlays", 1, true))
    assert.equal(16, n)
    assert.same({ "OK" }, run { function() assert(fs:write("a", "1") and fs:commit()) end })
  end)
end)

-- -- random programs ------------------------------------------------------------------------

local PATHS = { "a", "b", "d/a", "d/b" }
local WHAT = { "write", "write", "append", "append", "edit", "delete", "read", "stat", "list",
  "commit", "drop" }

--- Makes steps on places 1 (the base), 2 (on 1), 3 (on 2), 4 (on 1); a nested call has its own
-- list.
local function new_steps(random, depth)
  local steps = {}
  for i = 1, random(7) do
    if depth < 3 and random(6) == 1 then
      steps[i] = { call = new_steps(random, depth + 1), fails = random(3) == 1 }
    else
      steps[i] = { what = WHAT[random(#WHAT)], place = random(4), path = PATHS[random(#PATHS)],
        text = tostring(random(9)) }
    end
  end
  return steps
end

local places = {
  memory = function() return ah.filesystem { memory = true } end,
  disk = function(name)
    local path = FOLDER .. "/" .. name
    os.execute(("rm -rf %s; mkdir -p %s"):format(path, path))
    return assert(ah.filesystem { root = path, sync = false })
  end,
}

local function new_world(kind, name)
  local base = places[kind](name)
  local one = base:overlay()
  return { base, one, one:overlay(), base:overlay() }
end

local function do_step(w, step, said)
  local fs = w[step.place]
  local result
  if step.what == "write" or step.what == "append" then
    result = fs[step.what](fs, step.path, step.text)
  elseif step.what == "edit" then
    result = fs:edit(step.path, step.text, "<" .. step.text .. ">", { all = true })
  elseif step.what == "list" then
    result = {}
    for _, item in ipairs(fs:list() or {}) do
      result[#result + 1] = item.name
    end
    result = table.concat(result, " ")
  elseif step.what == "commit" or step.what == "drop" then
    result = step.place > 1 and fs[step.what](fs)
  elseif step.what == "stat" then
    result = (fs:stat(step.path) or {}).type
  else
    result = fs[step.what](fs, step.path)
  end
  said[#said + 1] = ("%s %d %s: %s"):format(step.what, step.place, step.path, tostring(result))
end

--- Runs the steps outside of calls, without the failing calls.
local function do_plain(w, steps, said)
  for _, step in ipairs(steps) do
    if not step.call then
      do_step(w, step, said)
    elseif not step.fails then
      do_plain(w, step.call, said)
    end
  end
end

local count, program = 0, 0

local function do_call(w, step, said)
  local mine = {}
  local contents = run { function()
    count = count + 1
    for _, inner in ipairs(step.call) do
      if inner.call then
        do_call(w, inner, mine)
      else
        do_step(w, inner, mine)
      end
    end
    assert(not step.fails, "it is to fail")
  end }
  if not step.fails then
    assert.equal("OK", contents[1], "program " .. program)
    table.move(mine, 1, #mine, #said + 1, said)
  end
end

local function state_of(w)
  local all = {}
  for i, fs in ipairs(w) do
    all[i] = files_of(fs)
  end
  return ah.json.encode(all)
end

local function try_program(seed)
  program = seed
  local random = generator(seed)
  local kind = random(3) == 1 and "disk" or "memory"
  local real, plain = new_world(kind, "real"), new_world(kind, "plain")
  for _ = 1, 4 do
    local steps, said, expected = new_steps(random, 1), {}, {}
    do_call(real, { call = steps, fails = random(4) == 1, n = 1 }, said)
    if #said > 0 then
      do_plain(plain, steps, expected)
    end
    assert.equal(table.concat(expected, "\n"), table.concat(said, "\n"), "program " .. seed)
    assert.equal(state_of(plain), state_of(real), "program " .. seed)
  end
  for _, i in ipairs { 3, 2, 4 } do
    assert.equal(plain[i]:commit(), real[i]:commit(), "program " .. seed)
    assert.equal(state_of(plain), state_of(real), "program " .. seed)
  end
end

describe("random calls on overlays", function()
  it("leave what the same would have left outside of calls", function()
    local seed = SEED
    while count < CALLS do
      try_program(seed)
      seed = seed + 1
    end
  end)
end)
