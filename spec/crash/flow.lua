-- One flow of an agent with a store, which may be killed at any point and started again. Run by the
-- command, from spec/crash (support/crashes.lua):
--
--   agenthost spec/crash/flow.lua FOLDER FLOW
--
-- The flow's handlers write to sinks in FOLDER: files that are outside of every transaction. At the
-- end it prints the conversation, the session and more as JSON. KILL_AT=n in the environment kills
-- the process around the n-th line written to a sink: before it for an odd n, after it for an even
-- one. CHANGED=definition or CHANGED=code changes the tool of the flow `approval`.
local ah = require "agenthost"
local folder, name = ...

local written, kill_at = 0, tonumber(os.getenv "KILL_AT")
local function die_at(point)
  written = written + 1
  if written == kill_at then
    os.execute "kill -9 $PPID"
    error("the process outlived its kill at " .. point)
  end
end

-- Appends a line to a sink.
local function write(sink, line)
  die_at "before"
  local f <close> = assert(io.open(folder .. "/" .. sink, "a"))
  f:write(line, "\n")
  f:close()
  die_at "after"
end

-- True if the sink has this line.
local function has(sink, line)
  local f <close> = io.open(folder .. "/" .. sink)
  for one in f and f:lines() or function() end do
    if one == line then
      return true
    end
  end
  return false
end

local Count = ah.type { name = "Count", fields = { n = "integer" } }
local session = ah.session()
session:register(Count)

local function tool(fields)
  fields.description = fields.description or "Does something."
  return ah.tool(fields)
end

-- A tool that counts, and writes to the sink if `line(ctx)` gives a line.
local function counter(tool_name, fields, line, times)
  fields.name, fields.params = tool_name, { n = "integer" }
  fields.handler = function(args, ctx)
    session:dispatch(Count { n = args.n * (times or 1) })
    if fields.wait then
      ah.sleep(0.01 * args.n)
    end
    if line then
      write(line(ctx))
    end
    return args.n * (times or 1)
  end
  local wait = fields.wait
  fields.wait = nil
  local made = tool(fields)
  fields.wait = wait
  return made
end

local function told(ctx) return "tell", ctx.idempotency_key end
local function keyed(ctx) return "keyed", ctx.idempotency_key end
local function retried(ctx) return "retry", ctx.idempotency_key end

local add = counter("add", {})
local tell = counter("tell", {}, told)
local retry = counter("retry", { on_lost = "retry" }, retried)
local pay = counter("pay", { on_lost = "retry" }, keyed)
local slow = counter("slow", { parallel = true, wait = true })
local quick = counter("quick", { parallel = true })
local fails = tool { name = "fails", handler = function()
  session:dispatch(Count { n = 100 })
  return nil, "not today"
end }

local function call(tool_name, n)
  return { name = tool_name, arguments = type(n) == "table" and n or n and { n = n } or {} }
end

-- Each returns the fields of its agent, with `turns` of its model and `questions`. `once`: it is
-- run by ah.run, twice. `play(agent)` is called after the questions, and may return another agent
-- for the conversation.
local flows = {}

function flows.plain()
  return { turns = { "Hello." }, questions = { "Go." } }
end

function flows.calls()
  return { tools = { add, tell, fails }, questions = { "Go." }, turns = {
    { calls = { call("add", 1), call("tell", 2), call "fails" } },
    { calls = { call("add", 2) } }, "Done." } }
end

function flows.turns()
  return { tools = { add }, questions = { "First.", "Second." }, turns = {
    { calls = { call("add", 1) } }, "One.", { calls = { call("add", 2) } }, "Two." } }
end

-- The second question is taken back, once, and asked again.
function flows.rewound()
  local flow = flows.turns()
  function flow.play(agent)
    if agent:mark() == 4 then
      assert(agent:rewind(2))
      assert(agent:run "Second.")
    end
    return agent
  end
  return flow
end

function flows.parallel()
  return { tools = { slow, quick, retry, pay }, questions = { "Go." }, turns = {
    { calls = { call("slow", 2), call("quick", 1), call("slow", 1), call("retry", 4) } },
    { calls = { call("pay", 8), call("quick", 16) } }, "Done." } }
end

function flows.files(once)
  local files = ah.filesystem { root = folder .. "/files" }
  local save = tool { name = "save", params = { text = "string" },
    handler = function(args)
      if once and files:read "f2.txt" == args.text then
        return nil, "it is written already"
      end
      for i = 1, 3 do
        assert(files:write(("f%d.txt"):format(i), args.text))
      end
      return "saved"
    end }
  return { tools = { save }, questions = { "Go." }, turns = {
    { calls = { call("save", { text = "new" }) } },
    { calls = { call("save", { text = "newer" }) } }, "Done." } }
end

-- The same with files, which go back, too: the second question finds them so.
function flows.rewound_files()
  local flow = flows.files(true)
  flow.questions = { "First.", "Second." }
  flow.turns = { flow.turns[1], "One.", flow.turns[2], "Two." }
  function flow.play(agent)
    if agent:mark() == 4 then
      assert(agent:rewind(2, { files = true }))
      assert(agent:run "Second.")
    end
    return agent
  end
  return flow
end

-- Tools of the flows below are never lost: their handlers begin again.
local function again(fields)
  fields.on_lost = "retry"
  return tool(fields)
end

-- A call that changes files and session, and fails, before one that succeeds.
function flows.failing()
  local files = ah.filesystem { root = folder .. "/files" }
  local change = again { name = "change",
    params = { text = "string", n = "integer", ok = "boolean" },
    handler = function(args)
      session:dispatch(Count { n = args.n })
      for i = 1, 3 do
        assert(files:write(("f%d.txt"):format(i), args.text))
      end
      return args.ok and "changed" or nil, "not today"
    end }
  return { tools = { change }, questions = { "Go." }, turns = {
    { calls = { call("change", { text = "wrong", n = 100, ok = false }),
      call("change", { text = "right", n = 1, ok = true }) } }, "Done." } }
end

-- A call that changes files and an entity; later ones see both.
function flows.entity()
  local files = ah.filesystem { root = folder .. "/files" }
  local Account = ah.entity { name = "Account", id = "name", state = { "balance" } }
  local account = Account { name = "a", balance = 0 }
  local both = again { name = "both", params = { n = "integer" },
    handler = function(args, ctx)
      ctx:enlist(account)
      account.balance = account.balance + args.n
      for i = 1, 3 do
        assert(files:write(("f%d.txt"):format(i), tostring(account.balance)))
      end
      return account.balance
    end }
  local only = again { name = "only", params = { n = "integer" },
    handler = function(args, ctx)
      ctx:enlist(account)
      account.balance = account.balance + args.n
      return account.balance
    end }
  return { tools = { both, only }, questions = { "Go." }, turns = {
    { calls = { call("both", 1), call("only", 2) } },
    { calls = { call("only", 4), call("both", 8) } }, "Done." } }
end

-- Two calls of one turn with sets of changes, the first in two folders. The second edits what the
-- first has written, and removes a file.
function flows.sets()
  assert(os.execute(("mkdir -p '%s/other'"):format(folder)))
  local files, other = ah.filesystem { root = folder .. "/files" },
    ah.filesystem { root = folder .. "/other" }
  local first = again { name = "first", handler = function()
    for i = 1, 3 do
      assert(files:write(("f%d.txt"):format(i), "one"))
    end
    assert(other:write("new/a.txt", "a"))
    assert(other:write("new/b.txt", "b"))
    return "first"
  end }
  local second = again { name = "second", handler = function()
    for i = 1, 3 do
      assert(files:edit(("f%d.txt"):format(i), "one", "two"))
    end
    assert(other:delete "new/b.txt")
    assert(other:append("new/a.txt", "a"))
    return "second"
  end }
  return { tools = { first, second }, questions = { "Go." },
    turns = { { calls = { call "first", call "second" } }, "Done." } }
end

-- A tool that a handler adds, with a note; and a call of it.
function flows.grown()
  local files = ah.filesystem { root = folder .. "/files" }
  local extra = again { name = "extra", handler = function() return "extra" end }
  local grow = again { name = "grow", handler = function(_, ctx)
    ctx:add_tools(extra)
    ctx:note "There is another tool."
    for i = 1, 3 do
      assert(files:write(("f%d.txt"):format(i), "grown"))
    end
    return "grown"
  end }
  local count = counter("count", { on_lost = "retry" })
  local reserve = { name = "reserve", later = { extra }, after = function() end }
  return { tools = { grow, count }, hint = false, strategies = { reserve }, questions = { "Go." },
    turns = { { calls = { call "grow", call("count", 1) } }, { calls = { call "extra" } },
      "Done." } }
end

-- Notes of calls, with and without files.
function flows.notes()
  local files = ah.filesystem { root = folder .. "/files" }
  local note = again { name = "note", params = { text = "string", files = "boolean" },
    handler = function(args, ctx)
      ctx:note(args.text)
      for i = 1, args.files and 3 or 0 do
        assert(files:append(("f%d.txt"):format(i), args.text))
      end
      return "noted"
    end }
  return { tools = { note }, questions = { "Go." }, turns = {
    { calls = { call("note", { text = "a", files = true }),
      call("note", { text = "b", files = false }) } },
    { calls = { call("note", { text = "c", files = true }) } }, "Done." } }
end

function flows.nested()
  local outer = tool { name = "outer", handler = function()
    assert(ah.run { model = ah.scripted { { calls = { call("add", 7) } }, "inner" },
      tools = { add }, session = session, "inside" })
    return 7
  end }
  return { tools = { outer }, questions = { "Go." },
    turns = { { calls = { call "outer" } }, "Done." } }
end

-- An agent as a tool, whose own tools count in a session of its own.
function flows.as_tool()
  local inner = ah.agent { name = "inner", tools = { pay }, session = session, model = ah.scripted {
    rules = { { when = { result = "3" }, text = "3" }, { calls = { call("pay", 3) } } } } }
  local ask_inner = inner:as_tool { description = "Asks another agent." }
  return { tools = { ask_inner }, questions = { "Go." },
    turns = { { calls = { call("inner", { request = "Count." }) } }, "Done." } }
end

-- Each call waits for an approval, which another process gives.
function flows.approval()
  local changed = os.getenv "CHANGED"
  local buy = tool { name = "buy", params = { n = "integer" }, on_lost = "retry",
    description = changed == "definition" and "Buys more." or "Buys.",
    handler = function(args, ctx)
      session:dispatch(Count { n = args.n })
      write("keyed", ctx.idempotency_key)
      if changed == "code" then
        write("code", "changed")
      end
      return args.n
    end }
  return { tools = { add, buy, tell }, questions = { "Go." },
    policies = { function(asked)
      if asked.name ~= "add" then
        return "ask", "it costs " .. asked.arguments.n
      end
    end },
    turns = { { calls = { call("add", 1), call("buy", 5), call("add", 2) } },
      { calls = { call("buy", 13) } }, -- refused
      { calls = { call("tell", 20) } }, "Done." } }
end

-- Two approvals of one turn, and one that an `approve` of the script gives.
function flows.approvals()
  local list = flows.approval()
  list.tools = { tell, counter("retry", { on_lost = "retry", parallel = true }, retried),
    counter("pay", { on_lost = "retry", parallel = true }, keyed) }
  list.approve = function(asked)
    if asked.name == "tell" then
      return true
    end
  end
  list.turns = { { calls = { call("pay", 1), call("retry", 2), call("tell", 4) } }, "Done." }
  return list
end

-- The changes of each call wait for an approval: of files, session, an entity. 13 is refused.
function flows.changes()
  local files = ah.filesystem { root = folder .. "/files" }
  local Account = ah.entity { name = "Account", id = "name", state = { "balance" } }
  local account = Account { name = "a", balance = 10 }
  local change = tool { name = "change", params = { n = "integer" }, on_lost = "retry",
    handler = function(args, ctx)
      session:dispatch(Count { n = args.n })
      ctx:enlist(account)
      account.balance = account.balance + args.n
      for i = 1, 3 do
        assert(files:append(("f%d.txt"):format(i), tostring(args.n)))
      end
      return args.n
    end }
  return { tools = { change, add }, questions = { "Go." },
    policies = { { after = function(asked)
      if asked.name == "change" then
        return "ask", "it changes " .. #asked:changes()
      end
    end } },
    turns = { { calls = { call("add", 1), call("change", 2) } },
      { calls = { call("change", 13) } }, { calls = { call("change", 4) } }, "Done." } }
end

-- Agents that hand the conversation over to each other. Each says its name, and has a tool of the
-- same specification with another handler.
function flows.handoff()
  local front
  local function count(times)
    return counter("count", { on_lost = "retry" }, nil, times)
  end
  local function turns(who)
    return { resumes = true,
      { calls = { call("count", 1), call "handoff_to_back", call("add", 2) } },
      { text = who, calls = { call("count", 2), call("more", 4) } },
      who .. " has answered.",
      { text = who, calls = { call("more", 8), call "give_back" } },
      { text = who, calls = { call("count", 16), call("add", 32) } },
      who .. " has ended." }
  end
  local more = counter("more", { on_lost = "retry" })
  local back = ah.agent { name = "back", system = "You are back.", options = { temperature = 0.5 },
    model = ah.scripted(turns "back"),
    tools = { count(100), more, ah.handoff { to = function() return front end,
      name = "give_back", when = "It is done." } } }
  return { name = "front", system = "You are front.", options = { temperature = 0.1 },
    take = function(agent) front = agent end,
    questions = { "First.", "Second." }, turns = turns "front",
    tools = { count(1), counter("add", { on_lost = "retry" }),
      ah.handoff { to = back, when = "There is more." } } }
end

-- A handler asks, and a function of the script responds.
function flows.front()
  local which = tool { name = "which", on_lost = "retry", handler = function(_, ctx)
    local n = assert(ctx:ask { question = "How many?", schema = { type = "integer" } })
    session:dispatch(Count { n = n })
    return n
  end }
  return { tools = { which }, questions = { "Go." }, asks = function() return 6 end,
    turns = { { calls = { call "which", call "which" } }, "Done." } }
end

-- A handler asks, and nothing responds: it gets an error.
function flows.nobody()
  local which = tool { name = "which", on_lost = "retry", handler = function(_, ctx)
    local n, err = ctx:ask { question = "How many?", schema = { type = "integer" } }
    return tostring(n) .. " " .. err.code
  end }
  return { tools = { which }, questions = { "Go." },
    turns = { { calls = { call "which" } }, "Done." } }
end

-- A request that fails for a time; the sink `failed` says how often it has.
local function failing(times, turn, status)
  return function()
    for i = 1, times do
      if not has("failed", turn .. " " .. i) then
        write("failed", turn .. " " .. i)
        return { fail = { message = "busy", status = status or 429, retryable = true,
          retry_after = 0.001 } }
      end
    end
    return nil
  end
end

function flows.retries()
  local first, second = failing(1, "one"), failing(2, "two")
  return { tools = { add }, questions = { "Go." }, retries = 5, turns = {
    function() return first() or { calls = { call("add", 1) } } end,
    function() return second() or "Done." end } }
end

function flows.fallback()
  return { tools = { retry, pay }, questions = { "Count 2." }, retries = 0, log = function() end,
    turns = { { calls = { call("retry", 1) } }, { fail = { message = "busy", status = 503 } } },
    fallback = { "demo/tools" } }
end

-- Models of one name. The first two fail until the third one has been asked, and would then say
-- something else.
function flows.fallbacks()
  local function model(who)
    local function turn(answer)
      return function()
        if who == "third" then
          ah.sleep(0.1) -- the records are appended before the model is asked
          write("asked", who)
        elseif not has("asked", "third") then
          return { fail = { message = "busy", status = 503 } }
        end
        return answer
      end
    end
    return { resumes = true, turn { text = who, calls = { call("retry", 1) } }, turn(who .. ".") }
  end
  return { tools = { retry }, questions = { "Go." }, retries = 0, log = function() end,
    turns = model "first",
    fallback = { ah.scripted(model "second"), ah.scripted(model "third") } }
end

function flows.streams()
  return { tools = { add }, questions = { "Go." }, on = { content = function() end }, turns = {
    { text = { "I ", "add ", "it." }, calls = { call("add", 1) }, delay = 0.001 },
    { text = { "Do", "ne", "." }, delay = 0.001 } } }
end

-- A message and a note come in during the run.
function flows.send()
  local agent
  local say = tool { name = "say", on_lost = "retry", handler = function(_, ctx)
    agent:send "And this."
    ctx:note "A note."
    return "said"
  end }
  return { tools = { say, add }, questions = { "Go." }, take = function(a) agent = a end,
    turns = { { calls = { call "say", call("add", 1) } }, { calls = { call("add", 2) } },
      "Done." } }
end

-- A handler brings a tool.
function flows.tools()
  local more = counter("more", {})
  local bring = tool { name = "bring", on_lost = "retry", handler = function(_, ctx)
    ctx:add_tools(more)
    ctx:note "There is more."
    return "brought"
  end }
  return { tools = { bring }, questions = { "Go." }, also = { more },
    turns = { { calls = { call "bring" } }, { calls = { call("more", 3) } }, "Done." } }
end

function flows.background()
  local film = counter("film", { background = true, wait = true, on_lost = "retry" })
  return { tools = { film, add }, questions = { "Go." },
    play = function(agent)
      while #agent:background() > 0 do
        assert(agent:wait(5))
      end
    end,
    turns = { { calls = { call("film", 3), call("add", 1) } }, "Begun.", "It is done.",
      "So it is." } }
end

function flows.entities()
  local Account = ah.entity { name = "Account", state = { "balance" },
    find = function(id) return { id = id, balance = 10 } end }
  Account:tool { name = "deposit", description = "Puts money in.", params = { n = "integer" },
    handler = function(self, args)
      self.balance = self.balance + args.n
      session:dispatch(Count { n = args.n })
      return args.n
    end }
  Account:tool { name = "balance", description = "Says what is there.",
    handler = function(self) return "balance " .. self.balance end }
  local open = tool { name = "open", on_lost = "retry",
    handler = function() return Account { id = "7", balance = 10 } end }
  local deposit = call("account_7_deposit", 5)
  return { tools = { open }, discover = true, questions = { "Go." }, turns = {
    { calls = { call "open" } }, { calls = { deposit } }, { calls = { deposit, deposit } },
    { calls = { call "account_7_balance" } }, "Done." } }
end

-- The effect has happened if the sink says so.
function flows.found()
  local order = tool { name = "order", params = { n = "integer" },
    on_lost = function(key, args)
      if has("keyed", key) then
        return true, args.n
      end
      return false
    end,
    handler = function(args, ctx)
      write("keyed", ctx.idempotency_key)
      return args.n
    end }
  return { tools = { order }, exact = true, questions = { "Go." },
    turns = { { calls = { call("order", 1), call("order", 2) } }, "Done." } }
end

-- A person, looking at the sink, says whether the effect has happened.
function flows.lost_ask()
  local order = tool { name = "order", params = { n = "integer" }, on_lost = "ask",
    handler = function(args, ctx)
      write("tell", ctx.idempotency_key)
      return args.n
    end }
  return { tools = { order }, questions = { "Go." },
    turns = { { calls = { call("order", 1) } }, "Done." } }
end

-- Steps, tasks and a run in a durable handler.
function flows.durable()
  local work = tool { name = "work", durable = true, params = { n = "integer" },
    handler = function(args, ctx)
      local begun = ah.now()
      session:dispatch(Count { n = args.n })
      ctx:step("pay", function(key) write("keyed", key) end, { on_lost = "retry" })
      ah.sleep(0.005)
      ah.map({ 1, 2, 3 }, function(i)
        return ctx:step("part", function(key) write("retry", key) return i end,
          { on_lost = "retry" })
      end)
      local inner = ah.run { model = ah.scripted { { calls = { call("add", 2) } }, "inner" },
        tools = { add }, session = session, "inside" }
      if not inner then
        return nil, "the run was lost"
      end
      assert(ah.now() >= begun and ah.random())
      return args.n + 2
    end }
  return { tools = { work }, questions = { "Go." },
    turns = { { calls = { call("work", 1), call("work", 5) } }, "Done." } }
end

-- A lost step is an error for the handler, which does not do it again.
function flows.durable_tell()
  local work = tool { name = "work", durable = true, handler = function(_, ctx)
    local ok, err = pcall(ctx.step, ctx, "tell", function(key) write("tell", key) end)
    local found = ctx:step("found", function(key) write("keyed", key) return true end,
      { on_lost = function(key) return has("keyed", key), true end })
    assert(found and (ok or err.lost))
    return ok and "done" or nil, "the step was lost"
  end }
  return { tools = { work }, questions = { "Go." },
    turns = { { calls = { call "work" } }, "Done." } }
end

-- A durable handler reads files of the machine, and changes them.
function flows.durable_files()
  local files = ah.filesystem { root = folder .. "/files" }
  local work = tool { name = "work", durable = true, params = { n = "integer" },
    handler = function(args, ctx)
      local log, err = files:read "log.txt"
      assert(log or err.reason == "not_found", err)
      log = log or ""
      local before = #assert(files:list())
      assert(files:append("log.txt", args.n .. " "))
      ctx:step("pay", function(key) write("keyed", key) end, { on_lost = "retry" })
      assert(files:read "log.txt" == log .. args.n .. " ")
      for i = 1, args.n do
        assert(files:write(("f%d.txt"):format(i), log))
      end
      assert(files:append("count.txt", before .. " "))
      session:dispatch(Count { n = args.n })
      return args.n
    end }
  return { tools = { work }, questions = { "Go." },
    turns = { { calls = { call("work", 1), call("work", 2) } }, { calls = { call("work", 4) } },
      "Done." } }
end

-- A durable handler asks another process, with an effect before and one after it.
function flows.durable_ask()
  local confirm = tool { name = "confirm", durable = true, params = { n = "integer" },
    handler = function(_, ctx)
      ctx:step("before", function(key) write("keyed", key) end, { on_lost = "retry" })
      local n = assert(ctx:ask { question = "How many?", schema = { type = "integer" } })
      session:dispatch(Count { n = n })
      ctx:step("after", function(key) write("keyed", key) end, { on_lost = "retry" })
      return n
    end }
  return { tools = { confirm, add }, questions = { "Go." },
    turns = { { calls = { call("confirm", 1), call("add", 1) } },
      { calls = { call("confirm", 2) } }, "Done." } }
end

function flows.denied()
  return { tools = { add, tell }, questions = { "Go." },
    policies = { function(asked)
      if asked.name == "tell" then
        return "deny", "not this one"
      end
    end },
    turns = { { calls = { call("tell", 1), call("add", 2), { name = "unknown" } } }, "Done." } }
end

function flows.most()
  return { once = true, tools = { add }, max_iterations = 2, questions = { "Go." },
    turns = { { calls = { call("add", 1) } }, { calls = { call("add", 2) } } } }
end

function flows.output()
  return { once = true, tools = { add }, output = { type = "object",
    properties = { n = { type = "integer" } }, required = { "n" } }, questions = { "Go." },
    turns = { { calls = { call("add", 1) } }, '{"n":"many"}', '{"n":1}' } }
end

function flows.checks()
  return { tools = { add }, questions = { "Go." },
    checks = { function(answer)
      ah.sleep(0.001)
      if not answer.text:find "sum" then
        return "Say the sum."
      end
    end },
    turns = { { calls = { call("add", 1) } }, "Done.", "The sum is 1." } }
end

-- ah.run with an id, over and over: what is done is not done again.
function flows.once()
  return { once = true, tools = { tell, pay }, questions = { "First.", "Second." }, turns = {
    { calls = { call("tell", 1), call("pay", 2) } }, "Done." } }
end

-- More turns than one checkpoint covers.
function flows.checkpoints()
  local turns = {}
  for i = 1, 70 do
    turns[i] = { calls = { call("add", 1), i % 35 == 0 and call("pay", i) or nil } }
  end
  turns[71] = "Done."
  return { tools = { add, pay }, questions = { "Go.", "And?" }, max_iterations = 100,
    loop_detector = false, turns = table.move({ "Yes." }, 1, 1, 72, turns) }
end

-- Agents at work side by side, which share a session, some of whose calls change files. The third
-- one has a session of its own, and tools that change the shared one.
function flows.shared()
  session = assert(ah.session { name = "stock", store = folder .. "/store.db", types = { Count } })
  local files = ah.filesystem { root = folder .. "/files" }
  local take = counter("take", { on_lost = "retry" })
  local wait = counter("wait", { on_lost = "retry", parallel = true, wait = true })
  local save = again { name = "save", params = { n = "integer" }, handler = function(args)
    session:dispatch(Count { n = args.n })
    for i = 1, 3 do
      assert(files:write(("f%d.txt"):format(i), tostring(args.n)))
    end
    return args.n
  end }
  local function turns_of(n)
    return { { calls = { call("take", n), call("save", n) } },
      { calls = { call("wait", 2), call("wait", 1) } }, { calls = { call("take", 4 * n) } },
      "Done.", resumes = true }
  end
  local function run(id, tools, n, of)
    local agent = assert(ah.agent { store = folder .. "/store.db", id = id, session = of,
      tools = tools, model = ah.scripted(turns_of(n)) })
    local messages = ah.json.decode(agent:transcript()).entries
    local ended = messages[#messages].type == "assistant" and not messages[#messages].tool_calls
    assert(agent.unfinished and agent:run() or ended or agent:run "Go.")
    return ah.json.decode(agent:transcript()).entries
  end
  return { both = function()
    local lists = ah.all {
      function() return run("first", { take, wait, save }, 1, session) end,
      function() return run("second", { take, wait }, 10, session) end,
      function() return run("third", { take, wait }, 100) end }
    for i = 2, 3 do
      table.move(lists[i], 1, #lists[i], #lists[1] + 1, lists[1])
    end
    return lists[1]
  end }
end

-- Files in memory that the store keeps: each call appends to them once, also together with files of
-- the machine.
local memory

function flows.memory()
  memory = assert(ah.filesystem { memory = true, name = "notes", store = folder .. "/store.db",
    files = { ["log.txt"] = "begin " } })
  local disk = ah.filesystem { root = folder .. "/files" }
  local function log(n)
    session:dispatch(Count { n = n })
    assert(memory:append("log.txt", n .. " "))
    assert(memory:write(("d%d/n.txt"):format(n), tostring(n)))
  end
  local keep = again { name = "keep", params = { n = "integer" }, handler = function(args)
    log(args.n)
    return args.n
  end }
  local save = again { name = "save", params = { n = "integer" }, handler = function(args)
    log(args.n)
    for i = 1, 3 do
      assert(disk:write(("f%d.txt"):format(i), tostring(args.n)))
    end
    return args.n
  end }
  return { tools = { keep, save }, questions = { "First.", "Second." }, turns = {
    { calls = { call("keep", 1), call("save", 2) } }, "One.",
    { calls = { call("save", 4), call("keep", 8) } }, "Two." } }
end

-- A budget of a name: what was used is not forgotten.
function flows.spending()
  local month = ah.budget { name = "month", requests = 100, tool_calls = 100 }
  return { tools = { retry, pay }, budget = month, questions = { "First.", "Second." },
    used = function() return month:used() end,
    turns = { { calls = { call("retry", 1), call("pay", 2) } }, "One.",
      { calls = { call("pay", 4) } }, "Two." } }
end

local OWN = { turns = true, questions = true, play = true, once = true, take = true, exact = true,
  also = true, used = true }

local flow = flows[name]()
local fields = { session = session, store = folder .. "/store.db", id = "flow" }
for key, value in pairs(flow) do
  if not OWN[key] then
    fields[key] = value
  end
end
if flow.turns then
  flow.turns.resumes = true
  fields.model = ah.scripted(flow.turns)
end

-- Returns the files of all folders, by path.
local function all_files()
  local fs, all = ah.filesystem { root = folder }, {}
  for _, path in ipairs(assert(fs:glob "*/**/*.txt")) do
    all[path] = fs:read(path)
  end
  for _, path in ipairs(memory and memory:glob "**" or {}) do
    all["memory/" .. path] = memory:read(path)
  end
  return all
end

local function show(entries, more)
  more.entries = entries
  more.files = all_files()
  more.session = ah.json.decode(session:snapshot())
  io.write(ah.json.encode(more), "\n")
end

local function entries_of(agent)
  return ah.json.decode(agent:transcript()).entries
end

-- Returns how many of the questions the conversation already has.
local function asked(agent)
  local seen, n = {}, 0
  for _, entry in ipairs(entries_of(agent)) do
    if entry.type == "user" then
      seen[entry.content[1].text] = true
    end
  end
  while seen[flow.questions[n + 1]] do
    n = n + 1
  end
  return n
end

local function run_agent()
  local agent = assert(ah.agent(fields))
  if flow.take then
    flow.take(agent)
  end
  if agent.unfinished then
    assert(agent:run())
  end
  for i = asked(agent) + 1, #flow.questions do
    assert(agent:run(flow.questions[i]))
  end
  if flow.play then
    agent = flow.play(agent) or agent
  end
  show(entries_of(agent), { used = flow.used and flow.used() })
end

-- Runs each question twice by its id; the second time it is the recorded reply.
local function run_once()
  local list, results = {}, {}
  for i, question in ipairs(flow.questions) do
    fields.id, fields[1] = "flow " .. i, question
    local first
    for k = 1, 2 do
      fields.model = ah.scripted(flow.turns)
      local reply, err = ah.run(fields)
      reply = reply or err.reply
      if err and err.code == "waiting" then
        error(err)
      end
      local result = { text = reply.text, value = reply.value, code = err and err.code,
        stop = reply.stop, iterations = reply.iterations, tool_calls = reply.tool_calls }
      assert(k == 1 or reply.recorded, "the second run was not the recorded one")
      assert(k == 1 or ah.json.encode(result) == ah.json.encode(first), "the replies differ")
      first = result
      if k == 1 then
        table.move(reply.messages, 1, #reply.messages, #list + 1, list)
      end
    end
    results[i] = first
  end
  show(list, { results = results })
end

if flow.both then
  show(flow.both(), {})
elseif flow.once then
  run_once()
else
  run_agent()
end
