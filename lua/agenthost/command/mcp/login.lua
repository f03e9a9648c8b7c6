--- agenthost mcp login: lets a person log in at the authorization server of a server of MCP, and
-- keeps the tokens for the runs that use the server. The steps are in
-- lua/agenthost/protocols/mcp/client/authorization.lua.
local ah, use = ...
local pairs_of, servers, stored = use "pairs", use "mcp.servers", use "stored"

local fault, shown = pairs_of.fault, pairs_of.shown

local SECRET = "AGENTHOST_MCP_CLIENT_SECRET"
local MAC = "/System/Library/CoreServices" -- a folder that only macOS has

-- -- the browser ----------------------------------------------------------------------------------

-- Returns the program that opens an address; nil without a display.
local function opener()
  local function has(name)
    return (os.getenv(name) or "") ~= ""
  end
  if has "DISPLAY" or has "WAYLAND_DISPLAY" then
    return "xdg-open"
  elseif ah._real_path(MAC) then
    return "open"
  end
end

-- Opens the address, in a process that outlives this one and does not get the secret.
local function browse(url)
  local program = opener()
  if program then
    os.execute(("unset %s; %s '%s' </dev/null >/dev/null 2>&1 &"):format(SECRET, program,
      (url:gsub("'", "'\\''"))))
  end
end

-- -- the login ------------------------------------------------------------------------------------

-- Returns the path of the file of credentials, in a folder that is there.
local function place()
  local path = ah._mcp_logins() or fault "there is no place to keep the login: set HOME"
  pairs_of.make_folders(path)
  return path
end

local function auth_of(flags, out, path)
  local secret = flags.client_id and ah._variables()[SECRET]
  return { file = path, timeout = flags.timeout, scope = flags.scope, client_id = flags.client_id,
    client_secret = secret and secret ~= "" and secret or nil, redirect_uri = flags.redirect_uri,
    client_metadata_url = flags.client_metadata_url,
    open = function(url)
      out:write("Open this address to log in:\n", url, "\n"):flush()
      if not flags.no_open then
        browse(url)
      end
    end }
end

-- Returns the server; a wrong address or option is a fault.
local function server_of(url, auth)
  local ok, server = pcall(ah.mcp, { url = url, auth = auth })
  if not ok then
    fault("%s", type(server) == "table" and server.message or server)
  end
  return server
end

-- Makes the server refuse a request, or else asks for its authorization server. Returns true after
-- a login, false if there is nothing to log in to; or nil and an error.
local function log_in(server)
  local authorization = server.authorization
  authorization:begin_anew()
  local tools, err = server:tools()
  if authorization:held() then
    return true
  elseif not tools then
    return nil, err
  end
  return authorization:log_in()
end

local function run(flags, words, out)
  if words[2] then
    fault("agenthost mcp login takes one SERVER, found '%s' besides", shown(words[2]))
  end
  local path = place()
  local server <close> = server_of(servers.address(words[1]), auth_of(flags, out, path))
  local done, err = log_in(server)
  if done == nil then
    return 3, err.message
  elseif done then
    out:write(("Logged in to %s. The tokens are in '%s'.\n"):format(server.authorization.url,
      shown(path)))
  else
    out:write(("%s needs no login.\n"):format(server.authorization.url))
  end
end

return {
  name = "mcp login",
  doc = "log in to a server that wants it",
  usage = "SERVER",
  help = [[
Logs in to SERVER, an address or a name, in the browser; the address to open is
printed, too. Runs take the tokens, which only the user can read, from
$XDG_STATE_HOME/agenthost/mcp_credentials.json (default: ~/.local/state). A
client that was registered by hand has its secret in the variable
AGENTHOST_MCP_CLIENT_SECRET.
]],
  operand = { name = "server", least = 1 },
  flags = {
    { name = "client-id", value = "ID", doc = "client that was registered by hand" },
    { name = "client-metadata-url", value = "URL",
      doc = "metadata document of a client (https://)" },
    { name = "redirect-uri", value = "URL",
      doc = "where the answer comes (default http://127.0.0.1/callback)" },
    { name = "scope", value = "WORDS", doc = "scopes to ask for, separated by spaces" },
    { name = "no-open", doc = "only print the address" },
    { name = "timeout", value = "N", kind = "integer", least = 1, most = 86400,
      doc = "seconds for the login (default 300)" } },
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
