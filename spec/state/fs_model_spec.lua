-- The same random operations in memory, in a folder of the machine, in overlays of either and in
-- overlays of overlays have the same results, the same reasons of refusal and, after the commit,
-- the same files; files replace folders and folders replace files, in every order. FS_MODELS is the
-- number of sequences (default 120), FS_SEED the seed (default: the time).
local ah = require "agenthost"

local ROUNDS = math.tointeger(tonumber(os.getenv "FS_MODELS" or "120"))
local SEED = math.tointeger(tonumber(os.getenv "FS_SEED")) or os.time()
local STEPS = 25

local NAMES = { "a", "b", "a/b", "a/c", "b/a", "a/b/c", "a/b/a", "b/a/c", "a.x", "a/c/d/e", "c" }

local function any(list)
  return list[math.random(#list)]
end

-- Returns a name and a function of a filesystem.
local function random_step()
  local p, q, text = any(NAMES), any(NAMES), any { "x", "y", "xyx" }
  local all, over = math.random(2) == 1, math.random(2) == 1
  local steps = {
    function() return "write " .. p, function(fs) return fs:write(p, text) end end,
    function() return "write " .. p, function(fs) return fs:write(p, text) end end,
    function() return "append " .. p, function(fs) return fs:append(p, text) end end,
    function()
      return "edit " .. p, function(fs) return fs:edit(p, "x", "z", { all = all }) end
    end,
    function() return "mkdir " .. p, function(fs) return fs:mkdir(p) end end,
    function() return "delete " .. p, function(fs) return fs:delete(p) end end,
    function()
      return "delete all of " .. p, function(fs) return fs:delete(p, { recursive = true }) end
    end,
    function()
      return "delete all of " .. p, function(fs) return fs:delete(p, { recursive = true }) end
    end,
    function()
      return ("rename %s %s"):format(p, q), function(fs)
        return fs:rename(p, q, { replace = over })
      end
    end,
    function() return "read " .. p, function(fs) return fs:read(p) end end,
    function() return "exists " .. p, function(fs) return fs:exists(p) end end,
    function()
      return "list " .. p, function(fs)
        local list, err = fs:list(p)
        return list and #list, err
      end
    end,
  }
  return any(steps)()
end

local function answer(f, fs)
  local got, err = f(fs)
  if got == nil then
    return "refused: " .. tostring(err.reason)
  end
  return tostring(got)
end

local function describe_all(fs, path, into)
  into = into or {}
  for _, e in ipairs(assert(fs:list(path))) do
    local at = (path and path .. "/" or "") .. e.name
    into[#into + 1] = at .. (e.type == "folder" and "/" or "=" .. assert(fs:read(at)))
    if e.type == "folder" then
      describe_all(fs, at, into)
    end
  end
  return table.concat(into, " ")
end

describe("every kind of filesystem", function()
  local dir
  before_each(function()
    local pipe <close> = assert(io.popen("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d"))
    dir = assert(pipe:read("l"))
  end)
  after_each(function() os.execute(("rm -rf '%s'"):format(dir)) end)

  local roots = 0
  local function host()
    roots = roots + 1
    local root = ("%s/%d"):format(dir, roots)
    os.execute("mkdir " .. root)
    return assert(ah.filesystem { root = root, sync = false })
  end
  local function memory()
    return assert(ah.filesystem { memory = true })
  end

  -- Returns a list of { name, the filesystem to work in, those to be committed, the lowest }.
  local function make_all()
    local list = {}
    for name, make in pairs { memory = memory, host = host } do
      local alone, below, deep = make(), make(), make()
      local one, two = below:overlay(), deep:overlay()
      local three = two:overlay()
      list[#list + 1] = { name = name, fs = alone, overlays = {}, lowest = alone }
      list[#list + 1] = { name = "overlay of " .. name, fs = one, overlays = { one },
        lowest = below }
      list[#list + 1] = { name = "overlay of an overlay of " .. name, fs = three,
        overlays = { three, two }, lowest = deep }
    end
    return list
  end

  local function commit_all(kinds, trace)
    local wanted
    for _, k in ipairs(kinds) do
      local staged = describe_all(k.fs)
      for _, o in ipairs(k.overlays) do
        local ok, err = o:commit()
        assert(ok, ("%s\n%s: commit: %s"):format(trace, k.name, tostring(err)))
      end
      local done = describe_all(k.lowest)
      assert(staged == done,
        ("%s\n%s: staged %s\ncommitted %s"):format(trace, k.name, staged, done))
      wanted = wanted or done
      assert(done == wanted, ("%s\n%s: has %s\nnot %s"):format(trace, k.name, done, wanted))
    end
  end

  it("gives the same answers to the same work", function()
    math.randomseed(SEED)
    local seen = {}
    for round = 1, ROUNDS do
      local kinds = make_all()
      local trace = { ("seed %d, round %d:"):format(SEED, round) }
      for step = 1, STEPS do
        local name, f = random_step()
        local wanted
        trace[#trace + 1] = name
        for _, k in ipairs(kinds) do
          local got = answer(f, k.fs)
          wanted = wanted or got
          seen[got] = true
          assert(got == wanted, ("%s\n%s: %s, but %s: %s"):format(table.concat(trace, "\n"),
            k.name, got, kinds[1].name, wanted))
        end
        if step % 9 == 0 or step == STEPS then
          trace[#trace + 1] = "commit"
          commit_all(kinds, table.concat(trace, "\n"))
        end
      end
      for _, k in ipairs(kinds) do
        for _, o in ipairs(k.overlays) do
          o:close()
        end
        k.lowest:close()
      end
    end
    for _, reason in ipairs { "not_found", "not_a_file", "not_a_folder", "exists", "no_match",
      "several_matches" } do
      assert.truthy(seen["refused: " .. reason], reason)
    end
  end)

  it("has a file in place of a folder, and a folder in place of a file, in one commit", function()
    for _, k in ipairs(make_all()) do
      local below = k.lowest
      assert(below:write("d/x", "1"))
      assert(below:write("f", "2"))
      local fs = #k.overlays > 0 and k.fs or below:overlay()
      assert(fs:delete("d", { recursive = true }))
      assert(fs:write("d", "a file"))
      assert(fs:delete("f"))
      assert(fs:write("f/in/it", "a folder"))
      assert.equal("d=a file f/ f/in/ f/in/it=a folder", describe_all(fs))
      for _, o in ipairs(#k.overlays > 0 and k.overlays or { fs }) do
        assert(o:commit())
      end
      assert.equal("d=a file f/ f/in/ f/in/it=a folder", describe_all(below))
    end
  end)

  it("notices what others put into a folder that a file is to replace", function()
    for _, make in ipairs { memory, host } do
      local fs = make()
      fs:write("d/x", "1")
      local o = fs:overlay()
      o:delete("d", { recursive = true })
      o:write("d", "a file")
      fs:write("d/y", "2")
      local ok, err = o:commit()
      assert.is_nil(ok)
      assert.equal("conflict", err.reason)
      assert.equal("d/ d/x=1 d/y=2", describe_all(fs))
    end
  end)

  it("says not_a_folder of a path below a file", function()
    for _, k in ipairs(make_all()) do
      local fs = k.fs
      fs:write("f", "x")
      for _, call in ipairs { "read", "stat", "exists", "list", "delete", "mkdir", "lines" } do
        local got, err = fs[call](fs, "f/below/it")
        assert.is_nil(got)
        assert.equal("not_a_folder", err.reason, k.name .. ": " .. call)
      end
      for _, call in ipairs { "write", "append" } do
        assert.equal("not_a_folder", select(2, fs[call](fs, "f/x", "y")).reason, k.name)
      end
      assert.equal("not_a_folder", select(2, fs:edit("f/x", "y", "z")).reason, k.name)
      assert.equal("not_a_folder", select(2, fs:rename("f/x", "y")).reason, k.name)
      assert.equal("exists", select(2, fs:rename("f", "f/x/y")).reason, k.name) -- into itself
    end
  end)
end)
