--- Returns the open descriptors of this process, such as "0 1 2 5". Starts no shell, as that would
-- open one for a moment.
return function()
  local list = {}
  for fd = 0, 1023 do
    local f <close> = io.open("/proc/self/fdinfo/" .. fd)
    list[#list + 1] = f and tostring(fd)
  end
  return table.concat(list, " ")
end
