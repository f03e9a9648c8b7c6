--- A plain reader of recorded OpenAI Responses: reads responses, and turns requests into
-- transcripts. Independent of the adapter, which the specs compare with it.
--
--   M.read(x) -> as recordings.read, and opaque = { { data =, calls = } }
--   M.entries(body, origin) -> the entries (tables) that should be lowered to this request
--   M.explained(body) -> the request in a form that does not depend on its client
local recordings = require "support.recordings"
local server = require "support.server"

local M = {}

local function given(value)
  return value ~= server.null and value or nil
end

-- -- responses ---------------------------------------------------------------------------

local function mark(r, item, name)
  if given(item[name]) then
    table.insert(r.opaque, { data = { [name] = item[name] }, calls = #r.calls })
  end
end

local ITEMS = {}

function ITEMS.message(r, item)
  for _, part in ipairs(item.content) do
    r.text = r.text .. (part.type == "output_text" and part.text or "")
    r.refusal = r.refusal .. (part.refusal or "")
  end
  mark(r, item, "phase")
end

function ITEMS.function_call(r, item)
  table.insert(r.calls, { id = item.call_id, name = item.name, arguments = item.arguments })
  mark(r, item, "namespace")
end

function ITEMS.reasoning(r, item)
  if given(item.encrypted_content) then
    table.insert(r.opaque, { data = item, calls = #r.calls })
  end
end

function ITEMS.tool_search_call(r, item)
  if item.execution == "client" then
    local arguments = server.encode(item.arguments)
    table.insert(r.calls, { id = item.call_id, name = "search_tools", arguments = arguments })
  else
    table.insert(r.opaque, { data = item, calls = #r.calls })
  end
end

function ITEMS.tool_search_output(r, item)
  table.insert(r.opaque, { data = item, calls = #r.calls })
end

local function usage_of(u)
  local input = u and given(u.input_tokens_details) or {}
  local output = u and given(u.output_tokens_details) or {}
  return {
    input = u and u.input_tokens or 0,
    cached_read = input.cached_tokens or 0,
    cached_write = input.cache_write_tokens or 0,
    output = u and u.output_tokens or 0,
    reasoning = output.reasoning_tokens or 0,
    known = u ~= nil,
  }
end

local INCOMPLETE = { max_output_tokens = "length", content_filter = "content_filter" }

local function result_of(response)
  local r = { text = "", refusal = "", calls = {}, opaque = {} }
  for _, item in ipairs(response.output) do
    local take = ITEMS[item.type]
    if take then
      take(r, item)
    end
  end
  local details = given(response.incomplete_details)
  r.usage = usage_of(given(response.usage))
  r.stop_word = details and details.reason or given(response.status)
  r.stop = details and INCOMPLETE[details.reason] or "end"
  if r.calls[1] and not details then
    r.stop = "tool_calls"
  elseif r.refusal ~= "" and not details then
    r.stop = "refusal"
  end
  return r
end

local STATUS = { rate_limit_exceeded = 429, server_error = 500, invalid_prompt = 400 }

local function failed(x, error)
  return recordings.failure(x, STATUS[error.code] or x.status, error)
end

local function read_stream(x)
  local items = server.array {}
  for e in recordings.events(x.body) do
    if e.type == "error" then
      return failed(x, given(e.error) or e)
    elseif e.type == "response.output_item.done" then
      items[#items + 1] = e.item
    elseif e.response and given(e.response.error) then
      return failed(x, e.response.error)
    elseif e.type == "response.completed" or e.type == "response.incomplete" then
      e.response.output = items[1] and items or e.response.output
      return result_of(e.response)
    end
  end
  return { error = "", retryable = true }
end

--- Reads a response plainly, without the adapter.
function M.read(x)
  local refused = recordings.refused(x)
  if refused then
    return refused
  elseif recordings.is_stream(x) then
    return read_stream(x)
  end
  local doc = server.decode(x.body)
  if given(doc.error) then
    return failed(x, doc.error)
  end
  local told = doc.status == "completed" or doc.status == "incomplete"
  return doc.output and told and result_of(doc) or { error = "", retryable = true }
end

-- -- requests ----------------------------------------------------------------------------

local function text_of(content)
  if type(content) == "string" then
    return content
  end
  local texts = {}
  for _, part in ipairs(content) do
    texts[#texts + 1] = part.text
  end
  return table.concat(texts)
end

local function spec_of(t)
  return { name = t.name, description = t.description or "", parameters = t.parameters,
    strict = t.strict == true or nil }
end

-- Returns true for a search that the client carries out; it is one of our tools.
local function is_ours(t)
  return t.type == "tool_search" and t.execution == "client"
end

local function specs_of(tools)
  local list = server.array {}
  for _, t in ipairs(tools or {}) do
    if is_ours(t) then
      list[#list + 1] =
        { name = "search_tools", description = t.description, parameters = t.parameters }
    else
      list[#list + 1] = t.type == "function" and not t.defer_loading and spec_of(t) or nil
    end
  end
  return list[1] and { type = "tools_added", tools = list }
end

local function deferred_of(tools)
  local list = server.array {}
  for _, t in ipairs(tools or {}) do
    list[#list + 1] = t.defer_loading and spec_of(t) or nil
  end
  return list[1] and { type = "tools_deferred", tools = list }
end

-- Returns the assistant entry at the end of the list, or a new one: consecutive items of the model
-- share one entry.
local function assistant(list)
  local last = list[#list]
  if last.type ~= "assistant" then
    last = { type = "assistant", content = server.array {} }
    list[#list + 1] = last
  end
  return last
end

local function keep(list, origin, data)
  local a = assistant(list)
  local calls = a.tool_calls and #a.tool_calls or nil
  table.insert(a.content, { type = "opaque", origin = origin, calls = calls, data = data })
end

local to_entries = {}

function to_entries.message(list, item, origin)
  if item.role == "assistant" then
    table.insert(assistant(list).content, { type = "text", text = text_of(item.content) })
    if item.phase then
      keep(list, origin, { phase = item.phase })
    end
  elseif item.role == "user" then
    local parts = server.array { { type = "text", text = text_of(item.content) } }
    list[#list + 1] = { type = "user", content = parts }
  else
    list[#list + 1] = { type = "note", text = text_of(item.content) }
  end
end

function to_entries.function_call(list, item, origin)
  local a = assistant(list)
  a.tool_calls = a.tool_calls or server.array {}
  table.insert(a.tool_calls, { id = item.call_id, name = item.name, arguments = item.arguments })
  if item.namespace then
    keep(list, origin, { namespace = item.namespace })
  end
end

function to_entries.tool_search_call(list, item, origin)
  if item.execution ~= "client" then
    return keep(list, origin, item)
  end
  local a = assistant(list)
  a.tool_calls = a.tool_calls or server.array {}
  table.insert(a.tool_calls, { id = item.call_id, name = "search_tools",
    arguments = server.encode(item.arguments) })
end

function to_entries.tool_search_output(list, item, origin)
  if item.execution ~= "client" then
    return keep(list, origin, item)
  end
  local tools, found = server.array {}, server.array {}
  for i, t in ipairs(item.tools) do
    tools[i], found[i] = spec_of(t), t.name
  end
  list[#list + 1] = { type = "tool_result", id = item.call_id, name = "search_tools",
    content = "Found.", success = true }
  list[#list + 1] = { type = "tools_added", tools = tools,
    by = { strategy = "search", call = item.call_id, found = found } }
end

function to_entries.reasoning(list, item, origin)
  keep(list, origin, item)
end

function to_entries.function_call_output(list, item)
  list[#list + 1] = { type = "tool_result", id = item.call_id, name = "", success = true,
    content = text_of(item.output) }
end

function to_entries.additional_tools(list, item)
  list[#list + 1] = specs_of(item.tools)
end

local function options_of(body)
  local choice = given(body.tool_choice)
  if type(choice) == "table" then
    choice = choice.type == "function" and { name = choice.name } or nil
  end
  return {
    max_tokens = given(body.max_output_tokens),
    temperature = given(body.temperature),
    top_p = given(body.top_p),
    tool_choice = choice,
    cache_key = given(body.prompt_cache_key),
    reasoning = body.reasoning and given(body.reasoning.effort) or nil,
  }
end

local function items_of(body)
  if type(body.input) == "string" then
    return { { role = "user", content = body.input } }
  end
  return body.input
end

--- See the opening comment.
function M.entries(body, origin)
  local list = {
    { type = "settings", model = "openai/responses/" .. body.model, options = options_of(body) },
  }
  if given(body.instructions) then
    list[2] = { type = "prompt", text = body.instructions }
  end
  list[#list + 1] = specs_of(body.tools) or nil
  list[#list + 1] = deferred_of(body.tools) or nil
  for _, item in ipairs(items_of(body)) do
    to_entries[item.type or "message"](list, item, origin)
  end
  return list
end

-- Members that we leave at their default or have no field for.
local NOT_OURS = {
  "stream", "text", "parallel_tool_calls", "truncation", "prompt_cache_options", "include", "store",
  "previous_response_id", "stream_options", "background", "metadata", "user", "service_tier",
}

local EXPLAIN = {}

-- Our requests have `developer` where a client has `system`; ids of items need not be sent back.
function EXPLAIN.message(item)
  local role = item.role == "system" and "developer" or item.role
  return { role = role, content = text_of(item.content), phase = item.phase }
end

function EXPLAIN.function_call(item)
  item.id, item.status, item.caller = nil, nil, nil
  return item
end

function EXPLAIN.function_call_output(item)
  return { type = item.type, call_id = item.call_id, output = text_of(item.output) }
end

local function definition(t)
  return { name = t.name, description = t.description or "", parameters = t.parameters,
    strict = t.strict == true }
end

local function definitions(tools)
  local list = {}
  for _, t in ipairs(tools or {}) do
    list[#list + 1] = t.type == "function" and definition(t) or nil
  end
  return list
end

-- Our requests have `strict` false; a client leaves it out.
function EXPLAIN.additional_tools(item)
  item.tools = definitions(item.tools)
  return item
end

function EXPLAIN.tool_search_call(item)
  if item.execution == "client" then
    item.id = nil
  end
  return item
end

function EXPLAIN.tool_search_output(item)
  return item.execution == "client" and { type = item.type, call_id = item.call_id,
    tools = definitions(item.tools) } or item
end

local function by_name(a, b)
  return a.name < b.name
end

-- If agenthost searches for tools itself, it declares them only where they are found.
local function explained_tools(tools)
  local list, ours = {}, false
  for _, t in ipairs(tools or {}) do
    ours = ours or is_ours(t)
  end
  for _, t in ipairs(tools or {}) do
    if t.type == "tool_search" then
      list[#list + 1] = { name = "", execution = t.execution, description = t.description,
        parameters = t.parameters }
    elseif t.type == "function" and not (ours and t.defer_loading) then
      list[#list + 1] = definition(t)
      list[#list].defer_loading = t.defer_loading
    end
  end
  table.sort(list, by_name)
  return list[1] and list
end

--- See the opening comment.
function M.explained(body)
  for _, key in ipairs(NOT_OURS) do
    body[key] = nil
  end
  body.reasoning = body.reasoning and given(body.reasoning.effort)
    and { effort = body.reasoning.effort } or nil
  body.instructions = given(body.instructions)
  body.tools = explained_tools(body.tools)
  local choice = given(body.tool_choice)
  if not body.tools or type(choice) == "table" and choice.type == "allowed_tools" then
    body.tool_choice = nil -- nothing to choose, or a choice of some tools, which is no option yet
  end
  local input = {}
  for i, item in ipairs(items_of(body)) do
    local explain = EXPLAIN[item.type or "message"]
    input[i] = explain and explain(item) or item
  end
  body.input = input
  return body
end

return M
