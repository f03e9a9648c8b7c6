--- Reads files of lines NAME = VALUE: settings, and variables of --env-file. Every line must be a
-- pair, empty, a comment (#) or, in settings, the header of a section. Messages have the file and
-- the number of the line, but never its text, which may be a key.
local ah = ...
local kept_file = ah._module "agenthost.kept_file"

local M = {}

M.MAX_FILE = 1 << 20
local MISSING = { [2] = true, [20] = true } -- ENOENT, ENOTDIR
local BOM = "\u{FEFF}"

--- Raises a message for the user, about an error in a file.
function M.fault(text, ...)
  error({ words = text:format(...) }, 0)
end

local function shown(path)
  return ah._harmless(path:sub(1, 300))
end
M.shown = shown

-- -- files -----------------------------------------------------------------------------------

-- Reads a file or a pipe to its end.
local function read_any(path)
  local f <close>, why, code = io.open(path, "rb")
  if not f then
    return nil, why:sub(#path + 3), code
  end
  local text
  text, why = f:read(M.MAX_FILE + 1)
  if not text and why then
    return nil, why, 0
  end
  text = text or "" -- the end of an empty file
  if #text > M.MAX_FILE then
    return nil, "it is larger than 1 MiB", 0
  end
  return text, nil, 0
end

--- Returns the text of a file, and true if the user owns it; or nil, the reason, and true if it is
-- missing.
---@param path string
---@param how "file"|"link"|"any" file: a regular file; link: or a link to one; any: or a pipe
function M.read(path, how)
  local text, more, code
  if how == "any" then
    text, more, code = read_any(path)
  else
    text, more, code = ah._read_file(path, M.MAX_FILE, how == "link")
    if not text then -- "cannot read 'path': why"
      more = more:sub(#path:sub(1, 300) + 17):gsub("1048576 bytes", "1 MiB")
    end
  end
  if text and text:find("\0", 1, true) then
    return nil, "it is not text (it has a NUL byte)", false
  end
  return text, more, MISSING[code] or false
end

--- Returns the path of a file in the folder of agenthost's state; nil if HOME is not set.
function M.in_state(name)
  local state, home = os.getenv "XDG_STATE_HOME" or "", os.getenv "HOME" or ""
  if state:sub(1, 1) == "/" then
    return state .. "/agenthost/" .. name
  elseif home:sub(1, 1) == "/" then
    return home .. "/.local/state/agenthost/" .. name
  end
end

--- Makes the folders of a path that are missing, readable by the user only; raises a fault.
function M.make_folders(path)
  local made, folder, why = kept_file.make_folders(path)
  if not made then
    M.fault("cannot make the folder '%s': %s", shown(folder), why)
  end
end

--- Returns the lock of a file that this process is to change, for a variable with <close>. Waits
-- for another process that has it; raises a fault if that takes too long.
function M.locked(path)
  local lock, why = kept_file.locked(path)
  return lock or M.fault("%s", why)
end

--- Raises that the file cannot be read.
function M.unreadable(what, path, why)
  M.fault("cannot read the %s '%s': %s", what, shown(path), why)
end

-- -- lines -----------------------------------------------------------------------------------

local function strip(s)
  return s:match "^[ \t]*(.-)[ \t\r]*$"
end

-- Returns the value without its quotes; nil if they do not match.
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
    wrong "the text before '=' is no name (letters, digits, _)"
  end
  local value = unquoted(strip(right))
  if not value then
    wrong "the quotes around the value do not match"
  elseif value:find "[\1-\31\127]" then
    wrong "the value holds a control character"
  end
  return name, value
end

local function read_header(line, wrong)
  local name = line:match "^%[[ \t]*([%a_][%w_.-]*)[ \t]*%]$"
  if not name then
    wrong "a line that begins with '[' is the header of a section: [name], and nothing else"
  end
  return name
end

-- Calls take(line, number) for each line that is neither empty nor a comment.
local function each_line(text, take)
  local n = 0
  if text:sub(1, #BOM) == BOM then
    text = text:sub(#BOM + 1)
  end
  for line in (text:find "\n$" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    line = strip(line)
    if line ~= "" and line:sub(1, 1) ~= "#" then
      take(line, n)
    end
  end
end

local function wrong_at(path, n)
  return function(words)
    M.fault("%s:%d: %s", shown(path), n, words)
  end
end

--- Calls take(name, value, line) for each variable; `line` is the number from 1. A value is the
-- text after "=", without spaces around it and without quotes around the whole; nothing in it is
-- expanded.
---@param text string
---@param path string for messages
---@param take fun(name: string, value: string, line: integer)
function M.variables(text, path, take)
  each_line(text, function(line, n)
    local name, value = read_line(line, wrong_at(path, n))
    local odd = name:match "[^%w_]"
    if odd then
      M.fault("%s:%d: a variable's name has no '%s'", shown(path), n, odd)
    end
    take(name, value, n)
  end)
end

--- Calls take(name, value, line) for each setting, whose name may have `-./:@`; after the header
-- [SECTION] the name is SECTION.NAME. Calls open(section, line) for each header.
---@param text string
---@param path string
---@param open fun(section: string, line: integer)
---@param take fun(name: string, value: string, line: integer)
function M.settings(text, path, open, take)
  local section = ""
  each_line(text, function(line, n)
    local wrong = wrong_at(path, n)
    if not utf8.len(line) then
      wrong "it is not UTF-8"
    elseif line:sub(1, 1) == "[" then
      section = read_header(line, wrong)
      open(section, n)
      section = section .. "."
    else
      local name, value = read_line(line, wrong)
      take(section .. name, value, n)
    end
  end)
end

return M
