--- ah.resource: how something that tools use is made, how long it lives, and how it is closed.
-- Nothing is made here; resources.lua does that when a handler asks for it.
local SCOPES = { singleton = true, tool_call = true, prototype = true }
local KNOWN = { provide = "function", scope = "string", close = "function" }
local META = { __name = "agenthost.resource" }

--- ah.resource { provide = function(ctx), scope = "singleton", close = function(value) }
return function(def)
  if type(def) ~= "table" then
    error(("ah.resource: expected a table, found a %s"):format(type(def)), 2)
  end
  for key, value in pairs(def) do
    local kind = KNOWN[key]
    if not kind then
      error(("ah.resource: unknown field '%s'"):format(tostring(key)), 2)
    elseif type(value) ~= kind then
      error(("ah.resource: field '%s' must be a %s, found a %s"):format(key, kind, type(value)), 2)
    end
  end
  local scope = def.scope or "singleton"
  if not def.provide then
    error("ah.resource: field 'provide' is missing", 2)
  elseif not SCOPES[scope] then
    error(('ah.resource: scope must be "singleton", "tool_call" or "prototype", found "%s"'):format(
      scope), 2)
  end
  return setmetatable({ provide = def.provide, scope = scope, close = def.close }, META)
end
