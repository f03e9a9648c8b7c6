--- The agent of a prompt, and of a chat without a script: made of the flags, with built-in tools
-- for the current folder.
local ah, use = ...
local pairs_of, stored = use "pairs", use "stored"
local fault, shown = pairs_of.fault, pairs_of.shown

local M = {}

--- The tools of -t. What they change or send is asked about first.
M.TOOLS = { "read_file", "write_file", "edit_file", "list_files", "grep", "bash", "http_fetch" }
local TOOLS = M.TOOLS
local REASON = { write_file = "it writes a file of this folder",
  edit_file = "it changes a file of this folder", bash = "it runs a command, with your rights",
  http_fetch = "it sends a request to another computer" }
local OPTIONS = { write_file = { overwrite = true }, http_fetch = { allow = "public" } }

--- Rows of flags, by name.
M.flag = {
  system = { name = "system", letter = "s", value = "TEXT", any = true,
    doc = "what the model is to be" },
  tool = { name = "tool", letter = "t", value = "NAMES", many = true,
    offer = table.concat(TOOLS, " "), doc = "tools for this folder: read_file,grep,bash ..." },
  option = { name = "option", letter = "o", value = "PAIR", many = true,
    doc = "option of the model: temperature=0" },
  mcp = { name = "mcp", value = "FILE", optional = "=", once = true,
    doc = "tools of the project's and your MCP servers, or of FILE" },
  max_cost = { name = "max-cost", value = "USD", kind = "decimal", once = true,
    doc = "end when it has cost so much" },
}

-- -- flags -------------------------------------------------------------------------------------

-- Returns the options of "temperature=0" and so on by their names; nil if there are none.
local function options_of(list)
  if not list then
    return nil
  end
  local options, known = {}, use "settings.rows".options()
  for _, pair in ipairs(list) do
    local name, value = pair:match "^([^=]*)=(.*)$"
    if not name then
      fault("option --option needs NAME=VALUE, such as temperature=0, found '%s'", shown(pair))
    elseif not known[name] then
      local names = {}
      for one in pairs(known) do
        names[#names + 1] = one
      end
      table.sort(names)
      local near = ah.nearest(name, names)
      fault("a model has no option '%s' (%s)", shown(name), near
        and "did you mean " .. near .. "?" or "there are " .. table.concat(names, ", "))
    end
    local found, must = known[name].read(value)
    if found == nil then
      fault("the option %s must be %s, found '%s'", name, must, shown(value))
    end
    options[name] = found
  end
  return options
end

-- Returns the names of the tools, in a list without repetitions.
local function tools_of(list)
  local names, seen = {}, {}
  for _, words in ipairs(list or {}) do
    for name in words:gmatch "[^,%s]+" do
      local known = false
      for _, one in ipairs(TOOLS) do
        known = known or one == name
      end
      if not known then
        local near = ah.nearest(name, TOOLS)
        fault("there is no tool '%s' (%s)", shown(name), near and "did you mean " .. near .. "?"
          or "there are " .. table.concat(TOOLS, ", "))
      end
      names[#names + 1] = not seen[name] and name or nil
      seen[name] = true
    end
  end
  return names
end

local function schema_of(path)
  if not path then
    return nil
  end
  local content, why = pairs_of.read(path, "any")
  if not content then
    pairs_of.unreadable("schema", path, why)
  end
  local ok, schema = pcall(ah.schema.compile, content)
  if not ok then
    fault("the schema '%s' is not valid: %s", shown(path),
      shown((tostring(schema):gsub("^[^\n]-:%d+: ", ""))))
  end
  return schema
end

--- Raises unless the values of the flags are right.
function M.check(flags)
  options_of(flags.option)
  tools_of(flags.tool)
end

-- -- servers of MCP ----------------------------------------------------------------------------

local opened = {} -- lists of servers, by the file of --mcp

--- Returns the servers of --mcp, each time the same ones; an empty list without it. Asks the
-- person about the project's file. Raises a fault if there are none.
function M.servers(flags)
  local which = flags.mcp
  if not which then
    return {}
  elseif not opened[which] then
    local mcp, list = use "mcp.servers", {}
    local path = which ~= true and which or nil
    for _, entry in ipairs(mcp.entries(mcp.files(path))) do
      list[#list + 1] = not entry.disabled and mcp.open(entry) or nil
    end
    opened[which] = list[1] and list or fault("--mcp: no server is named in %s; agenthost mcp list "
      .. "shows where they can be", path and shown(path) or "a .mcp.json here, nor in yours")
  end
  return opened[which]
end

-- Asks about the tools that change or send something, and about each tool from outside, as what it
-- says of itself may be wrong. Such a tool may have the name of one of ours.
local function ask_about(call)
  local why = call.annotations.untrusted and use "allowed".OUTSIDE or REASON[call.name]
  return why and "ask", why
end

-- -- the agent ---------------------------------------------------------------------------------

--- Writes a warning to standard error.
function M.warn(flags, words)
  if not flags.quiet then
    io.stderr:write("agenthost: warning: ", use "styled".harmless(words), "\n")
  end
end

--- Raises unless there is a model, with ways to choose one. free: a line that needs no key.
function M.check_model(flags, free)
  if flags.model or (os.getenv "AGENTHOST_MODEL" or "") ~= "" then
    return
  end
  local lines = { "no model is chosen",
    "This time:            -m PROVIDER/MODEL, or AGENTHOST_MODEL=PROVIDER/MODEL",
    "Always:               model = PROVIDER/MODEL in the settings: agenthost config" }
  local keys = {}
  for _, provider in ipairs(ah.providers()) do
    for _, name in ipairs(provider.key_env) do
      keys[#keys + 1] = (os.getenv(name) or "") ~= "" and provider.name .. "/ (" .. name .. ")"
        or nil
    end
  end
  lines[#lines + 1] = "With a key here:      " .. (keys[1] and table.concat(keys, ", ")
    or "none; agenthost models lists the providers and their variables")
  lines[#lines + 1] = "Without key or cost:  " .. free
  fault("%s", table.concat(lines, "\n"))
end

local function builtin(names)
  if not names[1] then
    return nil
  end
  local which = {}
  for _, name in ipairs(names) do
    which[name] = OPTIONS[name] or true
  end
  local tools, err = ah.builtin(which)
  return tools or error(err, 0)
end

-- Returns the tools with the servers behind them; nil if there are none.
local function with_servers(tools, servers)
  if not servers[1] then
    return tools
  end
  return table.move(servers, 1, #servers, #(tools or {}) + 1, tools or {})
end

-- Returns the tools of this module that a conversation has at its end.
local function recorded_tools(agent)
  local has, names = {}, {}
  for _, entry in ipairs(ah.json.decode(agent:transcript()).entries) do
    for _, tool in ipairs(entry.type == "tools_added" and entry.tools or {}) do
      has[tool.name] = true
    end
    for _, name in ipairs(entry.type == "tools_removed" and entry.names or {}) do
      has[name] = nil
    end
  end
  for _, name in ipairs(TOOLS) do
    names[#names + 1] = has[name] and name or nil
  end
  return names
end

-- Returns the names of the tools: those of -t, or those that the conversation has already.
local function names_of(flags, place, id, store)
  if place ~= "open" or flags.tool then
    return tools_of(flags.tool)
  end
  local agent <close> = assert(ah.agent { id = id, store = store, name = stored.OWN })
  return recorded_tools(agent)
end

--- Returns an agent, or nil and an error. What is wrong with the fields is wrong with the flags.
function M.made(fields)
  local ok, agent, err = pcall(ah.agent, fields)
  if ok then
    return agent, err
  end
  local message = type(agent) == "table" and agent.code == "usage" and agent.message
  return message and fault("%s", message) or error(agent, 0)
end

--- Returns the agent that open(store) opens, which is kept in the store that place.lua has named.
-- The default store may fail; then it is not kept.
---@param open fun(store: string|nil): table|nil, table|nil
function M.kept(open, place, store, flags)
  local agent, err = open(store)
  if not agent and err.code == "store" and place == "try" then
    M.warn(flags, "this conversation is not kept: " .. err.message)
    agent, err = open(nil)
  end
  return agent or error(err, 0)
end

--- Returns an agent with these fields.
function M.open(fields, place, flags)
  return M.kept(function(store)
    fields.store = store
    return M.made(fields)
  end, place, fields.store, flags)
end

--- Returns the fields of the agent. place, named: of place.lua. store: in place of its store.
function M.fields(flags, place, named, store)
  local id = place == "open" and named or nil
  return { name = stored.OWN, id = id, store = store or not id and named ~= "" and named or nil,
    system = flags.system, options = options_of(flags.option), output = schema_of(flags.schema),
    tools = with_servers(builtin(names_of(flags, place, id, store)), M.servers(flags)),
    budget = flags.max_cost and { cost = flags.max_cost },
    resources = { filesystem = ah.filesystem { root = "." } },
    policies = { ask_about } }
end

return M
