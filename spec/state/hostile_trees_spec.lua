-- Unusual folders: names of any length and bytes, towers deeper than a path can be, loops, pipes,
-- sockets, sparse files, closed folders. Every tool and method answers in limited time and on a
-- small stack, and says what it left out. Made by support/hostile_tree.lua. HOSTILE_TREES is the
-- number of trees (default 12), HOSTILE_SEED the seed (default: the time).
local ah = require "agenthost"
local BUILD = os.getenv("AGENTHOST_BUILD") or "./build"
local ROUNDS = os.getenv("HOSTILE_TREES") or "12"
local SEED = os.getenv("HOSTILE_SEED") or tostring(os.time())
local STACK = os.getenv("AGENTHOST_ASAN") and 2048 or 256 -- KiB

describe("a hostile tree", function()
  local dir

  before_each(function()
    local pipe <close> = assert(io.popen("mktemp -d -p /dev/shm 2>/dev/null || mktemp -d"))
    dir = assert(pipe:read("l"))
  end)
  after_each(function() os.execute(("chmod -R u+rwx '%s'; rm -rf '%s'"):format(dir, dir)) end)

  local function shell(command)
    local pipe <close> = assert(io.popen(("(cd '%s' && %s) 2>&1"):format(dir, command)))
    return pipe:read("a")
  end

  local function child(before)
    local pipe <close> = assert(io.popen(
      ("ulimit -s %d; %s lua5.4 spec/support/hostile_tree.lua '%s' '%s' %s %s 2>&1"):format(
        STACK, before, BUILD, dir, SEED, ROUNDS)))
    return pipe:read("a")
  end

  it("ends no host, shows nothing outside, and takes a bounded time", function()
    local said = child ""
    assert.truthy(said:find("^trees\t"), said)
  end)

  it("ends no host of a user who may not read all of it", function()
    if shell("id -u") ~= "0\n" or shell("command -v setpriv") == "" then
      return pending("needs root and setpriv")
    end
    shell("chmod 777 .")
    local said = child "setpriv --reuid 65534 --regid 65534 --clear-groups"
    assert.truthy(said:find("^trees\t"), said)
  end)

  it("of names too long for a path hides nothing else, and says so", function()
    shell "mkdir d && echo x > d/f && echo x > z"
    shell(("n=%s; cd d; for i in 1 2 3 4 5 6; do mkdir $n; cd $n; done; echo x > f"):format(
      ("k"):rep(250)))
    local fs <close> = assert(ah.filesystem { root = dir })
    local found = assert(fs:grep("x"))
    assert.same({ "d/f", "z" }, { found[1].path, found[2].path })
    assert.equal(1, found.left_out)
    found = assert(fs:glob("**"))
    assert.same({ "d/f", "z", left_out = 1 }, found)
    local _, err = fs:read("d/F")
    assert.matches("did you mean 'd/f'", err.message)
    _, err = fs:delete("d", { recursive = true })
    assert.matches("no path can name", err.message)
    _, err = fs:rename("d", "e")
    assert.matches("no path can name", err.message)
    assert.equal("x\n", (fs:read("d/f")))
    local reply = assert(ah.run { "go", tools = ah.builtin { "grep", "list_files" },
      resources = { filesystem = fs }, model = ah.scripted {
        { calls = { { name = "grep", arguments = { pattern = "x" } },
          { name = "list_files", arguments = { glob = "**" } } } }, "done" } })
    for i = 3, 4 do
      assert.matches("1 entry left out: no path can name or reach it", reply.messages[i].content)
    end
  end)

  it("with every length of name is read as far as a path goes", function()
    for n = 1, 255, 9 do
      shell(("n=%s; mkdir %d && cd %d; for i in $(seq 40); do mkdir $n && cd $n; done"):format(
        ("n"):rep(n), n, n))
    end
    local fs <close> = assert(ah.filesystem { root = dir, max_depth = 64 })
    local found = assert(fs:glob("**"))
    assert.truthy(found.left_out > 20, found.left_out)
    for n = 1, 255, 9 do
      local path, depth = tostring(n), 0
      while depth < 40 and #path + 1 + n <= 1024 do
        path, depth = path .. "/" .. ("n"):rep(n), depth + 1
      end
      assert.equal("folder", assert(fs:stat(path)).type)
      assert(fs:write(path:sub(1, -3) .. "/f", "x"))
    end
  end)

  it("of names that are no text is counted", function()
    shell "touch \"$(printf 'bad\\377')\" \"$(printf 'two\\nlines')\" good"
    local fs <close> = assert(ah.filesystem { root = dir })
    local list = assert(fs:list())
    assert.same({ 1, 2 }, { #list, list.left_out })
    shell "mkdir d && touch \"$(printf 'd/bad\\377')\""
    local _, err = fs:delete("d")
    assert.equal("exists", err.reason)
  end)
end)
