--- Runs in a process of its own, with the library's copy in the test module, whose calls of
-- the system can be made to fail (ahtest_fs.c):
--
--   lua5.4 spec/support/fs_child.lua BUILD MODE DIR
--
--   faults   each call of each operation fails once, in the two ways of opening folders
--   race     files are read and written for two seconds while a folder is swapped with a link
--   writer   writes two files for ever; somebody kills it
-- Prints what was done, or raises.
local build, mode, dir = ...
package.cpath = build .. "/?.so"

local ahtest = require "ahtest"
local ah = assert(package.loadlib(build .. "/ahtest.so", "luaopen_agenthost"))()
package.loaded.agenthost = ah

local OLD, NEW = ("old\n"):rep(3000), ("new\n"):rep(3000)

-- A filesystem that opens folders name by name, as where the kernel has no openat2.
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

-- Every name and content under dir: { path = content, or true for a folder }.
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

-- Of an operation of several files each may be old or new; `parts` says so.
local OPERATIONS = {
  { "write new", function(fs) return fs:write("n/e/w", NEW) end },
  { "write", function(fs) return fs:write("a/f", NEW) end },
  { "append", function(fs) return fs:append("a/f", NEW) end },
  { "edit", function(fs) return fs:edit("a/f", "old", "new", { all = true }) end },
  { "mkdir", function(fs) return fs:mkdir("n/e") end },
  { "delete", function(fs) return fs:delete("a/f") end },
  { "delete tree", function(fs) return fs:delete("a", { recursive = true }) end, parts = true },
  { "rename", function(fs) return fs:rename("a/f", "g", { replace = true }) end, parts = true },
  { "rename tree", function(fs) return fs:rename("a", "h") end, parts = true },
  { "commit", parts = true, function(fs)
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

-- Nothing of ours lies about, and each file is one of the two.
local function judge(operation, before, after, done)
  local now = snapshot(dir)
  for path, content in pairs(now) do
    assert(not path:find("%.tmp$"), "left behind: " .. path)
    assert(content == before[path] or content == after[path], "neither old nor new: " .. path)
  end
  if done then
    local ok, path = same(now, after)
    assert(ok, "done, but not so: " .. tostring(path))
  elseif not operation.parts then
    local ok, path = same(now, before)
    assert(ok, "failed, but not undone: " .. tostring(path))
  else -- what is to be deleted or moved is never the only copy
    for path, content in pairs(before) do
      assert(now[path] or after[path] == nil or content == true, "lost: " .. path)
    end
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
  judge(operation, states.before, states.after, ok)
  if not operation.reads then
    reset()
  end
end

local SOFT = { write = true, pread = true } -- may be interrupted, or do a part

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
  -- a filter of system calls, and a kernel that is not sure, are got around
  local fs = assert(ah.filesystem(fields))
  for _, how in ipairs { "EAGAIN", "EPERM" } do
    ahtest.fs_fail("syscall", 0, how)
    assert(fs:read("a/f") == OLD)
  end
  print("faults", points)
end

-- -- race -----------------------------------------------------------------------------------

-- In DIR: root, with a folder d and a link l to the folder out beside it; d and l change places.
local function race()
  local root, out = dir .. "/root", dir .. "/out"
  local fields = { root = root, sync = false }
  local systems = { assert(ah.filesystem(fields)), by_name(fields) }
  local swapper = ahtest.fs_swap(root .. "/d", root .. "/l")
  local rounds, read, wrote, refused = 0, 0, 0, 0
  local ends = ah.now() + 2
  while ah.now() < ends do
    for _, fs in ipairs(systems) do
      rounds = rounds + 1
      local text = fs:read("d/f")
      assert(text ~= "outside", "read outside")
      read = read + (text and 1 or 0)
      local ok = fs:write("d/new", "inside")
      wrote, refused = wrote + (ok and 1 or 0), refused + (ok and 0 or 1)
      fs:append("d/e/f", "x")
      fs:delete("d/new")
      for _, found in ipairs(fs:grep("outside") or {}) do
        error("found outside: " .. found.path)
      end
      fs:rename("d/e", "d/g")
      fs:rename("d/g", "d/e")
      fs:delete("d/e/h", { recursive = true })
    end
  end
  local swaps = swapper:stop()
  local now = snapshot(out)
  assert(now.f == "outside" and now.e == true and now["e/f"] == "outside", "changed outside")
  for path in pairs(now) do
    assert(path == "f" or path == "e" or path == "e/f", "made outside: " .. path)
  end
  assert(swaps > 1000 and read > 0 and wrote > 0 and refused > 0, "there was no race")
  print("race", rounds, swaps)
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

local modes = { faults = faults, race = race, writer = writer }
modes[mode]()
