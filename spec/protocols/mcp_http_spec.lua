-- ah.mcp with servers over HTTP: headers, answers and streams of revision 2026-07-28; sessions, the
-- stream of the server and resuming of the older ones; servers that lie, flood or end early.
local ah = require "agenthost"
local far = require "support.mcp_http"
local mcp = require "support.mcp"
local raw = require "support.server"

local tool, says = far.tool, far.says

local function tools_of(...)
  local list = ah.array { ... }
  return function() return { resultType = "complete", tools = list } end
end

local calls = mcp.calls

local function call(on, more, run)
  on["tools/list"] = on["tools/list"] or tools_of(tool "go")
  local server, seen, url = far.server(on, more)
  return calls(server, { { name = "go" } }, run)[1], seen, url
end

describe("ah.mcp over HTTP", function()
  after_each(far.clear)

  it("sends the headers of 2026-07-28 with each request", function()
    local server, seen = far.server({
      ["tools/list"] = tools_of(tool("go", { place = { type = "string",
        ["x-mcp-header"] = "Place" }, n = { type = "integer", ["x-mcp-header"] = "N" },
        loud = { type = "boolean", ["x-mcp-header"] = "Loud" } })),
      ["tools/call"] = function(message) return says(message.params.arguments.place) end,
    }, { headers = { ["X-Team"] = "tea" } })
    assert.are.same({ "Tür", " x", "there" }, (calls(server, {
      { name = "go", arguments = { place = "Tür", n = 4 } },
      { name = "go", arguments = { place = " x", loud = false } },
      { name = "go", arguments = { place = "there" } } })))
    assert.are.same({ "server/discover", "tools/list", "tools/call", "tools/call", "tools/call" },
      far.methods(seen))
    for _, one in ipairs(seen) do
      assert.are.same({ "2026-07-28" }, one.headers["mcp-protocol-version"])
      assert.are.same({ one.method }, one.headers["mcp-method"])
      assert.are.same({ "tea" }, one.headers["x-team"])
      assert.is_nil(one.headers["mcp-session-id"])
      assert.are.equal("2026-07-28",
        one.message.params._meta["io.modelcontextprotocol/protocolVersion"])
    end
    local function marked(i)
      local h = seen[i].headers
      return { h["mcp-name"], h["mcp-param-place"], h["mcp-param-n"], h["mcp-param-loud"] }
    end
    assert.are.same({ { "go" }, { "=?base64?VMO8cg==?=" }, { "4" } }, marked(3))
    assert.are.same({ { "go" }, { "=?base64?IHg=?=" }, nil, { "false" } }, marked(4))
    assert.are.same({ { "go" }, { "there" } }, marked(5))
  end)

  it("leaves tools with wrong marks out", function()
    local server = far.server { ["tools/list"] = tools_of(tool "good",
      tool("a", { x = { type = "object", ["x-mcp-header"] = "X" } }),
      tool("b", { x = { type = "string", ["x-mcp-header"] = "a b" } }),
      tool("c", { x = { type = "string", ["x-mcp-header"] = "X" },
        y = { type = "string", ["x-mcp-header"] = "x" } }),
      tool("d", { x = { type = "array", items = { type = "string", ["x-mcp-header"] = "X" } } }),
      tool("e", { x = { type = "number", ["x-mcp-header"] = "X" } }),
      tool("f", { x = { type = "string", ["x-mcp-header"] = "" } })) }
    local list = assert(server:tools())
    assert.are.equal("good", list[1].name)
    assert.are.equal(1, #list)
  end)

  it("reads the list again where the marks have changed, and calls again", function()
    local mark = "Old"
    local answer, seen = call { ["tools/list"] = function()
      return { resultType = "complete", ttlMs = 100000, tools = ah.array { tool("go",
        { at = { type = "string", ["x-mcp-header"] = mark } }) } }
    end, ["tools/call"] = function(_, request)
      mark = "New"
      if request.headers["mcp-param-new"] or not request.headers["mcp-param-old"] then
        return says "found"
      end
      return nil, -32020, "Header mismatch"
    end }
    assert.are.equal("found", answer)
    assert.is_true(#seen >= 3)
  end)

  it("takes an answer as a stream, with its progress", function()
    local told = {}
    local answer = call({ ["tools/call"] = function(message, _, response)
      local token = message.params._meta.progressToken
      for i = 1, 3 do
        far.event(response, { method = "notifications/progress",
          params = { progressToken = token, progress = i, total = 4, message = "step " .. i } })
        ah.sleep(0.06)
      end
      far.event(response, { id = message.id, result = says "all of it" })
      return true
    end }, nil, { on = { tool_progress = function(e) told[#told + 1] = e.fraction end } })
    assert.are.equal("all of it", answer)
    assert.are.equal(0.25, told[1])
  end)

  it("takes a change of the list from a subscription, in mid-run", function()
    local list, tell = { tool "go" }, nil
    local server = far.server {
      ["server/discover"] = function()
        return { resultType = "complete", supportedVersions = ah.array { "2026-07-28" },
          capabilities = { tools = { listChanged = true } } }
      end,
      ["subscriptions/listen"] = function(message, _, response)
        local meta = { ["io.modelcontextprotocol/subscriptionId"] = message.id }
        far.event(response, { method = "notifications/subscriptions/acknowledged",
          params = { _meta = meta, notifications = ah.object {} } })
        tell = ah.channel(1)
        tell:receive()
        far.event(response, { method = "notifications/tools/list_changed",
          params = { _meta = meta } })
        ah.sleep(60)
        return true
      end,
      ["tools/list"] = function() return { resultType = "complete", ttlMs = 1e6,
        tools = ah.array { table.unpack(list) } } end,
      ["tools/call"] = function(message)
        list[2] = tool "later"
        tell:send(true)
        ah.sleep(0.1)
        return says("did " .. message.params.name)
      end,
    }
    local _, reply = calls(server, {}, { model = ah.scripted {
      { calls = { { name = "go" } } }, { calls = { { name = "later" } } }, "Done." } })
    assert.are.equal("Done.", reply.text)
    local said = {}
    for _, message in ipairs(reply.messages) do
      said[#said + 1] = message.role == "tool" and message.content or nil
    end
    assert.are.equal(2, #said)
    assert.is_truthy(said[1]:find "^did go.*later")
    assert.are.equal("did later", said[2])
  end)

  for _, how in ipairs { "tell", "retry" } do
    it("a stream that is lost in a call is decided by on_lost = " .. how, function()
      local n = 0
      local answer = call({ ["tools/call"] = function(message, _, response)
        n = n + 1
        if n > 1 then return says "at last" end
        far.event(response, { method = "notifications/progress",
          params = { progressToken = message.id, progress = 1 } })
        return true
      end }, { on_lost = how })
      assert.is_truthy(answer:find(how == "retry" and "^at last$" or "ended without an answer"),
        answer)
      assert.are.equal(how == "retry" and 2 or 1, n)
    end)
  end

  it("ends the stream of a call that is cancelled", function()
    local left = ah.channel(1)
    local server = far.server { ["tools/list"] = tools_of(tool "go"),
      ["tools/call"] = function(message, _, response)
        far.event(response, { method = "notifications/progress",
          params = { progressToken = message.id, progress = 1 } })
        local _ <close> = setmetatable({}, { __close = function() left:send(true) end })
        ah.sleep(60)
        return true
      end }
    local result = ah.with_timeout(0.3, calls, server, { { name = "go" } })
    assert.is_nil(result)
    assert.is_true(ah.with_timeout(10, left.receive, left))
  end)

  it("a call without a sign of the server ends in time", function()
    local answer = call({ ["tools/call"] = function() ah.sleep(60) end }, { timeout = 0.2 })
    assert.is_truthy(answer:find "no answer within 0.2 seconds", answer)
  end)

  it("begins an older server with a handshake, a session and its stream", function()
    local asked
    local answer, seen = call(far.older {
      GET = function(_, _, response)
        while not asked do ah.sleep(0.01) end
        far.event(response, { id = "q1", method = "elicitation/create", params = {
          message = "How many?", requestedSchema = { type = "object",
            properties = { n = { type = "integer" }, at = { type = "string", default = "noon" } } }
        } })
        ah.sleep(60)
        return true
      end,
      answer = function(message) asked = message.result return { http = { status = 202 } } end,
      ["tools/call"] = function()
        asked = true
        while asked == true do ah.sleep(0.01) end
        return says(("%d at %s"):format(asked.content.n, asked.content.at))
      end,
    }, nil, { asks = function() return { n = 3 } end })
    assert.are.equal("3 at noon", answer)
    for i, one in ipairs(seen) do
      local session = i > 2 and { "s-1" } or nil
      assert.are.same(session, one.headers["mcp-session-id"], one.method)
      if i > 2 then
        assert.are.same({ "2025-11-25" }, one.headers["mcp-protocol-version"])
        assert.is_nil(one.headers["mcp-method"])
      end
    end
    far.clear()
    assert.are.equal("DELETE", seen[#seen].http)
  end)

  for _, status in ipairs { 404, 400 } do
    it("begins a new session where the old one is answered by " .. status, function()
      local n = 0
      local answer, seen = call(far.older {
        ["tools/list"] = function() return { tools = ah.array { tool "go" } } end,
        ["tools/call"] = function()
          n = n + 1
          if n == 1 then
            return { http = { status = status, body = { jsonrpc = "2.0", id = ah.null,
              error = { code = -32000, message = "gone" } } } }
          end
          return says "again"
        end,
      })
      assert.are.equal("again", answer)
      local begun = 0
      for _, one in ipairs(seen) do
        begun = begun + (one.method == "initialize" and 1 or 0)
      end
      assert.are.equal(2, begun)
    end)
  end

  it("asks for the rest of a stream that an older server has ended", function()
    local id
    local answer, seen = call(far.older {
      ["tools/list"] = function() return { tools = ah.array { tool "go" } } end,
      ["tools/call"] = function(message, _, response)
        id = message.id
        response:event { data = "", id = "e-7", retry = 100 }
        return true
      end,
      GET = function(_, request, response)
        if not request.headers["last-event-id"] then
          return { http = { status = 405 } }
        end
        far.event(response, { id = id, result = says "the rest" })
        return true
      end,
    })
    assert.are.equal("the rest", answer)
    local found
    for _, one in ipairs(seen) do
      found = one.headers["last-event-id"] or found
    end
    assert.are.same({ "e-7" }, found)
  end)

  it("takes a list and a call of a server that has the newest revision only by retrying", function()
    local n = 0
    local answer = call { ["server/discover"] = function(message)
      n = n + 1
      if n == 1 then
        return { http = { status = 400, body = { jsonrpc = "2.0", id = message.id, error = {
          code = -32022, message = "Unsupported", data = {
            supported = ah.array { "2026-07-28" }, requested = "2026-07-28" } } } } }
      end
      return { resultType = "complete", supportedVersions = ah.array { "2026-07-28" },
        capabilities = { tools = ah.object {} } }
    end, ["tools/call"] = function() return says "yes" end }
    assert.are.equal("yes", answer)
    assert.are.equal(2, n)
  end)
end)

describe("a server over HTTP that is wrong", function()
  after_each(far.clear)

  local function fails(on, text, more)
    local answer, seen, url = call(on, more)
    assert.is_truthy(answer:find(text, 1, true), answer)
    return answer, seen, url
  end

  local function http(fields)
    return { ["tools/call"] = function() return { http = fields } end }
  end

  it("is refused where it is elsewhere", function()
    fails(http { status = 302, headers = { Location = "http://127.0.0.1:1/" } }, "HTTP status 302")
    fails(http { status = 500, body = "oh" }, "HTTP status 500")
    fails(http { status = 202 }, "HTTP status 202")
  end)

  it("is told of a missing authorization, and no secret is in the error", function()
    local answer, seen = fails(http { status = 401, headers = { ["WWW-Authenticate"] = "Bearer" } },
      "HTTP status 401", { headers = { Authorization = "Bearer s3cret-token" } })
    assert.is_nil(answer:find "s3cret")
    assert.are.same({ "Bearer s3cret-token" }, seen[1].headers.authorization)
  end)

  it("is bounded where its bytes are no message", function()
    fails(http { headers = { ["Content-Type"] = "application/json" }, body = "{" }, "no answer")
    fails(http { body = "hello" }, "no answer")
    fails(http { headers = { ["Content-Type"] = "application/json" },
      body = '[{"jsonrpc":"2.0","id":3,"result":{}}]' }, "no answer")
    fails(http { headers = { ["Content-Type"] = "application/json" },
      body = ("["):rep(100000) }, "no answer")
  end)

  it("answers another request than ours", function()
    fails({ ["tools/call"] = function(message, _, response)
      far.event(response, { id = message.id + 100, result = says "theirs" })
      return true
    end }, "without an answer")
  end)

  it("answers twice, and out of order", function()
    local text = { type = "string" }
    local server = far.server { ["tools/list"] = tools_of(tool("go", { text = text })),
      ["tools/call"] = function(message, _, response)
        far.event(response, { id = message.id, result = says(message.params.arguments.text) })
        far.event(response, { id = message.id, result = says "twice" })
        return true
      end }
    assert.are.same({ "a", "b" }, (calls(server, { { name = "go", arguments = { text = "a" } },
      { name = "go", arguments = { text = "b" } } })))
  end)

  it("sends a message without an end", function()
    fails({ ["tools/call"] = function(_, _, response)
      response:begin { headers = { ["Content-Type"] = "text/event-stream" } }
      local piece = "data: " .. ("x"):rep(1 << 20)
      for _ = 1, 40 do
        if not response:write(piece:sub(1)) then break end
        piece = ("x"):rep(1 << 20)
      end
      return true
    end }, "far")
  end)

  it("floods us with what answers nothing", function()
    fails({ ["tools/call"] = function(_, _, response)
      local lines = ('data: {"jsonrpc":"2.0","method":"notifications/none"}\n\n'):rep(500)
      response:begin { headers = { ["Content-Type"] = "text/event-stream" } }
      while response:write(lines) do end
      return true
    end }, "it floods us")
  end)

  it("resumes its stream without an end", function()
    local n = 0
    local on = far.older {
      ["tools/list"] = function() return { tools = ah.array { tool "go" } } end,
      ["tools/call"] = function(_, _, response)
        response:event { data = "", id = "e", retry = 1 }
        return true
      end,
      GET = function(_, request, response)
        if not request.headers["last-event-id"] then return { http = { status = 405 } } end
        n = n + 1
        response:event { data = "", id = "e", retry = 1 }
        return true
      end }
    fails(on, "resumed too often")
    assert.are.equal(100, n)
  end)

  describe("lies about the length of its answer:", function()
    -- Returns the result of a call whose answer has this header and this end.
    local function answered(length, more)
      local function result(id, value)
        return { body = ah.json.encode { jsonrpc = "2.0", id = id, result = value },
          headers = { ["Content-Type"] = "application/json" } }
      end
      local body = result(3, says "said").body
      local s <close> = raw.start { responses = {
        result(1, { supportedVersions = ah.array { "2026-07-28" }, resultType = "complete",
          capabilities = { tools = ah.object {} } }),
        result(2, { resultType = "complete", tools = ah.array { tool "go" } }),
        { raw = true, body = ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
          .. "Content-Length: %s\r\n\r\n%s%s"):format(length or #body, body, more or "") } } }
      local server <close> = ah.mcp { url = s.url .. "/mcp", name = "far", timeout = 20 }
      return calls(server, { { name = "go" } })[1]
    end

    it("the truth is taken", function()
      assert.are.equal("said", answered())
    end)

    it("one that is too short cuts it", function()
      local text = answered(20)
      assert.is_truthy(text:find("no answer", 1, true), text)
    end)

    it("what comes after it is not read", function()
      assert.are.equal("said", answered(nil, '{"jsonrpc":"2.0","id":3,"result":{}}'))
    end)

    it("one that is too long is a lost answer", function()
      local text = answered(100000)
      assert.is_truthy(text:find("cannot be read", 1, true), text)
    end)

    it("one that is no number, or too large", function()
      for _, length in ipairs { "-1", "99999999999999999999", "many" } do
        local text = answered(length)
        assert.is_truthy(text:find("MCP server 'far'", 1, true) or text == "said", text)
      end
    end)
  end)

  it("cannot be reached", function()
    local server = ah.mcp { url = "http://127.0.0.1:1/mcp", name = "none" }
    local list, err = server:tools()
    assert.is_nil(list)
    assert.is_truthy(err.message:find("MCP server 'none': it cannot be reached", 1, true),
      err.message)
  end)
end)

describe("the fields of ah.mcp", function()
  local cases = {
    { {}, "one of the fields 'command' and 'url' must be given, found none" },
    { { command = "x", url = "http://a/" }, "one of the fields 'command' and 'url' must be given, "
      .. "found both" },
    { { url = "ftp://a/" }, "field 'url' must begin with http:// or https://, and a host" },
    { { url = "http:///x" }, "field 'url' must begin" },
    { { url = "http://a/", args = { "x" } }, "field 'args' is not for a server with 'url'" },
    { { command = "x", headers = { a = "b" } }, "field 'headers' is not for a server with "
      .. "'command'" },
    { { url = "http://a/", headers = { a = 1 } }, "field 'headers' must have texts" },
  }
  for _, case in ipairs(cases) do
    it("are refused: " .. case[2], function()
      local ok, err = pcall(ah.mcp, case[1])
      assert.is_false(ok)
      assert.is_truthy(tostring(err):find(case[2], 1, true), tostring(err))
    end)
  end
end)
