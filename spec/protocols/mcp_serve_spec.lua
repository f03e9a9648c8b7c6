-- agenthost mcp serve as real clients use it: the recorded messages of Claude Code, Codex and
-- Gemini CLI, the endpoint of HTTP, and the command itself.
local ah = require "agenthost"
local client = require "support.mcp_client"
local command = require "support.command"

local Server = ah._module "agenthost.protocols.mcp.server"
local serve_http = ah._module "agenthost.protocols.mcp.server.http"

local ROOT = "../shared/wire/mcp/"
local META = client.META
local LONG = 60 -- seconds after which a server does not answer any more

local function contents(path)
  local f <close> = io.open(path)
  return f and f:read "a"
end

-- Returns the messages of a recorded client, and the recorded answers by their ids.
local function recorded(name)
  local sent, answers = {}, {}
  for line in (contents(ROOT .. name) or ""):gmatch "[^\n]+" do
    local one = assert(ah.json.decode(line))
    local m = one.msg or one.reply
    if one.dir == "cli->server" or one.POST then
      sent[#sent + 1] = { message = m, headers = one.h }
    elseif m and m.id ~= nil then
      answers[#answers + 1] = m
    end
  end
  return sent, answers
end

local function tool(name, description, params, handler)
  return ah.tool { name = name, description = description, params = params, handler = handler }
end

-- The tools of the servers that were recorded.
local function tools()
  local late = tool("late", "late tool", { x = "string" }, function(args)
    return "late says " .. args.x
  end)
  return {
    tool("mul", "Multiply two numbers", { a = "number", b = "number" }, function(args)
      return args.a * args.b
    end),
    tool("grow", "Adds a tool at run time", {}, function(_, ctx)
      ctx:add_tools(late)
      return "grown"
    end),
    tool("add", "Add two numbers", { a = "number", b = "number" }, function(args)
      return args.a + args.b
    end),
  }
end

local function served()
  return assert(ah.agent { model = "demo/echo", tools = tools() })
end

local function names_of(result)
  local names = {}
  for _, one in ipairs(result.tools) do
    names[one.name] = one
  end
  return names
end

-- Compares an answer with the recorded one of another server.
local function compare(answer, wanted, asked)
  if asked.method == "tools/list" then
    for name in pairs(names_of(wanted.result)) do
      assert.is_truthy(names_of(answer.result)[name], name)
    end
  elseif asked.method == "tools/call" and asked.params.name ~= "add" then
    local text = answer.result.content[1].text:gsub("\n\nNew tools: .*", "")
    assert.are.equal(wanted.result.content[1].text, text)
  elseif asked.method == "tools/call" then
    assert.is_nil(answer.result.isError)
  elseif asked.method == "initialize" then
    assert.are.equal(wanted.result.protocolVersion, answer.result.protocolVersion)
  else
    assert.are.equal("server/discover", asked.method)
    assert.are.same({ "2026-07-28", "2025-11-25", "2025-06-18" }, answer.result.supportedVersions)
  end
end

describe("agenthost mcp serve", function()
  for _, name in ipairs { "claude", "codex", "gemini-cli" } do
    it("answers what " .. name .. " has sent over lines", function()
      local sent, wanted = recorded(("client-%s-stdio.jsonl"):format(name))
      if not sent[1] then
        return pending "no recordings here"
      end
      local c <close> = client.start(served(), false)
      local at, all = 0, {}
      for _, one in ipairs(sent) do
        c:send(one.message)
        if one.message.id ~= nil then
          at = at + 1
          compare(c:answer(one.message.id), wanted[at], one.message)
          table.move(c.before, 1, #c.before, #all + 1, all)
        end
      end
      assert.are.equal(#wanted, at)
      for _, m in ipairs(all) do
        assert.are.equal("notifications/tools/list_changed", m.method)
      end
      assert.are.equal(name == "claude" and 1 or 0, #all)
    end)
  end

  describe("over HTTP", function()
    local task, url

    local function start(value, token)
      local ready = ah.channel(1)
      task = ah.spawn(function()
        assert(serve_http(function(begin)
          return Server.new(value, { name = "spec", version = "1", start = begin, private = true })
        end, { listen = "127.0.0.1:0", token = token or "secret", ready = function(at)
          ready:send(at)
        end }))
      end)
      url = assert(ah.with_timeout(LONG, function() return ready:receive() end))
    end

    after_each(function()
      task:cancel()
    end)

    local HEADERS = { Authorization = "Bearer secret", ["Content-Type"] = "application/json",
      Accept = "application/json, text/event-stream" }

    local function with(more)
      local headers = {}
      for _, list in ipairs { HEADERS, more or {} } do
        for key, value in pairs(list) do
          headers[key] = value or nil
        end
      end
      return headers
    end

    local function send(body, more, method)
      return assert(ah.http { method = method or "POST", url = url, headers = with(more),
        body = type(body) == "table" and ah.json.encode(body) or body, timeout = LONG })
    end

    -- Sends a request of revision 2026-07-28 with its headers. Returns the response and the
    -- message.
    local function ask(method, params, more)
      params = params or {}
      params._meta = params._meta or client.meta {}
      local headers = { ["MCP-Protocol-Version"] = "2026-07-28", ["Mcp-Method"] = method,
        ["Mcp-Name"] = params.name or params.uri }
      for key, value in pairs(more or {}) do
        headers[key] = value
      end
      local r = send({ jsonrpc = "2.0", id = 1, method = method, params = params }, headers)
      return r, ah.json.decode(r.body)
    end

    local function initialize()
      local r = send { jsonrpc = "2.0", id = 0, method = "initialize", params = {
        protocolVersion = "2025-11-25", capabilities = ah.object {},
        clientInfo = { name = "spec", version = "1" } } }
      local id = r.headers["mcp-session-id"]
      return { ["Mcp-Session-Id"] = type(id) == "table" and id[1] or id,
        ["MCP-Protocol-Version"] = "2025-11-25" }, ah.json.decode(r.body)
    end

    -- Returns the messages of a stream of events.
    local function events(body)
      local list = {}
      for data in body:gmatch "data: ([^\n]*)\n" do
        list[#list + 1] = assert(ah.json.decode(data))
      end
      return list
    end

    it("needs the token", function()
      start(served())
      for _, given in ipairs { false, "Bearer", "Bearer wrong", "Basic secret" } do
        local r = send("{}", { Authorization = given })
        assert.are.equal(401, r.status)
      end
      assert.are.equal(200, (ask "tools/list").status)
    end)

    it("answers one message by JSON", function()
      start(served())
      local r, m = ask("tools/call", { name = "mul", arguments = { a = 2, b = 3 } })
      assert.are.equal(200, r.status)
      assert.are.equal("6", m.result.content[1].text)
      m = select(2, ask "tools/list")
      assert.are.equal("private", m.result.cacheScope)
    end)

    it("refuses headers that are not as the body", function()
      start(served())
      local params = { name = "mul", arguments = { a = 2, b = 3 } }
      for _, more in ipairs { { ["Mcp-Name"] = "add" }, { ["Mcp-Name"] = false },
        { ["Mcp-Method"] = "tools/list" }, { ["MCP-Protocol-Version"] = "2025-11-25" },
        { ["MCP-Protocol-Version"] = false }, { ["Mcp-Name"] = "=?base64?!?=" } } do
        local r, m = ask("tools/call", params, more)
        assert.are.equal(400, r.status)
        assert.are.equal(-32020, m.error.code)
      end
      local r = ask("tools/call", params, { ["Mcp-Name"] = "=?base64?bXVs?=" })
      assert.are.equal(200, r.status)
    end)

    it("refuses headers that are not as the arguments", function()
      local find = ah.tool { name = "find", description = "Finds.", schema = { type = "object",
        properties = { place = { type = "string", ["x-mcp-header"] = "Place" },
          n = { type = "integer", ["x-mcp-header"] = "N" },
          far = { type = "object", properties = { off = { type = "boolean",
            ["x-mcp-header"] = "Off" } } } } }, handler = function(args)
          return ("%s %s"):format(args.place, args.n)
        end }
      start(assert(ah.agent { model = "demo/echo", tools = { find } }))
      local function status(arguments, more)
        local r, m = ask("tools/call", { name = "find", arguments = arguments }, more)
        return r.status .. (m.error and " " .. m.error.code or "")
      end
      assert.are.equal("200", status({ place = "here", n = 4 }, { ["Mcp-Param-Place"] = "here",
        ["Mcp-Param-N"] = "4.0" }))
      assert.are.equal("200", status({ place = " ü" }, { ["Mcp-Param-Place"] = "=?base64?IMO8?=" }))
      assert.are.equal("200", status({ place = "x", far = { off = false } },
        { ["mcp-param-place"] = "x", ["MCP-PARAM-OFF"] = "false" }))
      assert.are.equal("200", status({}))
      for _, case in ipairs { { { place = "here" } }, { { place = "here" }, "there" },
        { { place = "Hello" }, "=?base64?SGVsbG8?=" }, { {}, "here" }, { { n = 4 }, nil, "4.5" },
        { { n = 4 }, nil, "4x" }, { { n = 4 } }, { { far = { off = true } }, nil, nil } } do
        assert.are.equal("400 -32020", status(case[1], { ["Mcp-Param-Place"] = case[2],
          ["Mcp-Param-N"] = case[3] }))
      end
    end)

    it("has a status for each error", function()
      start(served())
      local function status(method, params, more)
        local r, m = ask(method, params, more)
        return r.status .. " " .. m.error.code
      end
      assert.are.equal("404 -32601", status "tools/none")
      assert.are.equal("400 -32602", status("tools/call", { name = "none" }))
      assert.are.equal("400 -32602", status("tools/list", { _meta = { [META .. "protocolVersion"] =
        "2026-07-28" } }))
      assert.are.equal("400 -32022", status("tools/list", { _meta = { [META .. "protocolVersion"] =
        "2030-01-01" } }, { ["MCP-Protocol-Version"] = "2030-01-01" }))
      for body, code in pairs { ["{"] = -32700, ["[]"] = -32600, [""] = -32700 } do
        local r = send(body)
        assert.are.equal(400, r.status)
        assert.are.equal(code, ah.json.decode(r.body).error.code)
      end
      assert.are.equal(415, send("{}", { ["Content-Type"] = "text/plain" }).status)
      assert.are.equal(406, send("{}", { Accept = "application/json" }).status)
      assert.are.equal(405, send(nil, nil, "GET").status)
      assert.are.equal(405, send(nil, nil, "DELETE").status)
      assert.are.equal(403, send("{}", { Origin = "https://evil.example" }).status)
      url = url:gsub("/mcp$", "/other")
      assert.are.equal(404, send("{}").status)
    end)

    it("streams what comes before a result", function()
      local work = tool("work", "Works.", {}, function(_, ctx)
        ctx:progress(0.5, "half")
        ah.sleep(0.01)
        return "done"
      end)
      start(assert(ah.agent { model = "demo/echo", tools = { work } }))
      local r = ask("tools/call", { name = "work", _meta = client.meta({}, { progressToken = 7 }) })
      local list = events(r.body)
      assert.are.equal(2, #list)
      assert.are.equal(0.5, list[1].params.progress)
      assert.are.equal("done", list[2].result.content[1].text)
    end)

    it("asks in two requests", function()
      local order = tool("order", "Orders.", {}, function(_, ctx)
        return assert(ctx:ask { question = "What?" })
      end)
      start(assert(ah.agent { model = "demo/echo", tools = { order } }))
      local meta = client.meta { elicitation = ah.object {} }
      local _, first = ask("tools/call", { name = "order", _meta = meta })
      assert.are.equal("input_required", first.result.resultType)
      local _, second = ask("tools/call", { name = "order", _meta = meta,
        requestState = first.result.requestState, inputResponses = { ask_1 = { action = "accept",
          content = { response = "tea" } } } })
      assert.are.equal("tea", second.result.content[1].text)
    end)

    it("cancels a call whose client has gone away", function()
      local began, ended = ah.channel(1), ah.channel(1)
      local wait = tool("wait", "Waits.", {}, function()
        local _ <close> = setmetatable({}, { __close = function() ended:close() end })
        began:close()
        ah.sleep(600)
      end)
      start(assert(ah.agent { model = "demo/echo", tools = { wait } }))
      local asking = ah.spawn(ask, "tools/call", { name = "wait" })
      began:receive()
      asking:cancel()
      assert.is_true(ah.with_timeout(LONG, function()
        ended:receive()
        return true
      end))
    end)

    it("has sessions for older clients, which end", function()
      start(served())
      local session, hello = initialize()
      assert.are.equal("2025-11-25", hello.result.protocolVersion)
      assert.are.equal(202, send({ jsonrpc = "2.0", method = "notifications/initialized" },
        session).status)
      local function call(name, arguments)
        local r = send({ jsonrpc = "2.0", id = 1, method = "tools/call",
          params = { name = name, arguments = arguments } }, session)
        return r, r.body
      end
      local _, body = call "grow"
      assert.are.equal("notifications/tools/list_changed", events(body)[1].method)
      _, body = call("late", { x = "now" })
      assert.are.equal("late says now", ah.json.decode(body).result.content[1].text)
      local other = initialize()
      assert.are_not.equal(other["Mcp-Session-Id"], session["Mcp-Session-Id"])
      assert.are.equal(400, send({ jsonrpc = "2.0", id = 1, method = "tools/list" }).status)
      assert.are.equal(400, send({ jsonrpc = "2.0", id = 1, method = "tools/list" },
        { ["Mcp-Session-Id"] = other["Mcp-Session-Id"], ["MCP-Protocol-Version"] = "x" }).status)
      assert.are.equal(200, send(nil, session, "DELETE").status)
      assert.are.equal(404, (call("late", { x = "now" })).status)
    end)

    it("has a stream of a session for what belongs to no request", function()
      start(served())
      local session = initialize()
      send({ jsonrpc = "2.0", method = "notifications/initialized" }, session)
      local stream <close> = assert(ah.http { url = url, headers = with(session), stream = "sse" })
      assert.are.equal(200, stream.status)
      assert.are.equal(409, send(nil, session, "GET").status)
      local r = send({ jsonrpc = "2.0", id = 1, method = "tools/call",
        params = { name = "grow" } }, session)
      assert.is_truthy(ah.json.decode(r.body).result.content[1].text:find "^grown")
      assert.are.equal("notifications/tools/list_changed",
        ah.json.decode(assert(stream:read()).data).method)
    end)

    it("answers what claude has sent", function()
      local sent, wanted = recorded "client-claude-http.jsonl"
      if not sent[1] then
        return pending "no recordings here"
      end
      start(served(), "dummy")
      local at, session = 0, nil
      for _, one in ipairs(sent) do
        local headers = with { Authorization = "Bearer dummy" }
        for _, name in ipairs { "mcp-protocol-version", "mcp-method", "Accept", "User-Agent" } do
          headers[name] = one.headers[name]
        end
        headers["mcp-session-id"] = one.headers["mcp-session-id"] and session
        local r = assert(ah.http { method = "POST", url = url, headers = headers,
          body = ah.json.encode(one.message), timeout = LONG })
        local id = r.headers["mcp-session-id"]
        session = session or (type(id) == "table" and id[1] or id)
        if one.message.id ~= nil then
          at = at + 1
          compare(ah.json.decode(r.body), wanted[at], one.message)
        end
      end
      assert.are.equal(#wanted, at)
    end)
  end)

  describe("as a command", function()
    local SCRIPT = [[
local ah = require "agenthost"
print "a line of the script"
return ah.agent { model = "openai/gpt-4o", tools = {
  ah.tool { name = "say", description = "Says.", params = { word = "string" },
    handler = function(args)
      print "said"
      io.write "written\n"
      return (arg[1] or "") .. args.word
    end },
  ah.tool { name = "used", description = "The most memory that was used, in KiB.",
    handler = function()
      local status <close> = io.open "/proc/self/status"
      return tonumber(status:read "a":match "VmHWM:%s*(%d+)")
    end } } }
]]
    after_each(command.tidy)

    local function start(args, env)
      local path = command.write(command.folder() .. "/shop.lua", SCRIPT)
      for i, word in ipairs(args) do
        args[i] = word == "SCRIPT" and path or word
      end
      return assert(ah.process { command = command.BINARY, args = { "mcp", table.unpack(args) },
        env = env, timeout = LONG })
    end

    it("writes nothing but messages, needs no key, and ends with its input", function()
      local p <close> = start { "serve", "SCRIPT", "x" }
      assert(p:write(ah.json.encode { jsonrpc = "2.0", id = 1, method = "tools/call",
        params = { name = "say", arguments = { word = "hi" }, _meta = client.meta {} } } .. "\n"))
      local m = assert(p:line { json = true })
      assert.are.equal("xhi", m.result.content[1].text)
      assert.are.equal("shop", m.result._meta[META .. "serverInfo"].name)
      p:close_input()
      assert.is_nil(p:line())
      assert.are.equal(0, p:wait().exit_code)
      assert.are.equal("a line of the script\nsaid\nwritten\n", p:errors())
    end)

    it("answers what is at work when its input ends", function()
      local p <close> = start { "serve", "SCRIPT" }
      assert(p:write(ah.json.encode { jsonrpc = "2.0", id = 1, method = "tools/call",
        params = { name = "say", arguments = { word = "hi" }, _meta = client.meta {} } } .. "\n"))
      p:close_input()
      assert.are.equal("hi", p:line { json = true }.result.content[1].text)
      assert.are.equal(0, p:wait().exit_code)
    end)

    local function used(p)
      assert(p:write(ah.json.encode { jsonrpc = "2.0", id = 8, method = "tools/call",
        params = { name = "used", arguments = ah.object {}, _meta = client.meta {} } } .. "\n"))
      return tonumber(p:line { json = true }.result.content[1].text)
    end

    local PING = '{"jsonrpc":"2.0","id":%d,"method":"ping"}\n'

    it("refuses a line of 100 MiB, keeps little of it, and goes on", function()
      -- The address sanitizer keeps what was freed, up to a size.
      local p <close> = start({ "serve", "SCRIPT" },
        { ASAN_OPTIONS = "detect_leaks=0:quarantine_size_mb=4" })
      local before = used(p)
      local writer = ah.spawn(function()
        local piece = ("x"):rep(1 << 20)
        for _ = 1, 100 do
          p:write(piece)
        end
        p:write("\n" .. PING:format(7))
      end)
      assert.are.equal(-32600, p:line { json = true }.error.code)
      assert.are.equal(7, p:line { json = true }.id)
      writer:await()
      assert.is_true(used(p) - before < 64 << 10)
    end)

    it("waits for the rest of a line", function()
      local p <close> = start { "serve", "SCRIPT" }
      local line = PING:format(1)
      for i = 1, #line do
        assert(p:write(line:sub(i, i)))
      end
      assert.are.equal(1, p:line { json = true }.id)
      assert(p:write(line:sub(1, 20))) -- the rest never comes
      p:close_input()
      assert.are.equal(-32700, p:line { json = true }.error.code)
      assert.are.equal(0, p:wait().exit_code)
    end)

    it("answers each request of a flood once", function()
      local p <close> = start { "serve", "SCRIPT" }
      local writer = ah.spawn(function()
        for i = 1, 3000 do
          p:write(PING:format(i))
        end
      end)
      local seen = {}
      for _ = 1, 3000 do
        local m = p:line { json = true }
        assert.is_nil(seen[m.id])
        seen[m.id] = m.result or m.error
      end
      assert.are.equal(3000, #seen)
      writer:await()
    end)

    it("reads no more from a client that does not read", function()
      local p <close> = start { "serve", "SCRIPT" }
      local pings, sent = PING:format(1):rep(1000), 0
      while sent < 64 << 20 and p:write(pings, { timeout = 1 }) do
        sent = sent + #pings
      end
      assert.is_true(sent < 32 << 20, sent)
    end)

    it("ends with a client that is gone", function()
      local path = command.write(command.folder() .. "/shop.lua", SCRIPT)
      local r = command.shell(([[yes '%s' |
        { timeout -s KILL 60 "$A" mcp serve %s; echo "code $?" >&2; } | head -n 3]]):format(
        PING:format(1):sub(1, -2), path))
      assert.are.equal(3, select(2, r.out:gsub("\n", "")))
      local code = tonumber(r.err:match "code (%d+)")
      assert.is_true(code ~= nil and code ~= 137, r.err)
    end)

    it("listens with --http", function()
      local p <close> = start({ "serve", "SCRIPT", "--http" }, { AGENTHOST_MCP_TOKEN = "secret" })
      local url = assert(p:line())
      assert.is_truthy(url:find "^http://127%.0%.0%.1:%d+/mcp$")
      local headers = { Authorization = "Bearer secret", ["Content-Type"] = "application/json",
        Accept = "application/json, text/event-stream", ["Mcp-Method"] = "tools/list",
        ["MCP-Protocol-Version"] = "2026-07-28" }
      local r = assert(ah.http { method = "POST", url = url, headers = headers, timeout = LONG,
        body = ah.json.encode { jsonrpc = "2.0", id = 1, method = "tools/list",
          params = { _meta = client.meta {} } } })
      assert.are.equal("say", ah.json.decode(r.body).result.tools[1].name)
      assert.is_nil(p:errors():find "Bearer")
      p:kill()
    end)

    it("makes a token if there is none", function()
      local p <close> = start({ "serve", "SCRIPT", "--http" }, { AGENTHOST_MCP_TOKEN = false })
      assert(p:line())
      assert.is_truthy(p:errors():find "Authorization: Bearer %S+\n")
      p:kill()
    end)

    it("says what is wrong with its words", function()
      for words, said in pairs { ["serve nothing.lua"] = "nothing.lua", ["serve"] =
        "no script given", ["srve x.lua"] =
        "needs one of these actions: list tools call pin login logout serve" } do
        local args = {}
        for word in words:gmatch "%S+" do
          args[#args + 1] = word
        end
        local p <close> = start(args)
        assert.are.equal(2, p:wait { discard = true }.exit_code)
        assert.is_truthy(p:errors():find(said, 1, true), p:errors())
      end
    end)
  end)
end)
