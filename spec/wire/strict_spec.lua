-- Tools with strict schemas: the schema that the provider gets, the rules that it cannot express,
-- and that the model's values reach the handler with their meaning.
local ah = require "agenthost"
local ahtest = require "ahtest"
local mock = require "support.mock"
local server = require "support.server"
local wire = require "support.wire" {}

local encode, decode = ah.json.encode, ah.json.decode
local null = ah.null

local function tools_of(provider, model, entries)
  local o = { provider = provider, model = model, base_url = "http://x", key = "sk-strict-1" }
  local lowered = ahtest.wire_lower(o, wire.encoded(entries))
  return server.decode(lowered.body).tools, lowered
end

local function settings(strict)
  return { type = "settings", model = "x", options = { strict = strict } }
end

local function added(list)
  return { type = "tools_added", tools = server.array(list) }
end

local function tool(name, parameters, strict)
  return { name = name, description = name .. ".", parameters = parameters, strict = strict }
end

-- Returns the parameters and `strict` of one tool in a request, to OpenAI by default.
local function told(parameters, provider, model)
  local t = tools_of(provider or "openai", model or "gpt-4o",
    { settings(true), added { tool("f", parameters) } })[1]
  local f = t["function"] or t
  return f.parameters or f.input_schema, f.strict
end

local function object(properties, required, more)
  local o = { type = "object", properties = properties, required = server.array(required or {}) }
  for k, v in pairs(more or {}) do
    o[k] = v
  end
  return o
end

describe("a strict tool", function()
  it("has all its members required, those that may be absent as null", function()
    local p, strict = told(object({ a = { type = "string" }, b = { type = "integer" },
      c = { enum = server.array { "x", "y" } }, d = object { e = { type = "boolean" } },
      f = { type = server.array { "string", "null" } } }, { "b" }))
    assert.is_true(strict)
    assert.same({ type = "object", additionalProperties = false,
      required = { "b", "a", "c", "d", "f" },
      properties = {
        a = { type = { "string", "null" } },
        b = { type = "integer" },
        c = { anyOf = { { enum = { "x", "y" }, type = "string" }, { type = "null" } } },
        d = { anyOf = { { type = "object", properties = { e = { type = { "boolean", "null" } } },
          required = { "e" }, additionalProperties = false }, { type = "null" } } },
        f = { type = { "string", "null" } },
      } }, p)
  end)

  it("is told in words what the subset has no words for", function()
    local p, strict = told(object({ n = { type = "integer", minimum = 1, description = "Pages." },
      s = { type = "string", pattern = "^x", default = "x" } }, { "n" }))
    assert.is_true(strict)
    assert.same({ type = "integer", description = 'Pages. It must fit {"minimum":1}.' },
      p.properties.n)
    assert.same({ type = { "string", "null" },
      description = 'It must fit {"default":"x","pattern":"^x"}.' }, p.properties.s)
  end)

  it("keeps references, recursive ones too", function()
    local p, strict = told(object({ l = { ["$ref"] = "#/$defs/n" } }, { "l" }, { ["$defs"] = {
      n = object { next = { ["$ref"] = "#/$defs/n", description = "Next." } } } }))
    assert.is_true(strict)
    assert.same({ ["$ref"] = "#/$defs/n" }, p.properties.l)
    assert.same({ anyOf = { { anyOf = { { ["$ref"] = "#/$defs/n" } }, description = "Next." },
      { type = "null" } } }, p["$defs"].n.properties.next)
  end)

  it("is not strict where its schema cannot be said", function()
    local deep, many = { type = "string" }, {}
    for _ = 1, 12 do
      deep = object({ d = deep }, { "d" })
    end
    for i = 1, 1001 do
      many[i] = "v" .. i
    end
    for name, schema in pairs {
      open = object({ a = { type = "string" } }, {}, { additionalProperties = true }),
      free = object({ a = { type = "object" } }),
      brief = object {},
      anything = object { a = { description = "any" } },
      all_of = object { a = { allOf = server.array { { type = "string" } } } },
      one_of = object { a = { oneOf = server.array { { type = "string" } } } },
      list = object { a = { type = "array" } },
      pair = object { a = { type = "array", prefixItems = server.array { { type = "string" } } } },
      root = object({ a = { type = "string" } }, {}, { anyOf = server.array {
        { required = server.array { "a" } }, { properties = { a = { const = "x" } } } } }),
      elsewhere = object({ a = { ["$ref"] = "#/properties/b" }, b = { type = "string" } }),
      deep = deep, many = object { a = { enum = server.array(many) } },
      nothing = object { a = { enum = server.array {}, type = "string" } },
      old_pair = object { a = { type = "array", items = server.array { { type = "string" } } } },
      recursive = object { a = { ["$recursiveRef"] = "#" } },
      dependent = object({ a = { type = "string" } }, { "a" }, { dependencies = { a = { "b" } } }),
      missing = object({ a = { type = "string" } }, { "a", "b" }),
      odd = object({ a = { type = "string" } }, { "a" }, { ["$defs"] = 5 }),
    } do
      local p, strict = told(schema)
      assert.is_false(strict, name)
      if name ~= "root" then
        assert.same(server.decode(server.encode(schema)), p, name)
      end
    end
  end)

  it("is judged in the time of its size, in whatever order its members are required", function()
    for n, judged in pairs { [4000] = true, [20000] = false } do
      local properties, required, at = {}, {}, 0
      for i = 1, n do
        at = (at + 7919) % n
        properties["k" .. i], required[i] = { type = "string" }, "k" .. at + 1
      end
      local t = os.clock()
      local _, strict = told(object(properties, required))
      assert.equal(judged, strict)
      assert.is_true(os.clock() - t < 10)
    end
  end)

  it("is asked for by the tool or by the settings, and nobody else", function()
    local fits = object({ a = { type = "string" } }, { "a" })
    local list = { tool("a", fits), tool("b", fits, true), tool("c", fits, false) }
    local function flags(provider, model, on)
      local flag = {}
      for i, t in ipairs(tools_of(provider, model, { settings(on), added(list) })) do
        flag[i] = tostring((t["function"] or t).strict)
      end
      return table.concat(flag, " ", 1, 3)
    end
    assert.equal("nil true false", flags("openai", "gpt-4o"))
    assert.equal("true true false", flags("openai", "gpt-4o", true))
    assert.equal("false true false", flags("openai", "gpt-4o", false))
    assert.equal("false true false", flags("openai", "responses/gpt-5"))
    assert.equal("true true false", flags("openai", "responses/gpt-5", true))
    assert.equal("true true nil", flags("anthropic", "claude-opus-4-8", true))
    assert.equal("nil nil nil", flags("anthropic", "claude-3-5-haiku", true))
    assert.equal("true true false", flags("azure", "m", true))
    for _, other in ipairs { "compatible", "groq", "ollama", "litellm_proxy" } do
      assert.equal("nil nil nil", flags(other, "m", true), other)
    end
  end)

  it("keeps what Anthropic lets be absent, and says the rest in words", function()
    local p, strict = told(object({ a = { type = "string", minLength = 2 },
      b = { type = "integer" } }, { "a" }), "anthropic", "claude-opus-4-8")
    assert.is_true(strict)
    assert.same({ type = "object", additionalProperties = false, required = { "a" }, properties = {
      a = { type = "string", description = 'It must fit {"minLength":2}.' },
      b = { type = "integer" } } }, p)
    p, strict = told(object({ l = { ["$ref"] = "#/$defs/n" } }, {}, { ["$defs"] = {
      n = { type = "string" } } }), "anthropic", "claude-opus-4-8")
    assert.same({ "#/$defs/n" }, { p.properties.l["$ref"], strict })
  end)

  it("is one of at most 20 on Anthropic, the first ones, whatever comes later", function()
    local list, flags = {}, {}
    for i = 1, 22 do
      local free = i == 3 and { additionalProperties = true } or {}
      list[i] = tool("t" .. i, object({ a = { type = "string" } }, { "a" }, free))
    end
    for i, t in ipairs(tools_of("anthropic", "claude-opus-4-8", { settings(true), added(list) })) do
      flags[i] = t.strict and "s" or "-"
    end
    assert.equal("ss-" .. ("s"):rep(18) .. "--", table.concat(flags)) -- the last is a placeholder
    local few = {}
    for i = 1, 3 do -- 24 members that may be absent, in all
      local properties = {}
      for k = 1, i == 2 and 15 or 10 do
        properties["m" .. k] = { type = "string" }
      end
      few[i] = tool("t" .. i, object(properties))
    end
    local t = tools_of("anthropic", "claude-opus-4-8", { settings(true), added(few) })
    assert.same({ true, true }, { t[1].strict, t[3].strict or false })
    assert.is_nil(t[2].strict)
  end)

  it("leaves the tools before it byte for byte as they were", function()
    for _, on in ipairs { { "openai", "gpt-4o" }, { "openai", "responses/gpt-5.6" },
      { "anthropic", "claude-opus-4-8" } } do
      local user = { type = "user", content = server.array { { type = "text", text = "x" } } }
      local answer = { type = "assistant", content = server.array { { type = "text",
        text = "y" } } }
      local first = { settings(true), added { tool("a", object { a = { type = "string" } }) } }
      local o = { provider = on[1], model = on[2], base_url = "http://x", key = "sk-strict-1" }
      local lowered = { ahtest.wire_lower(o, wire.encoded { first[1], first[2], user },
        wire.encoded { answer, added { tool("b", object { b = { type = "string" } }) }, user }) }
      assert.equal(lowered[1].segments[1].bytes, lowered[2].segments[1].bytes)
      assert.truthy(lowered[2].segments[1].bytes:find('"strict":true', 1, true), on[2])
      assert.equal(2, select(2, lowered[2].body:gsub('"strict":true', "")), on[2])
    end
  end)
end)

-- -- values of the model -------------------------------------------------------------------

local seed = 20260801

local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed // 65536 % n + 1
end

local random_schema

local function random_object(depth)
  local properties, required = {}, {}
  for i = 1, random(4) do
    local name = "m" .. i
    properties[name] = random_schema(depth - 1)
    required[#required + 1] = random(2) == 1 and name or nil
  end
  return object(properties, required)
end

local makers = {
  function() return { type = "string", minLength = random(2) - 1 } end,
  function() return { type = "integer", maximum = 100 } end,
  function() return { type = "boolean" } end,
  function() return { enum = server.array { "red", "green" } } end,
  function() return { type = server.array { "number", "null" } } end,
  function() return { ["$ref"] = "#/$defs/leaf" } end,
  random_object,
  function(depth) return { type = "array", items = random_schema(depth - 1) } end,
  function(depth)
    local list = server.array {}
    for i = 1, 2 do
      list[i] = random_object(depth)
      list[i].properties.kind = { const = "k" .. i }
      list[i].required[#list[i].required + 1] = "kind"
    end
    return { anyOf = list }
  end,
}

function random_schema(depth)
  return makers[random(depth > 0 and #makers or 6)](depth)
end

local LEAF = object({ x = { type = "integer" }, next = { ["$ref"] = "#/$defs/leaf" } }, { "x" })

-- Returns a value that fits, and the form in which a strict model has to write it: null for absent
-- members.
local value_of

local function object_value(schema, depth)
  local meant, written, required = {}, {}, {}
  for _, name in ipairs(schema.required) do
    required[name] = true
  end
  for name, s in pairs(schema.properties) do
    if required[name] or (depth > 0 and random(2) == 1) then
      meant[name], written[name] = value_of(s, depth - 1)
    else
      written[name] = null
      meant[name] = type(s.type) == "table" and null or nil -- in these null is a value
    end
  end
  return ah.object(meant), ah.object(written)
end

local scalars = { string = "word", integer = 7, boolean = true }

function value_of(schema, depth)
  if schema["$ref"] then
    return object_value(LEAF, depth)
  elseif schema.anyOf then
    return value_of(schema.anyOf[random(#schema.anyOf)], depth)
  elseif schema.type == "object" then
    return object_value(schema, depth)
  elseif schema.type == "array" then
    local meant, written = {}, {}
    for i = 1, random(3) - 1 do
      meant[i], written[i] = value_of(schema.items, depth - 1)
    end
    return ah.array(meant), ah.array(written)
  end
  local v = scalars[schema.type] or schema.const or (schema.enum and schema.enum[random(2)])
    or (random(2) == 1 and 2.5 or null)
  return v, v
end

describe("what a strict model sends", function()
  local function case(i)
    local schema = random_object(3)
    schema["$defs"] = { leaf = LEAF }
    local text = server.encode(schema)
    local lowered, strict = told(schema)
    assert.is_true(strict, text)
    local own, theirs = ah.schema(text), ah.schema(server.encode(lowered))
    for _ = 1, 3 do
      local meant, written = object_value(schema, 3)
      local where = ("%d: %s\n%s"):format(i, text, encode(written))
      assert.is_true(theirs:validate(written, "forbid"), where)
      assert.is_true(own:validate(meant, "forbid"), where)
      local ok, back = own:validate_text(encode(written), { extra = "forbid", null_absent = true })
      assert.is_true(ok, where)
      assert.equal(encode(meant), encode(decode(back)), where)
    end
  end

  it("fits what it was told, and comes back as it was meant, for any schema", function()
    for i = 1, 400 do
      case(i)
    end
  end)

  local SCHEMA = server.encode(object({ a = { type = "string" }, b = { type = "integer" },
    c = { type = "string", default = "d" } }, { "a" }))

  -- Returns the arguments that the handler gets for those of the model; nil if it is not called.
  local function handled(options, strict, arguments)
    local got
    local f = ah.tool { name = "f", description = "F.", schema = SCHEMA, strict = strict,
      handler = function(args)
        got = args
      end }
    assert(ah.run { options = options, "x", tools = { f }, model = ah.scripted {
      { calls = { { name = "f", arguments = arguments } } }, "done" } })
    return got
  end

  it("reaches the handler without the nulls", function()
    local sent = { a = "x", b = null, c = null }
    assert.same({ a = "x", c = "d" }, handled({ strict = true }, nil, sent))
    assert.same({ a = "x", c = "d" }, handled(nil, true, sent))
    assert.is_nil(handled(nil, nil, sent))
    assert.is_nil(handled({ strict = true }, false, sent))
    assert.is_nil(handled({ strict = true }, nil, { a = null }))
    assert.is_nil(handled({ strict = true }, nil, { a = "x", other = null }))
  end)

  it("is asked for by a boolean", function()
    assert.error_matches(function() handled({ strict = "yes" }, nil, {}) end,
      "ah.run: options: field 'strict' must be a boolean")
  end)

  local asked_of_servers = mock.is_built() and it or pending

  asked_of_servers("is asked for in requests that strict servers take", function()
    for _, on in ipairs { { "openai/gpt-4o", "/v1" }, { "openai/responses/gpt-5.6", "/v1" },
      { "anthropic/claude-opus-4-8", "" } } do
      local m <close> = mock.start [[local ah = require "agenthost" return {
        { calls = { { name = "f", arguments = { a = "x", b = ah.null, c = ah.null } },
                    { name = "g", arguments = {} } } },
        "done" }]]
      local got = {}
      local function keep(args)
        got[#got + 1] = args
      end
      local reply = assert(ah.run { model = on[1], base_url = m.url .. on[2], api_key = "k", "x",
        options = { strict = true }, tools = {
          ah.tool { name = "f", description = "F.", schema = SCHEMA, handler = keep },
          ah.tool { name = "g", description = "G.", schema = '{"type":"object"}',
            handler = keep } } })
      assert.same({ "done", { { a = "x", c = "d" }, {} } }, { reply.text, got }, on[1])
      assert.equal("", m:errors())
    end
  end)
end)
