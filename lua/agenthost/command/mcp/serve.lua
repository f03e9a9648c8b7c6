--- agenthost mcp serve: runs a script in this state and serves the agent or the registry that it
-- returns. The protocol is in lua/agenthost/protocols/mcp; this file has the script and the streams.
local ah, use = ...
local foreign, pairs_of = use "foreign", use "pairs"

local fault = pairs_of.fault

local MOST_LINE = 16 << 20 -- bytes of a message

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

local function options_of(words, start)
  return { name = words[1]:match "([^/]*)$":gsub("%.lua$", ""), version = ah.version,
    start = start }
end

-- -- serving --------------------------------------------------------------------------------------

local function over_stdio(value, words, out)
  local server = ah._module "agenthost.protocols.mcp.server"
  local function send(line)
    out:write(line):flush()
  end
  return foreign.waits(ah._module "agenthost.protocols.mcp.stdio")(function(start)
    return server.new(value, options_of(words, start))
  end, ah._input(MOST_LINE), foreign.door(send))
end

return function(flags, words, out)
  foreign.keep_globals()
  local value = value_of(words)
  local ok, why = over_stdio(value, words, out)
  if not ok then
    fault("%s: %s", pairs_of.shown(words[1]), why)
  end
end
