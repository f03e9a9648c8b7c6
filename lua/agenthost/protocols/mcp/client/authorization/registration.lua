--- The identity of the client for an authorization server, and its proof. Specification 2026-07-28,
-- basic/authorization/client-registration.
--
-- A client is a table: `id`, `kind` ("document": the id is the URL of its metadata; "given": the
-- user has it from the authorization server; "registered": this program got it, RFC 7591),
-- `method` of the token endpoint, `secret`, `redirect_uri` that it was registered with, `expires`.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"

local registration = {}

local BASIC, POST, NONE = exchange.BASIC, exchange.POST, "none"
local METHODS = { [BASIC] = true, [POST] = true, [NONE] = true }
local MOST = 4096 -- bytes of an id or a secret

local function given(auth, found)
  local method = NONE
  if auth.client_secret then
    method = exchange.method(found.methods, { BASIC, POST })
    if not method then
      return nil, ("the authorization server %s takes no client secret"):format(found.issuer)
    end
  end
  return { id = auth.client_id, kind = "given", method = method, secret = auth.client_secret }
end

--- Returns the client of the answer to a registration.
local function take(object, found, redirect_uri, wish)
  local id, secret = message.text(object.client_id, MOST), message.text(object.client_secret, MOST)
  local method = object.token_endpoint_auth_method
  if not METHODS[method] then
    method = secret and (exchange.method(found.methods, { BASIC, POST }) or BASIC) or wish
  end
  if not id or method ~= NONE and not secret then
    return nil, ("the authorization server %s registers a client without what it needs"):format(
      found.issuer)
  end
  local expires = math.tointeger(object.client_secret_expires_at)
  return { id = id, kind = "registered", method = method, secret = secret,
    redirect_uri = redirect_uri, expires = expires and expires > 0 and expires or nil }
end

--- Registers a client of its own for this redirect URI.
local function register(found, redirect_uri)
  local wish = exchange.method(found.methods, { NONE, BASIC, POST })
  if not wish then
    return nil, ("the authorization server %s wants clients to prove themselves in a way that "
      .. "agenthost does not have"):format(found.issuer)
  elseif not found.methods then
    wish = NONE -- it does not say what it takes: this program can keep no secret of all its copies
  end
  local status, object = exchange.post(found.registration_endpoint, ah.json.encode {
    client_name = "agenthost", redirect_uris = ah.array { redirect_uri },
    grant_types = ah.array { "authorization_code", "refresh_token" },
    response_types = ah.array { "code" }, token_endpoint_auth_method = wish,
    application_type = "native" }, { ["Content-Type"] = "application/json" })
  if not status then
    return nil, object
  elseif status ~= 201 and status ~= 200 or not object then
    return nil, ("the authorization server %s registers no client: %s"):format(found.issuer,
      (exchange.refusal(status, object)))
  end
  return take(object, found, redirect_uri, wish)
end

--- True if a client that was registered before can be used again.
local function is_usable(client, redirect_uri)
  return client and client.kind == "registered" and client.redirect_uri == redirect_uri
    and not (client.expires and client.expires <= ah._wall())
end

--- Returns the client for an authorization server; or nil and the reason.
---@param auth table the options of the user
---@param found table what is known of the authorization server
---@param before table? the client of an earlier login there
---@param redirect_uri string
function registration.client(auth, found, before, redirect_uri)
  if auth.client_metadata_url and found.documents then
    return { id = auth.client_metadata_url, kind = "document", method = NONE }
  elseif auth.client_id then
    return given(auth, found)
  elseif is_usable(before, redirect_uri) then
    return before
  elseif found.registration_endpoint then
    return register(found, redirect_uri)
  end
  return nil, ("the authorization server %s registers no clients by itself: a client id must be "
    .. "given"):format(found.issuer)
end

return registration
