-- Calls that wait for a person: denied with a reason, edited, allowed always.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
local function pay(euros, to)
  return { calls = { { name = "pay", arguments = { euros = euros, to = to } } } }
end
return ah.agent {
  tools = { ah.tool { name = "pay", description = "Pays.", parallel = true,
    params = { euros = "integer 1..100", to = "string" },
    handler = function(args) return ("paid %d euros to %s"):format(args.euros, args.to) end } },
  policies = { function() return "ask", "it costs money" end },
  model = (dofile "gated.lua") {
    pay(70, "Ann"), pay(80, "Ann"), "Ann has 8 euros.",
    { calls = { pay(1, "Bob").calls[1], pay(2, "Cem").calls[1] } }, "Both have it.",
    pay(3, "Dan"), "Dan has nothing." } }
]]

describe("a call that waits", function()
  it("is denied, edited and allowed", function()
    local t <close> = tmux.start("asks", { columns = 70, rows = 30 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Pay Ann":wait "Allow it?":screen "an ask"
    t:enter "perhaps":wait "no response":screen "what can be typed"
    t:enter "n 70 is too much":wait "euros: 80":screen "denied, and asked again"
    t:enter "e":wait "Enter allows":screen "its arguments"
    t:keys "Up Up C-e Left BSpace":screen "edited"
    t:keys "Enter":wait "8 euros.":screen "the edited call"
  end)

  it("is one of two, and ends with Ctrl-C", function()
    local t <close> = tmux.start("asks_two", { columns = 70, rows = 30 })
    t:file("agent.lua", AGENT:gsub("pay%(70.-8 euros.\",", "")):enter "agenthost chat agent.lua"
    t:wait ">":enter "Pay both":wait "(1 of 2)":screen "the first of two"
    t:enter "y":wait "(2 of 2)":screen "the second"
    t:enter "y":wait "Both have it.":type "Pay Dan, "
    t:keys "Enter":wait "Allow it?":keys "C-c":wait "(ended)":screen "Ctrl-C"
  end)
end)
