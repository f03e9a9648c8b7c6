--- The commands of a chat: /name words, and !command of the shell. Modules have them in `rows`:
--
--   name    without the slash
--   words   what follows it, for the help; nil: nothing
--   doc     one line
--   idle    true: not while an answer is at work
--   offer   function(chat) -> list of words that can follow, for Tab; nil: none
--   run     function(chat, words): words is the text after the name. What it raises is shown
local ah, use = ...
local fault = use "pairs".fault

local M = {}

local MOST_PATHS = 10000 -- of a folder
local MODULES = { "chat.about", "chat.history", "chat.conversations", "chat.context",
  "chat.export", "chat.cost", "chat.plan", "chat.allowed", "chat.project" }

-- The last one of the help.
local QUIT = { name = "quit", doc = "end the chat, as Ctrl-D does", run = function(chat)
  chat.over = true
end }

local function add(row)
  M.list[#M.list + 1] = row
  M.named[row.name] = row
end

-- Returns all rows, in the order of the help, and the same by name.
local function rows()
  if not M.list then
    M.list, M.named = {}, {}
    for _, module in ipairs(MODULES) do
      for _, row in ipairs(use(module).rows) do
        add(row)
      end
    end
    add(QUIT)
  end
  return M.list, M.named
end
M.rows = rows

--- True if the line is a command. A path such as /usr/bin is none; "//" begins a text with a slash.
function M.is_command(line)
  return line:find "^/%a[%w_-]*%s*$" or line:find "^/%a[%w_-]*%s" or line:find "^!%s*[^%s!]"
end

local function names()
  local list = {}
  for i, row in ipairs((rows())) do
    list[i] = row.name
  end
  return list
end

local function not_now()
  fault "Not while an answer is at work: Ctrl-C ends it."
end

-- Runs a command of the shell, which has the terminal until it ends.
local function shell(chat, command)
  if chat.run then
    not_now()
  end
  chat.editor:pause()
  io.stdout:flush()
  local _, how, code = os.execute(command)
  chat.editor:resume()
  if code ~= 0 then
    chat.output:note(("(%s %s)"):format(how == "exit" and "exit code" or how, code))
  end
end

--- Performs the command of a line. Raises what is wrong with it.
function M.perform(chat, line)
  local command = line:match "^!%s*(.*)$"
  if command then
    return shell(chat, command)
  end
  local name, words = line:match "^/(%S+)%s*(.-)%s*$"
  local row = select(2, rows())[name]
  if not row then
    local near = ah.nearest(name, names())
    fault("There is no command /%s%s", name,
      near and (" (did you mean /%s?)"):format(near) or ". /help lists them.")
  elseif row.idle and chat.run then
    not_now()
  elseif not row.words and words ~= "" then
    fault("/%s takes no words", name)
  end
  row.run(chat, words)
end

-- -- completion --------------------------------------------------------------------------------

local function beginning(list, word)
  local some = {}
  for _, one in ipairs(list) do
    some[#some + 1] = one:sub(1, #word) == word and one or nil
  end
  return some
end

-- Returns the files and folders that the beginning of a path names.
local function paths(word)
  local folder, name = word:match "^(.*/)([^/]*)$"
  folder, name = folder or "", name or word
  local fs = ah.filesystem { root = folder == "" and "." or folder }
  local list = {}
  for _, entry in ipairs(fs and fs:list() or {}) do
    local is_hidden = entry.name:sub(1, 1) == "." and name:sub(1, 1) ~= "."
    list[#list + 1] = not is_hidden and #list < MOST_PATHS
      and folder .. entry.name .. (entry.type == "folder" and "/" or "") or nil
  end
  return beginning(list, word)
end

-- Returns the commands that the text begins; a blank follows one that takes words.
local function slashed(before)
  local list = {}
  for i, row in ipairs((rows())) do
    list[i] = "/" .. row.name .. (row.words and " " or "")
  end
  return beginning(list, before)
end

--- Returns the candidates for the word before the cursor, and where it begins: commands, the words
-- that can follow them, and paths.
function M.complete(chat, text, at)
  local before = text:sub(1, at - 1)
  local from, word = before:match "()(%S*)$"
  local row = before:find "^/%S*%s" and select(2, rows())[before:match "^/(%S*)"]
  if before:find "^/%S*$" and not before:find "/.*/" then
    return slashed(before), 1
  elseif row and row.offer then
    return beginning(row.offer(chat), word), from
  end
  local mark = word:match "^[@!]" or ""
  return paths(word:sub(#mark + 1)), from + #mark
end

return M
