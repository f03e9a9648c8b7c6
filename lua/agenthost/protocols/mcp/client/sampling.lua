--- Sampling: a model of ours answers for a server of MCP, where that is switched on (specification
-- 2026-07-28, client/sampling). The answer is a run within the call of the server's tool, so its
-- limits and budgets hold. A person approves of each, unless the program says otherwise.
local ah = ...

local content = ah._module "agenthost.protocols.mcp.client.content"
local message = ah._module "agenthost.protocols.mcp.message"

local MOST_SAMPLES = 10 -- in one call
local MOST_MESSAGES = 200
local MOST_BYTES = 1 << 20 -- of the texts of one request
local MOST_TOKENS = 32768
local MOST_STOPS = 16
local MOST_SHOWN = 16 << 10 -- bytes that a person is shown

local STOPS = { ["end"] = "endTurn", length = "maxTokens", stop_sequence = "stopSequence" }

local sampling = {}

local function refuse(server, text, ...)
  return nil, server.connection:failure("provider", text:format(...))
end

-- -- the request ----------------------------------------------------------------------------------

--- Returns a message for a run; or nil and what is wrong with it.
local function message_of(given)
  given = message.object(given)
  if given.role ~= "user" and given.role ~= "assistant" then
    return nil, "a message without a role"
  end
  local parts = message.is_list(given.content) and given.content or ah.array { given.content }
  for _, part in ipairs(parts) do
    local kind = message.object(part).type
    if kind == "tool_use" or kind == "tool_result" then
      return nil, "calls of tools, which it was not offered"
    end
  end
  local made, images = content.parts(parts)
  return { role = given.role, content = images and given.role == "user" and made
    or content.text(made) }
end

local function size_of(text)
  if type(text) == "string" then
    return #text
  end
  local n = 0
  for _, part in ipairs(text) do
    n = n + (type(part) == "string" and #part or 0)
  end
  return n
end

local function stops_of(given)
  local list = {}
  for i, stop in ipairs(message.is_list(given) and given or {}) do
    list[#list + 1] = i <= MOST_STOPS and message.text(stop, 256) or nil
  end
  return list[1] and list or nil
end

local function hints_of(given)
  local hints = message.object(given).hints
  local list = {}
  for i, hint in ipairs(message.is_list(hints) and hints or {}) do
    list[#list + 1] = i <= 16 and message.text(message.object(hint).name, 256) or nil
  end
  return list
end

--- Returns what a server asks for: `{ server, messages, system, max_tokens, temperature, stop,
-- hints }`; or nil and what is wrong.
local function read(server, params)
  local given = message.is_list(params.messages) and params.messages or {}
  local tokens = math.tointeger(params.maxTokens)
  if #given == 0 or #given > MOST_MESSAGES then
    return nil, ("%d messages; there may be 1 to %d"):format(#given, MOST_MESSAGES)
  elseif not tokens or tokens < 1 then
    return nil, '"maxTokens" is no positive integer'
  elseif params.tools ~= nil then
    return nil, "tools, which it was not offered"
  end
  local system = message.text(params.systemPrompt, MOST_BYTES)
  local messages, bytes = {}, #(system or "")
  for i, item in ipairs(given) do
    local made, why = message_of(item)
    if not made then
      return nil, why
    end
    messages[i], bytes = made, bytes + size_of(made.content)
  end
  if bytes > MOST_BYTES then
    return nil, ("more than %d bytes of text"):format(MOST_BYTES)
  end
  return { server = server.name, messages = messages, system = system,
    max_tokens = math.min(tokens, MOST_TOKENS),
    temperature = type(params.temperature) == "number" and params.temperature or nil,
    stop = stops_of(params.stopSequences), hints = hints_of(params.modelPreferences) }
end

-- -- approval -------------------------------------------------------------------------------------

local function shown(request)
  local lines = { request.system and "system: " .. request.system }
  for _, item in ipairs(request.messages) do
    local text = item.content
    lines[#lines + 1] = item.role .. ": " .. (type(text) == "string" and text or content.text(text))
  end
  local text = table.concat(lines, "\n\n")
  if #text <= MOST_SHOWN then
    return text
  end
  return ("%s\n[... %d more bytes]"):format(text:sub(1, utf8.offset(text, 0, MOST_SHOWN + 1) - 1),
    #text - MOST_SHOWN)
end

local function approve(server, request, ctx)
  if server.config.sampling_policy == "allow" then
    return true
  end
  local yes, err = ctx:ask { schema = { type = "boolean" }, question =
    ("The server '%s' wants an answer of a model, of at most %d tokens. It asks:\n\n%s\n\nMay it?")
      :format(server.name, request.max_tokens, shown(request)) }
  if yes then
    return true
  end
  return refuse(server, "its request for an answer of a model was not approved%s",
    err and ": " .. err.message or "")
end

-- -- the answer -----------------------------------------------------------------------------------

--- Returns the text of an answer, why it ended and the model's name; or nil and an error.
local function answer_of(server, request, ctx)
  local model = server.config.sampling
  if type(model) == "function" then
    local text, err = model(request, ctx)
    if type(text) == "userdata" then -- a reply
      return text.text, text.stop, "unknown"
    elseif type(text) ~= "string" then
      return nil, err or ah.error { code = "usage",
        message = "ah.mcp: the function 'sampling' must return a text or a reply" }
    end
    return text, "end", "unknown"
  end
  local reply, err = ah.run { model = model, system = request.system, messages = request.messages,
    timeout = server.config.longest, options = { max_tokens = request.max_tokens,
      temperature = request.temperature, stop = request.stop } }
  if not reply then
    return nil, err
  end
  return reply.text, reply.stop, type(model) == "string" and model
    or ("%s/%s"):format(model.provider, model.model)
end

--- Answers a `sampling/createMessage` of a call. Returns its result; or nil and an error. asker: of
-- the call, which counts the samples.
function sampling.answer(server, params, asker)
  asker.samples = (asker.samples or 0) + 1
  if asker.samples > MOST_SAMPLES then
    return refuse(server, "it asked for more than %d answers of a model in one call", MOST_SAMPLES)
  end
  local request, why = read(server, params)
  if not request then
    return refuse(server, "it asks a model with %s", why)
  end
  local ok, err = approve(server, request, asker.ctx)
  if not ok then
    return nil, err
  end
  local text, stop, name = answer_of(server, request, asker.ctx)
  if not text then
    local said = type(stop) == "table" and stop.message or tostring(stop)
    return refuse(server, "no model has answered for it: %s", message.said(said))
  end
  return { role = "assistant", content = { type = "text", text = text }, model = name,
    stopReason = STOPS[stop] or stop }
end

return sampling
