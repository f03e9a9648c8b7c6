--- Schemas and arguments that are costly to check, each by another rule. An item is { name, schema,
-- arguments, spends }: schema and arguments are JSON; spends is true if the check reaches its limit
-- of steps.
local costs = {}

local function each(n, f)
  local t = {}
  for i = 1, n do
    t[i] = type(f) == "function" and f(i) or f
  end
  return table.concat(t, ",")
end

-- Returns the format n times, each with its number.
local function numbered(n, format, from)
  return each(n, function(i)
    return format:format(i + (from or 0))
  end)
end

local function object(more)
  return '{"type":"object",' .. more .. "}"
end

local function of(a)
  return object('"properties":{"a":' .. a .. "}")
end

local function all_of(n, format, from)
  return of('{"allOf":[' .. numbered(n, format, from) .. "]}")
end

local function items(schema)
  return of('{"items":' .. schema .. "}")
end

local function with(defs, a)
  a = a or '{"$ref":"#/$defs/x"}'
  return object('"$defs":{' .. defs .. '},"properties":{"a":' .. a .. "}")
end

local function list(n, item)
  return '{"a":[' .. each(n, item) .. "]}"
end

local function text(s, n)
  return '{"a":"' .. s:rep(n) .. '"}'
end

local function within(n, inner)
  return '{"a":' .. ("["):rep(n) .. inner .. ("]"):rep(n) .. "}"
end

local function add(name, schema, arguments, spends)
  costs[#costs + 1] = { name, schema, arguments, spends }
end

local SELF, MANY = '{"$ref":"#/$defs/x"}', 30
--- A text on which ^(a+)+$ backtracks exponentially.
costs.TEXT = ("a"):rep(17) .. "!"
local TEXTS = list(400, '"' .. costs.TEXT .. '"')

-- -- patterns

add("a pattern that goes back and back", items '{"pattern":"^(a+)+$"}', TEXTS, true)
add("the same in a branch", items '{"anyOf":[{"pattern":"^(a+)+$"},{"type":"null"}]}', TEXTS, true)
add("a pattern that begins anywhere", of '{"pattern":"a*[bc]"}', text("a", 2000000), true)
add("a pattern that goes back over much", of '{"pattern":"a*a*[bc]"}', text("a", 20000), true)
add("a pattern that refers to much", of '{"pattern":"^(a+)\\\\1b"}', text("a", 2000000), true)
add("a pattern that looks ahead", of '{"pattern":"^(?:a(?:(?=.*b))?)*$"}', text("a", 9000), false)
add("names and patterns",
  object('"patternProperties":{' .. numbered(200, '"^(a+)+%d$":{"type":"integer"}') .. "}"),
  "{" .. numbered(2000, '"aaaaaaaaaaaax%d":1') .. "}", true)
add("a pattern for names", object '"propertyNames":{"pattern":"^(a+)+$"}',
  "{" .. numbered(400, '"' .. costs.TEXT .. '%d":1') .. "}", true)
add("a text with escapes", all_of(5000, '{"pattern":"x%d"}'), text("\\n", 1000000), true)

-- -- values

add("items that are all different", of '{"uniqueItems":true}', list(400000, tostring), false)
add("the same at each level", with('"x":{"uniqueItems":true,"items":' .. SELF .. "}"),
  within(400, numbered(100000, "%d")), true)
add("many values", items('{"enum":[' .. numbered(100000, '"v%d"') .. "]}"),
  list(100000, '"vx"'), true)
add("long numbers", items('{"enum":[' .. numbered(1000, "1." .. ("0"):rep(300) .. "%d") .. "]}"),
  list(10000, "1." .. ("0"):rep(900) .. "1"), true)
add("objects as values",
  items('{"enum":[' .. numbered(5000, '{"k":"' .. ("x"):rep(90) .. '%d"}') .. "]}"),
  list(20000, '{"k":"' .. ("x"):rep(90) .. '"}'), true)
add("a long list and many constants", all_of(5000, '{"const":[%d]}'), list(200000, '"abc"'), true)
add("a text whose characters are counted", all_of(10000, '{"minLength":%d}', 3000000),
  text("\u{e9}", 4000000), true)
add("a multiple of many", all_of(5000, '{"multipleOf":%d}'),
  '{"a":' .. ("7"):rep(1000000) .. "}", true)

-- -- members

add("names that depend on names",
  object('"dependentRequired":{' .. numbered(20000, '"n%d":["m"]') .. "}"),
  '{"z":["' .. ("x"):rep(4000000) .. '"],"y":[' .. each(500000, "1") .. "]}", true)
add("members that are missing", items('{"required":[' .. numbered(30000, '"r%d"') .. "]}"),
  list(100000, "{}"), true)
add("members that need not be there",
  items('{"properties":{' .. numbered(20000, '"r%d":{}') .. "}}"), list(1000000, "{}"), true)
add("names that are near to none",
  object('"additionalProperties":false,"properties":{'
    .. numbered(12000, '"' .. ("abcdefgh"):rep(7) .. '%d":{}') .. "}"),
  "{" .. numbered(2000, '"' .. ("hgfedcba"):rep(7) .. '%d":1') .. "}", false)
add("defaults of many schemas",
  items('{"allOf":[' .. each(50, function(j)
    return '{"properties":{' .. numbered(100, '"d%d":{"default":1}', 100 * j) .. "}}"
  end) .. "]}"), list(2000, "{}"), false)
add("book of what was evaluated",
  of('{"unevaluatedProperties":false,"patternProperties":{"^b":true},"allOf":['
    .. numbered(3000, '{"if":{"minProperties":0},"then":{"patternProperties":{"^x%d":true}}}')
    .. "]}"), '{"a":{' .. numbered(20000, '"b%d":1') .. "}}", true)

-- -- branches

add("branches without end", with('"x":{"allOf":[' .. each(MANY, '{"$ref":"#/$defs/y"}')
  .. '],"required":["q"]},"y":{"allOf":[' .. each(MANY, '{"$ref":"#/$defs/z"}')
  .. ']},"z":{"allOf":[' .. each(MANY, '{"$ref":"#/$defs/w"}') .. ']},"w":{"minProperties":1}',
  '{"oneOf":[' .. each(MANY, '{"properties":{"k":{"const":"n"}},"required":["k","v"],"allOf":['
    .. SELF .. "]}") .. "]}"), '{"a":{' .. numbered(1000, '"b%d":1') .. ',"k":1}}', true)
add("branches that a member tells apart",
  items('{"oneOf":['
    .. numbered(3000, '{"type":"object","properties":{"k":{"const":%d}},"required":["k"]}')
    .. "]}"),
  list(20000, '{"k":"x"}'), true)
add("each level twice", with('"x":{"contains":' .. SELF .. ',"items":' .. SELF .. "}"),
  within(60, ""), true)
add("not, and not", with('"x":{"not":{"items":' .. SELF .. '},"items":{"not":' .. SELF .. "}}"),
  within(100, ""), true)

-- -- faults

add("faults without end", items '{"type":"string"}', list(3000000, "1"), true)
add("faults far within",
  with('"x":{"type":"array","items":{"anyOf":[' .. SELF .. ',{"type":"null"}]}}'),
  within(400, each(300000, "1")), true)

return costs
