--- agenthost mcp logout: forgets the login to a server of MCP, and revokes its tokens.
local ah, use = ...
local pairs_of, servers, stored = use "pairs", use "mcp.servers", use "stored"

local authorization = ah._module "agenthost.protocols.mcp.client.authorization"

local fault, shown = pairs_of.fault, pairs_of.shown

local function run(_, words, out)
  if words[2] then
    fault("agenthost mcp logout takes one SERVER, found '%s' besides", shown(words[2]))
  end
  local url = authorization.identifier(servers.address(words[1]))
    or fault("'%s' is no address of a server", shown(words[1]))
  local path = ah._mcp_logins()
  local n, err = 0, nil
  if path then
    n, err = authorization.log_out(path, url)
  end
  if not n then
    return 1, err
  elseif n == 0 then
    return 1, ("there is no login to %s"):format(url)
  end
  out:write(("Logged out of %s.\n"):format(url))
end

return {
  name = "mcp logout",
  doc = "forget the login to a server",
  usage = "SERVER",
  help = [[
Removes the tokens and the client of SERVER, an address or a name, from the
file of mcp login, and asks the authorization server to revoke them.
]],
  operand = { name = "server", least = 1 },
  flags = {},
  apart = true,
  mixed = true,
  run = stored.carefully(run),
}
