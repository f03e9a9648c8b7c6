--- ah.mcp_file: servers of MCP from a file of the form that many clients share, such as .mcp.json:
--
--   { "mcpServers": { NAME: { "command", "args", "env", "cwd" } or { "url", "headers" } } }
--
-- ${VAR} and ${VAR:-default} in the texts of a server stand for variables of the environment. The
-- command reads the entries first, to show them to a person, and makes servers of them later.
-- Everything here is from outside, and is checked; errors name the file and the server.
local ah = ...

local message = ah._module "agenthost.protocols.mcp.message"

local is_object, is_list = message.is_object, message.is_list

local MOST = 1 << 20 -- bytes of a file
local MOST_SERVERS = 100
local MOST_SAID = 100 -- bytes of a name in an error
local OURS = 32 -- characters of a name of ours

local read_options = ah._reader {
  what = "ah.mcp_file", type = "ah.McpFileOptions", rows = {
    { name = "only", kinds = "list", otherwise = "all", type = "string[]",
      doc = "names of servers in the file; the others are left out" },
    { name = "sandbox", kinds = "string table", default = "none",
      type = '"none"|"auto"|"require"|"landlock"|"bubblewrap"|ah.ProcessSandbox',
      doc = "[limits](processes.md#sandbox) of the servers that are processes" },
    { name = "cwd", kinds = "string", otherwise = "that of the host",
      doc = "the working folder of processes for which the file names none" },
    { name = "optional", kinds = "boolean", default = false,
      doc = "true: a run goes on without the tools of a server that cannot be started" },
  },
}

local file = {}

local function fault(text, ...)
  error(ah.error { code = "usage", message = text:format(...) }, 0)
end

local function said(text)
  return ah._harmless(text:sub(1, MOST_SAID))
end

-- -- the text -------------------------------------------------------------------------------------

--- Returns a function that raises what is wrong with a server of the file.
local function wrong_in(path, name)
  return function(text, ...)
    fault("'%s': server '%s': " .. text, said(path), said(name), ...)
  end
end

--- Returns a member that is a text, or nil.
local function text_in(given, member, wrong)
  local value = given[member]
  if value ~= nil and (type(value) ~= "string" or value == "" or value:find "%z") then
    wrong('"%s" must be a text', member)
  end
  return value
end

local function texts_in(given, member, wrong)
  local list = given[member]
  if list == nil then
    return nil
  end
  local fine = is_list(list)
  for _, value in ipairs(fine and list or {}) do
    fine = fine and type(value) == "string" and not value:find "%z"
  end
  return fine and list or wrong('"%s" must be a list of texts', member)
end

local function named_texts_in(given, member, wrong)
  local map = given[member]
  if map == nil then
    return nil
  end
  local fine = is_object(map)
  for name, value in pairs(fine and map or {}) do
    fine = fine and type(name) == "string" and type(value) == "string" and not value:find "%z"
  end
  return fine and map or wrong('"%s" must be an object of texts', member)
end

local KINDS = { stdio = "command", http = "url", ["streamable-http"] = "url",
  ["streamableHttp"] = "url" }

--- Returns "command" or "url", which says where a server is.
local function kind_of(given, wrong)
  local kind = given.type
  if kind == nil and (given.command == nil) == (given.url == nil) then
    wrong('it needs one of "command" and "url", found %s', given.url and "both" or "none")
  elseif kind == nil then
    return given.url and "url" or "command"
  elseif not KINDS[kind] then
    wrong('the type %s is not supported; "stdio" and "http" are',
      type(kind) == "string" and '"' .. said(kind) .. '"' or "of it")
  elseif given[KINDS[kind]] == nil then
    wrong('the type "%s" needs "%s"', kind, KINDS[kind])
  end
  return KINDS[kind]
end

--- Returns the fields of ah.mcp as the file has them.
local function fields_of(given, wrong)
  if kind_of(given, wrong) == "url" then
    return { url = text_in(given, "url", wrong), headers = named_texts_in(given, "headers", wrong) }
  end
  return { command = text_in(given, "command", wrong), args = texts_in(given, "args", wrong),
    env = named_texts_in(given, "env", wrong), cwd = text_in(given, "cwd", wrong) }
end

-- -- variables ------------------------------------------------------------------------------------

local VARIABLE = "%${([%a_][%w_]*)(:?%-?)([^{}]*)}"

--- Returns a text with `value(name, default)` in place of each variable; other `${` stay.
local function replaced(text, value)
  return (text:gsub(VARIABLE, function(name, mark, default)
    if mark == ":-" then
      return value(name, default)
    elseif mark == "" and default == "" then
      return value(name)
    end
  end))
end

--- Returns a copy of a field with `change` done to each of its texts.
local function mapped(field, change)
  if type(field) == "string" then
    return change(field)
  end
  local made = {}
  for key, text in pairs(field) do
    made[key] = change(text)
  end
  return made
end

--- Returns the sorted names of the variables in fields.
local function variables_in(fields)
  local names, seen = {}, {}
  for _, field in pairs(fields) do
    mapped(field, function(text)
      return replaced(text, function(name)
        names[#names + 1] = not seen[name] and name or nil
        seen[name] = true
      end)
    end)
  end
  table.sort(names)
  return names
end

-- -- entries --------------------------------------------------------------------------------------

--- Returns a name of ours for a name in a file, which no other one has.
local function name_of(name, taken)
  local made = name:lower():gsub("[^a-z0-9_-]+", "-"):gsub("^%-+", ""):sub(1, OURS)
  made = made ~= "" and made or "mcp"
  local free, n = made, 2
  while taken[free] do
    free, n = made:sub(1, OURS - 3) .. "_" .. n, n + 1
  end
  taken[free] = true
  return free
end

local function entry_of(path, name, given, taken)
  local wrong = wrong_in(path, name)
  if name == "" or #name > 200 or name:find "%c" then
    wrong "its name must have 1 to 200 characters, and no controls"
  elseif not is_object(given) then
    wrong "it must be an object"
  end
  local fields = fields_of(given, wrong)
  return { name = name, short = name_of(name, taken), path = path, fields = fields,
    variables = variables_in(fields), disabled = given.disabled == true }
end

--- Returns the servers of a file's text, sorted by their names: { name, short, path, fields,
-- variables, disabled } each. `short` is the name of ours, `fields` those of ah.mcp with variables
-- as they are in the file, `variables` their names, `disabled` true if the file switches it off.
-- Raises an error for a text that is wrong.
---@param text string
---@param path string for errors, and for a relative `cwd`
function file.entries(text, path)
  local all, why = ah.json.decode(text)
  local servers = is_object(all) and all.mcpServers
  if all == nil then
    local at = tostring(type(why) == "table" and why.message or why):match "line %d+, column %d+"
    fault("'%s': it is no JSON%s", said(path), at and ": " .. at or "") -- the text may have a key
  elseif not is_object(servers) then
    fault([['%s': it has no object "mcpServers"]], said(path))
  end
  local names, entries, taken = {}, {}, {}
  for name in pairs(servers) do
    names[#names + 1] = name
  end
  table.sort(names)
  if #names > MOST_SERVERS then
    fault("'%s': it has %d servers, more than %d", said(path), #names, MOST_SERVERS)
  end
  for i, name in ipairs(names) do
    entries[i] = entry_of(path, name, servers[name], taken)
  end
  return entries
end

--- Returns the entries of a file, as file.entries. Raises an error if it cannot be read.
function file.read(path)
  local text, why = ah._read_file(path, MOST, true)
  if not text then
    fault("%s", why)
  end
  return file.entries(text, path)
end

--- Returns the fields of ah.mcp for an entry, with the variables' values. Raises an error for a
-- variable that is not set and has no default.
function file.fields(entry, options)
  local wrong, fields = wrong_in(entry.path, entry.name), {}
  for field, value in pairs(entry.fields) do
    fields[field] = mapped(value, function(text)
      return replaced(text, function(name, default)
        local known = os.getenv(name)
        if default and (known or "") == "" then
          return default
        end
        return known or wrong("the variable %s is not set, and has no default (${%s:-default})",
          name, name)
      end)
    end)
  end
  if fields.command then
    local cwd = fields.cwd
    fields.cwd = cwd and cwd:sub(1, 1) ~= "/" and (entry.path:match "^(.*/)" or "./") .. cwd
      or cwd or options.cwd
    fields.sandbox = options.sandbox
  end
  fields.name, fields.optional = entry.short, options.optional
  return fields
end

--- Returns the server of an entry. Raises an error for fields that ah.mcp does not take.
function file.server(entry, options)
  local ok, server = pcall(ah.mcp, file.fields(entry, options or {}))
  return ok and server
    or wrong_in(entry.path, entry.name)("%s", type(server) == "table" and server.message or server)
end

-- -- ah.mcp_file ----------------------------------------------------------------------------------

--- Returns the entries that `only` names, or all that are not switched off.
local function chosen(entries, only, path)
  local list, named = {}, {}
  for _, entry in ipairs(entries) do
    named[entry.name] = entry
    list[#list + 1] = not only and not entry.disabled and entry or nil
  end
  for i, name in ipairs(only or {}) do
    list[i] = named[name] or fault("'%s': it has no server '%s'", said(path), said(tostring(name)))
  end
  return list
end

local function servers_of(path, options)
  local servers = {}
  for i, entry in ipairs(chosen(file.read(path), options.only, path)) do
    servers[i] = file.server(entry, options)
  end
  return servers
end

--- ah.mcp_file(".mcp.json", { only = { "files" } }): returns a list of servers.
function file.open(path, given)
  if type(path) ~= "string" then
    ah._raise(("ah.mcp_file: expected the path of a file, found a %s"):format(type(path)))
  end
  local ok, servers = pcall(servers_of, path, read_options(given or {}))
  if not ok and type(servers) == "table" then
    ah._raise("ah.mcp_file: " .. servers.message)
  end
  return ok and servers or error(servers, 0)
end

return file
