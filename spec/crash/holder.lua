-- An agent whose handler waits for a file, so that its process can be stopped meanwhile. Run by the
-- command, from spec/crash/holders_spec.lua:
--
--   FOLDER=... NAME=... agenthost spec/crash/holder.lua
--
-- A sink, `effects`, has a line with NAME for each handler that began; `pid` is that of the first.
local ah = require "agenthost"
local folder, name = os.getenv "FOLDER", os.getenv "NAME"

local function write(file, line)
  local f <close> = assert(io.open(folder .. "/" .. file, "a"))
  f:write(line, "\n")
end

if name == "one" then
  local f <close> = assert(io.open "/proc/self/stat")
  write("pid", f:read "n")
end

local function exists(file)
  local f = io.open(folder .. "/" .. file)
  return f and f:close()
end

local first = ah.tool { name = "first", description = "A tool.", on_lost = "retry",
  handler = function()
    write("effects", name .. " first")
    while name == "one" and not exists "go" do
      ah.sleep(0.01)
    end
    return "first"
  end }
local second = ah.tool { name = "second", description = "A tool.",
  handler = function()
    write("effects", name .. " second")
    return "second"
  end }
local agent = assert(ah.agent { store = folder .. "/store.db", id = "h", tools = { first, second },
  model = ah.scripted { resumes = true, { calls = { { name = "first" }, { name = "second" } } },
    "The end of " .. name .. "." } })
print(assert(agent:run(not agent.unfinished and "Go." or nil)))
