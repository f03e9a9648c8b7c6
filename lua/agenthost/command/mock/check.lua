--- Checks of requests that all strict providers share: members that are missing or of another
-- type, names, schemas, calls and results that do not pair. Each provider's file selects the checks
-- that hold for it, and the form of places. A fault is raised as a table with the status, the
-- message and, if the provider sends them, `param` and `code`; mock.lua answers with it.
local ah = ...

local check = {}

local MAX_SCHEMA_DEPTH = 64

local ARRAY = getmetatable(ah.array {})

--- True if v is a decoded array.
function check.is_array(v)
  return type(v) == "table" and getmetatable(v) == ARRAY
end

--- True if v is a decoded object.
function check.is_object(v)
  return type(v) == "table" and getmetatable(v) ~= ARRAY
end

--- Returns the JSON type of a decoded value; "nothing" for nil.
function check.kind_of(v)
  if v == nil then
    return "nothing"
  elseif v == ah.null then
    return "null"
  elseif type(v) == "table" then
    return check.is_array(v) and "array" or "object"
  end
  return math.type(v) or type(v)
end

--- Returns a member that is present and not null, else nil.
function check.given(v)
  if v ~= ah.null then
    return v
  end
end

--- Refuses the request. `fault`: { message, status = 400, param, code }.
function check.refuse(fault, ...)
  fault = type(fault) == "table" and fault or { message = fault }
  fault.message = select("#", ...) > 0 and fault.message:format(...) or fault.message
  fault.mock_fault, fault.status = true, fault.status or 400
  error(fault, 0)
end

--- "messages[0].role" as OpenAI and Google write places.
function check.brackets(...)
  local text = ""
  for _, step in ipairs { ... } do
    local name = text == "" and step or "." .. step
    text = text .. (type(step) == "number" and ("[%d]"):format(step) or name)
  end
  return text
end

--- "messages.0.role" as Anthropic writes them.
function check.dots(...)
  return table.concat({ ... }, ".")
end

local KINDS = {
  string = function(v) return type(v) == "string" end,
  boolean = function(v) return type(v) == "boolean" end,
  number = function(v) return type(v) == "number" end,
  integer = function(v) return math.type(v) == "integer" end,
  array = check.is_array,
  object = check.is_object,
}

local function refuse_kind(value, kind, place)
  check.refuse {
    message = ("Invalid type for '%s': expected %s, but got %s instead."):format(place, kind,
      check.kind_of(value)),
    param = place,
    code = "invalid_type",
  }
end

--- Refuses elements of a list that are not objects; `place_of(i)` returns the place of each.
function check.objects(list, place_of)
  for i, value in ipairs(list) do
    if not check.is_object(value) then
      refuse_kind(value, "an object", place_of(i))
    end
  end
end

--- Returns a member of this kind, or nil if it is absent or null. A member of another kind is
-- refused, and so is an `object` that is none.
function check.optional(object, key, kind, place)
  if not check.is_object(object) then
    refuse_kind(object, "an object", place:match "^(.*)[.%[]" or place)
  end
  local v = check.given(object[key])
  if v ~= nil and not KINDS[kind](v) then
    refuse_kind(v, kind, place)
  end
  return v
end

--- Returns a required member of this kind; refuses any other value.
function check.required(object, key, kind, place)
  local v = check.optional(object, key, kind, place)
  if v == nil then
    check.refuse {
      message = ("Missing required parameter: '%s'."):format(place),
      param = place,
      code = "missing_required_parameter",
    }
  end
  return v
end

--- Returns a list, or nil if it is absent or null; an empty list is refused.
function check.list(object, key, place)
  local list = check.optional(object, key, "array", place)
  if list and #list == 0 then
    local text = "Invalid '%s': empty array. Expected an array with minimum length 1."
    check.refuse {
      message = text:format(place),
      param = place,
      code = "empty_array",
    }
  end
  return list
end

function check.one_of(value, words, place)
  for _, word in ipairs(words) do
    if value == word then
      return
    end
  end
  check.refuse {
    message = ("Invalid value: '%s'. Supported values for '%s' are: '%s'."):format(
      tostring(value),
      place,
      table.concat(words, "', '")
    ),
    param = place,
    code = "invalid_value",
  }
end

function check.matches(text, pattern, max, shown, place)
  if not text:find(pattern) or #text > max then
    check.refuse {
      message = ("Invalid '%s': string should match pattern '%s', found '%s'."):format(
        place,
        shown,
        text
      ),
      param = place,
      code = "invalid_value",
    }
  end
end

-- -- schemas -----------------------------------------------------------------------------

local function bad_schema(place, text, ...)
  check.refuse {
    message = ("Invalid schema for '%s': %s"):format(place, text:format(...)),
    param = place,
    code = "invalid_function_parameters",
  }
end

local walk

-- Keywords that no strict subset has.
local NEVER_STRICT = { "allOf", "oneOf", "not", "if", "then", "else", "patternProperties",
  "dependentSchemas", "dependentRequired", "unevaluatedProperties", "prefixItems" }
-- Keywords that only the subset of "closed" lacks.
local NOT_CLOSED = { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
  "minLength", "maxLength", "maxItems" }

local function check_keywords(schema, list, place)
  for _, key in ipairs(list) do
    if schema[key] ~= nil then
      bad_schema(place, "'%s' is not permitted.", key)
    end
  end
end

-- strict: no other properties, and, but for "closed", all of them required.
local function check_strict(schema, place, strict)
  local required = {}
  for _, name in ipairs(check.given(schema.required) or {}) do
    required[name] = true
  end
  if schema.additionalProperties ~= false then
    bad_schema(place, "'additionalProperties' is required to be supplied and to be false.")
  end
  if strict == "closed" then
    return
  end
  for name in pairs(check.given(schema.properties) or {}) do
    if not required[name] then
      bad_schema(place, "'required' must include every key in properties; '%s' is missing.", name)
    end
  end
end

local function walk_members(schema, place, strict, depth)
  for _, key in ipairs { "anyOf", "oneOf", "allOf" } do
    for _, inner in ipairs(check.given(schema[key]) or {}) do
      walk(inner, place, strict, depth)
    end
  end
  for name, inner in pairs(check.given(schema.properties) or {}) do
    walk(inner, place .. "." .. name, strict, depth)
  end
  if check.is_object(schema.items) then
    walk(schema.items, place .. ".items", strict, depth)
  end
end

function walk(schema, place, strict, depth)
  if type(schema) == "boolean" then
    return
  elseif not check.is_object(schema) then
    bad_schema(place, "a schema is an object or a boolean, found %s.", check.kind_of(schema))
  elseif depth > MAX_SCHEMA_DEPTH then
    bad_schema(place, "it is deeper than %d levels.", MAX_SCHEMA_DEPTH)
  end
  for key, kind in pairs { properties = "object", required = "array", enum = "array" } do
    if schema[key] ~= nil and not KINDS[kind](schema[key]) then
      bad_schema(place, "'%s' must be an %s, found %s.", key, kind, check.kind_of(schema[key]))
    end
  end
  if schema.type == "array" and schema.items == nil and schema.prefixItems == nil then
    bad_schema(place, "array schema missing items.")
  end
  if strict and (schema.type == "object" or schema.properties) then
    check_strict(schema, place, strict)
  end
  if strict then
    check_keywords(schema, NEVER_STRICT, place)
    check_keywords(schema, strict == "closed" and NOT_CLOSED or {}, place)
  end
  walk_members(schema, place, strict, depth + 1)
end

--- Checks the schema of a tool's arguments, which must be an object. `strict`: true for OpenAI,
-- "closed" for Anthropic. `upper`: type names in capitals are allowed, too.
function check.parameters(schema, place, strict, upper)
  if not check.is_object(schema) then
    bad_schema(place, "a schema of parameters is an object, found %s.", check.kind_of(schema))
  end
  local kind = schema.type
  kind = upper and type(kind) == "string" and kind:lower() or kind
  if kind ~= "object" then
    bad_schema(place, "schema must be a JSON Schema of 'type: \"object\"', got 'type: %s'.",
      kind == nil and "None" or ah.json.encode(kind))
  end
  walk(schema, place, strict, 1)
end

--- Refuses names that occur twice, with `message`.
function check.unique(names, message)
  local seen = {}
  for _, name in ipairs(names) do
    if seen[name] then
      check.refuse { message = message:format(name), param = "tools" }
    end
    seen[name] = true
  end
end

-- -- calls and results ----------------------------------------------------------------------

--- Returns an object with the ids of calls that wait for their results.
function check.pairing()
  local waiting, n, order = {}, 0, {}
  local pairing = {}

  --- Adds a call; false if its id waits already.
  function pairing.call(id)
    if waiting[id] then
      return false
    end
    waiting[id], n = true, n + 1
    order[#order + 1] = id
    return true
  end

  --- Removes the call of a result; false if no call of that id waits.
  function pairing.result(id)
    if not waiting[id] then
      return false
    end
    waiting[id], n = nil, n - 1
    return true
  end

  --- Returns the ids that still wait, in order.
  function pairing.missing()
    local ids = {}
    for _, id in ipairs(order) do
      ids[#ids + 1] = waiting[id] and id or nil
    end
    return ids
  end

  return pairing
end

return check
