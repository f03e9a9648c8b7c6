-- ah.watch: reports of files that are created, changed, removed and moved, and their batches;
-- watches of one file; waiting, functions that fail, closing, limits. All changes before the first
-- wait are one batch.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local descriptors = require "support.descriptors"

local PATIENCE = 20 -- seconds; for a busy machine

local root

local function sh(text, ...)
  assert(os.execute(("cd '%s' && %s"):format(root, text:format(...))))
end

local function write(name, text)
  local file <close> = assert(io.open(root .. "/" .. name, "w"))
  file:write(text or "text")
end

-- Returns "kind path" or "kind path < from" for each change, below root; sorted.
local function told(changes)
  local lines = {}
  for i, c in ipairs(assert(changes, "nothing was told")) do
    assert.equal(root, c.path:sub(1, #root))
    lines[i] = c.kind .. " " .. c.path:sub(#root + 2)
      .. (c.from and " < " .. c.from:sub(#root + 2) or "")
  end
  table.sort(lines)
  return table.concat(lines, ", ")
end

local function error_of(...)
  local ok, err = pcall(...)
  assert.is_false(ok)
  assert.equal("usage", err.code)
  return err.message
end

describe("ah.watch", function()
  before_each(function()
    root = os.tmpname()
    os.remove(root)
    assert(os.execute("mkdir " .. root))
  end)

  after_each(function()
    os.execute(("rm -rf '%s'"):format(root))
    command.tidy()
  end)

  it("tells what is created, changed and removed in a folder", function()
    write "old"
    local w <close> = assert(ah.watch(root, nil, { quiet = 0.01 }))
    write "new"
    write("old", "other")
    sh "mkdir folder && ln -s old link"
    assert.equal("changed old, created folder, created link, created new", told(w:next(PATIENCE)))
    os.remove(root .. "/old")
    sh "rmdir folder"
    assert.equal("removed folder, removed old", told(w:next(PATIENCE)))
    assert.is_nil(w:next(0))
  end)

  it("loses nothing that happens before the script first waits", function()
    local w <close> = assert(ah.watch(root))
    for i = 1, 500 do
      write("f" .. i)
    end
    local seen = 0
    while seen < 500 do
      for _, c in ipairs(assert(w:next(PATIENCE))) do
        assert.equal("created", c.kind)
        seen = seen + 1
      end
    end
    assert.equal(500, seen)
  end)

  it("tells the outcome, not the steps", function()
    write "kept"
    local w <close> = assert(ah.watch(root, nil, { quiet = 0.01 }))
    write "passing"
    os.remove(root .. "/passing")
    write "temporary"
    sh "mv temporary kept; mv kept away; mv away kept"
    write "back"
    os.remove(root .. "/back")
    write "back"
    assert.equal("changed kept, created back", told(w:next(PATIENCE)))
  end)

  it("tells nothing where nothing has become of it", function()
    local w <close> = assert(ah.watch(root, nil, { quiet = 0.01 }))
    write "passing"
    os.remove(root .. "/passing")
    assert.is_nil(w:next(0.2))
  end)

  it("tells of a move onto another, and of what was written to on the way, as no move", function()
    write "a"
    write "b"
    write "c"
    local w <close> = assert(ah.watch(root, nil, { quiet = 0.01 }))
    sh "mv a b; mv c d; echo 2 > d"
    assert.equal("changed b, created d, removed a, removed c", told(w:next(PATIENCE)))
  end)

  it("tells of moves, in, out and within", function()
    write "a"
    write "b"
    write "c"
    local outside = os.tmpname()
    local w <close> = assert(ah.watch(root, nil, { quiet = 0.01 }))
    sh("mv a a2; mv b b2; mv b2 b3; mv %s in; mv c %s", outside, outside)
    assert.equal("created in, moved a2 < a, moved b3 < b, removed c", told(w:next(PATIENCE)))
    os.remove(outside)
  end)

  describe("of a folder with all below", function()
    local function watch()
      return assert(ah.watch(root, nil, { recursive = true, quiet = 0.01 }))
    end

    it("knows what is there, and what is in folders that come", function()
      sh "mkdir -p a/b; echo 1 > a/b/f"
      local w <close> = watch()
      sh "echo 2 > a/b/f; mkdir -p x/y/z; echo 1 > x/y/z/g; echo 1 > x/h"
      assert.equal("changed a/b/f, created x, created x/h, created x/y, created x/y/z, "
        .. "created x/y/z/g", told(w:next(PATIENCE)))
      sh "echo 2 > x/y/z/g"
      assert.equal("changed x/y/z/g", told(w:next(PATIENCE)))
    end)

    it("follows folders that are renamed", function()
      sh "mkdir -p a/b; echo 1 > a/b/f; echo 1 > a/g"
      local w <close> = watch()
      sh "mv a c; echo 2 > c/b/f"
      assert.equal("changed c/b/f, moved c < a", told(w:next(PATIENCE)))
      sh "mkdir d"
      assert.equal("created d", told(w:next(PATIENCE)))
      sh "mv c/b d/e; echo 1 > d/e/new; rm d/e/f"
      assert.equal("created d/e/new, moved d/e < c/b, removed c/b/f",
        told(w:next(PATIENCE)))
      sh "echo 2 > d/e/new; rm -r c"
      assert.equal("changed d/e/new, removed c, removed c/g", told(w:next(PATIENCE)))
    end)

    it("tells of what is in a renamed folder where another has taken its place", function()
      sh "mkdir -p a/b c; echo 1 > a/b/f"
      local w <close> = watch()
      sh "mv -T a c"
      assert.equal("changed c, created c/b, created c/b/f, removed a, removed a/b, removed a/b/f",
        told(w:next(PATIENCE)))
      sh "mv c d; mkdir c"
      assert.equal("changed c, created d, moved d/b < c/b", told(w:next(PATIENCE)))
    end)

    it("lets go of folders that are moved away, and takes in those that come", function()
      sh "mkdir -p a/b; echo 1 > a/b/f"
      local outside = os.tmpname()
      os.remove(outside)
      local w <close> = watch()
      sh("mv a %s", outside)
      assert.equal("removed a, removed a/b, removed a/b/f", told(w:next(PATIENCE)))
      sh("echo 2 > %s/b/f", outside)
      assert.is_nil(w:next(0.2))
      sh("mv %s z", outside)
      assert.equal("created z, created z/b, created z/b/f", told(w:next(PATIENCE)))
      sh "echo 3 > z/b/f"
      assert.equal("changed z/b/f", told(w:next(PATIENCE)))
    end)

    it("follows no links", function()
      local outside = os.tmpname()
      os.remove(outside)
      sh("mkdir %s && ln -s %s link && ln -s . self", outside, outside)
      local w <close> = watch()
      sh("echo 1 > link/f; ln -s %s other; echo 1 > other/g", outside)
      assert.equal("created other", told(w:next(PATIENCE)))
      sh("rm -r %s", outside)
    end)

    it("ends with it", function()
      sh "mkdir -p top/a; echo 1 > top/a/f"
      local w <close> = assert(ah.watch(root .. "/top", nil, { recursive = true, quiet = 0.01 }))
      sh "rm -r top"
      assert.equal("removed top, removed top/a, removed top/a/f", told(w:next(PATIENCE)))
      assert.is_nil(w:next())
      for _ in w:changes() do
        error "there is no more"
      end
    end)

    it("knows what there is after random steps", function()
      local seed = tonumber(os.getenv "WATCH_SEED" or 7)
      local names = { "a", "b", "c", "a/b", "a/c", "b/a", "c/a", "a/b/c", "b/a/c" }
      local function random(n)
        seed = (seed * 1103515245 + 12345) & 0x7fffffff
        return (seed >> 8) % n + 1
      end
      local function listing()
        local pipe <close> = assert(io.popen(("cd %s && find . -mindepth 1"):format(root)))
        local set = {}
        for line in pipe:lines() do
          set[line:sub(3)] = true
        end
        return set
      end
      local w <close> = assert(ah.watch(root, nil, { recursive = true, quiet = 0.01 }))
      local known = {}
      -- Applies a reported change to the set of paths that were known before it.
      local function apply(c)
        local path, from = c.path:sub(#root + 2), c.from and c.from:sub(#root + 2)
        if c.kind == "moved" then
          local moved = {}
          for name in pairs(known) do
            local below = name:sub(1, #from + 1) == from .. "/"
            local rest = (below or name == from) and name:sub(#from + 1)
            moved[rest and path .. rest or name] = true
          end
          known = moved
          known[path] = true
        elseif c.kind == "removed" then
          for name in pairs(known) do
            if name == path or name:sub(1, #path + 1) == path .. "/" then
              known[name] = nil
            end
          end
        else
          known[path] = true
        end
      end
      for round = 1, tonumber(os.getenv "WATCH_ROUNDS" or 25) do
        local steps = {}
        for i = 1, random(4) do
          local name, other = names[random(#names)], names[random(#names)]
          local step = ({ "mkdir -p %s", "rm -rf %s", "mkdir -p $(dirname %s); touch %s",
            "rm -rf %s; mkdir -p $(dirname %s)", "mv -T %s %s" })[random(5)]
          steps[i] = step:format(name, step:find "mv" and other or name)
        end
        sh("{ %s; } 2>/dev/null || :", table.concat(steps, "; "))
        write("mark", tostring(round))
        local seen = false
        while not seen do
          for _, c in ipairs(assert(w:next(PATIENCE))) do
            apply(c)
            seen = seen or c.path == root .. "/mark"
          end
        end
        assert.same(listing(), known, ("round %d: %s"):format(round, table.concat(steps, "; ")))
      end
    end)
  end)

  describe("of a file", function()
    local w
    before_each(function()
      write "f"
      w = assert(ah.watch(root .. "/f", nil, { quiet = 0.01 }))
    end)
    after_each(function() w:close() end)

    it("survives every way in which editors save", function()
      for _, way in ipairs { "echo 2 > f", "echo 3 > .f.swp && mv .f.swp f",
        "mv f f~ && echo 4 > f", "ln f f~~ && rm f && echo 5 > f", "cp f t && mv -f t f",
        "rm f && echo 6 > f", "echo 7 >> f", ": > f" } do
        sh("%s", way)
        assert.equal("changed f", told(w:next(PATIENCE)), way)
      end
    end)

    it("tells that it is removed, and that it is back", function()
      sh "rm f"
      assert.equal("removed f", told(w:next(PATIENCE)))
      sh "echo 1 > f"
      assert.equal("created f", told(w:next(PATIENCE)))
      sh "mv f g"
      assert.equal("removed f", told(w:next(PATIENCE)))
      sh "mv g f"
      assert.equal("created f", told(w:next(PATIENCE)))
    end)

    it("tells nothing of others", function()
      sh "echo 1 > g; rm g; mkdir h; echo 1 > ff"
      assert.is_nil(w:next(0.2))
    end)

    it("ends with its folder", function()
      sh "mkdir d; echo 1 > d/g"
      local inner <close> = assert(ah.watch(root .. "/d/g"))
      sh "mv d e"
      assert.equal("removed d/g", told(inner:next(PATIENCE)))
      assert.is_nil(inner:next())
    end)

    it("tells the path that was given", function()
      sh "ln -s f link"
      local linked <close> = assert(ah.watch(root .. "//./link"))
      sh "echo 9 > f"
      assert.equal(root .. "//./link", linked:next(PATIENCE)[1].path)
    end)
  end)

  it("calls a function with each batch while the script waits, held or not", function()
    local batches = {}
    local w = assert(ah.watch(root, function(changes) batches[#batches + 1] = told(changes) end))
    local weak = setmetatable({ w }, { __mode = "v" })
    w = nil
    collectgarbage()
    collectgarbage()
    assert.is_not_nil(weak[1], w)
    for i = 1, 2 do
      write("f" .. i)
      local patience = ah.now() + PATIENCE
      while #batches < i and ah.now() < patience do
        ah.sleep(0.01)
      end
    end
    assert.same({ "created f1", "created f2" }, batches)
    assert.matches("calls its function", error_of(weak[1].next, weak[1]))
    weak[1]:close()
    write "f3"
    ah.sleep(0.2)
    assert.equal(2, #batches)
    collectgarbage()
    collectgarbage()
    assert.is_nil(weak[1])
  end)

  it("goes on after a function that raises, waits, never ends or closes the watch", function()
    local called, before = 0, ahtest.work_limit(0.05)
    finally(function() ahtest.work_limit(before) end)
    local w
    local ways = { function() error "on purpose" end, function() ah.sleep(1) end,
      function() while true do end end, function() w:close() end }
    w = assert(ah.watch(root, function()
      called = called + 1
      ways[called]()
    end))
    for i = 1, 4 do
      write("f" .. i)
      local patience = ah.now() + PATIENCE
      while called < i and ah.now() < patience do
        ah.sleep(0.01)
      end
      assert.equal(i, called)
    end
    assert.equal("watch (closed)", tostring(w))
  end)

  it("warns of what its function raises", function()
    local r = command.script(([[
      local ah = require "agenthost"
      local called
      ah.watch("%s", function() called = true error "on purpose" end)
      io.open("%s/f", "w"):close()
      while not called do ah.sleep(0.01) end]]):format(root, root))
    assert.equal(0, r.code)
    assert.matches("the function of ah.watch %(/tmp/[^\n:]*:3%) failed: on purpose\n", r.err)
  end)

  it("lets other tasks go on while a handler waits, and ends with the time of its call", function()
    local w <close> = assert(ah.watch(root))
    local seen, results = nil, {}
    local wait = ah.tool { name = "wait", description = "Waits.", parallel = true,
      handler = function()
        seen = told(w:next())
        return seen
      end }
    local make = ah.tool { name = "make", description = "Makes.", parallel = true,
      handler = function() write "made" end }
    local late = ah.tool { name = "late", description = "Waits too long.", timeout = 0.05,
      handler = function() return w:next() and "told" end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "wait" }, { name = "make" } } },
      { calls = { { name = "late" } } }, "done" }, tools = { wait, make, late }, "x",
      log = function() end, on = { tool_invoked = function(e) results[e.name] = e.success end } })
    assert.equal("created made", seen)
    assert.same({ wait = true, make = true, late = false }, results)
    write "after"
    assert.equal("created after", told(w:next(PATIENCE)))
  end)

  it("refuses two that wait for one watch", function()
    local w <close> = assert(ah.watch(root))
    local second
    local wait = ah.tool { name = "wait", description = "Waits.", parallel = true,
      handler = function() return w:next(5) == nil end }
    local other = ah.tool { name = "other", description = "Waits, too.", parallel = true,
      handler = function()
        second = error_of(w.next, w)
        w:close()
      end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "wait" }, { name = "other" } } },
      "done" }, tools = { wait, other }, "x" })
    assert.matches("another task waits for this watch already", second)
  end)

  it("is closed once, by whatever way, and then tells nothing", function()
    local outer
    do
      local w <close> = assert(ah.watch(root))
      outer = w
      write "f"
    end
    assert.is_nil(outer:next())
    outer:close()
    outer:close()
    assert.equal("watch (closed)", tostring(outer))
    local ok, err = pcall(function() return outer.stop end)
    assert.is_false(ok)
    assert.matches("watch: unknown field 'stop'; there are changes, close, next", tostring(err))
  end)

  it("tells that more has happened than it could tell, and goes on", function()
    local w <close> = assert(ah.watch(root, nil, { max = 20, quiet = 0.01, recursive = true }))
    sh "mkdir d; for i in $(seq 40); do echo 1 > f$i; done"
    local changes = w:next(PATIENCE)
    assert.equal("overflow", changes[1].kind)
    assert.equal(root, changes[1].path)
    sh "rm -f f*"
    while w:next(0.2) do end
    write "after"
    assert.equal("created after", told(w:next(PATIENCE)))
  end)

  it("tells that the system has lost events, and knows afterwards what there is", function()
    local limit <close> = assert(io.open "/proc/sys/fs/inotify/max_queued_events")
    local queue = tonumber(limit:read "l")
    if queue > 40000 then
      return pending "the queue of events is too long here"
    end
    local w <close> = assert(ah.watch(root, nil, { recursive = true, max = 200000 }))
    for i = 1, queue // 2 + 100 do
      write("f" .. i)
      os.remove(root .. "/f" .. i)
    end
    sh "mkdir -p late; echo 1 > late/f"
    assert.equal("overflow", w:next(PATIENCE)[1].kind)
    while w:next(0.2) do end
    sh "echo 2 > late/f"
    assert.equal("changed late/f", told(w:next(PATIENCE)))
  end)

  it("keeps no more descriptors than watches", function()
    local before = descriptors()
    for _ = 1, 50 do
      local w <close> = assert(ah.watch(root))
      assert.is_nil(w:next(0))
      assert.is_nil((ah.watch(root .. "/none")))
      ah.watch(root)
      collectgarbage()
    end
    collectgarbage()
    assert.equal(before, descriptors())
  end)

  it("refuses what it cannot watch", function()
    local w, err = ah.watch(root .. "/none")
    assert.is_nil(w)
    assert.is_true(err:is "usage")
    assert.matches("none' cannot be watched: No such file or directory", err.message, 1, true)
    sh "mkdir a; touch a/1 a/2 a/3"
    w, err = ah.watch(root, nil, { recursive = true, max = 3 })
    assert.is_nil(w)
    assert.matches("holds more than 3 files and folders", err.message, 1, true)
    assert(ah.watch(root, nil, { recursive = true, max = 4 })):close()
    assert.matches("path must be a string, found number", error_of(ah.watch, 1))
    assert.matches("the path must have 1 to 4095 bytes", error_of(ah.watch, ""))
    assert.matches("the path must have 1 to 4095 bytes", error_of(ah.watch, "a\0b"))
    assert.matches("the second argument must be a function", error_of(ah.watch, root, {}))
    assert.matches("the options must be a table", error_of(ah.watch, root, nil, true))
    assert.matches("did you mean 'recursive'", error_of(ah.watch, root, nil, { recursiv = true }))
    for _, bad in ipairs { { quiet = -1 }, { quiet = 61 }, { max = 0 }, { max = 1e9 },
      { recursive = 1 }, { quiet = "1" } } do
      error_of(ah.watch, root, nil, bad)
    end
    local good <close> = assert(ah.watch(root))
    assert.matches("timeout must be a number of seconds", error_of(good.next, good, "1"))
    assert.matches("timeout must be a number of seconds", error_of(good.next, good, -1))
    assert.matches("timeout must be a number of seconds", error_of(good.next, good, 0 / 0))
  end)

  it("names the setting of the system that allows no more", function()
    local asan = os.getenv "AGENTHOST_ASAN"
    local preload = (asan and asan .. ":" or "") .. command.BINARY:gsub("agenthost$", "")
      .. "older_kernel.so"
    for code, setting in pairs { EMFILE = "max_user_instances", ENOSPC = "max_user_watches" } do
      local r = command.shell(("INOTIFY=%s LD_PRELOAD=%s $A -e %s"):format(code,
        command.quote(preload),
        command.quote(('print(require("agenthost").watch("%s"))'):format(root))))
      assert.matches("^nil\tusage: '" .. root .. "' cannot be watched: the system allows no more "
        .. "watches.*sysctl fs.inotify." .. setting, r.out)
    end
  end)
end)
