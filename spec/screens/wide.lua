-- Wide and combining characters and emoji, typed and in an answer.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = ah.scripted {
  "世界 " .. ("漢字"):rep(14) .. "。\n\n| a | 世 |\n|---|---|\n| e\u{301} | 👍🏽 |\n\n"
    .. "Hindi हिन्दी, Thai ไทย.",
  function(request) return request.entries[#request.entries].content[1].text end } }
]]

describe("characters", function()
  it("that are wide, combined or joined are shown and edited as one", function()
    local t <close> = tmux.start("wide", { columns = 40, rows = 24 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "世界?":wait "Thai":screen "an answer"
    t:type(("漢字"):rep(12) .. "e\u{301}👍🏽|"):wait "|":screen "a long line"
    t:keys "Left Left BSpace":type "x":screen "the combined one is gone"
    t:keys "Left Left BSpace":screen "a wide one is gone"
    t:keys "C-e BSpace BSpace Enter":screen "sent"
  end)
end)
