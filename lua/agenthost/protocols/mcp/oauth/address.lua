--- URLs of authorization. They come from outside and decide where tokens go, so they are read
-- strictly: what is not plainly a URL of HTTP is none.
local address = {}

local MOST = 2048 -- bytes of a URL
local ODD = "[^%w%-%._~:/%?%[%]@!%$&'%(%)%*%+,;=%%]" -- what no URL has, and "#"
local PORTS = { http = 80, https = 443 }

local function is_host(host)
  return host:find "^[%w][%w%.%-_]*$" ~= nil or host:find "^%[[%x:%.]+%]$" ~= nil
end

--- True for the names and addresses of this machine (RFC 8252, section 7.3).
local function is_loopback(host)
  return host == "localhost" or host == "[::1]" or host:find "^127%.%d+%.%d+%.%d+$" ~= nil
end

--- Returns the parts of a URL: `scheme`, `host`, `port` (an integer, or nil if it has none),
-- `path`, `query` (or nil), `origin` (without the port that the scheme has anyway), `loopback`, and
-- the URL as `text`. Returns nil for another text, for a URL with a user or a fragment, too.
function address.read(text)
  if type(text) ~= "string" or #text > MOST or text:find(ODD) then
    return nil
  end
  local scheme, authority, path, query = text:match "^(%a+)://([^/?]+)([^?]*)%??(.*)$"
  scheme = scheme and scheme:lower()
  authority = (authority or ""):lower()
  local host, digits = authority:match "^(.*):(%d%d?%d?%d?%d?)$"
  host = host or authority
  local port = math.tointeger(tonumber(digits))
  if not PORTS[scheme] or not is_host(host) or port and (port < 1 or port > 65535) then
    return nil
  end
  local shown = port and port ~= PORTS[scheme] and (":%d"):format(port) or ""
  return { text = text, scheme = scheme, host = host, port = port, path = path,
    query = text:find("?", 1, true) and query or nil, loopback = is_loopback(host),
    origin = ("%s://%s%s"):format(scheme, host, shown) }
end

--- True if secrets may be sent there, as no third party can read them.
function address.is_private(at)
  return at.scheme == "https" or at.loopback
end

--- Returns the parts of a URL to which secrets may be sent, and which has no query; nil for others.
function address.safe(text)
  local at = address.read(text)
  return at and not at.query and address.is_private(at) and at or nil
end

--- Returns the parts of a URL that a server has named; nil for one that must not be used: plain
-- HTTP is for this machine alone, and only a server of this machine may name it.
---@param from table the parts of the server's own URL
function address.named(text, from)
  local at = address.read(text)
  if at and (at.scheme == "https" or at.loopback and from.loopback) then
    return at
  end
end

--- Returns the identifier of a resource (specification, "Canonical Server URI").
function address.identifier(at)
  return at.origin .. (at.path == "/" and "" or at.path)
end

--- True if the resource with this identifier contains the server: the same origin, and its path or
-- one above it.
function address.covers(resource, server)
  local at = address.read(resource)
  if not at or at.origin ~= server.origin or at.query then
    return false
  end
  local above = at.path:gsub("/$", "") .. "/"
  return (server.path .. "/"):sub(1, #above) == above
end

--- Returns the address of a well-known document, whose name is put before the path.
function address.well_known(at, name)
  return ("%s/.well-known/%s%s"):format(at.origin, name, (at.path:gsub("/$", "")))
end

local function escape(text)
  return (text:gsub("[^%w%-%._~]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end
address.escape = escape

--- Returns a form: `fields` is a list of names and values, of which those without a value are left
-- out.
function address.form(fields)
  local list = {}
  for _, field in ipairs(fields) do
    if field[2] then
      list[#list + 1] = field[1] .. "=" .. escape(field[2])
    end
  end
  return table.concat(list, "&")
end

return address
