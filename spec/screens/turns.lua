-- A chat of two turns, with a call, and its commands.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
local gated = dofile "gated.lua"
return ah.agent { model = gated { { calls = { { name = "price", arguments = { tea = "mint" } } } },
    "Mint tea costs **30 cents**.\n\n- green: 40\n- black: 25\n\n```lua\nlocal price = 30\n```",
    "You are welcome." },
  tools = { ah.tool { name = "price", description = "Tells the price of tea.",
    params = { tea = "string" }, handler = function() return 30 end } } }
]]

describe("a chat", function()
  it("has turns, and commands", function()
    local t <close> = tmux.start("turns", { columns = 60, rows = 24 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "What is the price of mint tea?"
    t:wait "price = 30":enter "Thank you":wait "welcome":screen "two turns"
    t:enter "/show":wait "ok, ":enter "/tools":wait "Tells the":enter "/nothing":wait "no command"
    t:screen "commands"
    t:keys "C-d":screen "the end"
  end)
end)
