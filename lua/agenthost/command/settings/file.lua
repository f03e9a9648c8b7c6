--- Finds and reads files of settings: the user's, and that of the current project.
--
-- A project's file is agenthost.conf, in the current folder or the nearest above it that has one.
-- The search ends before HOME, at the root of the files, and at a folder of another user, whose
-- file is the last one read. Many may write to such a folder, so its file has no effect before it
-- is trusted (judge.lua).
local ah, use = ...
local pairs_of, rows = use "pairs", use "settings.rows"

local fault, shown = pairs_of.fault, pairs_of.shown

local M = { NAME = "agenthost.conf" }

-- -- what a file says ----------------------------------------------------------------------------

local function unknown(path, line, what, near)
  fault("%s:%d: there is no such %s%s\nSee agenthost config --help.", shown(path), line, what,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

local function entry_of(path, name, value, line)
  local row = rows.find(name)
  if not row then
    unknown(path, line, "setting", rows.nearest(name))
  end
  local is, wanted = row.read(value)
  if is == nil then
    fault("%s:%d: %s must be %s", shown(path), line, name, wanted)
  end
  return { name = name, row = row, text = value, value = is, line = line, path = path }
end

--- Returns the settings of a text, in their order: { name, row, text, value, line, path } each.
function M.settings(text, path)
  local list, seen = {}, {}
  pairs_of.settings(text, path, function(section, line)
    local known, near = rows.is_section(section)
    if not known then
      unknown(path, line, "section", near)
    end
  end, function(name, value, line)
    if seen[name] then
      fault("%s:%d: %s is set twice", shown(path), line, name)
    end
    seen[name] = true
    list[#list + 1] = entry_of(path, name, value, line)
  end)
  return list
end

--- Returns the path of the user's file; "" if there can be none.
function M.user_path()
  local config, home = os.getenv "XDG_CONFIG_HOME" or "", os.getenv "HOME" or ""
  if config:sub(1, 1) == "/" then
    return config .. "/agenthost/config"
  end
  return home:sub(1, 1) == "/" and home .. "/.config/agenthost/config" or ""
end

--- Returns the settings by name.
function M.by_name(settings)
  local named = {}
  for _, entry in ipairs(settings) do
    named[entry.name] = entry
  end
  return named
end

--- Returns the user's file: { path, found, settings }. With the path "" it is empty.
function M.user(path)
  local file = { path = path, found = false, settings = {} }
  if path == "" then
    return file
  end
  local text, why, missing = pairs_of.read(path, "link")
  if text then
    file.found, file.settings = true, M.settings(text, path)
  elseif not missing then
    pairs_of.unreadable("configuration", path, why)
  end
  return file
end

-- -- a project's file --------------------------------------------------------------------------

--- Returns this folder's file: { path, folder, text, mine }, with `why` in place of `text` if it
-- cannot be read; nil if there is none.
function M.at(folder)
  local path = (folder == "/" and "" or folder) .. "/" .. M.NAME
  local text, more, missing = pairs_of.read(path, "file")
  if text then
    return { path = path, folder = folder, text = text, mine = more and ah._is_mine(folder) }
  elseif not missing then
    return { path = path, folder = folder, why = more, mine = ah._is_mine(folder) }
  end
end

--- Returns the file of the nearest folder that has one; nil if none has.
function M.project()
  local folder = ah._real_path "."
  local home = ah._real_path(os.getenv "HOME" or "")
  while folder and folder ~= "" and folder ~= "/" and folder ~= home do
    local found = M.at(folder)
    if found or not ah._is_mine(folder) then
      return found
    end
    folder = folder:match "^(.*)/"
  end
end

return M
