--- ah.mcp: a server of MCP whose tools a run takes. This file owns the connection and the list of
-- the server's tools, makes tools of ours from it, and calls them. toolsets.lua gives the tools to
-- conversations.
local ah = ...

local later = ah._module "agenthost.later"

local connection = ah._module "agenthost.protocols.mcp.client.connection"
local content = ah._module "agenthost.protocols.mcp.client.content"
local drift = ah._module "agenthost.protocols.mcp.client.drift"
local lists = ah._module "agenthost.protocols.mcp.client.lists"
local message = ah._module "agenthost.protocols.mcp.message"
local pins = ah._module "agenthost.protocols.mcp.client.pins"
local read = ah._module "agenthost.protocols.mcp.client.config"

local authorization = later "agenthost.protocols.mcp.client.authorization"
local completion = later "agenthost.protocols.mcp.client.completion"
local headers = later "agenthost.protocols.mcp.headers"
local questions = later "agenthost.protocols.mcp.client.questions"
local requests = later "agenthost.protocols.mcp.client.requests"
local resources = later "agenthost.protocols.mcp.client.resources"
local roots = later "agenthost.protocols.mcp.client.roots"
local sections = later "agenthost.protocols.mcp.client.sections"

local Server = { __name = "agenthost.mcp" }
Server.__index = Server

-- -- the list of tools ----------------------------------------------------------------------------

local function is_fresh(self)
  return self.list and not self.stale
    and (self.connection:announces "tools" or ah.now() < self.expires)
end

--- Returns the definitions of a list's tools, by their names. A tool that cannot be used is left
-- out, with a warning.
local function definitions_of(self, items)
  local list, seen, known = {}, {}, {}
  for _, definition in ipairs(self.list or {}) do
    known[definition.key] = definition
  end
  for _, item in ipairs(items) do
    local definition, why = content.definition(item, self.config.url ~= nil, known)
    if definition and seen[definition.key] then
      definition, why = nil, ("a second tool '%s'"):format(message.said(definition.key))
    end
    if definition then
      seen[definition.key] = true
      list[#list + 1] = definition
    else
      ah.log("warning", ("MCP server '%s': %s; it is left out"):format(self.name, why))
    end
  end
  table.sort(list, function(x, y) return x.key < y.key end)
  return list
end

local function read_list(self)
  self.connection:listen()
  self.stale = false
  local items, ttl = {}, lists.LONGEST_FRESH
  if lists.has(self, "tools") then
    items, ttl = lists.pages(self, "tools/list", "tools")
  end
  if not items then
    return nil, ttl
  end
  local list, err = drift.admit(self, definitions_of(self, items))
  if not list then
    return nil, err
  end
  if self.config.resources and lists.has(self, "resources") then
    table.move(resources.definitions, 1, #resources.definitions, #list + 1, list)
  end
  return list, ttl
end

local function signature(list)
  local versions = {}
  for i, definition in ipairs(list) do
    versions[i] = definition.key .. " " .. definition.version
  end
  return table.concat(versions, "\n")
end

local function keep(self, list, ttl)
  local now = signature(list)
  if self.signature and self.signature ~= now then
    self.changes = self.changes + 1
  end
  self.list, self.signature, self.expires = list, now, ah.now() + ttl
end

--- Returns the list of the server's tools as it is now; or nil and an error. Waits for the server
-- if the list has to be read.
function Server:definitions()
  local _ <close> = self.door:acquire()
  self.connection:catch_up()
  local ok, err = self.connection:ready()
  if not ok then
    return nil, err
  end
  for try = 1, 3 do -- again if it has changed meanwhile
    if try == 1 and is_fresh(self) or try > 1 and not self.stale then
      break
    end
    local list, more = read_list(self)
    if not list then
      self.stale = true
      return nil, more
    end
    keep(self, list, more)
  end
  return self.list
end

--- Reads the list again if the server has said that it has changed. A failure leaves it for later.
local function refresh(self)
  self.connection:catch_up()
  if self.stale and self.connection.live then
    local list, err = self:definitions()
    if not list then
      ah.log("warning", err.message .. "; its list of tools could not be read again")
    end
  end
end

-- -- calls ----------------------------------------------------------------------------------------

--- Returns the definition of this name as it is after the list was read again.
local function newest(self, key)
  self.stale = true
  for _, definition in ipairs(self:definitions() or {}) do
    if definition.key == key then
      return definition
    end
  end
end

--- True if a call may be made again: what has become of it does not matter, or it was not begun.
local function may_repeat(self, err)
  return err.reason == "lost" and self.config.on_lost == "retry" or err.rpc == message.CODES.header
end

--- Starts the server if it does not run, and reads its list again if it may have changed. What goes
-- wrong here goes wrong in the call, too.
local function bring_up(self)
  if self.connection:ready() then
    refresh(self)
  end
end

local function attempt(self, definition, args, ctx)
  return requests.make(self, "tools/call", { name = definition.key, arguments = args }, ctx,
    definition.marked and headers.of(definition.marked, args))
end

local function call(self, definition, args, ctx)
  bring_up(self)
  if self.refused[definition.key] then
    return drift.refusal(self, definition.key)
  end
  local result, err = attempt(self, definition, args, ctx)
  if err and may_repeat(self, err) then
    local now = err.rpc and newest(self, definition.key) or definition
    if self.refused[definition.key] then
      return drift.refusal(self, definition.key)
    end
    result, err = attempt(self, now, args, ctx)
  end
  if err and (err.rpc == message.CODES.params or err.rpc == message.CODES.method) then
    self.stale = true -- the tool may be gone
  end
  refresh(self)
  if not result then
    return nil, err
  end
  return content.result(result)
end

local function make_tool(self, definition, name)
  return ah._outside_tool { name = name, description = definition.description,
    full_description = definition.full_description, schema = definition.schema,
    result = definition.result, annotations = definition.annotations, version = definition.version,
    on_lost = self.config.on_lost,
    handler = function(args, ctx)
      if definition.handler then
        return definition.handler(self, args, ctx)
      end
      return call(self, definition, args, ctx)
    end }
end

--- Returns the tool of ours with this name for a definition. The gate calls it like any other.
function Server:tool(definition, name)
  if definition.handler then -- a definition of all servers
    return make_tool(self, definition, name)
  end
  definition.tools[name] = definition.tools[name] or make_tool(self, definition, name)
  return definition.tools[name]
end

-- -- resources and prompts ------------------------------------------------------------------------

local function list_of(self, capability, method, member, item_of)
  local items, err = lists.items(self, capability, method, member)
  if not items then
    return nil, err
  end
  local list = {}
  for _, item in ipairs(items) do
    list[#list + 1] = item_of(message.object(item))
  end
  return list
end

--- Returns the server's resources: `{ uri, name, title, description, mime_type, size }` each.
function Server:resources()
  return list_of(self, "resources", "resources/list", "resources", resources.resource)
end

--- Returns the templates of its resources: `{ uri_template, name, title, description, mime_type }`.
function Server:templates()
  return list_of(self, "resources", "resources/templates/list", "resourceTemplates",
    resources.template)
end

--- Returns the contents of a resource: `{ uri, mime_type, text | data }` each.
function Server:read(uri, ctx)
  local result, err = requests.make(self, "resources/read", { uri = uri }, ctx)
  if not result then
    return nil, err
  end
  return resources.contents(result.contents)
end

--- Returns the server's prompts: `{ name, title, description, arguments }` each.
function Server:prompts()
  return list_of(self, "prompts", "prompts/list", "prompts", resources.prompt)
end

--- Returns the messages of a prompt, for the field `messages` of a run.
function Server:prompt(name, arguments)
  local result, err = requests.make(self, "prompts/get", { name = name, arguments = arguments })
  if not result then
    return nil, err
  end
  return resources.messages(result.messages)
end

--- Returns a section with the text of a resource, as it is now; or nil and an error.
function Server:section(given)
  return sections.make(self, given)
end

--- Returns what the server proposes for an argument of a prompt or of a template's address: a list
-- of texts; or nil and an error.
function Server:complete(given)
  return completion.complete(self, given)
end

--- Returns what the server says about its use, a text from outside, or nil; nil and an error if it
-- cannot be asked.
function Server:instructions()
  local ok, err = self.connection:ready()
  return ok and self.connection.instructions or nil, err
end

-- -- ah.mcp ---------------------------------------------------------------------------------------

--- Returns the server's tools; or nil and an error. Starts the server if it does not run.
function Server:tools()
  local list, err = self:definitions()
  if not list then
    return nil, err
  end
  local tools, names = {}, ah._module "agenthost.toolsets".names {}
  for i, definition in ipairs(list) do
    tools[i] = self:tool(definition, names:of(self, definition))
  end
  return tools
end

--- Returns the names that a tool may have, the best one first.
function Server:names_of(definition)
  local key, prefix = definition.name or definition.key, self.config.prefix
  local longer = prefix and self.name .. "_" .. prefix or self.name
  return content.name(key, prefix), content.name(key, longer)
end

function Server:close()
  self.connection:close()
end

function Server:__close()
  self.connection:close()
end

function Server:__tostring()
  return ("MCP server %s"):format(self.name)
end

Server.__toolset = true

local function transport_of(config)
  return ah._module("agenthost.protocols.mcp.client." .. (config.url and "http" or "stdio"))
end

--- Returns the capabilities that the server learns of: what it may ask for.
local function capabilities_of(config)
  return { elicitation = { form = ah.object {}, url = ah.object {} },
    roots = config.roots and ah.object {}, sampling = config.sampling and ah.object {} }
end

--- Returns the authorization of a server elsewhere; nil if its headers have one.
local function authorization_of(self, config)
  if not config.url or config.authorized then
    return nil
  end
  return authorization.new(config.url, config.auth, function(...)
    return self.connection:failure(...)
  end)
end

local function connect(self, config)
  return connection.new {
    name = self.name, transport = transport_of(config),
    start_timeout = config.start_timeout,
    capabilities = capabilities_of(config), extensions = { [message.META.tasks] = ah.object {} },
    offered = function(method) return questions.offered(config, method) end,
    answers = { ["roots/list"] = config.roots and function() return roots.list(self) end },
    process = { command = config.command, args = config.args, env = config.env, cwd = config.cwd,
      sandbox = config.sandbox, max_errors = 16 << 10 },
    url = config.url, headers = config.headers, authorization = self.authorization,
    on_changed = function(method)
      if method == "notifications/tools/list_changed" then
        self.stale = true
      else
        self.kept = {}
      end
    end,
    on_started = function() self.stale, self.kept = true, {} end,
  }
end

--- ah.mcp { command = "npx", args = { "-y", "some-server" } } or ah.mcp { url = "https://..." }
return function(given)
  local config = read(given)
  local self = setmetatable({ name = config.name, config = config, changes = 0,
    optional = config.optional, stale = true, expires = 0, kept = {}, door = ah.semaphore(1),
    refused = {}, told = {} }, Server)
  self.pins = pins.new(config, config.name, config.pins)
  self.authorization = authorization_of(self, config)
  self.connection = connect(self, config)
  return self
end
