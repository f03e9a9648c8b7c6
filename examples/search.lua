-- A desk with three hundred tools, of which the model sees one: search_tools, which finds the
-- others. A provider that searches by itself does so instead.
--
--   agenthost examples/search.lua ["Which invoices are open for customer 7?"]
--   ANTHROPIC_API_KEY=... agenthost --model anthropic/claude-sonnet-4-5 examples/search.lua
--
-- The names of the found tools go to stderr, the answer to stdout. Without a model a scripted one
-- shows what a model would do.
local ah = require "agenthost"

local tools = {}
for _, verb in ipairs { "show", "list", "create", "change", "close", "archive" } do
  for i, thing in ipairs { "invoice", "customer", "ticket", "order", "shipment" } do
    for _, place in ipairs { "", "_draft", "_note", "_file", "_price", "_log", "_copy", "_tag",
      "_rule", "_plan" } do
      tools[#tools + 1] = ah.tool { name = verb .. "_" .. thing .. place,
        description = ("Can %s %s%s of the desk."):format(verb, thing, place:gsub("_", " ")),
        params = { customer = "integer: the customer's number" },
        handler = function(args) return { thing = thing, open = args.customer % 5 + i } end }
    end
  end
end

local rehearsed = ah.scripted {
  { calls = { { name = "search_tools", arguments = { query = "list invoices" } } } },
  { calls = { { name = "list_invoice", arguments = { customer = 7 } } } },
  "Three invoices are open for customer 7.",
}

print(assert(ah.run {
  model = not os.getenv "AGENTHOST_MODEL" and rehearsed or nil,
  strategies = { ah.search { tools = tools, max = 3 } },
  on = { tools_injected = function(e)
    io.stderr:write(("of %d found: %s\n"):format(#tools, table.concat(e.tool_names, ", ")))
  end },
  ... or "Which invoices are open for customer 7?",
}))
