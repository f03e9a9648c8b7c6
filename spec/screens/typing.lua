-- Typing while an answer comes: a line is edited, a message waits.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = (dofile "gated.lua") {
  { "One ", "two ", "three.\n\n", "Four " , "five." },
  "The answer to the message that has waited." } }
]]

describe("a line", function()
  it("is typed while an answer comes", function()
    local t <close> = tmux.start("typing", { columns = 60, rows = 16 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Count":wait "One":wait "Ctrl-C":type "And then":screen "typed"
    t:go():wait "two":keys "C-a":type "(later) ":screen "edited"
    t:go():wait "three.":screen "a part more"
    t:keys "Enter":wait "It is read":screen "sent, and waits"
    t:enter "/tools":wait "no tools":screen "a command meanwhile"
    t:go():go():wait "waited":screen "both answers"
  end)
end)
