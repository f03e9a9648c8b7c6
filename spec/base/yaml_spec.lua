-- ah.yaml.decode: the core schema's scalars, what is refused and where, limits, hostile texts, and
-- a build without libyaml. The grammar of YAML itself is libyaml's.
local ah = require "agenthost"
local command = require "support.command"

local _, none = ah.yaml.decode "a"
local HERE = not (none and none:find("not in this build", 1, true))

-- A build without libyaml reports that; the other specs need it.
local function it_reads(words, body)
  it(words, function()
    if not HERE then
      return pending "this build has no YAML"
    end
    body()
  end)
end

local function json_of(text)
  local value, message = ah.yaml.decode(text)
  assert.is_nil(message, text)
  return ah.json.encode(value)
end

local function refused(text, words)
  local value, message = ah.yaml.decode(text)
  assert.is_nil(value, text)
  assert.is_string(message)
  assert.is_truthy(message:find(words, 1, true), ("%s: %s"):format(text:sub(1, 60), message))
  return message
end

-- Scalars by their form: YAML 1.2, 10.3.2.
local SCALARS = {
  ["null"] = { "", "~", "null", "Null", "NULL", "# nothing", "---", "--- ~", "%YAML 1.2\n---\n" },
  ["true"] = { "true", "True", "TRUE", "!!bool true", "!!bool 'True'" },
  ["false"] = { "false", "False", "FALSE" },
  ["0"] = { "0", "-0", "+0", "00", "0x0", "0o0" },
  ["12"] = { "12", "+12", "012", "0xc", "0xC", "0o14", "!!int '12'" },
  ["-7"] = { "-7", "-07" },
  ["9223372036854775807"] = { "9223372036854775807", "0x7fffffffffffffff",
    "0o777777777777777777777" },
  ["-9223372036854775808"] = { "-9223372036854775808" },
  ["1.0"] = { "1.0", "1.", "+1.0", "1e0", "01.00", "!!float 1", "0.1e1", "10E-1" },
  ["-0.5"] = { "-0.5", "-.5", "-5e-1", "-.5E+0" },
  ["1.1"] = { "1.10" },
}

local TEXTS = { "yes", "no", "on", "off", "y", "n", "tRUE", "nULL", "1_000", "0b11", "12:30:45",
  "2020-01-01", "2020-01-01T00:00:00Z", "0xg", "0o8", "0x", "0o", "-0x1f", "+0o7", "1e", "1e+", ".",
  "-", "+", "-.", ".e1", "1.2.3", "1 2", "- 1x", "1.0.0", "inf", "nan", "Infinity", "0X1F", "=",
  "<<", "\u{663}" }

describe("ah.yaml.decode", function()
  it_reads("reads scalars as the core schema of YAML 1.2 says", function()
    for json, texts in pairs(SCALARS) do
      for _, text in ipairs(texts) do
        assert.equal(json, json_of(text), text)
        if not text:find "^[-%%#]" and text ~= "" then
          assert.equal("[" .. json .. "]", json_of("[" .. text .. "]"), text)
        end
      end
    end
  end)

  it_reads("takes all else for texts", function()
    for _, text in ipairs(TEXTS) do
      if text ~= "-" and text ~= "- 1x" then
        assert.equal(text, ah.yaml.decode(text))
      end
      assert.equal(text, ah.yaml.decode("k: '" .. text .. "'").k)
      assert.equal(text, ah.yaml.decode('- "' .. text .. '"')[1])
      assert.equal(text, ah.yaml.decode("!!str " .. (text:find "^%- ?" and "'- 1x'" or text))
        :gsub("^%- 1x$", text))
    end
    for _, text in ipairs { "1", "true", "null", ".inf", "" } do
      assert.equal(text, ah.yaml.decode("'" .. text .. "'"))
      assert.equal(text, ah.yaml.decode("! '" .. text .. "'"))
    end
  end)

  it_reads("keeps integers of 64 bits, and makes floats of larger ones, as JSON does", function()
    assert.equal("integer", math.type(ah.yaml.decode "007"))
    assert.equal("float", math.type(ah.yaml.decode "7."))
    assert.equal(9223372036854775808.0, ah.yaml.decode "9223372036854775808")
    assert.equal(-1e30, ah.yaml.decode("-1" .. ("0"):rep(30)))
  end)

  it_reads("gives what JSON gives: lists, objects and nulls that are marked", function()
    local value = ah.yaml.decode "a: ~\nb: []\nc: {}\nd: [1, ~]\n"
    assert.equal(ah.null, value.a)
    assert.equal('{"a":null,"b":[],"c":{},"d":[1,null]}', ah.json.encode(value))
    assert.equal(ah.null, (ah.yaml.decode ""))
  end)

  it_reads("reads the front matter of a page", function()
    local page = { name = "report", description = "Writes a report,\nwith figures.\n",
      metadata = { version = "1.0", tags = { "a", "b" } }, ["allowed-tools"] = "bash read_file" }
    local front = [[
name: report # short
description: |
  Writes a report,
  with figures.
metadata:
  version: "1.0"
  tags:
  - a
  - b
allowed-tools: >-
  bash
  read_file
]]
    assert.same(page, ah.yaml.decode(front))
    assert.same(page, ah.yaml.decode("---\n" .. front .. "...\n"))
    refused("---\n" .. front .. "---\nThe page.\n", "a second document begins")
  end)

  it_reads("has texts as keys, as they are written", function()
    assert.equal('{"":1,"1":"a","on":"push","true":2,"~":3}',
      json_of "{1: a, true: 2, ~: 3, on: push, '': 1}")
    assert.equal('{"a":1,"b":"a"}', json_of "&k a: 1\nb: *k")
  end)

  it_reads("repeats what an alias names", function()
    assert.equal('{"a":[1,{"b":null}],"c":[1,{"b":null}],"d":[[1,{"b":null}]]}',
      json_of "a: &x [1, {b: }]\nc: *x\nd: [*x]")
    assert.equal('{"a":1,"b":1,"c":2,"d":2}', json_of "a: &x 1\nb: *x\nc: &x 2\nd: *x")
    assert.equal('["",""]', json_of "[&e '', *e]")
  end)

  it_reads("takes a byte order mark, and every end of a line", function()
    assert.equal('{"a":1,"b":2}', json_of "\u{feff}a: 1\nb: 2")
    assert.equal('{"a":1,"b":2}', json_of "a: 1\r\nb: 2\r\n")
    assert.equal('{"a":1,"b":2}', json_of "a: 1\rb: 2")
  end)

  it_reads("says where a text is no YAML, with line and column", function()
    for text, place in pairs { ["a: b: c"] = "at line 1, column 5",
      ["a: 1\n b: 2"] = "line 2, column 3",
      ["a:\n\t- b"] = "at line 2, column 1", ["x: [1,\n2: 3"] = "at line 3, column 1",
      ["a: 'x"] = "while scanning a quoted scalar at line 1, column 4",
      ["\u{e9}: 1\nab: \1"] = "at line 2, column 5",
      ["ok: 1\n\u{e9}\u{e9}\255"] = "line 2, column 3",
      ["a: 1\r\nb: \255"] = "line 2, column 4", ["'\\"] = "at line 1, column",
      ['"\\ud800"'] = "line 1", ["a\n...\nb"] = "at line 3, column 1",
      ["\u{feff}ab: \1"] = "line 1, column 5", ["%YAML 2.0\n---\na"] = "line 1, column 1" } do
      assert.is_truthy(refused(text, place):find "^the text is not YAML: ")
    end
  end)

  it_reads("refuses what JSON has not, or what means two things, and says where", function()
    for text, words in pairs {
      ["a: 1\nb: 2\na: 3"] = "duplicate key at line 3, column 1",
      ["x:\n  k: 1\n  'k': 2"] = "duplicate key at line 3, column 3",
      ["{1: a, '1': b}"] = "duplicate key at line 1, column 8",
      ["a: {b: 1}\nc:\n  <<: {}"] = "a merge key (<<)", ["[a, .inf]"] = "JSON has not",
      ["-.INF"] = "JSON has not", [".nan"] = "JSON has not", ["!!float .nan"] = "JSON has not",
      ["a:\n- 1e400"] = "a number that is out of range at line 2, column 3",
      ["0x8000000000000000"] = "an integer of more than 64 bits at line 1, column 1",
      ["0o7777777777777777777777"] = "more than 64 bits",
      ["? [a]\n: b"] = "a key that is no text", ["? {a: b}\n: c"] = "a key that is no text",
      ["a: &x k\n*x : v"] = "an alias as a key at line 2, column 1",
      ["*x"] = "an alias without its anchor",
      ["&x [1, [*x]]"] = "an alias within what it stands for",
      ["a: &x {b: *x}"] = "an alias within what it stands for at line 1, column 11",
      ['"a\\0": 1'] = "a NUL in a key", ["!x a"] = "the tag !x, which",
      ["- !!python/object/apply:os.system [id]"] = "the tag !!python/object/apply:os.system, which",
      ["!!binary aGk="] = "the tag !!binary, which", ["!!timestamp 2020-01-01"] = "!!timestamp",
      ["!!set {a, b}"] = "!!set", ["!!map [a]"] = "the tag !!map", ["!!seq {}"] = "the tag !!seq",
      ["!!int x"] = "no integer under the tag !!int", ["!!int 1.0"] = "no integer",
      ["!!float a"] = "no number under", ["!!bool yes"] = "neither true nor false",
      ["!!null a"] = "not null", ["---\na\n---\nb"] = "a second document begins",
      ["%TAG !e! tag:e,2000:\n---\n!e!x a"] = "the tag tag:e,2000:x",
    } do
      assert.is_truthy(refused(text, words):find "^the text cannot be decoded: .* at line %d+")
    end
  end)

  it_reads("takes 100 levels, and with aliases 512", function()
    assert.is_table(ah.yaml.decode(("["):rep(100) .. ("]"):rep(100)))
    refused(("["):rep(101) .. ("]"):rep(101), "deeper than 100 levels at line 1, column 101")
    refused(("- "):rep(101) .. "a", "deeper than 100 levels")
    refused(("a: {"):rep(101), "deeper than 100 levels")
    local lines = { "- &a0 " .. ("["):rep(90) .. ("]"):rep(90) }
    for i = 1, 8 do
      lines[#lines + 1] = ("- &a%d %s*a%d%s"):format(i, ("["):rep(90), i - 1, ("]"):rep(90))
    end
    assert.is_table(ah.yaml.decode(table.concat(lines, "\n", 1, 5)))
    refused(table.concat(lines, "\n"), "deeper than 512 levels at line 6, column 97")
  end)

  it_reads("stops aliases that grow", function()
    local lines = { "a0: &a0 [x, x, x, x, x, x, x, x, x]" }
    for i = 1, 9 do
      lines[#lines + 1] = ("a%d: &a%d [%s]"):format(i, i, ("*a" .. i - 1 .. ", "):rep(9))
    end
    local began = os.clock()
    refused(table.concat(lines, "\n"), "aliases that repeat too much")
    assert.is_true(os.clock() - began < 5)
    refused("- &a x\n" .. ("- *a\n"):rep(10001), "aliases that repeat too much")
    assert.equal(10001, #ah.yaml.decode("- &a x\n" .. ("- *a\n"):rep(10000)))
    refused(("- &a x\n"):rep(1001), "more than 1000 anchors at line 1001, column 3")
    refused("- &a '" .. ("x"):rep(600000) .. "'\n- *a\n- *a", "repeat too much")
  end)

  it_reads("refuses texts that are too long, or that libyaml takes too long over", function()
    refused((" "):rep((16 << 20) + 1), "it has 16777217 bytes, the limit is 16777216")
    assert.equal(ah.null, (ah.yaml.decode((" "):rep(16 << 20))))
    refused(("%TAG !a! tag:a,2000:\n"):rep(1001), "%TAG more than 1000 times")
  end)

  it_reads("takes no longer for nested texts than it may", function()
    local began = os.clock()
    for _, text in ipairs { ("["):rep(99) .. ("a,"):rep(200000) .. ("]"):rep(99),
      ("? "):rep(200000), ("- "):rep(200000), ("{"):rep(200000), ("&a "):rep(200000),
      (": "):rep(200000), ("---\n"):rep(100000), ("'"):rep(200000), ("[*a,"):rep(100000) } do
      ah.yaml.decode(text)
    end
    assert.is_true(os.clock() - began < 60)
  end)

  it_reads("ends with the time of the call around it", function()
    local text, seen = ("["):rep(99) .. ("a,"):rep(1 << 20) .. ("]"):rep(99), nil
    local read = ah.tool { name = "read", description = "Reads.", timeout = 0.05,
      handler = function()
        while true do
          ah.yaml.decode(text)
        end
      end }
    assert(ah.run { model = ah.scripted { { calls = { { name = "read" } } }, "done" },
      tools = { read }, log = function() end, "x",
      on = { tool_invoked = function(e) seen = e end } })
    assert.is_false(seen.success)
  end)

  it_reads("gives a value or words for any bytes", function()
    local parts = { "a", ": ", "- ", "\n", "  ", "[", "]", "{", "}", ",", "&x ", "*x", "!!str ",
      "'", '"', "|", ">", "#", "?", "1", "~", "%", "---\n", "\\", "\0", "\255", "\u{e9}", "\t",
      "<<", "@" }
    local seed = 42
    local function random(n)
      seed = (seed * 1103515245 + 12345) & 0x7fffffff
      return (seed >> 8) % n + 1
    end
    for _ = 1, tonumber(os.getenv "YAML_TEXTS" or 5000) do
      local text = {}
      for i = 1, random(20) do
        text[i] = parts[random(#parts)]
      end
      text = table.concat(text)
      local value, message = ah.yaml.decode(text)
      if message then
        assert.is_nil(value)
        assert.is_truthy(message:find " at line %d+, column %d+", message)
      else
        assert.is_string(ah.json.encode(value), text)
      end
    end
  end)

  it("takes strings alone", function()
    for _, value in ipairs { 1, true, {} } do
      local ok, err = pcall(ah.yaml.decode, value)
      assert.is_false(ok)
      assert.equal("usage", err.code)
      assert.is_truthy(err.message:find("ah.yaml.decode: the text must be a string, found "
        .. type(value), 1, true), err.message)
    end
    assert.is_false(pcall(ah.yaml.decode))
  end)
end)

describe("libyaml", function()
  after_each(command.tidy)

  local SCRIPT = command.quote 'print(require("agenthost").yaml.decode "a: [1, b]")'

  it("is told of by the command's version", function()
    local version = command.agenthost("--version", "--verbose").out:match "\nlibyaml (%S+)\n"
    assert.equal(HERE, version ~= "none")
    assert.is_truthy(version:find(HERE and "^%d+%.%d+" or "none"))
  end)

  it_reads("is opened at its first use, and not before", function()
    local r = command.shell("LD_DEBUG=files $A -e 'print(1)' 2>&1 | grep -c libyaml; "
      .. "LD_DEBUG=files $A -e " .. SCRIPT .. " 2>&1 | grep -c 'calling init.*libyaml'")
    assert.equal("0\n1\n", r.out)
  end)

  it_reads("is asked for by name where it is missing", function()
    local path = os.tmpname()
    os.remove(path)
    local r = command.shell(("mkdir %s && : > %s/libyaml-0.so.2 && LD_LIBRARY_PATH=%s $A -e %s"
      .. "; LD_LIBRARY_PATH=%s $A -v --version | grep libyaml; rm -r %s"):format(path, path, path,
      SCRIPT, path, path))
    assert.is_truthy(r.out:find("^nil\tYAML needs libyaml, which cannot be opened "
      .. "%(Debian: apt%-get install libyaml%-0%-2%): [^\n]*libyaml[^\n]*\nlibyaml none\n$"), r.out)
  end)
end)
