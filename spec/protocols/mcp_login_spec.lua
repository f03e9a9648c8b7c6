-- agenthost mcp login and logout, and runs of the command that use a login.
local ah = require "agenthost"
local command = require "support.command"
local far = require "support.mcp_http"
local mcp_issuer = require "support.mcp_issuer"

insulate("agenthost mcp login", function()
  local home

  before_each(function() home = command.folder() end)

  after_each(function()
    mcp_issuer.clear()
    far.clear()
    command.tidy()
  end)

  -- Starts the command with these words.
  local function start(words, env)
    env = env or {}
    env.XDG_STATE_HOME, env.XDG_CONFIG_HOME = home, env.XDG_CONFIG_HOME or "/dev/null"
    return assert(ah.process { command = command.BINARY, args = words, env = env, timeout = 60 })
  end

  -- Returns the output, the errors and the exit code of the command. A login that it asks for is
  -- done.
  local function run(words, env)
    local p <close> = start(words, env)
    local lines = {}
    for line in p:lines() do
      lines[#lines + 1] = line
      if line:find "/authorize?" then
        mcp_issuer.browse(line)
      end
    end
    return table.concat(lines, "\n"), p:errors(), p:wait().exit_code
  end

  local function both(of_resource)
    local issuer = mcp_issuer.new()
    return issuer, mcp_issuer.resource(issuer, { ["tools/list"] = function()
      return { resultType = "complete", tools = ah.array { far.tool "go" } }
    end, ["tools/call"] = function() return far.says "gone" end }, of_resource)
  end

  local function place()
    return home .. "/agenthost/mcp_credentials.json"
  end

  -- Returns the output and the errors of a script that calls the tool of a server.
  local function use(url)
    local script = command.temp(([[local ah = require "agenthost"
      local server <close> = ah.mcp { url = %q, name = "far" }
      local model = ah.scripted { { calls = { { name = "go" } } }, "Done." }
      local reply = assert(ah.run { model = model, tools = { server }, "Go." })
      for _, message in ipairs(reply.messages) do
        if message.role == "tool" then print(message.content) end
      end]]):format(url))
    return run { "--record", home .. "/record.jsonl", "-vv", script }
  end

  it("keeps the tokens for runs, which renew them there", function()
    local issuer, resource = both()
    local _, why, failed = use(resource.url)
    assert.equal(3, failed)
    assert.matches("it needs a login: run agenthost mcp login '" .. resource.url, why, 1, true)
    local out, err, code = run { "mcp", "login", "--no-open", resource.url }
    assert.equal(0, code, err)
    assert.matches(("Logged in to %s. The tokens are in '%s'."):format(resource.url, place()), out,
      1, true)
    assert.equal("700 600\n", command.shell(("echo $(stat -c %%a %s %s)"):format(
      home .. "/agenthost", place())).out)
    local texts = { out, err }
    for _ = 1, 2 do
      local said, log, done = use(resource.url)
      assert.equal(0, done, log)
      assert.equal("gone", said)
      texts[#texts + 1] = said .. log
      issuer.tokens = {} -- they are over: the next run renews them
    end
    assert.equal(1, #issuer:asked "/authorize")
    assert.equal(2, #issuer:asked "/token")
    texts[#texts + 1] = command.contents(home .. "/record.jsonl")
    local all = table.concat(texts, "\n")
    assert.is_nil(all:find "access%-", all)
    assert.is_nil(all:find "refresh%-", all)
  end)

  it("lets processes that renew at once have one renewal", function()
    local issuer, resource = both()
    local _, err, code = run { "mcp", "login", "--no-open", resource.url }
    assert.equal(0, code, err)
    issuer.tokens = {}
    local function one() return use(resource.url) end
    assert.same({ "gone", "gone", "gone", n = 3 }, ah.all { one, one, one })
    assert.equal(2, #issuer:asked "/token")
  end)

  it("logs in anew, and logs out", function()
    local issuer, resource = both()
    for i = 1, 2 do
      local _, err, code = run { "mcp", "login", "--no-open", resource.url }
      assert.equal(0, code, err)
      assert.equal(i, #issuer:asked "/authorize")
    end
    assert.equal(1, #issuer:asked "/register")
    local out, err, code = run { "mcp", "logout", resource.url }
    assert.equal(0, code, err)
    assert.equal(("Logged out of %s."):format(resource.url), out)
    assert.equal(1, #issuer:asked "/revoke")
    assert.is_nil(command.contents(place()):find("client", 1, true))
    local _, text, failed = run { "mcp", "logout", resource.url }
    assert.equal(1, failed)
    assert.matches("there is no login to " .. resource.url, text, 1, true)
  end)

  it("takes a client that was registered by hand, its secret, and scopes", function()
    local issuer, resource = both()
    local id, of_client = issuer:client("client_secret_basic", "http://localhost/done")
    local _, err, code = run({ "mcp", "login", "--no-open", "--client-id", id, "--scope", "a b",
      "--redirect-uri", "http://localhost/done", resource.url },
      { AGENTHOST_MCP_CLIENT_SECRET = of_client })
    assert.equal(0, code, err)
    assert.same({ "a b" }, issuer:asked "/authorize"[1].query.scope)
    assert.equal("gone", (use(resource.url)))
  end)

  it("says so if a server needs none", function()
    local url = far.serve { ["tools/list"] = function()
      return { resultType = "complete", tools = ah.array {} }
    end }
    local out, err, code = run { "mcp", "login", "--no-open", url }
    assert.equal(0, code, err)
    assert.equal(url .. " needs no login.", out)
  end)

  it("logs in to a server that asks for it only later", function()
    local issuer, resource = both()
    resource.at["/mcp"] = function(request, response)
      return far.handle({ ["tools/list"] = function()
        return { resultType = "complete", tools = ah.array {} }
      end }, {}, request, response)
    end
    local out, err, code = run { "mcp", "login", "--no-open", resource.url }
    assert.equal(0, code, err)
    assert.matches("^Open this address to log in:\n.*\nLogged in to ", out)
    assert.equal(1, #issuer:asked "/token")
  end)

  it("keeps the tokens where no tool sees them", function()
    command.shell("mkdir -p " .. home .. "/agenthost")
    command.write(place(), "a token")
    command.write(home .. "/other", "another file")
    local script = command.temp(([[local ah = require "agenthost"
      local home = %q
      local files = ah.filesystem { root = home }
      print(files:read "other", (files:read "agenthost/mcp_credentials.json"))
      for _, path in ipairs { "/other", "/agenthost/mcp_credentials.json" } do
        local ok, p = pcall(ah.process, { command = "cat", args = { home .. path },
          sandbox = "auto" })
        print(ok and p and (p:line()))
      end]]):format(home))
    local out, err, code = run { script }
    assert.equal(0, code, err)
    assert.matches("another file\tnil", out, 1, true)
    assert.is_nil(out:find("a token", 1, true), out)
  end)

  it("takes the name of a server in the user's file", function()
    local _, resource = both()
    local config = { XDG_CONFIG_HOME = home }
    command.shell(("mkdir -p %s/agenthost"):format(home))
    command.write(home .. "/agenthost/mcp.json", ah.json.encode { mcpServers = {
      far = { type = "http", url = resource.url }, near = { command = "true" } } })
    local out, err, code = run({ "mcp", "login", "--no-open", "far" }, config)
    assert.equal(0, code, err)
    assert.matches("Logged in to " .. resource.url, out, 1, true)
    out, err, code = run({ "mcp", "tools", "far" }, config)
    assert.equal(0, code, err)
    assert.matches("go", out, 1, true)
    assert.equal(0, (select(3, run({ "mcp", "logout", "far" }, config))))
    _, err, code = run({ "mcp", "login", "near" }, config)
    assert.equal(2, code)
    assert.matches("'near' is a process, and has no login", err, 1, true)
  end)

  it("tells why it fails", function()
    local _, resource = both()
    for want, case in pairs {
      ["nobody has logged in within 1 seconds"] = { 3, "mcp", "login", "--no-open", "--timeout",
        "1", resource.url },
      ["must be an https:// address"] = { 2, "mcp", "login", "http://mcp.example/" },
      ["found 'b' besides"] = { 2, "mcp", "login", "a", "b" },
      ["there is no MCP server 'a'"] = { 2, "mcp", "logout", "a" },
      ["cannot be reached"] = { 3, "mcp", "login", "http://127.0.0.1:1/mcp" },
    } do
      local p <close> = start { table.unpack(case, 2) }
      assert.equal(case[1], p:wait { discard = true }.exit_code, want)
      assert.matches(want, p:errors(), 1, true)
    end
    command.shell("mkdir -p " .. home .. "/agenthost")
    command.write(place(), "broken")
    for _, action in ipairs { "login", "logout" } do
      local _, err = run { "mcp", action, resource.url }
      assert.matches(("the credentials '%s' are damaged"):format(place()), err, 1, true)
    end
  end)

  it("is ended by Ctrl-C", function()
    local _, resource = both()
    local p <close> = start { "mcp", "login", "--no-open", resource.url }
    assert.equal("Open this address to log in:", p:line { timeout = 30 })
    p:kill "INT"
    assert.equal(130, p:wait { discard = true }.exit_code)
    assert.is_nil(io.open(place()))
  end)
end)
