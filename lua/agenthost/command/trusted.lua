--- Reads and writes the list of trusted files, $XDG_STATE_HOME/agenthost/trusted. A line has the
-- hash of a folder's agenthost.conf, that of the variables' file it names ("-" if there was none),
-- and its path; or the hash, "-" and the path of a saved prompt (saved_prompts.lua). A file with
-- another hash is not trusted.
local ah, use = ...
local pairs_of = use "pairs"

local M = {}

local HEAD = "# The folders whose settings are trusted: agenthost trust --list\n"

--- Returns the path of the list; nil if there is none (HOME is not set).
function M.place()
  return pairs_of.in_state "trusted"
end

-- Returns the path on one line, with controls and % escaped.
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

--- Returns the list of records { path, settings, variables }; an empty list and the reason if the
-- file cannot be read.
function M.list()
  local place = M.place()
  if not place then
    return {}
  end
  local text, more, missing = pairs_of.read(place, "file")
  if not text then
    return {}, not missing and more or nil
  elseif not more then
    return {}, "it belongs to another user"
  end
  return parse(text)
end

--- Returns the record of a file of settings; nil if it is not trusted, and the reason if the list
-- cannot be read.
function M.find(path)
  local list, why = M.list()
  for _, one in ipairs(list) do
    if one.path == path then
      return one
    end
  end
  return nil, why
end

--- Returns the hash of a text; "-" for nil.
function M.hash(text)
  return text and ah.sha256(text) or "-"
end

-- -- changing ------------------------------------------------------------------------------------

--- Stores `record` in place of the earlier one of its path; a record without hashes only removes
-- that one. Returns true if there was an earlier one.
function M.keep(record)
  local place = M.place()
  if not place then
    pairs_of.fault "there is no place to keep it: set HOME"
  end
  pairs_of.make_folders(place)
  local _ <close> = pairs_of.locked(place)
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
