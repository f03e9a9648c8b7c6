-- An agent to talk with. It keeps a list of things to buy, one for each conversation.
local ah = require "agenthost"

local function list_tools()
  local list = ah.array {}
  local add = ah.tool {
    name = "add",
    description = "Puts a thing on the list of things to buy. Returns the list.",
    params = { thing = "string 1..100" },
    handler = function(args)
      list[#list + 1] = args.thing
      return list
    end,
  }
  return { add }
end

return ah.agent {
  model = os.getenv "AGENTHOST_MODEL" or "demo/tools", -- demo/tools needs no key
  system = "You keep a list of things to buy. Be brief.",
  setup = function(conversation)
    conversation:add_tools(list_tools())
  end,
}
