-- The tools of the conversations of many.c.
local ah = require "agenthost"

return {
  ah.tool { name = "add", description = "Adds two integers.",
    params = { a = "integer", b = "integer" },
    handler = function(args) return args.a + args.b end },
  ah.tool { name = "note", description = "Keeps a note.", params = { text = "string" },
    handler = function() end },
}
