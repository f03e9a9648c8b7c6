-- The pages of docs/ against the library: what exists is documented, what is documented exists, and
-- the marked blocks run and print the output that the page shows.
local ah = require "agenthost"
local command = require "support.command"
local fake_claude = require "support.claude"
local markdown = require "support.markdown"
local server = require "support.server"

local names_in = markdown.names_in

local EMBEDDING = markdown.read("docs/reference/embedding.md")
local EVENTS = markdown.read("docs/reference/events.md")
local LIMITS = markdown.read("docs/reference/limits.md")
local LUA = markdown.api()
local FILES = markdown.read("docs/reference/filesystem.md")
local PROMPTS = markdown.read("docs/reference/prompts.md")
local SESSIONS = markdown.read("docs/reference/sessions.md")
local SCRIPTED = markdown.read("docs/reference/scripted.md")
local TRANSCRIPT = markdown.read("docs/reference/transcript.md")
-- Pages that serve, read YAML or keep files of stores run only if that was built; adding.md has a
-- spec of its own.
local serves, reads_yaml = require("support.mock").is_built(), ah.yaml.decode "here"
local keeps = require("ahtest").store_engines().sqlite
for _, path in ipairs(markdown.pages "docs/*.md docs/*/*.md") do
  local text = markdown.read(path)
  local needs = text:find("ah.serve {", 1, true) or text:find("./agenthost mock ", 1, true)
  local store = text:find('store = "%w+%.db",')
  local yaml = text:find("ah.yaml.decode", 1, true)
  if (serves or not needs) and (keeps or not store) and (reads_yaml or not yaml)
    and path ~= "docs/internals/adding.md" then
    markdown.describe(path)
  end
end

describe("docs/how-to/", function()
  it("has pages of one screen or two that run, each in the index", function()
    local index, pages = markdown.read("docs/README.md"), markdown.pages "docs/how-to/*.md"
    assert.is_true(#pages > 20)
    for _, path in ipairs(pages) do
      local text = markdown.read(path)
      local title, runs = text:match("^# ([^\n]+)\n"), 0
      for _, block in ipairs(markdown.blocks(path)) do
        runs = runs + (block.kind ~= "file" and block.output and 1 or 0)
      end
      assert(runs > 0, path .. " runs nothing")
      assert(select(2, text:gsub("\n", "")) <= 100, path .. " is long")
      local row = ("| [%s](%s) |"):format(title, path:gsub("^docs/", ""))
      assert(index:find(row, 1, true), path .. " is not in docs/README.md")
    end
  end)
end)

describe("docs/internals/performance.md", function()
  local PERFORMANCE = markdown.read("docs/internals/performance.md")

  it("describes the measures of `make bench`, and no others", function()
    local list = markdown.read("bench/bench.lua"):match("local ORDER = (%b{})")
    local measures = {}
    for name in list:gmatch('"(%a+)"') do
      measures[name] = true
    end
    local described = {}
    for _, row in ipairs(markdown.tables(PERFORMANCE)[1]) do
      described[markdown.names(row[1])[1]] = true
    end
    assert.same(measures, described)
  end)
end)

describe("docs/terms.md", function()
  local terms = markdown.tables(markdown.read "docs/terms.md")[1]

  it("has each term once, in alphabetical order, with a link to its page", function()
    local before = ""
    for _, row in ipairs(terms) do
      local term = assert(row[1]:match "^%[([%l -]+)%]%([%w_/#.-]+%)$", row[1])
      assert(before < term, term .. " does not come after " .. before)
      before = term
    end
    assert.is_true(#terms > 100)
  end)

  it("has one or two plain sentences for each", function()
    for _, row in ipairs(terms) do
      local sentences = select(2, (row[2]:gsub("`[^`]*`", "") .. " "):gsub("%. ", ""))
      assert(row[2]:find "^[%u`].+%.$" and #row[2] <= 200 and sentences <= 2, row[1])
    end
  end)
end)

-- -- helpers ------------------------------------------------------------------------------

local function set(list)
  local s = {}
  for _, name in ipairs(list) do
    s[name] = true
  end
  return s
end

local function keys(t)
  local s = {}
  for key in pairs(t) do
    s[key] = true
  end
  return s
end

-- Reads a table whose second column names the members of the last name in the first column: { name
-- = { member = type } }.
local function members_in(page, heading)
  local all, current = {}, nil
  for _, row in ipairs(markdown.tables(markdown.section(page, heading))[1]) do
    local name, member = markdown.names(row[1])[1], markdown.names(row[2])[1]
    current = name or current
    all[current] = all[current] or {}
    if member then
      all[current][member] = row[3]
    end
  end
  return all
end

-- Returns the words of a list of C strings behind a pattern.
local function c_list(path, before)
  local source = markdown.read(path)
  local body = assert(source:match(before .. "%s*=%s*(%b{})"), path .. " has no list " .. before)
  local list = {}
  for word in body:gmatch('"([^"]+)"') do
    list[#list + 1] = word
  end
  return set(list)
end

-- Returns the fields of a table with rows; none if there is no such table.
local function options_of(what)
  local names = {}
  for _, subject in ipairs(ah._options()) do
    for _, row in ipairs(subject.what == what and subject.rows or {}) do
      names[row.name] = true
    end
  end
  return names
end

local function echo_tool(handler)
  return ah.tool { name = "t", description = "A tool.", params = { n = "integer?" },
    handler = handler or function() return 1 end }
end

local CALL = { calls = { { name = "t" } } }

-- Runs without a log; errors are ignored.
local function run(fields)
  fields.log = function() end
  return ah.run(fields)
end

-- -- events -----------------------------------------------------------------------------

-- Runs that together cause every event; `on` gets each.
local function flows(on)
  local failing = { message = "busy", status = 429, retryable = true, retry_after = 0.001 }
  local usage = { input = 5, output = 2, cost = 0.5 }
  run { model = ah.scripted { { fail = failing }, { text = "a", calls = { { name = "t" } } },
    { calls = { { name = "t" } } }, { text = "b", usage = usage } },
    tools = { echo_tool() }, max_iterations = 2, on_max = "answer", on = on, "x" }
  local spent = server.chat_call("t", "{}", "c")
  spent.headers["x-ratelimit-remaining-requests"] = "0"
  spent.headers["x-ratelimit-reset-requests"] = "250ms"
  local s <close> = server.start { responses = { spent, server.chat_text("done") } }
  run { model = "openai/m", base_url = s.url, tools = { echo_tool() }, on = on, "x" }
  run { model = ah.scripted { { fail = failing } }, retries = 0, fallback = { "demo/echo" },
    on = on, "x" }
  local tight = ah.budget { output_tokens = 10, reserve = true }
  ah.map({ 1, 2 }, function()
    run { model = ah.scripted { { text = "a", usage = usage, delay = 0.01 } }, budget = tight,
      options = { max_tokens = 6 }, on = on, "x" }
  end, { concurrency = 2 })
  local answers = { server.chat_text "a", server.chat_text "b" }
  local priced <close> = server.start { responses = answers }
  for _, model in ipairs { "openai/gpt-4.1", "openai/m" } do -- with a price, and without
    run { model = model, base_url = priced.url, api_key = "k", on = on, "x" }
  end
  fake_claude [[{ { { calls = { { name = "t" } } }, { text = "b", cost = 0.5 } } }]]
  run { model = "claude_agent_sdk/m", tools = { echo_tool() }, on = on, "x" }
  command.tidy()
  local nobody = { model = "openai/m", base_url = "http://127.0.0.1:1", on = on, "x" }
  nobody.retries = 0
  run(nobody)
  nobody.retries, nobody.fallback = 1, { "demo/echo" }
  run(nobody)
  run { model = "demo/echo", on = function(e)
    on(e)
    if e.type == "content" then
      error("this observer fails")
    end
  end, "x" }
  local report = function(_, ctx) ctx:progress(0.5, "half") end
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(report) }, on = on, "x" }
  local registry = ah.registry { echo_tool(report) }
  run { model = ah.scripted { { calls = { { name = "outer" } } }, "done" }, on = on, "x",
    policies = { { shadow = true, before = function() return "deny", "no" end } },
    tools = { ah.tool { name = "outer", description = "Calls another.",
      handler = function() return registry:execute("t").content end } } }
  local wonder = function(_, ctx) return ctx:ask { question = "?", default = "d", timeout = 9 } end
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(wonder) }, on = on,
    asks = function() return "r" end, "x" }
  local inner = function() return run { model = "demo/echo", on = on, "x" }.text end
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(inner) }, "x" }
  local function mapping()
    ah.map({ 1, 2 }, function()
      return run { model = ah.scripted { { text = "a", usage = usage } }, "x" }.text
    end, { progress = true, concurrency = 1 })
  end
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(mapping) }, on = on, "x" }
  run { model = ah.scripted {}, on = on, "x" }
  run { model = ah.scripted { { calls = { { name = "handoff_to_other" } } } }, on = on, "x",
    tools = { ah.handoff { to = ah.agent { name = "other", model = "demo/echo" }, when = "x" } } }
  run { name = "named", model = "demo/echo", on = on, "x" }
  run { model = ah.scripted { '{"n":1}' }, on = on, "x", output = ah.schema { type = "object",
    properties = { n = { type = "integer" } } } }
  run { model = ah.scripted { CALL, "begun", "done" }, on = on, "x", tools = { ah.tool {
    name = "t", description = "T.", background = true, handler = function() return 1 end } } }
  local late = ah.tool { name = "late", description = "Late." }
  local function come_and_go(_, ctx)
    ctx:add_tools { late }
    ctx:remove_tools "t"
  end
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(come_and_go) }, on = on, "x" }
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool(error) }, on = on, "x" }
  run { model = ah.scripted { { calls = { { name = "read_section",
    arguments = { section_key = "s" } } } }, "done" }, on = on, "x",
    prompt = ah.prompt { ah.section { key = "s", template = "T", summary = "S",
      visibility = "summary", tools = { late } } } }
  local Thing = ah.entity { name = "Thing" }
    :tool { name = "m", description = "M.", handler = function() end }
  run { model = ah.scripted { CALL, "done" }, on = on, discover = true, "x",
    tools = { echo_tool(function() return Thing { id = 1 } end) } }
  run { model = ah.scripted { CALL, "done" }, on = on, "x",
    tools = { echo_tool(come_and_go), ah.tool { name = "late", description = "Another." } } }
  run { model = ah.scripted { CALL, "done" }, tools = { echo_tool() }, on = on, "x",
    policies = { { after = function() return "ask" end } }, approve = function() return true end }
  local store <close> = assert(ah.store { engine = "memory" })
  local kept <close> = assert(ah.agent { store = store, id = "kept", on = on,
    tools = { echo_tool() }, policies = { function() return "ask", "why" end },
    model = ah.scripted { CALL, "done" } })
  assert.equal("waiting", select(2, kept:run "x").code)
  assert(store:respond("kept", "1", true))
  assert(kept:run())
  local path = os.tmpname()
  local agent = ah.agent { model = "demo/echo", tools = { echo_tool() } }
  assert(agent:run "x" and agent:save(path))
  assert(ah.load(path, { tools = { ah.tool { name = "t", description = "Else." } }, on = on,
    log = function() end })):run "y"
  os.remove(path)
end

local function kind_of(value)
  if math.type(value) == "integer" then
    return "integer"
  end
  return type(value) == "table" and "list" or type(value)
end

describe("docs/reference/events.md", function()
  local COMMON = { type = "string", run = "integer", time = "number", parent = "integer" }
  local documented = members_in(EVENTS, "## All events")

  it("has the events that the library knows, and no others", function()
    local list = markdown.read("src/model/event.h"):match "AH_EVENT_LIST%(X%)(.-)\n\n"
    local known = {}
    for name in list:gmatch '"([%l_]+)"' do
      known[name] = true
    end
    assert.same(known, keys(documented))
    for name in pairs(documented) do
      assert.is_true(pcall(ah.agent, { model = "demo/echo", on = { [name] = print } }), name)
    end
  end)

  it("has every field that is seen, with its type, and none that is not", function()
    local seen = {}
    flows(function(e)
      seen[e.type] = seen[e.type] or {}
      for name, value in pairs(e) do
        local told = COMMON[name] or documented[e.type][name]
        local kind = kind_of(value)
        assert(told == kind or told == "any" or (told == "table" and kind == "list")
          or (told == "number" and kind == "integer"),
          ("%s.%s: the page says %s, found %s"):format(e.type, name, told, kind))
        seen[e.type][name] = not COMMON[name] or nil
      end
    end)
    for type, fields in pairs(documented) do
      assert.same(keys(fields), seen[type], type)
    end
  end)

  it("names the events in the order in which they come", function()
    local order, at = markdown.section(EVENTS, "## Order"), 0
    local come = {}
    run { model = ah.scripted { { text = "a", calls = { { name = "t" } } }, "b" },
      tools = { echo_tool() }, on = function(e) come[#come + 1] = e.type end, "x" }
    for i = 1, 8 do
      at = assert(order:find("%f[%a_]" .. come[i] .. "%f[^%a_]", at + 1), come[i])
    end
    assert.same({ "start", "done" }, { come[1], come[#come] })
  end)

  it("shows an event that is one", function()
    local shown
    for _, block in ipairs(markdown.blocks("docs/reference/events.md")) do
      shown = block.kind == "json" and assert(ah.json.decode(block.text)) or shown
    end
    local expected = set { "type", "run", "time" }
    for name in pairs(documented[shown.type]) do
      expected[name] = name ~= "parent_call" or nil -- only for calls that code makes
    end
    expected.error = nil -- absent if nothing was raised
    expected.ticket = nil -- only for background calls
    assert.same(expected, keys(shown))
  end)
end)

describe("docs/reference/embedding.md", function()
  it("names the fields of ah.run that JSON cannot say, and no others", function()
    local told, refused = set { "text" }, set { "text" }
    for _, row in ipairs(markdown.tables(markdown.section(EMBEDDING, "## Agents"))[1]) do
      for _, name in ipairs(row[2]:find "^refused" and markdown.names(row[1]) or {}) do
        told[name] = true
      end
    end
    for _, subject in ipairs(ah._options()) do
      for _, row in ipairs(subject.type == "ah.Config" and subject.rows or {}) do
        refused[row.name] = not row.json or nil
      end
    end
    assert.same(refused, told)
  end)
end)

describe("docs/reference/testing.md", function()
  it("has what agenthost.testing has", function()
    assert.same(keys(require "agenthost.testing"),
      names_in(markdown.read("docs/reference/testing.md"), "# Testing a script"))
  end)
end)

describe("docs/reference/registry.md", function()
  local PAGE = markdown.read("docs/reference/registry.md")

  it("has the methods of registries and the fields of their replies", function()
    local registry = ah.registry { echo_tool() }
    assert.same(keys(getmetatable(registry).__index), names_in(PAGE, "## ah.registry", 1))
    local seen = keys(registry:execute "t")
    for name in pairs(registry:execute("t", { n = "x" })) do
      seen[name] = true
    end
    assert.same(seen, names_in(PAGE, "## ah.registry", 2))
  end)
end)

-- -- the Lua API -------------------------------------------------------------------------

describe("docs/reference/lua.md", function()
  it("lists all there is in agenthost, and nothing else", function()
    local listed, there = {}, {}
    for _, row in ipairs(markdown.tables(LUA)[1]) do
      for _, name in ipairs(markdown.names(row[1])) do
        listed[name] = true
      end
    end
    for name, value in pairs(ah) do
      if name == "json" or name == "schema" or name == "terminal" then
        for inner in pairs(value) do
          there["ah." .. name .. "." .. inner] = true
        end
      end
      if name ~= "json" and name:sub(1, 1) ~= "_" then
        there["ah." .. name] = true
      end
    end
    listed["ah.run"] = true -- the head of the table is its first row
    assert.same(there, listed)
  end)

  it("has no field of ah.run that is refused as unknown", function()
    for name in pairs(names_in(LUA, "## ah.run", 1)) do
      local ok, err = pcall(ah.run, { [name] = setmetatable({}, {}), "x" })
      assert.falsy(not ok and tostring(err):find("unknown field", 1, true), name)
    end
  end)

  it("has the defaults of the requests' limits", function()
    local source = markdown.read("src/io/http.c")
    local limits = source:match("ah_http_limits_default = (%b{})")
    local number = { connect_timeout = 10, idle_timeout = 300, total_timeout = 600,
      max_header = 64 << 10, max_body = 64 << 20 }
    for _, row in ipairs(markdown.tables(markdown.section(LUA, "## ah.run"))[3]) do
      assert.equal(number[row[1]:match("`(.-)`")], tonumber(row[3]), row[1])
    end
    for _, words in ipairs { "10 * 1000", "300 * 1000", "600 * 1000", "64 << 10", "64 << 20" } do
      assert.truthy(limits:find(words, 1, true), words)
    end
  end)

  it("has the methods of agents and schemas", function()
    local agent = ah.agent { model = "demo/echo" }
    local members = keys(getmetatable(agent).methods)
    members.id, members.unfinished = true, true
    assert.same(members, names_in(LUA, "## ah.agent"))
    local source = markdown.read("src/lua/lua_schema.c"):match("methods%[%] = (%b{})")
    local methods = {}
    for name in source:gmatch('{"([^"]+)"') do
      methods[name] = true
    end
    assert.same(methods, names_in(LUA, "## ah.schema"))
  end)

  it("has the keywords of schemas", function()
    local text, named = markdown.section(LUA, "## ah.schema"), {}
    for words in text:gmatch("`([%a%s$]+)`") do
      for word in words:gmatch("%S+") do
        named[word] = true
      end
    end
    local source = markdown.read("src/schema/compile.c")
    local n = 0
    for word in source:gmatch('\n    {"([%a$]+)", [%u_ |]+,') do
      assert.truthy(named[word], word)
      n = n + 1
    end
    assert.is_true(n > 50)
  end)

  it("has the fields of replies, and of their usage and messages", function()
    local last = { text = "{}", usage = { cost = 1 } }
    local reply = ah.run { model = ah.scripted { CALL, last }, tools = { echo_tool() },
      name = "n", system = "s", output = { type = "object" }, "x" }
    local source = markdown.read("src/lua/lua_reply.c"):match("reply_index(.+)")
    local there = {}
    for name in source:gmatch('strcmp%(key, "([^"]+)"%)') do
      there[name] = true
    end
    local documented = names_in(LUA, "### The reply")
    assert.same(there, documented)
    for name in pairs(documented) do
      assert.is_not_nil(reply[name], name)
    end
    local usage = markdown.section(LUA, "### The reply"):match("tokens of this run:(.-)|")
    for name in pairs(reply.usage) do
      assert.truthy(usage:find("`" .. name .. "`", 1, true), name)
    end
    local fields = names_in(LUA, "### Messages")
    for _, message in ipairs(reply.messages) do
      for name in pairs(message) do
        assert.truthy(fields[name], name)
      end
    end
  end)

  it("has the fields of ctx", function()
    local documented, seen = names_in(LUA, "### What a handler may do"), nil
    local function look(_, ctx)
      seen = {}
      for name in pairs(documented) do
        seen[name] = ctx[name] ~= nil
      end
    end
    run { model = ah.scripted { CALL, "done" }, timeout = 5, tools = { echo_tool(look) },
      budget = { requests = 9 }, resources = { files = ah.filesystem { memory = true } },
      store = ah.store { engine = "memory" }, id = "x", ah.section { key = "s" }, "x" }
    for name, there in pairs(assert(seen)) do
      assert.is_true(there, name)
    end
    local source = markdown.read("src/lua/lua_ctx.c")
    for name in source:match("ctx_index(.-)ctx_newindex"):gmatch('strcmp%(key, "([^"]+)"%)') do
      assert.truthy(documented[name], name)
    end
    for name in source:gmatch('{"([%l_]+)", push_') do
      assert.truthy(documented[name], name)
    end
    for name in source:match("methods%[%] = (%b{})"):gmatch('{"([^"]+)"') do
      assert.truthy(documented[name], name)
    end
  end)

  it("has the codes and the fields of errors", function()
    local codes = c_list("src/base/err.c", "codes%[%]")
    codes.ok = nil
    assert.same(codes, names_in(LUA, "## Errors", 2))
    for code in pairs(codes) do
      assert.equal(code .. ": why", tostring(ah.error { code = code, message = "why" }))
    end
    local fields = names_in(LUA, "## Errors", 1)
    local unknown = { calls = { { name = "nobody" } } }
    for _, case in ipairs {
      { model = ah.scripted { CALL, CALL }, max_iterations = 1 },
      { model = ah.scripted { unknown }, on_unknown_tool = "throw" },
      { model = ah.scripted { { fail = { message = "m", status = 400, code = "context_full",
        window = 1, used = 2 } } } },
      { model = ah.scripted { CALL, CALL, CALL, CALL, CALL, CALL } },
      { model = ah.scripted { "a" }, options = { max_tokens = 9 },
        budget = { output_tokens = 8, reserve = true } },
      { model = ah.scripted { CALL }, max_restarts = 0, tools = { echo_tool(function()
        error(ah.error { code = "visibility_expansion_required", message = "m",
          section_keys = { "a" } })
      end) } },
    } do
      case.tools, case[1] = case.tools or { echo_tool() }, "x"
      local _, err = run(case)
      for name in pairs(err) do
        assert.truthy(fields[name], name)
        fields[name] = 1
      end
    end
    for _, wrong in ipairs {
      function()
        ah.prompt { ah.section { key = "a", tools = { echo_tool() } },
          ah.section { key = "b", tools = { ah.tool { name = "t", description = "A tool.",
            params = ah.type { name = "Typed", fields = {} } } } } }
      end,
      function()
        ah.prompt { ah.section { key = "a", template = "${x}" } }
      end,
      function()
        local Class = ah.entity { name = "Class" }
        ah.tools_of(Class {})
      end,
    } do
      local _, err = pcall(wrong)
      for name in pairs(err) do
        assert.truthy(fields[name], name)
        fields[name] = 1
      end
    end
    local asker = echo_tool(function(_, ctx)
      local _, err = ctx:ask { question = "?" }
      for name in pairs(err) do
        assert.truthy(fields[name], name)
        fields[name] = 1
      end
    end)
    run { model = ah.scripted { CALL, "done" }, tools = { asker }, "x" }
    fields.is = nil
    for name, found in pairs(fields) do
      assert.equal(1, found, name .. " was never seen")
    end
  end)

  it("has what becomes of a handler's results", function()
    local shy = { message = "m", value = 1, exclude_value_from_context = true }
    local invalid = ah.error { code = "tool_validation", message = "why" }
    local says = {
      [function() return { a = 1 } end] = '{"a":1}',
      [function() return "text" end] = "text",
      [function() end] = "OK",
      [function() return nil end] = "null",
      [function() return ah.ok(nil) end] = "null",
      [function() return nil, "why" end] = "why",
      [function() return ah.run { model = "demo/echo", "text" } end] = "text",
      [function() return 1, "why" end] = "1",
      [function() return ah.ok(1, "one") end] = "one\n\n1",
      [function() return ah.fail("why") end] = "why",
      [function() error("why") end] = "Tool 't' execution failed: why",
      [function() error(invalid) end] = "Tool validation failed: why",
      [function() return ah.result(shy) end] = "m",
    }
    for handler, content in pairs(says) do
      local model = ah.scripted { CALL, "done" }
      local reply = run { model = model, tools = { echo_tool(handler) }, "x" }
      assert.equal(content, reply.messages[3].content)
    end
  end)

  it("has which errors of a handler end the run", function()
    local row = LUA:match("\n(| raises an error of code[^\n]+)")
    local ends = set(markdown.names(row:match("^|([^|]+)|")))
    for code in pairs(names_in(LUA, "## Errors", 2)) do
      local _, err = run { model = ah.scripted { CALL, "done" }, "x",
        tools = { echo_tool(function() error(ah.error { code = code, message = "why" }) end) } }
      assert.equal(ends[code] and code or nil, err and err.code)
    end
  end)

  it("has the exit code of each error", function()
    local binary = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"
    local script = [[echo 'error(require("agenthost").error { code = "%s", message = "m" })' |
      %s -q - 2>/dev/null]]
    for _, row in ipairs(markdown.tables(markdown.section(LUA, "## Errors"))[2]) do
      for _, code in ipairs(markdown.names(row[1])) do
        local _, _, exit = os.execute(script:format(code, binary))
        assert.equal(tonumber(row[3]), exit, code)
      end
    end
  end)
end)

-- -- files -------------------------------------------------------------------------------

describe("docs/reference/models.md", function()
  it("has the providers there are, with all variables they look at", function()
    local page = markdown.read("docs/reference/models.md")
    page = markdown.section(page, "## Addresses and keys")
    local listed, known = {}, { ollama_chat = true, claude_agent_sdk = true }
    for _, rows in ipairs(markdown.tables(page)) do
      for _, row in ipairs(rows) do
        for _, name in ipairs(markdown.names(row[1])) do
          listed[name] = true
        end
      end
    end
    local files <close> = assert(io.popen "grep -l ah_service src/wire/*.c; ls src/wire/servers.c")
    for path in files:lines() do
      local source = markdown.read(path)
      for name in source:gmatch('%.name = "([%w_]+)",%s*%.ur') do
        known[name] = true
      end
      for variable in source:gmatch('"([%u_]+_[%u_]+)"') do
        assert.truthy(page:find("`" .. variable .. "`", 1, true) or
          variable:find("_API_BASE$"), variable)
      end
    end
    assert.same(known, listed)
  end)
end)

describe("docs/reference/filesystem.md", function()
  it("has the defaults of its limits", function()
    local source = markdown.read("src/base/backing.c"):match("enum {%s+DEFAULT_FILE.-}")
    local words = { max_file = "FILE = 8 << 20", max_total = "TOTAL = 64 << 20",
      max_files = "FILES = 10000", max_depth = "DEPTH = 32" }
    local number = { max_file = 8 << 20, max_total = 64 << 20, max_files = 10000, max_depth = 32 }
    for _, row in ipairs(markdown.tables(markdown.section(FILES, "## ah.filesystem"))[1]) do
      local name = markdown.names(row[1])[1]
      assert.equal(number[name], tonumber(row[3]), name)
      assert.truthy(not words[name] or source:find(words[name], 1, true), name)
    end
  end)

  it("has the methods, with their options", function()
    local source = markdown.read("src/lua/lua_fs.c")
    local methods = set {}
    for name in source:match("methods%[%] = (%b{})"):gmatch('{"([^"]+)"') do
      methods[name] = true
    end
    assert.same(methods, names_in(FILES, "## Methods"))
    for _, row in ipairs(markdown.tables(markdown.section(FILES, "## Methods"))[1]) do
      local name, told = markdown.names(row[1])[1], {}
      for word in (row[3]:match("^`fs:%l+%(.-{ (.-) }%)") or ""):gmatch("[%l_]+") do
        told[word] = true
      end
      assert.same(options_of("filesystem:" .. name), told, name)
    end
  end)

  it("has the reasons of errors, and the names that are refused", function()
    local reasons = set {}
    for name in markdown.read("src/base/backing.c"):gmatch('%[AH_FS_[%u_]+%] = "([%l_]+)"') do
      reasons[name] = true
    end
    assert.same(reasons, names_in(FILES, "## Errors"))
    local told = markdown.section(FILES, "### Names that are refused"):match("\n\n(`%.git` .-)\n\n")
    assert.same(c_list("src/base/path.c", "refused%[%]"), set(markdown.names(told)))
  end)
end)

-- -- limits ------------------------------------------------------------------------------

-- The place of each row's value in the code, in the order of the page; nil: the code has none.
local IN_CODE = {
  ["model calls"] = "src/lua/lua_agent_fields.c DEFAULT_ITERATIONS",
  ["retries of a request"] = "src/lua/lua_agent_fields.c DEFAULT_RETRIES",
  ["tools"] = "src/run/inject.h AH_MAX_TOOLS",
  ["strategies"] = "src/lua/lua_inject.c MAX_STRATEGIES",
  ["tools that searches can find"] = "src/run/search.h AH_SEARCH_TOOLS_MOST",
  ["tools in the result of a search"] = "src/run/search.h AH_SEARCH_MAX",
  ["state of a strategy"] = "src/lua/lua_moment.c MAX_STATE",
  ["result that a strategy gives for a call"] = "src/run/inject.c MAX_ANSWER",
  ["depth of entities that add tools"] = "src/run/discover.h AH_ENTITY_SLOT_DEPTH",
  ["budgets of a run and the runs around it"] = "src/run/budget.h AH_MAX_BUDGETS",
  ["values of an entity that are copied"] = "src/lua/lua_entity_call.c MAX_NODES",
  ["restarts for injected tools"] = "src/run/inject.h AH_MAX_RESTARTS",
  ["equal calls that cause a warning"] = "src/run/loop_detector.h AH_LOOP_WARN",
  ["equal calls that end the run"] = "src/run/loop_detector.h AH_LOOP_STOP",
  ["calls that a call is compared with"] = "src/run/loop_detector.c window",
  ["calls that are searched for patterns"] = "src/run/loop_detector.c pattern_window",
  ["calls of unknown tools in a row"] = "src/run/run_turn.c MAX_UNKNOWN",
  ["calls in one answer"] = "src/wire/assemble.h AH_MAX_CALLS",
  ["one image"] = "src/model/image.h AH_IMAGE_MAX",
  ["images of one request, as base64"] = "src/model/image.h AH_IMAGES_MAX",
  ["arguments of one call"] = "src/wire/assemble.h AH_MAX_ARGUMENTS",
  ["text of one answer"] = "src/wire/assemble.h AH_MAX_TEXT",
  ["one entry of the conversation"] = "src/model/transcript.c MAX_ENTRY",
  ["one request"] = "src/wire/lower.c MAX_BODY",
  ["background calls of an agent that are outstanding"] = "src/model/transcript.h AH_MAX_TICKETS",
  ["handoffs in a run"] = "src/lua/lua_handoff.h AH_MAX_HANDOFFS",
  ["runs inside runs"] = "src/host/host.h AH_MAX_DEPTH",
  ["time at work, without a `timeout`"] = "src/host/host.h AH_WORK_MS",
  ["memory"] = "src/model/tool.h AH_TOOL_MEMORY",
  ["result for the model"] = "src/model/tool.h AH_TOOL_RESULT",
  ["result as JSON"] = "src/lua/lua_result.c MAX_VALUE",
  ["response to an ask"] = "src/host/ask.h AH_MAX_RESPONSE",
  ["reason of a policy or an approval"] = "src/run/hooks.h AH_MAX_REASON",
  ["message of an error"] = "src/base/err.h AH_MAX_MESSAGE",
  ["time to close variables of a stopped call"] = "src/lua/lua_watch.c CLOSE_GRACE_MS",
  ["memory to close variables"] = "src/lua/lua_fence.c CLOSE_GRACE_BYTES",
  ["time to connect"] = "src/io/http.c connect_ms",
  ["time without a byte"] = "src/io/http.c idle_ms",
  ["total time"] = "src/io/http.c total_ms",
  ["bytes of headers"] = "src/io/http.c header_bytes",
  ["bytes of body"] = "src/io/http.c body_bytes",
  ["open files used for connections, fewer if `ulimit -n` is lower"] = "src/io/http.c MOST_FILES",
  ["tasks at work"] = "src/lua/lua_spawn.c MAX_TASKS",
  ["tasks inside tasks"] = "src/lua/lua_spawn.c MAX_DEEP",
  ["calls of `ah.map` at work"] = "lua/agenthost/tasks/map.lua default",
  ["size of a channel, permits of a semaphore"] = "src/lua/lua_channel.c MOST_COUNT",
  ["unread events of a queue"] = "src/lua/lua_events.c DEFAULT_EVENTS",
  ["bytes of these events"] = "src/lua/lua_events.c MAX_BYTES",
  ["levels of JSON"] = "src/base/json.h AH_JSON_MAX_DEPTH",
  ["output of `ah.json.encode`"] = "src/lua/lua_value.c MAX_TEXT",
  ["text of [YAML](yaml.md)"] = "src/io/yaml.h AH_YAML_MAX",
  ["levels of YAML"] = "src/io/yaml.h AH_YAML_DEPTH",
  ["anchors in YAML"] = "src/io/yaml.h AH_YAML_ANCHORS",
  ["aliases in YAML"] = "src/io/yaml.h AH_YAML_ALIASES",
  ["JSON that aliases of YAML repeat"] = "src/io/yaml.h AH_YAML_REPEATED",
  ["files and folders of `ah.watch`"] = "src/io/file_watch.h AH_FILE_WATCH_MAX",
  ["bytes of `ah.random_bytes`"] = "src/lua/lua_bytes.c MAX_RANDOM",
  ["text of a schema"] = "src/schema/program.h SCHEMA_TEXT",
  ["levels of a schema"] = "src/schema/program.h SCHEMA_DEPTH",
  ["steps of a check"] = "src/schema/program.h SCHEMA_STEPS",
  ["backtracking of one match of a pattern"] = "src/base/pattern.c LAST_LIMIT",
  ["steps of a search in files (`glob`, `grep`)"] = "src/state/fs.h AH_FS_STEPS",
  ["reported faults"] = "src/schema/schema.h AH_MAX_FAULTS",
  ["name of a tool"] = "src/model/tool.c MAX_NAME",
  ["description of a tool"] = "src/model/tool.c MAX_DESCRIPTION",
  ["full description of a tool"] = "src/model/tool.h AH_TOOL_MAX_DESCRIPTION",
}

local UNITS = { s = 1000, KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30 }

-- Returns the value of a constant or a member in C.
local function c_value(where)
  local path, name = where:match("^(%S+) (%S+)$")
  local source, pattern = markdown.read(path), "([%w_]*)%f[%w_]" .. name .. " = ([^,;}/]+)"
  for before, expression in source:gmatch(pattern) do
    if before == "" and not expression:find("%a") or expression:find("^%(size_t%)") then
      return load("return " .. expression:gsub("%(size_t%)", ""))()
    end
  end
  error(where .. " is not there")
end

describe("docs/reference/limits.md", function()
  local rows = {}
  for _, t in ipairs(markdown.tables(LIMITS)) do
    for _, row in ipairs(t.head[1] == "function" and {} or t) do -- watch_spec.lua checks these
      row.set = t.head[3] == "set with" and markdown.names(row[3]) or {}
      rows[#rows + 1] = row
    end
  end

  it("has the values of the code, and all of them", function()
    local missing = {}
    for name in pairs(IN_CODE) do
      missing[name] = true
    end
    for _, row in ipairs(rows) do
      local number, unit = row[2]:match("^(%d+) ?(%a*)$")
      assert(IN_CODE[row[1]] or row[2] == "none", row[1])
      if number then
        assert.equal(c_value(IN_CODE[row[1]]), tonumber(number) * (UNITS[unit] or 1), row[1])
        missing[row[1]] = nil
      end
    end
    assert.same({}, missing)
  end)

  it("names fields that are there, and every field that is a limit", function()
    local fields = { ["ah.run"] = names_in(LUA, "## ah.run", 1),
      http = names_in(LUA, "## ah.run", 3),
      loop_detector = names_in(LUA, "## ah.run", 4), ["ah.tool"] = names_in(LUA, "## ah.tool", 1),
      ["ah.search"] = names_in(markdown.read("docs/reference/search.md"), "## ah.search", 1),
      ["ah.map"] = names_in(markdown.read("docs/reference/tasks.md"), "## ah.map", 1),
      ["agent:events"] = names_in(EVENTS, "## A queue of events", 1) }
    local named = {}
    for _, row in ipairs(rows) do
      for i = 2, #row.set do
        assert.is_true(fields[row.set[1]][row.set[i]], row.set[i])
        named[row.set[i]] = true
      end
    end
    for _, list in pairs(fields) do
      for name in pairs(list) do
        local limit = name:find("^max_") or name:find("timeout$") or name:find("window$")
        assert.truthy(named[name] or not limit, name)
      end
    end
  end)

  it("has the defaults that docs/reference/lua.md tells", function()
    local places = { ["ah.run"] = { "## ah.run", 1 }, http = { "## ah.run", 3 },
      loop_detector = { "## ah.run", 4 }, ["ah.tool"] = { "## ah.tool", 1 } }
    local seconds = { s = 1 }
    for _, row in ipairs(rows) do
      local number, unit = row[2]:match("^(%d+) ?(%a*)$")
      local place = places[row.set[1]]
      local told_of = place and markdown.tables(markdown.section(LUA, place[1]))[place[2]]
      for _, told in ipairs(told_of or {}) do
        if markdown.names(told[1])[1] == row.set[2] and tonumber(told[3]) then
          assert.equal(tonumber(told[3]), number * (seconds[unit] or UNITS[unit] or 1), row[1])
        end
      end
    end
  end)
end)

-- -- prompts -----------------------------------------------------------------------------

describe("docs/reference/prompts.md", function()
  it("has the members of sections, prompts and of what is rendered", function()
    local function members(from)
      local names = {}
      local body = markdown.read("src/lua/" .. from[1]):match(from[2] .. "(.-)\n}")
      for name in body:gmatch('strcmp%(key, "([^"]+)"%)') do
        names[name] = true
      end
      return names
    end
    assert.same(members { "lua_section.c", "int section_index" },
      names_in(PROMPTS, "## Sections", 2))
    local prompt = members { "lua_prompt.c", "int prompt_index" }
    local methods = markdown.read("src/lua/lua_prompt.c"):match("methods%[%] = (%b{})")
    for name in methods:gmatch('{"([^"]+)"') do
      prompt[name] = true
    end
    assert.same(prompt, names_in(PROMPTS, "## Prompts", 2))
    assert.same(members { "lua_prompt.c", "int rendered_index" },
      names_in(PROMPTS, "## Rendering", 1))
  end)
end)

-- -- sessions -----------------------------------------------------------------------------

describe("docs/reference/sessions.md", function()
  local function methods_of(path, list)
    local names = {}
    local body = markdown.read(path):match("luaL_Reg " .. list .. "%[%] = (%b{})")
    for name in assert(body, list):gmatch('{"([^"]+)"') do
      names[name] = true
    end
    names.__len, names.__tostring = nil, nil
    return names
  end

  it("has the fields of resources and the methods of ctx.resources", function()
    local function keys_in(path, list)
      local names = set {}
      for name in markdown.read(path):match(list .. " = (%b{})"):gmatch("([%l_]+) =") do
        names[name] = true
      end
      return names
    end
    assert.same({ provide = true, scope = true, close = true }, -- of ah.ResourceConfig
      names_in(SESSIONS, "## Resources", 1))
    assert.same(keys_in("lua/agenthost/resources.lua", "__index"),
      names_in(SESSIONS, "## Resources", 2))
  end)

  it("has the methods of sessions, slices, views and dispatchers", function()
    assert.same(methods_of("src/lua/lua_session.c", "methods"),
      names_in(SESSIONS, "## Sessions", 2))
    assert.same(methods_of("src/lua/lua_session.c", "slice_methods"),
      names_in(SESSIONS, "## Sessions", 4))
    assert.same(methods_of("src/lua/lua_reduce.c", "methods"), names_in(SESSIONS, "### Reducers"))
    assert.same(methods_of("src/lua/lua_dispatcher.c", "methods"),
      names_in(SESSIONS, "## Dispatchers"))
  end)

  it("shows a snapshot that can be restored", function()
    local Item = ah.type { name = "Item", fields = { name = "string", count = "integer" } }
    local session = ah.session { types = { Item } }
    for _, block in ipairs(markdown.blocks("docs/reference/sessions.md")) do
      if block.kind == "json" then
        assert(session:restore(block.text))
        assert.equal(block.text, session:snapshot() .. "\n")
      end
    end
    assert.equal(2, #session[Item])
  end)
end)

-- -- scripted models ---------------------------------------------------------------------

-- Returns the names of the fields that are read.
local function rows_of(type_name)
  local names = {}
  for _, subject in ipairs(ah._options()) do
    for _, row in ipairs(subject.type == type_name and subject.rows or {}) do
      names[row.name] = true
    end
  end
  return names
end

describe("docs/reference/scripted.md", function()
  it("has the fields of a turn and of what it expects", function()
    assert.same(rows_of "ah.Turn", names_in(SCRIPTED, "## Turns", 1))
    assert.same(rows_of "ah.Expect", names_in(SCRIPTED, "## Turns", 3))
    local meets = { user = "x", system = "s", tools = { "t" }, model = "script", calls = {} }
    for name in pairs(rows_of "ah.Expect") do
      local turn = { expect = { [name] = meets[name] or "1" }, text = "done" }
      local turns = name == "result" and { CALL, turn } or { turn }
      assert(run { model = ah.scripted(turns), system = "s", tools = { echo_tool() }, "x" })
    end
  end)

  it("has the fields of a rule's `when`", function()
    assert.same(rows_of "ah.When", names_in(SCRIPTED, "## Rules"))
  end)

  it("has the fields of a request", function()
    local listed = set {}
    for name in SCRIPTED:match("A `request` is `{ (.-) }`"):gmatch("%a+") do
      listed[name] = true
    end
    local asked
    run { model = ah.scripted(function(request) asked = request return "done" end), "x" }
    assert.same(keys(asked), listed)
  end)

  it("has the models of demo/", function()
    for name in pairs(names_in(SCRIPTED, "## Demo models")) do
      assert(run { model = name, "Hello" })
    end
    local source = markdown.read("lua/agenthost/providers/demo.lua"):match("local models = (%b{})")
    for name in source:gmatch("(%a+) =") do
      assert.truthy(SCRIPTED:find("`demo/" .. name .. "`", 1, true), name)
    end
  end)
end)

-- -- transcripts -------------------------------------------------------------------------

describe("docs/reference/transcript.md", function()
  local documented = members_in(TRANSCRIPT, "## Entries")
  local blocks = markdown.blocks("docs/reference/transcript.md")
  local shown

  setup(function()
    for _, block in ipairs(blocks) do
      shown = block.kind == "json" and assert(ah.json.decode(block.text)) or shown
    end
  end)

  -- Makes a conversation with every kind of entry that this version writes.
  local function conversation()
    local late = ah.tool { name = "late", description = "Late." }
    local noting = function(_, ctx)
      ctx:note("noted")
      ctx:add_tools(late)
      ctx:remove_tools "t"
    end
    local reply = run { model = ah.scripted { CALL, "done" }, system = "s",
      options = { temperature = 0 }, tools = { echo_tool(noting) },
      strategies = { function(m) m.state = { n = 1 } end,
        ah.search { tools = { ah.tool { name = "far", description = "Far." } } } }, "x" }
    return ah.json.decode(reply:transcript())
  end

  local function check_entry(entry)
    for name, value in pairs(entry) do
      local told = name == "type" and "string" or documented[entry.type][name]
      local kind = kind_of(value)
      local right = told
        and (told:find(kind, 1, true) or (kind == "list" and told:find("object", 1, true)))
      assert(right,
        ("%s.%s: the page says %s, found %s"):format(entry.type, name, told, kind))
    end
    for name, kind in pairs(documented[entry.type]) do
      assert(entry[name] ~= nil or kind:find("may be absent", 1, true),
        ("%s.%s is not there"):format(entry.type, name))
    end
  end

  -- Returns the type and member names at all levels; values of the same shape give equal results.
  local function shape(value)
    if type(value) ~= "table" then
      return kind_of(value)
    end
    local s = {}
    for key, inner in pairs(value) do
      s[key] = shape(inner)
    end
    return s
  end

  it("has the entries that the library knows, and no others", function()
    assert.same(c_list("src/model/transcript.c", "names%[AH_ENTRY_KINDS%]"), keys(documented))
  end)

  it("has every member of the entries that are written, and no others", function()
    local seen = {}
    for _, entry in ipairs(conversation().entries) do
      seen[entry.type] = true
      check_entry(entry)
    end
    for name in pairs(documented) do
      local row = TRANSCRIPT:match("\n(| `" .. name .. "`[^\n]+)")
      assert.equal(not row:find("not written by this version", 1, true), seen[name] or false, name)
    end
  end)

  it("shows a conversation of that shape", function()
    for _, entry in ipairs(shown.entries) do
      check_entry(entry)
    end
    local real, types = {}, {}
    for _, entry in ipairs(conversation().entries) do
      real[entry.type .. (entry.tool_calls and "+" or "")] = shape(entry)
    end
    for _, entry in ipairs(shown.entries) do
      types[#types + 1] = entry.type
      if not entry.type:find("^tools_") then
        assert.same(real[entry.type .. (entry.tool_calls and "+" or "")], shape(entry), entry.type)
      end
    end
    assert.equal("settings prompt tools_added user assistant tool_result note assistant",
      table.concat(types, " "))
    assert.equal(1, conversation().agenthost_transcript)
  end)

  it("has the members of the whole and of a turn at work", function()
    local whole = names_in(TRANSCRIPT, "## The whole")
    local pending = names_in(TRANSCRIPT, "## A turn being worked on")
    local agent, at_work
    agent = ah.agent { model = ah.scripted { CALL, "done" }, tools = { echo_tool(function()
      at_work = ah.json.decode(agent:transcript())
    end) } }
    agent:run("x")
    whole.session = nil -- in files only
    assert.same(keys(at_work), whole)
    assert.same(keys(at_work.pending), pending)
  end)
end)
