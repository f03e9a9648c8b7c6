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

--- Returns the end of a result: the notes, and what its list leaves out; "" if there is neither.
function M.notes(notes, found)
  notes[#notes + 1] = left_out(found)
  return #notes > 0 and ("\n[%s]"):format(table.concat(notes, "; ")) or ""
end

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
