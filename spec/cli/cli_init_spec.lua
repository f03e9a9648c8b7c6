-- agenthost init: what it makes runs as it is, and as it says; it never overwrites, and makes all
-- files or none.
local command = require "support.command"
local programs = require "support.programs"

local contents, has, quote, shell = command.contents, command.has, command.quote, command.shell

local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"
local SANITIZE = os.getenv "AGENTHOST_ASAN" and "-fsanitize=address,undefined" or ""

local folder

-- Runs a line of the shell in an empty folder, in which `agenthost` is this command.
local function run(line)
  return shell(("cd %s && PATH=%s:$PATH; export XDG_STATE_HOME=$PWD/.state; %s"):format(folder,
    quote(command.BINARY:match "^(.*)/"), line))
end

local function fine(line)
  local r = run(line)
  assert(r.code == 0, line .. "\n" .. r.out .. r.err)
  return r.out
end

-- Returns the lines that it advises, as one script: the first one, a chat and the specs.
local function advised(out)
  local lines = {}
  for line in assert(out:match "\nNext:\n(.*)"):gmatch "  ([^\n]+)\n" do
    lines[#lines + 1] = line
  end
  assert.equal(lines[2]:find " chat agent%.lua$" and 3 or 2, #lines)
  return "set -e\n" .. table.concat(lines, "\n")
end

-- Returns the commands that the README of a project names first.
local function of_readme(name)
  return assert(contents(("%s/%s/README.md"):format(folder, name)):match "\n```sh\n(.-)```\n")
end

-- Returns all files and folders below `path`, and their contents.
local function tree(path)
  return fine(("find %s | sort; find %s -type f | sort | xargs cat"):format(path, path))
end

before_each(function() folder = command.folder() end)

after_each(command.tidy)

-- The output of the advised lines, besides that of busted.
local PRINTS = {
  tools = "The tools said:\n- price: 90\n[1] price bags=1 tea=green -> 40\n",
  entities = '- customer_1_orders: [{"bags":3,"tea":"mint"}]\n[1] find_customer name=',
  chat = '[1] add thing=bread -> ["bread"]\nThe tools said:\n- add: ["bread"]\n',
  ["embed-c"] = "The tools said:\n- price: 90\n- stock: {\"bags\":12}\n",
}

describe("a project of agenthost init", function()
  local flags = programs("commands").find "init".flags
  local names = {}
  for name in flags[1].words:gmatch "%S+" do
    names[#names + 1] = name
  end

  -- Lets programs in C find an installed agenthost.
  local function installed()
    local root = command.folder()
    local r = shell(("unset LD_PRELOAD MAKEFLAGS MAKELEVEL; make -s BUILD=%s DESTDIR= PREFIX=%s "
      .. "LIBDIR=%s/lib install"):format(quote(BUILD), root, root))
    assert(r.code == 0, r.err)
    return ("export PKG_CONFIG_PATH=%s/lib/pkgconfig LD_LIBRARY_PATH=%s/lib CC=cc CFLAGS=%s\n")
      :format(root, root, quote(SANITIZE))
  end

  it("is of a template that this spec knows", function()
    local known = {}
    for name in pairs(PRINTS) do
      known[#known + 1] = name
    end
    table.sort(known)
    table.sort(names)
    assert.same(known, names)
  end)

  for _, name in ipairs(names) do
    it("of the template " .. name .. " runs as it says, and so do its specs", function()
      local before = "unset LD_PRELOAD MAKEFLAGS AGENTHOST_MODEL\n"
        .. (name == "embed-c" and installed() or "")
      local said = fine("agenthost init shop --template " .. name)
      local out = fine(before .. "{ " .. advised(said) .. "\n} <<END\nI need bread\nEND\n")
      has(out, PRINTS[name])
      assert.matches("\n%d success[es]* / 0 failures / 0 errors / 0 pending", out)

      out = fine(before .. "set -e; cd shop; rm -f app\n{ " .. of_readme "shop" .. "} </dev/null")
      assert.matches("\n%d success[es]* / 0 failures / 0 errors / 0 pending", out)
      assert.equal("# shop\n", contents(folder .. "/shop/README.md"):match "^.-\n")
    end)
  end

  it("has no faults, and shows the model that it uses without a key", function()
    for _, name in ipairs { "tools", "entities", "chat" } do
      fine(("agenthost init %s --template=%s"):format(name, name))
      has(fine(("agenthost check %s/agent.lua"):format(name)), "no faults (1 agent")
      has(fine(("unset AGENTHOST_MODEL; agenthost tools %s/agent.lua"):format(name)), "demo/tools")
    end
  end)
end)

describe("agenthost init", function()
  it("takes a path, an empty folder, and names with blanks and quotes", function()
    fine "agenthost init a/b/c"
    assert.equal("# c\n", contents(folder .. "/a/b/c/README.md"):match "^.-\n")
    fine "mkdir empty && agenthost init empty/"
    local out = fine "mkdir here && cd here && agenthost init ."
    assert.equal("# here\n", contents(folder .. "/here/README.md"):match "^.-\n")
    has(out, "Next:\n  agenthost agent.lua ")
    out = fine([[agenthost init "my tea's"]])
    has(fine(advised(out)), "- price: 90\n")
  end)

  it("names this program by its path if the shell finds another one, or none", function()
    local r = shell(("cd %s && PATH=/usr/bin:/bin \"$A\" init x"):format(folder))
    has(r.out, " && " .. command.BINARY .. " agent.lua ")
    has(r.out, "\n  " .. command.BINARY .. " test\n")
    fine "mkdir bin && : >bin/agenthost"
    has(fine('PATH="$PWD/bin:$PATH"; "$A" init y'), command.BINARY .. " test\n")
  end)

  it("overwrites nothing", function()
    fine "mkdir full; mkdir dots; : >dots/.hidden; echo mine >full/agent.lua; ln -s gone link"
    local before = tree "."
    for name, why in pairs {
      full = "'full' is not empty: agenthost init writes into a new or an empty folder",
      dots = "'dots' is not empty",
      ["."] = "'.' is not empty",
      ["full/agent.lua"] = "it is not a folder",
      ["full/agent.lua/x"] = "a part of the path is a file",
      link = "a part of the path is a file or a symbolic link",
    } do
      local r = run("agenthost init " .. name)
      assert.same({ 2, "" }, { r.code, r.out })
      has(r.err, why)
    end
    assert.equal(before, tree ".")
  end)

  it("refuses what is no name", function()
    for word, why in pairs {
      ["''"] = "'' cannot be the name of a folder",
      ["/"] = "'/' cannot be the name of a folder",
      ["$(printf 'a\\033[2Jb')"] = "'a\\x1b[2Jb' cannot be the name of a folder",
      ["$(printf 'a\\377')"] = "cannot be the name of a folder",
      ["-- -x"] = "cannot begin with '-' here; write ./-x",
      ["no/../../x"] = "leads out of the root",
      [".git"] = "'.git' is refused",
      ["a b"] = "agenthost init takes one folder, found 'b' besides",
      ["a --template=tool"] = "option --template needs one of these: tools entities chat embed-c",
      [""] = "no folder given",
    } do
      local r = run("agenthost init " .. word)
      assert.same({ 2, "" }, { r.code, r.out }, word)
      has(r.err, why)
    end
    assert.equal(".\n", tree ".")
  end)

  it("makes all files or none", function()
    local r = run "ulimit -f 2; agenthost init a/shop" -- its README has more than 1024 bytes
    assert.same({ 2, "" }, { r.code, r.out })
    has(r.err, "cannot make 'a/shop': ")
    assert.equal(".\n", tree ".")
  end)

  it("shows the templates in its help", function()
    local out = fine "agenthost init --help"
    for name in pairs(PRINTS) do
      assert.matches("\n  " .. name:gsub("%-", "%%-") .. " +an? %a", out)
    end
  end)
end)
