-- Terminals that can do less, and no terminal.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
return ah.agent { model = (dofile "gated.lua") {
  "One **two** – ‘three’ 世.\n", "Second.", "Third." } }
]]

local function chat(name, env)
  local t = tmux.start(name, { columns = 60, rows = 16, env = env })
  return t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
end

describe("a chat", function()
  it("has styles and a line editor", function()
    local t <close> = chat("styles", {})
    t:wait ">":enter "a – b":wait "three":type "/nothing":keys "Enter":wait "no command"
    t:styled "with styles"
  end)

  it("has no styles with NO_COLOR", function()
    local t <close> = chat("no_color", { "NO_COLOR=1" })
    t:wait ">":enter "a – b":wait "three":type "/nothing":keys "Enter":wait "no command"
    t:styled "without styles"
  end)

  it("reads lines in a dumb terminal", function()
    local t <close> = chat("dumb", { "TERM=dumb" })
    t:wait ">":enter "a – b":wait "three":enter "two\\":enter "lines":wait "Second."
    t:enter "/tools":wait "no tools":styled "a dumb terminal"
    t:keys "C-d":wait "turns":styled "the end"
  end)

  it("shows question marks without UTF-8", function()
    local t <close> = chat("no_utf8", { "LANG=C" })
    t:wait ">":enter "a":wait "three":screen "without UTF-8"
  end)

  it("reads a pipe, and writes into one", function()
    local t <close> = tmux.start("pipes", { columns = 60, rows = 24 })
    t:file("agent.lua", AGENT)
    t:enter "printf 'one\\ntwo\\n' | agenthost chat agent.lua":wait "turns":screen "a pipe as input"
    t:enter "clear; agenthost chat agent.lua | sed 's/^/[out] /'":wait_gone "printf"
    t:enter "one":wait "three":enter "/tools":wait "no tools":keys "C-d":wait "turns"
    t:screen "a pipe as output"
    t:enter "clear; printf 'one\\n/tools\\n/nothing\\n' | agenthost chat agent.lua 2>&1 | cat"
    t:wait "no command":screen "both"
  end)
end)
