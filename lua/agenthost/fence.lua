--- Puts a text from outside between marks that it cannot end.

--- Returns the text in a fence of Markdown that is longer than any in it.
---@param text string
---@return string
return function(text)
  local longest = 2
  for ticks in text:gmatch "`+" do
    longest = math.max(longest, #ticks)
  end
  local fence = ("`"):rep(longest + 1)
  return ("%s\n%s%s%s"):format(fence, text, text:find "\n$" and "" or "\n", fence)
end
