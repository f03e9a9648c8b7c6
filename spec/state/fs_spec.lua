-- ah.filesystem: each operation, the same in memory, on the disk and in overlays of either; the
-- protection of a folder of the machine; and transactions.
local ah = require "agenthost"

local has_patterns = pcall(ah.schema, { pattern = "a" })

-- -- helpers ------------------------------------------------------------------------------

local function shell(command, ...)
  assert(os.execute(command:format(...)))
end

local function new_folder()
  local path = os.tmpname()
  shell("rm '%s' && mkdir '%s'", path, path)
  return path
end

local function read_file(path)
  local f = io.open(path)
  return f and f:read("a"), f and f:close()
end

local function write_file(path, text)
  local f <close> = assert(io.open(path, "w"))
  f:write(text)
end

-- Asserts that the result is nil and an error with that reason.
local function refused(reason, got, err)
  assert.is_nil(got)
  assert.equal(reason, err and err.reason, tostring(err))
  return err.message
end

-- Returns every path and its content, as one text.
local function all_of(fs)
  local list = {}
  for _, path in ipairs(assert(fs:glob("**"))) do
    list[#list + 1] = path .. "=" .. assert(fs:read(path))
  end
  return table.concat(list, " ")
end

local function names_of(fs, path)
  local list = {}
  for _, e in ipairs(assert(fs:list(path))) do
    list[#list + 1] = e.name .. (e.type == "folder" and "/" or e.type == "link" and "@" or "")
  end
  return table.concat(list, " ")
end

local folders = {}

local KINDS = {
  memory = function(fields)
    fields.memory = true
    return ah.filesystem(fields)
  end,
  host = function(fields)
    folders[#folders + 1] = new_folder()
    fields.root, fields.sync = folders[#folders], false
    return ah.filesystem(fields)
  end,
}
KINDS["overlay of memory"] = function(fields) return KINDS.memory(fields):overlay() end
KINDS["overlay of host"] = function(fields) return KINDS.host(fields):overlay() end
KINDS["overlay of an overlay"] = function(fields) return KINDS.host(fields):overlay():overlay() end

local function remove_folders()
  for _, path in ipairs(folders) do
    shell("rm -rf '%s'", path)
  end
  folders = {}
end

-- -- the operations -----------------------------------------------------------------------

for kind, make in pairs(KINDS) do
  describe("ah.filesystem: " .. kind, function()
    local fs
    before_each(function() fs = assert(make {}) end)
    after_each(remove_folders)

    it("writes and reads, making folders", function()
      assert.is_true(fs:write("a/b/c.txt", "one"))
      assert.equal("one", (fs:read("a/b/c.txt")))
      assert.is_true(fs:write("a/b/c.txt", "two\0\255"))
      assert.equal("two\0\255", (fs:read("a/b/c.txt")))
      assert.same({ type = "folder" }, { type = fs:stat("a").type })
      assert.is_true(fs:write("empty", ""))
      assert.equal("", (fs:read("empty")))
    end)

    it("reads parts, and says where the next begins", function()
      fs:write("t", "0123456789")
      local text, extent = fs:read("t", { offset = 2, limit = 3 })
      assert.same({ "234", { size = 10, next = 5 } }, { text, extent })
      text, extent = fs:read("t", { offset = 8, limit = 5 })
      assert.same({ "89", { size = 10 } }, { text, extent })
      assert.same({ "", { size = 10 } }, { fs:read("t", { offset = 99 }) })
    end)

    it("ends no part inside a character", function()
      fs:write("t", "a\u{20ac}b")
      assert.equal("a", (fs:read("t", { limit = 3 })))
      assert.equal("a\u{20ac}", (fs:read("t", { limit = 4 })))
      assert.equal("\xe2\x82", (fs:read("t", { offset = 1, limit = 2 })))
    end)

    local function shown(lines)
      local list = {}
      for i, l in ipairs(lines) do
        list[i] = l.line .. ":" .. l.text
      end
      return table.concat(list, " ")
    end

    it("reads lines by their numbers, the first ones and the last ones", function()
      fs:write("t", "one\ntwo\n\nfour\nfive")
      local lines = fs:lines("t")
      assert.equal("1:one 2:two 3: 4:four 5:five", shown(lines))
      assert.same({ 5, 18 }, { lines.total, lines.size })
      assert.equal("2:two 3:", shown(fs:lines("t", { first = 2, max = 2 })))
      assert.equal("4:four 5:five", shown(fs:lines("t", { last = true, max = 2 })))
      assert.equal(5, fs:lines("t", { first = 6 }).total)
      assert.equal("", shown(fs:lines("t", { first = 6 })))
      fs:write("t", "")
      assert.equal(0, fs:lines("t").total)
      refused("not_a_file", fs:lines "")
    end)

    it("reads lines across the pieces in which it reads", function()
      local list = {}
      for i = 1, 20000 do
        list[i] = ("%07d"):format(i)
      end
      fs:write("t", table.concat(list, "\r\n"))
      local lines = fs:lines("t", { first = 7281, max = 3 })
      assert.equal("7281:0007281 7282:0007282 7283:0007283", shown(lines))
      assert.same({ 20000, true }, { lines.total, lines.crlf })
      assert.equal("20000:0020000", shown(fs:lines("t", { last = true, max = 1 })))
      assert.equal(3, #fs:lines("t", { max_bytes = 20 }))
    end)

    it("cuts long lines, repairs what is no UTF-8, and shows nothing that is binary", function()
      fs:write("t", ("x"):rep(70000) .. "\n\u{20ac}\u{20ac}\n")
      local lines = fs:lines("t", { width = 4 })
      assert.equal("1:xxxx 2:\u{20ac}", shown(lines))
      assert.same({ 70000, 6 }, { lines[1].size, lines[2].size })
      assert.is_nil(lines.malformed)
      fs:write("t", "a\xffb\n")
      lines = fs:lines("t")
      assert.same({ "1:a\u{fffd}b", true }, { shown(lines), lines.malformed })
      fs:write("t", "\x7fELF\0\n\n")
      lines = fs:lines("t")
      assert.same({ 0, true, 7 }, { #lines, lines.binary, lines.size })
    end)

    it("says what was meant by a path that is not there", function()
      fs:write("src/main.c", "x")
      fs:write("src/lib/deep.c", "x")
      local function meant(path)
        return refused("not_found", fs:read(path)):match("did you mean '(.-)'")
      end
      assert.equal("src/main.c", meant "src/mian.c")
      assert.equal("src/main.c", meant "Src/Main.c")
      assert.equal("src/lib/deep.c", meant "deep.c")
      assert.equal("src/lib/deep.c", meant "src/deep.c")
      assert.is_nil(meant "quite/another")
      assert.matches("did you mean 'src/lib'", refused("not_found", fs:list "src/lob"))
      assert.matches("did you mean 'src/main.c'", refused("not_found", fs:edit("main.c", "a", "b")))
    end)

    it("appends, also to what is not there", function()
      assert.is_true(fs:append("log", "1\n"))
      assert.is_true(fs:append("log", "2\n"))
      assert.equal("1\n2\n", (fs:read("log")))
    end)

    it("edits the one place, or all", function()
      fs:write("t", "one two one")
      assert.equal(1, fs:edit("t", "two", "2"))
      local message = refused("several_matches", fs:edit("t", "one", "1"))
      assert.truthy(message:find("2 times, in lines 1, 1;", 1, true), message)
      assert.equal("one 2 one", (fs:read("t")))
      assert.equal(2, fs:edit("t", "one", "", { all = true }))
      assert.equal(" 2 ", (fs:read("t")))
      refused("no_match", fs:edit("t", "one", "x"))
      refused("no_match", fs:edit("t", "", "x"))
      refused("no_match", fs:edit("t", "2", "2"))
      refused("not_found", fs:edit("nowhere", "a", "b"))
    end)

    it("deletes files, empty folders, and trees when asked", function()
      fs:write("d/e/f", "x")
      refused("exists", fs:delete("d"))
      assert.is_true(fs:delete("d/e/f"))
      assert.is_false(fs:exists("d/e/f"))
      assert.is_true(fs:delete("d/e"))
      fs:write("d/e/f", "x")
      fs:write("d/g", "y")
      assert.is_true(fs:delete("d", { recursive = true }))
      assert.is_false(fs:exists("d"))
      refused("not_found", fs:delete("d"))
    end)

    it("renames files and folders", function()
      fs:write("a/b/c", "x")
      fs:write("z", "z")
      assert.is_true(fs:rename("a", "new/place"))
      assert.equal("new/place/b/c=x z=z", all_of(fs))
      assert.is_false(fs:exists("a"))
      refused("exists", fs:rename("new/place/b/c", "z"))
      assert.is_true(fs:rename("new/place/b/c", "z", { replace = true }))
      assert.equal("z=x", all_of(fs))
      refused("exists", fs:rename("z", "z"))
      refused("exists", fs:rename("new", "new/deeper"))
      refused("not_found", fs:rename("nowhere", "y"))
    end)

    it("makes folders, also those that are there", function()
      assert.is_true(fs:mkdir("a/b"))
      assert.is_true(fs:mkdir("a/b"))
      assert.equal("b/", names_of(fs, "a"))
      fs:write("f", "x")
      refused("exists", fs:mkdir("f"))
      refused("not_a_folder", fs:mkdir("f/g"))
      refused("not_a_folder", fs:write("f/g", "x"))
    end)

    it("lists sorted, and says when there is more", function()
      for _, name in ipairs { "b", "a/x", "c", ".hidden", "B" } do
        fs:write(name, "12")
      end
      assert.equal(".hidden B a/ b c", names_of(fs))
      assert.same({ name = "b", type = "file", size = 2 }, fs:list()[4])
      local cut = fs:list("", { max = 2 })
      assert.same({ 2, true }, { #cut, cut.truncated })
      assert.is_nil(fs:list().truncated)
      refused("not_found", fs:list("nowhere"))
      refused("not_a_folder", fs:list("b"))
    end)

    it("tells files from folders", function()
      fs:write("d/f", "x")
      refused("not_a_file", fs:read("d"))
      refused("not_a_file", fs:write("d", "x"))
      refused("not_a_file", fs:append("d", "x"))
      refused("not_found", fs:read("d/g"))
      refused("not_found", fs:stat("d/g"))
      assert.equal("folder", fs:stat().type)
      assert.equal(1, fs:stat("d/f").size)
    end)

    it("finds lines", function()
      fs:write("a/one.txt", "alpha\r\nbeta\ngamma")
      fs:write("a/two.lua", "beta = 1\n")
      fs:write(".x/three.txt", "beta")
      fs:write("binary", "beta\0")
      fs:write("odd", "\255 beta")
      local found = fs:grep("beta")
      assert.same({ path = "a/one.txt", line = 2, text = "beta" }, found[1])
      assert.same({ path = "a/two.lua", line = 1, text = "beta = 1" }, found[2])
      assert.same({ path = "odd", line = 1, text = "\u{fffd} beta" }, found[3])
      assert.same({ 3, 1 }, { #found, found.skipped })
      assert.equal(1, #fs:grep("beta", { glob = "*.lua" }))
      assert.equal(1, #fs:grep("beta", { glob = "a/*.txt" }))
      assert.equal(2, #fs:grep("beta", { path = "a" }))
      assert.equal(1, #fs:grep("beta", { path = ".x/three.txt" }))
      local cut = fs:grep("a", { max = 1 })
      assert.same({ 1, true }, { #cut, cut.truncated })
      assert.equal(0, #fs:grep("b.ta", { plain = true }))
    end)

    it("shows what is around a match, ignores case, and counts", function()
      fs:write("t", "one\ntwo\nThree\nfour\nfive\nsix\nthree\n")
      local function lines(pattern, options)
        local list = {}
        for i, l in ipairs(assert(fs:grep(pattern, options))) do
          list[i] = l.line .. (l.beside and "-" or ":") .. l.text
        end
        return table.concat(list, " ")
      end
      assert.equal("7:three", lines "three")
      assert.equal("2-two 3:Three 4-four 6-six 7:three",
        lines("three", { context = 1, ignore_case = true }))
      assert.equal("1-one 2-two 3:Three 4-four 5-five 6-six 7:three",
        lines("Three", { context = 20, ignore_case = true }))
      assert.equal("2-two 3:Three", lines("Three", { context = 1, max = 2 }))
      if has_patterns then
        assert.equal("3:Three 7:three", lines("^th?REE$", { ignore_case = true }))
      end
      fs:write("u", "one")
      assert.same({ { path = "t", count = 1 }, { path = "u", count = 1 } },
        fs:grep("ONE", { count = true, ignore_case = true, plain = true }))
      fs:write("t", "\u{c4}rger (a+b)\n\u{e4}RGER\nx\xff\u{c4}rgeR")
      local all = has_patterns and 3 or 0
      assert.equal(all, #assert(fs:grep("\u{e4}rger", { path = "t", ignore_case = true })))
      if has_patterns then
        assert.equal(all, #assert(fs:grep("\u{e4}r?ger", { path = "t", ignore_case = true })))
      end
      assert.equal(1, #assert(fs:grep("(A+B)", { path = "t", ignore_case = true, plain = true })))
      assert.equal(0, #assert(fs:grep(("$"):rep(1000), { ignore_case = true, plain = true })))
    end)

    it("finds lines by regular expressions", function()
      if not has_patterns then
        return refused("bad_pattern", fs:grep("^b"))
      end
      fs:write("t", "Beta\nbeta\n" .. ("a"):rep(40) .. "b\n")
      assert.same({ 2 }, { fs:grep("^b")[1].line })
      assert.equal(2, #fs:grep("^[Bb]eta$"))
      fs:write("u", "f(x) { a-b }")
      assert.equal(1, #fs:grep("{ a\\-b }")) -- the syntax of other tools, where it is unambiguous
      assert.equal(1, #fs:grep("f\\(x\\) {"))
      assert.truthy(refused("bad_pattern", fs:grep("(")):find("'('", 1, true))
      local message = refused("bad_pattern", fs:grep("(a+)+(a+)+(a+)+$"))
      assert.truthy(message:find("too many steps on line 3", 1, true), message)
    end)
  end)
end

-- -- globs --------------------------------------------------------------------------------

describe("globs", function()
  local fs = ah.filesystem { files = {
    ["a.lua"] = "", ["b.txt"] = "", [".hid"] = "", ["s/a.lua"] = "", ["s/t/b.lua"] = "",
    ["s/.git/c.lua"] = "", ["s/\u{e9}t\u{e9}"] = "", ["s/[x]"] = "",
  } }
  local cases = {
    ["*"] = "a.lua b.txt",
    ["**"] = "a.lua b.txt s/[x] s/a.lua s/t/b.lua s/\u{e9}t\u{e9}",
    ["**/*.lua"] = "a.lua s/a.lua s/t/b.lua", ["s/*.lua"] = "s/a.lua", ["*/*/*"] = "s/t/b.lua",
    ["s/**/b.lua"] = "s/t/b.lua", ["**/t/**"] = "s/t/b.lua", [".*"] = ".hid",
    ["**/.git/*"] = "s/.git/c.lua", ["?.{lua,txt}"] = "a.lua b.txt", ["[a-a].lua"] = "a.lua",
    ["[!a].*"] = "b.txt", ["s/?t?"] = "s/\u{e9}t\u{e9}", ["s/[\u{e0}-\u{ff}]t*"] =
      "s/\u{e9}t\u{e9}",
    ["{a,s/{a,t/b}}.lua"] = "a.lua s/a.lua s/t/b.lua", ["s/[[]x]"] = "s/[x]", ["b"] = "",
    ["s/a*a"] = "s/a.lua", ["**/**/a.lua"] = "a.lua s/a.lua", ["{}a.lua"] = "a.lua",
    ["a.lua/*"] = "",
  }
  for pattern, want in pairs(cases) do
    it("match " .. pattern, function()
      assert.equal(want, table.concat(assert(fs:glob(pattern)), " "))
    end)
  end

  it("are matched from a folder", function()
    assert.same({ "s/a.lua" }, fs:glob("*.lua", { path = "s" }))
  end)

  it("are refused where they are wrong or too much", function()
    for _, bad in ipairs { "", "[a", "{a,b", ("{a,b}"):rep(7), ("a"):rep(1025), "\255", "a\0b" } do
      refused("bad_pattern", fs:glob(bad))
    end
    assert.same({}, fs:glob(("*a"):rep(500)))
  end)
end)

-- -- paths --------------------------------------------------------------------------------

describe("paths of ah.filesystem", function()
  after_each(remove_folders)

  it("that lead out, or are none, are refused", function()
    local fs = KINDS.host {}
    local bad = { "..", "../x", "a/../../x", "a/b/../../../etc/passwd", "./../x", "/etc/passwd",
      "/", "//x", "a\0b", "\0", "a\nb", "a\x7fb", "\xff", "a/\xc0\xae\xc0\xae/b", "\xed\xa0\x80",
      ("n"):rep(256), ("d/"):rep(33) .. "f", ("p/"):rep(600), "..//..", "a/.././.././b",
      "x/../..", "./..", ".././", "/..", "a//../../..", "../" .. ("a/"):rep(10) }
    for _, path in ipairs(bad) do
      for _, call in ipairs { "read", "stat", "exists", "list", "delete", "mkdir" } do
        refused("bad_path", fs[call](fs, path))
      end
      refused("bad_path", fs:write(path, "x"))
      refused("bad_path", fs:append(path, "x"))
      refused("bad_path", fs:edit(path, "x", "y"))
      refused("bad_path", fs:rename(path, "y"))
      refused("bad_path", fs:glob("*", { path = path }))
      refused("bad_path", fs:grep("x", { path = path }))
    end
    fs:write("y", "x")
    for _, path in ipairs(bad) do
      refused("bad_path", fs:rename("y", path))
    end
    for _, path in ipairs { "", ".", "./", "a/.." } do
      refused("bad_path", fs:write(path, "x"))
      refused("bad_path", fs:delete(path, { recursive = true }))
    end
  end)

  it("are the same however they are written", function()
    local fs = KINDS.host {}
    fs:write("./a//b/./c/../d", "x")
    assert.equal("a/b/d=x", all_of(fs))
    for _, path in ipairs { "a/b/d", "a/b/d/", "x/../a/b/d", ".//a/b/d" } do
      assert.equal("x", (fs:read(path)))
    end
    fs:write("\u{e9} \\ 'q' \"", "odd")
    assert.equal("odd", (fs:read("\u{e9} \\ 'q' \"")))
  end)

  it("with names of what runs later are not written, unless that is allowed", function()
    local fs = KINDS.host {}
    shell("mkdir -p '%s/sub/.git/hooks'", folders[1])
    local names = { ".git/config", ".GIT/hooks/x", "sub/.git/hooks/pre-commit", ".bashrc", ".env",
      "deep/.profile", ".vscode/tasks.json", ".agenthost/config", ".ssh/authorized_keys", ".Zshrc",
      ".github/workflows/x.yml", ".config/autostart/x", ".mcp.json", ".npmrc" }
    fs:write("ok", "x")
    for _, path in ipairs(names) do
      refused("refused", fs:write(path, "x"))
      refused("refused", fs:rename("ok", path))
      refused("refused", fs:overlay():append(path, "x"))
    end
    refused("refused", fs:delete("sub", { recursive = true }))
    refused("refused", fs:rename("sub", "other"))
    assert.is_true(fs:exists("sub/.git/hooks"))
    for _, path in ipairs { ".gitignore", ".gitkeep", "env", ".env.example", "git/config" } do
      assert.is_true(fs:write(path, "x"))
    end
    local open = ah.filesystem { root = folders[1], allow = { ".git", ".env" }, sync = false }
    assert.is_true(open:write(".git/config", "x"))
    assert.is_true(open:write(".env", "x"))
    refused("refused", open:write(".bashrc", "x"))
  end)

  it("of our own temporary files are not seen", function()
    local fs = KINDS.host {}
    write_file(folders[1] .. "/.agenthost-1-2-3.tmp", "x")
    shell("touch -d '2 hours ago' '%s/.agenthost-1-2-4.tmp'", folders[1])
    assert.equal("", names_of(fs))
    refused("refused", fs:read(".agenthost-1-2-3.tmp"))
    assert.truthy(read_file(folders[1] .. "/.agenthost-1-2-3.tmp"))
    assert.is_nil(read_file(folders[1] .. "/.agenthost-1-2-4.tmp")) -- left by a killed process
  end)
end)

-- -- the disk -------------------------------------------------------------------------------

describe("a folder of the machine", function()
  local fs, root, outside

  before_each(function()
    fs = KINDS.host {}
    root, outside = folders[1], new_folder()
    folders[2] = outside
    write_file(outside .. "/secret", "secret")
  end)
  after_each(remove_folders)

  it("follows no symbolic link, in a folder or at the end", function()
    shell("cd '%s' && ln -s '%s' out && ln -s '%s/secret' leak", root, outside, outside)
    shell("cd '%s' && mkdir d && ln -s d in && ln -s . me", root)
    fs:write("d/f", "x")
    for _, path in ipairs { "out/secret", "in/f", "me/d/f", "me/me/d/f" } do
      refused("not_a_folder", fs:read(path))
      refused("not_a_folder", fs:write(path, "y"))
      refused("not_a_folder", fs:delete(path))
      refused("not_a_folder", fs:stat(path))
    end
    assert.truthy(refused("not_a_file", fs:read("leak")):find("symbolic link", 1, true))
    for _, path in ipairs { "leak", "out", "in" } do
      refused("not_a_file", fs:write(path, "y"))
      refused("not_a_file", fs:append(path, "y"))
      refused("not_a_file", fs:edit(path, "secret", "y"))
      refused("not_a_file", fs:rename(path, "z"))
      assert.equal("link", fs:stat(path).type)
    end
    refused("not_a_folder", fs:list("out"))
    assert.equal("d/ in@ leak@ me@ out@", names_of(fs))
    assert.same({ "d/f" }, fs:glob("**"))
    assert.equal(0, #fs:grep("secret"))
    assert.is_true(fs:delete("leak"))
    assert.is_true(fs:rename("d", "e"))
    assert.equal("secret", read_file(outside .. "/secret"))
  end)

  it("may itself be named by a link", function()
    shell("ln -s '%s' '%s/root'", outside, root)
    assert.equal("secret", (ah.filesystem({ root = root .. "/root" }):read("secret")))
  end)

  it("has only regular files opened", function()
    shell("mkfifo '%s/pipe'", root)
    refused("not_a_file", fs:read("pipe")) -- returns without waiting for a writer
    refused("not_a_file", fs:write("pipe", "x"))
    assert.equal("other", fs:stat("pipe").type)
    assert.equal(0, #fs:grep("x"))
  end)

  it("is not written through hard links", function()
    shell("ln '%s/secret' '%s/hard'", outside, root)
    assert.is_true(fs:write("hard", "mine"))
    assert.is_true(fs:append("hard", "!"))
    assert.equal("secret", read_file(outside .. "/secret"))
    assert.equal("mine!", read_file(root .. "/hard"))
  end)

  it("keeps permission bits, and does not write what is write-protected", function()
    fs:write("run", "old")
    shell("chmod 750 '%s/run'", root)
    fs:write("run", "new")
    fs:rename("run", "go")
    shell("test $(stat -c %%a '%s/go') = 750 && chmod 444 '%s/go'", root, root)
    assert.truthy(refused("refused", fs:write("go", "x")):find("0444", 1, true))
    refused("refused", fs:overlay():edit("go", "new", "x"))
    assert.equal("new", (fs:read("go")))
  end)

  it("keeps the mode of a file that nobody may read, and does not write it", function()
    fs:write("shadow", "x\n")
    shell("chmod 000 '%s/shadow'", root)
    local function mode(name)
      local pipe <close> = assert(io.popen(("stat -c %%a '%s/%s'"):format(root, name)))
      return pipe:read("l")
    end
    for _, on in ipairs { fs, fs:overlay() } do
      refused("refused", on:append("shadow", "y"))
      refused("refused", on:write("shadow", "y"))
    end
    assert.equal("0", mode "shadow")
    if fs:rename("shadow", "moved") then -- root may read it
      assert.equal("0", mode "moved")
      local o = fs:overlay()
      assert(o:rename("moved", "again"))
      assert(o:commit())
      assert.equal("0", mode "again")
    end
  end)

  it("keeps the permission bits that a file has when an overlay is committed", function()
    fs:write("f", "x")
    local o = fs:overlay()
    o:write("f", "y")
    shell("chmod 600 '%s/f'", root)
    assert(o:commit())
    local pipe <close> = assert(io.popen(("stat -c %%a '%s/f'"):format(root)))
    assert.equal("600", pipe:read("l"))
  end)

  it("gives a time before 1970", function()
    fs:write("f", "x")
    shell("touch -d '1969-12-31 23:59:59.999 UTC' '%s/f'", root)
    assert.equal(-0.001, fs:stat("f").modified)
  end)

  it("gives the time of a change", function()
    fs:write("f", "x")
    assert.is_true(math.abs(fs:stat("f").modified - os.time()) < 60)
    local o = fs:overlay()
    o:write("f", "y")
    assert.is_nil(o:stat("f").modified)
  end)

  it("leaves out names that no path can name", function()
    shell("cd '%s' && touch \"$(printf 'bad\\377')\" \"$(printf 'two\\nlines')\" good", root)
    assert.equal("good", names_of(fs))
  end)

  it("must be there", function()
    refused("not_found", ah.filesystem { root = root .. "/nowhere" })
    refused("not_a_folder", ah.filesystem { root = outside .. "/secret" })
  end)

  it("can be read only", function()
    fs:write("f", "x")
    local closed = ah.filesystem { root = root, read_only = true }
    assert.equal("x", (closed:read("f")))
    for _, c in ipairs { closed, closed:overlay() } do
      refused("read_only", c:write("g", "x"))
      refused("read_only", c:append("f", "x"))
      refused("read_only", c:edit("f", "x", "y"))
      refused("read_only", c:delete("f"))
      refused("read_only", c:rename("f", "g"))
      refused("read_only", c:mkdir("d"))
    end
  end)
end)

-- -- limits ---------------------------------------------------------------------------------

describe("limits of ah.filesystem", function()
  after_each(remove_folders)

  for kind, make in pairs(KINDS) do
    it("hold: " .. kind, function()
      local fs = make { max_file = 10, max_files = 5, max_total = 25, max_depth = 3 }
      refused("too_large", fs:write("a", ("x"):rep(11)))
      assert.is_true(fs:write("a", ("x"):rep(10)))
      refused("too_large", fs:append("a", "y"))
      refused("too_large", fs:edit("a", "x", "yy", { all = true }))
      refused("bad_path", fs:write("1/2/3/4", ""))
      assert.is_true(fs:write("b", ("x"):rep(10)))
      if kind ~= "host" then
        assert.truthy(refused("too_large", fs:write("c", ("x"):rep(6))):find("25 bytes", 1, true))
        fs:write("c", "x")
        fs:write("d/e", "x")
        refused("too_many", fs:write("f", "x"))
      end
    end)
  end

  it("stop listings and walks on the disk, which say so", function()
    local fs = KINDS.host { max_files = 3, max_depth = 2 }
    shell("cd '%s' && mkdir -p a/b/c && touch a/b/c/f 1 2", folders[1])
    assert.is_true(fs:glob("**").truncated) -- too deep
    shell("cd '%s' && rm -r a && touch 3 4", folders[1])
    assert.is_true(fs:list().truncated)
    assert.is_true(fs:glob("*").truncated)
    shell("cd '%s' && mkdir d && mv 1 2 3 4 d/", folders[1])
    refused("too_many", fs:delete("d", { recursive = true }))
  end)

  it("hold for reading what others wrote", function()
    local fs = KINDS.host { max_file = 10 }
    write_file(folders[1] .. "/large", ("x"):rep(11))
    assert.truthy(refused("too_large", fs:read("large")):find("in parts", 1, true))
    refused("too_large", fs:edit("large", "x", "y"))
    refused("too_large", fs:rename("large", "y"))
    local text, extent = fs:read("large", { limit = 100 })
    assert.same({ 10, { size = 11, next = 10 } }, { #text, extent })
    assert.equal(1, fs:grep("x").skipped)
    assert.is_true(fs:delete("large"))
  end)
end)

-- -- transactions -----------------------------------------------------------------------------

for _, kind in ipairs { "memory", "host", "overlay of memory", "overlay of host" } do
  describe("overlays over " .. kind, function()
    local fs
    before_each(function()
      fs = KINDS[kind] {}
      fs:write("a", "one\ntwo\n")
      fs:write("d/x", "x")
    end)
    after_each(remove_folders)

    it("show their changes, and below nothing until they are committed", function()
      local o = fs:overlay()
      o:write("new/f", "n")
      o:append("a", "three\n")
      o:delete("d", { recursive = true })
      o:write("e", "e")
      o:rename("e", "g")
      assert.equal("a=one\ntwo\nthree\n g=e new/f=n", all_of(o))
      assert.equal("a g new/", names_of(o))
      assert.equal(1, #o:grep("three"))
      assert.equal("a=one\ntwo\n d/x=x", all_of(fs))
      assert.is_true(o:commit())
      assert.equal("a=one\ntwo\nthree\n g=e new/f=n", all_of(fs))
      assert.equal("a g new/", names_of(fs))
      assert.is_true(o:commit()) -- commits nothing
    end)

    it("are forgotten when dropped", function()
      local o = fs:overlay()
      o:write("a", "gone")
      o:delete("d/x")
      o:drop()
      assert.equal("a=one\ntwo\n d/x=x", all_of(o))
      assert.is_true(o:commit())
      assert.equal("a=one\ntwo\n d/x=x", all_of(fs))
    end)

    it("nest", function()
      local o <close> = fs:overlay()
      o:write("b", "1")
      local p <close> = o:overlay()
      p:append("b", "2")
      p:append("a", "three\n")
      assert.equal("1", (o:read("b")))
      p:commit()
      assert.equal("12", (o:read("b")))
      assert.is_false(fs:exists("b"))
      local q <close> = o:overlay()
      q:write("b", "no")
      q:drop()
      o:commit()
      assert.equal("a=one\ntwo\nthree\n b=12 d/x=x", all_of(fs))
    end)

    it("lose no append and no edit of one another", function()
      local o, p, q = fs:overlay(), fs:overlay(), fs:overlay()
      o:append("a", "o\n")
      p:append("a", "p\n")
      p:append("log", "p")
      o:append("log", "o")
      q:edit("a", "one", "ONE")
      o:edit("a", "two", "TWO")
      assert.is_true(o:commit() and p:commit() and q:commit())
      assert.equal("ONE\nTWO\no\np\n", (fs:read("a")))
      assert.equal("op", (fs:read("log")))
    end)

    it("say when what they edited is there no more", function()
      local o, p = fs:overlay(), fs:overlay()
      o:edit("a", "one", "1")
      p:edit("a", "one", "eins")
      p:write("other", "x")
      o:commit()
      local message = refused("conflict", p:commit())
      assert.truthy(message:find("'a' was changed", 1, true), message)
      assert.equal("a=1\ntwo\n d/x=x", all_of(fs))
      assert.equal("x", (p:read("other"))) -- still staged
      p:drop()
    end)

    it("do not write over what changed after they had read it", function()
      local o, p, q = fs:overlay(), fs:overlay(), fs:overlay()
      o:write("a", assert(o:read("a")):upper())
      p:write("a", assert(p:read("a")):reverse())
      q:write("a", "without looking")
      assert.is_true(o:commit())
      refused("conflict", p:commit())
      assert.is_true(q:commit())
      assert.equal("without looking", (fs:read("a")))
    end)

    it("do not take a name that was free when they looked", function()
      local o, p = fs:overlay(), fs:overlay()
      assert.is_false(o:exists("n"))
      refused("not_found", p:read("m"))
      o:write("n", "o")
      p:write("m", "p")
      fs:write("n", "mine")
      fs:write("m", "mine")
      refused("conflict", o:commit())
      refused("conflict", p:commit())
      assert.equal("mine", (fs:read("n")))
    end)

    it("do not mind changes of what they only read", function()
      local o = fs:overlay()
      o:read("a")
      o:write("b", "x")
      fs:write("a", "other")
      assert.is_true(o:commit())
      assert.equal("x", (fs:read("b")))
    end)

    it("conflict over deletions", function()
      local o, p, q, r, s = fs:overlay(), fs:overlay(), fs:overlay(), fs:overlay(), fs:overlay()
      o:delete("d", { recursive = true })
      p:delete("d", { recursive = true })
      q:write("d/y", "y")
      r:rename("d", "e")
      s:rename("a", "b")
      fs:write("d/z", "z")
      refused("conflict", o:commit()) -- something was added
      refused("conflict", r:commit())
      fs:delete("d/z")
      assert.is_true(p:commit())
      refused("conflict", q:commit()) -- the folder is gone
      refused("conflict", o:commit())
      fs:append("a", "more")
      refused("conflict", s:commit()) -- the changed content would be lost
      assert.equal("a=one\ntwo\nmore", all_of(fs))
    end)

    it("pass on to an outer one what their writes depend on", function()
      local o = fs:overlay()
      local p = o:overlay()
      p:write("a", assert(p:read("a")) .. "p")
      p:edit("d/x", "x", "X")
      assert.is_true(p:commit())
      p:read("d/x")
      fs:append("d/x", "y")
      assert.is_true(o:overlay():commit())
      fs:append("a", "fs")
      refused("conflict", o:commit())
      o:drop()
      p:drop()
      p:edit("d/x", "x", "X")
      p:append("d/x", "p")
      assert.is_true(p:commit())
      fs:append("d/x", "z")
      assert.is_true(o:commit())
      assert.equal("Xyzp", (fs:read("d/x")))
    end)

    it("can make again what they deleted", function()
      local o = fs:overlay()
      o:delete("a")
      o:write("a", "again")
      o:delete("d", { recursive = true })
      o:write("d/y", "y")
      o:delete("a")
      assert.is_true(o:mkdir("a"))
      assert.is_true(o:write("a/in", "x"))
      o:write("tmp", "x")
      o:delete("tmp")
      assert.equal("y", names_of(o, "d"))
      assert.is_true(o:commit())
      assert.equal("a/in=x d/y=y", all_of(fs))
      o:delete("d", { recursive = true })
      assert.is_true(o:write("d", "a file"))
      refused("not_a_folder", o:read("d/y"))
      assert.is_true(o:commit())
      assert.equal("a/in=x d=a file", all_of(fs))
    end)
  end)
end

-- Compares random operations in overlays, some of which are dropped, with the same operations done
-- in memory at once.
describe("overlays", function()
  after_each(remove_folders)

  local NAMES = { "a", "b", "d/a", "d/b", "d/e/a", "f" }

  local function work(fs, random)
    local name, other = NAMES[random(#NAMES)], NAMES[random(#NAMES)]
    local calls = {
      function() return fs:write(name, tostring(random(1000))) end,
      function() return fs:append(name, tostring(random(10))) end,
      function() return fs:edit(name, tostring(random(10)), "x", { all = true }) end,
      function() return fs:delete(name) end,
      function() return fs:rename(name, other, { replace = true }) end,
      function() return fs:delete("d", { recursive = true }) end,
      function() return fs:mkdir("d/e") end,
    }
    return calls[random(#calls)]()
  end

  -- A generator of the same numbers for both.
  local function numbers(seed)
    return function(n)
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      return (seed >> 8) % n + 1
    end
  end

  local function some(fs, seed, n)
    local random = numbers(seed)
    for _ = 1, n do
      work(fs, random)
    end
  end

  for _, kind in ipairs { "memory", "host" } do
    it("leave what the committed ones would alone: " .. kind, function()
      local fs, model = KINDS[kind] {}, KINDS.memory {}
      local random = numbers(os.time() % 10000 + 1)
      for round = 1, 150 do
        local seed, n = random(1 << 20), random(6)
        local o = fs:overlay()
        some(o, seed, n)
        local inner = o:overlay()
        some(inner, seed + 1, n)
        if random(2) == 1 then
          assert(inner:commit())
        else
          inner:drop()
          seed = -seed
        end
        if random(3) == 1 then
          o:drop()
        elseif o:commit() then -- fails if it turned a file into a folder
          some(model, math.abs(seed), n)
          if seed > 0 then
            some(model, seed + 1, n)
          end
        end
        assert.equal(all_of(model), all_of(fs), "round " .. round)
        assert.equal(names_of(model), names_of(fs))
      end
    end)
  end
end)

-- -- declarations -------------------------------------------------------------------------------

describe("ah.filesystem", function()
  local function raises(words, fields)
    local ok, err = pcall(ah.filesystem, fields)
    assert.is_false(ok)
    assert.truthy(tostring(err):find(words, 1, true), tostring(err))
  end

  it("raises for what is wrong in the script", function()
    raises("did you mean 'root'", { rot = "x" })
    raises("either a root", {})
    raises("either a root", { root = ".", memory = true })
    raises("did you mean '.git'", { root = ".", allow = { ".gti" } })
    raises("'README' is not refused", { root = ".", allow = { "README" } })
    raises("list of strings", { root = ".", allow = { 1 } })
    raises("leads out", { files = { ["../x"] = "" } })
    raises("texts by their path", { files = { ["x"] = 1 } })
    raises("must be an integer from 1 to 64, found 65", { memory = true, max_depth = 65 })
    raises("max_file", { memory = true, max_file = 0 })
    raises("root is no path", { root = "" })
    local fs = ah.filesystem { memory = true }
    assert.has_error(function() fs:read() end)
    assert.has_error(function() fs:write("a", {}) end)
    assert.has_error(function() fs:read("a", { ofset = 1 }) end)
    assert.has_error(function() fs:commit() end)
    assert.has_error(function() fs.drop(io.stdout) end)
  end)

  it("has its files from the start, also read-only", function()
    local fs = ah.filesystem { files = { ["a/b"] = "x", [".git/c"] = "y" }, read_only = true }
    assert.equal("x", (fs:read("a/b")))
    refused("read_only", fs:write("a/b", "y"))
  end)

  it("can be closed, and used no more", function()
    local fs = ah.filesystem { files = { a = "x" } }
    local o = fs:overlay()
    fs:close()
    fs:close()
    local _, why = pcall(fs.read, fs, "a")
    assert.truthy(why:find("the filesystem is closed", 1, true))
    assert.equal("x", (o:read("a"))) -- the overlay keeps its base open
    do
      local closing <close> = o
      assert.truthy(closing)
    end
    assert.has_error(function() o:read("a") end)
  end)

  it("gives errors that a tool can hand to its model", function()
    local fs = ah.filesystem { memory = true }
    local seen
    local tool = ah.tool { name = "get", description = "Reads.", params = { path = "string" },
      handler = function(args) return fs:read(args.path) end }
    local call = { name = "get", arguments = { path = "../x" } }
    ah.run { model = ah.scripted(function(request)
      seen = request.entries[#request.entries].content
      return type(seen) == "string" and "done" or { calls = { call } }
    end), tools = { tool }, "x" }
    assert.truthy(seen:find("'../x' leads out of the root; paths stay under it", 1, true), seen)
  end)
end)
