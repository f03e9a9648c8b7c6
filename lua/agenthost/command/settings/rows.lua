--- All settings as data: their sources, their values, and which of a project's file take effect
-- only after `agenthost trust`.
--
-- A row has: name ("run.timeout"); `read`, a function that returns the value of a text, or nil and
-- what it must be; default (a text); needs, the reason why a project needs trust for it; limit,
-- true if a project without trust may only lower it; field, the path of its name in the JSON of
-- ah_defaults; sets, the environment variables that it sets.
local ah = ...

local M = {}

-- -- values ----------------------------------------------------------------------------------

local function any(value)
  return value
end

local function word_of(words)
  local list = {}
  for word in words:gmatch "%S+" do
    list[#list + 1] = word
  end
  return function(value)
    for _, word in ipairs(list) do
      if word == value then
        return value
      end
    end
    return nil, "one of: " .. words
  end
end

local function within(n, least, most)
  return (not least or n >= least) and (not most or n <= most)
end

-- Returns a text such as "a whole number of seconds from 1 to 10".
local function number_words(row, whole, most)
  local range = ""
  if row.least and most < 1e9 then
    range = (" from %.14g to %.14g"):format(row.least, most)
  elseif row.least then
    range = (" of at least %.14g"):format(row.least)
  end
  return ("a %snumber%s%s"):format(whole and "whole " or "", row.unit and " of " .. row.unit or "",
    range)
end

-- Returns the reader of numbers for a row of the library. It takes decimal digits only, not 0x10,
-- 1e3 or inf.
local function number_of(row, whole)
  local most = row.most or whole and row.least and math.maxinteger >> 32 or 1e15
  local words = number_words(row, whole, most)
  return function(value)
    local n = value:find "^%-?%d+%.?%d*$" and #value <= 24 and tonumber(value)
    if n and whole then
      n = math.tointeger(n)
    end
    if not n or not within(n, row.least, row.least and most) then
      return nil, words
    end
    return n
  end
end

local function flag(value)
  if value == "true" or value == "false" then
    return value == "true"
  end
  return nil, "true or false"
end

local function address(value)
  if value:find "^https?://[^/]" then
    return value
  end
  return nil, "an address that begins with http:// or https://"
end

local function proxy(value)
  if value:find "^%a[%w+.-]*://[^/]" then
    return value
  end
  return nil, "an address such as http://proxy:3128"
end

local function variable(value)
  if value:find "^[%a_][%w_]*$" then
    return value
  end
  return nil, "the name of a variable"
end

--- Returns a path of a settings file: ~/ is HOME, a relative path begins at the file's folder.
function M.path_in(file, value)
  if value:sub(1, 1) == "/" then
    return value
  elseif value:sub(1, 2) == "~/" then
    return (os.getenv "HOME" or "") .. value:sub(2)
  end
  return file:match "^(.*)/" .. "/" .. value
end

-- -- rows of the library -------------------------------------------------------------------------

-- The fields that a project without trust may only lower, because they cost money or time.
local LIMITS = { max_iterations = true, max_tools = true, retries = true, timeout = true,
  max_tokens = true, max_in_flight = true, max_parallel = true }

-- The sections, and the part of ah.run's fields for each.
local PARTS = {
  { section = "run", type = "ah.Config" },
  { section = "http", type = "ah.HttpLimits", part = "http" },
  { section = "options", type = "ah.Options", part = "options" },
  { section = "budget", type = "ah.BudgetLimits", part = "budget" },
}

local function kind_of(row, kind)
  for _, one in ipairs(row.kinds) do
    if one == kind then
      return true
    end
  end
  return false
end

local function reader_of(row)
  if row.words then
    return word_of(row.words)
  elseif kind_of(row, "string") then
    return any
  elseif kind_of(row, "boolean") then
    return flag
  end
  return number_of(row, kind_of(row, "integer") or row.is == "integer")
end

local function row_of(part, row)
  local default = row.otherwise and row.otherwise:gsub("[`\"]", "")
  return { name = part.section .. "." .. row.name, read = reader_of(row), default = default,
    limit = part.part == "budget" or LIMITS[row.name],
    field = part.part and { part.part, row.name } or { row.name }, doc = row.doc, unit = row.unit }
end

-- Returns the rows of a part, made when they are first used.
local function rows_of(part)
  if not part.rows then
    part.rows = {}
    for _, row in ipairs(ah._options(part.type).rows) do
      if row.settings and not kind_of(row, "table") and not kind_of(row, "object") then
        part.rows[#part.rows + 1] = row_of(part, row)
      end
    end
  end
  return part.rows
end

--- Returns the readers of the options of a model by name: { read }.
function M.options()
  local by_name = {}
  for _, row in ipairs(ah._options "ah.Options".rows) do
    by_name[row.name] = { read = reader_of(row) }
  end
  return by_name
end

-- -- the rows ------------------------------------------------------------------------------------

local ELSEWHERE = "sends elsewhere"

local OWN = {
  { name = "model", read = any },
  { name = "color", read = word_of "auto always never", default = "auto" },
  { name = "env-file", read = any, needs = "sets variables" },
  { name = "log", read = word_of "error warning info debug", default = "warning" },
  { name = "store", read = any, needs = "says where conversations are kept", is_path = true,
    sets = { { "AGENTHOST_STORE" } } },
}

-- sets: lists of variables; the first one is set, unless one of the list is set already.
local HTTP = {
  { name = "http.proxy", read = proxy, needs = ELSEWHERE, sets = {
    { "http_proxy", "all_proxy", "ALL_PROXY" },
    { "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY" } } },
  { name = "http.no_proxy", read = any, needs = ELSEWHERE, sets = { { "no_proxy", "NO_PROXY" } } },
  { name = "http.ca_file", read = any, needs = "changes the trusted certificates", is_path = true,
    sets = { { "SSL_CERT_FILE", "CURL_CA_BUNDLE", "SSL_CERT_DIR" } } },
}

local function add_all(rows, more)
  table.move(more, 1, #more, #rows + 1, rows)
end

--- Returns the rows with fixed names, in the order of `agenthost config`.
function M.list()
  local list = {}
  add_all(list, OWN)
  for _, part in ipairs(PARTS) do
    add_all(list, rows_of(part))
    add_all(list, part.part == "http" and HTTP or {})
  end
  return list
end

local function named(rows, full)
  for _, row in ipairs(rows) do
    if row.name == full then
      return row
    end
  end
end

-- Returns the row with this name of the part that its section names.
local function part_row(full)
  for _, part in ipairs(PARTS) do
    if full:match "^(.*)%." == part.section then
      return named(rows_of(part), full)
    end
  end
end

-- -- rows with a NAME ---------------------------------------------------------------------------

local IN_FLIGHT = { least = 1, most = 2147483647 }

-- Returns the row of providers.NAME.base_url, providers.NAME.api_key_env or
-- providers.NAME.max_in_flight.
local function provider_row(full)
  local name, field = full:match "^providers%.([%w_]+)%.([%w_]+)$"
  for _, provider in ipairs(name and ah.providers() or {}) do
    if provider.name == name and field == "max_in_flight" then
      return { name = full, read = number_of(IN_FLIGHT, true), limit = true,
        field = { "providers", name, field } }
    elseif provider.name == name and field == "base_url" and provider.url_env[1] then
      return { name = full, read = address, needs = ELSEWHERE, sets = { provider.url_env } }
    elseif provider.name == name and field == "api_key_env" and provider.key_env[1] then
      return { name = full, read = variable, needs = "says which key is sent", is_key = true,
        sets = { provider.key_env } }
    end
  end
end

-- Returns the row of models.NAME, a model or a JSON object with facts about one. The library checks
-- the facts.
local function model_row(full)
  local model = full:match "^models%.(.+)$"
  return model and { name = full, model = model, needs = "says which model that is", read =
    function(value)
    if value:sub(1, 1) == "{" and ah.json.decode(value) == nil then
      return nil, "a model, or a JSON object, which this is not"
    end
    return value
  end }
end

--- Returns the row of a setting; nil if the name is unknown.
function M.find(full)
  return named(OWN, full) or named(HTTP, full) or part_row(full) or model_row(full)
    or provider_row(full)
end

local function names_like(full)
  local names = { "models.NAME" }
  for _, row in ipairs(M.list()) do
    names[#names + 1] = row.name
  end
  for _, provider in ipairs(full:find "^providers" and ah.providers() or {}) do
    names[#names + 1] = "providers." .. provider.name .. ".base_url"
    names[#names + 1] = "providers." .. provider.name .. ".api_key_env"
    names[#names + 1] = "providers." .. provider.name .. ".max_in_flight"
  end
  return names
end

--- Returns the nearest name; without its section if `full` has the same section.
function M.nearest(full)
  local near = ah.nearest(full, names_like(full))
  local section = full:match "^(.*)%."
  if near and section and near:sub(1, #section + 1) == section .. "." then
    near = near:sub(#section + 2)
  end
  return near
end

--- Returns true for a known section; otherwise false and the nearest one.
function M.is_section(section)
  local names = { "models" }
  for _, part in ipairs(PARTS) do
    names[#names + 1] = part.section
  end
  for _, provider in ipairs(ah.providers()) do
    names[#names + 1] = provider.url_env[1] and "providers." .. provider.name or nil
  end
  for _, name in ipairs(names) do
    if name == section then
      return true
    end
  end
  return false, ah.nearest(section, names)
end

return M
