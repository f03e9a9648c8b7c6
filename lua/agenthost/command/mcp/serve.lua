--- agenthost mcp serve: runs a script in this state and serves the agent or the registry that it
-- returns. The protocol is in lua/agenthost/protocols/mcp; this file has the script and the
-- streams.
local ah, use = ...
local foreign, pairs_of = use "foreign", use "pairs"

local fault = pairs_of.fault

local MOST_LINE = 16 << 20 -- bytes of a message
local TOKEN = "AGENTHOST_MCP_TOKEN"

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

local function over_http(value, words, out, flags)
  local serve = ah._module "agenthost.protocols.mcp.server.http"
  return foreign.waits(serve)(maker(value, words, flags), {
    listen = address_of(flags), token = token_of(),
    ready = foreign.door(function(url)
      out:write(url, "\n"):flush()
    end) })
end

return function(flags, words, out)
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
