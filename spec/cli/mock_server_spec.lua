-- agenthost mock as a server: many clients at once, clients that are slow, gone or too large, a
-- lack of descriptors, signals at work, and turns that no server could send. The clients are
-- spec/support/crowd.c. AGENTHOST_MOCK_CROWD=1 runs the full size: 50 streams of 1 MiB and 256 slow
-- connections of each kind.
local ah = require "agenthost"
local command = require "support.command"
local markdown = require "support.markdown"
local mock = require "support.mock"
local patiently = require "support.patiently"
local program = mock.program()
local server = require "support.server"

local it = mock.is_built() and it or pending
local has, has_not = command.has, command.has_not
local CROWD = (os.getenv("AGENTHOST_BUILD") or "./build") .. "/crowd"
local FULL = os.getenv "AGENTHOST_MOCK_CROWD"
local ASAN = os.getenv "AGENTHOST_ASAN"
local SLOW = ASAN and 8 or 1
local BODY = '{"model":"m","stream":true,"messages":[{"role":"user","content":"%s"}]}'
local PATH = "/v1/chat/completions"

after_each(command.tidy)

-- -- the clients and the server, measured ------------------------------------------------------

local function request(text, path, body, headers)
  body = body or BODY:format(text or "Hi")
  return command.temp(("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s"
    .. "Content-Length: %d\r\n\r\n%s"):format(path or PATH, headers or "", #body, body))
end

local function crowd(m, how, ...)
  local words = { command.quote(CROWD), how, m.url:match("%d+$"), ... }
  return assert(io.popen("LD_PRELOAD= " .. table.concat(words, " ")))
end

-- Sends requests of n clients, the first of which are reset. Returns the ms until all had their
-- first bytes, and the number of complete answers.
local function ask(m, n, resets, file)
  local pipe <close> = crowd(m, "ask", n, resets, file)
  local first, well = pipe:read("l"):match("^(%d+) (%d+) ")
  return tonumber(first), tonumber(well)
end

-- Starts n clients that send and read a byte each `every` ms for `seconds`; closing the pipe waits
-- for their end.
local function hold(m, n, file, every, seconds)
  local pipe = crowd(m, "hold", n, file, every, seconds)
  assert.equal("held", pipe:read("l"))
  return pipe
end

local function peak(m)
  return tonumber(command.contents("/proc/" .. m.pid .. "/status"):match("VmHWM:%s+(%d+)")) / 1024
end

local function cpu(m)
  local user, system = command.contents("/proc/" .. m.pid .. "/stat")
    :match("%) %S" .. (" %S+"):rep(10) .. " (%d+) (%d+)")
  return (user + system) / 100
end

-- Waits until the server is idle: its processor time no longer grows.
local function rest(m)
  local before
  for _ = 1, 300 do
    before = cpu(m)
    ah.sleep(0.2)
    if cpu(m) == before then
      return before
    end
  end
  error "the server does not come to rest"
end

local function says(m, text, path)
  local r, err = m:ask(path or PATH, { model = "m", messages = { { role = "user",
    content = text } } })
  return r and r:json().choices[1].message.content or err
end

-- Starts the mock in this process with a script, as the command does.
local function begin(script)
  return pcall(program.start, command.temp(script), "all", "strict", "")
end

local BIG = [[local text = ("x"):rep(%d)
  return { rules = { { when = { user = "quick" }, text = "here" }, { text = text } } }]]

local WIRES = {
  openai = { PATH },
  responses = { "/v1/responses", '{"model":"m","stream":true,"input":"Hi"}' },
  anthropic = { "/v1/messages", '{"model":"m","max_tokens":9,"stream":true,'
    .. '"messages":[{"role":"user","content":"Hi"}]}', "anthropic-version: 2023-06-01\r\n" },
  gemini = { "/v1beta/models/m:streamGenerateContent?alt=sse",
    '{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}' },
  ollama = { "/api/chat", BODY:format "Hi" },
}

-- For each format, a function that asserts that `doc` is a failure with this status and message.
local FAILURES = {}

function FAILURES.openai(doc, status, words)
  assert.same({ message = words, param = server.null, code = server.null,
    type = status < 500 and "invalid_request_error" or "server_error" }, doc.error)
end

FAILURES.responses = FAILURES.openai

function FAILURES.anthropic(doc, status, words, head)
  local kinds = { [413] = "request_too_large" }
  assert.same({ "error", words, kinds[status] or status < 500 and "invalid_request_error"
    or "api_error" }, { doc.type, doc.error.message, doc.error.type })
  has(head, "request-id: " .. doc.request_id)
end

function FAILURES.gemini(doc, status, words)
  assert.same({ status, words, "string" },
    { doc.error.code, doc.error.message, type(doc.error.status) })
end

function FAILURES.ollama(doc, _, words)
  assert.same({ error = words }, doc)
end

-- -- streams -------------------------------------------------------------------------------------

describe("the streams of agenthost mock", function()
  for name, wire in pairs(WIRES) do
    it("begin at once for all who ask in " .. name .. ", and take little memory", function()
      local n, resets, size = 12, 3, 1 << 15
      if FULL then
        n, resets, size = 50, 10, 1 << 20
      end
      local m <close> = mock.start(BIG:format(size))
      local first, well = ask(m, n, resets, request(nil, table.unpack(wire)))
      assert.equal(n - resets, well)
      if not ASAN then -- ASan keeps freed memory
        assert.is_true(peak(m) < 100, peak(m) .. " MiB")
      end
      if FULL then
        print(("%s: first bytes of %d in %d ms, %.0f MiB"):format(name, n, first, peak(m)))
      end
      assert.is_true(first < 1000 * SLOW, first .. " ms") -- 50 ms on a quiet machine
    end)
  end

  it("cost the same memory whatever their length", function()
    local m <close> = mock.start [[local text = ("x"):rep(1 << 18)
      return { rules = { { when = { user = "short" }, text = text:sub(1, 1 << 12) },
        { when = { user = "cut" }, text = text, close = "mid-stream" },
        { when = { user = "mixed" }, text = text:sub(1, 1 << 17), garbage = "?" },
        { text = text } } }]]
    assert.same({ 1 }, { select(2, ask(m, 1, 0, request "short")) })
    local before = peak(m)
    assert.same({ 0 }, { select(2, ask(m, 1, 0, request "cut")) })
    assert.same({ 1 }, { select(2, ask(m, 1, 0, request "mixed")) })
    assert.same({ 1 }, { select(2, ask(m, 1, 0, request "long")) })
    if not ASAN then
      assert.is_true(peak(m) - before < 10, peak(m) - before .. " MiB more")
    end
  end)

  it("are not made for clients that are gone, nor for those that do not read", function()
    local m <close> = mock.start(BIG:format(1 << 24))
    ask(m, 10, 10, request())
    rest(m)
    local slow = hold(m, 10, request(), 1, 1)
    ah.sleep(0.3)
    local spent = rest(m)
    assert.is_true(spent < 4 * SLOW, spent .. " s") -- one alone has 20 s of work
    if not ASAN then
      assert.is_true(peak(m) < 100, peak(m) .. " MiB")
    end
    slow:close()
  end)

  it("are not kept by the system for those that do not read", function()
    patiently(function(times)
      local m <close> = mock.start(BIG:format(1 << 23))
      local slow = hold(m, 3, request(), 1, 2 * times)
      local seen, most = ":" .. ("%04X"):format(m.url:match "%d+$") .. " %x+:%x+ 01 (%x+):", 0
      for _ = 1, 16 * times do
        ah.sleep(0.1)
        for unsent in command.contents("/proc/net/tcp"):gmatch(seen) do
          most = math.max(most, tonumber(unsent, 16))
        end
      end
      slow:close()
      assert.is_true(most > 0 and most < 1 << 19, most .. " bytes")
    end)
  end)

  it("keep nobody waiting", function()
    local m <close> = mock.start(BIG:format(1 << 24))
    local slow = crowd(m, "ask", 5, 0, request())
    ah.sleep(0.2)
    local before = cpu(m)
    for _ = 1, 10 do
      assert.equal("here", says(m, "quick"))
    end
    local spent = cpu(m) - before
    assert.is_true(spent < 5 * SLOW, spent .. " s")
    m:close()
    slow:close()
  end)

  it("may begin late: a function of the script may wait, and has its own strings then", function()
    local m <close> = mock.start [[local ah, n = require "agenthost", 0
      local methods = { shout = function(s) return ah.null and s .. "!" end }
      setmetatable(methods, { __index = string })
      getmetatable("").__index = methods
      return function(request)
        local is_late = ah.json.encode(request.entries):find "late"
        while is_late and n == 0 do
          ah.sleep(0.02)
        end
        n = n + 1
        return ("answer " .. n):shout()
      end]]
    local late = crowd(m, "say", request("late", PATH, nil, "Connection: close\r\n"))
    ah.sleep(0.2)
    assert.equal("answer 1!", says(m, "quick"))
    has(late:read "a", '"content":"answer 2!"')
    late:close()
    assert.equal("", m:errors())
  end)

  it("break off where they cannot be said on, with a word", function()
    local m <close> = mock.start [[return function()
      return { text = { "One ", "two\xff" } } end]]
    assert.same({ 0 }, { select(2, ask(m, 1, 0, request())) })
    has(m:errors(), "warning: 1: the stream broke off, ")
  end)
end)

-- -- connections ---------------------------------------------------------------------------------

local ENDLESS = "POST " .. PATH .. " HTTP/1.1\r\nHost: x\r\nX-Long: " .. ("a"):rep(4000)

-- Connections that keep the server waiting, and their ms for each byte.
local KINDS = {
  ["say nothing"] = { ENDLESS, 60000 },
  ["never end a head"] = { ENDLESS, 10 },
  ["never end a body"] = { ("POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n%s")
    :format(PATH, ("x"):rep(1000)), 5 },
  ["do not read"] = { nil, 2 },
}

describe("the connections of agenthost mock", function()
  for kind, how in pairs(KINDS) do
    local tried = (FULL or how[2] >= 10) and it or function() end

    tried("keep nobody out for long that " .. kind, function()
      local m <close> = mock.start(BIG:format(1 << 24))
      local file = how[1] and command.temp(how[1]) or request()
      local slow = hold(m, 256, file, how[2], FULL and 20 or 2)
      ah.sleep(FULL and 2 or 0.1)
      for _ = 1, 3 do
        local start = ah.now()
        assert.equal("here", says(m, "quick"))
        assert.is_true(ah.now() - start < 60, ah.now() - start .. " s")
      end
      m:close()
      slow:close()
    end)
  end

  it("wait for the script's own delay, however many there are", function()
    local m <close> = mock.start [[return { rules = { { text = "late", delay = 0.5 } } }]]
    assert.same({ 300 }, { select(2, ask(m, 300, 0, request())) })
    assert.equal("", m:errors())
  end)

  local in_full = FULL and it or function() end

  in_full("are let go when their head does not come in time", function()
    local m <close> = mock.start 'return { "a" }'
    local pipe = hold(m, 5, command.temp(ENDLESS), 100, 30)
    local start = ah.now()
    assert.equal("5", pipe:read("l"))
    assert.is_true(ah.now() - start < 20)
    pipe:close()
  end)

  it("cost no time where there are no descriptors, and others get in", function()
    local m <close> = mock.start_after("ulimit -n 24;", BIG:format(1 << 20))
    local slow = hold(m, 60, command.temp(ENDLESS), 60000, 2)
    local before = cpu(m)
    ah.sleep(1)
    assert.is_true(cpu(m) - before < 0.3 * SLOW, cpu(m) - before .. " s")
    assert.equal("here", says(m, "quick"))
    slow:close()
  end)

  it("are told at once that a body is too large, in chunks, too", function()
    local m <close> = mock.start 'return { "a" }'
    local pipe <close> = crowd(m, "flood", command.temp("POST " .. PATH
      .. " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"))
    local sent, line = pipe:read("l"):match("^(%d+) (.*)$")
    assert.equal("HTTP/1.1 413 Content Too Large", line)
    assert.is_true(tonumber(sent) < 96 << 20, sent)
    assert.equal("a", says(m, "quick"))
  end)

  -- Returns the beginning of a request; the head alone suffices to refuse 64 MiB and more.
  local function half(path, headers, length)
    return command.temp(("POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n{")
      :format(path, headers or "", length))
  end

  it("are refused in the words of the protocol that they speak", function()
    local m <close> = mock.start 'return { "a" }'
    for name, wire in pairs(WIRES) do
      for _, before in ipairs { "", "/api/v1", "/proxy" } do
        local pipe <close> = crowd(m, "say", half(before .. wire[1], wire[3], 1 << 27))
        local head, body = pipe:read("a"):match("^(HTTP/1.1 413 .-)\r\n\r\n(.*)$")
        has(head, "Content-Length: " .. #body)
        FAILURES[name](server.decode(body), 413, "the request is larger than 64 MiB", head)
      end
    end
    has(m:errors(), ": 413, the request is larger than 64 MiB")
    assert.equal("the request is larger than 64 MiB", m:log()[1].fault)
    assert.equal("a", says(m, "quick"))
  end)

  it("are told so when they are let go for the next one", function()
    local m <close> = mock.start_after("ulimit -n 24;", 'return { "a" }')
    local file = half("/v1/messages", nil, 9)
    local pipe <close> = crowd(m, "say", file)
    ah.sleep(0.2)
    local others = crowd(m, "ask", 40, 0, file)
    local head, body = pipe:read("a"):match("^(HTTP/1.1 408 .-)\r\n\r\n(.*)$")
    FAILURES.anthropic(server.decode(body), 408, "the request did not come in time", head)
    m:close()
    others:close()
  end)

  it("are refused so with every status that the server has of its own", function()
    assert.is_true(begin 'return { "a" }')
    local statuses = {}
    local source = markdown.read "src/io/http_server.c"
    for status in source:gmatch "{(%d%d%d), \"the re" do
      statuses[tonumber(status)] = true
    end
    for _, status in ipairs { 400, 408, 413, 431, 503 } do
      assert.is_true(statuses[status], status)
    end
    for status in pairs(statuses) do
      for name, wire in pairs(WIRES) do
        local a = program.refuse({ status = status, message = "It is so." },
          mock.request("POST", wire[1]))
        assert.equal(status, a.status)
        local headers = {}
        for key, values in pairs(a.headers) do
          headers[#headers + 1] = key .. ": " .. table.concat(values, ",")
        end
        FAILURES[name](server.decode(a.body), status, "It is so.", table.concat(headers, "\r\n"))
      end
    end
  end)

  it("may say anything", function()
    local m <close> = mock.start 'return function() return { text = { "a", "b" } } end'
    for name, wire in pairs(WIRES) do
      local n, seed = FULL and 20000 or 60, os.time() % 100000
      local pipe <close> = crowd(m, "garble", n, request(nil, table.unpack(wire)), seed)
      assert.is_true(tonumber(pipe:read("l")) > n // 10, ("%s, seed %d"):format(name, seed))
    end
    assert.equal("ab", says(m, "quick"))
  end)

  it("are told that a head is too large", function()
    local m <close> = mock.start 'return { "a" }'
    assert.equal(200, m:ask("/v1/models", nil, { ["X-Long"] = ("x"):rep(32000) }).status)
    assert.equal(431, m:ask(PATH, BODY, { ["X-Long"] = ("x"):rep(33000) }).status)
    local r = m:ask("/v1/messages", BODY, { ["X-Long"] = ("x"):rep(33000) })
    assert.same({ 431, "error" }, { r.status, r:json().type })
    assert.equal(431, m:ask(PATH .. "?" .. ("x"):rep(33000), BODY).status)
    assert.equal("a", says(m, "quick"))
  end)
end)

-- -- the end -------------------------------------------------------------------------------------

describe("a signal to agenthost mock", function()
  local AT_WORK = {
    ["the middle of a stream"] = "return function() return { text = ('x'):rep(1 << 24) } end",
    ["a stream that is counted"] = [[return function()
      return { text = ('x'):rep(1 << 24), cut = true } end]],
    ["a script's function"] = "return function() while true do end end",
    ["a wait"] = "return function() return { text = 'x', delay = 60 } end",
  }
  for work, script in pairs(AT_WORK) do
    for signal, code in pairs { TERM = 143, INT = 130 } do
      it(("(%s) ends it in %s, without a word of ours"):format(signal, work), function()
        local m <close> = mock.start(script)
        local pipe = crowd(m, "ask", 3, 0, request())
        ah.sleep(0.3)
        os.execute(("kill -%s %s"):format(signal, m.pid))
        assert.equal(code, m:wait())
        pipe:close()
        local errors = m:errors():gsub("[^\n]*worked for over 100 ms[^\n]*\n", "") -- as it did
        has_not(errors, "warning")
        has_not(errors, "agenthost/command")
      end)
    end
  end
end)

-- -- invalid turns -------------------------------------------------------------------------------

-- Values of the wrong kind for each kind of field, as Lua text.
local WRONG = {
  text = { "7", "{}", "true", "'\\xff'" },
  texts = { "7", "{ 7 }", "{ a = 'b' }", "'\\xff'", "{ 'a', '\\xff' }" },
  bytes = { "7", "{}" },
  flag = { "1", "'yes'" },
  word = { "'somewhere'", "1", "''" },
  headers = { "'a'", "{ 'a' }", "{ ['a b'] = 'c' }", "{ a = 'b\\r\\nc: d' }", "{ a = {} }",
    "{ [''] = 'x' }", "{ ['Content-Length'] = 5 }", "{ connection = 'close' }",
    "{ a = ('x'):rep(20000) }" },
  usage = { "7", "{ input = -1 }", "{ input = 1.5 }", "{ words = 1 }", "{ input = 0/0 }" },
  calls = { "'a'", "{ 'a' }", "{ {} }", "{ { name = 1 } }", "{ { name = 'a', arguments = 7 } }",
    "{ { name = 'a', id = 7 } }", "{ { nmae = 'a' } }" },
  fail = { "'a'", "{ status = 99 }", "{ status = 'x' }", "{ retry_after = -1 }", "{ statsu = 1 }",
    "{ in_stream = 1 }", "{ message = 1 }", "{ window = 0 }", "{ used = 1.5 }", "{ used = 'x' }" },
  any = {},
}

local function wrong_numbers(row)
  local list = { "0/0", "1/0", "-1/0", "'a'", "{}", "true", ("%d"):format(row.least - 1),
    ("%d"):format(row.most + 1), "-1", "1e300" }
  for _, n in ipairs(row.kind == "integer" and { "0", "99", "100", "101", "199", "600", "1000",
    "4291", "429.5", "1 << 62" } or {}) do
    list[#list + 1] = n
  end
  return list
end

-- Returns { name of a field, the text of a turn } for each wrong value.
local function wrong_turns()
  local list = {}
  for _, row in ipairs(dofile "lua/agenthost/command/mock/fields.lua") do
    for _, value in ipairs(WRONG[row.kind] or wrong_numbers(row)) do
      list[#list + 1] = { row.name, ("{ %s = %s }"):format(row.name, value) }
    end
  end
  return list
end

describe("a turn that no server can say", function()
  it("is refused with the script, by its field", function()
    for _, form in ipairs { "return { 'a', %s }", "return { rules = { %s } }",
      "local ah = require 'agenthost' return ah.scripted { 'a', %s }" } do
      for _, wrong in ipairs(wrong_turns()) do
        local ok, err = begin(form:format(wrong[2]))
        local text = ok and "it was taken" or err.message or err
        assert.is_false(ok, wrong[2])
        if not form:find "ah.scripted" then -- its messages for some fields are its own
          has(text, wrong[1])
        end
        has_not(text, "agenthost/command")
      end
    end
  end)

  it("is refused when a function gives it, with its reason as the answer", function()
    for _, wrong in ipairs(wrong_turns()) do
      assert.is_true(begin("return function() return " .. wrong[2] .. " end"))
      local a = mock.answer(program, "POST", PATH, nil, BODY:format "Hi")
      if not wrong[2]:find "xff" or a.status ~= 200 then
        assert.equal(400, a.status, wrong[2])
      end
    end
  end)

  it("is told by the command, which lists the fields that there are", function()
    local r = command.agenthost("mock", command.temp "return { { status = 4291 } }")
    assert.equal(1, r.code)
    assert.equal("", r.out)
    has(r.err, "usage: ")
    has(r.err, "turn 1: status must be an integer from 200 to 599, found 4291")
    r = command.agenthost("mock", command.temp '[{"text": "a", "satus": 429}]')
    has(r.err, "unknown field 'satus' in turn 1 (did you mean 'status'?)")
    for _, row in ipairs(dofile "lua/agenthost/command/mock/fields.lua") do
      has(r.err, row.name)
    end
  end)

  it("is none where it only looks odd", function()
    for _, turn in ipairs { "{ status = 200 }", "{ status = 599.0 }", "{ retry_after = 0.5 }",
      "{ delay = 0 }", "{ headers = { ['X-Number'] = 7, ['x-empty'] = '' } }", "{ text = {} }",
      "{ text = '' }", "{ calls = {} }", "{ garbage = '\\xff\\0' }", "{ raw = '' }", "{}" } do
      local ok, err = begin("return { " .. turn .. " }")
      assert.is_true(ok, ok or err.message)
      local a = mock.answer(program, "POST", PATH, nil, BODY:format "Hi")
      assert.is_true(a.status == 599 or a.status ~= 400 or turn:find "retry" ~= nil, turn)
    end
  end)

  it("has its headers, whatever their number", function()
    local m <close> = mock.start [[local headers = { ["Content-Type"] = "text/odd" }
      for i = 1, 60 do headers["X-" .. i] = ("v"):rep(200) .. i end
      return { { text = "a", headers = headers } }]]
    local r = m:ask(PATH, BODY:format "Hi")
    assert.equal("text/odd", r.headers["content-type"])
    for i = 1, 60 do
      assert.equal(("v"):rep(200) .. i, r.headers["x-" .. i])
    end
  end)
end)
