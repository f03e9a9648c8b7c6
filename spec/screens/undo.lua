-- /undo and /redo of a turn that has written a file; /rewind and /fork.
local tmux = require "support.tmux"

local AGENT = [[
local ah = require "agenthost"
local function write(text)
  return { calls = { { name = "write_file", arguments = { path = "tea.txt", content = text } } } }
end
return ah.agent {
  resources = { filesystem = assert(ah.filesystem { root = "." }) },
  tools = assert(ah.builtin { "write_file" }),
  model = (dofile "gated.lua") { write "mint\n", "Mint it is.", write "green\n",
    "Green it is.", "Nothing more." } }
]]

describe("the last turn", function()
  it("is taken back and done again", function()
    local t <close> = tmux.start("undo", { columns = 70, rows = 40 })
    t:file("agent.lua", AGENT):enter "agenthost chat agent.lua"
    t:wait ">":enter "Mint":wait "Mint it is.":enter "Green":wait "Green it is."
    t:enter "!cat tea.txt":screen "two turns"
    t:enter "/undo":screen "undone"
    t:keys "C-u":enter "!cat tea.txt":wait "!cat tea.txt\nmint":screen "the file is as before"
    t:enter "/redo":screen "redone"
    t:enter "!cat tea.txt":wait "tea.txt\ngreen\n":keys "C-l":enter "/context":screen "the context"
  end)
end)
