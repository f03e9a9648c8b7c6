--- Ollama's /api/chat from the server's side: lines of JSON, arguments as objects, and streams
-- unless the client says otherwise. The real server forgives much; what is refused here is
-- what it cannot read, and results that answer no call.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local openai = use "mock.openai"

local ollama = { api = "api/chat" }

local STOPS = { length = "length", context_full = "length" }
local ROLES = { "system", "user", "assistant", "tool" }
local at = check.brackets

-- -- checking ------------------------------------------------------------------------------

local function check_message(message, place, turn)
  check.one_of(check.required(message, "role", "string", place .. ".role"), ROLES,
    place .. ".role")
  check.optional(message, "content", "string", place .. ".content")
  for _, data in ipairs(check.optional(message, "images", "array", place .. ".images") or {}) do
    if type(data) ~= "string" or not data:find "^[%w+/]+=?=?$" then
      check.refuse "illegal base64 data at input byte 0"
    end
  end
  for i, call in ipairs(check.optional(message, "tool_calls", "array", place) or {}) do
    local here = at(place .. ".tool_calls", i - 1, "function")
    local fn = check.required(call, "function", "object", here)
    check.required(fn, "name", "string", here .. ".name")
    check.optional(fn, "arguments", "object", here .. ".arguments")
    turn.waiting = turn.waiting + 1
  end
  if message.role == "tool" then
    turn.waiting = turn.waiting - 1
    if turn.waiting < 0 then
      check.refuse("%s: a tool message answers no call before it", place)
    end
  elseif message.role == "user" and turn.waiting > 0 then
    check.refuse("%s: %d calls before it have no tool message", place, turn.waiting)
  end
end

-- "json", or the schema of the answer.
local function check_format(format)
  if format ~= nil and format ~= "" and format ~= "json" and not check.is_object(format) then
    check.refuse('invalid format: %s; expected "json" or a valid JSON Schema object',
      ah.json.encode(format))
  end
end

--- Raises a fault if the server could not read the request.
function ollama.check(body)
  local turn = { waiting = 0 }
  if check.given(body.model) == nil then
    check.refuse("model is required")
  end
  check.optional(body, "stream", "boolean", "stream")
  check_format(check.given(body.format))
  for i, message in ipairs(check.required(body, "messages", "array", "messages")) do
    check_message(message, at("messages", i - 1), turn)
  end
  for i, tool in ipairs(check.optional(body, "tools", "array", "tools") or {}) do
    local place = at("tools", i - 1, "function")
    local fn = check.required(tool, "function", "object", place)
    check.required(fn, "name", "string", place .. ".name")
    check.optional(fn, "parameters", "object", place .. ".parameters")
  end
end

-- -- the request of the scripted model ---------------------------------------------------------

-- Images have no media type in this wire format.
local function add_images(into, message)
  for _, data in ipairs(check.given(message.images) or {}) do
    into[#into + 1] = { type = "image", data = data }
  end
  return into[1] and into or nil
end

local TAKE = {}

function TAKE.user(message)
  local content = { { type = "text", text = check.given(message.content) or "" } }
  return { type = "user", content = add_images(content, message) }
end

function TAKE.assistant(message, ids)
  local entry = { type = "assistant", content = ah.array {} }
  if (check.given(message.content) or "") ~= "" then
    entry.content[1] = { type = "text", text = message.content }
  end
  for i, call in ipairs(check.given(message.tool_calls) or {}) do
    local fn = call["function"]
    ids.n = ids.n + 1
    entry.tool_calls = entry.tool_calls or {}
    entry.tool_calls[i] = { id = check.given(call.id) or "call_" .. ids.n, name = fn.name,
      arguments = ah.json.encode(check.given(fn.arguments) or ah.object {}) }
    table.insert(ids, entry.tool_calls[i])
  end
  return entry
end

-- Finds the call of a result: by its id, else the first one of that name, else the first one.
function TAKE.tool(message, ids)
  local found = 1
  for i = #ids, 1, -1 do
    if ids[i].id == message.tool_call_id then
      found = i
      break
    elseif ids[i].name == message.tool_name then
      found = i
    end
  end
  local call = table.remove(ids, found) or {}
  return { type = "tool_result", id = call.id, name = call.name, content = message.content or "",
    images = add_images({}, message) }
end

local NO_OPTION = { model = true, messages = true, tools = true, stream = true }

--- Returns the request in the form of scripted models, its segments, and true if it is streamed.
function ollama.read(body)
  local request = { model = body.model, tools = ah.array {}, entries = ah.array {},
    options = openai.options_of(body, NO_OPTION) }
  local segments, ids, system = {}, { n = 0 }, {}
  for i, tool in ipairs(check.given(body.tools) or {}) do
    request.tools[i] = openai.tool_of(tool["function"])
    segments[#segments + 1] = { kind = "tools", text = ah.json.encode(tool) }
  end
  for _, message in ipairs(body.messages) do
    local take = TAKE[message.role]
    if take then
      table.insert(request.entries, take(message, ids))
    elseif #request.entries == 0 then
      system[#system + 1] = check.given(message.content)
    else
      table.insert(request.entries, { type = "note", text = check.given(message.content) })
    end
    segments[#segments + 1] = { kind = take and "messages" or "system",
      text = ah.json.encode(message) }
  end
  request.system = table.concat(system, "\n\n")
  return { request = request, segments = segments, stream = check.given(body.stream) ~= false }
end

-- -- answering ----------------------------------------------------------------------------

local function line_of(a, message)
  return { model = a.model, created_at = os.date("!%Y-%m-%dT%H:%M:%S.000000Z"), done = false,
    message = message }
end

-- Returns the counts of the last line. A cached prompt is not counted, as by the real server.
local function finished(a, line)
  line.done, line.done_reason = true, STOPS[a.stop] or "stop"
  line.total_duration, line.load_duration = 2000000, 1000000
  line.prompt_eval_count = a.usage.input - a.usage.cached_read
  line.prompt_eval_duration, line.eval_duration = 500000, 500000
  line.eval_count = a.usage.output
  return line
end

local function calls_of(a)
  local calls = {}
  for i, call in ipairs(a.calls) do
    calls[i] = { id = call.id, ["function"] = { index = i - 1, name = call.name,
      arguments = plan.object_of(call.arguments) } }
  end
  return calls[1] and calls or nil
end

-- True if there is reasoning and the client asks for it.
local function thinks(a)
  return a.reasoning and check.given(a.body.think)
end

--- Returns the whole answer.
function ollama.whole(a)
  return finished(a, line_of(a, { role = "assistant",
    content = a.refusal or plan.joined(a.text), tool_calls = calls_of(a),
    thinking = thinks(a) and plan.joined(a.reasoning) or nil }))
end

--- Sends the answer as lines.
function ollama.stream(a, out)
  local function say(message)
    message.role, message.content = "assistant", message.content or ""
    out:line(line_of(a, message))
  end
  if thinks(a) then
    out:each(a.reasoning, a.delay, function(piece) say { thinking = piece } end)
  end
  out:each(a.refusal or a.text, a.delay, function(piece) say { content = piece } end)
  if a.calls[1] then
    say { tool_calls = calls_of(a) }
  end
  if a.fault then
    out:line(ollama.error(a.fault))
  else
    out:line(finished(a, line_of(a, { role = "assistant", content = "" })))
  end
end

--- Returns the content type of a stream.
function ollama.stream_type()
  return "application/x-ndjson"
end

--- Returns the body of a failure.
function ollama.error(fault)
  return { error = fault.message }
end

--- Returns Ollama's error for a full context, which has only the number of excess tokens.
function ollama.full(used, window)
  return { message = used and ("prompt too long; exceeded max context length by %d tokens")
    :format(used - window) or "the input length exceeds the context length" }
end

--- GET /api/tags
function ollama.models(names)
  local models = {}
  for i, name in ipairs(names) do
    models[i] = { name = name, model = name, modified_at = "2026-01-01T00:00:00Z", size = 0,
      digest = "mock", details = { parent_model = "", format = "gguf", family = "mock",
        families = { "mock" }, parameter_size = "0B", quantization_level = "F16" } }
  end
  return { models = models }
end

--- Returns the id of a call for which the script has none.
function ollama.call_id(n, i)
  return ("call_mock%d_%d"):format(n, i)
end

return ollama
