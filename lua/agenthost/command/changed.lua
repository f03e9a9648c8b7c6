--- Lists of changes (docs/reference/changes.md), printed for people. They may come from any store.
local _, use = ...
local text, told = use "text", use "told"

local get = told.get

local MOST = 100 -- values of a slice that are shown

local M = {}

--- Returns text from outside in one line without controls of a terminal.
function M.line(s)
  return text.clean((tostring(s):gsub("%s+", " ")))
end

local line = M.line

local function add_file(item, add)
  local root, path = get(item, "root", "string"), get(item, "path", "string") or "?"
  add(({ add = "adds ", remove = "removes " })[item.op] or "changes ",
    line(root and root .. "/" .. path or path))
  for one in (get(item, "diff", "string") or ""):gmatch "[^\n]+" do
    add("  ", text.clean(one))
  end
  if item.binary == true then
    add "  not shown: a content is no text"
  elseif item.cut == true then
    add "  [... the rest is not shown]"
  end
end

local function add_values(values, mark, add)
  for i = 1, math.min(#values, MOST) do
    add("  ", mark, text.json(values[i]))
  end
  if #values > MOST then
    add(("  [... %d more]"):format(#values - MOST))
  end
end

local function add_slice(item, add)
  local removed, added = get(item, "removed", "table") or {}, get(item, "added", "table") or {}
  add(("slice %s: %d values go, %d come"):format(line(get(item, "name", "string") or "?"),
    #removed, #added))
  add_values(removed, "-", add)
  add_values(added, "+", add)
end

local function add_entity(item, add)
  add("entity ", line(get(item, "class", "string") or "?"), " ",
    line(get(item, "id", "string") or "?"))
  local fields, names = get(item, "fields", "table") or { state = item }, {}
  for name, field in pairs(fields) do
    names[#names + 1] = type(name) == "string" and type(field) == "table" and name or nil
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local field = fields[name]
    add(("  %s: %s, was %s"):format(line(name),
      field.after == nil and "none" or text.json(field.after),
      field.before == nil and "none" or text.json(field.before)))
  end
end

local ADD = { file = add_file, slice = add_slice, entity = add_entity }

--- Returns the lines that show a list of changes, each behind `indent`.
function M.lines(changes, indent)
  local lines = {}
  local function add(...)
    lines[#lines + 1] = indent .. table.concat { ... }
  end
  for _, item in ipairs(changes) do
    local how = type(item) == "table" and ADD[item.kind]
    if how then
      how(item, add)
    else
      add "something else"
    end
  end
  return lines
end

return M
