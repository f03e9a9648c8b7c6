--- Pinned definitions: those that the tools of a server had when they were first seen. One that
-- differs from its pin may be an attack: the model does not get its text, and its tool is not
-- called, until a person has accepted it.
--
-- Pins are kept in the memory of the object that asks, and in a file if it has one:
--
--   { "agenthost_mcp_pins": 1, "servers": { ID: { "name", "from", "tools": { NAME: PIN } } } }
--   PIN: { "hash", "text", "seen", "offered": { "hash", "text", "seen" } }
--
-- `text` is the canonical text of the definition (content.lua), nil if it is too long to be kept;
-- `hash` its SHA-256; `seen` the time of the first sight, seconds since 1970; `offered` the changed
-- definition that waits for a person. ID is a hash, since addresses and arguments may have secrets.
-- Everything in the file is from outside: it is checked, and a damaged file is used for nothing.
local ah = ...

local content = ah._module "agenthost.protocols.mcp.client.content"
local kept_file = ah._module "agenthost.kept_file"

local HEAD = "agenthost_mcp_pins"
local MOST_FILE = 16 << 20 -- bytes of the file
local MOST_TEXT = 64 << 10 -- bytes of a definition whose text is kept
local MOST_TEXTS = 2 << 20 -- bytes of the texts of a server
local MISSING = { [2] = true, [20] = true } -- ENOENT, ENOTDIR

local pins = {}

-- -- which server it is ---------------------------------------------------------------------------

local PORTS = { http = "80", https = "443" }

--- Returns the scheme, host and port, and the path of an address, without user, query and fragment.
local function parts_of(url)
  local scheme, place, path = url:match "^(%w+)://([^/?#]*)([^?#]*)"
  scheme, place = scheme:lower(), place:gsub("^.*@", ""):lower()
  local host, port = place:match "^(.-):(%d*)$"
  if not host then
    host, port = place, PORTS[scheme]
  end
  return ("%s://%s:%s"):format(scheme, host, port ~= "" and port or PORTS[scheme]),
    path ~= "" and path or "/"
end

--- Returns a word of a command line; if it names a file, the real path of that, which is the same
-- in each working folder.
local function word_of(word, folder)
  local path = word:sub(1, 1) ~= "/" and folder .. "/" .. word or word
  local real = ah._real_path(path)
  return real and not ah._real_path(path .. "/.") and real or word
end

--- Returns the id under which the tools of a server are pinned, and words that say where it is. An
-- id is made of the scheme, host, port and path of an address, or of a program and its arguments.
function pins.id(config)
  if config.url then
    local origin, path = parts_of(config.url)
    return ah.sha256("url\n" .. origin .. path), origin
  end
  local folder, words = config.cwd or ".", {}
  words[1] = config.command:find "/" and word_of(config.command, folder) or config.command
  for i, word in ipairs(config.args or {}) do
    words[i + 1] = word_of(tostring(word), folder)
  end
  return ah.sha256("command\n" .. ah.json.encode(ah.array(words))), config.command
end

-- -- the file -------------------------------------------------------------------------------------

local function is_hash(value)
  return type(value) == "string" and #value == 64 and value:find "^%x+$" ~= nil
end

--- True if the value is a definition as it is kept.
local function is_sound(one)
  return type(one) == "table" and is_hash(one.hash) and math.type(one.seen) == "integer"
    and (one.text == nil or type(one.text) == "string" and ah.sha256(one.text) == one.hash)
end

local function is_sound_server(server)
  if type(server) ~= "table" or type(server.name) ~= "string" or type(server.from) ~= "string"
    or type(server.tools) ~= "table" then
    return false
  end
  for name, pin in pairs(server.tools) do
    if type(name) ~= "string" or not is_sound(pin)
      or pin.offered ~= nil and not is_sound(pin.offered) then
      return false
    end
  end
  return true
end

--- Returns the servers of the file's text; nil and what is wrong.
local function parse(text)
  local all = ah.json.decode(text)
  if type(all) ~= "table" or all[HEAD] ~= 1 or type(all.servers) ~= "table" then
    return nil, "it is damaged, or no file of pinned definitions of this version"
  end
  for _, server in pairs(all.servers) do
    if not is_sound_server(server) then
      return nil, "it is damaged: a definition and its hash do not fit"
    end
  end
  return all.servers
end

local function failed(path, why)
  return nil, ("cannot use the pinned definitions in '%s': %s"):format(ah._harmless(path), why)
end

--- Returns the servers of the file by their ids, {} if it is missing; or nil and an error's text.
---@param path string
function pins.read(path)
  local text, more, code = ah._read_file(path, MOST_FILE, false)
  if not text and MISSING[code] then
    return {}
  elseif not text then
    return failed(path, more)
  elseif not more then
    return failed(path, "it belongs to another user")
  end
  local servers, why = parse(text)
  if not servers then
    return failed(path, why .. "; look at it, and delete it to pin all definitions anew")
  end
  return servers
end

local function write(path, servers)
  local text = ah.json.encode { [HEAD] = 1, servers = ah.object(servers) }
  if #text > MOST_FILE then
    return failed(path, ("it would have more than %d MiB; agenthost mcp pin --forget SERVER makes "
      .. "room"):format(MOST_FILE >> 20))
  end
  local ok, err = pcall(ah._write_private, path, text)
  if not ok then
    return failed(path, type(err) == "table" and err.message or tostring(err))
  end
  return true
end

--- Calls change(servers) while no other process changes the file, and keeps what it has made of
-- them. Returns what it returned, or nil and an error's text. Waits.
---@param path string
---@param change fun(servers: table): any
function pins.change(path, change)
  local made, folder, why = kept_file.make_folders(path)
  if not made then
    return failed(path, ("cannot make the folder '%s': %s"):format(ah._harmless(folder), why))
  end
  local lock, busy = kept_file.locked(path)
  if not lock then
    return nil, busy
  end
  local _ <close> = lock
  local servers, err = pins.read(path)
  if not servers then
    return nil, err
  end
  local result = change(servers)
  local ok
  ok, err = write(path, servers)
  if not ok then
    return nil, err
  end
  return result
end

-- -- pins of one server ---------------------------------------------------------------------------

--- Returns a definition as it is kept.
local function kept(definition, room)
  local text = definition.text
  return { hash = definition.hash, seen = math.floor(ah.now()),
    text = #text <= math.min(MOST_TEXT, room) and text or nil }
end

local function room_of(server)
  local room = MOST_TEXTS
  for _, pin in pairs(server.tools) do
    room = room - #(pin.text or "") - #(pin.offered and pin.offered.text or "")
  end
  return room
end

--- Brings the offer of a pin up to date with the server's definition. Returns true if it changes.
local function offer(pin, definition, room)
  if pin.hash == definition.hash then
    local was = pin.offered
    pin.offered = nil -- the server has taken the change back
    return was ~= nil
  elseif pin.offered and pin.offered.hash == definition.hash then
    return false
  end
  pin.offered = kept(definition, room)
  return true
end

--- Brings the pins of a server up to date with its list: pins what is new, and keeps what has
-- changed for a person. Returns true if something changes.
local function update(server, list)
  local changed, room = false, room_of(server)
  for _, definition in ipairs(list) do
    local pin = server.tools[definition.key]
    if not pin then
      server.tools[definition.key] = kept(definition, room)
      changed, room = true, room_of(server)
    elseif offer(pin, definition, room) then
      changed, room = true, room_of(server)
    end
  end
  return changed
end

local Pins = {}
Pins.__index = Pins

--- Returns the pins of a server. path: of the file; nil or false: in memory alone.
function pins.new(config, name, path)
  local self = setmetatable({ name = name, path = path or nil,
    memory = { tools = ah.object {} } }, Pins)
  self.id, self.from = pins.id(config)
  return self
end

--- Returns the server's record among those of a file, with the pins of this process that the file
-- does not have: it may have been deleted meanwhile.
local function record_in(self, servers)
  local server = servers[self.id] or { name = self.name, from = self.from,
    tools = ah.object {} }
  servers[self.id] = server
  for key, pin in pairs(self.memory.tools) do
    server.tools[key] = server.tools[key] or pin
  end
  return server
end

local function names_of(record)
  local names = {}
  for key in pairs(record.tools) do
    names[key] = true
  end
  return names
end

--- True if all definitions of a list are as they are pinned in memory: then the file need not be
-- read again.
local function is_known(self, list)
  for _, definition in ipairs(list) do
    local pin = self.memory.tools[definition.key]
    if not pin or pin.offered or pin.hash ~= definition.hash then
      return false
    end
  end
  return true
end

--- Pins what is new in a list, and keeps what has changed. Returns the record of the server in the
-- file, and the names of the tools that it had before; or nil and an error's text.
local function look_in_file(self, list)
  local servers, err = pins.read(self.path)
  if not servers then
    return nil, err
  end
  local server = record_in(self, servers)
  local before = names_of(server)
  if update(server, list) then
    server, err = pins.change(self.path, function(now)
      local own = record_in(self, now)
      update(own, list)
      own.name, own.from = self.name, self.from
      return own
    end)
  end
  return server, server and before or err
end

--- Returns the record of the server after this list, and the names of the tools that it had before;
-- or nil and an error's text.
local function look(self, list)
  local server, before = self.memory, names_of(self.memory)
  if not is_known(self, list) and self.path then
    server, before = look_in_file(self, list)
  else
    update(server, list)
  end
  self.memory = server or self.memory
  return server, before
end

--- Compares the definitions of a list with their pins, and pins those that are new. Returns a list
-- of { definition, state = "pinned"|"new"|"changed", pin } in the same order; or nil and an error's
-- text. A tool is `new` if the server had others before. Waits for other processes that change the
-- file.
---@param list table definitions of content.lua
function Pins:judge(list)
  local server, before = look(self, list)
  if not server then
    return nil, before
  end
  local judged, known = {}, next(before) ~= nil
  for i, definition in ipairs(list) do
    local pin = server.tools[definition.key]
    local state = "pinned"
    if pin.hash ~= definition.hash then
      state = "changed"
    elseif known and not before[definition.key] then
      state = "new"
    end
    judged[i] = { definition = definition, state = state, pin = pin }
  end
  return judged
end

--- Returns the definition of a pin; nil if its text is not kept.
function pins.definition(pin, over_http)
  local given = pin.text and ah.json.decode(pin.text)
  return given and content.definition(given, over_http, {}) or nil
end

return pins
