--- ah.adapter: a provider written in Lua.
--
--   local model = ah.adapter {
--     name = "acme/large",                 provider/model, in events, errors and transcripts
--     tool_change_mode = "append",         default: "restart"
--     images = true,                       the adapter sends images; default: they are refused
--     answer = function(request, out, state) ... end,
--     open = function(request) ... end,    returns the state to keep for a conversation
--     close = function(state, why) ... end,    why: "over", "stopped", "failed", "idle", "room"
--     idle = 300, keep = 8,                limits: seconds without a request; conversations
--     reads = "anthropic",                 the answer is lines of that wire, only by out:line
--   }
--
-- `answer` is called for each answer of the model; it may wait (ah.http, ah.sleep). A request is {
-- model, options, tools, system, entries }, as for scripted models. The adapter writes the answer
-- to `out`, piece by piece; if `answer` returns a string, it is written, too:
--   out:text "..."                         the next piece of text
--   local n = out:call { name, id, arguments }   a call; arguments: a table, or JSON text
--   out:arguments(n, "...")                more text of that call's arguments
--   local list, request = out:results()    ends the message; returns when the run made its calls
--   local result = out:invoke { name, id, arguments }   out:call and out:results at once
--   out:warn "..."                         emits a `warning` event of the run
--   out:cancelled()                        true if the run no longer waits for the answer
--   out:line(event)                        with `reads`: JSON text, or a table
--   out:opaque(value)                      is in later requests to this adapter, unchanged
--   out:usage { input, output, cached_read, cached_write, reasoning, cost }
--   out:refusal "..."                      the model refuses
--   out:stop "length"                      the reason why it ended; default: "tool_calls" or "end"
--   out:fail { message, status, retryable, retry_after }   instead of an answer; with
--            { code = "context_full", window, used }       if the request exceeds the window
local ah = ...

local GOODBYE = 5 -- seconds: limit of `close`

local function tokens(name)
  return { name = name, kinds = "integer", least = 0, most = 1e15, unit = "tokens" }
end

local read = {}
read.spec = ah._reader {
  what = "ah.adapter", type = "ah.AdapterSpec", rows = {
    { name = "name", kinds = "string", needed = true,
      doc = "`provider/model`, as events, errors and transcripts have it" },
    { name = "answer", kinds = "function", needed = true,
      type = "fun(request: table, out: ah.Out, state: any): string?",
      doc = "`answer(request, out, state)`: called for each answer of the model; it may wait, in "
        .. "`ah.http`, `ah.process` and `ah.sleep`" },
    { name = "open", kinds = "function", type = "fun(request: table): any",
      doc = "returns the state "
        .. "[kept for a conversation](adapters.md#what-is-kept-for-a-conversation), such as a "
        .. "process" },
    { name = "close", kinds = "function",
      type = "fun(state: any, why: \"over\"|\"stopped\"|\"failed\"|\"idle\"|\"room\")",
      doc = "`close(state, why)`: ends the state" },
    { name = "idle", kinds = "number", least = 0.001, most = 1e9, unit = "seconds",
      doc = "time without a request after which the state is closed" },
    { name = "keep", kinds = "integer", least = 1,
      doc = "the most conversations whose state is kept" },
    { name = "reads", kinds = "string", words = "anthropic openai responses gemini ollama",
      doc = "the wire whose [lines](adapters.md#lines-of-a-wire) `answer` passes on" },
    { name = "images", kinds = "boolean", default = false,
      doc = "the adapter sends [images](images.md), which are in entries as base64; without it a "
        .. "user's image ends the run before `answer` is called" },
    { name = "tool_change_mode", kinds = "string", default = "restart", is = "string",
      words = "append inline reference additional_tools search_pair list_changed dispatcher "
        .. "restart",
      type = "ah.ToolChangeMode",
      doc = "how tools added in mid-conversation reach the model, as for "
        .. "[scripted models](scripted.md#turns)" },
  },
}
read.call = ah._reader {
  what = "out:call", type = "ah.OutCall", rows = {
    { name = "name", kinds = "string", needed = true, doc = "the tool's name" },
    { name = "id", kinds = "string", otherwise = "generated",
      doc = "the call's id, which its result repeats" },
    { name = "arguments", kinds = "string table", default = "", is = "table or JSON text",
      doc = "the arguments; `out:arguments` may add to them" },
  },
}
read.usage = ah._reader {
  what = "out:usage", type = "ah.OutUsage", rows = {
    tokens "input", tokens "output", tokens "cached_read", tokens "cached_write",
    tokens "reasoning",
    { name = "cost", kinds = "number", unit = "US dollars" },
  },
}
read.failure = ah._reader {
  what = "out:fail", type = "ah.Failure", doc = "of a model, in place of an answer", rows = {
    { name = "message", kinds = "string", doc = "in the error's words" },
    { name = "code", kinds = "string", otherwise = "`provider`",
      type = "\"context_full\"",
      doc = "`context_full`: it did not fit" },
    { name = "status", kinds = "integer", doc = "of HTTP" },
    { name = "retryable", kinds = "boolean", doc = "another try may go better" },
    { name = "retry_after", kinds = "number", unit = "seconds",
      doc = "until it may be tried again" },
    { name = "window", kinds = "integer", unit = "tokens",
      doc = "with `context_full`: those that the model takes" },
    { name = "used", kinds = "integer", unit = "tokens",
      doc = "with `context_full`: those of the conversation" },
  },
}

-- Checks the type of an argument that is not a table of fields.
local function check(value, wanted, what)
  if not (" " .. wanted .. " "):find(" " .. type(value) .. " ", 1, true) then
    ah._raise(("%s: expected %s, found %s"):format(what, wanted, type(value)))
  end
  return value
end

local Out = {}
Out.__index = Out
Out.__name = "agenthost.answer"

--- Writes a piece in agenthost's own format.
function Out:piece(piece, what)
  if self.reads then
    ah._raise(
      ("out:%s: the adapter reads %s: its answer comes by out:line"):format(what, self.reads)
    )
  end
  self.x:write(piece)
end

function Out:text(text)
  self:piece({ text = check(text, "string", "out:text") }, "text")
end

function Out:refusal(text)
  self:piece({ refusal = check(text, "string", "out:refusal") }, "refusal")
end

--- Returns the number of the call, for out:arguments.
function Out:call(call)
  call = read.call(call)
  local arguments = call.arguments
  if type(arguments) == "table" then
    arguments = ah.json.encode(next(arguments) == nil and ah.object {} or arguments)
  end
  self.calls = self.calls + 1
  self:piece({
    call = {
      index = self.calls - 1,
      id = call.id,
      arguments = arguments,
      name = call.name,
    },
  }, "call")
  return self.calls
end

function Out:arguments(call, text)
  if math.type(call) ~= "integer" or call < 1 or call > self.calls then
    ah._raise "out:arguments: there is no such call; give what out:call gave"
  end
  check(text, "string", "out:arguments")
  self:piece({ call = { index = call - 1, arguments = text } }, "arguments")
end

--- Returns the tool results behind the last message of the model, in the order of its calls.
local function results_in(request)
  local list, entries = {}, request.entries
  for i = #entries, 1, -1 do
    if entries[i].type == "assistant" then
      break
    elseif entries[i].type == "tool_result" then
      table.insert(list, 1, entries[i])
    end
  end
  return list
end

--- Ends the message and waits while the run makes its calls. Returns their results and the new
-- request. Later pieces belong to the next message.
function Out:results()
  if self.ended then
    ah._raise "out:results: the answer has ended: out:stop or out:fail was called"
  elseif not self.reads and self.calls == 0 then
    ah._raise "out:results: the message has no calls; make some with out:call"
  end
  if not self.reads then
    self.x:write { stop = "tool_calls" }
  end
  self.calls = 0
  self.x:pause()
  local request = self.x:request()
  return results_in(request), request
end

--- Writes one call and returns its result, and the new request.
function Out:invoke(call)
  self:call(read.call(call, "out:invoke"))
  local list, request = self:results()
  return list[#list], request
end

function Out:opaque(value)
  self:piece({ opaque = value }, "opaque")
end

function Out:usage(usage)
  self:piece({ usage = read.usage(usage) }, "usage")
end

function Out:stop(word)
  self.ended = true
  self:piece({ stop = check(word, "string", "out:stop") }, "stop")
end

function Out:fail(failure)
  self.ended, self.failed = true, true
  failure = read.failure(failure)
  if self.reads then
    self.x:fail(failure)
  else
    self.x:write { error = failure }
  end
end

--- Writes an event of the wire that the adapter reads.
function Out:line(event)
  if not self.reads then
    ah._raise "out:line: the adapter reads no wire; name one in `reads`"
  end
  check(event, "string or table", "out:line")
  self.x:line(type(event) == "table" and ah.json.encode(event) or event)
end

function Out:warn(text)
  self.x:warn(check(text, "string", "out:warn"))
end

function Out:cancelled()
  return self.x:cancelled()
end

-- -- states of conversations ----------------------------------------------------------------------

local States = {}
States.__index = States

--- Discards the state of a conversation. `close` runs in a task of its own, for at most 5 seconds.
function States:part(conversation, why)
  local state = self.of[conversation]
  if not state then
    return
  end
  self.of[conversation] = nil
  if state.timer and why ~= "idle" then
    state.timer:stop()
  end
  local close = self.spec.close
  if close then
    ah._later(function()
      close(state.value, why)
    end, GOODBYE)
  end
end

--- If there are too many states, discards the one that was not used for the longest time.
function States:make_room()
  local n, oldest = 0, nil
  for conversation, state in pairs(self.of) do
    n = n + 1
    if not state.busy and (not oldest or state.used < self.of[oldest].used) then
      oldest = conversation
    end
  end
  if self.spec.keep and n >= self.spec.keep and oldest then
    self:part(oldest, "room")
  end
end

--- Waits until the state was idle for too long, then discards it.
function States:watch(conversation, state)
  local idle = self.spec.idle
  while self.of[conversation] == state do
    local left = state.busy and idle or state.used + idle - ah._clock()
    if left <= 0 then
      return self:part(conversation, "idle")
    end
    ah.sleep(left)
  end
end

function States:open(conversation, request)
  local state = { value = self.spec.open(request), busy = true, used = ah._clock() }
  self:make_room()
  self.of[conversation] = state
  if self.spec.idle then
    state.timer = ah._later(function()
      self:watch(conversation, state)
    end)
  end
  return state
end

--- Returns the state of this conversation, for an answer; nil if the adapter keeps none.
function States:take(conversation, request)
  local state = self.of[conversation]
  if not self.spec.open then
    return nil
  end
  if state and state.busy then -- closing it failed for lack of memory
    self:part(conversation, "failed")
    state = nil
  end
  state = state or self:open(conversation, request)
  state.busy = true
  return state
end

function States:give_back(conversation, state, failed)
  state.busy, state.used = false, ah._clock()
  if failed then
    self:part(conversation, "failed")
  end
end

--- Called by the host: discards the state of a conversation, or all states if it is nil.
function States:told(why, conversation)
  if conversation then
    return self:part(conversation, why)
  end
  for each in pairs(self.of) do
    self:part(each, why)
  end
end

-- -- the adapter ----------------------------------------------------------------------------------

return function(spec)
  spec = read.spec(spec)
  if not spec.open and (spec.close or spec.idle or spec.keep) then
    ah._raise "ah.adapter: fields 'close', 'idle' and 'keep' need 'open', which gives what is kept"
  end
  local provider, model = spec.name:match("^([^/]+)/(.+)$")
  if not provider then
    ah._raise "ah.adapter: field 'name' must be of the form provider/model, such as acme/large"
  end

  local states = setmetatable({ spec = spec, of = {} }, States)

  local function exchange(x)
    local out = setmetatable({ x = x, calls = 0, ended = false, failed = false,
      reads = spec.reads }, Out)
    local conversation, request = x:conversation(), x:request()
    local state = states:take(conversation, request)
    local text = spec.answer(request, out, state and state.value)
    if text ~= nil then
      out:text(text)
    end
    if state then
      states:give_back(conversation, state, out.failed)
    end
    if not out.ended and not spec.reads then
      x:write { stop = out.calls > 0 and "tool_calls" or "end" }
    end
  end

  return ah._adapter(provider, model, exchange, {}, spec.tool_change_mode, false,
    spec.images, nil, nil, spec.open and function(why, conversation)
      states:told(why, conversation)
    end or nil, spec.reads, true, false, true)
end
