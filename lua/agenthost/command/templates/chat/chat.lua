-- A chat with the agent of agent.lua, on a terminal or from a pipe: agenthost chat.lua
local ah = require "agenthost"

ah.interactive() -- Ctrl-C cancels an answer, and at an empty line ends the chat

local folder = arg[0]:match "^.*/" or ""
local agent = dofile(folder .. "agent.lua")

local function next_line()
  io.write "\n> "
  io.flush()
  return io.read "l"
end

for line in next_line do
  local reply, err = agent:run(line)
  print(reply or err)
end
print()
