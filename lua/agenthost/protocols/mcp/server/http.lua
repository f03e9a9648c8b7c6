--- The transport of the Model Context Protocol over HTTP ("Streamable HTTP"), on ah.serve: one
-- endpoint, a message a POST. A request is answered by JSON, or by a stream of events if something
-- comes before its result. Clients of the older revisions have sessions here, which the header
-- Mcp-Session-Id names, and may open one stream by GET. Each request must have a token: that of
-- this server, or one of an authorization server (oauth.lua).
local ah = ...

local headers = ah._module "agenthost.protocols.mcp.headers"
local message = ah._module "agenthost.protocols.mcp.message"
local new_oauth = ah._module "agenthost.protocols.mcp.server.oauth"

local CODES, META = message.CODES, message.META

local PATH = "/mcp"
local MOST_SESSIONS = 256
local MOST_JOBS = 4096
local MOST_LINES = 64 -- messages that wait on a stream
local IDLE = 1800 -- seconds after which a session without requests ends
local SWEEP = 30 -- seconds between two looks at sessions and at calls that wait
local ALIVE = 15 -- seconds between two comments on a stream

-- The time without a byte is for calls that work for long before they have a result.
-- Clients that listen hold their requests.
local LIMITS = { max_body = message.MOST_LINE, idle_timeout = 600, max_requests = 1024,
  max_connections = 1536 }

local Door = {}
Door.__index = Door

-- -- responses ------------------------------------------------------------------------------------

local function json(line, status, more)
  more = more or {}
  more["Content-Type"] = "application/json"
  return { status = status, headers = more, body = line }
end

local function failure(status, id, code, text, ...)
  return json(message.failure(id, code, text:format(...)), status)
end

local function event(response, line)
  return response:event { data = (line:gsub("\n$", "")) }
end

-- Writes the lines of a channel as events until it is closed, and comments in between, by which
-- proxies see that the stream is alive.
local function stream(response, first, lines)
  response:begin { headers = { ["Content-Type"] = "text/event-stream",
    ["Cache-Control"] = "no-cache", ["X-Accel-Buffering"] = "no" } }
  if first then
    event(response, first)
  end
  local _ <close> = ah.every(ALIVE, function()
    lines:send ":"
  end)
  for line in lines do
    if line == ":" then
      response:write ":\n\n"
    else
      event(response, line)
    end
  end
end

-- -- headers --------------------------------------------------------------------------------------

local function header(request, name)
  local values = request.headers[name]
  return values and values[#values]
end

-- True if a header's text means this value; integers are compared as numbers.
local function means(text, value)
  return text == value or text ~= nil and value:find "^-?%d+$" ~= nil
    and text:find "^-?%d+%.0+$" ~= nil and tonumber(text) == tonumber(value)
end

-- Returns what is wrong with a header that repeats a text of the body; nil: nothing.
local function mismatch(request, name, value)
  local found = header(request, name:lower())
  if not found then
    return ("the header %s is missing"):format(name)
  elseif not means(headers.decode(found), value) then
    return ("the header %s has '%s', which is not what the body has"):format(name,
      message.said(found))
  end
end

-- Returns what is wrong with the headers that repeat arguments of a tool; nil: nothing.
local function argument_fault(self, request, params)
  local marked = self.server.fixed.marked[params.name]
  local wanted = headers.of(marked, message.object(params.arguments)) or {}
  for _, one in ipairs(marked or {}) do
    local value = wanted[one.name]
    local said
    if value then
      said = mismatch(request, one.name, value)
    elseif header(request, one.name:lower()) then
      said = ("the header %s is there, and the body has no such argument"):format(one.name)
    end
    if said then
      return said
    end
  end
end

-- Returns what is wrong with the headers of a request of revision 2026-07-28; nil: nothing.
local function header_fault(self, request, m)
  local revision = message.said(m.params._meta[META.revision])
  local said = mismatch(request, "MCP-Protocol-Version", revision)
    or mismatch(request, "Mcp-Method", m.method)
  local value = headers.name(m.method, m.params)
  if said or type(value) ~= "string" then
    return said
  end
  return mismatch(request, "Mcp-Name", value)
    or m.method == "tools/call" and argument_fault(self, request, m.params) or nil
end

local function accepts(request, kind)
  local said = table.concat(request.headers.accept or {}, ","):lower()
  return said:find(kind, 1, true) ~= nil or said:find("*/*", 1, true) ~= nil
end

-- -- tokens ---------------------------------------------------------------------------------------

local Token = {}
Token.__index = Token

function Token.page() end

-- Accepts the token of this server. The comparison takes the same time for all other tokens.
function Token:enter(token)
  local once = ah.random_bytes(32)
  if token and ah.hmac(once, token) == ah.hmac(once, self.token) then
    return "token"
  end
  return nil, { status = 401, headers = { ["WWW-Authenticate"] = "Bearer" },
    body = "the header Authorization must have the token of this server: Bearer TOKEN\n" }
end

local function guard_of(options, url)
  return options.oauth and new_oauth(options.oauth, url)
    or setmetatable({ token = options.token }, Token)
end

-- Returns the name of the client of a request; nil and the response that refuses it.
local function enter(self, request)
  local said = header(request, "authorization") or ""
  return self.guard:enter(said:match "^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$")
end

-- -- requests -------------------------------------------------------------------------------------

-- The status of errors of revision 2026-07-28; the older ones have 200.
local STATUS = { [CODES.method] = 404, [CODES.params] = 400, [CODES.revision] = 400,
  [CODES.capability] = 400 }

local function status_of(q)
  local modern = not q.features or q.features.modern
  return q.err and modern and STATUS[q.err.code] or nil
end

-- Begins to answer a request. Returns a channel with what comes before the result, which is closed
-- when q.line has the result.
local function begin(self, q, peer)
  local lines = ah.channel(MOST_LINES)
  function q.send(line)
    if not q.cancelled then
      lines:send(line)
    end
  end
  self.server.start(function()
    local _ <close> = setmetatable({}, { __close = function()
      q.over = true
      if peer then
        peer:leave(q)
      end
      lines:close()
    end })
    q.line, q.err = self.server:answer(q)
  end)
  return lines
end

-- Cancels the request if the client goes away before its end.
local function watched(q)
  return setmetatable({}, { __close = function()
    if not q.over and not q.cancelled then
      q.cancelled = true
      if q.cancel then
        q.cancel()
      end
    end
  end })
end

local function respond(self, q, peer, response, more)
  local lines = begin(self, q, peer)
  local _ <close> = watched(q)
  local first = lines:receive()
  if first then
    stream(response, first, lines)
    if q.line then
      event(response, q.line)
    end
    return nil
  elseif not q.line then
    return nil
  end
  return json(q.line, status_of(q), more)
end

local function query_of(m, principal, peer)
  return { id = m.id, method = m.method, params = m.params, peer = peer, principal = principal }
end

-- -- sessions -------------------------------------------------------------------------------------

local function end_session(self, id)
  local peer = self.sessions[id]
  self.sessions[id], self.n = nil, self.n - 1
  peer:close()
  if peer.stream then
    peer.stream:close()
  end
end

-- Ends the sessions that had no request for too long; if there are too many, one more.
local function sweep(self, most)
  local now, oldest = ah._clock(), nil
  for id, peer in pairs(self.sessions) do
    local idle = peer.n == 0 and not peer.stream
    if idle and peer.used + IDLE < now then
      end_session(self, id)
    elseif idle and (not oldest or peer.used < self.sessions[oldest].used) then
      oldest = id
    end
  end
  if self.n > most and oldest then
    end_session(self, oldest)
  end
end

-- Returns a client with a session. What belongs to no request goes to its stream; without one it
-- goes to the request that caused it, if there is one.
local function new_session(self, principal)
  local peer
  peer = self.server:peer(function(line, q)
    if peer.stream and #peer.stream < MOST_LINES then
      peer.stream:send(line)
    elseif not peer.stream and q then
      q.send(line)
    end
  end)
  peer.used, peer.principal = ah._clock(), principal
  return peer
end

local function initialize(self, m, response, principal)
  sweep(self, MOST_SESSIONS - 1)
  if self.n >= MOST_SESSIONS then
    return failure(503, m.id, CODES.internal, "%d sessions are at work, and there can be no more",
      self.n)
  end
  local peer = new_session(self, principal)
  local q, id = query_of(m, principal, peer), ah.base64url.encode(ah.random_bytes(24))
  peer:enter(q)
  local answer = respond(self, q, peer, response, { ["Mcp-Session-Id"] = id })
  if peer.revision then
    self.sessions[id], self.n = peer, self.n + 1
  end
  return answer
end

-- Returns the client of the session that a request names; nil and the response. Sessions of others
-- are as unknown.
local function session_of(self, request, principal, id)
  local name = header(request, "mcp-session-id")
  local peer = name and self.sessions[name]
  peer = peer and peer.principal == principal and peer or nil
  local revision = header(request, "mcp-protocol-version")
  if not name then
    return nil, failure(400, id, CODES.request,
      'the header Mcp-Session-Id is missing, and "_meta" has no "%s"', META.revision)
  elseif not peer then
    return nil, failure(404, id, CODES.request, "there is no such session: initialize again")
  elseif revision and not message.features(revision) then
    return nil, failure(400, id, CODES.request, "unknown MCP-Protocol-Version '%s'",
      message.said(revision))
  end
  peer.used = ah._clock()
  return peer, name
end

local function take_older(self, request, m, response, principal)
  local peer, refused = session_of(self, request, principal, m.id)
  if not peer then
    return refused
  elseif m.kind ~= "request" then
    peer:take(m)
    return { status = 202 }
  end
  local q = query_of(m, principal, peer)
  local ok, err = peer:enter(q)
  if not ok then
    return failure(nil, m.id, err.code, "%s", err.message)
  end
  return respond(self, q, peer, response)
end

-- -- the endpoint ---------------------------------------------------------------------------------

local function take(self, request, m, response, principal)
  local meta = message.object(m.params and m.params._meta)
  local modern = meta[META.revision] ~= nil
    or header(request, "mcp-protocol-version") == message.LATEST
  if m.kind == "request" and m.method == "initialize" and not modern then
    return initialize(self, m, response, principal)
  elseif not modern then
    return take_older(self, request, m, response, principal)
  elseif m.kind ~= "request" then
    return { status = 202 }
  end
  local fault = meta[META.revision] ~= nil and header_fault(self, request, m)
  if fault then
    return failure(400, m.id, CODES.header, "Header mismatch: %s", fault)
  end
  return respond(self, query_of(m, principal), nil, response)
end

local function post(self, request, response, principal)
  local kind = (header(request, "content-type") or ""):lower()
  if not kind:find "^application/json%s*$" and not kind:find "^application/json%s*;" then
    return failure(415, nil, CODES.request, "Content-Type must be application/json")
  elseif not accepts(request, "application/json") or not accepts(request, "text/event-stream") then
    return failure(406, nil, CODES.request,
      "Accept must have both application/json and text/event-stream")
  end
  local m, why = message.read(request.body or "")
  if not m then
    return failure(400, why.id, why.code, "%s", why.message)
  end
  return take(self, request, m, response, principal)
end

-- The stream of a session for what belongs to no request.
local function get(self, request, response, principal)
  local peer, refused = session_of(self, request, principal)
  if not peer then
    return refused
  elseif not accepts(request, "text/event-stream") then
    return failure(406, nil, CODES.request, "Accept must have text/event-stream")
  elseif peer.stream then
    return failure(409, nil, CODES.request, "the session has a stream already")
  end
  local lines = ah.channel(MOST_LINES)
  local _ <close> = setmetatable({}, { __close = function()
    peer.stream = nil
  end })
  peer.stream = lines
  stream(response, nil, lines)
end

local function delete(self, request, _, principal)
  local peer, refused = session_of(self, request, principal)
  if not peer then
    return refused
  end
  end_session(self, refused)
  return { status = 200 }
end

local OF_SESSION = { GET = get, DELETE = delete }

local function serve(self, request, response, principal)
  if request.method == "POST" then
    return post(self, request, response, principal)
  elseif OF_SESSION[request.method] and header(request, "mcp-session-id") then
    return OF_SESSION[request.method](self, request, response, principal)
  end
  return { status = 405, headers = { Allow = "POST" }, body = "send messages by POST\n" }
end

function Door:request(request, response)
  local page = self.guard:page(request)
  if page then
    return page
  elseif request.path ~= PATH then
    return { status = 404, body = "the endpoint is " .. PATH .. "\n" }
  end
  local principal, refused = enter(self, request)
  if not principal then
    return refused
  end
  return serve(self, request, response, principal)
end

local function refusal(refused)
  return json(message.failure(nil, CODES.request, refused.message), refused.status)
end

-- Returns the fields of ah.serve.
local function fields_of(self, options)
  local fields = { listen = options.listen, on_refusal = refusal, hosts = options.hosts,
    on_request = function(request, response)
      return self:request(request, response)
    end }
  for name, value in pairs(LIMITS) do
    fields[name] = value
  end
  return fields
end

--- Serves until it is stopped. new_server(start) returns the server, or nil and the reason, which
-- this returns, too. options: `listen`, an address; `token`, or `oauth` as oauth.lua has it;
-- `hosts`, further names of this host; ready(url), called when it listens.
return function(new_server, options)
  return ah.scope(function(scope)
    local jobs = ah.channel(MOST_JOBS)
    local server, why = new_server(function(f)
      jobs:send(f)
    end)
    if not server then
      return nil, why
    end
    local self = setmetatable({ server = server, sessions = {}, n = 0 }, Door)
    local http <close>, err = ah.serve(fields_of(self, options))
    if not http then
      return nil, err.message
    end
    local _ <close> = ah.every(SWEEP, function()
      sweep(self, MOST_SESSIONS)
      server.waiting:sweep()
    end)
    self.guard = guard_of(options, http.url .. PATH)
    options.ready(http.url .. PATH)
    for job in jobs do
      scope:spawn(job)
    end
  end)
end
