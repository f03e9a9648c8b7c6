--- Checks the turns of the script. A value that no server could send (a status of four digits, a
-- header with a line break, a wait of NaN seconds) is refused here: when the script is read, or, if
-- a function returns the turn, in the response to its request. fields.lua lists the fields; this
-- file knows their kinds.
local ah, use = ...

local turn = { fields = {} } -- fields: a set of their names

local names, rows = {}, {}
for i, row in ipairs(use "mock.fields") do
  names[i], rows[row.name], turn.fields[row.name] = row.name, row, true
end

local MAX_HEADERS, MAX_HEADER_BYTES = 64, 16384 -- of one answer
local TOKEN = "^[%w!#$%%&'*+.^_`|~-]+$" -- a header's name
local SERVERS_OWN = { ["content-length"] = true, ["transfer-encoding"] = true, connection = true }
local CALL_FIELDS = { "id", "name", "arguments", "returns", "wrong" }
local USAGE_FIELDS = { "input", "output", "reasoning", "cached_read", "cached_write" }
local FAIL_FIELDS = { "message", "status", "retryable", "retry_after", "in_stream", "type", "code",
  "window", "used" }
local thorough = true -- false for a turn of an answer: checking each byte takes as long as sending
local FLAG, COUNT = { kind = "flag" }, { kind = "integer", least = 0, most = 1 << 53 }
local TOKENS = { kind = "integer", least = 1, most = COUNT.most }

local function refuse(text, ...)
  error(ah.error { code = "usage", message = text:format(...) }, 0)
end

local function found(value)
  if type(value) == "string" then
    return #value <= 40 and ("'%s'"):format(value) or ("a text of %d bytes"):format(#value)
  end
  if type(value) == "number" then
    return value == value and tostring(value) or "NaN"
  end
  return value == ah.null and "null" or type(value)
end

local function expect(ok, place, wanted, value)
  if not ok then
    refuse("%s must be %s, found %s", place, wanted, found(value))
  end
end

-- Refuses a value that is not a number in its range; NaN is in none.
local function check_range(value, row, place, kind)
  local ok = type(value) == "number" and value >= row.least and value <= row.most
  expect(ok and (kind == "a number" or math.tointeger(value)), place,
    ("%s from %d to %d"):format(kind, row.least, row.most), value)
end

local function named(place, fields, name)
  for _, field in ipairs(fields) do
    if field == name then
      return
    end
  end
  local near = ah.nearest(tostring(name), fields)
  refuse("unknown field '%s' in %s%s; there are: %s", tostring(name), place,
    near and (" (did you mean '%s'?)"):format(near) or "", table.concat(fields, ", "))
end

local KINDS = {}

function KINDS.any() end

function KINDS.integer(value, row, place)
  check_range(value, row, place, "an integer")
end

function KINDS.number(value, row, place)
  check_range(value, row, place, "a number")
end

function KINDS.text(value, _, place)
  expect(type(value) == "string", place, "a text", value)
  expect(not thorough or utf8.len(value), place, "a text in UTF-8", value)
end

function KINDS.bytes(value, _, place)
  expect(type(value) == "string", place, "a text", value)
end

function KINDS.flag(value, _, place)
  expect(type(value) == "boolean", place, "true or false", value)
end

function KINDS.texts(value, row, place)
  if type(value) ~= "table" then
    expect(type(value) == "string", place, "a text or a list of texts", value)
    return KINDS.text(value, row, place)
  end
  for key, piece in pairs(value) do
    expect(math.type(key) == "integer" and key >= 1 and key <= #value, place, "a list", value)
    KINDS.text(piece, row, ("%s[%d]"):format(place, key))
  end
end

function KINDS.word(value, row, place)
  for word in row.of:gmatch "%S+" do
    if value == word then
      return
    end
  end
  expect(false, place, "one of " .. row.of:gsub(" ", ", "), value)
end

local function check_header(name, value, place)
  expect(type(name) == "string" and #name <= 256 and name:find(TOKEN), place .. ": a name",
    "a header's", name)
  local here = ("%s: '%s'"):format(place, name)
  if SERVERS_OWN[name:lower()] then
    refuse("%s is for the server to say", here)
  end
  local kind = type(value)
  expect(kind == "string" or kind == "number" or kind == "boolean", here, "a text", value)
  if tostring(value):find "[%z\1-\8\10-\31\127]" then
    refuse("%s must not hold control characters", here)
  end
  return #name + #tostring(value)
end

function KINDS.headers(value, _, place)
  expect(type(value) == "table", place, "a table of names and values", value)
  local n, bytes = 0, 0
  for name, text in pairs(value) do
    n, bytes = n + 1, bytes + check_header(name, text, place)
  end
  if n > MAX_HEADERS or bytes > MAX_HEADER_BYTES then
    refuse("%s: %d of %d bytes, %d of %d bytes are the most", place, n, bytes, MAX_HEADERS,
      MAX_HEADER_BYTES)
  end
end

function KINDS.usage(value, _, place)
  expect(type(value) == "table", place, "a table of counts", value)
  for name, n in pairs(value) do
    named(place, USAGE_FIELDS, name)
    KINDS.integer(n, COUNT, place .. "." .. name)
  end
end

local function check_call(call, place)
  expect(type(call) == "table", place, "a table", call)
  for name in pairs(call) do
    named(place, CALL_FIELDS, name)
  end
  KINDS.text(call.name, nil, place .. ".name")
  local arguments = call.arguments
  if type(arguments) ~= "table" and arguments ~= nil then
    expect(type(arguments) == "string", place .. ".arguments", "a table or JSON text", arguments)
    KINDS.text(arguments, nil, place .. ".arguments")
  end
  if call.id ~= nil then
    KINDS.text(call.id, nil, place .. ".id")
  end
end

function KINDS.calls(value, _, place)
  expect(type(value) == "table", place, "a list of calls", value)
  for key, call in pairs(value) do
    expect(math.type(key) == "integer" and key >= 1 and key <= #value, place, "a list", value)
    check_call(call, ("%s[%d]"):format(place, key))
  end
end

-- Fields of `fail` that a turn does not have.
local FAIL_ROWS = { retryable = FLAG, in_stream = FLAG, window = TOKENS, used = TOKENS }

function KINDS.fail(value, _, place)
  expect(type(value) == "table", place, "a table", value)
  for name, given in pairs(value) do
    named(place, FAIL_FIELDS, name)
    local row = FAIL_ROWS[name] or rows[name]
    KINDS[row.kind](given, row, place .. "." .. name)
  end
end

local function check_turn(t, place)
  for name, value in pairs(t) do
    named(place, names, name)
    local row = rows[name]
    KINDS[row.kind](value, row, ("%s: %s"):format(place, name))
  end
end

--- Raises if a turn of an answer is faulty; its texts are not checked byte by byte.
function turn.check(t)
  thorough = false
  check_turn(t, "turn")
end

--- Raises if a turn that a spec of ah.scripted already contains is faulty.
function turn.check_all(spec)
  local list = type(spec) == "table" and (type(spec.rules) == "table" and spec.rules or spec) or {}
  thorough = true
  for i, t in ipairs(list) do
    local copy = {}
    for name, value in pairs(type(t) == "table" and t or {}) do
      copy[name] = (list == spec or name ~= "when") and value or nil
    end
    check_turn(copy, ("%s %d"):format(list == spec and "turn" or "rule", i))
  end
end

return turn
