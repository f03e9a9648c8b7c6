--- Tests the filesystem in a process of its own, with the library's copy in the test module, whose
-- system calls can be made to fail (ahtest_fs.c):
--
--   lua5.4 spec/support/fs_child.lua BUILD MODE DIR MORE
--
--   faults   each call of each operation fails once, in the two ways of opening folders
--   race     files are read and written while a folder and a file are swapped with links: MORE is
--            the number of rounds (0: for some time), and "new" or "old" (no openat2)
--   writer   writes two files until it is killed
--   kills    a process that commits a set of changes is killed before each of its calls, or every
--            n-th; MORE is n, and "new" or "old" (neither openat2 nor renameat2)
--   die      such a process: MORE is the call and its number, or "count"
--   settles  a process that prepares three files, writes the list of them down, and commits, is
--            killed before each of its calls; MORE is "new" or "old"
--   settle   such a process: MORE is as for "die"
--   sets     commits sets until it is killed
--   random_kills  kills such a process MORE times
-- Prints what was done, or raises.
local build, mode, dir, more = ...
package.cpath = build .. "/?.so"

local ahtest = require "ahtest"
local ah = assert(package.loadlib(build .. "/ahtest.so", "luaopen_agenthost"))()
package.loaded.agenthost = ah

local OLD, NEW = ("old\n"):rep(3000), ("new\n"):rep(3000)

-- Returns a filesystem that opens folders name by name, as on kernels without openat2.
local function by_name(fields)
  local fs = assert(ah.filesystem(fields))
  ahtest.fs_fail("syscall", 0, "ENOSYS")
  fs:list("a")
  ahtest.fs_fail()
  fs:list("a")
  assert(ahtest.fs_calls().syscall == 0, "openat2 is still asked")
  return fs
end

local quick = assert(ah.filesystem { root = dir, sync = false })

local function read_file(path)
  local f = io.open(path)
  return f and f:read("a"), f and f:close()
end

-- Returns every name and content under dir: { path = content, or true for a folder }.
local function snapshot(path, into, under)
  into, under = into or {}, under or ""
  for _, name in ipairs(ahtest.fs_names(path)) do
    local inner = name:match("^(.*)/$")
    if inner then
      into[under .. inner] = true
      snapshot(path .. "/" .. inner, into, under .. name)
    else
      into[under .. name] = read_file(path .. "/" .. name)
    end
  end
  return into
end

local function same(a, b)
  for key, value in pairs(a) do
    if b[key] ~= value then
      return false, key
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
      return false, key
    end
  end
  return true
end

-- -- faults -------------------------------------------------------------------------------

local OPERATIONS = {
  { "write new", function(fs) return fs:write("n/e/w", NEW) end },
  { "write", function(fs) return fs:write("a/f", NEW) end },
  { "append", function(fs) return fs:append("a/f", NEW) end },
  { "edit", function(fs) return fs:edit("a/f", "old", "new", { all = true }) end },
  { "mkdir", function(fs) return fs:mkdir("n/e") end },
  { "delete", function(fs) return fs:delete("a/f") end },
  { "delete tree", function(fs) return fs:delete("a", { recursive = true }) end },
  { "rename", function(fs) return fs:rename("a/f", "g", { replace = true }) end },
  { "rename tree", function(fs) return fs:rename("a", "h") end },
  { "commit", function(fs)
    local o <close> = fs:overlay()
    local ok, err = o:write("g", NEW)
    for _, step in ipairs { { "append", "a/f", NEW }, { "write", "n/f", NEW }, { "delete", "x" },
      { "commit" } } do
      if ok then
        ok, err = o[step[1]](o, step[2], step[3])
      end
    end
    return ok, err
  end },
  { "read", function(fs) return fs:read("a/f") end, reads = true },
  { "stat", function(fs) return fs:stat("a/f") end, reads = true },
  { "list", function(fs) return fs:list("a") end, reads = true },
  { "glob", function(fs) return fs:glob("**") end, reads = true },
  { "grep", function(fs) return fs:grep("old", { max = 1 }) end, reads = true },
}

local function reset()
  local fs = quick
  for _, name in ipairs { "n", "a", "h", "g", "x" } do
    if fs:exists(name) then
      assert(fs:delete(name, { recursive = true }))
    end
  end
  for _, name in ipairs { "a/f", "a/b/c", "g", "x" } do
    assert(fs:write(name, OLD))
  end
end

-- Lists every folder, which removes leftovers of failed removals.
local function list_all(path)
  for _, e in ipairs(assert(quick:list(path))) do
    if e.type == "folder" then
      list_all(path == "" and e.name or path .. "/" .. e.name)
    end
  end
end

-- Asserts that no temporary file is left, and that all files are as before or as intended.
local function judge(before, after, done)
  list_all ""
  local now = snapshot(dir)
  for path, content in pairs(now) do
    assert(not path:find("%.tmp$"), "left behind: " .. path)
    assert(content == before[path] or content == after[path], "neither old nor new: " .. path)
  end
  if done then
    local ok, path = same(now, after)
    assert(ok, "done, but not so: " .. tostring(path))
  else
    local ok, path = same(now, before)
    assert(ok, "failed, but not undone: " .. tostring(path))
  end
end

local function check_error(err)
  assert(type(err) == "table" and #err.message > 0, "no words")
  assert(err.code == "internal" or err.code == "tool_validation", err.code)
end

local function one_fault(fs, operation, states, call, n, how)
  local open = ahtest.fs_open()
  ahtest.fs_fail(call, n, how)
  local ok, err = operation[2](fs)
  ahtest.fs_fail()
  assert(ahtest.fs_open() == open, "a descriptor is left open")
  if not ok then
    check_error(err)
    assert(how ~= "short" and how ~= "EINTR", "not gone on with: " .. err.message)
  end
  judge(states.before, states.after, ok)
  if not operation.reads then
    reset()
  end
end

local SOFT = { write = true, pread = true } -- these calls may be interrupted, or do a part

local function all_faults(fs, operation)
  local points, states = 0, {}
  reset()
  states.before = snapshot(dir)
  ahtest.fs_fail()
  assert(operation[2](fs))
  local calls = ahtest.fs_calls()
  states.after = snapshot(dir)
  reset()
  for call, count in pairs(calls) do
    for n = 1, count do
      for _, how in ipairs(SOFT[call] and { "EIO", "short", "EINTR" } or { "EIO" }) do
        local ok, why = pcall(one_fault, fs, operation, states, call, n, how)
        if not ok then
          error(("%s, %s %d of %d %s: %s"):format(operation[1], call, n, count, how, why), 0)
        end
        points = points + 1
      end
    end
  end
  return points
end

local function faults()
  local points = 0
  local fields = { root = dir }
  for _, fs in ipairs { assert(ah.filesystem(fields)), by_name(fields) } do
    for _, operation in ipairs(OPERATIONS) do
      points = points + all_faults(fs, operation)
    end
  end
  assert(points > 300, points)
  -- The filesystem works without openat2 if it is filtered, or if the kernel is not sure.
  local fs = assert(ah.filesystem(fields))
  for _, how in ipairs { "EAGAIN", "EPERM" } do
    ahtest.fs_fail("syscall", 0, how)
    assert(fs:read("a/f") == OLD)
  end
  print("faults", points)
end

-- -- race -----------------------------------------------------------------------------------

-- DIR has root and out beside it. In root: a folder d and a link l to out, a file p and a link q to
-- the file in out. d and l change places, and so do p and q.
local function race_round(fs, count)
  local text = fs:read("d/f")
  assert(text ~= "outside" and fs:read("p") ~= "outside", "read outside")
  count.read = count.read + (text and 1 or 0)
  local ok = fs:write("d/new", "inside")
  count.wrote, count.refused = count.wrote + (ok and 1 or 0), count.refused + (ok and 0 or 1)
  fs:append("d/e/f", "x")
  fs:append("p", "x")
  fs:delete("d/new")
  for _, found in ipairs(fs:grep("outside") or {}) do
    error("found outside: " .. found.path)
  end
  fs:rename("d/e", "d/g")
  fs:rename("d/g", "d/e")
  fs:delete("d/e/h", { recursive = true })
  local o <close> = fs:overlay()
  o:write("d/one", "inside")
  o:write("d/deep/er/two", "inside")
  o:delete("d/three", { recursive = true })
  o:write("d/three/in", "inside")
  o:append("p", "y")
  count.committed = count.committed + (o:commit() and 1 or 0)
  fs:delete("d/deep", { recursive = true })
  fs:write("p", "short")
  local grown = fs:stat("d/e/f")
  if grown and (grown.size or 0) > 1000 then
    fs:write("d/e/f", "inside")
  end
end

local function race()
  local root, out = dir .. "/root", dir .. "/out"
  local rounds, kernel = more:match "(%d+) (%l+)"
  local fs = assert(ah.filesystem { root = root, sync = false })
  local count = { read = 0, wrote = 0, refused = 0, committed = 0 }
  local done, ends = 0, ah.now() + 1.5
  ahtest.fs_old_kernel(kernel == "old")
  rounds = math.tointeger(tonumber(rounds))
  local swappers = { ahtest.fs_swap(root .. "/d", root .. "/l"),
    ahtest.fs_swap(root .. "/p", root .. "/q") }
  while done < rounds or (rounds == 0 and ah.now() < ends) do
    race_round(fs, count)
    done = done + 1
  end
  local swaps = swappers[1]:stop() + swappers[2]:stop()
  local now = snapshot(out)
  assert(now.f == "outside" and now.e == true and now["e/f"] == "outside", "changed outside")
  for path in pairs(now) do
    assert(path == "f" or path == "e" or path == "e/f", "made outside: " .. path)
  end
  assert(swaps > 1000 and count.read > 0 and count.wrote > 0 and count.refused > 0
    and count.committed > 0, "there was no race")
  print("race", done, swaps)
end

-- -- writer ---------------------------------------------------------------------------------

local function writer()
  local fs = assert(ah.filesystem { root = dir })
  local size = { a = 200000, b = 100000 }
  local old = assert(fs:read("h", { limit = 1 }))
  for round = 1, math.huge do
    local new = old == "a" and "b" or "a"
    assert(fs:write("f", new:rep(size[new])))
    local o = fs:overlay()
    assert(o:write("g", new:rep(size[new])))
    assert(o:edit("h", old, new, { all = true }))
    assert(o:commit())
    old = new
    if round == 1 then
      io.write("ready\n"):flush()
    end
  end
end

-- -- sets -----------------------------------------------------------------------------------

-- Commits a set with every kind of change; afterwards all of the tree is `letter`, or none.
local function set_state(fs, letter)
  local other = letter == "A" and "B" or "A"
  local o <close> = fs:overlay()
  for _, path in ipairs { "a/1", "a/b/2", "g" } do
    assert(o:write(path, letter:rep(3000)))
  end
  for _, path in ipairs { "only" .. other, "kind", "empty" .. other, "a/gone" .. other } do
    if o:exists(path) then
      assert(o:delete(path, { recursive = true }))
    end
  end
  assert(o:write("only" .. letter .. "/in/x", letter))
  assert(o:mkdir("empty" .. letter))
  assert(o:write("a/gone" .. letter, letter))
  assert(o:write(letter == "A" and "kind" or "kind/deep/y", letter))
  return assert(o:commit())
end

local function states(fs)
  local A, B
  set_state(fs, "B")
  B = snapshot(dir)
  set_state(fs, "A")
  A = snapshot(dir)
  return A, B
end

-- Asserts that a new process finds one of the two trees, and no hidden file after it has listed the
-- folders. Returns true if the tree is B.
local function judge_set(A, B)
  assert(ah.filesystem { root = dir, sync = false }):close()
  local now = snapshot(dir)
  for path in pairs(now) do
    if path:find "%.agenthost%-" then
      now[path] = nil
    end
  end
  local is_a, path_a = same(now, A)
  local is_b, path_b = same(now, B)
  assert(is_a or is_b, ("a mixture: not as before: %s, not as wished: %s"):format(path_a, path_b))
  list_all ""
  for path in pairs(snapshot(dir)) do
    assert(not path:find "%.agenthost%-", "left behind: " .. path)
  end
  return is_b
end

local function die()
  local fs = assert(ah.filesystem { root = dir, sync = not more:find "old" })
  ahtest.fs_old_kernel(more:find "old" ~= nil)
  local call, n = more:match "(%l+) (%d+)"
  ahtest.fs_fail(call, math.tointeger(tonumber(n)), call and "kill")
  set_state(fs, "B")
  if more:find "count" then
    for name, count in pairs(ahtest.fs_calls()) do
      print(name, count)
    end
  end
end

local function run_dying(words)
  local command = "lua5.4 spec/support/fs_child.lua '%s' die '%s' '%s' 2>&1"
  local pipe <close> = assert(io.popen(command:format(build, dir, words)))
  return pipe:read("a")
end

local function kills()
  local A, B = states(quick)
  local done, points, seen = 0, 0, 0
  local every = math.tointeger(tonumber(more:match "%d+"))
  local first = math.random(every)
  more = more:match "%l+"
  local counts = run_dying("count " .. more)
  for call, count in counts:gmatch "(%l+)\t(%d+)" do
    for n = 1, math.tointeger(tonumber(count)) do
      seen = seen + 1
      if (seen - first) % every ~= 0 then
        goto continue
      end
      set_state(quick, "A")
      run_dying(("%s %d %s"):format(call, n, more))
      local ok, is_b = pcall(judge_set, A, B)
      assert(ok, ("killed before %s %d of %d: %s"):format(call, n, count, is_b))
      done, points = done + (is_b and 1 or 0), points + 1
      ::continue::
    end
  end
  assert(done > 2 and points - done > 2, counts)
  print("kills", points, done)
end

-- -- three files, with a record ----------------------------------------------------------------

local THREE = { "a", "b/c", "d" }

local function settle()
  local w = ahtest.staged_world(dir, not more:find "old")
  ahtest.fs_old_kernel(more:find "old" ~= nil)
  for _, path in ipairs(THREE) do
    assert(w:file("work", "write", path, NEW))
  end
  local call, n = more:match "(%l+) (%d+)"
  ahtest.fs_fail(call, math.tointeger(tonumber(n)), call and "kill")
  local files = assert(w:prepare())
  local record <close> = assert(io.open(dir .. ".settled", "w"))
  record:write(files):flush()
  assert(w:commit())
  for name, count in pairs(more:find "count" and ahtest.fs_calls() or {}) do
    print(name, count)
  end
end

local function run_settling(words)
  local command = "lua5.4 spec/support/fs_child.lua '%s' settle '%s' '%s' 2>&1"
  os.remove(dir .. ".settled")
  for _, path in ipairs(THREE) do
    assert(quick:write(path, OLD))
  end
  local pipe <close> = assert(io.popen(command:format(build, dir, words)))
  return pipe:read("a")
end

-- Asserts that all files are old or all are new once the root is opened again, and that the record
-- says which. Returns "unrecorded", "not_applied" or "applied".
local function judge_three()
  local w = ahtest.staged_world(dir)
  local files, new = read_file(dir .. ".settled"), 0
  for _, path in ipairs(THREE) do
    local now = read_file(dir .. "/" .. path)
    assert(now == OLD or now == NEW, "neither old nor new: " .. path)
    new = new + (now == NEW and 1 or 0)
  end
  assert(new == 0 or new == #THREE, "a mixture")
  if not files then
    assert(new == 0, "applied before it was recorded")
    return "unrecorded"
  end
  local fate, _, n, said = w:settled(files)
  assert(fate == (new == 0 and "not_applied" or "applied"), fate)
  assert(n == #THREE and said == (new ~= 0 and "" or "The files of this call were not changed: "
    .. "the program ended before they were in place."), said)
  list_all ""
  for path in pairs(snapshot(dir)) do
    assert(not path:find "%.agenthost%-", "left behind: " .. path)
  end
  w:close()
  return fate
end

local function settles()
  local seen = { unrecorded = 0, not_applied = 0, applied = 0 }
  local counts = run_settling("count " .. more)
  assert(judge_three() == "applied")
  for call, count in counts:gmatch "(%l+)\t(%d+)" do
    for n = 1, math.tointeger(tonumber(count)) do
      run_settling(("%s %d %s"):format(call, n, more))
      local ok, fate = pcall(judge_three)
      assert(ok, ("killed before %s %d of %d: %s"):format(call, n, count, fate))
      seen[fate] = seen[fate] + 1
    end
  end
  assert(seen.unrecorded > 2 and seen.not_applied > 0 and seen.applied > 2, counts)
  os.remove(dir .. ".settled")
  print("settles", seen.unrecorded, seen.not_applied, seen.applied)
end

local function sets()
  local fs = assert(ah.filesystem { root = dir, sync = false })
  states(fs)
  io.write("ready\n"):flush()
  while true do
    set_state(fs, "B")
    set_state(fs, "A")
  end
end

local function random_kills()
  local A, B = states(quick)
  local done = 0
  math.randomseed(os.time())
  for i = 1, math.tointeger(tonumber(more)) do
    local command = "echo $$; exec lua5.4 spec/support/fs_child.lua '%s' sets '%s' 2>&1"
    local pipe <close> = assert(io.popen(command:format(build, dir)))
    local pid = assert(pipe:read("l"))
    assert(pipe:read("l") == "ready")
    os.execute(("sleep %.5f; kill -9 %d"):format(math.random() / 50, pid))
    pipe:read("a")
    local ok, is_b = pcall(judge_set, A, B)
    assert(ok, ("kill %d: %s"):format(i, is_b))
    done = done + (is_b and 1 or 0)
  end
  print("random_kills", more, done)
end

local modes = { faults = faults, race = race, writer = writer, kills = kills, die = die,
  settle = settle, settles = settles, sets = sets, random_kills = random_kills }
modes[mode]()
