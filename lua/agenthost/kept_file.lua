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

--- Returns the lock of a file that this process is to change, for a variable with <close>; or nil
-- and the reason. Waits for another process that has it.
---@param path string
---@param patience number? seconds; 10 by default
function kept_file.locked(path, patience)
  local till = ah._clock() + (patience or PATIENCE)
  while true do
    local ok, lock = pcall(ah._append_private, path .. ".lock", true)
    if not ok then
      return nil, lock.message or tostring(lock)
    elseif lock then
      return lock
    elseif ah._clock() >= till then
      return nil, ("cannot write '%s': another agenthost is at work there"):format(
        ah._harmless(path:sub(1, 300)))
    end
    ah.sleep(PAUSE)
  end
end

return kept_file
