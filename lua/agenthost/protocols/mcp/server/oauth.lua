--- Access tokens of an authorization server (OAuth 2.1; 2026-07-28, basic/authorization): the
-- metadata of this server (RFC 9728), challenges (RFC 6750), and the check of a token by the answer
-- of its issuer. The token itself is not read: its signature would need a library for cryptography.
local ah = ...

local introspection = ah._module "agenthost.protocols.mcp.server.introspection"
local message = ah._module "agenthost.protocols.mcp.message"

local WELL_KNOWN = "/.well-known/oauth-protected-resource"
local LONGEST = 60 -- seconds that an answer of the issuer is kept
local MOST_KEPT = 1024 -- answers
local MOST_TOKEN = 8192 -- bytes
local MOST_NAME = 1024 -- bytes of a subject, and of a client

local Guard = {}
Guard.__index = Guard

local function words_of(text)
  local words = ah.array {}
  for word in (text or ""):gmatch "%S+" do
    words[#words + 1] = word
  end
  return words
end

-- -- what clients read ----------------------------------------------------------------------------

local function metadata(self)
  return { status = 200, headers = { ["Content-Type"] = "application/json",
    ["Cache-Control"] = "max-age=300" }, body = ah.json.encode {
    resource = self.resource, authorization_servers = ah.array { self.issuer.url },
    scopes_supported = self.scopes[1] and self.scopes or nil,
    bearer_methods_supported = ah.array { "header" } } }
end

--- Returns the response to a request for metadata; nil for other requests.
function Guard:page(request)
  local below = request.path:sub(1, #WELL_KNOWN) == WELL_KNOWN and request.path:sub(#WELL_KNOWN + 1)
  if below and (below == "" or below == self.path or below == self.own_path) then
    return request.method == "GET" and metadata(self)
      or { status = 405, headers = { Allow = "GET" }, body = "ask by GET\n" }
  end
end

-- Returns nil and the response that asks for another token. code: that of RFC 6750, or nil.
local function challenge(self, status, code, words)
  local parts = { code and ('error="%s"'):format(code) or nil }
  if self.scopes[1] then
    parts[#parts + 1] = ('scope="%s"'):format(table.concat(self.scopes, " "))
  end
  parts[#parts + 1] = ('resource_metadata="%s%s%s"'):format(self.origin, WELL_KNOWN, self.path)
  return nil, { status = status, body = words .. "\n",
    headers = { ["WWW-Authenticate"] = "Bearer " .. table.concat(parts, ", ") } }
end

-- -- the check of a token -------------------------------------------------------------------------

local function names(audience, resource)
  for _, one in ipairs(message.is_list(audience) and audience or { audience }) do
    if one == resource then
      return true
    end
  end
  return false
end

-- Returns why a token is refused, by the answer of its issuer; nil if it is not. Tokens that are
-- bound to a key of the client are refused, as the binding is not checked.
local function refusal(self, said, now)
  if said.active ~= true then
    return "it is not active"
  elseif said.exp ~= nil and not (type(said.exp) == "number" and said.exp > now) then
    return "its time is over"
  elseif said.nbf ~= nil and not (type(said.nbf) == "number" and said.nbf <= now) then
    return "its time has not come"
  elseif said.iss ~= nil and said.iss ~= self.issuer.url then
    return "it is of another issuer"
  elseif not names(said.aud, self.resource) then
    return ("it is not for the resource %s"):format(self.resource)
  elseif said.cnf ~= nil or said.token_type ~= nil
    and tostring(said.token_type):lower() ~= "bearer" then
    return "it is no bearer token"
  end
end

-- Returns the name of the client that has a token: its subject and its client id. Without both the
-- token stands for it.
local function principal_of(said, key)
  local sub = message.text(said.sub, MOST_NAME) or false
  local client = message.text(said.client_id, MOST_NAME) or false
  return ah.json.encode { sub, client, not sub and not client and key or nil }
end

local function keep(self, key, entry)
  if self.n >= MOST_KEPT then
    self.kept, self.n = {}, 0
  end
  self.n = self.n + (self.kept[key] and 0 or 1)
  self.kept[key] = entry
end

local function kept(self, key)
  local entry = self.kept[key]
  return entry and entry.till > ah.now() and entry or nil
end

local function entry_of(self, key, said)
  local now = ah.now()
  local why = refusal(self, said, now)
  if why then
    return { why = why }
  end
  local entry = { principal = principal_of(said, key), scopes = {},
    till = math.min(now + LONGEST, said.exp or math.huge) }
  for _, word in ipairs(words_of(type(said.scope) == "string" and said.scope or "")) do
    entry.scopes[word] = true
  end
  keep(self, key, entry)
  return entry
end

-- Returns what is known of a token, { principal, scopes } or { why }; nil and the reason if the
-- issuer cannot be asked.
local function look(self, token)
  local key = ah.sha256(token)
  local found = kept(self, key)
  if found then
    return found
  end
  local later
  local said, why = self.issuer:ask(token, function()
    later = kept(self, key)
    return later
  end)
  if later or not said then
    return later, why
  end
  return entry_of(self, key, said)
end

local function lacks_scope(self, entry)
  for _, scope in ipairs(self.scopes) do
    if not entry.scopes[scope] then
      return true
    end
  end
  return false
end

--- Returns the name of the client with this token; nil and the response that refuses it.
function Guard:enter(token)
  if not token then
    return challenge(self, 401, nil, "the header Authorization must have an access token")
  elseif #token > MOST_TOKEN or not token:find "^[%w%-%._~+/]+=*$" then
    return challenge(self, 401, "invalid_token", "this is no access token")
  end
  local entry, why = look(self, token)
  if not entry then
    ah.log("warning", "mcp: the issuer: " .. why)
    return nil, { status = 503, headers = { ["Retry-After"] = "5" },
      body = "the access token cannot be checked at present\n" }
  elseif entry.why then
    return challenge(self, 401, "invalid_token", "the access token is refused: " .. entry.why)
  elseif lacks_scope(self, entry) then
    return challenge(self, 403, "insufficient_scope", "the access token lacks a scope")
  end
  return entry.principal
end

--- Returns a guard for the server at `url`. options: `issuer`, its URL; `id` and `secret` as of
-- introspection.lua; `resource`, the address that clients know, by default `url`; `scope`, the
-- words that a token needs.
return function(options, url)
  local resource = options.resource or url
  local origin, path = resource:match "^(https?://[^/]+)(.-)/?$"
  return setmetatable({ resource = resource, origin = origin, path = path,
    own_path = url:match "^https?://[^/]+(.*)$", scopes = words_of(options.scope),
    kept = {}, n = 0,
    issuer = introspection.new { url = options.issuer, id = options.id, secret = options.secret } },
    Guard)
end
