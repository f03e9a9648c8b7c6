-- A slow connection between the terminal and the chat: 300 ms, and bytes that come apart.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = (dofile "gated.lua") {
  { "One ", "two.\n\n- a\n", "- b" }, "The second answer.", "The third answer." } }
]]

local function chat(name, part)
  local t = tmux.start(name, { columns = 60, rows = 16 })
  t:link "latency":file("agent.lua", AGENT)
  return t:enter(("latency 300 %d agenthost chat agent.lua"):format(part)):wait "Ctrl-D ends"
end

describe("with 300 ms of latency", function()
  it("a chat is the same", function()
    local t <close> = chat("latency", 0)
    t:enter "Begin":type "typed ahead":keys "Left Left":type "-":wait "One":wait "Ctrl-C"
    t:screen "typed while it answers"
    t:go():go():wait "b":keys "Enter":wait "second":screen "sent"
    t:paste "one\ntwo\nthree":keys "Up C-a":type "x":wait "xtwo":screen "a paste"
    t:keys "C-c":type "/he":keys "Tab":resize(40, 16):wait "/help":screen "40 columns"
    t:keys "C-c C-d":wait "turns":screen "over"
  end)

  it("sequences and pastes whose bytes come apart are whole", function()
    local t <close> = chat("fragments", 1)
    t:type "世界":keys "Left":type "a":wait "世a界":keys "C-e C-u":wait_gone "世"
    t:paste "p\nq":wait "q":screen "a paste of two lines"
    t:keys "M-b":type "x":wait "xq":screen "Alt-B"
  end)
end)
