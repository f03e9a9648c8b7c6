--- agenthost mcp: the Model Context Protocol. Each action is a program of the folder mcp.
local _, use = ...
local pairs_of, stored = use "pairs", use "stored"

local ACTIONS = { "serve" }

local function run(flags, words, out, line)
  for _, action in ipairs(ACTIONS) do
    if action == words[1] then
      return use("mcp." .. action)(flags, { table.unpack(words, 2) }, out, line)
    end
  end
  pairs_of.fault("agenthost mcp needs %s, found '%s'", table.concat(ACTIONS, ", "),
    pairs_of.shown(words[1]))
end

return {
  name = "mcp",
  doc = "serve a script's tools to other programs (MCP)",
  usage = "serve script.lua [args...]",
  help = [[
serve: the tools of the agent or the registry that the script returns, for any
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
  operand = { name = "word", least = 2, complete = function() return ACTIONS end },
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
