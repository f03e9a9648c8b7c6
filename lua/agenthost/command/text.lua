--- Texts of anybody, for JSON and for people.
local ah = ...

local M = {}

--- Valid UTF-8: each byte that is none becomes U+FFFD.
function M.repaired(s)
  local parts, at = {}, 1
  local ok, bad = utf8.len(s)
  while not ok do
    parts[#parts + 1] = s:sub(at, bad - 1) .. "\u{FFFD}"
    at = bad + 1
    ok, bad = utf8.len(s, at)
  end
  return table.concat(parts) .. s:sub(at)
end

--- The first n bytes at most, never a part of a character.
function M.cut(s, n)
  while n > 0 and n < #s and s:byte(n + 1) & 0xc0 == 0x80 do
    n = n - 1
  end
  return s:sub(1, n)
end

--- For people: nothing that a terminal would obey, and [secret] for what an address holds between
-- "//" and "@", which is a password's place.
function M.clean(s)
  return ah._harmless((s:gsub("^(.-://)[^/]*@", "%1[secret]@", 1)))
end

return M
