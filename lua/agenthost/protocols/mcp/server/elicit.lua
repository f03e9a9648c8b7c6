--- Asks of a run as forms that a client of the Model Context Protocol shows to its user
-- (`elicitation/create`), and the answers to them, which come from outside.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local M = {}

local MOST_TRIES = 3 -- forms for one ask whose answers do not fit
local MOST_NAME = 64 -- bytes of the name of a question
local MOST_SHOWN = 4000 -- bytes of arguments, results and changes in a question

-- -- what is asked --------------------------------------------------------------------------------

local function cut(text)
  if #text <= MOST_SHOWN then
    return text
  end
  local head = text:sub(1, (utf8.offset(text, 0, MOST_SHOWN + 1)) - 1)
  return ("%s\n[... %d bytes left out]"):format(head, #text - #head)
end

-- Returns the words of an approval: the reason, the call, and what it has changed.
local function approval_words(ask)
  local parts = { ask.question ~= "" and ask.question or nil }
  parts[#parts + 1] = ("%s %s"):format(ask.call.name, cut(ah.json.encode(ask.call.arguments)))
  if ask.result then
    parts[#parts + 1] = "Its result:\n" .. cut(ask.result)
  end
  for _, change in ipairs(ask.changes or {}) do
    parts[#parts + 1] = cut(change.diff or ah.json.encode(change))
  end
  return table.concat(parts, "\n\n")
end

-- Keys that a form may have, by the type of the value (2026-07-28, client/elicitation).
local KEYS = {
  string = { "minLength", "maxLength", "format", "enum", "enumNames", "oneOf" },
  number = { "minimum", "maximum" }, integer = { "minimum", "maximum" }, boolean = {},
  array = { "minItems", "maxItems", "items" },
}
local FORMATS = { email = true, uri = true, date = true, ["date-time"] = true }

-- True for a list of words with their titles.
local function are_titled(list)
  for _, one in ipairs(list) do
    if type(one) ~= "table" or type(one.const) ~= "string" or type(one.title) ~= "string" then
      return false
    end
  end
  return #list > 0
end

-- True for a schema of the items of a list that a form can have: one word of several.
local function are_words(items)
  if type(items) ~= "table" then
    return false
  end
  return items.type == "string" and items.enum ~= nil or items.anyOf and are_titled(items.anyOf)
end

-- True if a form can have a value of this schema: a text, a number, a boolean or, with `many`, a
-- list of words.
local function fits_form(schema, many)
  if type(schema) ~= "table" or not KEYS[schema.type] then
    return false
  elseif schema.type == "array" then
    return many and are_words(schema.items)
  elseif schema.type ~= "string" then
    return schema.enum == nil
  end
  return schema.oneOf == nil or many and are_titled(schema.oneOf)
end

-- Returns the schema as a form can have it; nil for one of other values. What is left out is
-- checked when the answer has come.
local function primitive(schema, many)
  if not fits_form(schema, many) then
    return nil
  end
  local keys = KEYS[schema.type]
  local form = { type = schema.type, title = schema.title, description = schema.description,
    default = schema.default }
  for _, key in ipairs(keys) do
    form[key] = schema[key]
  end
  form.format = FORMATS[form.format] and form.format or nil
  return form
end

-- Returns the properties of an object as a form can have them; nil for one with other members.
local function flat(schema, many)
  if type(schema) ~= "table" or schema.type ~= "object" or not schema.properties then
    return nil
  end
  local properties = ah.object {}
  for name, of in pairs(schema.properties) do
    properties[name] = primitive(of, many)
    if not properties[name] then
      return nil
    end
  end
  return properties
end

local function form(words, properties, required)
  return { message = words,
    requestedSchema = { type = "object", properties = properties, required = required } }
end

local function one(words, property)
  return form(words, { response = property }, ah.array { "response" })
end

-- Returns the form of a question, and how its answer is read: "object", "value" or "json".
local function question_form(ask, many)
  local properties = flat(ask.schema, many)
  if properties then
    return form(ask.question, properties, ask.schema.required), "object"
  end
  local property = primitive(ask.schema, many)
  if property then
    property.default = ask.default
    return one(ask.question, property), "value"
  end
  return one(ask.question, { type = "string", title = "JSON",
    description = cut("JSON that fits " .. ah.json.encode(ask.schema or {})) }), "json"
end

local APPROVED = { type = "boolean", title = "Approve" }

-- Returns the name of a question: the title of its schema, if that can be a key.
local function name_of(ask)
  local title = type(ask.schema) == "table" and ask.schema.title
  local fits = type(title) == "string" and #title <= MOST_NAME and title:find "^[a-z][a-z0-9_]*$"
  return fits and title or nil
end

local function form_of(ask, many)
  if ask.kind == "approval" then
    return form(approval_words(ask), { approved = APPROVED }, ah.array { "approved" }), "approval"
  end
  local asked, how = question_form(ask, many)
  asked.name = name_of(ask)
  return asked, how
end

-- -- what is answered -----------------------------------------------------------------------------

-- Returns the response in an answer's content, or nil and the reason.
local function response_in(content, how)
  if how == "object" then
    return content
  elseif how == "value" then
    return content.response
  elseif type(content.response) ~= "string" then
    return nil, "a text with JSON is missing"
  end
  return ah.json.decode(content.response)
end

-- Gives the response of an accepted form. Returns true, or nil and why the answer is no response.
local function take(ask, content, how)
  if how == "approval" then
    if type(content.approved) ~= "boolean" then
      return nil, '"approved" must be true or false'
    end
    return ask:respond(content.approved and true
      or { approved = false, why = "the person said no" })
  end
  local response, why = response_in(content, how)
  if response == nil then
    return nil, why or "it is missing"
  end
  return ask:respond(response)
end

-- Returns a form that begins with what was wrong with the last answer.
local function again(asked, why)
  local words = ("Not accepted: %s\n\n%s"):format(message.said(why), asked.message)
  return { message = words, requestedSchema = asked.requestedSchema, name = asked.name }
end

-- Ends a front end without a response, so that the ask gets its default or fails.
local function give_up(why)
  error("MCP: " .. why, 0)
end

-- Takes the answer of the client. Returns true, or false and why it is no response.
local function take_answer(ask, answer, how)
  if answer.action == "accept" then
    local ok, why = take(ask, message.object(answer.content), how)
    return ok or false, type(why) == "table" and why.message or why
  elseif ask.kind ~= "approval" then
    give_up "the person of the client declined to answer"
  end
  return ask:respond { approved = false, why = "the person declined" }
end

--- A front end: asks the client by call:question, until there is a response or none will come.
-- Secrets are not asked for, as a form shows them to the client.
function M.front(call, ask)
  if ask.secret then
    give_up "a secret is not asked for by a form"
  end
  local asked, how = form_of(ask, call.many)
  local shown = asked
  for _ = 1, MOST_TRIES do
    local done, why = take_answer(ask, message.object(call:question(shown)), how)
    if done then
      return nil
    end
    shown = again(asked, why)
  end
  give_up(("%d answers of the client did not fit"):format(MOST_TRIES))
end

--- A front end for a client that shows no forms: gives defaults and refusals, and notes what the
-- client lacks.
function M.no_front(call, ask)
  if ask.default ~= nil then
    return ask:respond(ask.default)
  end
  call.lacks = { elicitation = { form = ah.object {} } }
  if ask.kind == "approval" then
    return ask:respond { approved = false, why = "the client shows no forms" }
  end
  give_up "the client shows no forms"
end

--- True if the capabilities of a client, from outside, allow forms.
function M.allows(capabilities)
  local elicitation = message.object(capabilities).elicitation
  return message.is_object(elicitation)
    and (next(elicitation) == nil or elicitation.form ~= nil)
end

return M
