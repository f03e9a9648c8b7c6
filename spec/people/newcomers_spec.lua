-- Habits from other libraries, first guesses, and their results: lists with names, lists in lists,
-- words of other libraries, fields that do not exist. The cases of lists are made from one table of
-- all lists that the library reads, so a list that is read without the shared check fails here.
-- Terminals are in cli_terminal_spec.lua.
local ah = require "agenthost"
local command = require "support.command"

after_each(command.tidy)

local function tool(name)
  return ah.tool { name = name, description = name, handler = function() return name end }
end

local function raised(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok, "nothing was raised")
  return tostring(err)
end

-- -- lists --------------------------------------------------------------------------------

local Note = ah.type { name = "NewcomersNote", fields = { text = "string" } }

local function run(fields)
  return ah.run { model = "demo/echo", log = function() end, "Hello",
    [fields[1]] = fields[2], [fields[3] or "stream"] = fields[4] }
end

local function field(name)
  return function(list) return run { name, list } end
end

local function nothing() end
local find, read = tool "find", tool "read"
local image = ah.image { url = "https://example.org/a.png", mime = "image/png" }
local section = ah.section { key = "part", template = "A" }
local other = ah.section { key = "other", template = "B" }

-- Every list of scripts: by its name in the message, how it is given, and two valid values.
local LISTS = {
  ["ah.run: tools"] = { field "tools", find, read },
  ["ah.run: policies"] = { field "policies", nothing, nothing },
  ["ah.run: checks"] = { field "checks", nothing, nothing },
  ["ah.run: guards: input"] = { function(list) return run { "guards", { input = list } } end,
    nothing, nothing },
  ["ah.gate: policies"] = { function(list)
    local set = ah.gate { policies = list }
    ah.gate { policies = {} }
    return set
  end, nothing, nothing },
  ["ah.run: feedback"] = { field "feedback", { every = 1, text = nothing },
    { every = 2, text = nothing } },
  ["ah.run: strategies"] = { field "strategies", { name = "a", after = nothing },
    { name = "b", after = nothing } },
  ["ah.run: messages"] = { field "messages", { role = "user", content = "a" },
    { role = "user", content = "b" } },
  ["ah.run: fallback"] = { field "fallback", "demo/echo", "demo/tools" },
  ["ah.run: loop_detector: exempt"] = { function(list)
    return run { "loop_detector", { exempt = list } }
  end, "find", "read" },
  ["ah.run: options: stop"] = { function(list) return run { "options", { stop = list } } end,
    "a", "b" },
  ["ah.run: messages[1]: content"] = { function(list)
    return run { "messages", { { role = "user", content = list } } }
  end, "a", image },
  ["ah.run: messages[1]: tool_calls"] = { function(list)
    return run { "messages", { { role = "assistant", tool_calls = list },
      { role = "tool", tool_call_id = "1", content = "x" },
      { role = "tool", tool_call_id = "2", content = "x" } } }
  end, { id = "1", name = "a" }, { id = "2", name = "b" } },
  ["ah.run: content"] = { function(list)
    return ah.run { model = "demo/echo", list }
  end, "a", "b" },
  ["ah.section: tools"] = { function(list)
    return ah.section { key = "a", template = "A", tools = list }
  end, find, read },
  ["ah.section: children"] = { function(list)
    return ah.section { key = "a", template = "A", children = list }
  end, section, other },
  ["ah.prompt: sections"] = { function(list)
    return ah.prompt { ns = "newcomers", key = "a", sections = list }
  end, section, other },
  ["ah.session: types"] = { function(list) return ah.session { types = list } end, Note,
    ah.type { name = "NewcomersOther", fields = {} } },
  ["ah.entity: fields"] = { function(list)
    return ah.entity { name = "Newcomer", prefix = "newcomer", fields = list }
  end, "a", "b" },
  ["ah.tool_group: tools"] = { function(list)
    return ah.tool_group { name = "newcomers", tools = list }
  end, find, read },
  ["ah.filesystem: allow"] = { function(list)
    return ah.filesystem { memory = true, allow = list }
  end, ".git", ".ssh" },
  ["ah.http: addresses"] = { function(list)
    return ah.http { url = "http://127.0.0.1:1/", addresses = list }
  end, "public", "10.0.0.0/8" },
  ["session: the values"] = { function(list)
    return ah.session { types = { Note } }[Note]:replace(list)
  end, { text = "a" }, { text = "b" } },
  ["agent:add_tools: tools"] = { function(list)
    return ah.agent { model = "demo/echo" }:add_tools(list)
  end, find, read },
  ["agent:remove_tools"] = { function(list)
    return ah.agent { model = "demo/echo", tools = { find, read } }:remove_tools(list)
  end, "find", "read" },
  ["registry:register_all: tools"] = { function(list)
    return ah.registry {}:register_all(list)
  end, find, read },
  ["registry:pick"] = { function(list)
    local registry = ah.registry {}
    registry:register(find)
    registry:register(read)
    return registry:pick(list)
  end, "find", "read" },
  ["ah.unlock: tools"] = { function(list) return ah.unlock { tools = list, when = nothing } end,
    find, read },
  ["ah.unlock: after"] = { function(list) return ah.unlock { tools = "x", after = list } end,
    find, read },
  ["ah.phases: phases"] = { function(list) return ah.phases { phases = list } end,
    { name = "a", tools = "find" }, { name = "b", tools = "read" } },
  ["ah.phases: phase 'a': tools"] = { function(list)
    return ah.phases { phases = { { name = "a", tools = list } } }
  end, find, read },
  ["ah.unfold: more: tools"] = { function(list)
    return ah.unfold { name = "more", description = "More.", tools = list }
  end, find, read },
  ["ah.unfold: more: category 'x'"] = { function(list)
    return ah.unfold { name = "more", description = "More.", categories = { x = list } }
  end, find, read },
  ["ah.search: tools"] = { function(list) return ah.search { tools = list } end, find, read },
  ["ah.tool: examples"] = { function(list)
    return ah.tool { name = "t", description = "T.", params = { a = "integer" }, handler = nothing,
      examples = list }
  end, { description = "One.", input = { a = 1 }, output = 1 },
    { description = "Two.", input = { a = 2 }, output = 2 } },
  ["ah.policies.requires: after"] = { function(list)
    return ah.policies.requires { tool = "x", after = list }
  end, "find", "read" },
  ["ah.policies.read_before_write: read"] = { function(list)
    return ah.policies.read_before_write { read = list, write = "write" }
  end, "find", "read" },
  ["ah.scripted: turns"] = { function(list) return ah.scripted(list) end, "a", "b" },
  ["ah.scripted: rules"] = { function(list) return ah.scripted { rules = list } end,
    { text = "a" }, { text = "b" } },
  ["ah.scripted: turn 1: calls"] = { function(list) return ah.scripted { { calls = list } } end,
    { name = "a" }, { name = "b" } },
  ["ah.scripted: turn 1: text"] = { function(list) return ah.scripted { { text = list } } end,
    "a", "b" },
  ["ah.scripted: when of rule 1: tools"] = { function(list)
    return ah.scripted { rules = { { when = { tools = list }, text = "a" } } }
  end, "a", "b" },
  ["ah.conformance: capabilities"] = { function(list)
    return ah.conformance { serve = function() error("not so far", 0) end, capabilities = list,
      only = "no case of this name" }
  end, "tools", "stream", not_alone = true },
  ["ah.builtin: bash: writable"] = { function(list)
    return ah.builtin { bash = { writable = list, sandbox = "none" } }
  end, "/tmp", "/tmp" },
  ["ah.builtin: http_fetch: allow"] = { function(list)
    return ah.builtin { http_fetch = { allow = list } }
  end, "example.org", "example.com" },
  ["ah.builtin: http_fetch: private"] = { function(list)
    return ah.builtin { http_fetch = { allow = "public", private = list } }
  end, "10.0.0.0/8", "192.168.0.0/16" },
  ["testing.expect_calls: the calls"] = { function(list)
    return require "agenthost.testing".expect_calls({}, list)
  end, {}, {}, not_alone = true },
}

describe("a list", function()
  for name, case in pairs(LISTS) do
    local give, a, b = case[1], case[2], case[3]

    if not case.not_alone then
      it(name .. " takes values", function()
        give { a, b }
      end)
    end

    it(name .. " raises for a name among its values", function()
      assert.matches("odd_name", raised(give, { a, odd_name = b }), 1, true)
      assert.matches("odd_name", raised(give, { odd_name = a }), 1, true)
    end)

    it(name .. " raises for a hole", function()
      assert.matches("[2] is nil", raised(give, { a, nil, b }), 1, true)
      assert.matches("[1] is nil", raised(give, { nil, b }), 1, true)
    end)

    it(name .. " raises for keys that are no places of a list", function()
      assert.matches("key", raised(give, { a, [0] = b }), 1, true)
      assert.matches("key", raised(give, { a, [-1] = b }), 1, true)
      assert.matches("key", raised(give, { a, [1.5] = b }), 1, true)
      assert.matches("key", raised(give, { a, [true] = b }), 1, true)
    end)
  end

  it("is told by its name, at the script's line", function()
    local text = raised(run, { "policies", { guard = nothing } })
    assert.matches("ah.run: policies: unexpected name 'guard'; this is a list, { value", text, 1,
      true)
    assert.matches("newcomers_spec.lua:%d+", text)
  end)

  it("says of a hole why the value is not there", function()
    local text = raised(run, { "tools", { (ah.filesystem { root = "/nowhere/at/all" }), find } })
    assert.matches("ah.run: tools[1] is nil; a list has no holes", text, 1, true)
    text = raised(run, { "tools", { find, ah.filesystem { root = "/nowhere/at/all" } } })
    assert.matches("ah%.run: tools%[2%] is nil: .*/nowhere/at/all", text)
  end)

  it("of built-in tools may have names with options, and no holes", function()
    assert.equal(2, #assert(ah.builtin { "grep", read_file = true }))
    assert.matches("ah.builtin[1] is nil", raised(ah.builtin, { nil, "grep" }), 1, true)
    assert.matches("ah.builtin: unexpected key 0", raised(ah.builtin, { [0] = "grep" }), 1, true)
  end)

  it("has no holes among the texts and sections of ah.run either", function()
    assert.matches("ah.run[1] is nil",
      raised(ah.run, { model = "demo/echo", [2] = "Hello" }), 1, true)
    assert.matches("ah.run[1] is nil",
      raised(ah.run, { model = "demo/echo", nil, section, "Hello" }), 1, true)
    assert.matches("ah.prompt[1] is nil", raised(ah.prompt, { ns = "n", key = "k", nil, section }),
      1, true)
    assert.matches("ah.section[1] is nil", raised(ah.section, { key = "k", template = "A",
      nil, section }), 1, true)
  end)
end)

describe("lists in tools", function()
  local function offered(fields)
    local model = ah.scripted { { text = "ok", check = nothing } }
    fields.model, fields[#fields + 1] = model, "Hello"
    assert(ah.run(fields))
    local names = {}
    for i, t in ipairs(model.requests()[1].tools) do
      names[i] = t.name
    end
    return table.concat(names, " ")
  end

  local function names_of(tools)
    return offered { tools = tools }
  end

  it("are taken as their values, in order", function()
    assert.equal("a b c d", names_of { tool "a", { tool "b", { { tool "c" } } }, tool "d" })
    assert.equal("a", names_of { {}, { {} }, tool "a" })
  end)

  it("stand beside built-in tools and groups", function()
    local group = ah.tool_group { name = "newcomers-mix", tools = { tool "b", { tool "c" } } }
    assert.equal("a read_file grep b c", names_of { tool "a",
      assert(ah.builtin { "read_file", "grep" }), { group, "newcomers-mix" } })
  end)

  it("may stand in sections, strategies and registries", function()
    local mix = { tool "a", { tool "b" } }
    assert.equal("a b c d", offered { ah.section { key = "k", template = "K", tools = { mix } },
      strategies = { ah.unlock { tools = { tool "c", { tool "d" } }, after = "a" } } })
    assert.same({ "a", "b" }, ah.registry({ mix }):names())
  end)

  it("are read to a bound, and a list that holds itself is refused", function()
    local deep = tool "a"
    for _ = 1, 15 do
      deep = { deep }
    end
    assert.equal("a", names_of { deep })
    assert.matches("16 nested lists", raised(names_of, { { deep } }), 1, true)
    local circle = {}
    circle[1] = circle
    assert.matches("16 nested lists", raised(names_of, circle), 1, true)
    assert.matches("16 nested lists", raised(ah.unlock, { tools = circle, after = "x" }), 1, true)
  end)

  it("say where what is no tool stands", function()
    assert.matches("tools[2][1] must be made by ah.tool, found number",
      raised(names_of, { tool "a", { 5 } }), 1, true)
    assert.matches("tools[1][2] is nil", raised(names_of, { { tool "a", nil, tool "b" } }), 1, true)
    assert.matches("tools[1]: unexpected name 'add'", raised(names_of, { { add = tool "a" } }), 1,
      true)
    assert.matches("tools[1] must be made by ah.tool, found table",
      raised(names_of, { { name = "a", handler = nothing } }), 1, true)
  end)
end)

describe("what a person types into a chat", function()
  local agent

  before_each(function()
    agent = assert(ah.agent { model = "demo/echo" })
  end)

  local function comes_back(text, none, err)
    assert.is_nil(none)
    assert.truthy(err:is "usage", tostring(err))
    assert.matches(text, err.message, 1, true)
  end

  it("comes back as nil, err where agent:use knows no such model", function()
    for name, said in pairs { ["foo/bar"] = "unknown provider 'foo'", gpt = "form provider/model",
      [""] = "form provider/model", ["demo/ecco"] = "no demo/ecco", ["/"] = "form provider/model",
      ["openai/\xff"] = "not UTF-8" } do
      comes_back(said, agent:use(name))
      comes_back(said, agent:use { model = name })
    end
    assert.equal("still", assert(agent:run "still").text)
    assert.matches("expected", raised(agent.use, agent, 7), 1, true)
    assert.matches("unknown provider", raised(ah.agent, { model = "foo/bar" }), 1, true)
  end)

  it("comes back as nil, err where the text is not UTF-8", function()
    for _, text in ipairs { "caf\xe9", "\xff", "\xed\xa0\x80" } do
      comes_back("not UTF-8", agent:run(text))
      comes_back("not UTF-8", agent:send(text))
      comes_back("not UTF-8", agent:run { "a", text })
      comes_back("not UTF-8", agent:send { { type = "text", text = text } })
      comes_back("not UTF-8", ah.run { model = "demo/echo", text })
      comes_back("not UTF-8", ah.run { model = "demo/echo", { text, image } })
    end
    assert.is_true(agent:send "more")
    assert.equal("caf\u{e9}", assert(agent:run "caf\u{e9}").text)
  end)

  it("is advised where the name of a model has no provider, or another one", function()
    for name, meant in pairs { ["claude-sonnet-4-5"] = "anthropic/claude-sonnet-4-5",
      ["gpt-4o"] = "openai/gpt-4o", ["gemini-2.5-pro"] = "gemini/gemini-2.5-pro",
      ["llama3.2"] = "ollama/llama3.2", ["google/gemini-2.5-pro"] = "gemini/gemini-2.5-pro",
      ["opnai/gpt-4o"] = "openai", ["claude/opus"] = "anthropic/opus" } do
      local text = raised(ah.run, { model = name, "x" })
      assert.matches(("(did you mean '%s'?)"):format(meant), text, 1, true)
    end
  end)
end)

describe("prices", function()
  local function priced(price)
    return ah.budget { cost = 1, prices = { ["a/b"] = price } }
  end

  it("have named fields", function()
    assert.truthy(priced { input = 1.25, output = 10, cached_read = 0.1, cached_write = 2 })
    assert.truthy(priced {})
  end)

  it("are answered with their form where the names are missing", function()
    assert.matches('budget: prices["a/b"]: found a value without a name; '
      .. "write { input = ..., output = ..., ... }", raised(priced, { 1.25, 10 }), 1, true)
    assert.matches('{ ["provider/model"] = { input = 1.25, output = 10 } }', raised(priced, 5), 1,
      true)
    assert.matches("did you mean 'cached_read'?", raised(priced, { cache_read = 1 }), 1, true)
  end)
end)

-- -- objects ---------------------------------------------------------------------------------

describe("a field that an object has not", function()
  local agent = assert(ah.agent { model = "demo/echo" })
  local session = ah.session { types = { Note } }
  local prompt = ah.prompt { ns = "newcomers", key = "fields", section }
  local OBJECTS = {
    agent = agent, reply = assert(agent:run "x"), tool = find, section = section,
    session = session, slice = session[Note], dispatcher = session.dispatcher,
    registry = ah.registry {}, budget = ah.budget { requests = 1 }, prompt = prompt,
    rendered = prompt:render(), schema = ah.schema { type = "string" }, type = Note,
    filesystem = ah.filesystem { memory = true }, adapter = ah.scripted {},
  }

  for name, object in pairs(OBJECTS) do
    it("raises: " .. name, function()
      local text = raised(function() return object.qqqqqqqq end)
      assert.matches("qqqqqqqq", text, 1, true)
      assert.matches("newcomers_spec.lua:%d+", text)
    end)
  end

  it("raises for ctx", function()
    local said
    local peek = ah.tool { name = "peek", description = "Peeks.", handler = function(_, ctx)
      said = raised(function() return ctx.sesion end)
      return "x"
    end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "peek" } } }, "ok" },
      tools = { peek }, "x" })
    assert.matches("ctx: unknown field 'sesion' (did you mean 'session'?)", said, 1, true)
  end)

  it("is told with the nearest, or with what others call it", function()
    for said, f in pairs {
      ["agent: unknown field 'messages' (did you mean 'transcript'?)"] = function()
        return agent.messages
      end,
      ["agent: unknown field 'trancript' (did you mean 'transcript'?)"] = function()
        return agent:trancript()
      end,
      ["reply: unknown field 'output' (did you mean 'text' or 'value'?)"] = function()
        return OBJECTS.reply.output
      end,
      ["reply: unknown field 'finish_reason' (did you mean 'stop'?)"] = function()
        return OBJECTS.reply.finish_reason
      end,
      ["there is no slice 'dispach' (did you mean 'dispatch'?)"] = function()
        return session:dispach {}
      end,
      ["registry: unknown field 'regster' (did you mean 'register'?)"] = function()
        return OBJECTS.registry:regster(find)
      end,
    } do
      assert.matches(said, raised(f), 1, true)
    end
  end)
end)

describe("a word of another library", function()
  local function declare(fields)
    fields.name, fields.description = "t", "T."
    return ah.tool(fields)
  end

  for said, f in pairs {
    ["'execute' (did you mean 'handler'?)"] = function() declare { execute = nothing } end,
    ["'parameters' (did you mean 'params'?)"] = function() declare { parameters = {} } end,
    ["'inputSchema' (did you mean 'schema'?)"] = function() declare { inputSchema = {} } end,
    ["'input_schema' (did you mean 'schema'?)"] = function() declare { input_schema = {} } end,
    ["'instructions' (did you mean 'system'?)"] = function() run { "instructions", "x" } end,
    ["'max_steps' (did you mean 'max_iterations'?)"] = function() run { "max_steps", 3 } end,
    ["there is no event 'text' (did you mean 'content'?)"] = function()
      run { "on", { text = nothing } }
    end,
    ["there is no event 'tool_call' (did you mean 'tool_started'?)"] = function()
      run { "on", { tool_call = nothing } }
    end,
    ["on: found a value without a name; write on = function(event)"] = function()
      run { "on", { nothing } }
    end,
  } do
    it("is answered with ours: " .. said, function()
      assert.matches(said, raised(f), 1, true)
    end)
  end
end)

-- -- the command -----------------------------------------------------------------------------

describe("agenthost", function()
  local agenthost, has, has_not = command.agenthost, command.has, command.has_not

  it("knows help and version as words", function()
    assert.equal(agenthost("--help").out, agenthost("help").out)
    assert.equal(agenthost("tools", "--help").out, agenthost("help", "tools").out)
    assert.equal(agenthost("--version").out, agenthost("version").out)
    assert.equal(agenthost("--version").out, agenthost("-V").out)
    assert.equal(agenthost("--version", "-v").out, agenthost("version", "-v").out)
    assert.equal(0, agenthost("help").code)
    local r = agenthost("help", "tols")
    assert.equal(2, r.code)
    has(r.err, "there is no command, page, function, field or term 'tols' (did you mean 'tools'?)")
  end)

  local CALLS = [[
    local ah = require "agenthost"
    local add = ah.tool { name = "add", description = "Adds.",
      params = { a = "integer", b = "integer" },
      handler = function(args) return args.a + args.b end }
    local bad = ah.tool { name = "bad", description = "Fails.", params = { why = "string" },
      handler = function(args) return nil, "no such\nthing: " .. args.why end }
    print(ah.run { model = ah.scripted { { calls = { { name = "add", arguments = { a = 1, b = 2 } },
      { name = "bad", arguments = { why = ("x"):rep(500) } } } }, "Fine." },
      tools = { add, bad }, "Go" })]]

  it("-v prints one readable line a call", function()
    local r = command.agenthost("-v", command.temp(CALLS))
    assert.equal("Fine.\n", r.out)
    assert.matches('info: add {"a":1,"b":2} ok in 0%.%d+ s: 3\n', r.err)
    local bad = 'info: bad {"why":"x+%.%.%. failed in 0%.%d+ s: no such thing: x+%.%.%.\n'
    assert.matches(bad, r.err)
    assert.equal(3, select(2, r.err:gsub("\n", "")))
    has_not(r.err, '"type"')
  end)

  it("-vv prints events as lines of JSON, and without -v there is nothing", function()
    local r = command.agenthost("-vv", command.temp(CALLS))
    has(r.err, 'debug: event {"type":"tool_invoked"')
    has_not(r.err, "ok in")
    assert.equal("", command.agenthost(command.temp(CALLS)).err)
  end)

  it("--json has the value of a run with an output schema", function()
    local code = [[ah.run { model = ah.scripted { '{"city":"Paris","n":[1,2]}' }, "x",
      output = ah.schema { type = "object", properties = { city = { type = "string" },
        n = { type = "array", items = { type = "integer" } } } } }]]
    local reply = ah.json.decode(agenthost("--json", "-e", code).out).reply
    assert.same({ city = "Paris", n = { 1, 2 } }, reply.value)
    has(agenthost("--jsonl", "-e", code).out, '"value":{"city":"Paris","n":[1,2]}')
    code = 'ah.run { model = "demo/echo", "x" }'
    reply = ah.json.decode(agenthost("--json", "-e", code).out).reply
    assert.is_nil(reply.value)
    assert.equal("x", reply.text)
  end)

  it("takes files of variables that a shell can read as well", function()
    local path = command.temp 'export A_KEY="one"\n  export\tB_KEY=two\nC_KEY=three\nexport=4\n'
    local r = agenthost("--env-file", path, "-e",
      'print(os.getenv "A_KEY", os.getenv "B_KEY", os.getenv "C_KEY", os.getenv "export")')
    assert.same({ code = 0, out = "one\ttwo\tthree\t4\n", err = "" }, r)
    assert.equal(2, agenthost("--env-file", command.temp "export A B=1\n", "-e", "").code)
  end)
end)

describe("demo/tools", function()
  local buy = ah.tool { name = "buy", description = "Buys tea.",
    params = { tea = "green|black|dark-mint" },
    handler = function(args) return args.tea end }

  local function bought(text)
    return ah.run({ model = "demo/tools", tools = { buy }, text }).text:match "buy: (.*)"
  end

  it("takes the choice that is a word of the user's, else the first one", function()
    assert.equal("black", bought "Some black tea, please.")
    assert.equal("dark-mint", bought 'Is there "dark-mint"?')
    assert.equal("green", bought "Some tea, please.")
    assert.equal("green", bought "Blackberries, please.")
  end)
end)

describe("a path that begins with /", function()
  it("is answered with the path below the root", function()
    local root = command.temp()
    os.remove(root)
    assert(os.execute(("mkdir -p %s/src && ln -s %s %s.link"):format(root, root, root)))
    finally(function() os.execute(("rm -rf %s %s.link"):format(root, root)) end)
    for _, fs in ipairs { ah.filesystem { root = root }, ah.filesystem { root = root .. ".link" },
      ah.filesystem { root = root }:overlay(), ah.filesystem { memory = true } } do
      for given, meant in pairs { ["/src/a.txt"] = "src/a.txt", ["//src"] = "src", ["/"] = "." } do
        local none, err = fs:read(given)
        assert.is_nil(none)
        assert.matches(("relative to the root: write '%s'"):format(meant), err.message, 1, true)
      end
    end
    for _, fs in ipairs { ah.filesystem { root = root }, ah.filesystem { root = root .. ".link" },
      ah.filesystem { root = root .. "/" }:overlay() } do
      local message = select(2, fs:read(root .. "/src/a.txt")).message
      assert.matches("write 'src/a.txt'", message, 1, true)
      assert.matches("write '.'", select(2, fs:list(root)).message, 1, true)
      assert.not_matches("write 'src", select(2, fs:read(root .. "x/src/a.txt")).message, 1, true)
    end
  end)
end)

describe("agenthost check", function()
  local agenthost, has = command.agenthost, command.has

  local function check(text)
    return agenthost("check", command.temp('local ah = require "agenthost"\n' .. text))
  end

  it("sees sections and lists of texts in front of a run", function()
    local r = check [[
      local s = ah.section { key = "a", template = "A", tools = { ah.tool { name = "t",
        description = "T.", handler = print } } }
      ah.run { model = "demo/echo", s, { "two", "texts" } }]]
    assert.equal(0, r.code, r.out)
    has(r.out, "no faults (0 agents, 1 run, 1 tool)")
  end)

  it("tells each mistake once, in the words of the function that was called", function()
    local r = check [[
      local t = ah.tool { name = "t", description = "T.", handler = print }
      ah.run { model = "gpt-4o", tools = { add = t }, max_steps = 3, "x" }]]
    assert.equal(1, r.code)
    has(r.out, ":3: ah.run: tools: unexpected name 'add'")
    has(r.out, ":3: ah.run: unknown field 'max_steps' (did you mean 'max_iterations'?)")
    has(r.out, "(did you mean 'openai/gpt-4o'?)")
    assert.equal(1, select(2, r.out:gsub("unexpected name", "")))
    has(r.out, "3 faults (0 agents, 1 run")
  end)

  it("tells of a script that comes to no run that this is so", function()
    has(check("print(1)").out, "neither ah.run nor ah.agent was reached: the script ended first")
  end)
end)

describe("the pages", function()
  it("never write fields of a table as if they were values of a list", function()
    local pipe <close> = assert(io.popen "ls docs/*.md docs/*/*.md README.md")
    for path in pipe:lines() do
      local f <close> = assert(io.open(path))
      local text = f:read "a":gsub("```.-\n```", "")
      local own = path:find "transcript" and "" or text -- that page shows JSON
      for braces in own:gmatch "`[^`\n]*{ ([a-z_]+, [a-z_, ]+) }" do
        assert.equal("", path .. ": " .. braces)
      end
    end
  end)
end)
