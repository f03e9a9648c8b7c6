--- The server's side of the Model Context Protocol, without a transport: judges requests, answers
-- them from the served agent (served.lua), and keeps what belongs to one client: its session of the
-- older revisions, its requests at work, our requests to it. stdio.lua and http.lua carry the
-- lines. Revision 2026-07-28 has no sessions: each call has a conversation of its own. In the older
-- ones a session is a conversation, whose calls are made one after the other.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local calls = ah._module "agenthost.protocols.mcp.server.calls"
local elicit = ah._module "agenthost.protocols.mcp.server.elicit"
local shown = ah._module "agenthost.protocols.mcp.server.shown"
local served = ah._module "agenthost.protocols.mcp.server.served"
local new_waiting = ah._module "agenthost.protocols.mcp.server.waiting"

local META, CODES = message.META, message.CODES

local MOST_NAME = 128 -- bytes of a tool's name in a request
local MOST_URI = 8192
local MOST_REQUESTS = 64 -- of a client at work
local PATIENCE = 600 -- seconds that a call waits for answers of its client
local TTL_MS = 300000 -- how long lists may be kept by clients
local PROGRESS_GAP = 0.05 -- seconds between two reports of a call

local function fault(code, text, ...)
  return nil, { code = code, message = text:format(...) }
end

-- -- lists ----------------------------------------------------------------------------------------

-- Lists have one page.
local function check_cursor(q)
  if q.params.cursor ~= nil then
    return fault(CODES.params, "unknown cursor: this list has one page")
  end
  return true
end

-- Adds to a result of revision 2026-07-28 how long caches may keep it, and which.
local function cacheable(q, result)
  if q.features.modern then
    result.ttlMs, result.cacheScope = TTL_MS, q.server.scope
  end
  return result
end

local function listing(name, list)
  return function(q)
    local ok, err = check_cursor(q)
    if not ok then
      return nil, err
    end
    local found, why = list(q)
    return found and cacheable(q, { [name] = found }), why
  end
end

local function fixed_tools(q)
  return q.server.fixed.shown
end

local function resources(q)
  return q.server.resources.shown
end

local function no_templates()
  return ah.array {}
end

local function read_resource(q)
  local uri = message.text(q.params.uri, MOST_URI)
  local one = uri and q.server.resources.by_uri[uri]
  if not one then
    return nil, { code = q.features.modern and CODES.params or -32002,
      message = "Resource not found", data = { uri = message.said(q.params.uri) } }
  end
  local contents, why = shown.contents(one)
  if not contents then
    return fault(CODES.internal, "the resource cannot be read: %s", why)
  end
  return cacheable(q, { contents = contents })
end

-- -- calls ----------------------------------------------------------------------------------------

local function read_call(q)
  local name, arguments = message.text(q.params.name, MOST_NAME), q.params.arguments
  if not name then
    return fault(CODES.params, '"name" must be a text of 1 to %d bytes', MOST_NAME)
  elseif arguments ~= nil and not message.is_object(arguments) then
    return fault(CODES.params, '"arguments" must be an object')
  end
  return { name = name, arguments = arguments or ah.object {} }
end

local function unknown_tool(name)
  return fault(CODES.params, "Unknown tool: %s", message.said(name))
end

local function internal(err)
  ah.log("warning", "mcp: " .. err.message)
  return fault(CODES.internal, "the conversation could not be set up; the server's log has why")
end

-- Returns a function that reports the progress of a call to the request that waits for it, if that
-- has a token. The number of a report is above the one before it.
local function reporter(call)
  local last, at
  return function(event)
    local q, now = call.q, ah._clock()
    local token = q and message.object(q.params._meta).progressToken
    if not message.is_id(token) or at and now - at < PROGRESS_GAP then
      return
    end
    local progress = event.fraction or last and last + 1e-6 or 0
    if last and progress <= last then
      progress = last + 1e-6
    end
    last, at = progress, now
    q.send(message.notification("notifications/progress", { progressToken = token,
      progress = progress, total = event.fraction and 1 or nil, message = event.message }))
  end
end

-- Returns the front end for a client that can show forms; nil for others.
local function front_for(capabilities)
  return elicit.allows(capabilities) and elicit.front or nil
end

local function new_call(fields, ask)
  local call = calls.call { name = fields.name, arguments = fields.arguments, ask = ask }
  call.on_progress = reporter(call)
  return call
end

-- Makes a call in a task of its own, which may outlive the request.
local function begin(q, conversation, call, over)
  if q.cancelled then
    call.cancelled = true
  end
  q.server.start(function()
    conversation:make(call)
    if over then
      conversation:close()
    end
  end)
end

-- -- calls of revision 2026-07-28 -----------------------------------------------------------------

local function questions_of(call)
  local requests = {}
  for key, one in pairs(call:questions()) do
    requests[key] = { method = "elicitation/create", params = { mode = "form",
      message = one.form.message, requestedSchema = one.form.requestedSchema } }
  end
  return requests
end

-- Returns the result that asks the client, and keeps the call until it answers.
local function park(q, call)
  local state = q.server.waiting:keep(q, call, call.cancel)
  if not state then
    call.cancel()
    return shown.failure "Too many calls wait for answers; try again later."
  end
  call.q = nil
  return { resultType = "input_required", inputRequests = questions_of(call), requestState = state }
end

-- Returns the result of the call, or the questions that it has.
local function follow(q, call)
  call.q, q.cancel = q, call.cancel
  while not call:questions() and call.news:receive() do
    ah.yield() -- others that ask at the same time come first
  end
  if call:questions() and not call.done then
    return park(q, call)
  elseif call.cancelled then
    return false
  end
  return shown.result(q.server.fixed.by_name[call.name], call, q.features)
end

local function resume(q, fields)
  local call, why = q.server.waiting:take(q, fields, q.params.requestState)
  if not call then
    return fault(CODES.params, "%s", why)
  end
  call:give(message.object(q.params.inputResponses))
  return follow(q, call)
end

local function call_fixed(q)
  local fields, err = read_call(q)
  if not fields then
    return nil, err
  elseif not q.server.fixed.by_name[fields.name] then
    return unknown_tool(fields.name)
  elseif q.params.requestState ~= nil then
    return resume(q, fields)
  end
  local conversation, why = calls.open(q.server.served.fixed, front_for(q.capabilities))
  if not conversation then
    return internal(why)
  end
  local call = new_call(fields)
  function call.cancel()
    conversation:cancel(call)
  end
  begin(q, conversation, call, true)
  return follow(q, call)
end

-- -- sessions of the older revisions --------------------------------------------------------------

-- Returns the conversation of a session.
local function conversation_of(q)
  local peer, err = q.peer, nil
  if not peer.conversation then
    peer.conversation, err = calls.open(
      q.server.all_fixed and q.server.served.fixed or q.server.served.own,
      front_for(peer.capabilities))
  end
  return peer.conversation, err
end

-- Returns the tools of a session by their names, and the list of them.
local function session_tools(q)
  local conversation, err = conversation_of(q)
  local list
  if conversation then
    list, err = conversation:tools()
  end
  if not list then
    return internal(err)
  end
  return shown.tools(list, q.features, q.server.all_fixed)
end

local function list_session(q)
  local by_name, list = session_tools(q)
  return by_name and list, list
end

-- Asks the client by a request of ours. Waits, and returns its answer, from outside.
local function ask_peer(q, form)
  local peer = q.peer
  peer.asked = peer.asked + 1
  local id, answer = "ask_" .. peer.asked, ah.channel(1)
  local _ <close> = setmetatable({}, { __close = function()
    if peer.pending[id] then -- the answer is no longer wanted
      peer.pending[id] = nil
      q.send(message.notification("notifications/cancelled", { requestId = id }))
    end
  end })
  peer.pending[id] = answer
  q.send(message.request(id, "elicitation/create", { mode = q.features.url and "form" or nil,
    message = form.message, requestedSchema = form.requestedSchema }))
  return answer:receive()
end

local function call_session(q)
  local fields, err = read_call(q)
  if not fields then
    return nil, err
  end
  local by_name, why = session_tools(q)
  if not by_name then
    return nil, why
  elseif not by_name[fields.name] then
    return unknown_tool(fields.name)
  end
  local conversation = q.peer.conversation
  local call = new_call(fields, function(form)
    return ask_peer(q, form)
  end)
  function q.cancel()
    conversation:cancel(call)
  end
  call.q = q
  begin(q, conversation, call)
  call.news:receive()
  if call.changed and q.peer.initialized then
    q.peer.send(message.notification "notifications/tools/list_changed", q)
  end
  return not call.cancelled and shown.result(by_name[fields.name], call, q.features)
end

local function capabilities(server, changes)
  return { tools = changes and { listChanged = true } or ah.object {},
    resources = server.resources.shown[1] and ah.object {} or nil }
end

local function initialize(q)
  local params, peer = q.params, q.peer
  local asked = params.protocolVersion
  local features = type(asked) == "string" and message.features(asked)
  if type(asked) ~= "string" or not message.is_object(params.capabilities) then
    return fault(CODES.params, '"protocolVersion" must be a text, and "capabilities" an object')
  end
  peer.revision = features and not features.modern and asked or message.REVISIONS[2]
  peer.capabilities = params.capabilities
  return { protocolVersion = peer.revision, capabilities = capabilities(q.server, true),
    serverInfo = q.server.info }
end

-- -- subscriptions --------------------------------------------------------------------------------

-- Lists of revision 2026-07-28 never change here, so that a stream has no notifications: it is
-- acknowledged and stays open until the client ends it.
local function listen(q)
  local over = ah.channel()
  function q.cancel()
    over:close()
  end
  local meta = { [META.subscription] = q.id }
  q.send(message.notification("notifications/subscriptions/acknowledged",
    { _meta = meta, notifications = ah.object {} }))
  over:receive()
  return not q.cancelled and { _meta = meta }
end

local function discover(q)
  return cacheable(q, { supportedVersions = ah.array { table.unpack(message.REVISIONS) },
    capabilities = capabilities(q.server) })
end

-- -- requests -------------------------------------------------------------------------------------

local MODERN = {
  ["server/discover"] = discover,
  ["tools/list"] = listing("tools", fixed_tools),
  ["tools/call"] = call_fixed,
  ["resources/list"] = listing("resources", resources),
  ["resources/templates/list"] = listing("resourceTemplates", no_templates),
  ["resources/read"] = read_resource,
  ["subscriptions/listen"] = listen,
}

local OLDER = {
  initialize = initialize,
  ping = function() return {} end,
  ["tools/list"] = listing("tools", list_session),
  ["tools/call"] = call_session,
  ["resources/list"] = listing("resources", resources),
  ["resources/templates/list"] = listing("resourceTemplates", no_templates),
  ["resources/read"] = read_resource,
}

-- Reads what each request of revision 2026-07-28 says of its client.
local function read_modern(q, meta)
  local revision = meta[META.revision]
  local features = type(revision) == "string" and message.features(revision)
  if not features or not features.modern then
    return nil, { code = CODES.revision, message = "Unsupported protocol version",
      data = { supported = ah.array { table.unpack(message.REVISIONS) },
        requested = message.said(revision) } }
  elseif not message.is_object(meta[META.capabilities]) then
    return fault(CODES.params, '"_meta" must have an object as "%s"', META.capabilities)
  end
  q.features, q.capabilities = features, meta[META.capabilities]
  return MODERN
end

-- Returns the methods of the revision of a request; nil and an error.
local function methods_of(q)
  local meta = message.object(q.params._meta)
  if meta[META.revision] ~= nil then
    return read_modern(q, meta)
  end
  local revision = q.peer and q.peer.revision
  if not revision and not (q.peer and (q.method == "initialize" or q.method == "ping")) then
    return fault(CODES.params,
      'revision %s needs "%s" in "_meta" of each request; older ones (%s) begin with initialize',
      message.LATEST, META.revision, table.concat(message.REVISIONS, ", ", 2))
  end
  q.features = message.features(revision or message.REVISIONS[2])
  return OLDER
end

-- Adds what each result of revision 2026-07-28 has.
local function complete(q, result)
  if q.features.modern then
    result.resultType = result.resultType or "complete"
    result._meta = result._meta or {}
    result._meta[META.server] = q.server.info
  end
  return result
end

local function perform(q)
  local methods, err = methods_of(q)
  if not methods then
    return nil, err
  elseif not methods[q.method] then
    return fault(CODES.method, "Method not found: %s", message.said(q.method))
  end
  return methods[q.method](q)
end

local Server = {}
Server.__index = Server

--- Answers a request. Returns the line, or nil if it was cancelled, and the error of the answer. q:
-- { id, method, params, principal, send, peer }; send(line) sends a notification that belongs to
-- the request, or a request of ours; `peer` is nil if the transport has no session for it.
-- q.cancel, once it is there, ends the work.
function Server:answer(q)
  q.server = self
  local ok, result, err = pcall(perform, q)
  if not ok then
    ah.log("warning", ("mcp: %s: %s"):format(q.method, tostring(result)))
    result, err = fault(CODES.internal, "internal error; the server's log has it")
  end
  if result == false or q.cancelled then
    return nil
  elseif not result then
    return message.failure(q.id, err.code, err.message, err.data), err
  end
  return message.result(q.id, complete(q, result))
end

--- Ends the calls that wait for their clients.
function Server:close()
  self.waiting:sweep(true)
end

-- -- clients --------------------------------------------------------------------------------------

local Peer = {}
Peer.__index = Peer

--- Returns a client with a line of its own or a session. send(line, q) sends what belongs to no
-- request; q is the request that caused it.
function Server:peer(send)
  return setmetatable({ server = self, send = send, asked = 0, pending = {}, at_work = {}, n = 0 },
    Peer)
end

-- Ids are texts and integers, which are different ids.
local function key_of(id)
  return math.type(id) == "integer" and id or "=" .. id
end

--- Cancels a request, or all if there is no id.
function Peer:cancel(id)
  for key, q in pairs(self.at_work) do
    if (id == nil or key == key_of(id)) and not q.cancelled then
      q.cancelled = true
      if q.cancel then
        q.cancel()
      end
    end
  end
end

--- Enters a request. Returns true, or nil and an error for the client.
function Peer:enter(q)
  local key = key_of(q.id)
  if self.at_work[key] then
    return fault(CODES.request, "a request with this id is at work")
  elseif self.n >= MOST_REQUESTS then
    return fault(CODES.internal,
      "%d requests are at work, and there can be no more: wait for their results", self.n)
  end
  self.at_work[key], self.n = q, self.n + 1
  return true
end

function Peer:leave(q)
  self.at_work[key_of(q.id)], self.n = nil, self.n - 1
end

--- Takes a judged message that is no request.
function Peer:take(m)
  if m.kind == "notification" then
    if m.method == "notifications/cancelled" and message.is_id(m.params.requestId) then
      self:cancel(m.params.requestId)
    elseif m.method == "notifications/initialized" then
      self.initialized = true
    end
    return
  end
  local waiting = m.id and self.pending[m.id]
  if waiting then
    self.pending[m.id] = nil
    waiting:send(m.kind == "result" and m.result or {})
  end
end

--- Ends all that the client has here.
function Peer:close()
  self:cancel()
  for _, waiting in pairs(self.pending) do
    waiting:close()
  end
  if self.conversation then
    self.conversation:close()
  end
end

-- -- the server -----------------------------------------------------------------------------------

-- Lists the tools for clients without a session, in a conversation that ends at once.
local function list_fixed(self)
  local conversation, err = calls.open(self.served.fixed)
  local tools
  if conversation then
    tools, err = conversation:tools()
    conversation:close()
  end
  if not tools then
    return nil, err.message
  end
  local by_name, list = shown.tools(tools, message.features(message.LATEST), true)
  return { by_name = by_name, shown = list }
end

--- Returns a server for the value that a script returned; nil and the reason. options: `name` and
-- `version` of it; start(f), which calls f in a task that outlives the request; `private`, true if
-- clients have a secret; `fixed`, true if clients with a session get the fixed list, too.
function Server.new(value, options)
  local found, why = served.new(value)
  if not found then
    return nil, why
  end
  local function start(f)
    options.start(function()
      local ok, err = pcall(f)
      if not ok then
        ah.log("warning", "mcp: " .. tostring(err))
      end
    end)
  end
  local self = setmetatable({ served = found, start = start, resources = {},
    all_fixed = options.fixed or false,
    waiting = new_waiting(PATIENCE), scope = options.private and "private" or "public",
    info = { name = found.name or options.name, version = options.version } }, Server)
  self.resources.by_uri, self.resources.shown = shown.resources(found.fields)
  self.fixed, why = list_fixed(self)
  return self.fixed and self, why
end

return Server
