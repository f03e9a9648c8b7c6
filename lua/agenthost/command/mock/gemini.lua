--- Google's generateContent from the server's side: contents of parts, whole function calls,
-- thought signatures that must come back where they were. Its streams are server-sent events
-- with alt=sse, else one JSON array.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local signed = use "mock.signed"

local gemini = { api = "generateContent", line_end = "\r\n" }

local WINDOW = 1048576 -- tokens of a model
local at = check.brackets
local refuse = check.refuse

local STOPS = { ["end"] = "STOP", tool_calls = "STOP", length = "MAX_TOKENS",
  stop_sequence = "STOP", content_filter = "SAFETY", refusal = "PROHIBITED_CONTENT",
  context_full = "MAX_TOKENS" }

local CALLED = "Model generated function call(s)."

-- Values that clients may send in place of a signature that they never received.
local NO_SIGNATURE = { skip_thought_signature_validator = true,
  context_engineering_is_the_way_to_go = true }

-- Members that may be written both ways, the canonical one first.
local function either(object, camel, snake)
  return check.given(object[camel]) or check.given(object[snake])
end

local function text_of(parts)
  local texts = {}
  for _, part in ipairs(parts or {}) do
    texts[#texts + 1] = not part.thought and type(part.text) == "string" and part.text or nil
  end
  return table.concat(texts)
end

-- Returns the turns, { role, parts, places, place, contents }: contents in a row with the same role
-- are one turn, because a client may send back each piece of a stream by itself.
local function turns_of(contents)
  local turns = {}
  for i, content in ipairs(contents) do
    local role = check.given(content.role) == "model" and "model" or "user"
    if #turns == 0 or turns[#turns].role ~= role then
      turns[#turns + 1] = { role = role, parts = {}, places = {}, place = at("contents", i - 1),
        contents = {} }
    end
    local turn = turns[#turns]
    table.insert(turn.contents, content)
    for k, part in ipairs(check.given(content.parts) or {}) do
      table.insert(turn.parts, part)
      table.insert(turn.places, at("contents", i - 1, "parts", k - 1))
    end
  end
  return turns
end

-- Returns the first text of a conversation, which identifies it.
local function conversation_of(body)
  local first = (check.given(body.contents) or {})[1] or {}
  return text_of(check.given(first.parts))
end

-- Returns the key of a call; clients may add an id to the call or reorder its members.
local function call_key(name, args)
  return name .. ah.json.encode(args)
end

-- -- checking ------------------------------------------------------------------------------

local function check_declaration(fn, place)
  local name = check.required(fn, "name", "string", place .. ".name")
  if not name:find("^[%a_][%w_.:-]*$") or #name > 128 then
    refuse("* GenerateContentRequest.%s.name: [FIELD_INVALID] Invalid function name. Must start "
      .. "with a letter or an underscore. Must be alphanumeric, underscores, dots, colons or "
      .. "dashes, with a maximum length of 128, found '%s'.", place, name)
  end
  local parameters, json = check.given(fn.parameters), either(fn, "parametersJsonSchema",
    "parameters_json_schema")
  if parameters and json then
    refuse("* %s: parameters and parametersJsonSchema are mutually exclusive", place)
  elseif parameters or json then
    check.parameters(parameters or json, place .. ".parameters", false, true)
  end
  return name
end

local function declarations_of(tool)
  return either(tool, "functionDeclarations", "function_declarations") or {}
end

local function check_declarations(tool, place, names)
  for _, name in ipairs { "functionDeclarations", "function_declarations" } do
    for k, fn in ipairs(check.optional(tool, name, "array", place) or {}) do
      names[#names + 1] = check_declaration(fn, at(place, k - 1))
    end
  end
end

local function check_tools(body)
  local names = {}
  for i, tool in ipairs(check.list(body, "tools", "tools") or {}) do
    check_declarations(tool, at("tools", i - 1, "function_declarations"), names)
  end
  check.unique(names, "Duplicate function declaration found: %s")
end

local function check_signature(part, name, place, turn)
  local signature = either(part, "thoughtSignature", "thought_signature")
  local args = either(part, "functionCall", "function_call").args
  local wanted = signed.wanted(turn.memory, turn.conversation,
    call_key(name, check.given(args) or ah.object {}))
  if signature and (wanted and wanted[signature] or NO_SIGNATURE[signature]) then
    return
  elseif signature and not signed.is_base64(signature) then
    refuse("Invalid value at '%s.thought_signature' (TYPE_BYTES), Base64 decoding failed for "
      .. "\"%s\"", place, signature)
  elseif signature and wanted and turn.is_now then
    refuse("Corrupted thought signature. (%s)", place)
  elseif wanted and turn.is_now then
    refuse("Function call is missing a thought_signature in functionCall parts (%s). This is "
      .. "required for tools to work correctly.", place)
  end
end

-- Returns an object in a part, by either spelling of its name; refuses another type.
local function object_in(part, camel, snake, place)
  return check.optional(part, camel, "object", at(place, snake))
    or check.optional(part, snake, "object", at(place, snake))
end

local function check_part(part, place, turn)
  local call = object_in(part, "functionCall", "function_call", place)
  local result = object_in(part, "functionResponse", "function_response", place)
  check.optional(part, "text", "string", at(place, "text"))
  check.optional(part, "thoughtSignature", "string", place .. ".thought_signature")
  if call then
    local name = check.required(call, "name", "string", place .. ".function_call.name")
    check.optional(call, "args", "object", place .. ".function_call.args")
    if turn.role ~= "model" then
      refuse("Please ensure that function call turns are of role 'model' (%s).", place)
    end
    check_signature(part, name, place, turn)
    turn.calls = turn.calls + 1
  elseif result then
    check.required(result, "name", "string", place .. ".function_response.name")
    check.required(result, "response", "object", place .. ".function_response.response")
    turn.results = turn.results + 1
  elseif check.given(part.text) == nil and next(part) == nil then
    refuse("* GenerateContentRequest.%s: [FIELD_INVALID] required oneof field 'data' must have one "
      .. "initialized field", place)
  end
end

-- Checks that a turn has one result for each call of the turn before it.
local function check_pairs(turn, waiting, place)
  if turn.results ~= waiting then
    refuse("Please ensure that the number of function response parts is equal to the number of "
      .. "function call parts of the function call turn (%s: %d calls, %d responses).", place,
      waiting, turn.results)
  end
end

local function check_content(content, place)
  local role = check.is_object(content) and (check.given(content.role) or "user")
  if not role then
    refuse("Invalid value at '%s': expected an object.", place)
  elseif role ~= "user" and role ~= "model" and role ~= "function" then
    refuse("Please use a valid role: user, model.")
  end
  local parts = check.required(content, "parts", "array", place .. ".parts")
  if #parts == 0 then
    refuse("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", place)
  end
  for k, part in ipairs(parts) do
    if not check.is_object(part) then
      refuse("Invalid value at '%s': expected an object.", at(place .. ".parts", k - 1))
    end
  end
end

-- Returns the index of the user's last turn without tool results, 0 if there is none: signatures
-- are required only after it.
local function last_said(turns)
  for i = #turns, 1, -1 do
    local results = turns[i].role == "model"
    for _, part in ipairs(turns[i].parts) do
      results = results or either(part, "functionResponse", "function_response") ~= nil
    end
    if not results then
      return i
    end
  end
  return 0
end

-- True if the model requires signatures, from Gemini 3 on.
local function wants_signatures(model)
  return not model:find "gemini%-[12]%f[%D]"
end

local function check_turns(body, context)
  local turns, waiting, memory = turns_of(body.contents), 0, context.memory
  local now = wants_signatures(context.model) and last_said(turns) or #turns
  for i, turn in ipairs(turns) do
    turn.calls, turn.results, turn.is_now = 0, 0, i > now
    turn.memory, turn.conversation = memory, conversation_of(body)
    for k, part in ipairs(turn.parts) do
      check_part(part, turn.places[k], turn)
    end
    check_pairs(turn, waiting, turn.place)
    waiting = turn.calls
  end
  if waiting > 0 then
    check_pairs({ results = 0 }, waiting, "contents")
  end
end

--- Raises a fault if the service would refuse the request.
function gemini.check(body, context)
  if #check.required(body, "contents", "array", "contents") == 0 then
    refuse("* GenerateContentRequest.contents: contents is not specified")
  end
  check_tools(body)
  for i, content in ipairs(body.contents) do
    check_content(content, at("contents", i - 1))
  end
  check_turns(body, context)
end

-- -- the request of the scripted model ---------------------------------------------------------

-- Appends the images of a list of parts to `into`, and returns it; nil if there are none.
local function add_images(into, parts)
  for _, part in ipairs(check.given(parts) or {}) do
    local data = either(part, "inlineData", "inline_data")
    local file = either(part, "fileData", "file_data")
    into[#into + 1] = data and { type = "image", data = data.data,
      mime = either(data, "mimeType", "mime_type") }
      or file and { type = "image", url = either(file, "fileUri", "file_uri"),
        mime = either(file, "mimeType", "mime_type") } or nil
  end
  return into[1] and into or nil
end

-- Returns the result of a tool: the first known member of the response, or all of it as JSON.
local function said(response)
  for _, key in ipairs { "output", "result", "error" } do
    if type(response[key]) == "string" then
      return response[key]
    elseif check.given(response[key]) ~= nil then
      return ah.json.encode(response[key])
    end
  end
  return ah.json.encode(response)
end

-- Adds the entry of the model; a call without an id gets one by its position.
local function take_model(content, taking)
  local entry, text = { type = "assistant", content = ah.array {} }, text_of(content.parts)
  if text ~= "" then
    entry.content[1] = { type = "text", text = text }
  end
  taking.ids = {}
  for _, part in ipairs(content.parts) do
    local call = either(part, "functionCall", "function_call")
    if call then
      taking.n = taking.n + 1
      local id = check.given(call.id) or "call_" .. taking.n
      entry.tool_calls = entry.tool_calls or {}
      table.insert(entry.tool_calls, { id = id, name = call.name,
        arguments = ah.json.encode(check.given(call.args) or ah.object {}) })
      table.insert(taking.ids, id)
    end
  end
  table.insert(taking.entries, entry)
end

local function take_user(content, taking)
  local text = text_of(content.parts)
  for _, part in ipairs(content.parts) do
    local result = either(part, "functionResponse", "function_response")
    if result then
      local id = check.given(result.id) or table.remove(taking.ids, 1)
      table.insert(taking.entries, { type = "tool_result", id = id, name = result.name,
        content = said(result.response), images = add_images({}, result.parts) })
    end
  end
  local note = text:match("^%s*<system>%s*(.-)%s*</system>%s*$")
  if note then
    table.insert(taking.entries, { type = "note", text = note })
  else
    local said_here = add_images(text ~= "" and { { type = "text", text = text } } or {},
      content.parts)
    taking.entries[#taking.entries + 1] = said_here and { type = "user", content = said_here }
  end
end

local NO_OPTION = { contents = true, tools = true, systemInstruction = true,
  system_instruction = true }

local function add_tools(body, request, segments)
  for _, tool in ipairs(check.given(body.tools) or {}) do
    for _, fn in ipairs(declarations_of(tool)) do
      table.insert(request.tools, { name = fn.name, description = check.given(fn.description) or "",
        parameters = check.given(fn.parameters)
          or either(fn, "parametersJsonSchema", "parameters_json_schema") or ah.object {} })
      segments[#segments + 1] = { kind = "tools", text = ah.json.encode(fn) }
    end
  end
end

--- Returns the request in the form of scripted models, its segments, and true if it is streamed.
function gemini.read(body, context)
  local system = either(body, "systemInstruction", "system_instruction")
  local request = { model = context.model, tools = ah.array {}, entries = ah.array {},
    system = system and text_of(system.parts) or "", options = ah.object {} }
  local taking, segments = { entries = request.entries, ids = {}, n = 0 }, {}
  for key, value in pairs(body) do
    request.options[key] = not NO_OPTION[key] and value or nil
  end
  add_tools(body, request, segments)
  if system then
    segments[#segments + 1] = { kind = "system", text = ah.json.encode(system) }
  end
  for _, turn in ipairs(turns_of(body.contents)) do
    if turn.role == "model" then
      take_model(turn, taking)
    end
    for _, content in ipairs(turn.role == "user" and turn.contents or {}) do
      take_user(content, taking)
    end
  end
  for _, content in ipairs(body.contents) do
    segments[#segments + 1] = { kind = "messages", text = ah.json.encode(content) }
  end
  return { request = request, segments = segments, stream = context.kind == "stream" }
end

-- -- answering ----------------------------------------------------------------------------

local function usage_of(u)
  return {
    promptTokenCount = u.input,
    cachedContentTokenCount = u.cached_read > 0 and u.cached_read or nil,
    candidatesTokenCount = u.output - u.reasoning,
    thoughtsTokenCount = u.reasoning > 0 and u.reasoning or nil,
    totalTokenCount = u.input + u.output,
    promptTokensDetails = { { modality = "TEXT", tokenCount = u.input } },
  }
end

local function fragment(a, parts, finish)
  local content = parts and { role = "model", parts = parts } or ah.object {}
  return {
    candidates = { { content = content, index = 0, finishReason = finish,
      finishMessage = finish and (a.refusal or a.calls[1] and CALLED) or nil } },
    usageMetadata = usage_of(a.usage),
    modelVersion = a.model,
    responseId = "mock" .. a.n,
  }
end

-- The first call of an answer with reasoning is signed; the client must send that back.
local function call_parts(a)
  local parts, conversation = {}, conversation_of(a.body)
  local signature = a.signature or a.reasoning and signed.made_up(a.n) or nil
  for i, call in ipairs(a.calls) do
    local args = plan.object_of(call.arguments)
    local own = i == 1 and signature or nil
    parts[i] = { functionCall = { name = call.name, args = args, id = call.given_id },
      thoughtSignature = own }
    signed.say(a.memory, conversation, call_key(call.name, args), own)
  end
  return parts
end

-- True if the client asks for the text of the reasoning; others do not get it.
local function wants_thoughts(body)
  local config = either(body, "generationConfig", "generation_config") or {}
  local thinking = either(config, "thinkingConfig", "thinking_config") or {}
  return either(thinking, "includeThoughts", "include_thoughts") == true
end

--- Returns the whole answer.
function gemini.whole(a)
  local parts = {}
  if a.reasoning and wants_thoughts(a.body) then
    parts[1] = { text = plan.joined(a.reasoning), thought = true }
  end
  if plan.joined(a.text) ~= "" then
    parts[#parts + 1] = { text = plan.joined(a.text) }
  end
  table.move(call_parts(a), 1, #a.calls, #parts + 1, parts)
  return fragment(a, parts[1] and parts or nil, STOPS[a.stop])
end

--- Sends the answer as fragments: events, or (without alt=sse) the elements of one array.
function gemini.stream(a, out)
  local sse, n = a.query:find("alt=sse", 1, true) ~= nil, 0
  local function say(doc)
    n = n + 1
    if sse then
      out:event(nil, doc)
    else
      out:put((n == 1 and "[" or "\n,\r\n") .. ah.json.encode(doc))
    end
  end
  if wants_thoughts(a.body) then
    out:each(a.reasoning, a.delay, function(piece)
      say(fragment(a, { { text = piece, thought = true } }))
    end)
  end
  out:each(a.text, a.delay, function(piece) say(fragment(a, { { text = piece } })) end)
  local calls = call_parts(a)
  if calls[1] then
    say(fragment(a, calls))
  end
  if a.fault then
    say(gemini.error(a.fault))
  else
    say(fragment(a, { { text = "" } }, STOPS[a.stop]))
  end
  if not sse then
    out:put("\n]\n")
  end
end

--- Returns the content type of a stream.
function gemini.stream_type(query)
  return query:find("alt=sse", 1, true) and "text/event-stream" or "application/json"
end

--- POST :countTokens
function gemini.count(tokens)
  return { totalTokens = tokens,
    promptTokensDetails = { { modality = "TEXT", tokenCount = tokens } } }
end

-- -- failing -------------------------------------------------------------------------------

local WORDS = { [400] = "INVALID_ARGUMENT", [401] = "UNAUTHENTICATED", [403] = "PERMISSION_DENIED",
  [404] = "NOT_FOUND", [429] = "RESOURCE_EXHAUSTED", [500] = "INTERNAL", [503] = "UNAVAILABLE",
  [504] = "DEADLINE_EXCEEDED" }

--- Returns the body of a failure; it has the time to wait, which no header has.
function gemini.error(fault)
  local details = fault.retry_after and { { ["@type"] = "type.googleapis.com/google.rpc.RetryInfo",
    retryDelay = ("%gs"):format(fault.retry_after) } }
  return { error = { code = fault.status, message = fault.message,
    status = fault.type or WORDS[fault.status] or "UNKNOWN", details = details } }
end

--- Returns the service's error for a full context.
function gemini.full(used, window)
  local number = used and (" (%d)"):format(used) or ""
  return { message = ("The input token count%s exceeds the maximum number of tokens allowed (%d).")
    :format(number, window or WINDOW) }
end

--- GET /v1beta/models/NAME
function gemini.model(name)
  return { name = "models/" .. name, version = "001", displayName = name,
    description = "A scripted model.", inputTokenLimit = WINDOW, outputTokenLimit = 65536,
    supportedGenerationMethods = { "generateContent", "countTokens" } }
end

--- GET /v1beta/models
function gemini.models(names)
  local models = {}
  for i, name in ipairs(names) do
    models[i] = gemini.model(name)
  end
  return { models = models }
end

--- Returns the id of a call for which the script has none; it is not sent on this wire.
function gemini.call_id(n, i)
  return ("call_mock%d_%d"):format(n, i)
end

return gemini
