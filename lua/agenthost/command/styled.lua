--- Markdown as styled text, as it arrives: headings, code, lists, quotes, bold and italic words. A
-- text is returned as soon as its style is known: words at once, a mark that is open (** ` *) when
-- it is closed or its line ends, lines of code as a whole.
--
--   local printer = styled.printer()
--   printer:feed(piece)       -- a list of texts of ah.terminal, { { "Titan", bold = true }, "." }
--   printer:finish()          -- the rest
--   styled.ansi(texts)        -- the same as a string for a terminal
--
-- Texts have the line ends of the input. Nothing is wrapped, so that code can be copied.
local ah = ...

local M = {}

-- Limits that keep the time linear, whatever the text: bytes after which a mark that is not closed
-- is a character, and bytes of a line whose kind is waited for.
local REACH, LINE = 500, 4096

local HEADING, CODE, FAINT = { bold = true }, { color = "cyan" }, { faint = true }

-- -- words of a line ---------------------------------------------------------------------------

local function with(style, name)
  local both = { [name] = true }
  for key, value in pairs(style or {}) do
    both[key] = value
  end
  return both
end

local function add(texts, text, style)
  if text ~= "" then
    local one = { text }
    for key, value in pairs(style or {}) do
      one[key] = value
    end
    texts[#texts + 1] = style and one or text
  end
end

-- Finds the end of what a mark opens: the first and the last byte of the mark that closes it.
-- `none`: by mark, the place up to which no such mark closes anything, so that each is looked at
-- once.
local function closing(s, from, mark, none)
  local at = math.max(from, none[mark] or 1)
  while true do
    local first, last = s:find(mark, at, true)
    if not first then
      none[mark] = #s + 1
      return nil
    elseif last > from + REACH then
      return nil
    end
    local before, after = s:sub(first - 1, first - 1), s:sub(last + 1, last + 1)
    local fits
    if mark:find "`" then
      fits = before ~= "`" and after ~= "`"
    else
      fits = first > from and not before:find "[%s*_]" and after ~= mark:sub(1, 1)
        and not (mark:find "_" and after:find "%w")
    end
    if fits then
      return first, last
    end
    at = last + 1
    none[mark] = at
  end
end

-- True if a mark at this place can open something. `last`: the character before the text.
local function opens(s, at, mark, last)
  local after, before = s:sub(at + #mark, at + #mark), at > 1 and s:sub(at - 1, at - 1) or last
  if mark:find "`" then
    return true
  end
  return after:find "%S" ~= nil and (mark:find "%*" or not before:find "%w") and #mark <= 2
end

local STYLES = { ["*"] = "italic", ["_"] = "italic", ["**"] = "bold", ["__"] = "bold" }

local words -- forward: what is bold may have code in it

-- Adds what the mark opens, up to its end, and returns the place behind it; nil if it is not
-- closed, or if the mark that closes it may become a longer one.
local function marked(texts, s, at, mark, style, whole, none)
  local first, last = closing(s, at + #mark, mark, none)
  if not first or last == #s and not whole then
    return nil
  end
  local inner = s:sub(at + #mark, first - 1)
  if mark:find "`" then
    add(texts, inner:match "^ (.*%S.*) $" or inner, CODE)
  else
    words(texts, inner, with(style, STYLES[mark]), true, "")
  end
  return last + 1
end

-- Adds the words of a text to `texts`. Returns the rest whose style is not known yet; "" if the
-- text is whole, which means that its line has ended. `last`: the character before the text, or "".
function words(texts, s, style, whole, last)
  local at, none = 1, {}
  while at <= #s do
    local place = s:find("[*_`\\]", at)
    if not place then
      break
    end
    local mark = s:match("^[*]+", place) or s:match("^_+", place) or s:match("^`+", place) or "\\"
    local open_ended = not whole and place + #mark > #s and #mark < REACH
    add(texts, s:sub(at, place - 1), style)
    at = place
    if open_ended then
      return s:sub(at)
    elseif mark == "\\" then
      local escaped = s:match("^\\(%p)", at)
      add(texts, escaped or "\\", style)
      at = at + (escaped and 2 or 1)
    else
      local opening = opens(s, at, mark, last)
      local behind = opening and marked(texts, s, at, mark, style, whole, none)
      if opening and not behind and not whole and #s - at < REACH then
        return s:sub(at)
      elseif not behind then
        add(texts, mark, style)
      end
      at = behind or at + #mark
    end
  end
  add(texts, s:sub(at), style)
  return ""
end

-- -- lines -------------------------------------------------------------------------------------

local Printer = {}
Printer.__index = Printer

--- Returns a printer for one text.
function M.printer()
  return setmetatable({ rest = "", fence = nil, begun = false, style = nil }, Printer)
end

-- Handles a line of a block of code or one that begins or ends it. Returns false for other lines.
local function fenced(self, texts, line)
  local fence = line:match "^ ? ? ?(```+)" or line:match "^ ? ? ?(~~~+)"
  if self.fence then
    local ends = fence and fence:sub(1, #self.fence) == self.fence and line:find "^%s*[`~]+%s*$"
    add(texts, line, ends and FAINT or CODE)
    self.fence = not ends and self.fence or nil
    return true
  elseif fence and not line:find("`", #line:match "^ *" + #fence + 1, true) then
    add(texts, line, FAINT)
    self.fence = fence
    return true
  end
  return false
end

-- Adds what stands at the beginning of a line before its words. Returns the rest of the line.
local function begin_line(self, texts, line)
  local marks, rest = line:match "^ ? ? ?(#+)[ \t]+(.*)$"
  if marks and #marks <= 6 then
    self.style = HEADING
    return rest
  end
  self.style = nil
  if line:find "^%s*%-%-%-[%s%-]*$" or line:find "^%s*%*%*%*[%s*]*$" then
    add(texts, line, FAINT)
    return ""
  end
  local quote = line:match "^%s*>[> ]*"
  local item = line:match "^%s*[-*+][ \t]+" or line:match "^%s*%d+[.)][ \t]+"
  add(texts, quote or item or "", FAINT)
  return line:sub(#(quote or item or "") + 1)
end

-- True if the kind of a line is not known before more of it has come.
local function may_become(self, line)
  return #line < LINE and (self.fence or line:find "^[%s#>%-*+`~_%d.)]*$"
    or line:find "^%s*```" or line:find "^%s*~~~")
end

-- Takes a part of a line; `whole`: the line ends with it. Returns what must wait.
local function take(self, texts, line, whole)
  if not self.begun then
    if not whole and may_become(self, line) then
      return line
    elseif fenced(self, texts, line) then
      self.begun = "code"
      return ""
    end
    self.begun, self.last = "text", ""
    line = begin_line(self, texts, line)
  end
  if self.begun == "code" then
    add(texts, line, CODE)
    return ""
  end
  local rest = words(texts, line, self.style, whole, self.last)
  self.last = #rest < #line and line:sub(#line - #rest, #line - #rest) or self.last
  return rest
end

--- Takes a piece of the text. Returns a list of texts, which may be empty.
---@param piece string
function Printer:feed(piece)
  local texts, s, at = {}, self.rest .. piece, 1
  while true do
    local ends = s:find("\n", at, true)
    if not ends then
      break
    end
    take(self, texts, (s:sub(at, ends - 1):gsub("\r$", "")), true)
    texts[#texts + 1] = "\n"
    self.begun, at = false, ends + 1
  end
  local last = s:sub(at)
  local cut = last:match "()[\xc0-\xff][\x80-\xbf]*$" -- a character may continue in the next piece
  local tail = cut and not utf8.len(last, cut) and last:sub(cut) or last:match "\r$" or ""
  self.rest = take(self, texts, last:sub(1, #last - #tail), false) .. tail
  return texts
end

--- Returns the rest of the text.
function Printer:finish()
  local texts = {}
  take(self, texts, self.rest, true)
  self.rest, self.begun = "", false
  return texts
end

-- -- for a terminal ----------------------------------------------------------------------------

local CODES = { { "bold", 1 }, { "faint", 2 }, { "italic", 3 } }
local COLORS = { cyan = 36 }

local function codes_of(style)
  local codes = {}
  for _, pair in ipairs(CODES) do
    codes[#codes + 1] = style[pair[1]] and pair[2] or nil
  end
  codes[#codes + 1] = COLORS[style.color]
  return table.concat(codes, ";")
end

--- True if standard output is to have styles.
---@param when string|nil of --color or the settings: "always" or "never"; else the terminal decides
function M.wanted(when)
  if when == "always" or when == "never" then
    return when == "always"
  end
  local term = os.getenv "TERM" or ""
  return ah._is_terminal(1) and term ~= "" and term ~= "dumb" and (os.getenv "NO_COLOR" or "") == ""
end

--- Returns a text that a terminal shows and does not obey. Only its line ends and tabs have effect.
function M.harmless(text)
  return (text:gsub("[^\n]+", ah._harmless))
end

--- Returns the texts as a string for a terminal.
---@param texts table list of strings and tables, as printer:feed returns them
function M.ansi(texts)
  local parts, plain = {}, {}
  local function put_plain()
    parts[#parts + 1] = M.harmless(table.concat(plain))
    plain = {}
  end
  for _, one in ipairs(texts) do
    local codes = type(one) == "table" and codes_of(one) or ""
    if codes ~= "" then
      put_plain()
      parts[#parts + 1] = ("\27[%sm%s\27[0m"):format(codes, M.harmless(one[1]))
    else
      plain[#plain + 1] = type(one) == "table" and one[1] or one
    end
  end
  put_plain()
  return table.concat(parts)
end

return M
