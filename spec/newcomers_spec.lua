-- What somebody brings from another library or types without a second thought, and what happens
-- then: lists with names, lists in lists, words of others, fields that are not there. The cases of
-- lists are made from one table of all lists that the library reads, so a list that is read without
-- the shared check fails here. Terminals are in cli_terminal_spec.lua.
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

-- Every list that scripts give: by its name in the message, how it is given, and two good values.
local LISTS = {
  ["ah.run: tools"] = { field "tools", find, read },
  ["ah.run: policies"] = { field "policies", nothing, nothing },
  ["ah.run: checks"] = { field "checks", nothing, nothing },
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
  ["ah.policies.requires: after"] = { function(list)
    return ah.policies.requires { tool = "x", after = list }
  end, "find", "read" },
  ["ah.policies.read_before_write: read"] = { function(list)
    return ah.policies.read_before_write { read = list, write = "write" }
  end, "find", "read" },
  ["ah.scripted: turns"] = { function(list) return ah.scripted(list) end, "a", "b",
    own_fields = true },
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
      local word = case.own_fields and "'true'" or "key"
      assert.matches(word, raised(give, { a, [true] = b }), 1, true)
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
    assert.matches("16 lists", raised(names_of, { { deep } }), 1, true)
    local circle = {}
    circle[1] = circle
    assert.matches("16 lists", raised(names_of, circle), 1, true)
    assert.matches("16 lists", raised(ah.unlock, { tools = circle, after = "x" }), 1, true)
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
