--- Follows docs/internals/adding.md in a copy of the sources: applies each of its blocks, builds
-- the changes, checks the floors, and uses each new feature.
local markdown = require "support.markdown"
local server = require "support.server"

local PAGE = "docs/internals/adding.md"
local SOURCES = "Makefile src include lua spec fuzz bench examples tools docs"
local BUILT = "src *_sources.*"

local function run(command)
  local pipe <close> = assert(io.popen(("{ %s\n} 2>&1"):format(command)))
  local out = pipe:read "a"
  local ok, _, code = pipe:close()
  return ok and 0 or code, out
end

local function check(command)
  local code, out = run(command)
  assert(code == 0, command .. "\n" .. out)
  return out
end

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  assert(f:write(text))
end

-- -- applying -----------------------------------------------------------------------------

-- Returns the places in which these lines follow each other.
local function places(lines, wanted)
  local found = {}
  for at = 1, #lines - #wanted + 1 do
    local n = 0
    while n < #wanted and lines[at + n] == wanted[n + 1] do
      n = n + 1
    end
    if n == #wanted then
      found[#found + 1] = at
    end
  end
  return found
end

local function split(text)
  local lines = {}
  for line in text:gmatch "([^\n]*)\n" do
    lines[#lines + 1] = line
  end
  return lines
end

-- Returns the lines that a block of changes expects, and the lines that replace them.
local function both_sides(block)
  local before, after = {}, {}
  for _, line in ipairs(split(block.text)) do
    local sign, rest = line:sub(1, 1), line:sub(2)
    assert(sign == " " or sign == "+" or sign == "-", block.at .. ": " .. line)
    before[#before + 1] = sign ~= "+" and rest or nil
    after[#after + 1] = sign ~= "-" and rest or nil
  end
  return before, after
end

local function change(root, block)
  local path = root .. "/" .. block.name
  local lines, before, after = split(markdown.read(path)), both_sides(block)
  local found = places(lines, before)
  assert(#found == 1, ("%s: %d places in %s, one is wanted"):format(block.at, #found, block.name))
  local new = table.move(lines, 1, found[1] - 1, 1, {})
  table.move(after, 1, #after, #new + 1, new)
  table.move(lines, found[1] + #before, #lines, #new + 1, new)
  write(path, table.concat(new, "\n") .. "\n")
end

local function create(root, block)
  local path = root .. "/" .. block.name
  assert(not io.open(path), block.at .. ": there is a " .. block.name)
  write(path, block.text)
end

-- -- the copy ---------------------------------------------------------------------------

-- The copy includes the build, so that only changes are built, in a folder of the same name, as the
-- lists of dependencies contain that name.
local function copy_tree(root, build)
  check(("mkdir -p %s/%s && cp -a %s %s/ && cd %s && cp -a %s %s"):format(root, build, SOURCES,
    root, build, BUILT, quote(root .. "/" .. build)))
end

-- Returns the flags of the build without those of optimization: { CC =, EXTRA = }.
local function flags_of(build)
  local all = markdown.read(build .. "/flags")
  local extra = {}
  for word in all:gmatch "%S+" do
    extra[#extra + 1] = (word:find "^%-f%l*sanitize" or word:find "^%-DAH_" or word == "--coverage")
      and word or nil
  end
  return { CC = all:match "^(.-) %-std=", EXTRA = table.concat(extra, " ") }
end

local function make(root, build)
  local flags = flags_of(build)
  return check(("cd %s && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u LD_PRELOAD make -j2 "
    .. "ANY_FLAGS=yes WERROR=-Werror CFLAGS=-O0 CC=%s EXTRA=%s BUILD=%s %s/agenthost"):format(root,
    quote(flags.CC), quote(flags.EXTRA), build, build))
end

local CALL = { id = "1", name = "colour", arguments = server.encode { bird = "me" } }
local ASK = [[assert(require "agenthost".run { model = "parrot/p", retries = 0, "x" })]]

-- Another sub-command, for what the page's one does not do: it ends in the way that its arguments
-- name.
local ODD = [[
--- agenthost odd: for the specs.
local ah = ...
return { name = "odd", doc = "end in some way", operand = { name = "way", least = 1 },
  flags = { "env-file", { name = "apart", doc = "do nothing" } },
  run = function(flags, words, out)
    if words[1] == "code" then
      print("printed", flags.verbose, flags.quiet)
      return tonumber(words[2]), words[3]
    elseif words[1] == "raise" then
      error(ah.error { code = words[2], message = "was raised" })
    elseif words[1] == "wait" then
      out:write("ready\n"):flush()
      ah.sleep(60)
    end
    while true do
      out:write(("x"):rep(4096))
    end
  end }
]]

local function add_odd(root)
  local path = root .. "/lua/agenthost/command/"
  write(path .. "odd.lua", ODD)
  local list = markdown.read(path .. "commands.lua"):gsub('"count" }', '"count", "odd" }')
  write(path .. "commands.lua", list)
end

local function follow(blocks, root, build)
  copy_tree(root, build)
  for _, block in ipairs(blocks) do
    if block.kind == "new" then
      create(root, block)
    elseif block.kind == "change" then
      change(root, block)
    end
  end
  add_odd(root)
  make(root, build)
end

-- Returns the build folder relative to the sources; in the copy it has the same name.
local function build_folder()
  local here <close> = assert(io.popen "pwd -P")
  local folder, root = os.getenv "AGENTHOST_BUILD" or "build", here:read "l" .. "/"
  folder = folder:sub(1, #root) == root and folder:sub(#root + 1) or folder:gsub("^%./", "")
  assert(folder:sub(1, 1) ~= "/", folder .. " is not below the sources")
  return folder
end

describe(PAGE, function()
  local build = build_folder()
  local blocks, root = markdown.blocks(PAGE), nil

  -- Runs the page's script of that name and compares its output with the page.
  local function prints(name, env)
    for _, block in ipairs(blocks) do
      if block.kind == "script" and block.name == name then
        write(root .. "/" .. name, block.text)
        local out = check(("cd %s && env %s %s/agenthost %s"):format(root, env or "", build, name))
        assert.equal(block.output, out, block.at)
        return
      end
    end
    error("no block " .. name)
  end

  local function remove()
    os.execute("rm -rf " .. quote(root))
  end

  setup(function()
    root = os.tmpname()
    os.remove(root)
    local ok, why = pcall(follow, blocks, root, build)
    if not ok then
      remove()
      error(why, 0)
    end
  end)

  teardown(remove)

  it("keeps the floors of the house and their modules", function()
    check(("cd %s && lua5.4 spec/support/floors.lua %s"):format(root, build))
  end)

  it("adds a server that speaks OpenAI's form, with an address and a key", function()
    local s <close> = server.start { responses = { server.chat_text "Caw." } }
    prints("server.lua", "CROW_API_BASE=" .. s.url)
    assert.equal("/chat/completions", s:requests()[1].path)
    assert.equal("Bearer shiny", s:requests()[1].headers.authorization)
  end)

  it("adds a provider that is asked, calls tools, and is known", function()
    local s <close> = server.start { responses = {
      { body = server.encode { said = "", calls = server.array { CALL } } },
      { body = server.encode { said = "I am grey." } } } }
    prints("provider.lua", "PARROT_API_BASE=" .. s.url)
    local first, second = table.unpack(s:requests())
    assert.equal("/say", first.path)
    assert.equal("Bearer cracker", first.headers.authorization)
    local asked = server.decode(first.body)
    assert.equal("polly", asked.model)
    assert.equal("colour", asked.tools[1].name)
    assert.same({ { role = "user", content = "Which colour have you?" } }, asked.messages)
    local told = server.decode(second.body).messages
    assert.equal("me: grey", told[3].content)
    assert.equal(told[2].calls[1].id, told[3].id)
    assert.matches("parrot", check(("cd %s && %s/agenthost models"):format(root, build)))
  end)

  it("adds a provider that refuses what is no answer of its, and tells its errors", function()
    for body, words in pairs { ['{"said":7}'] = "said must be a string",
      ['{"error":"tired"}'] = "tired" } do
      local s <close> = server.start { responses = { { body = body } } }
      local _, out = run(("cd %s && PARROT_API_BASE=%s PARROT_API_KEY=k %s/agenthost -e %s"):format(
        root, s.url, build, quote(ASK)))
      assert.truthy(out:find(words, 1, true), out)
    end
  end)

  it("adds a built-in tool that is called", function()
    prints "tool.lua"
  end)

  it("adds a limit that is met", function()
    prints "limit.lua"
  end)

  it("adds a limit to the page of fields and to the types", function()
    check(("cd %s && %s/agenthost tools/generate.lua"):format(root, build))
    for _, path in ipairs { "docs/reference/run.md", "lua/agenthost/types/agenthost.lua" } do
      assert.truthy(markdown.read(root .. "/" .. path):find "max_calls", path)
    end
  end)

  it("adds an event that is seen", function()
    prints "event.lua"
  end)

  it("adds a sub-command that runs, is helped with, and fails with its words", function()
    for _, block in ipairs(blocks) do
      if block.kind == "shell" then
        local path = ("PATH=%s/%s:$PATH"):format(root, build)
        local out = check(("cd %s && %s && set -e\n%s"):format(root, path, block.text))
        assert.equal(block.output, out, block.at)
      end
    end
    local function run_it(words)
      return run(("cd %s && %s/agenthost %s"):format(root, build, words))
    end
    assert.matches("\n  count +count the words of files\n", select(2, run_it "--help"))
    assert.matches("^agenthost count: count the words of files.\n\nUsage: .*%-%-json",
      select(2, run_it "count --help"))
    assert.matches("Did you mean agenthost count", select(2, run_it "cuont"))
    assert.matches("\n  %-n, %-%-least N +only files of N words or more\n",
      select(2, run_it "count --help"))
    for words, refusal in pairs { ["count --model=x f"] = "--model is not for agenthost count",
      ["count --laest 1 f"] = "'--laest' (did you mean --least?)",
      ["check --least 1 f"] = "--least is not for agenthost check",
      ["count -n x f"] = "--least needs a number from 0 to 999999999, found 'x'",
      count = "no file given" } do
      local code, out = run_it(words)
      assert.equal(2, code, words)
      assert.truthy(out:find(refusal, 1, true), out)
    end
    for shell, words in pairs { bash = "count:-*) COMPREPLY=($(compgen -W '--json -n --least ",
      zsh = "'count:count the words of files'",
      fish = "'__fish_seen_subcommand_from count' -s n -l least -x" } do
      assert.truthy(select(2, run_it("completion " .. shell)):find(words, 1, true), shell)
    end
    assert.same({ 1, "agenthost: cannot count: none.txt: No such file or directory\n" },
      { run_it "count none.txt" })
  end)

  it("gives a sub-command that ends as it says, or as it is told to", function()
    local function ends(words, code, out)
      local line = ("cd %s\n%s/agenthost %s"):format(root, build, words)
      assert.same({ code, out }, { run(line) }, words)
    end
    ends("odd -vv code 0", 0, "printed\t2\tnil\n")
    ends("-q -v odd code 7", 7, "printed\t1\tnil\n")
    ends("-v odd -q code 3 'so it is'", 3, "printed\tnil\ttrue\nagenthost: so it is\n")
    ends("odd raise budget_exceeded", 4, "agenthost: budget_exceeded: was raised\n")
    ends("odd raise http", 3, "agenthost: http: was raised\n")
    ends("odd", 2, "agenthost: no way given\nSee agenthost odd --help.\n")
    ends("odd pour | head -c 3; exit ${PIPESTATUS:-0}", 0, "xxx")
    ends("odd pour >/dev/full", 1,
      "agenthost: cannot write to standard output: No space left on device\n"
      .. "agenthost: cannot write to standard output: a write failed (disk full?); "
      .. "what was printed is incomplete\n")
    for signal, code in pairs { INT = 130, TERM = 143 } do
      os.remove(root .. "/out.txt") -- the loop must not see that of the other signal
      ends(([[odd wait >out.txt & p=$!
        for i in $(seq 200); do [ -s out.txt ] && break; sleep 0.05; done
        kill -%s $p; wait $p; code=$?; cat out.txt; exit $code]]):format(signal), code, "ready\n")
    end
  end)

  it("counts the files of its recipes", function()
    local counted, current = {}, nil
    for line in io.lines(PAGE) do
      local heading, file = line:match "^## (.+)", line:match "^<!%-%- %l+: (%S+/%S+) %-%->$"
      current = heading or current
      if file then
        counted[current] = counted[current] or { n = 0 }
        counted[current].n = counted[current].n + (counted[current][file] and 0 or 1)
        counted[current][file] = true
      end
    end
    local rows = markdown.tables(markdown.read(PAGE))[1]
    for heading, row in pairs {
      ["A server that speaks OpenAI's form"] = "a server that speaks OpenAI's form",
      ["A provider"] = "a provider with a wire of its own",
      ["A built-in tool"] = "a built-in tool", ["A limit"] = "a limit of runs",
      ["An event"] = "an event", ["A sub-command"] = "a sub-command" } do
      for _, cells in ipairs(rows) do
        if cells[1] == row then
          assert.equal(tonumber(cells[2]), counted[heading].n, heading)
          counted[heading] = nil
        end
      end
    end
    assert.is_nil(next(counted))
  end)
end)
