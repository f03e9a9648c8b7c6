-- HTTP exchanges in a file: agenthost --record and --replay.
local ah = require "agenthost"
local command = require "support.command"
local markdown = require "support.markdown"
local server = require "support.server"

local KEY = "sk-canary-1234567890"

local SCRIPT = [[
local ah = require "agenthost"
local add = ah.tool { name = "add", description = "Adds.",
  params = { a = "integer", b = "integer" },
  handler = function(args) return args.a + args.b end }
local question = arg and arg[1] or "2+3?"
print(assert(ah.run { model = "openai/test", tools = { add }, retries = 1, question }))
]]

local function answer(message, finish)
  return server.json(
    { choices = { { index = 0, message = message, finish_reason = finish } } },
    { headers = { ["Set-Cookie"] = "session=" .. KEY, ["X-Echo"] = "it was " .. KEY } }
  )
end

local function model()
  return server.start {
    responses = {
      answer({
        role = "assistant",
        tool_calls = {
          {
            id = "c1",
            type = "function",
            ["function"] = { name = "add", arguments = '{"a":2,"b":3}' },
          },
        },
      }, "tool_calls"),
      answer({ role = "assistant", content = "It is 5. Your key: " .. KEY }, "stop"),
    },
  }
end

local function agenthost(s, words, env)
  local script = command.temp(SCRIPT)
  return command.shell(
    ('%s OPENAI_BASE_URL=%s "$A" %s </dev/null'):format(
      env or "",
      s and s.url or "http://127.0.0.1:1",
      words:gsub("SCRIPT", script)
    )
  )
end

-- Records a session; returns the file, and the address it was recorded from.
local function record()
  local s <close> = model()
  local file = command.temp()
  local r = agenthost(s, ("--record %s SCRIPT"):format(file), "OPENAI_API_KEY=" .. KEY)
  assert.equal(0, r.code, r.err)
  return file, s.url, r.out
end

local function replay(file, url, words, script)
  script = script or command.temp(SCRIPT)
  return command.shell(
    ('unset OPENAI_API_KEY; OPENAI_BASE_URL=%s "$A" --replay %s %s %s </dev/null'):format(
      url,
      file,
      script,
      words or ""
    )
  )
end

local function lines(path)
  local list = {}
  for line in io.lines(path) do
    list[#list + 1] = line
  end
  return list
end

local function write(path, list)
  local f <close> = assert(io.open(path, "w"))
  f:write(table.concat(list, "\n"), "\n")
end

local function has(text, part)
  assert.truthy(text:find(part, 1, true), ("no %q in:\n%s"):format(part, text))
end

describe("a recording", function()
  after_each(command.tidy)

  it("holds each exchange as a line, and no secret", function()
    local file, url, out = record()
    local list = lines(file)

    assert.equal(2, #list)
    assert.equal("It is 5. Your key: [secret]\n", out)
    for _, line in ipairs(list) do
      local e = ah.json.decode(line)
      assert.equal("POST", e.request.method)
      assert.equal(url .. "/chat/completions", e.request.url)
      assert.equal("test", e.request.json.model)
      assert.equal(200, e.response.status)
      assert.is_nil(e.error)
      assert.falsy(line:find(KEY, 1, true))
    end
    has(list[1], '"Authorization: [secret]"')
    has(list[1], '"X-Echo: it was [secret]"')
    has(list[1], '"Set-Cookie: [secret]"')
    has(list[2], "Your key: [secret]")
  end)

  it("holds no secret that an answer spells with escapes", function()
    local file = command.temp()
    local body = '{"error":{"message":"no key sk-canary\\/12\\u00334567, sorry"}}'
    local s <close> = server.start { responses = { { status = 401, body = body } } }
    local r = agenthost(s, ("--record %s SCRIPT"):format(file), "OPENAI_API_KEY=sk-canary/1234567")

    assert.equal(3, r.code)
    assert.falsy((r.out .. r.err):find("canary", 1, true))
    assert.equal('{"error":{"message":"no key [secret], sorry"}}',
      ah.json.decode(lines(file)[1]).response.body)
  end)

  it("is for its owner's eyes, and begun anew", function()
    local file = record()
    local stat <close> = assert(io.popen("stat -c %a " .. file))

    -- os.tmpname made the file, with the mode of mkstemp; ours have the same mode
    assert.equal("600", stat:read "l")
    local s <close> = model()
    agenthost(s, ("--record %s SCRIPT"):format(file), "OPENAI_API_KEY=" .. KEY)
    assert.equal(2, #lines(file))
  end)

  it("that cannot be written fails the request before it is sent", function()
    local s <close> = model()
    local below = command.temp "a file, no folder" .. "/f.jsonl"
    local r = agenthost(s, ("--record %s SCRIPT"):format(below), "OPENAI_API_KEY=" .. KEY)

    assert.equal(1, r.code)
    has(r.err, ("cannot record to '%s': Not a directory"):format(below))
    assert.equal(0, #s:requests())
  end)

  it("keeps failures: no connection, and bytes that are no text", function()
    local file = command.temp()
    local r = agenthost(nil, ("--record %s SCRIPT"):format(file), "OPENAI_API_KEY=" .. KEY)

    assert.equal(3, r.code)
    local list = lines(file)
    assert.equal(2, #list) -- the request and its one retry
    assert.equal("connection refused by 127.0.0.1:1", ah.json.decode(list[1]).error)
    assert.is_nil(ah.json.decode(list[1]).response)

    local s <close> = server.start { responses = { { status = 500, body = '\xff\0"\\ä' } } }
    agenthost(s, ("--record %s SCRIPT"):format(file), "OPENAI_API_KEY=" .. KEY)
    assert.equal('ÿ\0"\\Ã¤', ah.json.decode(lines(file)[1]).response.latin1)
  end)
end)

describe("a key that a stream brings in pieces", function()
  local PIECES = 300 -- number of random streams

  -- Events in which servers send a piece of text, "@". OTHERS are events that can come in between.
  local FORMS = {
    '{"id":"c","choices":[{"index":0,"delta":{"content":"@"}}]}',
    '{"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"@"}}]},"index":0}]}',
    '{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"@"}}',
    '{"delta":{"partial_json":"@","type":"input_json_delta"},"index":0}',
    '{"type":"response.output_text.delta","output_index":1,"delta":"@"}',
    '{"candidates":[{"content":{"parts":[{"text":"@"}]}}]}',
    '{"message":{"role":"assistant","content":"@"},"done":false}',
    '{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"@"}]}}]}',
  }
  local OTHERS = {
    '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"@"}}]}}]}',
    '{"type":"ping"}',
    '{"type":"content_block_delta","index":3,"delta":{"type":"thinking_delta","thinking":"@"}}',
  }
  local FRAMES = { "data: %s\n\n", "event: e\r\ndata: %s\r\n\r\n", "%s\n", "%s,\n", "%s" }

  local function put(form, text)
    return (form:gsub("@", (text:gsub("%%", "%%%%"))))
  end

  -- Cuts the key at random; some characters become escapes.
  local function cut(key)
    local list, at = {}, 1
    while at <= #key do
      local n = math.random(1, 6)
      list[#list + 1] = key:sub(at, at + n - 1):gsub(".", function(c)
        return math.random(9) == 1 and ("\\u%04x"):format(c:byte()) or nil
      end)
      at = at + n
    end
    return list
  end

  local function stream(key)
    local form, frame = FORMS[math.random(#FORMS)], FRAMES[math.random(#FRAMES)]
    local events = { put(form, "my key: ") }
    for _, text in ipairs(cut(key)) do
      events[#events + 1] = put(form, text)
      if math.random(3) == 1 then
        events[#events + 1] = put(OTHERS[math.random(#OTHERS)], "x" .. math.random(99))
      end
    end
    events[#events + 1] = put(form, " that was it")
    for i, text in ipairs(events) do
      events[i] = frame:format(text)
    end
    local body = table.concat(events)
    return frame == "%s,\n" and "[" .. body:sub(1, -3) .. "]" or body, form
  end

  -- Returns the joined pieces of the events of this form.
  local function said(body, form)
    local before, after = form:match '^(.-)@(.*)$'
    local text = {}
    local at = 1
    while true do
      local _, from = body:find(before, at, true)
      local to = from and body:find(after, from + 1, true)
      if not to then
        return table.concat(text)
      end
      text[#text + 1], at = body:sub(from + 1, to - 1), to + #after
    end
  end

  it("is in no recording, put together again", function()
    for seed = 1, tonumber(os.getenv "AGENTHOST_STREAMS" or PIECES) do
      math.randomseed(seed)
      local body, form = stream(KEY)
      local clean = said(require "ahtest".record_clean(body, KEY), form)
      assert.equal("my key: [secret] that was it", clean, "seed " .. seed)
    end
  end)

  it("is taken out alone: all else stays as it was", function()
    local ahtest = require "ahtest"
    for seed = 1, 50 do
      math.randomseed(seed)
      local body = stream(("another-key"):rep(3))
      assert.equal(body, ahtest.record_clean(body, KEY), "seed " .. seed)
    end
    local odd = { "", '"', '{"a":"' .. KEY:sub(1, 9), ("["):rep(1000), '"\\', "\n\n\n", '"a":"b"',
      ("{"):rep(100) .. '"' .. KEY:sub(1, 9) .. '"' .. ("}"):rep(200) }
    for _, body in ipairs(odd) do
      assert.equal(body, ahtest.record_clean(body, KEY))
    end
  end)

  it("is not printed by a replay", function()
    local events = {}
    for c in KEY:gmatch "." do
      events[#events + 1] = 'data: ' .. put(FORMS[1], c) .. '\n\n'
    end
    events[#events + 1] = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    local s <close> = server.start { responses = { { headers = { ["Content-Type"] =
      "text/event-stream" }, body = table.concat(events) } } }
    local file, out = command.temp(), {}
    for i, flag in ipairs { "--record", "--replay" } do
      local env = i == 1 and "OPENAI_API_KEY=" .. KEY or ""
      out[i] = agenthost(s, ("--jsonl %s %s SCRIPT"):format(flag, file), env).out
      assert.truthy(out[i]:find('"text":"[secret]"', 1, true), out[i])
    end
  end)
end)

describe("docs/reference/recording.md", function()
  after_each(command.tidy)

  it("has the fields that a line has", function()
    local page = markdown.section(markdown.read "docs/reference/recording.md", "## The file")
    local told = {}
    for _, row in ipairs(markdown.tables(page)[1]) do
      for _, name in ipairs(markdown.names(row[1])) do
        told[name] = true
      end
    end

    local file = record()
    local s <close> = server.start { responses = { { status = 500, body = "\xff" } } }
    local other = command.temp()
    agenthost(s, ("--record %s SCRIPT"):format(other), "OPENAI_API_KEY=" .. KEY)
    local found = { error = true, reason = true, final = true } -- other specs show these
    for _, path in ipairs { file, other } do
      for part, fields in pairs(ah.json.decode(lines(path)[1])) do
        for name in pairs(fields) do
          found[part .. "." .. name] = true
        end
      end
    end
    assert.same(found, told)
  end)
end)

describe("a replay", function()
  after_each(command.tidy)

  it("gives the same answer without network and key, also twice", function()
    local file, url = record()

    for _ = 1, 2 do
      local r = replay(file, url)
      assert.equal(0, r.code, r.err)
      assert.equal("It is 5. Your key: [secret]\n", r.out)
      assert.equal("", r.err)
    end
  end)

  it("plays failures, and the retry after them", function()
    local file, url = record()
    local list = lines(file)
    local failed = list[1]:gsub('"response":.*', '"error":"connection reset"}')

    write(file, { failed, list[1], list[2] })
    assert.equal("It is 5. Your key: [secret]\n", replay(file, url).out)
  end)

  it("takes a head as a server may send it, and no more", function()
    local file, url = record()
    local list = lines(file)
    local function with(line, headers)
      local before, behind = line:match '^(.-"response":{"status":200,"headers":)%[.-%](,"body".*)$'
      return before .. headers .. behind
    end

    local odd = '["X-Odd: a\\u0000b","no colon","","' .. ("x"):rep(2000) .. ': y"]'
    write(file, { list[1], with(list[2], odd) })
    local r = replay(file, url)
    assert.same({ "It is 5. Your key: [secret]\n", "" }, { r.out, r.err })

    write(file, { with(list[1], '["Content-Encoding: gzip"]') })
    has(replay(file, url).err, "the response is compressed")
  end)

  it("shows where a request parts from the recorded one", function()
    local file, url = record()
    local r = replay(file, url, "4+4?")

    assert.equal(3, r.code)
    has(
      r.err,
      "replay: the request differs from '"
        .. file
        .. "' line 1 at /messages/0/content: "
        .. 'recorded "2+3?", now "4+4?"'
    )
    local changed = command.temp((SCRIPT:gsub("Adds%.", "Adds two.")))
    has(
      replay(file, url, "", changed).err,
      'at /tools/0/function/description: recorded "Adds.", now "Adds two."'
    )
    changed = command.temp((SCRIPT:gsub("tools = { add }, ", "")))
    has(replay(file, url, "", changed).err, "at /tools: recorded [{")
    has(replay(file, url, "", changed).err, ", now nothing")
  end)

  it("takes a request whose bytes differ and whose meaning does not", function()
    local file, url = record()
    local list = lines(file)

    list[1] = list[1]:gsub('"json":{', '"json": { ', 1)
    write(file, list)
    assert.equal(0, replay(file, url).code)
  end)

  it("tells of another address, of one request more and of those left", function()
    local file, url = record()
    local list = lines(file)

    has(
      replay(file, "http://127.0.0.1:2").err,
      "replay: POST http://127.0.0.1:2/chat/completions is not what was recorded; '"
        .. file
        .. "' line 1 has POST "
        .. url
        .. "/chat/completions"
    )
    write(file, { list[1] })
    has(
      replay(file, url).err,
      "replay: all 1 exchanges of '" .. file .. "' were used, and one more is requested: "
        .. "POST " .. url
    )
    write(file, { list[1], list[2], list[2], list[2] })
    local r = replay(file, url)
    assert.equal(0, r.code)
    has(
      r.err,
      "replay: 2 recorded exchanges of '" .. file .. "' were not used, the first in line 3"
    )
  end)

  it("refuses what is no recording, with the line", function()
    local file, url = record()
    local good = lines(file)[1]
    local cases = {
      { "{", "line 2 is no recorded exchange: unexpected end" },
      { "[]", "it has no request with method and url" },
      { '{"request":{"method":"POST"}}', "it has no request with method and url" },
      { '{"request":{"method":"POST","url":"x"}}', "it has no response and no error" },
      {
        '{"request":{"method":"POST","url":"x"},"response":{"status":20,"headers":[],"body":""}}',
        "its response has no status, headers and body",
      },
      {
        '{"request":{"method":"POST","url":"x"},"response":{"status":200,"headers":[1],"body":""}}',
        "its response has no status, headers and body",
      },
    }

    for _, case in ipairs(cases) do
      write(file, { good, case[1] })
      local r = replay(file, url)
      has(r.err, "'" .. file .. "' line 2 is no recorded exchange: ")
      has(r.err, case[2])
      assert.equal(1, r.code)
    end
    os.remove(file)
    local r = replay(file, url)
    assert.equal(2, r.code)
    has(r.err, "cannot open the recording '" .. file .. "'")
  end)

  it("is one of two: --record and --replay are not given together", function()
    local r = command.agenthost("--record", "a", "--replay", "b", "x.lua")

    assert.equal(2, r.code)
    has(r.err, "--record and --replay: give one of them")
  end)
end)
