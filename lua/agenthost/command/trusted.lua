--- The folders that a user trusts: $XDG_STATE_HOME/agenthost/trusted, a line each: the hash of the
-- folder's agenthost.conf, that of the variables' file it names ("-": none was there), its path.
-- A file that has another hash today is not trusted.
local ah, use = ...
local pairs_of = use "pairs"

local M = {}

local HEAD = "# The folders whose settings are trusted: agenthost trust --list\n"
local PATIENCE, PAUSE = 10, 0.02 -- seconds, for another command that writes here

--- Returns the path of the file that keeps them; nil if there is none (HOME is not set).
function M.place()
  local state, home = os.getenv "XDG_STATE_HOME" or "", os.getenv "HOME" or ""
  if state:sub(1, 1) == "/" then
    return state .. "/agenthost/trusted"
  elseif home:sub(1, 1) == "/" then
    return home .. "/.local/state/agenthost/trusted"
  end
end

-- A path on one line.
local function escaped(path)
  return (path:gsub("[%c%%]", function(c)
    return ("%%%02X"):format(c:byte())
  end))
end

local function unescaped(text)
  return (text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

local function is_hash(text)
  return #text == 64 and text:find "^%x+$" ~= nil
end

local function parse(text)
  local list = {}
  for line in text:gmatch "[^\n]+" do
    local settings, variables, path = line:match "^(%S+) (%S+) (/.*)$"
    if path and is_hash(settings) and (variables == "-" or is_hash(variables)) then
      list[#list + 1] = { settings = settings, variables = variables, path = unescaped(path) }
    end
  end
  return list
end

--- Returns the list of records { path, settings, variables }; if the file cannot be read, an empty
-- list and why.
function M.list()
  local place = M.place()
  if not place then
    return {}
  end
  local text, more, missing = pairs_of.read(place, "file")
  if not text then
    return {}, not missing and more or nil
  elseif not more then
    return {}, "it is somebody else's"
  end
  return parse(text)
end

--- Returns the record of a file of settings; nil if it is not trusted, and why if that cannot be
-- known.
function M.find(path)
  local list, why = M.list()
  for _, one in ipairs(list) do
    if one.path == path then
      return one
    end
  end
  return nil, why
end

--- The hash that stands for a text; "-" for none.
function M.hash(text)
  return text and ah.sha256(text) or "-"
end

-- -- changing ------------------------------------------------------------------------------------

local function make_folders(place)
  for at in place:gmatch "()/" do
    local ok, why = ah._make_folder(at == 1 and "/" or place:sub(1, at - 1))
    if not ok then
      pairs_of.fault("cannot make the folder '%s': %s", pairs_of.shown(place:sub(1, at - 1)), why)
    end
  end
end

local function locked(place)
  local waited = 0
  local lock = ah._append_private(place .. ".lock", true)
  while not lock and waited < PATIENCE do
    ah.sleep(PAUSE)
    waited = waited + PAUSE
    lock = ah._append_private(place .. ".lock", true)
  end
  return lock or pairs_of.fault("cannot write '%s': another agenthost trust is at work there",
    pairs_of.shown(place))
end

--- Keeps `record` in place of what was kept of that path; without its hashes it is trusted no more.
-- Returns whether anything of it was kept before.
function M.keep(record)
  local place = M.place()
  if not place then
    pairs_of.fault "there is no place to keep it: set HOME"
  end
  make_folders(place)
  local _ <close> = locked(place)
  local list, why = M.list()
  if why then
    pairs_of.unreadable("trusted folders", place, why)
  end
  local lines, was = { HEAD }, false
  for _, one in ipairs(list) do
    if one.path == record.path then
      was = true
    else
      lines[#lines + 1] = ("%s %s %s\n"):format(one.settings, one.variables, escaped(one.path))
    end
  end
  if record.settings then
    lines[#lines + 1] = ("%s %s %s\n"):format(record.settings, record.variables,
      escaped(record.path))
  end
  ah._write_private(place, table.concat(lines))
  return was
end

return M
