--- Schemas and values that are costly, each by another keyword or another way to lead from one
-- schema to another. A shape has a name and `make(n)`, which returns the schema, the value (both
-- JSON, whose sizes are proportional to n) and, if needed, the options; `wrong` is true if the
-- value does not conform.
local shapes = {}

local function each(n, f, between)
  local t = {}
  for i = 1, n do
    t[i] = type(f) == "function" and f(i) or (f:gsub("@", i))
  end
  return table.concat(t, between or ",")
end

local function add(name, make, wrong)
  shapes[#shapes + 1] = { name = name, make = make, wrong = wrong }
end

local DRAFT_7 = '"$schema":"http://json-schema.org/draft-07/schema#",'
local DRAFT_2019 = '"$schema":"https://json-schema.org/draft/2019-09/schema",'

local function object(n)
  return "{" .. each(n, '"k@":1') .. "}"
end

local function list(n, item)
  return "[" .. each(n, item) .. "]"
end

-- -- references ---------------------------------------------------------------------------------

add("$ref to as many $defs", function(n)
  return '{"properties":{' .. each(n, '"k@":{"$ref":"#/$defs/d@"}') .. '},"$defs":{'
    .. each(n, '"d@":{"minimum":@}') .. "}}", "{}"
end)

add("$ref to one of $defs", function(n)
  return '{"properties":{' .. each(n, '"k@":{"$ref":"#/$defs/last"}') .. '},"$defs":{'
    .. each(n, '"d@":true') .. ',"last":{"type":"integer"}}}', object(n)
end)

add("$ref to items of a list", function(n)
  return '{"properties":{' .. each(n,
    function(i) return ('"k%d":{"$ref":"#/allOf/%d"}'):format(i, i - 1) end)
    .. '},"allOf":[' .. each(n, "true") .. "]}", object(n)
end)

add("$ref to names with escapes", function(n)
  return '{"properties":{' .. each(n, '"k@":{"$ref":"#/$defs/a~1%7E0@"}') .. '},"$defs":{'
    .. each(n, '"a/~@":{"minimum":1}') .. "}}", object(n)
end)

add("$ref deep within", function(n)
  local deep = ('{"not":'):rep(40) .. '{"$defs":{"x":true}}' .. ("}"):rep(40)
  return '{"$defs":{"d":' .. deep .. '},"properties":{' .. each(n // 4, '"k@":{"$ref":"#/$defs/d'
    .. ("/not"):rep(40) .. '/$defs/x"}') .. "}}", object(n)
end)

add("a chain of $ref", function(n)
  return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
    return ('"d%d":{"$ref":"#/$defs/d%d"}'):format(i, i + 1)
  end) .. (',"d%d":{"type":"integer"}}}'):format(n + 1), "1"
end)

add("a chain of $ref with rules beside them", function(n)
  return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
    return ('"d%d":{"$ref":"#/$defs/d%d","minimum":0}'):format(i, i + 1)
  end) .. (',"d%d":{"type":"integer"}}}'):format(n + 1), "1"
end)

for _, by in ipairs { "allOf", "anyOf", "oneOf" } do
  for _, wrong in ipairs { false, true } do
    add(("a chain of %s, %s"):format(by, wrong and "wrong" or "right"), function(n)
      return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
        return ('"d%d":{"%s":[{"$ref":"#/$defs/d%d"}]}'):format(i, by, i + 1)
      end) .. (',"d%d":{"type":"integer"}}}'):format(n + 1), wrong and '"x"' or "1"
    end, wrong)
  end
end

for _, by in ipairs { "anyOf", "oneOf" } do
  add(("a chain of %s of which all are tried, wrong"):format(by), function(n)
    return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
      return ('"d%d":{"%s":[{"const":"x"},{"$ref":"#/$defs/d%d"}]}'):format(i, by, i + 1)
    end) .. (',"d%d":{"minimum":2}}}'):format(n + 1), "1"
  end, true)
end

add("a chain of not", function(n)
  return '{"$ref":"#/$defs/d1","$defs":{' .. each(2 * n, function(i)
    return ('"d%d":{"not":{"$ref":"#/$defs/d%d"}}'):format(i, i + 1)
  end) .. (',"d%d":{"type":"integer"}}}'):format(2 * n + 1), "1"
end)

add("a chain of if and then", function(n)
  return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
    return ('"d%d":{"if":true,"then":{"$ref":"#/$defs/d%d"}}'):format(i, i + 1)
  end) .. (',"d%d":{"type":"integer"}}}'):format(n + 1), "1"
end)

add("a chain of dependentSchemas", function(n)
  return '{"$ref":"#/$defs/d1","$defs":{' .. each(n, function(i)
    return ('"d%d":{"dependentSchemas":{"a":{"$ref":"#/$defs/d%d"}}}'):format(i, i + 1)
  end) .. (',"d%d":{"type":"object"}}}'):format(n + 1), '{"a":1}'
end)

add("$anchor", function(n)
  return '{"properties":{' .. each(n, function(i) return ('"k%d":{"$ref":"#a%d"}'):format(i,
    i) end)
    .. '},"$defs":{' .. each(n, '"d@":{"$anchor":"a@","minimum":1}') .. "}}", object(n)
end)

add("$id", function(n)
  return '{"$id":"http://e.com/","properties":{' .. each(n, '"k@":{"$ref":"r@"}')
    .. '},"$defs":{' .. each(n, '"d@":{"$id":"r@","minimum":1}') .. "}}", object(n)
end)

add("$id below a long address", function(n)
  return '{"$id":"http://e.com/' .. ("x"):rep(400) .. '/","properties":{' .. each(n,
    '"k@":{"$ref":"r@"}')
    .. '},"$defs":{' .. each(n, '"d@":{"$id":"r@","minimum":1}') .. "}}", object(n)
end)

add("$id with dots", function(n)
  return '{"$id":"http://e.com/","$defs":{"a":{"$id":"' .. ("a/../"):rep(n % 700)
    .. 'b"}},"properties":{'
    .. each(n, '"k@":{"$ref":"a/../b"}') .. "}}", object(n)
end)

add("a chain of documents", function(n)
  local documents = {}
  for i = 1, n // 10 do
    documents["http://e.com/" .. i] = ('{"items":{"$ref":"%d"},"title":"%s"}'):format(
      i % (n // 10) + 1, ("x"):rep(400))
  end
  return '{"$ref":"http://e.com/1","title":"' .. ("x"):rep(4 * n) .. '"}', "[]",
    { documents = documents }
end)

add("documents with addresses within", function(n)
  local documents = {}
  for i = 1, n // 10 do
    documents["http://e.com/" .. i] = ('{"$defs":{"a":{"$id":"in/%d","title":"%s"}}}'):format(
      i, ("x"):rep(300))
  end
  return '{"properties":{' .. each(n // 10, '"k@":{"$ref":"http://e.com/in/@"}') .. "}}", "{}",
    { documents = documents }
end)

add("$schema of a metaschema among the documents", function(n)
  return '{"$defs":{' .. each(n, '"d@":{"$id":"d@","$schema":"http://e.com/m"}') .. "}}", "1",
    { documents = { ["http://e.com/m"] = '{"$vocabulary":{'
      .. '"https://json-schema.org/draft/2020-12/vocab/core":true}}' } }
end)

-- Each resource leads to the next one, so that all of them have been entered at the end.
local function resources(n, last, inner)
  return '{"$id":"http://e.com/","$ref":"r1","$defs":{' .. each(n, function(i)
    return ('"d%d":{"$id":"r%d",%s,"$ref":"r%d"}'):format(i, i, inner:gsub("@", i), i + 1)
  end) .. (',"d%d":{"$id":"r%d",%s}}}'):format(n + 1, n + 1, last)
end

add("$dynamicRef behind many resources", function(n)
  return resources(n, '"$dynamicAnchor":"T","items":{"$dynamicRef":"#T"}',
    '"$dynamicAnchor":"T"'), "[]"
end)

add("many $dynamicRef behind many resources", function(n)
  return resources(n, '"$dynamicAnchor":"T","prefixItems":[' .. each(n, '{"$dynamicRef":"#T"}')
    .. "]",
    '"$dynamicAnchor":"T"'), "[]"
end)

add("$dynamicRef in a long list", function(n)
  return '{"$id":"http://e.com/","$dynamicAnchor":"T","anyOf":[{"type":"integer"},{"items":'
    .. '{"$dynamicRef":"#T"}}]}', "[" .. list(4 * n, "[@]") .. "]"
end)

add("$dynamicRef in resources that take turns", function(n)
  return '{"$id":"http://e.com/a","$dynamicAnchor":"T","items":{"$ref":"b"},'
    .. '"$defs":{"b":{"$id":"b","$dynamicAnchor":"T","items":{"$dynamicRef":"#T"}}}}',
    "[" .. list(n, "[[@]]") .. "]"
end)

add("$recursiveRef behind many resources", function(n)
  return (resources(n, '"$recursiveAnchor":true,"items":[' .. each(n, '{"$recursiveRef":"#"}')
    .. "]",
    '"$recursiveAnchor":true'):gsub("^{", "{" .. DRAFT_2019)), "[]"
end)

add("$ref in values within values", function(n)
  return '{"items":{"$ref":"#"}}', list(n, ("["):rep(60) .. ("]"):rep(60))
end)

add("the metaschema of a large schema", function(n)
  return '{"$ref":"https://json-schema.org/draft/2020-12/schema"}',
    '{"properties":{' .. each(n, '"k@":{"type":"integer","minimum":@}') .. "}}"
end)

-- -- in-place applicators ------------------------------------------------------------------------

for _, by in ipairs { "allOf", "anyOf", "oneOf" } do
  add("many " .. by, function(n)
    return '{"' .. by .. '":[' .. each(n, by == "oneOf" and '{"const":@}' or '{"minimum":-@}')
      .. "]}", "1"
  end)
  add("nested " .. by, function(n)
    return ('{"%s":['):format(by):rep(40) .. '{"enum":[' .. each(n, "@") .. "]}"
      .. ("]}"):rep(40), "1"
  end)
  add("nested " .. by .. " in a long list, wrong", function(n)
    return '{"items":' .. ('{"%s":['):format(by):rep(10) .. '{"type":"null"}' .. ("]}"):rep(10)
      .. "}",
      list(n, "@")
  end, true)
end

add("anyOf of objects with a tag, wrong", function(n)
  return '{"anyOf":[' .. each(n, '{"properties":{"kind":{"const":"k@"},"v":{"type":"null"}}}')
    .. "]}",
    '{"kind":"k","v":1}'
end, true)

add("oneOf of all that fit", function(n)
  return '{"items":{"oneOf":[{"type":"integer"},{"minimum":0}]}}', list(n, "@")
end, true)

add("not", function(n)
  return '{"properties":{' .. each(n, '"k@":{"not":{"const":2}}') .. "}}", object(n)
end)

add("if, then and else", function(n)
  return '{"allOf":[' .. each(n,
    '{"if":{"required":["k@"]},"then":{"minProperties":1},"else":false}') .. "]}",
    object(1)
end, true)

-- -- objects -------------------------------------------------------------------------------------

add("properties and required", function(n)
  return '{"properties":{' .. each(n, '"k@":{"type":"integer"}') .. '},"required":['
    .. each(n, '"k@"') .. "]}", object(n)
end)

add("required, of names twice", function(n)
  return '{"required":[' .. each(n, '"k@","k@"') .. "]}", object(n)
end)

add("required, none there", function(n)
  return '{"required":[' .. each(n, '"k@"') .. "]}", "{}"
end, true)

add("properties with long names alike", function(n)
  local head = ("x"):rep(200)
  return '{"properties":{' .. each(n // 4, function(i)
    return i == 1 and '"' .. head .. '1":true'
      or ('"%s%d":{"$ref":"#/properties/%s1"}'):format(head, i, head)
  end) .. "}}", "{" .. each(n // 4, '"' .. head .. '@":1') .. "}"
end)

add("additionalProperties: false, wrong", function(n)
  return '{"properties":{' .. each(n, '"p@":true') .. '},"additionalProperties":false}', object(n)
end, true)

add("patternProperties of one name", function(n)
  return '{"patternProperties":{' .. each(n // 4, '"^k@$":{"type":"integer"}') .. "}}", '{"k1":1}'
end)

add("patternProperties of many names", function(n)
  return '{"patternProperties":{"^k":{"type":"integer"},"1$":true},'
    .. '"additionalProperties":false}', object(n)
end)

add("propertyNames", function(n)
  return '{"propertyNames":{"maxLength":9,"not":{"const":"a"}}}', object(n)
end)

add("dependentRequired, each of the next", function(n)
  return '{"dependentRequired":{' .. each(n, function(i) return ('"k%d":["k%d"]'):format(i,
    i % n + 1) end)
    .. "}}", object(n)
end)

add("dependentRequired, one of all", function(n)
  return '{"dependentRequired":{"k1":[' .. each(n, '"k@"') .. "]}}", object(n)
end)

add("dependentRequired, none there", function(n)
  return '{"dependentRequired":{' .. each(n, '"k@":["a"]') .. "}}", object(n)
end, true)

add("dependentSchemas", function(n)
  return '{"dependentSchemas":{' .. each(n, '"k@":{"type":"object"}') .. "}}", object(n)
end)

add("dependencies", function(n)
  return "{" .. DRAFT_7 .. '"dependencies":{' .. each(n, '"k@":["k1"],"j@":{"type":"object"}')
    .. "}}",
    object(n)
end)

add("minProperties and maxProperties", function(n)
  return '{"minProperties":1,"maxProperties":10000000}', object(n)
end)

add("unevaluatedProperties beside many", function(n)
  return '{"allOf":[' .. each(n, '{"required":["k1"]}') .. '],"properties":{"k1":true},'
    .. '"unevaluatedProperties":false}', '{"k1":1}'
end)

add("unevaluatedProperties of many", function(n)
  return '{"anyOf":[{"properties":{"a":true}},{"patternProperties":{"^k":true}}],'
    .. '"unevaluatedProperties":false}', object(n)
end)

add("nested unevaluatedProperties", function(n)
  return ('{"unevaluatedProperties":true,"allOf":['):rep(20) .. '{"properties":{"k1":true}}'
    .. ("]}"):rep(20), object(n)
end)

add("defaults", function(n)
  return '{"properties":{' .. each(n, '"k@":{"default":@}') .. "}}", "{}"
end)

add("one default for many", function(n)
  return '{"properties":{' .. each(n,
    function(i) return ('"k%d":{"$ref":"#/$defs/d"}'):format(i) end)
    .. '},"$defs":{"d":{"default":"' .. ("x"):rep(n) .. '"}}}', object(n)
end)

-- -- lists ---------------------------------------------------------------------------------------

add("prefixItems", function(n)
  return '{"prefixItems":[' .. each(n, '{"minimum":1}') .. '],"items":false}', list(n, "@")
end)

add("items and additionalItems", function(n)
  return "{" .. DRAFT_7 .. '"items":[' .. each(n, '{"minimum":1}') .. '],"additionalItems":false}',
    list(n, "@")
end)

add("contains", function(n)
  return '{"contains":{"const":0},"minContains":0,"maxContains":1}', list(n, "@")
end)

add("many contains", function(n)
  return '{"allOf":[' .. each(n, '{"contains":{"minimum":1}}') .. "]}", "[1]"
end)

add("unevaluatedItems", function(n)
  return '{"prefixItems":[true],"contains":{"minimum":0},"unevaluatedItems":false}', list(n, "@")
end)

add("uniqueItems", function(n)
  return '{"uniqueItems":true}', list(n, "@")
end)

add("uniqueItems with long beginnings alike", function(n)
  return '{"uniqueItems":true}', list(n // 4, '"' .. ("x"):rep(100) .. '@"')
end)

add("uniqueItems of objects", function(n)
  return '{"uniqueItems":true}', list(n, '{"a":[@],"b":{}}')
end)

-- -- values --------------------------------------------------------------------------------------

add("enum", function(n)
  return '{"enum":[' .. each(n, '"v@"') .. "]}", '"v"'
end, true)

for name, value in pairs { strings = '"v@"', ["strings with escapes"] = '"\\u0001@"',
  numbers = "@.5",
  objects = '{"a":@}', ["lists"] = "[@,[]]" } do
  add("enum of " .. name .. " for as many items", function(n)
    return '{"items":{"enum":[' .. each(n, value) .. "]}}", list(n, value)
  end)
  add("enum of " .. name .. " for as many items, wrong", function(n)
    return '{"items":{"enum":[' .. each(n, value) .. "]}}", list(n, (value:gsub("@", "9999999@")))
  end, true)
end

add("const", function(n)
  return '{"const":' .. list(n, '{"a":@}') .. "}", list(n, '{"a":@}')
end)

add("type", function(n)
  return '{"prefixItems":[' .. each(n, '{"type":["integer","null","string"]}') .. "]}", list(n,
    "@")
end)

for _, by in ipairs { "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" } do
  add(by .. " of many digits", function(n)
    local digits = ("7"):rep(4 * n)
    return ('{"%s":%s}'):format(by, digits), by:find "xclusive" and (by:find "Min" and digits
      .. "0" or "1")
      or digits
  end)
end

add("multipleOf of many digits", function(n)
  return '{"multipleOf":0.7}', ("7"):rep(4 * n)
end)

add("maxLength and minLength", function(n)
  return '{"minLength":1,"maxLength":100000000}', '"' .. ("é"):rep(4 * n) .. '"'
end)

add("pattern", function(n)
  return '{"items":{"pattern":"^v\\\\d+$"}}', list(n, '"v@"')
end)

add("as many patterns", function(n)
  return '{"prefixItems":[' .. each(n // 4, '{"pattern":"^v@$"}') .. "]}", list(n // 4, '"v@"')
end)

-- -- annotations ---------------------------------------------------------------------------------

add("notes for readers", function(n)
  return '{"properties":{' .. each(n,
    '"k@":{"title":"t","description":"d","examples":[1],"$comment":"c"}')
    .. "}}", object(n)
end)

add("keywords that are not known", function(n)
  return "{" .. each(n, '"a@":{"b":1}') .. "}", "1", { unknown_keywords = "allow" }
end)

add("nested schemas", function(n)
  return '{"properties":{' .. each(n // 10, '"k@":' .. ('{"items":'):rep(20) .. "true"
    .. ("}"):rep(20))
    .. "}}", object(n // 10)
end)

add("long words in deep places", function(n)
  return ('{"items":'):rep(50) .. '{"description":"' .. ("x"):rep(4 * n) .. '"}'
    .. ("}"):rep(50), "[]"
end)

return shapes
