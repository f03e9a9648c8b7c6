--- Requests of a client of MCP that may take several exchanges: a server that needs input is
-- answered, and asked again (basic/patterns/mrtr); a call that has become a task is followed.
local ah = ...

local later = ah._module "agenthost.later"

local message = ah._module "agenthost.protocols.mcp.message"
local questions = ah._module "agenthost.protocols.mcp.client.questions"
local tasks = later "agenthost.protocols.mcp.client.tasks"
local trace = ah._module "agenthost.protocols.mcp.client.trace"

local MOST_ROUNDS = 10 -- of input that one call may need

local requests = {}

local function refused(server, why)
  return nil, server.connection:failure("provider", why)
end

local function on_progress(ctx)
  return function(at)
    if at.fraction and at.text then
      ctx:progress(at.fraction, at.text)
    elseif at.fraction or at.text then
      ctx:progress(at.fraction or at.text)
    end
  end
end

--- Answers a question of a server with a handshake. Returns a result, or nil and words. A form or a
-- page has a result for no answer of a person.
local function on_question(asker)
  return function(method, params)
    local result, err = asker:one(method, params)
    if result or method ~= "elicitation/create" then
      return result, err and message.said(err.message)
    end
    return { action = "cancel" }
  end
end

--- Returns the parameters of a request that is made again, with the input that it has needed.
local function with_input(params, result, responses)
  return { name = params.name, arguments = params.arguments, uri = params.uri,
    inputResponses = responses,
    requestState = type(result.requestState) == "string" and result.requestState or nil }
end

--- Returns `more` of the connection's requests for a call.
local function more_of(server, ctx, asker, fields)
  return { headers = fields, timeout = server.config.timeout, longest = server.config.longest,
    meta = trace.of(server.config.trace, ctx), on_progress = ctx and on_progress(ctx),
    on_question = asker and on_question(asker) }
end

--- Makes a request. Without a `ctx` no person can be asked. fields: headers of HTTP, or nil.
-- Returns its result; or nil and an error.
function requests.make(server, method, params, ctx, fields)
  local asker = ctx and questions.asker(server, ctx)
  local more = more_of(server, ctx, asker, fields)
  for round = 1, MOST_ROUNDS do
    local ends = ah.now() + server.config.longest
    local result, err = server.connection:request(method, params, more)
    if not result then
      return nil, err
    elseif result.resultType == nil or result.resultType == "complete" then
      return result
    elseif result.resultType == "task" and method == "tools/call" and ctx then
      return tasks.follow(server, result, { asker = asker, ends = ends, meta = more.meta })
    elseif result.resultType ~= "input_required" then
      return refused(server, "a result of an unknown type: " .. message.said(result.resultType))
    elseif not ctx then
      return refused(server, "it needs input of a person, who is asked in calls of tools only")
    end
    local responses, why = asker:all(result.inputRequests)
    if responses == false then
      return nil, why
    elseif not responses and type(result.requestState) ~= "string" then
      return refused(server, "it needs input and does not say which")
    elseif not responses then
      ah.sleep(0.1 * round) -- it only wants to be asked again
    end
    params = with_input(params, result, responses)
  end
  return refused(server, ("it asked for input %d times in one call"):format(MOST_ROUNDS))
end

return requests
