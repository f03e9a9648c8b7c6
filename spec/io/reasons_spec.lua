-- The reasons of failed requests, one word each for programs, and failures of proxies: servers on
-- loopback that refuse, stall, cut, reset and answer for a proxy.
local ah = require "agenthost"
local ahtest = require "ahtest"
local command = require "support.command"
local server = require "support.server"

local VARIABLES = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
  "no_proxy", "NO_PROXY" }

local function serve(...)
  return server.start { responses = { ... } }
end

-- Returns the failure of one request, with these variables in the environment.
local function failure(opts, env)
  for _, name in ipairs(VARIABLES) do
    ahtest.setenv(name, (env or {})[name])
  end
  local r, err = ahtest.http(opts)
  for _, name in ipairs(VARIABLES) do
    ahtest.setenv(name, nil)
  end
  return assert.is_table((assert(r, err and err.message)).error) and r.error
end

local function reason(opts, env)
  local e = failure(opts, env)
  assert.equal("http", e.status, e.message)
  return e.reason, e
end

-- A port of loopback without a listener; a port that was just closed may be reused.
local CLOSED = 1

describe("the reason of an HTTP failure", function()
  it("is refused where nobody listens", function()
    assert.equal("refused", (reason { url = ("http://127.0.0.1:%d/"):format(CLOSED) }))
  end)

  it("is dns where the name is not known", function()
    assert.equal("dns", (reason { url = "http://" .. ("x"):rep(64) .. ".invalid/" }))
  end)

  it("is tls where there is none", function()
    local s <close> = serve { raw = true, body = "HTTP/1.1 200 OK\r\n\r\nno TLS in this tunnel" }
    assert.equal("tls", (reason({ url = "https://api.invalid/" }, { https_proxy = s.url })))
  end)

  it("is a limit of time by its name", function()
    local s <close> = serve { stall = true }
    assert.equal("timeout_connect", (reason({ url = "https://api.invalid/",
      limits = { connect_ms = 80 } }, { https_proxy = s.url })))
    assert.equal("timeout_idle", (reason { url = s.url, limits = { idle_ms = 80 } }))
    assert.equal("timeout_total", (reason { url = s.url, limits = { total_ms = 80 } }))
    local slow <close> = serve { body = ("x"):rep(1000), piece = 1, gap = 5 }
    assert.equal("timeout_total", (reason { url = slow.url, limits = { total_ms = 120 } }))
  end)

  it("is too_large for a header and for a body", function()
    local s <close> = serve({ big_header = 9000, body = "x" })
    assert.equal("too_large", (reason { url = s.url, limits = { header_bytes = 4000 } }))
    local t <close> = serve { body = ("x"):rep(9000) }
    assert.equal("too_large", (reason { url = t.url, limits = { body_bytes = 4000 } }))
    local long <close> = serve { big_header = 200000, body = "x" }
    assert.equal("too_large", (reason { url = long.url, limits = { header_bytes = 1 << 20 } }))
  end)

  it("is broken for what ends early or makes no sense", function()
    for _, response in ipairs {
      { body = ("x"):rep(100), cut = 40 },
      { framing = "chunked", body = ("x"):rep(100), cut = 40 },
      { body = ("x"):rep(100), reset = 40 },
      { drop = true },
      { raw = true, body = "220 mail.example ESMTP\r\n" },
      { raw = true, body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" },
      { raw = true, body = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nabc" },
    } do
      local s <close> = serve(response)
      assert.equal("broken", (reason { url = s.url }))
    end
  end)
end)

describe("a proxy of the environment", function()
  local CREDENTIALS = "user:canary-password@"

  -- Requests https through a proxy that answers CONNECT with this status.
  local function tunnel(status)
    local s <close> = serve { status = status, body = "no" }
    local url = s.url:gsub("http://", "http://" .. CREDENTIALS)
    local why, e = reason({ url = "https://api.invalid/v1" }, { https_proxy = url })
    assert.equal("proxy", why)
    assert.falsy(e.message:find("canary", 1, true), e.message)
    assert.truthy(e.message:find("the proxy 127.0.0.1:" .. s.port, 1, true), e.message)
    assert.truthy(e.message:find("HTTP " .. status, 1, true), e.message)
    assert.truthy(e.message:find("api.invalid:443", 1, true), e.message)
    assert.equal(status, e.http_status)
    return e
  end

  it("that refuses to connect is named with its status, and not asked again", function()
    for _, status in ipairs { 401, 403, 407, 404 } do
      assert.is_false(tunnel(status).retryable, status)
    end
    assert.truthy(tunnel(407).message:find("a name and a password", 1, true))
  end)

  it("that is busy is asked again", function()
    for _, status in ipairs { 429, 500, 502, 503, 504 } do
      assert.is_true(tunnel(status).retryable, status)
    end
  end)

  it("that is not reached is named, without its password", function()
    local port = CLOSED
    for _, env in ipairs { { http_proxy = "http://%s127.0.0.1:%d" },
      { all_proxy = "%s127.0.0.1:%d" }, { ALL_PROXY = "socks5h://%s127.0.0.1:%d" } } do
      local name, form = next(env)
      local why, e = reason({ url = "http://api.invalid/" },
        { [name] = form:format(CREDENTIALS, port) })
      assert.equal("proxy", why, name)
      assert.truthy(e.message:find("127.0.0.1:" .. port, 1, true), e.message)
      assert.falsy(e.message:find("canary", 1, true), e.message)
    end
    local unknown = ("x"):rep(64) .. ".invalid"
    local why, e = reason({ url = "http://api.invalid/" },
      { http_proxy = ("http://%s%s:3128"):format(CREDENTIALS, unknown) })
    assert.equal("proxy", why)
    assert.truthy(e.message:find(unknown .. ":3128", 1, true), e.message)
    assert.falsy(e.message:find("canary", 1, true), e.message)
  end)

  it("that breaks off, or speaks no SOCKS, is named", function()
    local s <close> = serve { drop = true }
    assert.equal("proxy", (reason({ url = "https://api.invalid/" }, { https_proxy = s.url })))
    local t <close> = serve { raw = true, body = "no SOCKS here\r\n" }
    local why, e = reason({ url = "http://api.invalid/", limits = { connect_ms = 1000 } },
      { all_proxy = (t.url:gsub("http", "socks5h")) })
    assert.truthy(why == "proxy" or why == "timeout_connect", e.message)
  end)

  it("has no part in what no_proxy excepts", function()
    local port, proxy = CLOSED, serve { status = 403 }
    local url = ("http://127.0.0.1:%d/"):format(port)
    for _, except in ipairs { "*", "127.0.0.1", "a.b, 127.0.0.1", "127.0.0.0/8" } do
      local why, e = reason({ url = url }, { http_proxy = proxy.url, no_proxy = except })
      assert.equal("refused", why, except)
      assert.equal(("connection refused by 127.0.0.1:%d"):format(port), e.message)
    end
    proxy:close()
    assert.equal("proxy", (reason({ url = url }, { http_proxy = proxy.url, no_proxy = "x" })))
  end)
end)

describe("a script", function()
  it("reads the reason in err.reason, of ah.http and of runs, and in their events", function()
    local url = ("http://127.0.0.1:%d"):format(CLOSED)
    local _, err = ah.http { url = url }
    assert.same({ "http", "refused" }, { err.code, err.reason })
    local seen = {}
    local _, failed = ah.run { model = "openai/x", base_url = url, api_key = "unused-key",
      retries = 1, on = function(e)
        seen[e.type] = e.reason
      end, "hi" }
    assert.same({ "http", "refused" }, { failed.code, failed.reason })
    assert.same({ "refused", "refused" }, { seen.retry, seen.done })
    local s <close> = serve { headers = { ["Content-Type"] = "text/event-stream" },
      body = 'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' }
    _, failed = ah.run { model = "openai/x", base_url = s.url, api_key = "unused-key", retries = 0,
      stream = true, "hi" }
    assert.same({ "http", "broken" }, { failed.code, failed.reason })
  end)

  it("keeps the reason of what an adapter raises", function()
    local url = ("http://127.0.0.1:%d"):format(CLOSED)
    local model = ah.adapter { name = "a/b", answer = function()
      local _, e = ah.http { url = url }
      error(e)
    end }
    local _, err = ah.run { model = model, retries = 0, "hi" }
    assert.same({ "http", "refused" }, { err.code, err.reason })
  end)

  it("gets the same from a replay", function()
    finally(command.tidy)
    local s = serve { status = 407, body = "" }
    local script = command.temp([[local ah = require "agenthost"
      local _, e = ah.run { model = "openai/x", retries = 0, "hi" }
      print(e.code, e.reason, e.retryable)]])
    local file = command.temp ""
    local env = ("https_proxy=%s OPENAI_BASE_URL=https://api.invalid OPENAI_API_KEY=unused-key")
      :format(s.url)
    local out = {}
    for i, flag in ipairs { "--record", "--replay" } do
      local pipe <close> = assert(io.popen(("%s %s/agenthost %s '%s' '%s' 2>/dev/null"):format(env,
        os.getenv "AGENTHOST_BUILD" or "./build", flag, file, script)))
      out[i] = pipe:read "a"
    end
    s:close()
    assert.equal("http\tproxy\tfalse\n", out[1])
    assert.equal(out[1], out[2])
  end)
end)
