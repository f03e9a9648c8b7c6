-- JSON both ways: what is refused and with which message, integers to the last bit, markers,
-- canonical text, and the scanner that the core reads with. Cases by line are in spec/data/json.
local ah = require "agenthost"
local ahtest = require "ahtest"
local encode, decode = ah.json.encode, ah.json.decode

local CASES = { "grammar", "strings", "numbers", "objects" }

-- Replaces "<0a ff>" by these bytes.
local function bytes(text)
  return (text:gsub("<(%x%x[%x ]*)>", function(hex)
    return (hex:gsub("(%x%x) ?", function(h) return string.char(tonumber(h, 16)) end))
  end))
end

local function cases(name)
  local path, list, number = "spec/data/json/" .. name .. ".test", {}, 0
  for line in io.lines(path) do
    number = number + 1
    local kind, rest = line:match("^(%l+) (.*)$")
    if kind then
      local text, wanted = rest:match("^(.-) => (.*)$")
      list[#list + 1] = {
        place = ("%s:%d"):format(path, number),
        line = line,
        kind = kind,
        text = bytes(text or rest),
        wanted = bytes(wanted or rest),
      }
    end
  end
  return list
end

local function check(case)
  local value, message = decode(case.text)
  if case.kind == "ok" then
    assert(value ~= nil, message)
    assert.equal(case.wanted, encode(value))
  else
    assert.equal("bad", case.kind)
    assert.is_nil(value)
    assert(message:find(case.wanted, 1, true), message)
  end
end

-- Returns the message of a refusal, without the position.
local function refusal(value)
  local ok, message = pcall(encode, value)
  assert.is_false(ok)
  return message
end

local function nested(depth, open, close)
  return open:rep(depth) .. close:rep(depth)
end

describe("the data cases", function()
  for _, name in ipairs(CASES) do
    for _, case in ipairs(cases(name)) do
      it(case.place .. " " .. case.line, function() check(case) end)
    end
  end
end)

describe("decoding", function()
  it("keeps integers and floats apart", function()
    assert.equal("integer", math.type(decode "1"))
    assert.equal("float", math.type(decode "1.0"))
    assert.equal("float", math.type(decode "1e2"))
    assert.equal("float", math.type(decode "-0"))
    assert.equal("integer", math.type(decode "0"))
    assert.equal("float", math.type(decode "9223372036854775808"))
  end)

  it("is exact at the edges of 64 bits", function()
    assert.equal(math.maxinteger, decode "9223372036854775807")
    assert.equal(math.mininteger, decode "-9223372036854775808")
    assert.equal(-math.huge, 1 / decode "-0")
  end)

  it("reads numbers of any length", function()
    assert.equal(1.0, decode("0." .. ("9"):rep(20000)))
    assert.equal(0.0, decode("0." .. ("0"):rep(20000) .. "1"))
    assert.equal(1e300, decode("1" .. ("0"):rep(300)))
    assert.equal(1.0, decode("0." .. ("0"):rep(4999) .. "1e5000"))
    assert.equal(1.0, decode("1" .. ("0"):rep(5000) .. "e-5000"))
    assert.equal(10.0, decode("1e" .. ("0"):rep(5000) .. "1"))
    assert.is_nil(decode("1" .. ("0"):rep(20000)))
  end)

  it("rounds by the last of many digits", function()
    local half = "9007199254740993." .. ("0"):rep(2000)
    assert.equal(9007199254740992.0, decode(half))
    assert.equal(9007199254740994.0, decode(half .. "1"))
  end)

  it("gives null as ah.null", function()
    assert.equal(ah.null, decode "null")
    assert.equal(ah.null, decode('{"a":null}').a)
    assert.equal(ah.null, decode("[null]")[1])
  end)

  it("keeps NUL and the text after it", function()
    assert.equal("a\0b", decode [["a\u0000b"]])
    assert.equal(4, #decode [["\u0000\u0000\u0000\u0000"]])
  end)

  it("reads long strings with escapes", function()
    local long = ("x"):rep(100000)
    assert.equal(long .. "\n" .. long, decode('"' .. long .. "\\n" .. long .. '"'))
    assert.equal(("\\"):rep(50000), decode('"' .. ("\\\\"):rep(50000) .. '"'))
  end)

  it("counts depth to 512", function()
    assert.is_table(decode(nested(512, "[", "]")))
    local value, message = decode(nested(513, "[", "]"))
    assert.is_nil(value)
    assert.matches("nested deeper than 512 levels at line 1, column 513", message)
    local object = ('{"a":'):rep(511) .. "{}" .. ("}"):rep(511)
    assert.equal(object, encode(decode(object)))
    assert.is_nil(decode('{"a":' .. object .. "}") and decode('[{"a":' .. object .. "}]"))
    assert.is_nil(decode(("["):rep(1000000)))
  end)

  it("does not count siblings as depth", function()
    local list = decode("[" .. ("[[]],"):rep(2000) .. "[]]")
    assert.equal(2001, #list)
  end)

  it("refuses what is no string", function()
    assert.has_error(function() decode(1) end)
    assert.has_error(function() decode() end)
    assert.has_error(function() decode {} end)
  end)
end)

describe("duplicate keys", function()
  -- Returns an object of n keys that are not in their sorted order.
  local function members(n, key)
    local list = {}
    for i = 1, n do
      list[i] = ('"%s":%d'):format(key(i * 7919 % n), i)
    end
    return list
  end
  local function plain(i) return ("key%d"):format(i) end
  local function object(list) return "{" .. table.concat(list, ",") .. "}" end

  for _, n in ipairs { 2, 15, 16, 17, 18, 127, 128, 129, 300, 5000 } do
    it(("are found among %d keys, first or last"):format(n), function()
      local list = members(n, plain)
      assert.is_table(decode(object(list)))
      for _, at in ipairs { 1, n // 2, n } do
        local copy = { table.unpack(list) }
        table.insert(copy, (copy[at]:gsub("^\"k", "\"\\u006b")))
        local before = #object(list)
        local _, message = decode(object(copy))
        local wanted = ("duplicate key at line 1, column %d "):format(before + 1)
        assert(message:find(wanted, 1, true), message)
      end
    end)
  end

  it("are told at the first repetition of a large object", function()
    local list = members(50, plain)
    table.insert(list, 30, list[3])
    local column = #table.concat({ table.unpack(list, 1, 29) }, ",") + 3
    list[#list + 1] = list[7]
    local _, message = decode(object(list))
    assert(message:find(("column %d "):format(column), 1, true), message)
  end)

  it("are found in the outer object after a large inner one", function()
    local inner = object(members(200, plain))
    local _, message = decode('{"a":1,"b":' .. inner .. ',"a":2}')
    assert.matches("duplicate key", message)
    assert.is_table(decode('{"key1":1,"b":' .. inner .. ',"key2":2}'))
  end)

  it("are looked for in time that does not grow with the square", function()
    local long = ("k"):rep(60)
    local plains = object(members(100000, function(i) return long .. i end))
    local escaped = object(members(100000, function(i) return "\\u006b" .. i end))
    local from = os.clock()
    assert.is_table(decode(plains))
    assert.is_table(decode(escaped))
    assert(os.clock() - from < 3, "200,000 keys took " .. os.clock() - from .. " s")
  end)
end)

describe("the message of a text that is no JSON", function()
  local function message(text)
    return select(2, decode(text))
  end

  it("quotes what is near the fault", function()
    assert.equal("the text is not JSON: unexpected character at line 1, column 6 near `[1,2,x]`",
      message "[1,2,x]")
  end)

  it("quotes only what is near", function()
    local words = message("[" .. ("1,"):rep(5000) .. "x" .. (",1"):rep(5000) .. "]")
    assert.matches("1,1,x,1,1", words)
    assert(#words < 160, words)
  end)

  it("shows control bytes and bytes that are no UTF-8 as numbers", function()
    assert.matches("`%[\"a\\x1b%[0m\"%]`", message "[\"a\27[0m\"]")
    assert.matches("`\"\\x00\"`", message "\"\0\"")
    assert.matches("`%[\\x0a\\xff%]`", message "[\n\xff]")
    assert.matches("`\"\\x7f\\u009b\\x01\"`", message "\"\x7f\u{9b}\1\"")
  end)

  it("cuts between characters", function()
    for n = 1, 30 do
      local words = message(("é"):rep(n) .. "x" .. ("€"):rep(n))
      assert(utf8.len(words), words)
      words = message("[\"" .. ("€"):rep(n) .. "\1" .. ("é"):rep(n))
      assert(utf8.len(words), words)
      assert.is_nil(words:find("\\x8", 1, true) or words:find("\\xe2", 1, true))
    end
  end)
end)

describe("encoding", function()
  it("writes every kind of value", function()
    assert.equal([[{"a":[1,2.5,"x",true,false,null],"b":{"c":{}}}]],
      encode { a = { 1, 2.5, "x", true, false, ah.null }, b = { c = {} } })
  end)

  it("keeps integers exact and floats floats", function()
    assert.equal("[9223372036854775807,-9223372036854775808,3,3.0,-0.0,1e+100]",
      encode { math.maxinteger, math.mininteger, 3, 3.0, -0.0, 1e100 })
  end)

  it("sorts keys by their bytes, whatever order they were set in", function()
    local wanted, keys = {}, {}
    for i = 1, 200 do
      keys[i] = ("k%d"):format(i * 37 % 200)
    end
    local forth, back = {}, {}
    for i = 1, #keys do
      forth[keys[i]] = { [keys[i]] = i, a = { b = 1, a = 2 } }
    end
    for i = #keys, 1, -1 do
      back[keys[i]] = { a = { a = 2, b = 1 }, [keys[i]] = i }
    end
    assert.equal(encode(forth), encode(back))
    table.sort(keys)
    for key in encode(forth):gmatch('"(k%d+)":{"a"') do
      wanted[#wanted + 1] = key
    end
    assert.same(keys, wanted)
  end)

  it("uses the raw fields of tables with metatables and calls nothing", function()
    local function never() error "a metamethod was called" end
    local mt = {
      __index = never, __newindex = never, __pairs = never, __len = never, __eq = never,
      __tostring = never, __close = never, __name = "odd", __metatable = false,
    }
    assert.equal('{"a":[1,2]}', encode(setmetatable({ a = setmetatable({ 1, 2 }, mt) }, mt)))
  end)

  it("leaves the value alone", function()
    local list = { 1, 2, { x = "y" } }
    encode(list)
    assert.same({ 1, 2, { x = "y" } }, list)
    assert.is_nil(getmetatable(list))
  end)

  it("writes a table that occurs twice, twice", function()
    local shared = { 1 }
    assert.equal('{"a":[1],"b":[1]}', encode { a = shared, b = shared })
  end)

  it("works in a coroutine", function()
    local text = nested(500, "[", "]")
    local run = coroutine.wrap(function() return encode(decode(text)) end)
    assert.equal(text, run())
  end)

  it("raises at the line of the caller", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() encode { f = print } end)
    local wanted = "json_spec%%.lua:%d: at %%.f: a function cannot be JSON$"
    assert.matches(wanted:format(line), message)
  end)

  it("wants a value", function()
    assert.has_error(function() encode() end)
  end)
end)

describe("what cannot be JSON is refused with its path:", function()
  local co = coroutine.create(function() end)

  it("functions, threads, userdata, nil", function()
    assert.equal("a function cannot be JSON", refusal(print))
    assert.equal("at .items[3].f: a function cannot be JSON",
      refusal { items = { 1, 2, { f = print } } })
    assert.equal("at [2]: a thread cannot be JSON", refusal { 1, co })
    assert.equal("at .file: a userdata cannot be JSON", refusal { file = io.stdout })
    assert.equal("nil cannot be JSON (ah.null is JSON's null)", refusal(nil))
  end)

  it("NaN and infinity", function()
    assert.equal("at .a: NaN cannot be JSON", refusal { a = 0 / 0 })
    assert.equal("at [1]: infinity cannot be JSON", refusal { math.huge })
    assert.equal("infinity cannot be JSON", refusal(-math.huge))
  end)

  it("strings and keys that are no UTF-8, keys with NUL", function()
    assert.equal("at .a: a string that is not UTF-8 cannot be JSON", refusal { a = "\xff" })
    assert.equal("at [\"\u{fffd}\"]: a key that is not UTF-8 cannot be JSON",
      refusal { ["\xff"] = 1 })
    assert.equal("at [\"a\\u0000\"]: a key with a NUL byte is not accepted",
      refusal { ["a\0"] = 1 })
  end)

  it("mixed keys", function()
    assert.equal("at .a: a table with both string and integer keys cannot be JSON",
      refusal { a = { 1, x = 2 } })
  end)

  it("odd keys", function()
    assert.equal("a table with a float as key cannot be JSON", refusal { [1.5] = 1 })
    assert.equal("at .a: a table with a boolean as key cannot be JSON",
      refusal { a = { [true] = 1 } })
    assert.matches("neither strings nor 1%.%.n", refusal { [{}] = 1 })
    assert.matches("neither strings nor 1%.%.n", refusal { [ah.null] = 1, a = 2 })
    assert.equal("at [5]: integer keys that do not run from 1 to n cannot be JSON",
      refusal { [5] = 1 })
    assert.equal("at [0]: integer keys that do not run from 1 to n cannot be JSON",
      refusal { [0] = 0, [1] = 1 })
    assert.matches("^at %[%-1%]: integer keys", refusal { [-1] = 1, [2] = 2 })
    assert.matches("^at %[%-9223372036854775808%]: integer keys", refusal { [math.mininteger] = 1 })
    assert.matches("^at %[9223372036854775807%]: integer keys", refusal { [math.maxinteger] = 1 })
  end)

  it("holes", function()
    assert.equal("at .list[2]: an array with a hole cannot be JSON (ah.null fills holes)",
      refusal { list = { 1, nil, 3 } })
    assert.equal("at [2]: an array with a hole cannot be JSON (ah.null fills holes)",
      refusal(ah.array { 1, [3] = 3 }))
    assert.equal("[1,null,3]", encode { 1, ah.null, 3 })
  end)

  it("cycles", function()
    local t = { a = { {} } }
    t.a[1].b = t
    assert.equal("at .a[1].b: a table that contains itself cannot be JSON", refusal(t))
    local list = {}
    list[1] = list
    assert.equal("at [1]: a table that contains itself cannot be JSON", refusal(list))
  end)

  it("depth over 512", function()
    local function tower(n)
      local t = ah.array {}
      for _ = 2, n do
        t = { t }
      end
      return t
    end
    assert.equal(nested(512, "[", "]"), encode(tower(512)))
    local why = "a table nested deeper than 512 levels cannot be JSON"
    assert.equal("at ...[1][1][1][1][1][1][1][1]: " .. why, refusal(tower(513)))
    assert.matches("deeper than 512 levels", refusal(tower(100000)))
  end)

  it("long and odd keys are shortened in the path", function()
    local t = 0 / 0
    for _ = 1, 20 do
      t = { [("\1"):rep(1000)] = t }
    end
    local message = refusal(t)
    assert.matches(": NaN cannot be JSON$", message)
    assert(#message < 500, message)
    assert.equal("at [\"" .. ("é"):rep(16) .. "\"...]: NaN cannot be JSON",
      refusal { [("é"):rep(40)] = 0 / 0 })
    assert.equal("at [\"x" .. ("é"):rep(15) .. "\"...]: NaN cannot be JSON",
      refusal { ["x" .. ("é"):rep(40)] = 0 / 0 })
    assert.equal("at [\"odd key\"].ok: NaN cannot be JSON",
      refusal { ["odd key"] = { ok = 0 / 0 } })
  end)
end)

describe("markers", function()
  it("tell empty arrays and objects apart", function()
    assert.equal("[]", encode(ah.array {}))
    assert.equal("{}", encode(ah.object {}))
    assert.equal("{}", encode {})
  end)

  it("survive a round trip", function()
    for _, text in ipairs { "[]", "{}", "[[],{}]", '{"a":[],"b":{}}' } do
      assert.equal(text, encode(decode(text)))
    end
  end)

  it("are on decoded arrays and on decoded empty objects only", function()
    local array, object = getmetatable(ah.array {}), getmetatable(ah.object {})
    assert.equal("agenthost.array", array.__name)
    assert.equal("agenthost.object", object.__name)
    assert.equal(array, getmetatable(decode "[1]"))
    assert.equal(array, getmetatable(decode "[]"))
    assert.equal(object, getmetatable(decode "{}"))
    assert.is_nil(getmetatable(decode '{"a":1}'))
  end)

  it("let a decoded array that was emptied stay an array", function()
    local list = decode "[1,2]"
    list[1], list[2] = nil, nil
    assert.equal("[]", encode(list))
  end)

  it("are set on the table given, once or again", function()
    local t = {}
    assert.equal(t, ah.array(t))
    assert.equal(t, ah.array(t))
    assert.equal(t, ah.array(decode "[]") and t)
  end)

  it("bind the keys", function()
    assert.matches("an array %(ah.array%) with string keys", refusal(ah.array { x = 1 }))
    assert.matches("an array %(ah.array%) with string keys", refusal(ah.array { 1, x = 1 }))
    assert.matches("an object %(ah.object%) with integer keys", refusal(ah.object { 1 }))
    assert.equal('{"a":1}', encode(ah.object { a = 1 }))
  end)

  it("are refused for what is no table or has another metatable, at the caller's line", function()
    local line = debug.getinfo(1, "l").currentline + 1
    local _, message = pcall(function() ah.array(1) end)
    assert.matches(("json_spec%%.lua:%d: .*table expected, got number"):format(line), message)
    assert.has_error(function() ah.object() end)
    assert.has_error(function() ah.array(setmetatable({}, {})) end)
    assert.has_error(function() ah.object(ah.array {}) end)
    assert.has_error(function() ah.array(ah.object {}) end)
  end)
end)

describe("the number of a value", function()
  local hash = ahtest.hash

  it("is the same for all texts of the value", function()
    local texts = { '{"a":[1,{"b":1.5,"c":null}],"d":"é"}',
      ' { "d" : "\\u00e9", "a" : [ 1, {"c":null , "b":15e-1} ] }\n',
      '{"\\u0061":[1,{"\\u0062":1.50,"c":null}],"d":"é"}' }
    for _, text in ipairs(texts) do
      assert.equal(hash(texts[1]), hash(text))
    end
  end)

  it("is another for another value", function()
    local seen = {}
    for _, text in ipairs { "null", "true", "false", '""', "[]", "{}", "0", "1", "-1", "1.0", '"1"',
      "[1]", "[[1]]", "[1,2]", "[2,1]", "[1,[2]]", "[[1],2]", '{"a":1}', '{"a":"1"}', '{"b":1}',
      '{"1":"a"}', '{"a":1,"b":2}', '{"a":2,"b":1}', '{"a":{"b":2}}', '{"a":{},"b":2}',
      '{"a":null}', '["a",null]', '["a"]', '"a"', '"b"', '"a\\u0000"', "9223372036854775808",
      "9223372036854775809", '{"a":{"c":1},"b":{"d":1}}', '{"a":{"d":1},"b":{"c":1}}' } do
      assert.is_nil(seen[hash(text)], text)
      seen[hash(text)] = text
    end
  end)
end)

-- Foreign text, as the core reads and rewrites it without Lua values in between.
describe("canonical text", function()
  local canon = ahtest.canon

  local function is_canonical(text)
    assert.equal(text, canon(text))
  end

  it("has no white space and its keys in the order of their bytes, at every depth", function()
    assert.equal('{"":3,"B":{"x":[{"a":1,"b":2}],"y":null},"a":1,"aa":2,"b":[],"é":4}',
      canon ' { "b" : [ ] , "aa":2,"a":1, "B":{"y":null,"x":[{"b":2,\n"a":1}]},"é":4,"":3 }\t')
  end)

  it("orders keys by what they mean, not by how they are written", function()
    assert.equal('{"a":2,"b":1,"c\\n":3}', canon [[{"\u0062":1,"\u0061":2,"c\u000a":3}]])
    assert.equal('{"Z":1,"z":2,"\u{7f}":3,"\u{ffff}":4,"\u{10000}":5}',
      canon [[{"\ud800\udc00":5,"\uffff":4,"\u007f":3,"z":2,"Z":1}]])
  end)

  it("keeps the digits of integers, however many", function()
    is_canonical "[0,-1,9007199254740993,9223372036854775807,-9223372036854775808]"
    is_canonical "[9223372036854775808,123456789012345678901234567890]"
    is_canonical("-" .. ("7"):rep(5000))
  end)

  it("writes floats in the shortest form of their double, always as floats", function()
    assert.equal("[1.0,0.1,100.0,1e+16,1e-07,-2.5,0.3,1.7976931348623157e+308]",
      canon "[1.0,0.10,1e2,1e16,0.0000001,-25e-1,0.3000,17976931348623157e292]")
    assert.equal("[-0.0,-0.0,0.0,0.0,5e-324,0.0]", canon "[-0,-0.0,0.0,0e9,50e-325,0e-400]")
  end)

  it("keeps all digits of floats where their double is another number, in one way", function()
    assert.equal("[0.1000000000000000055511151231257827,4.9e-324,1e-400,9007199254740992.5]",
      canon "[1.000000000000000055511151231257827e-1,49e-325,0.1e-399,9007199254740992500e-3]")
    assert.equal("[1e+400,-1e+400,1.5e+9999,123456789012345678901.0,1.2345678901234567890123e+22]",
      canon "[1e400,-1E+400,15e9998,1234567890123456789010e-1,12345678901234567890123.0]")
    assert.equal("[0.000001000000000000000000001,1.000000000000000000001e-07]",
      canon "[1000000000000000000001e-27,1000000000000000000001e-28]")
    assert.equal("[6.66e+999999999999999,-1e+999999999999999,1e-1000000000000000]",
      canon "[6660.0e999999999999999,-1e99999999999999999999999,1e-99999999999999999999999]")
    is_canonical(canon("[" .. ("6"):rep(9) .. "e51" .. ("0"):rep(24) .. "6,1e-1000000000000001]"))
    is_canonical("[0." .. ("7"):rep(3000) .. ",-" .. ("7"):rep(20) .. "." .. ("3"):rep(3000) .. "]")
  end)

  it("escapes only what must be escaped, in one way", function()
    assert.equal([["\"\\/\b\f\n\r\t\u0001\u001f"]],
      canon [["\u0022\u005c\/\u0008\u000c\u000a\u000D\u0009\u0001\u001F"]])
    assert.equal('"\u{7f}é€😀"', canon [["\u007f\u00e9\u20AC\ud83d\ude00"]])
    is_canonical '"größe / €"'
  end)

  it("keeps NUL and what is behind it", function()
    is_canonical [["a\u0000b\"c"]]
    assert.equal([==[["\u0000","x\u0000"]]==], canon [==[["\u0000","\u0078\u0000"]]==])
  end)

  it("is the canonical text of itself", function()
    local texts = { " true ", '"\\u00e9"', "[1E5,[],{}]", '{"b":{"d":1.0,"c":-0},"a":[""]}' }
    for _, text in ipairs(texts) do
      is_canonical(canon(text))
    end
  end)

  it("is made of JSON only", function()
    local text, message = canon "[1,]"
    assert.is_nil(text)
    assert.matches("^the text is not JSON: unexpected character at line 1, column 4", message)
  end)
end)

describe("the reader", function()
  it("gives every token with its text, raw", function()
    assert.same({
      "object {", "key a", "array [", "number 1", "number -2.50E+3", "string x", "null null",
      "array end ]", "escaped key \\u0062", "object {", "object end }", "key c", "true true",
      "key ", "escaped string \\\"\\\\", "object end }",
    }, ahtest.walk [[ {"a" : [1,-2.50E+3 ,"x",null] , "\u0062":{},"c":true,"":"\"\\"} ]])
    assert.same({ "false false" }, ahtest.walk "\tfalse\n")
    assert.same({ "string a:b,{}[]" }, ahtest.walk '"a:b,{}[]"')
  end)

  it("tells a string before a colon, and no other, as a key", function()
    assert.same({ "object {", "key k", "string v", "object end }" }, ahtest.walk '{"k"\r\n : "v"}')
    assert.same({ "array [", "string k", "string :", "array end ]" }, ahtest.walk '["k" ,":"]')
  end)
end)

describe("members", function()
  local TEXT = [==[{"skip":{"a":"}]\"","b":[[{"a":0}]]},"a.b":1,
    "\u0061":{"b":{"\u0063":" \u0041"}},"n":null}]==]

  it("are found by name, however it is written", function()
    assert.equal([[{"b":{"\u0063":" \u0041"}}]], ahtest.member(TEXT, "a"))
    assert.equal("1", ahtest.member(TEXT, "a.b"))
    assert.equal("null", ahtest.member(TEXT, "n"))
    assert.equal("2", ahtest.member([[{"a":1,"\ud83d\ude00":2}]], "😀"))
  end)

  it("are absent where only a part of the name, another case, or another depth fits", function()
    for _, key in ipairs { "", "b", "N", "ski", "skipp", "a\\", "\\u0061" } do
      assert.is_nil(ahtest.member(TEXT, key), key)
    end
    assert.is_nil(ahtest.member([[{"\u0061b":1,"b\u0061":2}]], "a"))
    assert.is_nil(ahtest.member('[{"a":1}]', "a"))
    assert.is_nil(ahtest.member('"a"', "a"))
  end)

  it("are found together in one pass", function()
    local n, absent, a, is_object = ahtest.members(TEXT, "n", "nothing", "a")
    assert.equal("null", n)
    assert.is_nil(absent)
    assert.equal([[{"b":{"\u0063":" \u0041"}}]], a)
    assert.is_true(is_object)
    assert.same(table.pack(nil, true), table.pack(ahtest.members("{}", "a")))
    assert.same(table.pack(nil, false), table.pack(ahtest.members("[]", "a")))
  end)

  it("are found behind strings of every length, escapes and quotes in them", function()
    for n = 0, 140 do
      for _, odd in ipairs { "", '\\"', "\\\\", '\\u0022', "\u{e9}" } do
        local value = ('"%s%s%s"'):format(("x"):rep(n), odd, ("y"):rep(n % 7))
        local text = ('{"a":%s,"b":[%s,1],"c":2}'):format(value, value)
        assert.equal(value, ahtest.member(text, "a"))
        assert.equal("2", ahtest.member(text, "c"))
        assert.equal(value, ahtest.member(text:sub(1, 5 + #value) .. "}", "a"))
      end
    end
  end)
end)

describe("bytes of processes and files", function()
  local BAD = "\u{fffd}"

  it("stay as they are where they are UTF-8", function()
    for _, text in ipairs { "", "plain\0", "größe €\u{d7ff}\u{e000}\u{10ffff}", BAD } do
      assert.equal(text, ahtest.repair(text))
    end
  end)

  it("get one replacement for each malformed byte", function()
    assert.equal("a" .. BAD .. "b" .. BAD, ahtest.repair "a\xffb\x80")
    assert.equal(BAD:rep(2) .. "/", ahtest.repair "\xc0\xaf/") -- overlong
    assert.equal(BAD:rep(3), ahtest.repair "\xed\xa0\x80") -- a surrogate
    assert.equal(BAD:rep(4), ahtest.repair "\xf4\x90\x80\x80") -- beyond U+10FFFF
    assert.equal("é" .. BAD:rep(2), ahtest.repair "é\xe2\x82") -- cut short
    assert.equal(BAD .. "€", ahtest.repair "\xe2€")
  end)
end)

describe("random values", function()
  -- A generator of our own, so that every machine tries the same values.
  local function generator(seed)
    return function(n)
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      return (seed >> 8) % n + 1
    end
  end

  local function text(random)
    local parts = {}
    for i = 1, random(12) - 1 do
      local kind = random(4)
      parts[i] = kind == 1 and string.char(random(127)) or kind == 2 and utf8.char(random(0xd7ff))
        or kind == 3 and utf8.char(0xe000 + random(0x101fff)) or "abcdefghij"
    end
    return table.concat(parts)
  end

  local function number(random)
    local kind = random(4)
    if kind == 1 then
      return random(1000) - 500
    elseif kind == 2 then
      return random(1 << 20) << random(43)
    elseif kind == 3 then
      return (random(1 << 22) - (1 << 21)) / 1024
    end
    return random(1 << 22) / random(1 << 22) * 10.0 ^ (random(600) - 300)
  end

  local value
  local function list(random, depth)
    local t = ah.array {}
    for i = 1, random(5) - 1 do
      t[i] = value(random, depth - 1)
    end
    return t
  end

  local function map(random, depth)
    local t = {}
    for _ = 1, random(24) - 1 do
      t[text(random)] = value(random, depth - 1)
    end
    return next(t) and t or ah.object(t)
  end

  function value(random, depth)
    local kind = random(depth > 0 and 8 or 5)
    if kind == 1 then
      return ah.null
    elseif kind == 2 then
      return random(2) == 1
    elseif kind == 3 then
      return text(random) .. (random(9) == 1 and "\0" or "")
    elseif kind <= 5 then
      return number(random)
    end
    return (kind == 6 and list or map)(random, depth)
  end

  it("encode, decode and encode to the same bytes, and are the same values", function()
    for seed = 1, 400 do
      local v = value(generator(seed), 4)
      local once = encode(v)
      local back = assert(decode(once) ~= nil and { decode(once) })[1]
      assert.equal(once, encode(back))
      assert.same(v, back)
    end
  end)
end)

describe("a locale whose point is a comma", function()
  it("changes neither reading nor writing", function()
    local before = os.setlocale(nil, "numeric")
    local found
    for _, name in ipairs { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8", "de_DE" } do
      found = found or os.setlocale(name, "numeric")
    end
    if not found then
      pending "no such locale is installed"
      return
    end
    local comma, text = ("%.1f"):format(0.5), encode { 1.5, 0.1, 1e300, 3.0 }
    local value = decode "[1.5,-2.25e3]"
    os.setlocale(before, "numeric")
    assert.equal("0,5", comma)
    assert.equal("[1.5,0.1,1e+300,3.0]", text)
    assert.same({ 1.5, -2250.0 }, { value[1], value[2] })
  end)
end)
