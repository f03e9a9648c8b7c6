-- The specs of steps once more, with every handler abandoned and entered again after each step that
-- was recorded.
require "agenthost"
require("ahtest").reenter(true)
assert(loadfile("spec/lua/steps_spec.lua", "t", _ENV))()
