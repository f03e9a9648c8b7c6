--- The login of a person: authorization code with PKCE (OAuth 2.1, section 4.1; RFC 7636), bound to
-- the server (RFC 8707) and to the authorization server that answers (RFC 9207).
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"
local address = ah._module "agenthost.protocols.mcp.oauth.address"
local challenge = ah._module "agenthost.protocols.mcp.client.authorization.challenge"
local exchange = ah._module "agenthost.protocols.mcp.oauth.exchange"
local listener = ah._module "agenthost.protocols.mcp.client.authorization.listener"
local registration = ah._module "agenthost.protocols.mcp.client.authorization.registration"
local tokens = ah._module "agenthost.protocols.mcp.client.authorization.tokens"

local OFFLINE = "offline_access"

local function secret()
  return ah.base64url.encode(ah.random_bytes(32))
end

--- Returns the scopes to ask for, as a text, or nil. One for refresh tokens joins them where the
-- authorization server has it (SEP-2207).
local function with_offline(scope, found)
  if scope and found.offline then
    return challenge.union({ scope }, { OFFLINE })
  end
  return scope
end

--- Returns the address that a person opens.
local function address_of(asked)
  local scope = asked.scope
  local query = address.form {
    { "response_type", "code" }, { "client_id", asked.client.id },
    { "redirect_uri", asked.redirect_uri }, { "state", asked.state },
    { "code_challenge", ah.base64url.encode(ah.sha256(asked.verifier, "bytes")) },
    { "code_challenge_method", "S256" }, { "resource", asked.found.resource }, { "scope", scope },
    -- without it OpenID Connect gives no refresh token (Core 1.0, section 11)
    { "prompt", asked.found.offline and scope and "consent" } }
  local endpoint = asked.found.authorization_endpoint
  return endpoint .. (endpoint:find("?", 1, true) and "&" or "?") .. query
end

--- Shows the address and waits for the answer. Returns it; or nil and the reason.
local function await(listening, auth, url)
  local answer, err = ah.with_timeout(auth.timeout, function()
    local ok, why = pcall(auth.open, url)
    if not ok then
      return nil, { message = "`open` of `auth` has failed: " .. message.said(tostring(why)) }
    end
    return listening:wait()
  end)
  if answer then
    return answer
  elseif err.code == "deadline_exceeded" then
    return nil, ("nobody has logged in within %g seconds"):format(auth.timeout)
  end
  return nil, err.message
end

--- Returns the code of an answer; or nil and the reason. Nothing of an answer of another
-- authorization server is looked at (specification, "Authorization Response Validation").
local function code_of(answer, found)
  if answer.iss and answer.iss ~= found.issuer then
    return nil, ("the answer of the login is not from the authorization server %s"):format(
      found.issuer)
  elseif not answer.iss and found.names_itself then
    return nil, ("the answer of the login does not name the authorization server %s"):format(
      found.issuer)
  elseif not answer.code then
    return nil, ("the authorization server %s refuses the login: %s"):format(found.issuer,
      (exchange.refusal(0, { error = answer.error or "it sends no code",
        error_description = answer.error_description })))
  end
  return answer.code
end

local function redeem(asked, code)
  return tokens.ask(asked.found, asked.client, { { "grant_type", "authorization_code" },
    { "code", code }, { "redirect_uri", asked.redirect_uri },
    { "code_verifier", asked.verifier }, { "resource", asked.found.resource } })
end

--- Lets a person log in. Returns the client, its tokens and the scopes that were asked for; or nil
-- and the reason.
---@param auth table the options of the user
---@param found table as of discovery.lua
---@param before table? the client of an earlier login at the same authorization server
---@param scope string? the scopes to ask for
return function(auth, found, before, scope)
  if not found.s256 then
    return nil, ("the authorization server %s does not say that it checks PKCE (S256); a code "
      .. "could be stolen"):format(found.issuer)
  end
  local state = secret()
  local opened, why = listener.open(auth.redirect_uri, before and before.redirect_uri, state)
  if not opened then
    return nil, why
  end
  local listening <close> = opened
  local client, reason = registration.client(auth, found, before, listening.uri)
  if not client then
    return nil, reason
  end
  local asked = { found = found, client = client, redirect_uri = listening.uri, state = state,
    verifier = secret(), scope = with_offline(scope, found) }
  local answer, missing = await(listening, auth, address_of(asked))
  if not answer then
    return nil, missing
  end
  local code, refused = code_of(answer, found)
  if not code then
    return nil, refused
  end
  local got, failed = redeem(asked, code)
  if not got then
    return nil, failed
  end
  return client, got, asked.scope
end
