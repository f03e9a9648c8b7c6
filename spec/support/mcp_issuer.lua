--- An authorization server for specs, in this process: metadata (RFC 8414), registration
-- (RFC 7591), the authorization code with PKCE and resource indicators (RFC 7636, 8707, 9207),
-- refresh tokens that are good once, revocation (RFC 7009) and introspection (RFC 7662). It grants
-- all that is asked for. And a server of MCP that wants its tokens.
local ah = require "agenthost"
local far = require "support.mcp_http"

local mcp_issuer = {}
local open = {}

local Issuer = {}
Issuer.__index = Issuer

local function secret(kind)
  return kind .. "-" .. ah.base64url.encode(ah.random_bytes(24))
end

--- Returns a form's fields.
local function form_of(text)
  local fields = {}
  for name, value in text:gmatch "([^&=]+)=([^&]*)" do
    fields[name] = value:gsub("%+", " "):gsub("%%(%x%x)", function(digits)
      return string.char(tonumber(digits, 16))
    end)
  end
  return fields
end

local function refuse(code, status)
  return { status = status or 400, body = { error = code, error_description = "for a reason" } }
end

-- -- tokens ---------------------------------------------------------------------------------------

--- Issues tokens. of: `scope`, `audience`, `client`, `lasts` (seconds), `subject`; all but
-- `audience` may be nil. Returns the access token and the refresh token.
function Issuer:issue(of)
  local access, refresh = secret "access", secret "refresh"
  self.tokens[access] = { active = true, scope = of.scope, aud = of.audience,
    client_id = of.client, sub = of.subject or "ann", iss = self.url,
    exp = ah._wall() + (of.lasts or self.lasts) }
  self.refreshes[refresh] = { of = of, access = access }
  return access, refresh
end

--- Makes a token, of either kind, useless.
function Issuer:revoke(token)
  local refresh = self.refreshes[token]
  self.refreshes[token], self.tokens[token] = nil, nil
  if refresh then
    self.tokens[refresh.access] = nil
  end
end

--- Returns what a token is good for, as introspection shows it; nil if it is good for nothing.
function Issuer:find(token)
  local found = self.tokens[token]
  return found and found.exp > ah._wall() and found or nil
end

-- -- endpoints ------------------------------------------------------------------------------------

local function metadata(self)
  local document = { issuer = self.url, authorization_endpoint = self.url .. "/authorize",
    token_endpoint = self.url .. "/token", registration_endpoint = self.url .. "/register",
    revocation_endpoint = self.url .. "/revoke", introspection_endpoint = self.url .. "/introspect",
    code_challenge_methods_supported = ah.array { "S256" },
    token_endpoint_auth_methods_supported = ah.array { "none", "client_secret_basic",
      "client_secret_post" },
    authorization_response_iss_parameter_supported = self.iss ~= false }
  for name, value in pairs(self.metadata) do
    document[name] = value ~= "absent" and value or nil
  end
  return { body = document }
end

local function register(self, request)
  local client = ah.json.decode(request.body)
  client.client_id = secret "client"
  if client.token_endpoint_auth_method ~= "none" then
    client.client_secret = secret "client-secret"
  end
  self.clients[client.client_id] = client
  return { status = 201, body = client }
end

--- True if a redirect URI is one of the client's. One without a port is good with each.
local function is_of(client, uri)
  for _, own in ipairs(client.redirect_uris) do
    if own == uri or own == uri:gsub(":%d+/", "/", 1) then
      return true
    end
  end
end

local function location(uri, fields)
  local query = {}
  for name, value in pairs(fields) do
    query[#query + 1] = name .. "=" .. value:gsub("[^%w]", function(c)
      return ("%%%02X"):format(c:byte())
    end)
  end
  return { status = 302, headers = { Location = uri .. "?" .. table.concat(query, "&") } }
end

local function authorize(self, request)
  local asked = {}
  for name, list in pairs(request.query) do
    asked[name] = list[1]
  end
  local client = self.clients[asked.client_id]
  if not client or not is_of(client, asked.redirect_uri or "") then
    return refuse "invalid_client"
  end
  local answer = { state = asked.state, iss = self.iss ~= false and (self.iss or self.url) or nil }
  if self.denies then
    answer.error = self.denies
  else
    answer.code = secret "code"
    self.codes[answer.code] = asked
  end
  return location(asked.redirect_uri, answer)
end

--- Returns the client that shows itself in a request; nil if it does not prove that it is that.
local function client_of(self, request, form)
  local basic = (request.headers.authorization or {})[1]
  local id, given = form.client_id, form.client_secret
  if basic then
    id, given = ah.base64.decode(basic:match "^Basic (.*)$" or ""):match "^(.-):(.*)$"
  end
  local client = self.clients[id]
  local method = basic and "client_secret_basic" or given and "client_secret_post" or "none"
  if client and client.token_endpoint_auth_method == method and client.client_secret == given then
    return client
  end
end

local function answer(self, of)
  local access, refresh = self:issue(of)
  return { body = { access_token = access, token_type = "Bearer", expires_in = self.lasts,
    refresh_token = self.renews and refresh or nil, scope = of.scope } }
end

local grants = {}

function grants.authorization_code(self, form, client)
  local asked = self.codes[form.code]
  self.codes[form.code] = nil
  if not asked or asked.client_id ~= client.client_id or asked.redirect_uri ~= form.redirect_uri
    or asked.code_challenge_method ~= "S256" or asked.code_challenge
    ~= ah.base64url.encode(ah.sha256(form.code_verifier or "", "bytes"))
    or asked.resource ~= form.resource then
    return refuse "invalid_grant"
  end
  return answer(self, { scope = self.grants or asked.scope, audience = form.resource,
    client = client.client_id })
end

function grants.refresh_token(self, form, client)
  local refresh = self.refreshes[form.refresh_token]
  if not refresh or refresh.of.client ~= client.client_id
    or refresh.of.audience ~= form.resource then
    return refuse "invalid_grant"
  end
  self:revoke(form.refresh_token)
  return answer(self, refresh.of)
end

local function token(self, request)
  local form = form_of(request.body)
  local client = client_of(self, request, form)
  local grant = grants[form.grant_type]
  if not client then
    return refuse("invalid_client", 401)
  end
  return grant and grant(self, form, client) or refuse "unsupported_grant_type"
end

local function revoke(self, request)
  self:revoke(form_of(request.body).token)
  return { status = 200, body = "" }
end

local function introspect(self, request)
  if (request.headers.authorization or {})[1] ~= self.introspection then
    return refuse("invalid_client", 401)
  end
  return { body = self:find(form_of(request.body).token) or { active = false } }
end

local ENDPOINTS = { ["/.well-known/oauth-authorization-server"] = metadata,
  ["/register"] = register, ["/authorize"] = authorize, ["/token"] = token, ["/revoke"] = revoke,
  ["/introspect"] = introspect }

local function handle(self, request)
  self.seen[#self.seen + 1] = { path = request.path, query = request.query,
    headers = request.headers, form = request.method == "POST" and form_of(request.body) or nil,
    body = request.body }
  local own, endpoint = self.on[request.path], ENDPOINTS[request.path]
  if own then
    return own(request, self)
  end
  return endpoint and endpoint(self, request) or { status = 404, body = "none\n" }
end

--- Returns an authorization server. Its fields, which a case may set:
--   url            its issuer identifier
--   on             functions by path, called with the request in place of its own
--   metadata       members that the metadata have, too; "absent": leaves one out
--   iss            what its answers say that they are from; false: nothing
--   denies         the error that a person's login ends with
--   grants         the scopes of each token; nil: those that were asked for
--   lasts          seconds of a token
--   renews         false: it gives no refresh tokens
--   introspection  the header Authorization that introspection needs
--   clients, tokens, refreshes   what it knows, by id and token
--   seen           its requests: { path, query, form, headers, body } each
function mcp_issuer.new(fields)
  local self = setmetatable({ on = {}, metadata = {}, clients = {}, tokens = {}, refreshes = {},
    codes = {}, seen = {}, lasts = 3600, renews = true,
    introspection = "Bearer introspector" }, Issuer)
  for name, value in pairs(fields or {}) do
    self[name] = value
  end
  self.server = assert(ah.serve { on_request = function(request)
    return handle(self, request)
  end })
  self.url = self.server.url
  open[#open + 1] = self.server
  return self
end

--- Adds a client that was registered by hand. Returns its id and its secret.
function Issuer:client(method, redirect_uri)
  local id, of_client = secret "given", method ~= "none" and secret "given-secret" or nil
  self.clients[id] = { client_id = id, client_secret = of_client,
    token_endpoint_auth_method = method,
    redirect_uris = { redirect_uri or "http://127.0.0.1/callback" } }
  return id, of_client
end

--- Returns its requests to a path.
function Issuer:asked(path)
  local list = {}
  for _, one in ipairs(self.seen) do
    list[#list + 1] = one.path == path and one or nil
  end
  return list
end

-- -- a server of MCP that wants tokens ------------------------------------------------------------

local Resource = {}
Resource.__index = Resource

local function challenge(self, status, more)
  return { status = status, body = "no\n", headers = { ["WWW-Authenticate"] =
    ('Bearer resource_metadata="%s%s"%s'):format(self.server.url, self.place, more) } }
end

--- True if all scopes that are needed are there.
local function has_scopes(scope, needed)
  for one in needed:gmatch "%S+" do
    if not (" " .. (scope or "") .. " "):find(" " .. one .. " ", 1, true) then
      return false
    end
  end
  return true
end

--- Returns the refusal of a request; nil if it may go on.
local function refusal(self, request)
  local sent = (request.headers.authorization or {})[1]
  self.sent[#self.sent + 1] = sent or false
  local found = self.issuer:find((sent or ""):match "^Bearer (.*)$")
  if not found or found.aud ~= self.metadata.resource then
    return challenge(self, 401, self.scope and (', scope="%s"'):format(self.scope) or "")
  end
  local message = ah.json.decode(request.body ~= "" and request.body or "{}")
  local needed = self.needs[message.method] or self.scope or ""
  if not has_scopes(found.scope, needed) then
    return challenge(self, 403, (', error="insufficient_scope", scope="%s"'):format(needed))
  end
end

local function serve(self, request, response)
  local own = self.at[request.path]
  if own then
    return own(request, response)
  elseif request.path == self.place then
    return { body = self.metadata }
  elseif request.path ~= "/mcp" then
    return { status = 404, body = "none\n" }
  end
  local refused = refusal(self, request)
  if refused then
    return self.refuse and self.refuse(refused) or refused
  end
  return far.handle(self.on, self.requests, request, response)
end

--- Returns a server of MCP whose tokens come from the issuer. on: as of support/mcp_http. Its
-- fields, which a case may set:
--   url        its address
--   at         functions by path, called with the request in place of its own
--   place      the path of its metadata, which its challenge names
--   metadata   the metadata
--   scope      what each request needs; nil: nothing
--   needs      scopes by method, in place of that
--   refuse     a function that changes a refusal
--   sent       the headers Authorization that it got, or false, in order
--   requests   as of support/mcp_http
function mcp_issuer.resource(issuer, on, fields)
  local self = setmetatable({ issuer = issuer, on = on or {}, at = {}, needs = {}, sent = {},
    requests = {}, place = "/.well-known/oauth-protected-resource/mcp" }, Resource)
  self.server = assert(ah.serve { on_request = function(request, response)
    return serve(self, request, response)
  end })
  open[#open + 1] = self.server
  self.url = self.server.url .. "/mcp"
  self.metadata = { resource = self.url, authorization_servers = ah.array { issuer.url } }
  for name, value in pairs(fields or {}) do
    self[name] = value
  end
  return self
end

--- Follows the address of a login, as a browser does. Returns the last response.
function mcp_issuer.browse(url)
  for _ = 1, 5 do
    local response = assert(ah.http { url = url })
    url = response.headers.location
    if not url then
      return response
    end
  end
end

--- Ends the servers of a case.
function mcp_issuer.clear()
  for i = #open, 1, -1 do
    open[i]:close()
  end
  open = {}
end

return mcp_issuer
