--- OpenAI Chat Completions from the server's side: checks a request as that service does,
-- gives it to a scripted model in that model's form, and says its turn as a body or as chunks.
local ah = ...
local check = ah._module "agenthost.mock.check"
local plan = ah._module "agenthost.mock.plan"

local openai = { api = "chat/completions" }

local ROLES = { "system", "developer", "user", "assistant", "tool" }
local NAME = "^[a-zA-Z0-9_-]+$"
local at = check.brackets

local STOPS = { ["end"] = "stop", tool_calls = "tool_calls", length = "length",
  stop_sequence = "stop", content_filter = "content_filter", refusal = "stop" }

-- -- reading -----------------------------------------------------------------------------

--- The text of a content: a string, or the text parts of a list.
function openai.text_of(content)
  if type(content) ~= "table" then
    return content or ""
  end
  local texts = {}
  for _, part in ipairs(content) do
    texts[#texts + 1] = check.given(part.text)
  end
  return table.concat(texts)
end

--- An image as entries have it, from its address: "data:MIME;base64,..." or another one.
function openai.image_of(url)
  local mime, data = url:match "^data:([^;,]+);base64,(.+)$"
  return mime and { type = "image", mime = mime, data = data } or { type = "image", url = url }
end

--- Refuses what is no address of an image, or data that are no image.
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

--- The images of a list of parts, after what is in `into`; `url_of` finds the address of one.
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
  for i, part in ipairs(parts) do
    local here = ("%s[%d]"):format(place, i - 1)
    if not check.is_object(part) then
      check.refuse("Invalid type for '%s': expected an object, but got %s instead.", here,
        check.kind_of(part))
    end
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

-- May be null or absent only where `free`.
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
  if call.type ~= "function" then
    check.one_of(call.type, { "function" }, place .. ".type")
  end
  local fn = check.required(call, "function", "object", place .. ".function")
  check.required(fn, "name", "string", place .. ".function.name")
  check.required(fn, "arguments", "string", place .. ".function.arguments")
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
  check_content(message, place .. ".content", calls or check.given(message.refusal))
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
    if not check.is_object(message) then
      check.refuse("Invalid type for '%s': expected an object, but got %s instead.", place,
        check.kind_of(message))
    end
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

--- Checks a function as it stands in `tools`; `max` is the longest name.
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

local function check_tools(body)
  local tools, names = check.list(body, "tools", "tools"), {}
  for i, tool in ipairs(tools or {}) do
    local place = at("tools", i - 1)
    check.one_of(tool.type, { "function" }, place .. ".type")
    names[i] = openai.check_function(check.required(tool, "function", "object",
      place .. ".function"), place .. ".function", 64)
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
  openai.check_allowed(body, names, true)
end

-- The function that a member of allowed_tools names, or nil where it is a tool of another kind.
local function allowed_name(tool, place, chat)
  if not check.is_object(tool) then
    check.refuse("Invalid type for '%s': expected an object.", place)
  end
  if check.required(tool, "type", "string", place .. ".type") ~= "function" then
    return nil
  end
  local inner = chat and place .. ".function" or place
  local fn = chat and check.required(tool, "function", "object", inner) or tool
  return check.required(fn, "name", "string", inner .. ".name")
end

--- Checks a tool_choice of the type allowed_tools; Chat Completions (`chat`) has one more layer
-- around the list and each name. `names`: of the functions that are declared.
function openai.check_allowed(body, names, chat)
  local list, place, declared = check.given(body.tool_choice), "tool_choice", {}
  if not check.is_object(list) or list.type ~= "allowed_tools" then
    return
  elseif chat then
    place = "tool_choice.allowed_tools"
    list = check.required(list, "allowed_tools", "object", place)
  end
  check.one_of(list.mode, { "auto", "required" }, place .. ".mode")
  check.required(list, "tools", "array", place .. ".tools")
  for _, name in ipairs(names) do
    declared[name] = true
  end
  for i, tool in ipairs(check.list(list, "tools", place .. ".tools")) do
    local name = allowed_name(tool, at(place .. ".tools", i - 1), chat)
    if name and not declared[name] then
      check.refuse {
        message = ("Tool choice '%s' not found in 'tools' parameter."):format(name),
        param = "tool_choice",
      }
    end
  end
end

--- What may only be said where there are tools.
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

--- Raises a fault where the service would refuse the request.
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

-- -- what the model is asked -----------------------------------------------------------------

local TAKE = {}

function TAKE.assistant(message, names)
  local entry = { type = "assistant", content = ah.array {} }
  local text = openai.text_of(check.given(message.content))
  if text ~= "" then
    entry.content[1] = { type = "text", text = text }
  end
  for i, call in ipairs(check.given(message.tool_calls) or {}) do
    local fn = call["function"]
    entry.tool_calls = entry.tool_calls or {}
    entry.tool_calls[i] = { id = call.id, name = fn.name, arguments = fn.arguments }
    names[call.id] = fn.name
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

--- A tool as a scripted model is told of it.
function openai.tool_of(fn)
  return { name = fn.name, description = check.given(fn.description) or "",
    parameters = check.given(fn.parameters) or ah.object {} }
end

--- Members of the body that are none of `left`, as the model's options.
function openai.options_of(body, left)
  local options = ah.object {}
  for key, value in pairs(body) do
    options[key] = not left[key] and value or nil
  end
  return options
end

local NO_OPTION = { model = true, messages = true, tools = true, stream = true,
  stream_options = true }

--- The request in the form of scripted models, its segments, and whether it is streamed.
function openai.read(body)
  local request = { model = body.model, tools = ah.array {}, entries = ah.array {},
    options = openai.options_of(body, NO_OPTION) }
  local segments = {}
  for i, tool in ipairs(check.given(body.tools) or {}) do
    request.tools[i] = openai.tool_of(tool["function"])
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

local function tool_calls_of(a)
  local calls = {}
  for i, call in ipairs(a.calls) do
    calls[i] = { id = call.id, type = "function",
      ["function"] = { name = call.name, arguments = call.arguments } }
  end
  return calls[1] and calls or nil
end

--- The whole answer.
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

local function stream_calls(a, delta)
  for i, call in ipairs(a.calls) do
    delta { tool_calls = { { index = i - 1, id = call.id, type = "function",
      ["function"] = { name = call.name, arguments = "" } } } }
    for _, piece in plan.pieces(call.arguments) do
      delta { tool_calls = { { index = i - 1, ["function"] = { arguments = piece } } } }
    end
  end
end

local function chunk_of(a, choices, usage, body)
  local doc = base_of(a, "chat.completion.chunk")
  local options = check.given(body.stream_options) or {}
  doc.choices = choices
  doc.usage = options.include_usage and (usage or ah.null) or nil
  return doc
end

--- The answer as chunks.
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
  stream_calls(a, delta)
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

--- The body of a failure.
function openai.error(fault)
  local kind = fault.status >= 500 and "server_error" or TYPES[fault.status]
  return { error = { message = fault.message, type = fault.type or kind or "invalid_request_error",
    param = fault.param or ah.null, code = fault.code or CODES[fault.status] or ah.null } }
end

--- GET /v1/models
function openai.models(names)
  local data = {}
  for i, name in ipairs(names) do
    data[i] = { id = name, object = "model", created = 1700000000, owned_by = "mock" }
  end
  return { object = "list", data = data }
end

--- What a call is called that the script gave no id.
function openai.call_id(n, i)
  return ("call_mock%d_%d"):format(n, i)
end

return openai
