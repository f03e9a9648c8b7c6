--- agenthost test: runs specs with busted, in a state of its own as a script has. So they have the
-- library of this command.
local ah, use = ...
local styled = use "styled"

local HOW = [[
Debian has it in the package lua-busted; with LuaRocks:
luarocks --lua-version=5.4 install busted]]

-- busted takes its words from the global `arg`. It ends the process with exit code 1 unless all
-- specs succeed, and returns otherwise.
local function run(flags, words)
  local found, runner = pcall(require, "busted.runner")
  if not found then
    return 1, ("busted, which runs specs, cannot be loaded: %s\n%s"):format(
      ah._harmless(tostring(runner):match "^[^\n]*"):gsub(":$", ""), HOW)
  end
  _G.arg = { [0] = "agenthost test", table.unpack(words) }
  runner { standalone = false, output = not styled.wanted(flags.color) and "plainTerminal" or nil }
end

return {
  name = "test",
  doc = "run specs with busted",
  usage = "[FILES] [-w] [-- OPTIONS]",
  help = [[
Runs specs, which are tests written in Lua, with busted in this process: they
have agenthost and agenthost.testing, and need no other Lua. FILES are specs or
folders of them (default: spec, or what .busted says). Options of busted follow
a file, or --, as in: agenthost test -- --filter=price -o TAP
-w runs them again, in a new process, when a Lua file below this folder changes.
]],
  exits = "0 all specs succeed, 1 faults or a failure, 2 wrong usage.",
  operand = { name = "spec", complete = "lua" },
  flags = { "watch", "env-file" },
  again = true,
  apart = true,
  prints = true,
  run = run,
}
