--- The line editor of the command: reads lines on a terminal while other tasks go on and write
-- above the line that is typed.
--
--   local editor <close> = use "editor".open { history = path }
--   editor_of.open { at_terminal = true }   takes the terminal even if the input or the output is
--                                           another file; Ctrl-C is the signal then
--   editor.history.why     why the lines are not kept in the file; nil: they are
--
--   local line, why, text = editor:read { prompt = "> " }
--
-- waits for a line, and returns it. Without one it returns nil and
--   "interrupt"  after Ctrl-C, also at an empty line; `text` is what was typed
--   "end"        after Ctrl-D at an empty line, or at the end of the input
--   an error     if the terminal or the input cannot be read
-- One task reads at a time. If the task is cancelled meanwhile, editor.draft is what was typed.
-- Fields of the table, all optional:
--   prompt    a text of terminal:live in one line; default "> "
--   more      the prompt of further lines; default: as many blanks
--   text, at  what the line begins with, and the byte behind the cursor (default: at the end)
--   complete  complete(text, at) -> candidates, from: called at Tab. A list of texts, each of which
--             can replace the bytes from `from` to before the cursor `at` (default: the word, which
--             begins after the last blank). It may wait. What it raises is raised by read
--   keep      false: the line is not added to the history
--   hidden    true: what is typed is not shown, and never kept
--   echo      false: the line is removed when it is complete; otherwise it stays above
--
--   editor:print(text)        writes above the line, behind the text written before; for streams
--   editor:print_line(text)   writes whole lines there: it first ends an unfinished line, and then
--                             its own
--   editor:status(lines)      shows a list of texts above the line, or without one, until the next
--                             call; nil removes them
--   editor:bell()             rings the bell of the terminal
--   editor:pause()            gives the terminal to another program, or to a script whose code is
--                             to end at Ctrl-C; not during a read. The next read or resume takes
--                             it again
--   editor:resume()
--   editor:close()
--   editor.gone               true: the terminal is gone, as after a lost connection
--   editor.rich               false: there is no editing, see below
--
-- Texts are those of ah.terminal: whatever they have is shown and never obeyed, and only the styles
-- around them have an effect. Where the locale is not UTF-8, other characters than ASCII are shown
-- as question marks.
--
-- If the input or the output is not a terminal, or TERM=dumb, lines are read as they come, without
-- prompt in a pipe, and texts are written to the standard output; at a terminal its own editing
-- works, a backslash at the end of a line continues it, and Ctrl-C is "interrupt" if the program
-- has called ah.interactive().
--
-- The C half are src/base/keys.h (keys and pastes from bytes), src/base/area.h (lines below other
-- output), src/cli/tty.h (modes and signals) and src/lua/lua_input.c (lines without a terminal).
-- libedit is not used: it reads and draws by itself, so that neither text above the line nor a
-- paste as one key is possible, and a write from another task would break its picture.
local ah, use = ...
local edit, line_history, streamed = use "edit", use "line_history", use "streamed"

local IN_A_ROW = 64   -- events that are taken before the line is drawn again
local LISTED = 200    -- candidates that are listed
local NO_TEXT = ""
local ESCAPE = 0.5    -- seconds: a slow connection may tear the bytes of a key apart

local Editor = {}
Editor.__index = Editor

-- -- texts ----------------------------------------------------------------------------------------

-- True if texts in UTF-8 cannot be shown: the locale says so. Without a locale they can.
local function is_ascii()
  for _, name in ipairs { "LC_ALL", "LC_CTYPE", "LANG" } do
    local value = os.getenv(name) or ""
    if value ~= "" then
      return not value:lower():find "utf%-?8"
    end
  end
  return false
end

-- Returns the text with question marks, which take as many columns as what they stand for.
local function in_ascii(s)
  local parts, at = {}, 1
  while at <= #s do
    local _, last, columns = ah.terminal.character(s, at)
    parts[#parts + 1] = s:byte(at) < 0x80 and s:sub(at, at) or ("?"):rep(columns)
    at = last + 1
  end
  return table.concat(parts)
end

-- Returns a text of the terminal with the function applied to each string in it.
local function mapped(shown, f)
  if type(shown) ~= "table" then
    return f(tostring(shown))
  end
  local list = {}
  for key, value in pairs(shown) do
    list[key] = math.type(key) and mapped(value, f) or value
  end
  return list
end

local function same(s)
  return s
end

-- Returns the strings of a text in one.
local function plain(shown)
  local parts = {}
  mapped(shown, function(s)
    parts[#parts + 1] = s
  end)
  return table.concat(parts)
end

local function write_plain(e, s)
  if e.on_terminal then
    s = e.fit((s:gsub("[^\n]+", ah._harmless)))
  end
  io.stdout:write(s)
  io.stdout:flush()
end

-- -- the terminal ---------------------------------------------------------------------------------

-- Events that were read and not taken: those behind the first e.taken.
local function push(e, event)
  e.waiting[#e.waiting + 1] = event
end

local function is_waiting(e)
  return e.taken < #e.waiting
end

local function pop(e)
  e.taken = e.taken + 1
  local event = e.waiting[e.taken]
  if not is_waiting(e) then
    e.waiting, e.taken = {}, 0
  end
  return event
end

-- Keeps what was typed up to now. Outside of the editor, the system made Ctrl-J of Enter.
local function keep_typed(e, outside)
  local event = e.terminal:key(0)
  while event do
    if outside and event.key == "j" and event.ctrl then
      event = { key = "enter" }
    end
    push(e, event)
    event = e.terminal:key(0)
  end
end

-- Returns true if the terminal is open, with editing.
local function open(e)
  if e.terminal or not e.rich then
    return e.rich
  end
  e.terminal = ah.terminal { signals = e.signals, distinct = not e.signals, escape = ESCAPE }
  if e.terminal and not e.terminal:live {} then
    e.terminal:close()
    e.terminal = nil
  end
  e.rich = e.terminal ~= nil
  if e.rich then
    keep_typed(e, true)
  end
  return e.rich
end

local function draw(e)
  if not e.terminal then
    return
  end
  local columns, rows = e.terminal:size()
  local lines = { e.stream:line() }
  table.move(e.lines, 1, #e.lines, #lines + 1, lines)
  if e.edit then
    local typed, cursor = e.shown:view(columns, rows, e.prompts)
    cursor.line = cursor.line + #lines
    table.move(typed, 1, #typed, #lines + 1, lines)
    e.terminal:live(mapped(lines, e.fit), cursor)
  else
    e.terminal:live(mapped(lines, e.fit))
  end
end

-- Leaves the unfinished line on the screen, and the terminal to others.
local function leave(e)
  local line = e.stream:take()
  draw(e)
  if line then
    e.terminal:write(line)
  end
  e.terminal:close()
  e.terminal = nil
end

-- Writes a text above the line. An unfinished line of it is a part of the live area.
local function put(e, text)
  local last = plain(text):sub(-1)
  e.unfinished = last ~= "\n" and (last ~= "" or e.unfinished)
  if not e.terminal then
    return write_plain(e, plain(text))
  end
  local columns, rows = e.terminal:size()
  local ready = e.stream:add(text, columns * math.max(1, rows // 3))
  draw(e)
  for _, part in ipairs(ready) do
    e.terminal:write(part)
  end
end

function Editor:print(text)
  put(self, text)
end

function Editor:print_line(text)
  put(self, { self.unfinished and "\n" or "", text, "\n" })
end

function Editor:status(lines)
  self.lines = lines or {}
  draw(self)
end

function Editor:bell()
  if self.terminal then
    self.terminal:bell()
  end
end

function Editor:resume()
  if open(self) then
    draw(self)
  end
end

function Editor:pause()
  assert(not self.reading, "a task reads a line: cancel it before the terminal is given away")
  if self.terminal then
    keep_typed(self)
    leave(self)
  end
end

function Editor:close()
  if self.terminal then
    leave(self)
  end
  self.rich = false
end
Editor.__close = Editor.close

-- -- reading --------------------------------------------------------------------------------------

local function next_event(e)
  if is_waiting(e) then
    return pop(e)
  end
  return e.terminal:key()
end

-- True if more was typed, which is taken before the line is drawn.
local function is_more(e)
  if not is_waiting(e) then
    push(e, (e.terminal:key(0)))
  end
  return is_waiting(e)
end

local function columns_of(list, columns)
  local widest = 0
  for _, one in ipairs(list) do
    widest = math.max(widest, ah.terminal.width(one) + 2)
  end
  return math.max(1, columns // widest), widest
end

-- Writes the candidates in columns.
local function list_above(e, candidates)
  local left = #candidates - LISTED
  local list = table.move(candidates, 1, math.min(#candidates, LISTED), 1, {})
  for i, one in ipairs(list) do
    list[i] = one:gsub("\n", " ")
  end
  local n, width = columns_of(list, (e.terminal:size()))
  local parts = {}
  for i, one in ipairs(list) do
    local is_last = i % n == 0 or i == #list
    parts[i] = one .. (is_last and "\n" or (" "):rep(width - ah.terminal.width(one)))
  end
  e:print_line(table.concat(parts):sub(1, -2)
    .. (left > 0 and ("\n[%d more]"):format(left) or ""))
end

local function complete(e, asked)
  if not asked.complete then
    return
  end
  local at = e.edit.at
  local candidates, from = asked.complete(e.edit.text, at)
  from = from or e.edit.text:sub(1, at - 1):match "^.*%s()" or 1
  assert(math.type(from) == "integer" and from >= 1 and from <= at
    and (from == at or ah.terminal.character(e.edit.text, from) == from),
    "complete returned no place of a character before the cursor")
  local listed = e.edit:offer(candidates or {}, from)
  if listed then
    list_above(e, listed)
  end
end

-- Calls what a key asks for. Returns true if the line is over.
local function obey(e, outcome, asked)
  if outcome == "complete" then
    complete(e, asked)
  elseif outcome == "clear" then
    e.terminal:clear()
  elseif outcome == "suspend" then
    e.terminal:suspend()
    keep_typed(e, true)
  else
    return outcome ~= nil
  end
end

-- Takes events until the line is over; returns the outcome, and an error.
local function take_events(e, asked)
  local n = 0
  draw(e)
  while true do
    local event, err = next_event(e)
    if not event then
      e.gone = not err
      return err and "error" or "end", err
    end
    local outcome = e.edit:take(event)
    if obey(e, outcome, asked) then
      return outcome
    end
    n = (n + 1) % IN_A_ROW
    if n == 0 or not is_more(e) then
      draw(e)
    end
  end
end

local function prompts_of(asked)
  local prompt = asked.prompt or "> "
  return { prompt, asked.more or (" "):rep(ah.terminal.width(plain(prompt))) }
end

-- Removes the line from the screen, however the read ends.
local function stop(e)
  e.draft = e.edit.text
  e.edit = nil
  draw(e)
end

local function read_edited(e, asked)
  e.prompts, e.draft = prompts_of(asked), nil
  e.edit = edit.new { history = not asked.hidden and e.history.lines or nil, text = asked.text,
    at = asked.at }
  e.shown = asked.hidden and edit.new {} or e.edit
  local outcome, err, line
  do
    local _ <close> = setmetatable({}, { __close = function() stop(e) end })
    outcome, err = take_events(e, asked)
    line = e.edit
  end
  e.draft = nil
  if outcome ~= "enter" then
    return nil, outcome == "error" and err or outcome, line.text
  end
  if asked.echo ~= false then
    e:print_line(e.shown:whole(e.prompts))
  end
  return line.text
end

-- -- without editing ------------------------------------------------------------------------------

-- Returns the next line of the input, with what was typed before it ("": nothing).
local function read_on(e, asked, typed)
  if e.on_terminal then
    write_plain(e, (asked.hidden and "(This terminal shows what is typed.) " or "")
      .. (typed == NO_TEXT and plain(asked.prompt or "> ") or ""))
  end
  local ok, line, err = pcall(e.input.line, e.input)
  if e.on_terminal and not (ok and line) then
    write_plain(e, "\n") -- the cursor is behind the prompt
  end
  if not ok then
    if type(line) == "table" and line.code == "cancelled" then
      return nil, "interrupt", typed
    end
    error(line, 0)
  elseif not line then
    return nil, type(err) == "table" and err or "end", typed
  end
  line = typed .. ah._repair((line:gsub("\r$", "")))
  if e.on_terminal and edit.continues(line) then
    return read_on(e, asked, line:sub(1, -2) .. "\n")
  end
  return line
end

--- See the beginning of the file.
function Editor:read(asked)
  assert(not self.reading, "another task reads a line already")
  self.reading, asked = true, asked or {}
  local _ <close> = setmetatable({}, { __close = function() self.reading = false end })
  local line, why, text
  if open(self) then
    line, why, text = read_edited(self, asked)
  else
    self.input = self.input or ah._input()
    line, why, text = read_on(self, asked, NO_TEXT)
  end
  if line and self.on_terminal and asked.keep ~= false and not asked.hidden then
    self.history:add(line)
  end
  return line, why, text
end

local M = {}

--- Opens the editor. options.history: the path of the file for the lines; nil: they are not kept.
function M.open(options)
  local fit = is_ascii() and in_ascii or same
  local e = setmetatable({ waiting = {}, taken = 0, lines = {}, fit = fit,
    stream = streamed.new(fit) }, Editor)
  e.on_terminal = ah._is_terminal(0) and ah._is_terminal(1)
  e.signals = options and options.at_terminal or false
  e.rich = e.on_terminal or e.signals
  e.history = line_history.open(options and options.history)
  open(e)
  return e
end

return M
