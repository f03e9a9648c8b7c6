-- One conversation of many.c: called as a task, with the address of its own model and how
-- many calls that model will make. A tool of its own, as a program would make them.
local ah = require "agenthost"

local note = ah.tool { name = "note", description = "Keeps a note.",
  params = { text = "string" },
  handler = function() end }

return function(url, turns)
  local calls = 0
  local add = ah.tool { name = "add", description = "Adds two integers.",
    params = { a = "integer", b = "integer" },
    handler = function(args)
      calls = calls + 1
      return args.a + args.b
    end }
  assert(ah.run { model = "openai/bench", base_url = url, api_key = "bench",
    tools = { add, note }, max_iterations = turns + 2, retries = 0, "go" })
  assert(calls == turns, "the server's --turns is another than TURNS")
end
