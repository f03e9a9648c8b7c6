--- Bodies instead of a provider's error: pages of proxies and gateways, plain text, JSON of another
-- kind. err.message, the log and events have one short line of them.
local ah = require "agenthost"
local ahtest = require "ahtest"
local random = require "support.random"
local server = require "support.server"

local KEY = "sk-canary-1234567890"

local function read(status, body, type, provider)
  return assert(ahtest.wire_read {
    provider = provider or "openai", model = "m", base_url = "http://x", status = status, key = KEY,
    headers = { ["content-type"] = type or "text/html" }, body = body,
  }.error)
end

local function said(status, body, type)
  return (read(status, body, type).message:gsub("^openai: HTTP %d+: ", ""))
end

local NGINX = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 "
  .. "Bad "
  .. "Gateway</h1></center>\r\n<hr><center>nginx/1.22.1</center>\r\n</body>\r\n</html>\r\n"

local CLOUDFLARE = [[<!DOCTYPE html>
<!--[if lt IE 7]> <html class="no-js ie6 oldie" lang="en-US"> <![endif]-->
<head><title>api.example.com | 504: Gateway time-out</title>
<meta charset="UTF-8" /><style>body{margin:0;padding:0}</style>
<script>window.x = "<p>not read</p>";</script></head>
<body><div id="cf-wrapper"><h1>Gateway time-out</h1><p>The web server reported a &quot;gateway&quot;
time-out &amp; more.</p></div>]] .. ("<p>and so on and on</p>"):rep(500) .. "</body></html>"

describe("a page in place of an error", function()
  it("is its title and what is read of it first", function()
    assert.equal("a web page: 502 Bad Gateway nginx/1.22.1", said(502, NGINX))
    assert.equal("a web page: 502 Bad Gateway nginx/1.22.1", said(502, NGINX, "application/json"))
    local words = said(504, CLOUDFLARE)
    assert.truthy(words:find("^a web page: api.example.com | 504: Gateway time%-out: Gateway "
      .. "time%-out The "
      .. 'web server reported a "gateway" time%-out & more. and so'), words)
    assert.is_true(#words <= 220)
    assert.falsy(words:find("[<>{}]"))
  end)

  it("is one wherever it stands: behind blanks, a mark of order, words, and in JSON", function()
    local page = "<html><body>Denied</body></html>"
    for _, body in ipairs { "\n\t " .. page, "\xef\xbb\xbf" .. page, "<!-- x -->" .. page,
      "<?xml version='1.0'?>" .. page, "<!DOCTYPE html>" .. page, page:upper():gsub("DENIED",
        "Denied"),
      server.encode { error = { message = page } }, server.encode { error = page },
      server.encode { detail = page } } do
      assert.equal("a web page: Denied", said(403, body))
    end
    assert.equal("a web page: upstream said: Denied", said(502, "upstream said: " .. page))
    assert.equal("a web page without text", said(502, "<html><body></body></html>"))
  end)

  it("is told with what it calls itself where it came as an answer, and not asked for again",
    function()
    for _, body in ipairs { "<html><title>Sign in</title>", "\n <!doctype html><p>Sign in" } do
      for _, provider in ipairs { "openai", "anthropic", "gemini", "ollama" } do
        local e = read(200, body, "text/html", provider)
        assert.truthy(e.message:find("the answer is a web page, no JSON; check base_url", 1, true))
        assert.truthy(e.message:find("Sign in", 1, true))
        assert.is_false(e.retryable)
      end
    end
  end)

  it("shows no key, however it is spelt there, and nothing that a terminal acts on", function()
    local spelt = KEY:gsub(".", function(c) return ("&#%d;"):format(c:byte()) end)
    local tagged = KEY:sub(1, 5) .. "<wbr>" .. KEY:sub(6)
    for _, body in ipairs { KEY, spelt, "a" .. KEY .. "b", ("x"):rep(192) .. KEY } do
      for _, around in ipairs { "<html><title>%s</title>", "<html><p>%s", "%s",
        '{"error":{"message":"%s"}}' } do
        local words = said(500, (around:format(body)))
        assert.falsy(words:find("canary", 1, true), words)
      end
    end
    assert.truthy(said(500, "<html>" .. tagged))
    for _, body in ipairs { "<html>a\27[31mred\27[0m\27]0;title\7b&#27;[2J&#7;\u{9b}1m\u{202e}x\0y",
      "a\27[31mred\27]0;title\7b\u{9b}\u{202e}x\0y\r\nz" } do
      local words = said(500, body)
      assert.falsy(words:find "[%c\127]", words)
      assert.falsy(words:find "\u{202e}", words)
      assert.falsy(words:find "\u{9b}", words)
      assert.falsy(words:find("[31m", 1, true), words)
    end
  end)

  it("is one bounded line of valid text whatever the bytes are", function()
    local pick = random(20)
    local pieces = { "<html>", "<", ">", "<title>", "</title>", "<script>", "</script", "<!--",
      "-->", "&#",
      "&#x41;", "&amp;", "&", ";", "\"", "'", "\27[", "\27]", "\xff", "\xc3", "\u{202e}", "é", " ",
        "\n", "\0",
      "word", KEY, KEY:sub(1, 12), "{\"error\":", "}", "/" }
    for _ = 1, 400 do
      local list = {}
      for i = 1, pick(60) do
        list[i] = pieces[pick(#pieces)]
      end
      local body = table.concat(list)
      local words = read(500, body).message
      assert.is_true(#words <= 700, body)
      assert.truthy(utf8.len(words), body)
      assert.falsy(words:find "[%c\127]", body)
      assert.falsy(words:find(KEY, 1, true), body)
    end
  end)

  it("is no answer that speaks of HTML, whole or streamed", function()
    local words = "<html><title>x</title> &amp; </html>"
    local function choice(of)
      return server.encode { choices = server.array { { index = 0, [of] = { content = words },
        finish_reason = "stop" } } }
    end
    for body, type in pairs { [" \n" .. choice "message"] = "application/json",
      [choice "message"] = "text/html",
      ["data: " .. choice "delta" .. "\n\n"] = "text/event-stream" } do
      local r = ahtest.wire_read { provider = "openai", model = "m", base_url = "http://x",
        status = 200, headers = { ["content-type"] = type }, body = body }
      assert.equal(words, r.text, r.error and r.error.message)
    end
    local said_so = said(400, server.encode { error = { message = "a < b && c > d &amp;" } })
    assert.equal("a < b && c > d &amp;", said_so)
  end)

  it("is what an error of another form says, however deep that stands", function()
    for _, doc in ipairs { { detail = "Why" },
      { message = { detail = server.array { { msg = "Why" } } } },
      { detail = server.array { { loc = server.array { "body" }, msg = "Why" } } },
      { errors = server.array { { message = "Why" } } }, { title = "Why", status = 500 },
      { error = { error = { message = "Why" } } }, { error = "x", error_description = "Why" } } do
      assert.truthy(({ Why = true, x = true })[said(500, server.encode(doc))], server.encode(doc))
    end
    assert.is_true(#said(500, '{"a":[' .. ("1,"):rep(20000) .. "1]}") <= 400)
  end)

  it("is one line in whatever place it is told", function()
    local function check(e)
      assert.falsy(e.message:find "[%c\127]", e.message)
      assert.falsy(e.message:find "\u{202e}", e.message)
    end
    local bad = "\27[31mtc\u{202e}"
    check(read(200, server.encode { choices = server.array { { message = { content = "x" },
      finish_reason = "tool_calls", native_finish_reason = bad } } }, "application/json"))
    check(read(200, "upstream " .. bad, "text/plain"))
    check(read(200, "data: " .. bad .. "\n\n", "text/event-stream"))
    check(read(400, server.encode { error = { message = bad, code = bad } }))
    local e = assert(ahtest.wire_read { provider = "litellm_proxy", model = "m",
      base_url = "http://x",
      status = 400, headers = { ["x-litellm-call-id"] = "a" .. bad }, body = "{}" }.error)
    check(e)
    assert.truthy(e.message:find("litellm call a", 1, true))
  end)

  it("costs time linear in it", function()
    local began = ah.now()
    for _, piece in ipairs { "<", "<p ", "<script>", "<title>", "&#", "<!--", "\27[", "<a b='" } do
      read(500, "<html>" .. piece:rep(60000 // #piece))
      read(500, server.encode { error = { message = "<html>" .. piece:rep(200000 // #piece) } })
    end
    assert.is_true(ah.now() - began < 20)
  end)

  it("stands whole in no log and no event", function()
    local s <close> = server.start { responses = { { status = 502, body = CLOUDFLARE,
      headers = { ["Content-Type"] = "text/html" } } } }
    local told = {}
    local _, err = ah.run { model = "openai/gpt-4o", base_url = s.url, api_key = KEY, retries = 1,
      timeout = 30, "Hi", on = function(e)
        told[#told + 1] = ah.json.encode { message = e.message or "", type = e.type }
      end }
    told[#told + 1] = tostring(err)
    for _, line in ipairs(told) do
      assert.falsy(line:find("<", 1, true), line)
      assert.is_true(#line < 500, line)
    end
  end)
end)
