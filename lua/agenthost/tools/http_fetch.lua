--- http_fetch: fetches a text from the web. The script lists the hosts. Addresses are checked when
-- the connection is made, again for each redirect, so that no name leads to a private network.
-- Sends no cookies and no credentials, and uses no proxy. A request is outside of the transaction
-- of a call: the effects of a POST stay.
local ah = ...
local module = ah._module
local files = module "agenthost.tools.files"

local read = ah._reader {
  what = "ah.builtin: http_fetch", type = "ah.HttpFetchOptions", rows = {
    { name = "allow", kinds = "list string", needed = true, words = "public",
      is = "list of hosts, or `\"public\"`", type = "string[]|\"public\"",
      doc = "hosts that may be fetched, see below; `\"public\"`: any, at the ports 80 and 443" },
    { name = "private", kinds = "list", is = "list of networks", type = "string[]",
      doc = "networks that are allowed although they are not public: `\"10.1.0.0/16\"`, "
        .. "`\"127.0.0.1\"`" },
    { name = "post", kinds = "boolean", default = false,
      doc = "true: the model may send POST requests" },
    { name = "timeout", kinds = "number", least = 0.001, default = 30, unit = "seconds",
      doc = "for the whole fetch, including redirects" },
    { name = "max_bytes", kinds = "integer", least = 1, default = 2 << 20, unit = "bytes",
      doc = "size of a response; the transfer of a longer one is stopped" },
    { name = "shown", kinds = "integer", least = 1, default = 32 << 10, unit = "bytes",
      doc = "text in a result" },
    { name = "redirects", kinds = "integer", least = 1, default = 5,
      doc = "redirects that are followed, each checked like the first request" },
  },
}
local WEB_PORTS = { [80] = true, [443] = true }
local REDIRECT = { [301] = true, [302] = true, [303] = true, [307] = true, [308] = true }
local STATUS_SHOWN = 2000 -- bytes of the text of an error

-- -- allowed hosts ------------------------------------------------------------------------------

-- Reads "docs.example.com", "*.example.com", "localhost:8080" or "*" (any host): a host and, unless
-- it is a usual one, a port.
local function pattern_of(text)
  local host, port = text:lower():match "^(%[[%x:.]+%]):?([%d*]*)$"
  if not host then
    host, port = text:lower():match "^([^:/%s]+):?([%d*]*)$"
  end
  if not host or (host:find("*", 2, true)) or host:find "^%*[^.]" then
    ah._raise(("ah.builtin: http_fetch: '%s' in allow is no host such as docs.example.com, "
      .. "*.example.com or localhost:8080"):format(text))
  end
  return { host = host, port = port == "*" and port or math.tointeger(tonumber(port)), text = text }
end

local function read_allow(allow)
  if allow == "public" then
    return { { host = "*", text = "public" } }
  elseif #allow == 0 then
    ah._raise("ah.builtin: http_fetch needs the option allow: a list of hosts, or \"public\"")
  end
  local patterns = {}
  for i, text in ipairs(allow) do
    patterns[i] = pattern_of(tostring(text))
  end
  return patterns
end

local function host_matches(pattern, host)
  if pattern == "*" or pattern == host then
    return true
  end
  return pattern:sub(1, 1) == "*" and #host > #pattern - 1
    and host:sub(1 - #pattern) == pattern:sub(2)
end

local function check_host(settings, url)
  local host, names = url.host:gsub("%.$", ""), {}
  for i, pattern in ipairs(settings.allow) do
    local port_fits = pattern.port == "*" or pattern.port == url.port
      or (not pattern.port and WEB_PORTS[url.port])
    if port_fits and host_matches(pattern.host, host) then
      return true
    end
    names[i] = pattern.text
  end
  return nil, ("%s port %d may not be fetched; allowed: %s"):format(host, url.port,
    table.concat(names, ", "))
end

-- -- the request --------------------------------------------------------------------------------

local function request_once(settings, asked, url, ends)
  local body = asked.method == "POST" and (asked.body or "") or nil
  local headers = { Accept = "text/*, application/json, application/xml;q=0.9, */*;q=0.1" }
  if body then
    headers["Content-Type"] = asked.content_type or "application/json"
  end
  local left = ends - ah._clock()
  if left <= 0 then
    return nil, ("%s: not done within %g s"):format(url.host, settings.timeout)
  end
  local response, err = ah.http { url = url.url, method = asked.method, headers = headers,
    body = body, timeout = left, max_body = settings.max_bytes, addresses = settings.addresses }
  return response, err and err.message
end

-- Applies a redirect: any status but 307 and 308 turns the request into a GET without a body.
local function follow(asked, status)
  if status ~= 307 and status ~= 308 then
    asked.method, asked.body = "GET", nil
  end
end

-- Returns the response to one URL, and the parsed URL; nil and the reason. Each redirect is checked
-- like the first URL.
local function hop(settings, asked, target, before, ends)
  local url, err = ah._url(target, before and before.url)
  if not url then
    return nil, err.message
  end
  local allowed, why = check_host(settings, url)
  if not allowed then
    return nil, why
  end
  local response, what = request_once(settings, asked, url, ends)
  return response, response and url or what
end

-- Returns the last response and its URL; nil and the reason.
local function request(settings, args)
  local asked = { method = args.method or "GET", body = args.body,
    content_type = args.content_type }
  local ends, target, url = ah._clock() + settings.timeout, args.url, nil
  for hops = 0, settings.redirects do
    local response, at = hop(settings, asked, target, url, ends)
    if not response then
      return nil, (hops > 0 and "redirected: " or "") .. at
    end
    url, target = at, REDIRECT[response.status] and response.headers.location
    if not target then
      return response, url
    end
    follow(asked, response.status)
  end
  return nil, ("more than %d redirects, the last one from %s"):format(settings.redirects, url.url)
end

-- -- the text -----------------------------------------------------------------------------------

local TEXT = {
  ["application/json"] = true, ["application/xml"] = true, ["application/javascript"] = true,
  ["application/x-javascript"] = true, ["application/yaml"] = true, ["application/toml"] = true,
  ["application/x-sh"] = true, ["application/sql"] = true, ["application/x-ndjson"] = true,
  ["image/svg+xml"] = true,
}

local function is_text(kind, body)
  if body:find("\0", 1, true) then
    return false
  end
  return kind == "" or kind:find "^text/" ~= nil or TEXT[kind] or kind:find "%+json$" ~= nil
    or kind:find "%+xml$" ~= nil
end

-- The characters of windows-1252, which differ from Latin-1 only where that has control characters.
local LATIN = {}
for byte = 0x80, 0xff do
  LATIN[string.char(byte)] = utf8.char(byte)
end
for i, code in ipairs { 0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030,
  0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013,
  0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178 } do
  LATIN[string.char(0x7f + i)] = utf8.char(code)
end

local IS_LATIN = { ["iso-8859-1"] = true, ["latin1"] = true, ["windows-1252"] = true,
  ["cp1252"] = true }
local IS_UTF8 = { ["utf-8"] = true, ["utf8"] = true, ["us-ascii"] = true, ["ascii"] = true }

local function repair(body)
  local out, at = {}, 1
  while at <= #body do
    local _, bad = utf8.len(body, at)
    out[#out + 1] = body:sub(at, (bad or #body + 1) - 1)
    out[#out + 1] = bad and "\u{fffd}" or nil
    at = (bad or #body) + 1
  end
  return table.concat(out)
end

local function charset_of(header, kind, body)
  local named = header:lower():match "charset%s*=%s*\"?([%w%-_]+)"
  if not named and kind:find("html", 1, true) then
    named = body:sub(1, 1024):lower():match "<meta[^>]-charset%s*=%s*[\"']?([%w%-_]+)"
  end
  return named
end

-- Returns the body as UTF-8; nil and the reason for an unknown charset. A body without a charset
-- that is not UTF-8 is read as windows-1252, as browsers do.
local function to_utf8(body, charset)
  if charset and not IS_UTF8[charset] and not IS_LATIN[charset] then
    return nil, ("its charset is %s, which cannot be read"):format(charset)
  elseif IS_LATIN[charset] or (not charset and not utf8.len(body)) then
    return (body:gsub("[\x80-\xff]", LATIN))
  end
  body = body:gsub("^\u{feff}", "")
  return utf8.len(body) and body or repair(body)
end

-- Returns at most `most` bytes from `offset` on, only whole characters, and the offset of the end.
local function part_of(text, offset, most)
  local first = offset + 1
  while first <= #text and text:byte(first) & 0xc0 == 0x80 do
    first = first + 1
  end
  local last = math.min(first + most - 1, #text)
  while last < #text and last >= first and text:byte(last + 1) & 0xc0 == 0x80 do
    last = last - 1
  end
  return text:sub(first, last), last
end

local function show(settings, args, head, text)
  local offset = args.offset or 0
  if offset > 0 and offset >= #text then
    return nil, ("offset %d is behind the end: the text has %s"):format(offset,
      files.count(#text, "byte"))
  end
  local part, last = part_of(text, offset, settings.shown)
  local more = last < #text and ("\n[%s of %s; go on with offset = %d]"):format(
    files.number(last), files.count(#text, "byte"), last) or ""
  return head .. "\n\n" .. part .. more
end

local function answer(settings, args, response, url)
  local header = response.headers["content-type"] or ""
  local kind = header:lower():match "^%s*([^;%s]*)"
  local size = files.count(#response.body, "byte")
  if not is_text(kind, response.body) then
    return nil, ("%s is %s of %s; only text can be fetched"):format(url.url,
      kind == "" and "binary" or kind, size)
  end
  local text, why = to_utf8(response.body, charset_of(header, kind, response.body))
  if not text then
    return nil, url.url .. ": " .. why
  elseif response.status >= 300 then
    return nil, ("%s answered with status %d\n\n%s"):format(url.url, response.status,
      (part_of(text, 0, STATUS_SHOWN)))
  end
  local head = ("%s: %s, %s"):format(url.url, kind == "" and "no type" or kind, size)
  if kind:find("html", 1, true) and not args.raw then
    text = module "agenthost.tools.html".text(text)
    head = head .. ", reduced to its text (raw = true gives it as it is)"
  end
  return show(settings, args, head, text)
end

-- -- the tool -----------------------------------------------------------------------------------

local function addresses_of(private)
  local list = { "public" }
  for i, network in ipairs(private or {}) do
    if type(network) ~= "string" or not ah._is_network(network) then
      ah._raise(("ah.builtin: http_fetch: '%s' in private is no network such as 10.0.0.0/8"):format(
        tostring(network)))
    end
    list[i + 1] = network
  end
  return list
end

local function params_of(options)
  local params = {
    url = "string 1..8000: begins with http:// or https://",
    offset = "integer 0..?: bytes of the text to skip, to go on with a long one",
    raw = "boolean?: HTML as it is",
  }
  if options.post then
    params.method = "GET|POST = GET"
    params.body = "string?: what is sent with POST"
    params.content_type = "string 1..200?: of the body; application/json where absent"
  end
  return params
end

return function(options)
  local settings = read(options)
  settings.allow = read_allow(settings.allow)
  settings.addresses = addresses_of(settings.private)
  return ah.tool {
    name = "http_fetch",
    description = "Fetches a text from the web by its URL; HTML is reduced to what a reader sees.",
    params = params_of(settings),
    annotations = { read_only = not settings.post, destructive = settings.post == true,
      idempotent = not settings.post, open_world = true },
    parallel = true,
    handler = function(args)
      local response, url = request(settings, args)
      if not response then
        return nil, url
      end
      return answer(settings, args, response, url)
    end,
  }
end
