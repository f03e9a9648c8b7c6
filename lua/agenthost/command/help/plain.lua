--- Makes lines for a terminal from pages: at most 80 columns, except code, which is never broken.
local ah, use = ...
local pages = use "help.pages"

local M = {}

local WIDTH = 80
local LONGEST_NAME = 20 -- columns of a first cell with its text on the same line
local UNDER = { "=", "-" } -- below titles, by level

local width = ah.terminal.width

local function blank(lines)
  if #lines > 0 and lines[#lines] ~= "" then
    lines[#lines + 1] = ""
  end
end

--- Adds the words of a text to lines: `first` begins the first line, `indent` spaces the others.
local function wrap(lines, text, first, indent)
  local line = first
  local empty = true -- no word is on the line yet
  for word in text:gmatch "%S+" do
    if not empty and width(line) + 1 + width(word) > WIDTH then
      lines[#lines + 1] = line
      line, empty = (" "):rep(indent), true
    end
    line, empty = line .. (empty and "" or " ") .. word, false
  end
  lines[#lines + 1] = (line:gsub(" +$", ""))
end

-- Prose keeps its backquotes, which mark code.
local function prose(text)
  return (text:gsub("%[(.-)%]%(.-%)", "%1"):gsub("%*%*(.-)%*%*", "%1"):gsub("\\|", "|"))
end

local SILENT = { [""] = true, is = true, gives = true } -- heads that are not shown

-- Returns the index of the cell with the text: the last one without a head, else the last one.
local function text_at(cells, head)
  for i = #cells, 2, -1 do
    if head[i] == "" then
      return i
    end
  end
  return #cells
end

-- Returns "integer, default 3": the cells other than the name and the text.
local function facts(cells, head, text)
  local some = {}
  for i = 2, #cells do
    local fact = i ~= text and prose(cells[i]) or ""
    some[#some + 1] = fact ~= "" and (SILENT[head[i]] and "" or head[i] .. " ") .. fact or nil
  end
  return table.concat(some, ", ")
end

--- Adds a row of a table: the name and its facts, then the text.
function M.row(lines, cells, head)
  local name, at = pages.bare(cells[1]), text_at(cells, head)
  local between = facts(cells, head, at)
  local text = at > 1 and prose(cells[at]) or ""
  if between ~= "" then
    wrap(lines, between, ("  %s  "):format(name), 6)
    wrap(lines, text, (" "):rep(6), 6)
  elseif width(name) <= LONGEST_NAME then
    wrap(lines, text, ("  %-" .. LONGEST_NAME .. "s  "):format(name), LONGEST_NAME + 4)
  else
    lines[#lines + 1] = "  " .. name
    wrap(lines, text, (" "):rep(LONGEST_NAME + 4), LONGEST_NAME + 4)
  end
end

--- Adds the origin of the lines that follow.
---@param part? table nil: the whole page
function M.from(lines, page, part)
  blank(lines)
  lines[#lines + 1] = ("[%s%s]"):format(page.name,
    part and part ~= page.parts[1] and ": " .. part.title or "")
end

function M.note(lines, text)
  blank(lines)
  wrap(lines, text, "", 0)
end

--- Adds a title, underlined if its level is 1 or 2.
function M.title(lines, part)
  blank(lines)
  lines[#lines + 1] = part.title
  lines[#lines + 1] = UNDER[part.level] and UNDER[part.level]:rep(width(part.title)) or nil
end

-- Joins the lines of a paragraph or of an item of a list, and wraps it.
local function flush(lines, paragraph)
  if #paragraph > 0 then
    local text = prose(table.concat(paragraph, " "))
    local mark, rest = text:match "^([%-%d]%.? )%s*(.*)$"
    wrap(lines, rest or text, mark or "", #(mark or ""))
  end
  return {}
end

--- Adds the lines of a part below its title.
function M.body(lines, part)
  local paragraph, head, fenced = {}, nil, false
  for _, line in ipairs(part.lines) do
    local cells = not fenced and pages.cells(line)
    if line:find "^```" or fenced or cells or line == "" or line:find "^[%-%d]%.? " then
      paragraph = flush(lines, paragraph)
    end
    if line:find "^```" then
      fenced = not fenced
    elseif fenced then
      lines[#lines + 1] = line ~= "" and "    " .. line or ""
    elseif cells then
      if head and not pages.is_rule(cells) then
        M.row(lines, cells, head)
      end
      head = head or cells
    elseif line == "" then
      blank(lines)
      head = nil
    else
      paragraph[#paragraph + 1] = line
    end
  end
  flush(lines, paragraph)
end

return M
