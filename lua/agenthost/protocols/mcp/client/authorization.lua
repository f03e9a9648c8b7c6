--- Authorization of a client of MCP over HTTP: has the token that the requests of one server carry,
-- renews it, and gets another when the server refuses it. Specification 2026-07-28,
-- basic/authorization.
--
-- The folder has the steps: discovery.lua finds the authorization server, login.lua lets a person
-- log in, tokens.lua asks for tokens, credentials.lua keeps them.
local ah = ...

local address = ah._module "agenthost.protocols.mcp.oauth.address"
local challenge = ah._module "agenthost.protocols.mcp.client.authorization.challenge"
local credentials = ah._module "agenthost.protocols.mcp.client.authorization.credentials"
local discovery = ah._module "agenthost.protocols.mcp.client.authorization.discovery"
local login = ah._module "agenthost.protocols.mcp.client.authorization.login"
local tokens = ah._module "agenthost.protocols.mcp.client.authorization.tokens"

local EARLY = 30 -- seconds before its end that a token is renewed
local MOST_HIDDEN = 1000 -- secrets that are taken out of texts
local LEAST_HIDDEN = 16 -- bytes of a secret; a shorter text may be a word

local read = ah._reader {
  what = "ah.mcp: auth", type = "ah.McpAuth", rows = {
    { name = "open", kinds = "function", type = "fun(url: string)",
      otherwise = "none: an error says how to log in",
      doc = "shows a person the address at which to log in. May wait" },
    { name = "timeout", kinds = "number", least = 1, most = 86400, default = 300, unit = "seconds",
      doc = "time for the person" },
    { name = "file", kinds = "string boolean", type = "string|false",
      otherwise = "none; the command has one",
      doc = "[file of credentials](#where-credentials-are-kept); false: none is read or written" },
    { name = "client_id", kinds = "string",
      doc = "client that was registered with the authorization server by hand" },
    { name = "client_secret", kinds = "string", doc = "its secret, if it has one" },
    { name = "client_metadata_url", kinds = "string",
      doc = "`https://` address of a metadata document of the client" },
    { name = "issuer", kinds = "string", otherwise = "any that the server names",
      doc = "authorization server that it must be: that of `client_id`" },
    { name = "scope", kinds = "string", otherwise = "those that the server names",
      doc = "scopes to ask for, separated by spaces" },
    { name = "redirect_uri", kinds = "string", default = "http://127.0.0.1/callback",
      doc = "`http://` address of this machine at which the answer arrives; without a port: a free "
        .. "one" },
  },
}

local Authorization = {}
Authorization.__index = Authorization

local hidden = 0

--- Takes a secret out of all texts from here on.
local function hide(secret)
  if secret and #secret >= LEAST_HIDDEN and hidden < MOST_HIDDEN then
    hidden = hidden + 1
    ah._hide(secret)
  end
end

--- Returns an error of the server.
local function refused(self, why, more)
  return nil, self.failure("provider", why, more)
end

local function no_person(self)
  return refused(self, ("it needs a login: run agenthost mcp login '%s'"):format(self.url),
    { reason = "login" })
end

-- -- the entry of the server (credentials.lua) ----------------------------------------------------

--- Returns the ids of the clients that the user gave; nil if none was.
local function ids_of(auth)
  if auth.client_id or auth.client_metadata_url then
    return { [auth.client_id or ""] = true, [auth.client_metadata_url or ""] = true }
  end
end

--- Returns the entry with other tokens, or without any.
local function with_tokens(entry, got)
  local new = {}
  for name, value in pairs(entry) do
    new[name] = value
  end
  new.access, new.expires, new.refresh = got.access, got.expires, got.refresh
  return new
end

local function take(self, entry)
  self.entry, self.untried = entry, nil
  hide(entry.access)
  hide(entry.refresh)
  hide(entry.client.secret)
end

--- Returns the entry of the file, nil if it has none; or nil and the reason.
local function stored(self)
  local entries, why = credentials.read(self.path)
  if not entries then
    return nil, why
  end
  local entry = credentials.find(entries, self.url, ids_of(self.auth), self.auth.issuer)
  if entry and entry.access == self.passed then
    return with_tokens(entry, {})
  end
  return entry
end

local function is_fresh(entry)
  return entry.access and not (entry.expires and entry.expires - EARLY <= ah._wall())
end

--- Takes the entry of the file, if it has another token than the current one: another process may
-- have got it. Returns true if the token is good for a try; or nil, and the reason if the file
-- cannot be read.
local function look(self)
  if not self.path then
    return nil
  end
  local entry, why = stored(self)
  if not entry or self.entry and self.entry.access == entry.access then
    return nil, why
  end
  self.keeps = true
  take(self, entry)
  return is_fresh(entry) and true or nil
end

--- Writes the entry to the file, whose lock is held. Returns true; or nil and the reason.
local function write(self, entry)
  local entries, why = credentials.read(self.path)
  if not entries then
    return nil, why
  end
  local left = credentials.without(entries, self.url, entry.client.id)
  left[#left + 1] = entry
  return credentials.write(self.path, left)
end

--- Takes a new entry and keeps it where the user wants it. Returns true; or nil and the reason.
local function keep(self, entry)
  take(self, entry)
  if not self.keeps then
    return true
  end
  local lock, why = credentials.lock(self.path)
  if not lock then
    return nil, why
  end
  local held <close> = lock
  return held and write(self, entry)
end

-- -- renewal --------------------------------------------------------------------------------------

--- Asks for new tokens. Returns the entry with them, or without any if the authorization server
-- takes the old ones back; nil and the reason if that is unknown.
local function refresh(entry)
  local got, why, code = tokens.ask(entry, entry.client, { { "grant_type", "refresh_token" },
    { "refresh_token", entry.refresh }, { "resource", entry.resource } })
  if got then
    got.refresh = got.refresh or entry.refresh
    return with_tokens(entry, got)
  elseif code == "invalid_client" then
    entry.client.expires = 1 -- a client of our own is registered again
  elseif code ~= "invalid_grant" then
    return nil, why
  end
  return with_tokens(entry, {})
end

--- Renews the tokens of the entry; the lock of the file is held, if it is kept in one. Another
-- process may have done so: a refresh token is good once. Returns as `renew`.
local function renew_locked(self)
  if self.keeps and look(self) then
    return true
  elseif not self.entry.refresh then
    return false
  end
  local entry, why = refresh(self.entry)
  if not entry then
    return nil, why
  end
  take(self, entry)
  self.untried = entry.access and "refresh"
  if self.keeps then
    local ok, unwritten = write(self, entry)
    if not ok then
      return nil, unwritten
    end
  end
  return entry.access ~= nil
end

--- Renews the tokens of the entry. Returns true if there are new ones, false if none can be had so;
-- or nil and the reason.
local function renew(self)
  if not self.keeps then
    return renew_locked(self)
  end
  local lock, why = credentials.lock(self.path)
  if not lock then
    return nil, why
  end
  local held <close> = lock
  local renewed, failed = renew_locked(self)
  return held and renewed, failed
end

-- -- the header -----------------------------------------------------------------------------------

--- Returns the header for a request as it is, without waiting; or nil.
function Authorization:held()
  return self.entry and self.entry.access and "Bearer " .. self.entry.access
end

--- Returns the header for a request, nil without a token. Waits while a token is renewed, or a
-- person logs in. A token that cannot be renewed is sent as it is: the server decides.
function Authorization:header()
  local _ <close> = self.door:acquire()
  if not self.looked then
    self.looked = true
    look(self) -- a file that cannot be read matters only if the server wants a token
  end
  if self.entry and self.entry.refresh and not is_fresh(self.entry) then
    renew(self)
  end
  return self:held()
end

--- Called for a request that was not refused: the token is good.
function Authorization:accepted(sent)
  if sent and sent == self:held() then
    self.untried = nil
  end
end

-- -- getting a token ------------------------------------------------------------------------------

--- Returns the scopes to ask for: what was had before, and what the server names now.
local function scope_of(self, found, wanted)
  local before = self.entry and self.entry.issuer == found.issuer and self.entry.scope
  return challenge.union({ before or "" }, wanted)
end

--- Returns a key for a text of scopes.
local function key_of(scope)
  return ((" %s "):format(scope or ""):gsub(" offline_access ", " "))
end

--- Lets a person log in for the scopes, a text. Returns true; or nil and an error.
local function log_in(self, found, scope)
  self.asked[key_of(scope)] = true
  local before = self.entry and self.entry.issuer == found.issuer and self.entry.client or nil
  local client, got, asked = login(self.auth, found, before, scope)
  if not client then
    return refused(self, got)
  end
  local ok, why = keep(self, { url = self.url, resource = found.resource, issuer = found.issuer,
    token_endpoint = found.token_endpoint, revocation_endpoint = found.revocation_endpoint,
    client = client, access = got.access, refresh = got.refresh, expires = got.expires,
    scope = asked })
  if not ok then
    return refused(self, why)
  end
  self.untried = "login"
  return true
end

--- Finds the authorization server, and forgets what another one gave. Returns it; or nil and an
-- error.
local function find(self, named)
  local found, why = discovery.find(self.server, named, self.auth.issuer)
  if not found then
    return refused(self, why)
  end
  local entry = self.entry
  if entry and entry.issuer ~= found.issuer then
    if entry.client.kind == "given" then
      return refused(self, ("its authorization server was %s, with which the client '%s' is "
        .. "registered, and is now %s; agenthost mcp logout '%s' forgets the login"):format(
        entry.issuer, entry.client.id, found.issuer, self.url))
    end
    self.entry = nil
  end
  return found
end

--- Called for a refusal for want of scopes: a person logs in for these, too. The scopes that a
-- login of this process has asked for are not asked for again (specification, "Step-Up
-- Authorization Flow").
local function step_up(self, said)
  local found, err = find(self, said.resource_metadata)
  if not found then
    return nil, err
  end
  local wanted = challenge.scopes(said.scope)
  local scope = scope_of(self, found, wanted)
  if self.asked[key_of(scope)] then
    return refused(self, ("the scopes %s are not enough for it, or were not granted"):format(
      ah._excerpt(table.concat(wanted, " "), 400)))
  elseif not self.auth.open then
    return refused(self, ("it needs a login with more scopes: run agenthost mcp login --scope "
      .. "'%s' '%s'"):format(ah._excerpt(scope or "", 400), self.url), { reason = "login" })
  end
  return log_in(self, found, scope)
end

--- Returns the scopes of a first login: those of the user, of the challenge, or of the metadata.
local function first_scopes(self, said, found)
  if self.auth.scope then
    return challenge.scopes(self.auth.scope)
  elseif said.scope then
    return challenge.scopes(said.scope)
  end
  return challenge.scopes(table.concat(found.scopes or {}, " "))
end

--- Called for a refusal for want of a token that is good.
local function replace(self, said)
  if self.untried == "login" then
    return refused(self, "it refuses the token that the login has given")
  elseif not self.auth.open and not (self.entry and self.entry.refresh) then
    return no_person(self)
  end
  local found, err = find(self, said.resource_metadata)
  if not found then
    return nil, err
  end
  if self.entry and self.untried ~= "refresh" then
    local renewed, why = renew(self)
    if renewed then
      return true
    elseif renewed == nil then
      return refused(self, why, { retryable = true })
    end
  end
  if not self.auth.open then
    return no_person(self)
  end
  return log_in(self, found, scope_of(self, found, first_scopes(self, said, found)))
end

--- Called for a request that was refused (401, or 403 for want of scopes), with what it carried.
-- Returns true if there is another token now; or nil and an error.
function Authorization:refused(status, header, sent)
  local _ <close> = self.door:acquire()
  if not address.is_private(self.server) then
    return refused(self, ("it wants to know who asks (HTTP status %d), and tokens are sent to "
      .. "https:// addresses only"):format(status))
  elseif self:held() ~= sent then
    return true -- another request has got one meanwhile
  end
  local taken, why = look(self)
  if taken or why then
    return taken, why and self.failure("provider", why)
  end
  local said = challenge.read(header)
  if status == 403 then
    return step_up(self, said)
  end
  return replace(self, said)
end

-- -- for the command ------------------------------------------------------------------------------

--- Forgets the tokens, so that the next request that needs one begins with a login.
function Authorization:begin_anew()
  look(self)
  if self.entry then
    self.passed = self.entry.access
    take(self, with_tokens(self.entry, {}))
  end
end

--- Lets a person log in even if the server has not refused a request. Returns true; false if the
-- server has no authorization; or nil and an error.
function Authorization:log_in()
  local _ <close> = self.door:acquire()
  local said, why, absent = discovery.resource(self.server)
  if absent then
    return false
  elseif not said then
    return refused(self, why)
  end
  local found, err = find(self)
  if not found then
    return nil, err
  end
  return log_in(self, found, scope_of(self, found, first_scopes(self, {}, found)))
end

--- Revokes the tokens of an entry, as far as this can be done.
local function revoke(entry)
  local at = address.read(entry.revocation_endpoint)
  local token = entry.refresh or entry.access
  return at and token and address.is_private(at)
    and tokens.revoke(entry.revocation_endpoint, entry.client, token)
end

--- Removes all that a file has of a server, and revokes its tokens. Returns how many logins it had;
-- or nil and the reason.
local function log_out(path, url)
  local entries, why = credentials.read(path)
  if not entries then
    return nil, why
  end
  local _, out = credentials.without(entries, url)
  if not out[1] then
    return 0
  end
  for _, entry in ipairs(out) do
    revoke(entry)
  end
  local lock, busy = credentials.lock(path)
  if not lock then
    return nil, busy
  end
  local held <close> = lock
  entries, why = credentials.read(path)
  if not entries then
    return nil, why
  end
  local ok, failed = credentials.write(path, (credentials.without(entries, url)))
  return held and ok and #out, failed
end

-- -- options --------------------------------------------------------------------------------------

local function fault(text, ...)
  ah._raise("ah.mcp: auth: " .. text:format(...))
end

--- Raises an error for options that cannot work.
local function check(auth)
  local redirect = address.read(auth.redirect_uri)
  if not redirect or redirect.scheme ~= "http" or not redirect.loopback or redirect.query then
    fault "field 'redirect_uri' must be an http:// address of this machine, without a query"
  end
  local document = auth.client_metadata_url and address.read(auth.client_metadata_url)
  if auth.client_metadata_url and not (document and document.scheme == "https"
    and document.path:find "^/.") then
    fault "field 'client_metadata_url' must be an https:// address with a path"
  elseif auth.client_secret and not auth.client_id then
    fault "field 'client_secret' is for a client with 'client_id'"
  elseif auth.file == true then
    fault "field 'file' must be a path or false"
  end
end

--- Returns the authorization of a server; nil for a URL that is not plain.
---@param url string
---@param given table? the options of the user (ah.McpAuth)
---@param failure fun(code: string, text: string, more: table?): table makes an error
local function new(url, given, failure)
  local auth = read(given or {})
  check(auth)
  local server = address.read(url:match "^[^#]*")
  if not server or given and not address.is_private(server) then
    return given and fault("field 'url' must be an https:// address") or nil
  end
  hide(auth.client_secret)
  local path = auth.file
  if path == nil and address.is_private(server) then
    path = ah._mcp_logins()
  end
  return setmetatable({ auth = auth, server = server, url = address.identifier(server),
    failure = failure, path = path or nil, keeps = type(auth.file) == "string",
    asked = {}, door = ah.semaphore(1) }, Authorization)
end

return { new = new, log_out = log_out, identifier = function(url)
  local at = address.read(url)
  return at and address.identifier(at)
end }
