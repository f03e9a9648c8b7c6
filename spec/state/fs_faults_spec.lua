-- Faults of the disk: each system call fails, links are swapped while files are read and written,
-- and a process is killed while it writes. Done by fs_child.lua. FS_KILLS processes that commit
-- sets of changes are killed at random (default 10); others are killed before every n-th of their
-- system calls, where FS_EVERY is n (default 12). FS_RACES is the number of rounds of the race
-- (default: for some time).
local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"

describe("a folder of the machine", function()
  local dir

  before_each(function() -- in memory if possible, as syncing to a disk takes time
    local pipe <close> = assert(io.popen("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d"))
    dir = assert(pipe:read("l"))
  end)
  after_each(function() os.execute(("rm -rf '%s'"):format(dir)) end)

  local function shell(command)
    assert(os.execute(("cd '%s' && %s"):format(dir, command)))
  end

  -- Returns a pipe: the id of the process, then its output.
  local function start(mode, more)
    local command = "echo $$; exec lua5.4 spec/support/fs_child.lua '%s' %s '%s' '%s' 2>&1"
    return assert(io.popen(command:format(BUILD, mode, dir, more or "")))
  end

  local function child(mode, more)
    local pipe <close> = start(mode, more)
    assert(pipe:read("l"))
    return pipe:read("a")
  end

  local function kill_writer(after)
    local pipe <close> = start "writer"
    local pid = assert(pipe:read("l"))
    assert.equal("ready", pipe:read("l"))
    os.execute(("sleep %.3f; kill -9 %d"):format(after, pid))
  end

  local function read_file(name)
    local f <close> = assert(io.open(dir .. "/" .. name))
    return f:read("a")
  end

  it("is as before, or as wished, whichever call fails", function()
    local said = child("faults")
    assert.truthy(said:find("^faults\t%d+\n$"), said)
  end)

  for _, kernel in ipairs { "new", "old" } do
    it("is not left while folders and files are swapped with links: kernel " .. kernel, function()
      shell("mkdir -p root/d/e out/e && ln -s ../out root/l && echo inside > root/d/f")
      shell("printf outside > out/f && printf outside > out/e/f && echo inside > root/d/e/f")
      shell("echo inside > root/p && ln -s ../out/f root/q")
      local said = child("race", (os.getenv "FS_RACES" or "0") .. " " .. kernel)
      assert.truthy(said:find("^race\t%d+\t%d+\n$"), said)
    end)
  end

  for _, kernel in ipairs { "new", "old" } do
    it("has all of a set of changes or none, whenever it is killed: kernel " .. kernel, function()
      local said = child("kills", (os.getenv "FS_EVERY" or "12") .. " " .. kernel)
      assert.truthy(said:find("^kills\t%d+\t%d+\n$"), said)
    end)
  end

  it("has all of a set of changes or none, killed at random", function()
    local said = child("random_kills", os.getenv "FS_KILLS" or "10")
    assert.truthy(said:find("^random_kills\t"), said)
  end)

  it("has whole files whenever a writer is killed", function()
    local seen = {}
    shell("printf a > f && printf a > g && head -c 50000 /dev/zero | tr '\\0' a > h")
    for i = 1, 25 do
      kill_writer(i * 7 % 30 / 1000)
      for _, name in ipairs { "f", "g", "h" } do
        local text = read_file(name)
        local first = text:sub(1, 1)
        assert.equal("", (text:gsub("^" .. first .. "+$", "")))
        assert.truthy(#text == 1 or #text == (name == "h" and 50000 or first == "a" and 200000
          or 100000), #text)
        seen[name .. first] = true
      end
    end
    assert.truthy(seen.fa and seen.fb and seen.ha and seen.hb, "nothing was written")
  end)
end)
