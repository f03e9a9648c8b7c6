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

-- Returns a character as JSON's escape, of two halves above U+FFFF.
local function escape(code)
  if code >= 0x10000 then
    return ("\\u%04x\\u%04x"):format(0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff))
  end
  return ("\\u%04x"):format(code)
end

--- Returns a value as JSON in one line that a terminal prints as it is: controls of a terminal,
-- marks of direction and characters that cannot be seen are escapes in it.
function M.json(value)
  return (ah.json.encode(value):gsub("[\x7f\xc2\xd8\xe1\xe2\xef\xf3][\x80-\xbf]*", function(s)
    local code = utf8.len(s) == 1 and utf8.codepoint(s)
    return code and ah._harmless(s) ~= s and escape(code) or nil
  end))
end

return M
