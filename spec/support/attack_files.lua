--- Attempts against each promise of docs/reference/filesystem.md and
-- docs/reference/builtin_files.md, in a process of its own, by a user and on a kernel of the
-- caller's choice.
--
--   lua5.4 spec/support/attack_files.lua BUILD DIR KERNEL
--
-- KERNEL is "new", or "old" (no openat2, no renameat2). DIR is an empty folder. Each attempt gets a
-- fresh root in it, beside a folder that nothing may change or show. Prints "attacks<TAB>n", or
-- raises with the promise and the number of the attempt.
local build, dir, kernel = ...
package.cpath = build .. "/?.so"

local ahtest = require "ahtest"
local ah = assert(package.loadlib(build .. "/ahtest.so", "luaopen_agenthost"))()
package.loaded.agenthost = ah
ahtest.fs_old_kernel(kernel == "old")

local SECRET = "outside-secret"
local root, out

local function shell(command, ...)
  return assert(os.execute(("cd '%s' && umask 022 && { %s\n}"):format(root, command:format(...))))
end

local function output(command)
  local pipe <close> = assert(io.popen(("cd '%s' && %s"):format(root, command)))
  return pipe:read("a")
end

local function new_fs(fields)
  fields = fields or {}
  fields.root, fields.sync = root, false
  return assert(ah.filesystem(fields))
end

-- Asserts that a call returned nil and an error with one of these reasons.
local function refused(reasons, got, err)
  assert(got == nil, "it was done: " .. tostring(got))
  assert((" " .. reasons .. " "):find(" " .. tostring(err.reason) .. " ", 1, true),
    ("refused for %s, not for %s: %s"):format(tostring(err.reason), reasons, err.message))
end

local promises = {}
local function promise(name)
  local p = { name = name }
  promises[#promises + 1] = p
  return function(attempt)
    p[#p + 1] = attempt
  end
end

-- Returns all calls that take a path, by name; each returns the results of the call.
local function each_call(fs, path)
  return {
    read = function() return fs:read(path) end,
    lines = function() return fs:lines(path) end,
    stat = function() return fs:stat(path) end,
    exists = function() return fs:exists(path) end,
    list = function() return fs:list(path) end,
    glob = function() return fs:glob("*", { path = path }) end,
    grep = function() return fs:grep("o", { path = path }) end,
    write = function() return fs:write(path, "x") end,
    append = function() return fs:append(path, "x") end,
    edit = function() return fs:edit(path, "o", "x") end,
    mkdir = function() return fs:mkdir(path) end,
    delete = function() return fs:delete(path) end,
    ["delete all"] = function() return fs:delete(path, { recursive = true }) end,
    rename = function() return fs:rename(path, "elsewhere") end,
    ["rename to"] = function() return fs:rename("f", path, { replace = true }) end,
  }
end

local LOOKS = { read = true, lines = true, stat = true, exists = true, list = true, glob = true,
  grep = true }

-- Asserts that every call on the path is refused. The caller checks that nothing outside changes.
local function try_all(fs, path, reasons, only)
  for name, call in pairs(each_call(fs, path)) do
    if not only or only(name) then
      local ok, why = pcall(refused, reasons, call())
      assert(ok, ("%s %q: %s"):format(name, path, why))
    end
  end
end

-- -- nothing leads out ----------------------------------------------------------------------

local out_of = promise "nothing leads out"
for _, path in ipairs { "../out/f", "d/../../out/f", "/etc/passwd", "//etc", "./../out",
  "d/e/../../../out/f",
  "\xff", "a\nb", "a\0b", "..", ("x/"):rep(200) .. "y", ("n"):rep(256), ("n/"):rep(513) } do
  out_of(function() try_all(new_fs(), path, "bad_path") end)
  out_of(function() try_all(new_fs():overlay(), path, "bad_path") end)
end
for _, link in ipairs { "../out", "/", ".", "d", "..", "/proc/self/root", "/proc/self/cwd" } do
  out_of(function() -- a link in the middle of a path
    shell("ln -s %s l", link)
    for _, path in ipairs { "l/f", "l/out/f", "l/l/f", "l/d/f", "d/../l/f" } do
      try_all(new_fs(), path, "not_a_folder")
      try_all(new_fs():overlay(), path, "not_a_folder")
    end
  end)
end
for _, link in ipairs { "../out/f", "f", "gone", "l", "/dev/zero", "/proc/self/environ" } do
  out_of(function() -- a link at the end of a path
    shell("ln -s %s l", link)
    for _, fs in ipairs { new_fs(), new_fs():overlay() } do
      try_all(fs, "l", "not_a_file not_a_folder exists", function(name)
        return name ~= "stat" and name ~= "exists" and not name:find "delete"
      end)
      assert(fs:stat("l").type == "link")
    end
  end)
end
out_of(function() -- a recursive deletion, a walk and a rename ignore links
  shell "mkdir -p t/u && ln -s ../../out t/l && ln -s ../../../out/f t/u/l && echo o > t/u/g"
  local fs = new_fs()
  assert(#fs:grep(SECRET) == 0 and #fs:glob("**/f", { path = "t" }) == 0)
  refused("not_a_file", fs:rename("t", "s"))
  assert(fs:delete("t", { recursive = true }))
end)
out_of(function() -- a folder becomes a link between staging and commit
  local fs = new_fs()
  local o = fs:overlay()
  assert(o:write("d/new", "x") and o:append("d/f", "x") and o:delete("d/e", { recursive = true }))
  shell "mv d moved && ln -s ../out d"
  local ok = o:commit()
  assert(not ok, "committed through a link")
end)
out_of(function() -- a file becomes a link between staging and commit
  local o = new_fs():overlay()
  assert(o:write("f", "x"))
  shell "rm f && ln -s ../out/f f"
  o:commit()
end)
out_of(function() -- a write to a hard link leaves the other name's file unchanged
  if os.execute(("ln '%s/f' '%s/hard' 2>/dev/null"):format(out, root)) then
    local fs = new_fs()
    assert(fs:append("hard", "x") and fs:edit("hard", "x", "y"))
    local o = fs:overlay()
    assert(o:write("hard", "x") and o:write("g", "x") and o:commit())
  end
end)
out_of(function() -- temporary files that are links
  for _, name in ipairs { ".agenthost-commit-0.tmp", ".agenthost-commit-1.tmp",
    ".agenthost-t1-2-3.tmp",
    ".agenthost-s1-2-3-4.tmp" } do
    shell("ln -s ../out/f %s; ln -s ../out d/%s", name, name)
  end
  local fs = new_fs()
  fs:list()
  fs:list("d")
  local o = fs:overlay()
  assert(o:write("d/x", "x") and o:write("y", "x") and o:commit())
  assert(fs:delete("d", { recursive = true }))
end)

-- -- only regular files ------------------------------------------------------------------------

local regular = promise "only regular files are opened"
for _, kind in ipairs { "fifo", "socket" } do
  regular(function()
    assert(ahtest.fs_make(root .. "/s", kind))
    for _, fs in ipairs { new_fs(), new_fs():overlay() } do
      try_all(fs, "s", "not_a_file not_a_folder exists", function(name)
        return name ~= "stat" and name ~= "exists" and not name:find "delete"
      end)
      assert(fs:stat("s").type == "other" and #fs:grep("x") == 0)
    end
    assert(new_fs():delete "s")
  end)
end
regular(function()
  if os.execute(("mknod '%s/z' c 1 5 2>/dev/null"):format(root)) then
    refused("not_a_file", new_fs():read "z")
    refused("not_a_file", new_fs():write("z", "x"))
  end
end)
regular(function()
  ahtest.fs_make(root .. "/sparse", "sparse")
  local fs, from = new_fs(), ah.now()
  refused("too_large", fs:read "sparse")
  refused("too_large", fs:edit("sparse", "x", "y"))
  refused("too_large", fs:rename("sparse", "s"))
  assert(fs:grep("x").skipped == 1 and #fs:read("sparse", { offset = 1 << 39, limit = 10 }) == 10)
  assert(ah.now() - from < 10)
end)
regular(function() -- a pipe that replaces a file between calls
  shell "mkfifo pipe; ln -s f link"
  local fs = new_fs()
  local swapper = ahtest.fs_swap(root .. "/f", root .. "/pipe")
  for _ = 1, 200 do
    fs:read "f"
    fs:append("f", "x")
  end
  swapper:stop()
end)

-- -- modes ---------------------------------------------------------------------------------------

local modes = promise "permission bits are kept, and what is write-protected is not written"
for _, mode in ipairs { "600", "644", "777", "4755", "222" } do
  modes(function()
    local fs = new_fs()
    shell("chmod %s f", mode)
    if fs:append("f", "x") then
      assert(output("stat -c %a f"):sub(-4, -2) == mode:sub(-3), output "stat -c %a f")
    end
    local o = fs:overlay()
    o:write("f", "y")
    o:write("g", "y")
    shell("chmod 600 f")
    assert(o:commit())
    assert(output "stat -c %a f" == "600\n", "not the bits that it has now")
  end)
end
for _, mode in ipairs { "0", "400", "444", "555", "111" } do
  modes(function()
    shell("chmod %s f", mode)
    for _, fs in ipairs { new_fs(), new_fs():overlay() } do
      for _, call in ipairs { { "write", "f", "x" }, { "append", "f", "x" }, { "edit", "f", "o",
        "x" },
        { "rename", "g", "f", { replace = true } } } do
        if call[1] == "rename" then
          new_fs():write("g", "x")
        end
        refused("refused system", fs[call[1]](fs, table.unpack(call, 2)))
      end
    end
    assert(output "stat -c %a f" == mode .. "\n")
  end)
end

-- -- names ---------------------------------------------------------------------------------------

local names = promise "some names are not written"
local function try_name(name)
  local function changes(call)
    return not LOOKS[call]
  end
  local at = name:gsub("%*$", "x")
  for _, path in ipairs { at, at .. "/in", "d/" .. at .. "/in/deep", "./d//" .. at } do
    local fs <close> = new_fs()
    try_all(fs, path, "refused", changes)
    try_all(fs:overlay(), path, "refused", changes)
  end
end
local listed = {}
do
  local f <close> = assert(io.open "src/base/path.c")
  for name in f:read("a"):match("refused%[%] = (%b{})"):gmatch '"([^"]+)"' do
    listed[#listed + 1] = name
  end
  assert(#listed > 250)
end
for from = 1, #listed, 20 do
  names(function()
    for i = from, math.min(from + 19, #listed) do
      try_name(listed[i])
    end
  end)
end
for _, name in ipairs { ".GIT", ".Git", ".git.", ".git ", ".git. .", ".git:x",
  ".git::$INDEX_ALLOCATION",
  ".g\u{200c}it", ".git\u{feff}", "\u{200b}.git", ".\u{17f}sh", ".Ka\u{ad}krc", ".\u{212a}ube",
    ".ENV.Production",
  ".env.local", ".env.test.local", ".pnpmfile.mjs", ".cursorrules", ".vscode-server",
    ".gitconfig.local" } do
  names(function() try_name(name) end)
end
names(function() -- together with their folder
  shell "mkdir -p p/.git/hooks && echo x > p/.git/config"
  local fs = new_fs()
  for _, f in ipairs { fs, fs:overlay() } do
    refused("refused", f:rename("p", "q"))
    refused("refused", f:delete("p", { recursive = true }))
  end
end)
names(function() -- staged below a folder that may be written, then renamed
  local o = new_fs():overlay()
  assert(o:write("stage/hooks/x", "x"))
  refused("refused", o:rename("stage", ".git"))
  refused("refused", o:rename("stage/hooks/x", "d/.husky"))
end)
names(function() -- a name that is allowed, and no other
  local fs = new_fs { allow = { ".env.test", ".vim" } }
  assert(fs:write(".env.test", "x") and fs:write(".vim/x", "x") and fs:write(".env.example", "x"))
  refused("refused", fs:write(".env.test.local", "x"))
  refused("refused", fs:write(".env", "x"))
  refused("refused", fs:write(".vim/.git/x", "x"))
  assert(new_fs { allow = { ".env*" } }:write(".env.x", "x"))
end)
names(function() -- similar names can be written
  local fs = new_fs()
  for _, name in ipairs { ".gitignore", ".gitattributes", "git", "env", ".editorconfig",
    ".dockerignore",
    ".prettierrc", ".eslintrc.json", ".clang-format", "x.git", ".gitkeep", ".root",
      ".vscodeignore" } do
    assert(fs:write(name, "x"), name)
  end
end)

-- -- repositories without a name ------------------------------------------------------------------

local bare = promise "no repository is made or changed"
local PARTS = { "HEAD", "objects/x", "refs/x", "config" }
local function permute(list, n, f)
  n = n or #list
  if n <= 1 then
    return f(list)
  end
  for i = 1, n do
    list[n], list[i] = list[i], list[n]
    permute(list, n - 1, f)
    list[n], list[i] = list[i], list[n]
  end
end
permute(PARTS, nil, function(list)
  local order = table.pack(table.unpack(list))
  for _, at in ipairs { "", "d/", "a/b/" } do
    bare(function()
      local fs, last = new_fs(), nil
      for _, part in ipairs(order) do
        last = select(2, fs:write(at .. part, "ref: refs/heads/x\n")) or last
      end
      assert(type(last) == "table" and last.reason == "refused", "it was made")
    end)
  end
end)
for _, commits in ipairs { 1, 2 } do
  bare(function() -- through overlays
    local fs = new_fs()
    local one = fs:overlay()
    local two = commits == 2 and fs:overlay() or one
    assert(one:write("r/HEAD", "x") and one:write("r/config", "x"))
    assert(two:mkdir("r/objects") and two:mkdir("r/refs"))
    local ok, err = one:commit()
    if commits == 2 then
      assert(ok)
      ok, err = two:commit()
    end
    refused("refused", ok, err)
  end)
end
bare(function() -- through renames, and through commondir
  local fs = new_fs()
  assert(fs:write("r/h", "x") and fs:write("r/o/x", "x") and fs:write("r/refs/x", "x"))
  assert(fs:rename("r/o", "r/objects"))
  refused("refused", fs:rename("r/h", "r/HEAD"))
  assert(fs:write("s/HEAD", "x"))
  refused("refused", fs:write("s/commondir", "../r"))
end)
bare(function() -- in an existing repository
  shell "mkdir -p r/objects r/refs r/hooks && echo x > r/HEAD && echo x > r/config"
  local fs = new_fs()
  for _, path in ipairs { "r/config", "r/hooks/post-checkout", "r/Config", "r/info/attributes",
    "r/HEAD",
    "r/config.worktree", "r/commondir", "r/modules/x/config" } do
    refused("refused", fs:write(path, "x"))
    refused("refused", fs:rename("f", path, { replace = true }))
    local o = fs:overlay()
    assert(o:write(path, "x"))
    refused("refused", o:commit())
  end
  refused("refused", fs:delete("r/config"))
  assert(fs:write("r/readme", "x"))
  assert(fs:delete("r", { recursive = true }), "as a whole it can be deleted")
  shell "mkdir -p r/objects r/refs && echo x > r/HEAD"
  assert(new_fs { allow = { ".git" } }:write("r/config", "x"))
end)
bare(function() -- with git itself
  if output "command -v git" ~= "" then
    local fs = new_fs()
    for _, part in ipairs { { "HEAD", "ref: refs/heads/x\n" }, { "objects/.k", "" }, { "refs/.k",
      "" },
      { "config", "[core]\nbare = false\nworktree = .\nfsmonitor = touch pwned\n" } } do
      fs:write("r/" .. part[1], part[2])
    end
    output "mkdir -p r && cd r && GIT_CEILING_DIRECTORIES=/ git status 2>&1; true"
    assert(output "find . -name pwned" == "", "git ran it")
  end
end)

-- -- all or nothing ------------------------------------------------------------------------------

local whole = promise "a change is made as a whole or not at all"
for _, call in ipairs { "write", "fsync", "renameat", "openat", "mkdirat", "close", "fstatat",
  "syscall" } do
  for _, how in ipairs { call == "renameat" and "EACCES" or "ENOSPC" } do
    whole(function()
      local fs = assert(ah.filesystem { root = root })
      local state = "find . ! -name '.agenthost-*' | sort; find . -type f | sort | xargs grep -H ''"
      local before = output(state)
      for n = 1, 12 do
        ahtest.fs_fail(call, n, how)
        local o = fs:overlay()
        local ok = o:write("f", "x") and o:write("new/in/x", "x") and o:delete("d", { recursive =
          true })
          and o:write("d", "file") and o:commit()
        ahtest.fs_fail()
        fs:list ""
        local now = output(state)
        if ok then
          break
        end
        assert(now == before, ("%s %d %s: a part was made"):format(call, n, how))
        o:close()
      end
    end)
  end
end

-- -- leftovers -----------------------------------------------------------------------------------

local leftovers = promise "what a killed process left keeps no folder"
local LEFT = { ".agenthost-1-2-3.tmp", ".agenthost-t1-2-3.tmp", ".agenthost-s1-2-3-4.tmp",
  ".agenthost-o1-2-3-4.tmp", ".agenthost-x.tmp", ".agenthost-commit-0.tmp" }
for _, name in ipairs(LEFT) do
  leftovers(function()
    local fs = new_fs()
    for i, how in ipairs { "echo x > %s", "mkdir -p %s/a/b/c && echo x > %s/a/b/c/d",
      "ln -s . %s" } do
      local d = "k" .. i
      shell("mkdir %s", d)
      shell((how:gsub("%%s", d .. "/" .. name)))
      assert(#fs:list(d) == 0, "it is shown")
      assert(fs:delete(d), "it blocks a deletion")
      shell("mkdir -p %s/in && echo x > %s/in/f", d, d)
      shell((how:gsub("%%s", d .. "/in/" .. name)))
      assert(fs:rename(d, "moved" .. i), "it blocks a rename")
      local o = fs:overlay()
      assert(o:delete("moved" .. i, { recursive = true }) and o:commit())
    end
  end)
end
leftovers(function() -- 600 folders deep
  shell "mkdir -p k/.agenthost-t1-2-3.tmp"
  ahtest.fs_tower(root .. "/k/.agenthost-t1-2-3.tmp", ("n"):rep(200), 600, "x")
  assert(new_fs():delete("k", { recursive = true }))
end)
leftovers(function() -- files of a running process are left alone
  if output "command -v flock" == "" then
    return
  end
  shell "mkdir k && echo x > k/.agenthost-t1-2-3.tmp && echo x > k/f"
  local fs = new_fs()
  local pipe <close> = assert(io.popen(
    ("cd '%s' && exec flock -s k sh -c 'echo ready; sleep 1'"):format(root)))
  assert(pipe:read("l") == "ready")
  assert(#fs:list "k" == 1)
  refused("conflict", fs:delete("k", { recursive = true }))
  assert(output "ls -A k" == ".agenthost-t1-2-3.tmp\nf\n", "it was removed")
  pipe:read("a")
  assert(fs:delete("k", { recursive = true }))
end)

-- -- records -------------------------------------------------------------------------------------

local records = promise "a forged record does nothing that a tool could not"
local function hash(text) -- the same as ah_slice_hash
  local h = 0xcbf29ce484222325
  for i = 1, #text do
    h = (h ~ text:byte(i)) * 0x100000001b3
  end
  return h
end

-- Makes a record of these steps, as the library writes it, with a last line.
local function forge(steps, fields)
  fields = fields or {}
  local id = fields.root or output("stat -c %i ."):gsub("%s", "")
  for _, s in ipairs(steps) do
    s.temp = s.temp and s.temp:gsub("ID", ("%x"):format(tonumber(id) or 0))
  end
  local body = ah.json.encode { agenthost_commit = 1, root = ("%x"):format(tonumber(id) or 0),
    steps = ah.array(steps) } .. "\n"
  local f <close> = assert(io.open(root .. "/.agenthost-commit-0.tmp", "w"))
  f:write(body, fields.last or ("commit %016x\n"):format(hash(body)))
  f:close()
  shell("chmod %s .agenthost-commit-0.tmp", fields.mode or "600")
  return ("%x"):format(tonumber(id) or 0)
end

local function put_step(path, text, temp)
  return { act = "put", path = path, was = "absent", temp = temp or ".agenthost-sID-1-2-3.tmp",
    hash = ("%x"):format(hash(text)) }
end

local function plant(folder, text)
  local id = ("%x"):format(tonumber((output("stat -c %i ."):gsub("%s", ""))))
  local f <close> = assert(io.open(("%s/%s.agenthost-s%s-1-2-3.tmp"):format(root, folder, id), "w"))
  f:write(text)
end

records(function() -- a correct record works, so that the other attempts prove something
  plant("d/", "evil")
  forge { put_step("d/new", "evil") }
  assert(new_fs():read "d/new" == "evil", "a record like ours is not carried out")
end)
for _, path in ipairs { ".git/hooks/x", "d/.bashrc", "../out/f", "/etc/x", "l/f", "d//new",
  "./d/new", "" } do
  records(function()
    shell "ln -s ../out l; mkdir -p .git/hooks"
    for _, at in ipairs { "", "d/", ".git/hooks/", "l/" } do
      if at ~= "l/" then
        plant(at, "evil")
      end
    end
    forge { put_step(path, "evil") }
    new_fs():close()
    assert(output "grep -rl evil . | grep -v agenthost" == "", "it was put into place")
  end)
end
for _, temp in ipairs { "../out/f", "f", "d/f", ".agenthost-sID-1-2-3.tmp/../../f",
  ".agenthost-tID-1-2-3.tmp" } do
  records(function()
    shell "echo o > f"
    forge { put_step("new", "o\n", temp) }
    new_fs():close()
    assert(output "cat f" == "o\n" and output "ls -A new 2>/dev/null" == "",
      "another file was taken")
  end)
end
records(function() -- a link, a pipe or a folder in place of a waiting file
  for _, how in ipairs { "ln -s ../out/f %s", "mkfifo %s", "mkdir %s" } do
    local id = forge { put_step("new", "real " .. SECRET) }
    shell("rm -rf .agenthost-s*; " .. how, ".agenthost-s" .. id .. "-1-2-3.tmp")
    new_fs():close()
    assert(output "ls -A new 2>/dev/null" == "", "it took its place")
  end
end)
records(function() -- a removal of a file that has changed
  local fs = new_fs()
  forge { { act = "remove", path = "f", was = "file", inode = "1", size = "2", modified = "3",
    temp = ".agenthost-sID-1-2-4.tmp" } }
  new_fs():close()
  assert(fs:read "f" == "o\n", "it was removed")
end)
records(function() -- writable by others, with another name, unfinished, for another root, or broken
  for _, fields in ipairs { { mode = "644" }, { mode = "660" }, { last = "" }, { last =
    "commit 0\n" },
    { root = "1" } } do
    plant("d/", "evil")
    forge({ put_step("d/new", "evil") }, fields)
    new_fs():close()
    assert(output "ls -A d/new 2>/dev/null" == "", "it was carried out")
    shell "rm -f .agenthost-*"
  end
  plant("d/", "evil")
  forge { put_step("d/new", "evil") }
  shell "ln .agenthost-commit-0.tmp second"
  new_fs():close()
  assert(output "ls -A d/new 2>/dev/null" == "", "one with two names was carried out")
  for _, text in ipairs { "", "{", "{}", "[]", "null\ncommit 0\n", ("["):rep(100000), "\xff\0" } do
    local f <close> = assert(io.open(root .. "/.agenthost-commit-1.tmp", "w"))
    f:write(text, ("commit %016x\n"):format(hash(text)))
    f:close()
    shell "chmod 600 .agenthost-commit-1.tmp"
    new_fs():close()
  end
end)
records(function() -- a record that would complete a repository
  shell "mkdir -p r/objects r/refs"
  plant("r/", "ref: x")
  forge { put_step("r/HEAD", "ref: x") }
  new_fs():close()
  assert(output "ls -A r/HEAD 2>/dev/null" == "", "it was completed")
end)
records(function() -- a read-only filesystem stays read-only
  plant("d/", "evil")
  forge { put_step("d/new", "evil") }
  new_fs { read_only = true }:close()
  assert(output "ls -A d/new 2>/dev/null" == "", "it was changed")
end)
records(function() -- a pipe or a folder in place of the record does not block
  shell "mkfifo .agenthost-commit-0.tmp; mkdir .agenthost-commit-1.tmp"
  local fs = new_fs()
  local o = fs:overlay()
  assert(o:write("x", "x") and o:write("y", "x") and o:commit())
end)

-- -- limits --------------------------------------------------------------------------------------

local limits = promise "limits hold"
limits(function()
  local fs = new_fs { max_file = 10, max_files = 5, max_depth = 3 }
  refused("too_large", fs:write("x", ("x"):rep(11)))
  assert(fs:write("x", ("x"):rep(10)))
  refused("too_large", fs:append("x", "x"))
  refused("too_large", fs:edit("x", "x", "xx", { all = true }))
  refused("bad_path", fs:write("a/b/c/d", "x"))
end)
limits(function()
  shell "mkdir many && cd many && seq 1 3000 | xargs touch"
  local fs = new_fs { max_files = 1000 }
  assert(fs:list("many").truncated and fs:glob("**").truncated and fs:grep("x").truncated)
  refused("too_many", fs:delete("many", { recursive = true }))
  refused("too_many", fs:rename("many", "more"))
  assert(output "ls many | wc -l" == "3000\n")
end)
limits(function() -- files whose names are not UTF-8 count, too
  shell "mkdir many && cd many && seq 1 1500 | LC_ALL=C sed 's/^/b\xff/' | xargs touch"
  local fs = new_fs { max_files = 1000 }
  local list = fs:list "many"
  assert(list.truncated and list.left_out >= 1000)
end)
limits(function() -- of staged changes
  local o = new_fs { max_total = 100, max_files = 5 }:overlay()
  refused("too_large", o:write("x", ("x"):rep(101)))
  refused("too_many", (function()
    for i = 1, 9 do
      local ok, err = o:write("x" .. i, "x")
      if not ok then
        return ok, err
      end
    end
  end)())
end)

-- -- the tools ------------------------------------------------------------------------------------

local tools = promise "the tools keep to the filesystem"
local function ask(fs, options, ...)
  local reply = assert(ah.run { "go", model = ah.scripted { { calls = { ... } }, "done" },
    tools = ah.builtin(options), resources = { filesystem = fs } })
  local said = {}
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      assert(#m.content <= 64 << 10, "more than a result may have")
      assert(not m.content:find("real " .. SECRET, 1, true), "it shows what is outside")
      said[#said + 1] = m.content
    end
  end
  return table.unpack(said)
end

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

local ALL = { "read_file", "write_file", "edit_file", "list_files", "grep" }
for _, path in ipairs { "../out/f", "l/f", "link", "/etc/passwd", ".git/config",
  "d/.env.production", "pipe" } do
  tools(function()
    shell "ln -s ../out l; ln -s ../out/f link; mkfifo pipe"
    local a, b, c = ask(new_fs(), ALL, call("write_file", { path = path, content = "evil",
      overwrite = true }),
      call("edit_file", { path = path, old = "o", new = "evil" }), call("read_file", { path =
        path }))
    for _, said in ipairs { a, b, c } do
      assert(not said:find "^Made" and not said:find "^Replaced", said)
    end
    ask(new_fs(), ALL, call("grep", { pattern = ".", path = path }), call("list_files", { path =
      path }),
      call("list_files", { path = path, glob = "**" }), call("read_file", { path = path, tail =
        3 }))
  end)
end
tools(function() -- a file that was not read is not overwritten
  local said = ask(new_fs(), ALL, call("write_file", { path = "d/../f", content = "evil" }))
  assert(said:find "was not read in this conversation", said)
  assert(output "cat f" == "o\n")
end)
tools(function() -- edits: each text exactly once, all edits or none
  shell "printf 'a a b' > e"
  local one, two, three = ask(new_fs(), ALL, call("edit_file", { path = "e", old = "a", new =
    "c" }),
    call("edit_file", { path = "e", edits = { { old = "b", new = "c" }, { old = "x", new =
      "y" } } }),
    call("edit_file", { path = "e", edits = {} }))
  assert(one:find "2 times" and two:find "none of the edits" and three:find "must be an array",
    one .. two .. three)
  assert(output "cat e" == "a a b")
end)
tools(function() -- results are limited
  shell "head -c 3000000 /dev/zero | tr '\\0' x > long; seq 1 200000 > lines"
  shell "printf 'a\\0b' > binary"
  local one, two, three, four = ask(new_fs(), ALL, call("read_file", { path = "long" }),
    call("read_file", { path = "lines", limit = 2000 }), call("read_file", { path = "binary" }),
    call("grep", { pattern = "[0-9]", context = 20 }))
  assert(one:find "cut: the line has 3,000,000 bytes" and two:find "go on with offset", one:sub(1,
    300))
  assert(three:find "binary" and four:find "more than the 100 lines shown")
end)
tools(function() -- a call that would make a repository fails and leaves nothing
  local _, _, said = ask(new_fs(), ALL, call("write_file", { path = "r/HEAD", content = "ref: x" }),
    call("write_file", { path = "r/objects/x", content = "" }),
    call("write_file", { path = "r/refs/x", content = "" }))
  assert(said:find "git repository", said)
  assert(output "ls r" == "HEAD\nobjects\n")
end)

-- -- all -----------------------------------------------------------------------------------------

local function check_outside()
  local f <close> = assert(io.open(out .. "/f"))
  assert(f:read("a") == "real " .. SECRET, "changed outside")
  local list = ahtest.fs_names(out)
  assert(#list == 1, "made outside: " .. table.concat(list, " "))
end

local n = 0
for _, p in ipairs(promises) do
  assert(#p >= 3)
  for i, attempt in ipairs(p) do
    n = n + 1
    root, out = ("%s/%d/root"):format(dir, n), ("%s/%d/out"):format(dir, n)
    assert(os.execute(("mkdir -p '%s/d/e' '%s' && printf 'real %s' > '%s/f'"):format(
      root, out, SECRET, out)))
    shell "echo o > f; echo o > d/f"
    local ok, why = pcall(attempt)
    ahtest.fs_fail()
    if ok then
      ok, why = pcall(check_outside)
    end
    if not ok then
      error(("%s: attempt %d: %s"):format(p.name, i, why), 0)
    end
    os.execute(("chmod -R u+rwx '%s/%d' 2>/dev/null; rm -rf '%s/%d'"):format(dir, n, dir, n))
  end
end
print("attacks", n)
