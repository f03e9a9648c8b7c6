--- Reads and runs the command line. The first word that is not a flag is a command if it has the
-- name of one; a script if it ends in .lua, has a "/" or is "-"; a prompt if it has white space;
-- else an error. After "--" it is always the script, after -p and -T always a prompt. Letters
-- without a value can be joined; a value follows "=" (names), or is the rest of the word (letters),
-- or the next word.
--
-- For any line but the plain run of a script, the C side first calls `read`, and then `run` or a
-- member of performed.lua. All calls here have the same arguments: see `opened`.
--
-- `answer`, `tell` and a command that is apart run in another state than `read`. There
-- performed.lua has the line as `read` has passed it, and reads nothing again.
local ah, use = ...
local commands, flags_of = use "commands", use "flags"
local text = use "text"

local SHOWN = 60 -- bytes of a word that a message shows
local LEVELS = { "info", "debug" }

-- -- faults ----------------------------------------------------------------------------------

local function fault(line, words, ...)
  local name = line.command and line.command.name .. " " or ""
  error({ words = words:format(...) .. ("\nSee agenthost %s--help."):format(name) }, 0)
end

local function shown(word)
  return text.cut(word, SHOWN)
end

-- Returns the nearest name or letter of a flag among the rows; nil if none is near.
local function near_flag(rows, asked)
  local names = {}
  for _, row in ipairs(rows) do
    names[#names + 1] = row.letter
    names[#names + 1] = row.name
  end
  return ah.nearest(asked, names)
end

-- Raises that the option is unknown. `name` is the word without its dashes and its "=value".
local function unknown(line, word, name)
  local near = near_flag(flags_of.all(line.running), shown(name))
  local found = shown(word:sub(1, #word:match "^%-*" + #name))
  fault(line, "unknown option '%s'%s", found,
    near and (" (did you mean %s%s?)"):format(#near > 1 and "--" or "-", near) or "")
end

local function wants(line, row, value)
  local what = row.words and "one of these: " .. row.words or "a " .. row.value
  if not value then
    fault(line, "option --%s needs a %s", row.name, row.value)
  end
  fault(line, "option --%s needs %s, found '%s'", row.name, what, shown(value))
end

-- -- flags -----------------------------------------------------------------------------------

local function is_word(words, word)
  for one in words:gmatch "%S+" do
    if one == word then
      return true
    end
  end
  return false
end

local function number_of(line, row, value)
  local least, most = row.least or 0, row.most or 999999999
  local n = value:find "^%d+$" and #value < 16 and math.tointeger(tonumber(value))
  if not n or n < least or n > most then
    fault(line, "option --%s needs a number from %d to %d, found '%s'", row.name, least, most,
      shown(value))
  end
  return n
end

-- Returns the number of a decimal text that is greater than 0.
local function decimal_of(line, row, value)
  local n = value:find "^%d*%.?%d+$" and #value < 16 and tonumber(value)
  if not n or n <= 0 then
    fault(line, "option --%s needs a number greater than 0, such as 0.50, found '%s'", row.name,
      shown(value))
  end
  return n
end

local KINDS = { integer = number_of, decimal = decimal_of }

local function row_of(rows, key, value)
  for _, row in ipairs(rows) do
    if type(row) == "table" and row[key] == value then
      return row
    end
  end
end

-- Returns the value of a flag, true for one that takes none; raises if it is not valid.
local function checked(line, row, value)
  if not row.value then
    return true
  elseif row.optional and not value then
    return true
  elseif not value or not row.any and not value:find "^[^%-]" then
    wants(line, row, value)
  elseif row.words and not is_word(row.words, value) then
    wants(line, row, value)
  end
  return row.kind and KINDS[row.kind](line, row, value) or value
end

-- -v raises the level by one; -q clears it, so that -q -v is the same as -v.
local function set_level(line, name)
  if name == "quiet" then
    line.flags.quiet, line.flags.verbose = true, nil
  elseif name == "verbose" then
    line.flags.quiet, line.flags.verbose = nil, math.min((line.flags.verbose or 0) + 1, #LEVELS)
  else
    return false
  end
  return true
end

local function next_word(line)
  line.at = line.at + 1
  return line.words[line.at - 1]
end

-- True if the next word could be an id: it is neither a flag nor a text, a file or a script.
local function is_id_next(line)
  local word = line.words[line.at]
  return word ~= nil and not word:find "^[-@]" and not word:find "[%s/]" and not word:find "%.lua$"
end

local function set(line, row, value)
  local key = row.name:gsub("-", "_")
  if row.value and not value and (not row.optional or row.optional ~= "=" and is_id_next(line))
  then
    value = next_word(line)
  end
  value = checked(line, row, row.value and value)
  if row.once and line.flags[key] ~= nil then
    fault(line, "option --%s can be given once", row.name)
  end
  line.strange = line.strange or row_of(line.own, "name", row.name) ~= row and row or nil
  line.ended = row.name == "" or row.name == "help"
  if row.many then
    line.flags[key] = line.flags[key] or {}
    table.insert(line.flags[key], value)
  elseif not set_level(line, row.name) then
    line.flags[key] = value
  end
  if row.instead then
    line.flags[row.instead] = nil
  end
end

-- Finds a flag: first among those of the command, then of prompts, then of any command, which loads
-- all programs.
local function find(line, key, value)
  return row_of(line.own, key, value) or row_of(commands.find "prompt".flags, key, value)
    or row_of(flags_of.all(line.running), key, value)
end

local function long(line, word)
  local name, value = word:match "^%-%-([^=]*)=?(.*)$"
  local row = find(line, "name", name)
  value = #word > 2 + #name and value or nil
  if not row then
    unknown(line, word, name)
  elseif value and not row.value then
    fault(line, "option --%s takes no value, found '%s'", row.name, shown(value))
  end
  set(line, row, value)
end

-- -v, -vv, -qh, -e CODE, -eCODE; but -model is a mistake, and not -m with the value "odel"
local function letters(line, word)
  if #word > 2 and find(line, "name", word:sub(2)) then
    unknown(line, word, word:sub(2))
  end
  for at = 2, #word do
    local row = find(line, "letter", word:sub(at, at))
    if not row then
      unknown(line, word, word:sub(2))
    elseif row.value then
      return set(line, row, at < #word and word:sub(at + 1) or nil)
    end
    set(line, row)
    if line.ended then
      return
    end
  end
end

local function read_flags(line)
  local word = line.words[line.at]
  while not line.ended and word and word:find "^%-." do
    line.at = line.at + 1;
    (word:find "^%-%-" and long or letters)(line, word)
    word = line.words[line.at]
  end
end

-- Reads the rest of a line on which flags may follow operands, and leaves the operands as its
-- words. A word such as -5 is an operand. `literal` is the first operand after "--".
local function read_mixed(line)
  local operands, word = {}, line.words[line.at]
  while word do
    line.literal = line.literal or line.ended and #operands + 1
    if line.ended or not word:find "^%-[^%d]" then
      operands[#operands + 1], line.at = word, line.at + 1
    else
      read_flags(line)
    end
    word = line.words[line.at]
  end
  line.words, line.at = operands, 1
end

-- Takes --watch from behind the operands of a command whose other words are not ours.
local function read_watch(line)
  for at = line.at, line.ended and 0 or #line.words do
    local word = line.words[at]
    if word == "--" then
      return
    elseif word == "-w" or word == "--watch" then
      table.remove(line.words, at)
      line.flags.watch = true
      return
    end
  end
end

-- -- the whole -------------------------------------------------------------------------------

-- Sets a line to its beginning, with the flags of this command.
local function begin(line, command)
  line.at, line.ended, line.strange, line.flags = 1, false, nil, {}
  line.expected, line.own = command, flags_of.of(command, line.running, line.named)
end

-- True if the flag is one of prompts.
local function is_of_prompts(row)
  return row_of(commands.find "prompt".flags, "name", row.name) ~= nil
end

-- True if the line is a prompt without the word "prompt": after -p or -T, with a text that names no
-- file, or without a word but with a flag of prompts.
local function is_prompt(line, word)
  if line.flags.prompt or line.flags.saved then
    return true
  elseif line.flags.eval or line.flags[""] then
    return false
  elseif word then
    return word:find "%s" ~= nil and not ah._real_path(word)
  end
  return line.strange ~= nil and is_of_prompts(line.strange)
end

-- Returns the command of a line, whose flags up to the first word were read.
local function command_of(line, word)
  local plain = line.flags.eval or line.flags[""] or not word
  if not line.expected then
    line.bare = is_prompt(line, word)
  end
  return line.bare and commands.find "prompt" or not plain and commands.find(word) or nil
end

-- Goes from the word of the command to that behind it. Returns its action, if it has one, from
-- behind whose word the line goes on.
local function action_of(line, command)
  line.command = command
  line.at = line.at + (line.bare and 0 or 1)
  read_flags(line)
  local action = commands.action(command, line.words[line.at])
  if action then
    line.command = action
    line.at = line.at + 1
    read_flags(line)
  end
  return action
end

-- Reads the flags and the command, if there is one, up to the first operand.
local function read_line(line)
  read_flags(line)
  local command = command_of(line, line.words[line.at])
  if command and not line.expected then -- its flags are known now: read the line again
    begin(line, command)
    return read_line(line)
  end
  local action = command and action_of(line, command)
  if action and line.expected ~= action then
    begin(line, action)
    return read_line(line)
  end
  command = action or command
  if command and not line.flags.help then
    if command.mixed then
      read_mixed(line)
    elseif command.again then
      read_watch(line)
    end
  end
end

local function check_words(line, words)
  local command = line.command
  local operand = command.operand or { most = 0 }
  local first = words[1]
  local least, most = operand.least or 0, operand.most
  if #words < least and least > 1 then
    fault(line, "agenthost %s needs %s, found %d of them", command.name, command.usage, #words)
  elseif #words < least and not operand.words then
    fault(line, "no %s given", operand.name)
  elseif most == 0 and first then
    fault(line, "agenthost %s takes no operand, found '%s'", command.name, shown(first))
  elseif operand.words and not (first and is_word(operand.words, first)) then
    fault(line, "agenthost %s needs one of these %ss: %s", command.name, operand.name,
      operand.words)
  elseif most and #words > most then
    fault(line, "agenthost %s takes %s, found '%s' besides", command.name,
      most == 1 and "one " .. operand.name or command.usage, shown(words[most + 1]))
  end
end

-- Returns the commands that take a flag which is not for running a script: "agenthost mock".
local function takers_of(row)
  local takers = {}
  for _, name in ipairs(commands.names) do
    takers[#takers + 1] = row_of(commands.find(name).flags or {}, "name", row.name)
      and "agenthost " .. name
  end
  return table.concat(takers, ", ")
end

-- True if the line has a script, or nothing that could be one. The same rule for a plain line is in
-- src/cli/options.c.
local function names_script(line)
  local word = line.words[line.at]
  return line.flags.eval ~= nil or line.flags[""] ~= nil or not word or word == "" or word == "-"
    or word:find("/", 1, true) ~= nil or word:find "%.lua$" ~= nil or word:find "%s" ~= nil
end

local function check(line)
  local command, strange = line.command, line.strange
  if line.flags.help or not command and strange and is_of_prompts(strange)
    and not names_script(line) then -- M.read has words for such a word
    return
  elseif strange and command then
    fault(line, "option --%s is not for agenthost %s", strange.name, command.name)
  elseif strange then
    fault(line, "option --%s is not for running a script, but for %s", strange.name,
      takers_of(strange))
  elseif command then
    check_words(line, { table.unpack(line.words, line.at) })
  end
end

--- Returns a line that was read: { command, flags, words, at, running, named, settings, configured,
-- fault }. configured: there are files of settings or variables.
---@param settings string the path of the configuration; "": there can be none
---@param found string "found" if there is a file of settings, else ""
---@param n string the number of strings that describe the flags for running a script
---@param ... string these strings, then the words of the line
local function opened(settings, found, n, ...)
  local told = math.tointeger(tonumber(n))
  local running, named = flags_of.running { table.unpack({ ... }, 1, told) }
  local line = { settings = settings, running = running, named = named,
    words = { select(told + 1, ...) } }
  begin(line)
  local ok, err = pcall(function()
    read_line(line)
    check(line)
  end)
  if not ok then
    line.fault = type(err) == "table" and err.words or error(err, 0)
  end
  line.configured = found ~= "" or line.flags.env_file ~= nil
  return line
end

-- -- for the command's C side -----------------------------------------------------------------

local M = {}

-- Returns lines such as "log info" for the flags about messages.
local function messages_of(line)
  local flags = line.flags
  local level = flags.quiet and "error" or LEVELS[flags.verbose]
  return (flags.color and ("color %s\n"):format(flags.color) or "")
    .. (level and ("log %s\n"):format(level) or "") .. (flags.json and "json\n" or "")
end

--- Returns the answer of settings.lua for the flags of a line.
---@param show "text"|"json"|""
function M.settings(line, show)
  local given, flags = {}, line.flags
  for _, name in ipairs { "model", "color", "env-file", "store" } do
    local value = flags[name:gsub("-", "_")]
    given[#given + 1] = value and name
    given[#given + 1] = value
  end
  local level = flags.quiet and "error" or LEVELS[flags.verbose]
  given[#given + 1] = level and "log"
  given[#given + 1] = level
  return use "settings"(line.settings, show, table.unpack(given))
end

-- True if the command runs in a state of its own: always, or with a flag of this name.
local function is_apart(line)
  local apart = line.command.apart
  return type(apart) == "string" and line.flags[apart] or apart == true
end

--- Reads a line, and returns lines NAME or NAME VALUE: `color`, `log`, `json`, the answer of
-- settings.lua; then `script` (the line has no command), `word` and the index of a word that is
-- neither a command nor a script, `show` and a text, `fault` and a message, or, for a command,
-- `line` and the line as performed.lua passes it, `file` and the index of the word that must be
-- readable, `again` if --watch runs it again, `here`, or `apart` and before it `prints` if the
-- output of the code stays on stdout.
function M.read(...)
  local line = opened(...)
  local head = messages_of(line)
  if line.fault then
    return head .. "fault\n" .. line.fault
  elseif line.flags.help then
    return head .. "show\n" .. use "usage"(line.command, line.running, line.named)
  elseif not line.command then
    return head .. (names_script(line) and "script\n" or ("word %d\n"):format(line.at))
  end
  local command = line.command
  head = head .. "line " .. use "performed".passed(line) .. "\n"
    .. ((command.operand or {}).file and ("file %d\n"):format(line.at) or "")
    .. (command.again and line.flags.watch and "again\n" or "")
  if not is_apart(line) then
    return head .. (command.pages and "pages\n" or "") .. "here\n"
  end
  return head .. (command.prints and "prints\n" or "") .. "apart\n"
    .. (line.configured and M.settings(line, "") or "")
end

--- The settings for running a script, in the form in which `read` returns those of a command.
function M.settings_of(...)
  return M.settings(opened(...), "")
end

--- Runs the command of the line in this state. Returns as the members of performed.lua.
---@param descriptor string number of the file descriptor that the command writes to
---@param ... string the line
---@return string
function M.run(descriptor, ...)
  local line = opened(...)
  return use "performed".run(line, line.command, { table.unpack(line.words, line.at) }, descriptor)
end

--- Begins to watch the project of the line (--watch). Returns "", or why that is not possible.
function M.watch(...)
  local line = opened(...)
  local script = not line.command and line.words[line.at] or ""
  local folder = script:match "^(.*)/[^/]*$"
  return use "watch".open(folder == "" and "/" or folder or ".")
end

--- Returns a file of that project that has changed since the last call; "": there is none.
function M.changed()
  return use "watch".changed()
end

--- Returns the command, or the flag of a script or a prompt, whose name is nearest to the word:
-- "agenthost check", "agenthost --record"; "" if none is near.
---@param word string
---@param ... string a line without words
function M.near(word, ...)
  local name = ah.nearest(word, commands.names)
  if name then
    return "agenthost " .. name
  end
  name = near_flag(flags_of.unnamed(opened(...).running), word)
  return name and #name > 1 and "agenthost --" .. name or ""
end

return M
