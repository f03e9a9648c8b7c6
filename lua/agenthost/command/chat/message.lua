--- The message of a line that was typed: its text, with the files and pages of words @FILE, @URL.
local _, _, _, later = ...
local parts = later "prompt.parts"

local M = {}

--- Returns the content. A word @NAME that is neither a file nor an address stays as it is; a text
-- that is to begin with a slash or an exclamation mark has two of them.
function M.content(line)
  return parts.of((line:gsub("^([/!])%1", "%1")))
end

return M
