--- Text that comes piece by piece, for the lines above the live area of a terminal. Whole lines are
-- ready to be written; an unfinished one is kept, and shown as a part of the live area, which is
-- drawn again after every resize. So a terminal that wraps its lines anew loses nothing of it. A
-- line that is very long is written in parts.
--
--   local s = streamed.new(f)       -- f(string): what is shown of each string
--   s:add(text, most) -> list of texts to be written; most: bytes of an unfinished line
--   s:line()  -> the unfinished line, a text; nil: there is none
--   s:take()  -> the same, and forgets it
local _, use = ...
local cut = use "text".cut

local AT_ONCE = 256 << 10 -- bytes of a text; the terminal may need four times as many
local NO_STYLE = {}

local Streamed = {}
Streamed.__index = Streamed

-- Returns the style of a text within another style.
local function style_of(shown, outer)
  local style = {}
  for _, one in ipairs { outer, shown } do
    for key, value in pairs(one) do
      if not math.type(key) then
        style[key] = value
      end
    end
  end
  return style
end

-- Calls f(string, style) for the strings of a text, in parts of at most AT_ONCE bytes.
local function each_string(shown, style, f)
  if type(shown) == "table" then
    style = style_of(shown, style)
    for _, one in ipairs(shown) do
      each_string(one, style, f)
    end
    return
  end
  local s, at = tostring(shown), 1
  while at <= #s do
    local part = s:sub(at, at + AT_ONCE)
    part = part:sub(1, math.max(1, #cut(part, AT_ONCE)))
    f(part, style)
    at = at + #part
  end
end

-- Adds a string to the unfinished line. Strings in a row without a style are one.
local function append(s, text, style)
  local last = s.pieces[#s.pieces]
  s.bytes = s.bytes + #text
  if text == "" then
    return
  elseif last and not next(style) and not next(last, 1) then
    last[1] = last[1] .. text
  else
    local piece = style_of(style, NO_STYLE)
    piece[1] = text
    s.pieces[#s.pieces + 1] = piece
  end
end

function Streamed:add(text, most)
  local ready = {}
  each_string(text, NO_STYLE, function(part, style)
    local whole = part:match "^.*\n" or ""
    append(self, self.f(whole), style)
    if whole ~= "" then
      ready[#ready + 1] = self:take()
    end
    append(self, self.f(part:sub(#whole + 1)), style)
    if self.bytes > most then
      ready[#ready + 1] = self:take()
    end
  end)
  return ready
end

function Streamed:line()
  return self.pieces[1] and self.pieces
end

function Streamed:take()
  local line = self:line()
  self.pieces, self.bytes = {}, 0
  return line
end

local M = {}

function M.new(f)
  return setmetatable({ f = f, pieces = {}, bytes = 0 }, Streamed)
end

return M
