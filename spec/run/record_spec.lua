-- The records of a run: their order, what waits for them, what happens when one cannot be kept, and
-- a run that goes on from every beginning of its records.
local ah = require "agenthost"
local patiently = require "support.patiently"
local sound = require "support.sound"
local t = require "ahtest"

local Plan = ah.type { name = "Plan", fields = { text = "string" } }

local LOST = "The outcome of this call is unknown: the program ended while it ran. "
  .. "It was not run again."

local function call(name, id, arguments)
  return { name = name, id = id, arguments = arguments or {} }
end

--- A model that goes on where the conversation is.
local function script(turns)
  turns.resumes = true
  return ah.scripted(turns)
end

local function tool(name, more, handler)
  local def = {
    name = name,
    description = "Does it.",
    handler = handler or function()
      return name .. " did it"
    end,
  }
  for k, v in pairs(more or {}) do
    def[k] = v
  end
  return ah.tool(def)
end

--- Kinds of runs: each returns the fields of an agent, made anew, for handlers that count in `ran`.
local flows = {
  plain = function()
    return { model = script { "hello" } }
  end,
  call = function(ran)
    return {
      model = script { { calls = { call("one", "c1") } }, "done" },
      tools = {
        tool("one", nil, function()
          ran.one = (ran.one or 0) + 1
          return "1"
        end),
      },
    }
  end,
  parallel = function(ran)
    local function count(name)
      return tool(name, { parallel = true }, function()
        ran[name] = (ran[name] or 0) + 1
        ah.sleep(0)
        return name
      end)
    end
    return {
      model = script { { calls = { call("a", "c1"), call("b", "c2"), call("c", "c3") } }, "done" },
      tools = { count "a", count "b", tool "c" },
    }
  end,
  failing = function()
    return {
      model = script { { calls = { call("bad", "c1"), call("none", "c2") } }, "done" },
      tools = {
        tool("bad", nil, function()
          error("no", 0)
        end),
      },
    }
  end,
  denied = function()
    return {
      model = script { { calls = { call("one", "c1") } }, "done" },
      tools = { tool "one" },
      policies = {
        function()
          return "deny", "not today"
        end,
      },
    }
  end,
  approved = function()
    return {
      model = script { { calls = { call("one", "c1") } }, "done" },
      tools = { tool "one" },
      policies = {
        function()
          return "ask", "may it?"
        end,
      },
      approve = function()
        return true
      end,
    }
  end,
  direct = function()
    return {
      model = script { { calls = { call("one", "c1") } }, "after a lost call" },
      tools = { tool("one", { return_direct = true }) },
    }
  end,
  session = function()
    local s = ah.session { types = { Plan } }
    return {
      session = s,
      model = script { { calls = { call("one", "c1"), call("one", "c2") } }, "done" },
      tools = {
        tool("one", nil, function(_, ctx)
          ctx.session:dispatch(Plan { text = "x" })
          ctx:note "a note"
          return "1"
        end),
      },
    }
  end,
}

flows.injects = function()
  return {
    model = script { { calls = { call("one", "c1") } }, { calls = { call("two", "c2") } }, "done" },
    tools = {
      tool("one", nil, function(_, ctx)
        ctx:add_tools(tool "two")
        return "there"
      end),
    },
  }
end

flows.sends = function()
  local def = {
    model = script { { calls = { call("one", "c1") } }, "first", "done" },
    tools = { tool "one" },
  }
  def.on = {
    tool_started = function()
      def.agent:send "and more"
    end,
  }
  return def
end

flows.falls_back = function()
  return {
    model = script {
      { calls = { call("one", "c1") } },
      { fail = { message = "out", status = 503 } },
    },
    fallback = { script { "never", "from the other" } }, -- a model of the same name
    retries = 0,
    log = function() end,
    tools = { tool "one" },
  }
end

-- Its strategy has the end of each call recorded before what the call changes is made.
flows.hands_over = function()
  local def
  local back = ah.handoff { to = function() return def.agent end, name = "back", when = "Now." }
  local other = ah.agent { name = "other", system = "Other.", tools = { tool "one", back },
    model = script { "never", { calls = { call("one", "c3"), call("back", "c4") } }, "never" } }
  def = { name = "own", system = "Own.", options = { temperature = 0.5 }, model = script {
      { calls = { call("handoff_to_other", "c1"), call("one", "c2") } }, "never",
      { calls = { call("one", "c5") } }, "from the own" },
    strategies = { { name = "watch", after = function() end } },
    tools = { tool "one", ah.handoff { to = other, when = "Now." } } }
  return def
end

flows.nested = function()
  return {
    model = script { { calls = { call("one", "c1") } }, "done" },
    tools = {
      tool("one", nil, function()
        return assert(ah.run {
          model = script { { calls = { call("in", "c1") } }, "inner" },
          tools = { tool "in" },
          "go",
        }).text
      end),
    },
  }
end

--- Runs a flow in a store of its own; returns the records, the transcript, what was logged, and the
--- reply.
local function record(flow, tap)
  local store = assert(ah.store { engine = "memory" })
  local def, log = flow {}, {}
  def.store, def.id = store, "c"
  local agent = ah.agent(def)
  def.agent = agent
  tap = tap or {}
  tap.log = tap.log or log
  log = tap.log
  if tap.begin then
    tap.begin(agent)
  end
  t.tap(agent, tap)
  local reply, err = agent:run "go"
  local transcript = (reply or err.reply):transcript()
  agent:close()
  return t.store_records(store, "c"), transcript, log, reply, err, def.session
end

local function kinds(records)
  local out = {}
  for i, r in ipairs(records) do
    out[i] = r.kind
  end
  return table.concat(out, " ")
end

--- The transcript without times.
local function timeless(transcript)
  return (transcript:gsub('"time":%d+', '"time":0'))
end

local HEAD = "opened entries run_started entries request "

describe("the records of a run", function()
  it("come in the order of what happens", function()
    local last = " turn request answer turn run_ended"
    for name, expected in pairs {
      plain = "answer turn run_ended",
      call = "answer call_started settled" .. last,
      failing = "answer call_started settled settled" .. last,
      denied = "answer settled" .. last,
      direct = "answer call_started settled turn run_ended",
    } do
      local records, transcript = record(flows[name])
      sound.check(transcript)
      assert.equal(HEAD .. expected, kinds(records), name)
    end
  end)

  it("begin all handlers of a batch behind the records of their starts", function()
    local records, _, log = record(flows.parallel)
    assert.equal(
      HEAD
        .. "answer call_started call_started call_finished call_finished settled settled "
        .. "call_started settled turn request answer turn run_ended",
      kinds(records)
    )
    local flushes = 0
    for _, what in ipairs(log) do
      flushes = flushes + (what == "flush effect" and 1 or 0)
    end
    assert.equal(3, flushes)
  end)
end)

describe("the fold of the records", function()
  for name, flow in pairs(flows) do
    it("gives the conversation and the session: " .. name, function()
      local records, transcript, _, _, _, session = record(flow)
      local state = assert(t.fold(records))
      assert.equal(transcript, state.transcript)
      assert.equal(0, state.history.run)
      if session then
        assert.same(ah.json.decode(session:snapshot()), ah.json.decode(state.session))
      end
    end)

    it("has no open run wherever it was cancelled: " .. name, function()
      local _, _, whole = record(flow)
      local cancelled = 0
      for n = 1, #whole do
        local agent
        local log = setmetatable({}, {
          __newindex = function(list, i, what)
            rawset(list, i, what)
            if i == n then
              agent:cancel()
            end
          end,
        })
        local records, transcript, _, reply, err = record(flow, {
          log = log,
          begin = function(a)
            agent = a
          end,
        })
        local where = name .. " at " .. n .. " (" .. whole[n] .. ")"
        assert.is_true(reply ~= nil or err.code == "cancelled", where .. tostring(err))
        cancelled = cancelled + (reply and 0 or 1)
        sound.check(transcript)
        local state = assert(t.fold(records))
        assert.equal(transcript, state.transcript, where)
        assert.equal(0, state.history.run, where)
      end
      assert.is_true(cancelled > 2)
    end)
  end
end)

describe("slices", function()
  it("are recorded as what is new in them, in and outside of calls", function()
    local Total = ah.type { name = "Total", fields = { n = "integer" } }
    local Seat = ah.type { name = "Seat", fields = { row = "integer", who = "string" } }
    local store = assert(ah.store { engine = "memory" })
    local s = ah.session { types = { Plan } }
    s:register(Total, { keep = "latest" })
    s:register(Seat, { key = "row" })
    local n = 0
    local agent = ah.agent {
      store = store,
      id = "c",
      session = s,
      model = ah.scripted(function(request)
        local last = request.entries[#request.entries]
        return last.type == "user" and { calls = { call("one", nil), call("one", nil) } } or "done"
      end),
      tools = {
        tool("one", nil, function(_, ctx)
          n = n + 1
          ctx.session:dispatch(Total { n = n })
          ctx.session:dispatch(Seat { row = n % 3, who = "w" .. n })
          ctx.session:dispatch(Plan { text = "p" .. n })
          assert(n ~= 4)
          return "1"
        end),
      },
    }
    for i = 1, 3 do
      assert(agent:run("go " .. i))
      s:dispatch(Seat { row = i, who = "outside" })
      s:dispatch(Plan { text = "outside" })
    end
    local snapshot = s:snapshot()
    agent:close()
    local records = t.store_records(store, "c")
    assert.same(ah.json.decode(snapshot), ah.json.decode(assert(t.fold(records)).session))
    for _, r in ipairs(records) do
      for text in (r.said:match '"Plan":%b{}' or ""):gmatch '"keep":%d+,"add":(%b[])' do
        assert.is_true(select(2, text:gsub('"text"', "")) <= 2)
      end
    end
  end)
end)

describe("a record that cannot be kept", function()
  it("ends the run with the code store, and nothing more is begun or recorded", function()
    for name, flow in pairs(flows) do
      local _, _, whole = record(flow)
      local flushes = 0
      for _, what in ipairs(whole) do
        flushes = flushes + (what:find "^flush" and 1 or 0)
      end
      for n = 1, flushes do
        local _, transcript, log, reply, err = record(flow, { fail = n })
        assert.is_nil(reply, name)
        assert.equal("store", err.code, name)
        assert.matches("the disk is full", err.message)
        sound.check(transcript)
        local seen = 0
        for i, what in ipairs(log) do
          if what:find "^flush" then
            seen = seen + 1
          end
          assert.is_true(seen < n or i == #log or not log[i + 1]:find "^put", name)
        end
      end
    end
  end)
end)

describe("a run that is cancelled", function()
  it("while it waits for a record, begins nothing", function()
    patiently(function(times)
      local ran = {}
      local store = assert(ah.store { engine = "memory" })
      local def = flows.call(ran)
      def.store, def.id = store, "c"
      local agent = ah.agent(def)
      t.tap(agent, { hold = 1 })
      local task = ah.spawn(function()
        return agent:run "go"
      end)
      ah.sleep(0.02 * times) -- until it waits
      agent:cancel()
      local reply, err = task:await()
      assert.is_nil(reply)
      assert.equal("cancelled", err.code)
      assert.is_nil(ran.one)
      agent:close()
      assert.equal(
        HEAD .. "answer call_started cancelled settled turn run_ended",
        kinds(t.store_records(store, "c"))
      )
    end)
  end)
end)

--- The numbers of records after which a process may have died: a run begins with one append.
local function beginnings(records)
  local out = { 2 }
  for n = 4, #records - 1 do
    out[#out + 1] = n
  end
  return out
end

--- The number of calls that have started and not finished within the first n records.
local function open_calls(records, n)
  local open = 0
  for i = 1, n do
    local kind = records[i].kind
    open = open + (kind == "call_started" and 1 or kind == "call_finished" and -1 or 0)
  end
  return open
end

describe("a run that goes on", function()
  it("tells of the changes of a finished call that no record can have", function()
    local function flow()
      local other = ah.agent { model = "demo/echo" }
      return { model = script { { calls = { call("one", "c1") } }, "done" },
        strategies = { { name = "watch", after = function() end } },
        tools = { tool("one", nil, function()
          assert(other:send "Hello.")
          return "sent"
        end) } }
    end
    local records = record(flow)
    local n = 1
    while records[n].kind ~= "call_finished" do
      n = n + 1
    end
    local store = assert(ah.store { engine = "memory" })
    t.store_fill(store, "c", records, n)
    local def = flow()
    def.store, def.id = store, "c"
    local agent <close> = assert(ah.agent(def))
    local reply = assert(agent:run())
    assert.matches("some of them could not be written down: they are lost",
      reply.messages[#reply.messages - 1].content)
  end)

  for name, flow in pairs(flows) do
    it("from every beginning of its records ends as the undisturbed one: " .. name, function()
      local records, whole = record(flow)
      for _, n in ipairs(beginnings(records)) do
        local store = assert(ah.store { engine = "memory" })
        t.store_fill(store, "c", records, n)
        local def, ran, resumed = flow {}, {}, {}
        def.store, def.id = store, "c"
        def.on = def.on or {}
        def.on.resumed = function(e)
          resumed[#resumed + 1] = e
        end
        local agent = assert(ah.agent(def))
        def.agent = agent
        local reply, err = agent:run(n < 4 and "go" or nil)
        local where = name .. " from " .. n .. " (" .. records[n].kind .. ")"
        assert.is_truthy(reply, where .. ": " .. tostring(err))
        local transcript = timeless(reply:transcript())
        sound.check(transcript)
        if transcript:find(LOST, 1, true) then
          assert.is_true(open_calls(records, n) > 0, where)
        elseif name == "injects" and n > 7 then -- its second tool was made by a handler
          assert.is_truthy(transcript:find("Tool 'two' is stale", 1, true) or n >= 13, where)
        elseif name == "falls_back" and n == 11 then -- its request is in the same append
          -- the first model is asked again, and fails again
          assert.equal(3, #sound.of(sound.check(transcript), "settings"), where)
        else
          assert.equal(timeless(whole), transcript, where)
        end
        assert.equal(n > 2 and 1 or 0, #resumed, where)
        agent:close()
        local after = kinds(t.store_records(store, "c"))
        assert.equal(1, select(2, after:gsub("run_started", "")), where)
        assert.matches("run_ended$", after, where)
        _ = ran
      end
    end)
  end
end)

describe("a cancelled run", function()
  it("ends as such wherever its process has ended", function()
    local ran, agent = {}, nil
    local log = setmetatable({}, {
      __newindex = function(list, i, what)
        rawset(list, i, what)
        if what == "put call_finished" then
          agent:cancel()
        end
      end,
    })
    local records, whole = record(flows.parallel, {
      log = log,
      begin = function(a)
        agent = a
      end,
    })
    local at
    for n, r in ipairs(records) do
      at = r.kind == "cancelled" and n or at
      if at and r.kind ~= "run_ended" then
        local store = assert(ah.store { engine = "memory" })
        t.store_fill(store, "c", records, n)
        local def = flows.parallel(ran)
        def.store, def.id = store, "c"
        local again = ah.agent(def)
        local reply, err = again:run()
        assert.is_nil(reply)
        assert.equal("cancelled", err.code)
        assert.equal(timeless(whole), timeless(err.reply:transcript()))
        again:close()
        local state = assert(t.fold(t.store_records(store, "c")))
        assert.equal(0, state.history.run)
      end
    end
    assert.is_truthy(at)
    assert.same({}, ran)
  end)
end)

--- Makes a folder that is removed when the block ends.
local function folder()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir '" .. path .. "'"))
  return setmetatable({ path = path }, {
    __close = function()
      os.execute("rm -rf '" .. path .. "'")
    end,
  })
end

describe("files of the machine", function()
  local function writes(dir)
    local fs = ah.filesystem { root = dir.path }
    return function()
      return {
        model = script { { calls = { call("one", "c1") } }, "done" },
        tools = {
          tool("one", nil, function()
            assert(fs:write("a.txt", "new"))
            return "written"
          end),
        },
      }
    end
  end

  local function content(dir)
    local f <close> = io.open(dir.path .. "/a.txt")
    return f and f:read "a"
  end

  it("change behind the record of their changes", function()
    local dir <close> = folder()
    local records, _, log = record(writes(dir))
    assert.equal(
      HEAD .. "answer call_started call_finished settled applied turn request "
        .. "answer turn run_ended",
      kinds(records)
    )
    assert.equal("new", content(dir))
    assert.matches("put settled flush effect put applied", table.concat(log, " "))
    assert.matches('"path":"a.txt"', records[9].said)
  end)

  it("are looked at before a run goes on whose process has ended in their midst", function()
    local dir <close> = folder()
    local flow = writes(dir)
    local records = record(flow)
    local store = assert(ah.store { engine = "memory" })
    t.store_fill(store, "c", records, 9)
    local def = flow {}
    def.store, def.id = store, "c"
    local agent = ah.agent(def)
    assert.equal("done", assert(agent:run()).text)
    agent:close()
    assert.matches("settled applied turn", kinds(t.store_records(store, "c")))
  end)

  it("stay as they are if that record cannot be kept", function()
    local dir <close> = folder()
    local _, transcript, log, reply, err = record(writes(dir), { fail = 2 })
    assert.is_nil(reply)
    assert.equal("store", err.code)
    assert.is_nil(content(dir))
    assert.is_nil(table.concat(log, " "):find("applied", 1, true))
    sound.check(transcript)
  end)
end)

describe("a call that an earlier process had begun", function()
  --- Goes on behind `call_started` with a tool of these fields; returns the result and the count of
  --- runs of the handler.
  local function lost(more)
    local ran, keys = {}, {}
    local records = record(flows.call)
    local store = assert(ah.store { engine = "memory" })
    t.store_fill(store, "c", records, 7)
    local def = flows.call(ran)
    more = more(keys)
    more.name, more.description = "one", "Does it."
    more.handler = function()
      ran.one = (ran.one or 0) + 1
      return "again"
    end
    def.tools, def.store, def.id = { ah.tool(more) }, store, "c"
    local agent = ah.agent(def)
    local reply = assert(agent:run())
    local entries = sound.check(reply:transcript())
    agent:close()
    return sound.of(entries, "tool_result")[1], ran.one or 0, keys[1], records[7].said
  end

  it("is not run again by default, and the model reads so", function()
    local result, ran = lost(function()
      return {}
    end)
    assert.same({ LOST, false, 0 }, { result.content, result.success, ran })
  end)

  it("is run again where the tool says so", function()
    local result, ran = lost(function()
      return { on_lost = "retry" }
    end)
    assert.same({ "again", true, 1 }, { result.content, result.success, ran })
  end)

  it("is looked for by a function, with its key", function()
    for _, case in ipairs {
      { { true, "it happened" }, "it happened", true, 0 },
      { { false }, "again", true, 1 },
      { {}, LOST, false, 0 },
    } do
      local result, ran, key, started = lost(function(keys)
        return {
          on_lost = function(key)
            keys[1] = key
            return table.unpack(case[1])
          end,
        }
      end)
      assert.same({ case[2], case[3], case[4] }, { result.content, result.success, ran })
      assert.is_truthy(started:find(key, 1, true))
      assert.equal(64, #key)
    end
  end)
end)
