--- Makes bytes to try encodings and hashes with: n of them, which differ from those of other
-- lengths, 0 and 255 among them.
return function(n)
  local list = {}
  for i = 1, n do
    list[i] = string.char((i * 151 + n * 37) % 256)
  end
  return table.concat(list)
end
