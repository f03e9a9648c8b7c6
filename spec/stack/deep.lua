-- The inputs that take the most C stack, one case a name: the deepest that each path accepts. Run
-- by build/stack (stack.c) in a thread whose stack is measured. The global CASE names the case; "?"
-- requests the names. The cases `lua_*` measure scripts without the library.
local ah = require "agenthost"

local LEVELS = 512 -- limit of the levels of JSON

local function nested(open, inner, close, n)
  return open:rep(n) .. inner .. close:rep(n)
end

-- A list in a list, an object in an object, and both.
local LISTS = nested("[", "1", "]", LEVELS)
local OBJECTS = nested('{"a":', "1", "}", LEVELS)
local BOTH = nested('{"a":[', "1", "]}", LEVELS // 2)

local function same(value)
  assert(value ~= nil)
  return value
end

-- Runs one call of the tool with these arguments.
local function call(tool, arguments, more)
  local run = { tools = { tool }, "Go",
    model = ah.scripted { { calls = { { name = "t", arguments = arguments } } }, "done" } }
  for k, v in pairs(more or {}) do
    run[k] = v
  end
  local reply, err = ah.run(run)
  return reply, err
end

local function tool(fields)
  fields.name, fields.description = "t", "Is deep."
  fields.handler = fields.handler or function() return "ran" end
  return ah.tool(fields)
end

-- Checks arguments of 500 levels with a schema that refers to itself through this keyword.
local function recursive(schema, arguments, more)
  more = more or {}
  local fields = { schema = schema }
  for k, v in pairs(more.tool or {}) do
    fields[k] = v
  end
  local reply = assert(call(tool(fields), arguments or nested('{"a":', "{}", "}", 500)))
  local said = reply.messages[3].content
  assert(said:find(more.says or "^ran"), said)
end

local function object(a)
  return { type = "object", properties = { a = a } }
end

local SELF = { ["$ref"] = "#" }

-- Returns n schemas that refer to the next one in place; the last one is `inner`.
local function in_place(n, inner, wrap)
  local defs = {}
  for i = 1, n do
    local to = i == n and inner or { ["$ref"] = "#/$defs/d" .. i + 1 }
    defs["d" .. i] = wrap and wrap(to) or to
  end
  return { type = "object", properties = { a = { ["$ref"] = "#/$defs/d1" } }, ["$defs"] = defs }
end

local cases = {}

-- -- JSON ---------------------------------------------------------------------------

function cases.decode()
  for _, text in ipairs { LISTS, OBJECTS, BOTH } do
    same(ah.json.decode(text))
  end
end

function cases.encode()
  for _, text in ipairs { LISTS, OBJECTS, BOTH } do
    assert(ah.json.encode(ah.json.decode(text)) == text)
  end
end

function cases.refused()
  local value, err = ah.json.decode(("["):rep(1000000))
  assert(value == nil and err)
  local deep = {}
  for _ = 1, 100000 do
    deep = { deep }
  end
  assert(not pcall(ah.json.encode, deep))
end

-- -- schemas --------------------------------------------------------------------------

function cases.properties()
  recursive(object(SELF))
end

function cases.items()
  recursive({ type = "object", properties = { a = { ["$ref"] = "#/$defs/list" } },
    ["$defs"] = { list = { type = "array", items = { ["$ref"] = "#/$defs/list" } } } },
    '{"a":' .. nested("[", "", "]", 500) .. "}")
end

function cases.any_of()
  recursive(object { anyOf = { { type = "null" }, { anyOf = { { type = "string" }, SELF } } } })
end

function cases.one_of_told()
  recursive(object { oneOf = { { type = "integer" }, SELF } }, nested('{"a":', '"x"', "}", 60),
    { says = "^Tool validation failed" })
end

function cases.all_of()
  recursive(object { allOf = { { allOf = { SELF } } } })
end

function cases.conditions()
  recursive { type = "object", ["if"] = { properties = { b = { const = 1 } }, required = { "b" } },
    ["else"] = { properties = { a = SELF } } }
end

function cases.dependencies()
  recursive { type = "object", dependentSchemas = { a = { properties = { a = SELF } } } }
end

function cases.negations()
  recursive(object { ["not"] = { ["not"] = SELF } })
end

function cases.patterns()
  recursive { type = "object", patternProperties = { ["^a"] = SELF } }
end

function cases.unevaluated()
  recursive { type = "object", unevaluatedProperties = SELF }
end

function cases.contained()
  local list = { ["$ref"] = "#/$defs/list" }
  recursive({ type = "object", properties = { a = list }, ["$defs"] = {
    list = { type = "array", anyOf = { { maxItems = 0 }, { contains = list } } } } },
    '{"a":' .. nested("[", "", "]", 500) .. "}")
end

function cases.dynamic()
  recursive { ["$dynamicAnchor"] = "me", type = "object",
    properties = { a = { ["$dynamicRef"] = "#me" } } }
end

function cases.coerced()
  recursive({ type = "object", properties = { a = SELF, b = { type = "integer" } } },
    nested('{"a":', '{"b":"1"}', "}", 500), { tool = { coerce = true } })
end

function cases.defaults()
  recursive { type = "object", properties = { a = SELF, b = { type = "integer", default = 1 } } }
end

function cases.unique()
  local deep = nested("[", "1", "]", 500)
  recursive(object { type = "array", uniqueItems = true }, '{"a":[' .. deep .. "," .. deep .. "]}",
    { says = "must have no item twice" })
end

function cases.constants()
  local deep = nested("[", "1", "]", 500)
  recursive(object { const = ah.json.decode(deep) }, '{"a":' .. deep .. "}")
end

function cases.references()
  recursive(in_place(500, { type = "integer" }), '{"a":1}')
end

function cases.references_within()
  recursive(in_place(160, { type = "integer" }, function(to)
    return { allOf = { { anyOf = { to } } } }
  end), '{"a":1}')
end

function cases.circle()
  recursive({ type = "object", properties = { a = { ["$ref"] = "#/$defs/x" } },
    ["$defs"] = { x = { properties = { a = { ["$ref"] = "#/$defs/x" } },
      allOf = { { allOf = { { allOf = { { allOf = { {} } } } } } } } } } },
    nested('{"a":', "{}", "}", 500))
end

function cases.faults_deep()
  recursive(object(SELF), nested('{"a":', "1", "}", 500), { says = "must be an object" })
end

function cases.compile()
  local schema = { type = "object" }
  for _ = 1, 30 do
    schema = { type = "object", properties = { a = schema } }
  end
  recursive(schema, "{}")
  for _ = 1, 100 do
    schema = { type = "object", properties = { a = schema } }
  end
  assert(not pcall(tool, { schema = schema }))
end

function cases.expressions()
  for _, pattern in ipairs { nested("(", "a", ")", 199), nested("(?:", "a", ")*", 199),
    nested("(?:b|(?=a|", "a", "))", 99), nested("(?!", "a", ")", 199),
    nested("(a?", "", "){1,2}", 15),
    nested("(?=", "a", ")", 199), nested("(", "a|b", ")+", 199), ("a|"):rep(20000) .. "b",
    ("(?:a)"):rep(900), ("\\p{L}"):rep(2000), "[" .. ("a-z"):rep(10000) .. "]" } do
    local ok, schema = pcall(ah.schema, { type = "string", pattern = pattern })
    if ok then
      schema:validate(("a"):rep(2000))
      schema:validate(("a"):rep(200000))
    end
  end
end

function cases.lookbehinds()
  for n = 1, 20 do
    local ok, schema = pcall(ah.schema, { type = "string",
      pattern = nested("(?<=(?:", "a|bc", "))", n * 9) })
    if ok then
      schema:validate(("a"):rep(2000))
    end
  end
end

-- -- runs -----------------------------------------------------------------------------

function cases.arguments()
  recursive({ type = "object" }, nested('{"a":', "{}", "}", 500))
end

function cases.result()
  local value = ah.json.decode(nested("[", "1", "]", 500))
  assert(call(tool { params = {}, handler = function() return value end }, "{}"))
end

function cases.result_checked()
  local value = ah.json.decode(nested('{"a":', "{}", "}", 500))
  assert(call(tool { params = {}, result = object(SELF),
    handler = function() return value end }, "{}"))
end

function cases.output()
  local reply = assert(ah.run { model = ah.scripted { nested('{"a":', "{}", "}", 500) },
    output = object(SELF), "Go" })
  same(reply.value)
end

local function in_runs(n, wrap)
  local function ask(left)
    if left == 0 then
      return "deepest"
    end
    local inner = tool { params = {}, handler = function()
      return wrap(function() return ask(left - 1) end)
    end }
    local reply, err = call(inner, "{}")
    return reply and reply.text or error(tostring(err))
  end
  return ask(n)
end

function cases.runs_in_runs()
  same(in_runs(8, function(f) return f() end))
end

-- In callbacks of C functions no coroutine can yield, so each run drives the loop inside the other.
function cases.drives_in_drives()
  same(in_runs(8, function(f)
    local got
    table.sort({ 2, 1 }, function(a, b)
      got = got or f()
      return a < b
    end)
    return got
  end))
end

function cases.drives_in_gsub()
  same(in_runs(8, function(f)
    return (("x"):gsub("x", function() return f() end))
  end))
end

-- The deepest check inside the deepest of these runs.
function cases.checks_in_drives()
  local schema = object(SELF)
  local deep = nested('{"a":', "{}", "}", 500)
  same(in_runs(7, function(f)
    return (("x"):gsub("x", function()
      local reply = assert(call(tool { schema = schema, result = schema,
        handler = function(args) return args end }, deep))
      return reply.text .. f()
    end))
  end))
end

-- -- values, entities, sessions ---------------------------------------------------------

-- A failed call of a method restores its instance with all its contents.
function cases.entity()
  local Box = ah.entity { name = "Box", prefix = "box", id = "id" }
  Box:tool { name = "fill", description = "Fills.", handler = function(self)
    self.changed = true
    error("no")
  end }
  local deep = {}
  for _ = 1, 4900 do
    deep = { deep }
  end
  local box = Box { id = "1", inside = deep }
  local reply = assert(ah.run { discover = true,
    model = ah.scripted { { calls = { { name = "t", arguments = "{}" } } },
      { calls = { { name = "box_1_fill", arguments = "{}" } } }, "done" },
    tools = { tool { params = {}, handler = function() return box end } }, "Go" })
  assert(reply.messages[5].content:find "no$" and not box.changed, reply.messages[5].content)
end

function cases.session()
  local value = ah.json.decode(nested('{"a":', "{}", "}", 500))
  local Kind = ah.type { name = "kind", schema = object(SELF) }
  local session = ah.session():register(Kind)
  session:dispatch(Kind(value))
  local text = session:snapshot()
  local other = ah.session():register(Kind)
  assert(other:restore(text))
  assert(other:snapshot() == text)
end

function cases.sections()
  local section = ah.section { key = "s", title = "S", template = ("${a}"):rep(3000),
    params = { a = "string = x" } }
  for i = 1, 31 do
    section = ah.section { key = "s" .. i, title = "S", template = "text", section }
  end
  assert(ah.run { model = ah.scripted { "done" }, section, "Go" })
end

function cases.messages()
  local deep = nested('{"a":', "{}", "}", 500)
  assert(ah.run { model = ah.scripted { "done" }, messages = {
    { role = "user", content = "x" },
    { role = "assistant", content = "",
      tool_calls = { { id = "1", name = "t", arguments = deep } } },
    { role = "tool", tool_call_id = "1", content = deep } }, "Go" })
end

-- -- HTTP -------------------------------------------------------------------------------

function cases.http()
  local reply, err = ah.run { model = "openai/gpt-4o", api_key = "k", retries = 0,
    base_url = "http://127.0.0.1:1", "Go" }
  assert(not reply and err.code == "http", tostring(err))
end

-- -- files --------------------------------------------------------------------------------

local function deep_files()
  local fs = ah.filesystem { memory = true, max_depth = 64 }
  for i = 1, 64 do
    assert(fs:write(("d/"):rep(i - 1) .. "file" .. i, "a line\n"))
  end
  return fs
end

function cases.walks()
  local fs = deep_files()
  same(fs:glob("**/*"))
  same(fs:grep("line", {}))
  local over = fs:overlay():overlay():overlay()
  same(over:glob("**/*"))
  same(over:grep("(l|x)ine", {}))
  over:delete("d", { recursive = true })
  over:rename("file1", "file2", { replace = true })
  over:read("not/there")
end

function cases.globs()
  local fs = deep_files()
  fs:glob(("*a"):rep(500))
  fs:glob(("{a,b}"):rep(6) .. ("**/"):rep(300) .. "x")
  fs:glob(nested("{a,", "b", "}", 300))
  fs:glob(("["):rep(1000))
end

-- -- Lua --------------------------------------------------------------------------------

-- The stack of a script's own Lua code, without the library.
function cases.lua_gsub()
  local function f(s)
    return (s:gsub(".", f))
  end
  pcall(f, "x")
end

function cases.lua_sort()
  local function f()
    table.sort({ 2, 1 }, function() f() return true end)
  end
  pcall(f)
end

function cases.lua_parse()
  load(("("):rep(10000))
  load("x = " .. ("{"):rep(10000))
  load(("do "):rep(10000))
  load("x = " .. ("function() return "):rep(10000))
end

function cases.lua_coroutines()
  local function f()
    coroutine.wrap(f)()
  end
  pcall(f)
end

function cases.lua_patterns()
  local text = ("a"):rep(300000)
  pcall(string.find, text, ("a?"):rep(10000) .. ("a"):rep(10000))
  pcall(string.find, text, ("(a?)"):rep(32))
  pcall(string.find, text, ("[ab]-"):rep(1000) .. "c")
end

if _G.CASE == "?" then
  local names = {}
  for name in pairs(cases) do
    names[#names + 1] = name
  end
  table.sort(names)
  print(table.concat(names, "\n"))
else
  cases[_G.CASE]()
end
