-- An agent whose store fails while it runs: the handler `harm` harms the store. Run by the command,
-- from spec/crash/faults_spec.lua:
--
--   agenthost spec/crash/fault.lua FOLDER COMMAND
--
-- COMMAND is a shell's, which is carried out in FOLDER, where the store's file is store.db. A sink,
-- `effects`, has a line for each handler that began.
local ah = require "agenthost"
local folder, harm = ...

local function note(line)
  local f <close> = assert(io.open(folder .. "/effects", "a"))
  f:write(line, "\n")
end

local function tool(name, size)
  return ah.tool { name = name, description = "A tool.", handler = function()
    note(name)
    if name == "harm" then
      os.execute(("cd '%s' && %s"):format(folder, harm))
    end
    return ("x"):rep(size)
  end }
end

local turns = { resumes = true, { calls = { { name = "effect" } } },
  { calls = { { name = "harm" } } } }
for i = 3, 40 do
  turns[i] = { calls = { { name = "effect" } } }
end
turns[#turns + 1] = "Done."
local agent = assert(ah.agent { store = folder .. "/store.db", id = "f", loop_detector = false,
  tools = { tool("effect", 5000), tool("harm", 10) }, max_iterations = 100,
  model = ah.scripted(turns) })
assert(agent:run(not agent.unfinished and "Go." or nil))
