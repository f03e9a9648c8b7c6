-- From nothing to a tool of one's own in the chat: the three commands of docs/tutorial/9-chat.md.
local tmux = require "support.tmux"
local markdown = require "support.markdown"

local STOCK
for _, block in ipairs(markdown.blocks "docs/tutorial/9-chat.md") do
  STOCK = block.name == "shop/stock.lua" and block.text or STOCK
end

local ADD = [[!sed -i "s/{ price }/{ require 'stock', price }/" agent.lua; echo added]]

describe("a new user", function()
  it("has a tool of their own in the chat after three commands", function()
    local t <close> = tmux.start("begin", { columns = 70, rows = 24 })
    t:enter "agenthost init shop && cd shop":wait "agenthost test":screen "agenthost init"
    t:enter "clear; agenthost chat agent.lua":wait ">":enter "What do 3 bags of mint tea cost?"
    t:wait "price: 90":file("shop/stock.lua", STOCK):enter(ADD):wait "\nadded\n>"
    t:enter "/reload":wait "loaded again"
    t:enter "How much mint tea is there?":wait "stock: 12":screen "a tool of one's own"
    t:file("shop/stock.lua", STOCK:gsub('"stock",', '"stock"')):keys "C-l":enter "/reload"
    t:wait "stock.lua:":screen "a mistake"
    t:enter "How much black tea is there?":wait "stock: 150":screen "the tools are as before"
  end)
end)
