--- Converts transcript entries to messages, as scripts see them, and back.
--
-- A message is { role, content, tool_calls, tool_call_id, name, timestamp }. content is a string,
-- or a list of parts if there is more than text. Image data is bytes in messages, base64 in
-- entries. Times are in seconds.
local ah = ...

local M = {}

local function content_of(parts)
  local texts, plain = {}, true
  for i, part in ipairs(parts) do
    if part.type == "image" then
      parts[i] = ah._image_of(part)
    end
    plain = plain and part.type == "text"
    texts[i] = part.text
  end
  return plain and table.concat(texts) or parts
end

local from = {}

function from.user(e)
  return { role = "user", content = content_of(e.content) }
end

function from.assistant(e)
  return { role = "assistant", content = content_of(e.content), tool_calls = e.tool_calls }
end

local function result_parts(e)
  local parts = ah.array {}
  if e.content ~= "" then
    parts[1] = { type = "text", text = e.content }
  end
  return ah.array(table.move(e.images, 1, #e.images, #parts + 1, parts))
end

function from.tool_result(e)
  return {
    role = "tool",
    tool_call_id = e.id,
    name = e.name,
    content = e.images and content_of(result_parts(e)) or e.content,
    success = e.success,
  }
end

function from.prompt(e)
  return { role = "system", content = e.text }
end

-- The result of a background call is said by the user, as on the wires.
function from.note(e)
  if not e.ticket then
    return from.prompt(e)
  end
  return { role = "user",
    content = e.images and content_of(result_parts { content = e.text, images = e.images })
      or e.text }
end

--- Returns the messages in a list of decoded entries.
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

-- at: the number of the message; nil: the text of a run.
local function fail(at, text, ...)
  error((at and ("messages[%d]: "):format(at) or "") .. text:format(...), 0)
end

local function has_text(part)
  return type(part.text) == "string"
end

local function always()
  return true
end

-- Checks of the parts of a message, by type; a table for each role.
local USER = { text = has_text, image = always } -- an image is checked when it is read
local ASSISTANT = {
  text = has_text,
  refusal = has_text,
  opaque = function(part)
    return type(part.origin) == "table" and type(part.data) == "table"
  end,
}

-- Returns a part as entries hold it.
local function part_of(at, i, part, kinds)
  if type(part) == "string" then
    part = { type = "text", text = part }
  end
  local sound = type(part) == "table" and kinds[part.type]
  if not (sound and sound(part)) then
    fail(at, 'content[%d] must be a part { type = "text", text = "..." } or an image '
      .. "(ah.image); others cannot be sent here", i)
  elseif part.type ~= "image" then
    return part
  end
  local ok, sealed = pcall(ah._image_json, part)
  if not ok and (type(sealed) == "string" or not sealed:is "usage") then
    error(sealed, 0) -- out of memory
  end
  return ok and sealed or fail(at, "content[%d]: %s", i, sealed.message)
end

-- Refuses keys among the values and holes, which would end the list unnoticed: a failed ah.image
-- gives nil and an error.
local function check_list(at, name, list)
  local wrong = ah._list_fault(list)
  if wrong then
    fail(at, "%s%s", name, wrong)
  end
end

local function parts_of(at, content, kinds)
  if type(content) == "string" then
    return ah.array { { type = "text", text = content } }
  elseif type(content) ~= "table" then
    fail(at, "content must be a string or a list of parts, found %s", type(content))
  end
  check_list(at, "content", content)
  local parts = ah.array {}
  for i, part in ipairs(content) do
    parts[i] = part_of(at, i, part, kinds)
  end
  return parts
end

--- Returns the user's content, a list of texts and images, as JSON parts.
function M.parts(content)
  local parts, said = parts_of(nil, content, USER), false
  for _, part in ipairs(parts) do
    said = said or part.text ~= ""
  end
  if not said then
    fail(nil, "content is empty: there is nothing to say")
  end
  return ah.json.encode(parts)
end

local read_call = ah._reader {
  what = "messages: tool_calls", type = "ah.MessageCall", rows = {
    { name = "id", kinds = "string", needed = true,
      doc = "the id of the call, which its result repeats" },
    { name = "name", kinds = "string", needed = true, doc = "the name of the tool" },
    { name = "arguments", kinds = "string table", default = "{}", is = "JSON text or table",
      doc = "the arguments; in messages that a run returns, JSON text" },
  },
}
local read_message = ah._reader {
  what = "messages", type = "ah.Message", rows = {
    { name = "role", kinds = "string", words = "system user assistant tool", needed = true,
      doc = "the author of the message" },
    { name = "content", kinds = "any",
      type = "string|(string|ah.Image|{ type: string, text: string? })[]",
      doc = "the text; a list of parts if there is more than text" },
    { name = "tool_calls", kinds = "list", type = "ah.MessageCall[]",
      doc = "of `assistant`: its calls" },
    { name = "tool_call_id", kinds = "string", doc = "of `tool`: the id of the call" },
    { name = "name", kinds = "string", doc = "of `tool`: the name of the tool" },
    { name = "success", kinds = "boolean", default = true,
      doc = "of `tool`: false if the call failed" },
    { name = "timestamp", kinds = "number", least = 0, most = 1e12, unit = "seconds",
      doc = "the time since 1970" },
  },
}

local function call_of(at, i, call)
  call = read_call(call, ("messages[%d]: tool_calls[%d]"):format(at, i))
  local arguments = call.arguments
  if type(arguments) == "table" then
    arguments = ah.json.encode(arguments)
  end
  return { id = call.id, name = call.name, arguments = arguments }
end

local to = {}

-- The first system message is the prompt; later ones become notes at their places.
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
    calls[i] = call_of(at, i, call)
  end
  local content = m.content == nil and ah.array {} or parts_of(at, m.content, ASSISTANT)
  return { type = "assistant", content = content, tool_calls = calls }
end

function to.tool(at, m)
  if not m.tool_call_id or m.content == nil then
    fail(at, "a tool message needs tool_call_id and content")
  end
  local texts, images = {}, ah.array {}
  for _, part in ipairs(parts_of(at, m.content, USER)) do
    table.insert(part.type == "image" and images or texts, part.text or part)
  end
  return {
    type = "tool_result",
    id = m.tool_call_id,
    name = m.name or "",
    content = table.concat(texts),
    images = images[1] and images or nil,
    success = m.success,
  }
end

--- Returns the entries (type name and JSON text, alternating) of a list of messages.
function M.to_entries(messages)
  local out, prompted = {}, false
  for i, m in ipairs(messages) do
    m = read_message(m, ("messages[%d]"):format(i))
    local entry = to[m.role](i, m, prompted)
    prompted = prompted or m.role == "system"
    entry.time = m.timestamp and math.floor(m.timestamp * 1000) or nil
    out[#out + 1] = entry.type
    out[#out + 1] = ah.json.encode(entry)
  end
  return out
end

return M
