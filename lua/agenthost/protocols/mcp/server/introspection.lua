--- An authorization server (the issuer of access tokens) that is asked for what a token is good:
-- found by its metadata (RFC 8414, OpenID Connect Discovery), asked by introspection (RFC 7662).
-- Redirects are not followed, so that tokens and credentials reach the issuer alone.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local TIMEOUT = 10 -- seconds for a request to the issuer
local MOST_BODY = 256 << 10 -- bytes of an answer of the issuer
local FRESH = 3600 -- seconds that its metadata is kept
local AT_ONCE = 8 -- requests to the issuer at the same time

local M = {}

local Issuer = {}
Issuer.__index = Issuer

local LOOPBACK = { ["127.0.0.1"] = true, localhost = true, ["[::1]"] = true }

--- True for a URL that a token may be sent to: https, or http on this machine. It has no query, no
-- fragment and no credentials.
function M.is_safe(url)
  local scheme, host, path = url:match "^(https?)://([^/?#@%s]+)([^?#@%s]*)$"
  if not scheme or not path:find "^/" and path ~= "" then
    return false
  end
  local name = host:match "^(%[.*%])" or host:match "^[^:]+"
  return scheme == "https" or name ~= nil and LOOPBACK[name] == true
end

--- Returns an issuer. options: `url`, `id` and `secret`, the credentials of this server there.
function M.new(options)
  return setmetatable({ url = options.url, id = options.id, secret = options.secret,
    turn = ah.semaphore(AT_ONCE) }, Issuer)
end

-- Makes a request. Returns the object in the response; nil and the reason.
local function ask(fields)
  fields.timeout, fields.max_body = TIMEOUT, MOST_BODY
  fields.headers = fields.headers or {}
  fields.headers.Accept = "application/json"
  local response, err = ah.http(fields)
  if not response then
    return nil, ("%s: %s"):format(fields.url, err.message)
  elseif response.status ~= 200 then
    return nil, ("%s: HTTP status %d"):format(fields.url, response.status)
  end
  local value = ah.json.decode(response.body)
  if not message.is_object(value) then
    return nil, ("%s: the response is no JSON object"):format(fields.url)
  end
  return value
end

-- -- metadata -------------------------------------------------------------------------------------

-- Returns the addresses where the metadata may be, the best one first
-- (2026-07-28, basic/authorization/authorization-server-discovery).
local function places_of(url)
  local origin, path = url:match "^(https?://[^/]+)(.*)$"
  path = path:gsub("/+$", "")
  local places = { origin .. "/.well-known/oauth-authorization-server" .. path,
    origin .. "/.well-known/openid-configuration" .. path }
  if path ~= "" then
    places[3] = origin .. path .. "/.well-known/openid-configuration"
  end
  return places
end

local function metadata_of(self)
  local why
  for _, place in ipairs(places_of(self.url)) do
    local found, reason = ask { url = place }
    if found and found.issuer == self.url then
      return found
    elseif found then
      return nil, ("%s: its issuer is '%s'"):format(place, message.said(found.issuer))
    end
    why = why or reason
  end
  return nil, why
end

-- True if the list has the text.
local function has(list, text)
  for _, one in ipairs(message.is_list(list) and list or {}) do
    if one == text then
      return true
    end
  end
  return false
end

-- Finds the endpoint, and the way in which this server sends its credentials to it.
local function find(self)
  if self.endpoint and ah._clock() < self.till then
    return true
  end
  local found, why = metadata_of(self)
  local endpoint = found and found.introspection_endpoint
  if not found then
    return nil, why
  elseif type(endpoint) ~= "string" or not M.is_safe(endpoint) then
    return nil, "its metadata has no introspection_endpoint with https"
  end
  local methods = found.introspection_endpoint_auth_methods_supported
  self.by_form = has(methods, "client_secret_post") and not has(methods, "client_secret_basic")
  self.endpoint, self.till = endpoint, ah._clock() + FRESH
  return true
end

-- -- introspection --------------------------------------------------------------------------------

local function escaped(text)
  return (text:gsub("[^%w%-%._~]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end

local function form(fields)
  local parts = {}
  for i, pair in ipairs(fields) do
    parts[i] = pair[1] .. "=" .. escaped(pair[2])
  end
  return table.concat(parts, "&")
end

local function introspect(self, token)
  local fields = { { "token", token }, { "token_type_hint", "access_token" } }
  local headers = { ["Content-Type"] = "application/x-www-form-urlencoded" }
  if self.by_form then
    fields[3], fields[4] = { "client_id", self.id }, { "client_secret", self.secret }
  else
    headers.Authorization = "Basic " .. ah.base64.encode(escaped(self.id) .. ":"
      .. escaped(self.secret))
  end
  return ask { url = self.endpoint, method = "POST", headers = headers, body = form(fields) }
end

--- Returns what the issuer says of a token, an object with `active`; nil and the reason if it
-- cannot be asked. known() is called when it is the token's turn: an answer that it returns is
-- taken.
function Issuer:ask(token, known)
  local _ <close> = self.turn:acquire()
  local answer = known()
  if answer then
    return answer
  end
  local ok, why = find(self)
  if not ok then
    return nil, why
  end
  return introspect(self, token)
end

return M
