--- Tasks of a server of MCP: a call that the server answers later. It is asked for its state again
-- and again, until it has ended (extension `io.modelcontextprotocol/tasks`, SEP-2663).
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local MOST_ID = 4096 -- bytes
local SHORTEST, LONGEST, USUAL = 0.1, 60, 1 -- seconds between two looks
local MOST_ROUNDS = 10 -- of input
local MOST_LOST = 5 -- times that the server may be lost

local STATES = { working = "open", input_required = "open", completed = "ended",
  failed = "ended", cancelled = "ended" }

local tasks = {}

local Task = {}
Task.__index = Task

local function refuse(self, text, ...)
  return nil, self.server.connection:failure("provider", text:format(...))
end

--- Cancels the task if it may be at work still. The server need not obey.
function Task:__close()
  local connection = self.server.connection
  if self.id and not self.ended and connection.live then
    connection:tell("tasks/cancel", { taskId = self.id })
  end
end

--- Takes what the server says about the task. Returns its state, or nil and an error.
local function take(self, given)
  local id = message.text(given.taskId, MOST_ID)
  if not id or self.id and id ~= self.id then
    return refuse(self, "it speaks of a task without an id, or of another one")
  elseif not STATES[given.status] then
    return refuse(self, "a task in an unknown state: %s", message.said(given.status))
  end
  local wait = given.pollIntervalMs
  self.id, self.ended = id, STATES[given.status] == "ended"
  self.wait = type(wait) == "number" and math.max(SHORTEST, math.min(wait / 1000, LONGEST)) or USUAL
  return given.status
end

--- Makes a request about the task. Each may be made again, so with `on_lost = "retry"` a server
-- that was lost is asked again.
local function request(self, method, params)
  params.taskId = self.id
  while true do
    local left = self.ends - ah.now()
    local result, err = self.server.connection:request(method, params,
      { timeout = math.max(math.min(self.server.config.timeout, left), SHORTEST),
        meta = self.meta })
    if result then
      return result
    elseif err.reason ~= "lost" then
      if self.lost > 0 and err.rpc == message.CODES.params then
        err = self.server.connection:failure("provider", "its task was lost with it: "
          .. err.message, { retryable = true, reason = "lost" })
        self.ended = true
      end
      return nil, err
    end
    self.lost = self.lost + 1
    if self.server.config.on_lost ~= "retry" or self.lost > MOST_LOST or left <= 0 then
      return nil, err
    end
    ah.sleep(math.min(self.wait, math.max(left, 0)))
    params = { inputResponses = params.inputResponses, taskId = self.id }
  end
end

--- Answers what the task asks for and has not asked before. Returns true, or nil and an error.
local function answer(self, requests)
  local from = ah.now()
  local responses, why = self.asker:all(requests, self.answered)
  self.ends = self.ends + ah.now() - from -- a person's time does not count
  if responses == nil then
    return true
  elseif not responses then
    return nil, why
  end
  self.rounds = self.rounds + 1
  if self.rounds > MOST_ROUNDS then
    return refuse(self, "it asked for input %d times in one call", self.rounds)
  end
  for key in pairs(responses) do
    self.answered[key] = true
  end
  return request(self, "tasks/update", { inputResponses = responses })
end

local ENDS = {}

function ENDS.completed(self, given)
  local result = given.result
  if not message.is_object(result)
    or result.resultType ~= nil and result.resultType ~= "complete" then
    return refuse(self, "a task that is completed without a result")
  end
  return result
end

function ENDS.failed(self, given)
  local err = message.object(given.error)
  return refuse(self, "%s", message.said(message.text(err.message, 1 << 16)
    or given.statusMessage))
end

function ENDS.cancelled(self, given)
  return refuse(self, "it has cancelled the task%s", message.text(given.statusMessage, 1 << 16)
    and ": " .. message.said(given.statusMessage) or "")
end

local function tell(self, given)
  local text = message.text(given.statusMessage, 1 << 16)
  if text and text ~= self.told then
    self.told = text
    self.asker.ctx:progress(message.said(text))
  end
end

--- Waits until the next look. Returns true, or nil and an error if the time of the call is over.
local function pause(self)
  local left = self.ends - ah.now()
  if left > 0 then
    ah.sleep(math.min(self.wait, left))
  end
  if ah.now() >= self.ends then
    return nil, self.server.connection:failure("deadline_exceeded",
      ("its task has not ended within %g seconds"):format(self.server.config.longest))
  end
  return true
end

--- Looks at the task once. Returns its state and what the server says; or nil and an error.
local function look(self)
  local given, err = request(self, "tasks/get", {})
  if not given then
    return nil, err
  end
  local state, why = take(self, given)
  return state, state and given or why
end

--- Looks at the task until it has ended.
local function follow(self)
  local ok, err = pause(self)
  while ok do
    local state, given = look(self)
    if not state then
      return nil, given
    elseif self.ended then
      return ENDS[state](self, given)
    end
    tell(self, given)
    if state == "input_required" then
      ok, err = answer(self, given.inputRequests)
    end
    if ok then
      ok, err = pause(self)
    end
  end
  return nil, err
end

--- Follows a task to its end. given: the result that has begun it; more: asker (questions.lua),
-- ends (the time at which the call has to end) and meta (of each request). Returns the result of
-- the call; or nil and an error.
function tasks.follow(server, given, more)
  local self <close> = setmetatable({ server = server, asker = more.asker, ends = more.ends,
    meta = more.meta, answered = {}, rounds = 0, lost = 0, ended = false }, Task)
  local state, err = take(self, given)
  if not state then
    return nil, err
  elseif self.ended then -- its result is to be asked for
    self.wait, self.ended = SHORTEST, false
  end
  tell(self, given)
  return follow(self)
end

return tasks
