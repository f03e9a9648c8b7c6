--- A Lua value as text for people: tables with their fields in order, to a limited depth and size.
-- Fields are read without metamethods, so only __tostring of a value runs code of the script.
local ah, use = ...
local cut = use "text".cut

local DEPTH = 4      -- tables in tables that are shown
local FIELDS = 50    -- of one table
local VALUES = 1000  -- in all
local KEYS = 10000   -- of one table that are sorted
local STRING = 200   -- bytes of a string in a table
local COLUMNS = 76   -- of a table in one line
local ESCAPES = { ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ['"'] = '\\"', ["\\"] = "\\\\" }
local RESERVED = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%l+" do
  RESERVED[word] = true
end

local function escaped(c)
  return ESCAPES[c] or ("\\x%02x"):format(c:byte())
end

-- Returns the string with bytes that are not UTF-8 as escapes.
local function sound(s)
  local parts, at = {}, 1
  local ok, bad = utf8.len(s)
  while not ok do
    parts[#parts + 1] = s:sub(at, bad - 1) .. escaped(s:sub(bad, bad))
    at = bad + 1
    ok, bad = utf8.len(s, at)
  end
  return table.concat(parts) .. s:sub(at)
end

local function quoted(s)
  local shown = cut(s, STRING)
  local text = '"' .. ah._harmless(sound((shown:gsub('[%c"\\\x7f]', escaped)))) .. '"'
  return #shown < #s and ("%s...(%d bytes)"):format(text, #s) or text
end

local function is_name(key)
  return type(key) == "string" and key:find "^[%a_][%w_]*$" and not RESERVED[key]
end

local RANKS = { number = 1, string = 2 }

local function before(a, b)
  local rank, other = RANKS[type(a)] or 3, RANKS[type(b)] or 3
  if rank ~= other or rank == 3 then
    return rank < other
  end
  return a < b
end

-- Returns the keys outside of the list 1 to n, sorted, and the number of those that are left out.
local function keys_of(t, n)
  local keys, more = {}, 0
  for key in next, t do
    if math.type(key) ~= "integer" or key < 1 or key > n then
      if #keys < KEYS then
        keys[#keys + 1] = key
      else
        more = more + 1
      end
    end
  end
  table.sort(keys, before)
  return keys, more
end

local show

-- Returns the fields of a table as texts.
local function fields(state, t, depth)
  local n, list = rawlen(t), {}
  local keys, more = keys_of(t, n)
  local function add(key, value)
    if #list >= FIELDS or state.left <= 0 then
      more = more + 1
      return false
    end
    local name = key and (is_name(key) and key or "[" .. show(state, key, DEPTH) .. "]") .. " = "
    list[#list + 1] = (name or "") .. show(state, value, depth + 1)
    return true
  end
  for i = 1, n do
    if not add(nil, rawget(t, i)) then
      more = more + n - i
      break
    end
  end
  for _, key in ipairs(keys) do
    add(key, rawget(t, key))
  end
  if more > 0 then
    list[#list + 1] = ("...(%d more)"):format(more)
  end
  return list
end

local function indented(text)
  return "  " .. text:gsub("\n", "\n  ")
end

local function laid_out(list)
  local line = table.concat(list, ", ")
  if #list == 0 then
    return "{}"
  elseif #line <= COLUMNS and not line:find("\n", 1, true) then
    return "{ " .. line .. " }"
  end
  for i, one in ipairs(list) do
    list[i] = indented(one)
  end
  return "{\n" .. table.concat(list, ",\n") .. "\n}"
end

local function of_table(state, t, depth)
  if state.open[t] then
    return "<cycle>"
  elseif depth >= DEPTH and next(t) ~= nil then
    return "{...}"
  end
  state.open[t] = true
  local text = laid_out(fields(state, t, depth))
  state.open[t] = nil
  return text
end

-- True if the value prints itself.
local function prints(value)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and rawget(meta, "__tostring") ~= nil
end

function show(state, value, depth)
  state.left = state.left - 1
  if type(value) == "string" then
    return quoted(value)
  elseif type(value) == "table" and not prints(value) then
    return of_table(state, value, depth)
  end
  return ah._line(tostring(value), STRING)
end

--- Returns the text of a value: strings, and what prints itself, as they are.
return function(value)
  if type(value) == "table" and not prints(value) then
    return show({ left = VALUES, open = {} }, value, 0)
  end
  return tostring(value)
end
