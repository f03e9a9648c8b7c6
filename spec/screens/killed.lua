-- A chat that is killed in an answer, and goes on with -c.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
local note = ah.tool { name = "note", description = "Keeps a note.", params = { text = "string" },
  handler = function() return "kept" end }
return ah.agent { tools = { note }, model = (dofile "gated.lua") {
  "Good morning.", { calls = { { name = "note", arguments = { text = "tea" } } } },
  { "It is kept, and ", "here is the rest." }, "You are welcome." } }
]]

describe("kill -9", function()
  it("in an answer leaves a conversation that goes on with -c", function()
    local t <close> = tmux.start("killed", { columns = 70, rows = 24 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Hello":wait "morning"
    t:enter "Keep a note of tea.":wait "kept, and":wait "Ctrl-C"
    t:type "half a li":wait "half":screen "an answer is at work"
    assert(os.execute("kill -9 " .. t:pid()))
    t:wait "Killed":type "stty sane; clear":keys "C-j":wait_gone "Killed"
    t:enter "agenthost chat -c agent.lua":wait "y/n":screen "it can go on"
    t:enter "y":wait "kept, and":go():wait "rest":screen "the answer"
    t:enter "Thank you":wait "welcome":screen "and on"
  end)
end)
