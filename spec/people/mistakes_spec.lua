-- Mistakes of new users, and their error messages: the line of the script, what was asked, what was
-- found, and what to do. Each mistake was really made. The meaning of a field, and all values that
-- it refuses, are in the spec of its own part.
local ah = require "agenthost"
local command = require "support.command"

after_each(command.tidy)

local function tool(fields)
  fields.name, fields.description = "find", "Finds."
  return ah.tool(fields)
end

local function run(fields)
  fields.model = "demo/echo"
  fields[1] = fields[1] or "Hello"
  return ah.run(fields)
end

local Item = ah.type { name = "Item", fields = { name = "string" } }

local MISTAKES = {
  -- words of other libraries
  ["ah.tool: unknown field 'parameters' (did you mean 'params'?)"] = function()
    tool { parameters = { city = "string" } }
  end,
  ["ah.tool: unknown field 'execute' (did you mean 'handler'?)"] = function()
    tool { execute = print }
  end,
  ["ah.run: unknown field 'instructions' (did you mean 'system'?)"] = function()
    run { instructions = "Be brief." }
  end,
  ["ah.run: unknown field 'max_steps' (did you mean 'max_iterations'?)"] = function()
    run { max_steps = 3 }
  end,
  ["ah.section: unknown field 'text' (did you mean 'template'?)"] = function()
    ah.section { key = "a", text = "b" }
  end,
  -- the right field in the wrong table
  ["ah.run: unknown field 'temperature'; it belongs in 'options': options = { temp"] = function()
    run { temperature = 0 }
  end,
  ["ah.run: unknown field 'max_tokens'; it belongs in 'options'"] = function()
    run { max_tokens = 10 }
  end,
  ["ah.run: unknown field 'connect_timeout'; it belongs in 'http'"] = function()
    run { connect_timeout = 10 }
  end,
  ["ah.run: unknown field 'cost'; it belongs in 'budget'"] = function()
    run { cost = 1 }
  end,
  -- no similar name, and few names
  ["ah.type: unknown field 'zzz'; there are name, fields, schema, render"] = function()
    ah.type { name = "T", zzz = {} }
  end,
  -- values of another kind
  ["ah.run: options: field 'temperature' must be a number, found string"] = function()
    run { options = { temperature = "hot" } }
  end,
  ["ah.run: options: field 'max_tokens' must be an integer, found 1.5"] = function()
    run { options = { max_tokens = 1.5 } }
  end,
  ["ah.run: options: field 'cache' must be \"5m\", \"1h\" or \"off\""] = function()
    run { options = { cache = "5 minutes" } }
  end,
  ["ah.run: expected a table of fields, found string: write ah.run { ... }"] = function()
    ah.run "Hello"
  end,
  ["ah.run: prompt must be made by ah.prompt, found string; a text is 'system'"] = function()
    run { prompt = "Be brief." }
  end,
  ["ah.run: field 'tools' must be a table, { ... }, found agenthost.tool"] = function()
    run { tools = tool {} }
  end,
  ["ah.run: field 'fallback' must be a table, { ... }, found string"] = function()
    run { fallback = "demo/echo" }
  end,
  ["found 2 things behind the sections (several texts are a list"] = function()
    run { "Hello", "again" }
  end,
  ["on: there is no event 'contnt' (did you mean 'content'?)"] = function()
    run { on = { contnt = print } }
  end,
  ["ah.log: there is no level 'warn'; there are debug, info, warning, error"] = function()
    ah.log("warn", "x")
  end,
  -- JSON Schema for a short form, and the other way round
  ["params: this is JSON Schema, which goes into `schema`"] = function()
    tool { params = { type = "object", properties = { city = { type = "string" } } } }
  end,
  ["params.city: this is JSON Schema, which goes into `schema`; the short form of"] = function()
    tool { params = { city = { type = "string" } } }
  end,
  ["params.unit: this is JSON Schema"] = function()
    tool { params = { unit = { type = "string", enum = { "c", "f" } } } }
  end,
  ["params: a form for each name is expected, { name = \"string\" }, found a list"] = function()
    tool { params = { "string" } }
  end,
  ["keyword 'city' at the root is not supported; the names of members stand in"] = function()
    tool { schema = { city = "string" } }
  end,
  -- messages for declarations in Lua are the same as for those in C
  ["ah.resource: unknown field 'scop' (did you mean 'scope'?)"] = function()
    ah.resource { provide = print, scop = "tool_call" }
  end,
  ["ah.unlock: unknown field 'aftr' (did you mean 'after'?)"] = function()
    ah.unlock { tools = "a", aftr = "b" }
  end,
  ["ah.adapter: unknown field 'anser' (did you mean 'answer'?)"] = function()
    ah.adapter { name = "acme/x", anser = print }
  end,
  ["ah.planning_section: field 'session' is missing"] = function()
    ah.planning_section {}
  end,
  ["ah.policies.requires: unknown field 'befor'"] = function()
    ah.policies.requires { befor = "x" }
  end,
  ["ah.scripted: turn 1: unknown field 'call' (did you mean 'calls'?)"] = function()
    ah.scripted { { call = {} } }
  end,
  ["ah.conformance: unknown field 'server' (did you mean 'serve'?)"] = function()
    ah.conformance { server = print }
  end,
  -- sessions
  ["session:register: key: Item has no field 'nme'"] = function()
    ah.session():register(Item, { key = "nme" })
  end,
  ["session:register: field 'keep' must be \"append\" or \"latest\""] = function()
    ah.session():register(Item, { keep = "last" })
  end,
}

describe("a mistake is told at the script's line:", function()
  for words, make in pairs(MISTAKES) do
    it(words, function()
      local ok, err = pcall(make)
      assert.is_false(ok)
      assert.equal("agenthost.error", getmetatable(err) and getmetatable(err).__name)
      command.has(err.message, words)
      assert.matches("^spec/people/mistakes_spec.lua:%d+: ", err.message)
    end)
  end
end)

describe("what is an object with a member `type`", function()
  it("is not taken for JSON Schema", function()
    local form = ah.schema.short { animal = { type = "string", name = "string" }, type = "string" }
    assert.same({ "animal", "type" }, ah.json.decode(form:text()).required)
  end)
end)

describe("an agent as a tool", function()
  local function outer(handler)
    local ask = ah.tool { name = "ask", description = "Asks another one.", handler = handler }
    return assert(ah.run { tools = { ask }, "Go",
      model = ah.scripted { { calls = { { name = "ask" } } }, "Done." } }).messages[3]
  end

  it("is a handler that returns its reply", function()
    assert.equal("Yes.", outer(function()
      return ah.run { model = ah.scripted { "Yes." }, "?" }
    end).content)
    assert.equal('{"ok":true}', outer(function()
      return ah.run { model = ah.scripted { '{"ok": true}' }, "?",
        output = ah.schema.short { ok = "boolean" } }
    end).content)
    assert.equal('{"said":"Yes."}', outer(function()
      return { said = ah.run { model = ah.scripted { "Yes." }, "?" } }
    end).content)
  end)

  it("says why it came to nothing", function()
    local result = outer(function()
      return ah.run { log = function() end, "?",
        model = ah.scripted { { fail = { message = "no such model", status = 404 } } } }
    end)
    assert.same({ false, "no such model" }, { result.success, result.content })
  end)
end)

describe("a handler that fails", function()
  local function says(code)
    local r = command.script(([[
      local ah = require "agenthost"
      local broken = ah.tool { name = "broken", description = "Breaks.", handler = function()
        %s
      end }
      print(ah.run { model = "demo/tools", tools = { broken }, "Go" })]]):format(code))
    assert.equal(0, r.code)
    command.has(r.out, "execution failed")
    return r.err
  end

  it("by a mistake in it is a warning that names the line", function()
    assert.matches("^agenthost: warning: .*:3: attempt to index a nil value %(global 'crm'%)\n$",
      says "return crm.find(1)")
    assert.matches(":3: bad argument #1 to 'ipairs'", says "for _ in ipairs() do end")
  end)

  it("with a table for a message is the same each time", function()
    local t = tool { params = { n = "integer" },
      handler = function(args) return nil, args.n == 1 and { message = "no" } or { 1 } end }
    local registry = ah.registry { t }
    assert.equal("no", registry:execute("find", { n = 1 }).content)
    assert.equal("error object without a message", registry:execute("find", { n = 2 }).content)
  end)

  it("on purpose is the model's to know", function()
    assert.equal("", says 'error "no such customer"')
    assert.equal("", says 'assert(nil, "no such customer")')
    assert.equal("", says 'error(ah.error "no such customer")')
  end)
end)

describe("a script that ends with an error", function()
  it("is told what it did not look at", function()
    local r = command.shell
      [[env -u OPENAI_API_KEY "$A" -e 'print(ah.run { model = "openai/x", "a" }.text)']]
    assert.equal(1, r.code)
    command.has(r.err, "attempt to index a nil value\n" .. "before that ah.run or ah.agent "
      .. "returned nil: provider: openai: no key: set OPENAI_API_KEY")
  end)

  it("is told nothing that was over", function()
    local r = command.shell [[env -u OPENAI_API_KEY "$A" -e '
      ah.run { model = "openai/x", "a" }
      ah.run { model = "demo/echo", "a" }
      print(nothing.text)']]
    assert.falsy(r.err:find("before that", 1, true), r.err)
  end)

  it("is told in words, whatever was raised", function()
    local function raised(code)
      return command.agenthost("-e", code).err
    end
    assert.equal("agenthost: it is down\n", raised 'error { message = "it is down" }')
    assert.equal("agenthost: error object without a message\n", raised "error {}")
    assert.equal("agenthost: a nil was raised as error\n", raised "error()")
    assert.equal("agenthost: 5\n", raised "error(5)")
  end)
end)
