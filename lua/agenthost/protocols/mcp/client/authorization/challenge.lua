--- The header WWW-Authenticate of a refusal (RFC 9110, section 11.6.1): which scopes a request
-- needs, and where the metadata of the server are (RFC 6750, section 3; RFC 9728, section 5.1).
local challenge = {}

local MOST = 16 << 10 -- bytes of the header
local NAME = "^[%w!#%$%%&'%*%+%-%.%^_`|~]+"

--- Returns the value of a parameter at a place, and the place behind it; nil if there is none.
local function value_at(text, at)
  local quoted, rest = text:match('^"([^"\\]*)"()', at)
  if quoted then
    return quoted, rest
  elseif text:sub(at, at) ~= '"' then
    local plain = text:match(NAME, at)
    return plain, plain and at + #plain
  end
  local parts
  at, parts = at + 1, {}
  while at <= #text and text:sub(at, at) ~= '"' do
    if text:sub(at, at) == "\\" then
      at = at + 1
    end
    parts[#parts + 1] = text:sub(at, at)
    at = at + 1
  end
  return table.concat(parts), math.min(at, #text) + 1
end

--- Returns the parameters of the challenge `Bearer` by their names in lower case; an empty table if
-- the header has no such challenge. A header that is malformed is read as far as it is sound.
function challenge.read(text)
  local found, current, at = nil, nil, 1
  text = (text or ""):sub(1, MOST)
  while true do
    at = text:match("^[ \t,]*()", at)
    local name = text:match(NAME, at)
    if not name then
      return found or {}
    end
    at = at + #name
    local equals = text:match("^[ \t]*=[ \t]*()", at)
    if equals and current then
      local value
      value, at = value_at(text, equals)
      if not value then
        return found or {}
      end
      name = name:lower()
      current[name] = current[name] or value
    elseif name:lower() == "bearer" and not found then
      found = {}
      current = found
    else
      current = {} -- of another scheme, whose value may stand alone
      at = text:match("^[ \t]+[%w%-%._~%+/]+=*[ \t]*,()", at) or at
    end
  end
end

--- Returns the scopes in a text, each once, without those that are none (RFC 6749, section 3.3).
function challenge.scopes(text)
  local list, seen = {}, {}
  for scope in (type(text) == "string" and text or ""):sub(1, MOST):gmatch "[^ ]+" do
    if not seen[scope] and not scope:find '[%c%s"\\\127-\255]' then
      seen[scope], list[#list + 1] = true, scope
    end
  end
  return list
end

--- Returns the scopes of two lists as a sorted text; nil if there are none.
function challenge.union(a, b)
  local list = challenge.scopes(table.concat(a, " ") .. " " .. table.concat(b, " "))
  table.sort(list)
  return list[1] and table.concat(list, " ")
end

return challenge
