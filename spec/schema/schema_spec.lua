-- JSON Schema and the short forms: validity, messages for faults, defaults, and the limit of a
-- check's time. Cases by line are in spec/data/schema.
local ah = require "agenthost"
local ahtest = require "ahtest"

local DATA = { "spec/data/schema/core.test", "spec/data/schema/applied.test",
  "spec/data/schema/faults.test", "spec/data/schema/patterns.test",
  "spec/data/schema/formats.test" }

-- A build without PCRE2 refuses patterns, and accepts all characters in host names; specs that need
-- it are skipped.
local has_patterns = pcall(ah.schema, { pattern = "a" })

local function can_check(schema)
  return has_patterns or not (schema:find('"pattern', 1, true) or schema:find('"idn-', 1, true)
    or schema:find('"hostname"', 1, true))
end

--- Checks of one case of the data file, by its verb; each returns nil, or the difference.
local CHECKS = {}

function CHECKS.refused(_, json, want, options)
  local ok, message = pcall(ah.schema, json, options)
  if ok then
    return "was not refused"
  elseif message ~= want then
    return "refused with: " .. message
  end
end

local function check_valid(schema, json, want, extra)
  local ok, got = schema:validate_text(json, extra)
  if not ok then
    return "is invalid: " .. got
  elseif got ~= (want or json) then
    return "became: " .. got
  end
end

local function check_invalid(schema, json, want, extra)
  local ok, got = schema:validate_text(json, extra)
  if ok then
    return "is valid"
  elseif got ~= want then
    return "says: " .. got
  end
end

--- The value is invalid, with any message.
function CHECKS.no(schema, json)
  return schema:validate_text(json) and "is valid" or nil
end

function CHECKS.taken(_, pattern)
  local ok, message = pcall(ah.schema, { pattern = pattern })
  return not ok and "was refused: " .. message or nil
end

CHECKS["refused-pattern"] = function(_, pattern, want)
  local ok, message = pcall(ah.schema, { pattern = pattern })
  local words = not ok and message:match("cannot be used: (.*), in ")
  return words ~= want and "was not refused, or with: " .. tostring(message) or nil
end

CHECKS.valid = check_valid
CHECKS.invalid = check_invalid
CHECKS["forbid-valid"] = function(schema, json, want)
  return check_valid(schema, json, want, "forbid")
end
CHECKS.forbid = function(schema, json, want)
  return check_invalid(schema, json, want, "forbid")
end

local ABOUT_PATTERNS = { taken = true, ["refused-pattern"] = true }

--- Calls f(place, verb, schema, json, want) for each case.
local function each_case(file, f)
  local schema, options
  local number = 0
  for line in io.lines(file) do
    number = number + 1
    local verb, rest = line:match("^([%a-]+) (.*)$")
    local json, want = (rest or ""):match("^(.*) => (.*)$")
    if verb == "schema" then
      schema = can_check(rest) and ah.schema(rest, options) or nil
    elseif verb == "options" then
      options = ah.json.decode(rest)
    elseif verb == "refused" and not can_check(rest) then
      goto next
    elseif ABOUT_PATTERNS[verb] and not has_patterns then
      goto next
    elseif verb and (schema or verb == "refused" or ABOUT_PATTERNS[verb]) then
      f(("%s:%d"):format(file, number), verb, schema, json or rest, want, options)
    end
    ::next::
  end
end

describe("a schema", function()
  it("may hold patterns", function()
    if not has_patterns then
      return pending("this build has no PCRE2")
    end
    assert.is_true(ah.schema({ pattern = "^a" }):validate("ab"))
  end)

  for _, file in ipairs(DATA) do
    it("passes every case of " .. file, function()
      local failed, n = {}, 0
      each_case(file, function(place, verb, schema, json, want, options)
        local check = assert(CHECKS[verb], place)
        local ok, wrong = pcall(check, schema, json, want, verb == "refused" and options or nil)
        n = n + 1
        if wrong then
          wrong = ok and wrong or "raises " .. wrong
          failed[#failed + 1] = ("%s: %s %s"):format(place, json, wrong)
        end
      end)
      assert.equal("", table.concat(failed, "\n"))
      assert.is_true(n > 20 or not has_patterns)
    end)
  end

  it("is made of a table, of JSON text, or of another schema", function()
    local a = ah.schema { type = "object", properties = { x = { type = "integer" } } }
    local b = ah.schema '{ "properties": { "x": {"type":"integer"} }, "type": "object" }'
    assert.equal('{"properties":{"x":{"type":"integer"}},"type":"object"}', a:text())
    assert.equal(a:text(), b:text())
    assert.equal(a:text(), ah.schema.compile(b):text())
    assert.equal("ah.schema " .. a:text(), tostring(a))
  end)

  it("compiles to the same text whatever the order of its keys", function()
    local a = ah.schema '{"type":"string","maxLength":3,"title":"t"}'
    assert.equal('{"maxLength":3,"title":"t","type":"string"}', a:text())
  end)

  it("is refused with the place of the script", function()
    local ok, message = pcall(function()
      return ah.schema { type = "strng" }
    end)
    assert.is_false(ok)
    assert.matches("^spec/schema/schema_spec.lua:%d+: schema: keyword .type. at the root", message)
  end)

  it("is refused where it is no JSON, or no value that JSON has", function()
    assert.has_error(function() ah.schema("{") end)
    assert.has_error(function() ah.schema(print) end)
    assert.has_error(function() ah.schema { default = print } end)
    assert.has_error(function() ah.schema(nil) end)
    assert.has_error(function() ah.schema() end)
  end)

  it("may be 64 schemas deep and no deeper", function()
    local function nested(n)
      return ('{"items":'):rep(n - 1) .. "{}" .. ("}"):rep(n - 1)
    end
    assert.truthy(ah.schema(nested(64)):validate_text(("["):rep(100) .. ("]"):rep(100)))
    local ok, message = pcall(ah.schema, nested(65))
    assert.is_false(ok)
    assert.truthy(message:find("is more than 64 schemas deep", 1, true))
  end)

  it("may hold more properties than its marks have room for without memory", function()
    local properties, required, value = {}, {}, {}
    for i = 1, 300 do
      local name = ("p%03d"):format(i)
      properties[name] = { type = "integer" }
      required[i] = name
      value[name] = i
    end
    local s = ah.schema { properties = properties, required = required }
    assert.is_true((s:validate(value)))
    value.p129, value.p300 = nil, nil
    local ok, message = s:validate(value)
    assert.is_nil(ok)
    assert.equal("/p129: is required; /p300: is required", message)
  end)

  it("cuts long pointers and messages", function()
    local long = ("x"):rep(5000)
    local s = ah.schema { additionalProperties = { type = "integer" } }
    local _, message, faults = s:validate { [long] = long }
    assert.is_true(#message < 700)
    assert.equal("/" .. ("x"):rep(511) .. "...", faults[1].pointer)
  end)

  it("grows no default beyond a mebibyte", function()
    local ok, message = pcall(ah.schema, {
      default = ah.array((function()
        local t = {}
        for i = 1, 10000 do t[i] = ah.object {} end
        return t
      end)()),
      items = { properties = { x = { default = ("x"):rep(1000) } } },
    })
    assert.is_false(ok)
    assert.truthy(message:find("grows over 1 MiB", 1, true))
  end)
end)

describe("equal schemas", function()
  --- Returns the number of live schemas beyond `before`; the further arguments stay alive
  -- meanwhile.
  local function more(before, ...)
    collectgarbage()
    collectgarbage()
    return ahtest.schemas() - before, ...
  end

  it("are compiled once and go with their last user", function()
    local other = ah.agent { model = "demo/echo" } -- its session has a schema of its own
    local before, agents = more(0), {}
    for i = 1, 1000 do
      agents[i] = ah.agent { model = "demo/echo", tools = { ah.tool {
        name = "find", description = "Finds.", handler = function() end,
        params = { shared = "string", limit = "integer = 10" },
      } } }
    end
    assert.equal(1, (more(before, agents)))
    agents = { agents[1000] }
    assert.equal(1, (more(before, agents)))
    agents[1] = nil
    assert.equal(0, (more(before, agents, other)))
  end)

  it("are those of the same text, options and documents, in any order", function()
    local before, documents = more(0), nil
    local all = {
      ah.schema { format = "email", minLength = 77 },
      ah.schema '{"minLength":77, "format":"email"}',
      ah.schema({ format = "email", minLength = 77 }, { formats = false }),
      ah.schema({ format = "email", minLength = 77 }, { documents = {} }),
    }
    assert.equal(1, more(before))
    local asserted = ah.schema(all[1], { formats = true })
    assert.equal(2, more(before))
    assert.is_true((all[1]:validate(("x"):rep(77))))
    assert.is_nil((asserted:validate(("x"):rep(77))))
    local list = {}
    for i = 1, 50 do
      documents = { ["http://e.com/" .. (i % 2 == 0 and "b" or "a")] = { type = "null" },
        ["http://e.com/" .. (i % 2 == 0 and "a" or "b")] = { type = "null" } }
      list[i] = ah.schema({ ["$ref"] = "http://e.com/a" }, { documents = documents })
    end
    assert.equal(3, more(before))
    documents["http://e.com/a"] = true
    list[51] = ah.schema({ ["$ref"] = "http://e.com/a" }, { documents = documents })
    assert.equal(4, more(before))
    assert.is_true((list[51]:validate(5)))
    assert.is_nil((list[1]:validate(5)))
    list, asserted, all = nil, nil, nil
    assert.equal(0, (more(before, list, asserted, all)))
  end)

  it("may be many, and few again", function()
    local before, many = more(0), {}
    for round = 1, 2 do
      for i = 1, 3000 do
        many[i] = ah.schema { minimum = i, title = "many" }
      end
      assert.equal(3000, more(before), round)
    end
    for i = 1, 3000, 2 do
      many[i] = nil
    end
    assert.equal(1500, more(before))
    assert.is_nil((many[2000]:validate(1999)))
    assert.is_true((many[2000]:validate(2000)))
    many = nil
    assert.equal(0, (more(before, many)))
  end)

  it("leave none behind that was refused", function()
    local before = more(0)
    assert.is_false((pcall(ah.schema, { type = "strange" })))
    assert.equal(0, more(before))
  end)
end)

describe("schema:validate", function()
  local s = ah.schema {
    type = "object",
    properties = {
      name = { type = "string" },
      limit = { type = "integer", default = 10, maximum = 50 },
      tags = { type = "array", items = { type = "string" }, default = ah.array {} },
    },
    required = { "name" },
  }

  it("returns true and the value with its defaults", function()
    local given = { name = "x" }
    local ok, value = s:validate(given)
    assert.is_true(ok)
    assert.same({ name = "x", limit = 10, tags = {} }, value)
    assert.equal("integer", math.type(value.limit))
    assert.same({ name = "x" }, given)
  end)

  it("returns nil, a line for the model, and the faults", function()
    local ok, message, faults = s:validate { name = 5, limit = 60 }
    assert.is_nil(ok)
    assert.equal("/name: must be a string, found 5; /limit: must be at most 50, found 60", message)
    assert.same({
      { pointer = "/name", rule = "type", message = "must be a string, found 5" },
      { pointer = "/limit", rule = "maximum", message = "must be at most 50, found 60" },
    }, faults)
  end)

  it("forbids unknown members when asked to", function()
    local ok, message = s:validate({ name = "x", limits = 1 }, "forbid")
    assert.is_nil(ok)
    assert.equal("/limits: unknown property; did you mean 'limit'? known: limit, name, tags",
      message)
    assert.is_true((s:validate { name = "x", limits = 1 }))
    assert.has_error(function() s:validate({ name = "x" }, "forbidden") end)
  end)

  it("coerces where asked, and tells what", function()
    local numbers = ah.schema {
      properties = {
        n = { type = "integer" }, b = { type = "boolean" }, x = { type = "number" },
        l = { type = "array", items = { type = "integer" } }, s = { type = "string" },
        o = { anyOf = { { type = "integer", minimum = 2 }, { type = "null" } } },
      },
    }
    local ok, value, told = numbers:validate_text(
      '{"n":"3","b":"true","x":"-1.5e1","l":"7","s":"5","o":"4"}', { coerce = true })
    assert.is_true(ok)
    assert.equal('{"n":3,"b":true,"x":-1.5e1,"l":[7],"s":"5","o":4}', value)
    assert.equal('/n: took "3" as 3; /b: took "true" as true; /x: took "-1.5e1" as -1.5e1; '
      .. '/l: took "7" as a list of it; /o: took "4" as 4; /l/0: took "7" as 7', told)
    for _, json in ipairs { '{"n":"3.5"}', '{"n":"x"}', '{"n":" 3"}', '{"b":"yes"}', '{"s":5}',
      '{"n":true}', '{"n":["3"]}', '{"o":"1"}', '{"l":["x"]}' } do
      assert.is_nil((numbers:validate_text(json, { coerce = true })), json)
    end
    assert.is_nil((numbers:validate { n = "3" }))
    assert.equal(2, select("#", numbers:validate({ n = 3 }, { coerce = true })))
    assert.has_error(function() numbers:validate({}, { corce = true }) end)
  end)

  it("takes null as absent where that is asked for and the member may be absent", function()
    local several = ah.schema { type = "object", allOf = {
      { properties = { b = { type = "integer" }, d = { type = "integer", default = 3 } } },
      { properties = { a = { type = "integer" } }, minProperties = 1 } } }
    for json, left in pairs {
      ['{"b":null,"a":null,"x":1}'] = '{"x":1,"d":3}',
      ['{"x":1,"b":null , "a":null}'] = '{"x":1 ,"d":3}',
      ['{"a" : null , "x":1,"b":null}'] = '{ "x":1,"d":3}',
      ['{"d":null,"a":1}'] = '{"a":1,"d":3}',
    } do
      local ok, found = several:validate_text(json, { null_absent = true })
      assert.is_true(ok, json)
      assert.equal(left, found)
      assert.is_nil((several:validate_text(json)), json)
    end
    local _, words = several:validate_text('{"a":null}', { null_absent = true })
    assert.truthy(words:find("at least 1", 1, true), words)
    local keeps = ah.schema { type = "object", required = { "r" }, properties = {
      r = { type = "string" }, n = { type = { "null", "string" } }, e = { enum = { "x" } } } }
    assert.is_nil((keeps:validate_text('{"r":null}', { null_absent = true })))
    assert.equal('{"r":"","n":null}',
      select(2, keeps:validate_text('{"r":"","n":null,"e":null}', { null_absent = true })))
    assert.error_matches(function() keeps:validate({}, { null = true }) end, "null_absent")
  end)

  it("fills in nothing that makes a value deeper than JSON may be", function()
    local function nested(n)
      return ("["):rep(n) .. "{}" .. ("]"):rep(n)
    end
    local deep = ah.schema('{"items":{"$ref":"#"},"properties":{"x":{"default":'
      .. nested(300) .. "}}}")
    assert.is_true((deep:validate_text(nested(210))))
    for _, check in ipairs { "validate_text", "validate" } do
      local value = check == "validate" and ah.json.decode(nested(211)) or nested(211)
      local ok, message, faults = deep[check](deep, value)
      assert.is_nil(ok)
      assert.equal("the value with its defaults is larger than 64 MiB or deeper than 512 levels",
        message)
      assert.same({}, faults)
    end
    local lists = ah.schema '{"items":{"$ref":"#"},"additionalProperties":{"type":"array"}}'
    local inner = ("["):rep(510) .. '{"x":1}' .. ("]"):rep(510)
    assert.is_true((lists:validate_text(inner:sub(2, -2), { coerce = true })))
    assert.is_nil((lists:validate_text("[" .. inner .. "]", { coerce = true })))
  end)

  it("says what is no JSON value", function()
    local ok, message, faults = s:validate { name = print }
    assert.is_nil(ok)
    assert.truthy(message:find("function", 1, true))
    assert.same({}, faults)
  end)

  it("says what is no JSON text", function()
    local ok, message = s:validate_text("{")
    assert.is_nil(ok)
    assert.truthy(message:find("the value is not JSON", 1, true))
  end)

  it("names the rule of each fault", function()
    local rules = {
      type = '{"type":"null"}', enum = '{"enum":[0]}', const = '{"const":0}',
      minimum = '{"minimum":2}', maximum = '{"maximum":0}',
      exclusiveMinimum = '{"exclusiveMinimum":1}',
      exclusiveMaximum = '{"exclusiveMaximum":1}', multipleOf = '{"multipleOf":2}',
      anyOf = '{"anyOf":[{"type":"null"}]}', ["false"] = "false",
    }
    for rule, schema in pairs(rules) do
      local _, _, faults = ah.schema(schema):validate(1)
      assert.equal(rule, faults[1].rule)
    end
  end)
end)

describe("a short form", function()
  --- Returns the schema of property x; asserts that the property is required, or is not.
  local function of(form, required, key)
    local head, tail = '{"additionalProperties":false,"properties":{"x":', '},"type":"object"}'
    if required then
      tail = '},"required":["x"],"type":"object"}'
    end
    local text = ah.schema.short({ [key or "x"] = form }):text()
    assert.equal(head, text:sub(1, #head))
    assert.equal(tail, text:sub(-#tail))
    return text:sub(#head + 1, -#tail - 1)
  end

  local function refused(params)
    local ok, message = pcall(ah.schema.short, params)
    assert.is_false(ok)
    return message
  end

  it("names a type", function()
    for _, name in ipairs { "string", "integer", "number", "boolean", "object", "array", "null" } do
      assert.equal(('{"type":"%s"}'):format(name), of(name, true))
    end
    assert.equal("{}", of("any", true))
    assert.equal("{}", of("any?"))
    assert.equal('{"type":"string"}', of(" string "  , true))
  end)

  it("is optional with a question mark after the type or the key", function()
    assert.equal('{"type":"integer"}', of("integer?"))
    assert.equal('{"type":"integer"}', of("integer", false, "x?"))
    assert.equal('{"items":{"type":"string"},"type":"array"}', of({ "string" }, false, "x?"))
  end)

  it("makes lists", function()
    assert.equal('{"items":{"type":"string"},"type":"array"}', of("string[]", true))
    assert.equal('{"items":{"items":{"type":"null"},"type":"array"},"type":"array"}',
      of("null[][]?"))
    assert.equal('{"items":{"type":"string"},"type":"array"}', of({ "string" }, true))
    assert.equal('{"items":{"additionalProperties":false,"properties":{"a":{"type":"string"}},'
      .. '"required":["a"],"type":"object"},"type":"array"}', of({ { a = "string" } }, true))
    assert.equal('{"items":{"enum":["a","b"],"type":"string"},"type":"array"}', of("a|b[]", true))
  end)

  it("takes ranges", function()
    assert.equal('{"maximum":10,"minimum":1,"type":"integer"}', of("integer 1..10", true))
    assert.equal('{"maximum":1,"minimum":0.5,"type":"number"}', of("number 0.5 .. 1", true))
    assert.equal('{"maxLength":80,"minLength":1,"type":"string"}', of("string 1..80", true))
    assert.equal('{"minimum":-3,"type":"integer"}', of("integer -3..", true))
    assert.equal('{"items":{"maxLength":2,"type":"string"},"type":"array"}',
      of("string ..2[]", true))
    assert.equal('{"default":3,"description":"how many","maximum":5,"type":"integer"}',
      of("integer ..5 = 3 : how many"))
    for form, words in pairs {
      ["boolean 1..2"] = "'boolean' has no range", ["integer .."] = "has no ends",
      ["integer 3..1"] = "ends before it begins", ["integer 1.5..2"] = "is not whole",
      ["string -1..2"] = "is below 0", ["integer a..b"] = "is no number",
      ["number nan..1"] = "is no number",
    } do
      assert.truthy(refused({ x = form }):find(words, 1, true), form)
    end
  end)

  it("is what a schema is described in", function()
    local described = ah.schema.describe(ah.schema.short {
      city = "string 1..80: such as Paris", unit = "celsius|fahrenheit = celsius",
      near = { lat = "number -90..90", lon = "number" }, tags = "string[]?", any = "any?",
    })
    assert.equal([[
{
  any?: any
  city: string 1..80  -- such as Paris
  near: {
    lat: number -90..90
    lon: number
  }
  tags?: string[]
  unit?: celsius|fahrenheit = "celsius"
}]], described)
    assert.equal("{\n  a?: integer\n  ...\n}",
      ah.schema.describe { type = "object", properties = { a = { type = "integer" } } })
    assert.equal('{"anyOf":[{"type":"string"},{"type":"null"}]}',
      ah.schema.describe { anyOf = { { type = "string" }, { type = "null" } } })
    assert.equal("true", ah.schema.describe(true))
    assert.equal('{ a|b }', ah.schema.describe { type = "array", items = { enum = { "a", "b" } } })
    assert.has_error(function() ah.schema.describe { type = "x" } end)
  end)

  it("makes choices of words", function()
    assert.equal('{"enum":["red","green","blue"],"type":"string"}', of("red|green|blue", true))
    assert.equal('{"default":"in work","enum":["done","in work"],"type":"string"}',
      of("done | in work = in work"))
  end)

  it("takes defaults", function()
    assert.equal('{"default":10,"type":"integer"}', of("integer = 10"))
    assert.equal('{"default":10,"type":"integer"}', of("integer? = 10"))
    assert.equal('{"default":false,"type":"boolean"}', of("boolean = false"))
    assert.equal('{"default":null}', of("any = null"))
    assert.equal('{"default":"a b","type":"string"}', of("string = a b"))
    assert.equal('{"default":"5","type":"string"}', of("string = 5"))
    assert.equal('{"default":"a: \\"b","type":"string"}', of([[string = "a: \"b"]]))
    assert.equal('{"default":"http://x","description":"the address","type":"string"}',
      of("string = http://x : the address"))
    assert.equal('{"default":["a"],"items":{"type":"string"},"type":"array"}',
      of('string[] = ["a"]'))
    assert.equal('{"default":{"a":1},"description":"d: e","type":"object"}',
      of('object = {"a": 1}: d: e'))
  end)

  it("takes a description", function()
    assert.equal('{"description":"the customer\'s full name","type":"string"}',
      of("string: the customer's full name", true))
    assert.equal('{"description":"at most this many","type":"integer"}',
      of("integer? : at most this many"))
    assert.equal('{"default":1,"description":"x = y: z?","type":"integer"}',
      of("integer = 1 : x = y: z?"))
    assert.equal('{"description":"of [these]","items":{"type":"string"},"type":"array"}',
      of("string[]: of [these]", true))
  end)

  it("nests objects, each closed, with sorted required names", function()
    assert.equal('{"additionalProperties":false,"properties":{"b":{"type":"string"},'
      .. '"c":{"type":"string"},"d":{"type":"string"}},"required":["b","c"],"type":"object"}',
      of({ c = "string", b = "string", d = "string?" }, true))
  end)

  it("takes a schema wherever a form may stand", function()
    local positive = ah.schema { type = "integer", minimum = 1 }
    assert.equal('{"minimum":1,"type":"integer"}', of(positive, true))
    assert.equal('{"items":{"minimum":1,"type":"integer"},"type":"array"}', of({ positive }, true))
    assert.equal(positive:text(), ah.schema.short(positive):text())
  end)

  it("may be empty", function()
    assert.equal('{"additionalProperties":false,"properties":{},"type":"object"}',
      ah.schema.short({}):text())
  end)

  it("is refused with the place and what was meant", function()
    local types = "any, array, boolean, integer, null, number, object, string"
    local cases = {
      { { limit = "integr" }, "params.limit: 'integr' is no type (did you mean 'integer'?)" },
      { { x = "int?" }, "params.x: 'int' is no type (did you mean 'integer'?)" },
      { { x = "float" }, "params.x: 'float' is no type (did you mean 'number'?)" },
      { { x = "zzz" }, "params.x: 'zzz' is no type; types are " .. types
        .. ', and a choice of words is "a|b"' },
      { { a = { b = { { c = "strin" } } } },
        "params.a.b[].c: 'strin' is no type (did you mean 'string'?)" },
      { { x = "" }, "params.x: a form begins with a type; types are " .. types },
      { { x = "string|null" }, "params.x: 'string' in the choice 'string|null' is a type; "
        .. "use ah.schema for several types" },
      { { x = "a|b|a" }, "params.x: 'a' comes twice in the choice 'a|b|a'" },
      { { x = "a|" }, "params.x: an empty word in the choice 'a|'" },
      { { x = "integer = ten" }, "params.x: the default 'ten' is not JSON" },
      { { x = "string =" }, "params.x: the default '' is not JSON, nor a bare word" },
      { { x = "string?[]" }, "params.x: cannot read '[]' in 'string?[]'; "
        .. "after the type come [], ?, = default, : description" },
      { { x = {} }, 'params.x: an empty table says nothing; write "object" or "array"' },
      { { x = { "string", a = "string" } }, "params.x: mixes named properties with a list" },
      { { x = { "a", "b" } }, 'params.x: a list has exactly one form, { "string" }, found 2; '
        .. 'a choice is "a|b"' },
      { { x = { "string?" } }, "params.x[]: items of a list have no `?` and no default" },
      { { x = "string", ["x?"] = "string" }, "params.x: is given twice, with and without `?`" },
      { { ["?"] = "string" }, "params: a property without a name" },
      { { [true] = "string" }, "params: a boolean cannot name a property" },
      { { x = true },
        "params.x: expected a form (a string, a table or an ah.schema), got a boolean" },
      { "string", "params: expected a table of forms, got a string" },
      { { x = 'integer = "x"' }, "schema: keyword 'default' at /properties/x does not conform: "
        .. 'must be an integer, found "x"' },
    }
    for _, case in ipairs(cases) do
      assert.equal(case[2], refused(case[1]))
    end
  end)

  it("is refused when it holds itself", function()
    local params = {}
    params.x = params
    assert.truthy(refused(params):find("is more than 64 forms deep", 1, true))
  end)
end)

-- A second validator, as simple as possible. It works on tagged tables of the generator, so that it
-- shares nothing with the code under test: { "null" }, { "bool", b }, { "num", n }, { "str", s }, {
-- "arr", list }, { "obj", keys, by_key }.
local reference = {}

local function same(a, b)
  if a[1] ~= b[1] then
    return false
  elseif a[1] == "arr" then
    for i = 1, math.max(#a[2], #b[2]) do
      if not (a[2][i] and b[2][i] and same(a[2][i], b[2][i])) then
        return false
      end
    end
    return true
  elseif a[1] == "obj" then
    for key, value in pairs(a[3]) do
      if not (b[3][key] and same(value, b[3][key])) then
        return false
      end
    end
    return #a[2] == #b[2]
  end
  return a[2] == b[2]
end

local function is_integer(v)
  return v[1] == "num" and math.tointeger(v[2]) ~= nil
end

local IS = {
  null = function(v) return v[1] == "null" end,
  boolean = function(v) return v[1] == "bool" end,
  integer = is_integer,
  number = function(v) return v[1] == "num" end,
  string = function(v) return v[1] == "str" end,
  array = function(v) return v[1] == "arr" end,
  object = function(v) return v[1] == "obj" end,
}

local RULES = {
  type = function(rule, v)
    for _, name in ipairs(type(rule) == "table" and rule or { rule }) do
      if IS[name](v) then
        return true
      end
    end
    return false
  end,
  enum = function(list, v)
    for _, one in ipairs(list) do
      if same(one, v) then
        return true
      end
    end
    return false
  end,
  const = function(one, v) return same(one, v) end,
  minimum = function(n, v) return v[1] ~= "num" or v[2] >= n end,
  maximum = function(n, v) return v[1] ~= "num" or v[2] <= n end,
  exclusiveMinimum = function(n, v) return v[1] ~= "num" or v[2] > n end,
  exclusiveMaximum = function(n, v) return v[1] ~= "num" or v[2] < n end,
  multipleOf = function(n, v) return v[1] ~= "num" or v[2] % n == 0 end,
  minLength = function(n, v) return v[1] ~= "str" or utf8.len(v[2]) >= n end,
  maxLength = function(n, v) return v[1] ~= "str" or utf8.len(v[2]) <= n end,
  minItems = function(n, v) return v[1] ~= "arr" or #v[2] >= n end,
  maxItems = function(n, v) return v[1] ~= "arr" or #v[2] <= n end,
  minProperties = function(n, v) return v[1] ~= "obj" or #v[2] >= n end,
  maxProperties = function(n, v) return v[1] ~= "obj" or #v[2] <= n end,
  required = function(names, v)
    for _, name in ipairs(names) do
      if v[1] == "obj" and not v[3][name] then
        return false
      end
    end
    return true
  end,
  uniqueItems = function(on, v)
    for i, a in ipairs(on and v[1] == "arr" and v[2] or {}) do
      for j = 1, i - 1 do
        if same(a, v[2][j]) then
          return false
        end
      end
    end
    return true
  end,
}

-- Keywords that contain schemas; each adds to `seen` what it evaluated: names of members, indexes
-- of items.
local APPLIED = {}

--- Returns true if the value conforms to an in-place schema; then its evaluated parts are added to
-- `seen`.
local function fits(schema, v, seen)
  local ok, inner = reference.evaluate(schema, v)
  for key in pairs(ok and inner or {}) do
    seen[key] = true
  end
  return ok
end

local function count_fits(schemas, v, seen)
  local n = 0
  for _, schema in ipairs(schemas) do
    n = n + (fits(schema, v, seen) and 1 or 0)
  end
  return n
end

function APPLIED.allOf(schemas, v, seen) return count_fits(schemas, v, seen) == #schemas end
function APPLIED.anyOf(schemas, v, seen) return count_fits(schemas, v, seen) > 0 end
function APPLIED.oneOf(schemas, v, seen) return count_fits(schemas, v, seen) == 1 end
APPLIED["not"] = function(schema, v) return not fits(schema, v, {}) end
APPLIED["if"] = function(schema, v, seen, whole)
  local branch = whole["else"]
  if fits(schema, v, seen) then
    branch = whole["then"]
  end
  return branch == nil or fits(branch, v, seen)
end
APPLIED["then"] = function() return true end
APPLIED["else"] = APPLIED["then"]
APPLIED["$ref"] = function(name, v, seen)
  return fits(reference.root["$defs"][name:sub(9)], v, seen)
end
APPLIED["$defs"] = APPLIED["then"]

local function each_item(v, from, schema, seen)
  for i = from, v[1] == "arr" and #v[2] or 0 do
    if not reference.check(schema, v[2][i]) then
      return false
    end
    seen[i] = true
  end
  return true
end

function APPLIED.items(schema, v, seen, whole)
  return each_item(v, #(whole.prefixItems or {}) + 1, schema, seen)
end
function APPLIED.prefixItems(schemas, v, seen)
  for i = 1, v[1] == "arr" and math.min(#schemas, #v[2]) or 0 do
    if not reference.check(schemas[i], v[2][i]) then
      return false
    end
    seen[i] = true
  end
  return true
end
function APPLIED.contains(schema, v, seen)
  local n = 0
  for i, item in ipairs(v[1] == "arr" and v[2] or {}) do
    if reference.check(schema, item) then
      n, seen[i] = n + 1, true
    end
  end
  return v[1] ~= "arr" or n > 0
end

--- Checks the members whose name `wanted` accepts.
local function each_member(v, wanted, schema_of, seen)
  for _, key in ipairs(v[1] == "obj" and v[2] or {}) do
    if wanted(key) then
      if not reference.check(schema_of(key), v[3][key]) then
        return false
      end
      seen[key] = true
    end
  end
  return true
end

local function is_b(key) return key:sub(-1) == "b" end

function APPLIED.properties(schemas, v, seen)
  return each_member(v, function(key) return schemas[key] ~= nil end,
    function(key) return schemas[key] end, seen)
end
function APPLIED.patternProperties(schemas, v, seen) -- the only pattern here is b$
  return each_member(v, is_b, function() return schemas["b$"] end, seen)
end
function APPLIED.additionalProperties(schema, v, seen, whole)
  return each_member(v, function(key)
    return (whole.properties or {})[key] == nil and not (whole.patternProperties and is_b(key))
  end, function() return schema end, seen)
end
function APPLIED.propertyNames(schema, v)
  for _, key in ipairs(v[1] == "obj" and v[2] or {}) do
    if not reference.check(schema, { "str", key }) then
      return false
    end
  end
  return true
end
function APPLIED.dependentRequired(lists, v)
  for key, names in pairs(lists) do
    if v[1] == "obj" and v[3][key] and not RULES.required(names, v) then
      return false
    end
  end
  return true
end
function APPLIED.dependentSchemas(schemas, v, seen)
  for key, schema in pairs(schemas) do
    if v[1] == "obj" and v[3][key] and not fits(schema, v, seen) then
      return false
    end
  end
  return true
end
function APPLIED.unevaluatedProperties(schema, v, seen)
  return each_member(v, function(key) return not seen[key] end, function() return schema end, seen)
end
function APPLIED.unevaluatedItems(schema, v, seen)
  for i, item in ipairs(v[1] == "arr" and v[2] or {}) do
    if not seen[i] and not reference.check(schema, item) then
      return false
    end
    seen[i] = true
  end
  return true
end

--- Returns true if v conforms, and the set of its evaluated parts. unevaluated* come last.
function reference.evaluate(schema, v)
  local seen = {}
  if type(schema) == "boolean" then
    return schema, seen
  end
  local names = {}
  for keyword in pairs(schema) do
    local late = keyword:find("^unevaluated") and "2" or "1"
    names[#names + 1] = late .. keyword
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local keyword = name:sub(2)
    local ok
    if APPLIED[keyword] then
      ok = APPLIED[keyword](schema[keyword], v, seen, schema)
    else
      ok = RULES[keyword](schema[keyword], v)
    end
    if not ok then
      return false, {}
    end
  end
  return true, seen
end

function reference.check(schema, v)
  return (reference.evaluate(schema, v))
end

-- Random schemas and values from a small set, so that they often match.
local state

--- Returns a number from 1 to n; the sequence is the same on every machine.
local function random(n)
  state = (state * 1103515245 + 12345) % 0x80000000
  return state // 65536 % n + 1
end

local function one_of(list)
  return list[random(#list)]
end

local NAMES = { "a", "b", "ab", "ä", "a/b" }
local STRINGS = { "", "a", "b", "äb", "abc", "😀", "a\nb", "\"\\" }
local NUMBERS = { -1, 0, 1, 2, 3, 4.5, 2.0, -0.5, 6, 9007199254740993, 1e15 }
local TYPES = { "null", "boolean", "integer", "number", "string", "array", "object" }

local function random_value(depth)
  local kind = random(depth > 0 and 8 or 5)
  if kind == 1 then
    return { "null" }
  elseif kind == 2 then
    return { "bool", random(2) == 1 }
  elseif kind == 3 or kind == 4 then
    return { "num", one_of(NUMBERS) }
  elseif kind == 5 then
    return { "str", one_of(STRINGS) }
  elseif kind == 6 then
    local list = {}
    for i = 1, random(4) - 1 do
      list[i] = random_value(depth - 1)
    end
    return { "arr", list }
  end
  local keys, by_key = {}, {}
  for _ = 1, random(4) - 1 do
    local key = one_of(NAMES)
    if not by_key[key] then
      keys[#keys + 1] = key
      by_key[key] = random_value(depth - 1)
    end
  end
  return { "obj", keys, by_key }
end

local random_schema

local function random_list(n, f, ...)
  local list = {}
  for i = 1, n do
    list[i] = f(...)
  end
  return list
end

local function random_names()
  local names, seen = {}, {}
  for _ = 1, random(3) do
    local name = one_of(NAMES)
    if not seen[name] then
      seen[name] = true
      names[#names + 1] = name
    end
  end
  return names
end

local function random_type()
  local a, b = one_of(TYPES), one_of(TYPES)
  return (random(3) > 1 or a == b) and a or { a, b }
end

local function random_inner(depth)
  return random_schema(depth - 1)
end

local function random_branches(depth)
  return random_list(random(3), random_schema, depth - 1)
end

local function random_members(depth)
  local schemas = {}
  for _, name in ipairs(random_names()) do
    schemas[name] = random_schema(depth - 1)
  end
  return schemas
end

local MAKERS = {
  { "type", random_type }, { "type", random_type }, { "type", random_type },
  { "enum", function() return random_list(random(5), random_value, 1) end },
  { "const", function() return random_value(1) end },
  { "minimum", function() return one_of(NUMBERS) end },
  { "maximum", function() return one_of(NUMBERS) end },
  { "exclusiveMinimum", function() return one_of(NUMBERS) end },
  { "exclusiveMaximum", function() return one_of(NUMBERS) end },
  { "multipleOf", function() return random(3) end },
  { "minLength", function() return random(3) - 1 end },
  { "maxLength", function() return random(4) - 1 end },
  { "minItems", function() return random(3) - 1 end },
  { "maxItems", function() return random(3) - 1 end },
  { "minProperties", function() return random(3) - 1 end },
  { "maxProperties", function() return random(3) - 1 end },
  { "required", random_names },
  { "additionalProperties", function(depth) return random_schema(depth - 1) end },
  { "items", function(depth) return random_schema(depth - 1) end },
  { "anyOf", random_branches }, { "allOf", random_branches }, { "oneOf", random_branches },
  { "prefixItems", random_branches },
  { "not", random_inner }, { "if", random_inner }, { "then", random_inner },
  { "else", random_inner }, { "contains", random_inner }, { "propertyNames", random_inner },
  { "unevaluatedProperties", random_inner }, { "unevaluatedItems", random_inner },
  { "unevaluatedProperties", function() return false end },
  { "unevaluatedItems", function() return false end },
  { "uniqueItems", function() return true end },
  { "patternProperties", function(depth) return { ["b$"] = random_schema(depth - 1) } end },
  { "dependentRequired", function() return { [one_of(NAMES)] = random_names() } end },
  { "dependentSchemas", random_members }, { "properties", random_members },
  { "properties", random_members },
  { "$ref", function() return "#/$defs/" .. one_of { "p", "q" } end },
}

-- Keywords that contain no schemas, for schemas at the greatest depth.
local IS_FLAT = { type = true, minimum = true, maximum = true, minLength = true, maxItems = true }

function random_schema(depth)
  if random(12) == 1 then
    return random(3) > 1
  end
  local schema = {}
  for _ = 1, random(3) - (depth > 0 and 0 or 1) do
    local maker = one_of(MAKERS)
    if (depth > 0 or IS_FLAT[maker[1]]) and can_check(('"%s"'):format(maker[1])) then
      schema[maker[1]] = maker[2](depth)
    end
  end
  return schema
end

--- Encodes generated values as JSON, independently of the code under test.
local json = {}

function json.string(s)
  return '"' .. s:gsub('[%c"\\]', function(c) return ("\\u%04x"):format(c:byte()) end) .. '"'
end

function json.number(n)
  return math.type(n) == "integer" and ("%d"):format(n) or ("%.17g"):format(n)
end

function json.list(list, write)
  local out = {}
  for i, one in ipairs(list) do
    out[i] = write(one)
  end
  return "[" .. table.concat(out, ",") .. "]"
end

function json.value(v)
  if v[1] == "null" then
    return "null"
  elseif v[1] == "bool" then
    return tostring(v[2])
  elseif v[1] == "num" then
    return json.number(v[2])
  elseif v[1] == "str" then
    return json.string(v[2])
  elseif v[1] == "arr" then
    return json.list(v[2], json.value)
  end
  local out = {}
  for i, key in ipairs(v[2]) do
    out[i] = json.string(key) .. ": " .. json.value(v[3][key])
  end
  return "{" .. table.concat(out, ",") .. "}"
end

function json.object(map, write)
  local out = {}
  for key, value in pairs(map) do
    out[#out + 1] = json.string(key) .. ":" .. write(value, key)
  end
  table.sort(out)
  return "{" .. table.concat(out, ",") .. "}"
end

local function write_names(names)
  return json.list(names, json.string)
end

-- The writer of a keyword's value if it is neither text nor number; without one it is a schema.
local WRITE = { enum = "values", const = "value", required = "names", type = "names" }
for _, keyword in ipairs { "properties", "patternProperties", "dependentSchemas", "$defs" } do
  WRITE[keyword] = "members"
end
for _, keyword in ipairs { "anyOf", "allOf", "oneOf", "prefixItems" } do
  WRITE[keyword] = "list"
end

local WRITERS = {
  values = function(rule) return json.list(rule, json.value) end,
  value = function(rule) return json.value(rule) end,
  names = write_names,
  members = function(rule) return json.object(rule, json.schema) end,
  list = function(rule) return json.list(rule, json.schema) end,
}

local function write_rule(rule, keyword)
  if type(rule) == "string" then
    return json.string(rule)
  elseif type(rule) == "number" then
    return json.number(rule)
  elseif keyword == "dependentRequired" then
    return json.object(rule, write_names)
  end
  return (WRITERS[WRITE[keyword]] or json.schema)(rule)
end

function json.schema(schema)
  return type(schema) == "boolean" and tostring(schema) or json.object(schema, write_rule)
end

--- Returns the schemas that references lead to; neither of them has references.
local function random_defs()
  local makers = MAKERS
  MAKERS = random_list(0)
  for _, maker in ipairs(makers) do
    if maker[1] ~= "$ref" then
      MAKERS[#MAKERS + 1] = maker
    end
  end
  local defs = { p = random_schema(2), q = random_schema(1) }
  MAKERS = makers
  return defs
end

describe("the validator", function()
  it("agrees with a plain reference on random schemas and values", function()
    state = 20240229
    local yes, no = 0, 0
    for _ = 1, 2000 do
      local schema = random_schema(3)
      if type(schema) == "table" then
        schema["$defs"] = random_defs()
      else
        schema = { allOf = { schema }, ["$defs"] = random_defs() }
      end
      reference.root = schema
      local text = json.schema(schema)
      local compiled = ah.schema(text)
      for _ = 1, 5 do
        local value = random_value(3)
        local want = reference.check(schema, value)
        local ok, got = compiled:validate_text(json.value(value))
        if (ok == true) ~= want then
          error(("schema %s value %s: expected %s, got %s"):format(
            text, json.value(value), want, got))
        end
        yes, no = yes + (want and 1 or 0), no + (want and 0 or 1)
      end
    end
    assert.is_true(yes > 1000 and no > 1000)
  end)
end)

-- Numbers by their digits, compared in decimal: a number is { sign, digits, zeros } and equals sign
-- * digits * 10^zeros; digits is a string without leading zeros.
local paper = {}

--- Returns one of the many forms of the number.
function paper.write(n)
  local digits, e = n.digits, n.zeros
  local padding = random(3) - 1
  digits, e = digits .. ("0"):rep(padding), e - padding
  local at = n.digits == "0" and 1 or random(#digits) -- digits before the point
  local whole, behind = digits:sub(1, at), digits:sub(at + 1)
  e = e + #behind
  return (n.sign < 0 and "-" or "") .. whole .. (behind ~= "" and "." .. behind or "")
    .. (e ~= 0 and "e" .. e or "")
end

function paper.compare(a, b)
  local least = math.min(a.zeros, b.zeros)
  local x = a.digits .. ("0"):rep(a.zeros - least)
  local y = b.digits .. ("0"):rep(b.zeros - least)
  local width = math.max(#x, #y)
  x, y = ("0"):rep(width - #x) .. x, ("0"):rep(width - #y) .. y
  if x == y and (a.sign == b.sign or not x:find("[1-9]")) then
    return 0
  elseif a.sign ~= b.sign then
    return a.sign
  end
  return x < y and -a.sign or a.sign
end

--- Returns true if n is a multiple of d * 10^zeros, by long division.
function paper.divides(n, d, zeros)
  local rest = 0
  for digit in (n.digits .. ("0"):rep(n.zeros - zeros)):gmatch("%d") do
    rest = (rest * 10 + digit) % d
  end
  return rest == 0
end

function paper.random()
  local digits = {}
  for i = 1, random(4) == 1 and random(30) or random(3) do
    digits[i] = random(3) == 1 and random(9) or "0"
  end
  local text = table.concat(digits):gsub("^0+", "")
  return { sign = random(2) == 1 and 1 or -1, digits = text == "" and "0" or text,
    zeros = random(10) == 1 and random(700) - 350 or random(9) - 5 }
end

--- Returns the same number, or one that differs in a far digit.
function paper.near(n)
  local far = random(25)
  local digits = n.digits .. ("0"):rep(far - 1) .. (random(2) == 1 and "0" or "1")
  return { sign = n.sign, zeros = n.zeros - far, digits = digits:gsub("^0+(.)", "%1") }
end

describe("numbers", function()
  local function takes(rule, bound, value)
    return ah.schema(('{"%s":%s}'):format(rule, bound)):validate_text(value) == true
  end

  it("compare by their digits, however they are written", function()
    state = 7
    local seen = {}
    for _ = 1, 4000 do
      local a = paper.random()
      local b = random(2) == 1 and paper.random() or paper.near(a)
      local order = paper.compare(a, b)
      local x, y = paper.write(a), paper.write(b)
      local got = {
        takes("minimum", y, x), takes("maximum", y, x), takes("exclusiveMinimum", y, x),
        takes("exclusiveMaximum", y, x), takes("const", y, x), takes("const", "[" .. y .. "]",
          "[" .. x .. "]"), not takes("uniqueItems", "true", ("[%s,%s]"):format(x, y)),
      }
      assert.same({ order >= 0, order <= 0, order > 0, order < 0, order == 0, order == 0,
        order == 0 }, got, x .. " beside " .. y)
      seen[order] = (seen[order] or 0) + 1
    end
    assert.is_true(seen[0] > 500 and seen[1] > 500 and seen[-1] > 500)
  end)

  it("are multiples by their digits", function()
    state = 11
    local yes = 0
    for _ = 1, 2000 do
      local n, d, zeros = paper.random(), random(40), random(5) - 4
      if n.zeros < zeros then
        n.zeros = zeros + random(3) - 1
      end
      local want = paper.divides(n, d, zeros)
      local of, value = ("%de%d"):format(d, zeros), paper.write(n)
      assert.equal(want, takes("multipleOf", of, value), value .. " by " .. of)
      yes = yes + (want and 1 or 0)
    end
    assert.is_true(yes > 300 and yes < 1700)
  end)

  it("are multiples of divisors of up to 18 digits", function()
    state = 12
    local longest = 0
    for _ = 1, 500 do
      local n, twos, fives = 7 * random(32768) * random(32768), random(9), random(9)
      local of = n * (1 << twos) * math.tointeger(5 ^ fives)
      if of < 10 ^ 18 then
        local zeros = math.max(twos, fives) + random(3) * 50
        assert.is_true(takes("multipleOf", of, ("%de%d"):format(n, zeros)), of)
        assert.is_false(takes("multipleOf", of, ("%de%d"):format(n + 1, zeros)), of)
        longest = math.max(longest, #tostring(of))
      end
    end
    assert.equal(18, longest)
  end)
end)
describe("the time of a check", function()
  local SIZES = { 1000, 10000, 100000 }
  -- limit: times the time of a member at the smallest size; sorting and caches take some
  local MOST = 8

  local function object(n)
    local members = {}
    for i = 1, n do
      members[i] = ('"k%06d":%d'):format(i * 7919 % n, i)
    end
    return "{" .. table.concat(members, ",") .. "}"
  end

  local function list(n, item)
    local items = {}
    for i = 1, n do
      items[i] = item:format(i * 7919 % n)
    end
    return "[" .. table.concat(items, ",") .. "]"
  end

  --- Returns CPU seconds for each member, the least of several tries; stops at `enough`.
  local function cost(schema, text, n, enough)
    local least, tries = math.huge, 0
    repeat
      local times, start = math.max(10000 // n, 1), os.clock()
      for _ = 1, times do
        assert(schema:validate_text(text))
      end
      least = math.min(least, (os.clock() - start) / (times * n))
      tries = tries + 1
    until least <= enough and (n > 10000 or tries >= 3) or tries == 8
    return least
  end

  local CASES = {
    { "properties and others", object, '{"properties":{"k000007":true,"k000008":'
      .. '{"type":"integer"}},"additionalProperties":{"type":"integer","minimum":0}}' },
    { "unevaluatedProperties", object, '{"allOf":[{"properties":{"k000001":true}},'
      .. '{"if":{"required":["k000002"]},"then":{"properties":{"k000002":true}}}],'
      .. '"unevaluatedProperties":{"type":"integer"}}' },
    { "propertyNames", object, '{"propertyNames":{"minLength":7,"not":{"enum":["a","b"]}}}' },
    { "patternProperties", object,
      '{"patternProperties":{"^k\\\\d+$":{"type":"integer"}},"additionalProperties":false}' },
    { "dependencies", object, '{"dependentRequired":{"k000001":["k000002"]},'
      .. '"dependentSchemas":{"zzz":false},"maxProperties":100000}' },
    { "uniqueItems", list, '{"uniqueItems":true}', "%d" },
    { "uniqueItems of objects", list, '{"uniqueItems":true}', '{"b":[%d],"a":"x"}' },
    { "contains and unevaluatedItems", list, '{"prefixItems":[true],"contains":{"type":"string"},'
      .. '"minContains":0,"unevaluatedItems":{"type":"integer"}}', "%d" },
    { "branches", list, '{"items":{"anyOf":[{"properties":{"a":{"const":"y"}}},'
      .. '{"properties":{"a":{"const":"x"}}}]}}', '{"a":"x","b":%d}' },
    { "defaults", list, '{"items":{"properties":{"a":{"default":1},"c":{"default":{}}}},'
      .. '"allOf":[{"items":{"properties":{"d":{"default":2}}}}]}', '{"b":%d}' },
  }

  for _, case in ipairs(CASES) do
    local name, make, text, item = table.unpack(case)
    it("grows with the value only: " .. name, function()
      if not can_check(text) then
        return pending("this build has no PCRE2")
      end
      local schema = ah.schema(text)
      local first = cost(schema, make(SIZES[1], item), SIZES[1], math.huge)
      for i = 2, #SIZES do
        local each = cost(schema, make(SIZES[i], item), SIZES[i], first * MOST)
        assert(each <= first * MOST, ("%s: %.0f ns a member at %d, %.0f ns at %d"):format(
          name, each * 1e9, SIZES[i], first * 1e9, SIZES[1]))
      end
    end)
  end
end)
