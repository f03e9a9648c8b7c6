--- agenthost mcp serve: runs a script in this state and serves the agent or the registry that it
-- returns. The protocol is in lua/agenthost/protocols/mcp; this file has the script and the
-- streams.
local ah, use = ...
local foreign, pairs_of, stored = use "foreign", use "pairs", use "stored"

local fault = pairs_of.fault

local MOST_LINE = 16 << 20 -- bytes of a message
local TOKEN = "AGENTHOST_MCP_TOKEN"
local CLIENT_ID, CLIENT_SECRET = "AGENTHOST_MCP_CLIENT_ID", "AGENTHOST_MCP_CLIENT_SECRET"

-- -- the script -----------------------------------------------------------------------------------

-- Makes ah.agent do without the model's key, as no model is asked.
local function free_of_keys()
  local real = ah.agent
  ah.agent = ah._fenced(foreign.door(function(fields)
    local agent, err = real(fields)
    if agent or err.code ~= "provider" then
      return agent, err
    end
    local own = {}
    for key, value in pairs(fields) do
      own[key] = value
    end
    own.model, own.base_url, own.api_key, own.fallback = "demo/echo", nil, nil, nil
    return real(own)
  end))
end

local function value_of(words)
  local path = words[1]
  local chunk, why = loadfile(path, "t")
  if not chunk then
    fault("%s", why)
  end
  rawset(_G, "arg", { [0] = path, table.unpack(words, 2) })
  free_of_keys()
  return foreign.called(chunk)(table.unpack(words, 2))
end

-- -- serving --------------------------------------------------------------------------------------

-- Returns a function that makes the server.
local function maker(value, words, flags)
  local server = ah._module "agenthost.protocols.mcp.server"
  local name = words[1]:match "([^/]*)$":gsub("%.lua$", "")
  return function(start)
    return server.new(value, { name = name, version = ah.version, start = start,
      private = flags.http, fixed = flags.fixed })
  end
end

local function over_stdio(value, words, out, flags)
  local serve = ah._module "agenthost.protocols.mcp.server.stdio"
  return foreign.waits(serve)(maker(value, words, flags), ah._input(MOST_LINE),
    foreign.door(function(line)
      out:write(line):flush()
    end))
end

-- Returns the token that clients must send. One that was made here is printed.
local function token_of()
  local token = ah._variables()[TOKEN] or ""
  if token ~= "" then
    return token
  end
  token = ah.base64url.encode(ah.random_bytes(32))
  io.stderr:write(("agenthost: clients need the header Authorization: Bearer %s\n"):format(token))
  return token
end

-- Returns the address to listen on.
local function address_of(flags)
  local host = flags.listen or "127.0.0.1"
  return (host:find ":" and "[%s]:%d" or "%s:%d"):format(host, flags.port or 0)
end

-- Returns the credentials of this server at the issuer.
local function credentials()
  local variables = ah._variables()
  local id, secret = variables[CLIENT_ID] or "", variables[CLIENT_SECRET] or ""
  if id == "" or secret == "" then
    fault("--issuer needs the variables %s and %s, by which the issuer knows this server",
      CLIENT_ID, CLIENT_SECRET)
  end
  return id, secret
end

local function check_urls(flags)
  local address = ah._module "agenthost.protocols.mcp.oauth.address"
  for _, name in ipairs { "issuer", "resource" } do
    if flags[name] and not address.safe(flags[name]) then
      fault("--%s must be a URL with https, or with http of this machine, and without a query: "
        .. "found '%s'", name, pairs_of.shown(flags[name]))
    end
  end
  if flags.scope and flags.scope:find '[^\x21\x23-\x5b\x5d-\x7e ]' then
    fault("--scope must be words, found '%s'", pairs_of.shown(flags.scope))
  end
end

-- Returns how access tokens of an authorization server are checked; nil if there is none.
local function oauth_of(flags)
  check_urls(flags)
  if flags.issuer then
    local id, secret = credentials()
    return { issuer = flags.issuer, resource = flags.resource, scope = flags.scope, id = id,
      secret = secret }
  end
end

local function check_flags(flags)
  for _, name in ipairs { "issuer", "resource", "scope" } do
    local needed = name == "issuer" and "http" or "issuer"
    if flags[name] and not flags[needed] then
      fault("--%s needs --%s", name, needed)
    end
  end
end

-- Returns the name of the host that clients know.
local function hosts_of(flags)
  local host = flags.resource and flags.resource:match "^https?://([^/]+)"
  return host and { (host:gsub(":%d+$", "")) } or nil
end

local function over_http(value, words, out, flags)
  local serve = ah._module "agenthost.protocols.mcp.server.http"
  local oauth = oauth_of(flags)
  return foreign.waits(serve)(maker(value, words, flags), {
    listen = address_of(flags), oauth = oauth, token = not oauth and token_of() or nil,
    hosts = hosts_of(flags),
    ready = foreign.door(function(url)
      out:write(url, "\n"):flush()
    end) })
end

local function run(flags, words, out)
  check_flags(flags)
  foreign.keep_globals()
  local value = value_of(words)
  local ok, why
  if flags.http then
    ok, why = over_http(value, words, out, flags)
  else
    ok, why = over_stdio(value, words, out, flags)
  end
  if not ok then
    fault("%s: %s", pairs_of.shown(words[1]), why)
  end
end

return {
  name = "mcp serve",
  doc = "serve a script's tools to other programs",
  usage = "script.lua [args...]",
  help = [[
Serves the tools of the agent or the registry that the script returns, for any
client of the Model Context Protocol, such as claude, codex or an editor. The
client starts the command and talks with it over standard input and output;
what the script prints goes to standard error. No model is asked.
A script that returns { agent = ..., prompts = ..., resources = ... } offers
prompts and resources, too.
With --http it listens instead, and prints its address as one line. Clients
need the token of the variable AGENTHOST_MCP_TOKEN; without one it makes a
token, and prints it on standard error. With --issuer clients need an access
token of that authorization server, which is asked about each token with the
credentials in AGENTHOST_MCP_CLIENT_ID and AGENTHOST_MCP_CLIENT_SECRET.
With --fixed the list of tools never changes, for clients that read it once:
methods of entities are tools that take the id.
]],
  operand = { name = "script", least = 1, complete = "lua" },
  flags = {
    { name = "http", doc = "listen on this machine, in place of standard input" },
    { name = "port", value = "N", kind = "integer", most = 65535,
      doc = "with --http: listen on this port (default 0: a free one)" },
    { name = "listen", value = "ADDR",
      doc = "with --http: listen on this address (others may reach it)" },
    { name = "fixed", doc = "one list of tools for all clients, which never changes" },
    { name = "issuer", value = "URL",
      doc = "with --http: clients need tokens of this OAuth server" },
    { name = "resource", value = "URL",
      doc = "with --issuer: the address that clients know (proxies)" },
    { name = "scope", value = "WORDS",
      doc = "with --issuer: the scopes that a token needs" },
    "env-file" },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
