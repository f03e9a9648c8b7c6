--- An authorization server (the issuer of access tokens) that is asked for what a token is good:
-- found by its metadata, asked by introspection (RFC 7662). Redirects are not followed, so that
-- tokens and credentials reach the issuer alone.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"
local metadata = ah._module "agenthost.protocols.mcp.oauth.metadata"

local FRESH = 3600 -- seconds that its metadata is kept
local AT_ONCE = 8 -- requests to the issuer at the same time

local M = {}

local Issuer = {}
Issuer.__index = Issuer

--- Returns an issuer. options: `url`, `id` and `secret`, the credentials of this server there.
function M.new(options)
  return setmetatable({ url = options.url, turn = ah.semaphore(AT_ONCE),
    client = { id = options.id, secret = options.secret } }, Issuer)
end

-- Finds the endpoint, and the way in which this server sends its credentials to it.
local function find(self)
  if self.endpoint and ah._clock() < self.till then
    return true
  end
  local at = address.read(self.url)
  local found, why = metadata(at)
  if not found then
    return nil, why
  end
  local endpoint = address.named(found.introspection_endpoint, at)
  if not endpoint then
    return nil, "its metadata have no introspection_endpoint with https"
  end
  local methods = found.introspection_endpoint_auth_methods_supported
  self.client.method = exchange.method(message.is_list(methods) and methods or nil,
    { exchange.BASIC, exchange.POST }) or exchange.BASIC
  self.endpoint, self.till = endpoint.text, ah._clock() + FRESH
  return true
end

local function introspect(self, token)
  local status, object = exchange.form(self.endpoint, self.client,
    { { "token", token }, { "token_type_hint", "access_token" } })
  if not status then
    return nil, object
  elseif status ~= 200 then
    return nil, ("%s: HTTP status %d"):format(self.endpoint, status)
  elseif not object then
    return nil, ("%s: the response is no JSON object"):format(self.endpoint)
  end
  return object
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
