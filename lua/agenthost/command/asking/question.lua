--- Lets a person respond to a question of a handler (ctx:ask): the members of a flat object one by
-- one, a single value as it is typed, and anything else as JSON. See asking.lua.
local ah, use = ...
local changed, text = use "changed", use "text"

local M = {}

local MOST = 16 << 10 -- bytes of a question that are shown

local Question = {}
Question.__index = Question

local get = use "told".get

-- -- values ------------------------------------------------------------------------------------

local YES = { y = true, yes = true, ["true"] = true }
local NO = { n = true, no = true, ["false"] = true }

-- Functions from a line to a value, by type; nil and words if it is none.
local read = {}

function read.string(line)
  return line == '""' and "" or line
end

function read.number(line)
  local n = tonumber(line)
  if n then
    return n
  end
  return nil, "it must be a number"
end

read.integer = read.number

function read.boolean(line)
  if YES[line] or NO[line] then
    return YES[line] or false
  end
  return nil, "it must be y or n"
end

local function read_json(line)
  local value, err = ah.json.decode(line)
  if value == nil then
    return nil, err .. " (a text has quotes: \"Monday\")"
  end
  return value
end

local function one_of(schema, line)
  for _, value in ipairs(schema.enum) do
    if line == value or line == text.json(value) then
      return value
    end
  end
  return nil, "it must be one of them"
end

-- Returns a function from a line to a value of the schema.
local function reader(schema)
  if get(schema, "enum", "table") then
    return function(line) return one_of(schema, line) end
  end
  return read[get(schema, "type", "string") or ""] or read_json
end

-- Returns what a value must be, in a few words.
local function kind_of(schema)
  local enum = get(schema, "enum", "table")
  if enum then
    local list = {}
    for i, value in ipairs(enum) do
      list[i] = type(value) == "string" and value or text.json(value)
    end
    return table.concat(list, ", ")
  end
  local kind = get(schema, "type", "string")
  return kind == "boolean" and "y or n" or read[kind or ""] and kind or "JSON"
end

-- -- fields ------------------------------------------------------------------------------------

local function is_simple(schema)
  return get(schema, "enum", "table") ~= nil or read[get(schema, "type", "string") or ""] ~= nil
end

local function set_of(list)
  local set = {}
  for _, name in ipairs(list or {}) do
    set[name] = true
  end
  return set
end

-- Returns the members of a flat object as fields, the required ones first; nil for other schemas.
local function members(schema)
  local properties = get(schema, "properties", "table")
  if get(schema, "type", "string") ~= "object" or not properties or not next(properties) then
    return nil
  end
  local required, fields = set_of(get(schema, "required", "table")), {}
  for name, one in pairs(properties) do
    if type(name) ~= "string" or not is_simple(one) then
      return nil
    end
    fields[#fields + 1] = { name = name, schema = one, required = required[name] or false,
      otherwise = one.default }
  end
  table.sort(fields, function(a, b)
    if a.required ~= b.required then
      return a.required
    end
    return a.name < b.name
  end)
  return fields
end

-- Returns the fields of an ask; one without a name is the whole response.
local function fields_of(ask)
  local fields = members(ask.schema)
  if not fields then
    return { { schema = ask.schema, required = true, otherwise = ask.default } }
  end
  local given = type(ask.default) == "table" and ask.default or {}
  for _, field in ipairs(fields) do
    if given[field.name] ~= nil then
      field.otherwise = given[field.name]
    end
  end
  return fields
end

-- -- the dialog --------------------------------------------------------------------------------

function Question:show()
  self.say { { "Question: ", bold = true },
    (text.cut(self.ask.question, MOST):gsub("\n", "\n  ")),
    self.ask.timeout and (" (within %g s)"):format(self.ask.timeout) or "" }
end

local function label(field)
  local words = { kind_of(field.schema) }
  if field.otherwise ~= nil then
    words[2] = "default " .. (type(field.otherwise) == "string" and field.otherwise
      or text.json(field.otherwise))
  elseif not field.required then
    words[2] = "may be empty"
  end
  return changed.line(("%s(%s)"):format(field.name and field.name .. " " or "",
    table.concat(words, "; ")))
end

function Question:asked(count)
  local field = self.fields[self.at]
  return { keep = false, hidden = self.ask.secret or nil,
    prompt = { { ("%s%s: "):format(count and count .. " " or "", label(field)), bold = true } } }
end

-- Returns the value of a line; nil if the member is left out; nil and words if it is wrong.
local function value_of(field, line)
  if line == "" and field.otherwise ~= nil then
    return field.otherwise
  elseif line == "" and not field.required then
    return nil
  elseif line == "" then
    return nil, "Enter alone is no response"
      .. (get(field.schema, "type", "string") == "string" and "; \"\" is the empty text." or ".")
  end
  local value, why = reader(field.schema)(line)
  if value == nil then
    return nil, why
  end
  local ok, schema = pcall(ah.schema, field.schema, { unknown_keywords = "allow" })
  if ok then
    local fits, fault = schema:validate(value)
    if not fits then
      return nil, fault
    end
  end
  return value
end

-- Gives the whole response. One that does not fit is asked for again.
local function respond(q)
  local done, err = q.ask:respond(q.fields[1].name and q.values or q.values[1])
  if done or err.code ~= "tool_validation" then
    return true
  end
  q.say { err.message, color = "red" }
  q.at, q.values = 1, ah.object {}
end

function Question:take(line)
  local field = self.fields[self.at]
  local value, why = value_of(field, line)
  if why then
    self.say { why, color = "red" }
    return
  end
  self.values[field.name or 1] = value
  self.at = self.at + 1
  return self.at > #self.fields and respond(self) or nil
end

function Question.refuse(_) end

function M.new(ask, options)
  return setmetatable({ ask = ask, say = options.say, fields = fields_of(ask), at = 1,
    values = ah.object {} }, Question)
end

return M
