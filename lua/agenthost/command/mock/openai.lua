--- OpenAI Chat Completions from the server's side: checks a request as that service does,
-- passes it to a scripted model in that model's form, and sends its turn as a body or as chunks.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local custom = use "mock.custom"

local openai = { api = "chat/completions" }

local ROLES = { "system", "developer", "user", "assistant", "tool" }
local NAME = "^[a-zA-Z0-9_-]+$"
local at = check.brackets

local STOPS = { ["end"] = "stop", tool_calls = "tool_calls", length = "length",
  stop_sequence = "stop", content_filter = "content_filter", refusal = "stop",
  context_full = "length" }

-- -- reading -----------------------------------------------------------------------------

--- Returns the text of a content: a string, or the text parts of a list.
function openai.text_of(content)
  if type(content) ~= "table" then
    return type(content) == "string" and content or ""
  end
  local texts = {}
  for _, part in ipairs(content) do
    texts[#texts + 1] = check.is_object(part) and check.given(part.text) or nil
  end
  return table.concat(texts)
end

--- Returns an image in the form of entries, from its address: "data:MIME;base64,..." or another.
function openai.image_of(url)
  local mime, data = url:match "^data:([^;,]+);base64,(.+)$"
  return mime and { type = "image", mime = mime, data = data } or { type = "image", url = url }
end

--- Refuses a value that is not the address of an image, and data that are not an image.
function openai.check_image(url, place)
  local mime = url:match "^data:(image/%a+);base64,[%w+/]+=?=?$"
  if not mime and (url:find "^data:" or not url:find "^https?://") then
    check.refuse {
      message = ("Invalid '%s'. Expected a valid URL, but got a value with an invalid format.")
        :format(place),
      param = place,
      code = "invalid_image_url",
    }
  end
end

--- Appends the images of a list of parts to `into`; `url_of` returns the address of one.
function openai.add_images(into, content, url_of)
  for _, part in ipairs(check.is_array(content) and content or {}) do
    local url = url_of(part)
    into[#into + 1] = url and openai.image_of(url)
  end
  return into[1] and into or nil
end

local function url_of(part)
  return part.type == "image_url" and part.image_url.url or nil
end

local function check_parts(parts, place)
  if #parts == 0 then
    check.refuse { message = ("Invalid '%s': empty array."):format(place), param = place }
  end
  check.objects(parts, function(i) return at(place, i - 1) end)
  for i, part in ipairs(parts) do
    local here = at(place, i - 1)
    check.one_of(part.type, { "text", "image_url", "input_audio", "file", "refusal" },
      here .. ".type")
    if part.type == "text" then
      check.required(part, "text", "string", here .. ".text")
    elseif part.type == "image_url" then
      local image = check.required(part, "image_url", "object", here .. ".image_url")
      openai.check_image(check.required(image, "url", "string", here .. ".image_url.url"),
        here .. ".image_url.url")
    end
  end
end

-- Checks a message's content, which may be null or absent only if `free`.
local function check_content(message, place, free)
  local content = check.given(message.content)
  if check.is_array(content) then
    check_parts(content, place)
  elseif type(content) ~= "string" and (content ~= nil or not free) then
    check.refuse {
      message = ("Invalid value for '%s': expected a string, got %s."):format(place,
        check.kind_of(message.content)),
      param = place,
    }
  end
end

local function check_call(call, place)
  check.required(call, "id", "string", place .. ".id")
  check.one_of(call.type, { "function", "custom" }, place .. ".type")
  local said = check.required(call, call.type, "object", at(place, call.type))
  check.required(said, "name", "string", at(place, call.type, "name"))
  local member = call.type == "custom" and "input" or "arguments"
  check.required(said, member, "string", at(place, call.type, member))
end

local function check_answered(pairing, place)
  local missing = pairing.missing()
  if missing[1] then
    check.refuse {
      message = ("An assistant message with 'tool_calls' must be followed by tool messages "
        .. "responding to each 'tool_call_id'. The following tool_call_ids did not have "
        .. "response messages: %s"):format(table.concat(missing, ", ")),
      param = place,
    }
  end
end

local CHECK = {}

function CHECK.assistant(message, place, pairing)
  local calls = check.list(message, "tool_calls", place .. ".tool_calls")
  check_content(message, place .. ".content",
    calls or check.given(message.refusal) or check.given(message.audio))
  for i, call in ipairs(calls or {}) do
    check_call(call, at(place .. ".tool_calls", i - 1))
    pairing.call(call.id)
  end
end

function CHECK.tool(message, place, pairing)
  local id = check.required(message, "tool_call_id", "string", place .. ".tool_call_id")
  check_content(message, place .. ".content")
  if not pairing.result(id) then
    check.refuse {
      message = "Invalid parameter: messages with role 'tool' must be a response to a "
        .. "preceeding message with 'tool_calls' (" .. id .. ").",
      param = place .. ".role",
    }
  end
end

local function check_messages(messages)
  local pairing = check.pairing()
  for i, message in ipairs(messages) do
    local place = at("messages", i - 1)
    check.one_of(check.required(message, "role", "string", place .. ".role"), ROLES,
      place .. ".role")
    if message.role ~= "tool" then
      check_answered(pairing, place)
    end
    if CHECK[message.role] then
      CHECK[message.role](message, place, pairing)
    else
      check_content(message, place .. ".content")
    end
  end
  check_answered(pairing, "messages")
end

--- Checks a function of `tools`; `max` is the length of the longest name.
function openai.check_function(fn, place, max)
  check.matches(check.required(fn, "name", "string", place .. ".name"), NAME, max,
    ("^[a-zA-Z0-9_-]{1,%d}$"):format(max), place .. ".name")
  check.optional(fn, "description", "string", place .. ".description")
  local strict = check.optional(fn, "strict", "boolean", place .. ".strict")
  local parameters = check.optional(fn, "parameters", "object", place .. ".parameters")
  if parameters then
    check.parameters(parameters, place .. ".parameters", strict)
  end
  return fn.name
end

local function grammar_of(format, place)
  return check.required(format, "grammar", "object", place .. ".grammar"), place .. ".grammar"
end

local function check_tool(tool, place)
  check.one_of(check.required(tool, "type", "string", place .. ".type"), { "function", "custom" },
    place .. ".type")
  local said, here = check.required(tool, tool.type, "object", at(place, tool.type)),
    at(place, tool.type)
  if tool.type == "custom" then
    return custom.check(said, here, grammar_of)
  end
  return openai.check_function(said, here, 64)
end

local function check_tools(body)
  local tools, names = check.list(body, "tools", "tools"), {}
  for i, tool in ipairs(tools or {}) do
    names[i] = check_tool(tool, at("tools", i - 1))
  end
  if #names > 128 then
    check.refuse {
      message = ("Invalid 'tools': array too long. Expected an array with maximum length 128, "
        .. "but got an array with length %d instead."):format(#names),
      param = "tools",
      code = "array_above_max_length",
    }
  end
  check.unique(names, "Tool names must be unique: '%s' comes twice.")
  openai.check_choice(body, tools)
  openai.check_named(body, names, true)
end

-- Returns the name in a member of tool_choice, or nil for a tool of another kind.
local function chosen_name(tool, place, chat)
  local kind = check.required(tool, "type", "string", place .. ".type")
  if kind ~= "function" and kind ~= "custom" then
    return nil
  end
  local inner = chat and at(place, kind) or place
  local said = chat and check.required(tool, kind, "object", inner) or tool
  return check.required(said, "name", "string", inner .. ".name")
end

-- Returns the tools that a tool_choice names, and their place; Chat Completions (`chat`) has one
-- more layer around a list of allowed tools and each name.
local function chosen_tools(choice, chat)
  local place = "tool_choice"
  if choice.type ~= "allowed_tools" then
    return { choice }, function() return place end
  elseif chat then
    place = "tool_choice.allowed_tools"
    choice = check.required(choice, "allowed_tools", "object", place)
  end
  check.one_of(choice.mode, { "auto", "required" }, place .. ".mode")
  check.required(choice, "tools", "array", place .. ".tools")
  return check.list(choice, "tools", place .. ".tools"), function(i)
    return at(place .. ".tools", i - 1)
  end
end

--- Checks a tool_choice that names tools. `names`: those of the declared tools.
function openai.check_named(body, names, chat)
  local choice, declared = check.given(body.tool_choice), {}
  if not check.is_object(choice) then
    return
  end
  for _, name in ipairs(names) do
    declared[name] = true
  end
  local tools, place_of = chosen_tools(choice, chat)
  for i, tool in ipairs(tools) do
    local name = chosen_name(tool, place_of(i), chat)
    if name and not declared[name] then
      check.refuse {
        message = ("Tool choice '%s' not found in 'tools' parameter."):format(name),
        param = "tool_choice",
      }
    end
  end
end

--- Checks the fields that are only allowed in a request with tools.
function openai.check_choice(body, tools)
  for _, key in ipairs { "tool_choice", "parallel_tool_calls" } do
    if check.given(body[key]) ~= nil and not tools then
      check.refuse {
        message = ("Invalid value for '%s': '%s' is only allowed when 'tools' are specified.")
          :format(key, key),
        param = key,
      }
    end
  end
end

--- Raises a fault if the service would refuse the request.
function openai.check(body)
  check.required(body, "model", "string", "model")
  check.optional(body, "stream", "boolean", "stream")
  check.optional(body, "temperature", "number", "temperature")
  local messages = check.required(body, "messages", "array", "messages")
  check.list(body, "messages", "messages")
  if check.given(body.stream_options) and not body.stream then
    check.refuse {
      message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param = "stream_options",
    }
  end
  if check.given(body.max_tokens) and check.given(body.max_completion_tokens) then
    check.refuse("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not "
      .. "supported.")
  end
  check_tools(body)
  check_messages(messages)
end

-- -- the request of the scripted model ---------------------------------------------------------

local TAKE = {}

function TAKE.assistant(message, names)
  local entry = { type = "assistant", content = ah.array {} }
  local text = openai.text_of(check.given(message.content))
  if text ~= "" then
    entry.content[1] = { type = "text", text = text }
  end
  for i, call in ipairs(check.given(message.tool_calls) or {}) do
    local said = call.custom or call["function"]
    entry.tool_calls = entry.tool_calls or {}
    entry.tool_calls[i] = { id = call.id, name = said.name,
      arguments = call.custom and custom.arguments_of(said.input) or said.arguments }
    names[call.id] = said.name
  end
  return entry
end

function TAKE.tool(message, names)
  return { type = "tool_result", id = message.tool_call_id, name = names[message.tool_call_id],
    content = openai.text_of(message.content) }
end

function TAKE.user(message)
  return { type = "user", content = openai.add_images(
    { { type = "text", text = openai.text_of(message.content) } }, message.content, url_of) }
end

local function entries_of(messages, request)
  local names, system = {}, {}
  for _, message in ipairs(messages) do
    local take = TAKE[message.role]
    if take then
      table.insert(request.entries, take(message, names))
    elseif #request.entries == 0 then
      system[#system + 1] = openai.text_of(message.content)
    else
      table.insert(request.entries, { type = "note", text = openai.text_of(message.content) })
    end
  end
  request.system = table.concat(system, "\n\n")
end

--- Returns a tool in the form of scripted models.
function openai.tool_of(fn)
  return { name = fn.name, description = check.given(fn.description) or "",
    parameters = check.given(fn.parameters) or ah.object {} }
end

--- Returns the members of the body that are not in `left`, as the model's options.
function openai.options_of(body, left)
  local options = ah.object {}
  for key, value in pairs(body) do
    options[key] = not left[key] and value or nil
  end
  return options
end

local NO_OPTION = { model = true, messages = true, tools = true, stream = true,
  stream_options = true }

--- Returns the request in the form of scripted models, its segments, and true if it is streamed.
function openai.read(body)
  local request = { model = body.model, tools = ah.array {}, entries = ah.array {},
    options = openai.options_of(body, NO_OPTION) }
  local segments = {}
  for i, tool in ipairs(check.given(body.tools) or {}) do
    request.tools[i] = tool.custom and custom.tool_of(tool.custom)
      or openai.tool_of(tool["function"])
    segments[#segments + 1] = { kind = "tools", text = ah.json.encode(tool) }
  end
  entries_of(body.messages, request)
  for _, message in ipairs(body.messages) do
    local first = message.role == "system" or message.role == "developer"
    segments[#segments + 1] = { kind = first and "system" or "messages",
      text = ah.json.encode(message) }
  end
  return { request = request, segments = segments, stream = body.stream == true }
end

-- -- answering ----------------------------------------------------------------------------

local function usage_of(u)
  return {
    prompt_tokens = u.input,
    completion_tokens = u.output,
    total_tokens = u.input + u.output,
    prompt_tokens_details = { cached_tokens = u.cached_read, audio_tokens = 0 },
    completion_tokens_details = { reasoning_tokens = u.reasoning, audio_tokens = 0,
      accepted_prediction_tokens = 0, rejected_prediction_tokens = 0 },
  }
end

local function base_of(a, object)
  return { id = "chatcmpl-mock" .. a.n, object = object, created = os.time(), model = a.model,
    service_tier = "default", system_fingerprint = "fp_mock" }
end

-- Returns the kinds of the tools that the request declares, by name.
local function kinds_of(body)
  local kinds = {}
  for _, tool in ipairs(check.given(body.tools) or {}) do
    kinds[(tool[tool.type] or {}).name or ""] = tool.type
  end
  return kinds
end

-- Returns the kind of a call, the name of the member with its content, and the content.
local function said_by(call, kinds)
  if kinds[call.name] == "custom" then
    return "custom", "input", custom.input_of(call.arguments)
  end
  return "function", "arguments", call.arguments
end

local function tool_calls_of(a)
  local calls, kinds = {}, kinds_of(a.body)
  for i, call in ipairs(a.calls) do
    local kind, member, said = said_by(call, kinds)
    calls[i] = { id = call.id, type = kind, [kind] = { name = call.name, [member] = said } }
  end
  return calls[1] and calls or nil
end

--- Returns the whole answer.
function openai.whole(a)
  local doc, text = base_of(a, "chat.completion"), plan.joined(a.text)
  local message = { role = "assistant", content = text ~= "" and text or ah.null,
    refusal = a.refusal or ah.null, annotations = ah.array {}, tool_calls = tool_calls_of(a),
    reasoning_content = a.reasoning and plan.joined(a.reasoning) }
  if text == "" and not a.refusal and #a.calls == 0 and a.stop ~= "content_filter" then
    message.content = ""
  end
  doc.choices = { { index = 0, message = message, logprobs = ah.null,
    finish_reason = STOPS[a.stop] } }
  doc.usage = usage_of(a.usage)
  return doc
end

local function stream_calls(a, delta, out)
  local kinds = kinds_of(a.body)
  for i, call in ipairs(a.calls) do
    local kind, member, said = said_by(call, kinds)
    delta { tool_calls = { { index = i - 1, id = call.id, type = kind,
      [kind] = { name = call.name, [member] = "" } } } }
    out:each(said, nil, function(piece)
      delta { tool_calls = { { index = i - 1, [kind] = { [member] = piece } } } }
    end)
  end
end

local function chunk_of(a, choices, usage, body)
  local doc = base_of(a, "chat.completion.chunk")
  local options = check.given(body.stream_options) or {}
  doc.choices = choices
  doc.usage = options.include_usage and (usage or ah.null) or nil
  return doc
end

--- Sends the answer as chunks.
function openai.stream(a, out)
  local wants = check.given(a.body.stream_options) or {}
  local function delta(d, finish)
    out:event(nil, chunk_of(a, { { index = 0, delta = d, logprobs = ah.null,
      finish_reason = finish or ah.null } }, nil, a.body))
  end
  local silent = #a.calls > 0 or a.refusal
  delta { role = "assistant", content = silent and ah.null or "", refusal = ah.null }
  out:each(a.reasoning, a.delay, function(piece) delta { reasoning_content = piece } end)
  out:each(a.text, a.delay, function(piece) delta { content = piece } end)
  out:each(a.refusal, a.delay, function(piece) delta { refusal = piece } end)
  stream_calls(a, delta, out)
  if a.fault then
    out:event(nil, openai.error(a.fault))
    return
  end
  delta(ah.object {}, STOPS[a.stop])
  if wants.include_usage then
    out:event(nil, chunk_of(a, ah.array {}, usage_of(a.usage), a.body))
  end
  out:event(nil, "[DONE]")
end

-- -- failing -------------------------------------------------------------------------------

local CODES = { [401] = "invalid_api_key", [404] = "model_not_found",
  [429] = "rate_limit_exceeded" }
local TYPES = { [401] = "invalid_request_error", [429] = "tokens" }

--- Returns the body of a failure.
function openai.error(fault)
  local kind = fault.status >= 500 and "server_error" or TYPES[fault.status]
  return { error = { message = fault.message, type = fault.type or kind or "invalid_request_error",
    param = fault.param or ah.null, code = fault.code or CODES[fault.status] or ah.null } }
end

--- Returns the error of a full context, where `param` is too long; message nil: without numbers.
function openai.full_of(param, message)
  return { code = "context_length_exceeded", param = param, message = message
    or "Your input exceeds the context window of this model. Please adjust your input and try "
      .. "again." }
end

--- Returns the service's error for a full context.
function openai.full(used, window)
  return openai.full_of("messages", used and ("This model's maximum context length is %d tokens. "
    .. "However, your messages resulted in %d tokens. Please reduce the length of the messages.")
    :format(window, used))
end

--- Answers GET /v1/models/NAME.
function openai.model(name)
  return { id = name, object = "model", created = 1700000000, owned_by = "mock" }
end

--- Answers GET /v1/models.
function openai.models(names)
  local data = {}
  for i, name in ipairs(names) do
    data[i] = openai.model(name)
  end
  return { object = "list", data = data }
end

--- Returns the id of a call for which the script has none.
function openai.call_id(n, i)
  return ("call_mock%d_%d"):format(n, i)
end

return openai
