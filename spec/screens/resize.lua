-- The window of a chat is made narrow and wide, while an answer comes and while a line is typed.
local tmux = require "support.tmux"

local LONG = ("word "):rep(30)
local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = (dofile "gated.lua") {
  { ("One %s\n\nTwo %s"):format(("first "):rep(30), ("second "):rep(15)), ("third "):rep(15),
    ("fourth "):rep(15) .. "The end." } } }
]]

describe("a window", function()
  it("is made narrow and wide while text comes, and while a long line is typed", function()
    local t <close> = tmux.start("resize", { columns = 60, rows = 24 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Begin":wait "second":type(LONG .. "typed"):wait "typed"
    t:wait "Ctrl-C":screen "60 columns"
    t:resize(32, 24):screen "32 columns"
    t:go():wait "third":screen "32 columns, one part more"
    t:resize(75, 24):screen "75 columns"
    t:go():wait "The end.":screen "75 columns, the last part"
    t:resize(40, 12):screen "40 columns, 12 rows"
    t:keys "C-a":type "cut ":resize(60, 24):screen "60 columns, another line"
    t:history "all of it"
  end)
end)
