--- agenthost tools: what a model would see of a script (inspect.lua).
local _, use = ...

return {
  name = "tools",
  doc = "show the tools that a model would see, and run none",
  usage = "script.lua [args...]",
  help = [[
The script's top level runs, up to its first ah.run or agent:run, and `setup` of
its agents; no model is asked. For each agent and run that was met: the model,
the tools with their parameters in short form. --json has the exact
specifications. What the script prints until then goes to stderr.
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
