-- The model's answers to agents that use mcp_shop.lua: a call of a tool, one that returns an
-- entity, one of the entity's method, and an answer that shows that all results came.

-- Returns the tool whose name has the word; agents put the server's name before it.
local function tool_of(request, word)
  for _, tool in ipairs(request.tools) do
    if tool.name:find(word, 1, true) then
      return tool
    end
  end
end

local function results_of(request)
  local results = ""
  for _, entry in ipairs(request.entries) do
    if entry.type == "tool_result" then
      results = results .. tostring(entry.content)
    end
  end
  return results
end

local function names_of(request)
  local names = {}
  for i, tool in ipairs(request.tools) do
    names[i] = tool.name
  end
  return table.concat(names, " ")
end

local function call(request, word, arguments)
  local tool = tool_of(request, word)
  if not tool then
    return ("There is no tool %s among: %s"):format(word, names_of(request))
  end
  local known = (tool.parameters or {}).properties or {}
  for name in pairs(arguments) do
    arguments[name] = known[name] and arguments[name]
  end
  return { calls = { { name = tool.name, arguments = arguments } } }
end

-- Returns a call of the entity's method. Where the client has not read the changed list yet, the
-- price is asked once more.
local function call_method(request, results)
  local asked = select(2, results:gsub("42 euros", ""))
  if not tool_of(request, "discount") and asked < 4 then
    return call(request, "price", { tea = "mint" })
  end
  return call(request, "discount", { id = "c-7" })
end

return function(request)
  local results = results_of(request)
  if not tool_of(request, "price") then
    return "Fine. " .. names_of(request)
  elseif not results:find("42 euros", 1, true) then
    return call(request, "price", { tea = "mint" })
  elseif not results:find("Ada", 1, true) then
    return call(request, "open_customer", { id = "c-7" })
  elseif not results:find("7 percent for Ada c-7", 1, true) then
    return call_method(request, results)
  end
  return "All three results came."
end
