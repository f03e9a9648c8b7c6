--- Installs a substitute for the `claude` command that plays a script (support/fake_claude.lua).
-- Returns the log of the lines that it gets. `command.tidy` removes it.
local ahtest = require "ahtest"
local command = require "support.command"

---@param script string Lua that gives the list of processes
return function(script)
  local file, log, wrapper = command.temp("return " .. script), command.temp(""), command.temp()
  local f <close> = assert(io.open(wrapper, "w"))
  f:write(("#!/bin/sh\necho $$ >%s.pid\nexec lua5.4 '%s' '%s' '%s' \"$@\"\n"):format(
    log, os.getenv "PWD" .. "/spec/support/fake_claude.lua", file, log))
  f:close()
  command.made[#command.made + 1] = log .. ".pid"
  os.execute("chmod +x " .. wrapper)
  ahtest.setenv("AGENTHOST_CLAUDE", wrapper)
  return log
end
