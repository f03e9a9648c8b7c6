--- The MCP servers that have names here: those of the project's .mcp.json, and of the user's
-- mcp.json beside the user's settings. Both have one form (protocols/mcp/client/file.lua).
--
-- The project's file is in the current folder or the nearest above it that has one, up to the top
-- of the repository. The search ends as that for a project's settings (settings/file.lua). Its
-- servers run with the user's rights, so the user is shown the file and asked once; its hash is
-- kept with the trusted folders (trusted.lua). A server of the project hides one of the user with
-- the same name.
local ah, use, _, later = ...
local pairs_of, text, trusted = use "pairs", use "text", use "trusted"
local settings_file = later "settings.file"
local consent = later "prompt.consent"

local mcp_file = ah._module "agenthost.protocols.mcp.client.file"
local pins = ah._module "agenthost.protocols.mcp.client.pins"

local fault, shown = pairs_of.fault, pairs_of.shown

local M = {}

M.NAME, M.OWN = ".mcp.json", "mcp.json"
local SHOWN = 200 -- bytes of a command or an address in a line
local LISTED = 20 -- servers that a message names

-- -- files ---------------------------------------------------------------------------------------

local function inside(folder, name)
  return (folder == "/" and "" or folder) .. "/" .. name
end

-- Returns the path of the project's file, and true if it and its folder are the user's; nil if
-- there is none.
local function project_path()
  local folder, home = ah._real_path ".", ah._real_path(os.getenv "HOME" or "")
  while folder and folder ~= "/" and folder ~= home do
    local path, mine = inside(folder, M.NAME), ah._is_mine(folder)
    if ah._real_path(path) then
      return path, mine and ah._is_mine(path)
    elseif not mine or ah._real_path(inside(folder, ".git")) then
      return nil
    end
    local above = folder:match "^(.*)/"
    folder = above ~= "" and above or "/"
  end
end

-- Returns an error of the library as a text.
local function words_of(err)
  return type(err) == "table" and (err.message or err.words) or tostring(err)
end

-- Adds the text, the hash and the entries of a file to its record; or `why` it cannot be used.
local function read(file)
  local content, why, missing = pairs_of.read(file.path, file.how)
  if not content then
    file.missing, file.why = missing, ("cannot read '%s': %s"):format(shown(file.path), why)
    return file
  end
  local ok, entries = pcall(mcp_file.entries, content, file.path)
  file.hash, file.entries = trusted.hash(content), ok and entries or nil
  file.why = not ok and words_of(entries) or nil
  for _, entry in ipairs(file.entries or {}) do
    entry.file = file
  end
  return file
end

local function project_file()
  local path, mine = project_path()
  if not path then
    return nil
  end
  local file = { path = path, from = "project", how = "file", folder = path:match "^(.*)/" }
  if not mine then
    file.why = ("'%s' is not used: it, or its folder, belongs to another user"):format(shown(path))
    return file
  end
  read(file)
  local record = trusted.find(path)
  file.trusted = record ~= nil and record.settings == file.hash
  return file
end

local function user_file()
  local folder = settings_file.user_path():match "^(.*)/"
  local file = folder and read { path = folder .. "/" .. M.OWN, from = "user", trusted = true,
    how = "link" }
  return file and not file.missing and file or nil
end

local function named_file(path)
  local file = read { path = path, from = "file", how = "any", trusted = true }
  return file.why and fault("%s", file.why) or file
end

--- Returns the files that there are, each { path, from = "project"|"user"|"file", trusted, entries,
-- why }; without `entries`, `why` says what is wrong with it.
---@param path string? the file of --file or --mcp, in place of the others
function M.files(path)
  if path then
    return { named_file(path) }
  end
  local list = {}
  list[#list + 1] = project_file()
  list[#list + 1] = user_file()
  return list
end

--- Returns the entries of files, without those that others hide. Raises a fault for a file that
-- cannot be used, or calls `all` with it if that is given.
function M.entries(files, all)
  local list, seen = {}, {}
  for _, file in ipairs(files) do
    if file.why then
      (all or function() fault("%s", file.why) end)(file)
    end
    for _, entry in ipairs(file.entries or {}) do
      list[#list + 1] = not seen[entry.name] and entry or nil
      seen[entry.name] = true
    end
  end
  return list
end

--- Returns the names of the servers, for completion.
function M.names()
  local names = {}
  for i, entry in ipairs(M.entries(M.files(), function() end)) do
    names[i] = entry.name
  end
  return names
end

-- -- consent -------------------------------------------------------------------------------------

--- Returns where an entry's server is, as the file has it: a command line or an address.
function M.where(entry)
  local fields = entry.fields
  local words = { fields.url or fields.command }
  for _, word in ipairs(fields.args or {}) do
    words[#words + 1] = use "stored".quoted(word)
  end
  return text.clean(text.cut(table.concat(words, " "), SHOWN))
end

local function sorted_names(map)
  local names = {}
  for name in pairs(map or {}) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

-- Adds lines that show a person what an entry would do.
local function add_entry(texts, entry)
  local fields = entry.fields
  local function put(label, said)
    texts[#texts + 1] = ("\n    %s: %s"):format(label, text.clean(said))
  end
  texts[#texts + 1] = { "\n  " .. text.clean(entry.name), bold = true }
  put(fields.url and "asks" or "starts", fields.url or fields.command)
  for _, word in ipairs(fields.args or {}) do
    put("  with", word)
  end
  for label, names in pairs { ["sets the variables"] = sorted_names(fields.env),
    ["sends the headers"] = sorted_names(fields.headers), ["is given your variables"] =
    entry.variables } do
    if names[1] then
      put(label, table.concat(names, " "))
    end
  end
end

local function question_of(file)
  local texts = { { ("Servers of the project, %s:"):format(shown(file.path)), bold = true } }
  for _, entry in ipairs(file.entries) do
    add_entry(texts, entry)
  end
  return texts, "Start and ask them, now and later? Agree only to what you would run yourself."
end

--- Asks the person, unless the file is trusted, whether its servers may be used, and keeps the
-- consent. Raises a fault without it.
function M.agree(file)
  if file.trusted then
    return
  end
  local yes, why = consent.confirm(question_of(file))
  if not yes then
    fault("the servers of '%s' are the project's, and not used: %s\nRead it, and run this once at "
      .. "a terminal; or name the file: --file FILE of agenthost mcp, --mcp=FILE of prompts and "
      .. "chats", shown(file.path), why)
  end
  trusted.keep { path = file.path, settings = file.hash, variables = trusted.hash(nil) }
  file.trusted = true
end

-- -- servers -------------------------------------------------------------------------------------

local function options_of(entry)
  return { cwd = entry.file.from == "project" and entry.file.folder or nil }
end

--- Returns the server of an entry. Raises a fault if its file is not trusted, or for a variable
-- that is not set.
function M.open(entry)
  M.agree(entry.file)
  local ok, server = pcall(mcp_file.server, entry, options_of(entry))
  return ok and server or fault("%s", words_of(server))
end

--- Returns the id of an entry for its pins; nil if that is not known, as a variable is not set.
function M.id(entry)
  local ok, fields = pcall(mcp_file.fields, entry, options_of(entry))
  return ok and pins.id(fields) or nil
end

--- Returns words that propose the nearest of the names; "" if none is near.
function M.near(word, names)
  local near = ah.nearest(word, names)
  return near and (" (did you mean '%s'?)"):format(shown(near)) or ""
end

-- Raises that there is no such server.
local function unknown(name, entries)
  local names = {}
  for i, entry in ipairs(entries) do
    names[i] = entry.name
  end
  local listed = table.concat(names, ", ", 1, math.min(#names, LISTED))
  fault("there is no MCP server '%s'%s\n%s", shown(name), M.near(name, names),
    names[1] and "There are: " .. text.clean(listed) or ("None is named in a %s here, nor in '%s'. "
      .. "An address, or -- COMMAND, needs no name."):format(M.NAME,
      shown((settings_file.user_path():gsub("[^/]*$", M.OWN)))))
end

--- Raises that a server has no such tool.
function M.no_tool(name, names)
  fault("the server has no tool '%s'%s", shown(name), M.near(name, names))
end

--- Returns the entry of a name. Raises a fault if there is none.
function M.entry(name, path)
  local entries = M.entries(M.files(path))
  for _, entry in ipairs(entries) do
    if entry.name == name then
      return entry
    end
  end
  unknown(name, entries)
end

--- Returns the address that a word is, or that the server of this name has. Raises a fault for a
-- server that has none.
function M.address(word)
  if word:find "^https?://" then
    return word
  end
  local entry = M.entry(word)
  M.agree(entry.file)
  local ok, fields = pcall(mcp_file.fields, entry, options_of(entry))
  if not ok then
    fault("%s", words_of(fields))
  end
  return fields.url or fault("the MCP server '%s' is a process, and has no login", shown(word))
end

local function made(fields)
  local ok, server = pcall(ah.mcp, fields)
  return ok and server or fault("%s", words_of(server))
end

--- Returns the server that a line names, and its other words: the first word is the name or the
-- address of one, or a command stands behind "--". Raises a fault if there is none.
---@param words string[]
---@param line table as line.lua has read it
---@param path string? the file of --file
function M.of_line(words, line, path)
  local at, first = line.literal, words[1]
  if at and at <= #words then
    return made { command = words[at], args = table.move(words, at + 1, #words, 1, {}) },
      table.move(words, 1, at - 1, 1, {})
  elseif not first then
    fault "no server is given: a name, an address, or -- COMMAND at the end"
  end
  local rest = table.move(words, 2, #words, 1, {})
  if first:find "^https?://" then
    return made { url = first }, rest
  end
  return M.open(M.entry(first, path)), rest
end

-- -- failures ------------------------------------------------------------------------------------

local CODES = { provider = 3, http = 3, usage = 2, deadline_exceeded = 4 }

--- Returns the exit code and the message of an error of a server.
function M.failure(err)
  return CODES[err.code] or 1, err.message
end

--- The flag for a file of servers.
M.flag = { name = "file", value = "FILE", once = true,
  doc = "the servers of this file, which then needs no trust" }

return M
