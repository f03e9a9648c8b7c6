--- agenthost check: finds faults in a script without asking a model (inspect.lua).
local _, use = ...

return {
  name = "check",
  doc = "find faults in a script without asking a model",
  usage = "script.lua [args...]",
  help = [[
Runs the top level of the script up to its first ah.run or agent:run, and
`setup` of its agents, with all effects, as agenthost tools does.
Prints every fault found in this way with its line: syntax, fields, names,
schemas and their examples, tools declared twice, the limits of the model's
provider. Code after that run and handlers are not checked. The exit code is 1
if there are faults.
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
