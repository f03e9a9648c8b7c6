--- Finds the value and the source of each setting: a flag, the environment, a file of variables,
-- the project's file (settings/file.lua), the user's file, or the default. The first of these
-- counts, but a script's own fields win over all except flags. settings/judge.lua decides which
-- settings of a project's file take effect.
local ah, use = ...
local file, judge, pairs_of, rows = use "settings.file", use "settings.judge", use "pairs",
  use "settings.rows"
local text = use "text"

-- Environment variables that the library and the command read.
local VARIABLES = {
  { name = "AGENTHOST_MODEL" }, { name = "AGENTHOST_STORE" },
  { name = "OPENAI_API_KEY", secret = true },
  { name = "OPENAI_BASE_URL" }, { name = "OPENAI_ORG_ID" }, { name = "OPENAI_PROJECT_ID" },
  { name = "ANTHROPIC_API_KEY", secret = true }, { name = "ANTHROPIC_AUTH_TOKEN", secret = true },
  { name = "ANTHROPIC_BASE_URL" }, { name = "NO_COLOR" },
}

-- -- the environment -----------------------------------------------------------------------------

local function put(s, name, value, from)
  s.put_order[#s.put_order + 1] = not s.put[name] and name or nil
  s.put[name] = { value = value, from = from }
end

-- Loads a file of variables. Variables that are already set are kept, so that a variable before the
-- command on the shell's line wins.
local function load_variables(s, content, path)
  pairs_of.variables(content, path, function(name, value)
    if not os.getenv(name) and not s.put[name] then
      put(s, name, value, "env-file")
    end
  end)
end

local function load_file(s, path)
  local content, why = pairs_of.read(path, "any")
  if not content then
    pairs_of.unreadable("variables' file", path, why)
  end
  load_variables(s, content, path)
end

-- Loads the file that a flag names; without the flag, those that settings name, the project's
-- first.
local function load_all_variables(s, flag, own)
  if flag then
    return load_file(s, flag)
  elseif s.project and s.project.variables then
    load_variables(s, s.project.variables.text, s.project.variables.path)
  end
  if own["env-file"] then
    load_file(s, rows.path_in(own["env-file"].path, own["env-file"].text))
  end
end

-- Returns the value that a variable will have; nil if it is empty or not set.
local function variable(s, name)
  local here = os.getenv(name) or s.put[name] and s.put[name].value
  return here ~= "" and here or nil
end

-- Sets the first variable of each list, unless one of the list is set.
local function put_first(s, entry, value)
  for _, names in ipairs(entry.row.sets) do
    local taken = false
    for _, name in ipairs(names) do
      taken = taken or variable(s, name) ~= nil
    end
    if not taken then
      put(s, names[1], value, entry.from)
    end
  end
end

local function put_settings(s)
  for _, entry in ipairs(s.entries) do
    local value = entry.text
    if entry.row.is_path then
      value = rows.path_in(entry.path, value)
    elseif entry.row.is_key then -- adapters look it up later if it is not set yet
      value = variable(s, value) or "os.environ/" .. value
    end
    if entry.row.sets then
      put_first(s, entry, value)
    end
  end
end

local function note_variables(s)
  for _, row in ipairs(VARIABLES) do
    local name = row.name
    local here = os.getenv(name)
    s.variables[name] = here and { value = here, from = "environment" } or s.put[name]
      or { from = "default" }
  end
end

-- The model of the environment wins over that of the files. The library gets either one as
-- AGENTHOST_MODEL.
local function settle_model(s)
  local model = s.set.model
  if model and model.from == "flag" then
    return
  elseif variable(s, "AGENTHOST_MODEL") then
    local here = s.variables.AGENTHOST_MODEL
    s.set.model = { text = here.value, from = here.from }
  elseif model then
    put(s, "AGENTHOST_MODEL", model.text, model.from)
  end
end

-- -- the whole -----------------------------------------------------------------------------------

-- Collects the settings, the project's first: the first one that sets a variable counts.
local function collect(s)
  for _, of in ipairs { { s.project and s.project.holds or {}, "project" },
    { s.user.settings, "file" } } do
    for _, entry in ipairs(of[1]) do
      if not s.set[entry.name] then
        entry.from, s.set[entry.name] = of[2], entry
        s.entries[#s.entries + 1] = entry
      end
    end
  end
end

-- Merges the settings of flags, files and the environment. flags: { NAME = VALUE }
local function load_settings(path, flags)
  local s = { set = {}, entries = {}, variables = {}, put = {}, put_order = {},
    user = file.user(path) }
  local own = file.by_name(s.user.settings)
  s.project = judge.project(own)
  collect(s)
  for name, value in pairs(flags) do
    s.set[name] = { text = value, from = "flag" }
  end
  load_all_variables(s, flags["env-file"], own)
  note_variables(s)
  settle_model(s)
  put_settings(s)
  note_variables(s)
  return s
end

-- Returns "{ NAME: MODEL }" of the settings models.NAME, for the library; nil if there are none.
local function models_of(s)
  local parts = {}
  for _, entry in ipairs(s.entries) do
    local said = entry.text
    parts[#parts + 1] = entry.row.model and ah.json.encode(entry.row.model) .. ":"
      .. (said:sub(1, 1) == "{" and said or ah.json.encode(said)) or nil
  end
  return parts[1] and "{" .. table.concat(parts, ",") .. "}" or nil
end

-- Returns the defaults for the fields of runs as JSON; nil if there are none.
local function defaults_of(s)
  local defaults
  for _, entry in ipairs(s.entries) do
    local field = entry.row.field
    if field then
      defaults = defaults or {}
      local part = defaults
      for i = 1, #field - 1 do
        part[field[i]] = part[field[i]] or {}
        part = part[field[i]]
      end
      part[field[#field]] = entry.value
    end
  end
  return defaults and ah.json.encode(defaults)
end

-- -- showing ----------------------------------------------------------------------------------

local function clean(value, secret)
  return secret and "[secret]" or text.clean(value)
end

local function shown_setting(name, set, default)
  set = set or { text = default, from = "default" }
  return { name = name, from = set.from, line = set.line, value = set.text and clean(set.text) }
end

-- Returns the settings, then those of providers from files; and the variables.
local function shown_of(s)
  local settings, variables = {}, {}
  for _, row in ipairs(rows.list()) do
    settings[#settings + 1] = shown_setting(row.name, s.set[row.name], row.default)
  end
  for _, entry in ipairs(s.entries) do
    settings[#settings + 1] = entry.name:find "^providers%." and shown_setting(entry.name, entry)
      or nil
  end
  for i, row in ipairs(VARIABLES) do
    local v = s.variables[row.name]
    variables[i] = { name = row.name, from = v.from,
      value = v.value and clean(v.value, row.secret) }
  end
  return settings, variables
end

local function line_of(v)
  return ("%-21s %-26s %s%s\n"):format(v.name, v.value or "-", v.from,
    v.line and ", line " .. v.line or "")
end

local function project_text(project)
  if not project then
    return ("project's file: none (%s)\n"):format(file.NAME)
  end
  local lines = { ("project's file: %s (%s)\n"):format(pairs_of.shown(project.path),
    project.trusted and "trusted" or project.changed and "changed since it was trusted"
    or "not trusted") }
  for _, one in ipairs(project.left) do
    lines[#lines + 1] = ("  left out: %s, line %d: %s\n"):format(one.name, one.line, one.why)
  end
  if not project.mine and not project.trusted then
    lines[#lines + 1] = "  left out: all settings, as the folder or the file is another user's\n"
  end
  return table.concat(lines)
end

local function as_text(s)
  local parts = {}
  for _, list in ipairs { shown_of(s) } do
    for _, v in ipairs(list) do
      parts[#parts + 1] = line_of(v)
    end
  end
  if models_of(s) then
    parts[#parts + 1] = "models.NAME           see agenthost models      file\n"
  end
  parts[#parts + 1] = ("\nconfiguration file: %s%s\n"):format(
    s.user.path ~= "" and pairs_of.shown(s.user.path) or "none (HOME is not set)",
    (s.user.found or s.user.path == "") and "" or " (not there)")
  return table.concat(parts) .. project_text(s.project)
    .. "Values in a script override the environment and files; a flag overrides all.\n"
end

local function project_json(project)
  return project and { path = text.repaired(project.path), trusted = project.trusted,
    changed = project.changed, mine = project.mine, left_out = ah.array(project.left) } or ah.null
end

local function as_json(s)
  local function members(list)
    local object = ah.object {}
    for _, v in ipairs(list) do
      object[v.name] = { from = v.from, line = v.line, value = v.value or ah.null }
    end
    return object
  end
  local settings, variables = shown_of(s)
  return ah.json.encode { configuration = { found = s.user.found,
    path = text.repaired(s.user.path) }, models = ah.json.decode(models_of(s) or "{}"),
    project = project_json(s.project), settings = members(settings),
    variables = members(variables) } .. "\n"
end

-- -- for the command --------------------------------------------------------------------------

local function add(lines, name, value)
  lines[#lines + 1] = value and name .. " " .. value or nil
end

--- Returns the settings as lines for the command: `ok`, then `NAME VALUE` for `log` and `color` if
-- they are set, `models` and `defaults` (JSON), `warn` (a message), `put NAME=VALUE` for each
-- variable to set, and after a line `show` the text to print. Returns `fault` and a message if a
-- file is wrong.
---@param path string the path of the configuration; "": there is none
---@param show "text"|"json"|""
---@param ... string names and values of flags
---@return string
return function(path, show, ...)
  local flags = {}
  for i = 1, select("#", ...), 2 do
    local name, value = select(i, ...)
    flags[name] = value
  end
  local ok, s = pcall(load_settings, path, flags)
  if not ok then
    return type(s) == "table" and "fault\n" .. s.words or error(s, 0)
  end
  local lines = { "ok" }
  add(lines, "log", s.set.log and s.set.log.text)
  add(lines, "color", s.set.color and s.set.color.text)
  add(lines, "models", models_of(s))
  add(lines, "defaults", defaults_of(s))
  add(lines, "warn", s.project and show == "" and judge.warning(s.project))
  for _, name in ipairs(s.put_order) do
    add(lines, "put", name .. "=" .. s.put[name].value)
  end
  if show ~= "" then
    lines[#lines + 1] = "show\n" .. (show == "json" and as_json or as_text)(s)
  end
  return table.concat(lines, "\n") .. (show ~= "" and "" or "\n")
end
