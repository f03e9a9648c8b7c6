--- The file of credentials: what logins have got, for the next process. It is readable by its owner
-- only and replaced as a whole (io/file.h). Processes that change it take turns.
--
-- An entry is a table: `url` of the server, `resource`, `issuer`, `token_endpoint`,
-- `revocation_endpoint`, `client` (registration.lua), `access`, `refresh`, `expires` (tokens.lua)
-- and `scope`, what was asked for.
local ah = ...

local kept_file = ah._module "agenthost.kept_file"
local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"

local credentials = {}

local MOST = 4 << 20 -- bytes of the file
local VERSION = 1
local PATIENCE = 60 -- seconds to wait for another process
local MISSING = { [2] = true, [20] = true } -- ENOENT, ENOTDIR

local function shown(path)
  return ah._excerpt(path, 300)
end

-- -- reading --------------------------------------------------------------------------------------

local TEXTS = { url = true, resource = true, issuer = true, token_endpoint = true,
  revocation_endpoint = false, access = false, refresh = false, scope = false } -- true: needed
local TEXTS_OF_CLIENT = { id = true, kind = true, method = true, secret = false,
  redirect_uri = false }

local function has_texts(object, names)
  for name, needed in pairs(names) do
    local value = object[name]
    if type(value) ~= "string" and (needed or value ~= nil) then
      return false
    end
  end
  return true
end

local function is_number(value)
  return value == nil or type(value) == "number"
end

local function is_client(client)
  return message.is_object(client) and has_texts(client, TEXTS_OF_CLIENT)
    and is_number(client.expires) and (client.method == "none" or client.secret ~= nil)
end

local function is_entry(entry)
  if not message.is_object(entry) or not has_texts(entry, TEXTS) or not is_client(entry.client) then
    return false
  end
  local at = address.read(entry.token_endpoint)
  return at and address.is_private(at) and is_number(entry.expires)
    and not (entry.access or ""):find "[^\33-\126]"
end

--- Returns the entries of the text; nil if it is none of ours.
local function entries_of(text)
  local object = message.object(ah.json.decode(text))
  if object.version ~= VERSION or not message.is_list(object.entries) then
    return nil
  end
  for _, entry in ipairs(object.entries) do
    if not is_entry(entry) then
      return nil
    end
  end
  return object.entries
end

--- Returns the entries of a file, of which there are none if it is missing; or nil and the reason.
-- The reason quotes nothing of the file.
function credentials.read(path)
  local text, mine, code = ah._read_file(path, MOST, false)
  if not text and MISSING[code] then
    return {}
  elseif not text then
    return nil, mine -- has the path
  elseif not mine then
    return nil, ("the credentials '%s' belong to another user"):format(shown(path))
  end
  local entries = entries_of(text)
  if not entries then
    return nil, ("the credentials '%s' are damaged: remove the file, and log in again"):format(
      shown(path))
  end
  return entries
end

-- -- writing --------------------------------------------------------------------------------------

--- Returns the lock of the file, for a variable marked <close>; or nil and the reason. Another
-- process may ask for tokens meanwhile.
function credentials.lock(path)
  return kept_file.locked(path, PATIENCE)
end

--- Replaces the file, whose lock is held. Returns true, or nil and the reason.
function credentials.write(path, entries)
  local ok, err = pcall(ah._write_private, path,
    ah.json.encode { version = VERSION, entries = ah.array(entries) } .. "\n")
  if not ok then
    return nil, err.message
  end
  return true
end

-- -- entries --------------------------------------------------------------------------------------

--- Returns the newest entry of a server whose client is one of `ids`, and whose issuer is that; nil
-- stands for any.
function credentials.find(entries, url, ids, issuer)
  for i = #entries, 1, -1 do
    local entry = entries[i]
    if entry.url == url and (not ids or ids[entry.client.id])
      and (not issuer or entry.issuer == issuer) then
      return entry
    end
  end
end

--- Returns the entries without those of a server; with `kept`, other clients that a user gave stay.
-- The second result is what was left out.
function credentials.without(entries, url, kept)
  local left, out = {}, {}
  for _, entry in ipairs(entries) do
    local other = kept and entry.client.kind == "given" and entry.client.id ~= kept
    local list = entry.url == url and not other and out or left
    list[#list + 1] = entry
  end
  return left, out
end

return credentials
