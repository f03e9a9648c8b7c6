-- HTTP with libcurl against the loopback server: responses, refusals, and messages.
local ahtest = require "ahtest"
local server = require "support.server"

local KIB, MIB = 1024, 1024 * 1024

-- Returns bytes in which a lost or doubled block is noticed.
local function pattern(n)
  local parts = {}
  for i = 1, n // 8 + 1 do
    parts[i] = ("%07d\n"):format(i)
  end
  return table.concat(parts):sub(1, n)
end

local function serve(...)
  return server.start { responses = { ... } }
end

local function get(s, fields)
  local opts = { url = s.url .. "/x" }
  for k, v in pairs(fields or {}) do
    opts[k] = v
  end
  return assert(ahtest.http(opts))
end

local function host_of(s)
  return "127.0.0.1:" .. s.port
end

local function get_error(s, fields)
  local r = get(s, fields)
  return assert.is_table(r.error) and r.error, r
end

local function finish(client, transfers)
  for _, t in ipairs(transfers) do
    while not t:ended() do
      client:wait(5000)
    end
  end
end

local function start(client, s, fields)
  local opts = { url = s.url .. "/x" }
  for k, v in pairs(fields or {}) do
    opts[k] = v
  end
  return assert(client:start(opts))
end

local function status_of(url, fields)
  local opts = { url = url }
  for k, v in pairs(fields or {}) do
    opts[k] = v
  end
  local r, err = ahtest.http(opts)
  assert.is_nil(r)
  return err.status, err.message
end

describe("an HTTP response", function()
  it("arrives with a length, in chunks, and until the server closes", function()
    local body = pattern(100000)
    for _, framing in ipairs { "length", "chunked", "close" } do
      local s <close> = serve { framing = framing, body = body, headers = { ["X-Kind"] = framing } }
      local r = get(s)
      assert.is_nil(r.error)
      assert.equal(200, r.status)
      assert.equal(framing, r.header["x-kind"])
      assert.is_true(r.body == body, framing)
    end
  end)

  it("arrives whole in pieces of any size", function()
    local body = pattern(999)
    for _, piece in ipairs { 1, 7, 500 } do
      local s <close> = serve { framing = "chunked", body = body, piece = piece }
      assert.equal(body, get(s).body)
    end
  end)

  it("may have no body", function()
    local s <close> = serve({ status = 204 }, { body = "" }, { body = "not for HEAD" })
    assert.same({ 204, "" }, { get(s).status, get(s).body })
    get(s)
    local head = get(s, { method = "HEAD" })
    assert.same({ 200, "" }, { head.status, head.body })
  end)

  it("keeps headers in order, trims values, ignores case, and takes the last of two", function()
    local s <close> = serve { raw = true,
      body = "HTTP/1.1 200 OK\r\nX-A:  one \r\nx-a:\ttwo\r\nX-Empty:\r\n"
        .. "Content-Length: 2\r\n\r\nok" }
    local r = get(s)
    assert.same({ { "X-A", "one" }, { "x-a", "two" }, { "X-Empty", "" },
      { "Content-Length", "2" } }, r.headers)
    assert.equal("two", r.header["x-a"])
    assert.equal("ok", r.body)
  end)

  it("has the headers of the last head where interim ones came before", function()
    local s <close> = serve { raw = true, body = "HTTP/1.1 100 Continue\r\nX-Old: 1\r\n\r\n"
      .. "HTTP/1.1 103 Early Hints\r\nX-Old: 2\r\n\r\n"
      .. "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok" }
    local r = get(s)
    assert.equal(201, r.status)
    assert.same({ { "Content-Length", "2" } }, r.headers)
  end)

  it("keeps trailers of a chunked body out of the headers", function()
    local s <close> = serve { raw = true,
      body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        .. "2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n" }
    local r = get(s)
    assert.is_nil(r.error)
    assert.is_nil(r.header["x-trailer"])
    assert.equal("ok", r.body)
  end)

  it("is handed on whatever its status is", function()
    for _, status in ipairs { 200, 400, 404, 429, 500, 529 } do
      local s <close> = serve { status = status, body = "text" }
      local r = get(s)
      assert.same({ status, "text" }, { r.status, r.body })
      assert.is_nil(r.error)
    end
  end)

  it("that redirects is a status, not followed", function()
    local s <close> = serve({ status = 302, headers = { Location = "/elsewhere" }, body = "moved" },
      { body = "elsewhere" })
    local r = get(s)
    assert.same({ 302, "moved", "/elsewhere" }, { r.status, r.body, r.header.location })
    assert.equal(1, #s:requests())
  end)

  it("sets no cookie", function()
    local s <close> = serve { headers = { ["Set-Cookie"] = "a=b" }, body = "ok" }
    local client <close> = ahtest.http_client()
    for _ = 1, 2 do
      finish(client, { start(client, s) })
    end
    assert.is_nil(s:requests()[2].headers.cookie)
  end)

  it("can be looked at while it arrives", function()
    local s <close> = serve { framing = "chunked", body = pattern(400), piece = 100, gap = 20 }
    local client <close> = ahtest.http_client()
    local t = start(client, s)
    local parts, status = {}, nil
    while not t:ended() do
      client:wait(5000)
      if t:pending() > 0 then
        status = status or t:status()
        parts[#parts + 1] = t:take()
      end
    end
    assert.equal(200, status)
    assert.is_true(#parts >= 4)
    assert.equal(pattern(400), table.concat(parts))
  end)

  it("can be taken in parts of any size while it arrives", function()
    local body = pattern(200000)
    local s <close> = serve { body = body, piece = 7000 }
    local client <close> = ahtest.http_client()
    local t, parts = start(client, s), {}
    while not t:ended() or t:pending() > 0 do
      if not t:ended() then
        client:wait(5000)
      end
      parts[#parts + 1] = t:take(math.min(t:pending(), 1 + #parts * 997 % 6000))
    end
    assert.is_true(table.concat(parts) == body)
  end)

  it("is told of at least once for what came, and not again for nothing", function()
    local s <close> = serve { body = "small" }
    local client <close> = ahtest.http_client()
    local t = start(client, s)
    assert.equal(0, t:result().news)
    finish(client, { t })
    local news = t:result().news
    assert.is_true(news >= 1 and news <= 3)
    client:wait(0)
    assert.equal(news, t:result().news)
  end)
end)

describe("an HTTP request", function()
  it("sends method, path, headers and body as given", function()
    local s <close> = serve { body = "ok" }
    get(s, { method = "POST", body = "abc",
      headers = { "X-One: 1", "X-Empty:", "Content-Type: text/plain" } })
    local r = s:requests()[1]
    assert.same({ "POST", "/x", "abc" }, { r.method, r.path, r.body })
    assert.equal("1", r.headers["x-one"])
    assert.equal("", r.headers["x-empty"])
    assert.equal("text/plain", r.headers["content-type"])
    assert.equal("3", r.headers["content-length"])
    assert.matches("^agenthost/%d", r.headers["user-agent"])
  end)

  it("adds no content type, no wish to be asked first, and asks for no compression", function()
    local s <close> = serve { body = "ok" }
    get(s, { body = pattern(2 * MIB) })
    get(s, { method = "POST" })
    for _, r in ipairs(s:requests()) do
      assert.is_nil(r.headers["content-type"])
      assert.is_nil(r.headers.expect)
      assert.is_nil(r.headers["accept-encoding"])
    end
  end)

  it("goes out with any method, with and without a body", function()
    local s <close> = serve { body = "ok" }
    local client <close> = ahtest.http_client()
    local asked = { { "GET" }, { "DELETE" }, { "PUT", "b" }, { "POST", "" }, { "PATCH", "bb" },
      { "GET" } }
    for _, a in ipairs(asked) do
      local t = start(client, s, { method = a[1], body = a[2] })
      finish(client, { t })
      assert.is_nil(t:result().error)
      t:free()
    end
    for i, r in ipairs(s:requests()) do
      assert.same({ asked[i][1], asked[i][2] or "" }, { r.method, r.body })
    end
  end)

  it("sends a body of several slices intact, whatever their sizes", function()
    local s <close> = serve { body = "ok" }
    local a, b, c = pattern(70000), "", pattern(300001)
    get(s, { body = { a, b, c, "end" } })
    get(s, { body = { "x", pattern(100), "", "y" } })
    get(s, { body = { pattern(64 * KIB - 1), "z" } })
    get(s, { body = { pattern(64 * KIB), "z" } })
    local sent = s:requests()
    assert.is_true(sent[1].body == a .. c .. "end")
    assert.is_true(sent[2].body == "x" .. pattern(100) .. "y")
    assert.is_true(sent[3].body == pattern(64 * KIB - 1) .. "z")
    assert.is_true(sent[4].body == pattern(64 * KIB) .. "z")
  end)

  it("uses a connection again", function()
    local s <close> = serve { body = "ok" }
    local client <close> = ahtest.http_client()
    for _ = 1, 5 do
      local t = start(client, s, { body = "b" })
      finish(client, { t })
      t:free()
    end
    local sent = s:requests()
    assert.equal(5, #sent)
    for _, r in ipairs(sent) do
      assert.equal(sent[1].conn, r.conn)
    end
  end)

  it("begins anew, body included, when the kept connection turns out to be dead", function()
    local s <close> = serve({ body = "one", hangup = true }, { body = "two" })
    local client <close> = ahtest.http_client()
    for _, want in ipairs { "one", "two" } do
      local t = start(client, s, { body = { pattern(100000), pattern(50000) } })
      finish(client, { t })
      assert.is_nil(t:result().error)
      assert.equal(want, t:result().body)
    end
    assert.is_true(s:requests()[2].body == pattern(100000) .. pattern(50000))
  end)

  it("runs beside a hundred others", function()
    local s <close> = serve { framing = "chunked", body = pattern(5000), piece = 1000, delay = 20,
      gap = 5 }
    local client <close> = ahtest.http_client()
    local transfers = {}
    for i = 1, 100 do
      transfers[i] = start(client, s, { body = tostring(i) })
    end
    finish(client, transfers)
    for _, t in ipairs(transfers) do
      local r = t:result()
      assert.is_nil(r.error)
      assert.is_true(r.body == pattern(5000))
    end
    local seen = {}
    for _, r in ipairs(s:requests()) do
      seen[r.body] = true
    end
    for i = 1, 100 do
      assert.is_true(seen[tostring(i)])
    end
  end)

  it("can be given up at any time, without harm to the next one", function()
    local s <close> = serve({ body = pattern(1000), stall = 500 }, { body = "next" })
    local client = ahtest.http_client()
    local early = start(client, s)
    early:free()
    local t = start(client, s)
    while t:pending() < 500 do
      client:wait(5000)
    end
    t:free()
    local other = start(client, s)
    finish(client, { other })
    assert.equal("next", other:result().body)
    assert.equal(0, client:close())
  end)

  it("with a header that breaks the line, or is none, is refused without its value", function()
    for _, header in ipairs { "X: secret\nY: 1", "X: secret\r\n", "X: secret\0", "no colon secret",
      ": secret", "X Y: secret", "", "Content-Length: 5", "transfer-encoding: chunked" } do
      local status, message = status_of("http://127.0.0.1:1/", { headers = { header } })
      assert.equal("usage", status)
      assert.is_nil(message:find("secret", 1, true))
    end
  end)

  it("with a URL that is none is refused, and no credentials or query are shown", function()
    for _, url in ipairs { "", "x", "//host/", "ftp://host/", "file:///etc/passwd", "http://",
      "http://a b/", "http://host:99999/", "http://host/\r\nX: 1", "http://user:secret@host/",
      "https://secret@host/", "gopher://host/?secret", "htt://host/?key=secret" } do
      local status, message = status_of(url)
      assert.equal("usage", status)
      assert.is_nil(message:find("secret", 1, true))
      assert.is_nil(message:find("%c"))
    end
    assert.equal("usage", (status_of("http://127.0.0.1:1/", { method = "G T" })))
  end)
end)

describe("an HTTP failure", function()
  it("of a refused connection names host and port and may be tried again", function()
    local s = serve { body = "ok" }
    s:close()
    local e = get_error(s)
    assert.same({ "http", true, 0 }, { e.status, e.retryable, e.http_status })
    assert.equal("connection refused by " .. host_of(s), e.message)
  end)

  it("of an unknown host names it", function()
    -- The resolver refuses a label of 64 bytes without a request to a server.
    local host = ("x"):rep(64) .. ".invalid"
    local e = assert(ahtest.http { url = "http://" .. host .. "/" }).error
    assert.same({ "http", "no such host: " .. host .. ":80" }, { e.status, e.message })
  end)

  it("of a body that ends early says so and keeps what came", function()
    local s <close> = serve { body = pattern(1000), cut = 400 }
    local e, r = get_error(s)
    assert.same({ "http", true, 200 }, { e.status, e.retryable, e.http_status })
    assert.equal("connection closed in the middle of the response by " .. host_of(s), e.message)
    assert.equal(pattern(400), r.body)
  end)

  it("of chunks that end early says so", function()
    local s <close> = serve { framing = "chunked", body = pattern(1000), cut = 400 }
    assert.matches("^connection closed in the middle of the response", get_error(s).message)
  end)

  it("of a reset says so", function()
    local s <close> = serve { body = pattern(1000), reset = 400 }
    local e = get_error(s)
    assert.same({ "http", true }, { e.status, e.retryable })
    assert.equal("connection reset by " .. host_of(s), e.message)
  end)

  it("of a connection closed without a word says so", function()
    local s <close> = serve { drop = true }
    local e = get_error(s)
    assert.same({ "http", true, 0 }, { e.status, e.retryable, e.http_status })
    assert.matches("closed by 127.0.0.1:%d+ without a response", e.message)
  end)

  it("of an answer that is not HTTP says so", function()
    local s <close> = serve { raw = true, body = "220 mail.example ESMTP\r\n" }
    local e = get_error(s)
    assert.same({ "http", false }, { e.status, e.retryable })
    assert.matches("does not answer in HTTP$", e.message)
  end)

  it("of a malformed chunk says so", function()
    local s <close> = serve { raw = true,
      body = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n" }
    assert.matches("^malformed chunk", get_error(s).message)
  end)

  it("of a refused connection mentions the proxy that the environment sets", function()
    local s = serve { body = "ok" }
    s:close()
    ahtest.setenv("http_proxy", s.url)
    local r = assert(ahtest.http { url = "http://proxied.invalid/" })
    ahtest.setenv("http_proxy", nil)
    assert.matches("a proxy is set in the environment", r.error.message)
  end)

  it("of a compressed response says that it was not asked for", function()
    for _, header in ipairs { "Content-Encoding: gzip", "content-encoding: br",
      "Content-Encoding: identity, gzip", "Transfer-Encoding: gzip, chunked" } do
      local s <close> = serve { raw = true,
        body = "HTTP/1.1 200 OK\r\n" .. header .. "\r\n\r\nabc" }
      local e, r = get_error(s)
      assert.same({ "http", false }, { e.status, e.retryable })
      assert.matches("compressed", e.message)
      assert.equal("", r.body)
    end
    local s <close> = serve { headers = { ["Content-Encoding"] = "identity" }, body = "abc" }
    assert.equal("abc", get(s).body)
  end)
end)

describe("an HTTP limit", function()
  it("on idle time ends a transfer that stalls, before and within the body", function()
    for _, response in ipairs { { stall = true }, { body = pattern(100), stall = 50 } } do
      local s <close> = serve(response)
      local e = get_error(s, { limits = { idle_ms = 60 } })
      assert.same({ "http", true }, { e.status, e.retryable })
      assert.equal(host_of(s) .. ": no data for 60 ms (limit http.idle_timeout)", e.message)
    end
  end)

  it("on idle time is counted anew with each piece", function()
    local s <close> = serve { framing = "chunked", body = pattern(80), piece = 10, gap = 40 }
    assert.is_nil(get(s, { limits = { idle_ms = 200 } }).error)
  end)

  it("on total time ends a transfer that drips", function()
    local s <close> = serve { framing = "chunked", body = "x", endless = true, piece = 1, gap = 10 }
    local e = get_error(s, { limits = { total_ms = 100, idle_ms = 5000 } })
    assert.same({ "http", true, 200 }, { e.status, e.retryable, e.http_status })
    assert.equal(host_of(s) .. ": not done within 100 ms (limit http.total_timeout)", e.message)
  end)

  it("on connecting ends a TLS handshake nobody answers", function()
    local s <close> = serve { stall = true }
    ahtest.setenv("CURL_CA_BUNDLE", "spec/data/ca.pem") -- for systems without certificates
    finally(function()
      ahtest.setenv("CURL_CA_BUNDLE", nil)
    end)
    local e = assert(ahtest.http { url = "https://127.0.0.1:" .. s.port .. "/",
      limits = { connect_ms = 80, idle_ms = 20 } }).error
    assert.same({ "http", true }, { e.status, e.retryable })
    assert.equal(host_of(s) .. ": no connection within 80 ms (limit http.connect_timeout)",
      e.message)
  end)

  it("on the body is exact, and not retryable", function()
    for _, framing in ipairs { "length", "chunked", "close" } do
      local s <close> = serve { framing = framing, body = pattern(64 * KIB) }
      assert.is_nil(get(s, { limits = { body_bytes = 64 * KIB } }).error)
      local e = get_error(s, { limits = { body_bytes = 64 * KIB - 1 } })
      assert.same({ "http", false, 200 }, { e.status, e.retryable, e.http_status })
      assert.equal(host_of(s) .. ": response body larger than 65535 bytes (limit http.max_body)",
        e.message)
    end
  end)

  it("on the body counts what its owner has taken", function()
    local s <close> = serve { framing = "chunked", body = pattern(8 * KIB), endless = true }
    local client <close> = ahtest.http_client()
    local t, taken = start(client, s, { limits = { body_bytes = MIB } }), 0
    while not t:ended() do
      client:wait(5000)
      taken = taken + #t:take()
    end
    assert.is_true(taken > MIB // 2 and taken <= MIB)
    assert.equal(host_of(s) .. ": response body larger than 1 MiB (limit http.max_body)",
      t:result().error.message)
  end)

  it("on the head covers all lines, and one long line is not being out of memory", function()
    local many = {}
    for i = 1, 300 do
      many[i] = ("X-Line-%d: %s"):format(i, ("v"):rep(100))
    end
    for _, response in ipairs { { headers = many }, { big_header = 20 * KIB },
      { big_header = 600 * KIB } } do
      local s <close> = serve(response)
      local e, r = get_error(s, { limits = { header_bytes = 16 * KIB } })
      assert.same({ "http", false }, { e.status, e.retryable })
      assert.equal(host_of(s) .. ": response header larger than 16 KiB (limit http.max_header)",
        e.message)
      assert.same({}, r.headers)
    end
    local s <close> = serve { headers = many }
    assert.is_nil(get(s).error)
  end)

  it("of libcurl on one header line is told as such", function()
    local s <close> = serve { big_header = 200 * KIB }
    local e = get_error(s, { limits = { header_bytes = MIB } })
    assert.same({ "http", false }, { e.status, e.retryable })
    assert.matches("response header line larger than 100 KiB %(limit of libcurl%)$", e.message)
  end)
end)

describe("HTTP without memory", function()
  local function attempt(s, opts)
    local ok, client = pcall(ahtest.http_client, opts)
    if not ok or not client then
      return "internal", 0
    end
    local t, err = client:start { url = s.url .. "/x", headers = { "X: y" }, body = { "a", "b" } }
    local status = err and err.status
    if t then
      finish(client, { t })
      local r = t:result()
      status = r.error and r.error.status or r.body == pattern(50000) and "ok" or "lost"
    end
    return status, client:close()
  end

  -- One failed allocation may have no effect (a body is then sent in parts), so a success does not
  -- end the loop.
  for _, mode in ipairs { "fail_at", "fail_from" } do
    it("fails cleanly wherever it runs out (" .. mode .. ")", function()
      local s <close> = serve { framing = "chunked", body = pattern(50000) }
      local seen = {}
      for n = 1, 30 do
        local status, live = attempt(s, { [mode] = n })
        seen[status] = (seen[status] or 0) + 1
        assert.equal(0, live)
      end
      assert.same({ 30, true }, { (seen.ok or 0) + (seen.internal or 0), seen.internal >= 10 })
      assert.equal("ok", (attempt(s, { [mode] = 31 })))
    end)
  end
end)

it("HTTP knows the version of its library", function()
  assert.matches("^%d+%.%d+", ahtest.http_version())
end)
