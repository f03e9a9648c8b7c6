--- Headers of HTTP that repeat what a request says, for whoever routes it: the name of what it is
-- about, and the parameters that a tool's schema marks with `x-mcp-header` (specification
-- 2026-07-28, basic/transports/streamable-http, "Request Metadata").
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_MARKED, MOST_DEPTH = 64, 32
local MARK = "x-mcp-header"
local SAFE = (1 << 53) - 1

local headers = {}

--- Returns a text as the value of a header: as it is, or in Base64.
function headers.encode(text)
  local plain = text:find "^[\x21-\x7e][\x20-\x7e]*$" and not text:find " $"
    and not text:find "^=%?base64%?.*%?=$"
  return plain and text or text == "" and "" or "=?base64?" .. ah.base64.encode(text) .. "?="
end

--- Returns the text that the value of a header stands for; nil for wrong Base64.
function headers.decode(value)
  local inside = value:match "^=%?base64%?(.*)%?=$"
  if inside then
    return (ah.base64.decode(inside))
  end
  return value
end

local NAMED = { ["tools/call"] = "name", ["prompts/get"] = "name", ["resources/read"] = "uri",
  ["tasks/get"] = "taskId", ["tasks/update"] = "taskId", ["tasks/cancel"] = "taskId" }

--- Returns what the header Mcp-Name of a request repeats; nil for a method without it.
function headers.name(method, params)
  return NAMED[method] and params[NAMED[method]]
end

-- -- marked parameters ----------------------------------------------------------------------------

local PRIMITIVE = { string = true, integer = true, boolean = true }

--- Counts the marks anywhere in a schema, so that those in places without a fixed path are found.
local function count(schema, depth)
  if type(schema) ~= "table" or depth > MOST_DEPTH then
    return 0
  end
  local n = 0
  for key, value in pairs(schema) do
    if key == "properties" and message.is_object(value) then
      for _, property in pairs(value) do
        n = n + count(property, depth + 1)
      end
    else
      n = n + (key == MARK and 1 or count(value, depth + 1))
    end
  end
  return n
end

local function fault_of(schema, names)
  local name = schema[MARK]
  if type(name) ~= "string" or not name:find "^[%w!#$%%&'*+.^_`|~-]+$" or #name > 128 then
    return "is no name of a header"
  elseif not PRIMITIVE[schema.type] then
    return "is of a parameter that is no string, integer or boolean"
  elseif names[name:lower()] then
    return "is there twice"
  end
end

--- Adds the marked parameters below the properties of a schema to the list.
local function collect(schema, path, list, names)
  for key, property in pairs(message.object(schema.properties)) do
    if message.is_object(property) and #path < MOST_DEPTH then
      local here = { table.unpack(path) }
      here[#here + 1] = key
      if property[MARK] ~= nil then
        local why = fault_of(property, names)
        if why or #list >= MOST_MARKED then
          return ('its "%s" %s %s'):format(MARK, message.said(property[MARK]),
            why or "is one too many")
        end
        names[property[MARK]:lower()] = true
        list[#list + 1] = { name = "Mcp-Param-" .. property[MARK], path = here }
      end
      local why = collect(property, here, list, names)
      if why then
        return why
      end
    end
  end
end

--- Returns the marked parameters of a tool's schema, a list of { name, path } (nil if there are
-- none); nil and the reason if the marks are wrong.
function headers.marked(schema)
  local list = {}
  local why = collect(schema, {}, list, {})
  if why then
    return nil, why
  elseif count(schema, 1) ~= #list then
    return nil, ('it has an "%s" that is not at a fixed path of "properties"'):format(MARK)
  end
  return list[1] and list or nil
end

local function text_of(value)
  if math.type(value) == "float" and value % 1 == 0 and math.abs(value) <= SAFE then
    value = math.tointeger(value)
  end
  if type(value) == "string" or type(value) == "boolean" then
    return tostring(value)
  elseif math.type(value) == "integer" and math.abs(value) <= SAFE then
    return ("%d"):format(value)
  end
end

--- Returns what the headers of a call with these arguments say, by their names; nil if there are
-- none.
function headers.of(list, arguments)
  local found
  for _, one in ipairs(list or {}) do
    local value = arguments
    for _, key in ipairs(one.path) do
      if type(value) ~= "table" then
        value = nil
        break
      end
      value = value[key]
    end
    local text = text_of(value)
    if text then
      found = found or {}
      found[one.name] = text
    end
  end
  return found
end

return headers
