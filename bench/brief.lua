-- Bytes that brief descriptions save in the requests of one conversation, in which one tool of many
-- is called, on the wire of Chat Completions. Measures no time, so the result is always the same.
--
--   agenthost bench/brief.lua
--
--   first         the first request: all tools in full, in brief, and deferred (ah.search)
--   conversation  all its requests: two in full; three in brief, where the tool is picked first;
--                 three with search_tools, the later ones with the five tools that it found
local ah = require "agenthost"

local function tool(i)
  return ah.tool { name = "customer_report_" .. i,
    description = "Makes customer report " .. i .. ".",
    full_description = ("Makes report %d of a customer's orders, a row a month. "):format(i)
      .. "Months without orders are left out. Amounts are in the customer's own currency; give "
      .. "`currency` to have them converted at the rate of the day of the order.",
    params = {
      customer = "string: the customer's number, as search_customer gives it",
      from = "string: the first month, as 2025-01",
      to = "string?: the last month; this one where it is left out",
      currency = "string?: three letters, as EUR",
      detail = "none|orders|items = none: what is listed below each month",
    },
    handler = function() return "12 rows" end }
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

-- Returns the bytes of a request with these messages; there is no server.
local function size(tools, brief, messages)
  local bytes
  ah.run { model = "openai/gpt-4o", api_key = "none", base_url = "http://127.0.0.1:1", retries = 0,
    messages = messages, tools = tools, brief = brief, max_tools = #tools, log = function() end,
    on = { request = function(e) bytes = e.bytes end } }
  return bytes
end

-- Returns the bytes of the requests with search_tools, then with the tools that it found.
local function searched(tools)
  local name, all = tools[1].name, {}
  local strategy = ah.search { tools = tools, by = "here" }
  local found = { strategy.tools[1], table.unpack(tools, 1, 5) }
  local reply = assert(ah.run { strategies = { strategy }, model = ah.scripted {
    call("search_tools", { query = name }), call(name, { customer = "7", from = "2025-01" }),
    "Well." }, "How did customer 7 do this year?" })
  for i, message in ipairs(reply.messages) do
    if message.role == "assistant" then
      all[#all + 1] = size(#all == 0 and strategy.tools or found, false,
        table.move(reply.messages, 1, i - 1, 1, {}))
    end
  end
  return all
end

-- Returns the bytes of the requests: a scripted model makes the conversation, then each request is
-- made again from its messages.
local function sizes(tools, brief)
  local name, all, turns = tools[1].name, {}, {}
  turns[#turns + 1] = brief and call("pick_tools", { tools = { name } }) or nil
  turns[#turns + 1] = call(name, { customer = "7", from = "2025-01" })
  turns[#turns + 1] = "Well."
  local reply = assert(ah.run { model = ah.scripted(turns), tools = tools, brief = brief,
    max_tools = #tools, "How did customer 7 do this year?" })
  for i, message in ipairs(reply.messages) do
    if message.role == "assistant" then
      all[#all + 1] = size(tools, brief, table.move(reply.messages, 1, i - 1, 1, {}))
    end
  end
  return all
end

local function sum(list)
  local n = 0
  for _, bytes in ipairs(list) do
    n = n + bytes
  end
  return n
end

for _, n in ipairs { 50, 500 } do
  local tools = {}
  for i = 1, n do
    tools[i] = tool(i)
  end
  local full, brief, found = sizes(tools, false), sizes(tools, true), searched(tools)
  assert(#full == 2 and #brief == 3 and #found == 3)
  print(("%d tools, first request   %7d bytes in full, %6d in brief: %.2f, %5d to be found: %.3f")
    :format(n, full[1], brief[1], brief[1] / full[1], found[1], found[1] / full[1]))
  print(("  the conversation        %7d bytes in full, %6d in brief: %.2f, %5d to be found: %.3f")
    :format(sum(full), sum(brief), sum(brief) / sum(full), sum(found), sum(found) / sum(full)))
end
