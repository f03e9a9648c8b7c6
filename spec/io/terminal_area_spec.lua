-- The live area on a terminal: text that is written above it stays whole and in order, and the area
-- is there once, below the text, whatever its lines, its width and its changes.
local ahtest = require "ahtest"
local screen = require "support.screen"

-- Makes an area and the screen that shows it.
local function new(columns, rows)
  rows = rows or 24
  local t = { area = ahtest.area(columns, rows), screen = screen.new(columns, rows) }
  function t:live(...)
    self.screen:feed(self.area:live(...))
    return self.screen:text()
  end
  function t:print(text)
    self.screen:feed((self.area:print(text):gsub("\r?\n", "\r\n")))
    return self.screen:text()
  end
  function t:resize(n, reflows)
    self.screen:resize(n, reflows)
    self.screen:feed((self.area:resize(n, rows, reflows)))
    return self.screen:text()
  end
  function t:cursor()
    return { self.screen.row, self.screen.column }
  end
  return t
end

describe("the live area", function()
  it("stands below what is written, and is drawn in place of itself", function()
    local t = new(20)
    assert.equal("> ", t:live({ "> " }, 1, 2) .. " ")
    assert.same({ 1, 3 }, t:cursor())
    assert.equal("one\n> a", t:print "one\n" and t:live({ "> a" }, 1, 3))
    assert.equal("one\ntwo\n> a", t:print "two\n")
    assert.equal("one\ntwo\n> a\nstatus", t:live({ "> a", "status" }, 1, 3))
    assert.same({ 3, 4 }, t:cursor())
    assert.equal("one\ntwo\nthree\n> a\nstatus", t:print "three\n")
    assert.equal("one\ntwo\nthree\nx", t:live { "x" })
    assert.is_false(t.screen.cursor)
    assert.equal("one\ntwo\nthree", t:live {})
    assert.is_true(t.screen.cursor)
    assert.equal("one\ntwo\nthree\nfour", t:print "four")
  end)

  it("lets a text flow on that comes in pieces", function()
    local t = new(10)
    t:live({ "> " }, 1, 2)
    for piece in ("Hello, this is a text.\n\nAnd more"):gmatch "." do
      t:print(piece)
    end
    assert.equal("Hello, thi\ns is a tex\nt.\n\nAnd more\n>", t.screen:text())
    assert.equal("Hello, thi\ns is a tex\nt.\n\nAnd more\nend\n>", t:print "\nend\n")
  end)

  it("lets a line end at the edge of the screen without an empty row", function()
    local t = new(4)
    t:live { "x" }
    assert.equal("abcd\nx", t:print "abcd")
    assert.equal("abcd\nx", t:print "")
    assert.equal("abcd\nx", t:print "\n")
    assert.equal("abcd\nefgh\nx", t:print "efgh")
    assert.equal("abcd\nefgh\nij\nx", t:print "ij")
    assert.equal("abcd\nefgh\nij世\nx", t:print "世")
    assert.equal("abcd\nefgh\nij世\n界\nx", t:print "界")
  end)

  it("breaks lines that are wider than the screen, and stands the cursor in them", function()
    local t = new(10)
    assert.equal("0123456789\nabc", t:live({ "0123456789abc" }, 1, 13))
    assert.same({ 2, 4 }, t:cursor())
    t:live({ "0123456789abc" }, 1, 9)
    assert.same({ 1, 10 }, t:cursor())
    t:live({ "0123456789" }, 1, 10)
    assert.same({ 2, 1 }, t:cursor())
    t:live({ "0123456789", "next" }, 1, 10)
    assert.same({ 2, 1 }, t:cursor())
    assert.equal("0123456789\n\nnext", t.screen:text())
    assert.equal("012345678\n世x", t:live({ "012345678世x" }, 1, 9))
    assert.same({ 2, 1 }, t:cursor())
    t:live({ "世界" }, 1, 3)
    assert.same({ 1, 3 }, t:cursor())
    t:live({ "e\u{301}x" }, 1, 1)
    assert.same({ 1, 2 }, t:cursor())
    assert.equal("a       b", t:live { "a\tb" })
    assert.equal("\u{fffd}\n\u{fffd}", new(1):live { "世界" })
  end)

  it("shows of what is higher than the screen the part with the cursor", function()
    local t = new(10, 4)
    local lines = {}
    for i = 1, 10 do
      lines[i] = "line " .. i
    end
    assert.equal("line 8\nline 9\nline 10", t:live(lines, 10, 7))
    assert.equal("line 2\nline 3\nline 4", t:live(lines, 2, 0))
    assert.same({ 1, 1 }, t:cursor())
    t:print "text\n"
    t:live({ "> " }, 1, 2)
    assert.equal("text\n>", t.screen:all())
  end)

  it("is of no effect on the terminal, whatever is in it", function()
    local t = new(60)
    t:live { "\27[2J\27]0;x\7", "a\nb\r\0", "\u{202e}\u{9b}" }
    assert.equal("\\x1b[2J\\x1b]0;x\\x07\na\\x0ab\\x0d\\x00\n\\u202e\\x9b", t.screen:text())
    t:print "\27[31mred\27[0m\r\nCR\rx\n"
    assert.truthy(t.screen:text():find("^\\x1b%[31mred\\x1b%[0m\nCR\\x0dx\n"))
  end)

  for _, reflows in ipairs { true, false } do
    it(("comes again after a resize where the terminal %s"):format(reflows and "reflows"
      or "cuts"), function()
      local t = new(20)
      t:print "first\nsecond\n"
      t:live({ "0123456789abcdefghij012", "status line" }, 1, 12)
      assert.equal("first\nsecond\n0123456789\nabcdefghij\n012\nstatus lin\ne", t:resize(10,
        reflows))
      assert.equal("first\nsecond\n0123456789abcdefghij012\nstatus line", t:resize(40, reflows))
      assert.equal("first\nsecond\nthird\n0123456789abcdefghij012\nstatus line", t:print "third\n")
    end)
  end

  it("loses nothing of an unfinished line with wide characters by a resize", function()
    for columns = 2, 30 do
      local t = new(12)
      t:live({ "> " }, 1, 2)
      t:print "a世bc世世def世g世hi"
      t:resize(columns, true)
      t:print "jkl"
      t:resize(12, true)
      t:live {}
      assert.equal("a世bc世世def世g世hijkl", (t.screen:all():gsub("%s", "")), columns)
    end
  end)

  it("lets an unfinished line flow on after a resize", function()
    local t = new(20)
    t:live { "x" }
    t:print "0123456789abc"
    t:resize(10, true)
    assert.equal("0123456789\nabcd\nx", t:print "d")
    t:resize(20, true)
    assert.equal("0123456789abcde\nx", t:print "e")
  end)
end)

describe("random texts and areas", function()
  local WORDS = { "a", "word ", "\n", "世界", "é", "\n\n", "longer than that ", "e\u{301}", "👍", "x",
    " ", "0123456789" }

  local function random_text(most)
    local t = {}
    for i = 1, math.random(0, most) do
      t[i] = WORDS[math.random(#WORDS)]
    end
    return table.concat(t)
  end

  local function random_lines()
    local lines = {}
    for i = 1, math.random(0, 4) do
      lines[i] = random_text(8):gsub("\n", "")
    end
    return lines
  end

  -- Returns the rows that a text takes on a screen of sufficient height.
  local function rows_of(text, columns)
    local tall = screen.new(columns, 1000):feed((text:gsub("\n", "\r\n")))
    local n = (text == "" or text:sub(-1) == "\n") and tall.row - 1 or tall.row
    local rows = {}
    for row in (tall:text() .. ("\n"):rep(n)):gmatch "([^\n]*)\n" do
      rows[#rows + 1] = #rows < n and row or nil
    end
    return table.concat(rows, "\n", 1, n) .. (n > 0 and "\n" or "")
  end

  local function trimmed(text)
    return (text:gsub("\n*$", ""))
  end

  it("come to the same as all text written at once, with the last area below", function()
    math.randomseed(11)
    for _ = 1, tonumber(os.getenv "AREA_ROUNDS") or 300 do
      local columns, rows = math.random(2, 30), math.random(5, 24)
      local t, all, lines, at = new(columns, rows), "", {}, nil
      for _ = 1, math.random(1, 12) do
        if math.random(2) == 1 then
          local text = random_text(6)
          all = all .. text
          t:print(text)
        else
          lines = random_lines()
          at = #lines > 0 and math.random(#lines) or nil
          t:live(lines, at, 7)
        end
        local area = new(columns, rows):live(lines, at, 7)
        assert.equal(trimmed(rows_of(all, columns) .. area), trimmed(t.screen:all()))
      end
    end
  end)

  it("are the same after resizes of a terminal that reflows", function()
    math.randomseed(13)
    for _ = 1, tonumber(os.getenv "AREA_ROUNDS") or 300 do
      local columns, rows = math.random(5, 30), 24
      local t, all, lines, at, column = new(columns, rows), "", {}, nil, 0
      for _ = 1, math.random(1, 8) do
        local what = math.random(3)
        if what == 1 then
          local text = ("0123456789"):sub(1, math.random(0, 10)):rep(math.random(3)) .. "\n"
          all = all .. text
          t:print(text)
        elseif what == 2 then
          lines = { ("abcdefghij"):rep(2):sub(1, math.random(20)), "status" }
          at, column = math.random(3), math.random(0, 20)
          at = at < 3 and at or nil
          t:live(lines, at, column)
        else
          columns = math.random(5, 30)
          t:resize(columns, true)
        end
        local area = new(columns, rows):live(lines, at, column)
        assert.equal(trimmed(rows_of(all, columns) .. area), trimmed(t.screen:all()))
      end
    end
  end)
end)
