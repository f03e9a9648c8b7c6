-- Returns the latest definition of a tool in a request to an adapter, or nil.
local ah = require "agenthost"

return function(request, name)
  local spec
  local function look(list)
    for _, t in ipairs(list) do
      spec = t.name == name and t or spec
    end
  end
  look(request.tools)
  for _, e in ipairs(request.entries) do
    local noted = e.type == "note" and e.text:match "through call_tool.-(%b[])"
    look(e.type == "tools_added" and e.tools or noted and ah.json.decode(noted) or {})
  end
  return spec
end
