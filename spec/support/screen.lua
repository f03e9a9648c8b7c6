--- A small terminal: shows the screen that the command's sequences produce. An unknown sequence is
-- an error, so that none is used unnoticed.
local Screen = {}
Screen.__index = Screen

local ROWS = 24

--- A row is a list of cells; "" is the second half of a wide one. `soft`: it continues in the next
-- row.
local function new(columns, rows)
  return setmetatable({ columns = columns, height = rows or ROWS, rows = {}, row = 1, column = 1,
    history = {}, cursor = true, modes = {} }, Screen)
end

local function string_of(row)
  return (table.concat(row or {}):gsub(" +$", ""))
end

function Screen:down()
  if self.row < self.height then
    self.row = self.row + 1
  else
    self.history[#self.history + 1] = string_of(self.rows[1])
    for row = 1, self.height do
      self.rows[row] = self.rows[row + 1]
    end
  end
end

local function is_mark(code)
  return (code >= 0x300 and code <= 0x36f) or code == 0x200d or code == 0xfe0f
end

local function is_wide(code)
  return (code >= 0x1100 and code <= 0x115f) or (code >= 0x2e80 and code <= 0xa4cf)
    or (code >= 0xac00 and code <= 0xd7a3) or (code >= 0xff01 and code <= 0xff60)
    or (code >= 0x1f300 and code <= 0x1faff)
end

function Screen:put(char)
  local code = utf8.len(char) and utf8.codepoint(char) or 0
  local row = self.rows[self.row]
  if is_mark(code) then
    local at = self.column - 1
    at = row and row[at] == "" and at - 1 or at
    if row and row[at] then
      row[at] = row[at] .. char
    end
    return
  end
  local width = is_wide(code) and 2 or 1
  if self.column + width - 1 > self.columns then
    self.rows[self.row] = row or {}
    self.rows[self.row].soft = true
    self.column = 1
    self:down()
  end
  row = self.rows[self.row] or {}
  self.rows[self.row] = row
  for i = #row + 1, self.column - 1 do
    row[i] = " "
  end
  row[self.column] = char
  row[self.column + 1] = width == 2 and "" or row[self.column + 1]
  self.column = self.column + width
end

local function erase_line(self)
  local row = self.rows[self.row] or {}
  for column = self.column, #row do
    row[column] = nil
  end
  row.soft = nil
end

local function erase_below(self)
  for row = self.row + 1, self.height do
    self.rows[row] = nil
  end
  erase_line(self)
end

-- By the last byte, and the bytes before it.
local SEQUENCES = {
  ["7"] = function(self) self.saved = { self.row, self.column } end,
  ["8"] = function(self) self.row, self.column = table.unpack(self.saved) end,
  D = Screen.down,
  M = function(self) self.row = self.row - 1 end,
  ["[J"] = erase_below,
  ["[H"] = function(self) self.row, self.column = 1, 1 end,
  ["[2J"] = function(self) self.rows = {} end,
  ["[K"] = erase_line,
  ["[A"] = function(self, n) self.row = math.max(1, self.row - n) end,
  ["[C"] = function(self, n) self.column = math.min(self.columns, self.column + n) end,
  ["[?25h"] = function(self) self.cursor = true end,
  ["[?25l"] = function(self) self.cursor = false end,
  ["[>1u"] = function(self) self.modes.keys = true end,
  ["[<u"] = function(self) self.modes.keys = false end,
  ["[?2004h"] = function(self) self.modes.paste = true end,
  ["[?2004l"] = function(self) self.modes.paste = false end,
}

local function obey(self, sequence)
  if sequence:find("^%[[%d;]*m$") then
    return
  end
  local n = sequence:match "^%[(%d+)[AC]$"
  local name = n and sequence:gsub("%d", "") or sequence
  assert(SEQUENCES[name], "unknown sequence ESC " .. sequence)(self, tonumber(n or 1))
end

--- Writes bytes to the terminal; returns it.
function Screen:feed(bytes)
  local at = 1
  while at <= #bytes do
    local char = bytes:match("^[\xc2-\xf4][\x80-\xbf]+", at) or bytes:sub(at, at)
    if char == "\27" then
      local sequence = bytes:match("^[78DM]", at + 1) or bytes:match("^%[[?<>]?[%d;]*%a", at + 1)
      assert(sequence, "a sequence was cut")
      obey(self, sequence)
      at = at + #sequence
    elseif char == "\r" then
      self.column = 1
    elseif char == "\n" then
      self:down()
    elseif char == "\a" and self.bells then
      self.bells = self.bells + 1
    else
      assert(char:byte() >= 32 or char == "\t", "a control was written")
      self:put(char)
    end
    at = at + #char
  end
  return self
end

--- Returns the lines, without blank ones at the end.
function Screen:text()
  local lines = {}
  for i = 1, self.height do
    lines[i] = string_of(self.rows[i])
  end
  return (table.concat(lines, "\n"):gsub("\n*$", ""))
end

--- Returns all that was ever shown, including lines that have left the screen at the top.
function Screen:all()
  local above = table.concat(self.history, "\n")
  return (#self.history > 0 and above .. "\n" or "") .. self:text()
end

-- Returns the lines that were written, with the place of the cursor in them.
local function unwrapped(self)
  local lines, line = {}, {}
  for i = 1, self.height do
    local row = self.rows[i] or {}
    if i == self.row then
      self.at = { #lines + 1, #line + self.column }
    end
    table.move(row, 1, #row, #line + 1, line)
    if not row.soft then
      lines[#lines + 1], line = line, {}
    end
  end
  return lines
end

--- Sets another width: a terminal that reflows breaks its lines anew, another one cuts them.
function Screen:resize(columns, reflows)
  local lines = reflows and unwrapped(self)
  self.columns = columns
  if not reflows then
    for _, row in pairs(self.rows) do
      for i = columns + 1, #row do
        row[i] = nil
      end
    end
    self.column = math.min(self.column, columns)
    return
  end
  local line_at, column_at = table.unpack(self.at)
  local rows, cursor = {}, nil
  for n, line in ipairs(lines) do
    local from = 1
    repeat
      local to = math.min(#line, from + columns - 1)
      to = line[to + 1] == "" and to - 1 or to
      local row = table.move(line, from, to, 1, {})
      row.soft = to < #line or nil
      rows[#rows + 1] = row
      if n == line_at and column_at >= from and (column_at <= from + columns - 1
        or to >= #line) then
        cursor = cursor or { #rows, math.min(column_at - from + 1, columns + 1) }
      end
      from = to + 1
    until from > #line
  end
  while #rows > self.height and (#rows > cursor[1] and #rows[#rows] == 0) do
    rows[#rows] = nil
  end
  while #rows > self.height do
    self.history[#self.history + 1] = string_of(table.remove(rows, 1))
    cursor[1] = cursor[1] - 1
  end
  self.rows, self.row, self.column = rows, math.max(1, cursor[1]), cursor[2]
end

return { new = new }
