--- Returns the name that is nearest to a word, for "did you mean".
local ah = ...

---@param word string
---@param names string a line each
---@return string # "" where none is near
return function(word, names)
  local list = {}
  for name in names:gmatch "[^\n]+" do
    list[#list + 1] = name
  end
  return ah.nearest(word, list) or ""
end
