--- Reads the instructions that a project has for models: the files AGENTS.md from the top of the
-- repository down to a folder, outermost first.
--
-- The top is the nearest folder above that has .git. The search for it ends as that for a project's
-- settings (settings/file.lua): before HOME, and at a folder of another user. Without .git only the
-- folder itself is looked at. A file of another user, or in another user's folder, is left out, and
-- so is a link that leads out of the repository.
local ah, use = ...
local pairs_of, parts, text = use "pairs", use "prompt.parts", use "text"

local M = { NAME = "AGENTS.md" }

M.MOST = 32 << 10 -- bytes of a file that are kept
M.MOST_ALL = 64 << 10 -- bytes of all files together; those near the folder are kept first

local OPENING = [[
# Instructions of the project

The project has the following instructions for you, in files named AGENTS.md. Paths begin at the
working folder. A file holds for its folder and all below it. Where two files differ, the one that
comes later holds; where a file and the user differ, the user.]]

-- -- where ---------------------------------------------------------------------------------------

local function inside(folder, name)
  return (folder == "/" and "" or folder) .. "/" .. name
end

local function parent(folder)
  local above = folder:match "^(.*)/"
  return above ~= "" and above or "/"
end

-- Returns the folders to look at, innermost first.
local function folders_of(folder)
  local list, home = {}, ah._real_path(os.getenv "HOME" or "")
  local at = folder
  while at ~= "/" and at ~= home and ah._is_mine(at) do
    list[#list + 1] = at
    if ah._real_path(inside(at, ".git")) then
      return list
    end
    at = parent(at)
  end
  return { folder }
end

-- -- reading -------------------------------------------------------------------------------------

-- Returns the content of a folder's file; nil and the reason if it is left out; nothing if there is
-- none.
local function content_of(folder, top)
  local path = inside(folder, M.NAME)
  local real = ah._real_path(path)
  if real and real ~= path and real:sub(1, #inside(top, "")) ~= inside(top, "") then
    return nil, "it is a link that leads out of the project"
  end
  local content, more, missing = pairs_of.read(real or path, "file")
  if not content then
    return nil, not missing and more or nil
  elseif not (more and ah._is_mine(folder)) then
    return nil, "it, or its folder, belongs to another user"
  end
  return content
end

-- Returns the record of a content, of which at most `room` bytes are kept.
local function record_of(path, name, content, room)
  local whole = ah._repair(content)
  local kept = text.cut(whole, math.min(room, M.MOST))
  return { path = path, name = name, text = kept, bytes = #whole, cut = #kept < #whole }
end

--- Returns the files for a folder, outermost first: { path, name, text, bytes, cut } each. `name`
-- is the path from the folder, such as "../AGENTS.md", `text` is UTF-8, `bytes` the size of the
-- whole, and `cut` is true if `text` is not the whole. Returns also those that are left out:
-- { path, why } each.
---@param folder? string default: the working folder
---@return table, table
function M.read(folder)
  local list, left, room = {}, {}, M.MOST_ALL
  local folders = folders_of(assert(ah._real_path(folder or ".")))
  for i, at in ipairs(folders) do
    local path = inside(at, M.NAME)
    local content, why = content_of(at, folders[#folders])
    if content and content:find "%S" and room == 0 then
      content, why = nil, "files nearer to the folder have all the room"
    end
    if content and content:find "%S" then
      local record = record_of(path, ("../"):rep(i - 1) .. M.NAME, content, room)
      room = room - #record.text
      table.insert(list, 1, record)
    elseif why then
      table.insert(left, 1, { path = path, why = why })
    end
  end
  return list, left
end

-- -- for a prompt --------------------------------------------------------------------------------

--- Returns the files as one section of a prompt; nil if there are none.
---@param list table what `read` has returned
---@return string?
function M.section(list)
  local said = { list[1] and OPENING }
  for _, file in ipairs(list) do
    local note = file.cut and ("\n[%d of %d bytes are left out]"):format(
      file.bytes - #file.text, file.bytes) or ""
    said[#said + 1] = parts.fenced(file.name, file.text .. note)
  end
  return list[1] and table.concat(said, "\n\n")
end

return M
