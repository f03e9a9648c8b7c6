--- Converts HTML to the text that a reader sees, for http_fetch: no tags, blocks on lines of their
-- own, links with their addresses, entities as characters. Reads the page once, without patterns
-- that backtrack, so that the time depends only on the length of the page. It is not an HTML
-- parser: it builds no tree, runs no script, and knows no styles, so that hidden text is included.
local M = {}

local BLOCK, RAW = {}, {}
for name in ([[address article aside blockquote br caption dd details dialog div dl dt fieldset
  figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section
  select summary table tbody td tfoot th thead title tr ul]]):gmatch "%w+" do
  BLOCK[name] = true
end
for name in ("script style noscript template svg iframe textarea"):gmatch "%w+" do
  RAW[name] = true -- its contents are not for readers
end

local ENTITY = {
  amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", nbsp = " ", copy = "\u{a9}",
  reg = "\u{ae}", ndash = "\u{2013}", mdash = "\u{2014}", lsquo = "\u{2018}",
  rsquo = "\u{2019}", ldquo = "\u{201c}", rdquo = "\u{201d}", bull = "\u{2022}",
  hellip = "\u{2026}", euro = "\u{20ac}", times = "\u{d7}", middot = "\u{b7}", rarr = "\u{2192}",
  larr = "\u{2190}", deg = "\u{b0}", auml = "\u{e4}", ouml = "\u{f6}", uuml = "\u{fc}",
  Auml = "\u{c4}", Ouml = "\u{d6}", Uuml = "\u{dc}", szlig = "\u{df}", eacute = "\u{e9}",
}

local function character(n)
  local valid = n and n > 0 and n < 0x110000 and (n < 0xd800 or n > 0xdfff)
  return valid and utf8.char(n) or "\u{fffd}"
end

local function entity(name)
  local hex, digits = name:match "^#[xX](%x+)$", name:match "^#(%d+)$"
  if hex or digits then
    return character(#name < 10 and tonumber(hex or digits, hex and 16 or 10))
  end
  return ENTITY[name]
end

local function unescape(text)
  return (text:gsub("&(#?%w+);", entity))
end

-- Returns the place behind the tag that begins at `at`, skipping quoted values; the page's end if
-- the tag has no end.
local function end_of_tag(page, at)
  local quote
  at = at + 1
  while true do
    local found, _, sign = page:find(quote or "([\"'>])", at, quote ~= nil)
    if not found then
      return #page + 1
    elseif quote then
      quote = nil
    elseif sign == ">" then
      return found + 1
    else
      quote = sign
    end
    at = found + 1
  end
end

-- Returns the place behind an element whose contents are not text.
local function end_of_raw(page, lower, name, at)
  local close = lower:find("</" .. name, at, true)
  return close and end_of_tag(page, close) or #page + 1
end

local function link_of(tag)
  local href = tag:match "[hH][rR][eE][fF]%s*=%s*\"([^\"]*)\""
    or tag:match "[hH][rR][eE][fF]%s*=%s*'([^']*)'"
  return href and #href < 500 and href:find "^%w" and unescape(href) or nil
end

local KEPT = "\0" -- begins a line of <pre>, whose first blank stays

local State = {}
State.__index = State

function State:text(text)
  local space = self.pre and text:gsub("\n", "\n" .. KEPT) or text:gsub("%s+", " ")
  self.out[#self.out + 1] = unescape(space)
end

function State:tag(name, closing, tag)
  if name == "pre" then
    self.pre = not closing
  end
  if name == "a" and not closing then
    self.href = link_of(tag)
  elseif name == "a" and self.href then
    self.out[#self.out + 1] = " (" .. self.href .. ")"
    self.href = nil
  elseif name == "li" and not closing then
    self.out[#self.out + 1] = "\n- "
  elseif name == "td" or name == "th" then
    self.out[#self.out + 1] = " "
  elseif name:find "^h%d$" and not closing then
    self.out[#self.out + 1] = "\n\n" .. ("#"):rep(math.tointeger(name:sub(2))) .. " "
  elseif BLOCK[name] then
    self.out[#self.out + 1] = self.pre and "\n" .. KEPT or "\n"
  end
end

-- Leaves at most one blank line in succession, and removes a blank at the beginning of each line
-- outside of <pre>.
local function tidy(text)
  local lines, blank = {}, true
  for line in (text .. "\n"):gmatch "([^\n]*)\n" do
    local kept
    line, kept = line:gsub("^" .. KEPT, "")
    line = not line:find "%S" and "" or kept > 0 and line or line:gsub("^ ", "")
    if line ~= "" or not blank then
      lines[#lines + 1] = line
    end
    blank = line == ""
  end
  return (table.concat(lines, "\n"):gsub("\n$", ""))
end

--- Returns the page (UTF-8) as text. Relative links stay relative.
function M.text(page)
  local state = setmetatable({ out = {} }, State)
  local lower, at = page:lower(), 1
  while at <= #page do
    local open = page:find("<[%a/!?]", at)
    state:text(page:sub(at, (open or #page + 1) - 1))
    if not open then
      break
    elseif page:sub(open, open + 3) == "<!--" then
      local _, close = page:find("-->", open + 4, true)
      at = (close or #page) + 1
    else
      at = end_of_tag(page, open)
      local slash, name = lower:match("^<(/?)(%w*)", open)
      if RAW[name] and slash == "" then
        at = end_of_raw(page, lower, name, at)
      else
        state:tag(name, slash == "/", page:sub(open, at - 1))
      end
    end
  end
  return tidy(table.concat(state.out))
end

return M
