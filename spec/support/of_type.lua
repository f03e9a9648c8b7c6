--- Returns the events of this type, in their order.
return function(events, type)
  local list = {}
  for _, e in ipairs(events) do
    list[#list + 1] = e.type == type and e or nil
  end
  return list
end
