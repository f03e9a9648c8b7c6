-- Fields of a tool that describe it: annotations, version, examples, and the fields of a tool
-- object; names that agenthost reserves; and the message for two tools of one name.
-- docs/reference/tool.md, "ah.tool".
local ah = require "agenthost"
local ahtest = require "ahtest"
local server = require "support.server"
local wire = require "support.wire" {}

local encode, decode = ah.json.encode, ah.json.decode

local function tool(fields)
  local t = { name = "pay", description = "Pays.", params = { sum = "integer" },
    handler = function(args) return args.sum end }
  for key, value in pairs(fields or {}) do
    t[key] = value
  end
  return ah.tool(t)
end

local function raised(f, ...)
  local ok, err = pcall(f, ...)
  assert.is_false(ok)
  return err
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments or ah.object {} } } }
end

-- Returns the specification of the tool that a conversation keeps.
local function kept(t)
  local agent = ah.agent { model = ah.scripted { "ok" }, tools = { t } }
  for _, entry in ipairs(decode(agent:transcript()).entries) do
    for _, spec in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      if spec.name == t.name then
        return spec
      end
    end
  end
end

describe("annotations and version", function()
  local ALL = { read_only = false, destructive = true, idempotent = false, open_world = true,
    untrusted = false }

  it("are kept in the tool and in the conversation, and only what is said", function()
    local t = tool { annotations = ALL, version = "2.1" }
    assert.same(ALL, t.annotations)
    assert.equal("2.1", t.version)
    assert.same({ ALL, "2.1" }, { kept(t).annotations, kept(t).version })
    t = tool { annotations = { read_only = true } }
    assert.same({ read_only = true }, t.annotations)
    assert.is_nil(t.version)
    t = tool()
    assert.same({}, t.annotations)
    assert.is_nil(kept(t).annotations)
    assert.is_nil(kept(tool { annotations = {} }).annotations)
  end)

  it("are copies: nothing changes a tool", function()
    local t = tool { annotations = ALL }
    t.annotations.destructive = nil
    assert.is_true(t.annotations.destructive)
  end)

  it("are refused where they are wrong, at the script's line", function()
    for words, fields in pairs {
      ["annotations: unknown field 'destructiv' %(did you mean 'destructive'%?%)"] =
        { annotations = { destructiv = true } },
      ["annotations: field 'read_only' must be a boolean, found number"] =
        { annotations = { read_only = 1 } },
      ["field 'annotations' must be a table"] = { annotations = "read_only" },
      ["field 'version' must be a string, found number"] = { version = 2 },
      ["version must be UTF%-8 of 1 to 64 bytes, found 65"] = { version = ("x"):rep(65) },
      ["version must be UTF%-8 of 1 to 64 bytes, found 0"] = { version = "" },
    } do
      local err = raised(tool, fields)
      assert.matches("tool_fields_spec.lua:%d+: .*" .. words, err.message)
    end
    assert.equal(("x"):rep(64), tool({ version = ("x"):rep(64) }).version)
  end)

  it("are shown to policies", function()
    local seen = {}
    local reply = assert(ah.run { model = ah.scripted { call("pay", { sum = 1 }), "ok" },
      tools = { tool { annotations = { destructive = true }, version = "3" } },
      policies = { function(c)
        seen[#seen + 1] = { c.annotations, c.version }
      end }, "x" })
    assert.equal("1", reply.messages[3].content)
    assert.same({ { { destructive = true }, "3" } }, seen)
  end)

  it("are an empty table and nothing where a tool says nothing", function()
    local seen
    assert(ah.run { model = ah.scripted { call("pay", { sum = 1 }), "ok" }, tools = { tool() },
      policies = { function(c) seen = { next(c.annotations), c.version } end }, "x" })
    assert.same({}, seen)
  end)

  it("of an entity's method are those of its tools", function()
    local C = ah.entity { name = "Annotated", id = "id" }
    C:tool { name = "drop", description = "Drops it.", annotations = { destructive = true },
      version = "7", handler = function() return "dropped" end }
    local seen = {}
    assert(ah.run { discover = true, tools = { ah.tool { name = "find", description = "Finds.",
      handler = function() return C { id = "a" } end } },
      policies = { function(c) seen[#seen + 1] = { c.annotations, c.version } end },
      model = ah.scripted { call "find", call "annotated_a_drop", "ok" }, "x" })
    assert.same({ {}, { { destructive = true }, "7" } }, { seen[1][1], seen[2] })
  end)

  it("of the built-in tools are true", function()
    local function said(name)
      return assert(ah.builtin { name })[1].annotations
    end
    for _, name in ipairs { "read_file", "list_files", "grep" } do
      assert.same({ read_only = true, destructive = false, idempotent = true,
        open_world = false }, said(name), name)
    end
    assert.same({ read_only = false, destructive = true, idempotent = true, open_world = false },
      said "write_file")
    assert.same({ read_only = false, destructive = true, idempotent = false, open_world = false },
      said "edit_file")
    local function fetch(post)
      return assert(ah.builtin { http_fetch = { allow = { "example.org" }, post = post } })[1]
        .annotations
    end
    assert.is_true(fetch(false).read_only and fetch(false).open_world)
    assert.is_false(fetch(true).read_only)
  end)
end)

describe("ah.policies.ask and ah.policies.deny", function()
  local function run(policy, annotations, approve)
    local reply = assert(ah.run { model = ah.scripted { call("pay", { sum = 1 }), "ok" },
      tools = { tool { annotations = annotations } }, policies = { policy }, approve = approve,
      "x" })
    return reply.messages[3].content
  end

  it("look at what the tool says of itself", function()
    local asked = {}
    local function approve(c)
      asked[#asked + 1] = c.reason
      return true
    end
    assert.equal("1", run(ah.policies.ask { destructive = true }, { destructive = true }, approve))
    assert.equal("1", run(ah.policies.ask { destructive = true }, { destructive = false }, approve))
    assert.equal("1", run(ah.policies.ask { destructive = true }, {}, approve))
    assert.equal("1", run(ah.policies.ask { open_world = true, untrusted = true },
      { untrusted = true }, approve))
    assert.same({ "the tool is destructive", "the tool is untrusted" }, asked)
    assert.equal("Tool 'pay' was not run: the tool is open_world",
      run(ah.policies.deny { open_world = true }, { open_world = true }))
  end)

  it("take what is not said for false", function()
    assert.equal("Tool 'pay' was not run: the tool is not read_only",
      run(ah.policies.deny { read_only = false }, {}))
    assert.equal("1", run(ah.policies.deny { read_only = false }, { read_only = true }))
  end)

  it("refuse what is no annotation", function()
    for words, rule in pairs { ["unknown field 'destructve'"] = { destructve = true },
      ["must be a boolean, found string"] = { destructive = "yes" },
      ["give at least one annotation"] = {} } do
      for _, name in ipairs { "ask", "deny" } do
        assert.matches("tool_fields_spec.lua:%d+: ah.policies." .. name .. ": .*" .. words,
          tostring(raised(ah.policies[name], rule)))
      end
    end
  end)
end)

describe("agenthost's own names", function()
  local OWN = { "read_section", "pick_tools", "search_tools", "call_tool", "planning_x",
    "planning_setup_plan", "planning_" }

  it("are not to be had by a tool", function()
    for _, name in ipairs(OWN) do
      local err = raised(ah.tool, { name = name, description = "Mine." })
      assert.equal("prompt_validation", err.code)
      assert.equal(name, err.tool)
      assert.matches("tool_fields_spec.lua:%d+: tool: the name '" .. name .. "' is reserved",
        err.message)
    end
    assert(ah.tool { name = "planning", description = "Mine." })
    assert(ah.tool { name = "call_tools", description = "Mine." })
  end)

  it("are not to be had by an executor, a facade or an entity", function()
    for _, name in ipairs(OWN) do
      assert.matches("is reserved", raised(ah.run, { model = "demo/echo",
        executors = { [name] = print }, "x" }).message)
      assert.matches("is reserved", raised(ah.unfold, { name = name, description = "Mine.",
        tools = { tool() } }).message)
    end
    for _, prefix in ipairs { "planning", "planning_a" } do
      assert.matches("reserved names", raised(ah.entity, { name = "Mine" .. #prefix,
        prefix = prefix }).message)
    end
    assert.matches("give it another prefix", raised(ah.entity, { name = "Planning" }).message)
  end)

  it("are made by no function that a script can reach", function()
    local function look(t, seen, depth)
      for _, value in pairs(t) do
        if type(value) == "table" and not seen[value] and depth < 4 then
          seen[value] = true
          look(value, seen, depth + 1)
        elseif type(value) == "function" and not seen[value] then
          seen[value] = true
          local ok, made = pcall(value, { name = "call_tool", description = "Mine." })
          assert.is_false(ok and pcall(function() assert(made.name == "call_tool") end)
            and getmetatable(made) ~= nil)
        end
      end
    end
    look({ tool = ah.tool, _module = ah._module, unfold = ah.unfold, entity = ah.entity,
      planning = ah.planning, policies = ah.policies }, {}, 0)
    assert.is_nil(ah.own_tool)
  end)

  it("stay where a script wants them away: it is told", function()
    local warned = {}
    local session = ah.session()
    local reply = assert(ah.run { brief = true,
      on = { warning = function(e) warned[#warned + 1] = e.message .. ": " .. e.tool_name end },
      log = function() end, on_conflict = "replace", session = session,
      tools = { tool(), ah.tool { name = "away", description = "Takes them away.",
        handler = function(_, ctx)
          ctx:remove_tools { "pick_tools", "planning_add_step", "read_section", "pay" }
        end } },
      ah.planning_section { session = session },
      ah.section { key = "s", title = "S", template = "Long.", summary = "Short.",
        visibility = "summary" },
      model = ah.scripted { call "away", function(request)
        local names = {}
        for _, t in ipairs(request.tools) do
          names[t.name] = true
        end
        assert.is_true(names.pick_tools and names.planning_add_step and names.read_section)
        return "ok"
      end }, "x" })
    assert.equal("ok", reply.text)
    table.sort(warned)
    assert.same({ "Skipping the removal of a tool that is agenthost's own: pick_tools",
      "Skipping the removal of a tool that is agenthost's own: planning_add_step",
      "Skipping the removal of a tool that is agenthost's own: read_section" }, warned)
    assert.same({ "pay" }, reply.removed_tools)
  end)

  it("stay where a strategy wants them away", function()
    local warned = 0
    local reply = assert(ah.run { brief = true, tools = { tool() }, log = function() end,
      on = { warning = function() warned = warned + 1 end },
      strategies = { function(m) m:remove "pick_tools" end },
      model = ah.scripted { call("pay", { sum = 1 }), call("pick_tools", { tools = { "pay" } }),
        "ok" }, "x" })
    assert.matches("^Already selected: pay", reply.messages[5].content)
    assert.equal(2, warned)
  end)

  it("go with the section that has them", function()
    local session, on = ah.session(), true
    local requests = {}
    local agent = ah.agent { log = function() end, model = ah.scripted(function(request)
      requests[#requests + 1] = #request.tools
      return "ok"
    end), ah.section { key = "p", title = "P", enabled = function() return on end,
      template = "T", ah.planning_section { session = session } } }
    assert(agent:run "x")
    on = false
    assert(agent:run "y")
    assert(agent:fork():run "z")
    assert.equal(4, requests[1])
    local names = {}
    for _, entry in ipairs(decode(agent:transcript()).entries) do
      for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
        names[#names + 1] = name
      end
    end
    assert.equal(4, #names)
  end)
end)

describe("two tools of one name", function()
  local Params = ah.type { name = "PayParams", fields = { text = "string" } }

  it("are told with where each is declared, and what it takes", function()
    local a, b = tool(), tool { params = Params }
    local err = raised(ah.run, { model = "demo/echo", tools = { a, b }, "x" })
    assert.equal("prompt_validation", err.code)
    assert.matches("tool 'pay' is declared twice %(.*tool_fields_spec.lua:%d+, parameters "
      .. "{ sum }; and .*tool_fields_spec.lua:%d+, parameters PayParams%)", err.message)
    assert.same({ "pay", "PayParams" }, { err.tool, err.params_type })
  end)

  it("are told in every place that refuses the second", function()
    local a, b = tool(), tool { params = Params }
    local sections = { ah.section { key = "a", title = "A", template = "a", tools = { a } },
      ah.section { key = "b", title = "B", template = "b", tools = { b } } }
    for _, f in ipairs {
      function() ah.registry { a, b } end,
      function() ah.prompt(sections) end,
      function() ah.search { tools = { a, b } } end,
      function() ah.agent { model = "demo/echo", tools = { a }, on_conflict = "error" }
        :add_tools(b) end,
      function() ah.run { model = "demo/echo", tools = { b }, sections[1], "x" } end,
    } do
      local err = raised(f)
      assert.matches("tool 'pay' is declared twice %(.*:%d+, parameters .*; and .*:%d+, param",
        err.message)
      assert.equal("pay", err.tool)
    end
    local err = raised(ah.prompt, sections)
    assert.matches("section 'b': .*the first is in section 'a'", err.message)
    assert.same({ "b", "PayParams" }, { err.section_path, err.params_type })
  end)
end)

describe("a tool object", function()
  it("gives what it was made from", function()
    local function handler() return 1 end
    local function render() return "one" end
    local t = ah.tool { name = "t", description = "Brief.", full_description = "In full: é.",
      params = { a = "integer" }, result = { type = "integer" }, handler = handler, render = render,
      timeout = 2.5, memory = 1 << 20, max_result = 2048, parallel = true, coerce = true,
      strict = false, accepts_overrides = false, version = "1", return_direct = true }
    assert.same({ "t", "In full: é.", "Brief.", "In full: é.", handler, render, 2.5, 1 << 20, 2048,
      true, true, false, false, "1", true }, { t.name, t.description, t.brief, t.full_description,
      t.handler, t.render, t.timeout, t.memory, t.max_result, t.parallel, t.coerce, t.strict,
      t.accepts_overrides, t.version, t.return_direct })
    assert.same(t.params, t.parameters)
    assert.same({ type = "object", properties = { a = { type = "integer" } }, required = { "a" },
      additionalProperties = false }, t.params)
    assert.same({ type = "integer" }, t.result)
    t = ah.tool { name = "t", description = "Brief.", params = ah.type { name = "Asked",
      fields = { a = "integer" } }, result = ah.type { name = "Given", fields = { b = "string" } } }
    assert.same({ "Asked", "Given" }, { t.params_type, t.result_type })
    assert.same({ { type = "integer" }, { type = "string" } },
      { t.params.properties.a, t.result.properties.b })
  end)

  it("gives nothing for what it was not given", function()
    local t = ah.tool { name = "t", description = "Brief." }
    for _, field in ipairs { "full_description", "result", "handler", "render", "timeout", "strict",
      "version" } do
      assert.is_nil(t[field], field)
    end
    assert.same({ {}, {} }, { t.examples, t.annotations })
    assert.equal("object", t.params.type)
  end)

  it("has no other fields, and says what is near", function()
    local err = raised(function() return tool().paramz end)
    assert.matches("tool_fields_spec.lua:%d+: tool: unknown field 'paramz' %(did you mean 'params'",
      err.message)
  end)
end)

describe("examples of a tool", function()
  local T = tool { examples = {
    { description = "A small \"sum\"", input = { sum = 3 }, output = { done = true } },
    { input = { sum = 4 } } } }
  local TEXT = 'Pays.\n\nExamples:\n- A small "sum": {"sum":3} -> {"done":true}\n- {"sum":4}'

  -- Returns the body of a request to the provider with the tools of these specifications.
  local function sent(provider, model, specs)
    local entries = { { type = "settings", model = "x", options = ah.object {} },
      { type = "tools_added", tools = server.array(specs) } }
    local lowered = ahtest.wire_lower({ provider = provider, model = model, base_url = "http://x",
      key = "sk-1" }, wire.encoded(entries))
    return lowered.body
  end

  it("are sent to Anthropic as input_examples", function()
    local body = sent("anthropic", "claude-sonnet-4-5", { kept(T) })
    local t = decode(body).tools[1]
    assert.same({ { sum = 3 }, { sum = 4 } }, t.input_examples)
    assert.equal("Pays.", t.description)
    body = sent("anthropic", "claude-sonnet-4-5", { kept(tool()) })
    assert.is_nil(decode(body).tools[1].input_examples)
  end)

  it("are sent to Anthropic as the arguments are, where these are wrapped", function()
    local t = ah.tool { name = "either", description = "Takes either.",
      schema = { type = "object", properties = { a = { type = "string" }, b = { type = "string" } },
        anyOf = { { required = { "a" } }, { required = { "b" } } } },
      examples = { { input = { a = "x" } } } }
    local got = decode(sent("anthropic", "claude-sonnet-4-5", { kept(t) })).tools[1]
    assert.same({ { wrapped_arguments = { a = "x" } } }, got.input_examples)
  end)

  local OTHERS = { openai = { "openai", "gpt-4o" }, responses = { "openai", "responses/gpt-5.5" },
    gemini = { "gemini", "gemini-2.5-pro" }, ollama = { "ollama", "qwen3" } }

  for name, model in pairs(OTHERS) do
    it("stand behind the description on wires without a place for them: " .. name, function()
      local body = sent(model[1], model[2], { kept(T) })
      assert.truthy(body:find(encode(TEXT), 1, true), body)
      assert.is_nil(body:find("input_examples", 1, true))
    end)

    it("and nothing else of what a tool says of itself is sent: " .. name, function()
      local plain = tool()
      local said = tool { annotations = { destructive = true }, version = "2" }
      assert.equal(sent(model[1], model[2], { kept(plain) }),
        sent(model[1], model[2], { kept(said) }))
    end)
  end

  it("are shown by a scripted model, which is shown nothing else of it either", function()
    local seen
    assert(ah.run { model = ah.scripted(function(request) seen = request.tools return "ok" end),
      tools = { tool { annotations = { read_only = true }, version = "1",
        examples = { { input = { sum = 1 } } } } }, "x" })
    assert.same({ { name = "pay", description = 'Pays.\n\nExamples:\n- {"sum":1}',
      parameters = tool().params } }, seen)
    assert.same(seen[1], tool({ examples = { { input = { sum = 1 } } } }).spec)
  end)

  it("come with the picked tool, not with its brief description", function()
    local requests = {}
    assert(ah.run { brief = true, tools = { T }, model = ah.scripted { tool_change_mode = "append",
      answer = function(request)
        requests[#requests + 1] = request
        return #requests == 1 and call("pick_tools", { tools = { "pay" } }) or "ok"
      end }, "x" })
    assert.equal("Pays.", requests[1].tools[1].description)
    local entries = requests[2].entries
    assert.truthy(entries[#entries].content:find(encode(TEXT), 1, true))
  end)

  it("are checked when the tool is declared", function()
    local err = raised(tool, { examples = { { input = { sum = "three" } } } })
    assert.equal("prompt_validation", err.code)
    assert.matches("tool_fields_spec.lua:%d+: tool 'pay': examples%[1%]: input: ", err.message)
    assert.same({ "pay", "sum" }, { err.tool, err.param })
  end)

  it("do not change the hash of an override", function()
    local function hash(fields)
      return ah.prompt { ns = "n", key = "p", ah.section { key = "a", title = "A", template = "a",
        tools = { tool(fields) } } }:hashes().tools.pay
    end
    assert.equal(hash(), hash { version = "2", annotations = { read_only = true },
      examples = { { input = { sum = 1 } } } })
    assert.not_equal(hash(), hash { description = "Else." })
  end)
end)
