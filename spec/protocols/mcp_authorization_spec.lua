-- The authorization of ah.mcp over HTTP: logins, renewal, scopes, credentials in a file, servers
-- and authorization servers that lie.
local ah = require "agenthost"
local command = require "support.command"
local far = require "support.mcp_http"
local mcp_issuer = require "support.mcp_issuer"

local browse = mcp_issuer.browse

local opened -- the clients of a case

-- Returns ah.mcp for a server, with `auth`. Logins are done at once, unless `auth.open` is false.
local function client(resource, auth)
  auth = auth or {}
  auth.file, auth.timeout = auth.file or false, auth.timeout or 20
  if auth.open == nil then
    auth.open = browse
  end
  auth.open = auth.open or nil
  local server = ah.mcp { url = resource.url, name = "far", timeout = 10, auth = auth }
  opened[#opened + 1] = server
  return server
end

-- Returns an authorization server and a server of MCP with the tool `go`, which says "gone".
local function both(of_issuer, of_resource, on)
  local issuer = mcp_issuer.new(of_issuer)
  on = on or {}
  on["tools/list"] = on["tools/list"] or function()
    return { resultType = "complete", tools = ah.array { far.tool "go" } }
  end
  on["tools/call"] = on["tools/call"] or function() return far.says "gone" end
  return issuer, mcp_issuer.resource(issuer, on, of_resource)
end

-- Makes a call of `go` in a run. Returns its result; or nil and the error of the run.
local function go(server)
  local reply, err = ah.run { model = ah.scripted { { calls = { { name = "go" } } }, "Done." },
    tools = { server }, "Go." }
  for _, message in ipairs(reply and reply.messages or {}) do
    if message.role == "tool" then
      return message.content
    end
  end
  return nil, err
end

-- Returns the error of a server that cannot be used.
local function failure(server)
  local tools, err = server:tools()
  assert.is_nil(tools)
  return err.message
end

-- Returns the tokens that a server was sent, each once, in order.
local function tokens_of(resource)
  local list, seen = {}, {}
  for _, sent in ipairs(resource.sent) do
    if sent and not seen[sent] then
      seen[sent], list[#list + 1] = true, sent
    end
  end
  return list
end

local function query_of(one)
  local fields = {}
  for name, list in pairs(one.query) do
    fields[name] = list[1]
  end
  return fields
end

-- Ends the tokens of an authorization server, as if their time were over, or takes them back.
local function expire(issuer, with_refresh)
  issuer.tokens = {}
  if with_refresh then
    issuer.refreshes = {}
  end
end

local function saved(path)
  return ah.json.decode(command.contents(path))
end

insulate("the authorization of ah.mcp", function()
  before_each(function() opened = {} end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
    far.clear()
    command.tidy()
  end)

  it("logs in when the server refuses a request, with PKCE, state and resource", function()
    local issuer, resource = both(nil, { scope = "read" })
    local shown = {}
    local server = client(resource, { open = function(url)
      shown[#shown + 1] = url
      browse(url)
    end })
    assert.equal("gone", go(server))
    assert.equal("gone", go(server))
    assert.equal(1, #shown)
    local asked = query_of(issuer:asked "/authorize"[1])
    assert.equal("code", asked.response_type)
    assert.equal("S256", asked.code_challenge_method)
    assert.equal(43, #asked.code_challenge)
    assert.equal(43, #asked.state)
    assert.equal(resource.url, asked.resource)
    assert.equal("read", asked.scope)
    assert.matches("^http://127%.0%.0%.1:%d+/callback$", asked.redirect_uri)
    local form = issuer:asked "/token"[1].form
    assert.equal("authorization_code", form.grant_type)
    assert.equal(resource.url, form.resource)
    assert.equal(asked.code_challenge,
      ah.base64url.encode(ah.sha256(form.code_verifier, "bytes")))
    local registered = ah.json.decode(issuer:asked "/register"[1].body)
    assert.equal("native", registered.application_type)
    assert.same({ "authorization_code", "refresh_token" }, registered.grant_types)
    assert.equal("none", registered.token_endpoint_auth_method)
    assert.is_false(resource.sent[1])
    assert.equal(1, #tokens_of(resource))
    for i = 2, #resource.sent do
      assert.is_truthy(resource.sent[i])
    end
    for _, one in ipairs(issuer.seen) do -- the token of a server is for that server only
      assert.is_nil(one.headers.authorization)
    end
  end)

  it("has one login for requests that are refused at the same time", function()
    local issuer, resource = both()
    local logins = 0
    local server = client(resource, { open = function(url)
      logins = logins + 1
      ah.sleep(0.05)
      browse(url)
    end })
    assert(server:tools())
    expire(issuer, true)
    local list = assert(ah.all { function() return server:read "x:a" end,
      function() return server:read "x:b" end, function() return server:prompts() end })
    assert.equal(3, list.n)
    assert.equal(2, logins)
  end)

  it("gives the person time that is not the server's", function()
    local _, resource = both()
    local server = ah.mcp { url = resource.url, timeout = 0.2, longest = 0.2, start_timeout = 0.2,
      auth = { file = false, open = function(url)
        ah.sleep(0.5)
        browse(url)
      end } }
    opened[1] = server
    local ok, err = server:tools()
    -- a busy machine may need longer than 0.2 seconds for the rest
    assert.is_true(ok ~= nil or err.code == "deadline_exceeded")
    assert.equal(1, #tokens_of(resource))
  end)

  it("counts the server's time from the end of a login", function()
    local issuer, resource = both(nil, nil, { ["tools/list"] = function()
      ah.sleep(60)
    end })
    local server = ah.mcp { url = resource.url, timeout = 0.3, auth = { file = false,
      open = function(url)
        ah.sleep(0.5)
        browse(url)
      end } }
    opened[1] = server
    local _, err = server:tools()
    assert.equal("deadline_exceeded", err.code)
    assert.equal(1, #issuer:asked "/token")
  end)

  it("says what to do where there is no person", function()
    local issuer, resource = both()
    local server = client(resource, { open = false })
    local _, err = server:tools()
    assert.equal(("MCP server 'far': it needs a login: run agenthost mcp login '%s'"):format(
      resource.url), err.message)
    assert.equal("provider", err.code)
    assert.equal("login", err.reason)
    assert.same({}, issuer.seen)
  end)

  it("ends a login that nobody finishes, and tells who asked of one that fails", function()
    local _, resource = both()
    assert.matches("nobody has logged in within 1 seconds",
      failure(client(resource, { timeout = 1, open = function() end })))
    assert.matches("`open` of `auth` has failed: .*no display",
      failure(client(resource, { open = function() error "no display" end })))
  end)

  it("takes one answer, at its own path and with its own state", function()
    local _, resource = both()
    local codes = {}
    local server = client(resource, { open = function(url)
      local back = url:match "redirect_uri=([^&]*)":gsub("%%(%x%x)", function(digits)
        return string.char(tonumber(digits, 16))
      end)
      local function status(where, method)
        return assert(ah.http { url = where, method = method }).status
      end
      codes[1] = status(back .. "?code=stolen&state=guessed")
      codes[2] = status(back .. "?code=stolen")
      codes[3] = status((back:gsub("/callback", "/other")))
      codes[4] = status(back .. "?state=a&state=b")
      codes[5] = status(back, "DELETE")
      local response = browse(url)
      codes[6] = response.status
      codes[7] = response.headers["cache-control"]
    end })
    assert.equal("gone", go(server))
    assert.same({ 400, 400, 404, 400, 404, 200, "no-store" }, codes)
  end)

  it("refuses the second answer of a login", function()
    local _, resource = both()
    local second
    local server = client(resource, { open = function(url)
      local back = assert(ah.http { url = url }).headers.location
      local both_answers = assert(ah.all { function() return ah.http { url = back } end,
        function() return ah.http { url = back } end })
      local first = both_answers[1] and both_answers[1].status
      second = first == 200 and both_answers[2] or both_answers[1]
    end })
    assert.equal("gone", go(server))
    assert.is_true(second == nil or second.status == 400)
  end)

  it("sends no token to the place that a redirect names", function()
    local issuer, resource = both()
    local caught = 0
    local thief = assert(ah.serve { on_request = function()
      caught = caught + 1
      return {}
    end })
    local server = client(resource)
    assert(server:tools())
    resource.at["/mcp"] = function()
      return { status = 307, headers = { Location = thief.url .. "/mcp" }, body = "" }
    end
    assert.matches("status 307", (select(2, server:read "x:a")).message)
    issuer.on["/token"] = function()
      return { status = 307, headers = { Location = thief.url .. "/token" }, body = "" }
    end
    resource.at["/mcp"] = nil
    expire(issuer)
    assert.matches("gives no token: HTTP status 307", (select(2, server:read "x:a")).message)
    thief:close()
    assert.equal(0, caught)
  end)

  it("adds offline_access where the authorization server has it", function()
    local issuer, resource = both({ metadata = {
      scopes_supported = ah.array { "read", "offline_access" } } }, { scope = "read" })
    assert.equal("gone", go(client(resource)))
    local asked = query_of(issuer:asked "/authorize"[1])
    assert.equal("offline_access read", asked.scope)
    assert.equal("consent", asked.prompt)
  end)

  it("asks for the scopes of the user, of the challenge, of the metadata, or for none", function()
    for _, case in ipairs { { "mine", scope = "read", auth = "mine", needs = "mine" },
      { "read", scope = "read", supported = { "a", "b" } }, { "a b", supported = { "b", "a" } },
      {} } do
      local issuer, resource = both(nil, { scope = case.scope })
      resource.metadata.scopes_supported = case.supported and ah.array(case.supported)
      resource.needs = setmetatable({}, { __index = function() return case.needs end })
      assert(client(resource, { scope = case.auth }):tools())
      assert.equal(case[1], query_of(issuer:asked "/authorize"[1]).scope)
    end
  end)
end)

insulate("the metadata of ah.mcp's authorization", function()
  before_each(function() opened = {} end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
  end)

  -- Returns the error of a login with these servers, at which no person is asked.
  local function refused(change, auth)
    local issuer, resource = both()
    change(issuer, resource)
    auth = auth or {}
    auth.open = function() error "a person was asked" end
    local text = failure(client(resource, auth))
    assert.same({}, issuer:asked "/authorize")
    return text
  end

  it("are found without the challenge, at the server's path or at the root", function()
    for _, place in ipairs { "/.well-known/oauth-protected-resource/mcp",
      "/.well-known/oauth-protected-resource" } do
      local _, resource = both(nil, { place = place, refuse = function()
        return { status = 401, body = "no\n" }
      end })
      assert.equal("gone", go(client(resource)))
    end
  end)

  it("may be those of a resource that contains the server", function()
    local _, resource = both()
    resource.metadata.resource = resource.server.url
    assert.equal("gone", go(client(resource)))
  end)

  it("of the authorization server are found at each place of the specification", function()
    local OAUTH, OPENID = "oauth-authorization-server", "openid-configuration"
    for _, case in ipairs { { "", "/.well-known/" .. OPENID },
      { "/tenant/1", "/.well-known/" .. OAUTH .. "/tenant/1" },
      { "/tenant/1", "/.well-known/" .. OPENID .. "/tenant/1" },
      { "/tenant/1", "/tenant/1/.well-known/" .. OPENID } } do
      local issuer, resource = both()
      local origin = issuer.url
      issuer.url = origin .. case[1]
      resource.metadata.authorization_servers = ah.array { issuer.url }
      issuer.on["/.well-known/" .. OAUTH] = function() return { status = 404, body = "" } end
      issuer.on[case[2]] = function()
        return { body = { issuer = issuer.url, authorization_endpoint = origin .. "/authorize",
          token_endpoint = origin .. "/token", registration_endpoint = origin .. "/register",
          code_challenge_methods_supported = ah.array { "plain", "S256" } } }
      end
      assert.equal("gone", go(client(resource)), case[2])
    end
  end)

  it("are done without for a server that is its own authorization server (2025-03-26)", function()
    for _, with_metadata in ipairs { true, false } do
      local issuer, resource = both()
      local doors = { "/authorize", "/token", "/register" }
      doors[4] = with_metadata and "/.well-known/oauth-authorization-server" or nil
      issuer.url, issuer.iss = resource.server.url, false
      for _, path in ipairs(doors) do
        resource.at[path] = function(request)
          local answer = assert(ah.http { url = issuer.server.url .. request.target,
            method = request.method, body = request.method == "POST" and request.body or nil,
            headers = { ["Content-Type"] = (request.headers["content-type"] or {})[1] } })
          return { status = answer.status, body = answer.body,
            headers = { Location = answer.headers.location } }
        end
      end
      resource.place = "/nowhere"
      resource.refuse = function() return { status = 401, body = "no\n" } end
      assert.equal("gone", go(client(resource)))
    end
  end)

  it("must be those of the server", function()
    for _, other in ipairs { "https://evil.example/mcp", "not a url", "", 7 } do
      assert.matches("its metadata are those of '.*', not of http://127",
        refused(function(_, resource) resource.metadata.resource = other end))
    end
    assert.matches("its metadata are those of", refused(function(_, resource)
      resource.metadata.resource = resource.url .. "/below"
    end))
    assert.matches("its metadata are those of", refused(function(_, resource)
      resource.metadata.resource = resource.server.url .. "/mc"
    end))
  end)

  it("must be those of the issuer, exactly", function()
    for _, other in ipairs { "https://evil.example", "", false } do
      assert.matches("the metadata of the authorization server http.* are those of '",
        refused(function(issuer) issuer.metadata.issuer = other or "absent" end))
    end
    assert.matches("are those of '", refused(function(issuer)
      issuer.metadata.issuer = issuer.url .. "/"
    end))
  end)

  it("must say that PKCE is checked", function()
    for _, methods in ipairs { "absent", ah.array { "plain" }, "S256" } do
      assert.matches("does not say that it checks PKCE", refused(function(issuer)
        issuer.metadata.code_challenge_methods_supported = methods
      end))
    end
  end)

  it("must name addresses of https", function()
    local evil = "http://evil.example/x"
    for _, url in ipairs { evil, "javascript:alert(1)", "file:///etc/passwd", "//x", "https://",
      "https://a@evil.example/", "https://evil.example/#x", "https://evil.example:99999/", 7 } do
      for _, name in ipairs { "token_endpoint", "authorization_endpoint",
        "registration_endpoint" } do
        assert.matches("the " .. name .. " of http.* is no https:// address",
          refused(function(issuer) issuer.metadata[name] = url end))
      end
    end
    assert.matches("has no https:// address", refused(function(_, resource)
      resource.metadata.authorization_servers = ah.array { evil }
    end))
    assert.matches("it names its metadata at 'http://evil.example/x'", refused(function(_, resource)
      resource.refuse = function()
        return { status = 401, body = "",
          headers = { ["WWW-Authenticate"] = 'Bearer resource_metadata="' .. evil .. '"' } }
      end
    end))
    assert.matches("have no token_endpoint", refused(function(issuer)
      issuer.metadata.token_endpoint = "absent"
    end))
  end)

  it("must be objects of JSON within a limit", function()
    local function answer(fields)
      return function(issuer)
        issuer.on["/.well-known/oauth-authorization-server"] = function() return fields end
      end
    end
    assert.matches("is no JSON object", refused(answer { body = "<html>" }))
    assert.matches("is no JSON object", refused(answer { body = "[1]" }))
    assert.matches("cannot be read: .*larger", refused(answer {
      body = '"' .. ("x"):rep(2 << 20) .. '"' }))
    assert.matches("HTTP status 302", refused(answer { status = 302, body = "",
      headers = { Location = "http://127.0.0.1:1/" } }))
    assert.matches("name no authorization server", refused(function(_, resource)
      resource.metadata.authorization_servers = "all"
    end))
    assert.matches("its metadata: .* HTTP status 500", refused(function(_, resource)
      resource.at[resource.place] = function() return { status = 500, body = "" } end
    end))
  end)

  it("name an issuer that the user has chosen", function()
    assert.matches("its authorization server is http://127.*, not https://mine.example",
      refused(function() end, { issuer = "https://mine.example" }))
    local issuer, resource = both()
    resource.metadata.authorization_servers = ah.array { "https://other.example", issuer.url }
    assert.equal("gone", go(client(resource, { issuer = issuer.url })))
  end)

  it("are not asked for where tokens would be read along", function()
    local url = "http://mcp.example:1/mcp"
    local ok, err = pcall(ah.mcp, { url = url, auth = { open = browse } })
    assert.is_false(ok)
    assert.matches("'url' must be an https:// address", tostring(err))
    local server = ah.mcp { url = url }
    local _, why = server.authorization:refused(401, nil, nil)
    assert.matches("tokens are sent to https:// addresses only", why.message)
  end)
end)

insulate("the answer of a login", function()
  before_each(function() opened = {} end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
  end)

  it("must be of the authorization server that was asked", function()
    local issuer, resource = both { iss = "https://evil.example" }
    for _, advertised in ipairs { true, false } do
      issuer.metadata.authorization_response_iss_parameter_supported = advertised
      for _, denies in ipairs { false, "evil_words" } do
        issuer.denies = denies or nil
        local text = failure(client(resource))
        assert.matches("the answer of the login is not from the authorization server "
          .. issuer.url, text, 1, true)
        assert.is_nil(text:find "evil")
      end
    end
    issuer.iss, issuer.denies = issuer.url .. "/", nil
    assert.matches("is not from", failure(client(resource)))
    assert.same({}, issuer:asked "/token")
  end)

  it("must name it where its metadata say so", function()
    local issuer, resource = both { iss = false }
    assert.equal("gone", go(client(resource)))
    local asked = #issuer:asked "/token"
    issuer.metadata.authorization_response_iss_parameter_supported = true
    assert.matches("does not name the authorization server", failure(client(resource)))
    assert.equal(asked, #issuer:asked "/token")
  end)

  it("may be a refusal", function()
    local issuer, resource = both { denies = "access_denied" }
    assert.matches("refuses the login: access_denied", failure(client(resource)))
    issuer.denies = "\27[31mred\nline" .. ("x"):rep(5000)
    local text = failure(client(resource))
    assert.is_nil(text:find "%c")
    assert.is_true(#text < 1024)
  end)

  it("may have a code that is refused", function()
    local issuer, resource = both()
    for _, spoil in ipairs { function(asked) asked.code_challenge = "other" end,
      function(asked) asked.redirect_uri = "http://127.0.0.1:1/callback" end,
      function(asked) asked.resource = "https://other.example" end,
      function(asked) asked.client_id = "other" end,
      function(_, code) issuer.codes[code] = nil end } do -- it was redeemed already
      local text = failure(client(resource, { open = function(url)
        local back = assert(ah.http { url = url }).headers.location
        local code, asked = next(issuer.codes)
        spoil(asked, code)
        browse(back)
        issuer.codes = {}
      end }))
      assert.matches("gives no token: invalid_grant %(for a reason%)", text)
    end
  end)

  it("brings a token that can be used", function()
    local issuer, resource = both()
    for want, answer in pairs { ["has no token that can be used"] = { access_token = "a\r\nb" },
      ["is of the type 'mac'"] = { access_token = "abc", token_type = "mac" },
      ["is of the type"] = { access_token = "abc" }, ["no token"] = {},
      ["gives no token: broken"] = { error = "broken", access_token = "abc",
        token_type = "Bearer" } } do
      issuer.on["/token"] = function() return { body = answer } end
      assert.matches(want, failure(client(resource)), 1, true)
    end
    issuer.on["/token"] = function() return { body = "access_token=abc" } end
    assert.matches("gives no token: HTTP status 200", failure(client(resource)))
  end)

  it("is no reason to ask again if the server refuses the token", function()
    local _, resource = both()
    local logins = 0
    resource.metadata.resource = resource.server.url
    resource.issuer = { find = function() end }
    assert.matches("it refuses the token that the login has given",
      failure(client(resource, { open = function(url)
        logins = logins + 1
        browse(url)
      end })))
    assert.equal(1, logins)
  end)
end)

insulate("the client that logs in", function()
  local METADATA = "https://app.example/client.json"

  before_each(function() opened = {} end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
    command.tidy()
  end)

  it("is a metadata document where the authorization server reads them", function()
    local issuer, resource = both()
    issuer.metadata.client_id_metadata_document_supported = true
    issuer.clients[METADATA] = { client_id = METADATA, token_endpoint_auth_method = "none",
      redirect_uris = { "http://127.0.0.1/callback" } }
    assert.equal("gone", go(client(resource, { client_metadata_url = METADATA,
      client_id = issuer:client "none" })))
    assert.equal(METADATA, query_of(issuer:asked "/authorize"[1]).client_id)
    assert.equal(METADATA, issuer:asked "/token"[1].form.client_id)
    assert.same({}, issuer:asked "/register")
  end)

  it("is the one that the user gave, or else is registered", function()
    local issuer, resource = both()
    local id = issuer:client "none"
    assert.equal("gone", go(client(resource, { client_metadata_url = METADATA, client_id = id })))
    assert.equal(id, query_of(issuer:asked "/authorize"[1]).client_id)
    assert.same({}, issuer:asked "/register")
    assert.equal("gone", go(client(resource, { client_metadata_url = METADATA })))
    assert.equal(1, #issuer:asked "/register")
    issuer.metadata.registration_endpoint = "absent"
    assert.matches("a client id must be given", failure(client(resource)))
  end)

  it("proves itself as the authorization server wants", function()
    for _, case in ipairs { { "client_secret_basic" }, { "client_secret_post" },
      { "client_secret_basic", absent = true } } do
      local issuer, resource = both()
      local method = case[1]
      issuer.metadata.token_endpoint_auth_methods_supported = case.absent and "absent"
        or ah.array { "private_key_jwt", method }
      local id, of_client = issuer:client(method)
      assert.equal("gone", go(client(resource, { client_id = id, client_secret = of_client })))
      if not case.absent then
        assert.equal("gone", go(client(resource))) -- registered
      end
      local form = issuer:asked "/token"[1].form
      assert.equal(method == "client_secret_post" and of_client or nil, form.client_secret)
    end
    local issuer, resource = both()
    issuer.metadata.token_endpoint_auth_methods_supported = ah.array { "private_key_jwt" }
    assert.matches("in a way that agenthost does not have", failure(client(resource)))
    assert.matches("takes no client secret",
      failure(client(resource, { client_id = "a", client_secret = "b" })))
  end)

  it("is told why it is not registered", function()
    local issuer, resource = both()
    issuer.on["/register"] = function()
      return { status = 400, body = { error = "invalid_redirect_uri" } }
    end
    assert.matches("registers no client: invalid_redirect_uri", failure(client(resource)))
    issuer.on["/register"] = function() return { status = 201, body = { client_id = "" } } end
    assert.matches("without what it needs", failure(client(resource)))
  end)

  it("is registered once for a file, with its redirect URI", function()
    local issuer, resource = both()
    local file = command.folder() .. "/credentials"
    assert.equal("gone", go(client(resource, { file = file })))
    expire(issuer, true)
    assert.equal("gone", go(client(resource, { file = file })))
    assert.equal(2, #issuer:asked "/authorize")
    assert.equal(1, #issuer:asked "/register")
    issuer.clients = {} -- the authorization server has lost it
    expire(issuer)
    assert.matches("nobody has logged in", failure(client(resource, { file = file, timeout = 1,
      open = function() end })))
    assert.equal(2, #issuer:asked "/register")
  end)

  it("has options that are checked", function()
    for want, auth in pairs { ["'redirect_uri' must be"] = { redirect_uri = "http://a.example/" },
      ["'client_metadata_url' must be"] = { client_metadata_url = "http://a.example/c" },
      ["'client_secret' is for"] = { client_secret = "x" }, ["'file' must be"] = { file = true },
      ["unknown field 'flie'"] = { flie = "x" } } do
      local ok, err = pcall(ah.mcp, { url = "https://a.example", auth = auth })
      assert.is_false(ok)
      assert.matches(want, tostring(err), 1, true)
    end
    for _, fields in ipairs { { command = "x", auth = {} },
      { url = "https://a.example", auth = {}, headers = { authorization = "Bearer x" } } } do
      assert.is_false((pcall(ah.mcp, fields)))
    end
  end)
end)

insulate("the tokens of ah.mcp", function()
  before_each(function() opened = {} end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
    command.tidy()
  end)

  local function renewals(issuer)
    local n = 0
    for _, one in ipairs(issuer:asked "/token") do
      n = n + (one.form.grant_type == "refresh_token" and 1 or 0)
    end
    return n
  end

  it("are renewed before they end, and each refresh token is used once", function()
    local issuer, resource = both { lasts = 20 }
    local server = client(resource)
    for _ = 1, 3 do
      assert.equal("gone", go(server))
    end
    assert.is_true(renewals(issuer) >= 3)
    assert.equal(1, #issuer:asked "/authorize")
    local used = {}
    for _, one in ipairs(issuer:asked "/token") do
      local token = one.form.refresh_token or "none"
      assert.is_nil(used[token])
      used[token] = true
    end
  end)

  it("are renewed when the server refuses them", function()
    local issuer, resource = both()
    local server = client(resource)
    assert.equal("gone", go(server))
    expire(issuer)
    assert.equal("gone", go(server))
    assert.equal(1, renewals(issuer))
    assert.equal(1, #issuer:asked "/authorize")
  end)

  it("are got by a login if they cannot be renewed", function()
    local issuer, resource = both()
    local server = client(resource)
    assert.equal("gone", go(server))
    expire(issuer, true)
    assert.equal("gone", go(server))
    assert.equal(2, #issuer:asked "/authorize")
    issuer.renews = false
    expire(issuer, true)
    assert.equal("gone", go(server))
    expire(issuer)
    assert.equal("gone", go(server))
    assert.equal(4, #issuer:asked "/authorize")
  end)

  it("are used to their end if they cannot be renewed now", function()
    local issuer, resource = both { lasts = 20 }
    local server = client(resource)
    issuer.on["/token"] = nil
    assert.equal("gone", go(server))
    issuer.on["/token"] = function() return { status = 503, body = "later" } end
    assert.equal("gone", go(server))
    expire(issuer)
    local _, err = server:read "x:a"
    assert.matches("gives no token: HTTP status 503", err.message)
    assert.is_true(err.retryable)
    assert.equal(1, #issuer:asked "/authorize")
  end)

  it("have more scopes when a call needs them, and keep the others", function()
    local issuer, resource = both(nil, { scope = "read", needs = { ["tools/call"] = "write" } })
    local server = client(resource)
    assert.equal("gone", go(server))
    local asked = issuer:asked "/authorize"
    assert.equal(2, #asked)
    assert.equal("read write", query_of(asked[2]).scope)
    assert.equal("gone", go(server))
    assert.equal(2, #issuer:asked "/authorize")
  end)

  it("are not asked for again if the scopes are not granted", function()
    local issuer, resource = both({ grants = "read" },
      { scope = "read", needs = { ["tools/call"] = "write" } })
    local server = client(resource)
    for _ = 1, 3 do
      assert.matches("the scopes write are not enough for it, or were not granted", (go(server)))
    end
    assert.equal(2, #issuer:asked "/authorize")
    local quiet = client(resource, { open = false })
    local _, why = quiet.authorization:refused(403,
      'Bearer error="insufficient_scope", scope="write"', nil)
    assert.matches("run agenthost mcp login --scope 'write' 'http", why.message, 1, true)
  end)

  it("are in no error and no result", function()
    local issuer
    local said = {}
    local on = { ["tools/call"] = function(_, request)
      return far.says("you are " .. request.headers.authorization[1])
    end, ["resources/read"] = function(_, request)
      return nil, -32000, "not with " .. request.headers.authorization[1]
    end }
    local resource
    issuer, resource = both(nil, nil, on)
    local server = client(resource)
    said[1] = go(server)
    said[2] = (select(2, server:read "x:a")).message
    local id, of_client = issuer:client "client_secret_post"
    issuer.on["/token"] = function(request)
      return { status = 400, body = { error = "invalid_request",
        error_description = request.body } }
    end
    said[3] = failure(client(resource, { client_id = id, client_secret = of_client }))
    expire(issuer)
    said[4] = (select(2, server:read "x:a")).message
    assert.matches("you are Bearer %[secret%]", said[1])
    assert.matches("not with Bearer %[secret%]", said[2])
    local texts = table.concat(said, "\n")
    for _, secrets in ipairs { issuer.tokens, issuer.refreshes } do
      for token in pairs(secrets) do
        assert.is_nil(texts:find(token, 1, true))
      end
    end
    assert.is_nil(texts:find(of_client, 1, true))
  end)
end)

insulate("the file of credentials", function()
  local file

  before_each(function()
    opened = {}
    file = command.folder() .. "/credentials"
  end)

  after_each(function()
    for _, server in ipairs(opened) do
      server:close()
    end
    mcp_issuer.clear()
    command.tidy()
  end)

  it("is for its owner only, and spares the next process a login", function()
    local issuer, resource = both()
    assert.equal("gone", go(client(resource, { file = file })))
    assert.equal("600\n", command.shell("stat -c %a " .. file).out)
    assert.equal("gone", go(client(resource, { file = file, open = false })))
    assert.equal(1, #issuer:asked "/authorize")
    local entry = saved(file).entries[1]
    assert.equal(issuer.url, entry.issuer)
    assert.equal(resource.url, entry.url)
  end)

  it("has several servers, and the clients of each that a user gave", function()
    local issuer, resource = both()
    local _, other = both()
    local id = issuer:client "none"
    assert.equal("gone", go(client(resource, { file = file })))
    assert.equal("gone", go(client(other, { file = file })))
    assert.equal("gone", go(client(resource, { file = file, client_id = id })))
    assert.equal("gone", go(client(resource, { file = file, client_id = id, open = false })))
    assert.equal("gone", go(client(other, { file = file, open = false })))
    assert.equal(2, #saved(file).entries)
  end)

  it("gets renewed tokens, which the next process uses", function()
    local issuer, resource = both()
    assert.equal("gone", go(client(resource, { file = file })))
    local first = saved(file).entries[1]
    expire(issuer)
    assert.equal("gone", go(client(resource, { file = file, open = false })))
    local second = saved(file).entries[1]
    assert.not_equal(first.access, second.access)
    assert.not_equal(first.refresh, second.refresh)
    assert.equal("gone", go(client(resource, { file = file, open = false })))
    assert.equal(1, #issuer:asked "/authorize")
  end)

  it("lets clients that renew at once have one renewal", function()
    local issuer, resource = both()
    assert.equal("gone", go(client(resource, { file = file })))
    local list = {}
    for i = 1, 4 do
      local server = client(resource, { file = file, open = false })
      assert(server:tools())
      list[i] = function() return assert(server:prompts()) and go(server) end
    end
    expire(issuer)
    local slow = issuer.on["/token"]
    assert.is_nil(slow)
    local said = ah.all(list)
    for i = 1, 4 do
      assert.equal("gone", said[i])
    end
    assert.equal(2, #issuer:asked "/token") -- the code, and one renewal
  end)

  it("brings the login of another process to one that is at work", function()
    local _, resource = both()
    local waiting = client(resource, { file = file, open = false })
    assert.matches("needs a login", failure(waiting))
    assert.equal("gone", go(client(resource, { file = file })))
    assert.equal("gone", go(waiting))
  end)

  it("does not give one authorization server what is another's", function()
    local issuer, resource = both()
    assert.equal("gone", go(client(resource, { file = file })))
    local second = mcp_issuer.new()
    resource.issuer = second
    resource.metadata.authorization_servers = ah.array { second.url }
    assert.equal("gone", go(client(resource, { file = file })))
    local first_id = ah.json.decode(issuer:asked "/register"[1].body).client_id
    assert.equal(1, #second:asked "/register")
    for _, one in ipairs(second.seen) do
      assert.is_nil((one.form or {}).refresh_token)
      assert.is_nil(one.body:find(tostring(first_id or next(issuer.clients)), 1, true))
    end
    assert.equal(1, #saved(file).entries)
  end)

  it("keeps a client that the user gave with its authorization server", function()
    local issuer, resource = both()
    local auth = { file = file, client_id = issuer:client "none" }
    assert.equal("gone", go(client(resource, auth)))
    local second = mcp_issuer.new()
    resource.issuer = second
    resource.metadata.authorization_servers = ah.array { second.url }
    assert.matches("its authorization server was " .. issuer.url, failure(client(resource,
      { file = file, client_id = auth.client_id })), 1, true)
    assert.same({}, second:asked "/authorize")
    local sent = #tokens_of(resource)
    assert.matches("needs a login", failure(client(resource,
      { file = file, issuer = second.url, open = false })))
    assert.equal(sent, #tokens_of(resource))
  end)

  it("that is damaged is named, and changes nothing for servers without logins", function()
    local _, resource = both()
    local sound = ah.json.encode { version = 1, entries = ah.array { { url = resource.url,
      resource = resource.url, issuer = "https://a.example",
      token_endpoint = "https://a.example/token", client = { id = "a", kind = "given",
        method = "none" } } } }
    for _, text in ipairs { "", "secret-token", "[]", '{"version":2,"entries":[]}',
      '{"version":1,"entries":[7]}', (sound:gsub('"id":"a"', '"id":7')),
      (sound:gsub("https://a.example/token", "http://a.example/token")),
      (sound:gsub('"none"', '"client_secret_basic"')),
      (sound:gsub('"resource"', '"access":"a\\nb","resource"')),
      (sound:gsub('"entries"', '"entries":7,"entries"')) } do
      command.write(file, text)
      local why = failure(client(resource, { file = file }))
      assert.matches(("the credentials '%s' are damaged"):format(file), why, 1, true)
      assert.is_nil(why:find("secret-token", 1, true))
      assert.equal(text, command.contents(file))
    end
    local url = far.serve { ["tools/list"] = function()
      return { resultType = "complete", tools = ah.array {} }
    end }
    local plain = ah.mcp { url = url, auth = { file = file } }
    assert.same({}, plain:tools())
    plain:close()
    far.clear()
  end)

  it("that cannot be written is an error that names it", function()
    local _, resource = both()
    local nowhere = file .. "/nowhere/x"
    assert.matches(nowhere, failure(client(resource, { file = nowhere })), 1, true)
    os.execute("ln -s /dev/null " .. file)
    assert.matches(file, failure(client(resource, { file = file })), 1, true)
  end)

  it("is not written unless the user wants it", function()
    local _, resource = both()
    local home = command.folder()
    local place = ah._mcp_logins
    local looked = 0
    ah._mcp_logins = function()
      looked = looked + 1
      return home .. "/credentials"
    end
    opened[1] = ah.mcp { url = resource.url, name = "far", auth = { open = browse } }
    ah._mcp_logins = place
    assert.equal("gone", go(opened[1]))
    assert.equal(1, looked)
    assert.equal("", command.shell("ls -A " .. home).out)
  end)
end)

describe("a challenge", function()
  local challenge = ah._module "agenthost.protocols.mcp.client.authorization.challenge"

  it("is read as RFC 9110 writes it", function()
    for text, want in pairs {
      ['Bearer resource_metadata="https://a/b", scope="a b"'] =
        { resource_metadata = "https://a/b", scope = "a b" },
      ['Basic realm="x, Bearer scope=no", bearer SCOPE = a , error="q\\"\\\\"'] =
        { scope = "a", error = 'q"\\' },
      ['Negotiate abc==, Bearer scope=a'] = { scope = "a" },
      ['DPoP algs="ES256", Bearer'] = {},
      ['Bearer scope="a", scope="b", Basic scope="c", Bearer scope="d"'] = { scope = "a" },
      ['Bearer scope="unended'] = { scope = "unended" },
      ['Bearer scope='] = {}, ["Bearer ="] = {}, [""] = {}, [",,,"] = {}, ['"'] = {},
      ['Bearer a="\\'] = { a = "" },
    } do
      assert.same(want, challenge.read(text), text)
    end
    assert.same({}, challenge.read(nil))
    challenge.read(("Bearer a=b,"):rep(1 << 16)) -- ends soon
  end)

  it("has scopes, each once", function()
    assert.same({ "a", "b:c" }, challenge.scopes "a  b:c a x\"y \27")
    assert.equal("a b", challenge.union({ "b a" }, { "a" }))
    assert.is_nil(challenge.union({ "" }, {}))
  end)
end)

describe("an address", function()
  local address = ah._module "agenthost.protocols.mcp.oauth.address"

  it("is read strictly", function()
    for text, origin in pairs { ["https://A.example"] = "https://a.example",
      ["HTTPS://a.example:443/x?y"] = "https://a.example",
      ["http://127.0.0.1:80/"] = "http://127.0.0.1", ["http://[::1]:8080/x"] = "http://[::1]:8080",
      ["http://127.0.0.1:8080"] = "http://127.0.0.1:8080" } do
      assert.equal(origin, (address.read(text) or {}).origin, text)
    end
    for _, text in ipairs { "https://", "https:///x", "ftp://a.example", "https://a b",
      "https://a@b.example", "https://a:b@c.example", "https://a.example\\@b",
      "https://a.example:0",
      "https://a.example:65536", "https://a.example:123456", "https://-a", "https://a.example#x",
      "https://a\n", "https://ä.example", ("https://a.example/"):rep(200), "", {} } do
      assert.is_nil(address.read(text), tostring(text))
    end
  end)

  it("of this machine is known as such", function()
    for text, loopback in pairs { ["http://localhost"] = true, ["http://127.9.9.9"] = true,
      ["http://[::1]"] = true, ["http://127.0.0.1.evil.example"] = false,
      ["http://localhost.evil.example"] = false, ["http://10.0.0.1"] = false } do
      assert.equal(loopback, address.read(text).loopback, text)
    end
    local outside = address.read "https://a.example"
    assert.is_nil(address.named("http://127.0.0.1/x", outside))
    assert.is_nil(address.named("http://a.example/x", outside))
    assert.is_truthy(address.named("https://b.example/x", outside))
  end)

  it("contains those below it", function()
    local server = address.read "https://a.example/one/mcp"
    for resource, covered in pairs { ["https://a.example"] = true, ["https://a.example/"] = true,
      ["https://A.example/one"] = true, ["https://a.example/one/mcp"] = true,
      ["https://a.example/one/mcp/"] = true, ["https://a.example/on"] = false,
      ["https://a.example/one/mcp/x"] = false, ["https://a.example:444/one"] = false,
      ["http://a.example/one"] = false, ["https://b.example/one"] = false,
      ["https://a.example/?x"] = false } do
      assert.equal(covered, address.covers(resource, server), resource)
    end
  end)
end)
