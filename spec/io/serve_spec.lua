-- ah.serve: requests as tables, answers whole and in pieces, many at once; clients that are
-- hostile, slow or gone; host names that are refused; the end of a server. Servers run in other
-- processes, with the command and with stock Lua; the clients are ah.http and spec/support/crowd.c.
local ah = require "agenthost"
local command = require "support.command"

local BUILD = os.getenv "AGENTHOST_BUILD" or "./build"
local it = command.shell('"$A" -v --version').out:find("libmicrohttpd none", 1, true) and pending
  or it
local has = command.has

after_each(command.tidy)

-- -- servers in processes of their own -------------------------------------------------------

local Process = {}
Process.__index = Process

function Process:errors()
  return command.contents(self.err)
end

function Process:peak()
  return tonumber(command.contents("/proc/" .. self.pid .. "/status"):match("VmHWM:%s+(%d+)"))
    / 1024
end

-- Ends the process by a signal, unless it has ended; returns its exit code.
function Process:close()
  if self.pipe then
    os.execute("kill -TERM " .. self.pid .. " 2>/dev/null")
    self.code = select(3, self.pipe:close())
    self.pipe = nil
  end
  return self.code
end

Process.__close = Process.close
Process.__gc = Process.close

local RUN = { command = command.quote(command.BINARY),
  lua = ("LUA_CPATH=%s lua5.4"):format(command.quote(BUILD .. "/?.so")) }

-- on_request: the function's text; more: further fields of ah.serve, as text.
local function start(on_request, more, how)
  local err = command.temp()
  local script = command.temp(([[local ah = require "agenthost"
    SEEN = {}
    local server = assert(ah.serve { %s on_request = %s })
    SERVER = server
    io.stdout:setvbuf "no"
    print(server.url)
    server:wait()
    print(table.concat(SEEN, " "))]]):format(more and more .. "," or "", on_request))
  local asan = os.getenv "AGENTHOST_ASAN"
  local before = how == "lua" and asan and "LD_PRELOAD=" .. asan or "LD_PRELOAD="
  local self = setmetatable({ err = err }, Process)
  self.pipe = assert(io.popen((
    "echo $$; export %s XDG_CONFIG_HOME=/dev/null; exec env %s %s </dev/null 2>%s"):format(
    before, RUN[how or "command"], command.quote(script), command.quote(err))))
  self.pid, self.url = self.pipe:read "l", self.pipe:read "l"
  assert(self.url, command.contents(err))
  return self
end

local function crowd(p, how, ...)
  local words = { command.quote(BUILD .. "/crowd"), how, p.url:match "%d+$", ... }
  return assert(io.popen("LD_PRELOAD= " .. table.concat(words, " ")))
end

-- Sends these bytes. Returns all bytes that come until the server closes. how "expect": the body
-- is sent only after the first bytes of a response.
local function say(p, bytes, how)
  local file = command.temp(bytes)
  local pipe <close> = crowd(p, how or "say", file)
  return pipe:read "a"
end

local function get(p, path, more)
  local request = { url = p.url .. path }
  for name, value in pairs(more or {}) do
    request[name] = value
  end
  return assert(ah.http(request))
end

local ECHO = [[function(q, r)
  if q.path == "/raise" then error "a secret" end
  if q.path == "/nil" then return nil, "another secret" end
  if q.path == "/odd" then return 5 end
  if q.path == "/head" then return { status = 200, headers = { ["X-A"] = "b\r\nX-C: d" } } end
  if q.path == "/none" then return end
  if q.path == "/sleep" then ah.sleep(tonumber(q.query.s[1])) return "slept" end
  if q.path == "/text" then return "text" end
  if q.path == "/cookies" then
    return { status = 404, headers = { ["Set-Cookie"] = { "a=1", "b=2" } }, body = "no" }
  end
  return { body = q }
end]]

describe("ah.serve", function()
  for _, how in ipairs { "command", "lua" } do
    it("gives requests as tables, and takes tables, texts and nothing, in " .. how, function()
      local p <close> = start(ECHO, nil, how)
      local r = get(p, "/a%20b%2Fc?x=1&y=%41+b&x=%zz&z&=", { method = "PUT", body = "bo\0dy",
        headers = { ["X-Two"] = "a" } })
      local q = ah.json.decode(r.body)
      assert.same({ "PUT", "/a b/c", "/a%20b%2Fc?x=1&y=%41+b&x=%zz&z&=", "bo\0dy", { "a" } },
        { q.method, q.path, q.target, q.body, q.headers["x-two"] })
      assert.same({ ["x"] = { "1", "%zz" }, y = { "A b" }, z = { "" }, [""] = { "" } }, q.query)
      assert.matches("^127%.0%.0%.1:%d+$", q.remote)
      assert.same({ 200, "application/json" }, { r.status, r.headers["content-type"] })
      r = get(p, "/text")
      assert.same({ 200, "text", "text/plain; charset=utf-8" },
        { r.status, r.body, r.headers["content-type"] })
      r = get(p, "/none")
      assert.same({ 204, "" }, { r.status, r.body })
      has(say(p, "GET /cookies HTTP/1.0\r\nHost: localhost\r\n\r\n"), "Set-Cookie: b=2")
      assert.equal(404, get(p, "/cookies").status)
      assert.equal("", get(p, "/text", { method = "HEAD" }).body)
      assert.equal("", p:errors())
    end)

    it("answers 300 clients at once while their handlers wait, in " .. how, function()
      local p <close> = start(ECHO, nil, how)
      local file = command.temp(
        "GET /sleep?s=0.2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
      local began = ah.now()
      local pipe <close> = crowd(p, "ask", 300, 0, file)
      local bytes = tonumber(pipe:read("l"):match "^%d+ %d+ (%d+)")
      assert.is_true(bytes >= 300 * #"slept")
      assert.is_true(ah.now() - began < 40, "one after the other")
      assert.equal("slept", get(p, "/sleep?s=0").body)
    end)
  end

  it("tells a client nothing of what went wrong, and its log where", function()
    local p <close> = start(ECHO)
    for _, path in ipairs { "/raise", "/nil", "/odd", "/head" } do
      local r = get(p, path .. "?key=12345")
      assert.same({ 500, "Internal Server Error\n" }, { r.status, r.body }, path)
    end
    local errors = p:errors()
    has(errors, "the handler of GET /raise failed: ")
    assert.matches(":%d+: a secret", errors)
    has(errors, "another secret")
    has(errors, "{ status, headers, body } or a text, found number")
    has(errors, "header 'X-A' cannot be sent")
    command.has_not(errors, "12345")
  end)

  it("sends what a handler writes, as it is written, and waits for slow readers", function()
    local p <close> = start [[function(q, r)
      if q.path == "/events" then
        for i = 1, 3 do
          assert(r:event { event = "tick", id = tostring(i), retry = 10, data = "a\r\nb\n" })
        end
        return
      elseif q.path == "/never" then
        assert(r:begin { status = 202 })
        r:write "first"
        ah.sleep(60)
      end
      assert(r:begin { status = 201, headers = { ["Content-Type"] = "x/y" } })
      assert(not pcall(r.begin, r, {}))
      for _ = 1, 160 do
        assert(r:write(("x"):rep(65536)))
      end
      r:close()
      assert(not pcall(r.write, r, "more"))
    end]]
    local r = assert(ah.http { url = p.url .. "/events", stream = "sse" })
    local n = 0
    for event in r:pieces() do
      n = n + 1
      assert.same({ event = "tick", id = tostring(n), retry = 10, data = "a\nb\n" }, event)
    end
    assert.equal(3, n)
    r = assert(ah.http { url = p.url .. "/never", stream = "bytes" })
    assert.same({ 202, "first" }, { r.status, r:read() })
    local slow = {}
    for i = 1, 10 do
      slow[i] = assert(ah.http { url = p.url .. "/big", stream = "bytes" })
      assert.same({ 201, "x/y" }, { slow[i].status, slow[i].headers["content-type"] })
    end
    ah.sleep(0.5)
    for i = 1, 10 do
      assert.equal(160 * 65536, #assert(slow[i]:read_all()))
    end
    if not os.getenv "AGENTHOST_ASAN" then
      assert.is_true(p:peak() < 60, p:peak() .. " MiB")
    end
    r:close()
    assert.equal("", p:errors())
  end)

  it("stops the handler of a client that is gone, and closes what it has open", function()
    local p <close> = start [[function(q, r)
      if q.path == "/seen" then return table.concat(SEEN, " ") end
      local mark <close> = setmetatable({}, { __close = function()
        SEEN[#SEEN + 1] = q.path
      end })
      if q.path == "/write" then
        while true do
          r:write(("x"):rep(65536))
        end
      end
      ah.sleep(60)
      SEEN[#SEEN + 1] = "slept"
    end]]
    for _, path in ipairs { "/wait", "/write" } do
      if path == "/write" then
        local r = assert(ah.http { url = p.url .. path, stream = "bytes" })
        r:read()
        r:close()
      else
        assert.is_nil(ah.http { url = p.url .. path, timeout = 0.3 })
      end
    end
    local seen
    for _ = 1, 300 do
      seen = get(p, "/seen").body
      if #seen >= #"/wait /write" then
        break
      end
      ah.sleep(0.05)
    end
    has(seen, "/wait")
    has(seen, "/write")
    command.has_not(seen, "slept")
    assert.equal("", p:errors())
  end)

  it("breaks an answer off where its handler raises, or aborts it", function()
    local p <close> = start [[function(q, r)
      r:write "half"
      if q.path == "/abort" then
        r:abort()
      else
        error "midway"
      end
    end]]
    for _, path in ipairs { "/abort", "/raise" } do
      local r, err = ah.http { url = p.url .. path }
      assert.is_nil(r)
      assert.equal("http", err.code)
    end
    has(p:errors(), "midway")
  end)

  it("refuses an answer, a head and an event that are mistaken, by their field", function()
    local p <close> = start [[function(q, r)
      local function told(...)
        return tostring(select(2, pcall(...)))
      end
      if q.path == "/answer" then return { status = 199 } end
      if q.path == "/body" then return { body = true } end
      return table.concat({ told(r.begin, r, { lenght = 1 }), told(r.begin, r, { status = 600 }),
        told(r.begin, r, { length = -1 }), told(r.event, r, { data = 5 }),
        told(r.event, r, { retry = -1 }), told(r.event, r, { id = "a\nb" }), told(r.event, r) },
        "\n")
    end]]
    local text = get(p, "/").body
    for _, said in ipairs {
      "response:begin: unknown field 'lenght' (did you mean 'length'?)",
      "response:begin: field 'status' must be an integer from 200 to 599, found 600",
      "response:begin: field 'length' must be a number of at least 0, found -1",
      "response:event: field 'data' must be a string, found number",
      "response:event: field 'retry' must be an integer of at least 0, found -1",
      "response:event: id must be one line",
      "response:event: expected a table of fields, found nil",
    } do
      has(text, said)
    end
    assert.same({ 500, 500 }, { get(p, "/answer").status, get(p, "/body").status })
    has(p:errors(), "an answer: field 'status' must be an integer from 200 to 599, found 199")
    has(p:errors(), "an answer: field 'body' must be a string or a table, { ... }, found boolean")
  end)

  it("tells the length of a body that is written, and keeps to it", function()
    local p <close> = start [[function(q, r)
      assert(r:begin { status = 200, length = 6 })
      r:write "abc"
      if q.path == "/exact" then r:write "def" end
      if q.path == "/long" then r:write "defg" r:write "more" end
    end]]
    for _, path in ipairs { "/exact", "/long" } do
      local r = get(p, path)
      assert.same({ "abcdef", "6" }, { r.body, r.headers["content-length"] })
    end
    assert.is_nil(ah.http { url = p.url .. "/short" })
    local r = get(p, "/exact", { method = "HEAD" })
    assert.same({ "", "6" }, { r.body, r.headers["content-length"] })
    assert.equal("", p:errors())
  end)

  it("holds a handler that writes to what it works for one piece", function()
    local p <close> = start [[function(q, r)
      local began = os.clock()
      for i = 1, 30 do
        repeat until os.clock() - began > i * 0.02
        r:write "x"
      end
    end]]
    assert.equal(("x"):rep(30), get(p, "/").body)
  end)

  it("takes no more handlers at once than it is told, and the others in their order", function()
    local p <close> = start([[function(q)
      NOW = (NOW or 0) + 1
      MOST = math.max(MOST or 0, NOW)
      ah.sleep(0.02)
      NOW = NOW - 1
      return tostring(MOST)
    end]], "max_requests = 3")
    local file = command.temp "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    local pipe <close> = crowd(p, "ask", 40, 0, file)
    pipe:read "l"
    assert.equal("3", get(p, "/").body)
  end)

  it("lets handlers ask others, and run agents", function()
    local p <close> = start([[function(q)
      if q.path == "/inner" then return "inner" end
      local model = ah.scripted { { calls = { { name = "t" } } }, "ran" }
      local reply = assert(ah.run { model = model, "go",
        tools = { ah.tool { name = "t", description = "Waits.", handler = function()
          ah.sleep(0.01)
          return assert(ah.http { url = SERVER.url .. "/inner" }).body
        end } } })
      return reply.messages[3].content .. " " .. reply.text
    end]])
    assert.equal("inner ran", get(p, "/").body)
  end)
end)

-- -- hostile clients -------------------------------------------------------------------------

local function asked(line, headers, body)
  return ("%s HTTP/1.1\r\n%s\r\n%s"):format(line, headers or "Host: localhost\r\n", body or "")
end

describe("the clients of ah.serve", function()
  it("are refused by the head alone where it is odd", function()
    local p <close> = start(ECHO, 'hosts = { "example.com" }, origins = { "https://app.example" }')
    local function status(headers)
      return tonumber(say(p, asked("GET /text", headers .. "Connection: close\r\n"))
        :match "^HTTP/1.1 (%d+)")
    end
    local port = p.url:match "%d+$"
    for headers, expected in pairs {
      ["Host: localhost\r\n"] = 200,
      ["Host: LOCALHOST:1\r\n"] = 200,
      ["Host: 127.0.0.1:" .. port .. "\r\n"] = 200,
      ["Host: example.com:443\r\n"] = 200,
      ["Host: evil.example\r\n"] = 403,
      ["Host: 127.0.0.2\r\n"] = 403,
      ["Host: localhost.evil.example\r\n"] = 403,
      ["Host: example.com.\r\n"] = 403,
      ["Host: localhost:80:80\r\n"] = 403,
      ["Host: localhost@evil.example\r\n"] = 403,
      ["Host: \r\n"] = 403,
      ["Host: localhost\r\nHost: localhost\r\n"] = 400,
      ["X: y\r\n"] = 400,
      ["Host: localhost\r\nOrigin: http://localhost\r\n"] = 200,
      ["Host: localhost:" .. port .. "\r\nOrigin: http://localhost:" .. port .. "\r\n"] = 200,
      ["Host: localhost\r\nOrigin: https://app.example\r\n"] = 200,
      ["Host: localhost\r\nOrigin: http://app.example\r\n"] = 403,
      ["Host: localhost:" .. port .. "\r\nOrigin: http://localhost:1\r\n"] = 403,
      ["Host: localhost\r\nOrigin: null\r\n"] = 403,
      ["Host: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n"] = 400,
      ["Host: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n"] = 400,
      ["Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n"] = 400,
      ["Host: localhost\r\nContent-Length: 99999999999\r\n"] = 413,
      ["Host: localhost\r\nX: " .. ("x"):rep(40000) .. "\r\n"] = 431,
    } do
      assert.equal(expected, status(headers), headers:sub(1, 100))
    end
    assert.equal("text", get(p, "/text").body)
  end)

  it("may pipeline, expect, and close their side", function()
    local p <close> = start(ECHO)
    local all = say(p, asked "GET /text" .. asked "GET /cookies"
      .. asked("GET /text", "Host: localhost\r\nConnection: close\r\n"))
    local _, n = all:gsub("HTTP/1.1 %d+", "")
    assert.equal(3, n)
    has(all, "HTTP/1.1 404")
    local expecting = asked("POST /", "Host: localhost\r\nExpect: 100-continue\r\n"
      .. "Connection: close\r\nContent-Length: 4\r\n", "body")
    local told = say(p, expecting, "expect")
    assert.matches("^HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK", told)
    has(told, '"body":"body"')
    -- a server may omit the 100 where the body has come already (RFC 9110, 10.1.1)
    told = say(p, expecting):gsub("^HTTP/1.1 100 Continue\r\n\r\n", "")
    assert.matches("^HTTP/1.1 200 OK", told)
    has(told, '"body":"body"')
    has(say(p, asked("POST /", "Host: localhost\r\nTransfer-Encoding: chunked\r\n"
      .. "Connection: close\r\n", "2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n")), '"body":"body"')
  end)

  it("keep nobody out who send slowly, say nothing, or send without an end", function()
    local p <close> = start(ECHO, "max_connections = 20, header_timeout = 1, body_timeout = 1, "
      .. "max_body = 100000")
    local slow = crowd(p, "hold", 60, command.temp(asked("GET /", "X: " .. ("x"):rep(9999))),
      200, 3)
    slow:read "l"
    local began = ah.now()
    assert.equal("text", get(p, "/text").body)
    assert.is_true(ah.now() - began < 20)
    slow:close()
    local pipe <close> = crowd(p, "flood",
      command.temp("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"))
    local sent, line = pipe:read("l"):match "^(%d+) (.*)$"
    assert.equal("HTTP/1.1 413 Content Too Large", line)
    assert.is_true(tonumber(sent) < 32 << 20, sent)
    for _, half in ipairs { "GET / HT", asked("POST /", "Host: localhost\r\nContent-Length: 9\r\n",
      "x") } do
      local told = say(p, half)
      assert.matches("^HTTP/1.1 408 ", told)
    end
    assert.equal("text", get(p, "/text").body)
    assert.equal("", p:errors())
  end)

  it("may send anything, and reset in the midst of an answer", function()
    local p <close> = start [[function(q, r)
      if q.path == "/text" then return "text" end
      for _ = 1, 40 do
        assert(r:write(("x"):rep(65536)))
      end
    end]]
    local request = command.temp(asked("POST /?a=b", "Host: localhost\r\nContent-Length: 4\r\n",
      "body"))
    crowd(p, "garble", 60, request, 7):close()
    crowd(p, "ask", 30, 30, request):close()
    assert.equal("text", get(p, "/text").body)
    assert.equal("", p:errors())
  end)
end)

-- -- refusals ----------------------------------------------------------------------------------

-- Answers in a protocol's own format, and functions that fail, by path.
local REFUSE = [[on_refusal = function(refusal, q)
  if q.path == "/raise" then error "a secret" end
  if q.path == "/nil" then return nil, "another secret" end
  if q.path == "/none" then return end
  if q.path == "/text" then return "a text" end
  if q.path == "/odd" then return 5 end
  if q.path == "/large" then return { body = ("x"):rep(16385) } end
  if q.path == "/largest" then return { body = ("x"):rep(16384) } end
  if q.path == "/head" then return { headers = { ["X-A"] = "b\r\nX-C: d" } } end
  if q.path == "/heads" then return { headers = { ["X-A"] = ("x"):rep(32000) } } end
  if q.path == "/sleep" then
    local mark <close> = setmetatable({}, { __close = function() SEEN[#SEEN + 1] = "closed" end })
    ah.sleep(60)
  end
  if q.path == "/close" then SERVER:close() end
  if q.path == "/other" then return { status = 418, headers = { ["X-Two"] = { "a", "b" } } } end
  return { body = { status = refusal.status, words = refusal.message, path = q.path,
    query = q.query.a, agent = q.headers["x-agent"], method = q.method, target = q.target,
    body = q.body, remote = q.remote:match "^127" } }
end]]

-- Sends a request whose head announces a body that is too large.
local function too_large(path, headers)
  return asked("POST " .. path, "Host: localhost\r\n" .. (headers or "")
    .. "Content-Length: 2000000\r\n")
end

describe("what ah.serve refuses", function()
  local FINE = [[function(q)
    if q.path == "/seen" then return table.concat(SEEN, " ") end
    if q.path == "/work" then ah.sleep(60) end
    return "fine"
  end]]
  local function serving(more)
    return start(FINE, "max_body = 1048576, max_header = 2048, " .. REFUSE
      .. (more and ", " .. more or ""))
  end

  it("is answered by on_refusal, in its words and with the refusal's status", function()
    local p <close> = serving "body_timeout = 0.3"
    for bytes, expected in pairs {
      [too_large("/a%20b?a=1", "X-Agent: me\r\n")] = { 413, "the request is larger than 1 MiB" },
      [asked("GET /x", "Host: evil.example\r\n")] =
        { 403, "this server does not answer to this Host" },
      [asked("GET /x", ("Host: localhost\r\n"):rep(2))] =
        { 400, "the request has more than one Host or Origin" },
      [asked("GET /x", "Host: localhost\r\nX: " .. ("x"):rep(2100) .. "\r\n")] =
        { 431, "the request's head is larger than 2 KiB" },
      [asked("POST /x", "Host: localhost\r\nContent-Length: 9\r\n", "x")] =
        { 408, "the request did not come in time" },
    } do
      local head, body = say(p, bytes):match "^(.-)\r\n\r\n(.*)$"
      local told = ah.json.decode(body)
      assert.matches("^HTTP/1.1 " .. expected[1] .. " %a", head)
      has(head, "Content-Type: application/json")
      has(head, "Connection: close")
      has(head, "Content-Length: " .. #body)
      assert.same(expected, { told.status, told.words })
      assert.same({ "127", bytes:match "^%u+" }, { told.remote, told.method })
      assert.is_nil(told.body)
      if told.status == 413 then
        assert.same({ "/a b", "/a%20b?a=1", { "1" }, { "me" } },
          { told.path, told.target, told.query, told.agent })
      end
    end
    local told = say(p, too_large "/text")
    assert.matches("^HTTP/1.1 413 .*\r\n\r\na text$", told)
    told = say(p, too_large "/other")
    assert.matches("^HTTP/1.1 418 .*X%-Two: a\r\nX%-Two: b", told)
    told = say(p, "HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n")
    assert.matches("^HTTP/1.1 403 .*\r\n\r\n$", told)
    assert.matches("\r\n\r\n" .. ("x"):rep(100), say(p, too_large "/largest"))
    assert.equal("", p:errors())
    assert.equal("fine", get(p, "/").body)
  end)

  it("is answered in the words of libmicrohttpd where that refuses the head", function()
    local p <close> = serving()
    for headers, words in pairs {
      ["X: y\r\n"] = "the request has no Host",
      ["Host: localhost\r\nTransfer-Encoding: gzip\r\n"] =
        "the transfer coding of the body is not supported",
      ["Host: localhost\r\nContent-Length: 4x\r\n"] = false, -- by all versions
    } do
      local head, body = say(p, asked("POST /x", headers)):match "^(.-)\r\n\r\n(.*)$"
      assert.matches("^HTTP/1.1 400 %a", head)
      has(head, "Connection: close")
      if not body:find("<html>", 1, true) then
        assert.equal(words, ah.json.decode(body).words)
      end
    end
    assert.equal("", p:errors())
    assert.equal("fine", get(p, "/").body)
  end)

  it("is answered where the body is on its way, and where bodies are too much together", function()
    local p <close> = serving "max_bodies = 3000"
    local pipe <close> = crowd(p, "flood",
      command.temp(asked("POST /", "Host: localhost\r\nTransfer-Encoding: chunked\r\n")))
    local sent, line = pipe:read("l"):match "^(%d+) (.*)$"
    assert.matches("^HTTP/1.1 503 ", line)
    assert.is_true(tonumber(sent) < 64 << 20, sent)
    local told = say(p, asked("POST /", "Host: localhost\r\nContent-Length: 4000\r\n",
      ("x"):rep(4000)))
    has(told, "the requests under way are larger than 3000 bytes")
    assert.equal(200, get(p, "/", { method = "POST", body = ("x"):rep(2000) }).status)
  end)

  it("is a line of text where on_refusal fails, is odd, too long or too late", function()
    local p <close> = serving()
    for _, path in ipairs { "/none", "/raise", "/nil", "/odd", "/large", "/head", "/heads",
      "/sleep" } do
      local told = say(p, too_large(path .. "?key=12345"))
      assert.matches("^HTTP/1.1 413 .*text/plain.*\r\n\r\nthe request is larger than 1 MiB\n$",
        told, path)
      assert.equal("fine", get(p, "/").body)
    end
    local errors = p:errors()
    has(errors, "ah.serve: on_refusal of POST /raise failed: ")
    has(errors, "another secret")
    has(errors, "or a text, found number")
    has(errors, "to a refused request may have 16384 bytes of body, found 16385")
    has(errors, "header 'X-A' cannot be sent")
    command.has_not(errors, "12345")
    local seen
    for _ = 1, 200 do
      seen = get(p, "/seen").body
      if seen == "closed" then
        break
      end
      ah.sleep(0.05)
    end
    assert.equal("closed", seen)
  end)

  it("waits for no handler, however many are at work or refused", function()
    local p <close> = serving "max_requests = 1"
    local work = crowd(p, "hold", 1, command.temp(asked "GET /work"), 1, 20)
    work:read "l"
    ah.sleep(0.3)
    local pipe <close> = crowd(p, "ask", 200, 100, command.temp(too_large "/x"))
    local first, _, bytes = pipe:read("l"):match "^(%d+) (%d+) (%d+)"
    assert.is_true(tonumber(first) < 20000 and tonumber(bytes) > 100 * 150, bytes)
    has(say(p, too_large "/x"), "the request is larger than 1 MiB")
    os.execute("kill -TERM " .. p.pid)
    work:close()
  end)

  it("has its answer though the function closes the server", function()
    local p = serving()
    has(say(p, too_large "/close"), '"path":"/close"')
    assert.equal(0, select(3, p.pipe:close()))
    p.pipe = nil
  end)

  it("is none without a head to tell of", function()
    local p <close> = serving "header_timeout = 0.3"
    for _, bytes in ipairs { "GET / HT", "GET /x HTTP/1.1\r\nHost: localhost\r\nX" } do
      assert.matches("^HTTP/1.1 408 .*the request did not come in time\n$", say(p, bytes))
    end
    assert.matches("^HTTP/1.1 4%d%d ", say(p, "GET /" .. ("x"):rep(9000) .. " HTTP/1.1\r\n\r\n"))
    crowd(p, "garble", 60, command.temp(too_large("/x")), 11):close()
    assert.equal("fine", get(p, "/").body)
  end)

  it("is not a body whose length stands before digits", function()
    local p <close> = serving()
    local told = say(p, asked("POST /", "Host: localhost\r\nConnection: close\r\n"
      .. "Content-Length: 4\r\n99999999999: x\r\n", "body"))
    assert.matches("^HTTP/1.1 200 ", told)
    for _, length in ipairs { "1048577", "18446744073709551617", ("9"):rep(300) } do
      assert.matches("^HTTP/1.1 413 ", say(p, asked("POST /",
        "Host: localhost\r\nContent-Length: " .. length .. "\r\n")))
    end
  end)
end)

-- -- when the answer is out ------------------------------------------------------------------

describe("response:wait", function()
  local WAITS = [[function(q, r)
    if q.path == "/seen" then return table.concat(SEEN, " ") end
    SEEN = { q.path }
    local mark <close> = setmetatable({}, { __close = function() SEEN[#SEEN + 1] = "closed" end })
    if q.path == "/before" then
      SEEN[#SEEN + 1] = tostring(r:wait())
      return "fine"
    elseif q.path == "/length" then
      r:begin { length = 4 }
      SEEN[#SEEN + 1] = tostring(r:write "fine")
      SEEN[#SEEN + 1] = tostring(r:write "more")
    elseif q.path == "/abort" then
      r:write "half"
      r:abort()
      SEEN[#SEEN + 1] = tostring(r:wait())
      SEEN[#SEEN + 1] = tostring(r:write "more")
    elseif q.path == "/nothing" then
      r:abort()
    else
      for _ = 1, tonumber(q.query.n and q.query.n[1] or 1) do
        r:write(("fine"):rep(16384))
      end
      r:close()
      SEEN[#SEEN + 1] = tostring(r:wait())
      ah.sleep(0.01)
      SEEN[#SEEN + 1] = tostring(r:wait())
    end
  end]]

  local function seen(p, expected)
    local text
    for _ = 1, 300 do
      text = get(p, "/seen").body
      if text == expected then
        break
      end
      ah.sleep(0.02)
    end
    assert.equal(expected, text)
  end

  it("waits until the answer is out, and lets the handler go on", function()
    local p <close> = start(WAITS)
    assert.equal(65536, #get(p, "/whole").body)
    seen(p, "/whole true true closed")
    assert.equal("", get(p, "/whole", { method = "HEAD" }).body)
    seen(p, "/whole true true closed")
    assert.equal("fine", get(p, "/before").body)
    seen(p, "/before true closed")
    assert.equal("fine", get(p, "/length").body)
    seen(p, "/length true true closed")
    assert.equal("", p:errors())
  end)

  it("waits for a slow client, and not for one that is gone", function()
    local p <close> = start(WAITS)
    local r = assert(ah.http { url = p.url .. "/slow?n=64", stream = "bytes" })
    ah.sleep(0.3)
    assert.equal("/slow", get(p, "/seen").body)
    assert.equal(64 * 65536, #assert(r:read_all()))
    seen(p, "/slow true true closed")
    r = assert(ah.http { url = p.url .. "/gone?n=64", stream = "bytes" })
    r:read()
    r:close()
    seen(p, "/gone closed")
    assert.is_nil(ah.http { url = p.url .. "/abort" })
    seen(p, "/abort nil nil closed")
    assert.equal("", say(p, asked "GET /nothing"))
    seen(p, "/nothing closed")
    assert.equal("", p:errors())
  end)
end)

describe("a handler of ah.serve", function()
  it("is held to the time at work and the memory that it is given", function()
    local p <close> = start([[function(q)
      if q.path == "/fine" then return "fine" end
      local t = {}
      repeat
        t[#t + 1] = q.path == "/memory" and ("x"):rep(65536) .. #t or nil
      until false
    end]], "work_timeout = 0.2, memory = 4000000")
    for path, words in pairs { ["/memory"] = "memory = bytes of ah.serve sets another one",
      ["/work"] = "work_timeout = seconds of ah.serve sets another limit" } do
      assert.equal(500, get(p, path).status)
      has(p:errors(), words)
      assert.equal("fine", get(p, "/fine").body)
    end
    for _, wrong in ipairs { { memory = 1 }, { work_timeout = 0 }, { max_bodies = 0 },
      { on_refusal = "x" }, { memory = "x" } } do
      wrong.on_request = print
      assert.has_error(function() ah.serve(wrong) end)
    end
  end)

  it("may say headers that the connection does not need", function()
    local p <close> = start [[function()
      return { status = 426, headers = { Upgrade = "h2c", ["Keep-Alive"] = "timeout=5" } }
    end]]
    local r = get(p, "/")
    assert.same({ 426, "h2c", "timeout=5" },
      { r.status, r.headers.upgrade, r.headers["keep-alive"] })
  end)
end)

-- -- how it ends ----------------------------------------------------------------------------------

describe("a server of ah.serve", function()
  it("is closed by its handler, whose answer still goes out, or by its scope", function()
    local seen, closing
    local server <close> = assert(ah.serve { on_request = function(q)
      seen = q.query.code[1]
      closing:close()
      return "You may close this window."
    end })
    closing = server
    assert.matches("^http://127%.0%.0%.1:%d+$", server.url)
    assert.same({ "127.0.0.1", tonumber(server.url:match "%d+$") }, { server.address, server.port })
    assert.is_false(server:wait(0.01))
    assert.equal("You may close this window.", get(server, "/?code=abc").body)
    assert.equal("abc", seen)
    assert.is_true(server:wait(10))
    assert.is_true(server:wait())
    assert.same({ nil, nil }, { server.port, server.address })
    assert.is_nil(ah.http { url = server.url })
    assert.equal("server (closed) " .. server.url, tostring(server))
  end)

  it("stops the other handlers when it is closed", function()
    local closed, began = 0, 0
    local server = assert(ah.serve { on_request = function()
      local _ <close> = setmetatable({}, { __close = function() closed = closed + 1 end })
      began = began + 1
      ah.sleep(60)
    end })
    local failures = 0
    local function tool(name, handler)
      return ah.tool { name = name, description = "Works.", parallel = true, handler = handler }
    end
    local get_it = { name = "get_it" }
    local calls = { get_it, get_it, get_it, { name = "stop_it" } }
    assert(ah.run { model = ah.scripted { { calls = calls }, "ok" }, "go", timeout = 60, tools = {
      tool("get_it", function()
        local answer = ah.http { url = server.url }
        failures = failures + (answer and 0 or 1)
      end),
      tool("stop_it", function()
        while began < 3 do
          ah.sleep(0.01)
        end
        server:close()
      end),
    } })
    assert.same({ 3, 3, 3 }, { began, closed, failures })
    assert.is_true(server:wait(10))
  end)

  it("listens where it is told to, and answers to that name", function()
    local function f(q) return q.headers.host[1] end
    local ok, six = pcall(ah.serve, { on_request = f, listen = "[::1]:0" })
    if ok and six then -- not every machine has IPv6
      assert.equal("[::1]:" .. six.port, get(six, "/").body)
      six:close()
    end
    local any <close> = assert(ah.serve { on_request = f, listen = "0.0.0.0:0" })
    for host, status in pairs { ["10.1.2.3"] = 200, ["[fe80::1]:80"] = 200, localhost = 200,
      ["evil.example"] = 403, ["1.2.3.4.5"] = 403 } do
      local r = assert(ah.http { url = "http://127.0.0.1:" .. any.port, headers = { Host = host } })
      assert.equal(status, r.status, host)
    end
    local open <close> = assert(ah.serve { on_request = f, hosts = { "*" }, origins = { "*" } })
    local r = get(open, "/", { headers = { Host = "any.example", Origin = "https://x.example" } })
    assert.equal("any.example", r.body)
  end)

  it("lives on though nobody holds it", function()
    local url
    do
      url = assert(ah.serve { on_request = function(_, r)
        r:write "still"
        return "here"
      end }).url
    end
    collectgarbage()
    collectgarbage()
    assert.equal("still", assert(ah.http { url = url }).body)
  end)

  it("ends with the command, by its script's end and by a signal", function()
    local r = command.script [[local ah = require "agenthost"
      ah.serve { on_request = print }
      local other = assert(ah.serve { on_request = function() ah.sleep(60) end })
      print(ah.http { url = other.url, timeout = 0.1 })]]
    assert.equal(0, r.code)
    assert.equal("", r.err)
    local p = start(ECHO)
    assert.equal("text", get(p, "/text").body)
    assert.equal(143, p:close())
  end)

  it("is told apart from what cannot be", function()
    local function f() end
    local one <close> = assert(ah.serve { on_request = f, listen = "localhost:0" })
    local two, err = ah.serve { on_request = f, listen = "127.0.0.1:" .. one.port }
    assert.is_nil(two)
    assert.equal("http", err.code)
    assert.matches("cannot listen on 127%.0%.0%.1:%d+: Address already in use", err.message)
    for _, listen in ipairs { "", "x", "8080", "localhost", "127.0.0.1:", "127.0.0.1:x", "::1:80",
      "127.0.0.1:70000", "example.com:80", ":80", "[::1]" } do
      assert.has_error(function() ah.serve { on_request = f, listen = listen } end)
    end
    assert.has_error(function() ah.serve { listen = "127.0.0.1:0" } end)
    assert.has_error(function() ah.serve { on_request = f, port = 1 } end)
    assert.has_error(function() return one.uri end)
    assert.has_error(function() one:wait(-1) end)
    assert.equal("agenthost.server", getmetatable(one).__name)
  end)
end)
