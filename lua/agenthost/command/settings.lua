--- Where each setting comes from: a flag, the environment, a file of variables (--env-file), the
-- configuration file, or nowhere. The configuration is read from one place, the user's own folder:
-- never from the folder a script or a shell happens to be in, which may be somebody else's.
local ah, use = ...
local pairs_of = use "pairs"
local text = use "text"

local fault = pairs_of.fault

-- words: the values there are; default: what there is where nobody said.
local ROWS = {
  { name = "model" },
  { name = "color", words = "auto always never", default = "auto" },
  { name = "env-file" },
  { name = "log", words = "error warning info debug", default = "warning" },
}

-- What the library and the command look at in the environment.
local VARIABLES = {
  { name = "AGENTHOST_MODEL" }, { name = "OPENAI_API_KEY", secret = true },
  { name = "OPENAI_BASE_URL" }, { name = "OPENAI_ORG_ID" }, { name = "OPENAI_PROJECT_ID" },
  { name = "ANTHROPIC_API_KEY", secret = true }, { name = "ANTHROPIC_AUTH_TOKEN", secret = true },
  { name = "ANTHROPIC_BASE_URL" }, { name = "NO_COLOR" },
}

local BY_NAME = {}
for _, row in ipairs(ROWS) do
  BY_NAME[row.name] = row
end

local function is_word(words, word)
  return (" " .. words .. " "):find(" " .. word .. " ", 1, true) ~= nil and not word:find " "
end

-- -- reading ------------------------------------------------------------------------------

-- { path, found, set = { NAME = { value, from, line } }, models = { "\"NAME\":JSON" },
--   variables = { NAME = { value, from } }, put = { { NAME, VALUE } } }
local function nothing(path)
  return { path = path, found = false, set = {}, models = {}, variables = {}, put = {} }
end

local function unknown(s, name, line)
  local names = { "models.NAME" }
  for i, row in ipairs(ROWS) do
    names[i + 1] = row.name
  end
  local near = ah.nearest(name, names)
  fault("%s:%d: there is no such setting%s\nSee agenthost config --help.", s.path:sub(1, 300), line,
    near and (" (did you mean '%s'?)"):format(near) or "")
end

-- models.NAME = provider/model, or a JSON object of what is known of one. What it says is for the
-- library to judge, which knows models.
local function take_model(s, name, value, line)
  local is_object = value:sub(1, 1) == "{"
  if is_object and ah.json.decode(value) == nil then
    fault("%s:%d: what is said of the model is no JSON object", s.path:sub(1, 300), line)
  end
  s.models[#s.models + 1] = ah.json.encode(name) .. ":"
    .. (is_object and value or ah.json.encode(text.repaired(value)))
end

local function take(s, name, value, line)
  local row, model = BY_NAME[name], name:match "^models%.(.+)$"
  if model then
    return take_model(s, model, value, line)
  elseif not row then
    unknown(s, name, line)
  elseif s.set[name] then
    fault("%s:%d: %s is set twice", s.path:sub(1, 300), line, name)
  elseif row.words and not is_word(row.words, value) then
    fault("%s:%d: %s must be one of: %s", s.path:sub(1, 300), line, name, row.words)
  end
  s.set[name] = { value = value, from = "file", line = line }
end

-- A path in the configuration: ~/ is HOME, a relative one begins where the file is.
local function env_path(s)
  local set = s.set["env-file"]
  local value = set.value
  if set.from ~= "file" or value:sub(1, 1) == "/" then
    return value
  elseif value:sub(1, 2) == "~/" then
    return (os.getenv "HOME" or "") .. value:sub(2)
  end
  return s.path:match "^(.*)/" .. "/" .. value
end

-- What is set already stays, so that a variable in front of the command counts.
local function load_variables(s)
  local path, seen = env_path(s), {}
  pairs_of.each(path, "variables' file", false, function(name, value, line)
    local odd = name:match "[^%w_]"
    if odd then
      fault("%s:%d: a variable's name has no '%s'", path:sub(1, 300), line, odd)
    elseif not os.getenv(name) and not seen[name] then
      seen[name] = true
      s.put[#s.put + 1] = { name, value }
    end
  end)
end

local function note_variables(s)
  local put = {}
  for _, pair in ipairs(s.put) do
    put[pair[1]] = pair[2]
  end
  for _, variable in ipairs(VARIABLES) do
    local name = variable.name
    local here = os.getenv(name)
    s.variables[name] = here and { value = here, from = "environment" }
      or put[name] and { value = put[name], from = "env-file" } or { from = "default" }
  end
end

-- The model of the environment stands before that of the configuration, which the library is told
-- in the same way: as AGENTHOST_MODEL.
local function settle_model(s)
  local model, variable = s.set.model, s.variables.AGENTHOST_MODEL
  if model and model.from == "flag" then
    return
  elseif (variable.value or "") ~= "" then
    s.set.model = { value = variable.value, from = variable.from }
  elseif model then
    s.put[#s.put + 1] = { "AGENTHOST_MODEL", model.value }
  end
end

-- flags: { NAME = VALUE }
local function load_settings(path, flags)
  local s = nothing(path)
  if path ~= "" then
    s.found = pairs_of.each(path, "configuration", true, function(...)
      take(s, ...)
    end)
  end
  for name, value in pairs(flags) do
    s.set[name] = { value = value, from = "flag" }
  end
  if s.set["env-file"] then
    load_variables(s)
  end
  note_variables(s)
  settle_model(s)
  return s
end

local function models_of(s)
  return "{" .. table.concat(s.models, ",") .. "}"
end

-- -- showing ------------------------------------------------------------------------------

-- Without control characters; what an address holds between "//" and "@" is a password's place.
local function clean(value, secret)
  if secret then
    return "[secret]"
  end
  value = value:gsub("^(.-://)[^@/]*@", "%1[secret]@", 1)
  return (text.repaired(value):gsub("[%z\1-\31\127]", "?"))
end

local function shown_of(s)
  local settings, variables = {}, {}
  for i, row in ipairs(ROWS) do
    local set = s.set[row.name] or { value = row.default, from = "default" }
    settings[i] = { name = row.name, from = set.from, line = set.line,
      value = set.value and clean(set.value) }
  end
  for i, row in ipairs(VARIABLES) do
    local v = s.variables[row.name]
    variables[i] = { name = row.name, from = v.from,
      value = v.value and clean(v.value, row.secret) }
  end
  return settings, variables
end

local function line_of(v)
  return ("%-22s%-26s %s%s\n"):format(v.name, v.value or "-", v.from,
    v.line and ", line " .. v.line or "")
end

local function as_text(s)
  local parts = {}
  for _, list in ipairs { shown_of(s) } do
    for _, v in ipairs(list) do
      parts[#parts + 1] = line_of(v)
    end
  end
  if #s.models > 0 then
    parts[#parts + 1] = "models.NAME            as agenthost models tells  file\n"
  end
  parts[#parts + 1] = ("\nconfiguration file: %s%s\n"):format(
    s.path ~= "" and s.path or "none (HOME is not set)",
    (s.found or s.path == "") and "" or " (not there)")
  return table.concat(parts)
    .. "A script's own model wins over environment and configuration, a flag over all.\n"
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
  return ah.json.encode { configuration = { found = s.found, path = text.repaired(s.path) },
    models = ah.json.decode(models_of(s)) or ah.object {}, settings = members(settings),
    variables = members(variables) } .. "\n"
end

-- -- for the command ----------------------------------------------------------------------

--- Settings as lines "NAME VALUE" for the command, the first of which is `ok`: `log` and `color`
-- where somebody says them, `models` (JSON), `put NAME=VALUE` of each variable to be set, and
-- behind a line `show` what is to be printed. Or `fault` and words.
---@param path string of the configuration; "": there can be none
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
  for _, name in ipairs { "log", "color" } do
    lines[#lines + 1] = s.set[name] and name .. " " .. s.set[name].value
  end
  lines[#lines + 1] = #s.models > 0 and "models " .. models_of(s) or nil
  for _, pair in ipairs(s.put) do
    lines[#lines + 1] = ("put %s=%s"):format(pair[1], pair[2])
  end
  if show ~= "" then
    lines[#lines + 1] = "show\n" .. (show == "json" and as_json or as_text)(s)
  end
  return table.concat(lines, "\n") .. (show ~= "" and "" or "\n")
end
