--- Calls that requests of a client make, in the conversation of a session or in one of their own,
-- and their results; with reports of progress, and questions to the client. In revision 2026-07-28
-- a question is a result, and the client's next request goes on with the call
-- (basic/patterns/mrtr); in the older ones it is a request of ours.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local calls = ah._module "agenthost.protocols.mcp.server.calls"
local elicit = ah._module "agenthost.protocols.mcp.server.elicit"

local CODES, fault = message.CODES, message.fault

local PROGRESS_GAP = 0.05 -- seconds between two reports of a call

local M = {}

-- Returns a function that reports the progress of a call to the request that waits for it, if that
-- has a token. The number of a report is above the one before it.
local function reporter(call)
  local last, at
  return function(event)
    local q, now = call.q, ah._clock()
    local token = q and message.object(q.params._meta).progressToken
    if not message.is_id(token) or at and now - at < PROGRESS_GAP then
      return
    end
    local progress = event.fraction or last and last + 1e-6 or 0
    if last and progress <= last then
      progress = last + 1e-6
    end
    last, at = progress, now
    q.send(message.notification("notifications/progress", { progressToken = token,
      progress = progress, total = event.fraction and 1 or nil, message = event.message }))
  end
end

--- Returns a front end for the client of a request. For a client without forms it is one that
-- refuses; or nil if its revision has no error for that, or a front end of the script may respond.
function M.front(q)
  if elicit.allows(q.capabilities or q.peer.capabilities) then
    return elicit.front
  end
  return q.features.modern and not q.server.served.fields.asks and elicit.no_front or nil
end

-- Asks the client by a request of ours. Waits, and returns its answer, from outside.
local function ask_peer(q, form)
  local peer = q.peer
  peer.asked = peer.asked + 1
  local id, answer = "ask_" .. peer.asked, ah.channel(1)
  local _ <close> = setmetatable({}, { __close = function()
    if peer.pending[id] then -- the answer is no longer wanted
      peer.pending[id] = nil
      q.send(message.notification("notifications/cancelled", { requestId = id }))
    end
  end })
  peer.pending[id] = answer
  q.send(message.request(id, "elicitation/create", { mode = q.features.url and "form" or nil,
    message = form.message, requestedSchema = form.requestedSchema }))
  return answer:receive()
end

-- Returns the call that a request begins. fields: those of calls.call, and show(q, call), which
-- makes the result once the call has ended.
local function new_call(q, fields)
  local call = calls.call(fields)
  call.on_progress, call.many = reporter(call), q.features.many
  if q.features.modern then
    call.given = message.object(q.params.inputResponses)
  else
    function call.ask(form)
      return ask_peer(q, form)
    end
  end
  return call
end

-- Makes a call in a task of its own, which may outlive the request.
local function begin(q, conversation, call, over)
  if q.cancelled then
    call.cancelled = true
  end
  function call.cancel()
    conversation:cancel(call)
  end
  q.server.start(function()
    conversation:make(call)
    if over then
      conversation:close()
    end
  end)
end

-- -- questions as results -------------------------------------------------------------------------

local function questions_of(call)
  local requests = {}
  for key, one in pairs(call:questions()) do
    requests[key] = { method = "elicitation/create", params = { mode = "form",
      message = one.form.message, requestedSchema = one.form.requestedSchema } }
  end
  return requests
end

-- Returns the result that asks the client, and keeps the call until it answers.
local function park(q, call)
  local state = q.server.waiting:keep(q, call, call.cancel)
  if not state then
    call.cancel()
    return fault(CODES.internal, "too many calls wait for answers; try again later")
  end
  call.q = nil
  return { resultType = "input_required", inputRequests = questions_of(call), requestState = state }
end

local function lacking(call)
  return nil, { code = CODES.capability, data = { requiredCapabilities = call.lacks },
    message = ("'%s' asks a question, and the client shows no forms"):format(call.name) }
end

-- Returns the result of the call, or the questions that it has.
local function follow(q, call)
  call.q, q.cancel = q, call.cancel
  while not call:questions() and call.news:receive() do
    ah.yield() -- others that ask at the same time come first
  end
  if call:questions() and not call.done then
    return park(q, call)
  elseif call.cancelled then
    return false
  elseif q.features.modern and call.lacks and not (call.outcome or {}).success then
    return lacking(call)
  end
  return call.show(q, call)
end

-- Goes on with a call that waits for the answers of this request.
local function resume(q, fields)
  local call, why = q.server.waiting:take(q, fields, q.params.requestState)
  if not call then
    return fault(CODES.params, "%s", why)
  end
  call:give(message.object(q.params.inputResponses))
  return follow(q, call)
end

-- -- requests -------------------------------------------------------------------------------------

local function not_set_up(err)
  ah.log("warning", "mcp: " .. err.message)
  return fault(CODES.internal, "the conversation could not be set up; the server's log has why")
end
M.not_set_up = not_set_up

--- Makes the call of a request in the conversation of its session. Returns as Server methods do.
function M.in_session(q, conversation, fields)
  local call = new_call(q, fields)
  begin(q, conversation, call)
  return follow(q, call)
end

--- Makes the call of a request in a conversation of its own, which a definition opens; or goes on
-- with the call that a request of revision 2026-07-28 names. With `quiet` there are no questions.
function M.alone(q, definition, fields)
  if q.features.modern and q.params.requestState ~= nil then
    return resume(q, fields)
  end
  local front = not fields.quiet and M.front(q) or nil
  local conversation, err = calls.open(definition, front)
  if not conversation then
    return not_set_up(err)
  end
  local call = new_call(q, fields)
  begin(q, conversation, call, true)
  return follow(q, call)
end

-- Returns a function that makes the result of a call whose job has ended.
local function shower(show)
  return function(q, call)
    local outcome = call.outcome
    if not outcome and call.error then
      return not_set_up(call.error)
    elseif outcome and outcome.success then
      return show(q, table.unpack(call.made, 1, call.made.n))
    end
    ah.log("warning", ("mcp: %s %s: %s"):format(q.method, message.said(call.name),
      outcome and outcome.content or "it has no result"))
    return fault(CODES.internal, "'%s' failed; the server's log has the reason", call.name)
  end
end

--- Calls a function of the script for a request. fields: `name` and `arguments`, of which the
-- request is; job(ctx); show(q, ...), which makes the result from what the job has returned;
-- `quiet`.
function M.script(q, fields)
  fields.show = shower(fields.show)
  return M.alone(q, q.server.served.jobs, fields)
end

--- Returns a fault for what a function of the script has returned, and logs it.
function M.wrong(q, name, text, ...)
  ah.log("warning", ("mcp: %s %s: %s"):format(q.method, message.said(name), text:format(...)))
  return fault(CODES.internal, "'%s' failed; the server's log has the reason", name)
end

return M
