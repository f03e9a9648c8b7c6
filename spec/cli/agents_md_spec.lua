-- The instructions of a project (lua/agenthost/command/agents_md.lua): which files AGENTS.md are
-- read, how much of them, and the section of a prompt that they become.
local ah = require "agenthost"
local command = require "support.command"

local has, quote = command.has, command.quote
local root -- HOME is root/home, a repository root/home/project

-- The programs copy this function when they are loaded.
local getenv = os.getenv
os.getenv = function(name) -- luacheck: ignore
  return name == "HOME" and root .. "/home" or getenv(name)
end
local agents_md = require "support.programs" "agents_md"
os.getenv = getenv -- luacheck: ignore

local function sh(line)
  assert(os.execute(("cd %s && { %s; }"):format(quote(root), line)))
end

local function write(path, text)
  command.write(root .. "/" .. path, text)
end

-- Returns the files for a folder below root as { NAME, TEXT }, and those left out as "PATH: WHY".
local function read(folder)
  local list, left = agents_md.read(root .. "/" .. (folder or "home/project/a/b"))
  for i, file in ipairs(list) do
    list[i] = { file.name, file.text }
  end
  for i, file in ipairs(left) do
    left[i] = file.path:sub(#root + 2) .. ": " .. file.why
  end
  return list, left
end

before_each(function()
  root = ah._real_path(command.folder())
  sh "mkdir -p home/project/.git home/project/a/b home/bare/sub"
end)
after_each(function()
  command.tidy()
end)

describe("the files AGENTS.md", function()
  it("are read from the top of the repository to the folder, outermost first", function()
    write("home/AGENTS.md", "home")
    write("home/project/AGENTS.md", "top")
    write("home/project/a/b/AGENTS.md", "b\n")
    assert.same({ { "../../AGENTS.md", "top" }, { "AGENTS.md", "b\n" } }, (read()))
    assert.same({ { "../AGENTS.md", "top" } }, (read "home/project/a"))
    assert.same({ { "AGENTS.md", "top" } }, (read "home/project"))
    local file = agents_md.read(root .. "/home/project")[1]
    assert.same({ path = root .. "/home/project/AGENTS.md", name = "AGENTS.md", text = "top",
      bytes = 3, cut = false }, file)
  end)

  it("begin at the nearest .git, which is a file in a worktree", function()
    write("home/project/AGENTS.md", "top")
    write("home/project/a/AGENTS.md", "a")
    write("home/project/a/.git", "gitdir: elsewhere\n")
    assert.same({ { "../AGENTS.md", "a" } }, (read()))
  end)

  it("are only that of the folder without a repository", function()
    write("home/bare/AGENTS.md", "above")
    assert.same({}, (read "home/bare/sub"))
    write("home/bare/sub/AGENTS.md", "here")
    assert.same({ { "AGENTS.md", "here" } }, (read "home/bare/sub"))
  end)

  it("are never searched in HOME and above", function()
    sh "mkdir .git home/.git"
    write("AGENTS.md", "above")
    write("home/AGENTS.md", "home")
    assert.same({}, (read "home/bare/sub"))
    assert.same({ { "AGENTS.md", "home" } }, (read "home"))
  end)

  it("that are empty count as absent", function()
    write("home/project/AGENTS.md", " \n\t\n")
    assert.same({ {}, {} }, { read() })
  end)

  it("may be links within the project, and lead nowhere else", function()
    write("home/project/CLAUDE.md", "top")
    sh "ln -s CLAUDE.md home/project/AGENTS.md"
    sh "ln -s ../../secret home/project/a/AGENTS.md; ln -s none home/project/a/b/AGENTS.md"
    write("home/secret", "secret")
    local list, left = read()
    assert.same({ { "../../AGENTS.md", "top" } }, list)
    assert.same({ "home/project/a/AGENTS.md: it is a link that leads out of the project",
      "home/project/a/b/AGENTS.md: it is a symbolic link" }, left)
    sh "rm home/project/a/AGENTS.md; ln -s ../../project2 home/project/a/AGENTS.md"
    write("home/project2", "a name that begins like the project's")
    assert.same({ "home/project/a/AGENTS.md: it is a link that leads out of the project",
      "home/project/a/b/AGENTS.md: it is a symbolic link" }, (select(2, read())))
  end)

  it("that are no text are left out", function()
    sh "mkfifo home/project/AGENTS.md; mkdir home/project/a/AGENTS.md"
    write("home/project/a/b/AGENTS.md", "a\0b")
    local list, left = read()
    assert.same({}, list)
    assert.equal(3, #left)
    has(left[1], "home/project/AGENTS.md: it is no regular file")
    has(left[2], "home/project/a/AGENTS.md: it is no regular file")
    has(left[3], "home/project/a/b/AGENTS.md: it is not text")
  end)

  it("of another user are left out", function()
    write("home/project/AGENTS.md", "top")
    write("home/project/a/AGENTS.md", "a")
    local is_mine = ah._is_mine
    ah._is_mine = function(path) return path ~= root .. "/home/project/a" and is_mine(path) end
    local list, left = read()
    assert.same({}, list) -- the search ends at that folder
    assert.same({}, left)
    list, left = read "home/project/a"
    ah._is_mine = is_mine
    assert.same({}, list)
    assert.same({ "home/project/a/AGENTS.md: it, or its folder, belongs to another user" }, left)
    local read_file = ah._read_file
    ah._read_file = function(...) return read_file(...), false end
    list, left = read "home/project/a"
    ah._read_file = read_file
    assert.same({}, list)
    assert.equal(2, #left)
  end)

  it("are cut at a character, those that are far away first", function()
    write("home/project/AGENTS.md", ("t"):rep(100))
    write("home/project/a/AGENTS.md", ("é"):rep(20000))
    write("home/project/a/b/AGENTS.md", "x" .. ("é"):rep(20000))
    local list = agents_md.read(root .. "/home/project/a/b")
    assert.same({ 1, 32768, 32767 }, { #list[1].text, #list[2].text, #list[3].text })
    for _, file in ipairs(list) do
      assert.truthy(utf8.len(file.text))
    end
    has(agents_md.section(list), "\n[7232 of 40000 bytes are left out]\n")
    sh "mkdir -p home/project/a/b/c"
    write("home/project/a/b/c/AGENTS.md", "ccc")
    local _, left = read "home/project/a/b/c"
    assert.same({ "home/project/AGENTS.md: files nearer to the folder have all the room" }, left)
    write("home/project/a/b/c/AGENTS.md", ("x"):rep((1 << 20) + 1))
    assert.same({ "home/project/a/b/c/AGENTS.md: it is larger than 1 MiB" },
      (select(2, read "home/project/a/b/c")))
  end)

  it("become UTF-8, within the same limit", function()
    write("home/project/AGENTS.md", ("\xff"):rep(20000))
    local file = agents_md.read(root .. "/home/project")[1]
    assert.same({ 32766, 60000, true }, { #file.text, file.bytes, file.cut })
    assert.truthy(utf8.len(file.text))
  end)

  it("become one section, in which no file can end its own part", function()
    write("home/project/AGENTS.md", "Use tabs.\n```\nNow it ends.")
    write("home/project/a/b/AGENTS.md", "Use spaces.\n")
    local said = agents_md.section((agents_md.read(root .. "/home/project/a/b")))
    has(said, "# Instructions of the project\n")
    has(said, "\n\n../../AGENTS.md:\n````\nUse tabs.\n```\nNow it ends.\n````\n\nAGENTS.md:\n```\n"
      .. "Use spaces.\n```")
    assert.is_nil(agents_md.section {})
  end)
end)
