--- Returns the contents of all results of calls in a reply.
return function(reply)
  local list = {}
  for _, m in ipairs(reply.messages) do
    if m.role == "tool" then
      list[#list + 1] = m.content
    end
  end
  return list
end
