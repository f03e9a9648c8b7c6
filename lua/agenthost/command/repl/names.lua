--- The names that can follow what was typed: globals, and fields of tables and methods of objects
-- after dots and colons. No code of the script is called: fields are read without metamethods.
local DEPTH = 10   -- of metatables whose __index is a table
local MOST = 1000  -- names

-- Calls take(table) for the tables in which the fields of a value are found.
local function each_table(value, take)
  for _ = 1, DEPTH do
    local meta = debug.getmetatable(value)
    if type(value) == "table" then
      take(value)
    elseif type(meta) == "table" and type(rawget(meta, "methods")) == "table" then
      take(rawget(meta, "methods")) -- of our objects
    end
    value = type(meta) == "table" and rawget(meta, "__index")
    if type(value) ~= "table" then
      return
    end
  end
end

local function field(value, name)
  local found
  each_table(value, function(t)
    if found == nil then
      found = rawget(t, name)
    end
  end)
  return found
end

-- Returns the value of a path such as "ah.store."; nil if there is none.
local function value_of(path)
  local value = _G
  for name in path:gmatch "[%a_][%w_]*" do
    value = field(value, name)
    if value == nil then
      return
    end
  end
  return value
end

local function is_wanted(key, value, typed, mark)
  return type(key) == "string" and key:sub(1, #typed) == typed and key:find "^[%a_][%w_]*$"
    and (mark ~= ":" or type(value) == "function") and (typed ~= "" or key:sub(1, 1) ~= "_")
end

--- Returns the sorted names, and the index of the first byte before `at` that one of them replaces.
return function(text, at)
  local path, typed = text:sub(1, at - 1):match "([%w_%.:]*[%.:])([%w_]*)$"
  if not path then
    path, typed = "", text:sub(1, at - 1):match "[%w_]*$"
  end
  local found, names = {}, {}
  local owner = value_of(path)
  if owner ~= nil and path:find "^[%a_]" or path == "" then
    each_table(owner, function(t)
      for key, value in next, t do
        if #names < MOST and not found[key] and is_wanted(key, value, typed, path:sub(-1)) then
          found[key], names[#names + 1] = true, key
        end
      end
    end)
  end
  table.sort(names)
  return names, at - #typed
end
