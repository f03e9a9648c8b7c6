--- Saved prompts: texts NAME.md of the project (prompts/ beside its agenthost.conf) or of the user
-- (prompts/ beside the user's settings). A project's text speaks with the user's voice, so the user
-- is shown it and asked once; its hash is kept with the trusted folders (trusted.lua).
local ah, use = ...
local file, pairs_of, parts = use "settings.file", use "pairs", use "prompt.parts"
local trusted = use "trusted"

local fault, shown = pairs_of.fault, pairs_of.shown

local M = {}

M.MOST = 64 << 10 -- bytes of a text
local MANY = 1000 -- entries of a folder that are looked at
local LISTED = 20 -- prompts that a message lists
local PLACE = "{{words}}"

-- -- where ---------------------------------------------------------------------------------------

-- Returns the folders, the first of which counts: { folder, from, how (for pairs.read) } each.
local function places()
  local list, project = {}, file.project()
  local folder = project and project.folder .. "/prompts"
  if folder and ah._real_path(folder) == folder then -- no link
    list[1] = { folder = folder, from = "project", how = "file" }
  end
  folder = file.user_path():match "^(.*)/[^/]*$"
  list[#list + 1] = folder and { folder = folder .. "/prompts", from = "user", how = "link" }
  return list
end

local function is_name(name)
  return name:find "^[%w_][%w_-]*$" ~= nil
end

-- Adds the prompts of a folder, but for names that `seen` has.
local function add(list, place, seen)
  local fs <close> = ah._real_path(place.folder) and ah.filesystem { root = place.folder } or nil
  for _, entry in ipairs(fs and fs:list("", { max = MANY }) or {}) do
    local name = entry.name:match "^(.*)%.md$"
    local is_file = entry.type == "file" or entry.type == "link" and place.how == "link"
    if name and is_file and is_name(name) and not seen[name] then
      seen[name] = true
      list[#list + 1] = { name = name, path = place.folder .. "/" .. entry.name,
        from = place.from }
    end
  end
end

--- Returns the saved prompts: { name, path, from = "project"|"user" } each. A project's prompt
-- hides one of the user with the same name.
---@return table
function M.list()
  local list, seen = {}, {}
  for _, place in ipairs(places()) do
    add(list, place, seen)
  end
  return list
end

-- -- one of them ---------------------------------------------------------------------------------

-- Returns lines that say which prompts there are, or where they can be.
local function listed(list)
  local lines = {}
  for i = 1, math.min(#list, LISTED) do
    lines[i] = ("  %-20s %s"):format(list[i].name, shown(list[i].path))
  end
  if #list > LISTED then
    lines[#lines + 1] = ("  and %d more"):format(#list - LISTED)
  elseif #list == 0 then
    lines[1] = ("None is saved. It is a text NAME.md in prompts/ beside the project's %s, or in "
      .. "'%s'."):format(file.NAME, shown(file.user_path():gsub("[^/]*$", "prompts")))
  end
  return table.concat(lines, "\n")
end

-- Raises that there is no such prompt, with the nearest name and all others.
local function unknown(name)
  local list, names = M.list(), {}
  for i, one in ipairs(list) do
    names[i] = one.name
  end
  local near = ah.nearest(name, names)
  fault("there is no saved prompt '%s'%s\n%s", shown(name),
    near and (" (did you mean '%s'?)"):format(near) or "", listed(list))
end

-- Returns the text of a content without the white space at its end.
local function checked(content, path)
  local what = ("the saved prompt '%s'"):format(shown(path))
  parts.check_text(content, what, path)
  if #content > M.MOST then
    fault("%s has %d bytes, more than %d KiB", what, #content, M.MOST >> 10)
  elseif not content:find "%S" then
    fault("%s is empty", what)
  end
  return content:match "^(.-)%s*$"
end

--- Returns the prompt of this name: { name, path, from, text, hash, trusted }. `trusted` is false
-- for a project's prompt that the user has not agreed to. Raises a fault if there is none.
---@param name string
---@return table
function M.find(name)
  for _, place in ipairs(is_name(name) and places() or {}) do
    local path = place.folder .. "/" .. name .. ".md"
    local content, why, missing = pairs_of.read(path, place.how)
    if content then
      local record, hash = trusted.find(path), trusted.hash(content)
      return { name = name, path = path, from = place.from, text = checked(content, path),
        hash = hash, trusted = place.from == "user" or record ~= nil and record.settings == hash }
    elseif not missing then
      pairs_of.unreadable("saved prompt", path, why)
    end
  end
  unknown(name)
end

--- Asks the person, unless the prompt is trusted, whether it may be sent, and keeps the consent.
-- Raises a fault without it. confirm: shows texts of ah.terminal and asks a question; returns true,
-- or false and why, as prompt/consent.lua does.
---@param one table
---@param confirm fun(texts: table, question: string): boolean, string?
function M.agree(one, confirm)
  if one.trusted then
    return
  end
  local yes, why = confirm({ { ("A prompt of the project, %s:"):format(shown(one.path)),
    bold = true }, "\n", one.text }, "Send it as your own words, now and later?")
  if not yes then
    fault("the saved prompt '%s' is the project's, and not sent: %s\nRead it, and run this once "
      .. "at a terminal; or name the file: agenthost -p @%s", one.name, why, shown(one.path))
  end
  trusted.keep { path = one.path, settings = one.hash, variables = trusted.hash(nil) }
  one.trusted = true
end

--- Returns the text of a prompt with these words: in each {{words}}, or else behind it. `instead`
-- takes the place of {{words}} if there are no words.
---@param one table
---@param words string "": none
---@param instead? string
---@return string
function M.fill(one, words, instead)
  if not one.text:find(PLACE, 1, true) then
    return words == "" and one.text or one.text .. "\n\n" .. words
  end
  words = words ~= "" and words or instead or ""
  if words == "" then
    fault("the saved prompt '%s' needs words for its %s", one.name, PLACE)
  end
  return (one.text:gsub(PLACE, function() return words end))
end

return M
