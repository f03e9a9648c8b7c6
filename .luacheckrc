std = "lua54"
max_line_length = 100
files["spec"] = { std = "+busted" }
files["lua/agenthost/types"] = { unused = false }
files["lua/agenthost/command/templates"] = { std = "+busted" }
