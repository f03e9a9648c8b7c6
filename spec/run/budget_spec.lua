-- Budgets over a tree of runs: with `reserve` they are never exceeded, requests that have no room
-- wait for their turn, and requests and calls are exact whoever makes them. hooks_spec.lua has the
-- budgets without `reserve`. docs/reference/budgets.md.
--
--   AGENTHOST_BUDGET_AGENTS=10000   agents under one budget (default 3000)
local ah = require "agenthost"
local server = require "support.server"

local AGENTS = tonumber(os.getenv "AGENTHOST_BUDGET_AGENTS") or 3000
local MOST = 100 -- max_tokens of most runs here

local function quiet() end

local function answer(input, output, more)
  local a = { text = "ok", usage = { input = input, output = output } }
  for k, v in pairs(more or {}) do
    a[k] = v
  end
  return a
end

local function run(budget, model, more)
  local o = { model = model, budget = budget, options = { max_tokens = MOST }, log = quiet, "x" }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return ah.run(o)
end

--- Returns the input tokens that a request of `run` reserves.
local function input_bound(more)
  local budget, bound = ah.budget { total_tokens = 1000000, reserve = true }, nil
  local model = ah.scripted(function()
    bound = budget:reserved().input_tokens
    return answer(1, 1)
  end)
  assert(run(budget, model, more))
  return bound
end

local function tool(name, handler, more)
  local o = { name = name, description = name, handler = handler }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return ah.tool(o)
end

describe("a budget with reserve", function()
  it("is never exceeded by many agents, and used up but for what fits no request", function()
    local limit = AGENTS * 400
    local budget = ah.budget { total_tokens = limit, reserve = true }
    local at_work, most = 0, 0
    local model = ah.scripted(function(r)
      at_work = at_work + 1
      most = math.max(most, budget:used().total_tokens + budget:reserved().total_tokens)
      local n = tonumber(r.entries[#r.entries].content[1].text)
      return answer(100, 300 + n % 200, { delay = 0.001 * (n % 5) })
    end)
    local ok, waited, codes, list = 0, 0, {}, {}
    for i = 1, AGENTS do
      list[i] = i
    end
    ah.map(list, function(i)
      local reply, err = run(budget, model, { tostring(i), options = { max_tokens = 500 },
        on = { queued = function(e)
          assert.equal("budget", e.reason)
          waited = waited + 1
        end } })
      ok = ok + (reply and 1 or 0)
      codes[reply and "ok" or err.code] = true
      assert(budget:used().total_tokens <= limit)
    end, { concurrency = AGENTS })
    local used = budget:used()
    assert.is_true(used.total_tokens <= limit and used.total_tokens >= limit * 0.98)
    assert.is_true(most <= limit)
    assert.same({ ok = true, budget_exceeded = true }, codes)
    assert.same({ ok, ok }, { used.requests, at_work })
    assert.is_true(waited > 0 and not used.estimated)
    assert.equal(0, budget:reserved().total_tokens)
  end)

  it("reserves the bytes of the request and max_tokens, and settles what was used", function()
    local budget = ah.budget { total_tokens = 5000, reserve = true }
    local at
    local function model(usage)
      return ah.scripted(function()
        at = { budget:reserved(), budget:remaining() }
        return { text = "ok", usage = usage }
      end)
    end
    assert(run(budget, model { input = 10, output = 5 }))
    local reserved, left = at[1], at[2]
    assert.is_true(reserved.input_tokens > 50)
    assert.equal(MOST, reserved.output_tokens)
    assert.equal(reserved.input_tokens + MOST, reserved.total_tokens)
    assert.same({ total_tokens = 5000 - reserved.total_tokens }, left)
    assert.same({ total_tokens = 4985 }, budget:remaining())
    assert(run(budget, model(nil)))
    assert.is_true(budget:used().estimated)
    assert.equal(15 + reserved.total_tokens, budget:used().total_tokens)
  end)

  it("refuses a request whose answer may be of any length", function()
    local budget = ah.budget { total_tokens = 5000, reserve = true }
    local none, err = run(budget, ah.scripted { "ok" }, { options = {} })
    assert.is_nil(none)
    assert.same({ "usage", "request" }, { err.code, err.phase })
    assert.matches("needs to know how long an answer of scripted/script may be: give options = "
      .. "{ max_tokens = ... }", err.message, 1, true)
    assert.same({ 0, 0 }, { budget:used().requests, budget:used().total_tokens })
    local input = ah.budget { input_tokens = 5000, reserve = true } -- needs no length
    assert(run(input, ah.scripted { "ok" }, { options = {} }))
    assert(run({ requests = 1, reserve = true }, ah.scripted { "ok" }, { options = {} }))
  end)

  it("wants to know it of a fallback before that is needed", function()
    local asked = 0
    local model = ah.scripted(function() asked = asked + 1 return answer(1, 1) end)
    local known = { model = "openai/gpt-4o", base_url = "http://127.0.0.1:1", api_key = "k" }
    local function with(limits, more)
      limits.reserve = true
      return ah.run { model = known.model, base_url = known.base_url, api_key = known.api_key,
        fallback = { model }, retries = 0, budget = limits, options = more, log = quiet, "x" }
    end
    local _, err = with { total_tokens = 1000000 }
    assert.same({ "usage", 0 }, { err.code, asked })
    assert.matches("how long an answer of scripted/script may be", err.message, 1, true)
    assert(with({ total_tokens = 1000000 }, { max_tokens = 5 }))
    assert(with { input_tokens = 1000000 })
    assert(with { cost = 1, prices = { ["scripted/*"] = { input = 0, output = 0 } } })
    assert.equal(3, asked)
  end)

  it("says what would fit", function()
    local input = input_bound()
    local _, err = run({ total_tokens = input + 60, reserve = true }, ah.scripted { answer(1, 1) })
    assert.same({ "budget_exceeded", "request", "total_tokens", input + 60, 0, input + MOST, 60 },
      { err.code, err.phase, err.budget, err.limit, err.used, err.needed, err.max_tokens })
    assert.matches("cannot hold the request: it may use " .. input + MOST .. ", and " .. input + 60
      .. " of " .. input + 60 .. " are left", err.message, 1, true)
    assert.matches("; max_tokens = 60 would fit", err.message, 1, true)
    assert(run({ total_tokens = input + 60, reserve = true }, ah.scripted { answer(1, 1) },
      { options = { max_tokens = 60 } }))
    _, err = run({ output_tokens = 99, reserve = true }, ah.scripted { answer(1, 1) })
    assert.same({ "output_tokens", 99 }, { err.budget, err.max_tokens })
    _, err = run({ input_tokens = 10, reserve = true }, ah.scripted { answer(1, 1) })
    assert.same({ "input_tokens", nil }, { err.budget, err.max_tokens })
    local prices = { ["scripted/*"] = { input = 1000, output = 100000, cached_write = 2000 } }
    local cost = (input * 2000 + 50 * 100000) / 1e6
    _, err = run({ cost = cost + 1e-6, prices = prices, reserve = true },
      ah.scripted { answer(1, 1) })
    assert.same({ "cost", 50 }, { err.budget, err.max_tokens })
    assert(run({ cost = cost + 1e-6, prices = prices, reserve = true },
      ah.scripted { answer(input, 50, { usage = { input = input, cached_write = input,
        output = 50 } }) }, { options = { max_tokens = 50 } }))
  end)

  it("lets a request wait that will have room, in the order in which they came", function()
    local each = input_bound() + MOST
    local budget = ah.budget { total_tokens = 2 * each + 45, reserve = true }
    local order, seconds = {}, {}
    local model = ah.scripted(function(r)
      order[#order + 1] = r.entries[#r.entries].content[1].text
      return answer(10, 5, { delay = 0.02 })
    end)
    ah.map({ "a", "b", "c", "d", "e" }, function(name)
      assert(run(budget, model, { name, on = { queued = function(e)
        seconds[#seconds + 1] = e.seconds
      end } }))
    end, { concurrency = 5 })
    assert.equal("a b c d e", table.concat(order, " "))
    assert.equal(3, #seconds)
    for _, s in ipairs(seconds) do
      assert.is_true(s >= 0.01)
    end
    assert.equal(75, budget:used().total_tokens)
  end)

  it("lets all go at once that have room when much is given back", function()
    local each = input_bound() + MOST
    local budget = ah.budget { total_tokens = 6 * each, reserve = true }
    local at_work, most = 0, 0
    local big = ah.spawn(function()
      return run(budget, ah.scripted { answer(1, 1, { delay = 0.05 }) },
        { options = { max_tokens = 5 * each + MOST - 10 } })
    end)
    ah.sleep(0.01)
    ah.map({ 1, 2, 3, 4, 5 }, function()
      assert(run(budget, ah.scripted(function()
        at_work = at_work + 1
        most = math.max(most, at_work)
        return answer(1, 1, { delay = 0.05 })
      end), { on = { done = function() at_work = at_work - 1 end } }))
    end, { concurrency = 5 })
    assert(big:await())
    assert.equal(5, most)
  end)

  it("ends a request that waits once what was left is used", function()
    local each = input_bound() + MOST
    local budget = ah.budget { total_tokens = each + 50, reserve = true }
    local codes = ah.map({ 1, 2, 3 }, function()
      local reply, err = run(budget, ah.scripted { answer(20, MOST, { delay = 0.01 }) })
      return reply and "ok" or err.code
    end, { concurrency = 3 })
    assert.equal("ok budget_exceeded budget_exceeded", table.concat(codes, " "))
    assert.equal(20 + MOST, budget:used().total_tokens)
  end)

  it("is left by those that wait when their time is over or they are cancelled", function()
    local each = input_bound() + MOST
    local budget = ah.budget { total_tokens = each + 50, reserve = true }
    local slow = ah.scripted { answer(5, 5, { delay = 0.2 }) }
    local first = ah.spawn(function() return run(budget, slow) end)
    ah.sleep(0.01)
    local second = ah.spawn(function()
      return select(2, run(budget, ah.scripted { answer(1, 1) }, { timeout = 0.02 })).code
    end)
    local third = ah.spawn(function() return run(budget, ah.scripted { answer(1, 1) }) end)
    local fourth = ah.spawn(function() return run(budget, ah.scripted { answer(1, 2) }) end)
    ah.sleep(0.01)
    third:cancel()
    assert.equal("deadline_exceeded", second:await())
    assert(first:await())
    assert(fourth:await())
    local used = budget:used()
    assert.same({ 2, 13 }, { used.requests, used.total_tokens })
    assert.equal(0, budget:reserved().total_tokens)
  end)

  it("needs a price for each model, and knows models that are free", function()
    local _, err = run({ cost = 1, reserve = true }, ah.scripted { answer(1, 1) })
    assert.same({ "usage" }, { err.code })
    assert.matches('prices has no "scripted/script"', err.message, 1, true)
    local prices = { ["scripted/*"] = { input = 0, output = 0 } }
    for _, reserve in ipairs { false, true } do
      local budget = ah.budget { cost = 0, prices = prices, reserve = reserve }
      for _ = 1, 2 do -- a free answer may be of any length
        assert(run(budget, ah.scripted { answer(1000, 1000) }, { options = {} }))
      end
      assert.same({ 0.0, 2 }, { budget:used().cost, budget:used().requests })
    end
  end)

  it("takes the whole name of a price, then the longest pattern", function()
    local function cost(prices)
      local budget = ah.budget { prices = prices }
      assert(run(budget, ah.scripted { answer(1000000, 0) }))
      return budget:used().cost
    end
    local function at(dollars)
      return { input = dollars }
    end
    assert.equal(4.0, cost { ["*"] = at(1), ["scripted/*"] = at(2), ["scripted/s*"] = at(3),
      ["scripted/script"] = at(4), ["scripted/scr"] = at(5) })
    assert.equal(3.0, cost { ["scripted/s*"] = at(3), ["*"] = at(1), ["scripted/*"] = at(2) })
    assert.equal(1.0, cost { ["*"] = at(1), ["scripted/scrip"] = at(2),
      ["scripted/scripts*"] = at(2) })
  end)

  it("warns of a provider that counts more, and reserves more from then on", function()
    local bound = input_bound()
    local budget = ah.budget { total_tokens = 100000, reserve = true }
    local warned, reserved
    assert(run(budget, ah.scripted { answer(bound + 70, 1) },
      { on = { warning = function(e) warned = e.message end } }))
    assert.is_nil(warned) -- together it is less than was reserved
    assert(run(budget, ah.scripted(function()
      reserved = budget:reserved().input_tokens
      return answer(bound, MOST + 200)
    end), { on = { warning = function(e) warned = e.message end } }))
    assert.equal(bound + 70, reserved)
    assert.matches("counts more than a budget had reserved", warned, 1, true)
    assert.matches(MOST + 200 .. " output tokens", warned, 1, true)
  end)

  it("reserves more for tools, whose instructions the request does not show", function()
    local without, with = input_bound(), input_bound { tools = { tool("a", quiet) } }
    assert.is_true(with > without + 1024)
  end)

  it("refuses images for a model whose context is not known", function()
    local dot = assert(ah.image { url = "https://example.org/dot.png", mime = "image/png" })
    local _, err = ah.run { model = ah.scripted { answer(1, 1) }, log = quiet, { "look", dot },
      options = { max_tokens = 5 }, budget = { total_tokens = 100000, reserve = true } }
    assert.equal("usage", err.code)
    assert.matches("needs the context_window of scripted/script, since the request has images",
      err.message, 1, true)
  end)

  it("gives back what a refused request had reserved, and keeps what a lost one may have used",
    function()
      local function charged(fail, more)
        local budget = ah.budget { total_tokens = 100000, reserve = true }
        local reserved
        run(budget, ah.scripted(function()
          reserved = budget:reserved().total_tokens
          return fail
        end), more)
        assert.equal(0, budget:reserved().total_tokens)
        return budget:used().total_tokens == reserved or budget:used().total_tokens
      end
      assert.equal(0, charged { fail = { message = "busy", status = 429 } })
      assert.equal(0, charged { fail = { message = "wrong", status = 400 } })
      assert.equal(true, charged { fail = { message = "the line is cut" } })
      assert.equal(true, charged({ text = "late", delay = 5 }, { timeout = 0.02 }))
    end)
end)

describe("a budget with reserve over HTTP", function()
  local function spent(response, more)
    local s <close> = server.start { responses = { response } }
    local budget = ah.budget { total_tokens = 100000, reserve = true }
    local o = { model = "openai/m", base_url = s.url, api_key = "k", retries = 0, budget = budget,
      options = { max_tokens = MOST }, log = quiet, "x" }
    for k, v in pairs(more or {}) do
      o[k] = v
    end
    local reply, err = ah.run(o)
    return budget:used(), reply, err, #s:requests()
  end

  local function whole(usage)
    return server.json { choices = { { message = { role = "assistant", content = "hi" },
      finish_reason = "stop" } }, usage = usage }
  end

  it("settles by the usage of the answer", function()
    local used, reply = spent(whole { prompt_tokens = 7, completion_tokens = 2 })
    assert.same({ "hi", 9, false }, { reply.text, used.total_tokens, used.estimated })
  end)

  it("counts nothing for a refusal or a connection that was never there", function()
    for _, status in ipairs { 400, 401, 429, 500, 529 } do
      local used, _, err = spent(server.json({ error = { message = "no" } }, { status = status }))
      assert.same({ 1, 0, false }, { used.requests, used.total_tokens, used.estimated },
        err.message)
    end
    local used, _, err = spent(whole {}, { base_url = "http://127.0.0.1:1" })
    assert.same({ "http", 1, 0 }, { err.code, used.requests, used.total_tokens })
  end)

  it("counts all that was reserved for an answer that was cut or is too late", function()
    for _, response in ipairs { { drop = true }, { body = "data: {\"id\":", cut = 5 },
      { stall = true } } do
      local used, _, err = spent(response, { timeout = 0.5 })
      assert.is_true(used.total_tokens > MOST and used.estimated, err.message)
      assert.equal(MOST, used.output_tokens)
    end
  end)

  it("counts the input that was told before an answer was cut", function()
    local start = "event: message_start\ndata: " .. server.encode { type = "message_start",
      message = { id = "m", type = "message", role = "assistant", content = server.array {},
        usage = { input_tokens = 23, output_tokens = 1 } } } .. "\n\n"
    local used = spent({ body = start, headers = { ["Content-Type"] = "text/event-stream" },
      framing = "close" }, { model = "anthropic/claude-haiku-4-5" })
    assert.same({ 23, MOST, 23 + MOST }, { used.input_tokens, used.output_tokens,
      used.total_tokens })
    local overloaded = "event: error\ndata: " .. server.encode { type = "error",
      error = { type = "overloaded_error", message = "busy" } } .. "\n\n"
    for body, output in pairs { [start .. overloaded] = MOST, [overloaded] = 0 } do
      used = spent({ body = body, headers = { ["Content-Type"] = "text/event-stream" } },
        { model = "anthropic/claude-haiku-4-5" })
      assert.equal(output, used.output_tokens)
    end
  end)

  it("knows how long an answer may be where the request or the table says it", function()
    local long = { options = {}, model = "anthropic/claude-haiku-4-5" }
    local _, _, err, sent = spent(whole {}, { options = {}, model = long.model,
      budget = { output_tokens = 31999, reserve = true } })
    assert.same({ "budget_exceeded", 32000, 0 }, { err.code, err.needed, sent })
    _, _, err = spent(whole {}, { options = { max_tokens = 1000, reasoning = "high" },
      model = "anthropic/claude-haiku-4-5", budget = { output_tokens = 10, reserve = true } })
    assert.equal(17384, err.needed) -- what is thought comes on top
    _, _, err = spent(whole {}, { options = {}, model = "openai/gpt-4o",
      budget = { output_tokens = 10, reserve = true } })
    assert.equal(16384, err.needed)
    _, _, err = spent(whole {}, { options = {} })
    assert.same({ "usage", "give options = { max_tokens = ... }" },
      { err.code, err.message:match "give options = %b{}" })
  end)

  it("reserves the context window for images", function()
    local dot = assert(ah.image { url = "https://example.org/dot.png", mime = "image/png" })
    local s <close> = server.start { responses = { whole {} } }
    local _, err = ah.run { model = "openai/gpt-4o", base_url = s.url, api_key = "k", log = quiet,
      budget = { input_tokens = 1000, reserve = true }, { "look", dot } }
    assert.same({ "budget_exceeded", 128000 }, { err.code, err.needed })
  end)
end)

describe("one budget over a tree of runs", function()
  local function nested(model, more)
    return function()
      local reply, err = ah.run { model = model, log = quiet, options = { max_tokens = MOST }, "x",
        budget = more and more.budget, tools = more and more.tools }
      return reply and reply.text or err.code
    end
  end

  it("counts what code calls, and the runs in it, at any depth", function()
    local deep = tool("deep", nested(ah.scripted(function() return answer(5, 5) end)))
    local registry = ah.registry { deep }
    local middle = tool("middle", function() return (registry:execute("deep", {})) end)
    local outer = ah.registry { middle }
    local top = tool("top", function()
      outer:execute("middle", {})
      return ah.spawn(function() return (outer:execute("middle", {})) end):await()
    end)
    local budget = ah.budget {}
    local seen
    local look = tool("look", function(_, ctx) seen = ctx.budget_tracker end)
    assert(run(budget, ah.scripted { { calls = { { name = "top" }, { name = "look" } },
      usage = { input = 1, output = 1 } }, answer(1, 1) }, { tools = { top, look } }))
    local used = budget:used()
    assert.same({ 4, 6, 24 }, { used.requests, used.tool_calls, used.total_tokens })
    assert.equal(budget, seen)
    ah.registry({ look }):execute("look", {})
    assert.is_nil(seen)
  end)

  it("is exact in calls that code makes, where the budget is used up as well", function()
    local ran = 0
    local deep = tool("deep", function() ran = ran + 1 end)
    local registry = ah.registry { deep }
    local middle = tool("middle", function()
      for _ = 1, 5 do
        registry:execute("deep", {})
      end
    end)
    local outer = ah.registry { middle }
    local top = tool("top", function() outer:execute("middle", {}) end)
    local budget = ah.budget { tool_calls = 4 }
    assert(run(budget, ah.scripted { { calls = { { name = "top" } } }, "ok" }, { tools = { top } }))
    assert.same({ 2, 4 }, { ran, budget:used().tool_calls })
  end)

  it("holds in all budgets of the tree at once, and an own one does not hold up the others",
    function()
      local each = input_bound() + MOST
      local whole = ah.budget { total_tokens = 100 * each, reserve = true }
      local function fan(own, n, delay)
        return tool("fan", function()
          ah.map({ 1, 2, 3 }, nested(ah.scripted(function()
            return answer(n, 1, { delay = delay })
          end), { budget = own }), { concurrency = 3 })
        end)
      end
      local tight = ah.budget { total_tokens = each + 20, reserve = true }
      local ends = {}
      local function work(name, own, delay)
        return ah.spawn(function()
          assert(run(whole, ah.scripted { { calls = { { name = "fan" } },
            usage = { input = 1, output = 1 } }, answer(1, 1) },
            { tools = { fan(own, 2, delay) } }))
          ends[#ends + 1] = name
        end)
      end
      local a, b = work("tight", tight, 0.1), work("wide", nil, 0.1)
      a:await()
      b:await()
      assert.same({ "wide", "tight" }, ends)
      assert.same({ 3, 9 }, { tight:used().requests, tight:used().total_tokens })
      assert.same({ 10, 26 }, { whole:used().requests, whole:used().total_tokens })
    end)

  it("does not let a run wait for one around it that waits for its answer", function()
    local each = input_bound() + MOST
    local budget = ah.budget { total_tokens = each + 500, reserve = true }
    local inner
    local model = ah.scripted(function()
      local reply, err = ah.run { model = ah.scripted { answer(1, 1) }, log = quiet, "x",
        options = { max_tokens = 1000 } }
      inner = reply and "ok" or err.code
      return answer(1, 1)
    end)
    assert(run(budget, model))
    assert.equal("budget_exceeded", inner)
  end)

  it("takes up what was used before", function()
    local first = ah.budget { requests = 3, cost = 1, prices = { ["*"] = { input = 1 } } }
    assert(run(first, ah.scripted { answer(250000, 10) }))
    local saved = first:used()
    local second = ah.budget { requests = 3, cost = 1, used = saved }
    assert.same(saved, second:used())
    assert.same({ requests = 2, cost = 0.75 }, second:remaining())
    for _, wrong in ipairs { { requests = -1 }, { request = 1 }, { cost = "1" }, 7 } do
      assert.is_false((pcall(ah.budget, { used = wrong })))
    end
  end)
end)

describe("examples/best_of.lua", function()
  it("prints the answer that the judge picks, within its budget", function()
    local binary = (os.getenv "AGENTHOST_BUILD" or "build") .. "/agenthost"
    local pipe <close> =
      assert(io.popen(("unset AGENTHOST_MODEL; %s examples/best_of.lua 2>&1"):format(binary)))
    local text = pipe:read "a"
    assert.matches("4. in ten words: Air scatters", text, 1, true)
    assert.matches("%(6 requests, 526 tokens%)\n?", text)
    assert.matches("Air sorts light as a sieve sorts sand: the finest, blue, is caught.\n",
      text, 1, true)
  end)
end)
