--- Answers of providers with one member changed, and the promises that they keep or break.
--
--   for mutant in mutants.each(promises, doc) do ... end
--     mutant.doc (a copy), mutant.path "content[].text", mutant.how "null"
--   mutants.legal(promises, doc) -> boolean
--
-- Promises are what a provider documents, written apart from the adapters' own tables: kinds by
-- path, { ["content"] = "array", ["content[]:text.text"] = "string" }. "[]" is an item, ":word" an
-- object whose `type` is that word. Kinds: string, name (a string that is not empty), count,
-- boolean, null, array, object, absent. A member without a path may be anything.
local server = require "support.server"

local M = {}

local function copy(value)
  return server.decode(server.encode(value))
end

local function is_array(value)
  return getmetatable(value) == getmetatable(server.array {})
end

local function kind_of(value)
  if value == nil then
    return "absent"
  elseif value == server.null then
    return "null"
  elseif type(value) == "table" then
    return is_array(value) and "array" or "object"
  elseif math.type(value) == "integer" and value >= 0 then
    return "count"
  elseif type(value) == "string" and value ~= "" then
    return "name"
  end
  return type(value)
end

local function is(kinds, value)
  local kind = kind_of(value)
  if kind == "name" and kinds:find("string", 1, true) then
    return true
  end
  return (" " .. kinds .. " "):find(" " .. kind .. " ", 1, true) ~= nil
end

-- Returns the names of an object's members that are promised below the path.
local function members_of(promises, path)
  local names, head = {}, path == "" and "" or path .. "."
  for p in pairs(promises) do
    local name = p:sub(1, #head) == head and p:sub(#head + 1)
    if name and not name:find "[%.%[:]" then
      names[#names + 1] = name
    end
  end
  return names
end

-- Returns the paths that apply to an object: its own, and the one with its type.
local function paths_of(path, value)
  local word = type(value.type) == "string" and value.type
  return word and { path, path .. ":" .. word } or { path }
end

local function legal(promises, value, path)
  local kinds = promises[path]
  if kinds and not is(kinds, value) then
    return false
  end
  if type(value) ~= "table" or value == server.null then
    return true
  end
  for _, item in ipairs(is_array(value) and value or {}) do
    if not legal(promises, item, path .. "[]") then
      return false
    end
  end
  for _, p in ipairs(is_array(value) and {} or paths_of(path, value)) do
    for _, name in ipairs(members_of(promises, p)) do
      if not legal(promises, value[name], (p == "" and "" or p .. ".") .. name) then
        return false
      end
    end
  end
  return true
end

--- Returns true if the document keeps the promises.
function M.legal(promises, doc)
  return legal(promises, doc, "")
end

local WRONG = {
  ["null"] = function() return server.null end,
  ["a number"] = function() return 5 end,
  ["a number below 0"] = function() return -1 end,
  ["a fraction"] = function() return 0.5 end,
  ["a boolean"] = function() return true end,
  ["a string"] = function() return "x" end,
  ["no word"] = function() return "" end,
  ["an object"] = function() return { a = 1 } end,
  ["a list"] = function() return server.array {} end,
  ["in a list"] = function(value) return server.array { value } end,
  ["nothing"] = function() return nil end,
}

local HOW = {}
for how in pairs(WRONG) do
  HOW[#HOW + 1] = how
end
table.sort(HOW)

-- Calls fn with the table, the key and the path of each value in the document.
local function walk(value, path, promises, fn)
  if is_array(value) then
    for i = 1, #value do
      fn(value, i, path .. "[]")
      if type(value[i]) == "table" and value[i] ~= server.null then
        walk(value[i], path .. "[]", promises, fn)
      end
    end
    return
  end
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local place = (path == "" and "" or path .. ".") .. key
    for _, p in ipairs(paths_of(path, value)) do
      local full = (p == "" and "" or p .. ".") .. key
      place = promises[full] and full or place
    end
    fn(value, key, place)
    if type(value[key]) == "table" and value[key] ~= server.null then
      walk(value[key], place, promises, fn)
    end
  end
end

--- Iterates over copies of the document with one value changed in one way, as { doc, path, how }.
function M.each(promises, doc)
  return coroutine.wrap(function()
    local mine = copy(doc)
    walk(mine, "", promises, function(t, key, path)
      local old = t[key]
      for _, how in ipairs(HOW) do
        local new = WRONG[how](old)
        local same = new ~= nil and server.encode(new) == server.encode(old)
        if not same and not (is_array(t) and new == nil) then
          t[key] = new
          coroutine.yield { doc = copy(mine), path = path, how = how }
          t[key] = old
        end
      end
    end)
  end)
end

return M
