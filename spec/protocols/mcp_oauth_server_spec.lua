-- A server of MCP over HTTP whose clients need tokens of an authorization server: its metadata, its
-- refusals, and clients that try to use what belongs to another one.
local ah = require "agenthost"
local client = require "support.mcp_client"
local command = require "support.command"
local introspection = require "support.mcp_introspection"

local Server = ah._module "agenthost.protocols.mcp.server"
local serve_http = ah._module "agenthost.protocols.mcp.server.http"
local safe = ah._module "agenthost.protocols.mcp.oauth.address".safe

local LONG = 60 -- seconds after which a server does not answer any more
local PRM = "/.well-known/oauth-protected-resource"

local order = ah.tool { name = "order", description = "Orders.", handler = function(_, ctx)
  return assert(ctx:ask { question = "What?" })
end }

describe("a server of MCP with an issuer", function()
  local issuer, task, url, origin

  local function start(more)
    local oauth = { issuer = issuer.url, id = introspection.ID, secret = introspection.SECRET }
    for name, value in pairs(more or {}) do
      oauth[name] = value
    end
    local ready = ah.channel(1)
    task = ah.spawn(function()
      assert(serve_http(function(begin)
        return Server.new(assert(ah.agent { model = "demo/echo", tools = { order } }),
          { name = "spec", version = "1", start = begin, private = true })
      end, { listen = "127.0.0.1:0", oauth = oauth, ready = function(at) ready:send(at) end }))
    end)
    url = assert(ah.with_timeout(LONG, function() return ready:receive() end))
    origin = url:match "^(.*)/mcp$"
  end

  -- Gives the issuer a token; `more` replaces what it says of it.
  local function know(token, more)
    local said = { active = true, aud = url, sub = "ann", client_id = "editor",
      exp = math.floor(ah.now()) + 600 }
    for name, value in pairs(more or {}) do
      said[name] = value
    end
    issuer.tokens[token] = said
    return token
  end

  local function send(token, body, headers, method)
    local all = { Authorization = token and "Bearer " .. token or nil,
      ["Content-Type"] = "application/json", Accept = "application/json, text/event-stream" }
    for name, value in pairs(headers or {}) do
      all[name] = value
    end
    return assert(ah.http { method = method or "POST", url = url, headers = all, timeout = LONG,
      body = body and ah.json.encode(body) or nil })
  end

  local function ask(token, method, params)
    params = params or {}
    params._meta = client.meta { elicitation = ah.object {} }
    local r = send(token, { jsonrpc = "2.0", id = 1, method = method, params = params },
      { ["MCP-Protocol-Version"] = "2026-07-28", ["Mcp-Method"] = method,
        ["Mcp-Name"] = params.name })
    return r, ah.json.decode(r.body)
  end

  local function challenge(token)
    local r = ask(token, "tools/list")
    local said = r.headers["www-authenticate"]
    return r.status, type(said) == "table" and said[1] or said, r.body
  end

  before_each(function()
    issuer = introspection.start()
  end)

  after_each(function()
    task:cancel()
    issuer:close()
  end)

  it("publishes what clients need to know", function()
    start { scope = "tools:read tools:write" }
    for _, path in ipairs { "", "/mcp" } do
      local r = assert(ah.http { url = origin .. PRM .. path })
      assert.are.equal(200, r.status)
      assert.are.same({ resource = url, authorization_servers = { issuer.url },
        scopes_supported = { "tools:read", "tools:write" },
        bearer_methods_supported = { "header" } }, ah.json.decode(r.body))
    end
    assert.are.equal(404, assert(ah.http { url = origin .. PRM .. "/other" }).status)
    assert.are.equal(405, assert(ah.http { url = origin .. PRM, method = "POST" }).status)
  end)

  it("is known by the name that the proxy in front has", function()
    start { resource = "https://tools.example/team/mcp" }
    for _, path in ipairs { "", "/mcp", "/team/mcp" } do
      local r = assert(ah.http { url = origin .. PRM .. path })
      assert.are.equal("https://tools.example/team/mcp", ah.json.decode(r.body).resource)
    end
    local _, said = challenge()
    assert.are.equal('Bearer resource_metadata="https://tools.example' .. PRM .. '/team/mcp"', said)
    assert.are.equal(401, (challenge(know("local", {}))))
    assert.are.equal(200, (challenge(know("t", { aud = "https://tools.example/team/mcp" }))))
  end)

  it("asks for a token, and for another one", function()
    start()
    local status, said = challenge()
    assert.are.equal(401, status)
    assert.are.equal(('Bearer resource_metadata="%s%s/mcp"'):format(origin, PRM), said)
    for _, token in ipairs { "unknown", "no=token", '"', ("x"):rep(9000) } do
      status, said = challenge(token)
      assert.are.equal(401, status)
      assert.is_truthy(said:find 'error="invalid_token"')
    end
    assert.are.same({ "unknown" }, issuer.asked)
  end)

  it("lets clients in by what the issuer says", function()
    start()
    assert.are.equal(200, (challenge(know "good")))
    assert.are.equal(200, (challenge(know("list", { aud = ah.array { "other", url } }))))
    assert.are.equal(200, (challenge(know("named", { iss = issuer.url, token_type = "Bearer" }))))
    local now = math.floor(ah.now())
    local refused = { { active = false }, { active = "true" }, { exp = now - 1 }, { exp = "x" },
      { nbf = now + 600 }, { aud = "https://other.example/mcp" }, { aud = ah.null },
      { aud = ah.array {} }, { aud = url .. "/" }, { iss = "https://other.example" },
      { token_type = "DPoP" }, { cnf = { jkt = "x" } } }
    for i, more in ipairs(refused) do
      local status, said = challenge(know("bad-" .. i, more))
      assert.are.equal(401, status, i)
      assert.is_truthy(said:find 'error="invalid_token"', i)
    end
    issuer.tokens["none"] = { active = true, sub = "ann" }
    assert.are.equal(401, (challenge "none"))
  end)

  it("needs all scopes", function()
    start { scope = "read write" }
    local status, said = challenge(know("t", { scope = "read" }))
    assert.are.equal(403, status)
    assert.are.equal(('Bearer error="insufficient_scope", scope="read write", '
      .. 'resource_metadata="%s%s/mcp"'):format(origin, PRM), said)
    assert.are.equal(403, (challenge(know("u", { scope = 5 }))))
    assert.are.equal(200, (challenge(know("v", { scope = "write other read" }))))
  end)

  it("keeps an answer, but no refusal, and not beyond the token's time", function()
    start()
    know("t", { exp = ah.now() + 2 })
    for _ = 1, 3 do
      assert.are.equal(200, (challenge "t"))
    end
    assert.are.same({ "t" }, issuer.asked)
    issuer.tokens.t = nil
    ah.sleep(2.1)
    assert.are.equal(401, (challenge "t"))
    assert.are.equal(401, (challenge "t"))
    assert.are.same({ "t", "t", "t" }, issuer.asked)
  end)

  it("asks once for requests that come at the same time", function()
    start()
    know "t"
    issuer.wait = 0.1
    local tasks = {}
    for i = 1, 20 do
      tasks[i] = ah.spawn(challenge, "t")
    end
    for _, one in ipairs(tasks) do
      assert.are.equal(200, (one:await()))
    end
    assert.is_true(#issuer.asked <= 8, #issuer.asked)
  end)

  it("lets no one in while the issuer cannot be asked", function()
    start()
    know "t"
    for _, fault in ipairs { { status = 500 }, { status = 302 },
      { metadata = { issuer = "https://other.example" } },
      { metadata = { introspection_endpoint = "http://other.example/x" } },
      { metadata = { introspection_endpoint = 5 } },
      { metadata = { introspection_endpoint = issuer.url .. "/none" } } } do
      issuer.status, issuer.metadata = fault.status, fault.metadata or {}
      local status, _, body = challenge "t"
      assert.are.equal(503, status)
      assert.is_nil(body:find(issuer.url, 1, true))
    end
  end)

  it("finds the issuer's other metadata, and sends credentials by form where that is wanted",
    function()
      start()
      issuer.place = "/.well-known/openid-configuration"
      issuer.metadata = { introspection_endpoint_auth_methods_supported =
        ah.array { "client_secret_post" } }
      assert.are.equal(200, (challenge(know "t")))
      assert.are.same({ "t" }, issuer.asked)
    end)

  it("gives no client what belongs to another", function()
    start()
    know "ann"
    know("ann-again")
    know("bob", { sub = "bob" })
    know("ann-elsewhere", { client_id = "other" })
    local _, first = ask("ann", "tools/call", { name = "order" })
    local retry = { name = "order", requestState = first.result.requestState, inputResponses = {
      ask_1 = { action = "accept", content = { response = "tea" } } } }
    for _, token in ipairs { "bob", "ann-elsewhere" } do
      local r, m = ask(token, "tools/call", retry)
      assert.are.equal("400 -32602", r.status .. " " .. m.error.code)
    end
    local _, second = ask("ann-again", "tools/call", retry)
    assert.are.equal("tea", second.result.content[1].text)

    local r = send("ann", { jsonrpc = "2.0", id = 0, method = "initialize", params = {
      protocolVersion = "2025-11-25", capabilities = ah.object {},
      clientInfo = { name = "spec", version = "1" } } })
    local id = r.headers["mcp-session-id"]
    local session = { ["Mcp-Session-Id"] = type(id) == "table" and id[1] or id }
    local list = { jsonrpc = "2.0", id = 1, method = "tools/list" }
    assert.are.equal(404, send("bob", list, session).status)
    assert.are.equal(404, send("bob", nil, session, "DELETE").status)
    assert.are.equal(200, send("ann-again", list, session).status)
  end)

  it("takes the token for the client where the issuer names none", function()
    start()
    know("a", { sub = ah.null, client_id = ah.null })
    know("b", { sub = ah.null, client_id = ah.null })
    local _, first = ask("a", "tools/call", { name = "order" })
    local state = first.result.requestState
    local _, m = ask("b", "tools/call", { name = "order", requestState = state })
    assert.are.equal(-32602, m.error.code)
  end)
end)

describe("the command with --issuer", function()
  after_each(command.tidy)

  local function start(args, env)
    local path = command.write(command.folder() .. "/shop.lua",
      [[return require "agenthost".agent { model = "demo/echo" }]])
    return assert(ah.process { command = command.BINARY, env = env, timeout = LONG,
      args = { "mcp", "serve", path, table.unpack(args) } })
  end

  local KNOWN = { AGENTHOST_MCP_CLIENT_ID = introspection.ID,
    AGENTHOST_MCP_CLIENT_SECRET = introspection.SECRET }

  it("serves clients with its tokens", function()
    local issuer <close> = introspection.start()
    local p <close> = start({ "--http", "--issuer", issuer.url, "--scope", "use" }, KNOWN)
    local url = assert(p:line())
    issuer.tokens.t = { active = true, aud = url, sub = "ann", scope = "use" }
    local function status(token)
      return assert(ah.http { method = "POST", url = url, body = "{}", timeout = LONG, headers = {
        Authorization = "Bearer " .. token, ["Content-Type"] = "application/json",
        Accept = "application/json, text/event-stream" } }).status
    end
    assert.are.equal(400, status "t")
    assert.are.equal(401, status "other")
    assert.is_nil(p:errors():find "s3cr")
    p:kill()
  end)

  it("says what is missing or wrong", function()
    for words, said in pairs { ["--issuer https://a.example"] = "--issuer needs --http",
      ["--http --scope x"] = "--scope needs --issuer",
      ["--http --issuer http://a.example"] = "--issuer must be a URL with https",
      ["--http --issuer https://a.example?x"] = "--issuer must be a URL with https",
      ["--http --issuer https://a.example --resource x"] = "--resource must be a URL",
      ["--http --issuer https://a.example"] = "AGENTHOST_MCP_CLIENT_ID" } do
      local args = {}
      for word in words:gmatch "%S+" do
        args[#args + 1] = word
      end
      local p <close> = start(args, { AGENTHOST_MCP_CLIENT_ID = false })
      assert.are.equal(2, p:wait { discard = true }.exit_code)
      assert.is_truthy(p:errors():find(said, 1, true), p:errors())
    end
  end)

  it("sends tokens over https, or within this machine", function()
    for _, url in ipairs { "https://a.example", "https://a.example:8443/x/y", "http://127.0.0.1:1",
      "http://localhost/x", "http://[::1]:8080/x" } do
      assert.is_table(safe(url), url)
    end
    for _, url in ipairs { "http://a.example", "http://127.0.0.1.a.example", "https://a@b.example",
      "https://a.example/?x", "https://a.example/#x", "https://", "ftp://a.example", "a.example",
      "https://a b", "http://localhost.example", "http://[::2]" } do
      assert.is_nil(safe(url), url)
    end
  end)
end)
