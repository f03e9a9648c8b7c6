--- Code that is not ours, run in our state: it may replace what methods of strings are, and finds
-- them as it left them; we find ours, and the library whole. (Globals of ours are copies: see
-- start.lua.)
local ah = ...

local foreign = {}

-- What they add is there, too.
local OURS = { __index = setmetatable(string, { __index = _G.string }) }
local put_metatable, traceback = debug.setmetatable, debug.traceback

local theirs, meta, library = getmetatable "", getmetatable(ah), {}
for name, value in next, ah do
  library[name] = value
end

-- What they took out of the library's table is there again.
local function mend_library()
  put_metatable(ah, meta)
  for name, value in next, library do
    if rawget(ah, name) == nil then
      ah[name] = value
    end
  end
end

local function to_us(...)
  theirs = getmetatable ""
  mend_library()
  put_metatable("", OURS)
  return ...
end

local function to_them(...)
  put_metatable("", theirs)
  return ...
end

--- As coroutine.resume, with their strings.
function foreign.resume(co, ...)
  to_them()
  return to_us(coroutine.resume(co, ...))
end

-- An error whose words are told as they are: no lines of ours follow them.
local FAULT = { __name = "agenthost.fault", __tostring = function(fault) return fault.words end }

local function traced(err)
  to_us()
  if type(err) == "string" then
    local ours = "\n\t%[C%]: in [^\n]*'xpcall'.*$"
    return setmetatable({ words = traceback(err, 2):gsub(ours, "\n\t[C]: in ?") }, FAULT)
  end
  return err
end

--- Runs a script's text, with their strings. Raises what it raises, traced to its own lines.
function foreign.run_text(text, name)
  local chunk, why = load(text, name, "t")
  if not chunk then
    error(setmetatable({ words = why }, FAULT))
  end
  to_them()
  local ok, err = to_us(xpcall(chunk, traced))
  if not ok then
    error(err, 0)
  end
end

--- A function for them to call, which runs with our strings. Where it raises they keep ours.
function foreign.door(fn)
  return function(...)
    to_us()
    return to_them(fn(...))
  end
end

return foreign
