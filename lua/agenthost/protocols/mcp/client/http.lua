--- Streamable HTTP as a transport of MCP (connection.lua has what a transport does). Each message
-- is a POST of its own; a request is answered by one message or by a stream of them. Owns the
-- streams.
--
-- Revision 2026-07-28 has neither sessions nor streams that go on after they were lost. In the
-- older ones a server may have a session, a stream for what belongs to no request (GET), and
-- streams that are asked for again from their last event on.
--
-- A task of its own carries each request as long as its caller waits. The stream that belongs to no
-- request stays open between calls; it is read while a caller waits, or looks.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local headers = ah._module "agenthost.protocols.mcp.headers"

local SAY_TIMEOUT = 10 -- seconds for a message without an answer
local LAST_TIMEOUT = 2 -- seconds for what is said at an end
local HEAD = 1 -- seconds for the head of the answer of the stream that belongs to no request
local LOOK = 0.02 -- seconds of a look at the stream that belongs to no request
local LONG = 86400 -- seconds without a byte on a stream; the requests have limits of their own
local MOST_TRIES = 3 -- of a request that was refused for want of authorization
local MOST_RESUMED = 100 -- times that the stream of one request is asked for again
local LONGEST_RETRY = 60 -- seconds before that, whatever the server says
local RETRY = 1 -- seconds before that, if the server does not say
local MOST_REFUSAL = 1 << 20 -- bytes of the body of a refusal

local Http = {}
Http.__index = Http

--- config: as of a connection; url, headers, authorization (authorization.lua), or nil.
local function new(connection, config)
  return setmetatable({ connection = connection, url = config.url, headers = config.headers,
    authorization = config.authorization, tasks = {} }, Http)
end

-- -- requests of HTTP -----------------------------------------------------------------------------

--- Returns the headers of a POST. pending: the request, or nil.
local function fields_of(self, pending)
  local features, revision = self.connection.features or {}, self.connection.revision
  local fields = {}
  for name, value in pairs(self.headers or {}) do
    fields[name] = value
  end
  fields["Content-Type"] = "application/json"
  fields.Accept = "application/json, text/event-stream"
  if revision and not (pending and pending.method == "initialize") then
    fields["MCP-Protocol-Version"] = revision
    fields["Mcp-Session-Id"] = not features.modern and self.session or nil
  end
  if features.modern and pending then
    local name = headers.name(pending.method, pending.params)
    fields["Mcp-Method"], fields["Mcp-Name"] = pending.method, name and headers.encode(name)
    for key, value in pairs(pending.headers or {}) do
      fields[key] = headers.encode(value)
    end
  end
  return fields
end

local function lost(self, why)
  return self.connection:failure("provider", why, { retryable = true, reason = "lost" })
end

--- True if a response asks for a token, or for one with more scopes.
local function wants_token(response)
  local challenge = response.headers["www-authenticate"] or ""
  return response.status == 401
    or response.status == 403 and challenge:find("insufficient_scope", 1, true) ~= nil
end

--- Calls a method of the authorization; the time that it takes is no time of the server.
local function authorize(self, pending, method, ...)
  local authorization = self.authorization
  if not pending then
    return authorization[method](authorization, ...)
  end
  pending:hold()
  local value, err = authorization[method](authorization, ...)
  pending:go_on()
  return value, err
end

--- Gets another token after a refusal. Returns true; or nil and an error.
local function renew(self, pending, response, sent)
  if not self.authorization then
    return nil, self.connection:failure("provider", ("it wants to know who asks (HTTP status %d); "
      .. "see `headers` and `auth` of ah.mcp"):format(response.status))
  end
  return authorize(self, pending, "refused", response.status,
    response.headers["www-authenticate"], sent)
end

local function send(self, method, fields, body, timeout)
  local response, err = ah.http { url = self.url, method = method, headers = fields, body = body,
    stream = "sse", timeout = timeout, idle_timeout = LONG, max_piece = message.MOST_LINE }
  if not response then
    return nil, lost(self, "it cannot be reached: " .. err.message)
  end
  return response
end

--- Makes a request of HTTP that may be lost: with the token that is there, and once. more: timeout.
-- Returns the response as a stream; or nil and an error.
local function request_once(self, method, fields, body, more)
  fields.Authorization = self.authorization and self.authorization:held() or fields.Authorization
  return send(self, method, fields, body, more.timeout)
end

--- Makes a request of HTTP, again if it then has another token. Returns the response as a stream;
-- or nil and an error.
local function request(self, method, fields, body, pending)
  for _ = 1, MOST_TRIES do
    local sent
    if self.authorization then
      sent = authorize(self, pending, "header")
      fields.Authorization = sent
    end
    local response, failed = send(self, method, fields, body)
    if not response then
      return nil, failed
    elseif not wants_token(response) then
      if self.authorization then
        self.authorization:accepted(sent)
      end
      return response
    end
    response:close()
    local ok, why = renew(self, pending, response, sent)
    if not ok then
      return nil, why
    end
  end
  return nil, self.connection:failure("provider", "it refuses each token")
end

local function has_events(response)
  return (response.headers["content-type"] or ""):lower():find "^text/event%-stream" ~= nil
end

--- Sends a message without an answer. It may be lost. asked: as of a connection's `say`.
local function say(self, line, timeout, asked)
  local response = request_once(self, "POST", fields_of(self, asked), line, { timeout = timeout })
  if response then
    response:close()
  end
end

function Http:say(line, asked)
  say(self, line, asked and LAST_TIMEOUT or SAY_TIMEOUT, asked)
end

-- -- the answer of a request ----------------------------------------------------------------------

--- Takes a message of the server. An error without an id is the answer of this request.
local function take(self, pending, text)
  local said = pending and message.read(text)
  if said and said.kind == "error" and said.id == nil then
    self.connection:settle(pending, said)
  else
    self.connection:take(text)
  end
end

--- Called for a response that is no 200: the message in its body is the answer, or its status.
local function refuse(self, pending, response)
  local text = response:read_all() or ""
  local said = #text <= MOST_REFUSAL and message.read(text)
  local ours = said and said.kind == "error" and (said.id == nil or said.id == pending.id)
  local features = self.connection.features
  if self.session and not features.modern and (response.status == 404
    or response.status == 400 and not (ours and said.id)) then
    self:forget()
    return self.connection:settle(pending, nil, self.connection:failure("provider",
      "it has forgotten the session", { retryable = true, reason = "forgotten" }))
  elseif ours then
    return self.connection:settle(pending, said)
  end
  self.connection:settle(pending, { kind = "error", code = 0,
    text = ("it answers with the HTTP status %d"):format(response.status) })
end

--- Reads a stream to its end. Returns the id of its last event, the time to wait before it is asked
-- for again, and the error that has ended it.
local function read_stream(self, pending, stream)
  local response <close> = stream
  for event in response:pieces() do
    if event.data ~= "" then
      take(self, pending, event.data)
    end
    if pending and (pending.answer or pending.err) then
      break
    end
  end
  return response.last_event_id, response.retry, response.err
end

--- Asks for the rest of a stream. Returns it, or nil and an error.
local function resume(self, pending, last, retry)
  ah.sleep(math.min(retry and retry / 1000 or RETRY, LONGEST_RETRY))
  local fields = fields_of(self)
  fields["Content-Type"], fields.Accept = nil, "text/event-stream"
  fields["Last-Event-ID"] = last
  local response, err = request(self, "GET", fields, nil, pending)
  if response and (response.status ~= 200 or not has_events(response)) then
    response:close()
    return nil, lost(self, ("its stream has ended, and cannot be resumed (HTTP status %d)"):format(
      response.status))
  end
  return response, err
end

--- Reads the stream that answers a request, and where the revision allows it what follows.
local function follow(self, pending, stream)
  for _ = 1, MOST_RESUMED do
    local last, retry, err = read_stream(self, pending, stream)
    if pending.answer or pending.err then
      return
    elseif self.connection.features.modern or not last then
      return nil, lost(self, "its stream has ended without an answer"
        .. (err and ": " .. err.message or ""))
    end
    stream, err = resume(self, pending, last, retry)
    if not stream then
      return nil, err
    end
  end
  return nil, lost(self, "its stream was resumed too often")
end

--- Sends a request and takes what comes back.
local function carry(self, pending, line)
  local response, err = request(self, "POST", fields_of(self, pending), line, pending)
  if not response then
    return nil, err
  end
  local held <close> = response
  if pending.method == "initialize" then
    self.session = message.text(response.headers["mcp-session-id"], 1024)
  end
  if response.status ~= 200 then
    return refuse(self, pending, response)
  elseif has_events(response) then
    return follow(self, pending, held)
  end
  local text, why = response:read_all()
  if not text then
    return nil, lost(self, "its answer cannot be read: " .. why.message)
  end
  take(self, pending, text)
end

--- Sends a request, in a task that ends when the caller leaves.
function Http:send(pending, line)
  self.tasks[pending] = ah.spawn(function()
    local _, err = carry(self, pending, line)
    self.connection:settle(pending, nil, err or lost(self, "it has sent no answer"))
  end)
  return true
end

-- -- the stream that belongs to no request --------------------------------------------------------

--- Keeps a stream that belongs to no request. A server need not have one.
local function keep(self, response)
  self.begin = nil
  if response and response.status == 200 and has_events(response) then
    self.stream = response
    return
  elseif response then
    response:close()
  end
  self.connection.listening = nil
end

function Http:stop_hearing()
  if self.ear then
    self.ear:cancel()
  end
  if self.stream then
    self.stream:close()
  end
  self.ear, self.listener, self.stream, self.begin = nil, nil, nil, nil
end

--- Reads the stream as long as the task lives, and begins it before, if that is left to do.
local function read_ear(self)
  if self.begin then
    keep(self, (self.begin()))
  end
  local stream = self.stream
  for event in stream and stream:pieces() or function() end do
    if event.data ~= "" then
      self.connection:take(event.data)
    end
  end
  if stream and self.stream == stream then
    stream:close()
    self.stream, self.connection.listening = nil, nil
  end
end

--- Begins such a stream. A server that does not begin its answer at once is not waited for: the
-- next caller that waits goes on with it.
local function hear(self, begin)
  self:stop_hearing()
  self.begin = begin
  ah.with_timeout(HEAD, function()
    keep(self, (begin()))
  end)
end

--- Begins the stream of a subscription (2026-07-28).
function Http:listen(line)
  local pending = { method = "subscriptions/listen", params = {} }
  hear(self, function()
    return request_once(self, "POST", fields_of(self, pending), line, {})
  end)
end

--- Begins the stream of the older revisions.
function Http:agreed()
  if not self.connection.features.modern then
    hear(self, function()
      local fields = fields_of(self)
      fields["Content-Type"], fields.Accept = nil, "text/event-stream"
      return request_once(self, "GET", fields, nil, {})
    end)
  end
end

--- Lets a caller that waits listen for all.
local function lend_ear(self, listener)
  if (self.stream or self.begin) and not self.ear then
    self.listener = listener
    self.ear = ah.spawn(read_ear, self)
  end
end

local function take_ear(self, listener)
  if self.listener == listener then
    local ear = self.ear
    self.ear, self.listener = nil, nil
    ear:cancel()
    for _, other in pairs(self.connection.pending) do
      other:wake() -- one of them listens on
    end
  end
end

-- -- callers that wait ----------------------------------------------------------------------------

function Http.open()
  return true
end

function Http:wait(pending)
  lend_ear(self, pending)
  pending.waits = true -- before its task begins, so that no news is missed
  ah.with_timeout(math.max(pending:ends_at() - ah.now(), 0.001), pending.doze, pending)
  pending.waits = false
end

function Http:pause(pending)
  take_ear(self, pending)
end

--- Ends the stream of a request, which cancels it; the older revisions want to be told, too.
function Http:leave(pending, given_up)
  take_ear(self, pending)
  local task = self.tasks[pending]
  self.tasks[pending] = nil
  if task then
    task:cancel()
  end
  if given_up and not self.connection.features.modern and self.connection.live then
    say(self, pending:cancellation(), LAST_TIMEOUT)
  end
end

function Http:catch_up()
  if self.stream and not self.ear then
    ah.with_timeout(LOOK, read_ear, self)
  end
end

function Http.note()
end

-- -- the end --------------------------------------------------------------------------------------

--- Drops the session, as the server has forgotten it.
function Http:forget()
  self.session = nil
  self:stop_hearing()
  self.connection.live = false
end

--- Gives up the server, and all requests.
function Http:lose(why)
  self:stop_hearing()
  self.session = nil
  self.connection:ending()
  self.connection:over(lost(self, why))
end

function Http:close()
  self:stop_hearing()
  if self.session then
    local response = request_once(self, "DELETE", fields_of(self), nil,
      { timeout = LAST_TIMEOUT })
    if response then
      response:close()
    end
    self.session = nil
  end
  self.connection:over(lost(self, "it was closed"))
end

return { new = new }
