--- Finds the authorization server of a server of MCP: the server's metadata name it (RFC 9728), and
-- its own metadata say how to ask it (RFC 8414, OpenID Connect Discovery 1.0). Specification
-- 2026-07-28, basic/authorization/authorization-server-discovery.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"
local metadata = ah._module "agenthost.protocols.mcp.oauth.metadata"

local discovery = {}

local MOST_SERVERS, MOST_METHODS = 16, 64
local PROTECTED = "oauth-protected-resource"

-- -- the server's metadata ------------------------------------------------------------------------

--- Returns the texts of a list from outside, at most so many.
local function texts(list, most)
  local found = {}
  for _, text in ipairs(message.is_list(list) and list or {}) do
    if #found < most and message.text(text, 2048) then
      found[#found + 1] = text
    end
  end
  return found
end

--- Returns the URLs at which the metadata may be; nil and the reason if the server names one that
-- must not be read.
local function places_of(server, named)
  if named then
    local at = address.named(named, server)
    if not at then
      return nil, ("it names its metadata at '%s', which is no https:// address"):format(
        message.said(named))
    end
    return { at.text }
  end
  local root = ("%s/.well-known/%s"):format(server.origin, PROTECTED)
  local below = address.well_known(server, PROTECTED)
  return below ~= root and { below, root } or { root }
end

--- Returns `{ resource, servers, scopes }` of the metadata of a server.
local function judge(document, server)
  local resource = message.text(document.resource, 2048)
  if not resource or not address.covers(resource, server) then
    return nil, ("its metadata are those of '%s', not of %s"):format(
      message.said(document.resource), address.identifier(server))
  end
  local servers = texts(document.authorization_servers, MOST_SERVERS)
  if not servers[1] then
    return nil, "its metadata name no authorization server"
  end
  return { resource = resource, servers = servers,
    scopes = message.is_list(document.scopes_supported)
      and texts(document.scopes_supported, MOST_METHODS) or nil }
end

--- Returns what a server says of its authorization: `resource`, `servers`, `scopes` (or nil); nil
-- and the reason, and true if it says nothing.
---@param server table the parts of its URL
---@param named string? where its metadata are, from its challenge
function discovery.resource(server, named)
  local places, why = places_of(server, named)
  if not places then
    return nil, why
  end
  local document, reasons, absent = exchange.first(places)
  if not document then
    return nil, "its metadata: " .. reasons, absent and not named
  end
  return judge(document, server)
end

-- -- the metadata of the authorization server -----------------------------------------------------

local ENDPOINTS = { authorization_endpoint = true, token_endpoint = true,
  registration_endpoint = false, revocation_endpoint = false } -- true: needed

--- Adds the endpoints of the metadata to `found`. Returns it, or nil and the reason.
local function take_endpoints(found, document, server)
  for name, needed in pairs(ENDPOINTS) do
    local at = address.named(document[name], server)
    if document[name] ~= nil and not at then
      return nil, ("the %s of %s is no https:// address"):format(name, found.issuer)
    elseif needed and not at then
      return nil, ("the metadata of %s have no %s"):format(found.issuer, name)
    end
    found[name] = at and at.text
  end
  return found
end

local function has(list, wanted)
  for _, text in ipairs(texts(list, MOST_METHODS)) do
    if text == wanted then
      return true
    end
  end
  return false
end

--- Returns what the metadata of an issuer say.
local function take_issuer(issuer, document, server)
  return take_endpoints({ issuer = issuer,
    s256 = has(document.code_challenge_methods_supported, "S256"),
    documents = document.client_id_metadata_document_supported == true,
    names_itself = document.authorization_response_iss_parameter_supported == true,
    offline = has(document.scopes_supported, "offline_access"),
    methods = message.is_list(document.token_endpoint_auth_methods_supported)
      and texts(document.token_endpoint_auth_methods_supported, MOST_METHODS) or nil,
  }, document, server)
end

--- Returns what is known of an issuer: its endpoints, `issuer`, and true for `s256` (it checks
-- PKCE), `documents` (it reads metadata documents of clients), `names_itself` (its answers have
-- `iss`), `offline` (it has the scope offline_access); `methods` by which clients prove themselves,
-- or nil. Returns nil and the reason, and true if it has no metadata.
local function find_issuer(issuer, server)
  local at = address.named(issuer, server)
  if not at or at.query then
    return nil, ("the authorization server '%s' has no https:// address"):format(
      message.said(issuer))
  end
  local document, why, absent = metadata(at)
  if not document then
    return nil, why, absent
  end
  return take_issuer(issuer, document, server)
end

--- Returns the same for a server of revision 2025-03-26, which is its own authorization server and
-- need not have metadata.
local function find_older(server)
  local found, why, absent = find_issuer(server.origin, server)
  if found or not absent then
    return found, why
  end
  return { issuer = server.origin, s256 = true, methods = { "none", "client_secret_post" },
    authorization_endpoint = server.origin .. "/authorize",
    token_endpoint = server.origin .. "/token",
    registration_endpoint = server.origin .. "/register" }
end

--- Returns the issuer that is asked for, or the first.
local function choose(servers, wanted)
  for _, issuer in ipairs(servers) do
    if issuer == wanted or not wanted then
      return issuer
    end
  end
  return nil, ("its authorization server is %s, not %s"):format(message.said(servers[1]), wanted)
end

--- Finds out where a server's tokens come from. Returns what is known of the issuer, with
-- `resource` and `scopes` (those that the server needs at least, or nil); or nil and the reason.
---@param server table the parts of its URL
---@param named string? where its metadata are, from its challenge
---@param wanted string? the issuer that it must be
function discovery.find(server, named, wanted)
  local said, why, absent = discovery.resource(server, named)
  if not said and not absent then
    return nil, why
  elseif not said then
    said = { servers = { server.origin } }
  end
  local issuer, other = choose(said.servers, wanted)
  if not issuer then
    return nil, other
  end
  local found, reason
  if absent then
    found, reason = find_older(server)
  else
    found, reason = find_issuer(issuer, server)
  end
  if not found then
    return nil, reason
  end
  found.resource, found.scopes = said.resource or address.identifier(server), said.scopes
  return found
end

return discovery
