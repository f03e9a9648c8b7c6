-- Adapters written in Lua, and the conformance tests for adapters.
local ah = require "agenthost"
local sound = require "support.sound"

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

--- Plays the turns of a scripted model through an adapter in Lua. `change` spoils a turn.
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

--- Makes an adapter with its own loop: it asks for the results of its calls.
local function looping(turns, mode)
  local at = 0
  local say = play(setmetatable({}, { __index = function()
    return turns[at]
  end }))
  return {
    model = ah.adapter {
      name = "acme/loop",
      tool_change_mode = mode,
      images = true,
      answer = function(request, out)
        repeat
          at = at + 1
          local calls = type(turns[at]) == "table" and turns[at].calls
          say(request, out)
          if calls then
            request = select(2, out:results())
          end
        until not calls
      end,
    },
  }
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

  it("finds no fault in an adapter that makes its calls within one answer", function()
    for _, mode in ipairs { "restart", "append", "list_changed" } do
      local report = quietly {
        capabilities = { "streaming", "usage", "refusal", "length", "errors", "images" },
        serve = function(turns)
          return looping(turns, mode)
        end,
      }
      assert.equal(0, report.failed, tostring(report))
    end
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

  --- Makes an adapter with its own loop that sends the same turns as events of the Messages API.
  local function in_events(turns)
    local at = 0
    local function say(turn, out)
      local n = 0
      local function block(start, delta)
        out:line { type = "content_block_start", index = n, content_block = start }
        if delta then
          out:line { type = "content_block_delta", index = n, delta = delta }
        end
        out:line { type = "content_block_stop", index = n }
        n = n + 1
      end
      local usage = turn.usage or {}
      out:line { type = "message_start", message = { id = "m" .. at, usage = {
        input_tokens = usage.input } } }
      for _, piece in ipairs(type(turn.text) == "table" and turn.text or { turn.text }) do
        block({ type = "text", text = "" }, { type = "text_delta", text = piece })
      end
      for i, call in ipairs(turn.calls or {}) do
        block({ type = "tool_use", id = ("c%d_%d"):format(at, i), name = call.name,
          input = ah.object {} }, { type = "input_json_delta",
          partial_json = ah.json.encode(call.arguments or ah.object {}) })
      end
      if turn.cut then
        return
      end
      out:line { type = "message_delta", usage = { output_tokens = usage.output },
        delta = { stop_reason = turn.calls and "tool_use" or turn.stop and "max_tokens"
          or "end_turn" } }
      out:line(ah.json.encode { type = "message_stop" })
    end
    return {
      model = ah.adapter {
        name = "acme/lines", reads = "anthropic", images = true,
        answer = function(_, out)
          repeat
            at = at + 1
            local turn = type(turns[at]) == "string" and { text = turns[at] } or turns[at]
            if turn.delay then
              ah.sleep(turn.delay)
            end
            if turn.fail then
              return out:fail(turn.fail)
            end
            say(turn, out)
            if turn.calls then
              out:results()
            end
          until not turn.calls
        end,
      },
    }
  end

  it("finds no fault in an adapter that hands on another wire's lines", function()
    local report = quietly {
      capabilities = { "streaming", "usage", "length", "errors", "images", "cut" },
      serve = in_events,
    }
    assert.equal(0, report.failed, tostring(report))
    assert.equal(2, report.skipped, tostring(report))
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
        "out:text: expected string, found number",
      },
      {
        function(_, out)
          out:call {}
        end,
        "out:call: field 'name' is missing",
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
        "out:usage: field 'input' must be an integer",
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

  local function add_tool(seen)
    return ah.tool { name = "add", description = "Adds.", params = { a = "integer", b = "integer" },
      handler = function(args)
        seen[#seen + 1] = args.a .. "+" .. args.b
        return args.a + args.b
      end }
  end

  it("has its calls made within an answer, as those of any model", function()
    local seen, events, answers, more = {}, {}, 0, nil
    local reply = assert(run(function(_, out)
      answers = answers + 1
      out:text "Let me see."
      local result = out:invoke { name = "add", id = "one", arguments = { a = 1, b = 2 } }
      assert.same({ "one", "add", true, "3" },
        { result.id, result.name, result.success, result.content })
      out:call { name = "add", arguments = { a = 3, b = 4 } }
      out:call { name = "add", arguments = { a = "x", b = 4 } }
      local list, request = out:results()
      more = { list[1].content, list[2].success, request.entries[#request.entries].type }
      return "All done."
    end, { tools = { add_tool(seen) }, on = function(e)
      events[#events + 1] = e.type ~= "content" and e.type or nil
    end }))
    assert.equal("All done.", reply.text)
    assert.equal(1, answers)
    assert.same({ "1+2", "3+4" }, seen)
    assert.same({ "7", false, "tool_result" }, more)
    assert.same({ 3, 3 }, { reply.iterations, reply.tool_calls })
    assert.equal("Let me see.", reply.messages[2].content)
    sound.check(reply:transcript())
    local invoked = 0
    for _, kind in ipairs(events) do
      invoked = invoked + (kind == "tool_invoked" and 1 or 0)
    end
    assert.equal(3, invoked)
  end)

  it("sees notes and new tools in the request that comes with results", function()
    local told
    local reply = assert(run(function(_, out)
      local _, request = out:invoke { name = "open" }
      told = { request.entries[#request.entries].text, #request.tools }
      return "open"
    end, { tools = { ah.tool { name = "open", description = "Opens.", handler = function(_, ctx)
      ctx:note "It is dark."
      return "opened"
    end } } }))
    assert.equal("open", reply.text)
    assert.same({ "It is dark.", 1 }, told)
  end)

  it("is ended where the results do not come, and its values are closed", function()
    local closed, after, agent = 0, 0, nil
    local function slow(handler, fields)
      local t = { name = "slow", description = "Is slow.", handler = handler }
      for k, v in pairs(fields or {}) do
        t[k] = v
      end
      return ah.tool(t)
    end
    local ways = {
      cancelled = { slow(function() agent:cancel() ah.sleep(5) end) },
      deadline_exceeded = { slow(function() ah.sleep(5) end), timeout = 0.2 },
      max_iterations_exceeded = { slow(function() end), max_iterations = 1 },
      budget_exceeded = { slow(function() end), budget = { tool_calls = 0 } },
      [""] = { slow(function() return "x" end, { return_direct = true }) },
    }
    local count = 0
    for code, way in pairs(ways) do
      count = count + 1
      agent = ah.agent { log = function() end, tools = { way[1] }, timeout = way.timeout,
        max_iterations = way.max_iterations, budget = way.budget,
        model = ah.adapter { name = "acme/large", answer = function(request, out)
          local guard <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
          if request.entries[#request.entries].content[1].text == "Second" then
            return "right"
          end
          out:invoke { name = "slow" }
          after = after + 1
          return tostring(guard)
        end } }
      local reply, err = agent:run "First"
      assert.equal(code, reply and "" or err.code, tostring(err))
      assert.equal(2 * count - 1, closed)
      sound.check(agent:transcript())
      agent:close()
      agent = ah.agent { model = ah.scripted { "x" } }
      closed = 2 * count
    end
    assert.equal(0, after)
  end)

  it("cannot wait for results of no calls, nor behind its end", function()
    for words, answer in pairs {
      ["the message has no calls"] = function(_, out) out:results() end,
      ["the answer has ended"] = function(_, out) out:call { name = "x" } out:stop "tool_calls"
        out:results() end,
      ["out:invoke: unknown field 'nam'"] = function(_, out) out:invoke { nam = "x" } end,
    } do
      local reply, err = run(answer, { retries = 0 })
      assert.is_nil(reply)
      assert.equal("provider", err.code)
      has(err.message, words)
    end
  end)

  it("waits for results in a coroutine of its own, too", function()
    local seen = {}
    local reply = assert(run(function(_, out)
      return coroutine.wrap(function()
        return out:invoke { name = "add", arguments = { a = 1, b = 2 } }.content
      end)()
    end, { tools = { add_tool(seen) } }))
    assert.equal("3", reply.text)
    local agent
    agent = ah.agent { tools = { ah.tool { name = "slow", description = "Is slow.",
      handler = function() agent:cancel() ah.sleep(5) end } },
      model = ah.adapter { name = "acme/large", answer = function(_, out)
        return coroutine.wrap(function()
          return out:invoke { name = "slow" }.content
        end)()
      end } }
    local _, err = agent:run "x"
    assert.equal("cancelled", err.code)
    sound.check(agent:transcript())
  end)

  it("is asked anew, with the results, where a later message fails and is tried again", function()
    local seen, answers = {}, {}
    local reply = assert(run(function(request, out)
      answers[#answers + 1] = #request.entries
      if #answers == 1 then
        out:invoke { name = "add", arguments = { a = 1, b = 2 } }
        out:fail { message = "busy", status = 503, retryable = true, retry_after = 0.01 }
        return
      end
      return "It is " .. request.entries[#request.entries].content
    end, { tools = { add_tool(seen) }, retries = 1, log = function() end }))
    assert.equal("It is 3", reply.text)
    assert.same({ "1+2" }, seen)
    assert.same({ 1, 3 }, answers)
  end)

  --- Makes an adapter; the ends of its states are listed as "number why".
  local function keeping(answer, more)
    local told, opened = {}, 0
    local spec = { name = "acme/kept", answer = answer,
      open = function()
        opened = opened + 1
        return { number = opened, answers = 0 }
      end,
      close = function(state, why)
        ah.sleep(0.01) -- close may wait
        told[#told + 1] = state.number .. " " .. why
      end }
    for k, v in pairs(more or {}) do
      spec[k] = v
    end
    return ah.adapter(spec), told
  end

  local function wait_for(told, n)
    for _ = 1, 500 do
      if #told >= n then
        break
      end
      ah.sleep(0.01)
    end
    return told
  end

  local function count(_, _, state)
    state.answers = state.answers + 1
    return state.number .. "." .. state.answers
  end

  it("keeps a state for each conversation, and closes it with that", function()
    local model, told = keeping(count)
    local first, second = ah.agent { model = model }, ah.agent { model = model }
    assert.equal("1.1", assert(first:run "a").text)
    assert.equal("2.1", assert(second:run "a").text)
    assert.equal("1.2", assert(first:run "b").text)
    local fork = first:fork()
    assert.equal("3.1", assert(fork:run "c").text)
    first:close()
    assert.same({ "1 over" }, wait_for(told, 1))
    assert.equal("2.2", assert(second:run "b").text)
    second = nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.same({ "1 over", "2 over" }, wait_for(told, 2))
    assert(fork:use "demo/echo")
    assert(fork:run "d")
    assert.equal("3 over", wait_for(told, 3)[3])
    assert.equal("4.1", assert(ah.run { model = model, "x" }).text)
    collectgarbage()
    collectgarbage()
    assert.equal("4 over", wait_for(told, 4)[4])
  end)

  it("closes all states where the adapter itself goes", function()
    local model, told = keeping(count)
    local agent = ah.agent { model = model }
    assert(agent:run "a")
    agent, model = nil, nil -- luacheck: ignore
    collectgarbage()
    collectgarbage()
    assert.same({ "1 over" }, wait_for(told, 1))
  end)

  it("closes the state of an answer that is stopped, fails, or has lost its run", function()
    local agent
    local how
    local ways = {
      waits = function() agent:cancel() ah.sleep(5) end,
      raises = function() error "broken" end,
      fails = function(_, out) out:fail { message = "busy", status = 400 } end,
      lost = function(_, out) out:invoke { name = "slow" } end,
      answers = function() return "fine" end,
    }
    local model, told = keeping(function(...) return ways[how](...) end)
    agent = ah.agent { model = model, log = function() end, retries = 0, max_iterations = 1,
      tools = { ah.tool { name = "slow", description = "Slow.", handler = function() end } } }
    for i, case in ipairs { { "waits", "stopped" }, { "raises", "failed" }, { "fails", "failed" },
      { "lost", "stopped" } } do
      how = case[1]
      assert.is_nil((agent:run "x"))
      assert.equal(i .. " " .. case[2], wait_for(told, i)[i])
      sound.check(agent:transcript())
    end
    how = "answers"
    assert(agent:run "x")
    assert(agent:run "y")
    ah.sleep(0.05)
    assert.equal(4, #told)
    agent:close()
    assert.equal("5 over", wait_for(told, 5)[5])
  end)

  it("closes states that nobody asks for, and the oldest of too many", function()
    local model, told = keeping(count, { idle = 0.1 })
    local agent = ah.agent { model = model }
    assert.equal("1.1", assert(agent:run "a").text)
    assert.same({ "1 idle" }, wait_for(told, 1))
    assert.equal("2.1", assert(agent:run "a").text)
    agent:close()
    assert.equal("2 over", wait_for(told, 2)[2])
    model, told = keeping(count, { keep = 2 })
    local agents = {}
    for i = 1, 3 do
      agents[i] = ah.agent { model = model }
      assert(agents[i]:run "a")
      ah.sleep(0.01)
    end
    assert.same({ "1 room" }, wait_for(told, 1))
    for _, each in ipairs(agents) do
      each:close()
    end
    wait_for(told, 3)
  end)

  it("stops a close that takes too long, and an open that is not waited for", function()
    local at_work, closed = 0, 0
    local function guard()
      at_work = at_work + 1
      return setmetatable({}, { __close = function() closed = closed + 1 end })
    end
    local opened
    opened = ah.adapter { name = "acme/slow", answer = function() return "x" end,
      open = function() local g <close> = guard() ah.sleep(20) return g end }
    local _, err = ah.run { model = opened, timeout = 0.1, "x" }
    assert.equal("deadline_exceeded", err.code)
    assert.same({ 1, 1 }, { at_work, closed })
    local agent = ah.agent { model = keeping(count, { close = function()
      local g <close> = guard() ah.sleep(60) return g
    end }) }
    assert(agent:run "x")
    agent:close()
    local began = ah.now()
    while closed < 2 and ah.now() - began < 30 do
      ah.sleep(0.1)
    end
    assert.same({ 2, 2 }, { at_work, closed })
    assert.is_true(ah.now() - began >= 4)
  end)

  local DONE = {
    anthropic = { '{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}',
      '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi"}}',
      '{"type":"content_block_stop","index":0}',
      '{"type":"message_delta","delta":{"stop_reason":"end_turn"}}' },
    openai = { '{"choices":[{"index":0,"delta":{"content":"Hi"}}]}',
      '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}' },
    responses = { '{"type":"response.output_text.delta","output_index":0,"content_index":0,'
      .. '"item_id":"a","delta":"Hi"}',
      '{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}' },
    gemini = { '{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},'
      .. '"finishReason":"STOP"}]}' },
    ollama = { '{"message":{"role":"assistant","content":"Hi"},"done":false}',
      '{"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}' },
  }

  local function reading(wire, lines, ends)
    return ah.adapter { name = "acme/lines", reads = wire, answer = function(_, out)
      for _, line in ipairs(lines) do
        out:line(line)
      end
      return ends and ends(out)
    end }
  end

  it("hands on lines of each wire that is read here", function()
    for wire, lines in pairs(DONE) do
      local reply, err = ah.run { model = reading(wire, lines), retries = 0, "Hello?" }
      assert.equal("Hi", reply and reply.text, wire .. ": " .. tostring(err))
      local cut = table.move(lines, 1, #lines - 1, 1, {})
      reply, err = ah.run { model = reading(wire, cut), retries = 0, "Hello?" }
      assert.is_nil(reply)
      assert.equal("http", err.code, wire)
    end
  end)

  it("fails by lines that are none of the wire, and by what is no line", function()
    for line, words in pairs {
      ["Welcome!"] = "is not JSON",
      ["[1]"] = "JSON object",
      ['{"type":"message_start","message":7}'] = "message must be",
      ['{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'] = "busy",
      ['{"type":"error","error":{"type":"authentication_error","message":"who?"}}'] =
        "the key of this adapter",
      ["a\nb"] = "one line at a time",
      [7] = "expected string or table, found number",
    } do
      local reply, err = ah.run { model = reading("anthropic", { line }), retries = 0,
        log = function() end, "Hello?" }
      assert.is_nil(reply)
      assert.equal("provider", err.code)
      has(err.message, words)
    end
  end)

  it("keeps pieces of our own and lines apart", function()
    for words, f in pairs {
      ["out:text: the adapter reads anthropic"] = function(out) out:text "x" end,
      ["out:call: the adapter reads anthropic"] = function(out) out:call { name = "x" } end,
      ["out:text: the adapter reads anthropic: its"] = function() return "x" end,
    } do
      local _, err = ah.run { model = reading("anthropic", {}, f), retries = 0,
        log = function() end, "Hello?" }
      has(err.message, words)
    end
    local _, err = run(function(_, out) out:line "{}" end, { retries = 0, log = function() end })
    has(err.message, "the adapter reads no wire")
  end)

  it("tells failures beside lines, and when to try again", function()
    local delays, tries = {}, 0
    local reply = assert(ah.run { retries = 1, log = function() end, "Hello?",
      on = { retry = function(e) delays[#delays + 1] = e.delay end },
      model = ah.adapter { name = "acme/lines", reads = "openai", answer = function(_, out)
        tries = tries + 1
        if tries == 1 then
          return out:fail { message = "busy", status = 429, retryable = true, retry_after = 0.02 }
        end
        out:line(DONE.openai[1])
        out:line(DONE.openai[2])
      end } })
    assert.equal("Hi", reply.text)
    assert.same({ 0.02 }, delays)
    local _, err = ah.run { retries = 0, log = function() end, "Hello?",
      model = reading("gemini", {}, function(out)
        out:fail { message = "too long", code = "context_full", window = 5, used = 9 }
      end) }
    assert.same({ "context_full", 5 }, { err.code, err.window })
  end)

  it("knows that it is cancelled while it works", function()
    local agent, before, after
    agent = ah.agent { on = { content = function() agent:cancel() end },
      model = ah.adapter { name = "acme/large", answer = function(_, out)
        before = out:cancelled()
        out:text "x"
        after = out:cancelled()
        return "y"
      end } }
    agent:run "x" -- the answer was complete before it was read
    assert.same({ false, true }, { before, after })
  end)

  it("is refused where its fields make no sense", function()
    local function answer() end
    for wrong, words in pairs {
      [{ name = "acme/x", answer = answer, close = answer }] = "need 'open'",
      [{ name = "acme/x", answer = answer, open = answer, idle = 0 }] = "number from 0.001 to",
      [{ name = "acme/x", answer = answer, open = answer, keep = 0 }] = "of at least 1",
      [{ name = "acme/x", answer = answer, reads = "x" }] = "\"gemini\" or \"ollama\", found \"x\"",
      [{ answer = answer }] = "field 'name' is missing",
      [{ name = "acme", answer = answer }] = "must be of the form provider/model",
      [{ name = "acme/x" }] = "field 'answer' is missing",
      [{ name = "acme/x", answer = answer, mode = "x" }] = "unknown field 'mode'",
      [{ name = "acme/x", answer = answer, tool_change_mode = "x" }] = "\"restart\", found \"x\"",
    } do
      local ok, err = pcall(ah.adapter, wrong)
      assert.is_false(ok)
      has(tostring(err), words)
    end
  end)
end)
