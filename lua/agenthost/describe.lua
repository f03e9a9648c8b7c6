--- Renders JSON Schema in the short forms, for people.
--
-- A schema that the short forms can express is written in them, one member a line; any other is
-- written as JSON. A member that is not required has `?`. The text need not be a valid form.
--
-- The chunk takes functions of the core: encode(value) -> JSON.
local core = ...

local MAX_DEPTH = 16 -- deeper schemas are written as JSON
local RANGES = {
  integer = { "minimum", "maximum" }, number = { "minimum", "maximum" },
  string = { "minLength", "maxLength" }, array = { "minItems", "maxItems" },
}

--- Returns true if the schema has only these keywords, `type` and annotations, so that it has a
-- short form.
local function says_only(schema, ...)
  local said = { type = true, description = true, default = true, title = true, examples = true,
    ["$schema"] = true, ["$comment"] = true, deprecated = true, readOnly = true, writeOnly = true }
  for _, keyword in ipairs { ... } do
    said[keyword] = true
  end
  for keyword in pairs(schema) do
    if not said[keyword] then
      return false
    end
  end
  return true
end

local function json(value)
  return core.encode(value)
end

--- Returns "red|green" for an enum of plain words, or nil.
local function choice(values)
  local words = {}
  for i, value in ipairs(values) do
    if type(value) ~= "string" or not value:find("^[%w_-]+$") then
      return nil
    end
    words[i] = value
  end
  return words[1] and table.concat(words, "|")
end

local function range(schema, name)
  local keys = RANGES[name]
  local low, high = schema[keys[1]], schema[keys[2]]
  if low == nil and high == nil then
    return name
  end
  return ("%s %s..%s"):format(name, low or "", high or "")
end

local form -- of any schema; mutually recursive with lists and objects

local function scalar(schema)
  local name = schema.type
  if schema.enum and (name == nil or name == "string") and says_only(schema, "enum") then
    return choice(schema.enum)
  elseif name == nil and says_only(schema) then
    return "any"
  elseif RANGES[name] and says_only(schema, table.unpack(RANGES[name])) then
    return range(schema, name)
  elseif type(name) == "string" and says_only(schema) then
    return name
  end
end

local function list(schema, indent, depth)
  if schema.type == "array" and type(schema.items) == "table" and says_only(schema, "items") then
    local items = form(schema.items, indent, depth)
    return items and (items:find("^[%a]+$") and items .. "[]" or "{ " .. items .. " }")
  end
end

local function member(name, schema, required, indent, depth)
  local text = type(schema) == "table" and form(schema, indent, depth) or json(schema)
  local line = ("%s%s%s %s"):format(indent, name, required and ":" or "?:", text)
  if type(schema) == "table" and schema.default ~= nil then
    line = line .. " = " .. json(schema.default)
  end
  if type(schema) == "table" and schema.description then
    line = line .. "  -- " .. schema.description:gsub("%s+", " ")
  end
  return line
end

local function object(schema, indent, depth)
  if schema.type ~= "object" or type(schema.properties) ~= "table"
    or type(schema.additionalProperties) == "table"
    or not says_only(schema, "properties", "required", "additionalProperties", "$defs",
      "definitions") then
    return nil
  end
  local names, required, lines = {}, {}, {}
  for name in pairs(schema.properties) do
    names[#names + 1] = name
  end
  for _, name in ipairs(schema.required or {}) do
    required[name] = true
  end
  table.sort(names)
  for i, name in ipairs(names) do
    lines[i] = member(name, schema.properties[name], required[name], indent .. "  ", depth)
  end
  if schema.additionalProperties == nil or schema.additionalProperties == true then
    lines[#lines + 1] = indent .. "  ..."
  end
  return lines[1] and "{\n" .. table.concat(lines, "\n") .. "\n" .. indent .. "}" or "{}"
end

function form(schema, indent, depth)
  if depth == MAX_DEPTH or type(schema) ~= "table" then
    return json(schema)
  end
  return scalar(schema) or object(schema, indent, depth + 1) or list(schema, indent, depth + 1)
    or json(schema)
end

--- Renders a schema in the short form.
---@param schema table|boolean a JSON Schema
---@return string
return function(schema)
  return form(schema, "", 0)
end
