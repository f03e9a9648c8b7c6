--- agenthost -i: reads Lua code and prints what it returns. The code runs in the script's state, at
-- the top of it: its tasks go on while the next line is typed. A Ctrl-C ends what the code waits
-- for, or the code itself (src/cli/signals.c).
local ah, use = ...
local in_state = use "pairs".in_state
local editor_of, traced = use "editor", use "traced"

local PROMPT, MORE = "> ", ">> "
local INPUT = "=input"

-- -- code of the script ------------------------------------------------------------------------

-- Metatable of an error that prints its words.
local FAULT = { __name = "agenthost.fault", __tostring = function(fault) return fault.words end }

local function load_script(kind, text)
  if kind == "eval" then
    return load("local ah = require 'agenthost' " .. text, "=-e", "t")
  end
  return loadfile(text, "t")
end

-- Runs the script; an agent that it returns is the global `agent`.
local function run_script(kind, text, ...)
  _G.arg = { [0] = kind == "eval" and "-e" or kind == "script" and text or "-i", ... }
  if kind == "" then
    return
  end
  local chunk, why = load_script(kind, text)
  if not chunk then
    error(setmetatable({ words = why }, FAULT))
  end
  local ok, result, err = xpcall(chunk, traced, ...)
  if not ok then
    error(result, 0)
  elseif result == nil and err ~= nil then
    error(err, 0)
  end
  local meta = debug.getmetatable(result)
  if type(meta) == "table" and meta.__name == "agenthost.agent" then
    _G.agent = result
  end
end

-- Returns the function of an input: first as an expression. Else nil, why, and whether more lines
-- may complete it.
local function compile(text)
  local code, equals = text:gsub("^%s*=", "")
  local chunk, why = load("return " .. code, INPUT, "t")
  local open = not chunk and why:find "near '?<eof>'?$" ~= nil
  if not chunk and equals == 0 then
    chunk, why = load(text, INPUT, "t")
    open = open or not chunk and why:find "near '?<eof>'?$" ~= nil
  end
  return chunk, why, open
end

-- Returns the texts of the values in one.
local function text_of(...)
  local list = table.pack(...)
  for i = 1, list.n do
    list[i] = use "repl.value"(list[i])
  end
  local text = table.concat(list, "\t")
  return list.n > 1 and text:find("\n", 1, true) and table.concat(list, "\n") or text
end

-- Calls the function of an input. Returns whether it has not failed, and the text of its values
-- (nil: it has none) or of its error. __tostring of a value may raise an error, too.
local function evaluate(chunk)
  local results = table.pack(xpcall(chunk, traced))
  local ok = results[1]
  if results.n == 1 then
    return ok
  end
  local fine, text = xpcall(text_of, traced, table.unpack(results, 2, results.n))
  if fine then
    return ok, text
  end
  fine, text = pcall(tostring, text)
  return false, fine and text or "an error that cannot be shown"
end

-- -- output ------------------------------------------------------------------------------------

local function harmless(text, descriptor)
  return ah._is_terminal(descriptor) and text:gsub("[^\n]+", ah._harmless) or text
end

-- Raises if the output cannot be written, so that the inputs end.
local function flush()
  local ok, why = io.stdout:flush()
  if not ok then
    error("cannot write to standard output: " .. why, 0)
  end
end

local function tell(r, text)
  if r.editor.rich then
    r.editor:print_line(text)
  else
    io.stdout:write(harmless(text, 1), "\n")
    flush()
  end
end

local function tell_error(r, text)
  if r.editor.rich then
    r.editor:print_line { text, color = "red" }
  else
    io.stderr:write(harmless(text, 2), "\n")
  end
end

-- -- lines -------------------------------------------------------------------------------------

-- True for the error of a Ctrl-C that came just before or after the code.
local function is_interrupt(err)
  return type(err) == "table" and err.code == "cancelled"
    or type(err) == "string" and err:find "interrupted$" ~= nil
end

-- While a line is typed, `print` of other tasks writes above it.
local function read_line(r, asked)
  local theirs = _G.print
  local function above(...)
    local list = table.pack(...)
    for i = 1, list.n do
      list[i] = tostring(list[i])
    end
    r.editor:print_line(table.concat(list, "\t"))
  end
  if r.editor.rich and theirs == r.print then
    rawset(_G, "print", above)
  end
  local _ <close> = setmetatable({}, { __close = function()
    if rawget(_G, "print") == above then
      rawset(_G, "print", theirs)
    end
  end })
  return r.editor:read(asked)
end

-- Returns the next input, its function, and why it has none; nil at the end.
local function read_input(r)
  local text, chunk, why, open
  repeat
    local line, ended = read_line(r, { prompt = text and MORE or PROMPT, keep = false,
      complete = function(...) return use "repl.names"(...) end })
    if ended == "interrupt" and not r.editor.on_terminal then
      error("interrupted", 0)
    elseif ended == "interrupt" then
      text = nil
    elseif not line and ended ~= "end" then
      error(ended, 0)
    elseif not line then
      return text, nil, why
    else
      text = (text and text .. "\n" or "") .. line
      chunk, why, open = compile(text)
    end
  until text and not open
  return text, chunk, why
end

local function perform(r, text, chunk, why)
  if r.editor.on_terminal then
    r.editor.history:add(text)
  end
  if not chunk then
    r.failed = true
    return tell_error(r, why)
  end
  r.editor:pause()
  local ok, words = evaluate(chunk)
  flush()
  local calm, why_not = pcall(ah.yield) -- takes a cancel that has ended code, and is pending
  if not calm and not r.editor.on_terminal then
    error(why_not, 0)
  end
  r.editor:resume()
  if not ok then
    r.failed = true
    tell_error(r, words)
  elseif words then
    tell(r, words)
  end
end

-- Reads and performs an input; returns false at the end of the inputs.
local function step(r)
  local text, chunk, why = read_input(r)
  if text then
    perform(r, text, chunk, why)
  end
  return text ~= nil
end

-- Performs inputs until their end. Without a terminal a cancel is for all of them.
local function loop(r)
  local ok, more
  repeat
    ok, more = pcall(step, r)
    if not ok and not (r.editor.on_terminal and is_interrupt(more)) then
      error(more, 0)
    end
  until ok and not more
end

local M = {}

--- Runs the script of a line, and reads inputs. Returns the exit code: 1 if an input failed that
-- does not come from a terminal.
---@param quiet string "quiet" for -q, else ""
---@param kind "eval"|"script"|"" "eval": `text` is the code of -e; "script": it is a path
---@param ... string the words for the script
---@return string
function M.run(quiet, kind, text, ...)
  run_script(kind, text, ...)
  _G.ah = ah
  local editor <close> = editor_of.open { history = in_state "repl_history" }
  local r = { editor = editor, print = _G.print }
  if editor.on_terminal then
    ah.interactive()
    if quiet == "" then
      tell(r, ("agenthost %s, Lua 5.4. Tab completes, Ctrl-D ends."):format(ah.version))
    end
    if editor.history.why and quiet == "" then
      tell_error(r, "the lines are not kept: " .. tostring(editor.history.why))
    end
  end
  loop(r)
  return r.failed and not editor.on_terminal and "1" or "0"
end

return M
