--- Replay of handlers: they run again on what the records of a conversation hold, turn by turn, and
-- their results are compared with the recorded ones. Nothing outside is reached.
local ah = require "agenthost"
local command = require "support.command"
local random = require "support.random"
local server = require "support.server"
local testing = require "agenthost.testing"

local COUNT = 100 -- random conversations
local DAMAGED = 300
local MEMBERS = { '"segments":[', '"wire":{', '"head":{', '"base":', '"revision":', '"facts":[',
  '"entries":', '"step":"', '"call":', '"result":{', '"key":"', '[{"v":' }
local has = command.has
local function quiet() end

local Item = ah.type { name = "Item", fields = { n = "integer" } }

local function tool(name, handler, more)
  local fields = { name = name, description = name .. ".", handler = handler,
    params = { n = "integer = 0" } }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  return ah.tool(fields)
end

local function call(name, n)
  return { name = name, arguments = { n = n or 0 } }
end

--- Returns a store with a conversation "talk" with the tools. turns: lists of calls.
local function converse(tools, turns, more)
  local store = more and more.store or assert(ah.store { engine = "memory" })
  local answers = {}
  for i, calls in ipairs(turns) do
    answers[i] = { calls = calls }
  end
  answers[#answers + 1] = "done"
  local fields = { store = store, id = "talk", tools = tools, log = quiet, loop_detector = false,
    max_iterations = #answers + 1, model = ah.scripted(answers) }
  for key, value in pairs(more or {}) do
    fields[key] = value
  end
  local agent <close> = assert(ah.agent(fields))
  assert.equal("done", tostring(assert(agent:run "go")))
  return store
end

local function replayed(store, tools, session)
  return assert(ah._handlers(store, "talk", tools, session))
end

describe("replay of handlers", function()
  it("gives handlers their arguments and the results of their steps", function()
    local effects = 0
    local tools = {
      tool("plain", function(args) return { twice = args.n * 2 } end),
      tool("steps", function(args, ctx)
        local n = ctx:step("effect", function()
          effects = effects + 1
          return effects
        end)
        ah.sleep(0.001)
        local all = ah.all { function() return ah.random(1000000) end,
          function() return ctx:step("inner", function() return ah.random() end) end }
        return ("%d %d %s %s %s"):format(args.n, n, ah.now(), all[1], all[2])
      end, { durable = true }),
      tool("fails", function() return nil, "no luck" end),
      tool("raises", function() error "broken" end),
    }
    local store = converse(tools, { { call("plain", 1), call("steps", 2) },
      { call("steps", 3), call("fails"), call("raises"), call("unknown") } })
    assert.same({ turns = 2, calls = 5, equal = 5, not_recorded = 0, missing = {} },
      replayed(store, tools))
    assert.equal(2, effects)
    assert.equal(5, testing.replay(store, "talk", { tools = tools }).handlers.equal)
  end)

  it("finds the first result that is another one", function()
    local function tools(wrong)
      return { tool("count", function(args) return args.n == wrong and "wrong" or "right" end) }
    end
    local turns = {}
    for i = 1, 80 do -- beyond a checkpoint
      turns[i] = { call("count", i) }
    end
    local store = converse(tools(), turns)
    for _, wrong in ipairs { 1, 40, 80 } do
      local d = replayed(store, tools(wrong)).difference
      assert.same({ wrong, "count", "right", "wrong" }, { d.turn, d.tool, d.recorded, d.now })
    end
    assert.is_nil(replayed(store, tools(81)).difference)
    local ok, err = pcall(testing.replay, store, "talk", { tools = tools(2) })
    assert.is_false(ok)
    has(err, "turn 2 of 'talk': call call_")
    has(err, "of 'count' gave wrong, and recorded is right")
  end)

  it("shows a long result around the difference", function()
    local last = "a"
    local tools = { tool("long", function() return ("\u{e9}"):rep(1000) .. last end) }
    local store = converse(tools, { { call "long" } })
    last = "b"
    local d = replayed(store, tools).difference
    assert.matches("^%.%.%.[\x80-\xff]+a$", d.recorded)
    assert.matches("^%.%.%.[\x80-\xff]+b$", d.now)
    assert.is_truthy(utf8.len(d.recorded))
    assert.is_true(#d.now < 450)
  end)

  it("tells that a tool is gone, and that a handler has diverged", function()
    local function steps(name)
      return tool("steps", function(_, ctx) return ctx:step(name, function() return 1 end) end,
        { durable = true })
    end
    local store = converse({ steps "a" }, { { call "steps" } })
    local d = replayed(store, { steps "b" }).difference
    has(d.message, "the handler asks for the step step 'b', and recorded is the step step 'a'")
    assert.is_nil(d.now)
    d = replayed(store, { tool("steps", function() return 1 end, { durable = true }) }).difference
    has(d.message, "did not ask for the recorded step step 'a'")
    has(replayed(store, {}).difference.now, "'steps' is stale")
  end)

  it("tells what is not recorded, and does not do it", function()
    local s <close> = server.start { responses = { { body = "hit" } } }
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local files, memory = ah.filesystem { root = folder }, ah.filesystem { files = { a = "1" } }
    local named = ah.session { name = "stock" }
    named:register(Item)
    local n, child = 0, tool("child", function() return 1 end)
    local cases = {
      { "the step http", function() return ah.http { url = s.url }.body end },
      { "the step now", function() return ah.now() end },
      { "the step random", function() return ah.random() end },
      { "the step sleep", function() return ah.sleep(0.001) end },
      { "the step run", function() return ah.run { model = ah.scripted { "x" }, "y" }.text end },
      { "ah.process", function() return (ah.process { "true" }):wait().code end },
      { "a change of files", function() return files:write("new", "x") and "written" end },
      { "the step read", function() return files:exists "new" end },
      { "the step list", function() return #files:list() end },
      { "a look at files", function() return memory:read "a" end },
      { "a named session", function() return named[Item]:len() end },
      { "a call of a tool by code", function()
        return (ah.registry { child }:execute "child")
      end },
      { "a secret step", function(_, ctx)
        return ctx:step("s", function() return 1 end, { secret = true })
      end, { durable = true } },
    }
    for _, case in ipairs(cases) do
      local what, handler, more = table.unpack(case)
      local store = converse({ tool("one", function(...)
        n = n + 1
        return handler(...)
      end, more) }, { { call "one" } })
      local before, hits = n, #s:requests()
      os.remove(folder .. "/new")
      local caught = tool("one", function(...)
        local ok, err = pcall(handler, ...)
        n = n + (ok and 100 or 0)
        assert.equal("not_recorded", err.code)
        return "goes on"
      end, more)
      local got = replayed(store, { caught })
      assert.same({ 1, 0, 1 }, { got.calls, got.equal, got.not_recorded }, what)
      assert.equal(what, got.missing[1].what)
      assert.is_nil(got.difference, what)
      assert.same({ before, hits, false }, { n, #s:requests(), files:exists "new" }, what)
    end
    os.execute("rm -rf " .. folder)
  end)

  it("gives durable handlers the files that they read", function()
    local path = os.tmpname()
    local folder, name = path:match "^(.*)/([^/]*)$"
    local files = ah.filesystem { root = folder }
    assert(files:write(name, "one\ntwo\n"))
    local tools = { tool("one", function()
      local stat, none = files:stat(name), files:exists "no/such"
      return { files:read(name), files:read(name), #files:lines(name), stat.size, none,
        files:glob(name)[1] }
    end, { durable = true }) }
    local store = converse(tools, { { call "one" } })
    os.remove(path)
    assert.equal(1, replayed(store, tools).equal)
  end)

  it("shows handlers the session as it was", function()
    local function agent(session)
      return { tool("add", function(args)
        session:dispatch(Item { n = args.n })
        local sum = 0
        for _, item in ipairs(session[Item]:all()) do
          sum = sum * 10 + item.n
        end
        return sum
      end), tool("see", function() return session[Item]:len() end, { parallel = true }) }
    end
    local function new_session()
      local session = ah.session()
      session:register(Item)
      return session
    end
    local session = new_session()
    local store = converse(agent(session), { { call("add", 1), call("add", 2) },
      { call("add", 3), call "see", call "see", call("add", 4) }, { call "see" } },
      { session = session })
    session = new_session()
    local again <close> = assert(ah.agent { session = session, tools = agent(session),
      model = ah.scripted {} })
    local got = replayed(store, again, session)
    assert.same({ 7, 7 }, { got.calls, got.equal }, ah.json.encode(got))
  end)

  it("compares no call behind one whose changes are not recorded", function()
    local function tools(session)
      return { tool("add", function()
        local n = ah.now() > 0 and 1
        session:dispatch(Item { n = n })
        return n
      end), tool("see", function() return session[Item]:len() end) }
    end
    local session = ah.session()
    session:register(Item)
    local store = converse(tools(session), { { call "see", call "add", call "see" },
      { call "see" } }, { session = session })
    session = ah.session()
    session:register(Item)
    local again <close> = assert(ah.agent { session = session, tools = tools(session),
      model = ah.scripted {} })
    local got = replayed(store, again, session)
    assert.same({ 4, 2, 2 }, { got.calls, got.equal, got.not_recorded })
    has(got.missing[2].what, "what call call_")
  end)

  it("uses the arguments that an approval has changed", function()
    local tools = { tool("pay", function(args) return "paid " .. args.n end) }
    local store = converse(tools, { { call("pay", 1) } }, {
      policies = { function(asked) return asked.name == "pay" and "ask" or nil end },
      approve = function() return true, { n = 5 } end })
    local record = store:records("talk", { kinds = { "settled" } })()
    assert.equal("paid 5", record.said.result.content)
    local got = replayed(store, tools)
    assert.same({ 1, 1 }, { got.calls, got.equal }, ah.json.encode(got))
  end)

  it("gives handlers the recorded responses to their asks", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local tools = { tool("ask", function(_, ctx)
      local n = ctx:ask { question = "How many?", schema = { type = "integer" } }
      return n + assert(ctx:ask { question = "How many?", schema = { type = "integer" } })
    end, { durable = true }) }
    local agent <close> = assert(ah.agent { store = store, id = "talk", tools = tools, log = quiet,
      model = ah.scripted { { calls = { call "ask" } }, "done" } })
    agent:run "go"
    for n = 1, 2 do
      assert(store:respond("talk", store:asks()[1].ask, n))
      agent:run()
    end
    assert.equal(0, #store:asks())
    assert.equal(1, replayed(store, tools).equal)
  end)

  it("leaves the conversation as it is, and asks no model", function()
    local tools = { tool("one", function() return 1 end) }
    local store = converse(tools, { { call "one" } })
    local function count()
      local n = 0
      for _ in store:records "talk" do
        n = n + 1
      end
      return n
    end
    local before = count()
    replayed(store, tools)
    assert.equal(before, count())
    assert.equal(1, #store:conversations())
  end)

  it("replays requests and handlers of rewinds, of forks, and of exports", function()
    local store, n = assert(ah.store { engine = "memory" }), 0
    local tools = { tool("one", function(_, ctx)
      return ctx:step("s", function() return ah.random() end)
    end, { durable = true }) }
    local agent = assert(ah.agent { store = store, id = "talk", tools = tools, log = quiet,
      model = ah.scripted { answer = function()
        n = n + 1
        return n % 2 == 1 and { calls = { call "one" } } or "done"
      end } })
    agent:run "first"
    local mark = agent:mark()
    agent:run "second"
    assert(agent:rewind(mark))
    agent:run "third"
    local fork <close> = assert(agent:fork { at = 3, id = "fork" })
    fork:run "fourth"
    local got = testing.replay(store, "talk", { tools = tools })
    assert.same({ 6, 3, 3 }, { got.requests, got.handlers.calls, got.handlers.equal })
    got = testing.replay(store, "fork", { tools = tools })
    assert.same({ 2, 1 }, { got.requests, got.handlers.equal })

    local other <close> = assert(ah.store { engine = "memory" })
    assert(other:import(store:export("talk", { kept = true }), { id = "kept" }))
    assert(other:import(store:export "talk", { id = "said" }))
    assert.equal(3, testing.replay(other, "kept", { tools = tools }).handlers.equal)
    got = testing.replay(other, "said", { tools = tools }).handlers
    assert.same({ 3, 0, "the step 's'" }, { got.not_recorded, got.equal, got.missing[1].what })
  end)

  it("ends with an outcome or an error in words for damaged records", function()
    local path, wrong, other = command.folder() .. "/work.db", 0, 0
    local tools = { tool("one", function(args, ctx)
      return ctx:step("s", function() return args.n end)
    end, { durable = true }) }
    converse(tools, { { call("one", 1), call("one", 2) }, { call("one", 3) } },
      { store = assert(ah.store { path = path, bytes = true }) }):close()
    local whole = command.contents(path)
    for seed = 1, DAMAGED do
      local pick = random(seed)
      local member = MEMBERS[pick(#MEMBERS)]
      local at = assert(whole:find(member, 1, true), member)
      for _ = 1, pick(8) do
        at = whole:find(member, at + 1, true) or at
      end
      at = at + pick(#member + 40)
      local put = ('{}[]",:0123456789-abcdefg\\\0\xff'):sub(pick(33))
      local f <close> = assert(io.open(path, "wb"))
      f:write(whole:sub(1, at - 1), put:sub(1, 1), whole:sub(at + #put:sub(1, 1)))
      f:close()
      local store <close> = assert(ah.store(path))
      for _, replay in ipairs { function() return store:replay "talk" end,
        function() return ah._handlers(store, "talk", tools) end } do
        local got, err = replay()
        if not got then
          wrong = wrong + 1
          assert.equal("store", err.code, err.message)
          local told = err.message:find "record " or err.message:find "it is damaged"
          assert.is_truthy(told, err.message)
        elseif got.difference or got.not_recorded > 0 then
          other = other + 1
        end
      end
    end
    command.tidy()
    assert.is_true(wrong > DAMAGED // 5 and other > DAMAGED // 20, wrong .. " " .. other)
  end)

  it("fails for a conversation that is not there, and for wrong options", function()
    local store <close> = assert(ah.store { engine = "memory" })
    local got, err = ah._handlers(store, "none", {})
    assert.same({ nil, "usage" }, { got, err.code })
    local _, wrong = pcall(testing.replay, store, "x", { tool = 1 })
    has(tostring(wrong), "did you mean 'tools'")
  end)

  it("finds all calls of random conversations equal", function()
    local calls = 0
    for seed = 1, COUNT do
      local pick = random(seed)
      local function tools(session)
        return { tool("add", function(args)
          session:dispatch(Item { n = args.n })
          return session[Item]:len()
        end), tool("steps", function(args, ctx)
          local list = {}
          for i = 1, args.n % 4 do
            list[i] = ctx:step("s" .. i, function() return ah.random(1000) end)
          end
          list[#list + 1] = session[Item]:len()
          return list
        end, { durable = true, parallel = true }), tool("odd", function(args)
          return args.n % 2 == 0 and args.n or nil, "even"
        end, { parallel = true }) }
      end
      local turns = {}
      for i = 1, pick(6) do
        turns[i] = {}
        for k = 1, pick(4) do
          turns[i][k] = call(({ "add", "steps", "odd" })[pick(3)], pick(9))
        end
      end
      local session = ah.session()
      session:register(Item)
      local store = converse(tools(session), turns, { session = session })
      session = ah.session()
      session:register(Item)
      local again <close> = assert(ah.agent { session = session, tools = tools(session),
        loop_detector = false, model = ah.scripted {} })
      local got = replayed(store, again, session)
      assert.equal(got.calls, got.equal, seed .. " " .. ah.json.encode(got))
      calls = calls + got.calls
    end
    assert.is_true(calls > 3 * COUNT, calls)
  end)

  it("has in the store of a turn what the turn has, and not the conversation before it", function()
    local turns = {}
    for i = 1, 30 do
      turns[i] = { call("plain", i) }
    end
    local tools = { tool("plain", function(args) return args.n end) }
    local store = converse(tools, turns)
    local sizes, n = {}, 0
    local list <close> = ah._turns(store, "talk")
    for copy in list do
      n = n + 1
      sizes[n] = 0
      for record in assert(copy:records("talk", { kept = true })) do
        sizes[n] = sizes[n] + #ah.json.encode(record)
      end
      copy:close()
    end
    assert.equal(30, n)
    assert.is_true(sizes[30] < sizes[2] + 100, ("%d, %d"):format(sizes[2], sizes[30]))
    assert.equal(30, replayed(store, tools).equal)
  end)
end)

describe("agenthost replay --tools", function()
  local SCRIPT = [[
local ah = require "agenthost"
assert(os.time() > 0 and os.date "%%Y" and math.random())
local function tool(name, handler)
  return ah.tool { name = name, description = name, handler = handler }
end
local agent = ah.agent { id = "talk", name = "clerk", model = ah.scripted {
  { calls = { { name = "one" }, { name = "clock" }, { name = "home" }, { name = "touch" } } },
  "done" }, tools = {
  tool("one", function() return %s end),
  tool("clock", function() return os.time() // 100000 .. os.date(" %%Y") end),
  tool("home", function() return os.getenv "HOME" and 1 end),
  tool("touch", function() return os.execute "touch touched" and 1 end) } }
print(agent:run "go")
]]
  local folder
  before_each(function()
    folder = command.folder()
  end)
  after_each(command.tidy)

  local function write(name, text)
    command.write(folder .. "/" .. name, text)
  end

  local function run(words)
    return command.shell(('cd %s && AGENTHOST_STORE=work.db "$A" %s'):format(folder, words))
  end

  it("runs the script of the conversation, and ends with 1 for another result", function()
    write("work.lua", SCRIPT:format "'right'")
    local got = run "work.lua"
    assert.equal("done\n", got.out, got.err)
    os.remove(folder .. "/touched")
    got = run "replay talk --tools"
    assert.equal(0, got.code, got.err)
    assert.matches("^2 of 2 requests are equal\n2 of 4 calls are equal, 2 not_recorded\n"
      .. "turn 1, call %S+ of home: not_recorded: os.getenv 'HOME'\n"
      .. "turn 1, call %S+ of touch: not_recorded: os.execute\n$", got.out)
    assert.is_nil(io.open(folder .. "/touched"))

    write("work.lua", SCRIPT:format "'wrong'")
    got = run "replay talk --tools"
    assert.equal(1, got.code)
    assert.matches("turn 1, call %S+ of one %(record %d+%) has another result\n"
      .. "  recorded: right\n  now: wrong\n$", got.out)
    got = command.shell(('"$A" replay talk --tools --json --store %s/work.db'):format(folder))
    assert.equal(1, got.code)
    assert.equal("wrong", ah.json.decode(got.out).handlers.difference.now)
  end)

  it("takes another script, up to its first ah.run", function()
    write("work.lua", SCRIPT:format "'right'")
    run "work.lua"
    write("run.lua", [[
      local ah = require "agenthost"
      print "said"
      ah.run { model = "openai/gpt-4o", "hi", tools = { ah.tool { name = "one",
        description = "one", handler = function() return "wrong" end } } }
      os.execute "touch touched"]])
    os.remove(folder .. "/touched")
    local got = run "replay talk --tools run.lua"
    assert.equal(1, got.code, got.err)
    has(got.out, "recorded: right\n  now: wrong\n")
    has(got.err, "said")
    assert.is_nil(io.open(folder .. "/touched"))
  end)

  it("says what is wrong with the words and the script", function()
    write("work.lua", SCRIPT:format "1")
    run "work.lua"
    write("empty.lua", "local x")
    write("broken.lua", "error 'broken'")
    for words, said in pairs {
      ["talk --tools empty.lua"] = "made no agent and began no run",
      ["talk --tools broken.lua"] = "broken.lua:1: broken",
      ["talk --tools none.lua"] = "cannot open 'none.lua'",
      ["talk work.lua"] = "a script is only for --tools",
      ["talc --tools"] = "there is no conversation 'talc'",
    } do
      local got = run("replay " .. words)
      assert.equal(2, got.code, words)
      has(got.err, said)
    end
  end)
end)
