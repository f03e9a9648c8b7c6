--- Files that processes of one user share: makes their folders, and locks them for changes.
local ah = ...

local kept_file = {}

local PATIENCE, PAUSE = 10, 0.02 -- seconds to wait for another process that writes

--- Makes the folders of a path that are missing, readable by the user only. Returns true; or nil,
-- the folder that cannot be made, and why.
---@param path string
function kept_file.make_folders(path)
  for at in path:gmatch "()/" do
    local folder = at == 1 and "/" or path:sub(1, at - 1)
    local ok, why = ah._make_folder(folder)
    if not ok then
      return nil, folder, why
    end
  end
  return true
end

--- Returns the lock of a file that this process is to change, for a variable with <close>; nil if
-- another process has it for too long. Waits. Raises an error if the lock cannot be made.
---@param path string
function kept_file.locked(path)
  local waited = 0
  local lock = ah._append_private(path .. ".lock", true)
  while not lock and waited < PATIENCE do
    ah.sleep(PAUSE)
    waited = waited + PAUSE
    lock = ah._append_private(path .. ".lock", true)
  end
  return lock
end

return kept_file
