-- Adapters written in Lua, and the kit that tries adapters.
local ah = require "agenthost"

local ALL = { "streaming", "usage", "refusal", "length", "errors", "images", "cut" }

local function quietly(spec)
  local serve = spec.serve
  spec.serve = function(turns)
    local fields = serve(turns)
    fields.log = function() end
    return fields
  end
  return ah.conformance(spec)
end

local function has(text, part)
  assert.truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

--- The turns of a scripted model, said by an adapter in Lua. `change` spoils what it says.
local function play(turns, change)
  local at = 0
  return function(_, out)
    at = at + 1
    local turn = turns[at]
    turn = type(turn) == "string" and { text = turn } or turn
    turn = change and change(turn) or turn
    if turn.delay then
      ah.sleep(turn.delay)
    end
    if turn.fail then
      return out:fail(turn.fail)
    end
    for _, piece in ipairs(type(turn.text) == "table" and turn.text or { turn.text }) do
      out:text(piece)
    end
    for _, call in ipairs(turn.calls or {}) do
      local n = out:call { name = call.name, id = call.id }
      for piece in ah.json.encode(call.arguments or ah.object {}):gmatch ".[\x80-\xBF]*" do
        out:arguments(n, piece)
      end
    end
    if turn.refusal then
      out:refusal(turn.refusal)
    end
    if turn.usage then
      out:usage(turn.usage)
    end
    if turn.stop then
      out:stop(turn.stop)
    end
  end
end

local function in_lua(turns, mode, change)
  return {
    model = ah.adapter {
      name = "acme/large",
      tool_change_mode = mode,
      images = true,
      answer = play(turns, change),
    },
  }
end

describe("ah.conformance", function()
  for _, mode in ipairs {
    "append",
    "inline",
    "reference",
    "additional_tools",
    "search_pair",
    "list_changed",
    "dispatcher",
    "restart",
  } do
    it("finds no fault in a scripted model that takes tools by " .. mode, function()
      local report = quietly {
        capabilities = ALL,
        serve = function(turns)
          turns.tool_change_mode = mode
          return { model = ah.scripted(turns) }
        end,
      }
      assert.equal(0, report.failed, tostring(report))
      assert.equal(mode == "restart" and 1 or 0, report.skipped, tostring(report))
    end)
  end

  it("finds no fault in an adapter in Lua, which restarts where it declares nothing", function()
    local report = quietly {
      capabilities = { "streaming", "usage", "refusal", "length", "errors", "images" },
      serve = in_lua,
    }
    assert.equal(0, report.failed, tostring(report))
    assert.equal(2, report.skipped)
    has(tostring(report), "skipped an answer that breaks off is none: needs cut")
    has(tostring(report), "skipped no cache is lost where the mode keeps it: needs dynamic")
    has(tostring(report), ("\n%d passed, 0 failed, 2 skipped"):format(report.passed))
    report = quietly {
      only = "no cache is lost",
      serve = function(turns)
        return in_lua(turns, "append")
      end,
    }
    assert.equal(1, report.passed)
  end)

  it("tells what an adapter does wrong", function()
    local faults = {
      ["a tool call and its result"] = function(turn)
        if turn.calls then
          turn.calls[1].arguments.a = "2"
        end
        return turn
      end,
      ["two calls in one message"] = function(turn)
        return turn.calls and { calls = { turn.calls[2], turn.calls[1] } } or turn
      end,
      ["text of all kinds of characters"] = function(turn)
        return { text = turn.text:gsub("[^ -~]", "?") }
      end,
      ["tokens are counted"] = function(turn)
        return { text = turn.text }
      end,
      ["a refusal"] = function(turn)
        return { text = turn.refusal }
      end,
      ["an answer that a limit cut off"] = function(turn)
        return { text = turn.text }
      end,
      ["a failure that passes is tried again"] = function(turn)
        if turn.fail then
          turn.fail.retryable = false
        end
        return turn
      end,
    }
    for name, change in pairs(faults) do
      local report = quietly {
        capabilities = ALL,
        only = name,
        serve = function(turns)
          return in_lua(turns, nil, change)
        end,
      }
      assert.equal(1, report.failed, tostring(report))
      assert.equal("failed", report.cases[1].outcome)
      assert.is_string(report.cases[1].message)
    end
  end)

  it("closes what it served after each case", function()
    local open = 0
    local report = quietly {
      only = "tool call",
      serve = function(turns)
        local fields = in_lua(turns)
        open = open + 1
        fields.close = function()
          open = open - 1
        end
        return fields
      end,
    }
    assert.equal(1, report.passed)
    assert.equal(0, open)
  end)

  it("refuses what it does not know", function()
    local serve = in_lua
    for wrong, words in pairs {
      [{}] = "field 'serve' is missing",
      [{ serve = serve, capabilities = { "telepathy" } }] = "unknown capability 'telepathy'",
      [{ serve = 1 }] = "field 'serve' must be a function",
      [{ serve = serve, capability = {} }] = "unknown field 'capability'",
    } do
      local ok, err = pcall(ah.conformance, wrong)
      assert.is_false(ok)
      has(tostring(err), words)
    end
  end)
end)

describe("ah.adapter", function()
  local function run(answer, fields)
    fields = fields or {}
    fields.model = ah.adapter { name = "acme/large", answer = answer }
    fields[#fields + 1] = "Hello?"
    return ah.run(fields)
  end

  it("gets the request and gives the answer, returned or written", function()
    local asked
    local reply = run(function(request, out)
      asked = request
      out:text "Hello, "
      return "you."
    end, { system = "Be kind.", options = { temperature = 0.5 } })
    assert.equal("Hello, you.", reply.text)
    assert.equal("Be kind.", asked.system)
    assert.equal("large", asked.model)
    assert.equal(0.5, asked.options.temperature)
    assert.equal("Hello?", asked.entries[1].content[1].text)
  end)

  it("gets back what is opaque, and no other adapter does", function()
    local seen = {}
    local function say(name)
      return ah.adapter {
        name = name,
        answer = function(request, out)
          for _, entry in ipairs(request.entries) do
            for _, part in ipairs(entry.type == "assistant" and entry.content or {}) do
              seen[#seen + 1] = part.type == "opaque" and part.data.signature or nil
            end
          end
          out:opaque { signature = name }
          return "Yes."
        end,
      }
    end
    local agent = ah.agent { model = say "acme/large" }
    assert(agent:run "One?")
    assert(agent:run "Two?")
    assert.same({ "acme/large" }, seen)
  end)

  it("fails a run with what it says, raises or writes wrongly", function()
    local cases = {
      {
        function(_, out)
          out:fail { message = "busy", status = 429 }
        end,
        "busy",
        429,
      },
      {
        function()
          error "broken"
        end,
        "broken",
      },
      {
        function(_, out)
          out:text(3)
        end,
        "out:text: expected string, found integer",
      },
      {
        function(_, out)
          out:call {}
        end,
        "out:call: field 'name': expected string, found nil",
      },
      {
        function(_, out)
          out:call { nam = "x" }
        end,
        "out:call: unknown field 'nam'",
      },
      {
        function(_, out)
          out:arguments(1, "{}")
        end,
        "out:arguments: there is no such call",
      },
      {
        function(_, out)
          out:usage { tokens = 1 }
        end,
        "out:usage: unknown field 'tokens'",
      },
      {
        function(_, out)
          out:usage { input = 1.5 }
        end,
        "out:usage: field 'input': expected integer, found number",
      },
    }
    for _, case in ipairs(cases) do
      local reply, err = run(case[1], { retries = 0 })
      assert.is_nil(reply)
      assert.equal("provider", err.code)
      assert.equal(case[3], err.status)
      has(err.message, case[2])
    end
  end)

  it("is refused where its fields make no sense", function()
    local function answer() end
    for wrong, words in pairs {
      [{ answer = answer }] = "field 'name': expected string, found nil",
      [{ name = "acme", answer = answer }] = "must be of the form provider/model",
      [{ name = "acme/x" }] = "field 'answer': expected function, found nil",
      [{ name = "acme/x", answer = answer, mode = "x" }] = "unknown field 'mode'",
      [{ name = "acme/x", answer = answer, tool_change_mode = "x" }] = "invalid option 'x'",
    } do
      local ok, err = pcall(ah.adapter, wrong)
      assert.is_false(ok)
      has(tostring(err), words)
    end
  end)
end)
