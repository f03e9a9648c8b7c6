-- The rows of flags of running (src/cli/options.c) and of the commands (lua/agenthost/command), and
-- all texts that are made from them: --help, the man page, and the completions, which are also
-- tried in their shells.
local ah = require "agenthost"
local command = require "support.command"
local flags = require "support.flags"
local programs = require "support.programs"

local agenthost, contents, has, quote, temp = command.agenthost, command.contents, command.has,
  command.quote, command.temp

local MAN = contents("man/agenthost.1.scd")

local function section(text, from, to)
  return assert(text:match("\n" .. from .. "\n(.-)\n" .. to), "no part " .. from)
end

local function set(text, ...)
  local found = {}
  for _, pattern in ipairs { ... } do
    for word in text:gmatch(pattern) do
      found[word] = true
    end
  end
  return found
end

local function man(part)
  return section(MAN .. "\n# ", "# " .. part, "# ")
end

-- Names of the commands, as the program lists them; the first, "", runs a script.
local COMMANDS = { "", table.unpack(programs("commands").names) }

-- The commands and actions whose help has options: "mcp list" and so on in place of "mcp".
local HELPED = {}
for _, name in ipairs(COMMANDS) do
  local found = programs("commands").find(name)
  for _, action in ipairs(found and found.actions or {}) do
    HELPED[#HELPED + 1] = name .. " " .. action
  end
  HELPED[#HELPED + 1] = not (found and found.actions) and name or nil
end

-- The commands whose help has the options for running a script in one line.
local SHORT = { prompt = true, chat = true }

local RUNNING, NAMED = flags.running()

local function flags_of(name)
  return programs("flags").of(programs("commands").find(name), RUNNING, NAMED)
end

-- Every flag once.
local OPTIONS, taken_by = {}, {}
for _, name in ipairs(table.move(HELPED, 1, #HELPED, #COMMANDS + 1,
  table.move(COMMANDS, 1, #COMMANDS, 1, {}))) do
  taken_by[name] = {}
  for _, row in ipairs(flags_of(name)) do
    taken_by[name][row.name] = row
    OPTIONS[#OPTIONS + 1] = not OPTIONS[row.name] and row or nil
    OPTIONS[row.name] = row
  end
end

local function takes(name, option)
  return taken_by[name][option.name] ~= nil
end

-- Returns the words of a command or an action, and more.
local function words_of(name, ...)
  local words = {}
  for word in name:gmatch "%S+" do
    words[#words + 1] = word
  end
  for _, word in ipairs { ... } do
    words[#words + 1] = word
  end
  return table.unpack(words)
end

-- Options with an optional value, by its form.
local FORMS = { [true] = "%s [%s]", ["="] = "%s[=%s]" }

local function names_of(option)
  return option.letter and "-" .. option.letter, "--" .. option.name
end

-- Returns the options of a command in the tables, as a set of "-v", "--verbose", ...
local function expected(name)
  local found = {}
  for _, option in ipairs(OPTIONS) do
    if takes(name, option) then
      local letter, long = names_of(option)
      found[long] = true
      found[letter or long] = true
    end
  end
  return found
end

after_each(command.tidy)

describe("the table of options", function()
  it("is read whole by this spec", function()
    assert.same({ "", "prompt", "chat", "list", "show", "diff", "search", "replay", "asks",
      "respond", "resume", "fork", "rewind", "store", "init", "tools", "check", "test", "mock",
      "mcp", "models", "config", "trust", "completion", "help" }, COMMANDS)
    assert.is_true(#OPTIONS >= 60)
    assert.equal("auto always never", OPTIONS.color.words)
    assert.same({ "N", 65535 }, { OPTIONS.port.value, OPTIONS.port.most })
  end)

  it("is what --help of each command shows, values included", function()
    for _, name in ipairs(HELPED) do
      local help = agenthost(words_of(name, "--help")).out
      local rest = help:match("\nOptions:\n(.*)")
      local part = rest:match("^(.-)\n%f[^%s]") or rest
      local shared = SHORT[name] and rest:match "\n(%-[^\n]*)\n" or ""
      local all, left = expected(name), {}
      for word in shared:gmatch "%S+" do
        for _, option in ipairs(OPTIONS) do
          local letter, long = names_of(option)
          if word == letter or word == long or SHORT[name] and long == "--" then
            left[long], all[letter or long], all[long] = true, nil, nil
          end
        end
      end
      assert.same(all, set("\n" .. part, "\n  (%-%a), ", "\n      (%-%-[%l-]*)",
        "\n  %-%a, (%-%-[%l-]*)"), name)
      for _, option in ipairs(OPTIONS) do
        if option.value and takes(name, option) and not left["--" .. option.name] then
          has(part, (FORMS[option.optional] or "%s %s"):format("--" .. option.name, option.value))
        end
      end
    end
  end)

  it("is what the command accepts", function()
    for _, name in ipairs(HELPED) do
      for _, option in ipairs(OPTIONS) do
        local words = { words_of(name) }
        local value = option.words and option.words:match("%S+$") or "1"
        words[#words + 1] = "--" .. option.name .. (option.value and "=" .. value or "")
        words[#words + 1] = "--help"
        local r = agenthost(table.unpack(option.name == "" and { "--help" } or words))
        for _, refusal in ipairs { "unknown option", "takes no value", "needs" } do
          assert.falsy(r.err:find(refusal, 1, true), table.concat(words, " "))
        end
      end
    end
  end)
end)

describe("the man page", function()
  it("has the commands and options of the tables", function()
    local options = {}
    for _, name in ipairs(COMMANDS) do
      for option in pairs(expected(name)) do
        options[option] = true
      end
      if name ~= "" then
        has(man("COMMANDS"), "\n*" .. name .. "*\n")
      end
    end
    for i = 2, #HELPED do
      has(man("SYNOPSIS"), "*agenthost " .. HELPED[i] .. "*")
    end
    local part = "\n" .. man("OPTIONS")
    assert.same(options, set(part, "\n%*(%-%a)%*", "\n%*(%-%-[%l-]*)%*", ", %*(%-%-[%l-]*)%*"))
    for _, option in ipairs(OPTIONS) do
      if option.value then
        has(part, (FORMS[option.optional] or "%s %s"):format("*--" .. option.name .. "*",
          "_" .. option.value .. "_"))
      end
    end
  end)

  it("tells what each command takes as its help does", function()
    local synopsis = man("SYNOPSIS"):gsub("[*_]", "")
    for i = 2, #HELPED do
      local usage = agenthost(words_of(HELPED[i], "--help")).out:match "\nUsage: ([^\n]+)\n"
      has(synopsis, usage .. "\n")
    end
  end)

  it("has the variables, exit codes and examples of --help", function()
    local help = agenthost("--help").out
    assert.same(set(section(help, "Environment:", "Exit"), "  ([%u_]+)%f[ ,]", ", ([%u_]+)  "),
      set("\n" .. man("ENVIRONMENT"), "\n%*([%u_]+)%*\n"))
    assert.same(set(section(help, "Exit codes:", "Examples:"), "%f[%d](%d+)%f[ ,]"),
      set(man("EXIT STATUS"), "%*(%d+)%*"))
    for example in section(help, "Examples:", "$"):gmatch("    ([^\n]+)") do
      has(man("EXAMPLES"), example)
    end
    has(man("EXAMPLES"), agenthost().err:match("Try: +([^\n]+)"))
  end)

  it("has the settings of the configuration", function()
    local settings = {}
    for name in pairs(ah.json.decode(agenthost("config", "--json").out).settings) do
      settings[name] = true
    end
    local part = "\n" .. man("CONFIGURATION")
    local told = set(part, "\n%*([%l-]+)%*\n")
    for of, names in part:gmatch "\n%*\\%[(%l+)%]%* ([%l\\_, ]+)\n" do
      for name in names:gsub("\\", ""):gmatch "[%l_]+" do
        told[of .. "." .. name] = true
      end
    end
    assert.same(settings, told)
  end)
end)

describe("completion", function()
  -- Returns the words that bash offers to complete these, as a set; the last word is incomplete.
  local function bash(...)
    local words = { "agenthost", ... }
    local list = {}
    for i, word in ipairs(words) do
      list[i] = quote(word)
    end
    local r = command.shell(([[bash -c 'source <("$1" completion bash); compopt() { :; }
      shift; COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _agenthost
      printf "%%s\n" "${COMPREPLY[@]}"' - "$A" %s]]):format(table.concat(list, " ")))
    assert.equal("", r.err)
    return set(r.out, "[^\n]+")
  end

  it("of bash offers the options of each command and no others", function()
    for _, name in ipairs(COMMANDS) do
      local options = expected(name)
      if name == "" then -- also for a prompt
        for option in pairs(expected "prompt") do
          options[option] = true
        end
      end
      options["--"] = nil
      assert.same(options, name == "" and bash("-") or bash(name, "-"), name)
    end
  end)

  it("of bash offers commands, values and files where they belong", function()
    assert.same({ chat = true, check = true }, bash("ch"))
    assert.same({ ["--color"] = true, ["--continue"] = true }, bash("--co"))
    assert.same({ read_file = true }, bash("-t", "read"))
    assert.same({ auto = true, always = true, never = true }, bash("--color", ""))
    assert.same({ bash = true, zsh = true, fish = true, aliases = true, saved = true,
      servers = true }, bash("completion", ""))
    local actions = bash("mcp", "")
    assert.is_true(actions.list and actions.call and actions.serve)
    assert.same({ call = true }, bash("mcp", "ca"))
    assert.same({ ["examples/quickstart.lua"] = true }, bash("check", "--json", "examples/quick"))
    assert.same({ ["examples/moons.csv"] = true }, bash("examples/quickstart.lua", "examples/mo"))
    assert.is_true(bash("--model", "")["demo/echo"])
    assert.same({ ["anthropic/claude-sonnet-5-5"] = true, ["anthropic/claude-sonnet-4-5"] = true },
      bash("--model", "anthropic/claude-s"))
    local shown = agenthost "models".out
    for name in pairs(bash("-m", "anthropic/c")) do
      has(shown, name)
    end
    assert.is_true(bash("--model", "moonshot/")["moonshot/kimi-k3"])
    assert.same({ ["gemini/gemini-3.8-flash"] = true }, bash("models", "gemini/gemini-3"))
    assert.same({ tools = true, ["tools.lua"] = nil }, bash("--model", "demo/echo", "too"))
  end)

  it("of --model has names of every provider, and no others", function()
    local offered, there = {}, {}
    for name in pairs(bash("--model", "")) do
      offered[name:match "^[^/]+"] = true
    end
    for name in agenthost("models").out:match("\n(.-)\n\n"):gmatch "\n?([%l_]+)[^\n]*" do
      there[name] = true
    end
    there.demo, there.claude_agent_sdk = true, true
    assert.same(there, offered)
  end)

  for _, shell in ipairs { "bash", "zsh", "fish" } do
    it("of " .. shell .. " names every option of the table, and the shell can read it", function()
      local text = agenthost("completion", shell).out
      for _, option in ipairs(OPTIONS) do
        local long = shell == "fish" and "-l " .. option.name or "--" .. option.name
        assert.truthy(option.name == "" or text:find(long, 1, true), long)
      end
      local path = temp(text)
      local try = "command -v %s >/dev/null || exit 42; %s -n %s"
      local r = command.shell(try:format(shell, shell, path))
      if r.code ~= 42 then
        assert.same({ code = 0, out = "", err = "" }, r)
      end
    end)
  end

  it("of fish offers what is there, where there is a fish", function()
    local r = command.shell([[command -v fish >/dev/null || exit 42
      HOME=/nonexistent fish --no-config -c '"$argv[1]" completion fish | source
        complete -C "agenthost check --j"; complete -C "agenthost --color "
        complete -C "agenthost che"' "$A"]])
    if r.code ~= 42 then
      has(r.out, "--json")
      has(r.out, "always")
      has(r.out, "check\t")
      assert.falsy(r.out:find("--jsonl", 1, true))
    end
  end)
end)
