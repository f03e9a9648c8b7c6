--- Message threads of Anthropic: the server stores a conversation between requests, and a client
-- sends only new messages and the id of the answer before. The whole request is built here; the
-- code that checks, reads and answers it needs no knowledge of threads.
local ah, use = ...
local check = use "mock.check"

local threads = {}

local BETA = "message-threads-2026-08-12"
local MAX_KEPT = 10000 -- answers that can be continued; then all are forgotten
local FIXED = { "model", "thinking", "tool_choice", "cache_control" }

local function refuse(code, status, text, ...)
  check.refuse { message = text:format(...), status = status, details = { error_code = code } }
end

local function as_text(value)
  return value == nil and "" or ah.json.encode(value)
end

-- Returns a list of messages, blocks or tools without their marks of caching, which apply only to
-- the request that sent them.
local function unmarked(list)
  if type(list) ~= "table" then
    return list
  end
  local copies = ah.array {}
  for i, item in ipairs(list) do
    copies[i] = {}
    for key, value in pairs(check.is_object(item) and item or {}) do
      value = key == "content" and unmarked(value) or value
      copies[i][key] = key ~= "cache_control" and value or nil
    end
  end
  return copies
end

local function found(memory, id)
  local kept = type(id) == "string" and (memory.threads or {})[id]
  if not kept then
    refuse("thread_not_found", 404, "thread: no usable thread state was found for "
      .. "`previous_message_id` '%s'", tostring(id))
  elseif kept.continued then
    refuse("thread_already_continued", 400, "thread: the response '%s' has already been "
      .. "continued", id)
  end
  return kept
end

local function check_same(body, before)
  for _, name in ipairs { "system", "tools" } do
    if check.given(body[name]) ~= nil then
      check.refuse("%s: not permitted with `thread.type` 'continue': the thread keeps it", name)
    end
  end
  for _, name in ipairs(FIXED) do
    if as_text(check.given(body[name])) ~= as_text(check.given(before[name])) then
      refuse("thread_fingerprint_mismatch", 400, "thread: `%s` differs from the value that the "
        .. "thread was created with", name)
    end
  end
end

-- Returns the request as it would be without a thread.
local function continued(body, kept)
  local whole = {}
  for key, value in pairs(body) do
    whole[key] = value
  end
  whole.system, whole.tools = kept.body.system, kept.body.tools
  local messages = check.is_array(body.messages) and body.messages or {}
  whole.messages = table.move(kept.body.messages, 1, #kept.body.messages, 1, ah.array {})
  table.move(messages, 1, #messages, #whole.messages + 1, whole.messages)
  return whole
end

--- Returns the request with the whole conversation that it continues, or unchanged.
function threads.resume(body, context)
  local thread = check.given(body.thread)
  if thread == nil then
    return body
  elseif not (context.headers["anthropic-beta"] or ""):find(BETA, 1, true) then
    refuse("thread_unsupported_request", 400, "thread: Extra inputs are not permitted (is the beta "
      .. "header %s missing?)", BETA)
  elseif not check.is_object(thread) then
    check.refuse "thread: Input should be a valid dictionary or object"
  elseif thread.type == "create" then
    return body
  elseif thread.type ~= "continue" then
    check.refuse "thread.type: Input should be 'create' or 'continue'"
  end
  local kept = found(context.memory, thread.previous_message_id)
  check_same(body, kept.body)
  return continued(body, kept)
end

--- Stores a complete answer, for the request that continues it; a refusal is not stored.
---@param a table the answer; `body` as resume() gave it
function threads.keep(a, id, content)
  local thread, memory = check.given(a.body.thread), a.memory
  if not thread or a.refusal or a.cut or not check.is_array(a.body.messages) then
    return
  end
  memory.threads_n = (memory.threads_n or 0) % MAX_KEPT + 1
  memory.threads = memory.threads_n > 1 and memory.threads or {}
  local before = memory.threads[thread.previous_message_id]
  if before then
    before.continued, before.body = true, nil
  end
  local body = {}
  for key, value in pairs(a.body) do
    body[key] = value
  end
  body.system, body.tools = unmarked(body.system), unmarked(body.tools)
  body.messages = unmarked(body.messages)
  table.insert(body.messages, { role = "assistant", content = content })
  memory.threads[id] = { body = body }
end

return threads
