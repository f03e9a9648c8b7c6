-- The specs of steps once more, with every handler abandoned and entered again after each step that
-- was recorded.
require "agenthost"
require("ahtest").reenter(true)
for _, name in ipairs { "steps", "steps_files" } do
  assert(loadfile(("spec/lua/%s_spec.lua"):format(name), "t", _ENV))()
end
