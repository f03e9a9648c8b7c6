--- The editing of a line: a state machine without a terminal and without files. It takes the events
-- of terminal:key, and returns what to show. A line may have several lines of text. The cursor
-- stands between characters: marks and joined emoji are part of theirs.
--
--   local e = edit.new { history = { "older", "newer" }, text = "", at = 1, most = 1 << 20 }
--   e:take(event)  -> nil, or what the caller is to do: "enter" "interrupt" "end" "complete"
--                     "clear" "suspend"
--   e.text, e.at   the text, and the index of the byte behind the cursor
--   e:offer(candidates, from) -> the candidates if they are to be listed
--   e:view(columns, rows, prompts) -> lines and cursor for terminal:live
--   e:whole(prompts) -> the text as it is left above, for terminal:print_above
--
-- prompts: { first, other }, texts of one line, for the first line and for the others.
local ah = ...
local character, width = ah.terminal.character, ah.terminal.width

local MOST = 1 << 20    -- bytes of a text
local SHOWN_ROWS = 20   -- rows of a text that are shown at once
local SHOWN_BYTES = 2048 -- bytes of one line that are shown, on either side of the cursor
local LEFT_LINES = 10   -- lines of a text that are left above
local BACKSLASH = 0x5c
local CUT = { "[...]", faint = true }

local Edit = {}
Edit.__index = Edit

-- Returns the text without controls: no terminal command is ever part of it.
local function clean(s)
  return (s:gsub("\r\n?", "\n"):gsub("[^\n]+", ah._harmless))
end

local M = {}

--- True if a text ends in a backslash that continues it: in an odd number of them.
function M.continues(s)
  local n = 0
  while s:byte(#s - n) == BACKSLASH do
    n = n + 1
  end
  return n % 2 == 1
end

function M.new(o)
  local e = setmetatable({ text = "", at = 1, history = o.history or {}, most = o.most or MOST,
    drafts = {}, killed = "" }, Edit)
  e:insert(o.text or "")
  e.at = math.min(o.at or e.at, #e.text + 1)
  e:settle()
  return e
end

-- -- places ---------------------------------------------------------------------------------------

-- Moves a cursor that is inside a character behind it.
function Edit:settle()
  if self.at > 1 and self.at <= #self.text then
    local first, last = character(self.text, self.at)
    self.at = first < self.at and last + 1 or self.at
  end
end

function Edit:before(at)
  return at > 1 and character(self.text, at - 1) or 1
end

function Edit:after(at)
  return at <= #self.text and select(2, character(self.text, at)) + 1 or at
end

-- Looks back in parts that grow, so that a short line in a long text is found at once.
function Edit:line_begin(at)
  local from, size = at, 256
  while from > 1 do
    from, size = math.max(1, at - size), size * 4
    local found = self.text:sub(from, at - 1):match "^.*\n()"
    if found then
      return from + found - 1
    end
  end
  return 1
end

function Edit:line_end(at)
  return self.text:find("\n", at, true) or #self.text + 1
end

local WORD, NO_WORD, FILLED = "^[%w_\x80-\xff]", "[^%w_\x80-\xff]", "^%S"

-- Returns where the word before `at` begins; `class` is the pattern of its bytes.
function Edit:word_begin(at, class)
  local inside = false
  while at > 1 do
    local is = self.text:find(class, at - 1) ~= nil
    if inside and not is then
      break
    end
    inside, at = is, at - 1
  end
  return at <= #self.text and (character(self.text, at)) or at
end

function Edit:word_end(at)
  local word = self.text:find(WORD:sub(2), at)
  at = word and self.text:find(NO_WORD, word) or #self.text + 1
  return at <= #self.text and (character(self.text, at)) or at
end

-- Returns the place in the line from `from` that is nearest to a column, from 0.
function Edit:at_column(from, column)
  local to, at = self:line_end(from), from
  while at < to do
    local after = self:after(at)
    if width(self.text:sub(from, after - 1)) > column then
      break
    end
    at = after
  end
  return at
end

-- -- changes --------------------------------------------------------------------------------------

-- Inserts a text at the cursor; what does not fit is left out, and `note` says so.
function Edit:insert(s)
  s = clean(s)
  local room = self.most - #self.text
  if #s > room then
    while room > 0 and s:byte(room + 1) & 0xc0 == 0x80 do
      room = room - 1
    end
    self.note = ("[... %d bytes left out]"):format(#s - room)
    s = s:sub(1, room)
  end
  self.text = self.text:sub(1, self.at - 1) .. s .. self.text:sub(self.at)
  self.at = self.at + #s
end

-- Removes the bytes from `from` to before `to`, and returns them.
function Edit:remove(from, to)
  local removed = self.text:sub(from, to - 1)
  self.text = self.text:sub(1, from - 1) .. self.text:sub(to)
  self.at = from
  return removed
end

-- Removes a part for Ctrl-Y. What is killed by keys in a row is one text.
function Edit:kill(from, to)
  local back = from < self.at
  self.doing = "kill"
  if from == to then
    return
  end
  local removed = self:remove(from, to)
  if self.last ~= "kill" then
    self.killed = removed
  else
    self.killed = back and removed .. self.killed or self.killed .. removed
  end
end

function Edit:transpose()
  local to = self.at > #self.text and self.at or self:after(self.at)
  local middle = self:before(to)
  local from = self:before(middle)
  if from < middle and middle < to then
    local second = self.text:sub(middle, to - 1)
    self.text = self.text:sub(1, from - 1) .. second .. self.text:sub(from, middle - 1)
      .. self.text:sub(to)
    self.at = to
  end
end

-- -- history --------------------------------------------------------------------------------------

local function place_of(e)
  return e.place or #e.history + 1
end

-- Shows the line of a place; that of the earlier place stays as it was edited until the end.
function Edit:recall(place)
  if place < 1 or place > #self.history + 1 then
    return
  end
  self.drafts[place_of(self)] = self.text
  self.place = place
  self.text, self.at = "", 1
  self:insert(self.drafts[place] or self.history[place] or "")
end

-- Moves by lines of the text, and at its first or last one in the history.
function Edit:vertical(by)
  local begin = self:line_begin(self.at)
  local column = self.last == "vertical" and self.column or width(self.text:sub(begin, self.at - 1))
  if by < 0 and begin > 1 then
    self.at = self:at_column(self:line_begin(begin - 1), column)
  elseif by > 0 and self:line_end(self.at) <= #self.text then
    self.at = self:at_column(self:line_end(self.at) + 1, column)
  else
    return self:recall(place_of(self) + by)
  end
  self.column, self.doing = column, "vertical"
end

-- -- search ---------------------------------------------------------------------------------------

-- Looks for the words from a place on; by: -1 for older lines, 1 for newer ones.
local function look(e, from, by)
  local s = e.search
  s.failed = false
  for place = from, by < 0 and 1 or #e.history, by do
    local at = e.history[place]:find(s.words, 1, true)
    if at then
      e.text, e.at, s.place = "", 1, place
      e:insert(e.history[place])
      e.at = math.min(at, #e.text + 1)
      return
    end
  end
  s.failed = s.words ~= ""
end

function Edit:begin_search()
  self.search = { words = "", place = #self.history + 1,
    before = { self.text, self.at, self.place } }
end

local function add_words(e, s)
  local line = clean(s):match "[^\n]*"
  e.search.words = e.search.words .. line
  look(e, math.min(e.search.place, #e.history), -1)
end

-- Ends the search; the line that it found can be edited.
local function accept(e)
  e.drafts[place_of(e)] = e.search.before[1]
  e.place = e.search.place <= #e.history and e.search.place or e.place
  e.search = nil
end

local SEARCH = {
  ["ctrl+r"] = function(e)
    look(e, math.min(e.search.place, #e.history + 1) - 1, -1)
  end,
  ["ctrl+s"] = function(e)
    look(e, e.search.place + 1, 1)
  end,
  ["ctrl+g"] = function(e)
    e.text, e.at, e.place = table.unpack(e.search.before, 1, 3)
    e.search = nil
  end,
  backspace = function(e)
    local s = e.search
    if s.words ~= "" then
      s.words = s.words:sub(1, character(s.words, #s.words) - 1)
      look(e, #e.history, -1)
    end
  end,
}
SEARCH["ctrl+c"], SEARCH["ctrl+h"] = SEARCH["ctrl+g"], SEARCH.backspace

-- -- keys -----------------------------------------------------------------------------------------

local function newline(e)
  e:insert "\n"
end

local KEYS = {
  left = function(e) e.at = e:before(e.at) end,
  right = function(e) e.at = e:after(e.at) end,
  home = function(e) e.at = e:line_begin(e.at) end,
  ["end"] = function(e) e.at = e:line_end(e.at) end,
  up = function(e) e:vertical(-1) end,
  down = function(e) e:vertical(1) end,
  ["alt+b"] = function(e) e.at = e:word_begin(e.at, WORD) end,
  ["alt+f"] = function(e) e.at = e:word_end(e.at) end,
  backspace = function(e) e:remove(e:before(e.at), e.at) end,
  delete = function(e) e:remove(e.at, e:after(e.at)) end,
  ["ctrl+k"] = function(e)
    local to = e:line_end(e.at)
    e:kill(e.at, to > e.at and to or e:after(e.at))
  end,
  ["ctrl+u"] = function(e) e:kill(e:line_begin(e.at), e.at) end,
  ["ctrl+w"] = function(e) e:kill(e:word_begin(e.at, FILLED), e.at) end,
  ["alt+backspace"] = function(e) e:kill(e:word_begin(e.at, WORD), e.at) end,
  ["alt+d"] = function(e) e:kill(e.at, e:word_end(e.at)) end,
  ["ctrl+y"] = function(e) e:insert(e.killed) end,
  ["ctrl+t"] = function(e) e:transpose() end,
  ["ctrl+r"] = function(e) e:begin_search() end,
  ["ctrl+j"] = newline,
  ["alt+enter"] = newline,
  ["shift+enter"] = newline,
  enter = function(e)
    if e.at > #e.text and M.continues(e.text) then
      e.text = e.text:sub(1, -2) .. "\n"
      return
    end
    return "enter"
  end,
  tab = function() return "complete" end,
  ["ctrl+c"] = function() return "interrupt" end,
  ["ctrl+d"] = function(e)
    if e.text == "" then
      return "end"
    end
    e:remove(e.at, e:after(e.at))
  end,
  ["ctrl+l"] = function() return "clear" end,
  ["ctrl+z"] = function() return "suspend" end,
}
for key, same in pairs { ["ctrl+b"] = "left", ["ctrl+f"] = "right", ["ctrl+a"] = "home",
  ["ctrl+e"] = "end", ["ctrl+p"] = "up", ["ctrl+n"] = "down", ["alt+left"] = "alt+b",
  ["ctrl+left"] = "alt+b", ["alt+right"] = "alt+f", ["ctrl+right"] = "alt+f",
  ["ctrl+h"] = "backspace", ["ctrl+i"] = "tab", ["ctrl+m"] = "enter",
  ["ctrl+backspace"] = "alt+backspace", ["ctrl+delete"] = "alt+d" } do
  KEYS[key] = KEYS[same]
end

local function name_of(event)
  return (event.ctrl and "ctrl+" or "") .. (event.alt and "alt+" or "")
    .. (event.shift and event.key == "enter" and "shift+" or "") .. event.key
end

-- Returns the text that an event types; nil if it types none. A byte that is no character in UTF-8
-- types nothing.
local function typed(event)
  return event.paste or (event.text ~= "\u{FFFD}" and event.text or nil)
end

local function take_search(e, event, name)
  if SEARCH[name] then
    SEARCH[name](e)
  elseif typed(event) then
    add_words(e, typed(event))
  else
    accept(e)
    return name ~= "escape" and KEYS[name] and KEYS[name](e) or nil
  end
end

function Edit:take(event)
  local name = event.key and name_of(event) or ""
  local outcome
  self.note, self.doing = nil, nil
  if not (event.key or event.paste) then
    return
  elseif self.search then
    outcome = take_search(self, event, name)
  elseif KEYS[name] then
    outcome = KEYS[name](self)
  elseif typed(event) then
    self:insert(typed(event))
  end
  if event.truncated then
    self.note = "[... the rest of the paste is left out]"
  end
  self:settle()
  self.last = self.doing
  return outcome
end

-- -- completion -----------------------------------------------------------------------------------

local function common_of(list)
  local common = list[1]
  for _, one in ipairs(list) do
    local n = 0
    while n < #common and one:byte(n + 1) == common:byte(n + 1) do
      n = n + 1
    end
    common = common:sub(1, n)
  end
  local first, last = 1, 0
  if #common > 0 and #common < #list[1] then
    first, last = character(list[1], #common)
  end
  return last > #common and common:sub(1, first - 1) or common
end

--- Called after "complete": replaces the bytes from `from` to the cursor by what the candidates
-- have in common. Returns them if that was there already, and Tab was typed before, too.
function Edit:offer(candidates, from)
  local clean_ones = {}
  for i, one in ipairs(candidates) do
    clean_ones[i] = clean(one)
  end
  if not clean_ones[1] then
    return
  end
  local common, word = common_of(clean_ones), self.text:sub(from, self.at - 1)
  if clean_ones[2] and #common <= #word then
    local again = self.offered
    self.offered = self.text .. "\n" .. self.at
    return again == self.offered and clean_ones or nil
  end
  self:remove(from, self.at)
  self:insert(common)
  self:settle()
end

-- -- what is shown --------------------------------------------------------------------------------

-- Returns the text of prompts and styled texts.
local function plain(shown)
  if type(shown) ~= "table" then
    return tostring(shown)
  end
  local parts = {}
  for i, one in ipairs(shown) do
    parts[i] = plain(one)
  end
  return table.concat(parts)
end

-- Returns the line from `from` to before `to` for showing, with the bytes around `at` if it is
-- long; and where the shown part begins.
function Edit:part(from, to, at)
  local first, last = math.max(from, at - SHOWN_BYTES), math.min(to, at + SHOWN_BYTES)
  first = first > from and first <= #self.text and (character(self.text, first)) or first
  last = last < to and (character(self.text, last)) or last
  return { first > from and CUT or "", self.text:sub(first, last - 1), last < to and CUT or "" },
    first
end

local function rows_of(line, columns)
  return math.max(1, (width(plain(line)) + columns - 1) // columns)
end

-- Returns the prompt and the part of the line at `from`.
function Edit:shown_line(from, prompts)
  local here = from <= self.at and self.at <= self:line_end(from)
  local part, first = self:part(from, self:line_end(from), here and self.at or from)
  return { from == 1 and prompts[1] or prompts[2], part }, first
end

local function count(s)
  return select(2, s:gsub("\n", ""))
end

-- Returns the lines around the cursor that fit into the rows, and the places of the first and of
-- the last one.
function Edit:lines_around(columns, rows, prompts)
  local first = self:line_begin(self.at)
  local last, lines = first, { (self:shown_line(first, prompts)) }
  local left = rows - rows_of(lines[1], columns)
  local up, down = true, true
  while left > 0 and (up or down) do
    up = up and first > 1
    if up then
      local from = self:line_begin(first - 1)
      local line = self:shown_line(from, prompts)
      left = left - rows_of(line, columns)
      up = left >= 0
      if up then
        first = from
        table.insert(lines, 1, line)
      end
    end
    local to = self:line_end(last)
    down = down and left > 0 and to <= #self.text
    if down then
      local line = self:shown_line(to + 1, prompts)
      left = left - rows_of(line, columns)
      down = left >= 0
      if down then
        last = to + 1
        lines[#lines + 1] = line
      end
    end
  end
  return lines, first, last
end

local function searched(e, prompts)
  local s = e.search
  if s then
    local what = s.failed and "not found" or "search"
    return { { { ("(%s: %s) "):format(what, s.words), faint = true } }, prompts[2] }
  end
  return prompts
end

function Edit:view(columns, rows, prompts)
  prompts = searched(self, prompts)
  local most = math.max(1, math.min(rows // 2, SHOWN_ROWS))
  local lines, first, last = self:lines_around(columns, most, prompts)
  local begin = self:line_begin(self.at)
  local cursor = { line = 1 + count(self.text:sub(first, begin - 1)) }
  local line, from = self:shown_line(begin, prompts)
  cursor.column = width(plain { line[1], line[2][1], self.text:sub(from, self.at - 1) }) + 1
  if first > 1 then
    table.insert(lines, 1, { ("[%d more above]"):format(count(self.text:sub(1, first - 1))),
      faint = true })
    cursor.line = cursor.line + 1
  end
  local to = self:line_end(last)
  if to <= #self.text then
    lines[#lines + 1] = { ("[%d more below]"):format(count(self.text:sub(to))), faint = true }
  end
  lines[#lines + 1] = self.note and { self.note, faint = true }
  return lines, cursor
end

function Edit:whole(prompts)
  local lines, from, n = {}, 1, 0
  while n < LEFT_LINES and from <= #self.text + 1 do
    local to = self:line_end(from)
    lines[#lines + 1] = { n > 0 and "\n" or "", prompts[n > 0 and 2 or 1],
      (self:part(from, to, from)) }
    from, n = to + 1, n + 1
  end
  if from <= #self.text + 1 then
    lines[#lines + 1] = { ("\n[%d more lines]"):format(count(self.text:sub(from)) + 1),
      faint = true }
  end
  return lines
end

return M
