--- Functions that the built-in tools (lua/agenthost/tools) share: the file system of a call,
-- numbers and lines as a model is shown them. Holds no tool and keeps no state.
local M = {}

--- The file system of the call; nil and why where none is bound.
function M.filesystem(ctx)
  local fs = ctx.filesystem
  return fs, not fs and "there are no files here: no filesystem is bound to this run" or nil
end

--- 1234567 -> "1,234,567"
function M.number(n)
  local text, done = ("%d"):format(n), 1
  while done > 0 do
    text, done = text:gsub("^(%d+)(%d%d%d)", "%1,%2")
  end
  return text
end

--- "1 line", "2,310 lines"; `many` where it is not the word with an s.
function M.count(n, word, many)
  return M.number(n) .. " " .. (n == 1 and word or many or word .. "s")
end

-- Words for the number of entries that a list leaves out; nil if it is complete.
local function left_out(found)
  return found.left_out and ("%s left out: no path can name or reach %s"):format(
    M.count(found.left_out, "entry", "entries"), found.left_out == 1 and "it" or "them")
end

--- The end of an answer: the notes, and what its list leaves out; "" if there is neither.
function M.notes(notes, found)
  notes[#notes + 1] = left_out(found)
  return #notes > 0 and ("\n[%s]"):format(table.concat(notes, "; ")) or ""
end

--- Bytes of a line that are shown.
M.WIDTH = 2000

--- A line as it is shown, with its number; `mark` stands for the tab where given.
function M.numbered(line, mark)
  local cut = ""
  if line.size and line.size > M.WIDTH then
    cut = (" [cut: the line has %s]"):format(M.count(line.size, "byte"))
  end
  return ("%6d%s%s%s"):format(line.line, mark or "\t", line.text, cut)
end

--- The path by its letters, so that "./a" and "a" are the same.
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

--- Number of lines in a text; a last line without a line end counts, too.
function M.count_lines(text)
  local n = select(2, text:gsub("\n", ""))
  return n + ((text == "" or text:sub(-1) == "\n") and 0 or 1)
end

return M
