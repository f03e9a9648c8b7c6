-- ah.search: deferred tools, which the provider finds if it can search, and search_tools otherwise.
-- Providers are `agenthost mock`.
local ah = require "agenthost"
local mock = require "support.mock"
local server = require "support.server"
local sound = require "support.sound"

local function tool(name, description, params)
  return ah.tool { name = name, description = description or "The tool " .. name .. ".",
    params = params or { id = "string" },
    handler = function(args)
      return name .. " " .. tostring(args.id)
    end }
end

local function shop()
  local tools = {}
  for _, verb in ipairs { "get", "list", "delete" } do
    for _, what in ipairs { "invoice", "customer", "ticket" } do
      tools[#tools + 1] = tool(verb .. "_" .. what, verb .. " " .. what .. " of the shop.")
    end
  end
  return tools
end

local function call(name, arguments)
  return { name = name, arguments = arguments or { id = "7" } }
end

local function query(words)
  return call("search_tools", { query = words })
end

-- Returns the result of search_tools, and the reply.
local function asked(set, words, fields)
  fields = fields or {}
  fields.strategies = { ah.search(set) }
  fields.model = ah.scripted { { calls = { query(words) } }, "done" }
  fields[1] = "go"
  local reply = assert(ah.run(fields))
  sound.check(reply:transcript())
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      return m.content, reply
    end
  end
end

-- Returns the names in a result, in order.
local function names_in(content)
  local names = {}
  for name in content:gmatch "\n%- ([%w_-]+)" do
    names[#names + 1] = name
  end
  return table.concat(names, " ")
end

local function entries_of(reply, kind)
  local list = {}
  for _, e in ipairs(server.decode(reply:transcript()).entries) do
    list[#list + 1] = e.type == kind and e or nil
  end
  return list
end

local function names_of(tools)
  local names = {}
  for i, t in ipairs(tools or {}) do
    names[i] = t.name or t["function"] and t["function"].name or t.type
  end
  table.sort(names)
  return table.concat(names, " ")
end

describe("search_tools", function()
  it("answers with the best tools, which can be called from then on", function()
    local search = ah.search { tools = shop(), max = 2 }
    local reply = assert(ah.run { strategies = { search }, "go", model = ah.scripted {
      { expect = { tools = { "search_tools" } }, calls = { query "delete the invoices" } },
      { expect = { tools = { "search_tools", "delete_invoice", "get_invoice" } },
        calls = { call "delete_invoice" } },
      { expect = { result = "delete_invoice 7" }, text = "Gone." } } })
    sound.check(reply:transcript())
    local m = reply.messages[3]
    assert.equal("The best 2 of 9 tools:\n- delete_invoice: delete invoice of the shop."
      .. "\n- get_invoice: get invoice of the shop.\n\nNew tools: delete_invoice, get_invoice.",
      m.content)
    assert.same({ call = m.tool_call_id, found = { "delete_invoice", "get_invoice" },
      strategy = "search" }, entries_of(reply, "tools_added")[2].by)
    assert.same({ strategy = "search" }, entries_of(reply, "tools_deferred")[1].by)
    assert.equal(9, #entries_of(reply, "tools_deferred")[1].tools)
  end)

  it("looks into names, descriptions, arguments and what is said of them", function()
    local tools = {
      tool("get_exchange_rate", "Looks up money."),
      tool("b", "Converts currencies of the world."),
      tool("c", nil, { currencyCode = "string", amount = "number: what it is worth in EUR" }),
      ah.tool { name = "d", description = "Nested.", schema = { type = "object", properties = {
        list = { type = "array", items = { type = "object", properties = {
          shippingAddress = { type = "string" } } } } } }, handler = print },
      tool "http-server-status",
    }
    local function best(words)
      return names_in((asked({ tools = tools, max = 1 }, words)))
    end
    assert.equal("get_exchange_rate", best "EXCHANGE rates")
    assert.equal("get_exchange_rate", best "getExchangeRate")
    assert.equal("b", best "currency of the world")
    assert.equal("c", best "currency code")
    assert.equal("c", best "worth eur")
    assert.equal("d", best "shipping addresses")
    assert.equal("http-server-status", best "HTTPServer")
    assert.equal("c", best "c")
  end)

  it("ranks by rare words, more of them, and the name, always alike", function()
    local tools = { tool("list_tickets", "Lists."), tool("close_ticket", "Closes a ticket."),
      tool("note", "Adds a note to a ticket."), tool("ticket_weather", "Weather of a ticket.") }
    for _ = 1, 3 do
      local first = asked({ tools = tools }, "close tickets")
      assert.equal("close_ticket ticket_weather list_tickets note", names_in(first))
    end
  end)

  it("says what was looked for, and the nearest words, where there is nothing", function()
    local content, reply = asked({ tools = shop() }, "invoyce")
    assert.equal("None of 9 tools has a word of 'invoyce' in its name, its description or its "
      .. "arguments. Words that are there: invoice.", content)
    assert.is_true(reply.messages[3].success)
    assert.truthy(asked({ tools = shop() }, "zzzz"):find("Try other words", 1, true))
    assert.truthy(asked({ tools = shop() }, "of the"):find("None of 9 tools", 1, true))
  end)

  it("says what is there already, and what there is no room for", function()
    local search = ah.search { tools = shop(), max = 3 }
    local reply = assert(ah.run { strategies = { search }, max_tools = 3, "go",
      model = ah.scripted { { calls = { query "get_invoice" } },
        { calls = { query "invoice", call "list_ticket" } }, "done" } })
    sound.check(reply:transcript())
    local second, refused = reply.messages[5].content, reply.messages[6].content
    assert.truthy(second:find("- get_invoice (there already): ", 1, true))
    assert.truthy(second:find("- delete_invoice (cannot be added: ", 1, true))
    assert.truthy(refused:find("could not be added to this conversation", 1, true))
  end)

  it("does not find what was removed", function()
    local agent = assert(ah.agent { strategies = { ah.search { tools = shop(), max = 2 } },
      model = ah.scripted { { calls = { query "delete_invoice" } }, "one",
        { calls = { query "delete_invoice", call "delete_invoice" } }, "two" } })
    assert(agent:run "a")
    agent:remove_tools "delete_invoice"
    local reply = assert(agent:run "b")
    local found, gone
    for _, m in ipairs(reply.messages) do
      if m.name == "search_tools" then
        found = m.content
      elseif m.name == "delete_invoice" then
        gone = m.content
      end
    end
    assert.falsy(names_in(found):find("delete_invoice", 1, true))
    assert.truthy(gone:find("no longer available", 1, true))
  end)

  it("is quick over thousands of tools", function()
    local tools, words = {}, { "invoice", "customer", "weather", "ticket", "shipment" }
    for i = 1, 5000 do
      tools[i] = tool(("tool_%d_%s"):format(i, words[i % 5 + 1]), ("Does %d."):format(i))
    end
    local calls = {}
    for i = 1, 50 do
      calls[i] = query("weather " .. i)
    end
    local began = os.clock()
    local search = ah.search { tools = tools }
    assert.is_true(os.clock() - began < 5)
    began = os.clock()
    assert(ah.run { strategies = { search }, max_tools = 1000, loop_detector = false, "go",
      model = ah.scripted { { calls = calls }, "done" } })
    assert.is_true(os.clock() - began < 5)
  end)
end)

describe("a call of a tool that was not found yet", function()
  it("is checked against its schema, runs, and finds it", function()
    local reply = assert(ah.run { strategies = { ah.search { tools = shop() } }, "go",
      model = ah.scripted { { calls = { call("get_ticket", { nr = 1 }), call "get_ticket" } },
        { expect = { tools = { "search_tools", "get_ticket" } }, text = "done" } } })
    sound.check(reply:transcript())
    assert.is_false(reply.messages[3].success)
    assert.truthy(reply.messages[3].content:find("id", 1, true))
    assert.equal("get_ticket 7", reply.messages[4].content)
    local by = entries_of(reply, "tools_added")[2].by
    assert.same({ strategy = "search", called = reply.messages[3].tool_call_id }, by)
  end)

  it("may be refused by another strategy, and is not found by that", function()
    local search = ah.search { tools = shop() }
    local lock = ah.unlock { tools = "get_ticket", after = "list_ticket" }
    local reply = assert(ah.run { strategies = { search, lock }, "go",
      model = ah.scripted { { calls = { call "get_ticket" } },
        { expect = { tools = { "search_tools" } }, text = "done" } } })
    assert.truthy(reply.messages[3].content:find("not yet available", 1, true))
  end)

  it("is counted by the loop detector where there is no room for it", function()
    local calls = {}
    for i = 1, 6 do
      calls[i] = call "get_ticket"
    end
    local reply, err = ah.run { strategies = { ah.search { tools = shop() } }, max_tools = 1, "go",
      model = ah.scripted { { calls = calls } } }
    assert.is_nil(reply)
    assert.equal("loop_detected", err.code)
  end)

  it("is found by a search that has methods of its own as well", function()
    local search, seen = ah.search { tools = shop() }, {}
    function search.before(_, m)
      seen[#seen + 1] = "before " .. m.name
      return m.name == "get_invoice" and "Not this one." or nil
    end
    function search.after(_, m)
      seen[#seen + 1] = "after " .. m.name
      m.state = #seen
    end
    local reply = assert(ah.run { strategies = { search }, "go",
      model = ah.scripted { { calls = { call "get_invoice", call "get_ticket" } },
        { expect = { tools = { "search_tools", "get_ticket" } }, text = "done" } } })
    sound.check(reply:transcript())
    assert.equal("Not this one.", reply.messages[3].content)
    assert.equal("get_ticket 7", reply.messages[4].content)
    assert.same({ "before get_invoice", "before get_ticket", "after get_ticket" }, seen)
    assert.equal("search", entries_of(reply, "strategy")[1].name)
    assert.equal("search", entries_of(reply, "tools_added")[2].by.strategy)
  end)
end)

describe("what is declared", function()
  local function fails(fields, words)
    local ok, err = pcall(ah.search, fields)
    assert.is_false(ok)
    assert.truthy(tostring(err):find(words, 1, true), tostring(err))
  end

  it("is looked at by ah.search", function()
    fails({}, "field 'tools' is missing")
    fails({ tools = {} }, "1 to 20000 tools, found 0")
    fails({ tools = { tool "a", tool "a" } }, "tool 'a' is declared twice")
    fails({ tools = { tool "a" }, max = 21 }, "from 1 to 20, found 21")
    fails({ tools = { tool "a" }, by = "me" }, '"provider" or "here", found "me"')
    fails({ tools = { tool "a" }, method = "like" }, '"regex" or "bm25", found "like"')
    fails({ tools = { tool "a" }, wich = 1 }, "unknown field 'wich'")
    fails({ tools = { "a" } }, "must be made by ah.tool, found string 'a'")
  end)

  it("is declared once: in one set, and not beside it", function()
    local a, b = tool "a", tool "a"
    local ok, err = pcall(ah.agent, { model = "demo/echo", tools = { b },
      strategies = { ah.search { tools = { a } } } })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("tool 'a' is declared twice", 1, true))
    ok, err = pcall(ah.agent, { model = "demo/echo",
      strategies = { ah.search { tools = { a } }, ah.search { tools = { tool "c" } } } })
    assert.is_false(ok)
    assert.truthy(tostring(err):find("tool 'search_tools' is declared twice", 1, true))
  end)
end)

describe("a conversation with tools to be found", function()
  local function agent_with(turns, more)
    local fields = { strategies = { ah.search { tools = shop(), max = 1 } },
      model = ah.scripted(turns) }
    for key, value in pairs(more or {}) do
      fields[key] = value
    end
    return fields
  end

  it("goes on after it was saved, with what it has found", function()
    local path = os.tmpname()
    local first = assert(ah.agent(agent_with { { calls = { query "list_ticket" } }, "one" }))
    assert(first:run "a")
    assert(first:save(path))
    local later = assert(ah.load(path, agent_with {
      { expect = { tools = { "search_tools", "list_ticket" } },
        calls = { call "list_ticket", call "get_invoice" } }, "two" }))
    os.remove(path)
    local reply = assert(later:run "b")
    sound.check(reply:transcript())
    local n = #reply.messages
    assert.equal("list_ticket 7", reply.messages[n - 2].content)
    assert.equal("get_invoice 7", reply.messages[n - 1].content)
    assert.equal(1, #entries_of(reply, "tools_deferred"))
  end)

  it("is told of tools that were not in the set when it was saved", function()
    local path = os.tmpname()
    local first = assert(ah.agent(agent_with { "one" }))
    assert(first:run "a")
    assert(first:save(path))
    local tools = shop()
    tools[#tools + 1] = tool "print_label"
    local later = assert(ah.load(path, agent_with({ { calls = { query "label" } }, "two" },
      { strategies = { ah.search { tools = tools, by = "here" } } })))
    os.remove(path)
    local deferred = entries_of(assert(later:run "b"), "tools_deferred")
    assert.equal("print_label", names_of(deferred[2].tools))
    assert.equal("here", deferred[2].search)
  end)

  it("may be forked: neither sees what the other finds", function()
    local first = assert(ah.agent(agent_with { "one", { calls = { query "get_ticket" } }, "two",
      { expect = { tools = { "search_tools" } }, calls = { query "get_invoice" } }, "three" }))
    assert(first:run "a")
    local other = first:fork()
    assert.equal("two", assert(first:run "b").text)
    local reply = assert(other:run "c")
    assert.equal("three", reply.text)
    assert.equal("get_invoice", names_of(entries_of(reply, "tools_added")[2].tools))
  end)

  it("declares what was found in full where others are in brief", function()
    local reply = assert(ah.run(agent_with({ { calls = { query "get_ticket" } }, "done" },
      { brief = true, "go" })))
    local added = entries_of(reply, "tools_added")
    assert.same({ "id" }, added[#added].tools[1].parameters.required)
  end)
end)

describe("examples/search.lua", function()
  local command = require "support.command"

  it("finds what it needs, and the command shows what it keeps out of sight", function()
    local r = command.shell('unset AGENTHOST_MODEL; "$A" examples/search.lua')
    assert.equal("Three invoices are open for customer 7.\n", r.out)
    assert.equal("of 300 found: list_invoice, list_invoice_draft, list_invoice_note\n", r.err)
    r = command.shell('"$A" tools examples/search.lua')
    assert.truthy(r.out:find("asks scripted/script, 1 tool of", 1, true))
    assert.truthy(r.out:find("\nto be found: 300 tools of", 1, true))
    assert.falsy(r.out:find("offered by nothing", 1, true))
    r = command.shell('"$A" tools --json examples/search.lua')
    local met = server.decode(r.out).met[1]
    assert.same({ 1, 300 }, { #met.tools, #met.deferred })
  end)
end)

-- -- providers -----------------------------------------------------------------------------

local SCRIPT = [[return {
  { calls = { { name = "search_tools", arguments = { query = "invoice" } } } },
  { calls = { { name = "get_invoice", arguments = { id = "7" } } } },
  { expect = { result = "get_invoice 7" }, text = "It is paid." },
}]]

local KEYS = { OPENAI = "/v1", ANTHROPIC = "" }

-- Runs against a mock: returns the reply, the bodies of the requests, the reasons of cache breaks,
-- and the error.
local function run_at(model, fields, script)
  local m <close> = mock.start(script or SCRIPT)
  local breaks, provider = {}, model:match "^%w+"
  fields.model, fields.api_key = model, "any"
  fields.base_url = m.url .. KEYS[provider:upper()]
  fields.strategies = fields.strategies or { ah.search { tools = shop() } }
  fields.on = fields.on or { cache_break = function(e)
    breaks[#breaks + 1] = e.reason
  end }
  fields[1] = "Is it paid?"
  local reply, err = ah.run(fields)
  local bodies = {}
  for i, entry in ipairs(m:log()) do
    bodies[i] = entry.body
    bodies[i].headers = entry.headers
  end
  if reply then
    sound.check(reply:transcript())
  end
  return reply, bodies, table.concat(breaks, " "), err
end

local NATIVE = { "anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-8",
  "openai/responses/gpt-5.4" }

describe("a provider that searches", function()
  if not mock.is_built() then
    pending "needs libmicrohttpd"
    return
  end

  for _, model in ipairs(NATIVE) do
    for _, stream in ipairs { false, true } do
      it(model .. (stream and ", streamed," or "") .. " gives the answer others give", function()
        local injected
        local reply, bodies, breaks = run_at(model, { stream = stream, on = {
          tools_injected = function(e)
            injected = e
          end } })
        assert.equal("It is paid.", assert(reply).text)
        assert.same({ 2, 1 }, { reply.iterations, reply.tool_calls })
        assert.equal("", breaks)
        assert.equal("search", injected.strategy)
        assert.equal("get_invoice list_invoice delete_invoice",
          table.concat(injected.tool_names, " "))
        for _, body in ipairs(bodies) do
          local deferred = 0
          for _, t in ipairs(body.tools) do
            deferred = deferred + (t.defer_loading and 1 or 0)
            assert.not_equal("search_tools", t.name)
          end
          assert.same({ 9, 10 }, { deferred, #body.tools })
        end
        assert.same(bodies[1].tools, bodies[2].tools)
        local by = entries_of(reply, "tools_added")[2].by
        assert.same({ "get_invoice", "list_invoice", "delete_invoice" }, by.found)
        assert.equal(model, by.origin.adapter .. "/" .. by.origin.model)
      end)
    end
  end

  it("is asked by the way that the script names", function()
    local set = { tools = shop(), method = "regex" }
    local reply, bodies = run_at(NATIVE[1], { strategies = { ah.search(set) } })
    assert.equal("It is paid.", assert(reply).text)
    assert.same({ type = "tool_search_tool_regex_20251119", name = "tool_search_tool_regex" },
      bodies[1].tools[1])
  end)

  it("is asked where the script says so, whatever is known of the model", function()
    local set = { tools = shop(), by = "provider" }
    local reply, bodies = run_at("anthropic/claude-haiku-4-5", { strategies = { ah.search(set) } })
    assert.equal("It is paid.", assert(reply).text)
    assert.equal(2, #bodies)
    reply, bodies = run_at("openai/gpt-4o", { strategies = { ah.search(set) } })
    assert.equal("It is paid.", assert(reply).text)
    assert.equal(3, #bodies)
  end)

  it("may find without calling, which is no reason to ask again", function()
    local reply, bodies = run_at(NATIVE[1], {},
      [[return { { calls = { { name = "search_tools", arguments = { query = "ticket" } } } },
        "There are tools for that." }]])
    assert.equal("There are tools for that.", assert(reply).text)
    assert.equal(1, #bodies)
    assert.equal("delete_ticket get_ticket list_ticket",
      names_of(entries_of(reply, "tools_added")[2].tools))
  end)

  it("that refuses it is not asked so again", function()
    for _, model in ipairs { NATIVE[1], NATIVE[3] } do
      local warned
      local reply, bodies = run_at(model, { on = { warning = function(e)
        warned = e.message
      end } }, SCRIPT:gsub("return {", 'return { { status = 400, message = "no tool search" },'))
      assert.equal("It is paid.", assert(reply).text)
      assert.truthy(warned:find("may not support searching tools", 1, true))
      assert.equal(4, #bodies)
      assert.equal("search_tools", names_of(bodies[2].tools))
      local settings = entries_of(reply, "settings")
      assert.same({ tool_search = "here" }, settings[#settings].learned)
    end
  end)

  it("hands over to one that does not", function()
    local m <close> = mock.start [[return {
      { calls = { { name = "search_tools", arguments = { query = "invoice" } } } },
      { calls = { { name = "get_invoice", arguments = { id = "7" } } } },
      { status = 529 },
      { calls = { { name = "search_tools", arguments = { query = "list_ticket" } } } },
      { calls = { { name = "list_ticket", arguments = { id = "8" } } } }, "done" }]]
    local reply = assert(ah.run { model = NATIVE[1], api_key = "any", base_url = m.url,
      retries = 0, strategies = { ah.search { tools = shop(), max = 1 } }, "go",
      fallback = { { model = "openai/gpt-4o", api_key = "any", base_url = m.url .. "/v1" } } })
    sound.check(reply:transcript())
    assert.equal("done", reply.text)
    local list = m:log()
    assert.equal("delete_invoice get_invoice list_invoice search_tools",
      names_of(list[3].body.tools))
    assert.equal("list_ticket 8", reply.messages[#reply.messages - 1].content)
  end)
end)

describe("a search of ours", function()
  if not mock.is_built() then
    pending "needs libmicrohttpd"
    return
  end

  local function here()
    return { ah.search { tools = shop(), by = "here" } }
  end

  for _, model in ipairs { NATIVE[1], NATIVE[2] } do
    it("reveals by its result what was declared as deferred: " .. model, function()
      local reply, bodies, breaks = run_at(model, { strategies = here() })
      assert.equal("It is paid.", assert(reply).text)
      assert.same({ 3, "" }, { #bodies, breaks })
      local result = bodies[2].messages[3].content[1]
      assert.same({ { type = "tool_reference", tool_name = "delete_invoice" },
        { type = "tool_reference", tool_name = "get_invoice" },
        { type = "tool_reference", tool_name = "list_invoice" } }, (function()
        table.sort(result.content, function(a, b)
          return a.tool_name < b.tool_name
        end)
        return result.content
      end)())
      assert.equal(3, #bodies[2].messages)
      assert.is_nil(bodies[2].headers["anthropic-beta"])
      assert.same(bodies[1].tools, bodies[3].tools)
    end)
  end

  it("is what a Responses model calls as its tool search (search_pair)", function()
    local reply, bodies, breaks = run_at("openai/responses/gpt-5.4", { strategies = here(),
      tool_change_mode = "search_pair" }, [[return {
      { raw = [==[{"id":"r1","object":"response","status":"completed","output":[{"id":"t1",
        "type":"tool_search_call","call_id":"call_1","execution":"client","status":"completed",
        "arguments":{"query":"invoice"}}]}]==] },
      { calls = { { name = "get_invoice", arguments = { id = "7" } } } }, "It is paid." }]])
    assert.equal("It is paid.", assert(reply).text)
    assert.equal("", breaks)
    assert.equal("tool_search", names_of(bodies[1].tools))
    assert.equal("client", bodies[1].tools[1].execution)
    assert.same({ "query" }, bodies[1].tools[1].parameters.required)
    local asking, found = bodies[2].input[2], bodies[2].input[3]
    assert.same({ "tool_search_call", { query = "invoice" } },
      { asking.type, asking.arguments })
    assert.equal("delete_invoice get_invoice list_invoice", names_of(found.tools))
    assert.equal(3, #bodies[2].input)
  end)

  it("adds to the list elsewhere, or as items of their own", function()
    local reply, bodies, breaks = run_at("openai/gpt-4o", {})
    assert.equal("It is paid.", assert(reply).text)
    assert.same({ 3, "tools_changed" }, { #bodies, breaks })
    reply, bodies, breaks = run_at("openai/responses/gpt-5.4", { strategies = here() })
    assert.equal("It is paid.", assert(reply).text)
    assert.same({ 3, "" }, { #bodies, breaks })
    assert.equal("search_tools", names_of(bodies[3].tools))
  end)

  it("is told where a model calls what it has not found (by reference and as an item)", function()
    local script = [[return {
      { calls = { { name = "get_ticket", arguments = { id = "7" } } } }, "done" }]]
    local _, bodies, breaks = run_at(NATIVE[2], {}, script)
    assert.same({ "system", "tool_addition" }, { bodies[2].messages[4].role,
      bodies[2].messages[4].content[1].type })
    assert.equal("", breaks)
    _, bodies, breaks = run_at(NATIVE[3], {}, script)
    assert.equal("additional_tools", bodies[2].input[4].type)
    assert.equal("", breaks)
    _, bodies, breaks = run_at(NATIVE[1], {}, script)
    assert.equal("tools_changed", breaks)
    for _, t in ipairs(bodies[2].tools) do
      assert.equal(t.name ~= "get_ticket" and t.type == nil, t.defer_loading == true)
    end
  end)
end)
