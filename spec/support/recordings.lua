--- Recorded traffic of servers that speak OpenAI's chat format, and a plain reader for it.
-- Independent of the adapter, which the specs compare with it: no streaming, no limits, one pass
-- over decoded tables.
--
--   for _, x in ipairs(recordings.exchanges "openai-chat") do
--     x.name "03-tool-stream.json 2", x.status, x.headers, x.body (bytes), x.request, x.official
--     recordings.read(x) -> { text, refusal, calls, stop, usage } or { error, retryable }
--   end
local server = require "support.server"

local M = {}

local ROOT = "../shared/wire/"

local function contents(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read("a")
end

local function names(folder)
  local list = {}
  local f <close> = assert(io.popen(("ls '%s' 2>/dev/null"):format(folder)))
  for name in f:lines() do
    list[#list + 1] = name:match("^%d.*%.json$")
  end
  return list
end

-- Restores the framing of payloads, one a line, from sources that had removed it.
local function reframe(lines)
  return (lines:gsub("([^\n]+)\n?", "data: %1\n\n"))
end

local function body_of(folder, response)
  local file = response.body_file
  if not file then
    return type(response.body) == "string" and response.body or server.encode(response.body)
  end
  local bytes = contents(folder .. file)
  return file:match("%.events%.jsonl$") and reframe(bytes) or bytes
end

local function lower_case(headers)
  local map = {}
  for name, value in pairs(headers or {}) do
    map[name:lower()] = type(value) == "table" and value[1] or tostring(value)
  end
  return map
end

--- Returns the exchanges of a folder that have a response, in order; an empty list without the
-- folder.
function M.exchanges(name)
  local folder, list = ROOT .. name .. "/", {}
  for _, file in ipairs(names(folder)) do
    for i, x in ipairs(server.decode(contents(folder .. file)).exchanges) do
      if x.response then
        list[#list + 1] = {
          name = ("%s/%s %d"):format(name, file, i),
          file = file,
          status = x.response.status,
          headers = lower_case(x.response.headers),
          body = body_of(folder, x.response),
          request = x.request ~= server.null and x.request or nil,
        }
      end
    end
  end
  return list
end

-- Returns nil for JSON null and for values of another type.
local function of_type(kind, value)
  return type(value) == kind and value ~= server.null and value or nil
end

local function not_empty(value)
  return value ~= "" and of_type("string", value) or nil
end

local function members(value)
  return of_type("table", value) or {}
end

local function text_of(content)
  if type(content) ~= "table" then
    return of_type("string", content) or ""
  end
  local parts = {}
  for _, part in ipairs(content) do
    parts[#parts + 1] = of_type("string", part.text)
  end
  return table.concat(parts)
end

local function arguments_of(fn)
  local arguments = fn.arguments
  if type(arguments) == "table" and arguments ~= server.null then
    return server.encode(arguments)
  end
  return of_type("string", arguments) or ""
end

-- Returns the call of a fragment: the one with its number, else the last.
local function call_for(r, fragment, whole)
  local number = not whole and of_type("number", fragment.index)
  for i = #r.calls, 1, -1 do
    if not whole and (number == nil or r.calls[i].number == number) then
      return r.calls[i]
    end
  end
  r.calls[#r.calls + 1] = { number = number, arguments = "" }
  return r.calls[#r.calls]
end

local function take_call(r, fragment, whole)
  local call, fn = call_for(r, fragment, whole), members(fragment["function"])
  call.id = call.id or not_empty(fragment.id)
  call.name = call.name or not_empty(fn.name)
  call.arguments = call.arguments .. arguments_of(fn)
end

local function take_choice(r, choice, whole)
  if (choice.index or 0) ~= 0 then
    return
  end
  local message = members(choice[whole and "message" or "delta"])
  r.chosen = true
  r.text = r.text .. text_of(message.content)
  r.refusal = r.refusal .. (of_type("string", message.refusal) or "")
  for _, fragment in ipairs(members(message.tool_calls)) do
    take_call(r, fragment, whole)
  end
  r.finish = not_empty(choice.finish_reason) or r.finish
  r.said = not_empty(choice.native_finish_reason) or not_empty(choice.finish_reason) or r.said
end

local function take_document(r, doc, whole)
  r.error = r.error or (doc.error ~= server.null and doc.error or nil)
  for _, choice in ipairs(members(doc.choices)) do
    take_choice(r, choice, whole)
  end
  r.usage = of_type("table", doc.usage) or of_type("table", members(doc.x_groq).usage) or r.usage
end

local STOPS = { length = "length", content_filter = "content_filter" }

local function stop_of(r)
  if STOPS[r.finish] == "length" or (r.calls[1] and STOPS[r.finish]) then
    return STOPS[r.finish]
  elseif r.calls[1] then
    return "tool_calls"
  elseif r.refusal ~= "" then
    return "refusal"
  end
  return STOPS[r.finish] or "end"
end

local function usage_of(u)
  local input, output =
    members(u and u.prompt_tokens_details), members(u and u.completion_tokens_details)
  return {
    input = u and u.prompt_tokens or 0,
    output = u and u.completion_tokens or 0,
    cached_read = input.cached_tokens or 0,
    cached_write = input.cache_write_tokens or 0,
    cost = u and u.cost and math.floor(u.cost * 1e9 + 0.5) / 1e9,
    reasoning = output.reasoning_tokens or 0,
    known = u ~= nil,
  }
end

local NEVER = { insufficient_quota = true, context_length_exceeded = true, invalid_api_key = true }

local function worth_retrying(status, headers, error)
  local said = headers["x-should-retry"]
  if said then
    return said == "true"
  end
  if error.code == "tool_use_failed" then -- the model wrote a call that its server cannot read
    return true
  end
  local again = status == 408 or status == 409 or status == 429 or status >= 500 or status < 300
  return again and not (NEVER[error.code] or NEVER[error.type])
end

--- Returns a failure that the server reports; `status` is the status that it has or should have.
local function failure(x, status, error)
  error = type(error) == "table" and error or { message = error }
  local words = of_type("string", error.message) or of_type("string", error.detail) or ""
  return {
    error = words:find "^<" and words:gsub("<[^>]*>", "") or words, -- only the text of a web page
    retryable = worth_retrying(status, x.headers, error),
  }
end

--- Iterates over the decoded data of each event of a stream up to [DONE].
function M.events(bytes)
  local lines = bytes:gsub("\r\n?", "\n"):gmatch("[^\n]+")
  return function()
    for line in lines do
      local data = line:match("^%s*data: ?(.*)$")
      if data == "[DONE]" then
        return nil, true
      elseif data then
        return server.decode(data)
      end
    end
  end
end

local function read_stream(r, bytes)
  for doc in M.events(bytes) do
    take_document(r, doc, false)
  end
  return r.chosen and (r.finish ~= nil or bytes:find("data: [DONE]", 1, true) ~= nil)
end

local function read_whole(r, bytes)
  local ok, doc = pcall(server.decode, bytes)
  if ok and type(doc) == "table" then
    take_document(r, doc, true)
  end
  return r.chosen
end

-- Returns the status that the members of a failure name, if it came with a 2xx; else `status`.
local function named_status(status, error)
  local named = type(error) == "table" and (error.status_code or error.code)
  return math.type(named) == "integer" and status < 300 and named or status
end

M.failure = failure

--- Returns the failure of a response whose status says so, else nil.
function M.refused(x)
  if x.status >= 300 then
    local ok, doc = pcall(server.decode, x.body)
    return failure(
      x,
      x.status,
      ok and (of_type("table", doc.error) or of_type("string", doc.error) or doc) or x.body
    )
  end
end

--- Returns true if the response is a stream of events.
function M.is_stream(x)
  return (x.headers["content-type"] or ""):find("^text/event%-stream") ~= nil
end

--- Reads a response plainly, without the adapter.
function M.read(x)
  local r, refused = { text = "", refusal = "", calls = {} }, M.refused(x)
  if refused then
    return refused
  end
  local stream = M.is_stream(x)
  local complete = (stream and read_stream or read_whole)(r, x.body)
  if r.error then
    return failure(x, named_status(x.status, r.error), r.error)
  elseif not complete then
    return { error = "", retryable = x.body:sub(1, 1) ~= "<" } -- a web page would be the same again
  end
  return {
    text = r.text,
    refusal = r.refusal,
    calls = r.calls,
    stop = stop_of(r),
    stop_word = r.said,
    usage = usage_of(r.usage),
  }
end

return M
