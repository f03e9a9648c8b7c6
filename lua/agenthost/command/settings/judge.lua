--- Decides which settings of a project's file take effect. In a trusted file, all do. In a file
-- that is not trusted, only settings that start nothing, send nothing elsewhere and raise no cost
-- do; in such a file of another user, or in another user's folder, none do.
local ah, use = ...
local file, pairs_of, rows, trusted = use "settings.file", use "pairs", use "settings.rows",
  use "trusted"

local M = {}

-- Returns the provider of a model's name, by the user's own settings; nil if it has none.
local function provider_of(name, own)
  local model = own["models." .. name]
  if model then
    local said = model.text
    said = said:sub(1, 1) == "{" and (ah.json.decode(said) or {}).model or said
    name = type(said) == "string" and said or name
  end
  return name:match "^([^/]+)/"
end

-- Returns the reason why a model needs trust; nil if it does not. A model of the provider in the
-- user's own settings sends nothing to another provider.
local function model_needs(entry, own)
  local provider = provider_of(entry.text, own)
  if not provider then
    return "names a model that only the project knows"
  elseif provider ~= "demo" and not (own.model and provider_of(own.model.text, own) ==
    provider) then
    return "uses a provider that your own settings do not use"
  end
end

local function limit_needs(entry, own)
  if type(entry.value) == "boolean" then
    return not entry.value and own[entry.name] and own[entry.name].value
      and "ends what is true without it" or nil
  end
  local otherwise = own[entry.name] and own[entry.name].value or tonumber(entry.row.default)
  if otherwise and entry.value > otherwise then
    return ("raises a limit that is %s without it"):format(otherwise)
  end
end

--- Returns the reason why the setting needs trust; nil if it does not. own: the user's settings by
-- name.
function M.needs(entry, own)
  local row = entry.row
  if row.name == "model" then
    return model_needs(entry, own)
  elseif row.limit then
    return limit_needs(entry, own)
  end
  return row.needs
end

--- Returns the text and the path of the variables' file that settings of a project name; if it
-- cannot be read, nil, the path and the reason; nothing if no setting names one.
function M.variables_of(settings)
  for _, entry in ipairs(settings) do
    if entry.name == "env-file" then
      local path = rows.path_in(entry.path, entry.text)
      local text, why, missing = pairs_of.read(path, "link")
      return text, path, not text and not missing and why or nil
    end
  end
end

-- Leaves a setting out, with the reason.
local function leave(project, entry, why)
  project.left[#project.left + 1] = { name = entry.name, line = entry.line, why = why }
end

local function judge_all(project, own)
  for _, entry in ipairs(project.settings) do
    local why = not project.trusted and M.needs(entry, own)
    if not why then
      project.holds[#project.holds + 1] = entry
    else
      leave(project, entry, why)
    end
  end
end

-- The variables take effect only if their file is the same as when the settings were trusted.
local function judge_variables(project, record)
  if not project.trusted then
    return
  end
  local text, path, why = M.variables_of(project.settings)
  if text and trusted.hash(text) == record.variables then
    project.variables = { text = text, path = path }
    return
  end
  for i, entry in ipairs(project.holds) do
    if entry.name == "env-file" and (text or why) then
      leave(project, entry, why or "names a file that has changed since it was trusted")
      table.remove(project.holds, i)
      return
    end
  end
end

--- Returns the project's file, nil if there is none. `holds` has the settings that take effect,
-- `left` the others; `trusted` and `changed` (since it was trusted) are booleans; variables =
-- { text, path } is the content of its env-file.
---@param own table the user's settings by name
function M.project(own)
  local project = file.project()
  if not project then
    return nil
  end
  project.holds, project.left, project.settings = {}, {}, {}
  project.trusted, project.changed = false, false
  if not project.text then
    if project.mine then
      pairs_of.unreadable("project's settings", project.path, project.why)
    end
    return project
  end
  local record, unknown = trusted.find(project.path)
  project.unknown = unknown
  project.trusted = record ~= nil and record.settings == trusted.hash(project.text)
  project.changed = record ~= nil and not project.trusted
  if not project.mine and not project.trusted then
    return project -- the file is not even parsed
  end
  project.settings = file.settings(project.text, project.path)
  judge_all(project, own)
  judge_variables(project, record)
  return project
end

local MOST = 4 -- the most settings that a warning names

local function named(left)
  local parts = {}
  for i = 1, math.min(#left, MOST) do
    parts[i] = ("%s (line %d) %s"):format(left[i].name, left[i].line, left[i].why)
  end
  if #left > MOST then
    parts[MOST + 1] = ("and %d more"):format(#left - MOST)
  end
  return table.concat(parts, ", ")
end

--- Returns the warning about settings of a project's file that are left out; nil if none are.
function M.warning(project)
  local path = pairs_of.shown(project.path)
  if not project.mine and not project.trusted then
    return ("%s is left out, because its folder or the file belongs to another user%s"):format(path,
      project.text and "; look at it, then: agenthost trust" or "")
  elseif #project.left > 0 then
    local state = project.changed and " has changed since it was trusted"
      or not project.trusted and " is not trusted" or ""
    return ("%s%s%s: left out: %s; look at it, then: agenthost trust"):format(path, state,
      project.unknown and (" (the list of trusted folders cannot be read: %s)"):format(
        project.unknown) or "", named(project.left))
  end
end

return M
