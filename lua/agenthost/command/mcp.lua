--- agenthost mcp: the Model Context Protocol. Each action is a program of the folder mcp.
local _, use = ...
local commands = use "commands"

local ACTIONS = { "list", "tools", "call", "pin", "login", "logout", "serve" }

return {
  name = "mcp",
  doc = "use servers of MCP, or serve a script's tools to others",
  usage = "ACTION [words...]",
  help = [[
The Model Context Protocol, in both directions. SERVER is the name of a server
in the project's .mcp.json or in $XDG_CONFIG_HOME/agenthost/mcp.json (default:
~/.config), or an address. A command stands at the end, behind --. No action
asks a model or needs a key.

    agenthost mcp list
    agenthost mcp tools https://tea.example/mcp
    agenthost mcp call add a=1 b=2 -- npx -y some-server
]],
  operand = { name = "action", least = 1, words = table.concat(ACTIONS, " "),
    complete = function() return ACTIONS end, asks = "servers" },
  actions = ACTIONS,
  flags = commands.flags_of_actions("mcp", ACTIONS),
}
