--- The commands of a chat: /name words, and !command of the shell. Modules have their rows:
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

local MODULES = { "chat.about" }

-- Returns all rows, in the order of the help, and the same by name.
local function rows()
  if not M.list then
    M.list, M.named = {}, {}
    for _, module in ipairs(MODULES) do
      for _, row in ipairs(use(module)) do
        M.list[#M.list + 1] = row
        M.named[row.name] = row
      end
    end
  end
  return M.list, M.named
end
M.rows = rows

--- True if the line is a command. A path such as /usr/bin is none; "//" begins a text with a slash.
function M.is_command(line)
  return line:find "^/%a[%w_-]*%s*$" or line:find "^/%a[%w_-]*%s" or line:find "^!%s*%S"
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

--- Returns the candidates for the word before the cursor: commands and what can follow them.
function M.complete(chat, text, at)
  local before = text:sub(1, at - 1)
  local name, word = before:match "^/(%S+)%s+.-(%S*)$"
  if before:find "^/%S*$" then
    local list = names()
    for i, one in ipairs(list) do
      list[i] = "/" .. one
    end
    return beginning(list, before), 1
  end
  local row = name and select(2, rows())[name]
  return row and row.offer and beginning(row.offer(chat), word) or {}
end

return M
