--- A connection with a server of MCP over its standard streams: starts the process, agrees on a
-- revision, sends requests and reads what comes back. Owns the process. The server is started when
-- a request needs it, and again, later and later, after it has ended.
--
-- No task of its own reads. Of the callers that wait for an answer one reads for all (the reader);
-- when it goes, another one takes over. So no task outlives a call, and what a server sends while
-- no caller waits stays in its pipe. All that comes from the server is bounded and may be a lie.
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
local MOST_TOLD = 400 -- bytes of its standard error in an error
local TICK = 1 -- seconds between looks at the time of requests
local FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30 -- seconds before a server is started again
local SOUND = 60 -- seconds after which a server that ends did not fail to start

local Connection = {}
Connection.__index = Connection

--- config: name, process (fields of ah.process), start_timeout, capabilities (what the client can
-- do), on_started (a function), on_changed (one that is called with the method of a notification
-- about lists).
local function new(config)
  return setmetatable({ name = config.name, config = config, ids = 0, pending = {}, n_pending = 0,
    failures = 0, refused = 0, ended = 0, door = ah.semaphore(1) }, Connection)
end

local function failure(self, code, text, more)
  local err = more or {}
  err.code, err.message = code, ("MCP server '%s': %s"):format(self.name, text)
  return ah.error(err)
end

-- -- requests that wait ---------------------------------------------------------------------------

local Pending = {}
Pending.__index = Pending

--- Wakes a caller that waits while another one reads.
local function wake(pending)
  if pending.waits and #pending.channel == 0 then
    pending.channel:send(true)
  end
end

local function wake_another(self)
  for _, other in pairs(self.pending) do
    if other.waits then
      wake(other)
      return
    end
  end
end

--- Ends the reading of a caller; another one that waits takes over.
local function stop_reading(self, pending)
  if self.reader == pending then
    self.reader = nil
  end
  if not self.reader then
    wake_another(self)
  end
end

--- Gives up the request: its answer is not awaited from here on, and the server learns it.
function Pending:__close()
  local connection = self.connection
  if connection.pending[self.id] == self then
    connection.pending[self.id], connection.n_pending = nil, connection.n_pending - 1
    if self.sent and not self.quiet then
      connection:say(message.notification("notifications/cancelled", { requestId = self.id }))
    end
  end
  stop_reading(connection, self)
end

--- Returns a request that an answer is awaited for; to be held in a variable marked <close>.
-- more: timeout (seconds without a sign of the server), longest (seconds altogether), quiet (it is
-- not to be cancelled), on_progress, on_question.
local function expect(self, more)
  local now = ah.now()
  self.ids = self.ids + 1
  local pending = setmetatable({ connection = self, id = self.ids, channel = ah.channel(1),
    timeout = more.timeout, due = now + more.timeout,
    last = now + (more.longest or more.timeout), quiet = more.quiet,
    on_progress = more.on_progress, on_question = more.on_question, questions = {} }, Pending)
  self.pending[pending.id], self.n_pending = pending, self.n_pending + 1
  return pending
end

local function settle(self, pending, answer, err)
  pending.answer, pending.err = answer, err
  self.pending[pending.id], self.n_pending = nil, self.n_pending - 1
  wake(pending)
end

-- -- the process ----------------------------------------------------------------------------------

--- Puts what the server has written to its standard error since the last time into the log.
local function note_errors(self)
  local text = self.process:errors()
  local known = self.noted or ""
  if text == known then
    return
  end
  local new_part = text:sub(1, #known) == known and text:sub(#known + 1) or text
  self.noted = text
  for said in new_part:gmatch "[^\r\n]+" do
    ah.log("info", ("MCP server '%s' says: %s"):format(self.name, message.said(said)))
  end
end

local function last_words(self)
  local text = message.said((self.process:errors():gsub("%s+$", "")):sub(-MOST_TOLD))
  return text ~= "" and "; its standard error ends with: " .. text or ""
end

local Ending = {}

--- Ends all requests with the reason, also if the caller was cancelled while the process ended.
function Ending:__close()
  local connection = self.connection
  note_errors(connection)
  connection.process, connection.noted, connection.reader = nil, nil, nil
  connection.lost, connection.listening = self.err, nil
  for _, pending in pairs(connection.pending) do
    settle(connection, pending, nil, self.err)
  end
end

local function how_ended(outcome)
  return outcome and (outcome.exit_code and ("exit code %d"):format(outcome.exit_code)
    or outcome.signal and "signal " .. outcome.signal) or "unknown end"
end

--- Ends the process and all requests, with the reason. gently: the process may end by itself.
local function lose(self, why, gently)
  if not self.process or self.reader == Ending then
    return
  end
  local ending <close> = setmetatable({ connection = self, err = failure(self, "provider", why,
    { retryable = true, reason = "lost" }) }, Ending)
  self.live, self.reader = false, Ending
  if ah.now() - self.began > SOUND then
    self.failures = 0
  end
  self.failures, self.ended = self.failures + 1, ah.now()
  local outcome = gently and self.process:wait { timeout = 1, discard = true }
  if not outcome then
    self.process:kill "KILL"
    outcome = self.process:close()
  end
  ending.err = failure(self, "provider", ("%s (%s)%s"):format(why, how_ended(outcome),
    last_words(self)), { retryable = true, reason = "lost" })
end

--- Writes a line without an answer. It may be lost: a server that does not read is not waited for.
function Connection:say(line)
  if self.process then
    pcall(self.process.write, self.process, line, { timeout = 0 })
  end
end

local function send(self, pending, line)
  pending.sent = true
  local ok, err = self.process:write(line, { timeout = math.max(pending.due - ah.now(), 0) })
  if ok then
    return true
  end
  -- Lines that a server does not read would be kept for it without an end.
  lose(self, "it does not read its input", err.code ~= "deadline_exceeded")
  return nil, self.lost or err
end

-- -- reading --------------------------------------------------------------------------------------

--- Counts what answers nothing; a server that sends nothing else is ended.
local function idle(self, bytes)
  self.idle, self.idle_bytes = self.idle + 1, self.idle_bytes + bytes
  if self.idle > MOST_IDLE or self.idle_bytes > MOST_IDLE_BYTES then
    lose(self, "it floods us with messages that answer no request, and was ended")
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
  wake(pending)
end

local CHANGED = {
  ["notifications/tools/list_changed"] = true,
  ["notifications/prompts/list_changed"] = true,
  ["notifications/resources/list_changed"] = true,
}

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
  if asked.method == "ping" then
    self:say(message.result(asked.id, {}))
    return
  end
  local pending = asked.method == "elicitation/create" and newest_that_asks(self)
  if pending and not self.features.modern and #pending.questions < 8 then
    pending.questions[#pending.questions + 1] = asked
    wake(pending)
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
    settle(self, pending, answer)
  elseif answer.id ~= nil and math.type(answer.id) == "integer" and answer.id <= self.ids
    and answer.id > 0 then
    ah.log("debug", ("MCP server '%s' answers a request that does not wait"):format(self.name))
  else
    complain(self, "an answer to a request that was not made")
  end
end

local function on_line(self, line)
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

--- Wakes the requests that are out of time. Returns the time until the next look at them: the next
-- one that is out of time, or one that is made meanwhile.
local function next_deadline(self)
  local now, first = ah.now(), math.huge
  for _, pending in pairs(self.pending) do
    local at = math.min(pending.due, pending.last)
    if at <= now then
      wake(pending)
    end
    first = math.min(first, at)
  end
  return math.max(math.min(first - now, TICK), 0)
end

--- Reads one line for all that wait. Returns true if there was one.
local function read_one(self, timeout)
  local line, err = self.process:line { timeout = timeout, max = message.MOST_LINE }
  if line then
    on_line(self, line)
  elseif line == nil then
    lose(self, "it has ended", true)
  elseif err.code == "deadline_exceeded" then
    return false
  elseif not idle(self, message.MOST_LINE) then
    complain(self, ("a line over %d bytes"):format(message.MOST_LINE))
  end
  return true
end

--- Performs what the server wants of the caller of this request, outside of the reading.
local function serve(self, pending)
  local progress, asked = pending.progress, table.remove(pending.questions, 1)
  pending.progress = nil
  if progress and pending.on_progress then
    pending.on_progress(progress)
  end
  if asked then
    local result = pending.on_question(asked.params)
    pending.due = ah.now() + pending.timeout -- a person's time is no time of the server
    pending.last = math.max(pending.last, pending.due)
    self:say(message.result(asked.id, result))
  end
end

--- Waits for the answer of a request: `{ kind = "result" | "error", ... }`; or nil and an error.
local function await(self, pending)
  while true do
    if pending.progress or pending.questions[1] then
      stop_reading(self, pending)
      serve(self, pending)
    elseif pending.answer or pending.err then
      stop_reading(self, pending)
      return pending.answer, pending.err
    elseif math.min(pending.due, pending.last) <= ah.now() then
      stop_reading(self, pending)
      return nil, failure(self, "deadline_exceeded", ("no answer within %g seconds"):format(
        pending.timeout))
    elseif not self.reader or self.reader == pending then
      self.reader = pending
      read_one(self, next_deadline(self))
    else
      pending.waits = true
      pending.channel:receive()
      pending.waits = false
    end
  end
end

-- -- requests -------------------------------------------------------------------------------------

--- Returns `params` with what the revision wants in each request.
local function with_meta(self, params, id, more)
  local meta = {}
  if self.features.modern then
    meta[message.META.revision] = self.revision
    meta[message.META.client] = INFO
    meta[message.META.capabilities] = self.config.capabilities
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
  local pending <close> = expect(self, more)
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
  return nil, failure(self, "provider", ("it speaks the revisions %s, and agenthost %s"):format(
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
  return true
end

local function take_handshake(self, answer)
  if answer.kind ~= "result" then
    return nil, failure(self, "provider", "it refuses to begin: " .. message.said(answer.text))
  end
  local revision = answer.result.protocolVersion
  local features = message.features(revision)
  if not (features and not features.modern) and not OLDER[revision] then
    return speaks(self, ah.array { revision })
  end
  self:say(message.notification "notifications/initialized")
  return take(self, revision, answer.result, answer.result.serverInfo)
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
  return take(self, revision, result, message.object(result._meta)[message.META.server])
end

--- Asks a server what it speaks. One that answers with any other error than that of a revision, or
-- not at all, has a handshake (basic/transports/stdio, "Backward Compatibility").
local function discover(self, more)
  self.revision, self.features = message.LATEST, message.features(message.LATEST)
  local probe <close> = expect(self, { timeout = math.min(PROBE, more.timeout),
    longest = more.timeout, quiet = true })
  local ok, err = send(self, probe, message.request(probe.id, "server/discover",
    with_meta(self, {}, probe.id, {})))
  if not ok then
    return nil, err
  end
  local answer, why = await(self, probe)
  if not answer and why.code ~= "deadline_exceeded" then
    return nil, why
  elseif answer and answer.kind == "result"
    and message.is_list(answer.result.supportedVersions) then
    return take_discovered(self, answer.result)
  elseif answer and answer.code == message.CODES.revision then
    return speaks(self, message.object(answer.data).supported)
  end
  probe.due = probe.last
  local done, failed, late = shake_hands(self, more, not answer and probe or nil)
  if late then
    return take_discovered(self, late.result)
  end
  return done, failed
end

local function agree(self, more)
  if self.revision and not self.features.modern then
    return shake_hands(self, more)
  end
  local ok, err = discover(self, more)
  if not ok and err.reason == "lost" and not self.revision_known then
    -- Some servers end at a request before the handshake.
    ok, err = self:launch()
    if ok then
      ok, err = shake_hands(self, more)
    end
  end
  return ok, err
end

-- -- starting -------------------------------------------------------------------------------------

function Connection:launch()
  local process, err = ah.process(self.config.process)
  if not process then
    self.failures, self.ended = self.failures + 1, ah.now()
    return nil, failure(self, "usage", "it cannot be started: " .. err.message)
  end
  self.process, self.noted, self.began = process, nil, ah.now()
  self.idle, self.idle_bytes, self.faults = 0, 0, 0
  return true
end

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
  local ok, err = self:launch()
  if ok then
    ok, err = agree(self, { timeout = self.config.start_timeout })
  end
  if not ok then
    lose(self, "it was not ready")
    self.refused, self.refusal = self.refused + 1, err
    return nil, err
  end
  note_errors(self)
  self.live, self.revision_known = true, true
  self.config.on_started()
  ah.log("debug", ("MCP server '%s' speaks %s"):format(self.name, self.revision))
  return true
end

--- Starts the server if it is not there. Returns true, or nil and an error.
function Connection:ready()
  if self.closed then
    return nil, failure(self, "usage", "it was closed")
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
-- server's `rpc` code if the server has sent it.
function Connection:request(method, params, more)
  local ok, err = self:ready()
  if not ok then
    return nil, err
  elseif self.n_pending >= MOST_PENDING then
    return nil, failure(self, "usage", ("%d requests wait for it already"):format(MOST_PENDING))
  end
  local answer
  answer, err = exchange(self, method, params, more)
  if self.process then
    note_errors(self)
  end
  if not answer then
    return nil, err
  elseif answer.kind == "error" then
    return nil, failure(self, "provider", message.said(answer.text), { rpc = answer.code })
  end
  return answer.result
end

--- Subscribes to changes of the list of tools, where the revision has subscriptions.
function Connection:listen()
  if not self.live or not self.features.modern or self.listening or self.deaf
    or message.object(self.capabilities.tools).listChanged ~= true then
    return
  end
  self.ids = self.ids + 1
  self.listening = self.ids
  self:say(message.request(self.ids, "subscriptions/listen",
    with_meta(self, { notifications = { toolsListChanged = true } }, self.ids, {})))
end

local Glance = {}

function Glance:__close()
  stop_reading(self.connection, self)
end

--- Reads what is there already, without waiting for more.
function Connection:catch_up()
  if not self.live or self.reader then
    return
  end
  local glance <close> = setmetatable({ connection = self }, Glance)
  self.reader = glance
  while self.live and read_one(self, 0) do
  end
end

--- Ends the server: its input first, then the process. It is not started again.
function Connection:close()
  self.closed = true
  if self.process then
    self.process:close_input()
    lose(self, "it was closed", true)
  end
end

return { new = new, failure = failure }
