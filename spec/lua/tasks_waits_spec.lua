-- Waits in tasks: of processes, HTTP, agents, coroutines, closes; tasks switch there and nowhere
-- else.
local ah = require "agenthost"
local command = require "support.command"
local server = require "support.server"

after_each(command.tidy)

-- Waits until f() is true, for at most 10 s.
local function wait_for(f)
  local till = ah.now() + 10
  while not f() and ah.now() < till do
    ah.sleep(0.002)
  end
  return assert.truthy(f())
end

local function closing(f)
  return setmetatable({}, { __close = f })
end

-- Counts the turns of another task while f works. Returns the number and the results of f.
local function turns_beside(f)
  local turns = 0
  local _ <close> = ah.every(0.001, function() turns = turns + 1 end)
  local results = table.pack(f())
  return turns, table.unpack(results, 1, results.n)
end

describe("tasks switch", function()
  it("at waits and nowhere else, whatever else the code does", function()
    local agent = ah.agent { model = "demo/echo" }
    local channel, room = ah.channel(), ah.channel(100)
    local semaphore, done = ah.semaphore(3), ah.spawn(function() end)
    local session, inside, most = ah.session(), 0, 0
    done:await()
    local function quiet(f)
      for _ = 1, 20 do
        inside = inside + 1
        most = math.max(most, inside)
        f()
        inside = inside - 1
        ah.yield()
      end
    end
    local acts = {
      function() ah.spawn(function() end) end,
      function() local task = ah.spawn(ah.sleep, 60) task:cancel() end,
      function() room:send(1) end,
      function() local _ <close> = semaphore:acquire() end,
      function() assert(done:await() == nil) end,
      function() done:status() end,
      function() tostring(channel) ah.channel(1):close() end,
      function() collectgarbage() end,
      function() pcall(error, "x") end,
      function() coroutine.wrap(function() coroutine.yield(1) end)() end,
      function() table.sort({ 3, 2, 1 }, function(a, b) return a < b end) end,
      function() ah.json.encode(ah.json.decode "[1,2]") end,
      function() ah.log("debug", "x") end,
      function() agent:transcript() end,
      function() tostring(session) end,
      function() ah.tool { name = "t", description = "T." } end,
      function() load "return 1" () end,
      function() string.rep("x", 100000):gsub("x", "y") end,
      function() local _ <close> = closing(function() end) end,
    }
    ah.map(acts, quiet, { concurrency = #acts })
    assert.equal(1, most)
  end)

  it("in each wait of the library that has to wait", function()
    local agent = ah.agent { model = ah.scripted(function()
      ah.sleep(0.005)
      return "done"
    end) }
    local channel, semaphore = ah.channel(), ah.semaphore(1)
    local s <close> = server.start { responses = { { delay = 10, body = "hello" } } }
    local waits = {
      function() ah.sleep(0.005) end,
      function() ah.yield() end,
      function() assert(agent:run "hi") end,
      function() assert(ah.process { command = "sleep", args = { "0.01" } }):wait() end,
      function() assert(ah.http { url = s.url }) end,
      function() ah.spawn(ah.sleep, 0.005):await() end,
      function() ah.scope(function() ah.sleep(0.005) end) end,
      function() ah.spawn(channel.send, channel, 1) channel:receive() end,
      function()
        local permit = semaphore:acquire()
        ah.spawn(function() ah.sleep(0.005) permit:release() end)
        semaphore:acquire():release()
      end,
    }
    for i, wait in ipairs(waits) do
      local switched
      ah.all { wait, function() switched = true end, function()
        assert(switched, "wait " .. i .. " began the others one after the other")
      end }
      local order = {}
      ah.all { function()
        wait()
        order[#order + 1] = "waited"
      end, function() order[#order + 1] = "other" end }
      assert.equal("other", order[1], i)
    end
  end)
end)

describe("a coroutine of a task's own", function()
  it("may wait: the others go on, and so does the task when the wait is over", function()
    local turns, first, second = turns_beside(function()
      return ah.spawn(function()
        local step = coroutine.wrap(function()
          ah.sleep(0.02)
          coroutine.yield "first"
          ah.sleep(0.02)
          return "second"
        end)
        return step(), step()
      end):await()
    end)
    assert.same({ "first", "second" }, { first, second })
    assert.truthy(turns >= 2, turns)
  end)

  it("waits within the task: what began later there ends first", function()
    local order = {}
    local function nested(name, seconds)
      return function()
        coroutine.wrap(function()
          ah.sleep(seconds)
          order[#order + 1] = name .. " slept"
        end)()
        order[#order + 1] = name .. " went on"
      end
    end
    ah.all { nested("short", 0.005), nested("long", 0.03) }
    assert.same({ "long slept", "long went on", "short slept", "short went on" }, order)
  end)

  it("that yields by itself lets the others go on, and gets nothing", function()
    local order = {}
    local task = ah.spawn(function()
      order[#order + 1] = "before"
      local got = table.pack(coroutine.yield("for nobody"))
      order[#order + 1] = "after"
      return got.n
    end)
    ah.spawn(function() order[#order + 1] = "other" end):await()
    assert.equal(0, task:await())
    assert.same({ "before", "other", "after" }, order)
  end)

  it("is given up when the task is cancelled in it", function()
    local seen = {}
    local task = ah.spawn(function()
      local _ <close> = closing(function() seen[#seen + 1] = "task" end)
      coroutine.wrap(function()
        local _ <close> = closing(function() seen[#seen + 1] = "coroutine" end)
        ah.sleep(0.01)
        seen[#seen + 1] = "went on"
      end)()
      ah.yield()
      seen[#seen + 1] = "too far"
    end)
    ah.sleep(0.002)
    task:cancel()
    pcall(task.await, task)
    assert.equal("cancelled", task:status())
    assert.equal("task", seen[#seen])
    assert.is_nil(table.concat(seen, " "):find "too far")
  end)

  it("has no debug hook of its own, nor has the task; that of the main code stays", function()
    local count, before = 0, table.pack(debug.gethook())
    local function counted() count = count + 1 end
    debug.sethook(counted, "l")
    local hook = debug.gethook()
    ah.spawn(function()
      count = 0
      debug.sethook(counted, "l")
      ah.sleep(0.001)
      coroutine.wrap(function()
        debug.sethook(counted, "l")
        ah.sleep(0.001)
      end)()
      assert(count == 0)
    end):await()
    local stays = debug.gethook()
    debug.sethook(table.unpack(before, 1, before.n))
    assert.equal(counted, hook)
    assert.equal(counted, stays)
  end)
end)

describe("a variable marked <close>", function()
  it("may wait when its block ends; the others go on", function()
    local order = {}
    ah.all { function()
      do
        local _ <close> = closing(function()
          ah.sleep(0.02)
          order[#order + 1] = "closed"
        end)
      end
      order[#order + 1] = "after"
    end, function()
      ah.sleep(0.002)
      order[#order + 1] = "other"
    end }
    assert.same({ "other", "closed", "after" }, order)
  end)

  it("may wait when its task is cancelled; whoever cancels goes on behind it", function()
    local order = {}
    local task = ah.spawn(function()
      local _ <close> = closing(function()
        ah.sleep(0.01)
        order[#order + 1] = "closed"
      end)
      ah.sleep(60)
    end)
    ah.yield()
    task:cancel()
    order[#order + 1] = "cancelled"
    assert.same({ "closed", "cancelled" }, order)
    assert.equal("cancelled", task:status())
  end)

  it("is given up one second after its task was cancelled", function()
    local task = ah.spawn(function()
      local _ <close> = closing(function() ah.sleep(60) end)
      ah.sleep(60)
    end)
    ah.yield()
    local began = ah.now()
    task:cancel()
    assert.truthy(ah.now() - began < 10)
    assert.equal("cancelled", task:status())
  end)

  it("that raises fails its task, and is ignored where that was cancelled", function()
    local function raising()
      local _ <close> = closing(function() error("in close", 0) end)
      ah.sleep(0.005)
    end
    local task = ah.spawn(raising)
    assert.same({ false, "in close" }, { pcall(task.await, task) })
    task = ah.spawn(raising)
    ah.yield()
    task:cancel()
    assert.equal("cancelled", task:status())
  end)
end)

describe("an agent", function()
  local function napping()
    return ah.agent { model = ah.scripted(function(request)
      local last = request.entries[#request.entries]
      return last.type == "user" and { calls = { { name = "nap" } } } or "done"
    end), tools = { ah.tool { name = "nap", description = "Naps.",
      handler = function() ah.sleep(0.02) return "slept" end } } }
  end

  it("answers one task at a time: a second one is told to send", function()
    local agent = napping()
    local first, second = ah.spawn(agent.run, agent, "one"), ah.spawn(agent.run, agent, "two")
    local ok, err = pcall(second.await, second)
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.matches("the agent is already running; agent:send%(text%) queues a message", err.message)
    assert.equal("done", first:await().text)
    assert.equal("done", agent:run("again").text)
  end)

  it("gets what another task sends while it works", function()
    local agent = napping()
    local task = ah.spawn(agent.run, agent, "one")
    ah.sleep(0.005)
    assert.is_true(agent:send "and this")
    assert.equal("done", task:await().text)
    local texts = {}
    for _, m in ipairs(agent:run("last").messages) do
      texts[#texts + 1] = m.role == "user" and m.content or nil
    end
    assert.same({ "one", "and this", "last" }, texts)
  end)

  it("works beside a hundred others, each with its own conversation", function()
    local definition = napping()
    local began = ah.now()
    local numbers = {}
    for i = 1, 100 do
      numbers[i] = i
    end
    local replies = ah.map(numbers, function(i)
      local conversation <close> = definition:open {}
      local reply = assert(conversation:run("number " .. i))
      return reply.messages[1].content .. " " .. reply.text
    end, { concurrency = 100 })
    for i = 1, 100 do
      assert.equal(("number %d done"):format(i), replies[i])
    end
    assert.truthy(ah.now() - began < 10)
  end)

  it("is settled when the task that runs it is cancelled, and can run again", function()
    local agent = napping()
    local handler = ah.spawn(function() return agent:run "one" end)
    ah.sleep(0.005)
    handler:cancel()
    assert.equal("cancelled", handler:status())
    local last = ah.json.decode(agent:transcript()).entries
    assert.matches("^Cancelled: the run was stopped before this call finished", last[#last].content)
    assert.equal("done", agent:run("again").text)
  end)

  it("cannot be closed while another task runs it, but cancelled", function()
    local agent = napping()
    local task = ah.spawn(agent.run, agent, "one")
    ah.sleep(0.005)
    local ok, why = pcall(agent.close, agent)
    assert.is_false(ok)
    assert.matches("a run of it is at work", why.message)
    agent:cancel()
    local reply, err = task:await()
    assert.is_nil(reply)
    assert.equal("cancelled", err.code)
  end)

  it("wakes a task that waits for its background call", function()
    local agent = ah.agent {
      model = ah.scripted { { calls = { { name = "long" } } }, "begun", "got it" },
      tools = { ah.tool { name = "long", description = "Works long.", background = true,
        handler = function() ah.sleep(0.02) return "result" end } } }
    assert.equal("begun", agent:run("begin").text)
    local turns, reply = turns_beside(function()
      return ah.spawn(agent.wait, agent):await()
    end)
    assert.truthy(turns >= 1)
    assert.equal("got it", reply and reply.text)
  end)
end)

describe("a process", function()
  it("is read and written by tasks at the same time", function()
    local cat <close> = assert(ah.process { command = "cat" })
    local got = {}
    local reader = ah.spawn(function()
      for line in cat:lines() do
        got[#got + 1] = line
      end
    end)
    local function write(line) assert(cat:write(line .. "\n")) end
    ah.map({ "a", "b", "c" }, write, { concurrency = 1 })
    cat:close_input()
    reader:await()
    assert.same({ "a", "b", "c" }, got)
  end)

  it("ends with the task that holds it, wherever that waits", function()
    for _, wait in ipairs {
      function(p) p:wait() end,
      function(p) p:line() end,
      function(p) p:read "all" end,
      function(p) p:write(("x"):rep(1 << 20)) end,
    } do
      local pid
      local task = ah.spawn(function()
        local p <close> = assert(ah.process { command = "sh", grace = 0.1,
          args = { "-c", "echo $$ >&2; exec sleep 60" } })
        wait_for(function() return #p:errors() > 0 end)
        pid = p:errors():match "%d+"
        wait(p)
      end)
      wait_for(function() return pid end)
      task:cancel()
      assert.equal("cancelled", task:status())
      wait_for(function() return not os.execute("kill -0 " .. pid .. " 2>/dev/null") end)
    end
  end)
end)

describe("a response in pieces", function()
  it("is read by a task while others go on, and stops when that is cancelled", function()
    local s <close> = server.start { responses = {
      { body = ("line\n"):rep(1000), piece = 5, gap = 2 } } }
    local lines = 0
    local task = ah.spawn(function()
      local response <close> = assert(ah.http { url = s.url, stream = "lines" })
      for line in response:pieces() do
        assert(line == "line")
        lines = lines + 1
      end
    end)
    wait_for(function() return lines >= 3 end)
    task:cancel()
    local then_read = lines
    ah.sleep(0.02)
    assert.equal(then_read, lines)
    assert.truthy(lines < 1000)
  end)

  it("is read by one task at a time, and the next may read on", function()
    local s <close> = server.start { responses = { { body = "one\ntwo\n", piece = 4, gap = 30 } } }
    local response <close> = assert(ah.http { url = s.url, stream = "lines" })
    local first = ah.spawn(response.read, response)
    local second = ah.spawn(response.read, response)
    local ok, err = pcall(second.await, second)
    assert.is_false(ok)
    assert.equal("usage", err.code)
    assert.equal("one", first:await())
    assert.equal("two", response:read())
  end)
end)

describe("files, answers of servers and events", function()
  it("belong to tasks as well", function()
    local fs = assert(ah.filesystem { files = {} })
    ah.map({ "a", "b", "c" }, function(name)
      ah.yield()
      assert(fs:write(name, name))
    end)
    local names = {}
    for i, entry in ipairs(fs:list("")) do
      names[i] = type(entry) == "table" and entry.name or entry
    end
    assert.same({ "a", "b", "c" }, names)
  end)

  it("of servers are written by one task at a time", function()
    local why
    local s <close> = assert(ah.serve { listen = "127.0.0.1:0", on_request = function(_, response)
      local one = ah.spawn(response.write, response, ("x"):rep(1 << 20))
      local two = ah.spawn(response.write, response, "y")
      why = select(2, pcall(two.await, two))
      one:await()
    end })
    assert.equal(1 << 20, #assert(ah.http { url = s.url .. "/" }).body)
    assert.equal("usage", why.code)
    assert.matches("another task writes or waits", why.message)
  end)

  it("may be served from tasks of a handler; the answer is out when these have ended", function()
    local log = {}
    local s <close> = assert(ah.serve { listen = "127.0.0.1:0", on_request = function(_, response)
      local gate = ah.semaphore(1) -- one task at a time can write
      ah.map({ 1, 2, 3 }, function(i)
        ah.sleep(0.02 * (4 - i))
        local _ <close> = gate:acquire()
        response:write("piece " .. i .. "\n")
      end)
      ah.spawn(function() ah.sleep(0.005) log[#log + 1] = "task" end)
    end })
    local body = assert(ah.http { url = s.url .. "/" }).body
    assert.equal("piece 3\npiece 2\npiece 1\n", body)
    assert.same({ "task" }, log)
  end)
end)
