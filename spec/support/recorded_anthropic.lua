--- A plain reader of recorded Anthropic Messages: reads responses, and turns requests into
-- transcripts. Independent of the adapter, which the specs compare with it.
--
--   M.read(x) -> as recordings.read, and opaque = { { data =, calls = } }
--   M.entries(body, origin) -> the entries (tables) that should be lowered to this request, and
--     their number up to the first message
--   M.explained(body) -> the request in a form that does not depend on its client
local recordings = require "support.recordings"
local server = require "support.server"

local M = {}

-- -- responses ---------------------------------------------------------------------------

local STATUS = {
  invalid_request_error = 400,
  authentication_error = 401,
  permission_error = 403,
  not_found_error = 404,
  rate_limit_error = 429,
  api_error = 500,
  overloaded_error = 529,
}

local STOPS = {
  end_turn = "end",
  max_tokens = "length",
  model_context_window_exceeded = "context_full",
  stop_sequence = "stop_sequence",
  refusal = "refusal",
}

local function given(value)
  return value ~= server.null and value or nil
end

local function take_usage(r, usage)
  for key, value in pairs(given(usage) or {}) do
    r.usage[key] = given(value) or r.usage[key]
  end
end

local function take_stop(r, said)
  r.word = given(said.stop_reason) or r.word
  local details = given(said.stop_details)
  r.why = details and given(details.explanation) or r.why
end

local DELTAS = {}

function DELTAS.text_delta(block, delta)
  block.text = block.text .. delta.text
end

function DELTAS.input_json_delta(block, delta)
  block.json = (block.json or "") .. delta.partial_json
end

function DELTAS.thinking_delta(block, delta)
  block.thinking = block.thinking .. delta.thinking
end

function DELTAS.signature_delta(block, delta)
  block.signature = (block.signature or "") .. delta.signature
end

local EVENTS = {}

function EVENTS.message_start(r, e)
  if r.id and r.id ~= e.message.id then
    r.spliced, r.blocks = r.blocks, {}
  end
  r.id = e.message.id
  take_usage(r, e.message.usage)
end

function EVENTS.content_block_start(r, e)
  r.blocks[#r.blocks + 1] = e.content_block
end

function EVENTS.content_block_delta(r, e)
  local take = DELTAS[e.delta.type]
  if take then
    take(r.blocks[#r.blocks], e.delta)
  end
end

function EVENTS.content_block_stop(r)
  r.blocks[#r.blocks].closed = true
end

function EVENTS.message_delta(r, e)
  take_usage(r, e.usage)
  take_stop(r, e.delta)
end

function EVENTS.message(r, e)
  r.id, r.blocks = e.id, e.content
  for _, block in ipairs(r.blocks) do
    block.closed = true
  end
  take_usage(r, e.usage)
  take_stop(r, e)
end

local function call_of(block)
  local input = block.json or (next(block.input) and server.encode(block.input))
  return { id = block.id, name = block.name, arguments = input or "" }
end

local function opaque_of(block)
  local data = {}
  for key, value in pairs(block) do
    data[key] = value
  end
  data.closed, data.json = nil, nil
  if block.json and block.json ~= "" then
    data.input = server.decode(block.json)
  end
  return data
end

-- Returns the text, refusal, calls and opaque parts of the blocks, in agenthost's terms.
local function result_of(r)
  local all = { text = "", refusal = r.why or "", calls = {}, opaque = {} }
  for _, block in ipairs(r.spliced or {}) do
    all.text = all.text .. (block.type == "text" and block.text or "")
  end
  for _, block in ipairs(r.blocks) do
    if block.type == "text" then
      all.text = all.text .. block.text
    elseif block.type == "tool_use" then
      table.insert(all.calls, call_of(block))
    elseif block.closed then
      table.insert(all.opaque, { data = opaque_of(block), calls = #all.calls })
    end
  end
  return all
end

local function usage_of(u)
  local read, written = u.cache_read_input_tokens or 0, u.cache_creation_input_tokens or 0
  local details = u.output_tokens_details or {}
  return {
    input = (u.input_tokens or 0) + read + written,
    cached_read = read,
    cached_write = written,
    output = u.output_tokens or 0,
    reasoning = details.thinking_tokens or 0,
    known = next(u) ~= nil,
  }
end

local function finished(r)
  local all = result_of(r)
  all.stop_word, all.usage, all.stop = r.word, usage_of(r.usage), STOPS[r.word] or "end"
  if r.word == "refusal" then
    all.calls, all.opaque = {}, {}
  elseif all.calls[1] and r.word ~= "max_tokens" then
    all.stop = "tool_calls"
  end
  return all
end

--- Reads a response plainly, without the adapter.
function M.read(x)
  local r, refused = { blocks = {}, usage = {} }, recordings.refused(x)
  if refused then
    return refused
  end
  local next_event = recordings.is_stream(x) and recordings.events(x.body)
    or coroutine.wrap(function()
      coroutine.yield(server.decode(x.body))
    end)
  for e in next_event do
    if given(e.error) then
      return recordings.failure(x, STATUS[e.error.type] or x.status, e.error)
    end
    local take = EVENTS[e.type]
    if take then
      take(r, e)
    end
  end
  return r.id and r.word and finished(r) or { error = "", retryable = true }
end

-- -- requests ----------------------------------------------------------------------------

local function is_search(tool)
  return (tool.type or ""):find "^tool_search_tool_" ~= nil
end

-- Returns "provider" if the provider searches for tools, "here" if results refer to tools, else
-- nil.
local function who_searches(body)
  for _, tool in ipairs(body.tools or {}) do
    if is_search(tool) then
      return "provider"
    end
  end
  return server.encode(body.messages):find('"tool_name":', 1, true) and "here"
end

local function text_of(content)
  if type(content) == "string" then
    return content
  end
  local texts = {}
  for _, block in ipairs(content) do
    texts[#texts + 1] = block.text
  end
  return table.concat(texts)
end

local function blocks_of(content)
  return type(content) == "string" and { { type = "text", text = content } } or content
end

local function spec_of(tool)
  return {
    name = tool.name,
    description = tool.description or "",
    parameters = tool.input_schema or { type = "object" },
    strict = tool.strict,
  }
end

local function tools_entry(tools)
  return tools[1] and { type = "tools_added", tools = server.array(tools) }
end

local to_entries = {}

-- Returns the entry of the tools that a list of references names, as found by a search.
local function found_entry(body, references, by)
  local specs = server.array {}
  by.strategy, by.found = "search", server.array {}
  for _, reference in ipairs(type(references) == "table" and references or {}) do
    for _, tool in ipairs(reference.tool_name and body.tools or {}) do
      if tool.name == reference.tool_name then
        table.insert(by.found, tool.name)
        table.insert(specs, spec_of(tool))
      end
    end
  end
  return specs[1] and { type = "tools_added", tools = specs, by = by }
end

function to_entries.user(m, add, body, origin, before)
  local parts, found = server.array {}, server.array {}
  for _, block in ipairs(before and blocks_of(before.content) or {}) do
    local references = block.type == "tool_search_tool_result" and block.content.tool_references
    found[#found + 1] = found_entry(body, references, { origin = origin }) or nil
  end
  for _, block in ipairs(blocks_of(m.content)) do
    if block.type == "tool_result" then
      local shown = found_entry(body, block.content, { call = block.tool_use_id })
      add {
        type = "tool_result",
        id = block.tool_use_id,
        name = shown and "search_tools" or "",
        content = text_of(block.content),
        success = block.is_error ~= true,
      }
      found[#found + 1] = shown or nil
    else
      parts[#parts + 1] = { type = "text", text = block.text }
    end
  end
  for _, entry in ipairs(found) do
    add(entry)
  end
  if parts[1] then
    add { type = "user", content = parts }
  end
end

function to_entries.assistant(m, add, _, origin)
  local parts, calls = server.array {}, server.array {}
  for _, block in ipairs(blocks_of(m.content)) do
    if block.type == "tool_use" then
      local call = { id = block.id, name = block.name, arguments = server.encode(block.input) }
      if next(block.input) == nil then
        call.arguments = "{}"
      end
      calls[#calls + 1] = call
    elseif block.type == "text" then
      parts[#parts + 1] = block
    else
      table.insert(
        parts,
        { type = "opaque", origin = origin, calls = #calls > 0 and #calls or nil, data = block }
      )
    end
  end
  add { type = "assistant", content = parts, tool_calls = calls[1] and calls }
end

local function definition(body, change)
  if change.tool.definition then
    return spec_of(change.tool.definition)
  end
  for _, tool in ipairs(body.tools) do
    if tool.name == change.tool.name then
      return spec_of(tool)
    end
  end
end

function to_entries.system(m, add, body)
  for _, block in ipairs(blocks_of(m.content)) do
    if block.type == "text" then
      add { type = "note", text = block.text }
    elseif block.type == "tool_addition" then
      add(tools_entry { definition(body, block) })
    elseif block.type == "tool_removal" then
      add { type = "tools_removed", names = { block.tool.name } }
    end
  end
end

local function options_of(body)
  local choice, thinking = given(body.tool_choice), given(body.thinking)
  if choice then
    local words = { any = "required", tool = { name = choice.name } }
    choice = words[choice.type] or choice.type
  end
  local effort = thinking and thinking.type == "adaptive" and body.output_config.effort or nil
  return {
    max_tokens = body.max_tokens,
    temperature = given(body.temperature),
    top_p = given(body.top_p),
    stop = given(body.stop_sequences),
    tool_choice = choice,
    reasoning = effort,
  }
end

--- See the opening comment. Deferred tools are added where they are revealed, or wait to be found.
function M.entries(body, origin)
  local list = {
    { type = "settings", model = "anthropic/" .. body.model, options = options_of(body) },
  }
  local function add(entry)
    list[#list + 1] = entry
  end
  local eager, deferred, who = {}, server.array {}, who_searches(body)
  for _, tool in ipairs(body.tools or {}) do
    if tool.defer_loading then
      deferred[#deferred + 1] = who and spec_of(tool) or nil
    elseif not is_search(tool) then
      eager[#eager + 1] = spec_of(tool)
    end
  end
  if given(body.system) then
    add { type = "prompt", text = text_of(body.system) }
  end
  add(tools_entry(eager) or nil)
  if deferred[1] then
    add { type = "tools_deferred", tools = deferred, search = who }
  end
  local head = #list
  for i, m in ipairs(body.messages) do
    to_entries[m.role](m, add, body, origin, body.messages[i - 1])
  end
  return list, head
end

-- Members that we leave at their default or have no field for, and marks of caching.
local NOT_OURS = { "cache_control", "metadata", "stream", "thinking" }

local function strip(value)
  if type(value) == "table" and value ~= server.null then
    value.cache_control = nil
    for _, v in pairs(value) do
      strip(v)
    end
  end
end

local EXPLAIN = {}

-- is_error is compared as true or absent, as false is the default. The text of results is one
-- string in our requests.
function EXPLAIN.tool_result(block)
  local first = type(block.content) == "table" and block.content[1]
  if not (first and first.type == "tool_reference") then
    block.content = text_of(block.content or "")
  end
  block.is_error = block.is_error or nil
end

-- `caller` is left out: it is always the model. An empty input is the same as "{}".
function EXPLAIN.tool_use(block)
  block.caller = nil
  block.input = next(block.input) and block.input or "{}"
end

local function explained_messages(messages)
  local list = {}
  for _, m in ipairs(messages) do
    local last = list[#list]
    if not last or last.role ~= m.role then
      last = { role = m.role, content = {} }
      list[#list + 1] = last
    end
    for _, block in ipairs(blocks_of(m.content)) do
      local explain = EXPLAIN[block.type]
      if explain then
        explain(block)
      end
      if block.type ~= "text" or block.text:find("%S") then -- we send no block of blanks
        table.insert(last.content, block)
      end
    end
  end
  return list
end

-- Returns the tools by name. If there is no search, deferred tools that are not revealed yet are
-- left out, and so is our placeholder.
local function explained_tools(body)
  local list, revealed, who = {}, server.encode(body.messages), who_searches(body)
  for _, t in ipairs(body.tools or {}) do
    local shown = not t.defer_loading or who and t.name ~= "deferred_tool_placeholder"
      or revealed:find(('"name":%s,"type":"tool_reference"'):format(server.encode(t.name)), 1, true)
    if shown then
      list[#list + 1] = is_search(t) and { name = t.name, type = t.type }
        or {
          name = t.name,
          description = t.description or "",
          input_schema = t.input_schema,
          strict = t.strict,
          defer_loading = t.defer_loading or nil,
        }
    end
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list[1] and list
end

--- See the opening comment.
function M.explained(body)
  strip(body)
  if given(body.output_config) then
    body.output_config.format = nil -- structured answers are not a field of ours yet
    if not body.thinking then
      body.output_config.effort = nil -- an effort without thinking cannot be requested
    end
    body.output_config = next(body.output_config) and body.output_config or nil
  end
  for _, key in ipairs(NOT_OURS) do
    body[key] = nil
  end
  body.tools = explained_tools(body)
  body.system = given(body.system) and text_of(body.system) or nil
  body.messages = explained_messages(body.messages)
  return body
end

return M
