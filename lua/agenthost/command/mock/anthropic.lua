--- Anthropic Messages from the server's side: blocks, thinking with its signature, prompt caching
-- at the marks that the client sets, and tools that come in mid-conversation.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local signed = use "mock.signed"
local threads = use "mock.threads"

local anthropic = { api = "v1/messages" }

local NAME = "^[a-zA-Z0-9_-]+$"
local WINDOW = 200000 -- tokens of a model
local MAX_MARKS = 4 -- of cache_control in a request
local at = check.dots
local refuse = check.refuse

local STOPS = { ["end"] = "end_turn", tool_calls = "tool_use", length = "max_tokens",
  stop_sequence = "stop_sequence", content_filter = "refusal", refusal = "refusal",
  context_full = "model_context_window_exceeded" }

-- -- shared parts ---------------------------------------------------------------------------------

local function text_of(content)
  if type(content) ~= "table" then
    return type(content) == "string" and content or ""
  end
  local texts = {}
  for _, block in ipairs(content) do
    block = type(block) == "table" and block or {}
    texts[#texts + 1] = check.given(block.text)
      or (block.type == "tool_reference" and block.tool_name) or nil
  end
  return table.concat(texts)
end

-- Returns the first text of a conversation, which identifies it.
local function conversation_of(body)
  local first = (check.given(body.messages) or {})[1] or {}
  return text_of(first.content)
end

-- -- checking ------------------------------------------------------------------------------

-- Returns a required member, or refuses the request with this service's message.
local function field(object, key, kind, place)
  if not check.is_object(object) then
    refuse("%s: Input should be a valid dictionary or object", place:match "^(.*)%." or place)
  end
  local v = object[key]
  if v == nil then
    refuse("%s: Field required", place)
  end
  local ok = pcall(check.required, object, key, kind, place)
  if not ok then
    refuse("%s: Input should be a valid %s", place, kind)
  end
  return v
end

local function check_schema(tool, place)
  local ok, fault = pcall(check.parameters, field(tool, "input_schema", "object", place),
    place, tool.strict == true and "closed")
  if not ok then
    refuse("%s: %s", place, fault.message or tostring(fault))
  end
end

-- A set of tools has no name of its own: "mcp_toolset", "browser_toolset_20260801".
local function is_toolset(tool)
  return check.is_object(tool) and tostring(tool.type):find "toolset" ~= nil
end

local function check_tool(tool, place)
  local name = field(tool, "name", "string", at(place, "custom", "name"))
  if not name:find(NAME) or #name > 128 then
    refuse("%s.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", place)
  end
  if not check.given(tool.type) or tool.type == "custom" then
    check_schema(tool, at(place, "custom", "input_schema"))
  end
  return name
end

-- Checks the tools, and returns the declared names: { [name] = "now"|"deferred" }.
local function check_tools(body)
  local declared, names, at_once = {}, {}, 0
  local tools = check.given(body.tools) and field(body, "tools", "array", "tools") or {}
  for i, tool in ipairs(tools) do
    if not is_toolset(tool) then
      local name = check_tool(tool, at("tools", i - 1))
      names[#names + 1], declared[name] = name, tool.defer_loading == true and "deferred" or "now"
    end
    at_once = at_once + (tool.defer_loading == true and 0 or 1)
  end
  check.unique(names, "tools: Tool names must be unique.")
  if #tools > 0 and at_once == 0 then
    refuse("tools: At least one tool must have defer_loading=false.")
  end
  return declared
end

local function check_choice(body, declared)
  local choice = check.given(body.tool_choice)
  if not choice then
    return
  end
  if next(declared) == nil then
    refuse("tool_choice: may only be specified while providing tools")
  end
  local kind = field(choice, "type", "string", "tool_choice.type")
  local ok = pcall(check.one_of, kind, { "auto", "any", "tool", "none" }, "tool_choice.type")
  if not ok then
    refuse("tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'")
  elseif kind == "tool" and not declared[choice.name] then
    refuse("tool_choice.name: Tool '%s' not found in provided tools", tostring(choice.name))
  end
end

-- With interleaved thinking the budget may exceed max_tokens, as it covers several answers.
local function check_thinking(body, beta)
  local thinking = check.given(body.thinking)
  if not thinking or field(thinking, "type", "string", "thinking.type") ~= "enabled" then
    return
  end
  local budget = field(thinking, "budget_tokens", "integer", "thinking.enabled.budget_tokens")
  if budget < 1024 then
    refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
  elseif budget >= body.max_tokens and not beta:find("interleaved-thinking", 1, true) then
    refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
  elseif check.given(body.temperature) and body.temperature ~= 1 then
    refuse("`temperature` may only be set to 1 when thinking is enabled.")
  end
end

local BLOCKS = {}

-- Text of the model itself may be blank.
function BLOCKS.text(block, place, turn)
  local text = field(block, "text", "string", at(place, "text", "text"))
  if text == "" then
    refuse("%s: text content blocks must be non-empty", place)
  elseif turn.role ~= "assistant" and not text:find("%S") then
    refuse("%s: text content blocks must contain non-whitespace text", place)
  end
end

function BLOCKS.image(block, place, turn)
  local source = field(block, "source", "object", at(place, "image", "source"))
  local kind = field(source, "type", "string", at(place, "image", "source", "type"))
  if turn.role ~= "user" then
    refuse("%s: `image` blocks are not permitted within %s turns", place, turn.role)
  elseif kind == "url" or kind == "file" then
    local member = kind == "url" and "url" or "file_id"
    field(source, member, "string", at(place, "image", "source", member))
  elseif not field(source, "media_type", "string", at(place, "image", "source")):find "^image/"
    or not field(source, "data", "string", at(place, "image", "source")):find "^[%w+/]+=?=?$" then
    refuse("%s: invalid base64 data", at(place, "image", "source", "base64"))
  end
end

function BLOCKS.tool_use(block, place, turn)
  local id = field(block, "id", "string", at(place, "tool_use", "id"))
  if turn.role ~= "assistant" then
    refuse("%s: `tool_use` blocks can only be in `assistant` messages", place)
  elseif not id:find(NAME) then
    refuse("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", place)
  end
  field(block, "name", "string", at(place, "tool_use", "name"))
  field(block, "input", "object", at(place, "tool_use", "input"))
  if not turn.pairing.call(id) then
    refuse("%s: `tool_use` ids must be unique", place)
  end
  if turn.last and turn.thinking and not turn.thought
    and signed.wanted(turn.memory, turn.conversation, id) then
    refuse("%s: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When "
      .. "`thinking` is enabled, a final `assistant` message must start with a thinking block",
      place)
  end
end

function BLOCKS.tool_result(block, place, turn)
  local id = field(block, "tool_use_id", "string", at(place, "tool_result", "tool_use_id"))
  if turn.role ~= "user" then
    refuse("%s: `tool_result` blocks can only be in `user` messages", place)
  elseif not turn.pairing.result(id) then
    refuse("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "
      .. "block must have a corresponding `tool_use` block in the previous message.", place, id)
  end
  for i, part in ipairs(check.is_array(block.content) and block.content or {}) do
    field(part, "type", "string", at(place, "tool_result", "content", i - 1, "type"))
    if part.type == "image" then
      BLOCKS.image(part, at(place, "tool_result", "content", i - 1), turn)
    end
    if part.type == "tool_reference" and not turn.declared[part.tool_name] then
      refuse("%s: Tool reference '%s' not found in available tools",
        at(place, "tool_result", "content", i - 1), tostring(part.tool_name))
    end
  end
end

function BLOCKS.thinking(block, place, turn)
  local text = field(block, "thinking", "string", at(place, "thinking", "thinking"))
  local signature = field(block, "signature", "string", at(place, "thinking", "signature"))
  local fault = signed.fault(turn.memory, turn.conversation, signature, text)
  if fault == "changed" and turn.last then
    refuse("%s: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be "
      .. "modified. These blocks must remain as they were in the original response.", place)
  elseif fault then
    refuse("%s: Invalid `signature` in `thinking` block", place)
  end
  turn.thought = true
end

function BLOCKS.redacted_thinking(block, place, turn)
  field(block, "data", "string", at(place, "redacted_thinking", "data"))
  turn.thought = true
end

local function has_beta(turn, ...)
  for _, name in ipairs { ... } do
    if turn.beta:find(name, 1, true) then
      return true
    end
  end
end

-- The blocks of the service's own search must come back unchanged; the tools that they name must
-- be declared.
function BLOCKS.server_tool_use(block, place, turn)
  local name = field(block, "name", "string", at(place, "server_tool_use", "name"))
  if name:find "^tool_search_tool_" and not turn.declared[name] then
    refuse("%s: Server tool '%s' is not in tools", place, name)
  end
  turn.searched = field(block, "id", "string", at(place, "server_tool_use", "id"))
end

function BLOCKS.tool_search_tool_result(block, place, turn)
  if block.tool_use_id ~= turn.searched then
    refuse("%s: unexpected `tool_use_id`: a `tool_search_tool_result` block must have a "
      .. "corresponding `server_tool_use` block before it", place)
  end
  local content = field(block, "content", "object", at(place, "tool_search_tool_result"))
  for _, part in ipairs(check.given(content.tool_references) or {}) do
    if turn.declared[part.tool_name] ~= "deferred" then
      refuse("%s: Tool reference '%s' not found in available tools", place,
        tostring(part.tool_name))
    end
  end
end

-- Checks a block that adds or removes a tool, by reference or by value.
local function check_change(block, place, turn)
  local tool = field(block, "tool", "object", at(place, block.type, "tool"))
  local by_value = tool.type == "tool_definition"
  if turn.role ~= "system" then
    refuse("%s: `%s` blocks can only be in `system` messages", place, block.type)
  elseif not has_beta(turn, "inline-tools-2026-09-15",
    not by_value and "mid-conversation-tool-changes-2026-07-01" or nil) then
    refuse("%s: Input tag '%s' found using 'type' does not match any of the expected tags "
      .. "(is the beta header missing?)", place, block.type)
  elseif by_value then
    turn.declared[field(field(tool, "definition", "object", place), "name", "string", place)] =
      "now"
  elseif not turn.declared[tool.name] then
    refuse("%s: tool_reference_unresolved: '%s' is not in tools", place, tostring(tool.name))
  end
end

BLOCKS.tool_addition, BLOCKS.tool_removal = check_change, check_change

-- Refuses calls of the message before that have no result in this one.
local function check_answered(turn, place)
  local missing = turn.pairing.missing()
  if missing[1] then
    refuse("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "
      .. "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
      place, table.concat(missing, ", "))
  end
end

local function check_blocks(blocks, turn)
  local waits, others = turn.role == "user" and turn.pairing.missing()[1], false
  for _, b in ipairs(blocks) do
    local kind = check.is_object(b.block) and b.block.type
    if type(kind) ~= "string" then
      refuse("%s.type: Field required", b.place)
    elseif kind == "tool_result" and others and waits then
      refuse("%s: `tool_result` blocks must come before other content", b.place)
    end
    others = others or kind ~= "tool_result"
    if BLOCKS[kind] then
      BLOCKS[kind](b.block, b.place, turn)
    end
  end
end

-- Adds the blocks of a message, each with its place. A plain text, checked here, is one block.
local function add_blocks(message, place, role, blocks)
  local content = check.given(message.content)
  if content == nil then
    refuse("%s.content: Field required", place)
  elseif content == "" and role ~= "assistant" then
    refuse("%s: %s messages must have non-empty content", place, role)
  elseif type(content) == "string" then
    content = { { type = "said" } }
  elseif not check.is_array(content) then
    refuse("%s.content: Input should be a valid string or list", place)
  end
  for i, block in ipairs(content) do
    blocks[#blocks + 1] = { block = block, place = at(place, "content", i - 1) }
  end
end

-- Returns the turns of a conversation, { role, place, blocks }: messages in a row with the same
-- role are one turn, as in the service.
local function turns_of(messages)
  local turns = {}
  for i, message in ipairs(messages) do
    local place = at("messages", i - 1)
    local role = field(message, "role", "string", at(place, "role"))
    if not pcall(check.one_of, role, { "user", "assistant", "system" }, place) then
      refuse("%s.role: Input should be 'user', 'assistant' or 'system'", place)
    elseif i == 1 and role ~= "user" then
      refuse("messages: first message must use the \"user\" role")
    elseif #turns == 0 or turns[#turns].role ~= role then
      turns[#turns + 1] = { role = role, place = place, blocks = {} }
    end
    turns.said = role == "assistant" and turns[#turns] or turns.said
    add_blocks(message, place, role, turns[#turns].blocks)
  end
  return turns
end

-- Returns the number of cache_control members in a value, at most 8 levels deep.
local function count_marks(value, depth)
  local n = 0
  if type(value) ~= "table" or depth > 8 then
    return 0
  end
  for key, inner in pairs(value) do
    n = n + (key == "cache_control" and check.given(inner) and 1 or count_marks(inner, depth + 1))
  end
  return n
end

local function check_marks(body)
  local n = count_marks({ body.tools, body.system, body.messages, body.cache_control }, 0)
  n = n + (check.given(body.cache_control) and 1 or 0)
  if n > MAX_MARKS then
    refuse("A maximum of %d blocks with cache_control may be provided. Found %d.", MAX_MARKS, n)
  end
end

local function check_messages(body, declared, context)
  local thinking = check.given(body.thinking) or {}
  local turns = turns_of(body.messages)
  local state = { pairing = check.pairing(), declared = declared, memory = context.memory,
    beta = context.headers["anthropic-beta"] or "", conversation = conversation_of(body),
    thinking = thinking.type == "enabled" or thinking.type == "adaptive" }
  for _, turn in ipairs(turns) do
    if turn.role ~= "user" then
      check_answered(state, turn.place)
    end
    state.role, state.thought, state.last = turn.role, false, turn == turns.said
    check_blocks(turn.blocks, state)
    if turn.role == "user" then
      check_answered(state, turn.place)
    end
  end
  check_answered(state, at("messages", #body.messages - 1))
end

--- Returns the request with the stored part of its conversation.
anthropic.expand = threads.resume

--- Raises a fault if the service would refuse the request.
function anthropic.check(body, context)
  if not context.headers["anthropic-version"] then
    refuse("anthropic-version: header is required")
  end
  field(body, "model", "string", "model")
  if context.kind ~= "count" then
    local max = field(body, "max_tokens", "integer", "max_tokens")
    if max < 0 then
      refuse("max_tokens: Input should be greater than or equal to 0")
    end
    check_thinking(body, context.headers["anthropic-beta"] or "")
  end
  if #field(body, "messages", "array", "messages") == 0 then
    refuse("messages: at least one message is required")
  end
  local declared = check_tools(body)
  check_choice(body, declared)
  check_marks(body)
  check_messages(body, declared, context)
end

-- -- the request of the scripted model ---------------------------------------------------------

local function tool_of(tool)
  return { name = tool.name, description = check.given(tool.description) or "",
    parameters = check.given(tool.input_schema) or ah.object {} }
end

-- Returns the kind of search that the service must make, or nil.
local function search_of(tool)
  return (check.given(tool.type) or ""):match "^tool_search_tool_(%w+)_%d+$"
end

-- Adds the tools that a list of references reveals.
local function take_references(references, taking)
  local specs = {}
  for _, part in ipairs(type(references) == "table" and references or {}) do
    specs[#specs + 1] = part.type == "tool_reference" and taking.deferred[part.tool_name] or nil
  end
  if specs[1] then
    table.insert(taking.entries, { type = "tools_added", tools = specs })
  end
end

-- Returns the images of a list of blocks in the form of entries; nil if there are none.
local function images_of(content)
  local images = {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    local source = block.type == "image" and block.source
    images[#images + 1] = source and { type = "image", url = source.url,
      mime = source.media_type, data = source.data } or nil
  end
  return images[1] and images or nil
end

local TAKE = {}

function TAKE.assistant(message, taking)
  local entry = { type = "assistant", content = ah.array {} }
  local text = text_of(message.content)
  if text ~= "" then
    entry.content[1] = { type = "text", text = text }
  end
  for _, block in ipairs(type(message.content) == "table" and message.content or {}) do
    if block.type == "tool_use" then
      entry.tool_calls = entry.tool_calls or {}
      table.insert(entry.tool_calls, { id = block.id, name = block.name,
        arguments = ah.json.encode(block.input) })
      taking.names[block.id] = block.name
    elseif block.type == "tool_search_tool_result" then
      take_references(block.content.tool_references, taking)
    end
  end
  table.insert(taking.entries, entry)
end

function TAKE.user(message, taking)
  local content, texts = message.content, {}
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if block.type == "tool_result" then
      table.insert(taking.entries, { type = "tool_result", id = block.tool_use_id,
        name = taking.names[block.tool_use_id], content = text_of(block.content),
        images = images_of(block.content) })
      take_references(block.content, taking)
    elseif block.type == "text" then
      texts[#texts + 1] = { type = "text", text = block.text }
    elseif block.type == "image" then
      texts[#texts + 1] = images_of({ block })[1]
    end
  end
  if type(content) == "string" then
    texts[1] = { type = "text", text = content }
  end
  if texts[1] then
    table.insert(taking.entries, { type = "user", content = texts })
  end
end

function TAKE.system(message, taking)
  local content = message.content
  if text_of(content) ~= "" then
    table.insert(taking.entries, { type = "note", text = text_of(content) })
  end
  for _, block in ipairs(type(content) == "table" and content or {}) do
    if block.type == "tool_addition" then
      local tool = block.tool
      local spec = tool.definition and tool_of(tool.definition) or taking.deferred[tool.name]
      table.insert(taking.entries, { type = "tools_added", tools = { spec } })
    elseif block.type == "tool_removal" then
      table.insert(taking.entries, { type = "tools_removed", names = { block.tool.name } })
    end
  end
end

local NO_OPTION = { model = true, messages = true, tools = true, system = true, stream = true,
  cache_control = true, thread = true }

-- Returns a copy of a value without cache_control, which is not part of the cached text.
local function unmarked(value)
  local copy = check.is_array(value) and ah.array {} or ah.object {}
  for key, inner in pairs(value) do
    copy[key] = key ~= "cache_control" and inner or nil
  end
  return copy
end

local Segments = {}
Segments.__index = Segments

function Segments:add(kind, value, prefix)
  local is_table = type(value) == "table"
  local text = is_table and ah.json.encode(unmarked(value)) or ah.json.encode(value)
  self[#self + 1] = { kind = kind, text = (prefix or "") .. text }
  if is_table and check.given(value.cache_control) then
    self.marks[#self] = true
  end
end

-- Returns the segments in the order of caching, without deferred tools.
local function segments_of(body)
  local segments = setmetatable({ marks = {} }, Segments)
  for _, tool in ipairs(check.given(body.tools) or {}) do
    if tool.defer_loading ~= true then
      segments:add("tools", tool)
    end
  end
  local function add_all(kind, content, prefix)
    if type(content) ~= "table" then
      content = { check.given(content) }
    end
    for _, block in ipairs(content) do
      segments:add(kind, type(block) == "string" and { type = "text", text = block } or block,
        prefix)
    end
  end
  add_all("system", body.system)
  for _, message in ipairs(body.messages) do
    add_all("messages", message.content, message.role .. " ")
  end
  if check.given(body.cache_control) then
    segments.marks[#segments] = true
  end
  return segments
end

--- Returns the request in the form of scripted models, its segments with the marks of the client,
-- and true if it is streamed.
function anthropic.read(body)
  local request = { model = body.model, system = text_of(body.system), tools = ah.array {},
    entries = ah.array {}, options = ah.object {} }
  local taking, deferred = { entries = request.entries, names = {}, deferred = {} }, {}
  for _, tool in ipairs(check.given(body.tools) or {}) do
    deferred.kind = deferred.kind or search_of(tool)
    if tool.defer_loading == true then
      taking.deferred[tool.name] = tool_of(tool)
      deferred[#deferred + 1] = taking.deferred[tool.name]
    elseif tool.name and not search_of(tool) then
      table.insert(request.tools, tool_of(tool))
    end
  end
  for key, value in pairs(body) do
    request.options[key] = not NO_OPTION[key] and value or nil
  end
  for _, message in ipairs(body.messages) do
    TAKE[message.role](message, taking)
  end
  local segments = segments_of(body)
  return { request = request, segments = segments, marks = segments.marks,
    deferred = deferred.kind and deferred,
    stream = body.stream == true }
end

-- -- answering ----------------------------------------------------------------------------

-- Returns the reasoning text for the client; "" if it wants only the signature.
local function thought_of(a)
  local thinking = check.is_object(a.body.thinking) and a.body.thinking or {}
  return thinking.display == "omitted" and "" or plan.joined(a.reasoning)
end

-- Records the parts that the client must send back later.
local function remember(a, signature)
  local conversation = conversation_of(a.body)
  if signature then
    signed.bind(a.memory, conversation, signature, thought_of(a))
  end
  for _, call in ipairs(a.calls) do
    signed.say(a.memory, conversation, call.id, signature)
  end
end

-- Adds a search by the service itself, as two blocks: the call and its result.
local function add_search(blocks, a, s, i)
  local id, references = ("srvtoolu_mock%d_%d"):format(a.n, i), ah.array {}
  local kind = "bm25"
  for _, tool in ipairs(a.body.tools) do
    kind = search_of(tool) or kind
  end
  for k, tool in ipairs(s.found) do
    references[k] = { type = "tool_reference", tool_name = tool.name }
  end
  local member = kind == "regex" and "pattern" or "query"
  blocks[#blocks + 1] = { type = "server_tool_use", id = id, name = "tool_search_tool_" .. kind,
    input = { [member] = s.query }, arguments = ah.json.encode { [member] = s.query } }
  blocks[#blocks + 1] = { type = "tool_search_tool_result", tool_use_id = id,
    content = { type = "tool_search_tool_search_result", tool_references = references } }
end

local function blocks_of(a)
  local blocks = ah.array {}
  local signature = a.reasoning and (a.signature or signed.made_up(a.n))
  remember(a, signature)
  if signature then
    blocks[1] = { type = "thinking", thinking = thought_of(a), signature = signature }
  end
  for i, s in ipairs(a.searches or {}) do
    add_search(blocks, a, s, i)
  end
  if plan.joined(a.text) ~= "" then
    blocks[#blocks + 1] = { type = "text", text = plan.joined(a.text) }
  end
  for _, call in ipairs(a.calls) do
    blocks[#blocks + 1] = { type = "tool_use", id = call.id, name = call.name,
      input = plan.object_of(call.arguments), arguments = call.arguments,
      caller = { type = "direct" } }
  end
  return blocks
end

local function usage_of(u, output, creation)
  return {
    input_tokens = u.input - u.cached_read - u.cached_write,
    cache_creation_input_tokens = u.cached_write,
    cache_read_input_tokens = u.cached_read,
    cache_creation = creation and { ephemeral_5m_input_tokens = u.cached_write,
      ephemeral_1h_input_tokens = 0 } or nil,
    output_tokens = output,
    service_tier = creation and "standard" or nil,
    inference_geo = creation and "not_available" or nil,
  }
end

local function stop_of(a)
  local details = a.refusal and { type = "refusal", category = ah.null, explanation = a.refusal }
  return { stop_reason = STOPS[a.stop], stop_sequence = ah.null, stop_details = details or ah.null }
end

local function message_of(a, blocks)
  return { id = "msg_mock" .. a.n, type = "message", role = "assistant", model = a.model,
    content = blocks }
end

local function merged(into, from)
  for key, value in pairs(from) do
    into[key] = value
  end
  return into
end

-- Returns a copy of a block as in a message, without the member that only streams use.
local function bare(block)
  local copy = merged({}, block)
  copy.arguments = nil
  return copy
end

local function bare_blocks(blocks)
  local copies = ah.array {}
  for i, block in ipairs(blocks) do
    copies[i] = bare(block)
  end
  return copies
end

--- Returns the whole answer.
function anthropic.whole(a)
  local blocks = bare_blocks(blocks_of(a))
  local message = merged(message_of(a, blocks), stop_of(a))
  threads.keep(a, message.id, blocks)
  message.usage = usage_of(a.usage, a.usage.output, true)
  return message
end

local PLAY = {}

function PLAY.text(a, _, delta, out)
  out:each(a.text, a.delay, function(piece) delta("text_delta", "text", piece) end)
end

function PLAY.thinking(a, block, delta, out)
  local told = block.thinking ~= "" and a.reasoning or nil
  out:each(told, a.delay, function(piece) delta("thinking_delta", "thinking", piece) end)
  delta("signature_delta", "signature", block.signature)
end

function PLAY.tool_use(_, block, delta, out)
  delta("input_json_delta", "partial_json", "")
  out:each(block.arguments == "{}" and "" or block.arguments, nil, function(piece)
    delta("input_json_delta", "partial_json", piece)
  end)
end

PLAY.server_tool_use = PLAY.tool_use

function PLAY.tool_search_tool_result() end -- it comes whole

local BEGUN = { text = { "text" }, thinking = { "thinking", "signature" } }

local function begun(block)
  local first = bare(block)
  for _, key in ipairs(BEGUN[block.type] or {}) do
    first[key] = ""
  end
  if block.type == "tool_use" or block.type == "server_tool_use" then
    first.input = ah.object {}
  end
  return first
end

--- Sends the answer as events.
function anthropic.stream(a, out)
  local function say(kind, event)
    event.type = kind
    out:event(kind, event)
  end
  local start = merged(message_of(a, ah.array {}), { stop_reason = ah.null,
    stop_sequence = ah.null, stop_details = ah.null, usage = usage_of(a.usage, 1, true) })
  say("message_start", { message = start })
  local blocks = blocks_of(a)
  for i, block in ipairs(blocks) do
    say("content_block_start", { index = i - 1, content_block = begun(block) })
    if i == 1 then
      say("ping", {})
    end
    PLAY[block.type](a, block, function(kind, member, piece)
      say("content_block_delta", { index = i - 1, delta = { type = kind, [member] = piece } })
    end, out)
    if not a.fault then
      say("content_block_stop", { index = i - 1 })
    end
  end
  if a.fault then
    out:event("error", anthropic.error(a.fault))
    return
  end
  say("message_delta", { delta = stop_of(a), usage = usage_of(a.usage, a.usage.output) })
  say("message_stop", {})
  threads.keep(a, start.id, bare_blocks(blocks))
end

--- POST /v1/messages/count_tokens
function anthropic.count(tokens)
  return { input_tokens = tokens }
end

-- -- failing -------------------------------------------------------------------------------

local TYPES = { [400] = "invalid_request_error", [401] = "authentication_error",
  [402] = "billing_error", [403] = "permission_error", [404] = "not_found_error",
  [409] = "conflict_error", [413] = "request_too_large", [429] = "rate_limit_error",
  [504] = "timeout_error", [529] = "overloaded_error" }

--- Returns the body of a failure.
function anthropic.error(fault)
  local kind = TYPES[fault.status] or (fault.status < 500 and "invalid_request_error")
  return { type = "error", request_id = fault.request_id,
    error = { type = fault.type or kind or "api_error", message = fault.message,
      details = fault.details } }
end

--- Returns the service's error for a full context, which always has numbers.
function anthropic.full(used, window)
  return { message = ("prompt is too long: %d tokens > %d maximum"):format(used or WINDOW + 1,
    window or WINDOW) }
end

--- GET /v1/models/NAME, asked with anthropic-version
function anthropic.model(name)
  return { type = "model", id = name, display_name = name, max_input_tokens = WINDOW,
    created_at = "2026-01-01T00:00:00Z", max_tokens = 64000 }
end

--- GET /v1/models, asked with anthropic-version
function anthropic.models(names)
  local data = {}
  for i, name in ipairs(names) do
    data[i] = anthropic.model(name)
  end
  return { data = data, has_more = false, first_id = names[1], last_id = names[#names] }
end

--- Returns the id of a call for which the script has none.
function anthropic.call_id(n, i)
  return ("toolu_mock%d_%d"):format(n, i)
end

return anthropic
