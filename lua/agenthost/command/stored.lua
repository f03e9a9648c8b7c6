--- The store of the commands that look at conversations or go on with them, and its conversations.
local ah, use = ...
local pairs_of, text = use "pairs", use "text"

local M = {}

local NAMED = 5 -- the most ids that a message names
local MAX_FILE = 1 << 30 -- bytes of exports that are read
local EXPORT = '{"format":"agenthost-stream"' -- the beginning of the first line of an export
local fault, shown = pairs_of.fault, pairs_of.shown

--- The name of the agents of the command's own conversations.
M.OWN = "agenthost"

--- The flag for the store.
M.flag = { name = "store", value = "FILE", once = true,
  doc = "the store, else that of AGENTHOST_STORE or of the settings" }

-- Returns the path that the environment or the settings name; nil if they name none.
local function configured(line)
  local here = line.store or os.getenv "AGENTHOST_STORE" or ""
  if here ~= "" then
    return here
  elseif not line.configured then
    return nil
  end
  local said = use "line".settings(line, "")
  local words = said:match "^fault\n(.*)$"
  if words then
    fault("%s", words)
  end
  return said:match "\nput AGENTHOST_STORE=([^\n]*)\n"
end

--- Returns the path of the store: that of --store, of AGENTHOST_STORE, of the settings, or the
-- default, and true if it is the default; nil without any.
---@param flags table
---@param line table as line.lua has read it
function M.path(flags, line)
  local path = flags.store or configured(line)
  return path or pairs_of.in_state "store.db", not path
end

--- Opens the store: that of --store, of AGENTHOST_STORE, of the settings, or the default. Returns
-- it, its path, and the words that name it on a command line ("" for the default).
---@param flags table
---@param line table as line.lua has read it
---@param make boolean? a store that is missing is made
function M.open(flags, line, make)
  local named = M.path(flags, line)
    or fault "no store is given, and HOME is not set\nGive --store FILE."
  local real, why = ah._real_path(named)
  if not real and not make then
    fault("cannot open the store '%s': %s\nIt is made by the run of an agent that has an `id`: "
      .. "agenthost --store FILE script.lua", shown(named), why)
  end
  local store, err = ah.store(real or named)
  if not store then
    fault("%s", err.message)
  end
  return store, store.path, flags.store and " --store " .. M.quoted(store.path) or ""
end

--- Returns a word of a shell's command line. One that a terminal would not print as it is has the
-- form $'...', in which such bytes are octal numbers.
function M.quoted(word)
  if word:find "^[%w_./:@=+-]+$" then
    return word
  elseif ah._harmless(word) == word then
    return "'" .. word:gsub("'", "'\\''") .. "'"
  end
  return "$'" .. word:gsub("[\\']", "\\%0"):gsub("[^\32-\126]", function(c)
    return ("\\%03o"):format(c:byte())
  end) .. "'"
end

-- Returns "a, b and 3 more".
local function listed(found)
  local ids = {}
  for i = 1, math.min(#found, NAMED) do
    ids[i] = text.clean(found[i].conversation)
  end
  return table.concat(ids, ", ") .. (#found > NAMED and (" and %d more"):format(#found - NAMED)
    or "")
end

local function unknown(store, id, path)
  local ids = {}
  for i, one in ipairs(assert(ah._conversations(store, ""))) do
    ids[i] = one.conversation
  end
  local near = ah.nearest(id, ids)
  fault("there is no conversation '%s' in '%s'%s\nagenthost list shows which there are.", shown(id),
    shown(path), near and (" (did you mean %s?)"):format(text.clean(near)) or "")
end

--- Returns the conversation with this id, or with this beginning of an id that no other one has.
---@return table { conversation, changed, messages, label }
function M.find(store, id, path)
  local found = assert(ah._conversations(store, id))
  for _, one in ipairs(found) do
    if one.conversation == id then
      return one
    end
  end
  if #found > 1 then
    fault("several conversations begin with '%s': %s", shown(id), listed(found))
  end
  return found[1] or unknown(store, id, path)
end

--- Returns the conversation of this folder that was changed last and for which `fits` is true of
-- its label; nil if there is none.
function M.last(store, fits)
  local here = ah._real_path "."
  for _, one in ipairs(assert(ah._conversations(store, ""))) do
    local label = one.label or {}
    if label.folder == here and fits(label) then
      return one
    end
  end
end

--- Returns the conversation that M.find finds, or without an id the last one of this folder.
function M.find_or_last(store, id, path)
  if id then
    return M.find(store, id, path)
  end
  return M.last(store, function() return true end)
    or fault("no conversation of this folder is in '%s'\nagenthost list shows those of other "
      .. "folders.", shown(path))
end

-- Returns the content of a file; "-" is standard input.
local function read_file(path)
  local f, why, content = io.stdin, nil, nil
  if path ~= "-" then
    f, why = io.open(path, "rb")
    why = why and why:sub(#path + 3)
  end
  if f then
    content, why = f:read(MAX_FILE + 1)
  end
  if f and f ~= io.stdin then
    f:close()
  end
  if not content then
    fault("cannot read the export '%s': %s", shown(path), why or "it is empty")
  elseif #content > MAX_FILE then
    fault("the export '%s' is larger than 1 GiB: export fewer conversations a file", shown(path))
  end
  return content
end

--- Returns the exports of a file, each with its first line; of another file, its content.
---@return string[] parts
---@return boolean exports
function M.read_exports(path)
  local content = read_file(path)
  local parts, from = {}, 1
  repeat
    local at = content:find("\n" .. EXPORT, from, true)
    parts[#parts + 1] = content:sub(from, at or -1)
    from = at and at + 1
  until not from
  return parts, content:sub(1, #EXPORT) == EXPORT
end

--- Returns `run` of a command, with faults as exit code 2 and a message.
function M.carefully(run)
  return function(...)
    local done = table.pack(pcall(run, ...))
    if done[1] then
      return table.unpack(done, 2, done.n)
    elseif type(done[2]) == "table" and done[2].words then
      return 2, done[2].words
    end
    error(done[2], 0)
  end
end

return M
