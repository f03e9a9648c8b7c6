-- Tools whose result is the answer, without another model call. docs/reference/tool.md, "ah.tool".
local ah = require "agenthost"
local server = require "support.server"
local sound = require "support.sound"

local function quiet() end

local function tool(name, handler, fields)
  local t = { name = name, description = "The tool " .. name .. ".", params = { n = "integer?" },
    handler = handler or function() return name end }
  for k, v in pairs(fields or {}) do
    t[k] = v
  end
  return ah.tool(t)
end

local function direct(name, handler, fields)
  fields = fields or {}
  fields.return_direct = true
  return tool(name, handler, fields)
end

local function calls(...)
  local list = {}
  for i, name in ipairs { ... } do
    list[i] = { name = name }
  end
  return { calls = list }
end

local function run(fields)
  fields.log, fields[1] = quiet, fields[1] or "go"
  local reply, err = ah.run(fields)
  sound.check((reply or err.reply):transcript())
  return reply, err
end

describe("a tool that returns direct", function()
  it("ends the run with its result, which stands in the conversation", function()
    local done
    local reply = run { tools = { direct "a" }, model = ah.scripted { calls "a" },
      on = { done = function(e) done = e end } }
    assert.same({ "a", "tool", 1, 1, 1 },
      { reply.text, reply.stop, reply.iterations, reply.rounds, reply.tool_calls })
    assert.same({ "tool", "a" }, { reply.messages[#reply.messages].role, tostring(reply) })
    assert.same({ true, "tool", "a" }, { done.success, done.stop, done.text })
  end)

  it("gives what the model would see of the result", function()
    for content, handler in pairs {
      ['{"n":1}'] = function() return { n = 1 } end,
      ["Said.\n\n2"] = function() return ah.ok(2, "Said.") end,
      ["kept"] = function()
        return ah.result { message = "kept", value = 1, exclude_value_from_context = true }
      end,
      ["OK"] = function() end,
      ["null"] = function() return nil end,
    } do
      local reply = run { tools = { direct("a", handler) }, model = ah.scripted { calls "a" } }
      assert.same({ content, content }, { reply.text, reply.messages[3].content })
    end
    local reply = run { tools = { direct("a", function() return 7 end,
      { render = function(v) return "seven: " .. v end }) }, model = ah.scripted { calls "a" } }
    assert.equal("seven: 7", reply.text)
  end)

  it("ends it where all calls of the answer are such, in their order", function()
    for _, parallel in ipairs { false, true } do
      local function slow(name)
        return direct(name, function()
          ah.sleep(name == "a" and 0.01 or 0)
          return name
        end, { parallel = parallel })
      end
      local reply = run { tools = { slow "a", slow "b" }, model = ah.scripted { calls("a", "b") } }
      assert.same({ "a\n\nb", 2 }, { reply.text, reply.tool_calls })
    end
  end)

  it("lets the run go on beside others, after a failure and after a refusal", function()
    local broken = direct("broken", function() return nil, "no" end)
    for _, turn in ipairs {
      calls("a", "other"), calls("other", "a"), calls("a", "broken"), calls("a", "nowhere"),
      { calls = { { name = "a", arguments = "{" } } }, { calls = { { name = "a",
        arguments = { x = 1 } } } },
    } do
      local reply = run { tools = { direct "a", tool "other", broken },
        model = ah.scripted { turn, "said" } }
      assert.same({ "said", "end", 2 }, { reply.text, reply.stop, reply.iterations })
    end
    local reply = run { tools = { direct "a" }, model = ah.scripted { calls "a", "said" },
      policies = { function() return "deny", "no" end } }
    assert.equal("said", reply.text)
    reply = run { tools = { direct "a" }, model = ah.scripted { calls "a", "said" },
      strategies = { { name = "shut", before = function() return "shut" end } } }
    assert.equal("said", reply.text)
  end)

  it("counts anew with each answer", function()
    local reply = run { tools = { direct "a", tool "other" },
      model = ah.scripted { calls("a", "other"), calls "other", calls "a" } }
    assert.same({ "a", 3 }, { reply.text, reply.iterations })
  end)

  it("may be a method of an entity, and what an executor runs", function()
    local Thing = ah.entity { name = "Thing" }:tool { name = "show", description = "Shows.",
      return_direct = true, handler = function(self) return "thing " .. self.id end }
    local reply = run { discover = true, tools = { tool("find", function()
      return Thing { id = 1 }
    end) }, model = ah.scripted { calls "find", calls "thing_1_show" } }
    assert.equal("thing 1", reply.text)
    local declared = ah.tool { name = "a", description = "A.", return_direct = true }
    reply = run { tools = { declared }, executors = { a = function() return "run" end },
      model = ah.scripted { calls "a" } }
    assert.equal("run", reply.text)
  end)

  it("is neither cut short by words to the model nor shows it keys", function()
    local reply = run { tools = { direct("a", function(_, ctx)
      ctx:add_tools(tool "new")
      return "a"
    end) }, model = ah.scripted { calls "a" } }
    assert.same({ "a", { "new" } }, { reply.text, reply.injected_tools })
    local key = "sk-canary-1234567890"
    local s <close> = server.start { responses = { server.chat_call("a", "{}", "c1") } }
    reply = run { model = "openai/m", base_url = s.url, api_key = key,
      tools = { direct("a", function() return "key " .. key end) } }
    assert.equal("key [secret]", reply.text)
  end)

  it("answers to `output` and `checks` as a model does", function()
    local schema = { type = "object", properties = { n = { type = "integer" } },
      required = { "n" } }
    local reply = run { output = schema, tools = { direct("a", function() return { n = 1 } end) },
      model = ah.scripted { calls "a" } }
    assert.same({ n = 1 }, reply.value)
    reply = run { output = schema, tools = { direct "a" },
      model = ah.scripted { calls "a", '{"n":2}' } }
    assert.same({ n = 2 }, reply.value)
    local looked = {}
    reply = run { tools = { direct "a" }, model = ah.scripted { calls "a", "better" },
      checks = { function(answer)
        looked[#looked + 1] = answer.text
        return answer.text == "a" and "Say it better." or nil
      end } }
    assert.same({ "better", { "a", "better" } }, { reply.text, looked })
  end)

  it("ends the last run of max_iterations, and none that the budget ends", function()
    assert.equal("a", run({ tools = { direct "a" }, model = ah.scripted { calls "a" },
      max_iterations = 1 }).text)
    local _, err = run { tools = { direct "a" }, budget = { tool_calls = 0 },
      model = ah.scripted { calls "a" } }
    assert.equal("budget_exceeded", err.code)
  end)

  it("leaves a conversation that goes on, also from a file", function()
    local a = direct "a"
    local agent = ah.agent { tools = { a }, log = quiet, model = ah.scripted { calls "a",
      { expect = { tools = { "a" } }, text = "later" }, calls "a" } }
    assert.equal("a", agent:run("one").text)
    local path = os.tmpname()
    assert(agent:save(path))
    assert.equal("later", agent:run("two").text)
    assert.equal("a", agent:run("three").text)
    local loaded = assert(ah.load(path, { model = ah.scripted { calls "a" }, tools = { a },
      log = quiet }))
    assert.equal("a", loaded:run("two").text)
    sound.check(loaded:transcript())
    os.remove(path)
  end)

  it("waits for what the user says meanwhile", function()
    local agent
    agent = ah.agent { log = quiet, model = ah.scripted { calls "a", "both" },
      tools = { direct("a", function()
        agent:send "and this"
        return "a"
      end) } }
    local reply = agent:run "go"
    assert.same({ "both", "end" }, { reply.text, reply.stop })
  end)

  it("is declared as others are, and its field is a boolean", function()
    assert.same(tool("a").spec, direct("a").spec)
    local _, err = pcall(tool, "a", nil, { return_direct = "yes" })
    assert.matches("field 'return_direct' must be a boolean", err.message, 1, true)
  end)
end)
