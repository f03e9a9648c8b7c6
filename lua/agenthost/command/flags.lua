--- Flags as data. A row:
--
--   name      the name without its dashes; "" ends the flags
--   letter    a short name of one character
--   value     the name of the value in the help: "FILE"; nil: the flag takes no value
--   words     the allowed values, separated by spaces; nil: any
--   offer     values to complete, separated by spaces; others are allowed
--   kind      "integer": a number from `least` (default 0) to `most` (default 999999999);
--             "decimal": a number greater than 0
--   optional  true if the value may be missing, and then is true: only what follows "=", or a word
--             that could be an id, is the value; "=": only what follows "="
--   once      true if a second use is an error; otherwise the last one counts
--   many      true if each use counts: the value is a list
--   any       true if the value may be empty, or begin with a dash
--   instead   the name of a flag that this one cancels
--   doc       one line of help
--   common    true if every command takes it
--
-- The flags for running a script come from C (src/cli/options.c), which reads them without Lua. A
-- command that also takes some of them lists their names.
local _, use = ...
local commands = use "commands"

local M = {}

local COLUMNS = { "letter", "name", "value", "words", "traits", "doc" }
local TRAITS = { "any", "once", "common" }

--- Returns the flags for running a script, as C declares them: as a list, and by name.
---@param said string[] the columns of the rows, "" for an empty one
function M.running(said)
  local rows, named = {}, {}
  for at = 0, #said - 1, #COLUMNS do
    local row = {}
    for i, column in ipairs(COLUMNS) do
      local value = said[at + i]
      row[column] = value ~= "" and value or nil
    end
    for _, trait in ipairs(TRAITS) do
      row[trait] = (row.traits or ""):find(trait, 1, true) ~= nil or nil
    end
    row.name, row.traits = row.name or "", nil
    rows[#rows + 1], named[row.name] = row, row
  end
  return rows, named
end

--- Returns the flags of a command: its own, then the common ones.
---@param command table nil: running a script
function M.of(command, rows, named)
  if not command then
    return rows
  end
  local own = {}
  for i, row in ipairs(command.flags or {}) do
    own[i] = type(row) == "table" and row or assert(named[row], row)
  end
  for _, row in ipairs(rows) do
    own[#own + 1] = row.common and row or nil
  end
  return own
end

--- Returns the flags of a line without a command: those for running a script, then those of a
-- prompt.
function M.unnamed(rows)
  local some = table.move(rows, 1, #rows, 1, {})
  for _, row in ipairs(commands.find "prompt".flags) do
    some[#some + 1] = type(row) == "table" and row or nil
  end
  return some
end

--- Returns every flag once: first those for running a script.
function M.all(rows)
  local all, seen = {}, {}
  local function add(row)
    if type(row) == "table" and not seen[row.name] then
      seen[row.name], all[#all + 1] = true, row
    end
  end
  for _, row in ipairs(rows) do
    add(row)
  end
  for _, name in ipairs(commands.names) do
    for _, row in ipairs(commands.find(name).flags or {}) do
      add(row)
    end
  end
  return all
end

return M
