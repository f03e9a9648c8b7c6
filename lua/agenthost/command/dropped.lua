--- Words for the outcome of a rewind (docs/reference/stores.md): in full for agenthost rewind, in
-- brief for a chat. It may come from any store.
local ah, use = ...
local changed = use "changed"

local line = changed.line

local MOST = 12 -- lines in brief
local LONGEST = 1000 -- characters of a line about what is dropped

local M = {}

-- The words for each kind of item that is dropped.
local DROPPED = {
  turn = function(item)
    return item.question and "the answer to: " .. item.question or "the answer, and its results"
  end,
  call = function(item)
    return ("call %s of %s was begun: what it did outside stays"):format(item.id, item.tool)
  end,
  question = function(item)
    return "the question, which has no answer: " .. (item.question or "(an image)")
  end,
  ask = function(item)
    return ("ask %s is closed: %s"):format(item.id, item.question)
  end,
  step = function(item)
    return ("step %s was begun: what it did outside stays"):format(item.what or item.step)
  end,
  file = function(item, files)
    return not files and ("file %s/%s stays as it is now"):format(item.root, item.path) or nil
  end,
}

-- Returns the path of a file; below the current folder without that.
local function path_of(item)
  local root = item.root or item.filesystem
  return root == ah._real_path "." and item.path or ("%s/%s"):format(root, item.path)
end

-- The words for each kind of item that stays.
local STAYS = {
  file = path_of,
  entity = function(item) return ("entity %s %s"):format(item.class, item.id) end,
  session = function(item) return "session " .. item.name end,
  budget = function(item) return "budget " .. item.name end,
  files = function(item) return "files in memory " .. item.name end,
}

local function add_stays(lines, found)
  for _, item in ipairs(found.stays) do
    lines[#lines + 1] = ("%s stays as it is: %s"):format(line(STAYS[item.kind](item)),
      line(item.why))
  end
end

--- Returns the lines for all of it. files: files of the machine are put back, too.
function M.lines(found, files)
  local lines = {}
  for _, item in ipairs(found.dropped) do
    local words = DROPPED[item.kind](item, files)
    lines[#lines + 1] = words and ("turn %d: %s"):format(item.turn, ah._line(words, LONGEST))
  end
  for _, one in ipairs(changed.lines(found.changes, "")) do
    lines[#lines + 1] = one
  end
  add_stays(lines, found)
  return lines
end

-- -- in brief ----------------------------------------------------------------------------------

local FILE = { add = "%s is there again", remove = "%s is removed", change = "%s is as it was" }

local CHANGED = {
  file = function(item) return (FILE[item.op] or FILE.change):format(path_of(item)) end,
  slice = function(item) return ("slice %s is as it was"):format(item.name) end,
  entity = function(item) return ("entity %s %s is as it was"):format(item.class, item.id) end,
}

-- Adds a line for the calls of each tool that may have had effects outside.
local function add_calls(lines, found, harmless)
  local names, count = {}, {}
  for _, item in ipairs(found.dropped) do
    local name = item.kind == "call" and not harmless[item.tool] and item.tool
    if name then
      names[#names + 1] = not count[name] and name or nil
      count[name] = (count[name] or 0) + 1
    end
  end
  for _, name in ipairs(names) do
    lines[#lines + 1] = line(("%s was called%s: what it did outside stays"):format(name,
      count[name] > 1 and (" %d times"):format(count[name]) or ""))
  end
end

-- Adds a line for each file of the machine that stays as it is now.
local function add_kept(lines, found)
  local seen = {}
  for _, item in ipairs(found.dropped) do
    local path = item.kind == "file" and path_of(item)
    if path and not seen[path] then
      seen[path] = true
      lines[#lines + 1] = line(path .. " stays as it is now")
    end
  end
end

--- Returns a few lines for what changes and what stays. harmless: names of the tools whose calls
-- have no effects outside.
function M.brief(found, files, harmless)
  local lines = {}
  for _, item in ipairs(found.changes) do
    lines[#lines + 1] = line(CHANGED[item.kind](item))
  end
  if not files then
    add_kept(lines, found)
  end
  add_calls(lines, found, harmless)
  add_stays(lines, found)
  if #lines > MOST then
    local more = ("... and %d more"):format(#lines - MOST)
    lines = table.move(lines, 1, MOST, 1, {})
    lines[MOST + 1] = more
  end
  return lines
end

return M
