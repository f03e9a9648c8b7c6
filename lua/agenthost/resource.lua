--- ah.resource: the definition of how a resource is made, how long it lives, and how it is closed.
-- Makes nothing; resources.lua does when a handler first asks for the resource.
local META = { __name = "agenthost.resource" }
local ah = ...

local read = ah._reader {
  what = "ah.resource", type = "ah.ResourceConfig", rows = {
    { name = "provide", kinds = "function", needed = true, type = "fun(ctx: ah.Ctx): any",
      doc = "`function(ctx)`: makes the resource. `ctx.resources` has the others; with `tool_call` "
        .. "and `prototype`, `ctx` is that of the handler" },
    { name = "scope", kinds = "string", words = "singleton tool_call prototype",
      default = "singleton",
      doc = "one for each run; one for each call; or a new one whenever it is asked for" },
    { name = "close", kinds = "function", type = "fun(value: any)",
      doc = "`function(value)`: closes the resource" },
  },
}

--- ah.resource { provide = function(ctx), scope = "singleton", close = function(value) }
return function(def)
  return setmetatable(read(def), META)
end
