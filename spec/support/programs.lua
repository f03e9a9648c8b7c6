--- Loads the command's programs (lua/agenthost/command) from their files in the process of a spec.
--
--   local mock = require "support.programs" "mock"     -- the result of its chunk
local FOLDER = "lua/agenthost/command/"

local words = {}
local list <close> = assert(io.popen("find " .. FOLDER .. " -name '*.lua'"))
for path in list:lines() do
  local f <close> = assert(io.open(path))
  words[#words + 1] = path:sub(#FOLDER + 1):gsub("%.lua$", ""):gsub("/", ".")
  words[#words + 1] = f:read "a"
end

assert(loadfile(FOLDER .. "start.lua"))(table.unpack(words))

return require("agenthost.command").use
