-- Responses that are read while they arrive (ah.http { stream = ... }): bytes, lines and events,
-- however the body is cut; a slow reader pauses the transfer; the ways in which they end.
local ah = require "agenthost"
local command = require "support.command"
local server = require "support.server"

local EVENTS = "\239\187\191id: 7\r\nretry: 250\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n"
  .. ": a comment\ndata: c\n\nid: 8\n\nevent: y\nid: 9\0\ndata\n\ndata: last\n\n"

local function serve(...)
  return server.start { responses = { ... } }
end

local function open(s, kind, more)
  local request = { url = s.url, stream = kind }
  for name, value in pairs(more or {}) do
    request[name] = value
  end
  return assert(ah.http(request))
end

-- Returns all pieces, and the error behind them.
local function pieces(r)
  local list = {}
  while true do
    local piece, err = r:read()
    if not piece then
      return list, err
    end
    list[#list + 1] = piece
  end
end

local function resident()
  for line in io.lines "/proc/self/status" do
    local kib = line:match "VmRSS:%s+(%d+)"
    if kib then
      return tonumber(kib)
    end
  end
end

local function in_handler(f)
  local result
  assert(ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "ok" }, "go", timeout = 60,
    tools = { ah.tool { name = "t", description = "Works.",
      handler = function() result = f() end } } })
  return result
end

describe("ah.http with stream", function()
  it("gives the head before the body, and each piece as it comes", function()
    local s <close> = serve { status = 201, headers = { ["X-Kind"] = "Test" }, framing = "chunked",
      body = ("a"):rep(8), stall = 5, piece = 5 }
    local r <close> = open(s, "bytes")
    assert.same({ 201, "Test", "a" }, { r.status, r.headers["x-kind"], r:read():sub(1, 1) })
    assert.is_nil(r.err)
    assert.equal("response 201 (open)", tostring(r))
  end)

  for _, piece in ipairs { 1, 2, 3, 7, 1000 } do
    it(("cuts events and lines where they end, in pieces of %d bytes"):format(piece), function()
      local s <close> = serve { body = EVENTS, framing = "chunked", piece = piece }
      local r = open(s, "sse")
      local list, err = pieces(r)
      assert.is_nil(err)
      assert.same({ { event = "x", data = "a\nb", id = "7", retry = 250 },
        { event = "message", data = "c", id = "7", retry = 250 },
        { event = "y", data = "", id = "8", retry = 250 },
        { event = "message", data = "last", id = "8", retry = 250 } }, list)
      assert.same({ "8", 250 }, { r.last_event_id, r.retry })
      local lines = {}
      for line in EVENTS:gmatch "([^\n]*)\n" do
        lines[#lines + 1] = line:gsub("\r$", "")
      end
      assert.same(lines, (pieces(open(s, "lines"))))
      assert.equal(EVENTS, table.concat((pieces(open(s, "bytes")))))
      assert.equal(EVENTS, open(s, "sse"):read_all())
    end)
  end

  it("has the last line without an end, and nothing behind the last end", function()
    local s <close> = serve({ body = "a\n\nb" }, { body = "a\r\n" }, { body = "" })
    assert.same({ "a", "", "b" }, (pieces(open(s, "lines"))))
    assert.same({ "a" }, (pieces(open(s, "lines"))))
    assert.same({}, (pieces(open(s, "lines"))))
    assert.same({}, (pieces(open(s, "sse"))))
    assert.equal("", open(s, "bytes"):read_all())
  end)

  it("can be read in handlers, in a loop that the caller leaves", function()
    local s <close> = serve { body = ("line\n"):rep(50), framing = "chunked", piece = 7, gap = 1 }
    assert.equal(50, in_handler(function()
      local n = 0
      local r <close> = open(s, "lines")
      for line in r:pieces() do
        assert(line == "line")
        n = n + 1
        if n == 20 then
          break
        end
      end
      for _ in r:pieces() do
        n = n + 1
      end
      return n
    end))
  end)

  it("has one body for one server that answers in either form", function()
    local s <close> = serve { status = 404, headers = { ["Content-Type"] = "application/json" },
      body = '{"error":"no such thing"}' }
    local r = open(s, "sse")
    assert.equal("no such thing", ah.json.decode(assert(r:read_all())).error)
    assert.is_nil(r:read_all())
    assert.is_nil(r.err)
  end)

  it("stops the transfer where its reader is slow, and loses nothing", function()
    local line = ("0123456789abcdef"):rep(64)
    local s <close> = serve { body = (line .. "\n"):rep(40 * 1024), framing = "chunked" }
    local before = resident()
    local r <close> = open(s, "lines")
    ah.sleep(0.3)
    local n = 0
    for got in r:pieces() do
      assert(got == line)
      n = n + 1
      if n % 8192 == 0 then
        ah.sleep(0.02)
      end
    end
    assert.same({ 40 * 1024 }, { n, r.err })
    if not os.getenv "AGENTHOST_ASAN" then -- ASan keeps freed memory
      assert.is_true(resident() - before < 16 << 10, tostring(resident() - before))
    end
    open(s, "lines"):read()
    collectgarbage()
    for _ = 1, 500 do
      ah.sleep(0.02)
      if s:gone()[1] then
        break
      end
    end
    assert.is_true(s:gone()[1].gone < 20 << 20, "more was fetched than the system keeps")
  end)

  it("does not take a reader that rests for an idle server", function()
    local s <close> = serve { body = ("x"):rep(4 << 20), framing = "chunked" }
    local r <close> = open(s, "bytes", { idle_timeout = 0.2 })
    local n = #r:read()
    ah.sleep(0.7)
    for piece in r:pieces() do
      n = n + #piece
    end
    assert.is_nil(r.err)
    assert.equal(4 << 20, n)
  end)

  it("gives the error where the rest does not come, once and again", function()
    local s <close> = serve { body = "data: a\n\ndata: b\n\ndata: half of", framing = "chunked",
      cut = 24 }
    local r = open(s, "sse")
    local list, err = pieces(r)
    assert.same({ "a", "b" }, { list[1].data, list[2].data, list[3] })
    assert.equal("http", err.code)
    assert.equal(err, select(2, r:read()))
    assert.equal(err, r.err)
  end)

  it("ends with a server that is silent, and with one that goes on for ever", function()
    local s <close> = serve({ body = "abcdef", stall = 3 },
      { body = "x", framing = "chunked", endless = true, gap = 10 })
    local r = open(s, "bytes", { idle_timeout = 0.3 })
    local list, err = pieces(r)
    assert.equal("abc", table.concat(list))
    assert.matches("no data for 300 ms %(limit http%.idle_timeout%)", err.message)
    assert.matches("not done within 500 ms",
      select(2, pieces(open(s, "bytes", { timeout = 0.5 }))).message)
  end)

  it("bounds a line, an event and a body", function()
    local long = ("x"):rep(5000)
    local s <close> = serve({ body = "short\n" .. long },
      { body = "data: short\n\ndata: " .. long },
      { body = long, framing = "chunked", endless = true }, { body = long })
    local list, err = pieces(open(s, "lines", { max_piece = 4096 }))
    assert.same({ "short" }, list)
    assert.matches("a line of the response is larger than 4096 bytes %(limit max_piece%)",
      err.message)
    list, err = pieces(open(s, "sse", { max_piece = 4096 }))
    assert.equal("short", list[1].data)
    assert.matches("larger than the limit of 4096 bytes", err.message)
    list, err = pieces(open(s, "bytes", { max_body = 100000 }))
    assert.is_true(#table.concat(list) <= 100000)
    assert.matches("max_body", err.message)
    assert.matches("max_body", select(2, open(s, "bytes", { max_body = 4096 }):read_all()).message)
  end)

  it("gives nil and an error where there is no head", function()
    local s <close> = serve { drop = true }
    for _, url in ipairs { s.url, "http://127.0.0.1:1/" } do
      local r, err = ah.http { url = url, stream = "lines" }
      assert.is_nil(r)
      assert.equal("http", err.code)
    end
    assert.equal("usage", select(2, ah.http { url = "ftp://x", stream = "lines" }).code)
  end)

  it("sends a body, a method and headers as ever, and asks only allowed addresses", function()
    local s <close> = serve { body = "ok" }
    local body = ("b"):rep(300000)
    assert.equal("ok", open(s, "bytes", { body = body, headers = { Accept = "text/event-stream" },
      addresses = { "127.0.0.1" } }):read_all())
    local asked = s:requests()[1]
    assert.same({ "POST", "text/event-stream", #body },
      { asked.method, asked.headers.accept, #asked.body })
    assert.is_nil(ah.http { url = s.url, stream = "bytes", addresses = { "public" } })
  end)

  it("is over once it is closed, collected, or left with its scope", function()
    local s <close> = serve { body = ("x"):rep(1000), framing = "chunked", endless = true }
    local r = open(s, "bytes")
    do
      local scoped <close> = r
      assert(scoped:read())
    end
    local piece, err = r:read()
    assert.same({ nil, "cancelled" }, { piece, err.code })
    r:close()
    for _ = 1, 20 do
      open(s, "bytes")
    end
    collectgarbage()
    collectgarbage()
    for _ = 1, 200 do
      if #s:gone() >= 21 then
        break
      end
      ah.sleep(0.02)
    end
    assert.equal(21, #s:gone())
  end)

  it("wakes who waits for it when another task closes it, and lets one wait at a time", function()
    local s <close> = serve { body = "abc", stall = 0 }
    local r, said = open(s, "bytes"), {}
    local function tool(name, f)
      return ah.tool { name = name, description = "Works.", parallel = true, handler = f }
    end
    local calls = { { name = "a" }, { name = "b" } }
    assert(ah.run { model = ah.scripted { { calls = calls }, "ok" }, "go",
      tools = { tool("a", function() said.a = { r:read() } end), tool("b", function()
        said.b = select(2, pcall(r.read, r))
        r:close()
      end) } })
    assert.equal("cancelled", said.a[2].code)
    assert.matches("another task waits for this response", said.b.message)
  end)

  it("ends its waits with the run, and can be read by who comes after", function()
    local s <close> = serve { body = "abc", piece = 1, gap = 800, framing = "chunked" }
    local r <close> = open(s, "bytes")
    local reply, err = ah.run { model = ah.scripted { { calls = { { name = "t" } } }, "ok" }, "go",
      timeout = 0.2, tools = { ah.tool { name = "t", description = "Waits.",
        handler = function() repeat until not r:read() end } } }
    assert.is_nil(reply)
    assert.equal("deadline_exceeded", err.code)
    assert.matches("c$", table.concat((pieces(r))))
  end)

  it("raises where it cannot wait, and for what it does not know", function()
    local s <close> = serve { body = "abc", stall = 1 }
    local r <close> = open(s, "bytes")
    assert.equal("a", r:read())
    local said
    assert(ah.run { model = ah.scripted { "ok" }, "go", on = function(e)
      if e.type == "done" then
        said = select(2, pcall(r.read, r))
      end
    end })
    assert.matches("an observer cannot wait", said.message)
    assert.has_error(function() return r.body end)
    assert.has_error(function() ah.http { url = s.url, stream = "events" } end)
    assert.has_error(function() ah.http { url = s.url, max_piece = 10 } end)
    assert.has_error(function() r:read_all() end)
    local lines = open(s, "lines", { max_piece = 100 })
    assert.has_error(function() lines.max_piece = 1 end)
  end)

  it("works in the command, which ends with a stream open", function()
    local s <close> = serve { body = "data: a\n\n", framing = "chunked", endless = true }
    local script = command.temp(([[local ah = require "agenthost"
      local r = assert(ah.http { url = %q, stream = "sse" })
      print(r.status, r:read().data) LEFT = r]]):format(s.url))
    local got = command.agenthost(script)
    assert.same({ 0, "200\ta\n", "" }, { got.code, got.out, got.err })
    command.tidy()
  end)
end)
