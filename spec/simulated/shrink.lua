--- Finds a short program that fails as the one of a seed does, by leaving out what is not needed:
--
--   lua5.4 spec/simulated/shrink.lua build/simulated SEED [FILE]
--
-- Prints the program and its faults; FILE (by default a temporary one) keeps it.
local programs = dofile "spec/simulated/program.lua"

local M = {}

local MOST_TRIES, SECONDS, AGAIN = 3000, 3, 2

local function write(path, program)
  local f <close> = assert(io.open(path, "w"))
  f:write(programs.text(program))
end

-- Returns the faults of the program, or nil if it has none. What a task does may depend on
-- addresses: a program has some tries.
local function faults_of(shrink, program, tries)
  write(shrink.path, program)
  for _ = 1, tries do
    shrink.tries = shrink.tries + 1
    local pipe <close> = assert(io.popen(("%s --seconds %d %s 2>&1"):format(shrink.binary, SECONDS,
      shrink.path)))
    local text = pipe:read "a"
    if not pipe:close() then
      return text
    end
  end
end

-- The fault without its numbers: another one must not take its place.
local function kind_of(text)
  local first = text:match "ERROR: %w+: %S+" or text:match "\n%s+(%C+)" or text
  return (first:gsub("%d+", "N"):gsub("0x%x+", "N"))
end

local function fails(shrink, program)
  local text = shrink.tries < MOST_TRIES and faults_of(shrink, program, AGAIN)
  if text and kind_of(text) == shrink.kind then
    shrink.text = text
    return true
  end
end

-- Tries each change of a list of statements in place: without one, or with the statements of one of
-- its bodies in its stead. Returns true if one could be made.
local function shrink_list(shrink, program, list)
  for i = #list, 1, -1 do
    local st = table.remove(list, i)
    if fails(shrink, program) then
      return true
    end
    for _, inner in ipairs(st) do
      table.move(list, i, #list, i + #inner)
      table.move(inner, 1, #inner, i, list)
      if fails(shrink, program) then
        return true
      end
      table.move(list, i + #inner, #list + #inner, i)
    end
    table.insert(list, i, st)
    for k = #st, 1, -1 do
      local inner = table.remove(st, k)
      if fails(shrink, program) then
        return true
      end
      table.insert(st, k, inner)
    end
    for _, inner in ipairs(st) do
      if shrink_list(shrink, program, inner) then
        return true
      end
    end
  end
end

-- Numbers that change nothing become 1.
local function shrink_numbers(shrink, program, list)
  for _, st in ipairs(list) do
    for _, key in ipairs { "n", "m" } do
      local value = st[key]
      st[key] = 1
      if value ~= 1 and not fails(shrink, program) then
        st[key] = value
      end
    end
    for _, inner in ipairs(st) do
      shrink_numbers(shrink, program, inner)
    end
  end
end

--- Returns the text of a short program and its faults; nil if the seed does not fail.
function M.shrink(binary, seed, path)
  local shrink = { binary = binary, path = path, tries = 0 }
  local program = programs.make(seed)
  shrink.text = faults_of(shrink, program, 5)
  if not shrink.text then
    return nil
  end
  shrink.kind = kind_of(shrink.text)
  for _, key in ipairs { "cancel" } do
    local value = program[key]
    program[key] = nil
    program[key] = not fails(shrink, program) and value or nil
  end
  while shrink_list(shrink, program, program.body) do end
  shrink_numbers(shrink, program, program.body)
  while shrink_list(shrink, program, program.body) do end
  write(path, program)
  return programs.text(program), shrink.text
end

if arg and arg[0] and arg[0]:find "shrink%.lua$" then
  local path = arg[3] or os.tmpname()
  local text, faults = M.shrink(arg[1], math.tointeger(tonumber(arg[2])), path)
  io.write(text and ("%s%s%s %s\n"):format(text, faults, arg[1], path)
    or "the program does not fail alone\n")
end

return M
