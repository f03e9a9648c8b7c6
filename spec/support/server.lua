--- Starts the loopback HTTP server (httpd.c) for a spec and reports the requests that it got.
--
--   local server = require "support.server"
--   local s <close> = server.start { responses = { { status = 200, body = "hello" } } }
--   ... s.url is "http://127.0.0.1:PORT" ...
--   assert.equal("POST", s:requests()[1].method)
--
-- The k-th request gets the k-th response; the last one repeats. Fields of a response:
--   status    default 200
--   headers   { ["Name"] = "value" } or a list of "Name: value" lines
--   body      a string; or `file`: the name of a file that is the body
--   framing   "length" (default), "chunked" (or chunked = true), "close"
--   piece     body bytes per write        delay  ms before the head
--   gap       ms between pieces           cut    closes after that many body bytes
--   stall     sends this many body bytes, then nothing, and stays open; true: sends nothing at all
--   reset     RST after this many body bytes; true: instead of the response
--   drop      true: closes instead of the response    hangup  true: closes after it, unannounced
--   endless   true: the body repeats for ever          big_header  bytes of a header "X-Big"
--   raw       true: the body is the whole response, head included
-- Options of start beside `responses`:
--   routes    { ["/path"] = { responses } }; "*" or `responses`: any other path, default 404
--   turns     N: the benchmarks' model instead of responses (with `stream`, `delay`; see httpd.c)
--   seconds   limit of the server's life (default 600)
--   log       false: requests are not recorded
local server = {}

local Server = {}
Server.__index = Server
Server.__name = "support.server"

--- JSON null, as decoded; server.array {} is an empty array.
server.null = setmetatable({}, { __tostring = function() return "null" end })

local Array = {}

function server.array(list)
  return setmetatable(list, Array)
end

local escapes = { b = "\b", f = "\f", n = "\n", r = "\r", t = "\t" }

local function join_surrogates(high1, high2, low1, low2)
  local high = (high1:byte() & 0x0F) << 6 | high2:byte() & 0x3F
  local low = (low1:byte() & 0x0F) << 6 | low2:byte() & 0x3F
  return utf8.char(0x10000 + (high << 10) + low)
end

local function unescape(s)
  s = s:gsub("\\(.)(%x?%x?%x?%x?)", function(c, hex)
    return c == "u" and utf8.char(tonumber(hex, 16)) or (escapes[c] or c) .. hex
  end)
  return (s:gsub("\xED([\xA0-\xAF])([\x80-\xBF])\xED([\xB0-\xBF])([\x80-\xBF])", join_surrogates))
end

local decode_value

local function decode_string(text, at)
  local close = at + 1
  while true do
    close = assert(text:find('["\\]', close), "unfinished string in JSON")
    if text:sub(close, close) == '"' then
      break
    end
    close = close + 2
  end
  local raw = text:sub(at + 1, close - 1)
  return raw:find("\\", 1, true) and unescape(raw) or raw, close + 1
end

local function decode_array(text, at)
  local list = server.array {}
  at = text:match("^%s*()", at + 1)
  while text:sub(at, at) ~= "]" do
    list[#list + 1], at = decode_value(text, at)
    at = text:match("^%s*,?%s*()", at)
  end
  return list, at + 1
end

local function decode_object(text, at)
  local map = {}
  at = text:match("^%s*()", at + 1)
  while text:sub(at, at) ~= "}" do
    local key
    key, at = decode_string(text, at)
    at = assert(text:match("^%s*:()", at), "missing colon in JSON")
    map[key], at = decode_value(text, at)
    at = text:match("^%s*,?%s*()", at)
  end
  return map, at + 1
end

local literals = { ["true"] = true, ["false"] = false, null = server.null }

function decode_value(text, at)
  at = text:match("^%s*()", at)
  local c = text:sub(at, at)
  if c == '"' then
    return decode_string(text, at)
  elseif c == "{" then
    return decode_object(text, at)
  elseif c == "[" then
    return decode_array(text, at)
  end
  local word, after = text:match("^([%w%+%-%.]+)()", at)
  local value = literals[word]
  if value == nil then
    value = tonumber(word)
  end
  if value == nil then
    error(("no JSON at byte %d: %s"):format(at, text:sub(at, at + 20)), 0)
  end
  return value, after
end

--- Decodes JSON that is known to be valid. It is not agenthost's own reader, which the specs test.
function server.decode(text)
  return (decode_value(text, 1))
end

local function encode_string(s)
  s = s:gsub('["\\]', "\\%0"):gsub("%c", function(c) return ("\\u%04x"):format(c:byte()) end)
  return '"' .. s .. '"'
end

-- Returns the shortest text that reads back the same.
local function encode_float(v)
  local short = ("%.15g"):format(v)
  return tonumber(short) == v and short or ("%.17g"):format(v)
end

--- Encodes a value as JSON: keys sorted; a table with [1], or server.array, is an array.
function server.encode(v)
  if type(v) == "string" then
    return encode_string(v)
  elseif type(v) ~= "table" then
    return math.type(v) == "float" and encode_float(v) or tostring(v)
  elseif v == server.null then
    return "null"
  end
  local parts = {}
  if v[1] ~= nil or getmetatable(v) == Array then
    for i, item in ipairs(v) do
      parts[i] = server.encode(item)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local keys = {}
  for k in pairs(v) do
    keys[#keys + 1] = k
  end
  table.sort(keys)
  for i, k in ipairs(keys) do
    parts[i] = encode_string(k) .. ":" .. server.encode(v[k])
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local function merge(into, from)
  for k, v in pairs(from or {}) do
    into[k] = v
  end
  return into
end

--- Returns a response with a JSON body: a table, or JSON text. `opts` are more response fields.
function server.json(value, opts)
  local body = type(value) == "string" and value or server.encode(value)
  return merge({ headers = { ["Content-Type"] = "application/json" }, body = body }, opts)
end

--- Returns an event stream of data strings; a table { event = , data = } has a name too.
function server.sse(events, opts)
  local parts = {}
  for i, e in ipairs(events) do
    local name = type(e) == "table" and "event: " .. e.event .. "\n" or ""
    local data = type(e) == "table" and e.data or e
    parts[i] = name .. "data: " .. data:gsub("\n", "\ndata: ") .. "\n\n"
  end
  return merge({ headers = { ["Content-Type"] = "text/event-stream" }, framing = "chunked",
    body = table.concat(parts) }, opts)
end

local function usage()
  return { prompt_tokens = 10, completion_tokens = 5, total_tokens = 15 }
end

local function chunk(delta, finish)
  local choice = { index = 0, delta = delta, finish_reason = finish or server.null }
  return server.encode { id = "chatcmpl-1", object = "chat.completion.chunk", created = 1,
    model = "test", choices = { choice } }
end

local function chat_stream(deltas, finish, opts)
  local events = {}
  for i, delta in ipairs(deltas) do
    events[i] = chunk(delta)
  end
  events[#events + 1] = chunk({}, finish)
  events[#events + 1] = server.encode { id = "chatcmpl-1", object = "chat.completion.chunk",
    created = 1, model = "test", choices = server.array {}, usage = usage() }
  events[#events + 1] = "[DONE]"
  return server.sse(events, opts)
end

local function chat_whole(message, finish, opts)
  return server.json({ id = "chatcmpl-1", object = "chat.completion", created = 1, model = "test",
    choices = { { index = 0, message = message, finish_reason = finish } }, usage = usage() }, opts)
end

-- Takes `stream` out of a copy of the options; the rest are response fields.
local function split(opts)
  local rest = merge({}, opts)
  local stream = rest.stream
  rest.stream = nil
  return stream, rest
end

--- Returns an answer of text by OpenAI chat completions, as a stream if opts.stream is set.
function server.chat_text(text, opts)
  local stream, rest = split(opts)
  if not stream then
    return chat_whole({ role = "assistant", content = text }, "stop", rest)
  end
  local half = utf8.offset(text, (utf8.len(text) or 0) // 2 + 1) or #text + 1
  return chat_stream({ { role = "assistant", content = "" }, { content = text:sub(1, half - 1) },
    { content = text:sub(half) } }, "stop", rest)
end

-- Returns the deltas of one call: its name, then its arguments in two parts.
local function call_deltas(index, call)
  local args = call["function"].arguments
  local parts = { "", args:sub(1, #args // 2), args:sub(#args // 2 + 1) }
  for i, part in ipairs(parts) do
    parts[i] = { tool_calls = { { index = index, ["function"] = { arguments = part } } } }
  end
  local first = parts[1].tool_calls[1]
  first.id, first.type, first["function"].name = call.id, "function", call["function"].name
  return parts
end

--- Returns an answer with calls by OpenAI chat completions, each { name =, arguments = JSON text or
-- table, id = }.
function server.chat_calls(calls, opts)
  local stream, rest = split(opts)
  local message = { role = "assistant", content = server.null, tool_calls = {} }
  local deltas = { { role = "assistant", content = server.null } }
  for i, c in ipairs(calls) do
    local args = c.arguments or "{}"
    args = type(args) == "string" and args or server.encode(args)
    local call = { id = c.id or "call_" .. i, type = "function",
      ["function"] = { name = c.name, arguments = args } }
    message.tool_calls[i] = call
    table.move(call_deltas(i - 1, call), 1, 3, #deltas + 1, deltas)
  end
  if stream then
    return chat_stream(deltas, "tool_calls", rest)
  end
  return chat_whole(message, "tool_calls", rest)
end

--- Returns an answer with one call by OpenAI chat completions.
function server.chat_call(name, args_json, id, opts)
  return server.chat_calls({ { name = name, arguments = args_json, id = id } }, opts)
end

-- Response fields in the order and the form in which they are written.
local numbers = { "status", "piece", "delay", "gap" }
local endings = { "cut", "stall", "reset" }
local flags = { "raw", "drop", "hangup", "endless" }
local others = { "headers", "body", "file", "framing", "chunked", "big_header" }
local known = {}
for _, list in ipairs { numbers, endings, flags, others } do
  for _, name in ipairs(list) do
    known[name] = true
  end
end

local function header_lines(headers)
  local lines = {}
  for k, v in pairs(headers or {}) do
    lines[#lines + 1] = "header " .. (type(k) == "number" and v or k .. ": " .. v)
  end
  table.sort(lines)
  return lines
end

local function write_response(out, r)
  for name in pairs(r) do
    if not known[name] then
      error(("server.start: a response has no field '%s'"):format(name), 0)
    end
  end
  local function line(...)
    out[#out + 1] = table.concat({ ... }, " ")
  end
  line("response")
  for _, name in ipairs(numbers) do
    if r[name] then line(name, r[name]) end
  end
  for _, header in ipairs(header_lines(r.headers)) do
    line(header)
  end
  if r.big_header then line("big-header", r.big_header) end
  if r.framing or r.chunked then line("framing", r.framing or "chunked") end
  if r.file then
    assert(io.open(r.file, "rb"), "server.start: cannot read " .. r.file):close()
    line("body-file", r.file)
  end
  if r.body then line("bytes", #r.body .. "\n" .. r.body) end
  for _, name in ipairs(endings) do
    if r[name] then line(name, r[name] ~= true and r[name] or nil) end
  end
  for _, name in ipairs(flags) do
    if r[name] then line(name) end
  end
end

local function write_scenario(opts)
  local out, routes = {}, merge({}, opts.routes)
  routes["*"] = opts.responses or routes["*"]
  for path, responses in pairs(routes) do
    out[#out + 1] = "on " .. path
    for _, r in ipairs(responses) do
      write_response(out, r)
    end
  end
  return table.concat(out, "\n") .. "\n"
end

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

-- Returns the words of the command line for the responses.
local function what_to_serve(opts, base, files)
  if opts.turns then
    return ("--turns %d --delay %d%s"):format(opts.turns, opts.delay or 0,
      opts.stream and " --stream" or "")
  end
  local name = base .. ".scenario"
  local text = write_scenario(opts)
  local f <close> = assert(io.open(name, "wb"))
  files[#files + 1] = name
  assert(f:write(text))
  return "--scenario " .. quote(name)
end

-- Returns port and process id when the server listens; nil if it does not within 10 s.
local function await(program, port_file)
  local command = ("exec %s --await %s"):format(quote(program), quote(port_file))
  local f <close> = assert(io.popen(command))
  local port, pid = f:read("a"):match("port (%d+) pid (%d+)")
  return math.tointeger(tonumber(port)), pid
end

--- Starts a server; raises if it cannot. Close it, or declare it <close>.
function server.start(opts)
  local program = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/httpd"
  local base = os.tmpname()
  local port_file = base .. ".port"
  local self = setmetatable({ log = base .. ".log" }, Server)
  self.files = { base, port_file, self.log }
  local ok, serve = pcall(what_to_serve, opts, base, self.files)
  if not ok then
    self:close()
    error(serve, 2)
  end
  -- `exec`, so that the pipe belongs to the server, which ends when the pipe is closed.
  local command = ("exec %s %s --seconds %d --port-file %s"):format(
    quote(program), serve, opts.seconds or 600, quote(port_file))
  if opts.log ~= false then
    command = command .. " --log " .. quote(self.log)
  end
  self.pipe = assert(io.popen(command .. " >/dev/null", "w"))
  self.port, self.pid = await(program, port_file)
  if not self.port then
    self:close()
    error(program .. " did not start (is it built? `make " .. program .. "`)", 2)
  end
  self.url = "http://127.0.0.1:" .. self.port
  return self
end

local function log_lines(self)
  local list = {}
  local f <close> = io.open(self.log, "rb")
  if f then
    for line in f:lines() do
      list[#list + 1] = server.decode(line)
    end
  end
  return list
end

local function body_json(request)
  return server.decode(request.body)
end

--- Returns the requests so far, in the order of their completion: { method, path, headers
-- (lower-case names), body (text), at (ms since the start), conn (number of the connection), json =
-- function that decodes the body }.
function Server:requests()
  local list = {}
  for _, r in ipairs(log_lines(self)) do
    if r.method then
      r.json = body_json
      list[#list + 1] = r
    end
  end
  return list
end

--- Returns the connections that a client closed before its response was complete: { at, conn, gone
-- (body bytes handed to the connection by then) }.
function Server:gone()
  local list = {}
  for _, r in ipairs(log_lines(self)) do
    if r.gone then
      list[#list + 1] = r
    end
  end
  return list
end

--- Returns the server's processor time in ms; nil if the system does not provide it.
function Server:cpu_ms()
  local f <close> = io.open(("/proc/%s/schedstat"):format(self.pid))
  local ns = f and f:read("n")
  return ns and ns / 1e6
end

--- Ends the server, waits for it, and removes its files. May be called again. The end of the pipe
-- ends the server at once; if a later process has inherited the pipe, the missing port file does.
function Server:close()
  local pipe, files = self.pipe, self.files
  self.pipe, self.files = nil, {}
  for _, name in ipairs(files) do
    os.remove(name)
  end
  if pipe then
    pipe:close()
  end
end

Server.__close = Server.close
Server.__gc = Server.close

return server
