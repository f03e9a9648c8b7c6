-- http_fetch and the addresses of ah.http (docs/reference/builtin_files.md): fetched and refused
-- requests with their messages; and that no spelling, name or redirect leads to an address that is
-- not public.
local ah = require "agenthost"
local ahtest = require "ahtest"
local server = require "support.server"

-- Returns the result of one call that the model gets, and true if it is a success.
local function told(options, args)
  local reply = assert(ah.run { log = function() end, tools = ah.builtin { http_fetch = options },
    model = ah.scripted { { calls = { { name = "http_fetch", arguments = args } } }, "done" },
    "go" })
  return reply.messages[3].content, reply.messages[3].success ~= false
end

local function near(fields)
  local options = { allow = { "127.0.0.1:*", "127.0.0.2:*" }, private = { "127.0.0.1" } }
  for name, value in pairs(fields or {}) do
    options[name] = value
  end
  return options
end

local function serve(...)
  return server.start { responses = { ... } }
end

local function page(type, body, fields)
  local response = { headers = { ["Content-Type"] = type }, body = body }
  for name, value in pairs(fields or {}) do
    response[name] = value
  end
  return response
end

-- Returns the text of one response.
local function text_of(response, args, options)
  local s <close> = serve(response)
  args = args or {}
  args.url = s.url .. "/x"
  local text, ok = told(near(options), args)
  return (text:gsub(":" .. s.port, "")), ok
end

describe("addresses", function()
  local function judged(list, public)
    for _, address in ipairs(list) do
      assert.equal(public, ahtest.address_is_public(address), address)
    end
  end

  it("are public where the internet reaches one host by them", function()
    judged({ "8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
      "192.167.255.255", "169.253.0.1", "198.17.0.1", "198.20.0.1", "223.255.255.255",
      "168.63.129.15",
      "168.63.129.17", "2606:4700::1111", "2a00:1450:4001::1", "2001:200::1", "2003::1" }, true)
  end)

  it("are not where they are private, reserved, or wrap another one", function()
    judged({ "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1",
      "127.255.255.254", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1",
      "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
      "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1", "255.255.255.255", "192.31.196.1",
      "192.52.193.1", "192.175.48.1", "168.63.129.16", "161.26.0.10", "166.9.1.1" }, false)
    judged({ "::", "::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::8.8.8.8",
      "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
      "2002:7f00:1::", "3fff::1",
      "3ffe::1", "2620:4f:8000::1", "5f00::1", "fc00::1", "fd12::1", "fe80::1", "fec0::1",
      "ff02::1" }, false)
  end)
end)

describe("ah.http with addresses", function()
  it("connects to no other one, however it is spelled", function()
    local s <close> = serve { body = "secret" }
    for _, host in ipairs { "127.0.0.1", "localhost", "0x7f.1", "2130706433", "017700000001",
      "127.1", "0.0.0.0", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
      "%31%32%37.0.0.1", "LOCALHOST.", "foo.localhost" } do
      local url = ("http://%s:%d/"):format(host, s.port)
      local response, err = ah.http { url = url, addresses = { "public" }, timeout = 5 }
      assert.is_nil(response, host)
      local unknown = err.message:find("no such host", 1, true) or err.code == "usage"
      if not unknown then
        assert.is_false(err.retryable)
        assert.matches("may not be connected to: it is not a public one", err.message)
      end
    end
    assert.same({}, s:requests())
  end)

  it("connects to networks that are named", function()
    local s <close> = serve { body = "hello" }
    for _, network in ipairs { "127.0.0.1", "127.0.0.0/8", "0.0.0.0/0", "126.0.0.0/7" } do
      assert.equal("hello", assert(ah.http { url = s.url, addresses = { network } }).body)
    end
    for _, network in ipairs { "127.0.0.2", "127.0.0.0/32", "10.0.0.0/8", "::1", "public" } do
      assert.is_nil(ah.http { url = s.url, addresses = { network } }, network)
    end
    for _, wrong in ipairs { "127.0.0.0/33", "::/129", "127.0.0.1/", "localhost", "", "1.2.3",
      "/8" } do
      assert.is_false(pcall(ah.http, { url = s.url, addresses = { wrong } }), wrong)
    end
  end)

  it("does not use a connection that another request has opened, nor leave one", function()
    local s <close> = serve { body = "x" }
    assert(ah.http { url = s.url })
    assert.is_nil(ah.http { url = s.url, addresses = { "public" } })
    assert(ah.http { url = s.url, addresses = { "127.0.0.1" } })
    assert(ah.http { url = s.url })
    local conns = {}
    for i, r in ipairs(s:requests()) do
      conns[i] = r.conn
    end
    assert.equal(3, #conns)
    assert.equal(conns[1], conns[3])
    assert.are_not.equal(conns[1], conns[2])
  end)

  it("goes through no proxy of the environment", function()
    local s <close> = serve { body = "x" }
    local script = ("print(select(2, ah.http { url = 'http://192.168.1.1/', "
      .. "addresses = { 'public' }, timeout = 5 }))")
    local build = os.getenv "AGENTHOST_BUILD" or "./build"
    local pipe <close> = assert(io.popen(("http_proxy=%s %s/agenthost -e %q 2>&1"):format(
      s.url, build, script)))
    assert.matches("192.168.1.1:80: the address 192.168.1.1 may not be connected to", pipe:read "a")
    assert.same({}, s:requests())
  end)
end)

describe("http_fetch", function()
  it("gives text as it is, with what it is", function()
    assert.equal("http://127.0.0.1/x: text/plain, 6 bytes\n\nhello\n",
      (text_of(page("text/plain; charset=utf-8", "hello\n"))))
    assert.equal("http://127.0.0.1/x: application/json, 7 bytes\n\n{\"a\":1}",
      (text_of(page("application/json", '{"a":1}'))))
    assert.matches("no type, 2 bytes\n\nhi$", (text_of { body = "hi" }))
  end)

  it("reduces HTML to what a reader sees, unless it is asked not to", function()
    local body = [[<html><head><title>T &amp; U</title><style>p { color: red }</style></head>
      <body><script>if (a < b) { x("</p>") }</script><h2>One</h2><p>a <b>b</b>&#8364;&nbsp;c
      <a href="http://h/p?a=1&amp;b=2" title="x > y">link</a></p><!-- <p>no</p> -->
      <ul><li>x<li>y</ul></body></html>]]
    local text = text_of(page("text/html", body))
    assert.matches("text/html, %d+ bytes, reduced to its text %(raw = true gives it as it is%)\n\n"
      .. "T & U\n\n## One\n\na b\u{20ac} c link %(http://h/p%?a=1&b=2%)\n\n%- x\n%- y$", text)
    assert.truthy(text_of(page("text/html", body), { raw = true }):find(body, 1, true))
    body = "<p> a<pre> if x:\n   y <b>z</b>\n\n  w</pre> <p> b"
    assert.truthy(text_of(page("text/html", body)):find("a\n if x:\n   y z\n\n  w\n\nb", 1, true))
  end)

  it("takes no long time over a hostile page", function()
    local pages = { ("<script>"):rep(20000), ("<!--"):rep(20000), ("<a href='"):rep(20000),
      ("&a"):rep(50000), ("<"):rep(100000), ("<a "):rep(30000) }
    local began = os.clock()
    for _, body in ipairs(pages) do
      assert.is_true(select(2, text_of(page("text/html", body))))
    end
    assert.is_true(os.clock() - began < 5)
  end)

  it("reads other charsets, and refuses those it does not know", function()
    local function last(...)
      return (text_of(...)):match("\n\n(.*)$")
    end
    assert.equal("\u{e9}\u{20ac}", last(page("text/plain; charset=ISO-8859-1", "\xe9\x80")))
    assert.equal("\u{e9}", last(page("text/plain", "\xe9")))
    assert.equal("a\u{fffd}b", last(page("text/plain; charset=utf-8", "a\xe9b")))
    assert.equal("\u{e9}", last(page("text/html", '<meta charset="latin1">\xe9')))
    local text, ok = text_of(page("text/plain; charset=Shift_JIS", "x"))
    assert.is_false(ok)
    assert.matches("its charset is shift_jis, which cannot be read", text)
  end)

  it("refuses what is binary, with its type and size", function()
    local text, ok = text_of(page("image/png", "\x89PNG\0"))
    assert.is_false(ok)
    assert.equal("http://127.0.0.1/x is image/png of 5 bytes; only text can be fetched", text)
    assert.matches("is text/plain of 2 bytes", (text_of(page("text/plain", "a\0"))))
  end)

  it("answers with the status and the words of an error", function()
    local text, ok = text_of(page("text/plain", "no such page", { status = 404 }))
    assert.is_false(ok)
    assert.equal("http://127.0.0.1/x answered with status 404\n\nno such page", text)
  end)

  it("gives long texts in parts, whole characters each", function()
    local body, got, offset = ("\u{20ac}123"):rep(50), "", 0
    repeat
      local text = text_of(page("text/plain", body), { offset = offset }, { shown = 100 })
      got = got .. text:match("\n\n([^\n]*)")
      offset = math.tointeger(text:match("go on with offset = (%d+)%]$"))
    until not offset
    assert.equal(body, got)
    local text, ok = text_of(page("text/plain", "abc"), { offset = 3 })
    assert.is_false(ok)
    assert.equal("offset 3 is behind the end: the text has 3 bytes", text)
  end)

  it("ends what is too long or too slow while it comes", function()
    local text, ok = text_of({ endless = true, framing = "chunked", body = ("x"):rep(1000) }, nil,
      { max_bytes = 10240 })
    assert.is_false(ok)
    assert.matches("response body larger than 10 KiB", text)
    text, ok = text_of({ stall = true }, nil, { timeout = 0.2 })
    assert.is_false(ok)
    assert.matches("not done within", text)
  end)

  it("follows redirects, five at most, relative ones too", function()
    local s <close> = server.start { routes = {
      ["/a"] = { { status = 302, headers = { Location = "b" } } },
      ["/b"] = { page("text/plain", "here") },
      ["/loop"] = { { status = 301, headers = { Location = "/loop" } } },
    } }
    assert.equal(s.url .. "/b: text/plain, 4 bytes\n\nhere",
      (told(near(), { url = s.url .. "/a" })))
    local text, ok = told(near(), { url = s.url .. "/loop" })
    assert.is_false(ok)
    assert.equal("more than 5 redirects, the last one from " .. s.url .. "/loop", text)
    assert.equal(2 + 6, #s:requests())
  end)

  it("follows no redirect to an address or host that is not allowed", function()
    local s <close> = server.start { routes = { ["/secret"] = { page("text/plain", "secret") } } }
    for location, words in pairs {
      ["http://127.0.0.2:" .. s.port .. "/secret"] = "the address 127.0.0.2 may not be",
      ["http://localhost:" .. s.port .. "/secret"] = "localhost port %d+ may not be fetched",
      ["//localhost/secret"] = "localhost port 80 may not be fetched",
      ["file:///etc/passwd"] = "no URL that can be requested",
      ["http://u:p@127.0.0.1/"] = "holds a user name",
    } do
      local from <close> = serve { status = 302, headers = { Location = location } }
      local text, ok = told(near(), { url = from.url })
      assert.is_false(ok)
      assert.matches("^redirected: .*" .. words, text)
    end
    assert.same({}, s:requests())
  end)

  it("asks only hosts that are allowed, at the usual ports unless one is named", function()
    local function refused(allow, url)
      local text, ok = told({ allow = allow, timeout = 1 }, { url = url })
      return not ok and text:match("(.-) may not be fetched; allowed: ") ~= nil
    end
    assert.is_true(refused({ "a.invalid" }, "http://b.invalid/"))
    assert.is_true(refused({ "a.invalid" }, "http://a.invalid:8080/"))
    assert.is_true(refused({ "a.invalid" }, "http://a.invalid.b.invalid/"))
    assert.is_true(refused({ "a.invalid" }, "http://xa.invalid/"))
    assert.is_true(refused({ "*.a.invalid" }, "http://a.invalid/"))
    assert.is_true(refused({ "*.a.invalid" }, "http://xa.invalid/"))
    assert.is_true(refused({ "a.invalid" }, "http://b.invalid#@a.invalid/"))
    assert.is_true(refused({ "a.invalid" }, "http://b.invalid?@a.invalid/"))
    assert.is_true(refused("public", "http://a.invalid:22/"))
    assert.is_false(refused({ "a.invalid" }, "https://A.invalid./"))
    assert.is_false(refused({ "*.a.invalid" }, "http://b.c.a.invalid/"))
    assert.is_false(refused({ "a.invalid:8080" }, "http://a.invalid:8080/"))
    assert.is_false(refused("public", "http://a.invalid/"))
  end)

  it("sends no cookie, no credentials, and a POST only where that is allowed", function()
    local s <close> = serve({ status = 303, headers = { Location = "/x", ["Set-Cookie"] = "a=b" } },
      page("text/plain", "done"))
    local text, ok = told(near(), { url = s.url, method = "POST" })
    assert.is_false(ok)
    assert.matches("method", text)
    assert.matches("done$", (told(near { post = true },
      { url = s.url, method = "POST", body = "{}" })))
    local first, second = s:requests()[1], s:requests()[2]
    assert.same({ "POST", "{}", "application/json" },
      { first.method, first.body, first.headers["content-type"] })
    assert.same({ "GET", "" }, { second.method, second.body })
    assert.is_nil(second.headers.cookie)
    assert.is_nil(second.headers.authorization)
  end)

  it("must be told which hosts", function()
    for _, options in ipairs { {}, { allow = {} }, { allow = "all" }, { allow = { "http://a/" } },
      { allow = { "a*b" } }, { allow = { "*b" } }, { allow = "public", private = "x" },
      { allow = "public", private = { "localhost" } }, { allow = "public", timeout = 0 } } do
      local ok, err = pcall(function()
        local tools = ah.builtin { http_fetch = options }
        return tools
      end)
      assert.is_false(ok)
      assert.matches("http_fetch_spec.lua:%d+: ah.builtin: http_fetch", tostring(err))
    end
  end)
end)
