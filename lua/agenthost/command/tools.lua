--- agenthost tools: prints what a model would see of a script (inspect.lua).
local _, use = ...

return {
  name = "tools",
  doc = "show the tools that a model would see, and call none",
  usage = "script.lua [args...]",
  help = [[
Runs the top level of the script up to its first ah.run or agent:run, and
`setup` of its agents; asks no model. Prints the model of each agent and run
found, and its tools with their parameters in short form. --json has the exact
specifications. The script's own output goes to stderr.
]],
  operand = { name = "script", least = 1, file = true, complete = "lua" },
  flags = { "model", "env-file", "json" },
  apart = true,
  run = function(flags, words)
    return use "inspect"(flags.model or "", table.unpack(words))
  end,
  tell = function(flags, found, out)
    return use "inspected"("tools", flags, found, out)
  end,
}
