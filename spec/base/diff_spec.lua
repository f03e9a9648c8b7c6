-- Unified diffs: applied to the first text they give the second one, and they are short and quick.
local ahtest = require "ahtest"
local random = dofile "spec/support/random.lua"

local WIDE = 1 << 30

local function lines_of(text)
  local lines = {}
  for line in text:gmatch "[^\n]*\n?" do
    if line ~= "" then lines[#lines + 1] = line end
  end
  return lines
end

-- Returns the text after the hunks, and checks each line and each number in them.
local function apply(before, diff)
  local old, new, at, hunk = lines_of(before), {}, 1, nil
  local function copy(to)
    while at < to do
      new[#new + 1], at = old[at], at + 1
    end
  end
  local function ended()
    assert(not hunk or (hunk.a == 0 and hunk.b == 0), "a hunk has another number of lines")
  end
  local last
  for line in diff:gmatch "[^\n]*\n" do
    local a, n_a, b, n_b = line:match "^@@ %-(%d+),(%d+) %+(%d+),(%d+) @@\n$"
    if a then
      ended()
      hunk = { a = tonumber(n_a), b = tonumber(n_b) }
      copy(tonumber(a) + (hunk.a == 0 and 1 or 0))
      assert.equal(tonumber(b), #new + (hunk.b == 0 and 0 or 1))
    elseif line == "\\ No newline at end of file\n" then
      if last.list then last.list[last.at] = last.list[last.at]:sub(1, -2) end
    else
      local sign, text = line:sub(1, 1), line:sub(2)
      last = {}
      if sign ~= "+" then
        assert.equal(text, old[at]:find "\n$" and old[at] or old[at] .. "\n")
        at, hunk.a = at + 1, hunk.a - 1
      end
      if sign ~= "-" then
        new[#new + 1], hunk.b = text, hunk.b - 1
        last = { list = new, at = #new }
      end
    end
  end
  ended()
  copy(#old + 1)
  return table.concat(new)
end

local function changes(diff)
  local n = 0
  for line in diff:gmatch "[^\n]*\n" do
    n = n + (line:find "^[+-]" and 1 or 0)
  end
  return n
end

describe("a diff", function()
  it("has the form of diff -u", function()
    local before = "a\nb\nc\nd\ne\nf\ng\nh\n"
    assert.equal("@@ -2,7 +2,7 @@\n b\n c\n d\n-e\n+E\n f\n g\n h\n",
      (ahtest.diff(before, (before:gsub("e", "E")), WIDE)))
    assert.equal("@@ -0,0 +1,1 @@\n+x\n", (ahtest.diff("", "x\n", WIDE)))
    assert.equal("@@ -1,1 +0,0 @@\n-x\n\\ No newline at end of file\n",
      (ahtest.diff("x", "", WIDE)))
    assert.equal("", (ahtest.diff("x\n", "x\n", WIDE)))
    assert.equal("@@ -1,1 +1,1 @@\n-x\n\\ No newline at end of file\n+x\n",
      (ahtest.diff("x", "x\n", WIDE)))
  end)

  it("puts changes together whose contexts touch, and no others", function()
    local lines = {}
    for i = 1, 40 do lines[i] = "line " .. i .. "\n" end
    local before = table.concat(lines)
    lines[10], lines[17], lines[25] = "ten\n", "seventeen\n", "twenty-five\n"
    local _, hunks = ahtest.diff(before, table.concat(lines), WIDE):gsub("@@ %-", "")
    assert.equal(2, hunks)
  end)

  it("gives the second text, for random texts", function()
    local n = random(19)
    local function text()
      local parts = {}
      for i = 1, n(30) - 1 do parts[i] = ({ "a", "b", "c", "", "long line" })[n(5)] end
      return table.concat(parts, "\n") .. (n(2) == 1 and "\n" or "")
    end
    for _ = 1, 2000 do
      local before, after = text(), text()
      local diff, cut = ahtest.diff(before, after, WIDE)
      assert.is_false(cut)
      assert.equal(after, apply(before, diff))
    end
  end)

  it("is a shortest one", function()
    assert.equal(5, changes((ahtest.diff("a\nb\nc\na\nb\nb\na\n", "c\nb\na\nb\na\nc\n", WIDE))))
  end)

  it("takes little time for large texts, and is right then, too", function()
    local a, b = {}, {}
    for i = 1, 20000 do
      a[i], b[i] = "a" .. i .. "\n", (i % 3 == 0 and "a" or "b") .. i .. "\n"
    end
    local before, after, start = table.concat(a), table.concat(b), os.clock()
    local diff = ahtest.diff(before, after, WIDE)
    assert(os.clock() - start < 2)
    assert.equal(after, apply(before, diff))
    start = os.clock()
    diff = ahtest.diff(("\n"):rep(4000000) .. "a", "b" .. ("\n"):rep(4000000), WIDE)
    assert(os.clock() - start < 2 and #diff > 4000000)
  end)

  it("is cut after a whole line", function()
    local diff, cut = ahtest.diff("", ("line\n"):rep(100), 200)
    assert.is_true(cut)
    assert(#diff <= 200 and diff:find "%+line\n$", diff)
  end)
end)
