--- The flags of running a script, from C's table (src/cli/options.c). said() returns the columns
-- that C gives the programs; running() returns the programs' view of them: a list of rows, and the
-- rows by name.
local programs = require "support.programs"

local flags = {}

local SOURCE = "src/cli/options.c"
local PARTS = { "^[%s,]*'(.)'()", '^[%s,]*"([^"]*)"()', "^[%s,]*NULL()", "^[%s,]*0()" }

-- Returns { 'e', "eval", NULL } as strings, with "" for NULL and 0.
local function columns_of(row)
  local columns, at = {}, 2
  repeat
    local found = false
    for _, pattern in ipairs(PARTS) do
      local value, behind = row:match(pattern, at)
      if value and not found then
        found, at = true, behind or value
        columns[#columns + 1] = behind and value or ""
      end
    end
  until not found
  return columns
end

function flags.said()
  local f <close> = assert(io.open(SOURCE))
  local said = {}
  local body = f:read("a"):match("ah_option_table%[AH_OPTIONS%] = (%b{})")
  for row in body:gmatch "%] =%s*(%b{})" do
    local columns = columns_of(row)
    assert(#columns == 6, row)
    table.move(columns, 1, 6, #said + 1, said)
  end
  return said
end

function flags.running()
  return programs("flags").running(flags.said())
end

return flags
