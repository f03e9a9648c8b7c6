-- random(seed) returns a function(n), which returns numbers from 1 to n. The sequence is the same
-- on all machines.
return function(seed)
  local x = seed * 0x9E3779B97F4A7C15 | 1
  return function(n)
    x = x ~ (x << 13)
    x = x ~ (x >> 7)
    x = x ~ (x << 17)
    return (x >> 11) % n + 1
  end
end
