--- OpenAI Responses from the server's side: items instead of messages, and a stream of named,
-- numbered events. Responses are stored for previous_response_id unless `store` is false;
-- conversations and background are not supported.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local openai = use "mock.openai"
local custom = use "mock.custom"
local signed = use "mock.signed"

local responses = { api = "responses", error = openai.error, models = openai.models,
  call_id = openai.call_id }

local ROLES = { "system", "developer", "user", "assistant" }
local TOOL_TYPES = { "function", "custom", "namespace", "tool_search", "web_search", "mcp",
  "file_search", "code_interpreter", "image_generation", "local_shell", "shell",
  "programmatic_tool_calling", "apply_patch", "computer", "computer_use_preview",
  "web_search_preview", "web_search_2025_08_26", "web_search_preview_2025_03_11" }
local MAX_KEPT = 10000 -- responses; then all are forgotten
local at = check.brackets

-- -- earlier responses -----------------------------------------------------------------------

local function own_items(body)
  if type(body.input) == "string" then
    return { { role = "user", content = body.input } }
  end
  return body.input
end

-- Returns the kept item that a reference names; any other item, or if it was not kept, unchanged.
local function meant(item, memory)
  local is_reference = type(item) == "table" and item.type == "item_reference"
  return is_reference and (memory.items or {})[item.id] or item
end

-- Returns all items: those of the responses before and the request's own, with references resolved.
local function all_items(body, memory)
  local chain, items, id = {}, ah.array {}, check.given(body.previous_response_id)
  while id do
    local kept = (memory.kept or {})[id]
    if not kept then
      check.refuse {
        message = ("Previous response with id '%s' not found."):format(tostring(id)),
        param = "previous_response_id",
        code = "previous_response_not_found",
      }
    end
    table.insert(chain, 1, kept.items)
    id = kept.before
  end
  chain[#chain + 1] = own_items(body)
  for _, some in ipairs(chain) do
    for _, item in ipairs(some) do
      items[#items + 1] = meant(item, memory)
    end
  end
  return items
end

local function keep(a, id, output)
  if a.body.store == false then
    return
  end
  local memory = a.memory
  memory.n = (memory.n or 0) % MAX_KEPT + 1
  memory.kept = memory.n > 1 and memory.kept or {}
  memory.items = memory.n > 1 and memory.items or {}
  local items = table.move(own_items(a.body), 1, #own_items(a.body), 1, {})
  table.move(output, 1, #output, #items + 1, items)
  for _, item in ipairs(output) do
    memory.items[item.id] = item
  end
  memory.kept[id] = { items = items, before = check.given(a.body.previous_response_id) }
end

-- -- reading -----------------------------------------------------------------------------

local function check_tool(tool, place, names)
  check.one_of(check.required(tool, "type", "string", place .. ".type"), TOOL_TYPES,
    place .. ".type")
  if tool.type == "function" then
    names[#names + 1] = openai.check_function(tool, place, 128)
  elseif tool.type == "custom" then
    names[#names + 1] = custom.check(tool, place, function(format, here) return format, here end)
  end
  for i, inner in ipairs(tool.type == "namespace" and check.given(tool.tools) or {}) do
    check_tool(inner, at(place .. ".tools", i - 1), names)
  end
end

local function check_tools(object, place, names)
  for i, tool in ipairs(check.list(object, "tools", place) or {}) do
    check_tool(tool, at(place, i - 1), names)
  end
end

local function url_of(part)
  return part.type == "input_image" and check.given(part.image_url) or nil
end

local function check_images(parts, place)
  check.objects(parts, function(i) return at(place, i - 1) end)
  for i, part in ipairs(parts) do
    if url_of(part) then
      openai.check_image(part.image_url, at(place, i - 1, "image_url"))
    end
  end
end

local CHECK = {}

function CHECK.message(item, place)
  check.one_of(check.required(item, "role", "string", place .. ".role"), ROLES, place .. ".role")
  local content = check.given(item.content)
  if type(content) ~= "string" then
    content = check.required(item, "content", "array", place .. ".content")
  end
  local assistant, parts = item.role == "assistant", type(content) == "table" and content or {}
  check_images(parts, place .. ".content")
  for i, part in ipairs(parts) do
    check.one_of(part.type, assistant and { "output_text", "refusal" }
      or { "input_text", "input_image", "input_file", "input_audio" },
      at(place .. ".content", i - 1, "type"))
  end
end

function CHECK.function_call(item, place, pairing, _, memory)
  local namespace = (memory.namespaces or {})[item.call_id]
  if namespace and item.namespace ~= namespace then
    check.refuse("'%s.namespace' must be '%s', as the call was made.", place, namespace)
  end
  check.required(item, "name", "string", place .. ".name")
  check.required(item, "arguments", "string", place .. ".arguments")
  pairing.call(check.required(item, "call_id", "string", place .. ".call_id"))
end

function CHECK.function_call_output(item, place, pairing)
  local id = check.required(item, "call_id", "string", place .. ".call_id")
  if type(item.output) ~= "string" then
    check_images(check.required(item, "output", "array", place .. ".output"), place .. ".output")
  end
  if not pairing.result(id) then
    check.refuse {
      message = ("No tool call found for function call output with call_id %s."):format(id),
      param = "input",
    }
  end
end

function CHECK.custom_tool_call(item, place, pairing)
  check.required(item, "name", "string", place .. ".name")
  check.required(item, "input", "string", place .. ".input")
  pairing.call(check.required(item, "call_id", "string", place .. ".call_id"))
end

CHECK.custom_tool_call_output = CHECK.function_call_output

-- Refuses a reference to an item that was not kept; others were resolved before.
function CHECK.item_reference(item)
  check.refuse { status = 404, param = "input", code = ah.null,
    message = ("Item with id '%s' not found. Items are not persisted when `store` is set to false.")
      :format(tostring(item.id)) }
end

-- The id may be left out if the encrypted content is sent back.
function CHECK.reasoning(item, place, _, _, memory, conversation)
  check.required(item, "summary", "array", place .. ".summary")
  local content = check.optional(item, "encrypted_content", "string", place .. ".encrypted_content")
  local id = (content and check.optional or check.required)(item, "id", "string", place .. ".id")
  if content and signed.fault(memory, conversation, content, "") then
    check.refuse {
      message = ("The encrypted content for item %s could not be verified. Reason: Encrypted "
        .. "content could not be decrypted or parsed."):format(id or place),
      code = "invalid_encrypted_content",
    }
  end
end

function CHECK.additional_tools(item, place, _, names)
  check.one_of(item.role, { "developer" }, place .. ".role")
  check.required(item, "tools", "array", place .. ".tools")
  check_tools(item, place .. ".tools", names)
end

local ITEMS = { "message", "function_call", "function_call_output", "reasoning",
  "additional_tools", "tool_search_call", "tool_search_output", "item_reference",
  "custom_tool_call", "custom_tool_call_output", "configuration_update", "program",
  "program_output", "web_search_call", "compaction", "compaction_trigger", "file_search_call",
  "computer_call", "computer_call_output", "image_generation_call", "code_interpreter_call",
  "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output",
  "apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_approval_request",
  "mcp_approval_response", "mcp_call" }

-- True if no results may follow an item of this kind from the user.
local function is_said(kind)
  return kind == "message"
end

local function check_answered(pairing)
  local missing = pairing.missing()
  if missing[1] then
    check.refuse {
      message = ("No tool output found for function call %s."):format(missing[1]),
      param = "input",
    }
  end
end

-- Returns the first text of a conversation, which identifies it.
local function conversation_of(items)
  for _, item in ipairs(items) do
    if type(item) == "table" and item.role == "user" then
      return openai.text_of(check.given(item.content))
    end
  end
  return ""
end

local function check_input(input, names, memory)
  local pairing, conversation = check.pairing(), conversation_of(input)
  for i, item in ipairs(input) do
    local place = at("input", i - 1)
    local kind = check.optional(item, "type", "string", place .. ".type") or "message"
    check.one_of(kind, ITEMS, place .. ".type")
    if is_said(kind) and item.role == "user" then
      check_answered(pairing)
    end
    if CHECK[kind] then
      CHECK[kind](item, place, pairing, names, memory, conversation)
    end
  end
  check_answered(pairing)
end

--- Raises a fault if the service would refuse the request.
function responses.check(body, context)
  local names = {}
  check.required(body, "model", "string", "model")
  check.optional(body, "stream", "boolean", "stream")
  check.optional(body, "instructions", "string", "instructions")
  if check.given(body.conversation) then
    check.refuse { message = "agenthost mock keeps no conversations.", param = "conversation" }
  end
  check_tools(body, "tools", names)
  check.unique(names, "Tool names must be unique: '%s' comes twice.")
  if type(body.input) ~= "string" then
    check.required(body, "input", "array", "input")
    check.list(body, "input", "input")
  end
  check_input(all_items(body, context.memory), names, context.memory)
  openai.check_choice(body, #names > 0 or check.given(body.tools))
  openai.check_named(body, names, false)
end

-- -- the request of the scripted model ---------------------------------------------------------

local TAKE = {}

function TAKE.message(item, request)
  local text = openai.text_of(item.content)
  local content = { { type = "text", text = text } }
  if item.role == "user" then
    return { type = "user", content = openai.add_images(content, item.content, url_of) }
  elseif item.role == "assistant" then
    return { type = "assistant", content = content }
  elseif #request.entries > 0 then
    return { type = "note", text = text }
  end
  request.system = request.system .. (request.system ~= "" and "\n\n" or "") .. text
end

function TAKE.function_call(item, request, names)
  local call = { id = item.call_id, name = item.name,
    arguments = item.arguments or custom.arguments_of(item.input) }
  local last = request.entries[#request.entries]
  names[item.call_id] = item.name
  if last and last.type == "assistant" then -- one message, as far as a script is concerned
    last.tool_calls = last.tool_calls or {}
    table.insert(last.tool_calls, call)
    return nil
  end
  return { type = "assistant", content = ah.array {}, tool_calls = { call } }
end

function TAKE.function_call_output(item, _, names)
  return { type = "tool_result", id = item.call_id, name = names[item.call_id],
    content = openai.text_of(item.output), images = openai.add_images({}, item.output, url_of) }
end

TAKE.custom_tool_call = TAKE.function_call
TAKE.custom_tool_call_output = TAKE.function_call_output

local function take_tools(tools, into)
  for _, tool in ipairs(tools or {}) do
    if tool.type == "function" and not tool.defer_loading then
      into[#into + 1] = openai.tool_of(tool)
    elseif tool.type == "custom" then
      into[#into + 1] = custom.tool_of(tool)
    end
    take_tools(tool.type == "namespace" and check.given(tool.tools), into)
  end
  return into
end

-- Returns the list of deferred tools if the service must search them, else nil.
local function deferred_of(tools)
  local list, searches = {}, false
  for _, tool in ipairs(tools or {}) do
    searches = searches or (tool.type == "tool_search" and tool.execution ~= "client")
    list[#list + 1] = tool.defer_loading and openai.tool_of(tool) or nil
  end
  return searches and list or nil
end

local function loaded(tools)
  local list = {}
  for _, tool in ipairs(tools or {}) do
    list[#list + 1] = tool.type == "function" and openai.tool_of(tool) or nil
  end
  return list
end

function TAKE.additional_tools(item)
  return { type = "tools_added", tools = loaded(item.tools) }
end

TAKE.tool_search_output = TAKE.additional_tools

local NO_OPTION = { model = true, input = true, instructions = true, tools = true, stream = true,
  previous_response_id = true }

local function segments_of(body, input)
  local segments = {}
  for _, tool in ipairs(check.given(body.tools) or {}) do
    segments[#segments + 1] = { kind = "tools", text = ah.json.encode(tool) }
  end
  if check.given(body.instructions) then
    segments[#segments + 1] = { kind = "system", text = openai.text_of(body.instructions) }
  end
  for _, item in ipairs(input) do
    segments[#segments + 1] = { kind = "messages", text = ah.json.encode(item) }
  end
  return segments
end

--- Returns the request in the form of scripted models, its segments, and true if it is streamed.
function responses.read(body, context)
  local request = { model = body.model, system = openai.text_of(check.given(body.instructions)),
    tools = ah.array(take_tools(check.given(body.tools), {})), entries = ah.array {},
    options = openai.options_of(body, NO_OPTION) }
  local input, names = all_items(body, context.memory), {}
  for _, item in ipairs(input) do
    local take = TAKE[item.type or "message"]
    table.insert(request.entries, take and take(item, request, names))
  end
  return { request = request, segments = segments_of(body, input),
    deferred = deferred_of(check.given(body.tools)), stream = body.stream == true }
end

-- -- the items of an answer --------------------------------------------------------------------

local function text_part(text)
  return { type = "output_text", annotations = ah.array {}, logprobs = ah.array {}, text = text }
end

local function message_item(a, index)
  local part = a.refusal and { type = "refusal", refusal = a.refusal }
    or text_part(plan.joined(a.text))
  return { id = ("msg_mock%d_%d"):format(a.n, index), type = "message", role = "assistant",
    status = a.stop == "length" and "incomplete" or "completed", content = ah.array { part } }
end

local function encrypted_of(a)
  local content = a.wants_encrypted and (a.signature or signed.made_up(a.n)) or nil
  if content then
    signed.bind(a.memory, conversation_of(all_items(a.body, a.memory)), content, "")
  end
  return content
end

local function reasoning_item(a, index)
  local summary = ah.array {}
  if plan.joined(a.reasoning) ~= "" then
    summary[1] = { type = "summary_text", text = plan.joined(a.reasoning) }
  end
  return { id = ("rs_mock%d_%d"):format(a.n, index), type = "reasoning", summary = summary,
    encrypted_content = encrypted_of(a) }
end

-- Adds a search by the service itself: the query, then the declarations of the tools found.
local function add_search(items, a, s)
  local names, tools, declared = ah.array {}, ah.array {}, {}
  for _, tool in ipairs(a.body.tools) do
    declared[tool.name or ""] = tool
  end
  for i, tool in ipairs(s.found) do
    names[i], tools[i] = tool.name, declared[tool.name]
  end
  local id = ("mock%d_%d"):format(a.n, #items)
  items[#items + 1] = { id = "tsc_" .. id, type = "tool_search_call", execution = "server",
    call_id = ah.null, status = "completed", arguments = { paths = names } }
  items[#items + 1] = { id = "tso_" .. id, type = "tool_search_output", execution = "server",
    call_id = ah.null, status = "completed", tools = tools }
end

-- Returns the namespace that a tool is called in: the one that holds it, or, for a deferred tool
-- outside of them, one of its own name.
local function namespace_of(tools, name, holder)
  for _, tool in ipairs(check.given(tools) or {}) do
    if tool.type == "function" and tool.name == name and (holder or tool.defer_loading) then
      return holder or name
    end
    local inner = tool.type == "namespace" and namespace_of(tool.tools, name, tool.name)
    if inner then
      return inner
    end
  end
end

local function is_custom(tools, name)
  for _, tool in ipairs(check.given(tools) or {}) do
    if tool.type == "custom" and tool.name == name
      or tool.type == "namespace" and is_custom(tool.tools, name) then
      return true
    end
  end
end

local function call_item(a, call, index)
  if is_custom(a.body.tools, call.name) then
    return { id = ("ctc_mock%d_%d"):format(a.n, index), type = "custom_tool_call",
      status = "completed", call_id = call.id, name = call.name,
      input = custom.input_of(call.arguments) }
  end
  local namespace = namespace_of(a.body.tools, call.name)
  if namespace then
    a.memory.namespaces = a.memory.namespaces or {}
    a.memory.namespaces[call.id] = namespace
  end
  return { namespace = namespace, id = ("fc_mock%d_%d"):format(a.n, index), type = "function_call",
    status = "completed", arguments = call.arguments, call_id = call.id, name = call.name }
end

local function items_of(a)
  local items = ah.array {}
  if a.reasoning then
    items[1] = reasoning_item(a, 0)
  end
  for _, s in ipairs(a.searches or {}) do
    add_search(items, a, s)
  end
  if plan.joined(a.text) ~= "" or a.refusal or #a.calls == 0 then
    items[#items + 1] = message_item(a, #items)
  end
  for _, call in ipairs(a.calls) do
    items[#items + 1] = call_item(a, call, #items)
  end
  return items
end

local function usage_of(u)
  return { input_tokens = u.input, input_tokens_details = { cached_tokens = u.cached_read },
    output_tokens = u.output, output_tokens_details = { reasoning_tokens = u.reasoning },
    total_tokens = u.input + u.output }
end

local WHY = { length = "max_output_tokens", context_full = "max_output_tokens",
  content_filter = "content_filter" }

-- Members that repeat those of the request, or their defaults.
local ECHOED = {
  background = false, frequency_penalty = 0.0, instructions = ah.null,
  max_output_tokens = ah.null, max_tool_calls = ah.null, metadata = ah.object {},
  moderation = ah.null, parallel_tool_calls = true, presence_penalty = 0.0,
  previous_response_id = ah.null, prompt_cache_key = ah.null,
  prompt_cache_retention = "in_memory", safety_identifier = ah.null, store = true,
  temperature = 1.0, tool_choice = "auto", tools = ah.array {}, top_logprobs = 0, top_p = 1.0,
  truncation = "disabled", user = ah.null,
}

local function document(a, status, items)
  local doc = { id = "resp_mock" .. a.n, object = "response", created_at = os.time(),
    status = status, completed_at = ah.null, error = ah.null, incomplete_details = ah.null,
    model = a.model, output = items, usage = ah.null, service_tier = "default",
    reasoning = { effort = ah.null, summary = ah.null },
    text = { format = { type = "text" }, verbosity = "medium" } }
  for key, value in pairs(ECHOED) do
    doc[key] = a.body[key]
    if doc[key] == nil then
      doc[key] = value
    end
  end
  if status ~= "in_progress" then
    doc.usage = usage_of(a.usage)
    doc.completed_at = status == "completed" and os.time() or ah.null
    doc.incomplete_details = status == "incomplete" and { reason = WHY[a.stop] } or ah.null
  end
  return doc
end

local function wants_encrypted(body)
  for _, name in ipairs(check.given(body.include) or {}) do
    if name == "reasoning.encrypted_content" then
      return true
    end
  end
  return false
end

--- Returns the whole answer.
function responses.whole(a)
  a.wants_encrypted = wants_encrypted(a.body)
  local doc = document(a, WHY[a.stop] and "incomplete" or "completed", items_of(a))
  keep(a, doc.id, doc.output)
  return doc
end

-- -- streaming -----------------------------------------------------------------------------

local function with(base, more)
  for key, value in pairs(base) do
    if more[key] == nil then
      more[key] = value
    end
  end
  return more
end

local PLAY = {}

function PLAY.tool_search_call() end -- no deltas

PLAY.tool_search_output = PLAY.tool_search_call

function PLAY.message(a, item, say, out)
  local final = item.content[1]
  local kind = a.refusal and "refusal" or "output_text"
  local where = { item_id = item.id, content_index = 0 }
  local member = a.refusal and "refusal" or "text"
  local empty = with(final, { [member] = "" })
  say("response.content_part.added", with(where, { part = empty }))
  local logprobs = not a.refusal and ah.array {} or nil
  out:each(a.refusal or a.text, a.delay, function(piece)
    say("response." .. kind .. ".delta", with(where, { delta = piece, logprobs = logprobs }))
  end)
  say("response." .. kind .. ".done", with(where, { [member] = final[member],
    logprobs = logprobs }))
  say("response.content_part.done", with(where, { part = final }))
end

local function play_call(item, say, event, member, out)
  out:each(item[member], nil, function(piece)
    say(event .. ".delta", { item_id = item.id, delta = piece })
  end)
  say(event .. ".done", { item_id = item.id, [member] = item[member] })
end

function PLAY.function_call(_, item, say, out)
  play_call(item, say, "response.function_call_arguments", "arguments", out)
end

function PLAY.custom_tool_call(_, item, say, out)
  play_call(item, say, "response.custom_tool_call_input", "input", out)
end

function PLAY.reasoning(a, item, say, out)
  local final = item.summary[1]
  if not final then
    return
  end
  local where = { item_id = item.id, summary_index = 0 }
  say("response.reasoning_summary_part.added",
    with(where, { part = { type = "summary_text", text = "" } }))
  out:each(a.reasoning, a.delay, function(piece)
    say("response.reasoning_summary_text.delta", with(where, { delta = piece }))
  end)
  say("response.reasoning_summary_text.done", with(where, { text = final.text }))
  say("response.reasoning_summary_part.done", with(where, { part = final }))
end

-- Returns the item as it is sent when it begins.
local BEGUN = { content = ah.array {}, arguments = "", input = "", summary = ah.array {},
  status = "in_progress" }

local function begun(item)
  local first = {}
  for key, value in pairs(item) do
    first[key] = BEGUN[key] == nil and value or BEGUN[key]
  end
  return first
end

local function fail_stream(a, say)
  local e = openai.error(a.fault).error
  say("error", { code = e.code, message = e.message, param = e.param })
  local doc = document(a, "failed", ah.array {})
  doc.error = { code = a.fault.code or "server_error", message = e.message }
  say("response.failed", { response = doc })
end

--- Sends the answer as events.
function responses.stream(a, out)
  local function say(kind, event)
    event.type, event.sequence_number = kind, out:number()
    out:event(kind, event)
  end
  a.wants_encrypted = wants_encrypted(a.body)
  say("response.created", { response = document(a, "in_progress", ah.array {}) })
  say("response.in_progress", { response = document(a, "in_progress", ah.array {}) })
  local items = items_of(a)
  for i, item in ipairs(items) do
    local function say_of_item(kind, event)
      event.output_index = i - 1
      say(kind, event)
    end
    say_of_item("response.output_item.added", { item = begun(item) })
    PLAY[item.type](a, item, say_of_item, out)
    if not a.fault then
      say_of_item("response.output_item.done", { item = item })
    end
  end
  if a.fault then
    return fail_stream(a, say)
  end
  local status = WHY[a.stop] and "incomplete" or "completed"
  local last = document(a, status, items)
  keep(a, last.id, items)
  say("response." .. status, { response = last })
end

--- Returns the service's error for a full context.
function responses.full(used, window)
  return openai.full_of("input", used and ("Input tokens exceed the configured limit of %d tokens. "
    .. "Your messages resulted in %d tokens. Please reduce the length of the messages.")
    :format(window, used))
end

--- POST /v1/responses/input_tokens
function responses.count(tokens)
  return { object = "response.input_tokens", input_tokens = tokens }
end

return responses
