--- agenthost help: the options of a command, or the reference's text about a word.
--
-- A word is looked up as a command, a page, a title and a name in the first column of a table:
-- functions, fields, methods, events, codes of errors, terms. The first of these with a match is
-- shown.
local ah, use = ...
local commands, text = use "commands", use "text"
local pages, plain = use "help.pages", use "help.plain"

local MOST_ROWS = 24      -- rows shown for one word
local SHOWN = 60          -- bytes of a word that a message repeats
local INDEX = "reference" -- the word for the list of pages

--- Adds a part of a page, and the parts whose titles are below its title.
local function add_part(lines, page, from)
  local level = page.parts[from].level
  for i = from, #page.parts do
    if i > from and page.parts[i].level <= level then
      return
    end
    plain.title(lines, page.parts[i])
    plain.body(lines, page.parts[i])
  end
end

local function page_lines(word)
  local page, lines = pages.named((word:gsub("^reference/", ""):gsub("%.md$", ""))), {}
  if page then
    add_part(lines, page, 1)
  end
  return lines
end

local function title_lines(all, word)
  local lines = {}
  for _, page in ipairs(all) do
    for i, part in ipairs(page.parts) do
      if part.title:lower() == word then
        plain.from(lines, page)
        add_part(lines, page, i)
      end
    end
  end
  return lines
end

local function row_lines(all, word)
  local lines, count, last = {}, 0, nil
  pages.each_row(all, word, function(page, part, cells, head)
    count = count + 1
    if count <= MOST_ROWS then
      if part ~= last then
        plain.from(lines, page, part)
      end
      plain.row(lines, cells, head)
      last = part
    end
  end)
  if count > MOST_ROWS then
    plain.note(lines, ("%d more rows have this name."):format(count - MOST_ROWS))
  end
  return lines
end

local function index_lines(all)
  local lines, about = { "agenthost help PAGE shows one of these pages:", "" }, pages.summaries()
  for _, page in ipairs(all) do
    plain.row(lines, { page.name, about[page.name] }, { "", "" })
  end
  return lines
end

--- Returns all known words, for "did you mean".
local function known(all)
  local words = { INDEX, table.unpack(commands.names) }
  for _, page in ipairs(all) do
    words[#words + 1] = page.name
    for _, part in ipairs(page.parts) do
      words[#words + 1] = part.title
    end
  end
  pages.each_name(all, function(name)
    words[#words + 1] = name
  end)
  return words
end

local function unknown(all, word)
  local near = ah.nearest(word, known(all))
  return ("there is no command, page, function, field or term '%s'%s\n%s"):format(word,
    near and (" (did you mean '%s'?)"):format(near) or "",
    "agenthost help reference lists the pages.")
end

--- Returns the lines about a word that is not a command, or nil and the reason.
local function about(word)
  local lower = word:lower()
  if lower == INDEX then
    return index_lines(pages.all())
  end
  local lines, all = page_lines(lower), pages.all(lower)
  for _, lines_of in ipairs { title_lines, row_lines } do
    lines = lines[1] and lines or lines_of(all, lower)
  end
  if lines[1] then
    return lines
  end
  return nil, unknown(pages.all(), text.cut(word, SHOWN))
end

local function command_lines(word, line)
  local usage = use "usage"(word and commands.find(word), line.running, line.named)
  return usage .. (word and page_lines(word)[1]
    and ("\nagenthost help reference/%s shows the page with more.\n"):format(word) or "")
end

return {
  name = "help",
  doc = "show the options of a command, or a page of the reference",
  usage = "[WORD]",
  help = [[
WORD is a command, a page of the reference (run, tool, http ...), a title of
one, or a function, field, method, event, code of an error or term:

    agenthost help ah.run
    agenthost help context_full
    agenthost help reference       lists the pages]],
  operand = { name = "word", complete = function()
    return { INDEX, table.unpack(commands.names) }
  end },
  flags = {},
  pages = true,
  run = function(_, words, out, line)
    local word = words[1] and table.concat(words, " ")
    if not word or commands.find(word) then
      out:write(command_lines(word, line))
      return
    end
    local lines, reason = about(word)
    if not lines then
      return 2, reason
    end
    out:write(table.concat(lines, "\n"), "\n")
  end,
}
