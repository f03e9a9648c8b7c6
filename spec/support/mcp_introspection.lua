--- A substitute for an authorization server that says what a token is good for, on ah.serve: its
-- metadata and its introspection. `tokens` has what it says of each token.
--
--   local issuer <close> = introspection.start()
--   issuer.tokens["t-1"] = { active = true, aud = ..., sub = "ann" }
--   issuer.url, issuer.asked        its address; the tokens that it was asked for, in order
--   issuer.metadata, issuer.status  changes of its metadata; the status of all its responses
local ah = require "agenthost"

local M = {}

M.ID, M.SECRET = "server one", "s3cr%t:"

-- The credentials as RFC 6749 has them: escaped, then in Base64.
local BASIC = "Basic " .. ah.base64.encode "server%20one:s3cr%25t%3A"

local Issuer = {}
Issuer.__index = Issuer

local function unescaped(text)
  return (text:gsub("+", " "):gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

local function introspect(self, request)
  local form = {}
  for name, value in request.body:gmatch "([^=&]+)=([^&]*)" do
    form[name] = unescaped(value)
  end
  local known = request.headers.authorization and request.headers.authorization[1] == BASIC
    or form.client_id == M.ID and form.client_secret == M.SECRET
  if not known then
    return { status = 401 }
  end
  self.asked[#self.asked + 1] = form.token
  if self.wait then
    ah.sleep(self.wait)
  end
  return { body = self.tokens[form.token] or { active = false } }
end

function Issuer:answer(request)
  if self.status then
    return { status = self.status, body = "no" }
  elseif request.path == (self.place or "/.well-known/oauth-authorization-server") then
    local metadata = { issuer = self.url, introspection_endpoint = self.url .. "/introspect" }
    for name, value in pairs(self.metadata) do
      metadata[name] = value
    end
    return { body = metadata }
  elseif request.path == "/introspect" and request.method == "POST" then
    return introspect(self, request)
  end
  return { status = 404 }
end

function Issuer:close()
  self.server:close()
end
Issuer.__close = Issuer.close

function M.start()
  local self = setmetatable({ tokens = {}, asked = {}, metadata = {} }, Issuer)
  self.server = assert(ah.serve { on_request = function(request)
    return self:answer(request)
  end })
  self.url = self.server.url
  return self
end

return M
