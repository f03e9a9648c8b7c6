--- Makes texts from outside safe to print, as JSON or for people.
local ah = ...

local M = {}

--- Returns valid UTF-8: each invalid byte becomes U+FFFD.
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

--- Returns at most the first n bytes, without cutting a character.
function M.cut(s, n)
  while n > 0 and n < #s and s:byte(n + 1) & 0xc0 == 0x80 do
    n = n - 1
  end
  return s:sub(1, n)
end

--- Returns the text without terminal controls, and with [secret] in place of the user and password
-- of an address, between "//" and "@".
function M.clean(s)
  return ah._harmless((s:gsub("^(.-://)[^/]*@", "%1[secret]@", 1)))
end

--- Returns a value as JSON in one line that a terminal prints as it is: controls of a terminal and
-- marks of direction are escapes in it.
function M.json(value)
  return (ah.json.encode(value):gsub("[\x7f\xc2\xd8\xe2\xef][\x80-\xbf]*", function(s)
    local code = utf8.len(s) == 1 and utf8.codepoint(s)
    if code and ah._harmless(s) ~= s then
      return ("\\u%04x"):format(code)
    end
  end))
end

return M
