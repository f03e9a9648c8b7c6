--- ah.resource: how something that tools use is made, how long it lives, and how it is closed.
-- Nothing is made here; resources.lua does that when a handler asks for it.
local SCOPES = { singleton = true, tool_call = true, prototype = true }
local KNOWN = { provide = "function", scope = "string", close = "function" }
local FIELDS = { "provide", "scope", "close" }
local META = { __name = "agenthost.resource" }
local ah = ...

--- ah.resource { provide = function(ctx), scope = "singleton", close = function(value) }
return function(def)
  ah._check_fields(def, "ah.resource", FIELDS)
  for key, value in pairs(def) do
    local kind = KNOWN[key]
    if type(value) ~= kind then
      ah._raise(("ah.resource: field '%s' must be a %s, found a %s"):format(key, kind, type(value)))
    end
  end
  local scope = def.scope or "singleton"
  if not def.provide then
    ah._raise "ah.resource: field 'provide' is missing"
  elseif not SCOPES[scope] then
    ah._raise(('ah.resource: scope must be "singleton", "tool_call" or "prototype", found "%s"')
      :format(scope))
  end
  return setmetatable({ provide = def.provide, scope = scope, close = def.close }, META)
end
