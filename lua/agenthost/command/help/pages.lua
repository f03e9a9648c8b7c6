--- Reads the reference: pages (docs/reference, docs/terms.md, docs/concepts.md), their parts, and
-- the rows of their tables.
--
-- A page is { name = "run", parts }, a part is { title = "ah.run", level = 2, lines }. The lines of
-- a part end at the next title of any level.
local _, _, texts = ...

local M = {}

local TO_BEGIN = { concepts = true, terms = true } -- pages that are not in reference/

--- Returns a title or a cell without its backquotes, stars, links and escapes.
function M.bare(text)
  return (text:gsub("%[(.-)%]%(.-%)", "%1"):gsub("%*%*", ""):gsub("\\|", "|"):gsub("`", ""))
end

local function trimmed(text)
  return text:match "^%s*(.-)%s*$"
end

local function read(name, text)
  local page, fenced = { name = name, parts = {} }, false
  for line in text:gmatch "([^\n]*)\n" do
    local marks, title = line:match "^(#+) +(.+)$"
    fenced = fenced ~= (line:find "^```" ~= nil)
    if marks and not fenced then
      page.parts[#page.parts + 1] = { title = M.bare(title), level = #marks, lines = {} }
    elseif not line:find "^<!%-%-" then
      table.insert(page.parts[#page.parts].lines, line)
    end
  end
  return page
end

-- Returns the longest part of a word that pages have as it is, in lower case: marks such as
-- backquotes can be between such parts.
local function part_of(word)
  local longest = ""
  for part in word:lower():gmatch "[%w_]+" do
    longest = #part > #longest and part or longest
  end
  return longest
end

local function name_of(name)
  return name:match "^reference%.([%w_]+)$" or TO_BEGIN[name] and name
end

--- Returns the page of this name; nil if there is none.
function M.named(name)
  local text = TO_BEGIN[name] and texts[name] or texts["reference." .. name]
  return text and read(name, text)
end

--- Returns the pages in the order of their names: all, or those that can have the word.
---@param word string?
function M.all(word)
  local pages, part = {}, part_of(word or "")
  for name, text in pairs(texts) do
    local own = name_of(name)
    if own and text:lower():find(part, 1, true) then
      pages[#pages + 1] = read(own, text)
    end
  end
  table.sort(pages, function(a, b) return a.name < b.name end)
  return pages
end

--- Returns the cells of a line of a table; nil for any other line.
function M.cells(line)
  local inner = line:match "^|(.*)|%s*$"
  if not inner then
    return nil
  end
  local cells = {}
  for cell in (inner:gsub("\\|", "\0") .. "|"):gmatch "([^|]*)|" do
    cells[#cells + 1] = trimmed((cell:gsub("%z", "\\|")))
  end
  return cells
end

--- Returns true if all cells are dashes: the line between a table's head and its rows.
function M.is_rule(cells)
  for _, cell in ipairs(cells) do
    if not cell:find "^:?%-+:?$" then
      return false
    end
  end
  return true
end

-- Calls f(name) for each name of a row: those in the first cell, such as "`root`" or
-- "[`ah.load`](...), `ah.save`", and the method that begins a cell: "`agent:run(text)`: ...".
local function each_name_of(cells, f)
  for name in (M.bare(cells[1]) .. ","):gmatch "%s*(.-)%s*," do
    f(name)
  end
  for i = 2, #cells do
    local method = M.bare(cells[i]):match "^([%w_]+:[%w_]+)%("
    if method then
      f(method)
    end
  end
end

local function has_name(cells, word)
  local found = false
  each_name_of(cells, function(name)
    found = found or name:lower() == word
  end)
  return found
end

-- Calls f(cells, head) for each row of tables that has the text, in lower case; nil: for each row.
local function each_row(part, text, f)
  local head
  for _, line in ipairs(part.lines) do
    local passed = head and text and line:find "^|" and not line:lower():find(text, 1, true)
    local cells = not passed and M.cells(line)
    if head and cells and not M.is_rule(cells) then
      f(cells, head)
    end
    head = passed and head or cells and (head or cells) or nil
  end
end

--- Returns the text about each page in the index of all pages (docs/README.md), by name.
function M.summaries()
  local about = {}
  for _, part in ipairs(read("index", texts.README).parts) do
    each_row(part, nil, function(cells)
      for name in cells[1]:gmatch "%(([%w_/]+)%.md%)" do
        name = name:gsub("^reference/", "")
        about[name] = about[name] or M.bare(cells[2] or "")
      end
    end)
  end
  return about
end

--- Calls f(page, part, cells, head) for each row that names the word, in lower case.
function M.each_row(pages, word, f)
  local text = part_of(word)
  for _, page in ipairs(pages) do
    for _, part in ipairs(page.parts) do
      each_row(part, text, function(cells, head)
        if has_name(cells, word) then
          f(page, part, cells, head)
        end
      end)
    end
  end
end

--- Calls f(name) for each name that each_row finds.
function M.each_name(pages, f)
  for _, page in ipairs(pages) do
    for _, part in ipairs(page.parts) do
      each_row(part, nil, function(cells)
        each_name_of(cells, f)
      end)
    end
  end
end

return M
