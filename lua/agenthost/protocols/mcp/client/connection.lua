--- A connection with a server of MCP: agrees on a revision, sends requests and gives each its
-- answer. A transport carries the messages: stdio.lua (a process) or http.lua. The server is
-- started when a request needs it, and again, later and later, after it has ended. All that comes
-- from the server is bounded and may be a lie.
--
-- A transport has
--   open()                  gets ready to carry messages; true, or nil and an error
--   send(pending, line)     sends a request; true, or nil and an error
--   say(line, request)      sends what has no answer; it may be lost. request: `{ method, params }`
--                           of one whose answer is not read
--   listen(line)            sends a request whose answer is a stream without an end
--   wait(pending)           waits until there may be news for a request, or its time is over
--   pause(pending)          called when its caller does not wait
--   leave(pending, given_up)  called when a request is over; given_up: without an answer
--   agreed()                called when a revision is agreed upon
--   lose(why)               ends the server and all requests
--   catch_up()              reads what is there, without waiting for more
--   note()                  logs what the server has written for people
--   close()
--   may_end_early           true if a server that ends at the first request is opened again
-- It gives what it reads to take(), and calls ending() and over(err) when the server is lost.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local INFO = { name = "agenthost", version = ah.version }
local OFFERED = "2025-11-25" -- revision that is offered to a server with a handshake
local OLDER = { ["2025-03-26"] = true, ["2024-11-05"] = true } -- as 2025-06-18 for what is used
local PROBE = 10 -- seconds after which a silent server is taken for one with a handshake
local MOST_PENDING = 1024 -- requests without an answer
local MOST_IDLE = 10000 -- messages in a row that answer no request
local PROGRESS = 0.9 -- of such a message, a report of progress does not count
local MOST_IDLE_BYTES = 256 << 20
local FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30 -- seconds before a server is started again
local HELD = 1e6 -- seconds that a request without a time limit of its own may take
local SOUND = 60 -- seconds after which a server that ends did not fail to start

local Connection = {}
Connection.__index = Connection

--- config: name, transport (a module), what that reads, start_timeout, capabilities (what the
-- client can do), extensions (of these, in revisions that have them), offered (a function: true
-- for a method that the server may ask for), answers (functions for those that need no call, by
-- method), on_started (a function), on_changed (one that is called with the method of a
-- notification about lists).
local function new(config)
  local self = setmetatable({ name = config.name, config = config, ids = 0, pending = {},
    n_pending = 0, failures = 0, refused = 0, ended = 0, idle = 0, idle_bytes = 0, faults = 0,
    door = ah.semaphore(1) }, Connection)
  self.offers = { extensions = config.extensions }
  for name, value in pairs(config.capabilities) do
    self.offers[name] = value
  end
  self.transport = config.transport.new(self, config)
  return self
end

--- Returns an error that names the server.
function Connection:failure(code, text, more)
  local err = more or {}
  err.code, err.message = code, ("MCP server '%s': %s"):format(self.name, text)
  return ah.error(err)
end

-- -- requests that wait ---------------------------------------------------------------------------

local Pending = {}
Pending.__index = Pending

--- Wakes the caller if it dozes.
function Pending:wake()
  if self.waits and #self.channel == 0 then
    self.channel:send(true)
  end
end

--- Waits for `wake`.
function Pending:doze()
  self.waits = true
  self.channel:receive()
  self.waits = false
end

--- Returns the time at which it is over without a sign of the server.
function Pending:ends_at()
  return math.min(self.due, self.last)
end

--- Stops its time, as long as a person or another server is waited for; `go_on` lets it begin anew.
function Pending:hold()
  self.due = ah.now() + HELD
  self.last = self.due
end

function Pending:go_on()
  self.due = ah.now() + self.timeout
  self.last = ah.now() + (self.longest or self.timeout)
  self:wake()
end

function Pending:cancellation()
  return message.notification("notifications/cancelled", { requestId = self.id })
end

--- Gives up the request: its answer is not awaited from here on, and the server learns it.
function Pending:__close()
  local connection = self.connection
  local given_up = connection.pending[self.id] == self
  if given_up then
    connection.pending[self.id], connection.n_pending = nil, connection.n_pending - 1
  end
  connection.transport:leave(self, given_up and self.sent and not self.quiet)
end

--- Returns a request that an answer is awaited for; to be held in a variable marked <close>.
-- more: timeout (seconds without a sign of the server), longest (seconds altogether), quiet (it is
-- not to be cancelled), on_progress, on_question, meta (members of `_meta`), headers (of HTTP).
local function expect(self, method, params, more)
  local now = ah.now()
  self.ids = self.ids + 1
  local pending = setmetatable({ connection = self, id = self.ids, channel = ah.channel(1),
    method = method, params = params, headers = more.headers,
    timeout = more.timeout, due = now + more.timeout,
    last = now + (more.longest or more.timeout), longest = more.longest, quiet = more.quiet,
    on_progress = more.on_progress, on_question = more.on_question, questions = {} }, Pending)
  self.pending[pending.id], self.n_pending = pending, self.n_pending + 1
  return pending
end

--- Ends a request with its answer, or with an error.
function Connection:settle(pending, answer, err)
  if self.pending[pending.id] == pending then
    pending.answer, pending.err = answer, err
    self.pending[pending.id], self.n_pending = nil, self.n_pending - 1
    pending:wake()
  end
end

--- Called by the transport when the server begins to end.
function Connection:ending()
  self.live, self.listening = false, nil
  if ah.now() - self.began > SOUND then
    self.failures = 0
  end
  self.failures, self.ended = self.failures + 1, ah.now()
end

--- Called by the transport when the server has ended: all requests end with the error.
function Connection:over(err)
  self.lost = err
  for _, pending in pairs(self.pending) do
    self:settle(pending, nil, err)
  end
end

--- Sends a message without an answer.
function Connection:say(line)
  self.transport:say(line)
end

local function send(self, pending, line)
  pending.sent = true
  return self.transport:send(pending, line)
end

-- -- reading --------------------------------------------------------------------------------------

--- Counts what answers nothing; a server that sends nothing else is ended.
local function idle(self, bytes)
  self.idle, self.idle_bytes = self.idle + 1, self.idle_bytes + bytes
  if self.idle > MOST_IDLE or self.idle_bytes > MOST_IDLE_BYTES then
    self.transport:lose("it floods us with messages that answer no request, and was ended")
    return true
  end
end

--- Logs the first faults of a process: they are of use to the author of the server.
local function complain(self, why)
  self.faults = self.faults + 1
  if self.faults <= 3 then
    ah.log("warning", ("MCP server '%s': %s; it was ignored"):format(self.name, why))
  end
end

local function on_progress(self, params)
  local pending = self.pending[params.progressToken]
  local at = params.progress
  if not pending or type(at) ~= "number" or pending.at and at <= pending.at then
    return
  end
  local total = type(params.total) == "number" and params.total > 0 and params.total or nil
  pending.at, pending.due = at, ah.now() + pending.timeout
  pending.progress = { fraction = total and math.max(0, math.min(at / total, 1)) or nil,
    text = message.text(params.message, 1 << 16) and message.said(params.message) or nil }
  self.idle = self.idle - PROGRESS
  pending:wake()
end

local CHANGED = {
  ["notifications/tools/list_changed"] = true,
  ["notifications/prompts/list_changed"] = true,
  ["notifications/resources/list_changed"] = true,
}

-- Lists in a subscription, by the capability that a server needs for it.
local FILTERS = { tools = "toolsListChanged", prompts = "promptsListChanged",
  resources = "resourcesListChanged" }

local function on_notification(self, said)
  local meta = message.object(said.params._meta)
  if said.method == "notifications/progress" then
    on_progress(self, said.params)
  elseif CHANGED[said.method] then
    if self.features.modern
      and (not self.listening or meta[message.META.subscription] ~= self.listening) then
      complain(self, "a notification of a subscription that we do not have")
    else
      self.config.on_changed(said.method)
    end
  elseif said.method == "notifications/subscriptions/acknowledged" then
    if self.listening and meta[message.META.subscription] == self.listening then
      self.heard = message.object(said.params.notifications)
    end
  elseif said.method == "notifications/cancelled" and said.params.requestId == self.listening then
    self.listening = nil
  elseif said.method == "notifications/message" then
    ah.log("debug", ("MCP server '%s' says: %s"):format(self.name,
      message.said(type(said.params.data) == "string" and said.params.data
        or ah.json.encode(said.params.data or ""))))
  end
end

--- Returns the request that a question of the server belongs to, as far as this can be known: the
-- newest that can ask.
local function newest_that_asks(self)
  local newest
  for id, pending in pairs(self.pending) do
    if pending.on_question and (not newest or id > newest.id) then
      newest = pending
    end
  end
  return newest
end

--- Called for a request of the server: revisions with a handshake have them.
local function on_request(self, asked)
  local at_once = not self.features.modern and self.config.answers[asked.method]
  if at_once or asked.method == "ping" then
    self:say(message.result(asked.id, at_once and at_once() or {}))
    return
  end
  local pending = self.config.offered(asked.method) and newest_that_asks(self)
  if pending and not self.features.modern and #pending.questions < 8 then
    pending.questions[#pending.questions + 1] = asked
    pending:wake()
  else
    self:say(message.failure(asked.id, message.CODES.method, "Method not found"))
  end
end

local function on_answer(self, answer)
  local pending = answer.id ~= nil and self.pending[answer.id]
  if answer.id ~= nil and answer.id == self.listening then
    self.listening = nil -- the subscription has ended
    self.deaf = answer.kind == "error"
  elseif pending then
    self.idle, self.idle_bytes = 0, 0
    self:settle(pending, answer)
  elseif answer.id ~= nil and math.type(answer.id) == "integer" and answer.id <= self.ids
    and answer.id > 0 then
    ah.log("debug", ("MCP server '%s' answers a request that does not wait"):format(self.name))
  else
    complain(self, "an answer to a request that was not made")
  end
end

--- Called by the transport with a message from the server.
function Connection:take(line)
  if idle(self, #line) or line == "" then
    return
  end
  local said, why = message.read(line)
  if not said then
    complain(self, ("a line that is no message (%s): %s"):format(why.message, message.said(line)))
  elseif said.kind == "notification" then
    on_notification(self, said)
  elseif said.kind == "request" then
    on_request(self, said)
  else
    on_answer(self, said)
  end
end

--- Called by the transport for a message that was skipped, as it was too long.
function Connection:take_oversize()
  if not idle(self, message.MOST_LINE) then
    complain(self, ("a line over %d bytes"):format(message.MOST_LINE))
  end
end


--- Performs what the server wants of the caller of this request, outside of the reading.
local function serve(self, pending)
  local progress, asked = pending.progress, table.remove(pending.questions, 1)
  pending.progress = nil
  if progress and pending.on_progress then
    pending.on_progress(progress)
  end
  if asked then
    local result, why = pending.on_question(asked.method, asked.params)
    pending.due = ah.now() + pending.timeout -- a person's time is no time of the server
    pending.last = math.max(pending.last, pending.due)
    self:say(result and message.result(asked.id, result)
      or message.failure(asked.id, message.CODES.declined, why))
  end
end

--- Waits for the answer of a request: `{ kind = "result" | "error", ... }`; or nil and an error.
local function await(self, pending)
  local transport = self.transport
  while true do
    if pending.progress or pending.questions[1] then
      transport:pause(pending)
      serve(self, pending)
    elseif pending.answer or pending.err then
      transport:pause(pending)
      return pending.answer, pending.err
    elseif pending:ends_at() <= ah.now() then
      transport:pause(pending)
      return nil, self:failure("deadline_exceeded", ("no answer within %g seconds"):format(
        pending.timeout))
    else
      transport:wait(pending)
    end
  end
end

-- -- requests -------------------------------------------------------------------------------------

--- Returns `params` with what the revision wants in each request.
local function with_meta(self, params, id, more)
  local meta = {}
  for name, value in pairs(more.meta or {}) do
    meta[name] = value
  end
  if self.features.modern then
    meta[message.META.revision] = self.revision
    meta[message.META.client] = INFO
    meta[message.META.capabilities] = self.offers
  end
  if more.on_progress then
    meta.progressToken = id
  end
  if next(meta) then
    params._meta = meta
  end
  return next(params) and params or nil
end

--- Sends a request and waits for its answer; the process is there.
local function exchange(self, method, params, more)
  local pending <close> = expect(self, method, params, more)
  local ok, err = send(self, pending,
    message.request(pending.id, method, with_meta(self, params, pending.id, more)))
  if not ok then
    return nil, err
  end
  return await(self, pending)
end

-- -- agreeing on a revision -----------------------------------------------------------------------

local function speaks(self, list)
  local theirs = {}
  for i, revision in ipairs(message.is_list(list) and list or {}) do
    theirs[i] = i <= 16 and message.said(revision) or nil
  end
  return nil, self:failure("provider", ("it speaks the revisions %s, and agenthost %s"):format(
    #theirs > 0 and table.concat(theirs, ", ") or "(none)",
    table.concat(message.REVISIONS, ", ")))
end

local function take(self, revision, result, info)
  self.revision = revision
  self.features = message.features(revision) or message.features "2025-06-18"
  self.capabilities = message.object(result.capabilities)
  self.instructions = message.text(result.instructions, 1 << 16)
  local told = message.object(info)
  self.title = message.text(told.name, 256) and message.said(told.name)
end

local function take_handshake(self, answer)
  if answer.kind ~= "result" then
    return nil, self:failure("provider", "it refuses to begin: " .. message.said(answer.text))
  end
  local revision = answer.result.protocolVersion
  local features = message.features(revision)
  if not (features and not features.modern) and not OLDER[revision] then
    return speaks(self, ah.array { revision })
  end
  take(self, revision, answer.result, answer.result.serverInfo)
  self:say(message.notification "notifications/initialized")
  return true
end

--- Begins as revisions with a handshake do. `probe` is a request of ours without an answer, or nil:
-- a slow server may answer it yet.
local function shake_hands(self, more, probe)
  self.features = message.features(OFFERED)
  local answer, err = exchange(self, "initialize",
    { protocolVersion = OFFERED, capabilities = self.config.capabilities, clientInfo = INFO },
    { timeout = more.timeout, quiet = true })
  if probe and probe.answer and probe.answer.kind == "result" then
    return nil, nil, probe.answer
  elseif not answer then
    return nil, err
  end
  return take_handshake(self, answer)
end

local function take_discovered(self, result)
  local revision = message.common(result.supportedVersions, true)
  if not revision then
    return speaks(self, result.supportedVersions)
  end
  take(self, revision, result, message.object(result._meta)[message.META.server])
  return true
end

--- Asks a server what it speaks, and what it can do. Returns the request, to be held in a variable
-- marked <close>, its answer and an error.
local function probe_for(self, more)
  local params = with_meta(self, {}, nil, {})
  local probe = expect(self, "server/discover", params, { quiet = true,
    timeout = math.min(PROBE, more.timeout), longest = more.timeout })
  local ok, err = send(self, probe, message.request(probe.id, probe.method, params))
  if not ok then
    return probe, nil, err
  end
  return probe, await(self, probe)
end

--- Agrees on a revision. A server that answers with any other error than that of a revision, or not
-- at all, has a handshake (basic/transports, "Backward Compatibility").
local function discover(self, more, again)
  self.revision, self.features = message.LATEST, message.features(message.LATEST)
  local request, answer, err = probe_for(self, more)
  local probe <close> = request
  if not answer and err.code ~= "deadline_exceeded" then
    return nil, err
  elseif answer and answer.kind == "result"
    and message.is_list(answer.result.supportedVersions) then
    return take_discovered(self, answer.result)
  elseif answer and answer.code == message.CODES.revision then
    local list = message.object(answer.data).supported
    if message.common(list, true) and not again then
      return discover(self, more, true)
    elseif not message.common(list, false) then
      return speaks(self, list)
    end
  end
  probe.due = probe.last
  local done, failed, late = shake_hands(self, more, not answer and probe or nil)
  if late then
    return take_discovered(self, late.result)
  end
  return done, failed
end

local function open(self)
  self.began, self.idle, self.idle_bytes, self.faults = ah.now(), 0, 0, 0
  local ok, err = self.transport:open()
  if not ok then
    self.failures, self.ended = self.failures + 1, ah.now()
    return nil, err
  end
  return true
end

local function agree(self, more)
  if self.revision and not self.features.modern then
    return shake_hands(self, more)
  end
  local ok, err = discover(self, more)
  if not ok and err.reason == "lost" and not self.revision_known
    and self.transport.may_end_early then
    ok, err = open(self)
    if ok then
      ok, err = shake_hands(self, more)
    end
  end
  return ok, err
end

-- -- starting -------------------------------------------------------------------------------------

--- Waits as long as a server that failed is left alone.
local function pause(self)
  if self.failures == 0 then
    return
  end
  local seconds = math.min(FIRST_PAUSE * 2 ^ (self.failures - 1), LONGEST_PAUSE)
  local left = self.ended + seconds - ah.now()
  if left > 0 then
    ah.sleep(left)
  end
end

local function start(self)
  pause(self)
  local ok, err = open(self)
  if ok then
    ok, err = agree(self, { timeout = self.config.start_timeout })
  end
  if not ok then
    self.transport:lose("it was not ready")
    self.refused, self.refusal = self.refused + 1, err
    return nil, err
  end
  self.live, self.revision_known = true, true
  self.transport:agreed()
  self.config.on_started()
  ah.log("debug", ("MCP server '%s' speaks %s"):format(self.name, self.revision))
  return true
end

--- Starts the server if it is not there. Returns true, or nil and an error.
function Connection:ready()
  if self.closed then
    return nil, self:failure("usage", "it was closed")
  elseif self.live then
    return true
  end
  local refused = self.refused
  local _ <close> = self.door:acquire()
  if self.live then -- another caller has started it meanwhile
    return true
  elseif self.refused > refused then -- or has failed to
    return nil, self.refusal
  end
  return start(self)
end

--- Makes a request. more: as of `expect`. Returns the result; or nil and an error, which has the
-- server's `rpc` code if the server has sent it. With a server that has forgotten the session it
-- begins again.
function Connection:request(method, params, more)
  local answer, err
  for _ = 1, 2 do
    answer, err = self:ready()
    if not answer then
      return nil, err
    elseif self.n_pending >= MOST_PENDING then
      return nil, self:failure("usage", ("%d requests wait for it already"):format(MOST_PENDING))
    end
    answer, err = exchange(self, method, params, more)
    self.transport:note()
    if answer or err.reason ~= "forgotten" then
      break
    end
  end
  if not answer then
    return nil, err
  elseif answer.kind == "error" then
    return nil, self:failure("provider", message.said(answer.text), { rpc = answer.code })
  end
  return answer.result
end

--- Makes a request whose answer is not read. It may be lost.
function Connection:tell(method, params)
  self.ids = self.ids + 1
  self.transport:say(message.request(self.ids, method, with_meta(self, params, nil, {})),
    { method = method, params = params })
end

--- Subscribes to changes of the lists that the server has, where the revision has subscriptions.
function Connection:listen()
  if not self.live or not self.features.modern or self.listening or self.deaf then
    return
  end
  local wanted = {}
  for capability, filter in pairs(FILTERS) do
    wanted[filter] = message.object(self.capabilities[capability]).listChanged == true or nil
  end
  if not next(wanted) then
    return
  end
  self.ids = self.ids + 1
  self.listening, self.heard = self.ids, {}
  local params = with_meta(self, { notifications = wanted }, nil, {})
  self.transport:listen(message.request(self.ids, "subscriptions/listen", params))
end

--- True if the server announces changes of one of its lists, such as "tools".
function Connection:announces(capability)
  return message.object(self.capabilities[capability]).listChanged == true
    and (not self.features.modern
      or self.listening ~= nil and self.heard[FILTERS[capability]] == true)
end

--- Reads what is there already, without waiting for more.
function Connection:catch_up()
  if self.live then
    self.transport:catch_up()
  end
end

--- Ends the server, which is not started again.
function Connection:close()
  self.closed = true
  self.transport:close()
end

return { new = new }
