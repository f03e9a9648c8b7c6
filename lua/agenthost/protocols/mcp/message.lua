--- Messages of the Model Context Protocol: JSON-RPC 2.0, a message a line. This file makes lines
-- and judges lines from outside for the client and for the server; it does no I/O and has no state.
-- It also has the revisions of the protocol, the keys of `_meta` and the codes of errors
-- (specification 2026-07-28, basic/index and basic/versioning).
local ah = ...

local encode, decode = ah.json.encode, ah.json.decode
local ARRAY = getmetatable(ah.array {})

local message = {}

-- -- revisions ------------------------------------------------------------------------------------

message.LATEST = "2026-07-28"

--- The revisions that are spoken, newest first.
message.REVISIONS = { "2026-07-28", "2025-11-25", "2025-06-18" }

-- modern: no handshake; each request names its revision and the client's capabilities in `_meta`,
-- each result has a `resultType`, and questions of a server are results. The others begin with
-- `initialize`; both sides may send requests then.
-- url: a server may ask a person to open a page.
-- any_value: `structuredContent` may be any JSON value, not an object alone.
-- many: a form may have lists of words.
local FEATURES = {
  ["2026-07-28"] = { modern = true, url = true, any_value = true, many = true },
  ["2025-11-25"] = { url = true, many = true },
  ["2025-06-18"] = {},
}

--- Returns what a revision has, or nil for one that is not spoken.
function message.features(revision)
  return FEATURES[revision]
end

--- Returns the first revision in our order that a list of the other side's contains and that is
-- `modern` (a boolean), or nil. The list is from outside.
function message.common(list, modern)
  local theirs = {}
  for _, revision in ipairs(message.is_list(list) and list or {}) do
    theirs[revision] = true
  end
  for _, revision in ipairs(message.REVISIONS) do
    if theirs[revision] and (FEATURES[revision].modern or false) == modern then
      return revision
    end
  end
end

-- -- names of the specification -------------------------------------------------------------------

local PREFIX = "io.modelcontextprotocol/"

message.META = {
  revision = PREFIX .. "protocolVersion",
  client = PREFIX .. "clientInfo",
  capabilities = PREFIX .. "clientCapabilities",
  log_level = PREFIX .. "logLevel",
  subscription = PREFIX .. "subscriptionId",
  server = PREFIX .. "serverInfo",
  tasks = PREFIX .. "tasks", -- an extension
}

message.CODES = {
  parse = -32700,
  request = -32600,
  method = -32601,
  params = -32602,
  internal = -32603,
  declined = -1, -- a person says no (specification 2025-11-25, client/sampling)
  header = -32020,
  capability = -32021,
  revision = -32022,
  no_resource = -32002, -- of the older revisions
}

--- Returns nil and an error for the other side.
function message.fault(code, text, ...)
  return nil, { code = code, message = text:format(...) }
end

-- -- limits ---------------------------------------------------------------------------------------

message.MOST_LINE = 16 << 20 -- bytes of a message
message.MOST_ID = 256 -- bytes of an id, a token, a method
message.MOST_SAID = 400 -- bytes of a text of the other side in an error

-- -- values from outside --------------------------------------------------------------------------

--- True if a decoded value is a JSON array.
function message.is_list(value)
  return type(value) == "table" and getmetatable(value) == ARRAY
end

--- True if a decoded value is a JSON object.
function message.is_object(value)
  return type(value) == "table" and getmetatable(value) ~= ARRAY
end

--- Returns the value if it is an object, else an empty table: for members that are optional.
function message.object(value)
  return message.is_object(value) and value or {}
end

--- Returns the value if it is a text of 1 to `most` bytes, else nil.
function message.text(value, most)
  return type(value) == "string" and value ~= "" and #value <= most and value or nil
end

--- Returns a text of the other side for an error or the log: one line, cut, without secrets.
function message.said(value)
  local text = type(value) == "string" and value or "(no text)"
  text = ah._excerpt(text:gsub("[\r\n]+", " "), 2 * message.MOST_SAID)
  if #text > message.MOST_SAID then
    text = text:sub(1, (utf8.offset(text, 0, message.MOST_SAID + 1)) - 1) .. " ..."
  end
  return text
end

--- True for a value that may be an id of a request, or a token of its progress.
function message.is_id(value)
  return math.type(value) == "integer" or message.text(value, message.MOST_ID) ~= nil
end

-- -- lines for the other side ---------------------------------------------------------------------

local function line(value)
  value.jsonrpc = "2.0"
  return encode(value) .. "\n"
end

--- `params` is a table, or nil.
function message.request(id, method, params)
  return line { id = id, method = method, params = params }
end

function message.notification(method, params)
  return line { method = method, params = params }
end

--- `result` is a table.
function message.result(id, result)
  return line { id = id, result = result }
end

--- `id` is nil where the request had none that could be read; `data` is any value, or nil.
function message.failure(id, code, text, data)
  return line { id = id, error = { code = code, message = text, data = data } }
end

-- -- lines from the other side --------------------------------------------------------------------

local function refuse(code, why, id)
  return nil, { code = code, message = why, id = id }
end

local function read_error(given, id)
  local err = given.error
  if not message.is_object(err) or math.type(err.code) ~= "integer"
    or type(err.message) ~= "string" then
    return refuse(message.CODES.request, 'an "error" without an integer "code" and a "message"', id)
  end
  return { kind = "error", id = id, code = err.code, text = err.message, data = err.data }
end

local function read_answer(given, id)
  if given.result ~= nil and given.error ~= nil then
    return refuse(message.CODES.request, 'both "result" and "error"', id)
  elseif given.error ~= nil then
    return read_error(given, id)
  elseif id == nil then
    return refuse(message.CODES.request, 'a "result" without an "id"')
  elseif not message.is_object(given.result) then
    return refuse(message.CODES.request, 'a "result" that is not an object', id)
  end
  return { kind = "result", id = id, result = given.result }
end

local function read_call(given, id)
  if not message.text(given.method, message.MOST_ID) then
    return refuse(message.CODES.request, ('"method" must be a text of 1 to %d bytes'):format(
      message.MOST_ID), id)
  elseif given.params ~= nil and not message.is_object(given.params) then
    return refuse(message.CODES.request, '"params" must be an object', id)
  end
  return { kind = id == nil and "notification" or "request", id = id, method = given.method,
    params = given.params or {} }
end

--- Judges a decoded message. Returns `{ kind, id, method, params, result, code, text, data }`, with
-- the kind "request", "notification", "result" or "error"; or nil and `{ code, message, id }`, from
-- which a server makes its error. Members that the specification does not have are ignored.
function message.judge(given)
  if not message.is_object(given) then
    return refuse(message.CODES.request, "a message must be an object (there are no batches)")
  elseif given.jsonrpc ~= "2.0" then
    return refuse(message.CODES.request, '"jsonrpc" must be "2.0"',
      message.is_id(given.id) and given.id or nil)
  end
  local id = given.id
  if id ~= nil and not message.is_id(id) and not (id == ah.null and given.error ~= nil) then
    return refuse(message.CODES.request, ('"id" must be an integer or a text of 1 to %d bytes')
      :format(message.MOST_ID))
  end
  if id == ah.null then -- of an error for a request that the other side could not read
    id = nil
  end
  if given.method ~= nil then
    return read_call(given, id)
  end
  return read_answer(given, id)
end

--- Judges a line, with or without its end.
function message.read(text)
  if #text > message.MOST_LINE then
    return refuse(message.CODES.request, ("a message over %d bytes"):format(message.MOST_LINE))
  end
  local given, why = decode(text)
  if given == nil then
    return refuse(message.CODES.parse, why)
  end
  return message.judge(given)
end

return message
