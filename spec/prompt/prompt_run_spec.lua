-- Prompts in runs: read_section and the tools that it adds, and structured output.
local ah = require "agenthost"
local ahtest = require "ahtest"
local sound = require "support.sound"

local function tool(name)
  return ah.tool { name = name, description = "Does " .. name .. ".",
    handler = function() return name .. " was here" end }
end

local function call(name, arguments)
  return { calls = { { name = name, arguments = arguments } } }
end

local function read(key)
  return call("read_section", { section_key = key })
end

local function names(tools)
  local list = {}
  for i, t in ipairs(tools) do
    list[i] = t.name
  end
  return table.concat(list, " ")
end

-- Runs without a log; the requests are in `seen`.
local function run(turns, fields)
  local model = ah.scripted(turns)
  fields.model, fields.log = model, function() end
  local reply, err = ah.run(fields)
  sound.check((reply or err.reply):transcript())
  return reply, err, model.requests()
end

-- seed 000, Usage Example
local function context(more)
  local def = { title = "Context", key = "context", template = "Detailed research context...",
    summary = "Research context available.", visibility = "summary",
    tools = { tool "search", tool "cite" } }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.section(def)
end

local function contents(reply)
  local list = {}
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      list[#list + 1] = (m.success and "" or "failed: ") .. m.content
    end
  end
  return list
end

describe("a run with sections", function()
  it("says system, then the prompt, and offers tools, the prompt's, then read_section", function()
    local turn = { text = "ok", check = function() return true end }
    local _, _, requests = run({ turn }, { system = "Be brief.", tools = { tool "first" },
      context(), ah.section { title = "Work", template = "${what}", params = { what = "string" },
        tools = { tool "second" } }, params = { what = "Dig." }, "go" })
    assert.equal("first second read_section", names(requests[1].tools))
    assert.equal([[
Be brief.

## Context

Research context available.

---
[This section is summarized. To view full content, call `read_section` with key "context".]
]] .. "\n## Work\n\nDig.", requests[1].system)
    assert.same({ "section_key" }, requests[1].tools[3].parameters.required)
    assert.equal("Read the full content of a summarized section.",
      requests[1].tools[3].description)
  end)

  it("offers no read_section where nothing is summarized", function()
    local turn = { text = "ok", check = function() return true end }
    local _, _, requests = run({ turn }, { context { visibility = "full" }, "go" })
    assert.equal("search cite", names(requests[1].tools))
  end)

  it("takes a prompt made before, which handlers find", function()
    local seen
    local look = ah.tool { name = "look", description = "Looks.", handler = function(_, ctx)
      seen = { ctx.prompt, ctx.prompt.resources.db, ctx.prompt:render({ n = 1 }).text }
    end }
    local prompt = ah.prompt { key = "p", resources = { db = "here" },
      ah.section { key = "a", template = "n=${n}", params = { n = "integer" }, tools = { look } } }
    local reply = assert(run({ call "look", "ok" }, { prompt = prompt, params = { n = 1 }, "go" }))
    assert.equal("n=1", reply.messages[1].content)
    assert.same({ "here", "n=1" }, { seen[2], seen[3] })
    assert.is_true(seen[1] == prompt)
    run({ call "look", "ok" }, { tools = { ah.tool { name = "look", description = "Looks.",
      handler = function(_, ctx) seen = ctx.prompt == nil end } }, "go" })
    assert.is_true(seen)
  end)

  it("may have overrides", function()
    local prompt = ah.prompt { key = "p", ah.section { key = "a", template = "old" } }
    local hash = prompt:hashes().sections.a
    local file = { p = { sections = { a = { hash = hash, template = "new" } } } }
    local reply = assert(run({ "ok" }, { prompt = prompt, overrides = file, "go" }))
    assert.equal("new", reply.messages[1].content)
    assert.equal("old", prompt:render().text)
    file.p.sections.a.hash = "?"
    local logged = {}
    assert(ah.run { model = ah.scripted { "ok" }, prompt = prompt, overrides = file, "go",
      log = function(level, line) logged[#logged + 1] = level .. " " .. line end })
    assert.truthy(logged[1]:find("^warning override of section 'a' of prompt 'p' not applied"))
  end)

  it("raises what is wrong at the script's line", function()
    local s = ah.section { key = "a", params = { x = "string" }, template = "${x}",
      tools = { tool "t" } }
    local prompt = ah.prompt { s }
    for code, cases in pairs {
      usage = { { prompt = s }, { prompt = prompt, s }, { params = {} }, { overrides = {} },
        { s, "one", "two", params = { x = "" } }, { "text", s } },
      prompt_render = { { s }, { prompt = prompt }, { prompt = prompt, params = { y = 1 } },
        { s, params = "x" } },
      prompt_validation = { { s, s }, { s, tools = { tool "t" }, params = { x = "" } },
        { s, params = { x = "" }, overrides = {} }, { output = { type = "strin" } },
        { ah.section { key = "a", enabled = false, tools = { tool "t" } }, tools = { tool "t" } } },
    } do
      for i, fields in ipairs(cases) do
        fields.model = "demo/echo"
        local ok, err = pcall(ah.run, fields)
        assert.is_false(ok, code .. i)
        assert.equal(code, err.code, tostring(err))
        assert.truthy(err.message:find("prompt_run_spec.lua:", 1, true), err.message)
      end
    end
  end)

  it("goes on as an agent, its prompt said once", function()
    local model = ah.scripted { "one", "two" }
    local agent = ah.agent { model = model, context() }
    assert(agent:run "a")
    assert.equal(5, #assert(agent:run "b").messages)
    assert.is_false((pcall(ah.agent, { model = model, context(), "text" })))
  end)
end)

describe("read_section", function()
  it("gives the content in full with its parameters", function()
    local reply = assert(run({ read "context", "ok" }, { context { template = "All of ${x}",
      params = { x = "string" } }, params = { x = "it" }, hint = false, "go" }))
    assert.same({ "Content of section 'context':\n\n## Context\n\nAll of it" }, contents(reply))
  end)

  it("gives it whole, however long", function()
    local long = ("x"):rep(200000)
    local reply =
      assert(run({ read "context", "ok" }, { context { template = long }, hint = false, "go" }))
    assert.equal("Content of section 'context':\n\n## Context\n\n" .. long, contents(reply)[1])
  end)

  it("answers for unknown, disabled and open sections as seed 000 says", function()
    local open = ah.section { key = "open", template = "o",
      ah.section { key = "in", template = "i" } }
    local off = ah.section { key = "off", enabled = false, ah.section { key = "in" } }
    local reply = assert(run(
      { read "nothing", read "off", read "off.in", read "open", read "open.in", read "", "ok" },
      { context(), open, off, "go" }))
    assert.same({ "failed: Unknown section key: 'nothing'", "failed: Unknown section key: 'off'",
      "failed: Unknown section key: 'off.in'", "Section is already expanded.\n\no\n\ni",
      "Section is already expanded.\n\ni", "failed: Unknown section key: ''" }, contents(reply))
  end)

  it("leaves what is summarized below as it is, and reads that by its path", function()
    local reply = assert(run({ read "a", read "a.b", "ok" }, { ah.section { key = "a",
      template = "a", summary = "s", visibility = "summary", ah.section { key = "b",
        template = "b", summary = "t", visibility = "summary" } }, "go" }))
    assert.same({ "Content of section 'a':\n\na\n\nt\n\n---\n[This section is summarized. To view "
      .. 'full content, call `read_section` with key "a.b".]',
      "Content of section 'a.b':\n\nb" }, contents(reply))
  end)

  it("tells the model where a section's function fails", function()
    local asked = 0
    local reply = assert(run({ read "context", "ok" }, { context { enabled = function()
      asked = asked + 1
      return asked < 3 or error "no more" -- the read, then the next run
    end }, "go" }))
    local failed = "^failed: Tool 'read_section' execution failed: .*no more"
    assert.truthy(contents(reply)[1]:find(failed))
  end)
end)

-- -- results for strategies ----------------------------------------------------------------

describe("reading a section", function()
  local SUMMARY = { summary = "s", visibility = "summary" }

  local function node(key, more, ...)
    local def = { key = key, template = key, ... }
    for k, v in pairs(more) do
      def[k] = v
    end
    if more.tools ~= false then
      def.tools = { tool(key) }
    else
      def.tools = nil
    end
    return ah.section(def)
  end

  local function with(t, more)
    local copy = {}
    for k, v in pairs(t) do
      copy[k] = v
    end
    for k, v in pairs(more) do
      copy[k] = v
    end
    return copy
  end

  local function reading(prompt, path, shown)
    return ahtest.prompt_read(prompt, {}, shown or {}, path)
  end

  it("brings the tools of it and of its open, enabled descendants", function()
    local prompt = ah.prompt { node("a", SUMMARY, node("b", {}), node("c", SUMMARY, node("d", {})),
      node("e", { enabled = false }), node("f", { tools = false }, node("g", {}))), node("h", {}) }
    local r = reading(prompt, "a")
    assert.equal("content", r.kind)
    assert.equal("a b g", names(r.tools))
    assert.equal("a.f.g", r.tools[3].section)
    assert.same({ "a", "a.b", "a.f.g" }, r.open)
    local after = ahtest.prompt_shown(prompt, {}, { a = "full", ["a.b"] = "full",
      ["a.f.g"] = "full" })
    assert.equal("a b g h", names(after.tools))
    assert.same({ "a.c" }, after.summarized)
  end)

  it("brings nothing where there are no tools in the tree", function()
    local prompt = ah.prompt { node("a", with(SUMMARY, { tools = false }),
      node("b", with(SUMMARY, { tools = false }), node("c", {}))) }
    assert.same({ kind = "content", tools = {}, open = {},
      content = reading(prompt, "a").content }, reading(prompt, "a"))
    local inner = reading(prompt, "a.b") -- the sections around it must be open for its tools, too
    assert.equal("c", names(inner.tools))
    assert.same({ "a", "a.b", "a.b.c" }, inner.open)
  end)

  it("knows what the session has opened or closed", function()
    local prompt = ah.prompt { node("a", SUMMARY), node("b", { summary = "s" }), node("c", {}) }
    assert.equal("expanded", reading(prompt, "a", { a = "full" }).kind)
    assert.equal("content", reading(prompt, "b", { b = "summary" }).kind)
    -- without a summary the section stays open
    assert.equal("expanded", reading(prompt, "c", { c = "summary" }).kind)
    assert.same({ "a", "b" }, ahtest.prompt_shown(prompt, {}, { b = "summary" }).summarized)
  end)

  -- Makes a random tree: each section has a tool, some are summarized, some disabled.
  local function random_sections(random, prefix, depth)
    local list = {}
    for i = 1, random(0, 3) do
      local key = prefix .. i
      local def = { key = key, template = "full " .. key, summary = "summary " .. key,
        visibility = random(2) == 1 and "summary" or "full", enabled = random(5) > 1,
        tools = random(2) == 1 and { tool(key) } or nil }
      for j, child in ipairs(depth > 0 and random_sections(random, key .. "-", depth - 1) or {}) do
        def[j] = child
      end
      list[i] = ah.section(def)
    end
    return list
  end

  local function random_source(seed)
    local state = seed
    return function(m, n)
      if not n then
        m, n = 1, m
      end
      state = (state * 1103515245 + 12345) & 0x7fffffff
      return m + (state >> 8) % (n - m + 1)
    end
  end

  it("comes to the same tools as rendering with what it opened, in any order", function()
    local reads = 0
    for seed = 1, 60 do
      local random = random_source(seed)
      local prompt, shown = ah.prompt(random_sections(random, "s", 3)), {}
      for _ = 1, 12 do
        local before = ahtest.prompt_shown(prompt, {}, shown)
        local path = before.summarized[#before.summarized > 0 and random(#before.summarized) or 1]
        if not path then
          break
        end
        local r, have = reading(prompt, path, shown), {}
        assert.equal("content", r.kind)
        assert.equal(r.content, reading(prompt, path, shown).content)
        for _, t in ipairs(before.tools) do
          have[t.name] = t.section
        end
        for _, t in ipairs(r.tools) do
          assert.is_nil(have[t.name])
          have[t.name] = t.section
        end
        for _, opened in ipairs(r.open) do
          shown[opened] = "full"
        end
        assert.equal(#r.tools > 0, #r.open > 0)
        if #r.open == 0 then -- otherwise it would be offered forever
          shown[path] = "full"
        end
        local after = {}
        for _, t in ipairs(ahtest.prompt_shown(prompt, {}, shown).tools) do
          after[t.name] = t.section
        end
        assert.same(after, have)
        assert.equal("expanded", reading(prompt, path, shown).kind)
        reads = reads + 1
      end
    end
    assert.is_true(reads > 100, reads .. " reads")
  end)
end)

-- -- structured output -----------------------------------------------------------------------

describe("the JSON of an answer", function()
  it("is the whole text, or what stands in its one fence", function()
    for answer, json in pairs {
      [' {"a": 1}\n'] = '{"a": 1}', ["5"] = "5", ["no"] = "no", [""] = "",
      ["```json\n[1]\n```"] = "[1]", ["Here:\n\n```\n[1]\n```\nDone."] = "[1]",
      ["~~~JSON\n[1]\n~~~~"] = "[1]", ["   ```json  \r\n[1]\r\n   ```\r\n"] = "[1]",
      ["````\n```\n````"] = "```", ["```json\n[1"] = "[1",
      ["```lua\nx\n```\n```json\n2\n```"] = "2",
      ["```json\nnot\n```"] = "not", ['"```json\\n1\\n```"'] = '"```json\\n1\\n```"',
      ["```\n1\n```\n```\n2\n```"] = "```\n1\n```\n```\n2\n```",
      ["    ```\n1\n    ```"] = "```\n1\n    ```", ["`` 1 ``"] = "`` 1 ``",
    } do
      assert.equal(json, ahtest.output_find(answer), answer)
    end
  end)
end)

describe("a run with output", function()
  local SCHEMA = { type = "object", required = { "n" },
    properties = { n = { type = "integer" }, unit = { type = "string", default = "km" } } }

  it("gives the checked value, with defaults", function()
    local reply = assert(run({ '{"n": 9007199254740993}' }, { output = SCHEMA, "go" }))
    assert.same({ n = 9007199254740993, unit = "km" }, reply.value)
    assert.equal('{"n": 9007199254740993}', reply.text)
    assert.equal(reply.value, reply.value)
    assert.is_nil(assert(run({ "{}" }, { "go" })).value)
  end)

  it("tells the model the schema where the wire does not carry it", function()
    local turn = { text = "[]", check = function() return true end }
    local _, _, requests = run({ turn }, { system = "S.", output = { type = "array" }, "go" })
    assert.equal("S.\n\n## Response format\n\nAnswer with one JSON value and nothing else. It must "
      .. 'conform to this JSON Schema:\n\n{"type":"array"}', requests[1].system)
  end)

  it("takes the prompt's, unless it has its own", function()
    local prompt = ah.prompt { key = "p", output = SCHEMA, ah.section { key = "a" } }
    assert.equal(1, assert(run({ '{"n":1}' }, { prompt = prompt, "go" })).value.n)
    assert.same({ 2 }, assert(run({ "[2]" },
      { prompt = prompt, output = { type = "array" }, "go" })).value)
  end)

  it("tells the model what was wrong, and asks again", function()
    local warnings = {}
    local reply = assert(run({ "It is 5.", '{"n":"5"}', '```json\n{"n":5}\n```' },
      { output = SCHEMA, on = { warning = function(e) warnings[#warnings + 1] = e.message end },
        "go" }))
    assert.equal(5, reply.value.n)
    assert.equal(3, reply.iterations)
    local said = {}
    for _, m in ipairs(reply.messages) do
      said[#said + 1] = m.role == "user" and m.content:match("^[^\n]*") or nil
    end
    assert.truthy(said[2]:find("asked for: it is not JSON: ", 1, true), said[2])
    assert.truthy(said[3]:find('asked for: /n: must be an integer, found "5"', 1, true), said[3])
    assert.truthy(reply.messages[4].content:find('JSON Schema:\n\n{"properties":{"n"', 1, true))
    assert.equal(2, #warnings)
    assert.truthy(warnings[2]:find("asking again (2 of 2): /n:", 1, true))
  end)

  it("gives up after three answers, with the last in err.reply", function()
    local reply, err = run({ "a", "b", "c", "d" }, { output = SCHEMA, "go" })
    assert.is_nil(reply)
    assert.same({ "prompt_evaluation", "response", "c", 3 },
      { err.code, err.phase, err.reply.text, err.reply.iterations })
    assert.is_nil(err.reply.value)
  end)

  it("asks no more than the iterations allow, and a refusal not at all", function()
    local _, err = run({ "a", "b" }, { output = SCHEMA, max_iterations = 1, "go" })
    assert.equal("max_iterations_exceeded", err.code)
    _, err = run({ call "x", "b" }, { output = SCHEMA, max_iterations = 1, on_max = "answer",
      "go" })
    assert.equal("prompt_evaluation", err.code)
    _, err = run({ { refusal = "No.", stop = "refusal" } }, { output = SCHEMA, "go" })
    assert.equal("prompt_evaluation", err.code)
    assert.truthy(err.message:find("refused to answer: No.", 1, true))
  end)

  it("checks the last answer only: not those with calls, nor before what was sent", function()
    local agent
    local t = ah.tool { name = "t", description = "T.", handler = function()
      agent:send "and then?"
    end }
    agent = ah.agent { model = ah.scripted { { text = "Calling.", calls = { { name = "t" } } },
      '{"n":2}' }, tools = { t }, output = SCHEMA }
    assert.equal(2, assert(agent:run "go").value.n)
  end)

  it("keeps the schema in the settings", function()
    local reply = assert(run({ call "x", '{"n":1}' }, { output = SCHEMA, max_iterations = 1,
      on_max = "answer", "go" }))
    local settings = sound.of(sound.check(reply:transcript()), "settings")
    assert.equal(2, #settings)
    assert.same(settings[1].output, settings[2].output)
    assert.equal("object", settings[1].output.type)
  end)
end)

describe("examples/sections.lua", function()
  local function example(question)
    local binary = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/agenthost"
    local pipe <close> = assert(io.popen(("unset AGENTHOST_MODEL; %s examples/sections.lua %s 2>&1")
      :format(binary, question)))
    return pipe:read("a")
  end

  it("reads what it needs and answers with a value", function()
    assert.equal('read_section {"section_key":"desk.loans"}\n'
      .. "Films may be kept for 7 days. (desk.loans)\n", example "")
    assert.truthy(example("'Where do maps stay?'"):find("Maps stay in the house.", 1, true))
  end)
end)
