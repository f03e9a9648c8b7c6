-- Ctrl-C in an answer: its text stays.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
local gated = dofile "gated.lua"
return ah.agent { model = gated(function(request)
  return request.entries[#request.entries].content[1].text == "Begin"
    and { "The first lines\nof an **answer", "** that never comes." } or "The second answer."
end) }
]]

describe("Ctrl-C", function()
  it("ends the answer, whose text stays, then drops what was typed, then ends the chat", function()
    local t <close> = tmux.start("interrupt", { columns = 60, rows = 16 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Begin":wait "answer":wait "Ctrl-C":screen "an answer is at work"
    t:type "half a li":wait "half":keys "C-c":wait "(ended)":screen "it is ended, the line is kept"
    t:keys "C-c":wait_gone "half":screen "the line is dropped"
    t:enter "Once more":wait "second answer":screen "the chat goes on"
    t:keys "C-c":wait "turns":screen "the chat is over"
  end)
end)
