--- Calls f with 1, then with 8, then with 40, until it raises no error. For specs whose subject is
-- a time or an order of times, which a busy machine may miss: f multiplies its times by the number.
-- A fault fails the spec each time.
return function(f)
  for _, times in ipairs { 1, 8 } do
    if pcall(f, times) then
      return
    end
  end
  f(40)
end
