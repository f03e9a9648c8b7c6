-- Messages of the Model Context Protocol: what is made, what is accepted, what is refused and why,
-- and that every message of real peers is understood.
local ah = require "agenthost"
local message = ah._module "agenthost.protocols.mcp.message"

local ROOT = "../shared/wire/mcp/"

describe("messages of MCP:", function()
  describe("a line that is made", function()
    it("is one line with sorted members", function()
      assert.are.equal('{"id":1,"jsonrpc":"2.0","method":"ping"}\n', message.request(1, "ping"))
      assert.are.equal('{"id":"a","jsonrpc":"2.0","method":"call","params":{"name":"x\\ny"}}\n',
        message.request("a", "call", { name = "x\ny" }))
      assert.are.equal('{"jsonrpc":"2.0","method":"m"}\n', message.notification "m")
      assert.are.equal('{"id":2,"jsonrpc":"2.0","result":{}}\n', message.result(2, {}))
      assert.are.equal('{"error":{"code":-32601,"data":1,"message":"no"},"id":2,"jsonrpc":"2.0"}\n',
        message.failure(2, message.CODES.method, "no", 1))
      assert.are.equal('{"error":{"code":-32700,"message":"no"},"jsonrpc":"2.0"}\n',
        message.failure(nil, message.CODES.parse, "no"))
    end)

    it("is read as what it was", function()
      assert.are.same({ kind = "request", id = 7, method = "m", params = { a = 1 } },
        message.read(message.request(7, "m", { a = 1 })))
      assert.are.same({ kind = "notification", method = "m", params = {} },
        message.read(message.notification "m"))
      assert.are.same({ kind = "result", id = "x", result = { a = true } },
        message.read(message.result("x", { a = true })))
      assert.are.same({ kind = "error", id = 1, code = -32603, text = "t", data = "d" },
        message.read(message.failure(1, message.CODES.internal, "t", "d")))
    end)
  end)

  it("of which the id could not be read are errors with null or no id", function()
    for _, id in ipairs { "", '"id":null,' } do
      local read = message.read('{"jsonrpc":"2.0",' .. id .. '"error":{"code":1,"message":"m"}}')
      assert.are.same({ kind = "error", code = 1, text = "m" }, read)
    end
  end)

  it("may have members that the specification does not have", function()
    assert.are.equal("ping", message.read '{"jsonrpc":"2.0","x":[],"id":0,"method":"ping"}'.method)
  end)

  local REFUSED = {
    { "not JSON", "{", -32700 },
    { "an empty line", "", -32700 },
    { "an invalid text", '{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700 },
    { "a batch", '[{"jsonrpc":"2.0","id":1,"method":"m"}]', -32600 },
    { "a number", "1", -32600 },
    { "null", "null", -32600 },
    { "no version", '{"id":1,"method":"m"}', -32600, 1 },
    { "another version", '{"jsonrpc":"1.0","id":"x","method":"m"}', -32600, "x" },
    { "an id that is null", '{"jsonrpc":"2.0","id":null,"method":"m"}', -32600 },
    { "an id that is a fraction", '{"jsonrpc":"2.0","id":1.5,"method":"m"}', -32600 },
    { "an id that is an object", '{"jsonrpc":"2.0","id":{},"method":"m"}', -32600 },
    { "an empty id", '{"jsonrpc":"2.0","id":"","method":"m"}', -32600 },
    { "a long id", '{"jsonrpc":"2.0","id":"' .. ("i"):rep(257) .. '","method":"m"}', -32600 },
    { "a method that is no text", '{"jsonrpc":"2.0","id":3,"method":[]}', -32600, 3 },
    { "an empty method", '{"jsonrpc":"2.0","id":3,"method":""}', -32600, 3 },
    { "params that are a list", '{"jsonrpc":"2.0","id":3,"method":"m","params":[]}', -32600, 3 },
    { "params that are null", '{"jsonrpc":"2.0","id":3,"method":"m","params":null}', -32600, 3 },
    { "neither method nor answer", '{"jsonrpc":"2.0","id":3}', -32600, 3 },
    { "a result and an error",
      '{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":"m"}}', -32600, 3 },
    { "a result without an id", '{"jsonrpc":"2.0","result":{}}', -32600 },
    { "a result with a null id", '{"jsonrpc":"2.0","id":null,"result":{}}', -32600 },
    { "a result that is a list", '{"jsonrpc":"2.0","id":3,"result":[]}', -32600, 3 },
    { "an error that is a text", '{"jsonrpc":"2.0","id":3,"error":"m"}', -32600, 3 },
    { "an error without a code", '{"jsonrpc":"2.0","id":3,"error":{"message":"m"}}', -32600, 3 },
    { "an error without a text", '{"jsonrpc":"2.0","id":3,"error":{"code":1}}', -32600, 3 },
    { "deep nesting", '{"jsonrpc":"2.0","id":3,"method":"m","params":' .. ("["):rep(600)
      .. ("]"):rep(600) .. "}", -32700 },
    { "a message that is too long", (" "):rep(message.MOST_LINE + 1), -32600 },
  }
  for _, case in ipairs(REFUSED) do
    it("are refused: " .. case[1], function()
      local read, why = message.read(case[2])
      assert.is_nil(read)
      assert.are.equal(case[3], why.code)
      assert.are.equal(case[4], why.id)
      assert.is_true(#why.message > 0 and #why.message < 200, why.message)
    end)
  end

  it("have values of which the kind is known", function()
    local list, empty, object = ah.json.decode "[]", ah.json.decode "{}", ah.json.decode '{"a":1}'
    assert.is_true(message.is_list(list))
    assert.is_false(message.is_list(empty) or message.is_list(object) or message.is_list "x")
    assert.is_true(message.is_object(empty) and message.is_object(object))
    assert.is_false(message.is_object(list) or message.is_object(ah.null) or message.is_object "x")
    assert.are.same({}, message.object(list))
    assert.is_nil(message.text("", 1))
    assert.is_nil(message.text("ab", 1))
    assert.are.equal("ab", message.text("ab", 2))
  end)

  it("have texts that are cut to one line for errors", function()
    assert.are.equal("a b", message.said "a\r\nb")
    assert.are.equal("(no text)", message.said {})
    local cut = message.said(("é"):rep(300))
    assert.is_true(#cut <= message.MOST_SAID + 4)
    assert.is_truthy(utf8.len(cut))
    assert.are.equal("é ...", cut:sub(-6))
  end)

  it("have a revision that both sides know, ours first", function()
    assert.are.equal("2026-07-28",
      message.common(ah.array { "2025-11-25", "2026-07-28", "2030-01-01" }, true))
    assert.are.equal("2025-11-25", message.common(ah.array { "2025-06-18", "2025-11-25" }, false))
    assert.is_nil(message.common(ah.array { "2025-11-25" }, true))
    assert.is_nil(message.common("2026-07-28", true))
    assert.is_nil(message.common(ah.array { {}, ah.null, 1 }, true))
    assert.is_true(message.features(message.LATEST).modern)
    assert.is_nil(message.features "1999-01-01")
    for _, revision in ipairs(message.REVISIONS) do
      assert.is_table(message.features(revision))
    end
  end)
end)

-- Returns the messages that were recorded in a file, each as its JSON text; nil without the file.
local function recorded(name)
  local file <close> = io.open(ROOT .. name)
  if not file then
    return nil
  end
  local list = {}
  for text in file:lines() do
    local row = assert(ah.json.decode(text))
    if type(row.msg) == "table" and row.dir:find "^%a+%->%a+$" then
      list[#list + 1] = ah.json.encode(row.msg)
    end
  end
  return list
end

describe("recorded messages of MCP are understood:", function()
  for name, least in pairs { ["everything-stdio"] = 70, ["filesystem-stdio"] = 15,
    ["memory-stdio"] = 9, ["client-claude-stdio"] = 8, ["client-codex-stdio"] = 5,
    ["client-gemini-cli-stdio"] = 9 } do
    it(name, function()
      local list = recorded(name .. ".jsonl")
      if not list then
        pending "the recordings are not here"
        return
      end
      assert.is_true(#list >= least, #list)
      for _, text in ipairs(list) do
        local read, why = message.read(text)
        assert(read, (why and why.message or "") .. ": " .. text)
      end
    end)
  end
end)

describe("mutilated messages of MCP", function()
  local SEEDS = {
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2]}}}',
    '{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[{"type":"text"}]}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m","data":{"x":null}}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
  }
  local WORDS = { "null", "{}", "[]", "1.5", '""', "-0", "1e99", '"\\u0000"', "\xff", "}", "]", "" }

  it("are read or refused, never more", function()
    local random, read_some = require "support.random" (7), 0
    for _ = 1, 20000 do
      local text = SEEDS[random(#SEEDS)]
      for _ = 1, random(3) do
        local from = random(#text)
        local to = math.min(#text, from + random(13) - 1)
        text = text:sub(1, from - 1) .. WORDS[random(#WORDS)] .. text:sub(to + 1)
      end
      local read, why = message.read(text)
      if read then
        read_some = read_some + 1
        assert.is_truthy(read.id == nil or message.is_id(read.id), text)
        assert.is_truthy(read.kind ~= "result" or message.is_object(read.result), text)
        assert.is_truthy(read.method == nil or message.is_object(read.params), text)
      else
        assert.is_truthy(math.type(why.code) == "integer" and type(why.message) == "string", text)
      end
    end
    assert.is_true(read_some > 100, read_some)
  end)
end)
