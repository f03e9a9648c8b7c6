-- Checks of fuzz_mcp_server.c: an input is the lines of a client. $STATE in a line stands for the
-- last `requestState` of the server. All that the server says must be messages; a request is
-- answered at most once, and no answer may be an error of the server's own.
local ah = require "agenthost"
local message = ah._module "agenthost.protocols.mcp.message"
local Server = ah._module "agenthost.protocols.mcp.server"

local MOST_LINES = 50
local TURNS = 4 -- of the other tasks, after each line

-- The server catches what its tasks raise, and logs it.
function ah.log(_, text)
  assert(not text:find "^mcp: .-agenthost%.protocols[%w.]*:%d+: ", text)
end

local Thing = ah.entity { name = "Thing", fields = { "id" },
  find = function(id) return #id < 9 and { id = id } or nil end }

Thing:tool { name = "look", description = "Looks.",
  handler = function(self) return self.id end }

local function tool(name, handler, params, result)
  return ah.tool { name = name, description = "Does it.", params = params, result = result,
    handler = handler }
end

local agent = assert(ah.agent {
  model = "demo/echo", discover = true,
  ah.section { key = "rules", template = "Be exact." },
  tools = {
    tool("add", function(args) return { sum = args.a + (args.b or 0) } end,
      { a = "number", b = "number?" },
      { type = "object", properties = { sum = { type = "number" } } }),
    tool("fail", function() return nil, "no" end),
    tool("greet", function(_, ctx)
      return ctx:ask { question = "Who?", schema = { type = "object",
        properties = { name = { type = "string" } } } }
    end),
    tool("open", function(args) return Thing { id = args.id } end, { id = "string" }),
    tool("wait", function() ah.channel():receive() end),
    tool("work", function(_, ctx)
      ctx:progress(0.5, "half")
      return "worked"
    end),
  },
})

local start -- runs a function of the server in a task of this input
local server = assert(Server.new(agent, { name = "fuzz", version = "1",
  start = function(f) start(f) end }))

-- Returns a function that takes what the server sends, one that takes the answer of a request, and
-- one that returns the last state of a call that waits.
local function outlet()
  local answered, state = {}, ""
  local function send(line)
    local said, why = message.read(line)
    assert(said and line:sub(-1) == "\n" and not line:find "\n.", why and why.message or line)
    assert(not (said.code == message.CODES.internal and said.text:find "internal error"), line)
    if said.kind == "result" then
      state = said.result.requestState or state
    end
    return said
  end
  local function answer(q, line)
    assert(not answered[q], "a second answer: " .. line)
    answered[q] = true
    assert(send(line).id == q.id, line)
  end
  return send, answer, function() return state end
end

-- True for a request that may wait for another line. Others are answered here, as lines of Lua that
-- run in a task are not counted.
local function may_wait(m)
  local modern = message.object(m.params._meta)[message.META.revision] ~= nil
  return m.method == "subscriptions/listen"
    or m.method == "tools/call" and (m.params.name == "wait" or not modern)
end

local function take_request(peer, m, send, answer)
  local q = { id = m.id, method = m.method, params = m.params, peer = peer, principal = "fuzz",
    send = send }
  local ok, err = peer:enter(q)
  if not ok then
    return send(message.failure(m.id, err.code, err.message))
  end
  local function work()
    local line = server:answer(q)
    peer:leave(q)
    if line then
      answer(q, line)
    end
  end
  if may_wait(m) then
    start(work)
  else
    work()
  end
end

local function take(peer, line, send, answer)
  local m, why = message.read(line)
  if not m then
    send(message.failure(why.id, why.code, why.message))
  elseif m.kind == "request" then
    take_request(peer, m, send, answer)
  else
    peer:take(m)
  end
end

local function each_line(peer, input)
  local send, answer, state = outlet()
  peer.send = send
  local n = 0
  for line in input:gmatch "[^\n]+" do
    n = n + 1
    if n > MOST_LINES then
      break
    end
    take(peer, (line:gsub("%$STATE", state)), send, answer)
    for _ = 1, TURNS do
      ah.yield()
    end
  end
end

return function(input)
  local tasks = {}
  start = function(f)
    tasks[#tasks + 1] = ah.spawn(f)
  end
  local peer = server:peer()
  each_line(peer, input)
  peer:close()
  server.waiting:sweep(true)
  for _, task in ipairs(tasks) do
    task:await()
  end
end
