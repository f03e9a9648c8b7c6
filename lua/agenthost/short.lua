--- Converts short forms of parameters to JSON Schema (a Lua table).
--
-- A form is one of:
--   "string" "integer" "number" "boolean" "object" "array" "any" "null"
--   "integer 1..10" "number 0..1" "string 1..80"   with limits; either limit may be absent
--   "red|green|blue"          one of these strings
--   "T[]"                     a list of T
--   { name = form, ... }      an object of these properties and no others
--   { form }                  a list
--   a schema of ah.schema     used unchanged
-- After the words of a string form may come, in this order: `?` (optional), ` = default` (JSON, or
-- a bare word for strings; makes it optional), `: description`. A key that ends with "?" makes any
-- form optional. Everything else needs JSON Schema.
--
-- The chunk takes functions of the core: nearest(word, names); decode(json) -> ok, value; schema(v)
-- -> JSON Schema of an ah.schema object, or nil.
local core = ...

local MAX_DEPTH = 64
local TYPES = { "any", "array", "boolean", "integer", "null", "number", "object", "string" }
local MEANT = {
  bool = "boolean", dict = "object", double = "number", float = "number", int = "integer",
  list = "array", map = "object", ["nil"] = "null", num = "number", str = "string",
  table = "object", text = "string",
}

local IS_TYPE = {}
for _, name in ipairs(TYPES) do
  IS_TYPE[name] = true
end

local function fail(at, message, ...)
  error(at .. ": " .. message:format(...), 0)
end

local function trim(s)
  return s:match("^%s*(.-)%s*$")
end

local function unknown_type(at, word)
  local near = MEANT[word:lower()] or core.nearest(word, TYPES)
  if near then
    fail(at, "'%s' is no type (did you mean '%s'?)", word, near)
  end
  fail(at, "'%s' is no type; types are %s, and a choice of words is \"a|b\"",
    word, table.concat(TYPES, ", "))
end

local function choice(at, words)
  local list, seen = {}, {}
  for word in (words .. "|"):gmatch("([^|]*)|") do
    word = trim(word)
    if word == "" then
      fail(at, "an empty word in the choice '%s'", words)
    elseif IS_TYPE[word] then
      fail(at, "'%s' in the choice '%s' is a type; use ah.schema for several types",
        word, words)
    elseif seen[word] then
      fail(at, "'%s' comes twice in the choice '%s'", word, words)
    end
    seen[word] = true
    list[#list + 1] = word
  end
  return { type = "string", enum = list }
end

local LIMITS = {
  integer = { "minimum", "maximum" }, number = { "minimum", "maximum" },
  string = { "minLength", "maxLength" }, array = { "minItems", "maxItems" },
}

--- Reads one end of a range as a number of the type; nil if it is absent.
local function limit(at, name, word, words)
  local n = tonumber(word)
  local whole = name ~= "number"
  if word ~= "" and (not word:find("^%-?%d") or not n or n ~= n or n - n ~= 0) then
    fail(at, "'%s' in '%s' is no number", word, words)
  elseif n and whole and not math.tointeger(n) then
    fail(at, "'%s' in '%s' is not whole", word, words)
  elseif n and n < 0 and name ~= "integer" and whole then
    fail(at, "'%s' in '%s' is below 0", word, words)
  end
  return n and (math.tointeger(n) or n)
end

--- Reads "integer 1..10": returns the schema of the type with its limits, or nil if there are none.
local function ranged(at, words)
  local name, low, high = words:match("^(%a+)%s+(%S-)%s*%.%.%s*(%S*)$")
  if not name then
    return nil
  end
  local names = LIMITS[name]
  if not names then
    fail(at, "'%s' has no range; integer, number, string and array have", name)
  end
  local schema = { type = name }
  schema[names[1]] = limit(at, name, low, words)
  schema[names[2]] = limit(at, name, high, words)
  local from, to = schema[names[1]], schema[names[2]]
  if not from and not to then
    fail(at, "the range in '%s' has no ends", words)
  elseif from and to and from > to then
    fail(at, "the range in '%s' ends before it begins", words)
  end
  return schema
end

local function type_of(at, words)
  local schema = ranged(at, words)
  if schema then
    return schema
  elseif words:find("|", 1, true) then
    return choice(at, words)
  elseif words == "any" then
    return {}
  elseif IS_TYPE[words] then
    return { type = words }
  elseif words == "" then
    fail(at, "a form begins with a type; types are %s", table.concat(TYPES, ", "))
  end
  return unknown_type(at, words)
end

--- Decodes a default. Strings may be bare words, so only a quote begins JSON there.
local function read_default(text, is_string)
  if is_string and text ~= "" and text:sub(1, 1) ~= '"' then
    return true, text
  end
  return core.decode(text)
end

--- Splits `default : description`. JSON and bare words may contain colons, so the split is at the
-- first colon before a space that leaves a readable default.
local function split_default(at, text, is_string)
  local from = 1
  while true do
    local colon = text:find(":%s", from) or text:find(":$", from)
    local head = trim(text:sub(1, (colon or #text + 1) - 1))
    local ok, value = read_default(head, is_string)
    if ok then
      return value, colon and text:sub(colon + 1) or ""
    elseif not colon then
      fail(at, "the default '%s' is not JSON%s",
        trim(text), is_string and ", nor a bare word" or "")
    end
    from = colon + 1
  end
end

--- Reads a string form: returns its schema, and whether it is optional.
local function parse(at, form)
  local words, rest = form:match("^([^?=:%[%]]*)(.*)$")
  local schema = type_of(at, trim(words))
  local tail = rest:match("^%[%s*%]%s*(.*)$")
  while tail do
    schema = { type = "array", items = schema }
    rest = tail
    tail = rest:match("^%[%s*%]%s*(.*)$")
  end
  local optional = rest:sub(1, 1) == "?"
  rest = trim(optional and rest:sub(2) or rest)
  if rest:sub(1, 1) == "=" then
    optional = true
    schema.default, rest = split_default(at, rest:sub(2), schema.type == "string")
  elseif rest:sub(1, 1) == ":" then
    rest = rest:sub(2)
  elseif rest ~= "" then
    fail(at, "cannot read '%s' in '%s'; after the type come [], ?, = default, : description",
      rest, form)
  end
  rest = trim(rest)
  schema.description = rest ~= "" and rest or nil
  return schema, optional
end

local expand -- of any form; mutually recursive with lists and objects

local function list(at, form, depth)
  local at_items = at .. "[]"
  local items, optional = expand(at_items, form, depth)
  if optional then
    fail(at_items, "items of a list have no `?` and no default")
  end
  return { type = "array", items = items }
end

local function object(at, names, forms, depth)
  local schema = { type = "object", properties = {}, additionalProperties = false }
  local required = {}
  for _, key in ipairs(names) do
    local name = key:match("^(.*)%?$") or key
    local at_name = at .. "." .. name
    if name == "" then
      fail(at, "a property without a name")
    elseif schema.properties[name] ~= nil then
      fail(at_name, "is given twice, with and without `?`")
    end
    local property, optional = expand(at_name, forms[key], depth)
    schema.properties[name] = property
    if not optional and name == key then
      required[#required + 1] = name
    end
  end
  table.sort(required)
  schema.required = required[1] and required or nil
  return schema
end

--- Returns the table's string keys, sorted, and the number of its other keys.
local function keys_of(at, forms)
  local names, others = {}, 0
  for key in next, forms do
    if type(key) == "string" then
      names[#names + 1] = key
    elseif math.type(key) == "integer" then
      others = others + 1
    else
      fail(at, "a %s cannot name a property", type(key))
    end
  end
  table.sort(names)
  return names, others
end

-- Returns true if a table looks like JSON Schema. An object whose members have such names must be
-- given in `schema`.
local function is_json_schema(form)
  local kind = rawget(form, "type")
  if not IS_TYPE[kind] or kind == "any" then
    return false
  end
  local only = next(form) == "type" and next(form, "type") == nil
  return only or type(rawget(form, "properties")) == "table" or rawget(form, "enum") ~= nil
    or type(rawget(form, "items")) == "table"
end

local function expand_table(at, form, depth)
  if is_json_schema(form) then
    fail(at, "this is JSON Schema, which goes into `schema`; the short form of it is %s",
      depth > 1 and ('"%s"'):format(form.type) or '{ name = "string" }')
  end
  local names, others = keys_of(at, form)
  if depth == 1 and others > 0 and not names[1] then
    fail(at, 'a form for each name is expected, { name = "string" }, found a list')
  end
  if others == 0 and (names[1] or depth == 1) then
    return object(at, names, form, depth + 1)
  elseif others == 0 then
    fail(at, 'an empty table says nothing; write "object" or "array"')
  elseif names[1] then
    fail(at, "mixes named properties with a list")
  elseif others > 1 or rawget(form, 1) == nil then
    fail(at, 'a list has exactly one form, { "string" }, found %d; a choice is "a|b"', others)
  end
  return list(at, rawget(form, 1), depth + 1)
end

function expand(at, form, depth)
  if depth > MAX_DEPTH then
    fail(at, "is more than %d forms deep", MAX_DEPTH)
  end
  if type(form) == "string" then
    return parse(at, form)
  elseif type(form) == "table" then
    return expand_table(at, form, depth)
  end
  local schema = core.schema(form)
  if schema == nil then
    fail(at, "expected a form (a string, a table or an ah.schema), got a %s", type(form))
  end
  return schema
end

local function expand_params(params)
  if type(params) == "string" then
    error('params: expected a table of forms, got a string', 0)
  end
  return (expand("params", params, 1))
end

--- Expands short forms to a JSON Schema table.
---@param params table the properties, or an ah.schema object
---@param level? integer where an error is put, as in error(); 0: nowhere (default 1: the caller)
---@return table
return function(params, level)
  if level == 0 then
    return expand_params(params)
  end
  local ok, result = pcall(expand_params, params)
  if not ok then
    error(result, (level or 1) + 1)
  end
  return result
end
