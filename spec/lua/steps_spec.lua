-- Steps of durable handlers: what is recorded, what is given again when the handler is entered
-- again, and what is refused. docs/reference/durable.md has the rules.
local ah = require "agenthost"
local lives = require "support.lives"
local patiently = require "support.patiently"
local server = require "support.server"

local new_agent, result_of, new_journal = lives.new_agent, lives.result_of, lives.new_journal
local enter, kinds, die_everywhere = lives.enter, lives.kinds, lives.die_everywhere

describe("a durable handler", function()
  it("is given its steps again", function()
    local calls = 0
    local function handler(_, ctx)
      local one = ctx:step("one", function(key)
        calls = calls + 1
        assert.equal(64, #key)
        return { n = calls, list = { 1, 2.5, "x" }, none = ah.null }
      end)
      return ("%s %s %s %s"):format(ah.json.encode(one), ah.now(), ah.random(1000000), ah.random())
    end
    local journal = new_journal()
    local first = assert(enter(journal, handler))
    assert.same({ "step_started  step 0 one", "step  step 0 one", "step  now 0 ",
      "step  random 0 1000000", "step  random 0 " }, kinds(journal))
    assert.equal(first, (enter(journal, handler)))
    assert.equal(5, #journal:records())
    assert.equal(1, calls)
  end)

  it("has the same outcome after a death at every record, and each keyed effect once", function()
    local function make()
      local effects = { keys = {}, count = 0, distinct = 0 }
      local function effect(key)
        effects.count = effects.count + 1
        if not effects.keys[key] then
          effects.keys[key] = true
          effects.distinct = effects.distinct + 1
        end
        return effects.keys[key] and 1
      end
      return function(_, ctx)
        local sum = 0
        for _ = 1, 3 do
          sum = sum + ctx:step("add", effect, { on_lost = "retry" })
        end
        ah.sleep(0.001)
        local all = ah.all {
          function() return ctx:step("left", effect, { on_lost = "retry" }) end,
          function()
            local inner = ah.spawn(function()
              return ctx:step("deep", effect, { on_lost = "retry" })
            end)
            return inner:await() + ctx:step("right", effect, { on_lost = "retry" })
          end,
        }
        local ok, err = pcall(ctx.step, ctx, "fails", function(key)
          effect(key)
          error(ah.error { code = "http", message = "refused" })
        end, { on_lost = "retry" })
        return ("%d %d %d %s %s"):format(sum, all[1], all[2], ok, err.code)
      end, effects
    end
    local n = die_everywhere(make, function(outcome, effects, first)
      assert.equal("3 1 2 false http", first)
      assert.equal(first, outcome)
      assert.equal(7, effects.distinct)
      assert.is_true(effects.count <= 7 + 4) -- a death repeats those at work, two at most
    end)
    assert.equal(16, n)
  end)

  it("never makes a step twice with on_lost = \"tell\"", function()
    local function make()
      local effects = { a = 0, b = 0 }
      return function(_, ctx)
        local said = {}
        for _, name in ipairs { "a", "b" } do
          local ok, err = pcall(ctx.step, ctx, name, function()
            effects[name] = effects[name] + 1
            return true
          end)
          said[#said + 1] = ok and "done" or err.lost and "lost"
        end
        return table.concat(said, " ")
      end, effects
    end
    local lost = 0
    die_everywhere(make, function(outcome, effects)
      lost = lost + select(2, outcome:gsub("lost", ""))
      assert.is_true(effects.a <= 1 and effects.b <= 1)
      assert.truthy(outcome:match "^%l+ %l+$")
    end)
    assert.is_true(lost > 0)
  end)

  it("raises the recorded error of a step again, a text as it was", function()
    local calls = 0
    local function handler(_, ctx)
      local ok, err = pcall(ctx.step, ctx, "a", function()
        calls = calls + 1
        error("no luck", 0)
      end)
      return tostring(ok) .. " " .. tostring(err)
    end
    local journal = new_journal()
    assert.equal("false no luck", (enter(journal, handler)))
    assert.equal("false no luck", (enter(journal, handler)))
    assert.equal(1, calls)
  end)

  it("gives nil, and nil and an error, as they were", function()
    local function handler(_, ctx)
      local nothing = table.pack(ctx:step("nothing", function() end))
      local none, err = ctx:step("none", function()
        return nil, ah.error { code = "provider", message = "down", tries = 3 }
      end)
      return ("%d %s %s %s %d"):format(nothing.n, none, err.code, err.message, err.tries)
    end
    local journal = new_journal()
    assert.equal("0 nil provider down 3", (enter(journal, handler)))
    assert.equal("0 nil provider down 3", (enter(journal, handler)))
  end)

  it("does again what it did to the session", function()
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local function handler(_, ctx)
      local n = ctx:step("n", function() return 7 end)
      ctx.session[Count]:append(Count { n = n })
      ctx:step("after", function() return 1 end)
      return n
    end
    for die = 1, 4 do
      local journal = new_journal()
      local session = ah.session { types = { Count } }
      local outcome = enter(journal, handler, die <= 3 and die or nil,
        { session = session })
      assert.equal(die <= 3, journal:dead())
      assert.equal(die > 3 and "7" or nil, outcome)
      assert.equal(die > 3 and 1 or 0, #session[Count]:all())
    end
  end)
end)

describe("a lost step", function()
  -- Dies after the function of the step has run, before its result is recorded.
  local function lost(on_lost, fields)
    local calls, keys = 0, {}
    local function handler(_, ctx)
      local ok, value = pcall(ctx.step, ctx, "pay", function(key)
        calls = calls + 1
        keys[calls] = key
        return "paid " .. calls
      end, { on_lost = on_lost })
      return ok and value or "raised " .. value.code .. " " .. tostring(value.lost)
    end
    local journal = new_journal()
    local _, why = enter(journal, handler, 2)
    assert.equal("dead", why)
    local outcome = enter(journal, handler, nil, fields)
    assert.equal(outcome, (enter(journal, handler))) -- the decision is recorded
    return outcome, calls, keys
  end

  it("raises, and is not done again", function()
    local outcome, calls = lost "tell"
    assert.equal("raised conflict true", outcome)
    assert.equal(1, calls)
  end)

  it("is done again with the same key", function()
    local outcome, calls, keys = lost "retry"
    assert.equal("paid 2", outcome)
    assert.equal(2, calls)
    assert.equal(keys[1], keys[2])
  end)

  it("has the value that a function has found out", function()
    local asked
    local outcome, calls, keys = lost(function(key) asked = key return true, "paid before" end)
    assert.equal("paid before", outcome)
    assert.equal(1, calls)
    assert.equal(keys[1], asked)
    assert.equal("paid 2", (lost(function() return false end)))
    assert.equal("raised conflict true", (lost(function() return nil end)))
  end)

  it("is decided by a person", function()
    local function respond(response)
      return { asks = function(ask)
        assert.truthy(ask.question:match "'pay'")
        return response
      end }
    end
    assert.equal("paid 2", (lost("ask", respond "it did not happen")))
    assert.equal("raised conflict true", (lost("ask", respond "I do not know")))
  end)
end)

describe("a handler that has diverged", function()
  local function diverge(before, after)
    local journal = new_journal()
    assert(enter(journal, before))
    local n = #journal:records()
    local agent = journal:open(after)
    local transcript
    local reply, err = agent:run()
    transcript = agent:transcript()
    assert.is_nil(reply)
    assert.equal("diverged", select(2, agent:run()).code) -- it goes on as a later process does
    journal:run(agent)
    assert.equal("diverged", err.code)
    assert.equal(n, #journal:records())
    return err.message, transcript, journal
  end

  it("ends the run, and the model is told nothing", function()
    local message, transcript, journal = diverge(function(_, ctx)
      return ctx:step("one", function() return 1 end)
    end, function(_, ctx)
      local ok = pcall(ctx.step, ctx, "two", function() return 1 end)
      return tostring(ok)
    end)
    assert.truthy(message:find("tool 't', call ", 1, true), message)
    assert.truthy(message:find "steps_spec.lua:%d+: the handler asks for the step step 'two'",
      message)
    assert.truthy(message:find("recorded is the step step 'one'", 1, true), message)
    assert.is_nil(transcript:find("diverged", 1, true))
    -- the script is corrected
    assert.equal("1", (enter(journal, function(_, ctx)
      return ctx:step("one", function() error "not again" end)
    end)))
  end)

  it("ends the run if it did not ask for a recorded step", function()
    local message = diverge(function(_, ctx)
      return ctx:step("one", function() return 1 end)
    end, function() return 1 end)
    assert.truthy(message:find("did not ask for the recorded step step 'one'", 1, true), message)
  end)

  it("ends the run for other arguments of a function", function()
    local message = diverge(function() return ah.random(5) end, function() return ah.random(6) end)
    assert.truthy(message:find("random '6'", 1, true), message)
  end)

  it("may make steps that are not recorded yet", function()
    local journal = new_journal()
    assert(enter(journal, function(_, ctx) return ctx:step("a", function() return 1 end) end))
    assert.equal("3", (enter(journal, function(_, ctx)
      return ctx:step("a", function() return 5 end) + ctx:step("b", function() return 2 end)
    end)))
  end)
end)

describe("in a step", function()
  it("results must be JSON, and the error names the type", function()
    local journal = new_journal()
    local function handler(_, ctx)
      local _, err = pcall(ctx.step, ctx, "bad", function() return { f = print } end)
      return err.code .. ": " .. err.message
    end
    local outcome = enter(journal, handler)
    assert.truthy(outcome:find("tool_validation: the step 'bad': its result must be JSON: at .f: "
      .. "a function cannot be JSON", 1, true), outcome)
    assert.equal(outcome, (enter(journal, handler)))
  end)

  it("session, files, notes and objects cannot be changed", function()
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local changes = {
      function(ctx) ctx.session[Count]:append(Count { n = 1 }) end,
      function(ctx) ctx:note "x" end,
      function(ctx) ctx:remove_tools "t" end,
      function(ctx) ctx:enlist(setmetatable({}, { __index = { snapshot = function() end,
        restore = function() end } })) end,
    }
    for i, change in ipairs(changes) do
      local said
      assert(enter(new_journal(), function(_, ctx)
        local _, err = pcall(ctx.step, ctx, "change", function() change(ctx) end)
        said = err.message
        return 1
      end, nil, { session = ah.session { types = { Count } } }))
      assert.truthy(said:find("the function of a step must not change", 1, true), i .. said)
    end
  end)

  it("files can be read, with what the call has written", function()
    local fs = ah.filesystem { files = { ["a.txt"] = "one" } }
    local said
    assert.equal("one two", (enter(new_journal(), function(_, ctx)
      assert(fs:append("a.txt", " two"))
      return ctx:step("read", function()
        said = select(2, pcall(fs.write, fs, "a.txt", "three")).message
        return (fs:read "a.txt")
      end)
    end)))
    assert.truthy(said:find("the function of a step must not change", 1, true), said)
  end)

  it("streams, processes and servers work, and raise outside of it", function()
    for _, use in ipairs {
      function() return ah.process { command = "/bin/true" } end,
      function() return ah.serve { on_request = function() end } end,
      function() return ah.http { url = "http://127.0.0.1:1/", stream = "lines" } end,
    } do
      local outside, inside
      assert(enter(new_journal(), function(_, ctx)
        outside = select(2, pcall(use))
        inside = ctx:step("x", function()
          local _ <close> = use()
          return "used"
        end)
        return 1
      end))
      assert.truthy(tostring(outside):find("ctx:step", 1, true), tostring(outside))
      assert.equal("used", inside)
    end
  end)

  it("a store can be used, and raises outside of it", function()
    local other <close> = assert(ah.store { engine = "memory" })
    local said, asks
    assert(enter(new_journal(), function(_, ctx)
      said = select(2, pcall(other.asks, other)).message
      asks = ctx:step("asks", function() return #other:asks() end)
      return 1
    end))
    assert.truthy(said:find("a store cannot be repeated", 1, true), said)
    assert.equal(0, asks)
  end)

  it("no other step can be made, nor outside of durable tools", function()
    local said
    assert(enter(new_journal(), function(_, ctx)
      ctx:step("a", function()
        said = select(2, pcall(ctx.step, ctx, "b", function() end)).message
        assert(ah.now() > 0)
        return 1
      end)
      return 1
    end))
    assert.truthy(said:find("steps do not nest", 1, true))
    local plain = ah.tool { name = "p", description = "Plain.", handler = function(_, ctx)
      assert.is_nil(ctx.idempotency_key)
      return select(2, pcall(ctx.step, ctx, "b", function() end)).message
    end }
    local model = ah.scripted { { calls = { { name = "p", arguments = {} } } }, "done" }
    local reply = assert(ah.run { model = model, tools = { plain }, "go" })
    assert.truthy(result_of(reply):find("durable = true", 1, true))
  end)

  it("a secret is not recorded, nor anything after it", function()
    local journal = new_journal()
    local function handler(_, ctx)
      ctx:step("before", function() return 1 end)
      local token = ctx:step("login", function() return "s3cr3t-token" end, { secret = true })
      ctx:step("after", function() return token end)
      return #token
    end
    assert.equal("12", (enter(journal, handler)))
    local records = journal:records()
    assert.equal(3, #records)
    assert.is_true(ah.json.decode(records[3].said).secret)
    for _, record in ipairs(records) do
      assert.is_nil((record.said .. tostring(record.kept)):find("s3cr3t", 1, true))
    end
    local lost = enter(journal, handler) -- the tool's `on_lost` decides
    assert.truthy(lost:find("The outcome of this call is unknown", 1, true), lost)
  end)
end)

describe("steps without a journal", function()
  it("are made, and keys differ between calls", function()
    local keys, known = {}, {}
    local function note(key)
      keys[#keys + 1] = not known[key] and key or nil
      known[key] = true
    end
    local function handler(_, ctx)
      note(ctx.idempotency_key)
      return ctx:step("a", function(key) note(key) return 5 end)
    end
    for _ = 1, 2 do
      assert.equal("5", result_of(assert(new_agent(handler):run "go")))
    end
    assert.equal(4, #keys)
    for i, key in ipairs(keys) do
      assert.truthy(key:match "^%x+$")
      for k = 1, i - 1 do
        assert.not_equal(keys[k], key)
      end
    end
  end)
end)

describe("steps by themselves", function()
  it("ah.http is made once, and unsafe requests have a key", function()
    local s <close> = server.start { responses = { { status = 201, body = "\xff\0x" } } }
    local function handler()
      local got = assert(ah.http { url = s.url .. "/get" })
      local posted = assert(ah.http { url = s.url .. "/post", method = "POST", body = "b" })
      return ("%d %d %d %s"):format(got.status, #posted.body, posted.body:byte(1),
        posted.headers["content-length"])
    end
    local journal = new_journal()
    assert.equal("201 3 255 3", (enter(journal, handler)))
    assert.equal("201 3 255 3", (enter(journal, handler)))
    local requests = s:requests()
    assert.equal(2, #requests)
    assert.is_nil(requests[1].headers["idempotency-key"])
    assert.equal(64, #requests[2].headers["idempotency-key"])
  end)

  it("a lost request is made again if that is harmless, else told", function()
    local s <close> = server.start { responses = { { body = "ok" } } }
    local function ask(method, on_lost)
      local journal = new_journal()
      local function handler()
        local r, err = ah.http { url = s.url, method = method, on_lost = on_lost }
        return r and r.body or err.code .. " " .. tostring(err.lost)
      end
      local _, why = enter(journal, handler, 2)
      assert.equal("dead", why)
      return (enter(journal, handler))
    end
    assert.equal("ok", ask "GET")
    assert.equal("conflict true", ask "POST")
    assert.equal(3, #s:requests())
    assert.equal("ok", ask("POST", "retry"))
    local requests = s:requests()
    assert.equal(5, #requests)
    assert.equal(requests[4].headers["idempotency-key"], requests[5].headers["idempotency-key"])
  end)

  it("an address that is too long is recorded and refused", function()
    local journal = new_journal()
    local url = "http://127.0.0.1:1/?" .. ("x"):rep(70000)
    local function handler()
      local _, err = ah.http { url = url }
      return err.code
    end
    assert.equal("usage", (enter(journal, handler)))
    assert.equal("GET " .. url, ah.json.decode(journal:records()[1].said).what)
  end)

  it("a failure of ah.http is a step", function()
    local journal = new_journal()
    local function handler()
      local _, err = ah.http { url = "http://127.0.0.1:1/" }
      return err.code
    end
    assert.equal("http", (enter(journal, handler)))
    local n = #journal:records()
    assert.equal("http", (enter(journal, handler)))
    assert.equal(n, #journal:records())
  end)

  it("ah.sleep waits for the rest only", function()
    patiently(function(times)
      local journal = new_journal()
      local function handler() ah.sleep(0.3 * times) return "slept" end
      assert.equal("slept", (enter(journal, handler)))
      local began = ah.now()
      assert.equal("slept", (enter(journal, handler)))
      assert.is_true(ah.now() - began < 0.2 * times)
    end)
  end)

  it("ctx:ask is asked once", function()
    local asked = 0
    local function handler(_, ctx)
      local name = ctx:ask { question = "Who?" }
      ctx:step("x", function() return 1 end)
      return name
    end
    local fields = function() return { asks = function() asked = asked + 1 return "Ada" end } end
    local journal = new_journal()
    local _, why = enter(journal, handler, 3, fields())
    assert.equal("dead", why)
    journal:cut(1)
    assert.equal("Ada", (enter(journal, handler, nil, fields())))
    assert.equal(1, asked)
  end)

  it("runs inside of the handler are kept with their conversation", function()
    local requests = 0
    local function handler(_, ctx)
      local helper = ah.agent { model = ah.scripted(function(transcript)
        requests = requests + 1
        return "answer " .. requests .. " of " .. #transcript.entries
      end), name = "helper" }
      local one = assert(helper:run "first")
      ctx:step("between", function() return 1 end)
      local two = assert(helper:run "second")
      local three = assert(ah.run { model = ah.scripted { "third" }, "ask" })
      return ("%s|%s|%s|%d|%d|%s|%d"):format(one.text, two.text, three.text, #two.messages,
        two.iterations, two.stop, two.usage.output)
    end
    local journal = new_journal()
    local first = assert(enter(journal, handler))
    local n = #journal:records()
    assert.equal(8, n)
    assert.equal(first, (enter(journal, handler)))
    assert.equal(2, requests)
    -- the second run goes on from the conversation of the recorded first one
    journal:cut(4)
    requests = 1
    assert.equal(first, (enter(journal, handler)))
    assert.equal(2, requests)
  end)
end)

describe("a run inside of a durable handler", function()
  it("is kept with what it has changed in the session of the call", function()
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local journal, calls = new_journal(), 0
    local function handler(_, ctx)
      ctx.session[Count]:append(Count { n = 1 })
      local reply = assert(ah.run { model = ah.scripted { { calls = { { name = "add",
        arguments = {} } } }, "added" }, tools = { ah.tool { name = "add", description = "Adds.",
        handler = function()
          calls = calls + 1
          ctx.session[Count]:append(Count { n = 2 })
          return "ok"
        end } }, "go" })
      ctx:step("after", function() return 1 end)
      ctx.session[Count]:append(Count { n = 3 })
      return reply.text
    end
    for _, die in ipairs { 3, 5 } do
      local session = ah.session { types = { Count } }
      local outcome = enter(journal, handler, die < 5 and die or nil, { session = session })
      assert.equal(die == 5 and "added" or nil, outcome)
      local list = session[Count]:all()
      assert.equal(die == 5 and 3 or 0, #list)
      for i, count in ipairs(list) do
        assert.equal(i, count.n)
      end
    end
    assert.equal(1, calls)
  end)

  it("must change nothing inside of ctx:step", function()
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local session, said = ah.session { types = { Count } }, nil
    assert(enter(new_journal(), function(_, ctx)
      said = select(2, pcall(ctx.step, ctx, "run", function()
        assert(ah.run { model = ah.scripted { { calls = { { name = "add", arguments = {} } } },
          "added" }, tools = { ah.tool { name = "add", description = "Adds.", handler = function()
          ctx.session[Count]:append(Count { n = 2 })
          return "ok"
        end } }, "go" })
        return 1
      end))
      return 1
    end, nil, { session = session }))
    assert.truthy(said.message:find("a run inside of it has changed", 1, true), said.message)
    assert.equal(0, #session[Count]:all())
  end)
end)

describe("tasks of a durable handler", function()
  it("have paths by the order of starts", function()
    local journal = new_journal()
    local function handler(_, ctx)
      local function value(name, seconds)
        return function()
          ah.sleep(seconds)
          return ctx:step(name, function() return name end)
        end
      end
      local slow = ah.spawn(value("slow", 0.02))
      local fast = ah.spawn(value("fast", 0.001))
      return slow:await() .. fast:await()
    end
    assert.equal("slowfast", (enter(journal, handler)))
    local list = table.concat(kinds(journal), ",")
    assert.truthy(list:find("step /1 step 0 slow", 1, true), list)
    assert.truthy(list:find("step /2 step 0 fast", 1, true), list)
    assert.equal("slowfast", (enter(journal, handler)))
  end)

  it("win a race again, and others are not called again", function()
    local calls = { fast = 0, slow = 0 }
    local seconds = { fast = 0.001, slow = 5 }
    local function handler(_, ctx)
      local function run(name)
        return function()
          calls[name] = calls[name] + 1
          ctx:step(name, function() return 1 end)
          ah.sleep(seconds[name])
          return name
        end
      end
      local name = ah.race { run "slow", run "fast" }
      return name .. ctx:step("end", function() return "!" end)
    end
    local journal = new_journal()
    assert.equal("fast!", (enter(journal, handler)))
    seconds.slow = 0
    calls = { fast = 0, slow = 0 }
    assert.equal("fast!", (enter(journal, handler)))
    assert.same({ fast = 1, slow = 0 }, calls)
  end)

  it("lose a race by an error again, and are cancelled in one again", function()
    local journal = new_journal()
    local function handler(_, ctx)
      local ok, err = pcall(ah.race, { function() ah.sleep(0.001) error("boom", 0) end,
        function() ah.sleep(0.05) return "second" end })
      local cancelled = ah.spawn(function() return ah.race { function() ah.sleep(5) end } end)
      ah.sleep(0.001)
      cancelled:cancel()
      return ("%s %s %s"):format(ok, err, ctx:step("end", function() return "!" end))
    end
    assert.equal("false boom !", (enter(journal, handler)))
    assert.equal("false boom !", (enter(journal, handler)))
  end)

  it("are too late again", function()
    local calls = 0
    local function handler()
      local _, err = ah.with_timeout(0.005, function()
        calls = calls + 1
        ah.sleep(5)
      end)
      local value = ah.with_timeout(5, function() return ah.random(10) > 0 end)
      return err.code .. tostring(value)
    end
    local journal = new_journal()
    assert.equal("deadline_exceededtrue", (enter(journal, handler)))
    assert.is_true(calls > 0)
    calls = 0
    assert.equal("deadline_exceededtrue", (enter(journal, handler)))
    assert.equal(0, calls)
  end)

  it("of ah.map have the steps of their values, whoever works on them", function()
    local function make()
      local effects = { keys = {}, distinct = 0 }
      return function(_, ctx)
        local list = ah.map({ 3, 1, 2, 4, 5 }, function(n)
          ah.sleep(n % 2 / 1000)
          return ctx:step("square", function(key)
            effects.distinct = effects.distinct + (effects.keys[key] and 0 or 1)
            effects.keys[key] = true
            return n * n
          end, { on_lost = "retry" })
        end, { concurrency = 2 })
        return table.concat(list, " ")
      end, effects
    end
    die_everywhere(make, function(outcome, effects)
      assert.equal("9 1 4 16 25", outcome)
      assert.equal(5, effects.distinct)
    end)
  end)

  it("of ah.map fail again at the same value", function()
    local seconds = { 5, 0.001, 5 }
    local function handler(_, ctx)
      local _, err = ah.map({ 1, 2, 3 }, function(n)
        ctx:step("begin", function() return n end)
        ah.sleep(seconds[n])
        return nil, "value " .. n
      end)
      return err
    end
    local journal = new_journal()
    local before = enter(journal, handler)
    seconds = { 0.001, 0.001, 0.001 }
    assert.equal(before, (enter(journal, handler)))
  end)
end)

describe("a damaged record of a step", function()
  it("is refused", function()
    local function handler(_, ctx)
      return ctx:step("a", function() return 1 end)
    end
    local journal = new_journal()
    assert(enter(journal, handler))
    local all = journal.all
    for _, kept in ipairs { "1", "[1]", '[{"e":1}]', "null", '""' } do
      journal.all = {}
      for i, record in ipairs(all) do
        journal.all[i] = { kind = record.kind, said = record.said, kept = record.kept and kept }
      end
      local outcome = enter(journal, handler)
      assert.truthy(outcome:find("execution failed", 1, true), kept .. " " .. outcome)
    end
  end)
end)

describe("a journal that fails", function()
  it("lets no effect begin", function()
    local calls, said = 0, nil
    local journal = new_journal()
    local agent = journal:open(function(_, ctx)
      said = select(2, pcall(ctx.step, ctx, "a", function() calls = calls + 1 end))
      return 1
    end)
    journal.tap:fail()
    local _, err = journal:run(agent)
    assert.equal("store", err.code)
    assert.truthy(said == nil or said.code == "store")
    assert.equal(0, calls)
  end)
end)
