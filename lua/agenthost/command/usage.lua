--- agenthost --help, and --help of each command.
local _, use = ...
local commands, flags_of = use "commands", use "flags"

local RUN = [[
agenthost runs LLM agents whose tools are written in Lua.

Usage: agenthost [options] script.lua | -e CODE | -i [args...]    (- is stdin)

Commands: agenthost COMMAND [options] ...               (agenthost help COMMAND)
]]

local MORE = [[
Words after a script belong to the script or its agent. Messages go to stderr.

Environment:
  AGENTHOST_MODEL, AGENTHOST_STORE     if neither an option nor the script says
  OPENAI_API_KEY, ANTHROPIC_API_KEY    the providers' keys
  OPENAI_BASE_URL, ANTHROPIC_BASE_URL  servers that speak as theirs do
  AGENTHOST_CLAUDE, NO_COLOR       the claude command (else in PATH); no colours
  XDG_CONFIG_HOME, XDG_STATE_HOME  have agenthost/config and agenthost/trusted

Exit codes:
  0, 1      success; the script failed, or its output could not be written
  2         wrong usage, or a named file cannot be read
  3, 4, 5   the provider or network failed; a limit was reached; an ask waits
  130, 143  ended by SIGINT (Ctrl-C) or SIGTERM; a second one ends at once

Examples:
    OPENAI_API_KEY=... agenthost --model openai/gpt-4o agent.lua "What is new?"
]]

local FORMS = { [true] = " [%s]", ["="] = "[=%s]" } -- of optional values

local function flag_line(row)
  local left = ("%s--%s%s"):format(row.letter and "-" .. row.letter .. ", " or "    ",
    row.name, row.value and (FORMS[row.optional] or " %s"):format(row.value) or "")
  return ("  %-19s %s\n"):format(left, row.doc)
end

-- True if the help of a command leaves the flag to that of running a script.
local function is_shared(command, row, named)
  return command and command.shared and named[row.name] == row and row.name ~= "model"
end

local function flag_lines(command, running, named)
  local lines, shared = {}, {}
  for _, row in ipairs(flags_of.of(command, running, named)) do
    if is_shared(command, row, named) then
      shared[#shared + 1] = row.letter and "-" .. row.letter
        or row.name ~= "" and "--" .. row.name or nil
    else
      lines[#lines + 1] = flag_line(row)
    end
  end
  return "\nOptions:\n" .. table.concat(lines)
    .. (shared[1] and table.concat(shared, " ") .. "\n" or "")
end

-- Returns the actions of a command, or its flags if it has none.
local function parts_of(command, running, named)
  if not command.actions then
    return flag_lines(command, running, named)
  end
  local lines = {}
  for i, name in ipairs(command.actions) do
    lines[i] = ("  %-20s%s\n"):format(name, commands.action(command, name).doc)
  end
  return ("\nActions:             (agenthost %s ACTION --help has the options)\n%s"):format(
    command.name, table.concat(lines))
end

local function of_running(running, named)
  local lines = {}
  for i, name in ipairs(commands.names) do
    lines[i] = ("  %-20s%s\n"):format(name, commands.find(name).doc)
  end
  return RUN .. table.concat(lines) .. flag_lines(nil, running, named) .. MORE
end

---@param command table nil: the command line as a whole
---@param running table the list of flags for running a script
---@param named table the same flags by name
---@return string
return function(command, running, named)
  if not command then
    return of_running(running, named)
  end
  return ("agenthost %s: %s.\n\nUsage: agenthost %s [options]%s\n%s"):format(command.name,
    command.doc, command.name, command.usage and " " .. command.usage or "",
    command.help and "\n" .. command.help or "")
    .. parts_of(command, running, named)
    .. "\nExit codes: " .. (command.exits or "0 ok, 1 faults or a failure, 2 wrong usage.") .. "\n"
end
