--- The sub-commands. Each is a program of its name, which returns what it is:
--
--   name      the word for it
--   doc       one line: help and completions tell it
--   usage     what follows the options: "script.lua [args...]"; nil: nothing
--   help      more lines of its --help
--   operand   what may stand behind the options: { name = "script", least, most, words, file,
--             complete }. least, most: how many (nil: none need be, any may); words: those there
--             are; file: the first is a path that must be readable, "-" is standard input;
--             complete: "file", "folder", "models", endings of files ("lua|json"), or a function
--             that returns names
--   flags     a list of rows (flags.lua), or the names of flags that a script is run with
--   apart     true: it may run code of others. It is run in a state of its own, which knows what
--             the settings say of models and variables; what such code prints goes to stderr
--   pages     true: the program reads the pages of the reference
--   run       function(flags, words, out, line): flags by name ("env-file" is flags.env_file, and
--             -q and -v are flags.quiet and flags.verbose, 1 or 2), the words behind them, where
--             to write, and all that was read. Returns an exit code (nil is 0) and what to say of
--             a failure on stderr; what it raises is told, too
--   tell      function(flags, found, out), for one that stands apart: `run` returns a text then,
--             and this one is called with it in a state that no code of others was in
local _, use = ...

local M = {}

--- The names of the commands, in the order in which help lists them.
M.names = { "tools", "check", "mock", "models", "config", "trust", "completion", "help" }

--- Returns the command of this name; nil if there is none.
function M.find(name)
  for _, known in ipairs(M.names) do
    if known == name then
      return use(name)
    end
  end
end

return M
