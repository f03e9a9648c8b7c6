--- Returns n bytes to test encodings and hashes with. They differ for each n, and include 0 and
-- 255.
return function(n)
  local list = {}
  for i = 1, n do
    list[i] = string.char((i * 151 + n * 37) % 256)
  end
  return table.concat(list)
end
