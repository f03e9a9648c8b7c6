--- Messages as scripts see them, from and to transcript entries.
--
-- A message is { role, content, tool_calls, tool_call_id, name, timestamp }; content is a
-- string, or a list of parts where there is more than text. Times are seconds.
local ah = ...

local M = {}

local function content_of(parts)
  local texts = {}
  for i, part in ipairs(parts) do
    if part.type ~= "text" then
      return parts
    end
    texts[i] = part.text
  end
  return table.concat(texts)
end

local from = {}

function from.user(e)
  return { role = "user", content = content_of(e.content) }
end

function from.assistant(e)
  return { role = "assistant", content = content_of(e.content), tool_calls = e.tool_calls }
end

function from.tool_result(e)
  return {
    role = "tool",
    tool_call_id = e.id,
    name = e.name,
    content = e.content,
    success = e.success,
  }
end

function from.prompt(e)
  return { role = "system", content = e.text }
end

from.note = from.prompt

--- The messages among a list of decoded entries.
function M.from_entries(entries)
  local messages = {}
  for _, e in ipairs(entries) do
    local convert = from[e.type]
    if convert then
      local message = convert(e)
      message.timestamp = e.time and e.time / 1000
      messages[#messages + 1] = message
    end
  end
  return messages
end

local function fail(at, text, ...)
  error(("messages[%d]: " .. text):format(at, ...), 0)
end

local function has_text(part)
  return type(part.text) == "string"
end

-- What a part must have, by who may say it.
local USER = { text = has_text }
local ASSISTANT = {
  text = has_text,
  refusal = has_text,
  opaque = function(part)
    return type(part.origin) == "table" and type(part.data) == "table"
  end,
}

local function parts_of(at, content, kinds)
  if type(content) == "string" then
    return ah.array { { type = "text", text = content } }
  elseif type(content) ~= "table" then
    fail(at, "content must be a string or a list of parts, found %s", type(content))
  end
  for i, part in ipairs(content) do
    local sound = type(part) == "table" and kinds[part.type]
    if not (sound and sound(part)) then
      fail(
        at,
        'content[%d] must be a part { type = "text", text = "..." }; others cannot be sent',
        i
      )
    end
  end
  return ah.array(content)
end

local function call_of(at, call)
  if type(call) ~= "table" or type(call.id) ~= "string" or type(call.name) ~= "string" then
    fail(at, "a tool call needs id and name")
  end
  local arguments = call.arguments or "{}"
  if type(arguments) == "table" then
    arguments = ah.json.encode(arguments)
  end
  return { id = call.id, name = call.name, arguments = arguments }
end

local to = {}

-- The first is the prompt; later ones are said where they stand.
function to.system(at, m, prompted)
  if type(m.content) ~= "string" then
    fail(at, "content of a system message must be a string")
  end
  return { type = prompted and "note" or "prompt", text = m.content }
end

function to.user(at, m)
  return { type = "user", content = parts_of(at, m.content, USER) }
end

function to.assistant(at, m)
  local calls
  for i, call in ipairs(m.tool_calls or {}) do
    calls = calls or ah.array {}
    calls[i] = call_of(at, call)
  end
  local content = m.content == nil and ah.array {} or parts_of(at, m.content, ASSISTANT)
  return { type = "assistant", content = content, tool_calls = calls }
end

function to.tool(at, m)
  if type(m.tool_call_id) ~= "string" or type(m.content) ~= "string" then
    fail(at, "a tool message needs tool_call_id and content")
  end
  return {
    type = "tool_result",
    id = m.tool_call_id,
    name = m.name or "",
    content = m.content,
    success = m.success ~= false,
  }
end

--- Entries (type name and JSON text, alternating) of a list of messages.
function M.to_entries(messages)
  local out, prompted = {}, false
  for i, m in ipairs(messages) do
    local convert = type(m) == "table" and to[m.role]
    if not convert then
      fail(i, "role must be system, user, assistant or tool")
    end
    local entry = convert(i, m, prompted)
    prompted = prompted or m.role == "system"
    entry.time = m.timestamp and math.floor(m.timestamp * 1000) or nil
    out[#out + 1] = entry.type
    out[#out + 1] = ah.json.encode(entry)
  end
  return out
end

return M
