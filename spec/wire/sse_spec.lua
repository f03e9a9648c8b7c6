-- The event-stream parser: the cases of spec/data/sse, and that cuts change nothing.
local ahtest = require "ahtest"

local DATA = "spec/data/sse/"
local RECORDINGS = "../shared/wire"
local PAIRS_UP_TO = 60 -- bytes of a stream that is cut at every two places
local BYTES_A_FILE = 4000000 -- fed for one recording; long ones are cut at fewer places

local function unescape(s)
  local named = { n = "\n", r = "\r", t = "\t", ["\\"] = "\\" }
  return (s:gsub("\\(.)(%x?%x?)", function(c, hex)
    if c == "x" then
      return string.char(tonumber(hex, 16))
    end
    return assert(named[c], "unknown escape \\" .. c) .. hex
  end))
end

-- In expected lines only \xHH is replaced by a byte; other escapes are part of the written form.
local function unescape_bytes(s)
  return (s:gsub("\\x(%x%x)", function(hex) return string.char(tonumber(hex, 16)) end))
end

-- Adds one line to the case: "max N", the stream, then events and "! FAILURE".
local function add_line(case, line)
  if not case.stream and line:match("^max %d+$") then
    case.max = math.tointeger(line:sub(5))
  elseif not case.stream then
    case.stream = unescape(line)
  elseif line:sub(1, 2) == "! " then
    case.failure = line:sub(3)
  else
    case.events = case.events .. unescape_bytes(line) .. "\n"
  end
end

local function read_cases(name)
  local cases, case, number = {}, nil, 0
  for line in io.lines(DATA .. name) do
    number = number + 1
    if line == "" then
      case = nil
    elseif line:sub(1, 1) ~= "#" then
      if not case then
        case = { where = DATA .. name .. ":" .. number, events = "" }
        cases[#cases + 1] = case
      end
      add_line(case, line)
    end
  end
  return cases
end

-- Returns events and message as one string, for a single comparison.
local function outcome(case, ...)
  local events, message, code, before = ahtest.sse_feed(case, ...)
  if events then
    return events
  end
  return before .. "! " .. code .. ": " .. message
end

local function whole(case)
  return outcome(case, case.stream)
end

local function check_every_cut(case)
  local s, expected = case.stream, whole(case)
  for i = 0, #s do
    local got = outcome(case, s:sub(1, i), s:sub(i + 1))
    assert(got == expected, ("%s: cut at byte %d gives\n%s"):format(case.where, i, got))
  end
  for i = 1, #s <= PAIRS_UP_TO and #s or 0 do
    for j = i, #s do
      local got = outcome(case, s:sub(1, i), s:sub(i + 1, j), s:sub(j + 1))
      assert(got == expected, ("%s: cut at %d and %d gives\n%s"):format(case.where, i, j, got))
    end
  end
end

local function check_single_bytes(case)
  local bytes = { case.stream:byte(1, 4000) }
  for i, b in ipairs(bytes) do
    bytes[i] = string.char(b)
  end
  local beginning = { stream = case.stream:sub(1, 4000), max = case.max }
  assert.equal(whole(beginning), outcome(case, table.unpack(bytes)))
end

local function recordings()
  local find <close> = io.popen("find " .. RECORDINGS .. " -name '*.sse' 2>/dev/null | sort")
  local names = {}
  for name in find:lines() do
    names[#names + 1] = name
  end
  return names
end

local function read_file(name)
  local f <close> = assert(io.open(name, "rb"))
  return f:read("a")
end

for _, file in ipairs { "grammar.test", "limits.test" } do
  describe("sse: " .. file, function()
    for _, case in ipairs(read_cases(file)) do
      describe(case.where, function()
        it("gives its events", function()
          local got = whole(case)
          local events, failure = got:match("^(.-)! (.*)$")
          assert.equal(case.events, events or got)
          if case.failure then
            assert.truthy(failure, "did not fail")
            assert.truthy(failure:find(case.failure, 1, true), failure)
          end
        end)

        it("gives the same however it is cut", function()
          check_every_cut(case)
          check_single_bytes(case)
        end)
      end)
    end
  end)
end

describe("sse", function()
  it("reports a limit as an error of HTTP", function()
    local _, _, code = ahtest.sse_feed({ max = 3 }, "data: 1")
    assert.equal("http", code)
  end)

  it("hands out an event at its blank line, not later", function()
    assert.equal("|a\n", ahtest.sse_feed({ open = true }, "data: a\n\ndata: b\n"))
    assert.equal("|a\n", ahtest.sse_feed({ open = true }, "data: a\r\r"))
  end)

  it("survives the failure of any allocation", function()
    local stream = "event: name\ndata: one\ndata: two\n\n"
    local expected = ahtest.sse_feed({}, stream)
    local n, events, message, code = 0
    repeat
      n = n + 1
      events, message, code = ahtest.sse_feed({ fail = n }, stream:sub(1, 14), stream:sub(15))
      assert(events or message == "out of memory" and code == "internal")
    until events
    assert.equal(expected, events)
    assert.is_true(n > 3)
  end)

  local names = recordings()
  if #names == 0 then
    pending("gives the same for every cut of the recordings (" .. RECORDINGS .. " is not here)")
  end
  for _, name in ipairs(names) do
    it("gives the same for every cut of " .. name, function()
      local s = read_file(name)
      local case = { stream = s }
      local expected = whole(case)
      assert.truthy(#expected > 0)
      for i = 1, #s, #s * #s // BYTES_A_FILE + 1 do
        assert(outcome(case, s:sub(1, i), s:sub(i + 1)) == expected, "cut at byte " .. i)
      end
      check_single_bytes(case)
    end)
  end
end)
