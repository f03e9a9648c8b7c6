--- agenthost mock: a server on this machine that speaks the providers' protocols and answers from a
-- script. Each request is checked as a strict provider checks it, converted to the form of
-- scripted models, and answered with the script's turn in the provider's format, over ah.serve.
local ah, use = ...
local check = use "mock.check"
local plan = use "mock.plan"
local search = use "mock.search"
local turns = use "mock.turn"
local new_cache = use "mock.cache"
local foreign = use "foreign"

local FORMATS = { "openai", "responses", "anthropic", "gemini", "ollama" }

local FLAGS = {
  { name = "port", value = "N", kind = "integer", most = 65535,
    doc = "listen on this port (default 0: a free one)" },
  { name = "listen", value = "ADDR", doc = "listen on this address; others can then reach it" },
  { name = "format", value = "NAME", words = "all " .. table.concat(FORMATS, " "),
    doc = "speak as one provider only, such as anthropic" },
  { name = "strict", instead = "lenient",
    doc = "refuse what strict providers refuse (the default)" },
  { name = "lenient", instead = "strict", doc = "refuse only requests that cannot be read" },
  { name = "once", value = "N", kind = "integer", doc = "end after N requests" },
  { name = "log", value = "FILE", doc = "append each request to FILE, as a line of JSON" },
}

-- Rows { method, pattern of the path, format, kind }, with a header if one is required. The first
-- row that matches is used.
local ROUTES = {
  { "POST", "/chat/completions$", "openai" },
  { "POST", "/responses$", "responses" },
  { "POST", "/responses/input_tokens$", "responses", "count" },
  { "POST", "/v1/messages/count_tokens$", "anthropic", "count" },
  { "POST", "/v1/messages$", "anthropic" },
  { "POST", "/models/([^/]+):generateContent$", "gemini" },
  { "POST", "/models/([^/]+):streamGenerateContent$", "gemini", "stream" },
  { "POST", "/models/([^/]+):countTokens$", "gemini", "count" },
  { "POST", "/api/chat$", "ollama" },
  { "GET", "/api/tags$", "ollama", "models" },
  { "GET", "/v1beta/models$", "gemini", "models" },
  { "GET", "/v1/models$", "anthropic", "models", header = "anthropic-version" },
  { "GET", "/models$", "openai", "models" },
  { "GET", "/v1beta/models/([^/]+)$", "gemini", "model" },
  { "GET", "/v1/models/([^/]+)$", "anthropic", "model", header = "anthropic-version" },
  { "GET", "/models/(.+)$", "openai", "model" },
}

-- The format of a request that has no route, by a header or path that only its clients send.
local ASKERS = {
  { "anthropic", header = "anthropic-version" },
  { "anthropic", header = "x-api-key" },
  { "gemini", header = "x-goog-api-key" },
  { "anthropic", path = "/v1/messages" },
  { "gemini", path = "/v1beta" },
  { "gemini", path = "/v1alpha" },
  { "gemini", path = "/models/[^/]+:%a+$" },
  { "ollama", path = "^/api/" },
  { "openai", path = "" },
}

local SECRET = { authorization = true, ["x-api-key"] = true, ["x-goog-api-key"] = true,
  ["api-key"] = true, cookie = true }

local GC_PAUSE = 150 -- collect earlier than Lua does: texts of answers may be large

-- Every client that reaches the server is served, by any host name. The limits leave room for large
-- requests, and an hour for functions of the script.
local BOUNDS = { hosts = { "*" }, origins = { "*" }, max_connections = 2048, max_requests = 2048,
  max_header = 32 << 10, max_body = 64 << 20, max_bodies = 256 << 20, header_timeout = 10,
  body_timeout = 3600, idle_timeout = 60, work_timeout = 3600, memory = 1 << 31 }

local server -- the state of the server, one in each process

-- -- the script ----------------------------------------------------------------------------

-- Raises a fault of the script, without a position in this file.
local function refuse(text, ...)
  error(ah.error { code = "usage", message = text:format(...) }, 0)
end

local function read_file(path)
  if path == "-" then
    return io.read("a")
  end
  local f <close>, why = io.open(path, "rb")
  local text
  if f then
    text, why = f:read("a")
  end
  return text or refuse("cannot read %s", why)
end

-- Returns the value of the script's chunk, or its decoded JSON.
local function value_of(path)
  local text = read_file(path)
  if text:find("^%s*[%[{]") then
    local value, err = ah.json.decode(text)
    if value == nil then
      refuse("%s: %s", path, err)
    end
    return value
  end
  local name = path == "-" and "=stdin" or "@" .. path
  local chunk, err = load(text:gsub("^#[^\n]*", "", 1), name, "t")
  if not chunk then
    refuse("%s", err)
  end
  return chunk(path)
end

-- Returns the scripted model of the script's value; nil if the value is of another kind.
local function scripted_of(value)
  if type(value) == "userdata" then
    local ok, spec = pcall(function() return value._spec end)
    if ok and spec then
      turns.check_all(spec)
      return value
    end
  elseif type(value) == "table" or type(value) == "function" then
    turns.check_all(value)
    return ah.scripted(value, nil, nil, turns.fields)
  end
end

-- Returns a function that returns the turn for a request.
local function turns_of(path)
  local value = value_of(path)
  local ok, adapter = pcall(scripted_of, value)
  if not ok then
    refuse("%s: %s", path, adapter.message or adapter)
  elseif adapter then
    return adapter._turn
  end
  local found = value == nil and "nothing" or type(value)
  refuse("%s: expected it to return turns, a function or ah.scripted { ... }, found %s", path,
    found)
end

-- -- routing -----------------------------------------------------------------------------

local function provider_of(format)
  return use("mock." .. format)
end

local function route_of(method, path, headers)
  for _, r in ipairs(ROUTES) do
    local found = path:match(r[2])
    if r[1] == method and found and server.serves[r[3]] and (not r.header or headers[r.header]) then
      return { format = r[3], kind = r[4] or "answer", model = found, provider = provider_of(r[3]) }
    end
  end
end

-- Returns the format and the provider for the answer to a request that has no route.
local function asker_of(path, headers)
  for _, asker in ipairs(ASKERS) do
    if asker.header and headers[asker.header] or asker.path and path:find(asker.path) then
      return { format = asker[1], provider = provider_of(asker[1]) }
    end
  end
end

-- Returns the served paths, only those of `format` unless it is nil.
local function paths_of(format)
  local paths = {}
  for _, r in ipairs(ROUTES) do
    local path = r[2]:gsub("%$$", ""):gsub("%(.-%)", "MODEL")
    local is_told = not format or provider_of(r[3]).error == provider_of(format).error
    paths[#paths + 1] = server.serves[r[3]] and is_told and r[1] .. " " .. path or nil
  end
  return paths
end

-- Refuses a path; the message lists the paths of the request's format, or all if none is served.
local function refuse_path(q, route)
  local paths = paths_of(route.format)
  paths = paths[1] and paths or paths_of(nil)
  check.refuse { status = 404, code = ah.null,
    message = ("agenthost mock has no %s %s; it answers: %s"):format(q.method, q.path,
      table.concat(paths, ", ")) }
end

-- Returns the last header of each name.
local function headers_of(lists)
  local headers = {}
  for name, values in pairs(lists) do
    headers[name] = values[#values]
  end
  return headers
end

-- -- failures ----------------------------------------------------------------------------

-- Returns the provider's error for a full context. If the script gives only one of the two
-- numbers, the other is generated.
local function full_of(fail, provider)
  local used = fail.used or fail.window and fail.window + 1
  return provider.full(used, fail.window or used and used - 1)
end

-- Returns the failure of the turn, from `fail` or `status`; nil if it has none.
local function failure_of(turn, provider)
  if not turn.fail and not turn.status then
    return nil
  end
  local fail = turn.fail or turn
  local status = fail.status or (fail.retryable and 503 or 400)
  local own = fail.code == "context_full" and full_of(fail, provider) or { code = fail.code }
  return { status = math.tointeger(status), type = fail.type or own.type, code = own.code,
    param = own.param, retry_after = fail.retry_after,
    retryable = fail.retryable, in_stream = fail.in_stream,
    message = fail.message or own.message or ("the script answers with status %d"):format(status) }
end

local function failure_plan(q, route, fault)
  local headers = {}
  if fault.retry_after then
    headers[1] = { "retry-after", (("%.3f"):format(fault.retry_after):gsub("%.?0+$", "")) }
  end
  if fault.retryable ~= nil then
    headers[#headers + 1] = { "x-should-retry", tostring(fault.retryable) }
  end
  fault.request_id = q.id
  return { status = fault.status, type = "application/json", headers = headers,
    bytes = ah.json.encode(route.provider.error(fault)) }
end

-- Returns a raised value as a fault: one of ours unchanged, any other error with status 400.
local function fault_of(raised)
  if type(raised) == "table" and raised.mock_fault then
    return raised
  end
  local message = type(raised) == "table" and raised.message or raised
  return { status = 400, message = tostring(message), retryable = false }
end

-- -- answers -----------------------------------------------------------------------------

local function tokens_of(bytes)
  return (bytes + 3) // 4
end

local function length_of(text)
  if type(text) ~= "table" then
    return #(text or "")
  end
  local n = 0
  for _, piece in ipairs(text) do
    n = n + #piece
  end
  return n
end

local function calls_of(turn, provider, n)
  local calls = {}
  for i, call in ipairs(turn.calls or {}) do
    local arguments = call.arguments or "{}"
    if type(arguments) == "table" then
      arguments = ah.json.encode(next(arguments) == nil and ah.object {} or arguments)
    end
    calls[i] = { id = call.id or provider.call_id(n, i), given_id = call.id, name = call.name,
      arguments = arguments }
  end
  return calls
end

-- Returns the turn's own usage, or an estimate with the tokens that the cache reports.
local function usage_of(turn, taken, a)
  local told = turn.usage
  if told then
    return { input = told.input or 0, output = told.output or 0, reasoning = told.reasoning or 0,
      cached_read = told.cached_read or 0, cached_write = told.cached_write or 0 }
  end
  local thought = tokens_of(length_of(a.reasoning))
  local said = length_of(a.text) + length_of(a.refusal)
  for _, call in ipairs(a.calls) do
    said = said + #call.name + #call.arguments
  end
  return { input = taken.input, cached_read = taken.read, cached_write = taken.write,
    output = tokens_of(said) + thought, reasoning = thought }
end

local function stop_of(turn)
  return turn.stop or (turn.calls and turn.calls[1] and "tool_calls")
    or (turn.refusal and "refusal") or "end"
end

-- Returns the data that a provider needs to render a turn.
local function answer_of(turn, q, route, taken)
  local a = { n = q.n, model = q.read.request.model, body = q.asked, query = q.query,
    text = turn.text, reasoning = turn.reasoning, signature = turn.signature,
    refusal = turn.refusal, delay = turn.delay, cut = turn.cut or turn.close, stop = stop_of(turn),
    searches = q.searches,
    calls = calls_of(turn, route.provider, q.n), memory = server.memory[route.format] }
  a.usage = usage_of(turn, taken, a)
  return a
end

local function id_header(route)
  return route.format == "anthropic" and "request-id" or "x-request-id"
end

-- Adds the headers of the turn. One of them may set the id of the request; a content type replaces
-- that of the response.
local function take_headers(turn, q, route)
  q.said = {}
  for name, value in pairs(turn.headers or {}) do
    if name:lower() == "content-type" then
      q.type = tostring(value)
    elseif name:lower() == id_header(route) then
      q.id = tostring(value)
    else
      table.insert(q.said, { name, tostring(value) })
    end
  end
  table.sort(q.said, function(x, y) return x[1] < y[1] end)
end

-- Returns the headers of a response: the id of the request, the same as in the body, and the
-- headers of the turn. A name may occur more than once.
local function head_of(p, q, route)
  local headers = { ["Content-Type"] = { q.type or p.type } }
  local lists = { p.headers or {}, { { id_header(route), q.id } }, q.said or {} }
  for _, list in ipairs(lists) do
    for _, pair in ipairs(list) do
      headers[pair[1]] = headers[pair[1]] or {}
      table.insert(headers[pair[1]], pair[2])
    end
  end
  return { status = p.status, headers = headers, length = p.length }
end

-- Returns a copy of the answer for a stream that is only counted: its changes to the provider's
-- memory are discarded.
local function forgetful(a)
  local memory = setmetatable({}, { __index = a.memory })
  return setmetatable({ memory = memory }, { __index = a })
end

local function stream_plan(turn, q, route, a, fault)
  local provider = route.provider
  a.fault = fault
  if fault then
    fault.request_id = q.id
  end
  local body = plan.stream(turn, function(out, counts)
    provider.stream(counts and forgetful(a) or a, out)
  end, provider.line_end)
  local type_of = provider.stream_type
  return { status = 200, type = type_of and type_of(q.query) or "text/event-stream", body = body }
end

local function whole_plan(turn, route, a)
  local body, length = plan.whole(turn, ah.json.encode(route.provider.whole(a)))
  return { status = 200, type = "application/json", length = length, body = body }
end

-- Looks the request up in the cache and stores it there. Called only for requests that get an
-- answer.
local function taken_of(q, route)
  local key, r = route.format .. " " .. tostring(q.read.request.model), q.read
  q.taken = server.cache:look(key, r.segments, r.marks)
  server.cache:keep(key, r.segments, r.marks)
  return q.taken
end

local function turn_plan(turn, q, route)
  turns.check(turn)
  local fault = failure_of(turn, route.provider)
  take_headers(turn, q, route)
  local p
  if turn.close == "before" then
    p = { status = fault and fault.status or 200, type = "", drop = true }
  elseif fault and not (fault.in_stream and q.read.stream) then
    p = failure_plan(q, route, fault)
  else
    local a = answer_of(turn, q, route, taken_of(q, route))
    p = q.read.stream and stream_plan(turn, q, route, a, fault) or whole_plan(turn, route, a)
  end
  p.wait = turn.delay
  return p
end

local function json_plan(value)
  return { status = 200, type = "application/json", bytes = ah.json.encode(value) }
end

local function decoded(body)
  local value, err = ah.json.decode(body)
  if not check.is_object(value) then
    check.refuse("We could not parse the JSON body of your request: %s",
      value == nil and tostring(err) or "expected an object")
  end
  return value
end

local function refuse_unreadable()
  check.refuse "The request cannot be read: a member of it is of another type than expected."
end

-- Refuses a request that the service would refuse, or that the check cannot read.
local function check_request(provider, body, context)
  local ok, raised = pcall(provider.check, body, context)
  if not ok and type(raised) ~= "table" then
    refuse_unreadable()
  elseif not ok then
    error(raised, 0)
  end
end

-- Reads the request. If that fails, the check refuses it with a better message.
local function read(provider, body, context)
  local ok, found = pcall(provider.read, body, context)
  if not ok and type(found) ~= "table" then
    check_request(provider, body, context)
    refuse_unreadable()
  elseif not ok then
    error(found, 0)
  end
  return found
end

-- Returns the plan for a request; raises if the request is faulty.
local function respond(q, route)
  local provider = route.provider
  if not route.kind then
    refuse_path(q, route)
  end
  local context = { headers = q.headers, kind = route.kind, model = route.model,
    memory = server.memory[route.format] }
  if route.kind == "models" then
    return json_plan(provider.models { "script" })
  elseif route.kind == "model" then
    return json_plan(provider.model(route.model))
  end
  local body = decoded(q.body)
  if route.kind == "count" then
    body = check.given(body.generateContentRequest) or body
  end
  q.decoded = body
  body = provider.expand and provider.expand(body, context) or body
  q.asked = body
  if server.strict then
    check_request(provider, body, context)
  end
  q.read = read(provider, body, context)
  if route.kind == "count" then
    return json_plan(provider.count(new_cache():look("", q.read.segments).input))
  end
  local turn
  turn, q.searches = search.carry_out(server.turn, q.read.request, q.read.deferred, ah.json.encode)
  return turn_plan(turn, q, route)
end

-- -- the log ---------------------------------------------------------------------------------

local function hidden(headers)
  local shown = ah.object {}
  for name, value in pairs(headers) do
    shown[plan.legible(name)] = SECRET[name] and "[secret]" or plan.legible(value)
  end
  return shown
end

local function log(q, route, p)
  if not server.log then
    return
  end
  local taken = q.taken or {}
  local path = q.path .. q.query:gsub("([?&]key=)[^&]*", "%1[secret]")
  server.log:write(ah.json.encode { n = q.n, time = os.time(), method = q.method,
    path = plan.legible(path), headers = hidden(q.headers),
    format = route.kind and route.format, status = p.status, stream = q.read and q.read.stream,
    body = q.decoded or plan.legible(q.body),
    input = taken.input, cached_read = taken.read, cached_write = taken.write,
    cache_break = taken.broke, fault = p.fault and p.fault.message }, "\n")
  server.log:flush()
end

local function words(q, p)
  local text = ("%d %s %s: %d"):format(q.n, q.method, q.path, p.status)
  if p.fault then
    return text .. ", " .. p.fault.message
  elseif q.taken then
    text = ("%s, %d tokens, %d of them cached"):format(text, q.taken.input, q.taken.read)
    text = q.taken.broke and text .. ", a cache break: other " .. q.taken.broke or text
  end
  return text
end

local function tell(q, route, p)
  log(q, route, p)
  ah.log(p.fault and "warning" or "info", plan.legible(words(q, p)))
end

-- -- requests ----------------------------------------------------------------------------

-- Returns a request in the form used here, and its route.
local function question(request)
  server.n = server.n + 1
  local q = { n = server.n, id = "req_mock" .. server.n, method = request.method,
    path = request.path, query = request.target:match("^[^?]*(.*)$"), body = request.body or "",
    headers = headers_of(request.headers) }
  return q, route_of(q.method, q.path, q.headers) or asker_of(q.path, q.headers)
end

local function failed(q, route, fault)
  fault.message = plan.legible(fault.message)
  local p = failure_plan(q, route, fault)
  p.fault = fault
  return p
end

-- Same contract as plan.say.
local function say(p, q, route, response)
  local function head()
    tell(q, route, p)
    plan.sleep(p.wait or 0)
    response:begin(head_of(p, q, route))
  end
  if p.bytes then
    p.body, p.length = plan.whole({}, p.bytes)
  end
  return plan.say(p.body, response, head)
end

local function drop(p, q, route, response)
  tell(q, route, p)
  plan.sleep(p.wait or 0)
  response:abort()
end

local function break_off(q, why, response)
  local text = ("%d: the stream broke off, %s"):format(q.n, fault_of(why).message)
  ah.log("warning", plan.legible(text))
  response:abort()
end

-- Answers a request, also after any error of the client or the script.
local function answer(request, response)
  local q, route = question(request)
  local ok, p = pcall(respond, q, route)
  p = ok and p or failed(q, route, fault_of(p))
  if p.drop then
    return drop(p, q, route, response)
  end
  local said, why, begun = say(p, q, route, response)
  if begun and not said then
    break_off(q, why, response)
  elseif not said then
    say(failed(q, route, fault_of(why)), q, route, response)
  end
end

-- Returns a value to be closed when a request is over, however it ended. It counts the request;
-- the last one that --once allows closes the server.
local function counted()
  return setmetatable({}, { __close = function()
    server.over = server.over + 1
    if server.over == server.once then
      server.http:close()
    end
  end })
end

local wait = foreign.waits(function(response) return response:wait() end)

local function on_request(request, response)
  local _ <close> = counted()
  answer(request, response)
  response:close()
  wait(response)
end

--- Returns the response to a request that the server itself refuses, in the request's protocol.
local function on_refusal(refusal, request)
  local _ <close> = counted()
  local q, route = question(request)
  local p = failed(q, route, { status = refusal.status, message = refusal.message })
  tell(q, route, p)
  local head = head_of(p, q, route)
  head.body = p.bytes
  return head
end

-- -- starting ----------------------------------------------------------------------------

local function formats_of(format)
  local serves = {}
  for _, name in ipairs(FORMATS) do
    serves[name] = format == "all" or format == name
  end
  return serves
end

--- Reads the script and prepares the server; raises if that fails.
---@param script string its path, "-": standard input
---@param format string "all" or one of the formats
---@param strict string "strict" or "lenient"
---@param log_path string where requests are kept; "": nowhere
local function start(script, format, strict, log_path)
  collectgarbage("incremental", GC_PAUSE)
  foreign.keep_globals()
  server = { n = 0, turn = foreign.called(turns_of(script)), serves = formats_of(format),
    cache = new_cache(), strict = strict == "strict", memory = {}, over = 0 }
  for _, name in ipairs(FORMATS) do
    server.memory[name] = {}
  end
  if log_path ~= "" then
    server.log = ah._append_private(log_path)
  end
end

--- Listens, and returns the address as text.
---@param address string numbers only
---@param port integer
---@param once integer requests after which it ends; 0: never
---@return string
local function listen(address, port, once)
  local fields = { on_request = foreign.door(on_request), on_refusal = foreign.door(on_refusal) }
  for name, value in pairs(BOUNDS) do
    fields[name] = value
  end
  fields.listen = (address:find ":" and "[%s]:%d" or "%s:%d"):format(address, port)
  local ok, http, err = pcall(ah.serve, fields)
  if not ok then
    refuse("cannot listen on %s port %d: %s", address, port,
      (http.message:gsub("^ah%.serve: listen: ", "")))
  end
  server.http, server.once = http, once
  return http and http.url or error(ah.error { code = "internal", message = err.message }, 0)
end

--- Serves until the last request or a signal.
local function serve()
  server.http:wait()
end

local function run(flags, scripts, out)
  if flags.listen then
    ah.log("warning",
      "--listen: other machines may reach this server, which is for tests and has no protection")
  end
  start(scripts[1], flags.format or "all", flags.lenient and "lenient" or "strict",
    flags.log or "")
  out:write(listen(flags.listen or "127.0.0.1", flags.port or 0, flags.once or 0), "\n"):flush()
  serve()
end

local function defects()
  local names = {}
  for _, row in ipairs(use "mock.fields") do
    names[#names + 1] = row.defect and row.name or nil
  end
  return table.concat(names, " ")
end

return {
  name = "mock",
  doc = "be a model server that answers from a script",
  usage = "script.lua",
  help = [[
Speaks as OpenAI, Anthropic, Gemini and Ollama do, refuses what strict providers
refuse, prints its address as one line; ends by a signal or --once. The script
returns turns as for ah.scripted, or their JSON. They may fail, wait or break by
]] .. "  " .. defects() .. "\n",
  operand = { name = "script", least = 1, most = 1, file = true, complete = "lua|json" },
  flags = FLAGS,
  apart = true,
  run = run,
  start = start, listen = listen, serve = serve, answer = answer, refuse = on_refusal,
}
