-- Writes the rows of options (ah._options) between the markers of the type annotations and of the
-- pages in docs/. With --check it writes nothing, and fails if something would change. Run by `make
-- generate`.
--   annotations:  -- fields of ah.Class (make generate)   ...   -- end of ah.Class
--   pages:        <!-- fields of ah.Class (make generate) -->   ...   <!-- end -->
local ah = require "agenthost"

local TYPES = "lua/agenthost/types/agenthost.lua"
local WIDTH, LONGEST_CELL = 100, 200
local SOME_TIME = 0.001 -- least value of times that may not be 0
local NO_LIMIT = { [1e15] = true, [2 ^ 40] = true, [2147483647] = true }

local subjects = {} -- by type

local function words_of(row)
  local words = {}
  for word in (row.words or ""):gmatch "%S+" do
    words[#words + 1] = ('"%s"'):format(word)
  end
  return words
end

-- Returns "a, b or c" for { "a", "b", "c" }.
local function either(list)
  local last = list[#list]
  return #list < 2 and last or table.concat(list, ", ", 1, #list - 1) .. " or " .. last
end

local ANNOTATED = { list = "any[]", ["function"] = "function", object = "any", any = "any" }

local function type_of(row)
  if row.type then
    return row.type
  end
  local types = {}
  for _, kind in ipairs(row.kinds) do
    local words = kind == "string" and row.words and table.concat(words_of(row), "|")
    types[#types + 1] = words or ANNOTATED[kind] or kind
  end
  return table.concat(types, "|")
end

local function range_of(row)
  local least, most = row.least, not NO_LIMIT[row.most or 1e15] and row.most
  if not least or least == SOME_TIME then
    return ""
  elseif most then
    return (", %.14g to %.14g"):format(least, most)
  end
  return (", %.14g or more"):format(least)
end

-- Returns the type of a row's value in the form of the pages.
local function said(row)
  if row.is then
    return row.is
  end
  local kinds = {}
  for _, kind in ipairs(row.kinds) do
    if kind == "string" and row.words then
      for _, word in ipairs(words_of(row)) do
        kinds[#kinds + 1] = "`" .. word .. "`"
      end
    else
      kinds[#kinds + 1] = kind == "integer" and row.unit and "whole number" or kind
    end
  end
  local unit = row.unit and " of " .. row.unit or ""
  return either(kinds) .. unit .. range_of(row)
end

-- -- annotations ---------------------------------------------------------------------------

local function plain(markdown)
  return (markdown:gsub("%[(.-)%]%(.-%)", "%1"))
end

-- Appends the text as lines of comments.
local function put_wrapped(lines, text)
  local line = "---"
  for word in text:gmatch "%S+" do
    if #line + #word > WIDTH - 1 then
      lines[#lines + 1], line = line, "---"
    end
    line = line == "---" and line .. word or line .. " " .. word
  end
  lines[#lines + 1] = line
end

local function put_field(lines, row)
  local field = ("---@field %s%s %s"):format(row.name, row.needed and "" or "?", type_of(row))
  local parts = { row.unit, row.doc and plain(row.doc) }
  local doc = table.concat({ parts[1] or parts[2], parts[1] and parts[2] }, ": ")
  if #field + 1 + #doc > WIDTH then
    put_wrapped(lines, doc)
    doc = ""
  end
  lines[#lines + 1] = (field .. " " .. doc):gsub(" $", "")
end

local function annotations(subject)
  local name = subject.type .. (subject.base and ": " .. subject.base or "")
  local class = ("---@class %s %s"):format(name, plain(subject.doc or ""))
  local lines = { (class:gsub(" $", "")) }
  for _, row in ipairs(subject.rows) do
    put_field(lines, row)
  end
  if subject.list then
    lines[#lines + 1] = "---@field [integer] " .. subject.list
  end
  return table.concat(lines, "\n") .. "\n"
end

-- -- pages -----------------------------------------------------------------------------------

-- Returns the text of a cell; links to its own page lose the name of the page.
local function cell(text, subject, row, page)
  text = text:gsub("|", "\\|"):gsub("%]%(" .. page:gsub("%p", "%%%0") .. "#", "](#")
  assert(#text <= LONGEST_CELL, ("%s: the text of '%s' has %d bytes, %d are the most"):format(
    subject.what, row.name, #text, LONGEST_CELL))
  return text
end

-- Returns the rows of a subject: its own, then those of its base.
local function all_rows(subject)
  local rows = table.move(subject.rows, 1, #subject.rows, 1, {})
  local base = subjects[subject.base]
  return base and table.move(all_rows(base), 1, #base.rows, #rows + 1, rows) or rows
end

local function page_table(subject, path)
  local page = path:match "[^/]+$"
  local defaults = false
  for _, row in ipairs(all_rows(subject)) do
    defaults = defaults or row.otherwise ~= nil or row.needed
  end
  local lines = defaults and { "| field | is | default | |", "|---|---|---|---|" }
    or { "| field | is | |", "|---|---|---|" }
  for _, row in ipairs(all_rows(subject)) do
    local cells = { "`" .. row.name .. "`", said(row) }
    if defaults then
      cells[3] = row.otherwise or row.needed and "must be given" or "none"
    end
    cells[#cells + 1] = row.doc or ""
    for i, text in ipairs(cells) do
      cells[i] = cell(text, subject, row, page)
    end
    lines[#lines + 1] = ("| " .. table.concat(cells, " | ") .. " |"):gsub("|  |$", "| |")
  end
  return "\n" .. table.concat(lines, "\n") .. "\n\n"
end

-- -- files -----------------------------------------------------------------------------------

local function read(path)
  local f <close> = assert(io.open(path))
  return f:read "a"
end

local function write(path, text)
  local f <close> = assert(io.open(path, "w"))
  assert(f:write(text))
end

local placed = {}
for _, subject in ipairs(ah._options()) do
  assert(not subjects[subject.type], "two subjects of the type " .. subject.type)
  subjects[subject.type] = subject
end

-- Replaces the text between the markers with the result of `make` for the subject.
local function fill(text, open, close, make, path)
  return (text:gsub("(" .. open .. "\n)(.-)(" .. close .. ")", function(before, _, after)
    local name = before:match "fields of (%S+)"
    local subject = assert(subjects[name], path .. ": there are no fields of " .. name)
    placed[path == TYPES and name or name .. " in pages"] = true
    return before .. make(subject, path) .. after
  end))
end

local changes = {}
local function renew(path, open, close, make)
  local old = read(path)
  local new = fill(old, open, close, make, path)
  if new ~= old then
    changes[#changes + 1] = { path = path, text = new }
  end
end

renew(TYPES, "%-%- fields of %S+ %(make generate%)", "%-%- end of ", annotations)
do
  local pages <close> = assert(io.popen "ls docs/*/*.md")
  for path in pages:lines() do
    renew(path, "<!%-%- fields of %S+ %(make generate%) %-%->", "<!%-%- end %-%->", page_table)
  end
end
for name in pairs(subjects) do
  assert(placed[name], TYPES .. " has no place for the fields of " .. name)
end

local check, failed = arg[1] == "--check", false
for _, change in ipairs(changes) do
  if check then
    io.stderr:write(change.path .. " is not as the options say: make generate\n")
    failed = true
  else
    write(change.path, change.text)
  end
end
os.exit(not failed)
