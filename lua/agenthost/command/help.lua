--- agenthost COMMAND --help. What the tables do not hold of a command stands here.
local _, use = ...
local tables = use "tables"

local function defects()
  local names = {}
  for _, row in ipairs(use "mock.fields") do
    names[#names + 1] = row.defect and row.name or nil
  end
  return table.concat(names, " ")
end

local INSPECTED = "script.lua [args...]"

-- operands: what follows the options.
local MORE = {
  tools = { operands = INSPECTED, [[
The script's top level runs, up to its first ah.run or agent:run, and `setup` of
its agents; no model is asked. For each agent and run that was met: the model,
the tools with their parameters in short form. --json has the exact
specifications. What the script prints until then goes to stderr.
]] },
  check = { operands = INSPECTED, [[
The script's top level runs, up to its first ah.run or agent:run, and `setup` of
its agents, as for agenthost tools: what they do is done.
All faults that can be seen so are told with their line, not only the first:
syntax, fields, names, schemas and their examples, tools declared twice, the
limits of the model's provider. What stands behind that run, and what handlers
do, is not looked at. The exit code is 1 when there are faults.
]] },
  mock = { operands = "script.lua", [[
Speaks as OpenAI, Anthropic, Gemini and Ollama do, refuses what strict providers
refuse, prints its address as one line; a signal or --once ends it. The script
returns turns as for ah.scripted, or as JSON; they may fail, wait or break by
]] .. "  " .. defects() .. "\n" },
  models = { operands = "[provider/model]", [[
For each provider: whether a model of it can be asked, the variable that its
key comes from, its address or the variable that has it; keys are never shown.
Then what the adapters can do, or that of the model that is named. No provider
is asked. Names that CODE gives with ah.alias, and the configuration, are
listed. Of a model that is named it is told what it holds and costs, and
where each answer comes from.
]] },
  config = { [[
A flag wins over the script, the script over the environment, that over the
project's settings, these over the user's: lines NAME = VALUE below [SECTION] in
agenthost.conf of this folder or the nearest above it, and in
$XDG_CONFIG_HOME/agenthost/config (or ~/.config/agenthost/config). The names are
those that are shown, models.NAME (a model, or what is known of one, as a JSON
object), providers.NAME.base_url and .api_key_env. log is error, warning, info
or debug. Secrets are never shown.
]] },
  trust = { operands = "[FOLDER]", [[
Shows the settings in agenthost.conf of the folder (else of this one, or the
nearest above it), and asks whether all of them are to hold: those, too, that
send elsewhere, set variables, name a model or raise a limit, which are left out
before. What is kept is the hash of the file, and of the file of variables that
it names, in $XDG_STATE_HOME/agenthost/trusted (~/.local/state): once one of
them changes, it is to be said anew. Without a terminal it needs --yes.
]] },
  completion = { operands = "bash|zsh|fish", [[
bash:  source <(agenthost completion bash)
zsh:   agenthost completion zsh >~/.zfunc/_agenthost  (a folder of $fpath)
fish:  agenthost completion fish | source
]] },
}

local function option_line(option)
  local left = ("%s--%s%s"):format(option.letter and "-" .. option.letter .. ", " or "    ",
    option.name or "", option.value and " " .. option.value or "")
  return ("  %-20s%s\n"):format(left, option.help)
end

--- The exit code, a line end, and what to print.
---@param name string of the command
---@param ... string the tables
---@return string
return function(name, ...)
  local commands, options = tables.read(...)
  local more, parts = MORE[name] or { operands = "[args...]", "" }, {}
  for _, command in ipairs(commands) do
    parts[1] = command.name == name and command.help or parts[1]
  end
  parts[1] = ("agenthost %s: %s.\n\nUsage: agenthost %s [options]%s\n%s\nOptions:\n"):format(name,
    parts[1], name, more.operands and " " .. more.operands or "",
    more[1] ~= "" and "\n" .. more[1] or "")
  for _, option in ipairs(options) do
    parts[#parts + 1] = tables.takes(name, option) and option_line(option) or nil
  end
  parts[#parts + 1] = "\nExit codes: 0 ok, 1 faults or a failure, 2 wrong usage.\n"
  return "0\n" .. table.concat(parts)
end
