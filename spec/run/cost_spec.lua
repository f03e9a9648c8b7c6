-- The cost of the answers of a run: reported, else by the prices of a budget, else by the table of
-- models; and what is unknown stays so, in each sum.
local ah = require "agenthost"
local server = require "support.server"

local USAGE = { prompt_tokens = 1000, completion_tokens = 100,
  prompt_tokens_details = { cached_tokens = 400 } }

-- Returns an answer of OpenAI's form with this usage.
local function chat(usage)
  return server.json { choices = { { index = 0, finish_reason = "stop",
    message = { role = "assistant", content = "ok" } } }, usage = usage }
end

-- Returns the reply of a model that a server answers (by default with this usage), and the events
-- `usage` and `done`.
local function ask(model, usage, fields, answer)
  local s <close> = server.start { responses = { answer or chat(usage) } }
  local seen = {}
  local o = { model = model, base_url = s.url, api_key = "cost-canary-1234567890", retries = 0,
    on = { usage = function(e) seen.usage = e end, done = function(e) seen.done = e end }, "hi" }
  for k, v in pairs(fields or {}) do
    o[k] = v
  end
  return assert(ah.run(o)), seen
end

-- Returns the members of a usage that are about money.
local function money(u)
  return { cost = u.cost, prices_of = u.prices_of, unpriced = u.unpriced, covers = u.covers }
end

-- Returns dollars without the noise of sums of doubles.
local function cents(dollars, per_million)
  return math.floor(dollars * per_million + 0.5) / 1e9
end

describe("the cost of an answer", function()
  it("is by the table of models, with its date, in reply, events and entry", function()
    local reply, seen = ask("openai/gpt-4.1", USAGE)
    local prices = ah.capabilities("openai/gpt-4.1", { api_key = "k" }).prices
    local cost = cents(600 * prices.input + 400 * prices.cached_read + 100 * prices.output, 1000)
    assert.is_true(cost > 0)
    local want = { cost = cost, prices_of = reply.usage.prices_of, unpriced = 0 }
    assert.same(want, money(reply.usage))
    assert.matches("^20%d%d%-%d%d%-%d%d$", reply.usage.prices_of)
    want.unpriced = nil -- events and entries leave out what is 0
    assert.same(want, money(seen.usage))
    assert.same(want, money(seen.done))
    local entries = server.decode(reply:transcript()).entries
    assert.same(want, money(entries[#entries].usage))
  end)

  it("is what the provider reports, whatever the prices are", function()
    local usage = { prompt_tokens = 3, completion_tokens = 2, cost = 0.0125 }
    local reply, seen = ask("openrouter/m", usage,
      { budget = { prices = { ["openrouter/m"] = { input = 1e6, output = 1e6 } } } })
    assert.same({ cost = 0.0125, unpriced = 0 }, money(reply.usage))
    assert.same({ cost = 0.0125 }, money(seen.usage))
  end)

  it("is by the prices of the first budget of the run that names the model", function()
    local own = ah.budget { prices = { ["openai/*"] = { input = 1000, output = 2000 } } }
    local reply = ask("openai/gpt-4.1", USAGE, { budget = own })
    assert.same({ cost = 1.2, unpriced = 0 }, money(reply.usage))
    assert.equal(1.2, own:used().cost)
    local other = ah.budget { prices = { ["gemini/*"] = { input = 1000 } } }
    assert.is_string(ask("openai/gpt-4.1", USAGE, { budget = other }).usage.prices_of)
  end)

  it("is by the prices of ah.alias, which have no date", function()
    ah.alias { ["compatible/cost-spec"] = { prices = { input = 10, output = 20 } } }
    local reply = ask("compatible/cost-spec", USAGE)
    assert.same({ cost = 0.012, unpriced = 0 }, money(reply.usage))
  end)

  it("is that of long requests above the length from which they are dearer", function()
    local model = "openai/gpt-5.4"
    local told = ah.capabilities(model, { api_key = "k" })
    local above = told.long_above
    for _, case in ipairs { { above, told.prices }, { above + 1, told.long_prices } } do
      local budget = ah.budget {}
      local reply = ask(model, { prompt_tokens = case[1], completion_tokens = 1000 },
        { budget = budget })
      local cost = cents(case[1] * case[2].input + 1000 * case[2].output, 1000)
      assert.equal(cost, reply.usage.cost)
      assert.equal(cost, budget:used().cost)
    end
    assert.is_true(told.long_prices.input > told.prices.input)
  end)

  it("is zero only where a price of zero was given", function()
    local reply = ask("compatible/free", USAGE,
      { budget = { prices = { ["compatible/*"] = { input = 0, output = 0 } } } })
    assert.same({ cost = 0.0, unpriced = 0 }, money(reply.usage))
  end)

  it("is unknown without a price, without usage, and for a model newer than the table", function()
    for model, usage in pairs { ["compatible/m"] = USAGE, ["openai/gpt-99"] = USAGE,
      ["openai/gpt-4.1"] = false } do
      local reply, seen = ask(model, usage or nil)
      assert.same({ unpriced = 1 }, money(reply.usage), model)
      assert.same({ unpriced = 1 }, money(seen.usage), model)
      assert.same({ unpriced = 1 }, money(seen.done), model)
    end
  end)

  it("is unknown where an answer was not served at the usual prices", function()
    local text = { type = "text", text = "ok" }
    local item = { type = "message", role = "assistant", status = "completed", id = "m",
      content = { { type = "output_text", text = "ok", annotations = server.array {} } } }
    local wires = {
      ["openai/gpt-4.1"] = function(tier)
        return server.json { service_tier = tier, usage = USAGE, choices = { { index = 0,
          finish_reason = "stop", message = { role = "assistant", content = "ok" } } } }
      end,
      ["openai/responses/gpt-4.1"] = function(tier)
        return server.json { id = "r", object = "response", status = "completed", model = "m",
          output = { item }, service_tier = tier, usage = { input_tokens = 9, output_tokens = 1 } }
      end,
      ["anthropic/claude-opus-4-5"] = function(tier)
        return server.json { id = "a", type = "message", role = "assistant", model = "m",
          content = { text }, stop_reason = "end_turn",
          usage = { input_tokens = 9, output_tokens = 1, service_tier = tier } }
      end,
    }
    for model, answer in pairs(wires) do
      for tier, known in pairs { priority = false, flex = false, default = true,
        standard = true } do
        local usage = ask(model, nil, nil, answer(tier)).usage
        assert.equal(known, usage.cost ~= nil, model .. " " .. tier)
        assert.equal(known and 0 or 1, usage.unpriced)
      end
    end
  end)

  it("is not missed where nothing is billed: without a key, and in scripted models", function()
    local s <close> = server.start { responses = { chat(USAGE) } }
    local local_one = assert(ah.run { model = "llama_cpp/m", base_url = s.url, "hi" })
    assert.same({ unpriced = 0 }, money(local_one.usage))
    assert.same({ unpriced = 0 }, money(assert(ah.run { model = "demo/echo", "hi" }).usage))
    local own = ah.adapter { name = "acme/own", answer = function() return "ok" end }
    assert.same({ unpriced = 1 }, money(assert(ah.run { model = own, "hi" }).usage))
  end)
end)

describe("a sum of costs", function()
  it("says how many answers it does not cover", function()
    local prices = { ["scripted/script"] = { input = 1000 } }
    local tool = ah.tool { name = "t", description = "T.", handler = function() return "x" end }
    local calls = { calls = { { name = "t" } } }
    local n = 0
    local own = ah.adapter { name = "acme/own", answer = function(_, out)
      n = n + 1
      if n < 3 then
        out:call { name = "t", arguments = {} }
      end
      out:usage { input = 1, output = 1, cost = n == 2 and 0.5 or nil }
      return n == 3 and "ok" or nil
    end }
    local done
    local usage = assert(ah.run { model = own, tools = { tool }, "hi",
      on = { done = function(e) done = e end } }).usage
    assert.same({ cost = 0.5, unpriced = 2 }, money(usage))
    assert.same({ cost = 0.5, unpriced = 2 }, money(done))
    local counted = assert(ah.run { tools = { tool }, budget = { prices = prices }, "hi",
      model = ah.scripted { { calls = calls.calls, usage = { input = 1000 } },
        { text = "ok", usage = { input = 1000, cost = 0.25 } } } }).usage
    assert.same({ cost = 1.25, unpriced = 0 }, money(counted))
  end)

  it("has an answer that was cut off as one of unknown cost", function()
    local s <close> = server.start { responses = {
      server.chat_text("a long answer", { stream = true, cut = 450 }) } }
    local done
    local store <close> = assert(ah.store { engine = "memory" })
    local agent <close> = assert(ah.agent { store = store, id = "cut", model = "openai/gpt-4.1",
      base_url = s.url, api_key = "k", retries = 0,
      on = { content = function() end, done = function(e) done = e end } })
    local _, err = agent:run "x"
    assert.matches("in the middle of the response", err.message)
    assert.equal(1, err.reply.usage.unpriced)
    assert.same({ 1 }, { done.unpriced, done.cost })
    local sum = assert(ah._spent(store, 0))[1]
    assert.same({ 1, 0 }, { sum.spent.usage.unpriced, sum.spent.answers })
    assert.same({ 1, 0 }, { sum.lately.usage.unpriced, sum.lately.answers })
  end)

  it("has the date of the oldest prices", function()
    local call = server.json { choices = { { index = 0, finish_reason = "tool_calls", message = {
      role = "assistant", tool_calls = { { id = "c", type = "function", ["function"] = {
        name = "t", arguments = "{}" } } } } } }, usage = USAGE }
    local down = server.json({ error = { message = "down" } }, { status = 503 })
    local s <close> = server.start { responses = { call, down, chat(USAGE) } }
    local dates = {}
    local reply = assert(ah.run { model = "openai/gpt-5.4", base_url = s.url, api_key = "k",
      fallback = { { model = "openai/gpt-5.1-chat-latest", base_url = s.url, api_key = "k" } },
      tools = { ah.tool { name = "t", description = "T.", handler = function() return "x" end } },
      retries = 0, on = { usage = function(e) dates[#dates + 1] = e.prices_of end }, "hi" })
    assert.equal(2, #dates)
    assert.is_true(dates[2] < dates[1])
    assert.equal(dates[2], reply.usage.prices_of)
  end)
end)
