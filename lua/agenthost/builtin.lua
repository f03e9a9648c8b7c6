--- Built-in tools (ah.builtin): each is a module of lua/agenthost/builtin that returns a
-- function(options) -> tool. This file only finds them by their names; none is there unless a
-- script asks for it.
local ah = ...

-- Those that work without options, and those that need some.
local PLAIN = { "read_file", "write_file", "edit_file", "list_files", "grep" }
local NAMED = { "http_fetch" }

local function is_known(name)
  for _, list in ipairs { PLAIN, NAMED } do
    for _, known in ipairs(list) do
      if name == known then
        return true
      end
    end
  end
  return false
end

local function check_name(name)
  if not is_known(name) then
    local all = table.concat(PLAIN, ", ") .. ", " .. table.concat(NAMED, ", ")
    error(("ah.builtin: there is no tool '%s'; there are: %s"):format(tostring(name), all), 4)
  end
end

-- The names in the order of the tools: as listed, then by name.
local function order(chosen)
  local names, options = {}, {}
  for _, name in ipairs(chosen) do
    check_name(name)
    names[#names + 1] = name
  end
  local listed = #names
  for name, of in pairs(chosen) do
    if math.type(name) ~= "integer" then
      check_name(name)
      names[#names + 1], options[name] = name, of
    end
  end
  local rest = table.move(names, listed + 1, #names, 1, {})
  table.sort(rest)
  return table.move(rest, 1, #rest, listed + 1, names), options
end

--- ah.builtin { "read_file", http_fetch = { allow = { ... } } } -> list of tools;
-- ah.builtin() -> all that work without options.
return function(chosen)
  if chosen ~= nil and type(chosen) ~= "table" then
    error("ah.builtin: a table of names and options is expected, found a " .. type(chosen), 2)
  end
  local tools = {}
  local names, options = order(chosen or PLAIN)
  for i, name in ipairs(names) do
    tools[i] = ah._load("agenthost.builtin." .. name)(options[name] or {})
  end
  return tools
end
