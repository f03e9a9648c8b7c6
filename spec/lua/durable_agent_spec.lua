-- Agents with a store: a program that is killed goes on where it was when the same script is
-- started again. The scripts of this spec are run as programs of their own, and kill themselves at
-- a point that the spec names. docs/reference/stores.md has the rules.
local ah = require "agenthost"
local command = require "support.command"
local patiently = require "support.patiently"

local scratch

setup(function()
  scratch = command.folder()
end)

teardown(command.tidy)

local n = 0

-- A new name in the scratch folder.
local function path(suffix)
  n = n + 1
  return ("%s/%d%s"):format(scratch, n, suffix or "")
end

local function read(name)
  local f = io.open(name)
  local text = f and f:read "a" or ""
  return f and f:close() and text or ""
end

-- The beginning of each script: `log` writes a line to a file, `point` kills the program there.
local PRELUDE = [[
local ah = require "agenthost"
local LOG, POINT, STORE = os.getenv "LOG", os.getenv "POINT", os.getenv "STORE"
local function log(...)
  local f <close> = assert(io.open(LOG, "a"))
  f:write(table.concat({ ... }, " "), "\n")
end
local function point(name) if name == POINT then os.execute "kill -9 $PPID" end end
local function tool(name, fields)
  fields.name, fields.description = name, "A tool."
  return ah.tool(fields)
end
local function call(name, arguments)
  return { name = name, arguments = arguments or {} }
end
local function scripted(turns)
  for i, turn in ipairs(turns) do
    turns[i] = function()
      log("request", i)
      -- the records are appended before the model is asked, as they are with a real one
      ah.sleep(0.001)
      point("request " .. i)
      return turn
    end
  end
  turns.resumes = true
  return ah.scripted(turns)
end
local function show(reply, err)
  log("reply", tostring(reply), tostring(err and err.code))
  for _, m in ipairs(reply and reply.messages or {}) do
    if m.role == "tool" then log("result", m.content) end
  end
end
]]

-- A script with a store and a log of its own.
local function program(text)
  local self = { script = path ".lua", store = path ".db", log = path ".log" }
  command.write(self.script, PRELUDE .. text)

  -- Runs it up to a point (nil: to its end). Returns the lines that were logged since, and whether
  -- it was killed.
  function self.run(point, env)
    command.write(self.log, "")
    local line = ("%s LOG=%s POINT='%s' STORE=%s %s %s >%s.out 2>&1"):format(env or "", self.log,
      point or "", self.store, command.BINARY, self.script, self.log)
    local _, how, code = os.execute("sh -c " .. ("%q"):format(line))
    local lines = {}
    for one in read(self.log):gmatch "[^\n]+" do
      lines[#lines + 1] = one
    end
    local killed = how == "signal" or code == 137
    if not killed then
      assert.equal(0, code, read(self.log .. ".out"))
    end
    return lines, killed
  end

  -- Kills it at the point, and returns the lines of the next start.
  function self.crash(point, env)
    local before, killed = self.run(point, env)
    assert.is_true(killed, "the program was not at the point " .. point)
    return self.run(nil, env), before
  end

  return self
end

local function count(lines, wanted)
  local k = 0
  for _, line in ipairs(lines) do
    k = k + (line == wanted and 1 or 0)
  end
  return k
end

local UNKNOWN = "result The outcome of this call is unknown: the program ended while it ran. "
  .. "It was not run again."

describe("an agent with a store", function()
  local function store()
    return assert(ah.store { engine = "memory" })
  end

  local function open(fields)
    fields.model = fields.model or "demo/echo"
    return assert(ah.agent(fields))
  end

  it("goes on with its conversation when it is opened again", function()
    local kept = store()
    local a = open { store = kept, id = "one" }

    assert.equal("one", a.id)
    assert.is_nil(a.unfinished)
    a:run "First"
    assert.is_true(a:close())
    local b <close> = open { store = kept, id = "one" }
    assert.equal(4, #b:run("Second").messages)
  end)

  it("gets an id if it names none", function()
    local kept = store()
    local a <close> = open { store = kept }
    local b <close> = open { store = kept }

    assert.matches("^%x+$", a.id)
    assert.not_equal(a.id, b.id)
  end)

  it("refuses ids that no stream can have", function()
    local kept = store()
    for _, id in ipairs { "", "a/b", "a\nb", ("x"):rep(129), "\255" } do
      local ok, err = pcall(ah.agent, { store = kept, id = id, model = "demo/echo" })

      assert.is_false(ok)
      assert.equal("usage", err.code)
    end
  end)

  it("takes no store for what is none", function()
    for _, wrong in ipairs { true, 7, "" } do
      assert.is_false(pcall(ah.agent, { store = wrong, id = "x", model = "demo/echo" }))
    end
    assert.is_nil(open { store = false, id = "x" }.unfinished)
  end)

  it("holds its id until it is closed", function()
    local kept = store()
    local a = open { store = kept, id = "one" }
    local b, err = ah.agent { store = kept, id = "one", model = "demo/echo" }

    assert.is_nil(b)
    assert.equal("conflict", err.code)
    assert.matches("one", err.message, 1, true)
    a:close()
    open({ store = kept, id = "one" }):close()
  end)

  it("lets go of its id when it is garbage", function()
    local kept = store()
    open { store = kept, id = "one" }
    open({ store = kept, id = "one" }):close()
  end)

  it("has other conversations by agent:open", function()
    local kept = store()
    local shop <close> = open { store = kept, id = "shop" }
    local ann = assert(shop:open { id = "ann" })

    ann:run "A lamp"
    ann:close()
    ann = assert(shop:open { id = "ann" })
    assert.equal(4, #ann:run("And a chair").messages)
    ann:close()
    local loose <close> = assert(shop:open {})
    loose:run "Not kept"
    local names = {}
    for _, one in ipairs(assert(ah._conversations(kept, ""))) do
      names[one.conversation] = true
    end
    assert.same({ ann = true }, names)
  end)

  it("is forked into a stream of its own, or into memory", function()
    local kept = store()
    local a <close> = open { store = kept, id = "one" }
    a:run "First"
    local b = assert(a:fork { id = "two" })
    local loose <close> = assert(a:fork())
    loose:run "In memory"
    assert.equal("two", b.id)
    b:run "Second"
    b:close()
    b = open { store = kept, id = "two" }
    assert.equal(6, #b:run("Third").messages)
    b:close()
    assert.equal(4, #a:run("Alone").messages)
    assert.is_nil((a:fork { id = "two" }))
  end)

  it("takes in a conversation of a file", function()
    local kept, file = store(), path ".json"
    local a <close> = open {}
    a:run "First"
    assert(a:save(file))
    assert(ah.load(file, { store = kept, id = "one" })):close()
    local b = open { store = kept, id = "one" }
    assert.equal(4, #b:run("Second").messages)
    b:close()
    local c, err = ah.load(file, { store = kept, id = "one" })
    assert.is_nil(c)
    assert.equal("conflict", err.code)
  end)

  it("is, after a file, as if it had always been in the store", function()
    local lines = program([[
      local Step = ah.type { name = "Step", fields = { n = "integer" } }
      local FILE, HOW = STORE .. ".json", os.getenv "HOW"
      local function fields(t)
        t.session = ah.session { types = { Step } }
        t.tools = { tool("step", { params = Step, result = Step,
          handler = function(args) return args end }) }
        t.model = ah.scripted { resumes = true, { calls = { call("step", { n = 1 }) } }, "one",
          { calls = { call("step", { n = 2 }) } }, "two" }
        return t
      end
      local agent
      if POINT == "first" then
        agent = assert(ah.agent(fields { store = HOW == "store" and STORE or nil, id = "k" }))
        assert(agent:run "First")
        assert(agent:save(FILE))
        os.execute "kill -9 $PPID"
      elseif HOW == "store" then
        agent = assert(ah.agent(fields { store = STORE, id = "k" }))
      else
        agent = assert(ah.load(FILE, fields { store = STORE, id = "k" }))
      end
      assert(agent:run "Second")
      agent:close()
      local t = fields { store = STORE, id = "k" }
      agent = assert(ah.agent(t))
      log((agent:transcript():gsub('"time":%d+', '"time":0')))
      log(t.session:snapshot())
    ]])
    local kept = lines.crash("first", "HOW=store")
    os.remove(lines.store)
    os.remove(lines.store .. "-wal")
    os.remove(lines.store .. "-shm")
    local loaded = lines.crash("first", "HOW=file")

    assert.equal(2, #kept)
    assert.matches('"n":1.*"n":2', kept[2])
    assert.matches("Second", kept[1], 1, true)
    assert.same(kept, loaded)
  end)

  it("keeps the session of a file whose types the script does not know", function()
    local kept, file, session = store(), path ".json", ah.session()
    local Step = ah.type { name = "Step", fields = { n = "integer" } }
    session:register(Step)
    session:dispatch(Step { n = 7 })
    local a = open { session = session }
    a:run "First"
    assert(a:save(file))
    local empty = path ".json" -- a conversation that has not begun
    command.write(empty, '{"agenthost_transcript":1,"entries":[],"session":'
      .. session:snapshot() .. "}")
    for id, from in pairs { one = file, two = empty } do
      assert(ah.load(from, { store = kept, id = id, model = "demo/echo" })):close()
      local later = ah.session()
      later:register(Step)
      open({ store = kept, id = id, session = later }):close()
      assert.equal(7, later[Step]:all()[1].n)
    end
  end)

  it("is as before after many turns", function()
    local kept = store()
    local session = ah.session()
    local Step = ah.type { name = "Step", fields = { n = "integer" } }
    session:register(Step)
    local step = ah.tool { name = "step", description = "A step.", params = Step, result = Step,
      handler = function(args) return args end }
    local model = function(request)
      local last = request.entries[#request.entries]
      local calls = { { name = "step", arguments = { n = 1 } } }
      return last.type == "user" and { calls = calls } or "ok"
    end
    local a = open { store = kept, id = "one", session = session, tools = { step },
      model = ah.scripted(model) }
    for _ = 1, 70 do
      assert(a:run "Go.")
    end
    local messages = a:run("Go.").messages
    a:close()
    local later = ah.session()
    later:register(Step)
    a = open { store = kept, id = "one", session = later }
    assert.equal(71, #later[Step]:all())
    assert.same(messages, { table.unpack(a:run("Hm").messages, 1, #messages) })
    a:close()
  end)

  it("cannot be opened by a handler, whose call may fail", function()
    local kept, said = store()
    local inner = ah.tool { name = "inner", description = "Opens one.", handler = function()
      local ok, err = pcall(ah.run, { store = kept, id = "in", model = "demo/echo", "Hello" })
      said = not ok and err.code
    end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "inner" } } }, "done" },
      tools = { inner }, "Go" })
    assert.equal("usage", said)
  end)
end)

describe("a run that was killed", function()
  local TWO = [[
local function work(name)
  return tool(name, { handler = function()
    log("handler", name)
    point(name)
    return "did " .. name
  end })
end
local agent = assert(ah.agent { store = STORE, id = "k", tools = { work "one", work "two" },
  model = scripted { { calls = { call "one", call "two" } }, { calls = { call "one" } },
    "The end." },
  on = { resumed = function(e) log("resumed", e.from) end } })
local left = agent.unfinished
if left then
  log("unfinished", left.question, #left.asks, type(left.since))
end
show(agent:run(not left and "Go." or nil))
agent:close()
]]

  it("does not ask for recorded answers again", function()
    local lines = program(TWO).crash "request 3"

    assert.same({ "unfinished Go. 0 number", "resumed 2", "request 3", "reply The end. nil",
      "result did one", "result did two", "result did one" }, lines)
  end)

  it("does not run finished handlers again", function()
    local lines = program(TWO).crash "request 2"

    assert.equal(1, count(lines, "handler one")) -- of the second answer
    assert.equal(0, count(lines, "handler two"))
    assert.equal(0, count(lines, "request 1"))
    assert.equal("reply The end. nil", lines[#lines - 3])
  end)

  it("keeps the messages and tools that an idle agent gets, in calls and outside", function()
    local lines = program([[
local extra = tool("extra", { handler = function() end })
local other = assert(ah.agent { store = STORE, id = "other", model = "demo/echo" })
local agent = assert(ah.agent { store = STORE, id = "k",
  tools = { tool("tell", { on_lost = "retry", handler = function()
    assert(other:send "from the call")
    other:add_tools { extra }
    return "told"
  end }) },
  model = scripted { { calls = { call "tell" } }, "The end." } })
if agent.unfinished then
  log(other:transcript())
  show(agent:run())
else
  assert(other:send "outside")
  agent:run "Go."
end]]).crash "request 2"

    local text = lines[1]
    for _, word in ipairs { "outside", "from the call", "extra" } do
      assert.equal(1, select(2, text:gsub(word, "")), word .. " in " .. text)
    end
    assert.same({ "request 2", "reply The end. nil", "result told" }, { table.unpack(lines, 2) })
  end)

  it("tells the model of a call that was at work, and begins the others", function()
    local lines = program(TWO).crash "one"

    assert.same({ "unfinished Go. 0 number", "resumed 1", "handler two", "request 2", "handler one",
      "request 3", "reply The end. nil", UNKNOWN, "result did two", "result did one" }, lines)
  end)

  it("begins anew if nothing of it was recorded but its question", function()
    local lines = program(TWO).crash "request 1"

    assert.equal(1, count(lines, "request 1"))
    assert.equal("reply The end. nil", lines[#lines - 3])
  end)

  it("goes on with the recorded question, and with no other one", function()
    local text = TWO:gsub('show%(.*$', [[
      local ok, err = pcall(agent.run, agent, "Another question.")
      if left then log(tostring(ok), err.code, err.message:match "'Go%%.'" or err.message) end
      if left then show(agent:run "Go.") end
    ]]):gsub('"Another question."', 'left and "Another question." or "Go."')
    local lines = program(text).crash "request 3"

    assert.same({ "unfinished Go. 0 number", "false usage 'Go.'", "resumed 2", "request 3" },
      { table.unpack(lines, 1, 4) })
  end)

  it("is ended by agent:cancel", function()
    local text = TWO:gsub("show%(.*$", [[
      if left then
        assert(agent:cancel())
        log("left", tostring(agent.unfinished))
      end
      show(agent:run "Go.")
      agent:close()
    ]])
    local p = program(text)
    local lines = p.crash "two"
    assert.same({ "unfinished Go. 0 number", "left nil" }, { table.unpack(lines, 1, 2) })
    assert.equal(2, count(lines, "result did one"))
    assert.equal(1, count(lines,
      "result Cancelled: the run was stopped before this call finished. Its outcome is unknown."))
    assert.equal(1, count(lines, "reply The end. nil"))
    assert.equal(0, count(p.run(), "left nil")) -- the next start has nothing to cancel
  end)

  it("goes on by agenthost resume", function()
    local p = program [[
      local die = tool("die", { handler = function() point "die" end })
      return ah.agent { store = STORE, id = "k", tools = { die },
        model = scripted { { calls = { call "die" } }, "The end." } }
    ]]
    command.write(p.log, "")
    local env = ("cd %s; LOG=%s STORE=%s POINT=die"):format(scratch, p.log, p.store)
    os.execute(("sh -c '%s %s %s Go' 2>/dev/null"):format(env, command.BINARY, p.script))
    local pipe <close> = io.popen(("%s %s resume k --store %s 2>&1"):format(env, command.BINARY,
      p.store))
    assert.equal("The end.\n", pipe:read "a")
    assert.equal("request 1\nrequest 2\n", read(p.log))
  end)
end)

describe("a conversation that goes on", function()
  it("runs `setup` again, within the unfinished run", function()
    local lines = program([[
      local agent = assert(ah.agent { store = STORE, id = "k", setup = function(conversation)
          log("setup", conversation.id)
          conversation:set_system "Be brief."
          conversation:add_tools(tool("die", { on_lost = "retry",
            handler = function() point "die" end }))
        end,
        model = scripted { { calls = { call "die" } }, "The end." } })
      show(agent:run(not agent.unfinished and "Go." or nil))
      log(agent:transcript():match "Be brief" and "brief" or "none")
    ]]).crash "die"

    assert.same({ "setup k", "request 2", "reply The end. nil" }, { table.unpack(lines, 1, 3) })
    assert.equal("brief", lines[#lines])
  end)

  it("tells of background calls that were lost", function()
    local lines = program([[
      local slow = tool("slow", { background = true, handler = function() ah.sleep(60) end })
      local die = tool("die", { handler = function() point "die" end })
      local agent = assert(ah.agent { store = STORE, id = "k", tools = { slow, die },
        model = scripted { { calls = { call "slow" } }, { calls = { call "die" } }, "The end." } })
      show(agent:run(not agent.unfinished and "Go." or nil))
      log((agent:transcript():match "Ticket 1 [^\"]+"))
    ]]).crash "die"

    assert.equal("Ticket 1 (slow): its outcome is unknown: the program ended while the call was "
      .. "outstanding. It was not run again.", lines[#lines])
  end)

  it("goes on with the agent that it was handed to", function()
    local lines = program([[
      local die = tool("die", { handler = function() point "die" end })
      local bob = ah.agent { name = "bob", system = "I am Bob.", tools = { die },
        model = scripted { false, { calls = { call "die" } }, "Bob's end." } }
      local agent = assert(ah.agent { store = STORE, id = "k", name = "ann",
        tools = { ah.handoff { to = bob, when = "For Bob." } },
        model = scripted { { calls = { call "handoff_to_bob" } } } })
      show(agent:run(not agent.unfinished and "Go." or nil))
    ]]).crash "die"

    assert.equal(1, count(lines, "reply Bob's end. nil"))
  end)

  it("keeps its deadline, but begins its timeout anew", function()
    local text = [[
      local later = io.open(STORE) ~= nil
      local named = os.getenv "DEADLINE"
      local die = tool("die", { handler = function() point "die" end })
      local agent = assert(ah.agent { store = STORE, id = "k", tools = { die },
        deadline = named and not later and ah.now() + SECONDS or nil,
        timeout = not named and SECONDS or nil,
        model = scripted { { calls = { call "die" } }, "The end." } })
      if later then ah.sleep(SECONDS + 0.05) end
      local reply, err = agent:run(not later and "Go." or nil)
      log(tostring(reply), tostring(err and err.code))
    ]]
    patiently(function(times)
      local script = ("local SECONDS = %g\n"):format(0.3 * times) .. text
      local lines = program(script).crash("die", "DEADLINE=1")
      assert.equal("nil deadline_exceeded", lines[#lines])
      lines = program(script).crash "die"
      assert.equal("The end. nil", lines[#lines])
    end)
  end)
end)

describe("on_lost", function()
  local TEXT = [[
local hows = { fn = function(key, arguments)
  log("lost", #key, arguments.sum)
  ah.sleep(0.01)
  if os.getenv "FOUND" == "error" then error "no answer" end
  if os.getenv "FOUND" == "true" then return true, { paid = arguments.sum } end
  if os.getenv "FOUND" == "false" then return false end
end }
local how = os.getenv "HOW"
local keys = {}
local pay = tool("pay", { params = { sum = "integer" }, on_lost = hows[how] or how,
  handler = function(args, ctx)
    log("pay", args.sum, ctx.idempotency_key)
    point "pay"
    return "paid"
  end })
local agent = assert(ah.agent { store = STORE, id = "k", tools = { pay },
  model = scripted { { calls = { call("pay", { sum = 3 }) } }, "The end." },
  on = { warning = function(e) log("warning", e.message) end } })
show(agent:run "Pay.")
]]

  it("begins the handler again with the same key", function()
    local lines, before = program(TEXT).crash("pay", "HOW=retry")
    local first, second = before[2], lines[1]

    assert.matches("^pay 3 %x+$", first)
    assert.equal(64, #first:match "%x+$")
    assert.equal(first, second)
    assert.equal("result paid", lines[#lines])
  end)

  it("tells the model", function()
    assert.equal(UNKNOWN, program(TEXT).crash("pay", "HOW=tell")[3])
  end)

  it("takes the result that a function finds", function()
    assert.same({ "lost 64 3", "request 2", "reply The end. nil", 'result {"paid":3}' },
      program(TEXT).crash("pay", "HOW=fn FOUND=true"))
  end)

  it("begins the handler if a function says that nothing has happened", function()
    local lines = program(TEXT).crash("pay", "HOW=fn FOUND=false")

    assert.equal("lost 64 3", lines[1])
    assert.matches("^pay 3 ", lines[2])
    assert.equal("result paid", lines[#lines])
  end)

  it("tells the model if a function does not know, or fails", function()
    local lines = program(TEXT).crash("pay", "HOW=fn FOUND=nil")
    assert.equal(UNKNOWN, lines[#lines])
    lines = program(TEXT).crash("pay", "HOW=fn FOUND=error")
    assert.equal(UNKNOWN, lines[#lines])
    assert.matches("^warning `on_lost` of tool 'pay' failed", lines[2])
  end)

  it("sends the key with requests that change something", function()
    local lines, before = program([[
      local function answer(request)
        local key = request.headers["idempotency-key"]
        log(request.method, key and key[1] or "none")
        return { body = "ok" }
      end
      local server <close> = assert(ah.serve { listen = "127.0.0.1:0", on_request = answer })
      local function post()
        return function(_, ctx)
          log("key", ctx.idempotency_key)
          for _, method in ipairs { "POST", "PUT", "GET" } do
            assert(ah.http { url = server.url, method = method })
          end
          local headers = { ["idempotency-KEY"] = "mine" }
          assert(ah.http { url = server.url, body = "x", headers = headers })
          point "post"
        end
      end
      local agent = assert(ah.agent { store = STORE, id = "k",
        tools = { tool("post", { on_lost = "retry", handler = post() }),
          tool("told", { handler = post() }) },
        model = scripted { { calls = { call "post" } }, { calls = { call "told" } }, "The end." } })
      show(agent:run(not agent.unfinished and "Go." or nil))
    ]]).crash "post"
    local key = before[2]:match "^key (%x+)$"

    assert.same({ "POST " .. key, "PUT " .. key, "GET none", "POST mine" },
      { table.unpack(before, 3) })
    assert.same({ "key " .. key, "POST " .. key, "PUT " .. key, "GET none", "POST mine" },
      { table.unpack(lines, 1, 5) })
    assert.equal(1, count(lines, "POST none")) -- of the other tool
  end)

  it("asks a person, whose response may come later", function()
    local p = program [[
      local pay = tool("pay", { params = { sum = "integer" }, on_lost = "ask",
        handler = function(args) log("pay", args.sum); point "pay"; return "paid" end })
      local agent = assert(ah.agent { store = STORE, id = "k", tools = { pay },
        model = scripted { { calls = { call("pay", { sum = 3 }) } }, "The end." } })
      if os.getenv "FRONT" then
        agent:on_ask(function(ask) log("ask", ask.question); return { happened = false } end)
      end
      show(agent:run "Pay.")
    ]]
    local lines = p.crash "pay"
    assert.same({ "reply nil waiting" }, { table.unpack(lines, 1, 1) })
    local store = assert(ah.store(p.store))
    local asks = assert(store:asks())
    assert.equal(1, #asks)
    assert.matches("Has this call done its work?", asks[1].question, 1, true)
    assert(store:respond("k", asks[1].ask or asks[1].id, { happened = true, result = "was paid" }))
    store:close()
    lines = p.run()
    assert.same({ "request 2", "reply The end. nil", "result was paid" }, lines)

    p = program(read(p.script):sub(#PRELUDE + 1))
    lines = p.crash("pay", "FRONT=1")
    assert.matches("^ask The program ended while tool 'pay' was at work", lines[1])
    assert.same({ "pay 3", "request 2", "reply The end. nil", "result paid" },
      { table.unpack(lines, 2) })
  end)

  it("asks a person again when the handler that began anew is lost, too", function()
    local p = program [[
      local pay = tool("pay", { on_lost = "ask",
        handler = function() log "pay"; point "pay"; return "paid" end })
      show(assert(ah.agent { store = STORE, id = "k", tools = { pay },
        model = scripted { { calls = { call "pay" } }, "The end." } }):run "Pay.")
    ]]
    p.crash "pay"
    local store = assert(ah.store(p.store))
    assert(store:respond("k", "1", { happened = false }))
    assert.same({ "reply nil waiting" }, p.crash "pay")
    local asks = assert(store:asks())
    assert.same({ 1, "2" }, { #asks, asks[1].ask })
    assert(store:respond("k", "2", { happened = true, result = "was paid" }))
    store:close()
    assert.same({ "request 2", "reply The end. nil", "result was paid" }, p.run())
  end)

  it("is checked when the tool is made", function()
    for _, wrong in ipairs { "never", 7, {} } do
      local ok, err = pcall(ah.tool, { name = "x", description = "X.", on_lost = wrong,
        handler = print })
      assert.is_false(ok)
      assert.equal("prompt_validation", err.code)
    end
    local f = function() end
    local t = ah.tool { name = "x", description = "X.", on_lost = f, handler = print }
    assert.equal(f, t.on_lost)
    assert.equal("tell", ah.tool { name = "x", description = "X." }.on_lost)
  end)
end)

describe("ah.run with an id", function()
  it("is done once", function()
    local kept, asked = assert(ah.store { engine = "memory" }), 0
    local function run(text, id)
      return ah.run { store = kept, id = id or "r", text, output = { type = "object" },
        model = ah.scripted(function()
          asked = asked + 1
          return '{"n":1}'
        end) }
    end
    local first, again = assert(run "How many?"), assert(run "How many?")

    assert.equal(1, asked)
    assert.is_false(first.recorded)
    assert.is_true(again.recorded)
    for _, field in ipairs { "text", "value", "stop", "iterations", "rounds", "tool_calls", "usage",
      "messages" } do
      assert.same(first[field], again[field], field)
    end
    local ok, err = pcall(run, "How much?")
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.matches("'How many?'", err.message, 1, true)
    run("How much?", "other")
    assert.equal(2, asked)
  end)

  it("needs no model for a recorded reply", function()
    local kept = assert(ah.store { engine = "memory" })
    assert(ah.run { store = kept, id = "r", model = "demo/echo", "Hello" })
    local reply = assert(ah.run { store = kept, id = "r", model = "openai/none", api_key = "x",
      base_url = "http://127.0.0.1:1/", "Hello" })
    assert.equal("Hello", reply.text)
  end)

  it("is done once also where its conversation came from a file", function()
    local here = assert(ah.store { engine = "memory" })
    local there = assert(ah.store { engine = "memory" })
    local file = path ".json"
    assert(ah.run { store = here, id = "r", model = "demo/echo", "Hello" })
    local agent = assert(ah.agent { store = here, id = "r", model = "demo/echo" })
    assert(agent:save(file))
    assert(ah.load(file, { store = there, id = "r" })):close()
    local reply = assert(ah.run { store = there, id = "r", model = ah.scripted {}, "Hello" })
    assert.same({ "Hello", true }, { reply.text, reply.recorded })
  end)

  it("gives a final error again, and tries again after another one", function()
    local kept, asked = assert(ah.store { engine = "memory" }), 0
    local function run(id, fails)
      return ah.run { store = kept, id = id, "Hello", max_iterations = 1, retries = 0,
        tools = { ah.tool { name = "t", description = "T.", handler = function() end } },
        model = ah.scripted(function()
          asked = asked + 1
          if fails then
            return { fail = { status = 500 } }
          end
          return id == "final" and { calls = { { name = "t" } } } or "done"
        end) }
    end
    local _, first = run "final"
    local reply, again = run "final"
    assert.is_nil(reply)
    assert.equal("max_iterations_exceeded", first.code)
    assert.equal(first.message, again.message)
    assert.is_true(again.reply.recorded)
    assert.equal(1, asked)

    assert.equal("provider", select(2, run("later", true)).code)
    assert.equal("done", assert(run "later").text)
    assert.equal(2, #assert(run "later").messages)
    assert.equal(3, asked)
  end)

  it("goes on run by run in a script that is started again", function()
    local lines = program([[
      for i = 1, 3 do
        show(ah.run { store = STORE, id = "run " .. i, model = scripted { "answer " .. i }, "Go." })
        point("after " .. i)
      end
    ]]).crash "after 2"

    assert.same({ "reply answer 1 nil", "reply answer 2 nil", "request 1", "reply answer 3 nil" },
      lines)
  end)

  it("goes on with its unfinished run", function()
    local lines = program([[
      local die = tool("die", { handler = function() point "die" end, on_lost = "retry" })
      show(ah.run { store = STORE, id = "r", tools = { die }, "Go.",
        model = scripted { { calls = { call "die" } }, "The end." } })
    ]]).crash "die"

    assert.same({ "request 2", "reply The end. nil" }, { table.unpack(lines, 1, 2) })
  end)
end)

describe("what handlers change", function()
  local TEXT = [[
local Account = ah.entity { name = "Account", state = os.getenv "NAMED" and { "balance" } or nil,
  find = function(id) log("find", id); return { id = id, balance = 0 } end }
Account:tool { name = "deposit", description = "Puts money in.", params = { amount = "integer" },
  handler = function(self, args)
    self.balance = self.balance + args.amount
    return self.balance
  end }
local counter = { n = 0 }
function counter:snapshot() return { n = self.n } end
function counter:restore(state) self.n = state.n end
local tools = {
  tool("open", { handler = function(_, ctx)
    local c = ctx.resources:get "counter"
    c.n = c.n + 1
    return Account { id = "7", balance = 10 }
  end }),
  tool("die", { handler = function() point "die" end }),
  tool("count", { handler = function(_, ctx)
    local c = ctx.resources:get "counter"
    c.n = c.n + 1
    return c.n
  end }),
}
local deposit = call("account_7_deposit", { amount = 5 })
local agent = assert(ah.agent { store = STORE, id = "k", tools = tools, discover = true,
  resources = { counter = counter },
  model = scripted { { calls = { call "open" } }, { calls = { deposit } },
    { calls = { call "die" } }, { calls = { deposit, call "count" } }, "The end." },
  on = { warning = function(e) log("warning", e.message) end } })
show(agent:run "Go.")
]]

  it("is as before in entities and resources", function()
    local lines, before = program(TEXT).crash("die", "NAMED=1")

    assert.equal(1, count(lines, "find 7"))
    assert.equal("result 20", lines[#lines - 1])
    assert.equal("result 2", lines[#lines])
    for _, line in ipairs(before) do
      assert.not_matches("^warning", line)
    end
  end)

  it("is in files as in stores, with a store and without", function()
    local MEMORY, warnings, counter = { engine = "memory" }, {}, {}
    function counter:snapshot() return { n = self.n } end
    function counter:restore(state) self.n = state.n end
    -- Each has objects of its own, as a program that is started again.
    local function fields(t)
      local Account
      local made = setmetatable({ n = 0 }, { __index = counter })
      Account = ah.entity { name = "Account", state = { "balance" },
        find = function(id) return Account { id = id, balance = 0 } end }
      Account:tool { name = "deposit", description = "Puts money in.",
        params = { amount = "integer", fails = "boolean?" },
        handler = function(self, args)
          self.balance = self.balance + args.amount
          assert(not args.fails)
          return self.balance
        end }
      t.tools = {
        ah.tool { name = "open", description = "Opens.", handler = function()
          return Account { id = "7", balance = 10 }
        end },
        ah.tool { name = "count", description = "Counts.", handler = function(_, ctx)
          local c = ctx.resources:get "counter"
          c.n = c.n + 1
          return c.n
        end },
      }
      t.resources, t.discover, t.log = { counter = made }, true, function() end
      t.on = { warning = function(e) warnings[#warnings + 1] = e.message end }
      return t
    end
    local function calls(...)
      return { calls = { ... } }
    end
    local function deposit(amount, fails)
      return { name = "account_7_deposit", arguments = { amount = amount, fails = fails } }
    end
    local OPEN = { calls { name = "open" }, calls(deposit(5), { name = "count" }),
      calls(deposit(100, true)), "one" }
    local GO_ON = { calls(deposit(1), { name = "count" }), "two" }
    local function results(agent)
      local list = {}
      for _, m in ipairs(assert(agent:run "Go.").messages) do
        list[#list + 1] = m.role == "tool" and m.content or nil
      end
      agent:close()
      return list
    end

    for _, from in ipairs { false, true } do
      for _, to in ipairs { false, true } do
        local file = path ".json"
        local a = assert(ah.agent(fields { store = from and MEMORY, id = "a",
          model = ah.scripted(OPEN) }))
        assert(a:run "Go.")
        assert(a:save(file))
        a:close()
        -- a file that is saved again by an agent that has not used the objects is the same
        local b = assert(ah.load(file, fields { model = ah.scripted {} }))
        assert(b:save(file))
        b:close()
        local kept = to and assert(ah.store(MEMORY))
        local c = assert(ah.load(file, fields { store = kept, id = "c",
          model = ah.scripted(GO_ON) }))
        local list = results(c)
        assert.same({ "16", "2" }, { list[#list - 1], list[#list] })
        if to then
          list = results(assert(ah.agent(fields { store = kept, id = "c",
            model = ah.scripted(GO_ON) })))
          assert.same({ "17", "3" }, { list[#list - 1], list[#list] })
        end
      end
    end
    assert.same({}, warnings)
  end)

  it("is lost with the process where nothing names it, which a warning says once", function()
    local lines, before = program(TEXT).crash "die"
    local warnings = 0
    for _, line in ipairs(before) do
      warnings = warnings + (line:find("^warning .*'Account' is lost with the process") and 1 or 0)
    end

    assert.equal(1, warnings)
    assert.equal("result 5", lines[#lines - 1])
  end)

  it("is as before in the session", function()
    local lines = program([[
      local Step = ah.type { name = "Step", fields = { n = "integer" } }
      local session = ah.session()
      session:register(Step)
      local agent = assert(ah.agent { store = STORE, id = "k", session = session, tools = {
        tool("step", { params = Step, result = Step, handler = function(args) return args end }),
        tool("die", { handler = function() point "die" end }) },
        model = scripted { { calls = { call("step", { n = 1 }), call("step", { n = 2 }) } },
          { calls = { call "die" } }, { calls = { call("step", { n = 3 }) } }, "The end." } })
      log("before", #session[Step]:all())
      show(agent:run "Go.")
      for _, step in ipairs(session[Step]:all()) do log("step", step.n) end
    ]]).crash "die"

    assert.equal("before 2", lines[1])
    assert.same({ "step 1", "step 2", "step 3" }, { table.unpack(lines, #lines - 2) })
  end)
end)

describe("a store that fails", function()
  it("ends the run with `store`, and the agent runs no more", function()
    local p = program [[
      local big = tool("big", { handler = function() log "big"; return ("x"):rep(60000) end })
      local turns = {}
      for i = 1, 40 do turns[i] = { calls = { call "big" } } end
      local agent = assert(ah.agent { store = STORE, id = "k", tools = { big },
        model = scripted(turns), max_iterations = 100, loop_detector = false })
      local reply, err = agent:run "Go."
      log("run", tostring(reply), err.code)
      reply, err = agent:run "Again."
      log("again", tostring(reply), err.code)
      local ok
      ok, err = agent:close()
      log("close", tostring(ok), err and err.code)
    ]]
    local lines = p.run(nil, "ulimit -f 400;")

    assert.same({ "run nil store", "again nil store", "close nil store" },
      { table.unpack(lines, #lines - 2) })
    assert.is_true(count(lines, "big") > 0 and count(lines, "big") < 40)
  end)
end)
