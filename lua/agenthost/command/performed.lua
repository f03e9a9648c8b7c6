--- Performs the command of a line that line.lua has read. All members but `run` are called by the C
-- side, with the code that `passed` made in the state that has read the line, since they run in
-- another one. They return
--   the exit code, a line end, and a message for stderr; or
--   "found", a line end, and the findings for `tell`; or
--   "resume", a line end, and lines NAME VALUE that name a script to run.
local ah, use = ...

local writer, is_terminal = ah._writer, ah._is_terminal -- kept, because a script may remove them

local M = {}

-- -- the line ------------------------------------------------------------------------------------

-- Returns Lua code without a line end for a string, a number, a boolean, or a table of these. JSON
-- would not do: words of a command line can have any bytes.
local function code_of(value)
  if type(value) ~= "table" then
    return (("%q"):format(value):gsub("\\\n", "\\n"))
  end
  local parts = {}
  for key, one in pairs(value) do
    parts[#parts + 1] = ("[%s]=%s"):format(code_of(key), code_of(one))
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- Returns the line as code, for the other members: what its command gets of it.
function M.passed(line)
  return code_of { name = line.command.name, words = { table.unpack(line.words, line.at) },
    flags = line.flags, literal = line.literal, settings = line.settings,
    configured = line.configured }
end

local function line_of(code)
  return load("return " .. code, "=line", "t", {})()
end

-- -- output --------------------------------------------------------------------------------------

-- Metatable of an error that is printed without a traceback.
local LOST = { __name = "agenthost.fault", __tostring = function(lost) return lost.words end }

local function same(s)
  return s
end

-- Returns the output of a program, with `write` and `flush`, which raise if they fail. A terminal
-- obeys nothing of what is written, wherever it comes from.
local function output(descriptor)
  local file = descriptor == "1" and io.stdout or writer(tonumber(descriptor))
  local clean = is_terminal(tonumber(descriptor)) and use "styled".harmless or same
  local function fine(ok, why)
    return ok or error(setmetatable({ words = "cannot write to standard output: " .. why }, LOST))
  end
  local out = {}
  function out.write(self, ...)
    for i = 1, select("#", ...) do
      fine(file:write(clean(tostring((select(i, ...))))))
    end
    return self
  end
  function out.flush(self)
    fine(file:flush())
    return self
  end
  return out
end

-- Returns the answer for a program that has found a script to run: lines NAME VALUE.
local function script_of(found)
  local lines = {}
  for _, pair in ipairs(found) do
    local name, value = pair[1], pair[2]
    lines[#lines + 1] = value and name .. " " .. value or nil
  end
  return "resume\n" .. table.concat(lines, "\n") .. "\n"
end

local function ended(out, code, words)
  out:flush()
  if type(code) == "table" then
    return script_of(code)
  end
  return ("%d\n%s"):format(code or 0, words or "")
end

-- -- members -------------------------------------------------------------------------------------

--- Runs the command, in the state that has read the line or in another one.
---@param descriptor string number of the file descriptor that the command writes to
---@return string
function M.run(line, command, words, descriptor)
  local out = output(descriptor)
  return ended(out, command.run(line.flags, words, out, line))
end

-- Returns the program of a command, or of the action of "COMMAND ACTION".
local function program(name)
  return use((name:gsub(" ", ".")))
end

--- Runs it in a state of its own. store: AGENTHOST_STORE, which is no longer in the environment.
function M.apart(code, descriptor, store)
  local line = line_of(code)
  local command = program(line.name)
  line.store = store ~= "" and store or nil
  if not command.tell then
    return M.run(line, command, line.words, descriptor)
  end
  return "found\n" .. (command.find or command.run)(line.flags, line.words, nil, line)
end

--- Calls the member `answer` of the command, in place of a script.
---@param found string what its `run` has found
---@param color string "auto", "always" or "never"
function M.answer(code, found, color)
  local line = line_of(code)
  line.color = color
  return ended(io.stdout, program(line.name).answer(line.flags, line.words, line, found))
end

--- Prints the findings of `apart`, in a Lua state of the command's own.
function M.tell(code, descriptor, found)
  local line, out = line_of(code), output(descriptor)
  return ended(out, program(line.name).tell(line.flags, found, out))
end

return M
