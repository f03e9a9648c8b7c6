--- The server's side of the Model Context Protocol, without a transport: judges requests, answers
-- them from the served agent (served.lua), and keeps what belongs to one client: its session of the
-- older revisions, its requests at work, our requests to it. stdio.lua and http.lua carry the
-- lines. Revision 2026-07-28 has no sessions: each call has a conversation of its own. In the older
-- ones a session is a conversation, whose calls are made one after the other.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local calls = ah._module "agenthost.protocols.mcp.server.calls"
local headers = ah._module "agenthost.protocols.mcp.headers"
local completion = ah._module "agenthost.protocols.mcp.server.completion"
local new_changes = ah._module "agenthost.protocols.mcp.server.changes"
local offers = ah._module "agenthost.protocols.mcp.server.offers"
local prompts = ah._module "agenthost.protocols.mcp.server.prompts"
local resources = ah._module "agenthost.protocols.mcp.server.resources"
local rounds = ah._module "agenthost.protocols.mcp.server.rounds"
local shown = ah._module "agenthost.protocols.mcp.server.shown"
local served = ah._module "agenthost.protocols.mcp.server.served"
local subscriptions = ah._module "agenthost.protocols.mcp.server.subscriptions"
local new_waiting = ah._module "agenthost.protocols.mcp.server.waiting"

local META, CODES, fault = message.META, message.CODES, message.fault

local MOST_NAME = 128 -- bytes of a tool's name in a request
local MOST_REQUESTS = 64 -- of a client at work
local PATIENCE = 600 -- seconds that a call waits for answers of its client
local TTL_MS = 300000 -- how long lists may be kept by clients

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

local function list_of(field)
  return function(q)
    return q.server.lists[field]
  end
end

-- Reads a section of the prompt, or a resource of the script.
local function read_resource(q)
  local section = q.server.sections[q.params.uri]
  if not section then
    return resources.read(q)
  end
  local contents, why = shown.contents(section)
  if not contents then
    ah.log("warning", "mcp: " .. section.shown.uri .. ": " .. why)
    return fault(CODES.internal, "the resource cannot be read; the server's log has the reason")
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

local function call_fixed(q)
  local fields, err = read_call(q)
  local tool = fields and q.server.fixed.by_name[fields.name]
  if not fields then
    return nil, err
  elseif not tool then
    return unknown_tool(fields.name)
  end
  function fields.show(_, call)
    return shown.result(tool, call, q.features)
  end
  return rounds.alone(q, q.server.served.fixed, fields)
end

-- -- sessions of the older revisions --------------------------------------------------------------

-- Returns the conversation of a session.
local function conversation_of(q)
  local peer, err = q.peer, nil
  if not peer.conversation then
    local definition = q.server.all_fixed and q.server.served.fixed or q.server.served.own
    peer.conversation, err = calls.open(definition, rounds.front(q))
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
    return rounds.not_set_up(err)
  end
  return shown.tools(list, q.features, q.server.all_fixed)
end

local function list_session(q)
  local by_name, list = session_tools(q)
  return by_name and list, list
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
  function fields.show(_, call)
    if call.changed and q.peer.initialized then
      q.peer.send(message.notification "notifications/tools/list_changed", q)
    end
    return shown.result(by_name[fields.name], call, q.features)
  end
  return rounds.in_session(q, q.peer.conversation, fields)
end

-- Returns what the server offers. older: for a session, whose list of tools may change.
local function capabilities(server, older)
  local lists = server.lists
  local has_resources = lists.resources[1] or lists.templates[1]
  return { tools = older and { listChanged = true } or ah.object {},
    prompts = lists.prompts[1] and ah.object {} or nil,
    completions = completion.is_offered(server.offers) and ah.object {} or nil,
    resources = has_resources
      and ah.object { subscribe = server.changes:are_known() or nil } or nil }
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

local LEVELS = { debug = true, info = true, notice = true, warning = true, error = true,
  critical = true, alert = true, emergency = true }

-- Takes the level of the messages of the log that a client wants. None are sent: the log has what
-- the client must not see.
local function set_level(q)
  if not LEVELS[q.params.level] then
    return fault(CODES.params, '"level" must be one of debug to emergency')
  end
  return {}
end

local function discover(q)
  return cacheable(q, { supportedVersions = ah.array { table.unpack(message.REVISIONS) },
    capabilities = capabilities(q.server) })
end

-- -- requests -------------------------------------------------------------------------------------

-- Methods by the name of the capability without which there are none of them.
local OFFERED = {
  prompts = { ["prompts/list"] = listing("prompts", list_of "prompts"),
    ["prompts/get"] = prompts.get },
  completions = { ["completion/complete"] = completion.complete },
}

local MODERN = {
  ["server/discover"] = discover,
  ["tools/list"] = listing("tools", fixed_tools),
  ["tools/call"] = call_fixed,
  ["resources/list"] = listing("resources", list_of "resources"),
  ["resources/templates/list"] = listing("resourceTemplates", list_of "templates"),
  ["resources/read"] = read_resource,
  ["subscriptions/listen"] = subscriptions.listen,
}

local OLDER = {
  initialize = initialize,
  ping = function() return {} end,
  ["logging/setLevel"] = set_level,
  ["tools/list"] = listing("tools", list_session),
  ["tools/call"] = call_session,
  ["resources/list"] = listing("resources", list_of "resources"),
  ["resources/templates/list"] = listing("resourceTemplates", list_of "templates"),
  ["resources/read"] = read_resource,
  ["resources/subscribe"] = subscriptions.subscribe,
  ["resources/unsubscribe"] = subscriptions.unsubscribe,
}

-- Returns the function of a method; nil if there is none, or nothing that it is about.
local function method_of(server, methods, name)
  for capability, list in pairs(OFFERED) do
    if list[name] then
      return capabilities(server)[capability] and list[name]
    end
  end
  return methods[name]
end

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
  end
  local method = method_of(q.server, methods, q.method)
  if not method then
    return fault(CODES.method, "Method not found: %s", message.said(q.method))
  end
  return method(q)
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
  return setmetatable({ server = self, send = send, asked = 0, pending = {}, at_work = {}, n = 0,
    subscribed = {} }, Peer)
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
  subscriptions.close(self)
  if self.conversation then
    self.conversation:close()
  end
end

-- -- the server -----------------------------------------------------------------------------------

-- Returns the parameters of tools that headers of HTTP repeat, lists of { name, path } by the names
-- of tools. Clients leave out a tool whose marks are wrong.
local function marked_of(tools)
  local marked = {}
  for name, tool in pairs(tools) do
    local list, why = headers.marked(tool.params)
    marked[name] = list
    if why then
      ah.log("warning", ("mcp: tool '%s': %s; clients leave it out"):format(name, why))
    end
  end
  return marked
end

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
  return { by_name = by_name, shown = list, marked = marked_of(by_name) }
end

-- Returns the lists that are the same for all clients.
local function lists_of(offered, sections)
  return { prompts = prompts.shown(offered.prompts),
    resources = resources.shown(offered.resources, sections),
    templates = resources.shown_templates(offered.templates) }
end

-- Returns a function that calls another one in a task that outlives the request.
local function starter(start)
  return function(f)
    start(function()
      local ok, err = pcall(f)
      if not ok then
        ah.log("warning", "mcp: " .. tostring(err))
      end
    end)
  end
end

--- Returns a server for the value that a script returned; nil and the reason. options: `name` and
-- `version` of it; start(f), which calls f in a task that outlives the request; `private`, true if
-- clients have a secret; `fixed`, true if clients with a session get the fixed list, too.
function Server.new(value, options)
  local offered, why = offers.read(value)
  local found
  if offered then
    found, why = served.new(value)
  end
  if not found then
    return nil, why
  end
  local start = starter(options.start)
  local self = setmetatable({ served = found, start = start, offers = offered,
    all_fixed = options.fixed or false,
    waiting = new_waiting(PATIENCE), scope = options.private and "private" or "public",
    changes = new_changes(offered, start), listening = 0,
    info = { name = found.name or options.name, version = options.version } }, Server)
  local sections
  self.sections, sections = shown.sections(found.fields)
  self.lists = lists_of(offered, sections)
  self.fixed, why = list_fixed(self)
  return self.fixed and self, why
end

return Server
