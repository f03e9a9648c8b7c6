-- An ask that another terminal responds to.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent {
  tools = { ah.tool { name = "pay", description = "Pays.", params = { euros = "integer" },
    handler = function(args) return ("paid %d euros"):format(args.euros) end } },
  policies = { function() return "ask", "it costs money" end },
  model = (dofile "gated.lua") { { calls = { { name = "pay", arguments = { euros = 7 } } } },
    "It is paid.", { calls = { { name = "pay", arguments = { euros = 9 } } } }, "It is not." } }
]]

describe("an ask", function()
  it("is closed from another terminal", function()
    local t <close> = tmux.start("elsewhere", { columns = 70, rows = 24 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Pay 7":wait "Allow it?":type "half":wait "half"
    local other <close> = t:beside { columns = 70, rows = 24 }
    other:enter "agenthost asks":wait "pay":screen "asks in the other terminal"
    local id = other:text():match "%f[%w]%x%x%x%x%x%x+"
    other:enter(("clear; agenthost respond %s 1 yes"):format(id)):wait "has the"
    other:screen "its response"
    t:wait "It is paid.":screen "the chat goes on"
    t:keys "C-u":enter "Pay 9":wait "Allow it?"
    other:enter(([[agenthost respond %s 2 '{"approved":false,"why":"no money"}']]):format(id))
    t:wait "It is not.":screen "refused"
  end)
end)
