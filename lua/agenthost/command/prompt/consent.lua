--- Asks the person at the terminal about a call of a prompt, as a chat does (asking.lua), or a
-- plain question. The answer may go to a file or a pipe meanwhile: the terminal is opened for the
-- ask alone.
local ah, use = ...
local allowed_of, asking_of, editor_of = use "allowed", use "asking", use "editor"
local styled = use "styled"

local M = {}

local NO_TERMINAL = "there is no terminal on which a person could allow it"

-- Reads lines until one is a response, or until there is no person any more.
local function read(editor, asking)
  asking:show()
  editor:bell()
  repeat
    local line, why = editor:read(asking:asked())
    if not line then
      return asking:refuse(why == "end" and "there is no person at the terminal any more"
        or "the user does not allow it")
    end
  until asking:take(line)
end

-- Returns the response without a person: an approval is refused. Raises an error for a question,
-- which then has its default, or fails.
local function without_person(ask)
  if ask.kind ~= "approval" then
    error("there is no terminal on which a person could answer", 0)
  end
  return false, NO_TERMINAL
end

local function ask_there(ask, allowed)
  local editor <close> = editor_of.open { at_terminal = true }
  if not editor.rich and not editor.on_terminal then
    return without_person(ask)
  end
  local asking = asking_of.new(ask, { allowed = allowed, own = true, rich = editor.rich,
    say = function(shown) editor:print_line(shown) end })
  local over = false
  local _ <close> = setmetatable({}, { __close = function()
    if not over then
      editor:print_line "It has a response from elsewhere, or its call is over."
    end
  end })
  read(editor, asking)
  over = true
end

--- Returns a front end for asks. Where no person can be asked it refuses approvals.
function M.front()
  local allowed, turn = nil, ah.channel(1) -- turn: has a value while an ask is at the terminal
  return function(ask)
    allowed = allowed or allowed_of.open()
    local rule = allowed:covers(ask)
    if rule then
      io.stderr:write("Allowed in this folder: ", styled.harmless(allowed_of.words(rule)), "\n")
      return true
    elseif not ah._is_terminal(2) then
      return without_person(ask)
    end
    turn:send(true)
    local _ <close> = setmetatable({}, { __close = function() turn:receive() end })
    return ask_there(ask, allowed)
  end
end

-- Returns true for yes, false for no, nil if there is no person any more.
local function yes_or_no(editor, question)
  local line
  repeat
    line = editor:read { keep = false, prompt = { { question .. " [y/n] ", bold = true } } }
  until not line or line:find "^[yn]$" or line == "yes" or line == "no"
  return line and line:sub(1, 1) == "y"
end

--- Shows texts and asks a question. Returns true for yes; else false, and why.
---@param texts table of ah.terminal
---@param question string
---@return boolean
---@return string?
function M.confirm(texts, question)
  if not ah._is_terminal(2) then
    return false, NO_TERMINAL
  end
  local editor <close> = editor_of.open { at_terminal = true }
  if not editor.rich and not editor.on_terminal then
    return false, NO_TERMINAL
  end
  editor:print_line(texts)
  if yes_or_no(editor, question) then
    return true
  end
  return false, "the user does not allow it"
end

return M
