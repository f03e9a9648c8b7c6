--- The list of sub-commands. Each is a program of its name, which returns a table:
--
--   name      its name on the command line
--   doc       one line, for help and completions
--   usage     the text after the options in its help: "script.lua [args...]"; nil: none
--   help      more lines of its --help
--   operand   the operands: { name = "script", least, most, words, file, complete }. least, most:
--             their number (default: 0, no limit); words: the allowed words; file: the first is
--             the path of a readable file ("-" is standard input); complete: "file", "folder",
--             "models", file endings ("lua|json"), or a function that returns names; asks: the
--             list of names behind these that completions ask for
--   flags     a list of rows (flags.lua), or of names of flags for running a script
--   apart     true, or the name of a flag, with which it may run code of a script. It then runs in
--             a state of its own, which has the models and variables of the settings; the code's
--             output goes to stderr
--   prints    true if, apart, the output of the code is that of the command, and stays on stdout
--   again     true if its flag --watch runs it again, in a new process (src/cli/watch.c)
--   mixed     true if flags may follow operands; not with `file`
--   pages     true if the program reads the pages of the reference
--   run       function(flags, words, out, line): the flags by name ("env-file" is flags.env_file;
--             -q and -v are flags.quiet and flags.verbose, 1 or 2), the operands, the output, and
--             the whole line. Returns an exit code (nil is 0) and an error message for stderr; an
--             error that it raises is printed, too. A list of { NAME, VALUE } in place of the code
--             is a script to run after it (src/cli/main.c)
--   answer    function(flags, words, line, found): called in place of that script if the list names
--             `answer`, whose value is `found`. Returns as `run`
--   shared    true if it takes flags for running a script, which its help names in one line
--   `tell`    function(flags, found, out), for a program with `apart`: called with the text that
--             `run` returned, in a state in which no code of a script has run
--   find      function(flags, words, nil, line): in place of `run`, if only a flag sets it apart
--   actions   the names of its actions, in the order of its help. An action is a program of the
--             folder of the command, and such a table, whose name is "COMMAND ACTION". It is the
--             first word behind the command; flags may be before and behind it. `flags` of the
--             command has the flags of all actions, and there is no `run`
local _, use = ...

local M = {}

--- The names of the commands, in the order of the help.
M.names = { "prompt", "chat", "list", "show", "diff", "search", "replay", "asks", "respond",
  "resume", "fork", "rewind", "store", "init", "tools", "check", "test", "mock", "mcp", "models",
  "config", "trust", "completion", "help" }

local function has(names, name)
  for _, known in ipairs(names) do
    if known == name then
      return true
    end
  end
  return false
end

--- Returns the action of a command; nil if it has no such action.
---@param command table
---@param name string?
function M.action(command, name)
  if command.actions and has(command.actions, name) then
    return use(command.name .. "." .. name)
  end
end

--- Returns the command of this name, or the action of "COMMAND ACTION"; nil if there is none.
function M.find(name)
  local first, rest = name:match "^(%S*) ?(.*)$"
  local command = has(M.names, first) and use(first) or nil
  if command and rest ~= "" then
    return M.action(command, rest)
  end
  return command
end

--- Returns the flags of all actions of a command, each once.
function M.flags_of_actions(name, actions)
  local all, seen = {}, {}
  for _, action in ipairs(actions) do
    for _, row in ipairs(use(name .. "." .. action).flags) do
      local key = type(row) == "table" and row.name or row
      all[#all + 1] = not seen[key] and row or nil
      seen[key] = true
    end
  end
  return all
end

return M
