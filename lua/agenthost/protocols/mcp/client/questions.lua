--- Questions of a server of MCP to a person (elicitation), made into asks: forms with a schema, and
-- pages to open. A question that cannot be asked is refused.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_QUESTIONS = 8 -- in one result
local MOST_QUESTION = 16 << 10
local MOST_URL = 2048

local questions = {}

--- Adds the defaults of the form for what the person has left out.
local function with_defaults(value, schema)
  for key, property in pairs(message.object(schema.properties)) do
    if value[key] == nil and message.is_object(property) then
      value[key] = property.default
    end
  end
  return value
end

local function ask_form(name, params, ctx)
  local schema = message.is_object(params.requestedSchema)
    and params.requestedSchema.type == "object" and params.requestedSchema
  local ok, compiled = pcall(ah.schema, ah.json.encode(schema or ah.null),
    { unknown_keywords = "allow" })
  if not schema or not ok then
    return nil, ah.error { code = "provider",
      message = ("MCP server '%s' asks with a schema that cannot be used"):format(name) }
  end
  local value, err = ctx:ask { question = ("The server '%s' asks: %s"):format(name, params.message),
    schema = compiled }
  if value == nil then
    return nil, err
  end
  return { action = "accept", content = with_defaults(value, schema) }
end

local function ask_page(name, params, ctx)
  local url = message.text(params.url, MOST_URL)
  if not url or not url:find "^https?://[%w%[][%g]*$" then
    return nil, ah.error { code = "provider",
      message = ("MCP server '%s' asks for a page whose address cannot be opened"):format(name) }
  end
  local done, err = ctx:ask {
    question = ("The server '%s' asks you to open a page: %s\n%s\nHave you done it?"):format(name,
      params.message, url),
    schema = { type = "boolean" } }
  if done == nil then
    return nil, err
  end
  return { action = done and "accept" or "decline" }
end

--- Asks a person what an `elicitation/create` wants. Returns its result; or nil and an error.
function questions.elicit(name, params, ctx)
  if not message.text(params.message, MOST_QUESTION) then
    return nil, ah.error { code = "provider",
      message = ("MCP server '%s' asks without a question"):format(name) }
  elseif params.mode == "url" then
    return ask_page(name, params, ctx)
  elseif params.mode ~= nil and params.mode ~= "form" then
    return nil, ah.error { code = "provider",
      message = ("MCP server '%s' asks in a way that it was not offered"):format(name) }
  end
  return ask_form(name, params, ctx)
end

--- Answers the `inputRequests` of a result that needs input, in the order of their names. Returns
-- the `inputResponses` (nil: nothing was asked); or false and an error.
function questions.answer(name, requests, ctx)
  if requests == nil then
    return nil
  end
  local keys = {}
  for key in pairs(message.object(requests)) do
    keys[#keys + 1] = key
  end
  if #keys == 0 or #keys > MOST_QUESTIONS then
    return false, ah.error { code = "provider",
      message = ("MCP server '%s' asks %d questions at once; it may ask 1 to %d"):format(name,
        #keys, MOST_QUESTIONS) }
  end
  table.sort(keys)
  local responses = {}
  for _, key in ipairs(keys) do
    local request = message.object(requests[key])
    if request.method ~= "elicitation/create" then
      return false, ah.error { code = "provider",
        message = ("MCP server '%s' asks for %s, which it was not offered"):format(name,
          message.said(request.method)) }
    end
    local result, err = questions.elicit(name, message.object(request.params), ctx)
    if not result then
      return false, err
    end
    responses[key] = result
  end
  return responses
end

return questions
