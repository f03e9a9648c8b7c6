--- agenthost check: the faults of a script that can be seen without asking a model (inspect.lua).
local _, use = ...

return {
  name = "check",
  doc = "find faults in a script without asking a model",
  usage = "script.lua [args...]",
  help = [[
The script's top level runs, up to its first ah.run or agent:run, and `setup` of
its agents, as for agenthost tools: what they do is done.
All faults that can be seen so are told with their line, not only the first:
syntax, fields, names, schemas and their examples, tools declared twice, the
limits of the model's provider. What stands behind that run, and what handlers
do, is not looked at. The exit code is 1 when there are faults.
]],
  operand = { name = "script", least = 1, file = true, complete = "lua" },
  flags = { "model", "env-file", "json" },
  apart = true,
  run = function(flags, words)
    return use "inspect"(flags.model or "", table.unpack(words))
  end,
  tell = function(flags, found, out)
    return use "inspected"("check", flags, found, out)
  end,
}
