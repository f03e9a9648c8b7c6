--- The lines that were typed in earlier sessions. The file has one line for each, as a JSON string,
-- so a text of several lines is one, too. Only its owner can read it. Each line is appended by one
-- write, so that several sessions may use the file at the same time.
--
--   local history = line_history.open(path)   -- path nil: the lines last as long as the session
--   history.lines      the list, the oldest first
--   history.why        why the file cannot be used; nil: it can
--   history:add(line)
local ah, use = ...
local pairs_of = use "pairs"

local LINES, BYTES = 1000, 512 << 10  -- that a new session begins with
local MOST_BYTES = 32 << 10           -- of a line that is kept in the file
local MOST_FILE = 16 << 20
local NO_FILE = 2                     -- ENOENT

local History = {}
History.__index = History

local function parse(text)
  local lines = {}
  for row in text:gmatch "[^\n]+" do
    local line = ah.json.decode(row)
    lines[#lines + 1] = type(line) == "string" and line ~= "" and line or nil
  end
  return lines
end

local function row_of(line)
  return ah.json.encode(line) .. "\n"
end

-- Returns the newest lines within the limits.
local function newest(lines)
  local first, bytes = #lines + 1, 0
  while first > 1 and #lines - first + 1 < LINES and bytes + #lines[first - 1] <= BYTES do
    first = first - 1
    bytes = bytes + #lines[first]
  end
  return table.move(lines, first, #lines, 1, {})
end

-- Makes a file smaller that has more than twice what a session begins with, so that this is rare.
local function shorten(h, n)
  if n < 2 * LINES and h.bytes < 2 * BYTES then
    return
  end
  local rows = {}
  for i, line in ipairs(h.lines) do
    rows[i] = row_of(line)
  end
  local text = table.concat(rows)
  ah._write_private(h.path, text)
  h.bytes = #text
end

local function read(h)
  local text, more, code = ah._read_file(h.path, MOST_FILE)
  if not text and code == NO_FILE then
    return
  elseif not text or not more then
    error(more or ("cannot use '%s': it belongs to another user"):format(h.path), 0)
  end
  local lines = parse(text)
  h.lines, h.bytes = newest(lines), #text
  shorten(h, #lines)
end

-- Calls a function that uses the file. After a failure the file is not used any more.
local function carefully(h, f, ...)
  local ok, why = pcall(f, h, ...)
  if not ok then
    h.path, h.why = nil, type(why) == "table" and (why.message or why.words) or why
  end
end

local M = {}

function M.open(path)
  local h = setmetatable({ path = path, lines = {}, bytes = 0 }, History)
  if path then
    carefully(h, read)
  end
  return h
end

-- One write: the file has no buffer.
local function append(h, line)
  if h.bytes == 0 then
    pairs_of.make_folders(h.path)
  end
  local f <close> = ah._append_private(h.path)
  f:setvbuf "no"
  local row = row_of(line)
  assert(f:write(row))
  h.bytes = h.bytes + #row
end

--- Adds a line, unless it is blank or the same as the last one.
function History:add(line)
  if not line:find "%S" or line == self.lines[#self.lines] then
    return
  end
  self.lines[#self.lines + 1] = line
  if self.path and #line <= MOST_BYTES then
    carefully(self, append, line)
    if self.path and self.bytes > 4 * BYTES then
      carefully(self, read)
    end
  end
end

return M
