--- Loads the command's programs: each is a text in the binary and runs when it is first used. A
-- program gets the library and `use`. Its globals are copies, so a script in the same state cannot
-- change them.
--
--   local ah, use, texts, later = ...
--   local plan = use "mock.plan"     -- what lua/agenthost/command/mock/plan.lua returns
--   local plan = later "mock.plan"   -- stands for that table, which is loaded at its first use
--   texts["mock.plan"]               -- its text
--
-- The command calls require("agenthost.command").call(name, member, ...), which calls this member
-- of the program, or the program itself if member is "", with the other arguments. It calls
-- .add(name, text, ...) with more texts, such as the pages of the reference.
local ah = require "agenthost"

-- Kept here, because a script may change them before a program is loaded.
local assert, gsub, load, setmetatable = assert, string.gsub, load, setmetatable

local LIBRARIES = { "coroutine", "debug", "io", "math", "os", "string", "table", "utf8" }

local texts, loaded = {}, {}
local function add(...)
  local list = { ... }
  for i = 1, #list, 2 do
    texts[list[i]] = list[i + 1]
  end
end
add(...)

local function copy(t)
  local same = {}
  for key, value in pairs(t) do
    same[key] = value
  end
  return same
end

local env = copy(_G)
for _, name in ipairs(LIBRARIES) do
  env[name] = copy(_G[name])
end

local use

local function later(name)
  return setmetatable({}, { __index = function(_, key) return use(name)[key] end })
end

function use(name)
  if loaded[name] == nil then
    local path = gsub(name, "%.", "/")
    local chunk = assert(load(texts[name], "=agenthost/command/" .. path .. ".lua", "t", env))
    loaded[name] = chunk(ah, use, texts, later)
  end
  return loaded[name]
end

package.loaded["agenthost.command"] = {
  use = use,
  add = add,
  call = function(name, member, ...)
    local program = use(name)
    return (member == "" and program or program[member])(...)
  end,
}
