--- Templates of addresses: RFC 6570, level 1, such as `notes://{year}/{name}`. An address is
-- matched in one pass from left to right, so that no address takes long: each variable ends where
-- the text behind it begins for the first time; the text at the end counts from the end.
local M = {}

local MOST_TEMPLATE = 2048 -- bytes
local MOST_VARIABLES = 16
local PLAIN = "^[%w%-%._~]+$" -- what stands in a value as it is, when its escapes are taken out

-- Returns the texts around the variables, and the names of these; nil and the reason.
local function pieces_of(text)
  local texts, names, at = {}, {}, 1
  while true do
    local from, to, name = text:find("{([^{}]*)}", at)
    texts[#texts + 1] = text:sub(at, (from or 0) - 1)
    if not from then
      return texts, names
    elseif not name:find "^[%a_][%w_]*$" or #name > 64 then
      return nil, ("'{%s}' is no variable: only {name} is understood"):format(name)
    elseif names[name] then
      return nil, ("{%s} is there twice"):format(name)
    end
    names[#names + 1], names[name] = name, true
    at = to + 1
  end
end

--- Returns a template, `{ texts, names }`; nil and the reason.
function M.new(text)
  if #text > MOST_TEMPLATE then
    return nil, ("a template has at most %d bytes"):format(MOST_TEMPLATE)
  end
  local texts, names = pieces_of(text)
  if not texts then
    return nil, names
  elseif not names[1] or #names > MOST_VARIABLES then
    return nil, ("it needs 1 to %d variables such as {id}, found %d"):format(MOST_VARIABLES, #names)
  end
  for i, piece in ipairs(texts) do
    if piece:find "[{}]" then
      return nil, "it has a brace that belongs to no variable"
    elseif piece == "" and i > 1 and i < #texts then
      return nil, "there must be a text between two variables"
    end
  end
  return { texts = texts, names = names }
end

-- Returns the value that an address has for a variable; nil for what cannot be one.
local function value_of(text)
  local rest = text:gsub("%%%x%x", "-")
  if not rest:find(PLAIN) then
    return nil
  end
  local value = text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end)
  return utf8.len(value) and not value:find "%z" and value or nil
end

-- Returns where the text behind a variable begins, which begins at `from` at the earliest.
local function end_of(template, uri, i, from)
  local behind = template.texts[i + 1]
  if i == #template.names then
    local at = #uri - #behind + 1
    return at >= from and uri:sub(at) == behind and at or nil
  end
  return uri:find(behind, from, true)
end

--- Returns the variables of an address by their names; nil if the template does not match.
function M.match(template, uri)
  local first = template.texts[1]
  if uri:sub(1, #first) ~= first then
    return nil
  end
  local values, at = {}, #first + 1
  for i, name in ipairs(template.names) do
    local stop = end_of(template, uri, i, at + 1)
    values[name] = stop and value_of(uri:sub(at, stop - 1))
    if not values[name] then
      return nil
    end
    at = stop + #template.texts[i + 1]
  end
  return values
end

return M
