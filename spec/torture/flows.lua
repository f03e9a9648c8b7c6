--- The flows of the torture program (torture.c), each run in a host of its own.
--
-- `attempt` does the flow while allocations fail. Afterwards, with memory again, its results in `s`
-- are judged: the answer is the expected one, or the error says that memory ran out; the
-- conversation is sound; and the same host works.
--
--   attempt(s)   may raise; the judge reads s.agent, s.reply and s.err
--   text         the expected text of s.reply
--   code         the expected s.err.code, unless memory failed earlier
--   judge(s, exact)  further checks; exact: nothing has failed, so nothing may be missing
--   network      libcurl is used, which does not always report a lack of memory as such
--   cold         the library is loaded while allocations fail, too: one flow is enough
local env = ...

local ah
local M = {}
local flows = {}

--- Makes a model that follows a rule, whatever failed before; "again" is answered "fine".
local function model(rule)
  return ah.scripted(function(request)
    local last = request.entries[#request.entries]
    if last.type == "user" and last.content[1].text == "again" then
      return "fine"
    end
    return rule(last, request)
  end)
end

local function call(name, arguments)
  return { name = name, arguments = arguments }
end

--- Makes a model that calls in the first turn, then answers with a text.
local function calling(calls, text)
  return model(function(last)
    return last.type == "user" and { calls = calls } or text
  end)
end

local function weather_tool()
  return ah.tool {
    name = "weather", description = "The weather of a city.",
    full_description = "The weather \u{263a} of a city.",
    schema = {
      type = "object", required = { "city" }, additionalProperties = false,
      properties = {
        city = { type = "string", minLength = 2 }, days = { type = "integer", default = 3 },
      },
    },
    result = { type = "object", properties = { degrees = { type = "integer" } } },
    handler = function(args, ctx)
      ctx:note("asked for " .. args.city)
      return { city = args.city, degrees = 20 + args.days }
    end,
  }
end

-- -- the flows ------------------------------------------------------------------------------

flows["host"] = {
  text = "hello", cold = true,
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent { model = model(function() return "hello" end) }
    s.reply, s.err = s.agent:run("hi")
  end,
}

flows["text answer"] = {
  text = "hello",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = model(function() return { text = "hello", usage = { input = 3, output = 2 } } end),
      system = "Be brief.", options = { temperature = 0.5, stop = { "\n\n" } },
    }
    s.reply, s.err = s.agent:run("hi")
    if s.reply then
      s.messages, s.shown, s.usage = s.reply.messages, tostring(s.reply), s.reply.usage
    end
  end,
  judge = function(s, exact)
    if exact then
      assert(s.shown == "hello" and #s.messages == 3 and s.usage.output == 2, "reply")
    end
  end,
}

-- Images in a user's message, in a result, and in the messages of the reply.
flows["images"] = {
  text = "seen",
  attempt = function(s)
    ah = require "agenthost"
    local image = assert(ah.image { data = "GIF89a of the torture" })
    local draw = ah.tool { name = "draw", description = "Draws.",
      handler = function() return { "Drawn.", image } end }
    s.agent = ah.agent { model = calling({ call("draw", ah.object {}) }, "seen"), tools = { draw } }
    s.reply, s.err = s.agent:run { "What is this?", image }
    s.messages = s.reply and s.reply.messages
  end,
  judge = function(s, exact)
    if exact then
      assert(s.messages[1].content[2].data == "GIF89a of the torture", "the user's image")
      assert(s.messages[3].content[2].mime == "image/gif", "the result's image")
    end
  end,
}

-- The same as "tool call", with a watcher and as a text (torture.c).
flows["watched"] = {
  text = "warm",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("weather", { city = "Rome" }) }, "warm"), tools = { weather_tool() },
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
}

flows["tool call"] = {
  text = "warm",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("weather", { city = "Rome" }) }, "warm"), tools = { weather_tool() },
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
  judge = function(s, exact)
    if exact then
      local result = '{\\"city\\":\\"Rome\\",\\"degrees\\":23}'
      assert(s.agent:transcript():find(result, 1, true), "result")
    end
  end,
}

flows["coerced arguments"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("add", { a = "2", list = "7" }) }, "done"),
      on = { tool_invoked = function(e) s.told = e.coerced end },
      tools = { ah.tool { name = "add", description = "Adds.", coerce = true,
        params = { a = "integer", b = "integer = 3", list = "integer[]" },
        handler = function(args, ctx)
          s.took = ctx.coerced
          return args.a + args.b + args.list[1]
        end } },
    }
    s.reply, s.err = s.agent:run("add")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.took == s.told and s.told:find('/a: took "2" as 2', 1, true), "coerced")
      assert(s.agent:transcript():find('"12"', 1, true), "result")
    end
  end,
}

flows["streamed text"] = {
  text = "one two three",
  attempt = function(s)
    ah = require "agenthost"
    s.seen, s.logged = "", 0
    s.agent = ah.agent {
      model = model(function() return { text = { "one", " two", " three" }, delay = 0.1 } end),
      on = function(e)
        if e.type == "content" then
          s.seen = s.seen .. e.text
        end
      end,
      log = function(_, line)
        s.logged = s.logged + #line
      end,
    }
    s.reply, s.err = s.agent:run("count")
  end,
  judge = function(s, exact)
    assert(not exact or (s.seen == "one two three" and s.logged > 0), "events")
  end,
}

flows["null for absent"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("add", { a = 2, b = ah.null, list = { 7 } }) }, "done"),
      options = { strict = true },
      tools = { ah.tool { name = "add", description = "Adds.",
        params = { a = "integer", b = "integer = 3", list = "integer[]" },
        handler = function(args) return args.a + args.b + args.list[1] end } },
    }
    s.reply, s.err = s.agent:run("add")
  end,
  judge = function(s, exact)
    assert(not exact or s.agent:transcript():find('"12"', 1, true), "result")
  end,
}

flows["retry"] = {
  text = "hello",
  attempt = function(s)
    local tries = 0
    ah = require "agenthost"
    s.agent = ah.agent {
      model = model(function()
        tries = tries + 1
        if tries == 1 then
          return { fail = {
            message = "too many", status = 429, retryable = true, retry_after = 0.001,
          } }
        end
        return tries == 2 and { text = "hel", cut = true } or "hello"
      end),
      retries = 3, on = { retry = function(e) s.retry = e end },
    }
    s.reply, s.err = s.agent:run("hi")
  end,
}

flows["cancel in a turn"] = {
  code = "cancelled", text = "not reached",
  attempt = function(s)
    ah = require "agenthost"
    local stop = ah.tool {
      name = "stop", description = "Cancels the run and goes on.", params = {},
      handler = function()
        local cleanup <close> = setmetatable({}, { __close = function() s.closed = true end })
        s.agent:cancel()
        ah.sleep(60)
        return cleanup
      end,
    }
    s.agent = ah.agent {
      model = calling({ call "stop", call "stop" }, "not reached"), tools = { stop },
    }
    s.reply, s.err = s.agent:run("stop")
  end,
  judge = function(s, exact)
    assert(not exact or s.closed, "the handler was not closed")
  end,
}

flows["deadline in a turn"] = {
  code = "deadline_exceeded", text = "slow",
  attempt = function(s)
    ah = require "agenthost"
    local slow = ah.tool {
      name = "slow", description = "Takes its time.", params = { seconds = "number" },
      parallel = true,
      handler = function(args) ah.sleep(args.seconds) end,
    }
    s.agent = ah.agent {
      model = calling({ call("slow", { seconds = 0.1 }), call("slow", { seconds = 60 }) }, "slow"),
      tools = { slow }, timeout = 2,
    }
    s.reply, s.err = s.agent:run("hurry")
  end,
}

flows["deadline in a coroutine"] = {
  code = "deadline_exceeded", text = "slow",
  attempt = function(s)
    ah = require "agenthost"
    local slow = ah.tool {
      name = "slow", description = "Waits where it cannot yield.",
      handler = function()
        return coroutine.wrap(function()
          ah.sleep(60)
          s.woke = true
        end)()
      end,
    }
    s.agent = ah.agent { model = calling({ call "slow" }, "slow"), tools = { slow }, timeout = 2 }
    s.reply, s.err = s.agent:run("hurry")
  end,
  judge = function(s)
    assert(not s.woke, "slept on after the deadline")
  end,
}

flows["parallel tools"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local wait = ah.tool {
      name = "wait", description = "Waits.", params = { seconds = "number" }, parallel = true,
      timeout = 1,
      handler = function(args)
        ah.sleep(args.seconds)
        return args.seconds
      end,
    }
    s.agent = ah.agent {
      model = calling({
        call("wait", { seconds = 0.3 }), call("wait", { seconds = 0.2 }),
        call("wait", { seconds = 30 }),
      }, "done"),
      tools = { wait },
    }
    s.reply, s.err = s.agent:run("wait")
  end,
}

-- A task reads a queue of events while the main code runs the agent.
flows["queue of events"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("weather", { city = "Rome" }) }, "done"), tools = { weather_tool() },
    }
    s.seen, s.lost = 0, 0
    s.all = s.agent:events {}
    local events <close> = s.agent:events { max = 3 }
    s.events = events
    local task <close> = ah.spawn(function()
      for event in events do
        s.seen, s.lost = s.seen + 1, s.lost + (event.dropped or 0)
        s.last = event.type
        ah.yield()
      end
    end)
    s.reply, s.err = s.agent:run("how is it in Rome?")
    events:close()
    task:await()
  end,
  judge = function(s, exact)
    if s.events then -- an event that could not be read is the next one
      s.all:close()
      local all = s.all.dropped
      for _ in s.events do s.seen = s.seen + 1 end
      for _ in s.all do all = all + 1 end
      assert(s.seen + s.events.dropped == all, "an event is lost")
    end
    if exact then
      assert(s.last == "done" and s.seen + s.lost > 8, "events are missing")
    end
  end,
}

-- The handler and the main code have tasks in scopes, on channels and semaphores, and cancel some.
-- Each that holds a variable marked <close> is counted when it begins and when it is closed.
local function held(s, f)
  return function()
    local closed = false
    local _ <close> = setmetatable({}, { __close = function()
      s.twice = s.twice or closed
      closed, s.closed = true, s.closed + 1
    end })
    s.begun = s.begun + 1
    return f()
  end
end

local function sum_of_tasks(s)
  local channel, gate, sum = ah.channel(1), ah.semaphore(1), 0
  ah.scope(function(scope)
    for i = 1, 3 do
      scope:spawn(held(s, function()
        local _ <close> = gate:acquire()
        ah.yield()
        channel:send(i)
      end))
    end
    local idle = scope:spawn(held(s, function() ah.channel():receive() end))
    for _ = 1, 3 do
      sum = sum + channel:receive()
    end
    idle:cancel()
  end)
  local first = ah.race { held(s, function() ah.sleep(60) end), function() return 1 end }
  local late, err = ah.with_timeout(0.01, held(s, function() ah.sleep(60) end))
  return { sum + first, late == nil and err.code }
end

flows["tasks, scopes and channels"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.begun, s.closed = 0, 0
    local work = ah.tool { name = "work", description = "Works.", memory = 8000000,
      handler = function()
        local task = ah.spawn(held(s, function() return sum_of_tasks(s) end))
        s.result = task:await()
        ah.spawn(held(s, ah.yield)) -- is waited for by the call
      end }
    s.agent = ah.agent { model = calling({ call("work", {}) }, "done"), tools = { work } }
    local other <close> = ah.spawn(held(s, function() ah.sleep(60) end))
    s.reply, s.err = s.agent:run "go"
    local _, raised = pcall(ah.all, { function() error { "a table" } end })
    s.raised = type(raised) == "table" and raised[1]
    assert(other:status() ~= "done")
  end,
  judge = function(s, exact)
    assert(not s.twice and (s.closed or 0) <= (s.begun or 0), "closed twice")
    if exact then
      assert(s.result[1] == 7 and s.result[2] == "deadline_exceeded", "tasks of a handler")
      assert(s.begun == 9 and s.closed == 9, "tasks were not closed")
      assert(s.raised == "a table", "an error of a task")
    end
  end,
}

-- A handler calls ah.map, whose progress is events of its run.
flows["progress of a map"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local sum = ah.tool { name = "sum", description = "Sums up.", handler = function()
      local replies, err = ah.map({ "a", "b", "c" }, function(text)
        return ah.run { model = model(function() return text end), text }
      end, { concurrency = 2, progress = true })
      return replies and replies.n, err
    end }
    s.agent = ah.agent { model = calling({ call("sum", {}) }, "done"), tools = { sum },
      on = { map_progress = function(e) s.last = e end } }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.last.ended and s.last.total == 3, "the last event of the map is missing")
    end
  end,
}

-- Tasks. In each flow all that is begun is counted, and ends; nothing that was given is lost.
local GUARD = { __close = function(guard) guard.s.ended = guard.s.ended + 1 end }

local function guard(s)
  local one = setmetatable({ s = s }, GUARD) -- first: it may fail
  s.begun = s.begun + 1
  return one
end

-- Runs f(s) in a task, all tasks of which end. s.err is a failure of memory, or nil.
local function in_tasks(s, f)
  ah = require "agenthost"
  s.begun, s.ended, s.err = 0, 0, nil
  local task <close> = ah.spawn(f, s)
  local ok, err = pcall(task.await, task)
  s.whole = task
  if not ok then
    s.err = err
  end
end

local function check_ends(s)
  assert(not s.whole or s.whole:status() ~= "running", "a task has not ended")
  local begun, ended = s.begun or 0, s.ended or 0
  assert(begun == ended, ("%d begun, %d ended"):format(begun, ended))
end

flows["tasks"] = {
  attempt = function(s)
    in_tasks(s, function()
      local tasks = {}
      for i = 1, 4 do
        tasks[i] = ah.spawn(function()
          local _ <close> = guard(s)
          ah.yield()
          if i == 2 then
            error("no luck", 0)
          end
          return i, i == 3 and "two" or nil
        end)
      end
      tasks[4]:cancel()
      s.tasks = tasks
      local first = tasks[1]:await()
      local ok, why = pcall(tasks[2].await, tasks[2])
      assert(first == 1 and not ok)
      s.err = why ~= "no luck" and why or nil
      s.two = select("#", tasks[3]:await())
    end)
  end,
  judge = function(s, exact)
    check_ends(s)
    for _, task in ipairs(s.tasks or {}) do
      assert(task:status() ~= "running", "a task has not ended")
    end
    assert(not exact or s.two == 2, "results")
  end,
}

-- If the only task that awaits another is stopped, the failure goes to the code that started that
-- other.
flows["a failure that is not awaited"] = {
  attempt = function(s)
    in_tasks(s, function()
      local gate = ah.channel()
      local fails = ah.spawn(function()
        local _ <close> = guard(s)
        gate:receive()
        error("no luck", 0)
      end)
      local awaits = ah.spawn(function()
        local _ <close> = guard(s)
        pcall(fails.await, fails)
        ah.sleep(60)
      end)
      ah.spawn(function() -- goes on between the end of the one and the other
        gate:receive()
        awaits:cancel()
      end)
      ah.yield()
      gate:close()
    end)
    s.raised, s.err = s.err, s.err ~= "no luck" and s.err or nil
  end,
  judge = function(s, exact)
    check_ends(s)
    assert(not exact or s.raised == "no luck", "the failure is lost")
  end,
}

flows["a scope that fails"] = {
  attempt = function(s)
    in_tasks(s, function()
      local ok, err = pcall(ah.scope, function(scope)
        for i = 1, 3 do
          scope:spawn(function()
            local _ <close> = guard(s)
            ah.sleep(i)
            error("number " .. i, 0)
          end)
        end
        local _ <close> = guard(s)
        ah.sleep(60)
      end)
      s.ok, s.why = ok, err
      if err ~= "number 1" then
        error(err, 0)
      end
    end)
  end,
  judge = function(s, exact)
    check_ends(s)
    assert(s.ok ~= true, "a scope that fails has succeeded")
    assert(not exact or s.why == "number 1", "why")
  end,
}

flows["a race and a time"] = {
  attempt = function(s)
    in_tasks(s, function()
      local function after(seconds)
        return function()
          local _ <close> = guard(s)
          ah.sleep(seconds)
          return seconds
        end
      end
      s.first = ah.race { after(3), after(1), after(2) }
      s.all = ah.all { after(1), after(2) }
      s.late, s.late_err = ah.with_timeout(1, after(60))
      s.done = ah.with_timeout(60, after(1))
      local beats = 0
      local beat <close> = ah.every(1, function()
        local _ <close> = guard(s)
        beats = beats + 1
      end)
      ah.sleep(3.5)
      s.beats = beat:status() == "running" and beats or error("not enough memory", 0)
    end)
  end,
  judge = function(s, exact)
    check_ends(s)
    assert(not s.first or s.first == 1, "first")
    assert(not s.late, "late")
    assert(not exact or s.all.n == 2 and s.done == 1 and s.beats == 3
      and s.late_err.code == "deadline_exceeded", "times")
  end,
}

flows["a map"] = {
  attempt = function(s)
    s.calls = 0
    in_tasks(s, function()
      local function double(v)
        local _ <close> = guard(s)
        s.calls = s.calls + 1
        ah.sleep(v)
        if v == 3 then
          return nil, "three"
        end
        return v * 2
      end
      s.results, s.errors = ah.map({ 1, 2, 3, 4, 5 }, double, { concurrency = 2,
        on_error = "collect" })
      local none, why = ah.map({ 1, 2, 3, 4, 5 }, double, { concurrency = 2 })
      assert(none == nil and (why == "three" or tostring(why):find "memory"), tostring(why))
    end)
  end,
  judge = function(s, exact)
    check_ends(s)
    for i = 1, s.results and s.results.n or 0 do
      assert(s.results[i] == i * 2 or s.errors[i], "a call is lost")
    end
    assert(not exact or s.results[5] == 10 and s.errors[3] == "three", "results")
  end,
}

-- Receivers are cancelled on their way, with and without room.
local function channel_flow(room)
  return {
    attempt = function(s)
      s.sent, s.got = {}, {}
      for i = 1, 12 do
        s.sent[i], s.got[i] = false, false
      end
      in_tasks(s, function()
        s.channel = ah.channel(room)
        ah.scope(function(scope)
          for half = 0, 1 do
            scope:spawn(function()
              local _ <close> = guard(s)
              for v = half * 6 + 1, half * 6 + 6 do
                s.sent[v] = s.channel:send(v)
              end
            end)
          end
          local receivers = {}
          for i = 1, 3 do
            receivers[i] = scope:spawn(function()
              local _ <close> = guard(s)
              for v in s.channel do
                assert(not s.got[v], "a value twice")
                s.got[v] = true
                ah.yield()
              end
            end)
          end
          ah.yield()
          ah.yield()
          receivers[1]:cancel()
          receivers[2]:cancel()
          ah.sleep(1)
          s.channel:close()
        end)
      end)
    end,
    judge = function(s, exact)
      check_ends(s)
      if s.channel then
        s.channel:close()
        for v in s.channel do
          assert(not s.got[v], "a value twice")
          s.got[v] = true
        end
      end
      for v = 1, s.channel and 12 or 0 do
        assert(s.got[v] or not s.sent[v], "a value is lost")
        assert(not exact or s.got[v], "a value was not sent")
      end
    end,
  }
end

flows["a channel"] = channel_flow(2)
flows["a channel without room"] = channel_flow(0)

flows["a semaphore"] = {
  attempt = function(s)
    s.most, s.held = 0, 0
    in_tasks(s, function()
      s.semaphore = ah.semaphore(2)
      local tasks = {}
      for i = 1, 5 do
        tasks[i] = ah.spawn(function()
          local _ <close> = guard(s)
          local permit <close> = s.semaphore:acquire()
          s.held = s.held + 1
          s.most = math.max(s.most, s.held)
          local _ <close> = setmetatable({}, { __close = function() s.held = s.held - 1 end })
          ah.sleep(1)
          if i == 1 then
            permit:release()
            tasks[4]:cancel()
          end
        end)
      end
    end)
  end,
  judge = function(s, exact)
    check_ends(s)
    if s.semaphore then
      assert(s.most <= 2, "too many permits")
      assert(ah.with_timeout(1, function()
        local one, two = s.semaphore:acquire(), s.semaphore:acquire()
        return one and two
      end), "a permit is lost")
    end
    assert(not exact or s.most == 2)
  end,
}

-- Three agents share a lane of one: the first is refused once, the third is cancelled in the queue.
flows["a lane"] = {
  text = "it is warm",
  attempt = function(s)
    ah = require "agenthost"
    s.asked, s.waits = 0, {}
    local shared = ah.scripted(function(request)
      local last = request.entries[#request.entries]
      s.asked = s.asked + 1
      if s.asked == 1 then
        return { fail = { message = "busy", status = 429, retryable = true, retry_after = 0.01 } }
      end
      return { text = last.content[1].text == "again" and "fine" or "it is warm", delay = 0.01 }
    end)
    local function agent()
      return ah.agent { model = shared, max_in_flight = 1, log = function() end,
        on = { queued = function(e) s.waits[#s.waits + 1] = e.reason end } }
    end
    s.agent = agent()
    local second, third = agent(), agent()
    ah.scope(function(scope)
      scope:spawn(function() s.reply, s.err = s.agent:run "how is it in Rome?" end)
      scope:spawn(function() s.second = second:run "and in Oslo?" end)
      scope:spawn(function() s.third = select(2, third:run "and in Bonn?") end)
      ah.sleep(0.005)
      third:cancel()
    end)
  end,
  judge = function(s, exact)
    if exact then
      assert(s.second and s.third.code == "cancelled" and s.asked == 3, "who was answered")
      assert(s.waits[1] == "in_flight" or s.waits[1] == "backoff", "the waits")
      assert(#s.waits == 2, "the number of waits")
    end
  end,
}

-- A tool whose calls work in the background, in a transaction with a file, a note and a tool.
local function job_tool(fs)
  return ah.tool {
    name = "job", description = "A job.", params = { n = "integer" }, background = true,
    handler = function(args, ctx)
      ah.sleep(0.1 * args.n)
      ctx:progress(0.5)
      if args.n == 2 then
        error "no luck"
      end
      fs:write("job" .. args.n, "done")
      ctx:note("noted " .. args.n)
      ctx:add_tools(ah.tool { name = "late" .. args.n, description = "Late.",
        handler = function() end })
      return { n = args.n, long = ("x"):rep(2000) }
    end,
  }
end

-- Says what the last message is: a ticket's note is said by the user.
local function follow(last, request)
  local text = last.type == "user" and last.content[1].text or ""
  if text == "go" then
    return { calls = { call("job", { n = 1 }), call("job", { n = 2 }), call("job", { n = 9 }) } }
  end
  return last.type == "tool_result" and "begun" or #request.entries > 0 and "done" or ""
end

flows["background calls"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { files = {} }
    local path = os.tmpname()
    s.agent = ah.agent { model = model(follow), tools = { job_tool(s.fs) },
      on = { background_done = function(e) s.done = e.ticket end } }
    local reply, err = s.agent:run "go"
    if reply then
      s.list = s.agent:background()
      reply, err = s.agent:wait(1)
    end
    if reply then
      s.agent:cancel_background(3)
      reply, err = s.agent:wait(1)
    end
    while reply and #s.agent:background() > 0 do
      reply, err = s.agent:wait(1)
    end
    local other = ah.agent { model = model(follow), tools = { job_tool(s.fs) } }
    local begun = reply and other:run "go"
    local saved = begun and other:save(path)
    local loaded = saved and ah.load(path, { model = model(follow), tools = {} })
    s.loaded = loaded and loaded:transcript()
    s.forked = begun and other:fork():transcript()
    other:close()
    os.remove(path)
    s.reply, s.err = reply, err
  end,
  judge = function(s, exact)
    if exact then
      local _, notes = s.agent:transcript():gsub('"ticket":%d+,"time"', "")
      assert(notes == 3, "notes")
      assert(s.fs:read "job1" == "done" and not s.fs:exists "job9", "files")
      assert(#s.list == 3 and s.done, "list")
      assert(select(2, s.loaded:gsub("outcome is unknown", "")) == 3, "loaded")
      assert(select(2, s.forked:gsub("forked from", "")) == 3, "forked")
    end
  end,
}

flows["background calls of runs"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { files = {} }
    local ask = ah.tool { name = "ask", description = "Asks.", handler = function()
      return ah.run { model = model(follow), tools = { job_tool(s.fs) }, timeout = 5, "go" }
    end }
    s.agent = ah.agent { model = calling({ call "ask" }, "done"), tools = { ask } }
    s.reply, s.err = s.agent:run "ask"
    s.late, s.late_err = ah.run { model = model(follow), tools = { job_tool(s.fs) },
      timeout = 0.5, "go" }
  end,
  judge = function(s, exact)
    if exact then
      assert(s.reply.messages[3].content == "done", "asked")
      assert(s.fs:read "job9" == "done" and not s.fs:exists "job2", "files")
      assert(s.late_err:is "deadline_exceeded", "late")
    end
  end,
}

flows["a run in a handler"] = {
  text = "outer",
  attempt = function(s)
    ah = require "agenthost"
    local ask = ah.tool {
      name = "ask", description = "Asks another model.", params = { question = "string" },
      handler = function(args)
        return ah.run {
          model = calling({ call("weather", { city = "Oslo" }) }, "inner"),
          tools = { weather_tool() },
          args.question,
        }
      end,
    }
    s.agent = ah.agent {
      model = calling({ call("ask", { question = "why?" }) }, "outer"), tools = { ask },
    }
    s.reply, s.err = s.agent:run("ask")
  end,
}

flows["cancel around a run in a handler"] = {
  code = "cancelled", text = "not reached",
  attempt = function(s)
    ah = require "agenthost"
    local ask = ah.tool {
      name = "ask", description = "Asks a model that takes its time.", parallel = true,
      handler = function()
        s.inner = ah.agent { model = model(function()
          s.begun = true
          ah.sleep(60)
          s.went_on = true
          return "inner"
        end) }
        return s.inner:run("why?")
      end,
    }
    local stop = ah.tool {
      name = "stop", description = "Cancels the run.", parallel = true,
      handler = function()
        ah.sleep(1)
        s.agent:cancel()
      end,
    }
    s.agent = ah.agent {
      model = calling({ call "ask", call "stop" }, "not reached"), tools = { ask, stop },
    }
    s.reply, s.err = s.agent:run("ask")
  end,
  judge = function(s, exact)
    assert(not exact or s.begun, "the inner run did not begin")
    if s.err and s.err.code == "cancelled" then
      ah.sleep(100)
      assert(not s.went_on, "the inner run outlived the outer one")
    end
  end,
}

flows["two turns"] = {
  text = "second",
  attempt = function(s)
    ah = require "agenthost"
    local more = ah.tool {
      name = "more", description = "Queues a message.",
      params = { text = "string", times = "integer?" },
      handler = function(args)
        s.agent:send(args.text)
        return ah.ok({ args.text }, "queued")
      end,
    }
    s.agent = ah.agent {
      model = model(function(last)
        local text = last.type == "user" and last.content[1].text
        if text == "first" then
          return { calls = { call("more", { text = "queued", times = 2 }) } }
        end
        return text == "second" and "second" or "first"
      end),
      tools = { more }, system = "Go on.",
    }
    s.first, s.err = s.agent:run("first")
    if s.first then
      s.reply, s.err = s.agent:run("second")
    end
  end,
}

flows["failing tools"] = {
  text = "nothing works",
  attempt = function(s)
    ah = require "agenthost"
    local function fails(name, handler)
      return ah.tool {
        name = name, description = "Fails.", handler = handler, result = { type = "integer" },
      }
    end
    s.agent = ah.agent {
      model = calling({
        call "raise", call "object", call "say", call "fail", call "lie", call "odd",
        call("weather", "{'city':1}"), call("weather", { town = 1 }), call "wether",
      }, "nothing works"),
      tools = {
        fails("raise", function() error("broken") end),
        fails("object", function()
          error(ah.error { code = "tool_validation", message = "not so" })
        end),
        fails("say", function() return nil, "no such thing" end),
        fails("fail", function() return ah.fail("as it is") end),
        fails("lie", function() return "three" end),
        fails("odd", function()
          return nil, setmetatable({}, { __tostring = function() error("odd") end })
        end),
        weather_tool(),
      },
    }
    s.reply, s.err = s.agent:run("try")
  end,
}

flows["a loop"] = {
  code = "loop_detected",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = model(function()
        return { calls = { call("weather", '{"city":"\\u00c5s"}'), call("look") } }
      end),
      tools = { weather_tool(), ah.tool { name = "look", description = "Looks.",
        handler = function() return "seen" end } },
      loop_detector = { stop = 4, warn = 3, exempt = { "look", "listen" } },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    assert(not exact or s.err.tool == "weather", "the error does not name the tool")
  end,
}

flows["fenced in"] = {
  text = "still here",
  attempt = function(s)
    ah = require "agenthost"
    local said = setmetatable({}, { __tostring = function() return "printed" end })
    local function tool(name, handler)
      return ah.tool { name = name, description = "Goes wrong.", handler = handler,
        memory = 1 << 16, max_result = 1024 }
    end
    s.exit, s.results = os.exit, {}
    s.agent = ah.agent {
      model = calling({ call "eat", call "leave", call "say", call "tell", call "catch" },
        "still here"),
      tools = {
        tool("eat", function() return #("x"):rep(1 << 20) end),
        tool("leave", function() os.exit(0) end),
        tool("say", function() return nil, said end),
        tool("tell", function() return ("\u{263a}"):rep(2000) end),
        tool("catch", function()
          ah.sleep(0.001)
          return pcall(string.rep, "x", 1 << 20) and "too much" or "caught"
        end),
      },
      on = { tool_invoked = function(e) s.results[#s.results + 1] = e.content end },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    assert(not s.exit or s.exit == os.exit, "os.exit is not what it was")
    local says = { "the limit is 65536", "os.exit would end", "printed", "left out", "caught" }
    for i = 1, exact and #says or 0 do
      assert(s.results[i]:find(says[i], 1, true), s.results[i])
    end
  end,
}

flows["long results"] = {
  text = "all of it",
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { memory = true }
    s.agent = ah.agent {
      model = calling({ call "rows", call "raise", call "none", call "again" }, "all of it"),
      resources = { filesystem = s.fs }, budget = { total_tokens = 100000, tool_calls = 9 },
      tools = {
        ah.tool { name = "rows", description = "Many rows.", max_result = 1024, handler = function()
          local rows = {}
          for i = 1, 200 do
            rows[i] = { id = i, text = "a, b" }
          end
          return ah.result { message = "Found.", payload = rows }
        end },
        ah.tool { name = "raise", description = "Fails.",
          handler = function(args) return args.none.there end },
        ah.tool { name = "none", description = "Nobody.", handler = function() return nil end },
        ah.tool { name = "again", description = "Text.", max_result = 1024,
          handler = function() return ("line\n"):rep(1000) end },
      },
      on = { tool_invoked = function(e) s[e.name] = e end },
    }
    s.reply, s.err = s.agent:run("all")
  end,
  judge = function(s, exact)
    if exact then
      assert(#s.rows.value == 200 and s.raise.error:find("traceback", 1, true), "what is told")
      assert(s.none.content == "null" and s.rows.content:find("tool%-output/"), "what is shown")
      assert(#assert(s.fs:list "tool-output") == 2, "what is kept")
    end
    for _, path in ipairs(s.fs and assert(s.fs:glob("**")) or {}) do
      assert(#assert(s.fs:read(path)) > 1024, "a part of a file")
    end
  end,
}

flows["direct answers"] = {
  text = "shown\n\nshown",
  attempt = function(s)
    ah = require "agenthost"
    local show = ah.tool { name = "show", description = "Shows.", return_direct = true,
      handler = function() return "shown" end }
    local look = ah.tool { name = "look", description = "Looks.",
      handler = function() return "seen" end }
    local asked = 0
    s.agent = ah.agent {
      model = model(function()
        asked = asked + 1
        return asked == 1 and "" or asked == 2 and { calls = { call "show", call "look" } }
          or asked == 3 and { calls = { call "show", call "show" } } or "shown\n\nshown"
      end),
      on_empty = "retry", tools = { show, look },
      strategies = { ah.unlock { tools = "show", after = "look" },
        ah.unlock { tools = "look", when = function() return true end, name = "second" } },
    }
    s.reply, s.err = s.agent:run("show it")
  end,
  judge = function(s, exact)
    assert(not exact or s.reply.stop == "tool", "why it ended")
  end,
}

flows["last answer"] = {
  text = "enough",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = model(function(_, request)
        return request.options.tool_choice == "none" and "enough"
          or { calls = { call("weather", { city = "Rome" }) } }
      end),
      tools = { weather_tool() }, max_iterations = 1, on_max = "answer",
      options = { tool_choice = "auto" },
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
}

flows["messages"] = {
  text = "I know",
  attempt = function(s)
    ah = require "agenthost"
    s.reply, s.err = ah.run {
      model = model(function() return "I know" end),
      messages = {
        { role = "system", content = "Be brief." },
        { role = "user", content = "hi", timestamp = 1.5 },
        { role = "assistant",
          tool_calls = { { id = "a", name = "look", arguments = { at = 1 } } } },
        { role = "tool", tool_call_id = "a", name = "look", content = "seen" },
        { role = "assistant", content = "hello" },
      },
      "and now?",
    }
    s.back = s.reply and s.reply.messages
  end,
  judge = function(s, exact)
    assert(not exact or #s.back == 7, "messages")
  end,
}

flows["demo models"] = {
  attempt = function(s)
    ah = require "agenthost"
    s.reply, s.err = ah.run {
      model = "demo/tools", tools = { weather_tool() }, "How is it in Rome?",
    }
  end,
  judge = function(s, exact)
    assert(not s.reply or s.reply.text:find("^The tools said:\n%- weather: "), "answer")
    assert(not exact or s.reply.rounds == 1, "rounds")
  end,
}

flows["declarations"] = {
  attempt = function(s)
    ah = require "agenthost"
    s.tools = {
      ah.tool { name = "a", description = "Short forms.", params = {
        text = "string", n = "integer?", list = { "string" },
        deep = { x = "number", y = { z = "boolean?" } },
      } },
      ah.tool { name = "c", description = "Examples.", params = { n = "integer" },
        examples = { { input = { n = 1 }, output = "x" }, { input = { n = 2 } } } },
      ah.tool { name = "b", description = "JSON Schema as text.",
        schema = [[{"type":"object","properties":{
          "p":{"anyOf":[{"enum":[1,"two",null]},{"type":"array"}]}}}]] },
      weather_tool(),
    }
    s.spec = s.tools[1].spec
    s.schema = ah.schema.short { name = "string", age = "integer?" }
    local again = ah.schema(s.schema:text())
    s.ok, s.value = again:validate({ name = "Ada", age = 36 })
    s.bad, s.message, s.faults = again:validate({ name = 1, aeg = 2 }, "forbid")
    s.refused = { select(2, pcall(ah.tool, { name = "A", description = "x" })),
      select(2, pcall(ah.tool, { name = "a", descripton = "x" })),
      select(2, pcall(ah.tool, { name = "a", description = "x", examples = { { input = 1 } } })),
      select(2, pcall(ah.tool, { name = "a", description = "x", params = { q = "strin" } })),
      select(2, pcall(ah.schema, { type = "strange" })),
      select(2, pcall(ah.type, { name = "T", zzz = 1 })),
      select(2, pcall(ah.resource, { provide = print, scop = 1 })) }
  end,
  judge = function(s, exact)
    assert(s.ok ~= false and not s.bad and not s.undone and not s.told, "validation")
    if exact then
      assert(s.spec.parameters.properties.deep and s.ok and s.value.age == 36, "schema")
      assert(#s.faults == 2 and #s.refused == 7, "faults")
    end
  end,
}

local function plain_tool(name, handler)
  return ah.tool { name = name, description = "The tool " .. name .. ".",
    handler = handler or function() return name end }
end

-- The model's turns, by the number of earlier answers; "again" is answered "fine".
local function script(mode, turns)
  return ah.scripted { tool_change_mode = mode, answer = function(request)
    local last, n = request.entries[#request.entries], 1
    if last.type == "user" and last.content[1].text == "again" then
      return "fine"
    end
    for _, e in ipairs(request.entries) do
      n = n + (e.type == "assistant" and 1 or 0)
    end
    return turns[n] or turns[#turns]
  end }
end

flows["tools that come and go"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local late, other = plain_tool "late", plain_tool "other"
    s.agent = ah.agent {
      model = script("dispatcher", {
        { calls = { call "first" } },
        { calls = { call("call_tool", { name = "late", arguments = {} }), call "drop" } },
        "done",
      }),
      tools = {
        plain_tool("first", function(_, ctx) ctx:add_tools { late } end),
        plain_tool("drop", function(_, ctx) ctx:remove_tools "first" end),
      },
      strategies = { function(m) return m.name == "first" and m.value == nil and other or nil end },
      on = { tools_injected = function(e) s.told = #e.tool_names end },
    }
    s.reply, s.err = s.agent:run("go")
    s.agent:add_tools(plain_tool "last")
    s.agent:remove_tools "last"
  end,
  judge = function(s, exact)
    if exact then
      assert(table.concat(s.reply.injected_tools, " ") == "late other", "injected")
      assert(s.reply.removed_tools[1] == "first" and s.told == 1, "removed, told")
    end
  end,
}

-- The features that lua/agenthost/strategies/ready.lua uses: an answer before a call, a state,
-- tools of the start and later ones, bound again in a loaded conversation.
flows["strategies"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local start, come = plain_tool "start", plain_tool "come"
    local gate = { name = "gate", tools = { start }, later = { come } }
    function gate.before(_, m)
      return m.name == "come" and not m.state and "Not yet." or nil
    end
    function gate.after(_, m)
      m.state = { tool = m.name, before = m.state }
      m:remove(m.name)
      return m.name == "start" and come or nil
    end
    local turns = { { calls = { call "come", call "start" } }, "one", { calls = { call "come" } },
      "done" }
    local first = ah.agent { model = script("append", turns), strategies = { gate } }
    local ok, err = first:run("go")
    if ok then
      ok, err = first:save(path)
    end
    if ok then
      s.agent, err = ah.load(path, { model = script("append", turns), strategies = { gate } })
    end
    os.remove(path)
    if s.agent then
      s.reply, err = s.agent:run("on")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      assert(text:find('"content":"Not yet."', 1, true), "answered")
      assert(text:find('"state":{"before":{"tool":"start"},"tool":"come"}', 1, true), "state")
      assert(s.reply.removed_tools[1] == "come", "handler")
    end
  end,
}

-- One tool is searched, one is called without a search; both are bound again in a loaded
-- conversation.
flows["tools to be found"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local set = { ah.search { max = 1, tools = { plain_tool "get_bill", plain_tool "send_mail" } } }
    local turns = { { calls = { call("search_tools", { query = "bills" }), call "get_bill" } },
      { calls = { call("search_tools", { query = "bell" }), call "send_mail" } }, "done" }
    local first, err = ah.agent { model = script("append", turns), strategies = set }
    local ok = first and first:save(path)
    if ok then
      s.agent, err = ah.load(path, { model = script("append", turns), strategies = set })
    end
    os.remove(path)
    if s.agent then
      s.reply, err = s.agent:run("on")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      assert(text:find("Words that are there: bill.", 1, true), "near")
      assert(table.concat(s.reply.injected_tools, " ") == "get_bill send_mail", "found")
    end
  end,
}

flows["entities"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local Order = ah.entity { name = "Order", fields = { "id" } }
    Order:tool { name = "fail", description = "Fails.", handler = function(self)
      self.items[1], self.more = 2, {}
      error("no", 0)
    end }
    local Customer = ah.entity { name = "Customer", id = function(self) return self.key end,
      find = function() return s.customer end }
    Customer:tool { name = "orders", description = "Orders.", params = { n = "integer = 1" },
      handler = function(_, args) return { Order { id = args.n, items = { 1 }, f = print } } end }
    s.customer = Customer { key = "c-1", _hidden = 1 }
    s.agent = ah.agent { model = calling({ call "find", call "customer_c1_orders",
      call "order_1_fail", call "find", call "drop" }, "done"), discover = true,
      log = function() end, tools = {
        ah.tool { name = "find", description = "Finds.",
          handler = function() return { s.customer, Customer {} } end },
        ah.tool { name = "drop", description = "Drops.",
          handler = function() return ah.retract(Order { id = 1 }) end },
      } }
    s.reply, s.err = s.agent:run("go")
    s.fork = s.agent:fork()
    s.names = ah.tools_of(s.customer)[1].name
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      assert(s.names == "customer_c1_orders", "name")
      assert(text:find("execution failed: no", 1, true), "failure")
      assert(text:find('"names":["order_1_fail"],"type":"tools_removed"', 1, true)
        or text:find('"type":"tools_removed","names":["order_1_fail"]', 1, true), "removed")
    end
  end,
}

flows["agents of agents"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local helper = ah.agent { name = "helper", log = function() end,
      model = model(function() return "helped" end) }
    local other = ah.agent { name = "other", system = "Other.", log = function() end,
      model = model(function() return "done" end), params = { n = 1 },
      tools = { ah.tool { name = "look", description = "Looks.", handler = function() end } },
      setup = function(conversation)
        s.set_up = conversation.id
        conversation:set_system("Other of " .. #conversation.id)
        conversation:add_tools(ah.tool { name = "put", description = "Puts.",
          handler = function() end })
      end }
    s.agent = ah.agent { system = "First.", log = function() end,
      model = calling({ call("helper", { request = "x" }), call "handoff_to_other" }, "done"),
      tools = { helper:as_tool { description = "Helps.", keep_conversation = true },
        ah.handoff { to = other, when = "Now." } } }
    s.reply, s.err = s.agent:run("go")
    s.fork = s.agent:fork()
  end,
  judge = function(s, exact)
    if exact then
      assert(s.reply.agent == "other" and s.set_up, "active")
      assert(s.agent:transcript():find("helped", 1, true), "helped")
    end
  end,
}

flows["conversations of one agent"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local Note = ah.type { name = "Note", fields = { text = "string" } }
    local session = ah.session()
    session:register(Note)
    local agent = ah.agent { model = calling({ call "own" }, "done"), system = "S",
      params = { user = "x" }, session = session, tools = { plain_tool "all" },
      log = function() end,
      setup = function(conversation)
        local mine = conversation.id .. conversation.params.user
        conversation:set_system(mine)
        conversation.session:dispatch(Note { text = mine })
        conversation.resources.box = mine
        ah.sleep(0)
        conversation:add_tools(ah.tool { name = "own", description = "Own.",
          handler = function(_, ctx) return mine .. ctx.resources:get "box" end })
      end }
    s.agent, s.err = agent:open { id = "a", params = { user = "y" }, resources = { other = 1 } }
    if s.agent then
      s.reply, s.err = s.agent:run("go")
    end
    if s.reply then
      s.fork = s.agent:fork()
      s.reply, s.err = s.fork:run("on")
    end
    agent:close()
  end,
  judge = function(s, exact)
    if exact then
      assert(s.agent:transcript():find('"ayay"', 1, true), "the tool")
      assert(s.agent:transcript():find('"text":"ay"', 1, true), "the system text")
    end
  end,
}

flows["a registry"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local late = plain_tool "late"
    ah.tool_group { name = "torture", tools = { plain_tool "a", plain_tool "b" } }
    local registry = ah.registry { "torture" }
    registry:register(plain_tool("more", function() registry:register(late):remove "b" end))
    registry:pick { "a" }
    s.specs = registry:tools_for_llm()
    s.call, s.err = registry:execute("a", {})
    s.agent = not s.err and ah.agent {
      model = script("append", { { calls = { call "more", call "late", call("out", { n = 1 }) } },
        "done" }),
      registry = registry,
      executors = { out = function(args) return args.n end },
    } or nil
    if s.agent then
      s.reply, s.err = s.agent:run("go")
      registry:replace(plain_tool "late")
    end
    s.names = registry:names()
  end,
  judge = function(s, exact)
    local call_failed = s.call and not s.call.success
    assert(not call_failed or s.call.content:find "memory", "an odd reply")
    if exact then
      assert(s.call.success and #s.specs == 3 and #s.names == 3, "registry")
      assert(s.reply.messages[5].content == "1" and s.reply.removed_tools[1] == "b", "run")
    end
  end,
}

--- Each call changes everything or nothing: the n-th leaves its number everywhere.
flows["what calls leave behind"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local fs = ah.filesystem { memory = true }
    local over = fs:overlay()
    local registry, session = ah.registry { plain_tool "a" }, ah.session()
    local other = assert(ah.agent { model = "demo/echo", registry = registry })
    local tools = {}
    tools[1] = ah.tool { name = "leave", description = "Leaves its number.",
      params = { n = "integer" },
      parallel = true, handler = function(args)
        local n = args.n
        assert(over:append("log", n .. "\n"))
        assert(n % 2 == 0 or over:commit())
        registry:register(plain_tool("r" .. n)):pick("r" .. n)
        other:send("n" .. n)
        other:add_tools(plain_tool("t" .. n))
        session.dispatcher:subscribe("nothing", print)()
        assert(other:use "demo/tools")
        if n == 3 then
          over:drop()
          error "at random"
        end
      end }
    local function run(calls)
      return ah.run { model = calling(calls, "done"), tools = tools, session = session, "go" }
    end
    tools[2] = ah.tool { name = "nest", description = "Runs.", handler = function()
      assert(run { call("leave", { n = 4 }), call("leave", { n = 6 }) })
      assert(over:commit())
    end }
    s.over, s.registry, s.other = over, registry, other
    s.reply, s.err = run { call("leave", { n = 1 }), call("nest", {}), call("leave", { n = 3 }),
      call("leave", { n = 2 }) }
    s.done = true
  end,
  judge = function(s, exact)
    local log = s.done and (s.over:read "log" or "") or ""
    local said = s.done and s.other:transcript() or ""
    for _, n in ipairs { 1, 2, 3, 4, 6 } do
      local left = log:find(n .. "\n", 1, true) ~= nil
      assert(not exact or left == (n ~= 3), "left " .. n)
      if s.done then
        assert(left == s.registry:has("r" .. n), "half a call: registry")
        assert(left == (said:find('"n' .. n .. '"', 1, true) ~= nil), "half a call: message")
        for _, name in ipairs { "t", "r" } do
          local told = said:find(('"name":"%s%d"'):format(name, n), 1, true) ~= nil
          assert(left == told, "half a call: tools")
        end
      end
    end
  end,
}

flows["tools in brief"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local tools = { plain_tool "a", plain_tool "b" }
    local turns = { { calls = { call("pick_tools", { tools = { "a", "c" } }), call "b" } }, "done" }
    local function fields(mode, keep)
      return { model = script(mode, turns), tools = tools, brief = true, keep_picked = keep }
    end
    local first = ah.agent(fields("append", true))
    local ok, err = first:run("go")
    if ok then
      ok, err = first:save(path)
    end
    if ok then
      s.agent, err = ah.load(path, fields("list_changed", false))
    end
    os.remove(path)
    if s.agent then
      s.picked = s.agent:transcript()
      s.reply, err = s.agent:run("on")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      assert(s.picked:find('"by":{"picked":true}', 1, true), "picked")
      assert(not s.picked:find('"by":{"picked":false}', 1, true), "kept")
      assert(s.agent:transcript():find('"by":{"picked":false}', 1, true), "cleared")
    end
  end,
}

flows["doubles of tools"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local out = { strict = true, returns = { b = function() return "two" end },
      { calls = { { name = "a", returns = "one" }, call "b" } },
      { expect = { tools = { "a" } }, text = "done" } }
    s.reply, s.err = ah.run { model = ah.scripted(out),
      tools = { plain_tool("a", function() s.ran = true end), plain_tool "b" }, "go" }
  end,
  judge = function(s, exact)
    assert(not s.ran, "the handler ran in spite of its double")
    if exact then
      assert(s.reply.messages[3].content == "one" and s.reply.messages[4].content == "two", "given")
    end
  end,
}

flows["a section is read"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = script("restart", {
        { calls = { call("read_section", { section_key = "a" }) } },
        { calls = { call "late" } },
        "done",
      }),
      ah.section { key = "a", template = "A", summary = "s", visibility = "summary",
        tools = { plain_tool "late" }, ah.section { key = "b", template = "B" } },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.reply.injected_tools[1] == "late", "injected")
      assert(s.agent:transcript():find('"open":["a"]', 1, true), "provenance")
    end
  end,
}

flows["a handler that asks for sections"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local asked = 0
    local wants = { a = "full", b = "summary" }
    s.session = ah.session()
    s.agent = ah.agent {
      model = script("restart", {
        { calls = { call "ask" } },
        { calls = { call "late" } },
        "done",
      }),
      session = s.session,
      options = { tool_choice = "required" },
      max_tools = 4,
      tools = { ah.tool { name = "ask", description = "Asks.", handler = function()
        asked = asked + 1
        error(ah.error { code = "visibility_expansion_required", message = "more",
          requested_overrides = wants, reason = "why" })
      end } },
      strategies = { function(m)
        if m.name == "late" then
          m:prompt(m.tools[1].description .. m.raw_arguments)
        end
      end },
      ah.section { key = "a", template = "A", summary = "s", visibility = "summary",
        tools = { plain_tool "late", plain_tool "later" } },
      ah.section { key = "b", template = "B", summary = "s", tools = { plain_tool "early" } },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.reply.injected_tools[1] == "late", "injected")
      assert(s.reply.removed_tools[1] == "early", "removed")
      assert(#s.session.visibility_overrides == 2, "stored")
    end
  end,
}

flows["a conversation that lasts"] = {
  text = "two",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local add = plain_tool "add"
    local turns = { { calls = { call "add" } }, "one", "two" }
    local first = ah.agent { model = script("append", turns), tools = { add }, system = "S" }
    local ok, err = first:run("go")
    if ok then
      ok, err = first:save(path)
    end
    local loaded
    if ok then
      loaded, err = ah.load(path, { tools = { add }, model = script("append", turns) })
    end
    os.remove(path)
    s.agent = loaded and loaded:fork()
    if s.agent then
      assert(s.agent:use(script("inline", turns)))
      s.reply, err = s.agent:run("on")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      assert(#s.reply.messages == 7, "messages")
    end
  end,
}

flows["a tool that has changed"] = {
  text = "two",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local turns = { { calls = { call "pay" } }, "one", "two" }
    local function pay(version)
      return ah.tool { name = "pay", description = "Pays.", version = version,
        annotations = { destructive = true }, examples = { { description = "x" } },
        handler = function() return version end }
    end
    local function fields(rule)
      return { tools = { pay "2" }, on_drift = rule, brief = true, model = script("inline", turns),
        on = { warning = function() end } }
    end
    local first = ah.agent { model = script("inline", turns), tools = { pay "1" }, brief = true }
    local ok, err = first:run("go")
    if ok then
      ok, err = first:save(path)
    end
    local refused
    if ok then
      refused, err = ah.load(path, fields "refuse")
    end
    if refused then
      s.agent, err = ah.load(path, fields "tell")
      os.remove(path)
      s.refused = refused:fork():run("on")
    end
    os.remove(path)
    if s.agent then
      s.reply, err = s.agent:run("on")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      assert(tostring(s.refused) == "two", "refused")
      assert(s.agent:transcript():find('"version":"2"', 1, true), "declared anew")
    end
  end,
}

flows["a conversation and its session"] = {
  text = "two",
  attempt = function(s)
    ah = require "agenthost"
    local path = os.tmpname()
    local Item = ah.type { name = "Item", fields = { name = "string" } }
    local session = ah.session { types = { Item } }
    local prompt = ah.prompt { ah.section { key = "a", template = "A ${n}", summary = "s",
      visibility = "summary", params = { n = "integer = 1" }, tools = { plain_tool "late" } } }
    local turns = { { calls = { call("read_section", { section_key = "a" }) } }, "one", "two" }
    local first = ah.agent { model = script("append", turns), prompt = prompt, session = session }
    session:dispatch(Item { name = "bread" })
    local ok, err = first:run("go")
    if ok then
      ok, err = first:save(path)
    end
    if ok then
      ok, err = ah.load(path, { model = script("append", turns), prompt = prompt })
    end
    if ok then -- without a session the items are only kept
      ok, err = ok:save(path)
    end
    s.session = ah.session { types = { Item } }
    if ok then
      s.agent, err = ah.load(path, { model = script("append", turns), prompt = prompt,
        session = s.session })
    end
    os.remove(path)
    if s.agent then
      s.session:dispatch(ah.set_visibility_override { path = "a", visibility = "summary" })
      s.reply, err = s.agent:run("on", { params = { n = 2 } })
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      assert(s.session:snapshot() == '{"agenthost_session":1,"slices":{"Item":[{"name":"bread"}],'
        .. '"visibility_overrides":[{"path":"a","visibility":"summary"}]}}', "session")
      assert(s.agent:transcript():find('"tools_removed","names":["late"]', 1, true), "closed")
    end
  end,
}

-- The state goes through two files; then the conversation goes through a file of version 0.1.0.
flows["a conversation and its entities"] = {
  text = "old",
  attempt = function(s)
    ah = require "agenthost"
    local path, balance = os.tmpname(), 10
    local Account
    Account = ah.entity { name = "Account", state = { "balance" },
      find = function(id) return Account { id = id, balance = 0 } end }
    Account:tool { name = "add", description = "Adds.", params = { n = "integer" },
      handler = function(self, args)
        self.balance = self.balance + args.n
        balance = self.balance
        return self.balance
      end }
    local open = ah.tool { name = "open", description = "Opens.",
      handler = function() return Account { id = "7", balance = 10 } end }
    local add = { calls = { call("account_7_add", { n = 1 }) } }
    local turns = { { calls = { call "open" } }, add, "one", add, "two", "old" }
    local fields = { model = script("append", turns), discover = true, tools = { open } }
    local ok, err = ah.agent(fields)
    for _ = 1, 2 do
      local agent = ok
      if agent then
        ok, err = agent:run "go"
      end
      if ok then
        ok, err = agent:save(path)
      end
      if ok then
        ok, err = ah.load(path, fields)
      end
    end
    s.balance = balance
    if ok then
      local file <close> = assert(io.open(path, "w"))
      file:write((ok:transcript():gsub("}$", ',"session":{"agenthost_session":1,"slices":{}}}')))
    end
    if ok then
      s.agent, err = ah.load(path, fields)
    end
    os.remove(path)
    if s.agent then
      s.reply, err = s.agent:run "on"
    end
    s.err = err
  end,
  judge = function(s, exact)
    if exact then
      assert(s.balance == 12, "state")
    end
  end,
}

flows["hooks and a budget"] = {
  text = "better",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = script("append", { { calls = { call "act", call "act" } }, "well", "better" }),
      tools = { plain_tool "act" },
      policies = { function(c) return "ask", "it acts: " .. c.name end,
        ah.policies.requires { tool = "other", after = "act" } },
      approve = function(c)
        ah.sleep(0)
        return true, c.arguments
      end,
      feedback = { { every = 1, text = function(f) return f.calls .. " calls" end } },
      checks = { function(a) return a.text == "well" and "Once more." or nil end },
      budget = { requests = 100, cost = 9,
        prices = { ["scripted/script"] = { input = 1, output = 2 } } },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      assert(text:find("1 calls", 1, true) and text:find("2 calls", 1, true), "feedback")
    end
  end,
}

-- Blocked or redacted texts are not in the conversation, whichever allocation fails.
flows["the gate"] = {
  text = "through",
  attempt = function(s)
    ah = require "agenthost"
    local registry = ah.registry { plain_tool "inner" }
    local give = ah.tool { name = "give", description = "Gives.", params = { n = "integer?" },
      handler = function(args)
        local r = registry:execute("inner")
        return ah.ok({ secret = "hidden words", n = args.n, inner = r and r.content },
          "hidden words")
      end }
    ah.gate { policies = { { shadow = true, before = function() return "deny", "a shadow" end } } }
    s.agent = ah.agent {
      model = script("append", { { calls = { call("give", { n = 1 }), call("give", { n = 3 }) } },
        "through" }),
      tools = { give },
      policies = {
        function(c) if c.arguments.n == 1 then return "rewrite", { n = 2 } end end,
        { after = function(c, result)
          if c.name ~= "give" then return "replace", "another" end
          if c.arguments.n == 3 then return "block", "too much" end
          return "redact", { result.value.secret and "/secret" or "" }
        end },
      },
      guards = { input = function(text) return text == "forbidden" and "no" or nil end,
        output = { function(text) return text ~= "forbidden", "no" end } },
    }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    local text = s.agent and s.agent:transcript() or ""
    assert(not text:find("hidden words", 1, true), "what is kept back is there")
    if exact then
      assert(text:find("[redacted]", 1, true) and text:find("too much", 1, true), text)
      assert(text:find("another", 1, true), text)
    end
    ah.gate {}
  end,
}

flows["asks"] = {
  text = "asked",
  attempt = function(s)
    ah = require "agenthost"
    local wonder = ah.tool { name = "wonder", description = "Asks.", parallel = true,
      params = { n = "integer" },
      handler = function(args, ctx)
        return ctx:ask { question = "How many?", params = { cups = "integer", why = "string?" },
          default = { cups = args.n }, timeout = 60 }.cups
      end }
    s.agent = ah.agent {
      model = script("append", { { calls = { call("wonder", { n = 1 }), call("wonder", { n = 2 }),
        call "act" } }, "asked" }),
      tools = { wonder, plain_tool "act" },
      policies = { function(c) return c.name == "act" and "ask" or nil, "it acts" end },
      approve = function() ah.sleep(0) end,
      on = { ask_closed = function(e) s.closed = (s.closed or "") .. e.how .. " " end },
      asks = function(ask)
        ah.sleep(0)
        if ask.kind == "approval" then return true, {} end
        if ask.call.arguments.n == 2 then return { cups = "2" } end
      end,
    }
    s.agent:on_ask(function(ask)
      ah.sleep(0)
      if ask.kind == "approval" then return false, "the first has failed" end
      assert(not ask:respond "none")
      ask:respond { cups = 3 }
    end)
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.closed == "answered answered answered ", s.closed)
      assert(s.agent:transcript():find('"3"', 1, true), "the second front end")
    end
  end,
}

flows["a budget in which requests wait"] = {
  text = "all of it",
  attempt = function(s)
    ah = require "agenthost"
    s.budget = ah.budget { output_tokens = 16, cost = 1, reserve = true, used = { requests = 1 },
      prices = { ["*"] = { input = 1 }, ["scripted/*"] = { input = 2, output = 3 } } }
    local part = ah.tool { name = "part", description = "A part.", parallel = true,
      params = { n = "integer" },
      handler = function()
        return assert(ah.run { budget = s.budget, options = { max_tokens = 6 }, "part",
          model = ah.scripted { { text = "a part", usage = { input = 2, output = 1 },
            delay = 0.001 } } }).text
      end }
    s.agent = ah.agent { tools = { part }, model = calling({ call("part", { n = 1 }),
      call("part", { n = 2 }), call("part", { n = 3 }), call("part", { n = 4 }) }, "all of it") }
    s.reply, s.err = s.agent:run("go")
  end,
  judge = function(s, exact)
    local used, reserved = s.budget and s.budget:used(), s.budget and s.budget:reserved()
    assert(not used or used.output_tokens <= 16 and reserved.total_tokens == 0, "the budget")
    assert(not exact or used.requests == 5 and used.output_tokens == 4, "parts")
  end,
}

flows["schemas"] = {
  attempt = function(s)
    ah = require "agenthost"
    local schema = ah.schema({
      allOf = { { properties = { a = { ["$ref"] = "names#/items" } } },
        { patternProperties = { ["^n_"] = { multipleOf = 0.1 } } } },
      properties = { l = { type = "array", uniqueItems = true, contains = { type = "integer" } },
        d = { format = "date" }, e = { ["$ref"] = "#/$defs/inner" },
        k = { oneOf = { { properties = { t = { const = "x" } } },
          { properties = { t = { const = "y" } } } } } },
      ["$defs"] = { inner = { default = {}, properties = { f = { default = 1 } } } },
      unevaluatedProperties = false,
    }, { formats = true, unknown_keywords = "allow",
      documents = { names = { items = { type = "string", pattern = "^(?<a>a)\\k<a>*$" } },
        broken = { type = "strng" }, within = { ["$defs"] = { d = { ["$id"] = "deep" } } } } })
    local dialect = ah.schema({ ["$schema"] = "http://e.com/m", ["$id"] = "http://e.com/s",
      ["$dynamicAnchor"] = "T", dependentRequired = { a = { "b", "a~" } },
      dependentSchemas = { a = { minProperties = 1 }, b = true }, ["$ref"] = "http://e.com/deep",
      properties = { a = { ["$dynamicRef"] = "o#T" }, b = { ["$ref"] = "#/properties/b~1~0" },
        ["b/~"] = { enum = { 1, "1", { 1 } } }, c = { ["$ref"] = "#here" },
        m = { ["$ref"] = "https://json-schema.org/draft/2019-09/schema" } },
      ["$defs"] = { o = { ["$id"] = "o", ["$dynamicAnchor"] = "T" }, h = { ["$anchor"] = "here" },
        c = { anyOf = { { const = 1 }, { oneOf = { { minimum = 2 }, { minimum = 3 } } } } } },
    }, { documents = { ["http://e.com/m"] = { ["$vocabulary"] = {
        ["https://json-schema.org/draft/2020-12/vocab/core"] = true,
        ["https://json-schema.org/draft/2020-12/vocab/applicator"] = true,
        ["https://json-schema.org/draft/2020-12/vocab/validation"] = true } },
      ["http://e.com/d"] = { ["$defs"] = { d = { ["$id"] = "deep" } } } } })
    s.dialect = dialect:validate { a = {}, b = { 1 }, ["a~"] = 1, m = { minimum = 1 } }
    s.undone = dialect:validate { a = 1, m = { minimum = "1" } }
    s.told = ah.schema({ ["$ref"] = "#/$defs/c", ["$defs"] = { c = { anyOf = { { const = "x" },
      { oneOf = { { minimum = 2 }, { minimum = 3 } } } } } } }):validate(1)
    s.ok, s.value = schema:validate({ a = "aa", n_x = 0.3, l = { 1, "b" }, d = "2024-02-29" })
    s.bad, s.message = schema:validate({ a = "b", n_x = 0.35, l = { 1, 1 }, d = "x", z = 1,
      k = { t = "z" } })
    s.hints = select(2, ah.schema({
      properties = { kind = { enum = { "file", "link" } }, tags = { type = "array" },
        n = { type = "integer" }, host = { format = "idn-hostname" }, re = { format = "regex" } },
      ["if"] = { properties = { kind = { const = "file" } } }, ["then"] = { required = { "path" } },
    }, { formats = true }):validate_text([[{"k\u0069nd":"file","tags":"[\"a\"]","n":null,
      "host":"b\u00fccher.example","re":"(","Path":1}]]))
    local many = {}
    for i = 1, 20 do
      many[i] = ah.schema { minimum = i // 2, title = "shared" }
    end
    s.shared = many[20]:validate(10.0)
    s.took, s.number = ah.schema({ type = "array", items = { type = "integer" } })
      :validate("7", { coerce = true })
    s.text = ah.schema.describe(ah.schema.short { n = "integer 1..3", s = "string?" })
  end,
  judge = function(s, exact)
    assert(s.ok ~= false and not s.bad and not s.undone and not s.told, "validation")
    if exact then
      assert(s.dialect, "dialects")
      assert(s.hints == "/path: is required; found a similar name, 'Path' (because kind is "
        .. '"file"); /tags: must be an array, found "[\\"a\\"]"; it is JSON in a string: send the '
        .. "value itself, without quotes; /n: must be an integer, found null; leave it out "
        .. 'instead; /re: must be a regular expression of ECMAScript, found "("', s.hints)
      assert(s.ok and s.value.e.f == 1 and s.number[1] == 7 and s.shared, "schemas")
      assert(s.message:find('/k/t: must be one of "x", "y", found "z"', 1, true), s.message)
      assert(s.text:find("n: integer 1..3", 1, true), s.text)
      assert(s.message:find("/z: unknown property", 1, true), s.message)
    end
  end,
}

flows["observers"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.types, s.warnings = {}, 0
    s.agent = ah.agent {
      model = calling({ call("weather", { city = "Rome" }), call "wether" }, "done"),
      tools = { weather_tool() },
      on = function(e)
        s.types[e.type] = ah.json.encode(e)
        s.warnings = s.warnings + (e.type == "warning" and 1 or 0)
        if e.type == "usage" or e.type == "warning" then
          error("no " .. e.type)
        end
      end,
      log = function(level, line)
        s.last = level .. line
        error "no log"
      end,
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
    ah.log("info", "told")
  end,
  judge = function(s, exact)
    if exact then
      assert(s.types.tool_invoked:find('"arguments"', 1, true) and s.types.done, "events")
      assert(s.warnings == 2 and s.last, "warnings")
    end
  end,
}

flows["prompts"] = {
  attempt = function(s)
    ah = require "agenthost"
    local function declare(overrides)
      return ah.prompt { ns = "n", key = "k", overrides = overrides, resources = {},
        output = { type = "object" },
        ah.section { title = "One", template = "\n  ${a}\n  $$ ${b}", params = { a = "string",
          b = "integer = 1" }, enabled = function(p) return p.b == 1 end,
          ah.tools_section { title = "Two", description = "two ${a}", tools = { weather_tool() } },
          ah.section { key = "three", template = "3", summary = "s ${a}",
            visibility = function(p) return p.a == "x" and "summary" or "full" end } } }
    end
    local prompt = declare()
    local h = prompt:hashes()
    s.text = prompt:render({ a = "x" }).text
    s.again = prompt:render({ one = { a = "x" } }).text
    s.open = tostring(prompt:render { a = "y" })
    s.tools = prompt:tools { a = "y" }
    s.section = prompt:section "one.three"
    s.other = declare { ["n/k"] = {
      sections = { ["one.three"] = { hash = h.sections["one.three"], template = "III" } },
      tools = { weather = { hash = h.tools.weather, description = "other" } } } }:render { a = "y" }
    s.refused = { select(2, pcall(declare, { ["n/k"] = { tool = {} } })),
      select(2, pcall(ah.prompt, { ah.section { key = "a", template = "${x}" } })),
      select(2, pcall(prompt.render, prompt, { c = 1 })),
      select(2, pcall(prompt.render, prompt)) }
  end,
  judge = function(s, exact)
    assert(s.text == nil or s.again == nil or s.text == s.again, "the same, rendered twice")
    if exact then
      assert(s.text:find("^## One\n\nx\n%$ 1\n\n### Two\n\ntwo x\n\ns x\n\n%-%-%-\n"), s.text)
      assert(#s.tools == 1 and s.section.key == "three" and #s.refused == 4, "members")
      assert(s.open:find("\n\n3$") and s.other.text:find("\n\nIII$"), "overrides")
      assert(s.other.tools[1].spec.description == "other", "description")
    end
  end,
}

flows["sections and output in a run"] = {
  text = '{"n":2}',
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = ah.scripted(function(request)
        local last = request.entries[#request.entries]
        local said = last.type == "user" and last.content[1].text
        if said == "again" then
          return '```json\n{"n":1,"text":"fine"}\n```'
        end
        return last.type == "tool_result" and { text = "no JSON" } or said ~= "go" and '{"n":2}'
          or { calls = { call("read_section", { section_key = "a" }), call("weather") } }
      end),
      ah.section { key = "a", template = "${x}", summary = "s", visibility = "summary",
        params = { x = "string" }, tools = { weather_tool() },
        enabled = function(p) return #p.x > 0 end },
      params = { x = "all" }, system = "S.",
      output = { type = "object", required = { "n" }, properties = { n = { type = "integer" } } },
    }
    s.reply, s.err = s.agent:run("go")
    s.value = s.reply and s.reply.value
    s.encoded = s.reply and ah.json.encode { s.reply }
  end,
  judge = function(s, exact)
    if exact then
      assert(s.value.n == 2 and s.reply.iterations == 3, "value")
      assert(s.encoded == '[{"n":2}]', s.encoded)
      assert(s.agent:transcript():find("Content of section 'a':\\n\\nall", 1, true), "content")
    end
  end,
}

-- Makes a session that adds up and keeps notes.
local function new_session(s)
  s.Note = ah.type { name = "Note", fields = { text = "string", list = "string[]?" } }
  s.Add = ah.type { name = "Add", fields = { n = "integer", by = "integer = 1" },
    render = function(v) return "added " .. v.n end }
  s.Total = ah.type { name = "Total", fields = { n = "integer" } }
  local session = ah.session { types = { s.Note } }
  session:register(s.Total, { keep = "latest" })
  session:reduce(s.Total, s.Add, function(view, event)
    return view:replace { { n = (view:latest() or { n = 0 }).n + event.value.n } }
  end)
  return session
end

flows["types and sessions"] = {
  attempt = function(s)
    ah = require "agenthost"
    local session = new_session(s)
    s.session = session
    session:dispatch(s.Note { text = "a", list = {} })
    session:dispatch(s.Add { n = 2 })
    s.added = true
    session[s.Note]:append { text = "b" }
    session[s.Note]:replace { { text = "c" }, { text = "d" } }
    local child = session:child()
    child[s.Note]:clear()
    s.bad, s.why = child:restore('{"agenthost_session":1,"slices":{"Total":[{"n":1},{}]}}')
    s.ok = assert(child:restore(session:snapshot()))
    s.same = child:snapshot() == session:snapshot() and child:view().parent[s.Note]:len() == 2
    local Seat = ah.type { name = "Seat", schema = { type = "object" } }
    session:register(Seat, { key = "row" })
    for i = 1, 4 do
      session:dispatch(Seat { row = i % 2, who = "w" .. i })
    end
    s.stop = session.dispatcher:subscribe(nil, function(v) s.heard = v.type end)
    session.dispatcher:publish { type = "x" }
    s.stop()
  end,
  judge = function(s, exact)
    assert(not s.bad, "restored what is none")
    assert(s.same ~= false, "another snapshot")
    local totals = s.session and s.added and s.session.Total:all() or {}
    assert(not s.added or (#totals == 1 and totals[1].n == 2), "total")
    if exact then
      assert(s.heard == "x" and s.why.code == "usage", "messages")
      assert(#s.session.Seat == 2 and s.session.Seat:all()[2].who == "w4", "keys")
    end
  end,
}

-- Every provided value is closed once, the newest first, whatever fails.
flows["resources"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.open, s.wrong = {}, nil
    local function resource(name, scope, other)
      return ah.resource { scope = scope,
        provide = function(ctx)
          local needs = other and ctx.resources:get(other)
          local value = { name = name, needs = needs }
          s.open[value] = true
          return value
        end,
        close = function(value)
          s.wrong = s.wrong or not s.open[value] or (value.needs and not s.open[value.needs])
          s.open[value] = nil
        end }
    end
    local use = ah.tool { name = "use", description = "Uses them.", handler = function(_, ctx)
      assert(ctx.resources:get("call").needs == ctx.resources:get "one")
      assert(ctx.filesystem:append("log", "x"))
    end }
    s.fs = ah.filesystem { memory = true }
    s.reply, s.err = ah.run { model = calling({ call("use", {}), call("use", { n = 1 }),
      call("use", {}) }, "done"), tools = { use }, "go",
      resources = { one = resource "one", call = resource("call", "tool_call", "one"), fs = s.fs } }
  end,
  judge = function(s, exact)
    assert(not s.wrong, "closed in a wrong order")
    if exact then
      assert(next(s.open) == nil and s.fs:read "log" == "xx", "left open")
    end
  end,
}

-- The final state has the effects of the calls that succeeded, and no others.
flows["transactions"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local session = new_session(s)
    s.ok, s.heard = {}, {}
    s.object = { n = 0, snapshot = function(o) return o.n end,
      restore = function(o, n) o.n = n end }
    s.fs = ah.filesystem { memory = true }
    session.dispatcher:subscribe("Note", function(v) s.heard[#s.heard + 1] = v.text end)
    s.session = session
    local function count(args, ctx)
      session:dispatch(s.Add { n = args.n })
      session[s.Note]:append { text = "n" .. args.n }
      ctx:publish(s.Note { text = "n" .. args.n })
      ctx:note("n" .. args.n)
      assert(s.fs:append("log", args.n .. "\n"))
      ctx:progress(1, "counted")
    end
    local tools = {
      ah.tool { name = "wait", description = "Counts, beside others.", params = s.Add,
        parallel = true, handler = function(args, ctx)
          count(args, ctx)
          ah.sleep(0.1)
        end },
      ah.tool { name = "set", description = "Counts in place.", params = s.Add, result = s.Add,
        examples = { { description = "One", input = { n = 1 }, output = { n = 1 } } },
        handler = function(args, ctx)
          ctx:enlist(s.object)
          s.object.n = s.object.n + args.n
          if args.n > 100 then
            return nil, "too much"
          end
          return args
        end },
    }
    local function run(calls)
      return ah.run { model = calling(calls, "done"), tools = tools, session = session,
        on = { tool_invoked = function(e) s.ok[#s.ok + 1] = e.success and e.arguments or nil end },
        "go" }
    end
    tools[3] = ah.tool { name = "nest", description = "Counts in a run.", handler = function(_, ctx)
      count({ n = 1000 }, ctx)
      assert(run { call("wait", { n = 2000 }), call("set", { n = 4 }) })
    end }
    s.reply, s.err = run {
      call("wait", { n = 1 }), call("wait", { n = 2 }), call("set", { n = 3 }),
      call("set", { n = 200 }), call("nest", {}),
    }
    s.done = true
  end,
  judge = function(s, exact)
    if exact then
      assert(s.session.Total:latest().n == 1 + 2 + 3 + 1000 + 2000 + 4, "total")
      assert(table.concat(s.heard, " ") == "n1 n2 n1000 n2000" and s.object.n == 7, "heard")
    end
    if s.done then -- one note and one line for each sum; no partial calls
      local sum, lines = 0, {}
      for i, note in ipairs(s.session.Note:all()) do
        sum, lines[i] = sum + tonumber(note.text:sub(2)), note.text:sub(2) .. "\n"
      end
      assert((s.fs:read "log" or "") == table.concat(lines), "half a call's lines were kept")
      local total = s.session.Total:latest()
      assert((total and total.n or 0) == sum + s.object.n, "half a call was kept")
    end
  end,
}

flows["yaml"] = {
  attempt = function(s)
    ah = require "agenthost"
    local value, message = ah.yaml.decode "a: &x [1, {b: c}]\nd: *x\n? e\n: \"f\"\n"
    s.json = value and ah.json.encode(value)
    assert(value or message:find "libyaml", message)
    assert(not ah.yaml.decode "a: 1\nb: {c: [1, 2]}\na: 2" and not ah.yaml.decode "[&y 1, *z]")
  end,
  judge = function(s, exact)
    assert(not s.json or s.json == '{"a":[1,{"b":"c"}],"d":[1,{"b":"c"}],"e":"f"}')
    assert(not exact or s.json or not ah.yaml.decode "1")
  end,
}

flows["watching files"] = {
  network = true,
  attempt = function()
    ah = require "agenthost"
    local path = os.tmpname()
    local remove <close> = setmetatable({}, { __close = function() os.remove(path) end })
    local function write()
      local file <close> = assert(io.open(path, "w"))
      file:write "text"
    end
    local told
    local w <close> = assert(ah.watch(path, nil, { quiet = 0.001 }))
    local f <close> = assert(ah.watch(path, function(c) told = c[1].kind end, { quiet = 0.001 }))
    write()
    local list = assert(w:next(5))
    assert(list[1].kind == "changed" or list[1].kind == "overflow", list[1].kind)
    for _ = 1, 100 do
      if told then break end
      ah.sleep(0.001)
    end
    assert(f and remove)
    assert(w:next(0.001) == nil)
  end,
}

flows["bytes"] = {
  attempt = function()
    ah = require "agenthost"
    local bytes = ah.random_bytes(3000)
    local text = ah.base64url.encode(bytes)
    assert(ah.base64url.decode(text) == bytes)
    assert(ah.base64.decode(ah.base64.encode(bytes)) == bytes)
    assert(not ah.base64.decode("not of it"))
    assert(#ah.hmac(bytes, text) == 64 and #ah.sha256(text, "bytes") == 32)
  end,
}

flows["json"] = {
  attempt = function(s)
    ah = require "agenthost"
    local many = {}
    for i = 1, 40 do
      many["k" .. i] = { i, i / 8, tostring(i), i % 2 == 0, ah.null }
    end
    s.text = ah.json.encode {
      many = many, empty = ah.array {}, none = ah.object {}, odd = "a\0b\"\\\u{263a}\n",
    }
    s.same = ah.json.encode(assert(ah.json.decode(s.text))) == s.text
    s.bad, s.why = ah.json.decode('{"a":1,"b":[1,2,{"c":"d","a":3,"a":4}]}')
    s.refused, s.what = pcall(ah.json.encode, { a = { b = { print } } })
  end,
  judge = function(s, exact)
    if exact then
      assert(s.same and s.why:find("duplicate") and not s.refused, "json")
    end
    assert(s.bad == nil and s.same ~= false, "wrong values")
  end,
}

-- Calls each method once, with two overlays on one file, and a nested one.
local function use_files(fs)
  assert(fs:write("a/b.txt", "one\ntwo\n"))
  assert(fs:append("a/b.txt", "three\n"))
  assert(fs:edit("a/b.txt", "two", "2"))
  assert(fs:mkdir("a/c") and fs:rename("a", "d") and fs:exists("d/c"))
  assert(fs:write("x/y/z", "z") and fs:delete("x", { recursive = true }))
  assert(fs:write(".gitignore", "*.md\n!d/**/[a-z].txt\n") and fs:write("d/no.md", "no"))
  local found = { fs:list("d", { gitignore = true }), fs:grep("^[2t]"),
    fs:glob("**/*.{txt,md}", { gitignore = true }) }
  local one <close> = fs:overlay()
  local two <close> = fs:overlay()
  assert(one:append("d/b.txt", "four\n") and two:edit("d/b.txt", "one", "1"))
  assert(one:write("new", assert(one:read("d/b.txt"))) and two:delete("d/c"))
  local inner <close> = two:overlay()
  assert(inner:append("d/b.txt", "five\n") and inner:commit())
  assert(one:commit() and two:commit())
  return assert(fs:read("d/b.txt")), found
end

flows["files in memory"] = {
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { files = { first = "1" } }
    s.refused = { s.fs:read("../x") }
    s.text, s.found = use_files(s.fs)
  end,
  judge = function(s, exact)
    if exact then
      assert(s.text == "1\n2\nthree\nfour\nfive\n" and #s.found[1] == 2, "files")
    end
    assert(not s.fs or s.fs:read("first") == "1", "the first file")
  end,
}

flows["files on the disk"] = {
  attempt = function(s)
    ah = require "agenthost"
    s.root = os.tmpname()
    s.base = assert(ah.filesystem { root = s.root:match("^(.*)/"), sync = false })
    s.name = s.root:match("[^/]*$") .. ".files"
    assert(s.base:mkdir(s.name))
    s.fs = assert(ah.filesystem { root = s.root .. ".files", sync = false })
    s.text, s.found = use_files(s.fs)
    assert(s.fs:write("set/in/one", "1") and s.fs:write("set/two", "2"))
    local o <close> = s.fs:overlay()
    assert(o:delete("set/in", { recursive = true }) and o:write("set/in", "a file"))
    assert(o:write("set/two", "b") and o:write("set/new/three", "3") and o:commit())
    local again <close> = assert(ah.filesystem { root = s.root .. ".files", sync = false,
      allow = { ".env.test" } })
    s.set = again:read "set/in" .. again:read "set/two" .. again:read "set/new/three"
    s.data = s.root .. ".lua"
    local f <close> = assert(io.open(s.data, "w"))
    f:write 'return { ["n/k"] = { sections = {} } }'
    f:close()
    s.prompt = ah.prompt { ns = "n", key = "k", overrides = s.data,
      ah.section { key = "a", template = "A." } }
  end,
  judge = function(s, exact)
    if exact then
      assert(s.text == "1\n2\nthree\nfour\nfive\n" and #s.found[1] == 2, "files")
      assert(s.set == "a fileb3" and s.prompt, "a set")
    end
    if s.base and s.name then -- all of the set, or none of it
      local two = s.fs and s.fs:read "set/two"
      assert(not s.fs or (two == "b") == (s.fs:read "set/in" == "a file"), "half a set")
    end
    os.remove(s.root or "")
    os.remove(s.data or "")
    for _, path in ipairs(s.fs and assert(s.fs:glob("**")) or {}) do
      assert(#assert(s.fs:read(path)) > 0, "an empty file")
    end
    if s.base and s.name then
      local gone = not s.base:exists(s.name) or s.base:delete(s.name, { recursive = true })
      assert(gone, "a temporary file is left")
    end
  end,
}

flows["looking at files"] = {
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { files = { ["a/one.txt"] = "One\r\ntwo\xff\nthree\n" } }
    local o <close> = s.fs:overlay()
    s.lines = assert(o:lines("a/one.txt", { last = true, max = 2, width = 4 }))
    s.around = assert(o:grep("t", { context = 1, ignore_case = true }))
    s.counts = assert(o:grep("^[ot]", { count = true, ignore_case = true }))
    s.meant = { select(2, o:read("a/noe.txt")), select(2, o:list("b")) }
    s.same = select(2, o:stat("one.txt"))
    s.why = select(2, o:edit("a/one.txt", "t", "x"))
  end,
  judge = function(s, exact)
    if exact then
      assert(s.lines.total == 3 and s.lines[1].text == "two\u{fffd}" and #s.around == 3, "lines")
      assert(s.counts[1].count == 3 and s.meant[1].message:find("a/one.txt", 1, true), "counts")
      assert(s.why.message:find("in lines 2", 1, true), "places")
    end
  end,
}

flows["built-in tools for files"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.fs = ah.filesystem { files = { a = "one\ntwo\n" } }
    s.agent = ah.agent {
      model = calling({ call("edit_file", { path = "a",
          edits = { { old = "one", new = "1" }, { old = "two", new = "2" } } }),
        call("write_file", { path = "a", content = "x" }) }, "done"),
      tools = ah.builtin { "edit_file", "write_file" },
      resources = { filesystem = s.fs },
    }
    s.reply, s.err = s.agent:run("edit")
  end,
  judge = function(s, exact)
    local text = s.fs and assert(s.fs:read("a"))
    assert(not exact or text == "x", "the file")
    assert(not text or text == "one\ntwo\n" or text == "1\n2\n" or text == "x", "half an edit")
  end,
}

flows["http_fetch"] = {
  text = "done", network = true,
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("http_fetch", { url = env.url .. "/x" }),
        call("http_fetch", { url = "http://127.0.0.2/" }) }, "done"),
      tools = ah.builtin { http_fetch = { allow = { "127.0.0.1:*", "127.0.0.2" },
        private = { "127.0.0.1" } } },
    }
    s.reply, s.err = s.agent:run("fetch")
  end,
  judge = function(s, exact)
    if exact then
      local transcript = s.agent:transcript()
      assert(transcript:find("text/plain, 5 bytes\\n\\nplain", 1, true), "text")
      assert(transcript:find("127.0.0.2 may not be connected to", 1, true), "address")
    end
  end,
}

--- Makes a flow of tools with a provider, at the path of its wire; `waits`: the number of rate
-- limits of a connection.
local function over_http(name, path, waits)
  return {
    text = "it is warm \u{263a}", network = true,
    attempt = function(s)
      ah = require "agenthost"
      s.seen, s.waits = "", 0
      s.agent = ah.agent {
        model = name, base_url = env.url .. path, api_key = "sk-torture-0123456789",
        stream = true, retries = waits and 3 or 0,
        tools = { weather_tool() },
        on = {
          content = function(e) s.seen = s.seen .. e.text end,
          retry = function(e) s.waits = s.waits + (e.status == 429 and 1 or 0) end,
        },
      }
      s.reply, s.err = s.agent:run("how is it in Rome?")
    end,
    judge = function(s, exact)
      local whole = s.reply and s.seen == "it is warm \u{263a}" and s.reply.usage.output == 10
      assert(not exact or whole, "stream")
      assert(not exact or s.waits == (waits or 0), "waits")
      assert(not s.err or not s.err.message:find("torture-0123", 1, true), "the key is shown")
    end,
  }
end

flows["openai over HTTP"] = over_http("openai/small", "")
flows["gemini over HTTP"] = over_http("gemini/small", "")
flows["ollama over HTTP"] = over_http("ollama/small", "")
flows["thoughts over HTTP"] = over_http("litellm_proxy/small", "/thoughts")
flows["a rate limit over HTTP"] = over_http("openai/small", "/limited", 1)

-- A tool is added in mid-conversation, and one is found; reasoning is sent back. `learns`: the path
-- refuses the wire's own way to add tools.
local function native(name, path, learns)
  return {
    text = "it is warm \u{263a}", network = true,
    attempt = function(s)
      ah = require "agenthost"
      local late = ah.tool { name = "late", description = "Comes later." }
      local found = ah.tool { name = "found", description = "Waits." }
      local weather = ah.tool {
        name = "weather", description = "The weather.", params = { city = "string" },
        handler = function(_, ctx)
          ctx:add_tools(late)
          return "warm"
        end,
      }
      s.agent = ah.agent {
        model = name, base_url = env.url .. path, api_key = "sk-torture-0123456789",
        stream = true, retries = 0, log = learns and function() end or nil,
        system = "Be brief.", tools = { weather },
        strategies = { ah.search { tools = { found } } },
      }
      s.reply, s.err = s.agent:run("how is it in Rome?")
    end,
    judge = function(s, exact)
      local r = s.reply
      local came = exact and table.concat(r.injected_tools, " ")
      assert(not exact or (r.usage.output == 10 and came == "found late"), "run")
      local learned = exact and r:transcript():find('"tool_change_mode":"append"', 1, true) ~= nil
      assert(learned == (exact and learns), "learned")
      assert(not s.err or not s.err.message:find("torture-0123", 1, true), "the key is shown")
    end,
  }
end

-- One tool is strict and has rules that are rendered as text, another one cannot be strict.
flows["strict tools over HTTP"] = {
  text = "it is warm \u{263a}", network = true,
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = "anthropic/claude-opus-4-8", base_url = env.url, api_key = "sk-torture-0123456789",
      stream = true, retries = 0, options = { strict = true },
      tools = {
        ah.tool { name = "weather", description = "The weather.",
          schema = '{"type":"object","required":["city"],"properties":{"city":{"type":"string",'
            .. '"minLength":1},"day":{"enum":["today","tomorrow"],"default":"today"}}}',
          handler = function(args) return args.day == "today" and "warm" or "cold" end },
        ah.tool { name = "any", description = "Anything.", schema = '{"type":"object"}' },
      },
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
  judge = function(s, exact)
    assert(not exact or s.reply.usage.output == 10, "run")
  end,
}

flows["anthropic over HTTP"] = native("anthropic/claude-opus-4-8", "", false)
flows["responses over HTTP"] = native("openai/responses/gpt-5.6", "", false)
flows["a learned verdict over HTTP"] = native("openai/responses/gpt-5.6", "/appends", true)

-- The model is unavailable from its second answer on, and its fallback continues.
flows["a fallback"] = {
  text = "it is warm",
  attempt = function(s)
    ah = require "agenthost"
    local out = { fail = { message = "out", status = 503, retryable = true, retry_after = 0.001 } }
    local other = model(function(last)
      return last.type ~= "user" and "it is warm" or out
    end)
    local first = ah.scripted(function(request)
      local last = request.entries[#request.entries]
      if last.type == "user" and last.content[1].text == "again" then
        return "fine"
      end
      return last.type == "user" and { calls = { call("weather", { city = "Rome" }) } } or out
    end)
    s.breaks = 0
    s.agent = ah.agent {
      model = first, fallback = { other, "demo/echo" }, retries = 1, tools = { weather_tool() },
      log = function() end, on = { fallback = function() s.breaks = s.breaks + 1 end },
    }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
  judge = function(s, exact)
    assert(not exact or s.breaks == 1, "one fallback")
  end,
}

flows["claude"] = {
  text = "it is fine", network = true,
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent { model = "claude_agent_sdk/sonnet", tools = { weather_tool() } }
    s.reply, s.err = s.agent:run "how is it?"
  end,
}

-- The adapter makes its call within the answer; its state is closed if the call fails.
flows["an adapter that keeps a state"] = {
  text = "warm",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent { retries = 0, tools = { weather_tool() }, model = ah.adapter {
      name = "acme/kept", idle = 60,
      open = function() return { answers = 0 } end,
      answer = function(request, out, state)
        local last = request.entries[#request.entries]
        state.answers = state.answers + 1
        if last.type == "user" and last.content[1].text == "again" then
          return "fine"
        end
        local result = out:invoke { name = "weather", arguments = { city = "Rome" } }
        return result.success and "warm" or error("out of memory: " .. result.content)
      end,
      close = function(state) state.closed = true end,
    } }
    s.reply, s.err = s.agent:run("how is it in Rome?")
  end,
}

flows["http"] = {
  network = true,
  attempt = function(s)
    ah = require "agenthost"
    s.got, s.err = ah.http {
      url = env.url .. "/x", headers = { Accept = "text/plain", ["X-Y"] = "z" },
    }
  end,
  judge = function(s, exact)
    assert(not s.got or (s.got.status == 200 and s.got.body == "plain"), "body")
    assert(not exact or s.got.headers["content-type"] == "text/plain", "headers")
  end,
}

flows["streams of http"] = {
  network = true,
  attempt = function(s)
    ah = require "agenthost"
    s.lines, s.events = {}, 0
    local function each(request, f)
      local r <close>, err = ah.http(request)
      for piece in (r and r:pieces() or function() end) do
        f(piece)
      end
      s.err = s.err or err or r.err
    end
    each({ url = env.url .. "/x", stream = "lines" }, function(line)
      s.lines[#s.lines + 1] = line
    end)
    each({ url = env.url .. "/chat/completions", stream = "sse", body = "{}",
      addresses = { "127.0.0.1" } }, function(event)
      s.events = s.events + (event.event == "message" and 1 or 0)
    end)
    local r, err = ah.http { url = env.url .. "/x", stream = "bytes" }
    s.rest = r and r:read_all()
    s.err = s.err or err or r.err
  end,
  judge = function(s, exact)
    assert(not s.lines or not s.lines[1] or s.lines[1] == "plain", "a piece was cut")
    assert(not exact or (s.lines[1] == "plain" and s.events > 3 and s.rest == "plain"), "pieces")
    assert(not exact or not s.err, tostring(s.err))
  end,
}

flows["a server"] = {
  network = true,
  attempt = function(s)
    ah = require "agenthost"
    local err
    s.server, err = ah.serve { hosts = { "example.com" }, origins = { "http://a.example" },
      on_request = function(q, r)
        if q.path == "/stream" then
          r:begin { headers = { ["X-A"] = { "1", "2" } } }
          local ok = r:write "a" and r:event { data = "b", id = "7" }
          r:close()
          s.waited = r:wait()
          return ok
        elseif q.path == "/close" then
          s.server:close()
        end
        return { status = 201, headers = { ["X-A"] = "b" }, body = { q = q.query.a, b = q.body } }
      end,
      on_refusal = function(refusal, q)
        return { headers = { ["X-A"] = "b" }, body = { r = refusal.status, m = q.method } }
      end }
    s.err = err
    if s.server then
      s.whole, s.err = ah.http { url = s.server.url .. "/x?a=1", body = "body", timeout = 5 }
      s.refused, s.err = ah.http { url = s.server.url, headers = { Host = "evil" }, timeout = 5 }
      local r, why = ah.http { url = s.server.url .. "/stream", stream = "bytes", timeout = 5 }
      s.stream, s.err = r and r:read_all(), s.err or why
      s.last = ah.http { url = s.server.url .. "/close", timeout = 5 }
      s.server:close()
      s.closed = s.server:wait(10)
    end
  end,
  judge = function(s, exact)
    if exact then
      assert(s.whole.status == 201 and s.whole.body == '{"b":"body","q":["1"]}', s.whole.body)
      assert(s.refused.status == 403 and s.refused.body == '{"m":"GET","r":403}', s.refused.body)
      assert(s.waited and s.stream == "adata: b\nid: 7\n\n" or s.stream
        == "aid: 7\ndata: b\n\n", s.stream)
      assert(s.last.status == 201 and s.closed, "closed")
    end
  end,
}

flows["http in a stopped call"] = {
  code = "cancelled", text = "not reached", network = true,
  attempt = function(s)
    ah = require "agenthost"
    local get = ah.tool {
      name = "get", description = "Waits for a server that says nothing.", parallel = true,
      handler = function()
        return ah.http { url = env.url .. "/silent", body = "hello", timeout = 5 }
      end,
    }
    local stop = ah.tool {
      name = "stop", description = "Cancels the run.", parallel = true,
      handler = function()
        ah.sleep(0.001)
        s.agent:cancel()
      end,
    }
    s.agent = ah.agent {
      model = calling({ call "get", call "stop" }, "not reached"), tools = { get, stop },
    }
    s.reply, s.err = s.agent:run("get")
  end,
}

flows["a command"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = ah.agent {
      model = calling({ call("bash", { command = "cat; printf '%3000s' x; exit 3", stdin = "" }) },
        "done"),
      tools = assert(ah.builtin { bash = { cwd = "/tmp", max_output = 1000 } }),
      resources = { filesystem = ah.filesystem { memory = true } },
    }
    s.reply, s.err = s.agent:run "go"
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      assert(text:find("exit code 3", 1, true), "result")
      assert(text:find("left out; read bash-output/", 1, true), "file")
    end
  end,
}

flows["a command in a stopped call"] = {
  code = "deadline_exceeded",
  attempt = function(s)
    ah = require "agenthost"
    s.reply, s.err = ah.run {
      model = calling({ call("bash", { command = "trap '' TERM; sleep 10" }) }, "not reached"),
      tools = assert(ah.builtin { bash = { sandbox = "none", cwd = "/" } }), timeout = 0.01, "go",
    }
  end,
}

flows["a process"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local talk = ah.tool {
      name = "talk", description = "Talks with a process.",
      handler = function()
        local p <close> = assert(ah.process {
          command = "sh", args = { "-c", "echo err >&2; cat; printf '%3000s' x; exit 3" },
          env = { A = "1" }, cwd = "/", grace = 5, max_errors = 100,
        })
        assert(p:write '{"a":[1,"two"]}\nno JSON\n')
        local value = assert(p:line { json = true })
        assert(value.a[2] == "two", "a line")
        local bad, err = p:line { json = true, timeout = 60 }
        assert(bad == false, tostring(err))
        p:close_input()
        local rest = p:read "all"
        assert(rest, "the rest")
        local ended = assert(p:wait())
        p:write "x"
        return { bytes = #rest, code = ended.exit_code, said = p:errors(), kind = err.code }
      end,
    }
    s.agent = ah.agent { model = calling({ call "talk" }, "done"), tools = { talk } }
    s.reply, s.err = s.agent:run "go"
  end,
  judge = function(s, exact)
    if exact then
      local text = s.agent:transcript()
      for _, part in ipairs { '3000', '\\"code\\":3', 'err', 'tool_validation' } do
        assert(text:find(part, 1, true), part)
      end
    end
  end,
}

flows["a process in a sandbox, forgotten"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local leave = ah.tool {
      name = "leave", description = "Leaves processes.",
      handler = function()
        s.p = assert(ah.process { command = "cat", sandbox = { kind = "auto", read = { "/" } } })
        local p <close> = assert(ah.process { command = "cat", stdin = "text\n" })
        assert(p:line() == "text")
        assert(s.p:kill "KILL")
      end,
    }
    s.agent = ah.agent { model = calling({ call "leave" }, "done"), tools = { leave } }
    s.reply, s.err = s.agent:run "go"
  end,
}

-- -- stores: afterwards another agent goes on with the conversation, and brings it to its end --

-- Opens the conversation of `s.fields` in the store; makes the store first.
local function open_kept(s)
  if not s.store then
    s.store = assert(ah.store { engine = "memory" })
  end
  local fields = s.fields(s)
  fields.store, fields.id = s.store, "kept"
  return assert(ah.agent(fields))
end

-- Responds with `s.response` to what is asked.
local function respond_all(s)
  for _, ask in ipairs(assert(s.store:asks())) do
    assert(s.store:respond(ask.conversation, ask.ask, s.response))
  end
end

-- Runs the agent to the end of its run, with responses.
local function bring_to_end(s, agent, text)
  local reply, err = agent:run(text)
  while err and err.code == "waiting" do
    respond_all(s)
    reply, err = agent:run()
  end
  return reply, err
end

local function attempt_kept(s)
  do
    local agent <close> = open_kept(s)
    s.first, s.err = bring_to_end(s, agent, "first")
  end
  if s.first then
    local agent <close> = open_kept(s)
    s.reply, s.err = bring_to_end(s, agent, "second")
  end
end

local function judge_kept(s)
  ah.sleep(0.001) -- a run that is still at work ends
  collectgarbage()
  if s.store then
    local agent <close> = open_kept(s)
    if agent.unfinished then
      assert(bring_to_end(s, agent))
    end
    assert(assert(agent:run "again").text == "fine", "the conversation does not go on")
    assert(not ah.json.decode(agent:transcript()).pending, "a turn is pending")
  end
end

-- Whichever allocation fails, a handler gets the key or is not run, and nothing says the key.
flows["arguments with a key"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local key = "sk-torture-0123456789"
    assert(ah.agent { model = "openai/none", api_key = key, base_url = env.url }):close()
    s.response = { approved = true, arguments = { text = "[secret]", n = 2 } }
    s.fields = function()
      local write = ah.tool { name = "write", description = "Writes.", coerce = true,
        on_lost = "retry", params = { text = "string", n = "integer" },
        handler = function(args, ctx)
          assert(args.text == key and args.n == 2, "the handler has got other arguments")
          ctx:progress("now " .. args.text)
          ctx:note(args.text)
          return args.text
        end }
      return { tools = { write }, model = calling({ call("write", { text = key, n = "1" }),
          call("write", { text = key, n = { key } }) }, "done"),
        policies = { function(c)
          if c.arguments.n == 1 then return "ask", "may it " .. c.arguments.text end
        end } }
    end
    attempt_kept(s)
  end,
  judge = function(s, exact)
    judge_kept(s)
    local text = s.reply and s.reply:transcript() or s.first and s.first:transcript() or ""
    assert(not text:find("sk-torture", 1, true), "the key is in the conversation")
    assert(not text:find("other arguments", 1, true), text)
    assert(not exact or text:find("must be an integer", 1, true), text)
  end,
}

-- Whichever allocation fails, changes are made only with a yes, and all of them.
flows["changes that are approved"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.response = true
    s.files = ah.filesystem { memory = true, name = "files", files = { list = "a\nb\n" } }
    local Item = ah.type { name = "Item", fields = { n = "integer" } }
    s.fields = function()
      local session = ah.session { types = { Item } }
      local change = ah.tool { name = "change", description = "Changes.", on_lost = "retry",
        params = { n = "integer" }, handler = function(args, ctx)
          assert(ctx.filesystem:edit("list", args.n == 1 and "a\n" or "b\n", ""))
          assert(ctx.filesystem:write("new", "text"))
          session:dispatch(Item { n = args.n })
          return "changed"
        end }
      return { tools = { change }, session = session, resources = { filesystem = s.files },
        model = calling({ call("change", { n = 1 }), call("change", { n = 2 }) }, "done"),
        policies = { { after = function(c) return "ask", "may it " .. #c:changes() end } },
        approve = function(c)
          if c.arguments.n == 2 then return false, c.result .. " " .. #c:changes() end
        end }
    end
    attempt_kept(s)
  end,
  judge = function(s, exact)
    judge_kept(s)
    local list = s.files and s.files:read "list"
    assert(not list or (list ~= "a\nb\n") == s.files:exists "new", "some changes are made")
    local text = s.first and s.first:transcript() or ""
    assert(not exact or (text:find("not approved: changed 2", 1, true) and list == "b\n"), text)
  end,
}

flows["a conversation in a store"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    s.fields = function()
      local session = ah.session()
      session:register(Count)
      local calls = { call("add", { n = 1 }), call("add", { n = 2 }) }
      local add = ah.tool {
        name = "add", description = "Adds.", parallel = true, params = { n = "integer" },
        handler = function(args, ctx)
          session:dispatch(Count { n = args.n })
          ctx:note "noted"
          return args.n
        end,
      }
      return { session = session, model = calling(calls, "done"), tools = { add } }
    end
    attempt_kept(s)
    assert(ah._spent(s.store, 0))
  end,
  judge = judge_kept,
}

flows["a fork at a turn, and a rewind"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    s.fields = function()
      local session = ah.session()
      session:register(Count)
      local add = ah.tool { name = "add", description = "Adds.", params = { n = "integer" },
        handler = function(args, ctx)
          ctx.session:dispatch(Count { n = args.n })
          return args.n
        end }
      return { session = session, model = calling({ call("add", { n = 1 }) }, "done"),
        tools = { add } }
    end
    local agent <close> = open_kept(s)
    local reply, err = agent:run("first")
    local fork, back
    if reply then
      fork, err = agent:fork { at = 1, id = "fork" }
    end
    if fork then
      local forked <close> = fork
      reply, err = forked:run()
      if reply then
        back, err = agent:rewind(1)
      end
    end
    if back then
      s.reply, err = agent:run()
    end
    s.err = err
  end,
  judge = judge_kept,
}

flows["a rewind in place"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local Count = ah.type { name = "Count", fields = { n = "integer" } }
    local Plain = ah.entity { name = "Plain", id = "name" }
    local Kept = ah.entity { name = "Kept", id = "name", state = { "n" } }
    s.fields = function()
      local plain, kept = Plain { name = "p" }, Kept { name = "k", n = 0 }
      local own = ah.session { types = { Count } }
      local add = ah.tool { name = "add", description = "Adds.", params = { n = "integer" },
        handler = function(args, ctx)
          ctx:enlist(plain)
          ctx:enlist(kept)
          plain.n, kept.n = args.n, args.n
          ctx.session:dispatch(Count { n = args.n })
          return args.n
        end }
      return { session = own, tools = { add },
        budget = ah.budget { name = "limit", requests = 100 },
        model = calling({ call("add", { n = 1 }) }, "done"), log = function() end }
    end
    local agent <close> = open_kept(s)
    agent:on_ask(function() end)
    local events <close> = agent:events { types = { "done" } }
    agent:add_tools(ah.tool { name = "more", description = "More.", handler = function() end })
    local reply, err = agent:run("first")
    local list = reply
    if reply then
      list, err = agent:rewind(0)
    end
    if list then
      s.stays = #list.stays
      s.reply, err = agent:run("second")
    end
    s.events, s.err = events, err
  end,
  judge = function(s, exact)
    judge_kept(s)
    assert(not exact or s.stays == 4, "the list has not all that stays")
  end,
}

-- Returns the n-th definition of a script that is loaded again.
local function loaded(n)
  return assert(ah.agent { system = "Load " .. n, model = calling({ call "count" }, "done"),
    log = function() end, tools = { ah.tool { name = "count", description = "Counts to " .. n,
      handler = function() return n end }, plain_tool("only" .. n) } })
end

flows["a reload"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.agent = assert(loaded(1):open())
    s.agent:add_tools(plain_tool "later")
    local reply, err, new = s.agent:run "go", nil, nil
    if reply then
      new, err = ah._carry(s.agent, loaded(2)) -- if it fails, this one goes on
    end
    if new then
      s.agent = new
      s.reply, err = new:run "go"
    end
    s.err = err
  end,
}

flows["a reload with a store"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.fields = function()
      return { model = model(function() return "done" end), log = function() end }
    end
    s.store = assert(ah.store { engine = "memory" })
    local agent = assert(loaded(1):open { store = s.store, id = "kept" })
    local reply, err, new = agent:run "go", nil, nil
    if reply then
      local wake = ah._rest(agent)
      assert(not wake or wake(), "not enough memory")
      new, err = ah._carry(agent, loaded(2))
    end
    if new then
      s.reply, err = new:run "go"
    end
    s.err = err
  end,
  judge = judge_kept,
}

flows["a replay of requests and handlers"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    local tools = { ah.tool { name = "add", description = "Adds.", params = { n = "integer" },
      durable = true, handler = function(args, ctx)
        return ctx:step("twice", function() return args.n * 2 end)
      end } }
    s.fields = function()
      return { model = calling({ call("add", { n = 1 }) }, "done"), tools = tools }
    end
    s.store = assert(ah.store { engine = "memory", bytes = true })
    local reply
    do
      local agent <close> = open_kept(s)
      reply, s.err = agent:run "first"
    end
    local got, err
    if reply then
      got, err = s.store:replay "kept"
      s.err = err
    end
    assert(not got or got.equal == got.requests, "another request")
    if got then
      got, s.err = ah._handlers(s.store, "kept", tools) -- a handler without memory has failed
    end
    s.reply = got and reply
  end,
  judge = judge_kept,
}

flows["a conversation that is exported, imported and deleted"] = {
  text = "fine",
  attempt = function(s)
    ah = require "agenthost"
    s.fields = function() return { model = ah.scripted { "fine", "fine" } } end
    do
      local agent <close> = open_kept(s)
      s.reply, s.err = agent:run "first"
    end
    if not s.reply then
      return
    end
    local text, err = s.store:export("kept", { kept = true })
    s.text = text
    s.err = err
    s.done, s.err = text and s.store:import(text, { id = "copy" }), err
    if s.done then
      assert(#s.store:stat().streams == 2)
      s.deleted = assert(s.store:delete "kept")
    end
  end,
  judge = function(s)
    ah.sleep(0.001)
    collectgarbage()
    if s.text then
      local copy = s.store:export("copy", { kept = true })
      assert(not s.done or copy, "what was imported is not there")
      assert(not copy or copy == s.text:gsub('"stream":"kept"', '"stream":"copy"'), "it is another")
      assert((s.store:export "kept" == nil) == (s.deleted or false), "deleted, or not")
    end
  end,
}

flows["a rewind with files"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.root = os.tmpname()
    s.base = assert(ah.filesystem { root = s.root:match "^(.*)/", sync = false })
    s.name = s.root:match "[^/]*$" .. ".files"
    assert(s.base:write(s.name .. "/a", "1"))
    s.fields = function()
      local fs = assert(ah.filesystem { root = s.root .. ".files", sync = false })
      return { model = calling({ call "save" }, "done"), tools = { ah.tool { name = "save",
        description = "Saves.", handler = function()
          assert(fs:write("a", "2") and fs:write("b/c", "2"))
          return "saved"
        end } } }
    end
    local agent <close> = open_kept(s)
    local reply, err = agent:run("first")
    local back
    if reply then
      back, err = agent:rewind(0, { files = true })
    end
    if back then
      s.found = s.base:read(s.name .. "/a")
      s.reply, err = agent:run("second")
    end
    s.err = err
  end,
  judge = function(s, exact)
    if s.fields then
      judge_kept(s)
    end
    os.remove(s.root or "")
    if s.base and s.name then
      s.base:delete(s.name, { recursive = true })
    end
    assert(not exact or s.found == "1", "the file is not put back")
  end,
}

flows["files in memory in a store"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.fields = function()
      collectgarbage() -- forgets the files of the agent before
      local files, err = ah.filesystem { memory = true, name = "notes", store = s.store,
        files = { log = "begin" } }
      assert(files, err)
      local log = ah.tool { name = "log", description = "Logs.", params = { n = "integer" },
        handler = function(args)
          assert(files:append("log", " " .. args.n))
          assert(files:write("d/" .. args.n, "x"))
          return args.n
        end }
      return { model = calling({ call("log", { n = 1 }), call("log", { n = 2 }) }, "done"),
        tools = { log } }
    end
    attempt_kept(s)
  end,
  judge = judge_kept,
}

flows["asks that wait"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.response = true
    s.fields = function()
      return { model = calling({ call "pay" }, "done"), policies = { function()
        return "ask", "it costs money"
      end }, tools = { ah.tool { name = "pay", description = "Pays.",
        handler = function() return "paid" end } } }
    end
    attempt_kept(s)
  end,
  judge = judge_kept,
}

flows["a durable handler"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.response = 3
    s.fields = function()
      return { model = calling({ call "order" }, "done"), tools = { ah.tool { name = "order",
        description = "Orders.", durable = true, handler = function(_, ctx)
          local price = ctx:step("price", function() return 7 end, { on_lost = "retry" })
          local n, err = ctx:ask { question = "How many?", schema = { type = "integer" } }
          if not n then
            return nil, err
          end
          return ctx:step("buy", function() return n * price end, { on_lost = "retry" })
        end } } }
    end
    attempt_kept(s)
  end,
  judge = judge_kept,
}

flows["a durable handler that reads files"] = {
  text = "done",
  attempt = function(s)
    ah = require "agenthost"
    s.response = 3
    s.root = os.tmpname()
    s.base = assert(ah.filesystem { root = s.root:match "^(.*)/", sync = false })
    s.name = s.root:match "[^/]*$" .. ".files"
    assert(s.base:write(s.name .. "/price", "7"))
    s.fields = function()
      local fs = assert(ah.filesystem { root = s.root .. ".files" })
      return { model = calling({ call "order" }, "done"), tools = { ah.tool { name = "order",
        description = "Orders.", durable = true, handler = function(_, ctx)
          local price = assert(fs:read "price") + #assert(fs:glob "*")
          assert(fs:lines("price")[1].text == "7" and fs:stat("price").size == 1)
          local n = assert(ctx:ask { question = "How many?", schema = { type = "integer" } })
          s.price = assert(n * price)
          return s.price
        end } } }
    end
    attempt_kept(s)
  end,
  judge = function(s, exact)
    if s.fields then
      judge_kept(s)
    end
    os.remove(s.root or "")
    if s.base and s.name then
      s.base:delete(s.name, { recursive = true })
    end
    assert(not exact or s.price == 24, "the price")
  end,
}

-- -- judging -----------------------------------------------------------------------------------

local function is_memory(message)
  return message:find("out of memory", 1, true) or message:find("not enough memory", 1, true)
end

local function check_result(entry, id, seen)
  assert(entry and entry.type == "tool_result" and entry.id == id, "a call without its answer")
  assert(type(entry.content) == "string", "an answer without content")
  assert(type(entry.success) == "boolean", "an answer that neither failed nor succeeded")
  assert(not seen[id], "a call id twice")
  seen[id] = true
end

--- Asserts that each call has one result, right after its message, in order, and nothing is
-- pending.
local function check_transcript(text)
  local t = assert(ah.json.decode(text))
  local seen, i = {}, 1
  assert(not t.pending, "a turn is pending")
  while t.entries[i] do
    local entry = t.entries[i]
    assert(entry.type ~= "tool_result", "an answer without its call")
    for _, made in ipairs(entry.tool_calls or {}) do
      i = i + 1
      check_result(t.entries[i], made.id, seen)
    end
    i = i + 1
  end
end

local function check_transcripts(s)
  for _, name in ipairs { "agent", "inner", "reply" } do
    if s[name] then
      check_transcript(s[name]:transcript())
    end
  end
  if s.err and s.err.reply and not s.fields then -- else the open turn is in the store
    check_transcript(s.err.reply:transcript())
  end
end

local function check_error(flow, err)
  local message = type(err) == "table" and err.message or err
  assert(type(message) == "string", "an error without words")
  local code = type(err) == "table" and err.code
  local expected = code and (code == flow.code or (flow.network and code == "http"))
  assert(expected or is_memory(message), "an odd error: " .. message)
end

local function check_outcome(flow, s, exact)
  if s.err then
    check_error(flow, s.err)
  end
  if s.reply and flow.text and s.reply.text ~= flow.text then
    error("an odd answer: " .. s.reply.text)
  end
  if exact and flow.code then
    assert(s.err and s.err.code == flow.code, "not ended by " .. flow.code)
  elseif exact then
    assert(not s.err, tostring(s.err))
    assert(not flow.text or s.reply, "no answer")
  end
end

--- Asserts that the host works: with the same conversation if there is one, or with a new one.
local function check_host(s)
  if s.agent then
    assert(assert(s.agent:run("again")).text:find "fine", "the conversation does not go on")
    check_transcript(s.agent:transcript())
    return
  end
  local reply = assert(ah.run {
    model = calling({ call("weather", { city = "Bonn" }) }, "fine"), tools = { weather_tool() },
    "hello",
  })
  assert(reply.text == "fine" and reply.rounds == 1, "a new run does not work")
  assert(reply:transcript():find("Bonn", 1, true), "a new run's tool does not work")
end

--- Sets attempt() and judge(exact) for the flow of this name; torture.c calls them.
function M.choose(name)
  local flow, s = flows[name], {}
  if not flow.cold then
    assert(require("agenthost").scripted)
  end
  function M.attempt()
    flow.attempt(s)
  end
  function M.judge(exact)
    ah = require "agenthost"
    check_outcome(flow, s, exact)
    check_transcripts(s)
    if flow.judge then
      flow.judge(s, exact)
    end
    check_host(s)
  end
end

return M
