--- The metadata of an authorization server, which is known by its issuer (RFC 8414, OpenID Connect
-- Discovery 1.0; specification 2026-07-28, basic/authorization/authorization-server-discovery).
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"

local SERVER, OPENID = "oauth-authorization-server", "openid-configuration"

--- Returns the places of the metadata of an issuer, in the order of the specification.
local function places_of(at)
  local list = { address.well_known(at, SERVER), address.well_known(at, OPENID) }
  if at.path ~= "" and at.path ~= "/" then
    list[3] = ("%s%s/.well-known/%s"):format(at.origin, at.path:gsub("/$", ""), OPENID)
  end
  return list
end

--- Returns the document of an issuer, which names it exactly; nil and the reason, and true if there
-- is none.
---@param at table the parts of the issuer's URL
return function(at)
  local document, reasons, absent = exchange.first(places_of(at))
  if not document then
    return nil, ("the metadata of its authorization server: %s"):format(reasons), absent
  elseif document.issuer ~= at.text then
    return nil, ("the metadata of the authorization server %s are those of '%s'"):format(at.text,
      message.said(document.issuer))
  end
  return document
end
