-- Manners toward providers: max_in_flight, limits that response heads report, one back-off for all
-- runs, a fair queue, and max_parallel. The provider is a server of ah.serve in the same process,
-- which counts what it gets.
local ah = require "agenthost"
local patiently = require "support.patiently"
local random_of = require "support.random"
local server = require "support.server"

local function quiet() end

local Provider = {}
Provider.__index = Provider
Provider.__close = function(self)
  self.server:close()
end

local function answer_of(given)
  given = given or {}
  local whole = server.chat_text(given.text or "ok")
  return { status = given.status or 200, headers = given.headers,
    body = given.status and { error = { message = "their words" } } or ah.json.decode(whole.body) }
end

-- Starts a provider. on_request(body, n, key) may wait; it returns { status, headers, text }, or
-- nothing for an answer. Counts: n, most (at work at once), at (times of arrival).
local function provider(on_request)
  local p = setmetatable({ n = 0, at_work = 0, most = 0, at = {} }, Provider)
  p.server = assert(ah.serve { max_requests = 2000, max_connections = 2000,
    on_request = function(q)
      p.n, p.at_work = p.n + 1, p.at_work + 1
      p.at[p.n] = ah.now()
      p.most = math.max(p.most, p.at_work)
      local _ <close> = setmetatable({}, { __close = function() p.at_work = p.at_work - 1 end })
      local given = on_request and on_request(ah.json.decode(q.body), p.n,
        q.headers.authorization[1])
      return answer_of(given)
    end })
  return p
end

local function fields(p, more)
  local o = { model = "openai/m", base_url = p.server.url, api_key = "sk-lane-canary-1",
    log = quiet, timeout = 120 }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return o
end

local function slow(seconds)
  return function() ah.sleep(seconds) end
end

local function upto(n)
  local list = {}
  for i = 1, n do
    list[i] = i
  end
  return list
end

local function all(n, f)
  return ah.map(upto(n), f, { concurrency = 1000 })
end

-- Runs n conversations of `turns` turns at once. Returns the errors, and at half time of all turns
-- the least and the most that a conversation had done.
local function converse(p, n, turns, more)
  local done, total, failed = {}, 0, {}
  local least, most = math.huge, 0
  all(n, function(i)
    local agent <close> = assert(ah.agent(fields(p, more)))
    done[i] = 0
    for _ = 1, turns do
      local _, err = agent:run("from " .. i)
      failed[#failed + 1] = err
      done[i], total = done[i] + 1, total + 1
      if total == n * turns // 2 then
        for k = 1, n do
          least, most = math.min(least, done[k] or 0), math.max(most, done[k] or 0)
        end
      end
    end
  end)
  return failed, least, most
end

local function counted(name)
  return ah.metrics()[name]
end

describe("max_in_flight", function()
  it("holds for all runs together, and each conversation has its turn", function()
    local p <close> = provider(slow(0.01))
    local failed, least, most = converse(p, 40, 5, { max_in_flight = 4 })
    assert.same({}, failed)
    assert.same({ 200, 4 }, { p.n, p.most })
    assert.is_true(most - least <= 1, ("%d to %d"):format(least, most))
  end)

  it("is the smallest one of the requests that are at work or wait", function()
    local p <close> = provider(slow(0.05))
    all(12, function(i)
      assert(ah.run(fields(p, { max_in_flight = i == 1 and 5 or 3, "hi" })))
    end)
    assert.equal(12, p.n)
    assert.equal(3, p.most)
    p.most = 0
    all(12, function() assert(ah.run(fields(p, { "hi" }))) end)
    assert.equal(12, p.most)
  end)

  it("does not hold between providers, addresses or keys", function()
    local p <close> = provider(slow(0.05))
    all(12, function(i)
      assert(ah.run(fields(p, { max_in_flight = 1, api_key = "sk-lane-key-" .. i % 3, "hi" })))
    end)
    assert.equal(3, p.most)
    local other <close> = provider(slow(0.05))
    p.most = 0
    all(8, function(i)
      assert(ah.run(fields(i % 2 == 0 and p or other, { max_in_flight = 1, "hi" })))
    end)
    assert.same({ 1, 1 }, { p.most, other.most })
  end)

  it("is shared by the models of a lane", function()
    local p <close> = provider(slow(0.02))
    all(12, function(i)
      assert(ah.run(fields(p, { model = "openai/m" .. i, max_in_flight = 2, "hi" })))
    end)
    assert.same({ 12, 2 }, { p.n, p.most })
  end)

  it("holds for scripted models and adapters in Lua only where it is set", function()
    local at_work, most
    local function script()
      at_work = at_work + 1
      most = math.max(most, at_work)
      ah.sleep(0.01)
      at_work = at_work - 1
      return "ok"
    end
    for _, limit in ipairs { 0, 1, 3 } do
      at_work, most = 0, 0
      all(9, function()
        assert(ah.run { model = ah.scripted(script), max_in_flight = limit > 0 and limit or nil,
          log = quiet, "hi" })
      end)
      assert.equal(limit > 0 and limit or 9, most)
    end
  end)

  it("is reported when the wait begins, and counted", function()
    local p <close> = provider(slow(0.05))
    local events, before = {}, counted "agenthost.queued"
    local waited, seen = counted "agenthost.queued.ms", 0
    all(3, function()
      local since
      assert(ah.run(fields(p, { max_in_flight = 1, "hi", on = function(e)
        if e.type == "queued" or e.type == "request" then
          events[#events + 1] = e.type .. ":" .. tostring(e.reason) .. ":" .. tostring(e.seconds)
          seen = seen + (since and (e.time - since) * 1000 or 0)
          since = e.type == "queued" and e.time or nil
        end
      end })))
    end)
    assert.same({ "request:nil:nil", "queued:in_flight:nil", "queued:in_flight:nil",
      "request:nil:nil", "request:nil:nil" }, events)
    assert.equal(2, counted "agenthost.queued" - before)
    waited = counted "agenthost.queued.ms" - waited
    assert.is_true(waited >= 50 and math.abs(waited - seen) < 10, waited .. ", not " .. seen)
  end)

  it("refuses what is no number of requests", function()
    local p <close> = provider()
    for _, wrong in ipairs { 0, -1, 1.5, "2", 2 ^ 40 } do
      local ok, err = pcall(ah.agent, fields(p, { max_in_flight = wrong }))
      assert.is_false(ok)
      assert.matches("max_in_flight", tostring(err), 1, true)
    end
  end)
end)

describe("a request that waits in a lane", function()
  -- Holds the lane by a request until f has run beside it, or calls its last argument. Returns the
  -- number of requests.
  local function held(f)
    local over = false
    local p <close> = provider(function()
      while not over do
        ah.sleep(0.005)
      end
    end)
    ah.scope(function(s)
      local first = s:spawn(function() return ah.run(fields(p, { max_in_flight = 1, "hold" })) end)
      while p.at_work == 0 do
        ah.sleep(0.005)
      end
      f(p, s, function() over = true end)
      over = true
      assert(first:await())
    end)
    return p.n
  end

  it("is ended by its deadline, without a request", function()
    assert.equal(1, held(function(p)
      local budget, queued = ah.budget { requests = 5 }
      local reply, err = ah.run(fields(p, { timeout = 0.1, budget = budget, "hi",
        on = { queued = function(e) queued = e.reason end } }))
      assert.is_nil(reply)
      assert.same({ "deadline_exceeded", "in_flight", 0 },
        { err.code, queued, budget:used().requests })
    end))
  end)

  it("is cancelled, and leaves the queue to the next", function()
    assert.equal(2, held(function(p, s, let_go)
      local budget = ah.budget { requests = 5 }
      local one = assert(ah.agent(fields(p, { max_in_flight = 1, budget = budget })))
      local two = assert(ah.agent(fields(p, { max_in_flight = 1, budget = budget })))
      local code
      local task = s:spawn(function() code = select(2, one:run "hi").code end)
      local next_one = s:spawn(function() return two:run "hi" end)
      ah.sleep(0.05)
      assert.equal(0, budget:used().requests)
      one:cancel()
      task:await()
      assert.equal("cancelled", code)
      let_go()
      assert(next_one:await())
      assert.equal(1, budget:used().requests)
      one:close()
      two:close()
    end))
  end)

  it("goes with its task, its scope and its agent", function()
    assert.equal(1, held(function(p)
      assert.is_nil((ah.with_timeout(0.05, function() return ah.run(fields(p, { "hi" })) end)))
      pcall(ah.scope, function(s)
        s:spawn(function() return ah.run(fields(p, { "hi" })) end)
        ah.sleep(0.05)
        error "enough"
      end)
    end))
  end)

  it("holds no request of a budget that others need", function()
    assert.equal(2, held(function(p, s, let_go)
      local budget = ah.budget { requests = 1 }
      local waits = s:spawn(function() return ah.run(fields(p, { budget = budget, "hi" })) end)
      ah.sleep(0.05)
      local _, err = ah.run(fields(p, { budget = budget, "hi" }))
      assert.equal("budget_exceeded", err.code)
      let_go()
      assert(waits:await())
      assert.equal(1, budget:used().requests)
    end))
  end)
end)

describe("runs inside runs", function()
  it("do not hold up a lane of one", function()
    local p <close> = provider(function(body)
      local last = body.messages[#body.messages]
      return { text = last.role == "user" and last.content or "done" }
    end)
    local function script(name)
      return function(request)
        ah.sleep(0.002)
        local last = request.entries[#request.entries]
        if last.type == "user" then
          return { calls = { { name = name }, { name = name }, { name = name } } }
        end
        return "done"
      end
    end
    local model = ah.scripted(function(request)
      return request.tools and script(request.tools[1].name)(request) or "leaf"
    end)
    local depth2 = ah.tool { name = "inner", description = "Asks.", parallel = true,
      handler = function()
        return assert(ah.run { model = model, max_in_flight = 1, log = quiet, "leaf" }).text
      end }
    local depth1 = ah.tool { name = "outer", description = "Asks.", parallel = true,
      handler = function()
        return assert(ah.run { model = model, max_in_flight = 1, tools = { depth2 }, log = quiet,
          "go" }).text
      end }
    local replies = all(4, function()
      return assert(ah.run { model = model, max_in_flight = 1, tools = { depth1 }, log = quiet,
        timeout = 60, "go" }).text
    end)
    assert.same({ "done", "done", "done", "done" }, { table.unpack(replies, 1, 4) })
    assert(ah.run(fields(p, { max_in_flight = 1, "hi" })))
  end)

  it("in calls within an answer take a place beside their parent's", function()
    local adapter
    adapter = ah.adapter { name = "loop/m", answer = function(request, out)
      if request.tools and request.tools[1] then
        out:invoke { name = "ask", arguments = {} }
      end
      return "done"
    end }
    local ask = ah.tool { name = "ask", description = "Asks.", handler = function()
      return assert(ah.run { model = adapter, max_in_flight = 1, log = quiet, "inner" }).text
    end }
    local replies = all(3, function()
      return assert(ah.run { model = adapter, tools = { ask }, max_in_flight = 1, log = quiet,
        timeout = 30, "go" }).text
    end)
    assert.same({ "done", "done", "done" }, { table.unpack(replies, 1, 3) })
  end)

  it("in a wait that cannot yield do not wait for runs that cannot go on", function()
    local p <close> = server.start { responses = { server.chat_text "ok" } }
    local function run(more)
      local o = { model = "openai/m", base_url = p.url, api_key = "sk-lane-canary-2", log = quiet,
        max_in_flight = 1, timeout = 30, "hi" }
      for k, v in pairs(more or {}) do
        o[k] = v
      end
      return ah.run(o)
    end
    local sorted = ah.tool { name = "sorted", description = "Sorts.", parallel = true,
      handler = function()
        local list = { 2, 1 }
        table.sort(list, function(a, b)
          assert(run())
          return a < b
        end)
        return list[1]
      end }
    local model = ah.scripted { { calls = { { name = "sorted" }, { name = "sorted" } } }, "done" }
    all(2, function(i)
      if i == 1 then
        assert.equal("done", assert(ah.run { model = model, tools = { sorted }, log = quiet,
          timeout = 60, "go" }).text)
      else
        assert(run())
      end
    end)
  end)
end)

describe("limits of response heads", function()
  local function head(left, reset, kind)
    kind = kind or "requests"
    return { headers = { ["x-ratelimit-remaining-" .. kind] = tostring(left),
      ["x-ratelimit-reset-" .. kind] = reset } }
  end

  it("hold for all runs of the lane and model, which know the numbers of each other", function()
    patiently(function(times)
      local window, used, over = nil, 0, 0
      local long = 0.3 * times
      local p <close> = provider(function()
        local now = ah.now()
        if not window or now > window + long then
          window, used = now, 0
        end
        used = used + 1
        over = over + (used > 5 and 1 or 0)
        ah.sleep(0.002)
        local left, rest = math.max(0, 5 - used), window + long + 0.01 - now
        return head(left, ("%dms"):format(math.max(1, math.ceil(rest * 1000))))
      end)
      assert(ah.run(fields(p, { "the first reports the limit" })))
      local reasons = {}
      all(14, function()
        assert(ah.run(fields(p, { "hi", on = {
          queued = function(e) reasons[e.reason] = (reasons[e.reason] or 0) + 1 end } })))
      end)
      assert.same({ 15, 0 }, { p.n, over })
      assert.same({ limit = 10 }, reasons)
    end)
  end)

  it("are no known wait where requests on their way take what is left", function()
    local p <close> = provider(function(_, n)
      ah.sleep(n == 1 and 0 or 0.1)
      return head(3 - n % 3, "30s")
    end)
    assert(ah.run(fields(p, { "the first reports 2" })))
    local seconds = {}
    all(3, function()
      assert(ah.run(fields(p, { "hi", timeout = 20, on = {
        queued = function(e) seconds[#seconds + 1] = e.reason .. tostring(e.seconds) end,
        rate_limit = function() seconds[#seconds + 1] = "rate_limit" end } })))
    end)
    assert.same({ "limitnil" }, seconds)
    assert.equal(4, p.n)
  end)

  it("do not hold for other models and keys", function()
    local p <close> = provider(function() return head(0, "30s") end)
    assert(ah.run(fields(p, { "hi" })))
    assert(ah.run(fields(p, { model = "openai/other", "hi" })))
    assert(ah.run(fields(p, { api_key = "sk-lane-canary-3", "hi" })))
    local _, err = ah.run(fields(p, { "hi", timeout = 0.1 }))
    assert.equal("deadline_exceeded", err.code)
    assert.equal(3, p.n)
  end)

  it("count tokens as well, of Anthropic's form too", function()
    local p <close> = provider(function()
      return { headers = { ["anthropic-ratelimit-input-tokens-remaining"] = "0",
        ["anthropic-ratelimit-input-tokens-reset"] =
          os.date("!%Y-%m-%dT%H:%M:%SZ", os.time() + 30) } }
    end)
    assert(ah.run(fields(p, { "hi" })))
    local told
    local _, err = ah.run(fields(p, { "hi", timeout = 0.1,
      on = { queued = function(e) told = e end } }))
    assert.equal("deadline_exceeded", err.code)
    assert.same({ "limit", true }, { told.reason, told.seconds > 20 and told.seconds <= 31 })
  end)

  it("let a request out that nothing else is in flight with, as long as any token is left",
    function()
      local p <close> = provider(function() return head(1, "30s", "tokens") end)
      assert(ah.run(fields(p, { "hi" })))
      assert(ah.run(fields(p, { ("hi "):rep(1000), timeout = 5 })))
      assert.equal(2, p.n)
    end)

  it("without sense are left out", function()
    for i, wrong in ipairs { head("x", "30s"), head("-1", "30s"), head("0", "yesterday"),
      head("1e400", "30s"), head("0", "2h"), head("0", "-5s") } do
      local p <close> = provider(function() return wrong end)
      for _ = 1, 2 do
        assert(ah.run(fields(p, { "hi", timeout = 20 })), i)
      end
      assert.equal(2, p.n)
    end
  end)
end)

describe("a back-off", function()
  local function refusal(ms)
    return { status = 429, headers = { ["retry-after-ms"] = tostring(ms) } }
  end

  it("holds all runs of the model, which lose no tries by it", function()
    for _, status in ipairs { 429, 503, 529 } do
      patiently(function(times)
        local refused
        local p <close> = provider(function(_, n)
          if n == 1 then
            refused = ah.now()
            return { status = status, headers = { ["retry-after-ms"] = tostring(200 * times) } }
          end
        end)
        local reasons, retries = {}, 0
        ah.scope(function(s)
          s:spawn(function()
            local function on_retry() retries = retries + 1 end
            assert(ah.run(fields(p, { "hi", on = { retry = on_retry } })))
          end)
          while retries == 0 do
            ah.sleep(0.005)
          end
          for _ = 1, 10 do
            s:spawn(function()
              assert(ah.run(fields(p, { retries = 0, "hi", on = { queued = function(e)
                reasons[#reasons + 1] = e.reason
              end } })))
            end)
          end
        end)
        assert.same({ 12, 1 }, { p.n, retries })
        assert.is_true(#reasons >= 10)
        for _, reason in ipairs(reasons) do
          assert.equal("backoff", reason)
        end
        for i = 2, p.n do
          assert.is_true(p.at[i] - refused >= 0.19 * times)
        end
      end)
    end
  end)

  it("does not hold other models, and other failures hold nobody", function()
    local p <close> = provider(function(body, n)
      if n == 1 then
        return refusal(20000)
      end
      return body.model == "broken" and { status = 500 } or nil
    end)
    assert.equal(429, select(2, ah.run(fields(p, { retries = 0, "hi" }))).status)
    assert(ah.run(fields(p, { model = "openai/other", "hi" })))
    assert.equal(500, select(2, ah.run(fields(p, { model = "openai/broken", retries = 0,
      "hi" }))).status)
    assert.equal(500, select(2, ah.run(fields(p, { model = "openai/broken", retries = 0,
      timeout = 5, "hi" }))).status)
    local _, err = ah.run(fields(p, { timeout = 0.1, "hi" }))
    assert.equal("deadline_exceeded", err.code)
  end)

  it("lets requests out one by one at first", function()
    local most_after = {}
    local p
    p = provider(function(_, n)
      if n <= 40 then
        ah.sleep(0.05)
        return refusal(100)
      end
      most_after[#most_after + 1] = p.at_work
      ah.sleep(0.02)
    end)
    local _ <close> = p
    all(40, function() assert(ah.run(fields(p, { "hi" }))) end)
    assert.equal(80, p.n)
    assert.same({ 1, 1 }, { most_after[1], most_after[2] })
    for i = 3, 10 do
      assert.is_true(most_after[i] <= i - 1)
    end
  end)

  -- Starts a provider that refuses by `refuses` for `ms`. Returns it and a function: the requests
  -- that came within the time of a refusal, and the refusals.
  local function storm(refuses, ms)
    local quiet_until, stormy, refused = 0, 0, 0
    local p = provider(function(body, n)
      local now = ah.now()
      stormy = stormy + (now < quiet_until and 1 or 0)
      if refuses(body, n) then
        refused = refused + 1
        quiet_until = now + ms / 1000
        return refusal(ms)
      end
      ah.sleep(0.002)
    end)
    return p, function() return stormy, refused end
  end

  it("makes no storm where every second request is refused", function()
    local p, told = storm(function(_, n) return n % 2 == 0 end, 3)
    local _ <close> = p
    -- so many tries, as a request may meet each second refusal
    local failed, least, most = converse(p, 100, 3, { max_in_flight = 20, retries = 20 })
    local stormy = told()
    assert.same({}, failed)
    assert.is_true(p.n <= 700, p.n)
    assert.is_true(stormy <= 100, stormy)
    assert.is_true(most - least <= 1, ("%d to %d"):format(least, most))
  end)

  it("is fair to the half of the conversations that is refused", function()
    local seen = {}
    local p, told = storm(function(body)
      local messages = body.messages
      local who = messages[1].content
      local turn = who .. ":" .. #messages
      local again = seen[turn]
      seen[turn] = true
      return not again and tonumber(who:match "%d+") % 2 == 0
    end, 2)
    local _ <close> = p
    local failed, least, most = converse(p, 200, 3, { max_in_flight = 50 })
    local stormy, refused = told()
    assert.same({}, failed)
    assert.same({ 900, 300 }, { p.n, refused })
    assert.is_true(stormy <= 300, stormy)
    assert.is_true(most - least <= 1, ("%d to %d"):format(least, most))
  end)

  it("keeps to a provider's rate", function()
    local window, used, refused = 0, 0, 0
    local p <close> = provider(function()
      local now = ah.now()
      if now > window + 0.1 then
        window, used = now, 0
      end
      used = used + 1
      if used > 30 then
        refused = refused + 1
        return refusal(math.max(1, math.ceil((window + 0.101 - now) * 1000)))
      end
    end)
    assert.same({}, (converse(p, 200, 2, { retries = 20 })))
    assert.is_true(p.n <= 1000, p.n)
  end)
end)

describe("max_parallel", function()
  local function run(n, limit, more, seconds)
    local at_work, most, order = 0, 0, {}
    local tool = ah.tool { name = "work", description = "Works.", parallel = true,
      schema = { type = "object", properties = { i = { type = "integer" } } },
      handler = function(args)
        at_work = at_work + 1
        most = math.max(most, at_work)
        order[#order + 1] = args.i
        ah.sleep(args.i % 3 * (seconds or 0.005))
        at_work = at_work - 1
        return "did " .. args.i
      end }
    local calls = {}
    for i = 1, n do
      calls[i] = { name = "work", arguments = { i = i } }
    end
    local o = { model = ah.scripted { { calls = calls }, "done" }, tools = { tool }, log = quiet,
      max_parallel = limit, "go" }
    for k, v in pairs(more or {}) do
      o[k] = v
    end
    local reply, err = ah.run(o)
    local results = {}
    for _, m in ipairs((reply or err.reply).messages) do
      if m.role == "tool" then
        results[#results + 1] = m.content
      end
    end
    return most, results, order, err
  end

  it("limits the calls of an answer that are at work, and keeps the order of results", function()
    for _, limit in ipairs { 1, 2, 5, 20, 50 } do
      local most, results, order = run(20, limit)
      assert.equal(math.min(limit, 20), most)
      assert.same(upto(20), order)
      for i = 1, 20 do
        assert.equal("did " .. i, results[i])
      end
    end
    assert.equal(20, (run(20)))
  end)

  it("leaves calls that have not begun without a handler when the run ends", function()
    local most, results, order, err = run(20, 2, { timeout = 0.3 }, 0.1)
    assert.equal("deadline_exceeded", err.code)
    assert.equal(2, most)
    assert.equal(20, #results)
    assert.is_true(#order < 20)
  end)
end)

describe("a replay", function()
  it("waits for no limit and no back-off of the recording", function()
    local command = require "support.command"
    patiently(function(times)
      local path = command.temp()
      os.remove(path)
      local p <close> = provider(function()
        return { headers = { ["x-ratelimit-remaining-requests"] = "0",
          ["x-ratelimit-reset-requests"] = 400 * times .. "ms" } }
      end)
      local script = command.temp(([[local ah = require "agenthost"
        for i = 1, 3 do
          assert(ah.run { model = "openai/m", base_url = %q, api_key = "sk-lane-canary-4",
            "hi " .. i })
        end
        print "done"]]):format(p.server.url))
      local function took(flag)
        local began = ah.now()
        local child <close> = assert(ah.process { command = command.BINARY,
          args = { flag, path, script } })
        local ended = assert(child:wait())
        return ah.now() - began, ended.exit_code
      end
      assert.is_true(took "--record" >= 0.75 * times)
      assert.equal(3, p.n)
      assert.is_true(took "--replay" < 0.75 * times)
      assert.equal(3, p.n)
    end)
  end)
end)

describe("a lane in random use", function()
  local ROUNDS = tonumber(os.getenv "AGENTHOST_LANES") or 40

  -- Returns the number of answers that are still wanted.
  local function wanted(outs)
    local n = 0
    for out in pairs(outs) do
      n = n + (out:cancelled() and 0 or 1)
    end
    return n
  end

  -- A model that fails, waits and asks for nested runs at random.
  local function model_of(random, state)
    local outs = {}
    return ah.adapter { name = "random/m", answer = function(request, out)
      outs[out] = true
      state.most = math.max(state.most, wanted(outs))
      local _ <close> = setmetatable({}, { __close = function() outs[out] = nil end })
      local what = random(10)
      if what <= 3 then
        ah.sleep(random(5) / 1000)
      end
      if what == 4 then
        return out:fail { message = "busy", status = ({ 429, 503, 529, 500 })[random(4)],
          retryable = true, retry_after = random(3) / 1000 }
      elseif what <= 6 and request.tools and request.tools[1]
        and request.entries[#request.entries].type == "user" then
        out:call { name = "nest" }
        out:call { name = "nest" }
        return
      end
      return "ok"
    end }
  end

  it("keeps its limit, ends every run, and is free in the end", function()
    for round = 1, ROUNDS do
      local random = random_of(round)
      local state = { most = 0 }
      local model, limit = model_of(random, state), random(3)
      local codes = {}
      local function run(more)
        local o = { model = model, max_in_flight = limit, retries = random(4) - 1, log = quiet,
          timeout = random(4) == 1 and random(20) / 1000 or 60 }
        for k, v in pairs(more or {}) do
          o[k] = v
        end
        local agent <close> = assert(ah.agent(o))
        if random(4) == 1 then
          ah.spawn(function()
            ah.sleep(random(10) / 1000)
            pcall(agent.cancel, agent) -- it may be closed by now
          end)
        end
        local reply, err = agent:run "hi"
        codes[reply and "ok" or err.code] = true
        return reply and "ok" or err.code
      end
      local nest = ah.tool { name = "nest", description = "Runs.", parallel = true,
        handler = function() return run() end }
      all(random(12), function()
        run { tools = { nest }, max_parallel = random(3) }
      end)
      assert.is_true(state.most <= limit, round)
      for code in pairs(codes) do
        assert(({ ok = 1, cancelled = 1, deadline_exceeded = 1, provider = 1 })[code], code)
      end
      assert(ah.run { model = model, max_in_flight = 1, retries = 30, log = quiet, timeout = 60,
        "the last" }, round)
    end
  end)
end)
