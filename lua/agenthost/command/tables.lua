--- The command's tables of commands and options (src/cli/options.c), as it hands them over: for
-- what tells of them.
local tables = {}

-- A row: letter ("": none), name ("": it ends the options), value ("": it wants none), words ("":
-- any), the names of the commands that take it ("run" where there is no word for it), help.
local COLUMNS = { "letter", "name", "value", "words", "takers", "help" }

local function set_of(words)
  local set = {}
  for word in words:gmatch "%S+" do
    set[word] = true
  end
  return set
end

--- commands: a list of { name, help }, the first of which is "", a script is run; options: a list
-- of rows.
---@param n string how many commands there are
---@param ... string their names and helps, then the columns of each option
function tables.read(n, ...)
  local commands, options, said = {}, {}, { ... }
  local at = 2 * tonumber(n)
  for i = 1, at, 2 do
    commands[#commands + 1] = { name = said[i], help = said[i + 1] }
  end
  for i = at, #said - 1, #COLUMNS do
    local row = {}
    for column, key in ipairs(COLUMNS) do
      local value = said[i + column]
      row[key] = value ~= "" and value or nil
    end
    row.takers = set_of(row.takers)
    options[#options + 1] = row
  end
  return commands, options
end

--- True if the command of this name takes the option.
function tables.takes(name, option)
  return option.takers[name ~= "" and name or "run"] == true
end

return tables
