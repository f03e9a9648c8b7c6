-- Markdown as styled text (lua/agenthost/command/styled.lua).
local programs = require "support.programs"
local random = require "support.random"

local styled = programs "styled"

local TEXT = [[
# Title *x*

Some **bold** and *italic* and `co*de*` and snake_case_name, 2 * 3 * 4, **open
- item with ``a`b``
12. __twelfth__ and \*no mark\*
> quoted **word**
```lua
local x = "**no**" -- `no`
```
---
äöü **a `c` b** _i_ end]]

-- Returns the texts of a printer that gets the text in pieces of `size` bytes; nil: as a whole.
local function texts_of(text, size)
  local printer, all = styled.printer(), {}
  for at = 1, #text, size or #text do
    for _, one in ipairs(printer:feed(text:sub(at, at + (size or #text) - 1))) do
      all[#all + 1] = one
    end
  end
  for _, one in ipairs(printer:finish()) do
    all[#all + 1] = one
  end
  return all
end

-- Returns each byte with its style, so that lists which are cut differently compare as equal.
local function bytes_of(texts)
  local all = {}
  for _, one in ipairs(texts) do
    local style = type(one) == "table" and one or { one }
    local name = (style.bold and "b" or "") .. (style.italic and "i" or "")
      .. (style.faint and "f" or "") .. (style.color or "")
    for byte in style[1]:gmatch "." do
      all[#all + 1] = byte .. name
    end
    all[#all + 1] = style[1]:find "\n" and "\n" or nil
  end
  return table.concat(all, " ")
end

local function shown(text)
  return (styled.ansi(texts_of(text)):gsub("\27%[([%d;]+)m", "<%1>"):gsub("<0>", "<>"))
end

describe("styled text", function()
  it("has the styles of headings, words, code, lists and quotes", function()
    assert.equal([[
<1>Title <><1;3>x<>

Some <1>bold<> and <3>italic<> and <36>co*de*<> and snake_case_name, 2 * 3 * 4, **open
<2>- <>item with <36>a`b<>
<2>12. <><1>twelfth<> and *no mark*
<2>> <>quoted <1>word<>
<2>```lua<>
<36>local x = "**no**" -- `no`<>
<2>```<>
<2>---<>
äöü <1>a <><36>c<><1> b<> <3>i<> end]], shown(TEXT))
  end)

  it("is the same whatever the pieces are", function()
    local whole = bytes_of(texts_of(TEXT))
    for size = 1, 40 do
      assert.equal(whole, bytes_of(texts_of(TEXT, size)), size)
    end
  end)

  it("is the same for random texts and pieces, with nothing lost", function()
    local PARTS = { "*", "**", "_", "`", "```", "\n", " ", "a", "b c", "# ", "- ", "> ", "\\", "é",
      "1. ", "~~~", "---", "\r\n" }
    local next_one = random(3)
    for _ = 1, 300 do
      local parts = {}
      for i = 1, next_one(30) do
        parts[i] = PARTS[next_one(#PARTS)]
      end
      local text = table.concat(parts)
      local whole = bytes_of(texts_of(text))
      assert.equal(whole, bytes_of(texts_of(text, next_one(4))), text)
      assert.equal((text:gsub("[^%aé]", "")),
        (styled.ansi(texts_of(text)):gsub("\27%[[%d;]*m", ""):gsub("[^%aé]", "")), text)
    end
  end)

  it("comes before the line ends, but for marks that are open", function()
    local printer = styled.printer()
    assert.same({ "Some words " }, printer:feed "Some words ")
    assert.same({ "and " }, printer:feed "and **bo")
    assert.same({ { "bold", bold = true }, "!" }, printer:feed "ld**!")
    assert.same({ "\n" }, printer:feed "\n``")
    assert.same({}, printer:feed "`l")
    assert.same({ { "```lua", faint = true }, "\n" }, printer:feed "ua\nx")
    assert.same({ { "xy", color = "cyan" }, "\n" }, printer:feed "y\n")
  end)

  it("obeys nothing in a text", function()
    assert.equal("a\\x1b[31m\\x07 \\u202e\tb\\x9bc\n<1>\\x1b]0;x<>",
      shown "a\27[31m\7 \u{202e}\tb\xc2\x9bc\n**\27]0;x**")
  end)

  it("takes time by the length of a text, whatever it is", function()
    for _, part in ipairs { "*a ", "**a ", "`a ", " _a", "`` ` ", "**", "\\", "#", "> ", "```\n",
      "[*_`", "~", "1" } do
      local seconds = {}
      for i, size in ipairs { 20000, 160000 } do
        local before = os.clock()
        texts_of(part:rep(size // #part), 100)
        seconds[i] = os.clock() - before
      end
      assert.is_true(seconds[2] < 30 * seconds[1] + 0.5, part .. " " .. seconds[2])
    end
  end)
end)
