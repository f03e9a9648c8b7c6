-- Makes regular expressions by ECMAScript's grammar, and texts that some of them match:
-- grammar(seed) returns a function that returns the next expression and its texts. One in six is
-- damaged, so that invalid expressions occur, too.
local random = require "support.random"

local PLAIN = { "a", "b", "c", "A", "Z", "0", "1", "9", "_", " ", "é", "ß", "K", "ſ", "Σ", "漢", "😀",
  "\u{a0}", "\u{feff}", "\u{2028}", "\u{85}", "-", "=", "<", ">", "!", ",", ":", "#", "&", "~",
  "@", "%",
  "'", '"', "/", "\n", "\r", "\t" }
-- Escapes: the expression and the text that it means.
local ESCAPED = { { "\\n", "\n" }, { "\\r", "\r" }, { "\\t", "\t" }, { "\\v", "\v" }, { "\\f",
  "\f" },
  { "\\0", "\0" }, { "\\x41", "A" }, { "\\u0061", "a" }, { "\\u{1F600}", "😀" }, { "\\ud83d\\ude00",
  "😀" },
  { "\\cJ", "\n" }, { "\\cj", "\n" }, { "\\.", "." }, { "\\*", "*" }, { "\\$", "$" }, { "\\/",
  "/" },
  { "\\[", "[" }, { "\\]", "]" }, { "\\{", "{" }, { "\\}", "}" }, { "\\(", "(" }, { "\\|", "|" },
  { "\\^", "^" },
  { "\\\\", "\\" }, { "\\?", "?" }, { "\\+", "+" }, { "\\u{2028}", "\u{2028}" }, { "\\u{a}", "\n" },
  { "\\u{000061}", "a" }, { "\\ud83d", "" }, { "\\x0a", "\n" } }
local SETS = { { "\\d", "7" }, { "\\D", "x" }, { "\\w", "w" }, { "\\W", "é" }, { "\\s",
  "\u{feff}" },
  { "\\S", "ſ" }, { "\\p{L}", "é" }, { "\\P{L}", "1" }, { "\\p{Lu}", "Σ" }, { "\\p{Letter}", "b" },
  { "\\p{gc=Nd}", "9" }, { "\\p{General_Category=Decimal_Number}", "1" }, { "\\p{Script=Greek}",
  "Σ" },
  { "\\p{sc=Han}", "漢" }, { "\\p{scx=Grek}", "Σ" }, { "\\p{Script_Extensions=Latin}", "a" },
  { "\\p{Any}", "\n" }, { "\\p{ASCII}", "~" }, { "\\P{ASCII}", "é" }, { "\\p{Assigned}", "a" },
  { "\\p{Alphabetic}", "ß" }, { "\\p{White_Space}", "\u{85}" }, { "\\p{Emoji}", "😀" },
  { "\\p{ID_Start}", "é" }, { "\\p{Lowercase}", "ß" }, { "\\p{Uppercase}", "Z" }, { "\\p{LC}",
  "A" },
  { "\\p{punct}", "!" }, { "\\p{Zs}", "\u{a0}" }, { "\\p{Cn}", "" }, { "\\p{Co}", "" } }
-- Only lenient readers accept these, or other dialects give them another meaning.
local FOREIGN = { "\\A", "\\z", "\\Z", "\\h", "\\R", "\\G", "\\K", "\\Q", "\\E", "\\a", "\\e",
  "\\X", "\\N",
  "\\-", "\\@", "\\_", "\\8", "\\01", "\\00", "\\c1", "\\c", "\\x1", "\\x{41}", "\\u12",
  "\\u{110000}", "\\u{}",
  "\\p{greek}", "\\p{Greek}", "\\p{IsL}", "\\pL", "\\p{^L}", "\\p{L&}", "\\p{Xan}", "\\p{Foo}",
  "\\p{lu}",
  "\\p{Script=greek}", "\\p", "\\P{}", "\\p{ L}", "\\p{L }", "\\ ", "\\é", "\\g{1}", "\\g1",
  "\\k<x>", "\\k", "\\o{7}",
  "(?i)", "(?i:a)", "(?>a)", "(?|a)", "(?#a)", "(?R)", "(?1)", "(?P<n>a)", "(?'n'a)", "(*ACCEPT)",
  "(*UTF)",
  "(?<1>a)", "(?<>a)", "(?<a-b>a)", "(?<a>", "(?<a", "(?", "(?a)", "a++", "a*+", "a{2}+", "a**",
  "a{1}{2}", "^*",
  "$+", "\\b?", "(?=a)*", "(?<=a)?", "{", "}", "]", "a{", "a{,3}", "a{3,2}", "a{x}", "{1}", "a{1",
  "x{2,",
  "[[:alpha:]]", "[a&&b]", "[\\w-z]", "[a-\\d]", "[z-a]", "[\\B]", "[\\b]", "[]", "[^]", "[[]",
  "[]a]", "[^]a]",
  "[\\-]", "[a\\-z]", "[\\cA]", "[\\c]", "[\\0]", "[\\1]", "[\\k]", "[\\Q]", "[a-]", "[-a]",
  "[--a]", "[a--]",
  "[\\u{1F600}-\\u{1F64F}]", "[😀-😎]", "[\\ud83d\\ude00]", "[\\udc00]", "[\\d-]", "[-\\d]",
  "[^\\S]", "[\\s\\S]",
  "*", "+", "?", ")", "(", "|", "", "\\", "()", "(|a)", "(?:)", "(?:|a)", "(?=)", "(?!)", "(?<=)",
  "(?<!)",
  "(?<n>a)(?<n>b)", "(?<n>a)|(?<n>b)", "(?<$>a)\\k<$>", "(?<é>a)\\k<é>", "\\k<n>(?<n>a)", "\\1(a)",
  "(a\\1)",
  "(a)\\2", "(?<n>a)\\k<m>", "\\10", "(?:(a)|b)*\\1", "(?:(a)|(b)\\1)+", "a{0}", "a{0,0}?",
  "(a){0}\\1",
  "a{00001}", "a{65536}", "(?=(a))\\1", "(?!(a))\\1", "(?<=(a))\\1", "(?<!(a))b\\1", "(?<=a+)b",
  "(?<=a|bc)d",
  "(?<=\\b)a", "(?<=^)a", "a(?=$)", "a$b", "a^b", "^^a", "a$$", "\\b\\b", "\\B\\B", ".", "[^a]",
  "[^\\n]", "x|", "|x" }
local NOISE = { "(", ")", "[", "]", "{", "}", "*", "+", "?", "|", "\\", "^", "$", ".", "-", ",",
  "<", ">", "=", "!",
  ":", "1", "u", "p", "k", "é" }
local TIMES = { "*", "+", "?", "{0}", "{1}", "{2}", "{0,1}", "{1,}", "{1,3}", "{2,4}", "{0,}" }

return function(seed)
  local pick = random(seed)
  local names, captures, alternatives

  local function one(list)
    return list[pick(#list)]
  end

  -- Returns a plain character; special ones are written with a backslash.
  local function plain()
    local c = one(PLAIN)
    return c, c
  end

  local function written(list)
    local pair = one(list)
    return pair[1], pair[2]
  end

  --- Returns one character of a class as written, and the character itself.
  local function member()
    if pick(3) == 1 then
      return written(ESCAPED)
    end
    local c = plain()
    return c == "-" and "\\-" or c, c
  end

  local function class()
    local parts, samples = {}, {}
    for i = 1, pick(4) do
      local kind = pick(6)
      if kind == 1 then
        parts[i], samples[i] = written(SETS)
      elseif kind == 2 then
        local low = pick(20)
        parts[i] = utf8.char(0x40 + low) .. "-" .. utf8.char(0x40 + low + pick(5))
        samples[i] = utf8.char(0x41 + low)
      else
        parts[i], samples[i] = member()
      end
    end
    local inverse = pick(3) == 1
    return "[" .. (inverse and "^" or "") .. table.concat(parts) .. "]",
      inverse and one(PLAIN) or one(samples)
  end

  local function group(depth)
    local kind = pick(9)
    if kind <= 2 then
      local inner, sample = alternatives(depth - 1)
      return "(?:" .. inner .. ")", sample
    elseif kind <= 4 then
      captures = captures + 1
      local inner, sample = alternatives(depth - 1)
      return "(" .. inner .. ")", sample
    elseif kind == 5 then
      captures = captures + 1
      local name = "n" .. captures
      names[#names + 1] = name
      local inner, sample = alternatives(depth - 1)
      return "(?<" .. name .. ">" .. inner .. ")", sample
    end
    local inner = alternatives(depth - 1)
    return one { "(?=", "(?!", "(?<=", "(?<!" } .. inner .. ")", ""
  end

  local function reference()
    if #names > 0 and pick(2) == 1 then
      return "\\k<" .. one(names) .. ">", ""
    end
    return "\\" .. pick(captures + (pick(8) == 1 and 1 or 0) + (captures == 0 and 1 or 0)), ""
  end

  --- Returns an atom, a text for it, and whether it may be repeated.
  local function atom(depth)
    local kind = pick(20)
    if kind <= 6 then
      return plain()
    elseif kind <= 8 then
      return written(ESCAPED)
    elseif kind <= 10 then
      return written(SETS)
    elseif kind <= 12 then
      return class()
    elseif kind == 13 then
      return ".", one(PLAIN)
    elseif kind == 14 then
      return one { "^", "$", "\\b", "\\B" }, "", true
    elseif kind == 15 and captures > 0 then
      return reference()
    elseif kind == 16 and pick(4) == 1 then
      return one(FOREIGN), "", true
    elseif depth > 0 then
      local text, sample = group(depth)
      return text, sample, text:find("^%(%?[=!<]") and not text:find("^%(%?<n")
    end
    return plain()
  end

  local function term(depth)
    local text, sample, fixed = atom(depth)
    if not fixed and pick(3) == 1 then
      local times = one(TIMES)
      text, sample = text .. times .. one { "", "", "?" }, sample:rep(pick(3) - (pick(2) - 1))
    end
    return text, sample
  end

  local function sequence(depth)
    local parts, samples = {}, {}
    for i = 1, pick(4) - (pick(6) == 1 and 1 or 0) do
      parts[i], samples[i] = term(depth)
    end
    return table.concat(parts), table.concat(samples)
  end

  function alternatives(depth)
    local text, sample = sequence(depth)
    while pick(5) == 1 do
      local other, instead = sequence(depth)
      text, sample = text .. "|" .. other, pick(2) == 1 and instead or sample
    end
    return text, sample
  end

  --- Returns the characters of a text, which is well-formed UTF-8.
  local function characters(text)
    local list = {}
    for _, c in utf8.codes(text) do
      list[#list + 1] = utf8.char(c)
    end
    return list
  end

  --- Damages a text: one character is removed, added, doubled or replaced.
  local function hurt(text, from)
    local list = characters(text)
    local at = pick(#list + 1)
    local how = pick(4)
    if how == 1 then
      table.remove(list, at <= #list and at or nil)
    elseif how == 2 then
      table.insert(list, at, one(from))
    elseif how == 3 and list[at] then
      table.insert(list, at, list[at])
    else
      list[at] = one(from)
    end
    return table.concat(list)
  end

  local function subjects(sample)
    local list = { sample, hurt(sample, PLAIN), hurt(sample, PLAIN),
      one(PLAIN) .. sample .. one(PLAIN), sample .. sample }
    local noise = {}
    for i = 1, pick(6) do
      noise[i] = one(PLAIN)
    end
    list[#list + 1] = table.concat(noise)
    list[#list + 1] = sample .. "\n"
    list[#list + 1] = ""
    return list
  end

  return function()
    names, captures = {}, 0
    local text, sample = alternatives(3)
    if pick(6) == 1 then
      text = hurt(text, NOISE)
    end
    return text, subjects(sample)
  end
end
