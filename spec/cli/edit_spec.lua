-- The editing of a line (lua/agenthost/command/edit.lua): keys, from the bytes of a terminal, and
-- the text, the cursor and the shown lines that follow.
--
--   AGENTHOST_EDITS=100000   number of random keys (default 5000)
--   AGENTHOST_EDITS_SEED=7   the seed (default 1)
local ah = require "agenthost"
local ahtest = require "ahtest"

local edit = assert(loadfile "lua/agenthost/command/edit.lua")(ah)
local character = ah.terminal.character

local PROMPTS = { "> ", "  " }
local MODIFIERS = { "ctrl", "alt", "shift" }

-- Returns the event of a line such as "ctrl+a " or "paste text", of ahtest.keys.
local function event_of(s)
  local paste = s:match "^c?u?t? ?paste (.*)$"
  if paste then
    return { paste = paste, truncated = s:find "^cut " and true or nil }
  end
  local event = {}
  for _, one in ipairs(MODIFIERS) do
    if s:find("^" .. one .. "%+.") then
      event[one], s = true, s:sub(#one + 2)
    end
  end
  event.key = s:match "^[^ ]+"
  event.text = s:match "^[^ ]+ (.+)$"
  return event
end

-- Takes the keys of these bytes, and a pause; returns the last outcome.
local function press(e, ...)
  local chunks, outcome = { ... }, nil
  chunks[#chunks + 1] = false
  for _, one in ipairs(ahtest.keys(chunks)) do
    outcome = e:take(event_of(one))
  end
  return outcome
end

-- Returns the text with | at the cursor, after these bytes were typed.
local function shown(e)
  return e.text:sub(1, e.at - 1) .. "|" .. e.text:sub(e.at)
end

local function after(bytes, o)
  local e = edit.new(o or {})
  press(e, bytes)
  return shown(e)
end

-- Returns the strings of a line.
local function plain(line)
  if type(line) ~= "table" then
    return line
  end
  local parts = {}
  for i, one in ipairs(line) do
    parts[i] = plain(one)
  end
  return table.concat(parts)
end

local function view(e, columns, rows)
  local lines, cursor = e:view(columns or 40, rows or 24, PROMPTS)
  for i, line in ipairs(lines) do
    lines[i] = plain(line)
  end
  return table.concat(lines, "\n"), cursor
end

local UP, DOWN, RIGHT, LEFT, HOME, END = "\27[A", "\27[B", "\27[C", "\27[D", "\27[H", "\27[F"
local DELETE, ALT_LEFT, CTRL_RIGHT = "\27[3~", "\27[1;3D", "\27[1;5C"
local FAMILY, ACCENT = "👨‍👩‍👧", "e\u{301}"

describe("keys", function()
  it("move and change by characters, with their marks and joined ones", function()
    local text = "a" .. ACCENT .. FAMILY .. "世"
    assert.equal("a" .. ACCENT .. "|" .. FAMILY .. "世", after(text .. LEFT .. LEFT))
    assert.equal("a" .. ACCENT .. "|世", after(text .. LEFT .. "\127"))
    assert.equal("a|" .. FAMILY .. "世", after(text .. "\1" .. "\6" .. DELETE))
    assert.equal("a" .. ACCENT .. "|" .. FAMILY .. "世", after(text .. HOME .. RIGHT .. RIGHT))
    assert.equal("|a" .. ACCENT .. FAMILY .. "世", after(text .. ("\2"):rep(9)))
    assert.equal("a" .. ACCENT .. "世" .. FAMILY .. "|", after(text .. "\20"))
    assert.equal("a" .. ACCENT .. FAMILY .. "|", after(text .. "\8"))
    assert.equal("e\u{301}|", after("e\u{301}"))
  end)

  it("move and kill by words and lines", function()
    local text = "one two-three  four"
    assert.equal("one two-|three  four", after(text .. "\27b\27b"))
    assert.equal("one two|-three  four", after(text .. "\1\27f" .. CTRL_RIGHT))
    assert.equal("one |two-three  four", after(text .. ALT_LEFT .. "\27b\27b"))
    assert.equal("one two-three  |", after(text .. "\23"))
    assert.equal("one |", after(text .. "\23\23"))
    assert.equal("one two-|", after(text .. "\27\127\27\127"))
    assert.equal("| two-three  four", after(text .. "\1\27d"))
    assert.equal("|", after(text .. "\21"))
    assert.equal("one|", after(text .. "\1\27f\11"))
    assert.equal("one|", after("one" .. "\11"))
    assert.equal("a|b", after("a\nb" .. UP .. END .. "\11"))
  end)

  it("put back what was killed in a row", function()
    local text = "one two three"
    assert.equal("two threeone |", after(text .. "\1\27f\6\21\5\25"))
    assert.equal("one two three|", after(text .. "\23\23\25"))
    assert.equal("one two three two three|", after(text .. "\1\27f\11\25\25"))
    assert.equal("three|", after(text .. "\23\2\21\5\21\25" .. "\23three"))
    assert.equal("a|", after("a\23\1\21\25"))
  end)

  it("exchange two characters", function()
    assert.equal("ba|", after "ab\20")
    assert.equal("bac|d", after("abcd\1\6\20\6"))
    assert.equal("|ab", after "ab\1\20")
    assert.equal("a|", after "a\20")
  end)

  it("end the line, or ask for something", function()
    local e = edit.new {}
    for bytes, outcome in pairs { ["\r"] = "enter", ["\3"] = "interrupt", ["\4"] = "end",
      ["\t"] = "complete", ["\12"] = "clear", ["\26"] = "suspend", ["\27OM"] = "enter" } do
      assert.equal(outcome, press(e, bytes))
    end
    assert.is_nil(press(e, "ab\1\4"))
    assert.equal("|b", shown(e))
    assert.equal("interrupt", press(e, "\3"))
    assert.equal("enter", press(e, "\r"))
    assert.equal("b", e.text)
  end)

  it("make a text of several lines", function()
    assert.equal("a\nb\nc|", after "a\nb\27\rc")
    assert.equal("a\nb|", after "a\\\rb")
    local e = edit.new {}
    assert.equal("enter", press(e, "a\\\\\r"))
    assert.equal("a\\\\", e.text)
    assert.equal("one\nt|wo\nthree", after("one\ntwo\nthree" .. HOME .. RIGHT .. UP))
    assert.equal("one\ntwo|\nthree", after("one\ntwo\nthree" .. UP))
    assert.equal("one\n世界|\nthree", after("one\n世界\nthree" .. UP))
    assert.equal("one\n世|界\nthree", after("one\n世界\nthr" .. UP .. DOWN .. "ee" .. LEFT:rep(2)
      .. UP))
    assert.equal("abcd|\n\nabcd", after("abcd\n\nabcd" .. UP .. UP))
    assert.equal("|one\ntwo", after("one\ntwo\1" .. UP))
  end)

  it("of no meaning do nothing", function()
    assert.equal("a|", after "a\27[5~\27OP\27[99;5u\0\27x\x80\xff")
  end)

  it("are the same wherever their bytes are cut", function()
    local bytes = "a世" .. LEFT .. "\27[200~p\nq\27[201~" .. ACCENT .. "\27b\23x" .. UP .. DELETE
    local whole = after(bytes)
    for cut = 1, #bytes - 1 do
      local e = edit.new {}
      press(e, bytes:sub(1, cut), bytes:sub(cut + 1))
      assert.equal(whole, shown(e))
    end
  end)
end)

describe("a paste", function()
  local lines = {}
  for i = 1, 200 do
    lines[i] = "line " .. i
  end
  local TEXT = table.concat(lines, "\n")
  local PASTE = "\27[200~" .. TEXT:gsub("\n", "\r") .. "\27[201~"

  it("of many lines is one text, of which the part at the cursor is shown", function()
    local e = edit.new {}
    assert.is_nil(press(e, PASTE))
    assert.equal(TEXT, e.text)
    local text, cursor = view(e)
    assert.equal("[188 more above]\n  line 189\n", text:sub(1, 28))
    assert.equal("  line 200", text:match "[^\n]*$")
    assert.same({ line = 13, column = 11 }, cursor)
    press(e, UP:rep(100))
    text, cursor = view(e)
    assert.equal("  line 100", cursor.line and text:match("\n(  line 100)\n"))
    assert.truthy(text:find "more above" and text:find "more below")
    assert.equal("enter", press(e, "\r"))
    text = plain(e:whole(PROMPTS))
    assert.equal("> line 1\n  line 2\n", text:sub(1, 18))
    assert.equal("[190 more lines]", text:match "[^\n]*$")
  end)

  it("has no commands, nor have other texts", function()
    local e = edit.new { text = "a\27[2Jb\r\nc\0\u{202e}" }
    assert.equal("a\\x1b[2Jb\nc\\x00\\u202e", e.text)
    assert.equal("xy|", after "\27[200~x\27\27[31my\7\27[201~")
    e = edit.new { history = { "\27]0;title\7" } }
    press(e, UP)
    assert.equal("\\x1b]0;title\\x07", e.text)
  end)

  it("that is too large is cut, and the cut is shown", function()
    local e = edit.new { most = 6 }
    press(e, "ab\27[200~世世\27[201~")
    assert.equal("ab世", e.text)
    assert.equal("> ab世\n[... 3 bytes left out]", (view(e)))
    press(e, "x")
    assert.equal("> ab世x", (view(e)))
    e:take { paste = "", truncated = true }
    assert.equal("> ab世x\n[... the rest of the paste is left out]", (view(e)))
  end)
end)

describe("what is shown", function()
  it("has the cursor at its column", function()
    local e = edit.new {}
    press(e, "a世\27[200~\t\27[201~" .. ACCENT)
    local text, cursor = view(e)
    assert.equal("> a世\t" .. ACCENT, text)
    assert.same({ line = 1, column = 10 }, cursor)
    press(e, "\nb" .. LEFT)
    text, cursor = view(e)
    assert.equal("> a世\t" .. ACCENT .. "\n  b", text)
    assert.same({ line = 2, column = 3 }, cursor)
    press(e, LEFT)
    assert.same({ line = 1, column = 10 }, select(2, view(e)))
  end)

  it("is a part of a line that is very long", function()
    local e = edit.new { text = ("x"):rep(50000) .. "y" .. ("世"):rep(50000), at = 50002 }
    local text, cursor = view(e)
    assert.truthy(#text < 5000, #text)
    assert.truthy(text:find "^> %[%.%.%.%]x+y世")
    assert.truthy(text:find "世%[%.%.%.%]$")
    assert.equal(text:find "世", cursor.column)
    assert.truthy(utf8.len(text))
    assert.truthy(#plain(e:whole(PROMPTS)) < 5000)
  end)

  it("is found in little time in a text of 1 MiB", function()
    for _, part in ipairs { "x", "x\n", "\n", "\\", " ", "世x" } do
      local e = edit.new { text = part:rep((1 << 20) // #part) }
      local begin = os.clock()
      press(e, UP .. HOME .. LEFT .. RIGHT .. "\27b\27f\27d\23y\20\5z" .. DELETE .. "\r")
      view(e)
      assert.truthy(os.clock() - begin < 3, part)
    end
  end)

  it("fits into the rows, with wrapped lines", function()
    local lines = {}
    for i = 1, 30 do
      lines[i] = ("x"):rep(35)
    end
    local e = edit.new { text = table.concat(lines, "\n") }
    local text = view(e, 20, 10)
    assert.equal("[28 more above]", text:match "^[^\n]*")
    assert.equal(2, select(2, text:gsub("x+", "")))
    assert.equal(1, select(2, view(e, 1, 1):gsub("x+", "")))
  end)
end)

describe("the history", function()
  local function with(...)
    return { history = { ... } }
  end

  it("is walked up and down, and keeps what was typed and edited", function()
    local o = with("first", "second")
    assert.equal("second|", after("typed" .. UP, o))
    assert.equal("first|", after(UP:rep(5), o))
    assert.equal("typed|", after("typed" .. UP .. UP .. DOWN:rep(5), o))
    assert.equal("seconds|", after(UP .. "s" .. UP .. DOWN, o))
    assert.equal("second|", after("\16\16\14", o))
    assert.same({ "first", "second" }, o.history)
    assert.equal("first|\nsecond", after(UP .. UP, with("one", "first\nsecond")))
    assert.equal("one|", after(UP .. UP .. UP, with("one", "first\nsecond")))
  end)

  it("is searched", function()
    local o = with("make test", "git log", "make lint")
    assert.equal("|make lint", after("\18make\5\1", o))
    assert.equal("make |test", after("\18make \18\6\1\27f\6", o))
    assert.equal("git |log", after("\18log\27", o))
    assert.equal("m|", after("m\18log\7", o))
    assert.equal("m|", after("m\18log\3", o))
    assert.equal("make |lint", after("\18l\18\19\27", o))
    assert.equal("git log|", after("\18make\18\5" .. DOWN, o))
    assert.equal("make |lint", after("\18lx\127i\27", o))
    local e = edit.new(o)
    assert.equal("enter", press(e, "\18test\r"))
    assert.equal("make test", e.text)
    e = edit.new(o)
    press(e, "\18lint")
    assert.equal("(search: lint) make lint", (view(e)))
    press(e, "ern")
    assert.equal("(not found: lintern) make lint", (view(e)))
    e = edit.new {}
    press(e, "\18\27")
    press(e, "x")
    assert.equal("x|", shown(e))
  end)
end)

describe("completion", function()
  local function complete(text, candidates, from)
    local e = edit.new { text = text }
    local listed = e:offer(candidates, from)
    return shown(e), listed
  end

  it("puts in what the candidates have in common", function()
    assert.equal("read_file|", complete("rea", { "read_file" }, 1))
    assert.equal("a read_|", complete("a re", { "read_file", "read_folder", "read_" }, 3))
    assert.equal("x|", complete("x", {}, 1))
    assert.equal("世|", complete("", { "世a", "世b" }, 1))
    assert.equal("|", complete("", { "e\u{301}", "e\u{300}" }, 1))
    assert.equal("|", complete("", { "世", "丗" }, 1))
    assert.equal("a\\x1b|", complete("a", { "a\27" }, 1))
  end)

  it("lists them at the second Tab", function()
    local e = edit.new { text = "al" }
    local list = { "alpha", "alps" }
    assert.is_nil(e:offer(list, 1))
    assert.equal("alp", e.text)
    assert.is_nil(e:offer(list, 1))
    assert.same(list, e:offer(list, 1))
    press(e, "\127")
    assert.is_nil(e:offer(list, 1))
  end)
end)

-- -- random keys ----------------------------------------------------------------------------------

-- A small random generator, the same everywhere.
local function generator(seed)
  return function(n)
    seed = (seed * 6364136223846793005 + 1442695040888963407) & -1
    return (seed >> 33) % n + 1
  end
end

local COUNT = math.tointeger(tonumber(os.getenv "AGENTHOST_EDITS" or "5000"))
local SEED = math.tointeger(tonumber(os.getenv "AGENTHOST_EDITS_SEED" or "1"))

local CHARACTERS = { "a", "b", " ", "_", "世", "é", "👍🏽", ACCENT, FAMILY, "\n" }

-- A model of the simple keys: a list of characters, and the number of those before the cursor.
local MODEL = {
  [LEFT] = function(m) m.at = math.max(0, m.at - 1) end,
  [RIGHT] = function(m) m.at = math.min(#m, m.at + 1) end,
  ["\127"] = function(m)
    if m.at > 0 then
      table.remove(m, m.at)
      m.at = m.at - 1
    end
  end,
  [DELETE] = function(m) if m.at < #m then table.remove(m, m.at + 1) end end,
  [HOME] = function(m)
    while m.at > 0 and m[m.at] ~= "\n" do
      m.at = m.at - 1
    end
  end,
  [END] = function(m)
    while m.at < #m and m[m.at + 1] ~= "\n" do
      m.at = m.at + 1
    end
  end,
}

it("edits as a list of characters", function()
  local random, keys = generator(SEED), {}
  for key in pairs(MODEL) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  local e, m = edit.new {}, { at = 0 }
  for i = 1, COUNT do
    if random(3) < 3 then
      local c = CHARACTERS[random(#CHARACTERS)]
      press(e, "\27[200~" .. c .. "\27[201~")
      m.at = m.at + 1
      table.insert(m, m.at, c)
    else
      local key = keys[random(#keys)]
      press(e, key)
      MODEL[key](m)
    end
    local expected = table.concat(m, "", 1, m.at) .. "|" .. table.concat(m, "", m.at + 1)
    if expected ~= shown(e) then
      assert.equal(expected, shown(e), "after key " .. i)
    end
    if #m > 40 then
      e, m = edit.new {}, { at = 0 }
    end
  end
end)

-- The `assert` of busted takes too long for so many keys.
local function must(value)
  return value or error("a text out of order", 2)
end

-- Raises unless the text is UTF-8 without controls, the cursor is between characters and in what
-- is shown.
local function check(e, columns, rows)
  must(utf8.len(e.text))
  for line in e.text:gmatch "[^\n]+" do
    must(line == ah._harmless(line))
  end
  must(#e.text <= e.most)
  must(e.at >= 1 and e.at <= #e.text + 1)
  must(e.at > #e.text or character(e.text, e.at) == e.at)
  local lines, cursor = e:view(columns, rows, PROMPTS)
  local line = plain(must(lines[cursor.line]))
  must(cursor.column >= 1 and cursor.column <= ah.terminal.width(line) + 1)
  must(not line:find "\n")
  plain(e:whole(PROMPTS))
end

it("keeps its order with any keys", function()
  local random = generator(SEED)
  local marks = { "\u{301}", "\u{200d}", "\u{fe0f}", "🇩", "🇪", "🏽", "👨", "\t", "\\", "\r", "\xc3",
    "\u{202e}", "\27[200~\u{301}\n\n\tb 👩\27[201~" }
  local history = { "make test", "two\nlines", "\27[1m", ("世"):rep(300), "" }
  local e = edit.new { history = history, most = 500 }
  for _ = 1, COUNT do
    local kind = random(8)
    local bytes = kind < 4 and CHARACTERS[random(#CHARACTERS)]
      or kind == 4 and marks[random(#marks)]
      or kind == 5 and "\27" .. string.char(random(127)) or kind == 6 and string.char(random(31))
      or kind == 7 and ("\27[%s"):format(("ABCDHF"):sub(random(6))):sub(1, 3) or "\27[3~"
    press(e, bytes)
    if random(30) == 1 then
      local from = character(e.text .. "x", random(e.at))
      e:offer({ "cand" .. bytes, "candidate" }, from)
    end
    check(e, random(60), random(30))
    if random(200) == 1 then
      e = edit.new { history = history, most = random(500) }
    end
  end
end)
