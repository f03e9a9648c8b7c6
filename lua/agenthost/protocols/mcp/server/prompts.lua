--- The prompts of a script: `prompts/list` and `prompts/get`.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local rounds = ah._module "agenthost.protocols.mcp.server.rounds"

local CODES, fault = message.CODES, message.fault

local MOST_MESSAGES = 1000

local M = {}

local function shown_argument(one)
  return { name = one.name, title = one.title, description = one.description,
    required = one.required or nil }
end

--- Returns the list of the prompts as clients see it.
function M.shown(prompts)
  local list = ah.array {}
  for i, one in ipairs(prompts) do
    local arguments = ah.array {}
    for j, argument in ipairs(one.arguments) do
      arguments[j] = shown_argument(argument)
    end
    list[i] = { name = one.name, title = one.title, description = one.description,
      arguments = arguments[1] and arguments or nil }
  end
  return list
end

-- -- messages -------------------------------------------------------------------------------------

local function embedded(part)
  if type(part.uri) ~= "string" or (type(part.text) == "string") == (type(part.data) == "string")
    then
    return nil, "a resource needs 'uri', and one of the texts 'text' and 'data'"
  end
  return { type = "resource", resource = { uri = part.uri, mimeType = part.mime_type,
    text = part.text, blob = part.data and ah.base64.encode(part.data) } }
end

local PARTS = {
  text = function(part)
    return type(part.text) == "string" and { type = "text", text = part.text }
  end,
  image = function(part)
    return type(part.data) == "string"
      and { type = "image", data = ah.base64.encode(part.data), mimeType = part.mime }
  end,
  resource = embedded,
}

-- Returns a part of a message in the form of the protocol; nil and the reason.
local function part_of(part)
  if type(part) == "string" then
    return { type = "text", text = part }
  end
  local make = type(part) == "table" and PARTS[part.type]
  local made, why = false, nil
  if make then
    made, why = make(part)
  end
  if not made then
    return nil, why or "a part must be a text, an image with data, or a resource"
  end
  return made
end

-- Adds the parts of a message to the list, a message each.
local function add(list, one)
  local role = type(one) == "table" and one.role or "user"
  local content = one
  if type(one) == "table" and one.content ~= nil then
    content = one.content
  end
  if role ~= "user" and role ~= "assistant" then
    return nil, "'role' must be user or assistant"
  end
  local parts = type(content) == "table" and not content.type and content or { content }
  for _, part in ipairs(parts) do
    local made, why = part_of(part)
    if not made then
      return nil, why
    end
    list[#list + 1] = { role = role, content = made }
  end
  return true
end

-- Returns what `get` has returned as messages; nil and the reason.
local function messages_of(given)
  local list = ah.array {}
  local items = type(given) == "table" and not given.type and not given.role and given or { given }
  for i, one in ipairs(items) do
    local ok, why = add(list, one)
    if not ok or #list > MOST_MESSAGES then
      return nil, ("messages[%d]: %s"):format(i, why or "there are too many")
    end
  end
  if not list[1] then
    return nil, "get returned no message"
  end
  return list
end

-- -- prompts/get ----------------------------------------------------------------------------------

-- Returns the arguments of a request; nil and an error.
local function arguments_of(prompt, given)
  if given ~= nil and not message.is_object(given) then
    return fault(CODES.params, '"arguments" must be an object')
  end
  given = given or {}
  for name, value in pairs(given) do
    if not prompt.arguments[name] then
      return fault(CODES.params, "Unknown argument: %s", message.said(name))
    elseif type(value) ~= "string" then
      return fault(CODES.params, "the argument '%s' must be a text", name)
    end
  end
  for _, one in ipairs(prompt.arguments) do
    if one.required and given[one.name] == nil then
      return fault(CODES.params, "the argument '%s' is missing", one.name)
    end
  end
  return given
end

local function show(prompt)
  return function(q, given, why)
    if given == nil and type(why) == "string" then
      return fault(CODES.internal, "%s", why)
    end
    local messages, wrong = messages_of(given)
    if not messages then
      return rounds.wrong(q, prompt.name, "%s", wrong)
    end
    return { description = prompt.description, messages = messages }
  end
end

--- Answers `prompts/get`.
function M.get(q)
  local name = message.text(q.params.name, message.MOST_ID)
  local prompt = name and q.server.offers.prompts[name]
  if not prompt then
    return fault(CODES.params, "Unknown prompt: %s", message.said(q.params.name))
  end
  local arguments, err = arguments_of(prompt, q.params.arguments)
  if not arguments then
    return nil, err
  end
  return rounds.script(q, { name = name, arguments = ah.object(arguments), show = show(prompt),
    job = function(ctx)
      return prompt.get(arguments, ctx)
    end })
end

return M
