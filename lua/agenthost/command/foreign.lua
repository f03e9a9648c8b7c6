--- Runs code of scripts in the command's Lua state. A script may replace the methods of strings and
-- keeps its own versions; the command's code always uses the original ones and an unchanged
-- library. (The command's globals are copies: see start.lua.)
local ah = ...

local foreign = {}

-- Metatable of strings for our code: original functions, then those that scripts added to `string`.
-- Arithmetic with strings goes through it, too.
local OURS = {}
for name, value in next, getmetatable "" do
  OURS[name] = value
end
OURS.__index = setmetatable(string, { __index = _G.string })
local put_metatable, traceback = debug.setmetatable, debug.traceback

local theirs, meta = getmetatable "", getmetatable(ah)

local kept = {} -- tables that are restored: { table, a copy of its fields }

local function keep(t)
  local fields = {}
  for name, value in next, t do
    fields[name] = value
  end
  kept[#kept + 1] = { t, fields }
end

keep(ah)

local LIBRARIES = { "coroutine", "debug", "io", "math", "os", "package", "string", "table", "utf8" }

--- Also restores the globals and the standard libraries from now on, for a state of our own.
function foreign.keep_globals()
  if kept[2] then
    return
  end
  keep(_G)
  for _, name in ipairs(LIBRARIES) do
    keep(_G[name])
  end
  kept[#kept + 1] = { package.loaded, { agenthost = ah,
    ["agenthost.command"] = package.loaded["agenthost.command"] } }
end

-- Puts back the fields that scripts removed from the kept tables.
local function mend()
  put_metatable(ah, meta)
  for _, one in ipairs(kept) do
    local t, fields = one[1], one[2]
    for name, value in next, fields do
      if rawget(t, name) == nil then
        rawset(t, name, value)
      end
    end
  end
end

local function to_us(...)
  theirs = getmetatable ""
  mend()
  put_metatable("", OURS)
  return ...
end

local function to_them(...)
  put_metatable("", theirs)
  return ...
end

--- Calls coroutine.resume with the string methods of the script.
function foreign.resume(co, ...)
  to_them()
  return to_us(coroutine.resume(co, ...))
end

-- Metatable of an error that is printed without a traceback of the command's own code.
local FAULT = { __name = "agenthost.fault", __tostring = function(fault) return fault.words end }

local function traced(err)
  to_us()
  if type(err) == "string" then
    local ours = "\n\t%[C%]: in [^\n]*'xpcall'.*$"
    return setmetatable({ words = traceback(err, 2):gsub(ours, "\n\t[C]: in ?") }, FAULT)
  end
  return err
end

--- Runs a script's text with its own string methods. Raises its error, with a traceback that has
-- only the script's lines.
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

-- Returns the results of a pcall, or raises its error.
local function results_of(ok, ...)
  if not ok then
    error((...), 0)
  end
  return ...
end

local open = 0 -- calls of functions of the script that have not returned

local function closed(...)
  open = open - 1
  return ...
end

--- Wraps a function of the script for our calls.
function foreign.called(fn)
  return function(...)
    open = open + 1
    to_them()
    return results_of(closed(to_us(pcall(fn, ...))))
  end
end

-- Code of the script that has returned has had its tables mended: only code that waits may have
-- changed them since.
local function back_to_us(...)
  if open > 0 then
    return to_us(...)
  end
  theirs = getmetatable ""
  put_metatable("", OURS)
  return ...
end

--- Wraps a function of ours that waits while scripts run, for our calls.
function foreign.waits(fn)
  return function(...)
    to_them()
    return results_of(back_to_us(pcall(fn, ...)))
  end
end

--- Wraps a function of ours for calls by the script: it runs with our string methods.
function foreign.door(fn)
  return function(...)
    to_us()
    return results_of(to_them(pcall(fn, ...)))
  end
end

return foreign
