-- Writes src/base/width_table.h, the characters that take no column or two columns on a terminal,
-- from the files of the Unicode Character Database (in Debian the package unicode-data):
--   lua5.4 tools/width_table.lua /usr/share/unicode > src/base/width_table.h
local folder = assert(arg[1], "which folder has UnicodeData.txt?")
local LAST = 0x10ffff

-- Calls f(first, last, value) for each line "0600..0605 ; value" of a file.
local function each(name, f)
  for line in io.lines(folder .. "/" .. name) do
    local first, last, value = line:match "^(%x+)%.*(%x*)%s*;%s*([%w_]+)"
    if first then
      first = tonumber(first, 16)
      f(first, tonumber(last, 16) or first, value)
    end
  end
end

-- General categories of characters that mark or format the character before; except the soft
-- hyphen.
local NONE = { Mn = true, Me = true, Cf = true, Zl = true, Zp = true }

-- Signs of Arabic and similar scripts that precede the text that they refer to: formats, but shown.
local shown = {}
each("PropList.txt", function(first, last, value)
  for c = first, value == "Prepended_Concatenation_Mark" and last or first - 1 do
    shown[c] = true
  end
end)

local zero, wide, pictures = {}, {}, {}
local began
for line in io.lines(folder .. "/UnicodeData.txt") do
  local code, name, category = line:match "^(%x+);([^;]*);(%a+)"
  code = tonumber(code, 16)
  began = name:find ", First>$" and code or began
  if NONE[category] and code ~= 0xad then
    for c = name:find ", Last>$" and began or code, code do
      zero[c] = not shown[c] or nil
    end
  end
end
-- Vowels and final consonants of Hangul, which join the syllable before.
for _, range in ipairs { { 0x1160, 0x11ff }, { 0xd7b0, 0xd7c6 }, { 0xd7cb, 0xd7fb } } do
  for c = range[1], range[2] do
    zero[c] = true
  end
end
each("EastAsianWidth.txt", function(first, last, value)
  for c = first, last do
    wide[c] = (value == "W" or value == "F") and not zero[c] or nil
  end
end)
each("emoji/emoji-data.txt", function(first, last, value)
  for c = first, value == "Extended_Pictographic" and last or first - 1 do
    pictures[c] = true
  end
end)

local function print_ranges(name, about, set)
  print(("\n/* %s. */\nstatic const ah_width_range %s[] = {"):format(about, name))
  local line, first = "   ", nil
  for c = 0, LAST + 1 do
    if set[c] and not first then
      first = c
    elseif first and not set[c] then
      local range = (" {0x%x, 0x%x},"):format(first, c - 1)
      if #line + #range > 100 then
        print(line)
        line = "   "
      end
      line, first = line .. range, nil
    end
  end
  print(line .. "\n};")
end

local version = io.open(folder .. "/EastAsianWidth.txt"):read "l":match "%d+%.%d+%.%d+"
print("/* Made by tools/width_table.lua from the Unicode Character Database " .. version
  .. ": ranges of\n * characters, in their order. */")
print("#ifndef AH_BASE_WIDTH_TABLE_H\n#define AH_BASE_WIDTH_TABLE_H\n")
print("/* clang-format off */")
print("typedef struct ah_width_range {\n    uint32_t first, last;\n} ah_width_range;")
print_ranges("zero", "Without a column of their own: marks, formats, the later letters of Hangul",
  zero)
print_ranges("wide", "Two columns", wide)
print_ranges("pictures", "What may be shown as an emoji, and be joined with others to one",
  pictures)
print("/* clang-format on */\n\n#endif")
