--- --watch: says which file of a project has changed (src/cli/watch.c runs the line again).
--
-- These count: files that end in .lua, .busted, and agenthost.conf, below the folder of the script
-- or, for a command, below the current folder. Hidden files and folders do not.
local ah = ...

local M = {}

local watch

-- True for a name without a folder.
local function counts(name)
  return name:find "^[^.].*%.lua$" ~= nil or name == ".busted" or name == "agenthost.conf"
end

-- Returns a path below the folder as it is shown; nil if it does not count.
local function shown(folder, path)
  local below = path and path:sub(1, #folder + 1) == folder .. "/" and path:sub(#folder + 2)
  if below and not below:find "^%.[^/]*/" and not below:find "/%.[^/]*/"
    and counts(below:match "[^/]*$") then
    return folder == "." and below or path
  end
end

--- Begins to watch. Returns "", or why that is not possible.
---@param folder string
function M.open(folder)
  local found, err = ah.watch(folder, nil, { recursive = true })
  watch = found and { object = found, folder = folder }
  return found and "" or ("--watch: %s"):format(err.message)
end

--- Returns a file that has changed since the last call; "": there is none.
function M.changed()
  local found = ""
  for _, change in ipairs(watch.object:next(0) or {}) do
    local path = shown(watch.folder, change.path) or shown(watch.folder, change.from)
    if found == "" then
      found = path or change.kind == "overflow" and watch.folder or ""
    end
  end
  return found
end

return M
