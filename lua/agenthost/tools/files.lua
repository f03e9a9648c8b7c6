--- Functions that the built-in tools (lua/agenthost/tools) share: the filesystem of a call, and how
-- numbers and lines are shown to a model. Holds no tool and keeps no state.
local M = {}

--- Returns the filesystem of the call; nil and the reason if none is bound.
function M.filesystem(ctx)
  local fs = ctx.filesystem
  return fs, not fs and "there are no files here: no filesystem is bound to this run" or nil
end

--- Returns "1,234,567" for 1234567.
function M.number(n)
  local text, done = ("%d"):format(n), 1
  while done > 0 do
    text, done = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  end
  return text
end

--- Returns "1 line" or "2,310 lines"; `many` is the plural if it is not `word` with an s.
function M.count(n, word, many)
  return M.number(n) .. " " .. (n == 1 and word or many or word .. "s")
end

-- Returns words for the number of entries that a list leaves out; nil if it is complete.
local function left_out(found)
  return found.left_out and ("%s left out: no path can name or reach %s"):format(
    M.count(found.left_out, "entry", "entries"), found.left_out == 1 and "it" or "them")
end

local NAMED = 3 -- files .gitignore that a result names

local function names_of(list)
  local names = {}
  for i = 1, math.min(#list, NAMED) do
    names[i] = list[i].path
  end
  return table.concat(names, ", ")
    .. (#list > NAMED and (" and %s"):format(M.count(#list - NAMED, "more file")) or "")
end

-- Adds what files .gitignore leave out, and which of them are not obeyed.
local function add_ignored(notes, found)
  local obeyed, others, n = {}, {}, 0
  for _, file in ipairs(found.ignored or {}) do
    local list = file.count > 0 and obeyed or others
    list[#list + 1] = file
    n = n + file.count
  end
  if n > 0 then
    notes[#notes + 1] = ("%s left out by %s; ignored = true shows %s"):format(
      M.count(n, "entry", "entries"), names_of(obeyed), n == 1 and "it" or "them")
  end
  if #others > 0 then
    notes[#notes + 1] = "too large to be obeyed: " .. names_of(others)
  end
end

--- Returns the end of a result: the notes, and what its list leaves out; "" if there is neither.
function M.notes(notes, found)
  add_ignored(notes, found)
  notes[#notes + 1] = left_out(found)
  return #notes > 0 and ("\n[%s]"):format(table.concat(notes, "; ")) or ""
end

--- The option of a tool, and the parameter of its calls, for what files .gitignore leave out.
M.GITIGNORE = { name = "gitignore", kinds = "boolean", default = true,
  doc = "leaves out what files `.gitignore` name, unless the model says `ignored`" }
M.IGNORED = "boolean?: true: also what .gitignore leaves out"

--- Limit of the bytes of a line that are shown.
M.WIDTH = 2000

--- Returns a line with its number, as it is shown; `mark` replaces the tab if it is given.
function M.numbered(line, mark)
  local cut = ""
  if line.size and line.size > M.WIDTH then
    cut = (" [cut: the line has %s]"):format(M.count(line.size, "byte"))
  end
  return ("%6d%s%s%s"):format(line.line, mark or "\t", line.text, cut)
end

--- Returns the path in its plain form, so that "./a" and "a" are equal.
function M.plain_path(path)
  local names = {}
  for name in path:gmatch "[^/]+" do
    if name == ".." then
      names[#names] = nil
    elseif name ~= "." then
      names[#names + 1] = name
    end
  end
  return table.concat(names, "/")
end

--- Returns the number of lines in a text; a last line without a line end counts, too.
function M.count_lines(text)
  local n = select(2, text:gsub("\n", ""))
  return n + ((text == "" or text:sub(-1) == "\n") and 0 or 1)
end

return M
