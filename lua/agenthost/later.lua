--- Puts off the loading of a module that not each use needs: compiling one takes up to a
-- millisecond.
local ah = ...

--- Returns a table that stands for that of a module, which is loaded at its first use.
---@param name string
---@return table
return function(name)
  return setmetatable({}, { __index = function(_, key)
    return ah._module(name)[key]
  end })
end
