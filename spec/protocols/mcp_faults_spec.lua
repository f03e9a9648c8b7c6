-- Servers of MCP that fail, lie, flood, are silent or end: each is bounded, and the call says why.
local ah = require "agenthost"
local command = require "support.command"
local mcp = require "support.mcp"

-- Returns what a registry's call of the tool gives, made in a task.
local function call(server, name, args)
  local reply = assert(ah.run { tools = { server }, "Go.", model = ah.scripted {
    { calls = { { name = name, arguments = args or {} } } }, "Done." } })
  return reply.messages[3].content, reply
end

local function failed_start(script, more)
  local server, log = mcp.server(script, more)
  local tools, err = server:tools()
  assert.is_nil(tools)
  return err, log
end

describe("a server of MCP that", function()
  after_each(mcp.clear)

  it("does not exist", function()
    local tools, err = ah.mcp { command = "no-such-server-of-mcp" }:tools()
    assert.is_nil(tools)
    assert.are.equal("usage", err.code)
    assert.is_truthy(err.message:find("no-such-server-of-mcp", 1, true), err.message)
  end)

  it("ends at once: its exit code and its words are in the error", function()
    local err = failed_start [[io.stderr:write "no license\n"; os.exit(3)]]
    assert.are.equal("provider", err.code)
    assert.is_truthy(err.message:find("exit code 3", 1, true), err.message)
    assert.is_truthy(err.message:find("no license", 1, true), err.message)
  end)

  it("fails a run, unless it is optional", function()
    local fields = { "Go.", model = ah.scripted { "Done.", "Done." },
      tools = { (mcp.server [[os.exit(3)]]) } }
    local reply, err = ah.run(fields)
    assert.is_nil(reply)
    assert.is_truthy(err.message:find("MCP server 'fake'", 1, true), err.message)
    fields.tools = { (mcp.server([[os.exit(3)]], { optional = true })) }
    assert.are.equal("Done.", assert(ah.run(fields)).text)
  end)

  it("ends at a request before the handshake is begun with in the old way", function()
    local server, log = mcp.server [[return { era = "2025-06-18", tools = { tool "t" },
      on = { ["server/discover"] = function() os.exit(1) end } }]]
    assert.are.equal(1, #assert(server:tools()))
    assert.are.same({ "server/discover", "initialize", "notifications/initialized", "tools/list" },
      mcp.methods(log))
  end)

  it("speaks revisions that we do not", function()
    local err = failed_start [[return { on = { ["server/discover"] = function(m, api)
      api.fail(m, -32022, "no", { supported = api.array { "2031-01-01" } }) end } }]]
    assert.is_truthy(err.message:find("2031-01-01", 1, true), err.message)
    err = failed_start [[return { era = "1999-01-01" }]]
    assert.is_truthy(err.message:find("1999-01-01", 1, true), err.message)
  end)

  it("is silent when it is asked what it speaks, is not waited for longer than its time", function()
    local before = ah.now()
    local err = failed_start([[return { on = { ["server/discover"] = function() end,
      initialize = function() end } }]], { start_timeout = 0.2 })
    assert.are.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - before < 30)
  end)

  it("never answers a call: the call ends, and the server is told", function()
    local server, log = mcp.server([[return { tools = { tool "never", tool "t" },
      call = { never = function() end, t = function() return "there" end } }]], { timeout = 0.3 })
    assert.is_truthy(call(server, "never"):find("no answer within 0.3 seconds", 1, true))
    assert.are.equal("there", (call(server, "t")))
    local cancelled = mcp.last(log, "notifications/cancelled")
    local asked
    for _, message in ipairs(log()) do
      asked = asked or message.method == "tools/call" and message.id
    end
    assert.are.equal(asked, cancelled.params.requestId)
  end)

  it("goes on reporting progress without an end is stopped", function()
    local server = mcp.server([[return { tools = { tool "t" }, call = { t = function(_, m, api)
      for i = 1, 100000 do
        api.notify("notifications/progress", { progressToken = m.params._meta.progressToken,
          progress = i })
        os.execute "sleep 0.02"
      end end } }]], { timeout = 10, longest = 0.3 })
    assert.is_truthy(call(server, "t"):find("no answer", 1, true))
  end)

  it("answers twice, and for requests that were not made", function()
    local server = mcp.server [[return { tools = { tool "t" }, call = { t = function(_, m, api)
      api.reply({ id = 4711 }, { content = api.array {} })
      api.reply({ id = "x" }, { content = api.array {} })
      api.reply(m, { content = api.array { { type = "text", text = "first" } } })
      api.reply(m, { content = api.array { { type = "text", text = "second" } } })
    end } }]]
    assert.are.equal("first", (call(server, "t")))
    assert.are.equal("first", (call(server, "t")))
  end)

  it("answers out of order", function()
    local server = mcp.server [[
      local first
      return { tools = { tool "t" }, call = { t = function(args, m, api)
        if not first then
          first = { m, args.text }
          return
        end
        api.reply(m, { content = api.array { { type = "text", text = args.text } } })
        api.reply(first[1], { content = api.array { { type = "text", text = first[2] } } })
      end } }]]
    local answers = ah.all {
      function() return (call(server, "t", { text = "one" })) end,
      function() return (call(server, "t", { text = "two" })) end,
    }
    assert.are.same({ "one", "two" }, { answers[1], answers[2] })
  end)

  it("serves many calls at once, each with its own answer", function()
    local server = mcp.server [[return { tools = { tool "t" },
      call = { t = function(args) return args.text end } }]]
    local names = {}
    for i = 1, 50 do
      names[i] = "call " .. i
    end
    local answers = ah.map(names, function(name)
      return (call(server, "t", { text = name }))
    end, { concurrency = 50 })
    assert.are.same(names, table.move(answers, 1, 50, 1, {}))
  end)

  it("writes lines that are no messages is heard nevertheless", function()
    local server = mcp.server [[return { begin = function(api) api.say "Welcome to the server!" end,
      tools = { tool "t" }, call = { t = function(_, _, api)
        for _, line in ipairs { "{", "[]", "7", "", '{"jsonrpc":"2.0"}',
          '{"jsonrpc":"2.0","id":{}}', '{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}',
          "\xff\0" } do
          api.say(line)
        end
        return "heard"
      end } }]]
    assert.are.equal("heard", (call(server, "t")))
  end)

  it("floods us is ended", function()
    local server = mcp.server([[return { tools = { tool "t" }, call = { t = function(_, _, api)
      while true do api.notify("notifications/message", { level = "info", data = "x" }) end
    end } }]], { timeout = 60 })
    assert.is_truthy(call(server, "t"):find("floods", 1, true))
  end)

  it("sends a line without an end is bounded", function()
    local server = mcp.server([[return { tools = { tool "t" }, call = { t = function(_, m, api)
      for _ = 1, 100 do io.stdout:write((" "):rep(1 << 20)) end
      io.stdout:write "\n"
      return "after it"
    end } }]], { timeout = 60 })
    collectgarbage()
    local before = collectgarbage "count"
    assert.are.equal("after it", (call(server, "t")))
    assert.is_true(collectgarbage "count" - before < 64 * 1024)
  end)

  it("gives results that are none", function()
    local server = mcp.server [[return { tools = { tool "t", tool "u" }, call = {
      t = function() return { resultType = "later" } end,
      u = function(_, m, api) api.say { jsonrpc = "2.0", id = m.id, result = api.array {} }
        api.fail(m, -32603, "broken") end } }]]
    assert.is_truthy(call(server, "t"):find("unknown type: later", 1, true))
    assert.is_truthy(call(server, "u"):find("broken", 1, true))
  end)

  it("has no list, or one without an end", function()
    local err = failed_start [[return { on = { ["tools/list"] = function(m, api)
      api.reply(m, { tools = "none" }) end } }]]
    assert.is_truthy(err.message:find('no "tools"', 1, true), err.message)
    err = failed_start [[return { on = { ["tools/list"] = function(m, api)
      api.reply(m, { tools = api.array {}, nextCursor = "more" }) end } }]]
    assert.is_truthy(err.message:find("pages", 1, true), err.message)
  end)

  describe("ends during a call", function()
    local SCRIPT = [[return { tools = { tool "t" }, call = { t = function(_, _, api)
      if api.starts == 1 then io.stderr:write "out of paper\n"; os.exit(4) end
      return "back"
    end } }]]

    it("fails the call, and is started again for the next", function()
      local server = mcp.server(SCRIPT)
      local text = call(server, "t")
      assert.is_truthy(text:find("exit code 4", 1, true), text)
      assert.is_truthy(text:find("out of paper", 1, true), text)
      assert.are.equal("back", (call(server, "t")))
    end)

    it("is called again with on_lost = \"retry\"", function()
      assert.are.equal("back", (call(mcp.server(SCRIPT, { on_lost = "retry" }), "t")))
    end)

    it("again and again is left alone longer and longer", function()
      local server, log = mcp.server [[return { tools = { tool "t" },
        call = { t = function() os.exit(1) end } }]]
      assert(server:tools())
      local before = ah.now()
      for _ = 1, 3 do
        call(server, "t")
      end
      assert.is_true(ah.now() - before >= 0.25 + 0.5)
      assert.are.equal(3, log()[#log() - 1].started or 3)
    end)
  end)

  it("is cancelled with its call, and others go on", function()
    local server, log = mcp.server [[return { tools = { tool "never", tool "t" },
      call = { never = function() end, t = function() return "there" end } }]]
    assert(server:tools())
    local result, err = ah.with_timeout(0.3, call, server, "never")
    assert.is_nil(result)
    assert.are.equal("deadline_exceeded", err.code)
    assert.are.equal("there", (call(server, "t")))
    assert.is_table(mcp.last(log, "notifications/cancelled"))
  end)

  -- Waits for the end of the processes that a log names; returns the command of one that goes on.
  local function remains(log)
    for _, row in ipairs(log()) do
      local file <close> = row.pid and io.open(("/proc/%d/cmdline"):format(row.pid)) or nil
      local words = file and file:read "a" or ""
      if words:find("fake_mcp", 1, true) then
        return words
      end
    end
  end

  -- Makes calls of servers that are killed meanwhile, each once. Returns how many calls have ended
  -- with a result, good or bad, and how many servers were killed.
  local function kill_all(servers, logs)
    local ended, killed, work = 0, 0, {}
    for i, server in ipairs(servers) do
      work[#work + 1] = function()
        for n = 1, 3 do
          local text = call(server, "t", { text = "x" .. n })
          ended = ended + (text ~= "" and 1 or 0)
        end
      end
      work[#work + 1] = function()
        ah.sleep(0.05 + ah.random() / 5)
        local ok, list = pcall(logs[i])
        killed = killed + (ok and list[1]
          and os.execute(("kill -9 %d 2>/dev/null"):format(list[1].pid)) and 1 or 0)
      end
    end
    ah.all(work)
    return ended, killed
  end

  it("is killed at a random time leaves no process and no call that waits", function()
    local ended, killed = 0, 0
    for _ = 1, 2 do -- 100 servers, not all at once
      local servers, logs = {}, {}
      for i = 1, 50 do
        servers[i], logs[i] = mcp.server([[return { tools = { tool "t" }, call = {
          t = function(args)
            os.execute "sleep 0.02"
            return args.text
          end } }]], { timeout = 60, optional = true })
      end
      local some, dead = kill_all(servers, logs)
      ended, killed = ended + some, killed + dead
      for i = 1, #servers do
        servers[i]:close()
        assert.is_nil(remains(logs[i]))
      end
      mcp.clear()
    end
    assert.are.equal(300, ended)
    assert.is_true(killed > 50, killed)
  end)

  it("fails to start fails for all that wait for it, after one start", function()
    local server, log = mcp.server [[os.exit(3)]]
    local errors = ah.map({ 1, 2, 3, 4, 5 }, function()
      return select(2, server.connection:request("tools/list", {}, { timeout = 5 }))
    end, { concurrency = 5 })
    for i = 1, 5 do
      assert.is_truthy(errors[i].message:find("exit code 3", 1, true), errors[i].message)
    end
    assert.are.equal(2, #log()) -- the second time with a handshake
  end)

  it("does not read its input is ended", function()
    local server = mcp.server([[return { tools = { tool "t" }, call = { t = function()
      os.execute "sleep 60" end } }]], { timeout = 0.5 })
    local text = call(server, "t", { text = ("x"):rep(4 << 20) })
    assert.is_truthy(text:find("no answer", 1, true) or text:find("read its input", 1, true), text)
    text = call(server, "t", { text = ("x"):rep(4 << 20) })
    assert.is_truthy(text:find("does not read its input", 1, true), text)
  end)

  it("answers one of two calls: the other one has its own time", function()
    local server = mcp.server([[return { tools = { tool "never" },
      call = { never = function() end } }]], { timeout = 20 })
    assert(server:tools())
    local wire = server.connection
    local before, err = ah.now(), nil
    ah.race {
      function() wire:request("tools/call", { name = "never" }, { timeout = 20 }) end,
      function()
        ah.sleep(0.05)
        err = select(2, wire:request("tools/call", { name = "never" }, { timeout = 0.1 }))
      end,
    }
    assert.are.equal("deadline_exceeded", err.code)
    assert.is_true(ah.now() - before < 15)
  end)

  -- True if no process with that id is at work, or within 30 seconds.
  local function ends(pid)
    for _ = 1, 600 do
      local stat <close> = io.open(("/proc/%d/stat"):format(pid))
      local state = stat and stat:read "a":match "%) (%a)" or "X"
      if state == "X" or state == "Z" then
        return true
      end
      ah.sleep(0.05)
    end
  end

  it("does not outlive a host that is killed, nor does what it has started", function()
    local sleeper = command.temp()
    local fields, log = mcp.fields(([[return { tools = { tool "t" }, call = { t = function()
      os.execute "echo $$ >%s; exec sleep 600" end } }]]):format(sleeper))
    local script = command.temp(([[local ah = require "agenthost"
      local server = ah.mcp { name = "fake", command = %q, args = { %q, %q, %q } }
      ah.run { tools = { server }, "Go.",
        model = ah.scripted { { calls = { { name = "t" } } } } }]])
      :format(fields.command, table.unpack(fields.args)))
    local pipe <close> = io.popen(("%s %s >/dev/null 2>&1 & echo $!"):format(
      command.quote(command.BINARY), script))
    local host, child = pipe:read "n", nil
    for _ = 1, 600 do
      local file <close> = assert(io.open(sleeper))
      child = file:read "n"
      if child then break end
      ah.sleep(0.05)
    end
    assert.is_truthy(child, "the call was not made")
    assert(os.execute(("kill -9 %d"):format(host)))
    assert.is_true(ends(log()[1].pid), "the server goes on")
    assert.is_true(ends(child), "a process of the server goes on")
    command.tidy()
  end)

  it("is closed with its object, and not started again", function()
    local server, log = mcp.server [[return { tools = { tool "t" } }]]
    assert(server:tools())
    server:close()
    local tools, err = server:tools()
    assert.is_nil(tools)
    assert.are.equal("usage", err.code)
    assert.are.equal(1, log()[1].started)
  end)
end)
