--- Builds unusual trees and calls every tool and method on each, in a process of its own. Raises if
-- a call raises (instead of returning nil and an error), shows files outside, or takes too long; a
-- crash ends the process.
--
--   lua5.4 spec/support/hostile_tree.lua BUILD DIR SEED ROUNDS
--
-- DIR is an empty folder. Prints "trees<TAB>rounds<TAB>calls<TAB>left out".
local build, dir, seed, rounds = ...
package.cpath = build .. "/?.so"

local ahtest = require "ahtest"
local ah = assert(package.loadlib(build .. "/ahtest.so", "luaopen_agenthost"))()
package.loaded.agenthost = ah

math.randomseed(assert(math.tointeger(tonumber(seed))))
local SECRET = "outside-secret"
local LONGEST = 25 -- seconds of a call: two limits of ten seconds, and a slow machine

local root, out = dir .. "/root", dir .. "/out"

local function shell(command, ...)
  assert(os.execute(command:format(...)))
end

local function quoted(path)
  return "'" .. path:gsub("'", "'\\''") .. "'"
end

local function any(list)
  return list[math.random(#list)]
end

-- -- trees ----------------------------------------------------------------------------------

local ODD = { "two\nlines", "bad\xff\xfe", "\xc3", "\x01", "tab\t", "'", "\"", "$(touch x)", "-rf",
  "*", "[a", "{a,b",
  "\\", "~", " ", "e\u{301}", "\u{202e}txt", ".agenthost-1-2-3.tmp", ".agenthost-x.tmp",
  ".git", "...", "\xed\xa0\x80", "\xf4\x90\x80\x80", "nul?", "a:b", "CON" }

local function name_of(n)
  return (any { "a", "b", "z", "\u{e9}", "\xff", "." }):rep(255):sub(1, n):gsub("^%.+$", "x")
end

-- Parts of a tree: each gets an existing folder and adds something to it.
local parts = {
  tower = function(at)
    ahtest.fs_tower(at, name_of(math.random(255)), math.random(600), "x " .. SECRET)
  end,
  long = function(at)
    ahtest.fs_tower(at, ("l"):rep(250 + math.random(5)), math.random(3, 8), "x")
  end,
  odd = function(at)
    for _ = 1, math.random(8) do
      local f = io.open(at .. "/" .. any(ODD), "w")
      if f then
        f:write("x\n"):close()
      end
    end
  end,
  links = function(at)
    for _, to in ipairs { ".", "..", "/", out, out .. "/f", "loop", "nowhere", "/proc/self/root",
      "/dev/zero" } do
      shell("ln -sT %s %s/loop%d 2>/dev/null || true", quoted(to), quoted(at), math.random(99))
    end
    shell("ln -sT loop %s/loop 2>/dev/null || true", quoted(at))
  end,
  special = function(at)
    ahtest.fs_make(at .. "/fifo" .. math.random(9), "fifo")
    ahtest.fs_make(at .. "/sock" .. math.random(9), "socket")
    ahtest.fs_make(at .. "/sparse" .. math.random(9), "sparse")
  end,
  many = function(at)
    shell("cd %s && seq -f 'm%%g' 1 %d | xargs touch", quoted(at), math.random(3000))
  end,
  wide = function(at)
    shell("cd %s && seq -f 'd%%g/e' 1 %d | xargs mkdir -p", quoted(at), math.random(300))
  end,
  closed = function(at)
    local name = at .. "/closed" .. math.random(99)
    shell("mkdir -p %s/in && echo x > %s/in/f && chmod %s %s", quoted(name), quoted(name),
      any { "000", "100", "400", "444", "111", "333" }, quoted(name))
  end,
  mode = function(at)
    local name = at .. "/mode" .. math.random(99)
    shell("echo x > %s && chmod %s %s", quoted(name), any { "000", "200", "400", "4755" },
      quoted(name))
  end,
  large = function(at)
    shell("head -c 9000000 /dev/zero | tr '\\0' x > %s/large", quoted(at))
  end,
}

local kinds = {}
for name in pairs(parts) do
  kinds[#kinds + 1] = name
end
table.sort(kinds)

local function make_tree()
  local r = quoted(root)
  shell("chmod -R u+rwx %s 2>/dev/null; rm -rf %s; mkdir -p %s/d/e", r, r, r)
  shell("echo 'x inside' > %s/f; cp %s/f %s/d/g", r, r, r)
  local made = {}
  for i = 1, math.random(4) do
    made[i] = any(kinds)
    parts[made[i]](root .. any { "", "/d", "/d/e" })
  end
  return table.concat(made, " ")
end

-- -- calls ----------------------------------------------------------------------------------

local function paths(fs)
  local list = { "f", "d", "d/g", "d/e", "nowhere/x", "F", "loop", "d/loop1/f", "d/fifo1", "" }
  for _, at in ipairs { "", "d", "d/e" } do
    for i, e in ipairs(fs:list(at, { max = 30 }) or {}) do
      list[#list + 1] = (at == "" and "" or at .. "/") .. e.name .. (i % 4 == 0 and "/f" or "")
    end
  end
  return list
end

local METHODS = {
  function(fs, p) return fs:read(p) end,
  function(fs, p) return fs:read(p, { offset = 5, limit = 10 }) end,
  function(fs, p) return fs:lines(p, { max = 3 }) end,
  function(fs, p) return fs:stat(p) end,
  function(fs, p) return fs:exists(p) end,
  function(fs, p) return fs:list(p) end,
  function(fs, p) return fs:glob("**/*", { path = p }) end,
  function(fs, p) return fs:glob("**/.*/**", { path = p }) end,
  function(fs, p) return fs:grep("x", { path = p }) end,
  function(fs, p) return fs:grep("x.*s", { path = p, glob = "**", context = 2 }) end,
  function(fs, p) return fs:write(p, "new") end,
  function(fs, p) return fs:write(p .. "/new", "new") end,
  function(fs, p) return fs:append(p, "more") end,
  function(fs, p) return fs:edit(p, "x", "y") end,
  function(fs, p) return fs:mkdir(p) end,
  function(fs, p) return fs:rename(p, "moved" .. math.random(9)) end,
  function(fs, p) return fs:rename("f", p, { replace = true }) end,
  function(fs, p) return fs:delete(p) end,
  function(fs, p) return fs:delete(p, { recursive = true }) end,
}

local TOOLS = {
  function(p) return { name = "read_file", arguments = { path = p } } end,
  function(p) return { name = "read_file", arguments = { path = p, pattern = "x" } } end,
  function(p) return { name = "read_file", arguments = { path = p, tail = 2 } } end,
  function(p) return { name = "write_file", arguments = { path = p, content = "new" } } end,
  function(p) return { name = "edit_file", arguments = { path = p, old = "x", new = "y" } } end,
  function(p) return { name = "list_files", arguments = { path = p } } end,
  function(p) return { name = "list_files", arguments = { path = p, glob = "**/*" } } end,
  function(p) return { name = "grep", arguments = { pattern = "x", path = p } } end,
}

local calls, left_out = 0, 0

local function look(what, ...)
  local got, err = ...
  if type(got) == "table" then
    left_out = left_out + (got.left_out or 0)
    for _, item in ipairs(got) do
      assert(not tostring(item.text):find("^real " .. SECRET), "shown: what is outside")
    end
  elseif type(got) == "string" then
    assert(not got:find("real " .. SECRET, 1, true), "shown: what is outside")
  elseif got == nil then
    assert(type(err) == "table" and err.reason and #err.message > 0, what .. ": no words")
  end
end

local function timed(what, f, ...)
  local from = ah.now()
  look(what, f(...))
  calls = calls + 1
  assert(ah.now() - from < LONGEST, what .. ": took too long")
end

local function use_methods(fs)
  for _ = 1, 40 do
    local n = math.random(#METHODS)
    timed("method " .. n, METHODS[n], fs, any(paths(fs)))
  end
  local o <close> = fs:overlay()
  for _ = 1, 15 do
    local n = math.random(#METHODS)
    timed("method " .. n .. " of an overlay", METHODS[n], o, any(paths(o)))
  end
  timed("commit", o.commit, o)
end

local function use_tools(fs)
  local turns, list = {}, paths(fs)
  for i = 1, 8 do
    turns[i] = { calls = { TOOLS[i](any { any(list), "d", "f", "d/g" }) } }
  end
  turns[#turns + 1] = "done"
  timed("tools", function()
    local reply = assert(ah.run { "go", model = ah.scripted(turns), resources = { filesystem = fs },
      tools = ah.builtin { "read_file", "write_file", "edit_file", "list_files", "grep" } })
    for _, m in ipairs(reply.messages) do
      assert(not (m.content or ""):find("real " .. SECRET, 1, true), "told: what is outside")
    end
    return true
  end)
end

local function check_outside()
  local f <close> = assert(io.open(out .. "/f"))
  assert(f:read("a") == "real " .. SECRET, "changed outside")
  assert(#ahtest.fs_names(out) == 1, "made outside")
end

shell("mkdir %s && printf 'real %s' > %s/f", quoted(out), SECRET, quoted(out))
for round = 1, assert(math.tointeger(tonumber(rounds))) do
  local made = make_tree()
  local ok, why = pcall(function()
    local fs <close> = assert(ah.filesystem { root = root, sync = false })
    use_tools(fs)
    local open = ahtest.fs_open()
    use_methods(fs)
    assert(ahtest.fs_open() == open, "a descriptor is left open")
    check_outside()
  end)
  if not ok then
    error(("seed %s, tree %d (%s): %s"):format(seed, round, made, why), 0)
  end
end
shell("chmod -R u+rwx %s 2>/dev/null; rm -rf %s", quoted(root), quoted(root))
print("trees", rounds, calls, left_out)
