--- Returns a value marked <close> that counts its closes in `seen.closed`; f, if given, is called
-- with each.
return function(seen, f)
  return setmetatable({}, { __close = function()
    seen.closed = (seen.closed or 0) + 1
    if f then
      f()
    end
  end })
end
