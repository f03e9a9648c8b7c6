--- ah.builtin: the built-in tools, by name; none is declared unless a script asks for it. Each is a
-- module of its own, lua/agenthost/tools/NAME.lua, that returns function(options) -> tool, or nil,
-- err; the module reads its options (ah._reader).
local ah = ...

-- The built-in tools, in the order in which a model gets them.
local NAMES = { "read_file", "write_file", "edit_file", "list_files", "grep", "bash", "http_fetch" }
-- Tools that need options, so that "all" does not include them.
local NEEDS_OPTIONS = { http_fetch = true }

local KNOWN = {}
for _, name in ipairs(NAMES) do
  KNOWN[name] = true
end

local function check_name(name)
  if type(name) ~= "string" then
    ah._raise(("ah.builtin: expected names of tools, found a %s"):format(type(name)))
  elseif not KNOWN[name] then
    local near = ah.nearest(name, NAMES)
    ah._raise(("ah.builtin: there is no tool '%s' (%s)"):format(name,
      near and ("did you mean '%s'?"):format(near) or "there are " .. table.concat(NAMES, ", ")))
  end
end

--- Adds the tools of one member of the argument: `key` is its place in the list, or the tool's
-- name.
local function want(wanted, key, value)
  local name = math.type(key) == "integer" and value or key
  if name == "all" then
    for _, each in ipairs(NAMES) do
      wanted[each] = wanted[each] or not NEEDS_OPTIONS[each] and {} or nil
    end
    return
  end
  check_name(name)
  if name == value or value == true then
    wanted[name] = wanted[name] or {}
  elseif type(value) == "table" then
    wanted[name] = value
  else
    ah._raise(("ah.builtin: the options of '%s' must be a table, found a %s"):format(name,
      type(value)))
  end
end

--- ah.builtin { "read_file", bash = { timeout = 60 } }: the named tools, with their options. "all",
-- or no argument: all that need no options. Returns a list; nil and an error if one of them cannot
-- be made on this machine.
return function(which)
  local wanted, tools = {}, {}
  if which == nil or type(which) == "string" then
    which = { which or "all" }
  elseif type(which) ~= "table" then
    ah._raise(("ah.builtin: expected names of tools, found a %s"):format(type(which)))
  end
  local listed = {}
  for key, value in pairs(which) do
    if type(key) ~= "string" then
      listed[key] = value
    end
  end
  ah._check_list(listed, "ah.builtin")
  for key, value in pairs(which) do
    want(wanted, key, value)
  end
  for _, name in ipairs(NAMES) do
    if wanted[name] then
      local tool, err = ah._module("agenthost.tools." .. name)(wanted[name])
      if not tool then
        return nil, err
      end
      tools[#tools + 1] = tool
    end
  end
  return tools
end
