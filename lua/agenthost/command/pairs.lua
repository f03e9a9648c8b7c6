--- Files of lines NAME = VALUE: the configuration and what --env-file names. Read strictly: every
-- line is a pair, empty, or a comment (#). Messages tell file and line and never a word of the
-- line, which may be a key.
local M = {}

local MAX_FILE = 1 << 20
local MISSING = { [2] = true, [20] = true } -- ENOENT, ENOTDIR

--- Words for a person who is to mend a file.
function M.fault(text, ...)
  error({ words = text:format(...) }, 0)
end

local function shown(path)
  return path:sub(1, 300)
end

local function read(path)
  local f <close>, why, code = io.open(path, "rb")
  if not f then
    return nil, why:sub(#path + 3), code
  end
  local text
  text, why = f:read(MAX_FILE + 1)
  if not text and why then
    return nil, why
  end
  text = text or "" -- the end of an empty file
  if #text > MAX_FILE then
    return nil, "it is larger than 1 MiB"
  elseif text:find("\0", 1, true) then
    return nil, "it is no text (it holds NUL)"
  end
  return text
end

local function strip(s)
  return s:match "^[ \t]*(.-)[ \t\r]*$"
end

-- The value without its quotes; nil where they do not match.
local function unquoted(s)
  local quote = s:match "^[\"']"
  if not quote then
    return s
  end
  return #s >= 2 and s:find(quote, 2, true) == #s and s:sub(2, -2) or nil
end

local function read_line(line, wrong)
  local left, right = line:match "^([^=]*)=(.*)$"
  if not left then
    wrong "expected NAME=VALUE, found no '='"
  end
  left = strip(left)
  local name = strip(left:match "^export([ \t].*)$" or left)
  if not name:find "^[%a_][%w_./:@-]*$" then
    wrong "what stands before '=' is no name (letters, digits, _)"
  end
  local value = unquoted(strip(right))
  if not value then
    wrong "the quotes around the value do not match"
  elseif value:find "[\1-\31\127]" then
    wrong "the value holds a control character"
  end
  return name, value
end

--- Calls take(name, value, line) for each pair; `line` is the number from 1. A value is what stands
-- behind "=", without blanks around it, and without its quotes where it stands in them as a whole;
-- nothing in it is expanded. Names may hold `-./:@` beside letters, digits and _.
---@param path string
---@param what string the file, in messages
---@param may_miss boolean|nil a file that is not there is none
---@param take fun(name: string, value: string, line: integer)
---@return boolean # there is such a file
function M.each(path, what, may_miss, take)
  local text, why, code = read(path)
  if not text and may_miss and MISSING[code] then
    return false
  elseif not text then
    M.fault("cannot read the %s '%s': %s", what, shown(path), why)
  end
  local n = 0
  for line in (text:find "\n$" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    line = strip(line)
    if line ~= "" and line:sub(1, 1) ~= "#" then
      local name, value = read_line(line, function(words)
        M.fault("%s:%d: %s", shown(path), n, words)
      end)
      take(name, value, n)
    end
  end
  return true
end

return M
