--- Loads a script that returns an agent, and loads it again when its files have changed: all or
-- none. A conversation goes on with the new agent. Runs in the state of the script, for the chat.
--
--   local project = reload.new "agent.lua"
--   local agent = project:load(words)
--   project:changed()                    -- the paths of files that have changed since
--   local again, why = project:reload()  -- nil: all is as it was
--   local conversation, said = reload.carry(conversation, again)
--
-- The files of a project are the script, and what it gets from below its folder by `require`,
-- `dofile` and `loadfile`. A reload runs all of them again, whichever of them have changed: as in a
-- new process, except that ah.state keeps its tables.
local ah, use = ...
local text, traced = use "text", use "traced"

local Project = {}
Project.__index = Project

local M = {}

-- Metatable of an error that prints its words.
local FAULT = { __name = "agenthost.fault", __tostring = function(fault) return fault.words end }

local function fault(words)
  return setmetatable({ words = words }, FAULT)
end

-- -- files -------------------------------------------------------------------------------------

-- Returns the content of a file; false if it cannot be read.
local function content_of(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a" or false
end

-- Notes a file that is loaded, if it is one of the project.
local function note(project, path)
  local real = type(path) == "string" and ah._real_path(path)
  if real and real:sub(1, #project.folder) == project.folder then
    project.seen[path] = content_of(path)
    return true
  end
  return false
end

-- Loads modules of the project, before the searcher of Lua that finds the same files.
local function searcher(project)
  return function(name)
    local path = package.searchpath(name, package.path)
    if not path or not note(project, path) then
      return nil
    end
    project.modules[name] = true
    local chunk, why = loadfile(path, "t")
    return chunk or error(why, 0), path
  end
end

-- Makes the project note what is loaded from now on.
local function watch_loading(project)
  local dofile_of, loadfile_of = _G.dofile, _G.loadfile
  rawset(_G, "dofile", function(...)
    note(project, (...))
    return dofile_of(...)
  end)
  rawset(_G, "loadfile", function(...)
    note(project, (...))
    return loadfile_of(...)
  end)
  table.insert(package.searchers, 2, searcher(project))
end

-- -- running the script ------------------------------------------------------------------------

local function is_agent(value)
  local meta = debug.getmetatable(value)
  return type(meta) == "table" and meta.__name == "agenthost.agent"
end

-- Runs the script. Returns its agent, or raises.
local function run(project)
  _G.arg = table.move(project.words, 1, #project.words, 1, { [0] = project.path })
  note(project, project.path)
  local chunk, why = loadfile(project.path, "t")
  if not chunk then
    error(fault(why), 0)
  end
  local ok, result, err = xpcall(chunk, traced, table.unpack(project.words))
  if not ok then
    error(result, 0)
  elseif result == nil and err ~= nil then
    error(fault(("%s: %s"):format(project.path, tostring(err))), 0)
  end
  local agent = type(result) == "table" and rawget(result, "agent") or result
  if not is_agent(agent) then
    error(fault(("%s returned no agent; an agent script ends with: return ah.agent { ... }")
      :format(project.path)), 0)
  end
  return agent
end

-- Replaces all fields of a table.
local function replace(t, fields)
  for key in next, t do
    if fields[key] == nil then
      rawset(t, key, nil)
    end
  end
  for key, value in next, fields do
    rawset(t, key, value)
  end
end

local function copy(t)
  local same = {}
  for key, value in next, t do
    same[key] = value
  end
  return same
end

-- Takes the modules out of package.loaded. Returns what was there.
local function unload(names)
  local were = {}
  for name in pairs(names) do
    were[name], package.loaded[name] = package.loaded[name], nil
  end
  return were
end

-- -- for the chat ------------------------------------------------------------------------------

--- Returns the project of a script. There is one in a state.
---@param path string
function M.new(path)
  local real = ah._real_path(path)
  if not real then
    error(fault(("cannot open '%s'"):format(text.cut(path, 200))), 0)
  end
  local project = setmetatable({ path = path, folder = real:match "^.*/", words = {}, seen = {},
    modules = {} }, Project)
  watch_loading(project)
  return project
end

--- Runs the script with these words. Returns its agent, or raises.
---@param words string[]?
function Project:load(words)
  self.words = words or {}
  self.agent = run(self)
  return self.agent
end

--- Returns the paths of the files that have changed since they were loaded, or since the last
-- reload that failed.
---@return string[]
function Project:changed()
  local paths = {}
  for path, content in pairs(self.seen) do
    paths[#paths + 1] = content_of(path) ~= content and path or nil
  end
  table.sort(paths)
  return paths
end

--- Runs the script and its modules again. Returns its agent; or nil and an error, with file and
-- line, and then the globals and package.loaded are as they were. An earlier agent that has a store
-- and an id of its own leaves them to the new one, and is closed then.
function Project:reload()
  local calm, wake, err = pcall(ah._rest, self.agent)
  if not calm or err then
    return nil, err or wake
  end
  local seen, modules, globals, path = self.seen, self.modules, copy(_G), package.path
  local were = unload(modules)
  self.seen, self.modules = {}, {}
  local ok, agent = pcall(run, self)
  if ok then
    self.agent = agent
    return agent
  end
  unload(self.modules)
  for name, module in pairs(were) do
    package.loaded[name] = module
  end
  replace(_G, globals)
  package.path, self.modules = path, modules
  if wake then
    wake()
  end
  for known in pairs(seen) do
    if self.seen[known] == nil then
      self.seen[known] = content_of(known)
    end
  end
  return nil, agent
end

-- -- conversations -----------------------------------------------------------------------------

-- Tools that other tools or the person added to the conversation are no part of its definition.
local function is_defined(by)
  return not by or by.section ~= nil or by.script == "setup" or by.script == "registry"
end

-- Returns the entries of a conversation, and its tools: name -> what has added it (false: the
-- definition).
local function read(conversation)
  local entries, tools = ah.json.decode(conversation:transcript()).entries, {}
  for _, entry in ipairs(entries) do
    for _, tool in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      tools[tool.name] = entry.by or false
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      tools[name] = nil
    end
  end
  return entries, tools
end

-- Returns what the entries behind the n-th say to the model, in words.
local function words_of(entries, n, tools)
  local words = {}
  local function add(...)
    words[#words + 1] = (...):format(select(2, ...))
  end
  for i = n + 1, #entries do
    local entry = entries[i]
    if entry.type == "prompt" then
      add "system text: changed"
    end
    for _, tool in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      add("tool %s: %s", tool.name, tools[tool.name] ~= nil and "changed" or "added")
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      add("tool %s: removed", name)
    end
  end
  return words
end

--- Lets a conversation go on with another definition. The model reads of each tool that has
-- changed, come or gone; every handler is the new one. Returns an agent, in place of the
-- conversation, which is closed, and a list of what has changed, in words; or nil and an error, and
-- the conversation goes on as it was. Tools that were added by other tools keep their handlers. The
-- model is that of the definition; front ends and observers of the conversation are not taken over.
---@param conversation ah.Agent without a run or a background call at work
---@param definition ah.Agent
function M.carry(conversation, definition)
  local entries, tools = read(conversation)
  local ok, new, stale = pcall(ah._carry, conversation, definition)
  if not ok then
    return nil, new
  elseif not new then
    return nil, stale
  end
  local gone = {}
  for _, name in ipairs(stale) do
    gone[#gone + 1] = is_defined(tools[name]) and name or nil
  end
  if gone[1] then
    new:remove_tools(gone)
  end
  return new, words_of(read(new), #entries, tools)
end

return M
