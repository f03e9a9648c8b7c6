--- Asks the person at the terminal whether a call may be made: y or n.
local ah, use = ...
local styled = use "styled"

local M = {}

local MOST = 64 << 10 -- bytes of an argument that are shown

-- Returns the arguments of a call, a line or a block each, in the order of their names.
local function arguments_text(arguments)
  local names, lines = {}, {}
  for name in pairs(arguments) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = arguments[name]
    local said = type(value) == "string" and value or ah.json.encode(value)
    if #said > MOST then
      said = ("%s\n[%d bytes more]"):format(said:sub(1, MOST), #said - MOST)
    end
    lines[#lines + 1] = ("  %s: %s"):format(name, (said:gsub("\n", "\n    ")))
  end
  return table.concat(lines, "\n")
end

-- Waits for y or n. Anything else is ignored; the end of the input is no.
local function answer(terminal)
  while true do
    local event = terminal:key()
    if not event or event.key == "escape" or event.text == "n" or event.text == "N" then
      return false
    elseif event.text == "y" or event.text == "Y" then
      return true
    end
  end
end

local function ask_there(terminal, ask)
  local call = ask.call
  terminal:print_above { { call.name, bold = true }, " (", ask.question, ")\n",
    styled.harmless(arguments_text(call.arguments)) }
  terminal:live({ { { "Allow it? [y/n] ", bold = true } } })
  local yes = answer(terminal)
  terminal:live {}
  terminal:print_above(yes and "Allowed." or "Not allowed.")
  return yes
end

--- A front end for asks. Without a terminal it refuses.
---@param ask table
---@return boolean
---@return string? # why not
function M.ask(ask)
  if ask.kind ~= "approval" or not ah._is_terminal(2) then
    return false, "there is no terminal on which a person could allow it"
  end
  local terminal <close>, err = ah.terminal()
  if not terminal then
    return false, "nobody can be asked: " .. err.message
  elseif ask_there(terminal, ask) then
    return true
  end
  return false, "the user does not allow it"
end

return M
