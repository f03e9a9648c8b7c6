--- Questions of a server of MCP during a call: for values of a person, or that a person opens a
-- page (elicitation, made into asks); and where it is switched on, for roots and for answers of a
-- model. A question that cannot be asked, or was not offered, is refused.
local ah = ...

local later = ah._module "agenthost.later"

local message = ah._module "agenthost.protocols.mcp.message"
local roots = later "agenthost.protocols.mcp.client.roots"
local sampling = later "agenthost.protocols.mcp.client.sampling"

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
local function elicit(name, params, ctx)
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

-- -- the questions of one call --------------------------------------------------------------------

local Asker = {}
Asker.__index = Asker

--- Returns what answers the questions of one call. server: with name, config and connection.
function questions.asker(server, ctx)
  return setmetatable({ server = server, ctx = ctx }, Asker)
end

local KINDS = {
  ["elicitation/create"] = function(self, params)
    return elicit(self.server.name, params, self.ctx)
  end,
  ["roots/list"] = function(self)
    return roots.list(self.server)
  end,
  ["sampling/createMessage"] = function(self, params)
    return sampling.answer(self.server, params, self)
  end,
}

local SWITCHED = { ["roots/list"] = "roots", ["sampling/createMessage"] = "sampling" }

--- True if a server may ask for this, a method.
function questions.offered(config, method)
  return KINDS[method] ~= nil and (not SWITCHED[method] or config[SWITCHED[method]] ~= nil)
end

--- Answers one question. Returns its result; or nil and an error.
function Asker:one(method, params)
  if not questions.offered(self.server.config, method) then
    return nil, ah.error { code = "provider",
      message = ("MCP server '%s' asks for %s, which it was not offered"):format(self.server.name,
        message.said(method)) }
  end
  return KINDS[method](self, message.object(params))
end

--- Returns the names of the requests, in order, without those that `answered` has.
local function keys_of(requests, answered)
  local keys = {}
  for key in pairs(message.object(requests)) do
    if not (answered and answered[key]) then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys)
  return keys
end

--- Answers `inputRequests`, in the order of their names, without those that `answered` has.
-- Returns the `inputResponses` (nil: nothing was asked); or false and an error.
function Asker:all(requests, answered)
  if requests == nil then
    return nil
  end
  local keys = keys_of(requests, answered)
  if #keys == 0 and answered then
    return nil
  elseif #keys == 0 or #keys > MOST_QUESTIONS then
    return false, ah.error { code = "provider",
      message = ("MCP server '%s' asks %d questions at once; it may ask 1 to %d"):format(
        self.server.name, #keys, MOST_QUESTIONS) }
  end
  local responses = {}
  for _, key in ipairs(keys) do
    local request = message.object(requests[key])
    local result, err = self:one(request.method, request.params)
    if not result then
      return false, err
    end
    responses[key] = result
  end
  return responses
end

return questions
