--- Requests to the token endpoint of an authorization server (RFC 6749, sections 4.1.3, 5 and 6)
-- and to the one for revocation (RFC 7009).
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"

local tokens = {}

local MOST = 16 << 10 -- bytes of a token
local LONGEST = 10 * 365 * 86400 -- seconds that a token may say it lasts

--- Returns the token if it can stand in a header (RFC 6750, section 2.1).
local function token_of(value)
  local token = message.text(value, MOST)
  return token and token:find "^[%w%-%._~%+/]+=*$" and token or nil
end

local function take(object)
  local access = token_of(object.access_token)
  if not access then
    return nil, "its answer has no token that can be used"
  elseif type(object.token_type) ~= "string" or object.token_type:lower() ~= "bearer" then
    return nil, ("its token is of the type '%s', not Bearer"):format(
      message.said(object.token_type))
  end
  local lasts = tonumber(object.expires_in)
  return { access = access, refresh = message.text(object.refresh_token, MOST),
    expires = lasts and lasts >= 0 and ah._wall() + math.min(lasts, LONGEST) or nil }
end

--- Asks for tokens. Returns `{ access, refresh, expires }`, of which the last two may be nil; or
-- nil, the reason, and the code of the refusal or nil. `expires` is in seconds since the epoch.
---@param at { issuer: string, token_endpoint: string }
---@param client table as of registration.lua
---@param fields table a list of names and values
function tokens.ask(at, client, fields)
  local status, object = exchange.form(at.token_endpoint, client, fields)
  if not status then
    return nil, object
  elseif status ~= 200 or not object or object.error ~= nil then
    local why, code = exchange.refusal(status, object)
    return nil, ("the authorization server %s gives no token: %s"):format(at.issuer, why), code
  end
  local taken, why = take(object)
  if not taken then
    return nil, ("the authorization server %s: %s"):format(at.issuer, why)
  end
  return taken
end

--- Asks that a token be forgotten. Returns true, or nil and the reason.
function tokens.revoke(url, client, token)
  local status, object = exchange.form(url, client, { { "token", token } })
  if status == 200 then
    return true
  end
  return nil, status and (exchange.refusal(status, object)) or object
end

return tokens
