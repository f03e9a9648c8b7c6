-- One script, run by each adapter against `agenthost mock`: the same answer, the same conversation
-- except for parts that only one wire has, and a cache that breaks only where it must.
local ah = require "agenthost"
local mock = require "support.mock"

local it = mock.is_built() and it or pending

-- One line for each adapter: its model, the path behind the server's address, the cache breaks that
-- its run reports, and `silent`: the kinds of answers in which its wire does not report cached
-- tokens. Ollama's wire never does; servers that are not known to accept stream_options are not
-- asked for them in streams.
local ADAPTERS = {
  { model = "openai/gpt-4o", path = "/v1", breaks = { "tools_changed" } },
  { model = "openai/responses/gpt-5.4", path = "/v1", breaks = {} },
  { model = "anthropic/claude-opus-4-8", path = "", breaks = {} },
  { model = "gemini/gemini-3-pro", path = "", breaks = { "tools_changed" } },
  { model = "gemini/gemini-2.5-flash", path = "", breaks = { "tools_changed" } },
  { model = "ollama/qwen3", path = "", breaks = { "tools_changed" },
    silent = { streamed = true, whole = true } },
  { model = "litellm_proxy/claude-opus", path = "", breaks = { "tools_changed" } },
  { model = "compatible/qwen3", path = "/v1", breaks = { "tools_changed" },
    silent = { streamed = true } },
  { model = "mistral/mistral-large-latest", path = "/v1", breaks = { "tools_changed" },
    silent = { streamed = true } },
}

-- The model's answers; ids are given, so that conversations can be compared.
local SCRIPT = [[
return {
  { reasoning = "First the section.", text = "Let me look.",
    calls = { { id = "call_a", name = "read_section", arguments = { section_key = "crm" } } } },
  { calls = { { id = "call_b", name = "find", arguments = { name = "Ann" } },
              { id = "call_c", name = "find", arguments = { name = "Bo" } } } },
  { calls = { { id = "call_d", name = "customer_7_spend", arguments = {} } } },
  { text = "In euros.", calls = { { id = "call_e", name = "to_euros",
    arguments = { amount = 450.5, note = "a \"quoted\" \u{20AC}" } } } },
  { text = { "Ann spends ", "410", " a month." } },
}
]]

local Customer = ah.entity { name = "Customer", fields = { "id", "name" } }
Customer:tool { name = "spend", description = "What the customer spends a month, in dollars.",
  handler = function(self) return self.spends end }

local to_euros = ah.tool { name = "to_euros", description = "Turns dollars into euros.",
  params = { amount = "number", note = "string?" },
  handler = function(args) return { euros = 410, note = args.note } end }

-- Runs a conversation in which tools are added: those of a section that was summarized, those of an
-- entity that is discovered, and one that a handler adds.
local function conversation(adapter, url, stream)
  local find = ah.tool { name = "find", description = "Finds a customer.",
    params = { name = "string" },
    handler = function(args, ctx)
      if args.name == "Ann" then
        ctx:add_tools(to_euros)
        return Customer { id = 7, name = "Ann", spends = 450.5 }
      end
      return nil, "There is no " .. args.name
    end }
  local crm = ah.section { key = "crm", title = "CRM", template = "Customers are found by name.",
    summary = "Everything about customers.", visibility = "summary", tools = { find } }
  local events = {}
  local reply = assert(ah.run { model = adapter.model, base_url = url .. adapter.path,
    api_key = "key-of-a-spec", stream = stream, discover = true, crm, "What does Ann spend?",
    on = { cache_break = function(e) events[#events + 1] = e.reason end } })
  return reply, events
end

local ONLY_THERE = { origin = true, usage = true, time = true, stop_word = true, by = true }

-- Returns the entries without marks of the adapter: origin, usage, and parts for one wire only.
local function plain(reply)
  local list = {}
  for _, entry in ipairs(ah.json.decode(reply:transcript()).entries) do
    for name in pairs(ONLY_THERE) do
      entry[name] = nil
    end
    for _, call in ipairs(entry.tool_calls or {}) do
      -- Anthropic streams no empty arguments
      call.arguments = call.arguments == "" and "{}" or call.arguments
    end
    for i = entry.type == "assistant" and #entry.content or 0, 1, -1 do
      if entry.content[i].type == "opaque" then
        table.remove(entry.content, i)
      end
    end
    if entry.type ~= "settings" then
      list[#list + 1] = entry
    end
  end
  return list
end

-- Returns the breaks that the server saw, and its cache at the end.
local function seen_by(m)
  local breaks, read = {}, 0
  for _, request in ipairs(m:log()) do
    breaks[#breaks + 1] = request.cache_break
    read = request.cached_read or 0
  end
  return breaks, read
end

-- Runs one question: returns the reply or nil, the error, and the number of requests.
local function ask(adapter, m, stream)
  local reply, err = ah.run { model = adapter.model, base_url = m.url .. adapter.path,
    api_key = "key-of-a-spec", stream = stream, "Hello?", log = function() end }
  return reply, err, #m:log()
end

describe("agenthost mock and the adapters", function()
  for _, stream in ipairs { true, false } do
    local how = stream and "streamed" or "whole"
    local first

    for _, adapter in ipairs(ADAPTERS) do
      it(("give %s the same conversation, %s"):format(adapter.model, how), function()
        local m <close> = mock.start(SCRIPT)
        local reply, events = conversation(adapter, m.url, stream)
        assert.equal("Ann spends 410 a month.", reply.text)
        assert.same({ 5, 5 }, { reply.iterations, reply.tool_calls })
        first = first or plain(reply)
        assert.same(first, plain(reply))
        assert.equal("", m:errors())
        assert.equal(stream, m:log()[1].stream)

        local breaks, read = seen_by(m)
        assert.equal(#events, #breaks, "a break that nobody told of")
        for _, reason in ipairs(events) do
          assert.equal(adapter.breaks[1], reason)
        end
        local told = not (adapter.silent or {})[how]
        assert.equal(told and read or 0, reply.usage.cached_read > 0 and read or 0)
        assert.is_true(#adapter.breaks > 0 or read > 0, "nothing was cached")
      end)
    end
  end

  it("show a failure, its time to wait, and the answer after it", function()
    for _, adapter in ipairs(ADAPTERS) do
      local m <close> = mock.start [[return {
        { status = 429, retry_after = 0.02, message = "slow down" },
        { text = "Some words that are cut", close = "mid-stream" },
        { status = 401, message = "who are you?" },
      }]]
      local retried = {}
      local reply, err = ah.run { model = adapter.model, base_url = m.url .. adapter.path,
        api_key = "key-of-a-spec", "Hello?", log = function() end,
        on = { retry = function(e) retried[#retried + 1] = e.reason or e.message end } }
      assert.is_nil(reply)
      assert.equal("provider", err.code, adapter.model)
      assert.truthy(err.message:find("who are you?", 1, true), err.message)
      assert.equal(2, #retried, adapter.model)
      assert.equal(3, #m:log())
    end
  end)

  -- Ollama's message has no numbers; the services' messages have the script's numbers.
  it("tell a full context in each wire's own words, before an answer and in it", function()
    for _, adapter in ipairs(ADAPTERS) do
      for _, in_stream in ipairs { false, true } do
        local m <close> = mock.start(([[return function() return { text = "Half",
          fail = { code = "context_full", window = 5000, used = 6000, in_stream = %s } } end]])
          :format(in_stream))
        local reply, err, requests = ask(adapter, m, in_stream)
        assert.is_nil(reply)
        assert.equal("context_full", err.code, err.message)
        assert.is_false(err.retryable)
        local told = not adapter.model:find "^ollama" and { 5000, 6000 } or {}
        assert.same(told, { err.window, err.used }, adapter.model)
        assert.equal(in_stream and 200 or 400, m:log()[1].status)
        assert.equal(1, requests)
      end
    end
  end)

  it("tell a full context that the script has no numbers for, or one alone", function()
    for _, adapter in ipairs(ADAPTERS) do
      for _, fields in ipairs { "", "window = 70,", "used = 71,", "message = 'prompt is too long',",
        "retryable = true, status = 400, retry_after = 1," } do
        local m <close> = mock.start(("return { { fail = { %s code = 'context_full' } } }")
          :format(fields))
        local _, err = ask(adapter, m, false)
        assert.equal("context_full", err.code, err.message)
        if fields:find "7" and not adapter.model:find "^ollama" then
          assert.same({ 70, 71 }, { err.window, err.used })
        end
      end
    end
  end)

  it("tell an answer that was cut for a full window, where there is a word for it", function()
    for _, adapter in ipairs(ADAPTERS) do
      for _, stream in ipairs { true, false } do
        local m <close> = mock.start [[return { { text = "Some words", stop = "context_full" } }]]
        local reply = assert(ask(adapter, m, stream))
        assert.equal("Some words", reply.text)
        assert.equal(adapter.model:find "^anthropic" and "context_full" or "length", reply.stop)
      end
    end
  end)
end)
