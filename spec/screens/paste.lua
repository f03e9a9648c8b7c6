-- A paste of 200 lines is one input.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = ah.scripted(function(request)
  local text = request.entries[#request.entries].content[1].text
  return ("%d lines, the last one: %s"):format(select(2, text:gsub("\n", "")) + 1,
    text:match "[^\n]*$")
end) }
]]

describe("a paste of 200 lines", function()
  it("is one input, which can be changed before it is sent", function()
    local t <close> = tmux.start("paste", { columns = 60, rows = 24 })
    local lines = {}
    for i = 1, 200 do
      lines[i] = ("line %d of the paste"):format(i)
    end
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":type "Count: ":paste(table.concat(lines, "\n")):wait "line 200"
    t:screen "pasted"
    t:keys "Up Up":type "changed ":wait "changed":screen "changed"
    t:keys "Enter":wait "lines, ":screen "sent"
    t:keys "Up":wait "line 200":screen "again, from the history"
  end)
end)
