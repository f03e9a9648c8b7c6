--- What a terminal shows: a small one, for the sequences that the command writes. A sequence
--- it does not know is an error, so that none comes in unseen.
local Screen = {}
Screen.__index = Screen

local ROWS = 24

local function new(columns)
  return setmetatable({ columns = columns, rows = {}, row = 1, column = 1 }, Screen)
end

function Screen:down()
  if self.row < ROWS then
    self.row = self.row + 1
  else
    for row = 1, ROWS do
      self.rows[row] = self.rows[row + 1]
    end
  end
end

function Screen:put(char)
  if self.column > self.columns then
    self.column = 1
    self:down()
  end
  local row = self.rows[self.row] or {}
  self.rows[self.row] = row
  for i = #row + 1, self.column - 1 do
    row[i] = " "
  end
  row[self.column] = char
  self.column = self.column + 1
end

local function erase_below(self)
  for row = self.row + 1, ROWS do
    self.rows[row] = nil
  end
  local row = self.rows[self.row] or {}
  for column = self.column, #row do
    row[column] = nil
  end
end

local SEQUENCES = {
  ["7"] = function(self) self.saved = { self.row, self.column } end,
  ["8"] = function(self) self.row, self.column = table.unpack(self.saved) end,
  D = Screen.down,
  M = function(self) self.row = self.row - 1 end,
  ["[J"] = erase_below,
}

--- Takes what was written; returns itself.
function Screen:feed(bytes)
  local at = 1
  while at <= #bytes do
    local char = bytes:sub(at, at)
    if char == "\27" then
      local sequence = bytes:match("^[78DM]", at + 1) or bytes:match("^%[[%d;]*%a", at + 1)
      assert(sequence, "a sequence was cut")
      if not sequence:find("^%[[%d;]*m$") then
        assert(SEQUENCES[sequence], "unknown sequence ESC " .. sequence)(self)
      end
      at = at + #sequence
    elseif char == "\r" then
      self.column = 1
    elseif char == "\n" then
      self:down()
    else
      self:put(char)
    end
    at = at + 1
  end
  return self
end

--- The lines, without blank ones at the end.
function Screen:text()
  local lines = {}
  for i = 1, ROWS do
    lines[i] = self.rows[i] and table.concat(self.rows[i]):gsub(" +$", "") or ""
  end
  return (table.concat(lines, "\n"):gsub("\n*$", ""))
end

return { new = new }
