-- Files .gitignore (src/state/fs_ignore.c): what fs:list, fs:glob and fs:grep leave out with
-- `gitignore`, and what the tools list_files and grep say about it.
local ah = require "agenthost"
local cases = require "support.gitignored"
local command = require "support.command"

local function texts_of(case)
  local files = type(case[1]) == "string" and { [".gitignore"] = case[1] } or {}
  for path, text in pairs(type(case[1]) == "table" and case[1] or {}) do
    files[path] = text
  end
  for _, list in ipairs { case[2], case[3] } do
    for _, path in ipairs(list) do
      files[path] = "text\n"
    end
  end
  return files
end

-- Returns the paths of all files that lists show, but for those of the rules.
local function listed(fs, folder, all)
  all = all or {}
  for _, entry in ipairs(assert(fs:list(folder, { gitignore = true }))) do
    local path = (folder and folder .. "/" or "") .. entry.name
    if entry.type == "folder" then
      listed(fs, path, all)
    else
      all[path] = entry.name ~= ".gitignore" or nil
    end
  end
  return all
end

local function set_of(list)
  local set = {}
  for _, one in ipairs(list) do
    set[one] = true
  end
  return set
end

-- Returns the paths that a glob or a search can find: no name in them is hidden.
local function visible(list)
  local some = {}
  for _, path in ipairs(list) do
    some[path] = not ("/" .. path):find("/.", 1, true) or nil
  end
  return some
end

local function files(texts)
  return ah.filesystem { files = texts }
end

-- Returns what a model gets for a call.
local function told(texts, name, arguments, options)
  local reply = assert(ah.run { model = ah.scripted {
      { calls = { { name = name, arguments = arguments } } }, "done" },
    tools = ah.builtin { [name] = options or true }, log = function() end,
    resources = { filesystem = files(texts) }, "go" })
  return reply.messages[3].content
end

describe("files .gitignore", function()
  it("leave out what git leaves out", function()
    for _, case in ipairs(cases) do
      local words = ah.json.encode { case[1], case[2], case[3] }
      local fs = files(texts_of(case))
      assert.same(set_of(case[2]), listed(fs), words)
      assert.same(visible(case[2]), set_of(assert(fs:glob("**", { gitignore = true }))), words)
      local found = {}
      for _, line in ipairs(assert(fs:grep("text", { gitignore = true }))) do
        found[line.path] = true
      end
      assert.same(visible(case[2]), found, words)
    end
    assert.is_true(#cases > 60)
  end)

  it("count in folders of the machine and in overlays, too", function()
    local folder = command.folder()
    os.execute("mkdir -p " .. folder .. "/a/out; cd " .. folder
      .. "; echo out/ >.gitignore; echo x >a/out/x; echo x >a/y; ln -s out a/link")
    local fs <close> = ah.filesystem { root = folder }
    local found = fs:glob("**", { gitignore = true })
    assert.same({ "a/y", ignored = { { path = ".gitignore", count = 1 } } }, found)
    local overlay <close> = fs:overlay()
    assert(overlay:write("a/.gitignore", "y\nlink/\n!out/\n"))
    assert.same({ "a/out/x", ignored = { { path = "a/.gitignore", count = 1 } } },
      overlay:glob("**", { gitignore = true }))
    assert.same({ "a/y" }, { table.unpack(fs:glob("**", { gitignore = true })) })
    assert.same({ ".gitignore", "link", "out" }, (function(list) -- a link is no folder
      return { list[1].name, list[2].name, list[3].name }
    end)(overlay:list("a", { gitignore = true })))
    command.tidy()
  end)

  it("say how many entries each leaves out, of those that are looked for", function()
    local fs = files { [".gitignore"] = "*.o\nout/\n", ["a.o"] = "x", ["b.c"] = "x",
      ["out/c.c"] = "x", ["out/d.c"] = "x", ["sub/.gitignore"] = "*.c\n", ["sub/e.c"] = "x",
      ["sub/f.c"] = "x", ["sub/g.o"] = "x", [".git/config"] = "x" }
    assert.same({ "b.c", ignored = { { path = ".gitignore", count = 1 },
      { path = "sub/.gitignore", count = 2 } } }, fs:glob("**/*.c", { gitignore = true }))
    assert.same({ "b.c", ignored = { { path = ".gitignore", count = 3 },
      { path = "sub/.gitignore", count = 2 } } }, fs:glob("**", { gitignore = true }))
    assert.same({ { path = ".gitignore", count = 2 } }, fs:list("", { gitignore = true }).ignored)
    assert.is_nil(fs:list("").ignored)
    assert.equal(7, #fs:glob "**")
    assert.same({ { path = "sub/.gitignore", count = 2 }, { path = ".gitignore", count = 1 } },
      fs:list("sub", { gitignore = true }).ignored)
  end)

  it("do not hide a path that is named", function()
    local fs = files { [".gitignore"] = "out/\n*.o\nlog/*\n", ["out/a"] = "x", ["out/b.o"] = "x",
      ["log/c"] = "x" }
    assert.same({ "out/a", ignored = { { path = ".gitignore", count = 1 } } },
      fs:glob("**", { path = "out", gitignore = true }))
    assert.equal("out/b.o", fs:grep("x", { path = "out/b.o", gitignore = true })[1].path)
    assert.equal(0, #fs:list("log", { gitignore = true }))
  end)

  it("that are too large, and rules that are too long, are not obeyed", function()
    local long = ("x"):rep(1025)
    local fs = files { [".gitignore"] = "a\n" .. ("#"):rep(65536), a = "x",
      ["b/.gitignore"] = "c\n" .. ("#"):rep(65536 - 3) .. "\n", ["b/c"] = "x",
      ["d/.gitignore"] = long:gsub("x", "[x]", 1) .. "\ne\n", ["d/e"] = "x" }
    local found = fs:glob("**", { gitignore = true })
    assert.same({ "a", ignored = { { path = ".gitignore", count = 0 },
      { path = "b/.gitignore", count = 1 }, { path = "d/.gitignore", count = 1 } } }, found)
    for length, n in pairs { [1024] = 0, [1025] = 1 } do
      fs = files { [".gitignore"] = ("*"):rep(length) .. "\n", x = "" }
      assert.equal(n, #fs:glob("**", { gitignore = true }))
    end
  end)

  it("of many folders within each other are obeyed up to 256 KiB", function()
    local texts, path = {}, ""
    for i = 1, 6 do
      texts[path .. ".gitignore"] = "no" .. i .. "\n" .. ("#"):rep(60000)
      texts[path .. "no" .. i] = "x"
      path = path .. "d/"
    end
    local found = files(texts):glob("**", { gitignore = true })
    assert.same({ "d/d/d/d/d/no6", "d/d/d/d/no5" }, { table.unpack(found) })
    local counts = {}
    for _, file in ipairs(found.ignored) do
      counts[file.path] = file.count
    end
    assert.same({ [".gitignore"] = 1, ["d/.gitignore"] = 1, ["d/d/.gitignore"] = 1,
      ["d/d/d/.gitignore"] = 1, ["d/d/d/d/.gitignore"] = 0, ["d/d/d/d/d/.gitignore"] = 0 }, counts)
  end)

  it("take no time that grows with a power of their length", function()
    local hard = { ("**/"):rep(300) .. "b", ("*a"):rep(500) .. "b", ("a/**/"):rep(200) .. "b",
      ("[a-z]*"):rep(170) .. "B", ("*/"):rep(500) .. "b" }
    local rules = {}
    for i = 1, 60 do
      rules[i] = hard[i % #hard + 1]
    end
    local texts = { [".gitignore"] = table.concat(rules, "\n") }
    for i = 1, 50 do
      texts[("a/"):rep(25) .. ("a"):rep(200) .. i] = "x"
    end
    local fs, before = files(texts), os.clock()
    assert.equal(50, #fs:glob("**", { gitignore = true }))
    assert.is_true(os.clock() - before < 2)
  end)

  it("of any bytes hold or do nothing", function()
    local random = require("support.random")(7)
    local parts = { "*", "**", "/", "[", "]", "!", "#", "\\", "-", "a", "b", "[:alpha:]", "\n",
      "\0", "\r", " ", "\xff", "é", "^", "?" }
    for _ = 1, 300 do
      local text = {}
      for i = 1, random(60) do
        text[i] = parts[random(#parts)]
      end
      local fs = files { [".gitignore"] = table.concat(text), ["a/b/a"] = "x", ["b"] = "x",
        ["ab"] = "x" }
      assert.is_true(#assert(fs:glob("**", { gitignore = true })) <= 3)
    end
  end)
end)

describe("list_files and grep", function()
  local TEXTS = { [".gitignore"] = "/out/\n*.log\n", ["a.c"] = "word\n", ["b.log"] = "word\n",
    ["out/c.c"] = "word\n" }

  it("obey .gitignore, and say what is left out", function()
    assert.equal(".gitignore  12 bytes\na.c  5 bytes\n[2 entries left out by .gitignore; "
      .. "ignored = true shows them]", told(TEXTS, "list_files", {}))
    assert.equal("a.c  5 bytes\n[1 entry left out by .gitignore; ignored = true shows it]",
      told(TEXTS, "list_files", { glob = "**/*.c" }))
    assert.equal("a.c\n     1:word\n[2 entries left out by .gitignore; ignored = true shows them]",
      told(TEXTS, "grep", { pattern = "word" }))
    assert.equal("no line matches 'none'\n[2 entries left out by .gitignore; ignored = true shows "
      .. "them]", told(TEXTS, "grep", { pattern = "none" }))
    assert.equal("the folder 'x' has nothing to show\n[1 entry left out by .gitignore; "
      .. "ignored = true shows it]",
      told({ [".gitignore"] = "y", ["x/y"] = "" }, "list_files", { path = "x" }))
  end)

  it("look at all with `ignored`, and if the script says so", function()
    assert.equal(".gitignore  12 bytes\na.c  5 bytes\nb.log  5 bytes\nout/",
      told(TEXTS, "list_files", { ignored = true }))
    assert.matches("out/c%.c", told(TEXTS, "grep", { pattern = "word", ignored = true }))
    assert.equal(".gitignore  12 bytes\na.c  5 bytes\nb.log  5 bytes\nout/",
      told(TEXTS, "list_files", {}, { gitignore = false }))
    assert.matches("out/c%.c", told(TEXTS, "grep", { pattern = "word" }, { gitignore = false }))
    assert.matches("/ignored: unknown property",
      told(TEXTS, "grep", { pattern = "word", ignored = true }, { gitignore = false }))
  end)

  it("name three files, and those that are too large", function()
    local texts = { [".gitignore"] = ("#"):rep(70000) }
    for _, folder in ipairs { "a", "b", "c", "d", "e" } do
      texts[folder .. "/.gitignore"] = "x\n"
      texts[folder .. "/x"] = "word\n"
    end
    assert.equal("no line matches 'word'\n[5 entries left out by a/.gitignore, b/.gitignore, "
      .. "c/.gitignore and 2 more files; ignored = true shows them; too large to be obeyed: "
      .. ".gitignore]", told(texts, "grep", { pattern = "word" }))
  end)
end)
