--- Calls of tools for clients of the Model Context Protocol: a conversation of the served agent,
-- and one call in it at a time. Each call is a run whose model is an adapter that asks for this
-- call and then ends its answer. The outcome comes from the run's events and, for images, from a
-- strategy.
local ah = ...

local M = {}

M.JOB = "script" -- the tool that calls a job

local MODE = "list_changed"
local NEWS = 64 -- news of a call that may wait to be taken
local EVENTS = { "tool_progress", "tool_invoked", "tools_injected", "tools_removed" }

local at_work = {} -- calls, by their ids
local last = 0 -- number of the last call

-- Returns an adapter that makes the call of `of.call` once, and then ends its answer.
local function adapter(of)
  return ah._adapter("mcp", "client", function(x)
    local call = of.call
    if call and not call.sent then
      call.sent = true
      x:write { call = { index = 0, id = call.id, name = call.job and M.JOB or call.name,
        arguments = call.job and "{}" or ah.json.encode(call.arguments) } }
      x:write { stop = "tool_calls" }
    else
      x:write { text = "done" }
      x:write { stop = "end" }
    end
  end, {}, MODE, false, true, nil, nil, nil, nil, false, true)
end

--- Returns the model of a definition. Each conversation has one of its own.
function M.model()
  return adapter {}
end

local function is_image(value)
  return type(value) == "table" and value.type == "image"
end

-- Returns the images of a value that a handler returned.
local function images_of(value)
  if is_image(value) then
    return { value }
  end
  local images = {}
  for i = 1, type(value) == "table" and #value or 0 do
    if is_image(value[i]) then
      images[#images + 1] = value[i]
    end
  end
  return images
end

--- The handler that calls the job of a call, a function of the script for a prompt or a resource.
function M.handler(_, ctx)
  local call = at_work[ctx.call_id]
  call.made = table.pack(call.job(ctx))
  return "done"
end

--- The strategy that takes the images of results, behind all policies.
function M.looker(m)
  local call = at_work[m.id]
  if call and m.success then
    call.images = images_of(m.value)
  end
end

-- -- one call -------------------------------------------------------------------------------------

local Call = {}
Call.__index = Call

-- Returns the key of a question: its name, if that is free, or a number; and the answer to a
-- question with a name that the client has sent before it was asked.
local function key_of(self, name)
  self.asked = self.asked + 1
  if not name or self.open[name] then
    return "ask_" .. self.asked
  end
  local given = self.given[name]
  self.given[name] = nil
  return name, given
end

--- Asks the client, by the form of an ask. Waits, and returns its answer, from outside. `ask` of
-- the call does it where the client takes requests; else the question waits in `open`.
function Call:question(form)
  if self.ask then
    return self.ask(form)
  end
  local key, given = key_of(self, form.name)
  if type(given) == "table" then
    return given
  end
  local one <close> = setmetatable({ form = form, answer = ah.channel(1) }, { __close = function()
    self.open[key] = nil
  end })
  self.open[key] = one
  self.news:send "asked"
  return one.answer:receive()
end

--- Returns the questions that wait for an answer, by their keys; nil if there are none.
function Call:questions()
  local waiting
  for key, one in pairs(self.open) do
    if not one.given then
      waiting = waiting or {}
      waiting[key] = one
    end
  end
  return waiting
end

--- Gives the answers of the client, from outside, to the questions that wait for them.
function Call:give(answers)
  for key, one in pairs(self:questions() or {}) do
    if type(answers[key]) == "table" then
      one.given = true
      one.answer:send(answers[key])
    end
  end
end

-- -- conversations --------------------------------------------------------------------------------

local Conversation = {}
Conversation.__index = Conversation

--- Opens a conversation of a definition. front(call, ask), if it is given, responds to asks; it may
-- wait.
function M.open(definition, front)
  local agent, err = definition:open {}
  if not agent then
    return nil, err
  end
  local self = setmetatable({ agent = agent, turn = ah.semaphore(1) }, Conversation)
  agent:use(adapter(self))
  if front then
    agent:on_ask(function(ask)
      return front(self.call, ask)
    end)
  end
  return self
end

--- Returns the tools that it has now. Runs `setup` if no run has done so.
function Conversation:tools()
  if not self.begun then
    local _ <close> = self.turn:acquire()
    local reply, err = self.agent:run "tools/list"
    if not reply then
      return nil, err
    end
    self.begun = true
  end
  return self.agent:tools()
end

-- Called with each event of a run.
local function take_event(call, event)
  if event.type == "tools_injected" or event.type == "tools_removed" then
    call.changed = true
  elseif event.id ~= call.id then
    return
  elseif event.type == "tool_progress" then
    call.on_progress(event)
  elseif event.type == "tool_invoked" then
    call.outcome = { success = event.success, content = event.content, value = event.value }
  end
end

-- Waits for the results of calls in the background. Returns as agent:run does.
local function wait_for_background(self, ...)
  if not (...) or #self.agent:background() == 0 then
    return ...
  end
  return wait_for_background(self, self.agent:wait())
end

-- Makes the call in a run of its own.
local function perform(self, call)
  local events <close> = self.agent:events { types = EVENTS }
  local reader = ah.spawn(function()
    for event in events do
      take_event(call, event)
    end
  end)
  self.call, at_work[call.id] = call, call
  local reply, err = wait_for_background(self, self.agent:run("tools/call " .. call.name))
  self.call, at_work[call.id], self.begun = nil, nil, true
  events:close()
  reader:await()
  if not call.outcome then
    call.error = err or reply
  end
end

--- Returns a call: { name, arguments, job, on_progress, ask, given }. job(ctx), if there is one, is
-- called in place of a tool; `given` are answers that the client has sent before it was asked.
-- `news` of it has "asked" for each question in `open`, and is closed at its end. It then has
-- `outcome`, { success, content, value }, and perhaps `images`, `made` (what the job has returned)
-- and `changed` (the tools are no longer the same); or `error`.
function M.call(fields)
  last = last + 1
  fields.id, fields.asked, fields.open, fields.news = "mcp_" .. last, 0, {}, ah.channel(NEWS)
  fields.given = fields.given or {}
  return setmetatable(fields, Call)
end

--- Makes a call. Waits for its turn and for its end.
function Conversation:make(call)
  local _ <close> = setmetatable({}, { __close = function()
    call.done = true
    call.news:close()
  end })
  local _ <close> = self.turn:acquire()
  if not call.cancelled then
    perform(self, call)
  end
end

--- Ends the call if it has begun or waits for its turn.
function Conversation:cancel(call)
  call.cancelled = true
  if self.call == call then
    self.agent:cancel()
    for _, one in ipairs(self.agent:background()) do
      self.agent:cancel_background(one.ticket)
    end
  end
end

--- Ends the call at work, and releases the conversation. Waits.
function Conversation:close()
  if self.call then
    self:cancel(self.call)
  end
  local _ <close> = self.turn:acquire()
  self.agent:close()
end

return M
