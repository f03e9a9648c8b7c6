-- The form of comments and pages that can be checked: lines have at most 100 columns, a comment
-- does not begin with a word that leaves its subject out, none asks a question, and words that
-- have to be decoded are not used. Run by `make lint` with the files as arguments.
local WIDTH = 100

-- A comment that begins with one of these has no subject.
local OPENINGS = {}
for word in ("What Who Whose Whom Where How Whether Those Which Is Are Does Do Has Can "
  .. "May"):gmatch "%a+" do
  OPENINGS[word] = true
end

-- Words that hide their subject, or stand for a plainer one; `code` and "quotations" are free.
local IN_PAGES = { "nobody", "somebody", "at hand", "goe?s? without", "went without", "comes? to",
  "came to", "by the letter" }
local IN_COMMENTS = { "who", "whom", "tells?", "told", "goodbye" }
table.move(IN_PAGES, 1, #IN_PAGES, #IN_COMMENTS + 1, IN_COMMENTS)

local faults = 0
local function fault(path, number, text)
  faults = faults + 1
  io.stderr:write(("%s:%d: %s\n"):format(path, number, text))
end

local function columns(line)
  return utf8.len(line) or #line
end

-- The first word of a comment that begins in this line, or nil.
local function opening(line, before, text, is_lua)
  if not is_lua then
    return line:match "/%*+%s+(%a+)"
  end
  local goes_on = line:find "^%s*%-%-" and before:find "^%s*%-%-" and not before:find "%-%-+%s*$"
  return not goes_on and text:match "^%s*(%a+)" or nil
end

-- The text of the comments of C or Lua, line by line; "" where a line has none.
local function comments(lines, is_lua)
  local texts, open = {}, false
  for i, line in ipairs(lines) do
    local text = ""
    if is_lua then
      text = line:find "^%-%-%-@" and "" or line:match "^%s*%-%-+%s?(.*)"
        or line:match "%s%-%-%s(.*)" or ""
    elseif open or line:find("/*", 1, true) then
      text = open and line or line:match "/%*(.*)"
      open = not (text:find("*/", 1, true))
      text = text:gsub("%*/.*", "")
    end
    texts[i] = text
  end
  return texts
end

local function plain(text)
  return (text:gsub("%b\"\"", ""):gsub("%b``", ""):gsub("%b''", ""))
end

local function check_words(path, number, text, banned)
  text = plain(text):lower()
  for _, word in ipairs(banned) do
    if text:find("%f[%w_]" .. word .. "%f[^%w_]") then
      fault(path, number, ("the word '%s'"):format(word))
    end
  end
end

local function check_code(path, lines)
  local is_lua = path:find "%.lua$" ~= nil
  local texts = comments(lines, is_lua)
  for i, line in ipairs(lines) do
    local word = opening(line, lines[i - 1] or "", texts[i], is_lua)
    if word and OPENINGS[word] then
      fault(path, i, ("a comment begins with '%s'"):format(word))
    end
    if (plain(texts[i]) .. " "):find "%a%)?%? " then
      fault(path, i, "a comment asks a question")
    end
    check_words(path, i, texts[i], IN_COMMENTS)
    if columns(line) > WIDTH then
      fault(path, i, ("%d columns"):format(columns(line)))
    end
  end
end

local CELL = 200 -- characters
local function check_cells(path, number, line)
  for cell in (line:match "^|(.*)|$" or ""):gsub("\\|", "  "):gmatch "[^|]+" do
    local length = columns(cell:match "^%s*(.-)%s*$")
    if length > CELL then
      fault(path, number, ("a cell of %d characters: at most %d"):format(length, CELL))
    end
  end
end

-- Tables, code and what is nothing but a link cannot be broken.
local function check_page(path, lines)
  local in_code = false
  for i, line in ipairs(lines) do
    in_code = in_code ~= (line:find "^```" ~= nil)
    if not in_code and columns(line) > WIDTH and not line:find "^|" and line:find "%S%s+%S" then
      fault(path, i, ("%d columns"):format(columns(line)))
    end
    if not in_code then
      check_words(path, i, line, IN_PAGES)
      check_cells(path, i, line)
    end
  end
end

for _, path in ipairs(arg) do
  local lines = {}
  for line in io.lines(path) do
    lines[#lines + 1] = line
  end
  if path:find "%.md$" then
    check_page(path, lines)
  else
    check_code(path, lines)
  end
end
os.exit(faults == 0)
