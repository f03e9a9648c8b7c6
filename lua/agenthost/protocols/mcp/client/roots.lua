--- Roots: the folders that a program shows to a server of MCP, where that is switched on
-- (specification 2026-07-28, client/roots). A server should work there; it is not kept from others.
local ah = ...

local MOST_ROOTS = 100

local roots = {}

--- Returns what is wrong with the field `roots`, or nil.
function roots.fault(list)
  for i, path in ipairs(list) do
    if type(path) ~= "string" or path == "" or path:find "%z" or i > MOST_ROOTS then
      return ("must be at most %d paths"):format(MOST_ROOTS)
    end
  end
end

local function uri_of(path)
  return "file://" .. path:gsub("[^%w/._~-]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end)
end

--- Returns the result of `roots/list`: what of the paths is there now, without links.
function roots.list(server)
  local found = ah.array {}
  for _, path in ipairs(server.config.roots) do
    local real, why = ah._real_path(path)
    if real then
      found[#found + 1] = { uri = uri_of(real), name = real:match "[^/]+$" or real }
    else
      ah.log("warning", ("MCP server '%s': the root '%s' is not shown to it: %s"):format(
        server.name, path, why))
    end
  end
  return { roots = found }
end

return roots
