-- Keys from bytes, and the widths of texts: every sequence whole and cut at each byte, pastes, and
-- input that is not typed.
local ah = require "agenthost"
local ahtest = require "ahtest"

local keys = ahtest.keys

-- Bytes of a terminal and the keys that they mean.
local SEQUENCES = {
  { "a", "a a" }, { "A", "shift+a A" }, { " ", "space  " }, { "~", "~ ~" }, { "é", "é é" },
  { "世", "世 世" }, { "👍", "👍 👍" }, { "\r", "enter " }, { "\n", "ctrl+j " }, { "\t", "tab " },
  { "\127", "backspace " }, { "\8", "ctrl+h " }, { "\0", "ctrl+space " }, { "\1", "ctrl+a " },
  { "\3", "ctrl+c " }, { "\28", "ctrl+\\ " }, { "\31", "ctrl+_ " }, { "\27a", "alt+a " },
  { "\27A", "alt+shift+a " }, { "\27é", "alt+é " }, { "\27\r", "alt+enter " },
  { "\27\127", "alt+backspace " }, { "\27\1", "ctrl+alt+a " }, { "\27[Z", "shift+tab " },
  { "\27[A", "up " }, { "\27[B", "down " }, { "\27[C", "right " }, { "\27[D", "left " },
  { "\27[H", "home " }, { "\27[F", "end " }, { "\27[E", "begin " }, { "\27OA", "up " },
  { "\27OD", "left " }, { "\27OH", "home " }, { "\27OP", "f1 " }, { "\27OS", "f4 " },
  { "\27OM", "enter " }, { "\27Op", "0 0" }, { "\27Oj", "* *" }, { "\27[1~", "home " },
  { "\27[2~", "insert " }, { "\27[3~", "delete " }, { "\27[4~", "end " }, { "\27[5~", "pageup " },
  { "\27[6~", "pagedown " }, { "\27[7~", "home " }, { "\27[8~", "end " }, { "\27[11~", "f1 " },
  { "\27[15~", "f5 " }, { "\27[17~", "f6 " }, { "\27[24~", "f12 " }, { "\27[34~", "f20 " },
  { "\27[[A", "f1 " }, { "\27[[E", "f5 " }, { "\27[1;5C", "ctrl+right " },
  { "\27[1;2A", "shift+up " }, { "\27[1;3B", "alt+down " }, { "\27[1;8D", "ctrl+alt+shift+left " },
  { "\27[3;5~", "ctrl+delete " }, { "\27[1;2P", "shift+f1 " }, { "\27[1;5R", "ctrl+f3 " },
  { "\27[R", "f3 " }, { "\27[a", "shift+up " }, { "\27Oc", "ctrl+right " },
  { "\27[1;9A", "super+up " }, { "\27[27;5;13~", "ctrl+enter " }, { "\27[27;2;65~", "shift+a A" },
  { "\27[97u", "a a" }, { "\27[97;1u", "a a" }, { "\27[97;2u", "shift+a A" },
  { "\27[97;5u", "ctrl+a " }, { "\27[13;2u", "shift+enter " }, { "\27[27u", "escape " },
  { "\27[9;5u", "ctrl+tab " }, { "\27[127;3u", "alt+backspace " }, { "\27[49:33;2u", "shift+1 !" },
  { "\27[57399u", "0 0" }, { "\27[57414u", "enter " }, { "\27[57376u", "f13 " },
  { "\27[57419;5u", "ctrl+up " }, { "\27[228;1u", "ä ä" }, { "\27[1;1:2A", "up " },
}

-- Input that is not a key: answers and reports of a terminal, released keys.
local UNHEARD = {
  "\27[I", "\27[O", "\27[12;40R", "\27[?1;2c", "\27[>41;330;0c", "\27[?2026;2$y", "\27[<0;10;20M",
  "\27[M !!",
  "\27[97;1:3u", "\27[1;1:3A", "\27[57441u", "\27[201~", "\27[99~", "\27[1114112u", "\27[55296u",
  "\27[0u",
  "\27]10;rgb:0000/0000/0000\27\\", "\27]0;title\a", "\27P>|xterm(388)\27\\", "\27_Gi=1;OK\27\\",
  "\27^x\27\\",
  "\27Xx\27\\", "\u{9b}", "\u{202e}", "\27[" .. ("1;"):rep(5000) .. "A",
  "\27[" .. ("9"):rep(5000) .. "u",
  "\27]" .. ("x"):rep(100000) .. "\a", "\27[1;\24", "\27[\26",
}

describe("a key", function()
  it("is known by its bytes, whole and cut at each byte", function()
    for _, case in ipairs(SEQUENCES) do
      local bytes, expected = table.unpack(case)
      assert.same({ expected }, keys { bytes }, ("%q"):format(bytes))
      for cut = 1, #bytes - 1 do
        assert.same({ "x x", expected, "y y" }, keys { "x" .. bytes:sub(1, cut),
          bytes:sub(cut + 1) .. "y" },
          ("%q cut at %d"):format(bytes, cut))
      end
      local single = {}
      for i = 1, #bytes do
        single[i] = bytes:sub(i, i)
      end
      assert.same({ expected }, keys(single))
    end
  end)

  it("is the same wherever all of them together are cut", function()
    local all, expected = {}, {}
    for i, case in ipairs(SEQUENCES) do
      all[i], expected[i] = case[1], case[2]
    end
    all = table.concat(all)
    for size = 1, 17 do
      local chunks = {}
      for at = 1, #all, size do
        chunks[#chunks + 1] = all:sub(at, at + size - 1)
      end
      assert.same(expected, keys(chunks))
    end
  end)

  it("is none where the terminal answers, reports or is hostile", function()
    for _, bytes in ipairs(UNHEARD) do
      assert.same({ "y y" }, keys { bytes .. "y" }, ("%q"):format(bytes:sub(1, 40)))
      for cut = 1, math.min(#bytes - 1, 40) do
        assert.same({ "y y" }, keys { bytes:sub(1, cut), bytes:sub(cut + 1), "y" },
          ("%q cut at %d"):format(bytes, cut))
      end
    end
  end)

  it("behind an Escape that nothing follows is Escape", function()
    assert.same({ "escape " }, keys { "\27", false })
    assert.same({ "escape ", "a a" }, keys { "\27", false, "a" })
    assert.same({ "escape ", "escape ", "escape " }, keys { "\27\27\27", false })
    assert.same({ "escape ", "up " }, keys { "\27\27[A" })
    assert.same({ "alt+[ ", "alt+shift+o ", "alt+] ", "alt+shift+p " },
      keys { "\27[", false, "\27O", false, "\27]", false, "\27P", false })
    assert.same({ "a a" }, keys { "\27[1;", false, "a" })
    assert.same({ "a a" }, keys { "\27]0;title", false, "a" })
  end)

  it("that ends another's sequence is heard", function()
    assert.same({ "ctrl+c " }, keys { "\27[1;2\3" })
    assert.same({ "ctrl+c " }, keys { "\27]0;endless\3" })
    assert.same({ "enter " }, keys { "\27[12\r" })
    assert.same({ "up " }, keys { "\27[1;5\27[A" })
    assert.same({ "up " }, keys { "\27]0;title\27[A" })
  end)

  it("is U+FFFD for bytes that are no UTF-8", function()
    local bad = "\u{fffd} \u{fffd}"
    assert.same({ bad, "a a" }, keys { "\xffa" })
    assert.same({ bad, "a a" }, keys { "\xc3a" })
    assert.same({ bad, "é é" }, keys { "\xe4\xb8é" })
    assert.same({ bad }, keys { "\xed\xa0\x80" })
    assert.same({ bad, "up " }, keys { "\xf0\x9f\27[A" })
    assert.same({ bad }, keys { "\xe4\xb8", false })
  end)
end)

describe("a paste", function()
  local BEGIN, END = "\27[200~", "\27[201~"

  it("is one event wherever it is cut", function()
    local bytes = "x" .. BEGIN .. "one\ntwö \27[ A" .. END .. "y"
    for cut = 1, #bytes - 1 do
      assert.same({ "x x", "paste one\ntwö ", "y y" }, keys { bytes:sub(1, cut),
        bytes:sub(cut + 1) }, cut)
    end
    assert.same({ "paste ", "paste " }, keys { BEGIN .. END .. BEGIN .. END })
  end)

  it("has no controls, no sequences and one kind of line end", function()
    assert.same({ "paste a\nb\nc\n\nd\te" }, keys { BEGIN .. "a\r\nb\rc\r\rd\te" .. END })
    assert.same({ "paste red plain]0;x" },
      keys { BEGIN .. "\27[31mred\27[0m \0\1\8plain\27]0;x\a\127\u{9b}\u{202e}" .. END })
    assert.same({ "paste \u{fffd}é" }, keys { BEGIN .. "\xffé" .. END })
    assert.same({ "paste " }, keys { BEGIN .. BEGIN .. END })
    assert.same({ "paste x" }, keys { BEGIN .. "\27\27[201mx" .. END }, "an end that is none")
  end)

  it("is cut at its maximum, at a character, and what is beyond is no key", function()
    assert.same({ "cut paste aaaa", "y y" }, keys({ BEGIN .. ("a"):rep(1000) .. END .. "y" }, 4))
    assert.same({ "cut paste a", "y y" }, keys({ BEGIN .. "aéé" .. END .. "y" }, 2))
    assert.same({ "paste aaaa" }, keys({ BEGIN .. "aaaa" .. END }, 4))
    assert.same({ "cut paste " .. ("a"):rep(1 << 20) }, keys { BEGIN .. ("a"):rep(5 << 20), END })
    assert.same({ "cut paste aaaa", "paste b" },
      keys({ BEGIN .. "aaaaa" .. END .. BEGIN .. "b" .. END }, 4))
  end)
end)

describe("random bytes", function()
  it("give the same keys however they are cut, and the next keys are heard", function()
    math.randomseed(7)
    local parts = { "\27", "[", "O", "]", "\a", ";", "1", "200~", "\27[200~", "\27[201~", "\27\\",
      "u", "~", "A", "\xc3",
      "\xa9", "\xf0", "\3", "m", "M", "P", ":", "?", "\24", "x", " " }
    local function random(n)
      local t = {}
      for i = 1, n do
        t[i] = parts[math.random(#parts)]
      end
      return table.concat(t)
    end
    for _ = 1, tonumber(os.getenv "KEYS_ROUNDS") or 2000 do
      local bytes = random(math.random(1, 30))
      local chunks, at = {}, 1
      while at <= #bytes do
        local n = math.random(1, 4)
        chunks[#chunks + 1] = bytes:sub(at, at + n - 1)
        at = at + n
      end
      assert.same(keys { bytes }, keys(chunks), ("%q"):format(bytes))
      local events = keys { bytes, false, "\27[201~", false, "!!!!", "\27[A" }
      assert.equal("up ", events[#events], ("%q"):format(bytes))
    end
  end)
end)

describe("ah.terminal.width", function()
  local width = ah.terminal.width

  it("counts columns as terminals do", function()
    for text, columns in pairs {
      [""] = 0, ["abc"] = 3, ["é"] = 1, ["e\u{301}"] = 1, ["世界"] = 4, ["ｱ"] = 1, ["Ａ"] = 2,
      ["한글"] = 4,
      ["\u{1112}\u{1161}\u{11ab}"] = 2, ["👍"] = 2, ["👍🏽"] = 2, ["👨‍👩‍👧‍👦"] = 2, ["🏳️‍🌈"] = 2,
      ["🇩🇪"] = 2,
      ["🇩🇪🇫🇷"] = 4, ["🇩"] = 1, ["❤"] = 1, ["❤️"] = 2, ["1️⃣"] = 2, ["☺"] = 1, ["\u{200b}"] = 0,
      ["a\u{200d}b"] = 2,
      ["\u{ad}"] = 1, ["\0\1\127"] = 0, ["\u{85}"] = 0, ["\27[31mred\27[0m"] = 3,
      ["\27]0;title\a!"] = 1,
      ["\27]8;;http://x\27\\link\27]8;;\27\\"] = 4, ["\27"] = 0, ["\27["] = 0, ["\27(B"] = 0,
      ["\xff"] = 1,
      ["\xe4\xb8"] = 2, ["नि"] = 2, ["ก็"] = 1, ["\t"] = 8, ["a\t"] = 8, ["世\tx"] = 9,
      ["12345678\t"] = 16,
      ["a\nlonger\nb"] = 6, ["\n"] = 0, ["…"] = 1, ["─"] = 1, ["█"] = 1,
      ["\u{1f9d1}\u{200d}\u{1f4bb}"] = 2,
      ["\u{20000}"] = 2, ["\u{600}"] = 1, ["\u{e0001}"] = 0, ["\u{fe0f}"] = 0,
    } do
      assert.equal(columns, width(text), ("%q"):format(text))
    end
  end)

  it("has tabs end at stops of the line, wherever the text begins", function()
    assert.equal(7, width("\t", 2))
    assert.equal(1, width("\t", 8))
    assert.equal(8, width("\t", 9))
    assert.has_error(function() width("\t", 0) end, nil)
  end)

  it("takes long and hostile texts in a time that grows with them", function()
    assert.equal(1 << 20, width(("a"):rep(1 << 20)))
    assert.equal(1, width("a" .. ("\u{301}"):rep(1 << 18)))
    assert.equal(0, width("\27]" .. ("x"):rep(1 << 20)))
    assert.equal(0, width(("\27["):rep(1 << 18)))
    assert.equal(2, width("👩" .. ("\u{200d}👩"):rep(1 << 16)))
  end)
end)

describe("ah.terminal.character", function()
  local character = ah.terminal.character

  it("finds the same character for each of its bytes", function()
    local found, at = {}, 1
    local text = "1\u{20e3}e\u{301}👨‍👩‍👧🇩🇪🇫🇷世\xff\n\u{301}"
    for i = 1, #text do
      local first, last, columns = character(text, i)
      assert.truthy(first <= i and i <= last)
      assert.equal(at, first)
      if i == last then
        found[#found + 1] = text:sub(first, last) .. " " .. columns
        at = last + 1
      end
    end
    assert.same({ "1\u{20e3} 1", "e\u{301} 1", "👨‍👩‍👧 2", "🇩🇪 2", "🇫🇷 2", "世 2", "\xff 1", "\n 0",
      "\u{301} 0" }, found)
  end)

  it("refuses a byte that is not there", function()
    for _, at in ipairs { 0, 4, -1, math.maxinteger } do
      assert.has_error(function() character("abc", at) end, nil)
    end
  end)
end)
